#include "files.h"

//== DLPack ============================================================================================================
//
//  The structs have other names than in dlpack.h, so that a program may include that file, too.  OPDI_MAY_ALIAS tells
//  the compiler that these structs and those of dlpack.h describe the same memory.

typedef struct OPDI_MAY_ALIAS opdi_dl_tensor {
    void *data;                  /* on some devices a handle, not an address; the first element is byte_offset bytes
                                    after `data` */
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;          /* the dtype: OPDI_DL_* and the size of an element in bits */
    uint16_t lanes;
    int64_t *sizes, *strides;    /* strides in elements; NULL: contiguous */
    uint64_t byte_offset;
} opdi_dl_tensor;
typedef struct OPDI_MAY_ALIAS opdi_dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    opdi_dl_tensor tensor;
} opdi_dl_versioned;
typedef struct OPDI_MAY_ALIAS opdi_dl_unversioned {
    opdi_dl_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self);
} opdi_dl_unversioned;

enum { OPDI_DL_INT, OPDI_DL_UINT, OPDI_DL_FLOAT, OPDI_DL_OPAQUE, OPDI_DL_BFLOAT, OPDI_DL_COMPLEX, OPDI_DL_BOOL,
       OPDI_DL_E4M3FN = 10, OPDI_DL_E4M3FNUZ, OPDI_DL_E5M2, OPDI_DL_E5M2FNUZ, OPDI_DL_E8M0FNU };
/* Pairs each device type of DLPack with a backend of this library.  Tensors of a backend are exported with the device
   type of the backend's first row. */
static const struct { int type, backend; } opdi_dl_devices[] = {
    {1, OPD_CPU}, {2, OPD_CUDA}, {3, OPD_CPU}, {8, OPD_MPS}, {10, OPD_HIP}, {11, OPD_CPU}, {12, OPD_PRIVATEUSE1},
    {14, OPD_XPU}};

static int opdi_dl_code(opd_scalar_type dtype) {
    const int kind = opdi_dtype(dtype)->kind;
    switch (dtype) {
        case OPD_FLOAT8_E4M3FN: return OPDI_DL_E4M3FN;
        case OPD_FLOAT8_E4M3FNUZ: return OPDI_DL_E4M3FNUZ;
        case OPD_FLOAT8_E5M2: return OPDI_DL_E5M2;
        case OPD_FLOAT8_E5M2FNUZ: return OPDI_DL_E5M2FNUZ;
        case OPD_FLOAT8_E8M0FNU: return OPDI_DL_E8M0FNU;
        case OPD_UINT8: case OPD_UINT16: case OPD_UINT32: case OPD_UINT64: return OPDI_DL_UINT;
        default: break;
    }
    return dtype == OPD_BFLOAT16 ? OPDI_DL_BFLOAT : kind == OPDI_CLASS_INT
        ? OPDI_DL_INT : kind == OPDI_CLASS_FLOAT ? OPDI_DL_FLOAT : kind == OPDI_CLASS_BOOL ? OPDI_DL_BOOL
        : OPDI_DL_COMPLEX;
}
/* Returns the dtype for the code and bits of a DLPack tensor, or returns OPD_DTYPE_NONE and sets an error if there is
   none. */
static opd_scalar_type opdi_dl_dtype(const opdi_dl_tensor *tensor) {
    static const char *const names[] = {"kInt", "kUInt", "kFloat", NULL, "kBfloat", "kComplex", "kDLBool"};
    if (tensor->lanes != 1) {
        (void)opd_fail(OPD_ERROR_DTYPE, "DLPack: lanes != 1 are not supported, this tensor has %d", (int)tensor->lanes);
        return OPD_DTYPE_NONE;
    }
    for (int i = 0; i <= OPD_FLOAT8_E8M0FNU; i++) {
        const opd_scalar_type dtype = (opd_scalar_type)i;
        if (opd_dtype_size(dtype) * 8 == tensor->bits && tensor->bits && opdi_dl_code(dtype) == tensor->code) {
            return dtype;
        }
    }
    if (tensor->code <= OPDI_DL_BOOL && names[tensor->code]) {
        (void)opd_fail(OPD_ERROR_DTYPE, "DLPack: Unsupported %s bits %d", names[tensor->code], (int)tensor->bits);
    } else {
        (void)opd_fail(OPD_ERROR_DTYPE, "DLPack: Unsupported code %d", (int)tensor->code);
    }
    return OPD_DTYPE_NONE;
}

