#!/usr/bin/env python3
"""Makes tests/golden/programs: exported programs, and PyTorch's results.  Needs torch 2.6 or later and NumPy.

usage: python3 tests/golden/make_programs.py; then tests/golden/plain_paths.py on the files that it writes

torch.export.save writes NAME.pt2 and, after run_decompositions(), NAME.core.pt2.  NAME.npz has these arrays:
  in0, in1, ...           the flat inputs; a key with .bf16 has bfloat16 elements, stored as int16
  out0, out1, ...         the flat outputs
  after.NAME, in_after0   a buffer, and an input, after the run, if the run changed it
  losses, trained.NAME    of some models: the losses of ten steps of training on `target`, and the parameters after it.
                          The optimizer is Adam if `adam` is 1, and SGD with momentum if it is 0
"""
import copy
import os
import warnings
import zipfile
from typing import List, Optional

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils._pytree as pytree
from torch._higher_order_ops import effects
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.hints_wrap import hints_wrapper
from torch._higher_order_ops.map import map as over_slices
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.strict_mode import strict_mode
from torch._higher_order_ops.while_loop import while_loop
from torch.export.experimental import _export_forward_backward
from torch.export import Dim, export
from torch.export.pt2_archive._package import package_pt2

warnings.filterwarnings('ignore')
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')


def put(arrays, name, value):
    if not isinstance(value, torch.Tensor):
        arrays[name] = np.array(value)
    elif value.dtype == torch.bfloat16:
        arrays[name + '.bf16'] = value.detach().view(torch.int16).numpy().copy()
    else:
        arrays[name] = value.detach().numpy().copy()


def train(arrays, model, args, adam):
    """Trains the model for ten steps on a fixed target."""
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=1e-2) if adam else torch.optim.SGD(parameters, lr=5e-2, momentum=0.9)
    with torch.no_grad():
        target = torch.randn_like(copy.deepcopy(model)(*args))
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.mse_loss(model(*args), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    put(arrays, 'target', target)
    put(arrays, 'adam', int(adam))
    arrays['losses'] = np.array(losses)
    for name, parameter in model.named_parameters():
        put(arrays, 'trained.' + name, parameter)


def make(name, model, args, kwargs=None, sizes=None, run=None, core=False, adam=None, training=False):
    """Exports model with args, and runs it with `run` (inputs of other sizes), or with args if `run` is None."""
    kwargs = kwargs or {}
    model.train(training)
    program = export(copy.deepcopy(model), args, kwargs, dynamic_shapes=sizes)
    torch.export.save(program, os.path.join(HERE, name + '.pt2'))
    if core:
        torch.export.save(program.run_decompositions(), os.path.join(HERE, name + '.core.pt2'))
    arrays = {}
    if adam is not None:
        train(arrays, copy.deepcopy(model), args, adam)
    inputs = pytree.tree_map(lambda x: x.clone() if isinstance(x, torch.Tensor) else x, (run or args, kwargs))
    leaves = pytree.tree_leaves(inputs)
    for i, leaf in enumerate(leaves):
        if leaf is not None:
            put(arrays, 'in%d' % i, leaf)
    given = [leaf.clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    before = {n: b.clone() for n, b in model.named_buffers()}
    outputs = pytree.tree_leaves(model(*inputs[0], **inputs[1]))
    for i, leaf in enumerate(outputs):
        if leaf is not None:
            put(arrays, 'out%d' % i, leaf)
    for n, buffer in model.named_buffers():
        if not torch.equal(buffer, before[n]):
            put(arrays, 'after.' + n, buffer)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, torch.Tensor) and not torch.equal(leaf, given[i]):
            put(arrays, 'in_after%d' % i, leaf)
    np.savez(os.path.join(HERE, name + '.npz'), **arrays)


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.b(torch.relu(self.a(x)))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.c, self.d = nn.Conv2d(8, 8, 3, stride=2, groups=4, bias=False), nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.e, self.drop = nn.Linear(4, 5), nn.Dropout(0.0)

    def forward(self, x):
        x = F.max_pool2d(self.d(F.silu(self.c(F.gelu(self.b(self.a(x)))))), 2)
        x = F.interpolate(x, scale_factor=2, mode='bilinear')
        return self.e(self.drop(x.mean((2, 3))))


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.a(x).relu(), lambda x: self.b(x).sin(), (x,))


