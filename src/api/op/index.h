//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:index      by indices, joining, padding, embedding, counting
//----------------------------------------------------------------------------------------------------------------------

/* gather: elements of dim at index */
OPD_API opd_tensor *opd_gather(opd_tensor *self, int64_t dim, opd_tensor *index);
OPD_API opd_tensor *opd_gather_full(opd_tensor *self, int64_t dim, opd_tensor *index, bool sparse_grad);
/* scatter.src: self, with src written at index along dim */
OPD_API opd_tensor *opd_scatter(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src);
OPD_API opd_tensor *opd_scatter_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src);
/* scatter.value: self, with value written at index along dim */
OPD_API opd_tensor *opd_scatter_value(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value);
OPD_API opd_tensor *opd_scatter_value_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value);
/* scatter.reduce: self, with src added or multiplied at index along dim: "add", "multiply" */
OPD_API opd_tensor *opd_scatter_reduce(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                       const char *reduce);
OPD_API opd_tensor *opd_scatter_reduce_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce);
/* scatter.value_reduce: self, with value added or multiplied at index along dim: "add", "multiply" */
OPD_API opd_tensor *opd_scatter_value_reduce(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value,
                                        const char *reduce);
OPD_API opd_tensor *opd_scatter_value_reduce_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value,
                                        const char *reduce);
/* scatter_add: self, with src added at index along dim */
OPD_API opd_tensor *opd_scatter_add(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src);
OPD_API opd_tensor *opd_scatter_add_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src);
/* scatter_reduce.two: self, with src reduced at index along dim: "sum", "prod", "mean", "amax", "amin" */
OPD_API opd_tensor *opd_scatter_reduce_two(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce);
OPD_API opd_tensor *opd_scatter_reduce_two_full(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce, bool include_self);
OPD_API opd_tensor *opd_scatter_reduce_two_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce);
OPD_API opd_tensor *opd_scatter_reduce_two_full_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *src,
                                        const char *reduce, bool include_self);
/* index_select: the slices of dim at index */
OPD_API opd_tensor *opd_index_select(opd_tensor *self, int64_t dim, opd_tensor *index);
/* index_select_backward: derivative of index_select */
OPD_API opd_tensor *opd_index_select_backward(opd_tensor *grad, opd_ints self_sizes, int64_t dim, opd_tensor *index);
/* index_add: self, with the slices of source added at index */
OPD_API opd_tensor *opd_index_add(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source);
OPD_API opd_tensor *opd_index_add_full(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                       opd_value alpha);
OPD_API opd_tensor *opd_index_add_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source);
OPD_API opd_tensor *opd_index_add_full_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                        opd_value alpha);
/* index_copy: self, with the slices of source written at index */
OPD_API opd_tensor *opd_index_copy(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source);
OPD_API opd_tensor *opd_index_copy_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source);
/* index_fill.int_Scalar: self, with value written in the slices at index */
OPD_API opd_tensor *opd_index_fill_int_Scalar(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value);
OPD_API opd_tensor *opd_index_fill_int_Scalar_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_value value);
/* index_fill.int_Tensor: self, with value written in the slices at index */
OPD_API opd_tensor *opd_index_fill_int_Tensor(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *value);
OPD_API opd_tensor *opd_index_fill_int_Tensor_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *value);
/* index_reduce: self, with the slices of source reduced at index */
OPD_API opd_tensor *opd_index_reduce(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                     const char *reduce);
OPD_API opd_tensor *opd_index_reduce_full(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                        const char *reduce, bool include_self);
OPD_API opd_tensor *opd_index_reduce_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                      const char *reduce);
OPD_API opd_tensor *opd_index_reduce_full_(opd_tensor *self, int64_t dim, opd_tensor *index, opd_tensor *source,
                                        const char *reduce, bool include_self);
