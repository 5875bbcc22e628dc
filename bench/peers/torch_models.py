"""Measures whole steps of models on a GPU in PyTorch: the models and sizes of bench/gpu_models.c, in the same columns.
    python3 bench/peers/torch_models.py [--quick] [--tiny] [--compile] [--seconds S] [--cpu] [MODEL ...]
Weights and inputs are random.  --compile measures torch.compile, too, and llama_captured, which replays a CUDA graph.
--cpu runs on the CPU, to test this script with --tiny.  Column "launches" is -1: this script does not count them."""
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

arguments = sys.argv[1:]
tiny, quick, compiling, on_cpu = (name in arguments for name in ("--tiny", "--quick", "--compile", "--cpu"))
seconds = float(arguments[arguments.index("--seconds") + 1]) if "--seconds" in arguments else 8.0
device = "cpu" if on_cpu else "cuda"
if not on_cpu and not torch.cuda.is_available():
    sys.exit("no CUDA")
torch.manual_seed(0)
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False


def size(whole, in_test):
    return in_test if tiny else whole


def normal(*sizes, std=0.02, dtype=torch.float32):
    return torch.randn(*sizes, device=device, dtype=dtype) * std


class Attention(nn.Module):
    def __init__(self, c, heads, causal):
        super().__init__()
        self.qkv, self.out, self.heads, self.causal = nn.Linear(c, 3 * c), nn.Linear(c, c), heads, causal

    def forward(self, x):
        batch, tokens, c = x.shape
        q, k, v = (t.view(batch, tokens, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(c, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, tokens, c))


class Layer(nn.Module):
    def __init__(self, c, heads, causal, approximate):
        super().__init__()
        self.first, self.second = nn.LayerNorm(c), nn.LayerNorm(c)
        self.attention = Attention(c, heads, causal)
        self.up, self.down, self.approximate = nn.Linear(c, 4 * c), nn.Linear(4 * c, c), approximate

    def forward(self, x):
        x = x + self.attention(self.first(x))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate=self.approximate))


class GPT2(nn.Module):
    def __init__(self, words, tokens, c, heads, layers):
        super().__init__()
        self.tokens, self.places = nn.Embedding(words, c), nn.Parameter(normal(tokens, c))
        self.layers = nn.ModuleList(Layer(c, heads, True, "tanh") for _ in range(layers))
        self.last = nn.LayerNorm(c)

    def forward(self, x):
        x = self.tokens(x) + self.places
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.last(x), self.tokens.weight).flatten(0, 1)


