#include "kernels.h"

//== vector math =======================================================================================================
//
//  Float functions over arrays, computed 16 elements per step in loops without branches, which the compiler vectorises
//  for each instruction set.  `lv` is the level of instructions (opdi_cpu_level), a constant after inlining.
//
//  Error bounds in units in the last place, with and without FMA (a test checks them on a sample of all floats): exp,
//  log 1.1; exp2 1.2; erf 1.3; log1p, expm1 1.6; sin, cos 1.8; log2, atan 1.9; tan, log10 2; sigmoid 2.5; tanh
//  2.6; erfc 4.5; powers of floats 0.6; powers of doubles 1.5.  Results differ in the last place between levels.

/* Returns e^x - 1 = 2^count * (e^r - 1) + (2^count - 1) for -18 <= x <= 89, where x = count * ln(2) + r.  All terms are
   halved, so that count = 128 does not overflow early. */
OPDI_ALWAYS float opdi_expm1_core(int lv, float x) {
    uint32_t count;
    float r = opdi_exp_reduce(lv, x, &count);
    float q = OPDI_FMAF(lv, 0.000199127855f, r, 0.00139411015f);
    q = OPDI_FMAF(lv, q, r, 0.00833327603f);
    q = OPDI_FMAF(lv, q, r, 0.041666355f);
    q = OPDI_FMAF(lv, q, r, 0.166666672f);
    q = OPDI_FMAF(lv, q, r, 0.5f);
    q = OPDI_FMAF(lv, q, r * r, r);
    float sum = opdi_float((count - 128) << 23);
    return OPDI_FMAF(lv, sum, q, sum - 0.5f) * 2.0f;
}
OPDI_ALWAYS float opdi_expm11(int lv, float a) {
    const float y = opdi_expm1_core(lv, opdi_limited_f32(a, -18.0f, 89.0f));
    return opdi_select_f32((opdi_bits(a) & 0x7fffffffu) < 0x33000000u, a, y);
}

/* Returns log(1 + a).  The rounding error of 1 + a is added to the argument after the range reduction. */
OPDI_ALWAYS float opdi_log1p1(int lv, float a) {
    float sum = OPDI_ROUNDED(float, 1.0f + a), b = sum - 1.0f, c = (1.0f - (sum - b)) + (a - b);
    uint32_t bits = opdi_bits(sum) - 0x3f3504f3u;
    int32_t count = (int32_t)bits >> 23;
    float m = opdi_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float y = opdi_log_core(lv, m + c * opdi_float((uint32_t)(127 - OPDI_MIN(count, 126)) << 23), (float)count);
    y = opdi_select_f32(a < HUGE_VALF, y, a);
    y = opdi_select_f32(a < -1.0f, NAN, y);
    y = opdi_select_f32(a == -1.0f, -HUGE_VALF, y);
    return opdi_select_f32((opdi_bits(a) & 0x7fffffffu) < 0x33000000u, a, y);
}

/* Returns 2^a = 2^count * e^r, where a = count + r / ln(2). */
OPDI_ALWAYS float opdi_exp21(int lv, float a) {
    const float x = opdi_limited_f32(a, -151.0f, 129.0f), t = OPDI_ROUNDED(float, x + OPDI_MAGIC_EXP);
    return opdi_exp_scaled(lv, (x - (t - OPDI_MAGIC_EXP)) * 0.693147181f, opdi_bits(t));
}
/* Return the logarithm of a to the base 2 or 10: for a = m * 2^e, the logarithm of m plus that of 2^e.  Logarithms of
   powers of the base are exact. */
OPDI_ALWAYS float opdi_log21(int lv, float a) {
    float e;
    const float f = opdi_log_split(a, &e);
    return opdi_log_special(a, OPDI_FMAF(lv, opdi_log_core(lv, f, 0.0f), 1.44269504f, e));
}
OPDI_ALWAYS float opdi_log101(int lv, float a) {
    float e;
    const float f = opdi_log_split(a, &e);
    const float rest = OPDI_FMAF(lv, opdi_log_core(lv, f, 0.0f), 0.434294482f, e * 4.60503907e-6f);
    return opdi_log_special(a, OPDI_FMAF(lv, e, 0.301025391f, rest));
}

/* Returns tanh(a).  For x = |a|, tanh(x) = m / (m + 2) with m = e^(2x) - 1. */
OPDI_ALWAYS float opdi_tanh1(int lv, float a) {
    uint32_t sign = opdi_bits(a) & 0x80000000u;
    float x = opdi_float(opdi_bits(a) & 0x7fffffffu);
    x = opdi_at_most_f32(x, 10.0f);
    float m = opdi_expm1_core(lv, x + x), y = m / (m + 2.0f);
    y = opdi_select_f32(x < 1e-4f, x, y);
    return opdi_float(opdi_bits(y) | sign);
}

