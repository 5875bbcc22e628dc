#include "../ops.h"

//== copy, clone, contiguous, to =======================================================================================

/* Copies src, which is broadcast, to dst.  If dst is a fake tensor, only checks the sizes.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_copy_into(opd_tensor *dst, const opd_tensor *src) {
    opdi_geometry geometry;
    if (dst == src) { return 0; }
    if (opdi_expand_geometry(src, opdi_sizes_of(dst), &geometry)) { return -1; }
    if (dst->backend == OPD_META) { return 0; }
    if (src->backend == OPD_META) { return opd_fail(OPD_ERROR_ARGUMENT, "Cannot copy out of meta tensor; no data!"); }
    return opdi_copy(dst, src);
}
OPDI_INTERNAL int opdi_copy__kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *src = opd_arg_tensor(call, 1);
    if (self != src && opdi_check_internal_overlap(self)) { return -1; }
    call->th->no_wait = opd_arg_bool(call, 2) && self->backend != src->backend && opdi_like(self, src);
    int rc = opdi_copy_into(self, src);
    call->th->no_wait = false;
    return rc ? -1 : opd_return_tensor(call, self);
}
static int opdi_copy_kernel(opd_call *call) {
    opd_tensor *out = opdi_written(call);
    return out ? opdi_copy_into(out, opd_arg_tensor(call, 1)) : -1;
}
/* Computes the gradient of a copy with respect to argument i: moves grad back to the device of this argument. */
static int opdi_copied_back(opd_backward_call *bw, int i) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_device to = opd_bw_device(bw, i);
    if (grad && opdi_place(to) != opdi_place_of(grad)) {
        grad = opd_to_copy_full(grad, OPD_NONE, OPD_NONE, opd_value_device(to), OPD_NONE, false, OPD_NONE);
    }
    return opd_bw_return(bw, i, grad);
}
static int opdi_to_copy_backward(opd_backward_call *bw) { return opdi_copied_back(bw, 0); }
static int opdi_copy_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_zeros_like(grad))) { return -1; }
    return opd_bw_needs(bw, 1) ? opdi_copied_back(bw, 1) : 0;
}
/* opd_copy_: copies src to self; src is broadcast, converted, and moved between devices if necessary */
OPDI_OP(copy_) {
    op->schema = "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)";
    op->any = opdi_copy__kernel; op->backward = opdi_copy_backward;
    op->vmap = OPD_BATCH_POINTWISE; op->tags = OPDI_OPTAG_NUMBERS;
    op->flops = opdi_flops_none;
    op->cases = "[2,3], [2,3]; [2,3], [3]";
}

static int opdi_copy_batch(opd_call *call) {
    opd_tensor *src = opd_arg_tensor(call, 1);
    if (src->ndim > opd_arg_tensor(call, 0)->ndim) { return opdi_batch_unfit(call); }
    src = opdi_batch_pad(opdi_batch_front_arg(call, 1), opd_arg_tensor(call, 0)->ndim);
    return opd_batch_return(call, opd_copy_full(opdi_batch_front_arg(call, 0), src, opd_arg_bool(call, 2)), 0);
}
/* opd_copy: src, broadcast to self's sizes and converted to its dtype */
OPDI_OP(copy) {
    op->schema = "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor";
    op->any = opdi_copy_kernel; op->backward = opdi_copy_backward; op->jvp = OPD_JVP_POINTWISE;
    op->vmap = opdi_copy_batch;
    op->tags = OPD_OPTAG_POINTWISE | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->flops = opdi_flops_none;
    op->out = "copy.out";
    op->cases = "[2,3], [2,3]; [2,3], [3]";
}

static int64_t opdi_arg_format(const opd_call *call, int i) {
    opd_value value = opd_arg_value(call, i);
    return value.tag == OPD_TAG_INT ? value.u.i : (int64_t)OPDI_FORMAT_PRESERVE;
}
static int opdi_clone_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_tensor *out = opdi_result_like(call, self, (opd_scalar_type)self->dtype, opd_tensor_device(self),
                                       opdi_arg_format(call, 1));
    return out ? opdi_copy_into(out, self) : -1;
}
/* Returns true if the elements of tensor, one example of a batch, have gaps between them in memory, but the same order
   in memory as in a contiguous tensor.  A copy of this example alone would be contiguous. */
