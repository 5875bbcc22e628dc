#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:sample    random numbers from distributions, such as Poisson, binomial, gamma, Dirichlet and Cauchy
//
//  Each element of a result is drawn from its own stream of random words, which depends only on the generator's state
//  and the element's position.  If a candidate is rejected, the next words of the same stream are used.  So the numbers
//  do not depend on the number of threads, nor on the device.  They differ from the numbers of PyTorch's generator,
//  like all random numbers here, but have the same distributions.
//----------------------------------------------------------------------------------------------------------------------

/* A stream of random words for one element, which Philox computes in groups of four.  turn: the number of groups so
   far; used: how many words of the last group have been used. */
typedef struct opdi_stream { uint64_t key, place, turn; uint32_t words[4]; int used; } opdi_stream;
typedef double (*opdi_sampler)(opdi_stream *stream, double first, double second);

/* These functions give the same bits on every machine.  The functions of the C library do not. */
static double opdi_same_log(double x) { return opdi_log1_f64(x); }
/* Returns e^x, with the Taylor series of e^r to r^13.  opdi_exp1_f64 may change, but random numbers may not. */
static double opdi_same_exp(double x) {
    double t, q = 1.0 / 6227020800, factorial = 479001600;
    const double r = opdi_exp_rest(x > 710.0 ? 710.0 : x < -746.0 ? -746.0 : x, &t);
    for (int k = 12; k > 1; k--) {
        q = OPDI_FMA(q, r, 1 / factorial);
        factorial /= k;
    }
    return opdi_scale_f64(OPDI_FMA(q, r * r, r) + 1.0, t);
}
static double opdi_same_cos(double x) { return opdi_trig1_f64(x, 1); }
static double opdi_same_tan(double x) { return opdi_trig1_f64(x, 0) / opdi_trig1_f64(x, 1); }
static double opdi_same_log1p(double x) {
    const double sum = 1 + x, part = sum - 1;
    return fabs(part) > 0 ? opdi_same_log(sum) * (x / part) : x;
}

/* Returns a uniform random number in (0, 1) with 52 random bits. */
static double opdi_stream_next(opdi_stream *stream) {
    if (stream->used == 4) {
        opdi_philox(stream->key, stream->turn++, stream->place, stream->words);
        stream->used = 0;
    }
    const uint32_t *words = stream->words + stream->used;
    stream->used += 2;
    return ((double)(((uint64_t)words[1] << 32 | words[0]) >> 12) + 0.5) * 2.220446049250313e-16;
}
static double opdi_stream_normal(opdi_stream *stream) {
    const double radius = sqrt(-2 * opdi_same_log(opdi_stream_next(stream)));
    return radius * opdi_same_cos(6.28318530717958647693 * opdi_stream_next(stream));
}

/* Returns the logarithm of the Poisson probability mean^k e^-mean / k!, where k is a whole number.  For k below 10,
   adds up logarithms.  Otherwise computes k (log(1 + x) - x) with x = mean / k - 1, and Stirling's formula for the
   rest, so that no large numbers are subtracted from each other. */
