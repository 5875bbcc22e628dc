#include "kernels.h"

//== functions of doubles ==============================================================================================
//
//  With AVX2, AVX-512 or NEON, vectors compute eight elements per step; otherwise the C library computes each element.
//  Error bounds in units in the last place: log2, log10, log1p 0.7; exp2 0.8; expm1 0.9; exp, log 1; sin, cos 1.5;
//  erf, erfc 1.6; sinc 2.5; tanh 3; tan 3.5.

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
/* Returns tan(x).  For a zero, returns x itself, to keep its sign. */
OPDI_ALWAYS double opdi_tan1_f64(double x) {
    const double y = opdi_trig1_f64(x, 0) / opdi_trig1_f64(x, 1);
    return x == 0.0 ? x : y;
}
/* Returns 2^x = 2^n * e^y, where n is the integer next to x, and y = (x - n) * ln(2) is the sum of two doubles. */
OPDI_ALWAYS double opdi_exp21_f64(double x) {
    const double from = OPDI_LIMIT(-1077.0), to = OPDI_LIMIT(1025.0);
    x = x > to ? to : x;
    x = x < from ? from : x;
    const double t = x + OPDI_MAGIC_EXP64, r = x - (t - OPDI_MAGIC_EXP64), y = r * 0.6931471805599453;
    const double low = OPDI_FMA(r, 2.3190468138462996e-17, OPDI_FMA(r, 0.6931471805599453, -y)), sum = 1.0 + y;
    const double rest = OPDI_FMA(y * y, opdi_exp_series(y), low) + (y - (sum - 1.0));
    return opdi_scale_f64(sum + rest, t);
}
/* Returns e^x - 1 = 2^n * (e^r - 1) + (2^n - 1), halved until the end, because 2^1024 is no double. */
OPDI_ALWAYS double opdi_expm11_f64(double x) {
    const double from = OPDI_LIMIT(-40.0), to = OPDI_LIMIT(710.0);
    double y = x > to ? to : x;
    y = y < from ? from : y;
    const double t = OPDI_FMA(y, 1.4426950408889634, OPDI_MAGIC_F64 + 1022.0), k = OPDI_MAGIC_F64 + 1022.0 - t;
    const double power = opdi_double(opdi_bits64(t) << 52), close = OPDI_FMA(k, 0.69314718036912381649, y);
    const double off = k * 1.90821492927058770002e-10, r = close + off, low = (close - r) + off;
    const double rest = OPDI_FMA(r * r, opdi_exp_series(r), OPDI_FMA(low, r, low));
    const double first = power - 0.5, second = power * r, sum = first + second;
    const double errors = ((first - sum) + second) + ((power - first) - 0.5);
    const double result = 2.0 * (sum + OPDI_FMA(power, rest, errors));
    return opdi_select_f64(fabs(x) < 1e-17, x, result);
}
/* Returns the leading part of log(1 + f) for 1 + f from opdi_split_f64, and sets *low to the rest. */
OPDI_ALWAYS double opdi_log_two_f64(double f, double *low) {
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f, high = f - half;
    const double rest = s * OPDI_FMA(z, opdi_log_series(z), half);
    *low = rest + (((f - high) - half) - OPDI_FMA(0.5 * f, f, -half));
    return high;
}
/* Returns the logarithm of a to a base.  The logarithms of 2 and e to this base are sums of two numbers; e times the
   first number two[0] is exact. */
