/* Exported programs: golden/programs, made by golden/make_programs.py.  Each program runs, and its results are
   compared.  Some are trained, with the same losses as in PyTorch.  Also errors for wrong inputs, and truncated and
   damaged files. */
#include "../../opdispatch.h"
#include "../program_files.h"
#include "../python.h"
#include <unistd.h>

/* Compares by the largest value; exact where numbers are integers. */
static void check_close(const char *what, opd_tensor *got, opd_tensor *want, double tolerance) {
    int same = opd_ndim(got) == opd_ndim(want) && opd_dtype(got) == opd_dtype(want);
    for (int i = 0; same && i < opd_ndim(got); i++) { same = opd_size(got, i) == opd_size(want, i); }
    CHECK(same);
    if (!same || opd_numel(got) == 0) { return; }
    opd_tensor *a = opd_to_dtype(opd_detach(got), OPD_FLOAT64), *b = opd_to_dtype(opd_detach(want), OPD_FLOAT64);
    const double most = opd_item_f64(opd_max(opd_abs(b))), off = opd_item_f64(opd_max(opd_abs(opd_sub(a, b))));
    const int floating = opd_dtype_is_floating(opd_dtype(got)), half = opd_dtype(got) == OPD_BFLOAT16;
    if (!(off <= (floating ? (half ? 4e-2 : tolerance) * (most > 0 ? most : 1) : 0))) {
        printf("%s differs by %g of %g\n", what, off, most);
        CHECK(!"another result");
    }
    CHECK(opd_ok());
}
static int complete(const opd_program *program) {
    const char *missing = NULL;
    for (int64_t i = 0; opd_program_operator(program, i, NULL, &missing); i++) {
        if (missing) { return 0; }
    }
    return 1;
}
/* A compiler for every other call. */
static int asked, taken;
static bool every_other(void *user, const opd_graph_node *node) {
    (void)user, (void)node;
    return asked++ % 2 == 0;
}
static int run_part(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_graph_run((const opd_graph *)user, in, n, out, OPD_TRANSFORM_OUTPUTS);
}
static int compile_part(void *user, const opd_graph *part, opd_part_function *function) {
    (void)user;
    CHECK_INT(opd_graph_check((opd_graph *)(uintptr_t)part), 0);
    function->run = run_part;
    function->user = (void *)(uintptr_t)part;
    taken++;
    return 0;
}
/* parted: run_one runs a copy of the program's graph in which a compiler computes parts.  in_blocks: the copy has blocks for
   conditions and loops. */
static bool parted, in_blocks;
static int nblocks;
static void change(opd_program *program) {
    const opd_part_compiler compiler = {every_other, compile_part, 0, NULL};
    if (!program || !(parted || in_blocks)) { return; }
    opd_graph *const graph = in_blocks ? opd_program_open_graph(program) : opd_graph_copy(opd_program_graph(program));
    if (!in_blocks) { CHECK(opd_graph_equal(graph, opd_program_graph(program))); }
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_OK();
    for (opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
        nblocks += opd_graph_node_nblocks(node);
    }
    CHECK(opd_graph_delegate(graph, &compiler) >= 0);
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_program_set_graph(program, graph), 0);
}
static void run_one(const char *name, const char *arrays) {
    opd_program *program = opd_program_load(golden(name, ".pt2"), NULL);
    change(program);
    opd_tensor_file *file = opd_tensor_file_open(golden(arrays, ".npz"));
    opd_value inputs[16], outputs[16];
    CHECK(program && file);
    if (!program || !file) { printf("%s: %s\n", name, opd_error_message()); return; }
    CHECK(complete(program));
    if (!complete(program)) { printf("%s calls an operator that is not there\n", name); }
    const int count = fill(program, file, inputs);
    OPD_NO_GRAD {
        CHECK_INT(opd_program_run(program, inputs, count, outputs, 16), opd_program_noutputs(program));
    }
    if (!opd_ok()) { printf("%s: %s\n", name, opd_error_message()); opd_error_clear(); }
    else {
        char key[40], what[200];
        for (int i = 0; i < opd_program_noutputs(program); i++) {
            (void)snprintf(key, sizeof key, "out%d", i);
            (void)snprintf(what, sizeof what, "%s %s", name, key);
            opd_tensor *const want = array(file, key);
            if (!want) { CHECK_INT(outputs[i].tag, OPD_TAG_NONE); }
            else if (outputs[i].tag == OPD_TAG_INT) { CHECK_INT(outputs[i].u.i, opd_item_i64(want)); }
            else {
                CHECK_INT(outputs[i].tag, OPD_TAG_TENSOR);
                check_close(what, outputs[i].u.t, want, 1e-5);
            }
        }
        for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
            const char *const its = opd_tensor_file_name(file, i);
            if (strncmp(its, "after.", 6) == 0) {
                CHECK(opd_program_writes(program));
                check_close(its, opd_module_get(opd_program_module(program), its + 6), opd_tensor_file_at(file, i), 1e-5);
            } else if (strncmp(its, "in_after", 8) == 0) {
                check_close(its, inputs[atoi(its + 8)].u.t, opd_tensor_file_at(file, i), 1e-5);
            }
        }
    }
    opd_tensor_file_close(file);
    opd_program_free(program);
}
static const char *const names[] = {
    "mlp", "mlp_bf16", "conv", "conv_training", "branch", "branch_other", "branch_on_size", "loop", "until", "map", "scan", "state",
    "tied", "strides", "tree", "sizes", "fours", "modes", "numbers", "size_as_input", "item", "heads", "clicks", "quantized",
    "ao_dynamic", "ao_groups", "pt2e", "lowered", "experts",
    "effects", "associative", "hints", "const_graph", "tensor_of_sizes", "tokens", "pooled", "joint"};
static const char *const cores[] = {"associative", "mlp", "conv", "conv_training", "branch", "state", "sizes", "item", "heads",
                                    "tokens", "pooled"};
