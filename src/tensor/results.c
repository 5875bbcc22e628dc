#include "tensor.h"

//== results of kernels ================================================================================================

OPDI_COLD_BEGIN
/* Returns true if several elements of `tensor` may lie at one address: a stride is zero, or strides do not nest. */
OPDI_INTERNAL bool opdi_overlaps_itself(const opd_tensor *tensor) {
    const int64_t *sizes = tensor->dims, *strides = tensor->dims + tensor->ndim;
    int64_t reach = 0, last = -1;
    if ((tensor->flags & OPDI_CONTIGUOUS) || tensor->numel < 2) { return false; }
    for (int k = 0; k < tensor->ndim; k++) {      /* visits the dims by increasing stride: each must step over the dims
                                                     before */
        int best = -1;
        for (int i = 0; i < tensor->ndim; i++) {
            if (sizes[i] > 1 && strides[i] > last && (best < 0 || strides[i] < strides[best])) { best = i; }
        }
        if (best < 0) { break; }
        for (int i = 0; i < tensor->ndim; i++) {
            if (i != best && sizes[i] > 1 && strides[i] == strides[best]) { return true; }
        }
        if (strides[best] <= reach) { return true; }
        last = strides[best];
        reach += (sizes[best] - 1) * strides[best];
    }
    return false;
}
OPDI_COLD_END

#define OPDI_OVERLAP_TEXT                                                                                   \
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. " \
    "Please clone() the tensor before performing the operation."

static bool opdi_same_place(const opd_tensor *first, const opd_tensor *second) {
    return first->data == second->data && first->ndim == second->ndim && first->dtype == second->dtype &&
        memcmp(first->dims, second->dims, 2 * (size_t)first->ndim * sizeof *first->dims) == 0;
}
/* Returns true if writing `out` while `tensor` is read would change elements that are still to be read.  An elementwise
   kernel may write the elements that it reads.  Two tensors without gaps that overlap in another way are left to that
   kernel, which refuses them (opdi_check_partial_overlap). */
static bool opdi_reads(const opd_call *call, const opd_tensor *tensor, const opd_tensor *out) {
    if ((call->elementwise && tensor == out) || !opdi_same_memory(tensor, out)) { return false; }
    return !call->elementwise || (!opdi_same_place(tensor, out) && !(opdi_is_dense(tensor) && opdi_is_dense(out)));
}
static bool opdi_shares_input(const opd_call *call, const opd_tensor *out) {
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (value->tag == OPD_TAG_TENSOR && opdi_reads(call, value->u.t, out)) { return true; }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] && opdi_reads(call, value->u.tensors[k], out)) { return true; }
        }
    }
    return false;
}

/* Fails if the target `to` does not have `dtype`, the dtype of the result.  Used for operators that do not convert
   results.  But a real result of a pointwise operator on complex numbers, such as abs, may be written to a target of
   any dtype.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_check_exact(const opd_call *call, const opd_tensor *to, opd_scalar_type dtype) {
    const opd_tensor *self = call->args[0].tag == OPD_TAG_TENSOR ? call->args[0].u.t : NULL;
    const bool pointwise = (opd_op_tags(call->op) & OPD_OPTAG_POINTWISE) != 0;
    if (to->dtype == dtype ||
        (pointwise && self && opd_dtype_is_complex((opd_scalar_type)self->dtype) && opd_dtype_is_floating(dtype))) {
        return 0;
    }
    const char *want = opd_dtype_name(dtype), *have = opd_dtype_name((opd_scalar_type)to->dtype);
    if (opd_op_tags(call->op) & OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected out tensor to have scalar type %s but got scalar type %s", want,
                        have);
    }
    return pointwise ? opd_fail(OPD_ERROR_DTYPE, "Found dtype %s but expected %s", have, want)
        : opd_fail(OPD_ERROR_DTYPE, "Expected out tensor to have dtype %s, but got %s instead", want, have);
}
/* Checks that result number `i`, with these sizes and this dtype, may be written to the call's target; does not change
   the target.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_check_target(const opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype)
                                    {
    const opd_tensor *out = call->targets[i];
    const opd_scalar_type have = (opd_scalar_type)out->dtype;
    if (have != dtype && !opd_can_cast(dtype, have)) {
        return opd_fail(OPD_ERROR_DTYPE, "result type %s can't be cast to the desired output type %s",
                        opd_dtype_name(dtype), opd_dtype_name(have));
    }
    if (call->exact && opdi_check_exact(call, out, dtype)) { return -1; }
    if (opdi_has_sizes(out, sizes, ndim)) {
        return opdi_overlaps_itself(out) ? opd_fail(OPD_ERROR_ARGUMENT, OPDI_OVERLAP_TEXT) : 0;
    }
    if (call->inplace) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "output with shape %s doesn't match the broadcast shape %s",
                        opdi_sizes_text(out->dims, out->ndim, first, sizeof first),
                        opdi_sizes_text(sizes, ndim, second, sizeof second));
    }
    return opdi_resize_bytes(out, sizes, ndim) < 0 ? -1 : 0;
}

/* Returns the tensor to which a kernel writes result `i` of an in-place or out= form: the target (self or the out=
   tensor), or a temporary tensor if the target has other sizes or another dtype, or shares memory with an input.
   Returns NULL and sets an error if that fails. */
