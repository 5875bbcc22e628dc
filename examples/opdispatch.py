"""PyTorch's torch.library for Python, without PyTorch: calls operators by name, and registers operators that are
written in Python.  Uses a shared library made from opdispatch.h, through ctypes.

    cc -O2 -shared -fPIC -DOPDISPATCH_IMPLEMENTATION -x c opdispatch.h -o libopdispatch.so -lm

    import opdispatch as torch                    # the names are PyTorch's, so programs may import it as torch
    torch.load("./libopdispatch.so")              # the default: $OPD_LIBRARY, else beside this file or in this folder

    @torch.library.custom_op("mylib::scale", mutates_args=())
    def scale(x: torch.Tensor, by: float) -> torch.Tensor:
        return torch.from_numpy(x.numpy() * by)

    scale.register_fake(lambda x, by: torch.empty_like(x))
    print(torch.ops.mylib.scale(torch.randn(3), 2.0), torch.ops.aten.add.Tensor)

- A Tensor holds a tensor of the library as long as the Python object exists.  No scope is ever left open.  All ATen
  operators are functions (`torch.sin(x)`), methods (`x.sin()`) and operators by name (`torch.ops.aten.sin(x)`).
- A NumPy array can be passed as a tensor.  Its memory is shared, not copied (a read-only array is copied), and
  x.numpy() shares the memory of the tensor.  Nothing else here needs NumPy.
- An error of the library becomes an Error (a RuntimeError) with the error message.  An exception in a kernel, a fake
  kernel, a backward function or a hook makes the call fail with an Error, and is the cause of this Error.

Needs Python 3.9 or later.  Any thread may call.
"""
import atexit
import collections
import collections.abc
import contextlib
import ctypes
import functools
import inspect
import itertools
import numbers
import os
import struct
import sys
import threading
import types
import typing
import weakref
from ctypes import CFUNCTYPE, POINTER, byref, c_bool, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint
from ctypes import c_uint64, c_void_p

# ---- what the header declares ----------------------------------------------------------------------------------------

(_NONE, _TENSOR, _INT, _FLOAT, _BOOL, _COMPLEX, _STR, _DEVICE, _OBJECT, _INTS, _FLOATS, _BOOLS, _TENSORS, _LIST,
 _DEFAULT, _CELL) = range(16)
_FRAGMENT, _IMPL = 2, 3
_MEMORY, _NOT_FOUND, _ARGUMENT, _INDEX, _USER = 1, 4, 5, 8, 12


class _Value(ctypes.Structure):                   # opd_value; the union as its eight bytes
    _fields_ = [("tag", c_int32), ("n", c_int32), ("u", c_int64)]


class _Keyword(ctypes.Structure):                 # opd_keyword
    _fields_ = [("name", c_char_p), ("value", _Value)]


class _List(ctypes.Structure):                    # opd_ints, opd_tensors
    _fields_ = [("data", c_void_p), ("n", c_int64)]


class _Scope(ctypes.Structure):                   # opd_scope
    _fields_ = [("mark", c_int64), ("outer", c_int64), ("depth", c_int32), ("open", c_int32)]


class _Device(ctypes.Structure):                  # opd_device
    _fields_ = [("type", c_int32), ("index", c_int32)]


class _BackwardOptions(ctypes.Structure):         # opd_backward_options
    _fields_ = [("grad_outputs", c_void_p), ("retain_graph", c_bool), ("create_graph", c_bool),
                ("allow_unused", c_bool), ("inputs", c_void_p), ("ninputs", c_int), ("materialize_grads", c_bool),
                ("input_edges", c_void_p), ("is_grads_batched", c_bool)]


class _GradcheckOptions(ctypes.Structure):        # opd_gradcheck_options
    _fields_ = [("eps", c_double), ("atol", c_double), ("rtol", c_double), ("nondet_tol", c_double)] + [
        (name, c_bool) for name in (
            "raise_exception", "check_undefined_grad", "check_grad_dtypes", "check_backward_ad", "check_forward_ad",
            "check_batched_grad", "check_batched_forward_grad", "fast_mode", "check_fwd_over_rev",
            "check_rev_over_rev")] + [("report", c_void_p), ("report_cap", c_size_t)]


class _OpcheckOptions(ctypes.Structure):          # opd_opcheck_options
    _fields_ = [("tests", c_uint), ("atol", c_double), ("rtol", c_double), ("seed", c_uint64), ("same_sizes", c_bool),
                ("failed", c_void_p), ("report", c_void_p), ("report_cap", c_size_t)]


class _TraceOptions(ctypes.Structure):            # opd_trace_options
    _fields_ = [("names", c_void_p), ("nnames", c_int), ("allow_constants", c_bool), ("list_output", c_bool),
                ("check", c_bool), ("tolerance", c_double), ("locations", c_bool), ("parts", c_bool)]


class _VmapOptions(ctypes.Structure):             # opd_vmap_options
    _fields_ = [("in_dims", c_void_p), ("nin_dims", c_int), ("out_dims", c_void_p), ("nout_dims", c_int),
                ("randomness", c_int), ("chunk_size", c_int64), ("name", c_char_p)]


class _FakeBlock(ctypes.Structure):               # opd_fake_block
    _fields_ = [("open", c_bool), ("mode", c_void_p), ("include", c_uint64), ("exclude", c_uint64)]


class _Memory(ctypes.Structure):                  # opd_memory
    _fields_ = [("live", c_int64), ("cached", c_int64), ("peak", c_int64), ("allocations", c_int64)]


class _Managed(ctypes.Structure):                 # DLManagedTensor
    _fields_ = [("tensor", c_int64 * 6), ("context", c_void_p), ("deleter", c_void_p)]


class _ManagedVersioned(ctypes.Structure):        # DLManagedTensorVersioned, as far as it is read
    _fields_ = [("version", c_uint64), ("context", c_void_p), ("deleter", c_void_p)]


_CALL = CFUNCTYPE(c_int, c_void_p)                # opd_kernel, opd_vmap_rule, opd_backward_fn, opd_setup_fn
_TRANSFORM = CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_void_p)      # opd_transform_fn, opd_gradcheck_fn
_HOOK = CFUNCTYPE(c_void_p, c_void_p, c_void_p)   # opd_tensor_hook_fn
_DESTROY = CFUNCTYPE(None, c_void_p)              # opd_destroy
_DELETER = CFUNCTYPE(None, c_void_p, c_void_p)

_text, _ptr, _int = c_char_p, c_void_p, c_int
_FUNCTIONS = {
    "opd_ok": (c_bool,), "opd_error_message": (_text,), "opd_error_code": (_int,), "opd_error_clear": (None,),
    "opd_fail": (_int, _int, _text), "opd_finish": (_int,), "opd_memory_stats": (_Memory,),
    "opd_plugin_load": (_ptr, _text), "opd_scope_open": (_Scope,), "opd_scope_close": (None, POINTER(_Scope)),
    "opd_keep": (_ptr, _ptr), "opd_release": (None, _ptr), "opd_tuple_new": (_Value, _ptr, c_int64),
    "opd_find": (_ptr, _text), "opd_find_quiet": (_ptr, _text), "opd_op_name": (_text, _ptr),
    "opd_op_schema": (_ptr, _ptr), "opd_schema_print": (c_size_t, _ptr, _text, c_size_t),
    "opd_schema_hash": (c_uint64, _ptr), "opd_schema_parse": (_ptr, _text), "opd_schema_free": (None, _ptr),
    "opd_overloads_find": (_ptr, _text), "opd_overloads_at": (_ptr, _ptr, _int),
    "opd_overloads_resolve": (_ptr, _ptr, _ptr, _int, _ptr, _int),
    "opd_call_keywords": (_int, _ptr, _ptr, _ptr, _int, _ptr, _int),
    "opd_library_open": (_ptr, _int, _text, _text, _text, _int), "opd_library_close": (None, _ptr),
    "opd_def": (_int, _ptr, _text), "opd_impl_key": (_int, _ptr, _text, _text, _ptr, _ptr, _ptr),
    "opd_fake_register": (_int, _ptr, _text, _ptr), "opd_vmap_register": (_int, _ptr, _text, _ptr),
    "opd_autograd_register": (_int, _ptr, _text, _ptr, _ptr), "opd_call_operator": (_ptr, _ptr),
    "opd_call_args": (_ptr, _ptr), "opd_return_value": (_int, _ptr, _Value), "opd_grad_mode_set": (c_bool, c_bool),
    "opd_grad_mode_enabled": (c_bool,), "opd_fake_new_size": (c_int64, _ptr, c_int64, c_int64),
    "opd_tensor_from": (_ptr, _ptr, _List, _int), "opd_tensor_wrap": (_ptr, _ptr, _List, _ptr, _int, _ptr, _ptr),
    "opd_ndim": (_int, _ptr), "opd_sizes": (_ptr, _ptr), "opd_strides": (_ptr, _ptr), "opd_numel": (c_int64, _ptr),
    "opd_tensor_offset": (c_int64, _ptr), "opd_dtype": (_int, _ptr), "opd_tensor_device": (_Device, _ptr),
    "opd_is_contiguous": (c_bool, _ptr), "opd_tensor_is_conj": (c_bool, _ptr), "opd_tensor_is_neg": (c_bool, _ptr),
    "opd_data": (_ptr, _ptr), "opd_tensor_version": (c_uint, _ptr), "opd_tensor_data": (_ptr, _ptr),
    "opd_tensor_print": (c_size_t, _ptr, _text, c_size_t), "opd_tensor_set_requires_grad": (_ptr, _ptr, c_bool),
    "opd_tensor_requires_grad": (c_bool, _ptr), "opd_tensor_same_storage": (c_bool, _ptr, _ptr),
    "opd_tensor_is_leaf": (c_bool, _ptr), "opd_tensor_base": (_ptr, _ptr),
    "opd_tensor_grad": (_ptr, _ptr), "opd_tensor_set_grad": (_int, _ptr, _ptr), "opd_tensor_grad_fn": (_text, _ptr),
    "opd_tensor_retain_grad": (_int, _ptr), "opd_tensor_hook_add": (c_int64, _ptr, _ptr, _ptr, _ptr),
    "opd_hook_remove": (c_bool, c_int64), "opd_dtype_name": (_text, _int), "opd_dtype_size": (c_size_t, _int),
    "opd_dtype_is_floating": (c_bool, _int), "opd_dtype_is_complex": (c_bool, _int),
    "opd_device_parse": (_int, _text, POINTER(_Device)), "opd_device_print": (c_size_t, _Device, _text, c_size_t),
    "opd_manual_seed": (None, c_uint64), "opd_generator_new": (_ptr, c_uint64), "opd_generator_free": (None, _ptr),
    "opd_generator_seed": (None, _ptr, c_uint64),
    "opd_dlpack_export": (_ptr, _ptr, c_uint), "opd_dlpack_export_unversioned": (_ptr, _ptr),
    "opd_dlpack_import": (_ptr, _ptr, POINTER(c_uint)), "opd_dlpack_import_unversioned": (_ptr, _ptr),
    "opd_backward_with": (_int, _ptr, _int, _ptr), "opd_autograd_grad": (_int, _ptr, _int, _ptr, _int, _ptr, _ptr),
    "opd_fake_begin": (_FakeBlock,), "opd_fake_end": (None, POINTER(_FakeBlock)),
    "opd_bw_grad": (_ptr, _ptr, _int), "opd_bw_return": (_int, _ptr, _int, _ptr),
    "opd_bw_return_at": (_int, _ptr, _int, _int, _ptr), "opd_bw_context": (_ptr, _ptr),
    "opd_context_input": (_Value, _ptr, _int), "opd_context_output": (_Value, _ptr, _int),
    "opd_context_needs_input_grad": (c_bool, _ptr, _int), "opd_context_save_for_backward": (_int, _ptr, _ptr, _int),
    "opd_context_nsaved": (_int, _ptr), "opd_context_saved": (_ptr, _ptr, _int),
    "opd_context_mark_non_differentiable": (_int, _ptr, _ptr),
    "opd_context_set_materialize_grads": (None, _ptr, c_bool), "opd_context_set_data": (_int, _ptr, _ptr, _ptr),
    "opd_context_data": (_ptr, _ptr), "opd_batch_arg": (_ptr, _ptr, _int, POINTER(c_int)),
    "opd_batch_value": (_ptr, _ptr, POINTER(c_int)), "opd_batch_size": (c_int64,), "opd_batch_randomness": (_int,),
    "opd_batch_return": (_int, _ptr, _ptr, _int), "opd_batch_return_list": (_int, _ptr, _ptr, c_int64, _int),
    "opd_vmap": (_int, _ptr, _ptr, _ptr, _int, _ptr, _ptr, _int), "opd_gradcheck_defaults": (_GradcheckOptions,),
    "opd_gradcheck": (_int, _ptr, _ptr, _ptr, _int, _ptr),
    "opd_gradgradcheck": (_int, _ptr, _ptr, _ptr, _int, _ptr, _ptr), "opd_opcheck": (_int, _ptr, _ptr, _int, _ptr),
    "opd_graph_trace": (_ptr, _ptr, _ptr, _ptr, _int, _ptr), "opd_graph_free": (None, _ptr),
    "opd_graph_run": (_int, _ptr, _ptr, _int, _ptr, _int), "opd_graph_print": (c_size_t, _ptr, _text, c_size_t),
    "opd_graph_ninputs": (_int, _ptr), "opd_graph_noutputs": (_int, _ptr), "opd_graph_save": (_int, _ptr, _text),
    "opd_graph_load": (_ptr, _text)}


