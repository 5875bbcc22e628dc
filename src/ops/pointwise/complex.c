#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:complex   complex numbers: arithmetic, functions, and loops for pointwise formulas
//
//  Functions compute with complex128, pairs of doubles; complex64 is converted before and after.  As in PyTorch, sums
//  and products of contiguous complex64 numbers are computed in float.  Functions have the branch cuts, signed zeros
//  and infinities of C99's <complex.h>, but do not use <complex.h>.
//
//  This section has the pointwise formulas of >>api:formulas for complex numbers.  Other formulas fail for complex
//  tensors.  This section depends on the loops, but not on operators.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_COMPLEX_TEXT static                  /* how a function is defined that only this file uses */
#include "complex_functions.typed.h"

OPDI_COLD_BEGIN
#define OPDI_COMPLEX_INPUTS_1
#define OPDI_COMPLEX_INPUTS_2 const opdi_complex y = ((const opdi_complex *)data[2])[i];
#define OPDI_COMPLEX_INPUTS_3 OPDI_COMPLEX_INPUTS_2 const opdi_complex z = ((const opdi_complex *)data[3])[i];
/* Defines opdi_c128_<name>, the loop of a pointwise formula. */
#define OPDI_COMPLEX_LOOP(name, inputs, formula) \
    static void opdi_c128_##name(void *const *data, int64_t count, const opdi_params *params) { \
        const opdi_complex a = opdi_complex_make(params->f64[0], params->imaginary[0]); \
        for (int64_t i = 0; i < count; i++) { \
            const opdi_complex x = ((const opdi_complex *)data[1])[i]; \
            OPDI_COMPLEX_INPUTS_##inputs \
            ((opdi_complex *)data[0])[i] = (formula); \
        } \
        (void)a; \
    }
OPDI_COMPLEX_FORMULAS(OPDI_COMPLEX_LOOP)
OPDI_COMPLEX_TO_REAL(OPDI_COMPLEX_LOOP)
OPDI_COLD_END
/* Arithmetic on contiguous numbers, with loops that are compiled for speed.  These formulas treat real and imaginary
   parts alike.  X(name, inputs, part): `part` computes a part of the result from the same part x of the first input and
   y of the second input. */
#define OPDI_COMPLEX_PARTS(X) \
    X(add, 2, x + y) \
    X(sub, 2, x - y) \
    X(neg, 1, -x)
/* Arithmetic that combines real and imaginary parts: X(name, inputs, real part, imaginary part) has the parts of the
   result for inputs a + bi and c + di.  The loops are compiled without FMA, so that z * conj(z) is real. */
#define OPDI_COMPLEX_PAIRS(X) \
    X(mul, 2, a * c - b * d, a * d + b * c) \
    X(square, 1, a * a - b * b, a * b + b * a) \
    X(conj, 1, a, -b)
OPDI_LOOPS_BEGIN
/* Defines opdi_pair_<name>_<suffix>: sets *real and *imaginary to the parts of the result for a + bi and c + di, as
   listed in OPDI_COMPLEX_PAIRS. */
#define OPDI_PAIR_FN_OF(type, suffix, name, first, second) \
    OPDI_LOOP_TEXT void opdi_pair_##name##_##suffix(type a, type b, OPD_UNUSED type c, OPD_UNUSED type d, type *real, \
                                                    type *imaginary) { \
        *real = (first); \
        *imaginary = (second); \
    }
#define OPDI_PAIR_FN(name, inputs, first, second) \
    OPDI_PAIR_FN_OF(float, f32, name, first, second) \
    OPDI_PAIR_FN_OF(double, f64, name, first, second)
