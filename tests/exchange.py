#!/usr/bin/env python3
"""Checks what test_exchange.c cannot check: whether NumPy, the safetensors package and PyTorch read the files that we
write.

    python3 exchange.py files FOLDER        reads the files that the test has written to FOLDER
    python3 exchange.py dlpack LIBRARY      passes tensors to and from the shared library LIBRARY, with ctypes

Prints "checked: ..." with exit status 0.  If a package is missing, prints its name with exit status 77.
"""
import ctypes
import os
import sys

if set(sys.argv[1:]) & {'--help', '-h'}:                  # needs no package
    print(__doc__.strip())
    sys.exit(0)
if len(sys.argv) != 3 or sys.argv[1] not in ('files', 'dlpack'):
    sys.exit(__doc__)
try:
    import numpy as np
except ImportError:
    print('no numpy')
    sys.exit(77)


def expected(kind, shape):
    """Returns an array whose element i is i; for bool it is i % 3 == 1, for complex dtypes i + i * 1j."""
    a = np.arange(int(np.prod(shape)))
    a = a % 3 == 1 if kind == 'bool' else a + a * 1j if kind.startswith('complex') else a
    return a.astype(kind).reshape(shape)


def files(folder):
    kinds = 'uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128 bool'.split()
    n = 0
    for kind in kinds:
        a = np.load(os.path.join(folder, kind + '.npy'))
        assert a.dtype.newbyteorder('=') == kind and a.flags.c_contiguous and np.array_equal(a, expected(kind, (2, 3))), kind
        n += 1
    for name in ('plain.npz', 'zip64.npz'):
        z = np.load(os.path.join(folder, name))
        assert z.files == kinds + ['turned', 'grün', 'none'], z.files
        assert z.zip.testzip() is None
        for kind in kinds:
            a = z[kind]
            assert a.dtype.newbyteorder('=') == kind and np.array_equal(a, expected(kind, (2, 3))), kind
        assert np.array_equal(z['turned'], expected('float32', (2, 3)).T)
        assert z['none'].shape == (0, 4) and z['grün'].shape == ()
        n += 1
    try:
        from safetensors import safe_open
    except ImportError:
        print('checked: %d files by numpy %s; no safetensors' % (n, np.__version__))
        return
    with safe_open(os.path.join(folder, 'all.safetensors'), 'np') as f:
        assert f.metadata() == {'format': 'pt', 'ключ "1"': 'a\nb\\'}, f.metadata()
        assert sorted(f.keys()) == sorted([k for k in kinds if k != 'complex128'] + ['turned', 'grün', 'none'])
        for kind in kinds:
            if kind != 'complex128':
                assert np.array_equal(f.get_tensor(kind), expected(kind, (2, 3))), kind
        assert np.array_equal(f.get_tensor('turned'), expected('float32', (2, 3)).T)
    import safetensors
    print('checked: %d files by numpy %s and safetensors %s' % (n + 1, np.__version__, safetensors.__version__))


class Ints(ctypes.Structure):
    _fields_ = [('data', ctypes.POINTER(ctypes.c_int64)), ('n', ctypes.c_int64)]


def dlpack(library):
    try:
        import torch
        from torch.utils.dlpack import from_dlpack, to_dlpack
    except ImportError:
        torch = None
    lib = ctypes.CDLL(library)
    pointer, api = ctypes.c_void_p, ctypes.pythonapi
    for name in ('opd_tensor_new', 'opd_dlpack_export', 'opd_dlpack_export_unversioned', 'opd_dlpack_import',
                 'opd_dlpack_import_unversioned', 'opd_data', 'opd_keep', 'opd_strides'):
        getattr(lib, name).restype = pointer
    lib.opd_error_message.restype = ctypes.c_char_p
    api.PyCapsule_New.restype = ctypes.py_object
    api.PyCapsule_New.argtypes = [pointer, ctypes.c_char_p, pointer]
    api.PyCapsule_GetPointer.restype = pointer
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
    sizes = (ctypes.c_int64 * 2)(2, 3)
    t = lib.opd_tensor_new(Ints(sizes, 2), 6)
    data = (ctypes.c_float * 6).from_address(lib.opd_data(pointer(t)))
    data[:] = range(6)
    done = []

    class Ours:                                               # an object with a tensor of this library
        def __init__(self, most):
            self.most = most

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, stream=None, max_version=None, **_):
            if max_version and self.most:
                done.append('versioned')
                return api.PyCapsule_New(lib.opd_dlpack_export(pointer(t), 0), b'dltensor_versioned', None)
            done.append('unversioned')
            return api.PyCapsule_New(lib.opd_dlpack_export_unversioned(pointer(t)), b'dltensor', None)

    for most in (0, 1):
        a = np.from_dlpack(Ours(most))
        assert a.shape == (2, 3) and a.dtype == 'float32' and a.tolist() == [[0, 1, 2], [3, 4, 5]]
        data[4] = 40
        assert a[1, 1] == 40                                  # no copy
        data[4] = 4
        del a
    if torch:
        x = from_dlpack(api.PyCapsule_New(lib.opd_dlpack_export_unversioned(pointer(t)), b'dltensor', None))
        assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
        x[0, 0] = 9
        assert data[0] == 9
        del x
        y = torch.arange(6, dtype=torch.int64).reshape(2, 3).t()
        c = to_dlpack(y)
        u = lib.opd_dlpack_import_unversioned(pointer(api.PyCapsule_GetPointer(c, b'dltensor')))
        api.PyCapsule_SetName(c, b'used_dltensor')
        assert u, lib.opd_error_message()
        assert lib.opd_data(pointer(u)) == y.data_ptr()
        assert list((ctypes.c_int64 * 2).from_address(lib.opd_strides(pointer(u)))) == [1, 3]
        done.append('torch ' + torch.__version__)
    b = np.arange(6, dtype='f8').reshape(2, 3)[:, ::2]
    try:
        c, name, take = b.__dlpack__(max_version=(1, 0)), b'dltensor_versioned', lib.opd_dlpack_import
    except TypeError:
        c, name, take = b.__dlpack__(), b'dltensor', lib.opd_dlpack_import_unversioned
    used = b'used_' + name
    u = take(pointer(api.PyCapsule_GetPointer(c, name)), None)
    api.PyCapsule_SetName(c, used)
    assert u, lib.opd_error_message()
    assert lib.opd_data(pointer(u)) == b.ctypes.data
    assert list((ctypes.c_int64 * 2).from_address(lib.opd_strides(pointer(u)))) == [3, 2]
    assert lib.opd_finish() == 0
    print('checked: %s, numpy %s' % (', '.join(done), np.__version__))


if __name__ == '__main__':
    {'files': files, 'dlpack': dlpack}[sys.argv[1]](sys.argv[2])
