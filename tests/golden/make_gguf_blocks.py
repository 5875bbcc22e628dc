#!/usr/bin/env python3
"""Makes gguf/dequantise.npz: blocks of GGUF's formats, and what llama.cpp computes from them.

TYPE_bytes [8, bytes of a block] are random, with scales that are small floats; TYPE_values are their numbers.
TYPE_quantise_in are four rows of numbers: normal, small with zeros, with large ones, all zero; TYPE_quantise_out is
what llama.cpp writes for them.  The formats IQ1 to IQ3 have only bytes and values.

Needs numpy and the package xllamacpp (llama.cpp), whose functions it calls through ctypes.

    python3 make_gguf_blocks.py           # writes the file again, with the same blocks and rows
    python3 make_gguf_blocks.py --check   # says where llama.cpp now computes something else
"""
import ctypes
import glob
import os
import sys

import numpy

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'gguf', 'dequantise.npz')
# name: number in GGUF, elements and bytes of a block
TYPES = {'Q4_0': (2, 32, 18), 'Q4_1': (3, 32, 20), 'Q5_0': (6, 32, 22), 'Q5_1': (7, 32, 24), 'Q8_0': (8, 32, 34),
         'Q2_K': (10, 256, 84), 'Q3_K': (11, 256, 110), 'Q4_K': (12, 256, 144), 'Q5_K': (13, 256, 176),
         'Q6_K': (14, 256, 210), 'IQ4_NL': (20, 32, 18), 'IQ4_XS': (23, 256, 136), 'TQ1_0': (34, 256, 54),
         'TQ2_0': (35, 256, 66), 'IQ2_XXS': (16, 256, 66), 'IQ2_XS': (17, 256, 74), 'IQ2_S': (22, 256, 82),
         'IQ3_XXS': (18, 256, 98), 'IQ3_S': (21, 256, 110), 'IQ1_S': (19, 256, 50), 'Q1_0': (41, 128, 18),
         'Q2_0': (42, 64, 18), 'IQ1_M': (29, 256, 56), 'MXFP4': (39, 32, 17), 'NVFP4': (40, 64, 36)}


def llama():
    import xllamacpp
    library = ctypes.CDLL(glob.glob(os.path.join(os.path.dirname(xllamacpp.__file__), '*.so'))[0])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                            ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return library


def values(library, name, blocks):
    out = numpy.zeros((len(blocks), TYPES[name][1]), numpy.float32)
    function = getattr(library, 'dequantize_row_' + name.lower().replace('_k', '_K'))
    function.restype = None
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    function(blocks.ctypes.data, out.ctypes.data, out.size)
    return out


def quantised(library, name, rows):
    number, elements, size = TYPES[name]
    out = numpy.zeros((len(rows), rows.shape[1] // elements * size), numpy.uint8)
    library.ggml_quantize_chunk(number, rows.ctypes.data, out.ctypes.data, 0, rows.shape[0], rows.shape[1], None)
    return out


def main():
    library = llama()
    golden = numpy.load(PATH)
    arrays, wrong = {}, 0
    for name in TYPES:
        arrays[name + '_bytes'] = blocks = numpy.ascontiguousarray(golden[name + '_bytes'])
        arrays[name + '_values'] = values(library, name, blocks)
        if name + '_quantise_in' in golden:
            arrays[name + '_quantise_in'] = rows = numpy.ascontiguousarray(golden[name + '_quantise_in'])
            arrays[name + '_quantise_out'] = quantised(library, name, rows)
    for name, array in arrays.items():
        if array.tobytes() != golden[name].tobytes():
            print(name, 'differs')
            wrong += 1
    if '--check' in sys.argv[1:]:
        sys.exit(wrong > 0)
    numpy.savez_compressed(PATH, **arrays)


if __name__ == '__main__':
    main()
