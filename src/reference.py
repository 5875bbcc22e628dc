#!/usr/bin/env python3
"""Writes examples/guide/reference/ from src/api/ and the cards of src/ops/: a page for each section of declarations and
for each family of operators, and an index of all operators.

usage: python3 src/reference.py            writes the pages that have changed
       python3 src/reference.py --check    prints the names of the pages that are out of date; the exit status is 1 if
                                           there are any
"""
import argparse
import os
import re
import sys

import join
import printing

TO = os.path.join(os.path.dirname(join.SRC), 'examples', 'guide', 'reference')
NOT_API = {'formulas', 'formula_helpers', 'host_table', 'operator_numbers', 'typed', 'config'}
VMAP = {'POINTWISE': 'element by element', 'SHIFT_DIM': 'along dims', 'MATMUL': 'as a product', 'FOLD': 'sample by sample',
        'VIEW': 'as a view', 'FACTORY': 'as a factory', 'DECOMPOSE': 'through its parts', 'LOOP': 'one example at a time'}


# The descriptions of OPD_AUTOCAST_NAME.  NAME_NOT_CPU and NAME_CPU apply only to some devices.
AUTOCAST = {'KEEP': 'keeps dtypes', 'LOWER': 'lower precision', 'FP32': 'float32', 'SET': 'float32 sums',
            'APPEND': 'float32 sums', 'PROMOTE': 'the widest dtype', 'BANNED': 'refused', 'FP32_SET_DTYPE': 'float32 sums',
            'FP32_APPEND_DTYPE': 'float32 sums', 'SET_FP32': 'float32 sums; float32 on the CPU',
            'PROMOTE_FP32': 'the widest dtype; float32 on the CPU', 'BANNED_FP32': 'refused; float32 on the CPU'}


#-- declarations -------------------------------------------------------------------------------------------------------

def comment_text(text):
    """Returns a comment as Markdown: its paragraphs, and lines with more indentation as code."""
    lines = text.strip()[2:-2].split('\n')
    body = [lines[0].strip()] + [line[3:] if line.startswith('   ') else line.strip() for line in lines[1:]]
    out, code = [], False
    for line in body:
        indented = line.startswith('  ') and bool(line.strip())
        if indented != code and (line.strip() or code):
            out.append('```' if code else '\n```text')
            code = indented
        out.append(line.rstrip() if code else escaped(line.strip()))
    return '\n'.join(out + (['```'] if code else [])).strip()


def escaped(line):
    """Returns a line of text as Markdown: names are code, and all other characters are plain."""
    line = line.replace('<', '&lt;').replace('*', '\\*').replace('|', '\\|').replace('_', '\\_')
    return re.sub(r'\b((?:opd|OPD)(?:\\_[A-Za-z0-9]+)+(?:\\_)*\*?)',
                  lambda m: '`%s`' % m.group(1).replace('\\', ''), line)


def declarations(text):
    """Returns ('section', title) and ('block', comment or None, [declarations]) for a file of src/api/, in order."""
    lines, i, comment, found = text.split('\n'), 0, None, []
    while i < len(lines):
        line = lines[i]
        if line.startswith('//=='):
            found.append(('section', line.strip('/= ')))
        elif line.startswith('/*'):
            j = i
            while '*/' not in lines[j]:
                j += 1
            comment = '\n'.join(lines[i:j + 1])
            found.append(['block', comment, []])
            i = j
        elif re.match(r'(OPD_API|OPD_INLINE|typedef|static inline|struct \w+ \{|enum \w* ?\{|#define OPD_)', line):
            j, depth = i, 0
            if line.startswith('#define'):
                while lines[j].endswith('\\'):
                    j += 1
                call = re.match(r'#define \w+\([^)]*\)', line)
                said = call.group() if call else line.split(' /*')[0].rstrip(' \\')
            else:
                while True:
                    depth += lines[j].count('{') - lines[j].count('}')
                    if depth == 0 and (lines[j].rstrip().endswith((';', '}')) or re.search(r';\s*(/\*.*\*/)?$', lines[j])):
                        break
                    j += 1
                said = '\n'.join(lines[i:j + 1])
                if line.startswith(('OPD_INLINE', 'static inline')) and '{' in said:
                    said = said[:said.index('{')].rstrip() + ';'
            if not re.search(r'\bOPDI_|\bopdi_', said.split('(')[0]):
                if not found or found[-1][0] != 'block' or (i and not lines[i - 1].strip()):
                    found.append(['block', None, []])
                found[-1][2].append(said)
            i = j
        i += 1
    return [one for one in found if one[0] == 'section' or one[2] or one[1]]


