/* Objects that run calls of operators: each of them is freed while it runs, by an observer of these calls.  The run ends
   as if the object had been freed afterwards. */
#include "../../opdispatch.h"
#include "../tape.h"
#if !defined(_WIN32)
#include <unistd.h>
#endif

static void (*free_it)(void *);
static void *it;
static int left;                                  /* the call after which the object is freed; -1: it has been freed */
static void on_end(const opd_event *event, void *context, void *user) {
    (void)event; (void)context; (void)user;
    if (left-- != 0) { return; }
    left = -1;
    free_it(it);
}
static int64_t watch(void (*free_function)(void *), void *what, int calls) {
    opd_observer observer;
    memset(&observer, 0, sizeof observer);
    observer.end = on_end;
    free_it = free_function;
    it = what;
    left = calls;
    return opd_observer_add_local(&observer);
}
static void watched(int64_t number) {
    CHECK(left < 0);
    CHECK(opd_observer_remove(number));
    CHECK_OK();
}
static int polynomial(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)user; (void)count;
    outputs[0] = opd_add(opd_mul(inputs[0], inputs[0]), opd_exp(inputs[0]));
    return 1;
}
static opd_graph *traced(void) {
    opd_tensor *x = vec(3, false);
    opd_graph *graph = opd_graph_trace(polynomial, NULL, &x, 1, NULL);
    CHECK(graph != NULL);
    return graph;
}
static void graph_free(void *what) { opd_graph_free((opd_graph *)what); }
static void compiled_free(void *what) { opd_compiled_free((opd_compiled *)what); }
static void script_free(void *what) { opd_script_free((opd_script *)what); }
static void program_free(void *what) { opd_program_free((opd_program *)what); }
static void optimizer_free(void *what) { opd_optimizer_free((opd_optimizer *)what); }
static void scaler_free(void *what) { opd_scaler_free((opd_scaler *)what); }
static void check_result(const opd_tensor *result) {
    CHECK(result != NULL);
    if (result) { CHECK_NEAR(opd_data_f64(result)[1], 4 + 7.38905609893065, 1e-9); }
}

