#!/usr/bin/env python3
"""Writes scripts/enums.pt, a module with enums, and enums.txt, its graph as PyTorch prints it, with places; kinds.pt, one
with hooks, futures in a list and lists that grow in place.

usage: make_script_kinds.py (with PyTorch 2), then plain_paths.py scripts/enums.pt scripts/kinds.pt
"""
import os
from enum import Enum
from typing import List, Tuple

import torch
from torch import Tensor

here = os.path.dirname(os.path.abspath(__file__))


class Color(Enum):
    RED = 1
    GREEN = 2


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"


class Enums(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.mode = Mode.SLOW

    def pick(self, c: Color) -> str:
        return c.name

    def forward(self, x: Tensor) -> Tuple[Tensor, List[str], bool, str]:
        names: List[str] = []
        for c in Color:
            x = x + c.value
            names.append(self.pick(c))
        return x, names, self.mode == Mode.SLOW, self.mode.value


def before(self, input: Tuple[Tensor]) -> Tuple[Tensor]:
    return (input[0] * 2,)


def behind(self, input: Tuple[Tensor], output: List[Tensor]) -> List[Tensor]:
    output += [input[0].sum()]
    return output


class Kinds(torch.nn.Module):
    def work(self, x: Tensor, k: int) -> Tensor:
        return x * k

    def forward(self, x: Tensor) -> List[Tensor]:
        futures: List[torch.jit.Future[Tensor]] = []
        for i in range(3):
            futures.append(torch.jit.fork(self.work, x, i))
        out = torch.jit.annotate(List[Tensor], [])
        for f in futures:
            out += [torch.jit.wait(f)]
        return out


x = torch.tensor([1., 2.])
enums = torch.jit.script(Enums())
enums.save(os.path.join(here, "scripts/enums.pt"))
text = str(torch.jit.load(os.path.join(here, "scripts/enums.pt")).inlined_graph)
with open(os.path.join(here, "scripts/enums.txt"), "w") as out:
    out.write(text.replace(os.path.abspath(__file__), "make_script_kinds.py"))
kinds = Kinds()
kinds.register_forward_pre_hook(before)
kinds.register_forward_hook(behind)
torch.jit.script(kinds).save(os.path.join(here, "scripts/kinds.pt"))
print(enums(x), torch.jit.load(os.path.join(here, "scripts/kinds.pt"))(x))
