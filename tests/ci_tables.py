#!/usr/bin/env python3
"""Prints the tables of platforms and of the parts of .ci/run, which the documents show, from lines in the scripts.

- A line "#| platform | compiler | what runs | how" is a row of the table of platforms.  It is above a part of
  .ci/run, above a target in tests/cross.sh, above a check (check_NAME) or in the first comment of another script of
  tests/.  From the line below it follows which command runs these tests, and when.  A remark in brackets at the end
  of "what runs" is left out in README.md.
- A line "#- text" above a part of .ci/run says what the part is for.  Lines "#- step | text" in tests/run.sh say this
  of its steps.
- The seconds are read from a log of .ci/run.  Without a log, they remain unchanged.

usage: python3 tests/ci_tables.py            prints the tables
       python3 tests/ci_tables.py --write    writes them into README.md, the guide and tests/README.md
       python3 tests/ci_tables.py --check    says where the documents differ, and ends with status 1
       --log FILE: with the seconds of a log of .ci/run, which ran on this machine
"""
import argparse
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
README, GUIDE, TESTS = 'README.md', 'examples/guide/01-install.md', 'tests/README.md'
SHORT = ('| what runs, on every change unless noted ([details](%s#compilers-and-systems)) '
         '| platforms | compilers |' % GUIDE)
FULL = '| platform | compiler | what runs | how | when | command |'
PARTS = '| part of `.ci/run` | when | what it is for | clock seconds | processor seconds |'
STEPS = '| step of `sh tests/run.sh` | what it is for | processor seconds | the longest file |'
ALWAYS, RELEASE, BY_HAND = 'every change', 'before a release', 'by hand'
PART = re.compile(r'''(?:^|\s)part (?:'([^']*)'|"([^"]*)") (.*)''')
MEASURED = 'These seconds are of '


def read(name):
    with open(os.path.join(ROOT, name), encoding='utf-8') as f:
        return f.read()


def fail(text, *about):
    sys.exit('ci_tables.py: ' + text % about)


#-- what the scripts say -----------------------------------------------------------------------------------------------

def ci_parts():
    """Returns [(name, command, when, purpose)] of the parts of .ci/run."""
    found, when, purpose = [], ALWAYS, ''
    for line in read('.ci/run').split('\n'):
        part = PART.search(line)
        if line == 'if [ -n "$whole" ]; then':
            when = RELEASE
        elif line == 'fi':
            when = ALWAYS
        elif line.strip().startswith('#- '):
            purpose = line.strip()[3:]
        elif part and not line.startswith('#'):
            name = part.group(1) or part.group(2)
            if not purpose:
                fail("the part '%s' of .ci/run needs a line \"#- what it is for\" above it", name)
            found.append((name, part.group(3), when, purpose))
            purpose = ''
    return found


def place_of(script, line, parts):
    """Returns (command, when) of the tests to which a line of a script belongs."""
    part, target, check = PART.search(line), re.match(r'\s*([\w-]+)\) ', line), re.match(r'check_(\w+)\(\)', line)
    if script == '.ci/run':
        if not part:
            fail('a row of the table of platforms in .ci/run is above no part, but above: %s', line)
        name = part.group(1) or part.group(2)
        quoted = '"%s"' % name if "'" in name else "'%s'" % name
        return '.ci/run ' + quoted, next(when for other, _, when, _ in parts if other == name)
    if script == 'tests/cross.sh' and target:
        times = [when for _, command, when, _ in parts
                 if 'tests/cross.sh' in command and target.group(1) in command.split()]
        return 'sh tests/cross.sh ' + target.group(1), min(times, key=[ALWAYS, RELEASE].index) if times else BY_HAND
    times = [when for _, command, when, _ in parts if script in command]
    if check:
        return 'sh %s %s' % (script, check.group(1)), ALWAYS
    return 'sh ' + script, min(times, key=[ALWAYS, RELEASE].index) if times else BY_HAND


