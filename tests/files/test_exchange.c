/* Exchange with other programs: DLPack, .npy, .npz, safetensors.  golden/exchange.txt, made by
   golden/make_exchange.py, has files of NumPy and the safetensors package, and whether these packages can read bad
   files.  THREADED */
/* dlpack.h's structs by their own names, as a program sees that includes it: before the header, which must not mind. */
#include <stdint.h>
typedef struct { uint32_t major, minor; } DLPackVersion;
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3, kDLMetal = 8, kDLROCMHost = 11, kDLExtDev = 12 } DLDeviceType;
typedef struct { DLDeviceType device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

#include "../inside.h"
#include "../check.h"
#include "../python.h"
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static opd_ints ints(const int64_t *data, int64_t n) { return opd_ints_of(data, n); }

//-- DLPack ------------------------------------------------------------------------------------------------------------

/* code and bits of every dtype, from the table in DLPack's specification. */
static const struct { opd_scalar_type dtype; int code, bits; } dl_dtypes[] = {
    {OPD_UINT8, 1, 8}, {OPD_INT8, 0, 8}, {OPD_INT16, 0, 16}, {OPD_INT32, 0, 32}, {OPD_INT64, 0, 64},
    {OPD_FLOAT16, 2, 16}, {OPD_FLOAT32, 2, 32}, {OPD_FLOAT64, 2, 64}, {OPD_BFLOAT16, 4, 16}, {OPD_COMPLEX64, 5, 64},
    {OPD_COMPLEX128, 5, 128}, {OPD_BOOL, 6, 8}};
enum { DL_DTYPES = sizeof dl_dtypes / sizeof dl_dtypes[0] };

TEST(dlpack_out) {
    const int64_t sizes[] = {2, 1, 3};
    int k;
    for (k = 0; k < DL_DTYPES; k++) {
        opd_tensor *t = opd_tensor_new(ints(sizes, 3), dl_dtypes[k].dtype);
        DLManagedTensorVersioned *m = opd_dlpack_export(t, OPD_DLPACK_IS_COPIED);
        DLManagedTensor *old = opd_dlpack_export_unversioned(t);
        const DLTensor *d;
        int i;
        CHECK_OR_RETURN(m && old);
        CHECK(m->version.major == 1 && m->flags == 2 && m->manager_ctx && m->deleter);
        for (i = 0; i < 2; i++) {
            d = i ? &old->dl_tensor : &m->dl_tensor;
            CHECK(d->data == opd_data(t) && d->byte_offset == 0 && d->ndim == 3);
            CHECK(d->device.device_type == kDLCPU && d->device.device_id == 0);
            CHECK(d->dtype.code == dl_dtypes[k].code && d->dtype.bits == dl_dtypes[k].bits && d->dtype.lanes == 1);
            CHECK(d->shape[0] == 2 && d->shape[1] == 1 && d->shape[2] == 3);
            CHECK(d->strides[0] == 3 && d->strides[1] == 1 && d->strides[2] == 1);
        }
        m->deleter(m);
        old->deleter(old);
    }
    CHECK_OK();
}
TEST(dlpack_out_of_views) {
    const int64_t sizes[] = {4, 3}, part[] = {3, 2}, strides[] = {1, 3}, none[] = {0, 3};
    opd_tensor *t = opd_tensor_new(ints(sizes, 2), OPD_FLOAT32);
    opd_tensor *v = opd_tensor_view(t, part, strides, 2, 4);
    opd_tensor *zero = opd_tensor_new(ints(NULL, 0), OPD_FLOAT64), *empty = opd_tensor_new(ints(none, 2), OPD_INT8);
    DLManagedTensorVersioned *m = opd_dlpack_export(v, 0);
    CHECK_OR_RETURN(m);
    CHECK((char *)m->dl_tensor.data == (char *)opd_data(t) + 16 && m->flags == 0);
    CHECK(m->dl_tensor.strides[0] == 1 && m->dl_tensor.strides[1] == 3);
    m->deleter(m);
    m = opd_dlpack_export(zero, OPD_DLPACK_READ_ONLY);
    CHECK_OR_RETURN(m);
    CHECK(m->dl_tensor.ndim == 0 && m->dl_tensor.data == opd_data(zero) && m->flags == 1);
    m->deleter(m);
    m = opd_dlpack_export(empty, 0);
    CHECK_OR_RETURN(m);
    CHECK(m->dl_tensor.ndim == 2 && !m->dl_tensor.data && m->dl_tensor.shape[0] == 0 && m->dl_tensor.shape[1] == 3);
    m->deleter(m);
}
/* The memory remains while the other library uses it, also if the tensor gets other memory. */
TEST(dlpack_out_holds_memory) {
    const float one[] = {1, 2, 3}, two[] = {4, 5, 6};
    const int64_t n = 3;
    DLManagedTensorVersioned *m = NULL, *again = NULL;
    OPD_SCOPE {
        opd_tensor *t = opd_tensor_from(one, ints(&n, 1), OPD_FLOAT32);
        m = opd_dlpack_export(t, 0);
        CHECK_INT(opd_tensor_set_data(t, opd_tensor_from(two, ints(&n, 1), OPD_FLOAT32)), 0);
        again = opd_dlpack_export(t, 0);
    }
    CHECK_OR_RETURN(m && again);
    CHECK(memcmp(m->dl_tensor.data, one, sizeof one) == 0);
    CHECK(memcmp(again->dl_tensor.data, two, sizeof two) == 0);
    m->deleter(m);
    again->deleter(again);
}
static void *let_go(void *user) {
    DLManagedTensorVersioned *m = (DLManagedTensorVersioned *)user;
    m->deleter(m);
    return NULL;
}
TEST(dlpack_deleter_from_another_thread) {
    const int64_t n = 3;
    pthread_t thread;
    DLManagedTensorVersioned *m = NULL;
    OPD_SCOPE { m = opd_dlpack_export(opd_tensor_new(ints(&n, 1), OPD_FLOAT32), 0); }
    CHECK_OR_RETURN(m);
    CHECK_OR_RETURN(pthread_create(&thread, NULL, let_go, m) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}
static int batched_example(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    CHECK(!opd_dlpack_export(in[0], 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "under vmap transform is not allowed");
    out[0] = in[0];
    return 1;
}
TEST(dlpack_out_refused) {
    const int64_t n = 3;
    opd_tensor *t = opd_ones(ints(&n, 1), OPD_FLOAT32), *out;
    opd_tensor *meta = opd_tensor_new_on(ints(&n, 1), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    CHECK(!opd_dlpack_export(NULL, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_export: the tensor is NULL");
    CHECK(!opd_dlpack_export(meta, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_export: this tensor has no data (it is a meta tensor)");
    CHECK(!opd_dlpack_export(opd_tensor_wrap_key(t, OPD_F_GRAD_WRAPPER), 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "this tensor has no data (it wraps another tensor)");
    CHECK_INT(opd_vmap(batched_example, NULL, &t, 1, NULL, &out, 1), 1);
    opd_tensor_set_requires_grad(t, true);
    CHECK(!opd_dlpack_export_unversioned(t));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Can't export tensors that require gradient, use tensor.detach()");
    {
        opd_tensor *d = opd_detach(t);
        DLManagedTensor *m = opd_dlpack_export_unversioned(d);
        CHECK_OR_RETURN(m);
        CHECK(m->dl_tensor.data == opd_data(t));
        m->deleter(m);
    }
    (void)opd_fail(OPD_ERROR_USER, "pending");
    CHECK(!opd_dlpack_export(t, 0));
    CHECK_ERROR(OPD_ERROR_USER, "pending");
}

/* A tensor from outside, which counts its deletions. */
typedef struct foreign {
    DLManagedTensorVersioned versioned;
    DLManagedTensor old;
    int deleted;
    int64_t shape[3], strides[3];
    float data[24];
} foreign;
static void foreign_delete(DLManagedTensorVersioned *m) { ((foreign *)m->manager_ctx)->deleted++; }
static void foreign_delete_old(DLManagedTensor *m) { ((foreign *)m->manager_ctx)->deleted++; }
static DLTensor *foreign_init(foreign *f, int old) {
    DLTensor *d = old ? &f->old.dl_tensor : &f->versioned.dl_tensor;
    int i;
    memset(f, 0, sizeof *f);
    f->versioned.version.major = 1;
    f->versioned.manager_ctx = f->old.manager_ctx = f;
    f->versioned.deleter = foreign_delete;
    f->old.deleter = foreign_delete_old;
    for (i = 0; i < 24; i++) { f->data[i] = (float)i; }
    d->data = f->data;
    d->device.device_type = kDLCPU;
    d->ndim = 2;
    d->dtype.code = 2;
    d->dtype.bits = 32;
    d->dtype.lanes = 1;
    f->shape[0] = 2; f->shape[1] = 3;
    f->strides[0] = 3; f->strides[1] = 1;
    d->shape = f->shape;
    d->strides = f->strides;
    return d;
}

TEST(dlpack_in) {
    int old, form;
    for (old = 0; old < 2; old++) {
        for (form = 0; form < 5; form++) {
            foreign f;
            DLTensor *d = foreign_init(&f, old);
            unsigned flags = 9;
            opd_tensor *view = NULL;
            if (form == 1) { d->strides = NULL; }
            if (form == 2) { f.strides[0] = 1; f.strides[1] = 4; d->byte_offset = 8; }
            if (form == 3) { d->ndim = 0; d->shape = d->strides = NULL; d->byte_offset = 12; }
            if (form == 4) { f.shape[0] = 0; d->data = NULL; d->device.device_type = kDLCUDAHost; }
            f.versioned.flags = OPD_DLPACK_IS_COPIED | OPD_DLPACK_READ_ONLY | 8;
            OPD_SCOPE {
                opd_tensor *t = old ? opd_dlpack_import_unversioned(&f.old) : opd_dlpack_import(&f.versioned, &flags);
                CHECK_OK();
                if (!t) { return; }
                CHECK(opd_dtype(t) == OPD_FLOAT32 && opd_tensor_device(t).type == OPD_CPU);
                CHECK_INT(opd_ndim(t), form == 3 ? 0 : 2);
                CHECK_INT(opd_numel(t), form == 4 ? 0 : form == 3 ? 1 : 6);
                CHECK(form == 4 || opd_data(t) == f.data + (form == 2 ? 2 : form == 3 ? 3 : 0));
                if (form < 3) {
                    const float want[3][6] = {{0, 1, 2, 3, 4, 5}, {0, 1, 2, 3, 4, 5}, {2, 6, 10, 3, 7, 11}};
                    opd_tensor *c = opd_contiguous(t);
                    CHECK(memcmp(opd_data(c), want[form], sizeof want[form]) == 0);
                    opd_data_f32(t)[1] = 30;
                    CHECK(f.data[form == 2 ? 3 : 1] == 30);                                /* no copy */
                    view = opd_keep(opd_select(t, 0, 1));
                }
                CHECK_INT(f.deleted, 0);
            }
            CHECK(old || flags == 3);
            CHECK_INT(f.deleted, view ? 0 : 1);
            opd_release(view);
            CHECK_INT(f.deleted, 1);
        }
    }
}
TEST(dlpack_in_every_dtype) {
    int k;
    for (k = 0; k < DL_DTYPES; k++) {
        foreign f;
        DLTensor *d = foreign_init(&f, 0);
        memset(f.data, 0, sizeof f.data);
        d->ndim = 1;
        d->dtype.code = (uint8_t)dl_dtypes[k].code;
        d->dtype.bits = (uint8_t)dl_dtypes[k].bits;
        d->data = (char *)f.data + (-(uintptr_t)f.data & 15);
        OPD_SCOPE {
            opd_tensor *t = opd_dlpack_import(&f.versioned, NULL);
            CHECK(t && opd_dtype(t) == dl_dtypes[k].dtype && opd_numel(t) == 2);
        }
        CHECK_INT(f.deleted, 1);
    }
}
/* Export and import of a tensor: nothing is copied, and both structs are freed. */
TEST(dlpack_round_trip) {
    const int64_t sizes[] = {2, 3, 4};
    int k;
    for (k = 0; k < 2; k++) {
        OPD_SCOPE {
            opd_tensor *t = opd_transpose(opd_tensor_new(ints(sizes, 3), OPD_COMPLEX64), 0, 2), *u;
            u = k ? opd_dlpack_import(opd_dlpack_export(t, 0), NULL)
                : opd_dlpack_import_unversioned(opd_dlpack_export_unversioned(t));
            CHECK_OK();
            if (!u) { return; }
            CHECK(opd_data(u) == opd_data(t) && opd_ndim(u) == 3);
            CHECK(memcmp(opd_strides(u), opd_strides(t), 3 * sizeof(int64_t)) == 0);
            CHECK(memcmp(opd_sizes(u), opd_sizes(t), 3 * sizeof(int64_t)) == 0);
        }
    }
}
TEST(dlpack_in_refused) {
    static const struct { const char *text; opd_code code; } kinds[] = {
        {"the struct has version 2.0 of DLPack", OPD_ERROR_ARGUMENT},
        {"the tensor is read-only", OPD_ERROR_ARGUMENT},
        {"lanes != 1 are not supported, this tensor has 4", OPD_ERROR_DTYPE},
        {"lanes != 1", OPD_ERROR_DTYPE},
        {"Unsupported code 8", OPD_ERROR_DTYPE},
        {"Unsupported code 3", OPD_ERROR_DTYPE},
        {"Unsupported kUInt bits 24", OPD_ERROR_DTYPE},
        {"Unsupported kComplex bits 16", OPD_ERROR_DTYPE},
        {"Unsupported kFloat bits 0", OPD_ERROR_DTYPE},
        {"Unsupported device_type: 4", OPD_ERROR_ARGUMENT},
        {"no allocator for device cuda", OPD_ERROR_NO_KERNEL},
        {"0 to 64 dimensions, not -1", OPD_ERROR_SHAPE},
        {"0 to 64 dimensions, not 65", OPD_ERROR_SHAPE},
        {"0 to 64 dimensions, not 2 at NULL", OPD_ERROR_SHAPE},
        {"byte_offset 2) is not aligned to 4 bytes", OPD_ERROR_ARGUMENT},
        {"negative dimension -1", OPD_ERROR_SHAPE},
        {"negative strides are not supported", OPD_ERROR_SHAPE},
        {"do not fit into memory", OPD_ERROR_SHAPE},
        {"sizes and strides overflow", OPD_ERROR_SHAPE},
        {"the data is NULL", OPD_ERROR_ARGUMENT},
        {"byte_offset 18446744073709551608) is beyond any memory", OPD_ERROR_ARGUMENT},
        {"byte_offset 9223372036854775810) is not aligned", OPD_ERROR_ARGUMENT},
        {"sizes and strides reach beyond any memory", OPD_ERROR_SHAPE},
        {"sizes and strides overflow", OPD_ERROR_SHAPE},          /* of a stride that says nothing */
        {"sizes and strides reach beyond any memory", OPD_ERROR_SHAPE},
        {"sizes and strides overflow", OPD_ERROR_SHAPE},
    };
    int k, old;
    for (old = 0; old < 2; old++) {
        for (k = old ? 2 : 0; k < (int)(sizeof kinds / sizeof kinds[0]); k++) {
            foreign f;
            DLTensor *d = foreign_init(&f, old);
            switch (k) {
            case 0: f.versioned.version.major = 2; break;
            case 1: f.versioned.flags = OPD_DLPACK_READ_ONLY; break;
            case 2: d->dtype.lanes = 4; break;
            case 3: d->dtype.lanes = 0; break;
            case 4: d->dtype.code = 8; d->dtype.bits = 8; break;
            case 5: d->dtype.code = 3; d->dtype.bits = 64; break;
            case 6: d->dtype.code = 1; d->dtype.bits = 24; break;
            case 7: d->dtype.code = 5; d->dtype.bits = 16; break;
            case 8: d->dtype.bits = 0; break;
            case 9: d->device.device_type = (DLDeviceType)4; break;
            case 10: d->device.device_type = kDLCUDA; break;
            case 11: d->ndim = -1; break;
            case 12: d->ndim = 65; break;
            case 13: d->shape = NULL; break;
            case 14: d->byte_offset = 2; break;
            case 15: f.shape[1] = -1; break;
            case 16: f.strides[1] = -1; break;
            case 17: f.shape[0] = f.shape[1] = INT64_C(1) << 40; break;
            case 18: f.strides[0] = INT64_MAX; break;
            case 19: d->data = NULL; break;
            case 20: d->byte_offset = UINT64_MAX - 7; break;
            case 21: d->byte_offset = UINT64_MAX / 2 + 3; break;
            case 22: d->data = (void *)(UINTPTR_MAX - 15); break;
            case 23: f.shape[0] = 1; f.strides[0] = INT64_MAX; break;
            case 24: d->data = (void *)(UINTPTR_MAX - 999); f.shape[1] = 0; f.strides[0] = 1000; break;
            default: f.shape[1] = 0; f.strides[0] = (INT64_C(1) << 60) + 1; break;
            }
            CHECK(!(old ? opd_dlpack_import_unversioned(&f.old) : opd_dlpack_import(&f.versioned, NULL)));
            CHECK_ERROR(kinds[k].code, k == 21 && sizeof(size_t) < 8 ? "beyond any memory" : kinds[k].text);
            CHECK_INT(f.deleted, 1);
        }
    }
    CHECK(!opd_dlpack_import(NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the struct is NULL");
    CHECK(!opd_dlpack_import_unversioned(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the struct is NULL");
    {
        foreign f;
        (void)foreign_init(&f, 0);
        (void)opd_fail(OPD_ERROR_USER, "pending");
        CHECK(!opd_dlpack_import(&f.versioned, NULL));
        CHECK_ERROR(OPD_ERROR_USER, "pending");
        CHECK_INT(f.deleted, 1);
        (void)foreign_init(&f, 0);
        f.versioned.deleter = NULL;                                       /* memory that nobody gives back */
        OPD_SCOPE { CHECK(opd_dlpack_import(&f.versioned, NULL) != NULL); }
        CHECK_INT(f.deleted, 0);
    }
}
TEST(dlpack_without_memory) {
    const int64_t n = 3;
    int64_t k;
    for (k = 1;; k++) {
        foreign f;
        bool done;
        OPD_SCOPE {
            opd_tensor *t = opd_tensor_new(ints(&n, 1), OPD_FLOAT32);
            DLManagedTensorVersioned *m;
            (void)foreign_init(&f, 0);
            (void)opd_memory_fail_at(k, false);
            m = opd_dlpack_export(t, 0);
            (void)opd_dlpack_import(&f.versioned, NULL);
            (void)opd_memory_fail_at(0, false);
            done = opd_ok();
            CHECK(done || opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
            if (m) { m->deleter(m); }
        }
        CHECK_INT(f.deleted, 1);
        if (done) { break; }
    }
    CHECK(k > 3);
}

/* A device whose memory is the host's under another name. */
static void *device_alloc(void *user, int index, size_t n) { (void)user; (void)index; return malloc(n); }
static void device_free(void *user, int index, void *data, size_t n) {
    (void)user; (void)index; (void)n;
    free(data);
}
static int device_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t n) {
    (void)user; (void)to_index; (void)from_index;
    memcpy(to, from, n);
    return 0;
}
static const char *in_folder(const char *name);
TEST(tensors_of_a_device) {
    const float a[] = {1, 2, 3, 4, 5, 6};
    const int64_t sizes[] = {2, 3};
    const char *path = in_folder("device.npy");
    opd_backend_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.alloc = device_alloc;
    desc.free = device_free;
    desc.copy = device_copy;
    CHECK_INT(opd_backend_register(OPD_PRIVATEUSE1, &desc), 0);
    CHECK_INT(opd_backend_register(OPD_PRIVATEUSE2, &desc), 0);
    OPD_SCOPE {
        opd_tensor *host = opd_tensor_from(a, ints(sizes, 2), OPD_FLOAT32), *u, *h;
        opd_tensor *t = opd_tensor_new_on(ints(sizes, 2), OPD_FLOAT32, opd_device_make(OPD_PRIVATEUSE1, 0));
        opd_tensor *other = opd_tensor_new_on(ints(sizes, 2), OPD_FLOAT32, opd_device_make(OPD_PRIVATEUSE2, 0));
        DLManagedTensorVersioned *m;
        (void)OPD_CALL(opd_find("aten::copy_"), t, host, false);
        m = opd_dlpack_export(opd_transpose(t, 0, 1), 0);
        CHECK_OK();
        CHECK_OR_RETURN(m);
        CHECK(m->dl_tensor.device.device_type == kDLExtDev && m->dl_tensor.device.device_id == 0);
        CHECK(m->dl_tensor.data == opd_device_data(t, OPD_PRIVATEUSE1));
        u = opd_dlpack_import(m, NULL);
        CHECK_OR_RETURN(u);
        CHECK(opd_tensor_device(u).type == OPD_PRIVATEUSE1 && opd_tensor_device(u).index == 0);
        CHECK_INT(opd_npy_save(path, u), 0);
        h = opd_npy_load(path);
        CHECK(h && opd_size(h, 0) == 3 && opd_data_f32(h)[1] == 4 && opd_data_f32(h)[5] == 6);
        CHECK(!opd_dlpack_export(other, 0));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_export: Cannot pack tensors on privateusetwo");
    }
    CHECK_INT(opd_backend_unregister(OPD_PRIVATEUSE1), 0);
    CHECK_INT(opd_backend_unregister(OPD_PRIVATEUSE2), 0);
}

//-- files -------------------------------------------------------------------------------------------------------------

static char line[1 << 17];
static unsigned char bytes[1 << 16];

static int hex_digit(int c) { return c <= '9' ? c - '0' : c - 'a' + 10; }
static size_t unhex(const char *text, unsigned char *to) {
    size_t n = 0;
    for (; text[0] && text[1]; text += 2) { to[n++] = (unsigned char)(hex_digit(text[0]) * 16 + hex_digit(text[1])); }
    return n;
}
static int list_of(const char *text, int64_t *out) {
    int n = 0;
    char *end;
    if (text[0] == '-') { return 0; }
    for (;; text = end + 1) {
        out[n++] = strtoll(text, &end, 10);
        if (*end != ',') { return n; }
    }
}
/* A copy whose end is the end of its memory, so that a sanitizer sees what is read behind it. */
static unsigned char *exactly(const unsigned char *data, size_t n) {
    unsigned char *p = (unsigned char *)malloc(n ? n : 1);
    memcpy(p, data, n);
    return p;
}
static void free_it(void *data, void *user) {
    (void)user;
    free(data);
}
static char path_of_folder[200];
static void folder_remove(void) {
    char command[300];
    snprintf(command, sizeof command, "rm -rf '%s'", path_of_folder);
    if (path_of_folder[0] && system(command)) { printf("%s fails\n", command); }
}
static const char *folder(void) {
    char *const path = path_of_folder;
    if (!path[0]) {
        const char *tmp = getenv("RUN_TMP");
        snprintf(path, sizeof path_of_folder, "%s/exchange_XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(path)) { path[0] = 0; }
        (void)atexit(folder_remove);
    }
    return path;
}
static const char *in_folder(const char *name) {
    static char path[4][300];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", folder(), name);
    return path[k];
}
static void write_file(const char *path, const void *data, size_t n) {
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(data, 1, n, f) == n);
    if (f) { fclose(f); }
}
static size_t read_file(const char *path, unsigned char *to, size_t cap) {
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(to, 1, cap, f) : 0;
    CHECK(f != NULL);
    if (f) { fclose(f); }
    return n;
}
/* Is t what the line says: "DTYPE SIZES STRIDES HEX". */
static void check_tensor(opd_tensor *t, char *text, const char *name) {
    static unsigned char want[1 << 15];
    const char *dtype = strtok(text, " \n"), *sizes = strtok(NULL, " \n"), *strides = strtok(NULL, " \n");
    const char *hex = strtok(NULL, " \n");
    int64_t dims[OPD_MAX_DIMS];
    int i, n;
    size_t len;
    if (!opd_ok()) { printf("%s: %s\n", name, opd_error_message()); }
    CHECK_OK();
    CHECK(t != NULL);
    opd_error_clear();
    if (!t) { return; }
    CHECK_STR(opd_dtype_name(opd_dtype(t)), dtype);
    n = list_of(sizes, dims);
    CHECK_INT(opd_ndim(t), n);
    for (i = 0; i < n; i++) { CHECK_INT(opd_size(t, i), dims[i]); }
    n = list_of(strides, dims);
    for (i = 0; i < n && opd_numel(t); i++) { CHECK(opd_size(t, i) < 2 || opd_strides(t)[i] == dims[i]); }
    t = opd_contiguous(t);
    len = unhex(*hex == '-' ? "" : hex, want);
    if (strcmp(name, "native") && strcmp(name, "order")) {    /* they have this machine's order, whichever it is */
        check_native(want, len, opd_dtype_size(opd_dtype(t)) >> opd_dtype_is_complex(opd_dtype(t)));
    }
    CHECK_INT(len, (size_t)opd_numel(t) * opd_dtype_size(opd_dtype(t)));
    if (memcmp(opd_data(t), want, len) != 0) { printf("%s: other elements\n", name); }
    CHECK(memcmp(opd_data(t), want, len) == 0);
}

/* Every file of golden/exchange.txt, from memory and from a file. */
typedef struct golden { char kind[16], name[64], verdict[16]; size_t n; } golden;
static void golden_bad(const golden *g, const char *text) {
    int k;
    for (k = 0; k < 2; k++) {
        unsigned char *copy = exactly(bytes, g->n);
        const char *path = in_folder("bad");
        opd_tensor_file *f = NULL;
        const char *message;
        if (k) { write_file(path, bytes, g->n); }
        if (strcmp(g->kind, "npy") == 0) {
            CHECK(!(k ? opd_npy_load(path) : opd_npy_parse(copy, g->n)));
        } else {
            f = k ? opd_tensor_file_open(path) : opd_tensor_file_parse(copy, g->n, NULL, NULL);
            if (f) { CHECK(!opd_tensor_file_at(f, 0)); }
        }
        message = opd_error_message();
        if (!strstr(message, text)) { printf("%s %s: '%s', expected '%s'\n", g->kind, g->name, message, text); }
        CHECK(opd_error_code() == OPD_ERROR_FILE && strstr(message, text));
        CHECK(strstr(message, k ? path : "memory") != NULL);
        opd_error_clear();
        opd_tensor_file_close(f);
        free(copy);
    }
}
static char *of_line(char *text, const char **name) {     /* the name, in clear or as x and hex; the rest is returned */
    static char clear[200];
    char *rest = strchr(text, ' ');
    *rest++ = 0;
    *name = text;
    if (text[0] == 'x') { clear[unhex(text + 1, (unsigned char *)clear)] = 0; *name = clear; }
    return rest;
}
typedef struct golden_state {
    golden g;
    opd_tensor_file *file;
    opd_tensor *tensors[16];
    char names[16][64];
    char metadata[8][64];
    int n, nmeta, files, refused, same, streams;
} golden_state;
static void golden_same(golden_state *st) {
    static unsigned char got[1 << 15];
    const char *path = in_folder("same"), *names[16], *metadata[9];
    int i;
    for (i = 0; i < st->n; i++) { names[i] = st->names[i]; }
    for (i = 0; i < st->nmeta; i++) { metadata[i] = st->metadata[i]; }
    metadata[i] = NULL;
    if (strcmp(st->g.kind, "npy") == 0) {
        CHECK_INT(opd_npy_save(path, st->tensors[0]), 0);
        if (check_big_endian()) { st->same++; return; }       /* NumPy, too, writes this machine's order */
    } else {
        CHECK_INT(opd_safetensors_save(path, names, opd_tensors_of(st->tensors, st->n),
                                       st->nmeta ? metadata : NULL), 0);
    }
    CHECK_OK();
    CHECK_INT(read_file(path, got, sizeof got), st->g.n);
    if (memcmp(got, bytes, st->g.n) != 0) { printf("%s %s: other bytes\n", st->g.kind, st->g.name); }
    CHECK(memcmp(got, bytes, st->g.n) == 0);
    st->same++;
}
/* Every allocation of opening and reading fails once. */
static void golden_without_memory(golden_state *st) {
    unsigned char *copy = exactly(bytes, st->g.n);
    bool done = false;
    int64_t k;
    for (k = 1; !done; k++) {
        const int64_t live = opd_memory_stats().live;
        OPD_SCOPE {
            opd_tensor_file *f;
            int i;
            (void)opd_memory_fail_at(k, false);
            f = opd_tensor_file_parse(copy, st->g.n, NULL, NULL);
            for (i = 0; f && opd_ok() && i < st->n; i++) { (void)opd_tensor_file_at(f, i); }
            (void)opd_memory_fail_at(0, false);
            done = opd_ok();
            CHECK(done || opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
            opd_tensor_file_close(f);
        }
        CHECK_INT(opd_memory_stats().live, live);
    }
    CHECK(k > 4);
    free(copy);
}
static void golden_end(golden_state *st) {
    int i;
    if (st->file) { golden_without_memory(st); }
    if (st->file) { CHECK_INT(opd_tensor_file_count(st->file), st->n); }
    for (i = 0; i < st->n; i++) { opd_release(st->tensors[i]); }
    opd_tensor_file_close(st->file);
    st->file = NULL;
    st->n = st->nmeta = 0;
}
static void golden_tensor(golden_state *st) {
    const char *name;
    char *rest = of_line(line + 2, &name);
    opd_tensor *t;
    if (strcmp(st->g.kind, "npy") == 0) {
        const char *path = in_folder("good");
        unsigned char *copy = exactly(bytes, st->g.n);
        char again[1 << 10];
        snprintf(again, sizeof again, "%s", rest);
        check_tensor(opd_npy_parse(copy, st->g.n), again, st->g.name);
        free(copy);
        write_file(path, bytes, st->g.n);
        t = opd_npy_load(path);
    } else {
        if (!st->file) {
            const char *path = in_folder("good");
            write_file(path, bytes, st->g.n);
            st->file = st->files % 2 ? opd_tensor_file_open(path)
                : opd_tensor_file_parse(exactly(bytes, st->g.n), st->g.n, free_it, NULL);
        }
        t = opd_tensor_file_get(st->file, name);
    }
    check_tensor(t, rest, st->g.name);
    if (st->n == 16) { CHECK(0); return; }
    snprintf(st->names[st->n], 64, "%s", name);
    st->tensors[st->n++] = opd_keep(t);
}
static void golden_stream(void) {
    char name[64];
    static char hex[1 << 14];
    unsigned length, crc;
    uint32_t sum = 0;
    size_t n;
    unsigned char *out, *in;
    const char *wrong;
    CHECK(sscanf(line, "deflate %63s %16383s %u %x", name, hex, &length, &crc) == 4);
    n = unhex(hex, bytes);
    in = exactly(bytes, n);
    out = (unsigned char *)malloc(length ? length : 1);
    wrong = inside_inflate(in, n, out, length, &sum);
    if (wrong) { printf("%s: %s\n", name, wrong); }
    CHECK(wrong == NULL);
    CHECK(wrong || sum == crc);
    CHECK(inside_inflate(in, n - 1, out, length, &sum) != NULL);
    free(in);
    free(out);
}
TEST(golden_files) {
    static golden_state st;
    FILE *f = check_golden("exchange.txt");
    int i;
    CHECK_OR_RETURN(f && folder()[0]);
    memset(&st, 0, sizeof st);
    while (fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "file ", 5) == 0) {
            static char hex[1 << 16];
            golden_end(&st);
            CHECK(sscanf(line, "file %15s %63s %15s %65535s", st.g.kind, st.g.name, st.g.verdict, hex) == 4);
            st.g.n = unhex(hex[0] == '-' ? "" : hex, bytes);
            st.files++;
        } else if (line[0] == '~') {
            golden_bad(&st.g, line + 2);
            st.refused++;
        } else if (line[0] == '=') {
            OPD_SCOPE { golden_tensor(&st); }
        } else if (line[0] == 'm') {
            const char *text = strtok(line + 2, " ");
            for (i = 0; i < 2; i++, text = strtok(NULL, " ")) {
                st.metadata[st.nmeta][unhex(text, (unsigned char *)st.metadata[st.nmeta])] = 0;
                st.nmeta++;
            }
            CHECK_STR(opd_tensor_file_metadata(st.file, st.metadata[st.nmeta - 2]), st.metadata[st.nmeta - 1]);
            CHECK_STR(opd_tensor_file_metadata_key(st.file, st.nmeta / 2 - 1), st.metadata[st.nmeta - 2]);
        } else if (strncmp(line, "same", 4) == 0) {
            golden_same(&st);
        } else if (strncmp(line, "deflate ", 8) == 0) {
            golden_stream();
            st.streams++;
        }
    }
    golden_end(&st);
    fclose(f);
    CHECK(st.files > 180 && st.refused > 130 && st.same > 20 && st.streams > 20);
}

static int deleted;
static void count_deleted(void *data, void *user) {
    (void)data;
    CHECK(user == &deleted);
    deleted++;
}
/* Tensors that use a file's memory keep it, also after the file is closed.  Writes to them do not reach the file. */
TEST(safetensors_memory) {
    const float a[] = {1, 2, 3, 4, 5, 6};
    const int64_t sizes[] = {2, 3};
    const char *names[] = {"w", "v"}, *path = in_folder("memory");
    static unsigned char data[1000], again[1000];
    opd_tensor *kept = NULL;
    opd_tensor_file *f;
    size_t n;
    OPD_SCOPE {
        opd_tensor *t = opd_tensor_from(a, ints(sizes, 2), OPD_FLOAT32), *both[2];
        both[0] = t;
        both[1] = opd_transpose(t, 0, 1);
        opd_tensor_set_requires_grad(both[0], true);
        CHECK_INT(opd_safetensors_save(path, names, opd_tensors_of(both, 2), NULL), 0);
        CHECK_OK();
    }
    n = read_file(path, data, sizeof data);
    deleted = 0;
    f = opd_tensor_file_parse(data, n, count_deleted, &deleted);
    CHECK_OR_RETURN(f);
    CHECK_INT(opd_tensor_file_count(f), 2);
    CHECK_STR(opd_tensor_file_name(f, 0), "v");              /* sorted */
    CHECK_STR(opd_tensor_file_name(f, 1), "w");
    CHECK(!opd_tensor_file_name(f, 2) && !opd_tensor_file_name(f, -1));
    CHECK_INT(opd_tensor_file_find(f, "w"), 1);
    CHECK_INT(opd_tensor_file_find(f, "w.npy"), -1);
    CHECK_INT(opd_tensor_file_find(f, ""), -1);
    CHECK_INT(opd_tensor_file_find(f, NULL), -1);
    CHECK(!opd_tensor_file_metadata(f, "format") && !opd_tensor_file_metadata_key(f, 0));
    OPD_SCOPE {
        opd_tensor *v = opd_tensor_file_get(f, "v");
        const float turned[] = {1, 4, 2, 5, 3, 6};
        CHECK(v && opd_size(v, 0) == 3 && memcmp(opd_data(v), turned, sizeof turned) == 0);
        CHECK(check_big_endian() || ((unsigned char *)opd_data(v) > data && (unsigned char *)opd_data(v) < data + n));
        CHECK(!opd_tensor_requires_grad(v));
        kept = opd_keep(opd_select(opd_tensor_file_get(f, "w"), 0, 1));
    }
    opd_tensor_file_close(f);
    CHECK_INT(deleted, check_big_endian());       /* there tensors are copies */
    CHECK(kept && opd_data_f32(kept)[2] == 6);
    opd_release(kept);
    CHECK_INT(deleted, 1);
    f = opd_tensor_file_open(path);
    CHECK_OR_RETURN(f);
    OPD_SCOPE {
        opd_tensor *v = opd_tensor_file_get(f, "v");
        opd_tensor_file_close(f);
        CHECK_OR_RETURN(v);
        opd_data_f32(v)[0] = 100;
        CHECK(opd_data_f32(v)[0] == 100 && opd_data_f32(v)[5] == 6);
    }
    CHECK_INT(read_file(path, again, sizeof again), n);
    CHECK(memcmp(again, data, n) == 0);
}
TEST(npz_round_trip) {
    const char *names[] = {"a", "b.npy", "gr\xc3\xbcn"}, *path = in_folder("trip.npz");
    const int64_t sizes[] = {3, 700}, none = 0;
    int big;
    for (big = 0; big < 2; big++) {                           /* with fields of 32 and of 64 bits */
        opd_tensor *in[3];
        opd_tensor_file *f;
        int64_t i;
        in[0] = opd_randn(ints(sizes, 2), OPD_FLOAT32);
        in[1] = opd_transpose(in[0], 0, 1);
        in[2] = opd_tensor_new(ints(&none, 1), OPD_BOOL);
        if (big) { inside_zip64_from(100); }
        CHECK_INT(opd_npz_save(path, names, opd_tensors_of(in, 3)), 0);
        inside_zip64_from(0xffffffffu);
        f = opd_tensor_file_open(path);
        CHECK_OK();
        CHECK_OR_RETURN(f);
        CHECK_INT(opd_tensor_file_count(f), 3);
        for (i = 0; i < 3; i++) {
            opd_tensor *t = opd_tensor_file_at(f, i);
            CHECK_STR(opd_tensor_file_name(f, i), names[i]);
            CHECK_INT(opd_tensor_file_find(f, names[i]), i);
            CHECK_OR_RETURN(t);
            CHECK(opd_dtype(t) == opd_dtype(in[i]) && opd_is_contiguous(t));
            CHECK_INT(opd_equal(t, in[i]), 1);
        }
        CHECK_INT(opd_tensor_file_find(f, "a.npy"), 0);
        CHECK_INT(opd_tensor_file_find(f, "b"), -1);
        CHECK(!opd_tensor_file_get(f, "c"));
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "has no tensor 'c'");
        CHECK(!opd_tensor_file_at(f, 3));
        CHECK_ERROR(OPD_ERROR_INDEX, "no tensor 3: the file has 3");
        opd_tensor_file_close(f);
    }
    opd_tensor_file_close(NULL);
    CHECK_INT(opd_tensor_file_count(NULL), 0);
    CHECK(!opd_tensor_file_name(NULL, 0) && !opd_tensor_file_metadata(NULL, "a"));
    CHECK_INT(opd_npz_save(path, NULL, opd_tensors_of(NULL, 0)), 0);
    {
        opd_tensor_file *f = opd_tensor_file_open(path);
        CHECK(f && opd_tensor_file_count(f) == 0);
        opd_tensor_file_close(f);
    }
}
TEST(kinds_of_files) {
    const int64_t sizes[] = {2, 2};
    const char *name = "a", *path = in_folder("kind");
    opd_tensor *t = opd_randn(ints(sizes, 2), OPD_FLOAT32);
    opd_value value = opd_value_tensor(t);
    CHECK_INT(opd_npy_save(path, t), 0);
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_NPY);
    CHECK_INT(opd_npz_save(path, &name, opd_tensors_of(&t, 1)), 0);
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_NPZ);
    CHECK_INT(opd_safetensors_save(path, &name, opd_tensors_of(&t, 1), NULL), 0);
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_SAFETENSORS);
    CHECK_INT(opd_checkpoint_file_save(path, &name, &value, 1), 0);
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_CHECKPOINT);
    CHECK_OK();
    write_file(path, "some text, and no more", 22);
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_NONE);
    write_file(path, "", 0);
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_NONE);
    CHECK_OK();
    CHECK_INT(opd_file_kind_of(in_folder("none")), OPD_FILE_NONE);
    CHECK_ERROR(OPD_ERROR_FILE, "opd_file_kind_of");
}
/* The kind of a file of these bytes; an error is of `text`, and where there is none nothing is known of it: text NULL. */
static opd_file_kind kind_of(const void *data, size_t count, const char *text) {
    const char *path = in_folder("kind");
    write_file(path, data, count);
    const opd_file_kind kind = opd_file_kind_of(path);
    if (text) { CHECK_ERROR(OPD_ERROR_FILE, text); }
    CHECK_OK();
    return kind;
}
/* A damaged file of each kind gives an error with a text, or is still a valid file of its kind. */
TEST(damaged_files_say_so) {
    static unsigned char whole[1 << 16], part[1 << 16];
    const int64_t sizes[] = {2, 2};
    const char *const names[] = {"a"}, *const paths[] = {"kind.npy", "kind.npz", "kind.safetensors", "kind.pt"};
    const opd_file_kind kinds[] = {OPD_FILE_NPY, OPD_FILE_NPZ, OPD_FILE_SAFETENSORS, OPD_FILE_CHECKPOINT};
    opd_tensor *t = opd_ones(ints(sizes, 2), OPD_FLOAT32);
    opd_value value = opd_value_tensor(t);
    CHECK_INT(opd_npy_save(in_folder(paths[0]), t), 0);
    CHECK_INT(opd_npz_save(in_folder(paths[1]), names, opd_tensors_of(&t, 1)), 0);
    CHECK_INT(opd_safetensors_save(in_folder(paths[2]), names, opd_tensors_of(&t, 1), NULL), 0);
    CHECK_INT(opd_checkpoint_file_save(in_folder(paths[3]), names, &value, 1), 0);
    CHECK_OK();
    for (int i = 0; i < 4; i++) {
        const size_t n = read_file(in_folder(paths[i]), whole, sizeof whole);
        CHECK_INT(kind_of(whole, n, NULL), kinds[i]);
        for (size_t cut = 1; cut < n; cut++) {
            if (!check_visits(cut, n)) { continue; }
            const char *path = in_folder("kind");
            write_file(path, whole, cut);
            const opd_file_kind kind = opd_file_kind_of(path);
            CHECK(kind == OPD_FILE_NONE || (kind == kinds[i] && i == 0));
            if (kind == OPD_FILE_NONE && opd_ok() && cut > 1 && (cut > 2 || whole[0] != 'P')) {
                printf("%s cut to %d bytes: nothing is said\n", paths[i], (int)cut);
                CHECK(!"silent");
            }
            opd_error_clear();
        }
        for (size_t at = 0; at < 9; at++) {           /* a first byte that is another; the tenth of a zip file is data */
            memcpy(part, whole, n);
            part[at] ^= 0x5a;
            const char *path = in_folder("kind");
            write_file(path, part, n);
            const opd_file_kind kind = opd_file_kind_of(path);
            if (kind == OPD_FILE_NONE && opd_ok()) {
                printf("%s with another byte %d: nothing is said\n", paths[i], (int)at);
                CHECK(!"silent");
            }
            opd_error_clear();
        }
        (void)remove(in_folder(paths[i]));
    }
    CHECK_INT(kind_of("{\0\0\0\0\0\0\0{\"a\":1}", 15, "would have 123 bytes of 7"), OPD_FILE_NONE);
    CHECK_INT(kind_of("\7\0\0\0\0\0\0\0{\"a\":1}", 15, "expected '{', not '1'"), OPD_FILE_NONE);
    CHECK_INT(kind_of("\7\0\0\0\0\0\0\0[\"a\",1]", 15, "the header begins with '[', not with '{'"), OPD_FILE_NONE);
    CHECK_INT(kind_of("\7\0\0\0\0\0\0\0", 8, "too few"), OPD_FILE_NONE);
    CHECK_INT(kind_of("PK\3\4", 4, "the zip file ends without a directory"), OPD_FILE_NONE);
    CHECK_INT(kind_of("\x80\2\x8a\n\x6c\xfc", 6, "incomplete"), OPD_FILE_NONE);
    CHECK_INT(kind_of("\0NUMPY\1\0 and so on", 18, "almost those of a .npy file"), OPD_FILE_NONE);
    CHECK_INT(kind_of("var x = {\"a\": 1}; and so on", 27, NULL), OPD_FILE_NONE);
    CHECK_INT(kind_of("abc", 3, NULL), OPD_FILE_NONE);
    CHECK_INT(kind_of("\211PNG\r\n\032\n and so on", 18, NULL), OPD_FILE_NONE);
    CHECK_INT(kind_of("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0", 16, NULL), OPD_FILE_NONE);
    CHECK_INT(opd_file_kind_of(folder()), OPD_FILE_NONE);
    CHECK_ERROR(OPD_ERROR_FILE, "directory");
    CHECK_INT(opd_file_kind_of(NULL), OPD_FILE_NONE);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK_INT(opd_file_kind_of(in_folder("none")), OPD_FILE_NONE);
    CHECK_ERROR(OPD_ERROR_FILE, "No such file");
}
TEST(many_tensors) {
    enum { MANY = 70000 };                                    /* more than a zip file's 16 bits count */
    static char text[MANY][8];
    static const char *names[MANY];
    static opd_tensor *in[MANY];
    const char *path = in_folder("many");
    opd_tensor *t = opd_tensor_wrapped_number(opd_value_int(5));
    int i, zip;
    for (i = 0; i < MANY; i++) {
        snprintf(text[i], sizeof text[i], "t%d", i);
        names[i] = text[i];
        in[i] = t;
    }
    for (zip = 0; zip < 2; zip++) {
        opd_tensor_file *f;
        CHECK_INT(zip ? opd_npz_save(path, names, opd_tensors_of(in, MANY))
                      : opd_safetensors_save(path, names, opd_tensors_of(in, MANY), NULL), 0);
        f = opd_tensor_file_open(path);
        CHECK_OK();
        CHECK_OR_RETURN(f);
        CHECK_INT(opd_tensor_file_count(f), MANY);
        for (i = 0; i < MANY; i += 997) {
            OPD_SCOPE { CHECK(opd_item_i64(opd_tensor_file_get(f, names[i])) == 5); }
        }
        opd_tensor_file_close(f);
        names[MANY - 1] = names[7];
        CHECK_INT(zip ? opd_npz_save(path, names, opd_tensors_of(in, MANY))
                      : opd_safetensors_save(path, names, opd_tensors_of(in, MANY), NULL), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "two tensors have the name 't7'");
        names[MANY - 1] = text[MANY - 1];
    }
    (void)remove(path);
}

#include <dirent.h>
static int files_in_folder(void) {
    DIR *d = opendir(folder());
    int n = 0;
    CHECK(d != NULL);
    while (d && readdir(d)) { n++; }
    if (d) { closedir(d); }
    return n - 2;
}
/* If something cannot be read or written, the call fails with an error, and no file remains. */
TEST(refused) {
    const int64_t n = 3, huge[] = {3};
    opd_tensor *t = opd_ones(ints(&n, 1), OPD_FLOAT32), *bf = opd_ones(ints(&n, 1), OPD_BFLOAT16);
    opd_tensor *c = opd_tensor_new(ints(&n, 1), OPD_COMPLEX128), *null = NULL;
    opd_tensor *meta = opd_tensor_new_on(ints(huge, 1), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    const char *name = "a", *bad = "\xff", *null_name = NULL, *metadata_name = "__metadata__";
    const char *odd[] = {"key", NULL}, *bad_value[] = {"key", "\xc3", NULL};
    const char *path = in_folder("refused");
    const int before = files_in_folder();
    CHECK(!opd_npy_load(in_folder("no such file")));
    CHECK_ERROR(OPD_ERROR_FILE, "no such file: cannot be read: No such file or directory");
    CHECK(!opd_npy_load(folder()));
    CHECK_ERROR(OPD_ERROR_FILE, "cannot be read: Is a directory");
    CHECK(!opd_npy_load(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_npy_load: the path is NULL");
    CHECK(!opd_npy_parse(NULL, 9));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_npy_parse: the data is NULL");
    CHECK(!opd_tensor_file_open("/dev/null"));
    CHECK_ERROR(OPD_ERROR_FILE, "/dev/null, byte 0: 0 bytes are too few");
    CHECK(!opd_tensor_file_open(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
    deleted = 0;
    CHECK(!opd_tensor_file_parse(NULL, 0, count_deleted, &deleted));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the data is NULL");
    CHECK(!opd_tensor_file_parse(bytes, 3, count_deleted, &deleted));
    CHECK_ERROR(OPD_ERROR_FILE, "3 bytes are too few");
    (void)opd_fail(OPD_ERROR_USER, "pending");
    CHECK(!opd_tensor_file_parse(bytes, 3, count_deleted, &deleted) && !opd_tensor_file_open(path));
    CHECK(!opd_npy_load(path) && !opd_npy_parse(bytes, 3) && opd_npy_save(path, t) == -1);
    CHECK(opd_npz_save(path, &name, opd_tensors_of(&t, 1)) == -1);
    CHECK(opd_safetensors_save(path, &name, opd_tensors_of(&t, 1), NULL) == -1);
    CHECK_ERROR(OPD_ERROR_USER, "pending");
    CHECK_INT(deleted, 3);

    CHECK_INT(opd_npy_save("/no/such/folder/x", t), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "opd_npy_save: /no/such/folder/x: cannot be written: No such file or directory");
    CHECK_INT(opd_npy_save(NULL, t), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
    CHECK_INT(opd_npy_save(path, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
    CHECK_INT(opd_npy_save(path, meta), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has no data (it is a meta tensor)");
    CHECK_INT(opd_npy_save(path, bf), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "NumPy has no dtype bfloat16");
    CHECK_INT(opd_npz_save(path, &name, opd_tensors_of(&bf, 1)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "entry 'a': NumPy has no dtype bfloat16");
    CHECK_INT(opd_safetensors_save(path, &name, opd_tensors_of(&c, 1), NULL), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "entry 'a': safetensors has no dtype complex128");
    CHECK_INT(opd_safetensors_save(path, &name, opd_tensors_of(&null, 1), NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
    CHECK_INT(opd_safetensors_save(path, NULL, opd_tensors_of(&t, 1), NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the names or tensors are NULL");
    CHECK_INT(opd_safetensors_save(NULL, &name, opd_tensors_of(&t, 1), NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
    CHECK_INT(opd_safetensors_save(path, &null_name, opd_tensors_of(&t, 1), NULL), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "a name is NULL");
    CHECK_INT(opd_npz_save(path, &bad, opd_tensors_of(&t, 1)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "is not UTF-8");
    CHECK_INT(opd_safetensors_save(path, &metadata_name, opd_tensors_of(&t, 1), NULL), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "entry '__metadata__': a tensor cannot have this name");
    CHECK_INT(opd_safetensors_save(path, &name, opd_tensors_of(&t, 1), odd), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "a value of the metadata is NULL");
    CHECK_INT(opd_safetensors_save(path, &name, opd_tensors_of(&t, 1), bad_value), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "a value of the metadata '\xc3' is not UTF-8");
    CHECK_INT(files_in_folder(), before);

    if (access("/dev/full", F_OK) == 0) {                     /* written as it is, not replaced: asked first */
        CHECK_OR_RETURN(inside_is_special("/dev/null") && inside_is_special("/dev/full"));
        CHECK_INT(opd_npy_save("/dev/full", t), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "/dev/full: cannot be written: No space left on device");
        CHECK_INT(opd_npy_save("/dev/null", t), 0);
    }
}
/* An existing file is replaced atomically, or remains unchanged. */
TEST(whole_or_not_at_all) {
    const int64_t n = 3;
    opd_tensor *t = opd_ones(ints(&n, 1), OPD_FLOAT32), *bf = opd_ones(ints(&n, 1), OPD_BFLOAT16);
    const char *path = in_folder("whole"), *names[] = {"a", "b"};
    opd_tensor *both[2];
    unsigned char was[1000], is[1000];
    size_t size;
    int before;
    both[0] = t;
    both[1] = bf;
    write_file(in_folder("whole.tmp0"), "x", 1);              /* somebody else's */
    CHECK_INT(opd_npy_save(path, t), 0);
    size = read_file(path, was, sizeof was);
    before = files_in_folder();
    CHECK_INT(opd_npz_save(path, names, opd_tensors_of(both, 2)), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "NumPy has no dtype bfloat16");
    CHECK_INT(read_file(path, is, sizeof is), size);
    CHECK(memcmp(was, is, size) == 0);
    CHECK_INT(files_in_folder(), before);
    CHECK_INT(opd_npz_save(path, names, opd_tensors_of(both, 1)), 0);
    CHECK_INT(files_in_folder(), before);
    CHECK(read_file(in_folder("whole.tmp0"), is, sizeof is) == 1 && is[0] == 'x');
    {
        opd_tensor_file *f = opd_tensor_file_open(path);
        CHECK(f && opd_tensor_file_get(f, "a"));
        opd_tensor_file_close(f);
    }
}
static const char graph_text[] =
    "graph(%x : Tensor):\n  %c : Float(2, strides=[1]) = prim::Constant[value= 1  2 [ CPUFloatType{2} ]]()\n"
    "  %y : Tensor = aten::mul(%x, %c)\n  return (%y)\n";
TEST(files_without_memory) {
    const int64_t sizes[] = {2, 3};
    const char *path = in_folder("oom"), *names[] = {"a", "b"}, *metadata[] = {"k", "v", NULL};
    int64_t k;
    int before, what;
    opd_graph *graph = opd_graph_parse(graph_text), *again = NULL;
    write_file(path, "x", 1);
    before = files_in_folder();
    for (what = 0; what < 8; what++) {
        for (k = 1; k < 1000; k++) {
            bool done = false;
            OPD_SCOPE {
                opd_tensor *in[2];
                opd_tensor_file *f = NULL;
                in[0] = opd_ones(ints(sizes, 2), OPD_FLOAT32);
                in[1] = opd_transpose(in[0], 0, 1);
                (void)opd_memory_fail_at(k, false);
                switch (what) {
                case 0: (void)opd_npy_save(path, in[1]); break;
                case 1: (void)opd_npy_load(path); break;
                case 2: (void)opd_npz_save(path, names, opd_tensors_of(in, 2)); break;
                case 4: (void)opd_safetensors_save(path, names, opd_tensors_of(in, 2), metadata); break;
                case 6: (void)opd_graph_save(graph, path); break;
                case 7: again = opd_graph_load(path); break;
                default: f = opd_tensor_file_open(path); break;
                }
                if (f) { (void)opd_tensor_file_get(f, "b"); }
                (void)opd_memory_fail_at(0, false);
                done = opd_ok();
                CHECK(done || opd_error_code() == OPD_ERROR_MEMORY);
                CHECK(!again || done);
                opd_error_clear();
                opd_tensor_file_close(f);
            }
            CHECK_INT(files_in_folder(), before);
            if (done) { break; }
        }
        CHECK(k > 1 && k < 100);
    }
    CHECK(again && opd_graph_count(again, NULL) == opd_graph_count(graph, NULL));
    opd_graph_free(again);
    opd_graph_free(graph);
    (void)remove(path);
}
/* If the disk is full, the existing file remains, and no other file is left. */
TEST(files_without_room) {
    const int64_t sizes[] = {300, 300};
    const char *path = in_folder("room"), *name = "a";
    opd_tensor *t = opd_ones(ints(sizes, 2), OPD_FLOAT32);
    opd_graph *graph = opd_graph_parse(graph_text);
    struct rlimit was, low;
    unsigned char is[8];
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    int before, what;
    write_file(path, "x", 1);
    before = files_in_folder();
    CHECK_OR_RETURN(getrlimit(RLIMIT_FSIZE, &was) == 0);
    low = was;
    for (what = 0; what < 8; what++) {
        const char *to = what < 4 ? path : "/dev/full";
        if (what >= 4 && !inside_is_special(to)) { continue; }
        low.rlim_cur = what == 3 ? 100 : 100000;
        if (what < 4) { CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0); }
        switch (what % 4) {
        case 0: CHECK_INT(opd_npy_save(to, t), -1); break;
        case 1: CHECK_INT(opd_npz_save(to, &name, opd_tensors_of(&t, 1)), -1); break;
        case 2: CHECK_INT(opd_safetensors_save(to, &name, opd_tensors_of(&t, 1), NULL), -1); break;
        default: CHECK_INT(opd_graph_save(graph, to), -1); break;
        }
        CHECK(setrlimit(RLIMIT_FSIZE, &was) == 0);
        CHECK_ERROR(OPD_ERROR_FILE, what < 4 ? "cannot be written: File too large"
                    : "cannot be written: No space left on device");
        CHECK(read_file(path, is, sizeof is) == 1 && is[0] == 'x');
        CHECK_INT(files_in_folder(), before);
    }
    (void)signal(SIGXFSZ, handler);
    opd_graph_free(graph);
    (void)remove(path);
}
/* A file through a pipe whose writer goes on for ever: as much is read as the beginning says. */
typedef enum { PIPE_NPY, PIPE_SAFETENSORS, PIPE_GRAPH } piped;
static bool through_pipe(piped kind, const unsigned char *bytes, size_t n, bool goes_on) {
    opd_tensor_file *f = NULL;
    opd_graph *g = NULL;
    char path[40];
    int ends[2];
    bool ok = false;
    if (pipe(ends)) { CHECK(!"pipe"); return false; }
    CHECK(write(ends[1], bytes, n) == (ssize_t)n);
    if (!goes_on) { (void)close(ends[1]); }
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    switch (kind) {
    case PIPE_NPY: ok = opd_npy_load(path) != NULL; break;
    case PIPE_SAFETENSORS: ok = (f = opd_tensor_file_open(path)) != NULL && opd_tensor_file_get(f, "a"); break;
    case PIPE_GRAPH: ok = (g = opd_graph_load(path)) != NULL; break;
    }
    opd_tensor_file_close(f);
    opd_graph_free(g);
    if (goes_on) { (void)close(ends[1]); }
    (void)close(ends[0]);
    return ok;
}
TEST(pipes_end_where_they_say) {
    const char *names[] = {"a"}, *path = in_folder("piped");
    const int64_t three = 3;
    opd_tensor *t = opd_ones(ints(&three, 1), OPD_FLOAT32);
    opd_graph *g;
    unsigned char bytes[4096];
    size_t n;
    int kind;
    if (access("/dev/fd/0", F_OK) != 0) { SKIP("no /dev/fd"); }
    g = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::exp(%x)\n  return (%y)\n");
    for (kind = PIPE_NPY; kind <= PIPE_GRAPH; kind++) {
        CHECK_INT(kind == PIPE_NPY ? opd_npy_save(path, t) : kind == PIPE_GRAPH ? opd_graph_save(g, path) :
                  opd_safetensors_save(path, names, opd_tensors_of(&t, 1), NULL), 0);
        n = read_file(path, bytes, sizeof bytes);
        CHECK(n > 40 && n < sizeof bytes);
        CHECK(through_pipe((piped)kind, bytes, n, true));
        CHECK(through_pipe((piped)kind, bytes, n, false));
        CHECK_OK();
        CHECK(!through_pipe((piped)kind, bytes, n - 1, false));
        CHECK_ERROR(OPD_ERROR_FILE, "/dev/fd/");
    }
    CHECK_INT(opd_npz_save(path, names, opd_tensors_of(&t, 1)), 0);
    n = read_file(path, bytes, sizeof bytes);
    CHECK(!through_pipe(PIPE_SAFETENSORS, bytes, n, true));
    CHECK_ERROR(OPD_ERROR_FILE, "a zip file cannot be read from a pipe");
    CHECK(!opd_npy_load("/dev/zero"));
    CHECK_ERROR(OPD_ERROR_FILE, "/dev/zero, byte 0: this is not a .npy file");
    CHECK(!opd_tensor_file_open("/dev/zero"));
    CHECK_ERROR(OPD_ERROR_FILE, "/dev/zero, byte 8: the header begins with the byte \\x00, not with '{'");
    CHECK(!opd_graph_load("/dev/zero"));
    CHECK_ERROR(OPD_ERROR_FILE, "not a file of a graph");
    memcpy(bytes, "\x93NUMPY\2\0\xff\xff\xff\xff", 12);       /* a header of 4 GiB that does not come */
    CHECK(!through_pipe(PIPE_NPY, bytes, 12, false));
    CHECK(!opd_ok());
    opd_error_clear();
    opd_graph_free(g);
    (void)remove(path);
}
/* The temporary file can be read only by users who can read the old file.  A link remains a link, and its target is
   replaced. */
TEST(permissions_stay) {
    const char *path = in_folder("mode"), *other = in_folder("other");
    opd_tensor *t = opd_ones(ints(NULL, 0), OPD_FLOAT32);
    unsigned char is[8];
    struct stat st;
    write_file(path, "x", 1);
    CHECK(chmod(path, 0600) == 0);
    CHECK_INT(opd_npy_save(path, t), 0);
    CHECK(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600 && st.st_size > 1);
    (void)remove(path);
    write_file(other, "y", 1);
    CHECK(symlink(other, path) == 0);
    CHECK_INT(opd_npy_save(path, t), 0);
    CHECK(read_file(other, is, sizeof is) == sizeof is && is[1] == 'N');
    CHECK(lstat(path, &st) == 0 && S_ISLNK(st.st_mode));
    CHECK(opd_npy_load(path) != NULL);
    (void)remove(path);
    (void)remove(other);
}
/* Saves to the link `path`, to which `target` is written, and removes the link.  Returns true if the link is still a
   link to `target` and, if rc is 0, the tensor is in the file. */
static bool link_stays(const char *path, const char *target, int rc) {
    opd_tensor *t = opd_ones(ints(NULL, 0), OPD_FLOAT32);
    char is[600] = "";
    bool stays = symlink(target, path) == 0 && opd_npy_save(path, t) == rc;
    stays = stays && readlink(path, is, sizeof is - 1) == (ssize_t)strlen(target) && strcmp(is, target) == 0;
    stays = stays && (rc || opd_npy_load(path));
    return remove(path) == 0 && stays;
}
/* The path is a link: to a file that is missing, to another link, to itself, into a folder that cannot be written. */
TEST(links_stay) {
    char path[600], second[600], folder[600], file[700];
    (void)snprintf(path, sizeof path, "%s", in_folder("link"));
    (void)snprintf(second, sizeof second, "%s", in_folder("second"));
    (void)snprintf(folder, sizeof folder, "%s", in_folder("folder"));
    (void)snprintf(file, sizeof file, "%s/file", folder);
    CHECK(link_stays(path, file, -1));                            /* the folder is missing, too */
    CHECK_ERROR(OPD_ERROR_FILE, "/link: cannot be written: No such file or directory");
    CHECK(mkdir(folder, 0700) == 0);
    CHECK(link_stays(path, file, 0) && access(file, F_OK) == 0);
    CHECK(link_stays(path, file, 0) && remove(file) == 0);
    CHECK(link_stays(path, "folder/file", 0) && remove(file) == 0);
    CHECK(symlink("folder/../folder/file", second) == 0);
    CHECK(link_stays(path, "second", 0));
    CHECK(link_stays(path, second, 0) && remove(file) == 0 && remove(second) == 0);
    CHECK(symlink("../third", file) == 0);                        /* relative to the folder of the second link */
    CHECK(link_stays(path, "folder/file", 0) && remove(file) == 0 && remove(in_folder("third")) == 0);
    CHECK(link_stays(path, path, -1));
    CHECK_ERROR(OPD_ERROR_FILE, "/link: cannot be written: Too many levels of symbolic links");
    CHECK(symlink("link", second) == 0 && link_stays(path, "second", -1) && remove(second) == 0);
    CHECK_ERROR(OPD_ERROR_FILE, "Too many levels of symbolic links");
    CHECK(link_stays(path, folder, -1));
    CHECK_ERROR(OPD_ERROR_FILE, "/link: cannot be written: Is a directory");
    write_file(file, "y", 1);
    CHECK(chmod(folder, 0500) == 0);
    if (access(folder, W_OK) != 0) {                              /* not as root */
        CHECK(link_stays(path, file, -1));
        CHECK_ERROR(OPD_ERROR_FILE, "/link: cannot be written: Permission denied");
    }
#if defined(__linux__)
    CHECK(link_stays(path, "/proc/self/missing", -1));            /* as root, too */
    CHECK_ERROR(OPD_ERROR_FILE, "/link: cannot be written: ");
#endif
    CHECK(chmod(folder, 0700) == 0 && remove(file) == 0 && rmdir(folder) == 0);    /* no other file is left */
}
/* Text from a file never reaches a terminal unescaped. */
TEST(errors_are_plain_text) {
    static const char json[] = "{\"a\\u001b[2J\\n\":{\"dtype\":\"F4\",\"shape\":[4],\"data_offsets\":[0,2]}}..";
    unsigned char file[8 + sizeof json];
    opd_tensor_file *f;
    const size_t n = sizeof json - 1;
    memset(file, 0, 8);
    file[0] = (unsigned char)(n - 2);
    memcpy(file + 8, json, n);
    f = opd_tensor_file_parse(file, 8 + n, NULL, NULL);
    CHECK_OR_RETURN(f);
    CHECK_STR(opd_tensor_file_name(f, 0), "a\033[2J\n");
    CHECK(!opd_tensor_file_at(f, 0));
    CHECK_ERROR(OPD_ERROR_FILE, "entry 'a?[2J?'");
    opd_tensor_file_close(f);
}
/* The time for reading grows only linearly with the size of the file. */
TEST(many_keys) {
    enum { KEYS = 100000 };
    opd_tensor_file *f;
    const size_t cap = 8 + 20 * KEYS + 100;
    char *file = (char *)malloc(cap), key[32];
    const clock_t begin = clock();
    size_t at = 8;
    uint64_t n;
    int i, k, twice;
    CHECK_OR_RETURN(file);
    for (twice = 0; twice < 2; twice++) {
        at = 8 + (size_t)snprintf(file + 8, cap - 8, "{\"__metadata__\":{");
        for (i = 0; i < KEYS; i++) {
            at += (size_t)snprintf(file + at, cap - at, "%s\"k%07d\":\"\"", i ? "," : "", twice && i == 77777 ? 5 : i);
        }
        at += (size_t)snprintf(file + at, cap - at, "}}");
        for (n = at - 8, k = 0; k < 8; k++) { file[k] = (char)(n >> 8 * k & 255); }
        f = opd_tensor_file_parse(file, at, NULL, NULL);
        if (twice) {
            (void)snprintf(key, sizeof key, "byte %d: the", 8 + 17 + 14 * 77777);
            CHECK(strstr(opd_error_message(), key) != NULL);
            CHECK_ERROR(OPD_ERROR_FILE, "the metadata has the key 'k0000005' twice");
            continue;
        }
        CHECK_OR_RETURN(f);
        CHECK_STR(opd_tensor_file_metadata_key(f, KEYS - 1), "k0099999");
        CHECK_STR(opd_tensor_file_metadata(f, "k0099999"), "");
        opd_tensor_file_close(f);
    }
    CHECK((clock() - begin) / CLOCKS_PER_SEC < 10);
    free(file);
}
/* One file, several threads. */
static void *read_all(void *user) {
    const opd_tensor_file *f = (const opd_tensor_file *)user;
    int i;
    for (i = 0; i < 200; i++) {
        OPD_SCOPE {
            opd_tensor *a = opd_tensor_file_get(f, "a"), *b = opd_tensor_file_get(f, "b");
            if (!a || !b || opd_data_f32(a)[5] != 1 || opd_data_f32(b)[5] != 1) { return NULL; }
        }
    }
    return opd_ok() ? user : NULL;
}
TEST(files_read_by_threads) {
    const int64_t sizes[] = {2, 3};
    const char *path = in_folder("threads"), *names[] = {"a", "b"};
    int zip, i;
    for (zip = 0; zip < 2; zip++) {
        opd_tensor *in[2];
        opd_tensor_file *f;
        pthread_t threads[4];
        in[0] = in[1] = opd_ones(ints(sizes, 2), OPD_FLOAT32);
        CHECK_INT(zip ? opd_npz_save(path, names, opd_tensors_of(in, 2))
                      : opd_safetensors_save(path, names, opd_tensors_of(in, 2), NULL), 0);
        f = opd_tensor_file_open(path);
        CHECK_OR_RETURN(f);
        for (i = 0; i < 4; i++) { CHECK(pthread_create(&threads[i], NULL, read_all, f) == 0); }
        for (i = 0; i < 4; i++) {
            void *right = NULL;
            CHECK(pthread_join(threads[i], &right) == 0 && right == f);
        }
        opd_tensor_file_close(f);
    }
}

//-- the other direction: exchange.py -------------------------------------------------------------------------------

static int exchange(const char *package, const char *what, const char *with, char *said, size_t cap) {
    char arguments[700];
    snprintf(arguments, sizeof arguments, "%s '%s'", what, with);
    return python("exchange.py", package, arguments, said, cap);
}
TEST(files_read_by_numpy_and_safetensors) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16,
        OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL};
    const char *names[14], *some[13];
    const char *metadata[] = {"format", "pt", "\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87 \"1\"", "a\nb\\", NULL};
    const int64_t sizes[] = {2, 3}, none[] = {0, 4};
    opd_tensor *in[14], *few[13];
    char said[400] = "", file[64];
    int i, n = 0, status;
    for (i = 0; i < 11; i++) {
        opd_tensor *t = opd_tensor_new(ints(sizes, 2), dtypes[i]);
        int64_t k;
        for (k = 0; k < 6; k++) {
            char *p = (char *)opd_data(t) + (size_t)k * opd_dtype_size(dtypes[i]);
            const float f = (float)k;
            const double d = (double)k;
            const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500};
            if (dtypes[i] == OPD_BOOL) { *p = k % 3 == 1; }
            else if (dtypes[i] == OPD_FLOAT16) { memcpy(p, &halves[k], 2); }
            else if (dtypes[i] == OPD_FLOAT32) { memcpy(p, &f, 4); }
            else if (dtypes[i] == OPD_FLOAT64) { memcpy(p, &d, 8); }
            else if (dtypes[i] == OPD_COMPLEX64) { memcpy(p, &f, 4); memcpy(p + 4, &f, 4); }
            else if (dtypes[i] == OPD_COMPLEX128) { memcpy(p, &d, 8); memcpy(p + 8, &d, 8); }
            else { memcpy(p, (char *)&k + (check_big_endian() ? 8 - opd_dtype_size(dtypes[i]) : 0),
                          opd_dtype_size(dtypes[i])); }
        }
        in[i] = t;
        names[i] = opd_dtype_name(dtypes[i]);
        snprintf(file, sizeof file, "%s.npy", names[i]);
        CHECK_INT(opd_npy_save(in_folder(file), t), 0);
    }
    in[11] = opd_transpose(in[6], 0, 1);
    names[11] = "turned";
    in[12] = opd_tensor_wrapped_number(opd_value_int(5));
    names[12] = "gr\xc3\xbcn";
    in[13] = opd_tensor_new(ints(none, 2), OPD_INT16);
    names[13] = "none";
    CHECK_INT(opd_npz_save(in_folder("plain.npz"), names, opd_tensors_of(in, 14)), 0);
    inside_zip64_from(100);
    CHECK_INT(opd_npz_save(in_folder("zip64.npz"), names, opd_tensors_of(in, 14)), 0);
    inside_zip64_from(0xffffffffu);
    for (i = 0; i < 14; i++) {
        if (i == 9) { continue; }
        few[n] = in[i];
        some[n++] = names[i];
    }
    CHECK_INT(opd_safetensors_save(in_folder("all.safetensors"), some, opd_tensors_of(few, 13), metadata), 0);
    status = exchange("safetensors, numpy", "files", folder(), said, sizeof said);
    if (status == 77) { status = exchange("numpy", "files", folder(), said, sizeof said); }
    if (status == 77) { SKIP_WITHOUT_PYTHON("numpy"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 13 files") || strstr(said, "checked: 14 files"));
    if (strstr(said, "no safetensors")) { SKIP_WITHOUT_PYTHON("safetensors: only NumPy has read the files"); }
}
/* Compiles the implementation as a shared library, which remains in $OBJECTS for later programs. */
TEST(dlpack_with_python) {
    const char *cc = getenv("CC"), *kept = getenv("OBJECTS");
    char said[400] = "", library[300], command[2000];
    int status, i;
    if (exchange("numpy", "", "", said, sizeof said) == 77) { SKIP_WITHOUT_PYTHON("numpy"); }
    snprintf(library, sizeof library, "%s/shared.so", kept ? kept : folder());
    /* clang takes a third of gcc's time */
    snprintf(command, sizeof command, "test -f '%s' || { printf '#define OPDISPATCH_IMPLEMENTATION\n#include \"opdispatch.h\"\n' | "
             "$(command -v clang || echo '%s') -x c -O0 -shared -fPIC -I'%s' - -o '%s'.$$ -lm -lpthread && "
             "mv '%s'.$$ '%s'; }", library, cc ? cc : "cc", check_include(), library, library, library);
    CHECK_OR_RETURN(system(command) == 0);
    for (i = 0; i < 2; i++) {                                 /* PyTorch may come with an older NumPy */
        status = exchange(i ? "torch, numpy" : "numpy", "dlpack", library, said, sizeof said);
        if (i && status == 77) { break; }
        if (status) { printf("%s\n", said); }
        CHECK_INT(status, 0);
        CHECK(strstr(said, "checked: unversioned") != NULL);
        if (getenv("OPD_VERBOSE")) { printf("%s\n", said); }
    }
}

CHECK_MAIN()
