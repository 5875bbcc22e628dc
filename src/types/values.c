#include "types.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>values       half precision, dtypes, devices, reading elements of tensors
//
//  Dtypes and type promotion (c10/core/ScalarType.h), devices by name (c10/core/Device.cpp), and functions that read
//  single elements of tensors.  This section allocates nothing, and does not depend on operators.
//----------------------------------------------------------------------------------------------------------------------

//== eight-bit floats ==================================================================================================

OPDI_INTERNAL const opdi_f8_form opdi_f8_e5m2 = {2, 15, 0x7b, 0x7c, 0x7f, false};
OPDI_INTERNAL const opdi_f8_form opdi_f8_e4m3fn = {3, 7, 0x7e, 0x7e, 0x7f, false};
OPDI_INTERNAL const opdi_f8_form opdi_f8_e5m2fnuz = {2, 16, 0x7f, 0x80, 0x80, true};
OPDI_INTERNAL const opdi_f8_form opdi_f8_e4m3fnuz = {3, 8, 0x7f, 0x80, 0x80, true};

//== dtypes ============================================================================================================

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

/* The dtypes in blocks of GGUF, see opd_dtype_block. */
static const struct opdi_gguf_row { opdi_dtype_info names; opdi_block_info info; } opdi_block_dtypes[] = {
    {{"weight_f16", "WEIGHT_F16", 0, OPDI_CLASS_BLOCK}, {OPD_WEIGHT_F16, 32, 64, 0, false}},
    {{"weight_bf16", "WEIGHT_BF16", 0, OPDI_CLASS_BLOCK}, {OPD_WEIGHT_BF16, 32, 64, 0, false}},
    {{"q4_0", "Q4_0", 0, OPDI_CLASS_BLOCK}, {OPD_Q4_0, 32, 18, 0, false}},
    {{"q4_1", "Q4_1", 0, OPDI_CLASS_BLOCK}, {OPD_Q4_1, 32, 20, 0, false}},
    {{"q5_0", "Q5_0", 0, OPDI_CLASS_BLOCK}, {OPD_Q5_0, 32, 22, 0, false}},
    {{"q5_1", "Q5_1", 0, OPDI_CLASS_BLOCK}, {OPD_Q5_1, 32, 24, 0, false}},
    {{"q8_0", "Q8_0", 0, OPDI_CLASS_BLOCK}, {OPD_Q8_0, 32, 34, 0, false}},
    {{"q8_1", "Q8_1", 0, OPDI_CLASS_BLOCK}, {OPD_Q8_1, 32, 36, 0, false}},
    {{"q2_K", "Q2_K", 0, OPDI_CLASS_BLOCK}, {OPD_Q2_K, 256, 84, 0, false}},
    {{"q3_K", "Q3_K", 0, OPDI_CLASS_BLOCK}, {OPD_Q3_K, 256, 110, 0, false}},
    {{"q4_K", "Q4_K", 0, OPDI_CLASS_BLOCK}, {OPD_Q4_K, 256, 144, 0, false}},
    {{"q5_K", "Q5_K", 0, OPDI_CLASS_BLOCK}, {OPD_Q5_K, 256, 176, 0, false}},
    {{"q6_K", "Q6_K", 0, OPDI_CLASS_BLOCK}, {OPD_Q6_K, 256, 210, 0, false}},
    {{"q8_K", "Q8_K", 0, OPDI_CLASS_BLOCK}, {OPD_Q8_K, 256, 292, 0, false}},
    {{"iq2_xxs", "IQ2_XXS", 0, OPDI_CLASS_BLOCK}, {OPD_IQ2_XXS, 256, 66, 0, false}},
    {{"iq2_xs", "IQ2_XS", 0, OPDI_CLASS_BLOCK}, {OPD_IQ2_XS, 256, 74, 0, false}},
    {{"iq3_xxs", "IQ3_XXS", 0, OPDI_CLASS_BLOCK}, {OPD_IQ3_XXS, 256, 98, 0, false}},
    {{"iq1_s", "IQ1_S", 0, OPDI_CLASS_BLOCK}, {OPD_IQ1_S, 256, 50, 0, false}},
    {{"iq4_nl", "IQ4_NL", 0, OPDI_CLASS_BLOCK}, {OPD_IQ4_NL, 32, 18, 0, false}},
    {{"iq3_s", "IQ3_S", 0, OPDI_CLASS_BLOCK}, {OPD_IQ3_S, 256, 110, 0, false}},
    {{"iq2_s", "IQ2_S", 0, OPDI_CLASS_BLOCK}, {OPD_IQ2_S, 256, 82, 0, false}},
    {{"iq4_xs", "IQ4_XS", 0, OPDI_CLASS_BLOCK}, {OPD_IQ4_XS, 256, 136, 0, false}},
    {{"iq1_m", "IQ1_M", 0, OPDI_CLASS_BLOCK}, {OPD_IQ1_M, 256, 56, 0, false}},
    {{"tq1_0", "TQ1_0", 0, OPDI_CLASS_BLOCK}, {OPD_TQ1_0, 256, 54, 0, false}},
    {{"tq2_0", "TQ2_0", 0, OPDI_CLASS_BLOCK}, {OPD_TQ2_0, 256, 66, 0, false}},
    {{"mxfp4", "MXFP4", 0, OPDI_CLASS_BLOCK}, {OPD_MXFP4, 32, 17, 0, false}},
    {{"nvfp4", "NVFP4", 0, OPDI_CLASS_BLOCK}, {OPD_NVFP4, 64, 36, 0, false}},
    {{"q1_0", "Q1_0", 0, OPDI_CLASS_BLOCK}, {OPD_Q1_0, 128, 18, 0, false}},
    {{"q2_0", "Q2_0", 0, OPDI_CLASS_BLOCK}, {OPD_Q2_0, 64, 18, 0, false}}
};
/* Returns the row of a dtype in blocks of GGUF, or NULL for another dtype. */
static const struct opdi_gguf_row *opdi_block_row_find(int dtype) {
    if (!opdi_is_block(dtype) || dtype >= OPD_INT_BLOCKS) { return NULL; }
    for (size_t i = 0; i < sizeof opdi_block_dtypes / sizeof *opdi_block_dtypes; i++) {
        if ((int)opdi_block_dtypes[i].info.dtype == dtype) { return &opdi_block_dtypes[i]; }
    }
    return NULL;
}
/* Returns what a block of the dtype has.  Of a dtype that is not in blocks, `elements` is 0. */
OPDI_INTERNAL opdi_block_info opdi_block_info_of(int dtype) {
    static const opdi_block_info none = {OPD_DTYPE_NONE, 0, 0, 0, false};
    const struct opdi_gguf_row *const row = opdi_block_row_find(dtype);
    opdi_block_info info = row ? row->info : none;
    if (dtype < OPD_INT_BLOCKS + 16 || dtype > OPD_INT_BLOCKS_LAST) { return info; }
    const int parts = dtype - OPD_INT_BLOCKS;     /* the group / 8, one bit for the zero point, and the bits - 1 */
    info.dtype = (opd_scalar_type)dtype;
    info.elements = parts / 16 * 8;
    info.bits = (uint8_t)(parts % 8 + 1);
    info.zero = parts & 8;
    info.bytes = 4 + (info.zero ? 4 : 0) + info.elements / 8 * info.bits;
    return info;
}

