#!/usr/bin/env python3
"""Makes schemas/resolve.tsv with PyTorch 1.13: which overload PyTorch chooses for a call by base name.

A line is "overloads TAB call TAB outcome".
- overloads: "aten::name" for an operator of PyTorch, or the argument lists of overloads o0, o1, ..., separated by "; ".
- call: values and name=value, separated by spaces.  A value is T (a tensor), [TT] (a list of tensors), None, True, 1,
  1.5, 2j, 'a', [1,2], [1.5] or [].
- outcome: the overload, or "none" and the reason of each overload: count, position, keyword NAME, twice NAME, missing
  NAME or type NAME (without reasons for operators of PyTorch).

usage: make_resolve.py FOLDER
"""
import os
import random
import re
import sys

import torch

VALUES = {"T": torch.ones(2), "[TT]": [torch.ones(2), torch.ones(2)], "None": None, "True": True, "False": False, "0": 0,
          "1": 1, "7": 7, "1.5": 1.5, "2j": 2j, "'a'": "a", "[1,2]": [1, 2], "[1.5]": [1.5], "[]": []}
TYPES = ["int", "float", "str", "Tensor", "int[]", "float[]", "Scalar", "int?", "Tensor?", "int[2]", "Tensor[]", "str?", "bool",
         "complex", "float[3]", "int[]?"]
NUMBERS = {"0", "1", "7", "1.5", "2j", "True", "False"}

# Names and arguments of calls of PyTorch's operators: positional values, then keywords.
OWN = """add T T|add T 1|add T 1.5|add T 'a'|add T T alpha=7|add T T 7|add T T out=T|add T 1 out=T|add_ T 1|add_ T T
sub T 1|mul T 1|mul T T|div T 2j|div T T rounding_mode=None|div T 1 rounding_mode='a'|floor_divide T 1
pow T 1|pow T T|pow 1 T|pow T 'a'|pow T 1 out=T|remainder T 1|remainder 1 T|fmod T T|bitwise_and T 1|eq T 1|lt T T|ge T 1.5
sum T|sum T [1,2]|sum T [] True|sum T dtype=None|sum T keepdim=True|mean T|mean T [1,2]|max T|max T 1|max T T|min T 0 True
any T|any T 0|all T|argmax T|std T|std T True|var T [1,2] True|norm T|norm T 1.5|norm T 1 [1,2]|cumsum T 0
clamp T 1 7|clamp T T T|clamp T None 1|where T T T|where T 1 T|where T 1.5 7|masked_fill T T 1|masked_fill T T T
transpose T 0 1|squeeze T|squeeze T 0|split T 1|split T [1,2]|select T 0 1|index_select T 0 T|gather T 0 T|sort T|sort T 0
full [1,2] 1.5|zeros [1,2]|arange 7|arange 1 7|arange 1 7 1.5|relu T|relu T 1|tril T|tril T diag=1|tril T self=T|tril
softmax T 0|softmax T 0 None|fill_ T 1|fill_ T T|lerp T T 1.5|lerp T T T|scatter T 0 T T|scatter T 0 T 1.5"""


def parse(call):
    words = call.split()
    return [VALUES[w] for w in words if "=" not in w], {w.split("=")[0]: VALUES[w.split("=")[1]] for w in words if "=" in w}


REASONS = [(r"expected at most", "count"), (r"positional argument\(s\) but", "position"),
           (r"Unknown keyword argument '(\w+)'", "keyword"), (r"Argument '(\w+)' specified both", "twice"),
           (r"missing value for argument '(\w+)'", "missing"), (r"for argument '(\w+)' but instead", "type")]


def outcome(message):
    """Returns the reasons in the error message of a call by base name."""
    out = []
    for part in re.split(r"\n\n|failed to many any schema:\n", message):
        for pattern, word in REASONS:
            found = re.search(pattern, part)
            if found:
                out.append(" ".join((word,) + found.groups()))
                break
    return "none " + "; ".join(out)


