"""Writes scripts.json: sources of TorchScript, arguments, and PyTorch's results.
    python3 tests/golden/make_scripts.py > tests/golden/scripts.json"""
import copy, importlib.util, json, os, sys, tempfile, warnings
import torch
from typing import *
warnings.filterwarnings("ignore")

CASES = []
def case(source, *calls):
    CASES.append((source, calls))

x = torch.tensor([[1., -2., 3.], [4., 5., -6.]])
v = torch.tensor([1., 2., 3.])
i = torch.tensor([2, 0, 1])
case("""
def f(x: Tensor, n: int) -> Tensor:
    y = 2 * x + n
    if bool(x.sum() > 0) and n > 1:
        y = torch.relu(y)
    else:
        y = -y
    for i in range(n):
        y += i
        if i == 3:
            break
    y[0, 1:] = 5
    while n < 10:
        n += 1
        if n == 5:
            continue
    return y[..., None, 0] if n > 3 else y
""", ("f", x, 2), ("f", x, 0), ("f", -x, 6))
case("""
def g(x: Tensor) -> Tensor:
    for i in range(3):
        if bool(x.sum() > 0):
            return x
        x = x + 1
    return x
""", ("g", x), ("g", -x), ("g", -x * 10))
case("""
def early(n: int) -> int:
    if n > 10:
        return 1
    elif n > 5:
        return 2
    n = n * 2
    if n < 0:
        return n
    return n + 100
def loops(n: int) -> Tuple[int, int]:
    total = 0
    for i in range(n):
        for j in range(i, n):
            if j == 3:
                continue
            if i * j > 6:
                break
            total += i + j
            if total > 40:
                return total, i
    return total, -1
""", ("early", 20), ("early", 7), ("early", -3), ("early", 3), ("loops", 3), ("loops", 5), ("loops", 9))
case("""
def strings(s: str, n: int) -> List[str]:
    out = [s.upper(), s + "!", s[1:], s[-1], "{}-{}".format(s, n), str(n), "a,b".split(",")[1]]
    out.append(",".join(["x", "y"]))
    out.append(s.replace("e", "E"))
    out.append("yes" if "ell" in s else "no")
    out.append("%d:%s" % (n, s))
    return out
def count(s: str) -> Dict[str, int]:
    d: Dict[str, int] = {}
    for c in s:
        if c in d:
            d[c] += 1
        else:
            d[c] = 1
    return d
""", ("strings", "hello", 7), ("count", "hello"))
case("""
def lists(n: int) -> Tuple[List[int], int, List[float], bool]:
    a = [1, 2, 3]
    a.append(n)
    a.extend([7, 8])
    a.insert(0, 99)
    p = a.pop()
    a.reverse()
    a.sort()
    b = [float(i) * 0.5 for i in a]
    a[0] = -1
    del a[1]
    c = a[1:4] + a[::2]
    return c, p + len(a) + max(a) + min(1, n) + sum(a), b, 3 in a
def nested(n: int) -> List[List[int]]:
    out: List[List[int]] = []
    for i in range(n):
        out.append([j * i for j in range(i)])
    return out
""", ("lists", 5), ("nested", 4))
case("""
def opt(x: Tensor, a: Optional[int], b: Optional[Tensor] = None) -> Tensor:
    if a is not None:
        x = x + a
    if b is None:
        return x
    return x * b
def opt2(a: Optional[int]) -> int:
    if a is None:
        a = 5
    return a + 1
def opt3(a: Optional[int], b: Optional[int]) -> int:
    if a is not None and b is not None:
        return a * b
    if a is None or a > 3:
        return -1
    return a
def opt4(a: Optional[List[int]]) -> int:
    assert a is not None
    return len(a)
""", ("opt", x, 2), ("opt", x, None), ("opt", x, 1, v), ("opt2", None), ("opt2", 3), ("opt3", 2, 3), ("opt3", None, 3),
 ("opt3", 2, None), ("opt3", 7, None), ("opt4", [1, 2]))
