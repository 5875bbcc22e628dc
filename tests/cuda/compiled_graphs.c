/* Compiled graphs on CUDA: parts of graphs become kernels that NVRTC compiles.  cuda.sh builds it and runs it with the
   emulation of NVRTC in nvrtc.cpp: OPD_NVRTC=nvrtc.so.  On a GPU, without OPD_NVRTC, it uses NVRTC itself.
   OPD_TEST_NVRTC=text: compiling fails with a warning that contains the text, and graphs run operator by operator. */
#include "../../opdispatch.h"
#include "../check.h"

/* Of the emulation: counts the libraries of kernels that were loaded. */
extern long opd_emu_count(const char *name) __attribute__((weak));

static opd_device gpu(void) { return opd_device_make(OPD_CUDA, 0); }
static bool there(void) { return opd_device_count(OPD_CUDA) > 0; }
static long libraries(void) { return opd_emu_count ? opd_emu_count("libraries") : 0; }
/* The largest difference of two tensors, relative to 1 + |want|; infinite if their dtypes, sizes or strides differ. */
static double distance(opd_tensor *got, opd_tensor *want) {
    if (!got || !want || opd_dtype(got) != opd_dtype(want) || opd_ndim(got) != opd_ndim(want)) { return INFINITY; }
    for (int i = 0; i < opd_ndim(got); i++) {
        if (opd_size(got, i) != opd_size(want, i)) { return INFINITY; }
        if (opd_size(got, i) > 1 && opd_numel(got) && opd_strides(got)[i] != opd_strides(want)[i]) { return INFINITY; }
    }
    opd_tensor *const a = opd_to_device(got, opd_device_make(OPD_CPU, -1), OPD_FLOAT64);
    opd_tensor *const b = opd_to_device(want, opd_device_make(OPD_CPU, -1), OPD_FLOAT64);
    if (!opd_numel(a)) { return 0; }
    opd_tensor *const same = opd_logical_or(opd_eq(a, b), opd_logical_and(opd_isnan(a), opd_isnan(b)));
    opd_tensor *const off = opd_div(opd_abs(opd_sub(a, b)), opd_add_Scalar(opd_abs(b), opd_value_int(1)));
    const double far = opd_item_f64(opd_amax(opd_where_self(same, opd_zeros_like(off), off), OPD_INTS(), false));
    return far == far ? far : INFINITY;
}
static opd_tensor *random_on(opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *const t = opd_randn(sizes, OPD_FLOAT32);
    return opd_to_device(dtype == OPD_INT64 || dtype == OPD_BOOL ? opd_mul_Scalar(t, opd_value_double(3)) : t, gpu(), dtype);
}
/* Runs a function as a compiled graph, twice, and compares the results with the function's.  parts: whether kernels are
   expected. */
