#include "tensor.h"

//== type promotion ====================================================================================================

/* Returns the category of a dtype: bool < integer < floating < complex.  The functions below find the result dtype of
   operands (torch.result_type, at::native::result_type).  Tensors with dims take precedence over 0-dim tensors, and
   these over wrapped numbers, unless the operand with less precedence has a higher category.  If that makes the result
   complex, it has the precision of the floating operand. */
static int opdi_category(opd_scalar_type dtype) {
    if (opd_dtype_is_complex(dtype)) { return 3; }
    if (opd_dtype_is_floating(dtype)) { return 2; }
    return dtype == OPD_BOOL ? 0 : 1;
}
static opd_scalar_type opdi_promote(opd_scalar_type dtype, opd_scalar_type other) {
    return dtype == OPD_DTYPE_NONE ? other : other == OPD_DTYPE_NONE ||
        dtype == other ? dtype : opd_promote_types(dtype, other);
}
static opd_scalar_type opdi_result_combine(opd_scalar_type higher, opd_scalar_type lower) {
    if (higher == OPD_DTYPE_NONE) { return lower; }
    if (lower == OPD_DTYPE_NONE || opdi_category(lower) <= opdi_category(higher)) { return higher; }
    if (opd_dtype_is_floating(higher)) { return higher == OPD_FLOAT64 ? OPD_COMPLEX128 : OPD_COMPLEX64; }
    return opd_promote_types(higher, lower);
}
OPDI_INTERNAL opd_scalar_type opdi_result_type_of(opd_tensor *const *ts, int count) {
    opd_scalar_type rank[3] = {OPD_DTYPE_NONE, OPD_DTYPE_NONE, OPD_DTYPE_NONE};   /* of tensors with dims, of 0-dim
                                                                                     tensors, of numbers */
    for (int i = 0; i < count; i++) {
        opd_scalar_type dtype = (opd_scalar_type)ts[i]->dtype;
        int k = ts[i]->flags & OPDI_WRAPPED ? 2 : ts[i]->ndim == 0 ? 1 : 0;
        if (k == 2 && opd_dtype_is_complex(dtype)) { dtype = OPD_COMPLEX64; }  /* numbers have the default dtype */
        else if (k == 2 && opd_dtype_is_floating(dtype)) { dtype = OPD_FLOAT32; }
        rank[k] = opdi_promote(rank[k], dtype);
    }
    return opdi_result_combine(opdi_result_combine(rank[0], rank[1]), rank[2]);
}

//== shapes ============================================================================================================

OPDI_COLD_BEGIN
/* Returns dim as an index from 0; a negative dim counts from the end (c10::maybe_wrap_dim).  For a 0-dim tensor, 0 and
   -1 are valid.  Returns -1 and sets an error if dim is out of range. */
OPDI_INTERNAL int opdi_dim_of(int64_t dim, int ndim) {
    const int count = OPDI_MAX(ndim, 1);
    if (dim < -count || dim >= count) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                        -count, count - 1, (long long)dim);
    }
    return (int)(dim < 0 ? dim + count : dim);
}
OPDI_COLD_END

OPDI_INTERNAL bool opdi_same_sizes(const opd_tensor *first, const opd_tensor *second) {
    return opdi_has_sizes(first, second->dims, second->ndim);
}
/* Broadcasts the sizes of `tensor` into the *ndim sizes at `sizes`, aligned at the last dim.  Returns 0, or -1 and sets
   PyTorch's error. */
OPDI_INTERNAL int opdi_broadcast_into(int64_t *sizes, int *ndim, const opd_tensor *tensor) {
    const int64_t *ts = opdi_sizes(tensor);
    int shift = tensor->ndim - *ndim;
    if (shift > 0) {
        memmove(sizes + shift, sizes, sizeof(int64_t) * (size_t)*ndim);
        for (int i = 0; i < shift; i++) { sizes[i] = 1; }
        *ndim = tensor->ndim;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        int dim = *ndim - tensor->ndim + i;
        if (sizes[dim] == ts[i] || ts[i] == 1) { continue; }
        if (sizes[dim] != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d", (long long)sizes[dim], (long long)ts[i], dim);
        }
        sizes[dim] = ts[i];
    }
    return 0;
}
/* Compares the strides of two dims, `first` and `second`; the first operand for which they differ decides
   (TensorIteratorBase::reorder_dimensions).  Returns 1 if the dims should be swapped, so that `first` comes after
   `second`, -1 if they are in order, or 0 if no operand decides. */
