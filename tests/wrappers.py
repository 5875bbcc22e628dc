#!/usr/bin/env python3
"""Prints the typed functions of the built-in operators into src/, from their schemas, and joins opdispatch.h.

usage: python3 tests/wrappers.py [--write] [--cc CC]

The files of src/api/op/ list the operators, a comment line for each:

    /* add.Tensor: self + alpha * other */
    OPD_API opd_tensor *opd_add(opd_tensor *self, opd_tensor *other);

The comment is written by hand; what follows it is printed: the prototypes, of the in-place form too, and in src/printed/
the list of names (opd_op_id), the list of cards and the functions' bodies.  A function keeps the name that it has; a
new one is called after its operator, add_Tensor.  To add an operator, write its card and the comment line, then run
this with --write.  Without --write it says what differs, and ends with status 1 when anything does.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'src'))
import join

WIDTH = 120
ROOM = re.compile(r'^//  >>api:op:.*?(?=^//  >>|^#endif)', re.M | re.S)
BEGIN, END = '//== printed by tests/wrappers.py', '//== end of what is printed'
CARDS = '//== cards by family, printed by tests/wrappers.py', '//== registration of the cards'
FORMS = '', '_full', '_', '_full_'

# What a schema's type is in C, how a value is made of it, and its letter in opd_op_check's signatures.
C_TYPES = {
    'Tensor': ('opd_tensor *', 'opd_value_tensor', 'T'),
    'Tensor?': ('opd_tensor *', 'opd_value_tensor', 'T'),
    'Tensor[]': ('opd_tensors ', 'opd_value_of_tensors', 'L'),
    'Tensor?[]': ('opd_tensors ', 'opd_value_of_tensors', 'L'),
    'int': ('int64_t ', 'opd_value_int', 'i'),
    'ScalarType': ('opd_scalar_type ', 'opd_value_int', 'i'),
    'MemoryFormat': ('int64_t ', 'opd_value_int', 'i'),
    'float': ('double ', 'opd_value_float', 'd'),
    'bool': ('bool ', 'opd_value_bool', 'b'),
    'str': ('const char *', 'opd_value_str', 's'),
    'str?': ('const char *', 'opd_value_str', 's'),
    'Device': ('opd_device ', 'opd_value_device', 'D'),
    'Generator?': ('opd_generator *', 'opd_value_generator', 'G'),
    'int[]': ('opd_ints ', 'opd_value_of_ints', 'I'),
    'int[]?': ('opd_ints ', 'opd_value_optional_ints', 'I'),
}
ANY = ('opd_value ', '', 'V')                                    # numbers, and what may be None

# The macro that leaves a family out, where that is not OPD_NO_OP_<room>; None: it is always there.
LEFT_OUT = {'create': None, 'view': None, 'pointwise': 'OPD_NO_OPERATORS', 'reduce': 'OPD_NO_OPERATORS',
            'linalg': 'OPD_NO_OPERATORS'}

# Short functions that do not take just what has no default: callers nearly always say more, or never do.
TAKES = {
    'tril_indices': 2, 'triu_indices': 2, 'normal_': 3, 'uniform_': 3, 'exponential_': 2, 'bernoulli_.float': 2,
    'normal_functional': 3, 'normal.Tensor_float': 2, 'normal.float_float': 3, 'slice.Tensor': 5, '_to_copy': 2,
    'slice_copy.Tensor': 5, 'sum.dim_IntList': 3, 'mean.dim': 3, 'prod.dim_int': 3, 'var.correction': 4,
    'std.correction': 4, 'var_mean.correction': 4, 'std_mean.correction': 4, 'amax': 3, 'amin': 3, 'max.dim': 3,
    'min.dim': 3, 'any.dim': 3, 'all.dim': 3, 'any.dims': 3, 'all.dims': 3, 'norm.Scalar': 2,
    'norm.ScalarOpt_dim': 4, 'frobenius_norm.dim': 3, 'special_logsumexp': 3, 'sort.stable': 4, 'median.dim': 3,
    'nanmedian.dim': 3, 'argsort.stable': 4, 'histc': 2, 'rrelu_with_noise.out': 7,
}

# Optional arguments that are an opd_value, though their type would be as well.
VALUES = {
    ('nansum', 'dim'), ('nanmean', 'dim'), ('linalg_vector_norm', 'dim'), ('convolution_backward', 'bias_sizes'),
    ('searchsorted.Tensor', 'side'), ('searchsorted.Tensor', 'sorter'),
    ('upsample_nearest1d.vec', 'output_size'),
    ('upsample_nearest2d.vec', 'output_size'),
    ('upsample_nearest3d.vec', 'output_size'),
    ('_upsample_nearest_exact1d.vec', 'output_size'),
    ('_upsample_nearest_exact2d.vec', 'output_size'),
    ('_upsample_nearest_exact3d.vec', 'output_size'),
    ('upsample_linear1d.vec', 'output_size'),
    ('upsample_bilinear2d.vec', 'output_size'),
    ('upsample_trilinear3d.vec', 'output_size'),
    ('upsample_bicubic2d.vec', 'output_size'),
    ('_upsample_bilinear2d_aa.vec', 'output_size'),
    ('_upsample_bicubic2d_aa.vec', 'output_size'),
}

# Functions that call by themselves, a few nanoseconds faster: those that are called most, and those that formulas of the
# header call.  The others go through opd_given_*.
DIRECT = set('''empty zeros ones full view reshape expand transpose t permute select slice unsqueeze squeeze_dim flatten
contiguous clone copy_ to_dtype add add_ sub sub_ mul mul_ div div_ neg exp log sqrt rsqrt tanh sigmoid relu gelu silu
pow_Tensor_Scalar eq gt where_self sum sum_dim mean mean_dim amax softmax log_softmax mm bmm matmul addmm linear conv2d
convolution layer_norm cross_entropy_loss embedding cat stack zero_ fill_'''.split())

DUMP = '''
#include "opdispatch.h"
#include <stdio.h>
#include <string.h>
static char text[4096];
static void show(const opd_op *op) {
    if (!op) { puts(""); return; }
    (void)opd_schema_print(opd_op_schema(op), text, sizeof text);
    puts(text + strlen("aten::"));
}
int main(void) {
    int i;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const char *form = op && opd_op_card(op) ? opd_op_card(op)->inplace : NULL;
        char name[200] = "";
        show(op);
        if (form) { (void)snprintf(name, sizeof name, "aten::%.*s", (int)strcspn(form, "("), form); }
        show(form ? opd_find(name) : NULL);
    }
    return opd_ok() ? 0 : 1;
}
'''


def split_arguments(text):
    """The parts of "a, b[c, d], e" between commas outside of brackets."""
    parts, depth, part = [], 0, ''
    for c in text:
        depth += (c in '([') - (c in ')]')
        if c == ',' and depth == 0:
            parts.append(part.strip())
            part = ''
        else:
            part += c
    return parts + ([part.strip()] if part.strip() else [])


class Schema:
    """name, args: (type, name, default or None) each, returns: the text behind "->"."""

    def __init__(self, text):
        self.name, rest = text.split('(', 1)
        depth, at = 1, 0
        while depth:
            depth += (rest[at] == '(') - (rest[at] == ')')
            at += 1
        self.returns = re.sub(r'^(Tensor\[\]) \w+$', r'\1', rest[at:].strip()[2:].strip())       # without its name
        self.args = []
        for part in split_arguments(rest[:at - 1]):
            if part == '*':
                continue
            kind, name, default = re.match(r'(.*?)\s+(\w+)(?:=(.*))?$', part).groups()
            kind = re.sub(r'\([a-z!>* -]*\)', '', kind).replace('SymInt', 'int')
            self.args.append((re.sub(r'\[\d+\]', '[]', kind), name.lower(), default))     # N may be a macro

    def makes(self):
        """Whether it makes a tensor of none: then the short function goes up to the dtype."""
        names = [a[1] for a in self.args]
        return 'dtype' in names and 'layout' in names and names[0] != 'self'

    def short(self):
        if self.name in TAKES:
            return TAKES[self.name]
        if self.makes():
            return [a[1] for a in self.args].index('dtype') + 1
        count = 0
        while count < len(self.args) and self.args[count][2] is None:
            count += 1
        assert all(a[2] is not None for a in self.args[count:]), self.name + ': a default in front of what has none'
        return count


def c_type(schema, arg, short):
    if short and arg[1] == 'dtype' and (schema.makes() or schema.name in TAKES):
        return ('opd_scalar_type ', 'opd_value_dtype', 'i')
    if arg[0] == 'bool[]' or (schema.name, arg[1]) in VALUES:
        return ANY
    return C_TYPES.get(arg[0], ANY)


def results(schema):
    """The C type of the result, the function that calls, and the letter of the signature."""
    returns = schema.returns
    tensors = split_arguments(returns[1:-1]) if returns.startswith('(') else [returns]
    if returns == '()':
        return 'int ', 'opd_call_all', 'v'
    if len(tensors) > 1:
        return 'int ', 'opd_call_tensors', 'N'
    if tensors[0].endswith('[]') and tensors[0].startswith('Tensor'):
        return 'opd_tensors ', 'opd_call_list', 'L'
    if tensors[0].startswith('Tensor'):
        return 'opd_tensor *', 'opd_call_op', 'T'
    return 'opd_value ', 'opd_call_value', 'V'


def wrapped(first, parts, last, indent):
    """first, then parts between commas, then last; lines of at most WIDTH columns."""
    lines, line = [], first
    for i, part in enumerate(parts):
        text = part + (',' if i + 1 < len(parts) else last)
        if len(line) + len(text) + 1 > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = ' ' * indent + text
        else:
            line += ('' if line.endswith(('(', '{')) or not line.strip() else ' ') + text
    return lines + [line]


def names_of(name, schema):
    """(name, number of arguments) of the short function, and of the full one where that takes more."""
    count = schema.short()
    full = name[:-1] + '_full_' if name.endswith('_') else name + '_full'
    return [(name, count)] + ([(full, len(schema.args))] if count < len(schema.args) else [])


def head(name, schema, count):
    result, _, _ = results(schema)
    short = count < len(schema.args)
    parts = ['opd_tensor **rets'] if results(schema)[1] == 'opd_call_tensors' else []
    parts += [c_type(schema, a, short)[0] + a[1] for a in schema.args[:count]]
    return result + 'opd_' + name + '(', parts


def prototypes(name, schema):
    lines = []
    for one, count in names_of(name, schema):
        first, parts = head(one, schema, count)
        first = 'OPD_API ' + first
        lines += wrapped(first, parts, ');', min(len(first), 40))
    return lines


def add_bodies(quick, rest, name, schema):
    for one, count in names_of(name, schema):
        first, parts = head(one, schema, count)
        short = count < len(schema.args)
        types = [c_type(schema, a, short) for a in schema.args[:count]]
        lines = quick if one in DIRECT else rest
        lines += wrapped(first, parts, ') {', min(len(first), 40))
        lines += ['    static opd_op *op;']
        lines += (direct if one in DIRECT else given)(schema, types) + ['}']


def direct(schema, types):
    """The lines that call with an array of the arguments' values."""
    _, call, letter = results(schema)
    values = [t[1] + '(' + a[1] + ')' if t[1] else a[1] for t, a in zip(types, schema.args)]
    rets = ['rets'] if call == 'opd_call_tensors' else ['NULL'] if call == 'opd_call_all' else []
    lines = wrapped('    const opd_value args[%d] = {' % len(types), values, '};', 30)
    op = 'opd_op_typed(&op, "aten::%s", "%s")' % (schema.name, letter + ''.join(t[2] for t in types))
    first = '    return %s(' % call
    return lines + wrapped(first, [op] + rets + ['args', '%d' % len(types)], ');', 8)


