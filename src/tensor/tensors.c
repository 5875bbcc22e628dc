#include "tensor.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>tensors      storage, sizes and strides, tangents beside storages, results of kernels
//
//  A tensor is one block of memory: header, sizes, strides, storage header, and small data.  Larger data has a separate
//  block.  This section uses the dispatcher, and >>scopes, which counts the references to tensors.  Of autograd, it
//  knows only that a tensor may be a view.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL int opdi_family_pass(opd_tensor *value, const opd_tensor *tensor);
OPDI_INTERNAL opd_tensor *opdi_device_tensor(const int64_t *sizes, const int64_t *strides, int ndim,
                                             opd_scalar_type dtype, opd_device device);
OPDI_INTERNAL opdi_storage *opdi_device_storage(int64_t bytes, int place);
OPDI_INTERNAL int opdi_device_move(const opdi_storage *dst, char *to, const opdi_storage *src, const char *from,
                                   size_t bytes);
opd_device opd_tensor_device(const opd_tensor *tensor) {
    if (opdi_is_none(tensor, "opd_tensor_device")) { return opdi_place_device(OPD_CPU); }
    const opdi_meta *meta = OPDI_ACQUIRE(&tensor->meta);
    if (meta && meta->inner) { return opd_tensor_device(meta->inner); }
    if (tensor->backend == OPD_META && tensor->storage->stands_for && opdi_self()->innermost.fake) {
        return opdi_place_device(tensor->storage->stands_for - 1);
    }
    return opdi_place_device(opdi_place_of(tensor));
}
int64_t opd_tensor_offset(const opd_tensor *tensor) {
    if (opdi_is_none(tensor, "opd_tensor_offset")) { return 0; }
    return opdi_bytes_elements(tensor->dtype, tensor->data ? (int64_t)(tensor->data - tensor->storage->data)
                               : tensor->begin);
}
OPDI_INTERNAL bool opdi_on_device(const opd_tensor *tensor) {
    return tensor->backend != OPD_CPU && tensor->backend != OPD_META;
}
/* If a recording is in progress on this thread, tells it that `copy`, another tensor with the memory of `tensor`, is
   the same value of the graph.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_traced_copy(opd_tensor *copy, const opd_tensor *tensor) {
    const opdi_tracer *tracer = opdi_self()->innermost.tracer;
    return tracer ? tracer->copied(copy, tensor) : 0;
}
/* If a recording is in progress on this thread, checks that it allows reading the data of `tensor`.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_traced_read(const opd_tensor *tensor) {
    const opdi_tracer *tracer = opdi_self()->innermost.tracer;
    return tracer ? tracer->read(tensor) : 0;
}
OPDI_COLD_BEGIN

//== making tensors ====================================================================================================

/* Sets the error that sizes are negative, too many, or too large for memory.  Returns -1. */
OPDI_NOINLINE OPDI_INTERNAL int64_t opdi_count_error(const int64_t *sizes, int ndim) {
    char text[256];
    if (ndim < 0 || ndim > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions, not %d", OPD_MAX_DIMS, ndim);
    }
    (void)opdi_sizes_text(sizes, ndim, text, sizeof text);
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "Trying to create tensor with negative dimension %lld: %s",
                            (long long)sizes[i], text);
        }
    }
    return opd_fail(OPD_ERROR_SHAPE, "the sizes %s do not fit into memory", text);
}
OPDI_COLD_END

OPDI_INTERNAL int64_t opdi_extent(const int64_t *sizes, const int64_t *strides, int ndim);

OPDI_INTERNAL bool opdi_strides_contiguous(const int64_t *sizes, const int64_t *strides, int ndim) {
    int64_t want = 1;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) { return true; }
    }
    for (int i = ndim; i-- > 0;) {
        if (sizes[i] != 1 && strides[i] != want) { return false; }
        want *= sizes[i];
    }
    return true;
}

OPDI_INTERNAL void opdi_strides_fill(const int64_t *sizes, int64_t *strides, int ndim) {
    int64_t count = 1;
    for (int i = ndim; i-- > 0;) {
        strides[i] = count;
        count = opdi_size_times(count, OPDI_MAX(sizes[i], 1));
    }
}

