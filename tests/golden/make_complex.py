#!/usr/bin/env python3
"""Writes complex.txt: PyTorch's results for the test cases of the operators, with complex tensors.

    OPD_LIST_CASES=1 ./test_golden > cases.txt       (each line: operator, tab, case)
    python3 make_complex.py cases.txt > complex.txt  (needs PyTorch; made with 2.15)

The inputs are the same as in tests/ops/test_complex.c: complex128, with parts that are multiples of 1/64.  A line is
operator | case | kinds | result ... | grad | gradient ...

- kinds has a letter for each floating-point tensor of the case: C is complex, R remains real.
- A result is its dtype, [sizes] and elements; a complex element is two numbers.
- The gradients are those of the floating-point inputs, in the same form, or "none".  The gradients of the results are
  numbers that the test uses, too.
- "!" stands for results if PyTorch refuses the call, and for gradients if PyTorch has none.

Lines that would be longer than SIZE are left out.
"""
import os
import sys
import warnings

import torch

sys.argv, argv = [sys.argv[0], os.devnull], sys.argv
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import make_samples as samples  # noqa: E402

warnings.filterwarnings('ignore')
SIZE = 4000                     # the most characters in a line
MORE = ('conv', '_conv', '_foreach_addc')        # PyTorch refuses some forms of these; this library does not
REAL = ('aten::complex', 'aten::polar')     # these make complex numbers from real numbers
EXTRA = (                       # cases of operators that take only complex numbers (they have no test cases), and:
    'aten::istft\t[5,9], 8, 2',
    'aten::istft\t[2,5,9], 8, 2, 6, length=14, normalized=True',
    'aten::istft\t[8,9], 8, 2, 8, [8]+, True, True, False, return_complex=True',
    'aten::istft\t[2,8,3], 8, onesided=False, length=20',
    'aten::istft\t[5,4], 8, 8, 8, center=False',
    'aten::istft\t[5,4], 8, 3, 7, [7]+, False, length=15',
    # matrices for which random real elements would not do, and sizes for which a function returns early
    'aten::linalg_cholesky\t[0,0]', 'aten::linalg_cholesky\t[0,3,3], upper=True',
    'aten::cholesky_solve\t[3,2], [3,3]', 'aten::cholesky_solve\t[3,2], [2,3,3], True',
    'aten::cholesky_inverse\t[0,0]',
    'aten::linalg_solve_triangular\t[3,3]g, [0,3], upper=True, left=False',
    'aten::triangular_solve\t[3,2], [3,3]g, True, True', 'aten::linalg_lu\t[0,3]', 'aten::linalg_lu\t[1,1]',
    'aten::linalg_solve\t[4,4], [4]', 'aten::linalg_solve\t[2,1,1], [2,1]', 'aten::linalg_solve\t[0,0], [0,2]',
    'aten::linalg_inv\t[1,1]', 'aten::linalg_inv\t[0,3,3]', 'aten::linalg_det\t[1,1]', 'aten::linalg_det\t[0,0]',
    'aten::linalg_slogdet\t[1,1]', 'aten::linalg_slogdet\t[2,0,0]', 'aten::logdet\t[3,3]', 'aten::logdet\t[2,2,2]',
    'aten::geqrf\t[4,3]', 'aten::geqrf\t[2,3,5]', 'aten::geqrf\t[1,1]', 'aten::geqrf\t[0,3]',
    'aten::linalg_householder_product\t[3,2], [1]', 'aten::linalg_householder_product\t[3,2], [0]',
    'aten::ormqr\t[3,3], [3], [3,2], True, True', 'aten::ormqr\t[4,2], [2], [3,4], False, True',
    'aten::ormqr\t[2,4], [2], [2,3]', 'aten::linalg_qr\t[1,1]', 'aten::linalg_qr\t[0,3]', 'aten::linalg_qr\t[3,0]',
    'aten::linalg_qr\t[2,3,2], \'r\'', 'aten::linalg_qr\t[4,2], \'complete\'', 'aten::linalg_qr\t[5,5]',
    'aten::linalg_eigvalsh\t[3,3]', 'aten::linalg_eigvalsh\t[2,4,4], \'U\'', 'aten::linalg_eigvalsh\t[0,0]',
    'aten::linalg_svdvals\t[4,4]', 'aten::linalg_svdvals\t[1,3]', 'aten::linalg_svdvals\t[0,3]',
    'aten::linalg_ldl_factor_ex\t[1,1]', 'aten::linalg_ldl_factor_ex\t[5,5]', 'aten::linalg_ldl_factor_ex\t[2,4,4]',
    'aten::linalg_ldl_factor_ex\t[5,5], hermitian=True', 'aten::linalg_ldl_factor_ex\t[2,4,4], hermitian=True',
    'aten::linalg_pinv.atol_rtol_float\t[3,3], hermitian=True', 'aten::linalg_pinv.atol_rtol_float\t[0,3]',
    'aten::linalg_matrix_rank.atol_rtol_float\t[3,3], hermitian=True', 'aten::linalg_cond\t[3,3], -1',
    'aten::linalg_cond.p_str\t[3,3], \'nuc\'', 'aten::linalg_cond\t[3,3]', 'aten::linalg_cond\t[0,2,2]',
    'aten::linalg_matrix_norm\t[3,3], -2', 'aten::linalg_matrix_norm.str_ord\t[2,4], \'nuc\'',
    'aten::linalg_matrix_exp\t[1,1]', 'aten::linalg_matrix_exp\t[4,4]', 'aten::linalg_matrix_power\t[3,3], -3',
    'aten::linalg_lstsq\t[4,3], [4,2], driver=\'gelsd\'', 'aten::linalg_lstsq\t[4,3], [4], driver=\'gels\'',
    'aten::linalg_lstsq\t[2,4], [2,3], driver=\'gels\'', 'aten::linalg_lstsq\t[2,4], [2,3]',
    'aten::linalg_lstsq\t[2,3,3], [2,3,1], driver=\'gelss\'', 'aten::linalg_lstsq\t[4,3], [4,2], 0.01, driver=\'gelsy\'',
    'aten::linalg_tensorsolve\t[2,3,6], [2,3]',
    # reductions, sequences, and functions that divide by a root
    'aten::scatter_reduce.two\t[3,4], 1, [3,4]i2, [3,4], \'prod\'',
    'aten::scatter_reduce.two\t[3,4], 1, [3,4]i2, [3,4], \'prod\', include_self=False',
    'aten::scatter_reduce.two\t[3,4], 0, [2,4]i3, [3,4], \'mean\', include_self=False',
    'aten::index_reduce\t[3,4], 1, [5]i3, [3,5], \'prod\'',
    'aten::index_reduce\t[3,4], 1, [5]i3, [3,5], \'mean\'',
    'aten::index_reduce\t[3,4], 1, [5]i3, [3,5], \'mean\', include_self=False',
    'aten::scatter.reduce\t[3,4], 1, [3,4]i2, [3,4], reduce=\'multiply\'',
    'aten::scatter.reduce\t[3,4], 1, [3,4]i2, [3,4], reduce=\'add\'',
    'aten::scatter.value_reduce\t[3,4], 1, [3,4]i2, 2.5, reduce=\'multiply\'',
    'aten::scatter.value_reduce\t[3,4], 1, [3,4]i2, 2.5, reduce=\'add\'',
    'aten::logspace.Tensor_Tensor\t[], [], 4, 2.0, dtype=10', 'aten::linspace.Tensor_Tensor\t[], [], 4, dtype=10',
    'aten::logspace.Tensor_Scalar\t[], 1.5, 1, 3.0, dtype=10', 'aten::rms_norm\t[2,3], (2,3), [2,3], 0.5',
    'aten::_foreach_powsum.Scalar\t{[2,3],[4]}, 3')
