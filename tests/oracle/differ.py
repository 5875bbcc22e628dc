#!/usr/bin/env python3
"""differ.py: calls operators of the library and of a live PyTorch with the same arguments, and prints what differs.

    cc -O2 -shared -fPIC shim.c -o shim.so -lm -lpthread
    python3 differ.py [--lib ./shim.so]                 the cases of all cards, on numbers of --seed
    python3 differ.py --op '^aten::(add|sort)' --n 5 --dtype bf16 --grad
    python3 differ.py 'aten::add.Tensor [2,3] [3] alpha=2' 'aten::sort [3,4]~ 0 True'
    python3 differ.py - < lines.txt

A line is an operator and its arguments in the language of the cards' cases, with commas or blanks between them:
[2,3] a tensor of --dtype, [2,3]+ positive, [2,3]u in (0,1), [2,3]i5 int64 of 0 to 4, [2,3]b bool, {[2],[3]} tensors,
(1,2) numbers, None, True, 2, 1.5, 'text', float32, name=value.  After a tensor: ~ transposed in memory, / with gaps,
@bf16 of that dtype.  Any torch does (the library follows 2.15); operators, overloads or arguments that it lacks are counted
apart.  Compared are errors, number, dtype, shape, strides and values of results, written arguments, and with --grad
gradients.  Operators on random numbers: all but values.  Exit status: 1 when something differs."""
import argparse, ctypes, math, os, random, re, signal, sys, warnings
warnings.filterwarnings('ignore')
os.environ.setdefault('OMP_NUM_THREADS', '1')
import torch
torch.set_num_threads(1)

DTYPES = {'u8': torch.uint8, 'i8': torch.int8, 'i16': torch.int16, 'i32': torch.int32, 'i64': torch.int64, 'f16': torch.float16,
          'f32': torch.float32, 'f64': torch.float64, 'c64': torch.complex64, 'c128': torch.complex128, 'bool': torch.bool, 'bf16': torch.bfloat16}
NUMBER = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6, torch.float64: 7,
          torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15}
OF_NUMBER = {v: k for k, v in NUMBER.items()}
NAMES = {str(d).replace('torch.', ''): d for d in NUMBER}
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-9, torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.complex64: 2e-5, torch.complex128: 1e-9}
RANDOM = re.compile(r'rand|bernoulli|dropout|normal_|::normal|multinomial|uniform|exponential|poisson|empty|rrelu|geometric|cauchy|gumbel')

class Absent(Exception): pass

# ---- arguments from text
class Reader:
    def __init__(self, text, rng, dtype, layout): self.s, self.i, self.rng, self.dtype, self.layout = text, 0, rng, dtype, layout
    def blank(self):
        while self.i < len(self.s) and self.s[self.i] in ' ,\n\t': self.i += 1
    def done(self): self.blank(); return self.i >= len(self.s)
    def take(self, pattern):
        m = re.compile(pattern).match(self.s, self.i)
        if m: self.i = m.end()
        return m
    def until(self, close):
        out = []
        self.blank()
        while not self.take(re.escape(close)):
            if self.i >= len(self.s): raise ValueError('no %s in %s' % (close, self.s))
            out.append(self.value()); self.blank()
        return out
    def tensor(self):
        m = self.take(r'\[([^\]]*)\](\+|u|g|b|i(\d+))?([~/]?)(?:@(\w+))?')
        sizes = [int(x) for x in m.group(1).split(',') if x.strip()]
        kind, layout, n = m.group(2) or '', m.group(4) or self.layout, math.prod(sizes)
        r = [self.rng.random() for _ in range(n)]
        if kind[:1] == 'i': v, d = [int(x * int(m.group(3))) for x in r], torch.int64
        elif kind == 'b': v, d = [x < 0.5 for x in r], torch.bool
        else:
            d = self.dtype
            v = [0.25 + x * 1.5 if kind == '+' else 0.1 + x * 0.8 if kind == 'u' else 1.1 + x if kind == 'g' else math.floor((x * 4 - 2) * 64) / 64 for x in r]
            if not (d.is_floating_point or d.is_complex): v = [int(abs(x) * 3) for x in v]
        t = torch.tensor(v, dtype=torch.float64 if d.is_floating_point else None).to(DTYPES[m.group(5)] if m.group(5) else d).reshape(sizes)
        if layout == '~' and t.dim() > 1: t = t.permute(*range(t.dim())[::-1]).contiguous().permute(*range(t.dim())[::-1])
        if layout == '/' and t.dim(): t = torch.stack([t, t], -1)[..., 0]
        return t
    def value(self):
        if self.i < len(self.s) and self.s[self.i] == '[': return self.tensor()
        if self.take(r'\{'): return self.until('}')
        if self.take(r'\('): return self.until(')')
        m = self.take(r"'([^']*)'")
        if m: return m.group(1)
        m = self.take(r'None|True|False')
        if m: return {'None': None, 'True': True, 'False': False}[m.group(0)]
        m = self.take('(' + '|'.join(sorted(NAMES, key=len, reverse=True)) + r')\b')
        if m: return NAMES[m.group(0)]
        m = self.take(r'[-+]?(inf|nan|[0-9][0-9.]*(?:e[-+]?[0-9]+)?)')
        if not m: raise ValueError('cannot read %r' % self.s[self.i:])
        return int(m.group(0)) if re.fullmatch(r'[-+]?\d+', m.group(0)) else float(m.group(0))
    def call(self):
        args, kw = [], {}
        while not self.done():
            m = self.take(r'([A-Za-z_]\w*)=')
            if m: kw[m.group(1)] = self.value()
            else: args.append(self.value())
        return args, kw

