/* Functions and pointwise formulas of complex numbers, for the processor (complex.c) and CUDA (complex.cu). */

//== arithmetic ========================================================================================================

OPDI_COMPLEX_TEXT inline bool opdi_complex_nan(opdi_complex x) { return isnan(x.re) || isnan(x.im); }
OPDI_LOOPS_BEGIN
#define OPDI_PAIR_LARGE 2.0370359763344861e90      /* 2^300 */
/* Returns a power of two s for which the squares of s * a and s * b neither overflow nor underflow to 0. */
OPDI_LOOP_TEXT double opdi_pair_scale(double a, double b) {
    const double most = fabs(a) > fabs(b) ? fabs(a) : fabs(b), square = OPDI_PAIR_LARGE * OPDI_PAIR_LARGE;
    const double down = most > OPDI_PAIR_LARGE ? 1 / square : 1;
    return most < 1 / OPDI_PAIR_LARGE ? square : down;
}
/* Returns |a + bi|, which is infinite if a part is infinite (like hypot). */
OPDI_LOOP_TEXT double opdi_pair_abs_f64(double a, double b) {
    const double scale = opdi_pair_scale(a, b), x = a * scale, y = b * scale, size = sqrt(x * x + y * y) * (1 / scale);
    return fabs(a) > DBL_MAX || fabs(b) > DBL_MAX ? INFINITY : size;
}
/* Computes 1 / (a + bi), which is 0 if a part is infinite.  Sets *real and *imaginary.  `scale` is a power of two that
   prevents overflow of squares.  Computes all alternatives before it chooses one, so that compilers make no
   branches. */
OPDI_LOOP_TEXT void opdi_pair_over(double a, double b, double scale, double *real, double *imaginary) {
    const double x = a * scale, y = b * scale, square = x * x + y * y, over = 1 / square;
    const double re = x * over * scale, re_a = copysign(0.0, a) + 0 * b, re_b = 0 * a;
    const double im = 0 - y * over * scale, im_a = 0 - 0 * b, im_b = 0 - (copysign(0.0, b) + 0 * a);
    *real = fabs(a) > DBL_MAX ? re_a : re;
    *imaginary = fabs(a) > DBL_MAX ? im_a : im;
    *real = fabs(b) > DBL_MAX ? re_b : *real;
    *imaginary = fabs(b) > DBL_MAX ? im_b : *imaginary;
    *real = square == 0 ? INFINITY : *real;
}
/* Computes (a + bi) / |a + bi|, or 0 for 0.  `scale` is a power of two that prevents overflow of squares. */
OPDI_LOOP_TEXT void opdi_pair_unit(double a, double b, double scale, double *real, double *imaginary) {
    const double x = a * scale, y = b * scale, square = x * x + y * y, size = sqrt(square);
    const double re = x / size, im = y / size;
    *real = square == 0 ? 0 : re;
    *imaginary = square == 0 ? 0 : im;
}
OPDI_LOOPS_END

OPDI_COLD_BEGIN

OPDI_INTERNAL double opdi_complex_abs(opdi_complex x) { return opdi_pair_abs_f64(x.re, x.im); }
/* Returns x / y by Smith's method, which avoids overflow of intermediate results. */
OPDI_INTERNAL opdi_complex opdi_complex_div(opdi_complex x, opdi_complex y) {
    if (opdi_complex_zero(y)) { return opdi_complex_make(x.re / fabs(y.re), x.im / fabs(y.re)); }
    if (fabs(y.re) >= fabs(y.im)) {
        const double k = y.im / y.re, below = y.re + y.im * k;
        return opdi_complex_make((x.re + x.im * k) / below, (x.im - x.re * k) / below);
    }
    const double k = y.re / y.im, below = y.re * k + y.im;
    return opdi_complex_make((x.re * k + x.im) / below, (x.im * k - x.re) / below);
}

//== functions =========================================================================================================

