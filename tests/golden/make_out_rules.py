#!/usr/bin/env python3
"""Writes tests/golden/out_rules.txt: which out= tensors PyTorch accepts, by dtype and by shared memory.

    cc -O1 -shared -fPIC ../oracle/shim.c -o shim.so -lm -lpthread && python3 make_out_rules.py ./shim.so

The library is only asked for the operators and for the arguments of their test cases.  A line is

    overload with out=, number of the case, number of the out argument, ten letters, then  k:XY  for tensor argument k

The ten letters are for an out of u8 i32 i64 f16 bf16 f32 f64 c64 c128 bool: 1 accepted, 0 refused, - the dtype of the
result.  X: the memory of out begins where argument k begins.  Y: it begins one element later.  X and Y are T
(accepted), R (refused because of the shared memory) or - (another error)."""
import os, random, re, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))
import differ, opinfo, torch
from differ import Absent, Library, Reader, attempt, call_torch, leaves

DTYPES = [torch.uint8, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64, torch.complex128, torch.bool]
SHARED = 'refer to a single memory'
WITHOUT = {'dtype', 'layout', 'device', 'pin_memory', 'non_blocking'}

def call(form, names, full, outs):
    it, given = iter(outs), dict(zip(names, full))
    args = opinfo.same_memory([next(it) if x.is_out else given[x.name] for x in form._schema.arguments])
    return attempt(lambda: call_torch(form, args))[1]

def forms_of(op):
    mine = {x.name: str(x.type) for x in op._schema.arguments}
    for o in op._overloadpacket.overloads():
        form = getattr(op._overloadpacket, o); own = [x for x in form._schema.arguments if not x.is_out]
        if len(own) == len(form._schema.arguments) or not all(mine.get(x.name) == str(x.type) for x in own): continue
        if set(mine) - {x.name for x in own} <= WITHOUT: yield form

def letters(form, names, full, r, i):
    text = ''
    for d in DTYPES:
        outs = [opinfo.roomy(torch.zeros(x.shape, dtype=d if k == i else x.dtype)) for k, x in enumerate(r)]
        text += '-' if d == r[i].dtype else '01'[call(form, names, full, outs) is None]
    return text

def overlaps(form, names, full, r, i):
    for k, first in enumerate(leaves(full)):
        if first.dtype != r[i].dtype or not first.numel() or not r[i].numel(): continue
        n, m, text = first.numel(), r[i].numel(), ''
        memory = torch.zeros(n + m + 1, dtype=first.dtype); moved = memory[:n].view(first.shape); moved.copy_(first)
        def with_moved(x): return [with_moved(y) for y in x] if isinstance(x, (list, tuple)) else moved if x is first else x
        for shift in (0, 1):
            outs = [memory[shift:shift + m].view(x.shape) if j == i else torch.empty(x.shape, dtype=x.dtype) for j, x in enumerate(r)]
            e = call(form, names, with_moved(full), outs)
            text += 'T' if e is None else 'R' if SHARED in e else '-'
        yield '%d:%s' % (k, text)

def lines(name, cases):
    op, rng = differ.overload(name), random.Random(3)
    for number, case in enumerate(cases.split(';')):
        try: full = differ.bind(op, *Reader(case, rng, torch.float32, '').call())
        except Exception: continue
        r, e = attempt(lambda: call_torch(op, opinfo.same_memory(full)))
        if e or not r or not all(isinstance(x, torch.Tensor) for x in r): continue
        r = [x.resolve_conj().resolve_neg() for x in r]
        for form in forms_of(op):
            if len([x for x in form._schema.arguments if x.is_out]) != len(r) or 'List' in str(form._schema.arguments[-1].type): continue
            names = [x.name for x in op._schema.arguments]
            for i in range(len(r)):
                yield ' '.join([form.name()[6:], str(number), str(i), letters(form, names, full, r, i)] + list(overlaps(form, names, full, r, i)))

def main():
    lib = Library(sys.argv[1]); jobs = []
    for name, cases in lib.operators():
        try: differ.overload(name)
        except Absent: continue
        jobs.append(lambda mark, name=name, cases=cases: [x for x in lines(name, cases) if lib.lib.odx_has(('aten::' + x.split(' ')[0]).encode())])
    with open(os.path.join(HERE, 'out_rules.txt'), 'w') as f:
        f.write('# printed by make_out_rules.py: which out= tensors PyTorch %s takes\n' % torch.__version__.split('+')[0])
        for x in sorted({y for job in differ.isolated(jobs, 60) for y in job}):
            if x[:2] == '!!': sys.exit(x)
            f.write(x + '\n')
if __name__ == '__main__': main()
