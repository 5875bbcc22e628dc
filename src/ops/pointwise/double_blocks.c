#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:double_blocks float64 loops of formulas that call vector functions
//
//  These loops are like those of >>op:float_blocks: a vector function, such as opdi_vexp64, computes a part of the
//  formula for a block of 256 elements, and simple loops compute the rest.  So the results have the same bits on all
//  processors in the mode of same bits.  Error bounds in units in the last place: elu 1; atan, asinh, acosh, atanh,
//  hypot 2; sinh, cosh 2.5; asin, acos 3.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_DOUBLE_BLOCK = 256 };
/* Computes out[i] = formula(x[i], y[i]) for i < count, a multiple of 16.  `work` is scratch memory for as many
   elements. */
typedef void opdi_double_formula(int64_t count, double *out, const double *x, const double *y, double *work,
                                 const opdi_params *params);
/* Runs a formula of one or two inputs on all elements.  The inputs are copied first, because the result may overwrite
   them; the last block is filled up with zeros. */
static void opdi_double_blocks(opdi_double_formula *formula, int inputs, void *const *data, int64_t total,
                               const opdi_params *params) {
    double out[OPDI_DOUBLE_BLOCK], x[OPDI_DOUBLE_BLOCK], y[OPDI_DOUBLE_BLOCK], work[OPDI_DOUBLE_BLOCK];
    for (int64_t from = 0; from < total; from += OPDI_DOUBLE_BLOCK) {
        const int64_t count = OPDI_MIN(total - from, (int64_t)OPDI_DOUBLE_BLOCK), whole = (count + 15) / 16 * 16;
        memcpy(x, (const double *)data[1] + from, (size_t)count * sizeof *x);
        memset(x + count, 0, (size_t)(whole - count) * sizeof *x);
        if (inputs > 1) {
            memcpy(y, (const double *)data[2] + from, (size_t)count * sizeof *y);
            memset(y + count, 0, (size_t)(whole - count) * sizeof *y);
        }
        formula(whole, out, x, y, work, params);
        memcpy((double *)data[0] + from, out, (size_t)count * sizeof *out);
    }
}
/* Defines the loop opdi_f64_v<name>, whose formula is the body, which is compiled with and without AVX2. */
#define OPDI_DOUBLE_ARGS OPD_UNUSED int64_t count, OPD_UNUSED double *out, OPD_UNUSED const double *x, \
    OPD_UNUSED const double *y, OPD_UNUSED double *work, OPD_UNUSED const opdi_params *params
#if defined(OPDI_X86)
#define OPDI_DOUBLE_WIDE(name) \
    OPDI_AVX2 static void opdi_wide64_##name(OPDI_DOUBLE_ARGS) { opdi_block64_##name(count, out, x, y, work, params); }
#define OPDI_DOUBLE_OF(name) (opdi_cpu_level() > 0 ? opdi_wide64_##name : opdi_plain64_##name)
#else
#define OPDI_DOUBLE_WIDE(name)
#define OPDI_DOUBLE_OF(name) opdi_plain64_##name
#endif
#define OPDI_DOUBLE_FORMULA(name, inputs) \
    OPDI_ALWAYS void opdi_block64_##name(OPDI_DOUBLE_ARGS); \
    OPDI_DOUBLE_WIDE(name) \
    static void opdi_plain64_##name(OPDI_DOUBLE_ARGS) { opdi_block64_##name(count, out, x, y, work, params); } \
    OPDI_INTERNAL void opdi_f64_v##name(void *const *data, int64_t count, const opdi_params *params) { \
        opdi_double_blocks(OPDI_DOUBLE_OF(name), inputs, data, count, params); } \
    OPDI_ALWAYS void opdi_block64_##name(OPDI_DOUBLE_ARGS)

//== activations =======================================================================================================

