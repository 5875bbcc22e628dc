/* Graphs as code for a GPU: what is written, what is refused, and allocations that fail.  tests/cuda/compiled_graphs.c
   runs the kernels. */
#include "../check.h"

static int normed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t width = opd_size(in[0], -1);
    (void)user, (void)n;
    out[0] = opd_layer_norm(opd_add(in[0], in[1]), opd_ints_of(&width, 1), in[2], NULL, 1e-5);
    out[1] = opd_select(out[0], 0, 1);
    out[2] = in[1];
    return 3;
}
static int gated(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_mul(opd_silu(in[0]), in[1]);
    return 1;
}
static int refused(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    switch (*(const int *)user) {
    case 0: out[0] = opd_mm(in[0], in[1]); break;
    case 1: out[0] = opd_cumsum(in[0], 0); break;
    case 2: out[0] = opd_index_select(in[0], 0, opd_to_dtype(opd_reshape(opd_narrow(in[1], 0, 0, 1), OPD_INTS(-1)), OPD_INT64)); break;
    case 3: out[0] = opd_add_(in[0], in[1]); break;
    case 4: out[0] = opd_argmax(in[0], opd_value_int(1), false); break;
    case 5: out[0] = opd_sum(in[0]); break;
    case 6: out[0] = opd_add(in[0], opd_t(in[1])); break;
    default: out[0] = opd_fft_fft(in[0]); break;
    }
    return out[0] ? 1 : -1;
}
static bool has_argument(const opd_gpu_code *code, int kind, int index) {
    for (int i = 0; i < code->ncalls; i++) {
        for (int k = 0; k < code->calls[i].narguments; k++) {
            const opd_gpu_argument *const argument = &code->calls[i].arguments[k];
            if (argument->kind == kind && argument->index == index) { return true; }
        }
    }
    return false;
}
TEST(what_a_code_says) {
    opd_tensor *in[] = {opd_randn(OPD_INTS(100, 64), OPD_FLOAT32), opd_randn(OPD_INTS(100, 64), OPD_FLOAT32), opd_ones(OPD_INTS(64), OPD_FLOAT32)};
    opd_graph *const graph = opd_graph_trace(normed, NULL, in, 3, NULL);
    opd_gpu_code *const code = graph ? opd_graph_gpu_code(graph, in, 3) : NULL;
    CHECK(code != NULL);
    if (code) {
        CHECK_INT(code->nmade, 1);
        CHECK_INT(code->nresults, 3);
        CHECK(code->made[0].dtype == OPD_FLOAT32 && code->made[0].ndim == 2 && code->made[0].sizes[0] == 100);
        CHECK(code->results[0].of == 0 && !code->results[0].view);
        CHECK(code->results[1].of == 0 && code->results[1].view && code->results[1].offset == 64 && code->results[1].ndim == 1);
        CHECK(code->results[2].of == ~1 && !code->results[2].view);
        CHECK(has_argument(code, OPD_GPU_INPUT, 0) && has_argument(code, OPD_GPU_INPUT, 2) && has_argument(code, OPD_GPU_OUTPUT, 0));
        for (int i = 0; i < code->ncalls; i++) {
            char name[100];
            (void)snprintf(name, sizeof name, "__global__ void %s(", code->calls[i].name);
            CHECK(strstr(code->text, name) && code->calls[i].blocks > 0 && code->calls[i].threads % 32 == 0 && code->calls[i].threads <= 1024);
        }
    }
    opd_gpu_code_free(code);
    opd_graph_free(graph);
    CHECK_OK();
}
TEST(what_cannot_be_written) {
    opd_tensor *in[] = {opd_rand(OPD_INTS(300, 300), OPD_FLOAT32), opd_rand(OPD_INTS(300, 300), OPD_FLOAT32)};
    for (int i = 0; i < 8; i++) {
        opd_graph *const graph = opd_graph_trace(refused, &i, in, 2, NULL);
        CHECK(graph != NULL);
        opd_gpu_code *const code = opd_graph_gpu_code(graph, in, 2);
        if (code) { printf("function %d has been written:\n%s\n", i, code->text); }
        CHECK(!code && opd_error_code() != OPD_OK);
        CHECK(strstr(opd_error_message(), "opd_graph_gpu_code: ") || strstr(opd_error_message(), "cannot be compiled"));
        opd_error_clear();
        opd_gpu_code_free(code);
        opd_graph_free(graph);
    }
    opd_graph *const graph = opd_graph_trace(gated, NULL, in, 2, NULL);
    CHECK(!opd_graph_gpu_code(NULL, in, 2));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a graph and an example");
    CHECK(!opd_graph_gpu_code(graph, in, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a graph and an example");
    opd_tensor *const others[] = {in[0], opd_tensor_new_on(OPD_INTS(300, 300), OPD_FLOAT32, opd_device_make(OPD_META, -1))};
    CHECK(!opd_graph_gpu_code(graph, others, 2));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "different devices");
    opd_tensor *const missing[] = {in[0], NULL};
    CHECK(!opd_graph_gpu_code(graph, missing, 2));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 1 is NULL");
    opd_graph_free(graph);
    opd_gpu_code_free(NULL);
}
static int written(void *graph) {
    opd_tensor *in[] = {opd_ones(OPD_INTS(100, 64), OPD_FLOAT32), opd_ones(OPD_INTS(100, 64), OPD_FLOAT32), opd_ones(OPD_INTS(64), OPD_FLOAT32)};
    opd_gpu_code *const code = opd_ok() ? opd_graph_gpu_code((const opd_graph *)graph, in, 3) : NULL;
    const int rc = code ? 0 : -1;
    opd_gpu_code_free(code);
    return rc;
}
TEST(every_allocation_may_fail) {
    opd_tensor *in[] = {opd_ones(OPD_INTS(100, 64), OPD_FLOAT32), opd_ones(OPD_INTS(100, 64), OPD_FLOAT32), opd_ones(OPD_INTS(64), OPD_FLOAT32)};
    opd_graph *const graph = opd_graph_trace(normed, NULL, in, 3, NULL);
    CHECK_INT(written(graph), 0);
    CHECK(check_allocations(written, graph, "code", 150, false) > 20);
    opd_graph_free(graph);
}
CHECK_MAIN()
