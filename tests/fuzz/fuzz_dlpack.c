// Fuzz target for tensors from other libraries: see fuzz.h for how to build and run it.  Input: the fields of a DLPack
// struct.  All fields may be wrong, but there is memory for the sizes and strides.  An accepted tensor has
// these values, and is the same after export and import.  If all of it is in existing memory, it can be read.  Its
// deleter is called once.
#include "fuzz.h"

enum { ROOM = 4096, RANK = 70 };
static unsigned char room[ROOM + 64];             /* read from its 64th byte */
static int64_t sizes[RANK], strides[RANK];
static int deleted;

// The structs of dlpack.h.
typedef struct OPDI_MAY_ALIAS dl_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *sizes, *strides;
    uint64_t byte_offset;
} dl_tensor;
typedef struct OPDI_MAY_ALIAS dl_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    dl_tensor tensor;
} dl_versioned;
typedef struct OPDI_MAY_ALIAS dl_unversioned {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self);
} dl_unversioned;

static void let_go_versioned(struct DLManagedTensorVersioned *m) {
    MUST(((dl_versioned *)(void *)m)->context == room);
    deleted++;
}
static void let_go_unversioned(struct DLManagedTensor *m) {
    MUST(((dl_unversioned *)(void *)m)->context == room);
    deleted++;
}

// Up to eight bytes, after one that says how many and of which sign.
static int64_t next_number(void) {
    const unsigned how = next();
    uint64_t v = 0;
    unsigned i;
    if (how < 0xc0) { return how & 31; }
    for (i = 0; i <= (how & 7); i++) { v |= (uint64_t)next() << 8 * i; }
    return (int64_t)(how & 8 ? 0 - v : v);
}

// How the struct says it.
static struct { unsigned flags; bool versioned, no_data, no_sizes, no_strides, no_deleter; } says;

static void describe(dl_tensor *d) {
    int i;
    d->data = says.no_data ? NULL : room + 64;
    d->device_type = (int32_t)next_number();
    d->device_id = (int32_t)next_number();
    d->code = (uint8_t)next();
    d->bits = (uint8_t)next();
    d->lanes = (uint16_t)next_number();
    d->byte_offset = (uint64_t)next_number();
    d->ndim = (int32_t)next_number();
    for (i = 0; i < d->ndim && i < RANK; i++) {
        sizes[i] = next_number();
        strides[i] = next_number();
    }
    d->sizes = says.no_sizes ? NULL : sizes;
    d->strides = says.no_strides ? NULL : strides;
}
// Whether all of it is in the room.
static bool in_room(const opd_tensor *t) {
    const char *p = (const char *)opd_data(t);
    return p >= (const char *)room && p <= (const char *)room + sizeof room &&
        opd_tensor_storage_bytes(t) <= (const char *)room + sizeof room - p;
}
static void same(const opd_tensor *t, const dl_tensor *d, bool exported) {
    int i;
    MUST(opd_ndim(t) == d->ndim && opd_dtype_size(opd_dtype(t)) * 8 == d->bits && d->lanes == 1);
    for (i = 0; i < d->ndim; i++) {
        MUST(opd_sizes(t)[i] == d->sizes[i]);
        if (d->strides && (!exported || d->sizes[i] > 1)) { MUST(opd_strides(t)[i] == d->strides[i]); }
    }
}
static void use(opd_tensor *t) {
    struct DLManagedTensorVersioned *m = opd_dlpack_export(t, 0);
    int i;
    if (m) {
        const dl_tensor *d = &((const dl_versioned *)(const void *)m)->tensor;
        opd_tensor *back;
        unsigned flags;
        same(t, d, true);
        MUST(!opd_numel(t) || (char *)d->data + d->byte_offset == (char *)opd_data(t));
        back = opd_dlpack_import(m, &flags);
        MUST((back && flags == 0) || opd_error_code() == OPD_ERROR_MEMORY);
        if (back) { same(back, d, true); }
    } else { must_say(OPD_ERROR_MEMORY, ""); }
    for (i = 0; opd_ok() && i < opd_ndim(t); i++) {       /* places are computed, whether or not there is memory */
        if (opd_sizes(t)[i]) { (void)opd_select(t, i, opd_sizes(t)[i] - 1); }
    }
    (void)opd_is_contiguous(t);
    opd_error_clear();
    if (in_room(t) && opd_numel(t) < 4 * ROOM) {
        (void)sum_of(t);
        (void)sum_of(opd_clone(t));
    }
    opd_error_clear();
}

static void one(const uint8_t *data, size_t n) {
    dl_versioned v;
    dl_unversioned u;
    opd_tensor *t;
    unsigned how, flags = 77;
    at = data;
    end = data + n;
    how = next();
    says.versioned = (how & 1) != 0;
    says.no_data = (how & 2) != 0;
    says.no_sizes = (how & 4) != 0;
    says.no_strides = (how & 8) != 0;
    says.no_deleter = (how & 16) != 0;
    memset(&v, 0, sizeof v);
    memset(&u, 0, sizeof u);
    deleted = 0;
    v.major = how & 32 ? (uint32_t)next_number() : 1;
    v.minor = how & 64 ? (uint32_t)next_number() : 0;
    v.flags = how & 128 ? (uint64_t)next_number() : 0;
    v.context = u.context = room;
    v.deleter = says.no_deleter ? NULL : let_go_versioned;
    u.deleter = says.no_deleter ? NULL : let_go_unversioned;
    describe(says.versioned ? &v.tensor : &u.tensor);
    OPD_SCOPE {
        if (says.versioned) {
            const bool ask = next() % 2 == 0;
            t = opd_dlpack_import((struct DLManagedTensorVersioned *)(void *)&v, ask ? &flags : NULL);
            MUST(!ask || flags == (v.major == 1 ? (unsigned)(v.flags & 3) : 0));
            MUST(!t || (v.major == 1 && (ask || !(v.flags & OPD_DLPACK_READ_ONLY))));
        } else {
            t = opd_dlpack_import_unversioned((struct DLManagedTensor *)(void *)&u);
        }
        MUST((t != NULL) == opd_ok());
        if (t) {
            MUST(deleted == 0);
            same(t, says.versioned ? &v.tensor : &u.tensor, false);
            use(t);
        } else {
            MUST(opd_error_message()[0] && deleted == !says.no_deleter);
        }
    }
    MUST(deleted == !says.no_deleter);
}
FUZZ(one)
