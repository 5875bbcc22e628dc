#!/usr/bin/env python3
"""Writes tests/golden/gaussian_process.txt: the losses of examples/gaussian_process.c, computed with PyTorch.

    python3 tests/golden/make_gaussian_process.py > tests/golden/gaussian_process.txt

With FILE as an argument, compares FILE (what the example printed with --losses) with these losses, without PyTorch.
"""
import math
import os
import sys

POINTS, TIMES, GAP, STEPS = 60, 72, range(40, 52), 40


class Noise:
    def __init__(self, state):
        self.state = state

    def uniform(self):
        self.state = (self.state * 1664525 + 1013904223) % 2**32
        return (self.state >> 8) / 16777216.0

    def normal(self):
        total = -6.0
        for _ in range(12):
            total += self.uniform()
        return total


def train(name, torch, loss, params):
    adam = torch.optim.Adam(params, lr=0.05)
    for step in range(1, STEPS + 1):
        now = loss()
        adam.zero_grad()
        now.backward()
        adam.step()
        print("%s %d %.12f" % (name, step, now.item()))


def process(torch):
    noise, x, y = Noise(1), [], []
    for _ in range(POINTS):
        x.append([-3 + 6 * noise.uniform(), -3 + 6 * noise.uniform()])
        y.append([math.sin(2 * x[-1][0]) + 0.2 * x[-1][0] + 0.2 * noise.normal()])
    x, y = torch.tensor(x), torch.tensor(y)
    length = torch.zeros(2, requires_grad=True)
    scale = torch.zeros((), requires_grad=True)
    deviation = torch.full((), -0.5, requires_grad=True)

    def loss():
        apart = (x / length.exp())[:, None] - (x / length.exp())[None]
        k = torch.exp(-0.5 * (apart ** 2).sum(2) + 2 * scale) + (2 * deviation).exp() * torch.eye(POINTS)
        normal = torch.distributions.MultivariateNormal(torch.zeros(POINTS), covariance_matrix=k)
        return -normal.log_prob(y[:, 0]) / POINTS

    train("process", torch, loss, [length, scale, deviation])


def kalman_filter(torch):
    noise, step, seen = Noise(2), 0.15, []
    for t in range(TIMES):
        value = 1.5 * math.sin(0.9 * step * t) + 0.25 * noise.normal()
        seen.append(None if t in GAP else value)
    move = torch.tensor([[1, step], [0, 1]])
    see = torch.tensor([[1.0, 0.0]])
    push = torch.tensor([[step ** 3 / 3, step ** 2 / 2], [step ** 2 / 2, step]])
    jerk = torch.ones((), requires_grad=True)
    sensor = torch.zeros((), requires_grad=True)

    def loss():
        state, spread, total = torch.zeros(2, 1), torch.eye(2), 0
        for value in seen:
            state, spread = move @ state, move @ spread @ move.T + push * (2 * jerk).exp()
            if value is None:
                continue
            surprise = see @ spread @ see.T + (2 * sensor).exp()
            total = total - torch.distributions.Normal((see @ state).squeeze(), surprise.squeeze().sqrt()).log_prob(
                torch.tensor(value))
            gain = spread @ see.T @ torch.linalg.inv(surprise)
            state, spread = state + gain @ (value - see @ state), spread - gain @ see @ spread
        return total / sum(value is not None for value in seen)

    train("filter", torch, loss, [jerk, sensor])


def compare(file):
    golden = os.path.join(os.path.dirname(os.path.abspath(__file__)), "gaussian_process.txt")
    mine, theirs = open(file).read().split("\n"), open(golden).read().split("\n")
    theirs = [line for line in theirs if not line.startswith("#")]
    if len(mine) != len(theirs):
        sys.exit("%d losses, not %d" % (len(mine), len(theirs)))
    worst = 0.0
    for a, b in zip(mine, theirs):
        a, b = a.split(), b.split()
        if a[:2] != b[:2]:
            sys.exit("%s where PyTorch has %s" % (a, b))
        if a:
            worst = max(worst, abs(float(a[2]) - float(b[2])))
    print("the losses differ from PyTorch's by at most %.1e" % worst)
    sys.exit(not worst < 1e-8)


if len(sys.argv) > 1:
    compare(sys.argv[1])
else:
    import torch
    torch.set_default_dtype(torch.float64)
    print("# tests/golden/make_gaussian_process.py, PyTorch %s" % torch.__version__.split("+")[0])
    process(torch)
    kalman_filter(torch)
