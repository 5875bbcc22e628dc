#!/usr/bin/env python3
"""Prints how much of each room of opdispatch.h was run, according to the counts of llvm-cov.

usage: coverage.py opdispatch.h [--missed ROOM] COUNTS.lcov...

A room begins at a banner with an anchor (>>name).  The header can contain the same text several times, for several
types and instruction sets.  A line or branch of this text counts once: it was run if it was run for one of them.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src'))
import join                                                                                          # noqa: E402

GENERATED = {'wrappers': 'printed by src/printing.py'}      # rooms that a script generates


def rooms_of(path):
    """Returns a list with the room of each line; lines count from 1."""
    room, rooms = 'start', ['']
    for line in open(path, encoding='utf-8'):
        banner = re.match(r'//  >>([\w:]+) ', line)
        if banner:
            room = banner.group(1)
        rooms.append(room)
    return rooms


def first_lines():
    """Returns a list with, for each line, the first line that has the same text of src/; lines count from 1."""
    first, where, line = {}, [0], 0
    for path, begin, count in join.lengths_of():
        for i in range(count):
            line += 1
            where.append(first.setdefault((path, begin + i), line))
    return where


def counts_of(paths, header):
    """Returns {line: times} and {(line, block, branch): times} of the header.  The branches of a line are numbered."""
    lines, branches, here, first = {}, {}, False, first_lines()
    for text in (text for path in paths for text in open(path, encoding='utf-8')):
        kind, _, rest = text.strip().partition(':')
        if kind == 'SF':
            here = rest.endswith(header)
        elif here and kind == 'DA':
            line, times = (int(n) for n in rest.split(',')[:2])
            line = first[line]
            lines[line] = max(lines.get(line, 0), times)
        elif here and kind == 'BRDA':
            line, block, branch, times = rest.split(',')
            key = first[int(line)], block, branch
            branches[key] = max(branches.get(key, 0), 0 if times == '-' else int(times))
    return lines, branches


def percent(some, all_of_them):
    return '%6.2f%%' % (100 * some / all_of_them) if all_of_them else '      -'


def main():
    if '--help' in sys.argv or len(sys.argv) < 3:
        print(__doc__.strip())
        sys.exit(0 if '--help' in sys.argv else 2)
    header, counts, missed = sys.argv[1], sys.argv[2:], None
    if counts[0] == '--missed':
        missed, counts = counts[1], counts[2:]
    rooms = rooms_of(header)
    lines, branches = counts_of(counts, 'opdispatch.h')
    if missed is not None:
        text = open(header, encoding='utf-8').read().split('\n')
        for line in sorted(lines):
            if lines[line] == 0 and missed in ('', rooms[line]):
                print('%6d  %-16s %s' % (line, rooms[line], text[line - 1]))
        return
    table = {}
    for line, times in lines.items():
        row = table.setdefault(rooms[line], [0, 0, 0, 0])
        row[0] += times > 0
        row[1] += 1
    for (line, _, _), times in branches.items():
        row = table.setdefault(rooms[line], [0, 0, 0, 0])
        row[2] += times > 0
        row[3] += 1
    print('%-20s %15s  %7s %17s  %7s' % ('room', 'lines run', '', 'branches taken', ''))
    for room, row in sorted(table.items(), key=lambda r: r[1][0] / max(1, r[1][1])):
        note = '  (%s)' % GENERATED[room] if room in GENERATED else ''
        print('%-20s %7d/%7d  %s %8d/%8d  %s%s' % (room, row[0], row[1], percent(*row[:2]), row[2], row[3],
                                                     percent(*row[2:]), note))
    for what, chosen in (('all', table), ('all that is not printed by a script',
                                          {room: row for room, row in table.items() if room not in GENERATED})):
        sums = [sum(column) for column in zip(*chosen.values())]
        print('%s: %d of %d lines,%s; %d of %d branches,%s' % (what, *sums[:2], percent(*sums[:2]), *sums[2:],
                                                                percent(*sums[2:])))


main()
