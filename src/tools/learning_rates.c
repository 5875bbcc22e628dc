#include "tools.h"

//== gradient clipping =================================================================================================

static int opdi_clip_check(opd_tensor *const *params, int count, const char *function) {
    if (!opd_ok()) { return -1; }
    if (opdi_any_dead(params, count, function)) { return -1; }
    return count >= 0 && (params || count == 0) ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: the parameters are NULL",
                                                               function);
}
/* Returns the norm of all gradients of the parameters together, as a tensor without dims, or NULL and sets an error. */
static opd_tensor *opdi_total_norm(opd_tensor *const *params, int count, double norm_type) {
    const int64_t none = 0;
    const opd_value order = opd_value_double(norm_type), no = opd_value_none();
    opd_tensor **norms = (opd_tensor **)opdi_alloc((size_t)(count + 1) * sizeof *norms);
    int have = 0;
    if (!norms) { return NULL; }
    for (int i = 0; i < count; i++) {
        opd_tensor *grad = opd_tensor_grad(params[i]);
        if (grad) { norms[have++] = grad; }
    }
    opd_tensor *all = opdi_list_norms(norms, have, norm_type);
    if (!all && opd_ok() && have > 0) {
        for (int i = 0; i < have; i++) { norms[i] = opd_linalg_vector_norm_full(norms[i], order, no, false, no); }
        all = opd_stack(opd_tensors_of(norms, have), 0);
    }
    opd_tensor *total = have == 0 ? opd_zeros(opd_ints_of(&none, 0), OPD_FLOAT32)
        : opd_linalg_vector_norm_full(all, order, no, false, no);
    opdi_free(norms, (size_t)(count + 1) * sizeof *norms);
    return total;
}
/* Calls the in-place operator `op` on every gradient, with the argument `arg` and, unless it is None, `second`.
   Returns 0, or -1 and sets an error. */
static int opdi_clip_each(opd_tensor *const *params, int count, opd_op *op, opd_value arg, opd_value second) {
    opd_value values[3], rets[1];
    opd_tensor *first = NULL;
    int rc = 0;
    for (int i = 0; i < count && !first; i++) { first = opd_tensor_grad(params[i]); }
    if (!op || !first) { return op ? 0 : -1; }
    if (opdi_gather_device(first, true)) { return -1; }
    for (int i = 0; i < count && rc == 0; i++) {
        OPD_SCOPE {
            opd_tensor *grad = opd_tensor_grad(params[i]);
            values[0] = grad ? opd_value_tensor(grad) : opd_value_none();
            values[1] = arg;
            values[2] = second;
            if (grad) { rc = opd_call_all(op, rets, values, second.tag == OPD_TAG_NONE ? 2 : 3); }
        }
    }
    return opdi_gather_device(first, false) ? -1 : rc;
}

/* Scales all gradients so that their norm is at most max_norm.  Returns the norm before scaling, as a tensor that the
   innermost scope owns, or NULL and sets an error. */
opd_tensor *opd_clip_grad_norm(opd_tensor *const *params, int count, double max_norm, double norm_type,
                               bool error_if_nonfinite) {
    static opd_op *mul;
    opd_tensor *total = NULL;
    if (opdi_clip_check(params, count, "opd_clip_grad_norm") ||
        opdi_parts_refuse(params, count, "opd_clip_grad_norm", "use opd_sharded_clip_grad_norm, which adds up the "
                          "parts of all ranks")) {
        return NULL;
    }
    bool was = opd_grad_mode_set(false);
    OPD_SCOPE {
        total = opdi_total_norm(params, count, norm_type);
        if (total && error_if_nonfinite && !(fabs(opd_item_f64(total)) < OPDI_INF)) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "The total norm of order %g for gradients from `parameters` is "
                           "non-finite, so it cannot be clipped. To disable this error and scale the gradients by the "
                           "non-finite norm anyway, pass false as error_if_nonfinite.", norm_type);
        }
        opd_tensor *scale = opd_reciprocal(opd_add_Scalar(total, opd_value_double(1e-6)));
        scale = opd_clamp_max(opd_mul_Scalar(scale, opd_value_double(max_norm)), opd_value_double(1));
        opd_op *const multiply = OPD_OP(&mul, OPDI_NAME(mul_Tensor, "aten::mul_.Tensor"));
        const opd_value by = opd_value_tensor(scale);
        if (!scale || opdi_clip_each(params, count, multiply, by, opd_value_none())) { total = NULL; }
        if (total) { (void)opd_scope_return(total); }
    }
    (void)opd_grad_mode_set(was);
    return total;
}
int opd_clip_grad_value(opd_tensor *const *params, int count, double clip_value) {
    static opd_op *clamp;
    if (opdi_clip_check(params, count, "opd_clip_grad_value")) { return -1; }
    bool was = opd_grad_mode_set(false);
    int rc = opdi_clip_each(params, count, OPD_OP(&clamp, OPDI_NAME(clamp, "aten::clamp_")),
                            opd_value_double(-clip_value), opd_value_double(clip_value));
    (void)opd_grad_mode_set(was);
    return rc;
}

//== learning rates ====================================================================================================

