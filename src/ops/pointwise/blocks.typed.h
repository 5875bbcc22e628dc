/* Formulas that call vector functions, and the function that runs such formulas block by block, for float and double.
   The file that includes this text has defined, for its dtype:
     OPDI_VBLOCK_LOOP(name)    the name of the loop of a formula
     OPDI_VBLOCK_VECTOR(name)  the name of a vector function
     OPDI_VBLOCK_NUMBER(i)     number i of params
     OPDI_VBLOCK_BITS(x), OPDI_VBLOCK_OF(bits), OPDI_VBLOCK_SIGN: the bits of a number, and back; the bit of the sign
     OPDI_VBLOCK_MOST          beyond this x, e^x might overflow
     OPDI_VBLOCK_ONE           tanh(log(1 + e^x)) is 1 beyond this x. */

/* Vector functions compute a multiple of block_step elements, which is two vectors of AVX2. */
enum { OPDI_TYPED(block_size) = 256, OPDI_TYPED(block_step) = 64 / (int)sizeof(OPDI_T) };
/* Runs the statement for each j < count, and on to the next multiple of 16. */
#define OPDI_VBLOCK_EACH(statement) OPDI_SIXTEENS_WHILE(i < count, statement)
OPDI_ALWAYS OPDI_T OPDI_TYPED(abs)(OPDI_T x) { return OPDI_VBLOCK_OF(OPDI_VBLOCK_BITS(x) & ~OPDI_VBLOCK_SIGN); }
/* Returns `size`, which is not negative, with the sign of x. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(with_sign)(OPDI_T size, OPDI_T x) {
    return OPDI_VBLOCK_OF(OPDI_VBLOCK_BITS(size) | (OPDI_VBLOCK_BITS(x) & OPDI_VBLOCK_SIGN));
}
/* Computes out[i] = formula(x[i], y[i]) for i < count, a multiple of block_step.  `work` is scratch memory for as many
   elements.  Behind them, x, y, out and work have numbers up to the next multiple of 16. */
typedef void OPDI_TYPED(block_formula)(int64_t count, OPDI_T *out, const OPDI_T *x, const OPDI_T *y, OPDI_T *work,
                                       const opdi_params *params);
/* Runs a formula of one or two inputs on all elements.  The inputs are copied first, because the result may overwrite
   them.  The last block is filled up with its first number, which raises the same floating-point exceptions again, and
   with zeros. */
static void OPDI_TYPED(blocks)(OPDI_TYPED(block_formula) *formula, int inputs, void *const *data, int64_t total,
                               const opdi_params *params) {
    enum { SIZE = OPDI_TYPED(block_size), STEP = OPDI_TYPED(block_step) };
    OPDI_T out[SIZE], x[SIZE], y[SIZE], work[SIZE];
    for (int64_t from = 0; from < total; from += SIZE) {
        const int64_t count = OPDI_MIN(total - from, (int64_t)SIZE), whole = (count + STEP - 1) / STEP * STEP;
        const size_t rest = (size_t)((count + 15) / 16 * 16 - count) * sizeof *x;
        memcpy(x, (const OPDI_T *)data[1] + from, (size_t)count * sizeof *x);
        memset(x + count, 0, rest);
        for (int64_t i = count; i < whole; i++) { x[i] = x[0]; }
        if (inputs > 1) {
            memcpy(y, (const OPDI_T *)data[2] + from, (size_t)count * sizeof *y);
            memset(y + count, 0, rest);
            for (int64_t i = count; i < whole; i++) { y[i] = y[0]; }
        }
        if (whole % 16) {
            memset(out + whole, 0, STEP * sizeof *out);
            memset(work + whole, 0, STEP * sizeof *work);
        }
        formula(whole, out, x, y, work, params);
        memcpy((OPDI_T *)data[0] + from, out, (size_t)count * sizeof *out);
    }
}
/* Defines the loop of the formula that follows as a body, which is compiled with and without AVX2. */
#define OPDI_VBLOCK_ARGS OPD_UNUSED int64_t count, OPD_UNUSED OPDI_T *out, OPD_UNUSED const OPDI_T *x, \
    OPD_UNUSED const OPDI_T *y, OPD_UNUSED OPDI_T *work, OPD_UNUSED const opdi_params *params
