#!/usr/bin/env python3
"""Loads both.c, which was compiled for PyTorch, and tests its operators in PyTorch.  Needs PyTorch 2.10 or later.

    cc -shared -fPIC -DOPDISPATCH_IN_TORCH tests/extension/both.c -x c opdispatch.h -o both.so -lm
    python3 tests/extension/in_torch.py ./both.so
"""
import sys

if set(sys.argv[1:]) & {'--help', '-h'}:                  # needs no package
    print(__doc__.strip())
    sys.exit(0)
if len(sys.argv) != 2 or sys.argv[1][:1] == '-':
    sys.exit(__doc__)
import torch

torch.ops.load_library(sys.argv[1])
ops = torch.ops.both_worlds
x = torch.arange(6.0).reshape(2, 3)

# any layout, any dtype, no elements, no dims
for t in (x, x.t(), x[:, ::2], x.double(), x.to(torch.bfloat16), x[:0], torch.tensor(3.0), x.expand(4, 2, 3)):
    out = ops.scale(t, 2.5)
    assert out.dtype == t.dtype and out.shape == t.shape and torch.equal(out, t * 2.5), t
# an in-place operator returns its argument
y = x.clone()
assert ops.add_one_(y) is y or ops.add_one_(y).data_ptr() == y.data_ptr()
z = x.clone()
ops.add_one_(z)
assert torch.equal(z, x + 1)
ops.add_one_(z.t()[1:])
assert torch.equal(z[:, 1:], x[:, 1:] + 2) and torch.equal(z[:, 0], x[:, 0] + 1)
# values of each kind
turned, count, text, number, flag = ops.parts([x, x.t()], [1, 2, 3], "grüße", x, False)
assert torch.equal(turned[1], -x.t()) and (count, text, number, flag) == (3, "grüße", 6.0, True)
turned, count, text, number, flag = ops.parts([], [], "", None)  # noqa: F841
assert turned == [] and (count, text, number, flag) == (0, "", None, False)
assert torch.equal(ops.filled([2, 2]), torch.zeros(2, 2, dtype=torch.float64))
assert ops.filled([3], torch.int16).dtype == torch.int16
# on the meta device, and compiled
assert ops.scale(torch.empty(4, 5, device="meta"), 2.0).shape == (4, 5)
# gradients
given = torch.randn(2, 3)
grads = ops.scale_vjp([given], x, 3.0)
assert torch.allclose(grads[0], given * 3) and grads[1] is None
# from many threads
import threading  # noqa: E402

failed = []


def work():
    for i in range(50):
        if not torch.equal(ops.scale(x, float(i)), x * i):
            failed.append(i)


threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed
v = torch.tensor([3.0, 4.0])
assert torch.allclose(ops.norm_vjp([torch.tensor(2.0)], v)[0], v / 5 * 2)
assert ops.norm(v).item() == 5


# errors contain the operator's name, and the next call works
def fails(text, call):
    try:
        call()
    except (RuntimeError, NotImplementedError) as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)


fails("negative dimension", lambda: ops.filled([-1]))
fails("aten::add", lambda: ops.add_one_(torch.tensor([True])))
assert ops.norm(v).item() == 5
print("ok")
