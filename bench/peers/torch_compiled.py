"""PyTorch's side of bench/compiled.c, which starts it and says on its standard input what to do, a line at a time:
    model PATH    loads PATH.pt2, compiles it by torch.compile and runs it on PATH.npz; answers "ok" or "error TEXT"
    time COUNT    answers the microseconds that one of so many calls takes
    python3 bench/peers/torch_compiled.py"""
import sys
import time

try:
    import numpy
    import torch
except ImportError:
    sys.exit("no PyTorch")
torch.set_num_threads(1)
torch.set_grad_enabled(False)


def say(text):
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def inputs_of(arrays):
    inputs = []
    while True:
        name = "in%d" % len(inputs)
        if name in arrays.files:
            inputs.append(torch.from_numpy(arrays[name]))
        elif name + ".bf16" in arrays.files:
            inputs.append(torch.from_numpy(arrays[name + ".bf16"]).view(torch.bfloat16))
        else:
            return inputs


def compiled(path):
    torch._dynamo.reset()
    module = torch.export.load(path + ".pt2").module()
    inputs = inputs_of(numpy.load(path + ".npz"))
    function = torch.compile(module)
    function(*inputs)
    return lambda: function(*inputs)


say("PyTorch " + torch.__version__)
run = None
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "model":
        try:
            run = compiled(rest)
            run()
            say("ok")
        except Exception as error:
            say("error " + (str(error).splitlines() or [""])[0][:200])
    elif word == "time":
        calls = range(int(rest))
        start = time.thread_time_ns()
        for _ in calls:
            run()
        say("%.4f" % ((time.thread_time_ns() - start) / 1000 / len(calls)))
