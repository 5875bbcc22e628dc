//----------------------------------------------------------------------------------------------------------------------
//  >>values       half precision, dtypes, devices, what a tensor is
//
//  What a dtype is and which one two of them meet in (c10/core/ScalarType.h), devices by name (c10/core/Device.cpp),
//  the structs of tensors and storages.  Reads elements where they lie and allocates nothing; knows no operators.
//----------------------------------------------------------------------------------------------------------------------

//== half precision ====================================================================================================

OPDI_ALWAYS uint32_t opdi_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}
OPDI_ALWAYS float opdi_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

/* condition ? a : second by masks: a branch here would keep the compiler from vectorising */
OPDI_ALWAYS uint32_t opdi_pick_bits(int condition, uint32_t at, uint32_t second) {
    uint32_t m = 0u - (uint32_t)condition;
    return (at & m) | (second & ~m);
}

OPDI_ALWAYS float opdi_bf16_to_f32(uint16_t half) { return opdi_float((uint32_t)half << 16); }

OPDI_ALWAYS uint16_t opdi_f32_to_bf16(float f) {
    uint32_t bits = opdi_bits(f), rc = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rc);
}

/* Half precision to float: the 15 bits without sign are read as a float with the exponent 112 too small; the
   product is exact. */
OPDI_ALWAYS float opdi_f16_to_f32(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7fffu) << 13, value = opdi_bits(opdi_float(bits) * 5.192296858534828e33f);
    value = opdi_pick_bits(bits >= 0x0f800000u, bits | 0x7f800000u, value);
    return opdi_float(value | (uint32_t)(half & 0x8000u) << 16);
}

/* Float to half precision.  Denormal results: adding 0.5 puts the float's last bit where the half's is, and
   the hardware rounds. */