static bool opdi_copies_to_rows(const opd_tensor *tensor) {
    int last = -1;
    for (int dim = 0; dim < tensor->ndim; dim++) {
        if (tensor->dims[dim] == 1) { continue; }
        if (last >= 0 && tensor->dims[tensor->ndim + dim] > tensor->dims[tensor->ndim + last]) { return false; }
        last = dim;
    }
    return !opdi_is_dense(tensor);
}
/* Turns the order of a batch of examples, whose dim is in front: if `back` is false, moves the channels behind the
   other dims; if it is true, moves them back.  Returns a view, or NULL and sets an error. */
static opd_tensor *opdi_turn_examples(opd_tensor *batch, bool back) {
    const int ndim = batch->ndim;
    int64_t order[OPD_MAX_DIMS];
    order[0] = 0;
    order[1] = 1;
    for (int dim = 2; dim < ndim; dim++) {
        order[dim] = back ? (dim == 2 ? ndim - 1 : dim - 1) : (dim == ndim - 1 ? 2 : dim + 1);
    }
    return opd_permute(batch, opd_ints_of(order, ndim));
}
/* The batching rule of copies that take a memory format.  For the contiguous format, each example becomes
   contiguous; for a format with the channels last, each example becomes a copy of this format. */
static int opdi_copy_format_batch(opd_call *call) {
    opd_value args[8], *value = &args[call->op->nargs - 1], ret;
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    if (value->tag != OPD_TAG_INT || value->u.i == OPDI_FORMAT_PRESERVE) {
        if (!opdi_copies_to_rows(args[0].u.t)) { return opd_batch_pointwise(call); }
        *value = opd_value_int(OPDI_FORMAT_CONTIGUOUS);
    }
    const bool last = value->u.i >= OPDI_FORMAT_LAST;
    if (last && args[0].u.t->ndim != (value->u.i == OPDI_FORMAT_LAST ? 4 : 5)) {
        return opd_fail(OPD_ERROR_SHAPE, "required rank %d tensor to use channels_last%s format",
                        value->u.i == OPDI_FORMAT_LAST ? 4 : 5, value->u.i == OPDI_FORMAT_LAST ? "" : "_3d");
    }
    *value = opd_value_int(OPDI_FORMAT_CONTIGUOUS);
    args[0].u.t = opdi_batch_front_arg(call, 0);
    if (args[0].u.t && last) { args[0].u.t = opdi_turn_examples(args[0].u.t, false); }
    if (!args[0].u.t || opd_call_all(call->op, &ret, args, call->op->nargs)) { return -1; }
    return opd_batch_return(call, last ? opdi_turn_examples(ret.u.t, true) : ret.u.t, 0);
}
/* opd_clone: a copy of self */
OPDI_OP(clone) {
    op->schema = "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor";
    op->any = opdi_clone_kernel; op->backward = opdi_pass_backward; op->jvp = OPD_JVP_POINTWISE;
    op->vmap = opdi_copy_format_batch;
    op->tags = OPD_OPTAG_POINTWISE | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT; op->flops = opdi_flops_none;
    op->out = "clone.out";
    op->cases = "[2,3]; []";
}

static int opdi_to_copy_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_options options;
    if (opdi_like_options(call, 1, false, &options)) { return -1; }
    if (self->backend == OPD_META && options.device.type != OPD_META && !call->th->innermost.fake) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Cannot copy out of meta tensor; no data!");
    }
    options.format = opdi_arg_format(call, 6);
    opd_tensor *out = opdi_result_like(call, self, options.dtype, options.device, options.format);
    return out ? opdi_copy_into(out, self) : -1;
}
/* The backward function of _to_copy need not cast the gradient, because the engine casts it to the input's dtype. */
/* opd_to_copy(self, dtype): a copy of self in another dtype or on another device */
OPDI_OP(_to_copy) {
    op->schema = "_to_copy(Tensor self, *, " OPDI_OPTIONS_TEXT ", bool non_blocking=False, MemoryFormat? "
        "memory_format=None) -> Tensor";
    op->any = opdi_to_copy_kernel; op->backward = opdi_to_copy_backward; op->jvp = OPD_JVP_POINTWISE;
    op->vmap = opdi_copy_format_batch;
    op->tags = OPD_OPTAG_POINTWISE | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS; op->flops = opdi_flops_none;
    op->out = "_to_copy.out";
    op->cases = "[2,3], dtype=7; [2,3]; [2,3]i5, dtype=6";
}

