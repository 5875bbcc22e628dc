#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:create    creating tensors: filled with a value, sequences, random numbers
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== filling ===========================================================================================================

/* Converts `value` to dtype, as c10::checked_convert does, and writes the bytes of the element to `out`, which has
   space for two doubles.  Returns 0, or -1 and sets an error if the number does not fit. */
OPDI_INTERNAL int opdi_element_of(opd_value value, opd_scalar_type dtype, double *out /*[2]*/) {
    const double re = value.tag == OPD_TAG_FLOAT ? value.u.d : value.tag == OPD_TAG_COMPLEX ? value.u.c[0]
        : (double)value.u.i;
    const double im = value.tag == OPD_TAG_COMPLEX ? value.u.c[1] : 0;
    const bool whole = value.tag == OPD_TAG_INT || value.tag == OPD_TAG_BOOL;
    const int size = (int)opd_dtype_size(dtype);
    const double high = dtype == OPD_UINT8 ? 256 : ldexp(1, 8 * size - 1);
    const double low = dtype == OPD_UINT8 ? whole ? -255 : 0 : -high;
    int64_t i = whole ? value.u.i : opdi_f64_to_i64(re);
    float f = (float)re, pair[2];
    uint16_t half;
    if (opdi_is_stored_dtype((int)dtype)) { return opdi_stored_element_of(value, dtype, out); }
    out[0] = out[1] = 0;
    if ((!opd_dtype_is_complex(dtype) && (im < 0 || im > 0)) ||
        (opd_dtype_is_floating(dtype) && isfinite(re) && fabs(re) > opdi_float_top(dtype))) {
        return opdi_overflow_fail(dtype);
    }
    if (opd_dtype_is_integral(dtype, false) && (!(re > low - 1) || !(re < high)) && !(whole && size == 8)) {
        return opdi_overflow_fail(dtype);
    }
    switch (dtype) {
        case OPD_FLOAT32: memcpy(out, &f, 4); break;
        case OPD_FLOAT64: out[0] = re; break;
        case OPD_FLOAT16: half = opdi_f32_to_f16(f); memcpy(out, &half, 2); break;
        case OPD_BFLOAT16: half = opdi_f32_to_bf16(f); memcpy(out, &half, 2); break;
        case OPD_COMPLEX64: pair[0] = f; pair[1] = (float)im; memcpy(out, pair, 8); break;
        case OPD_COMPLEX128: out[0] = re; out[1] = im; break;
        case OPD_BOOL: *(char *)out = whole ? value.u.i != 0 : (re < 0 || re > 0 || re != re || im < 0 || im > 0);
        break;
        case OPD_INT16: case OPD_INT32: case OPD_INT64: case OPD_INT8: case OPD_UINT8: {
            int32_t w = (int32_t)(uint32_t)(uint64_t)i;
            int16_t s = (int16_t)(uint16_t)(uint64_t)i;
            uint8_t second = (uint8_t)(uint64_t)i;
            memcpy(out, size == 8 ? (void *)&i : size == 4 ? (void *)&w : size == 2 ? (void *)&s : (void *)&second,
                   (size_t)size);
            break;
        }
        default: break;
    }
    return 0;
}

typedef struct opdi_fill { char *data; const char *element; int64_t size; bool zero; } opdi_fill;
/* Fills elements [begin, end) of ctx, an opdi_fill, with copies of its element, up to 1024 bytes at a time. */
static void opdi_fill_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_fill *fill = (const opdi_fill *)ctx;
    char run[1024];
    if (fill->zero) {
        memset(fill->data + begin * fill->size, 0, (size_t)((end - begin) * fill->size));
        return;
    }
    int64_t at = begin * fill->size, stop = end * fill->size, count = OPDI_MIN(stop - at, (int64_t)sizeof run);
    for (int64_t i = 0; i < count; i += fill->size) { memcpy(run + i, fill->element, (size_t)fill->size); }
    for (; at < stop; at += count) {
        count = OPDI_MIN(count, stop - at);
        memcpy(fill->data + at, run, (size_t)count);
    }
}
/* Sets every element of tensor to value; does nothing for a fake tensor.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fill_with(opd_tensor *tensor, opd_value value) {
    const double nothing[2] = {0, 0};
    double element[2];
    opdi_fill fill;
    opd_tensor one;
    int rc = 0;
    if (opdi_element_of(value, (opd_scalar_type)tensor->dtype, element)) { return -1; }
    if (!tensor->data || tensor->numel == 0) { return 0; }
    memset(&one, 0, sizeof one);
    one.refs = 1;
    one.numel = 1;
    one.dtype = tensor->dtype;
    one.flags = (uint8_t)(OPDI_CONTIGUOUS | (tensor->flags & OPDI_STORED));
    one.data = (char *)element;
    if (opdi_on_device(tensor) && tensor->flags & OPDI_STORED) { return opdi_copy(tensor, &one); }
    if (opdi_on_device(tensor)) { return opdi_device_fill(tensor, value, &rc) ? rc : opdi_copy(tensor, &one); }
    fill.data = tensor->data;
    fill.element = (const char *)element;
    fill.size = (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    fill.zero = memcmp(element, nothing, (size_t)fill.size) == 0;
    if (opdi_is_dense(tensor) && !opdi_overlaps_itself(tensor)) {
        opdi_parallel_for(tensor->numel, OPDI_GRAIN, opdi_fill_part, &fill);
        return 0;
    }
    return opdi_copy(tensor, &one);
}

//== operators that create tensors =====================================================================================

/* Sets the error that `format` is not a supported memory format.  Returns -1. */
OPDI_INTERNAL int opdi_format_fail(int64_t format) {
    return opd_fail(OPD_ERROR_ARGUMENT, "unsupported memory format %lld: it must be 0 (contiguous), 1 (preserve), 2 "
                    "(channels_last) or 3 (channels_last_3d)", (long long)format);
}
/* Reads the options of a factory operator into *options: dtype, layout, device, pin_memory and, if has_format, a memory
   format.  The options are the call's arguments from number `at` on.  If the dtype or the device is None, the
   parameters dtype and device are used.  Returns 0, or -1 and sets an error that names the unsupported option. */
OPDI_INTERNAL int opdi_options_read(const opd_call *call, int at, bool has_format, opd_scalar_type dtype,
                                    opd_device device, opdi_options *options) {
    opd_value value = opd_arg_value(call, at), layout = opd_arg_value(call, at + 1), pin = opd_arg_value(call, at + 3);
    options->dtype = value.tag == OPD_TAG_INT && value.u.i == OPD_DTYPE_NONE ? dtype : opd_arg_dtype(call, at, dtype);
    options->device = opd_arg_device(call, at + 2, device);
    options->format = -1;
    if (has_format) {
        opd_value format = opd_arg_value(call, at + 4);
        options->format = format.tag == OPD_TAG_INT ? format.u.i : -1;
    }
    if (layout.tag == OPD_TAG_INT && layout.u.i != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "only strided tensors are supported: layout must be 0 or OPD_NONE, not "
                        "%lld", (long long)layout.u.i);
    }
    if (pin.tag == OPD_TAG_BOOL && pin.u.i) {
        return opd_fail(OPD_ERROR_ARGUMENT, "pinned memory is not available: pin_memory must be false or OPD_NONE");
    }
    return opd_ok() ? 0 : -1;
}
/* Fills strides [ndim] with the strides that these sizes have in a memory format.  Channels last exists only for 4 and
   5 dims (c10/core/MemoryFormat.h).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_strides_format(const int64_t *sizes, int ndim, int64_t format, int64_t *strides) {
    const int want = format == OPDI_FORMAT_LAST ? 4 : 5;
    int64_t count = 1;
    if (format <= OPDI_FORMAT_CONTIGUOUS) {
        opdi_strides_fill(sizes, strides, ndim);
        return 0;
    }
    if (format != OPDI_FORMAT_LAST && format != OPDI_FORMAT_LAST_3D) { return opdi_format_fail(format); }
    if (ndim != want) {
        return opd_fail(OPD_ERROR_SHAPE, "required rank %d tensor to use channels_last%s format", want,
                        want == 5 ? "_3d" : "");
    }
    strides[1] = 1;
    count = sizes[1];
    for (int i = ndim - 1; i >= 2; i--) {
        strides[i] = count;
        count = opdi_size_times(count, OPDI_MAX(sizes[i], 1));
    }
    strides[0] = count;
    return 0;
}
/* Returns true if `tensor` has the strides of the memory format channels last (c10::is_channels_last_strides_2d and
   3d).  Then results get this memory format, too. */
