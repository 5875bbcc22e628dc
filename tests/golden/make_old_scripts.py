#!/usr/bin/env python3
"""Writes archives with torch.jit.save of PyTorch 1.13, for features that newer versions write in another way:

version_3.pt, version_10.pt   a module with operators whose meaning depends on the version of the archive
choices.pt                    modules that are chosen by a number or a name
autocast.pt                   an autocast region
odds.pt                       calls of rare overloads
states.pt                     a module with its own __getstate__
named.pt                      a module whose state is a dict, a run that fails after a weight was cast, and a division
                              with out=

Prints PyTorch's results for x = [1, 2].  They depend on the version that reads the archives; test_scripts.c has them.

usage: make_old_scripts.py [read]        run it with PyTorch 1.13, then with "read" and a newer PyTorch
"""
import os
import sys
import warnings
import zipfile
from typing import Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

warnings.filterwarnings('ignore')
HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'scripts')


class Versions(nn.Module):
    """Calls operators that changed with versions 4, 5, 8 and 9 of archives: divisions, full, linspace and logspace."""
    def forward(self, x: Tensor) -> List[Tensor]:
        i = (x * 7).to(torch.int64)
        j = i.clone()
        k = i.clone()
        if i.sum() < 0:
            k = k * 2
        return [i / 2, i / j.neg(), i / 2.0, x / 2, x / i, torch.div(j, 3, rounding_mode='floor'),
                torch.full([2], 3), torch.full([2], 3, dtype=torch.int64), torch.full([1], 2.5),
                torch.linspace(0, 1, 3), torch.logspace(0, 1, 2)]


@torch.jit.interface
class Layer(nn.Module):
    def forward(self, input: Tensor) -> Tensor:
        pass


class Choices(nn.Module):
    """Chooses modules by a number and by a name."""
    def __init__(self):
        super().__init__()
        self.list = nn.ModuleList([nn.ReLU(), nn.Hardtanh(-0.5, 1.5), nn.ReLU6()])
        self.dict = nn.ModuleDict({'one': nn.Hardtanh(0.0, 1.25), 'two': nn.ReLU()})

    def forward(self, x: Tensor, at: Optional[int] = None, name: str = 'one') -> Tensor:
        out = torch.zeros_like(x)
        if at is not None:
            layer: Layer = self.list[at]
            out = layer.forward(x)
        else:
            for i in range(len(self.list)):
                each: Layer = self.list[i]
                out = out * 10 + each.forward(x - i)
        named: Layer = self.dict[name]
        return out + 1000 * named.forward(x)


class Autocast(nn.Module):
    """Has a region with autocast, and inside of it a region without."""
    def forward(self, x: Tensor) -> List[int]:
        y = x.reshape([1, 2])
        with torch.autocast('cpu', dtype=torch.bfloat16):
            inside = y @ y.t()
            with torch.autocast('cpu', enabled=False, dtype=torch.bfloat16):
                off = y @ y.t()
            again = y @ y.t()
        after = y @ y.t()
        return [inside.dtype, off.dtype, again.dtype, after.dtype]


class Odds(nn.Module):
    """Calls index_put_ without None among its indices, as_tensor, new_zeros with an empty list, norm and ctc_loss."""
    def forward(self, x: Tensor) -> List[Tensor]:
        y = torch.zeros(3)
        y.index_put_([torch.tensor([0, 2])], x, accumulate=True)
        lengths = torch.as_tensor(x, dtype=torch.int64)
        loss = nn.functional.ctc_loss(torch.zeros(2, 1, 3).log_softmax(2), torch.tensor([[1]]), lengths[1:], lengths[:1])
        return [y, lengths, x.new_zeros([]), torch.norm(x, p=2), loss]


class Own(nn.Module):
    """Has its own __getstate__ and __setstate__."""
    last: Optional[Tensor]

    def __init__(self):
        super().__init__()
        self.a, self.k, self.last = torch.ones(2), 3, None

    @torch.jit.export
    def __getstate__(self):
        return (self.a, self.k, self.training)

    @torch.jit.export
    def __setstate__(self, state: Tuple[Tensor, int, bool]):
        self.a, self.k, self.training = state[0] * 2, state[1] + 1, state[2]
        self.last = state[0]

    def forward(self, x: Tensor) -> Tensor:
        return x * self.a + self.k


class States(nn.Module):
    """Contains an Own.  If the sum of x is 0, the run fails inside an autocast region."""
    def __init__(self):
        super().__init__()
        self.own, self.line = Own(), nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tuple[Tensor, bool, bool]:
        with torch.autocast('cpu', dtype=torch.bfloat16):
            if x.sum() == 0:
                raise ValueError('no')
        return self.own(x), self.own.last is not None, self.own.training


class Scaled(nn.Module):
    """Has a dict as its state; the keys are the names of its attributes, but the values are not theirs."""
    def __init__(self):
        super().__init__()
        self.k = 3

    @torch.jit.export
    def __getstate__(self) -> Dict[str, int]:
        return {'k': self.k, 'training': int(self.training)}

    @torch.jit.export
    def __setstate__(self, state: Dict[str, int]):
        self.k, self.training = state['k'] * 10, False

    def forward(self, x: Tensor) -> Tensor:
        return x * self.k


class Named(nn.Module):
    """Contains a Scaled.  If the sum of x is 0, the run fails inside an autocast region, after a weight was cast."""
    def __init__(self):
        super().__init__()
        self.own, self.weight = Scaled(), nn.Parameter(torch.ones(2, 2))

    @torch.jit.export
    def over(self, x: Tensor) -> Tensor:
        out = torch.zeros(2)
        torch.div(x, x, out=out)
        return out

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast('cpu', dtype=torch.bfloat16):
            y = x.reshape([1, 2]) @ self.weight
            if x.sum() == 0:
                raise ValueError('no')
        return self.own(x) + 0 * y.sum().detach()


def archive(name, module, version=None):
    path = os.path.join(HERE, name)
    torch.jit.save(torch.jit.script(module), path)
    if not version:
        return
    with zipfile.ZipFile(path) as old:
        entries = [(entry.filename, old.read(entry.filename)) for entry in old.infolist()]
    with zipfile.ZipFile(path, 'w') as new:
        for entry, data in entries:
            new.writestr(entry, b'%d\n' % version if entry.endswith('/version') else data)


if sys.argv[1:] != ['read']:
    assert torch.__version__.startswith('1.13'), 'this is written with PyTorch 1.13'
    archive('version_3.pt', Versions(), 3)
    archive('version_10.pt', Versions(), 10)
    archive('choices.pt', Choices())
    archive('autocast.pt', Autocast())
    archive('odds.pt', Odds())
    archive('states.pt', States())
    archive('named.pt', Named(), 3)
for name in ['version_3.pt', 'version_10.pt', 'choices.pt', 'autocast.pt', 'odds.pt', 'states.pt', 'named.pt']:
    module = torch.jit.load(os.path.join(HERE, name))
    print(name, module(torch.tensor([1., 2.])))
    if name == 'choices.pt':
        print(module(torch.tensor([1., 2.]), 1, 'two'))
