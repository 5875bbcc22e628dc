#!/usr/bin/env python3
"""Writes calls.txt: calls of operators, and PyTorch's results or error messages.

usage: make_calls.py (with PyTorch 2.15 and torchao 0.18)

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
import torch.ao.quantization.fx._decomposed
import torchao.quantization.quant_primitives

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

# Numbers as integers: quantized_decomposed, torchao, packed weights, learnable scales, grouped products.
X = 'x = (torch.arange(24, dtype=torch.float32).view(4, 6) * 7 % 11 - 4.5) * 0.37; '
Q = 'q = (torch.arange(24).view(4, 6) * 29 % 200 - 100).to(torch.int8); '
S = 's = torch.tensor([0.03, 0.011, 0.2, 0.07]); z = torch.tensor([3, -7, 0, 11]); '
ALL = 's = torch.tensor([0.037], dtype=torch.float64); z = torch.tensor([5]); '
G = 'x = torch.arange(32, dtype=torch.float32).view(4, 8) % 7 - 2; w = torch.arange(96, dtype=torch.float32).view(3, 8, 4) % 5; '
F = 'H = torch.float8_e4m3fn; a = (torch.arange(256, dtype=torch.float32).view(16, 16) % 7 - 3).to(H); b = (torch.arange(256, dtype=torch.float32).view(16, 16) % 5 - 2).to(H).t(); s = torch.tensor(0.3); '
QD, AO = 'torch.ops.quantized_decomposed.', 'torch.ops.torchao.'
I8, U8, I16, F8 = 'torch.int8', 'torch.uint8', 'torch.int16', 'torch.float8_e4m3fn'
for row in (
        X + QD + 'quantize_per_tensor(x, 0.037, 5, -128, 127, %s)' % I8,
        X + QD + 'quantize_per_tensor(x, 0.0037, -3, -100, 90, %s)' % I8,
        X + QD + 'quantize_per_tensor(x.half(), 0.01, 128, 0, 255, %s)' % U8,
        X + QD + 'quantize_per_tensor(x, 0.0001, 7, -32768, 32767, %s)' % I16,
        X + QD + 'quantize_per_tensor(x.double(), 0.037, 5, -128, 127, %s)  ## input must be float32, float16 or bfloat16' % I8,
        X + QD + 'quantize_per_tensor(x, 0.037, 5, -129, 127, %s)  ## quant_min -129 to quant_max 127 is out of bounds for dtype int8' % I8,
        X + QD + 'quantize_per_tensor(x, 0.037, 5, 0, 127, torch.int64)  ## numbers cannot be quantised to dtype int64',
        X + ALL + QD + 'quantize_per_tensor(x, s, z, -128, 127, %s)' % I8,
        X + ALL + QD + 'quantize_per_tensor(x, torch.ones([2]), z, -128, 127, %s)  ## scale must have one element, but has 2' % I8,
        X + ALL + 'l = torch.tensor([-9]); h = torch.tensor([9]); ' + QD + 'quantize_per_tensor(x, s, z, l, h, %s)' % I8,
        Q + QD + 'dequantize_per_tensor(q, 0.037, 5, -128, 127, %s)' % I8,
        Q + QD + 'dequantize_per_tensor(q, 0.037, 5, -128, 127, %s, out_dtype=torch.bfloat16)' % I8,
        Q + QD + 'dequantize_per_tensor(q, 0.037, 5, 0, 255, %s)  ## input must have dtype uint8, but has int8' % U8,
        Q + ALL + QD + 'dequantize_per_tensor(q, s, z, -128, 127, %s)' % I8,
        X + QD + 'choose_qparams(x, -128, 127, 1e-5, %s)[0]' % I8,
        X + QD + 'choose_qparams(x, -128, 127, 1e-5, %s)[1]' % I8,
        X + QD + 'choose_qparams(x.abs(), 0, 255, 1e-5, %s)[1]' % U8,
        X + QD + 'choose_qparams(x * 0, 0, 255, 1e-5, %s)[0]' % U8,
        X + QD + 'choose_qparams(x.bfloat16(), -127, 127, 1e-5, %s)[0]' % I8,
        X + QD + "choose_qparams(x * float('nan'), -127, 127, 1e-5, %s)[0]" % I8,
        X + QD + 'choose_qparams(x, 3, 127, 1e-5, %s)[0]  ## must have 0 and another number' % I8,
        X + QD + 'choose_qparams_symmetric(x, -127, 127, 1e-5, %s)[0]' % I8,
        X + QD + 'choose_qparams_symmetric(x, 0, 255, 1e-5, %s)[1]' % U8,
        X + S + QD + 'quantize_per_channel(x, s, z, 0, -128, 127, %s)' % I8,
        X + S + QD + 'quantize_per_channel(x.t(), s, z, 1, -128, 127, %s)' % I8,
        X + S + QD + 'quantize_per_channel(x, s, z, 1, -128, 127, %s)  ## there are 4 scales or zero points, but dim 1 of input has size 6' % I8,
        X + S + QD + 'quantize_per_channel(x, s, z, 2, -128, 127, %s)  ## axis is 2, but input has 2 dims' % I8,
        Q + S + QD + 'dequantize_per_channel(q, s, z, 0, -128, 127, %s)' % I8,
        Q + S + QD + 'dequantize_per_channel(q.t(), s.double(), None, 1, -128, 127, %s, out_dtype=torch.float16)' % I8,
        X + QD + 'choose_qparams_per_token(x, %s)[0]' % I8,
        X + QD + 'choose_qparams_per_token(x.half(), %s)[1]' % I8,
        X + QD + 'choose_qparams_per_token(x, %s)[0]  ## dtype must be int8, but is uint8' % U8,
        X + QD + 'choose_qparams_per_token_asymmetric(x, %s)[0]' % I8,
        X + QD + 'choose_qparams_per_token_asymmetric(x, %s)[1]' % I8,
        X + S + QD + 'quantize_per_token(x, s.view(4, 1), z.view(4, 1), -128, 127, %s)' % I8,
        X + S + QD + 'quantize_per_token(x.t(), s.view(4, 1), z.view(4, 1), -128, 127, %s)  ## input has 6 rows, but there are 4 scales' % I8,
        Q + S + QD + 'dequantize_per_token(q, s.view(4, 1), z.view(4, 1), -128, 127, %s, torch.float32)' % I8,
        X + QD + 'quantize_per_channel_group(x, torch.full([4, 2], 0.03), torch.full([4, 2], 1, dtype=torch.int32), -8, 7, %s, 3)' % I8,
        X + QD + 'quantize_per_channel_group(x, torch.full([4, 2], 0.03), torch.zeros([4, 2]), -8, 7, %s, 4)  ## group_size must be at least 2 and must divide the 6 columns of input, but is 4' % I8,
        X + QD + 'quantize_per_channel_group(x, torch.full([4, 1], 0.3), torch.zeros([4, 2]), -8, 7, %s, 3)  ## input has 8 groups, but there are 4 scales' % I8,
        Q + QD + 'dequantize_per_channel_group(q, torch.full([4, 2], 0.03), None, -8, 7, %s, 3, torch.float32)' % I8,
        X + S + QD + 'fake_quant_per_channel(x, s, z, 0, -20, 30)',
        X + S + 'x = x.requires_grad_(); y = ' + QD + 'fake_quant_per_channel(x, s, z, 0, -20, 30); (y * y).sum().backward(); return x.grad',
        QD + 'quantize_per_tensor(torch.tensor(0.35), torch.tensor(0.1), torch.tensor(0), -128, 127, %s)' % I8,
        QD + 'dequantize_per_tensor(torch.tensor(7, dtype=torch.int8), torch.tensor(.1), torch.tensor(1), -128, 127, %s, out_dtype=torch.float16)' % I8,
        X + QD + 'convert_element_type(x, torch.float64)'):
    ROWS += row + '\n'
for mapping in ('SYMMETRIC', 'SYMMETRIC_NO_CLIPPING_ERR', 'ASYMMETRIC'):
    for block in ('[1, 6]', '[1, 3]', '[4, 6]', '[2, 2]'):
        for i in range(2):
            ROWS += X + AO + "choose_qparams_affine(x, '%s', %s, torch.int8, -8, 7, None, None, torch.int64, %s)[%d]\n" % (
                mapping, block, i == 0, i)
for row in (
        X + AO + "choose_qparams_affine(x.bfloat16(), 'ASYMMETRIC', [1, 6], torch.int8)[0]",
        X + AO + "choose_qparams_affine(x, 'NONE', [1, 6], torch.int8)[0]  ## mapping_type must be SYMMETRIC",
        X + AO + "choose_qparams_affine(x, 'SYMMETRIC', [1, 4], torch.int8)[0]  ## dim 1 has size 6, which is no multiple of block_size 4",
        X + AO + "choose_qparams_affine(x, 'SYMMETRIC', [6], torch.int8)[0]  ## block_size has 1 elements, but the tensor has 2 dims",
        X + S + AO + 'quantize_affine(x, [1, 6], s, z, torch.int8)',
        X + S + AO + 'quantize_affine(x, [1, 6], s, z, torch.int8, -8, 7)',
        X + S + AO + 'quantize_affine(x, [1, 3], s, z, torch.int8, -8, 7)  ## there are 8 blocks, but scale has 4 elements',
        X + AO + 'quantize_affine(x, [2, 3], torch.tensor([[0.1, 0.2], [0.3, 0.4]]), torch.tensor([[1, 0], [-1, 2]]), torch.int8)',
        Q + S + AO + 'dequantize_affine(q, [1, 6], s, z, torch.int8)',
        Q + S + AO + 'dequantize_affine(q, [1, 6], s, None, torch.int8, -128, 127, torch.bfloat16)',
        Q + AO + 'dequantize_affine(q, [4, 2], torch.tensor([[0.1, 0.2, 0.3]]), torch.tensor([[1, 0, 5]]), torch.int8)',
        Q + S + AO + 'dequantize_affine(q, [1, 6], s, z, torch.uint8)  ## input must have dtype uint8, but has int8',
        X + AO + 'choose_scale_float8(x, [1, 6])',
        X + AO + 'choose_scale_float8(x, [2, 3], torch.float8_e5m2, torch.float8_e8m0fnu)',
        X + AO + 'quantize_affine_float8_non_decomposed(x, torch.full([4, 1], 0.01)).float()',
        X + AO + 'quantize_affine_float8_non_decomposed(x, torch.tensor([[0.1, 0.2], [0.3, 0.4]])).float()',
        X + AO + 'dequantize_affine_float8_non_decomposed(x.to(torch.float8_e4m3fn), torch.full([4, 1], 0.01))',
        X + Q + 'torch.ops.aten._weight_int8pack_mm(x, q, torch.tensor([0.1, 0.2, 0.3, 0.4]))',
        X + Q + 'torch.ops.aten._weight_int8pack_mm(x, q, torch.tensor([0.1, 0.2]))  ## scales must have an element for each of the 4 rows of mat2',
        'w = torch.arange(48 * 64, dtype=torch.int32).view(48, 64) * 7 % 16; p = torch.ops.aten._convert_weight_to_int4pack_for_cpu(w, 2); s = (torch.arange(192, dtype=torch.float32) % 13 * 0.01).view(2, 48, 2); x = torch.arange(128, dtype=torch.float32).view(2, 64) % 5; torch.ops.aten._weight_int4pack_mm_for_cpu(x, p, 32, s)',
        X + S + 'x = x.requires_grad_(); s = torch.tensor([0.1]).requires_grad_(); z = torch.tensor([2.]).requires_grad_(); y = torch._fake_quantize_learnable_per_tensor_affine(x, s, z, -8, 7, 0.5); (y * y).sum().backward(); return torch.cat([x.grad.view(-1), s.grad, z.grad, y.view(-1)])',
        X + S + 'x = x.requires_grad_(); s = s.requires_grad_(); z = torch.tensor([2., 0., -3.2, 20.]).requires_grad_(); y = torch._fake_quantize_learnable_per_channel_affine(x, s, z, 0, -8, 7, 0.5); (y * y).sum().backward(); return torch.cat([x.grad.view(-1), s.grad, z.grad, y.view(-1)])',
        G + 'torch._grouped_mm(x, w, torch.tensor([1, 1, 4], dtype=torch.int32))',
        G + 'x = x.requires_grad_(); w = w.requires_grad_(); y = torch._grouped_mm(x, w, torch.tensor([1, 1, 4], dtype=torch.int32)); (y * y).sum().backward(); return torch.cat([x.grad.view(-1), w.grad.view(-1)])',
        G + 'torch._grouped_mm(w, x.view(4, 8), torch.tensor([1, 1, 8], dtype=torch.int32))',
        G + 'w = torch.arange(32, dtype=torch.float32).view(8, 4) % 5; torch._grouped_mm(x, w, torch.tensor([4, 4, 8], dtype=torch.int32))',
        G + 'torch._grouped_mm(x, w, torch.tensor([1, 5, 4], dtype=torch.int32))  #! offs[1] is 5, but must be between 1 and 4',
        F + 'torch._scaled_mm(a, b, s, s, out_dtype=torch.float32)',
        F + 'torch._scaled_mm(a, b, s, s, scale_result=torch.tensor(0.5)).float()',
        F + 'torch._scaled_mm(a, b, s, s, scale_result=torch.tensor(0.5), out_dtype=H).float()',
        G + 'torch._grouped_mm(x, w)  ## offs is missing'):
    ROWS += row + '\n'

# Layers of codes as PyTorch lowers them for processors.
ONE = 'torch.ops.onednn.'
LIN = ('x = (torch.arange(48).view(3, 16) * 37 % 256).to(torch.uint8); w = (torch.arange(80).view(5, 16) * 29 % 255 - 127).to(torch.int8); '
       's = torch.tensor([0.003, 0.001, 0.0052, 0.0021, 0.0017]); z = torch.zeros([5], dtype=torch.int64); b = torch.tensor([0.5, -1., 2., 0., 0.25]); '
       'p = ' + ONE + 'qlinear_prepack(w, None); o = torch.arange(15, dtype=torch.float32).view(3, 5) * 0.3 - 2; u = (torch.arange(15).view(3, 5) * 17 % 256).to(torch.uint8); ')
CONV = ('x = (torch.arange(240).view(2, 4, 6, 5) * 37 % 256).to(torch.uint8); w = (torch.arange(144).view(6, 4, 3, 2) * 29 % 255 - 127).to(torch.int8); '
        's = torch.tensor([0.003, 0.001, 0.0052, 0.0021, 0.0017, 0.004]); z = torch.zeros([6], dtype=torch.int64); b = torch.tensor([0.5, -1., 2., 0., 0.25, 3.]); ')
FLOAT = ', 1.0, 0, torch.float32, '
NONE = "'none', [], ''"
for out in ('1.0, 0, torch.float32', '1.0, 0, torch.bfloat16', '1.0, 0, torch.float16', '0.05, 100, torch.uint8', '0.05, -3, torch.int8',
            '1.0, 0, None', '0.5, 3, torch.float32  ## scales must be 1 and zero points 0', '1.0, 0, torch.int32  ## output_dtype must be'):
    out, mark, text = out.partition('  ## ')
    ROWS += LIN + ONE + 'qlinear_pointwise(x, 0.02, 120, p, s, z, b, %s, %s)' % (out, NONE) + mark + text + '\n'
    ROWS += LIN + ONE + "qlinear_pointwise(x, 0.02, 120, p, s, z, None, %s, 'relu', [], '')" % out + mark + text + '\n'
for way in ("'relu', [], ''", "'tanh', [], ''", "'gelu', [], 'none'", "'gelu', [], 'tanh'", "'hardswish', [], ''", "'swish', [], ''", "'gelu', [], 'x'  ## the algorithm of gelu must be none or tanh",
            "'silu', [], ''  ## the operation silu cannot follow this layer",
            "'leaky_relu', [], ''  ## leaky_relu needs its negative slope",
            *("'%s', [], ''  ## the operation %s cannot follow this layer" % (name, name)
              for name in ('sigmoid', 'hardsigmoid', 'elu', 'mish', 'clip', 'square'))):
    way, mark, text = way.partition('  ## ')
    for out in (FLOAT, ', 0.05, 100, torch.uint8, '):
        ROWS += LIN + ONE + 'qlinear_pointwise(x, 0.02, 120, p, s, z, b%s%s)' % (out, way) + mark + text + '\n'
for row in (
        'qlinear_pointwise((x.int() - 128).to(torch.int8), 0.02, -8, p, s, z, b' + FLOAT + NONE + ')',
        'qlinear_pointwise(x[0], 0.02, 120, p, s[:1], z[:1], b' + FLOAT + NONE + ')',
        'qlinear_pointwise(x.view(1, 3, 16), 0.02, 120, p, s, z + 2, b' + FLOAT + NONE + ')',
        'qlinear_pointwise(x.t().contiguous().t(), 0.02, 120, p, s, z, b.bfloat16().float()' + FLOAT + NONE + ')',
        'qlinear_pointwise(x[:0], 0.02, 120, p, s, z, b' + FLOAT + NONE + ')',
        'qlinear_pointwise(x, torch.tensor([0.02]), torch.tensor([120]), p, s, z, b' + FLOAT + NONE + ')',
        'qlinear_pointwise(x, torch.tensor(0.02), torch.tensor(120), p, s, z, b, 0.05, 100, torch.uint8, ' + NONE + ')',
        'qlinear_pointwise(x, torch.tensor([0.02]), torch.tensor([], dtype=torch.int32), p, s, z, b' + FLOAT + NONE + ')',
        'qlinear_pointwise(x, torch.full([3], 0.02), torch.tensor([120]), p, s, z, b' + FLOAT + NONE + ')  ## x_scale must have one element, but has 3',
        'qlinear_pointwise(x.float(), 0.02, 120, p, s, z, b' + FLOAT + NONE + ')  ## qx must be uint8 or int8',
        'qlinear_pointwise(x, 0.02, 120, w, s, z, b' + FLOAT + NONE + ')  #! qw must be a packed weight, a matrix with as many rows as qx has columns',
        'qlinear_pointwise(x, 0.02, 120, p, s[:3], z, b' + FLOAT + NONE + ')  #! w_scale must have dtype float32 and 1 or 5 elements',
        'qlinear_pointwise(x, 0.02, 120, p, s.double(), z, b' + FLOAT + NONE + ')  ## w_scale must have dtype float32',
        'qlinear_pointwise(x, 0.02, 120, p, s, z, b[:3]' + FLOAT + NONE + ')  ## bias must be a vector of 5 elements'):
    ROWS += LIN + ONE + row + '\n'
ADD = 'qlinear_pointwise(x, 0.02, 120, p, s, z, %s, b, %s, %s, %s, ' + NONE + ')'
for other, out, more, what in (
        ('o', '1.0, 0, torch.float32', '1.0, 0', "'add', 1.0"), ('o', '0.05, 100, torch.uint8', '1.0, 0', "'add', 1.0"),
        ('o[:1]', '1.0, 0, torch.float32', '1.0, 0', "'add', 1.0"), ('o.bfloat16()', '1.0, 0, torch.bfloat16', '1.0, 0', "'add', 1.0"),
        ('u', '1.0, 0, torch.float32', '1.0, 0', "'add', 1.0"), ('u', '0.5, 3, torch.uint8', '0.03, 9', "'add', 1.0"),
        ('o', '1.0, 0, torch.float32', '1.0, 0', "'sum', 1.0"), ('u', '0.05, 100, torch.uint8', '0.03, 9', "'sum', 1.0"),
        ('(u.int() - 128).to(torch.int8)', '0.05, 3, torch.int8', '0.03, -119', "'sum', 1.0"),
        ('o.bfloat16()', '1.0, 0, torch.bfloat16', '1.0, 0', "'sum', 1.0"), ('None', '1.0, 0, torch.float32', '1.0, 0', "'none', 1.0")):
    row = LIN + ONE + ADD % (other, out, more, what) + '\n'
    ROWS += row + row.replace(NONE, "'relu', [], ''")
for other, out, more, what, text in (
        ('o', '1.0, 0, torch.float32', '1.0, 0', "'add', 2.0", 'alpha must be 1, but is 2'),
        ('o', '1.0, 0, torch.float32', '2.0, 0', "'add', 1.0", 'scales must be 1 and zero points 0'),
        ('None', '1.0, 0, torch.float32', '1.0, 0', "'add', 1.0", 'the tensor for the operation add is missing'),
        ('o', '1.0, 0, torch.float32', '1.0, 0', "'mul', 1.0", 'the binary operation must be none, add or sum, but is mul'),
        ('o', '0.05, 0, torch.uint8', '1.0, 0', "'sum', 1.0", 'the tensor that is added must have the dtype of the result, uint8, but has float32')):
    ROWS += LIN + ONE + ADD % (other, out, more, what) + '  ## ' + text + '\n'
ROWS += LIN + ONE + ADD.replace(NONE, "'gelu', [], 'none'") % ('o', '1.0, 0, torch.float32', '1.0, 0', "'add', 1.0") + '  ## the operation gelu cannot follow this layer and a binary operation, only relu\n'
ROWS += LIN + ONE + ADD % ('o[:2]', '1.0, 0, torch.float32', '1.0, 0', "'sum', 1.0") + '  #! other must have the sizes of the result\n'
ROWS += LIN + ONE + 'qlinear_prepack(w.float(), None)  ## weight must be int8 or float8_e4m3fn, but is float32\n'
ROWS += LIN + ONE + 'qlinear_prepack(w, [3, 9])  #! weight must be a matrix, with as many columns as the last size of x_shape\n'
for out, way in ((FLOAT, NONE), (', 0.25, 0, torch.float8_e4m3fn, ', "'relu', [], ''"), (', 1.0, 0, torch.bfloat16, ', "'swish', [], ''")):
    ROWS += LIN + 'f = torch.float8_e4m3fn; ' + ONE + 'qlinear_pointwise((x.float() * 0.01).to(f), 0.5, 0, ' + ONE + 'qlinear_prepack((w.float() * 0.02).to(f), None), s, z, b%s%s).float()\n' % (out, way)
ROWS += LIN + 'f = torch.float8_e4m3fn; ' + ONE + 'qlinear_pointwise(x.float().to(f), 0.5, 0, p, s, z, b' + FLOAT + NONE + ')  ## qx must be uint8 or int8\n'
SET = '[2, 1], [1, 0], [1, 2], 1'
PACK = 'p = ' + ONE + 'qconv_prepack(w, s, 0.02, 120, %s, None); '
for name in ('qconv_pointwise', 'qconv2d_pointwise'):
    for x in ('x', 'x.contiguous(memory_format=torch.channels_last)'):
        for out in (FLOAT, ', 1.0, 0, torch.bfloat16, ', ', 0.05, 100, torch.uint8, ', ', 0.05, -3, torch.int8, '):
            ROWS += CONV + PACK % SET + ONE + '%s(%s, 0.02, 120, p, s, z, b, %s%s%s)\n' % (name, x, SET, out, NONE)
for way in ("'relu', [], ''", "'hardswish', [], ''", "'swish', [], None", "'tanh', [], ''  ## the operation tanh cannot follow this layer",
            "'hardtanh', [], ''  ## hardtanh needs two numbers",
            *("'%s', [], ''  ## the operation %s cannot follow this layer" % (name, name)
              for name in ('gelu', 'leaky_relu', 'sigmoid', 'hardsigmoid', 'silu'))):
    way, mark, text = way.partition('  ## ')
    for out in (FLOAT, ', 0.05, 100, torch.uint8, '):
        ROWS += CONV + PACK % SET + ONE + 'qconv_pointwise(x, 0.02, 120, p, s, z, b, %s%s%s)' % (SET, out, way) + mark + text + '\n'
O2 = 'o = (torch.arange(108, dtype=torch.float32).view(2, 6, 3, 3) * 0.1 - 3).contiguous(memory_format=torch.channels_last); u = (torch.arange(108).view(2, 6, 3, 3) * 17 % 256).to(torch.uint8).contiguous(memory_format=torch.channels_last); '
SUM = ONE + "qconv2d_pointwise(x, 0.02, 120, p, s, z, %s, b, " + SET + ", %s, %s, 'sum', 1.0, %s, [], '')"
for other, out, more in (('o', '1.0, 0, torch.float32', '1.0, 0'), ('o.bfloat16()', '1.0, 0, torch.bfloat16', '1.0, 0'),
                         ('u', '0.05, 100, torch.uint8', '0.03, 9'), ('(u.int() - 128).to(torch.int8)', '0.05, 3, torch.int8', '0.03, -119')):
    for unary in ("'none'", "'relu'", 'None'):
        ROWS += CONV + PACK % SET + O2 + SUM % (other, out, more, unary) + '\n'
    ROWS += CONV + PACK % SET + O2 + 'a = %s.clone(); y = ' % other + SUM % ('a', out, more, 'None') + '; return a\n'
for other, out, more, unary, text in (
        ('o', '1.0, 0, torch.float32', '2.0, 0', "'none'", 'scales must be 1 and zero points 0'),
        ('o', '1.0, 0, torch.float32', '1.0, 0', "'hardswish'", 'the operation hardswish cannot follow this layer and a binary operation'),
        ('o[:, :, :2].contiguous(memory_format=torch.channels_last)', '1.0, 0, torch.float32', '1.0, 0', "'none'", 'qaccum must have the sizes of the result')):
    ROWS += CONV + PACK % SET + O2 + SUM % (other, out, more, unary) + '  ## ' + text + '\n'
ROWS += CONV + PACK % SET + O2 + SUM.replace("'sum'", "'add'") % ('o', '1.0, 0, torch.float32', '1.0, 0', "'none'") + '  ## the binary operation must be sum, but is add\n'
ROWS += CONV + PACK % SET + O2 + SUM % ('o', '0.05, 0, torch.uint8', '1.0, 0', "'none'") + '  #! the tensor that is added must have the dtype of the result, uint8, but has float32\n'
for w, x, setting, tail in (
        ('w[:, :2]', 'x', '[2, 1], [1, 0], [1, 2], 2', ''), ('w[:4, :1]', 'x', '[2, 1], [1, 0], [1, 2], 4', '[:4]'), ('w[:, :, :, 0]', 'x[:, :, :, 0]', '[2], [1], [1], 1', ''),
        ('w.view(6, 4, 3, 2, 1)', 'x.view(2, 4, 6, 5, 1)', '[2, 1, 1], [1, 0, 0], [1, 2, 1], 1', '')):
    for out in (FLOAT, ', 0.05, 100, torch.uint8, '):
        ROWS += CONV + 's = s%s; z = z%s; b = b%s; w = %s.contiguous(); ' % (tail, tail, tail, w) + PACK % setting + ONE + 'qconv_pointwise(%s.contiguous(), 0.02, 120, p, s, z, b, %s%s%s)\n' % (x, setting, out, NONE)
ROWS += CONV + 'w = w[:, :, :, 0].contiguous(); ' + PACK % '[2], [1], [1], 1' + ONE + 'qconv1d_pointwise(x[:, :, :, 0].contiguous(), 0.02, 120, p, s, z, b, [2], [1], [1], 1' + FLOAT + NONE + ')\n'
ROWS += CONV + PACK % SET + ONE + 'qconv_pointwise(x, torch.tensor(0.02), torch.tensor(120), p, s, z, b, ' + SET + FLOAT + NONE + ')\n'
ROWS += CONV + PACK % SET + ONE + 'qconv_pointwise(x, 0.02, 120, p, s, z, b, [2], [1], [1], 1' + FLOAT + NONE + ')  ## stride must have 2 numbers, but has 1\n'
ROWS += CONV + PACK % SET + ONE + 'qconv_pointwise(x[0], 0.02, 120, p, s, z, b, ' + SET + FLOAT + NONE + ')  ## stride must have 1 numbers, but has 2\n'
ROWS += CONV + PACK % SET + ONE + 'qconv_pointwise(x.float(), 0.02, 120, p, s, z, b, ' + SET + FLOAT + NONE + ')  ## qx must be uint8 or int8\n'
TWO = 'a = (torch.arange(15).view(3, 5) * 37 % 256).to(torch.uint8); b = (torch.arange(15).view(3, 5) * 91 % 256).to(torch.uint8); '
for name in ('qadd', 'qadd_relu', 'qmul'):
    for out in ('0.05, 30, torch.uint8', '1.0, 0, torch.float32', '1.0, 0, torch.bfloat16', '0.5, 0, torch.float32  ## output_scale must be 1', '1.0, 0, torch.int8  ## output_dtype must be uint8'):
        out, mark, text = out.partition('  ## ')
        ROWS += TWO + ONE + '%s(a, 0.03, 9, b, 0.02, 100, %s)' % (name, out) + mark + text + '\n'
ROWS += TWO + ONE + 'qadd(a, 0.03, 9, b[:1], 0.02, 100, 0.05, 3, torch.uint8)  ## self and other must have the same sizes\n'
ROWS += TWO + ONE + 'qadd(a.float(), 0.03, 9, b, 0.02, 100, 0.05, 3, torch.uint8)  ## self must be uint8, but is float32\n'
BN = 'x = (torch.arange(96).view(2, 3, 4, 4) * 37 % 256).to(torch.uint8); w = torch.tensor([0.5, 1., 2.]); b = w - 1; m = w * 0.3; v = w + 0.1; '
for out in ('0.04, 100, torch.uint8', '1.0, 0, torch.float32'):
    ROWS += BN + ONE + 'qbatch_norm2d(x, 0.02, 120, w, b, m, v, 1e-5, %s)\n' % out
ROWS += BN + ONE + 'qbatch_norm2d(x[0], 0.02, 120, w, b, m, v, 1e-5, 0.04, 100, torch.uint8)  ## qx must have 4 dims, but has 3\n'
HALF = 'x = torch.arange(48, dtype=torch.float32).view(3, 16).sin(); w = torch.arange(80, dtype=torch.float32).view(5, 16).cos(); b = torch.tensor([0.5, -1., 2., 0., 0.25]); p = ' + ONE + 'linear_prepack_fp16(w, None); '
for row in ('linear_dynamic_fp16(x, p, b)', 'linear_relu_dynamic_fp16(x.view(1, 3, 16), p, None)',
            'linear_dynamic_fp16(x.half(), p, b)  ## x must be float32, and w a matrix of float16'):
    ROWS += HALF + ONE + row + '\n'

# Embeddings whose rows are codes with their own scale.
BAG = 'w = (torch.arange(24, dtype=torch.float32).view(3, 8) * 7 % 11 - 4.5) * 0.37; i = torch.tensor([0, 2, 1, 1]); o = torch.tensor([0, 1, 1]); f = torch.tensor([0.5, 1., 2., 3.]); m = torch.tensor([0, -1, 1, 2], dtype=torch.int32); '
for bits, columns in (('byte', 1), ('4bit', 2), ('2bit', 4)):
    OF = 'torch.ops.quantized.embedding_bag_%s_' % bits
    START = BAG + 'p = ' + OF + 'prepack(w); '
    for w in ('w', 'w.half()', 'w * 0', '(w * 1e-6)', 'w * 1e30' if bits == 'byte' else 'w * 30', 'w[:0]', 'w.t().contiguous().t()'):
        ROWS += BAG + OF + 'prepack(%s)\n' % w
    ROWS += START + OF + 'unpack(p)\n' + START + OF + 'unpack(' + OF + 'prepack(w.half()))\n'
    ROWS += BAG + OF + 'prepack_with_rowwise_min_max(w, torch.tensor([[-5., 5.], [-4., 6.], [-2., 3.]]))\n'
    for rest in ('i, o', 'i.int(), o.int()', 'i.view(2, 2)', 'i, o, False, 1', 'i, o, True, 0, False, f', 'i.view(2, 2), None, False, 0, False, f',
                 'i, torch.tensor([0, 1, 4]), False, 0, False, None, None, True', 'i[:0], o * 0', 'torch.tensor([0, 1, 2, 3, 3]), torch.tensor([0, 2]), False, 0, True, None, m',
                 'i, o, False, 0, True, None, m[:1]', 'i, o, False, 0, False, None, m'):
        ROWS += START + OF + 'rowwise_offsets(p, %s)\n' % rest
    for rest, mark, text in (
            ('i + 1, o', '##', 'index 1 is 3, but the weight has rows 0 to 2'), ('i - 1, o', '#!', 'index 0 is -1, but the weight has rows 0 to 2'),
            ('i', '##', 'with indices of 1 dim, offsets must be'), ('i.view(2, 2), o', '##', 'with 2 dims, offsets must be NULL'),
            ('i, torch.tensor([0, 2, 9])', '##', 'offsets[2] is 9, but offsets must not decrease, and be at most 4'),
            ('i, torch.tensor([0, 2, 1])', '#!', 'offsets[2] is 1, but offsets must not decrease'), ('i.float(), o', '##', 'indices must be int32 or int64'),
            ('i, o, False, 0, False, f[:2]', '#!', 'per_sample_weights must be float32, with an element for each of the 4'),
            ('torch.tensor([4]), o[:1], False, 0, True, None, m', '#!', 'index 0 is 4, but the weight has rows 0 to 3'),
            ('i, o, False, 0, True, None, m + 2', '#!', 'index 1 is 3, but the weight has rows 0 to 2')):
        ROWS += START + OF + 'rowwise_offsets(p, %s)  %s %s\n' % (rest, mark, text)
    ROWS += START + OF + 'rowwise_offsets(w, i, o)  ## weight must be a packed matrix of uint8\n' + START + OF + 'unpack(p[:, :3])  #! weight must be a packed matrix of uint8\n'
    ROWS += BAG + OF + 'prepack(w.double())  #! weight must be a matrix of float32 or float16\n'
    if columns > 1:
        ROWS += BAG + OF + 'prepack(w, True)\n' + BAG + OF + 'prepack(w.half(), True, 50, 0.5)\n'
        ROWS += BAG + OF + 'prepack(w, True, 0)  #! nbins must be 1 to 100000\n'
        ROWS += BAG + OF + 'prepack(w[:, :3])  ## the number of columns of weight, 3, must be a multiple of %d\n' % columns
    ROWS += BAG + OF + 'prepack_with_rowwise_min_max(w, w[:, :2].t())  ## rowwise_min_max must have the dtype of weight\n'
ROWS += BAG + 'torch.ops.quantized.embedding_bag_byte_prepack(w.view(3, 2, 4))\n'

# Fake quantisation with an observer: the state after two calls, the result, its gradient.
OBS = 'x = (torch.arange(24, dtype=torch.float32).view(4, 6) * 7 % 11 - 4.5) * 0.37; a = torch.ones([1]); b = torch.ones([1]); l = torch.full([%s], float(\'inf\')); h = l.neg(); s = torch.ones([%s]); z = torch.zeros([%s], dtype=torch.int32); '
FUSED = 'torch.fused_moving_avg_obs_fake_quant(%s, a, b, l, h, s, z, 0.01, %s)'
for limits in ('-128, 127, 0', '0, 127, 0', '0, 255, 0', '-8, 7, 0'):
    for rows in ('False', 'True'):
        for symmetric in ('False', 'True'):
            n = '4' if rows == 'True' else '1'
            call = FUSED % ('%s', '%s, %s, %s' % (limits, rows, symmetric))
            start = OBS.replace('%s', n) + 'y = ' + call % 'x' + '; y = ' + call % '(x * 3)' + '; '
            ROWS += start + 'return y\n' + start + 'return torch.cat([l, h, s, z.float()])\n'
for x in ('x.abs()', '(x * 1e-9)', '(x.neg().abs() * 1e-3).neg()', '(x * 0)'):
    ROWS += OBS.replace('%s', '1') + 'y = ' + FUSED % (x, '0, 127, 0') + '; return torch.cat([l, h, s, z.float(), y.view(-1)])\n'
ROWS += OBS.replace('%s', '0') + 'y = ' + FUSED % ('x', '-8, 7, 0, True') + '; return torch.cat([l, h, s, z.float(), y.view(-1)])\n'
ROWS += OBS.replace('%s', '1') + 'x.requires_grad_(); y = ' + FUSED % ('x', '-8, 7, 0') + '; a = a * 0; y = ' + FUSED % ('(x * 2)', '-8, 7, 0') + '; (y * y).sum().backward(); return x.grad\n'
ROWS += OBS.replace('%s', '4') + 'b = b * 0; y = ' + FUSED % ('x', '-8, 7, 0, True') + '; return torch.cat([l, h, s, z.float(), y.view(-1)])\n'
ROWS += OBS.replace('%s', '1') + 'a = a * 0; b = b * 0; y = ' + FUSED % ('x', '-8, 7, 0') + '; return torch.cat([l, s, z.float(), y.view(-1)])\n'
ROWS += OBS.replace('%s', '1') + 'y = torch.ops.aten._fused_moving_avg_obs_fq_helper_functional(x, a, b, l, h, s, z, 0.01, -8, 7, 0); return torch.cat([y[0].view(-1), y[1].float().view(-1), y[2], y[3], y[4], y[5].float(), l, s])\n'
for n, x, rest, text in (('2', 'x', '-8, 7, 0, True', 'running_min must have dtype float32 and 4 elements, but has float32 and 2'),
                         ('4', 'x', '-8, 7, 1, True', 'ch_axis must be 0'), ('1', 'x.double()', '-8, 7, 0', 'self must be float32, but is float64'),
                         ('1', 'x', '8, 7, 0', '`quant_min` should be less than or equal to `quant_max`.')):
    ROWS += OBS.replace('%s', n) + FUSED % (x, rest) + '  ## ' + text + '\n'
ROWS += OBS.replace('%s', '1') + FUSED % ('x[:0]', '-8, 7, 0') + '\n'

# Products of torchao, which PyTorch computes on GPUs only; and of activations with weights of 4 bits.
INTS = 'a = (torch.arange(17 * 16).view(17, 16) * 37 % 255 - 127).to(torch.int8); b = (torch.arange(128).view(16, 8) * 29 % 255 - 127).to(torch.int8); s = torch.arange(17, dtype=torch.float32).view(17, 1) * 0.01; '
ROWS += INTS + AO + 'int_matmul(a, b)  #= ' + INTS + 'torch._int_mm(a, b)\n'
ROWS += INTS + AO + 'int_scaled_matmul(a, b, s)  #= ' + INTS + 'torch._int_mm(a, b).float() * s\n'
ROWS += INTS + AO + 'int_scaled_matmul(a, b, s[:3])  #! scales1 must have a floating dtype, and an element for each of the 17 rows of a\n'
FOUR = 'w = (torch.arange(192).view(6, 32) * 37 % 256).to(torch.uint8); x = torch.arange(192, dtype=torch.float32).view(3, 64).sin(); b = torch.arange(6, dtype=torch.float32); '
for group, bias, dtype in ((32, 'b', 'float32'), (32, 'None', 'float32'), (64, 'b', 'float32')):
    ROWS += FOUR + 's = torch.arange(%d, dtype=torch.float32).view(6, %d) * 0.01; p = torch.ops.aten._dyn_quant_pack_4bit_weight(w, s, %s, %d, 64, 6); torch.ops.aten._dyn_quant_matmul_4bit(x.to(torch.%s), p, %d, 64, 6)\n' % (
        384 // group, 64 // group, bias, group, dtype, group)


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
        return statements, '!' + plain_names(rest)
    try:
        return row, given(row)
    except Exception as error:
        return row, '!' + plain_names(str(error).strip().split('\n')[0].split(' File an issue')[0])


warnings.simplefilter('ignore')
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'calls.txt')
with open(path, 'w') as out:
    for line in ROWS.strip().split('\n'):
        out.write('%s\n%s\n' % expected(line))
