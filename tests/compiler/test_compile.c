/* Graphs and programs that are compiled at run time give the same results as uncompiled ones, and run uncompiled if
   they cannot be compiled. */
#include "../cases.h"
#include "../program_files.h"
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if !defined(_WIN32) && !defined(__wasm__)
#define PROCESSES
#include <sys/wait.h>
#endif

static int warnings;

static void count_warnings(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    warnings += strstr(text, "runs uncompiled") != NULL;
}
static void count_sizes(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    warnings += strstr(text, "is compiled for each size") != NULL;
}
static opd_tensor *ramp(int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT32);
    int64_t i;
    for (i = 0; x && i < rows * columns; i++) { opd_data_f32(x)[i] = (float)(i * 7 % 11 - 5) * 0.25f; }
    return x;
}
static bool close_to(opd_tensor *a, opd_tensor *b) {
    return a && b && opd_allclose_full(a, b, 1e-5, 1e-6, true);
}
static opd_tensor *weight;

static int layer(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_tanh(opd_matmul(in[0], weight));
    out[1] = opd_sum(out[0]);
    return out[1] ? 2 : -1;
}
static opd_graph *layer_graph(void) {
    opd_tensor *x = ramp(3, 4);
    weight = opd_keep(ramp(4, 5));
    return opd_graph_trace(layer, NULL, &x, 1, NULL);
}
/* Runs both, and returns whether they agree; at_once: the run is expected to be compiled. */
static bool agree(opd_compiled *compiled, opd_graph *graph, opd_tensor *x, bool at_once) {
    opd_tensor *got[2], *want[2];
    OPD_SCOPED;
    CHECK_INT(opd_graph_run(graph, &x, 1, want, 2), 2);
    CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 2);
    CHECK_INT(opd_compiled_reason(compiled) == NULL, at_once);
    if (at_once && opd_compiled_reason(compiled)) { printf("%s\n", opd_compiled_reason(compiled)); }
    return opd_ok() && close_to(got[0], want[0]) && close_to(got[1], want[1]);
}

/* A limit that is reached while a kind of inputs is compiled does not leave this kind uncompiled for ever. */
TEST(compiled_after_a_limit) {
    opd_limits limits;
    int during = 0;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_graph *const graph = layer_graph();
    memset(&limits, 0, sizeof limits);
    warnings = 0;
    opd_log_set(count_warnings, NULL);
    for (int i = 0; i < 14; i++) {
        OPD_SCOPED;
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        opd_tensor *x = ramp(3, 4), *got[2];
        limits.bytes = i % 2 ? (int64_t)1000 << i / 2 : 0;
        limits.seconds = i % 2 ? 0 : 1e-4 * (1 << i / 2);
        opd_limits_set(&limits);
        during += opd_compiled_function(compiled, &x, 1, got) == 2 && !limits.bytes;
        opd_error_clear();
        opd_limits_set(NULL);
        for (int k = 0; k < 2; k++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 2); }
        CHECK(opd_compiled_reason(compiled) == NULL);
        opd_compiled_free(compiled);
    }
    CHECK(during > 0);                            /* the limit was reached when the graph had run */
    CHECK_INT(warnings, 0);
    opd_log_set(NULL, NULL);
    opd_graph_free(graph);
    opd_release(weight);
}
#if defined(PROCESSES)
/* After opd_code_forbid, code that was compiled before runs, and nothing more is compiled, not even what is in the
   cache. */