def overload(name):
    base, _, o = name.split('::', 1)[1].partition('.')
    try: return getattr(getattr(torch.ops.aten, base), o or 'default')
    except (AttributeError, RuntimeError): raise Absent('torch has no ' + name)

def bind(op, args, kw):
    """The schema's arguments in order, with all defaults."""
    a, left = op._schema.arguments, dict(kw)
    if len(args) > len(a): raise Absent('more arguments than in torch')
    out = []
    for i, x in enumerate(a):
        if i < len(args): v = args[i]
        elif x.name in left: v = left.pop(x.name)
        elif x.has_default_value(): v = x.default_value
        elif 'Optional' in str(x.type): v = None
        else: raise Absent('no argument %s' % x.name)
        if isinstance(v, int) and not isinstance(v, bool) and str(x.name).endswith('dtype') and v in OF_NUMBER: v = OF_NUMBER[v]
        if isinstance(v, int) and not isinstance(v, bool) and x.name == 'memory_format': v = [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d][v]
        if isinstance(v, int) and not isinstance(v, bool) and 'List[int]' in str(x.type): v = [v]
        out.append(v)
    if left: raise Absent('torch has no argument ' + ', '.join(left))
    return out

def call_torch(op, full):
    a = op._schema.arguments
    n = sum(not x.kwarg_only for x in a)
    return flat(op(*full[:n], **{x.name: v for x, v in zip(a[n:], full[n:])}))

def flat(x):
    if isinstance(x, (list, tuple)): return [z for y in x for z in flat(y)]
    return [x]
def leaves(x): return [t for t in flat(x) if isinstance(t, torch.Tensor)]
def copied(x):
    if isinstance(x, torch.Tensor):
        r = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype)
        return r.copy_(x) if x.numel() else r
    return [copied(y) for y in x] if isinstance(x, (list, tuple)) else x

# ---- the library, through odx_abi.h
class CTensor(ctypes.Structure):
    _fields_ = [('data', ctypes.c_void_p), ('dtype', ctypes.c_int32), ('ndim', ctypes.c_int32), ('size', ctypes.POINTER(ctypes.c_int64)),
                ('stride', ctypes.POINTER(ctypes.c_int64)), ('storage', ctypes.c_void_p), ('storage_bytes', ctypes.c_int64)]
class CValue(ctypes.Structure): pass
class CUnion(ctypes.Union):
    _fields_ = [('i', ctypes.c_int64), ('d', ctypes.c_double), ('c', ctypes.c_double * 2), ('s', ctypes.c_char_p), ('t', ctypes.POINTER(CTensor)),
                ('list', ctypes.POINTER(CValue))]
