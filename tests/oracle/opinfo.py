#!/usr/bin/env python3
"""Calls operators of the library with the sample arguments of PyTorch's own tests (op_db), and prints differences.

    cc -O1 -shared -fPIC shim.c -o shim.so -lm -lpthread
    python3 opinfo.py --op '^(add|mm)$' --dtype f32,c64 --n 6 --grad
    python3 opinfo.py --out --errors                also out= and in-place forms, and the wrong calls of PyTorch's tests

Each sample runs in PyTorch under a mode that records every aten call.  The script makes the recorded calls in the
library, with copies of their arguments.  It also calls the operator with the name of the sample, because a composite
operator is not recorded.  --layout is plain, t (transposed in memory), gap, or all.  With --out, the script also calls
the out= overloads with several out tensors: a new one, one of another dtype, of wrong sizes, transposed, the first
argument, a part of its memory, or expanded; and the in-place forms.  Needs a PyTorch with torch.testing._internal, and
the package expecttest (the library follows 2.15).  Equal messages are printed once, with their number.  The exit status
is 1 if something differs."""
import argparse, collections, os, random, re, sys, warnings
warnings.filterwarnings('ignore')
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
def options():
    """Parses the command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--lib', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'shim.so'))
    p.add_argument('--op', default='', metavar='REGEX', help='only samples whose name matches')
    p.add_argument('--dtype', default='f32'); p.add_argument('--n', type=int, default=8, help='number of samples of each operator and dtype')
    p.add_argument('--seed', type=int, default=7); p.add_argument('--layout', default='plain', choices=['plain', 't', 'gap', 'all'])
    p.add_argument('--grad', action='store_true'); p.add_argument('--out', action='store_true'); p.add_argument('--errors', action='store_true')
    p.add_argument('--part', default='0/1', help='i/n: every n-th operator, beginning with number i'); p.add_argument('--limit', type=int, default=60)
    return p.parse_args()

ASKED = options() if __name__ == '__main__' else None     # --help needs no torch
import differ, torch
from differ import Absent, Library, attempt, call_torch, differs, flat, leaves
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

UNDEFINED = re.compile(r'empty|resize|svd|eig|qr|geqrf|orgqr|householder|ormqr|lobpcg|lstsq|_flash|_efficient|set_\b|new_empty')
UNBOUND = re.compile('Expected a value of type|Expected at most|missing value for argument|Unknown keyword|received unexpected|'
                     'could not be matched|expected at most|but received|Cast error|Expected .* but got|expects argument|not supported for dispatch')
def plain(t): return t.layout == torch.strided and not t.is_quantized and t.device.type == 'cpu' and t.dtype in differ.NUMBER
def resolved(x): return tree_map(lambda t: t.detach().resolve_conj().resolve_neg() if isinstance(t, torch.Tensor) else t, x)

def same_memory(full):
    """Returns a copy of the arguments.  Tensors that share a storage have copies that share one, too."""
    stores = {}
    def one(t):
        if not isinstance(t, torch.Tensor): return t
        if not plain(t): raise Absent('layout or dtype')
        s = t.untyped_storage(); key = s.data_ptr() or id(t)
        if s.nbytes() > 1 << 22: raise Absent('large')
        if key not in stores: stores[key] = s.clone()
        return torch.empty(0, dtype=t.dtype).set_(stores[key], t.storage_offset(), t.shape, t.stride())
    def walk(x): return [walk(y) for y in x] if isinstance(x, (list, tuple)) else one(x)
    return [walk(x) for x in full]

def roomy(t):
    """Returns a tensor like t with free memory after it: some of PyTorch's kernels write past the end of an out that
    is expanded or has another dtype."""
    n = max(t.numel(), 1)
    r = torch.zeros(2 * n + 8, dtype=torch.complex128).untyped_storage()
    return torch.empty(0, dtype=t.dtype).set_(r, 0, t.shape, t.stride())

def bind(op, args, kw):
    full = differ.bind(op, list(args), {k: v for k, v in kw.items()})
    def fix(x):
        if isinstance(x, torch.Generator): return None
        return [fix(y) for y in x] if isinstance(x, (list, tuple)) else x
    return [fix(x) for x in full]

def unlike(x, y, name, values):
    """The same as differs(), with a tolerance that is relative to the largest element."""
    d = differs(x, y, values, True)
    if d and d.startswith('value') and isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
        wide = torch.complex128 if x.is_complex() else torch.float64
        a, b = x.to(wide), y.to(wide); fin = a[torch.isfinite(a)]
        tol = {torch.bfloat16: 3e-2, torch.float16: 6e-3, torch.float64: 1e-8, torch.complex128: 1e-8}.get(x.dtype, 5e-5)
        if bool(torch.isclose(b, a, rtol=tol, atol=max(1e-6, tol * float(fin.abs().max()) if fin.numel() else 0), equal_nan=True).all()): return None
    return d

class Judge:
    def __init__(self, lib, grad, out):
        self.lib, self.grad, self.out, self.seen, self.mark, self.lines, self.calls, self.absent = lib, grad, out, set(), None, [], 0, collections.Counter()
    def both(self, op, full, note='', grad=True):
        name = op.name()
        if not self.lib.lib.odx_has(name.encode()): self.absent['no ' + name] += 1; return
        shown = ' '.join(map(differ.shown, full)); key = (name, shown, note, str([tuple(t.stride()) for t in leaves(full)]))
        if key in self.seen or 'enerator' in shown: return
        self.seen.add(key)
        try: theirs, ours = same_memory(full), same_memory(full)
        except Absent as e: self.absent[str(e)] += 1; return
        self.calls += 1
        say = lambda text: self.lines.append('%s%s: %s   | %s' % (name, ' (%s)' % note if note else '', text, shown[:220]))
        if self.mark: self.mark('%s %s %s' % (name, note, shown[:200]))
        torch.manual_seed(0)
        a, ea = attempt(lambda: call_torch(op, theirs))
        if ea and UNBOUND.search(ea): return
        try: b, eb = attempt(lambda: self.lib.call(name, ours))
        except Absent as e:
            if not ea: say('unsupported here: %s' % e)
            return
        if ea or eb:
            if not (ea and eb): say('TORCH REFUSES: ' + ea if ea else 'REFUSED HERE: ' + eb)
            return
        a, b = [x for x in a], [x for x in b]
        a, b = ([None] if x == [] else x for x in (a, b))
        if len(a) != len(b): return say('%d results, torch %d' % (len(b), len(a)))
        values = not (differ.RANDOM.search(name) or UNDEFINED.search(name)); bad = len(self.lines)
        writes = any(x.alias_info is not None and x.alias_info.is_write for x in op._schema.arguments)
        for i, (x, y) in enumerate(zip(a, b)):
            if writes and isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor) and x.shape != y.shape and note != 'wrong size': continue
            if isinstance(x, torch.Tensor): x = x.resolve_conj().resolve_neg()
            d = unlike(x, y, name, values)
            if d: say('result %d: %s' % (i, d))
        for i, (x, y) in enumerate(zip(leaves(theirs), leaves(ours))):
            d = unlike(x, y, name, values) if x.shape == y.shape else None
            if d: say('argument %d: %s' % (i, d))
        if len(self.lines) == bad and self.grad and grad and values and not writes: self.gradients(op, full, say)
    def gradients(self, op, full, say):
        name = op.name(); tensors = leaves(full)
        wrt = [i for i, t in enumerate(tensors) if t.is_floating_point() or t.is_complex()]
        theirs = same_memory(full)
        if not wrt or len({t.data_ptr() for t in tensors}) < len(tensors): return
        with torch.enable_grad():
            for i in wrt: leaves(theirs)[i].requires_grad_(True)
            r, e = attempt(lambda: call_torch(op, theirs))
            if e: return
            ok = [isinstance(x, torch.Tensor) and x.requires_grad for x in r]
            if not any(ok): return
            g = torch.Generator().manual_seed(1)
            cot = [torch.randn(x.shape, generator=g, dtype=torch.complex128 if x.is_complex() else torch.float64).to(x.dtype) if f else None for x, f in zip(r, ok)]
            ga, ea = attempt(lambda: torch.autograd.grad([x for x, f in zip(r, ok) if f], [leaves(theirs)[i] for i in wrt], [c for c in cot if c is not None], allow_unused=True))
        try: gb, eb = attempt(lambda: self.lib.grad(name, same_memory(full), wrt, cot))
        except Absent as e:
            if not ea: say('gradient unsupported here: %s' % e)
            return
        if ea and 'not implemented' in ea: return
        if ea or eb:
            if not (ea and eb): say('gradient: TORCH REFUSES: ' + ea if ea else 'gradient REFUSED HERE: ' + eb)
            return
        for i, x, y in zip(wrt, ga, gb):
            if x is None or y is None:
                z = y if x is None else x
                if z is not None and bool((z != 0).any()): say('gradient %d: none %s' % (i, 'in torch' if x is None else 'here'))
                continue
            x = x.resolve_conj().resolve_neg(); d = differs(x, y, True, False) and unlike(x.contiguous(), y.contiguous(), name, True)
            if d: say('gradient %d: %s' % (i, d))
    def variants(self, op, full):
        """Calls the out= and in-place forms of a functional call."""
        r, e = attempt(lambda: call_torch(op, same_memory(full)))
        if e or not r or not all(isinstance(x, torch.Tensor) for x in r): return
        r = [x.resolve_conj().resolve_neg() for x in r]
        packet, mine = op._overloadpacket, [(x.name, str(x.type)) for x in op._schema.arguments]
        for o in packet.overloads():
            w = getattr(packet, o); args = w._schema.arguments; outs = [x for x in args if x.is_out]
            if not outs or [(x.name, str(x.type)) for x in args if not x.is_out] != mine or len(outs) != len(r): continue
            first = next((t for t in leaves(full) if t.shape == r[0].shape and t.dtype == r[0].dtype), None)
            kinds = {'fresh': [torch.empty_like(x, memory_format=torch.contiguous_format) for x in r],
                     'transposed': [torch.zeros(x.shape[::-1], dtype=x.dtype).permute(*range(x.dim())[::-1]) for x in r],
                     'none yet': [torch.empty(0, dtype=x.dtype) for x in r],
                     'wrong size': [torch.zeros([n + 1 for n in x.shape] + [1], dtype=x.dtype) for x in r],
                     'expanded': [torch.zeros([1] * x.dim(), dtype=x.dtype).expand(x.shape) for x in r]}
            kinds['expanded'] = [roomy(x) for x in kinds['expanded']]
            for d in (torch.int64, torch.float32, torch.float64, torch.complex64, torch.bool, torch.bfloat16): kinds['out ' + str(d)[6:]] = [roomy(torch.zeros(x.shape, dtype=d)) for x in r]
            if first is not None and len(r) == 1:
                kinds['self'] = [first]
                kinds['partly'] = None
            for note, out in kinds.items():
                f = full
                if note == 'partly':
                    n = first.numel(); big = torch.zeros(n + 1, dtype=first.dtype); moved = big[:n].view(first.shape); moved.copy_(first)
                    f, out = [moved if x is first else x for x in full], [big[1:].view(first.shape)]
                it, ins = iter(out), iter(f)
                self.both(w, [next(it) if x.is_out else next(ins) for x in args], 'out ' + note if not note.startswith('out') else note, False)
        base = getattr(torch.ops.aten, packet.__name__ + '_', None)
        for o in base.overloads() if base else []:
            w = getattr(base, o)
            if [x.name for x in w._schema.arguments] == [n for n, _ in mine] and o == op._overloadname: self.both(w, full, 'in place', False)
    def call(self, op, args, kw, force=False):
        try: full = bind(op, resolved(args), resolved(kw))
        except Absent: return
        except Exception: return
        if not all(plain(t) for t in leaves(full)): return
        self.both(op, full)
        if self.out and not any(x.alias_info is not None and x.alias_info.is_write for x in op._schema.arguments): self.variants(op, full)

class Recorder(TorchDispatchMode):
    def __init__(self, judge): super().__init__(); self.judge = judge
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == 'aten' and 'record_stream' not in func.name():
            with torch._C._DisableTorchDispatch() if hasattr(torch._C, '_DisableTorchDispatch') else torch.no_grad(): self.judge.call(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))

def direct(judge, name, args, kw):
    """Calls the operator that has the name itself: its first overload that accepts the arguments."""
    packet = getattr(torch.ops.aten, name, None)
    if packet is None: return
    for o in sorted(packet.overloads(), key=lambda o: (o != 'default', o != 'Tensor', o)):
        op = getattr(packet, o)
        if any(x.is_out for x in op._schema.arguments) != ('out' in kw): continue
        try: full = bind(op, resolved(args), resolved(kw)); theirs = same_memory(full)
        except Exception: continue
        _, e = attempt(lambda: call_torch(op, theirs))
        if e and UNBOUND.search(e): continue
        judge.call(op, args, kw); return

def laid(x, layout):
    if not isinstance(x, torch.Tensor) or layout == 'plain' or not plain(x): return x
    if layout == 't' and x.dim() > 1: return x.detach().permute(*range(x.dim())[::-1]).contiguous().permute(*range(x.dim())[::-1])
    if layout == 'gap' and x.dim(): return torch.stack([x.detach(), x.detach()], -1)[..., 0]
    return x
def samples(info, dtype, a):
    if a.errors:
        for e in info.error_inputs('cpu'): yield e.sample_input, 'plain'
        return
    all_of = list(info.sample_inputs('cpu', dtype, requires_grad=False))
    random.Random(a.seed).shuffle(all_of)
    for s in all_of[:a.n]:
        for layout in ['plain', 't', 'gap'] if a.layout == 'all' else [a.layout]: yield s, layout
def job(lib, info, dtype, a, mark):
    torch.manual_seed(a.seed); judge = Judge(lib, a.grad, a.out); judge.mark = mark
    try: inputs = list(samples(info, dtype, a)) if info.error_inputs_func or not a.errors else []
    except Exception as e: inputs = []
    for s, layout in inputs:
        tensors = lambda x: tree_map(lambda t: laid(t.detach() if isinstance(t, torch.Tensor) else t, layout), x)
        try: args, kw = [tensors(s.input)] + list(tensors(list(s.args))), tensors(dict(s.kwargs))
        except Exception: continue
        try: direct(judge, info.aten_name or info.name, args, kw)
        except Exception: pass
        try:
            with Recorder(judge): info.op(*args, **kw)
        except Exception: pass
    return judge.lines + ['#%d' % judge.calls] + ['-%s' % x for x in judge.absent]

def main():
    a = ASKED; lib = Library(a.lib); calls = 0
    i, n = map(int, a.part.split('/')); jobs, names = [], []
    for info in [x for x in op_db if re.search(a.op, x.name)][i::n]:
        for d in (['f32'] if a.errors else a.dtype.split(',')):
            if differ.DTYPES[d] not in info.supported_dtypes('cpu') and not a.errors: continue
            jobs.append(lambda mark, info=info, d=d: job(lib, info, differ.DTYPES[d], a, mark)); names.append('%s %s' % (info.full_name if hasattr(info, 'full_name') else info.name, d))
    seen, absent, first = collections.Counter(), collections.Counter(), {}
    for name, lines in zip(names, differ.isolated(jobs, a.limit)):
        for l in lines:
            if l[:1] == '#': calls += int(l[1:]); continue
            if l[:1] == '-': absent[l[1:]] += 1; continue
            key = re.sub(r'[-+]?\d[\d.e+-]*j?|nan|inf|True|False|\[[^]]*\]|\([^)]*j\)', '#', l.split('   | ')[0]) if l[:2] != '!!' else l
            seen[key] += 1; first.setdefault(key, '%s   <%s>' % (l, name))
    for key in sorted(seen): print('%5d  %s' % (seen[key], first[key]))
    for key, k in absent.most_common(): print('absent %5d  %s' % (k, key))
    print('torch %s: %d calls, %d differ, %d kinds' % (torch.__version__, calls, sum(seen.values()), len(seen)))
    return 1 if seen else 0
if __name__ == '__main__': sys.exit(main())
