#include "tensor.h"

//== copies from and to tensors in blocks ==============================================================================

/* A pass over the rows of two tensors of the same sizes.  `length` elements of a row lie along dim `row` of both, with
   stride 1. */
typedef struct opdi_block_pass {
    const opdi_block_forms *forms;
    const opd_tensor *dst, *src;
    int row;
    int64_t length, bytes;                        /* bytes: of a row of blocks */
    int64_t failed;                               /* one plus the number of a row that could not be converted */
} opdi_block_pass;
/* Returns the address of row number `i` of `tensor`, in the order of the sizes without the dim of the row. */
static char *opdi_block_row_place(const opd_tensor *tensor, int row, int64_t i) {
    int64_t offset = 0;
    for (int dim = tensor->ndim; dim-- > 0;) {
        if (dim == row) { continue; }
        offset += i % tensor->dims[dim] * tensor->dims[tensor->ndim + dim];
        i /= tensor->dims[dim];
    }
    return tensor->data + opdi_elements_bytes(tensor->dtype, offset);
}
/* Copies row number `i`.  Returns 0, or -1 and sets an error. */
static int opdi_block_row_copy(const opdi_block_pass *pass, int64_t i) {
    const bool from = opdi_is_block(pass->src->dtype), to = opdi_is_block(pass->dst->dtype);
    char *const dst = opdi_block_row_place(pass->dst, pass->row, i);
    const char *const src = opdi_block_row_place(pass->src, pass->row, i);
    if (from && to) {
        memmove(dst, src, (size_t)pass->bytes);
        return 0;
    }
    return from ? pass->forms->decode((opd_scalar_type)pass->src->dtype, src, (float *)(void *)dst, pass->length)
        : pass->forms->encode((opd_scalar_type)pass->dst->dtype, (const float *)(const void *)src, dst, pass->length);
}
static void opdi_block_range(void *ctx, int64_t begin, int64_t end) {
    opdi_block_pass *const pass = (opdi_block_pass *)ctx;
    for (int64_t i = begin; i < end && !OPDI_LOAD(&pass->failed); i++) {
        const int mark = opd_error_mark();
        if (opdi_block_row_copy(pass, i)) {       /* the calling thread converts the row again, for the error */
            OPDI_STORE(&pass->failed, i + 1);
            (void)opd_error_rewind(mark);
        }
    }
}
/* Copies src to dst, of the same sizes.  One of them is in blocks, and the other one too, or float32.  The elements
   along dim `row` have stride 1 in both.  Returns 0, or -1 and sets an error. */
static int opdi_block_rows(opd_tensor *dst, const opd_tensor *src, int row) {
    opdi_block_pass pass;
    const bool bytes = opdi_is_block(dst->dtype) && opdi_is_block(src->dtype);
    pass.forms = bytes ? NULL : opdi_block_forms_of();
    pass.dst = dst;
    pass.src = src;
    pass.row = row;
    pass.length = dst->dims[row];
    pass.bytes = opdi_elements_bytes(opdi_is_block(dst->dtype) ? dst->dtype : src->dtype, pass.length);
    pass.failed = 0;
    if (!bytes && !pass.forms) { return -1; }
    const int64_t rows = dst->numel / pass.length, grain = OPDI_MAX((int64_t)1, OPDI_GRAIN / pass.length);
    opdi_parallel_for(rows, grain, opdi_block_range, &pass);
    return pass.failed ? opdi_block_row_copy(&pass, pass.failed - 1) : 0;
}
/* Makes a float32 tensor without gaps of the sizes of `like`, whose elements along dim `row` have stride 1.  Returns a
   reference, or NULL and sets an error. */
