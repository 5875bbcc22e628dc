#!/usr/bin/env python3
"""Prints the tables of the room >>op:special: polynomials that are fitted at the zeros of Chebyshev polynomials.

usage: make_special_tables.py
"""
from fractions import Fraction

import mpmath as mp

mp.mp.dps = 45
WIDTH = 120


def chebyshev(f, count):
    """Returns the first `count` Chebyshev coefficients of the polynomial that equals f at the 50 zeros of the
    Chebyshev polynomial of degree 50."""
    nodes = 50
    values = [f(mp.cos(mp.pi * (k + mp.mpf(1) / 2) / nodes)) for k in range(nodes)]
    out = []
    for j in range(count):
        total = mp.fsum(values[k] * mp.cos(mp.pi * j * (k + mp.mpf(1) / 2) / nodes) for k in range(nodes))
        out.append(total * (1 if j == 0 else 2) / nodes)
    return out


def powers(terms):
    """Converts Chebyshev coefficients to coefficients of powers of t."""
    last, this = [mp.mpf(1)], [mp.mpf(0), mp.mpf(1)]
    out = [mp.mpf(0)] * len(terms)
    for j, term in enumerate(terms):
        poly = last if j == 0 else this
        for k, x in enumerate(poly):
            out[k] += term * x
        if j > 0:
            new = [mp.mpf(0)] + [2 * x for x in this]
            for k, x in enumerate(last):
                new[k] -= x
            last, this = this, new
    return out


def fit(name, f, digits=17, single=False):
    """Prints the table for f on [-1, 1], with as many coefficients as double, or float if single is set, needs."""
    terms = chebyshev(f, 50)
    smallest = min(abs(f(mp.mpf(k) / 20)) for k in range(-20, 21))
    size = max(abs(x) for x in terms)
    goal = (smallest if single else max(smallest, size * mp.mpf(10) ** -2)) * mp.mpf(10) ** -digits
    count = max(j for j, x in enumerate(terms) if abs(x) > goal) + 1
    table = powers(terms[:count])
    spread = mp.fsum(abs(x) for x in table) / size
    show(name, table, 'spread %.1f smallest %.2g' % (spread, smallest), single)


def show(name, table, note='', single=False):
    lines, line = [], '   '
    for x in table:
        text = ' %.9gf,' % float(x) if single else ' %s,' % repr(float(x))
        if len(line) + len(text) > WIDTH:
            lines.append(line)
            line = '   '
        line += text
    print('static const %s opdi_%s[%d] = {' % ('float' if single else 'double', name, len(table)))
    print('\n'.join(lines + [line.rstrip(',')]) + '};')
    if note:
        import sys
        sys.stderr.write('%s %d %s\n' % (name, len(table), note))


def between(lo, hi):
    lo, hi = mp.mpf(lo), mp.mpf(hi)
    return lambda t: (hi - lo) / 2 * t + (hi + lo) / 2


# Intervals around the first places x < -2 where |gamma(x)| = 1.  The table gamma_ones has each place as a sum of two
# doubles.
GAMMA_ONES = [(-2.47, -2.45), (-2.76, -2.73), (-3.15, -3.13), (-3.956, -3.955), (-4.04, -4.039), (-4.992, -4.991),
              (-5.0083, -5.0081), (-5.99862, -5.9986), (-6.00139, -6.00137), (-6.99981, -6.9998)]


def gamma_tables():
    show('stirling', [mp.bernoulli(2 * k) / (2 * k * (2 * k - 1)) for k in range(1, 10)])
    show('digamma_series', [mp.bernoulli(2 * k) / (2 * k) for k in range(1, 10)])
    show('zeta_series', [mp.bernoulli(2 * k) / mp.factorial(2 * k) for k in range(1, 13)])
    ones = [mp.findroot(lambda x: mp.log(abs(mp.gamma(x))), start, solver='anderson', tol=1e-60)
            for start in GAMMA_ONES]
    show('gamma_ones', [part for x in ones for part in (float(x), x - float(x))])
    fit('gamma_near_two', lambda t: mp.loggamma(2 + t / 2) / (t / 2) if t else mp.psi(0, 2))


def inverse_error(w):
    """Returns erfinv(y) / y for w = -log(1 - y^2)."""
    if w == 0:
        return mp.sqrt(mp.pi) / 2
    with mp.workdps(60 + int(w)):
        y = mp.sqrt(-mp.expm1(-w))
        rest = mp.exp(-w) / (1 + y)                       # 1 - y
        if w < 20:
            x = mp.erfinv(y)
        else:
            x = mp.sqrt(w - mp.log(mp.pi * w) / 2)
        for _ in range(8):
            error = mp.erfc(x) - rest
            x += error / (2 / mp.sqrt(mp.pi) * mp.exp(-x * x) - x * error)
        return x / y


