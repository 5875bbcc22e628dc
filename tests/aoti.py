#!/usr/bin/env python3
"""Compiles models with AOTInductor, runs them with examples/run_model.c, and compares the results with PyTorch's.

usage: python3 tests/aoti.py --program RUN_MODEL [--folder FOLDER] [name...]

RUN_MODEL is the compiled program examples/run_model.c.  Compiled models and arrays are written to FOLDER (default: a
temporary folder).  If they exist, they are used again.  Needs torch, torchao and a C++ compiler.  A model takes about 20 s.  The
last line is "N passed, N failed".  The exit status is 1 if a model failed.
"""
import argparse
import copy
import os
import subprocess
import sys
import tempfile



def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    parser.add_argument('--folder')
    parser.add_argument('names', nargs='*')
    return parser.parse_args()


ASKED = options() if __name__ == '__main__' else None     # --help needs no torch
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(50, 16)
        self.rnn = nn.LSTM(16, 24, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(48, 7)

    def forward(self, x):
        y, (h, c) = self.rnn(self.emb(x))
        return self.out(y), h, c


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation='gelu')
        self.layers = nn.TransformerEncoder(layer, 2)
        self.out = nn.Linear(32, 5)

    def forward(self, x):
        return self.out(self.layers(x))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.bn = nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
        self.b, self.bn2 = nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.BatchNorm2d(16)
        self.c, self.t, self.out = nn.Conv2d(16, 16, 1), nn.ConvTranspose2d(16, 4, 2, 2), nn.Linear(16, 10)

    def forward(self, x):
        x = F.relu(self.bn(self.a(x)))
        x = F.relu(self.c(F.hardswish(self.bn2(self.b(x)))) + x)
        return self.out(F.gelu(F.adaptive_avg_pool2d(x, 1).flatten(1))), torch.sigmoid(self.t(x))


class Indices(nn.Module):
    def forward(self, x, at, src):
        values, where = torch.topk(x, 3, dim=1)
        down, order = torch.sort(x, dim=1, descending=True)
        return (torch.zeros_like(x).scatter_add(0, at, src), x.scatter_reduce(0, at, src, 'amax'), x[at[:, 0]],
                torch.index_put(x, (at[:, 0],), src, accumulate=True), values, where, down, order,
                torch.cumsum(x, 1), x.gather(1, at % x.shape[1]), torch.argsort(x, dim=0))


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.out = nn.EmbeddingBag(30, 8, mode='mean'), nn.Linear(8, 3)

    def forward(self, indices, offsets):
        return self.out(self.emb(indices, offsets))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.norm, self.b = nn.Linear(16, 32), nn.LayerNorm(32), nn.Linear(32, 12)

    def forward(self, x):
        return self.b(torch.tanh(self.norm(self.a(x)))).softmax(-1)


