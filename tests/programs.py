#!/usr/bin/env python3
"""Checks what test_programs.c cannot check: whether PyTorch loads the exported programs that we write.

    python3 programs.py FILE.pt2 FILE.npz      loads the program, runs it on in0, ..., and compares with out0, ...
    python3 programs.py --each FOLDER          does this for each NAME.pt2 or NAME.pt, and NAME.npz, of a folder

A file .pt is an archive of torch.jit.save.

Prints "checked: ..." with exit status 0.  If a package is missing or too old, prints its name with exit status 77.
"""
import os
import sys

if set(sys.argv[1:]) & {'--help', '-h'}:                  # needs no package
    print(__doc__.strip())
    sys.exit(0)
if len(sys.argv) != 3 or (sys.argv[1][:1] == '-' and sys.argv[1] != '--each'):
    sys.exit(__doc__)
try:
    import numpy
    import torch
except ImportError as e:
    print(e)
    sys.exit(77)
if tuple(int(n) for n in torch.__version__.split('.')[:2]) < (2, 8):
    print('torch %s is too old' % torch.__version__)
    sys.exit(77)


def main(path, arrays):
    arrays = numpy.load(arrays)
    module = torch.jit.load(path) if path.endswith('.pt') else torch.export.load(path).module()
    inputs = [torch.from_numpy(arrays['in%d' % i]) for i in range(sum(n.startswith('in') for n in arrays.files))]
    outputs = module(*inputs)
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    for i, output in enumerate(outputs):
        want = torch.from_numpy(arrays['out%d' % i])
        assert output.dtype == want.dtype and output.shape == want.shape, i
        torch.testing.assert_close(output.detach(), want, rtol=1e-4, atol=1e-5)
    loss = sum(output.float().sum() for output in outputs)
    if loss.requires_grad:
        loss.backward()
    assert all(p.grad is not None for p in module.parameters())
    print('checked: %d outputs, %d parameters' % (len(outputs), len(list(module.parameters()))))


def each(folder):
    names = sorted(n for n in os.listdir(folder) if n.endswith(('.pt2', '.pt')))
    bad = []
    for name in names:
        try:
            main(os.path.join(folder, name), os.path.join(folder, name[:name.rindex('.')] + '.npz'))
        except Exception as e:                             # goes on with the other files
            bad.append('%s: %s' % (name, ' '.join(str(e).split())[:300]))
    if bad:
        sys.exit('; '.join(bad))
    print('checked: %d programs' % len(names))


if __name__ == '__main__':
    each(sys.argv[2]) if sys.argv[1] == '--each' else main(*sys.argv[1:])