/* Limits the strides of a tensor to 2^62 bytes.  Only strides that reach no element can be larger, but offsets are
   computed with them, too. */
OPDI_INTERNAL void opdi_strides_bound(opd_tensor *tensor);
OPDI_NOINLINE OPDI_INTERNAL void opdi_strides_bound(opd_tensor *tensor) {
    const int64_t most = ((int64_t)1 << 62) / (int64_t)opdi_element_size(tensor->dtype);
    for (int i = 0; i < tensor->ndim; i++) {
        int64_t *stride = &tensor->dims[tensor->ndim + i];
        *stride = OPDI_MIN(*stride, most);
    }
}

OPDI_INTERNAL opdi_meta *opdi_meta_of(opd_tensor *tensor);
OPDI_INTERNAL bool opdi_is_dense(const opd_tensor *tensor);

#define OPDI_MOST_META ((uint64_t)INT64_MAX / 2)
/* Makes a tensor and returns the caller's reference to it. backend is an opdi_place.  Returns NULL and sets an error if
   that fails. */
OPDI_INTERNAL opd_tensor *opdi_tensor_make(const int64_t *sizes, const int64_t *strides, int ndim,
                                           opd_scalar_type dtype, int backend) {
    const size_t element = opdi_element_size((int)dtype);
    int64_t numel, extent;
    opd_tensor *tensor;
    opdi_storage *storage;
    if (element == 0) {
        (void)opd_fail(OPD_ERROR_DTYPE, "%d is not a dtype", (int)dtype);
        return NULL;
    }
    if (OPDI_UNLIKELY(backend != OPD_CPU && backend != OPD_META)) {
        return opdi_device_tensor(sizes, strides, ndim, dtype, opdi_place_device(backend));
    }
    numel = extent = opdi_count(sizes, ndim, element);
    if (numel < 0) { return NULL; }
    if (OPDI_UNLIKELY(opdi_is_block((int)dtype)) && opdi_block_check(dtype, sizes, strides, ndim, 0)) { return NULL; }
    if (strides && numel) { extent = opdi_extent(sizes, strides, ndim); }
    if (extent < 0 ||
        (uint64_t)extent > (backend == OPD_META ? OPDI_MOST_META : OPDI_MOST_BYTES) >> opdi_low_bit(element)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "sizes and strides do not fit into memory");
        return NULL;
    }
    const size_t bytes = OPDI_LIKELY(!opdi_is_block((int)dtype)) ? (size_t)extent * element
        : (size_t)opdi_elements_bytes((int)dtype, extent);
    bool apart = backend == OPD_META || bytes > OPDI_INLINE_DATA_MAX;
    size_t head = sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t) + sizeof *storage;
    size_t align = bytes <= 8 ? 8 : bytes < 256 ? 16 : 64;
    size_t at = (head + align - 1) & ~(align - 1);
    size_t block = apart ? head : at + bytes;
    tensor = (opd_tensor *)opdi_alloc(block);
    if (!tensor) { return NULL; }
    opdi_tensor_init(tensor, dtype, backend, ndim);
    opdi_set_dims(tensor, sizes, strides, ndim, numel);
    storage = (opdi_storage *)(void *)(tensor->dims + 2 * ndim);
    storage->refs = 1;
    storage->version = 0;
    storage->bytes = (int64_t)bytes;
    storage->block = tensor;
    storage->block_bytes = (int64_t)block;
    storage->duals = NULL;
    storage->packed = NULL;
    storage->device = 0;
    storage->index = 0;
    storage->stands_for = 0;
    storage->born = opdi_self()->innermost.serial;
    storage->data = (char *)tensor + at;
    if (OPDI_UNLIKELY(apart) && opdi_data_apart(storage, backend)) {
        opdi_free(tensor, block);
        return NULL;
    }
    tensor->storage = storage;
    tensor->data = storage->data;
    return tensor;
}

/* Makes a tensor over the memory of `storage`, with its first element at `data`, and with room for an opdi_view_record.
   Bounds are not checked, and no reference to storage is taken.  Returns NULL if memory runs out. */
