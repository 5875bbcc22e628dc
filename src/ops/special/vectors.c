#include "../ops.h"

//== special functions in vectors ======================================================================================
//
//  These functions compute 64 numbers at a time, in loops without branches, for vector instructions.  For most
//  arguments, they return the results of the functions in functions.c.  A result of NaN means that the function in
//  functions.c must compute this number.

#if defined(OPDI_VECTORS)
OPDI_LOOPS_BEGIN
typedef void opdi_wide_fn(const double *x, double *y);
#define OPDI_BLOCK_EACH OPDI_IVDEP for (int i = 0; i < 64; i++)

/* Returns x - round(x). */
OPDI_ALWAYS double opdi_wide_rest(double x) { return x - ((x + OPDI_MAGIC_F64) - OPDI_MAGIC_F64); }
/* Sets y [64] to x * erfinv(u) / u, where 1 - u^2 = rest. */
OPDI_AVX2 static void opdi_wide_inverse(const double *x, const double *rest, double *y) {
    double w[64], root[64];
    OPDI_BLOCK_EACH { w[i] = -opdi_log1_f64(rest[i]); }
    opdi_vsqrt64(64, root, w);
    OPDI_BLOCK_EACH {
        const double inner = OPDI_POLYNOMIAL(opdi_erfinv_middle, w[i] * 0.32 - 1);
        const double tail = OPDI_POLYNOMIAL(opdi_erfinv_tail, root[i] * 0.8 - 3);
        const double ratio = w[i] < 6.25 ? inner : tail;
        y[i] = root[i] < 5 ? x[i] * ratio : (double)NAN;
    }
}
OPDI_AVX2 static void opdi_wide_erfinv(const double *x, double *y) {
    double rest[64];
    OPDI_BLOCK_EACH { rest[i] = (1 - fabs(x[i])) * (1 + fabs(x[i])); }
    opdi_wide_inverse(x, rest, y);
}
OPDI_AVX2 static void opdi_wide_ndtri(const double *x, double *y) {
    double rest[64], twice[64];
    OPDI_BLOCK_EACH {
        rest[i] = 4 * x[i] * (1 - x[i]);
        twice[i] = (2 * x[i] - 1) * 1.4142135623730951;
    }
    opdi_wide_inverse(twice, rest, y);
}
OPDI_AVX2 static void opdi_wide_erfcx(const double *x, double *y) {
    OPDI_BLOCK_EACH {
        const double size = fabs(x[i]), least = size < 26 ? size : 26.0, inner = x[i] < 0 ? least : 0.0;
        const double square = inner * inner;
        const double most = 2 * opdi_exp1_f64(square) * (1 + OPDI_FMA(inner, inner, -square));
        const double rest = opdi_erfcx1_f64(size), value = x[i] < 0 ? most - rest : rest;
        y[i] = ((x[i] >= -26) & (size < 1e150)) ? value : (double)NAN;
    }
}
/* Computes log_ndtr for 64 numbers x, with size = |x| / sqrt(2) and part = erfcx(size) exp(-size^2) / 2, which is
   ndtr(-|x|).  For x < -1, the result is log(erfcx(size) / 2) - size^2.  For -1 <= x < 0, it is log(part).  For x >= 0,
   it is log(1 - part), corrected by the rounding error of 1 - part. */