def names_of(said):
    found = []
    for one in said:
        m = re.match(r'#define (\w+)', one) or re.search(r'\(\*(opd_\w+)\)\(', one) or re.search(r'\b(opd_\w+)\(', one) or \
            re.search(r'\}\s*(\w+);\s*$', one) or re.search(r'\b(opd_\w+);', one) or re.match(r'(?:struct|enum) (\w+)', one)
        if m:
            found.append(m.group(1))
    return found


def api_page(path, text):
    """Returns (anchor, title, page, names) for a section of declarations, or None if the file has no section."""
    banner = re.search(r'^//  >>api:(\w+)\s+(.*)$', text, re.M)
    if not banner:
        return None
    out, names = ['# %s' % (banner.group(2)[0].upper() + banner.group(2)[1:]), '',
                  'Section `>>api:%s` of the header.' % banner.group(1), ''], []
    for one in declarations(text):
        if one[0] == 'section':
            out += ['## ' + one[1], '']
            continue
        _, comment, said = one
        said = [re.sub(r'\n {8}', '\n', part[8:]) if part.startswith('OPD_API ') else re.sub('^OPD_INLINE ', '', part)
                for part in said]
        mine = names_of(said)
        if mine:
            names += mine
            out += ['### ' + ', '.join('`%s`' % name for name in mine[:4]) + (', ...' if len(mine) > 4 else ''), '']
        if said:
            out += ['```C', '\n'.join(said), '```', '']
        if comment:
            out += [comment_text(comment), '']
    return banner.group(1), banner.group(2), '\n'.join(out).rstrip() + '\n', names


#-- operators ----------------------------------------------------------------------------------------------------------

def field(body, name):
    m = re.search(r'\bop->%s = ([^;]*);' % name, body)
    return m and ' '.join(m.group(1).split())


def chained(body, name):
    """Returns True if the card sets a field for a kernel, alone or in a chain of assignments."""
    return re.search(r'\bop->%s = ' % name, body) is not None


def cuda_rows():
    """Returns {operator: kernel} for the tables of the CUDA plug-in."""
    found = {}
    for path, _ in join.rows(join.COMPANION_LIST):
        text = join.read(os.path.join(join.SRC, path)).decode('utf-8')
        found.update(re.findall(r'\{"([\w.]+)", (opdi?_\w+)', text))
        for macro, rows in re.findall(r'^#define (OPDI_CU_\w+)\(name\)((?:.*\\\n)*.*)$', text, re.M):
            for name in re.findall(macro + r'\("([\w.]+)"\)', text):
                found.update((name + more, kernel) for more, kernel in re.findall(r'\{name(?: "(\w+)")?, (opdi?_\w+)', rows))
    return found


# A function that sets fields of several cards.
FILLS = re.compile(r'^(?:static|OPDI_INTERNAL) void (opdi_\w+)\(opd_op_desc \*op\b(.*?)\) \{\n((?:.*\n)*?)\}$', re.M)


def fills_of(files):
    """Returns {function that sets fields of a card: (names of the parameters after op, lines)}."""
    text = '\n'.join(text for path, _, text in files if path.startswith('ops/'))
    return {name: (re.findall(r'(\w+)(?:,|$)', re.sub(r'\s+', ' ', rest)), body) for name, rest, body in FILLS.findall(text)}


def filled(body, functions, seen=()):
    """Returns the lines of a card, and of the functions that it calls to set its fields."""
    for name, given in re.findall(r'\b(opdi_\w+)\(op\b([^;]*)\);', body):
        if name in functions and name not in seen:
            names, lines = functions[name]
            for one, word in zip(names, printing.split_arguments(given.lstrip(', '))):
                lines = re.sub(r'(?<!->)\b%s\b' % one, lambda m: word, lines)         # not a field of this name
            body += filled(lines, functions, seen + (name,))
    return body


