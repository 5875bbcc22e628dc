"""Writes scripts/*.pt, archives of torch.jit.save, and script_training.json: the losses of ten steps of training in
PyTorch, the sums of the buffers and parameters after them, and the loss of the first step under autocast.
    python3 tests/golden/make_script_training.py, then tests/golden/plain_paths.py on the archives"""
import json, os, warnings
import torch
import torch.nn as nn
import torch.nn.functional as F
from typing import List
warnings.filterwarnings("ignore")
here = os.path.dirname(os.path.abspath(__file__))

class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
                                      nn.MaxPool2d(2), nn.Conv2d(4, 8, 3, bias=False), nn.SiLU(),
                                      nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Linear(8, 3)
    def forward(self, x: torch.Tensor, t: torch.Tensor):
        y = self.head(self.features(x))
        return F.cross_entropy(y, (t[:, 0].abs() * 2.9).to(torch.int64), label_smoothing=0.1)

class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, batch_first=True)
        self.cell = nn.Linear(11, 5)
        self.head = nn.Linear(5, 3)
    def forward(self, x: torch.Tensor, t: torch.Tensor):
        y, (h, c) = self.lstm(x.flatten(1).view(x.size(0), -1, 4))
        s = torch.zeros(x.size(0), 5)
        states: List[torch.Tensor] = []
        for i in range(y.size(1)):
            if i % 2 == 0:
                continue
            s = torch.tanh(self.cell(torch.cat([y[:, i], s], 1)))
            states.append(s)
        return F.mse_loss(self.head(torch.stack(states).mean(0)), t)

class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, norm_first=True)
        self.head = nn.Linear(8, 3)
    def forward(self, x: torch.Tensor, t: torch.Tensor):
        return F.smooth_l1_loss(self.head(self.layer(x.squeeze(1)).mean(1)), t, beta=0.5)

class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.BatchNorm1d(10), nn.GELU(), nn.Linear(10, 3))
    def forward(self, x, t):
        return ((self.net(x) - t) ** 2).mean()

def batch(step, n=6):
    x = torch.sin(torch.arange(n * 64, dtype=torch.float64) * 0.37 + step).float().view(n, 1, 8, 8)
    t = torch.cos(torch.arange(n * 3, dtype=torch.float64) * 0.71 + step).float().view(n, 3)
    return x, t

os.makedirs(os.path.join(here, "scripts"), exist_ok=True)
out = []
for name, model, how, optimizer in [("conv", Conv, "script", "sgd"), ("lstm", Lstm, "script", "adam"),
                                    ("transformer", Transformer, "script", "adam"), ("mlp", Mlp, "trace", "sgd"),
                                    ("conv_traced", Conv, "trace", "sgd")]:
    torch.manual_seed(0)
    module = model().train()
    made = torch.jit.script(module) if how == "script" else torch.jit.trace(module, batch(0), check_trace=False)
    if how == "trace":
        torch.manual_seed(0)
        made.load_state_dict(model().state_dict())       # tracing ran the model, which changed buffers of batch norm
    path = os.path.join(here, "scripts", name + ".pt")
    torch.jit.save(made, path, _extra_files={})
    made = torch.jit.load(path)
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        low = float(made(*batch(0)))
    made = torch.jit.load(path)
    step = (torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9) if optimizer == "sgd"
            else torch.optim.Adam(made.parameters(), lr=0.01))
    losses = []
    for i in range(10):
        step.zero_grad()
        loss = made(*batch(i))
        loss.backward()
        step.step()
        losses.append(loss.item())
    made.eval()
    out.append({"name": name, "optimizer": optimizer, "losses": losses, "autocast": low,
                "buffers": {k: b.double().sum().item() for k, b in made.named_buffers()},
                "parameters": {k: p.double().sum().item() for k, p in made.named_parameters()}})
json.dump(out, open(os.path.join(here, "script_training.json"), "w"), indent=0)

class Numbers(nn.Module):
    """Has numbers that tracing turns into constants without dims, and tensors that must not be treated as numbers."""
    def forward(self, x):
        s, d = x.sum(), torch.tensor(2.0, dtype=torch.float64)
        return (s * -0.5, s + 1, s - 0.25, s / 3, x.long().sum() * 0.5, x.long().sum() * 3, x.half().sum() * 0.5,
                d * s, s * d, x * 0.5)

# Writes numbers.pt, and prints the dtypes of its results once it is loaded; test_scripts.c has them.
torch.jit.save(torch.jit.trace(Numbers(), torch.ones(3), check_trace=False), os.path.join(here, "scripts", "numbers.pt"))
loaded = torch.jit.load(os.path.join(here, "scripts", "numbers.pt"))
print([str(y.dtype) for y in [loaded(torch.ones(3)) for _ in range(3)][-1]])