OPDI_ALWAYS float opdi_sigmoid1(int lv, float a) {
    float t = opdi_exp1(lv, opdi_float(opdi_bits(a) | 0x80000000u));
    float num = opdi_select_f32(a >= 0.0f, 1.0f, t);
    return num / (1.0f + t);
}

/* Returns erf(x) = x + x * P(x^2), for |x| < 0.93. */
OPDI_ALWAYS float opdi_erf_near(int lv, float x) {
    const float z = x * x;
    float p = OPDI_FMAF(lv, 8.34522143e-5f, z, -0.000813743682f);
    p = OPDI_FMAF(lv, p, z, 0.00520063424f);
    p = OPDI_FMAF(lv, p, z, -0.0268592704f);
    p = OPDI_FMAF(lv, p, z, 0.112836942f);
    p = OPDI_FMAF(lv, p, z, -0.376126349f);
    p = OPDI_FMAF(lv, p, z, 0.128379166f);
    return OPDI_FMAF(lv, p, x, x);
}
/* Returns erf(a).  For x = |a| >= 0.93, erf(x) is 1 - exp(-L(x)), where the polynomial L approximates -log(1 -
   erf(x)). */
OPDI_ALWAYS float opdi_erf1(int lv, float a) {
    uint32_t sign = opdi_bits(a) & 0x80000000u;
    float x = opdi_float(opdi_bits(a) & 0x7fffffffu), t = opdi_at_most_f32(x, 4.0f), p = opdi_erf_near(lv, x);
    float q = OPDI_FMAF(lv, 1.11483105e-5f, t, -0.000321903295f);
    q = OPDI_FMAF(lv, q, t, 0.00363849476f);
    q = OPDI_FMAF(lv, q, t, -0.023753006f);
    q = OPDI_FMAF(lv, q, t, 0.10622555f);
    q = OPDI_FMAF(lv, q, t, 0.635158658f);
    q = OPDI_FMAF(lv, q, t, 0.128646553f);
    uint32_t count;
    const float r = opdi_exp_reduce(lv, -OPDI_FMAF(lv, q, t, t), &count);
    q = 1.0f - opdi_exp_near(lv, r) * opdi_float((count - 127) << 23);
    p = opdi_select_f32(!(x >= 0.93f), p, q);
    return opdi_float(opdi_bits(p) | sign);
}
/* Returns erfc(a).  For x = |a| >= 1/2, erfc(x) = P(t) / (1 + 2 * x) * exp(-x^2) with t = (x - 2.5) / (x + 2.5),
   corrected by the rounding error of x^2.  For |a| < 1/2, erfc(a) = 1 - erf(a).  For negative a, erfc(a) = 2 -
   erfc(-a). */
OPDI_ALWAYS float opdi_erfc1(int lv, float a) {
    float x = opdi_float(opdi_bits(a) & 0x7fffffffu);
    x = opdi_at_most_f32(x, 10.2f);
    const float t = (x - 2.5f) / (x + 2.5f), square = x * x;
    const float high = opdi_float(opdi_bits(x) & 0xfffff000u), low = x - high;
    const float rest = ((high * high - square) + 2.0f * (high * low)) + low * low;
    float p = OPDI_FMAF(lv, 0.000541323417f, t, 0.000412588291f);
    p = OPDI_FMAF(lv, p, t, -0.00435467816f);
    p = OPDI_FMAF(lv, p, t, 0.000957698289f);
    p = OPDI_FMAF(lv, p, t, 0.0327574259f);
    p = OPDI_FMAF(lv, p, t, -0.102970532f);
    p = OPDI_FMAF(lv, p, t, 0.15763008f);
    p = OPDI_FMAF(lv, p, t, -0.0990243743f);
    p = OPDI_FMAF(lv, p, t, -0.122356765f);
    p = OPDI_FMAF(lv, p, t, 1.26483818f);
    p = p / (1.0f + 2.0f * x) * opdi_exp_less(lv, -square, rest);
    p = opdi_select_f32(x > 10.054195f, 0.0f, p);
    return opdi_select_f32(x < 0.5f, 1.0f - opdi_erf_near(lv, a), opdi_select_f32(a < 0.0f, 2.0f - p, p));
}

/* opdi_trig1 returns sin(a) if `shift` is 0, cos(a) if it is 1, for |a| < 2^27, and changes its sign if the first bit
   of `sign` is 1.  It finds n and r with a = n * pi/2 + r in double, then evaluates the polynomial for the quadrant n +
   shift. */