OPDI_COMPLEX_PAIRS(OPDI_PAIR_FN)
OPDI_LOOP_TEXT void opdi_pair_reciprocal_f64(double a, double b, OPD_UNUSED double c, OPD_UNUSED double d,
                                             double *real, double *imaginary) {
    opdi_pair_over(a, b, opdi_pair_scale(a, b), real, imaginary);
}
/* Computes (a + bi) / (c + di) like opdi_complex_div. */
OPDI_LOOP_TEXT void opdi_pair_div_f64(double a, double b, double c, double d, double *real, double *imaginary) {
    const bool first = fabs(c) >= fabs(d), none = c == 0 && d == 0;
    const double most = first ? c : d, least = first ? d : c, k = least / most, below = most + least * k;
    const double x = first ? a : b, y = first ? b : a;        /* for x + y * k and +-(y - x * k) */
    const double im = first ? y - x * k : x * k - y;
    *real = (none ? a : x + y * k) / (none ? fabs(c) : below);
    *imaginary = (none ? b : im) / (none ? fabs(c) : below);
}
OPDI_LOOP_TEXT void opdi_pair_sign_f64(double a, double b, OPD_UNUSED double c, OPD_UNUSED double d, double *real,
                                       double *imaginary) {
    opdi_pair_unit(a, b, opdi_pair_scale(a, b), real, imaginary);
}
/* Defines opdi_pair_<name>_f32, which computes in double, where squares of floats do not overflow. */
#define OPDI_LONG_PAIR_FN(name, call) \
    OPDI_LOOP_TEXT void opdi_pair_##name##_f32(float a, float b, OPD_UNUSED float c, OPD_UNUSED float d, float *real, \
                                               float *imaginary) { \
        double re, im; \
        call; \
        *real = (float)re; \
        *imaginary = (float)im; \
    }
OPDI_LONG_PAIR_FN(reciprocal, opdi_pair_over((double)a, (double)b, 1, &re, &im))
OPDI_LONG_PAIR_FN(div, opdi_pair_div_f64((double)a, (double)b, (double)c, (double)d, &re, &im))
OPDI_LOOPS_END
/* exp, sigmoid, tanh, sin and cos of complex numbers a + bi, computed for 64 numbers at a time by vectorized loops for
   real numbers.  exp and sigmoid use exp(a) * cos(b) and exp(a) * sin(b).  The others use sinh and cosh.  If a part of
   a number is 0, large or NaN, a function for one number computes the result. */
OPDI_LOOPS_BEGIN
#if defined(OPDI_VECTORS)
OPDI_ALWAYS void opdi_complex_trig_exp(const opdi_complex *x, opdi_complex *y, double sign) {
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        const double a = sign * x[i].re, b = sign * x[i].im, size = opdi_exp1_f64(a);
        y[i].re = size * opdi_trig1_f64(b, 1);
        y[i].im = size * opdi_trig1_f64(b, 0);
    }
}
/* Returns sinh(size), and sets *high to cosh(size), for 0 <= size; size is limited to 300.  With m = e^size - 1, sinh
   is (m + m / (m + 1)) / 2 and cosh is 1 + m^2 / (2 * (m + 1)). */
OPDI_ALWAYS double opdi_complex_sinh_size(double size, double *high) {
    double t;
    const double r = opdi_exp_rest(size < 300 ? size : 300.0, &t);
    const double power = opdi_double((opdi_bits64(t) << 52) - 0x3ff0000000000000u);
    const double m = OPDI_FMA(power, OPDI_FMA(opdi_exp_series(r), r * r, r), power - 1), part = m / (m + 1);
    *high = OPDI_FMA(0.5 * m, part, 1.0);
    return 0.5 * (m + part);
}
OPDI_AVX2 static void opdi_complex_block_exp(const opdi_complex *x, opdi_complex *y) { opdi_complex_trig_exp(x, y, 1); }
OPDI_AVX2 static void opdi_complex_block_sigmoid(const opdi_complex *x, opdi_complex *y) {
    opdi_complex_trig_exp(x, y, -1);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        const double a = 1 + y[i].re, b = y[i].im;
        opdi_pair_over(a, b, opdi_pair_scale(a, b), &y[i].re, &y[i].im);
    }
}
/* Computes tanh of 64 numbers a + bi: (sinh(a) * cosh(a) + i * sin(b) * cos(b)) / (sinh(a)^2 + cos(b)^2). */
OPDI_AVX2 static void opdi_complex_block_tanh(const opdi_complex *x, opdi_complex *y) {
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        double high;
        const double size = fabs(x[i].re), low = opdi_complex_sinh_size(size, &high);
        const double c = opdi_trig1_f64(x[i].im, 1), over = 1 / OPDI_FMA(low, low, c * c);
        y[i].re = copysign(size > 20 ? 1.0 : low * high * over, x[i].re);
        y[i].im = opdi_trig1_f64(x[i].im, 0) * c * over;
    }
}
/* Computes sin (`shift` is 0) or cos (`shift` is 1) of 64 numbers. */
OPDI_AVX2 OPDI_NOINLINE static void opdi_complex_block_sine(const opdi_complex *x, opdi_complex *y, uint64_t shift) {
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        double high;
        const double low = opdi_complex_sinh_size(fabs(x[i].im), &high);
        y[i].re = opdi_trig1_f64(x[i].re, shift) * high;
        y[i].im = opdi_trig1_f64(x[i].re, shift + 1) * (x[i].im < 0 ? -low : low);
    }
}
OPDI_AVX2 static void opdi_complex_block_sin(const opdi_complex *x, opdi_complex *y) {
    opdi_complex_block_sine(x, y, 0);
}
OPDI_AVX2 static void opdi_complex_block_cos(const opdi_complex *x, opdi_complex *y) {
    opdi_complex_block_sine(x, y, 1);
}
#endif
OPDI_LOOPS_END
OPDI_COLD_BEGIN
#if defined(OPDI_VECTORS)
/* Returns `from` if it has 64 numbers; else copies its `left` numbers to `rest`, and fills up the 64. */
static const opdi_complex *opdi_complex_whole(const opdi_complex *from, int64_t left, opdi_complex *rest) {
    if (left >= 64) { return from; }
    memcpy(rest, from, (size_t)left * sizeof *rest);
    for (int64_t i = left; i < 64; i++) { rest[i] = opdi_complex_make(1, 1); }
    return rest;
}
#endif
/* A function of complex numbers a + bi: `block` computes it for 64 numbers, if the smaller of |a| and |b| is not 0, and
   `one` for one number.  turned: `block` uses sin(a) and sinh(b), else sinh(a) or exp(a), and sin(b). */
