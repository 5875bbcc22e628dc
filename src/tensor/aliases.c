#include "tensor.h"

//== resizing ==========================================================================================================

/* Makes a storage with `bytes` bytes of memory at a place (opdi_place) and one reference.  Returns NULL if memory runs
   out. */
static opdi_storage *opdi_storage_make(int64_t bytes, int backend /* an opdi_place */) {
    const bool apart = backend == OPD_META || bytes > OPDI_INLINE_DATA_MAX;
    const size_t head = (sizeof(opdi_storage) + 63) & ~(size_t)63;
    const size_t block = head + (apart ? 0 : (size_t)bytes);
    if (backend != OPD_CPU && backend != OPD_META) { return opdi_device_storage(bytes, backend); }
    opdi_storage *storage = (opdi_storage *)opdi_alloc(block);
    if (!storage) { return NULL; }
    memset(storage, 0, sizeof *storage);
    storage->refs = 1;
    storage->bytes = bytes;
    storage->block = storage;
    storage->block_bytes = (int64_t)block;
    storage->born = opdi_self()->innermost.serial;
    storage->data = (char *)storage + head;
    if (apart && opdi_data_apart(storage, backend)) {
        opdi_free(storage, block);
        return NULL;
    }
    return storage;
}

/* Returns how many bytes the tensor's storage must have for these sizes, or 0 if there are no elements.  Returns -1 and
   sets an error if the tensor cannot have these sizes. */
OPDI_INTERNAL int64_t opdi_resize_bytes(const opd_tensor *tensor, const int64_t *sizes, int ndim) {
    const size_t element = opdi_element_size(tensor->dtype);
    const int64_t numel = opdi_count(sizes, ndim, element), first = opd_tensor_offset(tensor);
    const opdi_storage *storage = tensor->storage;
    if (numel <= 0) { return numel; }
    if (opdi_is_block(tensor->dtype) && opdi_block_check((opd_scalar_type)tensor->dtype, sizes, NULL, ndim, 0)) {
        return -1;
    }
    if (numel > ((int64_t)1 << 62) / (int64_t)element - first) { return opdi_count_error(sizes, ndim); }
    const int64_t bytes = opdi_elements_bytes(tensor->dtype, first + numel);
    if (storage->block_bytes != -1 || storage->bytes <= 0 || bytes <= storage->bytes) { return bytes; }
    return opd_fail(OPD_ERROR_SHAPE, "Trying to resize storage that is not resizable");
}
/* Gives `tensor` other sizes with contiguous strides, as resize_ does.  If necessary, the memory grows and keeps its
   contents.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_resize(opd_tensor *tensor, const int64_t *sizes, int ndim) {
    const int64_t need = opdi_resize_bytes(tensor, sizes, ndim);
    const size_t element = opdi_element_size(tensor->dtype);
    const int64_t numel = need < 0 ? -1 : opdi_count(sizes, ndim, element), offset = opd_tensor_offset(tensor);
    int64_t *dims = NULL;
    opdi_storage *storage = tensor->storage, *grown = NULL;
    opdi_meta *meta = tensor->meta;
    if (numel < 0) { return -1; }
    if ((2 * ndim > tensor->capacity || (numel && need > storage->bytes)) && !(meta = opdi_meta_of(tensor))) {
        return -1;
    }
    if (2 * ndim > tensor->capacity && 2 * ndim > meta->dims_count) {
        dims = (int64_t *)opdi_alloc(2 * (size_t)ndim * sizeof *dims);
        if (!dims) { return -1; }
    }
    if (numel && need > storage->bytes) {
        grown = opdi_storage_make(need, opdi_place_of(tensor));
        if (!grown || (grown->data && storage->bytes &&
                       opdi_device_move(grown, grown->data, storage, storage->data, (size_t)storage->bytes))) {
            if (grown) { opdi_storage_drop(grown); }
            opdi_free(dims, 2 * (size_t)ndim * sizeof *dims);
            return -1;
        }
        grown->version = storage->version;
        opdi_view_untie(tensor);
        if (storage->block == tensor) { meta->home = storage; } else { opdi_storage_drop(storage); }
        tensor->storage = grown;
        tensor->data = grown->data ? grown->data + opdi_elements_bytes(tensor->dtype, offset) : NULL;
    }
    if (dims) {
        opdi_free(meta->dims, (size_t)meta->dims_count * sizeof *dims);
        meta->dims = dims;
        meta->dims_count = 2 * ndim;
    }
    tensor->dims = 2 * ndim > tensor->capacity ? meta->dims : (int64_t *)(void *)(tensor + 1);
    opdi_set_dims(tensor, sizes, NULL, ndim, numel);
    return 0;
}

/* Gives `tensor` other sizes and strides in its storage.  `offset` (in elements) is added to the position of its first
   element.  The caller has checked that all elements stay inside.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_redescribe(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                                  int64_t offset) {
    int64_t numel = opdi_count(sizes, ndim, opdi_element_size(tensor->dtype));
    opdi_meta *meta = tensor->meta;
    if (numel < 0 || (opdi_is_block(tensor->dtype) &&
                      opdi_block_check((opd_scalar_type)tensor->dtype, sizes, strides, ndim, offset))) { return -1; }
    if (2 * ndim > tensor->capacity) {
        if (!(meta = opdi_meta_of(tensor))) { return -1; }
        if (2 * ndim > meta->dims_count) {
            int64_t *dims = (int64_t *)opdi_alloc(2 * (size_t)ndim * sizeof *dims);
            if (!dims) { return -1; }
            opdi_free(meta->dims, (size_t)meta->dims_count * sizeof *dims);
            meta->dims = dims;
            meta->dims_count = 2 * ndim;
        }
        tensor->dims = meta->dims;
    } else { tensor->dims = (int64_t *)(void *)(tensor + 1); }
    opdi_set_dims(tensor, sizes, strides, ndim, numel);
    if (numel) {
        offset = opdi_elements_bytes(tensor->dtype, offset);
        if (tensor->data) { tensor->data += offset; } else if (tensor->backend == OPD_META) { tensor->begin += offset; }
    }
    return 0;
}

//== storages over the same memory that count writes separately ========================================================

static void opdi_storage_root_drop(void *data, void *root) {
    (void)data;
    opdi_storage_drop((opdi_storage *)root);
}
/* Makes a second storage over the memory of `storage`, with a separate count of writes, which begins at `version`.  The
   new storage holds a reference to the storage that owns the memory.  Returns a reference to the new storage, or NULL
   if memory runs out. */