WRONG = ('as_strided_scatter', 'linalg_cholesky', 'linalg_cholesky_ex')  # PyTorch's gradients are wrong: of self
                                # where src was written; imaginary parts of diagonals that are read as real
LEFT_OUT = ('cholesky_inverse',) # PyTorch's result is wrong if the factor's diagonal is not real
SAME = ('linalg_solve_triangular',) # PyTorch silently converts B; this library refuses the call


def parts(tensor, seed):
    """Returns complex numbers with the given real parts, and with the imaginary parts that the test uses."""
    imaginary = [int((samples.case_random(seed + 500, i) * 4 - 2) * 64 // 1) / 64 for i in range(tensor.numel())]
    return torch.complex(tensor.double(), torch.tensor(imaginary, dtype=torch.float64).reshape(tensor.shape))


class Case(samples.Case):
    def __init__(self, text, kinds):
        super().__init__(text)
        self.kinds, self.inputs = kinds, []

    def tensor(self):
        tensor = super().tensor()
        if not tensor.is_floating_point():
            return tensor
        kind = self.kinds[len(self.inputs) % len(self.kinds)]
        tensor = parts(tensor, self.seed) if kind == 'C' else tensor.double()
        self.inputs.append(tensor)
        return tensor


def number(v):
    if isinstance(v, complex):
        return number(v.real) + ' ' + number(v.imag)
    return '%d' % v if isinstance(v, (int, bool)) else '%.9g' % v


def show(r):
    if isinstance(r, (list, tuple)):
        return [t for x in r for t in show(x)]
    if isinstance(r, torch.Tensor):
        return ['%s [%s]%s' % (str(r.dtype)[6:], ','.join(map(str, r.shape)), ''.join(' ' + number(v) for v in r.reshape(-1).tolist()))]
    if isinstance(r, (bool, int, float, complex)):
        return ['number [] ' + number(r)]
    return []


def tensors_of(r):
    if isinstance(r, (list, tuple)):
        return [t for x in r for t in tensors_of(x)]
    return [r] if isinstance(r, torch.Tensor) else []


def gradients(op, text, kinds):
    """Returns the gradients of the floating-point inputs, as strings."""
    case = Case(text, kinds)
    args, kwargs = case.arguments(op._schema)
    for tensor in case.inputs:
        tensor.requires_grad_()
    results = op(*args, **kwargs)
    outs = [t for t in tensors_of(results) if t.requires_grad]
    if not outs:
        return ['none']
    grads = []
    for k, out in enumerate(outs):
        real = torch.tensor([(samples.case_random(900 + k, i) * 128 // 1) / 64 - 1 for i in range(out.numel())],
                            dtype=torch.float64).reshape(out.shape)
        grads.append(parts(real, 900 + k).to(out.dtype) if out.is_complex() else real.to(out.dtype))
    found = torch.autograd.grad(outs, case.inputs, grads, allow_unused=True)
    return [t for g in found for t in (['none'] if g is None else show(g))]


def sample(name, text, kinds):
    base, overload = (name.split('::')[1].split('.') + ['default'])[:2]
    try:
        op = getattr(getattr(torch.ops.aten, base), overload)
    except AttributeError:
        return None
    try:
        case = Case(text, kinds)
        args, kwargs = case.arguments(op._schema)
    except Exception:
        return None
    if not case.inputs or (len(kinds) > 1 and len(case.inputs) < 2):
        return None
    if (base in LEFT_OUT and case.inputs[0].numel()) or (base in SAME and len(kinds) > 1):
        return None
    try:
        with torch.no_grad():
            results = show(op(*args, **kwargs))
    except Exception:
        return None if base.startswith(MORE) else ['!']
    if not results or sum(map(len, results)) > SIZE:
        return None
    try:
        grads = gradients(op, text, kinds)
    except Exception:
        grads = ['!']
    if sum(map(len, grads)) > SIZE or base in WRONG:
        grads = ['!']
    return results + ['grad'] + grads


def main():
    for line in list(open(argv[1])) + list(EXTRA):
        name, text = line.rstrip('\n').split('\t')
        if any(r in name for r in samples.RANDOM) or (name == 'aten::full' and 'True' in text):
            continue
        for kinds in ('C', 'CR', 'RC') + (('R',) if name in REAL else ()):
            found = sample(name, text, kinds)
            if found:
                print(' | '.join([name, text, kinds] + found))


if __name__ == '__main__':
    main()
