/* Measures the kernels of operators, beside PyTorch's kernels on the same tensors.
   cc -O2 bench/kernels.c -o bench_kernels -lm -lpthread -ldl
   ./bench_kernels [--quick] [--filter TEXT] [--python PATH] [--threads N] [--level LEVEL] [--markdown] [--help]
   ci: --filter norm

   A row is an expression of TorchScript, which both sides run in turns (see bench/rows.h).  PyTorch is that of PATH
   (default: python3).  If there is none, its column stays empty.  First, the program prints limits of the machine that
   no kernel can exceed: the peak rate of multiply-adds, and the rates of copies in each level of the caches and in
   memory.  The rate of a row in GB/s counts each tensor and the result once.  At the end, the program prints the share
   of rows that take at most 1.05 times PyTorch's time, and the ten largest ratios. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include "rows.h"

#define IMAGES "f32 16,64,56,56; f32 64 +; f32 64; f32 64; f32 64 +"

static const bench_row rows[] = {
    {"pointwise", "add, in cache", "f32 32768; f32 32768", "a + b", 0},
    {"pointwise", "add", "f32 1048576; f32 1048576", "a + b", 0},
    {"pointwise", "add", "f64 1048576; f64 1048576", "a + b", 0},
    {"pointwise", "add", "f16 1048576; f16 1048576", "a + b", 0},
    {"pointwise", "add", "bf16 1048576; bf16 1048576", "a + b", 0},
    {"pointwise", "add", "i64 1048576 <100; i64 1048576 <100", "a + b", 0},
    {"pointwise", "mul", "f16 1048576; f16 1048576", "a * b", 0},
    {"pointwise", "div", "f32 1048576; f32 1048576", "a / b", 0},
    {"pointwise", "relu", "f32 1048576", "torch.relu(a)", 0},
    {"pointwise", "where", "bool 1048576 <2; f32 1048576; f32 1048576", "torch.where(a, b, c)", 0},
    {"pointwise", "sqrt, in cache", "f32 32768 +", "torch.sqrt(a)", 0},
    {"pointwise", "sqrt", "f32 1048576 +", "torch.sqrt(a)", 0},
    {"pointwise", "sqrt", "f64 1048576 +", "torch.sqrt(a)", 0},
    {"pointwise", "rsqrt", "f32 1048576 +", "torch.rsqrt(a)", 0},
    {"pointwise", "exp, in cache", "f32 32768", "torch.exp(a)", 0},
    {"pointwise", "exp", "f32 1048576", "torch.exp(a)", 0},
    {"pointwise", "exp, in cache", "f64 32768", "torch.exp(a)", 0},
    {"pointwise", "exp", "f64 1048576", "torch.exp(a)", 0},
    {"pointwise", "exp", "bf16 1048576", "torch.exp(a)", 0},
    {"pointwise", "expm1", "f32 1048576", "torch.expm1(a)", 0},
    {"pointwise", "log, in cache", "f32 32768 +", "torch.log(a)", 0},
    {"pointwise", "log", "f32 1048576 +", "torch.log(a)", 0},
    {"pointwise", "log", "f64 1048576 +", "torch.log(a)", 0},
    {"pointwise", "log1p", "f32 1048576 +", "torch.log1p(a)", 0},
    {"pointwise", "pow(a, b)", "f32 1048576 +; f32 1048576", "torch.pow(a, b)", 0},
    {"pointwise", "pow(a, b)", "f64 1048576 +; f64 1048576", "torch.pow(a, b)", 0},
    {"pointwise", "pow(a, 2.5)", "f32 1048576 +", "torch.pow(a, 2.5)", 0},
    {"pointwise", "pow(a, 2)", "f32 1048576", "torch.pow(a, 2)", 0},
    {"pointwise", "pow(a, 3)", "f32 1048576", "torch.pow(a, 3)", 0},
    {"pointwise", "sin", "f32 1048576", "torch.sin(a)", 0},
    {"pointwise", "cos", "f32 1048576", "torch.cos(a)", 0},
    {"pointwise", "sin", "f64 1048576", "torch.sin(a)", 0},
    {"pointwise", "tan", "f32 1048576", "torch.tan(a)", 0},
    {"pointwise", "atan", "f32 1048576", "torch.atan(a)", 0},
    {"pointwise", "tanh, in cache", "f32 32768", "torch.tanh(a)", 0},
    {"pointwise", "tanh", "f32 1048576", "torch.tanh(a)", 0},
    {"pointwise", "tanh", "f64 1048576", "torch.tanh(a)", 0},
    {"pointwise", "tanh", "bf16 1048576", "torch.tanh(a)", 0},
    {"pointwise", "sigmoid", "f32 1048576", "torch.sigmoid(a)", 0},
    {"pointwise", "sigmoid", "f64 1048576", "torch.sigmoid(a)", 0},
    {"pointwise", "silu", "f32 1048576", "F.silu(a)", 0},
    {"pointwise", "gelu, in cache", "f32 32768", "F.gelu(a)", 0},
    {"pointwise", "gelu", "f32 1048576", "F.gelu(a)", 0},
    {"pointwise", "gelu, approximate='tanh'", "f32 1048576", "F.gelu(a, approximate='tanh')", 0},
    {"pointwise", "gelu", "bf16 1048576", "F.gelu(a)", 0},
    {"pointwise", "gelu, forward and backward", "f32 1048576", "F.gelu(a)", BENCH_GRAD},
    {"pointwise", "erf", "f32 1048576", "torch.erf(a)", 0},
    {"pointwise", "softplus", "f32 1048576", "F.softplus(a)", 0},
    {"pointwise", "floor", "f32 1048576", "torch.floor(a)", 0},
    {"pointwise", "round", "f32 1048576", "torch.round(a)", 0},
    {"pointwise", "abs", "f32 1048576", "torch.abs(a)", 0},
    {"pointwise", "clamp(a, -1, 1)", "f32 1048576", "torch.clamp(a, -1.0, 1.0)", 0},
    {"pointwise", "remainder", "f32 1048576; f32 1048576", "torch.remainder(a, b)", 0},

    {"casts", "to float16, in cache", "f32 32768", "a.to(torch.float16)", 0},
    {"casts", "to float16", "f32 1048576", "a.to(torch.float16)", 0},
    {"casts", "to float32", "f16 1048576", "a.to(torch.float32)", 0},
    {"casts", "to bfloat16", "f32 1048576", "a.to(torch.bfloat16)", 0},
    {"casts", "to float32", "bf16 1048576", "a.to(torch.float32)", 0},
    {"casts", "to int64, in cache", "f32 32768", "a.to(torch.int64)", 0},
    {"casts", "to int64", "f32 1048576", "a.to(torch.int64)", 0},
    {"casts", "to int32", "f32 1048576", "a.to(torch.int32)", 0},
    {"casts", "to float32", "i64 1048576 <1000", "a.to(torch.float32)", 0},
    {"casts", "to float32", "u8 1048576 <200", "a.to(torch.float32)", 0},
    {"casts", "to float32", "f64 1048576", "a.to(torch.float32)", 0},

    {"layouts", "a + b.t()", "f32 2048,2048; f32 2048,2048", "a + b.t()", 0},
    {"layouts", "a.t() + b.t()", "f32 2048,2048; f32 2048,2048", "a.t() + b.t()", 0},
    {"layouts", "a + b.t()", "f64 1024,1024; f64 1024,1024", "a + b.t()", 0},
    {"layouts", "a.t().contiguous()", "f32 2048,2048", "a.t().contiguous()", 0},
    {"layouts", "a + b", "f32 2048,1; f32 1,2048", "a + b", 0},
    {"layouts", "a + b", "f32 2048,2048; f32 2048", "a + b", 0},
    {"layouts", "a * b", "f32 2048,2048; f32 2048,1", "a * b", 0},
    {"layouts", "a[:, ::2] + 1", "f32 2048,2048", "a[:, ::2] + 1", 0},
    {"layouts", "a.permute(0, 2, 3, 1).contiguous()", "f32 16,64,56,56", "a.permute(0, 2, 3, 1).contiguous()", 0},
    {"layouts", "cat([a, b], 1)", "f32 1024,512; f32 1024,512", "torch.cat([a, b], 1)", 0},

    {"sorting", "sort of rows", "f32 2048,512", "torch.sort(a)[0]", 0},
    {"sorting", "sort", "f32 1048576", "torch.sort(a)[0]", 0},
    {"sorting", "sort", "i64 1048576 <1000000000", "torch.sort(a)[0]", 0},
    {"sorting", "sort", "i32 1048576 <1000000000", "torch.sort(a)[0]", 0},
    {"sorting", "sort", "f64 1048576", "torch.sort(a)[0]", 0},
    {"sorting", "sort of columns", "f32 512,2048", "torch.sort(a, 0)[0]", 0},
    {"sorting", "argsort, stable", "f32 1048576", "torch.argsort(a, stable=True)", 0},
    {"sorting", "topk 10", "f32 2048,2048", "torch.topk(a, 10)[0]", 0},
    {"sorting", "topk 50", "f32 1048576", "torch.topk(a, 50)[0]", 0},
    {"sorting", "topk 5 smallest", "f32 256,50304", "torch.topk(a, 5, largest=False)[0]", 0},
    {"sorting", "topk 1000", "f32 1048576", "torch.topk(a, 1000)[0]", 0},
    {"sorting", "topk 50", "i64 1048576 <1000000000", "torch.topk(a, 50)[0]", 0},
    {"sorting", "topk 10", "bf16 256,4096", "torch.topk(a, 10)[0]", 0},
    {"sorting", "kthvalue, k = 1000", "f32 1048576", "torch.kthvalue(a, 1000)[0]", 0},
    {"sorting", "kthvalue of rows, k = 17", "f32 2048,512", "torch.kthvalue(a, 17)[0]", 0},
    {"sorting", "median", "f32 1048576", "torch.median(a)", 0},
    {"sorting", "median of rows", "f32 2048,512", "torch.median(a, 1)[0]", 0},
    {"sorting", "nanmedian of rows", "f32 2048,512", "torch.nanmedian(a, 1)[0]", 0},
    {"sorting", "mode of rows", "i64 256,512 <50", "torch.mode(a, 1)[0]", 0},
    {"sorting", "unique", "i64 1048576 <1000", "torch._unique2(a)[0]", 0},
    {"sorting", "unique", "f32 262144", "torch._unique2(a)[0]", 0},
    {"sorting", "searchsorted(sort(a), b)", "f32 65536; f32 65536", "torch.searchsorted(torch.sort(a)[0], b)", 0},

    {"reductions", "sum", "f32 4096,1024", "torch.sum(a)", 0},
    {"reductions", "sum, in cache", "f32 256,1024", "torch.sum(a)", 0},
    {"reductions", "sum over the first dim, in cache", "f32 256,1024", "torch.sum(a, 0)", 0},
    {"reductions", "sum over the first dim", "f32 4096,1024", "torch.sum(a, 0)", 0},
    {"reductions", "sum over the last dim", "f32 4096,1024", "torch.sum(a, 1)", 0},
    {"reductions", "sum over the middle dim", "f32 64,256,64", "torch.sum(a, 1)", 0},
    {"reductions", "sum", "f64 256,1024", "torch.sum(a)", 0},
    {"reductions", "sum", "i64 256,1024 <100", "torch.sum(a)", 0},
    {"reductions", "sum", "bf16 4096,1024", "torch.sum(a)", 0},
    {"reductions", "sum over the first dim", "bf16 4096,1024", "torch.sum(a, 0)", 0},
    {"reductions", "sum over the first dim", "f64 1024,1024", "torch.sum(a, 0)", 0},
    {"reductions", "mean over the last dim", "f32 4096,1024", "torch.mean(a, 1)", 0},
    {"reductions", "amax over the last dim", "f32 4096,1024", "torch.amax(a, 1)", 0},
    {"reductions", "amax over the first dim", "f32 4096,1024", "torch.amax(a, 0)", 0},
    {"reductions", "max", "f32 4096,1024", "torch.max(a)", 0},
    {"reductions", "max over the first dim", "f32 4096,1024", "torch.max(a, 0)[0]", 0},
    {"reductions", "argmax over the last dim", "f32 4096,1024", "torch.argmax(a, 1)", 0},
    {"reductions", "argmax over the first dim", "f32 4096,1024", "torch.argmax(a, 0)", 0},
    {"reductions", "var over the last dim", "f32 4096,1024", "torch.var(a, 1)", 0},
    {"reductions", "var over the first dim", "f32 4096,1024", "torch.var(a, 0)", 0},
    {"reductions", "prod over the last dim", "f32 1024,1024 +", "torch.prod(a, 1)", 0},
    {"reductions", "norm over the last dim", "f32 4096,1024", "torch.linalg.vector_norm(a, 2.0, [1])", 0},
    {"reductions", "any over the first dim", "bool 4096,1024 <2", "torch.any(a, 0)", 0},
    {"reductions", "logsumexp over the last dim", "f32 4096,1024", "torch.logsumexp(a, 1)", 0},
    {"reductions", "logsumexp over the first dim", "f32 4096,1024", "torch.logsumexp(a, 0)", 0},
    {"reductions", "cumsum over the last dim", "f32 4096,1024", "torch.cumsum(a, 1)", 0},
    {"reductions", "cumsum over the first dim", "f32 4096,1024", "torch.cumsum(a, 0)", 0},

    {"softmax", "softmax over the last dim, in cache", "f32 256,1024", "torch.softmax(a, 1)", 0},
    {"softmax", "softmax over the last dim", "f32 4096,1024", "torch.softmax(a, 1)", 0},
    {"softmax", "softmax over the first dim, in cache", "f32 256,1024", "torch.softmax(a, 0)", 0},
    {"softmax", "softmax over the first dim", "f32 4096,1024", "torch.softmax(a, 0)", 0},
    {"softmax", "softmax over channels", "f32 4,21,128,128", "torch.softmax(a, 1)", 0},
    {"softmax", "log_softmax over the last dim", "f32 4096,1024", "torch.log_softmax(a, 1)", 0},
    {"softmax", "log_softmax over the first dim", "f32 4096,1024", "torch.log_softmax(a, 0)", 0},
    {"softmax", "softmax over the last dim", "bf16 4096,1024", "torch.softmax(a, 1)", 0},
    {"softmax", "softmax over the last dim", "f64 1024,1024", "torch.softmax(a, 1)", 0},
    {"softmax", "softmax, forward and backward", "f32 4096,1024", "torch.softmax(a, 1)", BENCH_GRAD},
    {"softmax", "log_softmax, forward and backward", "f32 4096,1024", "torch.log_softmax(a, 1)", BENCH_GRAD},
    {"softmax", "softmax over channels, forward and backward", "f32 4,21,128,128", "torch.softmax(a, 1)", BENCH_GRAD},
    {"softmax", "cross_entropy, forward and backward", "f32 256,50304; i64 256 <50304", "F.cross_entropy(a, b)",
     BENCH_GRAD},

    {"norms", "layer_norm, in cache", "f32 256,1024; f32 1024; f32 1024", "F.layer_norm(a, [1024], b, c)", 0},
    {"norms", "layer_norm", "f32 4096,1024; f32 1024; f32 1024", "F.layer_norm(a, [1024], b, c)", 0},
    {"norms", "layer_norm", "bf16 4096,1024; bf16 1024; bf16 1024", "F.layer_norm(a, [1024], b, c)", 0},
    {"norms", "layer_norm, forward and backward, in cache", "f32 256,1024; f32 1024; f32 1024",
     "F.layer_norm(a, [1024], b, c)", BENCH_GRAD},
    {"norms", "layer_norm, forward and backward", "f32 4096,1024; f32 1024; f32 1024",
     "F.layer_norm(a, [1024], b, c)", BENCH_GRAD},
    {"norms", "layer_norm, forward and backward", "bf16 4096,1024; bf16 1024; bf16 1024",
     "F.layer_norm(a, [1024], b, c)", BENCH_GRAD},
    {"norms", "group_norm", "f32 16,64,56,56; f32 64; f32 64", "F.group_norm(a, 8, b, c)", 0},
    {"norms", "group_norm, forward and backward", "f32 16,64,56,56; f32 64; f32 64", "F.group_norm(a, 8, b, c)",
     BENCH_GRAD},
    {"norms", "batch_norm, eval", IMAGES, "F.batch_norm(a, c, b, d, e, False)", 0},
    {"norms", "adaptive_avg_pool2d to 1 x 1", "f32 16,64,56,56", "F.adaptive_avg_pool2d(a, [1, 1])", 0},

    {"products", "mm, 64 x 64 x 64", "f32 64,64; f32 64,64", "torch.mm(a, b)", 0},
    {"products", "mm, 512 x 512 x 512", "f32 512,512; f32 512,512", "torch.mm(a, b)", 0},
    {"products", "mm, 1024 x 1024 x 1024", "f32 1024,1024; f32 1024,1024", "torch.mm(a, b)", 0},
    {"products", "mm, 512 x 512 x 512, both transposed", "f32 512,512; f32 512,512", "torch.mm(a.t(), b.t())", 0},
    {"products", "mm, 1 x 4096 x 4096", "f32 1,4096; f32 4096,4096", "torch.mm(a, b)", 0},
    {"products", "mm, 4 x 4096 x 4096, b transposed", "f32 4,4096; f32 4096,4096", "torch.mm(a, b.t())", 0},
    {"products", "mm, 16 x 4096 x 4096, b transposed", "f32 16,4096; f32 4096,4096", "torch.mm(a, b.t())", 0},
    {"products", "mm, 10000 x 16 x 16", "f32 10000,16; f32 16,16", "torch.mm(a, b)", 0},
    {"products", "bmm, 64 of 64 x 64 x 64", "f32 64,64,64; f32 64,64,64", "torch.bmm(a, b)", 0},
    {"products", "bmm, 1024 of 8 x 8 x 8", "f32 1024,8,8; f32 1024,8,8", "torch.bmm(a, b)", 0},
    {"products", "linear", "f32 256,768; f32 3072,768; f32 3072", "F.linear(a, b, c)", 0},
    {"products", "linear, forward and backward", "f32 256,768; f32 3072,768; f32 3072", "F.linear(a, b, c)", BENCH_GRAD},
    {"products", "mm, 512 x 512 x 512", "f64 512,512; f64 512,512", "torch.mm(a, b)", 0},
    {"products", "mm, 512 x 512 x 512", "bf16 512,512; bf16 512,512", "torch.mm(a, b)", 0},
    {"products", "mm, 1 x 4096 x 4096, b transposed", "bf16 1,4096; bf16 4096,4096", "torch.mm(a, b.t())", 0},
    {"products", "mm, 16 x 4096 x 4096, b transposed", "bf16 16,4096; bf16 4096,4096", "torch.mm(a, b.t())", 0},
    {"products", "linear", "bf16 256,768; bf16 3072,768; bf16 3072", "F.linear(a, b, c)", 0},
    {"products", "mm, 1 x 4096 x 4096, b transposed", "f16 1,4096; f16 4096,4096", "torch.mm(a, b.t())", 0},
    {"products", "mm, 256 x 256 x 256", "i64 256,256 <100; i64 256,256 <100", "torch.mm(a, b)", 0},
    {"products", "mm, 256 x 256 x 256", "i32 256,256 <100; i32 256,256 <100", "torch.mm(a, b)", 0},
    {"products", "_int_mm, 256 x 256 x 256", "i8 256,256 <100; i8 256,256 <100", "torch._int_mm(a, b)", 0},
    {"products", "_int_mm, 1024 x 1024 x 1024", "i8 1024,1024 <100; i8 1024,1024 <100", "torch._int_mm(a, b)", 0},
    {"products", "mm, 256 x 256 x 256", "c64 256,256; c64 256,256", "torch.mm(a, b)", 0},

    {"convolution", "3 x 3, 64 channels", "f32 4,64,56,56; f32 64,64,3,3", "F.conv2d(a, b, padding=1)", 0},
    {"convolution", "3 x 3, 128 channels", "f32 4,128,28,28; f32 128,128,3,3", "F.conv2d(a, b, padding=1)", 0},
    {"convolution", "3 x 3, 512 channels", "f32 4,512,7,7; f32 512,512,3,3", "F.conv2d(a, b, padding=1)", 0},
    {"convolution", "1 x 1", "f32 4,256,28,28; f32 128,256,1,1", "F.conv2d(a, b)", 0},
    {"convolution", "7 x 7 by 2", "f32 4,3,224,224; f32 64,3,7,7", "F.conv2d(a, b, stride=2, padding=3)", 0},
    {"convolution", "3 x 3 by 2", "f32 4,64,56,56; f32 128,64,3,3", "F.conv2d(a, b, stride=2, padding=1)", 0},
    {"convolution", "depthwise 3 x 3", "f32 4,96,56,56; f32 96,1,3,3", "F.conv2d(a, b, padding=1, groups=96)", 0},
    {"convolution", "3 x 3, 8 groups", "f32 4,128,28,28; f32 128,16,3,3", "F.conv2d(a, b, padding=1, groups=8)", 0},
    {"convolution", "transposed 4 x 4 by 2", "f32 4,64,28,28; f32 64,32,4,4",
     "F.conv_transpose2d(a, b, stride=2, padding=1)", 0},
    {"convolution", "1-d", "f32 8,64,2000; f32 64,64,5", "F.conv1d(a, b, padding=2)", 0},
    {"convolution", "3-d", "f32 1,16,16,32,32; f32 16,16,3,3,3", "F.conv3d(a, b, padding=1)", 0},
    {"convolution", "3 x 3, forward and backward", "f32 4,64,56,56; f32 64,64,3,3", "F.conv2d(a, b, padding=1)",
     BENCH_GRAD},
    {"convolution", "3 x 3, 64 channels", "bf16 4,64,56,56; bf16 64,64,3,3", "F.conv2d(a, b, padding=1)", 0},
    {"convolution", "max pool 3 x 3 by 2", "f32 4,64,112,112", "F.max_pool2d(a, 3, 2, 1)", 0},
    {"convolution", "average pool 2 x 2", "f32 4,64,112,112", "F.avg_pool2d(a, 2)", 0},

    {"attention", "64 tokens", "f32 4,8,64,64; f32 4,8,64,64; f32 4,8,64,64",
     "F.scaled_dot_product_attention(a, b, c)", 0},
    {"attention", "1024 tokens", "f32 1,8,1024,64; f32 1,8,1024,64; f32 1,8,1024,64",
     "F.scaled_dot_product_attention(a, b, c)", 0},
    {"attention", "1024 tokens, causal", "f32 1,8,1024,64; f32 1,8,1024,64; f32 1,8,1024,64",
     "F.scaled_dot_product_attention(a, b, c, is_causal=True)", 0},
    {"attention", "512 tokens, forward and backward", "f32 1,8,512,64; f32 1,8,512,64; f32 1,8,512,64",
     "F.scaled_dot_product_attention(a, b, c)", BENCH_GRAD},
    {"attention", "1024 tokens", "bf16 1,8,1024,64; bf16 1,8,1024,64; bf16 1,8,1024,64",
     "F.scaled_dot_product_attention(a, b, c)", 0},

    {"recurrent", "lstm", "f32 50,16,128; f32 1,16,256; f32 1024,128; f32 1024,256; f32 1024; f32 1024",
     "torch.lstm(a, [b, b], [c * 0.05, d * 0.05, e, f], True, 1, 0.0, False, False, False)[0]", 0},
    {"recurrent", "gru", "f32 50,16,128; f32 1,16,256; f32 768,128; f32 768,256; f32 768; f32 768",
     "torch.gru(a, b, [c * 0.05, d * 0.05, e, f], True, 1, 0.0, False, False, False)[0]", 0},
    {"recurrent", "lstm, forward and backward",
     "f32 50,16,128; f32 1,16,256; f32 1024,128; f32 1024,256; f32 1024; f32 1024",
     "torch.lstm(a, [b, b], [c * 0.05, d * 0.05, e, f], True, 1, 0.0, False, False, False)[0]", BENCH_GRAD},
};

//-- limits of the machine ----------------------------------------------------------------------------------------------

/* Multiply-adds on vectors, in enough independent chains to hide the latency.  Each chain begins with another number;
   compilers would compute equal chains only once. */
