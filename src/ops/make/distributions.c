#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:sample    random numbers from distributions, such as Poisson, binomial, gamma, Dirichlet and Cauchy
//
//  Each element of a result is drawn from its own stream of random words, which depends only on the generator's state
//  and the element's position.  If a candidate is rejected, the next words of the same stream are used.  So the numbers
//  do not depend on the number of threads, nor on the device.  They differ from the numbers of PyTorch's generator,
//  like all random numbers here, but have the same distributions.
//----------------------------------------------------------------------------------------------------------------------

#include "samples.typed.h"
typedef double (*opdi_sampler)(opdi_stream *stream, double first, double second);

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
        stream.turn = stream.kept = 0;
        stream.full = false;
        sampling->out[i] = sampling->sample(&stream, sampling->first ? sampling->first[i] : sampling->a,
                                            sampling->second ? sampling->second[i] : sampling->b);
    }
}
OPDI_COLD_BEGIN
/* Draws on the device of out, by the operator of the CUDA plug-in.  Returns new numbers: of float32 if out has this
   dtype and they are not logarithms, else of float64.  `op` is that operator; for the other parameters, see
   opdi_sample_draws.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_sample_on_device(const opd_call *call, opd_op *op, opd_tensor *out, opdi_sample_kind kind,
                                         opd_tensor *first, opd_tensor *second, double a, double b) {
    opd_value args[8], got;
    args[0] = opd_value_tensor(out);
    args[1] = opd_value_int(kind);
    args[2] = first ? opd_value_tensor(first) : opd_value_none();
    args[3] = second ? opd_value_tensor(second) : opd_value_none();
    args[4] = opd_value_double(a);
    args[5] = opd_value_double(b);
    args[6] = opd_value_bool(out->dtype != OPD_FLOAT32 || kind == OPDI_SAMPLE_LOG_GAMMA);
    args[7] = opd_value_none();
    const int at = opdi_arg_index(call->op->schema, "generator", 9);
    if (at >= 0) { args[7] = opd_arg_value(call, at); }
    return opd_call_all(op, &got, args, 8) ? NULL : got.u.t;
}
/* Returns the operator of the CUDA plug-in that draws the numbers of out on its device, or NULL if there is none. */
static opd_op *opdi_sample_op(const opd_tensor *out) {
    static opd_op *sample;
    return opdi_in_cuda(out) ? opdi_cuda_op(&sample, "opd_cuda::sample") : NULL;
}
/* Returns new numbers from the distribution, one for each element of out: float64 numbers of the host, or numbers of
   out's device.  The first parameter of the distribution is an element of `first`, broadcast to out's sizes, or a if
   `first` is NULL; the second parameter is an element of `second`, or b.  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_sample_draws(const opd_call *call, opd_tensor *out, opdi_sample_kind kind, opd_tensor *first,
                                     opd_tensor *second, double a, double b) {
    static const opdi_sampler samplers[OPDI_SAMPLES] = {
        opdi_sample_poisson, opdi_sample_geometric, opdi_sample_binomial, opdi_sample_cauchy, opdi_sample_log_normal,
        opdi_sample_gamma, opdi_sample_log_gamma};
    opdi_sampling sampling;
    if (opdi_exact_out(call, (opd_scalar_type)out->dtype)) { return NULL; }
    opd_op *const op = opdi_sample_op(out);
    if (op) { return opdi_sample_on_device(call, op, out, kind, first, second, a, b); }
    opd_tensor *draws = opd_tensor_new(opd_ints_of(opdi_sizes(out), out->ndim), OPD_FLOAT64);
    if (!draws) { return NULL; }
    opdi_cpu_fallback_note(out);
    if ((first && !(first = opdi_to_f64(first, opdi_sizes(out), out->ndim))) ||
        (second && !(second = opdi_to_f64(second, opdi_sizes(out), out->ndim)))) { return NULL; }
    sampling.sample = samplers[kind];
    sampling.out = (double *)(void *)draws->data;
    sampling.first = first ? (const double *)(const void *)first->data : NULL;
    sampling.second = second ? (const double *)(const void *)second->data : NULL;
    sampling.a = a;
    sampling.b = b;
    sampling.at = opdi_random_words(call, 4 * out->numel, &sampling.key);
    opdi_parallel_for(out->numel, 1024, opdi_sample_part, &sampling);
    return draws;
}
/* Fills out with random numbers from the distribution.  For the other parameters, see opdi_sample_draws.  Returns 0, or
   -1 and sets an error. */
