/* Compiled reductions, and other operators that add or multiply many numbers, give the same results as uncompiled ones
   for numbers whose squares, sums or products do not fit into their dtype. */
#include "../check.h"

/* The operators, as expressions of x [6,8] and of its rows. */
static const char *const expressions[] = {
    "x.sum()", "x.sum(1)", "x.sum(0)", "x.mean()", "x.mean(1)", "x.mean(0)", "x.prod()", "x.prod(1)", "x.prod(0)",
    "x.amax(1)", "x.amin(0)", "torch.max(x)", "torch.argmax(x, 1)", "torch.any(x, 1)", "torch.all(x, 1)",
    "torch.var(x)", "torch.var(x, 1)", "torch.std(x, 1)", "torch.var_mean(x, 1)[1]", "torch.std_mean(x, 0)[0]",
    "torch.logsumexp(x, 1)", "torch.softmax(x, 1)", "torch.log_softmax(x, 0)", "torch.nansum(x)", "torch.nansum(x, 1)",
    "torch.nanmean(x)", "torch.count_nonzero(x)", "torch.cumsum(x, 1)", "torch.cumprod(x, 1)",
    "torch.logcumsumexp(x, 1)", "torch.trace(x)", "torch.linalg.vector_norm(x)", "torch.linalg.vector_norm(x, 2, 1)",
    "torch.linalg.vector_norm(x, 1, 0)", "torch.linalg.vector_norm(x, 3)", "torch.linalg.vector_norm(x, 0.5, 1)",
    "torch.linalg.vector_norm(x, 0)", "torch.linalg.vector_norm(x, float('inf'), 1)",
    "torch.linalg.vector_norm(x, -1.0, 1)", "torch.norm(x, 2)", "torch.norm(x, 3, [1])", "torch.frobenius_norm(x, [0, 1])",
    "torch.cosine_similarity(x, x, 1)", "torch.pairwise_distance(x, -x)", "torch.cdist(x, -x)", "torch.cdist(x, -x, 1.0)",
    "torch.cdist(x, -x, 3.0)", "torch.dist(x, -x)", "torch.renorm(x, 2, 0, 1.0)",
    "torch.nn.functional.normalize(x, 2.0, 1)", "torch.layer_norm(x, [8])", "torch.rms_norm(x, [8])",
    "torch.group_norm(x, 2)", "torch.nn.functional.mse_loss(x, -x)", "torch.nn.functional.l1_loss(x, -x)",
    "torch.nn.functional.l1_loss(x, -x, reduction='sum')", "torch.nn.functional.avg_pool1d(x, 4)",
    "torch.nn.functional.avg_pool2d(x.unsqueeze(0), 2)", "torch.nn.functional.adaptive_avg_pool1d(x, 3)",
    "torch.scatter_add(x, 1, torch.zeros([6, 8], dtype=torch.int64), x)",
    "torch.index_add(x, 0, torch.zeros([6], dtype=torch.int64), x)", "torch.median(x)", "torch.aminmax(x)[0]",
    "torch.mm(x.abs(), x.abs().t())", "torch.mv(x.abs(), x[0].abs())", "torch.dot(x[0].abs(), x[1].abs())",
    "torch.addmm(x[:, :6], x.abs(), x.abs().t())", "torch.bmm(x.abs().unsqueeze(0), x.abs().t().unsqueeze(0))", "torch.diff(x)", "torch.linalg.matrix_norm(x)"
};
/* For each dtype: scales of the numbers. */
static const struct { opd_scalar_type dtype; double scales[4], near; } kinds[] = {
    {OPD_FLOAT32, {1, 1e30, 1e-30, 1e15}, 2e-5}, {OPD_FLOAT64, {1, 1e200, 1e-200, 1e100}, 1e-9},
    {OPD_FLOAT16, {1, 300, 1e-4, 8e3}, 4e-3}, {OPD_BFLOAT16, {1, 1e30, 1e-30, 1e15}, 3e-2},
    {OPD_INT64, {1, 2e9, 3e18, 9e18}, 0}, {OPD_INT32, {1, 3e4, 1e9, 2e9}, 0}, {OPD_UINT8, {1, 20, 100, 200}, 0}
};

