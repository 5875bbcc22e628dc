#!/usr/bin/env python3
"""Writes function.txt: the results of custom autograd functions in PyTorch, for test_function.c.  Needs torch.

    python3 tests/golden/make_function.py > tests/golden/function.txt

Each line has a name, and then numbers.
"""
import torch
from torch.autograd import Function, grad
from torch.autograd.function import once_differentiable

torch.set_default_dtype(torch.float64)


def say(name, *tensors):
    print(name, *["%.17g" % v for t in tensors for v in torch.as_tensor(t, dtype=torch.float64).flatten().tolist()])


def xs():
    return torch.tensor([1.0, 2, 3, 4], requires_grad=True), torch.tensor([0.5, 1.5, -1, 2], requires_grad=True)


# -- _function_test: save, attributes, second derivatives
class Scaled(Function):
    @staticmethod
    def forward(ctx, a, k, b):
        ctx.k = k
        ctx.save_for_backward(a, b)
        return a + k * b + a * b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g + g * b, None, g * ctx.k + g * a


x, y = xs()
r = Scaled.apply(x, 2, y)
say("scaled", r)
go = torch.ones((), requires_grad=True)
r.sum().backward(go, create_graph=True)
say("scaled_grads", x.grad, y.grad)
say("scaled_second", *grad((x.grad * y.grad).sum(), [x, y, go]))


# -- a function that saves its result
class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        r = x.exp()
        ctx.save_for_backward(r)
        return r

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


x, _ = xs()
g, = grad(Exp.apply(x).sum(), x, create_graph=True)
gg, = grad(g.sum(), x, create_graph=True)
say("exp", g, gg, grad(gg.sum(), x)[0])


# -- a function that returns its inputs
class Both(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x, y

    @staticmethod
    def backward(ctx, g, h):
        return g * 3, h * 5


x, y = xs()
a, b = Both.apply(x, y)
(a * b).sum().backward()
say("as_is", x.grad, y.grad)
a, b = Both.apply(x, torch.ones(4))
say("as_is_flags", a.requires_grad, b.requires_grad, a._is_view(), a is x)
with torch.no_grad():
    a, b = Both.apply(x, torch.ones(4))
say("as_is_no_grad", a.requires_grad, b.requires_grad, a is x)


# -- the same tensor as two arguments
class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        r = x * 2
        return r, r

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 2


x, _ = xs()
a, b = Twice.apply(x)
say("twice_flags", a is b, a.output_nr)
(a * a + b).sum().backward()
say("twice", x.grad)


class TwiceInplace(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x, x

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 2


x, _ = xs()
a, b = TwiceInplace.apply(x.clone())
say("twice_inplace_flags", a is b, a.output_nr)
(a * a + b).sum().backward()
say("twice_inplace", x.grad)


# -- in place
class AddInto(Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.mark_dirty(a)
        return a.add_(b), b + 2

    @staticmethod
    def backward(ctx, g, h):
        return g, g + h


x = torch.tensor([1.0, 2, 3, 4])
_, y = xs()
q, p = AddInto.apply(x, y)
say("dirty_flags", q is x, q.requires_grad)
q.sum().backward()
say("dirty", y.grad)
x, y = xs()
z = x * 3
q, p = AddInto.apply(z, y)
(q * p).sum().backward()
say("dirty_history", x.grad, y.grad)


# -- outputs without a gradient
class Mixed(Function):
    @staticmethod
    def forward(ctx, x):
        a = x + 1
        b = x + 2
        ctx.mark_non_differentiable(a)
        return a, b

    @staticmethod
    def backward(ctx, g, h):
        say("mixed_grads", g, h)
        return h


x, _ = xs()
a, b = Mixed.apply(x)
say("mixed_flags", a.requires_grad, b.requires_grad)
b.sum().backward()
say("mixed", x.grad)


class DirtyConstant(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g


x, _ = xs()
t = x.clone()
r = DirtyConstant.apply(t)
say("dirty_constant_flags", r is t, r.requires_grad, t.requires_grad)


# -- once differentiable
class Once(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        say("once_grad_mode", torch.is_grad_enabled())
        return g * 2 * ctx.saved_tensors[0]


x, _ = xs()
go = torch.ones(4, requires_grad=True)
g, = grad(Once.apply(x), x, go, create_graph=True)
say("once", g)
say("once_flags", g.requires_grad)


# -- which inputs need a gradient
class Needs(Function):
    @staticmethod
    def forward(ctx, *inputs):
        say("needs", *ctx.needs_input_grad)
        return inputs[0] * inputs[1]

    @staticmethod
    def backward(ctx, g):
        say("needs_backward", *ctx.needs_input_grad)
        return g, None, None


x, y = xs()
Needs.apply(x, torch.ones(4), 3).sum().backward()
with torch.no_grad():
    Needs.apply(x, y, 3)


# -- a function with a backward inside (reentrant)
class Inner(Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.r = ctx.x * ctx.x * ctx.x
        return ctx.r.detach()

    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            return grad((ctx.r * g).sum(), ctx.x)[0]


x, _ = xs()
(Inner.apply(x * 2) * 3).sum().backward()
say("inner", x.grad)