typedef struct opdi_trig {
    void (*block)(const opdi_complex *x, opdi_complex *y);
    opdi_complex (*one)(opdi_complex x);
    bool turned;
} opdi_trig;
/* Both ways to compute a function differ in the last place.  So the last numbers are filled up to 64, and the result
   for a number does not depend on its place among the others. */
static void opdi_complex_trig(const opdi_trig *trig, void *const *data, int64_t count) {
    const opdi_complex *x = (const opdi_complex *)data[1];
    opdi_complex *out = (opdi_complex *)data[0];
    int64_t at = 0;
#if defined(OPDI_VECTORS)
    for (opdi_complex y[64], rest[64]; opdi_cpu_level() > 0 && at < count; at += 64) {
        const int64_t left = OPDI_MIN(count - at, (int64_t)64);
        const opdi_complex *const from = opdi_complex_whole(x + at, left, rest);
        trig->block(from, y);
        for (int64_t i = 0; i < left; i++) {
            const double a = fabs(from[i].re), b = fabs(from[i].im);
            const double most = trig->turned ? b : a, turn = trig->turned ? a : b;
            if (!(most < 300 && turn < OPDI_TRIG_MAX_F64 && a > 0 && b > 0)) { y[i] = trig->one(from[i]); }
        }
        memcpy(out + at, y, (size_t)left * sizeof *y);
    }
#endif
    for (; at < count; at++) { out[at] = trig->one(x[at]); }
}
#if defined(OPDI_X86)
/* Computes the square roots rr + i ri of 64 numbers re + i im.  The squares of re and im must not overflow. */
__attribute__((target("avx2"))) static void opdi_complex_roots(const double *re, const double *im, double *rr,
                                                               double *ri) {
    double size[64], root[64];
    OPDI_IVDEP for (int i = 0; i < 64; i++) { size[i] = re[i] * re[i] + im[i] * im[i]; }
    opdi_vsqrt64(64, size, size);
    OPDI_IVDEP for (int i = 0; i < 64; i++) { root[i] = (fabs(re[i]) + size[i]) * 0.5; }
    opdi_vsqrt64(64, root, root);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        const double other = im[i] / (2 * root[i]), size_of = fabs(other), signed_root = copysign(root[i], im[i]);
        rr[i] = re[i] >= 0 ? root[i] : size_of;
        ri[i] = re[i] >= 0 ? other : signed_root;
    }
}
/* Computes asin of 64 complex numbers that are neither large nor nearly real, like opdi_complex_asin.  Sets y.im to the
   imaginary part of the result.  Sets y.re to a number from which the caller computes the real part, atan2(x.re,
   y.re). */
