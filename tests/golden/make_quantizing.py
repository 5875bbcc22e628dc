#!/usr/bin/env python3
"""Makes tests/golden/quantizing.npz: how torch.ao.quantization quantises weights and chooses scales of inputs.

usage: python3 tests/golden/make_quantizing.py            (needs PyTorch 2.15 and NumPy)

For each weight w0 (a matrix) and w1 (of a convolution): the numbers, scales and zero points of per-channel and group
quantisation, of 8 and 4 bits.  x0, x1, x2: batches of inputs; NAME.scale, NAME.zero, NAME.low, NAME.high: what
MinMaxObserver and HistogramObserver choose for them; long: for more numbers.  y.NAME: outputs of a linear layer with these numbers.
"""
import os
import warnings

import numpy as np
import torch
from torch.ao.quantization.observer import HistogramObserver, MinMaxObserver, PerChannelMinMaxObserver
import torch.ao.quantization.fx._decomposed  # noqa: F401, registers operators

warnings.filterwarnings('ignore')
ops = torch.ops.quantized_decomposed
SYMMETRIC, AFFINE = torch.per_channel_symmetric, torch.per_channel_affine


def weights(out, name, w, group=None):
    rows = w.reshape(w.shape[0], -1)
    grouped = rows.reshape(-1, group) if group else rows
    for form, low, high, scheme in (('int8', -127, 127, SYMMETRIC), ('int4', -8, 7, SYMMETRIC),
                                    ('int8, asymmetric', -128, 127, AFFINE)):
        observer = PerChannelMinMaxObserver(ch_axis=0, dtype=torch.int8, qscheme=scheme, quant_min=low, quant_max=high)
        observer(grouped)
        scale, zero = observer.calculate_qparams()
        codes = ops.quantize_per_channel(grouped, scale, zero, 0, low, high, torch.int8)
        again = ops.dequantize_per_channel(codes, scale, zero, 0, low, high, torch.int8)
        key = '%s.%s%s' % (name, form, ', group %d' % group if group else '')
        out[key + '.codes'] = codes.reshape(rows.shape).numpy()
        out[key + '.scales'] = scale.numpy()
        out[key + '.zeros'] = zero.numpy().astype(np.int64)
        out[key + '.again'] = again.reshape(w.shape).numpy()


def inputs(out, name, observer, batches, w, b):
    for x in batches:
        observer(x)
    scale, zero = observer.calculate_qparams()
    out[name + '.scale'], out[name + '.zero'] = scale.numpy(), zero.numpy().astype(np.int64)
    scale, zero = float(scale), int(zero)
    x = ops.quantize_per_tensor(batches[0], scale, zero, -128, 127, torch.int8)
    x = ops.dequantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
    out['y.' + name] = torch.nn.functional.linear(x, torch.tensor(out['w0.int8.again']), b).numpy()


def main():
    torch.manual_seed(3)
    out = {'w0': torch.randn(6, 64), 'w1': torch.randn(4, 3, 2, 2), 'b0': torch.randn(6)}
    out['w0'][2] = torch.round(out['w0'][2] * 8) * 0.5          # many numbers halfway between integers
    out['w0'][2, 0] = 127 * 0.25
    out['w0'][3] = out['w0'][3].abs() + 1
    out['w0'][4] = 0
    batches = [torch.randn(10, 64), 1.5 * torch.randn(20, 64) + 0.25, torch.randn(10, 64).relu()]
    batches[1][2, 3] = 90.0                                     # an outlier
    out.update({'x%d' % i: x for i, x in enumerate(batches)})
    out = {k: v.numpy() for k, v in out.items()}
    w0, w1, b = torch.tensor(out['w0']), torch.tensor(out['w1']), torch.tensor(out['b0'])
    weights(out, 'w0', w0)
    weights(out, 'w0', w0, 16)
    weights(out, 'w1', w1)
    limits = dict(dtype=torch.int8, qscheme=torch.per_tensor_affine, quant_min=-128, quant_max=127)
    inputs(out, 'minmax', MinMaxObserver(**limits), batches, w0, b)
    inputs(out, 'histogram', HistogramObserver(**limits), batches, w0, b)
    x = batches[0]
    scale, zero = ops.choose_qparams_per_token_asymmetric(x, torch.int8)
    x = ops.quantize_per_token(x, scale, zero, -128, 127, torch.int8)
    x = ops.dequantize_per_token(x, scale, zero, -128, 127, torch.int8, torch.float32)
    out['y.dynamic'] = torch.nn.functional.linear(x, torch.tensor(out['w0.int8.again']), b).numpy()
    n = (torch.arange(60000) * 7919 % 10009 - 5004).double() / 1280     # test_quantizing.c computes these, too
    x = (n * n * n).float()
    long = HistogramObserver(**limits)
    long(x[:20000])
    long(x[20000:] * 0.5)
    x[1234] = 900
    long(x * 1.5 + 3)
    scale, zero = long.calculate_qparams()
    out['long.scale'], out['long.zero'] = scale.numpy(), zero.numpy().astype(np.int64)
    everything = torch.cat([x.flatten() for x in batches]).sort().values
    out['percentile.low'] = np.float32(torch.quantile(everything, 0.005))
    out['percentile.high'] = np.float32(torch.quantile(everything, 0.995))
    np.savez(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'quantizing.npz'), **out)


if __name__ == '__main__':
    main()