#if defined(OPDI_X86)
#define OPDI_VBLOCK_WIDE(name) OPDI_AVX2 static void OPDI_TYPED(wide_##name)(OPDI_VBLOCK_ARGS) { \
        OPDI_TYPED(block_##name)(count, out, x, y, work, params); }
#define OPDI_VBLOCK_RUN(name) (opdi_cpu_level() > 0 ? OPDI_TYPED(wide_##name) : OPDI_TYPED(plain_##name))
#else
#define OPDI_VBLOCK_WIDE(name)
#define OPDI_VBLOCK_RUN(name) OPDI_TYPED(plain_##name)
#endif
#define OPDI_VBLOCK_FORMULA(name, inputs) \
    OPDI_ALWAYS void OPDI_TYPED(block_##name)(OPDI_VBLOCK_ARGS); \
    OPDI_VBLOCK_WIDE(name) \
    static void OPDI_TYPED(plain_##name)(OPDI_VBLOCK_ARGS) { \
        OPDI_TYPED(block_##name)(count, out, x, y, work, params); } \
    OPDI_INTERNAL void OPDI_VBLOCK_LOOP(name)(void *const *data, int64_t count, const opdi_params *params) { \
        OPDI_TYPED(blocks)(OPDI_VBLOCK_RUN(name), inputs, data, count, params); } \
    OPDI_ALWAYS void OPDI_TYPED(block_##name)(OPDI_VBLOCK_ARGS)

//== activations =======================================================================================================

OPDI_VBLOCK_FORMULA(elu, 1) {
    const OPDI_T a = OPDI_VBLOCK_NUMBER(0), b = OPDI_VBLOCK_NUMBER(1), c = OPDI_VBLOCK_NUMBER(2);
    OPDI_BITS other = count < 64 ? 1 : 0;             /* is there a number that is not positive? */
    int64_t i;
    if (!other) { OPDI_VBLOCK_EACH(other |= x[j] > 0 ? 0 : 1) }
    if (!other) {
        OPDI_VBLOCK_EACH(out[j] = x[j] * b)
        return;
    }
    OPDI_VBLOCK_EACH(work[j] = OPDI_TYPED(select)(x[j] <= 0, x[j] * c, 0))
    OPDI_VBLOCK_VECTOR(expm1)(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = OPDI_TYPED(select)(x[j] <= 0, work[j] * a, x[j] * b))
}
OPDI_VBLOCK_FORMULA(elu_backward, 2) {
    const OPDI_T a = OPDI_VBLOCK_NUMBER(0), b = OPDI_VBLOCK_NUMBER(1), c = OPDI_VBLOCK_NUMBER(2);
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = OPDI_TYPED(select)(y[j] > 0, 0, y[j] * c))
    OPDI_VBLOCK_VECTOR(exp)(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = OPDI_TYPED(select)(y[j] > 0, x[j] * b, x[j] * c * a * work[j]))
}
OPDI_VBLOCK_FORMULA(softplus, 1) {
    const OPDI_T a = OPDI_VBLOCK_NUMBER(0), b = OPDI_VBLOCK_NUMBER(1);
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = OPDI_TYPED(select)(x[j] * a > b, 0, x[j] * a))
    OPDI_VBLOCK_VECTOR(exp)(count, work, work);
    OPDI_VBLOCK_VECTOR(log1p)(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = OPDI_TYPED(select)(x[j] * a > b, x[j], work[j] / a))
}
OPDI_VBLOCK_FORMULA(softplus_backward, 2) {
    const OPDI_T a = OPDI_VBLOCK_NUMBER(0), b = OPDI_VBLOCK_NUMBER(1);
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = OPDI_TYPED(select)(y[j] * a > b, 0, y[j] * a))
    OPDI_VBLOCK_VECTOR(exp)(count, work, work);
    OPDI_VBLOCK_EACH(out[j] = OPDI_TYPED(select)(y[j] * a > b, x[j], x[j] * work[j] / (work[j] + 1)))
}
/* Sets work to e^x, for x up to OPDI_VBLOCK_ONE.  With n = e^x * (e^x + 2), tanh(log(1 + e^x)) is n / (n + 2). */
OPDI_ALWAYS void OPDI_TYPED(mish_powers)(int64_t count, OPDI_T *work, const OPDI_T *x) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = OPDI_TYPED(select)(x[j] > OPDI_VBLOCK_ONE, OPDI_VBLOCK_ONE, x[j]))
    OPDI_VBLOCK_VECTOR(exp)(count, work, work);
}
OPDI_VBLOCK_FORMULA(mish, 1) {
    int64_t i;
    OPDI_TYPED(mish_powers)(count, work, x);
    OPDI_VBLOCK_EACH(work[j] = work[j] * (work[j] + 2))
    OPDI_VBLOCK_EACH(out[j] = x[j] * (work[j] / (work[j] + 2)))
}
/* The slope is n / (n + 2) + 4 y * e^y * (1 + e^y) / (n + 2)^2. */
OPDI_VBLOCK_FORMULA(mish_backward, 2) {
    int64_t i;
    OPDI_TYPED(mish_powers)(count, work, y);
    OPDI_VBLOCK_EACH(
        const OPDI_T n = work[j] * (work[j] + 2); const OPDI_T part = 1 / (n + 2);
        const OPDI_T tail = OPDI_TYPED(select)(y[j] > OPDI_VBLOCK_ONE, 0, 4 * work[j] * part * ((1 + work[j]) * part));
        out[j] = x[j] * (n * part + y[j] * tail))
}

