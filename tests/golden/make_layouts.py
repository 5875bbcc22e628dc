#!/usr/bin/env python3
"""Writes tests/golden/layouts.txt: how results and gradients lie in memory in PyTorch, if inputs are channels last.

    cc -O1 -shared -fPIC ../oracle/shim.c -o shim.so -lm -lpthread && python3 make_layouts.py ./shim.so

The library is only asked for the operators and for the arguments of their test cases; CASES below has more.  A line is

    operator | case | inputs results gradients gradients .grad | inputs ... | dtype results ...

inputs says which tensors of 4 and 5 dims are channels last: none, all, only the first, the others, or all, as a slice
of larger tensors.  results has a word for each result, and gradients for each tensor of floating-point numbers: first
for contiguous gradients of the results, then for gradients that are channels last.  .grad is what backward leaves in
the tensors, for contiguous gradients.  Words have commas between them: C contiguous, L channels last (as far as dims
have more than one element), 0 no elements, other strides as a:b:c (* where a dim has one element), - no tensor or no
gradient.  Instead of words: x if PyTorch refuses the call.  A dtype of whole numbers is written only if its results lie
otherwise than those of float32: one word list for each of the five inputs, or only x.

Also writes layouts_quantized.txt, for expressions of TorchScript with quantized tensors: expression | words, one for each
of the inputs."""
import math, os, random, re, sys
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))
import differ, torch
from differ import Absent, Library, Reader, attempt, call_torch, flat, leaves