OPDI_DOUBLE_FORMULA(silu, 1) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = -x[j])
    opdi_vexp64(count, work, work);
    OPDI_SIXTEENS(out[j] = x[j] / (1 + work[j]))
}
OPDI_DOUBLE_FORMULA(silu_backward, 2) {
    int64_t i;
    opdi_vsigmoid64(count, work, y);
    OPDI_SIXTEENS(out[j] = x[j] * (work[j] * (1 + y[j] * (1 - work[j]))))
}
/* gelu(x) = x * Phi(x): Phi is the normal distribution function. */
OPDI_DOUBLE_FORMULA(gelu, 1) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = x[j] * 0.70710678118654752440)
    opdi_verf64(count, work, work);
    OPDI_SIXTEENS(out[j] = 0.5 * x[j] * (1 + work[j]))
}
OPDI_DOUBLE_FORMULA(gelu_backward, 2) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = y[j] * 0.70710678118654752440)
    opdi_verf64(count, out, work);
    OPDI_SIXTEENS(work[j] = -0.5 * y[j] * y[j])
    opdi_vexp64(count, work, work);
    OPDI_SIXTEENS(out[j] = x[j] * (0.5 * (1 + out[j]) + y[j] * work[j] * 0.39894228040143267794))
}
/* Sets work to tanh(sqrt(2 / pi) * (x + 0.044715 x^3)). */
OPDI_ALWAYS void opdi_gelu_tanhs(int64_t count, double *work, const double *x) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = 0.79788456080286535588 * (x[j] + 0.044715 * x[j] * x[j] * x[j]))
    opdi_vtanh64(count, work, work);
}
OPDI_DOUBLE_FORMULA(gelu_tanh, 1) {
    int64_t i;
    opdi_gelu_tanhs(count, work, x);
    OPDI_SIXTEENS(out[j] = 0.5 * x[j] * (1 + work[j]))
}
OPDI_DOUBLE_FORMULA(gelu_tanh_backward, 2) {
    int64_t i;
    opdi_gelu_tanhs(count, work, y);
    OPDI_SIXTEENS(
        const double t = work[j]; const double inner = 0.79788456080286535588 * (1 + 3 * 0.044715 * y[j] * y[j]);
        out[j] = x[j] * (0.5 * (1 + t) + 0.5 * y[j] * (1 - t * t) * inner))
}
OPDI_DOUBLE_FORMULA(elu, 1) {
    const double a = params->f64[0], b = params->f64[1], c = params->f64[2];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f64(x[j] <= 0, x[j] * c, 0.0))
    opdi_vexpm164(count, work, work);             /* e^x - 1 */
    OPDI_SIXTEENS(out[j] = opdi_select_f64(x[j] <= 0, work[j] * a, x[j] * b))
}
OPDI_DOUBLE_FORMULA(elu_backward, 2) {
    const double a = params->f64[0], b = params->f64[1], c = params->f64[2];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f64(y[j] > 0, 0.0, y[j] * c))
    opdi_vexp64(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f64(y[j] > 0, x[j] * b, x[j] * c * a * work[j]))
}
OPDI_DOUBLE_FORMULA(softplus, 1) {
    const double a = params->f64[0], b = params->f64[1];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f64(x[j] * a > b, 0.0, x[j] * a))
    opdi_vexp64(count, work, work);
    opdi_vlog1p64(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f64(x[j] * a > b, x[j], work[j] / a))
}
OPDI_DOUBLE_FORMULA(softplus_backward, 2) {
    const double a = params->f64[0], b = params->f64[1];
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f64(y[j] * a > b, 0.0, y[j] * a))
    opdi_vexp64(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f64(y[j] * a > b, x[j], x[j] * work[j] / (work[j] + 1)))
}
/* Sets work to e^x, limited to e^40.  With n = e^x * (e^x + 2), tanh(log(1 + e^x)) is n / (n + 2), which is 1 for x >
   40. */
