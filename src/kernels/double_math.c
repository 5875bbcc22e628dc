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
    const double most = OPDI_LIMIT(22.0);
    x = x > most ? most : x;
    const double r = opdi_exp_rest(x + x, &t), power = opdi_double((opdi_bits64(t) << 52) - 0x3ff0000000000000u);
    const double m = OPDI_FMA(power, OPDI_FMA(opdi_exp_series(r), r * r, r), power - 1.0);
    const double y = opdi_select_f64(x < 1e-9, x, m / (m + 2.0));
    return opdi_double(opdi_bits64(y) | sign);
}
/* Returns sin(x).  For a zero, returns x itself, to keep its sign. */
OPDI_ALWAYS double opdi_sin1_f64(double x) {
    const double y = opdi_trig1_f64(x, 0);
    return x == 0.0 ? x : y;
}
OPDI_ALWAYS double opdi_cos1_f64(double x) { return opdi_trig1_f64(x, 1); }
#if !defined(OPD_NO_OPERATORS)
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
#endif

/* OPDI_VMATH64(name, one) defines opdi_vmath64_NAME, the loops of the function `name` for each level.  A loop computes
   out[i] = name(a[i]) for i < count; out may be a.  The loop of level 0 computes the expression `one` with the C
   library; the loops of the other levels need a multiple of eight elements. */
typedef void (*opdi_vmath64_loop)(int64_t count, double *out, const double *a);
typedef struct { double at[8]; } opdi_eight;
#define OPDI_VMATH64_LOOP(at, name, lanes, target) \
    target static void opdi_vmath64_##at##_##name(int64_t count, double *out, const double *a) { \
        enum { step = (int)sizeof(lanes) / 8 }; \
        for (int64_t i = 0; i < count; i += step) { \
            double y[step]; \
            for (int j = 0; j < step; j++) { y[j] = opdi_##name##1_f64(a[i + j]); } \
            *(lanes *)(void *)(out + i) = *(const lanes *)(const void *)y; \
        } \
    }
#define OPDI_VMATH64_PLAIN(name, one) \
    static void opdi_vmath64_plain_##name(int64_t count, double *out, const double *a) { \
        for (int64_t i = 0; i < count; i++) { \
            const double x = a[i]; \
            out[i] = one; \
        } \
    }
#if defined(OPDI_X86)
#define OPDI_VMATH64(name, one) OPDI_VMATH64_PLAIN(name, one) \
    OPDI_VMATH64_LOOP(avx2, name, OPDI_V_8_1, OPDI_AVX2) OPDI_VMATH64_LOOP(avx512, name, opdi_v8d, OPDI_AVX512) \
    static const opdi_vmath64_loop opdi_vmath64_##name[3] = { \
        opdi_vmath64_plain_##name, opdi_vmath64_avx2_##name, opdi_vmath64_avx512_##name};
#elif defined(OPDI_VECTORS)
#define OPDI_VMATH64(name, one) OPDI_VMATH64_PLAIN(name, one) OPDI_VMATH64_LOOP(avx2, name, OPDI_V_8_1, OPDI_AVX2) \
    static const opdi_vmath64_loop opdi_vmath64_##name[2] = {opdi_vmath64_plain_##name, opdi_vmath64_avx2_##name};
#else
#define OPDI_VMATH64(name, one) OPDI_VMATH64_PLAIN(name, one) \
    static const opdi_vmath64_loop opdi_vmath64_##name[1] = {opdi_vmath64_plain_##name};
#endif

/* Applies a function to `count` elements.  again: NULL, or the C library's function, which computes those elements
   again that are too large for the range reduction of sin, cos and sinc. */
static void opdi_vmath64(const opdi_vmath64_loop *loops, double (*again)(double), int64_t count, double *out,
                         const double *a) {
    const int level = opdi_cpu_level();
    const opdi_vmath64_loop loop = loops[level];
    const int64_t most = again ? 256 : count;
    if (level == 0) {
        loop(count, out, a);
        return;
    }
    uint32_t masks[64];                            /* of the high words */
    for (int k = 0; k < 64; k++) { masks[k] = k % 2 ? 0x7fffffffu : 0u; }
    for (int64_t from = 0, rows; from < count; from += rows) {
        double copy[256], rest[8] = {0};
        const double *x = a + from;
        rows = OPDI_MIN(count - from, most);
        const int64_t whole = rows & ~(int64_t)7;
        if (again && (out == a || rows % 32 != 0)) {
            memcpy(copy, x, (size_t)rows * sizeof *x);
            for (int64_t j = rows; j % 32 != 0; j++) { copy[j] = 0.0; }
            x = copy;
        }
        memcpy(rest, x + whole, (size_t)(rows - whole) * sizeof *x);
        loop(whole, out + from, x);
        if (rows > whole) {
            loop(8, rest, rest);
            memcpy(out + from + whole, rest, (size_t)(rows - whole) * sizeof *rest);
        }
        if (!again || opdi_vmath_most((2 * rows + 63) & ~(int64_t)63, x, masks, 0) < 0x41300000u) { continue; }
        for (int64_t j = 0; j < rows; j++) {
            if (!(fabs(x[j]) < OPDI_TRIG_MAX_F64)) { out[from + j] = again(x[j]); }
        }
    }
}
OPDI_VMATH64(log, log(x))
OPDI_VMATH64(tanh, tanh(x))
OPDI_VMATH64(sin, sin(x))
OPDI_VMATH64(cos, cos(x))
OPDI_VMATH64(sigmoid, 1 / (1 + exp(-x)))
/* The logarithm, sine and cosine with the same bits at every level, of `count` numbers, a multiple of eight.  Angles
   are less than 2^20. */
