# Operators by name from Python, and operators written in Python: a shared build through ctypes, NumPy's arrays in by
# DLPack and out by its array interface (NumPy holds what comes by DLPack for read-only), without a copy.
# cc -O2 -shared -fPIC -DOPDISPATCH_IMPLEMENTATION -x c opdispatch.h -o libopdispatch.so -lm
# ci: $tmp/libopdispatch.so $tmp/plugin.so
#
# python3 examples/call_from_python.py [./libopdispatch.so [plugin.so]]; the plug-in is that of examples/plugin.c.
# `ops.aten.add(x, y, alpha=2)` looks for the overload that takes these arguments, as torch.ops does.
# Needs NumPy: python3-numpy of Debian.
import ctypes
import sys
from ctypes import POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_uint64, c_void_p

import numpy as np

# ---- what the header declares ----

NONE, TENSOR, INT, FLOAT, BOOL, COMPLEX, STR, DEVICE, OBJECT, INTS, FLOATS, BOOLS, TENSORS = range(13)
DEF, ERROR_USER = 1, 12


class Content(ctypes.Union):
    _fields_ = [("i", c_int64), ("d", c_double), ("s", c_char_p), ("p", c_void_p)]


class Value(ctypes.Structure):  # opd_value
    _fields_ = [("tag", c_int32), ("n", c_int32), ("u", Content)]


class Keyword(ctypes.Structure):  # opd_keyword
    _fields_ = [("name", c_char_p), ("value", Value)]


class Scope(ctypes.Structure):  # opd_scope
    _fields_ = [("mark", c_int64), ("outer", c_int64), ("depth", c_int32), ("open", c_int32)]


class Managed(ctypes.Structure):  # DLManagedTensor
    _fields_ = [("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
                ("dtype", c_int32), ("shape", c_void_p), ("strides", c_void_p), ("byte_offset", c_uint64),
                ("manager", c_void_p), ("deleter", ctypes.PYFUNCTYPE(None, c_void_p))]


def load(path):
    lib = ctypes.CDLL(path)
    for name, result, arguments in [
            ("opd_ok", c_bool, []), ("opd_error_message", c_char_p, []), ("opd_error_clear", None, []),
            ("opd_finish", c_int, []), ("opd_library_load", c_void_p, [c_char_p]),
            ("opd_scope_open", Scope, []), ("opd_scope_close", None, [POINTER(Scope)]),
            ("opd_overloads_find", c_void_p, [c_char_p]), ("opd_op_schema", c_void_p, [c_void_p]),
            ("opd_schema_nreturns", c_int, [c_void_p]),
            ("opd_overloads_resolve", c_void_p, [c_void_p, c_void_p, c_int, c_void_p, c_int]),
            ("opd_overloads_call", c_int, [c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_int]),
            ("opd_dlpack_import_unversioned", c_void_p, [c_void_p]),
            ("opd_dlpack_export_unversioned", c_void_p, [c_void_p]),
            ("opd_library_open", c_void_p, [c_int, c_char_p, c_char_p, c_char_p, c_int]),
            ("opd_def", c_int, [c_void_p, c_char_p]),
            ("opd_impl_key", c_int, [c_void_p, c_char_p, c_char_p, c_void_p, c_void_p, c_void_p]),
            ("opd_call_args", c_void_p, [c_void_p]), ("opd_call_nargs", c_int, [c_void_p]),
            ("opd_return_tensor", c_int, [c_void_p, c_void_p]), ("opd_fail", c_int, [c_int, c_char_p, c_char_p])]:
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


# ---- memory: DLPack's struct travels in a capsule, whose name says whether somebody has taken it ----

python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]
TAKEN = b"used_dltensor"  # the capsule keeps this address
KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}  # DLPack's codes in NumPy's letters


