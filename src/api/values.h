//----------------------------------------------------------------------------------------------------------------------
//  >>api:values     dtypes, devices, the 16-byte tagged value
//----------------------------------------------------------------------------------------------------------------------

/* Element types (dtypes), with ATen's ScalarType numbers, which schemas print.  OPD_DTYPE_NONE means no dtype. */
typedef enum opd_scalar_type {
    OPD_UINT8 = 0, OPD_INT8 = 1, OPD_INT16 = 2, OPD_INT32 = 3, OPD_INT64 = 4, OPD_FLOAT16 = 5, OPD_FLOAT32 = 6,
    OPD_FLOAT64 = 7, OPD_COMPLEX64 = 9, OPD_COMPLEX128 = 10, OPD_BOOL = 11, OPD_BFLOAT16 = 15,
    /* Dtypes for storage: tensors can be created, moved, cast, viewed, compared, printed, and read from and
       written to files.  Few operators compute with them; the other operators fail with PyTorch's "not implemented for
       'float8_e4m3fn'". */
    OPD_COMPLEX32 = 8, OPD_FLOAT8_E5M2 = 23, OPD_FLOAT8_E4M3FN = 24, OPD_FLOAT8_E5M2FNUZ = 25,
    OPD_FLOAT8_E4M3FNUZ = 26, OPD_UINT16 = 27, OPD_UINT32 = 28, OPD_UINT64 = 29, OPD_FLOAT8_E8M0FNU = 44,
    /* Dtypes of weights in few bits.  A row of numbers is stored in blocks of 32 to 256, each with its own scale, as in
       GGUF files: see opd_dtype_block.  The number is 64 plus the number of the type in GGUF.  OPD_WEIGHT_F16 and
       OPD_WEIGHT_BF16 have no scale: they are the numbers of OPD_FLOAT16 and OPD_BFLOAT16, 32 in a block, as a weight
       for activations of float32 (opd_view_dtype makes one of the other, without a copy; no gradient flows through
       it). */
    OPD_WEIGHT_F16 = 65, OPD_WEIGHT_BF16 = 94,
    OPD_Q4_0 = 66, OPD_Q4_1 = 67, OPD_Q5_0 = 70, OPD_Q5_1 = 71, OPD_Q8_0 = 72, OPD_Q8_1 = 73, OPD_Q2_K = 74,
    OPD_Q3_K = 75, OPD_Q4_K = 76, OPD_Q5_K = 77, OPD_Q6_K = 78, OPD_Q8_K = 79, OPD_IQ2_XXS = 80, OPD_IQ2_XS = 81,
    OPD_IQ3_XXS = 82, OPD_IQ1_S = 83, OPD_IQ4_NL = 84, OPD_IQ3_S = 85, OPD_IQ2_S = 86, OPD_IQ4_XS = 87,
    OPD_IQ1_M = 93, OPD_TQ1_0 = 98, OPD_TQ2_0 = 99, OPD_MXFP4 = 103, OPD_NVFP4 = 104, OPD_Q1_0 = 105, OPD_Q2_0 = 106,
    /* The range of the numbers of dtypes of integers with scales, which opd_dtype_int_blocks returns. */
    OPD_INT_BLOCKS = 65536, OPD_INT_BLOCKS_LAST = OPD_INT_BLOCKS + 2097152 + 15,
    OPD_DTYPE_NONE = -1
} opd_scalar_type;
OPD_API const char *opd_dtype_name(opd_scalar_type dtype);        /* such as "float32"; "?" for an invalid number */
OPD_API const char *opd_dtype_cname(opd_scalar_type dtype);       /* ATen's name: "Float" */
OPD_API size_t opd_dtype_size(opd_scalar_type dtype);             /* bytes per element; 0 if invalid or in blocks */
/* Returns how many elements a block of the dtype has, and writes the bytes of a block to *bytes, unless it is NULL: 32
   and 18 for OPD_Q4_0.  For a dtype whose elements have their own bytes, the block is one element.  For a number that
   is not a dtype, returns 0 and writes 0. */
OPD_NEW int64_t opd_dtype_block(opd_scalar_type dtype, int64_t *bytes);
/* Returns the dtype of weights that are integers of `bits` bits, 1 to 8, in blocks of `group` elements.  `group` is a
   multiple of 8, at most 1048576; if it is the length of a row, each row has one scale.  A block has the scale, a
   float32; if `asymmetric` is true, the zero point, a float32; and the codes, from 0 to 2^bits - 1.  A number is
   (code - zero point) * scale, as in torchao's dequantize_affine.  If `asymmetric` is false, the zero point is
   2^(bits - 1).  Floats have the lowest byte first.  Codes follow one another without gaps, the first one in the lowest
   bits of the first byte: of two codes of 4 bits, the first one is byte & 15.  The name is such as "int4_group32" or
   "int4_group32_asymmetric".  Returns OPD_DTYPE_NONE, and sets an error, for other arguments.  Any thread may call
   this.  The number of a dtype is the same in all programs and versions: it may be written to files.
   opd_dtype_int_bits: Returns the bits of such a dtype, and writes the arguments with which it was made to *group and
   *asymmetric, unless they are NULL.  For another dtype, returns 0 and writes 0 and false. */