__attribute__((target("avx2"))) static void opdi_complex_trig_asin(const opdi_complex *x, opdi_complex *y) {
    double a[64], b[64], less[2][64], more[2][64], root[64], turned[64];
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        a[i] = 1 - x[i].re;
        b[i] = -x[i].im;
    }
    opdi_complex_roots(a, b, less[0], less[1]);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        a[i] = 1 + x[i].re;
        b[i] = x[i].im;
    }
    opdi_complex_roots(a, b, more[0], more[1]);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        y[i].re = less[0][i] * more[0][i] - less[1][i] * more[1][i];
        turned[i] = less[0][i] * more[1][i] - less[1][i] * more[0][i];
        root[i] = 1 + turned[i] * turned[i];
    }
    opdi_vsqrt64(64, root, root);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {         /* see opdi_complex_asinh_of */
        const double size = fabs(turned[i]);
        a[i] = size + size * size / (1 + root[i]);
        b[i] = 1 + a[i];
    }
    opdi_vlog64(64, root, b);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        y[i].im = copysign(root[i] + (a[i] - (b[i] - 1)) / b[i], turned[i]);
    }
}
#endif
static void opdi_c128_asin(void *const *data, int64_t count, const opdi_params *params) {
    const opdi_complex *x = (const opdi_complex *)data[1];
    opdi_complex *out = (opdi_complex *)data[0];
    int64_t at = 0;
#if defined(OPDI_X86)
    for (opdi_complex y[64], rest[64]; opdi_cpu_level() > 0 && at < count; at += 64) {
        const int64_t left = OPDI_MIN(count - at, (int64_t)64);
        const opdi_complex *const from = opdi_complex_whole(x + at, left, rest);
        opdi_complex_trig_asin(from, y);
        for (int64_t i = 0; i < left; i++) {
            const double a = fabs(from[i].re), b = fabs(from[i].im);
            if (a < 1e100 && b < 1e100 && b > 1e-100) { y[i].re = opdi_atan2_f64(from[i].re, y[i].re); }
            else { y[i] = opdi_complex_asin(from[i]); }
        }
        memcpy(out + at, y, (size_t)left * sizeof *y);
    }
#endif
    for (; at < count; at++) { out[at] = opdi_complex_asin(x[at]); }
    (void)params;
}
/* Defines opdi_c128_<name> for exp, sigmoid, tanh, sin and cos. */
#if defined(OPDI_VECTORS)
#define OPDI_TRIG_BLOCK(name) opdi_complex_block_##name
#else
#define OPDI_TRIG_BLOCK(name) NULL
#endif
#define OPDI_COMPLEX_TRIGS(X) X(exp, false) X(sigmoid, false) X(tanh, false) X(sin, true) X(cos, true)
#define OPDI_COMPLEX_TRIG(name, turned) \
    static void opdi_c128_##name(void *const *data, int64_t count, const opdi_params *params) { \
        static const opdi_trig trig = {OPDI_TRIG_BLOCK(name), opdi_complex_##name, turned}; \
        (void)params; \
        opdi_complex_trig(&trig, data, count); \
    }
OPDI_COMPLEX_TRIGS(OPDI_COMPLEX_TRIG)
OPDI_COLD_END
OPDI_LOOPS_BEGIN
/* Returns |a + bi| like opdi_pair_abs_f64, for floats, whose squares cannot overflow in double. */
OPDI_LOOP_TEXT double opdi_pair_abs_f32(double a, double b) {
    return fabs(a) > DBL_MAX || fabs(b) > DBL_MAX ? INFINITY : sqrt(a * a + b * b);
}
/* The next three macros define loops over contiguous complex numbers with parts of type `type`: for a function of
   pairs, for == and !=, and for absolute values. */
#define OPDI_PAIRS_ONE \
    one(x[2 * j], x[2 * j + 1], y[2 * j], y[2 * j + 1], &real, &imaginary); \
    out[2 * j] = real; \
    out[2 * j + 1] = imaginary;
/* Keeps clang from writing a loop several times.  It stands before the loop. */
#if defined(__clang__)
#define OPDI_ONCE_EACH _Pragma("clang loop vectorize(disable) unroll(disable)")
#else
#define OPDI_ONCE_EACH
#endif
/* Runs code for each j from i to last - 1: a loop that takes less code than OPDI_COLUMN_EACH. */
#define OPDI_FEW_EACH(code) \
    OPDI_ONCE_EACH for (; i + 4 <= last; i += 4) { \
        OPDI_IVDEP for (int lane = 0; lane < 4; lane++) { const int64_t j = i + lane; code } \
    } \
    OPDI_ONCE_EACH for (int64_t j = i; j < last; j++) { code }