/* index.Tensor: elements at tensors of indices, one a dim (None: all), or masks */
OPD_API opd_tensor *opd_index(opd_tensor *self, opd_tensors indices);
/* index_put: self, with values written (accumulate: added) at indices */
OPD_API opd_tensor *opd_index_put(opd_tensor *self, opd_tensors indices, opd_tensor *values);
OPD_API opd_tensor *opd_index_put_full(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate);
OPD_API opd_tensor *opd_index_put_(opd_tensor *self, opd_tensors indices, opd_tensor *values);
OPD_API opd_tensor *opd_index_put_full_(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate);
/* _unsafe_index.Tensor: index */
OPD_API opd_tensor *opd__unsafe_index_Tensor(opd_tensor *self, opd_tensors indices);
/* _unsafe_index_put: index_put */
OPD_API opd_tensor *opd__unsafe_index_put(opd_tensor *self, opd_tensors indices, opd_tensor *values);
OPD_API opd_tensor *opd__unsafe_index_put_full(opd_tensor *self, opd_tensors indices, opd_tensor *values,
                                        bool accumulate);
/* _unsafe_masked_index: index where mask says so, fill elsewhere, whatever the indices are there */
OPD_API opd_tensor *opd__unsafe_masked_index(opd_tensor *self, opd_tensor *mask, opd_tensors indices, opd_value fill);
/* _unsafe_masked_index_put_accumulate: adds values to self at indices where mask says so */
OPD_API opd_tensor *opd__unsafe_masked_index_put_accumulate(opd_tensor *self, opd_tensor *mask, opd_tensors indices,
                                        opd_tensor *values);
/* _index_put_impl_: index_put of self itself */
OPD_API opd_tensor *opd__index_put_impl_(opd_tensor *self, opd_tensors indices, opd_tensor *values);
OPD_API opd_tensor *opd__index_put_impl_full_(opd_tensor *self, opd_tensors indices, opd_tensor *values,
                                        bool accumulate, bool unsafe);
