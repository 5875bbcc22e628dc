#!/usr/bin/env python3
"""Makes the files torch_*.pt2 of tests/golden/programs with torch.export.save of PyTorch before 2.9.

usage: VENV/bin/python tests/golden/make_old_programs.py        run it with torch 2.2, 2.5 and 2.8, each in its own VENV

torch_2_5_sizes.pt2 is written by torch 2.5.  Until 2.7, a file is a zip with a text in JSON and two checkpoints of
torch.save.  In 2.8 it is an archive that contains these checkpoints.  make_programs.py describes the .npz files.
"""
import copy
import os

import numpy as np
import torch
import torch.nn as nn
import torch.utils._pytree as pytree
from torch.export import Dim, export

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'programs')
VERSION = '_'.join(torch.__version__.split('.')[:2])


class State(nn.Module):
    """Has parameters, persistent and other buffers, one of which is written, and a constant."""
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)
        self.register_buffer('sum', torch.zeros(3))
        self.register_buffer('shift', torch.tensor([1.0, -1.0, 0.5]), persistent=False)
        self.constant = torch.arange(3.0)

    def forward(self, x):
        self.sum.add_(x.sum(0))
        return self.line(x) * self.sum + self.shift + self.constant


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x):
        return self.out(self.words(x))


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 3)

    def forward(self, x, y):
        both = torch.cat([self.line(x), y])
        return both.view(-1), {'rows': both.reshape(3, -1), 'zeros': torch.zeros(x.shape[0] * 2, 2)}


class Branch(nn.Module):
    def forward(self, x):
        from functorch.experimental.control_flow import cond
        return cond(x.sum() > 0, lambda x: x.sin() + 1, lambda x: x.cos() - 1, [x])


class Flag(nn.Module):
    def forward(self, x, *, flag, y):
        first, second = torch.split(x + y if flag else x - y, [1, 2], dim=1)
        return torch.stack([first.sum(), second.sum()]), tuple(torch.topk(x, 2))


def put(arrays, name, value):
    arrays[name] = value.detach().numpy().copy() if isinstance(value, torch.Tensor) else np.array(value)


def make(name, model, args, named=None, sizes=None, run=None):
    """Exports the model with args, and runs it with `run`, or with args if `run` is None."""
    named, arrays = named or {}, {}
    program = export(copy.deepcopy(model), args, named, dynamic_shapes=sizes)
    torch.export.save(program, os.path.join(HERE, f'torch_{VERSION}_{name}.pt2'))
    inputs = run or args
    for i, value in enumerate(pytree.tree_flatten((inputs, named))[0]):
        put(arrays, f'in{i}', value)
    for i, value in enumerate(pytree.tree_flatten(model(*inputs, **named))[0]):
        put(arrays, f'out{i}', value)
    for key, value in model.named_buffers():
        put(arrays, 'after.' + key, value)
    np.savez(os.path.join(HERE, f'torch_{VERSION}_{name}.npz'), **arrays)


torch.manual_seed(0)
make('state', State(), (torch.randn(2, 3),))
make('sizes', Sizes(), (torch.randn(4, 3), torch.randn(5, 3)),
     sizes={'x': {0: Dim('n', min=3, max=64)}, 'y': {0: Dim('m')}}, run=(torch.randn(7, 3), torch.randn(2, 3)))
if VERSION != '2_8':
    make('tied', Tied(), (torch.tensor([1, 2, 5]),))
    make('branch', Branch(), (torch.randn(3, 2),))
    make('flag', Flag(), (torch.randn(3, 3),), {'flag': True, 'y': torch.randn(3, 3)})
