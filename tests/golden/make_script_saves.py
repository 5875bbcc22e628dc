#!/usr/bin/env python3
"""Writes script_saves.json: sources with each construct that a script may have, arguments, and PyTorch's results.

    python3 tests/golden/make_script_saves.py
    python3 tests/golden/make_script_saves.py --check LIBRARY [JSON ...]

--check loads a shared library of opdispatch, and saves each source with opd_script_save, also the sources in JSON
files.  It loads each saved file with torch.jit.load, runs it in PyTorch, and compares the result with the case.  Needs
PyTorch 2.15."""
import ctypes, importlib.util, json, os, sys, tempfile, warnings
import torch
warnings.filterwarnings("ignore")

HERE = os.path.dirname(os.path.abspath(__file__))
JSON = os.path.join(HERE, "script_saves.json")
CASES = []
def case(source, *calls):
    CASES.append((source, calls))

x = torch.tensor([[1., -2., 3.], [4., 5., -6.]])
v = torch.tensor([1., 2., 3.])
case("""
import torch
import torch.nn.functional as F
from typing import List, Optional
@torch.jit.script
def decorated(x, y):
    z = 5 if bool(x[0] == 42) else 10
    return x.matmul(y) + z
""", ("decorated", v, v))
case('''
def documented(x):
    """What it does."""
    # a comment
    return x + 1  # and another
def typed(x, n):
    # type: (Tensor, int) -> Tensor
    """A text behind the types."""
    return x * n
def many(x, n=2):
    # type: (Tensor, int) -> Tensor
    return typed(x, n) - 1
''', ("documented", v), ("typed", v, 3), ("many", v, 2))
case("""
def spelled(x: torch.Tensor, w: 'Tensor', ks: Optional[List[int]] = None, name: str = 'a"b\\\\\\n\\t\\'', up: bool = True,
            half: float = .5, far: float = 1e-30, big: int = -9223372036854775807, pair: Tuple[int, float] = (1, 2.)) -> Tuple[Tensor, str, int, float, Tuple[int, float], int]:
    y = x + w
    if ks is not None:
        for k in ks:
            y = y * k
    return y, name, (1 if up else 0), half + far, pair, big
def keywords(x: Tensor, *, n: int = 2, scale: float = 3.) -> Tensor:
    return x * n + scale
def mutable(keys: List[float] = [1., 2.5]) -> List[float]:
    return [k * 2 for k in keys]
def calls(x: Tensor) -> Tensor:
    return keywords(x, scale=1., n=4) + keywords(x) + spelled(w=x, x=x, ks=[2, 3])[0]
""", ("spelled", v, v), ("spelled", v, v, [2, 3]), ("keywords", v), ("calls", v), ("mutable",), ("mutable", [3.]))
case("""
def augmented(x: Tensor, n: int, f: float) -> Tuple[Tensor, int, float, str, List[int], int]:
    y = x.clone()
    y += 1
    y -= x
    y *= 3
    y /= 2
    y[0] += 10
    y[1:] -= 1
    n += 2
    n *= 3
    n -= 1
    n //= 2
    n %= 7
    f **= 2
    f /= 3
    s = 'a'
    s += 'b'
    k = [1]
    k += [2, 3]
    k[1] += 5
    b = 6
    b |= 1
    b &= 5
    b ^= 2
    b <<= 3
    b >>= 1
    return y, n, f, s, k, b
""", ("augmented", v, 5, 2.5))
case("""
def comprehended(n: int, words: List[str], d: Dict[str, int]):
    a = [i * i for i in range(n)]
    b = [w + '!' for w in words]
    c = {w: len(w) for w in words}
    e = [k for k in d]
    g = [i for i in a if i % 2 == 0]
    return a, b, c, e, g
""", ("comprehended", 5, ["x", "yes"], {"k": 1}), ("comprehended", 0, ["z"], {"m": 1, "n": 2}))
case("""
def sliced(x: Tensor, l: List[int], s: str):
    return x[0], x[-1, 1:], x[:, ::2], x[..., None], x[None, 0, :-1], l[1:], l[:-1], l[::2], l[-2], s[0], s[1:], s[-1]
def indexed(x: Tensor, i: Tensor):
    y = x.clone()
    y[0, 1] = 9
    y[:, 0] = torch.tensor([7., 8.])
    y[y > 8] = 0.
    return x[i], x[:, i], x[x > 0], y, x[i][0], x[i, i]
""", ("sliced", x, [1, 2, 3, 4], "text"), ("indexed", x, torch.tensor([1, 0])))
case("""
def compared(a: int, b: float, s: str, x: Tensor):
    c = 0 < a < 5 <= b
    d = a == 1 or not b > 2 and s != 'x'
    e = s in ['a', 'x'] and a not in [7, 8]
    g = a if a > 1 else -a
    h = (a if b > 1 else a + 1) if c else 0
    return c, d, e, g, h, bool((x > 0).all()), x is None, x is not None
""", ("compared", 3, 6.5, "x", v), ("compared", 0, 1., "b", -v))
case("""
def raised(n: int, x: Tensor) -> Tensor:
    assert n >= 0, 'n is negative'
    assert n != 5
    if n == 1:
        raise ValueError('one: {}'.format(n))
    elif n == 2:
        raise RuntimeError('two')
    return x * n
def always(x: Tensor) -> Tensor:
    if bool(x.sum() > 100):
        y = x
    else:
        raise Exception(f'sum {int(x.sum())} is "small"')
    return y
""", ("raised", 3, v), ("raised", -1, v), ("raised", 1, v), ("raised", 2, v), ("always", v), ("always", v * 100))
case("""
def looped(n: int, x: Tensor):
    total = 0
    seen: List[int] = []
    for i in range(n):
        if i == 2:
            continue
        if i == 6:
            break
        for j in range(i, n, 2):
            if j > 5:
                break
            total += j
            seen.append(j)
    while True:
        total -= 3
        if total < 0:
            break
    k = 0
    while k < n and total < 100:
        k += 1
        total += k
    for a, b in zip(seen, range(3)):
        total += a * b
    for i, a in enumerate(seen):
        if a == 3:
            return total, seen, i
    for row in x:
        total += int(row.sum())
    for c in 'abc':
        total += ord(c)
    for i in range(2):
        pass
    return total, seen, -1
def swapping(n: int) -> Tuple[int, int]:
    a, b = 0, 1
    for i in range(n):
        a, b = b, a + b
    return a, b
def counting(n: int) -> int:
    i = 0
    for k in range(n):
        i = k
    return i
def until(x: Tensor) -> Tensor:
    while bool(x.sum() < 100):
        x = x * 2
    return x
def nothing(n: int):
    while n > 3:
        n -= 1
def optional(n: int) -> Optional[int]:
    best: Optional[int] = None
    for i in range(n):
        if best is None or i * i % 7 > best:
            best = i * i % 7
    return best
""", ("looped", 8, x), ("looped", 3, x), ("looped", 0, x), ("swapping", 10), ("counting", 4), ("until", v), ("nothing", 5),
     ("optional", 6), ("optional", 0))