TEST(programs_give_what_pytorch_gives) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        OPD_SCOPE { run_one(names[i], names[i]); }
    }
}
TEST(programs_whose_graphs_were_changed_give_the_same) {
    parted = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        OPD_SCOPE { run_one(names[i], names[i]); }
    }
    CHECK(taken > 50);
    parted = false;
}
TEST(programs_with_open_conditions_and_loops_give_the_same) {
    static const char *const all[] = {"branch", "branch_other", "branch_on_size", "loop", "until", "map", "scan", "modes", "hints",
                                      "effects", "associative", "const_graph", "mlp", "torch_2_2_branch", "torch_2_5_branch"};
    in_blocks = true;
    nblocks = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        OPD_SCOPE { run_one(all[i], all[i]); }
    }
    CHECK_INT(nblocks, 14);
    in_blocks = false;
}
/* The graphs of programs with conditions and loops, as they are and with blocks, become C code. */
static const char *const flows[] = {"branch", "branch_other", "loop", "until", "map", "scan"};
static void compile_one(const char *name, bool open) {
    opd_program *program = opd_program_load(golden(name, ".pt2"), NULL);
    opd_tensor_file *file = opd_tensor_file_open(golden(name, ".npz"));
    opd_value inputs[16], outputs[16];
    opd_compile_options options;
    CHECK_OR_RETURN(program && file);
    if (open) { CHECK_INT(opd_program_set_graph(program, opd_program_open_graph(program)), 0); }
    const int count = fill(program, file, inputs);
    memset(&options, 0, sizeof options);
    options.flags = "-O0";
    opd_compiled *compiled = opd_program_compile(program, &options);
    OPD_NO_GRAD {
        for (int k = 0; k < 3; k++) {
            CHECK_INT(opd_compiled_run(compiled, inputs, count, outputs, 16), opd_program_noutputs(program));
        }
    }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    for (int i = 0; i < opd_program_noutputs(program) && opd_ok(); i++) {
        char key[40];
        (void)snprintf(key, sizeof key, "out%d", i);
        check_close(name, outputs[i].u.t, array(file, key), 1e-5);
    }
    CHECK_OK();
    opd_compiled_free(compiled);
    opd_tensor_file_close(file);
    opd_program_free(program);
}
TEST(conditions_and_loops_of_programs_are_compiled) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++) {
        for (int open = 0; open < 2; open++) {
            OPD_SCOPE { compile_one(flows[i], open != 0); }
        }
    }
}
static int open_again(void *user) {
    opd_graph *const graph = opd_program_open_graph((const opd_program *)user);
    opd_graph_free(graph);
    return graph ? 0 : -1;
}
TEST(memory_runs_out_while_a_graph_is_opened) {
    CHECK(!opd_program_open_graph(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_program_open_graph: the program is NULL");
    for (size_t i = 0; i < sizeof flows / sizeof *flows; i++) {
        opd_program *program = opd_program_load(golden(flows[i], ".pt2"), NULL);
        CHECK(check_allocations(open_again, program, flows[i], 60, true) > 3);
        opd_program_free(program);
    }
}
TEST(a_file_cannot_keep_functions_of_programs) {
    opd_program *program = opd_program_load(golden("loop", ".pt2"), NULL);
    CHECK_INT(opd_graph_save(opd_program_graph(program), "/tmp/never.graph"), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_save: a file cannot keep the call of 'while_loop', a function of an exported");
    opd_program_free(program);
}
TEST(graphs_that_do_not_fit_a_program) {
    opd_program *program = opd_program_load(golden("mlp", ".pt2"), NULL), *other = opd_program_load(golden("conv", ".pt2"), NULL);
    opd_graph *graph = opd_graph_copy(opd_program_graph(other)), *fewer = opd_graph_copy(opd_program_graph(program));
    CHECK_INT(opd_program_set_graph(program, graph), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_program_set_graph: the graph is not a copy of the program's graph (opd_graph_copy)");
    CHECK_INT(opd_program_set_graph(NULL, graph), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_program_set_graph: the program is NULL");
    CHECK_INT(opd_program_set_graph(program, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_program_set_graph: the graph is NULL");
    CHECK(opd_graph_input(fewer, "more", NULL) != NULL);
    CHECK_INT(opd_program_set_graph(program, fewer), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "inputs and 1 outputs, but the program has");
    CHECK_INT(opd_program_save(fewer, NULL, "/tmp/never.pt2"), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_program_save: the graph is a copy of the graph of a program");
    opd_program_free(other);                      /* the copy keeps its program alive */
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
    opd_graph_free(fewer);
    graph = opd_graph_copy(opd_program_graph(program));
    CHECK_INT(opd_program_set_graph(program, graph), 0);
    char path[60];
    (void)snprintf(path, sizeof path, "/tmp/opd_changed_%d.pt2", (int)getpid());
    CHECK_INT(opd_program_save(opd_program_graph(program), opd_program_module(program), path), 0);
    opd_program_free(program);
    program = opd_program_load(path, NULL);       /* it was recorded anew */
    CHECK(program && opd_program_ninputs(program) == 1 && strcmp(opd_program_input_name(program, 0), "x") == 0);
    (void)remove(path);
    opd_program_free(program);
}
/* Golden files by make_old_programs.py. */
static const char *const olds[] = {
    "2_2_state", "2_2_sizes", "2_2_tied", "2_2_branch", "2_2_flag", "2_5_state", "2_5_sizes", "2_5_tied", "2_5_branch",
    "2_5_flag", "2_8_state", "2_8_sizes"};
TEST(programs_that_older_versions_wrote) {
    for (size_t i = 0; i < sizeof olds / sizeof *olds; i++) {
        char name[100];
        (void)snprintf(name, sizeof name, "torch_%s", olds[i]);
        OPD_SCOPE { run_one(name, name); }
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const states[] = {"torch_2_2_state", "torch_2_5_state", "torch_2_8_state"};
        opd_program *program = opd_program_load(golden(states[i], ".pt2"), NULL);
        opd_module *const module = opd_program_module(program);
        CHECK_STR(opd_program_name(program), "model");
        CHECK_STR(opd_program_file_name(program, 0), "model");
        CHECK(!opd_program_file_name(program, 1));
        CHECK(opd_tensor_requires_grad(opd_module_get(module, "line.weight")));
        CHECK_INT(opd_module_kind_at(module, opd_module_find(module, "sum")), OPD_MODULE_BUFFER);
        if (i) { CHECK_INT(opd_module_kind_at(module, opd_module_find(module, "shift")), OPD_MODULE_CONSTANT); }
        opd_program_free(program);
    }
    opd_program *sizes = opd_program_load(golden("torch_2_5_sizes", ".pt2"), NULL);
    OPD_SCOPE {
        opd_value inputs[2], outputs[4];
        char type[100];
        CHECK(opd_program_input_type(sizes, 0, type, sizeof type) > 0);
        CHECK_STR(type, "float32 [s0=3..64, 3]");
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(2, 3), OPD_FLOAT32));
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(2, 3), OPD_FLOAT32));
        CHECK_INT(opd_program_run(sizes, inputs, 2, outputs, 4), -1);
        CHECK(strstr(opd_error_message(), "accepts s0 from 3 to 64") != NULL);
        opd_error_clear();
    }
    opd_program_free(sizes);
    opd_program *none = opd_program_load(golden("torch_2_5_state", ".pt2"), "other");
    CHECK(!none);
    opd_error_clear();
}
TEST(programs_in_the_core_form_give_the_same) {
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
        char name[100];
        (void)snprintf(name, sizeof name, "%s.core", cores[i]);
        OPD_SCOPE { run_one(name, cores[i]); }
    }
}

/* Trains as the maker did, and compares each loss and what the parameters are then. */
static void train_one(const char *name, const char *arrays) {
    opd_program *program = opd_program_load(golden(name, ".pt2"), NULL);
    opd_tensor_file *file = opd_tensor_file_open(golden(arrays, ".npz"));
    CHECK(program && file);
    if (!program || !file) { return; }
    opd_module *const module = opd_program_module(program);
    opd_tensor *params[64], *losses = array(file, "losses"), *target = array(file, "target");
    opd_value inputs[16], outputs[16];
    int count = 0;
    for (int64_t i = 0; i < opd_module_count(module); i++) {
        opd_tensor *const param = opd_module_at(module, i);
        int seen = 0;
        for (int k = 0; k < count; k++) { seen |= params[k] == param; }
        if (!seen && opd_module_kind_at(module, i) == OPD_MODULE_PARAMETER) { params[count++] = param; }
    }
    opd_sgd_options sgd = opd_sgd_defaults();
    opd_adam_options adam = opd_adam_defaults();
    sgd.lr = 5e-2;
    sgd.momentum = 0.9;
    adam.lr = 1e-2;
    opd_optimizer *optimizer = opd_item_i64(array(file, "adam")) ? opd_adam_new(params, count, &adam)
        : opd_sgd_new(params, count, &sgd);
    const int ninputs = fill(program, file, inputs);
    for (int64_t step = 0; step < opd_numel(losses); step++) {
        OPD_SCOPE {
            opd_optimizer_zero_grad(optimizer);
            CHECK(opd_program_run(program, inputs, ninputs, outputs, 16) > 0);
            opd_tensor *const off = opd_ok() ? opd_sub(outputs[0].u.t, target) : NULL;
            opd_tensor *const loss = opd_mean(opd_mul(off, off));
            opd_backward(loss);
            opd_optimizer_step(optimizer);
            const double got = opd_ok() ? opd_item_f64(opd_detach(loss)) : 0;
            const double want = opd_item_f64(opd_select(losses, 0, step));
            if (!opd_ok() || fabs(got - want) > 1e-4 * want) {
                printf("%s step %d: loss %.7g, not %.7g %s\n", name, (int)step, got, want, opd_error_message());
                CHECK(!"another loss");
                opd_error_clear();
            }
        }
    }
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *const its = opd_tensor_file_name(file, i);
        if (strncmp(its, "trained.", 8) == 0) {
            check_close(its, opd_module_get(module, its + 8), opd_tensor_file_at(file, i), 1e-3);
        }
    }
    opd_optimizer_free(optimizer);
    opd_tensor_file_close(file);
    opd_program_free(program);
}
TEST(programs_train_step_by_step_as_in_pytorch) {
    static const char *const trained[] = {"mlp", "mlp.core", "conv_training", "conv_training.core", "branch",
                                          "branch.core", "map", "tied", "clicks"};
    for (size_t i = 0; i < sizeof trained / sizeof *trained; i++) {
        char arrays[100];
        (void)snprintf(arrays, sizeof arrays, "%.*s", (int)strcspn(trained[i], "."), trained[i]);
        OPD_SCOPE { train_one(trained[i], arrays); }
    }
}
/* Writes to a module never change its file. */
TEST(programs_files_stay_as_they_are) {
    for (int round = 0; round < 2; round++) {
        opd_program *program = opd_program_load(golden("state", ".pt2"), NULL);
        OPD_SCOPE {
            opd_value inputs[2] = {opd_value_none(), opd_value_none()}, output;
            inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(2, 4), OPD_FLOAT32));
            inputs[1] = opd_value_tensor(opd_zeros(OPD_INTS(3), OPD_FLOAT32));
            CHECK_INT(opd_item_i64(opd_module_get(opd_program_module(program), "count")), 0);
            OPD_NO_GRAD { CHECK_INT(opd_program_run(program, inputs, 2, &output, 1), 1); }
            CHECK_INT(opd_item_i64(opd_module_get(opd_program_module(program), "count")), 1);
        }
        opd_program_free(program);
    }
}
TEST(programs_tell_what_they_are) {
    char text[300];
    const char *missing;
    int64_t count;
    opd_program *program = opd_program_load(golden("tree", ".pt2"), NULL);
    CHECK_STR(opd_program_name(program), "model");
    CHECK_INT(opd_program_ninputs(program), 4);
    CHECK_STR(opd_program_input_name(program, 0), "d.a");
    CHECK_STR(opd_program_input_name(program, 1), "d.b.0");
    CHECK_STR(opd_program_input_name(program, 2), "scale");
    CHECK_STR(opd_program_output_name(program, 0), "y");
    CHECK_STR(opd_program_output_name(program, 2), "z.1");
    CHECK_INT(opd_program_find_output(program, "none"), 3);
    CHECK_INT(opd_program_find_input(program, "x"), -1);
    CHECK(!opd_program_input_name(program, 4) && !opd_program_output_name(program, -1));
    CHECK_INT((int)opd_program_input_type(program, 0, text, sizeof text), 14);
    CHECK_STR(text, "float32 [2, 4]");
    (void)opd_program_input_type(program, 2, text, sizeof text);
    CHECK_STR(text, "2");
    CHECK(!opd_program_writes(program));
    CHECK_STR(opd_program_operator(program, 0, &count, &missing), "aten::linear");
    CHECK_INT(count, 1);
    CHECK(!missing);
    CHECK_INT(opd_module_count(opd_program_module(program)), 2);
    CHECK(opd_program_print(program, text, sizeof text) > 200);
    CHECK(strncmp(text, "graph(%p_a_weight", 17) == 0);
    opd_program_free(program);
    program = opd_program_load(golden("conv", ".pt2"), NULL);
    (void)opd_program_input_type(program, 0, text, sizeof text);
    CHECK(strncmp(text, "float32 [s", 10) == 0 && strstr(text, "..64, 3, 16, 16]"));
    CHECK(opd_program_note(program, 0) && strstr(opd_program_note(program, 0), "batch_norm"));
    opd_program_free(program);
    program = opd_program_load(golden("tied", ".pt2"), NULL);
    CHECK(opd_module_get(opd_program_module(program), "e.weight") == opd_module_get(opd_program_module(program), "l.weight"));
    opd_program_free(program);
    program = opd_program_load(golden("joint", ".pt2"), NULL);
    static const char *const outputs[] = {"error", "y", "a.weight.grad", "a.bias.grad"};
    for (int i = 0; i < 4; i++) { CHECK_STR(opd_program_output_name(program, i), outputs[i]); }
    opd_program_free(program);
    CHECK(opd_ok());
}
TEST(programs_of_one_file) {
    opd_program *program = opd_program_load(golden("two", ".pt2"), "second");
    CHECK_STR(opd_program_file_name(program, 0), "first");
    CHECK_STR(opd_program_file_name(program, 1), "second");
    CHECK(!opd_program_file_name(program, 2));
    CHECK_INT(opd_size(opd_module_get(opd_program_module(program), "weight"), 0), 4);
    opd_program_free(program);
    program = opd_program_load(golden("two", ".pt2"), NULL);
    CHECK_STR(opd_program_name(program), "first");
    opd_program_free(program);
    CHECK(!opd_program_load(golden("two", ".pt2"), "third"));
    CHECK(strstr(opd_error_message(), "no program 'third'") != NULL);
    opd_error_clear();
}
TEST(programs_run_by_name) {
    opd_program *program = opd_program_load(golden("tree", ".pt2"), NULL);
    static const char *const its[] = {"d.b.0", "d.a"}, *const wrong[] = {"d.b.0", "a"};
    opd_value inputs[2], outputs[4];
    OPD_SCOPE {
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(4), OPD_FLOAT32));
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(2, 4), OPD_FLOAT32));
        CHECK_INT(opd_program_run_named(program, its, inputs, 2, outputs, 4), 4);
        CHECK_INT(outputs[0].tag, OPD_TAG_TENSOR);
        CHECK_INT(outputs[2].u.i, 2);
        CHECK_INT(opd_program_run_named(program, its, inputs, 1, outputs, 4), -1);
        CHECK(strstr(opd_error_message(), "'d.a' is missing") != NULL);
        opd_error_clear();
        CHECK_INT(opd_program_run_named(program, wrong, inputs, 2, outputs, 4), -1);
        CHECK(strstr(opd_error_message(), "no input 'a'; did you mean 'd.a'") != NULL);
        opd_error_clear();
    }
    opd_program_free(program);
}
static void refused(const opd_program *program, const opd_value *inputs, int count, const char *says) {
    opd_value outputs[8];
    CHECK_INT(opd_program_run(program, inputs, count, outputs, 8), -1);
    if (!strstr(opd_error_message(), says)) {
        printf("%s, not: %s\n", opd_error_message(), says);
        CHECK(!"another error");
    }
    opd_error_clear();
}
TEST(programs_check_their_inputs) {
    opd_value inputs[4];
    opd_program *program = opd_program_load(golden("sizes", ".pt2"), NULL);
    OPD_SCOPE {
        inputs[0] = inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4, 33, 5), OPD_FLOAT32));
        refused(program, inputs, 2, "input 0, 'x', has size 33 at dim 1, but the program accepts");
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(4, 6, 7), OPD_FLOAT32));
        refused(program, inputs, 2, "input 0, 'x', has size 7 at dim 2, but the program expects 5");
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(4, 6, 5), OPD_FLOAT32));
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4, 7, 5), OPD_FLOAT32));
        refused(program, inputs, 2, "input 1, 'y', has size 7 at dim 1, but the program expects the same");
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4, 6), OPD_FLOAT32));
        refused(program, inputs, 2, "has 2 dims, but the program expects 3");
        refused(program, inputs, 1, "expected 2 inputs but got 1");
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4, 6, 5), OPD_INT64));
        refused(program, inputs, 2, "input 1, 'y', is int64, but the program expects float32");
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4, 6, 5), OPD_FLOAT64));
        refused(program, inputs, 2, "input 1, 'y', is float64, but the program expects float32");
        inputs[1] = opd_value_int(3);
        refused(program, inputs, 2, "input 1, 'y', is not of type tensor");
    }
    opd_program_free(program);
    program = opd_program_load(golden("fours", ".pt2"), NULL);
    OPD_SCOPE {
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(10), OPD_FLOAT32));
        refused(program, inputs, 1, "expects a multiple");
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(36), OPD_FLOAT32));
        refused(program, inputs, 1, "has size 36 at dim 0");
    }
    char type[80] = "";
    (void)opd_program_input_type(program, 0, type, sizeof type);
    CHECK(strncmp(type, "float32 [4*s", 12) == 0);                            /* and no text with commas in it */
    opd_program_free(program);
    program = opd_program_load(golden("numbers", ".pt2"), NULL);
    OPD_SCOPE {
        opd_value output;
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(3), OPD_FLOAT32));
        inputs[1] = opd_value_int(3);
        inputs[2] = opd_value_double(0.5);
        inputs[3] = opd_value_bool(true);
        refused(program, inputs, 4, "input 1, 'n', differs from 2");
        CHECK_INT(opd_program_run(program, inputs, 1, &output, 1), 1);
    }
    opd_program_free(program);
    program = opd_program_load(golden("item", ".pt2"), NULL);
    OPD_SCOPE {
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(8), OPD_FLOAT32));
        inputs[1] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_int(9), OPD_INT64));
        refused(program, inputs, 2, "Runtime assertion failed for expression u0 <= 8");
    }
    opd_program_free(program);
}
/* If the module of a program was cast, the program takes only inputs of the new dtype. */
TEST(programs_that_were_cast_take_that_dtype) {
    opd_program *program = opd_program_load(golden("mlp", ".pt2"), NULL);
    opd_tensor_file *file = opd_tensor_file_open(golden("mlp", ".npz"));
    OPD_SCOPE {
        opd_value inputs[4], outputs[4];
        const int count = fill(program, file, inputs);
        opd_tensor *const x = inputs[0].u.t;
        inputs[0] = opd_value_tensor(opd_to_dtype(x, OPD_FLOAT64));
        refused(program, inputs, count, "is float64, but the program expects float32");
        CHECK_INT(opd_module_to(opd_program_module(program), NULL, OPD_FLOAT64), 0);
        CHECK(opd_program_run(program, inputs, count, outputs, 4) > 0);
        CHECK(opd_ok() && opd_dtype(outputs[0].u.t) == OPD_FLOAT64);
        inputs[0] = opd_value_tensor(opd_to_dtype(x, OPD_BFLOAT16));
        refused(program, inputs, count, "is bfloat16, but the program expects float32");
        inputs[0] = opd_value_tensor(opd_to_dtype(x, OPD_INT64));
        refused(program, inputs, count, "is int64, but the program expects float32");
    }
    opd_tensor_file_close(file);
    opd_program_free(program);
}
/* A program is a function like others: under vmap and derivatives of functions, in a trace, on shapes alone. */
TEST(programs_check_their_numbers) {
    opd_program *program = opd_program_load(golden("size_as_input", ".pt2"), NULL);
    OPD_SCOPE {
        opd_value inputs[2], outputs[2];
        inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(8), OPD_FLOAT32));
        const opd_value good[] = {opd_value_int(3), opd_value_tensor(opd_full(OPD_INTS(1), opd_value_int(3), OPD_INT32))};
        const opd_value bad[] = {opd_value_double(3), opd_value_tensor(opd_full(OPD_INTS(1), opd_value_int(3), OPD_FLOAT32)),
                                 opd_value_str("3"), opd_value_none(), opd_value_tensor(opd_ones(OPD_INTS(2), OPD_INT64))};
        for (int i = 0; i < 2; i++) {
            inputs[1] = good[i];
            CHECK_INT(opd_program_run(program, inputs, 2, outputs, 2), opd_program_noutputs(program));
        }
        for (int i = 0; i < 5; i++) {
            inputs[1] = bad[i];
            CHECK_INT(opd_program_run(program, inputs, 2, outputs, 2), -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 1, 'n', is not of type int");
        }
        inputs[1] = opd_value_int(99);
        CHECK_INT(opd_program_run(program, inputs, 2, outputs, 2), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 1, 'n', is 99, but the program accepts");
    }
    opd_program_free(program);
}
TEST(programs_under_transforms) {
    opd_program *program = opd_program_load(golden("branch_on_size", ".pt2"), NULL), *mlp = opd_program_load(golden("mlp", ".pt2"), NULL);
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(5, 4, 6), OPD_FLOAT32), *batched[1], *single[1], *one;
        CHECK_INT(opd_vmap(opd_program_function, mlp, &x, 1, NULL, batched, 1), 1);
        for (int64_t i = 0; i < 5; i++) {
            one = opd_select(x, 0, i);
            CHECK_INT(opd_program_function(mlp, &one, 1, single), 1);
            check_close("vmap", opd_select(batched[0], 0, i), single[0], 1e-5);
        }
        CHECK(opd_ok());
    }
    OPD_SCOPE {
        OPD_FAKE_MODE {
            opd_tensor *x = opd_ones(OPD_INTS(4, 6), OPD_FLOAT32), *out[1];
            CHECK_INT(opd_program_function(mlp, &x, 1, out), 1);
            CHECK_INT(opd_size(out[0], 1), 3);
        }
    }
    opd_program_free(program);
    opd_program_free(mlp);
}