OPDI_INTERNAL bool opdi_is_channels_last(const opd_tensor *tensor) {
    const int64_t *sizes = opdi_sizes(tensor), *strides = opdi_strides(tensor);
    int64_t least = 0;
    int ndim = tensor->ndim;
    if ((ndim != 4 && ndim != 5) || strides[1] == 0) { return false; }
    for (int k = 0; k < ndim; k++) {
        const int dim = k == 0 ? 1 : k == ndim - 1 ? 0 : ndim - k;  /* c, w, h, (d,) n */
        if (sizes[dim] == 0 || strides[dim] < least || (dim == 0 && least == strides[1])) { return false; }
        least = strides[dim];
        if (sizes[dim] > 1) { least = opdi_size_times(least, sizes[dim]); }
    }
    return true;
}
/* Returns the memory format of `tensor` as a number: channels last if it has the strides of this format, else
   contiguous (TensorBase::suggest_memory_format). */
OPDI_INTERNAL int64_t opdi_format_of(const opd_tensor *tensor) {
    return !opdi_is_channels_last(tensor) ? OPDI_FORMAT_CONTIGUOUS
        : tensor->ndim == 4 ? OPDI_FORMAT_LAST : OPDI_FORMAT_LAST_3D;
}
/* Makes result i of the call, of `dtype` and with sizes [n, c, ...].  If `last` is true, the result is stored
   channels last.  Returns the result, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_result_format(opd_call *call, int i, bool last, const int64_t *sizes, int ndim,
                                             opd_scalar_type dtype) {
    int64_t strides[OPD_MAX_DIMS];
    if (!last || (ndim != 4 && ndim != 5)) { return opd_result(call, i, sizes, ndim, dtype); }
    (void)opdi_strides_format(sizes, ndim, ndim == 4 ? OPDI_FORMAT_LAST : OPDI_FORMAT_LAST_3D, strides);
    return opd_result_strided(call, i, sizes, strides, ndim, dtype, opdi_call_device(call));
}
/* Fills strides [ndim] with the strides of a new tensor that is made like `tensor`, as at::empty_like with the preserve
   format chooses them (at::infer_dense_strides). */
OPDI_INTERNAL void opdi_strides_like(opd_tensor *tensor, int64_t *strides) {
    int perm[OPD_MAX_DIMS];
    int64_t count = 1;
    if (tensor->flags & OPDI_CONTIGUOUS) {
        memcpy(strides, opdi_strides(tensor), (size_t)tensor->ndim * sizeof *strides);
        return;
    }
    if (opdi_is_dense(tensor) && !opdi_overlaps_itself(tensor)) {
        memcpy(strides, opdi_strides(tensor), (size_t)tensor->ndim * sizeof *strides);
        return;
    }
    opdi_dims_order(&tensor, 1, opdi_sizes(tensor), tensor->ndim, perm);
    for (int i = 0; i < tensor->ndim; i++) {
        strides[perm[i]] = count;
        count = opdi_size_times(count, OPDI_MAX(opdi_sizes(tensor)[perm[i]], 1));
    }
}
/* Makes result 0 in a memory format.  `like` gives the sizes and, for the format "preserve", the strides.  On failure,
   returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_result_like(opd_call *call, opd_tensor *like, opd_scalar_type dtype, opd_device device,
                                           int64_t format) {
    int64_t strides[OPD_MAX_DIMS];
    if (format < 0 || format == OPDI_FORMAT_PRESERVE) { opdi_strides_like(like, strides); }
    else if (opdi_strides_format(opdi_sizes(like), like->ndim, format, strides)) { return NULL; }
    return opd_result_strided(call, 0, opdi_sizes(like), strides, like->ndim, dtype, device);
}
OPDI_INTERNAL opd_tensor *opdi_result_sized(opd_call *call, opd_ints sizes, const opdi_options *options) {
    int64_t strides[OPD_MAX_DIMS];
    if (sizes.n > OPD_MAX_DIMS || options->format <= OPDI_FORMAT_CONTIGUOUS) {
        return opd_result_strided(call, 0, sizes.data, NULL, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1),
                                  options->dtype, options->device);
    }
    if (opdi_strides_format(sizes.data, (int)sizes.n, options->format, strides)) { return NULL; }
    return opd_result_strided(call, 0, sizes.data, strides, (int)sizes.n, options->dtype, options->device);
}
static int opdi_made(opd_tensor *tensor, opd_value value) { return tensor ? opdi_fill_with(tensor, value) : -1; }
/* Returns the dtype that torch.full chooses for the number `value`. */
static opd_scalar_type opdi_dtype_of_number(opd_value value) {
    return value.tag == OPD_TAG_BOOL ? OPD_BOOL : value.tag == OPD_TAG_INT ? OPD_INT64
        : value.tag == OPD_TAG_COMPLEX ? OPD_COMPLEX64 : OPD_FLOAT32;
}