OPDI_AVX2 static void opdi_wide_log_ndtr(const double *x, double *y) {
    OPDI_BLOCK_EACH {
        const double root = fabs(x[i]) * 0.70710678118654752440, size = root < 1e8 ? root : 1e8;
        const double scaled = opdi_erfcx1_f64(size) * 0.5, part = scaled * opdi_exp_square1_f64(size);
        const double rest = x[i] < 0 ? 0.0 : part, one = 1 - rest, low = x[i] < 0 ? part : one;
        const double of = x[i] < -1 ? scaled : low, lost = ((1 - one) - rest) / one;
        const double value = opdi_log1_f64(of) + (x[i] < -1 ? -size * size : lost);
        y[i] = root < 1e8 ? value : (double)NAN;
    }
}
OPDI_AVX2 static void opdi_wide_entr(const double *x, double *y) {
    OPDI_BLOCK_EACH { y[i] = x[i] > 0 ? -x[i] * opdi_log1_f64(x[i]) : (double)NAN; }
}
OPDI_AVX2 static void opdi_wide_spherical_j0(const double *x, double *y) {
    OPDI_BLOCK_EACH {
        const double size = fabs(x[i]), value = opdi_trig1_f64(size, 0) / (size > 1e-8 ? size : 1.0);
        y[i] = ((size < OPDI_TRIG_MAX_F64) & (size > 1e-8)) ? value : (double)NAN;
    }
}
OPDI_AVX2 static void opdi_wide_i1(const double *x, double *y) {
    double inverse[64], size[64];
    OPDI_BLOCK_EACH { size[i] = fabs(x[i]) > 8 ? fabs(x[i]) : 8; }
    opdi_vrsqrt64(64, inverse, size);
    OPDI_BLOCK_EACH {
        const double inner = fabs(x[i]) > 8 ? 8.0 : x[i], root = opdi_exp1_f64(size[i] * 0.5);
        const double low = inner * 0.5 * OPDI_POLYNOMIAL(opdi_i1_series, inner * inner * 0.015625);
        const double part = inverse[i] * inverse[i];
        const double high = root * (OPDI_POLYNOMIAL(opdi_i1_large, part * 16 - 1) * inverse[i]) * root;
        y[i] = fabs(x[i]) > 8 ? x[i] < 0 ? -high : high : low;
    }
}
/* Computes lgamma(|x|) for 64 numbers.  Below 3.5, |x| is shifted to the neighbourhood of 2, where lgamma is a
   polynomial, and the log of the factor gamma(|x|) / gamma(shifted) is added.  From 3.5 to 8, lgamma is the Stirling
   series at |x| + 8, minus the log of the product |x| (|x| + 1) .. (|x| + 7).  From 8 on, it is the Stirling series at
   |x|.

   If `below` is true, x may be negative, and the result is lgamma(x), computed by reflection with the log of |x| *
   |sin(pi x)| / pi.  The result for a negative x is NaN if x is between -20 and -2 and the absolute value of the result
   is below `least` (digits were lost), or if x is at or below -1000000.  For numbers very close to 0, and for negative
   integers, it is NaN, too.

   If `single` is true, fewer terms are used, and the results are accurate to 1e-11, for floats. */
OPDI_ALWAYS void opdi_wide_lgamma_body(const double *x, double *y, bool below, bool single, double least) {
    OPDI_BLOCK_EACH {
        const double size = fabs(x[i]), pairs = size * (size + 7), inner = pairs + 6;
        const double all = pairs * inner * ((pairs + 10) * (pairs + 12));
        const bool table = size < 3.5, mid = size < 8;
        const double less = size < 0.5 ? 0 : size < 1.5 ? 1 : size < 2.5 ? 2 : 3;
        const double first = size < 0.5 ? 1 + size : 1;
        const double second = less == 2 ? 1 : less == 3 ? size - 1 : size * first;
        const double t = table ? size - less : 0.0, u = table ? second : mid ? all : 1.0;
        const double sign = less == 3 ? table ? -1.0 : 1.0 : 1.0;
        const double shifted = table ? 8.0 : mid ? size + 8 : size, inverse = 1 / shifted;
        const double rest = opdi_polynomial(opdi_stirling, single ? 5 : 9, inverse * inverse) * inverse +
            0.91893853320467274;
        const double outer = (shifted - 0.5) * opdi_log_normal_f64(shifted) - shifted + rest;
        const double part = table ? t * opdi_polynomial(opdi_gamma_near_two, single ? 15 : 19, 2 * t) : outer;
        if (!below) {
            y[i] = u > 1e-300 ? part - sign * opdi_log_normal_f64(u) : (double)NAN;
            continue;
        }
        const double away = opdi_wide_rest(x[i] < -1000000 ? -1000000.0 : x[i]), angle = OPDI_PI * away;
        const double sine = fabs(away) * opdi_polynomial(opdi_sine_series, single ? 8 : 11, angle * angle) * size;
        const double over = x[i] < 0 ? sine : 1.0, of = sign < 0 ? u * over : u / over;
        const double log_of = sign * opdi_log_normal_f64(of), value = x[i] < 0 ? log_of - part : part - log_of;
        const bool zero = (x[i] < -2) & (x[i] > -20) & (fabs(value) < least);
        const bool known = (x[i] > -1000000) & (size > 1e-17) & (over > 1e-60) & !zero;
        y[i] = known ? value : (double)NAN;
    }
}
OPDI_ALWAYS void opdi_wide_lgamma_any(const double *x, double *y, bool below, bool single, double least) {
    if (single) {
        below ? opdi_wide_lgamma_body(x, y, true, true, least) : opdi_wide_lgamma_body(x, y, false, true, least);
        return;
    }
    below ? opdi_wide_lgamma_body(x, y, true, false, least) : opdi_wide_lgamma_body(x, y, false, false, least);
}
OPDI_AVX2 static void opdi_wide_lgamma_avx2(const double *x, double *y, bool below, bool single, double least) {
    opdi_wide_lgamma_any(x, y, below, single, least);
}
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_wide_lgamma_avx512(const double *x, double *y, bool below, bool single, double least) {
    opdi_wide_lgamma_any(x, y, below, single, least);
}
#endif
/* Computes digamma for 64 numbers.  If z is below 10, uses digamma(z + 10) - over / under, where over / under =
   sum_k 1 / (z + k) for k < 10.  Terms k and 9 - k together have the numerator 2 z + 9. */
