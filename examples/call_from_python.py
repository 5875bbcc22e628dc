# Calls operators from Python by name, and registers operators written in Python, with opdispatch.py beside this file.
# The second part is PyTorch's tutorial "Custom Python Operators", with another imaging library and another first line.
# cc -O2 -shared -fPIC -DOPDISPATCH_IMPLEMENTATION -x c opdispatch.h -o libopdispatch.so -lm
# ci: $tmp/libopdispatch.so $tmp/plugin.so
#
# python3 examples/call_from_python.py [./libopdispatch.so [plugin.so]]; the plug-in is that of examples/plugin.c.
# Needs NumPy and Pillow: python3-numpy python3-pil of Debian.
import sys
from typing import Sequence

import numpy as np

import opdispatch as torch


# ---- operators by name; NumPy's arrays in and out, without a copy ----

def by_name():
    ops = torch.ops
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.ones((2, 3), np.float32)
    print(repr(ops.aten.add), repr(ops.aten.add.Tensor), ops.aten.add.Tensor._schema)
    print(ops.aten.add(x, y, alpha=10))           # chooses the overload by the arguments
    assert np.array_equal(ops.aten.add.Tensor(x, y, alpha=10), x + 10 * y)
    values, places = ops.aten.max(x, 1)
    assert values.tolist() == [2, 5] and places.tolist() == [2, 2]

    ops.aten.mul_(x[:, 1:], 2)                    # writes to NumPy's memory, through a view
    assert x.tolist() == [[0, 2, 4], [3, 8, 10]]
    turned = ops.aten.t(x).numpy()                # a view of NumPy's memory, as an array
    x[0, 2] = -1
    assert np.shares_memory(turned, x) and turned[2, 0] == -1
    large = torch.exp(np.zeros((1000, 1000))).numpy()
    assert large.sum() == 1e6 and not large.flags.owndata      # the library's memory, which the array keeps

    for wrong in (lambda: ops.aten.add(x, np.ones(5, np.float32)), lambda: ops.aten.nothing):
        try:
            wrong()
        except RuntimeError as error:
            print(error)


# ---- PyTorch's tutorial: Pillow's crop as an operator ----

def crop_of_pillow():
    import PIL.Image

    def to_pil_image(pic):
        return PIL.Image.fromarray((pic.numpy().transpose(1, 2, 0) * 255).astype(np.uint8))

    def pil_to_tensor(image):
        return torch.from_numpy(np.array(image)).permute(2, 0, 1)

    @torch.library.custom_op("mylib::crop", mutates_args=())
    def crop(pic: torch.Tensor, box: Sequence[int]) -> torch.Tensor:
        img = to_pil_image(pic.cpu())
        cropped_img = img.crop(box)
        return (pil_to_tensor(cropped_img) / 255.).to(pic.device, pic.dtype)

    @crop.register_fake
    def _(pic, box):
        channels = pic.shape[0]
        x0, y0, x1, y1 = box
        result = pic.new_empty(y1 - y0, x1 - x0, channels).permute(2, 0, 1)
        # The result should have the same metadata (shape/strides/``dtype``/device)
        # as running the ``crop`` function above.
        return result

    def backward(ctx, grad_output):
        grad_input = grad_output.new_zeros(ctx.pic_shape)
        x0, y0, x1, y1 = ctx.coords
        grad_input[:, y0:y1, x0:x1] = grad_output
        return grad_input, None

    def setup_context(ctx, inputs, output):
        pic, box = inputs
        ctx.coords = box
        ctx.pic_shape = pic.shape

    crop.register_autograd(backward, setup_context=setup_context)

    examples = [
        [torch.randn(3, 64, 64), [0, 0, 10, 10]],
        [torch.randn(3, 91, 91, requires_grad=True), [10, 0, 20, 10]],
        [torch.randn(3, 60, 60, dtype=torch.double), [3, 4, 32, 20]],
        [torch.randn(3, 512, 512, requires_grad=True, dtype=torch.double), [3, 4, 32, 45]],
    ]
    for example in examples:
        print(torch.library.opcheck(crop, example))

    img = torch.ones(3, 64, 64) * torch.linspace(0, 1, 64) * torch.linspace(0, 1, 64).unsqueeze(1)
    img.requires_grad_()
    cropped = crop(img, (10, 10, 50, 50))
    assert cropped.shape == (3, 40, 40) and (cropped - img[:, 10:50, 10:50]).abs().max() < 1 / 255 + 1e-6
    cropped.sum().backward()
    assert img.grad.sum() == 3 * 40 * 40 == img.grad[:, 10:50, 10:50].sum()

    graph = torch.jit.trace(lambda pic: torch.ops.mylib.crop(pic, [10, 10, 50, 50]), img.detach())
    print(graph)
    assert torch.equal(graph(img.detach()), cropped.detach())


# ---- a derivative, and an operator that writes to an argument ----

def numpy_sin_of_numpy():
    @torch.library.custom_op("mylib::numpy_sin", mutates_args=(), device_types="cpu")
    def numpy_sin(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(np.sin(x.numpy()))

    x = torch.randn(3, requires_grad=True, dtype=torch.double)
    try:
        numpy_sin(x).sum().backward()             # there is no derivative yet
    except RuntimeError as error:
        print(error)

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return grad * x.cos()

    numpy_sin.register_autograd(backward, setup_context=setup_context)
    numpy_sin(x).sum().backward()
    assert torch.allclose(x.grad, x.detach().cos())
    assert torch.autograd.gradcheck(numpy_sin, (x,)) and torch.autograd.gradgradcheck(numpy_sin, (x,))

    @torch.library.custom_op("mylib::numpy_sin_out", mutates_args={"output"}, device_types="cpu")
    def numpy_sin_out(input: torch.Tensor, output: torch.Tensor) -> None:
        assert input.device == output.device
        assert input.device.type == "cpu"
        np.sin(input.numpy(), out=output.numpy())

    x, out = torch.randn(3), torch.zeros(3)
    numpy_sin_out(x, out)
    assert torch.allclose(out, x.sin())
    torch.library.opcheck(numpy_sin_out, (x, out))

    @torch.library.custom_op("mylib::broken", mutates_args=())
    def broken(x: torch.Tensor) -> torch.Tensor:
        return x.numpy().reshape(1000)

    try:
        broken(x)
    except RuntimeError as error:                 # of the library; the kernel's own exception is its cause
        print(error, "|", repr(error.__cause__))


def main(path="./libopdispatch.so", plugin=None):
    if path in ("-h", "--help"):
        print("usage: call_from_python.py [LIBRARY [PLUG-IN]]: a shared build of opdispatch.h, one of plugin.c")
        return
    torch.load(path)
    by_name()
    try:
        import PIL.Image  # noqa: F401
    except ImportError:
        print("skipped: Pillow is not there (python3-pil of Debian), without which there is no crop")
    else:
        crop_of_pillow()
    numpy_sin_of_numpy()
    if plugin:
        torch.ops.load_library(plugin)
        print(torch.ops.plugin.dot(np.float32([1, 2, 3]), np.float32([4, 5, 6])))


if __name__ == "__main__":
    main(*sys.argv[1:])
