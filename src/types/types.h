//----------------------------------------------------------------------------------------------------------------------
//  >>types_h      values, dtypes, schemas and keys: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_TYPES_H)
#define OPDI_TYPES_H
#include "../base/base.h"

//== values ============================================================================================================

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
OPDI_ALWAYS double opdi_double(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}
OPDI_ALWAYS uint64_t opdi_bits64(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}
/* Returns `at` if condition is 1, `second` if it is 0.  Uses masks, because a branch here would keep the compiler from
   vectorising. */
OPDI_ALWAYS uint32_t opdi_select_bits(int condition, uint32_t at, uint32_t second) {
    uint32_t m = 0u - (uint32_t)condition;
    return (at & m) | (second & ~m);
}
OPDI_ALWAYS float opdi_bf16_to_f32(uint16_t half) { return opdi_float((uint32_t)half << 16); }
OPDI_ALWAYS uint16_t opdi_f32_to_bf16(float f) {
    uint32_t bits = opdi_bits(f), rc = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16, nan = (bits >> 16) | 0x40u;
    return (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rc);
}
/* Returns a half-precision number as a float.  The 15 bits of `half` without the sign, shifted to the float's places,
   have an exponent that is too small by 112, which is added.  Denormal numbers have no exponent: they become the
   fraction of a float above 2^-14, and 2^-14 is subtracted.  No step computes with denormal floats, which takes some
   processors a hundred cycles. */
OPDI_ALWAYS float opdi_f16_to_f32(uint16_t half) {
    const uint32_t bits = (uint32_t)(half & 0x7fffu) << 13;
    const uint32_t tiny = opdi_bits(opdi_float(bits + 0x38800000u) - 6.103515625e-05f);
    uint32_t value = opdi_select_bits(bits < 0x00800000u, tiny, bits + 0x38000000u);
    value = opdi_select_bits(bits >= 0x0f800000u, bits | 0x7f800000u, value);
    return opdi_float(value | (uint32_t)(half & 0x8000u) << 16);
}
/* Returns the bits of the float16 that is nearest to f.  If the result is denormal, adds 0.5 to |f|: the last bit of
   this sum has the weight of the last bit of the float16, so the addition rounds correctly. */
OPDI_ALWAYS uint16_t opdi_f32_to_f16(float f) {
    uint32_t bits = opdi_bits(f), at = bits & 0x7fffffffu;
    uint32_t normal = (at - 0x38000000u + 0xfffu + ((at >> 13) & 1u)) >> 13;
    uint32_t tiny = opdi_bits(opdi_float(opdi_select_bits(at < 0x38800000u, at, 0u)) + 0.5f) - 0x3f000000u;
    uint32_t nan = 0x7e00u | ((at >> 13) & 0x3ffu);
    uint32_t rc = opdi_select_bits(at < 0x38800000u, tiny, normal);
    rc = opdi_select_bits(at >= 0x477ff000u, 0x7c00u, rc);
    rc = opdi_select_bits(at > 0x7f800000u, nan, rc);
    return (uint16_t)(rc | (bits >> 16 & 0x8000u));
}
/* A format of eight-bit floats, with a sign, exponent bits and `bits` bits of mantissa.  `bias` is the bias of the
   exponent.  `most` is the code of the largest number.  Larger numbers become `beyond` (infinity, NaN, or `most`
   itself), and NaN becomes `nan`.  If unsigned_zero is set, there is no -0, and the code of -0 means NaN. */
