#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:float_blocks float32 loops of formulas that call vector functions
//
//  These loops compute blocks of 256 elements: a vector function, such as opdi_vexp, computes a part of the formula for
//  the whole block, and simple loops compute the rest.  The results are within 4 units in the last place, except near
//  the zeros of logaddexp, and where e^x is denormal.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_FLOAT_BLOCK = 256 };
OPDI_ALWAYS float opdi_abs_f32(float x) { return opdi_float(opdi_bits(x) & 0x7fffffffu); }
/* Computes out[i] = formula(x[i], y[i]) for i < count, a multiple of 16.  `work` is scratch memory for as many
   elements. */
typedef void opdi_float_formula(int64_t count, float *out, const float *x, const float *y, float *work,
                                const opdi_params *params);
/* Runs a formula of one or two inputs on all elements.  The inputs are copied first, because the result may overwrite
   them; the last block is filled up with zeros. */
static void opdi_float_blocks(opdi_float_formula *formula, int inputs, void *const *data, int64_t total,
                              const opdi_params *params) {
    float out[OPDI_FLOAT_BLOCK], x[OPDI_FLOAT_BLOCK], y[OPDI_FLOAT_BLOCK], work[OPDI_FLOAT_BLOCK];
    for (int64_t from = 0; from < total; from += OPDI_FLOAT_BLOCK) {
        const int64_t count = OPDI_MIN(total - from, (int64_t)OPDI_FLOAT_BLOCK), whole = (count + 15) / 16 * 16;
        memcpy(x, (const float *)data[1] + from, (size_t)count * sizeof *x);
        memset(x + count, 0, (size_t)(whole - count) * sizeof *x);
        if (inputs > 1) {
            memcpy(y, (const float *)data[2] + from, (size_t)count * sizeof *y);
            memset(y + count, 0, (size_t)(whole - count) * sizeof *y);
        }
        formula(whole, out, x, y, work, params);
        memcpy((float *)data[0] + from, out, (size_t)count * sizeof *out);
    }
}
/* Defines the loop opdi_f32_v<name>, whose formula is the body, which is compiled with and without AVX2. */
#define OPDI_FLOAT_ARGS OPD_UNUSED int64_t count, OPD_UNUSED float *out, OPD_UNUSED const float *x, \
    OPD_UNUSED const float *y, OPD_UNUSED float *work, OPD_UNUSED const opdi_params *params
#if defined(OPDI_X86)
#define OPDI_FLOAT_WIDE(name) \
    OPDI_AVX2 static void opdi_wide_##name(OPDI_FLOAT_ARGS) { opdi_block_##name(count, out, x, y, work, params); }
#define OPDI_FLOAT_OF(name) (opdi_cpu_level() > 0 ? opdi_wide_##name : opdi_plain_##name)
#else
#define OPDI_FLOAT_WIDE(name)
#define OPDI_FLOAT_OF(name) opdi_plain_##name
#endif
#define OPDI_FLOAT_FORMULA(name, inputs) \
    OPDI_ALWAYS void opdi_block_##name(OPDI_FLOAT_ARGS); \
    OPDI_FLOAT_WIDE(name) \
    static void opdi_plain_##name(OPDI_FLOAT_ARGS) { opdi_block_##name(count, out, x, y, work, params); } \
    OPDI_INTERNAL void opdi_f32_v##name(void *const *data, int64_t count, const opdi_params *params) { \
        opdi_float_blocks(OPDI_FLOAT_OF(name), inputs, data, count, params); } \
    OPDI_ALWAYS void opdi_block_##name(OPDI_FLOAT_ARGS)

//== activations =======================================================================================================