OPDI_INTERNAL opd_tensor *opdi_tensor_on(opdi_storage *storage, char *data, const int64_t *sizes,
                                         const int64_t *strides, int ndim, opd_scalar_type dtype, int backend) {
    int64_t numel = opdi_count(sizes, ndim, opdi_element_size((int)dtype));
    if (numel < 0) { return NULL; }
    if (OPDI_UNLIKELY(opdi_is_block((int)dtype)) && opdi_block_check(dtype, sizes, strides, ndim, 0)) { return NULL; }
    opd_tensor *tensor = (opd_tensor *)opdi_alloc(sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t) +
                                                  sizeof(opdi_view_record));
    if (!tensor) { return NULL; }
    opdi_tensor_init(tensor, dtype, backend, ndim);
    opdi_set_dims(tensor, sizes, strides, ndim, numel);
    opdi_view_record_of(tensor)->base = NULL;
    tensor->storage = storage;
    tensor->data = data;
    return tensor;
}

/* Makes the tensor that stands for one example of `value`; it holds a reference to `value`.  Dim `dim` of `value`
   counts the examples of the vmap layer at `level`, whose number is `serial`.  Returns a reference, or NULL if memory
   runs out. */
OPDI_INTERNAL opd_tensor *opdi_batch_wrap(opd_tensor *value, int dim, int level, uint32_t serial) {
    const int ndim = value->ndim - 1;
    opd_tensor *tensor = (opd_tensor *)opdi_alloc(sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t) +
                                                  sizeof(opdi_view_record) + sizeof(opdi_batched));
    int64_t want = 1;
    bool contiguous = true;
    if (!tensor) { return NULL; }
    opdi_tensor_init(tensor, (opd_scalar_type)value->dtype, value->backend, ndim);
    opdi_view_record_of(tensor)->base = NULL;
    tensor->ndim = (uint8_t)ndim;
    tensor->numel = 1;
    for (int i = 0; i < ndim; i++) {
        const int from = i < dim ? i : i + 1;
        tensor->dims[i] = value->dims[from];
        tensor->dims[ndim + i] = value->dims[value->ndim + from];
        tensor->numel *= tensor->dims[i];
    }
    for (int i = ndim; i-- > 0;) {
        contiguous = contiguous && (tensor->dims[i] == 1 || tensor->dims[ndim + i] == want);
        want *= tensor->dims[i];
    }
    if (contiguous || tensor->numel == 0) { tensor->flags |= OPDI_CONTIGUOUS; }
    if (OPDI_UNLIKELY(opdi_is_block(value->dtype)) &&
        opdi_block_check((opd_scalar_type)value->dtype, tensor->dims, tensor->dims + ndim, ndim, 0)) {
        opdi_free(tensor, sizeof *tensor + 2 * (size_t)ndim * sizeof(int64_t) + sizeof(opdi_view_record) +
                  sizeof(opdi_batched));
        return NULL;
    }
    tensor->flags = (uint8_t)(tensor->flags | OPDI_BATCHED | (value->flags & OPDI_WRAPPED));
    tensor->functionality = (tensor->functionality & ~OPDI_GRAD_KEYS) | OPD_BIT_OF(OPD_F_BATCHED) |
        (value->functionality & (OPDI_GRAD_KEYS | ~OPDI_TENSOR_KEYS)) | (opdi_self()->innermost.tape
            ? OPDI_GRAD_KEYS : 0);
    tensor->storage = value->storage;
    tensor->data = value->data;
    tensor->begin = value->begin;
    opdi_ref_up(&tensor->storage->refs);
    opdi_batched *batched = opdi_batched_of(tensor);
    opdi_retain(value);
    batched->value = value;
    batched->dim = dim;
    batched->level = level;
    batched->serial = serial;
    return tensor;
}