/* An exported tensor: the struct for the other program, and a tensor that keeps the memory. */
typedef struct opdi_dl_export {
    union { opdi_dl_versioned versioned; opdi_dl_unversioned unversioned; } u;
    opd_tensor *held;            /* an alias of the tensor: keeps the memory even if the tensor gets other memory */
    size_t bytes;                /* the size of this struct with the sizes and strides after it */
} opdi_dl_export;
static void opdi_dl_export_free(opdi_dl_export *shared) {
    opdi_release(shared->held);
    opdi_free(shared, shared->bytes);
}
static void opdi_dl_release_versioned(struct DLManagedTensorVersioned *self) {
    opdi_dl_export_free((opdi_dl_export *)((opdi_dl_versioned *)(void *)self)->context);
}
static void opdi_dl_release_unversioned(struct DLManagedTensor *self) {
    opdi_dl_export_free((opdi_dl_export *)((opdi_dl_unversioned *)(void *)self)->context);
}

/* Sets *data to the address of tensor's first element.  Returns 0, or -1 and sets an error if the tensor has no memory
   of its own.  `who` names the calling function in the error. */
OPDI_INTERNAL int opdi_memory_of(const opd_tensor *tensor, const char *who, void **data) {
    if (opdi_null_tensor(tensor, who)) { return -1; }
    *data = opdi_on_device(tensor) && !(tensor->flags & OPDI_BATCHED) ? opd_device_data(tensor,
        (opd_backend)tensor->backend) : opd_data(tensor);
    if (!opd_ok()) { return -1; }
    if (tensor->backend == OPD_META || (tensor->meta && tensor->meta->inner)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: this tensor has no data (%s)", who,
                        tensor->meta && tensor->meta->inner ? "it wraps another tensor" : "it is a meta tensor");
    }
    return 0;
}

/* Fails if the tensor is stored in blocks, which a file format of `who` does not have.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_blocks_refused(const opd_tensor *tensor, const char *who) {
    return !tensor || opdi_is_dead(tensor) || !opdi_is_block(tensor->dtype) ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: this format does not have the dtype %s: %s, and opd_dequantize makes float32 "
                   "of it", who, opd_dtype_name((opd_scalar_type)tensor->dtype), tensor->dtype < OPD_INT_BLOCKS
                   ? "opd_gguf_save writes it" : "opd_view_dtype makes a view as bytes (uint8) of it");
}
/* Allocates the struct of an exported tensor, and sets *tensors to the opdi_dl_tensor in the struct.  `versioned`
   selects one of the two structs of DLPack.  On failure, returns NULL and sets an error. */
static opdi_dl_export *opdi_dl_pack(opd_tensor *tensor, const char *who, bool versioned, opdi_dl_tensor **tensors) {
    opdi_dl_export *shared;
    void *data;
    size_t k = 0, rows = sizeof opdi_dl_devices / sizeof opdi_dl_devices[0];
    if (!opd_ok()) { return NULL; }
    if (tensor && opdi_requires_grad(tensor)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "%s: Can't export tensors that require gradient, use tensor.detach() "
                       "(opd_detach)", who);
        return NULL;
    }
    if (opdi_memory_of(tensor, who, &data) || opdi_blocks_refused(tensor, who)) { return NULL; }
    while (k < rows && opdi_dl_devices[k].backend != tensor->backend) { k++; }
    if (k == rows) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: Cannot pack tensors on %s", who, opdi_device_name(tensor->backend));
        return NULL;
    }
    size_t bytes = sizeof *shared + 2 * (size_t)tensor->ndim * sizeof(int64_t);
    shared = (opdi_dl_export *)opdi_alloc(bytes);
    if (!shared) { return NULL; }
    memset(shared, 0, sizeof *shared);
    shared->bytes = bytes;
    shared->held = opdi_shallow_copy(tensor);
    if (!shared->held) {
        opdi_free(shared, bytes);
        return NULL;
    }
    int64_t *dims = (int64_t *)(void *)(shared + 1);
    *tensors = versioned ? &shared->u.versioned.tensor : &shared->u.unversioned.tensor;
    (*tensors)->data = tensor->numel ? data : NULL;
    (*tensors)->device_type = opdi_dl_devices[k].type;
    (*tensors)->device_id = opdi_on_device(tensor) ? tensor->storage->index : 0;
    (*tensors)->ndim = tensor->ndim;
    (*tensors)->code = (uint8_t)opdi_dl_code((opd_scalar_type)tensor->dtype);
    (*tensors)->bits = (uint8_t)(8 * opd_dtype_size((opd_scalar_type)tensor->dtype));
    (*tensors)->lanes = 1;
    (*tensors)->sizes = dims;
    (*tensors)->strides = dims + tensor->ndim;
    for (int i = 0; i < tensor->ndim; i++) {      /* strides of dims of size 0 or 1 become 1, as in PyTorch */
        dims[i] = tensor->dims[i];
        dims[tensor->ndim + i] = tensor->dims[i] < 2 ? 1 : tensor->dims[tensor->ndim + i];
    }
    return shared;
}

