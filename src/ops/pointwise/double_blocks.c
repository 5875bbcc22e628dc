#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:double_blocks float64 loops of formulas that call vector functions
//
//  These loops are like those of >>op:float_blocks: a vector function, such as opdi_vexp64, computes a part of the
//  formula for a block of 256 elements, and simple loops compute the rest.  So the results have the same bits on all
//  processors in the mode of same bits.  Error bounds in units in the last place: elu 1; atan, asinh, acosh, atanh,
//  hypot 2; sinh, cosh 2.5; asin, acos 3.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_VBLOCK_LOOP(name) opdi_f64_v##name
#define OPDI_VBLOCK_VECTOR(name) opdi_v##name##64
#define OPDI_VBLOCK_NUMBER(i) params->f64[i]
#define OPDI_VBLOCK_BITS opdi_bits64
#define OPDI_VBLOCK_OF opdi_double
#define OPDI_VBLOCK_SIGN 0x8000000000000000u
#define OPDI_VBLOCK_MOST 700.0
#define OPDI_VBLOCK_ONE 40.0
#include "../../typed/f64.h"
#include "blocks.typed.h"

//== activations =======================================================================================================

OPDI_VBLOCK_FORMULA(silu, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = -x[j])
    opdi_vexp64(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = x[j] / (1 + work[j]))
}
OPDI_VBLOCK_FORMULA(silu_backward, 2) {
    int64_t i;
    opdi_vsigmoid64(count, work, y);
    OPDI_VBLOCK_EACH(out[j] = x[j] * (work[j] * (1 + y[j] * (1 - work[j]))))
}
OPDI_INTERNAL void opdi_f64_vgelu(void *const *data, int64_t count, const opdi_params *params) {
    opdi_vgelu64(count, (double *)data[0], (const double *)data[1]);
    (void)params;
}
OPDI_VBLOCK_FORMULA(gelu_backward, 2) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = y[j] * 0.70710678118654752440)
    opdi_verf64(count, out, work);
    OPDI_VBLOCK_EACH(work[j] = -0.5 * y[j] * y[j])
    opdi_vexp64(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = x[j] * (0.5 * (1 + out[j]) + y[j] * work[j] * 0.39894228040143267794))
}
/* Sets work to tanh(sqrt(2 / pi) * (x + 0.044715 x^3)). */
OPDI_ALWAYS void opdi_gelu_tanhs(int64_t count, double *work, const double *x) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = 0.79788456080286535588 * (x[j] + 0.044715 * x[j] * x[j] * x[j]))
    opdi_vtanh64(count, work, work);
}
OPDI_VBLOCK_FORMULA(gelu_tanh, 1) {
    int64_t i;
    opdi_gelu_tanhs(count, work, x);
    OPDI_VBLOCK_EACH(out[j] = 0.5 * x[j] * (1 + work[j]))
}
OPDI_VBLOCK_FORMULA(gelu_tanh_backward, 2) {
    int64_t i;
    opdi_gelu_tanhs(count, work, y);
    OPDI_VBLOCK_EACH(
        const double t = work[j]; const double inner = 0.79788456080286535588 * (1 + 3 * 0.044715 * y[j] * y[j]);
        out[j] = x[j] * (0.5 * (1 + t) + 0.5 * y[j] * (1 - t * t) * inner))
}
//== functions =========================================================================================================

OPDI_VBLOCK_FORMULA(logaddexp2, 2) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = -fabs(x[j] - y[j]))
    opdi_vexp264(count, work, work);
    opdi_vlog1p64(count, work, work);
    opdi_logaddexp_end_f64(count, out, x, y, work, 1.44269504088896340736);
}
/* asin(x) is the angle of the point (sqrt((1 - x) (1 + x)), x), and acos(x) the angle of the point (x, sqrt((1 - x) (1
   + x))). */
OPDI_VBLOCK_FORMULA(asin, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = (1 - x[j]) * (1 + x[j]))
    opdi_vsqrt64(count, work, work);
    opdi_vatan264(count, out, x, work);
}
OPDI_VBLOCK_FORMULA(acos, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = (1 - x[j]) * (1 + x[j]))
    opdi_vsqrt64(count, work, work);
    opdi_vatan264(count, out, work, x);
}
OPDI_VBLOCK_FORMULA(atan, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = 1)
    opdi_vatan264(count, out, x, work);
}
/* cosh(x) = (e + 1 / e) / 2 with e = e^|x|, or with the square of e^(|x| / 2) as in sinh. */
OPDI_VBLOCK_FORMULA(cosh, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(const double size = fabs(x[j]); work[j] = opdi_select_f64(size > 700, size * 0.5, size))
    opdi_vexp64((count + 15) & ~(int64_t)15, work, work);      /* also of the zeros behind them, to divide by no 0 */
    OPDI_VBLOCK_EACH(out[j] = opdi_select_f64(fabs(x[j]) > 700, 0.5 * work[j] * work[j], 0.5 * (work[j] + 1 / work[j])))
}
/* acosh(x) = log1p(t + sqrt(t * (t + 2))) with t = x - 1.  For t > 2^60, it is log1p(t) + log(2). */
OPDI_VBLOCK_FORMULA(acosh, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(
        const double t = x[j] - 1; const double square = t * (t + 2);
        work[j] = opdi_select_f64(t > 1152921504606846976.0, 0.0, opdi_select_f64(t < 0, -1.0, square)))
    opdi_vsqrt64(count, out, work);
    OPDI_VBLOCK_EACH(work[j] = (x[j] - 1) + out[j])
    opdi_vlog1p64(count, out, work);
    OPDI_VBLOCK_EACH(out[j] += opdi_select_f64(x[j] > 1152921504606846976.0, 0.69314718055994530942, 0.0))
}
/* atanh(x) = log1p(2 t / (1 - t)) / 2 with t = |x|, and the sign of x. */
OPDI_VBLOCK_FORMULA(atanh, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(const double t = fabs(x[j]); work[j] = (t + t) / (1 - t))
    opdi_vlog1p64(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = opdi_with_sign_f64(0.5 * work[j], x[j]))
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
