#!/usr/bin/env python3
"""Makes schemas/*.tsv with PyTorch 1.13: how PyTorch parses, prints and compares operator declarations.

registered.tsv      every declaration that PyTorch has registered, as PyTorch prints it
functions_1_13.tsv  the declarations in native_functions.yaml of torch 1.13
functions_2_7.tsv   the declarations of torch 2.7 that 1.13 does not have
odd.tsv             strings, most of which are not valid declarations.  The first column of the existing file is kept
(differences.tsv is written by hand: where the header differs on purpose.  It has the same columns as odd.tsv)

A line is "text" if PyTorch prints the same text, or "text TAB print" if it prints another.  In odd.tsv, and for a text
that PyTorch refuses, it is "text TAB verdict TAB print or message", with the verdict ok, reject or crash.  The
characters \n, \t, \r, \v, \f and \\ are escaped.

usage: make_schemas.py FOLDER YAML_1_13 YAML_2_7
The yaml files are in the wheels: torchgen/packaged/ATen/native/native_functions.yaml.
"""
import os
import subprocess
import sys

ESCAPES = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", "\v": "\\v", "\f": "\\f"}


def escape(text):
    return "".join(ESCAPES.get(c, c) for c in text)


def unescape(text):
    back = {v[1]: k for k, v in ESCAPES.items()}
    out, i = "", 0
    while i < len(text):
        out += back[text[i + 1]] if text[i] == "\\" else text[i]
        i += 2 if text[i] == "\\" else 1
    return out


def verdict(text):
    """Lets PyTorch parse a text, in a child process because PyTorch may crash.  Returns the verdict."""
    if verdict.child is None:
        verdict.child = subprocess.Popen([sys.executable, __file__, "--answer"], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    verdict.child.stdin.write(escape(text) + "\n")
    verdict.child.stdin.flush()
    answer = verdict.child.stdout.readline()
    if answer:
        return answer.rstrip("\n").split("\t")
    verdict.child.wait()
    verdict.child = None
    return ["crash", ""]


verdict.child = None


def answer():
    import torch
    for line in sys.stdin:
        try:
            said = "ok\t" + escape(str(torch._C.parse_schema(unescape(line.rstrip("\n")))))
        except Exception as error:
            first = str(error).strip().split("\n")[0]
            said = "reject\t" + escape(first[:-len(" here:")] if first.endswith(" here:") else first.rstrip(":"))
        print(said, flush=True)


def row(text, short=True):
    kind, said = verdict(text)
    if short and kind == "ok":
        return escape(text) if said == escape(text) else escape(text) + "\t" + said
    return "\t".join([escape(text), kind, said])


def main(folder, *yamls):
    import torch
    import yaml

    def write(name, rows):
        with open(os.path.join(folder, "schemas", name), "w") as file:
            file.write("\n".join(rows) + "\n")

    write("registered.tsv", sorted({escape(str(s)) for s in torch._C._jit_get_all_schemas()}))
    seen = set()
    for name, path in zip(["functions_1_13.tsv", "functions_2_7.tsv"], yamls):
        with open(path) as file:
            texts = [entry["func"] for entry in yaml.safe_load(file)]
        write(name, [row(text) for text in texts if text not in seen])
        seen.update(texts)
    with open(os.path.join(folder, "schemas", "odd.tsv")) as file:
        texts = [unescape(line.split("\t")[0]) for line in file.read().split("\n")[:-1]]
    write("odd.tsv", [row(text, False) for text in texts])


if __name__ == "__main__":
    answer() if sys.argv[1:] == ["--answer"] else main(*sys.argv[1:])