#if defined(__x86_64__) && defined(__GNUC__)
#define PEAK(name, type, bytes, target_)                                                            \
    __attribute__((target(target_))) static double name(int64_t rounds) {                           \
        typedef type vector __attribute__((vector_size(bytes)));                                    \
        vector x = {0}, y = {0}, a, b, c, d, e, f, g, h, i, j;                                      \
        x += (type)1e-9;                                                                            \
        y += (type)0.999;                                                                           \
        a = x, b = a + x, c = b + x, d = c + x, e = d + x;                                          \
        f = e + x, g = f + x, h = g + x, i = h + x, j = i + x;                                      \
        for (int64_t r = 0; r < rounds; r++) {                                                      \
            a = a * y + x, b = b * y + x, c = c * y + x, d = d * y + x, e = e * y + x;              \
            f = f * y + x, g = g * y + x, h = h * y + x, i = i * y + x, j = j * y + x;              \
        }                                                                                           \
        a += b + c + d + e + f + g + h + i + j;                                                     \
        return (double)a[0];                                                                        \
    }
PEAK(peak_f32_avx512, float, 64, "avx512f,fma")
PEAK(peak_f64_avx512, double, 64, "avx512f,fma")
PEAK(peak_f32_avx2, float, 32, "avx2,fma")
PEAK(peak_f64_avx2, double, 32, "avx2,fma")
static void limit_of_products(const char *name, double (*loop)(int64_t), int lanes) {
    const int64_t rounds = 2000000;
    volatile double kept = 0;      /* so that the compiler keeps the loop */
    double best = 1e30;
    for (int i = 0; i < 3; i++) {
        const double start = bench_now(1);
        kept = kept + loop(rounds);
        if (bench_now(1) - start < best) { best = bench_now(1) - start; }
    }
    printf("limit: multiply-adds of %s: %.0f GFLOP/s\n", name, 20.0 * lanes * (double)rounds / best / 1e3);
}
static void limits_of_products(void) {
    const bool wide = __builtin_cpu_supports("avx512f") != 0;
    if (!wide && (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))) { return; }
    limit_of_products("float32", wide ? peak_f32_avx512 : peak_f32_avx2, wide ? 16 : 8);
    limit_of_products("float64", wide ? peak_f64_avx512 : peak_f64_avx2, wide ? 8 : 4);
}
#else
static void limits_of_products(void) {}
#endif
static void limit_of_copies(size_t size, const char *name, double us) {
    static void *(*volatile copy)(void *, const void *, size_t) = memcpy;     /* volatile: compilers keep the calls */
    char *from = (char *)malloc(size), *to = (char *)malloc(size);
    double best = 1e30;
    if (!from || !to) { bench_stop("limits", "out of memory"); }
    memset(from, 1, size);
    memset(to, 2, size);
    for (int i = 0; i < 5; i++) {
        const double start = bench_now(1);
        int count = 0;
        do {
            for (size_t copied = 0; copied < ((size_t)1 << 20); copied += size) {
                copy(to, from, size);
                from[count++ % (int)size]++;
            }
        } while (bench_now(1) - start < us);
        if ((bench_now(1) - start) / count < best) { best = (bench_now(1) - start) / count; }
    }
    printf("limit: copies of %s: %.0f GB/s\n", name, 2.0 * (double)size / best / 1e3);
    free(from);
    free(to);
}

int main(int argc, char **argv) {
    bool asked = false, some = false;
    for (int i = 1; i < argc; i++) {
        asked = asked || !strcmp(argv[i], "--help");
        some = some || !strcmp(argv[i], "--filter");
        if (!strcmp(argv[i], "--level") && i + 1 < argc) { (void)bench_level(argv[i + 1]); }
    }
    if (!asked && !some) {
        limits_of_products();
        limit_of_copies((size_t)8 << 10, "8 KiB", 2000);
        limit_of_copies((size_t)256 << 10, "256 KiB", 5000);
        limit_of_copies((size_t)4 << 20, "4 MiB", 10000);
        limit_of_copies((size_t)64 << 20, "64 MiB", 30000);
        printf("\n");
    }
    return bench_main(argc, argv, rows, sizeof rows / sizeof *rows);
}
