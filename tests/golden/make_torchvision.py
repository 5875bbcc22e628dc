#!/usr/bin/env python3
"""Writes torchvision.npz: torchvision's results for test_extension.c.  Needs torchvision (0.29) and its dependencies.

python3 tests/golden/make_torchvision.py

For each case, the file has the tensor arguments NAME.in0, ..., the results NAME.out0, ... and, if there are
derivatives, NAME.grad0, ...: the gradients of the sum of the first result times NAME.weight.
"""
import pathlib

import numpy as np
import torch
import torchvision  # noqa: F401

CASES = {}
ops = torch.ops.torchvision
generator = torch.Generator().manual_seed(17)


def numbers(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, generator=generator, dtype=torch.float64).to(dtype)


def regions(count, batch, size, dtype=torch.float32):
    first = torch.rand(count, 2, generator=generator, dtype=torch.float64) * size * 0.5
    extent = torch.rand(count, 2, generator=generator, dtype=torch.float64) * size * 0.5 + 1
    which = torch.arange(count, dtype=torch.float64).remainder(batch)[:, None]
    return torch.cat([which, first, first + extent], 1).to(dtype)


def case(name, op, tensors, rest, differentiable=()):
    inputs = [t.clone().requires_grad_(i in differentiable) for i, t in enumerate(tensors)]
    results = op(*inputs, *rest)
    results = results if isinstance(results, tuple) else (results,)
    for i, t in enumerate(tensors):
        CASES[f"{name}.in{i}"] = t.numpy()
    for i, t in enumerate(results):
        CASES[f"{name}.out{i}"] = t.detach().numpy()
    if differentiable:
        weight = numbers(*results[0].shape, dtype=results[0].dtype)
        CASES[f"{name}.weight"] = weight.numpy()
        (results[0] * weight).sum().backward()
        for i in differentiable:
            CASES[f"{name}.grad{i}"] = inputs[i].grad.numpy()


boxes = regions(200, 1, 40)[:, 1:]
case("nms", ops.nms, [boxes, numbers(200)], [0.4])
case("roi_align", ops.roi_align, [numbers(2, 3, 12, 14), regions(5, 2, 20)], [0.5, 3, 4, 2, True], [0])
case("roi_align64", ops.roi_align, [numbers(1, 2, 9, 9, dtype=torch.float64), regions(3, 1, 9, torch.float64)],
     [1.0, 2, 2, -1, False], [0])
case("roi_pool", ops.roi_pool, [numbers(2, 3, 12, 14), regions(4, 2, 20)], [0.5, 3, 3], [0])
case("ps_roi_align", ops.ps_roi_align, [numbers(2, 8, 12, 14), regions(4, 2, 20)], [0.5, 2, 2, 2], [0])
case("ps_roi_pool", ops.ps_roi_pool, [numbers(2, 8, 12, 14), regions(4, 2, 20)], [0.5, 2, 2], [0])
case("deform_conv2d", ops.deform_conv2d,
     [numbers(2, 4, 7, 8), numbers(6, 2, 3, 3), numbers(2, 18, 7, 8) * 0.3, numbers(2, 9, 7, 8), numbers(6)],
     [1, 1, 1, 1, 1, 1, 2, 1, True], [0, 1, 2, 3, 4])
rotated = torch.cat([regions(6, 1, 9)[:, 1:], numbers(6, 1) * 60], 1)
case("box_iou_rotated", ops.box_iou_rotated, [rotated, rotated.flip(0).contiguous()], [])
path = pathlib.Path(__file__).parent / "torchvision.npz"
np.savez_compressed(path, **CASES)
print(f"{path}: {len(CASES)} arrays, {path.stat().st_size} bytes")
