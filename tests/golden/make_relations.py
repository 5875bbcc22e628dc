#!/usr/bin/env python3
"""Makes schemas/relations.tsv and schemas/alias.tsv with PyTorch 1.13.

relations.tsv   new TAB old TAB equal TAB backward compatible TAB forward compatible TAB why not forward compatible
                (equal and compatible: 0 or 1)
alias.tsv       schema TAB values TAB places that are mutable TAB pairs that may alias TAB pairs that may contain an alias

A place is the number of an argument, or -1, -2, ... for the results.  The values are empty, or have a word for each
argument, separated by spaces: "?" is unknown, True and False are bools, a letter is a tensor, letters in brackets are a
list of tensors.  The same letter in upper and lower case means two tensors that share their storage.

usage: make_relations.py FOLDER     (reads FOLDER/schemas/registered.tsv)
"""
import os
import random
import re
import sys

import torch

from make_schemas import escape, unescape

parse = torch._C.parse_schema

# Pairs (new, old), written by hand, for each rule of compatibility.
PAIRS = [tuple(line.split(" <- ")) for line in """
f(Tensor x) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x) -> Tensor <- g(Tensor x) -> Tensor
f.a(Tensor x) -> Tensor <- f.b(Tensor x) -> Tensor
n::f(Tensor x) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x) -> Tensor <- f(Tensor y) -> Tensor
f(Tensor x) -> Tensor y <- f(Tensor x) -> Tensor
f(Tensor? x) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x) -> Tensor? <- f(Tensor x) -> Tensor
f(Scalar x) -> int <- f(int x) -> Scalar
f(Any x) -> int <- f(int x) -> int
f(int x) -> int <- f(SymInt x) -> SymInt
f(int[2] x) -> int <- f(int[] x) -> int
f(int[2] x) -> int <- f(int[3] x) -> int
f(int[2]? x) -> int <- f(int[2] x) -> int
f(int[] x) -> () <- f(Scalar[] x) -> ()
f(Scalar[] x) -> () <- f(int[] x) -> ()
f((int, str) x) -> () <- f((Scalar, str) x) -> ()
f((Scalar, str) x) -> () <- f((int, str) x) -> ()
f(Future(Scalar) x) -> () <- f(Future(int) x) -> ()
f(Dict(str, Scalar) x) -> () <- f(Dict(str, int) x) -> ()
f(Union(int, str, bool) x) -> () <- f(Union(int, str) x) -> ()
f(Union(int, str) x) -> () <- f(str x) -> ()
f(Union(str, int) x) -> () <- f(Union(int, str) x) -> ()
f(Union(Scalar, str) x) -> () <- f(Scalar x) -> ()
f(None x) -> () <- f(int? x) -> ()
f(int? x) -> () <- f(None x) -> ()
f(t x) -> t <- f(u x) -> u
f(Tensor x, int y) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x, int y=1) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x, int[] y=[1, 2]) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x, int[2] y=1) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x, str[]? y=None) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x, *, int y=1) -> Tensor <- f(Tensor x) -> Tensor
f(Tensor x) -> Tensor <- f(Tensor x, int y=1) -> Tensor
f(int y=1, Tensor x=None) -> Tensor <- f(Tensor x=None) -> Tensor
f(Tensor y, Tensor x) -> Tensor <- f(Tensor x, Tensor y) -> Tensor
f(int x=1) -> () <- f(int x) -> ()
f(int x) -> () <- f(int x=1) -> ()
f(int x=2) -> () <- f(int x=1) -> ()
f(float x=1) -> () <- f(float x=1.) -> ()
f(Scalar x=1.) -> () <- f(Scalar x=1) -> ()
f(float x=-0.) -> () <- f(float x=0.) -> ()
f(complex x=1j) -> () <- f(complex x=2.5j) -> ()
f(bool x=True) -> () <- f(bool x=1) -> ()
f(str x="a") -> () <- f(str x='a') -> ()
f(int[] x=[1, 2]) -> () <- f(int[] x=[1, 3]) -> ()
f(int[] x=[1]) -> () <- f(int[] x=[1, 1]) -> ()
f(Device x="cpu") -> () <- f(Device x="cuda") -> ()
f(*, int x) -> () <- f(int x) -> ()
f(int x) -> () <- f(*, int x) -> ()
f(Tensor x, ...) -> () <- f(Tensor x) -> ()
f(Tensor x) -> (Tensor, ...) <- f(Tensor x) -> (Tensor)
f(Tensor x) -> (Tensor, Tensor) <- f(Tensor x) -> (Tensor)
f(Tensor(a) x) -> Tensor(a) <- f(Tensor x) -> Tensor
f(Tensor(a!) x) -> Tensor(a!) <- f(Tensor(a) x) -> Tensor(a)
f(Tensor(a|b) x) -> () <- f(Tensor(b|a) x) -> ()
f(Tensor(a -> b) x) -> () <- f(Tensor(a) x) -> ()
f(Tensor(b) x) -> Tensor(b) <- f(Tensor(a) x) -> Tensor(a)
f(Tensor(a)[] x) -> () <- f(Tensor[](a) x) -> ()
f(Tensor(a)[] x) -> () <- f(Tensor(b)[] x) -> ()
f(Tensor(a!)? x) -> () <- f(Tensor(a!) x) -> ()
f(Tensor! x) -> () <- f(Tensor! x) -> ()
f(Tensor x, *, Tensor(a!) out) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, int y=1, *, Tensor(a!) out) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, int y, *, Tensor(a!) out) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, *, int y=1, Tensor(a!) out) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, *, Tensor(a!) out, int y=1) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, *, Tensor(a!) out, Tensor(b!) more) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, *, Tensor(a!) out) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out, Tensor(b!) more) -> Tensor(a!)
f(Tensor x, *, Tensor(a!)? out) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, *, Tensor(a!) other) -> Tensor(a!) <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
f(Tensor x, *, Tensor(a!) out) -> Tensor(a!) <- f(Tensor x) -> Tensor
f(Tensor x) -> Tensor <- f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
""".strip().split("\n")]