class Owner:
    """A tensor of the library's: numpy.asarray of it is its memory, writable, which it keeps for as long as the array."""

    def __init__(self, address):
        self.address = address
        t = Managed.from_address(address)
        kind, bits = KINDS.get(t.dtype & 255), t.dtype >> 8 & 255
        if kind is None:
            raise TypeError("NumPy has no such dtype")
        shape = tuple((c_int64 * t.ndim).from_address(t.shape)) if t.ndim else ()
        steps = tuple(s * bits // 8 for s in (c_int64 * t.ndim).from_address(t.strides)) if t.ndim else ()
        self.nothing = np.empty(1) if 0 in shape else None
        data = self.nothing.ctypes.data if 0 in shape else t.data + t.byte_offset
        self.__array_interface__ = {"shape": shape, "typestr": f"{'|' if bits == 8 else '<'}{kind}{bits // 8}",
                                    "data": (data, False), "strides": None if 0 in shape else steps, "version": 3}

    def __del__(self):
        Managed.from_address(self.address).deleter(self.address)


# ---- calls ----

class Operator:
    def __init__(self, lib, name):
        self.lib, self.name = lib, name
        self.overloads = name and lib.opd_overloads_find(name.encode())
        self.check()

    def check(self):
        if not self.lib.opd_ok():
            message = self.lib.opd_error_message().decode()
            self.lib.opd_error_clear()
            raise RuntimeError(message)

    def tensor(self, array):
        capsule = array.__dlpack__()
        python.PyCapsule_SetName(capsule, TAKEN)  # the library calls the deleter from here on, also when it fails
        t = self.lib.opd_dlpack_import_unversioned(python.PyCapsule_GetPointer(capsule, TAKEN))
        self.check()
        return t

    def array(self, tensor):
        address = self.lib.opd_dlpack_export_unversioned(tensor)
        self.check()
        return np.asarray(Owner(address))

    def value(self, x, keep):
        """A C value; what it points to is put into keep."""
        v = Value()
        if isinstance(x, np.ndarray):
            v.tag, v.u.p = TENSOR, self.tensor(x)
        elif isinstance(x, (bool, np.bool_)):
            v.tag, v.u.i = BOOL, int(x)
        elif isinstance(x, (int, np.integer)):
            v.tag, v.u.i = INT, int(x)
        elif isinstance(x, (float, np.floating)):
            v.tag, v.u.d = FLOAT, float(x)
        elif isinstance(x, str):
            keep.append(x.encode())
            v.tag, v.n, v.u.s = STR, len(keep[-1]), keep[-1]
        elif isinstance(x, (list, tuple)):
            if any(isinstance(e, np.ndarray) for e in x):
                v.tag, kind, x = TENSORS, c_void_p, [self.tensor(e) for e in x]
            elif any(isinstance(e, (float, np.floating)) for e in x):
                v.tag, kind = FLOATS, c_double
            else:
                v.tag, kind = (BOOLS, c_bool) if x and isinstance(x[0], bool) else (INTS, c_int64)
            keep.append((kind * len(x))(*x))
            v.n, v.u.p = len(x), ctypes.addressof(keep[-1])
        elif x is not None:
            raise TypeError(f"{self.name}: no operator takes a {type(x).__name__}")
        return v

    def result(self, v):
        if v.tag == TENSOR:
            return self.array(v.u.p)
        if v.tag == TENSORS:
            return [self.array(t) for t in (c_void_p * v.n).from_address(v.u.p)]
        return {INT: v.u.i, BOOL: bool(v.u.i), FLOAT: v.u.d, STR: v.u.s if v.tag == STR else None}.get(v.tag)

    def __call__(self, *args, **named):
        lib, keep, rets = self.lib, [], (Value * 16)()
        scope = lib.opd_scope_open()  # what the call makes lives until the end of this, or as long as an array of it
        try:
            values = (Value * (len(args) + 1))(*[self.value(x, keep) for x in args])
            keywords = (Keyword * (len(named) + 1))(*[(n.encode(), self.value(x, keep)) for n, x in named.items()])
            given = (values, len(args), keywords, len(named))
            op = lib.opd_overloads_resolve(self.overloads, *given)
            self.check()
            lib.opd_overloads_call(self.overloads, rets, *given)
            self.check()
            out = [self.result(rets[i]) for i in range(lib.opd_schema_nreturns(lib.opd_op_schema(op)))]
            return out[0] if len(out) == 1 else tuple(out) or None
        finally:
            lib.opd_scope_close(byref(scope))


# ---- operators written in Python ----

KERNEL = ctypes.CFUNCTYPE(c_int, c_void_p)


class Library:
    """Operators of a namespace whose kernels are Python functions: of arrays and numbers, to an array or several."""

    def __init__(self, lib, namespace):
        self.lib, self.calls = lib, []  # what C calls has to stay
        self.handle = lib.opd_library_open(DEF, namespace.encode(), None, __file__.encode(), 0)

    def define(self, schema, function):
        lib, name = self.lib, schema.split("(")[0]
        here = Operator(lib, None)

        @KERNEL
        def kernel(call):
            try:
                args = (Value * lib.opd_call_nargs(call)).from_address(lib.opd_call_args(call))
                out = function(*[here.result(v) for v in args])
                for array in out if isinstance(out, tuple) else (out,):
                    if lib.opd_return_tensor(call, here.tensor(np.ascontiguousarray(array))):
                        return -1
                return 0
            except Exception as error:  # it must not leave the kernel
                return lib.opd_fail(ERROR_USER, b"%s", f"{type(error).__name__}: {error}".encode())

        self.calls.append(kernel)
        lib.opd_def(self.handle, schema.encode())
        lib.opd_impl_key(self.handle, name.encode(), b"CPU", kernel, None, None)
        here.check()


class Namespace:
    def __init__(self, lib, name=None):
        self._lib, self._name = lib, name

    def __getattr__(self, name):
        found = Operator(self._lib, f"{self._name}::{name}") if self._name else Namespace(self._lib, name)
        setattr(self, name, found)
        return found


# ---- what is done with it ----

def main(path="./libopdispatch.so", plugin=None):
    lib = load(path)
    ops = Namespace(lib)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.ones((2, 3), np.float32)
    print(ops.aten.add(x, y, alpha=10))
    assert np.array_equal(ops.aten.add(x, y, alpha=10), x + 10 * y)
    assert np.allclose(ops.aten.softmax(x, 1).sum(1), 1)
    values, places = ops.aten.max(x, 1)
    assert list(values) == [2, 5] and list(places) == [2, 2]
    assert np.array_equal(ops.aten.cat([x, y], 0), np.concatenate([x, y]))
    assert len(ops.aten.split(x, 1, 1)) == 3

    ops.aten.mul_(x[:, 1:], 2)  # into NumPy's memory, through a view of it
    print(x)
    assert x.tolist() == [[0, 2, 4], [3, 8, 10]]
    turned = ops.aten.t(x)  # a view of NumPy's memory, given back
    x[0, 2] = -1
    assert np.shares_memory(turned, x) and turned[2, 0] == -1
    print(turned)

    z = ops.aten.add(ops.aten.exp(x), 1.0)  # a result is an argument of the next, and may be written
    assert np.allclose(z, np.exp(x) + 1)
    z[0, 0] = 5
    assert ops.aten.sum(z[:1, :1]) == 5 and ops.aten.zeros([0, 3]).shape == (0, 3)

    mine = Library(lib, "mine")
    mine.define("blend(Tensor a, Tensor b, float weight=0.5) -> Tensor", lambda a, b, w: a * w + b * (1 - w))
    mine.define("broken(Tensor a) -> Tensor", lambda a: a.reshape(1000))
    print(ops.mine.blend(x, y))
    assert np.allclose(ops.mine.blend(x, y, weight=0.25), x / 4 + y * 3 / 4)
    try:
        ops.mine.broken(x)
    except RuntimeError as error:
        print(error)

    large = ops.aten.exp(np.zeros((1000, 1000)))
    assert large.sum() == 1e6 and not large.flags.owndata  # the library's memory, which the array keeps alive
    try:
        ops.aten.add(x, np.ones(5, np.float32))
    except RuntimeError as error:
        print(error)
    try:
        ops.aten.nothing
    except RuntimeError as error:
        print(error)
    if plugin:
        lib.opd_library_load(plugin.encode())
        print(ops.plugin.dot(np.float32([1, 2, 3]), np.float32([4, 5, 6])))
    return lib.opd_finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
