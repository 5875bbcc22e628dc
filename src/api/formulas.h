//----------------------------------------------------------------------------------------------------------------------
//  >>api:formulas   the pointwise formulas
//
//  The CPU kernels and opdispatch_cuda.cu both expand the lists below.  A row of a list is X(name, inputs, kind,
//  formula): `inputs` is the number of inputs.  The names x, y, z in a formula are its inputs; a, b, c are numbers that
//  are the same for all elements; the type is OPD_T.  Code that expands a list defines OPD_T, OPD_FN(f) (the C function
//  f for OPD_T: expf for float), OPD_H(f) (a helper below) and the arithmetic OPD_ADD, OPD_SUB, OPD_MUL, OPD_NEG, which
//  wraps around for integers.  The kind only says how the CPU runs the formula:
//    W  arithmetic that vectorises
//    V  arithmetic that vectorises in float only
//    S  element by element
//    D  element by element, in double for every type of float
//    M  a function with a vector form in float
//    N  a function with a vector form in float and in double
//----------------------------------------------------------------------------------------------------------------------

/* Formulas for float, double and int64_t. */
#define OPD_FORMULAS_ALL(X) \
    X(add, 2, W, OPD_ADD(x, y)) \
    X(add_scaled, 2, W, OPD_ADD(x, OPD_MUL(a, y))) \
    X(sub, 2, W, OPD_SUB(x, y)) \
    X(sub_scaled, 2, W, OPD_SUB(x, OPD_MUL(a, y))) \
    X(mul, 2, W, OPD_MUL(x, y)) \
    X(neg, 1, V, OPD_NEG(x)) \
    X(square, 1, V, OPD_MUL(x, x)) \
    X(cube, 1, V, OPD_MUL(OPD_MUL(x, x), x)) \
    X(sign, 1, V, (OPD_T)((x > 0) - (x < 0))) \
    X(relu, 1, V, x < 0 ? 0 : x) \
    X(clamp, 1, V, (x < a ? a : x) > b ? b : (x < a ? a : x)) \
    X(threshold, 2, V, x <= a ? b : y) \
    X(hardtanh_backward, 2, V, ((y > a) & (y < b)) ? x : 0) \
    X(maximum, 2, V, ((x > y) | (x != x)) ? x : y) \
    X(minimum, 2, V, ((x < y) | (x != x)) ? x : y) \
    X(fmax, 2, V, ((x >= y) | (y != y)) ? x : y) \
    X(fmin, 2, V, ((x <= y) | (y != y)) ? x : y) \
    X(where, 3, V, x != 0 ? y : z) \
    X(addcmul, 3, V, OPD_ADD(x, OPD_MUL(OPD_MUL(a, y), z))) \
    X(eq, 2, V, (OPD_T)(x == y)) \
    X(ne, 2, V, (OPD_T)(x != y)) \
    X(lt, 2, V, (OPD_T)(x < y)) \
    X(le, 2, V, (OPD_T)(x <= y)) \
    X(gt, 2, V, (OPD_T)(x > y)) \
    X(ge, 2, V, (OPD_T)(x >= y)) \
    X(logical_not, 1, D, (OPD_T)(x == 0)) \
    X(logical_and, 2, D, (OPD_T)((x != 0) & (y != 0))) \
    X(logical_or, 2, D, (OPD_T)((x != 0) | (y != 0))) \
    X(logical_xor, 2, D, (OPD_T)((x != 0) ^ (y != 0))) \
    X(isnan, 1, V, (OPD_T)(x != x)) \
    X(heaviside, 2, V, x == 0 ? y : (OPD_T)(x > 0))

