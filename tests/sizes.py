#!/usr/bin/env python3
"""Compares sizes with tests/golden/sizes.txt, to the byte.  Another size is an error, also a smaller one: so a commit that
changes a size also changes this file, and the history says which commit it was.

usage: python3 tests/sizes.py NAME COMPILER SIZE    compares a size; COMPILER is a command, or - if none matters
       python3 tests/sizes.py --write               measures again, and writes the sizes of the compilers that are here
       python3 tests/sizes.py --list                prints the rows

The scripts that measure (lean.sh and packages.sh) call this script.  Sizes depend on the version of the compiler.
If the file has no row for a version, the script prints "SKIP: why".  If the environment variable OPD_SIZES is "write",
the script writes the size instead of comparing it.
"""
import argparse
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FILE = os.path.join(ROOT, 'tests', 'golden', 'sizes.txt')
WRITE = 'python3 tests/sizes.py --write'
# The checks that measure: (script, name of the check).
MEASURES = (('tests/lean.sh', 'first_program'), ('tests/lean.sh', 'four_digits'), ('tests/packages.sh', 'shared'))


def version_of(compiler):
    """Returns the first line that a compiler prints about its version."""
    if compiler == '-':
        return 'any'
    try:
        return subprocess.run([compiler, '--version'], stdout=subprocess.PIPE).stdout.decode('utf-8', 'replace').split('\n')[0].strip()
    except FileNotFoundError:
        sys.exit('there is no compiler %s' % compiler)


def rows():
    """Returns the comment lines of the file, and {(name, version): size}."""
    with open(FILE, encoding='utf-8') as f:
        lines = f.read().splitlines()
    found = {}
    for line in (line for line in lines if line and not line.startswith('#')):
        name, version, size = (part.strip() for part in line.split('|'))
        found[name, version] = int(size)
    return [line for line in lines if line.startswith('#')], found


def write(name, version, size):
    head, found = rows()
    found[name, version] = size
    lines = head + ['%-14s | %-62s | %7d' % (key + (value,)) for key, value in sorted(found.items())]
    with open(FILE, 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


def compare(name, compiler, size):
    """Prints what is wrong with a size."""
    version = version_of(compiler)
    if os.environ.get('OPD_SIZES') == 'write':
        write(name, version, size)
        return
    _, found = rows()
    if (name, version) not in found:
        print('SKIP: tests/golden/sizes.txt has no size of %s for "%s". To add it: %s' % (name, version, WRITE))
    elif found[name, version] != size:
        print('%s has the size %d with "%s", and tests/golden/sizes.txt says %d. If your change is worth the %+d, run %s, and '
              'commit the file with the change' % (name, size, version, found[name, version], size - found[name, version], WRITE))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('name', nargs='?', metavar='NAME')
    parser.add_argument('compiler', nargs='?', metavar='COMPILER')
    parser.add_argument('size', nargs='?', type=int, metavar='SIZE')
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--list', action='store_true')
    o = parser.parse_args()
    if o.list:
        for (name, version), size in sorted(rows()[1].items()):
            print('%s, %s: %d' % (name, version, size))
    elif o.write:
        for script, check in MEASURES:
            print('measuring: sh %s %s' % (script, check))
            done = subprocess.run(['sh', os.path.join(ROOT, script), check], env=dict(os.environ, OPD_SIZES='write'),
                                  stdout=subprocess.PIPE)
            if done.returncode:
                sys.exit('sh %s %s fails:\n%s' % (script, check, done.stdout.decode('utf-8', 'replace')))
        subprocess.run(['git', '-C', ROOT, 'diff', '--stat', '--', FILE])
    elif o.size is not None:
        compare(o.name, o.compiler, o.size)
    else:
        parser.error('give NAME, COMPILER and SIZE, or --write or --list')


if __name__ == '__main__':
    main()