CASES = '''
conv2d | [2,3,6,5], [4,3,3,3], [4], 1, 1
conv2d | [2,4,6,5], [6,2,3,3], [6], (2,1), (1,0), (1,2), 2
conv2d | [2,4,5,5], [4,1,3,3], [4], 1, 1, 1, 4
conv2d | [2,16,5,5], [8,16,1,1], [8]
conv2d | [2,1,5,5], [3,1,3,3], [3], 1, 1
conv2d | [2,3,5,5], [1,3,3,3], [1], 1, 1
conv2d | [1,3,1,1], [4,3,1,1], [4]
conv2d | [2,3,1,1], [4,3,1,1], [4]
conv2d | [0,3,5,5], [4,3,3,3], [4]
conv2d | [3,6,5], [4,3,3,3], [4]
conv3d | [2,3,4,5,4], [4,3,3,3,3], [4], 1, 1
conv3d | [2,4,4,5,4], [4,2,2,2,2], [4], (2,1,1), (0,1,0), 1, 2
conv3d | [2,1,4,5,4], [4,1,3,3,3], [4], 1, 1
conv3d | [2,3,1,1,1], [4,3,1,1,1], [4]
conv3d | [0,3,4,4,4], [4,3,3,3,3], [4]
conv_transpose2d.input | [2,3,4,5], [3,4,3,3], [4], 2, 1, 1
conv_transpose2d.input | [2,4,4,5], [4,3,2,3], [6], 1, 0, 0, 2
conv_transpose2d.input | [2,4,4,5], [4,1,2,3], [4], 1, 0, 0, 4, 2
conv_transpose3d.input | [2,3,3,4,3], [3,4,2,2,2], [4], 2
conv_transpose3d.input | [2,4,3,4,3], [4,3,2,2,2], [6], 2, 0, 0, 2
conv2d.padding | [2,3,6,5], [4,3,3,2], [4], 1, 'same'
conv2d.padding | [2,3,6,5], [4,3,3,2], [4], 1, 'valid'
max_pool2d | [2,3,6,5], 2
max_pool2d | [2,3,6,5], 3, 2, 1, 1, True
max_pool2d | [2,1,6,5], 2
max_pool2d_with_indices | [2,3,6,5], 2
max_pool2d_with_indices | [2,8,6,5], 3, 1, 1, 2
max_pool2d_with_indices | [3,6,5,4], 2
max_pool3d | [2,3,4,5,4], 2
max_pool3d_with_indices | [2,3,4,5,4], 2
max_pool3d_with_indices | [2,1,4,5,4], 2
max_pool3d_with_indices | [3,4,5,4], 2
avg_pool2d | [2,3,6,5], 2
avg_pool2d | [2,3,6,5], 3, 2, 1, True, False
avg_pool2d | [2,1,6,5], 2
avg_pool3d | [2,3,4,5,4], 2
avg_pool3d | [2,3,4,5,4], 3, 2, 1, True, False, 5
adaptive_avg_pool2d | [2,3,6,5], (2,3)
adaptive_avg_pool2d | [2,3,6,5], (1,1)
adaptive_avg_pool2d | [2,3,1,1], (2,3)
adaptive_avg_pool2d | [2,1,6,5], (2,3)
adaptive_max_pool2d | [2,3,6,5], (2,3)
adaptive_max_pool2d | [2,1,6,5], (1,1)
adaptive_avg_pool3d | [2,3,4,5,4], (2,3,2)
adaptive_avg_pool3d | [2,3,4,5,4], (1,1,1)
adaptive_max_pool3d | [2,3,4,5,4], (2,3,2)
fractional_max_pool2d | [2,3,6,5], 2, (3,2), [2,3,2]u
fractional_max_pool3d | [2,3,4,5,6], 2, (2,2,2), [2,3,3]u
max_unpool2d | [2,3,2,2], [2,3,2,2]i16, (4,4)
max_unpool3d | [2,3,2,2,2], [2,3,2,2,2]i64, (4,4,4), (2,2,2), (0,0,0)
batch_norm | [2,3,4,5], [3], [3], [3], [3]+, True, 0.1, 1e-5, False
batch_norm | [2,3,4,5], [3], [3], [3], [3]+, False, 0.1, 1e-5, False
batch_norm | [2,3,2,4,5], [3], [3], [3], [3]+, True, 0.1, 1e-5, False
batch_norm | [2,3,2,4,5], [3], [3], [3], [3]+, False, 0.1, 1e-5, False
batch_norm | [2,1,4,5], [1], [1], [1], [1]+, True, 0.1, 1e-5, False
batch_norm | [2,3,1,1], [3], [3], [3], [3]+, True, 0.1, 1e-5, False
batch_norm | [2,3,4,5], None, None, None, None, True, 0.1, 1e-5, False
native_batch_norm | [2,3,4,5], [3], [3], [3], [3]+, True, 0.1, 1e-5
instance_norm | [2,3,4,5], [3], [3], None, None, True, 0.1, 1e-5, False
instance_norm | [2,3,2,4,5], [3], [3], None, None, True, 0.1, 1e-5, False
instance_norm | [2,3,4,5], None, None, [3], [3]+, False, 0.1, 1e-5, False
group_norm | [2,4,4,5], 2, [4], [4]
group_norm | [2,4,2,4,5], 2, [4], [4]
group_norm | [2,3,4,5], 1
group_norm | [2,3,1,1], 3, [3], [3]
native_group_norm | [2,4,4,5], [4], [4], 2, 4, 20, 2, 1e-5
layer_norm | [2,3,4,5], (5,), [5], [5]
layer_norm | [2,3,4,5], (3,4,5)
rms_norm | [2,3,4,5], (5,), [5]
upsample_nearest2d | [2,3,4,5], (6,7)
upsample_nearest2d | [2,16,4,5], (8,10)
upsample_nearest2d | [2,1,4,5], (6,7)
upsample_nearest2d | [2,3,1,1], (6,7)
upsample_nearest2d | [2,3,4,5], (1,1)
upsample_nearest2d.vec | [2,3,4,5], None, (2.,2.)
_upsample_nearest_exact2d | [2,3,4,5], (6,7)
upsample_nearest3d | [2,3,2,4,5], (3,6,7)
_upsample_nearest_exact3d | [2,3,2,4,5], (3,6,7)
upsample_bilinear2d | [2,3,4,5], (6,7), False
upsample_bilinear2d | [2,16,4,5], (8,10), True
upsample_bilinear2d | [2,1,4,5], (8,10), True
_upsample_bilinear2d_aa | [2,3,4,5], (6,7), False
_upsample_bilinear2d_aa | [2,3,6,7], (3,4), False
_upsample_bicubic2d_aa | [2,3,6,7], (3,4), False
upsample_bicubic2d | [2,3,4,5], (6,7), False
upsample_trilinear3d | [2,3,2,4,5], (3,6,7), False
grid_sampler | [2,3,4,5], [2,3,3,2], 0, 0, False
grid_sampler | [2,3,4,5], [2,3,3,2], 1, 1, True
grid_sampler | [2,3,4,5], [2,3,3,2], 2, 2, True
grid_sampler_2d | [2,3,4,5], [2,3,3,2], 0, 0, False
grid_sampler_3d | [2,3,2,4,5], [2,3,3,2,3], 0, 0, False
affine_grid_generator | [2,2,3], (2,3,4,5), False
constant_pad_nd | [2,3,4,5], (1,2,0,1)
constant_pad_nd | [2,3,4,5], (1,-1,0,-2)
constant_pad_nd | [2,3,2,4,5], (1,2,0,1,1,0), 2.5
constant_pad_nd | [2,3,4,5], (0,0,0,0,1,1)
reflection_pad2d | [2,3,4,5], (1,2,0,1)
reflection_pad2d | [2,1,4,5], (1,2,0,1)
replication_pad2d | [2,3,4,5], (1,2,0,1)
reflection_pad3d | [2,3,3,4,5], (1,2,0,1,1,0)
replication_pad3d | [2,3,3,4,5], (1,2,0,1,1,0)
pad | [2,3,4,5], (1,2,0,1), 'reflect'
pad | [2,3,4,5], (1,2,0,1), 'circular'
pad | [2,3,4,5], (1,2,0,1), 'replicate'
pixel_shuffle | [2,8,3,4], 2
pixel_unshuffle | [2,3,4,6], 2
channel_shuffle | [2,6,3,4], 2
native_channel_shuffle | [2,6,3,4], 2
softmax.int | [2,3,4,5], 1
softmax.int | [2,3,4,5], 3
log_softmax.int | [2,3,4,5], 1
log_softmax.int | [2,3,4,5], -1
_softmax | [2,3,2,4,5], 1, False
add.Tensor | [2,3,4,5], [2,3,4,5]
add.Tensor | [2,3,4,5], [3,1,1]
add.Tensor | [2,3,4,5], [1,3,1,1]
add.Tensor | [2,3,4,5], [5]
add.Tensor | [2,1,4,5], [2,3,1,1]
add.Tensor | [2,3,2,4,5], [1,3,1,1,1]
mul.Tensor | [2,3,4,5], [2,1,4,5]
mul.Tensor | [1,3,4,5], [2,3,4,5]
mul.Tensor | [2,1,4,5], [2,1,4,5]
mul.Tensor | [2,3,1,1], [2,3,1,1]
mul.Tensor | [2,3,1,1], [2,3,4,5]
add.Scalar | [2,3,4,5], 2
relu | [2,3,4,5]
sigmoid | [2,3,2,4,5]
gelu | [2,3,4,5]
silu | [2,1,4,5]
hardswish | [2,3,4,5]
hardtanh | [2,3,4,5]
leaky_relu | [2,3,4,5], 0.1
elu | [2,3,4,5]
prelu | [2,3,4,5], [3]
prelu | [2,3,4,5], [1]
_prelu_kernel | [2,3,4,5], [1,3,1,1]
glu | [2,4,4,5], 1
threshold | [2,3,4,5], 0.1, 0
softplus | [2,3,4,5]
mish | [2,3,4,5]
rrelu | [2,3,4,5], 0.1, 0.3, False
clamp | [2,3,4,5], -1, 1
lt.Tensor | [2,3,4,5], [2,3,4,5]
maximum | [2,3,4,5], [2,3,4,5]
where.self | [2,3,4,5]b, [2,3,4,5], [2,3,4,5]
where.ScalarSelf | [2,3,4,5]b, 1.5, [2,3,4,5]
where.self | [4,5]b, [2,3,4,5], [3,1,1]
addcmul | [2,3,4,5], [2,3,4,5], [2,3,4,5]
lerp.Scalar | [2,3,4,5], [2,3,4,5], 0.3
lerp.Tensor | [2,3,4,5], [2,3,4,5], [2,3,4,5]
masked_fill.Scalar | [2,3,4,5], [2,3,4,5]b, 2
masked_fill.Scalar | [2,3,4,5], [4,5]b, 2
masked_select | [2,3,4,5], [2,3,4,5]b
masked_scatter | [2,3,4,5], [2,3,4,5]b, [2,3,4,5]
cat | {[2,3,4,5], [2,2,4,5]}, 1
cat | {[2,3,4,5], [2,3,4,5]}, 0
cat | {[2,3,4,5], [2,3,4,5]}, -1
cat | {[2,3,2,4,5], [2,1,2,4,5]}, 1
cat | {[2,1,4,5], [2,1,4,5]}, 1
cat | {[2,3,4,5], [0], [2,3,4,5]}, 1
stack | {[2,3,4,5], [2,3,4,5]}, 1
stack | {[2,3,4,5], [2,3,4,5]}, 0
split.Tensor | [2,4,4,5], 2, 1
chunk | [2,4,4,5], 2, 1
unbind.int | [2,3,4,5], 0
sum | [2,3,4,5]
sum.dim_IntList | [2,3,4,5], (1,), True
sum.dim_IntList | [2,3,4,5], (1,), False
sum.dim_IntList | [2,3,4,5], (2,3), True
sum.dim_IntList | [2,3,4,5], (2,3), False
sum.dim_IntList | [2,3,4,5], (0,)
mean.dim | [2,3,4,5], (2,3), True
mean.dim | [2,3,4,5], (-1,)
mean.dim | [2,3,2,4,5], (1,)
var.correction | [2,3,4,5], (2,3)
var.correction | [2,3,4,5], (1,), correction=1, keepdim=True
std.correction | [2,3,4,5], (0,)
var_mean.correction | [2,3,4,5], (1,)
prod.dim_int | [2,3,4,5], 1
amax | [2,3,4,5], (1,)
amax | [2,3,4,5], (2,3), True
amin | [2,3,4,5], (0,)
max.dim | [2,3,4,5], 1
max.dim | [2,3,4,5], 1, True
min.dim | [2,3,4,5], 3
argmax | [2,3,4,5], 1
argmin | [2,3,4,5], 2, True
median.dim | [2,3,4,5], 1
mode | [2,3,4,5], 1
kthvalue | [2,3,4,5], 2, 1
sort | [2,3,4,5], 1
argsort | [2,3,4,5], 1
topk | [2,3,4,5], 2, 1
cumsum | [2,3,4,5], 1
cumprod | [2,3,4,5], 2
cummax | [2,3,4,5], 1
logcumsumexp | [2,3,4,5], 1
logsumexp | [2,3,4,5], (1,)
norm.ScalarOpt_dim | [2,3,4,5], 2, (1,)
linalg_vector_norm | [2,3,4,5], 2, (1,), True
linalg_vector_norm | [2,3,4,5], 2
all.dim | [2,3,4,5]b, 1
any.dim | [2,3,4,5]b, 1, True
count_nonzero.dim_IntList | [2,3,4,5], (1,)
mse_loss | [2,3,4,5], [2,3,4,5], 0
mse_loss | [2,3,4,5], [2,3,4,5], 1
l1_loss | [2,3,4,5], [2,3,4,5], 0
smooth_l1_loss | [2,3,4,5], [2,3,4,5], 0
huber_loss | [2,3,4,5], [2,3,4,5], 0
binary_cross_entropy | [2,3,4,5]u, [2,3,4,5]u, None, 0
binary_cross_entropy_with_logits | [2,3,4,5], [2,3,4,5]u, None, None, 0
soft_margin_loss | [2,3,4,5], [2,3,4,5], 0
kl_div | [2,3,4,5], [2,3,4,5]u, 0
nll_loss2d | [2,3,4,5], [2,4,5]i3, [3], 0
nll_loss2d | [2,3,4,5], [2,4,5]i3, None, 1
nll_loss_nd | [2,3,4,5], [2,4,5]i3
cross_entropy_loss | [2,3,4,5], [2,4,5]i3, [3]+, 1, -100, 0.1
cross_entropy_loss | [2,3,4,5], [2,3,4,5]u, [3]+, 1
cross_entropy_loss | [2,3,2,4,5], [2,2,4,5]i3, None, 0
poisson_nll_loss | [2,3,4,5], [2,3,4,5], True, False, 1e-8, 0
cosine_similarity | [2,3,4,5], [2,3,4,5], 1
bilinear | [2,3,4,5], [2,3,4,2], [3,5,2], [3]
linear | [2,3,4,5], [3,5], [3]
matmul | [2,3,4,5], [5,4]
matmul | [2,3,4,5], [2,3,5,4]
clone | [2,3,4,5]
clone | [2,3,4,5], memory_format=0
clone | [2,3,4,5], memory_format=2
clone | [2,1,4,5], memory_format=2
clone | [2,3,1,1], memory_format=2
clone | [2,3,1,1]
clone | [2,3,2,4,5], memory_format=3
clone | [2,3,2,4,5]
contiguous | [2,3,4,5]
contiguous | [2,3,4,5], memory_format=2
contiguous | [2,1,4,5], memory_format=2
contiguous | [2,3,2,4,5], memory_format=3
empty_like | [2,3,4,5]
empty_like | [2,3,4,5], memory_format=0
empty_like | [2,3,4,5], memory_format=2
empty_like | [2,3,2,4,5], memory_format=3
zeros_like | [2,3,4,5]
zeros_like | [2,1,4,5]
ones_like | [2,3,4,5], memory_format=2
full_like | [2,3,4,5], 2
rand_like | [2,3,4,5]
randn_like | [2,3,2,4,5]
randint_like | [2,3,4,5], 3
new_zeros | [2,3,4,5], (2,3,4,5)
new_empty | [2,3,4,5], (2,3,4,5)
to.dtype | [2,3,4,5], float64
to.dtype | [2,3,4,5], float64, False, False, 0
to.dtype | [2,3,4,5], float64, False, False, 2
to.dtype | [2,3,4,5], float32, False, True, 2
_to_copy | [2,3,4,5], dtype=float64
_to_copy | [2,3,4,5], memory_format=2
type_as | [2,3,4,5], [2]i3
flip | [2,3,4,5], (1,)
flip | [2,3,4,5], (2,3)
roll | [2,3,4,5], 1, 1
rot90 | [2,3,4,5], 1, (2,3)
repeat | [2,3,4,5], (1,2,1,1)
repeat | [2,3,4,5], (2,1,1,1)
repeat_interleave.self_int | [2,3,4,5], 2, 1
tile | [2,3,4,5], (2,)
expand | [2,1,4,5], (2,3,4,5)
flatten.using_ints | [2,3,4,5], 1
flatten.using_ints | [2,3,4,5], 2
reshape | [2,3,4,5], (2,3,20)
reshape | [2,3,4,5], (2,12,5)
unflatten.int | [2,4,4,5], 1, (2,2)
permute | [2,3,4,5], (0,2,3,1)
transpose.int | [2,3,4,5], 1, 3
unsqueeze | [2,3,4,5], 2
squeeze.dim | [2,1,4,5], 1
select.int | [2,3,4,5], 1, 1
slice.Tensor | [2,3,4,5], 1, 0, 2
narrow | [2,3,4,5], 2, 1, 2
unfold | [2,3,4,5], 3, 2, 1
diagonal | [2,3,4,4], 0, 2, 3
tril | [2,3,4,5]
triu | [2,3,4,5]
movedim.int | [2,3,4,5], 1, -1
index_select | [2,3,4,5], 1, [2]i3
index_select | [2,3,4,5], 0, [2]i2
index.Tensor | [2,3,4,5], {None, [2]i3}
index.Tensor | [2,3,4,5], {[2]i2}
index.Tensor | [2,3,4,5], {[2,3,4,5]b}
index_put | [2,3,4,5], {None, [2]i3}, [2,2,4,5]
index_fill.int_Scalar | [2,3,4,5], 1, [2]i3, 2
index_add | [2,3,4,5], 1, [2]i3, [2,2,4,5]
index_copy | [2,3,4,5], 0, [1]i2, [1,3,4,5]
gather | [2,3,4,5], 1, [2,2,4,5]i3
scatter.src | [2,3,4,5], 1, [2,1,4,5]i3, [2,1,4,5]
scatter_add | [2,3,4,5], 1, [2,2,4,5]i3, [2,3,4,5]
take_along_dim | [2,3,4,5], [2,2,4,5]i3, 1
slice_scatter | [2,3,4,5], [2,1,4,5], 1, 1, 2
select_scatter | [2,3,4,5], [2,4,5], 1, 1
im2col | [2,3,4,5], (2,2), (1,1), (0,0), (1,1)
dropout | [2,3,4,5], 0.5, False
native_dropout | [2,3,4,5], 0.5, True
feature_dropout | [2,3,4,5], 0.5, True
alpha_dropout | [2,3,4,5], 0.5, False
bernoulli | [2,3,4,5]u
bernoulli.p | [2,3,4,5]u, 0.4
scaled_dot_product_attention | [2,3,4,5], [2,3,4,5], [2,3,4,5]
fft_fft | [2,3,4,5], None, 1
fft_fft2 | [2,3,4,5]
fft_rfft | [2,3,4,5]
nan_to_num | [2,3,4,5]
copy | [2,3,4,5], [2,3,4,5]
copy_ | [2,3,4,5], [2,3,4,5]
add_.Tensor | [2,3,4,5], [2,3,4,5]
relu_ | [2,3,4,5]
complex | [2,3,4,5], [2,3,4,5]
frexp.Tensor | [2,3,4,5]
rsub.Scalar | [2,3,4,5], 2
pow.Tensor_Scalar | [2,3,4,5]+, 2
pow.Scalar | 2, [2,3,4,5]
bitwise_and.Tensor | [2,3,4,5]i5, [2,3,4,5]i5
floor_divide | [2,3,4,5], [2,3,4,5]
isclose | [2,3,4,5], [2,3,4,5]
isnan | [2,3,4,5]
isin.Tensor_Tensor | [2,3,4,5]i5, [3]i5
nonzero | [2,3,4,5]
bucketize.Tensor | [2,3,4,5], [4]
renorm | [2,3,4,5], 2, 1, 1.
dist | [2,3,4,5], [2,3,4,5], 2
cdist | [2,3,4,5], [2,3,2,5]
pixel_shuffle | [8,2,3], 2
fake_quantize_per_channel_affine | [2,3,4,5], [3]+, [3]i5, 1, 0, 255
fake_quantize_per_tensor_affine | [2,3,4,5], 0.1, 3, 0, 255
_weight_norm | [4,3,2,2], [4,1,1,1]+, 0
log_sigmoid | [2,3,4,5]
logit | [2,3,4,5]u, 0.1
celu | [2,3,4,5], 0.5
hardsigmoid | [2,3,4,5]
hardshrink | [2,3,4,5], 0.5
softshrink | [2,3,4,5], 0.5
tanh | [2,3,4,5]
_foreach_add.List | {[2,3,4,5], [2,3,1,1]}, {[2,3,4,5], [2,3,1,1]}
'''
QUANTIZED = '''
quantize_per_channel(x, w, k, 1, 13)
quantize_per_channel(x, w, k - 5, 1, 12)
relu(q)
relu(p)
clone(q)
cat([q, p], 1)
mean(q, [2, 3])
mean(q, [2, 3], True)
max_pool2d(q, [2, 2])
nn.functional.avg_pool2d(q, [2, 2])
nn.functional.adaptive_avg_pool2d(q, [2, 2])
nn.functional.hardtanh(q, -1., 1.)
nn.functional.interpolate(q, [6, 7], mode='nearest')
nn.functional.interpolate(q, [6, 7], mode='bilinear')
nn.functional.pad(q, [1, 2, 0, 1], 'reflect')
flatten(q, 1)
permute(q, [0, 2, 3, 1])
transpose(q, 1, 3)
flip(q, [2])
ops.quantized.add(q, p, 0.1, 100)
ops.quantized.add_relu(q, p, 0.1, 100)
ops.quantized.mul(q, p, 0.1, 100)
ops.quantized.mul(q, 0.5)
ops.quantized.add(q, 0.5)
ops.quantized.cat([q, p], 1, 0.1, 100)
ops.quantized.cat_relu([q, p], 1, 0.1, 100)
ops.quantized.hardswish(q, 0.04, 10)
ops.quantized.elu(q, 0.03, 30, 1.2)
ops.quantized.celu(q, 0.03, 30, 1.2)
ops.quantized.sigmoid(q, 0.004, 2)
ops.quantized.leaky_relu(q, 0.2, False, 0.04, 30)
ops.quantized.relu6(q)
ops.quantized.clamp(q, -1., 1.5)
ops.quantized.softmax(q, 1, 0.004, 2)
ops.quantized.prelu(q, pw, 0.04, 100)
ops.quantized.dropout(q, 0.5, 1, 0.5, False)
ops.quantized.layer_norm(q, [4, 5], None, None, 1e-5, 0.04, 100)
ops.quantized.group_norm(q, 3, w, v, 1e-5, 0.04, 100)
ops.quantized.instance_norm(q, w, v, 1e-5, 0.04, 100)
ops.quantized.batch_norm2d(q, w, v, v, w, 1e-5, 0.04, 100)
ops.quantized.batch_norm2d_relu(q, w, v, v, w, 1e-5, 0.04, 100)
ops.quantized.conv2d(q, ops.quantized.conv2d_prepack(f, v4, [1, 1], [1, 1], [1, 1], 1), 0.1, 100)
ops.quantized.conv2d_relu(q, ops.quantized.conv2d_prepack(f, v4, [2, 1], [1, 1], [1, 1], 1), 0.1, 100)
ops.quantized.linear(q, ops.quantized.linear_prepack(m, v4), 0.1, 100)
ops.quantized.matmul(q, p.transpose(2, 3), 0.1, 100)
'''
LAYOUTS = ['none', 'all', 'first', 'others', 'sliced']
WHOLE = ['i64', 'i32', 'u8', 'bool']
CONSTANT = {'running_mean', 'running_var', 'save_mean', 'save_invstd', 'save_var', 'mean', 'rstd', 'total_weight'}