static bool opdi_has_format(const opd_tensor *tensor, int64_t format) {
    int64_t strides[OPD_MAX_DIMS];
    if (format <= OPDI_FORMAT_CONTIGUOUS) { return (tensor->flags & OPDI_CONTIGUOUS) != 0; }
    if (tensor->ndim != (format == OPDI_FORMAT_LAST ? 4 : 5) ||
        opdi_strides_format(opdi_sizes(tensor), tensor->ndim, format, strides)) {
        return false;
    }
    for (int i = 0; i < tensor->ndim; i++) {
        if (opdi_sizes(tensor)[i] != 1 && opdi_strides(tensor)[i] != strides[i]) { return false; }
    }
    return true;
}
static int opdi_contiguous_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t format = opd_arg_int(call, 1);
    if (opdi_has_format(self, format)) { return opd_return_tensor(call, self); }
    if (format == OPDI_FORMAT_PRESERVE) {
        return opd_fail(OPD_ERROR_ARGUMENT, "preserve memory format is unsupported by the contiguous operator");
    }
    return opd_return_tensor(call, opd_clone_full(self, opd_value_int(format)));
}
/* opd_contiguous: self if it is contiguous in this memory format, else a contiguous copy */
OPDI_OP(contiguous) {
    op->schema = "contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a)";
    op->composite = opdi_contiguous_kernel;
    op->cases = "[2,3]";
}

/* Returns true if tensor is on `device`.  A device without an index stands for the current device of its type. */
OPDI_INTERNAL bool opdi_is_at(const opd_tensor *tensor, opd_device device) {
    const opd_device its = opd_tensor_device(tensor);  /* for a fake tensor, the device that it stands for */
    if (device.type != its.type || device.type == OPD_CPU || device.type == OPD_META) {
        return device.type == its.type;
    }
    return its.index == (device.index >= 0 ? device.index : opd_device_current((opd_backend)device.type).index);
}
/* Returns to the call self converted to dtype, device and format, as at::native::to_impl does, or self itself if
   nothing changes and `copy` is false.  An argument that is None means no change.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_to(opd_call *call, opd_value dtype, opd_value device, bool copy, opd_value format) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    bool same = (dtype.tag != OPD_TAG_INT || dtype.u.i == self->dtype) &&
        (device.tag != OPD_TAG_DEVICE || opdi_is_at(self, device.u.device));
    if (same && !copy &&
        (format.tag != OPD_TAG_INT || format.u.i == OPDI_FORMAT_PRESERVE || opdi_has_format(self, format.u.i))) {
        return opd_return_tensor(call, self);
    }
    /* A device without a number stands for the current device, which is looked up before a kernel for self's device
       runs. */
    if (device.tag == OPD_TAG_DEVICE && device.u.device.index < 0) {
        device = opd_value_device(opd_device_current((opd_backend)device.u.device.type));
    }
    return opd_return_tensor(call, opd_to_copy_full(self, dtype, OPD_NONE, device, OPD_NONE, false, format));
}
static int opdi_to_dtype_kernel(opd_call *call) {
    return opdi_to(call, opd_arg_value(call, 1), OPD_NONE, opd_arg_bool(call, 3), opd_arg_value(call, 4));
}
/* opd_to_dtype: self converted to this dtype; self itself if nothing changes */
OPDI_OP(to_dtype) {
    op->schema = "to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? "
        "memory_format=None) -> Tensor(a)";
    op->composite = opdi_to_dtype_kernel;
    op->tags = OPDI_OPTAG_NUMBERS;
    op->cases = "[2,3], 7; [2,3], 6";
}

//== the number in a tensor ============================================================================================

