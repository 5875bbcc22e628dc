#!/usr/bin/env python3
"""Makes five of the files of tests/golden/programs: quantised models, and a mixture of experts.

usage: python3 tests/golden/make_quantized_programs.py; then tests/golden/plain_paths.py on the files that it writes
(needs PyTorch 2.15, torchao 0.18 and NumPy)

  ao_dynamic  torchao: weights and activations of 8 bits.  The weights are objects of a Python class
  ao_groups   torchao: weights of 4 bits by groups, objects of a Python class, and activations of 8 bits
  pt2e        PT2E: static quantisation of a convolution and a linear layer
  lowered     layers as PyTorch lowers them for processors, with packed weights
  experts     rows that are multiplied with the matrices of their experts
"""
import os
import warnings

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.export import export
from torchao.quantization import (Int8DynamicActivationInt8WeightConfig, Int8DynamicActivationIntxWeightConfig,
                                  quantize_)
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e import allow_exported_model_train_eval
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
from torchao.quantization.pt2e.quantizer.x86_inductor_quantizer import (X86InductorQuantizer,
                                                                        get_default_x86_inductor_quantization_config)

from make_programs import make

warnings.filterwarnings('ignore')


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(32, 16), nn.Linear(16, 8)

    def forward(self, x):
        return self.b(F.relu(self.a(x)))


class Picture(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.out = nn.Conv2d(2, 4, 3, padding=1), nn.Linear(64, 5)

    def forward(self, x):
        return self.out(F.relu(self.conv(x)).flatten(1))


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.weight = nn.Linear(8, 3), nn.Parameter(torch.randn(3, 8, 4) / 3)

    def forward(self, x):
        scores = torch.softmax(self.gate(x), 1)
        best, expert = scores.max(1)
        order = torch.argsort(expert)
        ends = torch.cumsum(F.one_hot(expert, 3).sum(0), 0).to(torch.int32)
        return torch._grouped_mm(x[order], self.weight, offs=ends) * best[order].unsqueeze(1)


class Lowered(nn.Module):
    def __init__(self):
        super().__init__()
        for name, sizes in (('w', (12, 32)), ('v', (12, 12)), ('u', (5, 12))):
            self.register_buffer(name, torch.randint(-127, 128, sizes, dtype=torch.int8))
            self.register_buffer(name + '_scales', torch.rand(sizes[0]) * 0.004 + 0.001)
            self.register_buffer(name + '_zeros', torch.zeros(sizes[0], dtype=torch.int64))
            self.register_buffer(name + '_bias', torch.randn(sizes[0]))

    def forward(self, x):
        one = torch.ops.onednn
        q = torch.ops.quantized_decomposed.quantize_per_tensor(x, 0.02, 120, 0, 255, torch.uint8)
        a = one.qlinear_pointwise(q, 0.02, 120, one.qlinear_prepack(self.w, None), self.w_scales, self.w_zeros,
                                  self.w_bias, 0.02, 10, torch.uint8, 'hardtanh', [-0.2, 4.0], '')
        v = one.qlinear_prepack(self.v, None)
        b = one.qlinear_pointwise(a, 0.02, 10, v, self.v_scales, self.v_zeros, self.v_bias, 1.0, 0, torch.float32,
                                  'leaky_relu', [0.125], '')
        c = one.qlinear_pointwise.tensor(a, torch.tensor(0.02), torch.tensor(10), v, self.v_scales, self.v_zeros, None,
                                         1.0, 0, torch.float32, 'hardtanh', [0, 6], '')
        d = torch.ops.quantized_decomposed.quantize_per_tensor(b + c, 0.05, 30, 0, 255, torch.uint8)
        return one.qlinear_pointwise(d, 0.05, 30, one.qlinear_prepack(self.u, None), self.u_scales, self.u_zeros,
                                     self.u_bias, 1.0, 0, torch.bfloat16, 'hardtanh', [-2.0, 2.0], '').float()


def main():
    torch.manual_seed(1)
    x = torch.randn(3, 32)
    dynamic, groups = Layers().eval(), Layers().eval()
    quantize_(dynamic, Int8DynamicActivationInt8WeightConfig())
    make('ao_dynamic', dynamic, (x,))
    quantize_(groups, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(16)))
    make('ao_groups', groups, (x,))
    image = (torch.randn(2, 2, 4, 4),)
    quantizer = X86InductorQuantizer().set_global(get_default_x86_inductor_quantization_config())
    prepared = prepare_pt2e(export(Picture().eval(), image).module(), quantizer)
    for _ in range(4):
        prepared(torch.randn(2, 2, 4, 4))
    make('pt2e', allow_exported_model_train_eval(convert_pt2e(prepared)), image)
    make('lowered', Lowered(), (torch.randn(3, 32),))
    make('experts', Experts(), (torch.randn(7, 8),), adam=False)


if __name__ == '__main__':
    main()
