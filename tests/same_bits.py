#!/usr/bin/env python3
"""Compares two lists of the hashes that OPD_TEST_LIST=1 tests/walks/test_same_bits.c prints, of two machines or two C
libraries in the mode of same bits.

usage: python3 tests/same_bits.py LIST1 LIST2            fails if an operator differs that the file
                                                         tests/golden/outside_same_bits.txt does not name for its dtype
       python3 tests/same_bits.py LIST1 LIST2 --write    writes the operators that differ to that file, and their number
                                                         and names to the guide (examples/guide/same-bits.md)
       python3 tests/same_bits.py --check                compares the guide with that file

The lists may have only a part of the operators (CHECK_PART).  With --write, they must have all.
"""
import argparse
import os
import re
import sys
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, 'tests', 'golden', 'outside_same_bits.txt')
GUIDE = os.path.join(ROOT, 'examples', 'guide', 'same-bits.md')
BEGIN = '`gamma`, `lgamma` and `log10`.\n'               # the line of the guide before the section
DTYPES = ('float32', 'float64', 'bfloat16', 'complex64', 'complex128')      # calls 0 to 14 of the test have them in turn
FAILED = '0000000000000001'                         # the hash of a call that fails
HEAD = '''# Operators whose results or gradients depend on the C library in the mode of same bits, and the dtypes: sh
# tests/cross.sh same-bits.  python3 tests/same_bits.py LIST1 LIST2 --write writes this file.  "operators:" has the
# number of all operators, and for each dtype the number of those that take it.
'''


def read_list(path):
    """Returns {(operator, number of sizes, number of the case): hash}."""
    found = {}
    with open(path, encoding='utf-8', errors='replace') as f:
        for line in f:
            match = re.fullmatch(r'= (\S+) (\d+) (\d+) ([0-9a-f]{16})\n', line)
            if match:
                found[match[1], int(match[2]), int(match[3])] = match[4]
    if not found:
        sys.exit('%s has no hashes' % path)
    return found


def differences(one, two):
    """Returns {operator: the set of dtypes with which a call has another hash}."""
    wrong = {}
    for call in sorted(set(one) & set(two)):
        if one[call] != two[call]:
            wrong.setdefault(call[0], set()).add(DTYPES[call[1] % len(DTYPES)])
    return wrong


def takers(calls, dtype):
    """Returns the operators that a call with this dtype does not fail."""
    return {call[0] for call in calls if DTYPES[call[1] % len(DTYPES)] == dtype and calls[call] != FAILED}


def read_outside():
    """Returns {dtype: number of operators that take it}, and {operator: set of dtypes} of the file."""
    total, outside = {}, {}
    with open(FILE, encoding='utf-8') as f:
        for line in f:
            if line.startswith('operators: '):
                words = line.split()
                total = dict(zip(words[2::2], map(int, words[3::2])))
            elif line.strip() and not line.startswith('#'):
                name, dtypes = line.split()
                outside[name] = set(dtypes.split(','))
    return total, outside


def section():
    """Returns the section of the guide about these operators."""
    total, outside = read_outside()
    rows = ['| dtype | operators that take it, and whose results and gradients have the same bits |', '|---|---|']
    for dtype in DTYPES:
        every = total[dtype]
        same = every - sum(1 for dtypes in outside.values() if dtype in dtypes)
        of = 'all %s' % format(every, ',') if same == every else '%s of %s' % (format(same, ','), format(every, ','))
        rows.append('| %s | %s |' % (dtype, of))
    names = ', '.join('`%s`' % re.sub('^aten::', '', name) for name in sorted(outside))
    others = ['', 'The others:', ''] + textwrap.wrap(names + '.', 118) if outside else []
    return '\n'.join([''] + textwrap.wrap(
        'A test calls each operator with the C libraries glibc and musl, and with functions such as `exp` and `pow` that '
        'return results which are larger by a thousandth, and compares (`sh tests/cross.sh same-bits`):', 120) +
        [''] + rows + others + ['', ''])


def guide(write):
    """Writes the section into the guide, or returns what is wrong there."""
    with open(GUIDE, encoding='utf-8') as f:
        text = f.read()
    begin = text.index(BEGIN) + len(BEGIN)
    end = text.index('\n## ', begin) + 1
    if write:
        with open(GUIDE, 'w', encoding='utf-8') as f:
            f.write(text[:begin] + section() + text[end:])
    elif text[begin:end] != section():
        return 'examples/guide/same-bits.md does not have the operators of tests/golden/outside_same_bits.txt'
    return ''


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('lists', nargs='*', metavar='LIST')
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--check', action='store_true')
    args = parser.parse_args()
    if args.check:
        sys.exit(guide(False) or 0)
    if len(args.lists) != 2:
        parser.error('two lists are needed')
    one, two = (read_list(path) for path in args.lists)
    wrong = differences(one, two)
    if args.write:
        with open(FILE, 'w', encoding='utf-8') as f:
            f.write(HEAD + 'operators: %d %s\n' % (len({call[0] for call in one}), ' '.join(
                '%s %d' % (dtype, len(takers(one, dtype))) for dtype in DTYPES)))
            for name in sorted(wrong):
                f.write('%s %s\n' % (name, ','.join(sorted(wrong[name]))))
        sys.exit(guide(True) or 0)
    outside = read_outside()[1]
    bad = [(name, dtype) for name in sorted(wrong) for dtype in sorted(wrong[name] - outside.get(name, set()))]
    for name, dtype in bad:
        print('%s of %s gives other bits' % (name, dtype))
    both = set(one) & set(two)
    print('%d calls of %d operators, %d operators differ' % (len(both), len({call[0] for call in both}), len(wrong)))
    sys.exit(1 if bad or not both else 0)


if __name__ == '__main__':
    main()
