#!/usr/bin/python3
"""Writes views.txt: random programs with views and in-place operators, and PyTorch's (1.13) results: which steps it
refuses, with the error, all tensors at the end, and first and second gradients.  tests/autograd/test_inplace_views.c
runs them.

    /usr/bin/python3 make_views.py > views.txt

A line is one step.  If PyTorch refuses it, the line begins with '!' and ends with ' # ' and the error's first words.
    L id requires_grad ndim sizes      a leaf: element i is 0.2 + 0.6 * frac((i + 1) * 0.61803398875 + id * 0.27)
    F id op a [b]                      an operator that makes a new tensor
    V id op a numbers                  a view (for split, the last number selects the result)
    I op a [b]                         writes to a in place
    G 0 / G 1                          sets grad mode
    S id requires_grad is_leaf version a tensor at the end
    B / !B                             backward of the sum over all tensors t of (id + 1) * t * t
    D leaf values                      the leaf's gradient ('-': none)
    H leaf values                      the gradient of the sum of squares of the gradients D
    E                                  the end
"""
import random
import torch

PROGRAMS = 500


def first_words(e):
    text = str(e).split('\n')[0].replace('Output 0', 'Output').replace('Output 1', 'Output')
    return text.replace('leaf Variable', 'leaf tensor').replace('single Variable', 'single tensor')[:400]