OPDI_VMATH64_LOOP(once, log, opdi_eight, )
OPDI_VMATH64_LOOP(once, sin, opdi_eight, )
OPDI_VMATH64_LOOP(once, cos, opdi_eight, )
OPDI_INTERNAL void opdi_vlog64_same(int64_t count, double *out, const double *a) {
    (opdi_cpu_level() ? opdi_vmath64_log[opdi_cpu_level()] : opdi_vmath64_once_log)(count, out, a);
}
OPDI_INTERNAL void opdi_vsin64_same(int64_t count, double *out, const double *a) {
    (opdi_cpu_level() ? opdi_vmath64_sin[opdi_cpu_level()] : opdi_vmath64_once_sin)(count, out, a);
}
OPDI_INTERNAL void opdi_vcos64_same(int64_t count, double *out, const double *a) {
    (opdi_cpu_level() ? opdi_vmath64_cos[opdi_cpu_level()] : opdi_vmath64_once_cos)(count, out, a);
}
#if defined(OPDI_NEON) && !defined(OPD_NO_OPERATORS)
OPDI_VMATH64_PLAIN(exp, exp(x))
static const opdi_vmath64_loop opdi_vmath64_exp[2] = {opdi_vmath64_plain_exp, opdi_exp_neon_f64};
#elif defined(OPDI_X86)
/* Returns e^x for |x| <= 708, with the bits of opdi_exp1_f64: 2^n is added to the exponent. */
OPDI_ALWAYS double opdi_exp_normal1_f64(double x) {
    const double t = OPDI_FMA(x, 1.4426950408889634, OPDI_MAGIC_F64), k = OPDI_MAGIC_F64 - t;
    const double r = OPDI_FMA(k, 1.90821492927058770002e-10, OPDI_FMA(k, 0.69314718036912381649, x));
    return opdi_double(opdi_bits64(OPDI_FMA(opdi_exp_series(r), r * r, r) + 1.0) + (opdi_bits64(t) << 52));
}
/* Are the absolute values of `count` numbers, a multiple of eight, at most 708? */
OPDI_ALWAYS bool opdi_exp_all_normal_f64(int64_t count, const double *a) {
    uint64_t beyond[8] = {0}, any = 0;
    for (int64_t i = 0; i < count; i += 8) {
        for (int k = 0; k < 8; k++) {
            beyond[k] |= (opdi_bits64(a[i + k]) & 0x7fffffffffffffffu) + (0x7fffffffffffffffu - 0x4086200000000000u);
        }
    }
    for (int k = 0; k < 8; k++) { any |= beyond[k]; }
    return any >> 63 == 0;
}
OPDI_VMATH64_PLAIN(exp, exp(x))
OPDI_VMATH64_LOOP(avx2, exp, OPDI_V_8_1, OPDI_AVX2)
OPDI_VMATH64_LOOP(avx2, exp_normal, OPDI_V_8_1, OPDI_AVX2)
OPDI_VMATH64_LOOP(avx512, exp, opdi_v8d, OPDI_AVX512)
OPDI_VMATH64_LOOP(avx512, exp_normal, opdi_v8d, OPDI_AVX512)
/* Define loops that compute e^x: in blocks without very large or small results by a shorter formula. */
#define OPDI_EXP64_LOOP(at, target) \
    target static void opdi_exp64_loop_##at(int64_t count, double *out, const double *a) { \
        for (int64_t i = 0, rows; i < count; i += rows) { \
            rows = OPDI_MIN(count - i, 128); \
            if (opdi_exp_all_normal_f64(rows, a + i)) { opdi_vmath64_##at##_exp_normal(rows, out + i, a + i); } \
            else { opdi_vmath64_##at##_exp(rows, out + i, a + i); } \
        } \
    }
OPDI_EXP64_LOOP(avx2, OPDI_AVX2)
OPDI_EXP64_LOOP(avx512, OPDI_AVX512)
static const opdi_vmath64_loop opdi_vmath64_exp[3] = {
    opdi_vmath64_plain_exp, opdi_exp64_loop_avx2, opdi_exp64_loop_avx512};
#else
OPDI_VMATH64(exp, exp(x))
#endif
OPD_UNUSED OPDI_INTERNAL void opdi_vexp64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_exp, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsigmoid64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_sigmoid, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vlog64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_log, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vtanh64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_tanh, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsin64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_sin, sin, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vcos64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_cos, cos, count, out, a);
}
#if !defined(OPD_NO_OPERATORS)
OPDI_VMATH64(erf, erf(x))
OPDI_VMATH64(erfc, erfc(x))
OPDI_VMATH64(sinc, opdi_sinc_f64(x))
OPD_UNUSED OPDI_INTERNAL void opdi_verf64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_erf, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_verfc64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_erfc, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsinc64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_sinc, opdi_sinc_f64, count, out, a);
}
#endif
