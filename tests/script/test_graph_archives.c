/* Traced graphs that are saved as archives of TorchScript (opd_graph_save_script).  The library's reader and PyTorch (if
   there is one) must load them, and compute what the functions compute, also for other inputs. */
#include "../../opdispatch.h"
#include "../traced_control.h"
#include "../python.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *folder(void) {
    static char path[300];
    const char *const temporary = getenv("TMPDIR");
    (void)snprintf(path, sizeof path, "%s/opd_archives_%d", temporary ? temporary : "/tmp", (int)getpid());
    return path;
}
static const char *file_of(const char *name, const char *end) {
    static char path[500];
    (void)snprintf(path, sizeof path, "%s/%s%s", folder(), name, end);
    return path;
}
static opd_tensor *outside, *indices;
/* Constants, a list with None, numbers of all kinds, and results of several operators with lists. */
BODY(plain) {
    UNUSED();
    opd_tensor *parts[] = {NULL, indices};
    opd_tensor *const x = OPD_CALL(opd_find("aten::mul.Tensor"), in[0], 2.5);
    opd_tensor *const picked = opd_index(x, opd_tensors_of(parts, 2));
    opd_tensor *const sums[] = {opd_sum(picked), opd_sum(outside)};
    out[0] = opd_stack(opd_tensors_of(sums, 2), 0);
    out[1] = opd_to_dtype(opd_clamp(x, OPD_V(-1.5), OPD_V(1e300)), OPD_FLOAT32);
    out[2] = opd_full(OPD_INTS(2), OPD_V(INFINITY), OPD_FLOAT64);
    DONE(3);
}
static const char *const names[] = {"layers.0.weight", "layers.0.bias", "layers.class.weight", "tied", "steps"};
static const opd_module_kind kinds[] = {OPD_MODULE_PARAMETER, OPD_MODULE_PARAMETER, OPD_MODULE_PARAMETER, OPD_MODULE_BUFFER,
                                        OPD_MODULE_CONSTANT};
