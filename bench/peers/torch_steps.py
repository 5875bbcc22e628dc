"""Writes the models of bench/steps.c, and measures their training steps in PyTorch.
    python3 bench/peers/torch_steps.py FOLDER     writes NAME.pt2 and NAME.npz for each model, unless they are there
    python3 bench/peers/torch_steps.py --threads N
                                                  measures; bench/steps.c starts this, and writes one request per line to
                                                  its standard input:
    model PATH    makes the model of PATH.pt2, with the tensors of the file.  The answer is "ok" or "error TEXT".
    step COUNT    makes COUNT steps of SGD.  The answer is the time of one step in microseconds, and the last loss.
    run COUNT     computes the loss COUNT times, without gradients.  The answer has the same form.
    memory        answers how much more memory the process has used since the model was made, at most, in KiB
With one thread, a time is processor time; with more threads, it is time on the clock.
A model returns its loss.  It has random weights, and is in training mode."""
import os
import sys
import time
import warnings

try:
    import numpy
    import torch
    from torch import nn
    from torch.nn import functional as F
except ImportError:
    sys.exit("no PyTorch")
warnings.filterwarnings("ignore")
torch.set_num_threads(1)


class Layer(nn.Module):
    """A layer of GPT-2: causal attention and an MLP, each after its norm."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.norm1(x)).split(width, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, tokens, width))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Gpt(nn.Module):
    """A network with GPT-2's layers.  The weight of its head is the table of words."""

    def __init__(self, layers, width, heads, vocabulary, tokens):
        super().__init__()
        self.words, self.places = nn.Embedding(vocabulary, width), nn.Embedding(tokens, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for part in self.parameters():
            if part.dim() > 1:
                nn.init.normal_(part, 0, 0.02)

    def forward(self, ids, targets):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


class Classifier(nn.Module):
    """A network, and the loss of its classes."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x, targets):
        return F.cross_entropy(self.network(x), targets)


class Encoder(nn.Module):
    """PyTorch's own encoder of a transformer, without dropout, and a head of ten classes."""

    def __init__(self, layers, width, heads):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        return self.head(self.encoder(x).mean(1))


def gpt2_124m():
    return Gpt(12, 768, 12, 50257, 1024), [torch.randint(0, 50257, (4, 64)), torch.randint(0, 50257, (4, 64))]


def gpt_small():
    return Gpt(4, 256, 8, 1000, 128), [torch.randint(0, 1000, (8, 128)), torch.randint(0, 1000, (8, 128))]


def transformer():
    return Classifier(Encoder(4, 256, 8)), [torch.randn(8, 64, 256), torch.randint(0, 10, (8,))]


def resnet18():
    import torchvision
    return Classifier(torchvision.models.resnet18()), [torch.randn(4, 3, 224, 224), torch.randint(0, 1000, (4,))]


def mobilenet_v3():
    import torchvision
    network = torchvision.models.mobilenet_v3_small()
    for part in network.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    return Classifier(network), [torch.randn(4, 3, 224, 224), torch.randint(0, 1000, (4,))]


def mlp():
    network = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return Classifier(network), [torch.randn(128, 784), torch.randint(0, 10, (128,))]


def lstm():
    class Lstm(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.head = nn.LSTM(128, 256, 2, batch_first=True), nn.Linear(256, 10)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])
    return Classifier(Lstm()), [torch.randn(16, 50, 128), torch.randint(0, 10, (16,))]


MODELS = [mlp, lstm, transformer, gpt_small, gpt2_124m, mobilenet_v3, resnet18]


def made(name):
    torch.manual_seed(0)
    model, inputs = next(make for make in MODELS if make.__name__ == name)()
    return model.train(), inputs


def write(folder):
    os.makedirs(folder, exist_ok=True)
    for make in MODELS:
        path = os.path.join(folder, make.__name__)
        if os.path.exists(path + ".pt2"):
            continue
        try:
            model, inputs = made(make.__name__)
        except ImportError as error:
            print("skipped %s: %s" % (make.__name__, error))
            continue
        program = torch.export.export(model, tuple(inputs))
        numpy.savez(path + ".npz", **{"in%d" % i: x.numpy() for i, x in enumerate(inputs)})
        torch.export.save(program, path + ".pt2")
        print(make.__name__, flush=True)


def resident(field):
    """Returns a number of /proc/self/status in KiB: "VmRSS" is the memory in use, "VmHWM" the most so far."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))


class Measured:
    def __init__(self, path):
        self.before = resident("VmRSS")
        self.model, _ = made(os.path.basename(path))
        self.model.load_state_dict(torch.export.load(path + ".pt2").state_dict)
        arrays = numpy.load(path + ".npz")
        self.inputs = [torch.from_numpy(arrays["in%d" % i]) for i in range(len(arrays.files))]
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)

    def step(self):
        self.optimizer.zero_grad()
        loss = self.model(*self.inputs)
        loss.backward()
        self.optimizer.step()
        return loss

    def run(self):
        with torch.no_grad():
            return self.model(*self.inputs)


def now():
    return time.perf_counter() if torch.get_num_threads() > 1 else time.process_time()


def serve():
    model = None
    for line in sys.stdin:
        word, _, rest = line.strip().partition(" ")
        try:
            if word == "model":
                model = None
                model = Measured(rest)
                answer = "ok"
            elif word == "memory":
                answer = "%d" % (resident("VmHWM") - model.before)
            else:
                start = now()
                for _ in range(int(rest)):
                    loss = getattr(model, word)()
                answer = "%.3f %.9g" % ((now() - start) * 1e6 / int(rest), loss.item())
        except Exception as error:
            answer = "error " + (str(error).splitlines() or [repr(error)])[0][:200]
        print(answer, flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--threads"]:
        torch.set_num_threads(int(sys.argv[2]))
        print("PyTorch " + torch.__version__, flush=True)
        serve()
    elif len(sys.argv) == 2 and not sys.argv[1].startswith("-"):
        write(sys.argv[1])
    else:
        sys.exit(__doc__)
