/* Products, convolutions and attention of compiled graphs are computed by loops or by kernels of the library, whichever
   is faster.  The flag -O0 makes the loops slow, so that the kernels are chosen. */
#include "../cases.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static opd_tensor *ramp(const int64_t *sizes, int ndim, int seed, opd_scalar_type dtype) {
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, ndim), OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((i + seed) * 7 % 23 - 11) * 0.0625f; }
    return opd_to_dtype(x, dtype);
}
static opd_scalar_type dtype_now = OPD_FLOAT32;
static opd_tensor *numbers(int seed, int64_t a, int64_t b, int64_t c, int64_t d) {
    const int64_t sizes[4] = {a, b, c, d};
    return ramp(sizes, 4, seed, dtype_now);
}
static opd_tensor *matrix(int seed, int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    return ramp(sizes, 2, seed, dtype_now);
}
static opd_tensor *row(int seed, int64_t size) { return ramp(&size, 1, seed, dtype_now); }

/* A layer whose result has another order of dims: a depthwise convolution, whose results are contiguous along the
   channels, and a product with gelu and a residual. */
static opd_tensor *weights[8];
static int block(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t one[2] = {1, 1}, seven[2] = {2, 2}, channels = 16;
    (void)user;
    (void)n;
    opd_tensor *x = opd_conv2d_full(in[0], weights[0], weights[1], opd_ints_of(one, 2), opd_ints_of(one, 2),
                                    opd_ints_of(one, 2), 1);
    x = opd_relu(x);
    opd_tensor *y = opd_conv2d_full(x, weights[2], weights[3], opd_ints_of(one, 2), opd_ints_of(seven, 2),
                                    opd_ints_of(one, 2), 16);
    y = opd_layer_norm(opd_permute(y, OPD_INTS(0, 2, 3, 1)), opd_ints_of(&channels, 1), NULL, NULL, 1e-5);
    y = opd_gelu(opd_linear(y, weights[4], weights[5]));
    y = opd_linear(y, weights[6], NULL);
    out[0] = opd_add(x, opd_permute(y, OPD_INTS(0, 3, 1, 2)));
    return out[0] ? 1 : -1;
}
static void make_weights(void) {
    weights[0] = numbers(1, 16, 8, 3, 3);
    weights[1] = row(2, 16);
    weights[2] = numbers(3, 16, 1, 5, 5);
    weights[3] = row(4, 16);
    weights[4] = matrix(5, 48, 16);
    weights[5] = row(6, 48);
    weights[6] = matrix(7, 16, 48);
    weights[7] = numbers(8, 1, 1, 1, 48);
    for (int i = 0; i < 8; i++) { weights[i] = opd_keep(weights[i]); }
}
static void release_weights(void) { for (int i = 0; i < 8; i++) { opd_release(weights[i]); } }
/* Strided and dilated convolutions, groups, one dim, batches, and images whose channels are the innermost dim. */
static int convolutions(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t one[2] = {1, 1}, two[2] = {2, 1};
    (void)user;
    (void)n;
    opd_tensor *const turned = opd_permute(in[0], OPD_INTS(0, 2, 3, 1)), *x;
    out[0] = opd_conv2d_full(in[0], weights[0], NULL, opd_ints_of(two, 2), opd_ints_of(one, 2), opd_ints_of(two, 2), 1);
    x = opd_conv2d_full(in[0], opd_narrow(weights[0], 1, 0, 4), weights[1], opd_ints_of(one, 2), opd_ints_of(two, 2),
                        opd_ints_of(one, 2), 2);
    out[1] = opd_contiguous(opd_permute(x, OPD_INTS(0, 3, 2, 1)));
    out[2] = opd_conv2d(opd_permute(opd_contiguous(turned), OPD_INTS(0, 3, 1, 2)), weights[0], NULL, OPD_INTS(1), OPD_INTS(0));
    out[3] = opd_conv1d(opd_select(in[0], 2, 3), opd_select(weights[0], 2, 1), NULL, OPD_INTS(1), OPD_INTS(0));
    return out[3] ? 4 : -1;
}
/* Products with other strides, several of them at once, with a cast of the result, and with operands of other
   dtypes. */