/* take: elements at index, counted through */
OPD_API opd_tensor *opd_take(opd_tensor *self, opd_tensor *index);
/* put: self, with source written (accumulate: added) at index, counted through */
OPD_API opd_tensor *opd_put(opd_tensor *self, opd_tensor *index, opd_tensor *source);
OPD_API opd_tensor *opd_put_full(opd_tensor *self, opd_tensor *index, opd_tensor *source, bool accumulate);
OPD_API opd_tensor *opd_put_(opd_tensor *self, opd_tensor *index, opd_tensor *source);
OPD_API opd_tensor *opd_put_full_(opd_tensor *self, opd_tensor *index, opd_tensor *source, bool accumulate);
/* take_along_dim: gather, broadcast; without dim: take */
OPD_API opd_tensor *opd_take_along_dim(opd_tensor *self, opd_tensor *indices);
OPD_API opd_tensor *opd_take_along_dim_full(opd_tensor *self, opd_tensor *indices, opd_value dim);
/* masked_select: elements where mask, in one dim */
OPD_API opd_tensor *opd_masked_select(opd_tensor *self, opd_tensor *mask);
/* masked_scatter: self, with source's elements in order where mask */
OPD_API opd_tensor *opd_masked_scatter(opd_tensor *self, opd_tensor *mask, opd_tensor *source);
OPD_API opd_tensor *opd_masked_scatter_(opd_tensor *self, opd_tensor *mask, opd_tensor *source);
/* where.Scalar: self where condition, else other */
OPD_API opd_tensor *opd_where_Scalar(opd_tensor *condition, opd_value self, opd_value other);
/* where: where condition is not 0: the indices, a tensor for each dim */
OPD_API opd_tensors opd_where(opd_tensor *condition);
/* cat: tensors side by side along dim */
OPD_API opd_tensor *opd_cat(opd_tensors tensors);
OPD_API opd_tensor *opd_cat_full(opd_tensors tensors, int64_t dim);
/* stack: tensors side by side along a new dim */
OPD_API opd_tensor *opd_stack(opd_tensors tensors);
OPD_API opd_tensor *opd_stack_full(opd_tensors tensors, int64_t dim);
/* hstack: cat along dim 1 (0 of what has one dim) */
OPD_API opd_tensor *opd_hstack(opd_tensors tensors);
/* vstack: cat along dim 0, of at least two dims */
OPD_API opd_tensor *opd_vstack(opd_tensors tensors);
/* dstack: cat along dim 2, of at least three dims */
OPD_API opd_tensor *opd_dstack(opd_tensors tensors);
/* column_stack: hstack, of vectors as columns */
OPD_API opd_tensor *opd_column_stack(opd_tensors tensors);
/* row_stack: vstack */
OPD_API opd_tensor *opd_row_stack(opd_tensors tensors);
/* concat: cat */
OPD_API opd_tensor *opd_concat(opd_tensors tensors);
OPD_API opd_tensor *opd_concat_full(opd_tensors tensors, int64_t dim);
/* concatenate: cat */
OPD_API opd_tensor *opd_concatenate(opd_tensors tensors);
OPD_API opd_tensor *opd_concatenate_full(opd_tensors tensors, int64_t dim);
/* _chunk_cat: tensors, each as num_chunks parts of dim (zeros fill the last), side by side */
OPD_API opd_tensor *opd__chunk_cat(opd_tensors tensors, int64_t dim, int64_t num_chunks);
/* constant_pad_nd: value around: pad is left and right of the last dim, then of the one before */
OPD_API opd_tensor *opd_constant_pad_nd(opd_tensor *self, opd_ints pad);
OPD_API opd_tensor *opd_constant_pad_nd_full(opd_tensor *self, opd_ints pad, opd_value value);
/* reflection_pad1d: the last dim mirrored at its ends */
OPD_API opd_tensor *opd_reflection_pad1d(opd_tensor *self, opd_ints padding);
/* reflection_pad1d_backward: derivative of reflection_pad1d */
OPD_API opd_tensor *opd_reflection_pad1d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding);
/* reflection_pad2d: the last two dims mirrored at their ends */
OPD_API opd_tensor *opd_reflection_pad2d(opd_tensor *self, opd_ints padding);
/* reflection_pad2d_backward: derivative of reflection_pad2d */
OPD_API opd_tensor *opd_reflection_pad2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding);
/* reflection_pad3d: the last three dims mirrored at their ends */
OPD_API opd_tensor *opd_reflection_pad3d(opd_tensor *self, opd_ints padding);
/* reflection_pad3d_backward: derivative of reflection_pad3d */
OPD_API opd_tensor *opd_reflection_pad3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding);
/* replication_pad1d: the last dim with its ends repeated */
OPD_API opd_tensor *opd_replication_pad1d(opd_tensor *self, opd_ints padding);
/* replication_pad1d_backward: derivative of replication_pad1d */
OPD_API opd_tensor *opd_replication_pad1d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding);
/* replication_pad2d: the last two dims with their ends repeated */
OPD_API opd_tensor *opd_replication_pad2d(opd_tensor *self, opd_ints padding);
/* replication_pad2d_backward: derivative of replication_pad2d */
OPD_API opd_tensor *opd_replication_pad2d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding);
/* replication_pad3d: the last three dims with their ends repeated */
OPD_API opd_tensor *opd_replication_pad3d(opd_tensor *self, opd_ints padding);
/* replication_pad3d_backward: derivative of replication_pad3d */
OPD_API opd_tensor *opd_replication_pad3d_backward(opd_tensor *grad_output, opd_tensor *self, opd_ints padding);
/* pad: padding by mode: "constant", "reflect", "replicate", "circular" */
OPD_API opd_tensor *opd_pad(opd_tensor *self, opd_ints pad);
OPD_API opd_tensor *opd_pad_full(opd_tensor *self, opd_ints pad, const char *mode, opd_value value);
/* _pad_circular: pad with what is at the other end */
OPD_API opd_tensor *opd__pad_circular(opd_tensor *self, opd_ints pad);
/* embedding: rows of weight at indices */
OPD_API opd_tensor *opd_embedding(opd_tensor *weight, opd_tensor *indices);
OPD_API opd_tensor *opd_embedding_full(opd_tensor *weight, opd_tensor *indices, int64_t padding_idx,
                                       bool scale_grad_by_freq, bool sparse);
/* embedding_dense_backward: derivative of embedding */
OPD_API opd_tensor *opd_embedding_dense_backward(opd_tensor *grad_output, opd_tensor *indices, int64_t num_weights,
                                        int64_t padding_idx, bool scale_grad_by_freq);