static int opdi_dims_compare(opd_tensor *const *ops, int nops, const int64_t *sizes, int ndim, int first, int second) {
    for (int i = 0; i < nops; i++) {
        const int64_t sa = opdi_broadcast_bytes(ops[i], sizes, ndim, first);
        const int64_t sb = opdi_broadcast_bytes(ops[i], sizes, ndim, second);
        if (sa == 0 || sb == 0) { continue; }
        if (sa != sb) { return sa < sb ? -1 : 1; }
        if (sizes[first] > sizes[second]) { return 1; }
    }
    return 0;
}
/* Fills perm[ndim] with the dims in the order in which loops walk them, perm[0] innermost.  Uses an insertion sort,
   since for some pairs of dims no operand decides. */
OPDI_INTERNAL void opdi_dims_order(opd_tensor *const *ops, int nops, const int64_t *sizes, int ndim, int *perm) {
    for (int i = 0; i < ndim; i++) { perm[i] = ndim - 1 - i; }
    for (int i = 1; i < ndim; i++) {
        for (int k = i, j = i - 1; j >= 0; j--) {
            int order = opdi_dims_compare(ops, nops, sizes, ndim, perm[j], perm[k]);
            if (order > 0) {
                int swapped = perm[j];
                perm[j] = perm[k];
                perm[k] = swapped;
                k = j;
            }
            else if (order < 0) { break; }
        }
    }
}

//== overlap ===========================================================================================================

/* Fails if `tensor`, which is about to be written, is expanded (at::assert_no_internal_overlap).  As in PyTorch, only
   strides of zero are noticed.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_check_internal_overlap(const opd_tensor *tensor) {
    if (tensor->flags & OPDI_CONTIGUOUS) { return 0; }
    for (int i = 0; i < tensor->ndim; i++) {
        if (opdi_strides(tensor)[i] == 0 && opdi_sizes(tensor)[i] > 1) {
            return opd_fail(OPD_ERROR_ARGUMENT, "unsupported operation: more than one element of the written-to tensor "
                            "refers to a single memory location. Please clone() the tensor before "
                            "performing the operation.");
        }
    }
    return 0;
}
/* Fails if an output overlaps an input in part (at::assert_no_partial_overlap).  If both have the same elements in the
   same order, this is allowed, unless `any` is true.  As in PyTorch, tensors with gaps are not checked, because an
   exact test would cost too much.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_check_overlap(const opd_tensor *out, const opd_tensor *in, bool any) {
    if ((out == in && !any) || !out->storage || !opdi_same_memory(out, in)) { return 0; }
    if (!out->data || !out->numel || !in->numel || !opdi_is_dense(out) || !opdi_is_dense(in)) { return 0; }
    const char *b0 = out->data;
    const char *e0 = b0 + opdi_elements_bytes(out->dtype, out->numel);
    const char *b1 = in->data;
    const char *e1 = b1 + opdi_elements_bytes(in->dtype, in->numel);
    if (b0 == b1 && e0 == e1) {
        if (!any && opdi_same_sizes(out, in) &&
            memcmp(opdi_strides(out), opdi_strides(in), sizeof(int64_t) * out->ndim) == 0) {
            return 0;
        }
    } else if (e0 <= b1 || e1 <= b0) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT,
                    "unsupported operation: some elements of the input tensor and the written-to tensor "
                    "refer to a single memory location. Please clone() the tensor before performing the operation.");
}
OPDI_INTERNAL int opdi_check_partial_overlap(const opd_tensor *out, const opd_tensor *in) {
    return opdi_check_overlap(out, in, false);
}

//== extents ===========================================================================================================

/* Returns the number of elements from the first to the last element that sizes and strides reach.  Returns 0 if there
   are no elements, or -1 on overflow. */
OPDI_INTERNAL int64_t opdi_extent(const int64_t *sizes, const int64_t *strides, int ndim) {
    uint64_t last = 0;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) { return 0; }
        uint64_t steps = (uint64_t)sizes[i] - 1;
        uint64_t stride = (uint64_t)strides[i];
        if (steps && stride > ((uint64_t)INT64_MAX / 4 - last) / steps) { return -1; }
        last += steps * stride;
    }
    return (int64_t)last + 1;
}
/* Returns true if every element has its own memory and there are no gaps between them. */
OPDI_INTERNAL bool opdi_is_dense(const opd_tensor *tensor) {
    int64_t expect = 1;
    int i;
    if (tensor->flags & OPDI_CONTIGUOUS) { return true; }
    for (int done = 0; done < tensor->ndim; done++) {  /* finds the dim that continues the block */
        for (i = 0; i < tensor->ndim; i++) {
            if (opdi_sizes(tensor)[i] > 1 && opdi_strides(tensor)[i] == expect) { break; }
        }
        if (i == tensor->ndim) { break; }
        expect *= opdi_sizes(tensor)[i];
    }
    return expect == tensor->numel;
}