OPD_NEW opd_scalar_type opd_dtype_int_blocks(int bits, int64_t group, bool asymmetric);
OPD_NEW int opd_dtype_int_bits(opd_scalar_type dtype, int64_t *group, bool *asymmetric);
OPD_API bool opd_dtype_is_floating(opd_scalar_type dtype);        /* true for float8 to float64 */
OPD_API bool opd_dtype_is_complex(opd_scalar_type dtype);
OPD_API bool opd_dtype_is_integral(opd_scalar_type dtype, bool include_bool);
/* Returns the dtype to which two operands of these dtypes are promoted (torch.promote_types). */
OPD_API opd_scalar_type opd_promote_types(opd_scalar_type a, opd_scalar_type b);
/* Returns true if a cast between the dtypes is allowed (torch.can_cast(from, to)). */
OPD_API bool opd_can_cast(opd_scalar_type from, opd_scalar_type to);

/* Backends, in the order of their bits in a key set.  A device type is a backend. */
typedef enum opd_backend {
    OPD_CPU = 0, OPD_CUDA, OPD_HIP, OPD_XLA, OPD_MPS, OPD_IPU, OPD_XPU, OPD_HPU, OPD_VE, OPD_LAZY, OPD_MTIA,
    OPD_PRIVATEUSE1, OPD_PRIVATEUSE2, OPD_PRIVATEUSE3, OPD_META, OPD_BACKEND_COUNT
} opd_backend;
typedef struct opd_device { int32_t type; int32_t index; } opd_device;      /* index -1: the current device */
OPD_INLINE opd_device opd_device_make(opd_backend type, int index) {
    opd_device device;
    device.type = OPDI_CAST(int32_t, type);
    device.index = index;
    return device;
}
/* Parses a device such as "cpu", "cuda:1" or "meta" into *out.  Returns 0, or -1 and sets an error. */
OPD_API int opd_device_parse(const char *text, opd_device *out);
/* Writes the device as "cuda:1" to buf, cut to `cap` bytes including the final zero.  Returns the full length. */
OPD_API size_t opd_device_print(opd_device device, char *buf, size_t cap);

typedef enum opd_tag {
    OPD_TAG_NONE = 0, OPD_TAG_TENSOR, OPD_TAG_INT, OPD_TAG_FLOAT, OPD_TAG_BOOL, OPD_TAG_COMPLEX, OPD_TAG_STR,
    OPD_TAG_DEVICE, OPD_TAG_OBJECT, OPD_TAG_INTS, OPD_TAG_FLOATS, OPD_TAG_BOOLS, OPD_TAG_TENSORS, OPD_TAG_LIST,
    OPD_TAG_DEFAULT,             /* in an argument list: use the schema's default */
    OPD_TAG_CELL,                /* a string, list, dict, tuple or object of graphs and scripts: see >>api:cells */
    OPD_TAG_COUNT
} opd_tag;

/* An argument or result of an operator.  Values borrow: the memory that a pointer points to belongs to the caller, and
   must live until the call returns.  ScalarType, Layout and MemoryFormat are passed as INT, Generator as OBJECT. */
typedef struct opd_value {
    int32_t tag;                                  /* opd_tag */
    int32_t n;                                    /* length of a list or string */
    union {
        int64_t i;                                /* INT, BOOL (0 or 1) */
        double d;                                 /* FLOAT */
        const double *c;                          /* COMPLEX: two doubles */
        const char *s;                            /* STR, zero-terminated */
        opd_tensor *t;                            /* TENSOR, never NULL */
        opd_device device;
        void *object;
        const int64_t *ints;                      /* INTS */
        const double *floats;                     /* FLOATS */
        const bool *bools;                        /* BOOLS */
        opd_tensor *const *tensors;               /* TENSORS; NULL is None in a list of type Tensor?[] */
        const struct opd_value *list;             /* LIST: elements of any kind */
    } u;
} opd_value;

