//----------------------------------------------------------------------------------------------------------------------
//  >>ops_h        operators: types, macros and inline functions that several groups of operators use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_OPS_H)
#define OPDI_OPS_H
#include "../collective/collective.h"
#include "cards.h"

//== complex numbers ===================================================================================================

static inline opdi_complex opdi_complex_make(double re, double im) {
    opdi_complex z;
    z.re = re;
    z.im = im;
    return z;
}
static inline opdi_complex opdi_complex_add(opdi_complex x, opdi_complex y) {
    return opdi_complex_make(x.re + y.re, x.im + y.im);
}
static inline opdi_complex opdi_complex_sub(opdi_complex x, opdi_complex y) {
    return opdi_complex_make(x.re - y.re, x.im - y.im);
}
static inline opdi_complex opdi_complex_mul(opdi_complex x, opdi_complex y) {
    return opdi_complex_make(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}
static inline opdi_complex opdi_complex_conj(opdi_complex x) { return opdi_complex_make(x.re, -x.im); }
static inline opdi_complex opdi_complex_times(double k, opdi_complex x) {
    return opdi_complex_make(k * x.re, k * x.im);
}
static inline bool opdi_complex_zero(opdi_complex x) { return x.re == 0 && x.im == 0; }
/* Lets autocast lower no operators that a kernel calls, until opd_keys_restore of the result.  For kernels that do not
   call lowered operators in PyTorch. */
static inline opd_key_guard opdi_autocast_off(void) {
    return opd_keys_exclude(opd_keyset_make(OPD_BIT_OF(OPD_F_AUTOCAST), 0));
}
OPDI_COLD_BEGIN
/* Returns true and sets an error if complex numbers were left out of this build (OPD_NO_COMPLEX).  Then compilers drop
   the code after the check. */
static inline bool opdi_complex_left_out(void) {
#if defined(OPD_NO_COMPLEX)
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "arithmetic of complex numbers is left out: OPD_NO_COMPLEX was defined");
    return true;
#else
    return false;
#endif
}
/* The functions below set an error that several families report, most of them in PyTorch's words, and return -1.
   opdi_dtype_fail: there is no kernel `what` for this dtype. */
static inline int opdi_dtype_fail(const char *what, int dtype) {
    return opd_fail(OPD_ERROR_DTYPE, "\"%s\" not implemented for '%s'", what, opd_dtype_name((opd_scalar_type)dtype));
}
/* A tensor has dtype `found`, but must have the dtype of another tensor, `expected`. */
static inline int opdi_found_fail(int found, int expected) {
    return opd_fail(OPD_ERROR_DTYPE, "Found dtype %s but expected %s", opd_dtype_name((opd_scalar_type)found),
                    opd_dtype_name((opd_scalar_type)expected));
}
static inline int opdi_out_dtype_fail(int expected, int found) {
    return opd_fail(OPD_ERROR_DTYPE, "Expected out tensor to have dtype %s, but got %s instead",
                    opd_dtype_name((opd_scalar_type)expected), opd_dtype_name((opd_scalar_type)found));
}
static inline int opdi_cast_fail(int from, int to) {
    return opd_fail(OPD_ERROR_DTYPE, "result type %s can't be cast to the desired output type %s",
                    opd_dtype_name((opd_scalar_type)from), opd_dtype_name((opd_scalar_type)to));
}
static inline int opdi_overflow_fail(opd_scalar_type dtype) {
    return opd_fail(OPD_ERROR_DTYPE, "value cannot be converted to %s without overflow", opd_dtype_name(dtype));
}
/* `dim` was given for a tensor without dimensions. */
static inline int opdi_no_dims_fail(int64_t dim) {
    return opd_fail(OPD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
}
static inline int opdi_dim_twice_fail(int64_t dim) {
    return opd_fail(OPD_ERROR_ARGUMENT, "dim %lld appears multiple times in the list of dims", (long long)dim);
}
/* A tensor would have `ndim` dimensions, which are too many. */
static inline int opdi_dims_fail(int64_t ndim) {
    return (int)opdi_count_error(NULL, (int)OPDI_MIN(ndim, (int64_t)INT32_MAX));
}
/* A kernel could not allocate a temporary buffer. */
static inline int opdi_buffer_fail(void) {
    return opd_fail(OPD_ERROR_MEMORY, "out of memory: a temporary buffer could not be allocated");
}
/* Writes the tensor's sizes to `text`, in brackets.  Returns text. */
static inline const char *opdi_shape_text(const opd_tensor *tensor, char text[256]) {
    return opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, text, 256);
}
OPDI_COLD_END

//== options of operators that create tensors ==========================================================================

/* The options of an operator that creates a tensor.  format: the memory format, or -1 if none was given.  The options
   layout and pin_memory are not stored, because they have only one supported value. */
typedef struct opdi_options { opd_scalar_type dtype; opd_device device; int64_t format; } opdi_options;
/* Memory formats, with the numbers of c10::MemoryFormat. */
enum { OPDI_FORMAT_CONTIGUOUS = 0, OPDI_FORMAT_PRESERVE, OPDI_FORMAT_LAST, OPDI_FORMAT_LAST_3D };
#define OPDI_OPTIONS_TEXT "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
#define OPDI_FORMAT_TEXT OPDI_OPTIONS_TEXT ", MemoryFormat? memory_format=None"
#define OPDI_INTS_TEXT "ScalarType? dtype=4, Layout? layout=None, Device? device=None, bool? pin_memory=None"

//== random numbers ====================================================================================================

#define OPDI_GENERATOR_TEXT ", *, Generator? generator=None) -> Tensor"

//== geometry of views =================================================================================================

/* The sizes and strides of a new view, which begin as those of a tensor. */
typedef struct opdi_geometry { int ndim; int64_t sizes[OPD_MAX_DIMS + 1], strides[OPD_MAX_DIMS + 1]; } opdi_geometry;

