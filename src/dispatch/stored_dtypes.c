#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>stored_dtypes stored dtypes: dtypes with which few operators compute
//
//  Stored dtypes are dtypes for storage, with which few operators compute: uint16, uint32, uint64, complex32 and the
//  floats of eight bits.  A call with a tensor of such a dtype is handled here before a built-in kernel runs.  Views,
//  factories and copies use the tensor as it is.  Operators that only move elements move integers of the same size.
//  Operators that compute with the dtype in PyTorch on the CPU compute in a wider dtype here; all others fail.  Kernels
//  of programs get the tensors unchanged.  >>stored_calls has the functions that run instead of built-in kernels.
//----------------------------------------------------------------------------------------------------------------------

/* Sets of stored dtypes. */
enum { OPDI_DTYPES_NARROW = 1, OPDI_DTYPES_UINT64 = 2, OPDI_DTYPES_FLOAT8 = 4, OPDI_DTYPES_E8M0 = 8,
      OPDI_DTYPES_COMPLEX32 = 16,
       OPDI_DTYPES_BLOCKS = 32,
       OPDI_DTYPES_UNSIGNED = 3, OPDI_DTYPES_EIGHT = 12, OPDI_DTYPES_ANY = 31 };
/* How (OPDI_STORED_*) the operators in `names` handle the stored dtypes in the set `dtypes`.  A space is before and
   after each name. */
typedef struct opdi_stored_row { int how; unsigned dtypes; const char *names; } opdi_stored_row;
static const opdi_stored_row opdi_stored_rows[] = {
    {OPDI_STORED_PLAIN, OPDI_DTYPES_BLOCKS | OPDI_DTYPES_ANY,
     OPDI_TEXT(
         " empty empty_like empty_strided new_empty new_empty_strided copy copy_ _to_copy clone resize_ is_same_size "
         "size stride numel dim _unsafe_view squeeze_ unsqueeze_ transpose_ swapaxes_ swapdims_ t_ as_strided_ detach_ "
         "is_floating_point is_complex storage_offset sym_size sym_stride sym_numel sym_storage_offset "
         "sym_is_contiguous _assert_tensor_metadata ")},
    {OPDI_STORED_PLAIN, OPDI_DTYPES_ANY,
     OPDI_TEXT(
         " empty_permuted new_full new_ones new_zeros full full_like ones ones_like zeros zeros_like scalar_tensor "
         "fill fill_ zero zero_ resize_as_ _local_scalar_dense _functional_assert_async _functional_assert_scalar "
         "_functional_sym_constrain_range _functional_sym_constrain_range_for_size ")},
    {OPDI_STORED_BLOCKS, OPDI_DTYPES_BLOCKS,
     OPDI_TEXT(" mm addmm bmm baddbmm mv embedding index_select cat stack ")},
    {OPDI_STORED_MOVED, OPDI_DTYPES_ANY,
     OPDI_TEXT(
         " cat stack index index_select where roll repeat embedding block_diag diag_embed select_scatter "
         "slice_scatter diagonal_scatter as_strided_scatter select_backward slice_backward diagonal_backward ")},
    {OPDI_STORED_MOVED, OPDI_DTYPES_EIGHT | OPDI_DTYPES_COMPLEX32, " masked_select "},
    {OPDI_STORED_MOVED, OPDI_DTYPES_FLOAT8 | OPDI_DTYPES_COMPLEX32, " index_put "},
    {OPDI_STORED_MOVED, OPDI_DTYPES_COMPLEX32, " index_copy tril triu "},
    {OPDI_STORED_MOVED, OPDI_DTYPES_UNSIGNED, " gather flip scatter "},
    {OPDI_STORED_PLAIN, OPDI_DTYPES_ANY, " constant_pad_nd "},
    {OPDI_STORED_PLAIN, OPDI_DTYPES_UNSIGNED, " randint randint_like "},
    {OPDI_STORED_WIDE, OPDI_DTYPES_ANY, OPDI_TEXT(" eq ne equal isnan isinf isfinite all any mul ")},
    {OPDI_STORED_COUNTED, OPDI_DTYPES_UNSIGNED, OPDI_TEXT(" sum nansum prod cumsum cumprod ")},
    {OPDI_STORED_COUNTED, OPDI_DTYPES_COMPLEX32, " count_nonzero nonzero "},
    {OPDI_STORED_WIDE, OPDI_DTYPES_FLOAT8, " mm addmm "},
    {OPDI_STORED_WIDE, OPDI_DTYPES_FLOAT8 | OPDI_DTYPES_COMPLEX32, " abs "},
    {OPDI_STORED_WIDE, OPDI_DTYPES_COMPLEX32,
     OPDI_TEXT(" add sub rsub neg sgn addcmul _conj_physical masked_fill index_fill index_add ")},
    {OPDI_STORED_WIDE, OPDI_DTYPES_UNSIGNED, OPDI_TEXT(" bitwise_and bitwise_or bitwise_xor ceil floor round trunc ")},
    {OPDI_STORED_WIDE, OPDI_DTYPES_NARROW,
     OPDI_TEXT(
         " clamp clamp_min clamp_max maximum minimum fmax fmin nan_to_num relu hardtanh sort _unique2 "
         "unique_consecutive ")},
    {OPDI_STORED_ORDERED, OPDI_DTYPES_UINT64, OPDI_TEXT(" clamp clamp_min clamp_max maximum minimum fmax fmin sort ")},
    {OPDI_STORED_PROMOTED, OPDI_DTYPES_UNSIGNED, " add sub rsub pow "},
    {OPDI_STORED_FLOAT, OPDI_DTYPES_UNSIGNED,
     OPDI_TEXT(
         " div acos acosh asin asinh atan atan2 atanh copysign cos cosh deg2rad digamma erf erfc erfinv exp exp2 "
         "expm1 i0 lgamma log log10 log1p log2 logit logsumexp polygamma rad2deg reciprocal rsqrt sigmoid sin sinc "
         "sinh sqrt tan tanh xlogy ")}
};