case("""
class Plain:
    def __init__(self, k: int):
        self.k = k
        self.names = ['a']
    def go(self, x):
        self.names.append('b')
        return x * self.k
class Old(object):
    k: int
    def __init__(self, k: int):
        self.k = k
class Declared:
    scale: float
    maybe: Optional[Tensor]
    def __init__(self, scale: float, maybe: Optional[Tensor] = None):
        self.scale = scale
        self.maybe = maybe
        self.inner = Old(3)
    @property
    def twice(self) -> float:
        return self.scale * 2
    @staticmethod
    def third(x: Tensor) -> Tensor:
        return x / 3
    def __add__(self, other: float) -> float:
        return self.scale + other
    def __getitem__(self, i: int) -> int:
        return i * 10
    def __len__(self) -> int:
        return 4
    def run(self, x: Tensor) -> Tensor:
        m = self.maybe
        if m is not None:
            x = x + m
        return Declared.third(x) * self.twice * self.inner.k
def objects(x, k: int):
    m = Plain(k)
    y = m.go(x)
    m.k += 1
    d = Declared(2.)
    e = Declared(.5, x)
    return y, m.go(x), m.names, d.run(x), e.run(x), d + 1., d[3], len(d)
def kept(n: int) -> List[int]:
    all = [Old(3), Old(1)]
    all.append(Old(n))
    d = {'a': Old(7)}
    d['b'] = all[0]
    d['b'].k += 100
    return [o.k for o in all] + [d['a'].k, d['b'].k]
""", ("objects", v, 3), ("kept", 5))
case("""
class Ordered:
    def __init__(self, k: int):
        self.k = k
    def __lt__(self, other: 'Ordered') -> bool:
        return self.k < other.k
def in_order(k: int) -> List[int]:
    all = [Ordered(3), Ordered(1), Ordered(k)]
    all.sort()
    return [o.k for o in all]
""", ("in_order", 2), ("in_order", 9))
case("""
class Point(NamedTuple):
    x: Tensor
    n: int
def named(x, n: int) -> Tuple[Tensor, int, Tensor]:
    p = Point(x, n)
    q = Point(n=p.n + 1, x=p.x * 2)
    a, b = q
    return p.x + q.x, q.n + b, q[0]
""", ("named", v, 3))
case("""
from enum import Enum
class Color(Enum):
    RED = 1
    GREEN = 2
class Mode(Enum):
    SLOW = 'slow'
    FAST = 'fast'
def members(n: int):
    c = Color.RED if n > 1 else Color.GREEN
    m = Mode.SLOW
    return c.value, c.name, c == Color.RED, m.value, Mode.FAST.value, [k.name for k in Color]
""", ("members", 1), ("members", 2))
case("""
def refined(a: Optional[int], x: Optional[Tensor], l: List[Optional[int]]):
    n = 0
    if a is not None:
        n += a
    if x is None:
        x = torch.zeros([2])
    for e in l:
        if e is None:
            n += 100
        else:
            n += e
    b: Optional[Tensor] = None
    if n > 5:
        b = x * 2
    return n, x, b, a if a is not None else 7
def either(a: Union[int, str, List[int]]) -> int:
    if isinstance(a, int):
        return a + 1
    elif isinstance(a, str):
        return len(a)
    elif isinstance(a, List[int]):
        return a[0]
    return -1
def newer(a: int | None, b: list[int], c: dict[str, int], d: tuple[int, str]) -> int:
    if a is None:
        a = 0
    return a + b[0] + c['k'] + d[0]
def annotated(n: int):
    a: List[int] = []
    b: Dict[str, Tensor] = {}
    c = torch.jit.annotate(List[Optional[int]], [n, None])
    d: Optional[float] = None
    e: List[Tuple[int, str]] = [(1, 'a')]
    a.append(n)
    e.append((n, 'b'))
    b['t'] = torch.ones([1]) * n
    return a, b, c, d, e
""", ("refined", 3, v, [1, None]), ("refined", None, None, [None, 2]), ("either", 4), ("either", "abc"), ("either", [9]),
     ("newer", None, [1], {"k": 2}, (3, "a")), ("annotated", 5))
