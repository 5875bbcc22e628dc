#include "dispatch.h"

//== results ===========================================================================================================

OPDI_COLD_BEGIN
/* Frees the block that holds a list, string or complex result, and drops the tensors in it.  The block's header is in
   front of the memory that value points to. */
OPDI_INTERNAL void opdi_ret_block_free(opd_value *value) {
    if (value->tag == OPD_TAG_TENSORS) {
        for (int32_t i = 0; i < value->n; i++) {
            if (value->u.tensors[i]) { opdi_drop(value->u.tensors[i]); }
        }
    }
    opdi_block *block = (opdi_block *)(uintptr_t)value->u.object - 1;
    opdi_free(block, block->bytes);
}

/* Returns how many bytes a copy of the memory that `value` points to needs, including the contents of lists.  Returns
   -1 if the value contains tensors or is nested too deep. */
OPDI_INTERNAL int64_t opdi_value_bytes(const opd_value *value, int depth) {
    const int64_t count = value->n;
    int64_t sum = count * (int64_t)sizeof(opd_value), one;
    switch (value->tag) {
    case OPD_TAG_STR: return (int64_t)((strlen(value->u.s) + 8) & ~(size_t)7);
    case OPD_TAG_COMPLEX: return 2 * (int64_t)sizeof(double);
    case OPD_TAG_INTS: case OPD_TAG_FLOATS: return count < 0 ? -1 : count * 8;
    case OPD_TAG_BOOLS: return count < 0 ? -1 : (count + 7) & ~(int64_t)7;
    case OPD_TAG_TENSOR: case OPD_TAG_TENSORS: return -1;
    case OPD_TAG_LIST:
        if (count < 0 || depth > 32) { return -1; }
        for (int32_t k = 0; k < value->n; k++) {
            if ((one = opdi_value_bytes(&value->u.list[k], depth + 1)) < 0) { return -1; }
            sum += one;
        }
        return sum;
    default: return 0;
    }
}

/* Copies the memory that `value` points to to `at`, with the contents of lists, and makes the value point there.
   Returns the end of the copy. */
OPDI_INTERNAL char *opdi_value_copy(opd_value *value, char *at) {
    size_t bytes = (size_t)(value->tag == OPD_TAG_LIST ? value->n * (int64_t)sizeof(opd_value) : opdi_value_bytes(value,
        0));
    size_t given = value->tag == OPD_TAG_STR ? strlen(value->u.s) + 1 : value->tag == OPD_TAG_BOOLS ? (size_t)value->n
        : bytes;
    char *end = at + bytes;
    if (bytes == 0) { return at; }
    memcpy(at, value->u.object, given);
    value->u.object = at;
    for (int32_t k = 0; value->tag == OPD_TAG_LIST && k < value->n; k++) {
        end = opdi_value_copy((opd_value *)(void *)at + k, end);
    }
    return end;
}

/* Moves the block of a result, and the tensors in it, to the innermost scope.  The caller has made room for the handle
   of the block, but not for the tensors.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_ret_block_own(opdi_thread *thread, opd_value *value) {
    opdi_block *block = (opdi_block *)(uintptr_t)value->u.object - 1;
    if (value->tag == OPD_TAG_TENSORS) {
        if (opdi_scope_reserve(thread, (int64_t)value->n + OPDI_MAX_RETURNS)) {
            opdi_ret_block_free(value);
            *value = opd_value_none();
            return -1;
        }
        for (int32_t i = 0; i < value->n; i++) {
            if (value->u.tensors[i]) { opdi_push(thread, value->u.tensors[i]); }
        }
    }
    thread->handles[thread->top++] = (uintptr_t)block | OPDI_HANDLE_BLOCK;
    return 0;
}

/* Returns the index of the next result.  Returns -1 and sets an error if all results are set. */
static int opdi_next_result(opd_call *call) {
    if (call->cursor >= call->op->nrets) {
        return opd_fail(OPD_ERROR_KERNEL, "the kernel returns more than the %d result(s) of the schema",
                        call->op->nrets);
    }
    return call->cursor++;
}

