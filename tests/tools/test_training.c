/* Optimizers, gradient clipping and learning rates equal PyTorch's (golden/training.txt), step by step; layouts,
   dtypes, bad input, failing allocations. */
#include "../../opdispatch.h"
#include "../check.h"

static const int64_t size_5[] = {5}, size_2_3[] = {2, 3};
static opd_ints size_of(int t) { return t == 0 ? opd_ints_of(size_5, 1) : opd_ints_of(size_2_3, 2); }
static opd_tensor *numbers(int t, opd_scalar_type dtype, double (*f)(int t, int step, int k), int step) {
    opd_tensor *v = opd_tensor_new(size_of(t), OPD_FLOAT64);
    int k;
    for (k = 0; v && k < opd_numel(v); k++) { opd_data_f64(v)[k] = f(t, step, k); }
    return opd_to_dtype(v, dtype);
}
static double start(int t, int step, int k) { (void)step; return cos(0.9 * k + t); }
static double slope(int t, int step, int k) { return sin(1 + 0.7 * k + 1.3 * step + 2.1 * t); }
static opd_tensor *parameter(int t, opd_scalar_type dtype) {
    return opd_tensor_set_requires_grad(opd_clone(numbers(t, dtype, start, 0)), true);
}
static double element(const opd_tensor *t, int64_t k) {
    double v = 0;
    OPD_SCOPE { v = opd_data_f64(opd_contiguous(opd_to_dtype(opd_detach((opd_tensor *)(uintptr_t)t), OPD_FLOAT64)))[k]; }
    return v;
}

//-- PyTorch's results -------------------------------------------------------------------------------------------------

