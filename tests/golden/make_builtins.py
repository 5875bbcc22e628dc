#!/usr/bin/env python3
"""Writes builtins.txt: calls of TorchScript's builtin functions, as the text of a graph, and PyTorch's results.

usage: python3 tests/golden/make_builtins.py > tests/golden/builtins.txt       (needs torch 2.x)

A case is a graph without inputs that returns a string: the result and the first argument (which the call may have
changed), as TorchScript prints them.  The line after the graph is "=" and this string, or "!" if the call fails.
"""
import os
import random
import re
import sys
import warnings

import torch

warnings.filterwarnings('ignore')
random.seed(4)
HEADER = __file__.rsplit('/', 3)[0] + '/opdispatch.h'
POOL = {
    'int': ['7', '-3', '2', '0', '5', '-1'], 'float': ['2.5', '-1.5', '0.', '4.', '0.1', '7.25'], 'bool': ['1', '0'],
    'str': ['"Hello world"', '"abc"', '"l"', '" x  y\\t"', '""', '"o"', '"a1_b"', '"12"', '"-42"'],
}
LISTS = {
    'int': [['3', '1', '2'], ['5'], [], ['1', '1', '-4']], 'float': [['2.5', '-1.', '2.5'], [], ['0.5']],
    'bool': [['1', '0'], ['0'], [], ['1', '1']], 'str': [['"b"', '"a"', '"ab"'], [], ['"l"']],
}
SKIP = re.compile(r'Tensor|Device|Future|Await|complex|Any|\.\.\.|Generator|enum|hash|manual_seed|warn|Raise|Print|'
                  r'is_autocast|Scalar|set_grad|ModuleCont|Enum|Uninit|tracing|__is|isnot|unchecked|_unwrap|Complex|gamma')


class Writer:
    def __init__(self):
        self.lines, self.n = [], 0

    def put(self, type, text):
        self.lines.append('  %%%d : %s = %s' % (self.n, type, text))
        self.n += 1
        return '%%%d' % (self.n - 1)

    def constant(self, type, value):
        return self.put(type, 'prim::Constant[value=%s]()' % value)

    def make(self, type):
        """Makes a value of a schema's type.  Returns its name and its type."""
        type = type.strip()
        if type.endswith('?'):
            if random.random() < .4:
                return self.put('NoneType', 'prim::Constant()'), 'NoneType'
            return self.make(type[:-1])
        if type == 'Scalar':
            type = random.choice(['int', 'float'])
        if type in ('t', 'tVal', 't1', 't2'):
            type = 'int'
        if type in POOL:
            return self.constant(type, random.choice(POOL[type])), type
        if type.endswith('[]'):
            inner = type[:-2]
            if inner.startswith('('):
                pairs = [self.make(inner)[0] for _ in range(random.choice([0, 2, 3]))]
                inner = inner.replace('tVal', 'int')
                return self.put(inner + '[]', 'prim::ListConstruct(%s)' % ', '.join(pairs)), inner + '[]'
            inner = 'int' if inner in ('t', 'tVal') else inner
            elements = [self.constant(inner, x) for x in random.choice(LISTS[inner])]
            return self.put(inner + '[]', 'prim::ListConstruct(%s)' % ', '.join(elements)), inner + '[]'
        if type.startswith('('):
            parts = [self.make(x) for x in type[1:-1].split(',')]
            whole = '(%s)' % ', '.join(x[1] for x in parts)
            return self.put(whole, 'prim::TupleConstruct(%s)' % ', '.join(x[0] for x in parts)), whole
        m = re.match(r'Dict\((\w+), (\w+)\)$', type)
        if m:
            key = m.group(1)
            pairs = []
            for x in random.sample(POOL[key], random.choice([0, 1, 2])):
                pairs += [self.constant(key, x), self.constant('int', random.choice(POOL['int']))]
            type = 'Dict(%s, int)' % key
            return self.put(type, 'prim::DictConstruct(%s)' % ', '.join(pairs)), type
        raise ValueError(type)