#define OPDI_PAIRS_LOOP(type, suffix) \
    typedef void opdi_pair_fn_##suffix(type a, type b, type c, type d, type *real, type *imaginary); \
    OPDI_LOOP_TEXT void opdi_pairs_##suffix(void *const *data, int inputs, int64_t count, bool compact, \
                                            opdi_pair_fn_##suffix one) { \
        const type *x = (const type *)data[1], *y = (const type *)data[inputs]; \
        type *out = (type *)data[0], real, imaginary; \
        int64_t i = 0, last = compact ? count : 0; \
        OPDI_FEW_EACH(OPDI_PAIRS_ONE) \
        if (!compact) { OPDI_COLUMN_EACH(OPDI_PAIRS_ONE) } \
    }
#define OPDI_PAIRS_EQUAL_LOOP(type, suffix) \
    OPDI_LOOP_TEXT void opdi_pairs_equal_##suffix(void *const *data, int64_t count, bool equal) { \
        const type *x = (const type *)data[1], *y = (const type *)data[2]; \
        bool *out = (bool *)data[0]; \
        int64_t i; \
        OPDI_COLUMN_EACH(out[j] = ((x[2 * j] == y[2 * j]) & (x[2 * j + 1] == y[2 * j + 1])) == equal) \
    }
#define OPDI_PAIRS_ABS_LOOP(type, suffix) \
    OPDI_LOOP_TEXT void opdi_pairs_abs_##suffix(void *const *data, int64_t count) { \
        const type *x = (const type *)data[1]; \
        type *out = (type *)data[0]; \
        int64_t i; \
        OPDI_COLUMN_EACH(out[j] = (type)opdi_pair_abs_##suffix((double)x[2 * j], (double)x[2 * j + 1])) \
    }
#define OPDI_PAIRS_LOOPS(type, suffix) \
    OPDI_PAIRS_LOOP(type, suffix) \
    OPDI_PAIRS_EQUAL_LOOP(type, suffix) \
    OPDI_PAIRS_ABS_LOOP(type, suffix)
OPDI_PAIRS_LOOPS(float, f32)
OPDI_PAIRS_LOOPS(double, f64)
/* Computes z / |z| for 64 complex64 numbers, in double, where squares of floats do not overflow.  The caller calls it
   twice.  If out is NULL, sets size[64] to the squares of the absolute values, which the caller then replaces by their
   square roots.  Otherwise, divides the numbers by these roots. */
OPDI_ALWAYS void opdi_units_body(const float *x, double *size, float *out) {
    if (!out) {
        OPDI_IVDEP for (int i = 0; i < 64; i++) {
            const double a = (double)x[2 * i], b = (double)x[2 * i + 1];
            size[i] = a * a + b * b;
        }
        return;
    }
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        const double over = 1 / size[i], a = (double)x[2 * i] * over, b = (double)x[2 * i + 1] * over;
        out[2 * i] = (float)(size[i] == 0 ? 0 : a);
        out[2 * i + 1] = (float)(size[i] == 0 ? 0 : b);
    }
}
static void opdi_units_plain(const float *x, double *size, float *out) { opdi_units_body(x, size, out); }
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_units_avx2(const float *x, double *size, float *out) {
    opdi_units_body(x, size, out);
}
#endif
static void opdi_c64_sign(void *const *data, int64_t count, const opdi_params *params) {
    const float *x = (const float *)data[1];
    float *out = (float *)data[0], last[128] = {0};
    double size[64];
    void (*units)(const float *, double *, float *) = opdi_units_plain;
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { units = opdi_units_avx2; }
#endif
    for (int64_t at = 0; at < count; at += 64) {
        const bool whole = at + 64 <= count;
        if (!whole) { memcpy(last, x + 2 * at, (size_t)(count - at) * 2 * sizeof *last); }
        units(whole ? x + 2 * at : last, size, NULL);
        opdi_vsqrt64(64, size, size);
        units(whole ? x + 2 * at : last, size, whole ? out + 2 * at : last);
        if (!whole) { memcpy(out + 2 * at, last, (size_t)(count - at) * 2 * sizeof *last); }
    }
    (void)params;
}
OPDI_LOOPS_END
/* Defines opdi_<prefix>_<name>, a loop with the code `run`, compiled a second time for AVX2.  `compact` is true
   where little code is more important than speed, because few processors run it. */
