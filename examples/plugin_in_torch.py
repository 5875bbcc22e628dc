# Loads a plug-in in C into PyTorch (examples/plugin.c, which C programs load, too).  The plug-in uses PyTorch's stable
# C interface, without PyTorch's headers and libraries.
# cc -O2 -shared -fPIC -DOPDISPATCH_IN_TORCH examples/plugin.c -x c opdispatch.h -o plugin_in_torch.so -lm
# ci: $tmp/plugin_in_torch.so
#
# python3 examples/plugin_in_torch.py ./plugin_in_torch.so; needs PyTorch 2.10 or later, on Linux.
# PyTorch accepts derivatives only from Python.  So for an operator NAME with a derivative, the plug-in also registers
# NAME_vjp(grads, the arguments of NAME), which returns a gradient for each argument.
import sys

try:
    import torch

    usable = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 10)
except ImportError:
    usable = False
if len(sys.argv) < 2 or not usable:
    print("usage: plugin_in_torch.py ./plugin_in_torch.so   (with PyTorch 2.10 or later)")
    sys.exit(0)
torch.ops.load_library(sys.argv[1])


def differentiable(name, vjp):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, *grads):
        return tuple(vjp(list(grads), *ctx.saved_tensors))

    torch.library.register_autograd(name, backward, setup_context=setup)


differentiable("plugin::dot", torch.ops.plugin.dot_vjp)

x = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([4.0, 5.0, 6.0], requires_grad=True)
y = torch.ops.plugin.dot(x, w)
y.backward()
print(y)  # tensor(32., grad_fn=...)
print(w.grad)  # tensor([1., 2., 3.])
assert y.item() == 32 and w.grad.tolist() == [1, 2, 3]
try:
    torch.ops.plugin.dot(x, torch.ones(4))
    raise AssertionError("no error")
except RuntimeError as error:
    print(error)  # plugin::dot: x and w must have as many elements