#define OPDI_TRIG_MAX 134217728.0f
/* a * b + c for doubles, rounded once if `fused` is true, which takes less time, else twice, which gives the same bits
   at every level. */
#if defined(OPDI_PORTABLE)
#define OPDI_TRIG_FMA(fused, a, b, c) ((void)(fused), (a) * (b) + (c))
#else
#define OPDI_TRIG_FMA(fused, a, b, c) ((fused) ? OPDI_FMA(a, b, c) : (a) * (b) + (c))
#endif
OPDI_ALWAYS float opdi_trig1(int lv, bool fused, float a, uint32_t shift, uint32_t sign) {
    double x = (double)a, t = OPDI_ROUNDED(double, OPDI_TRIG_FMA(fused, x, 0.63661977236758134308, OPDI_MAGIC_F64));
    double k = OPDI_MAGIC_F64 - t;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    uint32_t count = (uint32_t)bits + shift;
    const double rest = OPDI_TRIG_FMA(fused, k, 1.57079631090164184570, x);
    float r = (float)OPDI_TRIG_FMA(fused, k, 1.58932547735281966916e-8, rest), z = r * r;
    float sum = OPDI_FMAF(lv, -0.000195164772f, z, 0.00833217241f);
    sum = OPDI_FMAF(lv, sum, z, -0.166666552f);
    sum = OPDI_FMAF(lv, sum, z * r, r);
    float c = OPDI_FMAF(lv, 2.44375278e-5f, z, -0.00138873595f);
    c = OPDI_FMAF(lv, c, z, 0.0416666456f);
    c = OPDI_FMAF(lv, c, z * z, OPDI_FMAF(lv, -0.5f, z, 1.0f));
    const float y = (int32_t)(count << 31) < 0 ? c : sum;
    return opdi_float(opdi_bits(y) ^ (((count << 30) ^ sign) & 0x80000000u));
}
OPDI_ALWAYS float opdi_sin1(int lv, float a) {
    return opdi_trig1(lv, false, opdi_float(opdi_bits(a) & 0x7fffffffu), 0u, opdi_bits(a));
}
OPDI_ALWAYS float opdi_cos1(int lv, float a) { return opdi_trig1(lv, false, a, 1u, 0u); }
OPDI_ALWAYS float opdi_sin_fused1(int lv, float a) {
    return opdi_trig1(lv, lv > 0, opdi_float(opdi_bits(a) & 0x7fffffffu), 0u, opdi_bits(a));
}
OPDI_ALWAYS float opdi_cos_fused1(int lv, float a) { return opdi_trig1(lv, lv > 0, a, 1u, 0u); }

/* Returns the normal distribution function Phi(a), for gelu: 1/2 + x * P(x^2) / Q(x^2), where x is a limited to [-5.6,
   5.6].  The absolute error is at most 2e-7. */
OPDI_ALWAYS float opdi_phi1(int lv, float a) {
    const float x = opdi_limited_f32(a, -5.6f, 5.6f), z = x * x;
    float p = OPDI_FMAF(lv, 2.21612200e-8f, z, 6.34756685e-6f);
    p = OPDI_FMAF(lv, p, z, 0.000173217964f);
    p = OPDI_FMAF(lv, p, z, 0.00470335987f);
    p = OPDI_FMAF(lv, p, z, 0.0343191040f);
    p = OPDI_FMAF(lv, p, z, 0.398942226f);
    float q = OPDI_FMAF(lv, 1.18001065e-6f, z, 7.48746640e-5f);
    q = OPDI_FMAF(lv, q, z, 0.00190941968f);
    q = OPDI_FMAF(lv, q, z, 0.0289064122f);
    q = OPDI_FMAF(lv, q, z, 0.252691010f);
    q = OPDI_FMAF(lv, q, z, 1.0f);
    p = p * x / q + 0.5f;
    return opdi_select_f32(a <= -5.6f, 0.0f, opdi_select_f32(a >= 5.6f, 1.0f, p));
}
OPDI_ALWAYS float opdi_gelu1(int lv, float a) { return a * opdi_phi1(lv, a); }
OPDI_ALWAYS float opdi_silu1(int lv, float a) { return a * opdi_sigmoid1(lv, a); }

