#!/usr/bin/python3
"""Writes graphs.txt: random programs, and the text of the graphs that PyTorch's tracer (1.13) makes from them, without
source locations.  tests/graphs/test_graphs.c traces and runs the same programs.

    /usr/bin/python3 make_graphs.py > graphs.txt

    I sizes ...      the inputs a0, a1, ..., with sizes like "2,3".  Element i of input k is
                     0.2 + frac((i + 1) * 0.618 + k * 0.27)
    C name args      calls aten::name.  t3 is tensor 3 (inputs first, then results, and the elements of lists one by
                     one), (1,2) a list of integers, {t1,t2} a list of tensors, _ None, T and F bools, "x" a string;
                     otherwise a number
    O tensors        the outputs; L: as a list
    | text           a line of the graph
"""
import random
import re
import warnings

import torch

warnings.simplefilter('ignore')
PROGRAMS = 150
UNARY = ['exp', 'tanh', 'relu', 'sigmoid', 'neg', 'abs', 'clone _', 't', 'sum _', 'mean _', 'detach', 'contiguous']


def text(v):
    if v is None:
        return '_'
    if isinstance(v, bool):
        return 'T' if v else 'F'
    if isinstance(v, list):
        return '{' + ','.join(v) + '}' if v and isinstance(v[0], str) else '(' + ','.join(map(str, v)) + ')'
    return str(v)


def program(r):
    """Returns the lines of a random program, and the function that runs it."""
    sizes = [[r.randint(1, 3), r.randint(1, 3)] for _ in range(r.randint(1, 3))]
    inputs = [torch.tensor([0.2 + ((i + 1) * 0.618 + k * 0.27) % 1 for i in range(s[0] * s[1])]).view(s)
              for k, s in enumerate(sizes)]
    values = list(inputs)
    calls = []

    def add(name, *args):
        op = getattr(torch.ops.aten, name.split('.')[0])
        op = getattr(op, name.split('.')[1] if '.' in name else 'default')
        real = [values[int(a[1:])] if isinstance(a, str) and a[0] == 't' else
                [values[int(b[1:])] for b in a] if isinstance(a, list) and a and isinstance(a[0], str) else a for a in args]
        try:
            out = op(*real)
        except Exception:
            return False
        calls.append((op, args, name))
        values.extend(out if isinstance(out, (list, tuple)) else [out])
        return True

    def some(want=lambda t: True):
        k = [i for i, t in enumerate(values) if t.is_floating_point() and want(t)]
        return 't%d' % r.choice(k)
    for _ in range(r.randint(2, 9)):
        what = r.randint(0, 15)
        if what < 4:
            name = r.choice(UNARY).split()
            add(name[0], some(), *[None] * (len(name) - 1))
        elif what < 6:
            add(r.choice(['add.Tensor', 'sub.Tensor']), some(), some(), r.choice([1, 2, 0.5]))
        elif what < 8:
            add(r.choice(['mul.Tensor', 'maximum', 'matmul', 'mm']), some(), some())
        elif what == 8:
            add(r.choice(['add_.Tensor', 'sub_.Tensor']), some(lambda t: True), some(), 1)
        elif what == 9:
            add('mul.Scalar', some(), r.choice([2, 0.25, -3]))
        elif what == 10:
            add('sum.dim_IntList', some(), [r.randint(-1, 1)], r.random() < 0.5, None)
        elif what == 11:
            add('split.Tensor', some(), 1, r.randint(0, 1))
        elif what == 12:
            a = some()
            add('cat', [a, a] if r.random() < 0.5 else [a, some()], r.randint(-1, 1))
        elif what == 13:
            t = some(lambda t: t.is_contiguous())
            add('view', t, [-1])
        elif what == 14:
            add(r.choice(['softmax.int', 'cumsum', 'log_softmax.int']), some(), r.randint(-1, 1), None)
        else:
            add(r.choice(['max.dim', 'min.dim', 'sort']), some(), r.randint(-1, 0), False)
    if not calls:
        return None
    n = len(values) - len(inputs)
    outs = sorted({len(inputs) + r.randint(0, n - 1) for _ in range(r.randint(1, 3))})
    as_list = r.random() < 0.2

    def run(v):
        v = list(v)
        for op, args, _ in calls:
            real = [v[int(a[1:])] if isinstance(a, str) and a[0] == 't' else
                    [v[int(b[1:])] for b in a] if isinstance(a, list) and a and isinstance(a[0], str) else a for a in args]
            out = op(*real)
            v.extend(out if isinstance(out, (list, tuple)) else [out])
        o = [v[i] for i in outs]
        return o if as_list else o[0] if len(o) == 1 else tuple(o)
    fresh = [torch.tensor([0.2 + ((i + 1) * 0.618 + k * 0.27) % 1 for i in range(s[0] * s[1])]).view(s)
             for k, s in enumerate(sizes)]
    f = {1: lambda a0: run([a0]), 2: lambda a0, a1: run([a0, a1]), 3: lambda a0, a1, a2: run([a0, a1, a2])}[len(inputs)]
    g = str(torch.jit.trace(f, tuple(fresh), check_trace=False, strict=False).graph)
    lines = ['I ' + ' '.join(','.join(map(str, s)) for s in sizes)]
    lines += ['C %s %s' % (name, ' '.join(text(a) for a in args)) for _, args, name in calls]
    lines.append(('L ' if as_list else 'O ') + ' '.join('t%d' % i for i in outs))
    lines += ['| ' + re.sub(r' # .*', '', l) for l in g.strip('\n').split('\n')]
    return lines


r = random.Random(7)
done = 0
while done < PROGRAMS:
    lines = program(r)
    if lines:
        print('\n'.join(lines))
        done += 1