TEST(programs_take_views_and_say_what_is_wrong_with_others) {
    opd_program *program = opd_program_load(golden("mlp", ".pt2"), NULL);
    OPD_SCOPE {
        opd_tensor *x = opd_ones(OPD_INTS(4, 6), OPD_FLOAT32), *want[1], *got[1];
        opd_tensor *views[2];
        views[0] = opd_t(opd_ones(OPD_INTS(6, 4), OPD_FLOAT32));
        views[1] = opd_expand(opd_ones(OPD_INTS(1, 1), OPD_FLOAT32), OPD_INTS(4, 6));
        CHECK_INT(opd_program_function(program, &x, 1, want), 1);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(opd_program_function(program, &views[i], 1, got), 1);
            check_close("a view", got[0], want[0], 1e-6);
        }
        opd_tensor *wrong = opd_ones(OPD_INTS(4, 6), OPD_FLOAT64);
        CHECK_INT(opd_program_function(program, &wrong, 1, got), -1);
        CHECK(strstr(opd_error_message(), "input 0, 'x', is float64, but the program expects float32") != NULL);
        opd_error_clear();
        opd_graph *const graph = (opd_graph *)(uintptr_t)opd_program_graph(program);
        CHECK(opd_graph_dce(graph) >= 0 && opd_graph_cse(graph) >= 0 && opd_graph_fold(graph) >= 0);
        CHECK_INT(opd_program_function(program, &x, 1, got), 1);
        check_close("after the passes", got[0], want[0], 0);
    }
    opd_program_free(program);
}