OPDI_COLD_BEGIN
/* Updates the batched `tensor` after its value was replaced by a value with other memory or other strides.  Returns
   0, or -1 and sets an error if sizes or dtype have changed. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_batch_refit(opd_tensor *tensor) {
    const opdi_batched *batched = opdi_batched_of(tensor);
    opd_tensor *value = batched->value;
    const int ndim = tensor->ndim;
    bool fits = value->ndim == ndim + 1 && value->dtype == tensor->dtype && value->backend == tensor->backend &&
        (value->storage == tensor->storage || !(tensor->flags & OPDI_IS_VIEW));
    if (value->ndim == ndim + 1 && value->functionality & OPD_BIT_OF(OPDI_SIZES_KEY)) {
        tensor->numel = 1;                        /* sizes that depend on data may have other numbers now */
        for (int i = 0; i < ndim; i++) { tensor->numel *= tensor->dims[i] = value->dims[i < batched->dim ? i : i + 1]; }
    }
    for (int i = 0; fits && i < ndim; i++) { fits = tensor->dims[i] == value->dims[i < batched->dim ? i : i + 1]; }
    if (!fits) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a batched tensor inside vmap (level %d) no longer fits the tensor that it "
                        "was made from: the sizes or the dtype of that tensor were changed during vmap, by an operator "
                        "such as resize_ or unsqueeze_ or by giving it other data. Change it before vmap",
                        (int)batched->level);
    }
    for (int i = 0; i < ndim; i++) {
        tensor->dims[ndim + i] = value->dims[value->ndim + (i < batched->dim ? i : i + 1)];
    }
    const bool contiguous = tensor->numel == 0 || opdi_strides_contiguous(tensor->dims, tensor->dims + ndim, ndim);
    tensor->flags = (uint8_t)(contiguous ? tensor->flags | OPDI_CONTIGUOUS : tensor->flags & ~OPDI_CONTIGUOUS);
    opdi_set_lazy(tensor, value->functionality);
    opdi_ref_up(&value->storage->refs);
    opdi_storage_drop(tensor->storage);
    tensor->storage = value->storage;
    tensor->data = value->data;
    tensor->begin = value->begin;
    return 0;
}
/* Returns a new reference to a new batched tensor for `value`, with the dim, level and serial number of the batched
   `tensor`.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_batch_again(const opd_tensor *tensor, opd_tensor *value) {
    const opdi_batched *batched = opdi_batched_of(tensor);
    if (!opdi_batch_fits(tensor) && opdi_batch_refit((opd_tensor *)(uintptr_t)tensor)) { return NULL; }
    return opdi_batch_wrap(value, batched->dim, batched->level, batched->serial);
}
OPDI_COLD_END

OPDI_INTERNAL bool opdi_differentiable(const opd_tensor *tensor) {
    return opd_dtype_is_floating((opd_scalar_type)tensor->dtype) ||
        opd_dtype_is_complex((opd_scalar_type)tensor->dtype);
}

/* Adds a reference to the storage of `tensor` for `copy`, a new tensor on that storage, and gives `copy` the lazy keys
   (conjugate, negative) of `tensor`.  `copy` is an inference tensor if `tensor` is one. */
OPDI_INTERNAL void opdi_share_storage(opd_tensor *copy, const opd_tensor *tensor) {
    opdi_ref_up(&tensor->storage->refs);
    copy->begin = tensor->begin;
    opdi_set_lazy(copy, tensor->functionality);
    copy->functionality = (copy->functionality & ~OPDI_GRAD_KEYS) | (tensor->functionality & OPDI_GRAD_KEYS);
}
OPDI_INTERNAL opd_tensor *opdi_shallow_copy(const opd_tensor *tensor) {
    const unsigned flags = OPDI_LOAD(&tensor->flags);       /* an atomic read: another thread may bring a view up to
                                                               date */
    const opdi_batched *batched = OPDI_UNLIKELY(flags & OPDI_BATCHED) ? opdi_batched_of(tensor) : NULL;
    opd_tensor *copy = batched ? opdi_batch_again(tensor, batched->value)
        : opdi_tensor_on(tensor->storage, tensor->data, tensor->dims, tensor->dims + tensor->ndim, tensor->ndim,
                         (opd_scalar_type)tensor->dtype, tensor->backend);
    if (!copy) { return NULL; }
    if (!batched) { opdi_share_storage(copy, tensor); }
    if (OPDI_UNLIKELY(tensor->meta != NULL) && opdi_family_pass(copy, tensor)) {
        opdi_drop(copy);
        return NULL;
    }
    if (OPDI_UNLIKELY(flags & OPDI_TRACED) && opdi_traced_copy(copy, tensor)) {
        opdi_drop(copy);
        return NULL;
    }
    return copy;
}