struct DLManagedTensorVersioned *opd_dlpack_export(opd_tensor *tensor, unsigned flags) {
    opdi_dl_tensor *shown;
    opdi_dl_export *shared = opdi_dl_pack(tensor, "opd_dlpack_export", true, &shown);
    if (!shared) { return NULL; }
    shared->u.versioned.major = 1;
    shared->u.versioned.minor = 1;
    shared->u.versioned.flags = flags & (OPD_DLPACK_READ_ONLY | OPD_DLPACK_IS_COPIED);
    shared->u.versioned.context = shared;
    shared->u.versioned.deleter = opdi_dl_release_versioned;
    return (struct DLManagedTensorVersioned *)(void *)&shared->u.versioned;
}
struct DLManagedTensor *opd_dlpack_export_unversioned(opd_tensor *tensor) {
    opdi_dl_tensor *shown;
    opdi_dl_export *shared = opdi_dl_pack(tensor, "opd_dlpack_export_unversioned", false, &shown);
    if (!shared) { return NULL; }
    shared->u.unversioned.context = shared;
    shared->u.unversioned.deleter = opdi_dl_release_unversioned;
    return (struct DLManagedTensor *)(void *)&shared->u.unversioned;
}

int opd_dlpack_stream(opd_tensor *tensor, int64_t stream) {
    opd_stream theirs;
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_dlpack_stream")) { return -1; }
    theirs.device = opd_tensor_device(tensor);
    theirs.id = stream == 1 ? 0 : stream;
    if (theirs.device.type == OPD_CPU || stream == -1) { return 0; }
    if (stream < 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_dlpack_stream: %lld is not a stream (the default stream is 1)",
                        (long long)stream);
    }
    const opd_stream mine = opd_stream_current(theirs.device);
    if (mine.id == theirs.id) { return opd_ok() ? 0 : -1; }
    return opd_stream_wait(theirs, mine) || opd_tensor_record_stream(tensor, theirs) ? -1 : 0;
}

static void opdi_dl_drop_versioned(void *data, void *user) {
    opdi_dl_versioned *versioned = (opdi_dl_versioned *)user;
    (void)data;
    if (versioned->deleter) { versioned->deleter((struct DLManagedTensorVersioned *)user); }
}
static void opdi_dl_drop_unversioned(void *data, void *user) {
    opdi_dl_unversioned *unversioned = (opdi_dl_unversioned *)user;
    (void)data;
    if (unversioned->deleter) { unversioned->deleter((struct DLManagedTensor *)user); }
}

/* Checks a tensor from another program, and reads its dtype, its device and the address of its first element.  Returns
   0, or -1 and sets an error. */
