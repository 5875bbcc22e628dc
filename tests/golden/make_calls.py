#!/usr/bin/env python3
"""Writes calls.txt: calls of operators, and PyTorch's results or error messages.

usage: make_calls.py (with PyTorch 2)

calls.txt has two lines for each call.  The first has statements, separated by "; "; the last statement is the result.
The second is "=" and the elements of the result, or "!" and a part of the error message.  A row below has the
statements.  One of these marks and a text may follow them:
  "  ## " the error message of this library, if its wording differs from PyTorch's; PyTorch must refuse the call, too
  "  #! " the error message of this library, if PyTorch is not run: it crashes or gives a meaningless result, or the
          operator belongs to torchvision
  "  #= " another call that must give the same result
"""
import os
import warnings

import torch

from plain_names import plain_names

ROWS = r'''
torch.lu_unpack(torch.ones([2, 2]), torch.tensor([3, 1], dtype=torch.int32))[0]
torch.lu_unpack(torch.ones([2, 2]), torch.tensor([0, 1], dtype=torch.int32))[0]
torch.lu_unpack(torch.ones([2, 2]), torch.tensor([1, 2, 3], dtype=torch.int32))[0]
torch.lu_unpack(torch.ones([3, 2, 2]), torch.ones([2, 2], dtype=torch.int32))[0]
torch.lu_unpack(torch.ones([2, 2]), torch.tensor([1, 2]))[0]
torch.linalg.lu_solve(torch.ones([2, 2]), torch.tensor([0, 1], dtype=torch.int32), torch.ones([2, 1]))
torch.linalg.lu_solve(torch.ones([2, 2]), torch.tensor([1], dtype=torch.int32), torch.ones([2, 1]))
torch.linalg.lu_solve(torch.ones([2, 2]), torch.tensor([3, 1], dtype=torch.int32), torch.ones([2, 1]))
x = torch.eye(2).requires_grad_(); y = torch.linalg.ldl_factor_ex(x)[0].sum(); y.backward(); return y  ## the derivative for 'linalg_ldl_factor_ex' is not implemented
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones([3, 1]))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2, 2], dtype=torch.int32), torch.ones([2, 1]))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1., 2.]), torch.ones([2, 1]))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones([2, 1], dtype=torch.float64))
torch.linalg.ldl_solve(torch.ones([2, 3]), torch.tensor([1, 2], dtype=torch.int32), torch.ones([2, 1]))
torch.linalg.ldl_solve(torch.eye(2), torch.tensor([1, 2], dtype=torch.int32), torch.ones([2]))  ## The input tensor B must have at least 2 dimensions
b = torch.tensor([[1.], [2.], [4.]], dtype=torch.float64).requires_grad_(); f, p = torch.linalg.ldl_factor(torch.tensor([[4., 1., 2.], [1., 3., 0.5], [2., 0.5, 5.]], dtype=torch.float64)); y = torch.linalg.ldl_solve(f, p, b); (y * y).sum().backward(); return b.grad  #= b = torch.tensor([[1.], [2.], [4.]], dtype=torch.float64).requires_grad_(); y = torch.linalg.solve(torch.tensor([[4., 1., 2.], [1., 3., 0.5], [2., 0.5, 5.]], dtype=torch.float64), b); (y * y).sum().backward(); return b.grad
b = torch.tensor([[1. + 2j], [2. - 1j]], dtype=torch.complex128).requires_grad_(); f, p = torch.linalg.ldl_factor(torch.tensor([[4. + 0j, 1. + 1j], [1. - 1j, 3. + 0j]], dtype=torch.complex128), hermitian=True); y = torch.linalg.ldl_solve(f, p, b, hermitian=True); (y * y.conj()).real.sum().backward(); return torch.view_as_real(torch.ops.aten.detach(b.grad))  #= b = torch.tensor([[1. + 2j], [2. - 1j]], dtype=torch.complex128).requires_grad_(); y = torch.linalg.solve(torch.tensor([[4. + 0j, 1. + 1j], [1. - 1j, 3. + 0j]], dtype=torch.complex128), b); (y * y.conj()).real.sum().backward(); return torch.view_as_real(torch.ops.aten.detach(b.grad))
b = torch.tensor([[1. + 2j], [2. - 1j]], dtype=torch.complex128).requires_grad_(); f, p = torch.linalg.ldl_factor(torch.tensor([[4. + 0j, 1. + 1j], [1. + 1j, 3. + 0j]], dtype=torch.complex128)); y = torch.linalg.ldl_solve(f, p, b); (y * y.conj()).real.sum().backward(); return torch.view_as_real(torch.ops.aten.detach(b.grad))  #= b = torch.tensor([[1. + 2j], [2. - 1j]], dtype=torch.complex128).requires_grad_(); y = torch.linalg.solve(torch.tensor([[4. + 0j, 1. + 1j], [1. + 1j, 3. + 0j]], dtype=torch.complex128), b); (y * y.conj()).real.sum().backward(); return torch.view_as_real(torch.ops.aten.detach(b.grad))
x = torch.ones([2, 2]).requires_grad_(); y = torch.geqrf(x)[0].sum(); y.backward(); return y
x = torch.ones([2, 2]).requires_grad_(); y = torch.linalg.qr(x, 'r')[1].sum(); y.backward(); return y
x = torch.ones([3, 2]).requires_grad_(); y = torch.linalg.qr(x, 'complete')[1].sum(); y.backward(); return y
torch.linalg.solve(torch.ones([2, 2]), torch.ones([3]))  ## Incompatible shapes of A and B for the equation AX = B (2x2 and
torch.linalg.vector_norm(torch.ones([0, 3]), float('inf'), [0])  ## linalg.vector_norm cannot compute the inf norm on an empty tensor
torch.linalg.vector_norm(torch.ones([0, 3]), float('inf'), [1])
torch.linalg.vector_norm(torch.ones([0, 3]), -1.0)
torch.linalg.vector_norm(torch.ones([3]), 2, dtype=torch.complex64)
torch.linalg.vector_norm(torch.ones([3], dtype=torch.complex64), 2, dtype=torch.float32)
torch.ops.aten.nll_loss(torch.ones([3]), torch.tensor([1, 2]))
torch.ops.aten.nll_loss_backward(torch.ones([]), torch.ones([2, 3]), torch.tensor([1, 2]), None, 1, -100, torch.ones([2]))  ## expected total_weight to be a single element tensor, got: 2 elements
torch.ops.aten.nll_loss_backward(torch.ones([2]), torch.ones([2, 3]), torch.tensor([1, 2]), None, 1, -100, torch.ones([]))
torch.ops.aten.nll_loss_backward(torch.ones([3]), torch.ones([2, 3]), torch.tensor([1, 2]), None, 0, -100, torch.ones([]))  ## Expected a grad_output tensor of target's size, but got: [3]
torch.ops.aten.poisson_nll_loss(torch.tensor([0.5, 1., 2., -1.]), torch.tensor([0.5, 1., 3., 7.]), True, True, 1e-8, 0)
torch.ops.aten.poisson_nll_loss(torch.tensor([0.5, 1., 2., 4.]), torch.tensor([0., 1.5, 3., 7.]), False, True, 1e-8, 1)
torch.ops.aten.multilabel_margin_loss(torch.tensor(0.5), torch.tensor(0))
torch.ops.aten.multilabel_margin_loss(torch.tensor(0.5), torch.tensor(-1))
torch.ops.aten.multilabel_margin_loss(torch.ones([2, 3]), torch.zeros([2, 2], dtype=torch.int64))  ## expected a vector or matrix that is not empty and an int64 target with the same sizes, but got [2, 3] and Long[2, 2]
torch.ops.aten.rrelu_with_noise(torch.ones([3]).requires_grad_(), torch.ones([3]), out=torch.ones([3]))
torch.ops.aten.leaky_relu_backward(torch.ones([2]), torch.ones([2]), -0.5, True)
torch.ops.aten.elu_backward(torch.ones([2]), -0.5, 1.0, 1.0, True, torch.ones([2]))
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4], [2, 2], 0, 1)
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4, 4], [2], 0, 1)
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4, 5], [2, 2], 0, 1)  ## Expected input_lengths to have value at most 4, but got value 5
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 3], 0, 1)  ## Expected target_lengths to have value at most 2, but got value 3
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([1, 2, 1, 2]), [4, 4], [2, 1], 0, 1)  ## Expected tensor to have size 3 at dimension 0, but got size 4 for argument #2 'targets'
torch.ctc_loss(torch.zeros([4, 2, 3], dtype=torch.int64), torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 2], 0, 1)  ## expected log_probs [T, N, C] of float32 or float64, but got 3 dimensions of Long
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1., 2.], [1., 2.]]), [4, 4], [2, 2], 0, 1)
torch.ops.aten._ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1., 2.], [1., 2.]]), [4, 4], [2, 2], 0)[0]  #! expected targets of dtype int32 or int64, but got Float
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[[1], [2]], [[1], [2]]]), [4, 4], [2, 2], 0, 1)  ## expected targets [2, S] or [sum of target_lengths], but got [2, 2, 1]
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 2], 3, 1)
torch.ctc_loss(torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 2], -1, 1)
torch.ops.aten._ctc_loss_backward(torch.ones([2]), torch.zeros([4, 2, 3]), torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 2], torch.ones([2]), torch.ones([2, 4, 3]), 0)  #! grad, neg_log_likelihood and log_alpha must have the sizes of the results of _ctc_loss
x = torch.zeros([4, 2, 3]).requires_grad_(); y = torch.ctc_loss(x, torch.tensor([[1, 2], [1, 2]]), [4, 4], [2, 2], 0, 1); g = torch.autograd.grad([y], [x], create_graph=True)[0]; assert g is not None; g.sum().backward(); return y  ## the derivative for '_ctc_loss_backward' is not implemented
torch.ops.aten._ctc_loss(torch.log_softmax(torch.arange(24).view(4, 2, 3) * 0.25, 2), torch.tensor([[1, 2], [2, 1]]), torch.tensor([4, 3]), torch.tensor([2, 1]))[0]
x = torch.log_softmax(torch.arange(24).view(4, 2, 3) * 0.25, 2); t = torch.tensor([[1, 2], [2, 1]]); a, b = torch.ops.aten._ctc_loss(x, t, torch.tensor([4, 3]), torch.tensor([2, 1])); return torch.ops.aten._ctc_loss_backward(torch.tensor([1., 2.]), x, t, torch.tensor([4, 3]), torch.tensor([2, 1]), a, b, 0)
torch.linspace(0, 1, 3, dtype=torch.complex32)
torch.logspace(0, 1, 3, dtype=torch.complex32)
torch.ops.aten.value_selecting_reduction_backward(torch.tensor([1., 2.]), 1, torch.tensor([2, 0]), [2, 3], False)
torch.ops.aten.value_selecting_reduction_backward(torch.tensor([[1., 2., 3.]]), 0, torch.tensor([[1, 0, 1]]), [2, 3], True)
torch.fake_quantize_per_tensor_affine(torch.ones([3]), 0.1, 0, 10, 5)  ## `quant_min` should be less than or equal to `quant_max`.
torch.fake_quantize_per_tensor_affine(torch.ones([3]), 0.1, 20, 0, 10)
torch.fake_quantize_per_tensor_affine(torch.ones([3], dtype=torch.int64), 0.1, 0, 0, 10)  ## "fake_quantize" not implemented for 'Long'
torch.fake_quantize_per_tensor_affine(torch.ones([3]), torch.ones([2]), torch.zeros([1], dtype=torch.int32), 0, 10)  ## scale, zero_point and fake_quant_enabled must have one element each
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2], dtype=torch.float64), torch.zeros([2], dtype=torch.int32), 1, 0, 10)
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2]), torch.zeros([2], dtype=torch.int64), 1, 0, 10)
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([1, 2]), torch.zeros([2], dtype=torch.int32), 1, 0, 10)  ## scale and zero_point should be 1-D tensors
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2]), torch.zeros([2], dtype=torch.int32), 5, 0, 10)  ## `axis` must be between 0 and number of dimensions of input
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2]), torch.zeros([2], dtype=torch.int32), 0, 0, 10)
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2]), torch.zeros([3], dtype=torch.int32), 1, 0, 10)
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2]), torch.full([2], 11, dtype=torch.int32), 1, 0, 10)
torch.fake_quantize_per_channel_affine(torch.ones([3, 2]), torch.ones([2]), torch.zeros([2], dtype=torch.int32), 1, 10, 0)  ## `quant_min` should be less than or equal to `quant_max`.
torch.nn.functional.scaled_dot_product_attention(torch.ones([1, 1, 2, 4]), torch.ones([1, 1, 2, 4]), torch.ones([1, 1, 2, 4]), torch.ones([2, 2]), 0.0, True)
torch.ops.aten._scaled_dot_product_attention_math(torch.ones([1, 1, 2, 4]), torch.ones([1, 1, 2, 4]), torch.ones([1, 1, 2, 4]), torch.ones([2, 2]), 0.0, True)[0]
torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(torch.ones([1, 1, 2, 4]), torch.ones([1, 1, 2, 4]), torch.ones([1, 1, 2, 4]), 0.0, False, attn_mask=torch.ones([1, 2, 2]))[0]  ## Attention mask dim in {2, 4}
x = torch.arange(24.).view(2, 3, 4).sin(); return torch.ops.aten._native_multi_head_attention(x, x, x, 4, 2, torch.arange(48.).view(12, 4).cos(), torch.zeros([12]), torch.eye(4), torch.ones([4]), torch.tensor([[False, True, False], [False, False, True], [True, False, False]]), False, True, 0)[0]
x = torch.arange(24.).view(2, 3, 4).sin(); return torch.ops.aten._native_multi_head_attention(x, x, x, 4, 2, torch.arange(48.).view(12, 4).cos(), torch.zeros([12]), torch.eye(4), torch.ones([4]), torch.tensor([[False, True, False], [False, False, True]]), False, True, 1)[0]
x = torch.arange(24.).view(2, 3, 4).sin(); return torch.ops.aten._native_multi_head_attention(x, x, x, 4, 2, torch.arange(48.).view(12, 4).cos(), torch.zeros([12]), torch.eye(4), torch.ones([4]), torch.arange(36).view(2, 2, 3, 3).remainder(4).eq(0), False, True, 2)[0]
x = torch.arange(24.).view(2, 3, 4).sin(); return torch.ops.aten._native_multi_head_attention(x, x, x, 4, 2, torch.arange(48.).view(12, 4).cos(), torch.zeros([12]), torch.eye(4), torch.ones([4]), torch.zeros([2, 3], dtype=torch.bool), False, True, 0)[0]  ## For mask_type == 0 mask shape should be (L, L)
x = torch.arange(24.).view(2, 3, 4).sin(); return torch.ops.aten._native_multi_head_attention(x, x, x, 4, 2, torch.arange(48.).view(12, 4).cos(), torch.zeros([12]), torch.eye(4), torch.ones([4]), torch.zeros([3, 3], dtype=torch.bool), False, True, 1)[0]  ## For mask_type == 1 mask shape should be (B, L)
x = torch.arange(24.).view(2, 3, 4).sin(); return torch.ops.aten._native_multi_head_attention(x, x, x, 4, 2, torch.arange(48.).view(12, 4).cos(), torch.zeros([12]), torch.eye(4), torch.ones([4]), torch.zeros([3, 3], dtype=torch.bool), False, True, 2)[0]  ## For mask_type == 2 mask shape should match input shape
torch.bincount(torch.tensor([-1, 2]))
torch.bincount(torch.tensor([[1, 2]]))
torch.bincount(torch.tensor([1, 2]), torch.ones([3]))
torch.bincount(torch.tensor([1, 2]), torch.ones([2, 1]))
torch.bincount(torch.tensor([1, 2]), minlength=-1)
torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([1.5]), sorter=torch.tensor([0, 2]))
torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([1.5]), sorter=torch.tensor([0]))  ## torch.searchsorted(): boundary and sorter must have the same size
torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([1.5]), right=True, side='left')
torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([1.5]), side='middle')
torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([2.]), side='right')
torch.searchsorted(torch.tensor([1., 2.]), torch.tensor([2.]), side='left')
torch.ops.aten.nonzero_numpy(torch.tensor([[1, 0], [0, 2]]))[1]
torch.ops.aten.nonzero_numpy(torch.tensor(3))[0]
torch.histogramdd(torch.ones([2, 1]), [2], range=[3., 1.])[0]  ## min should not exceed max, but got min 3 max 1 for dimension 0
torch.histogramdd(torch.ones([2, 1]), [torch.ones([1, 1])])[0]  ## bins tensor should have one dimension, and at least one element, but got 2 dimensions and 1 elements
torch.histogramdd(torch.ones([2, 1]), [torch.ones([2], dtype=torch.float64)])[0]  ## input tensor and bins tensors should have the same dtype, but got input with dtype Float and bins for dimension 0 with dtype Double
torch.histogramdd(torch.ones([2, 1]), [torch.ones([0])])[0]  ## bins tensor should have one dimension, and at least one element, but got 1 dimensions and 0 elements
torch.histogramdd(torch.ones([2, 70]), 2)[0]  ## a histogram has at most 64 dimensions, but the input has 70 columns
torch.segment_reduce(torch.ones([3]), 'sum', offsets=torch.ones([0], dtype=torch.int64))  ## Expected offsets to have an element or more along axis
torch.nn.functional.embedding_bag(torch.tensor([0, 1]), torch.zeros([3, 2]), torch.tensor([0]), sparse=True)
torch.ops.aten.embedding_dense_backward(torch.ones([]), torch.tensor([0]), 3, -1, False)  ## expected grad_output with one dimension or more
torch.ops.aten.embedding_backward(torch.ones([2, 2]), torch.tensor([0, 2]), 3, -1, False, False)
torch.nn.functional.one_hot(torch.zeros([0], dtype=torch.int64))
torch.ops.aten.native_group_norm_backward(torch.ones([2, 4, 3]), torch.ones([2, 4, 3]), torch.ones([2, 1]), torch.ones([2, 2]), None, 2, 4, 3, 2, [True, True, True])[0]  ## grad_out must have the sizes of input, and mean and rstd 4 elements each
torch.ops.aten.native_batch_norm_backward(torch.ones([2, 3]), torch.ones([2, 3]), None, None, None, None, None, True, 1e-5, [True, True, True])[0]  #! save_mean and save_invstd must be given if train is true
torch.ops.aten.native_batch_norm_backward(torch.ones([2, 3]), torch.ones([2, 3]), None, None, None, None, None, False, 1e-5, [True, True, True])[0]  #! running_mean and running_var must be given if train is false
torch.ops.aten.batch_norm_backward(torch.arange(6.).view(2, 3), torch.tensor([[1., 2., 5.], [3., -1., 2.]]), torch.tensor([1., 2., 3.]), None, None, torch.tensor([2., 0.5, 3.5]), torch.tensor([1., 0.5, 0.25]), True, 1e-5, [True, True, True], torch.ones([0]))[0]
torch.logsumexp(torch.tensor([[1, 2], [3, 4]]), 1)
torch.logsumexp(torch.zeros([0, 2], dtype=torch.complex64), 1).real
torch._softmax(torch.ones([2]), 0, True)
torch._log_softmax(torch.ones([2]), 0, True)  ## log_softmax with half to float conversion is not supported on CPU
torch.fft.fft(torch.ones([3]), 0)
torch.fft.fft(torch.ones([0]))
torch.fft.rfft(torch.ones([3]), -2)
torch.fft.irfft(torch.ones([1], dtype=torch.complex64))
torch.stft(torch.ones([16], dtype=torch.complex64), 4, window=torch.ones([4]), onesided=True, return_complex=True, center=False)
torch.istft(torch.ones([5], dtype=torch.complex64), 8, window=torch.ones([8]))
torch.istft(torch.ones([1, 1, 5, 3], dtype=torch.complex64), 8, window=torch.ones([8]))
torch.istft(torch.ones([4, 3], dtype=torch.complex64), 8, window=torch.ones([8]))
torch.istft(torch.ones([5, 3], dtype=torch.complex64), 8, window=torch.ones([8]), onesided=False)
torch.istft(torch.ones([5, 3], dtype=torch.complex64), 8, win_length=9, window=torch.ones([9]))
torch.istft(torch.ones([5, 3], dtype=torch.complex64), 8, window=torch.ones([7]))
torch.istft(torch.ones([5, 3], dtype=torch.complex64), 8, hop_length=9, window=torch.ones([8]))
torch.istft(torch.ones([5, 0], dtype=torch.complex64), 8, window=torch.ones([8]))
torch.istft(torch.ones([5, 3], dtype=torch.complex64), 8, window=torch.ones([8]), return_complex=True)
torch.einsum('i.j->ij', [torch.ones([2, 3])])
torch.einsum('......->', [torch.ones([2, 3])])
torch.einsum('i...j->i.j', [torch.ones([2, 3])])  ## einsum(): found '.' for output that is not part of any ellipsis
torch.einsum('i...j->......', [torch.ones([2, 3])])  ## einsum(): found '.' for output for which an ellipsis was already found
torch.einsum('i1->i', [torch.ones([2, 3])])
torch.einsum('ij->1', [torch.ones([2, 3])])
torch.einsum('ij', [torch.ones([2, 3]), torch.ones([2])])
torch.einsum('ij,jk,k->i', [torch.ones([2, 3]), torch.ones([3, 2])])
torch.einsum('ij->k', [torch.ones([2, 3])])
torch.einsum('ij->ii', [torch.ones([2, 3])])
torch.einsum('i->i', [torch.ones([2, 3])])
torch.scatter(torch.zeros([3]), 0, torch.tensor([1]), torch.ones([1]), reduce='divide')
torch.scatter(torch.ones([3], dtype=torch.complex64), 0, torch.tensor([1]), torch.ones([1], dtype=torch.complex64) * 3, reduce='multiply').real
torch.zeros([3]).scatter_reduce(0, torch.tensor([1]), torch.ones([1]), 'middle')
torch.zeros([3], dtype=torch.complex64).scatter_reduce(0, torch.tensor([1]), torch.ones([1], dtype=torch.complex64), 'amax').real  ## "scatter_reduce" not implemented for 'ComplexFloat'
torch.zeros([3], dtype=torch.complex64).scatter_reduce(0, torch.tensor([1]), torch.ones([1], dtype=torch.complex64), 'mean').real
torch.ones([2, 2], dtype=torch.complex64).index_add(1, torch.tensor([1, 1]), torch.ones([2, 2], dtype=torch.complex64)).real
torch.zeros([3]).index_reduce(0, torch.tensor([1]), torch.ones([1]), 'sum')  ## index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum
torch.add(torch.ones([2]), torch.ones([2]), alpha=1j)
torch.ops.aten.pow(torch.tensor([2. + 1j]), 2.5 + 1j).real
x = torch.tensor([2. + 1j, -1. + 0.5j], dtype=torch.complex128).requires_grad_(); y = torch.pow(x, 2. + 1j); (y * y.conj()).real.sum().backward(); return torch.view_as_real(torch.ops.aten.detach(x.grad))
torch.ops.aten.fill_(torch.ones([2], dtype=torch.int8), 300)
torch.bitwise_and(torch.ones([2], dtype=torch.uint8), 300)
torch.ops.aten._foreach_add_([torch.ones([2])], [torch.ones([3, 2])])
torch.ones([2]).masked_scatter_(torch.ones([3, 2], dtype=torch.bool), torch.ones([6]))  ## output with shape [2] doesn't match the broadcast shape [3, 2]
torch.ones([2]).masked_fill_(torch.ones([3, 2], dtype=torch.bool), 1.0)
torch.acos(torch.tensor([2. + 0j, -3. - 0j, 0.5 + 1e38j])).real
torch.view_as_real(torch.acos(torch.tensor([0.5 + 1e300j, -1e300 - 1e300j, 1e300 + 0j], dtype=torch.complex128)))
torch.view_as_real(torch.atanh(torch.tensor([0.5 + 1e300j, -1e300 - 1e300j], dtype=torch.complex128)))
torch.view_as_real(torch.logaddexp(torch.tensor([complex(float('inf'), 0.), complex(float('-inf'), 0.)]), torch.tensor([complex(float('inf'), 0.), complex(float('-inf'), 1.)])))
torch.gru(torch.ones([4, 3]), torch.tensor([2, 1, 1]), torch.zeros([1, 3, 2]), [torch.ones([6, 3]), torch.ones([6, 2]), torch.ones([6]), torch.ones([6])], True, 1, 0.0, False, False)[0]  ## hidden states have 3 examples, but batch_sizes[0] is 2
torch.gru(torch.arange(12.).view(4, 3) * 0.1, torch.tensor([2, 1, 1]), torch.zeros([1, 2, 2]), [torch.arange(18.).view(6, 3) * 0.05, torch.ones([6, 2]) * 0.2, torch.ones([6]), torch.ones([6])], True, 1, 0.0, False, False)[0]
torch.rnn_tanh(torch.arange(12.).view(4, 3) * 0.1, torch.tensor([2, 1, 1]), torch.zeros([1, 2, 2]), [torch.arange(6.).view(2, 3) * 0.05, torch.ones([2, 2]) * 0.2, torch.ones([2]), torch.ones([2])], True, 1, 0.0, False, False)[0]
torch.rnn_relu(torch.arange(12.).view(4, 3) * 0.1, torch.tensor([2, 1, 1]), torch.zeros([2, 2, 2]), [torch.arange(6.).view(2, 3) * 0.05, torch.ones([2, 2]) * 0.2, torch.ones([2]), torch.ones([2]), torch.ones([2, 2]), torch.ones([2, 2]), torch.ones([2]), torch.ones([2])], True, 2, 1.0, True, False)[0]
torch.gru(torch.ones([4, 3]), torch.tensor([2., 1., 1.]), torch.zeros([1, 2, 2]), [torch.ones([6, 3]), torch.ones([6, 2]), torch.ones([6]), torch.ones([6])], True, 1, 0.0, False, False)[0]  ## batch_sizes must be a one-dimensional int64 tensor on cpu and must not be empty
torch._pack_padded_sequence(torch.ones([3, 2, 1]), torch.tensor([[3, 2]]), False)[0]  ## lengths must be a one-dimensional int64 tensor on cpu and must not be empty
torch._pad_packed_sequence(torch.arange(4.).view(4, 1), torch.tensor([2, 1, 1]), False, 9.0, 5)[0]
torch._pad_packed_sequence(torch.arange(4.).view(4, 1), torch.tensor([2, 1, 1]), True, 9.0, 5)[0]
torch.ops.aten._pack_padded_sequence_backward(torch.arange(3.).view(3, 1), [3, 2, 1], torch.tensor([2, 1, 1]), False)  ## grad must have 4 rows, the sum of batch_sizes, and input_size 3 elements, at least 3 steps and 2 examples
torch.ops.torchvision.nms(torch.ones([2, 4]), torch.ones([2, 1]), 0.5)  #! scores should be a 1d tensor, got 2D
torch.ops.torchvision.nms(torch.ones([2, 4], dtype=torch.int64), torch.ones([2], dtype=torch.int64), 0.5)  #! "nms_kernel" not implemented for 'Long'
torch.ops.torchvision.nms(torch.ones([2, 3]), torch.ones([2]), 0.5)  #! boxes should have 4 elements in dimension 1, got 3
torch.ops.torchvision.nms(torch.ones([2, 4]), torch.ones([2], dtype=torch.float64), 0.5)  #! dets should have the same type as scores
torch.ops.torchvision.roi_align(torch.ones([2, 3, 4]), torch.ones([1, 5]), 1.0, 2, 2, 2, False)  #! input must have 4 dimensions, but has 3
torch.ops.torchvision.roi_align(torch.ones([1, 2, 3, 4], dtype=torch.int64), torch.ones([1, 5], dtype=torch.int64), 1.0, 2, 2, 2, False)  #! input and rois must be floating point, but are Long and Long
torch.ops.torchvision._roi_align_backward(torch.ones([1, 2, 3, 4]), torch.zeros([1, 5]), 1.0, 2, 2, 1, 2, 3, 4, 2, False)  #! grad must have the sizes of roi_align's result, [1, 2, 2, 2], but has [1, 2, 3, 4]
'''
# Reductions of so many elements that the library reduces them in parts, and then combines the results.
MANY = 'x = torch.arange(300000).mul(7919).remainder(99991).sub(50000).to(torch.%s); '
NAN = "x[150000] = float('nan'); "
for dtype in ('float32', 'float64', 'int64'):
    for call in ('amax()', 'amin()', 'argmax()', 'argmin()', 'aminmax()[0]', 'aminmax()[1]'):
        ROWS += MANY % dtype + 'x.%s\n' % call
        if dtype != 'int64':
            ROWS += MANY % dtype + NAN + 'x.%s\n' % call