def given(schema, types):
    """The line that hands the arguments on as they are, by the letters; what has no letter of its own as a value."""
    _, call, letter = results(schema)
    if len(types) > MOST:
        sys.exit('aten::%s takes %d arguments: OPD_GIVEN_MAX of the header is %d' % (schema.name, len(types), MOST))
    letters, parts = letter, []
    for t, a in zip(types, schema.args):
        plain = t[1] not in ('opd_value_dtype', 'opd_value_optional_ints')
        letters += t[2] if plain else 'V'
        parts.append(('OPD_CAST(int64_t, %s)' if t[0] == 'opd_scalar_type ' and plain else '%s' if plain else
                      t[1] + '(%s)') % a[1])
    rets = ['rets'] if call == 'opd_call_tensors' else []
    first = '    return %s(' % call.replace('opd_call', 'opd_given')
    return wrapped(first, ['&op', '"aten::%s"' % schema.name, '"%s"' % letters] + rets + parts, ');', len(first))


MOST = 20                                                        # OPD_GIVEN_MAX
FAMILY = {}                                                      # the room of each operator


def read_rooms(text):
    """The operators of the rooms, in order: [(name of the operator, name of the function or None)]."""
    operators = []
    for room in ROOM.finditer(text):
        family = re.search(r'>>api:op:(\w+)', room.group(0)).group(1)
        for m in re.finditer(r'^/\* ([\w.]+): .* \*/\n(?:OPD_API [^(]*\bopd_(\w+)\()?', room.group(0), re.M):
            FAMILY[m.group(1)] = family
            operators.append((m.group(1), m.group(2)))
        rest = re.sub(r'^(/\* [\w.]+: .* \*/|OPD_API [^;]*;|//.*|)\n', '', room.group(0), flags=re.M)
        if rest:
            sys.exit('neither "/* operator: what it does */" nor a prototype: ' + rest.split('\n')[0])
    names = [card_name(o) for o, _ in operators]
    if len(set(names)) < len(names):
        sys.exit('listed twice: ' + next(n for n in names if names.count(n) > 1))
    return operators


