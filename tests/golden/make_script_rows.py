#!/usr/bin/env python3
"""Writes script_rows.json: short sources of TorchScript, and PyTorch's answers.  An answer is the text of the result of
f() ("gives"), or that PyTorch refuses to compile or to run the source ("refused").

usage: python3 tests/golden/make_script_rows.py > tests/golden/script_rows.json        (needs torch 2.15)

Each source is passed to torch.jit.script and, if that refuses it, to torch.jit.CompilationUnit.  They support different
parts of Python, and the test accepts both.  If this library gives another text than PyTorch on purpose, the source
contains a part that is in DIFFERENT below, with the reason, and the source is left out.  For '%x' % 255 and similar,
which PyTorch refuses, the expected text is Python's.  Each source runs in a child process, because some crash or hang
PyTorch.  'abc'.count('') is left out: in PyTorch it never ends.
"""
import importlib.util
import json
import os
import signal
import sys
import tempfile
import warnings

import torch

warnings.filterwarnings('ignore')
torch.set_num_threads(1)

HEAD = 'import math\nimport torch\nfrom enum import Enum\nfrom typing import *\nfrom typing import Final\nTensor = torch.Tensor\n'
TAIL = '\ndef the_text() -> str:\n    return str(f())\n'

# one expression a line: f returns it
EXPRESSIONS = r'''
'%x %X %o %d %i' % (255, 255, 8, 3, 4)
'%c%c' % ('a', 98)
'%s %s' % (1,)
'%d' % ('a',)
'%x' % (1.5,)
'%q' % (1,)
'%e %f %g' % (1.5, 2.5, 1e10)
'%f' % ('a',)
'%5.2f|%-5d' % (1.25, 3)
'%d' % 3.7
'%%'% ()
'{} {}'.format(1)
'{} {}'.format(1, 'a', 3)
'{0}'.format(1)
'{a}'.format(1)
'{{}}'.format(1)
'aXbXc'.count('X')
'aaaa'.count('aa')
'aaaa'.count('a', 1, 3)
' a b  c '.split()
'a,b,c'.split(',', 1)
'a  b c'.split(None, 1)
'a,b,c'.rsplit(',', 1)
' a b c '.rsplit(None, 1)
'a,b'.split('')
'a\nb\r\nc\r'.splitlines()
'a\nb\r\nc'.splitlines(True)
'a\tb'.expandtabs(4)
'a\tbc\td'.expandtabs()
'\t'.expandtabs(0)
'hello world'.capitalize()
'hello world'.title()
'HeLLo'.swapcase()
'abc'.center(9, '*')
'abc'.ljust(6, '.')
'abc'.rjust(6, '.')
'-12'.zfill(6)
'abc'.zfill(5)
'abcabc'.find('c', 3)
'abcabc'.rfind('b')
'abc'.index('z')
'abc'.rindex('z')
'abcabc'.rindex('b')
'a.b.c'.partition('.')
'a.b.c'.rpartition('.')
'abc'.partition('.')
'aaaa'.replace('a', 'b', 2)
'xxabcxx'.strip('x')
'xxabc'.lstrip('x')
'abcxx'.rstrip('x')
' '.isspace()
'ab1'.isalnum()
'Ab Cd'.istitle()
'ab'.isidentifier()
'1a'.isidentifier()
'٣'.isdigit()
'12'.isdecimal()
'12'.isnumeric()
'a b'.isprintable()
','.join(['a','b'])
'abc'[1]
'abc'[-1]
'abc'[5]
'abcdef'[1:5:2]
'abcdef'[::-1]
'abc' * 3
'abc' < 'abd'
'b' in 'abc'
ord('a')
ord('ab')
chr(97)
chr(300)
hex(255)
oct(8)
bin(5)
hex(-1)
int('12')
int('a')
float('1.5')
float('x')
float('inf')
bool('')
str(1.0)
str(1e20)
str(True)
str([1,2])
str(('a', 1.5))
str({'a': 1})
str(None)
str(1+2j)
str('a')
str(['a'])
'a' 'b'
'\x41\101\u00e9\\'
'\q'
r'a\n'
'abc'.startswith('b', 1)
'abc'.endswith('b', 0, 2)
f'{1} {2.5} {[1]}'
f'{{}}'
f'{1:3d}'
f'{1!r}'
'a' f'{1}'
2 ** 3
2 ** -1
(-2) ** 3
2.0 ** 3
0 ** 0
2 ** 0.5
(-8.0) ** 0.333
7 // 2
-7 // 2
7 % -3
-7 % 3
7.5 // 2
-7.5 % 2
7 // 0
7 / 0
7.0 / 0
7.0 // 0.0
1 / 2
divmod(7, -2)
divmod(-7.5, 2.0)
divmod(7, 2.0)
divmod(7,0)
divmod(7.0,0.0)
1 << 3
1 << 64
1 << -1
-8 >> 1
5 & 3
5 | 3
5 ^ 3
~5
not 1
-True
abs(-3)
abs(-2.5)
round(2.5)
round(3.5)
round(-2.5)
round(2.567, 2)
round(5)
min(1, 2)
max(1, 2.5)
min([3,1,2])
max([1.5, 2.5])
min(1,2,3)
sum([1,2,3])
sum([1.5,2.5])
any([True, False])
all([])
int(2.9)
int(-2.9)
int(True)
float(3)
bool(0.5)
complex(1, 2)
complex(1.5)
(1+2j) * (3-1j)
(1+2j) / (3-1j)
(1+2j) - 1
1 - (1+2j)
(1+2j) ** 2
(1+2j) ** (0.5+1j)
(0j) ** 0
(0j) ** (1+0j)
(1+2j) == (1+2j)
(1+2j) != 1
abs(3+4j)
-(1+2j)
(1+2j) / (0j)
(1+2j).real
float('nan') == float('nan')
0.1 + 0.2
1 < 2 < 3
1 == 1.0
True + True
True == 1
5 if True else 6
1 and 2
0 or 5
True and False
1.5 and 2.5
int(float('inf'))
9223372036854775807 + 1
9223372036854775808
-9223372036854775808
0x1F
0b101
0o17
1_000
1e3
1.e-2
.5
1j
math.factorial(5)
math.factorial(-1)
math.factorial(20)
math.factorial(21)
math.gcd(12, 18)
math.gcd(0, 0)
math.gcd(-4, 6)
math.sqrt(-1.0)
math.log(0)
math.log(8, 2)
math.log(-1.0)
math.log2(8)
math.log10(1000)
math.log1p(0.5)
math.exp(1000.0)
math.exp(1)
math.expm1(0.5)
math.floor(2.5)
math.floor(-2.5)
math.ceil(2.1)
math.trunc(-2.5)
math.copysign(1.0, -0.0)
math.copysign(1, -2)
math.modf(2.5)
math.frexp(8.0)
math.ldexp(1.0, 3)
math.fmod(-7, 3)
math.fmod(7.5, 2)
math.fmod(1.0, 0.0)
math.remainder(7, 4)
math.remainder(7.5, 2.0)
math.pow(2, 3)
math.pow(2.0, -1)
math.isnan(1.0)
math.isinf(float('inf'))
math.isfinite(1.0)
math.gamma(5.0)
math.lgamma(5.0)
math.erf(0.5)
math.erfc(0.5)
math.degrees(3.0)
math.radians(180.0)
math.atan2(1.0, -1.0)
math.asin(2.0)
math.acosh(2.0)
math.fabs(-3)
math.floor(3)
math.sinh(1)
math.hypot(3,4)
math.pi
math.inf
math.nan
math.e
math.tau
[1,2] + [3]
[1,2] * 3
3 * [1]
[1,2,3][::2]
[1,2,3][::-1]
[1,2,3][5]
[1,2,3][-4]
[1,2] == [1,2]
[1,2] < [1,3]
[1.5] in [[1.5]]
2 in [1,2]
'a' in ['b']
[1,2,3].index(4)
[1,2,1].count(1)
[[1,2],[3]]
[[]]
[1, 2.5]
[1, 'a']
{'a': 1, 'b': 2.0}
{'a': 1, 1: 2}
{'a': 1}['b']
{'a': 1}.get('b')
{'a': 1}.get('b', 5)
{'a': 1}.get('a', 5)
len({'a': 1})
'a' in {'a': 1}
{'a': 1}.keys()
{'a': 1}.values()
{'a': 1}.items()
{1: 'a'} == {1: 'a'}
{1.5: 'a'}
{True: 'a'}
{(1,2): 3}
[x * 2 for x in [1,2,3]]
[x for x in [1,2,3] if x > 1]
[x for x in range(3)]
{x: x * 2 for x in [1,2]}
{x: x for x in [1,2] if x > 1}
[y for x in [[1],[2]] for y in x]
list('abc')
list((1,2,3))
list(range(4))
list({'a': 1})
list()
dict()
tuple()
tuple([1,2])
tuple((1,2))
dict([('a', 1)])
dict([('a', 1)], b=2)
dict(a=1)
dict({'a': 1}, b=2)
dict({'a': 1})
sorted([3,1,2])
sorted([3,1,2], reverse=True)
sorted(['b','a'])
sorted([1.5, 0.5])
sorted([(2,'a'),(1,'b')])
sorted([True, False])
sorted([[2],[1]])
sorted((2,1))
reversed([1,2])
list(reversed([1,2,3]))
[i for i in reversed([1,2,3])]
[(i, x) for i, x in enumerate([5,6])]
list(enumerate([5,6]))
list(zip([1],[2]))
[a + b for a, b in zip([1,2],[3,4])]
(1,2) + (3,)
(1,2)[0]
(1,2)[2]
(1,2)[-1]
(1,2,3)[1:]
(1,2,3)[::-1]
(1,2,3)[::2]
(1,2) == (1,2)
(1,2) < (1,3)
1 in (1,2)
len((1,2,3))
len('abc')
len(1)
(1, *(2, 3))
[*[1,2]]
1 is None
None is None
None is not None
1 is 1
isinstance(1, int)
isinstance(1, (int, float))
isinstance('a', str)
isinstance([1], list)
type(1)
id(1)
1 if None else 2
[None]
[1, None]
{'a': None}
(None,)
print(1)
bool([1])
[1,2] and True
not [1]
not 'a'
not None
lambda x: x
1 @ 2
x
a.b
f(1)
yield 1
...
slice(1)
float(torch.tensor(3) )
int(torch.tensor(3.7))
bool(torch.ones(2))
float(torch.ones(2))
torch.tensor([1,2,3]).tolist()
torch.arange(6).view(2,3)[1, 2].item()
torch.arange(6).view(2,3)[..., 1].sum().item()
torch.arange(6).view(2,3)[None].size()
torch.arange(6)[1:5:2].sum().item()
torch.arange(6)[::-1]
torch.arange(6)['a']
torch.arange(6)[1.5]
torch.arange(6)[..., ...]
torch.arange(6)[7]
torch.arange(6)[[1,2]].sum().item()
torch.arange(6)[torch.tensor([1,2])].sum().item()
torch.arange(6)[torch.tensor([1,2]), 0]
torch.arange(6).view(2,3)[..., torch.tensor([1,2])].sum().item()
torch.arange(6).view(2,3)[torch.tensor([0,1]), torch.tensor([1,2])].sum().item()
torch.arange(6).view(2,3)[(0, 1)].item()
torch.arange(6).view(2,3)[True].size()
(torch.ones(2) + 1).sum().item()
(1 - torch.ones(2)).sum().item()
(torch.ones(2) // 2).sum().item()
(torch.tensor([7]) // 2).item()
(7 // torch.tensor([2])).item()
(2 ** torch.tensor([3])).item()
(torch.tensor([7]) % 4).item()
(1 < torch.tensor([2])).item()
(1 >= torch.tensor([2])).item()
(1.5 <= torch.tensor([2])).item()
(-torch.ones(2)).sum().item()
(~torch.tensor([True])).item()
torch.ones(2).shape
torch.ones(2, 3).size(1)
torch.ones(2).dtype
torch.ones(2).device
torch.ones(2).is_cuda
torch.ones(2).ndim
torch.ones(2,3).T.size()
torch.ones(2,3).mT.size()
torch.ones(2).requires_grad
torch.ones(2).layout
torch.ones(2).is_sparse
torch.ones(2).grad
torch.ones(2).foo
torch.ones(2).foo()
torch.foo(1)
torch.ones(2).add(1, alpha=2).sum().item()
torch.add(torch.ones(2), 1, 2, 3)
torch.add()
torch.ones(2).numel()
torch.ones(2).dim()
torch.zeros([2]).new_ones([3]).size()
torch.ones(2).to(torch.int64).dtype
torch.ones(2).to('cpu').device
torch.device('cpu')
torch.device('foo')
torch.device('cuda:1').index
torch.device('cuda', 1)
torch.device('cpu').type
torch.device('cpu') == torch.device('cpu')
torch.float32
torch.int64 == torch.long
torch.strided
torch.finfo(torch.float32).eps
torch.iinfo(torch.int8).max
torch.finfo(torch.float16).max
torch.finfo(torch.float32).tiny
len(torch.ones(3))
len(torch.tensor(3))
torch.ones(2) is None
torch.ones(2) == torch.ones(2)
[torch.ones(1)] == [torch.ones(1)]
sorted([torch.tensor(2), torch.tensor(1)])[0].item()
torch.ones(1) in [torch.ones(1)]
torch.tensor([[1,2],[3]])
torch.tensor([1, 2.5]).sum().item()
torch.tensor('a')
torch.tensor([True]).dtype
torch.tensor(1+2j).dtype
torch.as_tensor([1,2]).dtype
torch.tensor([], dtype=torch.float32).size()
torch.unbind(torch.ones(2))
torch.cat([torch.ones(1), torch.ones(2)]).size()
torch.cat([], 0)
torch.ones(2)[0].item() + 1
[t.item() for t in torch.ones(2)]
[t.item() for t in torch.unbind(torch.ones(2))]
sum([t.item() for t in torch.ones(2)])
torch.is_tensor(5)
torch.jit.is_scripting()
torch.is_grad_enabled()
torch.nn.functional.relu(torch.tensor([-1.0, 2.0])).tolist()
torch.max(torch.tensor([1,3,2]), 0).indices.item()
torch.max(torch.tensor([1,3,2]), 0)[1].item()
torch.max(torch.tensor([1,3,2]), 0).foo
torch.ones(2).tolist()
torch.ones(2).item()
torch.max(torch.tensor(1), torch.tensor(2)).item()
max(torch.tensor(1), torch.tensor(2)).item()
abs(torch.tensor(-1)).item()
round(torch.tensor(1.6)).item()
min(torch.tensor(1), 2)
torch.ones(2, 2) @ 2
(torch.ones(2, 2) @ torch.ones(2)).tolist()
not torch.tensor(0)
5 if torch.tensor(1) else 6
torch.tensor(1) and torch.tensor(0)
torch.dtype
torch._C._nn.gelu(torch.zeros(1)).item()
torch.ops.aten.add(torch.ones(1), 1).item()
torch.ops.aten.add.Tensor(torch.ones(1), torch.ones(1)).item()
torch.ops.foo.bar(1)
torch.sum(torch.ones(2), dim=0, dtype=torch.int64).item()
torch.sum(torch.ones(2), axis=0).item()
torch.sum(torch.ones(2), foo=0)
torch.sum(torch.ones(2), 0, dim=0)
torch.ones(2, dtype='a')
torch.ones('a')
torch.zeros(2, 3, 4).size()
torch.ones(*[2,3]).size()
torch.ones(*(2,3)).size()
torch.zeros(size=[2]).size()
getattr(torch.ones(2), 'shape')
hasattr(torch.ones(2), 'shape')
getattr(torch.ones(2), 'foo', 5)
isinstance(torch.ones(2), torch.Tensor)
isinstance(torch.ones(2), int)
f()
(1
'a
1 +
1 $ 2
[1, 2
{1: 2, 3}
{1, 2}
x for x in [1]
not
1 if 2
1; return 2
0777
1..real
(1+2j) - (3-1j)
2.0 ** (1+1j)
(2+0j) ** (0+0j)
(1+2j) ** (2+0j)
divmod(-7.5, 0.5)
divmod(7.5, -2.0)
torch.arange(6).view(2, 3)[(1, 2)].item()
(1, 'a') + (2.5,)
() + (1,)
(1, 2, 3, 4)[1:3]
(1, 2, 3, 4)[::2]
(1, 2, 3, 4)[-2:]
[len(x) for x in [(1, 2)[0:1]]]
'aXbXc'.rsplit('X', 1)
'a  b  c'.rsplit(None, 1)
'{} {}'.format('{}', 1)
'{'.format(1)
'{}'.format(1.0, 2)
'{}{}{}'.format(None, [1.5], (1, 'a'))
'%s' % ((1, 2),)
'%s' % (torch.float32,)
'%s and %s' % ('a', [1, 2])
'%s' % 5
'%d' % 5
'%d %d' % (1,)
'%d' % (1, 2)
'%' % (1,)
'abc%'  % ()
'a%%b%%' % ()
f'{5}{"a"}'
f'{1.0}|{[1, 2]}|{None}'
f'{{}}{1}'
f'{2.5!r}'
f'{2.5:.1f}'
str(1e300)
str([1.0, 2.5])
str({'a': [1, 2]})
str((1,))
str(torch.device('cuda:1'))
'a' + str(5)
sorted([torch.tensor(2), torch.tensor(1), torch.tensor(3)])
[torch.tensor(1)] == [torch.tensor(1)]
[torch.tensor(1)] != [torch.tensor(2)]
[torch.tensor(1)].index(torch.tensor(1))
torch.jit._unwrap_optional(torch.jit.annotate(Optional[int], 5))
torch.jit._unwrap_optional(torch.jit.annotate(Optional[int], None))
range(1, 2, 0)
[i for i in range(1, 2, 0)]
[i for i in range()]
[i for i in range(1.5)]
[i for i in range('a')]
[i for i in range(1, 2, 3, 4)]
[i for i in zip()]
[i for i in zip([1], 5)]
[i for i in enumerate()]
[i for i in enumerate(5)]
[i for i in enumerate([1], 'a')]
list(enumerate([5, 6], 3))
list(enumerate([5, 6], start=3))
list(zip([1, 2], ['a', 'b'], [True, False]))
list(zip([1, 2, 3], [1]))
(*(1, 2), 3)
(1, *(2, 3), *(4,))
(1, *[2, 3])
(1, *5)
[1, *(2, 3)]
[*(1, 2), *(), 5, *(3,)]
[*()]
[*[1]]
(0, 1, 2, 3, 4)[3:0:-1]
(0, 1, 2, 3, 4)[3::-2]
(0, 1, 2, 3, 4)[-2:-5:-1]
(0, 1, 2, 3, 4)[10:-10:-3]
(0, 1, 2, 3, 4)[:2:-1]
(0, 1, 2, 3, 4)[1:1]
(0, 1, 2, 3, 4)[::100]
(0, 1, 2, 3, 4)[::-100]
(0, 1, 2, 3, 4)[::0]
dict(a=1, b=2)
dict(a=1, b='x')
dict([(1, 2)], b=3)
dict([('a', 2)], a=3)
dict(a=[1], b=[2])
bool({'a': 1})
bool('a')
not {'a': 1}
'' or True
[1] or False
not not 'a'
bool((1,))
bool(None)
bool(1j)
1 if [0] else 2
1 if len('a') > 0 else 'a'
[1, 2][0, 1]
math.foo
math.sqrt('a')
5()
len('a\x00b')
5.5.foo
hasattr([1], len('a'))
(1, 2)[len('a')]
(1, 2, 3)[len('a'):]
'a'.foo()
torch.foo
[1, 2].foo()
sorted([[2, 1], [1, 5]])
sorted([(2, 'a'), (1, 'b')])
sorted([(2, 'a'), (1, 'b'), (1, 'a'), (2, '')])
sorted([True, False])
sorted(['b', 'a', 'ab'])
sorted([2.5, float('-inf'), 1.0])
(1+2j) - 2
2.5 - (1+2j)
(1+2j) / 2
complex(2.5, -1) * 1j
(2j) ** (0.5+0j)
abs(-2j)
int(1+2j)
float(2j)
(1+2j) == 1
[1+2j, 2j]
int(float('nan'))
'a,b,,c'.split(',')
'a,b,,c'.rsplit(',', 2)
'  a b '.rsplit()
'abc'.endswith('bc', 0, 2)
'abc'.startswith('b', 1)
'abcabc'.find('b', -3)
'abcabc'.find('b', 2, -1)
'abcabc'.count('b', -4)
'aXa'.partition('X')
'-'.join(['a', 'b', ''])
'a' * 3
3 * 'ab'
'a' < 'b'
'abc'[::-1]
'abc'[1:]
'abc'[-1]
'abc'[5]
'b' in 'abc'
'a' in ['a', 'b']
[1, 2] + [3.5]
[1] * -1
{'a': 1} == {'a': 1.5}
{'a': [1, 2]} == {'a': [1, 2]}
[[1, 2], [3]] == [[1, 2], [3]]
(1, 'a') == (1, 'a')
(1, 2) != (1, 3)
torch.device('cpu') == torch.device('cuda')
None == None
-9223372036854775808
- 9223372036854775808
9223372036854775807
-9223372036854775807 - 1
1 - 9223372036854775808
[9223372036854775808]
-(9223372036854775808)
bool([])
not {}
1 if 'a' else 2
'' or 'b'
[1] and 'a'
-9223372036854775809
1j / (1e300+1e300j)
(3+4j) / (1+0j)
(3+4j) / (0+2j)
(1+2j) / 0j
(1, 2, 3)[2:0:-1]
(1, 2, 3)[-1:-9:-1]
(1, 2, 3)[5:]
(1, 2, 3)[::0]
(1, *(2, 3), 4)
(*(1, 2), *(3,))
00
007.5
min(0.0, float('nan'))
min(float('nan'), 0.0)
max(0.0, float('nan'))
max(float('nan'), 0.0)
max(0.0, -0.0)
min(-0.0, 0.0)
max(1, float('nan'))
min(float('nan'), 1)
max(2, 2.0)
0 ** -1
0.0 ** -1.0
(-0.0) ** -0.5
0 ** float('-inf')
math.pow(0, -1)
0.0 ** 0.0
max([0.0, float('nan')])
min([float('nan'), 0.0])
'''
BODIES = r'''
x = [1,2,3]
x.append(4)
x.insert(1, 9)
x.remove(3)
x.reverse()
return x
--
x = [1]
x.remove(5)
return x
--
x = [1]
x.pop(3)
return x
--
x = [1,2,3]
y = x.pop()
z = x.pop(0)
return x, y, z
--
x = [1,2,3]
x.extend([4])
x += [5]
return x
--
x = [1,2,3]
x *= 2
return x
--
x = [1,2,3]
x.clear()
return x
--
x = [1,2,3]
y = x.copy()
y[0] = 5
return x, y
--
x = [1,2,3]
del x[1]
return x
--
x = [1,2,3]
del x[5]
return x
--
x = [1,2,3]
del x[0:1]
return x
--
x = [1,2,3]
x[0:2] = [5]
return x
--
x = [1,2,3]
x[7] = 5
return x
--
x = [1,2,3]
x[-1] += 5
return x
--
x = [1,2,3]
x.sort(reverse=True)
return x
--
x = [1,2,3]
x.insert(-100, 0)
x.insert(100, 9)
return x
--
x = {'a': 1}
del x['a']
return x
--
x = {'a': 1}
del x['b']
return x
--
x = {'a': 1}
x['b'] = 3
x['a'] += 4
return x
--
x = {'a': 1}
y = x.pop('a')
return x, y
--
x = {'a': 1}
y = x.pop('b')
return x, y
--
x = {'a': 1}
y = x.pop('b', 7)
return x, y
--
x = {'a': 1}
y = x.popitem()
return x, y
--
x = {'a': 1}
y = x.setdefault('b', 7)
return x, y
--
x = {'a': 1}
x.update({'b': 2})
return x
--
x = {'a': 1}
x.clear()
return x
--
x = {'a': 1}
y = x.copy()
y['a'] = 2
return x, y
--
x = {'a': 1}
y = 0
for k in x:
    y += x[k]
return y
--
x = {'a': 1}
r = ''
for k, v in x.items():
    r += k + str(v)
return r
--
a, b = 1, 2
return a + b
--
a, b = [1, 2]
return a + b
--
a, b = (1, 2, 3)
return a
--
a, *b = (1, 2, 3)
return b
--
*a, b = (1, 2, 3)
return a
--
a, *b, c = (1, 2, 3, 4)
return b
--
a, *b = [1,2,3]
return b
--
(a, b), c = (1, 2), 3
return a + b + c
--
a = b = 3
return a + b
--
a, b = 5
return a
--
a, b = 'xy'
return a
--
x = 1
del x
return x
--
x = 1
y = 2
del x, y
return 3
--
x = 1
del (x)
return 3
--
del 5
return 1
--
for i in 5:
    pass
return 1
--
r = 0
for i in range(1, 10, 3):
    r += i
return r
--
r = 0
for i in range(10, 0, -3):
    r = r * 10 + i
return r
--
for i in range():
    pass
return 1
--
for i in range(1,2,0):
    pass
return 1
--
for i in range(1,2,3,4):
    pass
return 1
--
for i in range(1.5):
    pass
return 1
--
r = 0
for i in (1,2,3):
    r += i
return r
--
r = 0
for i in (1,2,3):
    if i == 2:
        break
    r += i
return r
--
r = ''
for i in (1,'a'):
    r += str(i)
return r
--
for i in (1,2):
    return i
return 5
--
r = ''
for c in 'abc':
    r = c + r
return r
--
r = 0
for i, (a, b) in enumerate(zip([1,2],[3,4])):
    r += i * a * b
return r
--
r = 0
for i, a in enumerate([1,2], 5):
    r += i * a
return r
--
r = 0
for i, a in enumerate([1,2], start=5):
    r += i * a
return r
--
for i in zip():
    pass
return 1
--
for i in enumerate():
    pass
return 1
--
r = 0
for i, a in enumerate((1,2)):
    r += i * a
return r
--
r = 0
for a, b in zip((1,2),(3,4)):
    r += a * b
return r
--
r = 0
for a, b in zip((1,2),[3,4]):
    r += a * b
return r
--
r = 0
for a, b in zip([1,2,3],[3,4]):
    r += a * b
return r
--
for i in range(3):
    x = i
return x
--
for i in range(3):
    pass
else:
    return 4
return 5
--
i = 0
while i < 5:
    i += 1
    if i == 2:
        continue
    if i == 4:
        break
return i
--
i = 0
while True:
    i += 1
    if i > 3:
        return i
return 0
--
while 5:
    break
return 1
--
while None:
    pass
return 1
--
break
return 1
--
continue
return 1
--
if True:
    x = 1
else:
    y = 2
return x
--
if 1 > 0:
    x = 1
return x
--
x = 1
if 1 > 0:
    x = 'a'
return x
--
x = 1
x = 'a'
return x
--
x = 1
x: str = 'a'
return x
--
for i in range(2):
    x = 1
    x = 2.5
return 1
--
raise
return 1
--
raise 5
return 1
--
raise ValueError
return 1
--
raise ValueError('bad')
return 1
--
raise ValueError('bad', 3)
return 1
--
raise RuntimeError('a %d' % 3)
return 1
--
assert False
return 1
--
assert False, 'msg'
return 1
--
assert 1 > 2, 'msg'
return 1
--
assert 1 > 2, 5
return 1
--
assert 1 > 2, f'{3}'
return 1
--
assert 1 < 2, 'msg'
return 1
--
assert (1 < 2, 'msg')
return 1
--
if 1 > 0:
    raise ValueError('x')
else:
    r = 1
return r
--
if 1 > 2:
    raise ValueError('x')
else:
    r = 1
return r
--
global x
return 1
--
import math
return math.pi
--
try:
    x = 1
except Exception:
    x = 2
return x
--
with open('a') as q:
    pass
return 1
--
class A:
    pass
return 1
--
nonlocal x
return 1
--
pass
--
return
--
5
--
x: int
return 1
--
x: int = 'a'
return 1
--
x: float = 1
return x
--
x: List[int] = []
return x
--
x: List[int] = [1.5]
return x
--
x: Optional[int] = None
return x
--
x: Optional[int] = 5
return x + 1
--
x: Optional[int] = 5
if x is not None:
    return x + 1
return 0
--
x: Optional[int] = None
assert x is not None
return x + 1
--
x: Dict[str, int] = {}
x['a'] = 1
return x
--
x: Tuple[int, str] = (1, 'a')
return x[1]
--
x: Tuple[int, str] = (1, 2)
return x[1]
--
x: Union[int, str] = 5
if isinstance(x, int):
    return x + 1
return 0
--
x: 5 = 1
return x
--
x: List = []
return x
--
x: Foo = 1
return x
--
x: List[int, int] = []
return x
--
x: Dict[int] = {}
return x
--
x: Any = 1
return x
--
x: Tuple[()] = ()
return x
--
x: Optional[int, str] = 1
return x
--
x: int | None = 1
return x
--
x: list[int] = [1]
return x
--
x: dict[str, int] = {'a': 1}
return x
--
x: tuple[int, int] = (1, 2)
return x
--
x: Tuple[float, float] = (1, 2)
return x
--
x: Tuple[List[int], int] = ([], 2)
return x
--
x: List[Optional[int]] = [1, None]
return x
--
x = torch.jit.annotate(List[int], [])
return x
--
x = torch.jit.annotate(Optional[int], None)
return x
--
x = torch.jit.annotate(int)
return x
--
x = torch.jit.annotate(int, 'a')
return x
--
x = torch.arange(4)
x[0] = 5
x[1:3] = 7
x[torch.tensor([3])] = 9
return x.tolist()
--
x = torch.arange(4)
x[x > 1] = 0
return x.tolist()
--
x = torch.arange(4)
x += 1
x *= 2
x[0] += 10
return x.tolist()
--
x = torch.zeros(2, 2)
x[0, 1] = torch.tensor(3)
x[..., 0] -= 1
return x.tolist()
--
a, b = torch.ones(2)
return a.item()
--
a, b = torch.ones(3)
return a.item()
--
x = torch.ones(2)
x.foo = 5
return 1
--
x = torch.ones(2)
del x[0]
return 1
--
x = torch.ones(4)
x /= 2
x -= 1
return x.tolist()
--
x = torch.ones(4)
x **= 2
return x.tolist()
--
x = 5
x //= 2
x %= 3
x **= 2
x <<= 2
x |= 1
x &= 7
x ^= 2
x >>= 1
return x
--
x = 5
x /= 2
return x
--
x = 5
x @= 2
return x
--
for t in torch.ones(2, 2):
    return t.sum().item()
return 0.
--
s: List[Tensor] = []
for t in torch.ones(2, 2):
    s.append(t)
return torch.stack(s).size()
--
x = torch.ones(2)
x.t = 1
return 1
--
with torch.no_grad():
    y = torch.ones(2)
return y.sum().item()
--
x = = 1
return x
--
if True
    return 1
--
1 = x
return x
--
f() = 1
return 1
--
  return 1
return 2
--
return \
    5
--
return (1 +
    # c
    2)
--
a, *b = (1,)
return b
--
a, *b = (1, 'x', 2.5)
return b
--
a, *b = [1, 2, 3]
return b
--
a, *b, c, d = (1, 2)
return b
--
*a, *b = (1, 2)
return b
--
x = [1, 2, 3]
y = {'a': 1, 'b': 2}
del x[0], y['a']
return x, y
--
x = 1
y = 2
del x, y
return 1
--
x = [1, 2, 3]
del x[5]
return x
--
r = 0
for i, a in enumerate([5, 6], 2):
    r += i * a
return r
--
r = 0
for i, a in enumerate([5, 6], start=2):
    r += i * a
return r
--
x = [torch.tensor(3), torch.tensor(1), torch.tensor(2)]
x.sort()
return x
--
x = [torch.tensor(3), torch.tensor(1), torch.tensor(2)]
x.sort(reverse=True)
return x
--
x: Optional[int] = 5
y = torch.jit._unwrap_optional(x)
return y + 1
--
t = (1, 'a', 2.5)
u = t[1:]
return u[0]
--
x: List[str] = []
x += ['a']
return x
--
for a in (1, 2, 3):
    if a > 1:
        return a
return 0
--
r = 0
for a in (1, 2, 3):
    if a == 2:
        break
    r += a
return r
--
r = 0
for a in (1, 2, 3):
    if a == 2:
        continue
    r += a
return r
--
x = [1]
if x:
    return 1
return 2
--
x = ''
return 1 if x else 2
--
x: List[int] = []
while not x:
    x.append(1)
return x
--
x: Dict[str, int] = {}
return bool(x), not x
--
x = (1, 2)
return 1 if x else 2
--
for a in (1, 'x', 2.5):
    if isinstance(a, float):
        return str(a)
return 'none'
--
r = 0
for a in (1, 2, 3):
    for b in (4, 5):
        if a * b == 10:
            return r
        r += a * b
return -r
--
r = 0
for i in range(4):
    for a in (1, 2, 3):
        if a * i == 6:
            return r
        r += a * i
return -r
--
r = 0
for a in (1, 2, 3):
    for i in range(4):
        if a * i == 6:
            return r
        r += a * i
    r += 100
return -r
--
r = 0
while r < 100:
    for a in (1, 20, 3):
        r += a
        if r == 45:
            return r
return -r
--
r = [0]
for a in (1, 2, 3):
    r.append(a)
    if len(r) > 2:
        return r
    else:
        r.append(-a)
    r.append(a * 10)
return r
--
for a in (1, 2, 3):
    if a == 2:
        return a
    elif a == 3:
        return -a
x = 5
return x
--
for i, a in enumerate((7, 8)):
    if a == 8:
        return i
return -1
--
x = 1
for a in (1, 2):
    y = a
    if y > 1:
        return y + x
    x = x + y
return x
--
(a, *b), c = (1, 2, 3), 4
return a, b, c
--
[a, *b] = (1, 2, 3)
return a, b
--
x = 1, *(2, 3)
return x
--
t = (1, 2)
x = *t, 5
return x
--
a, *b = 1, 2, 3
return a, b
--
for i in range(2):
    a, *b = (i, 2, 3)
return b
--
x = [1, 2]
n = 0
while x:
    n += x.pop()
return n
--
s = 'ab'
r = 0
for i in range(3):
    if s and i > 0:
        r += 1
return r
--
d: Dict[str, int] = {}
if not d:
    d['a'] = 1
assert d
return d
--
x: Optional[List[int]] = [1]
if x:
    return 1
return 2
--
x = torch.tensor(3)
print(x, [1, 2], 'a', None, 2.5, (1,), {'a': 1}, True, 1+2j)
print()
return 1
--
x = {'a': 1}
y = x.pop('a')
z = x.pop('b', 5)
return x, y, z
--
x = {'a': 1, 'b': 2}
x.update({'b': 3, 'c': 4})
y = x.copy()
x.clear()
return x, y
--
x = {'a': 1}
return x.setdefault('a', 5), x.setdefault('b', 6), x
--
x = {'a': 1}
return x.popitem(), len(x)
--
x = [3, 1, 2]
x.extend([5, 4])
x.insert(1, 9)
x.insert(-100, 8)
x.insert(100, 7)
return x, x.index(9), x.count(3), x.copy()
--
x = [3, 1, 2]
x.clear()
x.append(1)
y = x.copy()
y.append(2)
return x, y
--
x: List[int] = []
return x.pop()
--
x = ['b', 'a', 'c']
x.sort(reverse=True)
return x
--
x = [(2, 'b'), (1, 'a')]
x.sort()
return x
--
x = torch.ones(2, requires_grad=True)
y = [0, 0]
return y[x.sum()]
--
x = torch.tensor(2.5)
y = [1, 2, 3, 4]
return y[x]
--
x = torch.tensor(2)
y = [1, 2, 3, 4]
return y[x]
--
x = torch.tensor(2)
return 'a' * int(x), float(x), bool(x), complex(x)
--
x: Any = 5
return isinstance(x, int), isinstance(x, str), isinstance(x, (str, int))
--
x: Any = [1, 2]
return isinstance(x, List[int]), isinstance(x, List[str])
'''
SOURCES = r'''
def f():
    def g():
        return 1
    return g()
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(1), g(1, 2), g(x=2), g(y=1, x=5)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g()
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(1, 2, 3)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(1, x=2)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g('a')
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(1, z=2)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(*(1, 2))
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(*[1, 2])
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(1.5)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(True)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(torch.tensor(3))
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(y=2)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(*5)
--
def g(x: int, y: int = 3) -> int:
    return x * y
def f():
    return g(x=1, 2)
--
def g(x: List[int]) -> int:
    return len(x)
def f():
    return g([1,2])
--
def g(x: List[int]) -> int:
    return len(x)
def f():
    return g((1,2))
--
def g(x: List[int]) -> int:
    return len(x)
def f():
    return g([1.5])
--
def g(x: List[int]) -> int:
    return len(x)
def f():
    return g(5)
--
def g(x: List[int]) -> int:
    return len(x)
def f():
    return g([])
--
def g(x: List[int]) -> int:
    return len(x)
def f():
    return g([True])
--
def g(x: Optional[float]):
    return x
def f():
    return g(1)
--
def g(x: Optional[float]):
    return x
def f():
    return g(1.5)
--
def g(x: Optional[float]):
    return x
def f():
    return g(None)
--
def g(x: Optional[float]):
    return x
def f():
    return g('a')
--
def g(x: Optional[float]):
    return x
def f():
    return g(torch.tensor(1.5))
--
def g(x: float):
    return x
def f():
    return g(1)
--
def g(x: Tensor):
    return x
def f():
    return g(1)
--
def g(x: float):
    return x
def f():
    return g(1.5)
--
def g(x: Tensor):
    return x
def f():
    return g(1)
--
def g(x: float):
    return x
def f():
    return g(2j)
--
def g(x: Tensor):
    return x
def f():
    return g(1)
--
def g(x: float):
    return x
def f():
    return g(torch.ones(1))
--
def g(x: Tensor):
    return x
def f():
    return g(1)
--
def g(x):
    # type: (int) -> int
    return x
def f():
    return g(1)
--
def g(x, y):
    # type: (int) -> int
    return x
def f():
    return g(1, 2)
--
def g(x: int) -> str:
    return x
def f():
    return g(1)
--
def g(x: int):
    if x > 1:
        return 1
    return 'a'
def f():
    return g(1)
--
def g(x: int):
    if x > 1:
        return 1
def f():
    return g(1)
--
def g(x: int) -> int:
    if x > 1:
        return 1
def f():
    return g(1)
--
def g(x: int = 'a'):
    return x
def f():
    return g()
--
def g(x: int, x: int):
    return x
def f():
    return g(1, 1)
--
def g(*args):
    return 1
def f():
    return g(1, 1)
--
def g(x: int, *, y: int):
    return x + y
def f():
    return g(1, y=2)
--
def g(x: int, *, y: int):
    return x + y
def f():
    return g(1, 2)
--
def f(:
    return 1
--
def f()
    return 1
--
def f():
return 1
--
def f(): return 1
--
def f():
	return 1
--
class P(NamedTuple):
    x: int
    y: int = 5
def f():
    return P(1), P(1, 2), P(x=3), P(1).y
--
class P(NamedTuple):
    x: int
    y: List[int] = [1, 2]
    z: str = 'a'
def f():
    return P(1).y, P(1, [3]).z, P(1, z='b').z
--
class P(NamedTuple):
    x: int
    y: int = 5
def f():
    return P()
--
class P(NamedTuple):
    x: int
    y: int = 5
def f():
    return P(1, 2, 3)
--
class P(NamedTuple):
    x: int
    y: int = 5
def f():
    return P(1, w=3)
--
class C:
    k: Final[int] = 5
    def __init__(self):
        self.a = 1
    def g(self) -> int:
        return self.a + 2
def f():
    return C().g()
--
class C:
    def __init__(self, a: int):
        self.a = a
def f():
    return C(1).b
--
class C:
    def __init__(self, a: int):
        self.a = a
def f():
    return C(1).b()
--
class C:
    def __init__(self, a: int):
        self.a = a
def f():
    return C()
--
class C:
    def __init__(self, a: int):
        self.a = a
def f():
    return C(1).a, C(a=2).a
--
def g(x: int, y: int) -> int:
    return x * 10 + y
def f():
    return g(*(1, 2)), g(1, *(2,)), g(*(1,), y=3)
--
def g(x: int, y: int) -> int:
    return x * 10 + y
def f():
    return g(*5)
--
def g(x: int, y: int) -> int:
    return x * 10 + y
def f():
    return g(*(1, 2, 3))
--
def g(x: int, y: int) -> int:
    return x * 10 + y
def f():
    return g(x=1, x=2, y=3)
--
class P(NamedTuple):
    """A pair."""
    x: int
    y: int = 5
def f():
    return P(1), P(x=2).y
--
class P(NamedTuple):
    x: int
    y: str
def f():
    return str(P(1, 'a')), P(1, 'a') == P(1, 'a'), [P(2, 'b')], P(3, 'c')[0], '{}'.format(P(1, 'a'))
--
class V:
    def __init__(self, a: int):
        self.a = a
    def __neg__(self) -> int:
        return -self.a
    def __len__(self) -> int:
        return self.a
    def __contains__(self, x: int) -> bool:
        return x == self.a
    def __bool__(self) -> bool:
        return self.a > 1
    def __str__(self) -> str:
        return 'V'
    def __eq__(self, o: 'V') -> bool:
        return self.a == o.a
    def __lt__(self, o: 'V') -> bool:
        return self.a < o.a
def f():
    v = V(3)
    w = [V(3), V(1), V(2)]
    w.sort()
    return -v, len(v), 3 in v, bool(v), str(v), v == V(3), w[0].a, 1 if v else 2
--
class E(Enum):
    A = 1
    B = 2
def f():
    return E.A.value, E.B.name, E.A == E.B, [e.name for e in E]
--
class E(Enum):
    A = 1
    B = 2
def f():
    return E.C
--
class E(Enum):
    A = 1
    B = 2
def f():
    return E(1)
--
def g(x: int, y: int) -> int:
    return x + y
def f():
    return g(1, 2, x=3)
--
def g(x: int, *, y: int = 2) -> int:
    return x + y
def f():
    return g(1), g(1, y=3), g(x=5)
--
def g(x: List[int], y: Dict[str, int], z: Tuple[int, str]) -> str:
    return str(x) + str(y) + str(z)
def f():
    return g([], {}, (1, 'a')), g([1], {'a': 1}, (2, 'b'))
--
def g(x: Optional[int] = None) -> int:
    if x is None:
        return 0
    return x
def f():
    return g(), g(5), g(None)
--
def g(x: int = 9223372036854775808) -> int:
    return x
def f():
    return g()
--
def g(x: int = -9223372036854775808) -> int:
    return x
def f():
    return g()
--
def g(k: int):
    for i in (1, 2):
        for j in (3, 4):
            if i * j == k:
                return i * 10 + j
    return 0
def f():
    return [g(0), g(1), g(2), g(3), g(4), g(6), g(8), g(10), g(20), g(30)]
--
def g(k: int):
    r = 0
    for i in (1, 2):
        for j in (3, 4):
            if i * j == k:
                return r
            r += j
        r += 100
    return r
def f():
    return [g(0), g(1), g(2), g(3), g(4), g(6), g(8), g(10), g(20), g(30)]
--
def g(k: int):
    r = 0
    for i in (1, 2, 3):
        if k == i:
            return r
        for j in (5, 6):
            r += i * j
        if k == 10 * i:
            return -r
    r += 1000
    return r
def f():
    return [g(0), g(1), g(2), g(3), g(4), g(6), g(8), g(10), g(20), g(30)]
--
def g(k: int):
    for n in range(3):
        for i in (1, 2):
            if n * i == k:
                return n * 100 + i
    return -1
def f():
    return [g(0), g(1), g(2), g(3), g(4), g(6), g(8), g(10), g(20), g(30)]
--
def g(k: int):
    for i in (1, 2):
        for n in range(3):
            if n * i == k:
                return n * 100 + i
    return -1
def f():
    return [g(0), g(1), g(2), g(3), g(4), g(6), g(8), g(10), g(20), g(30)]
--
def g(k: int):
    r = 0
    while r < 20:
        for i in (1, 2):
            r += i
            if r == k:
                return r * 7
    return r
def f():
    return [g(0), g(1), g(2), g(3), g(4), g(6), g(8), g(10), g(20), g(30)]
'''