def last(t): return torch.channels_last if t.dim() == 4 else torch.channels_last_3d
def laid(x, how, seen):
    """Returns x with its tensors of 4 and 5 dims in the layout `how`."""
    if isinstance(x, (list, tuple)): return [laid(y, how, seen) for y in x]
    if not isinstance(x, torch.Tensor): return x
    seen[0] += 1
    if x.dim() not in (4, 5) or how == 'none' or (how == 'first' and seen[0] > 1) or (how == 'others' and seen[0] == 1): return x
    if how != 'sliced': return x.contiguous(memory_format=last(x))
    wide = torch.zeros([n + (i != 2) for i, n in enumerate(x.shape)], dtype=x.dtype).contiguous(memory_format=last(x))
    return wide[tuple(slice(0, n) for n in x.shape)].copy_(x)
def copied(x):
    """Returns a copy with the same strides, also of tensors with gaps between their elements."""
    if isinstance(x, (list, tuple)): return [copied(y) for y in x]
    if not isinstance(x, torch.Tensor) or not x.numel(): return x
    return torch.zeros(sum((n - 1) * s for n, s in zip(x.shape, x.stride())) + 1, dtype=x.dtype).as_strided(x.shape, x.stride()).copy_(x)

def lies(t, order):
    n = 1
    for d in order:
        if t.shape[d] > 1 and t.stride(d) != n: return False
        n *= t.shape[d]
    return True