/* What a cond gives where its predicate is another one for each example, and gradients. */
static int sum_of(void *program, opd_tensor *const *in, int count, opd_tensor **out) {
    opd_tensor *made[4];
    const int n = opd_program_function(program, in, count, made);
    if (n != 1) { return -1; }
    out[0] = opd_sum(made[0]);
    return 1;
}
static int gradient_of(void *program, opd_tensor *const *in, int count, opd_tensor **out) {
    opd_tensor *wrt = in[0];
    (void)count;
    return opd_grad(sum_of, program, &wrt, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0 ? -1 : 1;
}
TEST(programs_with_a_condition_for_each_example) {
    opd_program *program = opd_program_load(golden("branch", ".pt2"), NULL);
    OPD_SCOPE {
        opd_manual_seed(3);
        opd_tensor *x = opd_randn(OPD_INTS(6, 3, 4), OPD_FLOAT32), *batched[1], *single[1], *slopes[1], *slope[1];
        int above = 0;
        CHECK_INT(opd_vmap(opd_program_function, program, &x, 1, NULL, batched, 1), 1);
        CHECK_INT(opd_vmap(gradient_of, program, &x, 1, NULL, slopes, 1), 1);
        for (int64_t i = 0; i < 6 && opd_ok(); i++) {
            opd_tensor *one = opd_select(x, 0, i);
            above += opd_item_f64(opd_sum(one)) > 0;
            CHECK_INT(opd_program_function(program, &one, 1, single), 1);
            check_close("vmap of cond", opd_select(batched[0], 0, i), single[0], 1e-5);
            CHECK_INT(gradient_of(program, &one, 1, slope), 1);
            check_close("vmap of cond's gradient", opd_select(slopes[0], 0, i), slope[0], 1e-5);
        }
        CHECK(above > 0 && above < 6);
        CHECK(opd_ok());
    }
    opd_program_free(program);
}
/* The side that is not taken gives its parameters gradients of zeros, as in PyTorch. */
TEST(sides_that_are_not_taken_give_zeros) {
    static const char *const names[] = {"a.weight", "a.bias", "b.weight", "b.bias"};
    OPD_SCOPED;
    opd_program *const program = opd_program_load(golden("branch", ".pt2"), NULL);
    CHECK_OR_RETURN(program != NULL);
    opd_tensor *p[4];
    for (int i = 0; i < 4; i++) { p[i] = opd_module_get(opd_program_module(program), names[i]); }
    for (int positive = 0; positive < 2; positive++) {
        opd_tensor *x = opd_full(OPD_INTS(3, 4), OPD_V(positive ? 1.0 : -1.0), OPD_FLOAT32), *out, *plain, *g[4];
        CHECK_INT(opd_program_function(program, &x, 1, &plain), 1);
        for (int i = 0; i < 4; i++) { (void)opd_tensor_set_requires_grad(p[i], true); }
        CHECK_INT(opd_program_function(program, &x, 1, &out), 1);
        CHECK(opd_equal(opd_detach(out), plain));
        out = opd_sum(out);
        CHECK_INT(opd_autograd_grad(&out, 1, p, 4, NULL, g), 0);
        for (int i = 0; i < 4 && opd_ok(); i++) {
            const bool taken = (i < 2) == positive;
            CHECK(opd_is_same_size(g[i], p[i]) && (opd_item_f64(opd_amax(opd_abs(g[i]), opd_ints_of(NULL, 0), false)) > 0) == taken);
        }
        for (int i = 0; i < 4; i++) { (void)opd_tensor_set_requires_grad(p[i], false); }
    }
    opd_program_free(program);
    CHECK_OK();
}
static int last_sum_of(void *program, opd_tensor *const *in, int count, opd_tensor **out) {
    opd_tensor *made[2];
    if (opd_program_function(program, in, count, made) != 2) { return -1; }
    out[0] = opd_sum(made[1]);
    return 1;
}
static int gradient_of_loop(void *program, opd_tensor *const *in, int count, opd_tensor **out) {
    opd_tensor *wrt = in[0];
    (void)count;
    return opd_grad(last_sum_of, program, &wrt, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0 ? -1 : 1;
}
static int batch_of_loops(void *program, opd_tensor *const *in, int count, opd_tensor **out) {
    return opd_vmap(opd_program_function, program, in, count, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* A loop that continues until all examples have ended. */
TEST(programs_with_a_loop_for_each_example) {
    static const float scales[] = {0, 1, 2, 3, 9, 20};
    opd_program *program = opd_program_load(golden("until", ".pt2"), NULL);
    OPD_SCOPE {
        opd_manual_seed(3);
        opd_tensor *x = opd_rand(OPD_INTS(6, 4), OPD_FLOAT32), *batched[2], *single[2], *slopes[1], *slope[1], *inner[2];
        int64_t most = 0, least = 1000;
        x = opd_mul(x, opd_tensor_from(scales, OPD_INTS(6, 1), OPD_FLOAT32));
        CHECK_INT(opd_vmap(opd_program_function, program, &x, 1, NULL, batched, 2), 2);
        CHECK_INT(opd_vmap(gradient_of_loop, program, &x, 1, NULL, slopes, 1), 1);
        for (int64_t i = 0; i < 6 && opd_ok(); i++) {
            opd_tensor *one = opd_select(x, 0, i);
            CHECK_INT(opd_program_function(program, &one, 1, single), 2);
            const int64_t rounds = opd_item_i64(single[0]);
            most = rounds > most ? rounds : most;
            least = rounds < least ? rounds : least;
            CHECK_INT(opd_item_i64(opd_select(batched[0], 0, i)), rounds);
            check_close("vmap of a loop", opd_select(batched[1], 0, i), single[1], 1e-5);
            CHECK_INT(gradient_of_loop(program, &one, 1, slope), 1);
            check_close("vmap of a loop's gradient", opd_select(slopes[0], 0, i), slope[0], 1e-5);
        }
        CHECK_INT(least, 0);
        CHECK(most >= 3);
        opd_tensor *pairs = opd_reshape(x, OPD_INTS(3, 2, 4));
        CHECK_INT(opd_vmap(batch_of_loops, program, &pairs, 1, NULL, inner, 2), 2);
        check_close("vmap of vmap of a loop", opd_reshape(inner[1], OPD_INTS(6, 4)), batched[1], 1e-6);
        CHECK(opd_ok());
    }
    opd_program_free(program);
}
/* The weight's gradient through copies that operators write into is that of the program with the operators alone. */
static void gradient_of_writers(void) {
    opd_tensor *grads[2] = {NULL, NULL};
    opd_program *programs[2];
    for (int core = 0; core < 2; core++) {
        opd_program *program = programs[core] = opd_program_load(golden(core ? "writers.core" : "writers", ".pt2"), NULL);
        opd_tensor *const weight = opd_module_get(opd_program_module(program), "a.weight");
        opd_value inputs[2], outputs[5];
        inputs[0] = opd_value_tensor(opd_to_dtype(opd_reshape(opd_arange(opd_value_int(12), OPD_FLOAT32), OPD_INTS(3, 4)),
                                                  OPD_FLOAT32));
        inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4), OPD_FLOAT32));
        CHECK_INT(opd_program_run(program, inputs, 2, outputs, 5), 5);
        CHECK_INT(opd_backward(opd_add(opd_sum(opd_mul(outputs[0].u.t, outputs[0].u.t)), opd_sum(outputs[1].u.t))), 0);
        grads[core] = opd_tensor_grad(weight);
        CHECK(grads[core] != NULL);
    }
    if (grads[0] && grads[1]) { check_close("gradient of what is written", grads[1], grads[0], 1e-6); }
    for (int core = 0; core < 2; core++) { opd_program_free(programs[core]); }
}
static int scale_kernel(opd_call *call) {
    (void)opd_mul_Scalar_(opd_arg_tensor(call, 0), opd_value_double(opd_arg_double(call, 1)));
    return opd_ok() ? 0 : -1;
}
static int bump_kernel(opd_call *call) {
    opd_tensor *const x = opd_add_(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1));
    return opd_return_tensor(call, opd_mul_Scalar(x, opd_value_double(2)));
}
static int many_kernel(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    for (int64_t i = 0; i < list.n; i++) {
        (void)opd_mul_Scalar_(list.data[i], opd_value_double(opd_arg_double(call, 1)));
    }
    if (opd_arg_tensor(call, 2)) { (void)opd_sub_Scalar_(opd_arg_tensor(call, 2), opd_value_int(1)); }
    return opd_ok() ? 0 : -1;
}
/* Custom operators that write to arguments: called directly, and through auto_functionalized_v2. */
TEST(programs_with_operators_that_write) {
    for (int round = 0; round < 2; round++) {     /* without the operators, then with them */
        opd_library *library = round ? opd_library_open(OPD_DEF, "writers", NULL, __FILE__, __LINE__) : NULL;
        if (library) {
            CHECK_INT(opd_def(library, "scale_(Tensor(a!) x, float by) -> ()"), 0);
            CHECK_INT(opd_def(library, "bump(Tensor(a!) x, Tensor y, Tensor? z=None) -> Tensor"), 0);
            CHECK_INT(opd_def(library, "many(Tensor(a!)[] xs, float by, Tensor(b!)? other=None) -> ()"), 0);
            CHECK_INT(opd_impl(library, "scale_", scale_kernel), 0);
            CHECK_INT(opd_impl(library, "bump", bump_kernel), 0);
            CHECK_INT(opd_impl(library, "many", many_kernel), 0);
        }
        for (int core = 0; core < 2; core++) {
            const char *const name = core ? "writers.core" : "writers";
            if (round) {
                OPD_SCOPE { run_one(name, "writers"); }
                continue;
            }
            opd_program *program = opd_program_load(golden(name, ".pt2"), NULL);
            CHECK(program && !complete(program));
            OPD_SCOPE {
                opd_value inputs[2], outputs[5];
                inputs[0] = opd_value_tensor(opd_ones(OPD_INTS(3, 4), OPD_FLOAT32));
                inputs[1] = opd_value_tensor(opd_ones(OPD_INTS(4), OPD_FLOAT32));
                CHECK_INT(opd_program_run(program, inputs, 2, outputs, 5), -1);
                CHECK_ERROR(OPD_ERROR_NOT_FOUND, "there is no operator writers::scale_");
            }
            opd_program_free(program);
        }
        if (round) { OPD_SCOPE { gradient_of_writers(); } }
        opd_library_close(library);
    }
}
/* The typed functions of operators without results, such as the asserts of programs. */
TEST(typed_functions_that_give_nothing) {
    OPD_SCOPE {
        opd_tensor *const weight = opd_ones(OPD_INTS(2), OPD_FLOAT32), *const slope = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        opd_tensor *const found = opd_zeros(OPD_INTS(1), OPD_FLOAT32);
        opd_tensor *const scale = opd_full(OPD_INTS(1), opd_value_double(0.5), OPD_FLOAT32);
        CHECK_INT(opd_assert_tensor_metadata(weight, OPD_INTS(2), OPD_INTS(1), OPD_FLOAT32), 0);
        CHECK_INT(opd_assert_async(weight), -1);  /* not one value */
        opd_error_clear();
        CHECK_INT(opd_assert_async_msg(scale, "why"), 0);
        CHECK_INT(opd_assert_scalar(opd_value_int(1), "why"), 0);
        CHECK_INT(opd_assert_scalar(opd_value_int(0), "why"), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "why");
        CHECK_INT(opd_sym_constrain_range(opd_value_int(3)), 0);
        CHECK_INT(opd_sym_constrain_range_for_size(opd_value_int(3)), 0);
        CHECK_INT(opd_amp_unscale_(OPD_TENSORS(slope), found, scale), 0);
        CHECK(opd_item_f64(opd_sum(slope)) == 1);
        CHECK_INT(opd_fused_sgd_(OPD_TENSORS(weight), OPD_TENSORS(slope), opd_tensors_of(NULL, 0), 0, 0, 1, 0, false, false,
                                 false), 0);
        CHECK(opd_item_f64(opd_sum(weight)) == 1);
        CHECK(opd_ok());
    }
}
TEST(programs_with_conditions_and_loops_that_are_fake) {
    static const char *const fakes[] = {"branch", "loop", "until", "torch_2_5_branch"};
    for (size_t i = 0; i < sizeof fakes / sizeof *fakes; i++) {
        opd_program *program = opd_program_load(golden(fakes[i], ".pt2"), NULL);
        opd_tensor_file *file = opd_tensor_file_open(golden(fakes[i], ".npz"));
        OPD_SCOPE {
            opd_value inputs[16], outputs[16];
            const int count = fill(program, file, inputs);
            OPD_FAKE_MODE {
                for (int k = 0; k < count; k++) {
                    if (inputs[k].tag == OPD_TAG_TENSOR) { inputs[k].u.t = opd_fake_tensor(inputs[k].u.t); }
                }
                CHECK_INT(opd_program_run(program, inputs, count, outputs, 16), opd_program_noutputs(program));
                for (int k = 0; k < opd_program_noutputs(program) && opd_ok(); k++) {
                    char key[20];
                    (void)snprintf(key, sizeof key, "out%d", k);
                    const int64_t at = opd_tensor_file_find(file, key);
                    if (outputs[k].tag != OPD_TAG_TENSOR || at < 0) { continue; }
                    opd_tensor *const want = opd_tensor_file_at(file, at);
                    CHECK_INT(opd_ndim(outputs[k].u.t), opd_ndim(want));
                    for (int d = 0; d < opd_ndim(want); d++) { CHECK_INT(opd_size(outputs[k].u.t, d), opd_size(want, d)); }
                }
            }
            CHECK(opd_ok());
        }
        opd_tensor_file_close(file);
        opd_program_free(program);
    }
}