CValue._fields_ = [('tag', ctypes.c_int32), ('n', ctypes.c_int32), ('u', CUnion)]
NONE, TENSOR, INT, DOUBLE, BOOL, STR, COMPLEX, DTYPE, LAYOUT, MEMFMT, DEVICE, GENERATOR, LIST = range(13)

class Library:
    def __init__(self, path):
        L, P = ctypes.CDLL(os.path.abspath(path)), ctypes.POINTER
        common = [P(P(CValue)), P(ctypes.c_int), ctypes.c_char_p, ctypes.c_int]
        L.odx_next.argtypes = L.odx_cases.argtypes = L.odx_has.argtypes = [ctypes.c_char_p]
        L.odx_next.restype = L.odx_cases.restype = ctypes.c_char_p
        L.odx_call.argtypes = [ctypes.c_char_p, P(CValue), ctypes.c_int] + common
        L.odx_grad.argtypes = [ctypes.c_char_p, P(CValue), ctypes.c_int, P(ctypes.c_int), ctypes.c_int, P(CValue), ctypes.c_int] + common
        L.odx_free.argtypes, L.odx_free.restype = [P(CValue), ctypes.c_int], None
        self.lib = L
    def operators(self):
        name = self.lib.odx_next(None)
        while name:
            yield name.decode(), self.lib.odx_cases(name).decode()
            name = self.lib.odx_next(name)
    def pack(self, x, v, keep):
        if x is None: v.tag = NONE
        elif isinstance(x, torch.Tensor):
            t, n = CTensor(), x.dim()
            size, stride = (ctypes.c_int64 * max(n, 1))(*x.shape), (ctypes.c_int64 * max(n, 1))(*x.stride())
            store = x.untyped_storage() if hasattr(x, 'untyped_storage') else x.storage().untyped()
            t.data, t.dtype, t.ndim, t.size, t.stride, t.storage, t.storage_bytes = x.data_ptr(), NUMBER[x.dtype], n, size, stride, store.data_ptr(), store.nbytes()
            keep += [t, size, stride, x]
            v.tag, v.u.t = TENSOR, ctypes.pointer(t)
        elif isinstance(x, bool): v.tag, v.u.i = BOOL, int(x)
        elif isinstance(x, int): v.tag, v.u.i = INT, x
        elif isinstance(x, float): v.tag, v.u.d = DOUBLE, x
        elif isinstance(x, str): keep.append(x.encode()); v.tag, v.u.s = STR, keep[-1]
        elif isinstance(x, torch.dtype): v.tag, v.u.i = DTYPE, NUMBER[x]
        elif isinstance(x, torch.memory_format): v.tag, v.u.i = MEMFMT, [torch.contiguous_format, torch.preserve_format, torch.channels_last, torch.channels_last_3d].index(x)
        elif isinstance(x, torch.layout): v.tag, v.u.i = LAYOUT, 0
        elif isinstance(x, torch.device): keep.append(str(x).encode()); v.tag, v.u.s = DEVICE, keep[-1]
        elif isinstance(x, (list, tuple)):
            a = (CValue * max(len(x), 1))(); keep.append(a)
            for y, w in zip(x, a): self.pack(y, w, keep)
            v.tag, v.n, v.u.list = LIST, len(x), a
        else: raise Absent('argument of type %s' % type(x).__name__)
    def unpack(self, v):
        if v.tag == LIST: return [self.unpack(v.u.list[i]) for i in range(v.n)]
        if v.tag == TENSOR:
            t = v.u.t[0]; size, stride = t.size[:t.ndim], t.stride[:t.ndim]
            d = OF_NUMBER[t.dtype]; out = torch.empty_strided(size, stride, dtype=d)
            n = (sum((a - 1) * b for a, b in zip(size, stride)) + 1) * torch.empty(0, dtype=d).element_size() if all(size) else 0
            if n: ctypes.memmove(out.data_ptr(), t.data, n)
            return out
        return {NONE: None, INT: v.u.i, DTYPE: v.u.i, BOOL: bool(v.u.i), DOUBLE: v.u.d}.get(v.tag) if v.tag != COMPLEX else complex(*v.u.c)
    def run(self, fn, name, full, *extra):
        keep, a = [], (CValue * max(len(full), 1))()
        for x, v in zip(full, a): self.pack(x, v, keep)
        outs, n, err = ctypes.POINTER(CValue)(), ctypes.c_int(0), ctypes.create_string_buffer(1024)
        rc = fn(name.encode(), a, len(full), *extra, ctypes.byref(outs), ctypes.byref(n), err, 1024)
        if rc == 2: raise Absent(err.value.decode(errors='replace'))
        if rc: raise RuntimeError(err.value.decode(errors='replace'))
        res = [self.unpack(outs[i]) for i in range(n.value)]
        self.lib.odx_free(outs, n)
        return flat(res)
    def call(self, name, full): return self.run(self.lib.odx_call, name, full)
    def grad(self, name, full, wrt, cot):
        keep, c = [], (CValue * max(len(cot), 1))()
        for x, v in zip(cot, c): self.pack(x, v, keep)
        return self.run(self.lib.odx_grad, name, full, (ctypes.c_int * max(len(wrt), 1))(*wrt), len(wrt), c, len(cot))