class _Functions:
    """The functions of the library as attributes.  The library is loaded, and a function is bound, at the first use."""
    path = None

    def __getattr__(self, name):
        if name == "dll":
            here = os.path.dirname(os.path.abspath(__file__))
            places = [os.path.join(d, "libopdispatch" + end) for d in (here, ".") for end in (".so", ".dylib")]
            path = self.path or os.environ.get("OPD_LIBRARY") or next(filter(os.path.exists, places), None)
            if path is None:
                raise OSError("there is no libopdispatch.so in this folder or beside opdispatch.py: build it (the first lines "
                              "of opdispatch.py say how), and call opdispatch.load(path) or set OPD_LIBRARY")
            self.dll = ctypes.CDLL(os.path.abspath(path))
            return self.dll
        function = getattr(self.dll, name)
        function.restype, *function.argtypes = _FUNCTIONS[name]
        setattr(self, name, function)
        return function


_lib = _Functions()


def load(path):
    """Uses this shared library, made from opdispatch.h.  Call it before anything else of this module."""
    if "dll" not in vars(_lib):
        if not os.path.exists(path):
            raise OSError(f"{path}: the file does not exist: the first lines of opdispatch.py tell how to build a library")
        _lib.path = path
        _lib.dll
    elif os.path.realpath(path) != os.path.realpath(_lib.dll._name):
        raise RuntimeError(f"opdispatch.load: {_lib.dll._name} is already loaded")


# ---- errors, and Python objects that C holds -------------------------------------------------------------------------

class Error(RuntimeError):
    """An error of the library.  `code` is its opd_code.  If an exception in a Python callback caused it, this is its
    cause."""
    code = _USER


class OpCheckError(Error):
    pass


class GradcheckError(Error):
    pass


def _mixed(also, kind=Error, made={}):
    """Returns a class of errors that is also a subclass of one of Python's: IndexError, ..."""
    if (also, kind) not in made:
        made[also, kind] = type(kind.__name__, (kind, also), {"__module__": __name__})
    return made[also, kind]


_ALSO = {_MEMORY: MemoryError, _NOT_FOUND: AttributeError, _INDEX: IndexError}
_local = threading.local()                        # .first: (text, exception) of the first exception in a callback


def _raise(kind=Error):
    """Raises the pending error of this thread, and clears it."""
    text, code = _lib.opd_error_message().decode(errors="replace"), _lib.opd_error_code()
    _lib.opd_error_clear()
    said, cause = getattr(_local, "first", None) or ("", None)
    _local.first = None
    if cause is not None and said[:200] not in text:
        cause = None                              # the cause of an earlier error, which was cleared
    if cause is not None and not isinstance(cause, Exception):
        raise cause                               # KeyboardInterrupt, SystemExit
    error = (_mixed(_ALSO[code], kind) if code in _ALSO else kind)(text or "the library failed without setting an error")
    error.code = code
    raise error from cause


def _check():
    if not _lib.opd_ok():
        _raise()


def _fail(exception):
    """Turns an exception of a callback into an error of the library, because C cannot handle it.  Returns -1."""
    if isinstance(exception, Error):
        text, code, first = str(exception), exception.code, exception.__cause__ or exception
    else:
        text, code, first = f"{type(exception).__name__}: {exception}", _USER, exception
    if _lib.opd_ok():
        _local.first = (text, first)
        _lib.opd_fail(code, text.replace("%", "%%").encode(errors="replace"))
    return -1


_held, _numbers = {}, itertools.count(1)          # objects to which C refers by number, not by address
_forever = []                                     # functions that C may call at any time, and strings that C keeps


def _hold(thing):
    number = next(_numbers)
    _held[number] = thing
    return number


@_DESTROY
def _drop(number):
    _held.pop(number, None)


@_DELETER
def _array_gone(data, number):
    _held.pop(number, None)


@contextlib.contextmanager
def _scope():
    scope = _lib.opd_scope_open()
    try:
        yield
    finally:
        _lib.opd_scope_close(byref(scope))


_finished = []                                    # not empty once the interpreter exits


@atexit.register
def _finish():
    _finished.append(True)
    Generator.__del__ = Graph.__del__ = lambda self: None
    if "dll" in vars(_lib):
        _lib.opd_finish()


# ---- dtypes, devices, generators -------------------------------------------------------------------------------------

class _Named:
    """A number of the library with a name: torch.float32, torch.channels_last."""

    def __init__(self, name, number):
        self.name, self.number = name, number

    def __repr__(self):
        return f"{__name__}.{self.name}"

    def __reduce__(self):
        return self.name


class dtype(_Named):
    itemsize = property(lambda self: _lib.opd_dtype_size(self.number))
    is_floating_point = property(lambda self: _lib.opd_dtype_is_floating(self.number))
    is_complex = property(lambda self: _lib.opd_dtype_is_complex(self.number))


class layout(_Named):
    pass


class memory_format(_Named):
    pass


_DTYPES = {number: dtype(name, number) for name, number in dict(
    uint8=0, int8=1, int16=2, int32=3, int64=4, float16=5, float32=6, float64=7, complex32=8, complex64=9,
    complex128=10, bool=11, bfloat16=15, float8_e5m2=23, float8_e4m3fn=24, float8_e5m2fnuz=25, float8_e4m3fnuz=26,
    uint16=27, uint32=28, uint64=29, float8_e8m0fnu=44).items()}
_LAYOUTS = {number: layout(name, number) for number, name in enumerate(
    ["strided", "sparse_coo", "sparse_csr", "_mkldnn", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"])}
_FORMATS = {number: memory_format(name, number) for number, name in enumerate(
    ["contiguous_format", "preserve_format", "channels_last", "channels_last_3d"])}
_ENUMS = {"ScalarType": _DTYPES, "Layout": _LAYOUTS, "MemoryFormat": _FORMATS}
_SHORT = dict(half=5, float=6, double=7, short=2, int=3, long=4, cfloat=9, cdouble=10, bool=11)
_NUMPY = {"u1": 0, "i1": 1, "i2": 2, "i4": 3, "i8": 4, "f2": 5, "f4": 6, "f8": 7, "c8": 9, "c16": 10, "b1": 11,
          "u2": 27, "u4": 28, "u8": 29}           # kinds of arrays; a bool is one byte in NumPy, too
_KINDS = {number: kind for kind, number in _NUMPY.items()}
_ORDER = "<" if sys.byteorder == "little" else ">"
_PYTHON = {float: 7, int: 4, bool: 11, complex: 10}


def _dtype_of(x):
    """Returns the dtype for x, which is a dtype, a dtype of NumPy or a type of Python; otherwise None."""
    if isinstance(x, dtype):
        return x
    if isinstance(x, type) and x in _PYTHON:
        return _DTYPES[_PYTHON[x]]
    if type(x).__module__.split(".")[0] == "numpy" or getattr(x, "__module__", "") == "numpy":
        import numpy
        try:
            text = numpy.dtype(x).str.lstrip("<>=|")
        except TypeError:
            return None
        return _DTYPES.get(_NUMPY.get(text))
    return None


class device:
    """torch.device("cuda:1").  If `index` is None, it is the current device."""

    def __init__(self, type, index=None):
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        self._c = _Device()
        text = type if index is None else f"{type}:{index}"
        if _lib.opd_device_parse(text.encode(), byref(self._c)):
            _raise()
        self.type, self.index = type.split(":")[0], None if self._c.index < 0 else self._c.index

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self):
        return f"device(type='{self.type}'" + (")" if self.index is None else f", index={self.index})")

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))


def _device_from(c):
    text = ctypes.create_string_buffer(64)
    _lib.opd_device_print(c, text, 64)
    return device(text.value.decode())


class Generator:
    """torch.Generator: a random number generator with its own state."""

    def __init__(self, device="cpu", _address=None):
        self._own = _address is None
        self._p = _address or _lib.opd_generator_new(67280421310721)
        if not self._p:
            _raise()

    def manual_seed(self, seed):
        _lib.opd_generator_seed(self._p, seed)
        return self

    def __del__(self):
        if getattr(self, "_own", False) and self._p:
            _lib.opd_generator_free(self._p)


def manual_seed(seed):
    """Seeds the default generator."""
    _lib.opd_manual_seed(seed & (1 << 64) - 1)


class Size(tuple):
    """The sizes of a tensor: a tuple."""

    def __repr__(self):
        return f"Size({list(self)})"

    def numel(self):
        n = 1
        for size in self:
            n *= size
        return n


# ---- schemas ---------------------------------------------------------------------------------------------------------

_Type = collections.namedtuple("_Type", "kind element")      # kind is "?" or "[]" of an element, or the name of a type
_Arg = collections.namedtuple("_Arg", "name type keyword_only written default label")


def _split(text, at):
    """Splits text at the characters `at` that are outside of brackets and quotes."""
    parts, depth, quote, last, begin = [], 0, None, "", 0
    for i, letter in enumerate(text):
        if quote:
            quote = None if letter == quote and last != "\\" else quote
        elif letter in "\"'":
            quote = letter
        elif letter in at and depth == 0:
            parts.append(text[begin:i])
            begin = i + 1
        else:
            depth += (letter in "([") - (letter in ")]")
        last = "" if last == "\\" else letter
    return parts + [text[begin:]]


def _type(text):
    if text.endswith("?"):
        return _Type("?", _type(text[:-1]))
    if text.endswith("]"):
        return _Type("[]", _type(text[:text.rindex("[")]))
    return _Type(text.split("(")[0], None)


def _label(text):
    """Returns the alias name in a type of a schema, such as a0 for Tensor(a0!), or None."""
    return text.split("(")[1].split(")")[0].strip("! ") if "(" in text else None


_TENSOR_LIST = _Type("[]", _Type("Tensor", None))


