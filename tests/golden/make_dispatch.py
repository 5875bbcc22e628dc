"""Writes golden/dispatch.txt: random sets of kernels at dispatch keys, and the dispatch table that PyTorch computes for
each set (torch._C._dispatch_dump_table).  Made with PyTorch 1.13:  python3 make_dispatch.py

A line: the registrations, as "letter=key" ("" is the catch-all key), then "|", then an entry for each key of SLOTS: the
letter of the kernel and how PyTorch chose it, or "fallback", "missing" or "ambiguous autogradother"."""
import random
import re

import torch

SLOTS = ["Undefined", "CPU", "CUDA", "XLA", "Meta", "SparseCPU", "QuantizedCPU", "SparseCsrCUDA", "NestedTensorCPU", "FPGA",
         "MkldnnCPU", "PrivateUse1", "AutogradOther", "AutogradCPU", "AutogradCUDA", "AutogradXLA", "AutogradNestedTensor"]
KEYS = ["CPU", "CUDA", "XLA", "Meta", "SparseCPU", "QuantizedCPU", "SparseCsrCUDA", "NestedTensorCPU", "FPGA", "MkldnnCPU",
        "AutogradOther", "AutogradCPU", "AutogradCUDA", "AutogradNestedTensor"]
ALIASES = ["", "Autograd", "CompositeImplicitAutograd", "CompositeExplicitAutograd",
           "CompositeExplicitAutogradNonFunctional", "Autograd", "CompositeImplicitAutograd", "CompositeExplicitAutograd"]
C = torch._C


def table(number, regs):
    name = "golden%d::op" % number
    lib = C._dispatch_library("FRAGMENT", "golden%d" % number, "", "D", 1)
    lib.def_("op(Tensor x) -> Tensor")
    for letter, key in regs:
        lib.impl_t_t("op", key, letter)
    dump = C._dispatch_dump_table(name)
    out = []
    for slot in SLOTS:
        line = re.search(r"^%s: (.*) \[(.*)\]$" % slot, dump, re.M)
        if not line:
            out.append("missing")
        elif line.group(2) == "backend fallback":
            out.append("fallback")
        elif line.group(2).startswith("ambiguous"):
            out.append("ambiguous autogradother")
        else:
            out.append("%s %s" % (line.group(1).split()[-1][0], line.group(2)))
    del lib
    return out


def main():
    rng = random.Random(7)
    seen = set()
    with open(__file__.rsplit("/", 1)[0] + "/dispatch.txt" if "/" in __file__ else "dispatch.txt", "w") as f:
        f.write("# made by make_dispatch.py with PyTorch %s: %s\n" % (torch.__version__, " ".join(SLOTS)))
        while len(seen) < 400:
            keys = rng.sample(KEYS, rng.randint(0, 3)) + rng.sample(ALIASES, rng.randint(0, 3))
            if "" in keys and "CompositeImplicitAutograd" in keys:
                continue
            keys = sorted(set(keys))
            if not keys or tuple(keys) in seen:
                continue
            seen.add(tuple(keys))
            regs = [(chr(ord("a") + i), key) for i, key in enumerate(keys)]
            f.write("%s|%s\n" % (" ".join("%s=%s" % r for r in regs), ",".join(table(len(seen), regs))))


main()