/* embedding_renorm: self, with the rows that indices name made as long as max_norm where their norm is above */
OPD_API opd_tensor *opd_embedding_renorm(opd_tensor *self, opd_tensor *indices, double max_norm, double norm_type);
OPD_API opd_tensor *opd_embedding_renorm_(opd_tensor *self, opd_tensor *indices, double max_norm, double norm_type);
/* embedding_backward: derivative of embedding */
OPD_API opd_tensor *opd_embedding_backward(opd_tensor *grad, opd_tensor *indices, int64_t num_weights,
                                        int64_t padding_idx, bool scale_grad_by_freq, bool sparse);
/* _embedding_bag: embedding_bag, differentiable */
OPD_API int opd_under_embedding_bag(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets);
OPD_API int opd_under_embedding_bag_full(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices,
                                        opd_tensor *offsets, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights, bool include_last_offset, int64_t padding_idx);
/* _embedding_bag_forward_only: embedding_bag without what derivatives use */
OPD_API int opd_embedding_bag_forward_only(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices,
                                        opd_tensor *offsets);
OPD_API int opd_embedding_bag_forward_only_full(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices,
                                        opd_tensor *offsets, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights, bool include_last_offset, int64_t padding_idx);
/* embedding_bag: rows of weight, in bags that begin at offsets: mode 0 sum, 1 mean, 2 max */
OPD_API int opd_embedding_bag(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets);
OPD_API int opd_embedding_bag_full(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices, opd_tensor *offsets,
                                   bool scale_grad_by_freq, int64_t mode, bool sparse, opd_tensor *per_sample_weights,
                                   bool include_last_offset);
/* embedding_bag.padding_idx: rows of weight, in bags that begin at offsets: mode 0 sum, 1 mean, 2 max */
OPD_API int opd_embedding_bag_padding_idx(opd_tensor **rets, opd_tensor *weight, opd_tensor *indices,
                                        opd_tensor *offsets, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights, bool include_last_offset,
                                        opd_value padding_idx);
/* _embedding_bag_backward: derivative of _embedding_bag */
OPD_API opd_tensor *opd_embedding_bag_backward(opd_tensor *grad, opd_tensor *indices, opd_tensor *offsets,
                                        opd_tensor *offset2bag, opd_tensor *bag_size, opd_tensor *maximum_indices,
                                        int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights);
OPD_API opd_tensor *opd_embedding_bag_backward_full(opd_tensor *grad, opd_tensor *indices, opd_tensor *offsets,
                                        opd_tensor *offset2bag, opd_tensor *bag_size, opd_tensor *maximum_indices,
                                        int64_t num_weights, bool scale_grad_by_freq, int64_t mode, bool sparse,
                                        opd_tensor *per_sample_weights, int64_t padding_idx);
/* _embedding_bag_dense_backward: derivative of _embedding_bag by weight */
OPD_API opd_tensor *opd_embedding_bag_dense_backward(opd_tensor *grad, opd_tensor *indices, opd_tensor *offset2bag,
                                        opd_tensor *bag_size, opd_tensor *maximum_indices, int64_t num_weights,
                                        bool scale_grad_by_freq, int64_t mode, opd_tensor *per_sample_weights);
OPD_API opd_tensor *opd_embedding_bag_dense_backward_full(opd_tensor *grad, opd_tensor *indices, opd_tensor *offset2bag,
                                        opd_tensor *bag_size, opd_tensor *maximum_indices, int64_t num_weights,
                                        bool scale_grad_by_freq, int64_t mode, opd_tensor *per_sample_weights,
                                        int64_t padding_idx);
/* _embedding_bag_per_sample_weights_backward: derivative of _embedding_bag by per_sample_weights */
OPD_API opd_tensor *opd_embedding_bag_per_sample_weights_backward(opd_tensor *grad, opd_tensor *weight,
                                        opd_tensor *indices, opd_tensor *offsets, opd_tensor *offset2bag, int64_t mode);
OPD_API opd_tensor *opd_embedding_bag_per_sample_weights_backward_full(opd_tensor *grad, opd_tensor *weight,
                                        opd_tensor *indices, opd_tensor *offsets, opd_tensor *offset2bag, int64_t mode,
                                        int64_t padding_idx);
