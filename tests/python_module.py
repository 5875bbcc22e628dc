#!/usr/bin/env python3
"""Tests examples/opdispatch.py: all types of schemas and exceptions in both directions, the lifetime of objects,
mistakes that opcheck and gradcheck find, nested calls, threads, and tensors.

    OPD_LIBRARY=./libopdispatch.so python3 tests/python_module.py [PART OF A NAME]

$OPD_LIBRARY is a shared library made from opdispatch.h, as the first lines of opdispatch.py show.  Needs NumPy.  The
last line is "N passed, N failed".
"""
import contextlib
import gc
import glob
import inspect
import io
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import traceback
import typing
import weakref

if sys.argv[1:2] in (["-h"], ["--help"]):           # before the imports that may fail
    print(__doc__)
    sys.exit(0)

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "examples"))
sys.dont_write_bytecode = True

import numpy as np  # noqa: E402

import opdispatch as torch  # noqa: E402

Tensor = torch.Tensor
counts = [0, 0]


def check(good, *what):
    counts[not good] += 1
    if not good:
        frame = inspect.currentframe().f_back
        print(f"{os.path.basename(__file__)}:{frame.f_lineno}: failed", *what)


@contextlib.contextmanager
def fails(*texts, kind=RuntimeError, cause=None):
    """Tests that the block raises an exception of class `kind` that contains these texts and has a cause of class
    `cause`."""
    frame = inspect.currentframe().f_back.f_back
    try:
        yield
    except BaseException as error:
        missing = [text for text in texts if text not in str(error)]
        good = isinstance(error, kind) and not missing and (cause is None or isinstance(error.__cause__, cause))
        if not good:
            print(f"    {type(error).__name__}: {error} [cause: {error.__cause__!r}]")
    else:
        good = False
        print("    nothing was raised")
    counts[not good] += 1
    if not good:
        print(f"{os.path.basename(__file__)}:{frame.f_lineno}: failed")