OPDI_ALWAYS double opdi_log_base_f64(double a, double two, double two_low, double base, double base_low) {
    const bool tiny = a < 2.2250738585072014e-308;
    double e, low;
    const double f = opdi_split_f64(tiny ? a * 18014398509481984.0 : a, &e) - 1.0;
    e -= tiny ? 54.0 : 0.0;
    const double high = opdi_log_two_f64(f, &low), product = high * base, first = e * two, sum = first + product;
    low = OPDI_FMA(low, base, OPDI_FMA(high, base_low, OPDI_FMA(high, base, -product)));
    double y = sum + (((first - sum) + product) + OPDI_FMA(e, two_low, low));
    y = a < HUGE_VAL ? y : a;                     /* inf and NaN are returned */
    y = a < 0.0 ? (double)NAN : y;
    return a == 0.0 ? -HUGE_VAL : y;
}
OPDI_ALWAYS double opdi_log21_f64(double a) {
    return opdi_log_base_f64(a, 1.0, 0.0, 1.4426950408889634, 2.0355273740931033e-17);
}
OPDI_ALWAYS double opdi_log101_f64(double a) {
    return opdi_log_base_f64(a, 0.30102999566361177, 3.694239077158931e-13, 0.4342944819032518, 1.098319650216765e-17);
}
/* Returns log(1 + x) = log(u) + c / u, where u + c is 1 + x, and u is 1 + x rounded. */
OPDI_ALWAYS double opdi_log1p1_f64(double x) {
    const double u = 1.0 + x, back = u - 1.0, c = (1.0 - (u - back)) + (x - back);
    double e, low;
    const double f = opdi_split_f64(u, &e) - 1.0;
    const double high = opdi_log_two_f64(f, &low), first = e * 0.693147180559663, sum = first + high;
    low = OPDI_FMA(e, 2.8235290563031577e-13, low + c / u);
    double y = sum + (((first - sum) + high) + low);
    y = x < HUGE_VAL ? y : x;                     /* inf and NaN are returned */
    y = x < -1.0 ? (double)NAN : y;
    y = x == -1.0 ? -HUGE_VAL : y;
    return opdi_select_f64(fabs(x) < 1e-17, x, y);
}
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
/* Returns x * Phi(x): Phi is the normal distribution function. */
OPDI_ALWAYS double opdi_gelu1_f64(double x) { return 0.5 * x * (1 + opdi_erf1_f64(x * 0.70710678118654752440)); }
OPDI_ALWAYS double opdi_sinc1_f64(double x) {
    const double angle = x * 3.14159265358979323846, zero = x == 0.0 ? 1.0 : 0.0;
    return (opdi_trig1_f64(angle, 0) + zero) / (angle + zero);
}
static double opdi_sinc_f64(double x) {
    const double angle = x * 3.14159265358979323846;
    return x == 0 ? 1 : opdi_sin_f64(angle) / angle;
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

/* Runs a loop that needs a multiple of eight elements on `count` elements. */
OPDI_ALWAYS void opdi_vmath64_run(opdi_vmath64_loop loop, int64_t count, double *out, const double *a) {
    const int64_t whole = count & ~(int64_t)7, left = count - whole;
    double rest[8] = {0};
    memcpy(rest, a + whole, (size_t)left * sizeof *a);
    loop(whole, out, a);
    if (left) {
        loop(8, rest, rest);
        memcpy(out + whole, rest, (size_t)left * sizeof *rest);
    }
}
/* Applies a function to `count` elements.  again: NULL, or the function of one number, which computes those elements
   again that are too large for the range reduction of sin, cos, tan and sinc. */
static void opdi_vmath64(const opdi_vmath64_loop *loops, double (*again)(double), int64_t count, double *out,
                         const double *a) {
    const int level = opdi_cpu_level();
    const opdi_vmath64_loop loop = loops[level];
    if (level == 0 || !again) {
        if (level == 0) { loop(count, out, a); }
        else { opdi_vmath64_run(loop, count, out, a); }
        return;
    }
    uint32_t masks[64];                            /* of the high words */
    for (int k = 0; k < 64; k++) { masks[k] = k % 2 ? 0x7fffffffu : 0u; }
    for (int64_t from = 0, rows; from < count; from += rows) {
        double copy[256];
        const double *x = a + from;
        rows = OPDI_MIN(count - from, (int64_t)256);
        if (out == a || rows % 32 != 0) {
            memcpy(copy, x, (size_t)rows * sizeof *x);
            for (int64_t j = rows; j % 32 != 0; j++) { copy[j] = 0.0; }
            x = copy;
        }
        opdi_vmath64_run(loop, rows, out + from, x);
        if (opdi_vmath_most((2 * rows + 63) & ~(int64_t)63, x, masks, 0) < 0x41300000u) { continue; }
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
    opdi_vmath64(opdi_vmath64_sin, opdi_sin_f64, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vcos64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_cos, opdi_cos_f64, count, out, a);
}
#if !defined(OPD_NO_OPERATORS)
OPDI_VMATH64(exp2, exp2(x))
OPDI_VMATH64(expm1, expm1(x))
OPDI_VMATH64(log2, log2(x))
OPDI_VMATH64(log10, log10(x))
OPDI_VMATH64(log1p, log1p(x))
OPDI_VMATH64(tan, tan(x))
OPDI_VMATH64(erf, erf(x))
OPDI_VMATH64(erfc, erfc(x))
OPDI_VMATH64(gelu, 0.5 * x * (1 + erf(x * 0.70710678118654752440)))
OPDI_VMATH64(sinc, opdi_sinc_f64(x))
OPD_UNUSED OPDI_INTERNAL void opdi_vexp264(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_exp2, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vexpm164(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_expm1, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vlog264(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_log2, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vlog1064(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_log10, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vlog1p64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_log1p, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vtan64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_tan, opdi_tan_f64, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_verf64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_erf, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_verfc64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_erfc, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vgelu64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_gelu, NULL, count, out, a);
}
OPD_UNUSED OPDI_INTERNAL void opdi_vsinc64(int64_t count, double *out, const double *a) {
    opdi_vmath64(opdi_vmath64_sinc, opdi_sinc_f64, count, out, a);
}
static const double opdi_atan_series[11] = {
    -0.3333333333333333, 0.19999999999995652, -0.1428571428469138, 0.11111111017100327, -0.0909090464769568,
    0.07692184699371778, -0.06664531369805009, 0.05858311810501153, -0.05086254885823143, 0.039253696320618564,
    -0.01920252926841228};
#if defined(OPDI_VECTORS)
/* Returns atan2(y, x), or NaN unless both numbers are finite and one of them is at least 1e-300 in absolute value.
   With t = the smaller absolute value divided by the larger, uses atan(t) or, for t above tan(pi / 8), pi / 4 +
   atan((t - 1) / (t + 1)).  The error is at most 2 ulp. */
OPDI_ALWAYS double opdi_atan21_f64(double y, double x) {
    const double across = fabs(x), up = fabs(y), size = across > up ? across : up;
    const bool known = (size > 1e-300) & (size < HUGE_VAL) & (x == x) & (y == y);
    const double most = known ? size : 1, least = known ? across > up ? up : across : 0;
    const bool steep = least > 0.41421356237309503 * most;
    const double t = (steep ? least - most : least) / (steep ? least + most : most), z = t * t;
    double angle = t + t * z * OPDI_POLYNOMIAL(opdi_atan_series, z);
    angle = steep ? 0.78539816339744828 + (angle + 3.061616997868383e-17) : angle;
    angle = up > across ? 1.5707963267948966 - (angle - 6.123233995736766e-17) : angle;
    angle = x < 0 ? 3.141592653589793 - (angle - 1.2246467991473532e-16) : angle;
    angle = known ? angle : (double)NAN;
    return opdi_double(opdi_bits64(angle) | (opdi_bits64(y) & 0x8000000000000000u));
}
/* Computes opdi_atan21_f64 for `count` pairs of numbers, a multiple of eight. */
OPDI_AVX2 static void opdi_atan2_wide(int64_t count, const double *y, const double *x, double *out) {
    enum { step = (int)sizeof(OPDI_V_8_1) / 8 };
    for (int64_t i = 0; i < count; i += step) {
        double angles[step];
        for (int j = 0; j < step; j++) { angles[j] = opdi_atan21_f64(y[i + j], x[i + j]); }
        *(OPDI_V_8_1 *)(void *)(out + i) = *(const OPDI_V_8_1 *)(const void *)angles;
    }
}
#endif
/* Computes atan2(across[i], along[i]) for `count` pairs of numbers. */
OPD_UNUSED OPDI_INTERNAL void opdi_vatan264(int64_t count, double *to, const double *across, const double *along) {
#if defined(OPDI_VECTORS)
    if (opdi_cpu_level() > 0 && count % 8 == 0 && to != across && to != along) {
        uint64_t special = 0;
        opdi_atan2_wide(count, across, along, to);
        for (int64_t i = 0; i < count; i++) { special |= to[i] != to[i] ? 1u : 0u; }
        if (!special) { return; }                     /* no angle needs the copies below */
    }
    for (int64_t from = 0, rows; opdi_cpu_level() > 0 && from < count; from += rows) {
        double y[64], x[64], out[64];
        rows = OPDI_MIN(count - from, (int64_t)64);
        memcpy(y, across + from, (size_t)rows * sizeof *y);
        memcpy(x, along + from, (size_t)rows * sizeof *x);
        for (int64_t i = rows; i % 8 != 0; i++) { x[i] = y[i] = 1; }
        opdi_atan2_wide((rows + 7) & ~(int64_t)7, y, x, out);
        for (int64_t i = 0; i < rows; i++) { out[i] = out[i] != out[i] ? opdi_atan2_f64(y[i], x[i]) : out[i]; }
        memcpy(to + from, out, (size_t)rows * sizeof *out);
    }
    if (opdi_cpu_level() > 0) { return; }
#endif
    for (int64_t i = 0; i < count; i++) { to[i] = atan2(across[i], along[i]); }
}

//== functions of one or two numbers ===================================================================================
//
//  opdi_NAME_f64 is the C library's function or, in the mode of same bits, opdi_one_NAME: a function without the C
//  library.  Error bounds of opdi_one_NAME in units in the last place: atan2, hypot 0.6; log, log1p 0.7; sin, cos 0.8;
//  expm1 0.9; exp, sinh, cosh, pow 1; acos 1.5; erfc 1.6; tan, tanh 2.5.

OPDI_ALWAYS double opdi_one_exp(double x) { return opdi_exp1_f64(x); }
OPDI_ALWAYS double opdi_one_expm1(double x) { return opdi_expm11_f64(x); }
OPDI_ALWAYS double opdi_one_log(double x) {
    return opdi_log_base_f64(x, 0.693147180559663, 2.8235290563031577e-13, 1.0, 0.0);
}
OPDI_ALWAYS double opdi_one_log1p(double x) { return opdi_log1p1_f64(x); }
OPDI_ALWAYS double opdi_one_erfc(double x) { return opdi_erfc1_f64(x); }
/* Sets *sinh_of and *cosh_of to sinh(|x|) and cosh(|x|), from the halves of e^|x| and e^-|x|, each the sum of two
   doubles.  For a small x, sinh is a power series. */
OPDI_ALWAYS void opdi_one_hyperbolic(double x, double *sinh_of, double *cosh_of) {
    double t, size = fabs(x);
    size = size > 720.0 ? 720.0 : size;
    const double r = opdi_exp_rest(size, &t), part = OPDI_FMA(opdi_exp_series(r), r * r, r), sum = 1.0 + part;
    const double high = opdi_scale_f64(0.5 * sum, t), low = opdi_scale_f64(0.5 * ((1.0 - sum) + part), t);
    const double over = 0.25 / high, rest = size > 30.0 ? 0.0 : OPDI_FMA(-high, over, 0.25) - low * over;
    const double over_low = rest / high, less = high - over, more = high + over, z = size * size;
    double odd = OPDI_FMA(2.8114572543455206e-15, z, 7.647163731819816e-13);
    odd = OPDI_FMA(odd, z, 1.6059043836821613e-10);
    odd = OPDI_FMA(odd, z, 2.505210838544172e-08);
    odd = OPDI_FMA(odd, z, 2.7557319223985893e-06);
    odd = OPDI_FMA(odd, z, 0.0001984126984126984);
    odd = OPDI_FMA(odd, z, 0.008333333333333333);
    odd = OPDI_FMA(odd, z, 0.16666666666666666);
    *sinh_of = size < 0.7 ? OPDI_FMA(odd, z * size, size)
        : size > 30.0 ? high : less + (((high - less) - over) + (low - over_low));
    *cosh_of = size > 30.0 ? high : more + (((high - more) + over) + (low + over_low));
}
OPDI_ALWAYS double opdi_one_sinh(double x) {
    double low, high;
    opdi_one_hyperbolic(x, &low, &high);
    return x == x ? copysign(low, x) : x;
}
OPDI_ALWAYS double opdi_one_cosh(double x) {
    double low, high;
    opdi_one_hyperbolic(x, &low, &high);
    return x == x ? high : x;
}
OPDI_ALWAYS double opdi_one_tanh(double x) {
    double low, high;
    opdi_one_hyperbolic(x > 30.0 ? 30.0 : x < -30.0 ? -30.0 : x, &low, &high);
    return x == x ? copysign(fabs(x) > 30.0 ? 1.0 : low / high, x) : x;
}
/* The binary digits of 2 / pi, 32 in each word. */
static const uint32_t opdi_angle_words[38] = {
    0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu, 0xdebbc561u,
    0xb7246e3au, 0x424dd2e0u, 0x06492eeau, 0x09d1921cu, 0xfe1deb1cu, 0xb129a73eu, 0xe88235f5u, 0x2ebb4484u,
    0xe99c7026u, 0xb45f7e41u, 0x3991d639u, 0x835339f4u, 0x9c845f8bu, 0xbdf9283bu, 0x1ff897ffu, 0xde05980fu,
    0xef2f118bu, 0x5a0a6d1fu, 0x6d367ecfu, 0x27cb09b7u, 0x4f463f66u, 0x9e5fea2du, 0x7527bac7u, 0xebe5f17bu,
    0x3d0739f7u, 0x8a5292eau, 0x6bfb5fb1u, 0x1f8d5d08u, 0x56033046u, 0xfc7b6babu};
OPDI_COLD_BEGIN
/* Returns r with size = n * pi / 2 + r + *low, |r| < pi / 4, for a finite size of at least 2^20.  Sets *count to the
   last bits of n.  Of the product of the 53 bits of size with 2 / pi, it computes only the digits that are neither
   multiples of 4 nor too small to count.  size is bits * 2^shift.  The product with seven words of 2 / pi is shifted so
   that its whole part begins with word 8. */
OPDI_NOINLINE static double opdi_angle_large(double size, double *low, uint64_t *count) {
    const uint64_t bits = (opdi_bits64(size) & 0x000fffffffffffffu) | 0x0010000000000000u;
    const int shift = (int)(opdi_bits64(size) >> 52) - 1075, first = shift < 2 ? 0 : (shift - 2) / 32;
    const int left = shift - 32 * first + 32;         /* 0 to 65 */
    uint64_t words[11] = {0};
    for (int k = 0; k < 7; k++) {
        const uint64_t word = opdi_angle_words[first + 6 - k], less = word * (uint32_t)bits + words[k];
        const uint64_t more = word * (bits >> 32) + words[k + 1] + (less >> 32);
        words[k] = (uint32_t)less;
        words[k + 1] = (uint32_t)more;
        words[k + 2] += more >> 32;
    }
    for (int k = 10; k >= 0; k--) {                   /* shift to the left */
        const int whole = left / 32, some = left % 32;
        const uint64_t above = k >= whole ? words[k - whole] : 0, below = k > whole ? words[k - whole - 1] : 0;
        words[k] = (uint32_t)((above << 32 | below) >> (32 - some));
    }
    const bool negative = words[7] >> 31 != 0;        /* the fraction is at least 1 / 2 */
    *count = words[8] + (negative ? 1u : 0u);
    for (int k = 0; negative && k < 8; k++) { words[k] = (uint32_t)~words[k]; }
    const double a = (double)(int64_t)words[7] * 2.3283064365386963e-10;
    const double c = (double)(int64_t)words[5] * 1.262177448353619e-29;
    const double b = (double)(int64_t)words[6] * 5.421010862427522e-20 + c;
    const double sum = a + b, rest = a > 0 ? b - (sum - a) : (double)(int64_t)words[4] * 2.938735877055719e-39;
    const double r = sum * 1.5707963267948966;
    const double r_low = OPDI_FMA(sum, 1.5707963267948966, -r) +
        (sum * 6.123233995736766e-17 + rest * 1.5707963267948966);
    *low = negative ? -r_low : r_low;
    return negative ? -r : r;
}
OPDI_COLD_END
/* Returns sin(x) if `shift` is 0, cos(x) if it is 1, like opdi_trig1_f64, with two doubles for r.  The angle is
   reduced exactly, however large it is. */
OPDI_ALWAYS double opdi_one_trig(double x, uint64_t shift) {
    const double size = fabs(x);
    double r, low;
    uint64_t count;
    if (!(size < HUGE_VAL)) { return (double)NAN; }
    if (size < OPDI_TRIG_MAX_F64) {
        const double t = OPDI_FMA(size, 0.63661977236758134308, OPDI_MAGIC_F64), k = OPDI_MAGIC_F64 - t;
        const double close = OPDI_FMA(k, 1.5707963267948966, size);
        r = OPDI_FMA(k, 6.123233995736766e-17, close);
        low = OPDI_FMA(k, -1.4973849048591698e-33, OPDI_FMA(k, 6.123233995736766e-17, close - r));
        count = opdi_bits64(t);
    } else { r = opdi_angle_large(size, &low, &count); }
    const double z = r * r, half = 0.5 * z, one = 1.0 - half;
    const uint64_t turns = count + shift;
    double y;
    if (turns & 1u) {
        double c = OPDI_FMA(-1.1382623647474462e-11, z, 2.087614614655861e-09);
        c = OPDI_FMA(c, z, -2.7557317271145144e-07);
        c = OPDI_FMA(c, z, 2.480158729876456e-05);
        c = OPDI_FMA(c, z, -0.0013888888888887398);
        c = OPDI_FMA(c, z, 0.041666666666666664);
        y = one + (OPDI_FMA(c, z * z, 1.0 - one - half) - r * low);
    } else {
        double sum = OPDI_FMA(1.5918115263265747e-10, z, -2.5051131650235178e-08);
        sum = OPDI_FMA(sum, z, 2.7557316101617874e-06);
        sum = OPDI_FMA(sum, z, -0.00019841269836756774);
        sum = OPDI_FMA(sum, z, 0.008333333333330948);
        sum = OPDI_FMA(sum, z, -0.16666666666666666);
        y = r + OPDI_FMA(sum, z * r, low * one);
    }
    y = turns & 2u ? -y : y;
    return shift == 0 && opdi_bits64(x) >> 63 ? -y : y;
}
OPDI_ALWAYS double opdi_one_sin(double x) { return x == 0.0 ? x : opdi_one_trig(x, 0); }
OPDI_ALWAYS double opdi_one_cos(double x) { return opdi_one_trig(x, 1); }
OPDI_ALWAYS double opdi_one_tan(double x) { return x == 0.0 ? x : opdi_one_trig(x, 0) / opdi_one_trig(x, 1); }
/* Returns the square root of x^2 + y^2, corrected by the rounding errors of the squares, the sum and the root. */
OPDI_ALWAYS double opdi_one_hypot(double x, double y) {
    const double a = fabs(x) > fabs(y) ? fabs(x) : fabs(y), b = fabs(x) > fabs(y) ? fabs(y) : fabs(x);
    if (fabs(x) == HUGE_VAL || fabs(y) == HUGE_VAL) { return HUGE_VAL; }
    if (x != x || y != y) { return x + y; }
    if (b == 0.0) { return a; }
    const double scale = a > 1e150 ? 6.668014432879854e-241 : a < 1e-140 ? 1.499696813895631e+240 : 1.0;
    const double back = a > 1e150 ? 1.499696813895631e+240 : a < 1e-140 ? 6.668014432879854e-241 : 1.0;
    const double p = a * scale, q = b * scale, root = sqrt(OPDI_FMA(p, p, q * q)), square = root * root;
    const double off = OPDI_FMA(-q, q, square - p * p) + OPDI_FMA(root, root, -square) - OPDI_FMA(p, p, -(p * p));
    return (root - off / (2.0 * root)) * back;
}
/* Returns atan2(y, x) like opdi_atan21_f64, for all numbers, with pairs of doubles for the quotient and the sums. */
OPDI_ALWAYS double opdi_one_atan2(double y, double x) {
    double across = fabs(x), up = fabs(y);
    if (x != x || y != y) { return x + y; }
    if (across == HUGE_VAL || up == HUGE_VAL) {
        across = across == HUGE_VAL ? 1.0 : 0.0;
        up = up == HUGE_VAL ? 1.0 : 0.0;
    }
    if (across == 0.0 && up == 0.0) { across = 1.0; }
    const double scale = across > 1e300 || up > 1e300 ? 5.421010862427522e-20
        : across < 1e-280 && up < 1e-280 ? 2.037035976334486e+90 : 1.0;
    across *= scale;
    up *= scale;
    const double most = across > up ? across : up, least = across > up ? up : across;
    const bool steep = least > 0.41421356237309503 * most;
    const double over = steep ? least - most : least, under = steep ? least + most : most;
    const double over_low = steep ? least - (over + most) : 0.0, under_low = steep ? least - (under - most) : 0.0;
    const double t = over / under, z = t * t;
    const double t_low = t == 0.0 ? 0.0 : (OPDI_FMA(-t, under, over) + (over_low - t * under_low)) / under;
    double low = t * z * OPDI_POLYNOMIAL(opdi_atan_series, z) + (t_low - t_low * z), high = t;
    if (steep) {
        high = 0.7853981633974483 + t;
        low = ((0.7853981633974483 - high) + t) + (low + 3.061616997868383e-17);
    }
    if (up > across) {
        const double rest = 1.5707963267948966 - high;
        low = ((1.5707963267948966 - rest) - high) + (6.123233995736766e-17 - low);
        high = rest;
    }
    if (opdi_bits64(x) >> 63) {
        const double rest = 3.141592653589793 - high;
        low = ((3.141592653589793 - rest) - high) + (1.2246467991473532e-16 - low);
        high = rest;
    }
    return copysign(high + low, y);
}
OPDI_ALWAYS double opdi_one_acos(double x) { return opdi_one_atan2(sqrt((1.0 - x) * (1.0 + x)), x); }
/* Returns x^y for all numbers. */
OPDI_ALWAYS double opdi_one_pow(double x, double y) {
    const double size = fabs(x), half = 0.5 * y;
    const bool whole = floor(y) == y, odd = (fabs(y) < 9007199254740992.0) & whole & (floor(half) != half);
    const bool tiny = size < 2.2250738585072014e-308, minus = odd && opdi_bits64(x) >> 63;
    if (y == 0.0 || x == 1.0 || (x == -1.0 && fabs(y) == HUGE_VAL)) { return 1.0; }
    if (x != x || y != y) { return x + y; }
    double power;
    if (size == 0.0 || size == HUGE_VAL || fabs(y) == HUGE_VAL) { power = (size > 1.0) == (y > 0.0) ? HUGE_VAL : 0.0; }
    else if (x < 0.0 && !whole) { return (double)NAN; }
    else { power = opdi_pow1_f64(tiny ? size * 18014398509481984.0 : size, y, tiny ? 54.0 : 0.0); }
    return minus ? -power : power;
}
#endif
/* See kernels.h.  A processor that should have AVX2, but has not, has other bits in any case. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_own_wanted(void) {
#if defined(OPDI_X86)
    return opd_same_bits() && opdi_cpu_level() > 0;
#else
    return opd_same_bits();
#endif
}
/* OPDI_ONE(name) and OPDI_TWO(name) define opdi_NAME_f64, a function of one or two numbers. */
#if defined(OPD_NO_OPERATORS)
#define OPDI_ONE(name) OPDI_INTERNAL double opdi_##name##_f64(double x) { return name(x); }
#define OPDI_TWO(name) OPDI_INTERNAL double opdi_##name##_f64(double x, double y) { return name(x, y); }
#else
#if !defined(OPDI_X86)
#define OPDI_ONE_TEXT OPDI_NOINLINE static
#else
#define OPDI_ONE_TEXT OPDI_AVX2 OPDI_NOINLINE static
#endif
#define OPDI_ONE(name) \
    OPDI_ONE_TEXT double opdi_own_##name(double x) { return opdi_one_##name(x); } \
    OPDI_INTERNAL double opdi_##name##_f64(double x) { return opdi_own_wanted() ? opdi_own_##name(x) : name(x); }
#define OPDI_TWO(name) \
    OPDI_ONE_TEXT double opdi_own_##name(double x, double y) { return opdi_one_##name(x, y); } \
    OPDI_INTERNAL double opdi_##name##_f64(double x, double y) { \
        return opdi_own_wanted() ? opdi_own_##name(x, y) : name(x, y); \
    }
#endif
OPDI_ONE(exp)
OPDI_ONE(expm1)
OPDI_ONE(log)
OPDI_ONE(log1p)
OPDI_ONE(erfc)
OPDI_ONE(sinh)
OPDI_ONE(cosh)
OPDI_ONE(tanh)
OPDI_ONE(sin)
OPDI_ONE(cos)
OPDI_ONE(tan)
OPDI_ONE(acos)
OPDI_TWO(hypot)
OPDI_TWO(atan2)
OPDI_TWO(pow)