#if defined(OPDI_X86)
#define OPDI_PAIRS_OF(prefix, name, run) \
    __attribute__((target("avx2"))) \
    static void opdi_##prefix##_##name##_avx2(void *const *data, int64_t count) { \
        OPD_UNUSED const bool compact = false; \
        run; \
    } \
    OPDI_INTERNAL void opdi_##prefix##_##name(void *const *data, int64_t count, const opdi_params *params) { \
        OPD_UNUSED const bool compact = true; \
        (void)params; \
        if (opdi_cpu_level() > 0) { opdi_##prefix##_##name##_avx2(data, count); } \
        else { run; } \
    }
#else
#define OPDI_PAIRS_OF(prefix, name, run) \
    OPDI_INTERNAL void opdi_##prefix##_##name(void *const *data, int64_t count, const opdi_params *params) { \
        OPD_UNUSED const bool compact = false; \
        (void)params; \
        run; \
    }
#endif
#define OPDI_PARTS_LOOP(type, suffix, name, inputs, part) \
    OPDI_LOOP_TEXT void opdi_parts_##name##_##suffix(void *const *data, int64_t count) { \
        const type *left = (const type *)data[1], *right = (const type *)data[inputs]; \
        type *out = (type *)data[0]; \
        int64_t i; \
        count *= 2; \
        OPDI_COLUMN_EACH(const type x = left[j]; \
                         OPD_UNUSED const type y = right[j]; \
                         out[j] = (part)) \
    }