/* Returns numbers from -1 to 1, times `scale`. */
static opd_tensor *numbers(opd_scalar_type dtype, double scale) {
    const int64_t sizes[2] = {6, 8};
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT64);
    for (int64_t i = 0; x && i < 48; i++) {
        const double y = (double)(i * 7 % 11 - 5) * 0.05, z = (y + (y < 0 ? -0.75 : 0.75)) * scale;
        opd_data_f64(x)[i] = !opd_dtype_is_floating(dtype) ? floor(dtype == OPD_UINT8 ? fabs(z) : z) : z;
    }
    return opd_to_dtype(x, dtype);
}
/* Returns whether all elements are equal, or nearly so. */
static bool near_to(opd_tensor *got, opd_tensor *want, double tolerance) {
    if (!got || !want || opd_dtype(got) != opd_dtype(want) || opd_numel(got) != opd_numel(want)) { return false; }
    if (!opd_dtype_is_floating(opd_dtype(want))) { return opd_equal(got, want); }
    opd_tensor *const a = opd_contiguous(opd_to_dtype(got, OPD_FLOAT64));
    opd_tensor *const b = opd_contiguous(opd_to_dtype(want, OPD_FLOAT64));
    double most = 0;
    for (int64_t i = 0; i < opd_numel(b); i++) {
        const double y = fabs(opd_data_f64(b)[i]);
        most = y - y == 0 && y > most ? y : most;
    }
    for (int64_t i = 0; i < opd_numel(b); i++) {
        const double x = opd_data_f64(a)[i], y = opd_data_f64(b)[i];
        if (x == y || (x != x && y != y)) { continue; }
        if (!(fabs(x - y) <= tolerance * most)) {
            printf("    element %lld: compiled %g, uncompiled %g\n", (long long)i, x, y);
            return false;
        }
    }
    return true;
}
static void compare(opd_compiled *compiled, const opd_graph *graph, const char *text, int kind) {
    for (int i = 0; i < 4; i++) {
        const double scale = kinds[kind].scales[i];
        OPD_SCOPED;
        opd_tensor *x = numbers(kinds[kind].dtype, scale), *got, *want;
        if (opd_graph_run(graph, &x, 1, &want, 1) != 1) {                 /* this dtype is not supported */
            opd_error_clear();
            return;
        }
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        const bool near = near_to(got, want, kinds[kind].near);
        if (!near) { printf("%s, %s, numbers up to %g\n", text, opd_dtype_name(kinds[kind].dtype), scale); }
        CHECK(near);
    }
}
static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
TEST(large_and_small_numbers) {
    char source[300];
    const size_t count = sizeof expressions / sizeof *expressions;
    if (!check_cache_begin()) { SKIP("no cc"); }
    if (system("tcc -v >/dev/null 2>&1") == 0) { (void)setenv("CC", "tcc", 1); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    opd_log_set(say_nothing, NULL);
    for (size_t i = 0; i < count; i++) {
        if (!check_compiles(expressions[i])) { continue; }
        (void)snprintf(source, sizeof source, "def f(x: Tensor):\n    return %s\n", expressions[i]);
        opd_script *const script = opd_script_compile(source, "f");
        if (!script) { printf("%s: %s\n", expressions[i], opd_error_message()); opd_error_clear(); continue; }
        const opd_graph *const graph = opd_script_graph(script, NULL);
        for (int kind = 0; kind < 7; kind++) {
            opd_compiled *const compiled = opd_graph_compile(graph, NULL);
            CHECK(compiled != NULL);
            compare(compiled, graph, expressions[i], kind);
            opd_compiled_free(compiled);
        }
        opd_script_free(script);
    }
    opd_log_set(NULL, NULL);
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