def replace_between(text, begin, end, lines):
    at = text.index(begin) + len(begin)
    stop = join.above_mark(text, text.index(end, at))
    return text[:at] + '\n' + '\n'.join(lines) + '\n' + text[stop:]


def card_name(operator):
    return operator.replace('.', '_')


def print_lists(text, operators):
    enum = wrapped('    ', ['OPD_OP_' + card_name(o) for o, _ in operators] + ['OPD_OP_COUNT'], '', 4)
    text = replace_between(text, 'typedef enum opd_op_id {', '} opd_op_id;', enum)
    names = wrapped('    ', ['"aten::' + o + '"' for o, _ in operators], '', 4)
    text = replace_between(text, 'static const char *const opd_builtin_names[] = {', '};', names)
    return replace_between(text, *CARDS, cards_by_family([o for o, _ in operators]))


def cards_by_family(operators):
    """A list of cards for each family, each of which can be left out, and the list of lists."""
    lines = ['typedef void (*opdi_card_fn)(opd_op_desc *op);']
    table = []
    for family in dict.fromkeys(FAMILY[o] for o in operators):
        cards = ['opdi_card_' + card_name(o) for o in operators if FAMILY[o] == family]
        macro, name = LEFT_OUT.get(family, 'OPD_NO_OP_' + family.upper()), 'opdi_cards_' + family
        listed = ['static const opdi_card_fn %s[] = {' % name] + wrapped('    ', cards, '', 4) + ['};']
        lines += ['#if defined(%s)' % macro, '#define %s NULL' % name, '#else'] + listed + ['#endif'] if macro else listed
        table.append('    {%d, %s, "%s"}' % (len(cards), name, macro or ''))
    lines += ['static const struct { int n; const opdi_card_fn *cards; const char *macro; } opdi_families[] = {']
    return lines + ',\n'.join(table).split('\n') + ['};']