typedef struct opdi_f8_form {
    uint32_t bits, bias, most, beyond, nan;
    bool unsigned_zero;
} opdi_f8_form;
/* Returns the code of a float in an eight-bit format, rounded to nearest even.  For a denormal result, a power of two
   is added: then the float's last bit has the weight of the result's last bit, and the addition rounds. */
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
/* Returns the number with an eight-bit code as a float.  The conversion is exact. */
static inline float opdi_f8_to_f32(uint8_t code, const opdi_f8_form *form) {
    const uint32_t at = code & 0x7fu, sign = (uint32_t)(code & 0x80u) << 24;
    if (form->unsigned_zero && code == form->nan) { return opdi_float(0xffc00000u); }
    if (at > form->most) {                        /* an infinity or NaN */
        return opdi_float(sign | (form->beyond < form->nan && at == form->beyond ? 0x7f800000u : 0x7fc00000u));
    }
    const float value = opdi_float(at << (23 - form->bits)) * opdi_float((254 - form->bias) << 23);
    return opdi_float(opdi_bits(value) | sign);
}
/* Returns the number with a code of float8_e8m0fnu as a float.  The code is an exponent without sign and mantissa. */
static inline float opdi_e8m0_to_f32(uint8_t code) {
    return opdi_float(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : (uint32_t)code << 23);
}
static inline uint8_t opdi_f32_to_e8m0(float f) {
    const uint32_t bits = opdi_bits(f) & 0x7fffffffu, exponent = bits >> 23, part = bits & 0x7fffffu;
    if (exponent == 255) { return 255; }
    const bool up = exponent ? part >= 0x400000u : part > 0x400000u;
    return (uint8_t)(exponent + up);
}
#define OPDI_DTYPES 24                            /* number of rows in tables of dtypes, see opdi_dtype_at */
/* Returns true if the integer part of x is an int64.  NaN has none. */
static inline bool opdi_fits_i64(double x) { return x >= -9223372036854775808.0 && x < 9223372036854775808.0; }
/* Returns the row of a dtype in tables.  A number that is not a dtype has row 12, which is empty. */
static inline int opdi_dtype_at(int dtype) {
    if ((unsigned)dtype < 16) { return dtype; }
    return dtype >= OPD_FLOAT8_E5M2 && dtype <= OPD_UINT64 ? dtype - 7 : dtype == OPD_FLOAT8_E8M0FNU ? 23 : 12;
}
static inline bool opdi_is_float8(int dtype) {
    return (dtype >= OPD_FLOAT8_E5M2 && dtype <= OPD_FLOAT8_E4M3FNUZ) || dtype == OPD_FLOAT8_E8M0FNU;
}
/* Returns true for uint16, uint32 and uint64, which most operators do not support. */
static inline bool opdi_is_bare_unsigned(int dtype) { return dtype >= OPD_UINT16 && dtype <= OPD_UINT64; }
/* Returns true for a dtype that few operators compute with: see >>stored_dtypes. */
static inline bool opdi_is_stored_dtype(int dtype) { return dtype > OPD_BFLOAT16 || dtype == OPD_COMPLEX32; }
#define OPDI_INT_GROUP 1048576                    /* the most elements of a group, see opd_dtype_int_blocks */
/* Returns true for a number in the range of dtypes in blocks, see opd_dtype_block. */
static inline bool opdi_is_block(int dtype) { return dtype >= OPD_WEIGHT_F16; }
/* Returns the bytes of an element, for checks that a number of elements fits into memory: 2 for dtypes in blocks, whose
   elements have at most as many.  Returns 0 for a number that is not a dtype. */
static inline size_t opdi_element_size(int dtype) {
    if (OPDI_LIKELY(!opdi_is_block(dtype))) { return opd_dtype_size((opd_scalar_type)dtype); }
    return opd_dtype_block((opd_scalar_type)dtype, NULL) > 0 ? 2 : 0;
}
/* Returns how many bytes `count` elements have.  For a dtype in blocks, they are whole blocks. */
static inline int64_t opdi_elements_bytes(int dtype, int64_t count) {
    int64_t bytes;
    if (OPDI_LIKELY(!opdi_is_block(dtype))) { return count * (int64_t)opd_dtype_size((opd_scalar_type)dtype); }
    const int64_t elements = opd_dtype_block((opd_scalar_type)dtype, &bytes);
    return elements ? count / elements * bytes : 0;
}
/* Returns how many elements lie in `bytes` bytes.  For a dtype in blocks, only whole blocks count. */
static inline int64_t opdi_bytes_elements(int dtype, int64_t bytes) {
    int64_t each;
    if (OPDI_LIKELY(!opdi_is_block(dtype))) { return bytes / (int64_t)opd_dtype_size((opd_scalar_type)dtype); }
    const int64_t elements = opd_dtype_block((opd_scalar_type)dtype, &each);
    return each ? bytes / each * elements : 0;
}
enum { OPDI_CLASS_NONE = 0, OPDI_CLASS_BOOL, OPDI_CLASS_INT, OPDI_CLASS_FLOAT, OPDI_CLASS_COMPLEX, OPDI_CLASS_BLOCK };
/* A row of the table of dtypes, see opdi_dtype_at.  `size` is in bytes, and 0 for a number that is not a dtype; `kind`
   is OPDI_CLASS_*. */
