#!/usr/bin/env python3
"""Writes sym_numbers.txt: Python's results for the functions with which exported programs compute sizes.

A row is the function's name and its results for all values in VALUES, or for all pairs of them (the second argument
varies fastest).  A result is i, f or b and the number (floats as C's %a), or e: an exception, a complex number, or an
int of more than 64 bits.  Needs only Python.  test_programs.c has the same VALUES.
"""
import builtins
import math
import operator
import os

NAN, INF = float('nan'), float('inf')
VALUES = [0, 1, -1, 2, -3, 7, 62, 63, 64, 2**53 + 1, 2**62, -2**63, 2**63 - 1, False, True,
          0.0, -0.0, 0.5, 1.5, -2.0, -7.25, 2.0**53, 2.0**63, -2.0**63, 9.3e18, 1e300, -1e-310, INF, -INF, NAN]


def sym(choose):
    """Returns torch.sym_max or torch.sym_min: choose is max or min."""
    def call(x, y):
        best = choose(x, y)
        return float(best) if isinstance(x, float) or isinstance(y, float) else best
    return call


def power(x, y):
    if not isinstance(x, float) and not isinstance(y, float) and abs(x) > 1 and y > 200:
        raise OverflowError
    return x ** y


def shifted(x, y):
    if not isinstance(x, float) and not isinstance(y, float) and x and y > 200:
        raise OverflowError
    return x << y


TWO = [(name, getattr(operator, name)) for name in ('add', 'sub', 'mul', 'floordiv', 'mod')]
TWO += [('pow', power), ('lshift', shifted)]
TWO += [(name, getattr(operator, name)) for name in ('rshift', 'and_', 'or_', 'truediv', 'eq', 'ne', 'lt', 'le', 'gt', 'ge')]
TWO += [('sym_max', sym(builtins.max)), ('sym_min', sym(builtins.min))]
ONE = [('neg', operator.neg), ('pos', operator.pos), ('trunc', math.trunc), ('sym_not', operator.not_), ('sym_int', int),
       ('sym_float', float), ('sym_sqrt', math.sqrt)]


def result(call, *args):
    try:
        value = call(*args)
    except (ArithmeticError, ValueError, TypeError):
        return 'e'
    if isinstance(value, bool):
        return 'b%d' % value
    if isinstance(value, int):
        return 'i%d' % value if -2**63 <= value < 2**63 else 'e'
    if isinstance(value, float):
        return 'fnan' if value != value else 'f' + ('%sinf' % ('-' if value < 0 else '') if math.isinf(value) else value.hex())
    return 'e'


def main():
    rows = [' '.join([name] + [result(call, x, y) for x in VALUES for y in VALUES]) for name, call in TWO]
    rows += [' '.join([name] + [result(call, x) for x in VALUES]) for name, call in ONE]
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'sym_numbers.txt'), 'w') as f:
        f.write('\n'.join(rows) + '\n')


main()