/* Formulas for float and double. */
#define OPD_FORMULAS_FLOAT(X) \
    X(abs, 1, V, OPD_FN(fabs)(x)) \
    X(div, 2, V, x / y) \
    X(div_trunc, 2, S, OPD_FN(trunc)(x / y)) \
    X(div_floor, 2, S, OPD_H(div_floor)(x, y)) \
    X(fmod, 2, S, OPD_FN(fmod)(x, y)) \
    X(remainder, 2, S, OPD_H(remainder)(x, y)) \
    X(pow, 2, S, OPD_FN(pow)(x, y)) \
    X(reciprocal, 1, V, 1 / x) \
    X(exp, 1, N, OPD_FN(exp)(x)) \
    X(exp2, 1, N, OPD_FN(exp2)(x)) \
    X(expm1, 1, N, OPD_FN(expm1)(x)) \
    X(log, 1, N, OPD_FN(log)(x)) \
    X(log2, 1, N, OPD_FN(log2)(x)) \
    X(log10, 1, N, OPD_FN(log10)(x)) \
    X(log1p, 1, N, OPD_FN(log1p)(x)) \
    X(sqrt, 1, N, OPD_FN(sqrt)(x)) \
    X(rsqrt, 1, N, 1 / OPD_FN(sqrt)(x)) \
    X(sin, 1, N, OPD_FN(sin)(x)) \
    X(cos, 1, N, OPD_FN(cos)(x)) \
    X(tan, 1, N, OPD_FN(tan)(x)) \
    X(asin, 1, D, OPD_FN(asin)(x)) \
    X(acos, 1, D, OPD_FN(acos)(x)) \
    X(atan, 1, M, OPD_FN(atan)(x)) \
    X(sinh, 1, D, OPD_FN(sinh)(x)) \
    X(cosh, 1, D, OPD_FN(cosh)(x)) \
    X(asinh, 1, D, OPD_FN(asinh)(x)) \
    X(acosh, 1, D, OPD_FN(acosh)(x)) \
    X(atanh, 1, D, OPD_FN(atanh)(x)) \
    X(tanh, 1, N, OPD_FN(tanh)(x)) \
    X(erf, 1, N, OPD_FN(erf)(x)) \
    X(erfc, 1, N, OPD_FN(erfc)(x)) \
    X(sigmoid, 1, N, 1 / (1 + OPD_FN(exp)(-x))) \
    X(floor, 1, V, OPD_FN(floor)(x)) \
    X(ceil, 1, V, OPD_FN(ceil)(x)) \
    X(round, 1, V, OPD_FN(nearbyint)(x)) \
    X(trunc, 1, V, OPD_FN(trunc)(x)) \
    X(frac, 1, V, x - OPD_FN(trunc)(x)) \
    X(round_decimals, 1, S, b != 0 ? OPD_FN(nearbyint)(x / a) * a : OPD_FN(nearbyint)(x * a) / a) \
    X(isinf, 1, V, (OPD_T)(OPD_FN(fabs)(x) == (OPD_T)INFINITY)) \
    X(isfinite, 1, V, (OPD_T)(OPD_FN(fabs)(x) < (OPD_T)INFINITY)) \
    X(isposinf, 1, D, (OPD_T)(x == (OPD_T)INFINITY)) \
    X(isneginf, 1, D, (OPD_T)(x == -(OPD_T)INFINITY)) \
    X(signbit, 1, D, (OPD_T)(OPD_FN(copysign)((OPD_T)1, x) < 0)) \
    X(copysign, 2, V, OPD_FN(copysign)(x, y)) \
    X(nextafter, 2, S, OPD_FN(nextafter)(x, y)) \
    X(nextafter_bf16, 2, S, OPD_H(nextafter_bf16)(x, y)) \
    X(nextafter_f16, 2, S, OPD_H(nextafter_f16)(x, y)) \
    X(div_trunc_bf16, 2, S, OPD_FN(trunc)(OPD_H(as_bf16)(x / y))) \
    X(div_trunc_f16, 2, S, OPD_FN(trunc)(OPD_H(as_f16)(x / y))) \
    X(atan2, 2, D, OPD_FN(atan2)(x, y)) \
    X(hypot, 2, D, OPD_FN(hypot)(x, y)) \
    X(xlogy, 2, D, y != y ? y : x == 0 ? 0 : x * OPD_FN(log)(y)) \
    X(logaddexp, 2, D, OPD_H(logaddexp)(x, y)) \
    X(logaddexp2, 2, D, OPD_H(logaddexp2)(x, y)) \
    X(lerp, 3, V, OPD_FN(fabs)(z) < (OPD_T)0.5 ? x + z * (y - x) : y - (y - x) * (1 - z)) \
    X(lerp_scalar, 2, V, OPD_FN(fabs)(a) < (OPD_T)0.5 ? x + a * (y - x) : y - (y - x) * (1 - a)) \
    X(addcdiv, 3, V, x + a * y / z) \
    X(clamp_tensor, 3, V, OPD_H(clamp)(x, y, z)) \
    X(leaky_relu, 1, V, x > 0 ? x : x * a) \
    X(leaky_relu_backward, 2, V, x > 0 ? y : y * a) \
    X(elu, 1, D, x <= 0 ? OPD_FN(expm1)(x * c) * a : x * b) \
    X(elu_backward, 2, D, y > 0 ? x * b : x * c * a * OPD_FN(exp)(y * c)) \
    X(elu_backward_result, 2, V, y > 0 ? x * b : x * c * (y + a)) \
    X(softplus, 1, D, x * a > b ? x : OPD_FN(log1p)(OPD_FN(exp)(x * a)) / a) \
    X(softplus_backward, 2, D, y * a > b ? x : x * OPD_FN(exp)(y * a) / (OPD_FN(exp)(y * a) + 1)) \
    X(gelu, 1, D, (OPD_T)0.5 * x * (1 + OPD_FN(erf)(x * (OPD_T)0.70710678118654752440))) \
    X(gelu_tanh, 1, D, (OPD_T)0.5 * x * (1 + OPD_FN(tanh)(OPD_H(gelu_inner)(x)))) \
    X(gelu_backward, 2, D, x * OPD_H(gelu_slope)(y)) \
    X(gelu_tanh_backward, 2, D, x * OPD_H(gelu_tanh_slope)(y)) \
    X(silu, 1, D, x / (1 + OPD_FN(exp)(-x))) \
    X(silu_backward, 2, D, x * OPD_H(silu_slope)(y)) \
    X(mish, 1, D, x * OPD_FN(tanh)(OPD_FN(log1p)(OPD_FN(exp)(x)))) \
    X(mish_backward, 2, D, x * OPD_H(mish_slope)(y)) \
    X(hardsigmoid, 1, V, OPD_H(relu6)(x + 3) / 6) \
    X(hardsigmoid_backward, 2, V, ((y > -3) & (y < 3)) ? x / 6 : 0) \
    X(hardswish, 1, V, x * OPD_H(relu6)(x + 3) / 6) \
    X(hardswish_backward, 2, V, y <= -3 ? 0 : y < 3 ? x * (y / 3 + (OPD_T)0.5) : x) \
    X(tanh_backward, 2, V, x * (1 - y * y)) \
    X(sigmoid_backward, 2, V, x * (1 - y) * y) \
    X(log_sigmoid, 1, D, (x < 0 ? x : 0) - OPD_FN(log1p)(OPD_FN(exp)(-OPD_FN(fabs)(x)))) \
    X(log_sigmoid_backward, 2, D, y < 0 ? x - x * OPD_H(exp_ratio)(y) : x * OPD_H(exp_ratio)(y)) \
    X(softshrink, 1, V, x > a ? x - a : x < -a ? x + a : x != x ? x : 0) \
    X(hardshrink, 1, V, ((x >= -a) & (x <= a)) ? 0 : x) \
    X(shrink_backward, 2, V, ((y > a) | (y < -a)) ? x : 0) \
    X(logit, 1, D, OPD_H(logit)(x, a, b)) \
    X(logit_backward, 2, D, ((y < a) | (y > b)) ? c : x / (y * (1 - y))) \
    X(sinc, 1, D, x == 0 ? 1 : OPD_FN(sin)(x * (OPD_T)3.14159265358979323846) / (x * (OPD_T)3.14159265358979323846)) \
    X(nan_to_num, 1, V, OPD_H(nan_to_num)(x, a, b, c))

