#!/usr/bin/env python3
"""Joins the files of src/ into opdispatch.h, in the order of src/files.txt, and the files of src/cuda/ into
opdispatch_cuda.cu, in the order of src/cuda/files.txt.

Two kinds of files have no row in these lists.  The text of a file NAME.typed.h, which is compiled for several types,
replaces each #include "NAME.typed.h".  Text that printing.py generates replaces each #include "NAME.printed.h".

usage: python3 src/join.py                   writes both files, if they have changed
       python3 src/join.py --check           prints mistakes in src/ and differences to the joined files; the exit
                                             status is 1 if there are any
       python3 src/join.py --where LINE...   prints the file and line of src/ for lines of the header (cu:LINE for
                                             lines of opdispatch_cuda.cu)
       python3 src/join.py --remap FILE      writes the header with #line, so that debuggers and compilers show src/
       python3 src/join.py --once FILE       writes the header with the text of each file only once, for scripts that
                                             count lines
       python3 src/join.py --apart FOLDER    writes the files that src/Makefile needs to compile each file separately
       python3 src/join.py --sources [WORD]  lists the files that are compiled separately
       python3 src/join.py --id              prints the identifier of src/, OPD_SOURCE_ID in the header
       python3 src/join.py --measure         measures how long the files take to compile, and writes the numbers to
                                             src/files.txt

Make changes in src/.  If you change a joined file, the change is lost when the files are joined again.
"""
import argparse
import functools
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import textwrap

import printing

SRC = os.path.dirname(os.path.abspath(__file__))
HEADER = os.path.join(os.path.dirname(SRC), 'opdispatch.h')
COMPANION = os.path.join(os.path.dirname(SRC), 'opdispatch_cuda.cu')
MOST_LINES = 1200
# Guards and compile modes may begin in one of these files and end in another one.  All other files end what they begin.
FRAMES = {'api/config.h', 'api/host_table.h', 'base/implementation.h', 'base/implementation_end.h'}
LIST = 'files.txt'
COMPANION_LIST = 'cuda/files.txt'
LISTS = {'api/host_functions.txt', 'api/pytorch_pages.txt'}         # read by printing.py and reference.py, but not in the header
# Words of the second column of the list: how a file is optimised.
MODES = {'cold': 'OPDI_COLD', 'once': 'OPDI_ONCE', 'loops': 'OPDI_LOOPS'}
INCLUDE = re.compile(rb'#include "([^"]+)"\n')
COMPILERS, MEASURED_PARTS = ('gcc', 'clang'), 64                   # with which --measure measures
DECLARATIONS, PROTOTYPES = 'declarations.h', '.prototypes.h'       # files that --apart writes
SOURCE_ID = 'source_id' + printing.SUFFIX


def rows(name=LIST):
    """Returns (file, [words after it]) for each row of a list."""
    with open(os.path.join(SRC, name), encoding='utf-8') as f:
        lines = [line.split() for line in f if line.strip() and not line.startswith('#')]
    return [(line[0], line[1:]) for line in lines]


def paths():
    return [path for path, _ in rows()]


def guards_of(words):
    """Returns the lines that begin the guards of a row."""
    return ['#if %sdefined(%s)\n' % ('!' if word.startswith('OPD_NO_') else '', word)
            for word in words if word not in MODES and not word.isdigit()]


def middles():
    """Returns {path: thousandths of the compile time of all files that lie before the middle of this file}.  The files
    of aoti/ are counted separately, because they are compiled only with OPD_AOTI."""
    times = [(path, sum(int(word) for word in words if word.isdigit())) for path, words in rows()]
    found = {}
    for some in ([row for row in times if row[1] and row[0].startswith('aoti/') == aoti] for aoti in (False, True)):
        before, whole = 0, sum(time for _, time in some)
        for path, time in some:
            found[path] = (2 * before + time) * 1000 // (2 * whole)
            before += time
    return found


def frames():
    """Returns {path: (lines before the code of a file, lines after it)}, which follow from the second column of the
    list."""
    found = {}
    places = middles()
    for path, words in (row for row in rows() if row[1]):
        guards = ['#if OPDI_IN_PART(%d)\n' % places[path]] if path in places else []
        guards += guards_of(words)
        modes = [MODES[word] for word in words if word in MODES]
        found[path] = (''.join(guards + ['%s_BEGIN\n' % mode for mode in modes]),
                       ''.join(['%s_END\n' % mode for mode in reversed(modes)] + ['#endif\n' for _ in guards]) + '\n')
    return found


