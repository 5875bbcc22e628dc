#!/usr/bin/env python3
"""Writes script_names.json and scripts/functional.pt: which of PyTorch's names torch.jit.script accepts, and the
results of their calls.

usage: python3 tests/golden/make_script_names.py > tests/golden/script_names.json        (needs torch 2.15; minutes)

The names are those of torch, torch.nn.functional, torch.functional, torch.linalg, torch.fft, torch.special,
torch.nn.init and math, the methods and properties of Tensor, and torch.autograd.grad, if some call of the name compiles
from source.

- Each function is called with its required arguments only.  A function that is written in Python is also called with
  each other parameter by its name.
- The arguments are chosen from a few tensors and numbers until the call runs.  If no choice runs, the case has "runs":
  false.  If the result is random, it has "chance": true, and the test compares only dtypes and sizes.
- functional.pt is saved by torch.jit.save.  It has a method for each function of torch.nn.functional and
  torch.functional that is written in Python.
"""
import inspect
import io
import itertools
import json
import math
import os
import re
import select
import signal
import sys
import warnings
import zipfile

import torch
import torch.nn.functional as F
from torch._jit_internal import boolean_dispatched
from torch.jit import _builtins

warnings.filterwarnings('ignore')
torch.set_num_threads(1)


def tensor(sizes, start, step, dtype=torch.float32):
    n = math.prod(sizes)
    return (torch.arange(n, dtype=torch.float64) * step + start).remainder(1.75).sub(.5).to(dtype).reshape(sizes)


POOL = {
    'f23': tensor([2, 3], .75, .375), 'p23': tensor([2, 3], .75, .375).abs() * .75 + .0625,
    'f33': tensor([3, 3], .25, .625) + torch.eye(3) * 2, 'f4': tensor([4], .75, .5), 'f3': tensor([3], .625, .4375),
    'f': torch.tensor(.75), 'f5': tensor([5], .125, .3125), 'f1': torch.tensor([.5]),
    's33': torch.tensor([[2., .5, .25], [.5, 3., .125], [.25, .125, 1.5]]),
    'f93': tensor([9, 3], .125, .40625), 'p6': tensor([6], .75, .375).abs() + .25,
    'f8': tensor([8], .25, .40625), 'f124': tensor([1, 2, 4], .25, .34375), 'f134': tensor([1, 3, 4], .5, .3125),
    'f233': tensor([2, 3, 3], .25, .28125), 'f1244': tensor([1, 2, 4, 4], .5, .21875),
    'f2233': tensor([2, 2, 3, 3], .625, .34375), 'f12444': tensor([1, 2, 4, 4, 4], .5, .21875),
    'f22': tensor([2, 2], .375, .40625), 'f12': tensor([12, 3], .375, .1875), 'f2': tensor([2], .5, .625),
    'h': tensor([1, 3, 3], .25, .40625), 'g': tensor([2, 1], .75, .5), 'f16': tensor([40], .25, .21875), 'd23': tensor([2, 3], .75, .375, torch.float64),
    'i3': torch.tensor([1, 0, 2]), 'i23': torch.tensor([[1, 0, 2], [2, 1, 1]]), 'i': torch.tensor(2),
    'i2': torch.tensor([0, 2]), 'o2': torch.tensor([0, 3]), 'i1': torch.tensor([2]), 'i22': torch.tensor([[0, 1], [1, 0]]),
    'j3': torch.tensor([3, 2, 1], dtype=torch.int32), 'b23': torch.tensor([[True, False, True], [False, True, True]]),
    'b3': torch.tensor([True, False, True]), 'b33': torch.eye(3) > 0,
    'c23': torch.complex(tensor([2, 3], .75, .375), tensor([2, 3], .25, .4375)),
    'c33': torch.complex(tensor([3, 3], .75, .375), tensor([3, 3], .25, .4375)),
    'c95': torch.complex(tensor([3, 6], .75, .375), tensor([3, 6], .25, .4375)),
    'c3': torch.complex(tensor([3], .75, .375), tensor([3], .25, .4375)),
}
FLOATS = [k for k in POOL if k[0] in 'fps']
FIRST = ['f23', 'p23', 'f33', 's33', 'f4', 'i23', 'b23', 'f', 'f1244', 'f124', 'i3', 'c33', 'c23', 'f12444', 'f233', 'f3', 'i22',
         'f134', 'f2', 'f22', 'c95', 'd23', 'f1', 'f12', 'i', 'f16', 'b33', 'f2233', 'c3', 'i1', 'i2', 'b3', 'j3', 'f8']