OPDI_ALWAYS void opdi_mish_powers_f64(int64_t count, double *work, const double *x) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = opdi_select_f64(x[j] > 40, 40.0, x[j]))
    opdi_vexp64(count, work, work);
}
OPDI_DOUBLE_FORMULA(mish, 1) {
    int64_t i;
    opdi_mish_powers_f64(count, work, x);
    OPDI_SIXTEENS(work[j] = work[j] * (work[j] + 2))
    OPDI_SIXTEENS(out[j] = x[j] * (work[j] / (work[j] + 2)))
}
/* The slope is n / (n + 2) + 4 y * e^y * (1 + e^y) / (n + 2)^2. */
OPDI_DOUBLE_FORMULA(mish_backward, 2) {
    int64_t i;
    opdi_mish_powers_f64(count, work, y);
    OPDI_SIXTEENS(
        const double n = work[j] * (work[j] + 2); const double part = 1 / (n + 2);
        const double tail = opdi_select_f64(y[j] > 40, 0.0, 4 * work[j] * part * ((1 + work[j]) * part));
        out[j] = x[j] * (n * part + y[j] * tail))
}

//== functions =========================================================================================================

/* Sets out to the larger number of x and y, and work to work * scale, or to 0 if both numbers are the same infinity. */
OPDI_ALWAYS void opdi_logaddexp_end(int64_t count, double *out, const double *x, const double *y, const double *work,
                                    double scale) {
    int64_t i;
    OPDI_SIXTEENS(
        const double most = opdi_select_f64((x[j] > y[j]) | (x[j] != x[j]), x[j], y[j]);
        out[j] = opdi_select_f64((x[j] == y[j]) & (fabs(x[j]) == HUGE_VAL), x[j], most + work[j] * scale))
}
OPDI_DOUBLE_FORMULA(logaddexp, 2) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = -fabs(x[j] - y[j]))
    opdi_vexp64(count, work, work);
    opdi_vlog1p64(count, work, work);
    opdi_logaddexp_end(count, out, x, y, work, 1.0);
}
OPDI_DOUBLE_FORMULA(logaddexp2, 2) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = -fabs(x[j] - y[j]))
    opdi_vexp264(count, work, work);
    opdi_vlog1p64(count, work, work);
    opdi_logaddexp_end(count, out, x, y, work, 1.44269504088896340736);
}
/* hypot(x, y) = large * sqrt(1 + (less / large)^2).  It is infinite if x or y is, even if the other one is NaN. */
OPDI_DOUBLE_FORMULA(hypot, 2) {
    int64_t i;
    OPDI_SIXTEENS(
        const double a = fabs(x[j]); const double b = fabs(y[j]);
        const double large = opdi_select_f64(a > b, a, b);
        const double ratio = opdi_select_f64(a > b, b, a) / opdi_select_f64(large == 0, 1.0, large);
        out[j] = large;
        work[j] = ratio * ratio + 1)
    opdi_vsqrt64(count, work, work);
    OPDI_SIXTEENS(
        const bool infinite = (fabs(x[j]) == HUGE_VAL) | (fabs(y[j]) == HUGE_VAL);
        out[j] = opdi_select_f64(infinite, HUGE_VAL, out[j] * work[j]))
}
/* asin(x) is the angle of the point (sqrt((1 - x) (1 + x)), x), and acos(x) the angle of the point (x, sqrt((1 - x) (1
   + x))). */
