#!/usr/bin/env python3
"""Makes special.txt: values of special functions, computed with mpmath and PyTorch, for tests/ops/test_special.c.

"~ operator x y value error"   value is mpmath's, error the relative error of PyTorch's float64 result.  The arguments
                               are float32 numbers; y is - if the function has one argument
"z operator x - value"         mpmath's value close to a zero of the function, or where its phase is large; only for
                               float64
"= operator x y value"         PyTorch's result at poles, at the ends of intervals, at infinities and at NaN

usage: make_special.py FOLDER
"""
import os
import sys

import mpmath as mp
import numpy as np
import torch

mp.mp.dps = 60
random = np.random.default_rng(7)
COUNT = 24


def positive(low, high, count=COUNT):
    return np.exp(random.uniform(np.log(low), np.log(high), count))


def both(low, high, count=COUNT):
    return positive(low, high, count) * random.choice([-1, 1], count)


def whole(low, high, count=COUNT):
    return random.integers(low, high, count).astype(float)


def log_gamma(x):
    return mp.log(abs(mp.gamma(x)))


def gamma_moves(a, x):
    slope = mp.diff(lambda shape: mp.gammainc(shape, 0, x, regularized=True), a)
    return -slope / mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))


def chebyshev_v(x, n, sign=-1):
    return mp.chebyu(int(n), x) + (sign * mp.chebyu(int(n) - 1, x) if n else 0)


def shifted(function):
    return lambda x, n: function(2 * x - 1, n)


def on_line(function):
    return lambda x, n: function(int(n), x)


CHEBYSHEV = {'t': on_line(mp.chebyt), 'u': on_line(mp.chebyu), 'v': chebyshev_v,
             'w': lambda x, n: chebyshev_v(x, n, 1)}


def polygamma(x, n):
    return torch.polygamma(int(n), x)


ONE = [
    ('lgamma', log_gamma, [positive(1e-3, 1e6), 1 + both(1e-4, .6), 2 + both(1e-4, .6), -positive(1e-2, 40)]),
    ('digamma', mp.digamma, [positive(1e-3, 1e6), -positive(1e-2, 40)]),
    ('erfinv', mp.erfinv, [both(1e-5, .99), 1 - positive(1e-7, .1)]),
    ('special_ndtri', lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [positive(1e-30, .999)]),
    ('special_erfcx', lambda x: mp.exp(x * x) * mp.erfc(x), [both(1e-3, 20), positive(1, 300)]),
    ('special_log_ndtr', lambda x: mp.log(mp.erfc(-x / mp.sqrt(2)) / 2), [both(1e-3, 11), -positive(1, 100)]),
    ('special_ndtr', lambda x: mp.erfc(-x / mp.sqrt(2)) / 2, [both(1e-3, 8)]),
    ('special_entr', lambda x: -x * mp.log(x), [positive(1e-6, 1e6)]),
    ('i0', lambda x: mp.besseli(0, x), [both(1e-3, 80)]),
    ('special_i0e', lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [both(1e-3, 700)]),
    ('special_i1', lambda x: mp.besseli(1, x), [both(1e-3, 80)]),
    ('special_i1e', lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), [both(1e-3, 700)]),
    ('special_modified_bessel_i0', lambda x: mp.besseli(0, x), [both(1e-3, 80)]),
    ('special_modified_bessel_i1', lambda x: mp.besseli(1, x), [both(1e-3, 80)]),
    ('special_modified_bessel_k0', lambda x: mp.besselk(0, x), [positive(1e-3, 80)]),
    ('special_modified_bessel_k1', lambda x: mp.besselk(1, x), [positive(1e-3, 80)]),
    ('special_scaled_modified_bessel_k0', lambda x: mp.besselk(0, x) * mp.exp(x), [positive(1e-3, 600)]),
    ('special_scaled_modified_bessel_k1', lambda x: mp.besselk(1, x) * mp.exp(x), [positive(1e-3, 600)]),
    ('special_bessel_j0', lambda x: mp.besselj(0, x), [both(1e-3, 8), positive(8, 1000)]),
    ('special_bessel_j1', lambda x: mp.besselj(1, x), [both(1e-3, 8), positive(8, 1000)]),
    ('special_bessel_y0', lambda x: mp.bessely(0, x), [positive(1e-3, 8), positive(8, 1000)]),
    ('special_bessel_y1', lambda x: mp.bessely(1, x), [positive(1e-3, 8), positive(8, 1000)]),
    ('special_spherical_bessel_j0', lambda x: mp.sin(x) / x, [both(1e-3, 100)]),
    ('special_airy_ai', mp.airyai, [random.uniform(-5, 2, COUNT), positive(2, 20), -positive(5, 60)]),
]
DEGREES = [(random.uniform(-1, 1, COUNT), whole(0, 14)), (random.uniform(-3, 3, COUNT), whole(0, 9))]
NEAR = positive(30, 1e5)
MOVING = np.random.default_rng(8)
SHAPES = np.exp(MOVING.uniform(np.log(.01), np.log(1e3), COUNT))
TWO = [
    ('special_zeta', mp.zeta, [(positive(1.01, 30), positive(.05, 50))]),
    ('polygamma', lambda x, n: mp.polygamma(int(n), x), [(both(.05, 20), whole(1, 7))]),
    ('igamma', lambda a, x: mp.gammainc(a, 0, x, regularized=True),
     [(positive(.01, 50), positive(.05, 50)), (NEAR, NEAR * (1 + random.normal(0, 2, COUNT) / np.sqrt(NEAR)))]),
    ('igammac', lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
     [(positive(.01, 50), positive(.05, 50)), (NEAR, NEAR * (1 + random.normal(0, 2, COUNT) / np.sqrt(NEAR)))]),
    ('_standard_gamma_grad', gamma_moves,
     [(SHAPES, MOVING.gamma(SHAPES) + 1e-30), (SHAPES, SHAPES * MOVING.uniform(.2, 3, COUNT))]),
    ('special_xlog1py', lambda x, y: x * mp.log1p(y), [(both(1e-3, 1e3), positive(1e-6, 1e6))]),
    ('special_hermite_polynomial_h', on_line(mp.hermite), DEGREES),
    ('special_hermite_polynomial_he',
     lambda x, n: mp.hermite(int(n), x / mp.sqrt(2)) * mp.mpf(2) ** (-mp.mpf(int(n)) / 2), DEGREES),
    ('special_laguerre_polynomial_l', lambda x, n: mp.laguerre(int(n), 0, x), DEGREES),
    ('special_legendre_polynomial_p', on_line(mp.legendre), DEGREES),
]
for kind, function in CHEBYSHEV.items():
    TWO.append(('special_chebyshev_polynomial_' + kind, function, DEGREES))
    TWO.append(('special_shifted_chebyshev_polynomial_' + kind, shifted(function), DEGREES))

