"""Measures all-reduce of torch.distributed's gloo backend for bench/collectives.c, with ranks that this program starts.
usage: gloo_collectives.py RANKS COUNT...
For each COUNT, prints "COUNT MICROSECONDS SUM": the smallest of many times, and the sum of the elements of the result."""
import os
import subprocess
import sys
import tempfile
import time


def work(rank, ranks, path, counts):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method='file://' + path, rank=rank, world_size=ranks)
    for count in counts:
        index = torch.arange(count)
        start = (rank + (index % 7) * 0.5).to(torch.float32)
        best = 1e9
        for _ in range(20 if count > 1000000 else 200):
            x = start.clone()
            dist.barrier()
            begun = time.perf_counter()
            dist.all_reduce(x)
            best = min(best, time.perf_counter() - begun)
        if rank == 0:
            print(count, '%.3f' % (best * 1e6), '%.1f' % x.double().sum().item(), flush=True)
    dist.destroy_process_group()


if sys.argv[1] == '--rank':
    work(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4], [int(a) for a in sys.argv[5:]])
else:
    with tempfile.TemporaryDirectory() as folder:
        ranks = int(sys.argv[1])
        rest = [sys.argv[1], os.path.join(folder, 'meet')] + sys.argv[2:]
        started = [subprocess.Popen([sys.executable, __file__, '--rank', str(rank)] + rest) for rank in range(ranks)]
        sys.exit(max([process.wait() for process in started]))