def same(a, b):
    """Returns True if a and b have equal types and values."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        return type(a) is type(b) and a.dtype is b.dtype and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


def copied(x):
    return x.clone() if isinstance(x, Tensor) else [copied(e) for e in x] if isinstance(x, list) else x


# ---- values ----------------------------------------------------------------------------------------------------------

def test_types_both_ways():
    t, u = torch.tensor([1.5, 2]), torch.tensor([[3, 4]])
    generator = torch.Generator()
    table = {
        "Tensor": [t, u, torch.tensor(True)], "Tensor?": [t, None], "Tensor[]": [[t, u], [t], []],
        "Tensor?[]": [[t, None, u], [None], []], "Tensor[]?": [[t], None],
        "int": [0, -1, 2 ** 63 - 1, -2 ** 63], "int?": [7, None], "int[]": [[1, 2, 3], []], "int[]?": [[4], [], None],
        "int[2]": [[1, 2]], "SymInt": [5], "SymInt?": [None, 6], "SymInt[]": [[2, 3]], "SymInt[]?": [None, [1]],
        "float": [0.5, math.inf, -0.0, 1e-310], "float?": [2.5, None], "float[]": [[1.0, 2.5], []],
        "float[]?": [[0.25], None], "bool": [True, False], "bool?": [None, True], "bool[]": [[True, False], []],
        "bool[2]": [[False, True]], "complex": [1 + 2j, -3j], "complex?": [None, 1j],
        "str": ["", "text", 'quoted " \\ and grün 100% %s %n'], "str?": ["a", None], "str[]": [["a", "", "bc"], []],
        "str[]?": [["x"], None], "Scalar": [3, 2.5, True, 1 - 1j], "Scalar?": [None, 4], "Scalar[]": [[1, 2], []],
        "ScalarType": [torch.float32, torch.bool, torch.bfloat16, torch.int64], "ScalarType?": [None, torch.float64],
        "Device": [torch.device("cpu"), torch.device("cuda:1"), torch.device("meta")],
        "Device?": [None, torch.device("cpu")], "Layout": [torch.strided], "Layout?": [None, torch.strided],
        "MemoryFormat": [torch.channels_last, torch.contiguous_format], "MemoryFormat?": [None, torch.preserve_format],
    }
    for n, (kind, values) in enumerate(table.items()):
        seen = []

        def kernel(first, x, seen=seen):
            seen.append(x)
            return copied(x)

        lib = torch.library.Library("types")
        lib.define(f"f{n}(Tensor first, {kind} x) -> {kind}")
        lib.impl(f"f{n}", kernel, "CPU")
        lib.define(f"k{n}(Tensor first, *, {kind} x) -> {kind}")
        lib.impl(f"k{n}", kernel, "CPU")
        for value in values:
            for call in (lambda: getattr(torch.ops.types, f"f{n}")(t, value),
                         lambda: getattr(torch.ops.types, f"f{n}").default(t, value),
                         lambda: getattr(torch.ops.types, f"f{n}")(t, x=value),
                         lambda: getattr(torch.ops.types, f"k{n}")(t, x=value)):
                try:
                    out = call()
                    check(same(seen.pop(), value) and same(out, value), kind, value, out)
                except Exception as error:
                    check(False, kind, value, f"{type(error).__name__}: {error}")
    lib.define("g(Tensor first, Generator? x) -> bool")
    lib.impl("g", lambda first, x: x is not None and x._p == generator._p, "CPU")
    check(torch.ops.types.g(t, generator) is True and torch.ops.types.g(t, None) is False)
    lib.define("draw(Tensor first, Generator? x) -> Tensor")
    lib.impl("draw", lambda first, x: torch.rand([3], generator=x), "CPU")
    draws = [torch.ops.types.draw(t, generator.manual_seed(seed)) for seed in (1, 2, 1)]
    check(torch.equal(draws[0], draws[2]) and not torch.equal(draws[0], draws[1]))


def test_results():
    t = torch.tensor([1., 2.])
    lib = torch.library.Library("results")
    lib.define("many(Tensor x, int n=2, *, str s='a', float[] f=[1.5], ScalarType d=long) -> "
               "(Tensor, Tensor[], int, float, bool, str, int[], ScalarType)")
    lib.impl("many", lambda x, n, *, s, f, d: (x * n, [x, x + 1][:n], n, f[0], n > 1, s, list(range(n)), d), "CPU")
    out = torch.ops.results.many(t)
    check(same(out[0], t * 2) and same(out[1], [t, t + 1]) and out[2:] == (2, 1.5, True, "a", [0, 1], torch.int64), out)
    check(torch.ops.results.many(t, 1, s="b", f=[2], d=torch.uint8)[2:] == (1, 2.0, False, "b", [0], torch.uint8))
    lib.define("none(Tensor x) -> ()")
    lib.impl("none", lambda x: None, "CPU")
    check(torch.ops.results.none(t) is None)
    lib.define("twice_(Tensor(a!) x) -> Tensor(a!)")
    lib.impl("twice_", lambda x: x.mul_(2), "CPU")
    check(torch.ops.results.twice_(t) is t and t.tolist() == [2, 4])
    array = np.ones(3)
    torch.ops.results.twice_(array)
    check(array.tolist() == [2, 2, 2])
    for schema, given, said in [
            ("a(Tensor x) -> Tensor", None, "returned None where its schema says Tensor"),
            ("b(Tensor x) -> (Tensor, Tensor)", t, "returned Tensor, not 2 results"),
            ("c(Tensor x) -> (Tensor, Tensor)", (t,), "returned 1, not 2 results"),
            ("d(Tensor x) -> ()", 5, "returned a int; the schema has no results"),
            ("e(Tensor x) -> Tensor", object(), "a object cannot be an argument of an operator"),
            ("f(Tensor x) -> int", "text", "f"), ("g(Tensor x) -> Tensor[]", [t, None], "g"),
            ("h(Tensor x) -> int", 2 ** 70, "does not fit into 64 bits")]:
        lib.define(schema)
        lib.impl(schema[0], lambda x, given=given: given, "CPU")
        with fails(f"results::{schema[0]}", said):
            getattr(torch.ops.results, schema[0])(t)


def test_numbers_and_arrays_as_arguments():
    check(torch.ops.aten.add(np.float32(2), np.ones(2)).tolist() == [3, 3])
    check(torch.ops.aten.add(torch.ones(2), np.int64(2)).tolist() == [3, 3])
    check(torch.ops.aten.any(np.array([False, True])).item() is True)
    check(torch.sum(np.ones((2, 3)), (0, np.int64(1))).item() == 6)
    check(torch.zeros([2], dtype=np.float64).dtype is torch.float64 and torch.zeros([2], dtype=float).dtype is
          torch.float64 and torch.zeros([1], dtype=np.dtype("i2")).dtype is torch.int16)
    check(torch.zeros(2, 3).shape == (2, 3) and torch.zeros((2, 3)).shape == (2, 3) and torch.zeros(()).shape == ())
    check(torch.zeros([2], device="meta").device == torch.device("meta"))
    with fails("argument 1", "does not fit into 64 bits", kind=OverflowError):
        torch.ops.aten.add(torch.ones(1), 2 ** 63)
    with fails("argument 'alpha'", "a object cannot be an argument of an operator", kind=TypeError):
        torch.ops.aten.add(torch.ones(1), 1, alpha=object())
    with fails("a string contains a zero byte", kind=ValueError):
        torch.ops.aten.add("a\0b", 1)
    for array, kind in [(np.array(["a"]), TypeError), (np.ones(3)[::-1], ValueError), (np.ones(3, ">f4"), ValueError),
                        (np.array([None]), TypeError)]:
        with fails("argument 0", kind=kind):
            torch.ops.aten.neg(array)


def test_inferred_schemas():
    def f0(x: Tensor, n: int, a: float = 1.5, b: bool = True, s: str = 'a"b', *, k: typing.Optional[int] = None
           ) -> Tensor: pass

    def f1(x: typing.Sequence[Tensor], y: typing.List[typing.Optional[Tensor]], z: typing.Optional[Tensor] = None,
           w: typing.Sequence[int] = (1, 2)) -> typing.Tuple[Tensor, int]: pass

    def f2(x: Tensor, out: Tensor, d: torch.dtype = torch.float32, v: torch.device = torch.device("cpu"),
           q: typing.Union[int, float, bool] = 2) -> None: pass

    def f3(x: "list[Tensor]", n: "typing.Optional[float]" = None) -> "list[Tensor]": pass
    # the results of torch.library.infer_schema in PyTorch 2.15, which does not escape quotes, and has no lists as
    # defaults
    for f, mutates, text in [
            (f0, (), '(Tensor x, SymInt n, float a=1.5, bool b=True, str s="a\\"b", *, SymInt? k=None) -> Tensor'),
            (f1, (), "(Tensor[] x, Tensor?[] y, Tensor? z=None, SymInt[] w=[1, 2]) -> (Tensor, SymInt)"),
            (f2, ("out",), '(Tensor x, Tensor(a1!) out, ScalarType d=float32, Device v="cpu", Scalar q=2) -> ()'),
            (f3, ("x",), "(Tensor(a0!)[] x, float? n=None) -> Tensor[]"),
            (f2, "unknown",
             '(Tensor(a0!) x, Tensor(a1!) out, ScalarType d=float32, Device v="cpu", Scalar q=2) -> ()')]:
        said = torch.library.infer_schema(f, mutates_args=mutates)
        check(said == text, said)
        check(torch.library.custom_op(f"inferred::{f.__name__}_{mutates == 'unknown'}", f, mutates_args=mutates))

    def no_type(x) -> Tensor: pass
    def no_return(x: Tensor): pass
    def wrong_type(x: dict) -> Tensor: pass
    def variadic(*x: Tensor) -> Tensor: pass
    def number(x: Tensor, n: int) -> Tensor: pass
    for f, mutates, text in [(no_type, (), "Parameter x must have a type annotation"),
                             (no_return, (), "No return type annotation"), (wrong_type, (), "unsupported type"),
                             (variadic, (), "varargs"), (number, ("n",), "only Tensors"),
                             (number, ("m",), "were not found")]:
        with fails(text, "Got func with signature", kind=ValueError):
            torch.library.infer_schema(f, mutates_args=mutates)


# ---- names -----------------------------------------------------------------------------------------------------------

def test_names():
    add = torch.ops.aten.add
    check(repr(add) == "<OpOverloadPacket(op='aten.add')>" and str(add) == "aten.add")
    check(repr(add.Tensor) == "<OpOverload(op='aten.add', overload='Tensor')>" and str(add.Tensor) == "aten.add.Tensor")
    check(repr(torch.ops.aten.sin.default) == "<OpOverload(op='aten.sin', overload='default')>")
    check("Tensor" in add.overloads() and "out" in add.overloads() and add is torch.ops.aten.add)
    check(str(add.Tensor._schema).startswith("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1)"))
    check([a.name for a in add.Tensor._schema.arguments] == ["self", "other", "alpha"])
    check(not hasattr(torch.ops.aten, "nothing") and not hasattr(add, "nothing") and not hasattr(torch, "nothing"))
    check(not hasattr(torch.ones(1), "nothing") and hasattr(torch.ones(1), "sin"))
    with fails("aten::sinn", kind=AttributeError):
        torch.ops.aten.sinn
    f = torch.library.custom_op("names::f", lambda x: x + 1, schema="(Tensor x) -> Tensor")
    check(repr(f) == "<CustomOpDef(names::f)>" and torch.ops.names.f.default(torch.ones(1)).item() == 2)
    for name in ("f", "a::b::c"):
        with fails(name, kind=ValueError):
            torch.library.custom_op(name, lambda x: x, schema="(Tensor x) -> Tensor")
    check(str(torch.float32) == "opdispatch.float32" and repr(torch.device("cuda:1")) == "device(type='cuda', index=1)")


# ---- exceptions ------------------------------------------------------------------------------------------------------

class Mine(Exception):
    pass


def raiser(text="mine 100% %s grün"):
    def function(*args, **named):
        raise Mine(text)
    return function


def passing(name, function=lambda x: x * 1, **more):
    return torch.library.custom_op(name, function, schema="(Tensor x) -> Tensor", **more)


def test_exceptions_of_callbacks():
    x = torch.ones(3, requires_grad=True, dtype=torch.float64)
    expected = dict(kind=torch.Error, cause=Mine)
    with fails("errors::kernel", "Mine: mine 100% %s grün", **expected):
        passing("errors::kernel", raiser())(x)
    with fails("errors::long", "Mine: aaaa", **expected):
        passing("errors::long", raiser("a" * 100000))(x)
    fake = passing("errors::fake")
    fake.register_fake(raiser())
    with fails("errors::fake", "Mine", **expected):
        fake(torch.ones(2, device="meta"))
    with fails("Mine", kind=torch.OpCheckError):
        torch.library.opcheck(fake, (x,))
    formula = passing("errors::formula")
    formula.register_autograd(raiser())
    with fails("errors::formula", "Mine", **expected):
        formula(x).sum().backward()
    setup = passing("errors::setup")
    setup.register_autograd(lambda ctx, g: g, setup_context=raiser())
    with fails("errors::setup", "Mine", **expected):
        setup(x)
    rule = passing("errors::rule")
    rule.register_vmap(raiser())
    with fails("errors::rule", "Mine", **expected):
        torch.vmap(rule)(torch.ones(2, 2))
    y = x * 2
    handle = y.register_hook(raiser())
    with fails("Mine", **expected):
        y.sum().backward(retain_graph=True)
    handle.remove()
    y.register_hook(lambda g: 5)
    with fails("a hook returned a int", cause=TypeError):
        y.sum().backward()
    for transform in (lambda f: torch.vmap(f)(x.detach()), lambda f: torch.jit.trace(f, x.detach()),
                      lambda f: torch.autograd.gradcheck(f, (x,))):
        with fails("Mine", **expected):
            transform(raiser())
    check(torch.ones(2).sum().item() == 2)        # no error is pending


def test_exceptions_nested_and_forgotten():
    x = torch.ones(3)
    inner = passing("nested::inner", raiser("inside"))
    outer = passing("nested::outer", lambda x: inner(x))
    with fails("nested::outer", "nested::inner", "inside", kind=torch.Error, cause=Mine):
        outer(x)

    def tries(x):
        with fails("inside"):
            inner(x)
        return x + 1
    check(passing("nested::tries", tries)(x).tolist() == [2, 2, 2])
    with fails("nested::library", "must match", "(3)", cause=torch.Error):
        passing("nested::library", lambda x: x + torch.ones(4))(x)
    for kind in (KeyboardInterrupt, SystemExit):
        def stop(x):
            raise kind("stop")
        with fails("stop", kind=kind):
            passing(f"nested::{kind.__name__}", stop)(x)
    with fails("outer", kind=torch.Error):        # the exception of an earlier, cleared error is not the cause
        torch.library.opcheck(outer, (x,), raise_exception=False)
        try:
            torch.ops.aten.add(x, torch.ones(4))
        except torch.Error as error:
            check(error.__cause__ is None)
            raise torch.Error("outer")
    for call, kind in [(lambda: x.select(0, 9), IndexError), (lambda: torch.ops.aten.nothing, AttributeError),
                       (lambda: x + torch.ones(4), torch.Error), (lambda: x.backward(), torch.Error)]:
        with fails(kind=kind):
            call()
        with fails(kind=torch.Error):
            call()


# ---- derivatives, fakes, batching rules ------------------------------------------------------------------------------

def registered(name, factor=2.0, fake=None, function=None):
    op = passing(name, function or (lambda x: torch.from_numpy(np.sin(x.numpy()))))
    op.register_fake(fake or torch.empty_like)

    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.anything = {"factor": factor}

    def backward(ctx, g):
        check(ctx.needs_input_grad == (True,))
        return g * ctx.saved_tensors[0].cos() * ctx.anything["factor"]
    op.register_autograd(backward, setup_context=setup)
    return op


def test_derivatives():
    x = torch.randn(3, requires_grad=True, dtype=torch.double)
    sin = registered("derivatives::sin", 1.0)
    check(torch.autograd.gradcheck(sin, (x,)) and torch.autograd.gradgradcheck(sin, (x,)))
    check(torch.autograd.gradcheck(sin, (x,), fast_mode=True))
    torch.library.opcheck(sin, (x,))
    g, = torch.autograd.grad(sin(x), x, torch.ones(3, dtype=torch.double))
    check(torch.allclose(g, x.detach().cos()))
    out = sin(x)
    check(out.requires_grad and not out.is_leaf and x.is_leaf and out.grad_fn == "<SinBackward0>", out.grad_fn)
    with torch.no_grad():
        check(not sin(x).requires_grad)

    @torch.library.custom_op("derivatives::several")
    def several(a: Tensor, xs: typing.Sequence[Tensor], n: int, b: typing.Optional[Tensor] = None
                ) -> typing.Tuple[Tensor, typing.Sequence[Tensor], int]:
        return a * n, [t * a for t in xs], n

    def setup_several(ctx, inputs, output):
        a, xs, ctx.n, b = inputs
        ctx.save_for_backward(a, *xs)
        check(len(output) == 3 and len(output[1]) == len(xs) and output[2] == ctx.n and b is None)

    def backward_several(ctx, g, gs, nothing):
        a, *xs = ctx.saved_tensors
        check(nothing is None and len(gs) == len(xs))
        return g * ctx.n + sum((gk * t for gk, t in zip(gs, xs)), a * 0), [gk * a for gk in gs], None, None
    several.register_autograd(backward_several, setup_context=setup_several)
    y, z = (torch.randn(3, requires_grad=True, dtype=torch.double) for _ in range(2))

    def run(a, b, c):
        first, rest, n = several(a, [b, c], 3)
        return [first] + rest
    check(torch.autograd.gradcheck(run, (x, y, z)))
    check(torch.autograd.gradcheck(lambda a, b: several(a, [b], 3)[1], (x, y)))

    wrong = passing("derivatives::wrong_count")
    wrong.register_autograd(lambda ctx, g: (g, None))
    with fails("incorrect number of gradients (expected 1, got 2)", cause=RuntimeError):
        wrong(x).sum().backward()
    wrong = passing("derivatives::wrong_kind")
    wrong.register_autograd(lambda ctx, g: 3.0)
    with fails("float as the gradient of 'x'", cause=TypeError):
        wrong(x).sum().backward()
    with fails("derivatives::plain"):
        passing("derivatives::plain")(x).sum().backward()
    with fails("unctional"):
        torch.library.custom_op("derivatives::writes", lambda x: None, schema="(Tensor(a!) x) -> ()").register_autograd(
            lambda ctx: None)


def test_parts_by_name():
    torch.library.define("parts::f", "(Tensor x, *, float by=2) -> Tensor")

    @torch.library.impl("parts::f", "cpu")
    def f_cpu(x, by):
        return torch.from_numpy(x.numpy() * by)
    with fails("parts::f"):
        torch.ops.parts.f(torch.ones(2, device="meta"))
    torch.library.register_fake("parts::f", lambda x, by: torch.empty_like(x))
    check(torch.ops.parts.f(torch.ones(2, device="meta")).shape == (2,))
    with fails("already has a fake impl"):
        torch.library.register_fake("parts::f", lambda x, by: torch.empty_like(x))

    def setup(ctx, inputs, keyword_only_inputs, output):
        ctx.by = keyword_only_inputs["by"]
    torch.library.register_autograd("parts::f", lambda ctx, g: g * ctx.by, setup_context=setup)
    torch.library.register_vmap("parts::f", lambda info, in_dims, x, by: (torch.ops.parts.f(x, by=by), in_dims[0]))
    x = torch.randn(3, requires_grad=True, dtype=torch.double)
    check(torch.autograd.gradcheck(torch.ops.parts.f, (x,)))
    check(torch.autograd.gradcheck(lambda x: torch.ops.parts.f(x, by=3), (x,)))
    torch.library.opcheck(torch.ops.parts.f, (x,), {"by": 4.0})
    said = torch.library.opcheck(torch.ops.parts.f.default, (x,), test_utils="test_schema")
    check(said == {"test_schema": "SUCCESS"}, said)
    with fails("has no argument 'to'", kind=TypeError):
        torch.library.opcheck(torch.ops.parts.f, (x,), {"to": 4.0})
    with fails("opcheck: there are 3 arguments", kind=TypeError):
        torch.library.opcheck(torch.ops.parts.f, (x, 1.0, 2))
    with fails("test_utils must be among", kind=ValueError):
        torch.library.opcheck(torch.ops.parts.f, (x,), test_utils="test_nothing")
    torch.library.define("parts::k", "(Tensor x, *, Tensor y) -> Tensor")
    with fails("kwarg-only Tensor", kind=NotImplementedError):
        torch.library.register_autograd("parts::k", lambda ctx, g: g)

    a = torch.library.custom_op("parts::again", lambda x: x + 1, schema="(Tensor x) -> Tensor")
    b = torch.library.custom_op("parts::again", lambda x, n: x + n, schema="(Tensor x, int n) -> Tensor")
    check(b(torch.ones(1), 5).item() == 6)
    with fails("parts::again"):
        a(torch.ones(1))
    b.register_kernel("cpu", lambda x, n: x - n)
    check(b(torch.ones(1), 5).item() == -4)
    b._library._destroy()
    with fails("parts::again"):
        b(torch.ones(1), 5)


def test_more_shapes_of_operators():
    matrix = torch.tensor([[1.0, 2.0, 4.0], [3.0, 5.0, 9.0]])
    for name in ("var", "std", "var_mean", "std_mean"):       # a number is a dim, a bool is `unbiased`
        by_dim, by_bool = getattr(torch, name)(matrix, 0), getattr(matrix, name)(False)
        first = lambda out: out[0] if isinstance(out, tuple) else out
        check(tuple(first(by_dim).shape) == (3,) and tuple(first(by_bool).shape) == ())
        check(first(by_dim).tolist() == first(getattr(torch, name)(matrix, [0])).tolist())
    make = torch.library.custom_op("shapes::make", lambda n: torch.ones([n]), schema="(int n) -> Tensor")
    check(make(3).tolist() == [1, 1, 1])
    count = torch.library.custom_op("shapes::count", lambda a, b: a + b, schema="(int a, int b=2) -> int")
    check(count(1) == 3 and count(1, b=5) == 6)
    fill = torch.library.custom_op("shapes::fill", lambda xs, by: [x.fill_(by) for x in xs] and None,
                                   schema="(Tensor(a!)[] xs, float by) -> ()", mutates_args={"xs"})
    x, y = torch.zeros(2), np.zeros(3)
    check(fill([x, y], 4) is None and x.tolist() == [4, 4] and y.tolist() == [4, 4, 4])
    torch.library.opcheck(fill, ([x, torch.zeros(1)], 4.0))
    with fails("mutates_args are ['by']", kind=ValueError):
        torch.library.custom_op("shapes::other", lambda xs, by: None, schema="(Tensor(a!)[] xs, float by) -> ()",
                                mutates_args={"by"})
    lib = torch.library.Library("shapes", "IMPL")
    torch.library.define("shapes::composed", "(Tensor x) -> Tensor")
    lib.impl("composed", lambda x: x * x)
    x = torch.randn(3, dtype=torch.double, requires_grad=True)
    check(torch.autograd.gradcheck(torch.ops.shapes.composed, (x,)))
    sin = registered("shapes::sin")
    sin.register_autograd(lambda ctx, g: g * ctx.x.cos(), setup_context=lambda ctx, inputs, output: setattr(
        ctx, "x", inputs[0]))                     # replaces the wrong one
    sin.register_fake(lambda x: x.new_empty(x.shape))
    check(torch.autograd.gradcheck(sin, (x,)) and torch.library.opcheck(sin, (x,)))
    if sys.version_info >= (3, 10):
        def modern(x: Tensor, n: "int | None" = None, w: "list[int] | None" = None) -> "tuple[Tensor, Tensor]":
            return x + (n or 0), x * len(w or [])
        modern = torch.library.custom_op("shapes::modern", modern)
        check(str(modern._opoverload._schema) ==
              "shapes::modern(Tensor x, SymInt? n=None, SymInt[]? w=None) -> (Tensor, Tensor)")
        check(modern(torch.ones(1), 2, [1, 2])[1].item() == 2)
    for n, kernel in enumerate([lambda x, y: (x, y * 2), lambda x, y: (y * 2, y[1:]), lambda x, y: (x * 2,) * 2]):
        op = torch.library.custom_op(f"shapes::alias{n}", kernel, schema="(Tensor x, Tensor y) -> (Tensor, Tensor)")
        with fails(f"shapes::alias{n}", "may not alias", cause=RuntimeError):
            op(torch.ones(2), torch.ones(2))


def test_batching():
    count = []

    def mul(x, y):
        count.append(1)
        return torch.from_numpy(x.numpy() * y.numpy())
    op = torch.library.custom_op("batching::mul", mul, schema="(Tensor x, Tensor y) -> Tensor")
    op.register_fake(lambda x, y: torch.empty_like(x))

    @op.register_vmap
    def rule(info, in_dims, x, y):
        check(info.batch_size == 4 and info.randomness == "error")
        x = x.movedim(in_dims[0], -1) if in_dims[0] is not None else x.unsqueeze(-1)
        y = y.movedim(in_dims[1], -1) if in_dims[1] is not None else y.unsqueeze(-1)
        return op(x.contiguous(), y.contiguous()).movedim(-1, 0), 0
    x, y, v = torch.randn(4, 3), torch.randn(3, 4), torch.randn(3)
    del count[:]
    check(torch.allclose(torch.vmap(op, in_dims=(0, 1))(x, y), x * y.t()) and len(count) == 1)
    check(torch.allclose(torch.vmap(op, in_dims=(0, None))(x, v), x * v))
    check(torch.allclose(torch.vmap(lambda t: op(t, v), out_dims=1)(x), (x * v).t()))
    check(torch.vmap(lambda t: (t.sum(), t * 2))(x)[0].shape == (4,))

    op = torch.library.custom_op("batching::cut", lambda x, n: [x[..., :n].clone(), x[..., n:].clone()],
                                 schema="(Tensor x, int n) -> Tensor[]")
    op.register_fake(lambda x, n: [torch.empty_like(x[..., :n]), torch.empty_like(x[..., n:])])
    op.register_vmap(lambda info, in_dims, x, n: (op(x.movedim(in_dims[0], 0), n), 0))
    out = torch.vmap(lambda x: tuple(op(x, 1)))(x)
    check(torch.equal(out[0], x[:, :1]) and torch.equal(out[1], x[:, 1:]))
    check(torch.library.opcheck(op, (torch.randn(3), 1))["test_vmap"] == "SUCCESS")


def test_fake_tensors():
    op = torch.library.custom_op("fakes::f", raiser(), schema="(Tensor x, Device d) -> Tensor")
    op.register_fake(lambda x, d: (x @ x.t()).to(d))
    with torch._subclasses.fake_tensor.FakeTensorMode():
        x = op(torch.ones(2, 3), "cpu")
        check(x.shape == (2, 2) and op(torch.ones(5, 1), d=torch.device("cpu")).shape == (5, 5))
        for read in (Tensor.tolist, Tensor.numpy, Tensor.item, bool):
            with fails("a tensor without data", kind=TypeError):
                read(x[:1, :1])
    check(torch.ones(2).tolist() == [1, 1])
    with fails("fakes::f", cause=Mine):
        op(torch.ones(2, 3), "cpu")
    with fails("There was no fake impl", "register_fake", cause=RuntimeError):
        passing("fakes::none")(torch.ones(2, device="meta"))


def test_kernels_for_built_in_operators():
    lib = torch.library.Library("aten", "IMPL")
    lib.impl("fmod.Tensor", lambda self, other: self * 0 + 42, "CPU")
    x = torch.ones(2, requires_grad=True)
    y = torch.fmod(x, torch.ones(2))
    check(y.tolist() == [42, 42] and y.requires_grad)
    lib._destroy()
    check(torch.fmod(x, torch.ones(2)).tolist() == [0, 0])


def test_dynamic_sizes():
    op = torch.library.custom_op("dynamic::nonzero", lambda x: torch.from_numpy(np.stack(np.nonzero(x.numpy()), 1)),
                                 schema="(Tensor x) -> Tensor")

    @op.register_fake
    def _(x):
        return x.new_empty([torch.library.get_ctx().new_dynamic_size(), x.dim()], dtype=torch.int64)
    check(op(torch.tensor([0, 1, 2])).tolist() == [[1], [2]])
    check(torch.library.opcheck(op, (torch.tensor([0, 1, 2]),), raise_exception=False)["test_schema"] == "SUCCESS")


# ---- mistakes that are found -----------------------------------------------------------------------------------------

def test_planted_mistakes():
    x = torch.randn(3, 4, requires_grad=True, dtype=torch.double)
    good = registered("planted::good", 1.0)
    check(set(torch.library.opcheck(good, (x,)).values()) == {"SUCCESS"})

    def found(op, test, *args):
        with fails(op._qualname, kind=torch.OpCheckError):
            torch.library.opcheck(op, args)
        said = torch.library.opcheck(op, args, raise_exception=False)
        check(isinstance(said[test], torch.OpCheckError), said)
    found(registered("planted::size", 1.0, lambda x: x.new_empty([3, 5])), "test_faketensor", x)
    found(registered("planted::dtype", 1.0, lambda x: x.new_empty([3, 4], dtype=torch.float32)), "test_faketensor", x)
    found(registered("planted::strides", 1.0, lambda x: x.new_empty([4, 3]).t()), "test_faketensor", x)
    found(registered("planted::fixed", 1.0, lambda x: x.new_empty([3, 4])), "test_faketensor", x)
    found(passing("planted::no_fake"), "test_faketensor", torch.randn(3))

    def writes(x):
        x.numpy()[:] += 1
        return torch.from_numpy(x.numpy() * 1)
    found(registered("planted::writes", 1.0, function=writes), "test_schema", torch.randn(3))
    found(registered("planted::alias", 1.0, function=lambda x: x), "test_schema", torch.randn(3))
    torch.library.define("planted::view", "(Tensor x) -> Tensor")
    torch.library.impl("planted::view", "default", lambda x: x[:])
    with fails("planted::view", "alias", kind=torch.OpCheckError):
        torch.library.opcheck(torch.ops.planted.view, (torch.randn(3),), test_utils="test_schema")
    batch = registered("planted::batch", 1.0)
    batch.register_vmap(lambda info, in_dims, x: (x * 2, in_dims[0]))
    found(batch, "test_vmap", torch.randn(3))
    uses = [0]

    def other_each_time(x):
        uses[0] += 1
        return x + uses[0]
    found(registered("planted::unequal", 1.0, function=other_each_time), "test_trace", torch.randn(3))
    torch.library.opcheck(registered("planted::backward"), (x,))
    with fails(kind=torch.GradcheckError):
        torch.autograd.gradcheck(torch.ops.planted.backward, (x,))
    check(torch.autograd.gradcheck(torch.ops.planted.backward, (x,), raise_exception=False) is False)
    with fails("there is no option 'epsilon'", kind=TypeError):
        torch.autograd.gradcheck(good, (x,), epsilon=1)


# ---- what is held ----------------------------------------------------------------------------------------------------

def test_nothing_grows():
    sin = registered("growth::sin", 1.0)
    x, array = torch.randn(100, requires_grad=True), np.ones(100)
    inner = passing("growth::inner", raiser())

    def once():
        y = sin(x)
        y.register_hook(lambda g: g * 2)
        (y * y).sum().backward()
        x.grad = None
        torch.ops.aten.add(array, 1).numpy()
        np.from_dlpack(torch.from_dlpack(np.ones(3)))
        torch.ones(3).__dlpack__(max_version=(1, 0))
        torch.ones(3).__dlpack__()
        x.detach().numpy()[0] += 0
        torch.ops.aten.split(x, 7)
        try:
            inner(x)
        except torch.Error:
            pass
        try:
            torch.ops.aten.add(x, torch.ones(3))
        except torch.Error:
            pass
        torch.vmap(lambda t: t * 2)(x.detach())

    def state():
        gc.collect()
        return [torch.memory()["live"], len(torch._held), len(torch._refs), sys.getrefcount(array),
                len(torch._forever), len(gc.get_objects())]
    for _ in range(50):
        once()
    before = state()
    for _ in range(1000):
        once()
    after = state()
    check(all(b - a <= room for a, b, room in zip(before, after, [2000, 0, 0, 0, 0, 100])), before, after)


def test_lifetimes():
    y = torch.ones(1000) * 3
    array = y.numpy()
    del y
    gc.collect()
    torch.ones(1000) * 4
    check(array.sum() == 3000 and array.flags.writeable)
    array = np.ones(5)
    gone = weakref.ref(array)
    x = torch.from_numpy(array)
    view = x[1:3]
    del array, x
    gc.collect()
    check(gone() is not None and view.tolist() == [1, 1])
    del view
    gc.collect()
    check(gone() is None)
    kept = []
    op = passing("lifetimes::keeps", lambda x: (kept.append(x), x * 2)[1])
    op(torch.tensor([5.0]))
    check(kept[0].tolist() == [5])
    x = torch.ones(2)
    check(x.view([2]) is not x and x.add_(1) is x and x.grad is None)
    x.tag = "mine"
    seen = []
    passing("lifetimes::same", lambda y: (seen.append(y is x), y * 1)[1])(x)
    check(seen == [True])
    box = [torch.ones(2, requires_grad=True)]
    y = box[0] * 2
    y.register_hook(lambda g: box.pop() * 3)      # only C holds the tensor that it returns
    y.sum().backward()
    outer = [torch.ones(3)]
    check(torch.vmap(lambda t: outer.pop(), out_dims=None)(torch.ones(2)).tolist() == [1, 1, 1])


def test_nested_calls():
    sin = registered("deep::sin", 1.0)

    def kernel(x):
        y = torch.vmap(lambda t: sin(t) + 1)(x.unsqueeze(0)).squeeze(0)
        with torch.enable_grad():
            z = x.detach().clone().requires_grad_()
            sin(z).sum().backward()
        return y + z.grad
    op = passing("deep::op", kernel)
    x = torch.randn(3)
    check(torch.allclose(op(x), x.sin() + 1 + x.cos()) and torch.is_grad_enabled())
    deep = passing("deep::down", lambda x: x if False else (op(x) if x.sum().item() > 3 else deep(x + 1) + 0))
    check(deep(torch.zeros(3)).shape == (3,))
    twice = passing("deep::twice", lambda x: sin(sin(x)) + torch.vmap(torch.sin)(x))
    graph = torch.jit.trace(lambda a: twice(sin(a) + 5) * 2, x)
    check("deep::sin(%a)" in str(graph) and "deep::twice" in str(graph) and str(graph).count("deep::") == 2)
    check(torch.allclose(graph(x + 1), twice((x + 1).sin() + 5) * 2))
    grads = []
    y = x.clone().requires_grad_()
    z = y * 2
    z.register_hook(torch.enable_grad()(lambda g: grads.append(torch.autograd.grad(sin(y).sum(), y)[0])))
    z.sum().backward()
    check(torch.allclose(grads[0], x.cos()))


def test_threads_that_share_tensors():
    """One thread destroys a Tensor while another thread gets the same handle from the library."""
    leaf = torch.ones(8, requires_grad=True)
    leaf.grad = torch.ones(8)
    errors = []

    def work():
        try:
            for _ in range(2000):
                grad = leaf.grad                  # all threads make and release a Tensor for it
                if grad.shape != (8,):
                    errors.append(grad.shape)
                del grad
        except BaseException as error:
            errors.append(error)
    threads = [threading.Thread(target=work) for _ in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    check(not errors and leaf.grad.tolist() == [1] * 8, errors[:3])


def test_threads():
    sin = registered("threads::sin", 1.0)
    errors, wrong = [], passing("threads::wrong", raiser("from a thread"))

    def work(seed):
        try:
            x = torch.from_numpy(np.random.default_rng(seed).random(50)).requires_grad_()
            for k in range(100):
                x.grad = None
                (sin(x) * seed).sum().backward()
                if not torch.allclose(x.grad, x.detach().cos() * seed):
                    errors.append((seed, k))
                try:
                    wrong(x)
                except torch.Error as error:
                    if not isinstance(error.__cause__, Mine):
                        errors.append(error)
                if k % 20 == 0:
                    op = passing(f"threads::t{seed}_{k}", lambda x: x * seed)
                    if op(x.detach()).sum().item() == 0:
                        errors.append(k)
        except BaseException as error:
            traceback.print_exc()
            errors.append(error)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not errors, errors[:3])


# ---- tensors ---------------------------------------------------------------------------------------------------------

def test_indices():
    a = np.arange(60.).reshape(3, 4, 5)
    t = torch.from_numpy(a.copy())
    mask = a[:, :, 0] > 20
    indices = [0, -1, (1, 2), (1, 2, 3), slice(1, None), (slice(None), 1), (..., 2), (1, ..., 2), None, (None, 1),
               (slice(None), None, slice(0, 2)), (slice(None, None, 2), slice(1, 4, 2)), Ellipsis, (0, slice(2), 3),
               [0, 2], (slice(None), [3, 1]), ([0, 1], [1, 2]), np.array([1, 1]), a > 30, mask, (mask, 2),
               (slice(None), slice(None), [0, 4]), (slice(-2, None), -3), slice(5, 2), (..., slice(-1, None))]
    for index in indices:
        given = index
        check(np.array_equal(t[given].numpy(), a[index]), index, t[given].shape, a[index].shape)
        b, u = a.copy(), t.clone()
        b[index] = 7
        u[given] = 7
        check(np.array_equal(u.numpy(), b), index)
        b[index] = a[index] * 2
        u[given] = a[index] * 2
        check(np.array_equal(u.numpy(), b), index)
    for index in ((0, 0, 0, 0), 5, (0, 9)):
        with fails(kind=IndexError):
            t[index]
    with fails("step", kind=ValueError):
        t[::-1]
    x = torch.zeros(3, requires_grad=True, dtype=torch.double)

    def write(x):
        y = x * 2
        y[1:] = x[:2] * 3
        y[0] = 1
        return y
    check(torch.autograd.gradcheck(write, (x,)))
    check([row.tolist() for row in torch.ones(2, 1)] == [[1], [1]] and len(torch.ones(4, 2)) == 4)
    with fails("0-d", kind=TypeError):
        len(torch.ones(()))


def test_arithmetic():
    a, b = np.array([5., -7, 2]), np.array([2., 3, -4])
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    m, n = np.array([6, 3]), np.array([2, 1])
    for text in ("x + y", "x - y", "x * y", "x / y", "x // y", "x % y", "-x", "abs(x)", "x + 2", "2 + x", "2 - x",
                 "2 * x", "2 / x", "x ** 2", "2 ** x", "x == y", "x != y", "x < y", "x <= 2", "x > y", "x >= y",
                 "x @ y", "m & n", "m | n", "m ^ n", "~m", "m << n", "m >> n"):
        want = eval(text, dict(x=a, y=b, m=m, n=n))
        got = eval(text, dict(x=x, y=y, m=torch.from_numpy(m), n=torch.from_numpy(n)))
        check(isinstance(got, Tensor) and np.allclose(got.numpy(), want), text, got, want)
    check(isinstance(a + y, Tensor) and isinstance(a * y, Tensor) and isinstance(np.float64(2) * y, Tensor))
    z = torch.ones(2)
    w = z
    z += 1
    z *= 3
    z -= 1
    z /= 5
    check(z is w and z.tolist() == [1, 1])
    with fails(kind=TypeError):
        x + "text"
    check(3 in torch.tensor([1, 2, 3]) and bool(torch.tensor(2)) and float(torch.tensor(2)) == 2.0)
    check(int(torch.tensor(2.5)) == 2 and [1, 2, 3][torch.tensor(1)] == 2 and complex(torch.tensor(1j)) == 1j)
    check(f"{torch.tensor(2.5):.2f}" == "2.50" and hash(x) == hash(x) and x in {x: 1})
    with fails("cannot be converted"):
        bool(torch.ones(2))


def test_tensors():
    x = torch.tensor([[1, 2.5], [3, 4]])
    check(x.dtype is torch.float32 and x.shape == (2, 2) and x.strides == (2, 1) == x.stride() and x.ndim == 2)
    check(x.size(0) == 2 and x.numel() == 4 and x.t().strides == (1, 2) and not x.t().is_contiguous())
    check(repr(x) == "tensor([[1.0000, 2.5000],\n        [3.0000, 4.0000]])" and str(x.shape) == "Size([2, 2])")
    check(x.T[0, 1].item() == 3 and x[1:].storage_offset() == 2 and x.device.type == "cpu")
    check(torch.tensor([1, 2]).dtype is torch.int64 and torch.tensor([True]).dtype is torch.bool)
    check(torch.tensor(2).shape == () and torch.tensor([]).shape == (0,) and torch.tensor([1j]).dtype is
          torch.complex64 and torch.tensor([[], []]).shape == (2, 0))
    check(torch.tensor([1, 2], dtype=torch.float64, requires_grad=True).requires_grad)
    for wrong, kind in (([[1], [2, 3]], ValueError), (["a"], TypeError), ([[1], 2], ValueError)):
        with fails(kind=kind):
            torch.tensor(wrong)
    for values in ([[1, 2], [3, 4]], [], [[], []], 5, [1.5, 2.5], [True, False], [1 + 2j]):
        check(torch.tensor(values).tolist() == values, values, torch.tensor(values).tolist())
    check(torch.zeros(2, 0, 3).tolist() == [[], []] and torch.zeros(0, 2).tolist() == [])
    for kind in "u1 i1 i2 i4 i8 f2 f4 f8 c8 c16 ? u2 u4 u8".split():
        a = np.array([0, 1, 1]).astype(kind)
        t = torch.from_numpy(a)
        check(t.numpy().dtype == a.dtype and np.shares_memory(t.numpy(), a) and np.array_equal(t.numpy(), a) and
              t.tolist() == a.tolist(), kind)
    check(torch.ones(2, dtype=torch.bfloat16).tolist() == [1, 1])
    with fails("NumPy has no dtype", kind=TypeError):
        torch.ones(2, dtype=torch.bfloat16).numpy()
    a = np.arange(24.).reshape(2, 3, 4)
    for view in (a[:, 1], a.T, a[..., ::2], a[:0], a[1, 2, 3:4], a.transpose(1, 0, 2), np.broadcast_to(a[0], (2, 3, 4)),
                 np.float64(3).reshape(())):
        check(np.array_equal(torch.from_numpy(view).numpy(), view) and torch.from_numpy(view).shape == view.shape)
    read_only = np.ones(3)
    read_only.flags.writeable = False
    torch.from_numpy(read_only).add_(1)
    check(read_only.tolist() == [1, 1, 1])
    numbers = [torch.from_numpy(np.float64(k)) for k in range(20)]
    check([x.item() for x in numbers] == list(range(20)) and torch.tensor(np.float32(2)).dtype is torch.float32)

    class Image:                                  # like Pillow's: each use of its interface makes new bytes
        __array_interface__ = property(lambda self: {"version": 3, "shape": (2, 2), "typestr": "|u1",
                                                     "data": bytes(range(4))})
    check(torch.from_numpy(Image()).tolist() == [[0, 1], [2, 3]] and (torch.ones(2, 2) + Image()).sum().item() == 10)
    with fails("expected np.ndarray", kind=TypeError):
        torch.from_numpy([1, 2])
    odd = np.zeros(17, np.uint8)[1:].view(np.float64)
    check(torch.from_numpy(odd).tolist() == [0, 0])
    for dtype in (torch.double, torch.int32, np.float16, "cpu", torch.device("cpu"), torch.ones(1, dtype=torch.int8)):
        x.to(dtype)
    check(x.to(torch.float32) is x and x.double().dtype is torch.float64 and x.cpu() is x and x.long().tolist() == [
        [1, 2], [3, 4]] and x.bool().all().item() is True)
    check(x.to("cpu", torch.int16).dtype is torch.int16 and x.to(torch.float32, copy=True) is not x)
    with fails("expected a dtype, a device or a tensor", kind=TypeError):
        x.to(3)
    with fails("requires grad"):
        x.clone().requires_grad_().numpy()
    for read in (Tensor.numpy, Tensor.tolist, np.asarray):
        with fails("meta", kind=TypeError):
            read(torch.ones(2, device="meta"))
    check(torch.equal(x.detach(), x) and x.data.shape == x.shape and torch.is_tensor(x))
    check(torch.tensor([1 + 2j]).conj().resolve_conj().numpy()[0] == 1 - 2j)
    with fails("conjugate"):
        torch.tensor([1 + 2j]).conj().numpy()
    check(torch.tensor([1 + 2j]).conj().numpy(force=True)[0] == 1 - 2j and torch.tensor([1 + 2j]).conj().tolist() ==
          [1 - 2j])
    with fails("make a Tensor with", kind=TypeError):
        Tensor(2)
    torch.manual_seed(5)
    first = torch.rand(3)
    torch.manual_seed(5)
    check(torch.equal(first, torch.rand(3)))


def test_tensors_without_data():
    """Uses tensors after the end of their transform, recording or mode, and reads tensors inside: this may fail only
    with an error."""
    kept = [torch.ones(2, 3, device="meta")]
    looks = [Tensor.tolist, Tensor.numpy, repr, bool, len, list, Tensor.item, Tensor.backward, Tensor.data_ptr,
             Tensor.__dlpack__, torch.from_dlpack, lambda x: x.__dlpack__(max_version=(1, 0)), lambda x: x + 1,
             lambda x: x + np.ones(3), lambda x: x[0], lambda x: x.__setitem__(0, 1), Tensor.requires_grad_,
             lambda x: torch.vmap(torch.sin)(x), lambda x: torch.jit.trace(torch.sin, x),
             lambda x: torch.library.opcheck(torch.ops.aten.sin.default, (x,)), lambda x: x.register_hook(abs),
             lambda x: setattr(x, "grad", torch.ones(1)), lambda x: torch.autograd.grad(x, x)] + [
        lambda x, name=name: getattr(x, name) for name in
        "shape strides ndim dtype device is_leaf T mT _base _version data requires_grad grad grad_fn".split()]

    def look(x):
        for one in looks:
            with contextlib.suppress(Exception):
                one(x)
            check(torch._lib.opd_ok(), one)

    def function(x):
        kept.extend((x, x * 2))
        look(x * 3)
        return x
    torch.vmap(function)(torch.ones(2, 3))
    torch.jit.trace(function, torch.ones(2, 3))
    with torch._subclasses.fake_tensor.FakeTensorMode():
        function(torch.ones(2, 3))
    for x in kept:
        look(x)
    check(len(kept) == 7 and torch.ones(2).tolist() == [1, 1])


def test_autograd_of_tensors():
    x = torch.tensor([1., 2], requires_grad=True)
    y = (x * x).sum()
    check(y.requires_grad and x.is_leaf and not y.is_leaf and y.grad_fn == "<SumBackward0>" and x.grad_fn is None)
    y.backward(retain_graph=True)
    y.backward()
    check(x.grad.tolist() == [4, 8] and x.grad is x.grad)
    x.grad = None
    check(x.grad is None)
    x.grad = torch.ones(2)
    check(x.grad.tolist() == [1, 1])
    for wrong in (lambda: setattr(x, "grad", np.ones(2)), lambda: torch.autograd.grad(x.sum(), 5),
                  lambda: (x * 2).backward(np.ones(2)), lambda: torch.autograd.backward([1])):
        with fails("expected a Tensor", kind=TypeError):
            wrong()
    g, = torch.autograd.grad((x ** 3).sum(), x, create_graph=True)
    check(torch.autograd.grad(g.sum(), [x])[0].tolist() == [6, 12])
    z = torch.ones(2, requires_grad=True)
    check(torch.autograd.grad(x.sum(), [x, z], allow_unused=True)[1] is None)
    check(torch.autograd.grad(x.sum(), [x, z], materialize_grads=True)[1].tolist() == [0, 0])
    with fails("used in the graph"):
        torch.autograd.grad(x.sum(), [z])
    h = (x * 2)
    h.retain_grad()
    handle = h.register_hook(lambda g: g * 10)
    h.backward(torch.tensor([1., 2]))
    check(h.grad.tolist() == [10, 20])
    handle.remove()
    x.grad = None
    torch.autograd.backward([x * 2, x * 3], [torch.ones(2), torch.ones(2)])
    check(x.grad.tolist() == [5, 5])

    @torch.no_grad()
    def quiet(x):
        return x * 2
    check(not quiet(x).requires_grad and torch.is_grad_enabled())
    x.requires_grad = False
    check(not x.requires_grad)
    with fails("floating point"):
        torch.tensor([1], requires_grad=True)


def test_dlpack():
    x = torch.arange(6).reshape(2, 3)
    for y in (np.from_dlpack(x), np.from_dlpack(x.t()).T):
        check(np.array_equal(y, [[0, 1, 2], [3, 4, 5]]) and np.shares_memory(y, x.numpy()))
    check(x.__dlpack_device__() == (1, 0))
    a = np.arange(3.)
    t = torch.from_dlpack(a)
    t.add_(1)
    check(a.tolist() == [1, 2, 3])
    capsule = x.__dlpack__()
    check(torch.from_dlpack(capsule).tolist() == x.tolist())
    with fails("was not used before", kind=TypeError):
        torch.from_dlpack(capsule)
    capsule = x.__dlpack__(max_version=(1, 0))
    check("dltensor_versioned" in repr(capsule) and torch.from_dlpack(capsule).tolist() == x.tolist())
    with fails("require gradient", kind=BufferError):
        torch.ones(1, requires_grad=True).__dlpack__()
    check(not np.shares_memory(torch.from_dlpack(x.__dlpack__(copy=True)).numpy(), x.numpy()))


def test_graphs():
    x = torch.randn(3)
    graph = torch.jit.trace(lambda a, n, b: (a * n + b, a.sin()), (x, 3, x + 1), check=True)
    one, two = graph(x, x + 1)
    check(torch.equal(one, x * 3 + (x + 1)) and torch.equal(two, x.sin()) and "%a" in str(graph) and "%b" in str(graph))
    path = os.path.join(os.environ.get("TMPDIR", "/tmp"), f"python_module_{os.getpid()}.opd")
    graph.save(path)
    check(torch.equal(torch.jit.load(path)(x, x + 1)[1], x.sin()))
    os.remove(path)
    with fails("traced"):
        torch.jit.trace(lambda a: a * a.item(), torch.ones(()))
    with fails("no.such.file"):
        torch.ops.load_library("no.such.file")


def test_recorded_functions():
    sin, runs = registered("compiled::sin", 1.0), []

    @torch.compile(fullgraph=True)
    def f(x, n, by=1):
        runs.append(1)
        out = torch.zeros_like(x)
        out.add_(sin(x) * n)
        return out * by, x + 1
    x = torch.randn(3, dtype=torch.double, requires_grad=True)
    for n in (2, 3, 2, 3):
        check(torch.allclose(f(x, n, by=2)[0], x.sin() * n * 2))
    check(len(runs) == 2 and f.__name__ == "f" and torch.allclose(f(torch.ones(2, 2), 2)[1], torch.ones(2, 2) * 2))
    check(torch.autograd.gradcheck(lambda x: f(x, 2)[0], (x,)) and len(runs) == 4)
    written = torch.zeros(2)
    torch.compile(lambda x: x.add_(1))(written)
    check(written.tolist() == [1, 1])
    with fails("outside of a kernel"):
        torch.compile(lambda x: torch.from_numpy(x.numpy() * 2))(torch.ones(2))


def test_operators_that_give_back_what_they_write():
    @torch.library.custom_op("tagged::sin_", mutates_args={"x"}, tags=torch.Tag.inplace)
    def sin_(x: Tensor) -> Tensor:
        return x.copy_(torch.from_numpy(np.sin(x.numpy())))

    @torch.library.custom_op("tagged::two", mutates_args={"a", "b"}, tags=[torch.Tag.out])
    def two(x: Tensor, *, a: Tensor, b: Tensor) -> typing.Tuple[Tensor, Tensor]:
        return a.copy_(x + 1), b.copy_(x + 2)
    check(str(two._opoverload._schema) ==
          "tagged::two(Tensor x, *, Tensor(a1!) a, Tensor(a2!) b) -> (Tensor(a1!), Tensor(a2!))")
    x = torch.ones(3)
    check(sin_(x) is x and np.allclose(x.numpy(), np.sin(1)))
    a, b = torch.zeros(3), torch.zeros(3)
    out = two(x, a=a, b=b)
    check(out[0] is a and out[1] is b and torch.equal(b, x + 2))
    torch.library.opcheck(sin_, (torch.randn(3),))
    torch.library.opcheck(two, (torch.randn(3),), {"a": torch.empty(3), "b": torch.empty(3)})
    for tag, mutates in (("inplace", {"y"}), ("inplace", ()), ("out", {"x"})):
        def wrong(x: Tensor, y: Tensor) -> Tensor: pass
        with fails("tagged inplace", kind=ValueError):
            torch.library.infer_schema(wrong, mutates_args=mutates, tags=[tag])


def test_assert_close():
    x = torch.ones(3)
    torch.testing.assert_close(x, x + 1e-6)
    torch.testing.assert_close(x, x + 0.1, atol=1, rtol=0)
    for other in (x + 1e-3, torch.ones(4), x.double(), x * math.nan):
        with fails(kind=AssertionError):
            torch.testing.assert_close(x, other)


def blocks_of_the_guide(language):
    """Returns the blocks of a language in all chapters."""
    here, blocks = os.path.dirname(os.path.abspath(__file__)), []
    for chapter in sorted(glob.glob(os.path.join(here, os.pardir, "examples", "guide", "*.md"))):
        with open(chapter, encoding="utf-8") as page:
            blocks += re.findall(r"^```%s\n(.*?)^```" % language, page.read(), re.M | re.S)
    return blocks


def test_programs_of_the_guide():
    pieces = blocks_of_the_guide("python")
    check(pieces)
    for piece in pieces:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            exec(re.sub(r"^torch\.load\(.*", "", piece, flags=re.M), {"__name__": "guide"})
        check("mylib::numpy_sin(" in said.getvalue(), said.getvalue())


def test_the_package_of_the_guide():
    """Builds the package of the guide (setup.py and __init__.py) in place, and imports it in another process."""
    try:
        import setuptools  # noqa: F401
    except ImportError:
        print("skip the package of the guide: no setuptools")
        return
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir)
    setup, init = blocks_of_the_guide("py")
    with open(os.path.join(root, "examples", "plugin.c"), encoding="utf-8") as plugin:
        ops = plugin.read().replace("../opdispatch.h", "opdispatch.h")
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(os.path.join(folder, "csrc"))
        os.mkdir(os.path.join(folder, "mypackage"))
        shutil.copy(os.path.join(root, "opdispatch.h"), os.path.join(folder, "csrc"))
        shutil.copy(os.path.join(root, "examples", "opdispatch.py"), os.path.join(folder, "mypackage"))
        for name, text in (("setup.py", setup), ("mypackage/__init__.py", init), ("csrc/ops.c", ops),
                           ("csrc/library.c", '#define OPDISPATCH_IMPLEMENTATION\n#include "opdispatch.h"\n')):
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        about = dict(os.environ, CFLAGS="-O0", PYTHONPATH="")
        if shutil.which("clang"):                 # takes a third of gcc's time
            about.update(CC="clang", LDSHARED="clang -shared")
        use = ("import mypackage; tensor = mypackage.torch.tensor; "
               "print(mypackage.dot(tensor([1., 2.]), tensor([3., 4.])).item())")
        for command in (["setup.py", "-q", "build_ext", "--inplace"], ["-c", use]):
            done = subprocess.run([sys.executable] + command, cwd=folder, env=about, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, universal_newlines=True)
            check(done.returncode == 0, done.stdout[-2000:])
        check(done.stdout.strip() == "11.0", done.stdout[-2000:])


def main():
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    for name, test in list(globals().items()):
        if name.startswith("test_") and only in name:
            before = counts[1]
            try:
                test()
            except BaseException:
                counts[1] += 1
                traceback.print_exc(file=sys.stdout)
            if counts[1] > before:
                print(f"FAIL {name}")
            check(torch._lib.opd_ok(), name, "an error is left pending")
    print(f"{counts[0]} passed, {counts[1]} failed")
    return counts[1] > 0


if __name__ == "__main__":
    sys.exit(main())