/* one_hot: a last dim of num_classes: 1 at self, else 0 */
OPD_API opd_tensor *opd_one_hot(opd_tensor *self);
OPD_API opd_tensor *opd_one_hot_full(opd_tensor *self, int64_t num_classes);
/* bincount: how often each number from 0 on occurs (sums of weights) */
OPD_API opd_tensor *opd_bincount(opd_tensor *self);
OPD_API opd_tensor *opd_bincount_full(opd_tensor *self, opd_tensor *weights, int64_t minlength);
/* histc: how many lie in each of bins between min and max */
OPD_API opd_tensor *opd_histc(opd_tensor *self, int64_t bins);
OPD_API opd_tensor *opd_histc_full(opd_tensor *self, int64_t bins, opd_value min, opd_value max);
/* _unique2: what occurs, where each element is in it, and how often */
OPD_API int opd_unique2(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_unique2_full(opd_tensor **rets, opd_tensor *self, bool sorted, bool return_inverse, bool return_counts);
/* unique_dim: the slices of dim that occur, where each is in it, and how often */
OPD_API int opd_unique_dim(opd_tensor **rets, opd_tensor *self, int64_t dim);
OPD_API int opd_unique_dim_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool sorted, bool return_inverse,
                                bool return_counts);
/* unique_consecutive: what occurs in a row once, where each element is in it, and how often */
OPD_API int opd_unique_consecutive(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_unique_consecutive_full(opd_tensor **rets, opd_tensor *self, bool return_inverse, bool return_counts,
                                        opd_value dim);
/* unique_dim_consecutive: slices that occur in a row once, where each is in it, and how often */
OPD_API int opd_unique_dim_consecutive(opd_tensor **rets, opd_tensor *self, int64_t dim);
OPD_API int opd_unique_dim_consecutive_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool return_inverse,
                                        bool return_counts);
/* multinomial: num_samples places drawn by the weights in self */
OPD_API opd_tensor *opd_multinomial(opd_tensor *self, int64_t num_samples);
OPD_API opd_tensor *opd_multinomial_full(opd_tensor *self, int64_t num_samples, bool replacement,
                                        opd_generator *generator);
/* slice_scatter: self, with src in place of slice */
OPD_API opd_tensor *opd_slice_scatter(opd_tensor *self, opd_tensor *src);
OPD_API opd_tensor *opd_slice_scatter_full(opd_tensor *self, opd_tensor *src, int64_t dim, opd_value start,
                                        opd_value end, int64_t step);
/* select_scatter: self, with src in place of select */
OPD_API opd_tensor *opd_select_scatter(opd_tensor *self, opd_tensor *src, int64_t dim, int64_t index);
/* diagonal_scatter: self, with src in place of diagonal */
OPD_API opd_tensor *opd_diagonal_scatter(opd_tensor *self, opd_tensor *src);
OPD_API opd_tensor *opd_diagonal_scatter_full(opd_tensor *self, opd_tensor *src, int64_t offset, int64_t dim1,
                                        int64_t dim2);
/* fill_diagonal_: value where every index is the same; wrap: a tall matrix has another diagonal below each */
OPD_API opd_tensor *opd_fill_diagonal_(opd_tensor *self, opd_value fill_value);
OPD_API opd_tensor *opd_fill_diagonal_full_(opd_tensor *self, opd_value fill_value, bool wrap);
/* as_strided_scatter: self, with src in place of as_strided */
OPD_API opd_tensor *opd_as_strided_scatter(opd_tensor *self, opd_tensor *src, opd_ints size, opd_ints stride);
OPD_API opd_tensor *opd_as_strided_scatter_full(opd_tensor *self, opd_tensor *src, opd_ints size, opd_ints stride,
                                        opd_value storage_offset);
/* repeat_interleave.Tensor: each place i repeats[i] times */
OPD_API opd_tensor *opd_repeat_interleave_Tensor(opd_tensor *repeats);
OPD_API opd_tensor *opd_repeat_interleave_Tensor_full(opd_tensor *repeats, opd_value output_size);
/* repeat_interleave.self_Tensor: each element (slice of dim) repeats times */
OPD_API opd_tensor *opd_repeat_interleave_self_Tensor(opd_tensor *self, opd_tensor *repeats);
OPD_API opd_tensor *opd_repeat_interleave_self_Tensor_full(opd_tensor *self, opd_tensor *repeats, opd_value dim,
                                        opd_value output_size);