OPDI_COMPLEX_TEXT opdi_complex opdi_complex_exp(opdi_complex x) {
    if (x.im == 0) { return opdi_complex_make(opdi_exp_f64(x.re), x.im); }
    if (isinf(x.re) && !isfinite(x.im)) { return x.re < 0 ? opdi_complex_make(0, 0) : opdi_complex_make(x.re, NAN); }
    const bool large = x.re > 709;                /* e^re may overflow even if the products do not */
    const double size = opdi_exp_f64(large ? x.re / 2 : x.re), rest = large ? size : 1;
    return opdi_complex_make(size * opdi_cos_f64(x.im) * rest, size * opdi_sin_f64(x.im) * rest);
}
/* Returns x^2, and sets *low to the error of its rounding.  x is less than 2^400. */
OPDI_COMPLEX_TEXT double opdi_complex_exact_square(double x, double *low) {
    const double square = x * x, wide = x * 134217729, high = wide - (wide - x), rest = x - high;
    *low = ((high * high - square) + 2 * high * rest) + rest * rest;
    return square;
}
/* Returns u + a^2 + b^2, rounded about once, so that no digits are lost if the sum is nearly 0. */
OPDI_COMPLEX_TEXT double opdi_complex_plus_squares(double u, double a, double b) {
    double a_low, b_low;
    const double p = opdi_complex_exact_square(a, &a_low), q = opdi_complex_exact_square(b, &b_low);
    const double first = u + p, first_u = first - p, first_low = (u - first_u) + (p - (first - first_u));
    const double sum = first + q, sum_first = sum - q, sum_low = (first - sum_first) + (q - (sum - sum_first));
    return sum + ((first_low + sum_low) + (a_low + b_low));
}
/* Returns log|x| + i * arg(x).  The real part is log(|x|^2) / 2 or, if |x| is near 1, log1p(|x|^2 - 1) / 2. */
OPDI_INTERNAL opdi_complex opdi_complex_log(opdi_complex x) {
    const double square = x.re * x.re + x.im * x.im, angle = opdi_atan2_f64(x.im, x.re);
    if (square > 0.25 && square < 4) {
        return opdi_complex_make(opdi_log1p_f64(opdi_complex_plus_squares(-1, x.re, x.im)) / 2, angle);
    }
    if (square > 1e-280 && square < 1e300) { return opdi_complex_make(opdi_log_f64(square) / 2, angle); }
    const double size = opdi_hypot_f64(x.re, x.im);     /* NaN if a part is NaN */
    const double log_of = isinf(size) && isfinite(x.re) && isfinite(x.im)
        ? opdi_log_f64(opdi_hypot_f64(x.re / 2, x.im / 2)) + 0.69314718055994530942 : opdi_log_f64(size);
    return opdi_complex_make(log_of, angle);
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_log1p(opdi_complex x) {
    const bool inner = fabs(x.re) < 3 && fabs(x.im) < 3;
    const double size = inner ? opdi_complex_plus_squares(2 * x.re, x.re, x.im) : 3;   /* |1 + x|^2 - 1 */
    if (!(size > -0.75 && size < 3)) { return opdi_complex_log(opdi_complex_make(1 + x.re, x.im)); }
    return opdi_complex_make(opdi_log1p_f64(size) / 2, opdi_atan2_f64(x.im, 1 + x.re));
}
/* Returns e^x - 1 for x = a + bi.  The real part is e^a * cos(b) - 1 = expm1(a) * cos(b) - 2 * sin(b / 2)^2. */
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_expm1(opdi_complex x) {
    const double half = opdi_sin_f64(x.im / 2);
    if (x.im == 0) { return opdi_complex_make(opdi_expm1_f64(x.re), x.im); }
    if (!(fabs(x.re) < 700)) { return opdi_complex_sub(opdi_complex_exp(x), opdi_complex_make(1, 0)); }
    return opdi_complex_make(opdi_expm1_f64(x.re) * opdi_cos_f64(x.im) - 2 * half * half,
                           opdi_exp_f64(x.re) * opdi_sin_f64(x.im));
}
OPDI_COLD_END
OPDI_LOOPS_BEGIN
OPDI_INTERNAL opdi_complex opdi_complex_sqrt(opdi_complex x) {
    if (opdi_complex_zero(x)) { return opdi_complex_make(0, x.im); }
    if (isinf(x.im)) { return opdi_complex_make(INFINITY, x.im); }
    if (isinf(x.re) && x.re > 0) { return opdi_complex_make(x.re, isnan(x.im) ? x.im : copysign(0.0, x.im)); }
    if (isinf(x.re)) { return opdi_complex_make(isnan(x.im) ? x.im : 0, copysign(INFINITY, x.im)); }
    const bool large = fabs(x.re) > 1e300 || fabs(x.im) > 1e300;
    const double scale = large ? 0.25 : fabs(x.re) < 1e-290 && fabs(x.im) < 1e-290 ? 1e32 : 1;
    const double back = large ? 2 : scale == 1 ? 1 : 1e-16;
    const double re = x.re * scale, im = x.im * scale, root = sqrt((fabs(re) + opdi_pair_abs_f64(re, im)) / 2);
    return re >= 0 ? opdi_complex_make(back * root, back * (im / (2 * root)))
        : opdi_complex_make(back * (fabs(im) / (2 * root)), back * copysign(root, x.im));
}
OPDI_LOOPS_END
OPDI_COLD_BEGIN
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_sinh(opdi_complex x) {
    if (x.im == 0) { return opdi_complex_make(opdi_sinh_f64(x.re), x.im); }
    if (!isfinite(x.im)) { return opdi_complex_make(x.re == 0 || isinf(x.re) ? x.re : NAN, NAN); }
    const double c = opdi_cos_f64(x.im), s = opdi_sin_f64(x.im);
    if (fabs(x.re) > 709 && isfinite(x.re)) {     /* sinh(re) may overflow even if the products do not */
        const double root = opdi_exp_f64(fabs(x.re) / 2);
        return opdi_complex_make(copysign(0.5, x.re) * root * c * root, 0.5 * root * s * root);
    }
    return opdi_complex_make(x.re == 0 ? copysign(x.re, x.re * c) : opdi_sinh_f64(x.re) * c, opdi_cosh_f64(x.re) * s);
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_cosh(opdi_complex x) {
    if (x.im == 0) {
        const double sign = x.re == 0 || isnan(x.re) ? x.re : copysign(0.0, x.re);
        return opdi_complex_make(opdi_cosh_f64(x.re), sign * x.im);
    }
    if (!isfinite(x.im)) { return opdi_complex_make(isinf(x.re) ? INFINITY : NAN, x.re == 0 ? 0 : NAN); }
    const double c = opdi_cos_f64(x.im), s = opdi_sin_f64(x.im);
    if (fabs(x.re) > 709 && isfinite(x.re)) {
        const double root = opdi_exp_f64(fabs(x.re) / 2);
        return opdi_complex_make(0.5 * root * c * root, copysign(0.5, x.re) * root * s * root);
    }
    return opdi_complex_make(opdi_cosh_f64(x.re) * c, (x.re == 0 ? x.re : opdi_sinh_f64(x.re)) * s);
}
/* Returns tanh(a + bi) = (sinh(a) * cosh(a) + i * sin(b) * cos(b)) / (sinh(a)^2 + cos(b)^2). */
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_tanh(opdi_complex x) {
    if (x.im == 0) { return opdi_complex_make(opdi_tanh_f64(x.re), x.im); }
    if (isinf(x.re)) {
        return opdi_complex_make(copysign(1.0, x.re), isfinite(x.im) ? copysign(0.0, opdi_sin_f64(2 * x.im)) : 0);
    }
    if (!isfinite(x.im)) { return opdi_complex_make(x.re == 0 ? x.re : NAN, NAN); }
    const double t = opdi_sin_f64(x.im), c = opdi_cos_f64(x.im);
    if (fabs(x.re) > 20) {
        return opdi_complex_make(copysign(1.0, x.re), 4 * t * c * opdi_exp_f64(-2 * fabs(x.re)));
    }
    const double s = opdi_sinh_f64(x.re), below = s * s + c * c;
    return opdi_complex_make(s * opdi_cosh_f64(x.re) / below, t * c / below);
}
/* The next two functions return i * x and -i * x, by which trigonometric functions are computed from hyperbolic
   ones. */
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_times_i(opdi_complex x) { return opdi_complex_make(-x.im, x.re); }
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_times_minus_i(opdi_complex x) { return opdi_complex_make(x.im, -x.re); }
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_sin(opdi_complex x) {
    return opdi_complex_times_minus_i(opdi_complex_sinh(opdi_complex_times_i(x)));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_cos(opdi_complex x) { return opdi_complex_cosh(opdi_complex_times_i(x)); }
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_tan(opdi_complex x) {
    return opdi_complex_times_minus_i(opdi_complex_tanh(opdi_complex_times_i(x)));
}
OPDI_COLD_END
OPDI_LOOPS_BEGIN
/* Returns true if the squares of x's parts could overflow.  The inverse functions then use opdi_complex_log2x, which
   returns log(2 |x|). */
OPDI_COMPLEX_TEXT bool opdi_complex_large(opdi_complex x) { return fabs(x.re) > 1e150 || fabs(x.im) > 1e150; }
OPDI_COMPLEX_TEXT double opdi_complex_log2x(opdi_complex x) {
    return opdi_log_f64(opdi_hypot_f64(x.re / 2, x.im / 2)) + 2 * 0.69314718055994530942;
}
/* Returns asinh(x), computed as +-log(1 + u) with u = |x| + x^2 / (1 + sqrt(1 + x^2)), and corrected by the rounding
   error of 1 + u. */
OPDI_COMPLEX_TEXT double opdi_complex_asinh_of(double x) {
    const double size = fabs(x), square = size * size, u = size + square / (1 + sqrt(1 + square)), one = 1 + u;
    if (!(size < 1e150)) { return copysign(opdi_log_f64(size) + 0.69314718055994530942, x); }
    return copysign(opdi_log_f64(one) + (u - (one - 1)) / one, x);
}
/* The next two functions return the square roots of 1 - x and 1 + x, which Kahan's formulas for the inverse functions
   use. */
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_root_less(opdi_complex x) {
    return opdi_complex_sqrt(opdi_complex_make(1 - x.re, -x.im));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_root_more(opdi_complex x) {
    return opdi_complex_sqrt(opdi_complex_make(1 + x.re, x.im));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_asin(opdi_complex x) {
    if (opdi_complex_large(x)) {
        return opdi_complex_make(opdi_atan2_f64(x.re, fabs(x.im)), copysign(opdi_complex_log2x(x), x.im));
    }
    const opdi_complex less = opdi_complex_root_less(x), more = opdi_complex_root_more(x);
    return opdi_complex_make(opdi_atan2_f64(x.re, less.re * more.re - less.im * more.im),
                           opdi_complex_asinh_of(less.re * more.im - less.im * more.re));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_acos(opdi_complex x) {
    if (opdi_complex_large(x)) {
        return opdi_complex_make(opdi_atan2_f64(fabs(x.im), x.re), -copysign(opdi_complex_log2x(x), x.im));
    }
    const opdi_complex less = opdi_complex_root_less(x), more = opdi_complex_root_more(x);
    return opdi_complex_make(2 * opdi_atan2_f64(less.re, more.re),
                           opdi_complex_asinh_of(more.re * less.im - more.im * less.re));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_asinh(opdi_complex x) {
    return opdi_complex_times_minus_i(opdi_complex_asin(opdi_complex_times_i(x)));
}
OPDI_LOOPS_END
OPDI_COLD_BEGIN
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_acosh(opdi_complex x) {
    if (opdi_complex_large(x)) { return opdi_complex_make(opdi_complex_log2x(x), opdi_atan2_f64(x.im, x.re)); }
    const opdi_complex less = opdi_complex_sqrt(opdi_complex_make(x.re - 1, x.im)), more = opdi_complex_root_more(x);
    return opdi_complex_make(opdi_complex_asinh_of(less.re * more.re + less.im * more.im),
                           2 * opdi_atan2_f64(less.im, more.re));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_atanh(opdi_complex x) {
    const double square = x.im * x.im, size = fabs(x.re);
    if (opdi_complex_large(x) && (!opdi_complex_nan(x) || isinf(x.re) || isinf(x.im))) {
        const double scale = opdi_pair_scale(x.re, x.im), a = x.re * scale, b = x.im * scale;   /* the part of 1 / x */
        return opdi_complex_make(isinf(x.re) || isinf(x.im) ? copysign(0.0, x.re) : a / (a * a + b * b) * scale,
                               isnan(x.im) ? x.im : copysign(1.57079632679489661923, x.im));
    }
    if (size == 1 && x.im != 0 && square < 1e-200) {  /* x.im^2 may have underflowed to 0 */
        return opdi_complex_make(copysign(opdi_log_f64(2 / fabs(x.im)) / 2, x.re),
                               opdi_atan2_f64(2 * x.im, -square) / 2);
    }
    return opdi_complex_make(copysign(opdi_log1p_f64(4 * size / ((1 - size) * (1 - size) + square)) / 4, x.re),
                           opdi_atan2_f64(2 * x.im, (1 - x.re) * (1 + x.re) - square) / 2);
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_atan(opdi_complex x) {
    return opdi_complex_times_minus_i(opdi_complex_atanh(opdi_complex_times_i(x)));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_reciprocal(opdi_complex x) {
    return opdi_complex_div(opdi_complex_make(1, 0), x);
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_sigmoid(opdi_complex x) {
    const opdi_complex e = opdi_complex_exp(opdi_complex_make(-x.re, -x.im));
    return opdi_complex_reciprocal(opdi_complex_make(1 + e.re, e.im));
}
/* Returns x^y = exp(y * log(x)).  0^0 is 1, and 0^y is 0 if y has a positive real part. */
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_pow(opdi_complex x, opdi_complex y) {
    if (opdi_complex_zero(y)) { return opdi_complex_make(1, 0); }
    if (opdi_complex_zero(x) && y.re > 0) { return opdi_complex_make(0, 0); }
    return opdi_complex_exp(opdi_complex_mul(y, opdi_complex_log(x)));
}
/* Returns log(e^x + e^y), computed as h + log1p(e^(l - h)), where h is the number with the larger real part and l the
   other number.  If both real parts are +infinity, computes the exponentials themselves. */
OPDI_INTERNAL opdi_complex opdi_complex_logaddexp(opdi_complex x, opdi_complex y) {
    const bool second = x.re < y.re;
    const opdi_complex high = second ? y : x, low = second ? x : y;
    if (opdi_complex_nan(x) || opdi_complex_nan(y)) { return opdi_complex_make(NAN, NAN); }
    if (isinf(x.re) && x.re == y.re) {
        return x.re < 0 ? y
            : opdi_complex_log(opdi_complex_add(opdi_complex_exp(x), opdi_complex_exp(y)));
    }
    return opdi_complex_add(high, opdi_complex_log1p(opdi_complex_exp(opdi_complex_sub(low, high))));
}
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_sinc(opdi_complex x) {
    const opdi_complex px = opdi_complex_times(3.14159265358979323846, x);
    return opdi_complex_zero(x) ? opdi_complex_make(1, 0) : opdi_complex_div(opdi_complex_sin(px), px);
}
/* Returns x + k * (y - x), computed as a difference from y if |k| >= 0.5. */
OPDI_COMPLEX_TEXT opdi_complex opdi_complex_lerp(opdi_complex x, opdi_complex y, opdi_complex k) {
    const opdi_complex whole = opdi_complex_sub(y, x);
    if (opdi_complex_abs(k) < 0.5) { return opdi_complex_add(x, opdi_complex_mul(k, whole)); }
    return opdi_complex_sub(y, opdi_complex_mul(whole, opdi_complex_sub(opdi_complex_make(1, 0), k)));
}
OPDI_COLD_END

//== pointwise formulas ================================================================================================

/* The pointwise formulas, as in >>api:formulas: X(name, inputs, formula) with up to three inputs x, y, z and a number
   a.  OPDI_B converts a truth value to a complex number. */
#define OPDI_B(value) opdi_complex_make((value), 0)
#define OPDI_COMPLEX_FORMULAS(X) \
    X(add_scaled, 2, opdi_complex_add(x, opdi_complex_mul(a, y))) \
    X(sub_scaled, 2, opdi_complex_sub(x, opdi_complex_mul(a, y))) \
    X(cube, 1, opdi_complex_mul(opdi_complex_mul(x, x), x)) \
    X(where, 3, opdi_complex_zero(x) ? z : y) \
    X(addcmul, 3, opdi_complex_add(x, opdi_complex_mul(opdi_complex_mul(a, y), z))) \
    X(addcdiv, 3, opdi_complex_add(x, opdi_complex_div(opdi_complex_mul(a, y), z))) \
    X(logical_not, 1, OPDI_B(opdi_complex_zero(x))) \
    X(logical_and, 2, OPDI_B(!opdi_complex_zero(x) && !opdi_complex_zero(y))) \
    X(logical_or, 2, OPDI_B(!opdi_complex_zero(x) || !opdi_complex_zero(y))) \
    X(logical_xor, 2, OPDI_B(opdi_complex_zero(x) != opdi_complex_zero(y))) \
    X(isnan, 1, OPDI_B(opdi_complex_nan(x))) \
    X(isinf, 1, OPDI_B(isinf(x.re) || isinf(x.im))) \
    X(isfinite, 1, OPDI_B(isfinite(x.re) && isfinite(x.im))) \
    X(pow, 2, opdi_complex_pow(x, y)) \
    X(exp2, 1, opdi_complex_exp(opdi_complex_times(0.69314718055994530942, x))) \
    X(expm1, 1, opdi_complex_expm1(x)) \
    X(log, 1, opdi_complex_log(x)) \
    X(log2, 1, opdi_complex_times(1.44269504088896340736, opdi_complex_log(x))) \
    X(log10, 1, opdi_complex_times(0.43429448190325182765, opdi_complex_log(x))) \
    X(log1p, 1, opdi_complex_log1p(x)) \
    X(sqrt, 1, opdi_complex_sqrt(x)) \
    X(rsqrt, 1, opdi_complex_reciprocal(opdi_complex_sqrt(x))) \
    X(tan, 1, opdi_complex_tan(x)) \
    X(acos, 1, opdi_complex_acos(x)) \
    X(atan, 1, opdi_complex_atan(x)) \
    X(sinh, 1, opdi_complex_sinh(x)) \
    X(cosh, 1, opdi_complex_cosh(x)) \
    X(asinh, 1, opdi_complex_asinh(x)) \
    X(acosh, 1, opdi_complex_acosh(x)) \
    X(atanh, 1, opdi_complex_atanh(x)) \
    X(silu, 1, opdi_complex_mul(x, opdi_complex_sigmoid(x))) \
    X(sinc, 1, opdi_complex_sinc(x)) \
    X(logaddexp, 2, opdi_complex_logaddexp(x, y)) \
    X(lerp, 3, opdi_complex_lerp(x, y, z)) \
    X(lerp_scalar, 2, opdi_complex_lerp(x, y, a)) \
    X(tanh_backward, 2, opdi_complex_mul(x, opdi_complex_conj(opdi_complex_sub(opdi_complex_make(1, 0), \
                                                                             opdi_complex_mul(y, y))))) \
    X(sigmoid_backward, 2, opdi_complex_mul(x, opdi_complex_conj(opdi_complex_mul( \
        opdi_complex_sub(opdi_complex_make(1, 0), y), y))))
/* Pointwise formulas with bool or real results.  They also have faster loops, for contiguous tensors. */
#define OPDI_COMPLEX_TO_REAL(X) \
    X(eq, 2, OPDI_B(x.re == y.re && x.im == y.im)) \
    X(ne, 2, OPDI_B(x.re != y.re || x.im != y.im)) \
    X(abs, 1, opdi_complex_make(opdi_complex_abs(x), 0))
