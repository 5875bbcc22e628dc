#!/usr/bin/env python3
"""Calls operators of the library and of an installed PyTorch with the same arguments, and prints differences.

    cc -O2 -shared -fPIC shim.c -o shim.so -lm -lpthread
    python3 differ.py [--lib ./shim.so]                 the cases of all cards, with random numbers of --seed
    python3 differ.py --op '^aten::(add|sort)' --n 5 --dtype bf16 --grad
    python3 differ.py 'aten::add.Tensor [2,3] [3] alpha=2' 'aten::sort [3,4]~ 0 True'
    python3 differ.py - < lines.txt

A call is an operator and its arguments, written as in the cases of the cards, with commas or blanks between them.
[2,3] is a tensor of --dtype, [2,3]+ a positive one, [2,3]u one in (0,1), [2,3]i5 int64 from 0 to 4, [2,3]b bool,
{[2],[3]} a list of tensors, (1,2) a list of numbers.  Also possible: None, True, 2, 1.5, 'text', float32, name=value.
After a tensor, ~ means transposed in memory, / with gaps, and @bf16 of this dtype.

Any version of torch can be used (the library follows 2.15).  Operators, overloads and arguments that this version does
not have are counted separately.  The script compares errors, the number of results, their dtypes, shapes, strides and
values, the arguments that a call writes, and with --grad the gradients.  It does not compare the values of operators
with random numbers.  The exit status is 1 if something differs.

With --values grid, numbers are -1, -0.5, ... 1 (ties, kinks and zeros).  With --values special, they include inf, nan
and large numbers.  With --wild N, each case is called N times, with one or two random changes to the arguments (dtypes,
sizes, dimensions, numbers out of range, nan, empty and zero-dim tensors).  Most of these calls are wrong, and the
script prints where only one side fails.  With --brief, it prints one line for all equal messages of an operator."""
import argparse, collections, ctypes, math, os, random, re, resource, signal, sys, warnings
warnings.filterwarnings('ignore')
os.environ.setdefault('OMP_NUM_THREADS', '1')
def options():
    """Parses the command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('lines', nargs='*', help='calls; - reads them from standard input; without calls: the cases of the cards')
    p.add_argument('--lib', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'shim.so'))
    p.add_argument('--op', default='', metavar='REGEX', help='only operators whose name matches')
    p.add_argument('--seed', type=int, default=1); p.add_argument('--n', type=int, default=1, help='number of samples of each case, with other numbers and layouts')
    p.add_argument('--dtype', default='f32', choices=sorted('u8 i8 i16 i32 i64 f16 f32 f64 c64 c128 bool bf16'.split())); p.add_argument('--grad', action='store_true'); p.add_argument('--no-isolate', action='store_true')
    p.add_argument('--limit', type=int, default=30, help='seconds that a call may take'); p.add_argument('--wild', type=int, default=0, metavar='N')
    p.add_argument('--values', default='smooth', choices=['smooth', 'grid', 'special']); p.add_argument('--brief', action='store_true')
    return p.parse_args()

ASKED = options() if __name__ == '__main__' else None     # --help needs no torch
import torch
torch.set_num_threads(1)

DTYPES = {'u8': torch.uint8, 'i8': torch.int8, 'i16': torch.int16, 'i32': torch.int32, 'i64': torch.int64, 'f16': torch.float16,
          'f32': torch.float32, 'f64': torch.float64, 'c64': torch.complex64, 'c128': torch.complex128, 'bool': torch.bool, 'bf16': torch.bfloat16}
NUMBER = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6, torch.float64: 7,
          torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15}
OF_NUMBER = {v: k for k, v in NUMBER.items()}
NAMES = {str(d).replace('torch.', ''): d for d in NUMBER}
TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-9, torch.bfloat16: 2e-2, torch.float16: 4e-3, torch.complex64: 2e-5, torch.complex128: 1e-9}
RANDOM = re.compile(r'rand|bernoulli|dropout|normal_|::normal|multinomial|uniform|exponential|poisson|empty|rrelu|geometric|cauchy|gumbel|binomial|log_normal|_standard_gamma$|_sample_dirichlet')

SPECIAL = [math.inf, -math.inf, math.nan, 0.0, -0.0, 1e30, -1e30, 88.8, -104.0, 1e-40]

class Absent(Exception): pass

# ---- arguments from text
class Reader:
    def __init__(self, text, rng, dtype, layout, values='smooth'):
        self.s, self.i, self.rng, self.dtype, self.layout, self.values = text, 0, rng, dtype, layout, values
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
            if self.values != 'smooth' and kind in '+ug': v = [0.5 * math.ceil(x * 2) for x in r]
            elif self.values != 'smooth': v = [math.floor(x * 5) / 2 - 1 for x in r]
            if self.values == 'special': v = [self.rng.choice(SPECIAL) if self.rng.random() < 0.3 else x for x in v]
            if not (d.is_floating_point or d.is_complex) and self.values == 'special': v = [x if abs(x) < 100 else 0 for x in v]
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

# ---- wrong calls
def wilder(x, rng):
    """Returns x with one random change."""
    if isinstance(x, torch.Tensor):
        size = list(x.shape); d = rng.randrange(len(size)) if size else 0
        def filled(size, dtype):
            t = torch.tensor([math.floor(rng.random() * 12 - 6) / 2 for _ in range(math.prod(size))]).reshape(size)
            return (t.abs() if dtype in (torch.int64, torch.uint8) and rng.random() < 0.8 else t).to(dtype)
        how = rng.randrange(12)
        if how < 4: return filled(size, rng.choice([d for d in DTYPES.values() if not d.is_complex]))
        if how == 4: return filled(size + [rng.choice([1, 2])], x.dtype)
        if how == 5: return filled([rng.choice([1, 2])] + size, x.dtype)
        if how == 6 and size: return filled(size[:d] + size[d + 1:], x.dtype)
        if how in (7, 8) and size: size[d] += rng.choice([-1, 1, 2]); return filled([max(n, 0) for n in size], x.dtype)
        if how == 9 and size: size[d] = 0; return filled(size, x.dtype)
        if how == 10: return filled([], x.dtype)
        return x.clone().mul_(rng.choice([-1, 3])) if not x.dtype == torch.bool else filled([1], x.dtype)
    if isinstance(x, bool): return not x
    if isinstance(x, int): return rng.choice([x + 1, x - 1, -x, -x - 1, 0, 1, 7, -7, 100, 2 ** 33, 0.5, True, None])
    if isinstance(x, float): return rng.choice([-x, 0.0, 1.0, 2.0, -1.0, math.nan, math.inf, -math.inf, 3, 1e300, None])
    if isinstance(x, str): return rng.choice(['', 'none', 'mean', 'sum', 'x'])
    if isinstance(x, torch.dtype): return rng.choice(list(DTYPES.values()))
    if isinstance(x, list):
        how = rng.randrange(4); i = rng.randrange(len(x)) if x else 0
        if how == 0: return x[:-1]
        if how == 1 and x: return x + [x[-1]]
        return x[:i] + [wilder(x[i], rng)] + x[i + 1:] if x else x
    return rng.choice([None, None, 1, True, 0.5, torch.ones(2, 3)])
def made_wild(full, rng):
    for _ in range(rng.choice([1, 1, 1, 2])):
        i = rng.randrange(len(full)) if full else 0
        if rng.random() < 0.6:                     # prefer an argument that is not None
            given = [k for k, v in enumerate(full) if v is not None]
            i = rng.choice(given) if given else i
        if full: full[i] = wilder(full[i], rng)
    return full

def overload(name):
    base, _, o = name.split('::', 1)[1].partition('.')
    try: return getattr(getattr(torch.ops.aten, base), o or 'default')
    except (AttributeError, RuntimeError): raise Absent('torch has no ' + name)

def bind(op, args, kw):
    """Returns all arguments in the order of the schema, with defaults."""
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
        elif isinstance(x, complex): v.tag = COMPLEX; v.u.c[0], v.u.c[1] = x.real, x.imag
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
    """Returns the first difference between a, PyTorch's result, and b, the library's, or None."""
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

def shown(x):
    if isinstance(x, torch.Tensor):
        return '%s@%s' % (str(list(x.shape)).replace(' ', ''), [k for k, v in DTYPES.items() if v == x.dtype][0]) + ('' if x.is_contiguous() else '~')
    if isinstance(x, list): return '(' + ','.join(shown(y) for y in x) + ')'
    return str(x).replace('torch.', '')
def compare(lib, name, args, kw, do_grad, wild=None, mark=lambda who: None):
    """Calls an operator in PyTorch and in the library.  Returns a list of differences."""
    op = overload(name); full = bind(op, args, kw)
    if wild: full = made_wild(full, wild)
    theirs, ours = copied(full), copied(full)
    torch.manual_seed(0)
    mark('torch: ' + ' '.join(map(shown, full)))
    a, ea = attempt(lambda: call_torch(op, theirs))
    mark('here: ' + ' '.join(map(shown, full)))
    b, eb = attempt(lambda: lib.call(name, ours))
    a, b = [None] if a == [] else a, [None] if b == [] else b
    if ea or eb: return [] if ea and eb else ['torch refuses: ' + ea if ea else 'refused here: ' + eb]
    if len(a) != len(b): return ['%d results, torch %d' % (len(b), len(a))]
    values = not RANDOM.search(name); out = []
    for i, (x, y) in enumerate(zip(a, b)):
        d = differs(x, y, values)
        if d: out.append('result %d: %s' % (i, d))
    for i, (x, y) in enumerate(zip(leaves(theirs), leaves(ours))):
        d = differs(x, y, values) if x.shape == y.shape else None     # odx_abi.h cannot return new sizes of an argument
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
    if ea and 'is not implemented' in ea: return out               # the library has this derivative
    if ea or eb: return out + ([] if ea and eb else ['gradient: torch refuses: ' + ea if ea else 'gradient refused here: ' + eb])
    for i, x, y in zip(wrt, ga, gb):
        if x is None or y is None:
            z = y if x is None else x
            if z is not None and bool((z != 0).any()): out.append('gradient %d: none %s' % (i, 'in torch' if x is None else 'here'))
            continue
        d = differs(x, y, True, False)
        if d: out.append('gradient %d: %s' % (i, d))
    return out

def isolated(jobs, limit=30):
    """Runs the jobs in child processes, so that a crash or a hang affects only one of them.  Returns a list of their
    results."""
    at, out = 0, []
    while at < len(jobs):
        r, w = os.pipe(); pid = os.fork()
        if pid == 0:
            os.close(r); at_once = os.fdopen(w, 'w', buffering=1)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            used = int(open('/proc/self/statm').read().split()[0]) * 4096 if os.path.exists('/proc/self/statm') else 0
            if used: resource.setrlimit(resource.RLIMIT_AS, (used + (3 << 30),) * 2)
            for job in jobs[at:]:
                signal.alarm(limit)
                try: lines = job(lambda who: print('?' + who.replace('\n', ' '), file=at_once))
                except Absent as e: lines = ['-' + str(e)]
                except Exception as e: lines = ['!! %r' % e]
                for l in lines: print('=' + l.replace('\n', ' '), file=at_once)
                print('.', file=at_once)
            os._exit(0)
        os.close(w); lines, who = [], ''
        with os.fdopen(r) as f:
            for l in f:
                l = l.rstrip('\n')
                if l == '.': out.append(lines); lines = []
                elif l[:1] == '?': who = l[1:]
                else: lines.append(l[1:])
        status = os.waitpid(pid, 0)[1]; at = len(out)
        if at < len(jobs):
            out.append(['!! %s in %s' % ('takes too long' if status == signal.SIGALRM else 'crash, status %d' % status, who)]); at += 1
    return out

def main():
    a = ASKED; lib = Library(a.lib)
    if a.lines:
        text = [x for l in a.lines for x in (sys.stdin.read().split('\n') if l == '-' else [l]) if x.strip() and not x.startswith('#')]
        work = [(l.split(None, 1)[0], [l.split(None, 1)[1] if ' ' in l.strip() else '']) for l in text]
    else: work = [(name, cases.split(';')) for name, cases in lib.operators() if re.search(a.op, name)]
    total = [0, 0, 0]                             # equal, different, not in PyTorch or not in the library
    for name, cases in work:
        def one(case, k, mark):
            rng = random.Random('%d %d %s' % (a.seed, k, case)) if a.wild else random.Random(a.seed * 1000 + k)
            reader = Reader(case, rng, DTYPES[a.dtype], '' if a.wild else ['', '~', '/'][k % 3], a.values); last = ['']
            def note(who): last[0] = who.split(': ', 1)[1]; mark(who)
            d = compare(lib, name, *reader.call(), a.grad, rng if a.wild else None, note)
            return ['%s %s%s: %s' % (name, last[0] if a.wild else case.strip(), ' (layout %s)' % reader.layout if reader.layout else '', x) for x in d]
        jobs = [lambda mark, c=c, k=k: one(c, k, mark) for c in cases for k in range(a.wild or a.n)]
        results = [j(lambda who: None) for j in jobs] if a.no_isolate else isolated(jobs, a.limit)
        seen = collections.Counter()
        for lines in results:
            absent = bool(lines) and lines[0][:1] == '-'
            total[2 if absent else bool(lines)] += 1
            for l in lines:
                if absent and not a.lines: continue
                key = re.sub(r'[-+]?\d[\d.e+-]*|nan|inf|\[[^]]*\]|<[^>]*>', '#', l.split(': ', 1)[-1]) if a.brief else l
                seen[key] += 1
                if seen[key] == 1: print(l if l[:2] not in ('!!',) and l[:1] != '-' else name + ' ' + l, flush=True)
        if a.brief:
            for key, n in seen.items():
                if n > 1: print('    %d like this: %s' % (n, key[:120]))
    print('torch %s: %d calls alike, %d different, %d not comparable' % (torch.__version__, total[0], total[1], total[2]))
    return 1 if total[1] else 0
if __name__ == '__main__': sys.exit(main())