class FunctionSchema:
    """The arguments and results of an operator, parsed from the text of its schema.  str() returns this text."""

    def __init__(self, text):
        self.text = text
        head, rest = text.split("(", 1)
        self.name, _, self.overload_name = head.partition(".")
        args, returns = _split(rest, ")")[0], _split(text, ")")[-1].strip()
        returns = text[len(head) + len(args) + 2:].split("->", 1)[1].strip()
        self.arguments, keyword_only = [], False
        for part in filter(None, (part.strip() for part in _split(args, ","))):
            if part == "*":
                keyword_only = True
                continue
            left, *default = _split(part, "=")
            kind, name = left.rsplit(" ", 1)
            self.arguments.append(_Arg(name, _type(kind), keyword_only, "!" in kind, "=".join(default) or None,
                                       _label(kind)))
        whole = returns.startswith("(")
        kinds = [_split(part.strip(), " ")[0] for part in _split(returns[1:-1] if whole else returns, ",")
                 if part.strip()]
        self.returns = [_type(kind) for kind in kinds]
        labels = {arg.label: arg.name for arg in self.arguments if arg.label}
        self.given_back = [labels.get(_label(kind)) for kind in kinds]       # the argument that is this result, or None
        self.positional = sum(not arg.keyword_only for arg in self.arguments)

    def __str__(self):
        return self.text

    __repr__ = __str__


def _schema_text(schema):
    text = ctypes.create_string_buffer(_lib.opd_schema_print(schema, None, 0) + 1)
    _lib.opd_schema_print(schema, text, len(text))
    return text.value.decode()


_schemas = {}                                     # address of an operator: hash of its schema, FunctionSchema


def _schema(op):
    address = _lib.opd_op_schema(op)
    if not address:
        raise Error(f"{_lib.opd_op_name(op).decode()}: the operator is not defined, or no longer defined")
    number = _lib.opd_schema_hash(address)
    known = _schemas.get(op)
    if known is None or known[0] != number:
        known = _schemas[op] = (number, FunctionSchema(_schema_text(address)))
    return known[1]


# ---- values: from Python to C and back -------------------------------------------------------------------------------

_POINTER = (1 << 8 * ctypes.sizeof(c_void_p)) - 1
_BITS = struct.Struct("=q"), struct.Struct("=d"), struct.Struct("=ii")


def _array(kind, items, keep):
    """Returns the address of a C array that lives as long as keep."""
    memory = (kind * max(len(items), 1))(*items)
    keep.append(memory)
    return ctypes.addressof(memory)


def _int64(x):
    if not -1 << 63 <= x < 1 << 63:
        raise OverflowError(f"{x} does not fit into 64 bits")
    return x


def _into(v, x, keep):
    """Writes the C value of x to v.  Appends the objects to which v points to keep."""
    if isinstance(x, Tensor):
        v.tag, v.u = _TENSOR, x._p
        keep.append(x)
    elif x is None:
        v.tag = _NONE
    elif isinstance(x, bool):
        v.tag, v.u = _BOOL, x
    elif isinstance(x, numbers.Integral):
        v.tag, v.u = _INT, _int64(int(x))
    elif isinstance(x, numbers.Real):
        v.tag, v.u = _FLOAT, _BITS[0].unpack(_BITS[1].pack(float(x)))[0]
    elif isinstance(x, numbers.Complex):
        v.tag, v.u = _COMPLEX, _array(c_double, (x.real, x.imag), keep)
    elif isinstance(x, str):
        text = x.encode(errors="surrogateescape")
        if b"\0" in text:
            raise ValueError("a string contains a zero byte")
        keep.append(text)
        v.tag, v.n, v.u = _STR, len(text), ctypes.cast(c_char_p(text), c_void_p).value
    elif isinstance(x, _Named):
        v.tag, v.u = _INT, x.number
    elif isinstance(x, device):
        v.tag, v.u = _DEVICE, _BITS[0].unpack(_BITS[2].pack(x._c.type, x._c.index))[0]
    elif isinstance(x, (list, tuple, range)):
        _into_list(v, x, keep)
    elif isinstance(x, Generator):
        v.tag, v.u = _OBJECT, x._p
        keep.append(x)
    elif _is_numpy_bool(x):
        v.tag, v.u = _BOOL, bool(x)
    elif _is_array(x):
        _into(v, from_numpy(x), keep)
    elif _dtype_of(x) is not None:
        v.tag, v.u = _INT, _dtype_of(x).number
    elif hasattr(x, "__dlpack__"):
        _into(v, from_dlpack(x), keep)
    elif isinstance(x, (CustomOpDef, OpOverload, OpOverloadPacket)) or not hasattr(x, "__iter__"):
        raise TypeError(f"a {type(x).__name__} cannot be an argument of an operator")
    else:
        _into_list(v, list(x), keep)


def _is_numpy_bool(x):
    return type(x).__module__ == "numpy" and type(x).__name__ in ("bool", "bool_")


def _into_list(v, x, keep):
    items = (_Value * max(len(x), 1))()
    for item, element in zip(items, x):
        _into(item, element, keep)
    tags = {items[i].tag for i in range(len(x))}
    v.n = len(x)
    if tags <= {_INT}:
        v.tag, v.u = _INTS, _array(c_int64, [items[i].u for i in range(len(x))], keep)
    elif tags == {_BOOL}:
        v.tag, v.u = _BOOLS, _array(c_bool, [bool(items[i].u) for i in range(len(x))], keep)
    elif tags <= {_INT, _BOOL}:
        v.tag, v.u = _INTS, _array(c_int64, [items[i].u for i in range(len(x))], keep)
    elif tags <= {_INT, _BOOL, _FLOAT}:
        v.tag, v.u = _FLOATS, _array(c_double, [float(element) for element in x], keep)
    elif tags <= {_TENSOR, _NONE}:
        v.tag, v.u = _TENSORS, _array(c_void_p, [items[i].u or None for i in range(len(x))], keep)
    else:
        keep.append(items)
        v.tag, v.u = _LIST, ctypes.addressof(items)


def _from(v, kind):
    """Returns the Python value of a C value whose type in the schema is `kind`."""
    tag, name = v.tag, kind.element.kind if kind.kind == "?" else kind.kind
    if tag == _NONE:
        return None
    if tag == _TENSOR:
        return _tensor(v.u & _POINTER)
    if tag == _INT:
        return _ENUMS[name].get(v.u, v.u) if name in _ENUMS else v.u
    if tag == _FLOAT:
        return _BITS[1].unpack(_BITS[0].pack(v.u))[0]
    if tag == _BOOL:
        return bool(v.u)
    if tag == _COMPLEX:
        return complex(*(c_double * 2).from_address(v.u & _POINTER))
    if tag == _STR:
        return ctypes.string_at(v.u & _POINTER).decode(errors="surrogateescape")
    if tag == _DEVICE:
        return _device_from(_Device(*_BITS[2].unpack(_BITS[0].pack(v.u))))
    if tag == _OBJECT:
        return Generator(_address=v.u & _POINTER) if name == "Generator" else v.u & _POINTER
    if _INTS <= tag <= _LIST:
        return _from_list(v, kind)
    raise TypeError(f"a value of kind {tag} cannot be converted to Python")


def _from_list(v, kind):
    while kind.kind == "?":
        kind = kind.element
    element = kind.element or kind
    c = {_INTS: c_int64, _FLOATS: c_double, _BOOLS: c_bool, _TENSORS: c_void_p, _LIST: _Value}[v.tag]
    items = (c * v.n).from_address(v.u & _POINTER) if v.n else ()
    if v.tag == _TENSORS:
        return [_tensor(p) for p in items]
    if v.tag == _LIST:
        return [_from(item, element) for item in items]
    enum = _ENUMS.get(element.kind, {}) if v.tag == _INTS else {}
    return [enum.get(item, item) for item in items]


def _values(args, keep):
    values = (_Value * max(len(args), 1))()
    for i, x in enumerate(args):
        try:
            _into(values[i], x, keep)
        except (TypeError, ValueError, OverflowError) as error:
            raise type(error)(f"argument {i}: {error}") from None
    return values


def _address(x):
    """Returns the handle of a tensor, or NULL for None."""
    if x is None:
        return None
    if not isinstance(x, Tensor):
        raise TypeError(f"expected a Tensor, not a {type(x).__name__}")
    return x._p


def _addresses(tensors):
    """Returns a C array of the handles of tensors, with NULL for None."""
    return (c_void_p * max(len(tensors), 1))(*map(_address, tensors))


def _lend(tensors):
    """Makes the innermost scope (the callback's scope) hold the tensors, because C reads them after the Python objects
    were freed."""
    keep = []
    _lib.opd_tuple_new(_values(tensors, keep), len(tensors))
    _check()


# ---- calls -----------------------------------------------------------------------------------------------------------

def _call(find, args, named):
    """Calls the operator that find(values, count, keywords, count) returns."""
    keep, scope = [], _lib.opd_scope_open()       # new tensors live as long as this scope, or as a Tensor
    try:
        values = _values(args, keep)
        keywords = (_Keyword * max(len(named), 1))()
        for keyword, (name, x) in zip(keywords, named.items()):
            keyword.name = name.encode()
            if name == "device" and isinstance(x, str):
                x = device(x)
            try:
                _into(keyword.value, x, keep)
            except (TypeError, ValueError, OverflowError) as error:
                raise type(error)(f"argument '{name}': {error}") from None
        op = find(values, len(args), keywords, len(named))
        if not op:
            _raise()
        returns = _schema(op).returns
        results = (_Value * max(len(returns), 1))()
        if _lib.opd_call_keywords(op, results, values, len(args), keywords, len(named)):
            _raise()
        if len(returns) == 1:
            return _from(results[0], returns[0])
        return tuple(_from(result, kind) for result, kind in zip(results, returns)) or None
    finally:
        _lib.opd_scope_close(byref(scope))


class OpOverload:
    """One operator: torch.ops.aten.add.Tensor."""

    def __init__(self, address):
        self._op = address
        self._qualified = _lib.opd_op_name(address).decode()
        self.namespace, self._opname = self._qualified.split("::")
        self._opname, _, overload = self._opname.partition(".")
        self._overloadname = overload or "default"
        self.__name__ = f"{self._opname}.{self._overloadname}"
        self.__qualname__ = f"{self.namespace}.{self.__name__}"

    _schema = property(lambda self: _schema(self._op))

    def name(self):
        return self._qualified

    def __repr__(self):
        return f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"

    def __str__(self):
        return self.__qualname__

    def __call__(self, *args, **named):
        return _call(lambda *given: self._op, args, named)


class OpOverloadPacket:
    """All overloads of a name: torch.ops.aten.add.  A call chooses the overload by its arguments."""

    def __init__(self, namespace, name):
        self._namespace, self.__name__ = namespace, name
        self._set = _lib.opd_overloads_find(f"{namespace}::{name}".encode())
        if not self._set:
            _raise()

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._namespace}.{self.__name__}')>"

    def __str__(self):
        return f"{self._namespace}.{self.__name__}"

    def overloads(self):
        found = (_lib.opd_overloads_at(self._set, i) for i in itertools.count())
        return [OpOverload(op)._overloadname for op in itertools.takewhile(bool, found)]

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        base = f"{self._namespace}::{self.__name__}"
        op = _lib.opd_find((base if name == "default" else f"{base}.{name}").encode())
        if not op:
            _raise()
        setattr(self, name, OpOverload(op))
        return vars(self)[name]

    def __call__(self, *args, **named):
        return _call(lambda *given: _lib.opd_overloads_resolve(self._set, *given), args, named)


class _Namespace:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"<ops.{self._name}>"

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__and__", "__or__", "__xor__", "__lshift__", "__rshift__"):
            raise AttributeError(name)
        found = OpOverloadPacket(self._name, name)
        setattr(self, name, found)
        return found


