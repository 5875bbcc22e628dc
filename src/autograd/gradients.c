#include "autograd.h"

//== sums of gradients, and gradients of the right form ================================================================

/* Returns true if `tensor` has only `count` references, which the caller knows, and its memory belongs to no other
   tensor and does not come from outside of the library.  If so, nobody else uses the memory. */
OPDI_INTERNAL bool opdi_held_by(const opd_tensor *tensor, int count) {
    return OPDI_ACQUIRE(&tensor->refs) == count && OPDI_ACQUIRE(&tensor->storage->refs) == 1 &&
        tensor->storage->block_bytes >= 0;
}

/* Returns true if first + second can be written to `first`, because only the caller uses `first` and the sum is not
   recorded.  While a graph is traced, a tensor that does not come from the trace becomes a constant of the graph. */
OPDI_INTERNAL bool opdi_grad_own(const opdi_engine *engine, const opd_tensor *first, const opd_tensor *second) {
    return !engine->create && opdi_held_by(first, 1) && first->dtype == second->dtype &&
        ((first->flags & OPDI_TRACED) || !opdi_self()->innermost.tracer) &&
        !((first->flags | second->flags) & OPDI_BATCHED) && opdi_has_sizes(first, second->dims, second->ndim) &&
        !opdi_overlaps_itself(first);
}

/* Returns first + second.  If `inplace` is true, the sum is written to `first`.  Returns NULL and sets an error on
   failure. */
OPDI_INTERNAL opd_tensor *opdi_grad_add(opd_tensor *first, opd_tensor *second, bool inplace) {
    static opd_op *add, *add_inplace;
    opd_value values[3];
    values[0] = opd_value_tensor(first);
    values[1] = opd_value_tensor(second);
    values[2] = opd_value_int(1);
    return inplace
        ? opd_call_op(OPD_OP(&add_inplace, OPDI_NAME(add_Tensor, "aten::add_.Tensor")), values, 3)
        : opd_call_op(OPD_OP(&add, OPDI_NAME(add_Tensor, "aten::add.Tensor")), values, 3);
}

/* Returns first + second.  Adds in place if only the caller uses `first` and the sum is not recorded.  Returns NULL and
   sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_grad_sum(opdi_engine *engine, opd_tensor *first, opd_tensor *second) {
    return opdi_grad_add(first, second, opdi_grad_own(engine, first, second));
}

/* Returns true if both tensors have the same dtype, number of dims and strides, or are both contiguous. */
OPDI_INTERNAL bool opdi_same_layout(const opd_tensor *first, const opd_tensor *second) {
    return first->dtype == second->dtype && first->ndim == second->ndim &&
        ((first->flags & second->flags & OPDI_CONTIGUOUS) ||
         memcmp(first->dims + first->ndim, second->dims + second->ndim, (size_t)first->ndim * sizeof *first->dims) ==
         0);
}

/* Returns `grad`, reduced to the `ndim` sizes `sizes` by summing over the dims to which these sizes were broadcast
   (aten::sum_to_size).  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_sum_to(opd_tensor *grad, const int64_t *sizes, int ndim) {
    static opd_op *sum, *view;
    int64_t dims[OPD_MAX_DIMS];
    opd_value values[4];
    int count = 0, lead = grad->ndim - ndim;
    for (int i = 0; i < lead; i++) { dims[count++] = i; }
    for (int i = lead; i < grad->ndim; i++) {
        if (sizes[i - lead] == 1 && grad->dims[i] != 1) { dims[count++] = i; }
    }
    if (count) {
        values[0] = opd_value_tensor(grad);
        values[1] = opd_value_ints(dims, count);
        values[2] = opd_value_bool(true);
        values[3] = opd_value_none();
        grad = opd_call_op(OPD_OP(&sum, OPDI_NAME(sum_dim_IntList, "aten::sum.dim_IntList")), values, 4);
    }
    if (!grad || lead == 0) { return grad; }
    values[0] = opd_value_tensor(grad);
    values[1] = opd_value_ints(sizes, ndim);
    return opd_call_op(OPD_OP(&view, OPDI_NAME(reshape, "aten::reshape")), values, 2);
}

OPDI_INTERNAL bool opdi_expands(const int64_t *from, int nfrom, const int64_t *to, int nto) {
    for (int i = 0; i < nfrom; i++) {
        if (nto - nfrom + i < 0 || (from[i] != 1 && from[i] != to[nto - nfrom + i])) { return false; }
    }
    return true;
}

/* Returns a copy of `grad` that has the same values, but no flag for lazy conjugation or negation.  Autograd records
   the copy.  Returns NULL and sets an error on failure. */
OPDI_NOINLINE static opd_tensor *opdi_clone_lazy(opd_tensor *grad) {
    static opd_op *clone;
    opd_value self[2];
    self[0] = opd_value_tensor(grad);
    self[1] = opd_value_none();
    return opd_call_op(OPD_OP(&clone, OPDI_NAME(clone, "aten::clone")), self, 2);
}