def untyped(text, operators):
    """The header with functions that take anything, those not printed yet too: cards may call them."""
    types = {}                                                   # of the results, by function

    def declared(m):
        types[m.group(2)] = m.group(1)
        return 'OPD_API ' + m.group(1) + m.group(2) + '();'

    text = ROOM.sub(lambda room: re.sub(r'^OPD_API ([^;(]*[ *])(opd_\w+)\([^;]*;', declared, room.group(0),
                                        flags=re.M), text)
    new = {}
    for operator, name in operators:
        name = 'opd_' + (name or card_name(operator))
        for form in FORMS:
            new[name.rstrip('_') + form] = types.get(name, 'opd_tensor *')
    new = {name: kind for name, kind in new.items() if name not in types}
    types.update(new)
    text = text.replace('typedef enum opd_op_id {',
                        ''.join('%s%s();\n' % (kind, name) for name, kind in new.items()) + 'typedef enum opd_op_id {')
    bodies = ['%s%s() { %s r; return r; }' % (kind, name, kind) for name, kind in types.items()]
    return replace_between(text, BEGIN, END, bodies)


def read_schemas(text, operators, cc):
    """(schema, schema of the in-place form or None) of each, from the header itself."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, 'opdispatch.h'), 'w') as f:
            f.write(join.expanded(untyped(text, operators)))
        with open(os.path.join(folder, 'dump.c'), 'w') as f:
            f.write('#define OPDISPATCH_IMPLEMENTATION\n' + DUMP)
        program = os.path.join(folder, 'dump')
        built = subprocess.run(cc.split() + ['-std=gnu11', '-w', '-Wno-int-conversion',
                               '-Wno-incompatible-pointer-types', '-O0', '-I' + folder, os.path.join(folder, 'dump.c'),
                               '-o', program, '-lm', '-lpthread'])
        if built.returncode:
            sys.exit('the header does not compile')
        lines = subprocess.run([program], check=True, stdout=subprocess.PIPE).stdout.decode().split('\n')
    found = []
    for i, (operator, _) in enumerate(operators):
        if not lines[2 * i]:
            sys.exit('aten::' + operator + ' has no card')
        found.append((Schema(lines[2 * i]), Schema(lines[2 * i + 1]) if lines[2 * i + 1] else None))
    return found


def print_all(text, cc):
    operators = read_rooms(text)
    listed = {o for o, _ in operators}
    text = print_lists(text, operators)
    quick, rest = [], []
    rooms = text[text.index('//  >>platform '):text.index('//  >>wrappers ')]
    DIRECT.update(re.findall(r'\bopd_(\w+)\(', rooms))
    for (operator, name), (schema, inplace) in zip(operators, read_schemas(text, operators, cc)):
        name = name or card_name(operator)
        lines = prototypes(name, schema)
        add_bodies(quick, rest, name, schema)
        if inplace and inplace.name not in listed:
            lines += prototypes(name + '_', inplace)
            add_bodies(quick, rest, name + '_', inplace)
        at = re.search(r'^/\* ' + re.escape(operator) + r': .* \*/\n', text, re.M).end()
        stop = re.compile(r'(?:OPD_API [^;]*;\n)*').match(text, at).end()
        text = text[:at] + '\n'.join(lines) + '\n' + text[stop:]
    functions = ['OPDI_COLD_BEGIN'] + quick + ['OPDI_COLD_END', 'OPDI_ONCE_BEGIN'] + rest + ['OPDI_ONCE_END']
    return replace_between(text, BEGIN, END, functions)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--write', action='store_true', help='change src/ and the header')
    parser.add_argument('--cc', default=os.environ.get('CC', 'cc'), help='the compiler of the program that asks')
    o = parser.parse_args()
    old = join.marked()
    new = print_all(old, o.cc)
    if o.write:
        join.put_marked(new, os.path.basename(__file__))
        return 0
    if new == old:
        return 0
    for a, b in zip(old.split('\n'), new.split('\n')):
        if a != b:
            print('src/ has\n  %s\nwhere its schemas say\n  %s\npython3 tests/wrappers.py --write prints it' % (a, b))
            break
    return 1


if __name__ == '__main__':
    sys.exit(main())
