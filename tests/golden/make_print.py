#!/usr/bin/env python3
"""Makes print.txt, promote.txt and devices.txt: what PyTorch prints, promotes and parses.

print.txt has for each case one line
    case DTYPE NDIM SIZES... STRIDES... OFFSET ELEMENTS PATTERN DEVICE GRAD LINES
and then LINES lines of text.  DTYPE is ATen's number.  The storage has ELEMENTS elements: the bytes of PATTERN (in
hexadecimal, "-" if empty), repeated.  GRAD is 0, 1 (a leaf that requires grad) or 2 (that leaf times the number 1).
promote.txt has lines "A B promote_types(A, B) can_cast(A, B)".  devices.txt has lines "TEXT|str(torch.device(TEXT))",
or "TEXT|!error".

usage: make_print.py FOLDER     (PyTorch 1.13)
"""
import os
import random
import sys

import torch

torch.set_num_threads(1)
CODES = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
         torch.float32: 6, torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11,
         torch.bfloat16: 15}
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
INTS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
inf, nan = float("inf"), float("nan")


def pattern_bytes(t):
    """Returns the bytes of a contiguous 1-d tensor, in hexadecimal."""
    if t.numel() == 0:
        return "-"
    if t.dtype == torch.bfloat16:
        t = t.view(torch.int16)
    return t.numpy().tobytes().hex()


