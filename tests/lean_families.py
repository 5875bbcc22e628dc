#!/usr/bin/env python3
"""Says which parts of the library a linked lean program contains, and why.
usage: lean_families.py LIBRARY.o PROGRAM.o [SYMBOL...]
LIBRARY.o is the library, compiled with -DOPD_LEAN -ffunction-sections -fdata-sections by gcc for ELF; PROGRAM.o is a file
of the program.  Without SYMBOL, compares the families of functions below with their limits, and prints those that are
too large, with the shortest way from the program to one of their functions.  The exit status is then 1.  With SYMBOLs,
which are regular expressions, prints the shortest way to each function with such a name."""
import collections
import re
import subprocess
import sys

# The family, its functions, and how many bytes the README's first program may contain of it.
FAMILIES = [
    ('vmap', r'opdi_(rule|vmap|layer_call|front|back|batch(?!_(copy|wrap|again|clone))|batched)_\w+|opd_(vmap|batch)_\w+', 4400),
    ('batching rules of operators', r'opdi_\w+_batch', 1500),
    ('forward mode', r'opdi_(jvp|forward|tangent)_\w+', 300),
    ('recording of graphs', r'opdi_(trace|traced|tracer)_\w+|opd_graph_\w+', 620),
    ('fake tensors', r'opdi_(fake|faked)_\w+', 500),
    ('anomaly mode', r'opdi_(anomaly|unwind|addresses|frames)\w*|opdi_trace_node', 300),
    ('autocast', r'opdi_autocast_\w+|opd_autocast_\w+', 1400),
    ('vector math', r'opdi_vmath\w*|opdi_vtrig\w*|opdi_exp_loop\w*', 8400),
    ('conversions of dtypes', r'opdi_cvt_\w+', 25200),
    ('complex numbers', r'opdi_c(64|128)_\w+|opdi_complex_\w+|opdi_sum_c\w+', 14700),
    ('views of complex numbers', r'opdi_(card|kept)_(view_as_(real|complex)|complex|stack|cat)', 0),
    ('loops over bits', r'opdi_bits_\w+|opdi_words_\w+', 0),
    ('lowerings of the compiler', r'opdi_(lower(?!_name)|nest|expr)_\w+', 0),
    ('stored dtypes', r'opdi_stored_\w+', 5300),
    ('schemas as text', r'opdi_(parse|lex|write|syntax|word|read_number)_?\w*', 2800),
    ('names for errors', r'opdi_lean_(numbers|overloads|names\w*)', 6600),
    ('scripts, files, compiler', r'opdi_(script|pickle|program|zip|json|c_text|c_helpers|builtin_fn)_\w*|opdi_builtins', 600),
    ('texts of tables', r'str1', 13400),
]


def lines_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout.splitlines()


def name_of(section):
    """The function or variable in a section."""
    name = re.sub(r'^\.(text(\.startup|\.unlikely|\.cold)?|rodata|data(\.rel(\.ro)?(\.local)?)?|bss)\.', '', section)
    return re.sub(r'\.(str1\.\d+|cst\d+|(constprop|isra|part|cold)\.?\d*|\d+).*$', '', name) if name != section else section[1:]


def read(path):
    """Returns {section: size}, {symbol: section}, {section: symbols and sections that it refers to} of an object."""
    sections, sizes, places, refers, at = {}, {}, {}, collections.defaultdict(set), None
    for line in lines_of('readelf', '-SW', path):
        m = re.match(r'\s*\[\s*(\d+)\]\s+(\S+)\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)', line)
        if m:
            sections[int(m.group(1))] = m.group(2)
            if re.match(r'\.(text|rodata|data|bss)', m.group(2)):
                sizes[m.group(2)] = int(m.group(3), 16)
    for line in lines_of('readelf', '-sW', path):
        words = line.split()
        if len(words) > 7 and words[6].isdigit():
            places[words[7]] = sections.get(int(words[6]))
    for line in lines_of('readelf', '-rW', path):
        m, words = re.match(r"Relocation section '\.rela?(\S+)'", line), line.split()
        if m:
            at = m.group(1)
        elif at in sizes and len(words) > 4 and re.match('[0-9a-f]{8}', words[0]):
            refers[at].add(words[4])
    return sizes, places, refers


def ways(library, program):
    """Returns {section of the library that the program keeps: the section by which it is reached, or None}."""
    sizes, places, refers = library
    reached, todo = {}, collections.deque((None, symbol) for symbols in program[2].values() for symbol in sorted(symbols))
    while todo:
        before, symbol = todo.popleft()
        section = symbol if symbol in sizes else places.get(symbol)
        if section in sizes and section not in reached:
            reached[section] = before
            todo.extend((section, further) for further in sorted(refers[section]))
    return reached


def way(reached, section):
    names = []
    while section:
        names.append(name_of(section))
        section = reached[section]
    return 'the program -> ' + ' -> '.join(reversed(names))


def main():
    if len(sys.argv) < 3 or sys.argv[1].startswith('-'):
        sys.exit(__doc__)
    library, program = read(sys.argv[1]), read(sys.argv[2])
    reached = ways(library, program)
    if not reached:
        sys.exit('%s refers to nothing in %s' % (sys.argv[2], sys.argv[1]))
    for wanted in sys.argv[3:]:
        for section in reached:
            if re.fullmatch(wanted, name_of(section)):
                print('%d bytes: %s' % (library[0][section], way(reached, section)))
    wrong = False
    for family, names, most in FAMILIES if not sys.argv[3:] else []:
        sections = [s for s in reached if re.fullmatch(names, name_of(s)) and not s.startswith('.bss')]
        size = sum(library[0][s] for s in sections)
        print('%-28s %6d of %6d bytes' % (family, size, most), file=sys.stderr)
        if size > most:
            wrong = True
            largest = max(sections, key=lambda s: library[0][s])
            print('%s: %d bytes, at most %d; for example %s' % (family, size, most, way(reached, largest)))
    return wrong


sys.exit(main())