/* The number after "key=" in a line; other when it is not there. */
static double option(const char *line, const char *key, double other) {
    char text[40];
    const char *at;
    (void)snprintf(text, sizeof text, " %s=", key);
    at = strstr(line, text);
    return at ? strtod(at + strlen(text), NULL) : other;
}
static opd_optimizer *optimizer_of(const char *line, opd_tensor *const *params) {
    if (strncmp(line, "optimizer sgd", 13) == 0) {
        opd_sgd_options o = opd_sgd_defaults();
        o.lr = option(line, "lr", o.lr);
        o.momentum = option(line, "momentum", 0);
        o.dampening = option(line, "dampening", 0);
        o.weight_decay = option(line, "weight_decay", 0);
        o.nesterov = option(line, "nesterov", 0) > 0;
        o.maximize = option(line, "maximize", 0) > 0;
        return opd_sgd_new(params, 2, &o);
    } else {
        bool w = strncmp(line, "optimizer adamw", 15) == 0;
        opd_adam_options o = w ? opd_adamw_defaults() : opd_adam_defaults();
        o.lr = option(line, "lr", o.lr);
        o.beta1 = option(line, "beta1", o.beta1);
        o.beta2 = option(line, "beta2", o.beta2);
        o.eps = option(line, "eps", o.eps);
        o.weight_decay = option(line, "weight_decay", o.weight_decay);
        o.amsgrad = option(line, "amsgrad", 0) > 0;
        o.maximize = option(line, "maximize", 0) > 0;
        return w ? opd_adamw_new(params, 2, &o) : opd_adam_new(params, 2, &o);
    }
}
static void read_numbers(const char *line, double *v, int n) {
    char *end;
    int i;
    for (i = 0; i < n; i++) { v[i] = strtod(line, &end); CHECK(end != line); line = end; }
}
static void run_optimizer(const char *line, FILE *f, opd_scalar_type dtype, bool transposed) {
    opd_tensor *params[2];
    opd_optimizer *o;
    char text[2000];
    int step, t, k;
    for (t = 0; t < 2; t++) {
        params[t] = parameter(t, dtype);
        if (transposed && t == 1) {               /* the same numbers with other strides */
            params[t] = opd_tensor_set_requires_grad(opd_t(opd_contiguous(opd_t(opd_detach(params[t])))), true);
            CHECK(!opd_is_contiguous(params[t]));
        }
    }
    o = optimizer_of(line, params);
    CHECK_OR_RETURN(o != NULL);
    for (step = 0; step < 6; step++) {
        for (t = 0; t < 2; t++) {
            CHECK_INT(opd_tensor_set_grad(params[t], t == 1 && (step == 0 || step == 3) ? NULL : numbers(t, dtype, slope, step)), 0);
        }
        CHECK_INT(opd_optimizer_step(o), 0);
        for (t = 0; t < 2; t++) {
            double want[6];
            CHECK_OR_RETURN(fgets(text, sizeof text, f) && text[0] == '0' + t);
            read_numbers(text + 1, want, t ? 6 : 5);
            for (k = 0; k < (t ? 6 : 5); k++) {
                double have = element(params[t], k);
                if (fabs(have - want[k]) > (dtype == OPD_FLOAT64 ? 1e-13 : 2e-6)) { printf("%s step %d: %.17g\n", line, step, have); }
                CHECK_NEAR(have, want[k], dtype == OPD_FLOAT64 ? 1e-13 : 2e-6);
            }
        }
    }
    opd_optimizer_free(o);
}
TEST(steps_are_those_of_pytorch) {
    char line[2000];
    int transposed, n = 0;
    for (transposed = 0; transposed < 2; transposed++) {
        FILE *f = check_golden("training.txt");
        CHECK_OR_RETURN(f != NULL);
        while (fgets(line, sizeof line, f)) {
            if (strncmp(line, "optimizer", 9) != 0) { continue; }
            n++;
            OPD_SCOPE { run_optimizer(line, f, strstr(line, "float64") ? OPD_FLOAT64 : OPD_FLOAT32, transposed != 0); }
        }
        (void)fclose(f);
    }
    CHECK_INT(n, 2 * 32);
}
TEST(clipping_is_that_of_pytorch) {
    char line[2000];
    int n = 0, t, k;
    FILE *f = check_golden("training.txt");
    CHECK_OR_RETURN(f != NULL);
    while (fgets(line, sizeof line, f)) {
        opd_tensor *params[3];
        double want[12], max_norm;
        bool by_value = strncmp(line, "clip value", 10) == 0;
        char *end;
        if (strncmp(line, "clip", 4) != 0) { continue; }
        n++;
        for (t = 0; t < 2; t++) {
            params[t] = parameter(t, OPD_FLOAT64);
            CHECK_INT(opd_tensor_set_grad(params[t], numbers(t, OPD_FLOAT64, slope, 1)), 0);
        }
        params[2] = parameter(0, OPD_FLOAT64);    /* without a gradient */
        if (by_value) {
            max_norm = strtod(line + 11, &end);
            read_numbers(end, want + 1, 11);
            CHECK_INT(opd_clip_grad_value(params, 3, max_norm), 0);
        } else {
            double order = strtod(line + 5, &end);
            max_norm = strtod(end, &end);
            read_numbers(end, want, 12);
            CHECK_NEAR(opd_item_f64(opd_clip_grad_norm(params, 3, max_norm, order, true)), want[0], 1e-12 * want[0]);
        }
        for (t = 0; t < 2; t++) {
            for (k = 0; k < (t ? 6 : 5); k++) { CHECK_NEAR(element(opd_tensor_grad(params[t]), k), want[1 + 5 * t + k], 1e-14); }
        }
    }
    (void)fclose(f);
    CHECK_INT(n, 11);
}
static double rate_of(const char *line, int64_t epoch) {
    static const int64_t milestones[] = {2, 5, 5, 9};
    double lr = option(line, "lr", 0), gamma = option(line, "gamma", 0);
    if (strncmp(line, "rate step", 9) == 0) { return opd_lr_step(lr, epoch, (int64_t)option(line, "step_size", 0), gamma); }
    if (strncmp(line, "rate multi", 10) == 0) { return opd_lr_multi_step(lr, epoch, opd_ints_of(milestones, 4), gamma); }
    if (strncmp(line, "rate exp", 8) == 0) { return opd_lr_exponential(lr, epoch, gamma); }
    if (strncmp(line, "rate linear", 11) == 0) {
        return opd_lr_linear(lr, epoch, option(line, "start_factor", 0), option(line, "end_factor", 0), (int64_t)option(line, "total_iters", 0));
    }
    if (strncmp(line, "rate cosine ", 12) == 0) {
        return opd_lr_cosine(lr, epoch, (int64_t)option(line, "T_max", 0), option(line, "eta_min", 0));
    }
    if (strncmp(line, "rate cosine_r", 13) == 0) {
        return opd_lr_cosine_restarts(lr, epoch, (int64_t)option(line, "T_0", 0), (int64_t)option(line, "T_mult", 0), option(line, "eta_min", 0));
    } else {
        opd_one_cycle c = opd_one_cycle_defaults(option(line, "max_lr", 0), (int64_t)option(line, "total_steps", 0));
        c.pct_start = option(line, "pct_start", 0);
        c.div_factor = option(line, "div_factor", 0);
        c.final_div_factor = option(line, "final_div_factor", 0);
        c.three_phase = option(line, "three_phase", 0) > 0;
        c.linear = strstr(line, "anneal_strategy=linear") != NULL;
        return opd_lr_one_cycle(epoch, &c);
    }
}
TEST(learning_rates_are_those_of_pytorch) {
    char line[2000];
    int n = 0;
    FILE *f = check_golden("training.txt");
    CHECK_OR_RETURN(f != NULL);
    while (fgets(line, sizeof line, f)) {
        char *at = strstr(line, " : "), *end;
        int64_t epoch;
        if (strncmp(line, "rate", 4) != 0) { continue; }
        n++;
        for (at += 3, epoch = 0; *at && *at != '\n'; at = end, epoch++) {
            double want = strtod(at, &end);
            CHECK_NEAR(rate_of(line, epoch), want, 1e-12);
            while (*end == ' ') { end++; }
        }
        CHECK(epoch >= 12);
    }
    (void)fclose(f);
    CHECK_INT(n, 11);
}

//-- the loops at other sizes and dtypes -------------------------------------------------------------------------------