case("""
def literals():
    a = [1, 2]
    b = [1.5, 2.]
    c = ['a', "b'c", 'd"e', '\\u00e9\\n']
    d = {'a': 1, 'b': 2}
    e = {1: 'x', -2: 'y'}
    g = (1, 'a', 2.5, True, None)
    h = [[1], [2, 3]]
    i = (4,)
    j = ()
    k = [(1, 'z')]
    l = {'m': [1., 2.]}
    return a, b, c, d, e, g, h, i, j, k, l
def numbers():
    return 0x1F, 0b101, 1_000_000, 1e300, 1e-300, .1, 0.1 + 0.2, -0.0, 3.0, 123456789012345678, float('inf'), -float('inf'), \\
        2 ** 62, 10 ** 20., 1e16, 123456789.125
def unpacked(t: Tuple[int, Tuple[str, float]], l: List[int]):
    a, (b, c) = t
    d, e = l
    g = h = a + d
    (i, j), k = (a, b), c
    return a, b, c, d, e, g, h, i, j, k, t[1][0], t[0:1], t[-1]
def dicts(d: Dict[str, int]):
    keys = list(d.keys())
    values = list(d.values())
    total = 0
    for k, e in d.items():
        total += e
    for k in d:
        total += d[k]
    d['new'] = 5
    got = d.get('none')
    d.update({'x': 9})
    popped = d.pop('new')
    del d['x']
    return keys, values, total, 'a' in d, len(d), got, popped, d.get('a', 3), d.setdefault('s', 6)
def lists(l: List[int]):
    m = l.copy()
    m.append(5)
    m.extend([7, 8])
    m.insert(0, 9)
    p = m.pop()
    m.remove(5)
    m.reverse()
    n = sorted(m)
    m.sort(reverse=True)
    del m[0]
    return m, p, n, m.index(9), m.count(1), max(m), min(m), sum(m), 3 in m, l + m, l * 2, l == m, [1] + l, any([True, False])
""", ("literals",), ("numbers",), ("unpacked", (1, ("a", 2.5)), [3, 4]), ("dicts", {"a": 1, "b": 2}), ("lists", [1, 9, 3]))
case("""
def formatted(n: int, f: float, s: str, x: Tensor):
    a = f'{n} and {s}: {f}!'
    b = '{} {}'.format(n, s)
    c = '%d %s %f' % (n, s, f)
    d = '%s' % s
    e = f'{n + 1}-{s}'
    return a, b, c, d, e, str(n) + s, s.upper(), s.split('b'), s.replace('a', 'z'), '-'.join(['p', 'q']), s.strip(), \\
        s.find('b'), s.startswith('a'), len(s), 'b' in s, s == 'abc', ord('a'), chr(98), hex(n), bin(n)
def printed(n: int, x: Tensor) -> int:
    print(n)
    print('n', n, [1, 2], 'end')
    print()
    return n
""", ("formatted", 3, 2.5, "abc", v))
case("""
import math
def numbers_of(n: int, f: float):
    return math.sqrt(f), math.floor(f), math.ceil(f), math.pi, math.e, math.exp(f), math.log(f), math.sin(f), \\
        math.pow(f, 2), math.atan2(f, 1.), math.gcd(n, 4), math.factorial(n), math.fabs(-f), math.inf, math.isnan(math.nan), \\
        math.degrees(f), math.remainder(f, 2.), math.copysign(f, -1.)
def operators(n: int, f: float):
    return n / 2, n // 2, n % 3, n ** 2, -n, n & 3, n | 8, n ^ 1, n << 2, n >> 1, f // 2., f % 2., f ** .5, n * f, \\
        abs(-n), round(f), int(f), float(n), bool(n), divmod(n, 2), max(n, 9), min(f, 1.), pow(n, 2)
def complexes(f: float):
    c = complex(f, 2.)
    d = c * 2j
    return abs(d), abs(c), abs(c + 1), c == d
""", ("numbers_of", 6, 2.5), ("operators", 7, 5.5), ("complexes", 1.5))
case("""
import torch.nn.functional as F
import torch
def functions(x: Tensor):
    a = F.relu(x) + torch.relu(x)
    b = F.softmax(x, dim=-1) + F.log_softmax(x, 1)
    c = F.gelu(x) * F.silu(x) + F.leaky_relu(x, 0.2) - F.elu(x)
    d = F.linear(x, torch.ones([2, 3]), torch.ones([2]))
    e = F.layer_norm(x, [3])
    g = F.pad(x, [1, 1])
    h = F.mse_loss(x, x + 1) + F.l1_loss(x, x * 2, reduction='sum')
    i = F.max_pool1d(x.unsqueeze(0), 2) + F.dropout(x, 0.5, training=False)[:, :1].unsqueeze(0)
    j = F.one_hot(torch.tensor([0, 2]), 3)
    k = F.conv1d(x.unsqueeze(0), torch.ones([1, 2, 2]))
    l = F.interpolate(x.unsqueeze(0), scale_factor=2., mode='nearest')
    m = F.cross_entropy(x, torch.tensor([0, 2]))
    n = F.batch_norm(x, torch.zeros([3]), torch.ones([3]))
    return a, b, c, d, e, g, h, i, j, k, l, m, n
def spaces(x: Tensor):
    s = x @ x.t() + 3 * torch.eye(2)
    return torch.linalg.inv(s), torch.linalg.norm(x), torch.linalg.det(s), torch.fft.fft(x).real, torch.fft.rfft(x).imag, \\
        torch.special.expit(x), torch.ops.aten.add(x, x, alpha=2), torch.ops.aten.sum(x)
def tensors(x: Tensor):
    y = x.to(torch.float64).sum(dim=[0, 1], keepdim=True)
    z = torch.zeros([2], dtype=torch.int64, device=x.device)
    a, b = x.max(dim=1)
    c = torch.stack([x, x]).permute(2, 0, 1).contiguous()
    d = torch.cat((x, x), dim=-1).view(2, -1)
    e = x.shape[0] + x.size(1) + x.dim() + x.numel()
    g = x.mean().item() + float(x.std())
    h = x.t().tolist_() if False else x.long()
    q, r = torch.split(x, [1, 1])
    s, t, u = torch.unbind(x, 1)
    w = torch.where(x > 0, x, torch.zeros_like(x)).masked_fill(x > 3, -1.)
    n: List[List[float]] = x.tolist()
    return y, z, a, b, c, d, e, g, h, q + r, s + t + u, w, x.T, x.dtype == torch.float32, n, torch.arange(3), x.new_ones([2]), \\
        torch.einsum('ij,kj->ik', x, x), torch.full([2], 3), torch.tensor([[1, 2], [3, 4]]) / 2, torch.linspace(0, 1, 3)
""".replace("    h = x.t().tolist_() if False else x.long()\n", "    h = x.long()\n"), ("functions", x), ("spaces", x), ("tensors", x))
case("""
def ruled(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
        if bool(y.sum() > 0):
            y = y + 1
    return y
class Counter:
    def __init__(self):
        self.n = 0
    def __enter__(self):
        self.n += 1
        return self.n
    def __exit__(self, type: Any, value: Any, tb: Any):
        self.n += 10
def entered(k: int) -> int:
    c = Counter()
    with c as n:
        k += n
    return k + c.n
""", ("ruled", v), ("entered", 5))
case("""
def leaf(x: Tensor, k: int) -> Tensor:
    if k > 2:
        return x
    for i in range(k):
        if bool(x.sum() > 50):
            return x * i
        x = x + 10
    return x - 1
def middle(x: Tensor) -> Tuple[Tensor, int]:
    y = leaf(x, 1)
    return leaf(y, 2), 3
def outer(x: Tensor) -> Tensor:
    a, n = middle(x)
    return a + leaf(middle(a)[0], n)
def forked(x: Tensor) -> Tensor:
    f = torch.jit.fork(leaf, x, 2)
    return torch.jit.wait(f) + 1
""", ("leaf", v, 2), ("leaf", v * 20, 2), ("middle", v), ("outer", v), ("forked", v))
case("""
def _1(_0: Tensor, _2: Tensor, __3: int) -> Tensor:
    _4 = _0 + _2
    return _4 * __3
def shadowing(len: int, max: Tensor, d: int) -> Tensor:
    sum = max * len
    i = d
    for i in range(3):
        sum = sum + i
    return sum + i
""", ("_1", v, v, 2), ("shadowing", 2, v, 7))
case("""
def forward(x: Tensor) -> Tensor:
    return last(x) * 2
def last(x: Tensor) -> Tensor:
    return x + 1
""", ("forward", v), ("last", v))
case("""
def inplace(x: Tensor) -> Tensor:
    y = x.clone()
    z = y[0]
    z.add_(5)
    y[1:].mul_(2)
    l = [y]
    l[0] += 1
    torch.relu_(y)
    w = y.view(-1)
    w[2] = 100
    return y
def recursive_lists(n: int) -> List[List[int]]:
    out: List[List[int]] = []
    for i in range(n):
        row: List[int] = []
        for j in range(i):
            row.append(j)
        out.append(row)
    return out
def aliases(n: int) -> List[int]:
    a = [1]
    b = a
    for i in range(n):
        if i == 1:
            b = [5]
        b.append(i)
    return a + b
""", ("inplace", v), ("recursive_lists", 3), ("aliases", 3))