# parts of sources for which this library differs from PyTorch, and why
DIFFERENT = (
    # same as in Python; PyTorch splits and fills in another way
    ".split(None, 1)", ".splitlines(", "'-12'.zfill",
    # an error here; PyTorch gives the lowest byte, or what the processor makes of a value that does not fit an integer
    'chr(300)', '1 << 64', '1 << -1', "int(float('inf'))", "int(float('nan'))", 'float(2j)', '[(1, 2)] % ',
    # an integer of more than 64 bits, which wraps around in PyTorch
    'math.factorial(21)', '%c\' % 1114112',
    # accepted here, with Python's result
    "'%x %X %o", "'%e %f %g", '(1+2j) ** 2\n', '(0j) ** 0', '(1+2j) != 1', '(1+2j) == 1\n', '(1+2j) / 2', '[1] * -1', 'x: Any = [1, 2]', 'g([], {}, (1, ',
    'import math\n    return', '{(1,2): 3}', 'if x > 1]', 'if x > 1}', 'tuple()', 'tuple([1,2])', 'print(1)',
    'dtype=torch.float32).size()', "hasattr(torch.ones(2), 'shape')", 'zip((1,2),[3,4])', '    x: int\n', 'x: Optional[int] = 5\n    return x + 1',
    '([], 2)', '[a, *b] =', 'x: Optional[List[int]] = [1]\n', 'a, b = torch.ones(2)', 'def g():\n',
    # refused here: lists and dicts of unions, generators, arguments of another kind
    '[1, 2.5]\n', "[1, 'a']\n", "'b': 2.0}", "dict(a=1, b='x')", 'return x for', 'return g(5)', "'a' f'{1}'",
    # None, which is an undefined tensor in PyTorch; an integer with a leading zero
    'torch.ones(2).grad', '0777',
    # refused here: a function without an annotation must return the same type everywhere
    'if x > 1:\n        return 1\ndef f()',
)

