"""Runs PyTorch for bench/rows.h.  The benchmark starts this program, and writes one request per line to its standard
input:
    tensor NAME DTYPE SIZE,SIZE BYTES   an argument of the next row.  Its bytes follow the line.
    row grad|plain EXPRESSION           makes a function of these tensors from the expression.  The answer is "ok" or
                                        "error TEXT".
    result                              calls the function.  The answer is "SIZE,SIZE", and the elements as float64
                                        (complex elements as two numbers).  With grad, it is the first gradient.
    time COUNT                          calls the function for 3 ms, and then COUNT times.  The answer is the time of
                                        one of the COUNT calls in microseconds (processor time; wall-clock time if N > 1).
    python3 bench/peers/torch_rows.py [--threads N]"""
import math
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit("no PyTorch")
threads = int(sys.argv[sys.argv.index("--threads") + 1]) if "--threads" in sys.argv else 1
torch.set_num_threads(threads)
torch.manual_seed(0)
WARM_NS = 3000000                          # see BENCH_WARM_US in bench/rows.h
clock = time.thread_time_ns if threads == 1 else time.perf_counter_ns
read, write = sys.stdin.buffer, sys.stdout.buffer


def say(text):
    write.write(text.encode() + b"\n")
    write.flush()


def sizes_of(text):
    return [int(size) for size in text.split(",") if size]


def function_of(expression, args, grad):
    forward = eval("lambda %s: %s" % (", ".join(args), expression), {"torch": torch, "F": F, "math": math})
    tensors = list(args.values())
    if not grad:
        return lambda: forward(*tensors)
    wanted = [t.requires_grad_() for t in tensors if t.is_floating_point()]
    made = forward(*tensors)
    gradient = torch.arange(made.numel(), dtype=torch.float64).cos().to(made.dtype).reshape(made.shape)
    return lambda: torch.autograd.grad(forward(*tensors), wanted, gradient)[0]


say("PyTorch " + torch.__version__)
args, run = {}, None
for line in read:
    word, _, rest = line.decode().rstrip("\n").partition(" ")
    if word == "tensor":
        name, dtype, sizes, count = rest.split(" ")
        bytes_ = bytearray(read.read(int(count)))
        args[name] = torch.frombuffer(bytes_, dtype=getattr(torch, dtype)).reshape(sizes_of(sizes)).clone()
    elif word == "row":
        kind, _, expression = rest.partition(" ")
        torch._C._set_grad_enabled(kind == "grad")
        try:
            run = function_of(expression, args, kind == "grad")
            run()
            say("ok")
        except Exception as error:
            say("error " + str(error).splitlines()[0])
        args = {}
    elif word == "result":
        result = run().detach().resolve_conj()
        result = (torch.view_as_real(result) if result.is_complex() else result).to(torch.float64).contiguous()
        say(",".join(str(size) for size in result.shape))
        write.write(result.numpy().tobytes())
        write.flush()
    elif word == "time":
        calls = range(int(rest))
        start = clock()
        run()
        while clock() - start < WARM_NS:
            run()
        start = clock()
        for _ in calls:
            run()
        say("%.4f" % ((clock() - start) / 1000 / len(calls)))