static opd_tensor *opdi_block_floats(const opd_tensor *like, int row) {
    int64_t strides[OPD_MAX_DIMS], count = like->dims[row];
    for (int i = like->ndim; i-- > 0;) {
        strides[i] = i == row ? 1 : count;
        count *= i == row ? 1 : like->dims[i];
    }
    return opdi_tensor_make(like->dims, strides, like->ndim, OPD_FLOAT32, OPD_CPU);
}
/* Returns true if `tensor` is float32, has these sizes, and stride 1 along dim `row`. */
static bool opdi_block_fits(const opd_tensor *tensor, const opd_tensor *like, int row) {
    return tensor->dtype == OPD_FLOAT32 && opdi_has_sizes(tensor, like->dims, like->ndim) &&
        tensor->dims[tensor->ndim + row] == 1;
}
/* Does the work of opdi_block_copy for two tensors of one dtype: copies bytes. */
static int opdi_block_copy_same(opd_tensor *dst, const opd_tensor *src) {
    int64_t strides[OPD_MAX_DIMS];
    const int row = opdi_block_row_dim(dst), from = opdi_block_row_dim(src), shift = dst->ndim - src->ndim;
    if (from + shift != row) {
        return opd_fail(OPD_ERROR_SHAPE, "copy: the blocks of %s lie along dim %d of one tensor and dim %d of the "
                        "other, and cannot be copied from one to the other (opd_dequantize makes float32 of it)",
                        opd_dtype_name((opd_scalar_type)src->dtype), from + shift, row);
    }
    for (int i = 0; i < dst->ndim; i++) { strides[i] = opdi_broadcast_stride(src, dst->dims, dst->ndim, i); }
    opd_tensor *const same = opdi_tensor_on(src->storage, src->data, dst->dims, strides, dst->ndim,
                                            (opd_scalar_type)src->dtype, src->backend);
    if (!same) { return -1; }
    opdi_share_storage(same, src);
    const int rc = opdi_check_partial_overlap(dst, same) ? -1 : opdi_block_rows(dst, same, row);
    opdi_drop(same);
    return rc;
}
/* Copies src, which broadcasts to dst, to dst.  At least one of them is in blocks; both are in the host's memory.
   Blocks are decoded and encoded as the dtypes demand.  Returns 0, or -1 and sets an error. */
static int opdi_block_recode(opd_tensor *dst, const opd_tensor *src) {
    opd_tensor *floats = NULL;
    int rc = 0;
    if (opdi_is_complex(src)) {
        return opd_fail(OPD_ERROR_DTYPE, "complex numbers cannot be stored as %s",
                        opd_dtype_name((opd_scalar_type)dst->dtype));
    }
    if (opdi_is_block(src->dtype)) {
        const int row = opdi_block_row_dim(src);
        if (opdi_block_fits(dst, src, row) && !opdi_same_memory(dst, src)) { return opdi_block_rows(dst, src, row); }
        floats = opdi_block_floats(src, row);
        rc = floats ? opdi_block_rows(floats, src, row) : -1;
        if (rc == 0) { rc = opdi_copy(dst, floats); }
    } else {
        const int row = opdi_block_row_dim(dst);
        if (opdi_block_fits(src, dst, row) && !opdi_same_memory(dst, src)) { return opdi_block_rows(dst, src, row); }
        floats = opdi_block_floats(dst, row);
        rc = floats ? opdi_copy(floats, src) : -1;
        if (rc == 0) { rc = opdi_block_rows(dst, floats, row); }
    }
    if (floats) { opdi_drop(floats); }
    return rc;
}
/* Copies src, which broadcasts to dst, to dst, as opdi_block_recode does.  If a number cannot be stored, a part of dst
   may already be written, which counts as a write.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_block_copy(opd_tensor *dst, const opd_tensor *src) {
    if (dst->dtype == src->dtype) { return opdi_block_copy_same(dst, src); }
    const int rc = opdi_block_recode(dst, src);
    if (rc && !opdi_is_inference(dst)) { (void)OPDI_ADD(&dst->storage->version, 1u); }
    return rc;
}

//== functions that programs call ======================================================================================

static int32_t opdi_blocks_exact;

bool opd_exact_blocks(void) { return OPDI_LOAD(&opdi_blocks_exact) != 0; }
bool opd_exact_blocks_set(bool exact) {
    const bool was = opd_exact_blocks();
    OPDI_STORE(&opdi_blocks_exact, (int32_t)exact);
    return was;
}
static int32_t opdi_int4_rows_in_block;
int opd_int4_block(void) { return (int)OPDI_LOAD(&opdi_int4_rows_in_block); }
int opd_int4_block_set(int rows) {
    const int was = opd_int4_block();
    if (rows != 0 && rows != 32 && rows != 64) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_int4_block_set: rows is %d, but must be 0, 32 or 64", rows);
    }
    OPDI_STORE(&opdi_int4_rows_in_block, (int32_t)rows);
    return was;
}
opd_tensor *opd_quantize_blocks(opd_tensor *tensor, opd_scalar_type dtype) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_quantize_blocks")) { return NULL; }
    if (!opdi_block_info_of((int)dtype).elements) {
        (void)opd_fail(OPD_ERROR_DTYPE, "opd_quantize_blocks: %s is not a dtype in blocks, such as OPD_Q8_0",
                       opd_dtype_name(dtype));
        return NULL;
    }
    return opd_to_dtype(tensor, dtype);
}

//== integers with scales ==============================================================================================

/* The parts of a weight of integers, contiguous and in the host's memory: codes [rows, groups * group] of uint8 or, if
   `minus` is true, int8; scales and zero points of the groups.  Scale number g of row i is
   scales[i * row_step + g]. */
