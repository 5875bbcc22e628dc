//== functions of doubles ==============================================================================================
//
// By vectors with AVX2 or AVX-512, eight a step, else those of the C library.  Error bounds in units in the last place:
// exp and log 1, sin, cos 1.5, tanh 3, erf, erfc 1.6, sinc 2.5.

#if defined(OPDI_OPERATORS)
OPDI_LOOPS_BEGIN

OPDI_ALWAYS double opdi_double(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}
OPDI_ALWAYS uint64_t opdi_bits64(double d) {
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits;
}
/* x = m 2^e, m in [sqrt(1/2), sqrt(2)): returns m, and e in *exponent; x is positive and normal.  An exponent becomes a
   double as the low bits of 2^52. */
OPDI_ALWAYS double opdi_split_f64(double x, double *exponent) {
    const uint64_t bits = opdi_bits64(x) - 0x3fe6a09e667f3bcdu;
    *exponent = opdi_double(((bits >> 52) ^ 0x800u) | 0x4330000000000000u) - 4503599627372544.0;
    return opdi_double((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
}
/* y 2^n for the double t whose low bits are n, |n| <= 1100: in two factors, so that results near the ends round once */
OPDI_ALWAYS double opdi_scale_f64(double y, double t) {
    const uint64_t bits = opdi_bits64(t) - (0x4338000000000000u - 2048);   /* n + 2048: halved without a sign */
    return y * opdi_double(((bits >> 1) - 1) << 52) * opdi_double((bits - (bits >> 1) - 1) << 52);
}
/* e^x = 2^n e^r, |r| <= ln(2) / 2, e^r by its series to r^13: within 1 ulp. */
#define OPDI_MAGIC_F64 6755399441055744.0         /* 1.5 * 2^52, as OPDI_MAGIC */
/* (e^r - 1 - r) / r^2 */
OPDI_ALWAYS double opdi_exp_series(double r) {
    double q = 1.0 / 6227020800;
    q = q * r + 1.0 / 479001600;
    q = q * r + 1.0 / 39916800;
    q = q * r + 1.0 / 3628800;
    q = q * r + 1.0 / 362880;
    q = q * r + 1.0 / 40320;
    q = q * r + 1.0 / 5040;
    q = q * r + 1.0 / 720;
    q = q * r + 1.0 / 120;
    q = q * r + 1.0 / 24;
    q = q * r + 1.0 / 6;
    return q * r + 1.0 / 2;
}
/* The rest r of x, which is n ln(2) + r; n in the low bits of *t. */
OPDI_ALWAYS double opdi_exp_rest(double x, double *t) {
    *t = x * 1.4426950408889634 + OPDI_MAGIC_F64;
    const double k = *t - OPDI_MAGIC_F64;
    return (x - k * 0.69314718036912381649) - k * 1.90821492927058770002e-10;
}
OPDI_ALWAYS double opdi_exp1_f64(double x) {
    double t;
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const double r = opdi_exp_rest(x, &t);
    return opdi_scale_f64(opdi_exp_series(r) * (r * r) + r + 1.0, t);
}
OPDI_ALWAYS double opdi_sigmoid1_f64(double x) { return 1.0 / (1.0 + opdi_exp1_f64(-x)); }
/* tanh |x| = m / (m + 2), m = e^(2|x|) - 1 = 2^n (e^r - 1) + (2^n - 1): within 3 ulp */
OPDI_ALWAYS double opdi_tanh1_f64(double a) {
    const uint64_t sign = opdi_bits64(a) & 0x8000000000000000u;
    double x = opdi_double(opdi_bits64(a) ^ sign), t;
    x = x > 22.0 ? 22.0 : x;
    const double r = opdi_exp_rest(x + x, &t), power = opdi_double((opdi_bits64(t) << 52) + 0x3ff0000000000000u);
    const double m = power * (opdi_exp_series(r) * (r * r) + r) + (power - 1.0);
    const double y = x < 1e-9 ? x : m / (m + 2.0);
    return opdi_double(opdi_bits64(y) | sign);
}
/* log(m 2^e) = e ln(2) + f - (f^2/2 - s (f^2/2 + z P(z))), f = m - 1, s = f / (2 + f), z = s^2: within 1 ulp */
OPDI_ALWAYS double opdi_log1_f64(double a) {
    const bool tiny = a < 2.2250738585072014e-308;
    double e;
    const double f = opdi_split_f64(tiny ? a * 18014398509481984.0 : a, &e) - 1.0, s = f / (2.0 + f), z = s * s;
    const double half = 0.5 * f * f;
    e -= tiny ? 54.0 : 0.0;
    double p = 0.14617498693915612 * z + 0.1533163669954134;
    p = p * z + 0.18182891680439894;
    p = p * z + 0.22222211099711292;
    p = p * z + 0.28571428626190487;
    p = p * z + 0.39999999999899033;
    p = p * z + 0.666666666666667;
    double y = e * 0.693147180559663 - ((half - (s * (half + z * p) + e * 2.8235290563031577e-13)) - f);
    y = a < HUGE_VAL ? y : a;                              /* inf and nan */
    y = a < 0.0 ? (double)NAN : y;
    return a == 0.0 ? -HUGE_VAL : y;
}
/* x = n pi/2 + r, |x| < 2^20, pi/2 in three parts, of which products are subtracted by FMA; shift 0: sin, 1: cos:
   within 1.5 ulp */
#define OPDI_TRIG_MAX_F64 1048576.0
/* a * b + c rounded once: compilers fuse by themselves only where they optimise. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define OPDI_FMA(a, b, c) fma(a, b, c)
#endif
OPDI_ALWAYS double opdi_trig1_f64(double x, uint64_t shift) {
    const double t = x * 0.63661977236758134308 + OPDI_MAGIC_F64, k = OPDI_MAGIC_F64 - t;
    const uint64_t count = opdi_bits64(t) + shift;
    double r = OPDI_FMA(k, 1.5707963267948966, x);
    r = OPDI_FMA(k, 6.123233995736766e-17, r);
    r = OPDI_FMA(k, -1.4973849048591698e-33, r);
    const double z = r * r;
    double sum = 1.5918115263265747e-10 * z - 2.5051131650235178e-08;
    sum = sum * z + 2.7557316101617874e-06;
    sum = sum * z - 0.00019841269836756774;
    sum = sum * z + 0.008333333333330948;
    sum = sum * z - 0.16666666666666666;
    sum = OPDI_FMA(sum, z * r, r);
    double c = -1.1382623647474462e-11 * z + 2.087614614655861e-09;
    c = c * z - 2.7557317271145144e-07;
    c = c * z + 2.480158729876456e-05;
    c = c * z - 0.0013888888888887398;
    c = c * z + 0.041666666666666664;
    const double half = 0.5 * z, one = 1.0 - half;
    c = one + ((1.0 - one - half) + c * (z * z));
    return opdi_double(opdi_bits64(count & 1u ? c : sum) ^ (count & 2u) << 62);
}
OPDI_ALWAYS double opdi_sin1_f64(double x) {
    const double y = opdi_trig1_f64(x, 0);
    return x == 0.0 ? x : y;
}
OPDI_ALWAYS double opdi_cos1_f64(double x) { return opdi_trig1_f64(x, 1); }
#if defined(OPD_NO_OPERATORS)
#define OPDI_VMATH64_LIST(X) X(exp, 0, exp(x)) X(log, 1, log(x)) X(tanh, 4, tanh(x)) X(sin, 6, sin(x)) \
    X(cos, 7, cos(x)) X(sigmoid, 8, 1 / (1 + exp(-x)))
#else
/* Four terms of a polynomial from that of x^k on, of which the last ones may be missing; square: x^2. */
OPDI_ALWAYS double opdi_terms(const double *table, int k, int count, double x, double square) {
    const double low = k + 1 < count ? table[k] + x * table[k + 1] : table[k];
    if (k + 2 >= count) { return low; }
    return low + square * (k + 3 < count ? table[k + 2] + x * table[k + 3] : table[k + 2]);
}
/* sum_k table[k] x^k of at most 28 terms, without loops and branches where count is a constant. */
OPDI_ALWAYS double opdi_polynomial(const double *table, int count, double x) {
    const double square = x * x, fourth = square * square;
    double sum = 0;
    if (count > 24) { sum = opdi_terms(table, 24, count, x, square); }
    if (count > 20) { sum = sum * fourth + opdi_terms(table, 20, count, x, square); }
    if (count > 16) { sum = sum * fourth + opdi_terms(table, 16, count, x, square); }
    if (count > 12) { sum = sum * fourth + opdi_terms(table, 12, count, x, square); }
    if (count > 8) { sum = sum * fourth + opdi_terms(table, 8, count, x, square); }
    if (count > 4) { sum = sum * fourth + opdi_terms(table, 4, count, x, square); }
    return sum * fourth + opdi_terms(table, 0, count, x, square);
}
#define OPDI_POLYNOMIAL(table, x) opdi_polynomial(table, (int)(sizeof(table) / sizeof(double)), x)
/* erf(x) / x - 1 for x^2 in [0, 1], and what erfcx is made of (see >>op:special). */
static const double opdi_erf_series[14] = {
    -0.03453126133013269, -0.1405360890227171, 0.019852496688983708, -0.0022854855611440673, 0.00021751715604160108,
    -1.75371694414921e-05, 1.223382738352401e-06, -7.511569160678138e-08, 4.11580059766496e-09, -2.0352493920247854e-10,
    9.167606746069445e-12, -3.7910930392717217e-13, 1.454817075960679e-14, -5.166061616805981e-16};
static const double opdi_erfcx_scaled[25] = {
    1.2375126308378275, -0.14024059858554697, 0.0035854154854644293, 0.0822767384901452, -0.10880393014174886,
    0.09230432116037748, -0.05869339858963677, 0.028362277418956406, -0.009746579558029276, 0.0017556258528952954,
    0.00029371366559134476, -0.00029015408054084167, 5.164909889268259e-05, 2.238423915508205e-05,
    -1.1444146237700994e-05, -9.735598967364506e-07, 1.7516376488498498e-06, -5.7218230603606515e-08,
    -2.586685071624259e-07, 2.3263508709141603e-08, 3.867533424282623e-08, -3.744210081080678e-09,
    -5.173990214252411e-09, 3.111433381196195e-10, 4.251471445216738e-10};
/* sin(x) / x as a function of x^2, |x| <= pi / 2 */
OPD_UNUSED static const double opdi_sine_series[11] = {
    1.0, -0.16666666666666666, 0.008333333333333333, -0.0001984126984126984, 2.7557319223985893e-06,
    -2.505210838544172e-08, 1.6059043836821613e-10, -7.647163731819816e-13, 2.8114572543455206e-15,
    -8.22063524662433e-18, 1.9572941063391263e-20};
/* exp(x^2) erfc(x), x >= 0: a polynomial in (x - 3.75) / (x + 3.75) over 1 + 2 x */
OPDI_ALWAYS double opdi_erfcx1_f64(double x) {
    const double more = 1.0 + 2.0 * x, over = 1.0 / ((x + 3.75) * more);
    return OPDI_POLYNOMIAL(opdi_erfcx_scaled, (x - 3.75) * more * over) * ((x + 3.75) * over);
}
/* exp(-x^2), the square with what its rounding left out */
OPDI_ALWAYS double opdi_exp_square1_f64(double x) {
    const double square = x * x;
    return opdi_exp1_f64(-square) * (1.0 - OPDI_FMA(x, x, -square));
}
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
OPDI_ALWAYS double opdi_sinc1_f64(double x) {
    const double angle = x * 3.14159265358979323846, y = opdi_trig1_f64(angle, 0) / angle;
    return x == 0.0 ? 1.0 : y;
}
static double opdi_sinc_f64(double x) {
    const double angle = x * 3.14159265358979323846;
    return x == 0 ? 1 : sin(angle) / angle;
}
/* The functions: name, number; the one of the C library. */
#define OPDI_VMATH64_LIST(X) X(exp, 0, exp(x)) X(log, 1, log(x)) X(tanh, 4, tanh(x)) X(erf, 5, erf(x)) \
    X(sin, 6, sin(x)) X(cos, 7, cos(x)) X(sigmoid, 8, 1 / (1 + exp(-x))) X(erfc, 14, erfc(x)) \
    X(sinc, 15, opdi_sinc_f64(x))
#endif
#define OPDI_VMATH64_CASE(name, number, one) \
    case number: \
        for (int64_t i = 0; i < count; i += 8) { \
            double y[8]; \
            for (int j = 0; j < 8; j++) { y[j] = opdi_##name##1_f64(a[i + j]); } \
            for (int j = 0; j < 8; j++) { out[i + j] = y[j]; } \
        } \
        break;
#define OPDI_VMATH64_EACH(name, number, one) \
    case number: \
        for (int64_t i = 0; i < count; i++) { \
            const double x = a[i]; \
            out[i] = one; \
        } \
        break;
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_vmath64_avx2(int function, int64_t count, double *out, const double *a) {
    switch (function) { OPDI_VMATH64_LIST(OPDI_VMATH64_CASE) default: break; }
}
OPDI_AVX512 static void opdi_vmath64_avx512(int function, int64_t count, double *out, const double *a) {
    switch (function) { OPDI_VMATH64_LIST(OPDI_VMATH64_CASE) default: break; }
}
/* Applies function function to count elements, a multiple of eight. */
static void opdi_vmath64_steps(int function, int64_t count, double *out, const double *a) {
    (opdi_cpu_level() > 1 ? opdi_vmath64_avx512 : opdi_vmath64_avx2)(function, count, out, a);
}
/* What is too large to be reduced is done again by the C library. */
static void opdi_vtrig64_again(int function, int64_t count, double *out, const double *a) {
    for (int64_t i = 0; i < count; i++) {
        if (fabs(a[i]) < OPDI_TRIG_MAX_F64) { continue; }
#if !defined(OPD_NO_OPERATORS)
        if (function == 15) { out[i] = opdi_sinc_f64(a[i]); }
#endif
        if (function != 15) { out[i] = function == 6 ? sin(a[i]) : cos(a[i]); }
    }
}
#endif
static void opdi_vmath64(int function, int64_t count, double *out, const double *a) {
#if defined(OPDI_X86)
    const bool angles = function == 6 || function == 7 || function == 15;
    const int64_t most = angles ? 256 : count;
    for (int64_t from = 0, rows; opdi_cpu_level() > 0 && from < count; from += rows) {
        double angle[256] = {0}, rest[8] = {0};
        const double *x = angles ? angle : a + from;
        uint64_t large = 0;
        rows = OPDI_MIN(count - from, most);
        const int64_t whole = rows & ~(int64_t)7;
        if (angles) { memcpy(angle, a + from, (size_t)rows * sizeof *x); }
        memcpy(rest, x + whole, (size_t)(rows - whole) * sizeof *x);
        opdi_vmath64_steps(function, whole, out + from, x);
        if (rows > whole) {
            opdi_vmath64_steps(function, 8, rest, rest);
            memcpy(out + from + whole, rest, (size_t)(rows - whole) * sizeof *rest);
        }
        if (!angles) { continue; }
        for (int j = 0; j < 256; j++) { large |= (opdi_bits64(x[j]) & 0x7fffffffffffffffu) >= 0x4130000000000000u; }
        if (large) { opdi_vtrig64_again(function, rows, out + from, x); }
    }
    if (opdi_cpu_level() > 0) { return; }
#endif
    switch (function) { OPDI_VMATH64_LIST(OPDI_VMATH64_EACH) default: break; }
}
OPD_UNUSED static void opdi_vexp64(int64_t count, double *out, const double *a) { opdi_vmath64(0, count, out, a); }
OPD_UNUSED static void opdi_vsigmoid64(int64_t count, double *out, const double *a) { opdi_vmath64(8, count, out, a); }
OPD_UNUSED static void opdi_vlog64(int64_t count, double *out, const double *a) { opdi_vmath64(1, count, out, a); }
OPD_UNUSED static void opdi_vtanh64(int64_t count, double *out, const double *a) { opdi_vmath64(4, count, out, a); }
OPD_UNUSED static void opdi_vsin64(int64_t count, double *out, const double *a) { opdi_vmath64(6, count, out, a); }
OPD_UNUSED static void opdi_verf64(int64_t count, double *out, const double *a) { opdi_vmath64(5, count, out, a); }
OPD_UNUSED static void opdi_verfc64(int64_t count, double *out, const double *a) { opdi_vmath64(14, count, out, a); }
OPD_UNUSED static void opdi_vsinc64(int64_t count, double *out, const double *a) { opdi_vmath64(15, count, out, a); }
OPD_UNUSED static void opdi_vcos64(int64_t count, double *out, const double *a) { opdi_vmath64(7, count, out, a); }
OPDI_LOOPS_END
#endif