//== dtypes of integers with scales ====================================================================================

/* The names of a dtype of integers.  They are made when they are first asked for, and never freed. */
typedef struct opdi_int_names {
    opdi_dtype_info info;
    int dtype;
    char name[40], cname[40];
    struct opdi_int_names *next;
} opdi_int_names;
static opdi_int_names *opdi_int_dtypes;
static const opdi_dtype_info opdi_int_any = {"int_blocks", "INT_BLOCKS", 0, OPDI_CLASS_BLOCK};
OPDI_INTERNAL opdi_mutex opdi_int_lock = OPDI_MUTEX_INIT;

/* Writes the name of a dtype of integers, such as "int4_group32_asymmetric", to buf[40]. */
static void opdi_int_name(const opdi_block_info *info, bool upper, char *buf) {
    const char *const words = upper ? "INT%d_GROUP%d%s" : "int%d_group%d%s";
    (void)snprintf(buf, 40, words, (int)info->bits, (int)info->elements,
                   !info->zero ? "" : upper ? "_ASYMMETRIC" : "_asymmetric");
}
static const opdi_int_names *opdi_int_names_find(const opdi_int_names *at, int dtype) {
    while (at && at->dtype != dtype) { at = at->next; }
    return at;
}
/* Returns the names of a dtype of integers.  If memory runs out, returns names that do not tell which. */
static const opdi_dtype_info *opdi_int_names_of(const opdi_block_info *info) {
    const int dtype = (int)info->dtype;
    const opdi_int_names *found = opdi_int_names_find(OPDI_ACQUIRE(&opdi_int_dtypes), dtype);
    if (found) { return &found->info; }
    opdi_int_names *const made = (opdi_int_names *)OPD_MALLOC(sizeof *made);
    if (!made) { return &opdi_int_any; }
    made->info = opdi_int_any;
    made->dtype = dtype;
    opdi_int_name(info, false, made->name);
    opdi_int_name(info, true, made->cname);
    made->info.name = made->name;
    made->info.cname = made->cname;
    opdi_lock(&opdi_int_lock);
    found = opdi_int_names_find(opdi_int_dtypes, dtype);      /* another thread may have made them */
    if (!found) {
        made->next = opdi_int_dtypes;
        OPDI_PUBLISH(&opdi_int_dtypes, made);
    }
    opdi_unlock(&opdi_int_lock);
    if (!found) { return &made->info; }
    OPD_FREE(made);
    return &found->info;
}
OPD_API opd_scalar_type opd_dtype_int_blocks(int bits, int64_t group, bool asymmetric) {
    if (bits >= 1 && bits <= 8 && group >= 8 && group <= OPDI_INT_GROUP && group % 8 == 0) {
        return (opd_scalar_type)(OPD_INT_BLOCKS + (int)(group / 8) * 16 + (asymmetric ? 8 : 0) + bits - 1);
    }
    if (bits < 1 || bits > 8) {
        (void)opd_fail(OPD_ERROR_DTYPE, "opd_dtype_int_blocks: integers have 1 to 8 bits, not %d", bits);
    } else {
        (void)opd_fail(OPD_ERROR_DTYPE, "opd_dtype_int_blocks: a group has a multiple of 8 elements, at most %d, not "
                       "%lld", OPDI_INT_GROUP, (long long)group);
    }
    return OPD_DTYPE_NONE;
}
OPD_API int opd_dtype_int_bits(opd_scalar_type dtype, int64_t *group, bool *asymmetric) {
    const opdi_block_info info = opdi_block_info_of((int)dtype);
    if (group) { *group = info.bits ? info.elements : 0; }
    if (asymmetric) { *asymmetric = info.zero; }
    return info.bits;
}
/* Returns the dtype in blocks with this name of `length` characters, or OPD_DTYPE_NONE.  Case does not matter. */
OPDI_INTERNAL opd_scalar_type opdi_block_named(const char *text, size_t length) {
    char word[40], name[40], *end = NULL;
    if (length == 0 || length >= sizeof word) { return OPD_DTYPE_NONE; }
    for (size_t i = 0; i < length; i++) { word[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] + 32 : text[i]); }
    word[length] = 0;
    for (size_t i = 0; i < sizeof opdi_block_dtypes / sizeof *opdi_block_dtypes; i++) {
        const char *at = opdi_block_dtypes[i].names.name;
        size_t same = 0;
        while (at[same] && (at[same] == 'K' ? 'k' : at[same]) == word[same]) { same++; }
        if (!at[same] && same == length) { return opdi_block_dtypes[i].info.dtype; }
    }
    if (length < 12 || memcmp(word, "int", 3) != 0 || memcmp(word + 4, "_group", 6) != 0) { return OPD_DTYPE_NONE; }
    const int64_t bits = word[3] - '0', group = strtoll(word + 10, &end, 10);
    if (bits < 1 || bits > 8 || group < 8 || group > OPDI_INT_GROUP || group % 8) { return OPD_DTYPE_NONE; }
    const opdi_block_info info = opdi_block_info_of((int)opd_dtype_int_blocks((int)bits, group, *end != 0));
    opdi_int_name(&info, false, name);            /* nothing else is accepted, such as other spaces or zeros */
    return strcmp(name, word) == 0 ? info.dtype : OPD_DTYPE_NONE;
}