class BranchDraws(nn.Module):
    """Draws random numbers in one of its branches, and after the branch."""
    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda x: F.dropout(x, 0.5, True), lambda x: torch.tanh(x), (x,))
        return y + torch.rand_like(x)


class Effects(nn.Module):
    """Calls an operator with side effects (as if it printed), which must keep its place in the order of calls: in the
    decomposed program, the call has a token."""
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3)

    def forward(self, x):
        return torch.relu(self.a(x)) + torch.relu(-x)


class BranchOnSize(nn.Module):
    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x * 2, lambda x: x - 1, (x,))


class Loop(nn.Module):
    def forward(self, x):
        return while_loop(lambda i, a: i < 5, lambda i, a: (i + 1, a * 1.5 + x), (torch.zeros((), dtype=torch.int64), x))


class Until(nn.Module):
    """Has a loop whose number of iterations depends on the values."""
    def __init__(self):
        super().__init__()
        self.step = nn.Parameter(torch.rand(4))

    def forward(self, x):
        return while_loop(lambda n, a: a.sum() < 10, lambda n, a: (n + 1, a * 1.5 + self.step),
                          (torch.zeros((), dtype=torch.int64), x))


class Flow(nn.Module):
    """Has a condition in a loop over slices, a loop until a condition, a map, and a condition whose sides read different
    operands."""
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(3))

    def forward(self, xs, c, y):
        def step(c, x):
            n = torch.cond(x.sum() > 0, lambda c, x: torch.tanh(c * self.w + x), lambda c, x: c - x * x, (c, x))
            return n, n * x
        c, ys = scan(step, c, xs)
        n, c = while_loop(lambda n, a: (n < 1) | (a.abs().sum() < 8), lambda n, a: (n + 1, a * 1.5 + self.w),
                          (torch.zeros((), dtype=torch.int64), c))       # at least one round: see make_flow
        z = over_slices(lambda row, c: row * c, xs + ys, c)
        return torch.cond(z.sum() > 0, lambda c, y: c * 2, lambda c, y: y.sin(), (c, y)), z.sum(0), n


class Associative(nn.Module):
    """Has two scans: one is exported with torch.vmap, the other as one node."""
    def forward(self, x):
        def combine(a, b):
            return a[0] * b[0], a[1] * b[0] + b[1]
        return (associative_scan(lambda a, b: a + b, x, dim=0, combine_mode='generic'),
                *associative_scan(combine, (x.sigmoid(), x), dim=1, combine_mode='pointwise', reverse=True))


