#!/usr/bin/env python3
"""Makes tags.txt: the tags of aten operators in PyTorch 2.15.

A row is "name TAB tag".  Tags that only describe the schema (out, inplace, reduction), or that every operator has
(pt2_compliant_tag), are left out.

usage: make_tags.py FOLDER
"""
import os
import sys

import torch

LEFT_OUT = {"generated", "inplace", "out", "pt2_compliant_tag", "reduction"}


def main():
    rows = set()
    for schema in torch._C._jit_get_all_schemas():
        if not schema.name.startswith("aten::"):
            continue
        name = schema.name[6:] + ("." + schema.overload_name if schema.overload_name else "")
        try:
            op = getattr(getattr(torch.ops.aten, schema.name[6:]), schema.overload_name or "default")
        except (AttributeError, RuntimeError):
            continue
        rows.update(name + "\t" + tag.name for tag in op.tags if tag.name not in LEFT_OUT)
    with open(os.path.join(sys.argv[1], "tags.txt"), "w") as f:
        f.writelines(row + "\n" for row in sorted(rows))


main()
