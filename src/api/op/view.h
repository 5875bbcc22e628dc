//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:view       other views of the same elements, conversions, copies
//----------------------------------------------------------------------------------------------------------------------

/* view: the same elements in other sizes, without a copy */
OPD_API opd_tensor *opd_view(opd_tensor *self, opd_ints size);
/* _unsafe_view: view, of what nobody else has */
OPD_API opd_tensor *opd_unsafe_view(opd_tensor *self, opd_ints size);
/* _reshape_alias: view of given strides, from reshape */
OPD_API opd_tensor *opd_reshape_alias(opd_tensor *self, opd_ints size, opd_ints stride);
/* reshape: the same elements in other sizes; a copy where strides ask for one */
OPD_API opd_tensor *opd_reshape(opd_tensor *self, opd_ints shape);
/* expand: dims of size 1 repeated to these sizes, without a copy; -1 keeps a size */
OPD_API opd_tensor *opd_expand(opd_tensor *self, opd_ints size);
OPD_API opd_tensor *opd_expand_full(opd_tensor *self, opd_ints size, bool implicit);
/* transpose.int: dims dim0 and dim1 swapped */
OPD_API opd_tensor *opd_transpose(opd_tensor *self, int64_t dim0, int64_t dim1);
/* t: the transpose of a matrix; what has one dim or none is as it was */
OPD_API opd_tensor *opd_t(opd_tensor *self);
/* permute: dims in this order */
OPD_API opd_tensor *opd_permute(opd_tensor *self, opd_ints dims);
/* select.int: the part of dim at index, without that dim */
OPD_API opd_tensor *opd_select(opd_tensor *self, int64_t dim, int64_t index);
/* slice.Tensor: start to end of dim in steps */
OPD_API opd_tensor *opd_slice(opd_tensor *self, int64_t dim, opd_value start, opd_value end, int64_t step);
/* unsqueeze: a dim of size 1 before dim */
OPD_API opd_tensor *opd_unsqueeze(opd_tensor *self, int64_t dim);
/* squeeze: without the dims (these dims) of size 1 */
OPD_API opd_tensor *opd_squeeze(opd_tensor *self);
/* squeeze.dim: without the dims (these dims) of size 1 */
OPD_API opd_tensor *opd_squeeze_dim(opd_tensor *self, int64_t dim);
/* squeeze.dims: without the dims (these dims) of size 1 */
OPD_API opd_tensor *opd_squeeze_dims(opd_tensor *self, opd_ints dim);
/* detach: self without history */
OPD_API opd_tensor *opd_detach(opd_tensor *self);
/* alias: a view of all of self */
OPD_API opd_tensor *opd_alias(opd_tensor *self);
/* as_strided: a view of self's storage by sizes, strides and offset */
OPD_API opd_tensor *opd_as_strided(opd_tensor *self, opd_ints size, opd_ints stride);
OPD_API opd_tensor *opd_as_strided_full(opd_tensor *self, opd_ints size, opd_ints stride, opd_value storage_offset);
/* select_backward: derivative of select */
OPD_API opd_tensor *opd_select_backward(opd_tensor *grad_output, opd_ints input_sizes, int64_t dim, int64_t index);
/* slice_backward: derivative of slice */
OPD_API opd_tensor *opd_slice_backward(opd_tensor *grad_output, opd_ints input_sizes, int64_t dim, int64_t start,
                                       int64_t end, int64_t step);
/* as_strided_backward: derivative of as_strided */
OPD_API opd_tensor *opd_as_strided_backward(opd_tensor *grad_output, opd_ints input_sizes, opd_ints input_strides,
                                        opd_ints size, opd_ints stride, int64_t storage_offset);
