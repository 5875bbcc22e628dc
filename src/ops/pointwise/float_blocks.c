#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:float_blocks float32 loops of formulas that call vector functions
//
//  These loops compute blocks of 256 elements: a vector function, such as opdi_vexp, computes a part of the formula for
//  the whole block, and simple loops compute the rest.  The results are within 4 units in the last place, except near
//  the zeros of logaddexp, and where e^x is denormal.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_VBLOCK_LOOP(name) opdi_f32_v##name
#define OPDI_VBLOCK_VECTOR(name) opdi_v##name
#define OPDI_VBLOCK_NUMBER(i) params->f32[i]
#define OPDI_VBLOCK_BITS opdi_bits
#define OPDI_VBLOCK_OF opdi_float
#define OPDI_VBLOCK_SIGN 0x80000000u
#define OPDI_VBLOCK_MOST 80.0f
#define OPDI_VBLOCK_ONE 20.0f
#include "../../typed/f32.h"
#include "blocks.typed.h"
/* Sets out to asin(t), where t is |x|, or sqrt((1 - |x|) / 2) for |x| > 1/2.  asin(t) = t + t^3 * P(t^2); work is
   scratch memory, for t^2. */
OPDI_ALWAYS void opdi_asin_halves(int64_t count, float *out, const float *x, float *work) {
    int64_t i;
    OPDI_VBLOCK_EACH(
        const float size = opdi_abs_f32(x[j]);
        work[j] = opdi_select_f32(size > 0.5f, 0.5f - 0.5f * size, size * size))
    opdi_vsqrt(count, out, work);
    OPDI_VBLOCK_EACH(
        const float size = opdi_abs_f32(x[j]);
        const float t = opdi_select_f32(size > 0.5f, out[j], size);
        float p = 0.0422304622f * work[j] + 0.0241410341f;
        p = p * work[j] + 0.0454783357f;
        p = p * work[j] + 0.074952327f;
        p = p * work[j] + 0.166667541f;
        out[j] = p * work[j] * t + t)
}
OPDI_VBLOCK_FORMULA(asin, 1) {
    int64_t i;
    opdi_asin_halves(count, out, x, work);
    OPDI_VBLOCK_EACH(
        const float size = opdi_abs_f32(x[j]);
        const float most = 1.57079637f - (2.0f * out[j] + 4.37113883e-8f);
        const float y0 = opdi_select_f32(size > 0.5f, most, out[j]);
        out[j] = opdi_with_sign_f32(y0, x[j]))
}
OPDI_VBLOCK_FORMULA(acos, 1) {
    int64_t i;
    opdi_asin_halves(count, out, x, work);
    OPDI_VBLOCK_EACH(
        const float size = opdi_abs_f32(x[j]);
        const float sum = opdi_with_sign_f32(out[j], x[j]);
        const float angle = 1.57079637f - (sum + 4.37113883e-8f);
        const float most = opdi_select_f32(x[j] < 0.0f, 3.14159274f - (2.0f * out[j] + 8.74227766e-8f), 2.0f * out[j]);
        out[j] = opdi_select_f32(size > 0.5f, most, angle))
}
/* atan2(x, y): with t = less / large of the absolute values, the angle is atan(t) or pi / 2 - atan(t) in the first
   quadrant.  If y is negative, it is subtracted from pi.  It has the sign of x. */
OPDI_VBLOCK_FORMULA(atan2, 2) {
    int64_t i;
    OPDI_VBLOCK_EACH(
        const float a = opdi_abs_f32(x[j]); const float b = opdi_abs_f32(y[j]);
        const float large = opdi_select_f32(a > b, a, b); const float less = opdi_select_f32(a > b, b, a);
        const float t = less / opdi_select_f32(large == 0.0f, 1.0f, large);
        work[j] = opdi_select_f32((less == HUGE_VALF) & (large == HUGE_VALF), 1.0f, t))
    opdi_vatan(count, work, work);
    OPDI_VBLOCK_EACH(
        const float steep = 1.57079637f - (work[j] + 4.37113883e-8f);
        const float r = opdi_select_f32(opdi_abs_f32(x[j]) > opdi_abs_f32(y[j]), steep, work[j]);
        const float back = 3.14159274f - (r + 8.74227766e-8f);
        const float angle = opdi_select_f32((opdi_bits(y[j]) & 0x80000000u) != 0, back, r);
        const float whole = opdi_select_f32((x[j] != x[j]) | (y[j] != y[j]), NAN, angle);
        out[j] = opdi_with_sign_f32(whole, x[j]))
}
#include "../../typed/end.h"
#undef OPDI_VBLOCK_LOOP
#undef OPDI_VBLOCK_VECTOR
#undef OPDI_VBLOCK_NUMBER
#undef OPDI_VBLOCK_BITS
#undef OPDI_VBLOCK_OF
#undef OPDI_VBLOCK_SIGN
#undef OPDI_VBLOCK_MOST
#undef OPDI_VBLOCK_ONE
#undef OPDI_VBLOCK_ARGS
#undef OPDI_VBLOCK_WIDE
#undef OPDI_VBLOCK_RUN
#undef OPDI_VBLOCK_FORMULA
#undef OPDI_VBLOCK_EACH