static double opdi_poisson_log(double k, double mean) {
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
static double opdi_sample_poisson(opdi_stream *stream, double mean, double unused) {
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
static double opdi_sample_geometric(opdi_stream *stream, double p, double unused) {
    (void)unused;
    return fmax(ceil(opdi_same_log(opdi_stream_next(stream)) / opdi_same_log1p(-p)), 1);
}
/* Returns a binomial random number: the number of successes in `count` trials, each of which succeeds with probability
   p.  Requires p <= 0.5 and count * p >= 10.  Uses transformed rejection (W.  Hoermann, The generation of binomial
   random variates, 1993).  The probability of k is, up to a constant factor, the product of the Poisson probabilities
   of k and of count - k. */
static double opdi_sample_binomial_large(opdi_stream *stream, double count, double p) {
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
static double opdi_sample_binomial(opdi_stream *stream, double count, double p) {
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
static double opdi_sample_cauchy(opdi_stream *stream, double median, double sigma) {
    return median + sigma * opdi_same_tan(3.14159265358979323846 * (opdi_stream_next(stream) - 0.5));
}
static double opdi_sample_log_normal(opdi_stream *stream, double mean, double deviation) {
    return opdi_same_exp(mean + deviation * opdi_stream_normal(stream));
}
/* Returns a number x such that x * exp(*scale) is a gamma random number (G.  Marsaglia and W.  Tsang, A simple method
   for generating gamma variables, 2000).  If shape is below 1, x is drawn for shape + 1, and the factor exp(*scale)
   corrects this.  That factor may be too small for a double.  Otherwise *scale is 0. */
static double opdi_draw_gamma(opdi_stream *stream, double shape, double *scale) {
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
static double opdi_sample_gamma(opdi_stream *stream, double shape, double unused) {
    double scale;
    const double value = opdi_draw_gamma(stream, shape, &scale);
    (void)unused;
    return value * opdi_same_exp(scale);
}
static double opdi_sample_log_gamma(opdi_stream *stream, double shape, double unused) {
    double scale;
    const double value = opdi_draw_gamma(stream, shape, &scale);
    (void)unused;
    const double result = opdi_same_log(value) + scale;
    return result < -DBL_MAX ? -DBL_MAX : result;    /* if all logarithms were -infinity, their softmax would be NaN */
}

/* The task of drawing random numbers out [n] by calls of `sample`.  The parameters of number i are first[i] (if first
   is NULL, a) and second[i] (if second is NULL, b). */
typedef struct opdi_sampling {
    opdi_sampler sample;
    double *out;
    const double *first, *second;
    double a, b;
    uint64_t key, at;
} opdi_sampling;
static void opdi_sample_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_sampling *sampling = (const opdi_sampling *)ctx;
    for (int64_t i = begin; i < end; i++) {
        opdi_stream stream;
        stream.key = sampling->key;
        stream.place = sampling->at / 4 + (uint64_t)i;
        stream.turn = 0;
        stream.used = 4;
        sampling->out[i] = sampling->sample(&stream, sampling->first ? sampling->first[i] : sampling->a,
                                            sampling->second ? sampling->second[i] : sampling->b);
    }
}
OPDI_COLD_BEGIN
/* Returns new float64 numbers from `sample`, one for each element of out.  The first parameter of `sample` is an
   element of `first`, broadcast to out's sizes, or a if `first` is NULL; the second parameter is an element of
   `second`, or b.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_sample_draws(const opd_call *call, const opd_tensor *out, opdi_sampler sample,
                                     opd_tensor *first, opd_tensor *second, double a, double b) {
    opd_tensor *draws = opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), OPD_FLOAT64);
    opdi_sampling sampling;
    if (!draws || opdi_exact_out(call, (opd_scalar_type)out->dtype)) { return NULL; }
    opdi_cpu_fallback_note(out);
    if ((first && !(first = opdi_to_f64(first, opdi_sizes(out), out->ndim))) ||
        (second && !(second = opdi_to_f64(second, opdi_sizes(out), out->ndim)))) { return NULL; }
    sampling.sample = sample;
    sampling.out = (double *)(void *)draws->data;
    sampling.first = first ? (const double *)(const void *)first->data : NULL;
    sampling.second = second ? (const double *)(const void *)second->data : NULL;
    sampling.a = a;
    sampling.b = b;
    sampling.at = opdi_random_words(call, 4 * out->numel, &sampling.key);
    opdi_parallel_for(out->numel, 1024, opdi_sample_part, &sampling);
    return draws;
}
/* Fills out with random numbers from `sample`; the other parameters are those of opdi_sample_draws.  Returns 0, or -1
   and sets an error. */
static int opdi_sample_into(const opd_call *call, opd_tensor *out, opdi_sampler sample, opd_tensor *first,
                            opd_tensor *second, double a, double b) {
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    const opd_tensor *draws = opdi_sample_draws(call, out, sample, first, second, a, b);
    return draws ? opdi_copy(out, draws) : -1;
}
/* Checks that the tensor has a floating point dtype; 16-bit dtypes pass only if `halves` is set.  `name` is used in
   messages.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sample_dtype(const char *name, const opd_tensor *tensor, bool halves) {
    if (!halves && (tensor->dtype == OPD_FLOAT16 || tensor->dtype == OPD_BFLOAT16)) {
        return opdi_dtype_fail(name, tensor->dtype);
    }
    return opdi_random_dtype(name, tensor);
}
/* Limits each element of draws, except NaN, to the range from the smallest positive normal number of dtype to
   `most`. */
static void opdi_sample_clip(opd_tensor *draws, opd_scalar_type dtype, double most) {
    const double least = dtype == OPD_FLOAT64 ? DBL_MIN : (double)FLT_MIN;
    double *values = (double *)(void *)draws->data;
    for (int64_t i = 0; i < draws->numel; i++) {
        values[i] = values[i] < least ? least : values[i] > most ? most : values[i];
    }
}

static int opdi_poisson_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *rates = self;
    if (opdi_sample_dtype("poisson_cpu", self, true)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(self), self->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!(rates = opdi_to_f64(self, opdi_sizes(self), self->ndim))) { return -1; }
    for (int64_t i = 0; i < rates->numel; i++) {
        if (!(((const double *)(const void *)rates->data)[i] >= 0)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "invalid Poisson rate, expected rate to be non-negative");
        }
    }
    return opdi_sample_into(call, out, opdi_sample_poisson, rates, NULL, 0, 0);
}
static int opdi_binomial_kernel(opd_call *call) {
    opd_tensor *count = opd_arg_tensor(call, 0), *prob = opd_arg_tensor(call, 1);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    const opd_tensor *wrong = !opd_dtype_is_floating((opd_scalar_type)count->dtype) ? count
        : !opd_dtype_is_floating((opd_scalar_type)prob->dtype) ? prob : NULL;
    if (wrong) {
        return opd_fail(OPD_ERROR_DTYPE, "binomial only supports floating-point dtypes for %s, got: %s",
                        wrong == count ? "count" : "prob", opd_dtype_name((opd_scalar_type)wrong->dtype));
    }
    if (opdi_sample_dtype("binomial_cpu", count, false)) { return -1; }
    if (prob->dtype != count->dtype) { return opdi_found_fail(prob->dtype, count->dtype); }
    if (opdi_broadcast_into(sizes, &ndim, count) || opdi_broadcast_into(sizes, &ndim, prob)) { return -1; }
    return opdi_sample_into(call, opd_result(call, 0, sizes, ndim, (opd_scalar_type)count->dtype), opdi_sample_binomial,
                            count, prob, 0, 0);
}
static int opdi_geometric_kernel(opd_call *call) {
    const double p = opd_arg_double(call, 1);
    if (!(p > 0 && p < 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "geometric_ expects p to be in (0, 1), but got p=%g", p);
    }
    opd_tensor *out = opdi_written(call);
    if (out && (out->dtype == OPD_BOOL || opd_dtype_is_complex((opd_scalar_type)out->dtype))) {
        return opdi_random_dtype("geometric_cpu", out);
    }
    return opdi_sample_into(call, out, opdi_sample_geometric, NULL, NULL, p, 0);
}
static int opdi_cauchy_kernel(opd_call *call) {
    const double sigma = opd_arg_double(call, 2);
    const opd_tensor *self = opd_arg_tensor(call, 0);
    if (!(sigma > 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
    }
    if (!opd_dtype_is_floating((opd_scalar_type)self->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "Cauchy distribution is a continuous probability distribution. dtype must be "
                        "a floating point but you specified %s", opd_dtype_name((opd_scalar_type)self->dtype));
    }
    return opdi_sample_into(call, opdi_written(call), opdi_sample_cauchy, NULL, NULL, opd_arg_double(call, 1), sigma);
}
static int opdi_log_normal_kernel(opd_call *call) {
    const double deviation = opd_arg_double(call, 2);
    if (!(deviation > 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "log_normal_ expects std > 0.0, but found std=%g", deviation);
    }
    if (opdi_sample_dtype("log_normal_cpu", opd_arg_tensor(call, 0), true)) { return -1; }
    return opdi_sample_into(call, opdi_written(call), opdi_sample_log_normal, NULL, NULL, opd_arg_double(call, 1),
                            deviation);
}
static int opdi_standard_gamma_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (opdi_sample_dtype("gamma_cpu", self, false)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(self), self->ndim, dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *draws = opdi_sample_draws(call, out, opdi_sample_gamma, self, NULL, 0, 0);
    if (!draws) { return -1; }
    opdi_sample_clip(draws, dtype, OPDI_INF);
    return opdi_copy(out, draws);
}
/* _sample_dirichlet: draws gamma numbers and divides them by their sum along the last dim.  Computes with their
   logarithms, because with small parameters the gamma numbers are too small for a double. */
static int opdi_sample_dirichlet_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (opdi_sample_dtype("dirichlet", self, false)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(self), self->ndim, dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *draws = opdi_sample_draws(call, out, opdi_sample_log_gamma, self, NULL, 0, 0);
    draws = draws ? opd_softmax(draws, -1) : NULL;
    if (!draws) { return -1; }
    opdi_sample_clip(draws, dtype, dtype == OPD_FLOAT64 ? 1 - DBL_EPSILON / 2 : 1 - (double)FLT_EPSILON / 2);
    return opdi_copy(out, draws);
}
static int opdi_standard_gamma_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_standard_gamma_grad(opd_bw_tensor(bw, 0),
                                                                                   opd_bw_result(bw, 0))));
}
static void opdi_sample_card(opd_op_desc *op, opd_kernel kernel, opd_backward_fn backward) {
    op->any = kernel; op->backward = backward;
    op->vmap = opdi_batch_drawn; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
}
/* opd_poisson: Poisson random numbers with the means in self */
OPDI_OP(poisson) {
    op->schema = "poisson(Tensor self, Generator? generator=None) -> Tensor";
    opdi_sample_card(op, opdi_poisson_kernel, opdi_zeros_backward);
    op->out = "poisson.out";
    op->cases = "[2,3]+; []+";
}
/* opd_binomial: for each element, the number of successes in count trials of probability prob */
OPDI_OP(binomial) {
    op->schema = "binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor";
    opdi_sample_card(op, opdi_binomial_kernel, opdi_refused_backward);
    op->constant = "count, prob";
    op->out = "binomial.out";
    op->cases = "[2,3]+, [2,3]u; [3]+, [2,1]u";
}
/* opd_geometric: the number of trials up to the first success of probability p, for each element of self */
OPDI_OP(geometric) {
    op->schema = "geometric(Tensor self, float p" OPDI_GENERATOR_TEXT;
    opdi_sample_card(op, opdi_geometric_kernel, opdi_zeros_backward);
    op->out = "geometric.out";
    op->cases = "[2,3], 0.5; [4]i5, 0.25";
}
/* opd_geometric_: fills self with numbers of trials up to the first success of probability p */
OPDI_OP(geometric_) {
    op->schema = "geometric_(Tensor(a!) self, float p" OPDI_GENERATOR_TEXT "(a!)";
    opdi_sample_card(op, opdi_geometric_kernel, opdi_zeros_backward);
    op->cases = "[2,3], 0.5; [4]i5, 0.25";
}
/* opd_exponential: exponential random numbers of rate lambd, with self's sizes */
OPDI_OP(exponential) {
    op->schema = "exponential(Tensor self, float lambd=1." OPDI_GENERATOR_TEXT;
    opdi_sample_card(op, opdi_exponential__kernel, opdi_zeros_backward);
    op->out = "exponential.out";
    op->cases = "[2,3]; [2,3], 2.0";
}
/* opd_cauchy: Cauchy random numbers, with self's sizes */
OPDI_OP(cauchy) {
    op->schema = "cauchy(Tensor self, float median=0., float sigma=1." OPDI_GENERATOR_TEXT;
    opdi_sample_card(op, opdi_cauchy_kernel, opdi_zeros_backward);
    op->out = "cauchy.out";
    op->cases = "[2,3]; [2,3], 1.0, 2.0";
}
/* opd_cauchy_: fills self with Cauchy random numbers */
OPDI_OP(cauchy_) {
    op->schema = "cauchy_(Tensor(a!) self, float median=0., float sigma=1." OPDI_GENERATOR_TEXT "(a!)";
    opdi_sample_card(op, opdi_cauchy_kernel, opdi_zeros_backward);
    op->cases = "[2,3]";
}
/* opd_log_normal: random numbers whose logarithms have mean `mean` and deviation std, with self's sizes */
OPDI_OP(log_normal) {
    op->schema = "log_normal(Tensor self, float mean=1., float std=2." OPDI_GENERATOR_TEXT;
    opdi_sample_card(op, opdi_log_normal_kernel, opdi_zeros_backward);
    op->out = "log_normal.out";
    op->cases = "[2,3]; [2,3], 0.0, 0.5";
}
/* opd_log_normal_: fills self with random numbers whose logarithms have mean `mean` and deviation std */
OPDI_OP(log_normal_) {
    op->schema = "log_normal_(Tensor(a!) self, float mean=1., float std=2." OPDI_GENERATOR_TEXT "(a!)";
    opdi_sample_card(op, opdi_log_normal_kernel, opdi_zeros_backward);
    op->cases = "[2,3]";
}
/* opd_standard_gamma: gamma random numbers with the shape parameters in self */
OPDI_OP(_standard_gamma) {
    op->schema = "_standard_gamma(Tensor self, Generator? generator=None) -> Tensor";
    opdi_sample_card(op, opdi_standard_gamma_kernel, opdi_standard_gamma_backward);
    op->save = "self, result";
    op->out = "_standard_gamma.out";
    op->cases = "[2,3]+; []+";
}
/* opd_sample_dirichlet: Dirichlet random numbers with the parameters in self; they sum to 1 along the last dim */
OPDI_OP(_sample_dirichlet) {
    op->schema = "_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor";
    opdi_sample_card(op, opdi_sample_dirichlet_kernel, opdi_refused_backward);
    op->vmap = OPD_BATCH_LOOP; op->constant = "self";
    op->out = "_sample_dirichlet.out";
    op->cases = "[2,3]+; [3]+";
}
OPDI_COLD_END