/* empty: makes a tensor of the sizes in argument 0 without setting its elements. */
static int opdi_empty_kernel(opd_call *call) {
    opdi_options options;
    if (opdi_options_read(call, 1, true, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    return opdi_result_sized(call, opd_arg_ints(call, 0), &options) ? 0 : -1;
}
static int opdi_sized_kernel(opd_call *call, opd_value value) {
    opdi_options options;
    if (opdi_options_read(call, 1, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    return opdi_made(opdi_result_sized(call, opd_arg_ints(call, 0), &options), value);
}
static int opdi_zeros_kernel(opd_call *call) { return opdi_sized_kernel(call, opd_value_int(0)); }
static int opdi_ones_kernel(opd_call *call) { return opdi_sized_kernel(call, opd_value_int(1)); }
static int opdi_full_kernel(opd_call *call) {
    const opd_value value = opd_arg_value(call, 1);
    opdi_options options;
    if (opdi_options_read(call, 2, false, opdi_dtype_of_number(value), opdi_usual_device(), &options)) { return -1; }
    return opdi_made(opdi_result_sized(call, opd_arg_ints(call, 0), &options), value);
}
static int opdi_scalar_tensor_kernel(opd_call *call) {
    opdi_options options;
    if (opdi_options_read(call, 1, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    return opdi_made(opdi_result_sized(call, opd_ints_of(NULL, 0), &options), opd_arg_value(call, 0));
}
static int opdi_empty_strided_at(opd_call *call, int at, const opdi_options *options) {
    opd_ints sizes = opd_arg_ints(call, at), strides = opd_arg_ints(call, at + 1);
    if (sizes.n != strides.n) {
        return opd_fail(OPD_ERROR_SHAPE, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)",
                        (long long)sizes.n, (long long)strides.n);
    }
    for (int64_t i = 0; i < strides.n; i++) {
        if (strides.data[i] < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "strides must be non-negative, but got %lld", (long long)strides.data[i]);
        }
    }
    return opd_result_strided(call, 0, sizes.data, strides.data, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1),
                              options->dtype, options->device) ? 0 : -1;
}
static int opdi_empty_strided_kernel(opd_call *call) {
    opdi_options options;
    return opdi_options_read(call, 2, false, OPD_FLOAT32, opdi_usual_device(), &options) ? -1
        : opdi_empty_strided_at(call, 0, &options);
}
/* opd_empty: a tensor of these sizes, whose memory is not initialized */
OPDI_OP(empty_memory_format) {
    op->schema = "empty.memory_format(SymInt[] size, *, " OPDI_OPTIONS_TEXT ", MemoryFormat? memory_format=None) -> "
        "Tensor";
    op->any = opdi_empty_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_CORE;
    op->out = "empty.out";
    op->cases = "(2,3); (1,2,3,4), memory_format=2";
}
/* opd_empty_strided: a tensor of these sizes and strides, whose memory is not initialized */
OPDI_OP(empty_strided) {
    op->schema = "empty_strided(SymInt[] size, SymInt[] stride, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_empty_strided_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_CORE;
    op->out = "empty_strided.out";
    op->cases = "(2,3), (1,2)";
}
/* empty_permuted: makes a tensor whose dims lie in memory in the order physical_layout, the slowest dim first. */
static int opdi_empty_permuted_kernel(opd_call *call) {
    const opd_ints sizes = opd_arg_ints(call, 0), order = opd_arg_ints(call, 1);
    int64_t strides[OPD_MAX_DIMS], count = 1;
    uint64_t seen = 0;
    opdi_options options;
    if (opdi_options_read(call, 2, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    if (sizes.n != order.n) {
        return opd_fail(OPD_ERROR_SHAPE, "Number of dimensions in size does not match the length of the "
                        "physical_layout; i.e. len(size) = %lld is not equal to len(physical_layout) = %lld",
                        (long long)sizes.n, (long long)order.n);
    }
    if (sizes.n > OPD_MAX_DIMS) { return (int)opdi_count(sizes.data, OPD_MAX_DIMS + 1, 1); }
    for (int64_t i = sizes.n - 1; i >= 0; i--) {
        const int64_t dim = order.data[i];
        if (dim < 0 || dim >= sizes.n) {
            return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be between 0 and %lld, but got %lld "
                            "at index %lld).  NB: negative dims not currently supported; file an issue if you want it.",
                            (long long)sizes.n - 1, (long long)dim, (long long)i);
        }
        if (seen >> dim & 1) { return opd_fail(OPD_ERROR_ARGUMENT, "Duplicate dim not allowed"); }
        seen |= (uint64_t)1 << dim;
        strides[dim] = count;
        count = opdi_size_times(count, OPDI_MAX(sizes.data[dim], (int64_t)1));
    }
    return opd_result_strided(call, 0, sizes.data, strides, (int)sizes.n, options.dtype, options.device) ? 0 : -1;
}
/* opd_empty_permuted: an uninitialized tensor whose dims lie in memory in the order physical_layout, the slowest
   first */
OPDI_OP(empty_permuted) {
    op->schema = "empty_permuted(SymInt[] size, int[] physical_layout, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_empty_permuted_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "empty_permuted.out";
    op->cases = "(2,3,4), (1,2,0)";
}
/* opd_zeros: a tensor of zeros */
OPDI_OP(zeros) {
    op->schema = "zeros(SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_zeros_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "zeros.out";
    op->cases = "(2,3); (); (2,0), dtype=4";
}
/* opd_ones: a tensor of ones */
OPDI_OP(ones) {
    op->schema = "ones(SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_ones_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "ones.out";
    op->cases = "(2,3); (); (2,0), dtype=4";
}
/* opd_full: a tensor whose elements are all fill_value */
OPDI_OP(full) {
    op->schema = "full(SymInt[] size, Scalar fill_value, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_full_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_CORE;
    op->out = "full.out";
    op->cases = "(2,3), 1.5; (2), 2; (2), True; (2), 1, dtype=7";
}
/* opd_scalar_tensor: a tensor without dims that holds the number s */
OPDI_OP(scalar_tensor) {
    op->schema = "scalar_tensor(Scalar s, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_scalar_tensor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_CORE;
    op->out = "scalar_tensor.out";
    op->cases = "1.5; 2, dtype=4";
}

/* Reads the options from argument number `at` on into *options.  If the dtype or device is None, that of argument 0 is
   used.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_like_options(const opd_call *call, int at, bool has_format, opdi_options *options) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    return opdi_options_read(call, at, has_format, (opd_scalar_type)self->dtype, opd_tensor_device(self), options);
}
OPDI_INTERNAL opd_tensor *opdi_like_result(opd_call *call, int at) {
    opdi_options options;
    if (opdi_like_options(call, at, true, &options)) { return NULL; }
    return opdi_result_like(call, opd_arg_tensor(call, 0), options.dtype, options.device, options.format);
}
static int opdi_empty_like_kernel(opd_call *call) { return opdi_like_result(call, 1) ? 0 : -1; }
static int opdi_zeros_like_kernel(opd_call *call) { return opdi_made(opdi_like_result(call, 1), opd_value_int(0)); }
static int opdi_ones_like_kernel(opd_call *call) { return opdi_made(opdi_like_result(call, 1), opd_value_int(1)); }
static int opdi_full_like_kernel(opd_call *call) {
    return opdi_made(opdi_like_result(call, 2), opd_arg_value(call, 1));
}
/* opd_empty_like: an uninitialized tensor of self's sizes and dtype */
OPDI_OP(empty_like) {
    op->schema = "empty_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_empty_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "empty_like.out";
    op->cases = "[2,3]";
}
/* opd_zeros_like: zeros of self's sizes and dtype */
OPDI_OP(zeros_like) {
    op->schema = "zeros_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_zeros_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "zeros_like.out";
    op->cases = "[2,3]; [2,3], dtype=4";
}
/* opd_ones_like: ones of self's sizes and dtype */
OPDI_OP(ones_like) {
    op->schema = "ones_like(Tensor self, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_ones_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "ones_like.out";
    op->cases = "[2,3]; [2,3], dtype=4";
}
/* opd_full_like: a tensor of self's sizes and dtype, whose elements are all fill_value */
OPDI_OP(full_like) {
    op->schema = "full_like(Tensor self, Scalar fill_value, *, " OPDI_FORMAT_TEXT ") -> Tensor";
    op->any = opdi_full_like_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_CORE;
    op->out = "full_like.out";
    op->cases = "[2,3], 2; [2,3], 1.5, dtype=7";
}

static opd_tensor *opdi_new_result(opd_call *call, int at) {
    opdi_options options;
    return opdi_like_options(call, at, false, &options) ? NULL : opdi_result_sized(call, opd_arg_ints(call, 1),
        &options);
}
static int opdi_new_empty_kernel(opd_call *call) { return opdi_new_result(call, 2) ? 0 : -1; }
static int opdi_new_zeros_kernel(opd_call *call) { return opdi_made(opdi_new_result(call, 2), opd_value_int(0)); }
static int opdi_new_ones_kernel(opd_call *call) { return opdi_made(opdi_new_result(call, 2), opd_value_int(1)); }
static int opdi_new_full_kernel(opd_call *call) { return opdi_made(opdi_new_result(call, 3), opd_arg_value(call, 2)); }
static int opdi_new_empty_strided_kernel(opd_call *call) {
    opdi_options options;
    return opdi_like_options(call, 3, false, &options) ? -1 : opdi_empty_strided_at(call, 1, &options);
}
/* opd_new_empty: an uninitialized tensor of these sizes with self's dtype and device */
OPDI_OP(new_empty) {
    op->schema = "new_empty(Tensor self, SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_new_empty_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "new_empty.out";
    op->cases = "[2], (2,3)";
}
/* opd_new_empty_strided: an uninitialized tensor of these sizes and strides with self's dtype and device */
OPDI_OP(new_empty_strided) {
    op->schema = "new_empty_strided(Tensor self, SymInt[] size, SymInt[] stride, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_new_empty_strided_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "new_empty_strided.out";
    op->cases = "[2], (2,3), (1,2)";
}
/* opd_new_zeros: zeros of these sizes with self's dtype and device */
OPDI_OP(new_zeros) {
    op->schema = "new_zeros(Tensor self, SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_new_zeros_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "new_zeros.out";
    op->cases = "[2], (2,3)";
}
/* opd_new_ones: ones of these sizes with self's dtype and device */
OPDI_OP(new_ones) {
    op->schema = "new_ones(Tensor self, SymInt[] size, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_new_ones_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "new_ones.out";
    op->cases = "[2], (2,3)";
}
/* opd_new_full: a tensor of these sizes with self's dtype and device, whose elements are all fill_value */
OPDI_OP(new_full) {
    op->schema = "new_full(Tensor self, SymInt[] size, Scalar fill_value, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_new_full_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "new_full.out";
    op->cases = "[2], (2,3), 2.5";
}

//== fill, zero ========================================================================================================
//
//  The in-place operators have descriptors of their own, so that they have typed functions.  One kernel serves both the
//  in-place operator and the operator that makes a result.

/* Checks that an out= tensor, if there is one, has dtype `dtype`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_exact_out(const opd_call *call, opd_scalar_type dtype) {
    return !call->targets || call->targets[0]->dtype == dtype ? 0
        : opdi_out_dtype_fail(dtype, call->targets[0]->dtype);
}
/* If several positions of tensor share an element (stride 0), returns a view that has each element only once.
   Otherwise returns tensor itself. */
static opd_tensor *opdi_each_place_once(opd_tensor *tensor) {
    int64_t sizes[OPD_MAX_DIMS];
    if ((tensor->flags & OPDI_CONTIGUOUS) || tensor->numel == 0) { return tensor; }
    bool again = false;
    for (int dim = 0; dim < tensor->ndim; dim++) {
        sizes[dim] = opdi_strides(tensor)[dim] ? opdi_sizes(tensor)[dim] : 1;
        again = again || sizes[dim] != opdi_sizes(tensor)[dim];
    }
    return again ? opdi_view(tensor, sizes, opdi_strides(tensor), tensor->ndim, 0) : tensor;
}
/* Returns the tensor that the kernel must fill: self for an in-place operator, without repeated elements if self is
   expanded, else a new result with self's sizes and dtype.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_written(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (!(call->op->written_args & 1)) {
        return opdi_result_like(call, self, (opd_scalar_type)self->dtype, opd_tensor_device(self),
                                OPDI_FORMAT_PRESERVE);
    }
    return opd_return_tensor(call, self) ? NULL : opdi_each_place_once(self);
}
OPDI_INTERNAL int opdi_fill_Scalar_kernel(opd_call *call) {
    return opdi_made(opdi_written(call), opd_arg_value(call, 1));
}
static int opdi_zero_kernel(opd_call *call) { return opdi_made(opdi_written(call), opd_value_int(0)); }
static int opdi_fill_Tensor_kernel(opd_call *call) {
    opd_tensor *value = opd_arg_tensor(call, 1);
    if (value->ndim != 0) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    }
    opd_tensor *out = opdi_written(call);
    if (!out || (call->op->written_args & 1 && opdi_check_internal_overlap(opd_arg_tensor(call, 0)))) { return -1; }
    if (!out->data || !value->data) { return 0; }
    if (opdi_same_memory(out, value) && !(value = opd_clone(value))) { return -1; }
    return opdi_copy(out, value);
}
/* Returns zeros as the gradient of argument 0.  The derivative of the result is 0 wherever it exists. */
OPDI_INTERNAL int opdi_flat_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_zeros_like(opd_bw_grad(bw, 0)));
}
/* Returns grad as the gradient of value, and zeros as the gradient of self.  The engine then sums grad to value's
   sizes, as it does for all arguments that were broadcast. */
static int opdi_fill_Tensor_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_zeros_like(grad))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, grad) : 0;
}
/* opd_fill_: writes value to all elements of self */
OPDI_OP(fill__Scalar) {
    op->schema = "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)";
    op->any = opdi_fill_Scalar_kernel; op->backward = opdi_flat_backward;
    op->vmap = OPD_BATCH_POINTWISE; op->flops = opdi_flops_none;
    op->cases = "[2,3], 2";
}

