#!/usr/bin/env python3
"""Writes samples.txt: PyTorch's results for the test cases of the operators.

    OPD_LIST_CASES=1 ./test_golden > cases.txt       (each line: operator, tab, case)
    python3 make_samples.py cases.txt > samples.txt  (needs PyTorch; made with 1.13, or 2.15 if 1.13 lacks the operator)

The inputs are the same as in tests/cases.h: float32, multiples of 1/64.  A line of samples.txt is
operator | case | result | result ...  A result is its dtype, [sizes] and elements.  This script reads only the lines of
cases.txt.
"""
import re
import sys
import torch

DTYPES = {'uint8': 0, 'int8': 1, 'int16': 2, 'int32': 3, 'int64': 4, 'float16': 5, 'float32': 6, 'float64': 7, 'complex64': 9,
          'complex128': 10, 'bool': 11, 'bfloat16': 15}
RANDOM = ('rand', 'bernoulli', 'dropout', 'normal_', '::normal', 'multinomial', 'uniform', 'exponential', 'empty', 'poisson', 'rrelu', 'random',
          'binomial', 'geometric', 'cauchy', 'log_normal', '::_standard_gamma', 'dirichlet')


def case_random(seed, i):
    m = 0xffffffff
    x = (seed * 2654435761 + i * 40503 + 12345) & m
    x ^= x >> 16
    x = x * 0x7feb352d & m
    x ^= x >> 15
    x = x * 0x846ca68b & m
    x ^= x >> 16
    return (x >> 8) / 16777216.0


class Case:
    def __init__(self, text):
        self.text, self.at, self.seed = text, 0, 1

    def space(self):
        while self.at < len(self.text) and self.text[self.at] in ' \n':
            self.at += 1

    def next_if(self, c):
        self.space()
        if self.text.startswith(c, self.at):
            self.at += 1
            return True
        return False

    def match(self, pattern):
        self.space()
        m = re.compile(pattern).match(self.text, self.at)
        if m:
            self.at = m.end()
        return m

    def tensor(self):
        sizes = []
        while not self.next_if(']'):
            sizes.append(int(self.match(r'-?\d+').group()))
            self.next_if(',')
        m = re.compile(r'[ugb+]|i\d+').match(self.text, self.at)
        kind = m.group() if m else ''
        self.at += len(kind)
        self.seed += 1
        n = 1
        for s in sizes:
            n *= s
        values = []
        for i in range(n):
            r = case_random(self.seed, i)
            if kind[:1] == 'i':
                v = int(r * int(kind[1:]))
            elif kind == 'b':
                v = r >= 0.5
            else:
                v = {'+': 0.25 + r * 1.5, 'u': 0.1 + r * 0.8, 'g': 1.1 + r}.get(kind, r * 4 - 2)
                v = (v * 64) // 1 / 64
            values.append(v)
        dtype = torch.int64 if kind[:1] == 'i' else torch.bool if kind == 'b' else torch.float32
        return torch.tensor(values, dtype=dtype).reshape(sizes)

    def value(self):
        if self.next_if('['):
            return self.tensor()
        for start, end in ('{}', '()'):
            if self.next_if(start):
                items = []
                while not self.next_if(end):
                    items.append(self.value())
                    self.next_if(',')
                return items
        m = self.match(r"'([^']*)'")
        if m:
            return m.group(1)
        m = self.match(r'(None|True|False)\b')
        if m:
            return {'None': None, 'True': True, 'False': False}[m.group(1)]
        m = self.match('(' + '|'.join(sorted(DTYPES, key=len, reverse=True)) + r')\b')
        if m:
            return DTYPES[m.group(1)]
        m = self.match(r'[-+]?(\d+\.?\d*(e[-+]?\d+)?|\.\d+|inf|nan)')
        return int(m.group()) if re.fullmatch(r'[-+]?\d+', m.group()) else float(m.group())

    def arguments(self, schema):
        args, kwargs, i = [], {}, 0
        self.space()
        while self.at < len(self.text):
            m = self.match(r'([A-Za-z_]\w*)=')
            if m:
                kwargs[m.group(1)] = self.value()
            else:
                v = self.value()
                if schema.arguments[i].kwarg_only:
                    kwargs[schema.arguments[i].name] = v
                else:
                    args.append(v)
                i += 1
            self.next_if(',')
            self.space()
        return args, kwargs


def number(v):
    return '%d' % v if isinstance(v, (int, bool)) else '%.7g' % v


def show(r):
    if isinstance(r, (list, tuple)):
        return [t for x in r for t in show(x)]
    if isinstance(r, torch.Tensor):
        if r.is_complex():
            raise ValueError('complex')
        return ['%s [%s]%s' % (str(r.dtype)[6:], ','.join(map(str, r.shape)), ''.join(' ' + number(v) for v in r.reshape(-1).tolist()))]
    if isinstance(r, (bool, int, float)):
        return ['number [] ' + number(r)]
    return []


def main():
    for line in open(sys.argv[1]):
        name, text = line.rstrip('\n').split('\t')
        if any(r in name for r in RANDOM) or (name == 'aten::full' and 'True' in text):  # Python makes True an int
            continue
        base, overload = (name.split('::')[1].split('.') + ['default'])[:2]
        try:
            op = getattr(getattr(torch.ops.aten, base), overload)
            args, kwargs = Case(text).arguments(op._schema)
            with torch.no_grad():
                results = show(op(*args, **kwargs))
        except Exception as e:          # this PyTorch lacks the operator, or refuses the call: no sample
            print('%s | %s: %s' % (name, text, str(e).split('\n')[0][:150]), file=sys.stderr)
            continue
        if results and sum(map(len, results)) < 4000:
            print(' | '.join([name, text] + results))


main()
