#!/usr/bin/env python3
"""Makes tags.txt: the tags of aten operators in PyTorch 1.13, except "generated".

A row is "name TAB tag".  Some rows are kept from the existing file: rows with the tag "core", from PyTorch 2.6 (its
list of core ATen operators), and rows of the overloads "generator" and of randint_like.Tensor, from PyTorch 2.15.

usage: make_tags.py FOLDER
"""
import os
import sys

import torch


def main():
    path = os.path.join(sys.argv[1], "tags.txt")
    rows = set()
    if os.path.exists(path):
        rows = {line.rstrip("\n") for line in open(path)
                if line.endswith("\tcore\n") or "generator" in line or line.startswith("randint_like.Tensor")}
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        name = schema.name[6:] + ("." + schema.overload_name if schema.overload_name else "")
        try:
            op = getattr(getattr(torch.ops.aten, schema.name[6:]), schema.overload_name or "default")
        except (AttributeError, RuntimeError):
            continue
        for tag in op.tags:
            if tag.name != "generated":
                rows.add(name + "\t" + tag.name)
    with open(path, "w") as f:
        f.writelines(row + "\n" for row in sorted(rows))


main()