OPDI_ALWAYS uint16_t opdi_f32_to_f16(float f) {
    uint32_t bits = opdi_bits(f), at = bits & 0x7fffffffu;
    uint32_t normal = (at - 0x38000000u + 0xfffu + ((at >> 13) & 1u)) >> 13;
    uint32_t tiny = opdi_bits(opdi_float(opdi_pick_bits(at < 0x38800000u, at, 0u)) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | ((at >> 13) & 0x3ffu);
    uint32_t rc = opdi_pick_bits(at < 0x38800000u, tiny, normal);
    rc = opdi_pick_bits(at >= 0x477ff000u, 0x7c00u, rc);
    rc = opdi_pick_bits(at > 0x7f800000u, nan, rc);
    return (uint16_t)(rc | (bits >> 16 & 0x8000u));
}

//== eight bits ========================================================================================================

/* A float of eight bits: a sign, exponent bits, `bits` of mantissa.  What lies beyond `most`, the largest code of a
   number, and NaN become `beyond` (infinity, NaN, or `most` itself) and `nan`.  unsigned_zero: there is no -0, its code
   is NaN. */
typedef struct opdi_f8_form {
    uint32_t bits, bias, most, beyond, nan;
    bool unsigned_zero;
} opdi_f8_form;
static const opdi_f8_form opdi_f8_e5m2 = {2, 15, 0x7b, 0x7c, 0x7f, false};
static const opdi_f8_form opdi_f8_e4m3fn = {3, 7, 0x7e, 0x7e, 0x7f, false};
static const opdi_f8_form opdi_f8_e5m2fnuz = {2, 16, 0x7f, 0x80, 0x80, true};
static const opdi_f8_form opdi_f8_e4m3fnuz = {3, 8, 0x7f, 0x80, 0x80, true};

/* Float to eight bits, to nearest even.  Denormal results: adding a power of two puts the float's last bit where that
   of the result is, and the hardware rounds. */
static inline uint8_t opdi_f32_to_f8(float f, const opdi_f8_form *form) {
    const uint32_t bits = opdi_bits(f), at = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u, cut = 23 - form->bits;
    const uint32_t magic = (127 + 24 - form->bias - form->bits) << 23;
    const uint32_t least = (128 - form->bias) << 23;
    uint32_t code;
    if (at > 0x7f800000u) { return (uint8_t)(form->unsigned_zero ? form->nan : form->nan | sign); }
    if (at < least) { code = opdi_bits(opdi_float(at) + opdi_float(magic)) - magic; }
    else { code = ((at + (1u << (cut - 1)) - 1 + (at >> cut & 1)) >> cut) - ((127 - form->bias) << form->bits); }
    if (code > form->most) { return (uint8_t)(form->unsigned_zero ? form->beyond : form->beyond | sign); }
    return (uint8_t)(code || !form->unsigned_zero ? code | sign : 0);
}
/* Eight bits to float, which holds all of them. */
static inline float opdi_f8_to_f32(uint8_t code, const opdi_f8_form *form) {
    const uint32_t at = code & 0x7fu, sign = (uint32_t)(code & 0x80u) << 24;
    if (form->unsigned_zero && code == form->nan) { return opdi_float(0xffc00000u); }
    if (at > form->most) {                        /* infinity, NaN */
        return opdi_float(sign | (form->beyond < form->nan && at == form->beyond ? 0x7f800000u : 0x7fc00000u));
    }
    const float value = opdi_float(at << (23 - form->bits)) * opdi_float((254 - form->bias) << 23);
    return opdi_float(opdi_bits(value) | sign);
}
/* float8_e8m0fnu: an exponent alone. */
static inline float opdi_e8m0_to_f32(uint8_t code) {
    return opdi_float(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : (uint32_t)code << 23);
}
static inline uint8_t opdi_f32_to_e8m0(float f) {
    const uint32_t bits = opdi_bits(f) & 0x7fffffffu, exponent = bits >> 23, part = bits & 0x7fffffu;
    if (exponent == 255) { return 255; }
    const bool up = exponent ? part >= 0x400000u : part > 0x400000u;
    return (uint8_t)(exponent + up);
}

//== dtypes ============================================================================================================

#define OPDI_DTYPES 24                            /* rows of tables of dtypes, see opdi_dtype_at */
/* The row of a dtype in tables; that of a number that is no dtype is 12, which has nothing in it. */
static inline int opdi_dtype_at(int dtype) {
    if ((unsigned)dtype < 16) { return dtype; }
    return dtype >= OPD_FLOAT8_E5M2 && dtype <= OPD_UINT64 ? dtype - 7 : dtype == OPD_FLOAT8_E8M0FNU ? 23 : 12;
}
static inline bool opdi_is_float8(int dtype) {
    return (dtype >= OPD_FLOAT8_E5M2 && dtype <= OPD_FLOAT8_E4M3FNUZ) || dtype == OPD_FLOAT8_E8M0FNU;
}
/* uint16, uint32, uint64: unsigned, and without most of the operators. */
static inline bool opdi_is_bare_unsigned(int dtype) { return dtype >= OPD_UINT16 && dtype <= OPD_UINT64; }
/* True for a dtype that few operators compute with: see >>stored. */
static inline bool opdi_is_stored_dtype(int dtype) { return dtype > OPD_BFLOAT16 || dtype == OPD_COMPLEX32; }

#if defined(OPDI_CORE)

enum { OPDI_CLASS_NONE = 0, OPDI_CLASS_BOOL, OPDI_CLASS_INT, OPDI_CLASS_FLOAT, OPDI_CLASS_COMPLEX };

/* Indexed by opdi_dtype_at; size in bytes, 0 for a number that is no dtype. */
typedef struct opdi_dtype_info { const char *name, *cname; uint8_t size, kind; } opdi_dtype_info;
static const opdi_dtype_info opdi_dtypes[OPDI_DTYPES] = {
    {"uint8", "Byte", 1, OPDI_CLASS_INT}, {"int8", "Char", 1, OPDI_CLASS_INT}, {"int16", "Short", 2, OPDI_CLASS_INT},
    {"int32", "Int", 4, OPDI_CLASS_INT}, {"int64", "Long", 8, OPDI_CLASS_INT}, {"float16", "Half", 2, OPDI_CLASS_FLOAT},
    {"float32", "Float", 4, OPDI_CLASS_FLOAT}, {"float64", "Double", 8, OPDI_CLASS_FLOAT},
    {"complex32", "ComplexHalf", 4, OPDI_CLASS_COMPLEX}, {"complex64", "ComplexFloat", 8, OPDI_CLASS_COMPLEX},
    {"complex128", "ComplexDouble", 16, OPDI_CLASS_COMPLEX}, {"bool", "Bool", 1, OPDI_CLASS_BOOL}, {"?", "?", 0, 0},
    {"?", "?", 0, 0}, {"?", "?", 0, 0}, {"bfloat16", "BFloat16", 2, OPDI_CLASS_FLOAT},
    {"float8_e5m2", "Float8_e5m2", 1, OPDI_CLASS_FLOAT}, {"float8_e4m3fn", "Float8_e4m3fn", 1, OPDI_CLASS_FLOAT},
    {"float8_e5m2fnuz", "Float8_e5m2fnuz", 1, OPDI_CLASS_FLOAT},
    {"float8_e4m3fnuz", "Float8_e4m3fnuz", 1, OPDI_CLASS_FLOAT}, {"uint16", "UInt16", 2, OPDI_CLASS_INT},
    {"uint32", "UInt32", 4, OPDI_CLASS_INT}, {"uint64", "UInt64", 8, OPDI_CLASS_INT},
    {"float8_e8m0fnu", "Float8_e8m0fnu", 1, OPDI_CLASS_FLOAT}
};

static const opdi_dtype_info *opdi_dtype(opd_scalar_type dtype) { return &opdi_dtypes[opdi_dtype_at((int)dtype)]; }

OPD_API const char *opd_dtype_name(opd_scalar_type dtype) { return opdi_dtype(dtype)->name; }
OPD_API const char *opd_dtype_cname(opd_scalar_type dtype) { return opdi_dtype(dtype)->cname; }
OPD_API size_t opd_dtype_size(opd_scalar_type dtype) { return opdi_dtype(dtype)->size; }
OPD_API bool opd_dtype_is_floating(opd_scalar_type dtype) { return opdi_dtype(dtype)->kind == OPDI_CLASS_FLOAT; }
OPD_API bool opd_dtype_is_complex(opd_scalar_type dtype) { return opdi_dtype(dtype)->kind == OPDI_CLASS_COMPLEX; }
OPD_API bool opd_dtype_is_integral(opd_scalar_type dtype, bool include_bool) {
    int kind = opdi_dtype(dtype)->kind;
    return kind == OPDI_CLASS_INT || (include_bool && kind == OPDI_CLASS_BOOL);
}

/* Returns what dtype and other, different ones of one class, are promoted to. */
static opd_scalar_type opdi_promote_within(opd_scalar_type dtype, opd_scalar_type other) {
    opd_scalar_type low = dtype < other ? dtype : other, high = dtype < other ? other : dtype;
    if (low == OPD_UINT8 && high == OPD_INT8) { return OPD_INT16; }
    if (high == OPD_BFLOAT16) { return low == OPD_FLOAT16 ? OPD_FLOAT32 : low; }
    return high;
}

/* Fails because two dtypes of which `types` tells one have none that they meet in. */
static opd_scalar_type opdi_promote_refused(const char *types, opd_scalar_type dtype, opd_scalar_type other) {
    (void)opd_fail(OPD_ERROR_DTYPE, "Promotion for %s is not supported, attempted to promote %s and %s", types,
                   opd_dtype_cname(dtype), opd_dtype_cname(other));
    return OPD_DTYPE_NONE;
}

OPD_API opd_scalar_type opd_promote_types(opd_scalar_type dtype, opd_scalar_type other) {
    int ka = opdi_dtype(dtype)->kind, kb = opdi_dtype(other)->kind;
    opd_scalar_type high = ka > kb ? dtype : other, low = ka > kb ? other : dtype;
    if (ka == OPDI_CLASS_NONE || kb == OPDI_CLASS_NONE) {
        (void)opd_fail(OPD_ERROR_DTYPE, "promote_types: %d is no dtype", (int)(ka == OPDI_CLASS_NONE ? dtype : other));
        return OPD_DTYPE_NONE;
    }
    if (dtype == other) { return dtype; }
    if (opdi_is_float8(dtype) || opdi_is_float8(other)) { return opdi_promote_refused("Float8 Types", dtype, other); }
    if (opdi_is_bare_unsigned(low)) {
        return ka != kb && opdi_dtype(high)->kind == OPDI_CLASS_FLOAT ? high
            : opdi_promote_refused("uint16, uint32, uint64 types", dtype, other);
    }
    if (opdi_is_bare_unsigned(high)) { return opdi_promote_refused("uint16, uint32, uint64 types", dtype, other); }
    if (ka == kb) { return opdi_promote_within(dtype, other); }
    if (high == OPD_COMPLEX32 && (low == OPD_FLOAT32 || low == OPD_BFLOAT16)) { return OPD_COMPLEX64; }
    return opd_dtype_is_complex(high) && low == OPD_FLOAT64 ? OPD_COMPLEX128 : high;
}

OPD_API bool opd_can_cast(opd_scalar_type from, opd_scalar_type to) {
    int kf = opdi_dtype(from)->kind, kt = opdi_dtype(to)->kind;
    return kf != OPDI_CLASS_NONE && kt != OPDI_CLASS_NONE && (kt >= kf);
}
#endif

//== devices ===========================================================================================================

#define OPDI_MAX_DEVICE_INDEX 127                 /* c10::DeviceIndex is 8 bits */

OPDI_SHARED const char *opdi_device_name(int backend);
#if defined(OPDI_CORE)

/* Names given to PrivateUse1 to 3, and of their keys by functionality (row of opdi_row_names); NULL: none given.
   Filled under opdi_backend_lock, for ever; read without a lock. */
typedef struct opdi_given_name { const char *name, *keys[7]; char text[8][48]; } opdi_given_name;
static opdi_given_name opdi_given_names[3];
static const opdi_given_name *opdi_given_name_of(int backend) {
    const opdi_given_name *name = &opdi_given_names[OPDI_MIN(OPDI_MAX(backend - OPD_PRIVATEUSE1, 0), 2)];
    return backend >= OPD_PRIVATEUSE1 && backend <= OPD_PRIVATEUSE3 && OPDI_ACQUIRE(&name->name) ? name : NULL;
}

/* Indexed by backend.  The last two private backends have no device in PyTorch. */
static const char *const opdi_device_names[OPD_BACKEND_COUNT] = {
    "cpu", "cuda", "hip", "xla", "mps", "ipu", "xpu", "hpu", "ve", "lazy", "mtia", "privateuseone", "privateusetwo",
    "privateusethree", "meta"
};
OPDI_SHARED const char *opdi_device_name(int backend) {
    const opdi_given_name *name = opdi_given_name_of(backend);
    return name ? name->name : backend >= 0 && backend < OPD_BACKEND_COUNT ? opdi_device_names[backend] : "?";
}

/* Reads `rest` of the device string `text`, which is "" (-1) or ":" and an index without leading zeros, into *index.
   False with an error. */
static bool opdi_device_index(const char *rest, const char *text, int32_t *index) {
    const char *at = rest + 1;
    *index = -1;
    if (*rest == 0) { return true; }
    if (*rest != ':' || *at == 0 || (*at == '0' && at[1])) { goto invalid; }
    for (; *at; at++) {
        if (*at < '0' || *at > '9') { goto invalid; }
    }
    *index = 0;
    for (at = rest + 1; *at && *index <= OPDI_MAX_DEVICE_INDEX; at++) { *index = *index * 10 + (*at - '0'); }
    if (*index <= OPDI_MAX_DEVICE_INDEX) { return true; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "Could not parse device index '%s' in device string '%s'", rest + 1, text);
    return false;
invalid:
    (void)opd_fail(OPD_ERROR_ARGUMENT, "Invalid device string: '%s'", text);
    return false;
}
#endif

OPDI_COLD_BEGIN
#if defined(OPDI_CORE)

static int opdi_device_unknown(const char *text) {
    char names[256];
    size_t at = 0;
    for (int i = 0; i < OPD_BACKEND_COUNT; i++) {
        const char *here = opdi_device_name(i);
        while (*here && at + 3 < sizeof(names)) { names[at++] = *here++; }
        if (i + 1 < OPD_BACKEND_COUNT && at + 3 < sizeof(names)) {
            names[at++] = ',';
            names[at++] = ' ';
        }
    }
    names[at] = 0;
    return opd_fail(OPD_ERROR_ARGUMENT, "Expected one of %s device type at start of device string: %s (a device of the "
                    "program's own gets its name by opd_backend_register)", names, text);
}

/* Parses "cpu", "cuda:1" and the like into *out, by the names that backends were given and by those of PyTorch;
   returns 0, or -1 with an error. */
OPD_API int opd_device_parse(const char *text, opd_device *out) {
    size_t length = 0;
    int32_t index;
    if (!text || !*text) { return opd_fail(OPD_ERROR_ARGUMENT, "Device string must not be empty"); }
    if (!out) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_device_parse: there is no room for the device"); }
    while ((text[length] >= 'a' && text[length] <= 'z') || (text[length] >= 'A' && text[length] <= 'Z') ||
           text[length] == '_') {
        length++;
    }
    if (length == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Invalid device string: '%s'", text); }
    if (!opdi_device_index(text + length, text, &index)) { return -1; }
    for (int i = 0; i < 2 * OPD_BACKEND_COUNT; i++) {  /* names given, then PyTorch's, which stay */
        const int type = i % OPD_BACKEND_COUNT;
        const char *name = i == type ? opdi_device_name(type) : opdi_device_names[type];
        if (strlen(name) != length || memcmp(name, text, length) != 0) { continue; }
        out->type = type;
        out->index = index;
        return 0;
    }
    return opdi_device_unknown(text);
}

OPD_API const char *opd_device_print(opd_device device, char *buf, size_t cap) {
    const char *name = opdi_device_name(device.type);
    if (cap == 0 || !buf) { return buf; }
    if (device.index >= 0) {
        (void)snprintf(buf, cap, "%s:%d", name, (int)device.index);
    } else {
        (void)snprintf(buf, cap, "%s", name);
    }
    return buf;
}
#endif
OPDI_COLD_END

/* The memory that one or more tensors look at.  Embedded in the block of the tensor that made it, or (foreign memory) a
   block of its own.  The block, and that of `data` where it has one (opdi_is_apart), is freed when `refs` is zero. */
typedef struct opdi_storage {
    int32_t refs;
    uint32_t version;            /* counts in-place writes */
    char *data;                  /* NULL: no memory (meta), or none needed */
    int64_t bytes;
    void *block;                 /* what to free, */
    int64_t block_bytes;         /* and its size; negative: an opdi_foreign, OPDI_AGAIN: of another storage's memory */
    struct opdi_dual *duals;     /* forward mode: tangents of the tensors that look at it */
    uint8_t device;              /* the backend whose memory `data` is; 0: the host's, or none; Meta: a fake's bytes */
    int8_t index;                /* which of its devices */
    uint16_t stands_for;         /* a fake's device, as a place plus one; 0: meta */
    uint32_t born;               /* in which layer of transforms: its serial number; 0: outside */
} opdi_storage;

#define OPDI_AGAIN (-2)
typedef struct opdi_foreign {
    opdi_storage storage;
    void (*deleter)(void *data, void *user);
    void *user;
    opd_plugin *plugin;          /* where deleter or data is; pinned */
} opdi_foreign;

#define OPDI_DEAD_KEY 63         /* a functionality that no key has: of a tensor that is gone, see opdi_dead_tensor */
/* Flags of a tensor. */
#define OPDI_WRAPPED 1u          /* a number in a Tensor slot: yields in type promotion */
#define OPDI_REQUIRES_GRAD 2u    /* a leaf that wants a gradient, or a result that has a grad_fn */
#define OPDI_IS_VIEW 4u          /* a differentiable view: has an opdi_view_record */
#define OPDI_LAZY 8u             /* conjugated or negated when it is read: has a key of OPDI_LAZY_KEYS */
#define OPDI_CONTIGUOUS 16u      /* row-major without gaps (kept up to date) */
#define OPDI_STORED 32u          /* of a dtype that few operators compute with: see >>stored */
#define OPDI_BATCHED 64u         /* one example of many: has an opdi_batched */
#define OPDI_TRACED 128u         /* a value of the graph that is being recorded */
/* A tensor and the node that made it (own). */
#define OPDI_SAVED_BY_OWN 1u     /* its grad_fn's node holds it: see opdi_drop_last */
#define OPDI_WEAK_NODE 2u        /* grad_fn is not held: only its own node still holds the tensor */
#define OPDI_GRAD_LEFT 4u        /* the gradient that a backward in data parallel has left */

/* dims: sizes[ndim], then strides[ndim] (elements); behind the struct until a resize needs more room. */
struct opd_tensor {
    int32_t refs;
    int8_t dtype;
    uint8_t ndim;
    uint8_t room;                /* int64_t values of dims that fit behind the struct */
    uint8_t own;                 /* OPDI_SAVED_BY_OWN and so on: written while other threads use the tensor */
    uint64_t functionality;      /* key set, with backend_bit */
    opdi_storage *storage;
    int64_t *dims;
    char *data;                  /* first element, NULL on meta */
    int64_t numel;
    opd_node *grad_fn;           /* NULL for a leaf */
    struct opdi_meta *meta;      /* what few tensors have: gradient, accumulator, view record */
    uint32_t output_nr;          /* which result of grad_fn */
    uint8_t flags, backend;      /* these four bytes are read together: opdi_traits */
    uint16_t backend_bit;
};
/* The properties of a tensor that a call asks for besides its functionalities; the traits of several are
   united with |. */
typedef union opdi_traits {
    struct opdi_traits_fields { uint8_t flags, backend; uint16_t backends; } f;
    uint32_t all;
} opdi_traits;
#if defined(__GNUC__)
typedef uint32_t __attribute__((may_alias)) opdi_four_bytes;
#else
typedef uint32_t opdi_four_bytes;
#endif
static inline uint32_t opdi_traits_of(const opd_tensor *tensor) {   /* another thread may give a view its history */
    return OPDI_LOAD((const opdi_four_bytes *)(const void *)&tensor->flags);
}
static inline bool opdi_is_complex(const opd_tensor *tensor) {
    return tensor && tensor->dtype >= OPD_COMPLEX32 && tensor->dtype <= OPD_COMPLEX128;
}
static inline int64_t *opdi_sizes(const opd_tensor *tensor) { return tensor->dims; }
/* Keys of tensors whose memory has the conjugates or the negatives of their values. */
#define OPDI_LAZY_KEYS (OPD_BIT_OF(OPD_F_CONJUGATE) | OPD_BIT_OF(OPD_F_NEGATIVE))
/* Gives tensor these of OPDI_LAZY_KEYS, and no other. */
static inline void opdi_set_lazy(opd_tensor *tensor, uint64_t keys) {
    tensor->functionality = (tensor->functionality & ~OPDI_LAZY_KEYS) | (keys & OPDI_LAZY_KEYS);
    tensor->flags = (uint8_t)((tensor->flags & ~OPDI_LAZY) | (keys & OPDI_LAZY_KEYS ? OPDI_LAZY : 0));
}
/* The record of a differentiable view, behind the room for its dims.  A view of a view has the same base. */
typedef struct opdi_view_record {
    opd_tensor *base;            /* no view itself; a reference */
    uint32_t version;            /* of the storage when grad_fn was right */
    uint32_t creation;           /* opdi_creation */
} opdi_view_record;
/* The ways in which a view came about: all but the first forbid writing into it while grad mode is on. */
enum opdi_creation {
    OPDI_VIEW_DEFAULT, OPDI_VIEW_NO_GRAD, OPDI_VIEW_MULTI_OUTPUT, OPDI_VIEW_CUSTOM, OPDI_VIEW_INFERENCE,
    OPDI_VIEW_NO_FORMULA         /* by an operator that has no derivative */
};
static inline opdi_view_record *opdi_view_record_of(const opd_tensor *tensor) {
    return (opdi_view_record *)(void *)((int64_t *)(uintptr_t)(tensor + 1) + tensor->room);
}
/* The record, behind the view record, of a tensor inside vmap, whose dims are those of one example: it holds all
   examples in one tensor.  The tensor looks at the value's memory, but nobody reads it there. */
typedef struct opdi_batched {
    opd_tensor *value;           /* a reference */
    int32_t dim, level;          /* which of its dims counts the examples, of which layer */
    uint32_t serial, spare;      /* the layer's number, which another one at that level does not have */
} opdi_batched;
static inline opdi_batched *opdi_batched_of(const opd_tensor *tensor) {
    return (opdi_batched *)(void *)(opdi_view_record_of(tensor) + 1);
}
/* The place where a tensor is, or is to be, in one number: the backend, and above its 8 bits the index plus one (0: the
   current device).  The host is 0. */
static inline int opdi_place(opd_device device) {
    if (device.type == OPD_CPU || device.type == OPD_META) { return device.type; }
    return (device.type < 0 || device.type > 255 ? 255 : device.type) |
        (OPDI_MIN(OPDI_MAX(device.index, -1), OPDI_MAX_DEVICE_INDEX) + 1) * 256;
}
static inline int opdi_place_of(const opd_tensor *tensor) {
    return tensor->backend == OPD_CPU || tensor->backend == OPD_META ? tensor->backend
        : tensor->backend | (tensor->storage->index + 1) * 256;
}
static inline opd_device opdi_place_device(int place) {
    return opd_device_of((opd_backend)(place & 255), place / 256 - 1);
}
static inline int64_t *opdi_strides(const opd_tensor *tensor) { return tensor->dims + tensor->ndim; }
/* True when first and second look at one storage, or at two over the same memory that count its writes
   apart: see opd_tensor_data. */
static inline bool opdi_same_memory(const opd_tensor *first, const opd_tensor *second) {
    const opdi_storage *storage = first->storage, *other = second->storage;
    return storage == other || (storage && other && storage->data && storage->data == other->data);
}

//== elements ==========================================================================================================

OPDI_SHARED double opdi_element_f64(const opd_tensor *tensor, int64_t offset);
OPDI_SHARED int64_t opdi_f64_to_i64(double d);
OPDI_SHARED int64_t opdi_element_i64(const opd_tensor *tensor, int64_t offset);
#if defined(OPDI_CORE)

/* The element `offset` bytes after tensor's first as a double.  Complex: the real part; the imaginary one lies half
   an element further. */
OPDI_SHARED double opdi_element_f64(const opd_tensor *tensor, int64_t offset) {
    const char *at = tensor->data + offset;
    union { float f; double d; uint16_t h; int16_t s; int32_t i; int64_t l; uint32_t w; uint64_t q; } u;
    switch ((opd_scalar_type)tensor->dtype) {
    case OPD_FLOAT32: case OPD_COMPLEX64: memcpy(&u.f, at, 4); return (double)u.f;
    case OPD_FLOAT64: case OPD_COMPLEX128: memcpy(&u.d, at, 8); return u.d;
    case OPD_FLOAT16: case OPD_COMPLEX32: memcpy(&u.h, at, 2); return (double)opdi_f16_to_f32(u.h);
    case OPD_BFLOAT16: memcpy(&u.h, at, 2); return (double)opdi_bf16_to_f32(u.h);
    case OPD_INT16: memcpy(&u.s, at, 2); return u.s;
    case OPD_INT32: memcpy(&u.i, at, 4); return u.i;
    case OPD_INT64: memcpy(&u.l, at, 8); return (double)u.l;
    case OPD_INT8: return *(const signed char *)at;
    case OPD_UINT8: return *(const unsigned char *)at;
    case OPD_BOOL: return *(const unsigned char *)at != 0;
    case OPD_UINT16: memcpy(&u.h, at, 2); return u.h;
    case OPD_UINT32: memcpy(&u.w, at, 4); return u.w;
    case OPD_UINT64: memcpy(&u.q, at, 8); return (double)u.q;
    case OPD_FLOAT8_E5M2: return (double)opdi_f8_to_f32(*(const unsigned char *)at, &opdi_f8_e5m2);
    case OPD_FLOAT8_E4M3FN: return (double)opdi_f8_to_f32(*(const unsigned char *)at, &opdi_f8_e4m3fn);
    case OPD_FLOAT8_E5M2FNUZ: return (double)opdi_f8_to_f32(*(const unsigned char *)at, &opdi_f8_e5m2fnuz);
    case OPD_FLOAT8_E4M3FNUZ: return (double)opdi_f8_to_f32(*(const unsigned char *)at, &opdi_f8_e4m3fnuz);
    case OPD_FLOAT8_E8M0FNU: return (double)opdi_e8m0_to_f32(*(const unsigned char *)at);
    case OPD_DTYPE_NONE: default: return 0;
    }
}

/* A double as an integer: towards zero, and what does not fit at the nearest end; nan is 0. */
OPDI_SHARED int64_t opdi_f64_to_i64(double d) {
    if (d != d) { return 0; }
    if (d >= 9223372036854775808.0) { return INT64_MAX; }
    return d <= -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

/* The element `offset` bytes after tensor's first as an integer, converted as opdi_f64_to_i64 does; of uint64 its
   bits. */
OPDI_SHARED int64_t opdi_element_i64(const opd_tensor *tensor, int64_t offset) {
    if (tensor->dtype == OPD_INT64 || tensor->dtype == OPD_UINT64) {
        int64_t value;
        memcpy(&value, tensor->data + offset, 8);
        return value;
    }
    return opdi_f64_to_i64(opdi_element_f64(tensor, offset));
}
#endif

