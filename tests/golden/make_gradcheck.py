"""Makes gradcheck.txt: the verdicts of PyTorch's gradcheck and gradgradcheck on the functions in test_gradcheck.c.

Lines "NAME CHECK MODE|TEXT": CHECK is gradcheck or gradgradcheck, MODE slow or fast.  TEXT is "passes" or the first
line of the error, without the numbers after "tolerance for nondeterminism was" and without advice for PyTorch's
developers.

usage: make_gradcheck.py FILE     (PyTorch 1.13)
"""
import sys
import warnings
import torch
from torch.autograd import Function


def numbers(n):
    return torch.tensor([0.3 + 0.17 * (i * 7 % 11) for i in range(n)], dtype=torch.float64, requires_grad=True)


def by_hand(results, formula):
    """Returns the identity function, with `formula` as its backward."""
    class ByHand(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x.clone() if results == 1 else tuple(x.clone() for _ in range(results))

        @staticmethod
        def backward(ctx, *grads):
            return formula(ctx.saved_tensors[0], *grads)
    return ByHand.apply


runs = 0


def never_the_same(x, g):
    global runs
    runs += 1
    return g * (1 + 1e-7 * (runs % 2))


def one_of_two(a, b):
    if a is None and b is None:
        return None, False
    zero = (a is None or b is None) and not (a if a is not None else b).any()
    return (a + b if a is not None and b is not None else a if a is not None else b), zero


def fails_without(x, a, b):
    g, zero = one_of_two(a, b)
    if zero:
        raise RuntimeError("both, please")
    return g


def fills_in(x, a, b):
    g, zero = one_of_two(a, b)
    return torch.ones_like(g) if zero else g


class Square(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return (g * 2 * ctx.saved_tensors[0]).detach()


class Almost(Function):
    @staticmethod
    def forward(ctx, x, slope):
        ctx.slope, ctx.n = slope, x.numel()
        return torch.zeros(50, dtype=torch.float64)

    @staticmethod
    def backward(ctx, g):
        return (g.sum() * ctx.slope).expand(ctx.n), None


def several(x, y):
    return x * y, y.exp(), x.argmax()


CASES = {
    "product": (lambda x, y: x.sin() * y, 2),
    "several": (several, 2),
    "wrong": (by_hand(1, lambda x, g: g * (1 + (x > 1).double())), 1),
    "adds": (by_hand(1, lambda x, g: g + 1e-9), 1),
    "never_the_same": (by_hand(1, never_the_same), 1),
    "fails_without": (by_hand(2, fails_without), 1),
    "fills_in": (by_hand(2, fills_in), 1),
    "constant": (lambda x: x.detach().exp(), 1),
    "really_constant": (lambda x: torch.zeros_like(x), 1),
    "forgets": (Square.apply, 1),
    "almost_right": (lambda x: Almost.apply(x, 9e-6), 1),
    "almost_wrong": (lambda x: Almost.apply(x, 1.2e-5), 1),
}


def main(path):
    warnings.simplefilter("ignore")
    with open(path, "w") as out:
        for name, (fn, n) in CASES.items():
            for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
                for fast in (False, True):
                    if check is torch.autograd.gradgradcheck and name not in ("product", "several", "forgets"):
                        continue
                    inputs = tuple(numbers(40 if "almost" in name else 3) for _ in range(n))
                    try:
                        check(fn, inputs, fast_mode=fast)
                        text = "passes"
                    except RuntimeError as e:
                        text = str(e).split("\n")[0].split("tolerance for nondeterminism was")[0].split(" Please look")[0]
                    out.write("%s %s %s|%s\n" % (name, check.__name__, "fast" if fast else "slow", text))


if __name__ == "__main__":
    main(sys.argv[1])