/* The kernel of fill under vmap if each example has its own value: copies the values to self or, for the operator that
   is not in-place, to a new tensor. */
static int opdi_fill_copied(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *value = opd_arg_tensor(call, 1);
    if (value->ndim != 0) { return opdi_fill_Tensor_kernel(call); }
    if (call->op->written_args) { return opd_return_tensor(call, opd_copy_(self, value)); }
    value = opd_expand(opd_to_dtype(value, opd_dtype(self)), opd_ints_of(opdi_sizes(self), self->ndim));
    return opd_return_tensor(call, opd_clone(value));
}
/* The batching rule of fill.  If all examples have the same value, fills the tensor that has all of them. */
static int opdi_fill_batch(opd_call *call) {
    opd_value args[2], ret;
    int dim, at;
    (void)opd_batch_arg(call, 1, &dim);
    if (dim >= 0) { return opdi_batch_as(call, opdi_fill_copied); }
    args[0] = opd_value_tensor(opd_batch_arg(call, 0, &at));
    args[1] = opd_arg_value(call, 1);
    if (opd_call_all(call->op, &ret, args, 2)) { return -1; }
    return call->op->written_args ? opd_return_tensor(call, opd_arg_tensor(call, 0))
        : opd_batch_return(call, ret.u.t, at);
}
/* opd_fill_Tensor_: writes value, a tensor without dims, to all elements of self */
OPDI_OP(fill__Tensor) {
    op->schema = "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)";
    op->any = opdi_fill_Tensor_kernel; op->backward = opdi_fill_Tensor_backward; op->jvp = OPD_JVP_POINTWISE;
    op->vmap = opdi_fill_batch; op->tags = OPD_OPTAG_POINTWISE;
    op->flops = opdi_flops_none;
    op->cases = "[2,3], []";
}
/* opd_zero_: writes 0 to all elements of self */
OPDI_OP(zero_) {
    op->schema = "zero_(Tensor(a!) self) -> Tensor(a!)";
    op->any = opdi_zero_kernel; op->backward = opdi_flat_backward;
    op->vmap = OPD_BATCH_POINTWISE; op->flops = opdi_flops_none;
    op->cases = "[2,3]";
}
/* opd_fill: a tensor of self's sizes, whose elements are all value */
OPDI_OP(fill_Scalar) {
    op->schema = "fill.Scalar(Tensor self, Scalar value) -> Tensor";
    op->any = opdi_fill_Scalar_kernel; op->backward = opdi_flat_backward;
    op->vmap = OPD_BATCH_POINTWISE; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->flops = opdi_flops_none;
    op->out = "fill.Scalar_out";
    op->cases = "[2,3], 2";
}
/* opd_fill_Tensor: a tensor of self's sizes, filled with the element of value, a tensor without dims */
OPDI_OP(fill_Tensor) {
    op->schema = "fill.Tensor(Tensor self, Tensor value) -> Tensor";
    op->any = opdi_fill_Tensor_kernel; op->backward = opdi_fill_Tensor_backward; op->jvp = OPD_JVP_POINTWISE;
    op->vmap = opdi_fill_batch; op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->flops = opdi_flops_none;
    op->out = "fill.Tensor_out";
    op->cases = "[2,3], []";
}
/* opd_zero: a tensor of self's sizes, whose elements are all 0 */
OPDI_OP(zero) {
    op->schema = "zero(Tensor self) -> Tensor";
    op->any = opdi_zero_kernel; op->backward = opdi_flat_backward;
    op->vmap = OPD_BATCH_POINTWISE; op->flops = opdi_flops_none;
    op->out = "zero.out"; op->tags = OPDI_OPTAG_OUT_EXACT;
    op->cases = "[2,3]";
}