def plain(type):
    """Returns a schema's type without annotations."""
    type = re.sub(r'\((?:[a-z](?:!| -> \*)?|\*)\)', '', type)
    return re.sub(r'\b(t|tVal|t1|t2)\b', 'int', type).replace('Scalar', 'Scalar')


def split(text):
    """Splits text at the commas that are outside of brackets and quotes."""
    parts, depth, quoted, last = [], 0, False, 0
    for i, c in enumerate(text):
        quoted ^= c == '"'
        depth += not quoted and (c in '([') - (c in ')]')
        if c == ',' and depth == 0 and not quoted:
            parts.append(text[last:i])
            last = i + 1
    return parts + [text[last:]] if text.strip() else []


def case(schema):
    name, rest = schema.split('(', 1)
    args, result = rest.rsplit(') -> ', 1)
    base = name.split('.')[0]
    writer = Writer()
    given = []
    for arg in split(args):
        arg = arg.strip()
        if arg == '*':
            continue
        m = re.match(r'(.*?) (\w+)(=.*)?$', re.sub(r'\([a-z](!| -> \*)?\)|\(\*\)', '', arg))
        given.append(writer.make(m.group(1)))
    result = plain(result)
    result = result[1:-1] if result.startswith('((') else result
    if result == '()':
        writer.lines.append('  %s(%s)' % (base, ', '.join(x[0] for x in given)))
        out = []
    else:
        results = [result]
        if re.match(r'\([^()]*,', result) and base not in ('aten::popitem',):
            results = [x.strip() for x in result[1:-1].split(',')]
        names = []
        for one in results:
            names.append(('%%%d' % writer.n, one))
            writer.n += 1
        writer.lines.append('  %s = %s(%s)' % (', '.join('%s : %s' % x for x in names), base,
                                              ', '.join(x[0] for x in given)))
        out = names
    whole = out + given[:1]
    both = writer.put('(%s)' % ', '.join(x[1] for x in whole),
                      'prim::TupleConstruct(%s)' % ', '.join(x[0] for x in whole))
    text = writer.put('str', 'aten::str(%s)' % both)
    return 'graph():\n%s\n  return (%s)\n' % ('\n'.join(writer.lines), text)


def differs(name, text, got):
    """Returns True if this library follows Python where PyTorch does not: negative counts, empty separators, shifts by
    negative numbers, and the remainder of a float division (PyTorch computes it in single precision)."""
    if got == '!' and name in ('aten::mul', 'prim::rangelist', 'aten::startswith'):
        return True
    if 'value=""' in text and name in ('aten::replace', 'aten::rpartition', 'aten::index'):
        return True
    return 'value=-' in text and name.endswith('shift__') or 'float' in text and name == 'aten::divmod'


def run(graph):
    """Runs a graph in a child process, because PyTorch crashes on some graphs (an int modulo 0).  Returns its
    result."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            got = '=' + torch._C._create_function_from_graph('f', graph)()
        except Exception:
            got = '!'
        os.write(write, got.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, 'rb') as f:
        got = f.read().decode()
    os.waitpid(child, 0)
    return got.replace('-nan', 'nan') or '!'     # the sign of a NaN is undefined


def main():
    rows = re.findall(r'^    \{"((?:aten|prim)::[^\n]*(?:\n     "[^\n]*)?)', open(HEADER).read(), re.M)
    schemas = []
    for row in rows:
        row = row.split('", opdi_fn')[0].rstrip(',').rstrip('"').split('",\n')[0].replace('"\n     "', '')
        schemas.append(row.replace('\\"', '"').replace('\\\\', '\\'))
    count = 0
    for schema in schemas:
        if SKIP.search(schema) or '(' not in schema:
            continue
        for _ in range(3):
            text = case(schema)
            try:
                graph = torch._C.parse_ir(text)
            except RuntimeError as e:
                sys.stderr.write('%s: %s\n' % (schema, str(e).strip().split('\n')[0][:200]))
                break
            got = run(graph)
            if differs(schema.split('.')[0].split('(')[0], text, got):
                continue
            if '\n' in got or any(ord(c) > 126 for c in got):
                continue
            count += 1
            print(text + got)
    sys.stderr.write('%d cases of %d functions\n' % (count, len(schemas)))


main()