for call in ('torch.logsumexp(x, 0)', 'torch.logsumexp(x.neg() / 1000, 0)', "torch.logsumexp(x * float('inf'), 0)",
             "torch.linalg.vector_norm(x, float('inf'))", "torch.linalg.vector_norm(x, float('-inf'))"):
    ROWS += MANY % 'float32' + call + '\n'


def source(statements):
    lines = statements.split('; ')
    if not lines[-1].startswith('return '):
        lines[-1] = 'return ' + lines[-1]
    return 'def f():\n' + ''.join('    %s\n' % line for line in lines)


def given(statements):
    names = {'torch': torch}
    exec(source(statements), names)
    result = names['f']().detach().reshape(-1).to(torch.float64)
    return '=' + ' '.join('%.9g' % number for number in result.tolist())


def expected(row):
    """Returns the two lines of a row."""
    for mark in ('  ## ', '  #! ', '  #= '):
        statements, found, rest = row.partition(mark)
        if not found:
            continue
        if mark == '  #= ':
            return statements, given(rest)
        if mark == '  ## ':
            try:
                raise SystemExit('%s: PyTorch gives %s' % (row, given(statements)))
            except Exception:
                pass
        return statements, '!' + rest
    try:
        return row, given(row)
    except Exception as error:
        return row, '!' + plain_names(str(error).strip().split('\n')[0].split(' File an issue')[0])


warnings.simplefilter('ignore')
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls.txt')
with open(path, 'w') as out:
    for line in ROWS.strip().split('\n'):
        out.write('%s\n%s\n' % expected(line))
