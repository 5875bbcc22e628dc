#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:pointwise loops for pointwise formulas, and the generic kernel
//
//  The loops are macros, which are compiled for each pointwise formula in OPD_FORMULAS_* (see >>api:formulas).  One
//  generic kernel checks and promotes the inputs, makes the result and runs the loops, for CPU and fake tensors alike.
//  An opdi_formula holds the loops of a formula and its rules, such as the dtype of results.
//----------------------------------------------------------------------------------------------------------------------

OPDI_LOOPS_BEGIN

//== loops: opdi_<type>_<formula> ======================================================================================
/* Defines a pointwise formula as a function of one element, from which its loops are compiled. */
#define OPDI_LOOP_FORMULA(name, formula) \
    OPDI_LOOP_TEXT OPD_T OPDI_LOOP(at_##name)(OPD_UNUSED OPD_T x, OPD_UNUSED OPD_T y, OPD_UNUSED OPD_T z, \
        OPD_UNUSED OPD_T a, OPD_UNUSED OPD_T b, OPD_UNUSED OPD_T c, OPD_UNUSED const opdi_params *params) { \
        return formula; }
#define OPDI_LOOP_EACH(name, inputs, formula) \
    OPDI_LOOP_FORMULA(name, formula) \
    OPDI_COLD OPD_UNUSED OPDI_INTERNAL void OPDI_LOOP(name)(void *const *data, int64_t count, \
                                                            const opdi_params *params) { \
        OPDI_LOOP(each)(data, count, params, inputs, OPDI_LOOP(at_##name)); }
#define OPDI_LOOP_BLOCKS(name, inputs, formula) \
    OPDI_LOOP_FORMULA(name, formula) \
    OPDI_INTERNAL void OPDI_LOOP(name)(void *const *data, int64_t count, const opdi_params *params) { \
        OPDI_LOOP(blocks)(data, count, params, inputs, OPDI_LOOP(at_##name)); }
#if defined(OPDI_X86)
/* Defines a vectorized loop for AVX2, and a simple loop for CPUs without AVX2. */
#define OPDI_LOOP_WIDE(name, inputs, formula) \
    OPDI_LOOP_FORMULA(name, formula) \
    OPDI_AVX2 static void OPDI_LOOP(name##_avx2)(void *const *data, int64_t count, const opdi_params *params) { \
        OPDI_LOOP(blocks)(data, count, params, inputs, OPDI_LOOP(at_##name)); } \
    OPDI_NOINLINE static void OPDI_LOOP(name##_plain)(void *const *data, int64_t count, const opdi_params *params) { \
        OPDI_LOOP(each)(data, count, params, inputs, OPDI_LOOP(at_##name)); } \
    OPDI_INTERNAL void OPDI_LOOP(name)(void *const *data, int64_t count, const opdi_params *params) { \
        if (opdi_cpu_level() > 0) { OPDI_LOOP(name##_avx2)(data, count, params); } \
        else { OPDI_LOOP(name##_plain)(data, count, params); } }
#else
#define OPDI_LOOP_WIDE OPDI_LOOP_BLOCKS
#endif
/* The macros that define the loops for each kind of formula (S, V, W, D, M, N; see >>api:formulas) in float, double and
   int64_t. */
#define OPDI_LOOP_F32_S OPDI_LOOP_EACH
#define OPDI_LOOP_F32_V OPDI_LOOP_WIDE
#define OPDI_LOOP_F32_W OPDI_LOOP_WIDE
#define OPDI_LOOP_F32_D(name, inputs, formula)
#define OPDI_LOOP_F32_M(name, inputs, formula) \
    OPDI_INTERNAL void opdi_f32_##name(void *const *data, int64_t count, OPD_UNUSED const opdi_params *params) { \
        opdi_v##name(count, (float *)data[0], (const float *)data[1]); }
#define OPDI_LOOP_F64_W OPDI_LOOP_BLOCKS
#define OPDI_LOOP_F64_S OPDI_LOOP_EACH
#define OPDI_LOOP_F64_V OPDI_LOOP_EACH
#define OPDI_LOOP_F64_D OPDI_LOOP_EACH
#define OPDI_LOOP_F64_M OPDI_LOOP_EACH
#define OPDI_LOOP_F32_N OPDI_LOOP_F32_M
#define OPDI_LOOP_F64_N(name, inputs, formula) \
    OPDI_INTERNAL void opdi_f64_##name(void *const *data, int64_t count, OPD_UNUSED const opdi_params *params) { \
        opdi_v##name##64(count, (double *)data[0], (const double *)data[1]); }
#define OPDI_LOOP_F32(name, inputs, kind, formula) OPDI_LOOP_F32_##kind(name, inputs, formula)
#define OPDI_LOOP_F64(name, inputs, kind, formula) OPDI_LOOP_F64_##kind(name, inputs, formula)
#define OPDI_LOOP_I64_W OPDI_LOOP_WIDE
#define OPDI_LOOP_I64_S OPDI_LOOP_EACH
#define OPDI_LOOP_I64_V OPDI_LOOP_EACH
#define OPDI_LOOP_I64_D OPDI_LOOP_EACH
#define OPDI_LOOP_I64(name, inputs, kind, formula) OPDI_LOOP_I64_##kind(name, inputs, formula)

#define OPD_FORMULA_QUALIFIERS static inline
#define OPD_ADD(x, y) ((x) + (y))
#define OPD_SUB(x, y) ((x) - (y))
#define OPD_MUL(x, y) ((x) * (y))
#define OPD_NEG(x) (-(x))
#define OPD_T float
#define OPD_FN(name) name##f
#define OPD_H(name) opdi_f32_h_##name
#define OPDI_LOOP(name) opdi_f32_##name
#define OPDI_NUMBERS f32
#include "../../api/formulas_float.typed.h"
#include "formula_loops.typed.h"
OPD_FORMULAS_ALL(OPDI_LOOP_F32)
OPD_FORMULAS_FLOAT(OPDI_LOOP_F32)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#undef OPDI_LOOP
#undef OPDI_NUMBERS
#define OPD_T double
#define OPD_FN(name) name
#define OPD_H(name) opdi_f64_h_##name
#define OPDI_LOOP(name) opdi_f64_##name
#define OPDI_NUMBERS f64
#include "../../api/formulas_float.typed.h"
#include "formula_loops.typed.h"
OPD_FORMULAS_ALL(OPDI_LOOP_F64)
OPD_FORMULAS_FLOAT(OPDI_LOOP_F64)
#undef OPDI_LOOP
#undef OPDI_NUMBERS
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#define OPD_ADD(x, y) opdi_wrap_add(x, y)
#define OPD_SUB(x, y) opdi_wrap_sub(x, y)
#define OPD_MUL(x, y) opdi_wrap_mul(x, y)
#define OPD_NEG(x) opdi_wrap_sub(0, x)
#define OPD_T int64_t
#define OPDI_LOOP(name) opdi_i64_##name
#define OPDI_NUMBERS i64
#define OPD_H(name) OPDI_H_##name                        /* helper functions that divide also take params */
#define OPD_HELPER(name) opdi_h_i64_##name
#define OPD_NOTES , const opdi_params *params
#define OPD_PASS_NOTES , params
#define OPD_NOTE(k) OPDI_STORE(params->zero, k)
#define OPD_SMALLEST params->i64[0]
#define OPDI_H_div_trunc(x, y) opdi_h_i64_div_trunc(x, y, params)
#define OPDI_H_div_floor(x, y) opdi_h_i64_div_floor(x, y, params)
#define OPDI_H_fmod(x, y) opdi_h_i64_fmod(x, y, params)
#define OPDI_H_remainder(x, y) opdi_h_i64_remainder(x, y, params)
#define OPDI_H_pow(x, y) opdi_h_i64_pow(x, y)
#define OPDI_H_shift_left(x, y) opdi_h_i64_shift_left(x, y)
#define OPDI_H_shift_right(x, y) opdi_h_i64_shift_right(x, y)
#define OPDI_H_gcd(x, y) opdi_h_i64_gcd(x, y)
#define OPDI_H_lcm(x, y) opdi_h_i64_lcm(x, y)
#define OPDI_H_clamp(x, y, z) opdi_h_i64_clamp(x, y, z)
#include "../../api/formulas_int.typed.h"
#include "formula_loops.typed.h"
OPD_FORMULAS_ALL(OPDI_LOOP_I64)
OPD_FORMULAS_INT(OPDI_LOOP_I64)
#undef OPDI_LOOP
#undef OPDI_NUMBERS
#undef OPD_T
#undef OPD_H
#undef OPD_HELPER
#undef OPD_NOTES
#undef OPD_PASS_NOTES
#undef OPD_NOTE
#undef OPD_SMALLEST
#undef OPD_FORMULA_QUALIFIERS
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG

//== activations in float, in blocks, by vector functions ==============================================================

enum { OPDI_GELU, OPDI_GELU_TANH, OPDI_GELU_BACKWARD, OPDI_GELU_TANH_BACKWARD, OPDI_SILU, OPDI_SILU_BACKWARD };
/* Sets dst[j] to expr, in which j is the index, for all j below `count`, which is a multiple of 16. */
#define OPDI_ACT(dst, expr) OPDI_SIXTEENS(dst[j] = (expr))
/* Computes y = function(x) for one of the functions OPDI_GELU .. or, for the backward functions, y = grad *
   function'(x).  block and u are scratch memory.  All arrays have 256 elements, of which `count`, a multiple of 16, are
   used. */
OPDI_ALWAYS void opdi_activation_body(int function, int64_t count, float *y, const float *grad, const float *x,
                                      float *block, float *u) {
    int64_t i;
    switch (function) {
        case OPDI_GELU: opdi_vgelu(count, y, x); break;
        case OPDI_GELU_TANH:
            OPDI_ACT(block, 0.79788456f * (x[j] + 0.044715f * x[j] * x[j] * x[j]))
            opdi_vtanh(count, block, block);
            OPDI_ACT(y, 0.5f * x[j] * (1.0f + block[j]))
            break;
        case OPDI_GELU_BACKWARD:
            OPDI_ACT(u, -0.5f * x[j] * x[j])
            opdi_vphi(count, block, x);
            opdi_vexp(count, u, u);
            OPDI_ACT(y, grad[j] * (block[j] + x[j] * u[j] * 0.39894228f))
            break;
        case OPDI_GELU_TANH_BACKWARD:
            OPDI_ACT(block, 0.79788456f * (x[j] + 0.044715f * x[j] * x[j] * x[j]))
            opdi_vtanh(count, block, block);
            OPDI_ACT(u, 0.79788456f * (1.0f + 0.134145f * x[j] * x[j]))
            OPDI_ACT(y, grad[j] * (0.5f * (1.0f + block[j]) + 0.5f * x[j] * (1.0f - block[j] * block[j]) * u[j]))
            break;
        case OPDI_SILU: opdi_vsilu(count, y, x); break;
        default:
            opdi_vsigmoid(count, block, x);
            OPDI_ACT(y, grad[j] * (block[j] * (1.0f + x[j] * (1.0f - block[j]))))
            break;
    }
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_activation_wide(int function, int64_t count, float *y, const float *grad, const float *x,
                                           float *block, float *u) {
    opdi_activation_body(function, count, y, grad, x, block, u);
}
#endif
#if defined(OPDI_X86)
OPDI_COLD static void opdi_activation_block(int function, int64_t count, float *y, const float *grad, const float *x,
                                            float *block, float *u) {
    if (opdi_cpu_level() > 0) {
        opdi_activation_wide(function, count, y, grad, x, block, u);
        return;
    }
    opdi_activation_body(function, count, y, grad, x, block, u);
}
#else
#define opdi_activation_block opdi_activation_body
#endif
/* Does the work of opdi_activation_block for any number of elements.  Pads the last elements with zeros to a multiple
   of 16. */
static void opdi_activation(int function, int64_t count, float *out, const float *grad, const float *x) {
    float xs[256], gs[256], ys[256], block[256], u[256];
    int64_t i = 0;
    for (; i + 256 <= count; i += 256) { opdi_activation_block(function, 256, out + i, grad + i, x + i, block, u); }
    int64_t rows = count - i;
    if (rows == 0) { return; }
    int64_t whole = (rows + 15) & ~(int64_t)15;
    memset(xs + rows, 0, (size_t)(whole - rows) * sizeof(float));
    memset(gs + rows, 0, (size_t)(whole - rows) * sizeof(float));
    memcpy(xs, x + i, (size_t)rows * sizeof(float));
    memcpy(gs, grad + i, (size_t)rows * sizeof(float));
    opdi_activation_block(function, whole, ys, gs, xs, block, u);
    memcpy(out + i, ys, (size_t)rows * sizeof(float));
}
/* Defines opdi_f32_v<name>, a loop of input x or of inputs grad and x. */
#define OPDI_ACTIVATION_LOOP(name, number, grad, arg)                                                       \
    OPDI_INTERNAL void opdi_f32_v##name(void *const *data, int64_t count, const opdi_params *params) {             \
        (void)params;                                                                                                 \
            opdi_activation(number, count, (float *)data[0], (const float *)data[grad], (const float *)data[arg]);    \
    }
OPDI_ACTIVATION_LOOP(gelu, OPDI_GELU, 1, 1)
OPDI_ACTIVATION_LOOP(gelu_tanh, OPDI_GELU_TANH, 1, 1)
OPDI_ACTIVATION_LOOP(gelu_backward, OPDI_GELU_BACKWARD, 1, 2)
OPDI_ACTIVATION_LOOP(gelu_tanh_backward, OPDI_GELU_TANH_BACKWARD, 1, 2)
OPDI_ACTIVATION_LOOP(silu, OPDI_SILU, 1, 1)
OPDI_ACTIVATION_LOOP(silu_backward, OPDI_SILU_BACKWARD, 1, 2)
//== powers and remainders with vector instructions ====================================================================

enum { OPDI_TWO_POW, OPDI_TWO_FMOD, OPDI_TWO_REMAINDER, OPDI_TWO_DIV_FLOOR };
#if defined(OPDI_VECTORS)
/* Returns x^y = 2^(y * log2(x)), computed in double.  If y is odd, the result has the sign of x.  If x is negative and
   y is not an integer, the result is NaN. */
OPDI_ALWAYS float opdi_pow1_f32(float x, float y, OPD_UNUSED double less) {
    double e;
    const double m = opdi_split_f64((double)fabsf(x), &e), s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 0.24293321046648719 * z + 0.261442863331855403;
    p = p * z + 0.320616429846287722;
    p = p * z + 0.412198401475514951;
    p = p * z + 0.577078017249838693;
    p = p * z + 0.961796693924326817;
    p = p * z + 2.88539008177792731;
    double w = (double)y * (p * s + e);
    w = w > 1000.0 ? 1000.0 : w;
    w = w < -1000.0 ? -1000.0 : w;
    const double t = w + OPDI_MAGIC_F64, r = w - (t - OPDI_MAGIC_F64);
    p = 1.53037211308013651e-5 * r + 0.000154697557449258219;
    p = p * r + 0.00133334784098653989;
    p = p * r + 0.00961802553039820806;
    p = p * r + 0.0555041090637373728;
    p = p * r + 0.240226512141200535;
    p = p * r + 0.693147180556827427;
    p = p * r + 0.999999999959496961;
    const float power = (float)(p * opdi_double((opdi_bits64(t) << 52) + 0x3ff0000000000000u));
    const float whole = y + OPDI_MAGIC, odd = opdi_float(opdi_bits(power) ^ opdi_bits(whole) << 31);
    return opdi_select_f32(x < 0.0f, opdi_select_f32(whole - OPDI_MAGIC == y, odd, NAN), power);
}
/* Returns 1 if opdi_pow1_f32 cannot compute x^y, else 0. */
OPDI_ALWAYS uint32_t opdi_pow_bad_f32(float x, float y) {
    return ((fabsf(x) > 0.0f) & (fabsf(x) < HUGE_VALF) & (fabsf(y) < 4194304.0f)) ? 0u : 1u;
}
OPDI_ALWAYS uint64_t opdi_pow_bad_f64(double x, double y) {
    return ((fabs(x) >= 2.2250738585072014e-308) & (fabs(x) < HUGE_VAL) & (fabs(y) < 1125899906842624.0)) ? 0u : 1u;
}
#endif

#include "../../typed/f32.h"
#if defined(OPDI_VECTORS)
#include "remainders_and_powers.typed.h"
#endif
#include "two_operands.typed.h"
#include "../../typed/f64.h"
#if defined(OPDI_VECTORS)
#include "remainders_and_powers.typed.h"
#endif
#include "two_operands.typed.h"
#include "../../typed/end.h"
#if defined(OPDI_VECTORS)
/* Sets out[64] to `value`, in which a and b are the elements of x and y and q is their quotient. */
#define OPDI_TWO_WHOLE(rounded, value) \
    OPDI_IVDEP \
    for (int j = 0; j < 64; j++) { \
        const double a = opdi_double((uint64_t)x[j] + magic) - OPDI_MAGIC_F64; \
        const double b = opdi_double((uint64_t)y[j] + magic) - OPDI_MAGIC_F64, q = rounded(a / b); \
        out[j] = (int64_t)(opdi_bits64((value) + OPDI_MAGIC_F64) - magic); \
    }
/* Divides 64 integers in double.  Integers below 2^51 are exact there, and their rounded quotient too.  Returns false
   if an element is larger, if a divisor is 0, or if an element of x is `smallest`, the smallest of its dtype. */
OPDI_VECTOR_LOOP static bool opdi_two_whole(int function, int64_t *out, const int64_t *x, const int64_t *y,
                                            int64_t smallest) {
    const uint64_t magic = opdi_bits64(OPDI_MAGIC_F64), most = (uint64_t)1 << 51;
    uint64_t any[16] = {0};
    for (int i = 0; i < 64; i += 16) {
        for (int j = 0; j < 16; j++) {
            const uint64_t large = ((uint64_t)x[i + j] + most) | ((uint64_t)y[i + j] + most);
            any[j] |= large >> 52 | (uint64_t)((y[i + j] == 0) | (x[i + j] == smallest));
        }
    }
    for (int j = 1; j < 16; j++) { any[0] |= any[j]; }
    if (any[0]) { return false; }
    if (function == OPDI_TWO_DIV_FLOOR) { OPDI_TWO_WHOLE(floor, q) }
    else if (function == OPDI_TWO_FMOD) { OPDI_TWO_WHOLE(trunc, a - q * b) }
    else { OPDI_TWO_WHOLE(floor, a - q * b) }
    return true;
}
#endif
/* Runs a loop of two int64 inputs: divisions by opdi_two_whole where it can compute them, other elements by `each`. */
static void opdi_two_i64(int function, void *const *data, int64_t count, const opdi_params *params, opdi_loop each) {
    (void)function;
    for (int64_t from = 0, rows; from < count; from += rows) {
        void *here[3];
        rows = OPDI_MIN(count - from, (int64_t)64);
        for (int k = 0; k < 3; k++) { here[k] = (int64_t *)data[k] + from; }
#if defined(OPDI_VECTORS)
        if (rows == 64 && function != OPDI_TWO_POW && opdi_cpu_level() > 0 &&
            opdi_two_whole(function, (int64_t *)here[0], (const int64_t *)here[1], (const int64_t *)here[2],
                           params->i64[0] < 0 ? params->i64[0] : INT64_MIN)) { continue; }
#endif
        each(here, rows, params);
    }
}
#define OPDI_TWO_LOOPS(name, function) \
    OPDI_INTERNAL void opdi_i64_v##name(void *const *data, int64_t count, const opdi_params *params) { \
        opdi_two_i64(function, data, count, params, opdi_i64_##name); } \
    OPDI_INTERNAL void opdi_f32_v##name(void *const *data, int64_t count, const opdi_params *params) { \
        opdi_two_f32(function, data, count, params, opdi_f32_##name); } \
    OPDI_INTERNAL void opdi_f64_v##name(void *const *data, int64_t count, const opdi_params *params) { \
        opdi_two_f64(function, data, count, params, opdi_f64_##name); }
OPDI_TWO_LOOPS(pow, OPDI_TWO_POW)
OPDI_TWO_LOOPS(fmod, OPDI_TWO_FMOD)
OPDI_TWO_LOOPS(remainder, OPDI_TWO_REMAINDER)
OPDI_TWO_LOOPS(div_floor, OPDI_TWO_DIV_FLOOR)

//== the generic kernel ================================================================================================

OPDI_LOOPS_END

OPDI_INTERNAL opd_tensor *opdi_number_make(opdi_number *number, opd_value value) {
    memset(number, 0, sizeof *number);
    number->t.refs = 1;
    number->t.numel = 1;
    number->t.flags = OPDI_WRAPPED | OPDI_CONTIGUOUS;
    number->t.data = (char *)&number->u;
        number->t.dims = (int64_t *)(void *)&number->u;
    switch (value.tag) {
        case OPD_TAG_FLOAT: number->t.dtype = OPD_FLOAT64; number->u.d = value.u.d; break;
        case OPD_TAG_BOOL: number->t.dtype = OPD_BOOL; number->u.b = value.u.i != 0; break;
        case OPD_TAG_COMPLEX: number->t.dtype = OPD_COMPLEX128;
        number->u.c[0] = value.u.c[0];
        number->u.c[1] = value.u.c[1];
        break;
        default: number->t.dtype = OPD_INT64; number->u.i = value.u.i; break;
    }
    return &number->t;
}
/* Returns argument i, a Tensor or a Scalar, as an operand.  A Scalar is stored in *number. */
OPDI_INTERNAL opd_tensor *opdi_operand_of(const opd_call *call, int i, opdi_number *number) {
    opd_value value = opd_arg_value(call, i);
    return value.tag == OPD_TAG_TENSOR ? value.u.t : opdi_number_make(number, value);
}
OPDI_INTERNAL bool opdi_number_is_zero(opd_value value) {
    return opdi_number_f64(value) == 0 && (value.tag != OPD_TAG_COMPLEX || value.u.c[1] == 0);
}
OPDI_INTERNAL int64_t opdi_number_i64(opd_value value) {
    return value.tag == OPD_TAG_FLOAT ? opdi_to_i64(value.u.d) : value.tag == OPD_TAG_COMPLEX
        ? opdi_to_i64(value.u.c[0]) : value.u.i;
}
/* Returns true if a number can be cast to dtype, by the rules of c10::overflows: negative integers may wrap to uint8,
   infinities fit into floating point dtypes, and only bool and complex dtypes accept an imaginary part. */
OPDI_INTERNAL bool opdi_number_fits(opd_value value, opd_scalar_type dtype) {
    static const double top[5] = {255.0, 127.0, 32767.0, 2147483647.0, 9223372036854775807.0};
    const double d = opdi_number_f64(value);
    const int k = (int)dtype;
    if (opdi_is_stored_dtype(k)) { return opdi_stored_fits(value, dtype); }
    if (value.tag == OPD_TAG_COMPLEX && value.u.c[1] != 0 && !opd_dtype_is_complex(dtype) && dtype != OPD_BOOL) {
        return false;
    }
    if (opd_dtype_is_floating(dtype)) {
        return !isfinite(d) || fabs(d) <= opdi_float_top(dtype);
    }
    if (k > 4 || (value.tag == OPD_TAG_INT && k == 4)) { return true; }
    if (k == 0) { return d <= 255.0 && d >= (value.tag == OPD_TAG_INT ? -255.0 : 0.0); }
    return d <= top[k] && d >= -top[k] - 1.0;
}
OPDI_INTERNAL int opdi_number_check(opd_value value, opd_scalar_type dtype) {
    return opdi_number_fits(value, dtype) ? 0
        : opdi_overflow_fail(dtype);
}
OPDI_INTERNAL void opdi_params_set_f64(opdi_params *params, int element, double d) {
    const double largest = 3.4028235677973366e38; /* the smallest number that is rounded to infinity in float32 */
    params->f64[element] = d;
    params->f32[element] = d >= largest ? (float)OPDI_INF : d <= -largest ? -(float)OPDI_INF : (float)d;
    params->i64[element] = opdi_to_i64(d);
}
OPDI_INTERNAL bool opdi_is_half(opd_scalar_type dtype) { return dtype == OPD_BFLOAT16 || dtype == OPD_FLOAT16; }
/* If dtype is a 16-bit float, rounds number `element` of params to it.  This is for kernels for which PyTorch casts a
   Scalar to 16 bits before it computes in float32. */
OPDI_INTERNAL void opdi_params_half(opdi_params *params, int element, opd_scalar_type dtype) {
    const float f = params->f32[element];
    if (!opdi_is_half(dtype)) { return; }
    opdi_params_set_f64(params, element, (double)(dtype == OPD_BFLOAT16 ? opdi_bf16_to_f32(opdi_f32_to_bf16(f))
                                                  : opdi_f16_to_f32(opdi_f32_to_f16(f))));
}
/* Sets number `element` of params to `value`.  Sets params->beyond if the number overflows float32.  Sets params->pairs
   if the number has an imaginary part, which operators on real numbers refuse. */
OPDI_INTERNAL void opdi_params_set(opdi_params *params, int element, opd_value value) {
    opdi_params_set_f64(params, element, opdi_number_f64(value));
    params->i64[element] = opdi_number_i64(value);
    params->imaginary[element] = value.tag == OPD_TAG_COMPLEX ? value.u.c[1] : 0;
    params->pairs = params->pairs || (value.tag == OPD_TAG_COMPLEX && value.u.c[1] != 0);
    params->beyond = params->beyond || (isinf(params->f32[element]) && !isinf(params->f64[element]));
}

/* Makes result 0 of a pointwise operator whose inputs in[nin] are not all contiguous and of the same shape.  The result
   has the sizes to which the inputs broadcast, and the strides that TensorIterator chooses
   (TensorIteratorBase::fast_set_up, allocate_or_resize_outputs).  On failure, returns NULL and sets an error. */
OPDI_NOINLINE static opd_tensor *opdi_pointwise_result_slow(opd_call *call, opd_tensor *const *in, int nin,
                                                            opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], next = 1;
    int perm[OPD_MAX_DIMS], ndim = 0;
    const opd_tensor *big = in[0];
    bool same = true, ordered = true;
    sizes[0] = 1;
    for (int i = 0; i < nin; i++) {
        if (opdi_broadcast_into(sizes, &ndim, in[i]) != 0) { return NULL; }
        if (in[i]->ndim > big->ndim || (big->flags & OPDI_WRAPPED)) { big = in[i]; }
        if (i > 0 && same) {
            same = opdi_same_sizes(in[0], in[i]) &&
                   memcmp(opdi_strides(in[0]), opdi_strides(in[i]), sizeof(int64_t) * in[0]->ndim) == 0;
        }
    }
    if (same && opdi_is_dense(in[0])) {
        return opd_result_strided(call, 0, sizes, opdi_strides(in[0]), ndim, dtype, opd_tensor_device(big));
    }
    opdi_dims_order(in, nin, sizes, ndim, perm);
    for (int dim = 0; dim < ndim; dim++) {
        strides[perm[dim]] = next;
        next = opdi_size_times(next, sizes[perm[dim]]);
        if (perm[dim] != ndim - 1 - dim) { ordered = false; }
    }
    if (ordered) { return opd_result(call, 0, sizes, ndim, dtype); }
    return opd_result_strided(call, 0, sizes, strides, ndim, dtype, opd_tensor_device(big));
}
/* Makes result 0 of a pointwise operator with inputs in[nin].  If the inputs do not broadcast, returns NULL and sets an
   error. */
static opd_tensor *opdi_pointwise_result(opd_call *call, opd_tensor *const *in, int nin, opd_scalar_type dtype) {
    const opd_tensor *first = in[0];
    if (!(first->flags & OPDI_CONTIGUOUS)) { return opdi_pointwise_result_slow(call, in, nin, dtype); }
    for (int i = 1; i < nin; i++) {
        if (!(in[i]->flags & OPDI_CONTIGUOUS)) { return opdi_pointwise_result_slow(call, in, nin, dtype); }
        if (in[i]->ndim == 0 || opdi_same_sizes(first, in[i])) { continue; }
        if (first->ndim != 0) { return opdi_pointwise_result_slow(call, in, nin, dtype); }
        first = in[i];
    }
    return opd_result(call, 0, opdi_sizes(first), first->ndim, dtype);
}

static opd_tensor *opdi_contiguous_result(opd_call *call, opd_tensor *const *in, int nin, opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    sizes[0] = 1;
    for (int i = 0; i < nin; i++) { if (opdi_broadcast_into(sizes, &ndim, in[i]) != 0) { return NULL; } }
    return opd_result(call, 0, sizes, ndim, dtype);
}
OPDI_NOINLINE OPDI_INTERNAL int opdi_not_implemented(const opdi_formula *formula, opd_scalar_type dtype) {
    return opdi_dtype_fail(formula->what, dtype);
}
OPDI_COLD_BEGIN
/* Does the work of opdi_pointwise_typed for complex numbers, which are computed as complex128.  If a tensor is on a
   device whose backend has no complex formulas, runs the operator on the CPU (opd_cpu_fallback). */
static int opdi_pointwise_complex(opd_call *call, const opdi_formula *formula, opd_tensor **ops, int nin,
                                  opd_scalar_type common, opd_scalar_type result, const opdi_params *params) {
    if (opdi_complex_left_out()) { return -1; }
    if (!formula->complex_loop) { return opdi_not_implemented(formula, common); }
    const opdi_loop loop = formula->complex_loop(OPD_DTYPE_NONE), fast = formula->complex_loop(common);
    for (int i = 1; i <= nin; i++) {
        if (ops[i]->backend == OPD_CPU || ops[i]->backend == OPD_META) { continue; }
        const opdi_backend *const backend = opdi_backend_of(ops[i]->backend);
        if (!backend || !backend->desc.complex_formulas || !backend->desc.pointwise) { return opd_cpu_fallback(call); }
    }
    ops[0] = formula->rule & OPDI_CONTIGUOUS_RESULT ? opdi_contiguous_result(call, ops + 1, nin, result)
        : opdi_pointwise_result(call, ops + 1, nin, result);
    if (!ops[0]) { return -1; }
    if (!ops[0]->data || ops[0]->numel == 0) { return 0; }
    if (ops[0]->backend != OPD_CPU) {
        return opdi_device_run(ops, nin + 1, formula->number[0], common, OPDI_C128, params);
    }
    if (!fast || !opdi_pairs_alike(ops, nin, common, result)) {
        return opdi_iter_run(ops, nin + 1, 1, common, OPDI_C128, loop, params);
    }
    opdi_pairs_run(fast, ops, nin);
    return 0;
}
OPDI_COLD_END
/* A pass over the words of contiguous tensors: see opdi_words_run. */
typedef struct opdi_words { opd_tensor *const *ops; int nops; opdi_loop loop; } opdi_words;
/* Runs the loop on words `begin` to `end` - 1. */
static void opdi_words_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_words *const words = (const opdi_words *)ctx;
    void *data[OPDI_ITER_OPS];
    for (int k = 0; k < words->nops; k++) { data[k] = words->ops[k]->data + 8 * begin; }
    words->loop(data, end - begin, &opdi_no_params);
}
/* Runs a formula of bits, such as bitwise_and, on words of eight bytes, which hold one or several elements: its int64
   loop gives the same bits.  Returns false and does nothing if the tensors are not contiguous, aligned and of one dtype
   and size, or if they are bools, of which a byte may have any value. */
OPDI_INTERNAL bool opdi_words_run(const opdi_formula *formula, opd_tensor *const *ops, int nops) {
    const int64_t bytes = ops[0]->numel * (int64_t)opd_dtype_size((opd_scalar_type)ops[0]->dtype);
    opdi_words words = {ops, nops, formula->loop[OPDI_I64]};
    uint64_t rest[OPDI_ITER_OPS] = {0};
    opd_tensor last[OPDI_ITER_OPS], *lasts[OPDI_ITER_OPS];
    if (ops[0]->dtype == OPD_BOOL) { return false; }
    for (int k = 0; k < nops; k++) {
        if (ops[k]->dtype != ops[0]->dtype || ops[k]->numel != ops[0]->numel || !(ops[k]->flags & OPDI_CONTIGUOUS) ||
            (uintptr_t)ops[k]->data % 8 || (ops[k]->data != ops[0]->data && opdi_same_memory(ops[k], ops[0]))) {
            return false;
        }
    }
    opdi_parallel_for(bytes / 8, OPDI_GRAIN, opdi_words_part, &words);
    if (bytes % 8 == 0) { return true; }
    for (int k = 0; k < nops; k++) {              /* the last word, which is not whole */
        last[k] = *ops[k];
        last[k].data = (char *)&rest[k];
        lasts[k] = &last[k];
        memcpy(&rest[k], ops[k]->data + bytes / 8 * 8, (size_t)(bytes % 8));
    }
    words.ops = lasts;
    opdi_words_part(&words, 0, 1);
    memcpy(ops[0]->data + bytes / 8 * 8, &rest[0], (size_t)(bytes % 8));
    return true;
}
/* Runs a pointwise formula on the inputs ops[1..nin], after promoting them to dtype `common`.  Sets ops[0] to the
   result, which has dtype `result`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_pointwise_typed(opd_call *call, const opdi_formula *formula, opd_tensor **ops, int nin,
                                       opd_scalar_type common, opd_scalar_type result, const opdi_params *params) {
    if (common != OPD_FLOAT32) {
        if (opd_dtype_is_complex(common)) {
            return opdi_pointwise_complex(call, formula, ops, nin, common, result, params);
        }
        if (common == OPD_BOOL && (formula->rule & OPDI_NOT_BOOL)) { return opdi_not_implemented(formula, common); }
    }
    int compute = opdi_compute_type(common);
    if (compute == OPDI_F32 && !formula->loop[OPDI_F32]) { compute = OPDI_F64; }
    if (!formula->loop[compute]) { return opdi_not_implemented(formula, common); }
    if (OPDI_UNLIKELY(params->beyond) && opdi_compute_type(common) == OPDI_F32) {
        return opdi_overflow_fail(OPD_FLOAT32);
    }
    if (OPDI_UNLIKELY(params->pairs) && common != OPD_BOOL) { return opdi_overflow_fail(common); }
    if (formula->rule & OPDI_CONTIGUOUS_RESULT) { ops[0] = opdi_contiguous_result(call, ops + 1, nin, result); }
    else { ops[0] = opdi_pointwise_result(call, ops + 1, nin, result); }
    if (!ops[0]) { return -1; }
    if (!ops[0]->data) { return 0; }              /* a fake tensor, or a result without elements */
    if (OPDI_UNLIKELY(ops[0]->backend != OPD_CPU)) {
        return opdi_device_run(ops, nin + 1, formula->number[compute == OPDI_I64], common, opdi_compute_type(common),
                               params);
    }
    if (formula->run && formula->run(formula, ops, nin + 1)) { return 0; }
    return opdi_run(ops, nin + 1, 1, common, compute, formula->loop[compute], params);
}
OPDI_INTERNAL opd_scalar_type opdi_rule_dtype(int rule, opd_scalar_type dtype) {
    if ((rule & OPDI_TO_FLOAT) && opd_dtype_is_integral(dtype, true)) { return OPD_FLOAT32; }
    return (rule & OPDI_BOOL_TO_INT) && dtype == OPD_BOOL ? OPD_INT64 : dtype;
}
OPDI_INTERNAL int opdi_pointwise(opd_call *call, const opdi_formula *formula, opd_tensor **ops, int nin,
                                 const opdi_params *params) {
    opd_scalar_type common = nin == 1 ? (opd_scalar_type)ops[1]->dtype : opdi_result_type(ops + 1, nin);
    if (formula->rule & (OPDI_TO_FLOAT | OPDI_BOOL_TO_INT)) { common = opdi_rule_dtype(formula->rule, common); }
    const opd_scalar_type result = formula->rule & OPDI_TO_BOOL ? OPD_BOOL : common;
    if ((formula->rule & OPDI_NUMBER_KEPT) && nin > 1 && ops[2]->ndim == 0 &&
        (common == OPD_BFLOAT16 || common == OPD_FLOAT16) && ops[2]->dtype != (int32_t)common) {
        common = OPD_FLOAT32;                     /* the dtype in which 16-bit floats are computed */
    }
    return opdi_pointwise_typed(call, formula, ops, nin, common, result, params);
}
/* Runs a pointwise formula of one tensor, without numbers.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unary(opd_call *call, const opdi_formula *formula) {
    opd_tensor *ops[2];
    ops[1] = opd_arg_tensor(call, 0);
    return opdi_pointwise(call, formula, ops, 1, &opdi_no_params);
}
/* Runs a pointwise formula of one tensor whose result is real even if the input is complex.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_unary_real(opd_call *call, const opdi_formula *formula) {
    opd_tensor *ops[2];
    ops[1] = opd_arg_tensor(call, 0);
    if (!opdi_is_complex(ops[1])) { return opdi_pointwise(call, formula, ops, 1, &opdi_no_params); }
    if (call->targets && call->inplace) {
        return opd_fail(OPD_ERROR_DTYPE, "In-place %s is not supported for complex tensors.", call->op->schema->name);
    }
    return opdi_pointwise_typed(call, formula, ops, 1, (opd_scalar_type)ops[1]->dtype,
                                (opd_scalar_type)opdi_real_dtype(ops[1]->dtype), &opdi_no_params);
}
/* Runs a pointwise formula of arguments 0 and 1, each of which may be a Scalar.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_binary(opd_call *call, const opdi_formula *formula) {
    opd_tensor *ops[3];
    opdi_number number, other;
    ops[1] = opdi_operand_of(call, 0, &number);
    ops[2] = opdi_operand_of(call, 1, &other);
    return opdi_pointwise(call, formula, ops, 2, &opdi_no_params);
}
/* Runs a pointwise formula that divides argument 0 by argument 1.  For integers, fails before self is written if a
   divisor is 0, or if the smallest int64 or int32 is divided by -1, which crashes PyTorch; narrower types wrap.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_binary_div(opd_call *call, const opdi_formula *formula) {
    opd_tensor *ops[3];
    opdi_number number, other;
    opdi_params params = opdi_no_params;
    int32_t zero = 0;
    params.zero = &zero;
    ops[1] = opdi_operand_of(call, 0, &number);
    ops[2] = opdi_operand_of(call, 1, &other);
    opd_scalar_type common = opdi_result_type(ops + 1, 2);
    if (opd_dtype_is_integral(common, true)) { call->elementwise = false; }      /* self is written only on success */
    params.i64[0] = common == OPD_INT32 ? INT32_MIN : INT64_MIN;
    if (opdi_pointwise(call, formula, ops, 2, &params) != 0) { return -1; }
    if (zero == 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the smallest %s divided by -1 does not fit into the dtype",
                        opd_dtype_name(common));
    }
    return zero ? opd_fail(OPD_ERROR_ARGUMENT, "ZeroDivisionError: an integer was divided by zero") : 0;
}

OPDI_COLD_BEGIN

//== helpers for backward functions ====================================================================================

/* Returns tensor times the number `kept`, or tensor itself if the number is 1. */
OPDI_INTERNAL opd_tensor *opdi_scale(opd_tensor *tensor, opd_value kept) {
    return kept.tag != OPD_TAG_COMPLEX && opdi_number_f64(kept) == 1.0 ? tensor : opd_mul_Scalar(tensor, kept);
}

/* Returns grad times the derivative of sinc, which is (cos(pi * x) * pi * x - sin(pi * x)) / (pi * x^2) at x, the
   input.  Where x is 0, returns grad times the first term of the Taylor series, -pi^2 * x / 3. */
OPDI_INTERNAL opd_tensor *opdi_sinc_derivative(opd_tensor *grad, opd_tensor *input) {
    const double pi = 3.14159265358979323846;
    opd_tensor *zero = opd_eq_Scalar(input, opd_value_int(0));
    opd_tensor *x = opd_masked_fill_Scalar(input, zero, opd_value_int(1));
    opd_tensor *px = opdi_muls(x, pi);
    opd_tensor *const product = opd_mul(opd_cos(px), px), *const difference = opd_sub(product, opd_sin(px)),
        *delta = opd_div(difference, opd_mul(px, x));
    return opd_mul(grad, opd_where_self(zero, opdi_muls(input, -pi * pi / 3), delta));
}
OPDI_COLD_END