/* repeat_interleave.self_int: each element (slice of dim) repeats times */
OPD_API opd_tensor *opd_repeat_interleave(opd_tensor *self, int64_t repeats);
OPD_API opd_tensor *opd_repeat_interleave_full(opd_tensor *self, int64_t repeats, opd_value dim, opd_value output_size);
/* searchsorted.Tensor: where self would be put into a sorted sequence */
OPD_API opd_tensor *opd_searchsorted(opd_tensor *sorted_sequence, opd_tensor *self);
OPD_API opd_tensor *opd_searchsorted_full(opd_tensor *sorted_sequence, opd_tensor *self, bool out_int32, bool right,
                                        opd_value side, opd_value sorter);
/* searchsorted.Scalar: where self would be put into a sorted sequence */
OPD_API opd_tensor *opd_searchsorted_Scalar(opd_tensor *sorted_sequence, opd_value self);
OPD_API opd_tensor *opd_searchsorted_Scalar_full(opd_tensor *sorted_sequence, opd_value self, bool out_int32,
                                        bool right, const char *side, opd_tensor *sorter);
/* bucketize.Tensor: where self lies between sorted boundaries */
OPD_API opd_tensor *opd_bucketize(opd_tensor *self, opd_tensor *boundaries);
OPD_API opd_tensor *opd_bucketize_full(opd_tensor *self, opd_tensor *boundaries, bool out_int32, bool right);
/* bucketize.Scalar: where self lies between sorted boundaries */
OPD_API opd_tensor *opd_bucketize_Scalar(opd_value self, opd_tensor *boundaries);
OPD_API opd_tensor *opd_bucketize_Scalar_full(opd_value self, opd_tensor *boundaries, bool out_int32, bool right);

/* block_diag: a matrix with tensors on its diagonal, zeros elsewhere */
OPD_API opd_tensor *opd_block_diag(opd_tensors tensors);
/* segment_reduce: data cut along axis, each segment reduced by sum, mean, prod, max or min */
OPD_API opd_tensor *opd_segment_reduce(opd_tensor *data, const char *reduce);
OPD_API opd_tensor *opd_segment_reduce_full(opd_tensor *data, const char *reduce, opd_tensor *lengths,
                                        opd_tensor *indices, opd_tensor *offsets, int64_t axis, bool unsafe,
                                        opd_value initial);
/* _segment_reduce_backward: derivative of segment_reduce */
OPD_API opd_tensor *opd__segment_reduce_backward(opd_tensor *grad, opd_tensor *output, opd_tensor *data,
                                        const char *reduce);
OPD_API opd_tensor *opd__segment_reduce_backward_full(opd_tensor *grad, opd_tensor *output, opd_tensor *data,
                                        const char *reduce, opd_tensor *lengths, opd_tensor *offsets, int64_t axis,
                                        opd_value initial);
/* isin.Tensor_Tensor: true where an element is one of test_elements; invert: where it is none */
OPD_API opd_tensor *opd_isin_Tensor_Tensor(opd_tensor *elements, opd_tensor *test_elements);
OPD_API opd_tensor *opd_isin_Tensor_Tensor_full(opd_tensor *elements, opd_tensor *test_elements, bool assume_unique,
                                        bool invert);
/* isin.Tensor_Scalar: true where an element equals test_element */
OPD_API opd_tensor *opd_isin_Tensor_Scalar(opd_tensor *elements, opd_value test_element);
OPD_API opd_tensor *opd_isin_Tensor_Scalar_full(opd_tensor *elements, opd_value test_element, bool assume_unique,
                                        bool invert);
/* isin.Scalar_Tensor: true if element is one of test_elements */
OPD_API opd_tensor *opd_isin_Scalar_Tensor(opd_value element, opd_tensor *test_elements);
OPD_API opd_tensor *opd_isin_Scalar_Tensor_full(opd_value element, opd_tensor *test_elements, bool assume_unique,
                                        bool invert);