/* Returns tan(a).  Finds n and r with a = n * pi/2 + r in double; the result is tan(r), or -1 / tan(r) if n is odd. */
OPDI_ALWAYS float opdi_tan_of(bool fused, float a) {
    double x = (double)a, t = OPDI_ROUNDED(double, OPDI_TRIG_FMA(fused, x, 0.63661977236758134308, OPDI_MAGIC_F64));
    double k = OPDI_MAGIC_F64 - t;
    uint64_t bits;
    memcpy(&bits, &t, sizeof bits);
    const uint32_t odd = (uint32_t)bits & 1u;
    const double rest = OPDI_TRIG_FMA(fused, k, 1.57079631090164184570, x);
    const double r = OPDI_TRIG_FMA(fused, k, 1.58932547735281966916e-8, rest), z = r * r;
    double p = OPDI_TRIG_FMA(fused, 0.0017914672010024635, z, -4.42024166083553499e-6);
    p = OPDI_TRIG_FMA(fused, p, z, 0.00442875607666278028);
    p = OPDI_TRIG_FMA(fused, p, z, 0.00860793261604007003);
    p = OPDI_TRIG_FMA(fused, p, z, 0.0219109335317343739);
    p = OPDI_TRIG_FMA(fused, p, z, 0.0539649923336653721);
    p = OPDI_TRIG_FMA(fused, p, z, 0.133333430200397371);
    p = OPDI_TRIG_FMA(fused, p, z, 0.333333332865134876);
    const float y = (float)OPDI_TRIG_FMA(fused, p, z * r, r);
    return opdi_select_f32(a == 0.0f, a, opdi_select_f32(odd != 0, -1.0f / opdi_select_f32(odd != 0, y, 1.0f), y));
}
OPDI_ALWAYS float opdi_tan1(int lv, float a) { return opdi_tan_of(lv > 2, a); }
OPDI_ALWAYS float opdi_tan_fused1(int lv, float a) { return opdi_tan_of(lv > 0, a); }
/* Returns atan(a).  For x = |a| <= 1, atan(x) = x + x^3 * P(x^2); for x > 1, atan(x) = pi/2 - atan(1/x). */
OPDI_ALWAYS float opdi_atan1(int lv, float a) {
    const uint32_t sign = opdi_bits(a) & 0x80000000u;
    const float x = opdi_float(opdi_bits(a) & 0x7fffffffu);
    const int large = x > 1.0f;
    const float t = opdi_select_f32(large, -1.0f, x) / opdi_select_f32(large, x, 1.0f), z = t * t;
    float p = OPDI_FMAF(lv, -0.00238699731f, z, 0.0135077714f);
    p = OPDI_FMAF(lv, p, z, -0.0358715389f);
    p = OPDI_FMAF(lv, p, z, 0.0625016944f);
    p = OPDI_FMAF(lv, p, z, -0.0865688043f);
    p = OPDI_FMAF(lv, p, z, 0.110337642f);
    p = OPDI_FMAF(lv, p, z, -0.142785687f);
    p = OPDI_FMAF(lv, p, z, 0.199997393f);
    p = OPDI_FMAF(lv, p, z, -0.333333317f);
    p = OPDI_FMAF(lv, p * z, t, t);
    p = opdi_select_f32(large, 1.57079637f + (p - 4.37113883e-8f), p);
    return opdi_float(opdi_bits(p) | sign);
}

/* OPDI_VMATH(name) defines opdi_vmath_NAME, the loops of the function `name` for each level (see opdi_cpu_level).  A
   loop computes out[i] = name(a[i]) for i < count, a multiple of OPDI_VSTEP; out may be a.  Each step computes as many
   elements as a vector has, in the array y, so that compilers see that the loop does not overwrite its inputs.  The
   functions are separate, so that a lean program contains only those that it uses.  OPDI_VMATH_EXP defines a function
   that has a loop of its own for AVX-512, opdi_exp_loop_NAME. */
typedef void (*opdi_vmath_loop)(int64_t count, float *out, const float *a);
typedef struct { float at[OPDI_VSTEP]; } opdi_vmath_step;
#define OPDI_VMATH_LOOP(at, name, level, lanes, target) \
    target static void opdi_vmath_##at##_##name(int64_t count, float *out, const float *a) { \
        enum { step = (int)sizeof(lanes) / 4 }; \
        for (int64_t i = 0; i < count; i += step) { \
            float y[step]; \
            for (int k = 0; k < step; k++) { y[k] = opdi_##name##1(level, a[i + k]); } \
            *(lanes *)(void *)(out + i) = *(const lanes *)(const void *)y; \
        } \
    }
#if defined(OPDI_X86)
#define OPDI_VMATH(name) \
    OPDI_VMATH_LOOP(plain, name, 0, opdi_vmath_step, ) OPDI_VMATH_LOOP(avx2, name, 1, OPDI_V_4_1, OPDI_AVX2) \
    OPDI_VMATH_LOOP(avx512, name, 2, opdi_v16f, OPDI_AVX512) \
    static const opdi_vmath_loop opdi_vmath_##name[3] = { \
        opdi_vmath_plain_##name, opdi_vmath_avx2_##name, opdi_vmath_avx512_##name};