OPDI_FLOAT_FORMULA(elu, 1) {
    const float a = params->f32[0], b = params->f32[1], c = params->f32[2];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f32(x[j] <= 0.0f, x[j] * c, 0.0f))
    opdi_vexpm1(count, work, work);            /* e^x - 1 */
    OPDI_SIXTEENS(out[j] = opdi_select_f32(x[j] <= 0.0f, work[j] * a, x[j] * b))
}
OPDI_FLOAT_FORMULA(elu_backward, 2) {
    const float a = params->f32[0], b = params->f32[1], c = params->f32[2];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f32(y[j] > 0.0f, 0.0f, y[j] * c))
    opdi_vexp(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f32(y[j] > 0.0f, x[j] * b, x[j] * c * a * work[j]))
}
OPDI_FLOAT_FORMULA(softplus, 1) {
    const float a = params->f32[0], b = params->f32[1];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f32(x[j] * a > b, 0.0f, x[j] * a))
    opdi_vexp(count, work, work);
    opdi_vlog1p(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f32(x[j] * a > b, x[j], work[j] / a))
}
OPDI_FLOAT_FORMULA(softplus_backward, 2) {
    const float a = params->f32[0], b = params->f32[1];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f32(y[j] * a > b, 0.0f, y[j] * a))
    opdi_vexp(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f32(y[j] * a > b, x[j], x[j] * work[j] / (work[j] + 1.0f)))
}
/* Sets work to e^x, limited to e^20.  With n = e^x * (e^x + 2), tanh(log(1 + e^x)) is n / (n + 2), which is 1 for x >
   20. */
OPDI_ALWAYS void opdi_mish_powers(int64_t count, float *work, const float *x) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f32(x[j] > 20.0f, 20.0f, x[j]))
    opdi_vexp(count, work, work);
}
OPDI_FLOAT_FORMULA(mish, 1) {
    int64_t i;
    opdi_mish_powers(count, work, x);
    OPDI_SIXTEENS(work[j] = work[j] * (work[j] + 2.0f))
    OPDI_SIXTEENS(out[j] = x[j] * (work[j] / (work[j] + 2.0f)))
}
/* The slope is n / (n + 2) + 4 y * e^y * (1 + e^y) / (n + 2)^2. */
OPDI_FLOAT_FORMULA(mish_backward, 2) {
    int64_t i;
    opdi_mish_powers(count, work, y);
    OPDI_SIXTEENS(
        const float n = work[j] * (work[j] + 2.0f); const float part = 1.0f / (n + 2.0f);
        const float tail = opdi_select_f32(y[j] > 20.0f, 0.0f, 4.0f * work[j] * part * ((1.0f + work[j]) * part));
        out[j] = x[j] * (n * part + y[j] * tail))
}

//== functions =========================================================================================================

OPDI_FLOAT_FORMULA(logaddexp, 2) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = -opdi_abs_f32(x[j] - y[j]))
    opdi_vexp(count, work, work);
    opdi_vlog1p(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f32((x[j] > y[j]) | (x[j] != x[j]), x[j], y[j]))
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        out[j] = opdi_select_f32((x[j] == y[j]) & (size == HUGE_VALF), x[j], out[j] + work[j]))
}
/* hypot(x, y) = large * sqrt(1 + (less / large)^2).  It is infinite if x or y is, even if the other one is NaN. */
OPDI_FLOAT_FORMULA(hypot, 2) {
    int64_t i;
    OPDI_SIXTEENS(
        const float a = opdi_abs_f32(x[j]); const float b = opdi_abs_f32(y[j]);
        const float large = opdi_select_f32(a > b, a, b);
        const float ratio = opdi_select_f32(a > b, b, a) / opdi_select_f32(large == 0.0f, 1.0f, large);
        out[j] = large;
        work[j] = ratio * ratio + 1.0f)
    opdi_vsqrt(count, work, work);
    OPDI_SIXTEENS(
        const float a = opdi_abs_f32(x[j]); const float b = opdi_abs_f32(y[j]);
        out[j] = opdi_select_f32((a == HUGE_VALF) | (b == HUGE_VALF), HUGE_VALF, out[j] * work[j]))
}
/* Sets out to asin(t), where t is |x|, or sqrt((1 - |x|) / 2) for |x| > 1/2.  asin(t) = t + t^3 * P(t^2); work is
   scratch memory, for t^2. */