# ---- comparison
def differs(a, b, values=True, strides=True):
    """What b, the library's, has otherwise than a, torch's; None: nothing."""
    if isinstance(a, torch.Tensor) != isinstance(b, torch.Tensor): return 'torch %s, here %s' % (type(a).__name__, type(b).__name__)
    if not isinstance(a, torch.Tensor):
        same = a == b or (isinstance(a, float) and isinstance(b, float) and (math.isclose(a, b, rel_tol=1e-5) or (a != a and b != b)))
        return None if same or not values or isinstance(a, torch.dtype) else 'torch %r, here %r' % (a, b)
    if a.dtype != b.dtype: return 'dtype: torch %s, here %s' % (a.dtype, b.dtype)
    if a.shape != b.shape: return 'shape: torch %s, here %s' % (list(a.shape), list(b.shape))
    if strides and a.numel() and [s for s, n in zip(a.stride(), a.shape) if n > 1] != [s for s, n in zip(b.stride(), b.shape) if n > 1]:
        return 'strides: torch %s, here %s' % (list(a.stride()), list(b.stride()))
    if not values or not a.numel(): return None
    x, y = (t.to(torch.complex128 if t.is_complex() else torch.float64) for t in (a, b))
    tol = TOLERANCE.get(a.dtype, 0)
    ok = torch.isclose(y, x, rtol=tol, atol=tol, equal_nan=True)
    if bool(ok.all()): return None
    i = int((~ok.reshape(-1)).nonzero()[0])
    return 'value: %d of %d, element %d: torch %r, here %r' % (int((~ok).sum()), ok.numel(), i, a.reshape(-1)[i].item(), b.reshape(-1)[i].item())

def attempt(f):
    try: return f(), None
    except Absent: raise
    except Exception as e: return None, (str(e).split('\n')[0] or type(e).__name__)[:160]

def compare(lib, name, args, kw, do_grad):
    """A list of differences."""
    op = overload(name); full = bind(op, args, kw); theirs, ours = copied(full), copied(full)
    torch.manual_seed(0)
    (a, ea), (b, eb) = attempt(lambda: call_torch(op, theirs)), attempt(lambda: lib.call(name, ours))
    if ea or eb: return [] if ea and eb else ['torch refuses: ' + ea if ea else 'refused here: ' + eb]
    if len(a) != len(b): return ['%d results, torch %d' % (len(b), len(a))]
    values = not RANDOM.search(name); out = []
    for i, (x, y) in enumerate(zip(a, b)):
        d = differs(x, y, values)
        if d: out.append('result %d: %s' % (i, d))
    for i, (x, y) in enumerate(zip(leaves(theirs), leaves(ours))):
        d = differs(x, y, values) if x.shape == y.shape else None     # the interface cannot show new sizes of an argument
        if d: out.append('argument %d: %s' % (i, d))
    tensors = leaves(full); wrt = [i for i, t in enumerate(tensors) if t.is_floating_point()]
    if out or not do_grad or not values or not wrt or any(x.alias_info is not None and x.alias_info.is_write for x in op._schema.arguments): return out
    theirs = copied(full)
    for i in wrt: leaves(theirs)[i].requires_grad_(True)
    results, e = attempt(lambda: call_torch(op, theirs))
    if e: return out
    floats = [isinstance(r, torch.Tensor) and r.is_floating_point() and r.requires_grad for r in results]
    if not any(floats): return out
    g = torch.Generator().manual_seed(1)
    cot = [torch.randn(r.shape, generator=g, dtype=torch.float64).to(r.dtype) if f else None for r, f in zip(results, floats)]
    ga, ea = attempt(lambda: torch.autograd.grad([r for r in results if isinstance(r, torch.Tensor) and r.requires_grad],
                                                 [leaves(theirs)[i] for i in wrt], [c for c in cot if c is not None], allow_unused=True))
    gb, eb = attempt(lambda: lib.grad(name, copied(full), wrt, cot))
    if ea or eb: return out + ([] if ea and eb else ['gradient: torch refuses: ' + ea if ea else 'gradient refused here: ' + eb])
    for i, x, y in zip(wrt, ga, gb):
        if x is None or y is None:
            z = y if x is None else x
            if z is not None and bool((z != 0).any()): out.append('gradient %d: none %s' % (i, 'in torch' if x is None else 'here'))
            continue
        d = differs(x, y, True, False)
        if d: out.append('gradient %d: %s' % (i, d))
    return out