#define OPDI_VMATH_EXP(name) \
    OPDI_VMATH_LOOP(plain, name, 0, opdi_vmath_step, ) OPDI_VMATH_LOOP(avx2, name, 1, OPDI_V_4_1, OPDI_AVX2) \
    static const opdi_vmath_loop opdi_vmath_##name[3] = { \
        opdi_vmath_plain_##name, opdi_vmath_avx2_##name, opdi_exp_loop_##name};
#elif defined(OPDI_VECTORS)
#define OPDI_VMATH(name) \
    OPDI_VMATH_LOOP(plain, name, 0, opdi_vmath_step, ) OPDI_VMATH_LOOP(avx2, name, 1, OPDI_V_4_1, OPDI_AVX2) \
    static const opdi_vmath_loop opdi_vmath_##name[2] = {opdi_vmath_plain_##name, opdi_vmath_avx2_##name};
#define OPDI_VMATH_EXP(name) OPDI_VMATH(name)
#else
#define OPDI_VMATH(name) \
    OPDI_VMATH_LOOP(plain, name, 0, opdi_vmath_step, ) \
    static const opdi_vmath_loop opdi_vmath_##name[1] = {opdi_vmath_plain_##name};
#define OPDI_VMATH_EXP(name) OPDI_VMATH(name)
#endif

/* Applies a function to `count` elements. */
static void opdi_vmath(const opdi_vmath_loop *loops, int64_t count, float *out, const float *a) {
    const opdi_vmath_loop loop = loops[opdi_cpu_level()];
    const int64_t whole = count & ~(int64_t)(OPDI_VSTEP - 1);
    if (whole) { loop(whole, out, a); }
    if (count > whole) {
        float x[OPDI_VSTEP] = {0}, y[OPDI_VSTEP];
        memcpy(x, a + whole, (size_t)(count - whole) * sizeof(float));
        loop(OPDI_VSTEP, y, x);
        memcpy(out + whole, y, (size_t)(count - whole) * sizeof(float));
    }
}

/* Returns the elements i to i + rows - 1 of a, followed by ones up to a multiple of 64 elements: a + i, or a copy of
   the elements if they are about to be overwritten, or too few.  rows: at most 256. */
static const float *opdi_vmath_part(int64_t rows, float copy[256], const float *out, const float *a, int64_t i) {
    if (out != a && rows % 64 == 0) { return a + i; }
    memcpy(copy, a + i, (size_t)rows * sizeof *copy);
    for (; rows % 64; rows++) { copy[rows] = 1.0f; }
    return copy;
}
/* The C library's functions of floats.  In the mode of same bits, this library's functions of doubles. */
static float opdi_sin_f32(float x) { return opdi_own_wanted() ? (float)opdi_sin_f64((double)x) : sinf(x); }
static float opdi_cos_f32(float x) { return opdi_own_wanted() ? (float)opdi_cos_f64((double)x) : cosf(x); }
OPD_UNUSED static float opdi_tan_f32(float x) { return opdi_own_wanted() ? (float)opdi_tan_f64((double)x) : tanf(x); }
/* Computes sin, cos or tan.  Elements that are too large for the range reduction are computed again by `again`. */
static void opdi_vtrig(const opdi_vmath_loop *loops, float (*again)(float), int64_t count, float *out, const float *a) {
    float copy[256];
    uint32_t masks[64];
    for (int k = 0; k < 64; k++) { masks[k] = 0x7fffffffu; }
    for (int64_t i = 0; i < count; i += 256) {
        const int64_t rows = OPDI_MIN(count - i, 256);
        const float *const x = opdi_vmath_part(rows, copy, out, a, i);
        opdi_vmath(loops, rows, out + i, x);
        if (opdi_vmath_most((rows + 63) & ~(int64_t)63, x, masks, 0) < 0x4d000000u) { continue; }
        for (int64_t k = 0; k < rows; k++) {
            if (!(fabsf(x[k]) < OPDI_TRIG_MAX)) { out[i + k] = again(x[k]); }
        }
    }
}

OPDI_VMATH(log_normal)
OPDI_VMATH(sin)
OPDI_VMATH(cos)
#if defined(OPDI_X86)
/* For each eighth of [sqrt(1/2), sqrt(2)), which is a range of bits, a number near the reciprocal of its middle, and
   minus the logarithm of this number, a multiple of 2^-16 within 3e-10.  In the two eighths beside the one with 1, the
   middle is nearer to 1, so that rounding r costs less. */
static const float opdi_log_inverses[8] __attribute__((aligned(32))) = {
    1.35295606f, 1.24604023f, 1.15763319f, 1.06408846f, 1.0f, 0.933725297f, 0.815242708f, 0.738908052f};