case("""
def tuples(t: Tuple[int, float, str]) -> Tuple[str, float]:
    a, b, c = t
    u = (a, (b, c))
    d, (e, f) = u
    return f + str(d), t[1] + e
def swap(a: int, b: int) -> Tuple[int, int]:
    a, b = b, a
    return a, b
def zipped(a: List[int], b: List[float]) -> float:
    total = 0.0
    for i, (p, q) in enumerate(zip(a, b)):
        total += i * p * q
    for k in (1, 2.5):
        total += k
    return total
""", ("tuples", (1, 2.5, "z")), ("swap", 1, 2), ("zipped", [1, 2, 3], [0.5, 1.5, 2.5]))
case("""
def dicts(d: Dict[str, Tensor], k: str) -> Tuple[Dict[str, Tensor], List[str], int]:
    if k in d:
        d[k] = d[k] * 2
    else:
        d[k] = torch.zeros([2])
    names = [n for n in d.keys()]
    total = 0
    for key, value in d.items():
        total += value.numel() + len(key)
    e = {i: i * i for i in range(4)}
    total += e[3] + e.get(7, 100)
    d.pop(k)
    return d, names, total
""", ("dicts", {"a": x, "bb": v}, "a"), ("dicts", {"a": x}, "c"))
case("""
def slices(x: Tensor, i: Tensor) -> List[Tensor]:
    y = x.clone()
    y[0] = 1
    y[:, 1:3] += 2
    y[:, 0] = x[:, 2]
    y[1, i[0]] = 7.5
    y[y > 6] = -1
    return [x[0], x[0, 1], x[:, -1], x[..., 1], x[None], x[:, ::2], x[:, i], x[1:, i], x[x > 0], y, x[:, None, 1],
            x[i[1]], x[[0, 1, 0]], x[0][1:], x[-1, :2]]
""", ("slices", x, i))
case("""
def arith(a: int, b: float) -> Tuple[int, float, float, float, int, float, bool, int, int]:
    return a // 2 + a % 3, a / 4, b ** 2, a ** 2, -a, float(a) + int(b), a < b <= 10.0, a & 6 | 1, a << 2 ^ 3
def more(a: int, b: int) -> Tuple[int, float, float, int, bool, bool]:
    return abs(-a), round(2.6), math.sqrt(float(a)), min(a, b), not a == b, a != b and (a > 2 or b > 2)
def compare(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    return 1 - x, 2 / x, 3 < x, x ** 2, 5 * x % 3
def inplace(x: Tensor) -> Tensor:
    x = x.clone()
    x += 1
    x *= 2
    x -= x / 3
    x /= 2
    return x
""", ("arith", 7, 2.5), ("more", 4, 3), ("compare", x), ("inplace", x))
case("""
def newton(x: Tensor, tol: float = 1e-4) -> Tuple[Tensor, int]:
    y = torch.ones_like(x)
    it = 0
    while bool((y * y - x).abs().max() > tol) and it < 50:
        y = 0.5 * (y + x / y)
        it += 1
    return y, it
def collatz(n: int) -> List[int]:
    out = [n]
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        out.append(n)
    return out
""", ("newton", v), ("newton", v, 0.5), ("collatz", 6))
case("""
class Counter:
    def __init__(self, start: int, step: int = 1):
        self.n = start
        self.step = step
        self.log: List[int] = []
    def add(self, k: int) -> int:
        self.n += k * self.step
        self.log.append(self.n)
        return self.n
    def __len__(self) -> int:
        return len(self.log)
    def __getitem__(self, i: int) -> int:
        return self.log[i]
    def __add__(self, other: int) -> int:
        return self.n + other
def use(n: int) -> Tuple[int, int, List[int], int, int]:
    c = Counter(10, step=2)
    for i in range(n):
        c.add(i)
    d = c
    d.n = d.n + 1000
    return c.n, len(c), c.log, c[0], c + 5
""", ("use", 4))
case("""
def helper(x: Tensor, k: int = 3) -> Tensor:
    return x * k
def twice(x: Tensor) -> Tensor:
    return helper(helper(x), k=2) + helper(k=1, x=x)
def untyped(x, y):
    return x.matmul(y.t())
""", ("twice", v), ("untyped", x, x))
case("""
def checks(x: Tensor, kind: str) -> Tensor:
    if kind == "sum":
        y = x.sum()
    elif kind == "max":
        y = x.max()
    else:
        raise ValueError("bad kind " + kind)
    assert bool(y > 0), "must be positive"
    return y
""", ("checks", x, "sum"), ("checks", x, "max"), ("checks", x, "what"), ("checks", -x, "sum"))
case("""
def factory(n: int) -> Tuple[Tensor, Tensor, Tensor, Tensor, int, List[int]]:
    a = torch.zeros(2, n)
    b = torch.full([n], 2.5)
    c = torch.arange(n)
    d = torch.tensor([[1, 2], [3, n]])
    return a, b, c, d.to(torch.float32), a.size(1) + a.dim() + a.numel(), a.shape
def reduce(x: Tensor) -> List[Tensor]:
    return [x.sum(), x.sum(0), x.sum(dim=1, keepdim=True), x.mean([0, 1]), torch.cat((x, x), dim=1), torch.stack([x, x]),
            x.view(-1), x.view(3, 2), x.reshape([6]), x.permute(1, 0), x.t().contiguous(), x.max(1)[0], x.T]
def multi(x: Tensor) -> Tuple[Tensor, Tensor]:
    values, indices = x.max(dim=1)
    v, j = torch.topk(x, 2)
    return values + v[:, 0], indices + j[:, 1]
def loss(x: Tensor, t: Tensor) -> Tensor:
    return F.relu(x).sum() + torch.nn.functional.mse_loss(x, t)
""", ("factory", 3), ("reduce", x), ("multi", x))
case("""
def whiles(n: int) -> int:
    k = 0
    while True:
        k += 1
        if k > n:
            break
    return k
def find(a: List[int], b: int) -> int:
    for i, e in enumerate(a):
        if e == b:
            return i
    return -1
def deep(n: int) -> str:
    out = ""
    for i in range(n):
        j = 0
        while j < 10:
            j += 1
            if j % 2 == 0:
                continue
            if j > i:
                break
            out += str(j)
        if len(out) > 8:
            break
    return out
""", ("whiles", 5), ("find", [4, 5, 6], 6), ("find", [4], 9), ("deep", 9))
case("""
def isinst(a: Union[int, str]) -> str:
    if isinstance(a, int):
        return str(a + 1)
    else:
        return a + "!"
def listcomp(x: List[Tensor]) -> List[Tensor]:
    return [y.sum() * 2 for y in x]
def rng() -> List[int]:
    return [i for i in range(10, 0, -3)]
def fstring(n: int, s: str) -> str:
    return f"{n}: {s}/{n + 1}"
""", ("isinst", 4), ("isinst", "q"), ("listcomp", [x, v]), ("rng",), ("fstring", 3, "k"))