OPDI_AVX2 static void opdi_wide_digamma(const double *x, double *y) {
    OPDI_BLOCK_EACH {
        const double z = x[i] < 0 ? 1 - x[i] : x[i], pairs = z * (z + 9);
        double over = 2 * pairs + 8, under = pairs * (pairs + 8);
        over = over * (pairs + 14) + under;
        under *= pairs + 14;
        over = over * (pairs + 18) + under;
        under *= pairs + 18;
        over = over * (pairs + 20) + under;
        under *= pairs + 20;
        const double up = z < 10 ? z + 10 : z, less = z < 10 ? (2 * z + 9) * over / under : 0.0;
        const double inverse = 1 / up, square = inverse * inverse;
        const double series = 0.5 * inverse + square * OPDI_POLYNOMIAL(opdi_digamma_series, square);
        const double value = opdi_log1_f64(up) - series - less, rest = opdi_wide_rest(x[i]);
        const double angle = x[i] < 0 ? OPDI_PI * rest : 1.0;
        const double turn = OPDI_PI * opdi_trig1_f64(angle, 1) / opdi_trig1_f64(angle, 0);
        const double both = x[i] < 0 ? value - turn : value;
        y[i] = ((x[i] > -1000000) & (x[i] < 1e300) & (x[i] != 0) & (angle != 0)) ? both : (double)NAN;
    }
}
/* Returns the Bessel function J or, if `second` is true, Y, of order 0 or 1, at outer > 8.  `inverse` is 1 /
   sqrt(outer).  For x up to 8, opdi_wide_near does the same. */