# '%...' % (argument,): every letter with every kind of argument
LETTERS = 'sdifFeEgGcrxXoau5-.q'
ARGUMENTS = ['1', '-3', '0', 'True', '2.5', '-2.5', '-0.5', '3.0', "float('inf')", "float('-inf')", "float('nan')", '1e300', '-1e300', '1e18',
             '9223372036854775807', "'a'", "'ab'", "''", 'None', '[1, 2]', 'torch.ones(2)', 'torch.tensor(3)', 'torch.tensor(2.5)', '(1, 2)', '2j',
             "{'a': 1}", '98', '300', "torch.device('cpu')"]


def by_script(source, folder):
    path = os.path.join(folder, 'row.py')
    with open(path, 'w') as file:
        file.write(HEAD + source + TAIL)
    spec = importlib.util.spec_from_file_location('row', path)
    module = importlib.util.module_from_spec(spec)
    sys.modules['row'] = module
    spec.loader.exec_module(module)
    return torch.jit.script(module.the_text)()


def by_unit(source, folder):
    return torch.jit.CompilationUnit(source + TAIL).the_text()


def apart(how, source):
    """Returns PyTorch's result, or None if PyTorch refuses the source, crashes, or takes more than ten seconds."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(read)
        null = os.open('/dev/null', os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(10)
        with tempfile.TemporaryDirectory() as folder:
            try:
                os.write(write, b'=' + how(source, folder).encode())
            except BaseException as error:
                os.write(write, b'!' + str(error).encode()[-2000:])
        os._exit(0)
    os.close(write)
    text = b''
    while (more := os.read(read, 65536)):
        text += more
    os.close(read)
    os.waitpid(pid, 0)
    return text[1:].decode() if text[:1] == b'=' else None


def pytorch(source):
    text = apart(by_script, source)
    return apart(by_unit, source) if text is None else text


def percent(letter, argument):
    """Returns the source and the result of '<%...>' % argument in this library.  The result is Python's in these
    cases: PyTorch refuses the letter, the argument is a bool, or PyTorch would first convert a float to an int or to
    32 bits."""
    source = "def f() -> str:\n    return '<%%%s>' %% (%s,)\n" % (letter, argument)
    value = eval(argument)
    try:
        python = ('<%' + letter + '>') % (value,)
    except (TypeError, ValueError, OverflowError):
        python = None
    number = isinstance(value, (int, float))
    if letter in 'gGxXo' or (letter == 'r' and (value is None or isinstance(value, int))):
        text = python if number or value is None else None
    elif number and letter in 'difFeEc' and (isinstance(value, bool) or (isinstance(value, float) and not abs(value) < 1e9 and
                                                                         (letter in 'di' or abs(value) < 1e301))):
        text = python
    elif letter == 'c' and isinstance(value, int) and value > 255:
        text = None                                       # PyTorch gives the lowest byte
    else:
        text = pytorch(source)
    return source, text


def rows():
    for line in EXPRESSIONS.strip('\n').split('\n'):
        yield 'def f():\n    return %s\n' % line
    for body in BODIES.strip('\n').split('\n--\n'):
        yield 'def f():\n' + ''.join('    %s\n' % line for line in body.split('\n'))
    for source in SOURCES.strip('\n').split('\n--\n'):
        yield source + '\n'


def main():
    found = [percent(letter, argument) for letter in LETTERS for argument in ARGUMENTS
             if letter != 'c' or argument not in ('-3', '9223372036854775807')]     # a single byte is not valid UTF-8
    seen = {source for source, _ in found}
    for source in rows():
        if source not in seen and not any(part in source for part in DIFFERENT):
            found.append((source, pytorch(source)))
            seen.add(source)
    found = [one for one in found if '\0' not in (one[1] or '')]      # this library ends strings of JSON at a zero
    lines = [json.dumps({'source': source, 'gives': text} if text is not None else {'source': source, 'refused': True}) for source, text in found]
    print('[' + ',\n'.join(lines) + ']')


if __name__ == '__main__':
    main()