class _Ops:
    """torch.ops: namespaces of operators."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, _Namespace(name))
        return vars(self)[name]

    @staticmethod
    def load_library(path):
        """Loads a plug-in, such as examples/plugin.c, which registers its operators."""
        if not _lib.opd_plugin_load(os.fsencode(path)):
            _raise()


ops = _Ops()

# PyTorch's functions and methods that take sizes as single arguments: x.view(2, 3)
_SIZES = {"view": 1, "reshape": 1, "permute": 1, "expand": 1, "repeat": 1, "tile": 1, "flip": 1, "new_empty": 1,
          "new_zeros": 1, "new_ones": 1, "zeros": 0, "ones": 0, "empty": 0, "rand": 0, "randn": 0}


# Functions whose second argument is either `dim` or `unbiased`.  The operator takes the number 0 or 1 for a bool
_DIM_OR_BOOL = ("var", "std", "var_mean", "std_mean")


def _function(name):
    """Returns an ATen operator as PyTorch's function: sizes may be single arguments, and factories take
    requires_grad."""
    packet = getattr(ops.aten, name)              # fails with an AttributeError that shows similar names
    first = _SIZES.get(name)

    def function(*args, requires_grad=False, **named):
        if first is not None and len(args) > first and all(isinstance(x, numbers.Integral) for x in args[first:]):
            args = args[:first] + (list(args[first:]),)
        if name in _DIM_OR_BOOL and len(args) > 1 and isinstance(args[1], int) and not isinstance(args[1], bool):
            args = (args[0], [args[1]], *args[2:])            # x.var(0) is x.var([0])
        out = packet(*args, **named)
        return out.requires_grad_() if requires_grad else out

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"aten::{name}: " + ", ".join(packet.overloads())
    return function


def __getattr__(name):
    """Finds the other names of the module: the short names of dtypes, and the ATen functions."""
    if name.startswith("__"):
        raise AttributeError(name)
    return _DTYPES[_SHORT[name]] if name in _SHORT else _method(name)


# ---- tensors ---------------------------------------------------------------------------------------------------------

class _Ref(weakref.ref):
    __slots__ = ("address",)


_alive = {}                                       # address: _Ref of its Tensor, so that a tensor has only one object
_refs = {}                                        # id: each _Ref whose Tensor exists


def _gone(ref):
    """Releases a handle when its Tensor was destroyed.  __del__ would be too early: another thread may still get the
    Tensor."""
    if _alive.get(ref.address) is ref:
        _alive.pop(ref.address, None)
    _refs.pop(id(ref), None)
    if not _finished:
        _lib.opd_release(ref.address)


def _tensor(address):
    """Returns the Tensor that holds a handle, or None for NULL."""
    if not address:
        return None
    ref = _alive.get(address)
    known = None if ref is None else ref()
    if known is None:
        known = object.__new__(Tensor)
        known._p = _lib.opd_keep(address)
        ref = _Ref(known, _gone)
        ref.address = address
        _refs[id(ref)] = _alive[address] = ref
    return known


def _made(address, kind=Error):
    """Returns the Tensor of a handle that a function returned.  If it is NULL, raises the error of the function."""
    return _tensor(address) if address else _raise(kind)


def _ints_at(address, count):
    return (c_int64 * count).from_address(address) if count else ()


def _nested(items, shape):
    """Returns a flat list as lists of lists."""
    if not shape:
        return items[0]
    step = len(items) // shape[0] if shape[0] else 0
    return [_nested(items[i * step:(i + 1) * step], shape[1:]) for i in range(shape[0])]


class Tensor:
    """A tensor of the library.  Every ATen operator is a method: x.sin(), x.sum(0)."""
    __array_priority__ = 1000                     # array + tensor is a tensor

    def __new__(cls, *args):
        raise TypeError("make a Tensor with tensor(), from_numpy(), zeros() or a similar function")

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(f"a Tensor has no attribute '{name}'")
        return types.MethodType(_method(name), self)

    shape = property(lambda self: Size(_ints_at(_lib.opd_sizes(self._p), self.ndim)))
    strides = property(lambda self: tuple(_ints_at(_lib.opd_strides(self._p), self.ndim)))
    ndim = property(lambda self: _lib.opd_ndim(self._p))
    dtype = property(lambda self: _DTYPES[_lib.opd_dtype(self._p)])
    device = property(lambda self: _device_from(_lib.opd_tensor_device(self._p)))
    itemsize = property(lambda self: self.dtype.itemsize)
    is_leaf = property(lambda self: _lib.opd_tensor_is_leaf(self._p))
    T = property(lambda self: ops.aten.numpy_T(self))
    mT = property(lambda self: self.transpose(-2, -1))
    real = property(lambda self: ops.aten.real(self))
    imag = property(lambda self: ops.aten.imag(self))
    _base = property(lambda self: _tensor(_lib.opd_tensor_base(self._p)))
    _version = property(lambda self: _lib.opd_tensor_version(self._p))

    @property
    def data(self):
        with _scope():
            return _made(_lib.opd_tensor_data(self._p))

    def dim(self):
        return self.ndim

    def numel(self):
        return _lib.opd_numel(self._p)

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def stride(self, dim=None):
        return self.strides if dim is None else self.strides[dim]

    def storage_offset(self):
        return _lib.opd_tensor_offset(self._p)

    def is_contiguous(self, memory_format=None):
        if memory_format in (None, _FORMATS[0]):
            return _lib.opd_is_contiguous(self._p)
        return self.strides == self.contiguous(memory_format=memory_format).strides

    def is_floating_point(self):
        return self.dtype.is_floating_point

    def is_complex(self):
        return self.dtype.is_complex

    def data_ptr(self):
        address = _lib.opd_data(self._p)
        _check()
        return address or 0                       # on the meta device, or without elements

    def _host(self):
        """Returns the address of the elements, if Python may read them; otherwise raises TypeError."""
        if _lib.opd_tensor_device(self._p).type != 0:
            raise TypeError(f"can't convert a tensor on {self.device} to numpy or to Python's numbers. Use x.cpu() "
                            "to copy it to host memory first.")
        address = self.data_ptr()
        if not address and self.numel():
            raise TypeError("a tensor without data (a fake tensor) cannot be converted to numpy or to Python's numbers")
        return address

    # -- autograd

    @property
    def requires_grad(self):
        return _lib.opd_tensor_requires_grad(self._p)

    @requires_grad.setter
    def requires_grad(self, on):
        self.requires_grad_(on)

    def requires_grad_(self, requires_grad=True):
        if not _lib.opd_tensor_set_requires_grad(self._p, requires_grad):
            _raise()
        return self

    @property
    def grad(self):
        return _tensor(_lib.opd_tensor_grad(self._p))

    @grad.setter
    def grad(self, grad):
        if _lib.opd_tensor_set_grad(self._p, _address(grad)):
            _raise()

    @property
    def grad_fn(self):
        name = _lib.opd_tensor_grad_fn(self._p)
        return None if name is None else f"<{name.decode()}>"

    def retain_grad(self):
        if _lib.opd_tensor_retain_grad(self._p):
            _raise()

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        backward(self, gradient, retain_graph, create_graph, inputs)

    def register_hook(self, hook):
        """Calls hook(grad) with the gradient; the hook may return another one.  Returns a handle with remove()."""
        def run(grad, user):
            try:
                out = hook(_tensor(grad))
                if out is None:
                    return None
                if not isinstance(out, Tensor):
                    raise TypeError(f"a hook returned a {type(out).__name__}, not a Tensor or None")
                _lend([out])
                return out._p
            except BaseException as error:
                _fail(error)

        function = _HOOK(run)
        number = _hold(function)
        handle = _lib.opd_tensor_hook_add(self._p, function, number, _drop)
        if not handle:
            _held.pop(number, None)
            _raise()
        return _Handle(handle)

    # -- to Python and NumPy

    def numpy(self, force=False):
        """Returns a NumPy array that shares the tensor's memory, and keeps it alive."""
        import numpy
        x = self.detach().resolve_conj().resolve_neg() if force else self
        if x.requires_grad and _lib.opd_grad_mode_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if _lib.opd_tensor_is_conj(x._p) or _lib.opd_tensor_is_neg(x._p):
            raise RuntimeError("Can't call numpy() on Tensor that has conjugate or negative bit set. Use "
                               "tensor.resolve_conj().resolve_neg().numpy() instead.")
        return numpy.asarray(_ArrayOf(x))

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if copy or (dtype is not None and array.dtype != dtype):
            array = array.astype(dtype or array.dtype)
        return array

    def tolist(self):
        x = self.detach()
        x = x if x.device.type == "meta" else x.cpu()
        if x.is_complex():
            flat = x.to(_DTYPES[10]).resolve_conj().contiguous()
            memory = (c_double * (2 * x.numel())).from_address(flat._host()) if x.numel() else ()
            items = [complex(a, b) for a, b in zip(memory[::2], memory[1::2])]
        else:
            number = 7 if x.is_floating_point() else x.dtype.number if x.dtype.number in (11, 29) else 4
            flat = x.to(_DTYPES[number]).resolve_neg().contiguous()
            c = {7: c_double, 4: c_int64, 11: c_bool, 29: c_uint64}[number]
            items = list((c * x.numel()).from_address(flat._host())) if x.numel() else []
        return _nested(items, x.shape)

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.reshape([]).tolist()

    def __repr__(self):
        text = ctypes.create_string_buffer(_lib.opd_tensor_print(self._p, None, 0) + 1)
        _lib.opd_tensor_print(self._p, text, len(text))
        _check()
        return text.value.decode()

    def __len__(self):
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        return iter(self.unbind(0)) if self.ndim else iter(len(self) * [0])

    def __bool__(self):
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        if self.is_floating_point() or self.is_complex():
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __format__(self, spec):
        return format(self.item(), spec) if spec and self.ndim == 0 else repr(self)

    def __hash__(self):
        return id(self)

    def __contains__(self, x):
        return bool((self == x).any())

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        out = self.detach().clone()
        return out.requires_grad_(self.requires_grad)

    # -- DLPack

    def __dlpack_device__(self):
        c = _lib.opd_tensor_device(self._p)
        if c.type not in (0, 1, 2):
            raise BufferError(f"DLPack knows no device {self.device}")
        return {0: 1, 1: 2, 2: 10}[c.type], max(c.index, 0)

    def __dlpack__(self, stream=None, max_version=None, dl_device=None, copy=None):
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        x = self.clone() if copy else self
        versioned = max_version is not None and max_version[0] >= 1
        address = _lib.opd_dlpack_export(x._p, 2 if copy else 0) if versioned else \
            _lib.opd_dlpack_export_unversioned(x._p)
        if not address:
            _raise()
        return _capsule_new(address, _CAPSULES[versioned][0], _capsule_gone)

    # -- parts

    def _part(self, index):
        """Applies the parts of index that are views.  Returns the view, and the other parts of index with their
        dims."""
        index = list(index) if isinstance(index, tuple) else [index]
        used = sum(1 if not isinstance(i, Tensor) or i.dtype.number != 11 else i.ndim for i in index
                   if i is not None and i is not Ellipsis)
        x, dim, others = self, 0, []
        for i in index:
            if i is Ellipsis:
                dim += self.ndim - used
            elif i is None:
                x, dim = x.unsqueeze(dim), dim + 1
            elif isinstance(i, slice):
                if i.step is not None and i.step < 1:
                    raise ValueError("step must be greater than zero")
                if i != slice(None):
                    x = ops.aten.slice(x, dim, i.start, i.stop, i.step or 1)
                dim += 1
            elif isinstance(i, numbers.Integral) and not isinstance(i, bool):
                if not -self.ndim <= dim < x.ndim:
                    raise IndexError(f"too many indices for tensor of dimension {self.ndim}")
                x = x.select(dim, i)
            else:
                i = i if isinstance(i, Tensor) else tensor(i)
                others.append((dim, i))
                dim += i.ndim if i.dtype.number == 11 else 1
        return x, others

    @staticmethod
    def _indices(others):
        indices = []
        for dim, i in others:
            indices += [None] * (dim - len(indices) - sum(t.ndim - 1 for t in indices
                                                          if t is not None and t.dtype.number == 11)) + [i]
        return indices

    def __getitem__(self, index):
        x, others = self._part(index)
        if others:
            return ops.aten.index(x, self._indices(others))
        return x if x is not self else self.alias()

    def __setitem__(self, index, value):
        x, others = self._part(index)
        if not isinstance(value, (Tensor, numbers.Number)):
            value = as_tensor(value, dtype=self.dtype)
        if others:
            value = value if isinstance(value, Tensor) else tensor(value, dtype=self.dtype)
            ops.aten.index_put_(x, self._indices(others), value)
        elif isinstance(value, Tensor):
            ops.aten.copy_(x, value)
        else:
            ops.aten.fill_(x, value)

    # -- arithmetic

    def __rsub__(self, other):
        return ops.aten.rsub(self, other)

    def __rtruediv__(self, other):
        return ops.aten.mul(ops.aten.reciprocal(self), other)

    def __rpow__(self, other):
        return ops.aten.pow(other, self)

    def __rmatmul__(self, other):
        return ops.aten.matmul(other, self)