/* argwhere: places of what is not zero, a row each */
OPD_API opd_tensor *opd_argwhere(opd_tensor *self);
/* hash_tensor: the elements, as bits of 64, joined by exclusive or, as uint64 */
OPD_API opd_tensor *opd_hash_tensor(opd_tensor *self);
OPD_API opd_tensor *opd_hash_tensor_full(opd_tensor *self, opd_ints dim, bool keepdim, int64_t mode);
/* _is_all_true: all, of bools */
OPD_API opd_tensor *opd__is_all_true(opd_tensor *self);
/* _is_any_true: any, of bools */
OPD_API opd_tensor *opd__is_any_true(opd_tensor *self);
/* nonzero_numpy: places of what is not zero, a vector for each dim */
OPD_API opd_tensors opd_nonzero_numpy(opd_tensor *self);
/* nonzero_static: nonzero cut or filled up to `size` rows */
OPD_API opd_tensor *opd_nonzero_static(opd_tensor *self, int64_t size);
OPD_API opd_tensor *opd_nonzero_static_full(opd_tensor *self, int64_t size, int64_t fill_value);
/* combinations: r elements of self in every way, a row each */
OPD_API opd_tensor *opd_combinations(opd_tensor *self);
OPD_API opd_tensor *opd_combinations_full(opd_tensor *self, int64_t r, bool with_replacement);
/* cartesian_prod: an element of each vector in every way, a row each */
OPD_API opd_tensor *opd_cartesian_prod(opd_tensors tensors);
/* _histogramdd_bin_edges: edges of bins of equal size over the range of each column */
OPD_API opd_tensors opd__histogramdd_bin_edges(opd_tensor *self, opd_ints bins);
OPD_API opd_tensors opd__histogramdd_bin_edges_full(opd_tensor *self, opd_ints bins, opd_value range,
                                        opd_tensor *weight, bool density);
/* _histogramdd_from_bin_cts: how many rows fall in each of bins of equal size */
OPD_API opd_tensor *opd__histogramdd_from_bin_cts(opd_tensor *self, opd_ints bins);
OPD_API opd_tensor *opd__histogramdd_from_bin_cts_full(opd_tensor *self, opd_ints bins, opd_value range,
                                        opd_tensor *weight, bool density);
/* _histogramdd_from_bin_tensors: how many rows fall in each bin between edges */
OPD_API opd_tensor *opd__histogramdd_from_bin_tensors(opd_tensor *self, opd_tensors bins);
OPD_API opd_tensor *opd__histogramdd_from_bin_tensors_full(opd_tensor *self, opd_tensors bins, opd_tensor *weight,
                                        bool density);
/* histogram.bins_tensor: how many elements fall between edges, and the edges */
OPD_API int opd_histogram_bins_tensor(opd_tensor **rets, opd_tensor *self, opd_tensor *bins);
OPD_API int opd_histogram_bins_tensor_full(opd_tensor **rets, opd_tensor *self, opd_tensor *bins, opd_tensor *weight,
                                        bool density);
/* histogram.bin_ct: how many elements fall in each of bins of equal size, and their edges */
OPD_API int opd_histogram_bin_ct(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_histogram_bin_ct_full(opd_tensor **rets, opd_tensor *self, int64_t bins, opd_value range,
                                      opd_tensor *weight, bool density);
/* histogramdd: histogram over rows of several numbers */
OPD_API int opd_histogramdd(opd_tensor **rets, opd_tensor *self, opd_ints bins);
OPD_API int opd_histogramdd_full(opd_tensor **rets, opd_tensor *self, opd_ints bins, opd_value range,
                                 opd_tensor *weight, bool density);
/* histogramdd.int_bins: histogramdd with as many bins for each column */
OPD_API int opd_histogramdd_int_bins(opd_tensor **rets, opd_tensor *self, int64_t bins);
OPD_API int opd_histogramdd_int_bins_full(opd_tensor **rets, opd_tensor *self, int64_t bins, opd_value range,
                                        opd_tensor *weight, bool density);
/* histogramdd.TensorList_bins: histogramdd between edges */
OPD_API int opd_histogramdd_TensorList_bins(opd_tensor **rets, opd_tensor *self, opd_tensors bins);
OPD_API int opd_histogramdd_TensorList_bins_full(opd_tensor **rets, opd_tensor *self, opd_tensors bins, opd_value range,
                                        opd_tensor *weight, bool density);