//== functions =========================================================================================================

/* Sets out to the larger number of x and y plus work * scale, or to x if both numbers are the same infinity. */
OPDI_ALWAYS void OPDI_TYPED(logaddexp_end)(int64_t count, OPDI_T *out, const OPDI_T *x, const OPDI_T *y,
                                           const OPDI_T *work, OPDI_T scale) {
    int64_t i;
    OPDI_VBLOCK_EACH(
        const OPDI_T most = OPDI_TYPED(select)((x[j] > y[j]) | (x[j] != x[j]), x[j], y[j]);
        const bool same = (x[j] == y[j]) & (OPDI_TYPED(abs)(x[j]) == (OPDI_T)HUGE_VAL);
        out[j] = OPDI_TYPED(select)(same, x[j], most + work[j] * scale))
}
OPDI_VBLOCK_FORMULA(logaddexp, 2) {
    int64_t i;
    OPDI_VBLOCK_EACH(work[j] = -OPDI_TYPED(abs)(x[j] - y[j]))
    OPDI_VBLOCK_VECTOR(exp)(count, work, work);
    OPDI_VBLOCK_VECTOR(log1p)(count, work, work);
    OPDI_TYPED(logaddexp_end)(count, out, x, y, work, 1);
}
/* hypot(x, y) = large * sqrt(1 + (less / large)^2).  It is infinite if x or y is, even if the other one is NaN. */
OPDI_VBLOCK_FORMULA(hypot, 2) {
    int64_t i;
    OPDI_VBLOCK_EACH(
        const OPDI_T a = OPDI_TYPED(abs)(x[j]); const OPDI_T b = OPDI_TYPED(abs)(y[j]);
        const OPDI_T large = OPDI_TYPED(select)(a > b, a, b);
        const OPDI_T ratio = OPDI_TYPED(select)(a > b, b, a) / OPDI_TYPED(select)(large == 0, 1, large);
        out[j] = large;
        work[j] = ratio * ratio + 1)
    OPDI_VBLOCK_VECTOR(sqrt)(count, work, work);
    OPDI_VBLOCK_EACH(
        const OPDI_T a = OPDI_TYPED(abs)(x[j]); const OPDI_T b = OPDI_TYPED(abs)(y[j]);
        const bool infinite = (a == (OPDI_T)HUGE_VAL) | (b == (OPDI_T)HUGE_VAL);
        out[j] = OPDI_TYPED(select)(infinite, (OPDI_T)HUGE_VAL, out[j] * work[j]))
}
/* sinh(x) = (e + e / (e + 1)) / 2 with e = e^|x| - 1, and the sign of x.  For |x| > OPDI_VBLOCK_MOST, e^(|x| / 2) is
   squared, because e^|x| may overflow. */
OPDI_VBLOCK_FORMULA(sinh, 1) {
    int64_t i;
    OPDI_VBLOCK_EACH(
        const OPDI_T size = OPDI_TYPED(abs)(x[j]);
        work[j] = OPDI_TYPED(select)(size > OPDI_VBLOCK_MOST, size * (OPDI_T)0.5, size))
    OPDI_VBLOCK_VECTOR(expm1)(count, work, work);
    OPDI_VBLOCK_EACH(
        const OPDI_T usual = (OPDI_T)0.5 * (work[j] + work[j] / (work[j] + 1));
        const OPDI_T square = (OPDI_T)0.5 * work[j] * work[j];
        const OPDI_T size = OPDI_TYPED(select)(OPDI_TYPED(abs)(x[j]) > OPDI_VBLOCK_MOST, square, usual);
        out[j] = OPDI_TYPED(with_sign)(size, x[j]))
}
/* asinh(x) = log1p(t + t^2 / (1 + sqrt(1 + t^2))) with t = |x|, and the sign of x.  For t > 2^60, which may have no
   square, it is log1p(t) + log(2). */
OPDI_VBLOCK_FORMULA(asinh, 1) {
    const OPDI_T huge = (OPDI_T)1152921504606846976.0;
    int64_t i;
    OPDI_VBLOCK_EACH(
        const OPDI_T size = OPDI_TYPED(abs)(x[j]);
        work[j] = OPDI_TYPED(select)(size > huge, 0, size * size))
    OPDI_VBLOCK_EACH(out[j] = work[j] + 1)
    OPDI_VBLOCK_VECTOR(sqrt)(count, out, out);
    OPDI_VBLOCK_EACH(work[j] = OPDI_TYPED(abs)(x[j]) + work[j] / (1 + out[j]))
    OPDI_VBLOCK_VECTOR(log1p)(count, out, work);
    OPDI_VBLOCK_EACH(
        const OPDI_T more = OPDI_TYPED(select)(OPDI_TYPED(abs)(x[j]) > huge, (OPDI_T)0.69314718055994530942, 0);
        out[j] = OPDI_TYPED(with_sign)(out[j] + more, x[j]))
}