def word(t):
    if not isinstance(t, torch.Tensor): return '-'
    n = t.dim()
    if not t.numel(): return '0'
    if lies(t, range(n - 1, -1, -1)): return 'C'
    if n in (4, 5) and lies(t, [1] + list(range(n - 1, 1, -1)) + [0]): return 'L'
    return ':'.join(str(s) if k > 1 else '*' for s, k in zip(t.stride(), t.shape))
def words(list_): return ','.join(map(word, list_)) or '-'

def gradients(op, full, cotangent, into_grad):
    """Returns the words of the gradients, or x."""
    args = copied(full); places = [x.name for x, v in zip(op._schema.arguments, args) for _ in leaves(v)]
    wrt = [t for t, name in zip(leaves(args), places) if t.is_floating_point()]
    on = [t for t, name in zip(leaves(args), places) if t.is_floating_point() and name not in CONSTANT]
    for t in on: t.requires_grad_(True)
    r, e = attempt(lambda: call_torch(op, args))
    r = [x for x in r if isinstance(x, torch.Tensor) and x.requires_grad] if not e else []
    if not r: return 'x'
    cot = [laid(torch.randn(x.shape, dtype=torch.float64).to(x.dtype), cotangent, [0]) for x in r]
    def run():
        if not into_grad: return torch.autograd.grad(r, on, cot, allow_unused=True)
        torch.autograd.backward(r, cot); return [t.grad for t in on]
    g, e = attempt(run)
    if e: return 'x'
    at = {id(t): k for t, k in zip(on, g)}
    return words([at.get(id(t)) for t in wrt])

