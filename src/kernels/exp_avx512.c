#include "kernels.h"

//== exponential functions for AVX-512 =================================================================================
//
//  The same formulas as for the other levels, with instructions that compilers do not choose for C: the smaller and the
//  larger of two numbers, and the product with a power of 2.  This takes half of the time.

#if defined(OPDI_X86) && !defined(OPD_NO_OPERATORS)
/* Returns a vector of sixteen times the same number. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_all_v16(float number) {
    const opdi_v16f zeros = {0};
    return number - zeros;
}
/* Returns x, limited to [least, most], or NaN if x is NaN. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_exp_limited_v16(opdi_v16f x, opdi_v16f least, opdi_v16f most) {
    __asm__("vminps {%0, %1, %0|%0, %1, %0}" : "+v"(x) : "v"(most));
    __asm__("vmaxps {%0, %1, %0|%0, %1, %0}" : "+v"(x) : "v"(least));
    return x;
}
/* Returns 2^count * e^r for |r| <= 0.35, with one rounding, as opdi_exp_scaled does. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_exp_scaled_v16(opdi_v16f r, opdi_v16f count) {
    const opdi_v16f square = r * r;
    opdi_v16f q = opdi_all_v16(0.00836892892f), sum = opdi_all_v16(0.041666206f);
    OPDI_ASM_FMA("ps", q, r, opdi_all_v16(0.00139505544f));
    OPDI_ASM_FMA("ps", sum, q, r);
    q = opdi_all_v16(0.166665182f);
    OPDI_ASM_FMA("ps", q, sum, r);
    sum = opdi_all_v16(0.5f);
    OPDI_ASM_FMA("ps", sum, q, r);
    OPDI_ASM_FMA("ps", r, sum, square);
    r += opdi_all_v16(1.0f);
    __asm__("vscalefps {%1, %0, %0|%0, %0, %1}" : "+v"(r) : "v"(count));
    return r;
}
/* Returns e^x: see opdi_exp_reduce. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_exp_v16(opdi_v16f x) {
    opdi_v16f t = opdi_all_v16(OPDI_MAGIC);
    x = opdi_exp_limited_v16(x, opdi_all_v16(-104.0f), opdi_all_v16(89.0f));
    OPDI_ASM_FMA("ps", t, x, opdi_all_v16(1.44269504f));
    const opdi_v16f count = t - opdi_all_v16(OPDI_MAGIC);
    OPDI_ASM_FMA("ps", x, count, opdi_all_v16(-0.693359375f));
    OPDI_ASM_FMA("ps", x, count, opdi_all_v16(2.12194442e-4f));
    return opdi_exp_scaled_v16(x, count);
}
/* Returns 2^x. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_exp2_v16(opdi_v16f x) {
    x = opdi_exp_limited_v16(x, opdi_all_v16(-151.0f), opdi_all_v16(129.0f));
    const opdi_v16f t = x + opdi_all_v16(OPDI_MAGIC), count = t - opdi_all_v16(OPDI_MAGIC);
    return opdi_exp_scaled_v16((x - count) * opdi_all_v16(0.693147181f), count);
}
/* Returns the sigmoid of x: with t = e^-|x|, it is 1 / (1 + t), or t / (1 + t) if x is not at least 0. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_sigmoid_v16(opdi_v16f x) {
    const opdi_v16u bits = (opdi_v16u)x;
    const opdi_v16f t = opdi_exp_v16((opdi_v16f)(bits | 0x80000000u));
    const opdi_v16u least = (opdi_v16u)(x >= opdi_all_v16(0.0f));
    const opdi_v16u top = (least & (opdi_v16u)opdi_all_v16(1.0f)) | (~least & (opdi_v16u)t);
    return (opdi_v16f)top / (opdi_all_v16(1.0f) + t);
}
/* Returns the polynomial of degree 5 in z with these coefficients, of which a belongs to the highest power. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_polynomial_v16(opdi_v16f z, float a, float b, float c, float d, float e,
                                                      float f) {
    opdi_v16f sum = opdi_all_v16(b), next = opdi_all_v16(c);
    OPDI_ASM_FMA("ps", sum, opdi_all_v16(a), z);
    OPDI_ASM_FMA("ps", next, sum, z);
    sum = opdi_all_v16(d);
    OPDI_ASM_FMA("ps", sum, next, z);
    next = opdi_all_v16(e);
    OPDI_ASM_FMA("ps", next, sum, z);
    sum = opdi_all_v16(f);
    OPDI_ASM_FMA("ps", sum, next, z);
    return sum;
}
/* Returns the normal distribution function of a: see opdi_phi1.  For x = 5.59999943, the quotient is exactly 1/2, so
   that the result is exactly 0 or 1 beyond the limits of x, without further comparisons. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16f opdi_phi_v16(opdi_v16f a) {
    const opdi_v16f x = opdi_exp_limited_v16(a, opdi_all_v16(-5.59999943f), opdi_all_v16(5.59999943f));
    const opdi_v16f z = x * x;
    const opdi_v16f p = opdi_polynomial_v16(z, 2.21612200e-8f, 6.34756685e-6f, 0.000173217964f, 0.00470335987f,
                                            0.0343191040f, 0.398942226f);
    const opdi_v16f q = opdi_polynomial_v16(z, 1.18001065e-6f, 7.48746640e-5f, 0.00190941968f, 0.0289064122f,
                                            0.252691010f, 1.0f);
    return p * x / q + opdi_all_v16(0.5f);
}
/* Loops of opdi_vmath: out[i] is the function of x = a[i] for i < count, a multiple of 16; out may be a. */
#define OPDI_EXP_EACH(value) \
    for (int64_t i = 0; i < count; i += 16) { \
        const opdi_v16f x = *(const opdi_v16f *)(const void *)(a + i); \
        *(opdi_v16f *)(void *)(out + i) = value; \
    }
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_loop_exp(int64_t count, float *out, const float *a) {
    OPDI_EXP_EACH(opdi_exp_v16(x))
}
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_loop_exp2(int64_t count, float *out, const float *a) {
    OPDI_EXP_EACH(opdi_exp2_v16(x))
}
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_loop_sigmoid(int64_t count, float *out, const float *a) {
    OPDI_EXP_EACH(opdi_sigmoid_v16(x))
}
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_loop_phi(int64_t count, float *out, const float *a) {
    OPDI_EXP_EACH(opdi_phi_v16(x))
}
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_loop_gelu(int64_t count, float *out, const float *a) {
    OPDI_EXP_EACH(x * opdi_phi_v16(x))
}
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_loop_silu(int64_t count, float *out, const float *a) {
    OPDI_EXP_EACH(x * opdi_sigmoid_v16(x))
}
#undef OPDI_EXP_EACH
/* Sets out[i] to e^(a[i] - less[i]), and adds it to sum[i], for i < count, a multiple of 16. */
OPDI_AVX512 OPDI_INTERNAL void opdi_exp_sums_avx512(int64_t count, float *out, const float *a, const float *less,
                                                    float *sum) {
    for (int64_t i = 0; i < count; i += 16) {
        const opdi_v16f x = *(const opdi_v16f *)(const void *)(a + i), y = *(const opdi_v16f *)(const void *)(less + i);
        const opdi_v16f power = opdi_exp_v16(x - y);
        *(opdi_v16f *)(void *)(out + i) = power;
        *(opdi_v16f *)(void *)(sum + i) += power;
    }
}
#if defined(OPDI_WORDS)
/* Sets out[i] to e^((x[i] - top) * k), rounded to bfloat16, for i < count.  Returns the sum of these powers before they
   are rounded.  out may begin where x begins.  The processor must have OPDI_HAS_PAIRS. */
