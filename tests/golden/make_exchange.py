#!/usr/bin/env python3
"""Writes exchange.txt: files of NumPy and of the safetensors package, and their contents.  Some files are bad.

    python3 make_exchange.py > exchange.txt        (made with NumPy 2.4.6, safetensors 0.8.0)

Lines:  file KIND NAME VERDICT HEX     KIND: npy, npz or safetensors.  VERDICT of the package that reads it: ok or error
        = ENTRY DTYPE SIZES STRIDES HEX   a tensor in the file: sizes and strides (2,3 or -), elements in C order
        m KEY VALUE                    metadata, in hexadecimal
        same                           this library saves these tensors with the same bytes
        ~ TEXT                         this library refuses the file; TEXT is a part of the error message
        deflate NAME HEX LENGTH CRC    a raw stream of zlib, and the length and CRC-32 of the unpacked bytes
"""
import io
import json
import struct
import sys
import warnings
import zipfile
import zlib

import numpy as np
import safetensors
from safetensors.numpy import save as st_save

warnings.simplefilter('ignore')
NAMES = {'u1': 'uint8', 'i1': 'int8', 'i2': 'int16', 'i4': 'int32', 'i8': 'int64', 'f2': 'float16', 'f4': 'float32',
         'f8': 'float64', 'c8': 'complex64', 'c16': 'complex128', 'b1': 'bool'}
out = []


def ints(v):
    return ','.join(str(int(i)) for i in v) or '-'


def values(kind, shape):
    n = int(np.prod(shape, dtype=np.int64))
    a = np.arange(n)
    if kind == 'b1':
        return (a % 3 == 1).reshape(shape)
    if kind[0] == 'c':
        return (a * 1.5 - 2 + 1j * (a * 0.25 + 7)).astype(kind).reshape(shape)
    if kind[0] == 'f':
        return (a * 1.5 - 2).astype(kind).reshape(shape)
    return (a * 37 - 3).astype(kind).reshape(shape)