def head_of(lines):
    """Returns the number of lines before the code of a file: the #include of its header, empty lines, and //
    comments."""
    for i, line in enumerate(lines):
        if line.strip() and not line.startswith(b'//') and not (i == 0 and INCLUDE.fullmatch(line)):
            return i
    return len(lines)


def read(path):
    with open(path, 'rb') as f:
        return f.read()


def write(path, data):
    """Writes the file.  Returns False if it already had this content."""
    if os.path.exists(path) and read(path) == data:
        return False
    with open(path, 'wb') as f:
        f.write(data)
    return True


@functools.lru_cache(None)
def source_id():
    """Returns 16 hexadecimal digits that identify the files from which the joined files are made: the first digits of
    the SHA-256 of the lines that `sha256sum` prints for them, sorted by path.  examples/guide/releases.md has this as a
    command of the shell."""
    there = [LIST, 'join.py', 'printing.py']
    for folder, folders, names in os.walk(SRC):
        folders[:] = [name for name in folders if name != '__pycache__']
        there += [os.path.relpath(os.path.join(folder, name), SRC).replace(os.sep, '/') for name in names if folder != SRC]
    lines = ['%s  %s\n' % (hashlib.sha256(read(os.path.join(SRC, path))).hexdigest(), path) for path in sorted(there)]
    return hashlib.sha256(''.join(lines).encode('utf-8')).hexdigest()[:16]


def generated(name):
    """Returns the text of NAME.printed.h."""
    if name == SOURCE_ID:
        return '#define OPD_SOURCE_ID "%s"\n' % source_id()
    return printing.printed(tree(), name[:-len(printing.SUFFIX)])


def faults():
    """Returns messages about mistakes in the list and the files."""
    listed, there, found, companion = paths(), [], [], [path for path, _ in rows(COMPANION_LIST)]
    for folder, folders, names in os.walk(SRC):
        folders[:] = sorted(name for name in folders if name != '__pycache__')
        if folder != SRC:
            there += [os.path.relpath(os.path.join(folder, name), SRC).replace(os.sep, '/') for name in sorted(names)
                      if name.endswith(('.c', '.h', '.txt', '.cu'))]
    includes = {}                # included file: including file
    for path in (path for path in there if not path.endswith('.cu')):
        for line in read(os.path.join(SRC, path)).splitlines(True):
            if included(path, line):
                includes[included(path, line)] = path
    for path, by in includes.items():
        if path.endswith((printing.SUFFIX, PROTOTYPES)):
            continue
        if path not in there:
            found.append('src/%s includes src/%s, which does not exist' % (by, path))
        elif path in listed and by in listed and listed.index(path) > listed.index(by):
            found.append('src/%s includes src/%s, but its row in src/files.txt comes after the row of the including file' % (by, path))
    for path in there:
        if path.endswith('.cu') and path not in companion:
            found.append('src/%s is not in src/cuda/files.txt: add a row at the place of its text' % path)
        elif path not in listed + companion + [COMPANION_LIST] and path not in includes and path not in LISTS:
            found.append('src/%s is not in src/files.txt, and no file includes it: add a row at the place of its text' % path)
    for name, its in (LIST, listed), (COMPANION_LIST, companion):
        for path in dict.fromkeys(its):
            if its.count(path) > 1:
                found.append('src/%s lists %s twice: remove one row' % (name, path))
            if path not in there:
                found.append('src/%s lists %s, which does not exist: remove the row, or restore the file' % (name, path))
    for path, words in rows():
        found += ['src/files.txt has the word "%s" for %s: it must be a number, cold, once, loops, or a macro' %
                  (word, path) for word in words if word not in MODES and not re.fullmatch('OPD[A-Z_]+|[1-9][0-9]*', word)]
    for path in there:
        if not read(os.path.join(SRC, path)).endswith(b'\n'):
            found.append('src/%s does not end with a newline: add one' % path)
    return found or circles(listed)


def circles(listed):
    try:
        for path in listed:
            pasted(path, set(listed))
    except RecursionError as error:
        return [str(error)]
    return []