/* Adam with everything on, in double, one element. */
static void adam_by_hand(double *x, double *m, double *v, double *largest, double g, int step, const opd_adam_options *o, bool w) {
    if (o->maximize) { g = -g; }
    if (w) { *x *= 1 - o->lr * o->weight_decay; } else { g += o->weight_decay * *x; }
    *m += (g - *m) * (1 - o->beta1);
    *v = o->beta2 * *v + (1 - o->beta2) * g * g;
    *largest = o->amsgrad ? fmax(*largest, *v) : *v;
    *x -= o->lr / (1 - pow(o->beta1, step)) * *m / (sqrt(*largest) / sqrt(1 - pow(o->beta2, step)) + o->eps);
}
static void large_adam(opd_scalar_type dtype, int64_t n, bool amsgrad, bool w) {
    opd_adam_options o = w ? opd_adamw_defaults() : opd_adam_defaults();
    opd_tensor *x = opd_tensor_new(OPD_INTS(n), OPD_FLOAT64), *g = opd_tensor_new(OPD_INTS(n), OPD_FLOAT64), *p;
    double *a = (double *)calloc((size_t)n * 4, sizeof(double));
    opd_optimizer *opt;
    double tol = dtype == OPD_FLOAT64 ? 1e-12 : dtype == OPD_FLOAT32 ? 1e-5 : 0.2;
    int64_t k;
    int step, bad = 0;
    o.lr = 0.05;
    o.weight_decay = 0.1;
    o.amsgrad = amsgrad;
    for (k = 0; k < n; k++) { opd_data_f64(x)[k] = sin((double)k); opd_data_f64(g)[k] = cos(0.3 * (double)k); }
    p = opd_tensor_set_requires_grad(opd_clone(opd_to_dtype(x, dtype)), true);
    g = opd_to_dtype(g, dtype);
    opt = w ? opd_adamw_new(&p, 1, &o) : opd_adam_new(&p, 1, &o);
    for (k = 0; k < n; k++) { a[k] = opd_data_f64(x)[k]; }
    for (step = 1; step <= 3; step++) {
        CHECK_INT(opd_tensor_set_grad(p, g), 0);
        CHECK_INT(opd_optimizer_step(opt), 0);
        for (k = 0; k < n; k++) { adam_by_hand(&a[k], &a[n + k], &a[2 * n + k], &a[3 * n + k], cos(0.3 * (double)k), step, &o, w); }
    }
    OPD_SCOPE {
        const double *have = opd_data_f64(opd_to_dtype(opd_detach(p), OPD_FLOAT64));
        for (k = 0; k < n; k++) {
            if (tol > 0.1 && fabs(cos(0.3 * (double)k)) < 0.3) { continue; }         /* too small for the squares of halves */
            if (!(fabs(have[k] - a[k]) <= tol) && bad++ < 3) { printf("element %d: %.9g, not %.9g\n", (int)k, have[k], a[k]); }
        }
    }
    CHECK_INT(bad, 0);
    opd_optimizer_free(opt);
    free(a);
}
TEST(every_dtype_and_size) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT64, OPD_FLOAT32, OPD_BFLOAT16, OPD_FLOAT16};
    static const int64_t sizes[] = {1, 7, 16, 23, 1000, 40003, 100000};
    size_t d, s;
    for (d = 0; d < 4; d++) {
        for (s = 0; s < sizeof sizes / sizeof *sizes; s++) OPD_SCOPE { large_adam(dtypes[d], sizes[s], s % 2 == 1, s % 3 == 1); }
    }
}
TEST(results_do_not_depend_on_threads) {
    opd_tensor *p[2], *g;
    int i, was = opd_threads();
    for (i = 0; i < 2; i++) {
        opd_optimizer *o;
        opd_threads_set(i ? 3 : 1);
        opd_manual_seed(3);
        p[i] = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(100003), OPD_FLOAT32), true);
        g = opd_randn(OPD_INTS(100003), OPD_FLOAT32);
        o = opd_adamw_new(&p[i], 1, NULL);
        CHECK_INT(opd_tensor_set_grad(p[i], g), 0);
        CHECK_INT(opd_optimizer_step(o), 0);
        CHECK_INT(opd_optimizer_step(o), 0);
        opd_optimizer_free(o);
    }
    opd_threads_set(was);
    CHECK(memcmp(opd_data_f32(p[0]), opd_data_f32(p[1]), 100003 * sizeof(float)) == 0);
}

//-- the optimizer as an object ----------------------------------------------------------------------------------------

