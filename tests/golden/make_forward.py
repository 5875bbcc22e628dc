#!/usr/bin/python3
"""Writes forward.txt: random programs with dual tensors, views and in-place operators, and the values and tangents that
PyTorch 1.13 computes.  If autograd records the program, also the gradients of functions of the tangents.
tests/autograd/test_forward.c runs the programs.

    /usr/bin/python3 make_forward.py > forward.txt

    L id dual ndim sizes       a leaf.  Element i is 0.2 + 0.6 * frac((i + 1) * 0.61803398875 + id * 0.27).  If dual is
                               1, it has a tangent: element i is 1.3 * frac((i + 1) * 0.41421356237 + id * 0.31) - 0.5
    C name arguments           calls aten::name.  t3 is tensor 3, (1,2) a list, _ None.  If the name has '_' before its
                               overload, the call writes to its first argument; otherwise it makes the next tensor
    T id values                the value and the tangent of a tensor at the end, in C order ('-': no tangent)
    R                          the leaves and their tangents require grad.  The loss is the sum of (id + 1) * tangent^2
    G id values                its gradients by leaf id and by the tangent of this leaf ('-': none)
    E                          the end
"""
import random
import torch
import torch.autograd.forward_ad as fw

PROGRAMS = 400
UNARY = ['sin', 'tanh', 'exp', 'sigmoid', 'neg', 'abs', 'clone', 'relu', 'sqrt', 'floor', 'softplus', 'gelu']
WRITES = ['sin_', 'tanh_', 'exp_', 'neg_', 'zero_', 'fill_.Scalar', 'sigmoid_', 't_', 'unsqueeze_', 'squeeze_', 'mul_.Tensor',
          'add_.Tensor', 'copy_', 'sub_.Tensor', 'mul_.Tensor', 'copy_', 'div_.Tensor', 'addcmul_']