//== pointwise operators ===============================================================================================

#if !defined(OPD_NO_OPERATORS)
OPDI_LOOPS_BEGIN
static inline int64_t opdi_wrap_add(int64_t x, int64_t y) { return (int64_t)((uint64_t)x + (uint64_t)y); }
static inline int64_t opdi_wrap_sub(int64_t x, int64_t y) { return (int64_t)((uint64_t)x - (uint64_t)y); }
static inline int64_t opdi_wrap_mul(int64_t x, int64_t y) { return (int64_t)((uint64_t)x * (uint64_t)y); }
OPDI_LOOPS_END
/* Flags for opdi_formula.rule: how an operator treats dtypes and numbers. */
#define OPDI_TO_FLOAT 1                           /* integers and bool are promoted to float32 */
#define OPDI_TO_BOOL 2                            /* results are bool, whatever the dtype of the inputs */
#define OPDI_NOT_BOOL 4                           /* bool inputs are an error */
#define OPDI_BOOL_TO_INT 8                        /* bool is promoted to int64 */
#define OPDI_CONTIGUOUS_RESULT 16                 /* the result does not take its inputs' strides */
#define OPDI_NUMBER_KEPT 32                       /* if the other operand is a 16-bit float, a number is
                                                     not rounded to 16 bits */
/* A pointwise formula.  loop: its loops, by the type in which they compute (OPDI_F32, ...), or NULL; if there is a
   double loop but no float loop, floats are computed in double.  what: the kernel's name in the message "not
   implemented for".  rule: the flags above.  number: the opd_formula for floats, and the one for integers.  run: a
   faster function for some dtypes and layouts, which returns false for all others; or NULL. */
typedef struct opdi_formula {
    opdi_loop loop[3];
    const char *what;
    int rule;
    int16_t number[2];
    opdi_loop (*complex_loop)(opd_scalar_type dtype);        /* opdi_complex_of_NAME; NULL: complex is not supported */
    bool (*run)(const struct opdi_formula *formula, opd_tensor *const *ops, int nops);
} opdi_formula;
/* Functions of a later file, for `run` of formulas. */
OPDI_INTERNAL bool opdi_bits_run(const opdi_formula *formula, opd_tensor *const *ops, int nops);
OPDI_INTERNAL bool opdi_bits_or_words_run(const opdi_formula *formula, opd_tensor *const *ops, int nops);
/* Functions of complex_functions.typed.h. */
OPDI_INTERNAL double opdi_complex_abs(opdi_complex x);
OPDI_INTERNAL opdi_complex opdi_complex_div(opdi_complex x, opdi_complex y);
OPDI_INTERNAL opdi_complex opdi_complex_log(opdi_complex x);
OPDI_INTERNAL opdi_complex opdi_complex_sqrt(opdi_complex x);
OPDI_INTERNAL opdi_complex opdi_complex_logaddexp(opdi_complex x, opdi_complex y);
/* The pointwise formulas for complex numbers, see complex.c.  OPDI_COMPLEX_LOOPS(add) is the function that returns the
   loops of add; for a formula that is not listed here, it is NULL. */
#define OPDI_COMPLEX_NAMES(X) \
    X(add_scaled) X(sub_scaled) X(cube) X(where) X(addcmul) X(addcdiv) X(logical_not) X(logical_and) X(logical_or) \
    X(logical_xor) X(isnan) X(isinf) X(isfinite) X(pow) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sqrt) \
    X(rsqrt) X(tan) X(acos) X(atan) X(sinh) X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(silu) X(sinc) X(logaddexp) \
    X(lerp) X(lerp_scalar) X(tanh_backward) X(sigmoid_backward) X(exp) X(sigmoid) X(sin) X(cos) X(asin) X(eq) X(ne) \
    X(abs) X(add) X(sub) X(neg) X(mul) X(square) X(reciprocal) X(div) X(sign)
