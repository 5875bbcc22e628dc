# functions whose graphs PyTorch prints
def basic(x, y):
    return x + y * 2
def tut_foo(len):
    # type: (int) -> Tensor
    rv = torch.zeros(3, 4)
    for i in range(len):
        if i < 10:
            rv = rv - 1.0
        else:
            rv = rv + 1.0
    return rv
def if_else(x, n: int):
    if n > 3:
        y = x + 1
    else:
        y = x - 1
    return y
def elif_chain(n: int) -> int:
    if n < 0:
        r = -1
    elif n == 0:
        r = 0
    elif n < 10:
        r = 1
    else:
        r = 2
    return r
def while_loop(x, n: int):
    i = 0
    while i < n:
        x = x * 2
        i += 1
    return x
def while_tensor(x):
    while bool(x.sum() < 100):
        x = x * 2
    return x
def for_range2(x, a: int, b: int):
    s = 0
    for i in range(a, b):
        s = s + i
    return x * s
def for_range3(a: int, b: int, c: int) -> int:
    s = 0
    for i in range(a, b, c):
        s += i
    return s
def for_list(xs: List[int]) -> int:
    s = 0
    for x in xs:
        s += x
    return s
def early_return(x, n: int):
    if n > 0:
        return x + 1
    return x - 1
def early_return2(x, n: int):
    if n > 0:
        y = x + 1
        if n > 10:
            return y
        x = y * 2
    return x
def return_in_loop(xs: List[int], k: int) -> int:
    for i in range(len(xs)):
        if xs[i] == k:
            return i
    return -1
def brk(x, n: int):
    for i in range(n):
        if i > 5:
            break
        x = x + i
    return x
def cont(x, n: int):
    for i in range(n):
        if i % 2 == 0:
            continue
        x = x + i
    return x
def while_brk(n: int) -> int:
    i = 0
    while True:
        i += 1
        if i >= n:
            break
    return i
def nested(x, n: int, m: int):
    for i in range(n):
        for j in range(m):
            if i > j:
                x = x + 1
            else:
                x = x - 1
    return x
def tup_unpack(x, y):
    a, b = x + 1, y + 2
    a, b = b, a
    return a, b
def ret_tuple(x: Tuple[int, int]) -> int:
    a, b = x
    return a + b
def list_lit(x: int) -> List[int]:
    a = [x, 2, 3]
    a.append(4)
    return a
def dict_lit(x: int) -> Dict[str, int]:
    d = {"a": x, "b": 2}
    d["c"] = 3
    return d
def comp(xs: List[int]) -> List[int]:
    return [x * 2 for x in xs]
def opt(x, y: Optional[Tensor]):
    if y is not None:
        x = x + y
    return x
def opt2(x: Optional[int]) -> int:
    if x is None:
        x = 3
    return x
def fmt(x: int) -> str:
    return "x = {} and {}".format(x, 2)
def fstr(x: int) -> str:
    return f"x = {x}!"
def asrt(x, n: int):
    assert n > 0, "n must be positive"
    return x / n
def rais(n: int) -> int:
    if n < 0:
        raise ValueError("bad")
    return n
def prnt(x, n: int):
    print("hello", x, n)
    return x
def aug(x, y):
    x += y
    x *= 2
    return x
def slices(x):
    return x[1:3, 0], x[:, None], x[-1]
def slice_list(x: List[int]):
    return x[1:], x[:2], x[-1]
def idx_assign(x, y):
    x[0] = y
    x[1, 2] = 5.0
    x[:, 1] = 0
    return x
def bool_ops(a: bool, b: bool, n: int) -> bool:
    return a and b or not (n > 2)
def ternary(x, n: int):
    return x if n > 0 else -x
def method_calls(x):
    y = x.view(-1).sum(0)
    return y.max().item()
def mse(x, y):
    d = x - y
    return (d * d).mean()
def chained(a: int, b: int, c: int) -> bool:
    return a < b < c
def enumr(xs: List[float]) -> float:
    s = 0.0
    for i, x in enumerate(xs):
        s += i * x
    return s
def zipp(xs: List[int], ys: List[int]) -> int:
    s = 0
    for x, y in zip(xs, ys):
        s += x * y
    return s
def fib(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a
def strs(s: str) -> List[str]:
    out: List[str] = []
    for w in s.split(" "):
        out.append(w.upper())
    return out
def math_ops(a: int, b: float) -> float:
    return a // 2 + b ** 2 - a % 3 + abs(b)
def min_max(x, lo: float):
    y = torch.clamp(x, min=lo)
    z, i = torch.max(y, dim=1)
    return z, i
def kw(x):
    return torch.sum(x, dim=[0, 1], keepdim=True)
def newton(x, eps: float = 1e-6):
    y = torch.ones_like(x)
    it = 0
    while bool((y * y - x).abs().max() > eps) and it < 50:
        y = 0.5 * (y + x / y)
        it += 1
    return y, it
def collatz(n: int) -> int:
    c = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        c += 1
    return c
def selective_relu(x):
    rv = torch.zeros(3, 4)
    if x.sum() > 0:
        rv = rv + x
    return rv
def call_other(x, n: int):
    y = early_return(x, n)
    z = early_return(y, n + 1)
    return y * z
def call_twice(x):
    a = mse(x, x + 1)
    for i in range(3):
        a = a + mse(x, a)
    return a
def break_nested(n: int, m: int) -> int:
    s = 0
    for i in range(n):
        for j in range(m):
            if j > i:
                break
            s += j
        if s > 100:
            break
    return s
def dict_loop(d: Dict[str, int]) -> int:
    t = 0
    for k, v in d.items():
        if k == "skip":
            continue
        t += v
    return t
def list_build(x, n: int):
    out: List[Tensor] = []
    for i in range(n):
        out.append(x * i)
    return torch.stack(out, dim=0)
def assign_list(xs: List[int], i: int) -> List[int]:
    xs[i] = 5
    xs[0] += 2
    del xs[1]
    return xs
def nested_list(n: int) -> List[List[int]]:
    return [[i * j for j in range(i)] for i in range(n)]
def in_ops(xs: List[int], d: Dict[str, int]) -> bool:
    return 3 in xs and "k" not in d
def ifs_print(x, n: int):
    if n > 2:
        print("big", n)
        x = x.relu()
    elif n < 0:
        raise RuntimeError("negative")
    return x
def float_ops(a: float, n: int) -> float:
    b = a * 2.5 - n
    if b > 1e3:
        b = 1e3
    return float(int(b)) + a / n
def gates(x, h, w):
    ih = torch.mm(x, w)
    g = torch.sigmoid(ih) * torch.tanh(h)
    return g.chunk(2, 1)
def neg_index(x):
    return x[..., -1], x[1:-1], x[::2]
def mask(x):
    x[x > 0] = 0.0
    return x[x < -1]
def unpack_star(t: Tuple[int, int, int]) -> int:
    a, b, c = t
    return max(a, b) + min(b, c)
def swap(x, y, flip: bool):
    if flip:
        x, y = y, x
    return x - y
def softmax(x):
    m = x.max()
    e = torch.exp(x - m)
    return e / e.sum()
def scaled(x, n: float = 2.0, k: int = -3):
    return x * n + k
