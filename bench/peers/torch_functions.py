"""PyTorch's side of bench/functions.c, which starts it and asks: one line in, one line out, on one thread.
    call RESULT NAME ARG ...   reads the arguments (files of numpy.save, or numbers), calls once and writes RESULT
    time COUNT                 calls so often again; answers with the thread's microseconds for one call
fft_x is torch.fft.x, special_x torch.special.x, another name torch's."""
import sys
import time

import numpy
import torch

torch.set_num_threads(1)
torch.set_grad_enabled(False)
function, args = None, []


def function_of(name):
    for prefix, module in (("fft_", torch.fft), ("special_", torch.special)):
        if name.startswith(prefix):
            return getattr(module, name[len(prefix):])
    return getattr(torch, name)


def argument_of(text):
    return torch.from_numpy(numpy.load(text)) if text.endswith(".npy") else int(text)


def measured(count):
    start = time.thread_time_ns()
    for _ in range(count):
        function(*args)
    return (time.thread_time_ns() - start) / count / 1e3


print("torch " + torch.__version__, flush=True)
for line in sys.stdin:
    words = line.split()
    try:
        if words[0] == "call":
            function, args = function_of(words[2]), [argument_of(word) for word in words[3:]]
            numpy.save(words[1], function(*args).resolve_conj().numpy())
            print("ok", flush=True)
        else:
            print(measured(int(words[1])), flush=True)
    except Exception as error:
        print("failed: " + str(error).split("\n")[0], flush=True)