#define OPDI_COMPLEX_PROTOTYPE(name) OPDI_INTERNAL opdi_loop opdi_complex_of_##name(opd_scalar_type dtype);
OPDI_COMPLEX_NAMES(OPDI_COMPLEX_PROTOTYPE)
#define OPDI_SECOND_OF(first, second, ...) second
#define OPDI_SECOND_OR_NULL(words) OPDI_SECOND_OF(words, NULL, 0)
#define OPDI_COMPLEX_LOOPS(name) OPDI_SECOND_OR_NULL(OPDI_COMPLEX_HAS_##name)
#define OPDI_COMPLEX_HAS_add_scaled 0, opdi_complex_of_add_scaled
#define OPDI_COMPLEX_HAS_sub_scaled 0, opdi_complex_of_sub_scaled
#define OPDI_COMPLEX_HAS_cube 0, opdi_complex_of_cube
#define OPDI_COMPLEX_HAS_where 0, opdi_complex_of_where
#define OPDI_COMPLEX_HAS_addcmul 0, opdi_complex_of_addcmul
#define OPDI_COMPLEX_HAS_addcdiv 0, opdi_complex_of_addcdiv
#define OPDI_COMPLEX_HAS_logical_not 0, opdi_complex_of_logical_not
#define OPDI_COMPLEX_HAS_logical_and 0, opdi_complex_of_logical_and
#define OPDI_COMPLEX_HAS_logical_or 0, opdi_complex_of_logical_or
#define OPDI_COMPLEX_HAS_logical_xor 0, opdi_complex_of_logical_xor
#define OPDI_COMPLEX_HAS_isnan 0, opdi_complex_of_isnan
#define OPDI_COMPLEX_HAS_isinf 0, opdi_complex_of_isinf
#define OPDI_COMPLEX_HAS_isfinite 0, opdi_complex_of_isfinite
#define OPDI_COMPLEX_HAS_pow 0, opdi_complex_of_pow
#define OPDI_COMPLEX_HAS_exp2 0, opdi_complex_of_exp2
#define OPDI_COMPLEX_HAS_expm1 0, opdi_complex_of_expm1
#define OPDI_COMPLEX_HAS_log 0, opdi_complex_of_log
#define OPDI_COMPLEX_HAS_log2 0, opdi_complex_of_log2
#define OPDI_COMPLEX_HAS_log10 0, opdi_complex_of_log10
#define OPDI_COMPLEX_HAS_log1p 0, opdi_complex_of_log1p
#define OPDI_COMPLEX_HAS_sqrt 0, opdi_complex_of_sqrt
#define OPDI_COMPLEX_HAS_rsqrt 0, opdi_complex_of_rsqrt
#define OPDI_COMPLEX_HAS_tan 0, opdi_complex_of_tan
#define OPDI_COMPLEX_HAS_acos 0, opdi_complex_of_acos
#define OPDI_COMPLEX_HAS_atan 0, opdi_complex_of_atan
#define OPDI_COMPLEX_HAS_sinh 0, opdi_complex_of_sinh
#define OPDI_COMPLEX_HAS_cosh 0, opdi_complex_of_cosh
#define OPDI_COMPLEX_HAS_tanh 0, opdi_complex_of_tanh
#define OPDI_COMPLEX_HAS_asinh 0, opdi_complex_of_asinh
#define OPDI_COMPLEX_HAS_acosh 0, opdi_complex_of_acosh
#define OPDI_COMPLEX_HAS_atanh 0, opdi_complex_of_atanh
#define OPDI_COMPLEX_HAS_silu 0, opdi_complex_of_silu
#define OPDI_COMPLEX_HAS_sinc 0, opdi_complex_of_sinc
#define OPDI_COMPLEX_HAS_logaddexp 0, opdi_complex_of_logaddexp
#define OPDI_COMPLEX_HAS_lerp 0, opdi_complex_of_lerp
#define OPDI_COMPLEX_HAS_lerp_scalar 0, opdi_complex_of_lerp_scalar
#define OPDI_COMPLEX_HAS_tanh_backward 0, opdi_complex_of_tanh_backward
#define OPDI_COMPLEX_HAS_sigmoid_backward 0, opdi_complex_of_sigmoid_backward
#define OPDI_COMPLEX_HAS_exp 0, opdi_complex_of_exp
#define OPDI_COMPLEX_HAS_sigmoid 0, opdi_complex_of_sigmoid
#define OPDI_COMPLEX_HAS_sin 0, opdi_complex_of_sin
#define OPDI_COMPLEX_HAS_cos 0, opdi_complex_of_cos
#define OPDI_COMPLEX_HAS_asin 0, opdi_complex_of_asin
#define OPDI_COMPLEX_HAS_eq 0, opdi_complex_of_eq
#define OPDI_COMPLEX_HAS_ne 0, opdi_complex_of_ne
#define OPDI_COMPLEX_HAS_abs 0, opdi_complex_of_abs
#define OPDI_COMPLEX_HAS_add 0, opdi_complex_of_add
#define OPDI_COMPLEX_HAS_sub 0, opdi_complex_of_sub
#define OPDI_COMPLEX_HAS_neg 0, opdi_complex_of_neg
#define OPDI_COMPLEX_HAS_mul 0, opdi_complex_of_mul
#define OPDI_COMPLEX_HAS_square 0, opdi_complex_of_square
#define OPDI_COMPLEX_HAS_reciprocal 0, opdi_complex_of_reciprocal
#define OPDI_COMPLEX_HAS_div 0, opdi_complex_of_div
#define OPDI_COMPLEX_HAS_sign 0, opdi_complex_of_sign
/* The last members of an opdi_formula: the numbers of the formulas for floats and for integers, and the complex
   loops. */
#define OPDI_NUMBER_RUN(f, i, run) {(int16_t)OPD_FORMULA_##f, (int16_t)OPD_FORMULA_##i}, OPDI_COMPLEX_LOOPS(f), run
#define OPDI_NUMBER(f, i) OPDI_NUMBER_RUN(f, i, NULL)
/* The macros OPDI_FORMULA_.. define opdi_formula_ID.  The letters in their names say which loops the formula has.  A:
   float, double, int64.  F: float, double.  B: float and double by blocks (see >>op:float_blocks).  D: double.  DI:
   double, int64.  I: int64.  DV: double, by a vector function.  V: float, double and int64, by vector
   functions. */
#define OPDI_FORMULA_A(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{opdi_f32_##name, opdi_f64_##name, opdi_i64_##name}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_F(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{opdi_f32_##name, opdi_f64_##name, NULL}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_B(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{opdi_f32_v##name, opdi_f64_v##name, NULL}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_D(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{NULL, opdi_f64_##name, NULL}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_DV(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{NULL, opdi_f64_v##name, NULL}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_DI(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{NULL, opdi_f64_##name, opdi_i64_##name}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_V(id, name, rule_) \
    static const opdi_formula opdi_formula_##id = {{opdi_f32_v##name, opdi_f64_v##name, opdi_i64_v##name}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER(name, name)};