case("""
class Empty:
    pass
def hollow(x: Optional[Dict[str, List[Tensor]]] = None) -> Tuple[Optional[Tensor], int]:
    e = Empty()
    if x is None:
        return None, 0
    return x['a'][0], len(x)
def anything(x: Any) -> int:
    if isinstance(x, int):
        return x
    if isinstance(x, str):
        return 5
    return 0
def carried(x: Tensor) -> Tensor:
    y: Optional[Tensor] = None
    for i in range(3):
        if y is None:
            y = x
        else:
            y = y + 1
    assert y is not None
    return y
def ending(n: int) -> str:
    if n > 0:
        return 'a' + "'" + '\\x01'
    raise ValueError('no')
def placed(x: Tensor, d: torch.device, t: torch.dtype) -> Tensor:
    return x.to(d).to(t)
def nested(x: Tensor) -> Tensor:
    def inner(y: Tensor) -> Tensor:
        return y + 1
    return inner(x) * 2
""", ("hollow",), ("hollow", {"a": [v]}), ("anything", 3), ("anything", "a"), ("carried", v), ("ending", 1), ("ending", 0))
case("""
class M(torch.nn.Module):
    def forward(self, x):
        return x * 3
""", ("forward", x))
case("""
class M(torch.jit.ScriptModule):
    @torch.jit.script_method
    def forward(self, x):
        return x * 3
""", ("forward", x))
case("""
import torch
from torch import nn
import torch.nn.functional as F
def shared(x: Tensor, by: float) -> Tensor:
    return x * by
class Layer(nn.Module):
    def __init__(self, n: int, scale: float = 2.):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n, n) * scale)
        self.register_buffer("steps", torch.zeros(1))
        self.register_buffer("hidden", torch.ones(1), persistent=False)
    def forward(self, x):
        return F.linear(x, self.weight) + self.steps + self.hidden
class M(nn.Module):
    \'\'\'A module of parameters, buffers, constants and modules.\'\'\'
    __constants__ = ['k']
    def __init__(self, k: int = 3):
        super(M, self).__init__()
        self.k = k
        self.names = ['a', 'b']
        self.table = {'x': 1.5}
        self.one = Layer(3)
        self.two = Layer(3, scale=.5)
        self.register_parameter('bias', torch.nn.Parameter(torch.full([3], 7.)))
        self.plain = torch.arange(3)
        self.fixed = nn.Parameter(torch.ones(3), requires_grad=False)
        self.maybe: Optional[Tensor] = None
    def helper(self, x: Tensor, n: int) -> Tensor:
        return shared(x, 2.) * n
    @property
    def twice(self) -> int:
        return self.k * 2
    def forward(self, x, more: int = 1):
        if self.training:
            x = x + 1000
        y = self.two(self.one(x)) + self.bias + self.plain + self.fixed
        m = self.maybe
        if m is not None:
            y = y + m
        return self.helper(y, self.twice) + self.table['x'] + len(self.names) + more
""".replace("\\'", "'"), ("forward", x), ("forward", x, 5))