def scaled_error(t):
    """Returns (1 + 2 x) exp(x^2) erfc(x) for t = (x - 3.75) / (x + 3.75)."""
    if t == 1:
        return 2 / mp.sqrt(mp.pi)
    x = mp.mpf('3.75') * (1 + t) / (1 - t)
    if x > 2000:
        return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * (1 - 1 / (2 * x * x) + 3 / (4 * x ** 4))
    return (1 + 2 * x) * mp.erfc(x) * mp.exp(x * x)


def error_tables():
    fit('erf_series', lambda t: (mp.erf(mp.sqrt((t + 1) / 2)) / mp.sqrt((t + 1) / 2) if t > -1 else
                                 2 / mp.sqrt(mp.pi)) - 1)
    fit('erfcx_scaled', scaled_error)
    fit('erfinv_middle', lambda t: inverse_error(between(0, '6.25')(t)))
    fit('erfinv_tail', lambda t: inverse_error(between('2.5', 5)(t) ** 2))
    fit('erfinv_far', lambda t: inverse_error(between(5, '27.5')(t) ** 2))
    fit('erfinv_near', lambda t: inverse_error(between(0, '6.25')(t)), 8.3, True)
    fit('erfinv_end', lambda t: inverse_error(between('6.25', 16)(t)), 8.3, True)


def bessel_scaled(order, x):
    return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)


def modified_tables():
    show('i0_series', [mp.mpf(16) ** k / mp.factorial(k) ** 2 for k in range(25)])
    show('i1_series', [mp.mpf(16) ** k / mp.factorial(k) / mp.factorial(k + 1) for k in range(25)])

    def large(f, limit, edge):
        return lambda t: limit if t < mp.mpf(10) ** -30 - 1 else f(2 * mp.mpf(edge) / (1 + t))
    fit('i0_large', large(lambda x: bessel_scaled(0, x), 1 / mp.sqrt(2 * mp.pi), 8))
    fit('i1_large', large(lambda x: bessel_scaled(1, x), 1 / mp.sqrt(2 * mp.pi), 8))
    fit('i1e_near', lambda t: mp.mpf(1) / 2 if t <= -1 else mp.besseli(1, between(0, 8)(t)) *
        mp.exp(-between(0, 8)(t)) / between(0, 8)(t) * (1 + between(0, 8)(t)), 8.3, True)
    fit('i1e_end', large(lambda x: bessel_scaled(1, x), 1 / mp.sqrt(2 * mp.pi), 8), 8.3, True)
    fit('k0_small', lambda t: mp.besselk(0, mp.sqrt(2 * (t + 1))) + mp.log(mp.sqrt(2 * (t + 1)) / 2) *
        mp.besseli(0, mp.sqrt(2 * (t + 1))) if t > -1 else -mp.euler)
    fit('k1_small', lambda t: (mp.besselk(1, mp.sqrt(2 * (t + 1))) - mp.log(mp.sqrt(2 * (t + 1)) / 2) *
                               mp.besseli(1, mp.sqrt(2 * (t + 1)))) * mp.sqrt(2 * (t + 1)) if t > -1 else mp.mpf(1))
    fit('k0_large', large(lambda x: mp.besselk(0, x) * mp.exp(x) * mp.sqrt(x), mp.sqrt(mp.pi / 2), 2))
    fit('k1_large', large(lambda x: mp.besselk(1, x) * mp.exp(x) * mp.sqrt(x), mp.sqrt(mp.pi / 2), 2))


def split_phase(order, x):
    """P and Q of J = sqrt(2 / (pi x)) (P cos - Q sin)(x - (2 order + 1) pi / 4); Y has sin and cos."""
    turn = x - (2 * order + 1) * mp.pi / 4
    j, y = mp.besselj(order, x), mp.bessely(order, x)
    scale = mp.sqrt(mp.pi * x / 2)
    return scale * (j * mp.cos(turn) + y * mp.sin(turn)), scale * (y * mp.cos(turn) - j * mp.sin(turn))


