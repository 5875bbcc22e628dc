#!/usr/bin/env python3
"""Writes script_graphs.txt: the inlined graphs of the functions in script_graphs.py, as PyTorch prints them.

usage: make_script_graphs.py (with PyTorch 2)
"""
import ast
import os
import sys
import tempfile

import torch

here = os.path.dirname(os.path.abspath(__file__))
source = open(os.path.join(here, "script_graphs.py")).read()
with tempfile.TemporaryDirectory() as folder:
    # the imports follow the functions, so that line numbers are those of the file that the test compiles
    sys.path.insert(0, folder)
    head = "from __future__ import annotations; import torch; from typing import *; Tensor = torch.Tensor"
    assert source.split("\n")[0] == "# functions whose graphs PyTorch prints"
    open(os.path.join(folder, "functions.py"), "w").write(head + "\n" + source.split("\n", 1)[1])
    import functions
    path = os.path.join(folder, "functions.py")
    with open(os.path.join(here, "script_graphs.txt"), "w") as out:
        for node in ast.parse(source).body:
            graph = str(torch.jit.script(getattr(functions, node.name)).inlined_graph)
            out.write(f"== {node.name}\n{graph.replace(path, 'script_graphs.py').strip()}\n")
