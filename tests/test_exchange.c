/* Exchange with other programs: DLPack.  THREADED */
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

#define OPDISPATCH_IMPLEMENTATION
#include "check.h"
#include <pthread.h>

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
/* The memory stays while the other library has it, also when the tensor is given other memory. */
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
    opd_tensor *meta = opd_tensor_new_on(ints(&n, 1), OPD_FLOAT32, opd_device_of(OPD_META, -1));
    CHECK(!opd_dlpack_export(NULL, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_export: the tensor is NULL");
    CHECK(!opd_dlpack_export(meta, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_dlpack_export: this tensor has no memory (it is on meta)");
    CHECK(!opd_dlpack_export(opd_tensor_wrap_key(t, OPD_F_GRAD_WRAPPER), 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "this tensor has no memory (it stands for another one)");
    CHECK_INT(opd_vmap(batched_example, NULL, &t, 1, NULL, &out), 1);
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
                if (!t) { break; }
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
/* Out of one and into another: nothing is copied, and both structs go. */
TEST(dlpack_round_trip) {
    const int64_t sizes[] = {2, 3, 4};
    int k;
    for (k = 0; k < 2; k++) {
        OPD_SCOPE {
            opd_tensor *t = opd_transpose(opd_tensor_new(ints(sizes, 3), OPD_COMPLEX64), 0, 2), *u;
            u = k ? opd_dlpack_import(opd_dlpack_export(t, 0), NULL)
                : opd_dlpack_import_unversioned(opd_dlpack_export_unversioned(t));
            CHECK_OK();
            if (!u) { break; }
            CHECK(opd_data(u) == opd_data(t) && opd_ndim(u) == 3);
            CHECK(memcmp(opd_strides(u), opd_strides(t), 3 * sizeof(int64_t)) == 0);
            CHECK(memcmp(opd_sizes(u), opd_sizes(t), 3 * sizeof(int64_t)) == 0);
        }
    }
}
TEST(dlpack_in_refused) {
    static const struct { const char *text; opd_code code; } kinds[] = {
        {"a struct of DLPack 2.0, this is 1.1", OPD_ERROR_ARGUMENT},
        {"the tensor is read-only", OPD_ERROR_ARGUMENT},
        {"lanes != 1 are not supported, this tensor has 4", OPD_ERROR_DTYPE},
        {"lanes != 1", OPD_ERROR_DTYPE},
        {"Unsupported code 12", OPD_ERROR_DTYPE},
        {"Unsupported code 3", OPD_ERROR_DTYPE},
        {"Unsupported kUInt bits 16", OPD_ERROR_DTYPE},
        {"Unsupported kComplex bits 32", OPD_ERROR_DTYPE},
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
            case 4: d->dtype.code = 12; d->dtype.bits = 8; break;
            case 5: d->dtype.code = 3; d->dtype.bits = 64; break;
            case 6: d->dtype.code = 1; d->dtype.bits = 16; break;
            case 7: d->dtype.code = 5; d->dtype.bits = 32; break;
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
            default: d->data = NULL; break;
            }
            CHECK(!(old ? opd_dlpack_import_unversioned(&f.old) : opd_dlpack_import(&f.versioned, NULL)));
            CHECK_ERROR(kinds[k].code, kinds[k].text);
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

CHECK_MAIN()