typedef struct opdi_int_parts {
    const uint8_t *codes;
    const float *scales, *zeros;                  /* zeros: NULL: none */
    bool minus;
    int bits;
    int64_t rows, groups, group, row_step;
} opdi_int_parts;
/* Weights of integers and their parts are made without operators, so that they have data inside of fakes and traces,
   too, and are constants there. */

/* Returns a contiguous copy of `tensor` as elements of `dtype`, or NULL and sets an error. */
static const void *opdi_int_memory(opd_tensor *tensor, opd_scalar_type dtype) {
    if (tensor->flags & OPDI_LAZY) { tensor = opd_resolve_neg(tensor); }
    if (!tensor || (tensor->numel && !opd_data(tensor))) { return NULL; }
    opd_tensor *const dense = opd_tensor_new(opd_ints_of(tensor->dims, tensor->ndim), dtype);
    return dense && opdi_copy(dense, tensor) == 0 ? dense->data : NULL;
}
/* Finds out which sizes the scales or zero points have: one for all, one for each row of codes, or one for each group
   of a row.  Returns 0, or -1 and sets an error. */
static int opdi_int_steps(opdi_int_parts *parts, const opd_tensor *codes, const opd_tensor *scales) {
    const int rows = codes->ndim - 1;
    bool fits = scales->numel == 1 || scales->ndim == rows || scales->ndim == rows + 1;
    parts->groups = scales->numel == 1 || scales->ndim != rows + 1 ? 1 : scales->dims[rows];
    for (int i = 0; fits && scales->numel != 1 && i < rows; i++) { fits = scales->dims[i] == codes->dims[i]; }
    parts->row_step = scales->numel == 1 ? 0 : parts->groups;
    if (fits && parts->groups > 0 && codes->dims[rows] % parts->groups == 0) { return 0; }
    char left[256], right[256];
    return opd_fail(OPD_ERROR_SHAPE, "opd_int_blocks: scales of sizes %s do not fit codes of sizes %s: there must be "
                    "one, one for each row, or one for each group of a row",
                    opdi_sizes_text(scales->dims, scales->ndim, left, sizeof left),
                    opdi_sizes_text(codes->dims, codes->ndim, right, sizeof right));
}
/* Writes a row of blocks.  Returns 0, or -1 and sets an error. */
static int opdi_int_row_put(const opdi_int_parts *parts, int64_t row, uint8_t *to) {
    const int half = 1 << (parts->bits - 1), shift = parts->minus ? half : 0;
    const uint8_t *from = parts->codes + row * parts->groups * parts->group;
    for (int64_t g = 0; g < parts->groups; g++) {
        const int64_t at = row * parts->row_step + g;
        const float zero = parts->zeros ? parts->zeros[at] + (float)shift : 0;
        if (parts->zeros && (double)zero != (double)parts->zeros[at] + shift) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_int_blocks: zero point %lld, %g, cannot be stored: it must be "
                            "an integer of at most 24 bits, unless the codes are uint8", (long long)at,
                            (double)parts->zeros[at]);
        }
        opdi_f32_put(to, parts->scales[at]);
        if (parts->zeros) { opdi_f32_put(to + 4, zero); }
        to += parts->zeros ? 8 : 4;
        for (int64_t i = 0; i < parts->group; i += 8, from += 8, to += parts->bits) {
            uint8_t codes[8];
            for (int j = 0; j < 8; j++) {
                const int code = (parts->minus ? (int)(int8_t)from[j] : from[j]) + shift;
                if (code < 0 || code >= 2 * half) {
                    return opd_fail(OPD_ERROR_ARGUMENT, "opd_int_blocks: code %d, of row %lld, does not have %d bits: "
                                    "it must be from %d to %d", code - shift, (long long)row, parts->bits, -shift,
                                    2 * half - 1 - shift);
                }
                codes[j] = (uint8_t)code;
            }
            opdi_int_codes_put(codes, 8, parts->bits, to);
        }
    }
    return 0;
}
/* Checks the dtypes and devices of the arguments of opd_int_blocks.  Returns 0, or -1 and sets an error. */
static int opdi_int_check(const opd_tensor *codes, const opd_tensor *scales, const opd_tensor *zeros) {
    const opd_scalar_type dtype = (opd_scalar_type)codes->dtype, scale = (opd_scalar_type)scales->dtype;
    if ((dtype != OPD_INT8 && dtype != OPD_UINT8) || codes->ndim == 0) {
        return opd_fail(OPD_ERROR_DTYPE, "opd_int_blocks: codes must be int8 or uint8 with rows, not a %d-D tensor of "
                        "%s", (int)codes->ndim, opd_dtype_name(dtype));
    }
    if (scale != OPD_FLOAT32 && scale != OPD_FLOAT16 && scale != OPD_BFLOAT16) {
        return opd_fail(OPD_ERROR_DTYPE, "opd_int_blocks: scales must be float32, float16 or bfloat16, not %s",
                        opd_dtype_name(scale));
    }
    const opd_scalar_type zero = (opd_scalar_type)(zeros ? zeros->dtype : OPD_FLOAT32);
    if (!opd_dtype_is_integral(zero, false) && zero != OPD_FLOAT32 && zero != OPD_FLOAT16 && zero != OPD_BFLOAT16) {
        return opd_fail(OPD_ERROR_DTYPE, "opd_int_blocks: zero points must be integers, float32, float16 or bfloat16, "
                        "not %s", opd_dtype_name(zero));
    }
    const opd_tensor *const all[3] = {codes, scales, zeros};
    for (int i = 0; i < (zeros ? 3 : 2); i++) {
        if (all[i]->backend == OPD_CPU) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_int_blocks: the tensors must be on the CPU, with data");
    }
    return 0;
}
/* Returns the dtype for the parts, or OPD_DTYPE_NONE and sets an error. */
static opd_scalar_type opdi_int_dtype_for(const opdi_int_parts *parts, bool zeros) {
    if (parts->bits < 1 || parts->bits > 8 || (parts->group % 8 == 0 && parts->group <= OPDI_INT_GROUP)) {
        return opd_dtype_int_blocks(parts->bits, OPDI_MAX(parts->group, (int64_t)8), zeros);
    }
    (void)opd_fail(OPD_ERROR_SHAPE, "opd_int_blocks: a scale has %lld codes, but blocks need a multiple of 8, at most "
                   "%d: pad the rows", (long long)parts->group, OPDI_INT_GROUP);
    return OPD_DTYPE_NONE;
}
/* Does the work of opd_int_blocks in a scope of its own. */
static opd_tensor *opdi_int_blocks_make(opd_tensor *codes, opd_tensor *scales, opd_tensor *zeros, int bits) {
    opdi_int_parts parts;
    const int64_t length = codes->dims[codes->ndim - 1];
    memset(&parts, 0, sizeof parts);
    parts.rows = length ? codes->numel / length : 0;
    parts.minus = codes->dtype == OPD_INT8;
    parts.bits = bits;
    if (opdi_int_steps(&parts, codes, scales)) { return NULL; }
    if (zeros && !opdi_has_sizes(zeros, scales->dims, scales->ndim) && (zeros->numel != 1 || scales->numel != 1)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "opd_int_blocks: scales and zero points must have the same sizes");
        return NULL;
    }
    parts.group = length / parts.groups;
    parts.zeros = zeros ? (const float *)opdi_int_memory(zeros, OPD_FLOAT32) : NULL;
    parts.scales = (const float *)opdi_int_memory(scales, OPD_FLOAT32);
    parts.codes = (const uint8_t *)opdi_int_memory(codes, (opd_scalar_type)codes->dtype);
    const opd_scalar_type dtype = opd_ok() ? opdi_int_dtype_for(&parts, zeros != NULL) : OPD_DTYPE_NONE;
    opd_tensor *const out = opd_ok() ? opd_tensor_new(opd_ints_of(codes->dims, codes->ndim), dtype) : NULL;
    uint8_t *const to = out && out->numel ? (uint8_t *)out->data : NULL;
    for (int64_t row = 0; to && row < parts.rows; row++) {
        if (opdi_int_row_put(&parts, row, to + row * opdi_elements_bytes((int)dtype, length))) { return NULL; }
    }
    return opd_ok() ? out : NULL;
}
opd_tensor *opd_int_blocks(opd_tensor *codes, opd_tensor *scales, opd_tensor *zero_points, int bits) {
    opd_tensor *out = NULL;
    if (!opd_ok() || opdi_null_tensor(codes, "opd_int_blocks") || opdi_null_tensor(scales, "opd_int_blocks") ||
        (zero_points && opdi_null_tensor(zero_points, "opd_int_blocks")) ||
        opdi_int_check(codes, scales, zero_points)) { return NULL; }
    OPD_SCOPE { out = opd_scope_return(opdi_int_blocks_make(codes, scales, zero_points, bits)); }
    return out;
}
/* Reads row number `i` of a weight of integers. */
static void opdi_int_row_get(const opd_tensor *tensor, const opdi_block_info *info, int64_t i, uint8_t *codes,
                             float *scales, float *zeros) {
    const int last = tensor->ndim - 1;
    const int64_t groups = tensor->dims[last] / info->elements;
    const uint8_t *block = (const uint8_t *)opdi_block_row_place(tensor, last, i);
    for (int64_t g = 0; g < groups; g++, block += info->bytes, codes += info->elements) {
        float zero;
        opdi_int_codes(opdi_int_scale(info, block, &scales[g], &zero), info->elements, info->bits, codes);
        if (zeros) { zeros[g] = zero; }
        for (int j = 0; !zeros && j < info->elements; j++) { codes[j] = (uint8_t)(codes[j] - (1 << (info->bits - 1))); }
    }
}
int opd_int_blocks_parts(opd_tensor *tensor, opd_tensor **codes, opd_tensor **scales, opd_tensor **zero_points) {
    int64_t sizes[OPD_MAX_DIMS];
    if (codes) { *codes = NULL; }
    if (scales) { *scales = NULL; }
    if (zero_points) { *zero_points = NULL; }
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_int_blocks_parts")) { return -1; }
    const opdi_block_info info = opdi_block_info_of(tensor->dtype);
    const int last = tensor->ndim - 1;
    if (!info.bits || !codes || !scales || !zero_points) {
        return opd_fail(OPD_ERROR_DTYPE, info.bits ? "opd_int_blocks_parts: a place for a result is NULL"
                        : "opd_int_blocks_parts: %s is not a dtype of opd_dtype_int_blocks",
                        opd_dtype_name((opd_scalar_type)tensor->dtype));
    }
    if (tensor->numel && opdi_block_row_dim(tensor) != last) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_int_blocks_parts: the blocks must lie along the last dim");
    }
    if (tensor->numel && !opd_data(tensor)) {
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_int_blocks_parts: the tensor has no data") : -1;
    }
    memcpy(sizes, tensor->dims, sizeof *sizes * tensor->ndim);
    const opd_ints rows = opd_ints_of(sizes, last + 1);
    opd_tensor *const code = opd_tensor_new(rows, info.zero ? OPD_UINT8 : OPD_INT8);
    sizes[last] /= info.elements;
    opd_tensor *const scale = code ? opd_tensor_new(rows, OPD_FLOAT32) : NULL;
    opd_tensor *const zero = scale && info.zero ? opd_tensor_new(rows, OPD_FLOAT32) : NULL;
    if (!scale || (info.zero && !zero)) { return -1; }
    for (int64_t i = 0, length = tensor->dims[last]; length && i < tensor->numel / length; i++) {
        opdi_int_row_get(tensor, &info, i, (uint8_t *)code->data + i * length,
                         (float *)(void *)scale->data + i * sizes[last],
                         zero ? (float *)(void *)zero->data + i * sizes[last] : NULL);
    }
    *codes = code;
    *scales = scale;
    *zero_points = zero;
    return 0;
}