case("""
def losses(x: Tensor, t: Tensor):
    p = torch.sigmoid(x)
    return (F.binary_cross_entropy(p, torch.ones_like(x), reduction='sum'), F.kl_div(F.log_softmax(x, 1), p),
            F.smooth_l1_loss(x, p, beta=0.5), F.huber_loss(x, p, 'none', 0.3), F.mse_loss(x, p, reduction='none'),
            F.margin_ranking_loss(x[:, 0], x[:, 1], torch.ones(2), 0.5), F.triplet_margin_loss(x, p, x * 2),
            F.binary_cross_entropy_with_logits(x, p, pos_weight=torch.ones(3) * 2), F.l1_loss(x, p, False),
            F.cross_entropy(x, t, torch.arange(3.), ignore_index=1), F.nll_loss(x, t, reduction='sum'))
def activations(x: Tensor):
    y = x[None]
    return (F.softmax(y), F.log_softmax(x), F.softmin(x, 1), F.softmax(x[0]), F.tanhshrink(x), F.celu(x, 2.),
            F.logsigmoid(x), F.hardtanh(x, -0.5, 0.5), F.adaptive_max_pool1d(x, 2), F.instance_norm(y),
            F.adaptive_max_pool2d(y, (2, 2)), F.glu(torch.cat([x, x], 1)), F.rms_norm(x, [3]), F.normalize(x))
def images(x: Tensor):
    y = x[None, None]
    return (F.interpolate(y, scale_factor=2.0), F.interpolate(y, size=[3, 4]), F.unfold(y, 2), F.fold(F.unfold(y, 2),
            [2, 3], 2), F.interpolate(y, size=(3, 4), mode='bilinear', align_corners=True),
            F.grid_sample(y, torch.zeros(1, 2, 2, 2), align_corners=True), F.embedding(torch.tensor([1, 0]), x, -1))
def bad(x: Tensor):
    return F.mse_loss(x, x, reduction='most')
""", ("losses", x, torch.tensor([2, 0])), ("activations", x), ("images", x), ("bad", x))
case("""
def casts(x: Tensor):
    y = x.to("cpu").to(torch.device("cpu"), torch.float64).cpu()
    return x.long(), x.double(), x.type(torch.int64), x.to(y), y.float(), x.max(dim=1).values, x.sort(1).indices
def remainder(x: float):
    return math.remainder(x, 4.0), math.fmod(x, 4.0), x % 4.0
def joined(d: Dict[str, List[int]]) -> Dict[str, List[int]]:
    d["b"] = [9]
    d["b"] += [5]
    d["b"][0] += 1
    return d
""", ("casts", x), ("remainder", 7.0), ("remainder", -6.5), ("joined", {"a": [1]}))
case("""
class Acc(object):
    def __init__(self, start: int):
        self.total = start
    @property
    def double(self) -> int:
        return self.total * 2
    @staticmethod
    def triple(n: int) -> int:
        return n * 3
def members(n: int):
    a = Acc(n)
    a.total += 1
    return a.double + Acc.triple(4), a.double
""", ("members", 5))
case("""
class Item(object):
    def __init__(self, n: int, s: str = "a"):
        self.n = n
        self.s = s
    def __lt__(self, other: "Item") -> bool:
        return self.n < other.n
def orders(ns: List[int], names: List[str]):
    items = [Item(n, s) for n, s in zip(ns, names)]
    up = sorted(items)
    before = [i.s for i in items]
    items.sort(reverse=True)
    pairs = [(i.n % 2, i) for i in up]
    pairs.sort()
    return [i.s for i in up], before, [i.s for i in items], [i.s for _, i in pairs]
""", ("orders", [3, 1, 2, 5, 4], ["c", "a", "b", "e", "d"]))
case("""
class Stands(object):
    def __init__(self, n: int):
        self._n = n
    @property
    def n(self) -> int:
        return self._n
    @n.setter
    def n(self, v: int):
        self._n = v * 2
    def __iadd__(self, o: int):
        self._n += o
        return self
    def __bool__(self) -> bool:
        return self._n > 0
    def __round__(self) -> int:
        return self._n * 100
    def __hex__(self) -> str:
        return "h" + hex(self._n)
    def __oct__(self) -> str:
        return "o"
    def __complex__(self) -> complex:
        return complex(self._n, 1)
def stands(k: int):
    s = Stands(k)
    s += 3
    a = s.n
    s.n = a
    s.n += 1
    return a, s.n, (1 if s else 2), not s, round(s), hex(s), oct(s), complex(s) == complex(s.n, 1)
""", ("stands", 1), ("stands", -3), ("stands", -9))

