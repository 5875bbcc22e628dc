#include "aoti.h"

//== tensors: functions that models call ===============================================================================

OPDI_INTERNAL bool opdi_aoti_grad_mode(void) { return opd_grad_mode_enabled(); }
OPDI_INTERNAL void opdi_aoti_grad_mode_set(bool on) { (void)opd_grad_mode_set(on); }
OPDI_INTERNAL int32_t opdi_aoti_get_data(void *handle, void **out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor && opd_numel(tensor) ? opd_data(tensor) : NULL;
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_storage_size(void *handle, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opd_tensor_storage_bytes(tensor) : 0;
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_storage_numel(void *handle, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    int64_t bytes;
    const int64_t block = tensor ? opd_dtype_block(opd_dtype(tensor), &bytes) : 0;
    *out = block ? opd_tensor_storage_bytes(tensor) / bytes * block : 0;
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_dim(void *handle, int64_t *out) {
    *out = opd_ndim(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_numel(void *handle, int64_t *out) {
    *out = opd_numel(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
/* Sets *out to a tensor's sizes, which the model only reads, although PyTorch declares the pointer without const.
   Returns 0, or 1 and sets an error. */
OPDI_INTERNAL int32_t opdi_aoti_get_sizes(void *handle, const int64_t **out) {
    *out = opd_sizes(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_strides(void *handle, const int64_t **out) {
    *out = opd_strides(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
static int32_t opdi_aoti_get_one(void *handle, int64_t dim, const int64_t *list, int64_t *out) {
    const int64_t ndim = opd_ndim(((opdi_aoti_handle *)handle)->tensor), at = dim < 0 ? dim + ndim : dim;
    if (at < 0 || at >= ndim) {
        (void)opd_fail(OPD_ERROR_INDEX, "a compiled model reads dim %lld of a tensor with %lld dims", (long long)dim,
                       (long long)ndim);
        return 1;
    }
    *out = list[at];
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_size(void *handle, int64_t dim, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    return tensor ? opdi_aoti_get_one(handle, dim, opd_sizes(tensor), out) : 1;
}
OPDI_INTERNAL int32_t opdi_aoti_get_stride(void *handle, int64_t dim, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    return tensor ? opdi_aoti_get_one(handle, dim, opd_strides(tensor), out) : 1;
}
OPDI_INTERNAL int32_t opdi_aoti_get_dtype(void *handle, int32_t *out) {
    *out = opd_dtype(opdi_aoti_tensor(handle));
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_device_type(void *handle, int32_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opdi_aoti_device_number(opd_tensor_device(tensor)) : 0;
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_device_index(void *handle, int32_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor && opd_tensor_device(tensor).type != OPD_CPU ? opd_tensor_device(tensor).index : -1;
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_get_layout(void *handle, int32_t *out) {
    *out = handle && ((opdi_aoti_handle *)handle)->packed ? 3 : 0;
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_get_storage_offset(void *handle, int64_t *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor ? opd_tensor_offset(tensor) : 0;
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_is_contiguous(void *handle, bool *out) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    *out = tensor && opd_is_contiguous(tensor);
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_is_defined(void *handle, bool *out) {
    *out = handle && ((opdi_aoti_handle *)handle)->tensor;
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_new_handle(void *handle, void **out) {
    const opdi_aoti_handle *from = (const opdi_aoti_handle *)handle;
    if (from && !from->tensor) {
        *out = calloc(1, sizeof *from);
        return *out ? 0 : (int32_t)-opdi_aoti_no_memory();
    }
    if (opdi_aoti_box(opdi_aoti_tensor(handle), out)) { return 1; }
    ((opdi_aoti_handle *)*out)->packed = from->packed;
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_new_undefined(void **out) {
    *out = calloc(1, sizeof(opdi_aoti_handle));
    return *out ? 0 : (int32_t)-opdi_aoti_no_memory();
}
OPDI_INTERNAL int32_t opdi_aoti_assign(void *from, void *to) {
    opdi_aoti_handle *handle = (opdi_aoti_handle *)to;
    opd_tensor *tensor = opdi_aoti_tensor(from);
    if (!tensor || !handle) { return 1; }
    (void)opd_assign(&handle->tensor, tensor);
    handle->packed = ((opdi_aoti_handle *)from)->packed;
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_assign_out(void *from, void **out) { return opdi_aoti_new_handle(from, out); }
/* Makes a tensor with these sizes, strides and offset (in elements) over the storage of `self`.  Returns 0, or 1 and
   sets an error. */
OPDI_INTERNAL int32_t opdi_aoti_view(void *self, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t
                                     offset, void **out) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    int32_t rc = 1;
    if (!tensor) { return rc; }
    opd_scope scope = opd_scope_open();
    rc = opdi_aoti_box(opd_tensor_view(tensor, sizes, strides, (int)ndim, offset), out);
    opd_scope_close(&scope);
    if (rc == 0) { ((opdi_aoti_handle *)*out)->packed = ((opdi_aoti_handle *)self)->packed; }
    return rc;
}
OPDI_INTERNAL int32_t opdi_aoti_as_strided(void *self, const int64_t *sizes, const int64_t *strides, void **out) {
    const opd_tensor *tensor = opdi_aoti_tensor(self);
    return tensor ? opdi_aoti_view(self, opd_ndim(tensor), sizes, strides, opd_tensor_offset(tensor), out) : 1;
}
OPDI_INTERNAL int32_t opdi_aoti_empty_strided(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype,
                                              int32_t device, int32_t index, void **out) {
    (void)index;
    if (opdi_aoti_cpu_only(device)) { return 1; }
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(opd_empty_strided(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim),
                                                       (opd_scalar_type)dtype), out);
    opd_scope_close(&scope);
    return rc;
}
/* Returns the number of elements from the first to the last element of a tensor with these sizes and strides. */
OPDI_INTERNAL int64_t opdi_aoti_span(const int64_t *sizes, const int64_t *strides, int64_t ndim) {
    int64_t span = 1;
    for (int64_t i = 0; i < ndim; i++) {
        if (sizes[i] == 0) { return 0; }
        span += (sizes[i] - 1) * strides[i];
    }
    return span;
}
/* Releases the tensor `user`, whose memory another tensor has used. */
OPDI_INTERNAL void opdi_aoti_release(void *data, void *user) {
    (void)data;
    opd_release((opd_tensor *)user);
}
OPDI_INTERNAL int32_t opdi_aoti_from_pool(void *self, int64_t offset, int32_t dtype, int64_t ndim, const int64_t *sizes,
                                          const int64_t *strides, void **out) {
    opd_tensor *pool = opdi_aoti_tensor(self);
    const int64_t element = (int64_t)opd_dtype_size((opd_scalar_type)dtype);
    if (!pool) { return 1; }
    if (element == 0 || offset < 0 ||
        opdi_aoti_span(sizes, strides, ndim) > (opd_tensor_storage_bytes(pool) - offset) / element) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a compiled model uses a part of a memory pool that is outside of the pool");
        return 1;
    }
    char *base = (char *)opd_data(pool) - opd_tensor_offset(pool) * (int64_t)opd_dtype_size(opd_dtype(pool));
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(opd_tensor_wrap(base + offset, opd_ints_of(sizes, ndim), strides,
                                                     (opd_scalar_type)dtype, opdi_aoti_release, opd_keep(pool)), out);
    opd_scope_close(&scope);
    return rc;
}
/* Records that memory belongs to constants of the model that is being loaded.  Results must not use such memory,
   because it is freed with the model. */
static void opdi_aoti_remember(const void *data, int64_t bytes) {
    opd_aoti *model = opdi_aoti_current && opdi_aoti_current->loading ? opdi_aoti_current->model : NULL;
    if (!model || bytes <= 0) { return; }
    const char *begin = (const char *)data;
    for (int64_t i = 0; i < model->nranges; i++) {
        opdi_aoti_range *range = &model->ranges[i];
        if (begin >= range->begin && begin <= range->end + 64) {               /* the constants are adjacent */
            if (begin + bytes > range->end) { range->end = begin + bytes; }
            return;
        }
    }
    opdi_aoti_range *ranges =
        (opdi_aoti_range *)realloc(model->ranges, (size_t)(model->nranges + 1) * sizeof *ranges);
    if (!ranges) {
        (void)opdi_aoti_no_memory();
        return;
    }
    model->ranges = ranges;
    ranges[model->nranges].begin = begin;
    ranges[model->nranges++].end = begin + bytes;
}
OPDI_INTERNAL int32_t opdi_aoti_wrap(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t
                                     offset, int32_t dtype, int32_t device, void (*deleter)(void *data, void *user),
                                     void *user, void **out) {
    const int64_t span = opdi_aoti_span(sizes, strides, ndim) + offset;
    const opd_scalar_type type = (opd_scalar_type)dtype;
    if (opdi_aoti_cpu_only(device)) {
        if (deleter) { deleter(data, user); }
        return 1;
    }
    opdi_aoti_remember(data, span * (int64_t)opd_dtype_size(type));
    opd_scope scope = opd_scope_open();
    opd_tensor *tensor = NULL;
    if (offset == 0) { tensor = opd_tensor_wrap(data, opd_ints_of(sizes, ndim), strides, type, deleter, user); }
    else {
        tensor = opd_tensor_wrap(data, opd_ints_of(&span, 1), NULL, type, deleter, user);
        tensor = tensor ? opd_tensor_view(tensor, sizes, strides, (int)ndim, offset) : NULL;
    }
    const int32_t rc = opdi_aoti_box(tensor, out);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int32_t opdi_aoti_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                          int64_t offset, int32_t dtype, int32_t device, int32_t index, void **out) {
    (void)index;
    return opdi_aoti_wrap(data, ndim, sizes, strides, offset, dtype, device, NULL, NULL, out);
}

