# Operators by name from Python: a shared build through ctypes, NumPy's arrays in and out by DLPack, without a copy.
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
            ("opd_finish", c_int, []), ("opd_load_library", c_void_p, [c_char_p]),
            ("opd_scope_open", Scope, []), ("opd_scope_close", None, [POINTER(Scope)]),
            ("opd_overloads_find", c_void_p, [c_char_p]), ("opd_op_schema", c_void_p, [c_void_p]),
            ("opd_schema_nreturns", c_int, [c_void_p]),
            ("opd_overloads_resolve", c_void_p, [c_void_p, c_void_p, c_int, c_void_p, c_int]),
            ("opd_overloads_call", c_int, [c_void_p, c_void_p, c_void_p, c_int, c_void_p, c_int]),
            ("opd_dlpack_import_unversioned", c_void_p, [c_void_p]),
            ("opd_dlpack_export_unversioned", c_void_p, [c_void_p])]:
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments
    return lib


# ---- memory: DLPack's struct travels in a capsule, whose name says whether somebody has taken it ----

python = ctypes.pythonapi
python.PyCapsule_GetPointer.restype = c_void_p
python.PyCapsule_GetPointer.argtypes = [ctypes.py_object, c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, c_char_p]
python.PyCapsule_New.restype = ctypes.py_object
python.PyCapsule_New.argtypes = [c_void_p, c_char_p, c_void_p]
capsule_is_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", python))
capsule_pointer = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", python))
HERE, TAKEN = b"dltensor", b"used_dltensor"  # the capsules keep these addresses


@ctypes.PYFUNCTYPE(None, c_void_p)
def drop_capsule(capsule):
    if capsule_is_valid(capsule, HERE):  # nobody took it
        address = capsule_pointer(capsule, HERE)
        Managed.from_address(address).deleter(address)


class Exported:
    """A tensor of the library's, for numpy.from_dlpack."""

    def __init__(self, address):
        self.address = address

    def __dlpack__(self, **options):
        return python.PyCapsule_New(self.address, HERE, ctypes.cast(drop_capsule, c_void_p))

    def __dlpack_device__(self):
        return (1, 0)  # the CPU


# ---- calls ----

class Operator:
    def __init__(self, lib, name):
        self.lib, self.name = lib, name
        self.overloads = lib.opd_overloads_find(name.encode())
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
        return np.from_dlpack(Exported(address))

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
        lib.opd_load_library(plugin.encode())
        print(ops.plugin.dot(np.float32([1, 2, 3]), np.float32([4, 5, 6])))
    return lib.opd_finish()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