typedef struct opdi_dtype_info { const char *name, *cname; uint8_t size, kind; } opdi_dtype_info;
/* A dtype in blocks: a block has `elements` numbers in `bytes` bytes.  `bits` is 0 for dtypes of GGUF.  For integers
   (see opd_dtype_int_blocks), it is their bits, and `zero` says whether a block has a zero point. */
typedef struct opdi_block_info {
    opd_scalar_type dtype;
    int32_t elements, bytes;
    uint8_t bits;
    bool zero;
} opdi_block_info;
/* Returns name i of a collection, such as a module or a file, or NULL if i is too large: see opdi_did_you_mean. */
typedef const char *(*opdi_name_at)(const void *owner, int64_t i);
#define OPDI_MAX_DEVICE_INDEX 127                 /* as in PyTorch, where c10::DeviceIndex has 8 bits */
/* The name that a program gave to one of PrivateUse1 to 3, and the names of its keys by row (see opdi_row_names); NULL
   if none was given.  Filled once, under opdi_backend_lock, and read without a lock. */
typedef struct opdi_given_name { const char *name, *keys[7]; char text[8][48]; } opdi_given_name;
/* The memory of one or more tensors.  The struct is part of the block of the tensor for which the memory was allocated
   or, for foreign memory, of an opdi_foreign.  When `refs` becomes zero, `block` is freed, and so is the memory at
   `data` if it lies in a separate block (opdi_is_apart). */
typedef struct opdi_storage {
    int32_t refs;
    uint32_t version;            /* counts in-place writes */
    char *data;                  /* NULL: no memory (meta), or none needed */
    int64_t bytes;
    void *block;                 /* the block to free with the storage */
    int64_t block_bytes;         /* the block's size; -1: an opdi_foreign; OPDI_AGAIN: memory of another storage */
    struct opdi_dual *duals;     /* forward mode: tangents of the tensors with this storage */
    struct opdi_packing *packed; /* packed forms of weights in `data` */
    uint8_t device;              /* backend of `data`; 0: the host, or no memory; Meta: memory of a fake */
    int8_t index;                /* the index of the backend's device */
    uint16_t stands_for;         /* for a fake: opdi_place of its device, plus one; 0: meta */
    uint32_t born;               /* number of the transform layer in which the storage was made; 0: made outside of
                                    layers */
} opdi_storage;
#define OPDI_AGAIN (-2)
typedef struct opdi_foreign {
    opdi_storage storage;
    void (*deleter)(void *data, void *user);
    void *user;
    opd_plugin *plugin;          /* the pinned plug-in that contains the deleter or the data */
} opdi_foreign;
#define OPDI_DEAD_KEY 63         /* a functionality that no key has, for freed tensors: see opdi_dead_tensor */
/* Flags of a tensor. */
#define OPDI_WRAPPED 1u          /* a number in a Tensor argument: weaker than tensors in type promotion */
#define OPDI_REQUIRES_GRAD 2u    /* a leaf that requires grad, or a result that has a grad_fn */
#define OPDI_IS_VIEW 4u          /* a differentiable view: has an opdi_view_record */
#define OPDI_LAZY 8u             /* the memory has the conjugates or negatives of the values: has a key of
                                    OPDI_LAZY_KEYS */
#define OPDI_CONTIGUOUS 16u      /* row-major without gaps (kept up to date) */
#define OPDI_STORED 32u          /* few operators compute with its dtype: see >>stored_dtypes */
#define OPDI_BATCHED 64u         /* stands for each example of a vmap: has an opdi_batched */
#define OPDI_TRACED 128u         /* a value of the graph that is being recorded */
/* Bits of the field `own` of a tensor. */
#define OPDI_SAVED_BY_OWN 1u     /* its grad_fn holds a reference to the tensor: see opdi_drop_last */
#define OPDI_WEAK_NODE 2u        /* the tensor does not hold grad_fn; only the node holds the tensor */
#define OPDI_GRAD_LEFT 4u        /* a data parallel backward has made the tensor the gradient of a parameter */
/* dims points to sizes[ndim], then strides[ndim] (in elements).  Both arrays lie after the struct, unless a resize has
   needed more memory. */