static void compiled_before_it_is_forbidden(void) {
    opd_graph *const graph = layer_graph();
    opd_compiled *const compiled = opd_graph_compile(graph, NULL), *const other = opd_graph_compile(graph, NULL);
    opd_log_set(count_warnings, NULL);
    for (int i = 0; i < 2; i++) { CHECK(agree(compiled, graph, ramp(3, 4), i > 0)); }
    opd_code_forbid();
    CHECK(agree(compiled, graph, ramp(3, 4), true));
    for (int i = 0; i < 3; i++) {
        CHECK(agree(compiled, graph, ramp(4, 4), false));
        CHECK(agree(other, graph, ramp(3, 4), false));
    }
    CHECK(strstr(opd_compiled_reason(other), "machine code from files is forbidden") != NULL);
    CHECK_INT(warnings, 2);
    CHECK(agree(compiled, graph, ramp(3, 4), true));
}
#endif
TEST(code_forbidden_later) {
#if defined(PROCESSES)
    int status = 1;
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        check_failures = warnings = 0;
        compiled_before_it_is_forbidden();
        (void)fflush(stdout);
        CHECK_CHILD_ENDS(check_failures ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
#else
    SKIP("needs processes");
#endif
}
/* The code is compiled once for all sizes of a batch. */
TEST(a_size_that_is_open) {
    static const int64_t sizes[] = {3, 1, 2, 17, 64};
    const int open[1] = {0};
    opd_compile_options options;
    opd_graph *graph;
    int frozen;
    size_t i;
    if (!check_cache_begin()) { SKIP("no cc"); }
    memset(&options, 0, sizeof options);
    options.open = open;
    options.least = 1;
    options.most = 64;
    graph = layer_graph();
    for (frozen = 0; frozen < 2; frozen++) {
        opd_compiled *compiled;
        options.frozen = frozen;
        compiled = opd_graph_compile(graph, &options);
        CHECK_OR_RETURN(compiled != NULL);
        for (i = 0; i < sizeof sizes / sizeof *sizes; i++) { CHECK(agree(compiled, graph, ramp(sizes[i], 4), i > 0)); }
        for (i = 0; i < 2; i++) { CHECK(agree(compiled, graph, ramp(65, 4), i > 0)); }      /* which is none of them */
        for (i = 0; i < 2; i++) { CHECK(agree(compiled, graph, opd_t(ramp(4, 8)), i > 0)); }
        CHECK(agree(compiled, graph, ramp(31, 4), true));
        opd_compiled_free(compiled);
    }
    opd_graph_free(graph);
    opd_release(weight);
}
/* Each of the nested blocks is examined only once. */
TEST(deep_conditions) {
    enum { DEPTH = 40 };
    static char text[40000];
    size_t at;
    int k;
    opd_graph *graph;
    opd_compiled *compiled;
    if (!check_cache_begin()) { SKIP("no cc"); }
    at = (size_t)snprintf(text, sizeof text, "graph(%%x):\n  %%one : int = prim::Constant[value=1]()\n"
                          "  %%n : int = aten::dim(%%x)\n  %%yes : bool = aten::gt(%%n, %%one)\n");
    for (k = 0; k < DEPTH; k++) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%*s%%r%d : Tensor = prim::If(%%yes)\n%*sblock0():\n", 2 + 4 * k, "",
                               k, 4 + 4 * k, "");
    }
    at += (size_t)snprintf(text + at, sizeof text - at, "%*s%%r%d = aten::mul(%%x, %%x)\n", 2 + 4 * k, "", k);
    for (; k > 0; k--) {
        at += (size_t)snprintf(text + at, sizeof text - at, "%*s-> (%%r%d)\n%*sblock1():\n%*s-> (%%x)\n", 2 + 4 * k, "", k, 4 * k,
                               "", 2 + 4 * k, "");
    }
    (void)snprintf(text + at, sizeof text - at, "  return (%%r0)\n");
    graph = opd_graph_parse(text);
    if (!graph) { printf("%s\n%s\n", opd_error_message(), text); }
    CHECK_OR_RETURN(graph != NULL);
    compiled = opd_graph_compile(graph, NULL);
    for (k = 0; k < 2; k++) {
        OPD_SCOPED;
        opd_tensor *const x = ramp(3, 4), *got, *want;
        CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        CHECK_INT(opd_compiled_reason(compiled) == NULL, k);
        CHECK(opd_ok() && close_to(got, want));
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
/* A graph that cannot be written for an open size is compiled for each size. */
TEST(a_size_that_cannot_be_open) {
    const int open[1] = {0};
    opd_compile_options options;
    opd_compiled *compiled;
    int k;
    opd_graph *const graph = opd_graph_parse(
        "graph(%x):\n  %zero : int = prim::Constant[value=0]()\n  %n : int = aten::size(%x, %zero)\n"
        "  %two : int = aten::mul(%n, %n)\n  %three : int = aten::mul(%two, %n)\n  %y = aten::mul(%x, %three)\n"
        "  return (%y)\n");
    if (!check_cache_begin()) { SKIP("no cc"); }
    CHECK_OR_RETURN(graph != NULL);
    memset(&options, 0, sizeof options);
    options.open = open;
    options.least = 1;
    options.most = 64;
    opd_log_set(count_sizes, NULL);
    compiled = opd_graph_compile(graph, &options);
    warnings = 0;
    for (k = 0; k < 6; k++) {                     /* 3 rows and 5, in turn */
        OPD_SCOPED;
        opd_tensor *const x = ramp(3 + k % 2 * 2, 4), *got, *want;
        CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        CHECK_INT(opd_compiled_reason(compiled) == NULL, k > 1);
        CHECK(opd_ok() && close_to(got, want));
    }
    CHECK_INT(warnings, 1);
    opd_log_set(NULL, NULL);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
/* A language model with an open batch size and an open number of tokens. */
TEST(two_sizes_that_are_open) {
    static const int64_t sizes[][2] = {{3, 7}, {1, 1}, {5, 12}, {64, 2}, {2, 32}};
    const int open[1] = {0}, open_2[1] = {1};
    opd_compile_options options;
    opd_compiled *compiled;
    size_t i;
    opd_program *const program = opd_program_load(golden("tokens", ".pt2"), NULL);
    if (!check_cache_begin()) { SKIP("no cc"); }
    CHECK_OR_RETURN(program != NULL);
    (void)opd_grad_mode_set(false);
    memset(&options, 0, sizeof options);
    options.open = open;
    options.least = 1;
    options.most = 64;
    options.open_2 = open_2;
    options.least_2 = 1;
    options.most_2 = 32;
    compiled = opd_program_compile(program, &options);
    CHECK_OR_RETURN(compiled != NULL);
    for (i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t k;
        opd_value in, got, want;
        OPD_SCOPED;
        opd_tensor *const x = opd_empty(opd_ints_of(sizes[i], 2), OPD_INT64);
        for (k = 0; k < opd_numel(x); k++) { opd_data_i64(x)[k] = (k * k + (int64_t)i) % 20; }
        in = opd_value_tensor(x);
        CHECK_INT(opd_program_run(program, &in, 1, &want, 1), 1);
        CHECK_INT(opd_compiled_run(compiled, &in, 1, &got, 1), 1);
        CHECK_INT(opd_compiled_reason(compiled) == NULL, i > 0);
        CHECK(opd_ok() && close_to(got.u.t, want.u.t));
    }
    (void)opd_grad_mode_set(true);
    opd_compiled_free(compiled);
    opd_program_free(program);
}
TEST(kinds_of_inputs) {
    opd_compile_options options;
    opd_graph *graph;
    opd_compiled *compiled;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    memset(&options, 0, sizeof options);
    options.kinds = 2;
    graph = layer_graph();
    compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK(opd_compiled_reason(compiled) != NULL);
    for (k = 0; k < 3; k++) { CHECK(agree(compiled, graph, ramp(3, 4), k > 0)); }
    for (k = 0; k < 3; k++) { CHECK(agree(compiled, graph, ramp(70, 4), k > 0)); }      /* other sizes */
    for (k = 0; k < 3; k++) { CHECK(agree(compiled, graph, opd_t(ramp(4, 3)), false)); }  /* strides: a kind too much */
    CHECK(strstr(opd_compiled_reason(compiled), "more kinds") != NULL);
    CHECK(agree(compiled, graph, ramp(3, 4), true));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_release(weight);
}
TEST(constants_that_change) {
    opd_compile_options options;
    int frozen;
    if (!check_cache_begin()) { SKIP("no cc"); }
    memset(&options, 0, sizeof options);
    for (frozen = 0; frozen < 2; frozen++) {
        opd_graph *const graph = layer_graph();
        options.frozen = frozen;
        opd_compiled *const compiled = opd_graph_compile(graph, &options);
        CHECK_OR_RETURN(compiled != NULL);
        CHECK(agree(compiled, graph, ramp(3, 4), false));
        CHECK(agree(compiled, graph, ramp(3, 4), true));
        (void)opd_mul_Scalar_(weight, opd_value_double(0.5));
        CHECK(agree(compiled, graph, ramp(3, 4), !frozen));
        if (frozen) { CHECK(strstr(opd_compiled_reason(compiled), "frozen") != NULL); }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        opd_release(weight);
    }
}
/* Writes to inference tensors are not counted, so these tensors are read in each run, even if constants are frozen. */
TEST(inference_tensors_that_change) {
    static const int open[1] = {0};
    opd_compile_options options;
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int kind = 0; kind < 4; kind++) {        /* not frozen, or frozen; all sizes are fixed, or one is open */
        opd_inference_block block = opd_inference_begin(true);
        opd_graph *const graph = layer_graph();
        memset(&options, 0, sizeof options);
        options.frozen = kind % 2;
        options.open = kind > 1 ? open : NULL;
        options.least = 1;
        options.most = 8;
        opd_compiled *const compiled = opd_graph_compile(graph, &options);
        CHECK_OR_RETURN(compiled != NULL && opd_tensor_is_inference(weight));
        CHECK(agree(compiled, graph, ramp(3, 4), false));
        for (int i = 0; i < 3; i++) {
            CHECK(agree(compiled, graph, ramp(kind > 1 ? 2 + i : 3, 4), true));
            (void)opd_mul_Scalar_(weight, opd_value_double(0.5));
        }
        opd_inference_end(&block);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        opd_release(weight);
    }
}
/* Constants that a graph writes, such as the cache of an attention layer, are not frozen. */
static opd_tensor *cache, *cache_row;                /* cache_row: a row of the cache, or NULL */
static int cached_layer(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const y = opd_matmul(in[0], opd_mul(weight, weight));
    (void)opd_add_(opd_narrow(cache, 0, 1, 1), opd_sum_dim_full(y, OPD_INTS(0), true, opd_value_none()));
    out[0] = opd_add(y, opd_sum_dim_full(cache, OPD_INTS(0), true, opd_value_none()));
    out[1] = opd_sum(cache_row ? opd_mul(cache_row, cache_row) : y);
    return out[1] ? 2 : -1;
}
TEST(frozen_constants_that_are_written) {
    static const int open[1] = {0};
    opd_compile_options options;
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int kind = 0; kind < 6; kind++) {        /* all sizes are fixed, or one is open; not shared, or shared */
        opd_tensor *x = ramp(3, 4), *got[2], *want[2];
        memset(&options, 0, sizeof options);
        options.frozen = kind < 4;
        options.open = kind % 2 ? open : NULL;
        options.least = 1;
        options.most = 8;
        weight = opd_keep(ramp(4, 5));
        cache = opd_keep(opd_zeros(OPD_INTS(4, 5), OPD_FLOAT32));
        cache_row = kind == 2 || kind == 3 ? opd_keep(opd_select(cache, 0, 1)) : NULL;
        opd_graph *const graph = opd_graph_trace(cached_layer, NULL, &x, 1, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, &options);
        CHECK_OR_RETURN(compiled != NULL);
        for (int i = 0; i < 5; i++) {
            OPD_SCOPED;
            x = ramp(kind % 2 ? 2 + i : 3, 4);
            opd_tensor *const before = opd_clone(cache);
            CHECK_INT(opd_graph_run(graph, &x, 1, want, 2), 2);
            opd_tensor *const after = opd_clone(cache);
            CHECK(opd_copy_(cache, before) != NULL);
            CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 2);
            CHECK(close_to(got[0], want[0]) && close_to(got[1], want[1]) && close_to(cache, after));
            CHECK_INT(opd_compiled_reason(compiled) == NULL, i > 0 && !cache_row);
        }
        if (cache_row) { CHECK(strstr(opd_compiled_reason(compiled), "shares its memory") != NULL); }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        opd_release(cache_row);
        opd_release(cache);
        opd_release(weight);
    }
}
/* A batch norm that was folded into a weight: changes of the tensors of the batch norm are noticed, too. */
static opd_tensor *norm[4];
static int normed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_batch_norm(opd_linear(in[0], weight, NULL), norm[0], norm[1], norm[2], norm[3], false, 0.1, 1e-5, false);
    out[1] = opd_sum(out[0]);
    return out[1] ? 2 : -1;
}
TEST(norms_that_change) {
    opd_compile_options options;
    const int64_t five = 5;
    int i, k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    memset(&options, 0, sizeof options);
    for (k = 0; k < 10; k++) {   /* first not frozen, then frozen; the weight or a tensor of the norm is changed */
        opd_tensor *x = ramp(3, 4);
        weight = opd_keep(ramp(5, 4));
        for (i = 0; i < 4; i++) {
            norm[i] = opd_keep(opd_add_Scalar(opd_full(opd_ints_of(&five, 1), opd_value_double(0.5), OPD_FLOAT32),
                                              opd_value_int(i == 3)));
        }
        opd_graph *const graph = opd_graph_trace(normed, NULL, &x, 1, NULL);
        options.frozen = k >= 5;
        opd_compiled *const compiled = opd_graph_compile(graph, &options);
        CHECK_OR_RETURN(compiled != NULL);
        CHECK(agree(compiled, graph, x, false) && agree(compiled, graph, ramp(3, 4), true));
        (void)opd_mul_Scalar_(k % 5 == 4 ? weight : norm[k % 5], opd_value_double(1.5));
        CHECK(agree(compiled, graph, ramp(3, 4), k < 5));
        if (k >= 5) { CHECK(strstr(opd_compiled_reason(compiled), "frozen") != NULL); }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        opd_release(weight);
        for (i = 0; i < 4; i++) { opd_release(norm[i]); }
    }
}
/* A constant is added to itself, and so on: there are 2^60 paths to the constant. */
static int doubled(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *scale = norm[0];
    int i;
    (void)user;
    (void)n;
    for (i = 0; i < 60; i++) { scale = opd_add(scale, scale); }
    out[0] = opd_mul(opd_linear(in[0], weight, NULL), scale);
    out[1] = opd_sum(scale);
    return out[1] ? 2 : -1;
}
TEST(constants_with_many_ways_to_them) {
    opd_compile_options options;
    const int64_t five = 5;
    opd_tensor *x = ramp(3, 4);
    if (!check_cache_begin()) { SKIP("no cc"); }
    memset(&options, 0, sizeof options);
    weight = opd_keep(ramp(5, 4));
    norm[0] = opd_keep(opd_full(opd_ints_of(&five, 1), opd_value_double(0.5), OPD_FLOAT32));
    opd_graph *const graph = opd_graph_trace(doubled, NULL, &x, 1, NULL);
    options.frozen = true;
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK(agree(compiled, graph, x, false) && agree(compiled, graph, ramp(3, 4), true));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_release(weight);
    opd_release(norm[0]);
}
/* If a run needs more than values, it runs uncompiled. */
static opd_compiled *shared;
static int compiled_call(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    return opd_compiled_function(shared, in, n, out);
}
TEST(gradients_and_transforms) {
    opd_tensor *x, *batch, *out[2], *want[2], *gradient = NULL;
    opd_graph *graph, *again;
    const int64_t sizes[] = {2, 3, 4};
    if (!check_cache_begin()) { SKIP("no cc"); }
    graph = layer_graph();
    shared = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(shared != NULL);
    CHECK(agree(shared, graph, ramp(3, 4), false));
    CHECK(agree(shared, graph, ramp(3, 4), true));
    x = opd_tensor_set_requires_grad(ramp(3, 4), true);
    CHECK(agree(shared, graph, x, false));
    CHECK(strstr(opd_compiled_reason(shared), "grad") != NULL);
    CHECK_INT(opd_compiled_function(shared, &x, 1, out), 2);
    CHECK_INT(opd_backward(out[1]), 0);
    gradient = opd_tensor_grad(x);
    CHECK(gradient != NULL && opd_item_f64(opd_sum(opd_abs(gradient))) > 0);
    (void)opd_grad_mode_set(false);
    CHECK(agree(shared, graph, x, true));
    (void)opd_grad_mode_set(true);
    batch = opd_add(opd_zeros(opd_ints_of(sizes, 3), OPD_FLOAT32), ramp(3, 4));
    CHECK_INT(opd_vmap(compiled_call, NULL, &batch, 1, NULL, out, 2), 2);
    CHECK(opd_compiled_reason(shared) != NULL);
    want[0] = ramp(3, 4);
    CHECK_INT(opd_graph_run(graph, want, 1, want, 2), 2);
    CHECK(close_to(opd_select(out[0], 0, 1), want[0]));
    x = ramp(3, 4);
    again = opd_graph_trace(compiled_call, NULL, &x, 1, NULL);
    CHECK(again != NULL && opd_graph_count(again, "aten::matmul") == 1);
    opd_graph_free(again);
    opd_compiled_free(shared);
    opd_graph_free(graph);
    opd_release(weight);
}