def traits(operator, cuda, functions):
    """Returns descriptions of an operator's derivative, batching rule, dtype in mixed precision, CUDA kernel, and
    other forms."""
    body, name = filled(operator.body, functions), operator.schema.name
    composite, backward = chained(body, 'composite'), field(body, 'backward')
    formula = chained(body, 'formula') or 'OPDI_OPTAG_FORMULA' in body
    derivative = 'of its parts' if composite else 'none' if backward == 'OPD_NOT_DIFFERENTIABLE' else \
        'yes' if backward or chained(body, 'autograd') else 'none'
    rule = field(body, 'vmap')
    vmap = VMAP.get((rule or '').replace('OPD_BATCH_', ''), 'by a rule of its own' if rule else
                    'through its parts' if composite else 'element by element')
    policy = (field(body, 'autocast') or 'OPD_AUTOCAST_KEEP').replace('OPD_AUTOCAST_', '')
    word = re.sub('(_NOT)?_CPU$', '', policy)
    if word not in AUTOCAST:
        sys.exit('%s: the autocast policy %s has no description in src/reference.py' % (name, policy))
    cast = AUTOCAST[word] + ('' if ';' in AUTOCAST[word] else ', not on the CPU' if policy.endswith('_NOT_CPU') else
                             ', on the CPU' if policy.endswith('_CPU') else '')
    kernel = cuda.get(name)
    on_cuda = 'on the CPU' if kernel == 'opd_cpu_fallback' else 'yes' if kernel or formula else \
        'through its parts' if composite or chained(body, 'any') else 'no'
    forms = [form for form in ((field(body, 'inplace') and 'in place'), (field(body, 'out') and 'out=')) if form]
    return derivative, vmap, cast, on_cuda, ', '.join(forms) or 'none'


def family_page(tree, family, operators, cuda, functions):
    out = ['# Operators: %s' % family, '', 'Schemas, the functions that call them, and what each supports. '
           'PyTorch has the same operators under the same names.', '']
    for operator in operators:
        derivative, vmap, cast, on_cuda, forms = traits(operator, cuda, functions)
        out += ['### `aten::%s`' % operator.schema.name, '', operator.says[0].upper() + escaped(operator.says)[1:] + '.', '',
                '```C', operator.text]
        for function in tree.functions(operator):
            out += function.head('', ');')
        out += ['```', '', 'Derivative: %s. vmap: %s. Autocast: %s. CUDA: %s. Other forms: %s.' % (
            derivative, vmap, cast, on_cuda, forms), '']
    return '\n'.join(out).rstrip() + '\n'


#-- pages --------------------------------------------------------------------------------------------------------------

def pages():
    """Returns {file: text} for all pages."""
    tree, made, index = join.tree(), {}, []
    index += ['# Reference', '', 'Generated from the header. [The guide](../../guide.md) explains how the parts work together.', '',
              '## Functions', '', '| page | functions, types and macros |', '|---|---|']
    for path, _, text in tree.files:
        name = path.split('/')[-1][:-2]
        if not path.startswith('api/') or not path.endswith('.h') or name in NOT_API:
            continue
        page = api_page(path, text)
        if page and page[3]:
            made[name + '.md'] = page[2]
            index.append('| [%s](%s.md) | %d |' % (page[1], name, len(page[3])))
    index += ['', '## Operators', '', '| family | operators |', '|---|---|']
    cuda, everyone = cuda_rows(), []
    functions = fills_of(tree.files)
    for family in tree.families():
        mine = [operator for operator in tree.operators() if operator.family == family]
        file = 'operators_%s.md' % family
        made[file] = family_page(tree, family, mine, cuda, functions)
        index.append('| [%s](%s) | %d |' % (family, file, len(mine)))
        everyone += [(operator.schema.name, file, operator) for operator in mine]
    index += ['', 'All of them by name: [operators.md](operators.md).']
    made['README.md'] = '\n'.join(index) + '\n'
    rows = ['# All operators', '', '| operator | function | family |', '|---|---|---|']
    for name, file, operator in sorted(everyone, key=lambda one: (one[0].lower().lstrip('_'), one[0])):
        rows.append('| `aten::%s` | `opd_%s` | [%s](%s#aten%s) |' % (
            name, operator.function, operator.family, file, re.sub(r'[^\w-]', '', name.lower())))
    made['operators.md'] = '\n'.join(rows) + '\n'
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--check', action='store_true')
    args, made, old = parser.parse_args(), pages(), []
    os.makedirs(TO, exist_ok=True)
    for name in sorted(set(made) | set(os.listdir(TO))):
        path = os.path.join(TO, name)
        have = join.read(path).decode('utf-8') if os.path.exists(path) else None
        if have == made.get(name):
            continue
        old.append(name)
        if not args.check and name in made:
            join.write(path, made[name].encode('utf-8'))
        elif not args.check:
            os.remove(path)
    if args.check and old:
        sys.exit('examples/guide/reference is out of date (run python3 src/reference.py): ' + ', '.join(old))


if __name__ == '__main__':
    main()
