"""Writes the quantised programs that bench/compiled.c measures, and the same models in float32: NAME.pt2, and NAME.npz
with the inputs (in0) and the results (out0) of PyTorch.  Models have random weights.  A name is a model and a way:
  float    float32
  static   PT2E: weights and activations of 8 bits, with scales that are constants
  dynamic  PT2E: the scales of activations are found at run time
  weight   torchao: weights of 8 bits, multiplied as floats
  8da4w    torchao: weights of 4 bits by groups of 32, and activations of 8 bits
It needs PyTorch 2.15, torchao 0.18 and NumPy.
    python3 bench/peers/quantized_models.py FOLDER [NAME ...]"""
import os
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F
from torchao.quantization import (Int8DynamicActivationIntxWeightConfig, Int8WeightOnlyConfig, quantize_)
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e import quantizer
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

from compiled_models import Block, spread

warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Residual(nn.Module):
    def __init__(self, into, out, stride):
        super().__init__()
        self.a, self.b = nn.Conv2d(into, out, 3, stride, 1, bias=False), nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(out), nn.BatchNorm2d(out)])
        self.short = nn.Conv2d(into, out, 1, stride) if into != out else nn.Identity()

    def forward(self, x):
        y = F.relu(self.norms[0](self.a(x)), inplace=True)
        return F.relu(self.norms[1](self.b(y)) + self.short(x), inplace=True)


def mlp():
    return nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 256))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(64, 64, 3, padding=1), nn.ReLU6(), nn.Flatten(), nn.Linear(16384, 64), nn.ReLU(),
                         nn.Linear(64, 10))


def residual():
    return nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), Residual(32, 32, 1), Residual(32, 64, 2),
                         Residual(64, 128, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100))


def block():
    return Block(256, 4, 1024, True)


MODELS = {"mlp": (mlp, (16, 512)), "cnn": (cnn, (1, 3, 64, 64)), "residual": (residual, (1, 3, 96, 96)),
          "block": (block, (1, 64, 256))}
WAYS = {"mlp": "float static dynamic weight 8da4w", "cnn": "float static", "residual": "float static",
        "block": "float static dynamic weight 8da4w"}


def quantised(module, inputs, way):
    """Returns the module, exported or as torchao changes it."""
    if way in ("weight", "8da4w"):
        quantize_(module, Int8WeightOnlyConfig() if way == "weight" else
                  Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))
        return module
    if way == "float":
        return module
    prepared = prepare_pt2e(torch.export.export(module, inputs).module(), x86.X86InductorQuantizer().set_global(
        x86.get_default_x86_inductor_quantization_config(is_dynamic=way == "dynamic")))
    for _ in range(3):
        prepared(*(torch.randn_like(x) for x in inputs))
    prepared(*inputs)
    return convert_pt2e(prepared)


def main(folder, names):
    os.makedirs(folder, exist_ok=True)
    for name in names or ["%s_%s" % (model, way) for model in MODELS for way in WAYS[model].split()]:
        torch.manual_seed(0)
        make, shape = MODELS[name.split("_")[0]]
        with torch.no_grad():
            module = make().eval()
            spread(module)
            inputs = (torch.randn(shape),)
            module = quantised(module, inputs, name.split("_")[1])
            program = torch.export.export(module, inputs)
            arrays = {"in0": inputs[0].numpy(), "out0": module(*inputs).numpy()}
        numpy.savez(os.path.join(folder, name + ".npz"), **arrays)
        torch.export.save(program, os.path.join(folder, name + ".pt2"))
        print(name)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
