#!/usr/bin/env python3
"""Writes onednn_ends.npz: layers of codes with what follows them, as PyTorch computes them by oneDNN.

usage: make_onednn_ends.py (with PyTorch 2.15)

calls.txt has calls without parameters, because scripts cannot give numbers for Scalar?[].  ENDS has all operations that
onednn::qlinear_pointwise accepts after a layer; onednn::qconv_pointwise accepts the first five kinds.  The arrays are
the arguments (x, w, s, b of the linear layer; image, kernel, scales, bias of the convolution), and linear_E_D and
conv_E_D: the result for operation E and dtype D, as float32.
"""
import os

import numpy
import torch

ENDS = [('none', [], ''), ('relu', [], ''), ('hardtanh', [-0.5, 1.5], ''), ('hardtanh', [0, 6], ''),
        ('hardswish', [], ''), ('swish', [], ''), ('leaky_relu', [0.25], ''), ('leaky_relu', [-2], ''),
        ('tanh', [], ''), ('gelu', [], 'none'), ('gelu', [], 'tanh')]
CONVOLUTIONS = 6
OUTPUTS = [(1.0, 0, torch.float32), (1.0, 0, torch.bfloat16), (0.05, 100, torch.uint8), (0.05, -3, torch.int8)]

torch.manual_seed(1)
arrays = {
    'x': torch.randint(0, 256, (7, 40), dtype=torch.uint8), 'w': torch.randint(-127, 128, (19, 40), dtype=torch.int8),
    's': torch.rand(19) * 0.002 + 0.001, 'b': torch.randn(19),
    'image': torch.randint(0, 256, (1, 16, 6, 5), dtype=torch.uint8),
    'kernel': torch.randint(-127, 128, (21, 16, 3, 3), dtype=torch.int8), 'scales': torch.rand(21) * 0.001 + 0.0005,
    'bias': torch.randn(21)}
ops, a = torch.ops.onednn, arrays
linear = ops.qlinear_prepack(a['w'], None)
conv = ops.qconv_prepack(a['kernel'], a['scales'], 0.02, 120, [1, 1], [1, 1], [1, 1], 1, None)
for end, (name, numbers, way) in enumerate(ENDS):
    for at, (scale, zero, dtype) in enumerate(OUTPUTS):
        rest = (scale, zero, dtype, name, numbers, way)
        zeros = torch.zeros(len(a['s']), dtype=torch.int64), torch.zeros(len(a['scales']), dtype=torch.int64)
        result = ops.qlinear_pointwise(a['x'], 0.02, 120, linear, a['s'], zeros[0], a['b'], *rest)
        arrays['linear_%d_%d' % (end, at)] = result.float()
        if end < CONVOLUTIONS:
            result = ops.qconv_pointwise(a['image'], 0.02, 120, conv, a['scales'], zeros[1], a['bias'], [1, 1], [1, 1],
                                         [1, 1], 1, *rest)
            arrays['conv_%d_%d' % (end, at)] = result.float().contiguous()
numpy.savez_compressed(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'onednn_ends.npz'),
                       **{name: tensor.numpy() for name, tensor in arrays.items()})