def _operation(name, operator, turned=False):
    def method(self, *other):
        if other and not (isinstance(other[0], (Tensor, numbers.Number)) or hasattr(other[0], "__array_interface__")):
            return NotImplemented
        return getattr(ops.aten, operator)(self, *other)
    method.__name__ = name
    setattr(Tensor, name, method)


for _name, _operator in dict(
        add="add", sub="sub", mul="mul", truediv="div", floordiv="floor_divide", mod="remainder", pow="pow",
        matmul="matmul", eq="eq", ne="ne", lt="lt", le="le", gt="gt", ge="ge", neg="neg", abs="abs",
        invert="bitwise_not", lshift="bitwise_left_shift", rshift="bitwise_right_shift", radd="add", rmul="mul",
        iadd="add_", isub="sub_", imul="mul_", itruediv="div_", ipow="pow_", **{
            "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "rand": "bitwise_and",
            "ror": "bitwise_or", "rxor": "bitwise_xor"}).items():
    _operation(f"__{_name}__", _operator)
Tensor.__hash__ = lambda self: id(self)

_methods = {}


def _method(name):
    if name not in _methods:
        _methods[name] = _function(name)
    return _methods[name]


def _to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=None):
    """x.to(dtype), x.to("cpu"), x.to(device, dtype), x.to(other)."""
    for x in args:
        if isinstance(x, Tensor):
            device, dtype = x.device, x.dtype
        elif isinstance(x, (str, _device_class)):
            device = x
        elif x is not None and _dtype_of(x) is not None:
            dtype = x
        elif x is not None:
            raise TypeError(f"to(): expected a dtype, a device or a tensor, not {x!r}")
    dtype = self.dtype if dtype is None else _dtype_of(dtype)
    device = self.device if device is None else _device_class(device)
    if not copy and dtype is self.dtype and device.type == self.device.type and memory_format is None:
        return self
    return ops.aten._to_copy(self, dtype=dtype, device=device, non_blocking=non_blocking, memory_format=memory_format)


_device_class = device
Tensor.to = _to
Tensor.cpu = lambda self: self.to("cpu")
for _name, _number in dict(_SHORT, bfloat16=15).items():
    setattr(Tensor, _name, lambda self, _number=_number: self.to(_DTYPES[_number]))


class _Handle:
    """Removes a hook."""

    def __init__(self, number):
        self.number = number

    def remove(self):
        _lib.opd_hook_remove(self.number)


class _ArrayOf:
    """Gives NumPy the memory of a tensor, and keeps the tensor alive."""

    def __init__(self, x):
        kind = _KINDS.get(x.dtype.number)
        if kind is None:
            raise TypeError(f"NumPy has no dtype {x.dtype}: x.float().numpy()")
        size = x.itemsize
        self.tensor, self.nothing = x, ctypes.create_string_buffer(16)
        data = x._host() or ctypes.addressof(self.nothing)
        self.__array_interface__ = {
            "version": 3, "shape": tuple(x.shape), "typestr": ("|" if size == 1 else _ORDER) + kind,
            "data": (data, False), "strides": tuple(s * size for s in x.strides) if x.numel() else None}


# ---- making tensors --------------------------------------------------------------------------------------------------

def from_numpy(array):
    """Returns a tensor that shares the array's memory.  A read-only array is copied."""
    import numpy
    if not isinstance(array, numpy.ndarray):      # a scalar or an image: its memory may be temporary
        if not hasattr(array, "__array_interface__"):
            raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
        array = numpy.array(array)
    face = array.__array_interface__
    kind = face["typestr"][1:]
    if kind not in _NUMPY:
        raise TypeError(f"can't convert np.ndarray of type {face['typestr']}: the dtype is not supported")
    if face["typestr"][0] not in "|=" + _ORDER:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between "
                         "byte orders is currently not supported.")
    size, shape = int(kind[1:]), face["shape"]
    steps = face.get("strides")
    if steps and any(step < 0 for step, n in zip(steps, shape) if n > 1):
        raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides "
                         "are not currently supported. (You can probably work around this by making a copy of your "
                         "array with array.copy().)")
    if face["data"][1] or face["data"][0] % size or (steps and any(step % size for step in steps)):
        array = numpy.array(array)
        face = array.__array_interface__
        steps = face.get("strides")
    keep = []
    strides = _array(c_int64, [max(step, 0) // size for step in steps], keep) if steps else None
    number = _hold(array)                         # the deleter releases it, also if the call fails
    with _scope():
        return _made(_lib.opd_tensor_wrap(face["data"][0], _List(_array(c_int64, shape, keep), len(shape)), strides,
                                          _NUMPY[kind], _array_gone, number))


def tensor(data, dtype=None, device=None, requires_grad=False):
    """Returns a tensor with a copy of a number, of nested lists of numbers, of an array or of a tensor."""
    if isinstance(data, Tensor) or hasattr(data, "__array_interface__"):
        x = data if isinstance(data, Tensor) else from_numpy(data if hasattr(data, "shape") else [data])
        out = x.detach().clone()
    else:
        flat, shape = [data], []
        while flat and isinstance(flat[0], (list, tuple, range)):
            shape.append(len(flat[0]))
            if any(not isinstance(row, (list, tuple, range)) or len(row) != shape[-1] for row in flat):
                raise ValueError(f"expected sequence of length {shape[-1]} at dim {len(shape) - 1}")
            flat = [x for row in flat for x in row]
        flat = [x.item() if isinstance(x, Tensor) or type(x).__module__ == "numpy" else x for x in flat]
        wrong = next((x for x in flat if not isinstance(x, numbers.Number)), None)
        if wrong is not None:
            raise TypeError(f"tensor(): expected a number, not {wrong!r}")
        kind = 11 if flat and all(isinstance(x, bool) for x in flat) else \
            4 if flat and all(isinstance(x, int) for x in flat) else \
            10 if any(isinstance(x, complex) for x in flat) else 7
        keep = []
        if kind == 10:
            flat = [part for x in flat for part in (complex(x).real, complex(x).imag)]
        c = {11: c_bool, 4: c_int64}.get(kind, c_double)
        flat = [_int64(x) for x in flat] if kind == 4 else flat
        with _scope():
            out = _made(_lib.opd_tensor_from(_array(c, flat, keep), _List(_array(c_int64, shape, keep), len(shape)),
                                             kind))
        if dtype is None and kind in (7, 10):
            dtype = _DTYPES[6 if kind == 7 else 9]
    out = out.to(dtype=dtype, device=device)
    return out.requires_grad_() if requires_grad else out


def as_tensor(data, dtype=None, device=None):
    """The same as tensor(), but copies only if it must."""
    if isinstance(data, Tensor) or (hasattr(data, "__array_interface__") and hasattr(data, "shape")):
        return (data if isinstance(data, Tensor) else from_numpy(data)).to(dtype=dtype, device=device)
    return tensor(data, dtype, device)


def _is_array(x):
    return hasattr(x, "__array_interface__") and not isinstance(x, (type, numbers.Number))


def is_tensor(x):
    return isinstance(x, Tensor)


_capi = ctypes.pythonapi
_capsule_valid = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_IsValid", _capi))
_capsule_at = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", _capi))
_capsule_rename = ctypes.PYFUNCTYPE(c_int, c_void_p, c_char_p)(("PyCapsule_SetName", _capi))
_capsule_new = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", _capi))
_CAPSULES = (b"dltensor", b"used_dltensor"), (b"dltensor_versioned", b"used_dltensor_versioned")


@ctypes.PYFUNCTYPE(None, c_void_p)
def _capsule_gone(capsule):
    """Calls the deleter of a capsule that nobody has used."""
    for (name, _), kind in zip(_CAPSULES, (_Managed, _ManagedVersioned)):
        if _capsule_valid(capsule, name):
            address = _capsule_at(capsule, name)
            _DESTROY(kind.from_address(address).deleter)(address)


def from_dlpack(x):
    """Returns a tensor that shares the memory of an object with __dlpack__, or of a capsule.  Read-only memory is
    copied."""
    capsule = x
    if hasattr(x, "__dlpack__"):
        try:
            capsule = x.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = x.__dlpack__()
    flags = c_uint(0)
    with _scope():
        for versioned, (name, taken) in enumerate(_CAPSULES):
            if not _capsule_valid(id(capsule), name):
                continue
            address = _capsule_at(id(capsule), name)
            _capsule_rename(id(capsule), taken)   # from here on, the library calls the deleter, also if it fails
            if versioned:
                out = _made(_lib.opd_dlpack_import(address, byref(flags)))
            else:
                out = _made(_lib.opd_dlpack_import_unversioned(address))
            return out.clone() if flags.value & 1 else out
    raise TypeError("from_dlpack: expected a capsule of DLPack that was not used before")


# ---- autograd --------------------------------------------------------------------------------------------------------

class _GradMode(contextlib.ContextDecorator):
    """A context manager and decorator that turns the recording of gradients on or off."""

    def __init__(self, on):
        self.on, self.was = on, []

    def __enter__(self):
        self.was.append(_lib.opd_grad_mode_set(self.on))

    def __exit__(self, *error):
        _lib.opd_grad_mode_set(self.was.pop())


def no_grad():
    return _GradMode(False)


def enable_grad():
    return _GradMode(True)


def is_grad_enabled():
    return _lib.opd_grad_mode_enabled()


def _list(x):
    return [] if x is None else list(x) if isinstance(x, (list, tuple)) else [x]


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """torch.autograd.backward: adds gradients to the `grad` of leaves."""
    tensors, grads, inputs = _list(tensors), _list(grad_tensors), _list(inputs)
    options, keep = _BackwardOptions(), (_addresses(grads), _addresses(inputs))
    options.grad_outputs = ctypes.addressof(keep[0]) if grads else None
    options.retain_graph = create_graph if retain_graph is None else retain_graph
    options.create_graph = create_graph
    options.inputs, options.ninputs = ctypes.addressof(keep[1]) if inputs else None, len(inputs)
    with _scope():
        if _lib.opd_backward_with(_addresses(tensors), len(tensors), byref(options)):
            _raise()


def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, allow_unused=False,
         is_grads_batched=False, materialize_grads=False):
    """torch.autograd.grad: returns a tuple, the gradients of outputs with respect to inputs."""
    outputs, inputs, grads = _list(outputs), _list(inputs), _list(grad_outputs)
    options, keep = _BackwardOptions(), _addresses(grads)
    options.grad_outputs = ctypes.addressof(keep) if grads else None
    options.retain_graph = create_graph if retain_graph is None else retain_graph
    options.create_graph, options.allow_unused = create_graph, bool(allow_unused or materialize_grads)
    options.materialize_grads, options.is_grads_batched = materialize_grads, is_grads_batched
    out = _addresses([None] * len(inputs))
    with _scope():
        if _lib.opd_autograd_grad(_addresses(outputs), len(outputs), _addresses(inputs), len(inputs), byref(options),
                                  out):
            _raise()
        return tuple(_tensor(out[i]) for i in range(len(inputs)))


class _Function:
    """A Python function as a C function of its tensor arguments.  The other arguments are constants."""

    def __init__(self, function, args, kind=_TRANSFORM):
        self.args = [from_numpy(x) if _is_array(x) else x for x in args]
        self.places = [i for i, x in enumerate(self.args) if isinstance(x, Tensor)]
        self.tensors = [self.args[i] for i in self.places]
        self.tuple = False

        def run(user, inputs, count, outputs):
            try:
                args = list(self.args)
                for i, p in zip(self.places, (c_void_p * count).from_address(inputs) if count else ()):
                    args[i] = _tensor(p)
                out = function(*args)
                self.tuple = isinstance(out, (tuple, list))
                out = list(out) if self.tuple else [out]
                if len(out) > 32:
                    raise ValueError(f"{len(out)} results are too many: at most 32 are possible")
                out = [x if isinstance(x, Tensor) else as_tensor(x) for x in out]
                _lend(out)
                places = (c_void_p * len(out)).from_address(outputs)
                for i, x in enumerate(out):
                    places[i] = x._p
                return len(out)
            except BaseException as error:
                return _fail(error)

        self.c = kind(run)

    def given(self):
        return self.c, None, _addresses(self.tensors), len(self.tensors)


def _gradcheck(check, function, inputs, options):
    inputs = [inputs] if isinstance(inputs, Tensor) else inputs
    c = _lib.opd_gradcheck_defaults()
    for name, value in options.items():
        if name not in dict(_GradcheckOptions._fields_):
            raise TypeError(f"gradcheck: there is no option '{name}'")
        setattr(c, name, value)
    with _scope():
        rc = check(_Function(function, inputs).given(), byref(c))
        if not _lib.opd_ok():
            _raise(GradcheckError)
        return rc == 0


def gradcheck(func, inputs, **options):
    """torch.autograd.gradcheck: compares the gradients of func with finite differences, for the float64 inputs that
    require grad.  Options: eps, atol, rtol, nondet_tol, raise_exception, fast_mode, check_*."""
    return _gradcheck(lambda given, c: _lib.opd_gradcheck(*given, c), func, inputs, options)


def gradgradcheck(func, inputs, **options):
    """torch.autograd.gradgradcheck: the same as gradcheck for second derivatives."""
    return _gradcheck(lambda given, c: _lib.opd_gradgradcheck(*given, None, c), func, inputs, options)


# ---- vmap, fake tensors, and graphs ----------------------------------------------------------------------------------

_NO_DIM, _RANDOMNESS = -2147483648, ["error", "different", "same"]


def vmap(func, in_dims=0, out_dims=0, randomness="error", chunk_size=None):
    """torch.vmap: func is written for one example, and is called once for all examples along in_dims."""
    def batched(*args):
        dims = list(in_dims) if isinstance(in_dims, (tuple, list)) else [in_dims] * len(args)
        if len(dims) != len(args):
            raise ValueError(f"vmap: {len(dims)} in_dims for {len(args)} arguments")
        f, keep, out = _Function(func, args), [], (c_void_p * 64)()
        dims = [dims[i] for i in f.places]
        outs = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims]
        options = _VmapOptions()
        dims, outs = ([_NO_DIM if dim is None else dim for dim in some] for some in (dims, outs))
        options.in_dims, options.nin_dims = _array(c_int, dims, keep), len(dims)
        options.out_dims, options.nout_dims = _array(c_int, outs, keep), len(outs)
        options.randomness, options.chunk_size = _RANDOMNESS.index(randomness), chunk_size or 0
        options.name = getattr(func, "__name__", "fn").encode()
        with _scope():
            n = _lib.opd_vmap(*f.given(), byref(options), out, len(out))
            if n < 0:
                _raise()
            result = tuple(_tensor(p) for p in out[:n])
        return result if f.tuple else result[0]
    return batched