/* Makes `grad`, which the backward function of node returned for edge i, fit the edge: converts sizes, dtype and
   device.  Returns a borrowed tensor, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_validate(const opd_node *node, int i, opd_tensor *grad) {
    static opd_op *to;
    const int64_t *sizes;
    opd_scalar_type dtype;
    int ndim, place;
    char first[256], second[256];
    if (OPDI_UNLIKELY(grad->functionality & OPDI_LAZY_KEYS) && !(grad = opdi_clone_lazy(grad))) { return NULL; }
    if (!opdi_edge_meta(&opdi_edges(node)[i], &sizes, &ndim, &dtype, &place)) { return grad; }
    if (!opdi_has_sizes(grad, sizes, ndim)) {
        if (!opdi_expands(sizes, ndim, grad->dims, grad->ndim)) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "Function %s returned an invalid gradient at index %d - got %s "
                           "but expected shape compatible with %s", node->formula->name, i,
                           opdi_sizes_text(grad->dims, grad->ndim, first, sizeof first),
                           opdi_sizes_text(sizes, ndim, second, sizeof second));
            return NULL;
        }
        grad = opdi_sum_to(grad, sizes, ndim);
        if (!grad) { return NULL; }
    }
    if (opdi_place_of(grad) != place && grad->ndim == 0) {  /* a single number may move to the other device */
        grad = opd_to_copy_full(grad, OPD_NONE, OPD_NONE, opd_value_device(opdi_place_device(place)), OPD_NONE, false,
                                OPD_NONE);
        if (!grad) { return NULL; }
    }
    if (opdi_place_of(grad) != place && !(grad->backend == OPD_META && opdi_self()->innermost.fake)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD,
                       "Function %s returned an invalid gradient at index %d - expected device %s but got %s",
                       node->formula->name, i, opdi_device_text(opdi_place_device(place), first, sizeof first),
                       opdi_device_text(opd_tensor_device(grad), second, sizeof second));
        return NULL;
    }
    if (grad->dtype != (int32_t)dtype) {
        opd_value values[7];
        if (!opd_dtype_is_floating(dtype) && !opd_dtype_is_complex(dtype)) { return grad; }
        for (int k = 2; k < 7; k++) { values[k] = opd_value_none(); }
        values[0] = opd_value_tensor(grad);
        values[1] = opd_value_int(dtype);
        values[5] = opd_value_bool(false);
        grad = opd_call_op(OPD_OP(&to, OPDI_NAME(_to_copy, "aten::_to_copy")), values, 7);
    }
    return grad;
}

/* Returns true if `grad` is batched at a vmap layer at which `whole` is not batched. */
OPDI_INTERNAL bool opdi_more_examples(const opd_tensor *grad, const opd_tensor *whole) {
    for (; grad->flags & OPDI_BATCHED; grad = opdi_batched_of(grad)->value) {
        const opd_tensor *wrapped = whole;
        while ((wrapped->flags & OPDI_BATCHED) && opdi_batched_of(wrapped)->level != opdi_batched_of(grad)->level) {
            wrapped = opdi_batched_of(wrapped)->value;
        }
        if (!(wrapped->flags & OPDI_BATCHED)) { return true; }
    }
    return false;
}

/* Returns true if `tensor`, or a tensor inside its vmap wrappers, has a tangent in any level. */
OPDI_INTERNAL bool opdi_is_dual_inside(const opd_tensor *tensor) {
    while (tensor && (tensor->flags & OPDI_BATCHED) && !opdi_is_dual(tensor)) {
        tensor = opdi_batched_of(tensor)->value;
    }
    return tensor && opdi_is_dual(tensor);
}

/* Returns a copy of `whole` with the strides `strides` that is batched at every vmap layer at which `whole` or `grad`
   is batched.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_with_examples(opd_tensor *whole, opd_tensor *grad, opd_ints strides) {
    const opd_ints none = opd_ints_of(NULL, 0);
    opd_tensor *like = opd_add(opd_new_zeros(grad, none), opd_new_zeros(whole, none));
    opd_tensor *zeros = like ? opd_new_empty_strided(like, opd_ints_of(whole->dims, whole->ndim), strides) : NULL;
    return zeros ? opd_copy_(zeros, whole) : NULL;
}

/* Makes a tensor of zeros as the gradient of an output that was not used, with the sizes and dtype in its description
   `meta` (see opdi_node_meta).  Returns a reference, or NULL if the output was not a tensor. */
OPDI_INTERNAL opd_tensor *opdi_zeros_of(const int64_t *meta) {
    if (!meta || !opd_ok()) { return NULL; }
    opd_tensor *grad = opdi_tensor_make(meta + 1, NULL, opdi_meta_ndim(meta), opdi_meta_dtype(meta),
                                        opdi_meta_place(meta));
    opd_tensor *zero = grad ? opd_tensor_wrapped_number(opd_value_int(0)) : NULL;
    if (grad && (!zero || opdi_copy(grad, zero))) {
        opdi_drop(grad);
        return NULL;
    }
    return grad;
}
