#include "aoti.h"

//== packed weights ====================================================================================================
//
//  In a model that was compiled with frozen weights, the weights of products and convolutions are stored in oneDNN's
//  format: in nested blocks, followed by a description of 768 bytes and the number of groups.  They are unpacked here.

enum { OPDI_AOTI_DIMS = 12 };
typedef struct opdi_aoti_blocks {
    int32_t ndim, kind, inner;
    int64_t dims[OPDI_AOTI_DIMS], padded[OPDI_AOTI_DIMS], strides[OPDI_AOTI_DIMS], offset;
    int64_t sizes[OPDI_AOTI_DIMS], which[OPDI_AOTI_DIMS];      /* inner blocks, outermost first: their sizes, and the
                                                                  dims that they divide */
} opdi_aoti_blocks;
/* Reads the description of a packed weight.  Returns false if the format is unknown or damaged. */
static bool opdi_aoti_read_blocks(const uint8_t *bytes, int64_t count, opdi_aoti_blocks *blocks) {
    if (count < 768) { return false; }
    memcpy(&blocks->ndim, bytes + 4, 4);
    memcpy(blocks->dims, bytes + 8, 96);
    memcpy(blocks->padded, bytes + 112, 96);
    memcpy(&blocks->offset, bytes + 304, 8);
    memcpy(&blocks->kind, bytes + 312, 4);
    memcpy(blocks->strides, bytes + 320, 96);
    memcpy(&blocks->inner, bytes + 416, 4);
    memcpy(blocks->sizes, bytes + 424, 96);
    memcpy(blocks->which, bytes + 520, 96);
    if (blocks->kind != 2 || blocks->ndim < 1 || blocks->ndim > 6 || blocks->inner < 0 || blocks->inner > 12 ||
        blocks->offset < 0) {
        return false;
    }
    for (int i = 0; i < blocks->ndim; i++) {
        if (blocks->dims[i] < 1 || blocks->padded[i] < blocks->dims[i] || blocks->padded[i] > INT32_MAX ||
            blocks->strides[i] < 0 || blocks->strides[i] > INT64_MAX / 65536 / INT32_MAX) {
            return false;
        }
    }
    for (int i = 0; i < blocks->inner; i++) {
        if (blocks->sizes[i] < 1 || blocks->sizes[i] > 4096 || blocks->which[i] < 0 ||
            blocks->which[i] >= blocks->ndim) {
            return false;
        }
    }
    return true;
}
/* Returns the position of an element, given by its index, in the packed weight, in elements. */
static int64_t opdi_aoti_block_place(const opdi_aoti_blocks *blocks, const int64_t *index) {
    int64_t rest[OPDI_AOTI_DIMS], place = blocks->offset, step = 1;
    memcpy(rest, index, sizeof rest);
    for (int i = blocks->inner - 1; i >= 0; i--) {
        int64_t *at = &rest[blocks->which[i]];
        place += *at % blocks->sizes[i] * step;
        *at /= blocks->sizes[i];
        step *= blocks->sizes[i];
    }
    for (int i = 0; i < blocks->ndim; i++) { place += rest[i] * blocks->strides[i]; }
    return place;
}
/* Fills a dense tensor with the elements of a packed weight.  `element` is the size of an element in bytes. */
static void opdi_aoti_unpack(const opdi_aoti_blocks *blocks, const char *from, char *to, size_t element) {
    int64_t index[OPDI_AOTI_DIMS] = {0}, count = 1;
    for (int i = 0; i < blocks->ndim; i++) { count *= blocks->dims[i]; }
    for (int64_t k = 0; k < count; k++) {
        memcpy(to + (size_t)k * element, from + (size_t)opdi_aoti_block_place(blocks, index) * element, element);
        for (int i = blocks->ndim - 1; i >= 0 && ++index[i] == blocks->dims[i]; i--) { index[i] = 0; }
    }
}
static int32_t opdi_aoti_from_packed(void *data, int32_t dtype, const uint8_t *metadata, int64_t count, void **out) {
    const size_t element = opd_dtype_size((opd_scalar_type)dtype);
    opdi_aoti_blocks blocks;
    memset(&blocks, 0, sizeof blocks);
    if (!opdi_aoti_read_blocks(metadata, count, &blocks) || element == 0) {
        (void)opd_fail(OPD_ERROR_FILE, "a compiled model has weights that are packed in a way that is not supported "
                       "(compile it without \"freezing\")");
        return 1;
    }
    opd_scope scope = opd_scope_open();
    opd_tensor *tensor = opd_tensor_new(opd_ints_of(blocks.dims, blocks.ndim), (opd_scalar_type)dtype);
    if (tensor) { opdi_aoti_unpack(&blocks, (const char *)data, (char *)opd_data(tensor), element); }
    const int32_t rc = opdi_aoti_box(tensor, out);
    opd_scope_close(&scope);
    if (rc == 0) { ((opdi_aoti_handle *)*out)->packed = true; }
    return rc;
}
OPDI_INTERNAL int32_t opdi_aoti_from_blob_v2(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides,
                                             int64_t offset, int32_t dtype, int32_t device, int32_t index, void **out,
                                             int32_t layout, const uint8_t *metadata, int64_t metadata_size) {
    if (layout == 3) { return opdi_aoti_from_packed(data, dtype, metadata, metadata_size, out); }
    if (layout != 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model uses a tensor of layout %d, but only strided tensors are "
                       "supported", (int)layout);
        return 1;
    }
    return opdi_aoti_from_blob(data, ndim, sizes, strides, offset, dtype, device, index, out);
}
OPDI_INTERNAL int32_t opdi_aoti_clone(void *self, void **out) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(tensor ? opd_clone(tensor) : NULL, out);
    opd_scope_close(&scope);
    if (rc == 0) { ((opdi_aoti_handle *)*out)->packed = ((opdi_aoti_handle *)self)->packed; }
    return rc;
}
/* Makes a copy of all memory that `self` spans, with the strides of `self`, even if elements overlap.  Returns 0, or 1
   and sets an error. */
