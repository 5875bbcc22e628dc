#!/usr/bin/env python3
"""Prints what functions of tools that are left out answer into src/, from their prototypes, and joins opdispatch.h.

usage: python3 tests/left_out.py [--write]

A tool's rooms stand between `#if !defined(OPD_NO_...)`, above a banner or a section, and `#endif   /* OPD_NO_... */`.
For each public function in them src/printed/left_out.c gets one of the same head that fails.  Without --write this says
what differs, and ends with status 1 when anything does.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src'))
import join

BEGIN, END = '//== printed by tests/left_out.py\n', '//== end of what left_out.py prints\n'
# Macros whose functions are there in another way: operators have lists of cards, loading says why it fails.
OTHERS = re.compile(r'OPD_NO_(OPERATORS|OP_\w+|PLUGINS)$')
# What says that a function failed, by its type; a pointer is NULL, a struct is all zero.
ANSWERS = {'int': '-1', 'int64_t': '-1', 'size_t': '0', 'double': 'NAN', 'opd_scalar_type': 'OPD_DTYPE_NONE',
           'opd_json_kind': 'OPD_JSON_NONE'}
# Numbers of parts: of nothing, none.
COUNTS = ('opd_graph_ninputs', 'opd_graph_noutputs', 'opd_graph_count', 'opd_tensor_file_count', 'opd_module_count',
          'opd_program_ninputs', 'opd_program_noutputs')
# What files of operators call, whether a program ever opens a region or not: as outside of regions.
OUTSIDE = {
    'opd_autocast_register': '0', 'opd_autocast_support': '0',
    'opd_custom_fwd': 'opd_ok() && forward ? forward(ctx) : %s',
    'opd_custom_bwd': 'opd_ok() && backward ? backward(bw) : %s'
}


def functions_left_out(text):
    """(names of the macros, function) of each public function that macros leave out, in the order of the header: the
    macros are those of its file's row in the list, and those around it in the file, whose #endif names them."""
    around, found = [], []
    of_file = {row[0]: [word for word in row[2].split() if word.startswith('OPD_NO_') and not OTHERS.match(word)]
               for row in join.rows() if len(row) == 3}
    for m in re.finditer(r'^' + join.MARK + r'(\S+)$|^#if !defined\((OPD_NO_\w+)\)(?=\n//)|^#endif   /\* (\w+) \*/$|'
                         r'^(?!static |typedef |return )\w[^({};=\n]*?\b(opd_\w+)\([^;{]*\{', text, re.M):
        path, begins, ends, function = m.groups()
        if OTHERS.match(begins or ends or ''):
            continue
        if path:
            macros = of_file.get(path, [])
        elif begins:
            around.append(begins)
        elif ends and (not around or around.pop() != ends):
            sys.exit('a region of %s ends that has not begun' % ends)
        elif function and around + macros:
            found.append((tuple(macros + around), function))
    if around:
        sys.exit('a region of %s does not end' % around[-1])
    return found


def results(parameters):
    """Statements that write nothing into what the parameters point to: `T **x`, `T **x, int n`, `char *buf, size_t`."""
    lines = []
    for i, (kind, name) in enumerate(parameters):
        after = parameters[i + 1] if i + 1 < len(parameters) else ('', '')
        if kind == 'char *' and after[0] == 'size_t ':
            lines.append('opdi_no_results(%s, %s != 0, 1);' % (name, after[1]))
        elif re.match(r'(opd_\w+ \*|const char \*)\*$', kind) or kind in ('int64_t *', 'unsigned *'):
            count = after[1] if after[0] == 'int ' else '1'
            lines.append('opdi_no_results(%s, %s, sizeof *%s);' % (name, count, name))
    return lines


def answer(kind, name, macros, parameters):
    """The statements of a function of that type."""
    fails = '%s(__func__, "%s")' % ('opdi_null_without' if kind.endswith('*') else 'opdi_without', ' or '.join(macros))
    if name in OUTSIDE:
        return ['return %s;' % OUTSIDE[name].replace('%s', fails)]
    quiet = re.search(r'_(free|close|end|print|clear|enabled)$', name) and not kind == 'size_t '
    value = ('NULL' if kind.endswith('*') else 'false' if kind == 'bool ' else '0' if name in COUNTS or quiet
             else ANSWERS.get(kind.strip()))
    if kind == 'void ':
        return [] if quiet else ['(void)%s;' % fails]
    if quiet:
        return ['return %s;' % value]
    lines = results(parameters)
    if value == 'NULL':
        return lines + ['return %s%s;' % ('(%s)' % kind, fails)]
    if value == '-1':
        return lines + ['return %s;' % fails]
    if not value:
        lines = ['%snone;' % kind, 'memset(&none, 0, sizeof none);'] + lines
    return lines + ['(void)%s;' % fails, 'return %s;' % (value or 'none')]


def parameters_of(text):
    """(type, name) of each parameter; a pointer to a function has no name."""
    parts, depth, part = [], 0, ''
    for c in text + ',':
        depth += (c == '(') - (c == ')')
        if c == ',' and depth == 0:
            m = re.match(r'(.*?[ *])(\w+)$', part.strip())
            parts.append((m.group(1), m.group(2)) if m else (part.strip(), ''))
            part = ''
        else:
            part += c
    return parts


def stub(text, macros, name):
    m = re.search(r'^OPD_API ([^;=()]*?[ *])%s\(((?:[^;])*)\);' % name, text, re.M)
    if not m:
        sys.exit('no prototype of ' + name)
    kind, head = m.group(1), re.sub(r'\n +', '\n' + ' ' * (len(m.group(1)) + len(name) + 1), m.group(2))
    head = '%s%s(%s) {' % (kind, name, head)
    body = answer(kind, name, macros, parameters_of(re.sub(r'\s+', ' ', m.group(2))))
    if len(body) == 1 and len(head) + len(body[0]) < 118 and '\n' not in head:
        return ['%s %s }' % (head, body[0])]
    return [head + ' }'] if not body else [head] + ['    ' + line for line in body] + ['}']


def print_all(text):
    found = functions_left_out(text)
    lines = []
    for macros in dict.fromkeys(macros for macros, _ in found):
        lines.append('#if ' + ' || '.join('defined(%s)' % m for m in macros))
        for name in (n for m, n in found if m == macros):
            lines += stub(text, macros, name)
        lines.append('#endif')
    at = text.index(BEGIN) + len(BEGIN)
    return text[:at] + ''.join(line + '\n' for line in lines) + text[join.above_mark(text, text.index(END, at)):]


def main():
    if set(sys.argv[1:]) & {'--help', '-h'}:
        print(__doc__.strip())
        return 0
    if sys.argv[1:] not in ([], ['--write']):
        sys.exit(__doc__)
    old = join.marked()
    new = print_all(old)
    if sys.argv[1:]:
        join.put_marked(new, os.path.basename(__file__))
        return 0
    if new == old:
        return 0
    for a, b in zip(old.split('\n'), new.split('\n')):
        if a != b:
            print('src/ has\n  %s\nwhere its prototypes say\n  %s' % (a, b))
            print('python3 tests/left_out.py --write prints it')
            break
    return 1


if __name__ == '__main__':
    sys.exit(main())
