/* Logarithm, sine, cosine, and parts of e^x, for the processor (kernels.h) and CUDA (samples.cu), with the same bits on
   both. */

#define OPDI_MAGIC_F64 6755399441055744.0         /* 1.5 * 2^52, see OPDI_MAGIC */
#define OPDI_MAGIC_EXP64 (OPDI_MAGIC_F64 + 2046)
OPDI_LOOPS_BEGIN
/* Splits x = m * 2^e, m in [sqrt(1/2), sqrt(2)): returns m, and sets *exponent to e.  x is positive and normal.  The
   exponent is converted to a double by writing it into the low bits of 2^52. */
OPDI_ALWAYS double opdi_split_f64(double x, double *exponent) {
    const uint64_t bits = opdi_bits64(x) - 0x3fe6a09e667f3bcdu;
    *exponent = opdi_double(((bits >> 52) ^ 0x800u) | 0x4330000000000000u) - 4503599627372544.0;
    return opdi_double((bits & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu);
}
/* Returns y * 2^n for |n| <= 1100, where t ends with the last 12 bits of n + 2046.  2^n is applied in two factors,
   so that very large and very small results are rounded only once. */
OPDI_ALWAYS double opdi_scale_f64(double y, double t) {
    const uint64_t count = opdi_bits64(t), half = count >> 1;
    return y * opdi_double(half << 52) * opdi_double((count - half) << 52);
}
/* Returns r with x = n * ln(2) + r for an integer n.  Sets the last 12 bits of *t to the last bits of n + 2046. */
OPDI_ALWAYS double opdi_exp_rest(double x, double *t) {
    *t = OPDI_FMA(x, 1.4426950408889634, OPDI_MAGIC_EXP64);
    const double k = OPDI_MAGIC_EXP64 - *t;
    return OPDI_FMA(k, 1.90821492927058770002e-10, OPDI_FMA(k, 0.69314718036912381649, x));
}
/* Returns P(z), with which log(1 + f) is f - (f^2 / 2 - s * (f^2 / 2 + z * P(z))) for s = f / (2 + f) and z = s^2. */
OPDI_ALWAYS double opdi_log_series(double z) {
    double p = OPDI_FMA(0.14617498693915612, z, 0.1533163669954134);
    p = OPDI_FMA(p, z, 0.18182891680439894);
    p = OPDI_FMA(p, z, 0.22222211099711292);
    p = OPDI_FMA(p, z, 0.28571428626190487);
    p = OPDI_FMA(p, z, 0.39999999999899033);
    return OPDI_FMA(p, z, 0.666666666666667);
}
/* Returns log((1 + f) * 2^e), with 1 + f and e from opdi_split_f64.  The error is at most 1 ulp. */
OPDI_ALWAYS double opdi_log_parts_f64(double f, double e) {
    const double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
    const double rest = OPDI_FMA(s, OPDI_FMA(z, opdi_log_series(z), half), e * 2.8235290563031577e-13);
    return OPDI_FMA(e, 0.693147180559663, f - (half - rest));
}
/* Returns log(a) for any number. */
OPDI_ALWAYS double opdi_log1_f64(double a) {
    const bool tiny = a < 2.2250738585072014e-308;
    double e;
    const double f = opdi_split_f64(tiny ? a * 18014398509481984.0 : a, &e) - 1.0;
    double y = opdi_log_parts_f64(f, e - (tiny ? 54.0 : 0.0));
    y = a < HUGE_VAL ? y : a;                              /* inf and NaN are returned */
    y = a < 0.0 ? (double)NAN : y;
    return a == 0.0 ? -HUGE_VAL : y;
}
OPDI_LOOPS_END
/* opdi_trig1_f64 returns sin(x) if `shift` is 0, cos(x) if it is 1, for |x| < 2^20, within 1.5 ulp.  It finds n and r
   with x = n * pi/2 + r.  For r, it subtracts n times each of three constants, whose sum is pi/2, by OPDI_FMA (a * b +
   c, rounded once). */
#define OPDI_TRIG_MAX_F64 1048576.0
OPDI_LOOPS_BEGIN
OPDI_ALWAYS double opdi_trig1_f64(double x, uint64_t shift) {
    const double t = OPDI_FMA(x, 0.63661977236758134308, OPDI_MAGIC_F64), k = OPDI_MAGIC_F64 - t;
    const uint64_t count = opdi_bits64(t) + shift;
    double r = OPDI_FMA(k, 1.5707963267948966, x);
    r = OPDI_FMA(k, 6.123233995736766e-17, r);
    r = OPDI_FMA(k, -1.4973849048591698e-33, r);
    const double z = r * r;
    double sum = OPDI_FMA(1.5918115263265747e-10, z, -2.5051131650235178e-08);
    sum = OPDI_FMA(sum, z, 2.7557316101617874e-06);
    sum = OPDI_FMA(sum, z, -0.00019841269836756774);
    sum = OPDI_FMA(sum, z, 0.008333333333330948);
    sum = OPDI_FMA(sum, z, -0.16666666666666666);
    sum = OPDI_FMA(sum, z * r, r);
    double c = OPDI_FMA(-1.1382623647474462e-11, z, 2.087614614655861e-09);
    c = OPDI_FMA(c, z, -2.7557317271145144e-07);
    c = OPDI_FMA(c, z, 2.480158729876456e-05);
    c = OPDI_FMA(c, z, -0.0013888888888887398);
    c = OPDI_FMA(c, z, 0.041666666666666664);
    const double half = 0.5 * z, one = 1.0 - half;
    c = one + OPDI_FMA(c, z * z, 1.0 - one - half);
    return opdi_double(opdi_bits64(count & 1u ? c : sum) ^ (count & 2u) << 62);
}
OPDI_LOOPS_END