OPDI_INTERNAL int32_t opdi_aoti_clone_strides(void *self, void **out) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    if (!tensor) { return 1; }
    const int64_t span = opdi_aoti_span(opd_sizes(tensor), opd_strides(tensor), opd_ndim(tensor)), one = 1;
    opd_scope scope = opd_scope_open();
    opd_tensor *flat = opd_tensor_view(tensor, &span, &one, 1, opd_tensor_offset(tensor));
    opd_tensor *copy = flat ? opd_clone(flat) : NULL;
    const int32_t rc = opdi_aoti_box(copy ? opd_tensor_view(copy, opd_sizes(tensor), opd_strides(tensor),
                                                            opd_ndim(tensor), 0) : NULL, out);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int32_t opdi_aoti_copy(void *self, void *src, int32_t non_blocking) {
    opd_tensor *to = opdi_aoti_tensor(self), *from = opdi_aoti_tensor(src);
    (void)non_blocking;
    if (!to || !from) { return 1; }
    opd_scope scope = opd_scope_open();
    (void)opd_copy_(to, from);
    opd_scope_close(&scope);
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_aoti_copy_to(void *src, void *dst) { return opdi_aoti_copy(dst, src, 0); }
OPDI_INTERNAL int32_t opdi_aoti_zero(void *self) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    if (!tensor) { return 1; }
    opd_scope scope = opd_scope_open();
    (void)opd_zero_(tensor);
    opd_scope_close(&scope);
    return opdi_aoti_status();
}
/* Reads the only element of a tensor, converted to `dtype`, into *out.  Returns 0, or 1 and sets an error. */
OPDI_INTERNAL int32_t opdi_aoti_item(void *self, void *out, int64_t dtype) {
    opd_tensor *tensor = opdi_aoti_tensor(self);
    if (tensor && opd_numel(tensor) != 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a compiled model reads a number from a tensor of %lld elements",
                       (long long)opd_numel(tensor));
    }
    if (!opd_ok()) { return 1; }
    opd_scope scope = opd_scope_open();
    if (opd_dtype(tensor) != (opd_scalar_type)dtype) { tensor = opd_to_dtype(tensor, (opd_scalar_type)dtype); }
    const void *data = tensor ? opd_data(tensor) : NULL;
    if (data) { memcpy(out, data, opd_dtype_size((opd_scalar_type)dtype)); }
    opd_scope_close(&scope);
    return opdi_aoti_status();
}
static int32_t opdi_aoti_number(const void *number, opd_scalar_type dtype, void **out) {
    opd_scope scope = opd_scope_open();
    const int32_t rc = opdi_aoti_box(opd_tensor_from(number, opd_ints_of(NULL, 0), dtype), out);
    opd_scope_close(&scope);
    return rc;
}
/* Makes a tensor of one integer or bool of `dtype` from the lowest bytes of `bits`.  Returns 0, or 1 and sets an
   error. */
OPDI_INTERNAL int32_t opdi_aoti_from_bits(uint64_t bits, void **out, int64_t dtype) {
    return opdi_aoti_number(&bits, (opd_scalar_type)dtype, out);
}
OPDI_INTERNAL int32_t opdi_aoti_from_f32(float number, void **out) {
    return opdi_aoti_number(&number, OPD_FLOAT32, out);
}
OPDI_INTERNAL int32_t opdi_aoti_from_f64(double number, void **out) {
    return opdi_aoti_number(&number, OPD_FLOAT64, out);
}
OPDI_INTERNAL int32_t opdi_aoti_from_c64(opdi_aoti_c64 number, void **out) {
    return opdi_aoti_number(&number, OPD_COMPLEX64, out);
}
OPDI_INTERNAL int32_t opdi_aoti_from_c128(opdi_aoti_c128 number, void **out) {
    return opdi_aoti_number(&number, OPD_COMPLEX128, out);
}
OPDI_INTERNAL size_t opdi_aoti_dtype_size(int32_t dtype) { return opd_dtype_size((opd_scalar_type)dtype); }

