#!/usr/bin/env python3
"""Finds files of a layer that use one another in circles.

usage: python3 tests/knots.py [--list] [--most N] [--files N] [LAYER...]

A file uses another file of its layer if a function of the first names a function of the second.  A circle is a set of
files of which each uses each other, directly or through files of the set.  To understand or change one of its files,
you have to know all of them.  Without LAYER, all layers are examined.  With --list, the script prints which functions
close the circles.  With --most, the script fails if a circle has more than N files, with --files if all circles together
have more than N files.
"""
import argparse
import collections
import re
import sys

import calls_up

NAME = re.compile(r'\bopdi?_\w+')


def uses_of(layers):
    """Returns {path: {path of a file of the same layer that it uses: {(caller, called function)}}}."""
    code, where, bodies = calls_up.bodies_of(layers)
    uses = collections.defaultdict(lambda: collections.defaultdict(set))
    for caller, path, begin, after in bodies:
        for name in set(NAME.findall(code, begin, after)):
            other = where.get(name, path)
            if other != path and path.endswith('.c') and other.endswith('.c') and (
                    calls_up.layer_of(other) == calls_up.layer_of(path)):
                uses[path][other].add((caller, name))
    return uses


def reached(uses, path):
    """Returns the files that a file uses, directly or through other files."""
    found, todo = set(), [path]
    while todo:
        for other in uses.get(todo.pop(), {}):
            if other not in found:
                found.add(other)
                todo.append(other)
    return found


def circles_of(uses):
    """Returns the circles, each as a sorted list of paths, the largest first."""
    reach = {path: reached(uses, path) for path in list(uses)}
    circles = {tuple(sorted(other for other in reach[path] if path in reach.get(other, ())))
               for path in reach if path in reach[path]}
    return sorted(circles, key=lambda circle: (-len(circle), circle))


def main():
    options = argparse.ArgumentParser(description='Finds files of a layer that use one another in circles.')
    options.add_argument('--list', action='store_true', help='prints which functions close the circles')
    options.add_argument('--most', type=int, help='fails if a circle has more than MOST files')
    options.add_argument('--files', type=int, help='fails if all circles together have more than FILES files')
    options.add_argument('layer', nargs='*', help='a folder of src/')
    options = options.parse_args()
    known = calls_up.layers()
    for layer in options.layer:
        if layer not in known:
            sys.exit('%s is not a layer: the layers are %s' % (layer, ', '.join(known)))
    uses = uses_of(options.layer or known)
    if len(uses) < 200 and not options.layer:
        sys.exit('only %d files use others: is the text still what this reads?' % len(uses))
    circles = circles_of(uses)
    wrong = [circle for circle in circles if options.most is not None and len(circle) > options.most]
    files = sum(len(circle) for circle in circles)
    too_many = options.files is not None and files > options.files
    if options.list or wrong or too_many or options.most is None:
        for circle in circles if options.list or too_many or not wrong else wrong:
            print('%d files: %s' % (len(circle), ' '.join(circle)))
            for path in circle if options.list or wrong else ():
                for other in circle:
                    if uses[path].get(other):
                        print('    %s uses %s: %s' % (path, other, ', '.join(
                            '%s (%s)' % pair[::-1] for pair in sorted(uses[path][other])[:6])))
    if wrong:
        sys.exit('a circle has more than %d files' % options.most)
    if too_many:
        sys.exit('%d files are in circles, at most %d may be' % (files, options.files))


if __name__ == '__main__':
    main()