def isolated(work, limit=30):
    """work's lines and counts, from a child: a crash, or more than `limit` seconds, costs one operator."""
    r, w = os.pipe(); pid = os.fork()
    if pid == 0:
        os.close(r); signal.alarm(limit)
        with os.fdopen(w, 'w') as f:
            try: lines, counts = work()
            except Exception as e: lines, counts = ['!! %r' % e], [0, 1, 0]
            f.write('\n'.join(lines + [' '.join(map(str, counts))]))
        os._exit(0)
    os.close(w)
    with os.fdopen(r) as f: text = f.read().split('\n')
    status = os.waitpid(pid, 0)[1]
    if status: return ['!! ' + ('takes too long' if status == signal.SIGALRM else 'crash, status %d' % status)], [0, 1, 0]
    return text[:-1], [int(x) for x in text[-1].split()]

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('lines', nargs='*', help='calls; - reads them from standard input; none: the cards')
    p.add_argument('--lib', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'shim.so'))
    p.add_argument('--op', default='', metavar='REGEX', help='of the operators, those whose name it is found in')
    p.add_argument('--seed', type=int, default=1); p.add_argument('--n', type=int, default=1, help='samples of each case, of other numbers and layouts')
    p.add_argument('--dtype', default='f32', choices=sorted(DTYPES)); p.add_argument('--grad', action='store_true'); p.add_argument('--no-isolate', action='store_true')
    p.add_argument('--limit', type=int, default=30, help='seconds an operator')
    a = p.parse_args(); lib = Library(a.lib)
    if a.lines:
        text = [x for l in a.lines for x in (sys.stdin.read().split('\n') if l == '-' else [l]) if x.strip() and not x.startswith('#')]
        work = [(l.split(None, 1)[0], [l.split(None, 1)[1] if ' ' in l.strip() else '']) for l in text]
    else: work = [(name, cases.split(';')) for name, cases in lib.operators() if re.search(a.op, name)]
    total = [0, 0, 0]
    for name, cases in work:
        def one():
            lines, counts = [], [0, 0, 0]         # alike, different, not in torch or not here
            for case in cases:
                for k in range(a.n):
                    reader = Reader(case, random.Random(a.seed * 1000 + k), DTYPES[a.dtype], ['', '~', '/'][k % 3])
                    try: d = compare(lib, name, *reader.call(), a.grad)
                    except Absent as e:
                        counts[2] += 1
                        if a.lines: lines.append('%s %s: %s' % (name, case.strip(), e))
                        continue
                    counts[bool(d)] += 1
                    lines += ['%s %s%s: %s' % (name, case.strip(), ' (layout %s)' % reader.layout if reader.layout else '', x) for x in d]
            return lines, counts
        lines, counts = one() if a.no_isolate else isolated(one, a.limit)
        for l in lines: print(l if l[:2] != '!!' else name + ' ' + l, flush=True)
        total = [x + y for x, y in zip(total, counts)]
    print('torch %s: %d calls alike, %d different, %d not comparable' % (torch.__version__, total[0], total[1], total[2]))
    return 1 if total[1] else 0
if __name__ == '__main__': sys.exit(main())