def long_files():
    """Returns messages about files with more lines than MOST_LINES or than their row in long_files.txt allows."""
    excused, found = {path: int(words[0]) for path, words in rows('long_files.txt')}, []
    for path in paths() + sorted({path for path, _, _ in pieces() + companion_pieces()
                                  if not path.endswith((printing.SUFFIX, PROTOTYPES))} - set(paths())):
        most, lines = excused.pop(path, MOST_LINES), read(os.path.join(SRC, path)).count(b'\n')
        if lines > most:
            found.append('src/%s has %d lines, but at most %d are allowed: divide it at a section' % (path, lines, most))
        elif most > MOST_LINES and lines <= MOST_LINES:
            found.append('src/%s has only %d lines: remove it from src/long_files.txt' % (path, lines))
    return found + ['src/long_files.txt lists %s, which is not in src/files.txt' % path for path in excused]


def unended(path):
    """Returns the numbers of the lines of a file where a guard or compile mode begins that does not end in this file,
    or ends that did not begin in this file."""
    guards, modes, found = [], [], []          # guards: line, modes before, modes at each branch's end, has #else
    for i, line in enumerate(read(os.path.join(SRC, path)).decode('utf-8').split('\n')):
        word = re.match(r'\s*#\s*(if|ifdef|ifndef|else|elif|endif)\b|OPDI_(COLD|ONCE|LOOPS)_(BEGIN|END)\b', line)
        if not word:
            continue
        if word.group(3) == 'BEGIN':
            modes.append((i + 1, word.group(2)))
        elif word.group(3):
            if not modes or modes.pop()[1] != word.group(2):
                found.append(i + 1)
        elif word.group(1).startswith('if'):
            guards.append([i + 1, list(modes), [], False])
        elif not guards:
            found.append(i + 1)
        else:
            _, before, branches, complete = guards[-1]
            branches.append([mode for _, mode in modes])
            if word.group(1) != 'endif':
                modes = list(before)
                guards[-1][3] = word.group(1) == 'else'
                continue
            guards.pop()
            if not complete:
                branches.append([mode for _, mode in before])
            if any(branch != branches[0] for branch in branches):                    # a mode ends only in some branches
                found.append(i + 1)
    return found + [guard[0] for guard in guards] + [line for line, _ in modes]


def must_be_listed():
    found = faults()
    if found:
        sys.exit('\n'.join(found))


def included(path, line):
    """Returns the file of src/ that a line of the file `path` includes.  If the line includes generated text,
    returns the name of the text, or '' for the declarations that --apart writes.  Otherwise returns None."""
    match = line.startswith(b'#include "') and INCLUDE.fullmatch(line)
    if not match:
        return None
    name = match.group(1).decode('utf-8')
    if path.endswith('.cu') and not name.endswith('.typed.h'):        # the header itself
        return None
    if name == DECLARATIONS:
        return ''
    if name.endswith((printing.SUFFIX, PROTOTYPES)):
        return name
    return os.path.normpath(os.path.join(os.path.dirname(path), name)).replace(os.sep, '/')


@functools.lru_cache(None)
def tree():
    """Returns the files of src/, for printing.py."""
    return printing.Tree([
        (path, words, read(os.path.join(SRC, path)).decode('utf-8'))
        for path, words in rows() + [(path, []) for path in sorted(LISTS)] if os.path.exists(os.path.join(SRC, path))])


def pasted(path, listed, within=()):
    """Returns [(path, number of the first line, text)] for a file and the files that it includes, in order.  The texts
    are bytes.  An included file is not inserted if it has a row in the list.
    """
    if path in within:
        raise RecursionError('src/%s includes itself: %s' % (path, ' -> '.join(within + (path,))))
    data = prototypes(path[:-len(PROTOTYPES)]).encode('utf-8') if path.endswith(PROTOTYPES) else read(os.path.join(SRC, path))
    found, lines, begin = [], data.splitlines(True), 0
    for i, line in enumerate(lines):
        other = included(path, line)
        if other is None:
            continue
        note, text = b'', []
        if other and other.endswith(printing.SUFFIX):
            note, text = b'', [(other, 1, generated(other).encode('utf-8'))]
        elif other and other.endswith(PROTOTYPES):
            text = pasted(other, listed, within + (path,)) if prototypes(other[:-len(PROTOTYPES)]) else []
            note, text = b'#if defined(OPDI_DIVIDED)\n' if text else b'', text + [(path, i + 1, b'#endif\n')] * bool(text)
        elif other and other not in listed:
            note, text = b'/* src/%s */\n' % other.encode('utf-8'), pasted(other, listed, within + (path,))
        found += [(path, begin + 1, b''.join(lines[begin:i]) + note)] + text
        begin = i + 1 if text or lines[i + 1:i + 2] != [b'\n'] else i + 2       # skip the empty line below, too
    return [piece for piece in found + [(path, begin + 1, b''.join(lines[begin:]))] if piece[2]]


