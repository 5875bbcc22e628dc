"""Makes training.txt with PyTorch: steps of its optimizers, clipped gradients, and learning rates.

optimizer NAME DTYPE key=value ...      the parameters after each of 6 steps: two lines "TENSOR v v ..." a step
    Parameter t (sizes [5], [2,3]) starts as cos(0.9 k + t), its gradient at step s is sin(1 + 0.7 k + 1.3 s + 2.1 t)
    for element k; the second parameter has no gradient at steps 0 and 3.
clip norm_type max_norm total v v ...   all gradients of step 1, one after the other, after clipping
clip value max v v ...
rate NAME key=value ... : r r r ...     the learning rates at epochs 0, 1, 2, ...

usage: make_training.py FILE     (PyTorch 1.13)
"""
import math
import sys
import torch

STEPS = 6
SIZES = ([5], [2, 3])


def numel(size):
    return math.prod(size)


def parameter(t, dtype):
    v = [math.cos(0.9 * k + t) for k in range(numel(SIZES[t]))]
    return torch.tensor(v, dtype=torch.float64).reshape(SIZES[t]).to(dtype).requires_grad_()


def gradient(t, step, dtype):
    v = [math.sin(1 + 0.7 * k + 1.3 * step + 2.1 * t) for k in range(numel(SIZES[t]))]
    return torch.tensor(v, dtype=torch.float64).reshape(SIZES[t]).to(dtype)


def text(values):
    return " ".join("%.17g" % v for v in values)


def optimizer(out, name, make, dtype, **options):
    params = [parameter(t, dtype) for t in range(2)]
    o = make(params, **options)
    out.write("optimizer %s %s %s\n" % (name, str(dtype)[6:],
                                        " ".join("%s=%s" % (k, float(v)) for k, v in options.items())))
    for step in range(STEPS):
        for t, p in enumerate(params):
            p.grad = None if t == 1 and step in (0, 3) else gradient(t, step, dtype)
        o.step()
        for t, p in enumerate(params):
            out.write("%d %s\n" % (t, text(p.detach().double().flatten().tolist())))


def rates(out, name, lr, make, n, **options):
    p = torch.zeros(1, requires_grad=True)
    o = torch.optim.SGD([p], lr=lr)
    s = make(o, **options)
    values = []
    for _ in range(n):
        values.append(o.param_groups[0]["lr"])
        o.step()
        s.step()
    listed = {k: v for k, v in options.items() if k != "milestones"}
    out.write("rate %s lr=%s %s : %s\n" % (name, lr, " ".join(
        "%s=%s" % (k, float(v) if not isinstance(v, str) else v) for k, v in listed.items()), text(values)))


def main(path):
    with open(path, "w") as out:
        for dtype in (torch.float64, torch.float32):
            sgd, adam, adamw = torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW
            optimizer(out, "sgd", sgd, dtype, lr=0.1)
            optimizer(out, "sgd", sgd, dtype, lr=0.1, momentum=0.9)
            optimizer(out, "sgd", sgd, dtype, lr=0.05, momentum=0.8, dampening=0.3, weight_decay=0.1)
            optimizer(out, "sgd", sgd, dtype, lr=0.05, momentum=0.8, nesterov=True, weight_decay=0.01)
            optimizer(out, "sgd", sgd, dtype, lr=0.05, momentum=0.5, maximize=True, weight_decay=0.2)
            optimizer(out, "sgd", sgd, dtype, lr=0.05, weight_decay=0.2, maximize=True)
            for name, make in (("adam", adam), ("adamw", adamw)):
                optimizer(out, name, make, dtype, lr=0.01, weight_decay=0.0)
                optimizer(out, name, make, dtype, lr=0.1, weight_decay=0.3)
                optimizer(out, name, make, dtype, lr=0.1, weight_decay=0.05, eps=0.01, amsgrad=True)
                optimizer(out, name, make, dtype, lr=0.02, weight_decay=0.1, amsgrad=True, maximize=True)
                optimizer(out, name, lambda p, beta1, beta2, **o: make(p, betas=(beta1, beta2), **o), dtype,
                          lr=0.02, weight_decay=0.1, beta1=0.3, beta2=0.6, maximize=True)
        for norm_type in (2.0, 1.0, 3.0, math.inf, 0.5):
            for max_norm in (1.0, 100.0):
                params = [parameter(t, torch.float64) for t in range(2)]
                for t, p in enumerate(params):
                    p.grad = gradient(t, 1, torch.float64)
                total = torch.nn.utils.clip_grad_norm_(params, max_norm, norm_type)
                out.write("clip %s %s %s\n" % (norm_type, max_norm, text(
                    [float(total)] + [v for p in params for v in p.grad.flatten().tolist()])))
        params = [parameter(t, torch.float64) for t in range(2)]
        for t, p in enumerate(params):
            p.grad = gradient(t, 1, torch.float64)
        torch.nn.utils.clip_grad_value_(params, 0.4)
        out.write("clip value 0.4 %s\n" % text([v for p in params for v in p.grad.flatten().tolist()]))
        s = torch.optim.lr_scheduler
        rates(out, "step", 0.5, s.StepLR, 12, step_size=3, gamma=0.3)
        rates(out, "multi_step", 0.5, s.MultiStepLR, 12, milestones=[2, 5, 5, 9], gamma=0.3)
        rates(out, "exponential", 0.5, s.ExponentialLR, 12, gamma=0.8)
        rates(out, "linear", 0.5, s.LinearLR, 12, start_factor=0.25, end_factor=0.9, total_iters=7)
        rates(out, "cosine", 0.5, s.CosineAnnealingLR, 12, T_max=11, eta_min=0.01)
        rates(out, "cosine_restarts", 0.5, s.CosineAnnealingWarmRestarts, 25, T_0=3, T_mult=2, eta_min=0.02)
        rates(out, "cosine_restarts", 0.5, s.CosineAnnealingWarmRestarts, 12, T_0=4, T_mult=1, eta_min=0.0)
        one = dict(max_lr=0.8, total_steps=20, pct_start=0.3, div_factor=10.0, final_div_factor=100.0)
        for strategy in ("cos", "linear"):
            for three in (False, True):
                rates(out, "one_cycle", 0.1, s.OneCycleLR, 20, anneal_strategy=strategy, three_phase=three,
                      cycle_momentum=False, **one)


if __name__ == "__main__":
    main(sys.argv[1])
