#!/usr/bin/env python3
"""Makes examples/data/digits.txt from scikit-learn's digits.csv.gz, and checks it.

    apt-get download python3-sklearn && dpkg-deb -x python3-sklearn_*.deb sk
    python3 tests/golden/make_digits.py sk/usr/lib/python3/dist-packages/sklearn/datasets/data/digits.csv.gz
    python3 tests/golden/make_digits.py --check          # compares the file with its own checksums

With a csv, writes the file, reads it again, and compares each number with the csv.
"""
import gzip
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PATH = os.path.join(HERE, '..', '..', 'examples', 'data', 'digits.txt')
CHARS = '0123456789abcdefg'                     # the character of each value of a pixel, 0 to 16

HEADER = """\
# Optical Recognition of Handwritten Digits: 1797 images of 8 x 8 pixels with values 0 to 16, and the digit each shows.
# E. Alpaydin and C. Kaynak, UCI Machine Learning Repository, 1998, https://doi.org/10.24432/C50P49, CC BY 4.0;
# the repository's test set, by way of scikit-learn's digits.csv.gz (BSD 3-clause).
# A line: 64 pixels row by row, one character each (0 to 9, then a to g for 10 to 16), a space, the label.
# checksum: lines %d, sum of pixels %d, sum of labels %d, FNV-1a 64 of all data lines with their newlines %016x
"""


def fnv1a(data):
    h = 0xcbf29ce484222325
    for b in data:
        h = ((h ^ b) * 0x100000001b3) & 0xffffffffffffffff
    return h


def read_csv(path):
    with gzip.open(path, 'rt') as f:
        rows = [[int(float(x)) for x in line.split(',')] for line in f if line.strip()]
    assert len(rows) == 1797 and all(len(r) == 65 for r in rows)
    assert all(0 <= x <= 16 for r in rows for x in r[:64]) and all(0 <= r[64] <= 9 for r in rows)
    return rows


def render(rows):
    lines = ''.join(''.join(CHARS[x] for x in r[:64]) + ' %d\n' % r[64] for r in rows)
    sums = (len(rows), sum(sum(r[:64]) for r in rows), sum(r[64] for r in rows), fnv1a(lines.encode()))
    return HEADER % sums + lines


def parse(text):
    lines = [l for l in text.splitlines() if l and not l.startswith('#')]
    assert all(len(l) == 66 and l[64] == ' ' for l in lines)
    return [[CHARS.index(c) for c in l[:64]] + [int(l[65])] for l in lines]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if sys.argv[1] != '--check':
        rows = read_csv(sys.argv[1])
        with open(PATH, 'w', newline='\n') as f:
            f.write(render(rows))
        assert parse(open(PATH).read()) == rows
    text = open(PATH).read()
    rows = parse(text)
    if render(rows) != text:
        sys.exit('digits.txt does not have the checksums its header names')
    print('digits.txt: %d lines, right' % len(rows))


main()
