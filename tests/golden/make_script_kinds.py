#!/usr/bin/env python3
"""Writes archives of modules to scripts/.  enums.pt: enums; enums.txt is its graph, as PyTorch prints it, with
source locations (lines of this file).  kinds.pt: hooks, futures in a list, and lists that grow in place.  same.pt:
tests for the same object.  words.pt: strings that are not ASCII (archives store these as constants), complex
numbers, and tests of dtypes and storages.  quantized.pt: linear layers with 8-bit weights that round their input.
 spans.pt: a profiler span.

usage: make_script_kinds.py (with PyTorch 2), then plain_paths.py scripts/enums.pt scripts/kinds.pt scripts/same.pt
scripts/words.pt scripts/quantized.pt scripts/spans.pt
"""
import cmath
import os
from enum import Enum
from typing import Dict, List, Tuple

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


@torch.jit.script
def pick(n: int) -> Color:
    return Color.RED if n > 0 else Color.GREEN


@torch.jit.script
def is_red(c: Color) -> bool:
    return c is Color.RED


class Same(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c, self.d = Color.RED, Color.RED
        self.of: Dict[str, Color] = {"r": Color.RED}
        self.all: List[Color] = [Color.RED, Color.GREEN, Color.RED]

    def forward(self, x: Tensor) -> List[bool]:
        a, b = pick(len(x)), pick(len(x))
        some = [c for c in Color]
        return [self.c is self.d, self.c is self.c, self.c is Color.RED, self.c is not Color.RED, self.of["r"] is self.all[0],
                self.all[0] is self.all[2], is_red(a), is_red(self.c), a is b, a is Color.RED, some[0] is a,
                some[0] is some[0], self.c == self.d, self.c == Color.RED, a == some[0], a != self.all[1]]


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


class Words(torch.nn.Module):
    def texts(self, s: str) -> Tuple[str, List[str], Tuple[str, int], List[Tuple[str, int]], int, str, bool]:
        n = {"ü": [1, 2], "b": [3]}
        return ("ünï" + s, ["a", "ü"], ("ü", 1), [("ü", 1), ("b", 2)], n["ü"][1], "{1} {0} {}".format(s, 1),
                "\0a" == "")

    def numbers(self, f: float) -> Tensor:
        c, d = complex(f, 1.0), 3 + 2j
        z = [cmath.sqrt(c), cmath.exp(c), cmath.log(d), cmath.sin(c), cmath.atan(d), cmath.log(c, d), cmath.rect(f, 2.),
             complex(abs(d), cmath.phase(d))]
        return torch.stack([torch.view_as_real(torch.tensor(k)) for k in z])

    def forward(self, x: Tensor) -> List[str]:
        y = x.double()
        kinds = [torch.result_type(x, 1), torch.result_type(x, y), torch.result_type(1, 2.5), torch.result_type(1j, x),
                 torch.result_type(torch.tensor(1), True)]
        same = [x.is_set_to(x), x.is_set_to(x.view(2)), x.is_set_to(y), x.is_set_to(x[:1]), x.is_set_to(x.clone())]
        return [str(self.texts("z")), str(self.numbers(2.5)), str(abs(x - 2)), str(torch.Size([1, 2])), str(kinds),
                str(same)]


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(2, 4), torch.nn.Linear(4, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.first(torch.stack([x, -2.5 * x])).relu())


class Spans(torch.nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        with torch.autograd.profiler.record_function("doubled"):
            y = x * 2
        with torch.no_grad():
            z = y + 1
        return z


def quantized(x):
    """Makes quantized.pt.  The first layer's weight has a scale for each row, the second layer's weight one scale."""
    torch.manual_seed(0)
    each, all = torch.ao.quantization.per_channel_dynamic_qconfig, torch.ao.quantization.default_dynamic_qconfig
    layers = torch.ao.quantization.quantize_dynamic(Layers(), {"first": each, "second": all})
    torch.jit.script(layers).save(os.path.join(here, "scripts/quantized.pt"))
    print(torch.jit.load(os.path.join(here, "scripts/quantized.pt"))(x))


x = torch.tensor([1., 2.])
quantized(x)
enums = torch.jit.script(Enums())
enums.save(os.path.join(here, "scripts/enums.pt"))
text = str(torch.jit.load(os.path.join(here, "scripts/enums.pt")).inlined_graph)
with open(os.path.join(here, "scripts/enums.txt"), "w") as out:
    out.write(text.replace(os.path.abspath(__file__), "make_script_kinds.py"))
kinds = Kinds()
kinds.register_forward_pre_hook(before)
kinds.register_forward_hook(behind)
torch.jit.script(kinds).save(os.path.join(here, "scripts/kinds.pt"))
torch.jit.script(Same()).save(os.path.join(here, "scripts/same.pt"))
torch.jit.script(Words()).save(os.path.join(here, "scripts/words.pt"))
torch.jit.script(Spans()).save(os.path.join(here, "scripts/spans.pt"))
print(enums(x), torch.jit.load(os.path.join(here, "scripts/kinds.pt"))(x))
print(torch.jit.load(os.path.join(here, "scripts/same.pt"))(x))
print(*torch.jit.load(os.path.join(here, "scripts/words.pt"))(x), sep="\n")