VALUES = {
    'Tensor': FIRST, 'Optional[Tensor]': [None] + FIRST[:12], 'List[Tensor]': [['f23', 'f23'], ['f33', 'f33'], ['f4', 'f4'], ['i23', 'i23'],
                                                                     ['f4'], ['f124', 'f124'], ['f1244'], ['i3', 'i3'], ['f', 'f']],
    'List[Optional[Tensor]]': [['i2'], ['i1'], ['b23']], 'int': [1, 2, 0, 3, 4, -1, 6], 'float': [.5, 1., 2., .25, 3.], 'bool': [False, True],
    'number': [2, .5, 1, 0], 'complex': [1j],
    'List[int]': [[1], [2, 3], [0], [2], [2, 2], [1, 1], [3], [0, 1], [3, 2], [4, 4], [1, 1, 1], [2, 2, 2], [0, 0], [1, 2], [6], [0, 0, 0], [1, 0],
                  [4], [1, 2, 4, 4], [4, 4, 4], []],
    'List[float]': [[.5], [1., 2.], [2., 2.], []], 'List[bool]': [[True, True], [True], [True, True, True], [False]],
    'str': ['none', 'mean', 'reflect', 'constant', 'sum', 'nearest', 'bilinear', 'right', 'ij', 'fro', 'i,i->i', 'ij,ij->ij', 'ij->ji', '', 'cpu',
            'linear', 'tanh', 'reduced', 'xyz', 'max', 'trunc'],
    'Device': [torch.device('cpu')],
}
TYPES = {'Tensor': 'Tensor', 'Tensor?': 'Optional[Tensor]', 'Tensor[]': 'List[Tensor]', 'Tensor?[]': 'List[Optional[Tensor]]', 'int': 'int',
         'SymInt': 'int', 'float': 'float', 'bool': 'bool', 'Scalar': 'number', 'number': 'number', 'str': 'str', 'ScalarType': 'dtype',
         'int[]': 'List[int]', 'SymInt[]': 'List[int]', 'float[]': 'List[float]', 'bool[]': 'List[bool]', 'complex': 'complex',
         'Device': 'Device', 'NoneType': 'none', 'Scalar[]': 'List[float]', 'str?': 'str', 'int?': 'int', 'SymInt?': 'int',
         'float?': 'float', 'bool?': 'bool', 'Scalar?': 'number', 'int[]?': 'List[int]', 'SymInt[]?': 'List[int]', 'ScalarType?': 'dtype',
         'float[]?': 'List[float]', 'Layout': 'layout', 'Layout?': 'layout', 'Device?': 'Device', 'MemoryFormat': 'format', 'MemoryFormat?': 'format',
         'str[]': 'List[str]', 'Tensor[][]': 'skip'}
WORDS = {'dtype': 'torch.float64', 'layout': 'torch.strided', 'format': 'torch.contiguous_format', 'none': 'None', 'Device': "torch.device('cpu')"}


def schema_type(t):
    text = str(t).replace('Optional[Tensor]', 'Tensor?')
    m = re.fullmatch(r'Optional\[(.*)\]', text)
    if m:
        return schema_type(m.group(1))
    m = re.fullmatch(r'List\[(.*)\]', text)
    inner = m.group(1) if m else None
    if inner:
        return 'List[Optional[Tensor]]' if inner == 'Tensor?' else 'List[float]' if inner == 'number' else 'List[%s]' % inner
    return {'Tensor?': 'Optional[Tensor]', 'NoneType': 'none'}.get(text, text)


# Calls that are wrong in TorchScript: F.embedding and F.embedding_bag do not change the weight, as the Python functions
# do, and F.unique_consecutive uses its second argument as the third.
WRONG = re.compile(r'F\.embedding(_bag)?\(.*max_norm=')
# Functions whose results may have either sign: the test compares only dtypes and sizes.
FREE = ('svd', 'eigh', '_linalg_svd', '_linalg_eigh', 'eig', 'svd_lowrank', 'binomial', '_sample_dirichlet')
# Arguments for functions that do not check their arguments.
TRIES = {
    'torch.gradient': [['f33', ['f3', 'f3']], ['f33', ['f3', 'f3'], [0, 1]]],
    'torch.native_group_norm': [['f1244', 'f2', 'f2', 1, 2, 16, 2, 1e-5]],
    'torch.rnn_tanh': [['f233', 'h', ['f33', 'f33', 'f3', 'f3'], True, 1, 0., False, False, False]],
    'torch.rnn_relu': [['f233', 'h', ['f33', 'f33', 'f3', 'f3'], True, 1, 0., False, False, False]],
    'torch._weight_norm': [['f23', 'g']], 'torch._weight_norm_interface': [['f23', 'g']],
}


class Param:
    """A parameter: its name, its type, and whether it is optional."""

    def __init__(self, name, type, optional, keyword=False):
        self.name, self.type, self.optional, self.keyword = name, type, optional, keyword
        if type == 'int' and name in ('dtype',):
            self.type = 'dtype'
        if type == 'int' and name == 'layout':
            self.type = 'layout'
        if type == 'int' and name == 'memory_format':
            self.type = 'format'


def of_schema(schema):
    return [Param(a.name, schema_type(a.type), a.has_default_value(), a.kwarg_only) for a in schema.arguments]


SCHEMAS = {}
for its in torch._C._jit_get_all_schemas():
    SCHEMAS.setdefault(its.name, []).append(its)


def of_python(function):
    """Returns the parameters of a Python function, or None if they cannot be determined."""
    both = boolean_dispatched.get(function)
    try:
        ps = list(inspect.signature(both['if_false'] if both else function).parameters.values())
    except (TypeError, ValueError):
        return None
    out = []
    for p in ps:
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            return None
        a = p.annotation if isinstance(p.annotation, str) else getattr(p.annotation, '__name__', str(p.annotation))
        if not isinstance(p.annotation, str) and p.annotation is not inspect.Parameter.empty:
            a = str(p.annotation)
        a = a.replace('torch.Tensor', 'Tensor').replace('typing.', '').replace('torch.nn.', '')
        type = 'Tensor'
        for key, value in (('BroadcastingList', 'int'), ('list[int', 'List[int]'), ('List[int', 'List[int]'), ('list[float', 'List[float]'),
                           ('list[Tensor', 'List[Tensor]'), ('tuple[Tensor', 'List[Tensor]'), ('Tensor', 'Tensor'), ('bool', 'bool'), ('str', 'str'),
                           ('float', 'float'), ('int', 'int'), ('DType', 'dtype'), ('dtype', 'dtype')):
            if key in a:
                type = value
                break
        if a == '_empty' or a == inspect.Parameter.empty or p.annotation is inspect.Parameter.empty:
            d = p.default
            type = 'bool' if isinstance(d, bool) else 'int' if isinstance(d, int) else 'float' if isinstance(d, float) else 'str' if isinstance(d, str) \
                else 'Tensor'
        if p.annotation is inspect.Parameter.empty and p.default is None:
            continue                               # the type depends on the overload
        out.append(Param(p.name, type, p.default is not inspect.Parameter.empty, p.kind == p.KEYWORD_ONLY))
    return out