class Hints(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        return hints_wrapper(lambda x, w: torch.relu(x @ w), (x, self.a.weight), {}, {'outer': True})


@torch.library.custom_op('writers::scale_', mutates_args={'x'})
def scale_(x: torch.Tensor, by: float) -> None:
    x.mul_(by)


@torch.library.custom_op('writers::bump', mutates_args={'x'})
def bump(x: torch.Tensor, y: torch.Tensor, z: Optional[torch.Tensor] = None) -> torch.Tensor:
    x.add_(y)
    return x * 2


@bump.register_fake
def _(x, y, z=None):
    return torch.empty_like(x)


@torch.library.custom_op('writers::many', mutates_args={'xs', 'other'})
def many(xs: List[torch.Tensor], by: float, other: Optional[torch.Tensor] = None) -> None:
    for x in xs:
        x.mul_(by)
    if other is not None:
        other.sub_(1)


class Writers(nn.Module):
    """Calls operators that write to tensors, parts of tensors, lists, buffers and inputs."""
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.register_buffer('sum', torch.zeros(4))

    def forward(self, x, y):
        ops = torch.ops.writers
        a = self.a(x).clone()
        ops.scale_(a, 2.0)
        b = ops.bump(a, x)
        ops.scale_(a[1:], 3.0)
        ops.scale_(a[:, 1], 0.5)
        c, d = x.clone(), x.clone()
        ops.many([c, d[:2]], 4.0)
        ops.many([c], 0.25, d)
        ops.scale_(y, 2.0)
        self.sum.add_(y)
        ops.scale_(self.sum, 3.0)
        return a, b, c, d, self.sum + 1


class Map(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, xs, y):
        return over_slices(lambda x, y: self.a(x) + y, xs, y)


class Scan(nn.Module):
    def forward(self, xs, carry):
        def step(carry, x):
            new = carry * 0.5 + x
            return new, torch.sin(new)
        return scan(step, carry, xs)


class State(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.register_buffer('count', torch.zeros((), dtype=torch.int64))
        self.register_buffer('mean', torch.zeros(3))

    def forward(self, x, out):
        self.count += 1
        y = self.a(x)
        self.mean.mul_(0.9).add_(y.detach().mean(0), alpha=0.1)
        out.add_(1)
        return y + self.count


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.e, self.l = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.l.weight = self.e.weight

    def forward(self, i):
        return self.l(torch.tanh(self.e(i)))


class Strides(nn.Module):
    """Has weights that are not contiguous or have an offset, a constant, and a buffer that is not saved."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(6, 10).t())
        self.register_buffer('v', torch.arange(12.)[3:9].view(2, 3))
        self.c = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
        self.k = torch.randn(6)
        self.register_buffer('other', torch.ones(6) * 2, persistent=False)

    def forward(self, x, image):
        return x @ self.w + self.k * self.other, self.c(image), self.v.sum()


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, d, *, scale=1.0, opt=None):
        x = self.a(d['a']) + d['b'][0] * scale
        return {'y': x, 'z': [x.sum(), x.shape[0]], 'none': opt}


class Sizes(nn.Module):
    def forward(self, x, y):
        b, t, c = x.shape
        return (x.reshape(b * t, c)[1:].mean(0), torch.cat([x, y], 1).reshape(-1),
                torch.full((t + 1, b + 2), 1.5), torch.arange(max(b, t)), x.new_zeros(b ** 2))


class Fours(nn.Module):
    def forward(self, x):
        return x.view(-1, 4).sum(1)


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            a = self.a(x)
        with torch.autocast('cpu', dtype=torch.bfloat16):
            b = self.a(x)
        return a + b.float()


class Numbers(nn.Module):
    def forward(self, x, n: int, f: float, b: bool):
        return x * n + f if b else x


class SizeAsInput(nn.Module):
    def forward(self, x, n):
        return x[:n] * n, n * 2


class Item(nn.Module):
    def forward(self, x, n):
        k = n.item()
        torch._check(k >= 2)
        torch._check(k <= 8)
        return x[:k].sum(), torch.zeros(k + 1), x * k


class Heads(nn.Module):
    """Selects the boxes with a score above a threshold, and sorts them by score."""

    def forward(self, boxes, scores):
        keep = (scores > 0.3).nonzero().squeeze(1)
        order = scores[keep].argsort(descending=True)
        return boxes[keep][order], scores[keep][order]


class Clicks(nn.Module):
    """Combines an embedding bag of features with dense features."""

    def __init__(self):
        super().__init__()
        self.e = nn.EmbeddingBag(30, 8, mode='sum')
        self.a, self.b = nn.Linear(5, 8), nn.Linear(16, 1)

    def forward(self, dense, i, offsets):
        return torch.sigmoid(self.b(torch.cat([torch.relu(self.a(dense)), self.e(i, offsets)], 1)))


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('w', torch.randint(-127, 127, (5, 6), dtype=torch.int8))
        self.register_buffer('scale', torch.rand(5, 1) / 100)

    def forward(self, x):
        return F.linear(x, self.w.to(x.dtype) * self.scale)


class TensorOfSizes(nn.Module):
    """Makes a tensor from sizes; nodes ask for its dtype, and no node uses the answer.  Also fills a diagonal, and pads
    rows."""

    def forward(self, x):
        rows, columns = x.shape
        y = x + torch.minimum(x, torch.tensor([rows, columns]).sum() / 4)
        return y, torch.ones(8, 3).fill_diagonal_(0.5, wrap=True) + y.sum(), nn.utils.rnn.pad_sequence([x[0], x[1, :2]], padding_value=2.0)


class Tokens(nn.Module):
    """A causal language model."""

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(20, 16), nn.Embedding(32, 16)
        self.first, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.second, self.up, self.down = nn.LayerNorm(16), nn.Linear(16, 24), nn.Linear(24, 16)
        self.head = nn.Linear(16, 20, bias=False)

    def forward(self, x):
        b, t = x.shape
        h = self.words(x) + self.places(torch.arange(t))
        q, k, v = [y.view(b, t, 2, 8).transpose(1, 2) for y in self.qkv(self.first(h)).split(16, 2)]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        h = h + self.out(y.transpose(1, 2).reshape(b, t, 16))
        return self.head(h + self.down(F.gelu(self.up(self.second(h)), approximate='tanh')))


class Pooled(nn.Module):
    """Computes a vector for a sentence: rotary positions, attention with a mask, and the mean over the tokens."""

    def __init__(self):
        super().__init__()
        self.words, self.qk, self.norm = nn.Embedding(20, 16), nn.Linear(16, 32), nn.LayerNorm(16)

    def forward(self, x):
        b, t = x.shape
        h, mask = self.words(x), x != 0
        angles = torch.arange(t).float()[:, None] * 0.5 ** torch.arange(8)
        q, k = self.qk(h).chunk(2, 2)
        turn = lambda z: torch.cat([z[..., :8] * angles.cos() - z[..., 8:] * angles.sin(),
                                    z[..., 8:] * angles.cos() + z[..., :8] * angles.sin()], 2)
        scores = torch.matmul(turn(q), turn(k).transpose(1, 2)) / 4
        h = h + scores.masked_fill(~mask[:, None, :], -1e9).softmax(2) @ h
        weights = mask[:, :, None].float()
        mean = (h * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return F.normalize(self.norm(mean), dim=1), h.mean(1), h.var(1, unbiased=False), torch.flip(h.cumsum(1), [1])


class Strict(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.randn(4))

    def forward(self, x):
        return x * strict_mode(lambda w: (w * 2 + 1,), (self.w,))[0]


def const_graph():
    """Makes a program like those in which PyTorch folded constants.  PyTorch cannot save these, so this renames a
    node of the same form."""
    make('const_graph', Strict(), (torch.randn(3, 4),))
    path = os.path.join(HERE, 'const_graph.pt2')
    with zipfile.ZipFile(path) as before:
        entries = [(name, before.read(name)) for name in before.namelist()]
    with zipfile.ZipFile(path, 'w') as after:
        for name, data in entries:
            after.writestr(zipfile.ZipInfo(name), data.replace(b'higher_order.strict_mode', b'higher_order.run_const_graph'))


class Joint(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 2)

    def forward(self, x, target):
        y = self.a(x).tanh()
        return {'error': ((y - target) ** 2).mean(), 'y': y.detach()}


def make_flow():
    """Writes the program `flow`, and the arrays of four runs: RUN.in0, ..., RUN.out0, ..., and RUN.grad0, ..., the
    gradients of the sum of the first two outputs with respect to the inputs and the parameter.  (torch 2.15 computes
    wrong gradients of a while_loop without rounds.)"""
    torch.manual_seed(0)
    model, arrays = Flow(), {}
    torch.export.save(export(model, (torch.randn(4, 3), torch.randn(3), torch.randn(3)), strict=True),
                      os.path.join(HERE, 'flow.pt2'))
    for run, scale in enumerate((0.3, 1, 1, 2)):
        args = [torch.randn(4, 3), torch.randn(3), scale * torch.randn(3)]
        args = [(scale * arg).requires_grad_() for arg in args]
        outputs = model(*args)
        gradients = torch.autograd.grad(outputs[0].sum() + outputs[1].sum(), args + [model.w])
        for name, values in (('in', args), ('out', outputs), ('grad', gradients)):
            for i, value in enumerate(values):
                put(arrays, f'{run}.{name}{i}', value)
    np.savez(os.path.join(HERE, 'flow.npz'), **arrays)


def make_joint():
    """Makes a joint graph: a program that also computes the gradients of its parameters.  (PyTorch 2.15 cannot save one
    with the gradient of an input.)"""
    torch.manual_seed(2)
    model, x, target = Joint(), torch.randn(4, 3), torch.randn(4, 2)
    torch.export.save(_export_forward_backward(export(model, (x, target))), os.path.join(HERE, 'joint.pt2'))
    outputs = model(x, target)
    gradients = torch.autograd.grad(outputs['error'], [model.a.weight, model.a.bias])
    arrays = [outputs['error'], outputs['y'], *gradients]
    np.savez(os.path.join(HERE, 'joint.npz'), in0=x.numpy(), in1=target.numpy(),
             **{f'out{i}': array.detach().numpy() for i, array in enumerate(arrays)})


def make_tokens():
    torch.manual_seed(1)
    sizes = {'x': {0: Dim('batch', min=1, max=64), 1: Dim('tokens', min=1, max=32)}}
    for name, model in (('tokens', Tokens()), ('pooled', Pooled())):
        make(name, model, (torch.randint(0, 20, (3, 7)),), sizes=sizes, run=(torch.randint(0, 20, (5, 12)),), core=True)


def main():
    os.makedirs(HERE, exist_ok=True)
    torch.manual_seed(0)
    batch = Dim('batch', min=1, max=64)
    make('mlp', Mlp(), (torch.randn(4, 6),), core=True, adam=False)
    make('mlp_bf16', Mlp().bfloat16(), (torch.randn(4, 6).bfloat16(),))
    make('conv', Conv(), (torch.randn(2, 3, 16, 16),), sizes={'x': {0: batch}}, run=(torch.randn(5, 3, 16, 16),), core=True)
    make('conv_training', Conv(), (torch.randn(4, 3, 16, 16),), core=True, adam=True, training=True)
    make('branch', Branch(), (torch.ones(3, 4) + torch.randn(3, 4) / 10,), core=True, adam=False)
    make('branch_other', Branch(), (-torch.ones(3, 4),))
    torch.export.save(export(BranchDraws(), (torch.ones(3, 4),)), os.path.join(HERE, 'branch_draws.pt2'))
    make('branch_on_size', BranchOnSize(), (torch.randn(6, 2),), sizes={'x': {0: Dim('n', max=20)}}, run=(torch.randn(3, 2),))
    make('loop', Loop(), (torch.randn(3),))
    make('until', Until(), (torch.rand(4),))
    make_flow()
    make('associative', Associative(), (torch.randn(5, 3),), core=True)
    make('hints', Hints(), (torch.randn(3, 4),))
    make('writers', Writers(), (torch.randn(3, 4), torch.randn(4)), core=True)
    make('map', Map(), (torch.randn(3, 2, 4), torch.randn(4)), adam=True)
    make('scan', Scan(), (torch.randn(5, 3), torch.randn(3)))
    make('state', State(), (torch.randn(2, 4), torch.zeros(3)), core=True)
    make('tied', Tied(), (torch.randint(0, 20, (3, 5)),), adam=True)
    make('strides', Strides(), (torch.randn(2, 10), torch.randn(1, 3, 5, 5)))
    make('tree', Tree(), ({'a': torch.randn(2, 4), 'b': [torch.randn(4)]},), {'scale': 2.0, 'opt': None})
    sizes = {0: Dim('rows', max=16), 1: Dim('columns', max=32)}
    make('sizes', Sizes(), (torch.randn(4, 6, 5), torch.randn(4, 6, 5)), sizes={'x': sizes, 'y': sizes},
         run=(torch.randn(5, 10, 5), torch.randn(5, 10, 5)), core=True)
    make('fours', Fours(), (torch.randn(12),), sizes={'x': {0: 4 * Dim('q', min=1, max=8)}}, run=(torch.randn(20),))
    rows = {0: Dim('long', min=4, max=20)}
    make('tensor_of_sizes', TensorOfSizes(), (torch.randn(7, 3),), sizes={'x': rows}, run=(torch.randn(9, 3),))
    make('modes', Modes(), (torch.randn(2, 4),))
    make('numbers', Numbers(), (torch.randn(3), 2, 0.5, True))
    make('size_as_input', SizeAsInput(), (torch.randn(8), 3), sizes={'x': None, 'n': Dim.DYNAMIC}, run=(torch.randn(8), 5))
    make('item', Item(), (torch.randn(8), torch.tensor(3)), core=True)
    make('heads', Heads(), (torch.randn(12, 4), torch.rand(12)), core=True)
    make('clicks', Clicks(), (torch.randn(3, 5), torch.randint(0, 30, (7,)), torch.tensor([0, 2, 5])), adam=False)
    make('quantized', Quantized(), (torch.randn(2, 6),))
    first, second = nn.Linear(3, 2).eval(), nn.Linear(2, 4).eval()
    package_pt2(os.path.join(HERE, 'two.pt2'), exported_programs={'first': export(first, (torch.randn(1, 3),)),
                                                                   'second': export(second, (torch.randn(1, 2),))})
    effects._register_effectful_op(torch.ops.aten.relu.default, effects._EffectType.ORDERED)
    effectful, x = Effects(), torch.randn(2, 3)
    torch.export.save(export(effectful, (x,)).run_decompositions({}), os.path.join(HERE, 'effects.pt2'))
    np.savez(os.path.join(HERE, 'effects.npz'), in0=x.numpy(), out0=effectful(x).detach().numpy())
    const_graph()
    make_tokens()
    make_joint()


if __name__ == '__main__':
    main()
