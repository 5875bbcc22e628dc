#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:special   special functions
//
//  A function is plain C from double to double; for float32, the result is computed in double and rounded.  CUDA has
//  the same functions, from the same text.  One kernel runs all functions.  Where series and continued fractions
//  converge too slowly, polynomials are used, which tests/golden/make_special_tables.py fits at the zeros of Chebyshev
//  polynomials.  opdi_<name>[k] is the coefficient of power k of the argument, after its interval is mapped to [-1, 1].
//----------------------------------------------------------------------------------------------------------------------

#include "special_functions.typed.h"

//== erfinv and i1e in float32 =========================================================================================

/* Computes out = sum_k table[k] x^k for 64 float32 numbers x; out may be x. */
OPDI_ALWAYS void opdi_powers_body(int lv, const float *table, int count, const float x[64], float out[64]) {
    OPDI_IVDEP
    for (int i = 0; i < 64; i++) {
        float sum = table[count - 1];
        OPDI_UNROLL
        for (int k = count - 2; k >= 0; k--) { sum = OPDI_FMAF(lv, sum, x[i], table[k]); }
        out[i] = sum;
    }
}
OPDI_LOOPS_BEGIN
#define OPDI_SINGLES OPDI_IVDEP for (int i = 0; i < 64; i++)
/* Defines opdi_NAME_f32, which computes any number of float32 values, from opdi_NAME_body, which computes 64 values.
   The body is compiled once for each vector level of the processor: plain, AVX2 and AVX-512, or on ARM plain and
   NEON (named avx2). */
#if defined(OPDI_X86)
#define OPDI_SINGLES_LEVELS(name) \
    static void opdi_##name##_plain(const float *x, float *y) { opdi_##name##_body(0, x, y); } \
    OPDI_AVX2 static void opdi_##name##_avx2(const float *x, float *y) { opdi_##name##_body(1, x, y); } \
    OPDI_AVX512 static void opdi_##name##_avx512(const float *x, float *y) { opdi_##name##_body(2, x, y); } \
    OPDI_INTERNAL void opdi_##name##_f32(int64_t count, float *out, const float *x) { \
        const int level = opdi_cpu_level(); \
        opdi_singles(level == 2 ? opdi_##name##_avx512 : level ? opdi_##name##_avx2 : opdi_##name##_plain, count, \
                     out, x); \
    }
#elif defined(OPDI_VECTORS)
#define OPDI_SINGLES_LEVELS(name) \
    static void opdi_##name##_plain(const float *x, float *y) { opdi_##name##_body(0, x, y); } \
    static void opdi_##name##_avx2(const float *x, float *y) { opdi_##name##_body(1, x, y); } \
    OPDI_INTERNAL void opdi_##name##_f32(int64_t count, float *out, const float *x) { \
        opdi_singles(opdi_cpu_level() > 0 ? opdi_##name##_avx2 : opdi_##name##_plain, count, out, x); \
    }
#else
#define OPDI_SINGLES_LEVELS(name) \
    static void opdi_##name##_plain(const float *x, float *y) { opdi_##name##_body(0, x, y); } \
    OPDI_INTERNAL void opdi_##name##_f32(int64_t count, float *out, const float *x) { \
        opdi_singles(opdi_##name##_plain, count, out, x); \
    }
#endif
static void opdi_singles(void (*block)(const float *, float *), int64_t count, float *out, const float *x) {
    float last[64] = {0};
    int64_t at = 0;
    for (; at + 64 <= count; at += 64) { block(x + at, out + at); }
    if (at == count) { return; }
    memcpy(last, x + at, (size_t)(count - at) * sizeof *x);
    block(last, last);
    memcpy(out + at, last, (size_t)(count - at) * sizeof *x);
}
/* The polynomials of erfinv in float32, in w = -log(1 - y^2): opdi_erfinv_near for w < 6.25, opdi_erfinv_end for w
   up to 16, the largest w of a float32. */
static const float opdi_erfinv_near[13] = {
    1.65365456f, 0.750494308f, -0.0589225741f, -0.0226041078f, 0.0178084692f, -0.00414011734f, -0.00127229817f,
    0.00124254597f, -0.000262840004f, -0.000134937224f, 9.1566128e-05f, 1.52657908e-06f, -1.07413029e-05f};
static const float opdi_erfinv_end[11] = {
    3.1697878f, 0.735251327f, -0.0781391515f, 0.0159455874f, -0.00377007595f, 0.000812683585f, -8.23799792e-05f,
    -5.01943122e-05f, 5.45868015e-05f, -4.01840591e-05f, 1.38014456e-05f};
OPDI_ALWAYS void opdi_erfinv_body(int lv, const float *x, float *y) {
    float logs[64], low[64], high[64];
    OPDI_SINGLES { logs[i] = opdi_log1(lv, (1 - fabsf(x[i])) * (1 + fabsf(x[i]))); }
    OPDI_SINGLES {
        low[i] = logs[i] * -0.32f - 1;
        high[i] = (logs[i] + 11.125f) * -0.205128205f;
    }
    opdi_powers_body(lv, opdi_erfinv_near, 13, low, low);
    opdi_powers_body(lv, opdi_erfinv_end, 11, high, high);
    OPDI_SINGLES {
        const float size = fabsf(x[i]), inner = x[i] * opdi_select_f32(logs[i] > -6.25f, low[i], high[i]);
        y[i] = opdi_select_f32(size < 1, inner, x[i] * opdi_select_f32(size == 1, (float)OPDI_INF, (float)NAN));
    }
}
OPDI_SINGLES_LEVELS(erfinv)
/* i1e in float32, 64 numbers at a time.  opdi_i1e_near gives i1e(x) (1 + x) / x up to 8, and opdi_i1e_end gives
   i1e(x) sqrt(x) above 8. */
static const float opdi_i1e_near[19] = {
    0.223438549f, -0.126870843f, 0.0957906323f, -0.0701830839f, 0.0449070893f, -0.0213226979f, 0.00224642466f,
    0.0102792647f, -0.0162150143f, 0.0171526274f, -0.014513489f, 0.0100043006f, -0.00678064211f, 0.00530614986f,
    -0.00287974562f, 0.000430670149f, -0.000264059628f, 0.000658764207f, -0.000274592453f};
static const float opdi_i1e_end[7] = {
    0.389398459f, -0.00974958137f, -0.000219237125f, -1.50039655e-05f, -1.82569073e-06f, -4.21035016e-07f,
    -1.22732172e-07f};
OPDI_ALWAYS void opdi_i1e_body(int lv, const float *x, float *y) {
    float size[64], low[64], high[64], root[64];
    OPDI_SINGLES {
        size[i] = fabsf(x[i]);
        root[i] = opdi_select_f32(size[i] < 8, 8.0f, size[i]);
        low[i] = opdi_select_f32(size[i] < 8, size[i], 8.0f) * 0.25f - 1;
        high[i] = 16 / root[i] - 1;
    }
    opdi_vsqrt(64, root, root);
    opdi_powers_body(lv, opdi_i1e_near, 19, low, low);
    opdi_powers_body(lv, opdi_i1e_end, 7, high, high);
    OPDI_SINGLES {
        const uint32_t sign = opdi_bits(x[i]) & 0x80000000u;
        const float outer = opdi_float(opdi_bits(high[i] / root[i]) | sign);
        y[i] = opdi_select_f32(size[i] <= 8, x[i] * low[i] / (1 + size[i]), outer);
    }
    (void)lv;
}
OPDI_SINGLES_LEVELS(i1e)
OPDI_LOOPS_END
