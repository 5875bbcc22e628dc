"""Measures PyTorch for bench/compiled.c.  bench/compiled.c starts this program, and writes one request per line to its
standard input:
    model PATH    loads PATH.pt2, compiles it with torch.compile and with AOTInductor, and runs it with the inputs in
                  PATH.npz.  The answer is "ok aoti", or "ok" if AOTInductor failed, or "error TEXT".
    time COUNT    calls the model of torch.compile COUNT times.  The answer is the time of one call in microseconds.
    aoti COUNT    the same for the package of AOTInductor
    python3 bench/peers/torch_compiled.py"""
import os
import sys
import tempfile
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


def packaged(path):
    inputs = inputs_of(numpy.load(path + ".npz"))
    with tempfile.TemporaryDirectory() as folder:
        package = os.path.join(folder, "model.pt2")
        torch._inductor.aoti_compile_and_package(torch.export.load(path + ".pt2"), package_path=package)
        function = torch._inductor.aoti_load_package(package)
    function(*inputs)
    return lambda: function(*inputs)


def timed(run, count):
    calls = range(count)
    start = time.thread_time_ns()
    for _ in calls:
        run()
    return (time.thread_time_ns() - start) / 1000 / count


answers = os.dup(1)
os.dup2(2, 1)                                     # output of compilers must not be taken for an answer
sys.stdout = os.fdopen(answers, "w")
say("PyTorch " + torch.__version__)
run = package = None
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word == "model":
        try:
            run = compiled(rest)
            run()
            package = None
            try:
                package = packaged(rest)
            except Exception:
                pass
            say("ok aoti" if package else "ok")
        except Exception as error:
            say("error " + (str(error).splitlines() or [""])[0][:200])
    elif word in ("time", "aoti"):
        say("%.4f" % timed(run if word == "time" else package, int(rest)))
