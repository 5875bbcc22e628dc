#include "tensor.h"

//== tensors in memory of a device or pinned for it ====================================================================

opd_tensor *opd_tensor_wrap_on(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                               opd_device device, opd_deleter deleter, void *user) {
    const bool host = device.type == OPD_CPU;
    opdi_backend *backend = opd_ok() && !host ? opdi_device_find(device, &device.index) : NULL;
    opd_tensor *tensor = backend || (host && opd_ok()) ? opdi_tensor_wrap(data, sizes, strides, dtype, deleter, user)
        : NULL;
    if (!tensor && deleter) { deleter(data, user); }
    if (tensor && backend) {
        tensor->backend = (uint8_t)device.type;
        tensor->backend_bit = (uint16_t)(1u << device.type);
        tensor->storage->device = tensor->backend;
        tensor->storage->index = (int8_t)device.index;
    }
    return tensor ? opdi_own(tensor) : NULL;
}

static void opdi_pinned_free(void *data, void *backend) {
    const opdi_backend *other = opdi_backend_of((int)(intptr_t)backend);
    if (other && other->desc.host_free) { other->desc.host_free(other->desc.user, data); }
}

opd_tensor *opd_tensor_new_pinned(opd_ints sizes, opd_scalar_type dtype, opd_backend backend) {
    opd_device device = opd_device_make(backend, -1);
    opdi_backend *other = opd_ok() && opdi_form_given(sizes, dtype)
        ? OPDI_DEVICE_WITH(&device, host_alloc, "pinned memory") : NULL;
    const int64_t count = other ? opdi_count(sizes.data, (int)sizes.n, opdi_element_size((int)dtype)) : -1;
    const int64_t bytes = count < 0 ? -1 : opdi_elements_bytes((int)dtype, count);
    if (count < 0) { return NULL; }
    if (count == 0) { return opd_tensor_new(sizes, dtype); }
    void *data = other->desc.host_alloc(other->desc.user, (size_t)bytes);
    if (!data) {
        (void)opd_fail(OPD_ERROR_MEMORY, "%s: an allocation of %lld bytes of pinned memory failed",
                       opdi_device_name(device.type), (long long)bytes);
        return NULL;
    }
    return opd_tensor_wrap(data, sizes, NULL, dtype, opdi_pinned_free, (void *)(intptr_t)backend);
}

/* If `tensor` is an argument of the running kernel, returns that argument's name, else NULL. */
static const char *opdi_argument_named(const opd_call *call, const opd_tensor *tensor) {
    for (int i = 0; call && i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] == tensor) { return call->op->schema->args[i].name; }
        }
        if (value->tag == OPD_TAG_TENSOR && value->u.t == tensor) { return call->op->schema->args[i].name; }
    }
    return NULL;
}

/* Sets the error that `tensor` is not on `device`, in the words of TensorIterator and
   c10::impl::check_and_update_common_device.  Returns -1. */
OPDI_INTERNAL int opdi_device_differs(const opd_call *call, opd_device device, const opd_tensor *tensor) {
    char one[48], two[48];
    const char *argument = opdi_argument_named(call, tensor);
    (void)opdi_device_text(device, one, sizeof one);
    (void)opdi_device_text(opd_tensor_device(tensor), two, sizeof two);
    return argument ? opd_fail(OPD_ERROR_ARGUMENT, "Expected all tensors to be on the same device, but found at least "
                               "two devices, %s and %s! (when checking argument for argument %s in method %s)", one,
                               two, argument, opdi_call_name(call))
        : opd_fail(OPD_ERROR_ARGUMENT, "Expected a tensor on %s, but it is on %s", one, two);
}

void *opd_device_data(const opd_tensor *tensor, opd_backend backend) {
    const opd_call *call = opdi_self()->current;
    if (tensor && opdi_is_none(tensor, "opd_device_data")) { return NULL; }
    if (tensor && (tensor->flags & (OPDI_LAZY | OPDI_BATCHED)) == OPDI_LAZY) {
        return opdi_data_error(tensor, (opd_scalar_type)tensor->dtype);
    }
    if (tensor && tensor->backend == (int)backend) {
        return opdi_is_example(tensor) || ((tensor->flags & OPDI_TRACED) && opdi_traced_read(tensor)) ? NULL
            : tensor->data;
    }
    if (!tensor) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_device_data: the tensor is NULL"); }
    else { (void)opdi_device_differs(call, opd_device_current(backend), tensor); }
    return NULL;
}

int opd_tensor_record_stream(opd_tensor *tensor, opd_stream stream) {
    const opdi_storage *storage = tensor ? tensor->storage : NULL;
    opdi_backend *backend = storage && storage->data ? opdi_backend_of(storage->device) : NULL;
    if (!opd_ok() || (tensor && opdi_is_none(tensor, "opd_tensor_record_stream"))) { return -1; }
    if (!tensor || !opdi_on_device(tensor) || tensor->backend != stream.device.type) {
        return opd_fail(OPD_ERROR_ARGUMENT, "record_stream: a tensor on %s is not used by streams of %s",
                        tensor ? opdi_device_name(tensor->backend) : "no device", opdi_device_name(stream.device.type));
    }
    return backend &&
        backend->desc.record_stream
        ? opdi_backend_rc(backend->desc.record_stream(backend->desc.user, stream.device.index, storage->data,
                                                      stream.id), storage->device, "record_stream") : 0;
}
