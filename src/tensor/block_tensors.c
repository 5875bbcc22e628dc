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
    if (!opdi_block_info_of((int)dtype)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "opd_quantize_blocks: %s is not a dtype in blocks, such as OPD_Q8_0",
                       opd_dtype_name(dtype));
        return NULL;
    }
    return opd_to_dtype(tensor, dtype);
}