OPD_UNUSED OPDI_AVX512 OPDI_INTERNAL float opdi_exp_narrow_avx512(int64_t count, uint16_t *out, const float *x,
                                                                  float top, float k) {
    const opdi_v16f less = opdi_all_v16(top), times = opdi_all_v16(k);
    opdi_v16f sum = {0};
    float lanes[16], last[16];
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        const opdi_v16f power = opdi_exp_v16((*(const opdi_v16f *)(const void *)(x + i) - less) * times);
        OPDI_ASM_NARROW_BF16(*(opdi_v16h *)(void *)(out + i), power);
        sum += power;
    }
    if (i < count) {                              /* e^-inf adds 0 to the sum */
        opdi_v16h narrow;
        for (int lane = 0; lane < 16; lane++) { last[lane] = i + lane < count ? x[i + lane] : -(float)OPDI_INF; }
        for (int lane = 0; lane < 16; lane++) { last[lane] = (last[lane] - top) * k; }
        const opdi_v16f power = opdi_exp_v16(*(const opdi_v16f *)(const void *)last);
        OPDI_ASM_NARROW_BF16(narrow, power);
        memcpy(out + i, &narrow, (size_t)(count - i) * 2);
        sum += power;
    }
    memcpy(lanes, &sum, sizeof lanes);
    for (int half = 8; half > 0; half /= 2) {
        for (int lane = 0; lane < half; lane++) { lanes[lane] += lanes[lane + half]; }
    }
    return lanes[0];
}
#endif
#endif