static int products(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const a = opd_select(in[0], 0, 0), *const b = opd_select(in[0], 0, 1);
    out[0] = opd_matmul(a, opd_transpose(b, 1, 2));
    out[1] = opd_exp(opd_matmul(opd_transpose(a, 1, 2), b));
    out[2] = opd_to_dtype(opd_matmul(opd_select(a, 0, 0), opd_t(opd_select(b, 0, 1))), OPD_FLOAT32);
    out[3] = opd_permute(opd_matmul(a, opd_t(opd_select(b, 0, 2))), OPD_INTS(2, 0, 1));
    opd_tensor *const small = opd_to_dtype(opd_mul_Scalar(b, opd_value_double(8)), OPD_INT8);
    opd_tensor *const half = opd_to_dtype(b, OPD_BFLOAT16);
    out[4] = opd_matmul(a, opd_transpose(opd_to_dtype(small, opd_dtype(a)), 1, 2));
    out[5] = opd_matmul(a, opd_transpose(opd_to_dtype(half, opd_dtype(a)), 1, 2));
    return out[5] ? 6 : -1;
}
static int attention(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const q = in[0], *const k = opd_mul_Scalar(in[0], opd_value_double(0.5)), *const v = opd_neg(in[0]);
    out[0] = opd_add(opd_scaled_dot_product_attention(q, k, v, NULL, 0, false), q);
    out[1] = opd_scaled_dot_product_attention_full(q, k, v, weights[7], 0, false, opd_value_none(), false);
    out[2] = opd_scaled_dot_product_attention_full(q, k, opd_contiguous(v), NULL, 0, true, opd_value_double(0.25), false);
    return out[2] ? 3 : -1;
}
/* Compares runs of a function with uncompiled ones, for two inputs of the same kind. */
static void compare(opd_transform_fn fn, int outputs, const int64_t sizes[4], const char *flags, bool frozen) {
    opd_compile_options options;
    OPD_SCOPED;
    memset(&options, 0, sizeof options);
    options.frozen = frozen;
    options.flags = flags;
    opd_tensor *x = numbers(9, sizes[0], sizes[1], sizes[2], sizes[3]), *got[6], *want[6];
    opd_graph *const graph = opd_graph_trace(fn, NULL, &x, 1, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, &options) : NULL;
    CHECK_OR_RETURN(compiled != NULL);
    for (int i = 0; i < 4; i++) {
        x = numbers(9 + i % 2, sizes[0], sizes[1], sizes[2], sizes[3]);
        CHECK_INT(opd_graph_run(graph, &x, 1, want, outputs), outputs);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, got), outputs);
        for (int k = 0; k < outputs && opd_ok(); k++) {
            CHECK(opd_allclose_full(got[k], want[k], 1e-4, 2e-5, true));
        }
    }
    const char *const why = opd_compiled_reason(compiled);
    if (why && !strstr(why, "faster")) { CHECK_STR(why, NULL); }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
