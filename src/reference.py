#!/usr/bin/env python3
"""Writes examples/guide/reference/ from src/api/ and the cards of src/ops/: a page for each section of declarations and
for each family of operators, and lists of all operators and of all functions, types and macros.  Names that begin with
opdi_ or OPDI_ are left out.

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
NOT_API = {'formula_helpers', 'host_table', 'linking', 'places', 'operators'}
PYTORCH = 'https://docs.pytorch.org/docs/stable/generated/%s.html'
# What types of arguments are called.
TYPES = {'Tensor': 'a tensor', 'Tensor[]': 'a list of tensors', 'Scalar': 'a number', 'Scalar[]': 'a list of numbers',
         'int': 'an integer', 'int[]': 'a list of integers', 'float': 'a double', 'float[]': 'a list of doubles',
         'bool': 'a bool', 'bool[]': 'a list of bools', 'str': 'a text', 'ScalarType': 'a dtype', 'Layout': 'a layout',
         'Device': 'a device', 'Generator': 'a generator', 'MemoryFormat': 'a memory format',
         'Tensor?[]': 'a list of tensors or None', 'Dimname': 'a name'}
VMAP = {'POINTWISE': 'element by element', 'SHIFT_DIM': 'along dims', 'MATMUL': 'as a product', 'FOLD': 'sample by sample',
        'VIEW': 'as a view', 'FACTORY': 'as a factory', 'DECOMPOSE': 'through its parts', 'LOOP': 'one example at a time'}


# The descriptions of OPD_AUTOCAST_NAME.  NAME_NOT_CPU and NAME_CPU apply only to some devices.
AUTOCAST = {'KEEP': 'keeps dtypes', 'LOWER': 'lower precision', 'FP32': 'float32', 'SET': 'float32 sums',
            'APPEND': 'float32 sums', 'PROMOTE': 'the widest dtype', 'BANNED': 'refused', 'FP32_SET_DTYPE': 'float32 sums',
            'FP32_APPEND_DTYPE': 'float32 sums', 'SET_FP32': 'float32 sums; float32 on the CPU',
            'PROMOTE_FP32': 'the widest dtype; float32 on the CPU', 'BANNED_FP32': 'refused; float32 on the CPU'}


#-- declarations -------------------------------------------------------------------------------------------------------

def comment_text(text):
    """Returns a comment as Markdown."""
    lines = text.strip()[2:-2].split('\n')
    return markdown([lines[0].strip()] + [line[3:] if line.startswith('   ') else line.strip() for line in lines[1:]])


def markdown(body):
    """Returns lines as Markdown: paragraphs, lists, and lines with more indentation as code."""
    out, text, code, item = [], [], [], False

    def flush():
        nonlocal text, code
        out.extend(escaped('\n'.join(text)).split('\n') if text else [])
        while code and not code[-1].strip():
            code.pop()
        out.extend((['', '```text'] if out and out[-1] else ['```text'] if code else []) * bool(code) + code +
                   ['```', ''] * bool(code))
        text, code = [], []

    for line in body + ['']:
        listed = item
        item = line.startswith('- ') or (item and line.startswith('  ') and line[2:3] != ' ')
        if line.startswith('  ') and line.strip() and not item:
            if text:
                flush()
            code.append(line.rstrip())
        elif code and not line.strip():
            code.append('')
        else:
            if code:
                flush()
            if text and listed and not item:
                text.append('')
            elif text and text[-1] and line.strip() and not item and len(text[-1] + line.split()[0]) < 112:
                text[-1] += '\\'                  # the word would have fitted: the line begins on purpose
            text.append(line.rstrip() if item else line.strip())
    flush()
    return re.sub(r'\n{3,}', '\n\n', '\n'.join(out)).strip()


NAME = re.compile(r'(`[^`]*`|\$?\b(?:opd|OPD)_\w+\*?(?:\((?:[^()\n`]|\([^()\n`]*\))*\)| \*)?)')


def escaped(text):
    """Returns text as Markdown: names and calls are code, and all other characters are plain.  Code stays as it is."""
    parts = NAME.split(text)
    for i, part in enumerate(parts):
        if i % 2:
            parts[i] = part if part.startswith('`') else '`%s`' % part
        else:
            parts[i] = part.replace('<', '&lt;').replace('*', '\\*').replace('|', '\\|').replace('_', '\\_')
    return ''.join(parts)


def without_comments(text):
    return re.sub(r'/\*.*?\*/', '', text, flags=re.S)


def declaration_end(lines, i):
    """Returns the number of the last line of the declaration, with its comment, that begins in line i."""
    j = i
    if lines[i].startswith('#define'):
        while lines[j].endswith('\\'):
            j += 1
        return j
    while True:
        code = without_comments('\n'.join(lines[i:j + 1]))
        if '/*' not in code and code.count('{') == code.count('}') and code.rstrip().endswith((';', '}')):
            return j
        j += 1


def shown(lines):
    """Returns a declaration as the reference shows it: a macro without its text, and a function without its body."""
    if lines[0].startswith('#define'):
        call = re.match(r'#define \w+(\([^)]*\))?', lines[0])
        plain = not call.group(1) and len(lines) == 1 and not re.search(r'\bOPDI_|opd_guard', lines[0])
        return lines[0].split(' /*')[0].rstrip() if plain else call.group()
    said = re.sub(r'#include "\w+\.printed\.h"', '    ...', '\n'.join(lines))
    if said.startswith(('OPD_INLINE', 'static inline')) and '{' in said:
        said = said[:said.index('{')].rstrip() + ';'
    said = re.sub(r'\n {8}', '\n', said[8:]) if said.startswith(('OPD_API ', 'OPD_NEW ')) else said
    return re.sub(r'^(OPD_INLINE|OPDI_API_OPEN) ', '', said)


DECLARATION = re.compile(r'(OPD_API|OPD_NEW|OPDI_API_OPEN|OPD_INLINE|typedef|static inline|struct \w+ \{|enum \w* ?\{|#define OPD_)')
OTHER_CODE = re.compile(r'#define OPDI_|template|inline|namespace')
# Types, functions and macros that only macros and other inline functions use.
HELPERS = re.compile('opdi_')


MAY_CHANGE = ' (may change)'                                  # the end of the titles of chapters that are not stable


def declarations(text):
    """Returns ('section', title) and ['block', comment or None, [(name, declaration)]] for a file of src/api/, in order."""
    lines, i, found, block = text.split('\n'), 0, [], None
    gone = set(re.findall(r'^#undef (\w+)', text, re.M))
    while i < len(lines):
        line, j = lines[i], i
        if line.startswith('//=='):
            found.append(('section', line.strip('/= ')))
            block = None
        elif line.startswith('/*'):
            while '*/' not in lines[j]:
                j += 1
            block = ['block', '\n'.join(lines[i:j + 1]), []]
            found.append(block)
        elif DECLARATION.match(line):
            j = declaration_end(lines, i)
            name = name_of('\n'.join(lines[i:j + 1]))
            if name and not HELPERS.match(name) and name not in gone:
                if not block:
                    block = ['block', None, []]
                    found.append(block)
                block[2].append((name, shown(lines[i:j + 1])))
            elif block and not block[2]:
                block = None
        elif OTHER_CODE.match(line) or (not line.strip() and block and block[2]):
            block = None
        i = j + 1
    return placed(found)


def placed(found):
    """Returns the blocks, each name once: a declaration without a comment moves to the comment of the file that names
    it, if it is a macro.  Leaves out comments without declarations."""
    commented = {name for one in found if one[0] == 'block' and one[1] for name, _ in one[2]}
    seen, bare = set(), {}
    for one in found:
        if one[0] == 'block' and not one[1]:
            for name, said in one[2]:
                if said.startswith('#define') and name not in commented:
                    bare.setdefault(name, said)
            one[2] = [(name, said) for name, said in one[2] if name not in commented]
    for one in sorted((one for one in found if one[0] == 'block' and one[1]), key=lambda one: bool(one[2])):
        mentioned = [name for name in bare if re.search(r'\b%s\b' % name, one[1])]
        one[2] += [(name, bare.pop(name)) for name in mentioned]
        commented.update(mentioned)
    for one in found:
        if one[0] == 'block':
            one[2] = [(name, said) for name, said in one[2] if (one[1] or name not in commented) and
                      not (name in seen or seen.add(name))]
    return [one for one in found if one[0] == 'section' or one[2]]


def name_of(said):
    """Returns the name of a declaration, or None."""
    code = without_comments(said)
    patterns = [r'#define (\w+)', r'(?:typedef )?(?:struct|enum|union)[^;(]*\{.*\}\s*(\w+);\s*$',
                r'\w[^;]*\(\*(opd_\w+)\)\(', r'[^{]*?\b(opdi?_\w+)\(', r'.*\b(\w+);\s*$', r'(?:struct|enum) (\w+)']
    if re.search(r'^(?:typedef )?(?:struct|enum|union)\b[^;(]*\{', code):
        patterns = patterns[1:2] + patterns[5:]
    for pattern in patterns:
        m = re.match(pattern, code, re.S)
        if m:
            return m.group(1)
    return None


def heading(names):
    """Returns the lines of a heading for names, each with an anchor."""
    anchors = [''.join('<a id="%s"></a>' % name for name in names)] if len(names) > 1 else []
    return anchors + ['### ' + ', '.join('`%s`' % name for name in names), '']


def block_lines(comment, said):
    """Returns the lines of a group of declarations [(name, declaration)] with a comment."""
    names, parts = [name for name, _ in said], [part for _, part in said]
    text = [comment_text(comment), ''] if comment else []
    return heading(names) + ['```C', '\n'.join(parts), '```', ''] + text


def api_page(path, text):
    """Returns (title, page, names) for a section of declarations, or None if the file has no section."""
    banner = re.search(r'^//  >>api:(\w+)\s+(.*)\n((?://  .*\n|//\n)*)', text, re.M)
    if not banner:
        return None
    more = [line[4:] for line in banner.group(3).split('\n')]
    title, out, names = banner.group(2)[0].upper() + banner.group(2)[1:], [], []
    for one in declarations(text):
        if one[0] == 'section':
            out += ['## ' + one[1], '']
            continue
        names += [name for name, _ in one[2]]
        out += block_lines(one[1], one[2])
    said = 'Section `>>api:%s` of the header.' % banner.group(1)
    if title.endswith(MAY_CHANGE):
        title = title[:-len(MAY_CHANGE)]
        said += ' These names [may change](../releases.md#stable-names) with each minor version.'
    else:
        said += ' These names are [stable](../releases.md#stable-names).'
    head = ['# ' + title, '', said, '']
    if ''.join(more).strip():
        head += [markdown(more), '']
    return banner.group(2), '\n'.join(head + out).rstrip() + '\n', names


def configuration_page(tree):
    """Returns (title, page, names) for the macros that a program defines, and those of src/api/config.h."""
    manual = tree.text('api/manual.txt') or join.read(os.path.join(join.SRC, 'api', 'manual.txt')).decode('utf-8')
    part = re.search(r'^   CONFIGURATION \((.*?)\)\n((?:     .*\n)+)', manual, re.M)
    options = sorted(set(re.findall(r'\b(?:OPD|OPDISPATCH)_[A-Z]+(?:_[A-Z]+)*\b', part.group(2))) - {'OPD_NO'} |
                     {word for _, words, _ in tree.files for word in words if word.startswith('OPD_NO_')})
    config = tree.text('api/config.h')
    limits = [(name, '#define %s %s' % (name, value.strip())) for name, value in re.findall(
        r'^#define (OPD_(?:VERSION\w*|MAX_\w+)) (.*)$', config, re.M)]
    out = ['# Macros that you define, and limits', '', ''.join('<a id="%s"></a>' % name for name in options),
           '## Macros that you define before the implementation', '', '```text',
           '\n'.join(line[5:] for line in part.group(2).rstrip('\n').split('\n')), '```', '']
    out += heading([name for name, _ in limits]) + ['```C', '\n'.join(said for _, said in limits), '```', '']
    out += heading(['OPD_EXPORT']) + ['Before a function: other programs and libraries see it, also if the file is compiled '
                                      'with `-fvisibility=hidden`.', '']
    return 'macros that you define, and limits', '\n'.join(out).rstrip() + '\n', options + [n for n, _ in limits] + ['OPD_EXPORT']


#-- operators ----------------------------------------------------------------------------------------------------------

def field(body, name):
    m = re.search(r'\bop->%s = ([^;]*);' % name, body)
    return m and ' '.join(m.group(1).split())


def chained(body, name):
    """Returns True if the card sets a field for a kernel, alone or in a chain of assignments."""
    return re.search(r'\bop->%s = ' % name, body) is not None


def cuda_rows():
    """Returns {operator: kernel} for the tables of the CUDA plug-in.  In the table of special functions, the kernel is
    the number of a function."""
    found, kernel = {}, r'(opdi?_\w+|OPDI_CU_SPECIAL_[\w#]+)'
    for path, _ in join.rows(join.COMPANION_LIST):
        text = join.read(os.path.join(join.SRC, path)).decode('utf-8')
        found.update(re.findall(r'\{"([\w.]+)", ' + kernel, text))
        for macro, rows in re.findall(r'^#define (OPDI_CU_\w+)\(name(?:, \w+)?\)((?:.*\\\n)*.*)$', text, re.M):
            for name in re.findall(macro + r'\("([\w.]+)"(?:, \w+)?\)', text):
                found.update((name + more, one) for more, one in re.findall(r'\{name(?: "([\w.]+)")?, ' + kernel, rows))
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


def first_word(says, operator):
    """Returns a description that begins with a capital letter, or with a name as code."""
    word = re.match(r'\w+', says)
    names = [a[1] for a in operator.schema.args] + [operator.schema.name.split('.')[0]]
    if word and says[word.end():word.end() + 1] in ('(', '^'):
        return escaped(says)
    if word and (word.group() in names or re.search(r'[_\d]', word.group())):
        return '`%s`%s' % (word.group(), escaped(says[word.end():]))
    return says[0].upper() + escaped(says)[1:] if says[0] not in '<*|_`' else escaped(says)


def arguments_of(schema):
    """Returns a sentence with the arguments of a schema, or None."""
    said = []
    for kind, name, default in schema.args:
        optional, plain = kind.endswith('?'), kind.rstrip('?')
        said.append('`%s` %s%s%s' % (name, TYPES.get(plain, plain), ' or None' if optional else '',
                                     '' if default is None else ' (default `%s`)' % default))
    return 'Arguments: %s.' % '; '.join(said) if said else None


def pytorch_pages(tree):
    """Returns {operator without its overload: name of PyTorch's function} for functions with a page."""
    found = {}
    for name in reversed(tree.listed('api/pytorch_pages.txt')):
        key = name.replace('torch.nn.functional.', '').replace('torch.', '').replace('.', '_')
        if key not in found or not name.startswith('torch.nn.'):
            found[key] = name
    return found


def family_page(tree, family, operators, cuda, functions):
    out = ['# Operators: %s' % family, '', 'Schemas, the functions that call them, and what each supports. '
           'PyTorch has the same operators under the same names.', '']
    there = pytorch_pages(tree)
    for operator in operators:
        derivative, vmap, cast, on_cuda, forms = traits(operator, cuda, functions)
        base = operator.schema.name.split('.')[0]
        page = there.get(base) or there.get(base.rstrip('_') if not base.startswith('_') else base)
        names = [function.name for function in tree.functions(operator)]
        out += [''.join('<a id="opd_%s"></a>' % name for name in names), '### `aten::%s`' % operator.schema.name, '',
                first_word(operator.says, operator) + '.', '', '```C', operator.text]
        for function in tree.functions(operator):
            out += function.head('', ');')
        out += ['```', '']
        out += [one for one in (arguments_of(operator.schema), page and 'PyTorch: [%s](%s).' % (page, PYTORCH % page)) if one]
        out += ['', 'Derivative: %s. vmap: %s. Autocast: %s. CUDA: %s. Other forms: %s.' % (
            derivative, vmap, cast, on_cuda, forms), '']
    return re.sub(r'\n{3,}', '\n\n', '\n'.join(out)).rstrip() + '\n'


#-- pages --------------------------------------------------------------------------------------------------------------

def api_pages(tree):
    """Returns {file: (title, text, names)} for the pages of declarations."""
    made = {'configuration.md': configuration_page(tree)}
    for path, _, text in tree.files:
        name = path.split('/')[-1][:-2]
        if path.startswith('api/') and path.endswith('.h') and name not in NOT_API:
            page = api_page(path, text)
            if page and page[2]:
                made[name + '.md'] = page
    return made


# Macros of src/api/ that programs do not use.
INTERNAL = {'OPD_API', 'OPD_NEW', 'OPD_INLINE', 'OPD_PRINTF_LIKE', 'OPD_UNUSED', 'OPD_FORMULA_NUMBER'}


def must_be_complete(tree, names):
    """Ends the program with a message if a public function or macro is on no page."""
    text = ''.join(text for path, _, text in tree.files if path.startswith('api/') and path.endswith('.h'))
    public = set(re.findall(r'#define (OPD_\w+)', text)) | {m.group(2) for m in printing.PROTOTYPE.finditer(text)}
    lost = sorted(name for name in public - set(names) - INTERNAL if not HELPERS.match(name))
    if lost:
        sys.exit('src/reference.py writes no page with ' + ', '.join(lost))


def index_page(names):
    """Returns the page that lists all names, from {name: page and anchor}."""
    letters, found = {}, sorted(names, key=lambda name: (re.sub(r'^opd\w*?_+', '', name.lower()), name))
    for name in found:
        letters.setdefault(re.sub(r'^opd\w*?_+', '', name.lower())[:1].upper(), []).append(name)
    out = ['# All functions, types and macros', '', 'In alphabetical order, without the prefixes `opd_` and `OPD_`. '
           '[Operators](operators.md) have a list of their own.', '',
           ' '.join('[%s](#%s)' % (letter, letter.lower()) for letter in letters), '']
    for letter, mine in letters.items():
        out += ['## ' + letter, ''] + ['- [`%s`](%s)' % (name, names[name]) for name in mine] + ['']
    return '\n'.join(out).rstrip() + '\n'


def pages():
    """Returns {file: text} for all pages."""
    tree, made, index, names = join.tree(), {}, [], {}
    index += ['# Reference', '', 'Generated from the header. [The guide](../../guide.md) explains how the parts work together. '
              '[All functions, types and macros](index.md) by name; [all operators](operators.md) by name.', '',
              '## Functions', '', '| page | functions, types and macros |', '|---|---|']
    for file, (title, text, mine) in api_pages(tree).items():
        made[file] = text
        names.update((name, '%s#%s' % (file, name.lower() if '<a id="%s">' % name not in text else name)) for name in mine)
        index.append('| [%s](%s) | %d |' % (title, file, len(mine)))
    index += ['', '## Operators', '', '| family | operators |', '|---|---|']
    cuda, everyone = cuda_rows(), []
    functions = fills_of(tree.files)
    for family in tree.families():
        mine = [operator for operator in tree.operators() if operator.family == family]
        file = 'operators_%s.md' % family
        made[file] = family_page(tree, family, mine, cuda, functions)
        index.append('| [%s](%s) | %d |' % (family, file, len(mine)))
        everyone += [(operator.schema.name, file, operator) for operator in mine]
        names.update(('opd_' + function.name, '%s#opd_%s' % (file, function.name))
                     for operator in mine for function in tree.functions(operator))
    must_be_complete(tree, names)
    made['README.md'] = '\n'.join(index) + '\n'
    made['index.md'] = index_page(names)
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