OPDI_INTERNAL opdi_storage *opdi_storage_again(opdi_storage *storage, uint32_t version) {
    opdi_foreign *foreign = (opdi_foreign *)opdi_alloc(sizeof *foreign);
    if (!foreign) { return NULL; }
    if (storage->block_bytes == OPDI_AGAIN) { storage = (opdi_storage *)((opdi_foreign *)(void *)storage)->user; }
    opdi_ref_up(&storage->refs);
    memset(foreign, 0, sizeof *foreign);
    foreign->storage = *storage;
    foreign->storage.refs = 1;
    foreign->storage.version = version;
    foreign->storage.block = NULL;
    foreign->storage.block_bytes = OPDI_AGAIN;
    foreign->storage.duals = NULL;
    foreign->storage.packed = NULL;
    foreign->deleter = opdi_storage_root_drop;
    foreign->user = storage;
    return &foreign->storage;
}

/* Returns the storage that owns the memory of `tensor`.  The tensor's own storage may be a second one over this memory,
   which counts writes separately. */
OPDI_INTERNAL opdi_storage *opdi_storage_root(const opd_tensor *tensor) {
    opdi_storage *storage = tensor->storage;
    return storage->block_bytes == OPDI_AGAIN ? (opdi_storage *)((opdi_foreign *)(void *)storage)->user : storage;
}

OPDI_INTERNAL int opdi_plain_tensor(const opd_tensor *tensor, const char *who) {
    if (!opd_ok() || opdi_null_tensor(tensor, who)) { return -1; }
    return !tensor->meta || !tensor->meta->inner ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensor is a wrapper: pass the tensor inside (opd_tensor_unwrap_key)",
                   who);
}

opd_tensor *opd_tensor_data(opd_tensor *tensor) {
    opdi_storage *storage = opdi_plain_tensor(tensor, "opd_tensor_data") || opdi_is_example(tensor) ? NULL
        : opdi_storage_again(tensor->storage, 0);
    opd_tensor *value = storage ? opdi_tensor_on(storage, tensor->data, tensor->dims, tensor->dims + tensor->ndim,
                                                 tensor->ndim, (opd_scalar_type)tensor->dtype, tensor->backend) : NULL;
    if (!value) {
        if (storage) { opdi_storage_drop(storage); }
        return NULL;
    }
    value->begin = tensor->begin;
    value->functionality = tensor->functionality;
    value->flags |= tensor->flags & (OPDI_WRAPPED | OPDI_LAZY);
    if (OPDI_UNLIKELY(tensor->flags & OPDI_TRACED) && opdi_traced_copy(value, tensor)) {
        opdi_drop(value);
        return NULL;
    }
    return opdi_own(value);
}

/* Frees the data of the first storage of `tensor` (meta->home), if `tensor` now has another storage and no other tensor
   uses the first storage.  The first storage itself lies in the tensor's block, and stays. */
OPDI_INTERNAL void opdi_unused_data_free(const opd_tensor *tensor) {
    opdi_storage *const home = tensor->meta ? tensor->meta->home : NULL;
    if (!home || OPDI_ACQUIRE(&home->refs) != 1 || !opdi_is_apart(home)) { return; }
    opdi_apart_free(home);
    home->data = NULL;
    home->bytes = 0;
}