/* Two layers and what operators have as arguments: lists, None, dtypes, numbers, a constant, a list of results. */
static int layers(void *user, opd_tensor *const *in, int count, opd_tensor **out) {
    opd_tensor *x = opd_relu(opd_add(opd_linear(in[5], in[0], NULL), in[1]));
    opd_tensor *y = opd_addmm(in[3], x, opd_t(in[2]));
    (void)user; (void)count;
    static const float three[] = {1, 2, 4};
    const opd_tensors parts = opd_chunk(y, 2, 0);
    if (parts.n != 2) { return -1; }
    out[0] = opd_mul(opd_cat(OPD_TENSORS(parts.data[1], parts.data[0]), 0), opd_tensor_from(three, OPD_INTS(3), OPD_FLOAT32));
    out[0] = opd_add_Scalar(out[0], opd_value_double(1.5));
    out[1] = opd_mul(opd_softmax(y, 1), in[4]);
    out[2] = opd_sum(opd_to_dtype(opd_permute(y, OPD_INTS(1, 0)), OPD_FLOAT64));
    return 3;
}
static char saved[300];
static const char *in_folder(const char *name) {
    (void)snprintf(saved, sizeof saved, "/tmp/opd_programs_%ld_%s", (long)getpid(), name);
    return saved;
}
/* Graphs and programs can have more outputs than a function for transforms. */
TEST(functions_of_many_outputs) {
    static const char type[] = "Float(2, strides=[1], requires_grad=0, device=cpu)";
    char path[300];
    (void)snprintf(path, sizeof path, "%s", in_folder("many.pt2"));
    for (int count = OPD_TRANSFORM_OUTPUTS; count <= OPD_TRANSFORM_OUTPUTS + 1; count++) {
        OPD_SCOPED;
        opd_graph_value *args[2], *outs[OPD_TRANSFORM_OUTPUTS + 1];
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32), *got[OPD_TRANSFORM_OUTPUTS + 1];
        const int want = count <= OPD_TRANSFORM_OUTPUTS ? count : -1;
        opd_graph *graph = opd_graph_new();
        args[0] = args[1] = opd_graph_input(graph, "x", type);
        for (int i = 0; i < count; i++) {
            CHECK_INT(opd_graph_call(graph, "aten::mul.Tensor", args, 2, &outs[i], 1), 1);
            CHECK_INT(opd_graph_describe(graph, outs[i], NULL, type), 0);
        }
        CHECK_INT(opd_graph_output(graph, outs, count, false), 0);
        CHECK_INT(opd_graph_run(graph, &x, 1, got, count), count);
        CHECK_OK();
        CHECK_INT(opd_graph_function(graph, &x, 1, got), want);
        if (want < 0) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "there are 65 outputs"); }
        CHECK_INT(opd_program_save(graph, NULL, path), 0);
        opd_program *program = opd_program_load(path, NULL);
        CHECK_INT(opd_program_function(program, &x, 1, got), want);
        if (want < 0) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "call opd_program_run"); }
        opd_compiled *compiled[2];
        compiled[0] = opd_graph_compile(graph, NULL);
        compiled[1] = opd_program_compile(program, NULL);
        for (int i = 0; i < 2 && want < 0; i++) {
            CHECK_INT(opd_compiled_function(compiled[i], &x, 1, got), -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "there are 65 outputs");
        }
        for (int i = 0; i < 2; i++) { opd_compiled_free(compiled[i]); }
        opd_program_free(program);
        opd_graph_free(graph);
    }
    remove(path);
}
TEST(programs_are_written) {
    static const char *const names[] = {"a.weight", "a.bias", "b.weight", "b.bias", "scale", "x"};
    static const char *const arrays[] = {"in0", "out0", "out1", "out2"};
    char said[1000] = "", arguments[700], program_path[300];
    (void)snprintf(program_path, sizeof program_path, "%s", in_folder("saved.pt2"));
    OPD_SCOPE {
        opd_tensor *in[6], *out[3];
        opd_module *module = opd_module_new();
        opd_trace_options options;
        memset(&options, 0, sizeof options);
        options.names = names;
        options.nnames = 6;
        in[0] = opd_randn(OPD_INTS(8, 6), OPD_FLOAT32);
        in[1] = opd_randn(OPD_INTS(8), OPD_FLOAT32);
        in[2] = opd_randn(OPD_INTS(3, 8), OPD_FLOAT32);
        in[3] = opd_randn(OPD_INTS(3), OPD_FLOAT32);
        in[4] = opd_ones(OPD_INTS(3), OPD_FLOAT32);
        in[5] = opd_randn(OPD_INTS(4, 6), OPD_FLOAT32);
        for (int i = 0; i < 5; i++) {
            if (i < 4) { opd_tensor_set_requires_grad(in[i], true); }
            CHECK_INT(opd_module_add(module, names[i], in[i], i < 4 ? OPD_MODULE_PARAMETER : OPD_MODULE_BUFFER), 0);
        }
        opd_graph *graph = opd_graph_trace(layers, NULL, in, 6, &options);
        CHECK_INT(opd_program_save(graph, module, program_path), 0);
        CHECK_INT(layers(NULL, in, 6, out), 3);
        opd_program *program = opd_program_load(program_path, NULL);
        CHECK(program != NULL);
        CHECK_STR(opd_program_input_name(program, 0), "x");
        CHECK_INT(opd_module_count(opd_program_module(program)), 6);
        CHECK(opd_tensor_requires_grad(opd_module_get(opd_program_module(program), "b.weight")));
        opd_value input = opd_value_tensor(in[5]), results[3];
        CHECK_INT(opd_program_run(program, &input, 1, results, 3), 3);
        for (int i = 0; i < 3 && opd_ok(); i++) { check_close("what was saved", results[i].u.t, out[i], 1e-6); }
        CHECK_INT(opd_npz_save(in_folder("saved.npz"), arrays,
                               OPD_TENSORS(in[5], opd_detach(out[0]), opd_detach(out[1]), opd_detach(out[2]))), 0);
        opd_program_free(program);
        CHECK_INT(opd_program_save(NULL, module, program_path), -1);
        opd_error_clear();
        CHECK_INT(opd_program_save(graph, module, "/nowhere/at/all.pt2"), -1);
        opd_error_clear();
        opd_graph_free(graph);
        opd_module_free(module);
    }
    (void)snprintf(arguments, sizeof arguments, "'%s' '%s'", program_path, in_folder("saved.npz"));
    const int status = python("programs.py", "torch", arguments, said, sizeof said);
    remove(program_path);
    remove(in_folder("saved.npz"));
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch 2.8 or later"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 3 outputs, 4 parameters") != NULL);
}