static opd_tensor *opdi_result_target(opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    opd_tensor *out = call->targets[i];
    const bool fits = out->dtype == dtype && opdi_has_sizes(out, sizes, ndim);
    if ((!fits || opdi_overlaps_itself(out)) && opdi_check_target(call, i, sizes, ndim, dtype)) { return NULL; }
    call->filled |= 1u << i;
    if (fits && !opdi_shares_input(call, out)) {
        call->rets[i] = opd_value_tensor(out);
        return out;
    }
    opd_tensor *temp = opdi_tensor_make(sizes, NULL, ndim, dtype, opdi_place_of(out));
    if (!temp) {
        call->filled &= ~(1u << i);
        return NULL;
    }
    call->rets[i] = opd_value_tensor(temp);
    call->owned |= 1u << i;
    return temp;
}

/* If the call is an in-place form and no other argument uses the memory of argument 0, makes argument 0 the result and
   returns true.  Otherwise returns false. */
OPDI_INTERNAL bool opdi_updates_self(opd_call *call) {
    opd_tensor *self = call->args[0].u.t;
    if (!call->targets || !call->inplace || call->targets[0] != self || opdi_overlaps_itself(self)) { return false; }
    for (int i = 1; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (value->tag == OPD_TAG_TENSOR && opdi_same_memory(value->u.t, self)) { return false; }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] && opdi_same_memory(value->u.tensors[k], self)) { return false; }
        }
    }
    call->rets[0] = opd_value_tensor(self);
    call->filled |= 1u;
    return true;
}

static bool opdi_is_factory(const opd_op *op) {
    const opdi_card *card = OPDI_ACQUIRE(&op->card);
    return card && card->desc.vmap == opd_batch_factory;
}

/* Returns true for operators whose tensors may be on several devices: some built-in operators, and all operators of
   programs, which check devices themselves. */
OPDI_INTERNAL bool opdi_mixes_devices(const opd_op *op) {
    static const char *const names[] = {"copy", "copy_", "resize_as", "resize_as_", "is_same_size", "index",
                                        "index_put", "index_put_", "_index_put_impl_"};
    if (strncmp(op->name, "aten::", 6) != 0) { return true; }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(op->base_name + 6, names[i]) == 0) { return true; }
    }
    return false;
}
/* Outside of a fake mode, refuses a meta tensor together with a tensor of another device that is not a single number.
   Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_check_meta(const opd_call *call) {
    for (int i = 0; i < call->op->nargs && !call->th->innermost.fake && !opdi_mixes_devices(call->op); i++) {
        const opd_value *value = &call->args[i];
        for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (!tensor || tensor->backend == OPD_META || tensor->ndim == 0) { continue; }
            return opd_fail(OPD_ERROR_ARGUMENT, "Expected all tensors to be on the same device, but found at least two "
                            "devices, meta and %s! (argument '%s')", opdi_device_name(tensor->backend),
                            call->op->schema->args[i].name);
        }
    }
    return 0;
}
/* Makes result `i` of a call.  The call owns the result.  In an in-place or out= form, the result is the target, if
   possible.  Returns NULL and sets an error if that fails. */
opd_tensor *opd_result_strided(opd_call *call, int i, const int64_t *sizes, const int64_t *strides, int ndim,
                               opd_scalar_type dtype, opd_device device) {
    if (OPDI_UNLIKELY(call->th->error != OPD_OK)) { return NULL; }
    if (OPDI_UNLIKELY(i < 0 || i >= call->op->nrets || (call->filled >> i & 1))) {
        (void)opd_fail(OPD_ERROR_KERNEL, "opd_result: result %d of %d %s", i, call->op->nrets,
                       i < 0 || i >= call->op->nrets ? "does not exist" : "was returned already");
        return NULL;
    }
    if (OPDI_UNLIKELY(!(call->op->tensor_rets >> i & 1))) {
        (void)opdi_return_error(call, i, "Tensor");
        return NULL;
    }
    if (call->targets && !call->stands_in) { return opdi_result_target(call, i, sizes, ndim, dtype); }
    if (OPDI_UNLIKELY(call->keys.backends >> OPD_META & 1)) {
        if (call->keys.backends != (uint64_t)1 << OPD_META && opdi_check_meta(call)) { return NULL; }
        /* a factory may name the device, as empty_like(device=) does */
        if (call->th->innermost.fake || !opdi_is_factory(call->op)) { device.type = OPD_META; }
    }
    opd_tensor *tensor = opdi_tensor_make(sizes, strides, ndim, dtype, opdi_place(device));
    if (!tensor) { return NULL; }
    call->rets[i] = opd_value_tensor(tensor);
    call->filled |= 1u << i;
    call->owned |= 1u << i;
    return tensor;
}

/* Returns the device of a call's results: the device of the highest backend among its arguments, or the CPU. */
OPDI_INTERNAL opd_device opdi_call_device(const opd_call *call) {
    return opd_device_make(call->keys.backends ? (opd_backend)opdi_top_bit(call->keys.backends) : OPD_CPU, -1);
}

opd_tensor *opd_result(opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    return opd_result_strided(call, i, sizes, NULL, ndim, dtype, opdi_call_device(call));
}
