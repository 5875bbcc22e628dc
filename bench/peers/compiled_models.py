"""Writes the exported models that bench/compiled.c measures: for each model NAME.pt2, and NAME.npz with the inputs (in0,
in1, ...) and the results (out0, ...).  Models have random weights, and batches of one example.  ResNet-18, MobileNetV3
and ConvNeXt come from torchvision.  This file defines the others.
    python3 bench/peers/compiled_models.py FOLDER [NAME ...]"""
import os
import sys
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
MODELS = {}


def model(*shapes):
    def add(make):
        MODELS[make.__name__] = (make, shapes)
        return make
    return add


class Block(nn.Module):
    """A layer of a transformer, with the norms after attention and MLP (BERT) or before them (ViT)."""

    def __init__(self, width, heads, hidden, first):
        super().__init__()
        self.heads, self.first = heads, first
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, hidden), nn.Linear(hidden, width)

    def attention(self, x, mask):
        batch, tokens, width = x.shape
        q, k, v = (part(x).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        got = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(got.transpose(1, 2).reshape(batch, tokens, width))

    def forward(self, x, mask=None):
        if self.first:
            x = x + self.attention(self.norm1(x), mask)
            return x + self.down(F.gelu(self.up(self.norm2(x))))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, layers, width, heads, vocabulary, tokens):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.norm = nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, False) for _ in range(layers))

    def forward(self, ids, there):
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        mask = (1.0 - there[:, None, None, :].float()) * -10000.0
        for block in self.blocks:
            x = block(x, mask)
        return x


class Vit(nn.Module):
    def __init__(self, size, patch, layers, width, heads):
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.first = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads, 4 * width, True) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1) + self.places
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


class Twice(nn.Sequential):
    def __init__(self, into, out):
        super().__init__(nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU(),
                         nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()
        sizes = [width, 2 * width, 4 * width, 8 * width]
        self.down = nn.ModuleList(Twice(a, b) for a, b in zip([3] + sizes, sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in zip(sizes, sizes[1:]))
        self.after = nn.ModuleList(Twice(2 * a, a) for a in sizes[:-1])
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = []
        for i, part in enumerate(self.down):
            x = part(x if i == 0 else F.max_pool2d(x, 2))
            kept.append(x)
        for i in reversed(range(len(self.up))):
            x = self.after[i](torch.cat([self.up[i](x), kept[i]], 1))
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self, vocabulary, width):
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, ids):
        return self.head(self.lstm(self.words(ids))[0])


class Chain(nn.Module):
    def forward(self, x, y):
        x = torch.relu(x * y + 1.0) - y
        return torch.abs(x * 0.5 + y).clamp(max=3.0) * y - 0.25


@model((1, 3, 224, 224))
def resnet18():
    import torchvision
    return torchvision.models.resnet18()


@model((1, 3, 224, 224))
def mobilenet_v3_small():
    import torchvision
    return torchvision.models.mobilenet_v3_small()


@model((1, 128), (1, 128))
def minilm_l6():
    return Bert(6, 384, 12, 30522, 512)


@model((1, 3, 224, 224))
def vit_tiny():
    return Vit(224, 16, 12, 192, 3)


@model((1, 32))
def lstm_256():
    return Recurrent(1000, 256)


@model((1, 3, 128, 128))
def unet_128():
    return UNet(32)


@model((1, 3, 224, 224))
def convnext_tiny_224():
    import torchvision
    return torchvision.models.convnext_tiny()


@model((1, 64))
def small_mlp():
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 128), nn.GELU(),
                         nn.Linear(128, 10))


@model((1, 1, 28, 28))
def small_cnn():
    return nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10))


@model((4, 1024, 1024), (4, 1024, 1024))
def chain_of_ten():
    return Chain()


def spread(module):
    """Sets running statistics and scales to values like those of a trained network, so that no layer's output
    vanishes."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
        if part.__class__.__name__ == "CNBlock":
            part.layer_scale.data.fill_(0.5)


def inputs_of(name, shapes):
    if name == "minilm_l6":
        there = torch.ones(1, 128, dtype=torch.int64)
        there[:, 100:] = 0
        return [torch.randint(0, 30522, (1, 128)), there]
    if name == "lstm_256":
        return [torch.randint(0, 1000, shapes[0])]
    return [torch.randn(shape) for shape in shapes]


def main(folder, names):
    os.makedirs(folder, exist_ok=True)
    for name in names or MODELS:
        torch.manual_seed(0)
        make, shapes = MODELS[name]
        module = make().eval()
        with torch.no_grad():
            spread(module)
            inputs = inputs_of(name, shapes)
            program = torch.export.export(module, tuple(inputs))
            arrays = {"in%d" % i: x.numpy() for i, x in enumerate(inputs)}
            arrays["out0"] = module(*inputs).numpy()
        numpy.savez(os.path.join(folder, name + ".npz"), **arrays)
        torch.export.save(program, os.path.join(folder, name + ".pt2"))
        print(name)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