class Maker:
    def __init__(self, file):
        self.file, self.count = file, 0

    def case(self, values, dtype, sizes, strides=None, offset=0, grad=0, device="cpu"):
        """Writes a case.  values is a list, or a tensor of that dtype; it is repeated to fill the storage that sizes
        and strides need."""
        pattern = values if torch.is_tensor(values) else torch.tensor(values, dtype=dtype)
        sizes = list(sizes)
        if strides is None:
            strides, n = [], 1
            for s in reversed(sizes):
                strides.insert(0, n)
                n *= max(s, 1)
        empty = any(s == 0 for s in sizes)
        need = 0 if empty else offset + 1 + sum((s - 1) * st for s, st in zip(sizes, strides))
        if device == "meta":
            x, pattern = torch.empty(sizes, dtype=dtype, device="meta"), pattern[:0]
        else:
            need = max(need, offset)
            storage = pattern.repeat(need // max(len(pattern), 1) + 1)[:need] if len(pattern) else pattern
            x = torch.as_strided(storage, sizes, strides, offset)
        if grad:
            x.requires_grad_(True)
        if grad == 2:
            x = x * 1.0
        text = str(x).split("\n")
        fields = ["case", CODES[dtype], len(sizes), *sizes, *strides, offset, need, pattern_bytes(pattern), device,
                  grad, len(text)]
        self.file.write(" ".join(str(f) for f in fields) + "\n" + "\n".join(text) + "\n")
        self.count += 1


def random_values(rng, n, style):
    """Returns n random floats in the given style."""
    make = {
        "unit": lambda: rng.gauss(0, 1),
        "whole": lambda: float(rng.randint(-50, 50)),
        "wholes": lambda: float(rng.randint(0, 2000000)),
        "positive": lambda: rng.random() * 100,
        "wide": lambda: rng.gauss(0, 1) * 10.0 ** rng.randint(-6, 6),
        "huge": lambda: rng.gauss(0, 1) * 1e30,
        "tiny": lambda: rng.gauss(0, 1) * 1e-30,
        "small": lambda: rng.choice([0.0, 1e-5, 2e-4, 1e-4, 0.00009999]),
        "border": lambda: rng.choice([1.0, 1000.0, 1001.0, 0.99995, 0.00005, 1e8, 99999999.0, 0.5, 2.5]),
        "special": lambda: rng.choice([inf, -inf, nan, 0.0, -0.0, 1.0, -2.5, rng.gauss(0, 1)]),
        "empty": lambda: rng.choice([inf, -inf, nan, 0.0, -0.0]),
        "zeros": lambda: rng.choice([0.0, -0.0]),
        "mixed": lambda: rng.choice([nan, 3.0, 4.0, -7.0, 1200.0, inf]),
    }[style]
    return [make() for _ in range(n)]


STYLES = ["unit", "whole", "wholes", "positive", "wide", "huge", "tiny", "small", "border", "special", "empty", "zeros",
          "mixed"]


def values_of(rng, dtype, n):
    if dtype in INTS:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        wide = rng.random() < 0.3
        return [rng.randint(low, high) if wide else rng.randint(max(low, -20), 99) for _ in range(n)]
    if dtype == torch.bool:
        return [rng.random() < 0.5 for _ in range(n)]
    if dtype in COMPLEX:
        a, b = (random_values(rng, n, rng.choice(STYLES)) for _ in range(2))
        return [complex(x, y) for x, y in zip(a, b)]
    return random_values(rng, n, rng.choice(STYLES))


def edge_cases(m):
    big = [0.0, 1.0, -1.0, inf, nan, -0.0, 1e8, 1.1e8, 1e-4, 9e-5, 1e300, 5e-324, 1.7976931348623157e308, 0.5, 99999.5,
           1e-45, 3.4e38, 16777217.0, 0.00005, 0.99999, 12345678.0, 999.99999, 1000.0, 2.0 ** 31]
    for dtype in FLOATS:
        for a in big:
            m.case([a], dtype, [])
            m.case([a, 1.0], dtype, [2])
            m.case([-a, 0.25], dtype, [2])
    for dtype in COMPLEX:
        for a in big:
            m.case([complex(a, -a)], dtype, [])
            m.case([complex(a, 1.0), complex(0.5, -a)], dtype, [2])
    for dtype in CODES:
        ones = [1, 0, 1]
        for sizes in ([0], [0, 3], [2, 0], [1, 0, 3], [], [1], [3], [1, 1, 1, 1]):
            m.case(ones, dtype, sizes)
            m.case(ones, dtype, sizes, device="meta")
    m.case([-2 ** 63, 2 ** 63 - 1], torch.int64, [2])
    m.case([0, 255], torch.uint8, [2, 2])
    m.case([-128, 127], torch.int8, [2, 2])
    m.case([1.0], torch.float32, [30, 40], strides=[0, 0])
    m.case([1.5], torch.float32, [100000, 7, 5], strides=[0, 0, 0])
    m.case([1.5, 2.0], torch.float64, [2] * 10, grad=1)
    m.case([1, 2, 3], torch.int64, [1] * 40)
    m.case([1.5, 2.0], torch.float32, [1] * 20 + [40])
    m.case([1, 2], torch.int32, [2, 1, 3, 1, 2, 2])


def random_cases(m, rng):
    dtypes = list(CODES)
    for i in range(600):
        dtype = rng.choice(FLOATS + COMPLEX + dtypes)
        ndim = rng.choice([0, 1, 1, 1, 2, 2, 3, 4])
        sizes = [rng.choice([1, 2, 3, 4, 5, 7, 9, 12, 24] if ndim < 3 else [1, 2, 3, 4, 7]) for _ in range(ndim)]
        if ndim == 1 and rng.random() < 0.5:
            sizes = [rng.randint(1, 120)]
        strides, offset = None, 0
        if rng.random() < 0.4:
            offset = rng.randint(0, 3)
            strides = [rng.randint(0, 4) for _ in sizes]
        grad = rng.choice([0, 0, 1, 2]) if dtype in (torch.float32, torch.float64) else 0
        m.case(values_of(rng, dtype, rng.randint(1, 60)), dtype, sizes, strides, offset, grad)
    for i in range(120):
        dtype = rng.choice(FLOATS + COMPLEX + dtypes)
        sizes = rng.choice([[1000], [1001], [5000], [10, 101], [1001, 1], [1, 1001], [7, 6, 40], [8, 9, 30], [2, 501],
                            [6, 200], [40, 40], [3, 3, 3, 3, 20], [7, 7, 7, 7], [20, 5, 20], [1000, 2], [4, 300, 2]])
        perm = rng.random() < 0.3 and len(sizes) > 1
        strides = None
        if perm:
            strides = [1]
            for s in sizes[:-1]:
                strides.append(strides[-1] * s)
        grad = rng.choice([0, 1, 2]) if dtype in (torch.float32, torch.float64) else 0
        m.case(values_of(rng, dtype, rng.randint(1, 80)), dtype, sizes, strides, 0, grad)
    for width in range(1, 60):                       # for some widths, the suffix begins a new line
        m.case([width % 10], torch.int32, [width])
        m.case([0.5], torch.float32, [width % 14 + 1], grad=1 + width % 2)
        m.case([2.0], torch.float64, [width % 16 + 1], grad=1 + width % 2)


def promote(path):
    with open(path, "w") as f:
        for a in CODES:
            for b in CODES:
                f.write("%d %d %d %d\n" % (CODES[a], CODES[b], CODES[torch.promote_types(a, b)], torch.can_cast(a, b)))


def devices(path):
    good = ["cpu", "cpu:0", "cuda", "cuda:0", "cuda:1", "cuda:15", "meta", "meta:0", "xla:3", "mps", "ipu", "xpu:2",
            "hpu", "ve", "lazy", "hip", "privateuseone", "privateuseone:2", "cuda:127"]
    bad = ["cuda:", "cuda:01", "cuda:-1", "cuda:1:2", "cuda: 1", "cuda:+1", ":1", "cuda1", "cpu:x", "cpu ", " cpu",
           "cuda:99999999999", "PrivateUse1", "cpu:00"]
    with open(path, "w") as f:
        for text in good + bad:
            try:
                f.write("%s|%s\n" % (text, torch.device(text)))
            except RuntimeError as e:
                f.write("%s|!%s\n" % (text, str(e).split("\n")[0]))


def main():
    folder = sys.argv[1]
    with open(os.path.join(folder, "print.txt"), "w") as f:
        m = Maker(f)
        edge_cases(m)
        random_cases(m, random.Random(20))
    promote(os.path.join(folder, "promote.txt"))
    devices(os.path.join(folder, "devices.txt"))
    print(m.count, "cases, PyTorch", torch.__version__)


main()