TEST(graphs_freed_while_they_run) {
    for (int way = 0; way < 3; way++) {
        for (int calls = 0; calls < 3; calls++) OPD_SCOPE {
            opd_tensor *x = vec(3, false), *out = NULL;
            opd_value value = opd_value_tensor(x), result = opd_value_none();
            opd_graph *graph = traced();
            const int64_t number = watch(graph_free, graph, calls);
            switch (way) {
            case 0: CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1); break;
            case 1: CHECK_INT(opd_graph_run_values(graph, &value, 1, &result, 1), 1); out = result.u.t; break;
            default: CHECK_INT(opd_graph_function(graph, &x, 1, &out), 1);
            }
            watched(number);
            check_result(out);
        }
    }
}
TEST(a_graph_freed_while_it_is_folded) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *one = opd_graph_constant(graph, opd_value_tensor(vec(3, false))), *both[2], *sum = NULL;
    both[0] = both[1] = one;
    CHECK_INT(opd_graph_call(graph, "aten::mul.Tensor", both, 2, &sum, 1), 1);
    CHECK_INT(opd_graph_output(graph, &sum, 1, false), 0);
    const int64_t number = watch(graph_free, graph, 0);
    CHECK(opd_graph_fold(graph) >= 0);
    watched(number);
}
/* A kernel may also change the graph that runs it: the run goes on with the graph as it was. */
static void graph_change(void *what) {
    opd_graph *graph = (opd_graph *)what;
    opd_graph_value *x = opd_graph_find(graph, "x"), *made = NULL;
    CHECK(x == NULL || opd_graph_call(graph, "aten::neg", &x, 1, &made, 1) == 1);
    CHECK(opd_graph_dce(graph) >= 0 && opd_graph_cse(graph) >= 0);
}
TEST(a_graph_changed_while_it_runs) {
    opd_tensor *x = vec(3, false), *out = NULL;
    opd_graph *graph = traced();
    for (int calls = 0; calls < 3; calls++) {
        const int64_t number = watch(graph_change, graph, calls);
        CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
        watched(number);
        check_result(out);
    }
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
    check_result(out);
    opd_graph_free(graph);
}
TEST(compiled_graphs_freed_while_they_run) {
    opd_graph *graph = traced();
    opd_compiled *compiled = opd_graph_compile(graph, NULL);
    if (!compiled) {
        opd_error_clear();
        opd_graph_free(graph);
        SKIP("this build does not compile graphs");
    }
    opd_value value = opd_value_tensor(vec(3, false)), result = opd_value_none();
    const int64_t number = watch(compiled_free, compiled, 1);
    CHECK_INT(opd_compiled_run(compiled, &value, 1, &result, 1), 1);
    watched(number);
    check_result(result.u.t);
    opd_graph_free(graph);
}
TEST(scripts_freed_while_they_run) {
    for (int calls = 0; calls < 3; calls++) OPD_SCOPE {
        opd_script *script = opd_script_compile("def g(x):\n    return x * x\n\n"
                                                "def f(x):\n    return g(x) + torch.exp(x)\n", NULL);
        opd_value value = opd_value_tensor(vec(3, false)), result = opd_value_none();
        const int64_t number = watch(script_free, script, calls);
        CHECK_INT(opd_script_run(script, "f", &value, 1, &result), 0);
        watched(number);
        check_result(result.u.t);
    }
}
TEST(optimizers_freed_in_a_step) {
    for (int way = 0; way < 4; way++) OPD_SCOPE {
        opd_tensor *x = vec(3, true);
        opd_optimizer *optimizer = opd_sgd_new(&x, 1, NULL);
        opd_scaler *scaler = opd_scaler_new(NULL);
        CHECK(optimizer && scaler);
        CHECK_INT(opd_backward(opd_scaler_scale(scaler, opd_sum(x))), 0);
        if (way == 3) { CHECK_INT(opd_scaler_unscale(scaler, optimizer), 0); }
        const int64_t number = watch(way == 0 || way == 2 ? optimizer_free : scaler_free,
                                     way == 0 || way == 2 ? (void *)optimizer : (void *)scaler, 0);
        switch (way) {
        case 0: CHECK_INT(opd_optimizer_step(optimizer), 0); break;
        case 1: CHECK_INT(opd_scaler_unscale(scaler, optimizer), 0); break;
        case 2: CHECK_INT(opd_scaler_step(scaler, optimizer), 0); break;
        default: CHECK_INT(opd_scaler_update(scaler, 0), 0); break;
        }
        watched(number);
        if (way == 0 || way == 2) { opd_scaler_free(scaler); } else { opd_optimizer_free(optimizer); }
    }
}
TEST(programs_freed_while_they_run) {
    const char *const folder = getenv("TEMP");
    char path[300];
    long process = 0;
#if !defined(_WIN32)
    process = (long)getpid();
#endif
    snprintf(path, sizeof path, "%s/opd_freed_%ld.pt2", folder ? folder : "/tmp", process);
    opd_graph *graph = traced();
    opd_module *module = opd_module_new();
    CHECK_INT(opd_program_save(graph, module, path), 0);
    opd_module_free(module);
    opd_graph_free(graph);
    for (int way = 0; way < 2; way++) OPD_SCOPE {
        opd_program *program = opd_program_load(path, NULL);
        CHECK(program != NULL);
        const char *name = opd_program_input_name(program, 0);
        char copy[100];
        snprintf(copy, sizeof copy, "%s", name ? name : "");
        name = copy;
        opd_value value = opd_value_tensor(vec(3, false)), result = opd_value_none();
        const int64_t number = watch(program_free, program, 1);
        if (way) { CHECK_INT(opd_program_run_named(program, &name, &value, 1, &result, 1), 1); }
        else { CHECK_INT(opd_program_run(program, &value, 1, &result, 1), 1); }
        watched(number);
        check_result(result.u.t);
    }
    (void)remove(path);
}

CHECK_MAIN()