def row_of(path):
    """Returns the line number of a file's row in the list."""
    lines = read(os.path.join(SRC, LIST)).decode('utf-8').splitlines()
    return next(i + 1 for i, line in enumerate(lines) if line.split()[:1] == [path])


@functools.lru_cache(None)
def pieces():
    """Returns [(path, number of the first line, text)] for the whole header, in order."""
    must_be_listed()
    listed, found, around = set(paths()), [], frames()
    for path in paths():
        texts = pasted(path, listed)
        if path in around:
            own, first, text = texts[0]
            lines = text.splitlines(True)
            head = head_of(lines)
            begin, end = ([(LIST, row_of(path), line) for line in text.encode('utf-8').splitlines(True)]
                          for text in around[path])
            texts = ([(own, first, b''.join(lines[:head]))] + begin + [(own, first + head, b''.join(lines[head:]))] +
                     texts[1:] + end)
        found += [piece for piece in texts if piece[2]]
    return found


@functools.lru_cache(None)
def companion_pieces():
    """Returns [(path, number of the first line, text)] for the CUDA plug-in, in order."""
    return [piece for path, _ in rows(COMPANION_LIST) for piece in pasted(path, set(paths()))]


def joined(some=None):
    return b''.join(text for _, _, text in some or pieces())


def once():
    """Returns the header with the text of each file only where it occurs first, and without printed prototypes."""
    seen, texts = set(), []
    for path, first, text in pieces():
        if not path.endswith(PROTOTYPES) and ((path, first) not in seen or path == LIST):
            seen.add((path, first))
            texts.append(text)
    return b''.join(texts)


def where(line, lengths):
    """Returns 'src/FILE:LINE' or 'NAME.printed.h:LINE, ...' for a line of a joined file, or None if the file is
    shorter."""
    for path, first, count in lengths:
        if 0 < line <= count:
            printed = path.endswith((printing.SUFFIX, PROTOTYPES))
            printer = 'join.py' if path.endswith(PROTOTYPES) else 'printing.py'
            return '%s%s:%d%s' % ('' if printed else 'src/', path, first + line - 1,
                                  ', which src/%s prints' % printer if printed else '')
        line -= count
    return None


def lengths_of(some=None):
    return [(path, first, text.count(b'\n')) for path, first, text in some or pieces()]


def difference(name, some, have, want):
    """Returns a message about the first line of a joined file that differs from src/.  some: the pieces of the
    joined file."""
    old, new = have.split(b'\n'), want.split(b'\n')
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    text = ['' if at >= len(lines) else lines[at].decode('utf-8', 'replace') for lines in (old, new)]
    return 'line %d of %s differs from %s:\n  the file has  %s\n  src has       %s' % (
        at + 1, name, where(at + 1, lengths_of(some)) or 'in src', text[0], text[1])


def outputs():
    """Returns (file, pieces) for each joined file."""
    return (HEADER, pieces()), (COMPANION, companion_pieces())


def check():
    found = faults()
    if not found:
        found = long_files()
        for path in paths():
            if path not in FRAMES and path.endswith(('.c', '.h')):
                found += ['src/%s:%d: a guard or compile mode begins or ends in another file' % (path, line)
                          for line in unended(path)]
        for path, some in outputs():
            name, want = os.path.basename(path), joined(some)
            if not os.path.exists(path):
                found.append('%s does not exist: python3 src/join.py writes it' % name)
            elif read(path) != want:
                found.append(difference(name, some, read(path), want))
                found.append('%s differs from the text that src/join.py writes: make changes in src/, then run python3 src/join.py' % name)
    return found


#-- compiling each file separately ------------------------------------------------------------------------------------

# Stubs of tools that a macro leaves out.  When files are compiled separately, nothing is left out.
NOT_APART = {'tools/left_out.c'}
GUARD = re.compile(r'\s*#\s*(if|ifdef|ifndef|else|elif|endif)\b')
SHARED = re.compile(r'(?:[A-Z_0-9]+(?:\([^()]*\))? )*OPDI_INTERNAL\b')


