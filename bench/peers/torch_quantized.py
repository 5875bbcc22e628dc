"""Measures PyTorch with the programs of quantized_models.py: as they were exported, and by torch.compile with frozen
weights, which computes layers of 8-bit codes with oneDNN in integers.  Prints a row for each: the processor time of one
run in microseconds (the median of 15 rounds, one thread).  A time includes a call from Python.
    python3 bench/peers/torch_quantized.py FOLDER [NAME ...]"""
import glob
import os
import statistics
import sys
import time
import warnings

import numpy
import torch
import torchao.quantization.pt2e.quantizer.x86_inductor_quantizer        # registers operators and patterns

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.set_grad_enabled(False)


def timed(run):
    rounds = []
    run()
    for _ in range(15):
        start, count = time.thread_time_ns(), 0
        while time.thread_time_ns() - start < 20000000:
            run()
            count += 1
        rounds.append((time.thread_time_ns() - start) / 1000 / count)
    return statistics.median(rounds)


def main(folder, names):
    torch._inductor.config.freezing = True
    for name in names or sorted(os.path.basename(path)[:-4] for path in glob.glob(os.path.join(folder, "*.pt2"))):
        torch._dynamo.reset()
        module = torch.export.load(os.path.join(folder, name + ".pt2")).module()
        x = torch.from_numpy(numpy.load(os.path.join(folder, name + ".npz"))["in0"])
        plain, compiled = timed(lambda: module(x)), torch.compile(module)
        print("%-16s %10.1f %10.1f" % (name, plain, timed(lambda: compiled(x))), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
