/* Random numbers from distributions, for the processor (distributions.c) and CUDA (samples.cu), with the same bits on
   both. */

/* The distributions that opdi_sample draws from, with one parameter or two. */
typedef enum opdi_sample_kind {
    OPDI_SAMPLE_POISSON, OPDI_SAMPLE_GEOMETRIC, OPDI_SAMPLE_BINOMIAL, OPDI_SAMPLE_CAUCHY, OPDI_SAMPLE_LOG_NORMAL,
    OPDI_SAMPLE_GAMMA, OPDI_SAMPLE_LOG_GAMMA, OPDI_SAMPLES
} opdi_sample_kind;
/* A stream of random words for one element, which Philox computes in groups of four.  turn: the number of groups so
   far.  kept: two words of the last group, if they have not been used. */
typedef struct opdi_stream { uint64_t key, place, turn, kept; bool full; } opdi_stream;

/* These functions give the same bits on every machine.  The functions of the C library do not. */
OPDI_SHARED_TEXT double opdi_same_log(double x) { return opdi_log1_f64(x); }
/* Returns e^x, with the Taylor series of e^r to r^13.  opdi_exp1_f64 may change, but random numbers may not. */
OPDI_SHARED_TEXT double opdi_same_exp(double x) {
    double t, q = 1.0 / 6227020800, factorial = 479001600;
    const double r = opdi_exp_rest(x > 710.0 ? 710.0 : x < -746.0 ? -746.0 : x, &t);
    for (int k = 12; k > 1; k--) {
        q = OPDI_FMA(q, r, 1 / factorial);
        factorial /= k;
    }
    return opdi_scale_f64(OPDI_FMA(q, r * r, r) + 1.0, t);
}
OPDI_SHARED_TEXT double opdi_same_cos(double x) { return opdi_trig1_f64(x, 1); }
OPDI_SHARED_TEXT double opdi_same_tan(double x) { return opdi_trig1_f64(x, 0) / opdi_trig1_f64(x, 1); }
OPDI_SHARED_TEXT double opdi_same_log1p(double x) {
    const double sum = 1 + x, part = sum - 1;
    return fabs(part) > 0 ? opdi_same_log(sum) * (x / part) : x;
}

/* Returns a uniform random number in (0, 1) with 52 random bits. */
OPDI_SHARED_TEXT double opdi_stream_next(opdi_stream *stream) {
    uint64_t bits = stream->kept;
    if (!stream->full) {
        uint32_t words[4];
        opdi_philox(stream->key, stream->turn++, stream->place, words);
        bits = (uint64_t)words[1] << 32 | words[0];
        stream->kept = (uint64_t)words[3] << 32 | words[2];
    }
    stream->full = !stream->full;
    return ((double)(bits >> 12) + 0.5) * 2.220446049250313e-16;
}
OPDI_SHARED_TEXT double opdi_stream_normal(opdi_stream *stream) {
    const double radius = sqrt(-2 * opdi_same_log(opdi_stream_next(stream)));
    return radius * opdi_same_cos(6.28318530717958647693 * opdi_stream_next(stream));
}

/* Returns the logarithm of the Poisson probability mean^k e^-mean / k!, where k is a whole number.  For k below 10,
   adds up logarithms.  Otherwise computes k (log(1 + x) - x) with x = mean / k - 1, and Stirling's formula for the
   rest, so that no large numbers are subtracted from each other. */
OPDI_SHARED_LARGE double opdi_poisson_log(double k, double mean) {
    if (k < 10) {
        double term = -mean;
        for (int i = 1; i <= k; i++) { term += opdi_same_log(mean / i); }
        return term;
    }
    const double x = (mean - k) / k, inverse = 1 / (k * k);
    const double rest = (1 / 12.0 - inverse * (1 / 360.0 - inverse * (1 / 1260.0 - inverse / 1680))) / k;
    return k * (opdi_same_log1p(x) - x) - 0.5 * opdi_same_log(6.28318530717958647693 * k) - rest;
}
/* Returns a Poisson random number.  For means below 10, multiplies uniform random numbers until their product is at
   most e^-mean.  Otherwise uses the method of W. Hoermann, The transformed rejection method for generating Poisson
   random variables. */
OPDI_SHARED_TEXT double opdi_sample_poisson(opdi_stream *stream, double mean, double unused) {
    (void)unused;
    if (mean == 0) { return 0; }                      /* mean may also be -0 */
    if (!(mean > 0) || isinf(mean)) { return mean; }
    if (mean < 10) {
        const double limit = opdi_same_exp(-mean);
        double count = 0;
        for (double product = opdi_stream_next(stream); product > limit; product *= opdi_stream_next(stream)) {
            count++;
        }
        return count;
    }
    const double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b, alpha = 1.1239 + 1.1328 / (b - 3.4);
    const double sure = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
        const double u = opdi_stream_next(stream) - 0.5, v = opdi_stream_next(stream), edge = 0.5 - fabs(u);
        const double k = floor((2 * a / edge + b) * u + mean + 0.43);
        if (edge >= 0.07 && v <= sure) { return k; }
        if (k < 0 || (edge < 0.013 && v > edge)) { continue; }
        if (opdi_same_log(v * alpha / (a / (edge * edge) + b)) <= opdi_poisson_log(k, mean)) { return k; }
    }
}
/* Returns the number of trials up to and including the first success, which each trial has with probability p. */
OPDI_SHARED_TEXT double opdi_sample_geometric(opdi_stream *stream, double p, double unused) {
    (void)unused;
    return fmax(ceil(opdi_same_log(opdi_stream_next(stream)) / opdi_same_log1p(-p)), 1);
}
/* Returns a binomial random number: the number of successes in `count` trials, each of which succeeds with probability
   p.  Requires p <= 0.5 and count * p >= 10.  Uses transformed rejection (W.  Hoermann, The generation of binomial
   random variates, 1993).  The probability of k is, up to a constant factor, the product of the Poisson probabilities
   of k and of count - k. */