HEAD = "import torch, math\nimport torch.nn.functional as F\nfrom torch import Tensor\nfrom typing import *\n"
MODULES = {}
def module_of(source):
    """Imports the source as a module from a file: torch.jit.script reads its lines."""
    if source not in MODULES:
        path = os.path.join(tempfile.mkdtemp(), "script_saves%d.py" % len(MODULES))
        with open(path, "w") as file: file.write(HEAD + source)
        spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
        MODULES[source] = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = MODULES[source]
        spec.loader.exec_module(MODULES[source])
    return MODULES[source]
def tree(t):
    if isinstance(t, torch.Tensor):
        return {"tensor": t.detach().reshape(-1).to(torch.float64).tolist(), "sizes": list(t.shape),
                "dtype": str(t.dtype).replace("torch.", "")}
    if isinstance(t, tuple): return {"tuple": [tree(e) for e in t]}
    if isinstance(t, list): return {"list": [tree(e) for e in t]}
    if isinstance(t, dict): return {"dict": [[tree(k), tree(e)] for k, e in t.items()]}
    if isinstance(t, float) and t in (float("inf"), -float("inf")): return {"far": 1 if t > 0 else -1}
    return t
def value(t):
    if not isinstance(t, dict): return t
    if "tensor" in t: return torch.tensor(t["tensor"], dtype=getattr(torch, t["dtype"])).reshape(t["sizes"])
    if "list" in t: return [value(e) for e in t["list"]]
    if "tuple" in t: return tuple(value(e) for e in t["tuple"])
    if "far" in t: return t["far"] * float("inf")
    return {value(k): value(e) for k, e in t["dict"]}