static void compare(const char *name, opd_transform_fn fn, opd_tensor **inputs, int n, bool parts) {
    opd_tensor *want[OPD_TRANSFORM_OUTPUTS], *got[OPD_TRANSFORM_OUTPUTS];
    const int count = fn(NULL, inputs, n, want);
    opd_graph *const graph = opd_graph_trace(fn, NULL, inputs, n, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    const long before = libraries();
    CHECK_OK();
    for (int run = 0; run < 2 && compiled; run++) {
        const int made = opd_compiled_function(compiled, inputs, n, got);
        if (made != count) { printf("%s: %s\n", name, opd_error_message()); }
        CHECK_INT(made, count);
        for (int i = 0; i < made; i++) {
            const opd_scalar_type dtype = opd_dtype(want[i]);
            const double far = distance(got[i], want[i]);
            const double bound = dtype == OPD_BFLOAT16 ? 2e-2 : dtype == OPD_FLOAT16 ? 3e-3 : dtype == OPD_FLOAT64 ? 1e-12 : 1e-5;
            if (!(far <= bound)) { printf("%s: result %d differs by %g\n", name, i, far); }
            CHECK(far <= bound);
        }
    }
    if (opd_emu_count && !getenv("OPD_TEST_NVRTC")) {
        if ((libraries() > before) != parts) { printf("%s: %ld libraries\n", name, libraries() - before); }
        CHECK((libraries() > before) == parts);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}

static int chain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_mul(opd_silu(opd_add(in[0], in[1])), opd_tanh(in[0]));
    return 1;
}
static int gated(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t half = opd_size(in[0], -1) / 2;
    (void)user, (void)n;
    out[0] = opd_mul(opd_gelu(opd_narrow(in[0], -1, 0, half)), opd_narrow(in[0], -1, half, half));
    return 1;
}
static int normed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t width = opd_size(in[0], -1);
    (void)user, (void)n;
    out[0] = opd_add(in[0], in[1]);
    out[1] = opd_layer_norm(out[0], opd_ints_of(&width, 1), in[2], in[3], 1e-5);
    return 2;
}
static int scored(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_softmax(opd_mul_Scalar(opd_add(in[0], in[1]), opd_value_double(0.125)), -1);
    return 1;
}
static int viewed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_transpose(in[0], 0, 1);
    out[1] = opd_add(opd_exp(in[0]), in[1]);
    out[2] = opd_select(out[1], 0, 1);
    out[3] = in[1];
    return 4;
}
static int decided(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_where_self(opd_gt(in[0], in[1]), in[0], opd_neg(in[1]));
    out[1] = opd_logical_and(opd_gt_Scalar(in[0], opd_value_int(0)), opd_lt(in[0], in[1]));
    return 2;
}
static int summed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t last = -1;
    (void)user, (void)n;
    out[0] = opd_mean_dim(opd_mul(in[0], in[0]), opd_ints_of(&last, 1), true);
    out[1] = opd_amax(opd_sub(in[0], in[1]), opd_ints_of(&last, 1), false);
    return 2;
}
static int columns(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t first = 0;
    (void)user, (void)n;
    out[0] = opd_sum_dim(opd_mul(opd_exp(in[0]), in[1]), opd_ints_of(&first, 1), false);
    return 1;
}
static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_BFLOAT16, OPD_FLOAT16, OPD_FLOAT64};