//== facts about dtypes ================================================================================================

OPDI_NOINLINE OPDI_INTERNAL const opdi_dtype_info *opdi_dtype(opd_scalar_type dtype) {
    if (OPDI_LIKELY(!opdi_is_block((int)dtype))) { return &opdi_dtypes[opdi_dtype_at((int)dtype)]; }
    const struct opdi_gguf_row *const row = opdi_block_row_find((int)dtype);
    return row ? &row->names : opdi_block_info_of((int)dtype).bits ? &opdi_int_any
        : &opdi_dtypes[opdi_dtype_at((int)dtype)];
}
/* Returns what opdi_dtype returns, with the names of the dtype if it is one of integers. */
static const opdi_dtype_info *opdi_dtype_names(opd_scalar_type dtype) {
    const opdi_block_info info = opdi_block_info_of((int)dtype);
    return info.bits ? opdi_int_names_of(&info) : opdi_dtype(dtype);
}
OPD_API int64_t opd_dtype_block(opd_scalar_type dtype, int64_t *bytes) {
    const opdi_block_info block = opdi_block_info_of((int)dtype);
    const size_t size = opd_dtype_size(dtype);
    if (bytes) { *bytes = block.elements ? block.bytes : (int64_t)size; }
    return block.elements ? block.elements : size > 0;
}