OPDI_ALWAYS double opdi_wide_hankel(double outer, double inverse, int order, bool second) {
    const double part = 8 * (inverse * inverse), at = 2 * part * part - 1;
    const double sine = opdi_trig1_f64(outer, 0), cosine = opdi_trig1_f64(outer, 1);
    const double less = sine - cosine, more = sine + cosine;
    const double p = order ? OPDI_POLYNOMIAL(opdi_p1_large, at) : OPDI_POLYNOMIAL(opdi_p0_large, at);
    const double q = part * (order ? OPDI_POLYNOMIAL(opdi_q1_large, at) : OPDI_POLYNOMIAL(opdi_q0_large, at));
    const double wave = order == 0 ? second ? p * less + q * more : p * more - q * less
        : second ? q * less - p * more : p * less + q * more;
    return wave * 0.56418958354775628695 * inverse;
}
OPDI_ALWAYS double opdi_wide_near(double x, int order, bool second) {
    const double square = x * x, at = square * 0.03125 - 1;
    const double zeros = order ? opdi_j1_zeros(fabs(x)) : opdi_j0_zeros(fabs(x));
    const double first = zeros * (order ? x * OPDI_POLYNOMIAL(opdi_j1_small, at) : OPDI_POLYNOMIAL(opdi_j0_small, at));
    if (!second) { return first; }
    const double of = order ? x : x * OPDI_Y0_INVERSE;
    const double less = order ? 0.0 : (OPDI_FMA(x, OPDI_Y0_INVERSE, -of) + x * 1.0518920173996795e-16) / of;
    const double product = (opdi_log1_f64(of) + less) * first;
    return order ? 2 / OPDI_PI * (product - 1 / x) + x * OPDI_POLYNOMIAL(opdi_y1_small, at)
        : 2 / OPDI_PI * product + opdi_y0_zero(x) * OPDI_POLYNOMIAL(opdi_y0_small, at);
}
OPDI_ALWAYS void opdi_wide_bessel(const double *x, double *y, int order, bool second) {
    double outer[64], inverse[64];
    OPDI_BLOCK_EACH { outer[i] = fabs(x[i]) > 8 ? fabs(x[i]) : 8.0; }
    opdi_vrsqrt64(64, inverse, outer);
    OPDI_BLOCK_EACH {
        const double size = fabs(x[i]), inner = size > 8 ? 8.0 : size;
        const double wave = opdi_wide_hankel(outer[i], inverse[i], order, second);
        const double low = opdi_wide_near(inner, order, second), value = size > 8 ? wave : low;
        const double with_sign = order && !second ? x[i] < 0 ? -value : value : value;
        const bool known = (size < OPDI_TRIG_MAX_F64) & (second ? x[i] > 1e-290 : size > 1e-8);
        y[i] = known ? with_sign : (double)NAN;
    }
}
OPDI_AVX2 static void opdi_wide_j0(const double *x, double *y) { opdi_wide_bessel(x, y, 0, false); }
OPDI_AVX2 static void opdi_wide_j1(const double *x, double *y) { opdi_wide_bessel(x, y, 1, false); }
OPDI_AVX2 static void opdi_wide_y0(const double *x, double *y) { opdi_wide_bessel(x, y, 0, true); }
OPDI_AVX2 static void opdi_wide_y1(const double *x, double *y) { opdi_wide_bessel(x, y, 1, true); }
/* Sets y [64] to x^a exp(-x) / gamma(a + 1). */
OPDI_AVX2 static void opdi_wide_prefactor(const double *a, const double *x, double *y) {
    static const double inverses[18] = {
        1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23,
        1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31, 1.0 / 33, 1.0 / 35, 1.0 / 37};
    double next[64], gamma[64], root[64], size[64];
    OPDI_BLOCK_EACH {
        next[i] = a[i] < 10 ? a[i] + 1 : 2.0;
        size[i] = a[i] < 10 ? 1.0 : 2 * OPDI_PI * a[i];
    }
    opdi_wide_lgamma_avx2(next, gamma, false, false, 0);
    opdi_vrsqrt64(64, root, size);
    OPDI_BLOCK_EACH {
        const double away = (x[i] - a[i]) / a[i], r = away / (2 + away), square = r * r, over = 1 / a[i];
        const double logs = opdi_log1_f64(opdi_select_f64(a[i] < 10, x[i], x[i] / a[i]));
        const double series = 2 * (r * square) * OPDI_POLYNOMIAL(inverses, square) - r * away;
        const double less = opdi_select_f64(fabs(away) < 0.5, series, logs - away);
        const double high = a[i] * less - OPDI_POLYNOMIAL(opdi_stirling, over * over) * over;
        const double low = a[i] * logs - x[i] - gamma[i];
        y[i] = opdi_exp1_f64(opdi_select_f64(a[i] < 10, low, high)) * root[i];
    }
}
/* Computes P(a, x) divided by x^a exp(-x) / gamma(a + 1) for `count` numbers, by the power series, 16 numbers at a
   time.  `least` is the size, relative to the sum, below which terms are left out. */
OPDI_AVX2 static void opdi_wide_series(const double *a, const double *x, double *y, int count, double least) {
    for (int from = 0; from < count; from += 16) {
        double sum[16], term[16], at[16];
        uint64_t open = 1;
        for (int j = 0; j < 16; j++) {
            sum[j] = term[j] = 1;
            at[j] = a[from + j];
        }
        for (int n = 0; n < 500 && open; n++) {
            for (int k = 0; k < 4; k++) {
                for (int j = 0; j < 16; j++) {
                    at[j] += 1;
                    term[j] *= x[from + j] / at[j];
                    sum[j] += term[j];
                }
            }
            open = 0;
            for (int j = 0; j < 16; j++) {        /* finished elements do not change any more */
                open |= term[j] > sum[j] * least ? 1 : 0;
                term[j] = term[j] > sum[j] * least ? term[j] : 0;
            }
        }
        for (int j = 0; j < 16; j++) { y[from + j] = open ? (double)NAN : sum[j]; }
    }
}
/* Computes Q(a, x) divided by a x^a exp(-x) / gamma(a + 1) for `count` numbers, as the convergents over / under of a
   continued fraction.  over and under are scaled down before they overflow.  Stops when the relative change is below
   `least`. */