#define OPDI_FORMULA_I(id, name, rule_, run_) \
    static const opdi_formula opdi_formula_##id = {{NULL, NULL, opdi_i64_##name}, \
        OPDI_TEXT(#id "_cpu"), rule_, OPDI_NUMBER_RUN(name, name, run_)};
/* A number as an operand without dims, which does not decide the dtype in type promotion (c10::scalar_to_tensor,
   wrapped). */
typedef struct opdi_number { opd_tensor t; union { int64_t i; double d; bool b; double c[2]; } u; } opdi_number;
OPDI_COLD_BEGIN
static inline opd_tensor *opdi_muls(opd_tensor *tensor, double k) {
    return opd_mul_Scalar(tensor, opd_value_double(k));
}
static inline opd_tensor *opdi_adds(opd_tensor *tensor, double k) {
    return opd_add_Scalar(tensor, opd_value_double(k));
}
/* Returns grad / count.  count has integers, which a 16-bit float cannot hold from 2,049 or 65,520 on. */
static inline opd_tensor *opdi_by_count(opd_tensor *grad, opd_tensor *count) {
    if (!grad || opd_dtype_size((opd_scalar_type)grad->dtype) != 2) { return opd_div(grad, count); }
    return opd_to_dtype(opd_div(opd_to_dtype(grad, OPD_FLOAT32), count), (opd_scalar_type)grad->dtype);
}
static inline opd_tensor *opdi_rsubs(double k, opd_tensor *tensor) {
    return opd_rsub_Scalar(tensor, opd_value_double(k));
}
static inline opd_tensor *opdi_conj(opd_tensor *tensor) {
    return opdi_is_complex(tensor) ? opd_conj_physical(tensor) : tensor;
}
/* Returns tensor where mask is false, and 0 where it is true. */
static inline opd_tensor *opdi_unless(opd_tensor *tensor, opd_tensor *mask) {
    return opd_masked_fill_Scalar(tensor, mask, opd_value_int(0));
}
/* Returns tensor / divisor, or 0 where `zero` is true.  There, the divisor is replaced before the division, so that the
   derivatives are 0, too: the derivative of an infinite quotient is NaN, even if the quotient is not used. */
static inline opd_tensor *opdi_div_unless(opd_tensor *tensor, opd_tensor *divisor, opd_tensor *zero) {
    opd_tensor *const kept = opdi_unless(tensor, zero);
    return opd_div(kept, opd_masked_fill_Scalar(divisor, zero, opd_value_int(1)));
}
static inline opd_tensor *opdi_where(opd_tensor *mask, opd_tensor *tensor) {
    return opd_where_ScalarOther(mask, tensor, opd_value_int(0));
}
/* Which factors of products are zero (see opdi_zero_factors_of).  zero: true for such a factor.  ones: the factors,
   with 1 for a zero.  live: the factors that are zero, and 0 for all others; NULL if there is no further derivative. */
typedef struct opdi_zero_factors { opd_tensor *zero, *ones, *live; } opdi_zero_factors;
OPDI_COLD_END
#endif

//== backward functions and test cases of binary operators =============================================================

#if !defined(OPD_NO_OPERATORS)
/* Returns expr from a backward function as the gradient of argument i, if that gradient is needed. */
#define OPDI_BW_RETURN(i, expr) \
    do { if (opd_bw_needs(bw, i) && opd_bw_return(bw, i, expr) != 0) { return -1; } } while (0)
#define OPDI_CASES_BINARY "[2,3], [2,3]; [2,3], [3]; [2,1], [1,3]; [2,3], []"
#define OPDI_CASES_DIV "[2,3], [2,3]+; [2,3], [3]+; [2,1], [1,3]+"
#endif

//== reductions ========================================================================================================

#if !defined(OPD_NO_OPERATORS)
#define OPDI_ALL_DIMS (~(uint64_t)0)
typedef struct opdi_folded {
    double f, g;                                  /* for float and double; the parts of complex numbers */
    int64_t i, n;                                 /* for integers; n is also a count or an index */
} opdi_folded;
/* Which field of the state becomes a result of a fold. */
typedef enum opdi_fold_out {
    OPDI_OUT_NONE,                                /* there is no such result */
    OPDI_OUT_F, OPDI_OUT_G, OPDI_OUT_I, OPDI_OUT_N,
    OPDI_OUT_F_OR_I, OPDI_OUT_G_OR_N,             /* the second field if integers are folded */
    OPDI_OUT_INDEX                                /* n as int64, for all dtypes */
} opdi_fold_out;
typedef struct opdi_reduce opdi_reduce;
/* Folds `count` elements x, of the type in which the fold computes, into the state *folded; the first of them is
   element number `at` of the row. */
typedef void (*opdi_fold_step)(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                               const opdi_reduce *reduce);
/* Folds `depth` more elements of each of `count` rows that lie side by side into foldeds [count].  Element k of row j
   is x[k * OPDI_COLUMNS_TRANSPOSED + j]. */
typedef void opdi_side_fn(opdi_folded *foldeds, const void *x, int64_t count, int64_t depth);
typedef struct opdi_fold {
    opdi_fold_step step[4];                       /* by the type in which it computes; NULL: not supported */
    opdi_loop column[4];                          /* by the same type: the loop x (+) y over arrays that has the same
                                                     effect as the fold, or NULL */
    opdi_side_fn *side[2];                        /* folds rows side by side, of float and double; or NULL */
    void (*join)(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce);
    void (*finish)(opdi_folded *folded, const opdi_reduce *reduce);  /* may be NULL */
    opdi_folded init;
    opdi_fold_out out[2];                         /* which fields are the results */
    const char *what;                             /* the kernel's name in "not implemented for" */
} opdi_fold;
struct opdi_reduce {
    opdi_iter it;                                 /* op[0]: the input, then the outputs; dims [0, nred) are reduced */
    int nred, nouts;
    int64_t count, outer;
    int64_t chunk, chunks;                        /* elements per chunk, chunks per row */
    int64_t tile, tiles;                          /* tile: outputs that are processed together; tiles: tiles of a row */
    opdi_folded *states;                           /* [outer][chunks] if there is more than one chunk */
    const opdi_fold *fold;
    double number;                                /* a number that the operator sets, such as an order */
};
#define OPDI_COLUMNS 256                          /* lines side by side that are processed together */
#define OPDI_COLUMNS_TRANSPOSED 128               /* rows side by side that a reduction folds together */
/* The parameters of an opdi_fold_step. */
#define OPDI_FOLD_ARGS opdi_folded *folded, const void *px, int64_t count, int64_t at, const opdi_reduce *reduce
/* Defines the fold `name`, whose code is in name_body.  On x86, long pieces use a version for AVX2. */
#if defined(OPDI_X86)
#define OPDI_FOLD_WIDE(name) \
    OPDI_AVX2 static void name##_avx2(OPDI_FOLD_ARGS) { name##_body(folded, px, count, at, reduce); } \
    OPDI_INTERNAL void name(OPDI_FOLD_ARGS) { \
        if (count >= 32 && opdi_cpu_level() > 0) { name##_avx2(folded, px, count, at, reduce); } \
        else { name##_body(folded, px, count, at, reduce); } }
#endif
#if defined(OPDI_X86)
#else
#define OPDI_FOLD_WIDE(name) \
    OPDI_INTERNAL void name(OPDI_FOLD_ARGS) { name##_body(folded, px, count, at, reduce); }
#endif
#define OPDI_SUM_BLOCK 512
OPDI_LOOPS_BEGIN
/* Returns the sum of term(x) over `count` contiguous elements x of `size` bytes.  Within a block, computes 16 sums in
   parallel; then adds up the blocks.  In one long sum, later terms would lose digits, because the sum is so much
   larger. */
OPDI_LOOP_TEXT double opdi_sum_terms(const void *data, int64_t size, int64_t count, const opdi_reduce *reduce,
                                     double (*term)(const void *x, const opdi_reduce *reduce)) {
    const char *x = (const char *)data;
    double sums[16] = {0};
    int64_t i = 0;
    while (i + 16 <= count) {
        const int64_t stop = OPDI_MIN(count, i + OPDI_SUM_BLOCK);
        double block[16] = {0};
        for (; i + 16 <= stop; i += 16) {
            OPDI_UNROLL
            for (int j = 0; j < 16; j++) {
                block[j] += term(x + (i + j) * size, reduce);
            }
        }
        for (int j = 0; j < 16; j++) { sums[j] += block[j]; }
    }
    for (; i < count; i++) {
        sums[i & 15] += term(x + i * size, reduce);
    }
    for (int j = 8; j > 0; j >>= 1) {
        for (i = 0; i < j; i++) { sums[i] += sums[i + j]; }
    }
    return sums[0];
}
OPDI_LOOPS_END
/* Defines a fold that adds up expr, an expression in an element x. */
#define OPDI_FOLD_SUM(name, type, expr) \
    OPDI_LOOP_TEXT double name##_term(const void *data, OPD_UNUSED const opdi_reduce *reduce) { \
        const type x = *(const type *)data; return (double)(expr); } \
    OPDI_LOOP_TEXT void name##_body(opdi_folded *folded, const void *px, int64_t count, OPD_UNUSED int64_t at, \
                                    const opdi_reduce *reduce) { \
        folded->f += count == 1 ? name##_term(px, reduce) \
            : opdi_sum_terms(px, (int64_t)sizeof(type), count, reduce, name##_term); } \
    OPDI_FOLD_WIDE(name)
#define OPDI_CASES_ALL "[2,3]; [2,3]i5; []"
#define OPDI_CASES_DIMS "[2,3], (1); [2,3,2], (0,-1), True; [2,3], ()"
#endif

//== operators along one dim ===========================================================================================

#if !defined(OPD_NO_OPERATORS)
typedef struct opdi_lines opdi_lines;
/* Elements [from, from + count) of a line in pass number `pass`. */
typedef struct opdi_piece { int64_t from, count; int pass; } opdi_piece;
/* Processes a piece of a line.  in[k]: at->count elements of the type in which the function computes.  out[k]: memory
   for as many elements, of this type or int64_t; if the piece is a whole line, for len[k] elements.  tmp: scratch
   memory, which keeps its contents between the pieces of a line. */
typedef void (*opdi_line_fn)(const opdi_lines *lines, const opdi_piece *at, const void *const *in, void *const *out,
                             char *tmp);
struct opdi_lines {
    int nin, nops, ndim;                          /* nin: number of inputs; nops: of operands; ndim: of dims, without
                                                     the dim of the line */
    int64_t count, outer;                         /* count: elements of an input line; outer: number of lines */
    int64_t len[4];                               /* elements of a line of each operand */
    int64_t sizes[OPD_MAX_DIMS];                  /* of the ndim dims, innermost first */
    int64_t stride[4][OPD_MAX_DIMS], step[4];     /* in bytes; step: along the line */
    char *data[4];
    int32_t size[4], work[4];                     /* bytes of an element: in the tensor, for the function */
    opdi_convert load[4], store[4];               /* conversions; NULL: none is needed */
    int64_t buffer_bytes[4];                      /* bytes of each operand's buffer; 0: none is needed */
    size_t tmp;                                   /* bytes of scratch memory */
    int passes;                                   /* 0: the function reads lines in memory, not copied */
    int64_t piece;                                /* elements of a piece; count: whole lines */
    opdi_line_fn fn;
    int64_t number;                               /* numbers and flags that the operator sets */
    bool flag, flag2, keep_strides;
    int failed;
};
#if defined(OPDI_X86)
#define OPDI_LINE_WIDE(wide) if (count >= 32 && opdi_cpu_level() > 0) { wide; }
#endif
#if defined(OPDI_X86)
#else
#define OPDI_LINE_WIDE(wide)
#endif
#endif

//== cumulative operators, sorting: results ============================================================================

#if !defined(OPD_NO_OPERATORS)
#define OPDI_PAIR " -> (Tensor values, Tensor indices)"
#endif

//== sort keys =========================================================================================================

#if !defined(OPD_NO_OPERATORS)
/* A sort key and the index of its element.  Unsigned keys have the order of the elements: NaN is above all numbers, -0
   equals 0. */
typedef struct opdi_key { uint64_t key; int64_t index; } opdi_key;
#endif

//== matrix products ===================================================================================================

#if !defined(OPD_NO_OPERATORS)
#define OPDI_DTYPE(t) ((opd_scalar_type)(t)->dtype)
/* A batch of matrices: element (b, i, j) is b * bs + i * rs + j * cs elements after data. */
typedef struct opdi_matrix { char *data; int64_t bs, rs, cs; } opdi_matrix;
typedef struct opdi_products {
    opdi_matrix a, b, c;
    int dtype, from;                              /* dtype: dtype of c; from: dtype of a and b */
    int64_t batch, m, n, k;
    double beta;
    int32_t failed;
    int8_t dots, outer, large;                    /* dots: m = n = 1; outer: k = 1, not added to c; large: c exceeds
                                                     caches */
} opdi_products;
/* A factor of a product under vmap.  The tensor has all examples; dim counts them, or is -1 if all share it.  One
   example has ndim dims. */
typedef struct opdi_factor { opd_tensor *tensor; int dim, ndim; } opdi_factor;
#endif

//== matrix factorizations =============================================================================================

#if !defined(OPD_NO_OP_SOLVE)
/* The arguments of a kernel that processes one matrix of a batch: sizes, and up to four tensors `data`, each with the
   distance `step` of its matrices in elements. */
typedef struct opdi_solver {
    int64_t rows, columns, count;
    char *data[4];
    int64_t step[4];
    int32_t *pivots, *info;                       /* pivots [batch, npivots], info [batch] */
    int64_t npivots;
    double least;                                 /* smaller singular values (relative to the largest) are 0 */
    bool upper, left, unit, turned, vectors;
    bool columns_first;                           /* matrices in data[0] are stored by columns */
    int (*run)(const struct opdi_solver *solver, int64_t at);       /* returns 0, or -1 if memory runs out */
    /* if not NULL, processes matrices [begin, end) in place of `run` */
    void (*lanes)(const struct opdi_solver *solver, int64_t begin, int64_t end);
    int32_t failed;
} opdi_solver;
enum { OPDI_LANES_ROWS = 6 };                          /* the most rows of matrices that opdi_solver.lanes processes */
OPDI_LOOPS_BEGIN
/* Returns the address of matrix number `at` of tensor solver->data[which], whose elements have `bytes` bytes.  Returns
   NULL if the tensor has no memory. */
static inline void *opdi_solver_at(const opdi_solver *solver, int which, int64_t at, size_t bytes) {
    char *const data = solver->data[which];
    return data ? data + at * solver->step[which] * (int64_t)bytes : NULL;
}
OPDI_LOOPS_END
#define OPDI_SOLVER_FN(name) \
    OPDI_INTERNAL int opdi_##name##_f32(const opdi_solver *solver, int64_t at); \
    OPDI_INTERNAL int opdi_##name##_f64(const opdi_solver *solver, int64_t at);
enum { OPDI_PANEL = 32 };                         /* reflections that are applied together */
#endif

//== complex matrices ==================================================================================================

#if !defined(OPD_NO_OP_SOLVE)
/* A view of a complex matrix.  Element (i, j) is at[i * rs + j * cs] or, if `conj`, its conjugate. */
typedef struct opdi_cblock {
    opdi_complex *at;
    int64_t rs, cs;
    bool conj;
} opdi_cblock;
OPDI_LOOPS_BEGIN
static inline opdi_complex opdi_cblock_get(const opdi_cblock *block, int64_t i, int64_t j) {
    const opdi_complex value = block->at[i * block->rs + j * block->cs];
    return block->conj ? opdi_complex_conj(value) : value;
}
static inline void opdi_cblock_put(const opdi_cblock *block, int64_t i, int64_t j, opdi_complex value) {
    block->at[i * block->rs + j * block->cs] = block->conj ? opdi_complex_conj(value) : value;
}
OPDI_LOOPS_END
#endif

//== results of kernels on matrices ====================================================================================

#if !defined(OPD_NO_OP_SOLVE)
/* The results of a kernel while they are computed: out [count], and for each a contiguous tensor `work` to compute in.
   If some results are real and others complex, the real results are computed in float64. */
typedef struct opdi_results { opd_tensor *out[4], *work[4]; int count; } opdi_results;
#endif

//== eigenvalues and singular values ===================================================================================

#if !defined(OPD_NO_OP_SOLVE)
enum { OPDI_SWEEPS = 60 };                        /* iterations for one value, after which it has not converged */
#endif

//== special functions =================================================================================================

#if !defined(OPD_NO_OP_SPECIAL)
#include "special/bessel_zeros.typed.h"
/* A function of one number or two, computed in double for every dtype.  what: the kernel's name in the message "not
   implemented for".  half: float16 and bfloat16 are supported. */
typedef struct opdi_special {
    const char *what;
    bool half;
    double (*one)(double x);
    double (*two)(double x, double y);
} opdi_special;
#endif

//== convolutions ======================================================================================================

#if !defined(OPD_NO_OP_CONV)
/* A convolution of x [n, c, in] with weights w [oc, c / groups, kernel] to y [n, oc, out]. */
typedef struct opdi_vol {
    int dtype;                                    /* float32, float64 or int64 */
    bool exact;                                   /* dtype is float32, but the numbers are bfloat16 */
    int64_t n, c, oc, groups;
    int64_t in[3], kernel[3], stride[3], pad[3], dilation[3], out[3];
} opdi_vol;
/* The tensor to compute: y, the gradient of x, or the gradient of w. */
enum { OPDI_VOL_Y, OPDI_VOL_GX, OPDI_VOL_GW };
#endif

//== memory formats ====================================================================================================

#if !defined(OPD_NO_OP_RESAMPLE)
/* The memory format torch.contiguous_format as a value. */
#define OPDI_MEMORY_DENSE opd_value_int(0)
#endif

//== normalizations ====================================================================================================

#if !defined(OPD_NO_OP_NORM)
/* A normalization of x [a, c, n].  In a layer or group norm, each group of `per` neighbouring channels with the same
   index a has its own statistics.  In a batch norm, each channel has its own statistics, over all a and n.  A layer
   norm has c = 1 and n weights. */
typedef struct opdi_norm {
    int64_t a, c, n, per;
    int64_t groups;                               /* layer, group norm: number of statistics, a * c / per */
    double eps;
    const void *input, *grad, *weight, *bias;     /* of the same dtype; weight and bias may be NULL */
    void *output, *mean, *rstd, *dx, *dw, *db;    /* dx, dw, db: NULL if not needed */
    void *parts;                                  /* layer norm: sums of OPDI_NORM_ROWS rows for dw, db; or NULL */
    const void *mean_in, *rstd_in;
    opdi_convert load, store;                     /* for layer norm of 16-bit floats; else NULL */
    bool layer, eval;                             /* layer: this is a layer norm; eval: the given statistics are used */
} opdi_norm;
#define OPDI_NORM_ROW 2048                        /* elements of the longest row that is converted at once */
#define OPDI_NORM_COLUMNS 512                     /* columns of a layer norm whose gradients are summed together */
#define OPDI_NORM_ROWS 64                         /* rows that are summed in float before they are added up in double */
#if defined(OPDI_X86)
#define OPDI_ROW_AVX2 OPDI_AVX2
#endif
#if defined(OPDI_X86)
#else
#define OPDI_ROW_AVX2
#endif
/* The derivatives of the norms' backward operators dx, dw, db = backward(g, x, w), for the second derivative.  GX (G in
   the formulas), GW and GB are the gradients of dx, dw and db.  With xhat = (x - mean) * rstd and
   J(v) = rstd * (v - mean(v) - xhat * mean(v * xhat)), the gradients are
     of g: w * J(G) + GW * xhat + GB
     of w: sum of g * J(G)
     of x: J(g * GW) - J(rstd * (gy * c + G * b)) - rstd^2 * xhat * (mean(G * gy) - mean(G) * mean(gy) - b * c),
           with gy = w * g, b = mean(gy * xhat), c = mean(G * xhat)
   If the statistics are `fixed`, J(v) is rstd * v, and the gradient of x is only g * GW * rstd.  All tensors broadcast
   to x.  `dims` are the dims over which the statistics are computed, `sum` the dims that the weights do not have. */
typedef struct opdi_norm_second {
    opd_tensor *grad, *input, *weight, *mean, *rstd, *GX, *GW, *GB;
    int64_t dims[OPD_MAX_DIMS], sum[OPD_MAX_DIMS];
    int ndims, nsum;
    bool fixed;
} opdi_norm_second;
/* How an argument or a result of a norm depends on channels. */
typedef enum opdi_channel_kind {
    OPDI_CHANNEL_NONE,                            /* not at all */
    OPDI_CHANNEL_IMAGE,                           /* [N, C, ..] */
    OPDI_CHANNEL_LIST,                            /* [C] */
    OPDI_CHANNEL_WRITTEN,                         /* [C], written by the operator */
    OPDI_CHANNEL_COUNT                            /* an int: the number of channels, or of groups */
} opdi_channel_kind;
#endif

//== reductions of losses ==============================================================================================

#if !defined(OPD_NO_OP_LOSS)
enum { OPDI_REDUCE_NONE = 0, OPDI_REDUCE_MEAN = 1, OPDI_REDUCE_SUM = 2 };
enum { OPDI_GATE_PRELU, OPDI_GATE_GLU, OPDI_GATE_LOG_SIGMOID_BACKWARD };        /* see opdi_gate_run */
/* The formula of mse_loss, smooth_l1_loss or huber_loss.  With d = |x - y|, the loss is d * d * square if d <= limit,
   else (d + shift) * scale.  Its derivative by x is (x - y) / divisor, limited to -top .. top. */
typedef struct opdi_loss_terms { float limit, square, shift, scale, divisor, top; } opdi_loss_terms;
#endif

//== walks of gather and scatter =======================================================================================

#if !defined(OPD_NO_OP_INDEX)
/* The operations of a walk over pairs of an element of a, selected by an index, and an element of b (see >>op:index):
   copies a to b (gather) or b to a (scatter), or combines b with a. */
enum { OPDI_WALK_GATHER = 0, OPDI_WALK_SCATTER, OPDI_WALK_ADD, OPDI_WALK_MUL, OPDI_WALK_MAX, OPDI_WALK_MIN };
#endif

//== scatter with scratch memory for a few rows ========================================================================

#if !defined(OPD_NO_OP_INDEX)
/* A scatter of src into a few slices of dim of self.  rows: the indices of these slices; part: a copy of them; scratch:
   this copy in the dtype of the computation. */
typedef struct opdi_row_subset { opd_tensor *self, *scratch, *part, *rows, *index, *src; int dim; } opdi_row_subset;
#endif

#if !defined(OPD_NO_OP_SOLVE)
#include "../typed/f32.h"
#include "matrix/matrix_views.typed.h"
#include "../typed/f64.h"
#include "matrix/matrix_views.typed.h"
#include "../typed/end.h"
#endif

//== prototypes of functions that macros define ========================================================================

#if defined(OPDI_DIVIDED)
OPDI_INTERNAL void opdi_c64_conj(void *const *data, int64_t count, const opdi_params *params);
OPDI_INTERNAL void opdi_c128_conj(void *const *data, int64_t count, const opdi_params *params);
#endif
#if !defined(OPD_NO_OPERATORS)
OPDI_INTERNAL void opdi_fold_sum_i64(OPDI_FOLD_ARGS);
OPDI_INTERNAL void opdi_fold_sum_f64(OPDI_FOLD_ARGS);
OPDI_INTERNAL void opdi_fold_sum_c128(OPDI_FOLD_ARGS);
OPDI_INTERNAL void opdi_fold_max_f64(OPDI_FOLD_ARGS);
OPDI_INTERNAL void opdi_fold_min_f64(OPDI_FOLD_ARGS);
OPDI_INTERNAL void opdi_fold_count_f32(OPDI_FOLD_ARGS);
OPDI_INTERNAL void opdi_fold_count_f64(OPDI_FOLD_ARGS);
#if defined(OPDI_DIVIDED)
#define OPDI_DECLARED(type, name) \
    OPDI_INTERNAL void opdi_##type##_##name(void *const *data, int64_t count, const opdi_params *params);
#define OPDI_DECLARED_ALL(name, inputs, kind, formula) \
    OPDI_DECLARED(f32, name) OPDI_DECLARED(f64, name) OPDI_DECLARED(i64, name)
#define OPDI_DECLARED_FLOAT(name, inputs, kind, formula) OPDI_DECLARED(f32, name) OPDI_DECLARED(f64, name)
#define OPDI_DECLARED_INT(name, inputs, kind, formula) OPDI_DECLARED(i64, name)
OPD_FORMULAS_ALL(OPDI_DECLARED_ALL)
OPD_FORMULAS_FLOAT(OPDI_DECLARED_FLOAT)
OPD_FORMULAS_INT(OPDI_DECLARED_INT)
OPDI_DECLARED(f32, vgelu)
OPDI_DECLARED(f32, vgelu_tanh)
OPDI_DECLARED(f32, vgelu_backward)
OPDI_DECLARED(f32, vgelu_tanh_backward)
OPDI_DECLARED(f32, vsilu)
OPDI_DECLARED(f32, vsilu_backward)
OPDI_DECLARED(f32, vpow)
OPDI_DECLARED(f64, vpow)
OPDI_DECLARED(i64, vpow)
OPDI_DECLARED(f32, vfmod)
OPDI_DECLARED(f64, vfmod)
OPDI_DECLARED(i64, vfmod)
OPDI_DECLARED(f32, vremainder)
OPDI_DECLARED(f64, vremainder)
OPDI_DECLARED(i64, vremainder)
OPDI_DECLARED(f64, vsilu)
OPDI_DECLARED(f64, vsilu_backward)
OPDI_DECLARED(f64, vgelu)
OPDI_DECLARED(f64, vgelu_backward)
OPDI_DECLARED(f64, vgelu_tanh)
OPDI_DECLARED(f64, vgelu_tanh_backward)
OPDI_DECLARED(f64, velu)
OPDI_DECLARED(f64, velu_backward)
OPDI_DECLARED(f64, vsoftplus)
OPDI_DECLARED(f64, vsoftplus_backward)
OPDI_DECLARED(f64, vmish)
OPDI_DECLARED(f64, vmish_backward)
OPDI_DECLARED(f64, vlogaddexp)
OPDI_DECLARED(f64, vlogaddexp2)
OPDI_DECLARED(f64, vhypot)
OPDI_DECLARED(f64, vasin)
OPDI_DECLARED(f64, vacos)
OPDI_DECLARED(f64, vatan)
OPDI_DECLARED(f64, vsinh)
OPDI_DECLARED(f64, vcosh)
OPDI_DECLARED(f64, vasinh)
OPDI_DECLARED(f64, vacosh)
OPDI_DECLARED(f64, vatanh)
OPDI_DECLARED(f32, velu)
OPDI_DECLARED(f32, velu_backward)
OPDI_DECLARED(f32, vsoftplus)
OPDI_DECLARED(f32, vsoftplus_backward)
OPDI_DECLARED(f32, vmish)
OPDI_DECLARED(f32, vmish_backward)
OPDI_DECLARED(f32, vlogaddexp)
OPDI_DECLARED(f32, vhypot)
OPDI_DECLARED(f32, vasin)
OPDI_DECLARED(f32, vasinh)
OPDI_DECLARED(f32, vsinh)
OPDI_DECLARED(f32, vacos)
OPDI_DECLARED(f32, vatan2)
OPDI_DECLARED(f32, vdiv_floor)
OPDI_DECLARED(f64, vdiv_floor)
OPDI_DECLARED(i64, vdiv_floor)
OPDI_INTERNAL void opdi_erfinv_f32(int64_t count, float *out, const float *x);
OPDI_INTERNAL void opdi_i1e_f32(int64_t count, float *out, const float *x);
#endif
#endif

//== packed forms of weights (quantized/packings.c) ====================================================================

/* What a packed form is made of: sizes on which it depends; how many bytes it has; and the weight: where it
   begins in its memory, how many bytes it has, and numbers by which they are recognised.  All bytes are set. */
typedef struct opdi_packing_key {
    int64_t sizes[5], bytes, place, count;
    uint64_t print[2];
} opdi_packing_key;
typedef struct opdi_packing {
    struct opdi_packing *next;
    size_t block_bytes;
    opdi_packing_key key;
    char *data;
    int32_t refs;
} opdi_packing;
typedef int opdi_packing_fn(void *user, char *data);
#if !defined(OPD_NO_OP_QUANTIZED)
OPDI_INTERNAL opdi_packing *opdi_packing_of(const opd_tensor *weight, const void *bytes, int64_t count,
                                            opdi_packing_key *key, opdi_packing_fn *pack, void *user);
OPDI_INTERNAL void opdi_packing_drop(opdi_packing *packing);
#endif

//== registration ======================================================================================================

OPDI_INTERNAL int opdi_register_builtins(void);
OPDI_INTERNAL int opdi_register_card(int i);
OPDI_INTERNAL int opdi_register_extra(int which);
OPDI_INTERNAL const char *opdi_left_out(const char *name);
#include "ops.prototypes.h"
#endif