def bessel_tables():
    zero = [[mp.besseljzero(order, k) for k in (1, 2)] for order in (0, 1)]
    for order in (0, 1):
        a, b = zero[order]
        def rest(t, order=order, a=a, b=b):
            x = mp.sqrt(32 * (t + 1))
            if x == 0:
                return (mp.mpf(1) if order == 0 else mp.mpf(1) / 2) / (a * b) ** 2
            return mp.besselj(order, x) / (x if order else 1) / ((x * x - a * a) * (x * x - b * b))
        fit('j%d_small' % order, rest)
        print('/* %s %s */' % (repr(float(a * a)), repr(float(b * b))))
        def other(t, order=order):
            x = mp.sqrt(32 * (t + 1))
            x = x if x else mp.mpf(10) ** -25
            if order == 0:
                zero = mp.besselyzero(0, 1)
                return (mp.bessely(0, x) - 2 / mp.pi * mp.log(x / zero) * mp.besselj(0, x)) / (x * x - zero * zero)
            return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x
        fit('y%d_small' % order, other)
        def phase(t, which, order=order):
            x = 8 / mp.sqrt((t + 1) / 2) if t > -1 + mp.mpf(10) ** -12 else None
            if x is None:
                return [mp.mpf(1), mp.mpf(4 * order * order - 1) / 64][which]
            p, q = split_phase(order, x)
            return p if which == 0 else q * x / 8
        fit('p%d_large' % order, lambda t: phase(t, 0))
        fit('q%d_large' % order, lambda t: phase(t, 1))


def airy_tables():
    edge = mp.mpf(2) / 3 * mp.mpf(2) ** mp.mpf('1.5')

    def at(t):
        zeta = 2 * edge / (1 + t)
        return zeta, (zeta * 3 / 2) ** (mp.mpf(2) / 3)

    def positive(t):
        if t < mp.mpf(10) ** -10 - 1:
            return mp.mpf(1)
        zeta, x = at(t)
        return mp.airyai(x) * 2 * mp.sqrt(mp.pi) * x ** mp.mpf('0.25') * mp.exp(zeta)
    fit('airy_large', positive)
    fit('airy_middle', lambda t: mp.airyai(between('-1.5', 2)(t)))
    fit('airy_left', lambda t: mp.airyai(between(-5, '-1.5')(t)))
    far = mp.mpf(2) / 3 * mp.mpf(5) ** mp.mpf('1.5')

    def negative(t, which):
        if t < mp.mpf(10) ** -10 - 1:
            return [mp.mpf(1), mp.mpf(5) / 72][which]
        zeta = far / mp.sqrt((1 + t) / 2)
        x = (zeta * 3 / 2) ** (mp.mpf(2) / 3)
        turn = zeta - mp.pi / 4
        a, b = [f(-x) * mp.sqrt(mp.pi) * x ** mp.mpf('0.25') for f in (mp.airyai, mp.airybi)]
        if which == 0:
            return a * mp.cos(turn) - b * mp.sin(turn)
        return (a * mp.sin(turn) + b * mp.cos(turn)) * zeta
    fit('airy_cosine', lambda t: negative(t, 0))
    fit('airy_sine', lambda t: negative(t, 1))


def incomplete_gamma_tables():
    """Prints Taylor coefficients in eta of c_k in the expansion of Q(a, x) for large a (DLMF 8.12.7 to 8.12.10)."""
    size = 44
    a = [Fraction(0), Fraction(1)]                        # mu(eta), of mu mu' = eta (1 + mu)
    for n in range(2, size):
        total = a[n - 1] - sum(a[j] * a[n + 1 - j] * (n + 1 - j) for j in range(2, n))
        # coefficient of eta^n in mu mu': sum_j a_j (n + 1 - j) a_(n + 1 - j) = a_(n - 1) [+ 1 at n = 1]
        a.append(total / (n + 1))
    inverse = [Fraction(1)]                               # eta / mu
    for n in range(1, size - 1):
        inverse.append(-sum(a[j + 1] * inverse[n - j] for j in range(1, n + 1)))
    stirling = [Fraction(1), Fraction(1, 12), Fraction(1, 288), Fraction(-139, 51840), Fraction(-571, 2488320),
                Fraction(163879, 209018880), Fraction(5246819, 75246796800)]
    c = inverse[1:]                                       # c_0 = 1 / mu - 1 / eta
    for k, count in enumerate((22, 19, 16, 13, 10, 7, 4)):
        if k > 0:
            sign = (-1) ** k
            d = [(j + 1) * c[j + 1] for j in range(len(c) - 1)]
            assert d[0] + sign * stirling[k] * inverse[0] == 0
            c = [d[j + 1] + sign * stirling[k] * inverse[j + 1] for j in range(len(d) - 1)]
        show('gamma_large_%d' % k, [mp.mpf(x.numerator) / x.denominator for x in c[:count]])


if __name__ == '__main__':
    gamma_tables()
    error_tables()
    modified_tables()
    bessel_tables()
    airy_tables()
    incomplete_gamma_tables()