OPDI_INTERNAL int opdi_return_error(const opd_call *call, int i, const char *kind) {
    char type[256];
    (void)opdi_type_print(call->op->schema->returns[i].type, type, sizeof type);
    return opd_fail(OPD_ERROR_KERNEL, "the kernel returns %s%s as result %d, which the schema says is a %s",
                    strcmp(kind, "NULL") == 0 ? "" : "a ", kind, i, type);
}

/* Drops the value that result i already has. */
static void opdi_result_undo(opd_call *call, int i) {
    const uint32_t bit = 1u << (i & 31);
    if (call->owned & bit) { opdi_drop(call->rets[i].u.t); }
    call->owned &= ~bit;
    call->filled &= ~bit;
}
/* Handles the rare cases of opd_return_tensor: mistakes, and a result that opd_result has already made.  Returns 0, or
   -1 and sets an error. */
OPDI_NOINLINE static int opdi_return_other(opd_call *call, opd_tensor *tensor) {
    const opd_op *op = call->op;
    int i = call->cursor;
    if (call->th->error != OPD_OK) { return -1; }
    if (i >= op->nrets) { return opdi_next_result(call); }
    if (!tensor) {
        return opd_fail(OPD_ERROR_KERNEL, "the kernel returns NULL as result %d without setting an error (opd_fail)",
                        i);
    }
    if (!(op->tensor_rets >> i & 1)) { return opdi_return_error(call, i, "Tensor"); }
    if (call->rets[i].u.t == tensor) {
        call->cursor = i + 1;
        return 0;
    }
    opdi_result_undo(call, i);
    return opd_return_tensor(call, tensor);
}
OPDI_COLD_END

/* Sets the kernel's next result.  The call holds a reference to `tensor`, unless the schema says that the result is an
   argument and `tensor` is that argument.  opdi_return_other handles mistakes and results that opd_result has made.
   Returns 0, or -1 and sets an error. */
int opd_return_tensor(opd_call *call, opd_tensor *tensor) {
    const opd_op *op = call->op;
    const int i = call->cursor;
    const uint32_t bit = 1u << (i & 31);
    if (OPDI_UNLIKELY(i >= op->nrets || !tensor || !(op->tensor_rets >> i & 1) || (call->filled & bit))) {
        return opdi_return_other(call, tensor);
    }
    int alias = op->ret_alias[i];
    /* no reference is taken to an argument that is returned */
    if (alias < 0 || call->args[alias].u.t != tensor) {
        opdi_retain(tensor);
        call->owned |= bit;
    }
    call->cursor = i + 1;
    call->rets[i].tag = OPD_TAG_TENSOR;
    call->rets[i].n = 0;
    call->rets[i].u.t = tensor;
    call->filled |= bit;
    return 0;
}

/* Makes a block for a result, with `bytes` bytes after its header.  Returns the address of these bytes, or NULL and
   sets an error. */
OPDI_INTERNAL void *opdi_ret_block(size_t bytes) {
    opdi_block *block = (opdi_block *)opdi_alloc(bytes + sizeof *block);
    if (!block) { return NULL; }
    block->bytes = bytes + sizeof *block;
    return block + 1;
}

/* Sets the next result to a copy of the list, whose tensors are retained.  The call owns the block with the copy until
   the caller's scope takes over the block.  Returns 0, or -1 and sets an error. */
int opd_return_tensors(opd_call *call, opd_tensor *const *list, int64_t count) {
    int i;
    if (call->th->error != OPD_OK || (i = opdi_next_result(call)) < 0) { return -1; }
    const opdi_type *type = opdi_strip_optional(call->op->schema->returns[i].type);
    if (type->kind != OPDI_TYPE_LIST || opdi_strip_optional(type->elems[0])->kind != OPDI_TYPE_TENSOR) {
        return opdi_return_error(call, i, "Tensor[]");
    }
    if (count < 0 || count > INT32_MAX || (count && !list)) {
        return opd_fail(OPD_ERROR_KERNEL, "the kernel returns a list of %lld tensors%s", (long long)count,
                        list ? "" : ", but the pointer to them is NULL");
    }
    opd_tensor **copy = (opd_tensor **)opdi_ret_block((size_t)count * sizeof *copy);
    if (!copy) { return -1; }
    for (int64_t k = 0; k < count; k++) {
        copy[k] = list[k];
        if (copy[k]) { opdi_retain(copy[k]); }
    }
    call->rets[i] = opd_value_tensors(copy, count);
    call->filled |= 1u << i;
    call->owned |= 1u << i;
    return 0;
}