class ViT(nn.Module):
    def __init__(self, side, c, heads, layers, classes):
        super().__init__()
        self.patches = nn.Conv2d(3, c, 16, 16)
        self.first, self.places = nn.Parameter(normal(1, 1, c)), nn.Parameter(normal(1, (side // 16) ** 2 + 1, c))
        self.layers = nn.ModuleList(Layer(c, heads, False, "none") for _ in range(layers))
        self.last, self.head = nn.LayerNorm(c), nn.Linear(c, classes)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.first.expand(len(x), -1, -1).to(x.dtype), x), 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.last(x)[:, 0])


class ConvNorm(nn.Module):
    def __init__(self, out, into, side, stride):
        super().__init__()
        self.conv = nn.Conv2d(into, out, side, stride, side // 2, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, into, c, stride, first):
        super().__init__()
        self.a, self.b, self.c = ConvNorm(c, into, 1, 1), ConvNorm(c, c, 3, stride), ConvNorm(4 * c, c, 1, 1)
        self.around = ConvNorm(4 * c, into, 1, stride) if first else nn.Identity()

    def forward(self, x):
        y = self.c(F.relu(self.b(F.relu(self.a(x), inplace=True)), inplace=True))
        y += self.around(x)
        return F.relu(y, inplace=True)


class ResNet(nn.Module):
    def __init__(self, width, blocks, classes):
        super().__init__()
        self.stem, into, stages = ConvNorm(width, 3, 7, 2), width, []
        for stage, count in enumerate(blocks):
            for block in range(count):
                stages.append(Block(into, width << stage, 2 if block == 0 and stage > 0 else 1, block == 0))
                into = 4 * (width << stage)
        self.stages, self.head = nn.Sequential(*stages), nn.Linear(into, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.stem(x), inplace=True), 3, 2, 1)
        return self.head(F.adaptive_avg_pool2d(self.stages(x), 1).flatten(1))


class UNet(nn.Module):
    def __init__(self, width):
        super().__init__()

        def two(into, c):
            return nn.Sequential(ConvNorm(c, into, 3, 1), nn.ReLU(True), ConvNorm(c, c, 3, 1), nn.ReLU(True))

        self.down = nn.ModuleList(two(3 if i == 0 else width << (i - 1), width << i) for i in range(5))
        self.turn = nn.ModuleList(nn.ConvTranspose2d(width << (i + 1), width << i, 2, 2) for i in range(4))
        self.up = nn.ModuleList(two(width << (i + 1), width << i) for i in range(4))
        self.last = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        kept = []
        for i in range(4):
            kept.append(self.down[i](x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[4](x)
        for i in range(3, -1, -1):
            x = self.up[i](torch.cat((kept[i], self.turn[i](x)), 1))
        return self.last(x)


class LSTM(nn.Module):
    def __init__(self, h):
        super().__init__()
        self.lstm = nn.LSTM(h, h)

    def forward(self, x):
        return self.lstm(x)[0]


def training(net, x, target, loss_of, optimizer, autocast=True, clip=False, layout=torch.contiguous_format):
    """Returns a function that makes a step and returns the loss, and the function that it compiles."""
    net = net.to(device=device, memory_format=layout) if layout == torch.channels_last else net.to(device)
    make = {"adamw": lambda p: torch.optim.AdamW(p, lr=3e-4, fused=not on_cpu),
            "sgd": lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, fused=not on_cpu),
            "plain": lambda p: torch.optim.SGD(p, lr=0.5, fused=not on_cpu)}[optimizer]
    parameters = list(net.parameters())
    made = make(parameters)

    def run(forward):
        def step():
            with torch.autocast(device, torch.bfloat16, enabled=autocast):
                loss = loss_of(forward(x), target)
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(parameters, 1.0)
            made.step()
            made.zero_grad()
            return loss.detach()
        return step

    return run(net), lambda: run(torch.compile(net))


def classes(count, *sizes):
    return torch.randint(count, sizes, device=device)


def gpt2():
    batch, tokens, words, c = size(8, 2), size(1024, 16), size(50257, 101), size(768, 32)
    net = GPT2(words, tokens, c, size(12, 2), size(12, 2))
    nn.init.normal_(net.tokens.weight, std=0.02)
    return training(net, classes(words, batch, tokens), classes(words, batch * tokens), F.cross_entropy, "adamw", clip=True)


def vit():
    batch, side, count = size(64, 2), size(224, 32), size(1000, 10)
    net = ViT(side, size(768, 32), size(12, 2), size(12, 2), count)
    return training(net, normal(batch, 3, side, side, std=1), classes(count, batch), F.cross_entropy, "adamw")


def resnet50(layout=torch.contiguous_format):
    batch, side, count = size(256, 2), size(224, 32), size(1000, 10)
    net = ResNet(size(64, 4), (1, 1, 1, 1) if tiny else (3, 4, 6, 3), count)
    x = normal(batch, 3, side, side, std=1).contiguous(memory_format=layout)
    return training(net, x, classes(count, batch), F.cross_entropy, "sgd", layout=layout)


def resnet50_last():
    return resnet50(torch.channels_last)


def unet():
    batch, side = size(16, 2), size(256, 16)
    return training(UNet(size(64, 4)), normal(batch, 3, side, side, std=1), classes(2, batch, 1, side, side).float(),
                    F.binary_cross_entropy_with_logits, "sgd")


def lstm():
    steps, batch, h = size(128, 5), size(64, 2), size(512, 8)
    return training(LSTM(h), normal(steps, batch, h, std=1), normal(steps, batch, h, std=0.1), F.mse_loss, "plain",
                    autocast=False)


class Llama:
    """Decodes a token of an 8B model.  Weights are plain tensors."""

    def __init__(self):
        c, hidden, words, keys = size(4096, 32), size(14336, 64), size(128256, 101), size(2048, 16)
        self.layers, self.heads, self.groups = size(32, 2), size(32, 4), size(8, 2)
        self.width = c // self.heads
        narrow, b = self.groups * self.width, torch.bfloat16
        self.tokens, self.head = normal(words, c, std=1, dtype=b), normal(words, c, dtype=b)
        self.last = torch.ones(c, device=device, dtype=b)
        self.weights = []
        for _ in range(self.layers):
            shapes = ((c, c), (narrow, c), (narrow, c), (c, c), (hidden, c), (hidden, c), (c, hidden))
            cache = tuple(normal(1, self.groups, keys, self.width, std=1, dtype=b) for _ in range(2))
            self.weights.append((torch.ones_like(self.last), torch.ones_like(self.last))
                                + tuple(normal(*s, dtype=b) for s in shapes) + cache)
        self.token, self.place = classes(words, 1, 1), torch.tensor([keys - 1], device=device)
        angle = normal(self.width, std=3)
        self.cos, self.sin = angle.cos().to(b), angle.sin().to(b)

    def rotated(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat((-b, a), -1) * self.sin

    def logits(self, token):
        x = F.embedding(token, self.tokens)
        for first, second, q, k, v, out, gate, up, down, keys, values in self.weights:
            h = F.rms_norm(x, first.shape, first, 1e-5)
            query = self.rotated(F.linear(h, q).view(1, self.heads, 1, self.width))
            keys.index_copy_(2, self.place, self.rotated(F.linear(h, k).view(1, self.groups, 1, self.width)))
            values.index_copy_(2, self.place, F.linear(h, v).view(1, self.groups, 1, self.width))
            h = F.scaled_dot_product_attention(query, keys, values, enable_gqa=True)
            x = x + F.linear(h.view(1, 1, -1), out)
            h = F.rms_norm(x, second.shape, second, 1e-5)
            x = x + F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down)
        return F.linear(F.rms_norm(x, self.last.shape, self.last, 1e-5), self.head)

    def run(self, forward):
        def step():
            with torch.no_grad():
                logits = forward(self.token)
                self.token.copy_(logits.argmax(-1))
                return logits.amax()
        return step


def llama():
    net = Llama()
    return net.run(net.logits), lambda: net.run(torch.compile(net.logits))


def llama_captured():
    step = llama()[0]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()

    def replay():
        graph.replay()
        return loss
    return replay, None


def wait():
    if not on_cpu:
        torch.cuda.synchronize()


def run_steps(step, steps):
    start = time.perf_counter()
    for _ in range(steps):
        loss = step()
    wait()
    return (time.perf_counter() - start) * 1e3 / steps, loss.item()


def measure(name, step, trains):
    if not on_cpu:
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    first_ms, first = run_steps(step, 1)
    ms, last = run_steps(step, 1)
    ms, last = run_steps(step, 1)
    ms, last = run_steps(step, 1)
    steps = 1 if quick else int(min(20, max(1, seconds * 1e3 / (5 * ms))))
    rounds = []
    for _ in range(1 if quick else 5):
        ms, last = run_steps(step, steps)
        rounds.append(ms)
        if time.perf_counter() - began > 3 * seconds + 20:
            break
    peak = 0 if on_cpu else torch.cuda.max_memory_allocated() / 1e9
    note = " NOT FINITE" if last != last or abs(last) == float("inf") else " DOES NOT FALL" if trains and last >= first else ""
    print(f"{name:16} {statistics.median(rounds):9.3f} ms {-1:7} launches {peak:8.2f} GB  "
          f"loss {first:.4f} to {last:.4f}{note}  (first step {first_ms:.0f} ms)", flush=True)


models = (gpt2, resnet50, resnet50_last, llama, llama_captured, lstm, unet, vit)
wanted = [m for m in models if m.__name__ in arguments] or models
for model in wanted:
    if on_cpu and model is llama_captured:
        continue
    eager, compiled = model()
    measure(model.__name__, eager, not model.__name__.startswith("llama"))
    if compiling and compiled:
        try:
            measure(model.__name__ + "_compiled", compiled(), not model.__name__.startswith("llama"))
        except Exception as error:
            print(f"{model.__name__}_compiled {type(error).__name__}: {str(error)[:200]}", flush=True)
        torch._dynamo.reset()
    eager = compiled = None
    if not on_cpu:
        torch.cuda.empty_cache()
