#!/usr/bin/env python3
"""Writes stored.txt: PyTorch 2.15's results for dtypes with which few operators compute.

usage: python3 tests/golden/make_stored.py > tests/golden/stored.txt

A line has one fact, as words separated by tabs.  Bytes are hexadecimal digits in the order of a little-endian memory:
  cast FROM TO BYTES BYTES           elements of one dtype, and the same converted to another
  promote ONE TWO RESULT             torch.promote_types, or "!" and the error message
  fill DTYPE NUMBER BYTES            torch.full of two elements, or "!" and the error message.  NUMBER is an int, a
                                     float or a complex number, as Python writes it
  print DTYPE SIZES BYTES TEXT       str(tensor), with | between lines
  file KIND DTYPE FILE SIZES BYTES   a file of PyTorch or NumPy with a tensor; its name is "x" if tensors have names
  op NAME ARGUMENTS RESULT           ARGUMENTS and RESULT are DTYPE SIZES BYTES, once for each tensor; or RESULT is "!"
                                     and the error message
"""
import io
import json
import random
import struct
import numpy
import torch

from plain_names import plain_names

NEW = ['uint16', 'uint32', 'uint64', 'float8_e4m3fn', 'float8_e5m2', 'float8_e4m3fnuz', 'float8_e5m2fnuz',
       'float8_e8m0fnu', 'complex32']
OLD = ['uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'float32', 'float64', 'complex64', 'complex128', 'bool',
       'bfloat16']
EIGHT = [n for n in NEW if n.startswith('float8')]


def dtype(name):
    return getattr(torch, name)


def hexes(tensor):
    tensor = tensor.detach().contiguous()
    if tensor.numel() == 0:
        return '-'
    return bytes(tensor.reshape(-1).view(torch.uint8).tolist()).hex()


def raw(name, data):
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(dtype(name))


def put(*words):
    print('\t'.join(str(w) for w in words))


def error(exception):
    return '!' + plain_names(str(exception).split('\n')[0])


def floats():
    """Returns floats at the limits of the small formats, between their values, and at random."""
    random.seed(5)
    found = [0.0, -0.0, float('inf'), float('-inf'), float('nan'), 1e-45, -1e-45, 1e30, 3.4e38, -3.4e38]
    for name in EIGHT:
        codes = raw(name, bytes(range(256))).float()
        codes = sorted(v for v in codes.tolist() if v == v and abs(v) < 1e38)
        for low, high in zip(codes, codes[1:]):
            middle = torch.tensor((low + high) / 2)
            for value in (low, middle.item(), torch.nextafter(middle, torch.tensor(1e38)).item(),
                          torch.nextafter(middle, torch.tensor(-1e38)).item()):
                found.append(value)
        top = max(codes)
        found += [top * k for k in (1.01, 1.03125, 1.0625, 1.07, 1.125, 1.2, 1.25, 2, -1.0625, -1.125, -1.25, -2)]
    found += [struct.unpack('<f', struct.pack('<I', random.getrandbits(32)))[0] for _ in range(400)]
    found += [random.gauss(0, 3) for _ in range(100)]
    return sorted(set(struct.pack('<f', v) for v in found if abs(v) <= 3.4e38 or v != v or abs(v) == float('inf')))


def values_of(name):
    """Returns some elements of a dtype."""
    kind = dtype(name)
    if name in EIGHT:
        return raw(name, bytes(range(256)))
    if name == 'bool':
        return torch.tensor([True, False])
    if kind.is_complex:
        return torch.tensor([0, 1, -1, 2.5 - 1.5j, 100 + 3j, 0.0625j, 7 - 0.25j], dtype=torch.complex128).to(kind)
    if kind.is_floating_point:
        return torch.tensor([0.0, 1, 2.5, 3.5, 100.25, 0.0625, 0.3, 255, 200.7, 32000, 1e-3], dtype=torch.float64).to(kind)
    size = torch.iinfo(kind)
    whole = [0, 1, 2, 3, 100, 127, 17, 85] + [v for v in (200, 255, 256, 449, 32767, 40000, 65535, 65536, 70000,
        2**24 + 1, 2**31 - 1, 2**31 + 5, 2**32 - 1, 2**40 + 3, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 2**39 + 1,
        2**64 - 1, -1, -2, -100, -40000, -2**31) if size.min <= v <= size.max]
    return torch.tensor(whole, dtype=kind)