/* Returns a tensor over the memory of `tensor` with these OPDI_LAZY_KEYS, without history, in the innermost scope.
   Returns NULL and sets an error if that fails. */
OPDI_INTERNAL opd_tensor *opdi_stored_as(const opd_tensor *tensor, uint64_t keys) {
    opd_tensor *stored = opdi_shallow_copy(tensor);
    if (stored) { opdi_set_lazy(stored, keys); }
    return stored ? opdi_own(stored) : NULL;
}
/* Returns a copy of `tensor` whose memory has the values themselves, not their conjugates or negatives.  The copy has
   no history and belongs to the innermost scope.  The operators that compute it run below Conjugate and all higher
   keys.  Returns NULL and sets an error if that fails. */
OPDI_INTERNAL opd_tensor *opdi_resolved(const opd_tensor *tensor) {
    const uint64_t keys = tensor->functionality & OPDI_LAZY_KEYS;
    opd_key_guard guard = opd_keys_exclude(opd_keyset_make(~(OPD_BIT_OF(OPD_F_CONJUGATE) - 1), 0));
    opd_tensor *value = opdi_stored_as(tensor, 0);
    for (int i = 0; i < 2 && value; i++) {
        if (!(keys & OPD_BIT_OF(i ? OPD_F_NEGATIVE : OPD_F_CONJUGATE))) { continue; }
        value = i ? opd_neg(value) : opd_conj_copy(value);
    }
    opd_keys_restore(guard);
    return value;
}
/* Makes `view`, a new tensor on the storage of `tensor`, a view of `tensor`: if either is written, the history of the
   other follows.  `creation` is an opdi_creation. */
OPDI_INTERNAL void opdi_view_tie(opd_tensor *view, opd_tensor *tensor, unsigned creation) {
    const opdi_view_record *from = tensor->flags & OPDI_IS_VIEW ? opdi_view_record_of(tensor) : NULL;
    opdi_view_record *record = opdi_view_record_of(view);
    if (opdi_is_inference(tensor) || opdi_differentiable(tensor) != opdi_differentiable(view)) { return; }
    if (!opdi_differentiable(tensor)) {
        if (view->dtype != tensor->dtype || view->storage->block == view || record->base) { return; }
        record->base = opdi_view_base(tensor) ? opdi_view_base(tensor) : tensor;
        opdi_retain(record->base);
        return;
    }
    if (from && (from->creation == OPDI_VIEW_INFERENCE || creation == OPDI_VIEW_DEFAULT)) { creation = from->creation; }
    record->base = from ? from->base : tensor;
    opdi_retain(record->base);
    record->version = OPDI_LOAD(&tensor->storage->version);
    record->creation = creation;
    view->flags |= OPDI_IS_VIEW;
}
OPDI_INTERNAL void opdi_view_of(opd_tensor *view, opd_tensor *tensor) {
    const opdi_state *state = &opdi_self()->state;
    opdi_share_storage(view, tensor);
    opdi_view_tie(view, tensor, OPDI_UNLIKELY(state->inference) ? OPDI_VIEW_INFERENCE
                  : state->no_grad ? OPDI_VIEW_NO_GRAD : OPDI_VIEW_DEFAULT);
}
/* Marks view as one of several views that a call returns.  Returns view. */
OPDI_INTERNAL opd_tensor *opdi_view_of_many(opd_tensor *view) {
    opdi_view_record *record = view && view->flags & OPDI_IS_VIEW ? opdi_view_record_of(view) : NULL;
    const opdi_state *state = &opdi_self()->state;
    if (record && !state->no_grad && record->creation != OPDI_VIEW_INFERENCE) {
        record->creation = OPDI_VIEW_MULTI_OUTPUT;
    }
    return view;
}
/* Makes `view` a tensor that shares memory, but is no longer a view. */
OPDI_INTERNAL void opdi_view_untie(opd_tensor *view) {
    opd_tensor *base = opdi_view_base(view);
    if (!base) { return; }
    view->flags &= (uint8_t)~OPDI_IS_VIEW;
    opdi_view_record_of(view)->base = NULL;
    opdi_drop(base);
}
/* Returns a view of `tensor`, as view operators do, with these sizes and strides.  `offset` counts elements from the
   first element of `tensor`.  The caller has checked that all elements stay inside.  The view belongs to the innermost
   scope.  Returns NULL and sets an error if that fails. */
