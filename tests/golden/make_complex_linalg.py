#!/usr/bin/env python3
"""Writes complex_linalg.txt: PyTorch's results and gradients of linear algebra functions of complex matrices.

    python3 make_complex_linalg.py > complex_linalg.txt      (needs PyTorch; made with 2.15)

The functions have the same names as in tests/ops/test_complex_linalg.c.  Their results do not depend on the phases of
eigenvectors or singular vectors.  A line is: function, kind, number of dims, sizes, number of results; for each result
the number of its elements, and the elements (a complex element as two numbers); then the elements of the gradient of x.
The loss is the sum of Re(conj(w) result).  The weights w are random like x, with other seeds.
"""
import torch

L = torch.linalg


def noise(sizes, seed):
    n = 1
    for size in sizes:
        n *= size
    x, values = (seed * 2654435761 + 12345) % 2 ** 32, []
    for _ in range(n):
        x = (x * 1664525 + 1013904223) % 2 ** 32
        values.append((x >> 8) / 8388608.0 - 1)
    return torch.tensor(values, dtype=torch.float64).reshape(sizes)


def pairs(sizes, seed):
    return torch.complex(noise(sizes, seed), noise(sizes, seed + 1000))


def input_of(kind, sizes):
    x = pairs(sizes, 7 + len(sizes) + sizes[-1])
    if kind == 'ill':
        x = x * (10.0 ** -torch.arange(sizes[-1], dtype=torch.float64) * 1)
        x = x * (4.0 ** torch.arange(sizes[-2], dtype=torch.float64)).unsqueeze(-1)
    return x


def positive(x):
    return x @ x.mH + torch.eye(x.shape[-2], dtype=x.dtype)


def beside(x):
    return pairs(list(x.shape[:-1]) + [2], 99)


def cholesky(x):
    a, b = positive(x), beside(x)
    lower, upper = L.cholesky(a), L.cholesky(a, upper=True)
    return [lower, upper, torch.cholesky_solve(b, lower), torch.cholesky_solve(b, upper, True),
            torch.cholesky_inverse(lower), torch.cholesky_inverse(upper, True)]


def lu(x):
    f, p = L.lu_factor(x)
    b = beside(x)
    return [f] + [L.lu_solve(f, p, b if left else b.mT, left=left, adjoint=adjoint)
                  for left in (True, False) for adjoint in (True, False)] + list(L.lu(x)[1:])


def solve(x):
    b = beside(x)
    sign, size = L.slogdet(x)
    return [L.solve(x, b), L.solve(x, b.mT, left=False), L.inv(x), L.det(x), sign, size, torch.logdet(x).exp(),
            L.solve_triangular(x, b, upper=True), L.solve_triangular(x, b.mT, upper=False, left=False)]


def eigh(x):
    h = x + x.mH
    values, v = L.eigh(h)
    return [values, v.abs(), v @ (values.exp().unsqueeze(-1) * v.mH), L.eigvalsh(h, UPLO='U')]


def svd(x):
    u, s, vh = L.svd(x, full_matrices=False)
    return [s, u.abs(), vh.abs(), u @ vh, L.svdvals(x), L.matrix_norm(x, 'nuc'), L.matrix_norm(x, 2), L.cond(x)]


def qr(x):
    return list(L.qr(x)) + [L.pinv(x), L.lstsq(x, beside(x), driver='gelsd').solution,
                            L.lstsq(x, beside(x), driver='gels').solution]


def eig(x):
    w, v = L.eig(x)
    return [(v.abs() ** 4).sum(-2).mul(w.abs()).sum(-1), (v * (w * w).unsqueeze(-2)) @ L.inv(v),
            L.eigvals(x).abs().sum(-1), L.matrix_exp(x), L.matrix_power(x, 3)]


def values_of(t):
    t = torch.view_as_real(t.detach().contiguous().resolve_conj()) if t.is_complex() else t.detach()
    return ['%.13g' % v for v in t.reshape(-1).tolist()]


def line(function, kind, sizes):
    x = input_of(kind, sizes).requires_grad_()
    results, loss = function(x), 0
    words = [function.__name__, kind, str(len(sizes))] + [str(s) for s in sizes] + [str(len(results))]
    for k, r in enumerate(results):
        w = pairs(list(r.shape), 50 + k) if r.is_complex() else noise(list(r.shape), 50 + k)
        loss = loss + ((w.conj() * r).real.sum() if r.is_complex() else (w * r).sum())
        v = values_of(r)
        words += [str(len(v))] + v
    return ' '.join(words + values_of(torch.autograd.grad(loss, x)[0]))


for f in (cholesky, lu, solve, eigh, svd, qr, eig):
    for which, shape in (('plain', [1, 1]), ('plain', [2, 2]), ('plain', [3, 3]), ('plain', [5, 5]), ('plain', [2, 3, 3]),
                         ('ill', [3, 3])):
        print(line(f, which, shape))
for f in (svd, qr):
    for shape in ([4, 2], [2, 3], [2, 3, 2]):
        print(line(f, 'plain', shape))