/* flatten.using_ints: dims start_dim to end_dim as one */
OPD_API opd_tensor *opd_flatten(opd_tensor *self);
OPD_API opd_tensor *opd_flatten_full(opd_tensor *self, int64_t start_dim, int64_t end_dim);
/* expand_as: expand to other's sizes */
OPD_API opd_tensor *opd_expand_as(opd_tensor *self, opd_tensor *other);
/* view_as: view of other's sizes */
OPD_API opd_tensor *opd_view_as(opd_tensor *self, opd_tensor *other);
/* reshape_as: reshape to other's sizes */
OPD_API opd_tensor *opd_reshape_as(opd_tensor *self, opd_tensor *other);
/* copy_: writes src into self: broadcast, converted, between devices */
OPD_API opd_tensor *opd_copy_(opd_tensor *self, opd_tensor *src);
OPD_API opd_tensor *opd_copy_full_(opd_tensor *self, opd_tensor *src, bool non_blocking);
/* copy: src with self's sizes and dtype */
OPD_API opd_tensor *opd_copy(opd_tensor *self, opd_tensor *src);
OPD_API opd_tensor *opd_copy_full(opd_tensor *self, opd_tensor *src, bool non_blocking);
/* clone: a copy */
OPD_API opd_tensor *opd_clone(opd_tensor *self);
OPD_API opd_tensor *opd_clone_full(opd_tensor *self, opd_value memory_format);
/* _to_copy: a copy of another dtype or device */
OPD_API opd_tensor *opd_to_copy(opd_tensor *self, opd_scalar_type dtype);
OPD_API opd_tensor *opd_to_copy_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                     opd_value pin_memory, bool non_blocking, opd_value memory_format);
/* contiguous: self when it lies densely in this memory format, else a copy */
OPD_API opd_tensor *opd_contiguous(opd_tensor *self);
OPD_API opd_tensor *opd_contiguous_full(opd_tensor *self, int64_t memory_format);
/* to.dtype: self in this dtype, or on this device; itself where it is so already */
OPD_API opd_tensor *opd_to_dtype(opd_tensor *self, opd_scalar_type dtype);
OPD_API opd_tensor *opd_to_dtype_full(opd_tensor *self, opd_scalar_type dtype, bool non_blocking, bool copy,
                                      opd_value memory_format);
/* _local_scalar_dense: the number in a tensor of one element */
OPD_API opd_value opd_local_scalar_dense(opd_tensor *self);
/* item: the number in a tensor of one element */
OPD_API opd_value opd_item(opd_tensor *self);
/* view.dtype: the same bytes as elements of another dtype, without a copy */
OPD_API opd_tensor *opd_view_dtype(opd_tensor *self, opd_scalar_type dtype);
/* diagonal: the diagonal of dims dim1 and dim2, as the last dim */
OPD_API opd_tensor *opd_diagonal(opd_tensor *self);
OPD_API opd_tensor *opd_diagonal_full(opd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2);
/* linalg_diagonal: diagonal of the last two dims */
OPD_API opd_tensor *opd_linalg_diagonal(opd_tensor *a);
OPD_API opd_tensor *opd_linalg_diagonal_full(opd_tensor *a, int64_t offset, int64_t dim1, int64_t dim2);
/* diagonal_backward: derivative of diagonal */
OPD_API opd_tensor *opd_diagonal_backward(opd_tensor *grad_output, opd_ints input_sizes, int64_t offset, int64_t dim1,
                                        int64_t dim2);
/* unfold: windows of dim: their places as dim, their elements as last dim */
OPD_API opd_tensor *opd_unfold(opd_tensor *self, int64_t dimension, int64_t size, int64_t step);
/* unfold_backward: derivative of unfold */
OPD_API opd_tensor *opd_unfold_backward(opd_tensor *grad_in, opd_ints input_sizes, int64_t dim, int64_t size,
                                        int64_t step);