static int opdi_item_kernel(opd_call *call) {
    opd_tensor one;
    double pair[2], buffer[2];
    const opd_tensor *tensor = opdi_item_of(opd_arg_tensor(call, 0), &one, buffer);
    if (!tensor) { return -1; }
    if (opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        pair[0] = opdi_element_f64(tensor, 0);
        pair[1] = opdi_element_f64(tensor, (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype) / 2);
        return opd_return_value(call, opd_value_complex(pair));
    }
    if (opd_dtype_is_floating((opd_scalar_type)tensor->dtype)) {
        return opd_return_double(call, opdi_element_f64(tensor, 0));
    }
    return tensor->dtype == OPD_BOOL ? opd_return_bool(call, opdi_element_i64(tensor, 0) != 0)
        : opd_return_int(call, opdi_item_whole(tensor));
}
/* opd_local_scalar_dense: the number in a tensor with one element */
OPDI_OP(_local_scalar_dense) {
    op->schema = "_local_scalar_dense(Tensor self) -> Scalar";
    op->any = opdi_item_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_item;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_DATA_DEPENDENT_OUTPUT;
    op->cases = "[]; [1]i5";
}

static int opdi_item_composite(opd_call *call) {
    return opd_return_value(call, opd_local_scalar_dense(opd_arg_tensor(call, 0)));
}
/* opd_item: the number in a tensor with one element */
OPDI_OP(item) {
    op->schema = "item(Tensor self) -> Scalar";
    op->composite = opdi_item_composite;
    op->tags = OPD_OPTAG_DATA_DEPENDENT_OUTPUT;
    op->cases = "[]; [1]i5";
}

//== view.dtype ========================================================================================================

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define OPDI_WEIGHTS_VIEWED false                  /* blocks have the lowest byte first */
#else
#define OPDI_WEIGHTS_VIEWED true
#endif
/* Returns the dtype of 16-bit numbers in blocks that has the same bytes as `dtype`, or OPD_DTYPE_NONE. */
static opd_scalar_type opdi_weight_of(opd_scalar_type dtype) {
    if (!OPDI_WEIGHTS_VIEWED) { return OPD_DTYPE_NONE; }
    return dtype == OPD_FLOAT16 ? OPD_WEIGHT_F16 : dtype == OPD_BFLOAT16 ? OPD_WEIGHT_BF16 : OPD_DTYPE_NONE;
}
/* Returns a view of a tensor in blocks as its bytes (uint8), or the reverse.  Blocks and bytes lie along the last dim.
   On failure, returns NULL and sets an error. */
static opd_tensor *opdi_view_bytes(opd_tensor *self, opd_scalar_type dtype) {
    const bool to = dtype == OPD_UINT8;           /* to bytes */
    const opd_scalar_type block = to ? (opd_scalar_type)self->dtype : dtype;
    const int last = self->ndim - 1;
    int64_t bytes;
    const int64_t elements = opd_dtype_block(block, &bytes), from = to ? elements : bytes, into = to ? bytes : elements;
    const int64_t offset = self->data ? (int64_t)(self->data - self->storage->data) : self->begin;
    opdi_geometry geometry;
    opdi_geometry_of(&geometry, self);
    bool fits = last >= 0 && (to || offset % bytes == 0) && (self->numel == 0 || geometry.sizes[last] % from == 0);
    for (int dim = 0; fits && self->numel && dim <= last; dim++) {
        fits = dim == last ? geometry.strides[dim] == 1
            : geometry.sizes[dim] == 1 || geometry.strides[dim] % from == 0;
    }
    if (!fits) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a tensor of %s cannot be viewed as %s: the last dim must have stride 1 and "
                       "whole blocks, of %lld elements in %lld bytes, and so must the strides of the other dims",
                       opd_dtype_name((opd_scalar_type)self->dtype), opd_dtype_name(dtype), (long long)elements,
                       (long long)bytes);
        return NULL;
    }
    for (int dim = 0; dim < last; dim++) { geometry.strides[dim] = geometry.strides[dim] / from * into; }
    geometry.sizes[last] = geometry.sizes[last] / from * into;
    return opdi_view_retyped(self, &geometry, dtype);
}
/* view.dtype: returns a view of self's bytes as elements of another dtype.  If these have another size, the last dim,
   which must have stride 1, becomes longer or shorter; its bytes must be a multiple of the new size. */