static const float opdi_log_middles[8] __attribute__((aligned(32))) = {
    -0.30229187f, -0.219970703f, -0.146377563f, -0.0621185303f, 0.0f, 0.068572998f, 0.204269409f, 0.302581787f};
/* Sets each lane to the number of the table `from` that has the index of the last three bits of `index`. */
#define OPDI_ASM_PICK(to, index, from) __asm__("vpermps {%2, %1, %0|%0, %1, %2}" : "=x"(to) : "x"(index), "x"(from))
/* Sets out[i] to log(a[i]) for i < count, a multiple of 8, where a[i] is positive, finite and not denormal; out may be
   a.  For a = m * 2^e, it is e * ln(2) + log(c) + log(1 + r), where 1 + r = m / c for a number c near the middle of m's
   eighth.  As |r| <= 0.088, the polynomial has half as many terms as in opdi_log_core.  The results have other bits. */
OPDI_AVX2 static void opdi_log_loop_avx2(int64_t count, float *out, const float *a) {
    const OPDI_V_4_1 zeros = {0}, inverses = *(const OPDI_V_4_1 *)(const void *)opdi_log_inverses;
    const OPDI_V_4_1 middles = *(const OPDI_V_4_1 *)(const void *)opdi_log_middles;
    for (int64_t i = 0; i < count; i += 8) {
        const opdi_v8u word = *(const opdi_v8u *)(const void *)(a + i), bits = word - 0x3f3504f3u;
        const opdi_v8u whole = bits & 0xff800000u, eighth = bits >> 20;
        OPDI_V_4_1 e, r = zeros - 1.0f, high, p = zeros - 0.168337867f, q = zeros + 0.201361775f;
        OPDI_ASM_FLOATS(e, whole);                /* e * 2^23 */
        OPDI_ASM_PICK(high, eighth, inverses);
        OPDI_ASM_FMA("ps", r, high, (OPDI_V_4_1)(word - whole));
        OPDI_ASM_PICK(high, eighth, middles);
        OPDI_ASM_FMA("ps", high, e, zeros + 0.693359375f / 8388608.0f);
        OPDI_ASM_FMA("ps", q, p, r);
        p = zeros - 0.249994099f;
        OPDI_ASM_FMA("ps", p, q, r);
        q = zeros + 0.33333075f;
        OPDI_ASM_FMA("ps", q, p, r);
        p = zeros - 0.5f;
        OPDI_ASM_FMA("ps", p, q, r);
        e *= -2.12194442e-4f / 8388608.0f;
        OPDI_ASM_FMA("ps", e, p, r * r);
        *(OPDI_V_4_1 *)(void *)(out + i) = high + (r + e);
    }
}
static const opdi_vmath_loop opdi_vmath_log[3] = {
    opdi_vmath_plain_log_normal, opdi_log_loop_avx2, opdi_vmath_avx512_log_normal};
#endif
/* Computes logarithms.  Elements for which opdi_log_normal1 is no logarithm are computed again. */
OPDI_INTERNAL void opdi_vlog(int64_t count, float *out, const float *a) {
    const opdi_vmath_loop *loops = opdi_vmath_log_normal;
    float copy[256];
    uint32_t masks[64];
#if defined(OPDI_X86)
    if (!opd_same_bits()) { loops = opdi_vmath_log; }
#endif
    for (int k = 0; k < 64; k++) { masks[k] = 0xffffffffu; }
    for (int64_t i = 0; i < count; i += 256) {
        const int64_t rows = OPDI_MIN(count - i, 256);
        const float *const x = opdi_vmath_part(rows, copy, out, a, i);
        opdi_vmath(loops, rows, out + i, x);
        if (opdi_vmath_most((rows + 63) & ~(int64_t)63, x, masks, 0x00800000u) < 0x7f000000u) { continue; }
        for (int64_t k = 0; k < rows; k++) {
            const bool tiny = opdi_bits(x[k]) - 1u < 0x007fffffu;
            out[i + k] = tiny ? opdi_log1(OPDI_ONCE, x[k]) : opdi_log_special(x[k], out[i + k]);
        }
    }
}
/* The logarithm, sine and cosine with the same bits at every level, of `count` numbers, a multiple of OPDI_VSTEP.
   Angles are at most 2^27.  opdi_log_normal1 computes a logarithm. */