class FakeTensorMode:
    """A context manager.  Inside, operators compute only sizes, strides and dtypes."""

    def __enter__(self):
        self.block = _lib.opd_fake_begin()
        _check()
        return self

    def __exit__(self, *error):
        _lib.opd_fake_end(byref(self.block))


class Graph:
    """The recorded operators of a function.  A graph prints as TorchScript, and can be called with other tensors and
    saved."""

    def __init__(self, address, many=False):
        self._p, self._tuple = address, many
        if not address:
            _raise()

    def __del__(self):
        if getattr(self, "_p", None):
            _lib.opd_graph_free(self._p)

    def __str__(self):
        text = ctypes.create_string_buffer(_lib.opd_graph_print(self._p, None, 0) + 1)
        _lib.opd_graph_print(self._p, text, len(text))
        return text.value.decode()

    def __call__(self, *args):
        args = [as_tensor(x) for x in args]
        count = _lib.opd_graph_noutputs(self._p)
        out = (c_void_p * max(count, 1))()
        with _scope():
            n = _lib.opd_graph_run(self._p, _addresses(args), len(args), out, count)
            if n < 0:
                _raise()
            result = tuple(_tensor(p) for p in out[:n])
        return result if self._tuple or n != 1 else result[0]

    def save(self, path):
        if _lib.opd_graph_save(self._p, os.fsencode(path)):
            _raise()


def trace_graph(func, example_inputs, check=False):
    """torch.jit.trace: calls func once and returns a Graph of the operators that it calls.  Arguments that are not
    tensors are constants of the graph."""
    inputs = (example_inputs,) if isinstance(example_inputs, Tensor) else tuple(example_inputs)
    f, options, keep = _Function(func, inputs), _TraceOptions(), []
    try:
        names = [p.name for p in inspect.signature(func).parameters.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    except (TypeError, ValueError):
        names = []
    if len(names) >= len(inputs):
        names = [names[i].encode() for i in f.places]
        options.names, options.nnames = _array(c_char_p, names, keep), len(names)
    options.check = check
    with _scope():
        return Graph(_lib.opd_graph_trace(*f.given(), byref(options)), f.tuple)


def compile(model=None, **options):
    """torch.compile, but only for functions that can be recorded; otherwise a call fails.  Records a graph for each
    new kind of arguments (sizes, strides and dtypes of tensors, values of other arguments), and runs the graph.  The
    options are PyTorch's, and have no effect.  In C, opd_graph_compile compiles a graph to machine code."""
    def make(function):
        graphs = {}

        def run(*args, **named):
            args = [from_numpy(x) if _is_array(x) else x for x in args]
            tensors = [x for x in args if isinstance(x, Tensor)]
            if any(isinstance(x, Tensor) for x in named.values()):
                raise TypeError("compile: tensors must be given by position")
            kind = tuple((x.shape, x.strides, x.dtype, str(x.device)) if isinstance(x, Tensor) else repr(x)
                         for x in [*args, *sorted(named.items())])
            if kind not in graphs:
                copies = [x.detach().clone() if isinstance(x, Tensor) else x for x in args]
                graphs[kind] = trace_graph(lambda *given: function(*given, **named), copies)
            return graphs[kind](*tensors)
        return functools.wraps(function)(run)
    return make if model is None else make(model)


def load_graph(path):
    return Graph(_lib.opd_graph_load(os.fsencode(path)))


# ---- operators written in Python -------------------------------------------------------------------------------------

_BASE = {int: "SymInt", float: "float", bool: "bool", str: "str", complex: "complex", dtype: "ScalarType",
         device: "Device", layout: "Layout", memory_format: "MemoryFormat"}
Number = typing.Union[int, float, bool]


def _annotation(kind):
    """Returns the type in schemas for an annotation, or None."""
    if isinstance(kind, type) and kind in _BASE:
        return _BASE[kind]
    if kind is Tensor:
        return "Tensor"
    if kind is Generator:
        return "Generator"
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Union or origin is getattr(types, "UnionType", typing.Union):
        some = [arg for arg in args if arg is not type(None)]
        if set(some) in ({int, float, bool}, {int, float}, {int, float, bool, complex}):
            inner = "Scalar"
        else:
            inner = _annotation(some[0]) if len(some) == 1 else None
        return inner and inner + "?" * (len(some) < len(args))
    if origin in (list, collections.abc.Sequence) and len(args) == 1 or \
            origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        inner = _annotation(args[0])
        return inner and inner + "[]"
    return None


def _default(x):
    if isinstance(x, str):
        return '"' + x.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(x, _Named):
        return x.name if isinstance(x, dtype) else str(x.number)
    return f'"{x}"' if isinstance(x, device) else f"[{', '.join(map(_default, x))}]" if isinstance(x, (list, tuple)) \
        else repr(x)


def infer_schema(prototype_function, mutates_args=(), op_name=None, tags=()):
    """torch.library.infer_schema: returns the schema for the annotations of a function."""
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except Exception as error:
        raise ValueError(f"infer_schema(func): {error}. Got func with signature {signature}") from None

    def wrong(what):
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature}")

    params, star, written = [], False, []
    for i, (name, param) in enumerate(signature.parameters.items()):
        if param.kind not in (param.POSITIONAL_OR_KEYWORD, param.KEYWORD_ONLY):
            wrong("We do not support positional-only args, varargs, or varkwargs.")
        if param.kind == param.KEYWORD_ONLY and not star:
            star = True
            params.append("*")
        if param.annotation is param.empty:
            wrong(f"Parameter {name} must have a type annotation.")
        # before Python 3.11, get_type_hints makes the type of a parameter Optional if its default is None
        kind = _annotation(param.annotation if not isinstance(param.annotation, str) else hints[name]) or \
            _annotation(hints[name])
        if kind is None:
            wrong(f"Parameter {name} has unsupported type {param.annotation}.")
        if (mutates_args == "unknown" and kind.startswith("Tensor")) or (mutates_args != "unknown" and
                                                                        name in mutates_args):
            if not kind.startswith("Tensor"):
                wrong(f"Parameter {name} is in mutates_args but only Tensors or collections of Tensors can be mutated.")
            kind = f"Tensor(a{i}!)" + kind[len("Tensor"):]
            written.append((kind, param.kind == param.KEYWORD_ONLY, i))
        params.append(f"{kind} {name}" + ("" if param.default is param.empty else f"={_default(param.default)}"))
    unknown = [] if mutates_args == "unknown" else sorted(set(mutates_args) - set(signature.parameters))
    if unknown:
        wrong(f"{unknown} in mutates_args were not found in the custom op's signature.")
    if signature.return_annotation is signature.empty:
        wrong("No return type annotation was provided. Please add one.")
    back = hints["return"]
    several = typing.get_origin(back) is tuple and typing.get_args(back)[1:] != (Ellipsis,)
    kinds = [] if back in (None, type(None)) else [
        _annotation(kind) for kind in (typing.get_args(back) if several else [back])]
    if None in kinds:
        wrong(f"Return has unsupported type {back}.")
    if "inplace" in tags or "out" in tags:
        same = [kind for kind, keyword_only, i in written if (keyword_only if "out" in tags else i == 0)]
        if len(same) != len(written) or len(same) != len(kinds):
            wrong("An operator that is tagged inplace writes its first argument and returns it; one that is tagged out "
                  "writes keyword-only arguments and returns all of them in their order.")
        kinds = same
    returns = kinds[0] if len(kinds) == 1 else f"({', '.join(kinds)})"
    return f"{op_name or ''}({', '.join(params)}) -> {returns}"


def _arguments(values, schema):
    """Returns the positional and the keyword arguments of a call, as Python values."""
    args, named = [], {}
    for i, arg in enumerate(schema.arguments):
        x = _from(values[i] if not callable(values) else values(i), arg.type)
        if arg.keyword_only:
            named[arg.name] = x
        else:
            args.append(x)
    return args, named


def _results(schema, out):
    """Returns what a kernel returned as a list with one element for each result of the schema."""
    count = len(schema.returns)
    if count == 1:
        out = [out]
    elif count == 0:
        if out is not None:
            raise TypeError(f"a kernel of '{schema.name}' returned a {type(out).__name__}; the schema has no results")
        out = []
    if not isinstance(out, (tuple, list)) or len(out) != count:
        raise TypeError(f"a kernel of '{schema.name}' returned "
                        f"{len(out) if isinstance(out, (tuple, list)) else type(out).__name__}, not {count} results")
    for kind, x in zip(schema.returns, out):
        if x is None and kind.kind != "?":
            raise TypeError(f"a kernel of '{schema.name}' returned None where its schema says {kind.kind}")
        if kind == _TENSOR_LIST and any(element is None for element in x):
            raise TypeError(f"a kernel of '{schema.name}' returned None in a list of which its schema says Tensor[]")
    return out