static int opdi_dl_check(const opdi_dl_tensor *tensor, opd_scalar_type *dtype, opd_device *device, char **data) {
    const size_t rows = sizeof opdi_dl_devices / sizeof opdi_dl_devices[0];
    size_t k = 0;
    *dtype = opdi_dl_dtype(tensor);
    if (*dtype == OPD_DTYPE_NONE) { return -1; }
    while (k < rows && opdi_dl_devices[k].type != tensor->device_type) { k++; }
    if (k == rows) {
        return opd_fail(OPD_ERROR_ARGUMENT, "DLPack: Unsupported device_type: %d", (int)tensor->device_type);
    }
    *device = opd_device_make((opd_backend)opdi_dl_devices[k].backend, opdi_dl_devices[k].backend == OPD_CPU ? -1
                            : tensor->device_id);
    if (tensor->ndim < 0 || tensor->ndim > OPD_MAX_DIMS || (tensor->ndim && !tensor->sizes)) {
        return opd_fail(OPD_ERROR_SHAPE, "DLPack: a tensor has 0 to %d dimensions, not %d%s", OPD_MAX_DIMS,
                        (int)tensor->ndim, tensor->sizes ? "" : " at NULL");
    }
    if (tensor->byte_offset > UINTPTR_MAX - (uintptr_t)tensor->data) {
        return opd_fail(OPD_ERROR_ARGUMENT, "DLPack: the first element (byte_offset %llu) is beyond any memory",
                        (unsigned long long)tensor->byte_offset);
    }
    *data = tensor->data ? (char *)((uintptr_t)tensor->data + (uintptr_t)tensor->byte_offset) : NULL;
    size_t element = opd_dtype_is_complex(*dtype) ? opd_dtype_size(*dtype) / 2 : opd_dtype_size(*dtype);
    if ((uintptr_t)*data % element) {
        return opd_fail(OPD_ERROR_ARGUMENT, "DLPack: the first element (byte_offset %llu) is not aligned to %d bytes",
                        (unsigned long long)tensor->byte_offset, (int)element);
    }
    return 0;
}
/* Makes a tensor from another program's struct `managed`, and takes over the struct, even on failure.  drop(NULL,
   managed) frees the struct, with a function of the other program whose address is `code`.  On failure, returns NULL
   and sets an error. */
static opd_tensor *opdi_dl_unpack(const opdi_dl_tensor *tensor, void (*drop)(void *, void *), void *managed,
                                  uintptr_t code) {
    opd_scalar_type dtype;
    opd_device device;
    char *data;
    if (!opd_ok() || opdi_dl_check(tensor, &dtype, &device, &data)) {
        drop(NULL, managed);
        return NULL;
    }
    opd_tensor *t = opd_tensor_wrap_on(data, opd_ints_of(tensor->sizes, tensor->ndim), tensor->strides, dtype, device,
                                       drop, managed);
    if (t) {
        opdi_foreign *foreign = (opdi_foreign *)(void *)t->storage;
        if (!foreign->plugin) { foreign->plugin = opdi_plugin_hold(code); }
    }
    return t;
}

opd_tensor *opd_dlpack_import(struct DLManagedTensorVersioned *managed, unsigned *flags) {
    const opdi_dl_versioned *versioned = (const opdi_dl_versioned *)(void *)managed;
    if (flags) { *flags = 0; }
    if (!versioned) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_dlpack_import: the struct is NULL");
        return NULL;
    }
    if (versioned->major != 1) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_dlpack_import: the struct has version %u.%u of DLPack, but only "
                       "versions 1.x are supported", (unsigned)versioned->major, (unsigned)versioned->minor);
    } else if ((versioned->flags & OPD_DLPACK_READ_ONLY) && !flags) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_dlpack_import: the tensor is read-only: pass a pointer for its flags, "
                       "and do not write into the tensor");
    } else if (flags) {
        *flags = (unsigned)(versioned->flags & (OPD_DLPACK_READ_ONLY | OPD_DLPACK_IS_COPIED));
    }
    return opdi_dl_unpack(&versioned->tensor, opdi_dl_drop_versioned, managed, (uintptr_t)versioned->deleter);
}
opd_tensor *opd_dlpack_import_unversioned(struct DLManagedTensor *managed) {
    const opdi_dl_unversioned *unversioned = (const opdi_dl_unversioned *)(void *)managed;
    if (unversioned) {
        return opdi_dl_unpack(&unversioned->tensor, opdi_dl_drop_unversioned, managed, (uintptr_t)unversioned->deleter);
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_dlpack_import_unversioned: the struct is NULL");
    return NULL;
}