MODULES = {}
def module_of(source):
    """Imports the source as a module from a file: torch.jit.script reads its lines."""
    if source not in MODULES:
        path = os.path.join(tempfile.mkdtemp(), "script%d.py" % len(MODULES))
        open(path, "w").write("import torch, math\nimport torch.nn.functional as F\nfrom torch import Tensor\n"
                              "from typing import *\n" + source)
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
    return t

out = []
for source, calls in CASES:
    names = ["f"]
    for c in calls:
        entry = {"source": source, "call": c[0], "args": [tree(a) for a in c[1:]]}
        src = source
        try:
            fn = getattr(module_of(src), c[0])
            args = [a.clone() if isinstance(a, torch.Tensor) else copy.deepcopy(a) for a in c[1:]]
            entry["result"] = tree(torch.jit.script(fn)(*args))
        except Exception as e:
            msg = str(e).strip().split("\n")
            entry["error"] = [m for m in msg if m.strip()][-1].strip()
            print(c[0], str(e)[-300:], file=sys.stderr)
        out.append(entry)
merged = []
for e in out:
    if merged and merged[-1]["source"] == e["source"]: merged[-1]["calls"].append({k: e[k] for k in e if k != "source"})
    else: merged.append({"source": e["source"], "calls": [{k: e[k] for k in e if k != "source"}]})
json.dump(merged, sys.stdout, indent=0)
print()