def casts():
    exact = b''.join(floats())
    for name in EIGHT:
        put('cast', 'float32', name, exact.hex(), hexes(raw('float32', exact).to(dtype(name))))
    # doubles that, rounded to float, are halfway between two values of the format
    doubles = torch.tensor([v * s for v in (17 / 16, 1.125, 1.375, 464.0, 61440.0, 2**-10, 248.0, 0.75)
                            for s in (1, 1 + 2**-40, 1 - 2**-40, -1 - 2**-40)], dtype=torch.float64)
    for name in EIGHT:
        put('cast', 'float64', name, hexes(doubles), hexes(doubles.to(dtype(name))))
    for one in NEW + OLD:
        values = values_of(one)
        for two in NEW + OLD:
            if one == two or not (one in NEW or two in NEW):
                continue
            from_values = values
            if not dtype(two).is_floating_point and not dtype(two).is_complex and two != 'bool' and \
                    (dtype(one).is_floating_point or dtype(one).is_complex):
                # the conversion of a value that does not fit is undefined
                wide = values.to(torch.complex128) if dtype(one).is_complex else values.to(torch.float64)
                real = wide.real if dtype(one).is_complex else wide
                size = torch.iinfo(dtype(two))
                keep = torch.isfinite(real) & (real > float(size.min) - 1) & (real < min(float(size.max), 2.0**62))
                from_values = torch.tensor([], dtype=torch.uint8)
                if keep.any():
                    from_values = torch.stack([values[i] for i in range(values.numel()) if keep[i]])
            put('cast', one, two, hexes(from_values), hexes(from_values.to(dtype(two))))


def promotions():
    for one in NEW + OLD:
        for two in NEW + OLD:
            if one in NEW or two in NEW:
                try:
                    put('promote', one, two, str(torch.promote_types(dtype(one), dtype(two))).replace('torch.', ''))
                except RuntimeError as exception:
                    put('promote', one, two, error(exception))


def fills():
    numbers = [0, 1, -1, 3, -7, 255, 256, 447, 448, 449, -449, 1000, 65535, 65536, -65535, -65536, 4294967295, 4294967296,
               -4294967295, -4294967296, 2**62, -2**63, 57344, 60000, -70000, 0.0, 1.5, -1.5, -0.5, 0.3, 240.0, 241.0,
               448.0, 449.0, 500.0, 60000.0, 65535.5, 1e10, 1e30, 1e-30, 1e-45, float('inf'), float('-inf'),
               float('nan'), 1 + 2j, 3 + 0j, True, False]
    for name in NEW:
        for number in numbers:
            if name == 'float8_e8m0fnu' and isinstance(number, complex):
                continue                          # refused: the imaginary part would be 0
            try:
                put('fill', name, repr(number), hexes(torch.full((2,), number, dtype=dtype(name))))
            except RuntimeError as exception:
                put('fill', name, repr(number), error(exception))


def prints():
    for name in NEW:
        for values in ([1, 2, 3], [], [1.5, 2, 100], [0.25, 1000, 3], [[1, 2], [3, 4]], 7):
            if name == 'float8_e8m0fnu' and values in ([1.5, 2, 100],):
                continue
            tensor = torch.tensor(values, dtype=torch.float64)
            tensor = tensor.to(dtype(name))
            put('print', name, ','.join(map(str, tensor.shape)) or '-', hexes(tensor), str(tensor).replace('\n', '|'))
    big = torch.tensor([2**64 - 1, 5, 2**63], dtype=torch.uint64)
    put('print', 'uint64', '3', hexes(big), str(big).replace('\n', '|'))
    pairs = torch.tensor([1 + 2j, 0.5 - 3j, -7.25j], dtype=torch.complex32)
    put('print', 'complex32', '3', hexes(pairs), str(pairs).replace('\n', '|'))
    for name in EIGHT:
        codes = raw(name, bytes([0, 1, 0x38, 0x7e, 0x7f, 0x80, 0xff, 0x7c]))
        put('print', name, '8', hexes(codes), str(codes).replace('\n', '|'))


def texts(tensors):
    return [word for t in tensors for word in (str(t.dtype).replace('torch.', ''),
                                               ','.join(map(str, t.shape)) or '-', hexes(t))]