static int same_values(const opd_value *x, const opd_value *y) {
    if (x->tag != y->tag) { return 0; }
    if (x->tag == OPD_TAG_INT) { return x->u.i == y->u.i; }
    return x->tag != OPD_TAG_TENSOR || (int)opd_equal(opd_nan_to_num(x->u.t), opd_nan_to_num(y->u.t));
}
/* How many of a module's tensors are others than those before them. */
static int distinct(const opd_module *module) {
    int count = 0;
    for (int64_t i = 0; i < opd_module_count(module); i++) {
        int seen = 0;
        for (int64_t k = 0; k < i; k++) { seen |= opd_module_at(module, k) == opd_module_at(module, i); }
        count += !seen;
    }
    return count;
}
static void check_modules(const char *name, const opd_module *module, const opd_module *other) {
    CHECK_INT((int)opd_module_count(module), (int)opd_module_count(other));
    CHECK_INT(distinct(module), distinct(other));
    for (int64_t i = 0; i < opd_module_count(module) && i < opd_module_count(other); i++) {
        const opd_value x = opd_value_tensor(opd_module_at(module, i)), y = opd_value_tensor(opd_module_at(other, i));
        CHECK_STR(opd_module_name(other, i), opd_module_name(module, i));
        CHECK_INT(opd_module_kind_at(other, i), opd_module_kind_at(module, i));
        CHECK_INT(opd_tensor_requires_grad(y.u.t), opd_tensor_requires_grad(x.u.t));
        if (!same_values(&x, &y)) {
            printf("%s: %s is another one\n", name, opd_module_name(module, i));
            CHECK(!"other tensors");
        }
    }
}
/* Changes the parameters as training does, saves, loads, and compares what both give. */
static void save_and_compare(const char *name, const char *arrays) {
    static char text[2][200000];
    char program_path[300], type[2][200];
    (void)snprintf(program_path, sizeof program_path, "%s", in_folder("again.pt2"));
    opd_program *program = opd_program_load(golden(name, ".pt2"), NULL);
    opd_tensor_file *file = opd_tensor_file_open(golden(arrays, ".npz"));
    opd_module *const module = opd_program_module(program);
    opd_value inputs[16], outputs[16], others[16];
    for (int64_t i = 0; i < opd_module_count(module); i++) {
        opd_tensor *const tensor = opd_module_at(module, i);
        if (opd_module_kind_at(module, i) == OPD_MODULE_PARAMETER) { (void)opd_mul_Scalar_(tensor, opd_value_double(1.25)); }
    }
    CHECK_INT(opd_program_save(opd_program_graph(program), module, program_path), 0);
    opd_program *again = opd_program_load(program_path, NULL);
    CHECK(again != NULL);
    if (!again) { printf("%s: %s\n", name, opd_error_message()); }
    else {
        check_modules(name, module, opd_program_module(again));
        (void)opd_program_print(program, text[0], sizeof text[0]);
        (void)opd_program_print(again, text[1], sizeof text[1]);
        CHECK_STR(text[1], text[0]);
        const int count = fill(program, file, inputs), noutputs = opd_program_noutputs(program);
        for (int i = 0; i < count; i++) {
            for (int k = 0; k < 2; k++) { (void)opd_program_input_type(k ? again : program, i, type[k], sizeof type[k]); }
            CHECK_STR(type[1], type[0]);
            CHECK_STR(opd_program_input_name(again, i), opd_program_input_name(program, i));
        }
        CHECK_INT(opd_program_run(program, inputs, count, outputs, 16), noutputs);
        CHECK_INT(fill(again, file, inputs), count);
        CHECK_INT(opd_program_run(again, inputs, count, others, 16), noutputs);
        for (int i = 0; i < noutputs; i++) {
            CHECK(same_values(&outputs[i], &others[i]));
            CHECK_STR(opd_program_output_name(again, i), opd_program_output_name(program, i));
        }
        check_modules(name, module, opd_program_module(again));
    }
    CHECK(opd_ok());
    opd_tensor_file_close(file);
    opd_program_free(again);
    opd_program_free(program);
    remove(program_path);
}
/* Parameters that are objects of a Python class are read, but not written. */
static bool has_objects(const char *name) { return strncmp(name, "ao_", 3) == 0; }
TEST(programs_with_python_objects_are_not_saved) {
    char path[300];
    (void)snprintf(path, sizeof path, "%s", in_folder("objects.pt2"));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!has_objects(names[i])) { continue; }
        opd_program *program = opd_program_load(golden(names[i], ".pt2"), NULL);
        CHECK_OR_RETURN(program != NULL);
        CHECK(opd_module_get(opd_program_module(program), "a.weight.qdata") != NULL);
        CHECK_INT(opd_program_save(opd_program_graph(program), opd_program_module(program), path), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "'a.weight' is an object of a Python class, which cannot be written");
        FILE *const file = fopen(path, "rb");
        CHECK(file == NULL);
        if (file) { fclose(file); }
        opd_program_free(program);
    }
}
TEST(programs_are_saved_as_they_were_loaded) {
    char name[100];
    OPD_NO_GRAD {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (has_objects(names[i])) { continue; }
            OPD_SCOPE { save_and_compare(names[i], names[i]); }
        }
        for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
            (void)snprintf(name, sizeof name, "%s.core", cores[i]);
            OPD_SCOPE { save_and_compare(name, cores[i]); }
        }
        for (size_t i = 5; i < sizeof olds / sizeof *olds; i++) {
            (void)snprintf(name, sizeof name, "torch_%s", olds[i]);
            OPD_SCOPE { save_and_compare(name, name); }
        }
    }
}
/* Tensors that share memory still share it after they were saved and loaded.  Here, the second tensor has every other
   element of the first. */
TEST(programs_keep_what_shares_memory) {
    char program_path[300];
    (void)snprintf(program_path, sizeof program_path, "%s", in_folder("shared.pt2"));
    opd_program *program = opd_program_load(golden("mlp", ".pt2"), NULL);
    opd_module *const module = opd_program_module(program);
    OPD_SCOPE {
        opd_tensor *const weight = opd_module_at(module, 0), *const bias = opd_module_at(module, 1);
        const int64_t rows = opd_size(weight, 0), columns = opd_size(weight, 1);
        CHECK_INT(opd_ndim(weight), 2);
        CHECK_INT(opd_size(bias, 0), rows);
        opd_tensor *const all = opd_arange(opd_value_int(rows * columns + 20), OPD_FLOAT32);
        opd_tensor *const block = opd_as_strided_full(all, OPD_INTS(rows, columns), OPD_INTS(1, rows), opd_value_int(3));
        opd_tensor *const line = opd_as_strided_full(all, OPD_INTS(rows), OPD_INTS(2), opd_value_int(8));
        CHECK_INT(opd_module_set(module, opd_module_name(module, 0), block), 0);
        CHECK_INT(opd_module_set(module, opd_module_name(module, 1), line), 0);
        CHECK_INT(opd_program_save(opd_program_graph(program), module, program_path), 0);
        opd_program *again = opd_program_load(program_path, NULL);
        CHECK(again != NULL);
        opd_module *const its = opd_program_module(again);
        check_modules("shared", module, its);
        OPD_NO_GRAD { (void)opd_zero_(opd_module_at(its, 0)); }
        CHECK_INT(opd_item_i64(opd_count_nonzero(opd_module_at(its, 1))), 0);
        opd_program_free(again);
    }
    opd_program_free(program);
    remove(program_path);
}
TEST(programs_of_several_files_in_one) {
    char program_path[300];
    (void)snprintf(program_path, sizeof program_path, "%s", in_folder("several.pt2"));
    opd_program *programs[3], *again;
    programs[0] = opd_program_load(golden("two", ".pt2"), "first");
    programs[1] = opd_program_load(golden("two", ".pt2"), "second");
    programs[2] = opd_program_load(golden("tied", ".pt2"), NULL);
    OPD_SCOPE {
        const char *const said[] = {NULL, "another", NULL}, *const same[] = {"a", "a", NULL}, *const bad[] = {"a/b", NULL, NULL};
        CHECK_INT(opd_program_save_all(programs, said, 3, program_path), 0);
        const char *const wanted[] = {"first", "another", "model"};
        for (int i = 0; i < 3; i++) {
            again = opd_program_load(program_path, wanted[i]);
            CHECK(again != NULL);
            check_modules(wanted[i], opd_program_module(programs[i]), opd_program_module(again));
            opd_program_free(again);
        }
        CHECK_INT(opd_program_save_all(programs, same, 3, program_path), -1);
        CHECK(strstr(opd_error_message(), "program 1 has the same name as one before") != NULL);
        opd_error_clear();
        CHECK_INT(opd_program_save_all(programs, bad, 3, program_path), -1);
        CHECK(strstr(opd_error_message(), "program 0 has a name that a file cannot have") != NULL);
        opd_error_clear();
        again = opd_program_load(program_path, "another");       /* what failed has written nothing */
        CHECK(again != NULL);
        opd_program_free(again);
    }
    for (int i = 0; i < 3; i++) { opd_program_free(programs[i]); }
    remove(program_path);
}
static void check_not_saved(const opd_program *program, const opd_module *module, const char *why) {
    CHECK_INT(opd_program_save(opd_program_graph(program), module, in_folder("none.pt2")), -1);
    CHECK(strstr(opd_error_message(), why) != NULL);
    if (!strstr(opd_error_message(), why)) { printf("%s\n", opd_error_message()); }
    opd_error_clear();
    FILE *const file = fopen(in_folder("none.pt2"), "rb");
    CHECK(!file);
    if (file) { fclose(file); }
}
TEST(programs_that_cannot_be_saved) {
    opd_program *program = opd_program_load(golden("mlp", ".pt2"), NULL);
    opd_program *old = opd_program_load(golden("torch_2_2_state", ".pt2"), NULL);
    opd_module *const module = opd_program_module(program);
    OPD_SCOPE {
        opd_module *empty = opd_module_new();
        const char *const name = opd_module_name(module, 0);
        check_not_saved(program, empty, "the module has no '");
        check_not_saved(old, opd_program_module(old), "before PyTorch 2.5), which cannot be written");
        opd_tensor *const was = opd_module_at(module, 0);
        CHECK_INT(opd_module_add(empty, name, opd_to_dtype(opd_detach(was), OPD_FLOAT64), OPD_MODULE_PARAMETER), 0);
        check_not_saved(program, empty, "has another dtype than the program was exported with");
        CHECK_INT(opd_module_set(empty, name, opd_zeros(OPD_INTS(1, 2), OPD_FLOAT32)), 0);
        check_not_saved(program, empty, "has another size than the program was exported with");
        CHECK_INT(opd_module_set(empty, name, opd_zeros(OPD_INTS(1, 2), OPD_COMPLEX128)), 0);
        check_not_saved(program, empty, "has another dtype");
        opd_module_free(empty);
    }
    opd_program_free(old);
    opd_program_free(program);
}
/* A program that is trained here runs in PyTorch, with other sizes than in the export. */
TEST(programs_trained_here_run_in_pytorch) {
    static const char *const keys[] = {"in0", "in1", "out0", "out1", "out2"};
    char said[1000] = "", arguments[700], program_path[300];
    (void)snprintf(program_path, sizeof program_path, "%s", in_folder("trained.pt2"));
    opd_program *program = opd_program_load(golden("conv", ".pt2"), NULL);
    opd_module *const module = opd_program_module(program);
    OPD_SCOPE {
        opd_tensor *params[32], *const x = opd_randn(OPD_INTS(7, 3, 16, 16), OPD_FLOAT32);
        const int count = opd_module_parameters(module, NULL, params, 32);
        opd_sgd_options sgd = opd_sgd_defaults();
        opd_value input = opd_value_tensor(x), output;
        opd_tensor *arrays[2];
        sgd.lr = 1e-2;
        opd_optimizer *optimizer = opd_sgd_new(params, count, &sgd);
        for (int step = 0; step < 3; step++) {
            opd_optimizer_zero_grad(optimizer);
            CHECK_INT(opd_program_run(program, &input, 1, &output, 1), 1);
            opd_backward(opd_mean(opd_mul(output.u.t, output.u.t)));
            opd_optimizer_step(optimizer);
        }
        opd_optimizer_free(optimizer);
        CHECK_INT(opd_program_save(opd_program_graph(program), module, program_path), 0);
        CHECK_INT(opd_program_run(program, &input, 1, &output, 1), 1);
        arrays[0] = x;
        arrays[1] = opd_detach(output.u.t);
        const char *const both[] = {keys[0], keys[2]};
        CHECK_INT(opd_npz_save(in_folder("trained.npz"), both, opd_tensors_of(arrays, 2)), 0);
        CHECK(opd_ok());
    }
    opd_program_free(program);
    (void)snprintf(arguments, sizeof arguments, "'%s' '%s'", program_path, in_folder("trained.npz"));
    const int status = python("programs.py", "torch", arguments, said, sizeof said);
    remove(program_path);
    remove(in_folder("trained.npz"));
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch 2.8 or later"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 1 outputs") != NULL);
}