# Schemas for alias.tsv.  Values follow a @.
ALIAS = """
f(Tensor x, Tensor(a!) y, Tensor(a) z) -> (Tensor(a!), Tensor(b))
f(Tensor(a|b) x, Tensor(b) y, Tensor(a) z) -> (Tensor(a), Tensor(b))
f(Tensor(*) x, Tensor(*) y, Tensor z) -> (Tensor(*), Tensor)
f(Tensor(a! -> *) x, Tensor[] y) -> Tensor(*)[]
f(Tensor(a -> b) x, Tensor(b) y) -> Tensor(b)
f(Tensor[] x, Tensor(*) y, Tensor?[] z, Tensor[]? u, Tensor[][] v) -> (Tensor[], Tensor(*))
f(int[] x, float[] y, int z, str[] u, int[]? v) -> int[]
f((Tensor, int) x, Tensor(*) y, Dict(str, Tensor) z) -> ((Tensor, int)[])
f(Dict(str, int) x, str(*) y, int[] z, Dict(int, Tensor[]) u) -> ()
f(Tensor(a)? x, Tensor(a) y) -> Tensor(a)?
f(Union(Tensor, int)(a) x, Tensor(a) y, Union(Tensor, str)(a) z) -> ()
f(Union(Tensor[], int) x, Tensor(*) y) -> Tensor[]
f(Tensor! x, Tensor! y) -> Tensor
f(Tensor(a!)[] x, Tensor(a) y) -> Tensor(a)[]
f(Storage(a) x, Storage(a) y, str(a) z, str(a) u, t(a) v, t(a) w) -> ()
f(Any(a) x, Any(a) y, Tensor(a) z) -> Any(a)
f(Tensor(a!) x, Tensor y, Tensor[] z, Tensor(*) u) -> (Tensor(a!), Tensor(*)) @ A a ? ?
f(Tensor(a!) x, Tensor y, Tensor[] z, Tensor(*) u) -> (Tensor(a!), Tensor(*)) @ A B ? ?
f(Tensor(a!) x, Tensor y, Tensor[] z, Tensor(*) u) -> (Tensor(a!), Tensor(*)) @ A ? [Ba] ?
f(Tensor x, Tensor y, Tensor[] z, Tensor(*) u) -> (Tensor, Tensor[], Tensor(*)) @ A B [a] ?
f(Tensor(a) x, Tensor(b!) y) -> (Tensor(a), Tensor(b)) @ A a
f(Tensor(a) x, Tensor(b!) y) -> (Tensor(a), Tensor(b)) @ A B
f(Tensor(a!) x, Tensor(b) y, Tensor z) -> (Tensor(a!), Tensor(b)) @ ? A a
aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor) @ A ? ? B C False ? ?
aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor) @ A ? ? a C True ? ?
aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor @ ? ? ? ? ? False ? ? ?
aten::rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor @ ? ? ? ? False ?
""".strip().split("\n")


def items(text):
    """Returns the name, the arguments and the returns of a declaration.  Splits the arguments at commas outside of
    brackets."""
    name, rest = text.split("(", 1)
    depth, at, args = 1, 0, [""]
    while depth:
        c = rest[at]
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 1:
            args.append("")
        elif depth:
            args[-1] += c
        at += 1
    return name, [a.strip() for a in args if a.strip()], rest[at:]