static int writes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_add_(in[0], opd_relu(in[1]));
    out[1] = opd_mul(in[0], in[0]);
    return out[1] ? 2 : -1;
}
static int views(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_select(in[0], 0, 1);
    out[1] = opd_mul(in[0], in[0]);
    out[2] = opd_t(opd_narrow(out[1], 1, 1, 2));
    return out[2] ? 3 : -1;
}
static int looks_up(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_embedding(in[0], in[1]);
    return out[0] ? 1 : -1;
}
static int places(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_nonzero(in[0]);
    return out[0] ? 1 : -1;
}
TEST(memory_that_is_written_or_shared) {
    opd_tensor *in[2], *other[2], *out[3], *want[3], *half[2];
    opd_graph *graph;
    opd_compiled *compiled;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    in[0] = ramp(4, 4);
    in[1] = ramp(4, 4);
    graph = opd_graph_trace(writes, NULL, in, 2, NULL);
    compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (k = 0; k < 3; k++) {
        uint32_t version;
        in[0] = ramp(4, 4);
        other[0] = ramp(4, 4);
        other[1] = in[1];
        version = opd_tensor_version(in[0]);
        CHECK_INT(opd_compiled_function(compiled, in, 2, out), 2);
        CHECK_INT(opd_compiled_reason(compiled) == NULL, k > 0);
        CHECK(out[0] == in[0] && opd_tensor_version(in[0]) > version);
        CHECK_INT(opd_graph_run(graph, other, 2, want, 2), 2);
        CHECK(close_to(in[0], other[0]) && close_to(out[1], want[1]));
    }
    half[0] = half[1] = ramp(4, 4);               /* the same memory twice */
    other[0] = other[1] = ramp(4, 4);
    CHECK_INT(opd_compiled_function(compiled, half, 2, out), 2);
    CHECK(opd_compiled_reason(compiled) && strstr(opd_compiled_reason(compiled), "memory"));
    CHECK_INT(opd_graph_run(graph, other, 2, want, 2), 2);
    CHECK(close_to(half[0], other[0]) && close_to(out[1], want[1]));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    in[0] = ramp(4, 4);
    graph = opd_graph_trace(views, NULL, in, 1, NULL);
    compiled = opd_graph_compile(graph, NULL);
    for (k = 0; k < 2; k++) {
        CHECK_INT(opd_graph_run(graph, in, 1, want, 3), 3);
        CHECK_INT(opd_compiled_function(compiled, in, 1, out), 3);
        CHECK_INT(opd_compiled_reason(compiled) == NULL, k > 0);
        CHECK(close_to(out[0], want[0]) && close_to(out[1], want[1]) && close_to(out[2], want[2]));
        CHECK_INT(opd_strides(out[2])[1], opd_strides(want[2])[1]);
        (void)opd_fill_(out[0], opd_value_int(7 + k));
        CHECK(opd_data_f32(in[0])[4] == (float)(7 + k));
        (void)opd_fill_(out[2], opd_value_int(7 + k));
        CHECK(opd_data_f32(out[1])[13] == (float)(7 + k) && opd_data_f32(out[1])[12] != (float)(7 + k));
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
TEST(errors_and_compilers_that_fail) {
    static const char *const bad[] = {"/no/such/compiler", "false", "sh -c kill$IFS-9$IFS$$"};
    const char *const cc = getenv("CC");
    char was[200];
    opd_tensor *in[2], *out[2];
    opd_compile_options options;
    opd_graph *graph;
    opd_compiled *compiled;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    in[0] = ramp(4, 4);
    in[1] = opd_zeros_like(opd_to_dtype(opd_select(in[0], 0, 0), OPD_INT64));
    graph = opd_graph_trace(looks_up, NULL, in, 2, NULL);
    compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (k = 0; k < 2; k++) { CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1); }
    CHECK(opd_compiled_reason(compiled) == NULL);
    in[1] = opd_full_like(in[1], opd_value_int(4));
    CHECK_INT(opd_compiled_function(compiled, in, 2, out), -1);
    CHECK(strstr(opd_error_message(), "aten::embedding") != NULL);
    opd_error_clear();
    CHECK_INT(opd_compiled_function(compiled, in, 1, out), -1);
    CHECK(strstr(opd_error_message(), "input") != NULL);
    opd_error_clear();
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_log_set(count_warnings, NULL);
    warnings = 0;
    graph = opd_graph_trace(places, NULL, in, 1, NULL);
    compiled = opd_graph_compile(graph, NULL);
    for (k = 0; k < 3; k++) { CHECK_INT(opd_compiled_function(compiled, in, 1, out), 1); }
    CHECK(strstr(opd_compiled_reason(compiled), "aten::nonzero") != NULL);
    CHECK_INT(warnings, 1);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    (void)snprintf(was, sizeof was, "%s", cc ? cc : "");
    graph = layer_graph();
    for (k = 0; k < 3; k++) {
        (void)setenv("CC", bad[k], 1);
        warnings = 0;
        compiled = opd_graph_compile(graph, NULL);
        CHECK(compiled && agree(compiled, graph, ramp(3, 4), false) && agree(compiled, graph, ramp(3, 4), false));
        CHECK_INT(warnings, 1);
        opd_compiled_free(compiled);
    }
    if (*was) { (void)setenv("CC", was, 1); } else { (void)unsetenv("CC"); }
    opd_log_set(say_nothing, NULL);
    memset(&options, 0, sizeof options);
    options.flags = "-O1 -DNO_SUCH_THING=";
    compiled = opd_graph_compile(graph, &options);
    CHECK(agree(compiled, graph, ramp(3, 4), false) && agree(compiled, graph, ramp(3, 4), true));
    opd_compiled_free(compiled);
    opd_log_set(NULL, NULL);
    options.name = "two words";
    CHECK(opd_graph_compile(graph, &options) == NULL);
    CHECK(strstr(opd_error_message(), "name") != NULL);
    opd_error_clear();
    CHECK(opd_graph_compile(NULL, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK(opd_program_compile(NULL, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK_INT(opd_compiled_run(NULL, NULL, 0, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    opd_compiled_free(NULL);
    opd_graph_free(graph);
    opd_release(weight);
}

//-- side effects of a run ----------------------------------------------------------------------------------------------

static int turns_input(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mul_Scalar(opd_t_(in[0]), opd_value_int(2));
    return out[0] ? 1 : -1;
}
static int turns_constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_matmul(in[0], opd_t_(weight));
    return out[0] ? 1 : -1;
}
static int multiplies(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_matmul(in[0], weight);
    return out[0] ? 1 : -1;
}
static int strides_constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t sizes[] = {2, 2}, strides[] = {2, 1};
    (void)user;
    (void)n;
    out[0] = opd_add(in[0], opd_as_strided_full(weight, opd_ints_of(sizes, 2), opd_ints_of(strides, 2),
                                                opd_value_int(0)));
    return out[0] ? 1 : -1;
}
TEST(inputs_and_constants_that_are_turned) {
    opd_tensor *x, *out[1];
    opd_graph *graph;
    opd_compiled *compiled;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_log_set(say_nothing, NULL);
    x = ramp(2, 3);
    graph = opd_graph_trace(turns_input, NULL, &x, 1, NULL);
    compiled = opd_graph_compile(graph, NULL);
    for (k = 0; k < 4; k++) {
        x = k % 2 ? ramp(3, 2) : ramp(2, 3);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1);
        CHECK_INT(opd_sizes(x)[0], k % 2 ? 2 : 3);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    weight = opd_keep(ramp(3, 3));
    x = ramp(2, 3);
    graph = opd_graph_trace(turns_constant, NULL, &x, 1, NULL);
    for (k = 0; k < 8; k++) {                     /* plain ones, then frozen ones */
        const opd_compile_options options = {NULL, NULL, k >= 4, 0};
        opd_tensor *const want = opd_matmul(x, opd_t(weight));
        if (k % 4 == 0) { compiled = opd_graph_compile(graph, &options); }
        CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1);
        CHECK(close_to(out[0], want));
        if (k % 4 == 3) { opd_compiled_free(compiled); }
    }
    opd_graph_free(graph);
    opd_release(weight);
    opd_log_set(NULL, NULL);
}
TEST(constants_with_other_memory) {
    const opd_compile_options options = {NULL, NULL, true, 0};
    opd_tensor *x, *out[1], *want[1];
    opd_graph *graph;
    opd_compiled *compiled;
    opd_value value, result;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_log_set(say_nothing, NULL);
    weight = opd_keep(ramp(3, 3));
    x = ramp(2, 3);
    graph = opd_graph_trace(multiplies, NULL, &x, 1, NULL);
    compiled = opd_graph_compile(graph, &options);
    for (k = 0; k < 2; k++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1); }
    CHECK(opd_compiled_reason(compiled) == NULL);
    value = opd_value_tensor(x);
    CHECK_INT(opd_compiled_run(compiled, &value, 1, NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    for (k = 0; k < 4; k++) {                     /* the same memory turned, then other memory of the same size */
        OPD_SCOPED;
        CHECK_INT(opd_tensor_set_data(weight, k ? opd_mul_Scalar(ramp(3, 3), opd_value_int(k + 1)) : opd_t(weight)), 0);
        CHECK_INT(opd_graph_run(graph, &x, 1, want, 1), 1);
        CHECK_INT(opd_compiled_run(compiled, &value, 1, &result, 1), 1);
        CHECK(close_to(result.u.t, want[0]));
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_release(weight);
    for (k = 0; k < 2; k++) {                     /* as_strided of a constant inside of its memory, or moved there */
        opd_tensor *const inside = opd_slice(ramp(5, 3), 0, opd_value_int(1), opd_value_int(4), 1);
        int run;
        weight = opd_keep(k ? inside : ramp(3, 3));
        x = ramp(2, 2);
        graph = opd_graph_trace(strides_constant, NULL, &x, 1, NULL);
        compiled = opd_graph_compile(graph, NULL);
        for (run = 0; run < 3; run++) {
            if (run == 2) { CHECK_INT(opd_tensor_set_data(weight, inside), 0); }
            CHECK_INT(opd_graph_run(graph, &x, 1, want, 1), 1);
            CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1);
            CHECK(close_to(out[0], want[0]));
        }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        opd_release(weight);
    }
    opd_log_set(NULL, NULL);
}
/* An uncompiled run plans its memory from the run before; here, a view of an input in one run is a copy in the next. */
static int copies_or_views(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t sizes[] = {100, 4};
    opd_tensor *const flat = opd_reshape(in[0], opd_ints_of(sizes, 2));
    (void)user;
    (void)n;
    (void)opd_mul_Scalar_(flat, opd_value_int(3));
    out[0] = opd_ge(opd_neg(in[0]), in[0]);
    out[1] = opd_t(flat);
    return out[1] ? 2 : -1;
}
TEST(plain_runs_of_other_strides) {
    const int64_t sizes[] = {20, 20};
    opd_tensor *x = opd_t(opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32)), *out[2];
    opd_graph *const graph = opd_graph_trace(copies_or_views, NULL, &x, 1, NULL);
    int k;
    for (k = 0; k < 40; k++) {
        OPD_SCOPED;
        x = opd_full(opd_ints_of(sizes, 2), opd_value_int(k), OPD_FLOAT32);
        if (k / 2 % 2) { x = opd_t(x); }
        CHECK_INT(opd_graph_run(graph, &x, 1, out, 2), 2);
        CHECK(opd_item_f64(opd_sum(out[1])) == 1200.0 * k);
    }
    opd_graph_free(graph);
}
/* Functions with queries that give another answer while recording, or with effects that a recording would have only
   once. */
TEST(scripts_that_ask) {
    static const struct { const char *text; bool compiled; } scripts[] = {
        {"x.is_cpu", false}, {"x.device == torch.device('cpu')", false}, {"str(x.device) == 'cpu'", false},
        {"x.requires_grad", false}, {"x.is_inference()", false}, {"torch.is_grad_enabled()", false},
        {"x.storage_offset() == 0", false}, {"x.is_contiguous()", true}, {"x.size(0) == 3", true}};
    size_t i;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_log_set(say_nothing, NULL);
    for (i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        char source[200];
        (void)snprintf(source, sizeof source,
                       "def f(x: Tensor):\n    if %s:\n        return x * 2\n    return x - 1\n", scripts[i].text);
        opd_script *const script = opd_script_compile(source, "f");
        CHECK_OR_RETURN(script != NULL);
        const opd_graph *const graph = opd_script_graph(script, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        for (k = 0; k < 3; k++) {
            opd_tensor *x, *got, *want;
            OPD_SCOPED;
            x = k == 2 ? opd_select(ramp(4, 3), 0, 1) : opd_select(ramp(1, 3), 0, 0);
            CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
            CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
            CHECK(close_to(got, want));
        }
        CHECK_INT(opd_compiled_reason(compiled) == NULL, scripts[i].compiled);
        opd_compiled_free(compiled);
        opd_script_free(script);
    }
    opd_log_set(NULL, NULL);
}

//-- the cases of each operator -----------------------------------------------------------------------------------------

static int sixteenth(const char *name) {
    unsigned sum = 0;
    for (; *name; name++) { sum = sum * 31 + (unsigned char)*name; }
    return (int)(sum % 16);
}
/* Returns whether results of the operator are undefined, or undefined for its sample arguments. */
static bool is_unfit(const char *name) {
    return strstr(name, "empty") || strstr(name, "::searchsorted") ||
        strstr(name, "::bucketize") || strcmp(name, "aten::cumprod_backward") == 0;
}
static bool same_numbers(opd_tensor *got, opd_tensor *want) {
    return opd_dtype(got) == opd_dtype(want) && opd_ndim(got) == opd_ndim(want) &&
        close_to(opd_to_dtype(got, OPD_COMPLEX128), opd_to_dtype(want, OPD_COMPLEX128));
}
/* Operators whose CPU kernels round each step to 16 bits, as PyTorch's do; compiled, they round only the result.  Returns
   whether all elements are equal or differ by little. */
static bool same_steps(const char *name, opd_tensor *got, opd_tensor *want) {
    if (!strstr(name, "::logit") && !strstr(name, "xlogy")) { return false; }
    if (opd_dtype(want) != OPD_FLOAT16 && opd_dtype(want) != OPD_BFLOAT16) { return false; }
    if (opd_dtype(got) != opd_dtype(want)) { return false; }
    opd_tensor *const apart = opd_sub(opd_to_dtype(got, OPD_FLOAT64), opd_to_dtype(want, OPD_FLOAT64));
    return apart && opd_item_f64(opd_max(opd_abs(apart))) <= 0.04;
}
/* Runs the case compiled and uncompiled.  Returns 1 if it was compiled, 0 if it ran uncompiled, -1 if there is no
   graph. */
static int compile_case(const opd_op *op, const char *text, opd_scalar_type dtype) {
    static op_case c;
    opd_tensor *in[OPD_MAX_ARGS], *again[OPD_MAX_ARGS], *got[OPD_TRANSFORM_OUTPUTS], *want[OPD_TRANSFORM_OUTPUTS];
    int i, k, n = 0, results = 0, compiled_now = -1;
    OPD_SCOPED;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.dtype = dtype;
    c.smooth = true;
    if (!case_read_next(&c, &text)) {
        opd_error_clear();
        return -1;
    }
    for (i = 0; i < c.nargs; i++) { if (c.args[i].tag == OPD_TAG_TENSOR) { in[n++] = c.args[i].u.t; } }
    opd_graph *const graph = opd_graph_trace(case_call, &c, in, n, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    opd_error_clear();
    for (k = 0; k < 2 && compiled; k++) {
        for (i = 0; i < n; i++) { again[i] = opd_clone(in[i]); }
        opd_manual_seed(3);
        results = opd_graph_run(graph, again, n, want, OPD_TRANSFORM_OUTPUTS);
        for (i = 0; i < n; i++) { again[i] = opd_clone(in[i]); }
        opd_manual_seed(3);
        CHECK_INT(opd_compiled_function(compiled, again, n, got), results);
    }
    if (compiled) { compiled_now = opd_compiled_reason(compiled) == NULL; }
    for (i = 0; compiled_now == 1 && i < results; i++) {
        const bool same = same_numbers(got[i], want[i]) || same_steps(opd_op_name(op), got[i], want[i]);
        if (!same) { printf("    %s, %s\n", opd_op_name(op), opd_dtype_name(dtype)); }
        CHECK(same);
    }
    if (compiled_now == 0 && getenv("OPD_VERBOSE")) { printf("    %s\n", opd_compiled_reason(compiled)); }
    opd_error_clear();
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    return compiled_now;
}
/* The cases of all operators where there is a compiler that takes no time, else the first one of one in sixteen. */
static void compile_operators(opd_scalar_type dtype, int least) {
    const bool quick = system("tcc -v >/dev/null 2>&1") == 0;
    const char *const cc = getenv("CC");
    char was[200];
    const opd_op *op;
    int count[2] = {0, 0};
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(was, sizeof was, "%s", cc ? cc : "cc");
    if (quick) { (void)setenv("CC", "tcc", 1); }
    opd_log_set(say_nothing, NULL);
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *const card = opd_op_card(op);
        const char *const name = opd_op_name(op);
        const char *text = card && card->cases ? card->cases : "";
        if (is_unfit(name) || !check_compiles(name)) { continue; }
        if (!quick && sixteenth(name) != 3) { continue; }
        for (; *text; text += quick ? strcspn(text, ";") : strlen(text)) {
            text += *text == ';';
            const int one = compile_case(op, text, dtype);
            if (one >= 0) { count[one]++; }
        }
    }
    opd_log_set(NULL, NULL);
    (void)setenv("CC", was, 1);
    printf("%s: %d compiled, %d plain\n", opd_dtype_name(dtype), count[1], count[0]);
    CHECK(!quick || check_compiles_a_share() || count[1] >= least);
}
TEST(operators) { compile_operators(OPD_FLOAT32, 2150); }
TEST(operators_of_whole_numbers) { compile_operators(OPD_INT64, 1350); }
TEST(operators_of_complex_numbers) { compile_operators(OPD_COMPLEX128, 1285); }
/* Returns whether an operator, such as aten::lt.Scalar, has the name of a pointwise formula. */
static bool has_formula(const char *name) {
#define FORMULA_NAME(name, inputs, kind, formula) #name,
    static const char *const formulas[] = {
        OPD_FORMULAS_ALL(FORMULA_NAME) OPD_FORMULAS_FLOAT(FORMULA_NAME) OPD_FORMULAS_INT_OWN(FORMULA_NAME)};
#undef FORMULA_NAME
    const char *const from = strncmp(name, "aten::", 6) == 0 ? name + 6 : name;
    const size_t length = strcspn(from, ".");
    for (size_t i = 0; i < sizeof formulas / sizeof *formulas; i++) {
        if (strlen(formulas[i]) == length && strncmp(formulas[i], from, length) == 0) { return true; }
    }
    return false;
}
/* Each formula is compiled for each dtype: if it cannot be written in C, its operator is called. */
TEST(formulas_of_each_dtype) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT32,
                                             OPD_INT16, OPD_INT8, OPD_UINT8, OPD_BOOL, OPD_COMPLEX128};
    const char *const cc = getenv("CC");
    char was[200];
    int count = 0;
    if (!check_cache_begin()) { SKIP("no cc"); }
    if (system("tcc -v >/dev/null 2>&1") != 0) { SKIP("no tcc: other compilers take too long"); }
    (void)snprintf(was, sizeof was, "%s", cc ? cc : "cc");
    (void)setenv("CC", "tcc", 1);
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *const card = opd_op_card(op);
        const char *const name = opd_op_name(op);
        if (!card || !card->cases || !has_formula(name) || !check_compiles(name)) { continue; }
        if (strcmp(name, "aten::where") == 0) { continue; }      /* the number of its results depends on data */
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
            const int compiled = compile_case(op, card->cases, dtypes[i]);
            if (!compiled) { printf("%s, %s: not compiled\n", name, opd_dtype_name(dtypes[i])); }
            CHECK(compiled != 0);
            count += compiled == 1;
        }
    }
    (void)setenv("CC", was, 1);
    CHECK(check_compiles_a_share() || count > 200);
}
/* Two operators of 16-bit floats; nextafter has no form in C for them. */
static int odd_formulas(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_exp(opd_nextafter(opd_nan_to_num(in[0]), in[1]));
    return out[0] ? 1 : -1;
}
TEST(formulas_of_halves) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT16, OPD_BFLOAT16};
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int i = 0; i < 2; i++) {
        opd_tensor *in[2], *got, *want;
        OPD_SCOPED;
        for (int k = 0; k < 2; k++) { in[k] = opd_full(OPD_INTS(5), opd_value_double(k ? 2 : (double)NAN), dtypes[i]); }
        opd_graph *const graph = opd_graph_trace(odd_formulas, NULL, in, 2, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        for (int k = 0; k < 2; k++) {
            CHECK_INT(opd_graph_run(graph, in, 2, &want, 1), 1);
            CHECK_INT(opd_compiled_function(compiled, in, 2, &got), 1);
            CHECK(opd_equal(got, want));
        }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
}
/* The error of an operator that can neither be written in C nor called names the operator. */
TEST(formulas_without_a_form_in_c) {
    OPD_SCOPED;
    opd_tensor *in[2];
    opd_c_options options;
    opd_graph *const graph = opd_graph_parse("graph(%x, %y):\n  %z = aten::nextafter(%x, %y)\n  return (%z)\n");
    memset(&options, 0, sizeof options);
    options.name = "next";
    for (int i = 0; i < 2; i++) { in[i] = opd_ones(OPD_INTS(3), OPD_BFLOAT16); }
    CHECK_OR_RETURN(graph != NULL);
    CHECK_INT(opd_graph_write_c(graph, in, 2, "/nowhere", &options), -1);
    if (!strstr(opd_error_message(), "aten::nextafter")) { printf("%s\n", opd_error_message()); }
    CHECK(strstr(opd_error_message(), "aten::nextafter") != NULL);
    opd_error_clear();
    opd_graph_free(graph);
}

//-- functions of floats -------------------------------------------------------------------------------------------------

static opd_tensor *(*const float_functions[])(opd_tensor *) = {
    opd_exp, opd_expm1, opd_log, opd_log1p, opd_tanh, opd_erf, opd_atan};
static int all_float_functions(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int i;
    (void)user;
    (void)n;
    for (i = 0; i < 7; i++) { out[i] = float_functions[i](in[0]); }
    return opd_ok() ? 7 : -1;
}
/* Units in the last place of a float between two numbers; an infinity is as far as the number behind the largest. */
static double ulps(float got, double want) {
    const float as = (float)want;
    int exponent = 0;
    if (want != want || got != got) { return want != want && got != got ? 0 : HUGE_VAL; }
    if (got == as) { return signbit(got) == signbit(as) ? 0 : HUGE_VAL; }
    if (got - got != 0 || as - as != 0) { return fabs((double)got) > 3.4e38 && fabs(want) > 3.4e38 ? 1 : HUGE_VAL; }
    (void)frexp((double)as, &exponent);
    return fabs((double)got - want) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
}
TEST(functions_of_floats_are_right_to_few_ulp) {
    enum { COUNT = 1 << 16 };
    static const double bounds[] = {1.2, 1.7, 1.0, 1.7, 2.7, 1.5, 2.0};
    const int64_t count = COUNT;
    opd_tensor *got[7], *x;
    int i, k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    x = opd_empty(opd_ints_of(&count, 1), OPD_FLOAT32);
    for (k = 0; x && k < COUNT; k++) {
        const uint32_t bits = (uint32_t)k * 65521u + 65536u / 3;      /* of all sizes and signs, NaNs, infinities */
        memcpy(opd_data_f32(x) + k, &bits, sizeof bits);
    }
    opd_data_f32(x)[0] = -0.0f;
    opd_data_f32(x)[1] = -1.0f;
    opd_data_f32(x)[2] = HUGE_VALF;
    opd_data_f32(x)[3] = -HUGE_VALF;
    opd_graph *const graph = opd_graph_trace(all_float_functions, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (i = 0; i < 2; i++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 7); }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    for (i = 0; i < 7; i++) {
        opd_tensor *const want = float_functions[i](opd_to_dtype(x, OPD_FLOAT64));
        double worst = 0;
        CHECK_OR_RETURN(want != NULL);
        for (k = 0; k < COUNT; k++) { worst = fmax(worst, ulps(opd_data_f32(got[i])[k], opd_data_f64(want)[k])); }
        if (!(worst <= bounds[i])) { printf("    function %d: %g ulp\n", i, worst); }
        CHECK(worst <= bounds[i]);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}

//-- operators without a form in C ---------------------------------------------------------------------------------------

static int calls_of_mine;
/* my::shifted(x, by): each element and what stands `by` places behind it, on the CPU alone. */
static int shifted(opd_call *call) {
    opd_tensor *const x = opd_contiguous(opd_arg_tensor(call, 0));
    const int64_t by = opd_arg_int(call, 1), count = x ? opd_numel(x) : 0;
    opd_tensor *const y = x ? opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) : NULL;
    int64_t i;
    calls_of_mine++;
    for (i = 0; y && i < count; i++) { opd_data_f32(y)[i] = opd_data_f32(x)[i] + opd_data_f32(x)[(i + by) % count]; }
    return y ? opd_return_tensor(call, y) : -1;
}
static int shifted_fake(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_empty_like(x));
}
/* my::count_into(a): adds 1 to what it gets. */
static int count_into(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0);
    return opd_add_(x, opd_ones_like(x)) ? 0 : -1;
}
static int count_into_fake(opd_call *call) {
    (void)call;
    return 0;
}
/* my::back_into(a, b): adds to each element of a, one after the other, that of b from the end. */
static int back_into(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const y = opd_arg_tensor(call, 1);
    const int64_t count = opd_numel(x);
    int64_t i;
    for (i = 0; i < count; i++) { opd_data_f32(x)[i] += opd_data_f32(y)[count - 1 - i]; }
    return 0;
}
/* my::twice_into(list): doubles each. */
static int twice_into(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    int i;
    for (i = 0; i < (int)list.n; i++) { if (!opd_add_(list.data[i], list.data[i])) { return -1; } }
    return 0;
}
static int halves(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *list[2];
    const int64_t half = opd_sizes(x)[0] / 2;
    list[0] = opd_narrow(x, 0, 0, half);
    list[1] = opd_narrow(x, 0, half, half);
    return opd_return_tensors(call, list, 2);
}
/* my::parts(x) returns two tensors if the first element is positive, otherwise three.  Its fake kernel always returns
   three. */