OPD_API const char *opd_dtype_name(opd_scalar_type dtype) { return opdi_dtype_names(dtype)->name; }
OPD_API const char *opd_dtype_cname(opd_scalar_type dtype) { return opdi_dtype_names(dtype)->cname; }
OPD_API size_t opd_dtype_size(opd_scalar_type dtype) { return opdi_dtype(dtype)->size; }
OPD_API bool opd_dtype_is_floating(opd_scalar_type dtype) { return opdi_dtype(dtype)->kind == OPDI_CLASS_FLOAT; }
OPD_API bool opd_dtype_is_complex(opd_scalar_type dtype) { return opdi_dtype(dtype)->kind == OPDI_CLASS_COMPLEX; }
OPD_API bool opd_dtype_is_integral(opd_scalar_type dtype, bool include_bool) {
    int kind = opdi_dtype(dtype)->kind;
    return kind == OPDI_CLASS_INT || (include_bool && kind == OPDI_CLASS_BOOL);
}

/* Returns the dtype to which `dtype` and `other`, two different dtypes of one category, are promoted. */
static opd_scalar_type opdi_promote_within(opd_scalar_type dtype, opd_scalar_type other) {
    opd_scalar_type low = dtype < other ? dtype : other, high = dtype < other ? other : dtype;
    if (low == OPD_UINT8 && high == OPD_INT8) { return OPD_INT16; }
    if (high == OPD_BFLOAT16) { return low == OPD_FLOAT16 ? OPD_FLOAT32 : low; }
    return high;
}

/* Sets the error that `dtype` and `other` have no common dtype, and returns OPD_DTYPE_NONE.  `types` names the kind of
   dtypes that cannot be promoted. */
static opd_scalar_type opdi_promote_refused(const char *types, opd_scalar_type dtype, opd_scalar_type other) {
    (void)opd_fail(OPD_ERROR_DTYPE, "Promotion for %s is not supported, attempted to promote %s and %s", types,
                   opd_dtype_name(dtype), opd_dtype_name(other));
    return OPD_DTYPE_NONE;
}

OPD_API opd_scalar_type opd_promote_types(opd_scalar_type dtype, opd_scalar_type other) {
    int ka = opdi_dtype(dtype)->kind, kb = opdi_dtype(other)->kind;
    opd_scalar_type high = ka > kb ? dtype : other, low = ka > kb ? other : dtype;
    if (ka == OPDI_CLASS_NONE || kb == OPDI_CLASS_NONE) {
        (void)opd_fail(OPD_ERROR_DTYPE, "opd_promote_types: %d is not a dtype", (int)(ka == OPDI_CLASS_NONE ? dtype
                                                                                      : other));
        return OPD_DTYPE_NONE;
    }
    if (dtype == other) { return dtype; }
    if (ka == OPDI_CLASS_BLOCK || kb == OPDI_CLASS_BLOCK) {
        return opdi_promote_refused("dtypes in blocks (opd_dequantize makes float32 of them)", dtype, other);
    }
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
    if (kf == OPDI_CLASS_BLOCK || kt == OPDI_CLASS_BLOCK) { return from == to; }
    return kf != OPDI_CLASS_NONE && kt != OPDI_CLASS_NONE && (kt >= kf);
}

//== devices ===========================================================================================================

OPDI_INTERNAL const char *opdi_device_name(int backend);

OPDI_INTERNAL opdi_given_name opdi_given_names[3];
OPDI_INTERNAL const opdi_given_name *opdi_given_name_of(int backend) {
    const opdi_given_name *name = &opdi_given_names[OPDI_MIN(OPDI_MAX(backend - OPD_PRIVATEUSE1, 0), 2)];
    return backend >= OPD_PRIVATEUSE1 && backend <= OPD_PRIVATEUSE3 && OPDI_ACQUIRE(&name->name) ? name : NULL;
}