OPDI_VMATH_LOOP(once, log_normal, OPDI_ONCE, opdi_vmath_step, )
OPDI_VMATH_LOOP(once, sin, OPDI_ONCE, opdi_vmath_step, )
OPDI_VMATH_LOOP(once, cos, OPDI_ONCE, opdi_vmath_step, )
OPDI_INTERNAL void opdi_vlog_same(int64_t count, float *out, const float *a) {
    (opdi_cpu_level() ? opdi_vmath_log_normal[opdi_cpu_level()] : opdi_vmath_once_log_normal)(count, out, a);
}
OPDI_INTERNAL void opdi_vsin_same(int64_t count, float *out, const float *a) {
    (opdi_cpu_level() ? opdi_vmath_sin[opdi_cpu_level()] : opdi_vmath_once_sin)(count, out, a);
}
OPDI_INTERNAL void opdi_vcos_same(int64_t count, float *out, const float *a) {
    (opdi_cpu_level() ? opdi_vmath_cos[opdi_cpu_level()] : opdi_vmath_once_cos)(count, out, a);
}
#if !defined(OPD_NO_OPERATORS)
#if defined(OPDI_NEON)
OPDI_VMATH_LOOP(plain, exp, 0, opdi_vmath_step, )
static const opdi_vmath_loop opdi_vmath_exp[2] = {opdi_vmath_plain_exp, opdi_exp_neon_f32};
#elif defined(OPDI_X86)
/* Returns e^x for |x| <= 87, with the bits of opdi_exp1: 2^n is added to the exponent. */
OPDI_ALWAYS float opdi_exp_normal1(int lv, float x) {
    const float t = OPDI_ROUNDED(float, OPDI_FMAF(lv, x, 1.44269504f, OPDI_MAGIC)), k = t - OPDI_MAGIC;
    const float r = OPDI_FMAF(lv, k, 2.12194442e-4f, OPDI_FMAF(lv, k, -0.693359375f, x));
    return opdi_float(opdi_bits(opdi_exp_near(lv, r)) + (opdi_bits(t) << 23));
}
/* Are the absolute values of `count` numbers, a multiple of 16, at most 87? */
OPDI_ALWAYS bool opdi_exp_all_normal(int64_t count, const float *a) {
    uint32_t beyond[16] = {0}, any = 0;
    for (int64_t i = 0; i < count; i += 16) {
        for (int k = 0; k < 16; k++) {
            beyond[k] |= (opdi_bits(a[i + k]) & 0x7fffffffu) + (0x7fffffffu - 0x42ae0000u);
        }
    }
    for (int k = 0; k < 16; k++) { any |= beyond[k]; }
    return any >> 31 == 0;
}
OPDI_VMATH_LOOP(plain, exp, 0, opdi_vmath_step, )
OPDI_VMATH_LOOP(avx2, exp, 1, OPDI_V_4_1, OPDI_AVX2)
OPDI_VMATH_LOOP(avx2, exp_normal, 1, OPDI_V_4_1, OPDI_AVX2)
/* Computes e^x: in blocks without very large or small results by a shorter formula. */
OPDI_AVX2 static void opdi_exp_loop_avx2(int64_t count, float *out, const float *a) {
    for (int64_t i = 0, rows; i < count; i += rows) {
        rows = OPDI_MIN(count - i, 128);
        if (opdi_exp_all_normal(rows, a + i)) { opdi_vmath_avx2_exp_normal(rows, out + i, a + i); }
        else { opdi_vmath_avx2_exp(rows, out + i, a + i); }
    }
}
static const opdi_vmath_loop opdi_vmath_exp[3] = {opdi_vmath_plain_exp, opdi_exp_loop_avx2, opdi_exp_loop_exp};
#else
OPDI_VMATH(exp)
#endif
OPDI_VMATH_EXP(exp2)
OPDI_VMATH_EXP(sigmoid)
OPDI_VMATH_EXP(phi)
OPDI_VMATH_EXP(gelu)
OPDI_VMATH_EXP(silu)
OPDI_VMATH(log1p)
OPDI_VMATH(log2)
OPDI_VMATH(log10)
OPDI_VMATH(expm1)
OPDI_VMATH(tanh)
OPDI_VMATH(erf)
OPDI_VMATH(erfc)
OPDI_VMATH(tan)
OPDI_VMATH(sin_fused)
OPDI_VMATH(cos_fused)
OPDI_VMATH(tan_fused)
OPDI_VMATH(atan)
OPDI_INTERNAL void opdi_vexp(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_exp, count, out, a); }
OPDI_INTERNAL void opdi_vexp2(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_exp2, count, out, a); }
OPDI_INTERNAL void opdi_vsigmoid(int64_t count, float *out, const float *a) {
    opdi_vmath(opdi_vmath_sigmoid, count, out, a);
}
OPDI_INTERNAL void opdi_vphi(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_phi, count, out, a); }
OPDI_INTERNAL void opdi_vgelu(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_gelu, count, out, a); }
OPDI_INTERNAL void opdi_vsilu(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_silu, count, out, a); }
OPDI_INTERNAL void opdi_vlog1p(int64_t count, float *out, const float *a) {
    opdi_vmath(opdi_vmath_log1p, count, out, a);
}
OPDI_INTERNAL void opdi_vlog2(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_log2, count, out, a); }
OPDI_INTERNAL void opdi_vlog10(int64_t count, float *out, const float *a) {
    opdi_vmath(opdi_vmath_log10, count, out, a);
}
OPDI_INTERNAL void opdi_vexpm1(int64_t count, float *out, const float *a) {
    opdi_vmath(opdi_vmath_expm1, count, out, a);
}
OPDI_INTERNAL void opdi_vtanh(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_tanh, count, out, a); }
OPDI_INTERNAL void opdi_verf(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_erf, count, out, a); }
OPDI_INTERNAL void opdi_verfc(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_erfc, count, out, a); }
OPDI_INTERNAL void opdi_vatan(int64_t count, float *out, const float *a) { opdi_vmath(opdi_vmath_atan, count, out, a); }
OPDI_INTERNAL void opdi_vsin(int64_t count, float *out, const float *a) {
    opdi_vtrig(opd_same_bits() ? opdi_vmath_sin : opdi_vmath_sin_fused, opdi_sin_f32, count, out, a);
}
OPDI_INTERNAL void opdi_vcos(int64_t count, float *out, const float *a) {
    opdi_vtrig(opd_same_bits() ? opdi_vmath_cos : opdi_vmath_cos_fused, opdi_cos_f32, count, out, a);
}
OPDI_INTERNAL void opdi_vtan(int64_t count, float *out, const float *a) {
    opdi_vtrig(opd_same_bits() ? opdi_vmath_tan : opdi_vmath_tan_fused, opdi_tan_f32, count, out, a);
}
#endif