def sources():
    """Returns the files that are compiled separately."""
    return [path for path in paths() if path.endswith('.c') and path not in NOT_APART]


def code_of(lines, i):
    """Returns the code of the declaration that begins at line i, up to its end or its body; the character there; and
    the number of the next line."""
    text, depth = '', 0
    while i < len(lines):
        line = re.sub(r'/\*.*?\*/|//.*|\\?\n', ' ', lines[i])
        i += 1
        for char in line:
            depth += (char in '([') - (char in ')]')
            if depth == 0 and char in '{;=':
                return ' '.join(text.split()), char, i
            text += char
    return ' '.join(text.split()), ';', i


def prototype(text, end):
    """Returns the declaration of a definition, for other files.  Returns None if the text is only a declaration."""
    function = re.match(r'[^()]*(?:\(\d, \d\) [^()]*)?\b(?:OPDI_TYPED\(\w+\)|\w+)\((?!\*)', text) and text.endswith(')')
    if function:
        return text + ';' if end == '{' else None
    return 'extern %s;' % text


def prototypes_of(path):
    """Returns the declarations of a file's definitions, for other files, within the guards of the file; or ''."""
    out, typed, i = [], [], 0
    lines = read(os.path.join(SRC, path)).decode('utf-8').splitlines(True)
    while i < len(lines):
        guard, other = GUARD.match(lines[i]), included(path, lines[i].encode('utf-8'))
        if guard:
            begin = i
            while lines[i].endswith('\\\n'):
                i += 1
            i += 1
            out.append((guard.group(1), ''.join(lines[begin:i])))
        elif other and other.startswith('typed/'):
            typed = [] if other == 'typed/end.h' else [other]
            i += 1
        elif other and other.endswith('.typed.h'):
            inner = prototypes_of(other)
            if inner and typed:
                inner = '#include "%s"\n%s#include "typed/end.h"\n' % (typed[0], inner)
            out += [('', inner)] * bool(inner)
            i += 1
        elif SHARED.match(lines[i]):
            text, end, i = code_of(lines, i)
            text = prototype(text, end)
            if text:
                out.append(('', textwrap.fill(text, 120, subsequent_indent='    ', break_on_hyphens=False) + '\n'))
        else:
            i += 1
    return ''.join(text for _, text in within_guards(out))


def within_guards(rows):
    """Returns the rows (word, text) without empty guards.  A row that is not a guard has the word ''."""
    kept = []
    for word, text in rows:
        kept.append((word, text))
        begin = max((i for i, row in enumerate(kept) if row[0].startswith('if')), default=None) if word == 'endif' else None
        if begin is not None:
            inner = ''.join(row[1] for row in kept[begin:])
            filled = any(row[0] == '' for row in kept[begin:])
            kept[begin:] = [('', inner)] if filled else []
    return kept


@functools.lru_cache(None)
def prototypes(layer):
    """Returns the declarations of what the files of a layer define, for other files."""
    text = ''
    for path, words in rows():
        inner = prototypes_of(path) if path.endswith('.c') and path.startswith(layer + '/') else ''
        guards = guards_of(words) if inner else []
        text += ''.join(guards) + inner + '#endif\n' * len(guards)
    if layer == 'ops':
        text += ''.join('OPDI_OP(%s);\n' % operator.card for operator in tree().operators())
    return text


def write_apart(folder):
    """Writes the files for compiling each file separately: the public declarations, each layer's prototypes,
    generated text."""
    must_be_listed()
    os.makedirs(folder, exist_ok=True)
    every, listed = paths(), set(paths())
    api = every[:every.index('base/implementation.h')]
    write(os.path.join(folder, DECLARATIONS),
          b''.join(text for path in api for _, _, text in pasted(path, listed))
          .replace(source_id().encode('ascii'), b'separate files'))                       # or each edit compiles all
    for layer in sorted({path.split('/')[0] for path in sources()}):
        write(os.path.join(folder, layer + PROTOTYPES), prototypes(layer).encode('utf-8'))
    for path in sources():
        for name, _, text in pasted(path, listed):
            if name.endswith(printing.SUFFIX):
                write(os.path.join(folder, name), text)


