#!/usr/bin/env python3
"""Runs random programs that use autograd in the library and in an installed PyTorch, and prints differences.

    printf '#define OPDISPATCH_IMPLEMENTATION\n#include "../../opdispatch.h"\n' >i.c
    cc -O1 -shared -fPIC i.c -o lib.so -lm -lpthread
    python3 programs.py --lib ./lib.so [--seed 1] [--n 1000] [--steps 15]

A program makes leaves, views, views of views and in-place writes, switches grad mode and inference mode, detaches
tensors, retains gradients, replaces data, and runs backward and grad.  After every step, the script compares errors,
values, sizes, requires_grad, is_leaf, whether there is a grad_fn, versions and bases, and after a backward every .grad.
A program ends at its first difference, which is printed with the steps before it.  Some cases are left out, because
PyTorch's answer cannot be used: writes whose operand overlaps the written tensor, inference tensors that a failed write
has changed, index_fill_ of expanded tensors, set_data of views, versions and bases of gradients.  The exit status is 1
if something differs.  .ci/run does not run this script."""
import argparse, ctypes, random, sys, warnings
warnings.filterwarnings('ignore')
def options():
    """Parses the command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter); p.add_argument('--lib', default='./lib.so'); p.add_argument('--seed', type=int, default=1)
    p.add_argument('--n', type=int, default=1000); p.add_argument('--steps', type=int, default=15); p.add_argument('--most', type=int, default=20)
    return p.parse_args()

ASKED = options() if __name__ == '__main__' else None     # --help needs no torch
import torch
torch.set_num_threads(1)

class Value(ctypes.Structure): _fields_ = [('tag', ctypes.c_int32), ('n', ctypes.c_int32), ('u', ctypes.c_uint64)]
class Ints(ctypes.Structure): _fields_ = [('data', ctypes.c_void_p), ('n', ctypes.c_int64)]
class Scope(ctypes.Structure): _fields_ = [('mark', ctypes.c_int64), ('outer', ctypes.c_int64), ('depth', ctypes.c_int32), ('open', ctypes.c_int32)]
class State(ctypes.Structure):
    _fields_ = [('included', ctypes.c_uint64), ('excluded', ctypes.c_uint64), ('grad', ctypes.c_bool), ('inference', ctypes.c_bool),
                ('no_forward', ctypes.c_bool), ('autocast', ctypes.c_uint16)]
class Options(ctypes.Structure):
    _fields_ = [('grad_outputs', ctypes.c_void_p), ('retain', ctypes.c_bool), ('create', ctypes.c_bool), ('allow_unused', ctypes.c_bool),
                ('inputs', ctypes.c_void_p), ('ninputs', ctypes.c_int), ('materialize', ctypes.c_bool), ('edges', ctypes.c_void_p), ('batched', ctypes.c_bool)]
TENSOR, INT, FLOAT, BOOL, INTS, TENSORS = 1, 2, 3, 4, 9, 12
P, I, B, L = ctypes.c_void_p, ctypes.c_int, ctypes.c_bool, ctypes.c_int64

def load(path):
    lib = ctypes.CDLL(path)
    for name, result, *args in (('opd_find', P, ctypes.c_char_p), ('opd_call_all', I, P, P, P, I), ('opd_error_message', ctypes.c_char_p), ('opd_ok', B),
                         ('opd_error_clear', None), ('opd_tensor_from', P, P, Ints, I), ('opd_tensor_set_requires_grad', P, P, B), ('opd_tensor_requires_grad', B, P),
                         ('opd_tensor_is_leaf', B, P), ('opd_tensor_base', P, P), ('opd_tensor_grad', P, P), ('opd_tensor_grad_fn', ctypes.c_char_p, P),
                         ('opd_tensor_version', ctypes.c_uint32, P), ('opd_tensor_set_data', I, P, P), ('opd_tensor_data', P, P), ('opd_tensor_retain_grad', I, P),
                         ('opd_backward_with', I, P, I, P), ('opd_autograd_grad', I, P, I, P, I, P, P), ('opd_grad_mode_set', B, B), ('opd_inference_mode_set', State, B),
                         ('opd_dispatch_state_set', State, State), ('opd_scope_open', Scope), ('opd_scope_close', None, P), ('opd_ndim', I, P),
                         ('opd_sizes', ctypes.POINTER(L), P), ('opd_strides', ctypes.POINTER(L), P), ('opd_data', P, P), ('opd_numel', L, P), ('opd_tensor_is_inference', B, P)):
        f = getattr(lib, name); f.restype, f.argtypes = result, args
    return lib

class Refused(Exception): pass

# ---- both sides have tensors by number; the library's are pointers, which the outermost scope holds
class Ours:
    def __init__(self, lib): self.lib, self.t, self.states, self.scope = lib, [], [], lib.opd_scope_open()
    def close(self):
        while self.states: self.leave()
        self.lib.opd_error_clear(); self.lib.opd_scope_close(ctypes.byref(self.scope))
    def check(self):
        if not self.lib.opd_ok():
            text = self.lib.opd_error_message().decode('utf8', 'replace'); self.lib.opd_error_clear(); raise Refused(text)
    def leaf(self, values, sizes, rg):
        data, dims = (ctypes.c_double * len(values))(*values), (L * len(sizes))(*sizes)
        t = self.lib.opd_tensor_from(data, Ints(ctypes.cast(dims, P), len(sizes)), 7)
        if rg: self.lib.opd_tensor_set_requires_grad(t, True)
        self.check(); self.t.append(t)
    def call(self, name, args, many=False):
        op, keep, vals = self.lib.opd_find(name.encode()), [], (Value * len(args))()
        assert op, name
        for v, a in zip(vals, args):
            if isinstance(a, tuple) and a[0] == 't': v.tag, v.u = TENSOR, self.t[a[1]]
            elif isinstance(a, bool): v.tag, v.u = BOOL, a
            elif isinstance(a, int): v.tag, v.u = INT, a & (2**64 - 1)
            elif isinstance(a, float): v.tag = FLOAT; v.u = ctypes.c_uint64.from_buffer(ctypes.c_double(a)).value
            elif isinstance(a, list) and a and a[0] == 'i':       # an index tensor
                data, dims = (L * (len(a) - 1))(*a[1:]), (L * 1)(len(a) - 1)
                v.tag, v.u = TENSOR, self.lib.opd_tensor_from(data, Ints(ctypes.cast(dims, P), 1), 4)
            else:
                p = (L * max(1, len(a)))(*a); keep.append(p); v.tag, v.n, v.u = INTS, len(a), ctypes.cast(p, P).value
        rets = (Value * 4)()
        rc = self.lib.opd_call_all(op, rets, vals, len(args))
        self.check()
        assert rc == 0
        if rets[0].tag == TENSORS: out = list((P * rets[0].n).from_address(rets[0].u)) if rets[0].n else []
        else: out = [rets[0].u]
        return out
    def op(self, name, args): self.t += self.call(name, args)
    def write(self, name, args): self.call(name, args)
    def mode(self, kind):
        self.states.append((kind, self.lib.opd_inference_mode_set(True) if kind == 'inference' else self.lib.opd_grad_mode_set(kind == 'grad')))
    def leave(self):
        kind, was = self.states.pop()
        if kind == 'inference': self.lib.opd_dispatch_state_set(was)
        else: self.lib.opd_grad_mode_set(was)
    def requires_grad_(self, i, on): self.lib.opd_tensor_set_requires_grad(self.t[i], on); self.check()
    def retain_grad(self, i): self.lib.opd_tensor_retain_grad(self.t[i]); self.check()
    def data(self, i): t = self.lib.opd_tensor_data(self.t[i]); self.check(); self.t.append(t)
    def set_data(self, i, k): self.lib.opd_tensor_set_data(self.t[i], self.t[k]); self.check()
    def backward(self, i, retain, create):
        o, s = Options(retain=retain, create=create), self.call('aten::sum', [('t', i)])
        self.lib.opd_backward_with((P * 1)(s[0]), 1, ctypes.byref(o)); self.check()
    def grad(self, i, k, retain, create):
        o, s = Options(retain=retain, create=create, allow_unused=True), self.call('aten::sum', [('t', i)])
        out = (P * 1)()
        self.lib.opd_autograd_grad((P * 1)(s[0]), 1, (P * 1)(self.t[k]), 1, ctypes.byref(o), out); self.check()
        if out[0]: self.t.append(out[0])
        return out[0] is not None
    def get_grad(self, i): return self.lib.opd_tensor_grad(self.t[i])
    def values(self, t):
        n, b = self.lib.opd_ndim(t), self.lib
        z, s, p = b.opd_sizes(t)[:n], b.opd_strides(t)[:n], b.opd_data(t)
        out = [0]
        for size, stride in zip(z, s): out = [o + k * stride for o in out for k in range(size)]
        return tuple(z), [ctypes.c_double.from_address(p + 8 * o).value for o in out] if b.opd_numel(t) else []
    def look(self, i):
        t, b = self.t[i], self.lib
        base = b.opd_tensor_base(t)
        inference = b.opd_tensor_is_inference(t)
        rg, leaf = b.opd_tensor_requires_grad(t), b.opd_tensor_is_leaf(t)
        try: fn = b.opd_tensor_grad_fn(t) is not None; self.check()
        except Refused: fn = 'error'
        return {'sizes, values': self.values(t), 'requires_grad': rg, 'is_leaf': leaf, 'grad_fn': fn, 'inference': inference,
                'version': None if inference else b.opd_tensor_version(t), 'base': None if not base else self.values(base),
                'base is': self.t.index(base) if base in self.t else None, 'grad': self.values(b.opd_tensor_grad(t)) if b.opd_tensor_grad(t) else None}

class Theirs:
    def __init__(self): self.t, self.modes, self.loose = [], [], set()
    def close(self):
        while self.modes: self.leave()
    def leaf(self, values, sizes, rg):
        t = torch.empty(sizes, dtype=torch.float64)
        t.copy_(torch.tensor(values, dtype=torch.float64).reshape(sizes)); t = t.data
        self.t.append(t.requires_grad_(rg))
    def call(self, name, args):
        ns, rest = name.split('::'); base, _, overload = rest.partition('.')
        f = getattr(getattr(torch.ops.aten, base), overload or 'default')
        a = [self.t[x[1]] if isinstance(x, tuple) else torch.tensor(x[1:]) if isinstance(x, list) and x and x[0] == 'i' else x for x in args]
        out = f(*a)
        return list(out) if isinstance(out, (list, tuple)) else [out]
    def op(self, name, args): self.t += self.call(name, args)
    def write(self, name, args): self.call(name, args)
    def mode(self, kind):
        m = torch.inference_mode() if kind == 'inference' else torch.set_grad_enabled(kind == 'grad')
        m.__enter__()
        self.modes.append(m)
    def leave(self): self.modes.pop().__exit__(None, None, None)
    def requires_grad_(self, i, on): self.t[i].requires_grad_(on)
    def retain_grad(self, i): self.t[i].retain_grad()
    def data(self, i): self.t.append(self.t[i].data)
    def set_data(self, i, k): self.t[i].data = self.t[k]
    def backward(self, i, retain, create): self.t[i].sum().backward(retain_graph=retain or create, create_graph=create)
    def grad(self, i, k, retain, create):
        g, = torch.autograd.grad(self.t[i].sum(), [self.t[k]], retain_graph=retain or create, create_graph=create, allow_unused=True)
        if g is not None: self.t.append(g)
        return g is not None
    def values(self, t): return tuple(t.shape), t.detach().reshape(-1).tolist()
    def look(self, i):
        t = self.t[i]
        inference = t.is_inference()
        try: leaf, fn = t.is_leaf, t.grad_fn is not None
        except RuntimeError: return {}                         # the view's history is invalid
        base = t._base
        k = next((k for k, x in enumerate(self.t) if x is base), None) if base is not None else None
        return {'sizes, values': self.values(t), 'requires_grad': t.requires_grad, 'is_leaf': leaf, 'grad_fn': fn, 'inference': inference,
                'version': None if inference else t._version, 'base': None if base is None else self.values(base), 'base is': k,
                'grad': None if not (t.is_leaf or t.retains_grad) or t.grad is None else self.values(t.grad)}

# ---- steps
def view(r, i, z):
    n, d = len(z), r.randrange(-len(z), len(z)) if z else 0
    size = z[d] if z else 0
    pick = r.randrange(14)
    t = ('t', i)
    if pick == 0: return 'aten::view', [t, [-1]]
    if pick == 1 and n: return 'aten::select.int', [t, d, r.randrange(max(1, size))]
    if pick == 2 and n: k = r.randrange(max(1, size)); return 'aten::narrow', [t, d, k, max(0, size - k)]
    if pick == 3 and n > 1: return 'aten::transpose.int', [t, 0, -1]
    if pick == 4: return 'aten::unsqueeze', [t, 0]
    if pick == 5: return 'aten::expand', [t, [2] + list(z)]
    if pick == 6 and n: return 'aten::split.Tensor', [t, 1, d]
    if pick == 7 and n > 1: return 'aten::diagonal', [t]
    if pick == 8: return 'aten::detach', [t]
    if pick == 9 and n: return 'aten::tensor_split.sections', [t, 2, d]
    if pick == 10 and n: return 'aten::unbind.int', [t, d]
    if pick == 11: return 'aten::squeeze', [t]
    if pick == 12: return 'aten::alias', [t]
    return 'aten::slice.Tensor' if n else 'aten::alias', [t, 0, 0, max(1, size), 1] if n else [t]
def write(r, i, k, z):
    t, o = ('t', i), ('t', k)
    d = r.randrange(len(z)) if z else 0
    return r.choice([('aten::mul_.Tensor', [t, o]), ('aten::add_.Tensor', [t, o]), ('aten::copy_', [t, o]), ('aten::zero_', [t]), ('aten::exp_', [t]), ('aten::sigmoid_', [t]),
                     ('aten::mul_.Scalar', [t, 0.5]), ('aten::add_.Scalar', [t, 1.0]), ('aten::index_fill_.int_Scalar', [t, d, ['i', 0], 0.25]), ('aten::squeeze_', [t]),
                     ('aten::t_', [t]), ('aten::unsqueeze_', [t, 0]), ('aten::fill_.Scalar', [t, 0.75]), ('aten::detach_', [t]), ('aten::relu_', [t]), ('aten::tanh_', [t]),
                     ('aten::sub_.Tensor', [t, o]), ('aten::transpose_', [t, 0, -1]), ('aten::sin_', [t])])
def plain(r, i, k):
    t, o = ('t', i), ('t', k)
    return r.choice([('aten::mul.Tensor', [t, o]), ('aten::add.Tensor', [t, o]), ('aten::exp', [t]), ('aten::sigmoid', [t]), ('aten::sin', [t]), ('aten::sum', [t]), ('aten::clone', [t]),
                     ('aten::tanh', [t]), ('aten::sub.Tensor', [t, o]), ('aten::mul.Scalar', [t, 2.0])])
def step(r, a, depth):
    n = len(a.t)
    i, k = (max(r.randrange(n), r.randrange(n)) if r.random() < .6 else r.randrange(n)), r.randrange(n)
    z = tuple(a.t[i].shape)
    p = r.random()
    if p < .27: return ('op',) + view(r, i, z)
    if p < .52: return ('op',) + plain(r, i, k)
    if p < .76: return ('write',) + write(r, i, k, z)
    if p < .80: return ('mode', r.choice(['no_grad', 'no_grad', 'grad', 'inference'])) if depth < 2 else ('leave',)
    if p < .85: return ('leave',) if depth else ('requires_grad_', i, r.random() < .6)
    if p < .88: return ('requires_grad_', i, r.random() < .6)
    if p < .90: return ('retain_grad', i)
    if p < .91: return ('data', i)
    if p < .93:                                                # only for a tensor that is not a view and has no views
        like = [m for m in range(n) if a.t[m].shape == a.t[i].shape and a.t[m].is_inference() == a.t[i].is_inference()]
        alone = not a.t[i]._is_view() and all(x._base is not a.t[i] for x in a.t)
        return ('set_data', i, r.choice(like)) if alone else ('retain_grad', i)
    if p < .97: return ('backward', i, r.random() < .6, r.random() < .3)
    return ('grad', i, k, r.random() < .6, r.random() < .5)

def near(a, b):
    if isinstance(a, float) and isinstance(b, float): return a == b or (a != a and b != b) or abs(a - b) <= 1e-9 * max(1, abs(a), abs(b)) 
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)): return len(a) == len(b) and all(near(x, y) for x, y in zip(a, b))
    return a == b
def do(side, s):
    try: return getattr(side, s[0])(*s[1:]), None
    except (Refused, RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as e: return None, str(e).split('\n')[0]

def compare(a, b):
    for i in range(len(a.t)):
        y = a.look(i)
        x = b.look(i) if y else y
        for what in y:
            if i in a.loose and what in ('version', 'base', 'base is'): continue
            if not near(y[what], x[what]): return 't%d: %s is %s in PyTorch, %s here' % (i, what, y[what], x[what])
def overlap(a, s):
    """Returns True if an operand shares memory with the written tensor, and is not the same view."""
    t = a.t[s[2][0][1]]
    return any(x.data_ptr() != t.data_ptr() or x.shape != t.shape or x.stride() != t.stride() for x in
               (a.t[v[1]] for v in s[2][1:] if isinstance(v, tuple)) if x.untyped_storage().data_ptr() == t.untyped_storage().data_ptr())
def program(lib, seed, steps):
    r, a, b, done, found = random.Random(seed), Theirs(), Ours(lib), [], None
    try:
        for _ in range(3):
            z = r.choice([(2, 2), (2, 2), (2,), (1, 2), ()]); n = 1
            for x in z: n *= x
            s = ('leaf', [r.randrange(1, 16) / 8 for _ in range(n)], z, r.random() < .6)
            done.append(s); do(a, s); do(b, s)
        for _ in range(steps):
            s = step(r, a, len(a.modes))
            n = len(a.t)
            if s[0] == 'write' and overlap(a, s): break        # PyTorch refuses, or reads written elements
            x, xe = do(a, s); y, ye = do(b, s)
            if xe and ('INTERNAL ASSERT' in xe or 'at version' in xe) and not ye: break    # only in PyTorch
            # bases and versions are undefined for gradients, for copies of inference tensors, and after set_data
            if s[0] in ('grad', 'set_data'): a.loose |= set(range(len(a.t)))
            if s[0] == 'op':
                if s[1] == 'aten::clone' or any(v[1] in a.loose for v in s[2] if isinstance(v, tuple)): a.loose |= set(range(n, len(a.t)))
            done.append(s + (('refused: ' + xe[:90],) if xe else ()))
            if ye and 'refers to a single memory location' in ye: break    # index_fill_ of expanded: PyTorch only warns
            if ye and 'inference tensor outside InferenceMode' in ye and xe: break     # PyTorch has already written it
            if s[0] in ('requires_grad_', 'retain_grad') and ye and not a.look(s[1]): break
            if (xe is None) != (ye is None): found = 'an error in %s only: %s' % ('PyTorch' if xe else 'the library', (xe or ye)[:300])
            elif x != y: found = 'PyTorch gives %s, the library %s' % (x, y)
            elif len(a.t) != len(b.t): found = 'another number of results'
            else: found = compare(a, b)
            if found or len(a.t) > 24: break
    finally:
        a.close(); b.close()
    return found, done

def main():
    o = ASKED; lib, bad = load(o.lib), 0
    for seed in range(o.seed, o.seed + o.n):
        found, done = program(lib, seed, o.steps)
        if not found: continue
        bad += 1
        if bad <= o.most:
            print('program %d: %s' % (seed, found))
            for s in done: print('   ', *s)
    print('%d programs, %d differ' % (o.n, bad))
    return bad != 0
if __name__ == '__main__': sys.exit(main())