OPDI_AVX2 static void opdi_wide_fraction(const double *a, const double *x, double *y, int count, double least) {
    for (int from = 0; from < count; from += 16) {
        double over[16], under[16], over_last[16], under_last[16], base[16], value[16], done[16] = {0};
        uint64_t open = 1;
        for (int j = 0; j < 16; j++) {
            base[j] = under[j] = x[from + j] + 1 - a[from + j];
            over_last[j] = value[j] = 0;
            under_last[j] = over[j] = 1;
        }
        for (int n = 1; n < 2000 && open; n += 4) {
            for (int k = n; k < n + 4; k++) {
                for (int j = 0; j < 16; j++) {
                    base[j] += 2;
                    const double part = -k * (k - a[from + j]), next = base[j] * over[j] + part * over_last[j];
                    const double below = base[j] * under[j] + part * under_last[j];
                    over_last[j] = over[j];
                    under_last[j] = under[j];
                    over[j] = next;
                    under[j] = below;
                }
            }
            open = 0;
            for (int j = 0; j < 16; j++) {
                const double scale = fabs(under[j]) > 1e100 ? 1e-100 : 1.0;
                over[j] *= scale;
                under[j] *= scale;
                over_last[j] *= scale;
                under_last[j] *= scale;
                const double whole = over[j] * under_last[j];
                const bool more = fabs(whole - over_last[j] * under[j]) > fabs(whole) * least;
                value[j] = done[j] > 0 ? value[j] : over[j] / under[j];
                done[j] = more ? done[j] : 1.0;
                open |= done[j] > 0 ? 0 : 1;
            }
        }
        for (int j = 0; j < 16; j++) { y[from + j] = open ? (double)NAN : value[j]; }
    }
}
/* Computes Q(a, x) if `upper` is true, else P(a, x), for 64 numbers.  Separates the numbers for the series from
   the numbers for the continued fraction.  `least` has the same meaning as in opdi_wide_series. */
static void opdi_wide_gamma_part(const double *a, const double *x, double *y, bool upper, double least) {
    double shapes[2][64], places[2][64], parts[64], front[64];
    int where[2][64], count[2] = {0, 0};
    opdi_wide_prefactor(a, x, front);
    for (int i = 0; i < 64; i++) {
        const int kind = x[i] < a[i] + 1 || x[i] <= 1.5 ? 0 : 1;
        const bool known = a[i] > 0 && a[i] <= 200 && x[i] > 0 && x[i] < 10000;
        y[i] = NAN;
        if (!known || (upper && x[i] <= 1.5 && a[i] <= 1.5)) { continue; }
        shapes[kind][count[kind]] = a[i];
        places[kind][count[kind]] = x[i];
        where[kind][count[kind]++] = i;
    }
    for (int kind = 0; kind < 2; kind++) {
        for (int j = count[kind]; j % 16 != 0; j++) {
            shapes[kind][j] = 1;
            places[kind][j] = 1 + kind;
        }
        (kind ? opdi_wide_fraction : opdi_wide_series)(shapes[kind], places[kind], parts, count[kind], least);
        for (int j = 0; j < count[kind]; j++) {
            const int i = where[kind][j];
            const double whole = parts[j] * front[i] * (kind ? a[i] : 1), value = whole > 1 ? 1 : whole;
            y[i] = kind == (int)upper ? value : 1 - value;
        }
    }
}
/* The kinds of orthogonal polynomials that opdi_wide_recursion computes, for degrees 0 to 31. */
enum { OPDI_HERMITE_H, OPDI_HERMITE_HE, OPDI_LAGUERRE, OPDI_LEGENDRE, OPDI_CHEBYSHEV };
/* Computes the polynomial of degree k + 1 from `value`, the polynomial of degree k, and `last`, the polynomial of
   degree k - 1.  For Chebyshev polynomials, x is twice the argument. */
#define OPDI_NEXT_DEGREE(kind, x, value, last, k) \
    ((kind) == OPDI_CHEBYSHEV ? (x) * (value) - (last) \
     : (kind) == OPDI_HERMITE_H ? 2 * ((x) * (value) - (k) * (last)) \
     : (kind) == OPDI_HERMITE_HE ? (x) * (value) - (k) * (last) \
     : (kind) == OPDI_LAGUERRE ? ((2 * (k) + 1 - (x)) * (value) - (k) * (last)) / ((k) + 1) \
     : ((2 * (k) + 1) * (x) * (value) - (k) * (last)) / ((k) + 1))