struct opd_tensor {
    int32_t refs;
    int32_t dtype;
    uint64_t functionality;      /* the functionalities of the tensor's key set; the backend is in backend_bit */
    opdi_storage *storage;
    int64_t *dims;
    char *data;                  /* the first element; NULL on meta */
    int64_t begin;               /* on meta: how many bytes of the storage lie before the first element */
    int64_t numel;
    opd_node *grad_fn;           /* NULL if the tensor is a leaf */
    struct opdi_meta *meta;      /* data that few tensors have: gradient, hooks, ... */
    uint32_t output_nr;          /* index of the tensor among the results of grad_fn */
    uint8_t flags, backend;      /* together with backend_bit: the four bytes that opdi_traits_of reads */
    uint16_t backend_bit;
    uint8_t ndim;
    uint8_t capacity;            /* how many int64_t there are after the struct, for dims */
    uint8_t own;                 /* the bits OPDI_SAVED_BY_OWN to OPDI_GRAD_LEFT; any thread may write them */
};
/* The properties of a tensor that the dispatcher needs for a call, in addition to its functionalities.  The traits of
   several tensors are combined with |. */
typedef union opdi_traits {
    struct opdi_traits_fields { uint8_t flags, backend; uint16_t backends; } f;
    uint32_t all;
} opdi_traits;
#if defined(__GNUC__)
typedef uint32_t __attribute__((may_alias)) opdi_four_bytes;
#else
typedef uint32_t opdi_four_bytes;
#endif
static inline uint32_t opdi_traits_of(const opd_tensor *tensor) {   /* an atomic read, because another thread may set a
                                                                       flag */
    return OPDI_LOAD((const opdi_four_bytes *)(const void *)&tensor->flags);
}
static inline bool opdi_is_complex(const opd_tensor *tensor) {
    return tensor && tensor->dtype >= OPD_COMPLEX32 && tensor->dtype <= OPD_COMPLEX128;
}
static inline int64_t *opdi_sizes(const opd_tensor *tensor) { return tensor->dims; }
/* Keys of tensors whose memory holds the conjugates or the negatives of their values. */
#define OPDI_LAZY_KEYS (OPD_BIT_OF(OPD_F_CONJUGATE) | OPD_BIT_OF(OPD_F_NEGATIVE))
/* Gives `tensor` those OPDI_LAZY_KEYS that are in `keys`, and removes those that are not. */
static inline void opdi_set_lazy(opd_tensor *tensor, uint64_t keys) {
    tensor->functionality = (tensor->functionality & ~OPDI_LAZY_KEYS) | (keys & OPDI_LAZY_KEYS);
    tensor->flags = (uint8_t)((tensor->flags & ~OPDI_LAZY) | (keys & OPDI_LAZY_KEYS ? OPDI_LAZY : 0));
}
/* The record of a differentiable view.  The record lies after the memory for the tensor's dims.  A view of a view has
   the same base. */
typedef struct opdi_view_record {
    opd_tensor *base;            /* a reference; the base itself is not a view */
    uint32_t version;            /* the storage's version for which grad_fn is valid */
    uint32_t creation;           /* opdi_creation */
} opdi_view_record;
/* How a view was made: normally, with grad mode off, as one of several results, by a custom function, in inference
   mode, or by an operator that has no derivative.  While grad mode is on, writing into the view fails, unless the view
   was made normally. */
enum opdi_creation {
    OPDI_VIEW_DEFAULT, OPDI_VIEW_NO_GRAD, OPDI_VIEW_MULTI_OUTPUT, OPDI_VIEW_CUSTOM, OPDI_VIEW_INFERENCE,
    OPDI_VIEW_NO_FORMULA
};
static inline opdi_view_record *opdi_view_record_of(const opd_tensor *tensor) {
    return (opdi_view_record *)(void *)((int64_t *)(uintptr_t)(tensor + 1) + tensor->capacity);
}
/* The record of a tensor that stands for each example of a vmap.  The record lies after the view record.  The tensor
   has the dims of one example; `value` has all examples.  The tensor has the data pointer of `value`, but no code reads
   data there. */
typedef struct opdi_batched {
    opd_tensor *value;           /* all examples; this struct holds a reference to `value` */
    int32_t dim, level;          /* dim: the dim of `value` along which the examples are; level: the layer's level */
    uint32_t serial;             /* the layer's number, which no other layer has */
} opdi_batched;
static inline opdi_batched *opdi_batched_of(const opd_tensor *tensor) {
    return (opdi_batched *)(void *)(opdi_view_record_of(tensor) + 1);
}
/* Returns the place of a device, a single number: the low 8 bits are the backend, the others the index plus one (0: the
   current device).  The place of the host is 0. */
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
    return opd_device_make((opd_backend)(place & 255), place / 256 - 1);
}
static inline int64_t *opdi_strides(const opd_tensor *tensor) { return tensor->dims + tensor->ndim; }
/* Returns true if `first` and `second` have the same storage, or two storages over the same memory that count writes
   separately: see opd_tensor_data. */