def _result_values(schema, out, keep):
    """Returns the C values of a list that _results returned."""
    values = _values(out, keep)
    for v, kind in zip(values, schema.returns):
        if v.tag == _INTS and v.n == 0 and "Tensor" in str(kind):     # an empty list, which has no type
            v.tag = _TENSORS
    return values[:len(out)]


def _kernel(function, records=False):
    """Returns a C kernel that calls function.  If records is set, autograd records the operators that function
    calls."""
    def run(call):
        try:
            schema = _schema(_lib.opd_call_operator(call))
            count = len(schema.arguments)
            args, named = _arguments((_Value * count).from_address(_lib.opd_call_args(call)) if count else (), schema)
            if not records:
                _lib.opd_grad_mode_set(False)     # the library restores it after the kernel
            keep, was = [], getattr(_local, "call", None)
            _local.call = call
            try:
                out = _results(schema, function(*args, **named))
            finally:
                _local.call = was
            for v in _result_values(schema, out, keep):
                if _lib.opd_return_value(call, v):
                    return -1
            return 0
        except BaseException as error:            # C cannot handle exceptions
            return _fail(error)

    _forever.append(_CALL(run))
    return _forever[-1]


class Context:
    """ctx of setup_context and backward: has any attributes, and saves tensors."""

    def __init__(self, c, count):
        self._c = c
        self.needs_input_grad = tuple(_lib.opd_context_needs_input_grad(c, i) for i in range(count))

    def save_for_backward(self, *tensors):
        if _lib.opd_context_save_for_backward(self._c, _addresses(tensors), len(tensors)):
            _raise()

    @property
    def saved_tensors(self):
        with _scope():
            out = tuple(_tensor(_lib.opd_context_saved(self._c, i)) for i in range(_lib.opd_context_nsaved(self._c)))
            _check()
            return out

    def mark_non_differentiable(self, *tensors):
        for x in tensors:
            if _lib.opd_context_mark_non_differentiable(self._c, x._p):
                _raise()

    def set_materialize_grads(self, value):
        _lib.opd_context_set_materialize_grads(self._c, value)


def _formula(op, backward_function, setup_context):
    """Returns the two C functions of a derivative: the first computes gradients, the second saves tensors and values
    for the first."""
    def setup(c):
        try:
            schema = _schema(op())
            ctx = Context(c, len(schema.arguments))
            number = _hold(ctx)
            if _lib.opd_context_set_data(c, number, _drop):
                _held.pop(number, None)
                return -1
            args, named = _arguments(lambda i: _lib.opd_context_input(c, i), schema)
            out = [_from(_lib.opd_context_output(c, i), kind) for i, kind in enumerate(schema.returns)]
            ctx._counts = [len(x) if isinstance(x, list) else None for x in out]
            if setup_context is not None:
                extra = {"keyword_only_inputs": named} if named else {}
                setup_context(ctx=ctx, inputs=tuple(args), output=out[0] if len(out) == 1 else tuple(out), **extra)
            return 0
        except BaseException as error:
            return _fail(error)

    def formula(bw):
        try:
            schema = _schema(op())
            ctx = _held[_lib.opd_context_data(_lib.opd_bw_context(bw))]
            grads, place = [], 0
            for count in ctx._counts:
                grads.append(_tensor(_lib.opd_bw_grad(bw, place)) if count is None else
                             [_tensor(_lib.opd_bw_grad(bw, place + k)) for k in range(count)])
                place += 1 if count is None else count
            out = backward_function(ctx, *grads)
            out = list(out) if isinstance(out, (tuple, list)) and not (
                isinstance(out, list) and schema.positional == 1) else [out]
            if len(out) != schema.positional:
                raise RuntimeError(f"the backward of {schema.name} returned an incorrect number of gradients "
                                   f"(expected {schema.positional}, got {len(out)})")
            return _give_gradients(bw, schema, out)
        except BaseException as error:
            return _fail(error)

    _forever.extend((_CALL(formula), _CALL(setup)))
    return _forever[-2:]


def _give_gradients(bw, schema, out):
    for i, (arg, x) in enumerate(zip(schema.arguments, out)):
        kind = arg.type
        while kind.element and kind.kind == "?":
            kind = kind.element
        if kind.kind == "[]" and x is not None and (kind.element.kind == "Tensor" or kind.element.element):
            rcs = [_lib.opd_bw_return_at(bw, i, k, _address(g)) for k, g in enumerate(x)]
        elif x is not None and not isinstance(x, Tensor):
            raise TypeError(f"the backward of {schema.name} returned a {type(x).__name__} as the gradient of "
                            f"'{arg.name}'")
        elif kind.kind == "Tensor" or x is not None:
            rcs = [_lib.opd_bw_return(bw, i, _address(x))]
        else:
            rcs = []
        if any(rcs):
            return -1
    return 0


VmapInfo = collections.namedtuple("VmapInfo", "batch_size randomness")


def _batching_rule(function):
    """Returns a C batching rule for one of PyTorch's: function(info, in_dims, *args) returns results and their dims."""
    def arg_of(call, i, arg, v):
        dim = c_int(-1)
        if v.tag == _TENSOR:
            x = _made(_lib.opd_batch_arg(call, i, byref(dim)))
            return x, None if dim.value < 0 else dim.value
        if v.tag == _TENSORS:
            found = []
            for p in (c_void_p * v.n).from_address(v.u & _POINTER) if v.n else ():
                x = _made(_lib.opd_batch_value(p, byref(dim))) if p else None
                found.append((x, None if not p or dim.value < 0 else dim.value))
            return [x for x, _ in found], [d for _, d in found]
        return _from(v, arg.type), None

    def run(call):
        try:
            schema = _schema(_lib.opd_call_operator(call))
            values = (_Value * max(len(schema.arguments), 1)).from_address(_lib.opd_call_args(call))
            args, named, dims = [], {}, []
            for i, arg in enumerate(schema.arguments):
                x, dim = arg_of(call, i, arg, values[i])
                if arg.keyword_only:
                    named[arg.name] = x
                else:
                    args.append(x)
                    dims.append(dim)
            info = VmapInfo(_lib.opd_batch_size(), _RANDOMNESS[_lib.opd_batch_randomness()])
            out, dims = function(info, tuple(dims), *args, **named)
            out = _results(schema, out)
            dims = [dims] if len(out) == 1 else list(dims) if isinstance(dims, (tuple, list)) else [dims] * len(out)
            for x, dim in zip(out, dims):
                if isinstance(x, (list, tuple)):
                    at = dim[0] if isinstance(dim, (list, tuple)) else dim
                    rc = _lib.opd_batch_return_list(call, _addresses(x), len(x), -1 if at is None else at)
                else:
                    x = x if isinstance(x, Tensor) else as_tensor(x)
                    rc = _lib.opd_batch_return(call, x._p, -1 if dim is None else dim)
                if rc:
                    return -1
            return 0
        except BaseException as error:
            return _fail(error)

    _forever.append(_CALL(run))
    return _forever[-1]


_KEYS = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta", "xpu": "XPU", "mps": "MPS", "hpu": "HPU", "xla": "XLA",
         "default": "CompositeExplicitAutograd"}


def _key(device_type):
    return _KEYS.get(device_type, device_type)


class Library:
    """torch.library.Library: definitions and kernels of a namespace.  kind is "DEF", "FRAGMENT" or "IMPL"."""

    def __init__(self, ns, kind="FRAGMENT", dispatch_key="", _at=None):
        file, line = _at or (sys._getframe(1).f_code.co_filename, sys._getframe(1).f_lineno)
        _forever.append(file.encode())            # the library keeps the address
        self.ns, self.key = ns, dispatch_key
        self._lib = _lib.opd_library_open(_IMPL if kind == "IMPL" else _FRAGMENT, ns.encode(), None, _forever[-1], line)
        if not self._lib:
            _raise()

    def _name(self, name):
        name = name._qualified if isinstance(name, OpOverload) else name
        return (name if "::" in name else f"{self.ns}::{name}").encode()

    def define(self, schema):
        """Defines an operator: define("f(Tensor x) -> Tensor").  Returns its name."""
        if _lib.opd_def(self._lib, schema.encode()):
            _raise()
        return schema.split("(")[0]

    def impl(self, name, fn, dispatch_key=""):
        """Registers fn as the operator's kernel for a device or key; without one as made of other operators."""
        key = _key(dispatch_key or self.key or "CompositeImplicitAutograd")
        records = "Implicit" in key or "Autograd" in key and "Composite" not in key
        if _lib.opd_impl_key(self._lib, self._name(name), key.encode(), _kernel(fn, records), None, None):
            _raise()

    def _register_fake(self, name, fn):
        if _lib.opd_fake_register(self._lib, self._name(name), _kernel(fn)):
            _raise()

    def _register_autograd(self, name, backward_function, setup_context):
        qualified = self._name(name)
        found = list(filter(None, [_lib.opd_find_quiet(qualified)]))

        def op():
            if not found:
                found.append(_lib.opd_find(qualified) or _raise())
            return found[0]

        if found and any(arg.keyword_only and "Tensor" in str(arg.type) for arg in _schema(op()).arguments):
            raise NotImplementedError(f"register_autograd with kwarg-only Tensor args: {_schema(op())}")

        formula, setup = _formula(op, backward_function, setup_context)
        if _lib.opd_autograd_register(self._lib, qualified, formula, setup):
            _raise()

    def _register_vmap(self, name, fn):
        if _lib.opd_vmap_register(self._lib, self._name(name), _batching_rule(fn)):
            _raise()

    def _destroy(self):
        """Removes everything that was registered through this library."""
        if self._lib:
            _lib.opd_library_close(self._lib)
            self._lib = None


_opdefs = {}                                      # name: CustomOpDef


def _tensors_in(values):
    """Returns the tensors in values, and in lists among them."""
    return [x for value in values for x in (value if isinstance(value, (list, tuple)) else [value])
            if isinstance(x, Tensor)]


class Tag:
    """Tags for custom_op, of operators that return the arguments that they write: x.f_(), f(x, out=y)."""
    inplace, out = "inplace", "out"