//== checks, texts, and functions that do nothing here =================================================================

OPDI_INTERNAL opdi_aoti_throwing opdi_aoti_cxx;

OPDI_INTERNAL void opdi_aoti_find(void *library, const char *name, void *out) {
    void *found = dlsym(library, name);
    memcpy(out, &found, sizeof found);
}
/* Finds C++ functions in a library and the libraries that it depends on.  Returns true if all were found. */
OPDI_INTERNAL bool opdi_aoti_find_cxx(void *library) {
    opdi_aoti_find(library, "__cxa_allocate_exception", &opdi_aoti_cxx.allocate);
    opdi_aoti_find(library, "_ZNSt13runtime_errorC1EPKc", &opdi_aoti_cxx.construct);
    opdi_aoti_find(library, "_ZNSt13runtime_errorD1Ev", &opdi_aoti_cxx.destroy);
    opdi_aoti_find(library, "_ZTISt13runtime_error", &opdi_aoti_cxx.type);
    opdi_aoti_find(library, "__cxa_throw", &opdi_aoti_cxx.throws);
    return opdi_aoti_cxx.allocate && opdi_aoti_cxx.construct && opdi_aoti_cxx.destroy && opdi_aoti_cxx.type &&
        opdi_aoti_cxx.throws;
}
/* Called by the checks of a model.  If `holds` is false, the check failed: sets an error and leaves the model, by
   longjmp or an exception. */
OPDI_INTERNAL void opdi_aoti_check(bool holds, const char *function, const char *file, uint32_t line, const char *text)
                                   {
    if (holds) { return; }
    (void)function;
    (void)file;
    (void)line;
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s", text ? text : "a check of the compiled model failed");
    if (opdi_aoti_current && !opdi_aoti_current->model->exceptions) { longjmp(*opdi_aoti_current->out, 1); }
    void *exception = opdi_aoti_cxx.allocate(2 * sizeof(void *));             /* the size of a std::runtime_error */
    opdi_aoti_cxx.construct(exception, text ? text : "");
    opdi_aoti_cxx.throws(exception, opdi_aoti_cxx.type, opdi_aoti_cxx.destroy);
}
OPDI_INTERNAL void opdi_aoti_warn(const char *function, const char *file, uint32_t line, const char *text) {
    (void)function;
    (void)file;
    (void)line;
    opd_warn("%s", text ? text : "");
}
OPDI_INTERNAL void opdi_aoti_print(void *handle, const char *text) {
    const opd_tensor *tensor = opdi_aoti_tensor(handle);
    printf("[%s]\n", text ? text : "");
    if (tensor) { opd_print(tensor); }
}
OPDI_INTERNAL void opdi_aoti_save(void *handle, const char *name, const char *prefix, const char *kernel) {
    char path[400];
    opd_tensor *tensor = opdi_aoti_tensor(handle);
    snprintf(path, sizeof path, "%.100s_%.100s_%.100s.npy", prefix ? prefix : "", kernel ? kernel : "",
             name ? name : "");
    if (tensor) { (void)opd_npy_save(path, tensor); }
}
OPDI_INTERNAL int32_t opdi_aoti_check_finite(const char *name, void *handle) {
    opd_tensor *tensor = opdi_aoti_tensor(handle);
    if (!tensor) { return 1; }
    opd_scope scope = opd_scope_open();
    const bool finite = opd_item_i64(opd_all(opd_isfinite(tensor))) != 0;
    opd_scope_close(&scope);
    if (opd_ok() && !finite) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s of the compiled model has an infinity or a NaN",
                       name ? name : "a tensor");
    }
    return opdi_aoti_status();
}
/* These functions return handles of objects that do not exist here: they set the handle to NULL, which may be freed. */
static int32_t opdi_aoti_none_1(void **out) {
    *out = NULL;
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_none_2(uint64_t value, void **out) {
    (void)value;
    return opdi_aoti_none_1(out);
}
OPDI_INTERNAL int32_t opdi_aoti_none_3(const void *values, int64_t count, void **out) {
    (void)values;
    (void)count;
    return opdi_aoti_none_1(out);
}
OPDI_INTERNAL int32_t opdi_aoti_none_5(const char *name, void *keywords, const void *inputs, uint64_t count, void **out)
                                       {
    (void)name;
    (void)keywords;
    return opdi_aoti_none_3(inputs, (int64_t)count, out);
}
OPDI_INTERNAL int32_t opdi_aoti_nothing(void *handle) {
    (void)handle;
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_zero_out(int32_t *out) {
    *out = 0;
    return 0;
}
/* Replaces getenv in models.  If AOTI_RUNTIME_CHECK_INPUTS is not set, returns "1" for this name, so that models check
   their inputs. */
OPDI_INTERNAL char *opdi_aoti_getenv(const char *name) {
    static char one[] = "1";
    char *value = getenv(name);
    return !value && strcmp(name, "AOTI_RUNTIME_CHECK_INPUTS") == 0 ? one : value;
}