def text(v):
    return '_' if v is None else '(' + ','.join(map(str, v)) + ')' if isinstance(v, list) else str(v)


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.t, self.leaves, self.lines = [], [], []
        self.tape = self.r.random() < 0.4

    def leaf(self):
        r, k = self.r, len(self.t)
        sizes = [r.randint(1, 3) for _ in range(r.randint(1, 3))]
        n = 1
        for s in sizes:
            n *= s
        dual = r.random() < 0.6
        x = torch.tensor([0.2 + 0.6 * (((i + 1) * 0.61803398875 + k * 0.27) % 1.0) for i in range(n)],
                         dtype=torch.float64).reshape(sizes).requires_grad_(self.tape)
        t = torch.tensor([1.3 * (((i + 1) * 0.41421356237 + k * 0.31) % 1.0) - 0.5 for i in range(n)],
                         dtype=torch.float64).reshape(sizes).requires_grad_(self.tape)
        self.leaves.append((k, x, t if dual else None))
        self.lines.append('L %d %d %d %s' % (k, dual, len(sizes), ' '.join(map(str, sizes))))
        self.t.append(fw.make_dual(x, t) if dual else x)

    def call(self, name, *args):
        op = torch.ops.aten
        for part in name.split('.'):
            op = getattr(op, part)
        try:
            got = op(*[self.t[a[0]] if isinstance(a, tuple) else a for a in args])
        except (RuntimeError, IndexError) as e:
            if 'INTERNAL' in str(e):
                raise
            return
        if isinstance(got, (tuple, list)) and not got:
            return
        self.lines.append('C %s %s' % (name, ' '.join('t%d' % a if isinstance(a, tuple) else text(a) for a in args)))
        if not name.split('.')[0].endswith('_'):
            self.t.append(got[0] if isinstance(got, (tuple, list)) else got)

    def like(self, a):
        fits = []
        for k, t in enumerate(self.t):
            try:
                if torch.broadcast_shapes(t.shape, self.t[a].shape) == self.t[a].shape:
                    fits.append(k)
            except RuntimeError:
                pass
        return self.r.choice(fits)

    def functional(self):
        r, a = self.r, self.r.randrange(len(self.t))
        x, n = self.t[a], self.t[a].dim()
        what = r.random()
        if what < 0.35:
            self.call(r.choice(UNARY), (a,))
        elif what < 0.6:
            name = r.choice(['mul.Tensor', 'add.Tensor', 'sub.Tensor', 'div.Tensor', 'maximum'])
            self.call(name, (a,), (self.like(a),))
        elif n and what < 0.7:
            self.call('sum.dim_IntList', (a,), [r.randrange(n)], r.choice([True, False]))
        elif n and what < 0.78:
            self.call('_softmax', (a,), r.randrange(n), False)
        elif n == 2 and what < 0.9:
            self.call('mm', (a,), (r.choice([k for k, t in enumerate(self.t) if t.dim() == 2]),))
        elif n:
            self.call('cumsum', (a,), r.randrange(n))

    def view(self):
        r, a = self.r, self.r.randrange(len(self.t))
        x, n = self.t[a], self.t[a].dim()
        op = r.choice(['view', 'transpose.int', 'select.int', 'slice.Tensor', 'slice.Tensor', 'unsqueeze', 'squeeze', 'expand',
                       'permute', 'diagonal', 'as_strided', 'detach', 'unfold', 'alias', 'unbind.int', 'split.Tensor'])
        if op in ('unsqueeze',):
            return self.call(op, (a,), r.randint(0, n))
        if op in ('squeeze', 'alias'):
            return self.call(op, (a,))
        if op == 'view':
            return self.call(op, (a,), [-1])
        if op == 'expand':
            return self.call(op, (a,), [2] + list(x.shape))
        if op == 'detach':                        # if x gets a tangent later, this library shares it
            return self.call(op, (a,)) if fw.unpack_dual(x).tangent is not None else None
        if n == 0:
            return None
        d = r.randrange(n)
        if op == 'transpose.int':
            return self.call(op, (a,), d, r.randrange(n))
        if op == 'select.int':
            return self.call(op, (a,), d, r.randrange(max(x.shape[d], 1)))
        if op == 'slice.Tensor':
            s = r.randrange(max(x.shape[d], 1))
            return self.call(op, (a,), d, s, s + r.randint(1, 3), r.randint(1, 2))
        if op == 'permute':
            p = list(range(n))
            r.shuffle(p)
            return self.call(op, (a,), p)
        if op == 'diagonal':
            return self.call(op, (a,), r.randint(-1, 1), 0, n - 1) if n > 1 else None
        if op == 'as_strided':
            # with autograd, PyTorch's gradient leaves out elements that the tensor itself does not contain
            return None if self.tape else self.call(op, (a,), [2, 2], [2, 1], r.randint(0, 1))
        if op == 'unfold':
            return self.call(op, (a,), d, min(2, x.shape[d]), 2)
        return self.call(op, (a,), *([1] if op == 'split.Tensor' else []), d)

    def write(self):
        r, a = self.r, self.r.randrange(len(self.t))
        x = self.t[a]
        if any(n > 1 and m == 0 for n, m in zip(x.shape, x.stride())):
            return
        op = r.choice(WRITES)
        like = self.like(a), self.like(a)
        if any(self.t[k].storage().data_ptr() == x.storage().data_ptr() for k in like):
            return                                # PyTorch's tangents of x.mul_(x) are wrong
        if op in ('mul_.Tensor', 'add_.Tensor', 'sub_.Tensor', 'div_.Tensor', 'copy_'):
            self.call(op, (a,), (like[0],))
        elif op == 'fill_.Scalar':
            self.call(op, (a,), 0.5)
        elif op == 'unsqueeze_':
            self.call(op, (a,), 0)
        elif op == 'addcmul_':
            self.call(op, (a,), (like[0],), (like[1],))
        else:
            self.call(op, (a,))

    def values(self, t):
        if t is not None and t._is_zerotensor():
            t = torch.zeros(t.shape)
        return '-' if t is None else ' '.join('%.15g' % v for v in t.detach().reshape(-1).tolist())

    def run(self):
        with fw.dual_level():
            for _ in range(self.r.randint(2, 3)):
                self.leaf()
            for _ in range(self.r.randint(4, 14)):
                what = self.r.random()
                if what < 0.35:
                    self.functional()
                elif what < 0.65 or self.tape:
                    self.view()
                else:
                    self.write()
            loss = None
            for k, t in enumerate(self.t):
                p, g = fw.unpack_dual(t)
                self.lines.append('T %d %s ; %s' % (k, self.values(p), self.values(g)))
                if g is not None and g.requires_grad:
                    term = ((k + 1) * g * g).sum()
                    loss = term if loss is None else loss + term
        if loss is not None:
            every = [v for _, x, t in self.leaves for v in (x, t) if v is not None]
            grads = iter(torch.autograd.grad(loss, every, allow_unused=True))
            self.lines.append('R')
            for k, x, t in self.leaves:
                by_x, by_t = next(grads), next(grads) if t is not None else None
                self.lines.append('G %d %s ; %s' % (k, self.values(by_x), self.values(by_t)))
        return self.lines + ['E']


if __name__ == '__main__':
    torch.set_num_threads(1)
    left, seed = PROGRAMS, 0
    while left:
        seed += 1
        try:
            lines = Program(seed).run()
        except RuntimeError as e:                 # errors inside PyTorch
            assert 'INTERNAL' in str(e) or 'modified by an inplace' in str(e), e
            continue
        if all(len(line) < 4000 and 'nan' not in line and 'inf' not in line for line in lines):
            print('\n'.join(lines))
            left -= 1