/* Copies the memory that `value` points to into a block, and makes the value point there.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_ret_copy(opd_value *value) {
    int64_t bytes = opdi_value_bytes(value, 0);
    if (bytes < 0) {
        return opd_fail(OPD_ERROR_KERNEL, "the kernel returns a list of %d elements that cannot be copied (tensors in "
                        "nested lists are not supported)", value->n);
    }
    void *memory = opdi_ret_block((size_t)bytes);
    if (!memory) { return -1; }
    (void)opdi_value_copy(value, (char *)memory);
    value->u.object = memory;
    return 0;
}

/* Sets the next result to `value`, converted to the result's type.  Strings, lists and complex numbers are copied.
   Returns 0, or -1 and sets an error. */
int opd_return_value(opd_call *call, opd_value value) {
    opd_value bound = value;
    int i;
    if (value.tag == OPD_TAG_TENSOR) { return opd_return_tensor(call, value.u.t); }
    if (value.tag == OPD_TAG_TENSORS) { return opd_return_tensors(call, value.u.tensors, value.n); }
    if (call->th->error != OPD_OK || (i = opdi_next_result(call)) < 0) { return -1; }
    const opdi_type *type = call->op->schema->returns[i].type;
    /* None for a result of type Tensor is an undefined tensor */
    int rc = value.tag == OPD_TAG_NONE && opdi_strip_optional(type)->kind == OPDI_TYPE_TENSOR ? 0 :
             opdi_strip_optional(type)->kind == OPDI_TYPE_TENSOR ? 1 : opdi_bind_value(type, &value, &bound);
    if (rc) {
        const bool is_null = value.tag == OPD_TAG_NONE || (value.tag == OPD_TAG_TENSOR && !value.u.t);
        return rc > 0 ? opdi_return_error(call, i, is_null ? "NULL" : opdi_value_kind(&value)) : -1;
    }
    value = bound;
    if (value.tag == OPD_TAG_STR || value.tag == OPD_TAG_COMPLEX || opdi_is_list(&value)) {
        if (opdi_ret_copy(&value)) { return -1; }
        call->owned |= 1u << i;
    } else if (value.tag == OPD_TAG_NONE) { opdi_result_undo(call, i); }  /* opd_result may have made a tensor */
    call->rets[i] = value;
    call->filled |= 1u << i;
    return 0;
}
OPDI_INTERNAL int opdi_return_given(opd_call *call, int arg) {
    const opd_value value = call->args[arg];
    size_t bytes = (size_t)value.n * sizeof(opd_value);
    if (value.tag != OPD_TAG_LIST) { return opd_return_value(call, value); }
    for (int32_t k = 0; k < value.n; k++) { bytes += (size_t)value.u.list[k].n * sizeof(opd_tensor *); }
    const int i = call->th->error != OPD_OK ? -1 : opdi_next_result(call);
    opd_value *const copy = i < 0 ? NULL : (opd_value *)opdi_ret_block(bytes);
    if (!copy) { return -1; }
    opd_tensor **at = (opd_tensor **)(void *)(copy + value.n);
    for (int32_t k = 0; k < value.n; k++) {
        const int32_t count = value.u.list[k].n;
        if (count) { memcpy(at, value.u.list[k].u.tensors, (size_t)count * sizeof *at); }
        copy[k] = opd_value_tensors(at, count);
        at += count;
    }
    call->rets[i] = opd_value_list(copy, value.n);
    call->filled |= 1u << i;
    call->owned |= 1u << i;
    return 0;
}