TEST(chains_of_pointwise_operators) {
    if (!there()) { SKIP("no GPU"); }
    opd_manual_seed(1);
    for (int d = 0; d < 4; d++) {
        OPD_SCOPED;
        opd_tensor *in[] = {random_on(OPD_INTS(37, 50), dtypes[d]), random_on(OPD_INTS(50), dtypes[d])};
        compare("chain", chain, in, 2, true);
        compare("gated", gated, in, 1, true);
        compare("viewed", viewed, in, 2, true);
        compare("decided", decided, in, 2, true);
        opd_tensor *turned[] = {opd_transpose(random_on(OPD_INTS(7, 5), dtypes[d]), 0, 1), random_on(OPD_INTS(5, 7), dtypes[d])};
        compare("chain, turned", chain, turned, 2, true);
        opd_tensor *none[] = {random_on(OPD_INTS(0, 50), dtypes[d]), random_on(OPD_INTS(50), dtypes[d])};
        opd_tensor *out[2];
        opd_graph *const graph = opd_graph_trace(chain, NULL, none, 2, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        CHECK_INT(opd_compiled_function(compiled, none, 2, out), 1);
        CHECK(out[0] && opd_numel(out[0]) == 0);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
}
TEST(integers_and_bools) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(9, 11), OPD_INT64), random_on(OPD_INTS(9, 11), OPD_INT64)};
    compare("decided", decided, in, 2, true);
    CHECK_OK();
}
TEST(rows) {
    static const int64_t widths[] = {1, 64, 300, 2000};
    if (!there()) { SKIP("no GPU"); }
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < 4; i++) {
            OPD_SCOPED;
            const int64_t w = widths[i];
            opd_tensor *in[] = {random_on(OPD_INTS(70, w), dtypes[d]), random_on(OPD_INTS(70, w), dtypes[d]),
                                random_on(OPD_INTS(w), dtypes[d]), random_on(OPD_INTS(w), dtypes[d])};
            compare("normed", normed, in, 4, true);
            compare("scored", scored, in, 2, true);
            compare("summed", summed, in, 2, true);
        }
    }
}
TEST(special_values) {
    if (!there()) { SKIP("no GPU"); }
    static const float some[] = {NAN, INFINITY, -INFINITY, 0, -0.0f, 1e30f, -1e30f, 1e-40f};
    for (int d = 0; d < 3; d += 2) {
        OPD_SCOPED;
        opd_tensor *const x = opd_to_device(opd_tensor_from((void *)(uintptr_t)some, OPD_INTS(1, 8), OPD_FLOAT32), gpu(), dtypes[d]);
        opd_tensor *in[] = {opd_contiguous(opd_expand(x, OPD_INTS(70, 8))), opd_transpose(opd_contiguous(opd_expand(x, OPD_INTS(8, 8))), 0, 1)};
        in[1] = opd_repeat(in[1], OPD_INTS(9, 1));
        in[1] = opd_narrow(in[1], 0, 0, 70);
        compare("chain", chain, in, 2, true);
        compare("scored", scored, in, 2, true);
        compare("summed", summed, in, 2, true);
        compare("decided", decided, in, 2, true);
    }
}
/* Sums of columns stay operators, which do them faster. */
TEST(what_stays_as_it_is) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(600, 500), OPD_FLOAT32), random_on(OPD_INTS(600, 500), OPD_FLOAT32)};
    compare("columns", columns, in, 2, false);
}
/* Results that are a part of a value have the strides of an uncompiled run: what reads them by strides depends on it. */
static int part_of_a_value(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *const y = opd_narrow(opd_exp(opd_tanh(in[0])), 1, 0, 8);
    out[0] = opd_as_strided(y, OPD_INTS(5, 3), OPD_INTS(10, 1));
    out[1] = opd_expand(opd_exp(opd_neg(opd_narrow(in[0], 1, 0, 1))), opd_ints_of(opd_sizes(in[0]), 2));
    return 2;
}
static int integers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t last = -1;
    (void)user, (void)n;
    out[0] = opd_floor_divide(opd_mul(in[0], in[0]), opd_add_Scalar(opd_mul(in[1], in[1]), opd_value_int(1)));
    out[1] = opd_amax(opd_to_dtype(opd_add(in[0], in[1]), OPD_INT16), opd_ints_of(&last, 1), false);
    return 2;
}
static int smallest(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t last = -1;
    (void)user, (void)n;
    out[0] = opd_amax(opd_add(in[0], in[1]), opd_ints_of(&last, 1), false);
    out[1] = opd_amin(opd_mul(in[0], in[1]), opd_ints_of(&last, 1), true);
    return 2;
}
static int divided(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_floor_divide(opd_exp(in[0]), opd_add_Scalar(opd_abs(in[1]), opd_value_double(0.5)));
    return 1;
}
TEST(dtypes_that_few_graphs_have) {
    static const opd_scalar_type small[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32};
    if (!there()) { SKIP("no GPU"); }
    for (int d = 0; d < 4; d++) {
        OPD_SCOPED;
        opd_tensor *in[2];
        for (int i = 0; i < 2; i++) {
            in[i] = opd_to_dtype(opd_add_Scalar(random_on(OPD_INTS(70, 40), OPD_INT64), opd_value_int(20)), small[d]);
        }
        compare("smallest", smallest, in, 2, true);
    }
    opd_tensor *wide[] = {random_on(OPD_INTS(70, 40), OPD_FLOAT64), random_on(OPD_INTS(70, 40), OPD_FLOAT64)};
    compare("divided", divided, wide, 2, true);
}
TEST(parts_of_values_and_small_integers) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(9, 33), OPD_FLOAT32)};
    compare("part_of_a_value", part_of_a_value, in, 1, true);
    opd_tensor *whole[] = {random_on(OPD_INTS(70, 40), OPD_INT64), random_on(OPD_INTS(70, 40), OPD_INT64)};
    compare("integers", integers, whole, 2, false);
}
/* Kernels stay loaded while queued work or a capture may use them. */
TEST(kernels_outlive_their_graph) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(5, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)}, *want[1], *out[1];
    (void)chain(NULL, in, 2, want);
    for (int run = 0; run < 2; run++) {
        opd_graph *const graph = opd_graph_trace(chain, NULL, in, 2, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
        CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        CHECK(distance(out[0], want[0]) < 1e-5);
    }
}
/* New sizes make new kernels; more than eight kinds run as they are. */
TEST(kinds_of_inputs) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *first[] = {random_on(OPD_INTS(4, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)};
    opd_graph *const graph = opd_graph_trace(chain, NULL, first, 2, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    const long before = libraries();
    for (int i = 0; i < 10; i++) {
        OPD_SCOPED;
        opd_tensor *in[] = {random_on(OPD_INTS(4 + i, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)}, *out[1], *want[1];
        CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
        (void)chain(NULL, in, 2, want);
        CHECK(distance(out[0], want[0]) < 1e-5);
    }
    if (opd_emu_count && !getenv("OPD_TEST_NVRTC")) { CHECK_INT(libraries() - before, 8); }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}
/* Transforms, gradients and graphs that are recorded see the operators of a part. */
static int of_compiled(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_compiled_function(user, in, n, out) == 1 && (out[0] = opd_sum(out[0])) ? 1 : -1;
}
TEST(derivatives_of_parts) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(5, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)}, *got[1], *want[1], *y[1];
    opd_graph *const graph = opd_graph_trace(chain, NULL, in, 2, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_INT(opd_compiled_function(compiled, in, 2, y), 1);
    CHECK_INT(opd_grad(of_compiled, compiled, in, 2, NULL, got, 1), 1);
    opd_tensor *x[] = {opd_tensor_set_requires_grad(in[0], true), opd_tensor_set_requires_grad(in[1], true)};
    CHECK_INT(chain(NULL, x, 2, y), 1);
    CHECK_INT(opd_backward(opd_sum(y[0])), 0);
    want[0] = opd_tensor_grad(x[0]);
    CHECK(distance(got[0], want[0]) < 1e-5);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}
/* A step of training: the loss of a small network, and the gradients of its weights. */
static int loss_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t width = opd_size(in[0], -1);
    (void)user, (void)n;
    opd_tensor *const h = opd_layer_norm(in[0], opd_ints_of(&width, 1), in[3], in[4], 1e-5);
    opd_tensor *const y = opd_add(opd_linear(opd_gelu(opd_linear(h, in[1], NULL)), in[2], NULL), in[0]);
    out[0] = opd_mean(opd_mul(opd_tanh(y), y));
    return 1;
}
static int step_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int all[] = {1, 2, 3, 4};
    opd_transform_options options;
    opd_tensor *grads[4];
    (void)user;
    memset(&options, 0, sizeof options);
    options.argnums = all;
    options.nargnums = 4;
    if (opd_grad(loss_of, NULL, in, n, &options, grads, 4) != 4) { return -1; }
    for (int i = 0; i < 4; i++) { out[i] = opd_sub(in[i + 1], opd_mul_Scalar(grads[i], opd_value_double(0.1))); }
    return 4;
}
TEST(a_step_of_training) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(70, 24), OPD_FLOAT32), random_on(OPD_INTS(96, 24), OPD_FLOAT32),
                        random_on(OPD_INTS(24, 96), OPD_FLOAT32), random_on(OPD_INTS(24), OPD_FLOAT32), random_on(OPD_INTS(24), OPD_FLOAT32)};
    compare("step", step_of, in, 5, true);
}
/* Kernels are compiled before a capture; a kind that is new in a capture runs as it is. */
TEST(captured_parts) {
    if (!there()) { SKIP("no GPU"); }
    opd_tensor *in[] = {random_on(OPD_INTS(5, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)}, *want[1], *out[1];
    opd_tensor *others[] = {random_on(OPD_INTS(8, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)}, *other_want[1], *other[1];
    opd_graph *const graph = opd_graph_trace(chain, NULL, in, 2, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
    (void)chain(NULL, in, 2, want);
    (void)chain(NULL, others, 2, other_want);
    const opd_stream stream = opd_stream_new(gpu()), was = opd_stream_current(gpu());
    (void)opd_stream_set(stream);
    CHECK_INT(opd_capture_begin(stream), 0);
    CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
    CHECK_INT(opd_compiled_function(compiled, others, 2, other), 1);
    opd_capture *const capture = opd_capture_end(stream);
    CHECK(capture != NULL);
    CHECK_INT(opd_capture_replay(capture, stream), 0);
    CHECK_INT(opd_stream_synchronize(stream), 0);
    (void)opd_stream_set(was);
    CHECK(distance(out[0], want[0]) < 1e-5 && distance(other[0], other_want[0]) < 1e-5);
    opd_capture_free(capture);
    (void)opd_stream_free(stream);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}
TEST(the_text_and_its_errors) {
    opd_tensor *x = opd_randn(OPD_INTS(70, 9), OPD_FLOAT32), *in[] = {x, x}, *w[] = {opd_randn(OPD_INTS(9, 9), OPD_FLOAT32)};
    opd_graph *const graph = opd_graph_trace(scored, NULL, in, 2, NULL);
    opd_gpu_code *const code = opd_graph_gpu_code(graph, in, 2);
    CHECK(code && code->ncalls >= 1 && code->nresults == 1 && code->nmade == 1 && strstr(code->text, "__global__"));
    CHECK(code && code->calls[0].narguments > 0 && code->calls[0].threads == 32);
    opd_gpu_code_free(code);
    CHECK(!opd_graph_gpu_code(graph, in, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "an example of each of its inputs");
    in[1] = NULL;
    CHECK(!opd_graph_gpu_code(graph, in, 2));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 1 is NULL");
    opd_graph_free(graph);
    opd_graph *const sorted = opd_graph_trace(columns, NULL, (opd_tensor *[]){w[0], w[0]}, 2, NULL);
    opd_gpu_code *const small = opd_graph_gpu_code(sorted, (opd_tensor *[]){w[0], w[0]}, 2);
    CHECK(small != NULL || opd_error_code() == OPD_ERROR_NO_KERNEL);
    opd_error_clear();
    opd_gpu_code_free(small);
    opd_graph_free(sorted);
    opd_gpu_code_free(NULL);
    CHECK_OK();
}
/* With OPD_TEST_NVRTC: the warning that says why no kernels are compiled. */
static char warned[2000];
static void keep_warning(void *user, int is_error, const char *text) {
    (void)user, (void)is_error;
    (void)snprintf(warned + strlen(warned), sizeof warned - strlen(warned), "%s", text);
}
TEST_KEEPS(nvrtc_that_cannot_be_used) {
    const char *const text = getenv("OPD_TEST_NVRTC");
    CHECK(true);
    if (!there() || !text) { return; }
    opd_tensor *in[] = {random_on(OPD_INTS(5, 6), OPD_FLOAT32), random_on(OPD_INTS(6), OPD_FLOAT32)};
    (void)opd_log_set(keep_warning, NULL);
    compare("chain", chain, in, 2, false);
    (void)opd_log_set(NULL, NULL);
    if (!strstr(warned, text)) { printf("%s\n", warned); }
    CHECK(strstr(warned, text) != NULL);
}
int main(int argc, char **argv) {
    return check_main(argc, argv, __FILE__);
}