def change(text, rng):
    """Returns the declaration with a random change."""
    name, args, returns = items(text)
    if not args:
        return text
    i = rng.randrange(len(args))
    kind = rng.randrange(12)
    if kind == 0:
        args[i] = re.sub(r"(\w+)($|=)", r"\1x\2", args[i])
    elif kind == 1:
        args[i] = re.sub(r"^(\w+)(\([^)]*\))?", lambda m: m.group(0) + "?", args[i])
    elif kind == 2:
        args[i] = args[i].replace("?", "", 1)
    elif kind == 3:
        args[i] = args[i].split("=")[0]
    elif kind == 4:
        args[i] = args[i].split("=")[0] + "=" + rng.choice(["1", "None", "True", "[1, 2]"])
    elif kind == 5:
        del args[i]
    elif kind == 6:
        args.insert(i, rng.choice(["int extra=1", "Tensor extra", "int[2] extra=[1, 2]", "Tensor? extra=None"]))
    elif kind == 7:
        args.insert(i, "*")
    elif kind == 8:
        args.append(rng.choice(["*, int extra=1", "*, Tensor(z!) out", "int extra=2", "*, int[1] extra=[0]"]))
    elif kind == 9:
        returns = re.sub(r"Tensor", rng.choice(["Tensor?", "Tensor(q)", "Scalar", "Any"]), returns, count=1)
    elif kind == 10:
        args[i] = re.sub(r"^\w+", rng.choice(["Scalar", "int", "Any", "SymInt", "Tensor"]), args[i])
    else:
        rng.shuffle(args)
    return name + "(" + ", ".join(args) + ")" + returns


def relation(new, old):
    a, b = parse(new), parse(old)
    try:
        backward = a.is_backward_compatible_with(b)
    except IndexError:
        backward = False                          # PyTorch looked for an argument that does not exist
    try:
        forward, why = a.check_forward_compatible_with(b)
    except IndexError:
        forward, why = False, ""
    return "\t".join([escape(new), escape(old), str(int(a == b)), str(int(backward)), str(int(forward)), why])


def sound(text):
    """Returns True if PyTorch can parse text, and no argument without a default follows one with a default (on these,
    PyTorch would crash)."""
    seen = False
    for arg in items(text)[1]:
        if arg == "*":
            break
        seen = seen or "=" in arg
        if seen and "=" not in arg:
            return False
    try:
        parse(text)
        return True
    except RuntimeError:
        return False


def alias(line):
    text, values = (line + " @ ").split(" @ ")[:2]
    schema = parse(text)
    info = torch._C._SchemaInfo(schema)
    stores, given = {}, {}

    def tensor(letter):
        return stores.setdefault(letter.upper(), torch.ones(3))[1:]

    for arg, word in zip(schema.arguments, values.split()):
        if word in ("True", "False"):
            given[arg.name] = word == "True"
        elif word != "?":
            given[arg.name] = [tensor(c) for c in word[1:-1]] if word[0] == "[" else tensor(word)
    if given:
        info.add_argument_values(given)
    place = torch._C._SchemaArgument
    kinds = torch._C._SchemaArgType
    places = [(i, place(kinds.input, i)) for i in range(len(schema.arguments))]
    places += [(-1 - i, place(kinds.output, i)) for i in range(len(schema.returns))]
    pairs = [(a, b) for k, a in enumerate(places) for b in places[k:]]
    return "\t".join([escape(text), values, " ".join(str(n) for n, p in places if info.is_mutable(p)),
                      " ".join("%d,%d" % (a[0], b[0]) for a, b in pairs if info.may_alias(a[1], b[1])),
                      " ".join("%d,%d" % (a[0], b[0]) for a, b in pairs if info.may_contain_alias(a[1], b[1]))])


def main(folder):
    rng = random.Random(13)
    with open(os.path.join(folder, "schemas", "registered.tsv")) as file:
        registered = [unescape(line.rstrip("\n")) for line in file]
    rows = [relation(a, b) for a, b in PAIRS] + [relation(b, a) for a, b in PAIRS]
    for text in rng.sample([t for t in registered if len(t) < 130 and sound(t)], 250):
        one, two = change(text, rng), change(change(text, rng), rng)
        rows += [relation(a, b) for a, b in ((one, text), (text, one), (two, text), (one, two)) if sound(a) and sound(b)]
    with open(os.path.join(folder, "schemas", "relations.tsv"), "w") as file:
        file.write("\n".join(dict.fromkeys(rows)) + "\n")
    shapes = {}
    for text in registered:  # keep one of each kind; kinds do not depend on names of arguments, except for those below
        if "__torch__" in text:                   # depends on the attributes of the class
            continue
        if re.search(r"running_mean|noise", text) or (len(items(text)[1]) < 7 and re.search(r"[([]", items(text)[2] + text[1:])):
            shape = re.sub(r" \w+(=[^,)]*)?(?=[,)]| ->|$)", "", text.split("(", 1)[1])
            shapes.setdefault(text if "running_mean" in text or "noise" in text else shape, text)
    with open(os.path.join(folder, "schemas", "alias.tsv"), "w") as file:
        file.write("\n".join(alias(line) for line in ALIAS + list(shapes.values())) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
