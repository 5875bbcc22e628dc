#!/usr/bin/env python3
"""Writes autocast.txt: the dtypes of the results when PyTorch runs the test cases of the operators under CPU autocast
(bfloat16).

    OPD_LIST_CASES=1 ./test_golden > cases.txt       (each line: operator, tab, case)
    python3 make_autocast.py cases.txt > autocast.txt       (needs PyTorch; made with 1.13)

A line is operator | case | dtype of the floating-point inputs | dtypes of the results.  The cases are parsed by
make_samples.py.  Operators that PyTorch 1.13 and 2.6 have on different autocast lists (CHANGED) are left out, and so
are calls of aten::full with True: Python passes True as a number, and not as a bool.  OTHERWISE are cases in which PyTorch 2.15
calls another operator, which autocast does not lower.
"""
import importlib.util
import os
import sys
import torch

here = os.path.dirname(os.path.abspath(__file__))
text = open(os.path.join(here, 'make_samples.py')).read().rsplit('\nmain()', 1)[0]
samples = importlib.util.module_from_spec(importlib.util.spec_from_loader('samples', None))
exec(text, samples.__dict__)

OTHERWISE = {('aten::inner', '[3], [3]')}
CHANGED = set('conv_transpose1d conv_transpose2d conv_transpose3d prelu'.split())


def low(v):
    if isinstance(v, torch.Tensor):
        return v.to(torch.bfloat16) if v.dtype == torch.float32 else v
    return [low(x) for x in v] if isinstance(v, list) else v


def dtypes(r):
    if isinstance(r, (list, tuple)):
        return [t for x in r for t in dtypes(x)]
    return [str(r.dtype)[6:]] if isinstance(r, torch.Tensor) else []


def main():
    for line in open(sys.argv[1]):
        name, text = line.rstrip('\n').split('\t')
        qualified = name.split('::')[1]
        base, overload = (qualified.split('.') + ['default'])[:2]
        if base in CHANGED or base.startswith('_fused') or base.startswith('_amp') or (name == 'aten::full' and 'True' in text) or \
                (name, text) in OTHERWISE:
            continue
        for dtype in ('float32', 'bfloat16'):
            try:
                op = getattr(getattr(torch.ops.aten, base), overload)
                args, kwargs = samples.Case(text).arguments(op._schema)
                if dtype == 'bfloat16':
                    args, kwargs = low(args), {k: low(v) for k, v in kwargs.items()}
                with torch.no_grad(), torch.autocast('cpu', torch.bfloat16):
                    results = dtypes(op(*args, **kwargs))
            except Exception as e:      # this PyTorch lacks the operator, or refuses the call or bfloat16
                print('%s | %s | %s: %s' % (name, text, dtype, str(e).split('\n')[0][:120]), file=sys.stderr)
                continue
            if results:
                print(' | '.join([name, text, dtype, ' '.join(results)]))


main()