def ops():
    aten = torch.ops.aten
    index = torch.tensor([2, 0, 1, 1])
    for name in NEW:
        kind = dtype(name)
        x = torch.tensor([[3.0, 0, 1], [2, 5, 0]], dtype=torch.float64).to(kind)
        y = torch.tensor([[3.0, 1, 1], [6, 4, 0]], dtype=torch.float64).to(kind)
        whole = torch.tensor([[1, 2, 3], [4, 5, 6]])
        real = torch.tensor([[1.5, 2, 3], [4, 5, 6]])
        mask = torch.tensor([[True, False, True], [False, True, False]])
        grid = torch.tensor([[2, 0, 1], [0, 0, 2]])
        zero = torch.tensor(2)
        calls = [('eq.Tensor', (x, y)), ('ne.Tensor', (x, y)), ('add.Tensor', (x, y)), ('sub.Tensor', (x, y)),
                 ('mul.Tensor', (x, y)), ('div.Tensor', (x, y)), ('add.Tensor', (x, whole)), ('add.Tensor', (x, real)),
                 ('mul.Tensor', (x, real)), ('mul.Tensor', (real, x)), ('eq.Tensor', (x, whole)), ('neg', (x,)),
                 ('abs', (x,)), ('bitwise_and.Tensor', (x, y)), ('bitwise_or.Tensor', (x, y)),
                 ('bitwise_xor.Tensor', (x, y)), ('maximum', (x, y)), ('minimum', (x, y)), ('sum', (x,)), ('prod', (x,)),
                 ('isnan', (x,)), ('isinf', (x,)), ('all', (x,)), ('any', (x,)), ('sqrt', (x,)),
                 ('addmm', (x[:, :2], x, y.t().contiguous())), ('floor', (x,)), ('cat', ([x, y],)), ('stack', ([x, y], 1)), ('cat', ([x, real],)),
                 ('cat', ([x, whole],)), ('gather', (x, 1, grid)), ('index_select', (x, 1, index)),
                 ('masked_select', (x, mask)), ('where.self', (mask, x, y)), ('where.self', (mask, x, real)),
                 ('where.self', (mask, x, whole)), ('where.self', (mask, x, zero)), ('flip', (x, [1])),
                 ('roll', (x, [1], [1])), ('repeat', (x, [2, 1])), ('constant_pad_nd', (x, [1, 1], 1)),
                 ('embedding', (x, grid.clamp(max=1))), ('clone', (x,)), ('nonzero', (x,)), ('masked_fill.Scalar', (x, mask, 1)),
                 ('index.Tensor', (x, [None, index])), ('t', (x,)), ('view', (x, [3, 2])), ('select.int', (x, 1, 1)),
                 ('slice.Tensor', (x, 1, 1)), ('sort', (x,)), ('mm', (x, y.t().contiguous())), ('cumsum', (x, 1)),
                 ('tril', (x,)), ('clamp.Tensor', (x, y)), ('count_nonzero', (x,)), ('max', (x,)), ('argmax', (x,)),
                 ('relu', (x if name != 'uint64' else y.float(),)), ('fmin', (x, y)), ('zeros_like', (x,)), ('ones_like', (x,)), ('lt.Tensor', (x, y)),
                 ('add.Scalar', (x, 1.5)), ('where.ScalarOther', (mask, x, 1))]
        calls += [('mul.Scalar', (x, 2.5))] * (name not in EIGHT)
        for op, given in calls:
            base, _, overload = op.partition('.')
            fn = getattr(getattr(aten, base), overload or 'default')
            tensors = [t for a in given for t in (a if isinstance(a, list) else [a]) if isinstance(t, torch.Tensor)]
            try:
                result = fn(*given)
                result = result if isinstance(result, tuple) else (result,)
                put('op', op, name, len(tensors), *texts(tensors), *texts(result))
            except (RuntimeError, TypeError, IndexError) as exception:
                put('op', op, name, len(tensors), *texts(tensors), error(exception))


def files():
    names = {'uint16': 'U16', 'uint32': 'U32', 'uint64': 'U64', 'float8_e4m3fn': 'F8_E4M3', 'float8_e5m2': 'F8_E5M2',
             'float8_e8m0fnu': 'F8_E8M0', 'float8_e4m3fnuz': 'F8_E4M3FNUZ', 'float8_e5m2fnuz': 'F8_E5M2FNUZ'}
    for name in NEW:
        x = torch.tensor([[1.0, 2], [3, 0.5], [100, 7]]).to(dtype(name))
        file = io.BytesIO()
        torch.save({'x': x, 'y': torch.ones(2), 'z': x[1:]}, file)
        put('file', 'checkpoint', name, file.getvalue().hex(), '3,2', hexes(x))
        if name in names:
            data = bytes.fromhex(hexes(x))
            head = json.dumps({'x': {'dtype': names[name], 'shape': [3, 2], 'data_offsets': [0, len(data)]}}).encode()
            head += b' ' * (-len(head) % 8)
            put('file', 'safetensors', name, (struct.pack('<Q', len(head)) + head + data).hex(), '3,2', hexes(x))
        if name.startswith('uint'):
            file = io.BytesIO()
            numpy.save(file, x.numpy())
            put('file', 'npy', name, file.getvalue().hex(), '3,2', hexes(x))


casts()
files()
promotions()
fills()
prints()
ops()
