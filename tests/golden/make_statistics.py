#!/usr/bin/python3
"""Writes statistics.txt: the errors of PyTorch's statistics and normalizations, for numbers whose mean is up to a
million times their deviation.  tests/ops/test_statistics.c uses the same numbers; its errors must not be larger.

    python3 make_statistics.py > statistics.txt          (PyTorch 2.15 on x86-64; one thread)

A line: name, dtype, number of the shape, ratio, and the largest error.  The error is relative to the largest exact
result, or, if that is smaller, to least(): the size of a sum of as many numbers, or half of the spread for a mean.  The
exact results are computed with long doubles; results that are not finite are left out.  Ratio -10000 means that the
first element of each row is 0, and that the mean of the others is 10000 times their deviation.
"""
import numpy as np
import torch

torch.set_num_threads(1)
np.seterr(all='ignore')
SHAPES = [(6, 4, 1100), (40, 6, 12)]
RATIOS = {torch.float32: [0, 10, 100, 1000, 10000, 100000, 1000000, -10000],
          torch.float64: [0, 1000, 1000000, -10000], torch.bfloat16: [0, 10, 100]}
NAMES = {torch.float32: 'float32', torch.float64: 'float64', torch.bfloat16: 'bfloat16'}
EPS = 1e-5
LONG = np.longdouble


class Numbers:
    def __init__(self, seed):
        self.state = seed

    def draw(self, count):
        out = np.empty(count)
        for i in range(count):
            self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
            out[i] = (self.state >> 40) / 2**23 - 1
        return out


def inputs(shape, dtype, ratio):
    a, c, n = shape
    numbers = Numbers(1)
    x = numbers.draw(a * c * n)
    x = (x + abs(ratio) * 0.57735026918962576).reshape(shape)
    if ratio < 0:
        x[:, :, 0] = 0
    rest = [numbers.draw(k) for k in (a * c * n, n, n, c, c, a)]
    grad, wn, bn, wc, bc, ga = rest
    made = [x, grad.reshape(shape), wn * 0.5 + 1, bn, wc * 0.5 + 1, bc, (ga * 0.5 + 1).reshape(a, 1, 1)]
    return [torch.from_numpy(np.ascontiguousarray(t)).to(dtype) for t in made]


def exact_norm(x, grad, w, b, dims, wdims):
    mean = x.mean(dims, keepdims=True)
    var = ((x - mean)**2).mean(dims, keepdims=True)
    rstd = 1 / np.sqrt(var + LONG(EPS))
    xhat = (x - mean) * rstd
    gy = grad * w
    dx = rstd * (gy - gy.mean(dims, keepdims=True) - xhat * (gy * xhat).mean(dims, keepdims=True))
    return {'out': xhat * w + b, 'mean': mean, 'rstd': rstd, 'dx': dx, 'dw': (grad * xhat).sum(wdims), 'db': grad.sum(wdims)}


def by_grad(fn, x):
    x = x.detach().requires_grad_()
    return torch.autograd.grad(fn(x).sum(), x)[0]