def called(name, case, how, dtype):
    """Returns the operator, its arguments, and the words of its results, or x."""
    op = differ.overload(name)
    full = laid(differ.bind(op, *Reader(case, random.Random(3), dtype, '').call()), how, [0])
    torch.manual_seed(0)
    r, e = attempt(lambda: call_torch(op, copied(full)))
    return op, full, 'x' if e else words(r)
def whole(name, case):
    """Returns the words of the dtypes of whole numbers that differ from those of float32."""
    def of(dtype): return [called(name, case, how, dtype)[2] for how in LAYOUTS]
    floats = of(torch.float32); lists = [(d, of(differ.DTYPES[d])) for d in WHOLE]
    return [' '.join([str(differ.DTYPES[d])[6:]] + (['x'] if set(l) == {'x'} else l)) for d, l in lists if l != floats]
def line(name, case, how):
    op, full, r = called(name, case, how, torch.float32)
    if r == 'x': return '%s x x x x' % how
    writes = any(x.alias_info is not None and x.alias_info.is_write for x in op._schema.arguments)
    g = ['x'] * 3 if writes or differ.RANDOM.search(name) else [gradients(op, full, c, b) for c, b in (('none', 0), ('all', 0), ('none', 1))]
    return ' '.join([how, r] + g)

SOURCE = '''def f(x: Tensor, y: Tensor):
    w = torch.full([3], 0.1)
    v = torch.full([3], 0.2)
    v4 = torch.full([4], 0.2)
    k = torch.full([3], 7, dtype=4)
    f = torch.quantize_per_tensor(torch.full([4, 3, 3, 3], 0.4), 0.1, 0, 12)
    m = torch.quantize_per_tensor(torch.full([4, 5], 0.4), 0.1, 0, 12)
    q = torch.quantize_per_tensor(x, 0.05, 60, 13)
    p = torch.quantize_per_tensor(y, 0.04, 90, 13)
    pw = torch.quantize_per_tensor(w, 0.1, 0, 13)
    return %s.dequantize()
'''
def quantized(text):
    """Returns the words of an expression with quantized tensors."""
    x, y = (torch.randn(2, 3, 4, 5) for _ in range(2))
    f = torch.jit.CompilationUnit(SOURCE % ('torch.' + text.replace(' ops.q', ' torch.ops.q'))).f
    def word_of(how):
        seen = [0]
        r, e = attempt(lambda: f(*copied(laid([x, y], how, seen))))
        if e: print(text, how, e)
        return 'x' if e else word(r)
    return ' '.join(word_of(how) for how in LAYOUTS)