/* Names of devices, by backend.  In PyTorch the last two private backends have no device names. */
OPDI_INTERNAL const char *const opdi_device_names[OPD_BACKEND_COUNT] = {
    "cpu", "cuda", "hip", "xla", "mps", "ipu", "xpu", "hpu", "ve", "lazy", "mtia", "privateuseone", "privateusetwo",
    "privateusethree", "meta"
};
OPDI_INTERNAL const char *opdi_device_name(int backend) {
    const opdi_given_name *name = opdi_given_name_of(backend);
    return name ? name->name : backend >= 0 && backend < OPD_BACKEND_COUNT ? opdi_device_names[backend] : "?";
}

/* Reads `rest`, the end of the device string `text`, into *index: "" gives -1; otherwise ":" and an index without
   leading zeros.  Returns false and sets an error if `rest` is neither. */
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

OPDI_COLD_BEGIN

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
    return opd_fail(OPD_ERROR_ARGUMENT, "Expected one of %s device type at start of device string: %s "
                    "(opd_backend_register gives a custom device its name)", names, text);
}

/* Parses a device such as "cpu" or "cuda:1" into *out.  Accepts the names that programs gave to backends, and PyTorch's
   names.  Returns 0, or -1 and sets an error. */
OPD_API int opd_device_parse(const char *text, opd_device *out) {
    size_t length = 0;
    int32_t index;
    if (!text || !*text) { return opd_fail(OPD_ERROR_ARGUMENT, "Device string must not be empty"); }
    if (!out) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_device_parse: the pointer to the result is NULL"); }
    while ((text[length] >= 'a' && text[length] <= 'z') || (text[length] >= 'A' && text[length] <= 'Z') ||
           text[length] == '_') {
        length++;
    }
    if (length == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Invalid device string: '%s'", text); }
    if (!opdi_device_index(text + length, text, &index)) { return -1; }
    for (int i = 0; i < 2 * OPD_BACKEND_COUNT; i++) {  /* first the given names, then PyTorch's, which stay valid */
        const int type = i % OPD_BACKEND_COUNT;
        const char *name = i == type ? opdi_device_name(type) : opdi_device_names[type];
        if (strlen(name) != length || memcmp(name, text, length) != 0) { continue; }
        out->type = type;
        out->index = index;
        return 0;
    }
    return opdi_device_unknown(text);
}

size_t opd_device_print(opd_device device, char *buf, size_t cap) {
    const char *name = opdi_device_name(device.type);
    if (!buf) { cap = 0; }
    return (size_t)(device.index >= 0 ? snprintf(buf, cap, "%s:%d", name, (int)device.index)
                    : snprintf(buf, cap, "%s", name));
}
/* Writes the device as opd_device_print does, and returns buf. */
OPDI_INTERNAL const char *opdi_device_text(opd_device device, char *buf, size_t cap) {
    (void)opd_device_print(device, buf, cap);
    return buf;
}
const char *opdi_old_device_print(opd_device device, char *buf, size_t cap) {
    return opdi_device_text(device, buf, cap);
}
OPDI_COLD_END

//== elements ==========================================================================================================

OPDI_INTERNAL double opdi_element_f64(const opd_tensor *tensor, int64_t offset);
OPDI_INTERNAL int64_t opdi_f64_to_i64(double d);
OPDI_INTERNAL int64_t opdi_element_i64(const opd_tensor *tensor, int64_t offset);

/* Returns the element that lies `offset` bytes after the first element of `tensor` as a double.  Of a complex number,
   returns the real part; the imaginary part lies half an element further. */
OPDI_INTERNAL double opdi_element_f64(const opd_tensor *tensor, int64_t offset) {
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

/* Returns a double as an integer, rounded towards zero.  A number out of range becomes INT64_MIN or INT64_MAX, and NaN
   becomes 0. */
OPDI_INTERNAL int64_t opdi_f64_to_i64(double d) {
    if (d != d) { return 0; }
    if (d >= 9223372036854775808.0) { return INT64_MAX; }
    return d <= -9223372036854775808.0 ? INT64_MIN : (int64_t)d;
}

/* Returns the element that lies `offset` bytes after the first element of `tensor` as an integer, converted as
   opdi_f64_to_i64 does.  Of uint64, returns the bits. */
OPDI_INTERNAL int64_t opdi_element_i64(const opd_tensor *tensor, int64_t offset) {
    if (tensor->dtype == OPD_INT64 || tensor->dtype == OPD_UINT64) {
        int64_t value;
        memcpy(&value, tensor->data + offset, 8);
        return value;
    }
    return opdi_f64_to_i64(opdi_element_f64(tensor, offset));
}

