#!/usr/bin/env python3
"""Makes int_blocks.npz: what torchao computes for integers of 1 to 8 bits with scales, see opd_dtype_int_blocks.

x [6, 96] are numbers.  For each name, such as int4_group32_asymmetric, NAME_codes, NAME_scales and NAME_zeros (only of
asymmetric ones) are what choose_qparams_affine and quantize_affine give, and NAME_values what dequantize_affine gives.
Codes are int8 if there are no zero points, else uint8.  The group 96 is a whole row.

Needs torch and torchao.

    python3 make_int_blocks.py           # writes the file again
    python3 make_int_blocks.py --check   # says what torchao now computes differently
"""
import os
import sys

import numpy
import torch
from torchao.quantization.quant_primitives import (MappingType, choose_qparams_affine, dequantize_affine,
                                                   quantize_affine)

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'int_blocks.npz')


def rows():
    torch.manual_seed(3)
    x = torch.randn(6, 96)
    x[1, ::3] = 0
    x[2] *= 1e20
    x[3] = 0
    x[4] = x[4].abs() + 1
    x[5] *= 1e-39
    return x


def compute():
    x = rows()
    out = {'x': x.numpy()}
    for bits in range(1, 9):
        for group in (8, 32, 96):
            for asymmetric in (False, True):
                low, high = (0, 2 ** bits - 1) if asymmetric else (-2 ** (bits - 1), 2 ** (bits - 1) - 1)
                kind = MappingType.ASYMMETRIC if asymmetric else MappingType.SYMMETRIC
                dtype, block = torch.uint8 if asymmetric else torch.int8, (1, group)
                scales, zeros = choose_qparams_affine(x, kind, block, dtype, low, high)
                codes = quantize_affine(x, block, scales, zeros, dtype, low, high)
                values = dequantize_affine(codes, block, scales, zeros, dtype, low, high)
                name = f'int{bits}_group{group}' + ('_asymmetric' if asymmetric else '')
                out[name + '_codes'] = codes.numpy()
                out[name + '_scales'] = scales.reshape(6, -1).numpy()
                out[name + '_values'] = values.numpy()
                if asymmetric:
                    out[name + '_zeros'] = zeros.reshape(6, -1).to(torch.int32).numpy()
    return out


def main():
    made = compute()
    if '--check' not in sys.argv[1:]:
        numpy.savez_compressed(PATH, **made)
        return 0
    was = numpy.load(PATH)
    wrong = [name for name in made if name not in was or was[name].tobytes() != made[name].tobytes()]
    print('\n'.join(wrong) or 'the same')
    return bool(wrong)


if __name__ == '__main__':
    sys.exit(main())