def rows(parts):
    """Returns [(platform, compiler, what runs, how, when, command)], with the rows of a platform one after the
    other."""
    found = []
    scripts = sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, 'tests/*.sh')))
    for script in ['.ci/run'] + scripts:
        waiting = []
        for line in read(script).split('\n'):
            text = line.strip()
            if text.startswith('#| '):
                cells = [cell.strip() for cell in text[3:].split(' | ')]
                if len(cells) != 4 or not all(cells):
                    fail('%s: not of the form "#| platform | compiler | what runs | how": %s', script, text)
                waiting.append(cells)
            elif waiting and not text.startswith('#'):
                command, when = place_of(script, line, parts)
                found += [tuple(cells) + (when, command) for cells in waiting]
                waiting = []
    targets = subprocess.run(['sh', os.path.join(ROOT, 'tests/cross.sh'), '--list'], stdout=subprocess.PIPE, check=True)
    for target in targets.stdout.decode('ascii').split():
        if not any(row[5] == 'sh tests/cross.sh ' + target for row in found):
            fail('tests/cross.sh needs a line "#| platform | compiler | what runs | how" above the target %s', target)
    order = list(dict.fromkeys(row[0] for row in found))
    return sorted(found, key=lambda row: (order.index(row[0]), [ALWAYS, RELEASE, BY_HAND].index(row[4])))


#-- tables -------------------------------------------------------------------------------------------------------------

def table(head, cells):
    """Returns the lines of a table."""
    return [head, '|' + '---|' * (head.count(' | ') + 1)] + ['| %s |' % ' | '.join(row) for row in cells]


def full_table(found):
    return table(FULL, [row[:5] + ('`%s`' % row[5],) for row in found])


def short_table(found):
    """Returns a table with one row for all platforms that run the same.  A platform is only in the first row that
    has it."""
    named, cells = set(), []
    for what in dict.fromkeys(row[2].split(' (')[0] for row in found):
        group = [row for row in found if row[2].split(' (')[0] == what and row[0] not in named]
        if not group:
            continue
        named |= {row[0] for row in group}
        names, ways, places = {}, {}, {}
        for platform, _, _, how, when, _ in group:
            names.setdefault(platform, platform if when == ALWAYS else '%s (%s)' % (platform, when))
            if how not in ways.setdefault(platform, []):
                ways[platform].append(how)
        for platform, hows in ways.items():
            places.setdefault(' and '.join(hows), []).append(names[platform])
        where = '; '.join(', '.join(same) + ('' if how == 'natively' else ': ' + how) for how, same in places.items())
        compilers = [row[1] for row in group if row[4] != RELEASE] or [row[1] for row in group]
        cells.append((what, where, '; '.join(dict.fromkeys(compilers))))
    return table(SHORT, cells)


def parts_table(parts, seconds):
    return table(PARTS, [(name, when, purpose) + tuple(seconds.get(name, ('-', '-')))
                         for name, _, when, purpose in parts])


def steps_table(seconds):
    """Returns the table of the steps of tests/run.sh.  seconds has (seconds, longest file) of each step."""
    purposes = dict(re.findall(r'^#- ([^|\n]*) \| (.*)$', read('tests/run.sh'), re.M))
    folders = sorted({os.path.basename(os.path.dirname(path)) for end in ('c', 'cpp')
                      for path in glob.glob(os.path.join(ROOT, 'tests/*/test_*.' + end))} - {'cuda'})
    layers = [folder for folder in folders if folder not in purposes]
    for folder in layers:
        if not os.path.isdir(os.path.join(ROOT, 'src', folder)):
            fail('tests/run.sh needs a line "#- %s | what these tests are for"', folder)
        purposes[folder] = 'tests of `src/%s/`' % folder
    steps = [step for step in purposes if step not in layers] + layers
    return table(STEPS, [(step, purposes[step]) + tuple(seconds.get(step, ('-', '-'))) for step in steps])


#-- seconds ------------------------------------------------------------------------------------------------------------

def old_seconds(text):
    """Returns the seconds in the tables of a page, of each part and of each step."""
    cells = [line.strip('| ').split(' | ') for line in text.split('\n') if line.startswith('| ')]
    return ({row[0]: row[3:] for row in cells if len(row) == 5 and row[1] in (ALWAYS, RELEASE)},
            {row[0]: row[2:] for row in cells if len(row) == 4})