def results(shape, dtype, ratio):
    x, grad, wn, bn, wc, bc, ga = inputs(shape, dtype, ratio)
    a, c, n = shape
    X, G, WN, BN, WC, BC, GA = [t.double().numpy().astype(LONG) for t in (x, grad, wn, bn, wc, bc, ga)]
    out = {}
    for name, dims in (('last', (2,)), ('outer', (0, 1)), ('all', (0, 1, 2)), ('channel', (0, 2))):
        count = int(np.prod([shape[d] for d in dims]))
        mean = X.mean(dims, keepdims=True)
        var = ((X - mean)**2).sum(dims) / (count - 1)
        out['sum_' + name] = x.sum(dims), X.sum(dims)
        out['mean_' + name] = x.mean(dims), X.mean(dims)
        out['var_' + name] = x.var(dims), var
        out['std_' + name] = x.std(dims), np.sqrt(var)
        out['var_mean_' + name] = torch.var_mean(x, dims)[1], X.mean(dims)
        out['norm_' + name] = torch.linalg.vector_norm(x, 2, dims), np.sqrt((X**2).sum(dims))
        top = X.max(dims, keepdims=True)
        lse = np.log(np.exp(X - top).sum(dims, keepdims=True)) + top
        out['logsumexp_' + name] = torch.logsumexp(x, dims), lse.reshape(var.shape)
        out['var_dx_' + name] = by_grad(lambda t: t.var(dims), x), 2 * (X - mean) / (count - 1)
        keep = var.reshape(mean.shape)
        out['std_dx_' + name] = by_grad(lambda t: t.std(dims), x), (X - mean) / ((count - 1) * np.sqrt(keep))
        out['norm_dx_' + name] = (by_grad(lambda t: torch.linalg.vector_norm(t, 2, dims), x),
                                  X / np.sqrt((X**2).sum(dims, keepdims=True)))
        out['logsumexp_dx_' + name] = by_grad(lambda t: torch.logsumexp(t, dims), x), np.exp(X - lse)

    def norm(name, forward, backward, exact):
        for part, got in zip(('out', 'mean', 'rstd'), forward):
            out[name + '_' + part] = got, exact[part]
        for part, got in zip(('dx', 'dw', 'db'), backward):
            out[name + '_' + part] = got, exact[part]

    mask = [True, True, True]
    f = torch.native_layer_norm(x, [n], wn, bn, EPS)
    norm('layer_norm', f, torch.ops.aten.native_layer_norm_backward(grad, x, [n], f[1], f[2], wn, bn, mask),
         exact_norm(X, G, WN, BN, (2,), (0, 1)))
    f = torch.native_group_norm(x, wc, bc, a, c, n, 2, EPS)
    shaped = (a, 2, c // 2, n)
    w, b = WC.reshape(1, 2, c // 2, 1), BC.reshape(1, 2, c // 2, 1)
    norm('group_norm', f, torch.ops.aten.native_group_norm_backward(grad, x, f[1], f[2], wc, a, c, n, 2, mask),
         exact_norm(X.reshape(shaped), G.reshape(shaped), w, b, (2, 3), (0, 3)))
    rm, rv = torch.zeros(c, dtype=dtype), torch.ones(c, dtype=dtype)
    f = torch.native_batch_norm(x, wc, bc, rm, rv, True, 0.1, EPS)
    w, b = WC.reshape(1, c, 1), BC.reshape(1, c, 1)
    norm('batch_norm', f, torch.ops.aten.native_batch_norm_backward(grad, x, wc, rm, rv, f[1], f[2], True, EPS, mask),
         exact_norm(X, G, w, b, (0, 2), (0, 2)))
    out['running_mean'] = rm, LONG(0.1) * X.mean((0, 2))
    out['running_var'] = rv, LONG(0.9) + LONG(0.1) * X.var((0, 2), ddof=1)
    out['instance_norm'] = (torch.instance_norm(x, wc, bc, None, None, True, 0.1, EPS, False),
                            exact_norm(X, G, w, b, (2,), (0, 2))['out'])
    out['rms_norm'] = torch.rms_norm(x, [n], wn, EPS), X / np.sqrt((X**2).mean(2, keepdims=True) + LONG(EPS)) * WN
    out['weight_norm'] = torch._weight_norm(x, ga, 0), X * GA / np.sqrt((X**2).sum((1, 2), keepdims=True))
    rows = X.reshape(a * c, n)
    less = rows - rows.mean(1, keepdims=True)
    cov = less @ less.T / (n - 1)
    out['cov'] = torch.cov(x.reshape(a * c, n)), cov
    size = np.sqrt(np.diag(cov))
    out['corrcoef'] = torch.corrcoef(x.reshape(a * c, n)), cov / size[:, None] / size[None, :]
    return out


def least(name, shape, results):
    each = np.sqrt(np.prod(shape) / results)
    return each if name.startswith('sum') else 0.05 if name == 'running_mean' else 0.5 if 'mean' in name else 0


def main():
    for dtype, ratios in RATIOS.items():
        for s, shape in enumerate(SHAPES):
            for ratio in ratios:
                for name, (got, exact) in results(shape, dtype, ratio).items():
                    got = got.double().numpy().astype(LONG).reshape(exact.shape)
                    error = np.abs(got - exact).max() / max(np.abs(exact).max(), least(name, shape, exact.size))
                    if not np.isfinite(exact).all():                       # a row whose elements are all equal
                        continue
                    print(name, NAMES[dtype], s, ratio, '%.2e' % error)


main()
