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

tokens = 16 if quick else 1024
q, k, v, g = (torch.randn(8, 16, tokens, 64, device="cuda").mul(0.1).half() for _ in range(4))
mask = (torch.arange(tokens, device="cuda") < tokens * 3 // 4).expand(8, 1, 1, tokens).contiguous()
measure("attention_mask", lambda: F.scaled_dot_product_attention(q, k, v, mask))
for key, dtype, dropout in (("attention_back", torch.float16, 0.0), ("attention_drop_back", torch.float16, 0.1),
                            ("attention_back_f32", torch.float32, 0.0)):
    q, k, v = (t.detach().to(dtype).requires_grad_() for t in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
    measure(key, lambda: torch.autograd.grad(y, (q, k, v), g.to(dtype), retain_graph=True))


def on_gpu(*sizes, dtype=torch.float32):
    return torch.randn(*sizes, device="cuda").mul(0.1).to(dtype)


b16, half = torch.bfloat16, torch.float16
q, k, v = on_gpu(1, 32, 1, 128, dtype=b16), on_gpu(1, 8, 8 * tokens, 128, dtype=b16), on_gpu(1, 8, 8 * tokens, 128, dtype=b16)
measure("attention_1", lambda: F.scaled_dot_product_attention(q, k, v, enable_gqa=True))
x, w, bias = on_gpu(8 * tokens, 768, dtype=b16), on_gpu(3072, 768, dtype=b16), on_gpu(3072, dtype=b16)
measure("linear_bf16", lambda: F.linear(x, w, bias))
x, w = on_gpu(1, 4096, dtype=b16), on_gpu(14336, 4096, dtype=b16)
measure("linear_1_bf16", lambda: F.linear(x, w))
x, w = on_gpu(8 * tokens, 4096, dtype=b16), on_gpu(4096, dtype=b16)
measure("rms_norm_bf16", lambda: F.rms_norm(x, (4096,), w, 1e-5))
x, at = on_gpu(8 * tokens, 50257).requires_grad_(), torch.randint(50257, (8 * tokens,), device="cuda")
measure("cross_entropy", lambda: torch.autograd.grad(F.cross_entropy(x, at), x))
x = on_gpu(8 * tokens, 768)
measure("embedding_back", lambda: torch.ops.aten.embedding_dense_backward(x, at, 50257, -1, False))
c = 768 * tokens // 1024
shapes = [(50257 * c // 768, c), (1024, c)]
layer = ((1, 0), (1, 0), (3, 1), (3, 0), (1, 1), (1, 0), (1, 0), (1, 0), (4, 1), (4, 0), (1, 4), (1, 0))
shapes += [(m * c, n * c) if n else (m * c,) for m, n in (layer[i % 12] for i in range(146))]
parameters = [torch.nn.Parameter(on_gpu(*s)) for s in shapes]
for p in parameters:
    p.grad = torch.full_like(p, 1e-3)
measure("clip_148", lambda: torch.nn.utils.clip_grad_norm_(parameters, 1e9))
parameters = p = None
x = on_gpu(8, 128256)
measure("topk_f32", lambda: x.topk(50))

batch = 1 if quick else 64
last = torch.channels_last
x, w = on_gpu(batch, 3, 224, 224, dtype=half), on_gpu(64, 3, 7, 7, dtype=half)
measure("stem_f16", lambda: F.conv2d(x, w, stride=2, padding=3))
x, w, g = on_gpu(batch, 128, 56, 56, dtype=half), on_gpu(128, 128, 3, 3, dtype=half), on_gpu(batch, 128, 28, 28, dtype=half)
measure("conv_2_f16", lambda: F.conv2d(x, w, stride=2, padding=1))


def backward(stride, mask):
    return torch.ops.aten.convolution_backward(
        g, x, w, None, (stride, stride), (1, 1), (1, 1), False, (0, 0), 1, mask)


measure("conv_2_gx_f16", lambda: backward(2, (True, False, False)))
x, w, g = (t.contiguous(memory_format=last) for t in (x, w, g))
measure("conv_2_gx_last", lambda: backward(2, (True, False, False)))
x, w, g = (on_gpu(*s, dtype=half).contiguous(memory_format=last)
           for s in ((batch, 64, 56, 56), (64, 64, 3, 3), (batch, 64, 56, 56)))
measure("conv_last_f16", lambda: F.conv2d(x, w, padding=1))
measure("conv_back_last", lambda: backward(1, (True, True, False)))
x, w = on_gpu(batch, 64, 112, 112, dtype=half).contiguous(memory_format=last), on_gpu(64)
with torch.no_grad():
    measure("norm_last_f16", lambda: F.batch_norm(x, None, None, w, w, True))
x = on_gpu(batch, 3, 224, 224)
measure("bicubic_f32", lambda: torch.ops.aten.upsample_bicubic2d(x, (448, 448), False))

steps = 2 if quick else 128
x, state = on_gpu(steps, 64, 512).requires_grad_(), on_gpu(1, 64, 512)
net = torch.nn.LSTM(512, 512, device="cuda")
measure("lstm_f32", lambda: torch.autograd.grad(net(x, (state, state))[0].sum(), (x, *net.parameters())))
n = steps * 131072
x = on_gpu(n)
measure("sort_16m_f32", lambda: x.sort())
x = torch.randint(1 << 40, (n // 4,), device="cuda")
measure("sort_4m_i64", lambda: x.sort())
x = on_gpu(n // 1024, 1024)
measure("argsort_rows", lambda: x.argsort(1))