def tensor(name, a):
    kind = a.dtype.kind + str(a.dtype.itemsize)
    little = np.ascontiguousarray(a).reshape(a.shape).astype(a.dtype.newbyteorder('<'))
    out.append('= %s %s %s %s %s' % (name, NAMES[kind], ints(a.shape),
                                     ints(s // a.itemsize for s in a.strides), little.tobytes().hex() or '-'))


def verdict(kind, data):
    try:
        if kind == 'safetensors':
            safetensors.deserialize(data)
        elif kind == 'npy':
            f = io.BytesIO(data)
            np.load(f)
            if f.read(1):
                return 'trailing'
        else:
            z = np.load(io.BytesIO(data))
            for name in z.files:
                z[name]
    except Exception:
        return 'error'
    return 'ok'


def file(kind, name, data, refuse=None):
    out.append('file %s %s %s %s' % (kind, name, verdict(kind, data), data.hex() or '-'))
    if refuse:
        out.append('~ ' + refuse)


# .npy ----------------------------------------------------------------------------------------------------------------

def npy(a, version=None, order=None):
    f = io.BytesIO()
    if version:
        np.lib.format.write_array(f, a, version)
    else:
        np.save(f, a)
    return f.getvalue()


for kind in NAMES:
    a = values(kind, (2, 3))
    file('npy', kind, npy(a))
    tensor('-', a)
    out.append('same')
    big = a.astype('>' + kind)
    if big.itemsize > 1:
        file('npy', 'big_' + kind, npy(big))
        tensor('-', big)
for name, shape in (('zero_dim', ()), ('one_dim', (5,)), ('empty', (0, 3)), ('empty_last', (4, 0)),
                    ('many', (1,) * 20), ('sizes', (1, 1, 7, 1, 2))):
    a = values('f4', shape)
    file('npy', name, npy(a))
    tensor('-', a)
    out.append('same')
for version in ((1, 0), (2, 0), (3, 0)):
    a = values('i4', (3,))
    file('npy', 'version_%d' % version[0], npy(a, version))
    tensor('-', a)
a = np.asfortranarray(values('f8', (2, 3, 4)))
file('npy', 'fortran', npy(a))
tensor('-', a)
a = np.asfortranarray(values('c8', (2, 3)).astype('>c8'))
file('npy', 'fortran_big', npy(a))
tensor('-', a)

for name, a, text in (
        ('structured', np.zeros(2, [('a', '<f4'), ('b', '<i4')]), 'a structured dtype'),
        ('text', np.array(['ab', 'cde']), "the dtype '<U3' is not supported"),
        ('bytes', np.array([b'ab']), "the dtype '|S2' is not supported"),
        ('longdouble', np.zeros(2, 'g'), "the dtype '<f16' is not supported"),
        ('datetime', np.zeros(2, 'M8[ns]'), "the dtype '<M8[ns]' is not supported")):
    text = text.replace("'<", "'").replace("'|", "'")
    file('npy', name, npy(a), text)
f = io.BytesIO()
np.save(f, np.array([None, {}]), allow_pickle=True)
file('npy', 'objects', f.getvalue(), 'Python objects')


def npy_by_hand(header, data=b'', version=1, length=None, pad=True):
    h = header.encode('latin-1') if isinstance(header, str) else header
    if pad:
        h += b' ' * (-(len(h) + 11) % 64) + b'\n'
    n = len(h) if length is None else length
    return b'\x93NUMPY' + bytes([version, 0]) + struct.pack('<H' if version == 1 else '<I', n) + h + data


six = bytes(range(24))
H = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
a = np.frombuffer(six, '<f4').reshape(2, 3)
for name, header in (('hand', H), ('double_quotes', H.replace("'", '"')), ('no_comma', H.replace(', }', '}')),
                     ('order', "{'shape':(2,3,),'descr':'f4','fortran_order':False}"), ('long', H.replace('3)', '3L)')),
                     ('native', H.replace('<', '='))):
    file('npy', name, npy_by_hand(header, six))
    tensor('-', a)
good = npy_by_hand(H, six)
for name, data, text in (
        ('nothing', b'', 'too few for a .npy file'),
        ('short', good[:9], '9 bytes are too few'),
        ('magic', b'\x94' + good[1:], 'not a .npy file'),
        ('version_0', good[:6] + b'\0' + good[7:], 'version 0.0'),
        ('version_4', good[:6] + b'\4' + good[7:], 'version 4.0'),
        ('version_1_1', good[:7] + b'\1' + good[8:], 'version 1.1'),
        ('no_length', npy_by_hand(H, b'', 2)[:11], 'does not end within the file'),
        ('length', npy_by_hand(H, six, 1, 60000), 'does not end within the file'),
        ('length_2', npy_by_hand(H, six, 2, 0xffffffff), 'does not end within the file'),
        ('truncated', good[:-1], 'the array has 24 bytes, but the file has 23 bytes from here on'),
        ('no_data', good[:-24], 'the array has 24 bytes, but the file has 0 bytes from here on'),
        ('trailing', good + b'x', 'the array has 24 bytes, but the file has 25 bytes from here on'),
        ('huge', npy_by_hand(H.replace('2, 3', '1000000000, 1000000'), six), 'the array has 4000000000000000 bytes'),
        ('overflow', npy_by_hand(H.replace('2, 3', '4611686018427387904, 4'), six), 'too large for any memory'),
        ('overflow_empty', npy_by_hand(H.replace('2, 3', '0, 4611686018427387904, 4'), b''), 'too large for any memory'),
        ('number', npy_by_hand(H.replace('2, 3', '99999999999999999999, 3'), six), 'the number is too large'),
        ('negative', npy_by_hand(H.replace('2, 3', '-2, 3'), six), "expected a number, not '-'"),
        ('float', npy_by_hand(H.replace('2, 3', '2.0, 3'), six), "',' or ')'"),
        ('leading', npy_by_hand(H.replace('2, 3', '02, 3'), six), 'begins with 0'),
        ('int', npy_by_hand(H.replace('(2, 3)', '(6)'), six), "',' after the only size"),
        ('list', npy_by_hand(H.replace('(2, 3)', '[2, 3]'), six), "expected '(', not '['"),
        ('dims', npy_by_hand(H.replace('2, 3', '1,' * 65 + '6'), six), 'more than 64 dimensions'),
        ('missing', npy_by_hand("{'descr': '<f4', 'shape': (2, 3), }", six), "the key 'fortran_order' is missing"),
        ('twice', npy_by_hand(H.replace('}', "'descr': '<f4'}"), six), "the key 'descr' is given twice"),
        ('extra', npy_by_hand(H.replace('}', "'x': 1}"), six), "the key 'x' is not one of"),
        ('word', npy_by_hand(H.replace('False', 'Maybe'), six), 'expected True or False'),
        ('no_dict', npy_by_hand('[1, 2]', six), "expected '{'"),
        ('open', npy_by_hand(H[:-1], six), 'the header ends here'),
        ('open_string', npy_by_hand("{'descr", six), 'a plain string'),
        ('after', npy_by_hand(H + ' x', six), "expected nothing, not 'x'"),
        ('escape', npy_by_hand(H.replace('<f4', '\\x3cf4'), six), 'a plain string'),
        ('descr', npy_by_hand(H.replace("'<f4'", '4'), six), 'expected a string'),
        ('descr_empty', npy_by_hand(H.replace('<f4', ''), six), "the dtype '' is not supported"),
        ('descr_zero', npy_by_hand(H.replace('<f4', '<f\0'), six), 'a plain string'),
        ('bool', npy_by_hand(H.replace('<f4', '|b1'), b'\1\0\2\0\0\1'), 'byte 130: a bool has the value 2')):
    file('npy', name, data, text)

# .npz ----------------------------------------------------------------------------------------------------------------


def npz(arrays, **how):
    f = io.BytesIO()
    (np.savez_compressed if how.get('compressed') else np.savez)(f, **arrays)
    return f.getvalue()


def zip_of(entries, compression=zipfile.ZIP_STORED, level=None, zip64_from=None, stream=False, comment=b''):
    f = io.BytesIO()
    target = f
    if stream:
        class Stream:
            def write(self, b):
                return f.write(b)

            def flush(self):
                pass
        target = Stream()
    was = zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT
    if zip64_from is not None:
        zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = zip64_from, 0
    with zipfile.ZipFile(target, 'w', compression, compresslevel=level) as z:
        z.comment = comment
        for name, data in entries:
            z.writestr(zipfile.ZipInfo(name), data, compression)
    zipfile.ZIP64_LIMIT, zipfile.ZIP_FILECOUNT_LIMIT = was
    return f.getvalue()


rng = np.random.default_rng(7)
mixed = {'w': values('f4', (2, 3)), 'b': values('i8', ()), 'mask': values('b1', (4,)), 'layer.0/weight': values('f8', (0, 2)),
         'grün': values('c8', (2,))}
long = {'ramp': np.arange(1500, dtype='i4') // 3, 'noise': rng.integers(0, 4, 900).astype('u1')}
for name, arrays, data in (
        ('savez', mixed, npz(mixed)), ('compressed', mixed, npz(mixed, compressed=True)),
        ('long', long, npz(long, compressed=True)), ('empty', {}, npz({}))):
    file('npz', name, data)
    for key, a in arrays.items():
        tensor(key, a)
plain = {'w': values('f4', (2, 3))}
w = npy(plain['w'])
for name, data in (('no_suffix', zip_of([('w', w)])), ('zip64', zip_of([('w.npy', w)], zip64_from=1)),
                   ('stream', zip_of([('w.npy', w)], zipfile.ZIP_DEFLATED, stream=True)),
                   ('folder', zip_of([('d/', b''), ('w.npy', w)])), ('comment', zip_of([('w.npy', w)], comment=b'hello')),
                   ('tail', zip_of([('w.npy', w)]) + b'x')):
    file('npz', name, data)
    tensor('w', plain['w'])


def patched(data, at, new):
    return data[:at] + new + data[at + len(new):]


z = zip_of([('w.npy', w)])
cd = z.index(b'PK\1\2')
eocd = z.index(b'PK\5\6')
d = zip_of([('w.npy', w)], zipfile.ZIP_DEFLATED)
dcd = d.index(b'PK\1\2')
z64 = zip_of([('w.npy', w)], zip64_from=1)
z64cd, z64end = z64.index(b'PK\1\2'), z64.index(b'PK\6\6')
two = zip_of([('v.npy', w), ('w.npy', w)])
two_cd = two.index(b'PK\1\2')
second = two.index(b'PK\1\2', two_cd + 1)
for name, data, text in (
        ('cut', z[:-1], 'ends without a directory'), ('cut_more', z[:cd], 'ends without a directory'),
        ('tiny', z[:21], 'ends without a directory'),
        ('crc', patched(z, cd - 1, b'\xff'), "entry 'w': Bad CRC-32"),
        ('crc_field', patched(z, cd + 16, b'\0\0\0\0'), 'Bad CRC-32'),
        ('encrypted', patched(z, cd + 8, b'\1\0'), 'the entry is encrypted'),
        ('method', patched(z, cd + 10, b'\14\0'), 'compressed by method 12'),
        ('local', patched(z, 0, b'PK\7\7\x14'), 'there is no header of an entry'),
        ('local_name', patched(z, 30, b'v'), 'another name'),
        ('where', patched(z, cd + 42, b'\1'), 'there is no header of an entry'),
        ('where_far', patched(z, cd + 42, b'\0\0\0\x7f'), 'is outside of the file'),
        ('size', patched(z, cd + 20, b'\xff\xff\0\0\xff\xff\0\0'), 'is outside of the file'),
        ('size_near', patched(z, cd + 20, struct.pack('<II', len(w) + 1, len(w) + 1)), 'already begins at byte'),
        ('size_other', patched(z, cd + 24, struct.pack('<I', len(w) - 1)), 'cannot be compressed'),
        ('size_less', patched(z, cd + 20, struct.pack('<II', len(w) - 1, len(w) - 1)), 'Bad CRC-32'),
        ('deflate_claims', patched(d, dcd + 24, b'\xff\xff\xff\x7f'), 'bytes cannot be compressed to'),
        ('deflate_more', patched(d, dcd + 24, struct.pack('<I', len(w) + 1)), 'the compressed data is shorter than'),
        ('deflate_less', patched(d, dcd + 24, struct.pack('<I', len(w) - 1)), 'the compressed data is longer than'),
        ('deflate_cut', patched(d, dcd + 20, struct.pack('<I', dcd - 36)), 'ends too early'),
        ('deflate_block', patched(d, 35, b'\7'), 'has an unknown type'),
        ('entries', patched(z, eocd + 8, b'\2\0\2\0'), 'is outside of the file'),
        ('entries_less', patched(two, two.index(b'PK\5\6') + 8, b'\1\0\1\0'), 'more entries than it says'),
        ('parts', patched(z, eocd + 4, b'\1'), 'has several parts'),
        ('directory', patched(z, eocd + 16, b'\xff\xff\xff\xfe'), 'is outside of the file'),
        ('directory_size', patched(z, eocd + 12, b'\1\0\0\0'), 'is outside of the file'),
        ('directory_sig', patched(z, cd, b'PK\3\3'), 'expected an entry of the directory'),
        ('name_long', patched(z, cd + 28, b'\xff\xff'), 'longer than the directory'),
        ('name_zero', patched(patched(z, cd + 46, b'\0'), 30, b'\0'), 'a zero byte'),
        ('twice', zip_of([('w.npy', w), ('w.npy', w)]), 'two entries have this name'),
        ('twice_stripped', zip_of([('w.npy', w), ('w', w)]), 'two entries have this name'),
        ('overlap', patched(two, second + 42, b'\0\0\0\0').replace(b'w.npy', b'v.npy'), 'other data reaches to'),
        ('zip64_where', patched(z64, z64.index(b'PK\6\7') + 8, b'\1'), "zip64's end of the directory"),
        ('zip64_far', patched(z64, z64.index(b'PK\6\7') + 8, b'\xff' * 8), "zip64's end of the directory"),
        ('zip64_entries', patched(z64, z64end + 24, b'\xff' * 16), 'is outside of the file'),
        ('zip64_short', patched(z64, z64cd + 46 + 5 + 2, b'\4\0'), 'the zip64 field is too short'),
        ('extra_long', patched(z64, z64cd + 46 + 5 + 2, b'\xff\0'), 'an extra field is longer'),
        ('not_npy', zip_of([('readme.txt', b'hello, world')]), "entry 'readme.txt', byte 0: this is not a .npy file"),
        ('bad_npy', zip_of([('w.npy', w[:-1])]), "entry 'w', byte 128: the array has 24 bytes"),
        ('npy', w, 'read it with opd_npy_load')):
    file('npz', name, data, text)

# safetensors ---------------------------------------------------------------------------------------------------------

every = {k: values(k, (2, 3)) for k in NAMES if k not in ('c16',)}
for name, arrays, meta in (
        ('every', every, None), ('metadata', {'w': values('f4', (2, 3))}, {'format': 'pt'}),
        ('escapes', {'w': values('f4', (2,))}, {'a"b\\c\n\t\x01/é': 'x\u20ac\U0001f600\x7f'}),
        ('names', {'é': values('f4', (1,)), 'a"b\\': values('f4', (1,)), 'x\ny': values('f4', (1,))}, None),
        ('shapes', {'e': values('f4', (0, 3)), 's': values('f8', ()), 'd': values('u1', (5,)), 'c': values('f2', (3,))}, None),
        ('none', {}, None)):
    data = st_save(arrays, meta)
    file('safetensors', name, data)
    n = struct.unpack('<Q', data[:8])[0]
    for key in json.loads(data[8:8 + n]):
        if key != '__metadata__':
            out.append(None)
            tensor('-', arrays[key])
            line = out.pop().split(' ', 2)
            out[-1] = '= %s %s' % ('x' + key.encode().hex(), line[2])
    for key, value in (meta or {}).items():
        out.append('m %s %s' % (key.encode().hex(), value.encode().hex()))
    out.append('same')


def st(header, data=b'', length=None):
    h = header if isinstance(header, bytes) else header.encode()
    return struct.pack('<Q', len(h) if length is None else length) + h + data


ONE = '"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}'
one = np.array([7, 9], 'u1')
for name, header in (
        ('spaces', '{ "a" : { "shape" : [ 2 ] ,\t"data_offsets":[0,\n2],\r"dtype":"U8" } }   '),
        ('escaped', '{"\\u0061":{"dtype":"\\u00558","shape":[2],"data_offsets":[0,2]}}'),
        ('escaped_pairs', '{"\\ud83d\\ude00\\u00e9\\u20AC\\/\\b":' + ONE[4:] + '}'),
        ('metadata_last', '{' + ONE + ',"__metadata__":{}}'),
        ('zero_sizes', '{"z":{"dtype":"F32","shape":[0],"data_offsets":[2,2]},' + ONE + '}')):
    file('safetensors', name, st(header, b'\7\11'))
    if name == 'zero_sizes':
        tensor('z', np.zeros(0, 'f4'))
    tensor('x' + '\U0001f600\u00e9\u20ac/\b'.encode().hex() if name == 'escaped_pairs' else 'a', one)
OTHERS = ('1', '-1.5e+3', '"\\u20ac\\""', 'true', 'false', 'null', '[]', '{}', '[1,[2,{"data_offsets":[0,1]}],"x"]', '{"dtype":{"a":[null]}}')
for i, other in enumerate(OTHERS):
    file('safetensors', 'key_%d' % i, st('{"a":{"dtype":"U8","x":%s,"shape":[2],"y":0,"y":%s,"data_offsets":[0,2],"z":%s}}' % (other, other, other),
                                         b'\7\11'))
    tensor('a', one)
file('safetensors', 'metadata_null', st('{"__metadata__":null,"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}', b'\7\11'))
tensor('a', one)
file('safetensors', 'unaligned', st('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                                    '"b":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}}', b'\7' + six[4:12]))
tensor('a', one[:1])
tensor('b', np.frombuffer(six[4:12], '<f4'))
DEEP = ','.join(['1'] * 65)
for name, header, data, text in (
        ('no_file', None, b'', 'too few for a file of tensors'), ('seven', None, b'\0' * 7, 'too few'),
        ('eight', None, b'\0' * 8, 'too few'), ('zero', None, b'\0' * 9, "begins with the byte \\x00, not with '{'"),
        ('length', None, struct.pack('<Q', 50) + b'{}', 'would have 50 bytes of 2'),
        ('length_huge', None, b'\xff' * 8 + b'{}', 'would have 18446744073709551615 bytes of at most 100000000'),
        ('length_most', None, struct.pack('<Q', 100000001) + b'{}', 'of at most 100000000'),
        ('space_first', ' {}', b'', "the header begins with ' ', not with '{'"),
        ('list', '[]', b'', "the header begins with '[', not with '{'"),
        ('open', '{', b'', 'the header ends here'), ('open_name', '{"a', b'', 'the header ends here'),
        ('after', '{}x', b'', 'nothing after'), ('after_zero', '{}\0', b'', 'nothing after'),
        ('comma', '{' + ONE + ',}', b'12', "expected '\"', not '}'"), ('no_comma', '{' + ONE + ' "b"', b'12', "',' or '}'"),
        ('colon', '{"a" {}}', b'', "expected ':'"), ('value', '{"a":1}', b'', "expected '{', not '1'"),
        ('trailing', '{' + ONE + '}', b'123', 'the data of the tensors ends here, and the file only at byte'),
        ('short', '{' + ONE + '}', b'1', 'are outside of the data, which has 1 bytes'),
        ('nothing_said', '{}', b'1', 'the data of the tensors ends here'),
        ('hole', '{' + ONE.replace('[0,2]', '[1,3]') + '}', b'123', 'the data before it ends at byte'),
        ('hole_between', '{' + ONE + ',' + ONE.replace('[0,2]', '[3,5]').replace('"a"', '"b"') + '}', b'12345', 'the data before it ends at byte'),
        ('overlap', '{' + ONE + ',' + ONE.replace('[0,2]', '[1,3]').replace('"a"', '"b"') + '}', b'123', 'other data reaches to'),
        ('backwards', '{' + ONE.replace('[0,2]', '[2,0]') + '}', b'12', 'are outside of the data'),
        ('size', '{' + ONE.replace('[2]', '[3]') + '}', b'12', 'data_offsets [0, 2] give 2 bytes, but dtype and shape give 3'),
        ('far', '{' + ONE.replace('[0,2]', '[0,9223372036854775807]') + '}', b'12', 'are outside of the data'),
        ('too_far', '{' + ONE.replace('[0,2]', '[0,18446744073709551616]') + '}', b'12', 'the number is too large'),
        ('overflow', '{' + ONE.replace('[2]', '[4294967296,4294967296,4294967296]') + '}', b'12', 'too large for any memory'),
        ('negative', '{' + ONE.replace('[2]', '[-2]') + '}', b'12', 'expected a number'),
        ('float', '{' + ONE.replace('[2]', '[2.0]') + '}', b'12', "',' or ']'"),
        ('exponent', '{' + ONE.replace('[2]', '[2e0]') + '}', b'12', "',' or ']'"),
        ('leading', '{' + ONE.replace('[2]', '[02]') + '}', b'12', 'begins with 0'),
        ('offsets', '{' + ONE.replace('[0,2]', '[0]') + '}', b'12', 'data_offsets must be two numbers, not 1'),
        ('offsets_3', '{' + ONE.replace('[0,2]', '[0,2,2]') + '}', b'12', 'more than 2 numbers'),
        ('dims', '{' + ONE.replace('[2]', '[2,' + DEEP + ']') + '}', b'12', 'more than 64 numbers'),
        ('dtype', '{' + ONE.replace('U8', 'U9') + '}', b'12', "'U9' is not a dtype"),
        ('dtype_there', '{' + ONE.replace('U8', 'F4').replace('[2]', '[4]') + '}', b'12', 'the dtype F4 is not supported'),
        ('bits', '{' + ONE.replace('U8', 'F4') + '}', b'1', 'are outside of the data'),
        ('bits_odd', '{' + ONE.replace('U8', 'F4').replace('[2]', '[3]') + '}', b'12', 'do not fill whole bytes'),
        ('missing', '{"a":{"dtype":"U8","shape":[2]}}', b'12', "the key 'data_offsets' is missing"),
        ('empty_object', '{"a":{}}', b'12', "the key 'dtype' is missing"),
        ('key_twice', '{' + ONE.replace('"shape"', '"dtype":"U8","shape"') + '}', b'12', "the key 'dtype' is given twice"),
        ('key_open', '{' + ONE.replace('"shape"', '"x":[1,"shape"') + '}', b'12', "expected ',' or ']'"),
        ('key_value', '{' + ONE.replace('"shape"', '"x":nul,"shape"') + '}', b'12', 'expected a value'),
        ('key_number', '{' + ONE.replace('"shape"', '"x":01,"shape"') + '}', b'12', 'begins with 0'),
        ('key_deep', '{' + ONE.replace('"shape"', '"x":' + '[' * 600 + ']' * 600 + ',"shape"') + '}', b'12', 'more than 500 deep'),
        ('twice', '{' + ONE + ',' + ONE.replace('[0,2]', '[2,4]') + '}', b'1234', 'two entries have this name'),
        ('metadata_twice', '{"__metadata__":{"a":"b"},"__metadata__":{"c":"d"}}', b'', 'is given twice'),
        ('metadata_key', '{"__metadata__":{"a":"b","a":"c"}}', b'', "the key 'a' twice"),
        ('metadata_list', '{"__metadata__":["a"]}', b'', "expected '{', not '['"),
        ('metadata_number', '{"__metadata__":{"a":1}}', b'', "expected '\"', not '1'"),
        ('metadata_word', '{"__metadata__":nul}', b'', "expected '{', not 'n'"),
        ('utf8', b'{"\xff":1}', b'', 'is not UTF-8'), ('utf8_cut', b'{"\xe2\x82', b'', 'is not UTF-8'),
        ('utf8_long', b'{"\xc0\x80":1}', b'', 'is not UTF-8'), ('utf8_half', b'{"\xed\xa0\x80":1}', b'', 'is not UTF-8'),
        ('control', '{"a\nb":1}', b'', 'a control character'), ('escape', '{"\\x":1}', b'', 'an escape that JSON does not have'),
        ('hex', '{"\\u12":1}', b'', 'four hexadecimal digits'), ('half', '{"\\ud800":1}', b'', 'half a surrogate pair'),
        ('half_low', '{"\\udc00":1}', b'', 'half a surrogate pair'), ('half_two', '{"\\ud800\\u0041":1}', b'', 'half a surrogate'),
        ('name_zero', '{"a\\u0000":1}', b'', 'a zero byte'), ('escape_end', '{"\\', b'', 'an escape'),
        ('bool', '{' + ONE.replace('U8', 'BOOL') + '}', b'\1\2', 'a bool has the value 2')):
    file('safetensors', name, data if header is None else st(header, data), text)

# raw deflate ---------------------------------------------------------------------------------------------------------

text = (b'the quick brown fox jumps over the lazy dog; ' * 40 + bytes(range(256))) * 2
for name, data in (('text', text), ('nothing', b''), ('byte', b'a'), ('run', b'a' * 70000), ('random', rng.bytes(300)),
                   ('far', rng.bytes(40) + b'\0' * 32700 + b'xyz' * 30)):
    for how, level, strategy in (('stored', 0, 0), ('fast', 1, 0), ('best', 9, 0), ('fixed', 9, 4), ('huffman', 9, 2),
                                 ('rle', 9, 3)):
        c = zlib.compressobj(level, zlib.DEFLATED, -15, 9, strategy)
        packed = c.compress(data) + c.flush()
        if len(packed) < 1500:
            out.append('deflate %s_%s %s %d %08x' % (name, how, packed.hex(), len(data), zlib.crc32(data)))
for line in out:
    sys.stdout.buffer.write(line.encode() + b'\n')