static int parts_of(opd_call *call, int count) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *list[3];
    int i;
    for (i = 0; i < count; i++) { list[i] = opd_add_Scalar(x, OPD_V(i)); }
    return opd_return_tensors(call, list, count);
}
static int parts(opd_call *call) { return parts_of(call, opd_data_f32(opd_arg_tensor(call, 0))[0] > 0 ? 2 : 3); }
static int parts_fake(opd_call *call) { return parts_of(call, 3); }
static int plus_one(opd_call *call) {
    return opd_return_tensor(call, opd_add_Scalar(opd_arg_tensor(call, 0), OPD_V(1)));
}
/* my::by_square(x) multiplies x by a square matrix, which a compiled graph computes.  It is made of operator calls. */
static opd_compiled *square;
static int by_square(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *by;
    return opd_compiled_function(square, &weight, 1, &by) == 1 ? opd_return_tensor(call, opd_matmul(x, by)) : -1;
}
static int same_fake(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
OPD_LIBRARY(my, called_lib) {
    opd_op_desc card;
    memset(&card, 0, sizeof card);
    card.schema = "shifted(Tensor x, int by) -> Tensor";
    card.cpu = shifted;
    card.fake = shifted_fake;
    opd_define(called_lib, &card);
    card.schema = "count_into(Tensor(a!) x) -> ()";
    card.cpu = count_into;
    card.fake = count_into_fake;
    opd_define(called_lib, &card);
    card.schema = "back_into(Tensor(a!) x, Tensor y) -> ()";
    card.cpu = back_into;
    opd_define(called_lib, &card);
    card.schema = "twice_into(Tensor(a!)[] list) -> ()";
    card.cpu = twice_into;
    opd_define(called_lib, &card);
    card.schema = "count_silently(Tensor x) -> ()";
    card.cpu = count_into;
    opd_define(called_lib, &card);
    card.schema = "halves(Tensor(a) x) -> Tensor(a)[]";
    card.cpu = card.fake = halves;
    opd_define(called_lib, &card);
    card.schema = "parts(Tensor x) -> Tensor[]";
    card.cpu = parts;
    card.fake = parts_fake;
    opd_define(called_lib, &card);
    card.schema = "same(Tensor x) -> Tensor";
    card.cpu = plus_one;
    card.fake = same_fake;
    opd_define(called_lib, &card);
    memset(&card, 0, sizeof card);
    card.schema = "by_square(Tensor x) -> Tensor";
    card.composite = by_square;
    opd_define(called_lib, &card);
}
OPD_LIBRARY(q, short_lib) {
    opd_op_desc card;
    memset(&card, 0, sizeof card);
    card.schema = "f(Tensor x) -> Tensor";
    card.cpu = plus_one;
    card.fake = shifted_fake;
    opd_define(short_lib, &card);
}
static int own_operators(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const x = opd_tanh(in[0]);
    opd_tensor *const y = OPD_CALL(opd_find("my::shifted"), opd_t(x), OPD_V(2));
    if (!y) { return -1; }
    OPD_CALL(opd_find("my::count_into"), y);
    out[0] = opd_mul(y, opd_t(x));
    out[1] = opd_abs(opd_fft_fft(x));
    out[3] = opd_fft_rfft(x);
    out[2] = opd_t(out[3]);                       /* a view of another result */
    return opd_ok() ? 4 : -1;
}
TEST(operators_that_are_called) {
    opd_tensor *x, *got[4], *want[4];
    int k, i;
    if (!check_cache_begin()) { SKIP("no cc"); }
    x = ramp(3, 4);
    opd_graph *const graph = opd_graph_trace(own_operators, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (k = 0; k < 3; k++) {
        OPD_SCOPED;
        opd_tensor *y = opd_add_Scalar(x, OPD_V(k));
        CHECK_INT(opd_graph_run(graph, &y, 1, want, 4), 4);
        calls_of_mine = 0;
        CHECK_INT(opd_compiled_function(compiled, &y, 1, got), 4);
        CHECK_INT(calls_of_mine, 1);
        CHECK_STR(k ? opd_compiled_reason(compiled) : NULL, NULL);
        for (i = 0; i < 4; i++) { CHECK(same_numbers(got[i], want[i])); }
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
/* While a graph is compiled, new tensors have no memory.  If an operator then runs another compiled graph, this run is
   uncompiled. */
static int squared(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_matmul(in[0], in[0]);
    return out[0] ? 1 : -1;
}
static int product_by_square(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = OPD_CALL(opd_find("my::by_square"), in[0]);
    out[1] = opd_sum(in[0]);
    return out[0] && out[1] ? 2 : -1;
}
TEST(compiled_graphs_inside_of_operators) {
    opd_tensor *x = ramp(3, 4), *by;
    if (!check_cache_begin()) { SKIP("no cc"); }
    weight = opd_keep(ramp(4, 4));
    opd_graph *const inner = opd_graph_trace(squared, NULL, &weight, 1, NULL);
    square = opd_graph_compile(inner, NULL);
    for (int i = 0; i < 2; i++) { CHECK_INT(opd_compiled_function(square, &weight, 1, &by), 1); }
    CHECK_STR(opd_compiled_reason(square), NULL);
    opd_graph *const graph = opd_graph_trace(product_by_square, NULL, &x, 1, NULL);
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    CHECK_OR_RETURN(compiled != NULL);
    opd_log_set(count_warnings, NULL);
    for (int i = 0; i < 2; i++) { CHECK(agree(compiled, graph, x, false)); }
    opd_log_set(NULL, NULL);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_compiled_free(square);
    opd_graph_free(inner);
    opd_release(weight);
}
static int factored(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mul(opd_linalg_cholesky(in[0]), in[1]);
    return out[0] ? 1 : -1;
}
static int factored_after_writing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_add_(in[1], opd_ones_like(in[1])) ? factored(user, in, n, out) : -1;
}
/* An operator that compiled code calls may fail: the error is the same as in an uncompiled run.  If nothing was
   written, an uncompiled run follows. */
TEST(errors_of_operators_that_are_called) {
    opd_tensor *in[2], *out[1], *want[1];
    int k, i;
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (k = 0; k < 2; k++) {
        OPD_SCOPED;
        in[0] = opd_mul_Scalar(opd_eye(3, OPD_FLOAT32), OPD_V(4));
        in[1] = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32);
        opd_graph *const graph = opd_graph_trace(k ? factored_after_writing : factored, NULL, in, 2, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        CHECK_OR_RETURN(compiled != NULL);
        for (i = 0; i < 2; i++) {
            in[1] = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32);
            CHECK_INT(opd_graph_run(graph, in, 2, want, 1), 1);
            in[1] = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32);
            CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
            CHECK(same_numbers(out[0], want[0]));
        }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        in[0] = opd_neg(in[0]);
        CHECK_INT(opd_compiled_function(compiled, in, 2, out), -1);
        CHECK(strstr(opd_error_message(), "linalg.cholesky: The factorization could not be completed because the input "
                     "is not positive-definite") != NULL);
        opd_error_clear();
        in[0] = opd_neg(in[0]);
        CHECK_INT(opd_compiled_function(compiled, in, 2, out), 1);
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
}
/* Random operators are called in their order: the numbers, and later numbers, equal those of an uncompiled run. */
static int drawing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = in[0];
    (void)n;
    out[1] = opd_sum(x);
    switch (*(const int *)user) {
    case 0: out[0] = opd_dropout(opd_tanh(x), 0.5, true); break;
    case 1: out[0] = opd_add(opd_rand_like(x), opd_mul(opd_randn_like(x), x)); break;
    case 2: out[0] = opd_normal_(opd_empty_like(x), 1, 2); break;
    case 3:                                       /* nobody reads it, but it is drawn */
        (void)opd_rand_like(x);
        out[0] = opd_dropout(opd_dropout(x, 0.25, true), 0.25, true);
        break;
    case 4: out[0] = opd_mul(opd_dropout(weight, 0.5, true), opd_sum(x)); break;
    case 5: out[0] = opd_dropout(opd_t(x), 0.5, true); break;
    default: out[0] = opd_rand_like(opd_t(x)); break;     /* in the order of its memory */
    }
    return out[0] && out[1] ? 2 : -1;
}
TEST(draws) {
    int kind, run;
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (kind = 0; kind < 7; kind++) {
        opd_tensor *x = ramp(5, 40), *got[2], *want[2], *after[2];
        const opd_compile_options frozen = {NULL, NULL, kind == 4, 0, NULL, 0, 0, NULL, 0, 0};
        weight = opd_keep(ramp(4, 7));
        opd_graph *const graph = opd_graph_trace(drawing, &kind, &x, 1, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, &frozen);
        CHECK_OR_RETURN(compiled != NULL);
        for (run = 0; run < 3; run++) {
            OPD_SCOPED;
            opd_manual_seed(7 + run / 2);
            CHECK_INT(opd_graph_run(graph, &x, 1, want, 2), 2);
            after[0] = opd_rand_like(x);
            opd_manual_seed(7 + run / 2);
            CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 2);
            after[1] = opd_rand_like(x);
            CHECK(same_numbers(want[0], got[0]) && close_to(want[1], got[1]) && same_numbers(after[0], after[1]));
            if (run == 2) { CHECK_INT(opd_compiled_reason(compiled) == NULL, kind < 6); }
        }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        opd_release(weight);
    }
}
/* The operands of a product are cast twice: they are packed in the dtype after the first cast. */
static int cast_product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const opd_scalar_type through[] = {OPD_INT32, OPD_INT64, OPD_UINT8, OPD_BOOL, OPD_BFLOAT16, OPD_FLOAT16};
    const int kind = *(const int *)user;
    const opd_scalar_type dtype = kind & 1 ? OPD_FLOAT64 : OPD_FLOAT32;
    opd_tensor *const x = opd_to_dtype(opd_to_dtype(in[0], through[kind / 2]), dtype);
    (void)n;
    out[0] = opd_sum_dim(opd_mul(opd_unsqueeze(x, 2), opd_unsqueeze(opd_to_dtype(in[1], dtype), 0)), OPD_INTS(1), false);
    return out[0] ? 1 : -1;
}
TEST(products_of_what_is_cast_twice) {
    int kind;
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (kind = 0; kind < 12; kind++) {
        opd_tensor *in[2], *got, *want;
        OPD_SCOPED;
        in[0] = opd_abs(opd_mul_Scalar(ramp(12, 20), opd_value_double(1.01)));
        in[1] = ramp(20, 12);
        opd_graph *const graph = opd_graph_trace(cast_product, &kind, in, 2, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        CHECK_OR_RETURN(compiled != NULL);
        CHECK_INT(opd_compiled_function(compiled, in, 2, &want), 1);
        CHECK_INT(opd_compiled_function(compiled, in, 2, &got), 1);
        CHECK(opd_compiled_reason(compiled) == NULL && close_to(got, want));
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
}
/* A run draws random numbers only for the branch that it takes. */
TEST(draws_on_one_side_of_a_condition) {
    opd_program *const program = opd_program_load(golden("branch_draws", ".pt2"), NULL);
    opd_compiled *const compiled = program ? opd_program_compile(program, NULL) : NULL;
    int run;
    if (!check_cache_begin()) { SKIP("no cc"); }
    CHECK_OR_RETURN(compiled != NULL);
    for (run = 0; run < 4; run++) {
        opd_tensor *x, *got, *want, *after[2];
        OPD_SCOPED;
        x = opd_full(OPD_INTS(3, 4), opd_value_double(run % 2 ? 0.5 : -0.5), OPD_FLOAT32);
        opd_manual_seed(7);
        CHECK_INT(opd_program_function(program, &x, 1, &want), 1);
        after[0] = opd_rand_like(x);
        opd_manual_seed(7);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        after[1] = opd_rand_like(x);
        CHECK(same_numbers(got, want) && same_numbers(after[1], after[0]));
    }
    opd_compiled_free(compiled);
    opd_program_free(program);
}
/* Operators that compiled code calls get copies of their tensors; the results equal an uncompiled run's. */
static int shares_memory(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = opd_clone(in[0]), *two[2];
    opd_tensors list;
    opd_value args[1], rets[1];
    two[0] = two[1] = x;
    list.data = two;
    list.n = 2;
    args[0] = opd_value_tensor(x);
    switch (*(const int *)user) {
    case 0: OPD_CALL(opd_find("my::back_into"), x, x); break;
    case 1: OPD_CALL(opd_find("my::back_into"), opd_narrow(x, 0, 0, 5), opd_narrow(x, 0, 3, 5)); break;
    case 2: OPD_CALL(opd_find("my::twice_into"), list); break;
    case 3: OPD_CALL(opd_find("my::count_silently"), x); break;
    case 4:
        if (opd_call_all(opd_find("my::halves"), rets, args, 1)) { return -1; }
        (void)opd_mul_(rets[0].u.tensors[0], rets[0].u.tensors[1]);
        break;
    case 5: OPD_CALL(opd_find("my::back_into"), in[0], in[0]); break;
    case 6: out[1] = OPD_CALL(opd_find("my::same"), in[0]); break;
    case 7: OPD_CALL(opd_find("my::back_into"), opd_narrow(x, 0, 0, 4), opd_narrow(x, 0, 4, 4)); break;
    default: out[1] = OPD_CALL(opd_find("q::f"), opd_tanh(x)); break;
    }
    out[0] = opd_add(x, in[0]);
    return n == 1 && opd_ok() ? (*(const int *)user == 6 || *(const int *)user == 8) + 1 : -1;
}
TEST(arguments_of_calls_that_share_memory) {
    opd_tensor *x, *mine, *got[2], *want[2];
    int which, k, i;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_log_set(say_nothing, NULL);
    for (which = 0; which < 9; which++) {
        OPD_SCOPED;
        x = opd_reshape(ramp(2, 4), OPD_INTS(8));
        opd_graph *const graph = opd_graph_trace(shares_memory, &which, &x, 1, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        CHECK_OR_RETURN(compiled != NULL);
        for (k = 0; k < 3; k++) {
            const int count = which == 6 || which == 8 ? 2 : 1;
            x = opd_reshape(ramp(2, 4), OPD_INTS(8));
            mine = opd_clone(x);
            CHECK_INT(opd_graph_run(graph, &x, 1, want, 2), count);
            CHECK_INT(opd_compiled_function(compiled, &mine, 1, got), count);
            for (i = 0; i < count; i++) { CHECK(same_numbers(got[i], want[i])); }
            CHECK(same_numbers(mine, x));
        }
        CHECK_INT(opd_compiled_reason(compiled) == NULL, which >= 7);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
    opd_log_set(NULL, NULL);
}
static int three_parts(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value args[1], rets[1];
    (void)user;
    (void)n;
    args[0] = opd_value_tensor(in[0]);
    if (opd_call_all(opd_find("my::parts"), rets, args, 1)) { return -1; }
    out[0] = opd_neg(rets[0].u.tensors[2]);
    return out[0] ? 1 : -1;
}
TEST(calls_that_give_fewer_results) {
    char place[100], line[200];
    bool asks = false;
    opd_c_options options;
    opd_tensor *x, *got;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    x = opd_full(OPD_INTS(4), OPD_V(-1), OPD_FLOAT32);
    opd_graph *const graph = opd_graph_trace(three_parts, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (k = 0; k < 2; k++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1); }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    x = opd_neg(x);
    CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), -1);
    CHECK(strstr(opd_error_message(), "Expected 3 elements in a list but found 2") != NULL);
    opd_error_clear();
    opd_compiled_free(compiled);
    memset(&options, 0, sizeof options);           /* a file asks how many there are, too */
    options.name = "parts";
    options.calls = true;
    CHECK_INT(opd_graph_write_c(graph, &x, 1, check_cache, &options), 0);
    (void)snprintf(place, sizeof place, "%s/parts.c", check_cache);
    FILE *const file = fopen(place, "r");
    CHECK_OR_RETURN(file != NULL);
    while (fgets(line, sizeof line, file)) { asks = asks || strstr(line, "element < value->n ?") != NULL; }
    CHECK(asks);
    CHECK_INT(fclose(file), 0);
    opd_graph_free(graph);
}
/* If constants are frozen, a call that depends only on constants is made once. */
static int of_constants(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const y = OPD_CALL(opd_find("my::shifted"), weight, OPD_V(1));
    out[0] = y ? opd_matmul(in[0], y) : NULL;
    return out[0] ? 1 : -1;
}
TEST(constants_of_operators_that_are_called) {
    opd_compile_options options;
    opd_tensor *x, *got, *want;
    int k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    memset(&options, 0, sizeof options);
    options.frozen = true;
    weight = opd_keep(ramp(4, 5));
    x = ramp(3, 4);
    opd_graph *const graph = opd_graph_trace(of_constants, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
    CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
    calls_of_mine = 0;
    for (k = 0; k < 2; k++) {
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        CHECK(same_numbers(got, want));
    }
    CHECK_INT(calls_of_mine, 0);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_release(weight);
}
/* The same with a C file that includes opdispatch.h. */
TEST(files_that_call_operators) {
    static const char text[] =
        "#define OPDISPATCH_IMPLEMENTATION\n#include \"opdispatch.h\"\n#include \"called.h\"\n"
        "#include <stdio.h>\n"
        "static float x[9] = {4, 0, 0, 0, 9, 0, 0, 0, 16}, y[9] = {1, 1, 1, 1, 2, 1, 1, 1, 3}, out[9];\n"
        "static double memory[called_FIXED_BYTES / 8 + called_ARENA_BYTES / 8 + 32];\n"
        "int main(void) {\n    called model;\n    int rc = called_init(&model, memory, memory + 8, memory + 16 +"
        " called_FIXED_BYTES / 8);\n"
        "    rc = rc ? rc : called_run(&model, x, y, out);\n"
        "    printf(\"%d %g %g %g\\n\", rc, out[0], out[4], out[8]);\n"
        "    x[0] = -1;\n    rc = called_run(&model, x, y, out);\n"
        "    printf(\"%d %d\\n\", rc, opd_error_message() != NULL);\n    opd_error_clear();\n    return opd_finish();\n}\n";
    char command[900], place[100], line[100];
    opd_tensor *in[2];
    opd_c_options options;
    FILE *file;
    if (!check_cache_begin()) { SKIP("no cc"); }
    if (system("tcc -v >/dev/null 2>&1") != 0) { SKIP("no tcc"); }
    in[0] = opd_eye(3, OPD_FLOAT32);
    in[1] = opd_ones(OPD_INTS(3, 3), OPD_FLOAT32);
    opd_graph *const graph = opd_graph_trace(factored, NULL, in, 2, NULL);
    memset(&options, 0, sizeof options);
    options.name = "called";
    CHECK_INT(opd_graph_write_c(graph, in, 2, check_cache, &options), -1);
    CHECK(strstr(opd_error_message(), "linalg_cholesky_ex cannot be compiled") != NULL);
    opd_error_clear();
    options.calls = true;
    CHECK_INT(opd_graph_write_c(graph, in, 2, check_cache, &options), 0);
    opd_graph_free(graph);
    (void)snprintf(place, sizeof place, "%s/main.c", check_cache);
    file = fopen(place, "w");
    CHECK_OR_RETURN(file != NULL);
    CHECK(fputs(text, file) >= 0 && fclose(file) == 0);
    (void)snprintf(command, sizeof command, "tcc -w -I'%s' '%s/main.c' '%s/called.c' -o '%s/called' -lm -lpthread -ldl "
                   ">/dev/null && '%s/called'", check_include(), check_cache, check_cache, check_cache, check_cache);
    file = popen(command, "r");
    CHECK_OR_RETURN(file != NULL);
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_STR(line, "0 2 6 12\n");
    CHECK(fgets(line, sizeof line, file) != NULL);
    CHECK_STR(line, "4 1\n");
    CHECK_INT(pclose(file), 0);
}

/* Tensors that are there one after the other share memory, whatever they hold: with clang a read of floats would go
   behind the integers that the next tensor writes there, where the text did not say that it must not. */
static int smallest_so_far(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    return opd_cummin(out, in[0], 1) ? -1 : 2;
}
static int product_of_bits(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    opd_tensor *const x = opd_narrow(opd_view_dtype(in[0], OPD_FLOAT32), 0, 1, 6);
    out[0] = opd_matmul(x, weight);
    out[1] = opd_matmul(opd_t(weight), opd_t(x));
    return out[1] ? 2 : -1;
}
TEST(products_of_memory_of_another_type) {
    opd_tensor *x, *got[2], *want[2];
    int i;
    if (!check_cache_begin()) { SKIP("no cc"); }
    weight = opd_keep(ramp(8, 5));
    x = opd_view_dtype(ramp(7, 8), OPD_FLOAT64);
    opd_graph *const graph = opd_graph_trace(product_of_bits, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, want, 2), 2);
    for (i = 0; i < 2; i++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 2); }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    for (i = 0; i < 2; i++) { CHECK(close_to(got[i], want[i])); }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_release(weight);
}
TEST(memory_of_several_types) {
    static const char *const compilers[] = {"clang", "gcc"};
    static const float numbers[3][6] = {{3, 1, 2, 5, 5, 4}, {-1, -9, -8, -3, 0, 9}, {0, -1, -2, 7, 6, 8}};
    const char *const was = getenv("CC");
    char kept[512] = "", command[64];
    size_t i, k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    if (was) { (void)snprintf(kept, sizeof kept, "%s", was); }
    for (i = 0; i < sizeof compilers / sizeof *compilers; i++) {
        (void)snprintf(command, sizeof command, "%s -v >/dev/null 2>&1", compilers[i]);
        if (system(command) != 0) { continue; }
        OPD_SCOPE {
            opd_tensor *x = opd_tensor_from(numbers[0], OPD_INTS(2, 3), OPD_FLOAT32), *got[2], *want[2];
            opd_graph *const graph = opd_graph_trace(smallest_so_far, NULL, &x, 1, NULL);
            opd_compiled *const compiled = opd_graph_compile(graph, NULL);
            (void)setenv("CC", compilers[i], 1);
            for (k = 0; k < 9; k++) {
                x = opd_tensor_from(numbers[k % 3], OPD_INTS(2, 3), OPD_FLOAT32);
                CHECK_INT(opd_graph_run(graph, &x, 1, want, 2), 2);
                CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 2);
                CHECK(opd_equal(got[0], want[0]));
                CHECK(opd_equal(got[1], want[1]));
            }
            CHECK_STR(opd_compiled_reason(compiled), NULL);
            opd_compiled_free(compiled);
            opd_graph_free(graph);
        }
    }
    (void)(was ? setenv("CC", kept, 1) : unsetenv("CC"));
}
/* With several NaNs in a window, pooling returns the index of the last one, but argmax the index of the first one. */
static int pools(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *all[8] = {NULL};
    int count = 0, i;
    (void)user;
    (void)n;
    if (opd_max_pool2d_with_indices_full(all, in[0], OPD_INTS(2, 3), OPD_INTS(2, 2),
                                         OPD_INTS(1, 1), OPD_INTS(1, 1), false) ||
        opd_adaptive_max_pool2d(all + 2, in[0], OPD_INTS(3, 2)) ||
        opd_max_pool3d_with_indices(all + 4, opd_unsqueeze(in[0], 0), OPD_INTS(1, 2, 2), opd_ints_of(NULL, 0), OPD_INTS(0)) ||
        opd_max_dim(all + 6, in[0], 2, false)) { return -1; }
    for (i = 1; i < 8; i += 2) { out[count++] = all[i]; }
    return count;
}
/* An index_fill of indices that count from the end. */
static int filled(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int64_t places[] = {-1, 2, -6};
    (void)user;
    (void)n;
    out[0] = opd_index_fill_int_Scalar(in[0], 1, opd_tensor_from(places, OPD_INTS(3), OPD_INT64), opd_value_int(3));
    return out[0] ? 1 : -1;
}
TEST(places_of_nans_and_from_the_end) {
    static const float special[] = {NAN, 1, -INFINITY, 2, NAN, INFINITY, 0};
    opd_tensor *x, *got[4], *want[4];
    int turn, i, k;
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (turn = 0; turn < 2; turn++) {
        OPD_SCOPED;
        x = opd_empty(OPD_INTS(2, 6, 7), OPD_FLOAT32);
        for (i = 0; i < 84; i++) { opd_data_f32(x)[i] = special[(i * i + i / 7) % 7]; }
        opd_graph *const graph = opd_graph_trace(turn ? filled : pools, NULL, &x, 1, NULL);
        opd_compiled *const compiled = opd_graph_compile(graph, NULL);
        for (k = 0; k < 3; k++) {
            const int count = opd_graph_run(graph, &x, 1, want, 4);
            CHECK_INT(count, turn ? 1 : 4);
            CHECK_INT(opd_compiled_function(compiled, &x, 1, got), count);
            for (i = 0; i < count; i++) {
                CHECK(opd_allclose_full(opd_to_dtype(got[i], OPD_FLOAT64), opd_to_dtype(want[i], OPD_FLOAT64), 0, 0,
                                        true));
            }
        }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
}

//-- programs, threads, memory ---------------------------------------------------------------------------------------------

/* Runs a program on clones of the inputs in a file; how many outputs there are, or -1. */
static int run_program(const opd_program *program, opd_compiled *compiled, const opd_tensor_file *file, opd_value *out) {
    opd_value in[64];
    const int n = fill(program, file, in);
    return compiled ? opd_compiled_run(compiled, in, n, out, 64) : opd_program_run(program, in, n, out, 64);
}
TEST(programs) {
    static const char *const files[] = {"conv", "heads", "mlp", "mlp_bf16", "tied", "modes", "numbers", "sizes", "tree",
                                        "quantized",
                                        "ao_dynamic", "ao_groups", "pt2e", "lowered", "experts", "state", "conv_training", "two", "branch", "branch_other",
                                        "size_as_input", "fours", NULL};
    int i, k, frozen, right = 0;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_log_set(say_nothing, NULL);
    (void)opd_grad_mode_set(false);
    for (i = 0; files[i]; i++) {
        if (access(golden(files[i], ".npz"), R_OK)) { continue; }
        for (frozen = 0; frozen < 2; frozen++) {
            opd_value want[64], got[64];
            opd_compile_options options;
            int count = 0, runs;
            OPD_SCOPED;
            opd_program *const plain = opd_program_load(golden(files[i], ".pt2"), NULL);
            opd_program *const program = opd_program_load(golden(files[i], ".pt2"), NULL);
            opd_tensor_file *const file = opd_tensor_file_open(golden(files[i], ".npz"));
            memset(&options, 0, sizeof options);
            options.frozen = frozen;
            options.name = files[i];
            opd_compiled *const compiled = opd_program_compile(program, &options);
            CHECK_OR_RETURN(plain && program && file && compiled);
            for (runs = 0; runs < 3; runs++) {        /* what they write into buffers, too */
                count = run_program(plain, NULL, file, want);
                CHECK_INT(run_program(program, compiled, file, got), count);
                for (k = 0; k < count; k++) {
                    CHECK_INT(got[k].tag, want[k].tag);
                    if (want[k].tag == OPD_TAG_INT) { CHECK_INT(got[k].u.i, want[k].u.i); }
                    if (want[k].tag != OPD_TAG_TENSOR || opd_dtype(want[k].u.t) == OPD_BFLOAT16) { continue; }
                    CHECK(got[k].tag == OPD_TAG_TENSOR && close_to(got[k].u.t, want[k].u.t));
                }
            }
            for (k = 0; k < opd_module_count(opd_program_module(program)); k++) {
                opd_tensor *const have = opd_module_at(opd_program_module(program), k);
                CHECK(close_to(opd_to_dtype(have, OPD_FLOAT64),
                               opd_to_dtype(opd_module_at(opd_program_module(plain), k), OPD_FLOAT64)));
            }
            right += opd_compiled_reason(compiled) == NULL;
            if (opd_compiled_reason(compiled) && getenv("OPD_VERBOSE")) {
                printf("%s: %s\n", files[i], opd_compiled_reason(compiled));
            }
            opd_compiled_free(compiled);
            opd_tensor_file_close(file);
            opd_program_free(program);
            opd_program_free(plain);
        }
    }
    (void)opd_grad_mode_set(true);
    opd_log_set(NULL, NULL);
    printf("%d programs compiled\n", right);
    CHECK(right >= 27);
}
/* If the parameters of a program require gradients, a run that autograd records is not compiled. */
TEST(programs_that_train) {
    opd_value got[64];
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_program *const program = opd_program_load(golden("mlp", ".pt2"), NULL);
    opd_tensor_file *const file = opd_tensor_file_open(golden("mlp", ".npz"));
    opd_compiled *const compiled = opd_program_compile(program, NULL);
    CHECK_OR_RETURN(program && file && compiled);
    CHECK_INT(opd_module_set_requires_grad(opd_program_module(program), "*", true) < 0, 0);
    CHECK(run_program(program, compiled, file, got) > 0);
    CHECK(run_program(program, compiled, file, got) > 0 && opd_tensor_requires_grad(got[0].u.t));
    CHECK(opd_compiled_reason(compiled) && strstr(opd_compiled_reason(compiled), "grad") != NULL);
    (void)opd_grad_mode_set(false);
    CHECK(run_program(program, compiled, file, got) > 0 && run_program(program, compiled, file, got) > 0);
    CHECK(opd_compiled_reason(compiled) == NULL);
    (void)opd_grad_mode_set(true);
    opd_compiled_free(compiled);
    opd_tensor_file_close(file);
    opd_program_free(program);
}
/* Replaces the weight and the bias of a layer by their halves, and the graph by one with negated results. */
static int halve(opd_program *program, const char *name) {
    OPD_SCOPED;
    opd_tensor *const was = opd_module_get(opd_program_module(program), name);
    return opd_module_set(opd_program_module(program), name, opd_mul_Scalar(opd_detach(was), opd_value_double(0.5)));
}
static int negate(opd_program *program) {
    opd_graph *const graph = opd_graph_copy(opd_program_graph(program));
    opd_graph_value *last = opd_graph_output_at(graph, 0), *made;
    opd_graph_insert_after(graph, last);
    opd_graph_call(graph, "aten::neg", &last, 1, &made, 1);
    CHECK(opd_graph_replace(graph, last, made) > 0);
    return opd_program_set_graph(program, graph);
}
/* A program whose graph or frozen tensors were replaced after it was compiled is compiled again.  If only tensors that
   are not frozen were replaced, by tensors of the same kind, the code is used with the new ones. */
TEST(programs_that_change) {
    opd_value got[64], want[64];
    char names[2][100];
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_program *const program = opd_program_load(golden("mlp", ".pt2"), NULL);
    opd_program *const plain = opd_program_load(golden("mlp", ".pt2"), NULL);
    opd_tensor_file *const file = opd_tensor_file_open(golden("mlp", ".npz"));
    CHECK_OR_RETURN(program && plain && file);
    (void)opd_grad_mode_set(false);
    for (int i = 0; i < 2; i++) { (void)snprintf(names[i], sizeof names[i], "%s", opd_module_name(opd_program_module(program), i)); }
    for (int frozen = 0; frozen < 2; frozen++) {
        opd_compile_options options = {.frozen = frozen != 0, .kinds = 2};
        opd_compiled *const compiled = opd_program_compile(program, &options);
        CHECK_OR_RETURN(compiled != NULL);
        for (int change = 0; change < 6; change++) {
            if (change) { CHECK_INT(change < 5 ? halve(program, names[change % 2]) : negate(program), 0); }
            if (change) { CHECK_INT(change < 5 ? halve(plain, names[change % 2]) : negate(plain), 0); }
            for (int run = 0; run < 2; run++) {
                OPD_SCOPED;
                const int count = run_program(plain, NULL, file, want);
                CHECK_INT(run_program(program, compiled, file, got), count);
                CHECK((opd_compiled_reason(compiled) == NULL) == (run || (!frozen && change % 5)));
                CHECK(count > 0 && opd_ok() && opd_allclose_full(got[0].u.t, want[0].u.t, 1e-5, 1e-6, false));
            }
        }
        opd_compiled_free(compiled);
    }
    (void)opd_grad_mode_set(true);
    opd_tensor_file_close(file);
    opd_program_free(plain);
    opd_program_free(program);
    CHECK_OK();
}
/* Runs a compiled program, and compares with an uncompiled run.  `now` is true if the run must be compiled. */
static void runs_as_plain(opd_program *program, opd_compiled *compiled, const opd_tensor_file *file, bool now) {
    OPD_SCOPED;
    opd_value got[64], want[64];
    const int count = run_program(program, NULL, file, want);
    CHECK_INT(run_program(program, compiled, file, got), count);
    CHECK((opd_compiled_reason(compiled) == NULL) == now);
    CHECK(count > 0 && opd_ok() && opd_allclose_full(got[0].u.t, want[0].u.t, 1e-5, 1e-6, false));
}
/* Tensors that are replaced by tensors with other strides, by one tensor for two names, and again and again. */
TEST(programs_whose_tensors_are_replaced_often) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)opd_grad_mode_set(false);
    for (int frozen = 0; frozen < 2; frozen++) {
        OPD_SCOPED;
        opd_program *const program = opd_program_load(golden("mlp", ".pt2"), NULL);
        opd_tensor_file *const file = opd_tensor_file_open(golden("mlp", ".npz"));
        opd_compile_options options = {.frozen = frozen != 0, .kinds = 2};
        opd_compiled *const compiled = opd_program_compile(program, &options);
        CHECK_OR_RETURN(program && file && compiled);
        opd_module *const module = opd_program_module(program);
        const char *weight = NULL;
        for (int64_t i = 0; i < opd_module_count(module) && !weight; i++) {
            if (opd_ndim(opd_module_at(module, i)) == 2) { weight = opd_module_name(module, i); }
        }
        CHECK_OR_RETURN(weight != NULL);
        runs_as_plain(program, compiled, file, false);
        runs_as_plain(program, compiled, file, true);
        opd_tensor *turned = opd_detach(opd_t(opd_contiguous(opd_t(opd_module_get(module, weight)))));
        CHECK_INT(opd_module_set(module, weight, opd_mul_Scalar(turned, opd_value_double(0.5))), 0);
        runs_as_plain(program, compiled, file, false);       /* other strides */
        runs_as_plain(program, compiled, file, true);
        int64_t before = 0;
        for (int step = 0; step < 40; step++) {
            CHECK_INT(halve(program, weight), 0);
            runs_as_plain(program, compiled, file, !frozen);
            if (step == 9) { before = opd_memory_stats().live; }
        }
        CHECK(opd_memory_stats().live <= before);
        opd_compiled_free(compiled);
        opd_tensor_file_close(file);
        opd_program_free(program);
    }
    (void)opd_grad_mode_set(true);
    CHECK_OK();
}
/* As a function of tensors, a compiled program has the outputs of opd_program_function: those that are tensors. */
TEST(compiled_programs_are_functions) {
    opd_tensor *in[8], *want[8], *got[8];
    char name[20];
    int n = 0;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_program *const program = opd_program_load(golden("tree", ".pt2"), NULL);
    opd_tensor_file *const file = opd_tensor_file_open(golden("tree", ".npz"));
    opd_compiled *const compiled = opd_program_compile(program, NULL);
    CHECK_OR_RETURN(program && file && compiled);
    (void)opd_grad_mode_set(false);
    for (int i = 0; i < opd_program_ninputs(program) && n < 8; i++) {
        if (opd_program_input_constant(program, i, NULL)) { continue; }
        (void)snprintf(name, sizeof name, "in%d", i);
        in[n++] = opd_tensor_file_get(file, name);
    }
    const int count = opd_program_function(program, in, n, want);
    CHECK(count > 0 && count < opd_program_noutputs(program));
    for (int run = 0; run < 3; run++) {
        CHECK_INT(opd_compiled_function(compiled, in, n, got), count);
        for (int i = 0; i < count && opd_ok(); i++) {
            CHECK(opd_dtype(got[i]) == opd_dtype(want[i]) && opd_allclose_full(got[i], want[i], 1e-5, 1e-6, false));
        }
    }
    CHECK(opd_compiled_reason(compiled) == NULL);          /* compiled, although the fixed inputs are left out */
    for (int few = -1; few < 1; few++) {
        CHECK_INT(opd_compiled_run(compiled, NULL, few, NULL, 0), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_program_run: ");
    }
    (void)opd_grad_mode_set(true);
    opd_compiled_free(compiled);
    opd_tensor_file_close(file);
    opd_program_free(program);
    CHECK_OK();
}
static void *run_often(void *arg) {
    opd_compiled *const compiled = (opd_compiled *)arg;
    int k;
    for (k = 0; k < 200; k++) {
        opd_tensor *x, *out[2];
        OPD_SCOPED;
        x = ramp(3 + k % 2, 4);
        if (opd_compiled_function(compiled, &x, 1, out) != 2) { return (void *)"failed"; }
        if (opd_sizes(out[0])[0] != 3 + k % 2) { return (void *)"wrong"; }
    }
    return NULL;
}
TEST(threads) {
    pthread_t threads[4];
    int i;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_graph *const graph = layer_graph();
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_create(&threads[i], NULL, run_often, compiled), 0); }
    for (i = 0; i < 4; i++) {
        void *result;
        CHECK_INT(pthread_join(threads[i], &result), 0);
        CHECK(result == NULL);
    }
    CHECK(agree(compiled, graph, ramp(3, 4), true));
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    opd_release(weight);
}
/* Each allocation fails once: the run is uncompiled, or fails with an error, and no memory is lost. */
static int compile_and_run(void *arg) {
    opd_tensor *x = ramp(3, 4), *out[2];
    opd_graph *const graph = x ? opd_graph_trace(layer, NULL, &x, 1, NULL) : NULL;
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    int k, rc = compiled ? 0 : -1;
    (void)arg;
    for (k = 0; k < 2 && rc == 0; k++) { rc = opd_compiled_function(compiled, &x, 1, out) == 2 ? 0 : -1; }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    return rc;
}
static int compile_calls_and_run(void *arg) {
    opd_tensor *x = ramp(3, 4), *out[4];
    opd_graph *const graph = x ? opd_graph_trace(own_operators, NULL, &x, 1, NULL) : NULL;
    opd_compiled *const compiled = graph ? opd_graph_compile(graph, NULL) : NULL;
    int k, rc = compiled ? 0 : -1;
    (void)arg;
    for (k = 0; k < 2 && rc == 0; k++) { rc = opd_compiled_function(compiled, &x, 1, out) == 4 ? 0 : -1; }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    return rc;
}
TEST(allocations_of_calls_that_fail) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    CHECK_INT(compile_calls_and_run(NULL), 0);
    opd_log_set(say_nothing, NULL);
    check_allocations(compile_calls_and_run, NULL, "opd_graph_compile, with calls", 400, false);
    opd_log_set(NULL, NULL);
}
TEST(allocations_that_fail) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    weight = opd_keep(ramp(4, 5));
    CHECK_INT(compile_and_run(NULL), 0);
    opd_log_set(say_nothing, NULL);
    check_allocations(compile_and_run, NULL, "opd_graph_compile", 400, false);
    opd_log_set(NULL, NULL);
    opd_release(weight);
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