static unsigned char *bytes;
static size_t size;
static void read_bytes(const char *name) {
    FILE *file = fopen(golden(name, ".pt2"), "rb");
    CHECK(file != NULL);
    fseek(file, 0, SEEK_END);
    size = (size_t)ftell(file);
    rewind(file);
    bytes = (unsigned char *)malloc(size);
    CHECK_INT((long)fread(bytes, 1, size, file), (long)size);
    fclose(file);
}
/* Ones of the sizes that an input has, 3 where these differ between runs. */
static opd_tensor *ones_for(const opd_program *program, int i) {
    char type[200] = "";
    int64_t sizes[8];
    int count = 0;
    (void)opd_program_input_type(program, i, type, sizeof type);
    for (const char *at = strchr(type, '['); at && count < 8; at = strchr(at + 1, ',')) {
        sizes[count++] = at[1 + (*at == ',')] >= '0' && at[1 + (*at == ',')] <= '9' ? atoi(at + 1) % 16 : 3;
    }
    return opd_ones(opd_ints_of(sizes, count), strncmp(type, "int64", 5) == 0 ? OPD_INT64 : OPD_FLOAT32);
}
/* Loads a file and runs it on ones, whatever comes of it. */
static int load_and_run(void *user) {
    opd_program *program = opd_program_parse(bytes, size, NULL);
    opd_value inputs[2], outputs[4];
    int rc;
    (void)user;
    if (!program) { return -1; }
    for (int i = 0; i < 2; i++) { inputs[i] = opd_value_tensor(ones_for(program, i)); }
    rc = opd_ok() ? opd_program_run(program, inputs, opd_program_ninputs(program) < 2 ? 1 : 2, outputs, 4) : -1;
    opd_program_free(program);
    return rc;
}
static void cut_off_and_damage(const char *name) {
    read_bytes(name);
    unsigned char *const whole = bytes;
    const size_t all = size;
    uint64_t seed = 1;
    for (size_t n = 0; n < all; n += 61) {
        bytes = (unsigned char *)malloc(n + 1);
        memcpy(bytes, whole, n);
        size = n;
        OPD_SCOPE { CHECK_INT(load_and_run(NULL), -1); }
        CHECK(!opd_ok());
        opd_error_clear();
        free(bytes);
    }
    for (int k = 0; k < 400; k++) {
        bytes = (unsigned char *)malloc(all);
        memcpy(bytes, whole, all);
        size = all;
        for (int i = 0; i < 3; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
            bytes[(seed >> 33) % all] = (unsigned char)(seed >> 20);
        }
        OPD_SCOPE { (void)load_and_run(NULL); }
        opd_error_clear();
        free(bytes);
    }
    free(whole);
}
TEST(programs_cut_off_and_damaged) {
    cut_off_and_damage("branch");
    cut_off_and_damage("effects");
}
TEST(programs_of_older_versions_cut_off_and_damaged) {
    cut_off_and_damage("torch_2_5_branch");
    cut_off_and_damage("torch_2_8_state");
    cut_off_and_damage("torch_2_5_tied");
}
TEST(programs_without_memory) {
    read_bytes("branch");
    CHECK(check_allocations_at(load_and_run, NULL, "branch", 600, false, __FILE__, __LINE__) > 20);
    free(bytes);
    read_bytes("torch_2_5_state");
    CHECK(check_allocations_at(load_and_run, NULL, "an older state", 400, false, __FILE__, __LINE__) > 20);
    free(bytes);
    read_bytes("state.core");
    CHECK(check_allocations_at(load_and_run, NULL, "state", 300, false, __FILE__, __LINE__) > 20);
    free(bytes);
}
/* Loads a file, saves it, and loads what was saved. */
static int load_and_save(void *user) {
    opd_program *program = opd_program_parse(bytes, size, NULL);
    (void)user;
    if (!program) { return -1; }
    const int rc = opd_program_save(opd_program_graph(program), opd_program_module(program), in_folder("memory.pt2"));
    opd_program_free(program);
    remove(in_folder("memory.pt2"));
    return rc;
}
TEST(programs_saved_without_memory) {
    read_bytes("tied");
    CHECK(check_allocations_at(load_and_save, NULL, "tied", 300, false, __FILE__, __LINE__) > 20);
    free(bytes);
    read_bytes("torch_2_5_sizes");
    CHECK(check_allocations_at(load_and_save, NULL, "sizes", 300, false, __FILE__, __LINE__) > 20);
    free(bytes);
}
/* A size that stays open: two traces tell which. */
static int opened(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = in[2];
    const int64_t rows = opd_size(x, 0);
    opd_tensor *const y = opd_relu(opd_linear(x, in[0], in[1])), *const parts = opd_reshape(y, OPD_INTS(rows * 3, 2));
    (void)user;
    (void)n;
    out[0] = opd_add(parts, opd_arange(opd_value_int(2), OPD_FLOAT32));
    out[1] = opd_add(opd_cat(OPD_TENSORS(y, y), 0), opd_sum(opd_zeros(OPD_INTS(rows + 1), OPD_FLOAT32)));
    return opd_ok() ? 2 : -1;
}
static int other_sizes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_size(in[0], 0) < 4 ? opd_relu(in[0]) : opd_tanh(in[0]);
    return opd_ok() ? 1 : -1;
}
static int more_than_squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t rows = opd_size(in[0], 0);
    (void)user;
    (void)n;
    out[0] = opd_zeros(OPD_INTS(rows * rows + 1), OPD_FLOAT32);
    return opd_ok() ? 1 : -1;
}
/* A function of three sizes: b and t of [b, t, 4], and u of [u, 4].  Its results have the sizes b t, b + u, t^2, 3 u and
   t + 1. */