OPDI_ALWAYS void opdi_asin_halves(int64_t count, float *out, const float *x, float *work) {
    int64_t i;
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        work[j] = opdi_select_f32(size > 0.5f, 0.5f - 0.5f * size, size * size))
    opdi_vsqrt(count, out, work);
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        const float t = opdi_select_f32(size > 0.5f, out[j], size);
        float p = 0.0422304622f * work[j] + 0.0241410341f;
        p = p * work[j] + 0.0454783357f;
        p = p * work[j] + 0.074952327f;
        p = p * work[j] + 0.166667541f;
        out[j] = p * work[j] * t + t)
}
OPDI_FLOAT_FORMULA(asin, 1) {
    int64_t i;
    opdi_asin_halves(count, out, x, work);
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        const float most = 1.57079637f - (2.0f * out[j] + 4.37113883e-8f);
        const float y0 = opdi_select_f32(size > 0.5f, most, out[j]);
        out[j] = opdi_float(opdi_bits(y0) | (opdi_bits(x[j]) & 0x80000000u)))
}
OPDI_FLOAT_FORMULA(acos, 1) {
    int64_t i;
    opdi_asin_halves(count, out, x, work);
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        const float sum = opdi_float(opdi_bits(out[j]) | (opdi_bits(x[j]) & 0x80000000u));
        const float angle = 1.57079637f - (sum + 4.37113883e-8f);
        const float most = opdi_select_f32(x[j] < 0.0f, 3.14159274f - (2.0f * out[j] + 8.74227766e-8f), 2.0f * out[j]);
        out[j] = opdi_select_f32(size > 0.5f, most, angle))
}
/* asinh(x) = log1p(t + t^2 / (1 + sqrt(1 + t^2))) with t = |x|, and the sign of x.  For t > 2^60, which may have no
   square, it is log1p(t) + log(2). */
OPDI_FLOAT_FORMULA(asinh, 1) {
    int64_t i;
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        work[j] = opdi_select_f32(size > 1152921504606846976.0f, 0.0f, size * size))
    OPDI_SIXTEENS(out[j] = work[j] + 1.0f)
    opdi_vsqrt(count, out, out);
    OPDI_SIXTEENS(work[j] = opdi_abs_f32(x[j]) + work[j] / (1.0f + out[j]))
    opdi_vlog1p(count, out, work);
    OPDI_SIXTEENS(
        const float more = opdi_select_f32(opdi_abs_f32(x[j]) > 1152921504606846976.0f, 0.693147182f, 0.0f);
        out[j] = opdi_float(opdi_bits(out[j] + more) | (opdi_bits(x[j]) & 0x80000000u)))
}
/* sinh(x) = (e + e / (e + 1)) / 2 with e = e^|x| - 1, and the sign of x.  For |x| > 80, e^(|x| / 2) is squared, because
   e^|x| may overflow. */
OPDI_FLOAT_FORMULA(sinh, 1) {
    int64_t i;
    OPDI_SIXTEENS(
        const float size = opdi_abs_f32(x[j]);
        work[j] = opdi_select_f32(size > 80.0f, size * 0.5f, size))
    opdi_vexpm1(count, work, work);
    OPDI_SIXTEENS(
        const float usual = 0.5f * (work[j] + work[j] / (work[j] + 1.0f));
        const float square = 0.5f * work[j] * work[j];
        const float size = opdi_select_f32(opdi_abs_f32(x[j]) > 80.0f, square, usual);
        out[j] = opdi_float(opdi_bits(size) | (opdi_bits(x[j]) & 0x80000000u)))
}
/* atan2(x, y): with t = less / large of the absolute values, the angle is atan(t) or pi / 2 - atan(t) in the first
   quadrant.  If y is negative, it is subtracted from pi.  It has the sign of x. */
OPDI_FLOAT_FORMULA(atan2, 2) {
    int64_t i;
    OPDI_SIXTEENS(
        const float a = opdi_abs_f32(x[j]); const float b = opdi_abs_f32(y[j]);
        const float large = opdi_select_f32(a > b, a, b); const float less = opdi_select_f32(a > b, b, a);
        const float t = less / opdi_select_f32(large == 0.0f, 1.0f, large);
        work[j] = opdi_select_f32((less == HUGE_VALF) & (large == HUGE_VALF), 1.0f, t))
    opdi_vatan(count, work, work);
    OPDI_SIXTEENS(
        const float steep = 1.57079637f - (work[j] + 4.37113883e-8f);
        const float r = opdi_select_f32(opdi_abs_f32(x[j]) > opdi_abs_f32(y[j]), steep, work[j]);
        const float back = 3.14159274f - (r + 8.74227766e-8f);
        const float angle = opdi_select_f32((opdi_bits(y[j]) & 0x80000000u) != 0, back, r);
        const float whole = opdi_select_f32((x[j] != x[j]) | (y[j] != y[j]), NAN, angle);
        out[j] = opdi_float(opdi_bits(whole) | (opdi_bits(x[j]) & 0x80000000u)))
}
#undef OPDI_FLOAT_FORMULA
#undef OPDI_FLOAT_OF
#undef OPDI_FLOAT_WIDE
#undef OPDI_FLOAT_ARGS
