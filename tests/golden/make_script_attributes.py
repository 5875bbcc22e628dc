#!/usr/bin/env python3
"""Writes scripts/attributes.pt: a module with attributes of all kinds, which its forward changes; and interface.pt: a
module with a submodule whose type is an interface.

usage: make_script_attributes.py (with PyTorch 2)
"""
import os
from typing import Dict, List, Optional, Tuple

import torch


class Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(2, 2)
        self.k = 3

    def forward(self, x):
        return self.lin(x) * self.k


class Attributes(torch.nn.Module):
    ints: List[int]
    strs: List[str]
    floats: List[float]
    bools: List[bool]
    d: Dict[str, int]
    dt: Dict[int, torch.Tensor]
    t: Tuple[int, str, float]
    o: Optional[int]
    none: Optional[torch.Tensor]
    nested: List[List[int]]
    ts: List[torch.Tensor]
    dl: Dict[str, List[int]]

    def __init__(self):
        super().__init__()
        self.ints, self.strs, self.floats, self.bools = [1, 2, 3], ["a", "b"], [1.5, 2.0], [True, False]
        self.d, self.dt, self.t = {"x": 1, "y": 2}, {3: torch.ones(2)}, (1, "z", 2.5)
        self.o, self.none, self.nested = None, None, [[1], [2, 3]]
        self.ts, self.dl = [torch.zeros(2), torch.ones(1)], {"q": [7]}
        self.name, self.f, self.n, self.b, self.big = "hello", 1.25, -5, True, 2 ** 40
        self.device, self.c = torch.device("cpu"), 1 + 2j
        self.first, self.second = Inner(), Inner()
        self.shared = self.first.lin
        self.register_buffer("buf", torch.arange(3))
        self.p = torch.nn.Parameter(torch.randn(2, 3).t())

    def forward(self, x):
        self.n += 1
        self.ints.append(self.n)
        self.d["n"] = self.n
        self.o = self.n
        y = self.first(x) + self.second(x) + self.shared(x)
        return (y, self.ints, self.strs, self.floats, self.bools, self.d, self.dt, self.t, self.o, self.nested,
                self.ts, self.dl, self.name, self.f, self.n, self.b, self.big, self.buf, self.p, self.c)


@torch.jit.interface
class Interface(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        pass


class More(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1


class Proxy(torch.nn.Module):
    proxy: Interface

    def __init__(self):
        super().__init__()
        self.proxy = More()

    def forward(self, x: torch.Tensor):
        return self.proxy.forward(x) * 3


torch.manual_seed(0)
here = os.path.dirname(os.path.abspath(__file__))
torch.jit.script(Attributes()).save(os.path.join(here, "scripts", "attributes.pt"))
torch.jit.script(Proxy()).save(os.path.join(here, "scripts", "interface.pt"))