//== sequences =========================================================================================================

OPDI_COLD_END
/* A sequence of `count` numbers start + step * i, which are written to `out`.  If `linear` is true (linspace), the
   numbers of the second half are computed from `end`, so that both ends are exact.  If `power` is set (logspace), the
   results are power(base, number).  If `whole` is true, the numbers are computed in int64, from i_start
   and i_step. */
typedef struct opdi_sequence {
    double start, end, step, base;
    int64_t i_start, i_step, count;
    bool whole, linear;
    double (*power)(double x, double y);
    void *out;
} opdi_sequence;
static void opdi_sequence_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_sequence *sequence = (const opdi_sequence *)ctx;
    int64_t i;
    for (i = begin; i < end && sequence->whole; i++) {
        ((int64_t *)sequence->out)[i] = (int64_t)((uint64_t)sequence->i_start +
                                                  (uint64_t)sequence->i_step * (uint64_t)i);
    }
    for (; i < end; i++) {
        double x = sequence->linear && i >= sequence->count / 2
            ? sequence->end - sequence->step * (double)(sequence->count - 1 - i)
            : sequence->start + sequence->step * (double)i;
        ((double *)sequence->out)[i] = sequence->power ? sequence->power(sequence->base, x) : x;
    }
}
/* Writes a sequence to `out`, a vector of any dtype.  Returns 0, or -1 and sets an error. */
static int opdi_sequence_write(opd_tensor *out, opdi_sequence *sequence) {
    const opd_scalar_type work = sequence->whole ? OPD_INT64 : OPD_FLOAT64;
    opd_tensor *tensor = out;
    if (!out || !out->data) { return out ? 0 : -1; }
#if !defined(OPD_NO_COMPILER)
    if (opd_tensor_device(out).type == OPD_LAZY && !sequence->linear && !sequence->power) {
        const opdi_sequence_recorder record = OPDI_ACQUIRE(&opdi_on_sequence);
        const int rc = record ? record(out, sequence->whole, sequence->i_start, sequence->i_step, sequence->start,
                                       sequence->step) : 1;
        if (rc <= 0) { return rc; }
    }
#endif
    if (out->dtype != (int32_t)work || !(out->flags & OPDI_CONTIGUOUS) || opdi_on_device(out)) {
        tensor = opd_tensor_new(opd_ints_of(&out->numel, 1), work);
    }
    if (!tensor) { return -1; }
    sequence->out = tensor->data;
    opdi_parallel_for(tensor->numel, OPDI_GRAIN, opdi_sequence_part, sequence);
    return tensor == out ? 0 : opdi_copy(out, tensor);
}
/* Returns a number as a double; for a complex number, its real part. */
OPDI_INTERNAL double opdi_number_f64(opd_value value) {
    return value.tag == OPD_TAG_FLOAT ? value.u.d : value.tag == OPD_TAG_COMPLEX ? value.u.c[0] : (double)value.u.i;
}
OPDI_COLD_BEGIN
static int64_t opdi_scalar_i64(opd_value value) {
    return value.tag == OPD_TAG_INT || value.tag == OPD_TAG_BOOL ? value.u.i : opdi_f64_to_i64(opdi_number_f64(value));
}
static bool opdi_is_whole(opd_value value) { return value.tag == OPD_TAG_INT || value.tag == OPD_TAG_BOOL; }
/* Checks the dtype of a sequence of `count` numbers.  Complex dtypes are not supported, nor is bool if count is more
   than 1.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sequence_dtype(const opd_call *call, opd_scalar_type dtype, int64_t count) {
    if ((dtype != OPD_BOOL || count <= 1) && !opd_dtype_is_complex(dtype)) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "\"%s_cpu\" not implemented for '%s'", call->op->schema->name,
                    opd_dtype_name(dtype));
}
OPDI_COLD_END
/* Computes arange (at::arange_out) or, if `closed`, range (at::range_out), which includes the end.  Returns 0, or -1
   and sets an error. */
static int opdi_arange_run(opd_call *call, opd_value start, opd_value end, opd_value step, bool closed) {
    const bool whole = opdi_is_whole(start) && opdi_is_whole(end) && opdi_is_whole(step);
    const double a = opdi_number_f64(start), b = opdi_number_f64(end), sum = opdi_number_f64(step);
    opdi_options options;
    opdi_sequence sequence;
    double count = closed ? floor((b - a) / sum) + 1 : ceil((b - a) / sum);
    if (opdi_options_read(call, call->op->nargs - 4, false, whole && !closed ? OPD_INT64 : OPD_FLOAT32,
                          opdi_usual_device(), &options)) {
        return -1;
    }
    if (opdi_sequence_dtype(call, options.dtype, 2)) { return -1; }
    if (!(sum < 0 || sum > 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "step must be nonzero"); }
    if (!isfinite(a) || !isfinite(b)) { return opd_fail(OPD_ERROR_ARGUMENT, "unsupported range: %g -> %g", a, b); }
    if (sum > 0 ? b < a : b > a) {
        return opd_fail(OPD_ERROR_ARGUMENT, "upper bound and lower bound inconsistent with step sign");
    }
    memset(&sequence, 0, sizeof sequence);
    sequence.start = a;
    sequence.step = sum;
    sequence.whole = opd_dtype_is_integral(options.dtype, false);
    sequence.i_start = opdi_scalar_i64(start);
    sequence.i_step = opdi_scalar_i64(step);
    if (options.dtype == OPD_INT64 && whole && !closed) {         /* computes the count without rounding the ends to
                                                                     double */
        int64_t last = opdi_scalar_i64(end);
        if (sequence.i_step == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "step must be nonzero"); }
        count = ceil((double)(int64_t)((uint64_t)last - (uint64_t)sequence.i_start) / (double)sequence.i_step);
    }
    if (!(count >= 0) || count > 4e18) { return opd_fail(OPD_ERROR_ARGUMENT, "invalid size, possible overflow?"); }
    sequence.count = (int64_t)count;
    return opdi_sequence_write(opdi_result_sized(call, opd_ints_of(&sequence.count, 1), &options), &sequence);
}
OPDI_COLD_BEGIN
static int opdi_arange_kernel(opd_call *call) {
    const int count = call->op->nargs - 4;
    return opdi_arange_run(call, count == 1 ? opd_value_int(0) : opd_arg_value(call, 0),
                           opd_arg_value(call, count == 1 ? 0 : 1),
                           count == 3 ? opd_arg_value(call, 2) : opd_value_int(1), false);
}
static int opdi_range_kernel(opd_call *call) {
    return opdi_arange_run(call, opd_arg_value(call, 0), opd_arg_value(call, 1),
                           call->op->nargs == 7 ? opd_arg_value(call, 2) : opd_value_int(1), true);
}
/* opd_arange: 0, 1, ... up to, but not including, end */
OPDI_OP(arange) {
    op->schema = "arange(Scalar end, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_arange_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "arange.out";
    op->cases = "5; 2.5";
}
/* opd_arange_start: start, start + 1, ... up to, but not including, end */
OPDI_OP(arange_start) {
    op->schema = "arange.start(Scalar start, Scalar end, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_arange_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->cases = "1, 4";
}
/* opd_arange_start_step: start, start + step, ... up to, but not including, end */
OPDI_OP(arange_start_step) {
    op->schema = "arange.start_step(Scalar start, Scalar end, Scalar step=1, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_arange_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY; op->tags = OPD_OPTAG_CORE;
    op->out = "arange.start_out";
    op->cases = "1, 4, 2; 3, 0, -1; 0, 1, 0.25";
}
/* opd_range: start, start + 1, ... up to and including end */
OPDI_OP(range) {
    op->schema = "range(Scalar start, Scalar end, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_range_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "range.out_";
    op->cases = "1, 4";
}
/* opd_range_step: start, start + step, ... up to and including end */
OPDI_OP(range_step) {
    op->schema = "range.step(Scalar start, Scalar end, Scalar step=1, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_range_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "range.out";
    op->cases = "1, 4, 2";
}