#if defined(OPDI_NEON)
typedef opdi_v2d opdi_degrees;
typedef opdi_v2w opdi_degree_bits;
#define OPDI_DEGREES_ONE {1, 1}
#elif defined(OPDI_PORTABLE)
typedef opdi_v4d opdi_degrees;
typedef opdi_v4w opdi_degree_bits;
#define OPDI_DEGREES_ONE {1, 1, 1, 1}
#else
typedef opdi_v8d opdi_degrees;
typedef opdi_v8w opdi_degree_bits;
#define OPDI_DEGREES_ONE {1, 1, 1, 1, 1, 1, 1, 1}
#endif
/* Sets y[i] to the polynomial of degree degrees[i] at x[i], or to NaN if the degree is negative or not below `most`.
   first[i] is the polynomial of degree 1.  Eight numbers at a time (two with NEON) stay in registers, and are computed
   up to the highest of all degrees. */
OPDI_ALWAYS void opdi_wide_recursion(const double *x, const double *first, const double *degrees, double *y, int kind,
                                     double most) {
    double n[64], tops[8] = {0}, top = 0;
    OPDI_BLOCK_EACH {
        const bool known = (degrees[i] >= 0) & (degrees[i] < most);
        n[i] = known ? (double)(int)(known ? degrees[i] : 0.0) : 0.0;
        y[i] = known ? n[i] > 0 ? first[i] : 1.0 : (double)NAN;
    }
    for (int i = 0; i < 64; i += 8) {
        OPDI_IVDEP for (int j = 0; j < 8; j++) { tops[j] = n[i + j] > tops[j] ? n[i + j] : tops[j]; }
    }
    for (int j = 0; j < 8; j++) { top = tops[j] > top ? tops[j] : top; }
    for (int i = 0; i < 64; i += (int)(sizeof(opdi_degrees) / sizeof(double))) {
        const opdi_degrees at = *(const opdi_degrees *)(const void *)(x + i),
            degree = *(const opdi_degrees *)(const void *)(n + i);
        opdi_degrees last = OPDI_DEGREES_ONE, step = last, value = *(const opdi_degrees *)(const void *)(first + i);
        opdi_degrees found = *(const opdi_degrees *)(const void *)(y + i);
        for (double k = 1; k < top; k++) {
            const opdi_degrees next = OPDI_NEXT_DEGREE(kind, at, value, last, k);
            step = step + 1;
            const opdi_degree_bits mask = (opdi_degree_bits)(degree == step);
            found = (opdi_degrees)(((opdi_degree_bits)next & mask) | ((opdi_degree_bits)found & ~mask));
            last = value;
            value = next;
        }
        *(opdi_degrees *)(void *)(y + i) = found;
    }
}
OPDI_ALWAYS void opdi_wide_orthogonal(const double *x, const double *n, double *y, int kind) {
    double first[64];
    OPDI_BLOCK_EACH { first[i] = kind == OPDI_HERMITE_H ? 2 * x[i] : kind == OPDI_LAGUERRE ? 1 - x[i] : x[i]; }
    opdi_wide_recursion(x, first, n, y, kind, 32);
}
/* Sets y [64] to r[n], where r[k + 1] = 2 x r[k] - r[k - 1], r[0] = 1 and r[1] = slope * x + less.  If `shifted` is
   true, 2 x - 1 replaces x.  Degrees n from `most` on give NaN. */
OPDI_ALWAYS void opdi_wide_chebyshev(const double *x, const double *n, double *y, double slope, double less,
                                     bool shifted, double most) {
    double twice[64], first[64];
    OPDI_BLOCK_EACH {
        const double at = shifted ? 2 * x[i] - 1 : x[i];
        twice[i] = 2 * at;
        first[i] = slope * at + less;
    }
    opdi_wide_recursion(twice, first, n, y, OPDI_CHEBYSHEV, most);
}
#define OPDI_WIDE_ORTHOGONAL(target, level) \
    target static void opdi_wide_orthogonal_##level(const double *x, const double *n, double *y, int kind) { \
        switch (kind) { \
        case OPDI_HERMITE_H: opdi_wide_orthogonal(x, n, y, OPDI_HERMITE_H); break; \
        case OPDI_HERMITE_HE: opdi_wide_orthogonal(x, n, y, OPDI_HERMITE_HE); break; \
        case OPDI_LAGUERRE: opdi_wide_orthogonal(x, n, y, OPDI_LAGUERRE); break; \
        default: opdi_wide_orthogonal(x, n, y, OPDI_LEGENDRE); break; \
        } \
    } \
    target static void opdi_wide_chebyshev_##level(const double *x, const double *n, double *y, double slope, \
                                                   double less, bool shifted, double most) { \
        opdi_wide_chebyshev(x, n, y, slope, less, shifted, most); \
    }
