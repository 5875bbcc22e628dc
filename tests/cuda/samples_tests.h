/* Tests of random numbers from distributions on a GPU.  Part of test_cuda.c. */

/* Parameters at the bounds between methods, and such that have no distribution. */
static const double sample_rates[] = {0, 0.01, 0.3, 1, 9.99, 10, 10.01, 37, 1e3, 1e6, 1e12, INFINITY, 2.5};
static const double sample_shapes[] = {0, 1e-4, 0.3, 0.999, 1, 1.001, 4, 37, 1e5, 1e9, INFINITY, -1, NAN};
static const double sample_counts[] = {0, 1, 7.5, 19, 20, 21, 100, 1e4, 1e9, -3, INFINITY, NAN, 40};
static const double sample_chances[] = {0.5, 0, 1, 0.25, 0.75, 1e-3, 0.999, NAN, 1.5, -0.25, 0.49, 0.51, 0.1};
enum { SAMPLE_POINTS = 13, SAMPLE_ROWS = 700, SAMPLE_KINDS = 8 };
/* The numbers as a tensor [rows, points] in one of several layouts. */
static opd_tensor *sample_tensor(const double *from, opd_scalar_type dtype, int layout) {
    opd_tensor *x = opd_to_dtype(opd_tensor_from((void *)(uintptr_t)from, OPD_INTS(SAMPLE_POINTS), OPD_FLOAT64), dtype);
    opd_tensor *const many = opd_expand(opd_unsqueeze(x, 0), OPD_INTS(SAMPLE_ROWS, SAMPLE_POINTS));
    return layout == 0 ? opd_clone(many) : layout == 1 ? opd_transpose(opd_clone(opd_transpose(many, 0, 1)), 0, 1) : many;
}
/* Draws from distribution `kind` by the generator, with parameters on the CPU or on the GPU. */
static opd_tensor *sampled(int kind, opd_scalar_type dtype, int layout, bool on, opd_generator *g) {
    opd_tensor *x = sample_tensor(kind == 1 ? sample_counts : kind == 0 ? sample_rates : sample_shapes, dtype, layout);
    opd_tensor *y = sample_tensor(sample_chances, dtype, layout == 2 ? 2 : 1 - layout);
    if (kind == 3) { x = opd_clamp(x, opd_value_double(1e-5), opd_value_double(1e5)); x = opd_nan_to_num(x); }
    if (on) { x = to_gpu(x); y = to_gpu(y); }
    switch (kind) {
        case 0: return opd_poisson_full(x, g);
        case 1: return opd_binomial_full(x, y, g);
        case 2: return opd_standard_gamma_full(x, g);
        case 3: return opd_sample_dirichlet_full(x, g);
        case 4: return opd_cauchy_full(x, 1, 2, g);
        case 5: return opd_log_normal_full(x, 0.5, 2, g);
        case 6: return opd_geometric_full(x, 0.01, g);
        default: return layout == 2 ? opd_cauchy_full(x, -3, 1e-3, g) : opd_log_normal_full_(opd_clone(x), -2, 0.1, g);
    }
}
/* A seed gives the same numbers on the GPU and the CPU, bit for bit, and the generator goes on from the same place. */
TEST(samples_are_those_of_the_cpu) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
    if (!there()) { SKIP("no GPU"); }
    opd_generator *const g = opd_generator_new(5);
    const int64_t before = opd_cpu_fallback_count();
    for (int k = 0; k < SAMPLE_KINDS * 3 * 4; k++) {
        const int kind = k % SAMPLE_KINDS, layout = k / SAMPLE_KINDS % 3;
        const opd_scalar_type type = types[k / SAMPLE_KINDS / 3];
        if ((kind == 1 || kind == 2 || kind == 3) && k / SAMPLE_KINDS / 3 > 1) { continue; }
        OPD_SCOPE {
            opd_tensor *got[2], *after[2], *apart;
            for (int on = 0; on < 2; on++) {
                opd_generator_seed(g, (uint64_t)(1000 + k));
                (void)opd_rand_generator(OPD_INTS(3), g, OPD_FLOAT32);     /* takes some words */
                got[on] = sampled(kind, type, layout, on, g);
                after[on] = opd_rand_generator(OPD_INTS(9), g, OPD_FLOAT32);
            }
            if (!got[0] || !got[1] || !opd_equal(after[0], after[1])) {
                printf("    kind %d of %s, layout %d: %s\n", kind, opd_dtype_name(type), layout, opd_error_message());
                CHECK(!"drawn");
                continue;
            }
            CHECK_INT(opd_tensor_device(got[1]).type, OPD_CUDA);
            same_strides(got[1], got[0]);
            got[1] = to_host(got[1]);
            /* the sums of Dirichlet numbers are another operator's */
            if (kind == 3) { CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(got[0], got[1])))), 0, type == OPD_FLOAT64 ? 1e-13 : 1e-6); continue; }
            apart = opd_ne(opd_nan_to_num_full(got[0], opd_value_double(-77), OPD_NONE, OPD_NONE),
                           opd_nan_to_num_full(got[1], opd_value_double(-77), OPD_NONE, OPD_NONE));
            if (opd_item_f64(opd_sum(apart)) != 0) {
                printf("    kind %d of %s, layout %d: %g numbers differ\n", kind, opd_dtype_name(type), layout, opd_item_f64(opd_sum(apart)));
                CHECK(!"the same numbers");
            }
        }
    }
    CHECK_INT(opd_cpu_fallback_count(), before);
    opd_generator_free(g);
    CHECK_OK();
}
static opd_tensor *samples_out(opd_tensor *out, opd_tensor *rates) {
    const opd_value args[3] = {opd_value_tensor(rates), opd_value_none(), opd_value_tensor(out)};
    return special_call("poisson.out", args, 3);
}
/* Results in given tensors, in place, of integers, of no elements and of one; views whose elements are repeated. */
TEST(samples_in_other_forms) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *got[2][10];
    int n = 0;
    for (int on = 0; on < 2; on++) {
        const opd_device where = opd_device_make(on ? OPD_CUDA : OPD_CPU, -1);
        opd_tensor *const rates = opd_to_device(opd_arange(opd_value_double(24), OPD_FLOAT32), where, OPD_FLOAT32);
        opd_tensor *const wide = opd_zeros_like(opd_reshape(rates, OPD_INTS(4, 6)));
        opd_tensor *empty, *wide_out;
        opd_manual_seed(3);
        n = 0;
        got[on][n++] = samples_out(opd_zeros_like(rates), rates);
        (void)opd_cauchy_(opd_slice(wide, 1, opd_value_int(1), opd_value_int(6), 2));
        got[on][n++] = wide;
        got[on][n++] = opd_geometric_(opd_to_dtype(rates, OPD_INT64), 0.03);
        got[on][n++] = opd_geometric_(opd_to_dtype(rates, OPD_UINT8), 0.5);
        got[on][n++] = opd_poisson(opd_select(rates, 0, 7));
        got[on][n++] = opd_standard_gamma(opd_add_Scalar(opd_transpose(opd_reshape(rates, OPD_INTS(4, 6)), 0, 1), opd_value_int(1)));
        got[on][n++] = opd_log_normal(rates);
        got[on][n++] = opd_binomial(opd_reshape(rates, OPD_INTS(24, 1)), opd_div_Scalar(opd_slice(rates, 0, opd_value_int(0), opd_value_int(5), 1), opd_value_int(5)));
        empty = opd_poisson(opd_narrow(rates, 0, 0, 0));
        CHECK(empty && opd_numel(empty) == 0);
        wide_out = opd_zeros_like(opd_to_dtype(rates, OPD_FLOAT64));
        CHECK(samples_out(wide_out, rates) == NULL);
        opd_error_clear();
        CHECK(opd_standard_gamma(opd_to_dtype(rates, OPD_FLOAT16)) == NULL);
        opd_error_clear();
        CHECK(opd_geometric_(opd_to_dtype(rates, OPD_BOOL), 0.5) == NULL);
        opd_error_clear();
    }
    for (int i = 0; i < n; i++) {
        CHECK(got[0][i] && got[1][i] && opd_equal(to_host(got[1][i]), got[0][i]));
        if (got[0][i] && got[1][i] && !opd_equal(to_host(got[1][i]), got[0][i])) { printf("    form %d\n", i); }
    }
    CHECK_OK();
}
/* A rate below 0, or NaN, is an error when the host waits; it names the operator. */
TEST(samples_of_wrong_rates) {
    static const double wrong[] = {-1, NAN};
    if (!there()) { SKIP("no GPU"); }
    for (int i = 0; i < 2; i++) {
        opd_tensor *x = opd_poisson(full_on(0, 40, wrong[i], OPD_FLOAT32));
        CHECK(x == NULL || opd_device_synchronize(gpu(0)) != 0);
        CHECK(strstr(opd_error_message(), "poisson") && strstr(opd_error_message(), "invalid Poisson rate, expected rate to be non-negative"));
        opd_error_clear();
    }
    CHECK_INT(opd_device_synchronize(gpu(0)), 0);
    CHECK_OK();
}
static void many_sampled(opd_tensor **into, opd_generator *g) {
    OPD_SCOPE {
        (void)opd_copy_(into[0], opd_poisson_full(opd_add_Scalar(opd_zeros_like(into[0]), opd_value_int(12)), g));
        (void)opd_cauchy_full_(into[1], 0, 1, g);
        (void)opd_copy_(into[2], opd_standard_gamma_full(opd_ones_like(into[2]), g));
    }
}
/* Replays draw the numbers that calls would draw. */
TEST(samples_in_a_capture) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *eager[3], *captured[3], *want[3][3];
    opd_generator *const g = opd_generator_new(8);
    for (int k = 0; k < 3; k++) { eager[k] = full_on(0, 300, 0, OPD_FLOAT32); captured[k] = opd_zeros_like(eager[k]); }
    opd_stream s = opd_stream_new(gpu(0));
    (void)opd_stream_wait(s, opd_stream_current(gpu(0)));
    opd_stream was = opd_stream_set(s);
    many_sampled(captured, g);
    opd_generator_seed(g, 8);
    CHECK_INT(opd_capture_begin(s), 0);
    many_sampled(captured, g);
    opd_capture *const c = opd_capture_end(s);
    CHECK(c != NULL);
    opd_stream_set(was);
    for (int i = 0; i < 3; i++) {
        many_sampled(eager, g);
        for (int k = 0; k < 3; k++) { want[i][k] = to_host(opd_clone(eager[k])); }
    }
    opd_generator_seed(g, 8);
    for (int i = 0; i < 3 && c; i++) {
        CHECK_INT(opd_capture_replay(c, s), 0);
        CHECK_INT(opd_stream_wait(was, s), 0);
        for (int k = 0; k < 3; k++) { CHECK(opd_equal(to_host(captured[k]), want[i][k])); }
    }
    CHECK(!opd_equal(want[0][0], want[1][0]));
    opd_capture_free(c);
    opd_generator_free(g);
    opd_stream_free(s);
    CHECK_OK();
}
/* The derivatives of gamma numbers are computed on the GPU, too. */
TEST(samples_have_derivatives) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *g[2][2];
    const int64_t before = opd_cpu_fallback_count();
    for (int on = 0; on < 2; on++) {
        for (int kind = 0; kind < 2; kind++) {
            opd_tensor *x = opd_add_Scalar(opd_reshape(opd_arange(opd_value_double(12), OPD_FLOAT64), OPD_INTS(3, 4)), opd_value_double(0.4)), *sum;
            x = opd_tensor_set_requires_grad(on ? to_gpu(x) : x, true);
            opd_manual_seed(21);
            sum = opd_sum(opd_square(kind == 0 ? opd_standard_gamma(x) : opd_log(opd_standard_gamma(x))));
            g[on][kind] = NULL;
            (void)opd_autograd_grad(&sum, 1, &x, 1, NULL, &g[on][kind]);
        }
    }
    for (int kind = 0; kind < 2; kind++) { same_gradients("a derivative of gamma numbers", g[1][kind], g[0][kind], 1e-9); }
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