def main():
    with open(os.path.join(HERE, 'layouts_quantized.txt'), 'w') as f:
        f.write('# printed by make_layouts.py: layouts of results of quantized operators in PyTorch %s\n' % torch.__version__.split('+')[0])
        for text in QUANTIZED.strip().split('\n'): f.write('%s | %s\n' % (text, quantized(text)))
    lib = Library(sys.argv[1]); work = {}
    for name, cases in lib.operators():
        for case in cases.split(';'):
            if re.search(r'\[\d+(,\d+){3,4}\]', case.replace(' ', '')): work[name, ' '.join(case.split())] = 1
    for text in CASES.strip().split('\n'):
        name, case = text.split(' | ')
        work['aten::' + name, case.strip()] = 1
    for name, case in work:
        if not lib.lib.odx_has(name.encode()): sys.exit('no ' + name)
    calls = [(name, case, how) for name, case in work for how in LAYOUTS]
    got = [x[0] for x in differ.isolated([lambda mark, c=c: [line(*c)] for c in calls], 60)]
    more = differ.isolated([lambda mark, c=c: whole(*c) for c in work], 60)
    with open(os.path.join(HERE, 'layouts.txt'), 'w') as f:
        f.write('# printed by make_layouts.py: layouts of results and gradients in PyTorch %s\n' % torch.__version__.split('+')[0])
        for i in range(0, len(calls), len(LAYOUTS)):
            here = ['%s x x x x' % c[2] if x[0] in '!-' else x for x, c in zip(got[i:], calls[i:i + len(LAYOUTS)])]
            others = [x for x in more[i // len(LAYOUTS)] if x[0] not in '!-']
            if any(x.split()[1] != 'x' for x in here): f.write(' | '.join(list(calls[i][:2]) + here + others) + '\n')
if __name__ == '__main__': main()