OPDI_INTERNAL unsigned opdi_stored_set(int dtype) {
    if (opdi_is_block(dtype)) { return OPDI_DTYPES_BLOCKS; }
    return dtype == OPD_UINT64 ? OPDI_DTYPES_UINT64 : opdi_is_bare_unsigned(dtype) ? OPDI_DTYPES_NARROW
        : dtype == OPD_FLOAT8_E8M0FNU ? OPDI_DTYPES_E8M0 : opdi_is_float8(dtype) ? OPDI_DTYPES_FLOAT8
        : OPDI_DTYPES_COMPLEX32;
}
/* Returns true if an operator returns views: all its results are aliases of arguments, and no argument is written. */
OPDI_INTERNAL bool opdi_returns_views(const opd_op *op) {
    for (int i = 0; i < op->nrets; i++) {
        const opdi_type *type = opdi_strip_optional(op->schema->returns[i].type);
        const opdi_alias *alias = type->alias || type->kind != OPDI_TYPE_LIST ? type->alias : type->elems[0]->alias;
        if (!alias || alias->write) { return false; }
    }
    return op->nrets > 0 && !op->written_args;
}
/* Returns true if `name` is in `names`, a list with a space before and after each name. */
OPDI_INTERNAL bool opdi_is_in_names(const char *name, const char *names) {
    const size_t length = strlen(name);
    for (const char *at = strstr(names, name); at; at = strstr(at + 1, name)) {
        if (at[-1] == ' ' && at[length] == ' ') { return true; }
    }
    return false;
}
/* Returns how (OPDI_STORED_*) a built-in operator handles the stored dtypes in the set `dtypes`. */
OPDI_INTERNAL int opdi_stored_mode(const opd_op *op, unsigned dtypes) {
    const bool negates = dtypes & OPDI_DTYPES_BLOCKS && strcmp(op->schema->name, "_neg_view") == 0;
    if (opdi_returns_views(op)) { return negates ? OPDI_STORED_NOT : OPDI_STORED_PLAIN; } /* blocks have no lazy sign */
    for (size_t i = 0; i < sizeof opdi_stored_rows / sizeof *opdi_stored_rows; i++) {
        const opdi_stored_row *row = &opdi_stored_rows[i];
        if (dtypes & ~row->dtypes) { continue; }
        if (opdi_is_in_names(op->schema->name, row->names)) { return row->how; }
    }
    return OPDI_STORED_NOT;
}
/* Sets the error of PyTorch's kernels for a dtype that they do not support.  Returns -1. */
OPDI_INTERNAL int opdi_stored_refuse(const opd_op *op, const char *device, int dtype) {
    return opd_fail(OPD_ERROR_DTYPE, "\"%s_%s\" not implemented for '%s'%s", op->schema->name, device,
                    opd_dtype_name((opd_scalar_type)dtype),
                    opdi_is_block(dtype) ? ": opd_dequantize makes float32 of a tensor in blocks" : "");
}
/* Returns true for a built-in operator that has a kernel, and is neither composite nor derived from another operator.
   */
OPDI_INTERNAL bool opdi_has_own_kernel(const opd_op *op) {
    const opdi_registration *definition = op->definition;
    const opdi_card *card = OPDI_ACQUIRE(&op->card);
    return definition && definition->lib == opdi_registry.aten && card && !card->base && !card->desc.composite;
}
/* Returns true if a call at this key runs a built-in kernel that is not composite.  The kernels of the CUDA plug-in
   count as built-in. */
static bool opdi_stored_guards(const opd_op *op, opd_key key) {
    opdi_chosen how;
    if (!opdi_has_own_kernel(op)) { return false; }
    opdi_lock(&opdi_registry.lock);
    const opdi_kernel *kernel = opdi_compute_slot(op, key, &how);
    const bool ours = kernel && (((const opdi_registration *)(const void *)kernel)[-1].lib == opdi_registry.aten ||
                                 key == OPD_KEY_CUDA);
    opdi_unlock(&opdi_registry.lock);
    return ours;
}
/* Returns the slot whose kernel a call with tensors of stored dtypes runs: opdi_stored_kernel instead of a built-in
   kernel in `slot`, else `slot`. */
OPDI_INTERNAL const opdi_slot *opdi_stored_slot(const opd_call *call, const opdi_slot *slot) {
    static const opdi_slot guard = {opdi_stored_kernel, NULL};
    return call->slot >= OPD_KEY_CPU && call->slot < OPD_KEY_CPU + 16 && slot->fn != opd_fallthrough &&
        opdi_stored_guards(call->op, call->slot) ? &guard : slot;
}
/* Checks a stored dtype that was given as an argument, not by a tensor.  Sets an error and returns -1 if the built-in
   operator cannot make tensors of this dtype.  Otherwise returns 0. */
OPDI_INTERNAL int opdi_stored_dtype_check(const opd_call *call, opd_scalar_type dtype) {
    const opd_op *op = call->op;
    if (!opdi_has_own_kernel(op)) { return 0; }
    return opdi_stored_mode(op, opdi_stored_set((int)dtype)) == OPDI_STORED_PLAIN ? 0
        : opdi_stored_refuse(op, "cpu", (int)dtype);
}