static int opdi_sample_into(const opd_call *call, opd_tensor *out, opdi_sample_kind kind, opd_tensor *first,
                            opd_tensor *second, double a, double b) {
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *draws = opdi_sample_draws(call, out, kind, first, second, a, b);
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
/* Limits each element of draws, except NaN, to the range from the smallest positive normal number of dtype to `most`.
   Returns draws or, if they are in memory of a device, new numbers.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_sample_clip(opd_tensor *draws, opd_scalar_type dtype, double most) {
    const double least = dtype == OPD_FLOAT64 ? DBL_MIN : (double)FLT_MIN;
    if (draws && opdi_on_device(draws)) { return opd_clamp(draws, opd_value_double(least), opd_value_double(most)); }
    double *values = draws ? (double *)(void *)draws->data : NULL;
    for (int64_t i = 0; values && i < draws->numel; i++) {
        values[i] = values[i] < least ? least : values[i] > most ? most : values[i];
    }
    return draws;
}

static int opdi_poisson_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *rates = self;
    if (opdi_sample_dtype("poisson_cpu", self, true)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(self), self->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!opdi_sample_op(out)) {                       /* a kernel on a device checks the rates that it reads */
        if (!(rates = opdi_to_f64(self, opdi_sizes(self), self->ndim))) { return -1; }
        for (int64_t i = 0; i < rates->numel; i++) {
            if (((const double *)(const void *)rates->data)[i] >= 0) { continue; }
            return opd_fail(OPD_ERROR_ARGUMENT, "invalid Poisson rate, expected rate to be non-negative");
        }
    }
    return opdi_sample_into(call, out, OPDI_SAMPLE_POISSON, rates, NULL, 0, 0);
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
    return opdi_sample_into(call, opd_result(call, 0, sizes, ndim, (opd_scalar_type)count->dtype), OPDI_SAMPLE_BINOMIAL,
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
    return opdi_sample_into(call, out, OPDI_SAMPLE_GEOMETRIC, NULL, NULL, p, 0);
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
    return opdi_sample_into(call, opdi_written(call), OPDI_SAMPLE_CAUCHY, NULL, NULL, opd_arg_double(call, 1), sigma);
}
static int opdi_log_normal_kernel(opd_call *call) {
    const double deviation = opd_arg_double(call, 2);
    if (!(deviation > 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "log_normal_ expects std > 0.0, but found std=%g", deviation);
    }
    if (opdi_sample_dtype("log_normal_cpu", opd_arg_tensor(call, 0), true)) { return -1; }
    return opdi_sample_into(call, opdi_written(call), OPDI_SAMPLE_LOG_NORMAL, NULL, NULL, opd_arg_double(call, 1),
                            deviation);
}
static int opdi_standard_gamma_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (opdi_sample_dtype("gamma_cpu", self, false)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(self), self->ndim, dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *draws = opdi_sample_draws(call, out, OPDI_SAMPLE_GAMMA, self, NULL, 0, 0);
    draws = opdi_sample_clip(draws, dtype, OPDI_INF);
    return draws ? opdi_copy(out, draws) : -1;
}
/* _sample_dirichlet: draws gamma numbers and divides them by their sum along the last dim.  Computes with their
   logarithms, because with small parameters the gamma numbers are too small for a double. */
static int opdi_sample_dirichlet_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (opdi_sample_dtype("dirichlet", self, false)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(self), self->ndim, dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *draws = opdi_sample_draws(call, out, OPDI_SAMPLE_LOG_GAMMA, self, NULL, 0, 0);
    draws = draws ? opd_softmax(draws, -1) : NULL;
    draws = opdi_sample_clip(draws, dtype, 1 - (dtype == OPD_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON) / 2);
    return draws ? opdi_copy(out, draws) : -1;
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
