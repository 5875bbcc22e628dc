#!/usr/bin/env python3
"""Writes plugin_dot.pt, a TorchScript archive that calls the operator of examples/plugin.c: it returns the dot product
of torch.arange(count) with itself, as a float.

usage: make_plugin_dot.py (with PyTorch 2)
"""
import os

import torch

library = torch.library.Library('plugin', 'DEF')
library.define('dot(Tensor x, Tensor w) -> Tensor')


class Squares(torch.nn.Module):
    def forward(self, count: int) -> float:
        x = torch.arange(count, dtype=torch.float32)
        return float(torch.ops.plugin.dot(x, x))


torch.jit.script(Squares()).save(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'plugin_dot.pt'))
