#include "tensor.h"

//== reading tensors ===================================================================================================

/* Queries of a tensor's properties.  NULL, which failed calls return, has no elements, no dims and no dtype.  The same
   holds for a freed tensor, for which the functions also set an error. */
int opd_ndim(const opd_tensor *tensor) { return opdi_is_none(tensor, "opd_ndim") ? 0 : tensor->ndim; }
const int64_t *opd_sizes(const opd_tensor *tensor) { return opdi_is_none(tensor, "opd_sizes") ? NULL : tensor->dims; }
const int64_t *opd_strides(const opd_tensor *tensor) {
    return opdi_is_none(tensor, "opd_strides") ? NULL : tensor->dims + tensor->ndim;
}
int64_t opd_numel(const opd_tensor *tensor) { return opdi_is_none(tensor, "opd_numel") ? 0 : tensor->numel; }
opd_scalar_type opd_dtype(const opd_tensor *tensor) {
    return opdi_is_none(tensor, "opd_dtype") ? OPD_DTYPE_NONE : (opd_scalar_type)tensor->dtype;
}
opd_keyset opd_tensor_keys(const opd_tensor *tensor) {
    if (opdi_is_none(tensor, "opd_tensor_keys")) { return OPD_KEYS_EMPTY; }
    return opd_keyset_make(tensor->functionality, (uint64_t)1 << tensor->backend);
}
bool opd_tensor_is_conj(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_is_conj") && (tensor->functionality & OPD_BIT_OF(OPD_F_CONJUGATE)) != 0;
}
bool opd_tensor_is_neg(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_is_neg") && (tensor->functionality & OPD_BIT_OF(OPD_F_NEGATIVE)) != 0;
}
bool opd_is_contiguous(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_is_contiguous") && (tensor->flags & OPDI_CONTIGUOUS) != 0;
}
/* Returns true if the elements of a tensor of 4 or 5 dims are one block in memory, with the channels last. */
OPDI_INTERNAL bool opdi_tensor_channels_last(const opd_tensor *tensor, int32_t ndim) {
    int64_t stride = 1;
    if (tensor->ndim != ndim) { return false; }
    for (int32_t i = 0; i < ndim; i++) {           /* dim 1, then from the last dim to dim 2, then dim 0 */
        const int32_t dim = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;
        if (tensor->dims[dim] != 1 && tensor->dims[ndim + dim] != stride) { return false; }
        stride *= tensor->dims[dim];
    }
    return true;
}
bool opd_tensor_is_wrapped_number(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_is_wrapped_number") && (tensor->flags & OPDI_WRAPPED) != 0;
}
bool opd_tensor_same_storage(const opd_tensor *first, const opd_tensor *second) {
    return !opdi_is_none(first, "opd_tensor_same_storage") && !opdi_is_none(second, "opd_tensor_same_storage") &&
           opdi_same_memory(first, second);
}
int64_t opd_tensor_storage_bytes(const opd_tensor *tensor) {
    return opdi_is_none(tensor, "opd_tensor_storage_bytes") ? 0 : tensor->storage->bytes;
}
uint32_t opd_tensor_version(const opd_tensor *tensor) {
    if (opdi_is_none(tensor, "opd_tensor_version")) { return 0; }
    if (!opdi_is_inference(tensor)) { return OPDI_LOAD(&tensor->storage->version); }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, "Inference tensors do not track version counter.");
    return 0;
}
int opd_tensor_version_add(opd_tensor *tensor) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_tensor_version_add")) { return -1; }
    while (tensor->flags & OPDI_BATCHED) { tensor = opdi_batched_of(tensor)->value; }
    if (!opdi_is_inference(tensor)) { (void)OPDI_ADD(&tensor->storage->version, 1u); }
    return 0;
}
bool opd_tensor_is_inference(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_is_inference") && opdi_is_inference(tensor);
}
opd_tensor *opd_tensor_base(const opd_tensor *tensor) {
    return opdi_is_none(tensor, "opd_tensor_base") ? NULL : opdi_view_base(tensor);
}

OPDI_COLD_BEGIN
int64_t opd_size(const opd_tensor *tensor, int dim) {
    if (!tensor) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_size: the tensor is NULL"); }
    if (opdi_is_none(tensor, "opd_size")) { return -1; }
    int axis = dim < 0 ? dim + tensor->ndim : dim;
    if (axis < 0 || axis >= tensor->ndim) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                        -OPDI_MAX((int)tensor->ndim, 1), OPDI_MAX((int)tensor->ndim, 1) - 1, dim);
    }
    return tensor->dims[axis];
}