OPDI_WIDE_ORTHOGONAL(OPDI_AVX2, avx2)
#if defined(OPDI_X86)
OPDI_WIDE_ORTHOGONAL(OPDI_AVX512, avx512)
#endif
#undef OPDI_WIDE_ORTHOGONAL
#undef OPDI_NEXT_DEGREE
OPDI_LOOPS_END
/* Replaces each NaN in y [64] by the result of the scalar function of x or, if it has two arguments, of x and z. */
static void opdi_wide_fallback(const opdi_special *function, const double *x, const double *z, double *y) {
    double odd[8] = {0}, any = 0;                 /* `any` stays 0 if all numbers are finite */
    for (int i = 0; i < 64; i += 8) {
        for (int j = 0; j < 8; j++) { odd[j] += y[i + j] - y[i + j]; }
    }
    for (int j = 0; j < 8; j++) { any += odd[j]; }
    if (any == 0) { return; }
    for (int i = 0; i < 64; i++) {
        if (y[i] != y[i]) { y[i] = function->two ? function->two(x[i], z[i]) : function->one(x[i]); }
    }
}
/* The Chebyshev polynomials that have a vector form.  In double, degrees from `most` on are computed by the scalar
   function, which uses sines and cosines, as PyTorch does. */
static const struct {
    double (*two)(double, double);
    double slope, less, most;
    bool shifted;
} opdi_wide_chebyshevs[8] = {
    {opdi_special_chebyshev_t, 1, 0, 7, false}, {opdi_special_chebyshev_u, 2, 0, 9, false},
    {opdi_special_chebyshev_v, 2, -1, 9, false}, {opdi_special_chebyshev_w, 2, 1, 9, false},
    {opdi_special_shifted_t, 1, 0, 7, true}, {opdi_special_shifted_u, 2, 0, 9, true},
    {opdi_special_shifted_v, 2, -1, 9, true}, {opdi_special_shifted_w, 2, 1, 9, true}};
/* If `function` is in opdi_wide_chebyshevs, computes y [64] and returns true.  Otherwise returns false. */
static bool opdi_wide_chebyshev_run(const opdi_special *function, const double *x, const double *z, double *y,
                                    bool single) {
    for (int k = 0; function->two && k < 8; k++) {
        if (opdi_wide_chebyshevs[k].two != function->two) { continue; }
        OPDI_WIDEST(opdi_cpu_level(), opdi_wide_chebyshev_avx512, opdi_wide_chebyshev_avx2)(
            x, z, y, opdi_wide_chebyshevs[k].slope, opdi_wide_chebyshevs[k].less, opdi_wide_chebyshevs[k].shifted,
            single ? 32 : opdi_wide_chebyshevs[k].most);
        opdi_wide_fallback(function, x, z, y);
        return true;
    }
    return false;
}
static const struct { double (*two)(double, double); int kind; } opdi_wide_polynomials[4] = {
    {opdi_special_hermite_h, OPDI_HERMITE_H}, {opdi_special_hermite_he, OPDI_HERMITE_HE},
    {opdi_special_laguerre_l, OPDI_LAGUERRE}, {opdi_special_legendre_p, OPDI_LEGENDRE}};
static const struct { double (*one)(double); opdi_wide_fn *wide; } opdi_wide_functions[] = {
    {opdi_special_erfinv, opdi_wide_erfinv}, {opdi_special_ndtri, opdi_wide_ndtri},
    {opdi_special_erfcx, opdi_wide_erfcx}, {opdi_special_log_ndtr, opdi_wide_log_ndtr},
    {opdi_special_entr, opdi_wide_entr}, {opdi_special_spherical_j0, opdi_wide_spherical_j0},
    {opdi_special_i1, opdi_wide_i1},
    {opdi_special_digamma, opdi_wide_digamma}, {opdi_special_j0, opdi_wide_j0}, {opdi_special_j1, opdi_wide_j1},
    {opdi_special_y0, opdi_wide_y0}, {opdi_special_y1, opdi_wide_y1}};
