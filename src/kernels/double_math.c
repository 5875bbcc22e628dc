#include "kernels.h"

//== functions of doubles ==============================================================================================
//
//  With AVX2, AVX-512 or NEON, vectors compute eight elements per step; otherwise the C library computes each element.
//  Error bounds in units in the last place: exp, log 1; sin, cos 1.5; tanh 3; erf, erfc 1.6; sinc 2.5.

OPDI_ALWAYS double opdi_sigmoid1_f64(double x) { return 1.0 / (1.0 + opdi_exp1_f64(-x)); }
/* Returns tanh(a).  For x = |a|, tanh(x) = m / (m + 2) with m = e^(2x) - 1 = 2^n (e^r - 1) + (2^n - 1).  The error is
   at most 3 ulp. */
OPDI_ALWAYS double opdi_tanh1_f64(double a) {
    const uint64_t sign = opdi_bits64(a) & 0x8000000000000000u;
    double x = opdi_double(opdi_bits64(a) ^ sign), t;
    x = x > 22.0 ? 22.0 : x;
    const double r = opdi_exp_rest(x + x, &t), power = opdi_double((opdi_bits64(t) << 52) + 0x3ff0000000000000u);
    const double m = OPDI_FMA(power, OPDI_FMA(opdi_exp_series(r), r * r, r), power - 1.0);
    const double y = x < 1e-9 ? x : m / (m + 2.0);
    return opdi_double(opdi_bits64(y) | sign);
}
/* Returns sin(x).  For a zero, returns x itself, to keep its sign. */
OPDI_ALWAYS double opdi_sin1_f64(double x) {
    const double y = opdi_trig1_f64(x, 0);
    return x == 0.0 ? x : y;
}
OPDI_ALWAYS double opdi_cos1_f64(double x) { return opdi_trig1_f64(x, 1); }
#if defined(OPD_NO_OPERATORS)
#define OPDI_VMATH64_LIST(X) X(exp, 0, exp(x)) X(log, 1, log(x)) X(tanh, 4, tanh(x)) X(sin, 6, sin(x)) \
    X(cos, 7, cos(x)) X(sigmoid, 8, 1 / (1 + exp(-x)))
#else
/* The coefficients of erf(x) / x - 1 as a polynomial in 2 * x^2 - 1, for |x| <= 1.  For erfcx, see >>op:special. */
static const double opdi_erf_series[14] = {
    -0.03453126133013269, -0.1405360890227171, 0.019852496688983708, -0.0022854855611440673, 0.00021751715604160108,
    -1.75371694414921e-05, 1.223382738352401e-06, -7.511569160678138e-08, 4.11580059766496e-09, -2.0352493920247854e-10,
    9.167606746069445e-12, -3.7910930392717217e-13, 1.454817075960679e-14, -5.166061616805981e-16};
/* The coefficients of sin(x) / x as a polynomial in x^2, for |x| <= pi / 2. */
OPD_UNUSED OPDI_INTERNAL const double opdi_sine_series[11] = {
    1.0, -0.16666666666666666, 0.008333333333333333, -0.0001984126984126984, 2.7557319223985893e-06,
    -2.505210838544172e-08, 1.6059043836821613e-10, -7.647163731819816e-13, 2.8114572543455206e-15,
    -8.22063524662433e-18, 1.9572941063391263e-20};
OPDI_ALWAYS double opdi_erfc_size_f64(double x) {
    x = x > 40.0 ? 40.0 : x;
    return opdi_erfcx1_f64(x) * opdi_exp_square1_f64(x);
}
OPDI_ALWAYS double opdi_erfc1_f64(double x) {
    const double y = opdi_erfc_size_f64(fabs(x));
    return x < 0.0 ? 2.0 - y : y;
}
OPDI_ALWAYS double opdi_erf1_f64(double x) {
    const double size = fabs(x), inner = size < 1.0 ? size : 1.0;
    const double low = inner + inner * OPDI_POLYNOMIAL(opdi_erf_series, 2.0 * inner * inner - 1.0);
    const double high = 1.0 - opdi_erfc_size_f64(size), y = size < 1.0 ? low : high;
    return opdi_double(opdi_bits64(y) | (opdi_bits64(x) & 0x8000000000000000u));
}
OPDI_ALWAYS double opdi_sinc1_f64(double x) {
    const double angle = x * 3.14159265358979323846, zero = x == 0.0 ? 1.0 : 0.0;
    return (opdi_trig1_f64(angle, 0) + zero) / (angle + zero);
}
static double opdi_sinc_f64(double x) {
    const double angle = x * 3.14159265358979323846;
    return x == 0 ? 1 : sin(angle) / angle;
}
/* The functions, as X(name, number, expression): the expression computes one element with the C library. */
#define OPDI_VMATH64_LIST(X) X(exp, 0, exp(x)) X(log, 1, log(x)) X(tanh, 4, tanh(x)) X(erf, 5, erf(x)) \
    X(sin, 6, sin(x)) X(cos, 7, cos(x)) X(sigmoid, 8, 1 / (1 + exp(-x))) X(erfc, 14, erfc(x)) \
    X(sinc, 15, opdi_sinc_f64(x))