OPDI_INTERNAL opd_tensor *opdi_view(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                                    int64_t offset) {
    const int dtype = tensor->dtype;
    /* only a view without elements can begin so far back; it is moved to the end */
    if (OPDI_UNLIKELY(offset >> 40 > 0)) {
        offset = tensor->data
            ? opdi_bytes_elements(dtype, tensor->storage->bytes - (tensor->data - tensor->storage->data)) : 0;
    }
    if (OPDI_UNLIKELY(opdi_is_block(dtype)) &&
        opdi_block_check((opd_scalar_type)dtype, sizes, strides, ndim, offset)) { return NULL; }
    const int64_t bytes = opdi_elements_bytes(dtype, offset);
    opd_tensor *view = opdi_tensor_on(tensor->storage, tensor->data ? tensor->data + bytes : NULL, sizes, strides, ndim,
                                      (opd_scalar_type)dtype, tensor->backend);
    if (!view) { return NULL; }
    opdi_view_of(view, tensor);
    if (view->backend == OPD_META) { view->begin += bytes; }
    if (OPDI_UNLIKELY(tensor->meta != NULL) && opdi_family_pass(view, tensor)) {
        opdi_drop(view);
        return NULL;
    }
    return opdi_own(view);
}

OPDI_COLD_BEGIN

/* If a transform is open, sets an error with this text and returns -1.  Otherwise returns 0. */
OPDI_INTERNAL int opdi_inside_transform(const char *text) {
    return opdi_self()->innermost.layer ? opd_fail(OPD_ERROR_AUTOGRAD, "%s", text) : 0;
}

OPDI_INTERNAL int opdi_dead_argument(opd_call *call) {
    char why[512];
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        const char *name = call->op->schema->args[i].name;
        if (value->tag == OPD_TAG_TENSOR && opdi_is_dead(value->u.t)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "argument '%s' " OPDI_DEAD_TEXT, name,
                            opdi_dead_why(value->u.t, why, sizeof why));
        }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] && opdi_is_dead(value->u.tensors[k])) {
                return opd_fail(OPD_ERROR_ARGUMENT, "argument '%s'[%d] " OPDI_DEAD_TEXT, name, k,
                                opdi_dead_why(value->u.tensors[k], why, sizeof why));
            }
        }
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "a tensor in the arguments " OPDI_DEAD_TEXT, "it was released");
}

OPDI_INTERNAL int opdi_null_tensor(const opd_tensor *tensor, const char *who) {
    if (tensor && OPDI_UNLIKELY(opdi_is_dead(tensor))) { return opdi_dead_error(tensor, who); }
    return tensor ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensor is NULL", who);
}

/* Returns 0, or -1 and sets an error if `tensor` stands for an example of a vmap, because its memory has all examples.
   */
OPDI_INTERNAL int opdi_is_example(const opd_tensor *tensor) {
    return tensor->flags & OPDI_BATCHED
        ? opd_fail(OPD_ERROR_ARGUMENT, "accessing `data` under vmap transform is not allowed") : 0;
}

/* Checks sizes, strides and offset (from the storage's first element), then makes the view.  Returns NULL and sets an
   error if that fails. */