/* The following functions compute square roots or, if `inverse` is true, their reciprocals.  They use assembly, because
   gcc does not vectorize sqrtf, which may have to set errno. */
#if defined(OPDI_VECTORS)
/* OPDI_ROOT_LANES computes one vector, from element i on.  OPDI_ROOTS defines the loop over the vectors,
   which returns the number of computed elements. */
#define OPDI_ROOT_LANES(type, letter) \
        typedef type lanes __attribute__((vector_size(OPDI_ROOT_BYTES), aligned(4), may_alias)); \
        lanes root = *(const lanes *)(const void *)(a + i); \
        OPDI_ASM_ROOT_OF(letter, root); \
        if (inverse) { root = (type)1 / root; } \
        *(lanes *)(void *)(out + i) = root;
#define OPDI_ROOT_BYTES sizeof(OPDI_V_4_1)
#define OPDI_ROOTS(name, type, letter) \
    OPDI_AVX2 static int64_t name(int64_t count, type *out, const type *a, bool inverse) { \
        const int64_t step = (int64_t)(OPDI_ROOT_BYTES / sizeof(type)); \
        int64_t i = 0; \
        for (; i + step <= count; i += step) { OPDI_ROOT_LANES(type, letter) } \
        return i; \
    }
OPDI_ROOTS(opdi_roots_avx2_f32, float, "s")
OPDI_ROOTS(opdi_roots_avx2_f64, double, "d")
#undef OPDI_ROOTS
#undef OPDI_ROOT_BYTES
#undef OPDI_ROOT_LANES
#endif
static void opdi_roots_f32(int64_t count, float *out, const float *a, bool inverse) {
    int64_t i = 0;
#if defined(OPDI_VECTORS)
    if (opdi_cpu_level() > 0) { i = opdi_roots_avx2_f32(count, out, a, inverse); }
#endif
    for (; i < count; i++) { out[i] = inverse ? 1 / sqrtf(a[i]) : sqrtf(a[i]); }
}
static void opdi_roots_f64(int64_t count, double *out, const double *a, bool inverse) {
    int64_t i = 0;
#if defined(OPDI_VECTORS)
    if (opdi_cpu_level() > 0) { i = opdi_roots_avx2_f64(count, out, a, inverse); }
#endif
    for (; i < count; i++) { out[i] = inverse ? 1 / sqrt(a[i]) : sqrt(a[i]); }
}
OPDI_INTERNAL void opdi_vsqrt(int64_t count, float *out, const float *a) { opdi_roots_f32(count, out, a, false); }
OPDI_INTERNAL void opdi_vrsqrt(int64_t count, float *out, const float *a) { opdi_roots_f32(count, out, a, true); }
OPDI_INTERNAL void opdi_vsqrt64(int64_t count, double *out, const double *a) { opdi_roots_f64(count, out, a, false); }
OPDI_INTERNAL void opdi_vrsqrt64(int64_t count, double *out, const double *a) { opdi_roots_f64(count, out, a, true); }