TEST(state_and_rate) {
    opd_tensor *params[2], *moment;
    opd_optimizer *o;
    opd_adam_options options = opd_adam_defaults();
    uint32_t version;
    options.amsgrad = true;
    params[0] = parameter(0, OPD_FLOAT64);
    params[1] = parameter(1, OPD_FLOAT64);
    o = opd_adam_new(params, 2, &options);
    CHECK_NEAR(opd_optimizer_lr(o), 1e-3, 0);
    CHECK_INT(opd_optimizer_set_lr(o, 0.25), 0);
    CHECK_NEAR(opd_optimizer_lr(o), 0.25, 0);
    CHECK_INT(opd_optimizer_step(o), 0);          /* no gradients: nothing to do */
    CHECK(opd_optimizer_state(o, 0, "exp_avg") == NULL);
    CHECK_INT(opd_tensor_set_grad(params[0], numbers(0, OPD_FLOAT64, slope, 0)), 0);
    version = opd_tensor_version(params[0]);
    CHECK_INT(opd_optimizer_step(o), 0);
    CHECK_INT(opd_tensor_version(params[0]), version + 1);
    CHECK(opd_tensor_requires_grad(params[0]) && opd_tensor_is_leaf(params[0]) && opd_grad_mode_enabled());
    moment = opd_optimizer_state(o, 0, "exp_avg");
    CHECK_OR_RETURN(moment != NULL);
    CHECK_NEAR(opd_data_f64(moment)[2], 0.1 * slope(0, 0, 2), 1e-15);
    CHECK_NEAR(opd_data_f64(opd_optimizer_state(o, 0, "exp_avg_sq"))[2], 0.001 * pow(slope(0, 0, 2), 2), 1e-15);
    CHECK_NEAR(opd_data_f64(opd_optimizer_state(o, 0, "max_exp_avg_sq"))[2], 0.001 * pow(slope(0, 0, 2), 2), 1e-15);
    CHECK_NEAR(opd_item_f64(opd_optimizer_state(o, 0, "step")), 1, 0);
    CHECK(opd_optimizer_state(o, 1, "exp_avg") == NULL);
    CHECK_OK();
    CHECK(opd_optimizer_state(o, 0, "momentum_buffer") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no state 'momentum_buffer' for parameter 0");
    CHECK(opd_optimizer_state(o, 2, "step") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no state 'step' for parameter 2");
    CHECK_INT(opd_optimizer_zero_grad(o), 0);
    CHECK(opd_tensor_grad(params[0]) == NULL);
    opd_optimizer_free(o);
    opd_optimizer_free(NULL);
}
static void goes_on(bool sgd) {
    static const char *const names[2][3] = {{"step", "exp_avg", "exp_avg_sq"}, {"momentum_buffer", NULL, NULL}};
    opd_tensor *p[2];
    opd_optimizer *o[2];
    opd_sgd_options options = opd_sgd_defaults();
    int i, k;
    options.momentum = options.dampening = 0.5;
    p[0] = parameter(1, OPD_FLOAT64);
    o[0] = sgd ? opd_sgd_new(p, 1, &options) : opd_adam_new(p, 1, NULL);
    for (k = 0; k < 2; k++) {
        CHECK_INT(opd_tensor_set_grad(p[0], numbers(1, OPD_FLOAT64, slope, k)), 0);
        CHECK_INT(opd_optimizer_step(o[0]), 0);
    }
    p[1] = opd_tensor_set_requires_grad(opd_clone(opd_detach(p[0])), true);
    o[1] = sgd ? opd_sgd_new(p + 1, 1, &options) : opd_adam_new(p + 1, 1, NULL);
    for (k = 0; k < 3 && names[sgd][k]; k++) {
        CHECK_INT(opd_optimizer_set_state(o[1], 0, names[sgd][k], opd_optimizer_state(o[0], 0, names[sgd][k])), 0);
    }
    for (i = 0; i < 2; i++) {
        CHECK_INT(opd_tensor_set_grad(p[i], numbers(1, OPD_FLOAT64, slope, 5)), 0);
        CHECK_INT(opd_optimizer_step(o[i]), 0);
    }
    CHECK(memcmp(opd_data_f64(p[0]), opd_data_f64(p[1]), 6 * sizeof(double)) == 0);
    CHECK_INT(opd_optimizer_set_state(o[1], 0, names[sgd][0], numbers(0, OPD_FLOAT64, slope, 0)), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "has other sizes than parameter 0");
    CHECK_INT(opd_optimizer_set_state(o[1], 0, names[sgd][0], NULL), -1);
    opd_error_clear();
    CHECK_INT(opd_optimizer_set_state(o[1], 0, names[!sgd][0], p[0]), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_optimizer_set_state: the optimizer has no state '");
    for (i = 0; i < 2; i++) { opd_optimizer_free(o[i]); }
}
TEST(a_saved_optimizer_goes_on) {
    goes_on(false);
    goes_on(true);
}

//-- bad input ---------------------------------------------------------------------------------------------------------

TEST(options_are_checked) {
    opd_tensor *p = parameter(0, OPD_FLOAT32), *null = NULL, *made = opd_mul(p, p), *whole = opd_tensor_new(OPD_INTS(2), OPD_INT64);
    opd_sgd_options s = opd_sgd_defaults();
    opd_adam_options a = opd_adam_defaults();
    CHECK(opd_sgd_new(NULL, 1, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "optimizer got an empty parameter list");
    CHECK(opd_sgd_new(&p, 0, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "optimizer got an empty parameter list");
    CHECK(opd_adam_new(&null, 1, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameter 0 is NULL");
    CHECK(opd_adam_new(&whole, 1, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameter 0 is not floating point");
    CHECK(opd_adam_new(&made, 1, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "can't optimize a non-leaf Tensor");
    s.lr = -1;
    CHECK(opd_sgd_new(&p, 1, &s) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Invalid learning rate: -1");
    s = opd_sgd_defaults();
    s.momentum = NAN;
    CHECK(opd_sgd_new(&p, 1, &s) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Invalid momentum value: ");
    s.momentum = 0;
    s.nesterov = true;
    CHECK(opd_sgd_new(&p, 1, &s) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Nesterov momentum requires a momentum and zero dampening");
    a.beta2 = 1;
    CHECK(opd_adam_new(&p, 1, &a) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Invalid beta parameter at index 1: 1");
    a = opd_adam_defaults();
    a.eps = -1;
    CHECK(opd_adamw_new(&p, 1, &a) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Invalid epsilon value: -1");
    CHECK_INT(opd_optimizer_step(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the optimizer is NULL");
    CHECK_INT(opd_optimizer_zero_grad(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the optimizer is NULL");
    CHECK_INT(opd_optimizer_set_lr(NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the optimizer is NULL");
    CHECK(opd_clip_grad_norm(NULL, 1, 1, 2, false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the parameters are NULL");
    CHECK_INT(opd_clip_grad_value(NULL, 1, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the parameters are NULL");
    CHECK(isnan(opd_lr_step(1, 1, 0, 0.5)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "step_size at least 1");
    CHECK(isnan(opd_lr_linear(1, 1, 0, 1, 5)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Starting multiplicative factor expected to be greater than 0");
    CHECK(isnan(opd_lr_cosine(1, 1, 0, 0)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "t_max must be at least 1");
    CHECK(isnan(opd_lr_cosine_restarts(1, 1, 0, 1, 0)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected positive integer T_0");
    CHECK(isnan(opd_lr_cosine_restarts(1, 1, 1, 0, 0)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected integer T_mult >= 1");
    CHECK(isnan(opd_lr_one_cycle(1, NULL)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected positive integer total_steps");
    {
        opd_one_cycle c = opd_one_cycle_defaults(1, 10);
        CHECK(isnan(opd_lr_one_cycle(11, &c)));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Tried to step 11 times. The specified number of total steps is 10");
    }
}
static int warned;
static void count_warnings(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error == 0 && strstr(text, "optimizer contains a parameter group with duplicate parameters (number 2)")) { warned++; }
}
TEST(a_parameter_that_is_there_twice) {
    opd_tensor *p[4];
    int i;
    for (i = 0; i < 4; i++) { p[i] = parameter(0, OPD_FLOAT32); }
    opd_log_set(count_warnings, NULL);
    warned = 0;
    opd_optimizer_free(opd_sgd_new(p, 4, NULL));
    CHECK_INT(warned, 0);
    p[2] = p[0];
    opd_optimizer_free(opd_sgd_new(p, 4, NULL));
    opd_log_set(NULL, NULL);
    CHECK_INT(warned, 1);
}
/* A call of _fused_adam_ with tensors that do not fit fails and changes nothing. */
static void bad_adam(opd_tensor *const *lists, int which, opd_tensors other, const char *text) {
    opd_op *op = opd_find("aten::_fused_adam_");
    opd_value v[15], rets[1];
    double before = element(lists[0], 0);
    opd_tensor *step = opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32);
    bool was = opd_grad_mode_set(false);
    int k;
    for (k = 0; k < 5; k++) { v[k] = opd_value_tensors(k == which ? other.data : &lists[k], k == which ? other.n : k == 4 ? 0 : 1); }
    v[5] = opd_value_tensors(which == 5 ? other.data : &step, which == 5 ? other.n : 1);
    for (k = 6; k < 11; k++) { v[k] = opd_value_double(0.1); }
    v[11] = v[12] = opd_value_bool(false);
    v[13] = v[14] = opd_value_none();
    CHECK_INT(opd_call_all(op, rets, v, 15), -1);
    CHECK_ERROR(opd_error_code(), text);
    CHECK_NEAR(element(lists[0], 0), before, 0);
    (void)opd_grad_mode_set(was);
}
TEST(lists_that_do_not_fit) {
    opd_tensor *lists[5], *two[2], *one;
    int k;
    for (k = 0; k < 5; k++) { lists[k] = numbers(0, OPD_FLOAT32, start, 0); }
    two[0] = two[1] = lists[1];
    bad_adam(lists, 0, opd_tensors_of(NULL, 0), "Tensor list must have at least one tensor.");
    bad_adam(lists, 1, opd_tensors_of(two, 2), "Tensor lists must have the same number of tensors, got 1 and 2 (argument 'grads')");
    bad_adam(lists, 3, opd_tensors_of(two, 0), "Tensor lists must have the same number of tensors, got 1 and 0 (argument 'exp_avg_sqs')");
    one = numbers(0, OPD_FLOAT64, start, 0);
    bad_adam(lists, 1, opd_tensors_of(&one, 1), "must have the same dtype, device and sizes, but tensor 0 of argument 'grads' is ");
    one = numbers(1, OPD_FLOAT32, start, 0);
    bad_adam(lists, 2, opd_tensors_of(&one, 1), "must have the same dtype, device and sizes, but tensor 0 of argument 'exp_avgs' is ");
    one = opd_expand(numbers(0, OPD_FLOAT32, start, 0), OPD_INTS(5));
    bad_adam(lists, 5, opd_tensors_of(&one, 1), "must have one element");
    one = opd_expand(opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_INTS(5));
    bad_adam(lists, 3, opd_tensors_of(&one, 1), "more than one element of the written-to tensor refers to a single memory location");
    one = opd_tensor_view(opd_ones(OPD_INTS(9), OPD_FLOAT32), size_5, opd_strides(lists[0]), 1, 0);
    lists[3] = opd_tensor_view(one, size_5, opd_strides(lists[0]), 1, 2);
    bad_adam(lists, 2, opd_tensors_of(&one, 1), "refer to a single memory location");
}
TEST(a_step_is_no_part_of_a_graph) {
    opd_tensor *p = parameter(0, OPD_FLOAT32), *g = numbers(0, OPD_FLOAT32, slope, 0);
    opd_value v[12], rets[1];
    int k;
    v[0] = opd_value_tensors(&p, 1);
    v[1] = opd_value_tensors(&g, 1);
    v[2] = opd_value_tensors(NULL, 0);
    for (k = 3; k < 7; k++) { v[k] = opd_value_double(0); }
    for (k = 7; k < 10; k++) { v[k] = opd_value_bool(false); }
    v[10] = v[11] = opd_value_none();
    CHECK_INT(opd_call_all(opd_find("aten::_fused_sgd_"), rets, v, 12), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation.");
}
TEST(loss_scaling) {
    opd_tensor *p = numbers(0, OPD_FLOAT32, start, 0), *g = numbers(0, OPD_FLOAT32, slope, 0);
    double first = element(p, 1), slope1 = element(g, 1);
    const float four = 4, one = 1;
    opd_value v[12], rets[1];
    int k;
    v[0] = opd_value_tensors(&p, 1);
    v[1] = opd_value_tensors(&g, 1);
    v[2] = opd_value_tensors(NULL, 0);
    for (k = 3; k < 7; k++) { v[k] = opd_value_double(k == 5 ? 0.5 : 0); }
    for (k = 7; k < 10; k++) { v[k] = opd_value_bool(false); }
    v[10] = opd_value_tensor(opd_tensor_from(&four, opd_ints_of(NULL, 0), OPD_FLOAT32));
    v[11] = opd_value_tensor(opd_tensor_from(&one, opd_ints_of(NULL, 0), OPD_FLOAT32));
    CHECK_INT(opd_call_all(opd_find("aten::_fused_sgd_"), rets, v, 12), 0);         /* found_inf: a step that is left out */
    CHECK_NEAR(element(p, 1), first, 0);
    v[11] = opd_value_none();
    CHECK_INT(opd_call_all(opd_find("aten::_fused_sgd_"), rets, v, 12), 0);
    CHECK_NEAR(element(g, 1), slope1 / 4, 1e-7);
    CHECK_NEAR(element(p, 1), first - 0.5 * slope1 / 4, 1e-7);
}
TEST(norms_that_are_not_finite) {
    opd_tensor *p = parameter(0, OPD_FLOAT32), *norm;
    CHECK_NEAR(opd_item_f64(opd_clip_grad_norm(&p, 1, 1, 2, true)), 0, 0);         /* no gradients at all */
    CHECK_NEAR(opd_item_f64(opd_clip_grad_norm(NULL, 0, 1, 2, true)), 0, 0);
    CHECK_INT(opd_tensor_set_grad(p, opd_full_like(opd_detach(p), OPD_V((double)INFINITY))), 0);
    CHECK(opd_clip_grad_norm(&p, 1, 1, 2, true) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "The total norm of order 2 for gradients from `parameters` is non-finite, so it cannot be clipped. To disable "
                "this error and scale the gradients by the non-finite norm anyway, pass false as error_if_nonfinite.");
    CHECK(isinf(element(opd_tensor_grad(p), 0)));
    norm = opd_clip_grad_norm(&p, 1, 1, 2, false);
    CHECK(isinf(opd_item_f64(norm)) && isnan(element(opd_tensor_grad(p), 0)));
    CHECK(opd_grad_mode_enabled());
}
TEST(any_allocation_may_fail) {
    opd_tensor *params[2];
    int64_t n, live;
    int how, t;
    for (how = 0; how < 5; how++) {
        for (n = 0; n < 400; n++) OPD_SCOPE {
            opd_sgd_options s = opd_sgd_defaults();
            opd_optimizer *o = NULL;
            double before, after;
            int64_t seen;
            int rc = 0;
            s.momentum = 0.9;
            for (t = 0; t < 2; t++) {
                params[t] = parameter(t, OPD_FLOAT64);
                (void)opd_tensor_set_grad(params[t], numbers(t, OPD_FLOAT64, slope, 0));
            }
            before = element(params[0], 1) + element(params[1], 1);
            live = opd_memory_stats().live;
            if (n) { (void)opd_memory_fail_at(n, n % 2 == 0); }
            if (how < 3) {
                o = how == 0 ? opd_sgd_new(params, 2, &s) : how == 1 ? opd_adam_new(params, 2, NULL) : opd_adamw_new(params, 2, NULL);
                rc = o ? opd_optimizer_step(o) : -1;
            } else { rc = how == 3 ? (opd_clip_grad_norm(params, 2, 0.1, 2, true) ? 0 : -1) : opd_clip_grad_value(params, 2, 0.1); }
            seen = opd_memory_fail_at(0, false);
            CHECK(rc == 0 ? opd_ok() : opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
            after = element(params[0], 1) + element(params[1], 1);
            if (rc && o) { CHECK_NEAR(after, before, 0); }
            if (o && rc) {
                CHECK_INT(opd_optimizer_step(o), 0);                         /* and goes on as if nothing had been */
                CHECK_NEAR(element(params[0], 1), start(0, 0, 1) - (how == 0 ? 1e-3 * slope(0, 0, 1) : 1e-3 * (slope(0, 0, 1) > 0 ? 1 : -1)),
                           how == 2 ? 2e-5 : 1e-9);
            }
            opd_optimizer_free(o);
            if (n && how < 3) { CHECK(opd_memory_stats().live <= live); }
            if (n && seen < n) { n = 1000; }
        }
    }
}

TEST(a_step_that_fails_changes_nothing) {         /* dampening: parameters on their first step are stepped apart */
    int64_t n;
    int t, failed = 0;
    for (n = 1; n < 200; n++) OPD_SCOPE {
        opd_sgd_options s = opd_sgd_defaults();
        opd_tensor *params[2], *buffer;
        opd_optimizer *o;
        double before[3];
        int64_t seen;
        int rc;
        s.momentum = 0.9;
        s.dampening = 0.5;
        for (t = 0; t < 2; t++) { params[t] = parameter(t, OPD_FLOAT64); }
        o = opd_sgd_new(params, 2, &s);
        (void)opd_tensor_set_grad(params[0], numbers(0, OPD_FLOAT64, slope, 0));
        CHECK_INT(opd_optimizer_step(o), 0);
        (void)opd_tensor_set_grad(params[1], opd_t(opd_contiguous(opd_t(numbers(1, OPD_FLOAT64, slope, 0)))));
        buffer = opd_optimizer_state(o, 0, "momentum_buffer");
        before[0] = element(params[0], 1);
        before[1] = element(params[1], 1);
        before[2] = element(buffer, 1);
        (void)opd_memory_fail_at(n, true);
        rc = opd_optimizer_step(o);
        seen = opd_memory_fail_at(0, false);
        opd_error_clear();
        failed += rc != 0;
        CHECK((element(params[0], 1) == before[0]) == (rc != 0));
        CHECK((element(params[1], 1) == before[1]) == (rc != 0));
        CHECK((element(buffer, 1) == before[2]) == (rc != 0));
        if (rc) { CHECK_INT(opd_optimizer_step(o), 0); }
        CHECK_NEAR(element(opd_optimizer_state(o, 1, "momentum_buffer"), 1), slope(1, 0, 1), 0);
        CHECK_NEAR(element(buffer, 1), (0.9 + 0.5) * slope(0, 0, 1), 1e-15);
        opd_optimizer_free(o);
        if (seen < n) { n = 1000; }
    }
    CHECK(failed > 3);
}
TEST(parameters_that_cannot_be_written) {         /* their call is the second, and the first is undone */
    static const int64_t sizes[] = {2, 3}, strides[] = {0, 1};
    opd_sgd_options s = opd_sgd_defaults();
    opd_tensor *params[2], *buffer;
    opd_optimizer *o;
    double before[2];
    s.momentum = s.dampening = 0.5;
    params[0] = parameter(0, OPD_FLOAT64);
    params[1] = opd_tensor_set_requires_grad(opd_tensor_view(numbers(1, OPD_FLOAT64, start, 0), sizes, strides, 2, 0), true);
    o = opd_sgd_new(params, 2, &s);
    (void)opd_tensor_set_grad(params[0], numbers(0, OPD_FLOAT64, slope, 0));
    CHECK_INT(opd_optimizer_step(o), 0);
    (void)opd_tensor_set_grad(params[1], opd_ones_like(opd_contiguous(opd_detach(params[1]))));
    buffer = opd_optimizer_state(o, 0, "momentum_buffer");
    before[0] = element(params[0], 1);
    before[1] = element(buffer, 1);
    CHECK_INT(opd_optimizer_step(o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "refers to a single memory location");
    CHECK(element(params[0], 1) == before[0] && element(buffer, 1) == before[1]);
    opd_optimizer_free(o);
}

/* A phase of the policy that has no steps is an error at the step that would be in it, as in PyTorch. */
TEST(a_cycle_with_a_phase_without_steps) {
    static const struct { double start; int64_t steps, wrong; bool three; } rows[] = {
        {0.1, 10, 0, false}, {0.1, 10, 0, true}, {0.5, 2, 0, true}, {1, 1, 0, false}, {1, 10, 10, false}, {0, 10, -1, false},
        {0.3, 1, -1, false}, {0, 1, -1, false}, {0.5, 4, -1, false}};
    size_t r;
    int linear;
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (linear = 0; linear < 2; linear++) {
            opd_one_cycle c = opd_one_cycle_defaults(1, rows[r].steps);
            int64_t step;
            c.pct_start = rows[r].start;
            c.three_phase = rows[r].three;
            c.linear = linear != 0;
            for (step = 0; step < rows[r].steps + (rows[r].wrong == rows[r].steps); step++) {
                const double lr = opd_lr_one_cycle(step, &c);
                CHECK((isnan(lr) != 0) == (step == rows[r].wrong));
                if (step == rows[r].wrong) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "a phase of the cycle has no steps"); }
            }
        }
    }
}

//-- groups ------------------------------------------------------------------------------------------------------------

static opd_tensor *group_leaf(double value) {
    const int64_t three = 3;
    return opd_tensor_set_requires_grad(opd_full(opd_ints_of(&three, 1), opd_value_double(value), OPD_FLOAT32), true);
}
/* Complex parameters take the steps of torch.optim (PyTorch 2.15's numbers), also if they are a view, if the gradient
   is a lazy conjugate, and together with real parameters. */
TEST(complex_parameters) {
    static const double begin[] = {1, 2, -0.5, 0.25, 3, -1};
    static const double after[3][6] = {{-0.4901402208, 1.84864622065, -0.462161555163, -0.1225350552, 2.49007666475, 1.05592555325}, 
        {0.601826252226, 1.627894115689, -0.146985747647, -0.133449083419, 2.598878432249, -0.601247713655}, 
        {0.567960814328, 1.675171291962, -0.23420316904, -0.145282166921, 2.4866456466, -0.568152234735}};
    for (int kind = 0; kind < 3; kind++) {
        opd_sgd_options s = opd_sgd_defaults();
        opd_adam_options a = opd_adam_defaults();
        OPD_SCOPE {
            opd_tensor *w = opd_tensor_new(OPD_INTS(3), OPD_COMPLEX128), *real = parameter(0, OPD_FLOAT64);
            opd_tensor *params[2];
            memcpy(opd_data(w), begin, sizeof begin);
            params[0] = w = opd_tensor_set_requires_grad(w, true);
            params[1] = real;
            s.lr = a.lr = 0.1;
            s.momentum = 0.9;
            s.dampening = 0.5;
            s.weight_decay = 0.01;
            a.amsgrad = kind == 1;
            a.weight_decay = kind == 1 ? 0.01 : 0.1;
            opd_optimizer *const o = kind == 0 ? opd_sgd_new(params, 2, &s) : kind == 1 ? opd_adam_new(params, 2, &a)
                : opd_adamw_new(params, 2, &a);
            CHECK_OK();
            for (int i = 0; i < 4; i++) {
                opd_tensor *const g = opd_tensor_new(OPD_INTS(3), OPD_COMPLEX128);
                const double *const at = (const double *)opd_data(w);
                double *const to = (double *)opd_data(g);
                for (int k = 0; k < 6; k += 2) {              /* the gradient is w (0.5 - i) */
                    to[k] = 0.5 * at[k] + at[k + 1];
                    to[k + 1] = 0.5 * at[k + 1] - at[k];
                }
                CHECK_INT(opd_tensor_set_grad(w, i == 2 ? opd_conj(opd_resolve_conj(opd_conj(g))) : g), 0);
                if (i > 0) { CHECK_INT(opd_tensor_set_grad(real, numbers(0, OPD_FLOAT64, slope, i)), 0); }
                CHECK_INT(opd_optimizer_step(o), 0);
            }
            for (int k = 0; k < 6; k++) { CHECK_NEAR(((const double *)opd_data(w))[k], after[kind][k], 1e-11); }
            opd_tensor *const state = opd_optimizer_state(o, 0, kind == 0 ? "momentum_buffer" : "exp_avg_sq");
            CHECK(state && opd_dtype(state) == OPD_COMPLEX128);
            CHECK(opd_optimizer_state(o, 1, kind == 0 ? "momentum_buffer" : "exp_avg_sq"));
            opd_optimizer_free(o);
        }
        CHECK_OK();
    }
}
static double first_of(opd_tensor *tensor) { return opd_item_f64(opd_select(opd_detach(tensor), 0, 0)); }

TEST(groups_have_options_of_their_own) {
    OPD_SCOPE {
        opd_tensor *p[] = {group_leaf(1), group_leaf(2), group_leaf(3), group_leaf(4)}, *extra = group_leaf(5);
        opd_optimizer *sgd = opd_sgd_new(p, 4, NULL), *adam = opd_adamw_new(p, 1, NULL);
        CHECK_INT(opd_optimizer_groups(sgd), 1);
        CHECK_INT(opd_optimizer_groups(NULL), 0);
        CHECK_INT(opd_optimizer_set_option(sgd, 0, "lr", 0.5), 0);
        opd_tensor *moved[] = {p[3], p[1]};
        CHECK_INT(opd_optimizer_move_group(sgd, moved, 2), 1);
        CHECK_INT(opd_optimizer_add_group(sgd, &extra, 1), 2);
        CHECK_INT(opd_optimizer_groups(sgd), 3);
        CHECK_INT(opd_optimizer_group_size(sgd, 0), 2);
        CHECK_INT(opd_optimizer_group_size(sgd, 1), 2);
        CHECK(opd_optimizer_param(sgd, 0) == p[0] && opd_optimizer_param(sgd, 1) == p[2] && opd_optimizer_param(sgd, 2) == p[3]);
        CHECK(opd_optimizer_param(sgd, 3) == p[1] && opd_optimizer_param(sgd, 4) == extra && !opd_optimizer_param(sgd, 5));
        CHECK_NEAR(opd_optimizer_option(sgd, 1, "lr"), 0.5, 0);
        CHECK_INT(opd_optimizer_set_option(sgd, 1, "lr", 0.25), 0);
        CHECK_INT(opd_optimizer_set_option(sgd, 2, "momentum", 0.5), 0);
        CHECK_INT(opd_optimizer_set_option(sgd, 0, "weight_decay", 0.5), 0);
        for (int step = 0; step < 2; step++) {
            opd_optimizer_zero_grad(sgd);
            opd_tensor *sum = opd_sum(opd_add(opd_add(opd_add(p[0], p[1]), opd_add(p[2], p[3])), extra));
            CHECK_INT(opd_backward(sum), 0);
            CHECK_INT(opd_optimizer_step(sgd), 0);
        }
        CHECK_NEAR(first_of(p[0]), (1 - 0.5 * 1.5) - 0.5 * (1 + 0.5 * 0.25), 1e-6);
        CHECK_NEAR(first_of(p[1]), 2 - 2 * 0.25, 1e-6);
        CHECK_NEAR(first_of(p[3]), 4 - 2 * 0.25, 1e-6);
        CHECK_NEAR(first_of(extra), 5 - 0.5 - 0.5 * 1.5, 1e-6);
        CHECK_NEAR(first_of(opd_optimizer_state(sgd, 4, "momentum_buffer")), 1.5, 0);
        CHECK(opd_optimizer_state(sgd, 3, "momentum_buffer") == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "no state 'momentum_buffer' for parameter 3");
        CHECK_INT(opd_optimizer_move_group(sgd, &extra, 1), 3);   /* with its state; group 2 is empty now */
        CHECK_NEAR(first_of(opd_optimizer_state(sgd, 4, "momentum_buffer")), 1.5, 0);
        CHECK_INT(opd_optimizer_group_size(sgd, 2), 0);
        CHECK_INT(opd_optimizer_step(sgd), 0);
        CHECK_INT(opd_optimizer_forget(sgd, 4), 0);
        CHECK(opd_optimizer_state(sgd, 4, "momentum_buffer") == NULL);
        CHECK_INT(opd_optimizer_set_lr(sgd, 1), 0);
        CHECK_NEAR(opd_optimizer_option(sgd, 3, "lr"), 1, 0);
        CHECK_STR(opd_optimizer_name(sgd), "SGD");
        CHECK_STR(opd_optimizer_name(adam), "AdamW");
        CHECK_NEAR(opd_optimizer_option(adam, 0, "beta2"), 0.999, 0);
        CHECK_INT(opd_optimizer_set_option(adam, 0, "amsgrad", 1), 0);
        CHECK_NEAR(opd_optimizer_option(adam, 0, "amsgrad"), 1, 0);
        CHECK_INT(opd_optimizer_set_option(adam, 0, "beta1", 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "Invalid beta parameter at index 0: 1");
        CHECK_INT(opd_optimizer_set_option(adam, 0, "momentum", 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "AdamW has no option 'momentum': it has lr, beta1, beta2, eps");
        CHECK(isnan(opd_optimizer_option(adam, 1, "lr")));
        CHECK_ERROR(OPD_ERROR_INDEX, "there is no group 1: the optimizer has 1 group(s)");
        CHECK_INT(opd_optimizer_add_group(sgd, p, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "appear in more than one parameter group");
        opd_tensor *twice[] = {p[0], p[0]}, *other = group_leaf(1);
        CHECK_INT(opd_optimizer_move_group(sgd, twice, 2), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameter 1 is not in a group of the optimizer, or is given twice");
        CHECK_INT(opd_optimizer_move_group(sgd, &other, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "parameter 0 is not in a group of the optimizer");
        CHECK_INT(opd_optimizer_move_group(sgd, p, 0), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "empty parameter list");
        CHECK_INT(opd_optimizer_forget(sgd, 7), -1);
        CHECK_ERROR(OPD_ERROR_INDEX, "the optimizer has no parameter 7");
        opd_optimizer_free(sgd);
        opd_optimizer_free(adam);
    }
}
/* A momentum that begins later begins as PyTorch's does: the buffer is the first gradient. */
TEST(momentum_that_begins_later) {
    OPD_SCOPE {
        opd_tensor *p = group_leaf(1);
        opd_optimizer *sgd = opd_sgd_new(&p, 1, NULL);
        for (int step = 0; step < 2; step++) {
            opd_optimizer_zero_grad(sgd);
            opd_backward(opd_sum(opd_mul_Scalar(p, OPD_V(2))));
            CHECK_INT(opd_optimizer_step(sgd), 0);
            CHECK_INT(opd_optimizer_set_option(sgd, 0, "momentum", 0.9), 0);
            CHECK_INT(opd_optimizer_set_option(sgd, 0, "dampening", 0.5), 0);
        }
        CHECK_NEAR(first_of(opd_optimizer_state(sgd, 0, "momentum_buffer")), 2, 0);
        opd_optimizer_free(sgd);
    }
}
CHECK_MAIN()