def seconds_of(compiler, folder, options):
    """Returns the processor seconds in which a compiler compiles the header in a folder, with these options."""
    before = os.times()
    subprocess.run([compiler, '-x', 'c', '-std=c11', '-O2', '-w', '-DOPDISPATCH_IMPLEMENTATION', '-DOPD_AOTI', *options, '-c',
                    os.path.join(folder, 'opdispatch.h'), '-o', os.path.join(folder, 'part.o')], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def measure():
    """Compiles the header in many parts, divides the time of each part among its files in proportion to their old
    numbers, and writes the new numbers to the list: hundredths of a second, the mean of gcc and clang."""
    places, words, times = middles(), dict(rows()), {}
    with tempfile.TemporaryDirectory() as folder:
        header, whole = os.path.join(folder, 'opdispatch.h'), joined()
        for compiler in COMPILERS:
            write(header, re.sub(rb'#if OPDI_IN_PART\(\d+\)', b'#if 0', whole))
            headers = min(seconds_of(compiler, folder, []) for _ in range(3))
            write(header, whole)
            for part in range(MEASURED_PARTS):
                some = [path for path in places if places[path] * MEASURED_PARTS // 1000 == part]
                options = ['-DOPDISPATCH_PARTS=%d' % MEASURED_PARTS, '-DOPDISPATCH_PART=%d' % (part + 1)]
                seconds = min(seconds_of(compiler, folder, options) for _ in range(2)) - headers
                old = {path: sum(int(word) for word in words[path] if word.isdigit()) for path in some}
                for path in some:
                    times[path] = times.get(path, 0) + seconds * old[path] / sum(old.values()) / len(COMPILERS)
    lines = read(os.path.join(SRC, LIST)).decode('utf-8').splitlines()
    for i, line in enumerate(lines):
        path, *others = line.split() or ['']
        if path in times:
            lines[i] = ' '.join(['%-35s %3d' % (path, max(1, round(100 * times[path])))] +
                                [word for word in others if not word.isdigit()])
    write(os.path.join(SRC, LIST), '\n'.join(lines + ['']).encode('utf-8'))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument('--check', action='store_true', help='only checks the files; the exit status is 1 if there are mistakes')
    group.add_argument('--where', nargs='+', metavar='LINE', help='prints the file and line of src/ for lines of the header, or with cu:LINE for '
                       'lines of opdispatch_cuda.cu')
    group.add_argument('--remap', metavar='FILE', help='writes the header with #line to this file')
    group.add_argument('--apart', metavar='FOLDER', help='writes the prototypes for compiling each file separately to this folder')
    group.add_argument('--sources', nargs='*', metavar='WORD', help='lists the files that are compiled separately: all, '
                       'or those with one of the words in their row')
    group.add_argument('--once', metavar='FILE', help='writes the header with the text of each file only once to this file')
    group.add_argument('--id', action='store_true', help='prints the identifier of src/')
    group.add_argument('--measure', action='store_true', help='measures how long the files take to compile')
    o = parser.parse_args()
    if o.check:
        found = check()
        print('\n'.join(found), end='\n' if found else '')
        return 1 if found else 0
    if o.where:
        lengths, missing = {'': lengths_of(), 'cu': lengths_of(companion_pieces())}, 0
        for text in o.where:
            which, _, line = text.rpartition(':')
            if which not in lengths or not line.isdigit():
                sys.exit('--where needs line numbers, such as 12345 or cu:123, not %s' % text)
            place = where(int(line), lengths[which])
            print(place or '%s: the file has fewer lines' % text)
            missing += not place
        return 1 if missing else 0
    if o.remap:
        text = bytearray()
        for path, first, piece in pieces():
            if not text.endswith(b'\\\n'):        # no directive may be inside a macro
                text += b'#line %d "%s"\n' % (first, os.path.join(SRC, path).replace('\\', '/').encode('utf-8'))
            text += piece
        write(o.remap, text)
        return 0
    if o.apart:
        write_apart(o.apart)
        return 0
    if o.id:
        print(source_id())
        return 0
    if o.measure:
        measure()
        return 0
    if o.sources is not None:
        words = dict(rows())
        print('\n'.join(path for path in sources() if not o.sources or set(o.sources) & set(words[path])))
        return 0
    if o.once:
        write(o.once, once())
        return 0
    for path, some in outputs():
        want = joined(some)
        if os.path.exists(path) and read(path) != want:
            name = os.path.basename(path)
            print('%s was written again, with changes from here on: %s' % (name, difference(name, some, read(path), want)))
        write(path, want)
    return 0


if __name__ == '__main__':
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(str(error))
