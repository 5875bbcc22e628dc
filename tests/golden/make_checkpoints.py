#!/usr/bin/env python3
"""Makes checkpoints.txt: files that torch.save writes, in hexadecimal, and what they hold.

    python3 make_checkpoints.py >checkpoints.txt        made with PyTorch 2.15.0

Each file is a line `file NAME BYTES`, its bytes, then for each value a line `PATH kind value` with the text up to the
end of the line, and `end`; or `bad TEXT`: what the error has to say.
"""
import io
from collections import OrderedDict

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
}
BAD = {'module': (layer, 'torch.nn.modules.linear.Linear'), 'sparse': ({'x': torch.eye(2).to_sparse()}, '_rebuild_sparse'),
       'wide': ({'x': 2 ** 70}, 'an integer of 9 bytes'), 'function': ({'f': print}, 'print, which is not')}


def number(x):
    return x.hex() if isinstance(x, float) else str(int(x))


def show(path, x, out):
    if isinstance(x, dict):
        for k, v in x.items():
            show(path + [str(k)], v, out)
    elif isinstance(x, (list, tuple)):
        for i, v in enumerate(x):
            show(path + [str(i)], v, out)
    else:
        kind, text = 'none', ''
        if isinstance(x, torch.Tensor):
            parts = torch.view_as_real(x.detach()).flatten() if x.is_complex() else x.detach().flatten()
            kind = 'tensor'
            text = '%s [%s] %s' % (str(x.dtype)[6:], ','.join(map(str, x.shape)), ','.join(number(v) for v in parts.tolist()))
        elif isinstance(x, bool):
            kind, text = 'bool', str(int(x))
        elif isinstance(x, int):
            kind, text = 'int', str(x)
        elif isinstance(x, float):
            kind, text = 'float', x.hex()
        elif x is not None:
            kind, text = 'text', str(x).replace('torch.', '')
        out.append('%s|%s|%s' % ('/'.join(path), kind, text))


def file(name, value, **options):
    f = io.BytesIO()
    torch.save(value, f, **options)
    data = f.getvalue().hex()
    print('file %s %d' % (name, len(data) // 2))
    for i in range(0, len(data), 120):
        print(data[i:i + 120])


for kind, options in (('', {}), ('_old', {'_use_new_zipfile_serialization': False}), ('_4', {'pickle_protocol': 4})):
    for name, value in VALUES.items():
        file(name + kind, value, **options)
        out = []
        show([], value, out)
        print('\n'.join(out + ['end']))
    for name, (value, text) in BAD.items():
        file(name + kind, value, **options)
        print('bad ' + text)