/* Waits for running collectives that write or read the memory of `tensor`, because the caller may be about to write it.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_wait_for(const opd_tensor *tensor) {
    return OPDI_LIKELY(OPDI_LOAD(&opdi_works_running) == 0) ? 0 : OPDI_ACQUIRE(&opdi_works_before_use)(tensor);
}
/* For each dtype with a typed data function: the name of the function and of the dtype's constant. */
static const struct { opd_scalar_type dtype; const char *function, *word; } opdi_data_functions[] = {
    {OPD_FLOAT32, "opd_data_f32", "OPD_FLOAT32"}, {OPD_FLOAT64, "opd_data_f64", "OPD_FLOAT64"},
    {OPD_INT64, "opd_data_i64", "OPD_INT64"}, {OPD_INT32, "opd_data_i32", "OPD_INT32"},
    {OPD_UINT8, "opd_data_u8", "OPD_UINT8"}, {OPD_BOOL, "opd_data_bool", "OPD_BOOL"}};
/* Sets the error for reading the data of `tensor` as `dtype`, which is not the dtype of `tensor`.  In a built-in
   kernel, the text is PyTorch's. */
static void opdi_data_dtype_error(const opd_tensor *tensor, opd_scalar_type dtype) {
    const opd_call *const call = opdi_self()->current;
    const opd_scalar_type have = (opd_scalar_type)tensor->dtype;
    const char *take = "opd_data", *asked = "opd_data", *word = "...";
    char sizes[24 * OPD_MAX_DIMS];
    if (call && strncmp(call->op->name, "aten::", 6) == 0) {
        (void)opd_fail(OPD_ERROR_DTYPE, "expected scalar type %s but found %s", opd_dtype_name(dtype),
                       opd_dtype_name(have));
        return;
    }
    for (size_t i = 0; i < sizeof opdi_data_functions / sizeof *opdi_data_functions; i++) {
        if (opdi_data_functions[i].dtype == have) { take = opdi_data_functions[i].function; }
        if (opdi_data_functions[i].dtype != dtype) { continue; }
        asked = opdi_data_functions[i].function;
        word = opdi_data_functions[i].word;
    }
    (void)opd_fail(OPD_ERROR_DTYPE, "%s: the tensor of sizes %s has dtype %s, not %s: use %s, or convert it with "
                   "opd_to_dtype(t, %s)", asked, opdi_sizes_text(tensor->dims, tensor->ndim, sizes, sizeof sizes),
                   opd_dtype_name(have), opd_dtype_name(dtype), take, word);
}
/* The slow path of the data functions.  If the recording in progress allows reading, or after waiting for collectives
   that write the data, returns the data of `tensor`.  Otherwise sets the error that the host cannot read the data as
   this dtype, and returns NULL. */
OPDI_NOINLINE OPDI_INTERNAL void *opdi_data_error(const opd_tensor *tensor, opd_scalar_type dtype) {
    if (!tensor) { (void)opd_fail(OPD_ERROR_ARGUMENT, "reading the data: the tensor is NULL"); }
    else if (opdi_is_dead(tensor)) { (void)opdi_dead_error(tensor, "reading the data"); }
    else if (tensor->dtype != (int32_t)dtype) { opdi_data_dtype_error(tensor, dtype); }
    else if ((tensor->flags & (OPDI_BATCHED | OPDI_TRACED | OPDI_LAZY)) == OPDI_TRACED &&
               tensor->backend == OPD_CPU) {
        return opdi_traced_read(tensor) ? NULL : tensor->data;
    } else if (tensor->flags & OPDI_BATCHED) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "accessing `data` under vmap transform is not allowed");
    } else if (tensor->flags & OPDI_LAZY) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a lazily conjugated or negated view has no data of its own: call "
                       "opd_resolve_conj or opd_resolve_neg first");
    } else if (tensor->backend == OPD_CPU) {
        return opdi_wait_for(tensor) ? NULL : tensor->data;
    } else {
        char device[32];
        (void)opdi_device_text(opd_tensor_device(tensor), device, sizeof device);
        if (tensor->backend == OPD_META) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "a fake tensor (on %s) has no data to read: an operator whose kernel "
                           "reads data also needs a fake kernel that computes only sizes and dtypes (`fake` of "
                           "opd_op_desc, or opd_fake_register); there, a size that depends on data is "
                           "opd_fake_new_size", device);
        } else { (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor on %s has no data that the host can read", device); }
    }
    return NULL;
}
void *opd_data(const opd_tensor *tensor) {
    return tensor && (opdi_on_device(tensor) || (tensor->flags & (OPDI_BATCHED | OPDI_TRACED | OPDI_LAZY)) ||
                      (tensor->backend == OPD_CPU && OPDI_LOAD(&opdi_works_running) != 0))
        ? opdi_data_error(tensor, (opd_scalar_type)tensor->dtype) : tensor ? tensor->data : NULL;
}
#if defined(OPD_CHECKED)
/* Returns memory for a kernel that does not notice that its tensor has no data: eight bytes for each element of the
   tensor.  All such kernels share the memory, which grows.  The memory is zero at first.  Earlier blocks stay
   allocated; each block begins with the address of the block before. */