class Case:
    """A call: an expression in which @ or (*) stands for the arguments."""

    def __init__(self, name, expression, params, tries=None):
        self.name, self.expression, self.params, self.tries = name, expression, params, tries

    def source(self):
        said, args, i = [], [], 0
        for p in self.params:
            if p.type in WORDS:
                text = WORDS[p.type]
            else:
                text = 'x%d' % i
                type = p.type if p.type != 'number' else 'float'
                said.append('x%d: %s' % (i, type))
                i += 1
            args.append((p.name + '=' if p.keyword else '') + text)
        if '(*)' in self.expression:                   # x0.name(*)
            return 'def f(%s):\n    return %s\n' % (', '.join(said), self.expression.replace('(*)', '(' + ', '.join(args[1:]) + ')'))
        return 'def f(%s):\n    return %s\n' % (', '.join(said), self.expression.replace('@', ', '.join(args)))

    def values(self):
        """Yields the argument lists to try."""
        kinds = [p for p in self.params if p.type not in WORDS]
        if self.tries:
            yield from self.tries
            return
        if self.name in TRIES:
            yield from (t for t in TRIES[self.name] if len(t) == len(kinds))
        pools = [VALUES['float' if p.type == 'number' else p.type] for p in kinds]
        tensors = [i for i, p in enumerate(kinds) if p.type == 'Tensor']
        if not pools:
            yield ()
            return
        seen, count = set(), 0
        others = [range(1) if i in tensors else range(len(v)) for i, v in enumerate(pools)]
        combos = sorted(itertools.islice(itertools.product(*others), 4000), key=lambda c: sum(c))
        for limit, chosen in ((40, [(k,) * len(tensors) for k in FIRST]),
                              (12, itertools.product(*[FIRST[:14]] * len(tensors)) if len(tensors) < 4 else [])):
            for pick in chosen:
                for combo in combos[:limit]:
                    args = [pools[i][c] for i, c in enumerate(combo)]
                    for t, k in zip(tensors, pick):
                        args[t] = k
                    key = repr(args)
                    if key in seen:
                        continue
                    seen.add(key)
                    count += 1
                    if count > 9000:
                        return
                    yield args


def real(value):
    if isinstance(value, str) and value in POOL:
        return POOL[value].clone()
    if isinstance(value, list):
        return [real(v) if isinstance(v, str) and v in POOL else v for v in value]
    return value