/* If `function` has a vector form or is igamma or igammac, computes y [64] and returns true.  Otherwise returns false.
   `least` has the same meaning as in opdi_wide_series. */
static bool opdi_wide_run(const opdi_special *function, const double *x, const double *z, double *y, double least) {
    const bool upper = function->two == opdi_special_igammac, single = least > 1e-12;
    size_t at = 0;
    const size_t count = sizeof opdi_wide_functions / sizeof *opdi_wide_functions;
    if (upper || function->two == opdi_special_igamma) {
        opdi_wide_gamma_part(x, z, y, upper, least);
        opdi_wide_fallback(function, x, z, y);
        return true;
    }
    if (function->one == opdi_special_lgamma) {
        bool below = false;
        for (int i = 0; i < 64; i++) { below = below || x[i] < 0; }
        OPDI_WIDEST(opdi_cpu_level(), opdi_wide_lgamma_avx512, opdi_wide_lgamma_avx2)
            (x, y, below, single, single ? 1e-3 : 0.05);
        opdi_wide_fallback(function, x, z, y);
        return true;
    }
    if (opdi_wide_chebyshev_run(function, x, z, y, single)) { return true; }
    for (int k = 0; function->two && k < 4; k++) {
        if (opdi_wide_polynomials[k].two != function->two) { continue; }
        OPDI_WIDEST(opdi_cpu_level(), opdi_wide_orthogonal_avx512, opdi_wide_orthogonal_avx2)(
            x, z, y, opdi_wide_polynomials[k].kind);
        opdi_wide_fallback(function, x, z, y);
        return true;
    }
    while (at < count && opdi_wide_functions[at].one != function->one) { at++; }
    if (at == count || !function->one) { return false; }
    opdi_wide_functions[at].wide(x, y);
    opdi_wide_fallback(function, x, z, y);
    return true;
}
/* Reads `rows` numbers (at most 64), from number `at` of `from` on, as doubles into x [64].  `from` has floats if
   `single` is true, else doubles.  The rest of x is filled with the first number. */
static void opdi_wide_read(const void *from, int64_t at, int64_t rows, bool single, double *x) {
    const float *singles = (const float *)from + (single ? at : 0);
    if (!single) { memcpy(x, (const double *)from + at, (size_t)rows * sizeof *x); }
    else if (rows == 64) { for (int i = 0; i < 64; i++) { x[i] = singles[i]; } }
    else { for (int64_t i = 0; i < rows; i++) { x[i] = singles[i]; } }
    for (int64_t i = rows; i < 64; i++) { x[i] = x[0]; }
}
#endif
/* Computes a function of `count` elements with vector instructions: data[0] = function(data[1]) or, if `two` is
   true, function(data[1], data[2]).  If `single` is true, the data are floats, else doubles.  Returns false if the
   function has no vector form. */
OPDI_INTERNAL bool opdi_wide_all(const opdi_special *function, void *const *data, int64_t count, bool two,
                                 bool single) {
#if defined(OPDI_VECTORS)
    double x[64], z[64], y[64];
    bool known = opdi_cpu_level() > 0 && two == (function->two != NULL);
    for (int64_t at = 0, rows; known && at < count; at += rows) {
        rows = OPDI_MIN(count - at, (int64_t)64);
        opdi_wide_read(data[1], at, rows, single, x);
        if (two) { opdi_wide_read(data[2], at, rows, single, z); }
        known = opdi_wide_run(function, x, z, y, single ? 1e-9 : 4e-16);
        if (!known) { return false; }
        if (!single) { memcpy((double *)data[0] + at, y, (size_t)rows * sizeof *y); }
        float *out = (float *)data[0] + (single ? at : 0);
        if (single && rows == 64) { for (int i = 0; i < 64; i++) { out[i] = (float)y[i]; } }
        for (int64_t i = 0; single && rows < 64 && i < rows; i++) { out[i] = (float)y[i]; }
    }
    return known;
#else
    (void)function;
    (void)data;
    (void)count;
    (void)two;
    (void)single;
    return false;
#endif
}