/* split_with_sizes: parts of these sizes along dim */
OPD_API opd_tensors opd_split_with_sizes(opd_tensor *self, opd_ints split_sizes);
OPD_API opd_tensors opd_split_with_sizes_full(opd_tensor *self, opd_ints split_sizes, int64_t dim);
/* split.Tensor: parts of this size (these sizes) along dim */
OPD_API opd_tensors opd_split(opd_tensor *self, int64_t split_size);
OPD_API opd_tensors opd_split_full(opd_tensor *self, int64_t split_size, int64_t dim);
/* unbind.int: the slices of dim, each without it */
OPD_API opd_tensors opd_unbind(opd_tensor *self);
OPD_API opd_tensors opd_unbind_full(opd_tensor *self, int64_t dim);
/* split.sizes: parts of this size (these sizes) along dim */
OPD_API opd_tensors opd_split_sizes(opd_tensor *self, opd_ints split_size);
OPD_API opd_tensors opd_split_sizes_full(opd_tensor *self, opd_ints split_size, int64_t dim);
/* chunk: at most this many parts along dim, of one size, the last one smaller */
OPD_API opd_tensors opd_chunk(opd_tensor *self, int64_t chunks);
OPD_API opd_tensors opd_chunk_full(opd_tensor *self, int64_t chunks, int64_t dim);
/* unsafe_split.Tensor: split, of which each part may be written into */
OPD_API opd_tensors opd_unsafe_split(opd_tensor *self, int64_t split_size);
OPD_API opd_tensors opd_unsafe_split_full(opd_tensor *self, int64_t split_size, int64_t dim);
/* unsafe_split_with_sizes: split_with_sizes, of which each part may be written into */
OPD_API opd_tensors opd_unsafe_split_with_sizes(opd_tensor *self, opd_ints split_sizes);
OPD_API opd_tensors opd_unsafe_split_with_sizes_full(opd_tensor *self, opd_ints split_sizes, int64_t dim);
/* unsafe_chunk: chunk, of which each part may be written into */
OPD_API opd_tensors opd_unsafe_chunk(opd_tensor *self, int64_t chunks);
OPD_API opd_tensors opd_unsafe_chunk_full(opd_tensor *self, int64_t chunks, int64_t dim);
/* tensor_split.sections: parts as even as possible, or cut at these indices */
OPD_API opd_tensors opd_tensor_split(opd_tensor *self, int64_t sections);
OPD_API opd_tensors opd_tensor_split_full(opd_tensor *self, int64_t sections, int64_t dim);
/* tensor_split.indices: parts as even as possible, or cut at these indices */
OPD_API opd_tensors opd_tensor_split_indices(opd_tensor *self, opd_ints indices);
OPD_API opd_tensors opd_tensor_split_indices_full(opd_tensor *self, opd_ints indices, int64_t dim);
/* tensor_split.tensor_indices_or_sections: parts as even as possible, or cut at these indices */
OPD_API opd_tensors opd_tensor_split_tensor(opd_tensor *self, opd_tensor *tensor_indices_or_sections);
OPD_API opd_tensors opd_tensor_split_tensor_full(opd_tensor *self, opd_tensor *tensor_indices_or_sections, int64_t dim);
/* hsplit.int: tensor_split along dim 1 (0 of what has one dim) */
OPD_API opd_tensors opd_hsplit(opd_tensor *self, int64_t sections);
/* hsplit.array: tensor_split along dim 1 (0 of what has one dim) */
OPD_API opd_tensors opd_hsplit_array(opd_tensor *self, opd_ints indices);
/* vsplit.int: tensor_split along dim 0 */
OPD_API opd_tensors opd_vsplit(opd_tensor *self, int64_t sections);
/* vsplit.array: tensor_split along dim 0 */
OPD_API opd_tensors opd_vsplit_array(opd_tensor *self, opd_ints indices);
/* dsplit.int: tensor_split along dim 2 */
OPD_API opd_tensors opd_dsplit(opd_tensor *self, int64_t sections);
/* dsplit.array: tensor_split along dim 2 */
OPD_API opd_tensors opd_dsplit_array(opd_tensor *self, opd_ints indices);
/* narrow: length elements of dim from start on */
OPD_API opd_tensor *opd_narrow(opd_tensor *self, int64_t dim, int64_t start, int64_t length);
/* narrow.Tensor: length elements of dim from start on */
OPD_API opd_tensor *opd_narrow_Tensor(opd_tensor *self, int64_t dim, opd_tensor *start, int64_t length);
/* narrow_copy: narrow, as a copy */
OPD_API opd_tensor *opd_narrow_copy(opd_tensor *self, int64_t dim, int64_t start, int64_t length);
/* movedim.int: dims source at the places destination */
OPD_API opd_tensor *opd_movedim(opd_tensor *self, int64_t source, int64_t destination);
/* movedim.intlist: dims source at the places destination */
OPD_API opd_tensor *opd_movedim_intlist(opd_tensor *self, opd_ints source, opd_ints destination);
/* moveaxis.int: movedim */
OPD_API opd_tensor *opd_moveaxis(opd_tensor *self, int64_t source, int64_t destination);
/* moveaxis.intlist: movedim */
OPD_API opd_tensor *opd_moveaxis_intlist(opd_tensor *self, opd_ints source, opd_ints destination);
/* swapaxes: transpose */
OPD_API opd_tensor *opd_swapaxes(opd_tensor *self, int64_t axis0, int64_t axis1);
/* swapdims: transpose */
OPD_API opd_tensor *opd_swapdims(opd_tensor *self, int64_t dim0, int64_t dim1);
/* numpy_T: all dims in reverse order */
OPD_API opd_tensor *opd_numpy_T(opd_tensor *self);
/* mT: the last two dims swapped */
OPD_API opd_tensor *opd_mT(opd_tensor *self);
/* mH: the last two dims swapped, complex conjugate */
OPD_API opd_tensor *opd_mH(opd_tensor *self);
/* matrix_H: the transpose of a matrix, complex conjugate */
OPD_API opd_tensor *opd_matrix_H(opd_tensor *self);
/* adjoint: the last two dims swapped, complex conjugate */
OPD_API opd_tensor *opd_adjoint(opd_tensor *self);
/* unflatten.int: dim as several of these sizes */
OPD_API opd_tensor *opd_unflatten(opd_tensor *self, int64_t dim, opd_ints sizes);
/* ravel: one dim */
OPD_API opd_tensor *opd_ravel(opd_tensor *self);
/* broadcast_to: expand */
OPD_API opd_tensor *opd_broadcast_to(opd_tensor *self, opd_ints size);
/* meshgrid: each vector along its dim of what all of them make */
OPD_API opd_tensors opd_meshgrid(opd_tensors tensors);
/* meshgrid.indexing: meshgrid; 'xy': the first two dims the other way round */
OPD_API opd_tensors opd_meshgrid_indexing(opd_tensors tensors, const char *indexing);
/* broadcast_tensors: all of them expanded to one size */
OPD_API opd_tensors opd_broadcast_tensors(opd_tensors tensors);
/* to.device: self in this dtype, or on this device; itself where it is so already */
OPD_API opd_tensor *opd_to_device(opd_tensor *self, opd_device device, opd_scalar_type dtype);
OPD_API opd_tensor *opd_to_device_full(opd_tensor *self, opd_device device, opd_scalar_type dtype, bool non_blocking,
                                       bool copy, opd_value memory_format);