static inline bool opdi_same_memory(const opd_tensor *first, const opd_tensor *second) {
    const opdi_storage *storage = first->storage, *other = second->storage;
    return storage == other || (storage && other && storage->data && storage->data == other->data);
}

//== schema lexer ======================================================================================================

/* Kinds of types.  A type's `kind` says how it behaves, and its `word` is the text that is printed.  SymInt and
   ScalarType, for example, have the kind of int. */
typedef enum opdi_type_kind {
    OPDI_TYPE_TENSOR = 1, OPDI_TYPE_INT, OPDI_TYPE_FLOAT, OPDI_TYPE_BOOL, OPDI_TYPE_COMPLEX, OPDI_TYPE_STR,
    OPDI_TYPE_NUMBER, OPDI_TYPE_DEVICE, OPDI_TYPE_GENERATOR, OPDI_TYPE_NONE, OPDI_TYPE_OTHER /* Storage, Stream, ... */,
    OPDI_TYPE_VAR, OPDI_TYPE_CLASS, OPDI_TYPE_LIST, OPDI_TYPE_OPTIONAL, OPDI_TYPE_TUPLE, OPDI_TYPE_DICT,
    OPDI_TYPE_UNION, OPDI_TYPE_FUTURE, OPDI_TYPE_RREF, OPDI_TYPE_AWAIT
} opdi_type_kind;
/* An alias annotation such as "(a! -> b|c)": the names of the sets before and after the call, in source order.  A bare
   "!" has one set before, "$0", and none after. */
typedef struct opdi_alias {
    bool write;
    int nbefore, nafter;
    const char *const *before, *const *after;     /* "*" stands for any set */
} opdi_alias;
typedef struct opdi_type {
    int32_t kind;                                 /* opdi_type_kind */
    int32_t size;                                 /* N of a list T[N]; -1 without N */
    int32_t nelems;                               /* list, optional, future: 1; dict: 2; tuple, union: any */
    const char *word;                             /* the word that is printed, for kinds up to CLASS */
    const struct opdi_type *const *elems;
    const opdi_alias *alias;                      /* the annotation on this type itself, or NULL */
} opdi_type;
typedef struct opdi_arg {
    const char *name;                             /* "" if a return has no name */
    const opdi_type *type;
    opd_value value;                              /* the parsed default, if has_default */
    bool has_default, keyword_only, written;      /* written: annotated with "!", here or on its elements */
    uint8_t tag;                                  /* the tag of values that need no conversion; 0: none */
} opdi_arg;
struct opd_schema {
    opdi_arena arena;                             /* owns all memory below */
    const char *ns, *name, *overload;             /* ns and overload are "" if not written */
    opdi_arg *args, *returns;
    const uint16_t *accepts;                      /* for an operator: see opd_op */
    const int8_t *ret_alias;
    int32_t nargs, nreturns;
    bool vararg, varret;
};
#define OPDI_MAX_TYPE_NODES 512
#define OPDI_MAX_ALIAS_SETS 32
#define OPDI_MAX_UNION 32
#define OPDI_MAX_REPEATED 65536
/* Kinds of tokens.  The kind of a one-character operator is that character. */
typedef enum opdi_token_kind {
    OPDI_TOKEN_EOF = 256, OPDI_TOKEN_IDENT, OPDI_TOKEN_NUMBER, OPDI_TOKEN_STRING, OPDI_TOKEN_ARROW, OPDI_TOKEN_DOTS,
    OPDI_TOKEN_NEWLINE, OPDI_TOKEN_INDENT, OPDI_TOKEN_TRUE, OPDI_TOKEN_FALSE, OPDI_TOKEN_NONE, OPDI_TOKEN_NONETYPE,
    OPDI_TOKEN_KEYWORD, OPDI_TOKEN_OPERATOR,
    OPDI_TOKEN_BAD               /* not a token; the error is set */
} opdi_token_kind;
typedef struct opdi_token {
    int kind;                                     /* opdi_token_kind or a character */
    int length;                                   /* in bytes */
    const char *text;                             /* in the source */
} opdi_token;
typedef struct opdi_lexer {
    const char *text, *at, *end;
    opdi_token cur;
    int nesting;                                  /* number of open brackets, inside which a newline is a blank */
    int indent;                                   /* number of blanks before the first token */
} opdi_lexer;
OPDI_COLD_BEGIN
static inline bool opdi_is_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
}
static inline bool opdi_is_digit(int letter) { return letter >= '0' && letter <= '9'; }
OPDI_COLD_END

