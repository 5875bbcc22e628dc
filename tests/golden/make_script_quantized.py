"""Writes scripts/quantized_NAME.pt, archives of models with quantized tensors, and scripts/quantized_layers.npz with
arrays for each model: the inputs NAME.in0, ..., PyTorch's outputs NAME.out0, ..., and the scales of the outputs
NAME.step0, ... (0: the output is not quantized).
    python3 tests/golden/make_script_quantized.py, then tests/golden/plain_paths.py on the archives
With the argument `around`, writes only quantized_around.pt and .npz: quantized layers with plain operators around them.
These operators round, too."""
import copy, os, sys, warnings
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.ao.nn.quantized as nnq
import torch.ao.quantization as tq
from torch import Tensor
warnings.filterwarnings("ignore")
torch.backends.quantized.engine = "fbgemm"
here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "scripts")
arrays = {}

def keep(name, script, inputs):
    path = os.path.join(here, "quantized_%s.pt" % name)
    torch.jit.save(script, path)
    outputs = torch.jit.load(path)(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for i, x in enumerate(inputs):
        arrays["%s.in%d" % (name, i)] = x.numpy()
    for i, y in enumerate(outputs):
        arrays["%s.out%d" % (name, i)] = y.detach().numpy()
    return outputs

def steps(name, values):
    for i, step in enumerate(values):
        arrays["%s.step%d" % (name, i)] = np.array(step, np.float32)

class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.d = tq.QuantStub(), tq.DeQuantStub()
        self.a, self.n, self.r = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()
        self.b = nn.Conv2d(8, 8, 3, groups=2, stride=2, padding=1, padding_mode="reflect")
        self.c = nn.Conv1d(8, 6, 3, stride=2, padding=1)
        self.t = nn.ConvTranspose1d(6, 4, 3, stride=2, padding=1)
        self.f, self.g = nn.Linear(4, 5), nn.Linear(5, 3)
        self.add, self.mul, self.cat = nnq.FloatFunctional(), nnq.FloatFunctional(), nnq.FloatFunctional()
    def forward(self, x):
        x = self.b(self.r(self.n(self.a(self.q(x)))))
        y = self.c(self.mul.mul(x, x).flatten(2))
        y = self.t(self.add.add_relu(y, y)).mean(2)
        y = torch.relu(self.f(y))
        return self.d(x), self.d(self.cat.cat([self.g(y), y], 1))

def layers():
    torch.manual_seed(0)
    model, x = Layers().eval(), torch.randn(2, 3, 6, 6)
    model = tq.fuse_modules(model, [["a", "n", "r"]])
    model.qconfig = tq.get_default_qconfig("fbgemm")
    model.t.qconfig = tq.QConfig(activation=tq.default_observer, weight=tq.default_weight_observer)
    model = tq.prepare(model)
    model(x)
    model = tq.convert(model)
    for name, script in (("script", torch.jit.script(model)), ("frozen", torch.jit.freeze(torch.jit.script(model))),
                         ("trace", torch.jit.trace(model, x))):
        keep(name, script, [x])
        steps(name, [model.b.scale, model.cat.scale])

@torch.jit.script
def operators(x: Tensor, w: Tensor, v: Tensor):
    q = torch.quantize_per_tensor(x, 0.05, 120, torch.quint8)
    r = torch.quantize_per_tensor(x * 0.7 + 0.1, torch.tensor(0.03), torch.tensor(100), torch.quint8)
    c = torch.quantize_per_channel(x, w.abs() * 0.1 + 0.01, (w * 5).to(torch.int64), 1, torch.qint8)
    ops = torch.ops.quantized
    mean, var = w * 0.3, w.abs() + 0.5
    return (q.dequantize(), r.dequantize(), c.dequantize(), ops.hardswish(q, 0.04, 10).dequantize(),
            ops.elu(q, 0.03, 30, 1.2).dequantize(), ops.celu(q, 0.03, 30, 1.2).dequantize(),
            ops.sigmoid(q, 0.004, 2).dequantize(), ops.leaky_relu(q, 0.2, False, 0.04, 30).dequantize(),
            ops.relu6(q).dequantize(), ops.clamp(q, -1.0, 1.5).dequantize(), ops.softmax(q, 1, 0.004, 2).dequantize(),
            ops.layer_norm(q, [3, 3], None, None, 1e-5, 0.04, 100).dequantize(),
            ops.group_norm(q, 2, w, v, 1e-5, 0.04, 100).dequantize(),
            ops.instance_norm(q, w, v, 1e-5, 0.04, 100).dequantize(),
            ops.batch_norm2d_relu(q, w, v, mean, var, 1e-5, 0.04, 100).dequantize(),
            ops.matmul(q, r, 0.08, 110).dequantize(), ops.mul_relu(q, r, 0.08, 10).dequantize(),
            ops.mul_scalar(q, -1.7).dequantize(), ops.cat_relu([q, r], 1, 0.04, 3).dequantize(),
            ops.prelu(q, torch.quantize_per_tensor(v.abs(), 0.01, 3, torch.quint8), 0.04, 100).dequantize())

class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags, self.rows = nn.EmbeddingBag(20, 8, mode="sum"), nn.Embedding(20, 4)
    def forward(self, i, offsets):
        return self.bags(i, offsets), self.rows(i)

class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(4, 5, 2, batch_first=True, bidirectional=True), nn.GRU(10, 4)
        self.cells = nn.ModuleList([nn.LSTMCell(4, 4), nn.GRUCell(4, 4), nn.RNNCell(4, 4)])
    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, k = self.gru(y)
        a, b = self.cells[0](z[0])
        return z, h, c, k, a, b, self.cells[1](a), self.cells[2](a)

class Around(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.d = tq.QuantStub(), tq.DeQuantStub()
        self.a, self.b, self.c = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1), nn.Linear(16, 5)
        self.pool, self.two, self.add, self.drop = nn.AvgPool2d(2), nn.AdaptiveAvgPool2d(2), nnq.FloatFunctional(), nn.Dropout()
    def forward(self, x):
        q = self.q(x)
        y = self.b(torch.relu(self.a(q)))
        z = self.two(self.add.add(y, y))
        d = self.d
        return (d(self.c(self.drop(z.flatten(1)))), d(z), d(self.pool(F.max_pool2d(y, 2))), d(self.two(q)), d(self.pool(q)),
                d(y.mean([2, 3])), d(F.interpolate(y, scale_factor=2., mode="bilinear")), d(torch.sigmoid(y)), d(torch.tanh(y)),
                d(F.hardsigmoid(q)), d(F.leaky_relu(y, 0.3)), d(F.hardtanh(q, 0.1, 0.77)), d(self.pool(torch.sigmoid(q))),
                d(F.avg_pool3d(q[None], 2)), d(F.interpolate(q, size=[3, 5], mode="nearest")))

def around():
    torch.manual_seed(0)
    model, x = Around().eval(), torch.rand(2, 3, 8, 8)
    model.qconfig = tq.get_default_qconfig("fbgemm")
    model = tq.prepare(model)
    model(x)
    keep("around", torch.jit.script(tq.convert(model)), [x])
    np.savez_compressed(os.path.join(here, "quantized_around.npz"), **arrays)

def main():
    if sys.argv[1:] == ["around"]:
        return around()
    layers()
    torch.manual_seed(1)
    outputs = keep("operators", operators, [torch.randn(2, 4, 3, 3) * 2, torch.rand(4) + 0.2, torch.randn(4)])
    steps("operators", [0.05, 0.03, 0, 0.04, 0.03, 0.03, 0.004, 0.04, 0.05, 0.05, 0.004, 0.04, 0.04, 0.04, 0.04, 0.08,
                        0.08, 0.085, 0.04, 0.04][:len(outputs)])
    rows = Rows().eval()
    rows.bags.qconfig = rows.rows.qconfig = tq.float_qparams_weight_only_qconfig
    rows = torch.jit.script(tq.convert(tq.prepare(rows)))
    keep("rows", rows, [torch.randint(0, 20, (7,)), torch.tensor([0, 2, 5])])
    for name, dtype in (("recurrent", torch.qint8), ("half", torch.float16)):
        kinds = {nn.LSTM, nn.GRU} | ({nn.LSTMCell, nn.GRUCell, nn.RNNCell} if dtype == torch.qint8 else set())
        layers_of = tq.quantize_dynamic(Recurrent().eval(), kinds, dtype=dtype)
        keep(name, torch.jit.script(layers_of), [torch.randn(3, 5, 4)])
    np.savez(os.path.join(here, "quantized_layers.npz"), **arrays)

main()