class Program:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.t = []            # tensors by id
        self.leaves = []
        self.lines = []
        self.grad = True

    def step(self, line, f):
        """Runs f, and keeps the line and the tensor that f returns."""
        try:
            with torch.set_grad_enabled(self.grad):
                got = f()
        except (RuntimeError, IndexError) as e:
            self.lines.append('!' + line + ' # ' + first_words(e))
            return
        self.lines.append(line)
        if got is not None:
            self.t.append(got)

    def leaf(self):
        r, k = self.r, len(self.t)
        sizes = [r.randint(1, 3) for _ in range(r.randint(1, 3))]
        n = 1
        for s in sizes:
            n *= s
        need = r.random() < 0.6
        v = [0.2 + 0.6 * (((i + 1) * 0.61803398875 + k * 0.27) % 1.0) for i in range(n)]
        x = torch.tensor(v, dtype=torch.float64).reshape(sizes).clone().requires_grad_(need)
        self.leaves.append(k)
        self.step('L %d %d %d %s' % (k, need, len(sizes), ' '.join(map(str, sizes))), lambda: x)

    def pick(self):
        """Chooses any tensor, but seldom a leaf that requires grad or a view of one: most writes to these are
        refused."""
        while True:
            k = self.r.randrange(len(self.t))
            t = self.t[k]
            if self.r.random() < 0.1 or not t.requires_grad or not (t if t._base is None else t._base).is_leaf:
                return k

    def like(self, a):
        """Chooses a tensor that broadcasts to a."""
        fits = []
        for k, t in enumerate(self.t):
            try:
                if torch.broadcast_shapes(t.shape, self.t[a].shape) == self.t[a].shape:
                    fits.append(k)
            except RuntimeError:
                pass
        return self.r.choice(fits)

    def functional(self):
        k, a = len(self.t), self.pick()
        op = self.r.choice(['mul', 'add', 'sin', 'tanh', 'exp', 'clone'])
        x = self.t[a]
        if op in ('mul', 'add'):
            b = self.like(a)
            self.step('F %d %s %d %d' % (k, op, a, b), lambda: getattr(torch, op)(x, self.t[b]))
        else:
            self.step('F %d %s %d' % (k, op, a), lambda: getattr(torch, op)(x))

    def view(self):
        r, k, a = self.r, len(self.t), self.pick()
        x = self.t[a]
        op = r.choice(['view', 'transpose', 'select', 'slice', 'slice', 'select', 'unsqueeze', 'squeeze', 'expand',
                       'diagonal', 'as_strided', 'detach', 'split', 'permute', 'unfold', 'alias', 'unbind'])
        n = x.dim()
        if op == 'view':
            v, f = [-1], lambda: x.view(-1)
        elif op == 'transpose':
            v = [r.randrange(max(n, 1)), r.randrange(max(n, 1))]
            f = lambda: x.transpose(*v)
        elif op == 'select':
            d = r.randrange(max(n, 1))
            v = [d, r.randrange(x.shape[d]) if n and x.shape[d] else 0]
            f = lambda: x.select(*v)
        elif op == 'slice':
            d = r.randrange(max(n, 1))
            s = r.randrange(x.shape[d]) if n and x.shape[d] else 0
            v = [d, s, s + r.randint(0, 3), r.randint(1, 2)]
            f = lambda: torch.ops.aten.slice(x, *v)
        elif op == 'unsqueeze':
            v = [r.randint(0, n)]
            f = lambda: x.unsqueeze(*v)
        elif op in ('squeeze', 'detach', 'alias'):
            v = []
            f = {'squeeze': x.squeeze, 'detach': x.detach, 'alias': lambda: torch.ops.aten.alias(x)}[op]
        elif op == 'expand':
            v = [2] + list(x.shape)
            f = lambda: x.expand(v)
        elif op == 'diagonal':
            v = [r.randint(-1, 1), 0, 1]
            f = lambda: x.diagonal(*v)
        elif op == 'permute':
            v = list(range(n))
            r.shuffle(v)
            f = lambda: x.permute(v)
        elif op == 'as_strided':
            v = [2, 2, 2, 1, r.randint(0, 1)]
            f = lambda: x.as_strided(v[:2], v[2:4], v[4])
        elif op == 'unfold':
            v = [0, 2, 2]
            f = lambda: x.unfold(*v)
        elif op == 'split':
            v = [1, 0, 0]
            f = lambda: x.split(v[0], v[1])[v[2]]
        else:
            v = [0, 0]
            f = lambda: x.unbind(v[0])[v[1]]
        if n == 0 and op in ('unfold', 'transpose', 'select', 'slice'):
            return
        self.step('V %d %s %d %s' % (k, op, a, ' '.join(map(str, v))), f)

    def write(self):
        a = self.pick()
        x = self.t[a]
        op = self.r.choice(['mul_', 'add_', 'sin_', 'tanh_', 'exp_', 'neg_', 'zero_', 'fill_', 'copy_', 'copy_', 'mul_',
                            'sigmoid_', 't_', 'unsqueeze_', 'squeeze_', 'transpose_', 'detach_'])
        # The library and PyTorch differ in these: mul_ of a tensor with itself (PyTorch refuses backward), fill_ of a
        # tensor whose elements overlap (the library refuses), detach_ of a tensor with views (PyTorch ends the history
        # of the views)
        if op == 'detach_' and any(t._base is x for t in self.t):
            return
        if op in ('fill_', 'zero_') and any(n > 1 and m == 0 for n, m in zip(x.shape, x.stride())):
            return
        if op in ('mul_', 'add_', 'copy_'):
            b = self.like(a)
            if a == b and op == 'mul_':
                return
            self.step('I %s %d %d' % (op, a, b), lambda: (getattr(x, op)(self.t[b]), None)[1])
        elif op == 'unsqueeze_':
            self.step('I unsqueeze_ %d' % a, lambda: (x.unsqueeze_(0), None)[1])
        elif op == 'transpose_':
            if x.dim() > 1:
                self.step('I transpose_ %d' % a, lambda: (x.transpose_(0, 1), None)[1])
        elif op == 'fill_':
            self.step('I fill_ %d' % a, lambda: (x.fill_(0.5), None)[1])
        else:
            self.step('I %s %d' % (op, a), lambda: (getattr(x, op)(), None)[1])

    def run(self):
        for _ in range(self.r.randint(1, 3)):
            self.leaf()
            k = len(self.t)
            self.step('F %d clone %d' % (k, k - 1), self.t[k - 1].clone)
        for _ in range(self.r.randint(4, 14)):
            what = self.r.random()
            if what < 0.08:
                self.grad = not self.grad
                self.lines.append('G %d' % self.grad)
            elif what < 0.25:
                self.functional()
            elif what < 0.6:
                self.view()
            else:
                self.write()
        self.grad = True
        self.lines.append('G 1')
        self.finish()
        return self.lines

    def state(self, k):
        t = self.t[k]
        try:
            return 'S %d %d %d %d' % (k, t.requires_grad, t.is_leaf, t._version)
        except RuntimeError as e:
            return '!S %d # %s' % (k, first_words(e))

    def values(self, letter, k, g):
        if g is None:
            return '%s %d -' % (letter, k)
        return '%s %d %s' % (letter, k, ' '.join('%.15g' % x for x in g.detach().reshape(-1).tolist()))

    def finish(self):
        want = [k for k in self.leaves if self.t[k].is_leaf and self.t[k].requires_grad]
        self.lines += [self.state(k) for k in range(len(self.t))]
        try:
            loss = torch.zeros((), dtype=torch.float64)
            for k, t in enumerate(self.t):
                loss = loss + ((k + 1) * t * t).sum()
            if not want or not loss.requires_grad:
                self.lines.append('E')
                return
            leaves = [self.t[k] for k in want]
            first = torch.autograd.grad(loss, leaves, create_graph=True, allow_unused=True)
            self.lines.append('B')
            self.lines += [self.values('D', k, g) for k, g in zip(want, first)]
        except RuntimeError as e:
            self.lines += ['!B # ' + first_words(e), 'E']
            return
        try:
            again = sum((g * g).sum() for g in first if g is not None)
            if isinstance(again, torch.Tensor) and again.requires_grad:
                second = torch.autograd.grad(again, leaves, allow_unused=True)
                self.lines += [self.values('H', k, g) for k, g in zip(want, second)]
        except RuntimeError as e:
            self.lines.append('!H # ' + first_words(e))
        self.lines.append('E')


if __name__ == '__main__':
    torch.set_num_threads(1)
    left, seed = PROGRAMS, 0
    while left:
        seed += 1
        text = '\n'.join(Program(seed).run())
        # errors inside PyTorch, and overlapping elements, which PyTorch refuses and the library does not
        if not any(w in text for w in ('INTERNAL ASSERT', 'invalid gradient', 'some elements of the input tensor')):
            print(text)
            left -= 1
