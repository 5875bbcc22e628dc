#include "tensor.h"

//== layouts of tensors in blocks ======================================================================================
//
//  The elements along one dim of a tensor in blocks, its row, lie one after another in whole blocks: this dim has
//  stride 1.  The strides of all other dims are multiples of a block, so views of rows and of leading dims are
//  possible.  What decodes and encodes blocks is reached through a pointer (opdi_on_blocks), so that a program with
//  OPD_LEAN has it only if it uses blocks.

/* Returns the dim along which the elements of a block lie, or -1 if there is none.  If `strides` is NULL, the tensor is
   contiguous. */
static int opdi_block_row_of(const int64_t *sizes, const int64_t *strides, int ndim) {
    for (int i = ndim; i-- > 0;) {
        if (sizes[i] != 1 && (!strides || strides[i] == 1)) { return i; }
    }
    return -1;
}
OPDI_INTERNAL int opdi_block_row_dim(const opd_tensor *tensor) {
    return opdi_block_row_of(tensor->dims, tensor->dims + tensor->ndim, tensor->ndim);
}
/* Sets the error that blocks would be cut, and returns -1. */
OPDI_NOINLINE static int opdi_block_cut(const opdi_block_info *info, const int64_t *sizes, const int64_t *strides,
                                        int ndim, int64_t offset) {
    char first[256], second[256];
    return opd_fail(OPD_ERROR_SHAPE, "%s is stored in blocks of %d elements, which sizes %s%s%s, at element %lld, "
                    "would cut: one dim must have stride 1 and whole blocks, and the others strides of whole blocks "
                    "(opd_dequantize makes float32 of a tensor in blocks)", opd_dtype_name(info->dtype),
                    (int)info->elements, opdi_sizes_text(sizes, ndim, first, sizeof first),
                    strides ? " with strides " : "",
                    strides ? opdi_sizes_text(strides, ndim, second, sizeof second) : "", (long long)offset);
}
/* Checks that a tensor of a dtype in blocks can have these sizes and strides (NULL: contiguous), `offset` elements
   behind the begin of a block.  Returns 0, or -1 and sets an error if a block would be cut. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_block_check(opd_scalar_type dtype, const int64_t *sizes, const int64_t *strides,
                                                 int ndim, int64_t offset) {
    const opdi_block_info info = opdi_block_info_of((int)dtype);
    if (!info.elements) { return opd_fail(OPD_ERROR_DTYPE, "%d is not a dtype", (int)dtype); }
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) { return 0; }
    }
    const int row = opdi_block_row_of(sizes, strides, ndim);
    bool fits = row >= 0 && sizes[row] % info.elements == 0 && offset % info.elements == 0;
    for (int i = 0; fits && strides && i < ndim; i++) {
        fits = i == row || sizes[i] == 1 || strides[i] % info.elements == 0;
    }
    return fits ? 0 : opdi_block_cut(&info, sizes, strides, ndim, offset);
}

//== what decodes and encodes blocks ===================================================================================

OPDI_INTERNAL const opdi_block_forms *opdi_on_blocks;

/* Returns the functions for blocks.  They are noted when the operator dequantize is registered, which a look-up does.
   Returns NULL and sets an error if the program has no such operator. */
OPDI_INTERNAL const opdi_block_forms *opdi_block_forms_of(void) {
    const opdi_block_forms *forms = OPDI_ACQUIRE(&opdi_on_blocks);
    if (OPDI_LIKELY(forms != NULL)) { return forms; }
    const opd_op_id number = OPD_OP_dequantize_self;          /* a program with OPD_LEAN may not have it */
    const int mark = opd_error_mark();
    (void)opd_op_builtin(number);
    (void)opd_error_rewind(mark);
    forms = OPDI_ACQUIRE(&opdi_on_blocks);
    if (!forms) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "the operators for dtypes in blocks are not in this program: with "
                       "OPD_LEAN, a program that does not call opd_dequantize keeps them with "
                       "OPD_KEEP(dequantize_self)");
    }
    return forms;
}
/* Returns true if elements of this dtype can be read.  Otherwise returns false and sets an error. */
OPDI_INTERNAL bool opdi_block_readable(int dtype) {
    const opdi_block_forms *const forms = opdi_block_forms_of();
    float none;
    return forms && forms->decode((opd_scalar_type)dtype, &none, &none, 0) == 0;
}
/* Returns the element of a tensor in blocks that lies `offset` elements behind its first.  Returns NaN and sets an
   error if the program cannot decode blocks. */
OPDI_INTERNAL double opdi_block_element(const opd_tensor *tensor, int64_t offset) {
    float values[OPDI_BLOCK_LARGEST];
    const opdi_block_info info = opdi_block_info_of(tensor->dtype);
    const opdi_block_forms *const forms = opdi_block_forms_of();
    const char *const block = tensor->data + offset / info.elements * info.bytes;
    if (forms && info.bits) {                     /* a block may be long */
        forms->some(&info, (const uint8_t *)block, offset % info.elements / 8 * 8, 8, values);
        return (double)values[offset % 8];
    }
    if (!forms || forms->decode(info.dtype, block, values, info.elements)) { return (double)NAN; }
    return (double)values[offset % info.elements];
}