/* Formulas for int64_t: the formulas that floats have, too, and the formulas that only integers have.  Narrower
   integers and bool are computed in int64_t. */
#define OPD_FORMULAS_INT(X) OPDI_FORMULAS_INT_SHARED(X) OPD_FORMULAS_INT_OWN(X)
#define OPDI_FORMULAS_INT_SHARED(X) \
    X(abs, 1, S, x < 0 ? OPD_NEG(x) : x) \
    X(div_trunc, 2, S, OPD_H(div_trunc)(x, y)) \
    X(div_floor, 2, S, OPD_H(div_floor)(x, y)) \
    X(fmod, 2, S, OPD_H(fmod)(x, y)) \
    X(remainder, 2, S, OPD_H(remainder)(x, y)) \
    X(pow, 2, S, OPD_H(pow)(x, y)) \
    X(clamp_tensor, 3, V, OPD_H(clamp)(x, y, z)) \
    X(floor, 1, S, x) \
    X(signbit, 1, S, (OPD_T)(x < 0))
#define OPD_FORMULAS_INT_OWN(X) \
    X(zero, 1, S, 0 * x) \
    X(one, 1, S, 0 * x + 1) \
    X(bitwise_and, 2, W, x & y) \
    X(bitwise_or, 2, W, x | y) \
    X(bitwise_xor, 2, W, x ^ y) \
    X(bitwise_not, 1, W, ~x) \
    X(bitwise_left_shift, 2, S, OPD_H(shift_left)(x, y)) \
    X(bitwise_right_shift, 2, S, OPD_H(shift_right)(x, y)) \
    X(gcd, 2, S, OPD_H(gcd)(x, y)) \
    X(lcm, 2, S, OPD_H(lcm)(x, y))