def encode(value):
    """Returns value in the form that tests/script/test_script_names.c reads."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        assert value.layout == torch.strided and not value.is_quantized and not value.is_mkldnn and value.device.type == 'cpu' and not value.is_nested
        dtype = str(value.dtype)[6:]
        assert value.numel() <= 400
        flat = (torch.view_as_real(value.resolve_conj()) if value.is_complex() else value.resolve_neg()).to(torch.float64).flatten().tolist()
        return {'tensor': [encode(float('%.7g' % v)) for v in flat], 'sizes': list(value.shape), 'dtype': dtype}
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {'float': str(value)}
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, complex):
        return {'complex': [encode(value.real), encode(value.imag)]}
    if isinstance(value, torch.device):
        return {'text': str(value)}
    if isinstance(value, list):
        return {'list': [encode(v) for v in value]}
    if isinstance(value, tuple):
        return {'tuple': [encode(v) for v in value]}
    raise AssertionError(type(value))


def sizes_only(value):
    if isinstance(value, dict):
        if 'tensor' in value:
            return {'sizes': value['sizes'], 'dtype': value['dtype']}
        return {k: [sizes_only(v) for v in part] if isinstance(part, list) else part for k, part in value.items()}
    return {'any': 1} if isinstance(value, float) else value


def finite(value):
    text = json.dumps(value)
    return 'nan' not in text and 'inf' not in text and ('tensor": []' not in text)


def compiled(source):
    return torch.jit.CompilationUnit(source).f


def run(case, tell):
    """Tries one call.  Passes what it finds to tell, as objects for JSON; the last one counts.  Returns True if the
    call compiles."""
    source = case.source()
    if WRONG.search(source):
        return False
    try:
        function = compiled(source)
    except Exception:
        return False
    found = {'name': case.name, 'source': source, 'runs': False}
    tell(found)
    spare, budget = None, 800
    for args in case.values():
        budget -= 1
        if not budget:
            break
        tell(None)
        try:
            results = []
            for seed in (1, 2):
                torch.manual_seed(seed)
                given = [real(a) for a in args]
                results.append(encode(function(*given)))
        except Exception:
            continue
        chance = json.dumps(results[0]) != json.dumps(results[1]) or 'empty' in case.name or case.name.endswith('.resize_') \
            or case.name.split('.')[-1] in FREE or 'rand' in case.name or 'resize_as_' in case.name or 'data_ptr' in case.name
        one = dict(found, runs=True, args=args, result=sizes_only(results[0]) if chance else results[0])
        if chance:
            one['chance'] = True
        if finite(one['result']):
            spare = one
            break
        spare = spare or one
    if spare:
        tell(spare)
    return True


def hard():
    """Yields calls for which the search finds no arguments, with arguments."""
    P = Param
    T = lambda *names: [P(n, 'Tensor', False) for n in names]
    yield 'torch.nn.functional.ctc_loss', 'F.ctc_loss(x0.log_softmax(2), x1, x2, x3)', T('a', 'b', 'c', 'd'), [['f233', 'i22', 'i1', 'i1']]
    yield 'torch.autograd.grad', 'torch.autograd.grad([(x0.requires_grad_() * x0).sum()], [x0])', T('a'), [['f23']]
    yield 'torch.autograd.backward', 'torch.autograd.backward([(x0.requires_grad_() * x0).sum()])', T('a'), [['f23']]
    for e in ("torch.meshgrid(x0, x0)", "torch.meshgrid([x0, x0])", "torch.meshgrid(x0, x0, indexing='xy')"):
        yield 'torch.meshgrid', e, T('a'), [['f3']]
    for e in ("torch.einsum('ij,jk->ik', x0, x0)", "torch.einsum('ij,jk->ik', [x0, x0])", "torch.einsum('ii', x0)",
              "torch.functional.einsum('ij,jk->ik', [x0, x0])"):
        yield 'torch.einsum', e, T('a'), [['f33']]
    for name in 'stft', 'functional.stft':
        for e in ('x0, 8', 'x0, 8, 4', 'x0, 8, center=False', 'x0, 8, pad_mode="constant"', 'x0, 8, 2, 6, x1', 'x0, 8, normalized=True',
                  'x0, 8, onesided=False'):
            yield 'torch.' + name, 'torch.%s(%s, return_complex=True)' % (name, e), T('a', 'b') if 'x1' in e else T('a'), \
                [['f16', 'p6']] if 'x1' in e else [['f16']]
    yield 'torch.istft', 'torch.istft(torch.stft(x0, 8, 2, window=torch.ones(8), return_complex=True), 8, 2, window=torch.ones(8))', T('a'), [['f16']]
    yield 'torch.istft', 'torch.istft(torch.stft(x0, 8, 2, window=torch.ones(8), return_complex=True), 8, 2, window=torch.ones(8), length=30)', T('a'), \
        [['f16']]
    yield 'Tensor.stft', 'x0.stft(8, 4, return_complex=True)', T('a'), [['f16']]
    for name in 'unique', 'unique_consecutive', 'functional.unique':
        for e in ('x0', 'x0, dim=0', 'x0, return_inverse=True', 'x0, return_counts=True', 'x0, return_inverse=True, return_counts=True',
                  'x0, dim=1, return_inverse=True', 'x0, return_counts=True, dim=0'):
            yield 'torch.' + name, 'torch.%s(%s)' % (name, e), T('a'), [['i23']]
    yield 'torch.unique', 'torch.unique(x0, False, True)', T('a'), [['i23']]
    for e in ('x0', 'x0, dim=0', 'x0, dim=[0, 1]', "x0, 'fro'", "x0, 'nuc'", 'x0, 1', 'x0, 3., 1', 'x0, p=1., dim=0, keepdim=True',
              "x0, 'fro', dim=[1]", "x0, 'nuc', dim=[0, 1], keepdim=True", 'x0, dtype=torch.float64', 'x0, p=1, dim=[0], dtype=torch.float64',
              'x0, float("inf")', 'x0, 2., [0, 1], True', 'x0, p="fro"'):
        yield 'torch.norm', 'torch.norm(%s)' % e, T('a'), [['f23'], ['f33']]
    for e in ('x0, x1', 'x0, x1, 1', 'x0, x1, dims=1', 'x0, x1, [[1], [0]]', 'x0, x1, dims=([1], [0])', 'x0, x1, torch.tensor(1)',
              'x0, x1, dims=[[0, 1], [0, 1]]', 'x0, x1, torch.tensor([[1], [0]])'):
        yield 'torch.tensordot', 'torch.tensordot(%s)' % e, T('a', 'b'), [['f33', 'f33'], ['s33', 'f33']]
    for e in ('x0, x1', 'x0, x1, 1.', "x0, x1, p=2., compute_mode='donot_use_mm_for_euclid_dist'",
              "x0, x1, compute_mode='use_mm_for_euclid_dist'", 'x0, x1, p=float("inf")'):
        yield 'torch.cdist', 'torch.cdist(%s)' % e, T('a', 'b'), [['f23', 'f33']]
    for e in ('x0', 'x0, True', 'x0, get_infos=True', 'x0, True, True', 'x0, pivot=True, get_infos=False'):
        yield 'torch.lu', 'torch.lu(%s)' % e, T('a'), [['s33']]
    for e in ('torch.split(x0, 2)', 'torch.split(x0, [1, 2])', 'torch.split(x0, 1, 1)', 'torch.split(x0, split_size_or_sections=2)',
              'torch.functional.split(x0, 2)', 'torch.functional.split(x0, [1, 2])', 'torch.functional.split(x0, 2, dim=1)', 'x0.split(2)',
              'x0.split([1, 2], dim=1)'):
        yield 'torch.split', e, T('a'), [['f33']]
    for n in '123':
        yield 'torch.functional.atleast_%sd' % n, 'torch.functional.atleast_%sd(x0)' % n, T('a'), [['f3']]
        yield 'torch.functional.atleast_%sd' % n, 'torch.functional.atleast_%sd([x0, x0])' % n, T('a'), [['f3']]
    for n in ('broadcast_tensors', 'block_diag', 'cartesian_prod', 'chain_matmul', 'meshgrid'):
        yield 'torch.functional.' + n, 'torch.functional.%s([x0, x0])' % n, T('a'), [['f3'], ['f33']]
    yield 'torch.broadcast_shapes', 'torch.broadcast_shapes([2, 1], [1, 3])', [], [[]]
    yield 'torch.functional.broadcast_shapes', 'torch.functional.broadcast_shapes([2, 1], [1, 3])', [], [[]]
    yield 'Tensor.tolist', 'torch.jit.annotate(List[List[float]], x0.tolist())', T('a'), [['f23']]
    for p in 'x0, x0, x0', 'x0, x0, x0, is_causal=True', 'x0, x0, x0, x0.transpose(1, 2)[:, :3, :3] * 0', 'x0, x0, x0, dropout_p=0.', 'x0, x0, x0, scale=.5':
        yield 'torch.nn.functional.scaled_dot_product_attention', 'F.scaled_dot_product_attention(%s)' % p, T('a'), [['f233']]
    yield ('torch.nn.functional.multi_head_attention_forward', 'F.multi_head_attention_forward(x0, x0, x0, 3, 1, x1, None, None, None, False, 0., x2, None)',
           T('a', 'b', 'c'), [['f233', 'f93', 's33']])
    yield ('torch.nn.functional.multi_head_attention_forward', 'F.multi_head_attention_forward(x0, x0, x0, 3, 1, x1, None, None, None, False, 0., x2, None, '
           'training=False, need_weights=False)', T('a', 'b', 'c'), [['f233', 'f93', 's33']])
    for e in ("x0, scale_factor=2.", "x0, [3, 3]", "x0, size=3, mode='bilinear'", "x0, scale_factor=[2., 1.5], mode='bilinear', align_corners=True",
              "x0, scale_factor=1.5, recompute_scale_factor=True", "x0, scale_factor=.5, mode='bicubic'", "x0, size=[2, 2], mode='area'",
              "x0, scale_factor=.5, mode='area'", "x0, size=[3, 2], mode='nearest-exact'", "x0, size=[3, 2], mode='bilinear', antialias=True",
              "x0, size=[3, 2], mode='bicubic', antialias=True", "x0, None, 2., 'nearest'", "x0, scale_factor=.6, mode='bilinear'",
              "x0, scale_factor=.6, mode='bilinear', recompute_scale_factor=True"):
        yield 'torch.nn.functional.interpolate', 'F.interpolate(%s)' % e, T('a'), [['f1244']]
    for e in ("x0, size=3", "x0, scale_factor=2., mode='linear'", "x0, size=2, mode='area'", "x0, size=3, mode='nearest-exact'",
              "x0, scale_factor=.6, mode='linear', align_corners=True"):
        yield 'torch.nn.functional.interpolate', 'F.interpolate(%s)' % e, T('a'), [['f124']]
    for e in ("x0, size=3", "x0, scale_factor=2., mode='trilinear'", "x0, size=2, mode='area'", "x0, size=[2, 3, 2], mode='nearest-exact'"):
        yield 'torch.nn.functional.interpolate', 'F.interpolate(%s)' % e, T('a'), [['f12444']]
    yield 'torch.nn.functional.upsample', 'F.upsample(x0, scale_factor=2.)', T('a'), [['f1244']]
    yield 'torch.nn.functional.upsample_nearest', 'F.upsample_nearest(x0, scale_factor=2)', T('a'), [['f1244']]
    yield 'torch.nn.functional.upsample_bilinear', 'F.upsample_bilinear(x0, scale_factor=2)', T('a'), [['f1244']]
    for e in ('x0, [1, 1]', "x0, [1, 1], 'constant', 2.5", "x0, [1, 1, 1, 0], mode='reflect'", "x0, [1, 1, 1, 0], mode='replicate'",
              "x0, [1, 0, 2, 1], 'circular'", 'x0, (1, 2), value=1.'):
        yield 'torch.nn.functional.pad', 'F.pad(%s)' % e, T('a'), [['f1244']]
    for d, t in (('1d', 'f124'), ('2d', 'f1244'), ('3d', 'f12444')):
        for e in ('x0, 2', 'x0, 2, 1', 'x0, 2, return_indices=True', 'x0, 2, ceil_mode=True', 'x0, kernel_size=2, stride=1, padding=1, dilation=1',
                  'x0, 2, 2, 0, 1, False, True'):
            yield 'torch.nn.functional.max_pool' + d, 'F.max_pool%s(%s)' % (d, e), T('a'), [[t]]
        yield 'torch.nn.functional.max_pool%s_with_indices' % d, 'F.max_pool%s_with_indices(x0, 2)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.adaptive_max_pool' + d, 'F.adaptive_max_pool%s(x0, 2)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.adaptive_max_pool' + d, 'F.adaptive_max_pool%s(x0, 2, return_indices=True)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.adaptive_max_pool' + d, 'F.adaptive_max_pool%s(x0, 2, True)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.adaptive_max_pool%s_with_indices' % d, 'F.adaptive_max_pool%s_with_indices(x0, 2)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.adaptive_avg_pool' + d, 'F.adaptive_avg_pool%s(x0, 2)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.avg_pool' + d, 'F.avg_pool%s(x0, 2)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.lp_pool' + d, 'F.lp_pool%s(x0, 2., 2)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.lp_pool' + d, 'F.lp_pool%s(x0, norm_type=3., kernel_size=2, stride=1, ceil_mode=True)' % d, T('a'), [[t]]
        for e in ('2', '2, 2', '2, output_size=[1, 2, %s]' % ', '.join(['4'] * int(d[0])), '2, None, 0'):
            yield 'torch.nn.functional.max_unpool' + d, 'F.max_unpool%s(F.max_pool%s(x0, 2), F.max_pool%s(x0, 2, return_indices=True)[1], %s)' % (
                d, d, d, e), T('a'), [[t]]
    for d, t in (('2d', 'f1244'), ('3d', 'f12444')):
        for e in ('output_size=2', 'output_ratio=.5', 'output_size=2, return_indices=True'):
            yield 'torch.nn.functional.fractional_max_pool' + d, 'F.fractional_max_pool%s(x0, 2, %s)' % (d, e), T('a'), [[t]]
        yield 'torch.nn.functional.fractional_max_pool%s_with_indices' % d, 'F.fractional_max_pool%s_with_indices(x0, 2, output_size=2)' % d, T('a'), [[t]]
    for e in ('x1, x0', "x1, x0, mode='sum'", "x1, x0, mode='max'", 'x1, x0, padding_idx=0', 'x1, x0, max_norm=1.', "x1, x0, mode='mean'",
              "x1, x0, mode='sum', per_sample_weights=x0[:2]", 'x1, x0, padding_idx=-1'):
        yield 'torch.nn.functional.embedding_bag', 'F.embedding_bag(%s)' % e, T('a', 'b'), [['f33', 'i23']]
    for e in ('x1[0], x0, x2', "x1[0], x0, x2, mode='sum'", 'x1[0], x0, x2, include_last_offset=True', "x1[0], x0, offsets=x2, mode='max'"):
        yield 'torch.nn.functional.embedding_bag', 'F.embedding_bag(%s)' % e, T('a', 'b', 'c'), [['f33', 'i23', 'o2']]
    for e in ('x1, x0', 'x1, x0, 1', 'x1, x0, max_norm=1.', 'x1, x0, padding_idx=-1, norm_type=1., max_norm=.5', 'x1, x0, scale_grad_by_freq=True'):
        yield 'torch.nn.functional.embedding', 'F.embedding(%s)' % e, T('a', 'b'), [['f33', 'i23']]
    for e in ('x0, x1[:, :2, :2, 0:2]', "x0, x1[:, :2, :2, 0:2], 'nearest'", "x0, x1[:, :2, :2, 0:2], padding_mode='border'",
              'x0, x1[:, :2, :2, 0:2], align_corners=True', "x0, x1[:, :2, :2, 0:2], mode='bicubic', padding_mode='reflection', align_corners=False"):
        yield 'torch.nn.functional.grid_sample', 'F.grid_sample(%s)' % e, T('a', 'b'), [['f1244', 'f1244']]
    for e in ('x0[:, :2], [2, 1, 2, 2]', 'x0[:, :2], [2, 1, 2, 2], align_corners=True', 'x0[:, :2], [2, 1, 2, 2], False'):
        yield 'torch.nn.functional.affine_grid', 'F.affine_grid(%s)' % e, T('a'), [['f233']]
    for e in ('x0, 2', 'x0, 2, 1, 1, 2', 'x0, [2, 1], padding=[1, 0]'):
        yield 'torch.nn.functional.unfold', 'F.unfold(%s)' % e, T('a'), [['f1244']]
    for e in ('F.unfold(x0, 2), 4, 2', 'F.unfold(x0, 2, stride=2), [4, 4], 2, stride=2'):
        yield 'torch.nn.functional.fold', 'F.fold(%s)' % e, T('a'), [['f1244']]
    for e in ('', ', tau=.5', ', hard=True', ', dim=0'):
        yield 'torch.nn.functional.gumbel_softmax', 'F.gumbel_softmax(x0%s)' % e, T('a'), [['f23']]
    for name in ('cross_entropy', 'nll_loss', 'multi_margin_loss'):
        for e in ('', ", reduction='none'", ", reduction='sum'", ', weight=x0[0] + 1.', ', reduce=False', ', size_average=False') + (
                (', ignore_index=0',) if name != 'multi_margin_loss' else (', p=2', ', margin=.5')) + (
                (', label_smoothing=.1',) if name == 'cross_entropy' else ()):
            yield 'torch.nn.functional.' + name, 'F.%s(x0, x1%s)' % (name, e), T('a', 'b'), [['f33', 'i3']]
    yield 'torch.nn.functional.cross_entropy', 'F.cross_entropy(x0, x1)', T('a', 'b'), [['f33', 's33']]
    for e in ('', ", reduction='none'", ", reduction='sum'"):
        yield 'torch.nn.functional.multilabel_margin_loss', 'F.multilabel_margin_loss(x0, x1%s)' % e, T('a', 'b'), [['f23', 'i23']]
    for e in ('x0, x1', 'x0, x1, x1', "x0, x1, reduction='none'", 'x0, x1, label_smoothing=.2', 'x0, x1, ignore_index=1'):
        yield 'torch.nn.functional.linear_cross_entropy', 'F.linear_cross_entropy(x0, x0, x1)', T('a', 'b'), [['f33', 'i3']]
    for e in ('x0, x1', 'x0, x1, beta=.5', "x0, x1, reduction='none'", 'x0, x1, size_average=False'):
        yield 'torch.nn.functional.smooth_l1_loss', 'F.smooth_l1_loss(%s)' % e, T('a', 'b'), [['f23', 'p23']]
    for e in ('x0, x1, x1', 'x0, x1, x1, full=True', "x0, x1, x1, eps=.1, reduction='sum'", "x0, x1, x1, reduction='none'", 'x0, x1, .5'):
        yield 'torch.nn.functional.gaussian_nll_loss', 'F.gaussian_nll_loss(%s)' % e, T('a', 'b'), [['f23', 'p23']]
    for e in ('x0, x1', "x0, x1, reduction='batchmean'", "x0, x1, reduction='none', log_target=True", "x0, x1, reduction='sum'"):
        yield 'torch.nn.functional.kl_div', 'F.kl_div(%s)' % e, T('a', 'b'), [['f23', 'p23']]
    for e in ('x0, x1, x2', 'x0, x1, x2, swap=True', "x0, x1, x2, margin=.5, reduction='none'"):
        yield 'torch.nn.functional.triplet_margin_with_distance_loss', 'F.triplet_margin_with_distance_loss(%s)' % e, T('a', 'b', 'c'), \
            [['f23', 'p23', 'f23']]
    yield 'torch.nn.functional.batch_norm', 'F.batch_norm(x0, None, None, training=True)', T('a'), [['f23']]
    yield 'torch.nn.functional.batch_norm', 'F.batch_norm(x0, x1, x1 + 2., x1, x1, eps=.1)', T('a', 'b'), [['f23', 'f3']]
    yield 'torch.nn.functional.instance_norm', 'F.instance_norm(x0)', T('a'), [['f1244']]
    for e in ('x0, [3]', 'x0, [3], x1, x1', 'x0, [3], x1, eps=.5', 'x0, [2, 3]'):
        yield 'torch.nn.functional.layer_norm', 'F.layer_norm(%s)' % e, T('a', 'b') if 'x1' in e else T('a'), [['f23', 'f3'] if 'x1' in e else ['f23']]
        yield 'torch.nn.functional.rms_norm', 'F.rms_norm(%s)' % e.replace(', x1, x1', ', x1'), T('a', 'b') if 'x1' in e else T('a'), \
            [['f23', 'f3'] if 'x1' in e else ['f23']]
    for e in ('x0, 2', 'x0, 1, eps=.1', 'x0, 2, x1, x1'):
        yield 'torch.nn.functional.group_norm', 'F.group_norm(%s)' % e, T('a', 'b') if 'x1' in e else T('a'), [['f1244', 'f2'] if 'x1' in e else ['f1244']]
    for e in ('x0, 2', 'x0, 3, alpha=.1, beta=.5, k=2.'):
        yield 'torch.nn.functional.local_response_norm', 'F.local_response_norm(%s)' % e, T('a'), [['f1244']]
        yield 'torch.nn.functional.local_response_norm', 'F.local_response_norm(%s)' % e, T('a'), [['f124']]
    yield 'torch.nn.functional.normalize', 'F.normalize(x0, dim=0)', T('a'), [['f23']]
    yield 'torch.nn.functional.normalize', 'F.normalize(x0, 1., 0, eps=.1)', T('a'), [['f23']]
    for name, t in (('dropout', 'f23'), ('dropout1d', 'f124'), ('dropout2d', 'f1244'), ('dropout3d', 'f12444'), ('alpha_dropout', 'f23'),
                    ('feature_alpha_dropout', 'f1244')):
        for e in ('x0', 'x0, 1.', 'x0, 0., True', 'x0, training=False', 'x0, p=1., training=True', 'x0, 0., inplace=True'):
            yield 'torch.nn.functional.' + name, 'F.%s(%s)' % (name, e), T('a'), [[t]]
    for e in ('x0', 'x0, -1', 'x0, dim=0', 'x0, dim=0, dtype=torch.float64', 'x0, 1, 3'):
        for name in ('softmax', 'log_softmax', 'softmin'):
            for t in ('f23', 'f124') if e == 'x0' else ('f23',):
                yield 'torch.nn.functional.' + name, 'F.%s(%s)' % (name, e), T('a'), [[t]]
    for e in ('x0', "x0, approximate='tanh'"):
        yield 'torch.nn.functional.gelu', 'F.gelu(%s)' % e, T('a'), [['f23']]
    for e in ('x0', 'x0, 3'):
        yield 'torch.nn.functional.one_hot', 'F.one_hot(%s)' % e, T('a'), [['i3']]
    for e in ('x0', 'x0, .1, .3', 'x0, training=True, lower=.25, upper=.25', 'x0, inplace=True'):
        yield 'torch.nn.functional.rrelu', 'F.rrelu(%s)' % e, T('a'), [['f23']]
    yield 'torch.nn.functional.bilinear', 'F.bilinear(x0, x0, x1)', T('a', 'b'), [['f23', 'f233']]
    for d in '123':
        t = ['f124', 'f1244', 'f12444'][int(d) - 1]
        w = ['f22[:, :, None]', 'x1[:, :, :2, :2]', ''][int(d) - 1]
        yield 'torch.nn.functional.conv%sd' % d, 'F.conv%sd(x0, x0, padding=1)' % d, T('a'), [[t]]
        yield 'torch.nn.functional.conv_transpose%sd' % d, 'F.conv_transpose%sd(x0, x0.transpose(0, 1))' % d, T('a'), [[t]]
    yield 'torch.gradient', 'torch.gradient(x0)', T('a'), [['f33']]
    yield 'torch.tensor', 'torch.tensor([1., 2.])', [], [[]]
    yield 'torch.tensor', 'torch.tensor([[1, 2], [3, 4]], dtype=torch.float64)', [], [[]]
    yield 'torch.as_tensor', 'torch.as_tensor([1, 2])', [], [[]]
    yield 'torch.Size', 'torch.Size([2, 3])', [], [[]]
    yield 'torch.nn.init.constant_', 'torch.nn.init.constant_(x0, .5)', T('a'), [['f23']]
    yield 'torch.lu_unpack', 'torch.lu_unpack(x0, x1)', T('a', 'b'), [['s33', 'j3']]
    yield 'torch.cholesky_solve', 'torch.cholesky_solve(x0, x0)', T('a'), [['s33']]
    yield 'torch.hann_window', 'torch.hann_window(5)', [], [[]]


def strange(schema):
    """Returns True for a schema that the test does not call: it has out=, a variable number of arguments, or arguments
    of other types."""
    return '...' in str(schema) or any(a.is_out or (not a.has_default_value() and schema_type(a.type) not in VALUES and
                                                schema_type(a.type) not in WORDS) for a in schema.arguments)


def cases():
    for name, expression, params, tries in hard():
        yield Case(name, expression, params, tries)
    spaces = [('torch', torch), ('torch.nn.functional', F), ('torch.functional', torch.functional), ('torch.linalg', torch.linalg), ('torch.fft', torch.fft),
              ('torch.special', torch.special), ('torch.nn.init', torch.nn.init), ('math', math)]
    for space, module in spaces:
        for n in sorted(dir(module)):
            f = getattr(module, n)
            if n.startswith('__') or not callable(f) or inspect.isclass(f) or (space == 'torch.functional' and n not in torch.functional.__all__):
                continue
            builtin = _builtins._find_builtin(f)
            name = '%s.%s' % (space, n)
            said = name.replace('torch.nn.functional', 'F')
            if builtin:
                for schema in SCHEMAS.get(builtin, ())[:12]:
                    if strange(schema):
                        continue
                    yield Case(name, said + '(@)',
                               [p for p in of_schema(schema) if not p.optional])
            elif not n.startswith('_'):
                params = of_python(f)
                if params is None:
                    continue
                need = [p for p in params if not p.optional]
                yield Case(name, said + '(@)', need)
                for p in params:
                    if p.optional:
                        yield Case(name, said + '(@)', need + [Param(p.name, p.type, False, True)])
    for n in sorted(dir(torch.Tensor)):
        if n.startswith('__'):
            continue
        name = 'Tensor.' + n
        self = Param('self', 'Tensor', False)
        yield Case(name, 'x0.' + n, [self])
        for schema in SCHEMAS.get('aten::' + n, ())[:12]:
            params = of_schema(schema)
            if params and params[0].type == 'Tensor' and not strange(schema):
                yield Case(name, 'x0.%s(*)' % n, [p for p in params if not p.optional])
        if 'aten::' + n not in SCHEMAS:
            yield Case(name, 'x0.%s(*)' % n, [self])


def child(work, pipe):
    def tell(found):
        os.write(pipe, (json.dumps(found) + '\n').encode() if found else b'.\n')
    for place, case in work:
        os.write(pipe, b'>%d\n' % place)
        try:
            run(case, tell)
        except Exception as error:
            sys.stderr.write('%s: %s\n' % (case.name, error))
        os.write(pipe, b'<\n')
    os._exit(0)


def walk(all):
    """Runs the cases in child processes, because some crash or never end.  Yields the findings."""
    work = list(enumerate(all))
    while work:
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            os.close(read)
            null = os.open('/dev/null', os.O_WRONLY)
            os.dup2(null, 2)
            child(work[:200], write)
        os.close(write)
        text, at, found, lines = b'', work[0][0], None, []
        stopped = False
        while True:
            ready = select.select([read], [], [], 30)[0]
            more = os.read(read, 65536) if ready else b''
            if not more:
                stopped = True
                if not ready:
                    os.kill(pid, signal.SIGKILL)
            text += more
            *lines, text = text.split(b'\n')
            for line in lines:
                if line[:1] == b'>':
                    at, found = int(line[1:]), None
                elif line[:1] == b'{':
                    found = json.loads(line)
                elif line == b'<':
                    if found:
                        yield found
                    found = None
                    at += 1
            if stopped:
                break
        os.close(read)
        os.waitpid(pid, 0)
        if found:                                  # the call ended the process
            yield found
        done = at + 1 if found or at == work[0][0] else at
        work = [w for w in work if w[0] >= done]


def archive(cases, path):
    """Saves a module with a method for each Python function of torch.nn.functional and torch.functional.  The cases
    in the archive get the name of their method."""
    module, texts, have = type('Functional', (torch.jit.ScriptModule,), {})(), '', set()
    for case in cases:
        if not case['runs'] or case['name'] in have or not re.match(r'torch\.(nn\.functional|functional|stft|norm|unique|cdist|tensordot|lu$)',
                                                                    case['name']):
            continue
        method = 'm%d' % len(have)
        text = case['source'].replace('def f(', 'def %s(self, ' % method).replace('(self, )', '(self)').replace('F.', 'torch.nn.functional.')
        case['method'] = method
        have.add(case['name'])
        texts += text
    module.define(texts)
    whole = io.BytesIO()
    torch.jit.save(module, whole)
    with zipfile.ZipFile(whole) as parts, zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as kept:
        for name in parts.namelist():
            if not name.endswith('.debug_pkl'):
                kept.writestr(zipfile.ZipInfo(name), parts.read(name), zipfile.ZIP_DEFLATED)


def write(found, file):
    """Writes the archive, and the findings: one case a line, the cases of a name one after the other."""
    names = {}
    for one in found:
        its = names.setdefault(one['name'], {})
        its.setdefault(one['source'], one)
    cases = [one for its in names.values() for one in its.values()]
    archive(cases, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'scripts', 'functional.pt'))
    file.write('{"pool":%s,\n"cases":[\n' % json.dumps({k: encode(v) for k, v in POOL.items()}, separators=(',', ':')))
    file.write(',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases) + ']}\n')


def main():
    write(walk(list(cases())), sys.stdout)


if __name__ == '__main__':
    main()