class Int8(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('w', torch.randint(-127, 127, (12, 16), dtype=torch.int8))
        self.register_buffer('scale', torch.rand(12) / 100)

    def forward(self, x):
        y = F.linear(x, self.w.to(x.dtype) * self.scale[:, None])
        return y, torch.clamp(torch.round(y * 10), -128, 127).to(torch.int8)


class Masks(nn.Module):
    def forward(self, x, mask):
        y = torch.where(mask, x, torch.full_like(x, -1e9)).softmax(-1)
        return (y, torch.nonzero(mask), x[mask], mask.any(1), (mask & (x > 0)).sum(), torch.log1p(x.abs()), torch.erf(x),
                torch.sin(x) * torch.cos(x), torch.pow(x.abs(), 1.7), torch.atan2(x, y), torch.asinh(x),
                torch.lgamma(x.abs() + .5))


class Buffers(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.bn = nn.Linear(6, 6), nn.BatchNorm1d(6)
        self.register_buffer('total', torch.zeros(6))
        self.register_buffer('count', torch.zeros((), dtype=torch.int64))

    def forward(self, x, y):
        self.total.add_(x.sum(0))
        self.count.add_(1)
        z = self.bn(self.out(x))
        return {'z': z, 'x': x, 'total': self.total + 0, 't': (z.t(), y.int(), x.T @ z)}


class Codes(nn.Module):
    """Layers that a quantiser changes: linear ones, convolutions, sums after them, groups."""
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1), nn.Conv2d(16, 16, 3, 1, 1)
        self.d, self.e, self.out = nn.Conv2d(16, 16, 3, 1, 1, 1, 16), nn.Conv2d(16, 24, 3, 2, 0, 2, 2), nn.Linear(24, 12)
        self.u, self.v, self.w = nn.Linear(12, 24), nn.Linear(24, 12), nn.Linear(12, 7, bias=False)

    def forward(self, x):
        x = F.relu(self.a(x))
        x = F.relu(x + self.c(F.relu(self.b(x))))
        x = F.max_pool2d(F.hardtanh(self.d(x), 0, 6), 2)
        x = self.out(F.hardswish(self.e(x)).mean((2, 3)))
        return self.w(self.v(F.relu(self.u(x))) + x)


class Packed(nn.Module):
    """Products with weights of 8 and 4 bits that are packed before."""
    def __init__(self):
        super().__init__()
        self.register_buffer('a', torch.randint(-127, 127, (32, 64), dtype=torch.int8))
        self.register_buffer('scale', torch.rand(32) / 100)
        self.register_buffer('b', torch.ops.aten._convert_weight_to_int4pack_for_cpu(
            torch.randint(0, 15, (32, 64), dtype=torch.int32), 1))
        self.register_buffer('numbers', torch.randn(2, 32, 2) / 10)
        self.register_buffer('c', torch.ops.aten._dyn_quant_pack_4bit_weight(
            torch.randint(0, 255, (32, 32), dtype=torch.uint8), torch.rand(32, 2) / 10, None, 32, 64, 32))
        self.register_buffer('d', torch.randn(32, 64).to(torch.float8_e4m3fn))

    def forward(self, x):
        one, d = torch.ones(()), self.d.t()
        return (torch.ops.aten._weight_int8pack_mm(x, self.a, self.scale),
                torch.ops.aten._weight_int4pack_mm_for_cpu(x, self.b, 32, self.numbers),
                torch.ops.aten._dyn_quant_matmul_4bit(x, self.c, 32, 64, 32),
                torch.ops.aten._scaled_mm(x.to(torch.float8_e4m3fn), d, one / 2, one / 4, None, None, torch.float32))


def quantised(module, inputs, dynamic=False):
    """Returns a module with weights and activations of 8 bits, for Inductor to lower to oneDNN's operators."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86
    prepared = prepare_pt2e(torch.export.export(module.eval(), inputs).module(), x86.X86InductorQuantizer().set_global(
        x86.get_default_x86_inductor_quantization_config(is_dynamic=dynamic)))
    prepared(*inputs)
    return convert_pt2e(prepared)


class Linalg(nn.Module):
    def forward(self, a, b):
        _, r = torch.linalg.qr(a)
        return (torch.linalg.solve(a, b), torch.linalg.det(a), r.abs(), torch.fft.rfft(b[:, 0]).abs(),
                torch.cdist(a, a[:2]), torch.linalg.inv(a))


def models():
    """Returns {name: (module, inputs, dynamic sizes, options for the compiler)}."""
    g = torch.Generator().manual_seed(1)
    batch = torch.export.Dim('batch', min=2, max=64)

    def rand(*sizes):
        return torch.randn(*sizes, generator=g)

    def ints(high, *sizes):
        return torch.randint(0, high, sizes, generator=g)
    outside = {'aot_inductor.package_constants_in_so': False}
    tokens, image, sequence = ints(50, 3, 9), rand(2, 3, 16, 16), rand(4, 11, 32)
    frozen = {'freezing': True}
    return {
        'lstm': (Lstm(), (tokens,), None, {}),
        'lstm_frozen': (Lstm(), (tokens,), None, {'freezing': True}),
        'transformer': (Transformer(), (sequence,), ({0: batch},), {}),
        'transformer_frozen': (Transformer(), (sequence,), None, {'freezing': True}),
        'conv': (Conv(), (image,), ({0: batch},), {}),
        'conv_frozen': (Conv(), (image,), None, {'freezing': True}),
        'indices': (Indices(), (rand(6, 5), ints(6, 6, 5), rand(6, 5)), None, {}),
        'bag': (Bag(), (ints(30, 20), torch.tensor([0, 4, 4, 11])), None, {}),
        'half': (Mlp().half(), (rand(5, 16).half(),), None, {}),
        'bfloat': (Mlp().bfloat16(), (rand(5, 16).bfloat16(),), None, {}),
        'int8': (Int8(), (rand(5, 16),), None, {}),
        'masks': (Masks(), (rand(4, 33), rand(4, 33) > 0), None, {}),
        'buffers': (Buffers(), (rand(4, 6), torch.arange(5.)), None, {}),
        'linalg': (Linalg(), (rand(6, 6) + 3 * torch.eye(6), rand(6, 3)), None, {}),
        'blob': (Transformer(), (sequence,), None,
                 dict(outside, **{'aot_inductor.package_constants_on_disk_format': 'binary_blob'})),
        'pickled': (Mlp(), (rand(5, 16),), None,
                    dict(outside, **{'aot_inductor.package_constants_on_disk_format': 'pickle_weights'})),
        'packed': (Packed(), (rand(5, 64),), None, frozen),
        'codes': (lambda: quantised(Codes(), (image,)), (image,), None, frozen),
        'codes_transformer': (lambda: quantised(Transformer(), (sequence,)), (sequence,), None, frozen),
        'codes_dynamic': (lambda: quantised(Transformer(), (sequence,), True), (sequence,), None, frozen),
    }


def array(tensor):
    """Returns the array that .npz stores for a tensor, and the suffix of its name."""
    tensor = tensor.detach().contiguous()
    return (tensor.view(torch.int16).numpy(), '.bf16') if tensor.dtype == torch.bfloat16 else (tensor.numpy(), '')


def make(folder, name, module, inputs, dynamic, config):
    module = module.eval() if isinstance(module, nn.Module) else module()
    arrays = {}
    with torch.no_grad():
        program = torch.export.export(copy.deepcopy(module), inputs, dynamic_shapes=dynamic)
        outputs = torch.utils._pytree.tree_leaves(copy.deepcopy(module)(*[x.clone() for x in inputs]))
        for kind, tensors in (('in', inputs), ('out', outputs)):
            for i, tensor in enumerate(tensors):
                data, suffix = array(tensor)
                arrays[f'{kind}{i}{suffix}'] = data
        torch._inductor.aoti_compile_and_package(program, package_path=f'{folder}/{name}.pt2', inductor_configs=config)
    np.savez(f'{folder}/{name}.npz', **arrays)


def wrong(folder, name, program):
    """Runs a package.  Returns the first difference, or ''."""
    out = f'{folder}/{name}.out.npz'
    done = subprocess.run([program, f'{folder}/{name}.pt2', '--code', '--inputs', f'{folder}/{name}.npz', '--outputs', out],
                          capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().split('\n')[-1]
    got, want = np.load(out), np.load(f'{folder}/{name}.npz')
    for key in want:
        if not key.startswith('out'):
            continue
        a, b = want[key], got[key] if key in got else None
        if b is None or a.shape != b.shape or a.dtype != b.dtype:
            return f'{key} has other sizes or another dtype'
        bound = 4e-3 if a.dtype == np.float16 else 1e-4
        if key.endswith('.bf16'):
            a, b, bound = [(x.astype(np.int32) << 16).view(np.float32) for x in (a, b)] + [4e-2]
        if a.dtype.kind != 'f':
            if not np.array_equal(a, b):
                return f'{key} differs'
        elif a.size and not np.abs(a - b).max() <= bound * max(np.abs(a).max(), 1e-30):
            return f'{key} differs by {np.abs(a - b).max()}'
    return ''


def main():
    args = ASKED
    torch.manual_seed(0)
    failed = passed = 0
    with tempfile.TemporaryDirectory() as own:
        folder = args.folder or own
        os.makedirs(folder, exist_ok=True)
        for name, (module, inputs, dynamic, config) in models().items():
            if args.names and name not in args.names:
                continue
            if not os.path.exists(f'{folder}/{name}.npz'):
                make(folder, name, module, inputs, dynamic, config)
            text = wrong(folder, name, args.program)
            failed, passed = failed + bool(text), passed + (not text)
            print(f'{name}: {text or "ok"}', flush=True)
    print(f'{passed} passed, {failed} failed')
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