/* The helpers OPD_H(name) that formulas call are at the end of the declarations.  If OPD_FORMULA_HELPERS_FLOAT or
   OPD_FORMULA_HELPERS_INT is defined, including this file again defines the helpers for the current OPD_T. */

/* The number of a formula, such as OPD_FORMULA_add, is the same for every type.  OPD_FORMULA_copy is in no list
   OPD_FORMULAS_*: it converts its input, which may be complex, to the result's dtype. */
typedef enum opd_formula {
#define OPD_FORMULA_NUMBER(name, inputs, kind, formula) OPD_FORMULA_##name,
    OPD_FORMULAS_ALL(OPD_FORMULA_NUMBER) OPD_FORMULAS_FLOAT(OPD_FORMULA_NUMBER)
    OPD_FORMULAS_INT_OWN(OPD_FORMULA_NUMBER)
#undef OPD_FORMULA_NUMBER
    OPD_FORMULA_copy, OPD_FORMULA_COUNT
} opd_formula;
/* An operand of a formula: memory of the device or, if data is NULL, a number that is already converted to `common`. */
typedef struct opd_operand {
    void *data;
    const int64_t *strides;      /* [ndim], in elements; 0 for a repeated dimension */
    opd_scalar_type dtype;
    double f64[2];               /* the number as a double; f64[1] is the imaginary part of a complex number */
    int64_t i64;                 /* the same number as an integer */
} opd_operand;
/* A computation for opd_backend_desc.pointwise: operands[0][i] = formula(operands[1][i], ...) for every index.  Inputs
   are converted to `common`, then to `compute`, the type in which the formula is computed.  The formula's value is
   converted to the result's dtype. */
struct opd_pointwise {
    opd_formula formula;
    int32_t noperands;           /* the result and one to three inputs */
    opd_scalar_type compute;     /* float32, float64, int64 or, see opd_backend_desc, complex128 */
    opd_scalar_type common;      /* the promoted dtype of the inputs; OPD_DTYPE_NONE for copies */
    int32_t ndim;                /* at least 1; adjacent dimensions are merged if possible */
    bool linear;                 /* every operand in memory is contiguous: ndim is 1 */
    const int64_t *sizes;        /* [ndim], the innermost first; no size is 0 */
    int64_t numel;
    opd_operand operands[4];
    double f64[3];               /* the numbers a, b, c; if `compute` is complex128, the two parts of a */
    float f32[3];
    int64_t i64[3];
    int32_t *zero;               /* for integer division; may be NULL.  The backend's function sets *zero to 1 if an
                                    element was divided by zero and this is already known when the function returns */
};

/* Random numbers for opd_backend_desc.draw to write, one after the other.  The numbers are made from 32-bit words of
   Philox 4x32-10: word w of a key is word w % 4 of the block with counter w / 4.  In float32, number i is made from u =
   (word >> 8) / 2^24, where word is word number at + i.  Shorter floats, integers and bool use the same u.  float64
   uses two words per number, with u = ((second << 32 | first) >> 11) / 2^53.
     uniform      u * (b - a) + a; float16 and bfloat16: floor(u * n) / n * (b - a) + a, n = 2048 and 256
     exponential  -log1p(-u) / a
     bernoulli    1 if u < a, else 0
     normal       two at once, of u and the next, v: a + b * r * cos(2 pi v), a + b * r * sin(2 pi v), where
                  r = sqrt(-2 log(u + 2^-25)) in float32, sqrt(-2 log(1 - u)) in float64
     integers     low + x % range, with x = second << 32 | first of two words; if range is below 2^32,
                  low + (x * range >> 64); if range is 0, low + x, cut to 64 bits */
typedef enum opd_draw_kind {
    OPD_DRAW_UNIFORM, OPD_DRAW_NORMAL, OPD_DRAW_EXPONENTIAL, OPD_DRAW_BERNOULLI, OPD_DRAW_INTEGERS
} opd_draw_kind;
struct opd_draw {
    opd_draw_kind kind;
    opd_scalar_type dtype;       /* not complex */
    void *data;
    int64_t numel;
    uint64_t key, at;            /* `at` is a multiple of 64 */
    double a, b;
    int64_t low;
    uint64_t range;
    opd_generator *generator;    /* since 0.2: the generator from which key, at and words were taken */
    int64_t words;
};