OPDI_DOUBLE_FORMULA(asin, 1) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = (1 - x[j]) * (1 + x[j]))
    opdi_vsqrt64(count, work, work);
    opdi_vatan264(count, out, x, work);
}
OPDI_DOUBLE_FORMULA(acos, 1) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = (1 - x[j]) * (1 + x[j]))
    opdi_vsqrt64(count, work, work);
    opdi_vatan264(count, out, work, x);
}
OPDI_DOUBLE_FORMULA(atan, 1) {
    int64_t i;
    OPDI_SIXTEENS(work[j] = 1)
    opdi_vatan264(count, out, x, work);
}
/* Sets out to |x| or, above 700, where e^|x| may overflow, to |x| / 2. */
OPDI_ALWAYS void opdi_halved(int64_t count, double *out, const double *x) {
    int64_t i;
    OPDI_SIXTEENS(const double size = fabs(x[j]); out[j] = opdi_select_f64(size > 700, size * 0.5, size))
}
/* sinh(x) = (e + e / (e + 1)) / 2 with e = e^|x| - 1, and the sign of x. */
OPDI_DOUBLE_FORMULA(sinh, 1) {
    int64_t i;
    opdi_halved(count, work, x);
    opdi_vexpm164(count, work, work);
    OPDI_SIXTEENS(
        const double usual = 0.5 * (work[j] + work[j] / (work[j] + 1));
        const double size = opdi_select_f64(fabs(x[j]) > 700, 0.5 * work[j] * work[j], usual);
        out[j] = opdi_double(opdi_bits64(size) | (opdi_bits64(x[j]) & 0x8000000000000000u)))
}
/* cosh(x) = (e + 1 / e) / 2 with e = e^|x|. */
OPDI_DOUBLE_FORMULA(cosh, 1) {
    int64_t i;
    opdi_halved(count, work, x);
    opdi_vexp64(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_select_f64(fabs(x[j]) > 700, 0.5 * work[j] * work[j], 0.5 * (work[j] + 1 / work[j])))
}
/* asinh(x) = log1p(t + t^2 / (1 + sqrt(1 + t^2))) with t = |x|, and the sign of x.  For t > 2^60, which may have no
   square, it is log1p(t) + log(2). */
OPDI_DOUBLE_FORMULA(asinh, 1) {
    int64_t i;
    OPDI_SIXTEENS(
        const double size = fabs(x[j]);
        work[j] = opdi_select_f64(size > 1152921504606846976.0, 0.0, size * size))
    OPDI_SIXTEENS(out[j] = work[j] + 1)
    opdi_vsqrt64(count, out, out);
    OPDI_SIXTEENS(work[j] = fabs(x[j]) + work[j] / (1 + out[j]))
    opdi_vlog1p64(count, out, work);
    OPDI_SIXTEENS(
        const double more = opdi_select_f64(fabs(x[j]) > 1152921504606846976.0, 0.69314718055994530942, 0.0);
        out[j] = opdi_double(opdi_bits64(out[j] + more) | (opdi_bits64(x[j]) & 0x8000000000000000u)))
}
/* acosh(x) = log1p(t + sqrt(t * (t + 2))) with t = x - 1.  For t > 2^60, it is log1p(t) + log(2). */
OPDI_DOUBLE_FORMULA(acosh, 1) {
    int64_t i;
    OPDI_SIXTEENS(
        const double t = x[j] - 1; const double square = t * (t + 2);
        work[j] = opdi_select_f64(t > 1152921504606846976.0, 0.0, opdi_select_f64(t < 0, -1.0, square)))
    opdi_vsqrt64(count, out, work);
    OPDI_SIXTEENS(work[j] = (x[j] - 1) + out[j])
    opdi_vlog1p64(count, out, work);
    OPDI_SIXTEENS(out[j] += opdi_select_f64(x[j] > 1152921504606846976.0, 0.69314718055994530942, 0.0))
}
/* atanh(x) = log1p(2 t / (1 - t)) / 2 with t = |x|, and the sign of x. */
OPDI_DOUBLE_FORMULA(atanh, 1) {
    int64_t i;
    OPDI_SIXTEENS(const double t = fabs(x[j]); work[j] = (t + t) / (1 - t))
    opdi_vlog1p64(count, work, work);
    OPDI_SIXTEENS(out[j] = opdi_double(opdi_bits64(0.5 * work[j]) | (opdi_bits64(x[j]) & 0x8000000000000000u)))
}
#undef OPDI_DOUBLE_FORMULA
#undef OPDI_DOUBLE_OF
#undef OPDI_DOUBLE_WIDE
#undef OPDI_DOUBLE_ARGS