#endif
#define OPDI_VMATH64_CASE(name, number, one) \
    case number: \
        for (int64_t i = 0; i < count; i += 8) { \
            double y[8]; \
            for (int j = 0; j < 8; j++) { y[j] = opdi_##name##1_f64(a[i + j]); } \
            for (int j = 0; j < 8; j++) { out[i + j] = y[j]; } \
        } \
        break;
#define OPDI_VMATH64_EACH(name, number, one) \
    case number: \
        for (int64_t i = 0; i < count; i++) { \
            const double x = a[i]; \
            out[i] = one; \
        } \
        break;
#if defined(OPDI_VECTORS)
OPDI_AVX2 static void opdi_vmath64_avx2(int function, int64_t count, double *out, const double *a) {
    switch (function) { OPDI_VMATH64_LIST(OPDI_VMATH64_CASE) default: break; }
}
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_vmath64_avx512(int function, int64_t count, double *out, const double *a) {
    switch (function) { OPDI_VMATH64_LIST(OPDI_VMATH64_CASE) default: break; }
}
#endif
/* Applies function number `function` of OPDI_VMATH64_LIST to `count` elements, a multiple of eight. */
static void opdi_vmath64_steps(int function, int64_t count, double *out, const double *a) {
#if defined(OPDI_NEON) && !defined(OPD_NO_OPERATORS)
    if (function == 0) {
        opdi_exp_neon_f64(count, out, a);
        return;
    }
#endif
    OPDI_WIDEST(opdi_cpu_level() > 1 ? 2 : 1, opdi_vmath64_avx512, opdi_vmath64_avx2)(function, count, out, a);
}
/* Computes again, with the C library, those elements that are too large for the range reduction of sin, cos and
   sinc. */
static void opdi_vtrig64_again(int function, int64_t count, double *out, const double *a) {
    for (int64_t i = 0; i < count; i++) {
        if (fabs(a[i]) < OPDI_TRIG_MAX_F64) { continue; }
#if !defined(OPD_NO_OPERATORS)
        if (function == 15) { out[i] = opdi_sinc_f64(a[i]); }
#endif
        if (function != 15) { out[i] = function == 6 ? sin(a[i]) : cos(a[i]); }
    }
}
#endif
static void opdi_vmath64(int function, int64_t count, double *out, const double *a) {
#if defined(OPDI_VECTORS)
    const bool angles = function == 6 || function == 7 || function == 15;
    const int64_t most = angles ? 256 : count;
    for (int64_t from = 0, rows; opdi_cpu_level() > 0 && from < count; from += rows) {
        double angle[256] = {0}, rest[8] = {0};
        const double *x = angles ? angle : a + from;
        uint64_t large = 0;
        rows = OPDI_MIN(count - from, most);
        const int64_t whole = rows & ~(int64_t)7;
        if (angles) { memcpy(angle, a + from, (size_t)rows * sizeof *x); }
        memcpy(rest, x + whole, (size_t)(rows - whole) * sizeof *x);
        opdi_vmath64_steps(function, whole, out + from, x);
        if (rows > whole) {
            opdi_vmath64_steps(function, 8, rest, rest);
            memcpy(out + from + whole, rest, (size_t)(rows - whole) * sizeof *rest);
        }
        if (!angles) { continue; }
        for (int j = 0; j < 256; j++) { large |= (opdi_bits64(x[j]) & 0x7fffffffffffffffu) >= 0x4130000000000000u; }
        if (large) { opdi_vtrig64_again(function, rows, out + from, x); }
    }
    if (opdi_cpu_level() > 0) { return; }
#endif
    switch (function) { OPDI_VMATH64_LIST(OPDI_VMATH64_EACH) default: break; }
}
OPD_UNUSED OPDI_INTERNAL void opdi_vexp64(int64_t count, double *out, const double *a) {
    opdi_vmath64(0, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsigmoid64(int64_t count, double *out, const double *a) {
    opdi_vmath64(8, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vlog64(int64_t count, double *out, const double *a) {
    opdi_vmath64(1, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vtanh64(int64_t count, double *out, const double *a) {
    opdi_vmath64(4, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsin64(int64_t count, double *out, const double *a) {
    opdi_vmath64(6, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_verf64(int64_t count, double *out, const double *a) {
    opdi_vmath64(5, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_verfc64(int64_t count, double *out, const double *a) {
    opdi_vmath64(14, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsinc64(int64_t count, double *out, const double *a) {
    opdi_vmath64(15, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vcos64(int64_t count, double *out, const double *a) {
    opdi_vmath64(7, count, out, a);
}