def own(call):
    """Returns the row of a call of PyTorch's operator.  The outcome is the first overload, in PyTorch's order, that
    accepts the arguments."""
    name, _, rest = call.partition(" ")
    args, kwargs = parse(rest)
    packet = getattr(torch.ops.aten, name)
    for overload in packet.overloads():
        try:
            getattr(packet, overload)._op(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError) as error:
            if outcome(str(error)) != "none ":
                continue
        return "\t".join(["aten::" + name, rest, overload])
    return "\t".join(["aten::" + name, rest, "none"])


def made(rng, library, number):
    overloads = []
    for i in range(rng.randrange(1, 4)):
        args, star, optional = [], False, False
        for k in range(rng.randrange(1, 4)):
            if not star and k and rng.random() < .25:
                args.append("*")
                star = True
            kind = rng.choice(TYPES)
            default = ""
            if optional or rng.random() < .3:
                default = {"int": "=3", "float": "=2.", "Scalar": "=1", "bool": "=False", "str": "='z'", "complex": "=1.5j",
                           "int[]": "=[4]", "int[2]": "=5", "float[]": "=[1.]", "float[3]": "=1."}.get(kind, "=None")
                optional = not star
                if kind in ("Tensor", "Tensor[]"):
                    default, kind = "=None", "Tensor?"
            args.append("%s %s%s" % (kind, "xyz"[k], default))
        overloads.append("(" + ", ".join(args) + ")")
    name = "f%d" % number
    for i, args in enumerate(overloads):
        library.define("%s.o%d%s -> str" % (name, i, args))
        library.impl("%s.o%d" % (name, i), (lambda said: lambda *a, **k: said)("o%d" % i), "CompositeExplicitAutograd")
    rows = []
    for _ in range(6):
        values = [rng.choice(list(VALUES)) for _ in range(rng.randrange(4))]
        names = rng.sample("xyzw", rng.choice([0, 0, 0, 1, 2]))
        call = " ".join(values + ["%s=%s" % (n, rng.choice(list(VALUES))) for n in names])
        if not fair(overloads, call):
            continue
        args, kwargs = parse(call)
        try:
            said = getattr(torch.ops.rz, name)(*args, **kwargs)
        except (RuntimeError, IndexError, ValueError) as error:
            said = outcome(str(error))
        rows.append("\t".join(["; ".join(overloads), call, said]))
    return rows


def fair(overloads, call):
    """Returns False if the header treats a value of the call differently from PyTorch's Python on purpose: bool from
    any value, None or a number as a tensor, a list of one kind as another, complex from any value, an int repeated
    as float[3]."""
    words = [w.split("=")[-1] for w in call.split()]
    for overload in overloads:
        kinds = [a.split()[0].rstrip("?") for a in overload[1:-1].split(", ") if a != "*"]
        for kind in kinds:
            for word in words:
                if kind == "bool" and word not in ("True", "False"):
                    return False
                if kind == "float[3]" and word in NUMBERS - {"1.5"}:
                    return False
                if kind == "complex" and word in NUMBERS - {"2j"}:
                    return False
                if kind in ("Tensor", "Tensor[]") and word in NUMBERS | {"None"}:
                    return False
                if "[" in kind and word in ("True", "False", "'a'", "T", "[TT]") or (word == "[TT]" and kind == "Scalar"):
                    return False
                if kind in ("Scalar", "int", "float") and word == "T":
                    return False
    return True


def main(folder):
    rng = random.Random(9)
    library = torch.library.Library("rz", "DEF")
    rows = [own(call) for call in re.split(r"[|\n]", OWN)]
    for number in range(300):
        rows += made(rng, library, number)
    with open(os.path.join(folder, "schemas", "resolve.tsv"), "w") as file:
        file.write("\n".join(dict.fromkeys(rows)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
    os._exit(0)                                   # torch 1.13 crashes when it destroys a library with overloads
