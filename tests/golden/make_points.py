#!/usr/bin/env python3
"""Writes points.txt: pointwise operators of one or two tensors at points where formulas of gradients are easily wrong:
-2, -1, -0.5, 0, 0.5, 1 and 2, in all pairs.  Run it with PyTorch 2.15:

    python3 make_points.py > points.txt

A line has the operator.  The next lines have the value, and the gradient by each tensor, at each point (of a pair, the
second number changes first); "-" means that there is no gradient.  tests/ops/test_points.c reads the file."""
import itertools
import torch

POINTS = [-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]
print("# PyTorch", torch.__version__.split("+")[0])
for name in sorted(dir(torch.ops.aten)):
    if name.startswith("_") or name.endswith("_"):
        continue
    packet = getattr(torch.ops.aten, name)
    for overload in sorted(packet.overloads()) if hasattr(packet, "overloads") else []:
        op = getattr(packet, overload)
        arguments = op._schema.arguments
        needed = [a for a in arguments if not a.has_default_value()]
        if torch.Tag.pointwise not in op.tags or any(a.alias_info is not None for a in arguments):
            continue
        if not 1 <= len(needed) <= 2 or any(str(a.type) != "Tensor" for a in needed) or len(op._schema.returns) != 1:
            continue
        rows = []
        points = torch.tensor(list(itertools.product(POINTS, repeat=len(needed))), dtype=torch.float64)
        for point in points:                      # one by one, because some kernels for vectors differ
            inputs = [x.clone().requires_grad_() for x in point]
            try:
                out = op(*inputs)
                grads = torch.autograd.grad(out, inputs, allow_unused=True) if out.requires_grad else [None] * len(inputs)
            except (RuntimeError, NotImplementedError):
                rows = None
                break
            rows.append(" ".join("-" if x is None else format(float(x), ".10g") for x in [out.detach(), *grads]))
        if rows and out.is_floating_point():
            print(f"aten::{name}{'' if overload == 'default' else '.' + overload} {len(needed)}")
            print("\n".join(rows))