OPDI_SHARED_TEXT double opdi_sample_binomial_large(opdi_stream *stream, double count, double p) {
    const double mean = count * p, others = count * (1 - p), deviation = sqrt(mean * (1 - p));
    const double b = 1.15 + 2.53 * deviation, a = -0.0873 + 0.0248 * b + 0.01 * p, sure = 0.92 - 4.2 / b;
    const double alpha = (2.83 + 5.1 / b) * deviation, mode = floor((count + 1) * p);
    const double most = opdi_poisson_log(mode, mean) + opdi_poisson_log(count - mode, others);
    for (;;) {
        const double u = opdi_stream_next(stream) - 0.5, v = opdi_stream_next(stream), edge = 0.5 - fabs(u);
        const double k = floor((2 * a / edge + b) * u + mean + 0.5);
        if (k < 0 || k > count) { continue; }
        if (edge >= 0.07 && v <= sure) { return k; }
        if (opdi_same_log(v * alpha / (a / (edge * edge) + b)) <=
            opdi_poisson_log(k, mean) + opdi_poisson_log(count - k, others) - most) { return k; }
    }
}
/* Returns the number of successes in `count` trials, each of which succeeds with probability p.  If fewer than 10
   successes (or failures) are expected, jumps from one success (or failure) to the next. */
OPDI_SHARED_TEXT double opdi_sample_binomial(opdi_stream *stream, double count, double p) {
    if (isnan(count) || isnan(p)) { return NAN; }
    if (count <= 0 || p <= 0) { return 0; }
    if (p >= 1 || isinf(count)) { return count; }
    count = floor(count);
    const double less = fmin(p, 1 - p);
    double found = 0;
    if (count * less >= 10) { found = opdi_sample_binomial_large(stream, count, less); }
    else {
        double at = opdi_sample_geometric(stream, less, 0);
        for (; at <= count; at += opdi_sample_geometric(stream, less, 0)) { found++; }
    }
    return p <= 0.5 ? found : count - found;
}
OPDI_SHARED_TEXT double opdi_sample_cauchy(opdi_stream *stream, double median, double sigma) {
    return median + sigma * opdi_same_tan(3.14159265358979323846 * (opdi_stream_next(stream) - 0.5));
}
OPDI_SHARED_TEXT double opdi_sample_log_normal(opdi_stream *stream, double mean, double deviation) {
    return opdi_same_exp(mean + deviation * opdi_stream_normal(stream));
}
/* Returns a number x such that x * exp(*scale) is a gamma random number (G.  Marsaglia and W.  Tsang, A simple method
   for generating gamma variables, 2000).  If shape is below 1, x is drawn for shape + 1, and the factor exp(*scale)
   corrects this.  That factor may be too small for a double.  Otherwise *scale is 0. */
OPDI_SHARED_TEXT double opdi_draw_gamma(opdi_stream *stream, double shape, double *scale) {
    *scale = 0;
    if (!(shape > 0) || isinf(shape)) { return shape < 0 ? NAN : shape; }
    if (shape < 1) {
        *scale = opdi_same_log(opdi_stream_next(stream)) / shape;
        shape += 1;
    }
    const double d = shape - 1 / 3.0, c = 1 / sqrt(9 * d);
    for (;;) {
        const double x = opdi_stream_normal(stream), root = 1 + c * x, cube = root * root * root;
        if (root <= 0) { continue; }
        const double u = opdi_stream_next(stream);
        if (u < 1 - 0.0331 * x * x * x * x) { return d * cube; }
        if (opdi_same_log(u) < 0.5 * x * x + d * (1 - cube + opdi_same_log(cube))) { return d * cube; }
    }
}
OPDI_SHARED_TEXT double opdi_sample_gamma(opdi_stream *stream, double shape, double unused) {
    double scale;
    const double value = opdi_draw_gamma(stream, shape, &scale);
    (void)unused;
    return value * opdi_same_exp(scale);
}
OPDI_SHARED_TEXT double opdi_sample_log_gamma(opdi_stream *stream, double shape, double unused) {
    double scale;
    const double value = opdi_draw_gamma(stream, shape, &scale);
    (void)unused;
    const double result = opdi_same_log(value) + scale;
    return result < -DBL_MAX ? -DBL_MAX : result;    /* if all logarithms were -infinity, their softmax would be NaN */
}