class CustomOpDef:
    """An operator made by custom_op.  Call it like the function.  Its methods register more for the operator."""

    def __init__(self, name, schema, function, at):
        self._qualname, self._at = name, at
        self._fake = self._vmap = self._backward = self._setup = None       # C calls a wrapper, which calls these
        self._kernels = {}
        self._library = Library(name.split("::")[0], "FRAGMENT", _at=at)
        try:
            self._library.define(name.split("::")[1] + schema)
            self._opoverload = OpOverload(_lib.opd_find(name.encode()) or _raise())
            self._library.impl(name, self._run_fake, "Meta")
        except BaseException:
            self._library._destroy()
            raise
        self._init_fn = function
        self.__name__, self.__doc__ = name.split("::")[1], function.__doc__

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    def __call__(self, *args, **named):
        return self._opoverload(*args, **named)

    def _run(self, key, /, *args, **named):
        fn = self._kernels[key]
        out = fn(*args, **named)
        self._refuse_aliases([*args, *named.values()], out, fn)
        return out

    def _run_fake(self, /, *args, **named):
        if self._fake is not None:
            return self._fake(*args, **named)
        schema = self._opoverload._schema
        if None not in schema.given_back:         # each result is an argument, or there are no results
            given = dict(zip((arg.name for arg in schema.arguments), args), **named)
            out = tuple(given[name] for name in schema.given_back)
            return out[0] if len(out) == 1 else out or None
        raise RuntimeError(f"There was no fake impl registered for {self!r}. This is necessary for what runs without "
                           f"data (fake tensors, the device meta, opcheck) to work. Please use "
                           f"`{self._init_fn.__name__}.register_fake` to add a fake impl.")

    def register_kernel(self, device_types, func=None):
        """Registers a kernel for one or more devices: register_kernel("cuda").  None: all devices without a kernel."""
        def register(fn):
            for kind in [device_types] if isinstance(device_types, str) or device_types is None else device_types:
                key = _key(kind or "default")
                if key not in self._kernels:
                    self._library.impl(self._qualname, functools.partial(self._run, key), key)
                self._kernels[key] = fn
            return fn
        return register if func is None else register(func)

    def _refuse_aliases(self, inputs, out, fn):
        """Raises an error if a result shares memory with an argument or another result, unless the schema says so."""
        schema = self._opoverload._schema
        out = [out] if len(schema.returns) == 1 else out if isinstance(out, (tuple, list)) else []
        seen = _tensors_in(inputs)
        for x in _tensors_in([x for x, name in zip(out, schema.given_back) if name is None]):
            if any(x is other or _lib.opd_tensor_same_storage(x._p, other._p) for other in seen):
                code = getattr(fn, "__code__", None)
                where = f" (with implementation in {code.co_filename}:{code.co_firstlineno})" if code else ""
                raise RuntimeError(f"{self._qualname}{where}: The output of this custom operator (1) must not also be "
                                   f"an input to this custom operator and (2) may not alias any inputs to this custom "
                                   f"operator or other returns. The most common way to trigger this error is if we "
                                   f"have y = custom_op(x) and y and x are the same Tensor. Please instead return a "
                                   f"clone of the offending output tensor(s) (e.g. return x.clone()) or refactor the "
                                   f"custom operator to not return y.")
            seen.append(x)

    def register_fake(self, fn):
        """Registers a fake kernel: it makes results with their sizes, strides and dtype, from tensors without data."""
        self._fake = fn
        return fn

    def register_autograd(self, backward, *, setup_context=None):
        """Registers the derivative: backward(ctx, *grads) returns a gradient for each argument, or None.
        setup_context(ctx, inputs, output) saves what backward needs."""
        if self._backward is None:
            self._library._register_autograd(self._qualname, lambda ctx, *grads: self._backward(ctx, *grads),
                                             lambda **given: self._setup and self._setup(**given))
        self._backward, self._setup = backward, setup_context

    def register_vmap(self, func=None):
        """Registers a batching rule: func(info, in_dims, *args) returns the results and their batch dims."""
        def register(fn):
            if self._vmap is None:
                self._library._register_vmap(self._qualname, lambda info, in_dims, /, *args, **named: self._vmap(
                    info, in_dims, *args, **named))
            self._vmap = fn
            return fn
        return register if func is None else register(func)


def custom_op(name, fn=None, *, mutates_args=(), schema=None, device_types=None, tags=()):
    """torch.library.custom_op: makes an operator from a function.  The schema is `schema`, or follows from the
    annotations of the function.  mutates_args are the arguments that it writes.  device_types, such as "cpu", are
    the devices for which the function is the kernel; None: all devices.  tags: Tag.inplace or Tag.out."""
    if name.count("::") != 1:
        raise ValueError(f"custom_op: '{name}' is not the name of an operator, such as 'mylib::crop'")

    def make(function):
        text = schema
        if text is None:
            text = infer_schema(function, mutates_args, tags=[tags] if isinstance(tags, str) else tags)
        elif "->" not in text or not text.lstrip().startswith("("):
            raise ValueError(f"custom_op: the schema must have no name, as in '(Tensor x) -> Tensor', not '{text}'")
        old = _opdefs.pop(name, None)
        if old is not None:
            old._library._destroy()               # the new definition replaces it
        code = getattr(function, "__code__", None)
        made = CustomOpDef(name, text, function, (code.co_filename, code.co_firstlineno) if code else (__file__, 0))
        made.register_kernel(device_types, function)
        if schema is not None and mutates_args not in ((), [], "unknown"):
            written = {arg.name for arg in made._opoverload._schema.arguments if arg.written}
            if written != set(mutates_args):
                made._library._destroy()
                raise ValueError(f"custom_op: mutates_args are {sorted(mutates_args)}, but the schema says "
                                 f"{sorted(written)}")
        _opdefs[name] = made
        return made

    return make if fn is None else make(fn)


def _qualified(op):
    if isinstance(op, str):
        if "::" not in op:
            raise ValueError(f"'{op}' is not the name of an operator, such as 'mylib::crop'")
        return op[:-len(".default")] if op.endswith(".default") else op
    return op._qualname if isinstance(op, CustomOpDef) else _overload(op)._qualified


def _part_of(op, own, part):
    """Registers a part of an operator: by a method of its CustomOpDef if custom_op made it, otherwise in a new
    Library."""
    name, at = _qualified(op), (sys._getframe(2).f_code.co_filename, sys._getframe(2).f_lineno)

    def register(fn):
        if name in _opdefs:
            own(_opdefs[name], fn)
        else:
            library = Library(name.split("::")[0], "IMPL", _at=at)
            try:
                part(library, name, fn)
            except BaseException:
                library._destroy()
                raise
        return fn
    return register


def register_fake(op, func=None):
    """torch.library.register_fake("mylib::f"): registers a fake kernel for any operator, also for one written in C."""
    register = _part_of(op, CustomOpDef.register_fake, Library._register_fake)
    return register if func is None else register(func)


def register_kernel(op, device_types, func=None):
    """torch.library.register_kernel("mylib::f", "cpu")"""
    kinds = [device_types] if isinstance(device_types, str) or device_types is None else list(device_types)

    def part(library, name, fn):
        for kind in kinds:
            library.impl(name, fn, kind or "default")
    register = _part_of(op, lambda made, fn: made.register_kernel(kinds, fn), part)
    return register if func is None else register(func)


def register_autograd(op, backward, *, setup_context=None):
    """torch.library.register_autograd("mylib::f", backward, setup_context=setup_context)"""
    _part_of(op, lambda made, fn: made.register_autograd(fn, setup_context=setup_context),
             lambda library, name, fn: library._register_autograd(name, fn, setup_context))(backward)


def register_vmap(op, func=None):
    """torch.library.register_vmap("mylib::f")"""
    register = _part_of(op, lambda made, fn: made.register_vmap(fn), Library._register_vmap)
    return register if func is None else register(func)


def define(qualname, schema):
    """torch.library.define("mylib::f", "(Tensor x) -> Tensor")"""
    name = _qualified(qualname)
    at = sys._getframe(1)
    Library(name.split("::")[0], "FRAGMENT", _at=(at.f_code.co_filename, at.f_lineno)).define(
        name.split("::")[1] + schema)


def impl(qualname, types, func=None):
    """torch.library.impl("mylib::f", "cpu"): registers a kernel for a device; "default" is every device."""
    return register_kernel(qualname, types, func)


class _FakeContext:
    """torch.library.get_ctx(): for use inside a fake kernel."""

    def __init__(self, call):
        self._call = call

    def new_dynamic_size(self, *, min=0, max=None):
        """Returns a size that depends on the data."""
        size = _lib.opd_fake_new_size(self._call, min, -1 if max is None else max)
        _check()
        return size


def get_ctx():
    return _FakeContext(_local.call)


def _overload(op):
    """Returns the operator that op means."""
    if isinstance(op, CustomOpDef):
        return op._opoverload
    if isinstance(op, OpOverloadPacket):
        return getattr(op, op.overloads()[0]) if len(op.overloads()) == 1 else op.default
    if isinstance(op, OpOverload):
        return op
    raise TypeError(f"{op!r} is not an operator")


_OPCHECK = {"test_schema": 1, "test_autograd_registration": 2, "test_faketensor": 4, "test_trace": 8, "test_vmap": 16,
            "test_memory": 32}


def opcheck(op, args, kwargs=None, *, test_utils=tuple(_OPCHECK), raise_exception=True, atol=None, rtol=None):
    """torch.library.opcheck: tests whether an operator behaves for these arguments as its schema and registrations
    say.  If not, raises an OpCheckError that says what to fix.  If raise_exception is false, returns the result of
    each test by name.  opcheck does not compare gradients with finite differences; gradcheck does."""
    overload, named = _overload(op), dict(kwargs or {})
    schema, keep = overload._schema, []
    tests = [test_utils] if isinstance(test_utils, str) else list(test_utils)
    if not set(tests) <= set(_OPCHECK):
        raise ValueError(f"opcheck: test_utils must be among {list(_OPCHECK)}, not {tests}")
    if len(args) > len(schema.arguments):
        raise TypeError(f"opcheck: there are {len(args)} arguments, but the operator is {schema}")
    full = list(args) + [named.pop(arg.name, _DEFAULT_VALUE) for arg in schema.arguments[len(args):]]
    if named:
        raise TypeError(f"opcheck: {overload} has no argument {', '.join(map(repr, named))}, or it is given twice")
    values = _values([None if x is _DEFAULT_VALUE else x for x in full], keep)
    for v, x in zip(values, full):
        v.tag = _DEFAULT if x is _DEFAULT_VALUE else v.tag
    options, failed, report = _OpcheckOptions(), c_uint(0), ctypes.create_string_buffer(16384)
    options.tests = sum(_OPCHECK[test] for test in tests)
    options.atol, options.rtol = atol or 0, rtol or 0
    if not raise_exception:
        options.failed, options.report = ctypes.addressof(failed), ctypes.addressof(report)
        options.report_cap = len(report)
    with _scope():
        rc = _lib.opd_opcheck(overload._op, values, len(full), byref(options))
    if rc and not _lib.opd_ok():
        _raise(OpCheckError)
    said = report.value.decode(errors="replace")
    return {test: OpCheckError(said) if failed.value & _OPCHECK[test] else "SUCCESS" for test in tests}


_DEFAULT_VALUE = object()


_CLOSE = {5: (1e-3, 1e-5), 15: (1.6e-2, 1e-5), 6: (1.3e-6, 1e-5), 7: (1e-7, 1e-7), 9: (1.3e-6, 1e-5), 10: (1e-7, 1e-7)}


def assert_close(actual, expected, *, rtol=None, atol=None, equal_nan=False):
    """torch.testing.assert_close for two tensors."""
    actual, expected = as_tensor(actual).detach(), as_tensor(expected).detach()
    if actual.shape != expected.shape or actual.dtype is not expected.dtype:
        raise AssertionError(f"{actual.shape} of {actual.dtype} is not {expected.shape} of {expected.dtype}")
    usual = _CLOSE.get(actual.dtype.number, (0, 0))
    near = (usual[0] if rtol is None else rtol, usual[1] if atol is None else atol)
    if not ops.aten.allclose(actual, expected, *near, equal_nan):
        raise AssertionError(f"Tensor-likes are not close!\n\n{actual}\n\n{expected}")


def memory():
    """Returns the library's memory statistics: live, cached and peak bytes, and allocations so far."""
    stats = _lib.opd_memory_stats()
    return {name: getattr(stats, name) for name, _ in _Memory._fields_}


# ---- the names of PyTorch's modules ----------------------------------------------------------------------------------

library = types.SimpleNamespace(
    custom_op=custom_op, register_fake=register_fake, register_kernel=register_kernel, get_ctx=get_ctx,
    register_autograd=register_autograd, register_vmap=register_vmap, opcheck=opcheck, infer_schema=infer_schema,
    Library=Library, define=define, impl=impl, CustomOpDef=CustomOpDef)
autograd = types.SimpleNamespace(grad=grad, backward=backward, gradcheck=gradcheck, gradgradcheck=gradgradcheck)
jit = types.SimpleNamespace(trace=trace_graph, load=load_graph)
func = types.SimpleNamespace(vmap=vmap)
_subclasses = types.SimpleNamespace(fake_tensor=types.SimpleNamespace(FakeTensorMode=FakeTensorMode))
testing = types.SimpleNamespace(assert_close=assert_close)
globals().update({named.name: named for table in (_DTYPES, _LAYOUTS, _FORMATS) for named in table.values()
                  if named.name != "bool"})       # this module uses Python's bool; torch.bool is in _SHORT