static void *opdi_data_of_nobody(const opd_tensor *tensor) {
    static opdi_mutex lock = OPDI_MUTEX_INIT;
    static char *block;
    static size_t buffer;
    const size_t ahead = 64;                      /* bytes for the previous block's address, and for alignment */
    size_t bytes = (size_t)1 << 20;
    if (tensor && !opdi_is_dead(tensor)) {
        bytes = OPDI_MAX(bytes, (size_t)opdi_bytes_elements(tensor->dtype, tensor->storage->bytes) * 8 + 64);
    }
    opdi_lock(&lock);
    if (bytes > buffer) {
        char *const larger = (char *)OPD_MALLOC(bytes + ahead);
        if (larger) {
            memset(larger, 0, bytes + ahead);
            memcpy(larger, &block, sizeof block);
            block = larger;
            buffer = bytes;
        }
    }
    char *const data = block && bytes <= buffer ? block + ahead : NULL;
    opdi_unlock(&lock);
    return data;
}
static void *opdi_data_or_error(const opd_tensor *tensor, opd_scalar_type dtype) {
    void *const data = opdi_data_error(tensor, dtype);
    return data || opd_ok() ? data : opdi_data_of_nobody(tensor);
}
#else
#define opdi_data_or_error opdi_data_error
#endif
OPDI_COLD_END
static inline void *opdi_data_of(const opd_tensor *tensor, opd_scalar_type dtype) {
    return OPDI_LIKELY(tensor && tensor->dtype == (int32_t)dtype &&
                       (tensor->backend | (unsigned)OPDI_LOAD(&opdi_works_running) |
                        (tensor->flags & (OPDI_BATCHED | OPDI_TRACED | OPDI_LAZY))) == 0)
        ? (void *)tensor->data
        : opdi_data_or_error(tensor, dtype);
}
float *opd_data_f32(const opd_tensor *tensor) { return (float *)opdi_data_of(tensor, OPD_FLOAT32); }
double *opd_data_f64(const opd_tensor *tensor) { return (double *)opdi_data_of(tensor, OPD_FLOAT64); }
int64_t *opd_data_i64(const opd_tensor *tensor) { return (int64_t *)opdi_data_of(tensor, OPD_INT64); }
int32_t *opd_data_i32(const opd_tensor *tensor) { return (int32_t *)opdi_data_of(tensor, OPD_INT32); }
uint8_t *opd_data_u8(const opd_tensor *tensor) { return (uint8_t *)opdi_data_of(tensor, OPD_UINT8); }
bool *opd_data_bool(const opd_tensor *tensor) { return (bool *)opdi_data_of(tensor, OPD_BOOL); }

static int opdi_item_check(const opd_tensor *tensor) {
    if (!tensor) { return opd_fail(OPD_ERROR_ARGUMENT, "reading the value: the tensor is NULL"); }
    if (opdi_is_dead(tensor)) { return opdi_dead_error(tensor, "reading the value"); }
    if (tensor->numel != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "a Tensor with %lld elements cannot be converted to Scalar",
                        (long long)tensor->numel);
    }
    if (tensor->flags & OPDI_BATCHED) {
        return opd_fail(OPD_ERROR_ARGUMENT, "vmap: It looks like you're calling .item() on a Tensor. We don't support "
                        "vmap over calling .item() on a Tensor, please try to rewrite what you're doing with other "
                        "operations.");
    }
    if (tensor->backend == OPD_META) {
        (void)opdi_data_error(tensor, (opd_scalar_type)tensor->dtype);
        return -1;
    }
    if (OPDI_UNLIKELY(tensor->flags & OPDI_TRACED)) { return opdi_traced_read(tensor); }
    return opdi_wait_for(tensor);
}
/* Returns a tensor whose single element the host can read: `tensor` itself, or a copy.  For a tensor on a device, the
   copy is *one, with its data in buffer[2].  Returns NULL and sets an error if that fails. */
