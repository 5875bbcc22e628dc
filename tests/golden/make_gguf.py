#!/usr/bin/env python3
"""Writes tests/golden/gguf.txt: what the package gguf reads from the files of tests/golden/gguf.

usage: pip install gguf && python3 tests/golden/make_gguf.py

The models and vocabularies in tests/golden/gguf are tiny and random, and were written by the packages gguf and llama.cpp.
tests/golden/gguf/malformed has damaged files, and in verdicts.json what llama.cpp does with each: "ok" or "refuse"
("either": versions differ).  Lines of gguf.txt:
    file NAME
    key KEY TYPE COUNT HASH        COUNT: -1 for a value that is not an array
    tensor NAME TYPE HASH SIZES    SIZES in PyTorch's order
A hash is FNV-1a of 64 bits: over the bytes of strings, each with a zero after it; over numbers as little-endian float64;
over the bytes of blocks.
"""
import os
import struct

import gguf
import numpy

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = {'UINT8': 'u8', 'INT8': 'i8', 'UINT16': 'u16', 'INT16': 'i16', 'UINT32': 'u32', 'INT32': 'i32', 'FLOAT32': 'f32',
         'BOOL': 'bool', 'STRING': 'str', 'UINT64': 'u64', 'INT64': 'i64', 'FLOAT64': 'f64'}
PLAIN = {'F32': 'float32', 'F16': 'float16', 'BF16': 'bfloat16', 'F64': 'float64'}


def fnv(data):
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 & (1 << 64) - 1
    return f'{value:016x}'


def key_line(name, field):
    kind = field.types[-1].name
    if kind == 'STRING':
        data = b''.join(bytes(field.parts[i]) + b'\0' for i in field.data)
    else:
        data = b''.join(struct.pack('<d', float(field.parts[i][0])) for i in field.data)
    count = len(field.data) if field.types[0].name == 'ARRAY' else -1
    return f'key {name} {NAMES[kind]} {count} {fnv(data)}'


def tensor_line(tensor):
    kind = tensor.tensor_type.name
    data = tensor.data
    if kind == 'BF16':
        data = (data.view(numpy.uint16).astype(numpy.uint32) << 16).view(numpy.float32)
    data = data.astype('<f8') if kind in PLAIN else data
    sizes = ' '.join(str(size) for size in reversed(tensor.shape.tolist()))
    return f'tensor {tensor.name} {PLAIN.get(kind) or kind.lower().replace('_k', '_K')} {fnv(data.tobytes())} {sizes}'


def main():
    with open(os.path.join(HERE, 'gguf.txt'), 'w', encoding='utf-8') as out:
        for name in sorted(os.listdir(os.path.join(HERE, 'gguf'))):
            if not name.endswith('.gguf'):
                continue
            reader = gguf.GGUFReader(os.path.join(HERE, 'gguf', name))
            print('file', name, file=out)
            for key, field in reader.fields.items():
                if not key.startswith('GGUF.'):
                    print(key_line(key, field), file=out)
            for tensor in reader.tensors:
                print(tensor_line(tensor), file=out)


if __name__ == '__main__':
    main()
