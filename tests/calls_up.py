#!/usr/bin/env python3
"""Counts the calls from a layer to a higher layer.

usage: python3 tests/calls_up.py [--list] [--most N]

A layer is a folder of src/.  The layers below it are those whose headers its own header includes.  A call is a name of
a function of the library, followed by a bracket, inside of a function.  A pointer to a function does not count.  With
--list, the script prints a line for each call, with the calling and the called function.  With --most, the script fails
if there are more than N calls.
"""
import argparse
import bisect
import collections
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src'))
import join

NOTES = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
HEAD = re.compile(r'^(?![ \t#}])[^;={}]*?\b(opdi?_\w+)\([^;{}]*\)\s*\{', re.M)
NAME = re.compile(r'\b(opdi?_\w+)\(')


# Folders without a header, and the layers to which they belong.
WITHIN = {'typed': 'kernels', 'process': 'ops'}


def layers():
    """Returns the layers in an order in which each follows the layers below it."""
    below = {}
    for path in join.paths():
        layer, _, name = path.partition('/')
        if name == layer + '.h':
            text = join.read(os.path.join(join.SRC, path)).decode('utf-8')
            below[layer] = [other for other, header in re.findall(r'^#include "\.\./(\w+)/(\w+)\.h"', text, re.M)
                            if other == header and other not in WITHIN]
    order = []
    while len(order) < len(below):
        order.append(next(layer for layer in below if layer not in order and set(below[layer]) <= set(order)))
    return order


def layer_of(path):
    """Returns the layer to which a file belongs."""
    layer = path.split('/')[0]
    return WITHIN.get(layer, layer)


def texts_of(known):
    """Returns the header's text, and [(path, begin and end of a piece of it)] of the files of the layers `known`."""
    text, found = '', []
    for path, _, piece in join.pieces():
        if layer_of(path) in known:
            found.append((path, len(text), len(text) + len(piece.decode('utf-8'))))
        text += piece.decode('utf-8')
    return text, found


def blank(match):
    """Returns blanks for a comment or a string, with the same number of characters and lines."""
    return re.sub(r'[^\n]', ' ', match.group())


def bodies_of(known):
    """Returns the header's text without comments, strings and directives, {function: path of its file}, and (function,
    path, begin and end of its body in the text) of each function in the layers `known`."""
    text, pieces = texts_of(known)
    code = NOTES.sub(blank, text)
    code = re.sub(r'^#(?:[^\n]*\\\n)*[^\n]*', blank, code, flags=re.M)
    where, bodies = {}, []
    for path, begin, after in pieces:
        at = begin
        for head in HEAD.finditer(code, begin, after):
            if head.start() < at:
                continue
            depth, at = 1, head.end()
            while depth and at < after:
                depth += {'{': 1, '}': -1}.get(code[at], 0)
                at += 1
            where.setdefault(head.group(1), path)
            bodies.append((head.group(1), path, head.end(), at))
    return code, where, bodies


def calls_of():
    """Returns (line, caller, its layer, called function, its layer) of each call, and {layer: number}."""
    known = layers()
    code, where, bodies = bodies_of(known)
    calls = []
    for caller, path, begin, after in bodies:
        for m in NAME.finditer(code, begin, after):
            if m.group(1) in where:
                calls.append((m.start(), caller, layer_of(path), m.group(1), layer_of(where[m.group(1)])))
    lines = [m.start() for m in re.finditer(r'\n', code)]
    return [(bisect.bisect(lines, c[0]) + 1,) + c[1:] for c in calls], {name: i for i, name in enumerate(known)}


def main():
    options = argparse.ArgumentParser(description='Counts the calls from a layer to a higher layer.')
    options.add_argument('--list', action='store_true', help='prints a line for each call')
    options.add_argument('--most', type=int, help='fails if there are more than MOST calls')
    options = options.parse_args()
    calls, number = calls_of()
    if len(calls) < 30000:
        sys.exit('only %d calls were found: is the text still what this reads?' % len(calls))
    up = [call for call in calls if number[call[4]] > number[call[2]]]
    if options.list:
        for (layer, other), group in sorted(collections.Counter((c[2], c[4]) for c in up).items(),
                                           key=lambda item: (number[item[0][0]], number[item[0][1]])):
            print('%s -> %s: %d' % (layer, other, group))
            for line, caller, _, called, _ in [c for c in up if (c[2], c[4]) == (layer, other)]:
                print('    %d: %s calls %s' % (line, caller, called))
    if options.most is None:
        print('%d of %d calls go up' % (len(up), len(calls)))
    elif len(up) > options.most:
        print('%d calls go into layers above, at most %d may (python3 tests/calls_up.py --list)' %
              (len(up), options.most))
        sys.exit(1)


if __name__ == '__main__':
    main()