/* If *value is a tensor, replaces it by the number that it holds, or by 0 if it is a fake tensor.  Returns 0, or -1 and
   sets an error. */
static int opdi_space_end(opd_value *value) {
    static const double none[2] = {0, 0};
    opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? opdi_on_host(value->u.t) : NULL;
    if (value->tag != OPD_TAG_TENSOR) { return 0; }
    if (!tensor) { return -1; }
    if (opdi_is_complex(tensor)) {
        *value = tensor->data ? opd_item(tensor) : opd_value_complex(none);
        return opd_ok() ? 0 : -1;
    }
    *value = !tensor->data ? opd_value_int(0) : opd_dtype_is_integral((opd_scalar_type)tensor->dtype, true)
        ? opd_value_int(opd_item_i64(tensor)) : opd_value_double(opdi_element_f64(tensor, 0));
    return 0;
}
static int opdi_space_ends(const opd_call *call, opd_value *start, opd_value *end) {
    const int first = start->tag == OPD_TAG_TENSOR ? start->u.t->ndim : -1;
    const int second = end->tag == OPD_TAG_TENSOR ? end->u.t->ndim : -1;
    const char *name = call->op->schema->args[3].keyword_only ? "linspace" : "logspace";
    if (first <= 0 && second <= 0) { return opdi_space_end(start) || opdi_space_end(end) ? -1 : 0; }
    if (first >= 0 && second >= 0) {
        return opd_fail(OPD_ERROR_SHAPE, "%s only supports 0-dimensional start and end tensors, but got start with %d "
                        "dimension(s) and end with %d dimension(s).", name, first, second);
    }
    return opd_fail(OPD_ERROR_SHAPE, "%s only supports 0-dimensional start and end tensors, but got %s with %d "
                    "dimension(s).", name, first >= 0 ? "start" : "end", first >= 0 ? first : second);
}
/* Computes linspace or, if `power`, logspace of complex numbers in float64.  First the real and the imaginary parts are
   computed by linspace; logspace then computes `base` to the power of these numbers.  ends[2] holds start and end.  On
   failure, returns NULL and sets an error. */
static opd_tensor *opdi_complex_sequence(const opd_value *ends, int64_t count, bool power, double base) {
    const opd_value none = opd_value_none();
    const double factor[2] = {base, 0};
    opd_tensor *parts[2];
    for (int i = 0; i < 2; i++) {
        double part[2];
        for (int k = 0; k < 2; k++) {
            part[k] = i == 0 ? opdi_number_f64(ends[k]) : ends[k].tag == OPD_TAG_COMPLEX ? ends[k].u.c[1] : 0;
        }
        parts[i] = opd_linspace_full(opd_value_double(part[0]), opd_value_double(part[1]), count,
                                     opd_value_int(OPD_FLOAT64), none, none, none);
    }
    opd_tensor *made = opd_ok() ? opd_complex(parts[0], parts[1]) : NULL;
    return made && power ? opd_pow_Scalar(opd_value_complex(factor), made) : made;
}
static int opdi_complex_linspace(opd_call *call, const opd_value *ends, bool power) {
    const int64_t count = opd_arg_int(call, 2);
    opdi_options options;
    if (opdi_options_read(call, power ? 4 : 3, false, OPD_COMPLEX64, opdi_usual_device(), &options)) { return -1; }
    if (!opd_dtype_is_complex(options.dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: the results are complex, so they cannot be stored as the dtype "
                        "that was passed, %s", power ? "logspace" : "linspace", opd_dtype_name(options.dtype));
    }
    if (options.dtype == OPD_COMPLEX32) {
        return opd_fail(OPD_ERROR_DTYPE, "\"%s_cpu\" not implemented for 'complex32'",
                        power ? "logspace" : "linspace");
    }
    if (count < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "number of steps must be non-negative"); }
    opd_tensor *out = opdi_result_sized(call, opd_ints_of(&count, 1), &options);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *made = opdi_complex_sequence(ends, count, power, power ? opd_arg_double(call, 3) : 0);
    return made && opd_copy_(out, made) ? 0 : -1;
}
/* linspace, and logspace if the operator has 8 arguments: makes `steps` evenly spaced numbers from start to end, both
   included.  logspace returns the powers of base with these exponents.  If the result's dtype is integral, start and
   end are truncated first, except for a logspace with a single step. */
static int opdi_linspace_kernel(opd_call *call) {
    const bool power = call->op->nargs == 8;
    opd_value ends[2];
    double fits[2];
    opdi_sequence sequence;
    opdi_options options;
    ends[0] = opd_arg_value(call, 0);
    ends[1] = opd_arg_value(call, 1);
    if (opdi_space_ends(call, &ends[0], &ends[1])) { return -1; }
    if (ends[0].tag == OPD_TAG_COMPLEX || ends[1].tag == OPD_TAG_COMPLEX ||
        opd_dtype_is_complex(opd_arg_dtype(call, power ? 4 : 3, OPD_FLOAT32))) {
        return opdi_complex_linspace(call, ends, power);
    }
    memset(&sequence, 0, sizeof sequence);
    sequence.count = opd_arg_int(call, 2);
    sequence.linear = true;
    sequence.power = power ? opdi_pow_f64 : NULL;
    sequence.base = power ? opd_arg_double(call, 3) : 0;
    if (opdi_options_read(call, power ? 4 : 3, false, OPD_FLOAT32, opdi_usual_device(), &options) ||
        opdi_sequence_dtype(call, options.dtype, power ? 2 : sequence.count)) {
        return -1;
    }
    if (sequence.count < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "number of steps must be non-negative"); }
    for (int i = 0; i < 2; i++) { if (opdi_element_of(ends[i], options.dtype, fits)) { return -1; } }
    sequence.start = opdi_number_f64(ends[0]);
    sequence.end = opdi_number_f64(ends[1]);
    /* a logspace of a single step keeps the fraction of start */
    if (opd_dtype_is_integral(options.dtype, false) && !(power && sequence.count == 1)) {
        sequence.start = (double)opdi_scalar_i64(ends[0]);
        sequence.end = (double)opdi_scalar_i64(ends[1]);
    }
    if (sequence.count > 1) {
        sequence.step = (sequence.end - sequence.start) / (double)(sequence.count - 1);
    } else { sequence.end = sequence.start; }
    return opdi_sequence_write(opdi_result_sized(call, opd_ints_of(&sequence.count, 1), &options), &sequence);
}
/* opd_linspace: `steps` evenly spaced numbers from start to end, both included */
OPDI_OP(linspace) {
    op->schema = "linspace(Scalar start, Scalar end, int steps, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "linspace.out";
    op->cases = "0, 1, 5; 2, -1, 1; 0, 9, 4, dtype=4";
}
/* opd_logspace: base to the power of each number of linspace(start, end, steps) */
OPDI_OP(logspace) {
    op->schema = "logspace(Scalar start, Scalar end, int steps, float base=10., *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "logspace.out";
    op->cases = "0, 1, 5; 0, 3, 4, 2.0";
}