#define OPDI_PARTS_BOTH(name, inputs, part) \
    OPDI_PARTS_LOOP(float, f32, name, inputs, part) \
    OPDI_PARTS_LOOP(double, f64, name, inputs, part) \
    OPDI_PAIRS_OF(c64, name, opdi_parts_##name##_f32(data, count)) \
    OPDI_PAIRS_OF(c128, name, opdi_parts_##name##_f64(data, count))
#define OPDI_PAIRS_BOTH(name, inputs, first, second) \
    OPDI_PAIRS_OF(c64, name, opdi_pairs_f32(data, inputs, count, compact, opdi_pair_##name##_f32)) \
    OPDI_PAIRS_OF(c128, name, opdi_pairs_f64(data, inputs, count, compact, opdi_pair_##name##_f64))
OPDI_LOOPS_BEGIN
OPDI_COMPLEX_PARTS(OPDI_PARTS_BOTH)
OPDI_COMPLEX_PAIRS(OPDI_PAIRS_BOTH)
/* The loop of the reciprocal is also compiled for AVX-512, where a multiplication and an addition are rounded together.
   This does not change the results, because products of floats are exact in double. */
#if defined(OPDI_X86)
/* Computes the reciprocals of 64 numbers.  Returns false if a number is 0 or has an infinite or NaN part. */
OPDI_AVX512 static bool opdi_c64_reciprocal_block(const float *x, float *out) {
    uint32_t bits[128], other = 0;
    memcpy(bits, x, sizeof bits);
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        const uint32_t a = bits[2 * i] & 0x7fffffffu, b = bits[2 * i + 1] & 0x7fffffffu;
        other |= (uint32_t)(a > 0x7f7fffffu) | (uint32_t)(b > 0x7f7fffffu) | (uint32_t)((a | b) == 0);
    }
    if (other) { return false; }
    OPDI_IVDEP for (int i = 0; i < 64; i++) {
        const double a = (double)x[2 * i], b = (double)x[2 * i + 1], over = 1 / (a * a + b * b);
        out[2 * i] = (float)(a * over);
        out[2 * i + 1] = (float)(0 - b * over);
    }
    return true;
}
OPDI_AVX512 static void opdi_c64_reciprocal_avx512(void *const *data, int64_t count) {
    for (int64_t at = 0; at < count; at += 64) {
        float *const x = (float *)data[1] + 2 * at, *const out = (float *)data[0] + 2 * at;
        void *const rest[2] = {out, x};
        if (at + 64 <= count && opdi_c64_reciprocal_block(x, out)) { continue; }
        opdi_pairs_f32(rest, 1, OPDI_MIN(count - at, (int64_t)64), false, opdi_pair_reciprocal_f32);
    }
}
#endif
OPDI_PAIRS_OF(c64, reciprocal_less, opdi_pairs_f32(data, 1, count, compact, opdi_pair_reciprocal_f32))
static void opdi_c64_reciprocal(void *const *data, int64_t count, const opdi_params *params) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() == 2) {
        opdi_c64_reciprocal_avx512(data, count);
        return;
    }
#endif
    opdi_c64_reciprocal_less(data, count, params);
}
OPDI_PAIRS_OF(c128, reciprocal, opdi_pairs_f64(data, 1, count, compact, opdi_pair_reciprocal_f64))
OPDI_PAIRS_OF(c128, sign, opdi_pairs_f64(data, 1, count, compact, opdi_pair_sign_f64))
OPDI_PAIRS_BOTH(div, 2, 0, 0)
OPDI_PAIRS_OF(c64, equal, opdi_pairs_equal_f32(data, count, true))
OPDI_PAIRS_OF(c64, unequal, opdi_pairs_equal_f32(data, count, false))
OPDI_PAIRS_OF(c64, size, opdi_pairs_abs_f32(data, count))
OPDI_PAIRS_OF(c128, equal, opdi_pairs_equal_f64(data, count, true))
OPDI_PAIRS_OF(c128, unequal, opdi_pairs_equal_f64(data, count, false))
OPDI_PAIRS_OF(c128, size, opdi_pairs_abs_f64(data, count))
OPDI_LOOPS_END
OPDI_COLD_BEGIN
/* Defines opdi_complex_of_<name>, which returns a loop of a pointwise formula, or NULL if there is none.  For
   OPD_DTYPE_NONE, the loop reads and writes complex128.  For a complex dtype, it reads contiguous numbers of that
   dtype, and writes such numbers, their absolute values or truth values. */
#define OPDI_COMPLEX_OF(name, short64, short128) \
    OPDI_INTERNAL opdi_loop opdi_complex_of_##name(opd_scalar_type dtype) { \
        return dtype == OPD_DTYPE_NONE ? opdi_c128_##name : dtype == OPD_COMPLEX64 ? (short64) : (short128); \
    }
#define OPDI_COMPLEX_OF_GENERAL(name, inputs, formula) OPDI_COMPLEX_OF(name, (opdi_loop)0, (opdi_loop)0)
OPDI_COMPLEX_FORMULAS(OPDI_COMPLEX_OF_GENERAL)
#define OPDI_COMPLEX_OF_TRIG(name, turned) OPDI_COMPLEX_OF(name, (opdi_loop)0, (opdi_loop)0)
OPDI_COMPLEX_TRIGS(OPDI_COMPLEX_OF_TRIG)
OPDI_COMPLEX_OF(asin, (opdi_loop)0, (opdi_loop)0)
OPDI_COMPLEX_OF(eq, opdi_c64_equal, opdi_c128_equal)
OPDI_COMPLEX_OF(ne, opdi_c64_unequal, opdi_c128_unequal)
OPDI_COMPLEX_OF(abs, opdi_c64_size, opdi_c128_size)
#define OPDI_COMPLEX_OF_PAIRS(name) OPDI_COMPLEX_OF(name, opdi_c64_##name, opdi_c128_##name)
OPDI_COMPLEX_OF_PAIRS(add)
OPDI_COMPLEX_OF_PAIRS(sub)
OPDI_COMPLEX_OF_PAIRS(neg)
OPDI_COMPLEX_OF_PAIRS(mul)
OPDI_COMPLEX_OF_PAIRS(square)
OPDI_COMPLEX_OF_PAIRS(reciprocal)
OPDI_COMPLEX_OF_PAIRS(div)
OPDI_COMPLEX_OF_PAIRS(sign)
/* A loop over complex numbers that has no number arguments, and the data of its operands: of the result and the inputs,
   which are all contiguous.  size: bytes of an element. */
typedef struct opdi_pairs { opdi_loop loop; char *data[4]; int64_t size[4]; int nops; } opdi_pairs;
static void opdi_pairs_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_pairs *pairs = (const opdi_pairs *)ctx;
    void *data[4];
    for (int k = 0; k < pairs->nops; k++) { data[k] = pairs->data[k] + begin * pairs->size[k]; }
    pairs->loop(data, end - begin, NULL);
}
/* Returns true if opdi_pairs_run can be used: the result ops[0] of dtype `result` and the inputs ops[1..nin] of dtype
   `common` are contiguous CPU tensors of the same shape.  An input must not share memory with the result, unless both
   have the same dtype and the same first element. */
OPDI_INTERNAL bool opdi_pairs_alike(opd_tensor *const *ops, int nin, opd_scalar_type common, opd_scalar_type result) {
    for (int k = 0; k <= nin; k++) {
        if (ops[k]->dtype != (int32_t)(k ? common : result) || !(ops[k]->flags & OPDI_CONTIGUOUS) ||
            ops[k]->backend != OPD_CPU || !ops[k]->data || !opdi_same_sizes(ops[k], ops[0]) ||
            (k > 0 && (ops[k]->data != ops[0]->data || common != result) && opdi_same_memory(ops[k], ops[0]))) {
            return false;
        }
    }
    return true;
}
/* Runs a loop over the contiguous result ops[0] and the inputs ops[1..nin]. */
OPDI_INTERNAL void opdi_pairs_run(opdi_loop loop, opd_tensor *const *ops, int nin) {
    opdi_pairs pairs;
    pairs.loop = loop;
    pairs.nops = nin + 1;
    for (int k = 0; k <= nin; k++) {
        pairs.data[k] = ops[k]->data;
        pairs.size[k] = (int64_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
    }
    opdi_parallel_for(ops[0]->numel, OPDI_GRAIN, opdi_pairs_range, &pairs);
}

//== complex numbers in kernels for real numbers =======================================================================

/* Fails if tensor is complex; `what` is the name of the kernel for the message.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_refuse_complex(const opd_tensor *tensor, const char *what) {
    return !opdi_is_complex(tensor) ? 0
        : opdi_dtype_fail(what, tensor->dtype);
}
/* Returns a view of the real (if part is 0) or imaginary (if part is 1) part of a complex tensor.  Returns a real
   tensor itself.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_part_of(opd_tensor *tensor, int part) {
    return opdi_is_complex(tensor) ? opd_select(opd_view_as_real(tensor), -1, part) : tensor;
}
/* Sets result number i of the call to re + i * im; the results before it must have been set.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_return_parts(opd_call *call, int i, opd_tensor *re, opd_tensor *im) {
    if (!re || !im) { return -1; }
    opd_tensor *out = opd_result(call, i, opdi_sizes(re), re->ndim,
                                 re->dtype == OPD_FLOAT64 ? OPD_COMPLEX128 : OPD_COMPLEX64);
    if (!out || !out->data) { return out ? opd_return_tensor(call, out) : -1; }
    opd_tensor *first = opdi_part_of(out, 0), *second = opdi_part_of(out, 1);
    if (!first || !second || opdi_copy(first, re) || opdi_copy(second, im)) { return -1; }
    return opd_return_tensor(call, out);
}
/* Calls the operator of `call` with parts of its complex tensors.  If bit i of `imaginary` is set, argument i is
   replaced by its imaginary part, else by its real part.  If bit i of `without` is set, argument i becomes None.
   Writes the results to rets.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_parts(opd_call *call, unsigned imaginary, unsigned without, opd_value *rets) {
    const opdi_card *card = OPDI_ACQUIRE(&call->op->card);
    const opd_op *op = card && card->base ? card->base->op : call->op;
    opd_value args[OPD_MAX_ARGS];
    for (int i = 0; i < op->nargs; i++) {
        args[i] = without >> i & 1 ? opd_value_none() : opd_call_args(call)[i];
        if (args[i].tag == OPD_TAG_TENSOR) { args[i].u.t = opdi_part_of(args[i].u.t, (int)(imaginary >> i & 1)); }
    }
    return opd_ok() ? opd_call_all((opd_op *)(uintptr_t)op, rets, args, op->nargs) : -1;
}
/* The kernel of an operator that is linear in all its complex tensors: runs the operator once for the real parts and
   once for the imaginary parts.  The result of the call is re + i * im. */
OPDI_INTERNAL int opdi_by_parts(opd_call *call) {
    opd_value re, im;
    if (opdi_call_parts(call, 0, 0, &re) || opdi_call_parts(call, ~0u, 0, &im)) { return -1; }
    return opdi_return_parts(call, 0, re.u.t, im.u.t);
}
OPDI_COLD_END
