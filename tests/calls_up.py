#!/usr/bin/env python3
"""Counts the calls of opdispatch.h's rooms into rooms further down: in the implementation, up to the typed functions.

usage: python3 tests/calls_up.py [--list] [--most N]

A room's banner is `//  >>name` below a line of dashes.  A call is the name of a function that the header defines, with a
bracket behind it, inside of a function; a pointer to a function is none.  With --list: one line for each call, with what
calls and what is called, and each one's room.  With --most: says so, and ends with status 1, when there are more.
"""
import argparse
import bisect
import collections
import os
import re
import sys

HEADER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'opdispatch.h')
NOTES = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/', re.S)
HEAD = re.compile(r'^(?![ \t#}])[^;={}]*?\b(opdi?_\w+)\([^;{}]*\)\s*\{', re.M)
NAME = re.compile(r'\b(opdi?_\w+)\(')


def rooms_of(text):
    """[(name, where it begins)] of the rooms to count in, and where the last of them ends."""
    banners = [(m.group(1), m.start()) for m in re.finditer(r'^//-+\n//  >>(\S+)', text, re.M)]
    first = [name for name, _ in banners].index('platform')
    last = [name for name, _ in banners].index('wrappers')
    return banners[first:last], banners[last][1]


def blank(match):
    """What takes a comment's or a text's place: as many characters and lines."""
    return re.sub(r'[^\n]', ' ', match.group())


def calls_of(text):
    """(line, caller, its room, called, its room) of each call, and the rooms' numbers."""
    rooms, end = rooms_of(text)
    number = {name: i for i, (name, _) in enumerate(rooms)}
    code = NOTES.sub(blank, text)
    code = re.sub(r'^#(?:[^\n]*\\\n)*[^\n]*', blank, code, flags=re.M)
    where, bodies, calls = {}, [], []
    at = 0
    for (name, begin), (_, after) in zip(rooms, rooms[1:] + [('', end)]):
        for head in HEAD.finditer(code, begin, after):
            if head.start() < at:
                continue
            depth, at = 1, head.end()
            while depth and at < after:
                depth += {'{': 1, '}': -1}.get(code[at], 0)
                at += 1
            where.setdefault(head.group(1), name)
            bodies.append((head.group(1), name, head.end(), at))
    for caller, room, begin, after in bodies:
        for m in NAME.finditer(code, begin, after):
            if m.group(1) in where:
                calls.append((m.start(), caller, room, m.group(1), where[m.group(1)]))
    lines = [m.start() for m in re.finditer(r'\n', text)]
    return [(bisect.bisect(lines, c[0]) + 1,) + c[1:] for c in calls], number


def main():
    options = argparse.ArgumentParser(description='Counts calls into rooms further down.')
    options.add_argument('--list', action='store_true', help='one line for each')
    options.add_argument('--most', type=int, help='how many there may be')
    options = options.parse_args()
    with open(HEADER, encoding='utf-8') as file:
        calls, number = calls_of(file.read())
    if len(calls) < 30000:
        sys.exit('only %d calls were found: is the text of the rooms still what this reads?' % len(calls))
    up = [call for call in calls if number[call[4]] > number[call[2]]]
    if options.list:
        for (room, other), group in sorted(collections.Counter((c[2], c[4]) for c in up).items(),
                                           key=lambda item: (number[item[0][0]], number[item[0][1]])):
            print('%s -> %s: %d' % (room, other, group))
            for line, caller, _, called, _ in [c for c in up if (c[2], c[4]) == (room, other)]:
                print('    %d: %s calls %s' % (line, caller, called))
    if options.most is None:
        print('%d of %d calls go up' % (len(up), len(calls)))
    elif len(up) > options.most:
        print('%d calls go into rooms further down, at most %d may (python3 tests/calls_up.py --list)' %
              (len(up), options.most))
        sys.exit(1)


if __name__ == '__main__':
    main()
