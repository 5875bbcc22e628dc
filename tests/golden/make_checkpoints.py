#!/usr/bin/env python3
"""Makes checkpoints.txt: files written by torch.save, in hexadecimal, and the values in them.

    python3 make_checkpoints.py >checkpoints.txt        made with PyTorch 2.15.0

Each file has a line `file NAME BYTES` and its bytes.  For each value follows a line `PATH kind value` (the value is the
rest of the line), and then the line `end`.  A bad file has instead the line `bad TEXT`: TEXT must be a part of the
error message.  The kind strange is an entry that cannot be read, with its error message.
"""
import argparse
import datetime
import decimal
import enum
import functools
import io
import pathlib
import pickle
import struct
import zipfile
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple

import numpy as np
import torch

base = torch.arange(24, dtype=torch.float32)
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16, torch.int8,
          torch.uint8, torch.bool, torch.complex64, torch.complex128]
layer = torch.nn.Linear(2, 3)
with torch.no_grad():
    layer.weight.copy_(torch.arange(6.).view(3, 2))
    layer.bias.copy_(torch.arange(3.))
optimizer = torch.optim.SGD(layer.parameters(), lr=0.125, momentum=0.5)
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()

VALUES = {
    'nested': {'a': [1, 2.5, True, None, 'h\u00e9llo', (3, {'k': base[:2]})], 'big': 2 ** 40, 'neg': -7, 'low': -2 ** 62,
               1: False, 'nothing': {}, 'none of it': [], 'size': torch.Size([2, 3]), 'dtype': torch.float16,
               'device': torch.device('cpu'), 'inf': float('inf'), 'ordered': OrderedDict([('x', 1), ('y', 2)])},
    'types': {str(d)[6:]: torch.tensor([0, 1, 1]).to(d) for d in DTYPES},
    'views': {'base': base, 'turned': base.view(4, 6).t(), 'part': base[3:9], 'last': base.view(1, 2, 3, 4)
              .to(memory_format=torch.channels_last), 'wide': base[5:6].expand(2, 3), 'empty': torch.zeros(0, 3),
              'scalar': torch.tensor(7)},
    'training': {'model': layer.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': 3},
    'one': torch.arange(5),
    'parameter': {'p': torch.nn.Parameter(base[:3])},
    'other': {'set': {3}, 'count': Counter('aab'), 'complex': 1.5 - 2j, 'gpu': torch.device('cuda', 1), 'ascii': b'abc'},
    'strange': {'sparse': torch.eye(2).to_sparse(), 'meta': torch.empty(2, device='meta'), 'next': 7,
                'lazy': torch.tensor([1 + 2j, 3 - 4j]).conj(), 'minus': torch.arange(3.)._neg_view(),
                'both': torch.tensor([1 + 2j, 3j]).conj().imag, 'twice': torch.tensor([1 + 2j, 3j]).conj()._neg_view(),
                'quantized': torch.quantize_per_tensor(torch.ones(2), 0.1, 3, torch.quint8), 'bytes': b'\xff'},
    'wide': {'x': 2 ** 70},
    'keys': {None: 1, True: 2, 1.5: 3, (1, 2): 4, ("it's", ('a', None), 1e22): 5, 'a\0b': 6, -0.0: 7, 1e-5: 8, 123456.75: 9, (): 10,
             ('\n',): 11, '': {'x': 12}, float('inf'): 13, torch.float32: 14, 1e16: 15, 0.1: 16, (1e100, -2): 17},
    'lists': {'long': list(range(120)), 'mixed': (1, 2.5, None, True, 5, 6, 7, -8), 'seven': [1] * 7, 'texts': [1] * 8 + ['x'],
              '0': {'11': [0.25] * 12}, 'next': 3},
    'top': list(range(12)),
    'numpy': {'best': np.float64(0.1), 'f4': np.float32(1.5), 'f2': np.float16(-0.25), 'i8': np.int64(-2 ** 62), 'i2': np.int16(-300),
              'u8': np.uint64(7), 'i1': np.int8(-1), 'yes': np.bool_(True), 'c16': np.complex128(1 - 2j), 'c8': np.complex64(3j),
              'nan': np.float64('inf'), 'most': np.uint64(2 ** 64 - 1), 'array': np.arange(3), 'word': np.str_('abc'),
              'day': np.datetime64('2020-01-01'), 'far': np.array([2.5], '>f8').view(np.dtype('>f8'))[0],
              'counts': defaultdict(list, a=[1]), 'ints': defaultdict(int, b=2), 'range': range(2, 7), 'slice': slice(1, None),
              'type': float, 'next': 7},
}
weight = torch.nn.Parameter(torch.arange(6.).view(2, 3))
VALUES['tied'] = {k: t.detach() for k, t in (('embed', weight), ('head', weight), ('part', weight[0]), ('flat', weight.view(6)))}
VALUES['tied_parameters'] = {'embed': weight, 'head': weight, 'again': torch.nn.Parameter(weight.detach()), 'still': weight.detach(),
                             'other': weight.detach()}
VALUES['other']['marked'] = torch.nn.Parameter(base[:3])
VALUES['other']['marked'].mark = 'x'
VALUES['strange'].update((t, torch.zeros(2).to(getattr(torch, t))) for t in ('uint16', 'uint64', 'float8_e5m2', 'complex32'))


class Color(enum.Enum):
    RED = 1


class Settings(dict):
    pass


class Steps(list):
    pass


class Slots:
    __slots__ = ('a',)

    def __init__(self):
        self.a = 1


class Keywords:
    def __new__(cls, *, x):
        return object.__new__(cls)

    def __getnewargs_ex__(self):
        return (), {'x': 1}


class OldStyle:
    def __reduce_ex__(self, protocol):
        return super().__reduce_ex__(1)


class Marked(torch.Tensor):
    pass


class MarkedParameter(torch.nn.Parameter):
    pass


Point = namedtuple('Point', 'x y')
pair = []
pair.append(Slots())
pair[0].a = pair
# An object of an unknown class or function becomes an entry of the kind strange; the other values are read.
VALUES['foreign'] = {
    'args': argparse.Namespace(lr=0.1), 'w': base[:2], 'date': datetime.datetime(2020, 1, 2), 'path': pathlib.PurePosixPath('/a/b'),
    'color': Color.RED, 'settings': Settings(a=1, b=[2]), 'steps': Steps([1, 2, 3]), 'slots': Slots(), 'keywords': Keywords(x=1),
    'old': OldStyle(), 'deque': deque([1, 2]), 'partial': functools.partial(print, 1), 'decimal': decimal.Decimal('1.5'), 'point': Point(1, 2),
    'class': argparse.Namespace, 'print': print, 'list': [1, argparse.Namespace(a=1), base[2:4]],
    'factory': defaultdict(Settings, k=3), 'marked': base[:3].clone().as_subclass(Marked), 'parameter': MarkedParameter(base[:1].clone()),
    'colors': {Color.RED: 1, Settings: 2}, 'loop': pair, 'holding': argparse.Namespace(t=base), 'module': layer, 'next': 7}
FOREIGN = {'args': '<argparse.Namespace>', 'date': '<datetime.datetime>', 'path': '<pathlib.PurePosixPath>', 'color': '<__main__.Color>',
           'settings': '<__main__.Settings>', 'steps': '<__main__.Steps>', 'slots': '<__main__.Slots>', 'keywords': 'which is not one of',
           'old': '<__main__.OldStyle>', 'deque': '<collections.deque>', 'partial': '<functools.partial>',
           'decimal': '<decimal.Decimal>', 'point': '<__main__.Point>', 'class': "<class 'argparse.Namespace'>", 'print': 'print',
           'list/1': '<argparse.Namespace>', 'loop/0': '<__main__.Slots>', 'holding': 'it contains tensors'}
STRANGE = {'sparse': '_rebuild_sparse_tensor, which cannot be read', 'meta': '_rebuild_meta_tensor_no_storage, which',
           'quantized': '_rebuild_qtensor, which cannot be read',
           'bytes': '_codecs.encode, which', 'array': 'an array of NumPy',
           'most': 'more than 64 bits', 'word': 'multiarray.scalar, which cannot be read', 'day': 'multiarray.scalar, which cannot be read'}
VALUES['settings'] = {'args': argparse.Namespace(lr=0.1), 'model': {'w': torch.ones(2), 'b': torch.zeros(1)}, 'ema': torch.ones(3)}
STRANGE['settings/args'] = '<argparse.Namespace>, which is not one of the classes and functions that can be read: the other'
VALUES.update(module=layer, function={'f': print}, layer={'m': 1, 'l': torch.nn.ReLU()},
              network={'m': 1, 'l': torch.nn.Sequential(layer, torch.nn.ReLU())})
STRANGE.update({'foreign/' + k: v for k, v in FOREIGN.items()})
STRANGE['function/f'] = 'print'


def show_module(path, prefix, module, out, name):
    """Shows the parts of a module that was saved as a whole: parameters, buffers and modules by the names of its state_dict."""
    for key, value in module.__dict__.items():
        inner = key in ('_parameters', '_buffers', '_modules')
        for k, v in (value if inner else {key: value}).items():
            if isinstance(v, torch.nn.Module):
                show_module(path, prefix + k + '.', v, out, name)
            else:
                show(path + [prefix + k], v, out, name)


def number(x):
    return x.hex() if isinstance(x, float) else str(int(x))


def show(path, x, out, name=''):
    if '%s/%s' % (name, '/'.join(path)) in STRANGE:
        out.append('%s|strange|%s' % ('/'.join(path), STRANGE['%s/%s' % (name, '/'.join(path))]))
    elif isinstance(x, dict):
        for k, v in x.items():
            k = "<__main__.Color>" if isinstance(k, enum.Enum) else str(k).replace('\0', '\\x00')
            show(path + [k], v, out, name)
    elif isinstance(x, (list, tuple, set)):
        for i, v in enumerate(x):
            show(path + [str(i)], v, out, name)
    elif isinstance(x, torch.nn.Module):
        show_module(path, '', x, out, name)
    else:
        kind, text = 'none', ''
        x = x.item() if isinstance(x, np.generic) else x
        if path[-1:] and path[-1] in STRANGE:
            kind, text = 'strange', STRANGE[path[-1]]
        elif isinstance(x, torch.Tensor):
            parts = torch.view_as_real(x.detach().resolve_conj().resolve_neg()).flatten() if x.is_complex() else x.detach().flatten()
            kind = 'tensor'
            text = '%s [%s] %s' % (str(x.dtype)[6:], ','.join(map(str, x.shape)), ','.join(number(v) for v in parts.tolist()))
        elif isinstance(x, bool):
            kind, text = 'bool', str(int(x))
        elif isinstance(x, int) and x.bit_length() > 63:
            kind, text = 'strange', 'the integer has more than 64 bits'
        elif isinstance(x, int):
            kind, text = 'int', str(x)
        elif isinstance(x, float):
            kind, text = 'float', x.hex()
        elif isinstance(x, complex):
            kind, text = 'complex', '%s,%s' % (x.real.hex(), x.imag.hex())
        elif x is not None:
            kind, text = 'text', x.decode() if isinstance(x, bytes) else x.__name__ if x is float else str(x).replace('torch.', '')
        out.append('%s|%s|%s' % ('/'.join(path), kind, text))


def file(name, value, **options):
    f = io.BytesIO()
    torch.save(value, f, **options)
    put(name, f.getvalue())


def put(name, data):
    data = data.hex()
    print('file %s %d' % (name, len(data) // 2))
    for i in range(0, len(data), 120):
        print(data[i:i + 120])


for kind, options in (('', {}), ('_old', {'_use_new_zipfile_serialization': False}), ('_4', {'pickle_protocol': 4})):
    for name, value in VALUES.items():
        if kind == '_old' and name == 'numpy' or kind and name in ('strange', 'other'):
            continue
        file(name + kind, value, **options)
        out = []
        show([], value, out, name)
        print('\n'.join(out + ['end']))


# A checkpoint of a training after three steps.  'after' has the parameters after three more steps on x.
def go_on(name, make):
    torch.manual_seed(0)
    net = torch.nn.Sequential(OrderedDict([('one', torch.nn.Linear(3, 4)), ('two', torch.nn.Linear(4, 2))]))
    optimizer, x = make(net), torch.randn(5, 3)
    for step in range(6):
        if step == 3:
            saved = {k: {n: t.clone() for n, t in net.state_dict().items()} for k in ('model',)}
            f = io.BytesIO()
            torch.save(optimizer.state_dict(), f)
            saved.update(optimizer=torch.load(io.BytesIO(f.getvalue())), x=x)
        optimizer.zero_grad()
        torch.tanh(net.two(torch.tanh(net.one(x)))).square().sum().backward()
        optimizer.step()
    saved['after'] = net.state_dict()
    file(name, saved)
    out = []
    show([], saved, out)
    print('\n'.join(out + ['end']))


go_on('go_on_SGD', lambda net: torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, dampening=0.25, weight_decay=0.01))
go_on('go_on_SGD_plain', lambda net: torch.optim.SGD(net.parameters(), lr=0.1))
go_on('go_on_Adam', lambda net: torch.optim.Adam(net.parameters(), lr=0.05, betas=(0.8, 0.99), amsgrad=True))
go_on('go_on_AdamW', lambda net: torch.optim.AdamW([{'params': net.two.parameters(), 'lr': 0.01},
                                                    {'params': net.one.parameters(), 'weight_decay': 0.5}], lr=0.05))

# Files that torch.save does not write.
def packed(entries, method=zipfile.ZIP_STORED):
    f = io.BytesIO()
    with zipfile.ZipFile(f, 'w', method) as z:
        for name, data in entries.items():
            z.writestr(zipfile.ZipInfo('archive/' + name), data, method)
    return f.getvalue()


def entries_of(value):
    f = io.BytesIO()
    torch.save(value, f)
    z = zipfile.ZipFile(f)
    return OrderedDict((n.split('/', 1)[1], z.read(n)) for n in z.namelist())


def turned(data, width):
    return b''.join(data[i:i + width][::-1] for i in range(0, len(data), width))


big = {'f': base[:3], 'h': base[:3].half(), 'l': torch.tensor([1, -2]), 'c': torch.tensor([1 + 2j, 3 - 4j]), 'u': base[:4].byte(),
       'b': torch.tensor([True, False])}
entries = entries_of(big)
entries['byteorder'] = b'big'
for i, width in enumerate([4, 2, 8, 4, 1, 1]):
    entries['data/%d' % i] = turned(entries['data/%d' % i], width)
data = packed(entries)
for k, v in torch.load(io.BytesIO(data), weights_only=True).items():
    assert torch.equal(v, big[k]) or k == 'c'
put('big', data)
out = []
show([], big, out)
print('\n'.join(out + ['end']))
put('numpy_1', packed(OrderedDict((k, v.replace(b'numpy._core', b'numpy.core')) for k, v in entries_of(VALUES['numpy']).items())))
numbers = []
show([], VALUES['numpy'], numbers)
print('\n'.join(numbers + ['end']))
put('behind', packed(entries_of(3)) + b'and more' * 20)
print('|int|3\nend')
put('packed', packed(entries_of(big), zipfile.ZIP_DEFLATED))
print('\n'.join(out + ['end']))
packed_up = entries_of({'..': {'..': {'etc': 1}}})
put('up', packed(packed_up))
print('../../etc|int|1\nend')
del packed_up['data.pkl']


def bad(name, entries, text, change=None, method=zipfile.ZIP_STORED):
    data = packed(entries, method)
    put(name, change(data) if change else data)
    print('bad ' + text)


def pickled(x):
    return {'data.pkl': pickle.dumps(x, 2)}


loop = []
loop.append(loop)
deep = 1
for i in range(150):
    deep = [deep]
wide = [1] * 4
for i in range(20):
    wide = [wide] * 4
long, key = {'x': 1}, 'y' * 5000
for i in range(90):
    long = {key: long, 'z': long}
bad('loop', pickled({'x': loop}), 'nested more than 100 deep')
bad('deep', pickled(deep), 'nested more than 100 deep')
bad('wide', pickled(wide), 'makes too many objects')
bad('long', pickled(long), 'makes too many objects')
bad('memo', {'data.pkl': b'\x80\x02]r' + struct.pack('<I', 1 << 30) + b'.'}, 'the memo would have 1073741824 entries after')
bad('blank', {'data.pkl': b''}, 'the pickle ends within an opcode')
bad('bomb', {'data.pkl': b'\x80\x02](' + b'N' * 500000 + b'e.'}, 'bytes cannot be compressed to', method=zipfile.ZIP_DEFLATED)
bad('order', dict(entries_of(base), byteorder=b'middle'), 'the byte order is neither')
one = entries_of(base[:6].clone())
bad('short', dict(one, **{'data/0': one['data/0'][:-1]}), 'reaches beyond its storage of 6 elements in 23 bytes')
bad('longer', dict(one, **{'data/0': one['data/0'] + bytes(4)}), "the tensor '' has a storage of 6 elements, but the storage has 28 bytes")
bad('far_longer', dict(one, **{'data/0': one['data/0'] + bytes(100000)}), 'but the storage has 100024 bytes', method=zipfile.ZIP_DEFLATED)
bad('negative', dict(one, **{'data.pkl': one['data.pkl'].replace(b'QK\x00', b'QJ\xff\xff\xff\xff')}), 'reaches beyond')
bad('none', {'data.pkl': one['data.pkl']}, "the storage 'archive/data/0' is not in the file")
bad('class', dict(one, **{'data.pkl': one['data.pkl'].replace(b'ctorch\nFloatStorage', b'ctorch\nSize')}),
    'a storage has the class torch.Size, which is not a class')
bad('script', {'data.pkl': b'\x80\x02c__torch__.M\nNet\n)\x81.'}, 'this is a TorchScript program')


def one_in_another(data):
    """Makes the entry 'archive/data/0' so long that it contains the header and the bytes of 'archive/data/1'."""
    at = data.index(b'PK\x01\x02')
    first = bytearray(data)
    struct.pack_into('<II', first, at + 20, 100, 100)
    return bytes(first)


bad('overlap', OrderedDict([('data/0', one['data/0']), ('data/1', one['data/0']), ('data.pkl', one['data.pkl'])]),
    'other data reaches to byte', one_in_another)