/* Computes the gradients with respect to start and end.  A number of linspace is start + weight * (end - start) with a
   weight from 0 to 1; a number of logspace is base to the power of such a number. */
static int opdi_space_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *output = opd_bw_result(bw, 0);
    if (output && opdi_is_complex(output)) {
        const double base = opd_bw_value(bw, 3).u.d;
        const double slope[2] = {opdi_log_f64(fabs(base)), base < 0 ? -3.14159265358979323846 : 0};
        grad = opd_mul_Scalar(opd_mul(grad, opd_conj_physical(output)), opd_value_complex(slope));
    } else if (output) {
        grad = opd_mul_Scalar(opd_mul(grad, output), opd_value_double(opdi_log_f64(opd_bw_value(bw, 3).u.d)));
    }
    opd_tensor *weight = opd_linspace_full(opd_value_int(0), opd_value_int(1), opd_bw_value(bw, 2).u.i,
                                           opd_value_int(opd_dtype(grad)), opd_value_none(),
                                           opd_value_device(opd_tensor_device(grad)), opd_value_none());
    if (opd_bw_needs(bw, 1) && opd_bw_return(bw, 1, opd_sum(opd_mul(grad, weight)))) { return -1; }
    return !opd_bw_needs(bw, 0) || opd_bw_return(bw, 0, opd_sum(opd_sub(grad, opd_mul(grad, weight)))) == 0 ? 0 : -1;
}
/* opd_linspace_Tensor_Tensor: `steps` evenly spaced numbers from start to end, both included */
OPDI_OP(linspace_Tensor_Tensor) {
    op->schema = "linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = opdi_space_backward;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "linspace.Tensor_Tensor_out";
    op->cases = "[], [], 5, dtype=7; [], [], 1, dtype=7";
}
/* opd_linspace_Tensor_Scalar: `steps` evenly spaced numbers from start to end, both included */
OPDI_OP(linspace_Tensor_Scalar) {
    op->schema = "linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = opdi_space_backward;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "linspace.Tensor_Scalar_out";
    op->cases = "[], 1.5, 4, dtype=7";
}
/* opd_linspace_Scalar_Tensor: `steps` evenly spaced numbers from start to end, both included */
OPDI_OP(linspace_Scalar_Tensor) {
    op->schema = "linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = opdi_space_backward;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "linspace.Scalar_Tensor_out";
    op->cases = "0.5, [], 4, dtype=7";
}
/* opd_logspace_Tensor_Tensor: base to the power of each number of linspace(start, end, steps) */
OPDI_OP(logspace_Tensor_Tensor) {
    op->schema = "logspace.Tensor_Tensor(Tensor start, Tensor end, int steps, float base=10., *, " OPDI_OPTIONS_TEXT
        ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = opdi_space_backward; op->save = "result";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "logspace.Tensor_Tensor_out";
    op->cases = "[], [], 5, dtype=7; [], [], 1, dtype=7";
}
/* opd_logspace_Tensor_Scalar: base to the power of each number of linspace(start, end, steps) */
OPDI_OP(logspace_Tensor_Scalar) {
    op->schema = "logspace.Tensor_Scalar(Tensor start, Scalar end, int steps, float base=10., *, " OPDI_OPTIONS_TEXT
        ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = opdi_space_backward; op->save = "result";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "logspace.Tensor_Scalar_out";
    op->cases = "[], 1.5, 4, dtype=7";
}
/* opd_logspace_Scalar_Tensor: base to the power of each number of linspace(start, end, steps) */
OPDI_OP(logspace_Scalar_Tensor) {
    op->schema = "logspace.Scalar_Tensor(Scalar start, Tensor end, int steps, float base=10., *, " OPDI_OPTIONS_TEXT
        ") -> Tensor";
    op->any = opdi_linspace_kernel; op->backward = opdi_space_backward; op->save = "result";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "logspace.Scalar_Tensor_out";
    op->cases = "0.5, [], 4, dtype=7";
}

/* eye (5 arguments) and eye.m: makes the matrix [n, n] or [n, m] with ones on its diagonal and zeros elsewhere. */
static int opdi_eye_kernel(opd_call *call) {
    const bool square = call->op->nargs == 5;
    int64_t sizes[2];
    opdi_options options;
    sizes[0] = opd_arg_int(call, 0);
    sizes[1] = square ? sizes[0] : opd_arg_int(call, 1);
    if (opdi_options_read(call, square ? 1 : 2, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    if (sizes[0] < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "n must be greater or equal to 0, got %lld", (long long)sizes[0]);
    }
    if (sizes[1] < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "m must be greater or equal to 0, got %lld", (long long)sizes[1]);
    }
    opd_tensor *out = opdi_result_sized(call, opd_ints_of(sizes, 2), &options);
    if (opdi_made(out, opd_value_int(0))) { return -1; }
    int64_t diagonal = OPDI_MIN(sizes[0], sizes[1]);
    int64_t stride = opdi_strides(out)[0] + opdi_strides(out)[1];
    opd_tensor *line = opdi_view(out, &diagonal, &stride, 1, 0);
    return line ? opdi_fill_with(line, opd_value_int(1)) : -1;
}
/* opd_eye: the identity matrix [n, n] */
OPDI_OP(eye) {
    op->schema = "eye(int n, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_eye_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "eye.out";
    op->cases = "3";
}
/* opd_eye_m: a matrix [n, m] with 1 on its diagonal, 0 elsewhere */
OPDI_OP(eye_m) {
    op->schema = "eye.m(int n, int m, *, " OPDI_OPTIONS_TEXT ") -> Tensor";
    op->any = opdi_eye_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "eye.m_out";
    op->cases = "3, 2";
}

//== triangular parts of matrices: tril, triu and their indices ========================================================

OPDI_COLD_END
typedef struct opdi_triangle {
    char *out;
    const char *in;
    int64_t rows, cols, diagonal;
    size_t size;
    bool lower;
} opdi_triangle;
/* Copies rows [begin, end), counted over all matrices, and sets the elements outside of the triangular part to zero.
   Columns [0, depth) of a row are kept if the part is `lower`, else columns [depth, cols). */