APPROXIMATE = {'_standard_gamma_grad': mp.mpf(1e-12)}       # PyTorch's error is larger, and no bound for ours
EDGES = [0., -0., 1., -1., 2., -2., -2.5, .5, 100., -100., float('inf'), -float('inf'), float('nan')]
PAIRS = [(a, b) for a in (0., 1., 2., 3., -1., .5, float('inf'), float('nan'))
         for b in (0., 1., -1., 2., -.5, 7., 12., float('inf'), float('nan'))]


def beside(points):
    """Returns float64 numbers close to the points, which are zeros of a function."""
    return np.array([float(x) * (1 + way) for x in points for way in (1e-3, -1e-4, 1e-6, -1e-9)])


def log_size(x):
    return mp.log(abs(mp.gamma(x)))


def ones(count):
    """Returns places x < -2 where |gamma(x)| = 1.  There may be one in each half of an interval between integers."""
    out = []
    for n in range(2, 2 + count):
        for lo, hi in ((n + .001, n + .5), (n + .5, n + .999)):
            if log_size(-lo) * log_size(-hi) < 0:
                out.append(mp.findroot(lambda x: log_size(-x), (lo, hi), solver='anderson', tol=1e-50))
    return [-x for x in out]


# Rows "z operator x - value": float64 arguments, only for float64, with a tolerance of 1e-13.
ZEROS = [
    ('special_bessel_j0', lambda x: mp.besselj(0, x), beside([mp.besseljzero(0, 1), mp.besseljzero(0, 2)])),
    ('special_bessel_j1', lambda x: mp.besselj(1, x), beside([mp.besseljzero(1, 1), mp.besseljzero(1, 2)])),
    ('special_bessel_y0', lambda x: mp.bessely(0, x), np.append(beside([mp.besselyzero(0, 1)])[:2], [5e-324, 1e-310])),
    ('special_airy_ai', mp.airyai, -np.exp(np.random.default_rng(9).uniform(np.log(60), np.log(3e5), 24))),
    ('lgamma', log_size, np.concatenate([beside(ones(5)), np.random.default_rng(10).uniform(-20, -2, 24)])),
    ('special_scaled_modified_bessel_k0', lambda x: mp.besselk(0, x) * mp.exp(x), np.array([5e-324, 1e-310])),
]


def call(name, *args):
    args = [torch.tensor(x, dtype=torch.float64) for x in args]
    if name == 'polygamma':
        return polygamma(*args).item()
    return getattr(torch.ops.aten, name).default(*args).item()


def differs(name, args):
    """Returns True if PyTorch's result is wrong: finite numbers at poles of trigamma, NaN instead of the limit 0,
    numbers for NaN arguments, or a result for a polynomial whose degree is not finite."""
    if name == 'polygamma':
        return (args[1] == 1 and args[0] <= 0) or args[0] == float('inf')
    if name == 'special_zeta':
        return float('inf') in args or args[0] != args[0] or args[1] != args[1]
    if name == '_standard_gamma_grad':
        return True
    if name.startswith('igamma') and (args[0] != args[0] or args[1] != args[1]):
        return True
    return 'polynomial' in name and not abs(args[1]) < 1e9


def main():
    rows = []
    for name, function, samples in ONE + TWO:
        for sample in samples:
            columns = sample if isinstance(sample, tuple) else (sample,)
            for args in zip(*[np.float32(x).astype(float) for x in columns]):
                value = mp.re(function(*[mp.mpf(float(x)) for x in args]))
                error = abs((mp.mpf(call(name, *args)) - value) / value) if value else mp.mpf(0)
                error = min(error, APPROXIMATE.get(name, error))
                shown = [repr(float(x)) for x in args] + ['-'] * (2 - len(args))
                rows.append('~ %s %s %r %.1e' % (name, ' '.join(shown), float(value), float(error)))
        alone = not isinstance(samples[0], tuple)
        for args in [(x,) for x in EDGES] if alone else PAIRS:
            if name == 'polygamma' and not (args[1] >= 0 and args[1] < 10 and args[1] == int(args[1])):
                continue
            if not differs(name, args):
                shown = [repr(x) for x in args] + ['-'] * (2 - len(args))
                rows.append('= %s %s %r' % (name, ' '.join(shown), call(name, *args)))
    for name, function, sample in ZEROS:
        for x in sample:
            value = function(mp.mpf(float(x)))
            rows.append('z %s %r - %r' % (name, float(x), float(value)))
    with open(os.path.join(sys.argv[1], 'special.txt'), 'w') as f:
        f.writelines(row + '\n' for row in rows)


main()