/* to.other: self in other's dtype and on its device; itself where it is so already */
OPD_API opd_tensor *opd_to_other(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_to_other_full(opd_tensor *self, opd_tensor *other, bool non_blocking, bool copy,
                                      opd_value memory_format);
/* to.dtype_layout: self in this dtype, or on this device; itself where it is so already */
OPD_API opd_tensor *opd_to_dtype_layout(opd_tensor *self);
OPD_API opd_tensor *opd_to_dtype_layout_full(opd_tensor *self, opd_value dtype, opd_value layout, opd_value device,
                                        opd_value pin_memory, bool non_blocking, bool copy, opd_value memory_format);
/* chalf: self as complex32 */
OPD_API opd_tensor *opd_chalf(opd_tensor *self);
OPD_API opd_tensor *opd_chalf_full(opd_tensor *self, opd_value memory_format);
/* type_as: self in other's dtype */
OPD_API opd_tensor *opd_type_as(opd_tensor *self, opd_tensor *other);
/* lift_fresh_copy: a copy */
OPD_API opd_tensor *opd_lift_fresh_copy(opd_tensor *self);
/* lift_fresh: self; a tensor from outside in a program that is recorded */
OPD_API opd_tensor *opd_lift_fresh(opd_tensor *self);
/* repeat: self this many times along each dim, as a copy */
OPD_API opd_tensor *opd_repeat(opd_tensor *self, opd_ints repeats);
/* tile: repeat, with 1 for the dims in front */
OPD_API opd_tensor *opd_tile(opd_tensor *self, opd_ints dims);
/* flip: these dims in reverse order */
OPD_API opd_tensor *opd_flip(opd_tensor *self, opd_ints dims);
/* fliplr: dim 1 in reverse order */
OPD_API opd_tensor *opd_fliplr(opd_tensor *self);
/* flipud: dim 0 in reverse order */
OPD_API opd_tensor *opd_flipud(opd_tensor *self);
/* roll: elements moved by shifts along dims, around the end */
OPD_API opd_tensor *opd_roll(opd_tensor *self, opd_ints shifts);
OPD_API opd_tensor *opd_roll_full(opd_tensor *self, opd_ints shifts, opd_ints dims);
/* rot90: turned by k right angles in the plane of dims */
OPD_API opd_tensor *opd_rot90(opd_tensor *self);
OPD_API opd_tensor *opd_rot90_full(opd_tensor *self, int64_t k, opd_ints dims);
/* transpose_: transpose of self itself */
OPD_API opd_tensor *opd_transpose_(opd_tensor *self, int64_t dim0, int64_t dim1);
/* t_: t of self itself */
OPD_API opd_tensor *opd_t_(opd_tensor *self);
/* unsqueeze_: unsqueeze of self itself */
OPD_API opd_tensor *opd_unsqueeze_(opd_tensor *self, int64_t dim);
/* squeeze_: squeeze of self itself */
OPD_API opd_tensor *opd_squeeze_(opd_tensor *self);
/* squeeze_.dim: squeeze of self itself */
OPD_API opd_tensor *opd_squeeze_dim_(opd_tensor *self, int64_t dim);
/* squeeze_.dims: squeeze of self itself */
OPD_API opd_tensor *opd_squeeze_dims_(opd_tensor *self, opd_ints dim);
/* swapaxes_: transpose of self itself */
OPD_API opd_tensor *opd_swapaxes_(opd_tensor *self, int64_t axis0, int64_t axis1);
/* swapdims_: transpose of self itself */
OPD_API opd_tensor *opd_swapdims_(opd_tensor *self, int64_t dim0, int64_t dim1);
/* as_strided_: as_strided of self itself */
OPD_API opd_tensor *opd_as_strided_(opd_tensor *self, opd_ints size, opd_ints stride);
OPD_API opd_tensor *opd_as_strided_full_(opd_tensor *self, opd_ints size, opd_ints stride, opd_value storage_offset);
/* detach_: takes self's history away */
OPD_API opd_tensor *opd_detach_(opd_tensor *self);
/* resize_: self with these sizes; elements behind the old ones are not set */
OPD_API opd_tensor *opd_resize_(opd_tensor *self, opd_ints size);
OPD_API opd_tensor *opd_resize_full_(opd_tensor *self, opd_ints size, opd_value memory_format);
/* resize_as_: self with the_template's sizes */
OPD_API opd_tensor *opd_resize_as_(opd_tensor *self, opd_tensor *the_template);
OPD_API opd_tensor *opd_resize_as_full_(opd_tensor *self, opd_tensor *the_template, opd_value memory_format);
/* storage_offset: where self begins in its memory */
OPD_API opd_value opd_storage_offset(opd_tensor *self);
/* is_floating_point: whether its numbers are floating */
OPD_API opd_value opd_is_floating_point(opd_tensor *self);
/* is_complex: whether its numbers are complex */
OPD_API opd_value opd_is_complex(opd_tensor *self);
/* is_nonzero: whether its only element is not 0 */
OPD_API opd_value opd_is_nonzero(opd_tensor *self);
/* sym_size.int: size.int in exported programs */
OPD_API opd_value opd_sym_size(opd_tensor *self, int64_t dim);
/* sym_stride.int: stride.int in exported programs */
OPD_API opd_value opd_sym_stride(opd_tensor *self, int64_t dim);
/* sym_numel: numel in exported programs */
OPD_API opd_value opd_sym_numel(opd_tensor *self);
/* sym_is_contiguous: whether the elements stand in rows, or with the channels last, in exported programs */
OPD_API opd_value opd_sym_is_contiguous(opd_tensor *self);
OPD_API opd_value opd_sym_is_contiguous_full(opd_tensor *self, int64_t memory_format);
/* sym_storage_offset: storage_offset in exported programs */
OPD_API opd_value opd_sym_storage_offset(opd_tensor *self);
/* _assert_tensor_metadata: an error unless the tensor has these sizes, strides, dtype and device */
OPD_API int opd_assert_tensor_metadata(opd_tensor *a, opd_ints size, opd_ints stride, opd_scalar_type dtype);
OPD_API int opd_assert_tensor_metadata_full(opd_tensor *a, opd_ints size, opd_ints stride, opd_value dtype,
                                        opd_value device, opd_value layout);
/* _assert_scalar: an error with this text where self is 0 */
OPD_API int opd_assert_scalar(opd_value self, const char *assert_msg);
/* _functional_assert_scalar: _assert_scalar; a copy of dep_token */
OPD_API opd_tensor *opd_functional_assert_scalar(opd_value self, const char *assert_msg, opd_tensor *dep_token);
/* _assert_async: an error where the only element of self is 0 */
OPD_API int opd_assert_async(opd_tensor *self);
/* _assert_async.msg: an error with this text where the only element of self is 0 */
OPD_API int opd_assert_async_msg(opd_tensor *self, const char *assert_msg);
/* _functional_assert_async.msg: _assert_async.msg; a copy of dep_token */
OPD_API opd_tensor *opd_functional_assert_async_msg(opd_tensor *self, const char *assert_msg, opd_tensor *dep_token);
/* sym_constrain_range: an error unless size is within min and max */
OPD_API int opd_sym_constrain_range(opd_value size);
OPD_API int opd_sym_constrain_range_full(opd_value size, opd_value min, opd_value max);
/* sym_constrain_range_for_size: sym_constrain_range of what counts something */
OPD_API int opd_sym_constrain_range_for_size(opd_value size);
OPD_API int opd_sym_constrain_range_for_size_full(opd_value size, opd_value min, opd_value max);
/* _functional_sym_constrain_range: sym_constrain_range; a copy of dep_token */
OPD_API opd_tensor *opd_functional_sym_constrain_range(opd_value size, opd_value min, opd_value max,
                                        opd_tensor *dep_token);
/* _functional_sym_constrain_range_for_size: sym_constrain_range_for_size; a copy of dep_token */
OPD_API opd_tensor *opd_functional_sym_constrain_range_for_size(opd_value size, opd_value min, opd_value max,
                                        opd_tensor *dep_token);
/* is_same_size: whether sizes are the same */
OPD_API opd_value opd_is_same_size(opd_tensor *self, opd_tensor *other);
/* size.int: the size of dim */
OPD_API opd_value opd_size_int(opd_tensor *self, int64_t dim);
/* stride.int: the stride of dim */
OPD_API opd_value opd_stride_int(opd_tensor *self, int64_t dim);
/* numel: the number of elements */
OPD_API opd_value opd_numel_int(opd_tensor *self);
/* dim: the number of dims */
OPD_API opd_value opd_dim_int(opd_tensor *self);
/* view_copy: view, as a copy */
OPD_API opd_tensor *opd_view_copy(opd_tensor *self, opd_ints size);
/* view_copy.dtype: view.dtype, as a copy */
OPD_API opd_tensor *opd_view_copy_dtype(opd_tensor *self, opd_scalar_type dtype);
/* _reshape_alias_copy: reshape_alias, as a copy */
OPD_API opd_tensor *opd_reshape_alias_copy(opd_tensor *self, opd_ints size, opd_ints stride);
/* expand_copy: expand, as a copy */
OPD_API opd_tensor *opd_expand_copy(opd_tensor *self, opd_ints size);
OPD_API opd_tensor *opd_expand_copy_full(opd_tensor *self, opd_ints size, bool implicit);
/* transpose_copy.int: transpose, as a copy */
OPD_API opd_tensor *opd_transpose_copy(opd_tensor *self, int64_t dim0, int64_t dim1);
/* t_copy: t, as a copy */
OPD_API opd_tensor *opd_t_copy(opd_tensor *self);
/* permute_copy: permute, as a copy */
OPD_API opd_tensor *opd_permute_copy(opd_tensor *self, opd_ints dims);
/* select_copy.int: select, as a copy */
OPD_API opd_tensor *opd_select_copy(opd_tensor *self, int64_t dim, int64_t index);
/* slice_copy.Tensor: slice, as a copy */
OPD_API opd_tensor *opd_slice_copy(opd_tensor *self, int64_t dim, opd_value start, opd_value end, int64_t step);
/* unsqueeze_copy: unsqueeze, as a copy */
OPD_API opd_tensor *opd_unsqueeze_copy(opd_tensor *self, int64_t dim);
/* squeeze_copy: squeeze, as a copy */
OPD_API opd_tensor *opd_squeeze_copy(opd_tensor *self);
/* squeeze_copy.dim: squeeze, as a copy */
OPD_API opd_tensor *opd_squeeze_copy_dim(opd_tensor *self, int64_t dim);
/* squeeze_copy.dims: squeeze, as a copy */
OPD_API opd_tensor *opd_squeeze_copy_dims(opd_tensor *self, opd_ints dim);
/* detach_copy: detach, as a copy */
OPD_API opd_tensor *opd_detach_copy(opd_tensor *self);
/* alias_copy: alias, as a copy */
OPD_API opd_tensor *opd_alias_copy(opd_tensor *self);
/* as_strided_copy: as_strided, as a copy */
OPD_API opd_tensor *opd_as_strided_copy(opd_tensor *self, opd_ints size, opd_ints stride);
OPD_API opd_tensor *opd_as_strided_copy_full(opd_tensor *self, opd_ints size, opd_ints stride,
                                        opd_value storage_offset);
/* diagonal_copy: diagonal, as a copy */
OPD_API opd_tensor *opd_diagonal_copy(opd_tensor *self);
OPD_API opd_tensor *opd_diagonal_copy_full(opd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2);
/* unfold_copy: unfold, as a copy */
OPD_API opd_tensor *opd_unfold_copy(opd_tensor *self, int64_t dimension, int64_t size, int64_t step);
/* split_copy.Tensor: split, as a copy */
OPD_API opd_tensors opd_split_copy(opd_tensor *self, int64_t split_size);
OPD_API opd_tensors opd_split_copy_full(opd_tensor *self, int64_t split_size, int64_t dim);
/* split_with_sizes_copy: split_with_sizes, as a copy */
OPD_API opd_tensors opd_split_with_sizes_copy(opd_tensor *self, opd_ints split_sizes);
OPD_API opd_tensors opd_split_with_sizes_copy_full(opd_tensor *self, opd_ints split_sizes, int64_t dim);
/* unbind_copy.int: unbind, as a copy */
OPD_API opd_tensors opd_unbind_copy(opd_tensor *self);
OPD_API opd_tensors opd_unbind_copy_full(opd_tensor *self, int64_t dim);
/* view_as_real: complex numbers as a last dim of 2 */
OPD_API opd_tensor *opd_view_as_real(opd_tensor *self);
/* view_as_complex: a last dim of 2 as complex numbers */
OPD_API opd_tensor *opd_view_as_complex(opd_tensor *self);
/* view_as_real_copy: view_as_real, as a copy */
OPD_API opd_tensor *opd_view_as_real_copy(opd_tensor *self);
/* view_as_complex_copy: view_as_complex, as a copy */
OPD_API opd_tensor *opd_view_as_complex_copy(opd_tensor *self);
/* _conj_copy: conj, as a copy */
OPD_API opd_tensor *opd__conj_copy(opd_tensor *self);
/* _neg_view_copy: -self */
OPD_API opd_tensor *opd__neg_view_copy(opd_tensor *self);
/* real: the real part */
OPD_API opd_tensor *opd_real(opd_tensor *self);
/* imag: the imaginary part */
OPD_API opd_tensor *opd_imag(opd_tensor *self);
/* _conj_physical: the complex conjugate, computed */
OPD_API opd_tensor *opd_conj_copy(opd_tensor *self);
/* conj_physical: the complex conjugate, computed */
OPD_API opd_tensor *opd_conj_physical(opd_tensor *self);
OPD_API opd_tensor *opd_conj_physical_(opd_tensor *self);
/* conj: the complex conjugate, a view that is computed when it is read */
OPD_API opd_tensor *opd_conj(opd_tensor *self);
/* _conj: a view that is conjugated when it is read, if complex */
OPD_API opd_tensor *opd_conj_view(opd_tensor *self);
/* _neg_view: a view that is negated when it is read */
OPD_API opd_tensor *opd__neg_view(opd_tensor *self);
/* resolve_conj: self, its conjugation computed */
OPD_API opd_tensor *opd_resolve_conj(opd_tensor *self);
/* resolve_neg: self, its negation computed */
OPD_API opd_tensor *opd_resolve_neg(opd_tensor *self);
/* angle: the argument of complex numbers; of real ones pi where they are negative, else 0 */
OPD_API opd_tensor *opd_angle(opd_tensor *self);
/* complex: real + i imag */
OPD_API opd_tensor *opd_complex(opd_tensor *real, opd_tensor *imag);
/* polar: abs (cos(angle) + i sin(angle)) */
OPD_API opd_tensor *opd_polar(opd_tensor *abs, opd_tensor *angle);
/* isreal: whether the imaginary part is 0 */
OPD_API opd_tensor *opd_isreal(opd_tensor *self);
/* positive: self */
OPD_API opd_tensor *opd_positive(opd_tensor *self);
/* diag_embed: the last dim as a diagonal of new dims dim1 and dim2 */
OPD_API opd_tensor *opd_diag_embed(opd_tensor *self);
OPD_API opd_tensor *opd_diag_embed_full(opd_tensor *self, int64_t offset, int64_t dim1, int64_t dim2);
/* diag: the diagonal of a matrix, or a matrix of one dim as diagonal */
OPD_API opd_tensor *opd_diag(opd_tensor *self);
OPD_API opd_tensor *opd_diag_full(opd_tensor *self, int64_t diagonal);
/* diagflat: a matrix with all of self as diagonal */
OPD_API opd_tensor *opd_diagflat(opd_tensor *self);
OPD_API opd_tensor *opd_diagflat_full(opd_tensor *self, int64_t offset);
/* atleast_1d: at least one dim */
OPD_API opd_tensor *opd_atleast_1d(opd_tensor *self);
/* atleast_2d: at least two dims */
OPD_API opd_tensor *opd_atleast_2d(opd_tensor *self);
/* atleast_3d: at least three dims */
OPD_API opd_tensor *opd_atleast_3d(opd_tensor *self);
/* atleast_1d.Sequence: at least one dim */
OPD_API opd_tensors opd_atleast_1d_Sequence(opd_tensors tensors);
/* atleast_2d.Sequence: at least two dims */
OPD_API opd_tensors opd_atleast_2d_Sequence(opd_tensors tensors);
/* atleast_3d.Sequence: at least three dims */
OPD_API opd_tensors opd_atleast_3d_Sequence(opd_tensors tensors);