def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, atol=1e-5)
    if isinstance(a, (list, tuple)):
        return isinstance(b, type(a)) and len(a) == len(b) and all(same(p, q) for p, q in zip(a, b))
    if isinstance(a, dict): return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    return type(a) == type(b) and (a == b or isinstance(a, float) and abs(a - b) < 1e-9)

def written():
    out = []
    for source, calls in CASES:
        entry = {"source": source, "calls": []}
        module = module_of(source).M() if "class M(" in source else None
        if module: entry["parameters"] = [[n, p.requires_grad] for n, p in module.named_parameters()]
        for name, *args in calls:
            call = {"call": name, "args": [tree(a) for a in args]}
            function = module or getattr(module_of(source), name)
            try: script = torch.jit.script(function)
            except Exception as e:                  # if only this library compiles the source, the result is Python's
                print(name, str(e)[:900], file=sys.stderr)
                script = function
            try: call["result"] = tree(script(*[value(tree(a)) for a in args]))
            except Exception as e: call["error"] = [m for m in str(e).strip().split("\n") if m.strip()][-1].strip()
            entry["calls"].append(call)
        out.append(entry)
    with open(JSON, "w") as file:                 # not to stdout, where sources print
        json.dump(out, file, indent=0)
        file.write("\n")

def check(library, files):
    """Saves with this library and loads with PyTorch.  Returns the number of wrong cases."""
    lib = ctypes.CDLL(os.path.abspath(library))
    lib.opd_script_compile.restype = ctypes.c_void_p
    lib.opd_script_compile.argtypes = [ctypes.c_char_p, ctypes.c_char_p]
    lib.opd_script_save.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
    lib.opd_error_message.restype = ctypes.c_char_p
    wrong = count = 0
    path = os.path.join(tempfile.mkdtemp(), "saved.pt")
    for entry in [e for name in files for e in json.load(open(name))]:
        script = lib.opd_script_compile(entry["source"].encode(), None)
        if not script or lib.opd_script_save(script, path.encode()):
            print(entry["source"], lib.opd_error_message().decode())
            lib.opd_error_clear()
            wrong += 1
            continue
        try: loaded = torch.jit.load(path)
        except Exception as e:
            print(entry["source"], "refused:", str(e)[:2000])
            wrong += 1
            continue
        parameters = [[n, p.requires_grad] for n, p in loaded.named_parameters()]
        if sorted(parameters) != sorted(entry.get("parameters", [])):
            print(entry["source"], "has parameters", parameters)
            wrong += 1
        for call in entry["calls"]:
            count += 1
            try: got = getattr(loaded, call["call"])(*[value(a) for a in call["args"]])
            except Exception as e:
                if "error" in call and call["error"].split(": ", 1)[-1] in str(e): continue
                got = e
            if "error" in call or not same(value(call["result"]), got):
                print(call["call"], call["args"], "gave", str(got)[-1500:], "for", call.get("result", call.get("error")))
                wrong += 1
    print("%d calls of saved scripts, %d wrong" % (count, wrong))
    return wrong

if len(sys.argv) > 2 and sys.argv[1] == "--check":
    sys.exit(check(sys.argv[2], sys.argv[3:] or [JSON, os.path.join(HERE, "scripts.json")]) > 0)
elif len(sys.argv) == 1: written()
else: print(__doc__)
