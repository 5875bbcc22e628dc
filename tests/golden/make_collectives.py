"""Writes collectives.txt: the results of collectives in torch.distributed's gloo backend with three ranks, for every
dtype and reduction that gloo supports.  tests/mpi_ranks.c --golden compares with them.

A line: COLLECTIVE REDUCTION DTYPE RANK NUMBER...  (a complex number as two numbers).  For complex numbers, gloo
computes products, minima and maxima of the real and the imaginary parts separately; these reductions are left out.

usage: python make_collectives.py"""
import os
import subprocess
import sys
import tempfile

RANKS, COUNT = 3, 6
DTYPES = ['float32', 'float64', 'float16', 'bfloat16', 'int8', 'uint8', 'int16', 'int32', 'int64', 'bool', 'complex64',
          'complex128']
REDUCTIONS = ['sum', 'avg', 'product', 'min', 'max', 'band', 'bor', 'bxor']


def start(torch, rank, dtype):
    """Returns small numbers that are exact in every dtype, as are their sums and products."""
    real = [(3 * rank + i) % 5 + 1 for i in range(COUNT)]
    if dtype == 'bool':
        return torch.tensor([r % 2 == 0 for r in real])
    if dtype.startswith('complex'):
        return torch.tensor([complex(r, i - rank) for i, r in enumerate(real)], dtype=getattr(torch, dtype))
    return torch.tensor(real, dtype=getattr(torch, dtype))


def work(rank, path, out):
    import torch
    import torch.distributed as dist
    dist.init_process_group('gloo', init_method='file://' + path, rank=rank, world_size=RANKS)
    ops, world = torch.ops._c10d_functional, dist.group.WORLD.group_name
    calls = [('all_reduce', r, lambda x, r: ops.all_reduce(x, r, world)) for r in REDUCTIONS]
    calls += [('reduce_scatter', r, lambda x, r: ops.reduce_scatter_tensor(x, r, RANKS, world)) for r in REDUCTIONS]
    calls += [('all_gather', '-', lambda x, r: ops.all_gather_into_tensor(x, RANKS, world)),
              ('broadcast', '-', lambda x, r: ops.broadcast(x, 1, world)),
              ('all_to_all', '-', lambda x, r: ops.all_to_all_single(x, [2] * RANKS, [2] * RANKS, world))]
    with open('%s.%d' % (out, rank), 'w') as file:
        for dtype in DTYPES:
            for name, reduction, call in calls:
                if dtype.startswith('complex') and reduction not in ('sum', 'avg', '-'):
                    continue
                try:
                    y = ops.wait_tensor(call(start(torch, rank, dtype), reduction))
                except (RuntimeError, ValueError, TypeError):
                    continue                      # gloo does not support this call
                y = torch.view_as_real(y) if y.is_complex() else y
                numbers = ' '.join('%g' % v for v in y.double().flatten().tolist())
                file.write('%s %s %s %d %s\n' % (name, reduction, dtype, rank, numbers))
    dist.destroy_process_group()


if len(sys.argv) > 2:
    work(int(sys.argv[1]), sys.argv[2], sys.argv[3])
else:
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, 'out')
        started = [subprocess.Popen([sys.executable, __file__, str(rank), os.path.join(folder, 'meet'), out])
                   for rank in range(RANKS)]
        bad = max(process.wait() for process in started)
        lines = [line for rank in range(RANKS) for line in open('%s.%d' % (out, rank))]
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'collectives.txt'), 'w') as file:
            file.writelines(lines)
        sys.exit(bad)
