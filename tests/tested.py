#!/usr/bin/env python3
"""Checks that a test names each public function.

usage: python3 tests/tested.py

The public functions are the declarations of src/api.  A function counts as named if its name stands in a file of tests/,
or in a macro of src/api whose name stands there.
"""
import argparse
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FUNCTION = re.compile(r'^OPD_(?:API|NEW|INLINE)\b[^;{}=]*?\b(opd_\w+)\(', re.M)
MACRO = re.compile(r'^#[ \t]*define[ \t]+(\w+)((?:[^\n\\]|\\\n|\\.)*)', re.M)
# What only macros and printed functions call: they paste the name, or refuse something.
BY_MACROS = {'opd_return_list', 'opd_return_str'}


def texts(*patterns):
    """Returns the text of the files that match the patterns."""
    paths = [path for pattern in patterns for path in sorted(glob.glob(os.path.join(ROOT, pattern)))]
    return '\n'.join(open(path, encoding='utf-8', errors='replace').read() for path in paths)


def main():
    argparse.ArgumentParser(description='Checks that a test names each public function.').parse_args()
    api = texts('src/api/*.h')
    functions = set(FUNCTION.findall(api))
    if len(functions) < 600:
        sys.exit('only %d public functions were found: is the text still what this reads?' % len(functions))
    used = set(re.findall(r'\b\w+\b', texts('tests/*.h', 'tests/*.sh', 'tests/*/*.[ch]', 'tests/*/*.cpp')))
    macros = {}
    for name, body in MACRO.findall(api):
        macros.setdefault(name, set()).update(re.findall(r'\b(?:opd|OPDI?)_\w+', body))
    todo = [name for name in macros if name in used]
    while todo:
        for name in macros[todo.pop()] - used:
            used.add(name)
            if name in macros:
                todo.append(name)
    missing = sorted(functions - used - BY_MACROS)
    print('\n'.join('%s: no test names this function' % name for name in missing), end='\n' if missing else '')
    sys.exit(1 if missing else 0)


if __name__ == '__main__':
    main()
