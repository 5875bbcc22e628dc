"""Measures PyTorch for bench/cuda.c: prints a line "key nanoseconds" for each row.  Needs PyTorch with CUDA.
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
    for key, dtype, c, side, of_group, back in (
        ("conv_f16", torch.float16, 64, 56, 64, False), ("conv_f32", torch.float32, 64, 56, 64, False),
        ("conv256_f32", torch.float32, 256, 14, 256, False), ("conv_back_f16", torch.float16, 64, 56, 64, True),
        ("conv_back_f32", torch.float32, 64, 56, 64, True), ("depthwise_f32", torch.float32, 64, 56, 1, False),
        ("depthback_f32", torch.float32, 64, 56, 1, True),
    ):
        a, g = (torch.randn(1 if quick else 64, c, side, side, device="cuda").mul(0.1).to(dtype) for _ in range(2))
        w = torch.randn(c, of_group, 3, 3, device="cuda").mul(0.1).to(dtype)
        if back:
            measure(key, lambda: torch.ops.aten.convolution_backward(
                g, a, w, None, (1, 1), (1, 1), (1, 1), False, (0, 0), c // of_group, (True, True, False)))
        else:
            measure(key, lambda: F.conv2d(a, w, padding=1, groups=c // of_group))
    for suffix, dtype in (("f16", torch.float16), ("f32", torch.float32)):
        q, k, v = (torch.randn(8, 16, 64 if quick else 1024, 64, device="cuda").mul(0.1).to(dtype) for _ in range(3))
        measure("attention_" + suffix, lambda: F.scaled_dot_product_attention(q, k, v))
    rows = 128 if quick else 8192
    x = torch.randn(rows, 8192, device="cuda")
    measure("cumsum_f32", lambda: x.cumsum(1))
    measure("dropout_f32", lambda: F.dropout(x, 0.5, True))
    measure("normal_f32", lambda: x.normal_())
    at, sums = torch.randint(rows, (rows,), device="cuda"), torch.zeros_like(x)
    measure("index_select_f32", lambda: x.index_select(0, at))
    measure("index_add_f32", lambda: sums.index_add_(0, at, x))
    y = x[:rows // 64].reshape(-1)
    measure("sort_f32", lambda: y.sort())
    x = torch.randn(rows // 4, 50257, device="cuda")
    measure("log_softmax_f32", lambda: x.log_softmax(-1))
    x, w = torch.randn(rows // 128, 64, 112, 112, device="cuda"), torch.randn(64, device="cuda")
    measure("batch_norm_f32", lambda: F.batch_norm(x, None, None, w, w, True))
    measure("max_pool_f32", lambda: F.max_pool2d(x, 2))
    small, more = (torch.randn(1024, device="cuda") for _ in range(2))

    def chain():
        t = small
        for _ in range(1000):
            t = t + more

    measure("chain", chain)