static double opdi_lr_wrong(const char *schedule, const char *what) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s", schedule, what);
    return NAN;
}
/* Returns a value between `from` (at == 0) and `to` (at == 1), along half a period of a cosine. */
static double opdi_anneal_cosine(double from, double to, double at) {
    return to + (from - to) / 2 * (1 + opdi_cos_f64(3.14159265358979323846 * at));
}

double opd_lr_step(double lr, int64_t epoch, int64_t step_size, double gamma) {
    if (epoch < 0 || step_size < 1) {
        return opdi_lr_wrong("opd_lr_step", "epoch must be at least 0, and step_size at least 1");
    }
    return lr * opdi_pow_f64(gamma, (double)(epoch / step_size));
}
double opd_lr_multi_step(double lr, int64_t epoch, opd_ints milestones, double gamma) {
    if (milestones.n && !milestones.data) {
        return opdi_lr_wrong("opd_lr_multi_step", "the pointer to the milestones is NULL");
    }
    for (int64_t i = 0; i < milestones.n; i++) { if (milestones.data[i] <= epoch) { lr *= gamma; } }
    return lr;
}
double opd_lr_exponential(double lr, int64_t epoch, double gamma) { return lr * opdi_pow_f64(gamma, (double)epoch); }
double opd_lr_linear(double lr, int64_t epoch, double start_factor, double end_factor, int64_t total_iters) {
    if (!(start_factor > 0 && start_factor <= 1)) {
        return opdi_lr_wrong("opd_lr_linear", "Starting multiplicative factor expected to be greater than 0 and less "
                             "or equal to 1.");
    }
    if (!(end_factor >= 0 && end_factor <= 1)) {
        return opdi_lr_wrong("opd_lr_linear", "Ending multiplicative factor expected to be between 0 and 1.");
    }
    if (total_iters < 1 || epoch >= total_iters) { return lr * end_factor; }
    return lr * (start_factor + (end_factor - start_factor) * (double)epoch / (double)total_iters);
}
double opd_lr_cosine(double lr, int64_t epoch, int64_t t_max, double eta_min) {
    if (t_max < 1) { return opdi_lr_wrong("opd_lr_cosine", "t_max must be at least 1"); }
    return opdi_anneal_cosine(lr, eta_min, (double)epoch / (double)t_max);
}
double opd_lr_cosine_restarts(double lr, int64_t epoch, int64_t t_0, int64_t t_mult, double eta_min) {
    if (t_0 < 1 || epoch < 0) { return opdi_lr_wrong("opd_lr_cosine_restarts", "Expected positive integer T_0"); }
    if (t_mult < 1) { return opdi_lr_wrong("opd_lr_cosine_restarts", "Expected integer T_mult >= 1"); }
    if (t_mult == 1) { epoch %= t_0; }
    while (epoch >= t_0) {
        epoch -= t_0;
        t_0 = t_0 > INT64_MAX / t_mult ? INT64_MAX : t_0 * t_mult;
    }
    return opdi_anneal_cosine(lr, eta_min, (double)epoch / (double)t_0);
}

opd_one_cycle opd_one_cycle_defaults(double max_lr, int64_t total_steps) {
    opd_one_cycle cycle;
    memset(&cycle, 0, sizeof cycle);
    cycle.max_lr = max_lr;
    cycle.total_steps = total_steps;
    cycle.pct_start = 0.3;
    cycle.div_factor = 25;
    cycle.final_div_factor = 1e4;
    return cycle;
}
/* Returns the learning rate at step number `step` of the one-cycle policy.  In phase k, the rate changes from rates[k]
   to rates[k + 1].  Returns NaN and sets an error on failure. */
double opd_lr_one_cycle(int64_t step, const opd_one_cycle *cycle) {
    double ends[3], rates[4], from = 0;
    int k;
    if (!cycle || cycle->total_steps < 1) {
        return opdi_lr_wrong("opd_lr_one_cycle", "Expected positive integer total_steps");
    }
    if (!(cycle->pct_start >= 0 && cycle->pct_start <= 1)) {
        return opdi_lr_wrong("opd_lr_one_cycle", "Expected float between 0 and 1 pct_start");
    }
    if (step < 0 || step > cycle->total_steps) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "Tried to step %lld times. The specified number of total steps is %lld",
                       (long long)step, (long long)cycle->total_steps);
        return NAN;
    }
    rates[0] = cycle->max_lr / cycle->div_factor;
    rates[1] = cycle->max_lr;
    rates[2] = cycle->three_phase ? rates[0] : rates[0] / cycle->final_div_factor;
    rates[3] = rates[0] / cycle->final_div_factor;
    ends[0] = cycle->pct_start * (double)cycle->total_steps - 1;
    ends[1] = cycle->three_phase ? 2 * cycle->pct_start * (double)cycle->total_steps - 2
                                 : (double)cycle->total_steps - 1;
    ends[2] = (double)cycle->total_steps - 1;
    int last = cycle->three_phase ? 2 : 1;
    for (k = 0; k < last && (double)step > ends[k]; k++) { from = ends[k]; }
    if (!(ends[k] > from) && !(ends[k] < from)) {
        return opdi_lr_wrong("opd_lr_one_cycle", "a phase of the cycle has no steps: total_steps or pct_start is too "
                             "small");
    }
    double at = ((double)step - from) / (ends[k] - from);
    return cycle->linear ? rates[k] + (rates[k + 1] - rates[k]) * at : opdi_anneal_cosine(rates[k], rates[k + 1], at);
}