static int opdi_view_dtype_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_scalar_type dtype = opd_arg_dtype(call, 1, OPD_FLOAT32);
    int64_t old = (int64_t)opd_dtype_size((opd_scalar_type)self->dtype), now = (int64_t)opd_dtype_size(dtype);
    opdi_geometry geometry;
    int last = self->ndim - 1;
    if (!opd_ok()) { return -1; }
    if (self->dtype == (int32_t)dtype) { old = now = 1; }
    else if (opdi_weight_of((opd_scalar_type)self->dtype) == dtype) { now = old; }
    else if (opdi_weight_of(dtype) == (opd_scalar_type)self->dtype) { old = now; }
    if ((dtype == OPD_UINT8 && opdi_is_block(self->dtype)) || (self->dtype == OPD_UINT8 && opdi_is_block((int)dtype))) {
        return opd_return_tensor(call, opdi_view_bytes(self, dtype));
    }
    if (!old || !now) {
        return opd_fail(OPD_ERROR_DTYPE, "a tensor of %s cannot be viewed as %s, because one of them is stored in "
                        "blocks: opd_dequantize makes float32 of blocks, and only uint8 is a view of their bytes",
                        opd_dtype_name((opd_scalar_type)self->dtype), opd_dtype_name(dtype));
    }
    if ((self->flags & OPDI_LAZY) && self->dtype != (int32_t)dtype) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_view_dtype is not supported for %s when converting to a different "
                        "dtype.", opd_tensor_is_conj(self) ? "conjugate view tensors"
                                                                 : "tensors with negative bit set");
    }
    opdi_geometry_of(&geometry, self);
    int64_t ratio = OPDI_MAX(old, now) / OPDI_MIN(old, now);
    if (ratio > 1 && last < 0) {
        return opd_fail(OPD_ERROR_SHAPE, "self.dim() cannot be 0 to view %s as %s (different element sizes)",
                        opd_dtype_name((opd_scalar_type)self->dtype), opd_dtype_name(dtype));
    }
    if (ratio > 1 && geometry.strides[last] != 1) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "self.stride(-1) must be 1 to view %s as %s (different element sizes), but got %lld",
                        opd_dtype_name((opd_scalar_type)self->dtype), opd_dtype_name(dtype),
                        (long long)geometry.strides[last]);
    }
    for (int dim = 0; now > old && dim <= last; dim++) {
        if ((dim == last ? geometry.sizes[dim] : geometry.strides[dim]) % ratio != 0 ||
            (dim == last && opd_tensor_offset(self) % ratio != 0)) {
            return opd_fail(OPD_ERROR_SHAPE, "self.%s(%d) must be divisible by %lld to view %s as %s (different "
                            "element sizes), but got %lld", dim == last ? "size" : "stride", dim == last ? -1 : dim,
                            (long long)ratio, opd_dtype_name((opd_scalar_type)self->dtype), opd_dtype_name(dtype),
                            (long long)(dim == last ? geometry.sizes[dim] : geometry.strides[dim]));
        }
        if (dim == last) { geometry.sizes[dim] /= ratio; } else { geometry.strides[dim] /= ratio; }
    }
    for (int dim = 0; now < old && dim <= last; dim++) {
        if (dim == last) { geometry.sizes[dim] *= ratio; } else { geometry.strides[dim] *= ratio; }
    }
    return opd_return_tensor(call, opdi_view_retyped(self, &geometry, dtype));
}
/* Computes the gradient of view.dtype, which exists only if the dtype stayed the same. */
static int opdi_view_dtype_backward(opd_backward_call *bw) {
    if (opd_bw_value(bw, 1).u.i == (int64_t)opd_bw_dtype(bw, 0)) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
    return opd_fail(OPD_ERROR_AUTOGRAD, "a view as another dtype has no derivative");
}
/* Lets autograd make real views of complex tensors, and the reverse, again after writes: see opdi_pair_views.  Called
   when an operator that makes such views is registered. */
OPDI_INTERNAL void opdi_pairs_noted(void) {
    static const opdi_pair_views views = {opd_view_as_real, opd_view_as_complex};
    OPDI_PUBLISH(&opdi_on_pairs, &views);
}
/* opd_view_dtype: self's bytes as elements of another dtype, without a copy */
OPDI_OP(view_dtype) {
    op->schema = "view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)";
    opdi_pairs_noted();
    op->any = opdi_view_dtype_kernel; op->backward = opdi_view_dtype_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[2,4]i5, 7";
}