OPD_INLINE opd_value opd_value_none(void) {
    opd_value value;
    value.tag = OPD_TAG_NONE;
    value.n = 0;
    value.u.i = 0;
    return value;
}
OPD_INLINE opd_value opd_value_default(void) {
    opd_value value = opd_value_none();
    value.tag = OPD_TAG_DEFAULT;
    return value;
}
OPD_INLINE opd_value opd_value_int(int64_t i) {
    opd_value value;
    value.tag = OPD_TAG_INT;
    value.n = 0;
    value.u.i = i;
    return value;
}
OPD_INLINE opd_value opd_value_double(double d) {
    opd_value value;
    value.tag = OPD_TAG_FLOAT;
    value.n = 0;
    value.u.d = d;
    return value;
}
OPD_INLINE opd_value opd_value_bool(bool b) {
    opd_value value;
    value.tag = OPD_TAG_BOOL;
    value.n = 0;
    value.u.i = b;
    return value;
}
OPD_INLINE opd_value opd_value_complex(const double *re_im) {
    opd_value value;
    value.tag = OPD_TAG_COMPLEX;
    value.n = 0;
    value.u.c = re_im;
    return value;
}
/* opd_value_tensor, opd_value_str and opd_value_object return None for NULL. */
OPD_INLINE opd_value opd_value_tensor(opd_tensor *tensor) {
    opd_value value;
    value.tag = tensor ? OPD_TAG_TENSOR : OPD_TAG_NONE;
    value.n = 0;
    value.u.t = tensor;
    return value;
}
OPD_INLINE opd_value opd_value_str(const char *text) {
    opd_value value;
    value.tag = text ? OPD_TAG_STR : OPD_TAG_NONE;
    value.n = 0;
    value.u.s = text;
    return value;
}
OPD_INLINE opd_value opd_value_object(void *memory) {
    opd_value value;
    value.tag = memory ? OPD_TAG_OBJECT : OPD_TAG_NONE;
    value.n = 0;
    value.u.object = memory;
    return value;
}
OPD_INLINE opd_value opd_value_generator(opd_generator *generator) { return opd_value_object(generator); }
OPD_INLINE opd_value opd_value_device(opd_device device) {
    opd_value value;
    value.tag = OPD_TAG_DEVICE;
    value.n = 0;
    value.u.device = device;
    return value;
}
OPD_INLINE opd_value opd_value_ints(const int64_t *ints, int64_t count) {
    opd_value value;
    value.tag = OPD_TAG_INTS;
    value.n = OPDI_CAST(int32_t, count);
    value.u.ints = ints;
    return value;
}
OPD_INLINE opd_value opd_value_doubles(const double *doubles, int64_t count) {
    opd_value value;
    value.tag = OPD_TAG_FLOATS;
    value.n = OPDI_CAST(int32_t, count);
    value.u.floats = doubles;
    return value;
}
OPD_INLINE opd_value opd_value_bools(const bool *bools, int64_t count) {
    opd_value value;
    value.tag = OPD_TAG_BOOLS;
    value.n = OPDI_CAST(int32_t, count);
    value.u.bools = bools;
    return value;
}
OPD_INLINE opd_value opd_value_tensors(opd_tensor *const *tensors, int64_t count) {
    opd_value value;
    value.tag = OPD_TAG_TENSORS;
    value.n = OPDI_CAST(int32_t, count);
    value.u.tensors = tensors;
    return value;
}
OPD_INLINE opd_value opd_value_list(const opd_value *elements, int64_t count) {
    opd_value value;
    value.tag = OPD_TAG_LIST;
    value.n = OPDI_CAST(int32_t, count);
    value.u.list = elements;
    return value;
}
OPD_INLINE opd_value opdi_value_same(opd_value value) { return value; }
OPD_INLINE opd_value opdi_value_null(const void *memory) {
    (void)memory;
    return opd_value_none();
}

/* Borrowed lists of integers, doubles or tensors: OPD_INTS(3, 4), OPD_TENSORS(a, b), opd_ints_of(p, n).  The array of a
   list from OPD_INTS, OPD_DOUBLES or OPD_TENSORS lives until the end of the block in C, and until the end of the
   statement in C++.  In C++, write `auto s = OPD_INTS(3, 4);` for an array that lives as long as s. */
typedef struct opd_ints { const int64_t *data; int64_t n; } opd_ints;
typedef struct opd_doubles { const double *data; int64_t n; } opd_doubles;
typedef struct opd_tensors { opd_tensor *const *data; int64_t n; } opd_tensors;
OPD_INLINE opd_ints opd_ints_of(const int64_t *ints, int64_t count) {
    opd_ints list;
    list.data = ints;
    list.n = count;
    return list;
}
OPD_INLINE opd_doubles opd_doubles_of(const double *doubles, int64_t count) {
    opd_doubles list;
    list.data = doubles;
    list.n = count;
    return list;
}
OPD_INLINE opd_tensors opd_tensors_of(opd_tensor *const *tensors, int64_t count) {
    opd_tensors list;
    list.data = tensors;
    list.n = count;
    return list;
}
OPD_INLINE opd_value opd_value_of_ints(opd_ints list) { return opd_value_ints(list.data, list.n); }
OPD_INLINE opd_value opd_value_of_doubles(opd_doubles list) { return opd_value_doubles(list.data, list.n); }
OPD_INLINE opd_value opd_value_of_tensors(opd_tensors list) { return opd_value_tensors(list.data, list.n); }
/* Returns a list of ints as a value.  {NULL, 0} becomes None. */
OPD_INLINE opd_value opd_value_optional_ints(opd_ints list) {
    return list.data || list.n ? opd_value_ints(list.data, list.n) : opd_value_none();
}
/* Returns a dtype as a value for an argument.  OPD_DTYPE_NONE becomes None. */
OPD_INLINE opd_value opd_value_dtype(opd_scalar_type dtype) {
    return dtype == OPD_DTYPE_NONE ? opd_value_none() : opd_value_int(dtype);
}
OPD_INLINE opd_value opd_value_uint(uint64_t i) { return opd_value_int(OPDI_CAST(int64_t, i)); }
#define OPD_NONE opd_value_none()
#define OPD_DEFAULT opd_value_default()