static void opdi_triangle_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_triangle *triangle = (const opdi_triangle *)ctx;
    int64_t bytes = triangle->cols * (int64_t)triangle->size;
    for (int64_t row = begin; row < end; row++) {
        int64_t depth = row % triangle->rows + triangle->diagonal + (triangle->lower ? 1 : 0);
        size_t first = (size_t)OPDI_MIN(OPDI_MAX(depth, 0), triangle->cols) * triangle->size,
            rest = (size_t)bytes - first;
        char *out = triangle->out + row * bytes;
        const char *x = triangle->in + row * bytes;
        memcpy(out + (triangle->lower ? 0 : first), x + (triangle->lower ? 0 : first), triangle->lower ? first : rest);
        memset(out + (triangle->lower ? first : 0), 0, triangle->lower ? rest : first);
    }
}
/* tril (lower) and triu: copies the matrices [.., rows, cols] of argument 0, with zeros above (tril) or below (triu)
   the diagonal whose number is argument 1.  Returns 0, or -1 and sets an error. */
static int opdi_triangle_run(opd_call *call, bool lower) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out, *target;
    int64_t diagonal = opd_arg_int(call, 1), limit = INT64_MAX / 4;
    opdi_triangle triangle;
    if (self->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: input tensor must have at least 2 dimensions", lower ? "tril" : "triu");
    }
    target = out = opd_result(call, 0, opdi_sizes(self), self->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!(self->flags & OPDI_CONTIGUOUS) && !(self = opd_contiguous(self))) { return -1; }
    if (!(out->flags & OPDI_CONTIGUOUS) &&
        !(target = opd_tensor_new(opd_ints_of(opdi_sizes(self), self->ndim), (opd_scalar_type)self->dtype))) {
        return -1;
    }
    triangle.out = target->data;
    triangle.in = self->data;
    triangle.lower = lower;
    triangle.rows = opdi_sizes(self)[self->ndim - 2];
    triangle.cols = opdi_sizes(self)[self->ndim - 1];
    triangle.diagonal = OPDI_MIN(OPDI_MAX(diagonal, -limit), limit);
    triangle.size = opd_dtype_size((opd_scalar_type)self->dtype);
    opdi_parallel_for(self->numel / triangle.cols, OPDI_MAX((int64_t)1, OPDI_GRAIN / triangle.cols), opdi_triangle_part,
                      &triangle);
    return target == out ? 0 : opdi_copy(out, target);
}
OPDI_COLD_BEGIN
static int opdi_tril_kernel(opd_call *call) { return opdi_triangle_run(call, true); }
static int opdi_triu_kernel(opd_call *call) { return opdi_triangle_run(call, false); }
static int opdi_tril_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_tril(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i));
}
static int opdi_triu_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_triu(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i));
}
/* opd_tril(self, diagonal): the lower triangular part: self with zeros above diagonal number `diagonal` (0: the main
   diagonal) */
OPDI_OP(tril) {
    op->schema = "tril(Tensor self, int diagonal=0) -> Tensor";
    op->cpu = op->fake = opdi_tril_kernel; op->backward = opdi_tril_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->inplace = "tril_"; op->out = "tril.out";
    op->cases = "[3,4]; [2,3,3], 1; [3,3], -1";
}
/* opd_triu(self, diagonal): the upper triangular part: self with zeros below diagonal number `diagonal` (0: the main
   diagonal) */
OPDI_OP(triu) {
    op->schema = "triu(Tensor self, int diagonal=0) -> Tensor";
    op->cpu = op->fake = opdi_triu_kernel; op->backward = opdi_triu_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->inplace = "triu_"; op->out = "triu.out";
    op->cases = "[3,4]; [2,3,3], 1; [3,3], -1";
}

/* Sets *from and *to so that columns [*from, *to) of row `row` belong to the lower or upper triangular part, which is
   bounded by diagonal number `offset`. */
static void opdi_triangle_row(int64_t row, int64_t cols, int64_t offset, bool lower, int64_t *from, int64_t *to) {
    int64_t depth = OPDI_MIN(OPDI_MAX(row + offset + (lower ? 1 : 0), 0), cols);
    *from = lower ? 0 : depth;
    *to = lower ? depth : cols;
}
/* Returns the number of elements in the first r + channels columns of each row r, summed over all rows; r + channels is
   limited to [0, cols].  Sets *low to the first row for which r + channels is not negative, and *high to the first row
   for which it is at least cols. */
static int64_t opdi_triangle_count(int64_t rows, int64_t cols, int64_t channels, int64_t *low, int64_t *high) {
    *low = OPDI_MIN(OPDI_MAX(-channels, 0), rows);
    *high = OPDI_MIN(OPDI_MAX(cols - channels, *low), rows);
    return (*high - *low) * (*low + *high - 1 + 2 * channels) / 2 + (rows - *high) * cols;
}
/* tril_indices (lower) and triu_indices of a matrix [row, col].  The result [2, count] holds the row numbers and the
   column numbers of the elements of the triangular part, row by row.  Returns 0, or -1 and sets an error. */
static int opdi_triangle_indices(opd_call *call, bool lower) {
    int64_t rows = opd_arg_int(call, 0), cols = opd_arg_int(call, 1), sizes[2], from, to, i = 0;
    int64_t low, high;
    opdi_options options;
    int64_t offset = OPDI_MIN(OPDI_MAX(opd_arg_int(call, 2), -((int64_t)1 << 33)), (int64_t)1 << 33);
    if (opdi_options_read(call, 3, false, OPD_INT64, opdi_usual_device(), &options)) { return -1; }
    const opd_scalar_type dtype = call->targets ? (opd_scalar_type)call->targets[0]->dtype : options.dtype;
    if (dtype != OPD_INT64 && dtype != OPD_INT32) {
        return opdi_dtype_fail(lower ? "tril_indices" : "triu_indices", dtype);
    }
    if (rows < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "row must be non-negative, got%lld", (long long)rows); }
    if (cols < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "col must be non-negative, got%lld", (long long)cols); }
    if (rows > INT32_MAX || cols > INT32_MAX) {
        return opd_fail(OPD_ERROR_SHAPE, "row and col must be less than 2^31, but are %lld and %lld", (long long)rows,
                        (long long)cols);
    }
    sizes[0] = 2;
    sizes[1] = opdi_triangle_count(rows, cols, offset + (lower ? 1 : 0), &low, &high);
    if (!lower) { sizes[1] = rows * cols - sizes[1]; }
    opd_tensor *out = opdi_result_sized(call, opd_ints_of(sizes, 2), &options);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *tensor = opd_tensor_new(opd_ints_of(sizes, 2), OPD_INT64);
    if (!tensor) { return -1; }
    int64_t *at = (int64_t *)(void *)tensor->data;
    for (int64_t row = lower ? low : 0; row < (lower ? rows : high); row++) {
        for (opdi_triangle_row(row, cols, offset, lower, &from, &to); from < to; from++, i++) {
            at[i] = row;
            at[sizes[1] + i] = from;
        }
    }
    return opdi_copy(out, tensor);
}
static int opdi_tril_indices_kernel(opd_call *call) { return opdi_triangle_indices(call, true); }
static int opdi_triu_indices_kernel(opd_call *call) { return opdi_triangle_indices(call, false); }
/* opd_tril_indices(row, col): row and column numbers of the lower triangular part: [2, count] */
OPDI_OP(tril_indices) {
    op->schema = "tril_indices(int row, int col, int offset=0, *, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_tril_indices_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "tril_indices.out";
    op->cases = "3, 3; 3, 4, 1";
}
/* opd_triu_indices(row, col): row and column numbers of the upper triangular part: [2, count] */
OPDI_OP(triu_indices) {
    op->schema = "triu_indices(int row, int col, int offset=0, *, " OPDI_INTS_TEXT ") -> Tensor";
    op->any = opdi_triu_indices_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_FACTORY;
    op->out = "triu_indices.out";
    op->cases = "3, 3; 3, 4, 1";
}
OPDI_COLD_END