OPDI_INTERNAL void opdi_lex(opdi_lexer *lexer);
OPDI_COLD_BEGIN
static inline bool opdi_lex_next_if(opdi_lexer *lexer, int kind) {
    if (lexer->cur.kind != kind) { return false; }
    opdi_lex(lexer);
    return true;
}
OPDI_COLD_END

OPDI_NOINLINE OPDI_INTERNAL int opdi_lex_unexpected(const opdi_lexer *lexer, int kind);
OPDI_COLD_BEGIN
/* Moves past a token of this kind, and copies it to *tok unless tok is NULL.  Returns 0, or -1 and sets an error. */
static inline int opdi_lex_expect(opdi_lexer *lexer, int kind, opdi_token *tok) {
    if (OPDI_UNLIKELY(lexer->cur.kind != kind)) {
        opdi_lex_unexpected(lexer, kind);
        return -1;
    }
    if (tok != NULL) { *tok = lexer->cur; }
    opdi_lex(lexer);
    return 0;
}
OPDI_COLD_END
/* "ns::name.overload": pointers into the text.  The length of ns or overload is 0 if it is not written. */
typedef struct opdi_name {
    const char *ns, *name, *overload;
    int nns, nname, noverload;
} opdi_name;

//== schema types ======================================================================================================

typedef struct opdi_parser {
    opdi_lexer lx;
    opdi_arena *arena;
    bool typevars;               /* an unknown lower-case word is a type variable */
    bool written;                /* an annotation of the current argument has "!" */
    int inside;                  /* number of open brackets of composite types; inside them, annotations are dropped,
                                    and words like SymInt become int */
    int nodes;                   /* number of composite types in the current argument; types with brackets count
                                    twice */
    int fresh;                   /* number of bare "!" so far; each gets a set that is named by its number */
} opdi_parser;
/* The words that are types, with their kinds and printed forms. */
typedef struct opdi_base_type { const char *spelled; opdi_type type; } opdi_base_type;
enum { OPDI_BASE_SCALAR, OPDI_BASE_INT };         /* rows of opdi_base_types */

//== schema constants ==================================================================================================

/* A number that was read.  `i` is valid if `integral` is set and `overflow` is not, `d` always. */
typedef struct opdi_lexed {
    bool integral, imaginary, overflow;           /* overflow: integral, but too large for int64_t */
    int64_t i;
    double d;
} opdi_lexed;

//== schema printer ====================================================================================================

/* A buffer for text.  The text is cut to `cap` bytes; `length` is the length of the uncut text.  If `plain` is set,
   types are written by their kind (SymInt as int), without annotations and without N of T[N]. */
typedef struct opdi_writer {
    char *buf;
    size_t cap, length;
    bool plain;
} opdi_writer;

//== keys ==============================================================================================================

#define OPDI_BACKEND_MASK (((uint64_t)1 << OPD_BACKEND_COUNT) - 1)
#define OPDI_ROWS 7                               /* number of per-backend functionalities */
/* For each functionality, its slot in the dispatch table.  A per-backend functionality has a row of slots: then
   this is the first one. */
static const uint8_t opdi_key_base[64] = {
    0, 64, 2, 3, 4, 5, 80, 7, 8, 96, 112, 128, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29,
    30, 31, 32, 33, 34, 35, 36, 144, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 160, 49, 50, 51, 52, 53, 54, 55, 56, 57,
    58, 59, 60, 61, 62, OPDI_DEAD_KEY
};
/* A number beyond all keys, at which forward-mode rules (jvp) are registered. */
#define OPDI_KEY_JVP (OPD_KEY_COUNT + 1)
#define OPDI_AUTOGRAD_BITS (OPD_BIT_OF(OPD_F_AUTOGRAD_OTHER) | OPD_BIT_OF(OPD_F_AUTOGRAD) | \
                            OPD_BIT_OF(OPD_F_AUTOGRAD_NESTED_TENSOR))
#define OPDI_BACK_BIT OPD_BIT_OF(OPD_F_DYNAMIC_LAYER_BACK)
#include "types.prototypes.h"
#endif