OPDI_INTERNAL const opd_tensor *opdi_item_of(const opd_tensor *tensor, opd_tensor *one, double *buffer /*[2]*/) {
    if (opdi_item_check(tensor)) { return NULL; }
    if (OPDI_UNLIKELY(tensor->flags & OPDI_LAZY) && !(tensor = opdi_resolved(tensor))) { return NULL; }
    if (OPDI_LIKELY(tensor->backend == OPD_CPU)) { return tensor; }
    *one = *tensor;
    one->data = (char *)buffer;
    if (opdi_device_move(NULL, one->data, tensor->storage, tensor->data,
                         opd_dtype_size((opd_scalar_type)tensor->dtype))) {
        return NULL;
    }
    return one;
}
/* Returns a tensor as opdi_item_of does, for callers that need a real number.  Returns NULL and sets an error if the
   number has an imaginary part. */
static const opd_tensor *opdi_item_real(const opd_tensor *tensor, opd_tensor *one, double *buffer /*[2]*/) {
    if (!opd_ok() || !(tensor = opdi_item_of(tensor, one, buffer))) { return NULL; }
    if (OPDI_UNLIKELY(opd_dtype_is_complex((opd_scalar_type)tensor->dtype))) {
        const int64_t half = (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype) / 2;
        const double real = opdi_element_f64(tensor, 0), imag = opdi_element_f64(tensor, half);
        if (imag != 0) {
            (void)opd_fail(OPD_ERROR_DTYPE, "item: %g%+gj has an imaginary part, which a real number cannot hold: read "
                           "real and imag of the tensor", real, imag);
            return NULL;
        }
    }
    return tensor;
}
double opd_item_f64(const opd_tensor *tensor) {
    opd_tensor one;
    double buffer[2];
    return (tensor = opdi_item_real(tensor, &one, buffer)) != NULL ? opdi_element_f64(tensor, 0) : 0;
}
/* Returns the element of a tensor of one element as an integer.  Returns 0 and sets an error if an int64_t cannot hold
   it. */
OPDI_INTERNAL int64_t opdi_item_whole(const opd_tensor *tensor) {
    const int64_t value = opdi_element_i64(tensor, 0);
    if (OPDI_UNLIKELY(tensor->dtype == OPD_UINT64 && value < 0)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to int64 without overflow: it is %llu, of "
                       "uint64", (unsigned long long)value);
        return 0;
    }
    return value;
}
int64_t opd_item_i64(const opd_tensor *tensor) {
    opd_tensor one;
    double buffer[2];
    return (tensor = opdi_item_real(tensor, &one, buffer)) != NULL ? opdi_item_whole(tensor) : 0;
}

//== wrapper tensors ===================================================================================================

opd_tensor *opd_tensor_wrap_key(opd_tensor *inner, opd_key key) {
    if (!opd_ok() || opdi_null_tensor(inner, "opd_tensor_wrap_key")) { return NULL; }
    if (key <= 0 || !opdi_key_is_runtime(key) || opdi_key_backend(key) >= 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_wrap_key: %s is not a key that a wrapper can have, such as a "
                       "user key (OPD_F_USER_n)", opd_key_name(key));
        return NULL;
    }
    opd_tensor *tensor = opdi_tensor_make(opdi_sizes(inner), opdi_strides(inner), inner->ndim,
                                          (opd_scalar_type)inner->dtype, OPD_META);
    opdi_meta *meta = tensor ? opdi_meta_of(tensor) : NULL;
    if (!meta) {
        opdi_release(tensor);
        return NULL;
    }
    meta->inner = opdi_keep(inner);
    tensor->functionality = OPD_BIT_OF(key);
    return opdi_own(tensor);
}

opd_tensor *opd_tensor_unwrap_key(const opd_tensor *tensor, opd_key key) {
    const opdi_meta *meta = opdi_is_none(tensor, "opd_tensor_unwrap_key") ? NULL : OPDI_ACQUIRE(&tensor->meta);
    return meta && meta->inner && key > 0 && key < OPD_F_COUNT && tensor->functionality == OPD_BIT_OF(key) ? meta->inner
        : NULL;
}