TEST(both_ways_give_the_same_results) {
    static const int64_t images[4] = {1, 8, 14, 15}, batches[4] = {2, 8, 12, 11}, heads[4] = {2, 3, 48, 40};
    static const struct { opd_transform_fn fn; int outputs; const int64_t *sizes; } graphs[] = {
        {block, 1, images}, {block, 1, batches}, {convolutions, 4, images}, {convolutions, 4, batches},
        {products, 6, heads}, {attention, 3, heads}};
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int kind = 0; kind < 2; kind++) {
        dtype_now = kind ? OPD_FLOAT64 : OPD_FLOAT32;
        OPD_SCOPED;
        make_weights();
        for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
            for (int way = 0; way < 4; way++) {
                char text[60];
                (void)snprintf(text, sizeof text, "graph %d of dtype %d, way %d", (int)i, kind, way);
                if (!check_compiles(text)) { continue; }
                compare(graphs[i].fn, graphs[i].outputs, graphs[i].sizes, way % 2 ? "-O0" : NULL, way > 1);
            }
        }
        release_weights();
    }
    dtype_now = OPD_FLOAT32;
}
/* If the code is slower than uncompiled runs, later runs are uncompiled, except with OPD_COMPILED_ALWAYS=1. */
static int many_logarithms(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = in[0];
    for (int i = 0; i < 4 && out[0]; i++) { out[0] = opd_sigmoid(opd_log(opd_exp(out[0]))); }
    return out[0] ? 1 : -1;
}
static void run_slow_code(bool always) {
    opd_compile_options options;
    OPD_SCOPED;
    (void)setenv("OPD_COMPILED_ALWAYS", always ? "1" : "0", 1);
    memset(&options, 0, sizeof options);
    options.flags = "-O0";
    opd_tensor *x = matrix(1, 1024, 256), *got, *want;
    opd_graph *const graph = opd_graph_trace(many_logarithms, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
    for (int i = 0; i < 3; i++) {
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        CHECK(opd_allclose_full(got, want, 1e-5, 1e-6, true));
    }
    const char *const why = opd_compiled_reason(compiled);
    if (always) { CHECK_STR(why, NULL); }
#if !defined(CHECK_SANITIZED)
    else { CHECK(why && strstr(why, "faster") != NULL); }
#else
    else { CHECK(!why || strstr(why, "faster") != NULL); }
#endif
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
}
/* Code with an open size is compared again where the size is much larger than before. */
TEST(open_sizes_are_compared_in_ranges) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    static const int64_t rows[] = {1, 2, 1023, 1023, 1023, 1000, 1, 3};
    const int open = 0;
    opd_compile_options options;
    (void)setenv("OPD_COMPILED_ALWAYS", "0", 1);
    memset(&options, 0, sizeof options);
    options.flags = "-O0";
    options.open = &open;
    options.least = 1;
    options.most = 2000;
    options.kinds = 2;
    opd_tensor *x = matrix(1, 1, 64), *got, *want;     /* 64: small sizes take too little time to be compared */
    opd_graph *const graph = opd_graph_trace(many_logarithms, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    for (int i = 0; i < 8; i++) {
        OPD_SCOPED;
        x = matrix(i, rows[i], 64);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        CHECK_INT(many_logarithms(NULL, &x, 1, &want), 1);
        CHECK(opd_allclose_full(got, want, 1e-5, 1e-6, true));
#if !defined(CHECK_SANITIZED)                     /* sanitizers change the times */
        const char *const why = opd_compiled_reason(compiled);
        /* 1 row: the code is made; 1023: it is compared, then compiled for this size, and found slow again; 1000: would
           be a third kind; 1: the code with an open size */
        if (i == 1 || i > 5 || i == 2) { CHECK_STR(why, NULL); }
        else { CHECK(why && (strstr(why, i == 0 ? "new" : i == 4 ? "faster" : "limit"))); }
#endif
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
}
TEST(slow_code_does_not_stay) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    run_slow_code(false);
    run_slow_code(true);
}
/* Timed runs do not change the tensors that a run writes: weights, such as a running mean, and inputs. */
static opd_tensor *means[3];                      /* the running mean, the running variance, and the weight of a product */
static int trained(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const made = opd_mm(in[0], means[2]);
    (void)user;
    (void)n;
    out[0] = opd_batch_norm(made, NULL, NULL, means[0], means[1], true, 0.25, 1e-5, false);
    return out[0] ? 1 : -1;
}
static int adds_to_input(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_add_(in[1], opd_mm(in[0], means[2]));
    out[1] = opd_select(in[1], 0, 0);
    return out[1] ? 2 : -1;
}
TEST(timed_runs_do_not_write_inputs) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    means[2] = matrix(3, 64, 96);
    for (int way = 0; way < 3; way++) {           /* compared with uncompiled runs, which are slower or faster, or not
                                                     compared */
        opd_compile_options options;
        opd_tensor *in[2] = {matrix(1, 512, 64), opd_t(matrix(2, 96, 512))}, *got[2], *want = opd_clone(in[1]);
        memset(&options, 0, sizeof options);
        options.flags = way == 1 ? "-O0" : NULL;
        (void)setenv("OPD_COMPILED_ALWAYS", way == 2 ? "1" : "0", 1);
        opd_graph *const graph = opd_graph_trace(adds_to_input, NULL, in, 2, NULL);
        opd_compiled *const compiled = graph ? opd_graph_compile(graph, &options) : NULL;
        CHECK_OR_RETURN(compiled != NULL);
        CHECK(opd_copy_(in[1], want) != NULL);
        for (int i = 0; i < 4; i++) {
            CHECK(opd_add_(want, opd_mm(in[0], means[2])) != NULL);
            CHECK_INT(opd_compiled_function(compiled, in, 2, got), 2);
            CHECK(got[0] == in[1] && opd_data(got[1]) == opd_data(in[1]));
            CHECK(opd_allclose_full(in[1], want, 1e-4, 1e-5, false));
        }
        if (way == 2) { CHECK_STR(opd_compiled_reason(compiled), NULL); }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
}
TEST(timed_runs_do_not_write_weights) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_tensor *x = matrix(1, 2048, 64), *out, *want[2], *const product = matrix(3, 64, 96);
    (void)setenv("OPD_COMPILED_ALWAYS", "0", 1);
    for (int way = 0; way < 5; way++) {           /* uncompiled, compiled, compiled by -O0, frozen, frozen by -O0 */
        opd_compile_options options;
        memset(&options, 0, sizeof options);
        options.flags = way && way % 2 == 0 ? "-O0" : NULL;
        options.frozen = way > 2;
        means[2] = product;
        for (int i = 0; i < 2; i++) { means[i] = opd_ones(OPD_INTS(96), OPD_FLOAT32); }
        opd_graph *const graph = opd_graph_trace(trained, NULL, &x, 1, NULL);
        opd_compiled *const compiled = graph ? opd_graph_compile(graph, &options) : NULL;
        CHECK_OR_RETURN(compiled != NULL);
        for (int i = 0; i < 2; i++) { CHECK(opd_fill_(means[i], OPD_V(1)) != NULL); }
        for (int i = 0; i < 3; i++) {
            if (way == 0) { CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1); }
            else { CHECK_INT(opd_compiled_function(compiled, &x, 1, &out), 1); }
        }
        for (int i = 0; i < 2; i++) {
            if (way == 0) { want[i] = opd_clone(means[i]); }
            else { CHECK(opd_allclose_full(means[i], want[i], 1e-4, 1e-5, false)); }
        }
        if (way) { CHECK_STR(opd_compiled_reason(compiled), NULL); }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
}
/* Frozen weights in a mapped file may leave the memory while the code is made, but not what was written into them. */
static opd_tensor *mapped;
static int multiplies(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_relu(opd_mm(in[0], mapped));
    return out[0] ? 1 : -1;
}
TEST(written_pages_of_a_mapped_file_stay) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    const char *const name = "weight";
    char path[200];
    opd_compile_options options;
    memset(&options, 0, sizeof options);
    options.frozen = true;
    (void)snprintf(path, sizeof path, "/tmp/opd_test_mapped_%d.safetensors", (int)getpid());
    opd_tensor *x = matrix(1, 96, 512), *weight = matrix(2, 512, 512), *got, *want;
    CHECK_INT(opd_safetensors_save(path, &name, opd_tensors_of(&weight, 1), NULL), 0);
    opd_tensor_file *const file = opd_tensor_file_open(path);
    CHECK_OR_RETURN(file != NULL);
    CHECK(unlink(path) == 0);
    mapped = opd_tensor_file_get(file, name);
    CHECK(opd_add_(opd_narrow(mapped, 0, 100, 300), opd_ones(OPD_INTS(1), OPD_FLOAT32)) != NULL);
    want = opd_clone(mapped);
    opd_graph *const graph = opd_graph_trace(multiplies, NULL, &x, 1, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, &options) : NULL;
    CHECK_OR_RETURN(compiled != NULL);
    for (int i = 0; i < 3; i++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1); }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    CHECK(opd_equal(mapped, want));
    CHECK(opd_allclose_full(got, opd_relu(opd_mm(x, want)), 1e-4, 1e-4, false));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_tensor_file_close(file);
}
/* Slow code is timed only once in each way, so that the first run does not take long. */
static int histograms;
static void *sleep_before_histc(const opd_event *event, void *user) {
    (void)user;
    if (strcmp(event->name, "aten::histc") == 0) {
        histograms++;
        (void)usleep(600000);
    }
    return NULL;
}
static int counts_product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_histc(opd_mm(in[0], in[0]), 4);
    return out[0] ? 1 : -1;
}
TEST(slow_code_is_timed_twice) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_tensor *x = matrix(1, 128, 128), *got;
    opd_observer observer;
    memset(&observer, 0, sizeof observer);
    observer.begin = sleep_before_histc;
    histograms = 0;
    opd_graph *const graph = opd_graph_trace(counts_product, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    const int64_t handle = opd_observer_add_local(&observer);
    CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
    CHECK(opd_observer_remove(handle));
    CHECK_INT(histograms, 4);                     /* uncompiled, recorded, with loops, with the kernel */
    CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
/* Each allocation fails once: the run is uncompiled, or fails with an error, and no memory is lost. */
static int compile_and_run(void *arg) {
    opd_tensor *x = numbers(9, 1, 8, 14, 15), *out[4];
    opd_graph *const graph = x ? opd_graph_trace(convolutions, NULL, &x, 1, NULL) : NULL;
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    int rc = compiled ? 0 : -1;
    (void)arg;
    for (int k = 0; k < 2 && rc == 0; k++) { rc = opd_compiled_function(compiled, &x, 1, out) == 4 ? 0 : -1; }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    return rc;
}
static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
TEST(allocations_that_fail) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    make_weights();
    CHECK_INT(compile_and_run(NULL), 0);
    opd_log_set(say_nothing, NULL);
    check_allocations(compile_and_run, NULL, "opd_graph_compile, with kernels", 400, false);
    opd_log_set(NULL, NULL);
    release_weights();
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