BODY(network_step) { UNUSED(); out[0] = opd_tanh(opd_add(opd_linear(in[0], in[2], in[3]), in[1])); out[1] = out[0]; DONE(2); }
BODY(network) {
    UNUSED();
    opd_tensor *got[2], *weights[] = {in[0], in[1]};
    if (opd_scan(network_step, NULL, in + 5, 1, in + 4, 1, weights, 2, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_linear(got[0], in[2], in[3]);
    DONE(1);
}

/* Saves `fn`, traced with `in`, whose first tensors are the tensors of `module`.  What is loaded must compute what `fn`
   computes for `in` and for `others`.  Writes the arrays for PyTorch. */
static void saves(const char *name, const opd_module *module, opd_transform_fn fn, opd_tensor *const *in,
                  opd_tensor *const *others, int n) {
    OPD_SCOPED;
    static const char *const keys[] = {"in0", "in1", "in2"}, *const results[] = {"out0", "out1", "out2", "out3", "out4"};
    const int first = (int)opd_module_count(module);
    opd_tensor *want[8], *run[8], *arrays[8];
    opd_value given[3], got;
    const char *words[8];
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    CHECK_INT(opd_graph_save_script(graph, module, file_of(name, ".pt")), 0);
    opd_script *const script = opd_script_load(file_of(name, ".pt"));
    if (!script) { printf("%s\n", name); }
    CHECK_OK();
    for (int k = 0; k < 2 && script; k++) {
        opd_tensor *const *const now = k ? in : others;
        const int count = fn(NULL, now, n, want);
        CHECK(count > 0 && count <= 5);
        CHECK_INT(opd_graph_run(graph, now, n, run, 8), count);
        for (int i = first; i < n; i++) { given[i - first] = opd_value_tensor(now[i]); }
        CHECK_INT(opd_script_run(script, NULL, given, n - first, &got), 0);
        for (int i = 0; i < count && opd_ok(); i++) {
            const opd_value value = count == 1 ? got : opd_list_at(got, i);
            const bool same = value.tag == OPD_TAG_TENSOR && opd_equal(value.u.t, run[i]) && opd_allclose(run[i], want[i]);
            CHECK(same);
            if (!same) { printf("%s: output %d\n", name, i); }
        }
        for (int i = first; i < n + count; i++) {
            arrays[i - first] = i < n ? now[i] : opd_contiguous(opd_detach(want[i - n]));
            words[i - first] = i < n ? keys[i - first] : results[i - n];
        }
        if (!k) { CHECK_INT(opd_npz_save(file_of(name, ".npz"), words, opd_tensors_of(arrays, n + count - first)), 0); }
        if (!opd_ok()) { printf("%s\n", name); }
        CHECK_OK();
    }
    opd_script_free(script);
    opd_graph_free(graph);
}
static void check_module(void) {
    opd_script *const script = opd_script_load(file_of("network", ".pt"));
    const opd_module *const module = opd_script_module(script);
    CHECK_INT(opd_module_count(module), 4);                            /* without the constant */
    for (int i = 0; i < 4; i++) {
        CHECK(opd_module_find(module, names[i]) >= 0);
        CHECK_INT(opd_module_kind_at(module, opd_module_find(module, names[i])), kinds[i]);
    }
    CHECK_STR(opd_script_arg_name(script, NULL, 0), "x");
    opd_script_free(script);
}
TEST(graphs_are_saved_as_archives) {
    (void)mkdir(folder(), 0700);
    OPD_SCOPE {
        outside = opd_randn(OPD_INTS(3, 4), OPD_FLOAT64);
        indices = opd_arange(OPD_V(2), OPD_INT64);
        opd_tensor *const a[] = {number(3), number(100)}, *const b[] = {number(0.5), number(0.4)};
        opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
        opd_tensor *const d[] = {number(-0.3), numbers(y_values, 4), number(0.9)};
        opd_tensor *const rows = opd_reshape(c[1], OPD_INTS(2, 2)), *const more = opd_reshape(d[1], OPD_INTS(2, 2));
        opd_tensor *const f[] = {c[0], rows, opd_select(more, 0, 0)}, *const g[] = {c[0], more, opd_select(rows, 0, 1)};
        const double u[] = {3, 20, 2, 200}, v[] = {300, 200, 1000, 101};
        opd_tensor *const j[] = {numbers(u, 4), number(100)}, *const k[] = {numbers(v, 4), number(0.9)};
        opd_tensor *const l[] = {numbers(x_values, 2), rows, number(0.7)}, *const m[] = {numbers(y_values, 2), more, number(0.9)};
        saves("plain", NULL, plain, &rows, &more, 1);
        saves("cond", NULL, chooses, a, b, 2);
        saves("while", NULL, grows, a, b, 2);
        saves("scan", NULL, recurrent, c, d, 3);
        saves("counter", NULL, counts, c, d, 2);
        saves("nested", NULL, nested, c, d, 3);
        saves("map", NULL, maps, f, g, 3);
        saves("cond_gradient", NULL, chooses_by, a, b, 2);
        saves("while_gradient", NULL, grows_by, a, b, 2);
        saves("while_gradient_first_no_round", NULL, grows_by, b, a, 2);
        saves("while_gradients", NULL, grows_twice, a, b, 2);
        saves("scan_gradient", NULL, recurrent_by, c, d, 3);
        saves("scan_gradients", NULL, recurrent_twice, c, d, 3);
        saves("counter_gradient", NULL, counts_by, c, d, 2);
        saves("map_gradient", NULL, maps_by, f, g, 3);
        saves("while_all", NULL, grows_all, j, k, 2);
        saves("while_all_gradient", NULL, grows_all_by, j, k, 2);
        saves("scan_all_gradient", NULL, recurrent_all_by, l, m, 3);
        opd_module *const module = opd_module_new();
        opd_tensor *in[] = {opd_randn(OPD_INTS(3, 3), OPD_FLOAT32), opd_randn(OPD_INTS(3), OPD_FLOAT32),
                            opd_randn(OPD_INTS(2, 3), OPD_FLOAT32), NULL, opd_randn(OPD_INTS(4, 3), OPD_FLOAT32),
                            opd_randn(OPD_INTS(3), OPD_FLOAT32)};
        opd_tensor *const other = opd_randn(OPD_INTS(3), OPD_FLOAT32);
        in[3] = opd_select(in[2], 1, 0);
        for (int i = 0; i < 5; i++) {
            if (i < 3) { opd_tensor_set_requires_grad(in[i], true); }
            CHECK_INT(opd_module_add(module, names[i], i == 3 ? opd_detach(in[3]) : in[i], kinds[i]), 0);
        }
        in[3] = opd_module_at(module, 3);
        opd_tensor *const others[] = {in[0], in[1], in[2], in[3], in[4], other};
        const char *const all[] = {names[0], names[1], names[2], names[3], names[4], "x"};
        opd_trace_options options;
        memset(&options, 0, sizeof options);
        options.names = all;
        options.nnames = 6;
        saves("network", module, network, in, others, 6);
        opd_graph *const graph = opd_graph_trace(network, NULL, in, 6, &options);
        CHECK_INT(opd_graph_save_script(graph, module, file_of("network", ".pt")), 0);
        opd_graph_free(graph);
        check_module();
        opd_module_free(module);
    }
    if (python_checks_programs(folder(), "checked: 19 programs") == 77) { SKIP_WITHOUT_PYTHON("torch 2.8 or later"); }
}

static const char *own_file(void) {
    static char path[400];
    (void)snprintf(path, sizeof path, "%s.pt", folder());
    return path;
}
/* The graph must be refused with an error that has `part`, and no file may be written. */
static void refuses(const opd_graph *graph, const opd_module *module, const char *part) {
    CHECK_INT(opd_graph_save_script(graph, module, own_file()), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, part);
    CHECK(access(own_file(), F_OK) != 0);
}
BODY(draws) { UNUSED(); out[0] = opd_mul(in[0], opd_rand_like(in[0])); DONE(1); }
TEST(graphs_that_cannot_be_saved) {
    OPD_SCOPED;
    static const char *const bad[] = {"a.b", "", "a..b", "a\"b", "training", "graph_constant_1", "x\xc3\xa4"};
    opd_tensor *const x = number(1), *const two[] = {x, x};
    opd_graph *graph = opd_graph_trace(product, NULL, two, 2, NULL);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        opd_module *const module = opd_module_new();
        if (i == 0) { CHECK_INT(opd_module_add(module, "a", x, OPD_MODULE_BUFFER), 0); }
        if (opd_module_add(module, bad[i], x, OPD_MODULE_PARAMETER)) { opd_error_clear(); }
        else { refuses(graph, module, i ? "cannot have this name" : "'a.b' cannot be saved: another name begins with it"); }
        opd_module_free(module);
    }
    refuses(NULL, NULL, "opd_graph_save_script: the graph is NULL");
    CHECK_INT(opd_graph_save_script(graph, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
    CHECK_INT(opd_graph_save_script(graph, NULL, "/nowhere/at/all.pt"), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "/nowhere/at/all.pt");
    opd_module *const module = opd_module_new();
    for (int i = 0; i < 3; i++) {
        char name[] = {(char)('a' + i), 0};
        CHECK_INT(opd_module_add(module, name, x, OPD_MODULE_BUFFER), 0);
    }
    refuses(graph, module, "the graph has fewer inputs than the module has tensors");
    opd_module_free(module);
    opd_graph_free(graph);
    graph = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::nothing_at_all(%x) # model.c:12\n  return (%y)\n");
    opd_error_clear();
    opd_graph_free(graph);
    graph = opd_graph_parse("graph(%x : Tensor):\n  %g : Generator = prim::Constant[value=torch.Generator(device=\"cpu\", "
                            "seed=1)]()\n  %p : float = prim::Constant[value=0.5]()\n"
                            "  %y : Tensor = aten::bernoulli.p(%x, %p, %g) # model.c:12\n  return (%y)\n");
    CHECK_OK();
    refuses(graph, NULL, "opd_graph_save_script: forward has a constant that an archive cannot contain [aten::bernoulli at "
            "model.c:12]");
    opd_graph_free(graph);
}
static int save_again(void *graph) {
    const int rc = opd_graph_save_script((const opd_graph *)graph, NULL, own_file());
    CHECK(rc == 0 || access(own_file(), F_OK) != 0);
    (void)remove(own_file());
    return rc;
}
TEST(allocations_of_saving_fail) {
    opd_graph *graph = NULL;
    OPD_SCOPE {
        opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
        graph = opd_graph_trace(nested, NULL, c, 3, NULL);
    }
    CHECK(check_allocations_at(save_again, graph, "an archive", 300, false, __FILE__, __LINE__) > 20);
    opd_graph_free(graph);
}

CHECK_MAIN()