static int three_sizes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t b = opd_size(in[0], 0), t = opd_size(in[0], 1), u = opd_size(in[1], 0);
    opd_tensor *parts[2], *flat, *turned;
    (void)user;
    (void)n;
    flat = opd_reshape(in[0], OPD_INTS(b * t, 4));
    out[0] = opd_reshape(opd_matmul(flat, opd_t(in[1])), OPD_INTS(b, t, u));
    parts[0] = opd_sum_dim(in[0], OPD_INTS(1), false);
    parts[1] = in[1];
    out[1] = opd_relu(opd_cat(opd_tensors_of(parts, 2), 0));
    turned = opd_reshape(opd_matmul(in[0], opd_transpose(in[0], 1, 2)), OPD_INTS(b, t * t));
    out[2] = opd_sum_dim(turned, OPD_INTS(0), false);
    out[3] = opd_mul(opd_reshape(opd_narrow(opd_cat(opd_tensors_of(in + 1, 1), 0), 1, 0, 3), OPD_INTS(3 * u)),
                     opd_ones(OPD_INTS(3 * u), OPD_FLOAT32));
    parts[0] = in[0];
    parts[1] = opd_zeros(OPD_INTS(b, 1, 4), OPD_FLOAT32);
    out[4] = opd_cos(opd_cat(opd_tensors_of(parts, 2), 1));
    return opd_ok() ? 5 : -1;
}
TEST(several_sizes_stay_open) {
    static const int64_t sizes[][3] = {{5, 7, 11}, {8, 17, 13}, {2, 3, 4}, {3, 3, 3}, {9, 2, 6}};
    char file[1100], arguments[2300], said[1000] = "";
    int status = -1, i, k;
    (void)snprintf(file, sizeof file, "%s", in_folder("several.pt2"));
    OPD_SCOPE {
        opd_tensor *in[2], *out[5], *again[5];
        opd_graph *traces[2];
        opd_program *program = NULL;
        char type[100];
        for (i = 0; i < 5 && opd_ok(); i++) {
            in[0] = opd_randn(OPD_INTS(sizes[i][0], sizes[i][1], 4), OPD_FLOAT32);
            in[1] = opd_randn(OPD_INTS(sizes[i][2], 4), OPD_FLOAT32);
            if (i < 2) { traces[i] = opd_graph_trace(three_sizes, NULL, in, 2, NULL); }
            if (i == 0) { continue; }
            if (i == 1) {
                CHECK_INT(opd_program_save_open(traces[0], traces[1], NULL, file), 0);
                program = opd_program_load(file, NULL);
                CHECK(program != NULL);
                (void)opd_program_input_type(program, 0, type, sizeof type);
                CHECK_STR(type, "float32 [s0, s1, 4]");
                (void)opd_program_input_type(program, 1, type, sizeof type);
                CHECK_STR(type, "float32 [s2, 4]");
            }
            CHECK_INT(three_sizes(NULL, in, 2, out), 5);
            CHECK_INT(opd_program_function(program, in, 2, again), 5);
            for (k = 0; k < 5 && opd_ok(); k++) { check_close("several", again[k], out[k], 1e-5); }
        }
        CHECK_OK();
        const char *const names[] = {"in0", "in1", "out0", "out1", "out2", "out3", "out4"};
        opd_tensor *const tensors[] = {in[0], in[1], out[0], out[1], out[2], out[3], out[4]};
        CHECK_INT(opd_npz_save(in_folder("several.npz"), names, opd_tensors_of(tensors, 7)), 0);
        (void)snprintf(arguments, sizeof arguments, "'%s' '%s'", file, in_folder("several.npz"));
        status = python("programs.py", "torch", arguments, said, sizeof said);
        opd_program_free(program);
        opd_graph_free(traces[0]);
        opd_graph_free(traces[1]);
        /* b t is 24 in both traces, and would count as fixed */
        in[0] = opd_ones(OPD_INTS(4, 6, 4), OPD_FLOAT32);
        in[1] = opd_ones(OPD_INTS(2, 4), OPD_FLOAT32);
        traces[0] = opd_graph_trace(three_sizes, NULL, in, 2, NULL);
        in[0] = opd_ones(OPD_INTS(6, 4, 4), OPD_FLOAT32);
        in[1] = opd_ones(OPD_INTS(9, 4), OPD_FLOAT32);
        traces[1] = opd_graph_trace(three_sizes, NULL, in, 2, NULL);
        CHECK_INT(opd_program_save_open(traces[0], traces[1], NULL, file), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "do not show which other sizes depend on them");
        opd_graph_free(traces[0]);
        opd_graph_free(traces[1]);
    }
    (void)remove(file);
    (void)remove(in_folder("several.npz"));
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch 2.8 or later"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 5 outputs") != NULL);
}
static int twice_and_other(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *parts[2];
    (void)user;
    (void)n;
    parts[0] = parts[1] = in[0];
    out[0] = opd_cat(opd_tensors_of(parts, 2), 0);
    out[1] = opd_relu(in[1]);
    return opd_ok() ? 2 : -1;
}
static int each_relu(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int i;
    (void)user;
    for (i = 0; i < n; i++) { out[i] = opd_relu(in[i]); }
    return opd_ok() ? n : -1;
}
/* Traces fn with n inputs of one dim, first of the sizes in one and then in two, and saves it with open sizes. */
static int saved_open(opd_transform_fn fn, int n, const int64_t *one, const int64_t *two) {
    opd_tensor *in[2][16];
    opd_graph *traces[2];
    int i, k, rc;
    for (i = 0; i < 2; i++) {
        for (k = 0; k < n; k++) { in[i][k] = opd_ones(opd_ints_of(i ? &two[k] : &one[k], 1), OPD_FLOAT32); }
        traces[i] = opd_graph_trace(fn, NULL, in[i], n, NULL);
    }
    rc = opd_program_save_open(traces[0], traces[1], NULL, in_folder("refused.pt2"));
    opd_graph_free(traces[0]);
    opd_graph_free(traces[1]);
    return rc;
}
TEST(sizes_that_two_traces_do_not_explain) {
    static const int64_t one[] = {3, 9, 17, 19, 23, 29, 31, 37, 41}, two[] = {5, 13, 20, 24, 29, 36, 39, 46, 51};
    OPD_SCOPE {
        /* 6 and 10 are twice 3 and 5, and also 9 - 3 and 13 - 3 */
        CHECK_INT(saved_open(twice_and_other, 2, one, two), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "a size is 6 in one trace and 10 in the other, and depends on the open sizes in more than one way");
        CHECK_INT(saved_open(each_relu, 9, one, two), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than 8 sizes vary");
        CHECK_INT(saved_open(each_relu, 8, one, two), 0);
        CHECK_OK();
        (void)remove(in_folder("refused.pt2"));
    }
}
TEST(sizes_stay_open_where_two_traces_differ) {
    char file[1100], arguments[2300], said[1000] = "";
    (void)snprintf(file, sizeof file, "%s", in_folder("open.pt2"));
    int status = -1;
    OPD_SCOPE {
        opd_module *module = opd_module_new();
        opd_tensor *in[3], *same[2], *out[2], *again[2];
        in[0] = opd_randn(OPD_INTS(6, 4), OPD_FLOAT32);
        in[1] = opd_randn(OPD_INTS(6), OPD_FLOAT32);
        in[2] = opd_randn(OPD_INTS(5, 4), OPD_FLOAT32);
        (void)opd_tensor_set_requires_grad(in[0], true);
        (void)opd_tensor_set_requires_grad(in[1], true);
        (void)opd_module_add(module, "weight", in[0], OPD_MODULE_PARAMETER);
        (void)opd_module_add(module, "bias", in[1], OPD_MODULE_PARAMETER);
        opd_graph *first = opd_graph_trace(opened, NULL, in, 3, NULL);
        in[2] = opd_randn(OPD_INTS(8, 4), OPD_FLOAT32);
        opd_graph *second = opd_graph_trace(opened, NULL, in, 3, NULL);
        CHECK_INT(opd_program_save_open(first, second, module, file), 0);
        opd_program *program = opd_program_load(file, NULL);
        char type[100];
        CHECK(program != NULL);
        (void)opd_program_input_type(program, 0, type, sizeof type);
        CHECK_STR(type, "float32 [s0, 4]");
        for (int rows = 2; rows < 12 && opd_ok(); rows += 3) {
            in[2] = opd_randn(OPD_INTS(rows, 4), OPD_FLOAT32);
            CHECK_INT(opened(NULL, in, 3, out), 2);
            CHECK_INT(opd_program_function(program, &in[2], 1, again), 2);
            for (int i = 0; i < 2 && opd_ok(); i++) { check_close("open", again[i], out[i], 1e-6); }
        }
        CHECK_OK();
        const char *const names_of[] = {"in0", "out0", "out1"};
        opd_tensor *const tensors[] = {in[2], opd_detach(out[0]), opd_detach(out[1])};
        CHECK_INT(opd_npz_save(in_folder("open.npz"), names_of, opd_tensors_of(tensors, 3)), 0);
        (void)snprintf(arguments, sizeof arguments, "'%s' '%s'", file, in_folder("open.npz"));
        status = python("programs.py", "torch", arguments, said, sizeof said);
        opd_program_free(program);
        CHECK_INT(opd_program_save_open(first, first, module, file), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "both traces have inputs of the same sizes: trace the second one");
        opd_graph_free(first);
        opd_graph_free(second);
        same[0] = opd_ones(OPD_INTS(3), OPD_FLOAT32);
        same[1] = opd_ones(OPD_INTS(5), OPD_FLOAT32);
        static const opd_transform_fn wrong[] = {other_sizes, more_than_squares};
        for (int i = 0; i < 2; i++) {
            first = opd_graph_trace(wrong[i], NULL, &same[0], 1, NULL);
            second = opd_graph_trace(wrong[i], NULL, &same[1], 1, NULL);
            CHECK_INT(opd_program_save_open(first, second, NULL, file), -1);
            if (i) { CHECK_ERROR(OPD_ERROR_ARGUMENT, "a size is 10 in one trace and 26 in the other: it must be an open size"); }
            else { CHECK_ERROR(OPD_ERROR_ARGUMENT, "the two traces differ in more than sizes: the first calls aten::relu"); }
            opd_graph_free(first);
            opd_graph_free(second);
        }
        first = opd_graph_trace(other_sizes, NULL, &same[0], 1, NULL);
        for (int i = 0; i < 3; i++) {              /* sizes of which a half tells nothing, and another number of dims */
            same[1] = i == 2 ? opd_ones(OPD_INTS(3, 2), OPD_FLOAT32) : opd_ones(OPD_INTS(2 - i), OPD_FLOAT32);
            second = opd_graph_trace(other_sizes, NULL, &same[1], 1, NULL);
            CHECK_INT(opd_program_save_open(first, second, NULL, file), -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, i == 0 ? "the sizes 3 and 2 do not show which other sizes depend on them"
                        : i == 1 ? "the sizes 3 and 1 do not show which other sizes depend on them" : "the two traces must have inputs with the same dtypes");
            opd_graph_free(second);
        }
        opd_graph_free(first);
        opd_module_free(module);
    }
    (void)remove(file);
    (void)remove(in_folder("open.npz"));
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch 2.8 or later"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 2 outputs, 2 parameters") != NULL);
}
CHECK_MAIN()
