/* Derivatives of random numbers by the parameters of their distribution, for the processor (cards.c) and CUDA
   (special.cu). */

/* Returns dx / da for a random number x of the gamma distribution with shape a, for x below a.  Uses P(a, x) / p(x)
   = x / a * sum_n x^n / ((a + 1) .. (a + n)), where p = dP/dx. */
OPDI_SHARED_TEXT double opdi_gamma_moves_low(double a, double x) {
    double term = 1, sum = 1, slope = 0, inverses = 0;
    for (int n = 1; n < 1 << 24 && term > 1e-18 * sum; n++) {
        term *= x / (a + n);
        inverses += 1 / (a + n);
        sum += term;
        slope -= term * inverses;
    }
    return -x / a * (sum * (opdi_log_f64(x) - opdi_special_digamma(a + 1)) + slope);
}
/* Returns dx / da for a random number x of the gamma distribution with shape a, for x above a.  Uses (1 - P(a, x)) /
   p(x) = x h with the continued fraction h = 1/(x+1-a - 1(1-a)/(x+3-a - ...)).  Computes h by Lentz's method,
   together with the derivatives of all terms by a (their names end in _a). */
OPDI_SHARED_TEXT double opdi_gamma_moves_high(double a, double x) {
    double base = x + 1 - a, up = 1e300, up_a = 0, down = 1 / base, down_a = down * down, h = down, h_a = down_a;
    for (int n = 1; n < 1 << 24; n++) {
        const double part = -n * (n - a);
        base += 2;
        const double over = part * down + base, over_a = n * down + part * down_a - 1;
        const double next = base + part / up, next_a = -1 + n / up - part * up_a / (up * up);
        down = 1 / over;
        down_a = -over_a * down * down;
        up = next;
        up_a = next_a;
        const double step = up * down, step_a = up_a * down + up * down_a;
        h_a = h_a * step + h * step_a;
        h *= step;
        if (fabs(step - 1) < 1e-16 && fabs(step_a) * h < 1e-16 * fabs(h_a)) { break; }
    }
    return x * (h * (opdi_log_f64(x) - opdi_special_digamma(a)) + h_a);
}
/* Returns dx / da for a random number x of the gamma distribution with a large shape a, at the fixed quantile w of
   the normal distribution.  Uses Cornish and Fisher's series x = a + w sqrt(a) + (w^2 - 1) / 3 + (w^3 - 7 w) / (36
   sqrt(a)) - (3 w^4 + 7 w^2 - 16) / (810 a) + ... */
OPDI_SHARED_TEXT double opdi_gamma_moves_large(double a, double x) {
    const double root = sqrt(a);
    double w = (x - a) / root;
    for (int i = 0; i < 20; i++) {
        const double at = a + w * root + (w * w - 1) / 3 + (w * w - 7) * w / (36 * root) -
            (3 * w * w * w * w + 7 * w * w - 16) / (810 * a);
        w -= (at - x) / (root + 2 * w / 3 + (3 * w * w - 7) / (36 * root));
    }
    const double last = (3 * w * w * w * w + 7 * w * w - 16) / (810 * a * a);
    return 1 + w / (2 * root) - (w * w - 7) * w / (72 * a * root) + last;
}
OPDI_SHARED_TEXT double opdi_special_gamma_moves(double a, double x) {
    if (!(a > 0) || !(x > 0) || isinf(a) || isinf(x)) { return x == 0 && a > 0 ? 0 : NAN; }
    if (a > 1e6 && fabs(x - a) < fmax(20 * sqrt(a), 0.01 * a)) { return opdi_gamma_moves_large(a, x); }
    return x <= a + 1 ? opdi_gamma_moves_low(a, x) : opdi_gamma_moves_high(a, x);
}
/* Returns sum_n ((total)_n / (a + 1)_n) * x^n, where (z)_n = z (z + 1) .. (z + n - 1).  Sets *slope to the derivative
   of the sum by a, where total = a + b.  If `both` is false, the a in the denominator counts as a constant. */
OPDI_SHARED_TEXT double opdi_beta_sum(double a, double total, double x, bool both, double *slope) {
    double term = 1, sum = 1, inverses = 0;
    *slope = 0;
    for (int n = 1; n < 1 << 24 && term > 1e-18 * sum; n++) {
        term *= (total + n - 1) / (a + n) * x;
        inverses += 1 / (total + n - 1) - (both ? 1 / (a + n) : 0);
        sum += term;
        *slope += term * inverses;
    }
    return sum;
}
/* Returns dx / da, divided by 1 - x, for a random number x of the beta distribution with parameters a and b = total
   - a. */
OPDI_SHARED_TEXT double opdi_beta_moves(double x, double a, double total) {
    const double b = total - a;
    double slope;
    if (isnan(x) || !(a > 0) || !(b > 0) || x < 0 || x > 1 || isinf(total)) { return NAN; }
    if (x == 0) { return 0; }
    if (fmin(a, b) > 1e10) {                      /* x is nearly normal, with mean a / total, variance a b / total^3 */
        const double mean = a / total;
        return ((1 - mean) / total + (x - mean) * (0.5 / a - 1.5 / total)) / (1 - x);
    }
    if (x * (total + 2) <= a + 1) {
        const double sum = opdi_beta_sum(a, total, x, true, &slope);
        return -x / a * (sum * (opdi_log_f64(x) - opdi_special_digamma(a + 1) + opdi_special_digamma(total)) + slope);
    }
    const double sum = opdi_beta_sum(b, total, 1 - x, false, &slope);
    return x / b * (sum * (opdi_log_f64(x) - opdi_special_digamma(a) + opdi_special_digamma(total)) + slope);
}