def log_seconds(name):
    """Returns the seconds of each part and step in a log of .ci/run, and their sum.  An incomplete log has only the
    steps."""
    with open(name, encoding='utf-8', errors='replace') as f:
        text = f.read()
    whole = re.search(r'^== all, in (\d+) s\n((?: *\d+ s  .*\n)*)', text, re.M)
    took = re.findall(r'^ *(\d+) s  (?: *(\d+) s of a processor  )?(.*)$', whole.group(2), re.M) if whole else []
    parts = {part: ('{:,}'.format(int(clock)), '{:,}'.format(int(busy)) if busy else '-') for clock, busy, part in took}
    newcomer, steps = re.search(r'^== README\n(.*?)(?:^== |\Z)', text, re.M | re.S), {}
    if not whole and not newcomer:
        fail('%s is not a log of .ci/run: it has neither a line "== README" nor a line "== all, in N s"', name)
    said_by = re.compile(r'^([^ \n]+|the implementation): .*?, (\d+) s$', re.M)
    for said, took in said_by.findall(newcomer.group(1) if newcomer else ''):
        paths = glob.glob(os.path.join(ROOT, 'tests/*', said))
        step = os.path.basename(os.path.dirname(paths[0])) if paths else said
        steps.setdefault(step, []).append((int(took), said))
    sums = {step: '{:,}'.format(sum(took for took, _ in files)) for step, files in steps.items()}
    longest = {step: '%s: %d' % max(files)[::-1] if len(files) > 1 else '-' for step, files in steps.items()}
    return parts, {step: (sums[step], longest[step]) for step in steps}, int(whole.group(1)) if whole else None


def machine():
    """Returns the name of this machine's processor, and the number of its cores."""
    names = []
    if os.path.exists('/proc/cpuinfo'):
        with open('/proc/cpuinfo', encoding='utf-8', errors='replace') as f:
            names = re.findall(r'^model name\s*: (.*)$', f.read(), re.M)
    return names[0].strip() if names else os.uname().machine, os.cpu_count()


#-- documents ----------------------------------------------------------------------------------------------------------

def replaced(page, text, lines):
    """Returns the text of a page, with these lines instead of its table that has the same head."""
    found = re.search('^' + re.escape(lines[0]) + r'\n(\|.*\n)*', text, re.M)
    if not found:
        fail('%s has no table with the head %s', page, lines[0])
    return text[:found.start()] + '\n'.join(lines) + '\n' + text[found.end():]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument('--write', action='store_true', help='write the tables into the documents')
    group.add_argument('--check', action='store_true', help='compare the documents with the tables')
    parser.add_argument('--log', metavar='FILE', help='take the seconds from this log of .ci/run')
    o = parser.parse_args()
    parts = ci_parts()
    found = rows(parts)
    part_seconds, step_seconds = old_seconds(read(TESTS))
    measured = None
    if o.log:
        new_parts, new_steps, whole = log_seconds(o.log)
        part_seconds.update(new_parts)
        step_seconds.update(new_steps)
        measured = MEASURED + 'an %s with %d cores.' % machine()
        if whole:
            measured += ' All parts of the last run together took {:,} s on the clock.'.format(whole)
    tables = [(README, short_table(found)), (GUIDE, full_table(found)), (TESTS, parts_table(parts, part_seconds)),
              (TESTS, steps_table(step_seconds))]
    status = 0
    for page, lines in tables:
        text = read(page)
        new = replaced(page, text, lines)
        if o.write:
            if measured and page == TESTS:
                new = re.sub('^' + MEASURED + '.*$', measured, new, flags=re.M)
            if new != text:
                with open(os.path.join(ROOT, page), 'w', encoding='utf-8') as f:
                    f.write(new)
        elif o.check:
            for line in lines:
                if line not in text.split('\n'):
                    print('%s has not this row of the scripts: %s' % (page, line))
            if new != text:
                print('%s: a table is not that of the scripts. Write it: python3 tests/ci_tables.py --write' % page)
                status = 1
        else:
            print('\n'.join(lines) + '\n')
    if measured and not (o.write or o.check):
        print(measured)
    return status


if __name__ == '__main__':
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(str(error))
