"""PyTorch's figures for bench/cuda.c: a line "key nanoseconds" for each row.  Needs PyTorch with CUDA.
    python3 bench/peers/torch_cuda.py [--quick]"""
import statistics
import sys
import time

import torch
import torch.nn.functional as F

quick = "--quick" in sys.argv
if not torch.cuda.is_available():
    sys.exit("no CUDA")
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def measure(key, f):
    calls, rounds = 1, []
    for r in range(-2, 3 if quick else 9):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        for _ in range(calls):
            f()
        torch.cuda.synchronize()
        ns = (time.perf_counter_ns() - start) / calls
        if r < 0:
            calls = int(min(2000, max(1, (2e6 if quick else 2e7) / (ns + 1))))
        else:
            rounds.append(ns)
    print(key, statistics.median(rounds), flush=True)


rows = 64 if quick else 8192
with torch.no_grad():
    x, y = (torch.randn(rows, 8192, device="cuda") * 0.1 for _ in range(2))
    measure("copy", lambda: y.copy_(x))
    measure("to_half", lambda: x.half())
    for suffix, dtype in (("f32", torch.float32), ("f16", torch.float16)):
        x, y = (torch.randn(rows, 8192, device="cuda").mul(0.1).to(dtype) for _ in range(2))
        for key, f in (
            ("add", lambda: x + y), ("exp", lambda: x.exp()), ("gelu", lambda: F.gelu(x)),
            ("turn", lambda: x.t().contiguous()), ("sum", lambda: x.sum()), ("sum_rows", lambda: x.sum(1)),
            ("sum_columns", lambda: x.sum(0)), ("softmax", lambda: x.softmax(-1)),
            ("layer_norm", lambda: F.layer_norm(x, (8192,))),
        ):
            measure(key + "_" + suffix, f)
    n = 64 if quick else 4096
    for suffix, dtype in (("f32", torch.float32), ("f16", torch.float16), ("bf16", torch.bfloat16)):
        a, b = (torch.randn(n, n, device="cuda").mul(0.1).to(dtype) for _ in range(2))
        measure("mm_" + suffix, lambda: a @ b)
    for suffix, dtype in (("f16", torch.float16), ("f32", torch.float32)):
        a = torch.randn(1 if quick else 64, 64, 56, 56, device="cuda").mul(0.1).to(dtype)
        w = torch.randn(64, 64, 3, 3, device="cuda").mul(0.1).to(dtype)
        measure("conv_" + suffix, lambda: F.conv2d(a, w, padding=1))
    small, more = (torch.randn(1024, device="cuda") for _ in range(2))

    def chain():
        t = small
        for _ in range(1000):
            t = t + more

    measure("chain", chain)