opd_tensor *opd_tensor_view(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                            int64_t offset) {
    int64_t own = opd_tensor_offset(tensor);
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_tensor_view") || opdi_is_example(tensor)) { return NULL; }
    const int64_t element = (int64_t)opdi_element_size(tensor->dtype);
    const int64_t room = opdi_bytes_elements(tensor->dtype, tensor->storage->bytes);
    if (ndim > 0 && (!sizes || !strides)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_view: sizes or strides are NULL");
        return NULL;
    }
    if (opdi_count(sizes, ndim, (size_t)element) < 0) { return NULL; }
    for (int i = 0; i < ndim; i++) {
        if (strides[i] < 0) {
            (void)opd_fail(OPD_ERROR_SHAPE,
                           "as_strided: Negative strides are not supported at the moment, got strides: %lld",
                           (long long)strides[i]);
            return NULL;
        }
    }
    int64_t extent = opdi_extent(sizes, strides, ndim);
    if (offset < 0 || extent < 0 || (extent > 0 && extent > room - offset)) {
        char first[256], second[256];
        (void)opd_fail(OPD_ERROR_INDEX, "setStorage: sizes %s, strides %s, storage offset %lld, "
                       "and itemsize %lld are out of bounds for storage of size %lld",
                       opdi_sizes_text(sizes, ndim, first, sizeof first),
                       opdi_sizes_text(strides, ndim, second, sizeof second), (long long)offset, (long long)element,
                       (long long)tensor->storage->bytes);
        return NULL;
    }
    /* an empty view beyond the end begins at the end */
    if (extent == 0) { offset = OPDI_MIN(offset, room); }
    opd_tensor *view = opdi_view(tensor, sizes, strides, ndim, offset - own);
    if (view && !opdi_self()->current) { opdi_view_untie(view); }
    return view;
}

/* Returns true if the caller's list of sizes is valid: at most OPD_MAX_DIMS sizes, not NULL.  Otherwise returns false
   and sets an error. */
static bool opdi_sizes_given(opd_ints sizes) {
    if (sizes.n >= 0 && sizes.n <= OPD_MAX_DIMS && (sizes.data || sizes.n == 0)) { return true; }
    if (sizes.n >= 0 && sizes.n <= OPD_MAX_DIMS) {
        (void)opd_fail(OPD_ERROR_SHAPE, "the pointer to the %lld sizes of a tensor is NULL", (long long)sizes.n);
    } else {
        (void)opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions, not %lld", OPD_MAX_DIMS,
                       (long long)sizes.n);
    }
    return false;
}
/* Returns true if the caller's list of sizes is valid and the dtype exists.  Otherwise returns false and sets an error.
   */
OPDI_INTERNAL bool opdi_form_given(opd_ints sizes, opd_scalar_type dtype) {
    if (!opdi_sizes_given(sizes)) { return false; }
    if (!opdi_element_size((int)dtype)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "%d is not a dtype", (int)dtype);
        return false;
    }
    return true;
}
opd_tensor *opd_tensor_new_on(opd_ints sizes, opd_scalar_type dtype, opd_device device) {
    if (!opd_ok() || !opdi_sizes_given(sizes)) { return NULL; }
    const opdi_fake *fake = opdi_self()->innermost.fake;
    if (OPDI_UNLIKELY(fake != NULL)) { return fake->make(sizes, dtype, device); }
    return opdi_own(opdi_tensor_make(sizes.data, NULL, (int)sizes.n, dtype, opdi_place(device)));
}
opd_tensor *opd_tensor_new(opd_ints sizes, opd_scalar_type dtype) {
    if (!opd_ok() || !opdi_sizes_given(sizes)) { return NULL; }
    return opdi_own(opdi_tensor_make(sizes.data, NULL, (int)sizes.n, dtype, OPD_CPU));
}

opd_tensor *opd_tensor_from(const void *data, opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *tensor = opd_tensor_new(sizes, dtype);
    if (tensor && tensor->numel) {
        if (!data) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_from: the data is NULL");
            return NULL;
        }
        memcpy(tensor->data, data, (size_t)tensor->storage->bytes);
    }
    return tensor;
}

/* Makes a tensor on a caller's memory after checking sizes, strides and alignment.  Returns a reference, or NULL and
   sets an error; then the memory stays the caller's. */
