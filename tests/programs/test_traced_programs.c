/* Traces of programs with conditions and loops: the graphs decide in each run.  golden/programs/flow has a condition, a
   while_loop, a scan and a map, and PyTorch's results and gradients of four runs. */
#include "../../opdispatch.h"
#include "../program_files.h"
#include "../python.h"
#include <unistd.h>

#define RUNS 4
static opd_tensor_file *arrays;
static opd_tensor *of_run(int run, const char *name, int i) {
    char key[40];
    (void)snprintf(key, sizeof key, "%d.%s%d", run, name, i);
    return opd_tensor_file_get(arrays, key);
}
static void inputs_of(int run, opd_tensor **in) {
    for (int i = 0; i < 3; i++) { in[i] = of_run(run, "in", i); }
}
static void close_to(opd_tensor *got, opd_tensor *want, const char *what, int run) {
    const bool same = got && opd_dtype(got) == opd_dtype(want) && opd_is_same_size(got, want) &&
        opd_allclose_full(opd_detach(got), want, 1e-4, 1e-4, false);
    CHECK(same);
    if (!same) { printf("%s, run %d\n", what, run); }
}
/* Returns the program, whose parameter is a constant if `fixed` is true. */
static opd_program *flow(bool fixed) {
    opd_program *const program = opd_program_load(golden("flow", ".pt2"), NULL);
    arrays = opd_tensor_file_open(golden("flow", ".npz"));
    CHECK(program && arrays);
    if (program && fixed) { (void)opd_tensor_set_requires_grad(opd_module_at(opd_program_module(program), 0), false); }
    return program;
}
static void leave(opd_program *program) {
    opd_program_free(program);
    opd_tensor_file_close(arrays);
    CHECK_OK();
}
static int count_of(const opd_graph *graph, const char *name) {
    int count = 0;
    char text[60000];
    CHECK(opd_graph_print(graph, text, sizeof text) < sizeof text);
    for (const char *at = strstr(text, name); at; at = strstr(at + 1, name)) { count++; }
    return count;
}
static int sum_of(void *program, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *made[3];
    if (opd_program_function(program, in, n, made) != 3) { return -1; }
    out[0] = opd_add(opd_sum(made[0]), opd_sum(made[1]));
    return opd_ok() ? 1 : -1;
}
static const int all[] = {0, 1, 2};
static int gradients_of(void *program, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = all;
    options.nargnums = 3;
    return opd_grad(sum_of, program, in, n, &options, out, OPD_TRANSFORM_OUTPUTS);
}
static int mapped(void *program, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_vmap(opd_program_function, program, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int along(void *program, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *made[1];
    return opd_jvp(sum_of, program, in, in, n, NULL, made, out, 1);
}
static void results_are(const char *what, int run, opd_tensor *const *out) {
    for (int i = 0; i < 3; i++) { close_to(out[i], of_run(run, "out", i), what, run); }
}

TEST(plain_runs_give_what_pytorch_gives) {
    OPD_SCOPED;
    opd_program *const program = flow(false);
    CHECK_OR_RETURN(program && arrays);
    for (int run = 0; run < RUNS; run++) {
        opd_tensor *wrt[4], *out[3], *made[4], *sum;
        for (int i = 0; i < 3; i++) { wrt[i] = opd_tensor_set_requires_grad(opd_clone(of_run(run, "in", i)), true); }
        wrt[3] = opd_module_at(opd_program_module(program), 0);
        CHECK_INT(opd_program_function(program, wrt, 3, out), 3);
        results_are("a plain run", run, out);
        sum = opd_add(opd_sum(out[0]), opd_sum(out[1]));
        CHECK_INT(opd_autograd_grad(&sum, 1, wrt, 4, NULL, made), 0);   /* an operand that is not read has zeros */
        for (int i = 0; i < 4 && opd_ok(); i++) { close_to(made[i], of_run(run, "grad", i), "a gradient", run); }
    }
    leave(program);
}
TEST(traces_decide_in_each_run) {
    OPD_SCOPED;
    opd_program *const program = flow(true);
    CHECK_OR_RETURN(program && arrays);
    for (int traced = 0; traced < RUNS; traced += 3) {
        opd_tensor *in[3], *out[3];
        inputs_of(traced, in);
        opd_graph *const graph = opd_graph_trace(opd_program_function, program, in, 3, NULL);
        CHECK_OK();
        CHECK_INT(count_of(graph, "prim::If("), 2);
        CHECK_INT(count_of(graph, "prim::Loop("), 3);
        for (int run = 0; run < RUNS && graph; run++) {
            inputs_of(run, in);
            CHECK_INT(opd_graph_run(graph, in, 3, out, 3), 3);
            if (opd_ok()) { results_are("a trace", run, out); }
        }
        opd_graph_free(graph);
    }
    leave(program);
}
/* Gradients, tangents and maps over examples in a trace are conditions and loops, too. */
TEST(transforms_of_programs_are_traced) {
    OPD_SCOPED;
    opd_program *const program = flow(true);
    CHECK_OR_RETURN(program && arrays);
    const opd_trace_options parts = {NULL, 0, false, false, false, 0, false, true};
    opd_tensor *in[3], *out[3], *stacked[3];
    inputs_of(0, in);
    for (int i = 0; i < 3; i++) {
        opd_tensor *runs[RUNS];
        for (int run = 0; run < RUNS; run++) { runs[run] = of_run(run, "in", i); }
        stacked[i] = opd_stack(opd_tensors_of(runs, RUNS), 0);
    }
    opd_graph *const gradients = opd_graph_trace(gradients_of, program, in, 3, &parts);
    opd_graph *const tangent = opd_graph_trace(along, program, in, 3, &parts);
    opd_graph *const maps = opd_graph_trace(mapped, program, stacked, 3, NULL);
    CHECK_OK();
    for (int run = 0; run < RUNS && opd_ok(); run++) {
        opd_tensor *want = NULL;
        inputs_of(run, in);
        CHECK_INT(opd_graph_run(gradients, in, 3, out, 3), 3);
        for (int i = 0; i < 3 && opd_ok(); i++) {
            opd_tensor *const part = opd_sum(opd_mul(of_run(run, "grad", i), in[i]));
            close_to(out[i], of_run(run, "grad", i), "the trace of a gradient", run);
            want = want ? opd_add(want, part) : part;
        }
        CHECK_INT(opd_graph_run(tangent, in, 3, out, 1), 1);
        if (opd_ok()) { close_to(out[0], want, "the trace of a tangent", run); }
    }
    CHECK_INT(opd_graph_run(maps, stacked, 3, out, 3), 3);
    for (int run = 0; run < RUNS && opd_ok(); run++) {
        for (int i = 0; i < 3; i++) {
            close_to(opd_select(out[i], 0, run), of_run(run, "out", i), "the trace of a map", run);
        }
    }
    opd_graph_free(gradients);
    opd_graph_free(tangent);
    opd_graph_free(maps);
    leave(program);
}
/* A backward after the trace calls the graphs of the program, which may have been freed by then. */
static opd_tensor *later;
static int keeps_a_sum(void *program, opd_tensor *const *in, int n, opd_tensor **out) {
    if (sum_of(program, in, n, out) != 1) { return -1; }
    opd_assign(&later, out[0]);
    return 1;
}
TEST(recordings_keep_the_program) {
    OPD_SCOPED;
    opd_program *const program = flow(true);
    CHECK_OR_RETURN(program && arrays);
    opd_tensor *wrt[3], *made[3];
    for (int i = 0; i < 3; i++) { wrt[i] = opd_tensor_set_requires_grad(opd_clone(of_run(1, "in", i)), true); }
    opd_graph *const graph = opd_graph_trace(keeps_a_sum, program, wrt, 3, NULL);
    CHECK_OK();
    opd_program_free(program);
    opd_graph_free(graph);
    CHECK_INT(opd_autograd_grad(&later, 1, wrt, 3, NULL, made), 0);
    for (int i = 0; i < 3 && opd_ok(); i++) { close_to(made[i], of_run(1, "grad", i), "a gradient after the trace", 1); }
    opd_assign(&later, NULL);
    leave(NULL);
}
TEST(traces_are_saved) {
    OPD_SCOPED;
    opd_program *const program = flow(true);
    CHECK_OR_RETURN(program && arrays);
    char path[300];
    opd_tensor *in[3], *out[3];
    (void)snprintf(path, sizeof path, "%s/opd_traced_%d.pt2", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
    inputs_of(2, in);
    opd_graph *const graph = opd_graph_trace(opd_program_function, program, in, 3, NULL);
    CHECK_INT(opd_program_save(graph, NULL, path), 0);
    opd_program *const again = opd_program_load(path, NULL);
    CHECK_OK();
    for (int run = 0; run < RUNS && again; run++) {
        inputs_of(run, in);
        CHECK_INT(opd_program_function(again, in, 3, out), 3);
        if (opd_ok()) { results_are("a saved trace", run, out); }
    }
    remove(path);
    opd_program_free(again);
    opd_graph_free(graph);
    leave(program);
}
static int trace_again(void *program) {
    OPD_SCOPED;
    opd_tensor *in[3];
    inputs_of(0, in);
    opd_graph *const graph = opd_graph_trace(opd_program_function, program, in, 3, NULL);
    opd_graph_free(graph);
    return graph ? 0 : -1;
}
TEST(allocations_of_traces_fail) {
    opd_program *const program = flow(true);
    CHECK_OR_RETURN(program && arrays);
    CHECK(check_allocations_at(trace_again, program, "opd_graph_trace", 100, false, __FILE__, __LINE__) > 20);
    leave(program);
}

CHECK_MAIN()