OPDI_INTERNAL opd_tensor *opdi_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                           opd_deleter deleter, void *user) {
    int64_t limit, most, own[2 * OPD_MAX_DIMS];
    if (!opdi_form_given(sizes, dtype)) { return NULL; }
    const size_t element = opdi_element_size((int)dtype);
    limit = most = (INT64_C(1) << 62) / (int64_t)element;
    int64_t numel = opdi_count(sizes.data, (int)sizes.n, element);
    if (numel < 0) { return NULL; }
    for (int i = 0; strides && i < sizes.n; i++) {
        if (strides[i] < 0) {
            (void)opd_fail(OPD_ERROR_SHAPE, "opd_tensor_wrap: negative strides are not supported");
            return NULL;
        }
    }
    if (!strides) { opdi_strides_fill(sizes.data, own, (int)sizes.n); }
    int64_t extent = opdi_extent(sizes.data, strides ? strides : own, (int)sizes.n);
    for (int i = 0; i < sizes.n; i++) {           /* strides that reach no element are used in offsets, too */
        const int64_t steps = OPDI_MAX(sizes.data[i], 1) - 1, stride = strides ? strides[i] : own[i];
        if (stride > most || (steps && stride > most / steps)) {
            extent = -1;
            break;
        }
        most -= steps * stride;
    }
    if (extent < 0 || extent > INT64_MAX / 16) {
        (void)opd_fail(OPD_ERROR_SHAPE, "opd_tensor_wrap: sizes and strides overflow");
        return NULL;
    }
    if (numel && !data) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_wrap: the data is NULL");
        return NULL;
    }
    if (!opdi_is_block((int)dtype) && (uintptr_t)data % (uintptr_t)OPDI_MIN(element, sizeof(void *)) != 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_wrap: the data is not aligned for elements of %s: copy it "
                       "(memcpy into the data of opd_tensor_new)", opd_dtype_name(dtype));
        return NULL;
    }
    if ((uint64_t)(limit - most + 1) * element > UINTPTR_MAX - (uintptr_t)data) {
        (void)opd_fail(OPD_ERROR_SHAPE, "opd_tensor_wrap: sizes and strides reach beyond any memory");
        return NULL;
    }
    opdi_foreign *foreign = (opdi_foreign *)opdi_alloc(sizeof *foreign);
    if (!foreign) { return NULL; }
    memset(foreign, 0, sizeof *foreign);
    foreign->storage.refs = 1;
    foreign->storage.data = (char *)data;
    foreign->storage.bytes = opdi_elements_bytes((int)dtype, extent);
    foreign->storage.block_bytes = -1;
    foreign->storage.born = opdi_self()->innermost.serial;
    opd_tensor *tensor = opdi_tensor_on(&foreign->storage, (char *)data, sizes.data, strides, (int)sizes.n, dtype,
                                        OPD_CPU);
    if (!tensor) {
        opdi_free(foreign, sizeof *foreign);
        return NULL;
    }
    foreign->deleter = deleter;
    foreign->user = user;
    foreign->plugin = opdi_plugin_hold((uintptr_t)deleter);
    if (!foreign->plugin) { foreign->plugin = opdi_plugin_hold((uintptr_t)data); }
    return tensor;
}

opd_tensor *opd_tensor_wrap(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                            opd_deleter deleter, void *user) {
    opd_tensor *tensor = opd_ok() ? opdi_tensor_wrap(data, sizes, strides, dtype, deleter, user) : NULL;
    if (!tensor && deleter) { deleter(data, user); }
    return tensor ? opdi_own(tensor) : NULL;
}

opd_tensor *opd_tensor_wrapped_number(opd_value number) {
    opd_scalar_type dtype = number.tag == OPD_TAG_INT ? OPD_INT64 : number.tag == OPD_TAG_BOOL ? OPD_BOOL :
                            number.tag == OPD_TAG_FLOAT ? OPD_FLOAT64 : OPD_COMPLEX128;
    if (!opdi_is_number(&number)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_wrapped_number: the value is not a number");
        return NULL;
    }
    opd_tensor *tensor = opdi_tensor_make(NULL, NULL, 0, dtype, OPD_CPU);
    if (!tensor) { return NULL; }
    tensor->flags |= OPDI_WRAPPED;
    if (dtype == OPD_INT64) { memcpy(tensor->data, &number.u.i, sizeof(int64_t)); }
    else if (dtype == OPD_BOOL) { *tensor->data = number.u.i != 0; }
    else if (dtype == OPD_FLOAT64) { memcpy(tensor->data, &number.u.d, sizeof(double)); }
    else { memcpy(tensor->data, number.u.c, 2 * sizeof(double)); }
    return opdi_own(tensor);
}

OPDI_COLD_END
