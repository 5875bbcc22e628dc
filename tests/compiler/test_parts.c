/* Parts of graphs: opd_graph_partition on graphs of all kinds, opd_graph_delegate with compilers that take, refuse and
   fail, and compiled graphs and programs whose parts a compiler of the program or of a device computes. */
#include "../../opdispatch.h"
#include "../check.h"

/* The operators that the compiler of these tests computes: those whose names are listed in `names`. */
typedef struct compiler {
    const char *names[6];
    int compiled, runs, destroyed, refuse_from, fail_at;
    bool refuse_runs, wrong, fresh;
} compiler;
typedef struct compiled_part { compiler *by; const opd_graph *part; } compiled_part;

static bool supports(void *user, const opd_graph_node *node) {
    const compiler *by = (const compiler *)user;
    for (int i = 0; i < 6 && by->names[i]; i++) { if (opd_graph_node_is(node, by->names[i])) { return true; } }
    return false;
}
static int run_part(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    compiled_part *const part = (compiled_part *)user;
    if (part->by->refuse_runs) { return 0; }
    part->by->runs++;
    if (part->by->wrong) {
        out[0] = opd_full(OPD_INTS(2), opd_value_double(0), OPD_FLOAT64);
        return 1;
    }
    const int count = opd_graph_run(part->part, in, n, out, OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < count && part->by->fresh; i++) { out[i] = opd_clone(out[i]); }
    return count;
}
static void end_part(void *user) {
    ((compiled_part *)user)->by->destroyed++;
    free(user);
}
static int compile_part(void *user, const opd_graph *part, opd_part_function *function) {
    compiler *const by = (compiler *)user;
    compiled_part *made;
    if (by->fail_at && by->compiled + 1 == by->fail_at) { return opd_fail(OPD_ERROR_USER, "no room on the chip"); }
    if (by->refuse_from && by->compiled + 1 >= by->refuse_from) { return 1; }
    if (!(made = (compiled_part *)malloc(sizeof *made))) { return opd_fail(OPD_ERROR_MEMORY, "malloc"); }
    made->by = by;
    made->part = part;
    by->compiled++;
    function->name = "npu::part";
    function->run = run_part;
    function->user = made;
    function->destroy = end_part;
    return 0;
}
static opd_part_compiler compiler_of(compiler *by) {
    opd_part_compiler made = {supports, compile_part, 0, by};
    return made;
}
static compiler named(const char *first, const char *second, const char *third) {
    compiler by;
    memset(&by, 0, sizeof by);
    by.names[0] = first, by.names[1] = second, by.names[2] = third;
    return by;
}
static opd_tensor *numbers(int64_t n) {
    opd_tensor *x = opd_tensor_new(OPD_INTS(n), OPD_FLOAT32);
    for (int64_t i = 0; i < n; i++) { opd_data_f32(x)[i] = (float)((i * 5) % 7) / 4 - 0.5f; }
    return x;
}
static void same_runs(const opd_graph *graph, const opd_graph *other, int n) {
    opd_tensor *in[3], *out[4], *want[4];
    for (int i = 0; i < 3; i++) { in[i] = numbers(4 + 0 * i); }
    const int count = opd_graph_run(other, in, n, want, 4);
    for (int i = 0; i < 3; i++) { in[i] = numbers(4); }
    CHECK_INT(opd_graph_run(graph, in, n, out, 4), count);
    for (int i = 0; i < count; i++) { CHECK(opd_equal(out[i], want[i])); }
    CHECK_OK();
}

//-- partitions --------------------------------------------------------------------------------------------------------

#define ONE "  %1 : int = prim::Constant[value=1]()\n"
/* Graphs; the calls of exp, neg, mul and cat belong into parts, the others do not. */
static const struct { const char *text; int inputs, parts, nodes[4], ins[4], outs[4]; } graphs[] = {
    /* a chain: exp neg | tanh | exp */
    {"graph(%x : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::neg(%a)\n  %c : Tensor = aten::tanh(%b)\n"
     "  %d : Tensor = aten::exp(%c)\n  return (%d)\n", 1, 2, {2, 1}, {1, 1}, {1, 1}},
    /* a cycle if all three were one part: exp -> tanh -> mul, exp -> mul */
    {"graph(%x : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::tanh(%a)\n  %c : Tensor = aten::mul(%a, %b)\n"
     "  return (%c)\n", 1, 2, {1, 1}, {1, 2}, {1, 1}},
    /* the part of exp and mul spans tanh, which needs neither */
    {"graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::tanh(%y)\n"
     "  %c : Tensor = aten::mul(%a, %b)\n  return (%c)\n", 2, 1, {2}, {2}, {1}},
    /* tanh uses the part's first result, and so comes after the part */
    {"graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::tanh(%a)\n"
     "  %c : Tensor = aten::mul(%a, %y)\n  %d : Tensor = aten::sub(%b, %c, %n)\n  return (%d)\n", 2, 1, {2}, {2}, {2}},
    /* two parts without values in common */
    {"graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::neg(%y)\n"
     "  %r : (Tensor, Tensor) = prim::TupleConstruct(%a, %b)\n  return (%r)\n", 2, 2, {1, 1}, {1, 1}, {1, 1}},
    /* a list that two calls share, one of them outside */
    {"graph(%x : Tensor, %y : Tensor):\n  %0 : int = prim::Constant[value=0]()\n  %a : Tensor = aten::exp(%x)\n"
     "  %l : Tensor[] = prim::ListConstruct(%a, %y)\n  %b : Tensor = aten::cat(%l, %0)\n"
     "  %c : Tensor = aten::stack(%l, %0)\n  %r : (Tensor, Tensor) = prim::TupleConstruct(%b, %c)\n  return (%r)\n",
     2, 1, {3}, {2}, {2}},
    /* a write to x between: neg reads x after it */
    {"graph(%x : Tensor):\n" ONE "  %a : Tensor = aten::exp(%x)\n  %w : Tensor = aten::add_(%x, %1, %1)\n"
     "  %b : Tensor = aten::neg(%x)\n  %c : Tensor = aten::mul(%a, %b)\n  return (%c)\n", 1, 2, {1, 2}, {1, 2}, {1, 1}},
    /* a write to a view of the result of exp; nothing may cross it */
    {"graph(%x : Tensor):\n" ONE "  %0 : int = prim::Constant[value=0]()\n  %a : Tensor = aten::exp(%x)\n"
     "  %v : Tensor = aten::select(%a, %0, %0)\n  %w : Tensor = aten::add_(%v, %1, %1)\n  %b : Tensor = aten::neg(%a)\n"
     "  return (%b)\n", 1, 2, {1, 1}, {1, 1}, {1, 1}},
    /* a list that two calls share, and a write */
    {"graph(%x : Tensor, %y : Tensor):\n" ONE "  %0 : int = prim::Constant[value=0]()\n"
     "  %w : Tensor = aten::add_(%y, %1, %1)\n  %a : Tensor = aten::exp(%x)\n"
     "  %l : Tensor[] = prim::ListConstruct(%a, %y)\n  %b : Tensor = aten::cat(%l, %0)\n"
     "  %c : Tensor = aten::cat(%l, %0)\n  %r : (Tensor, Tensor) = prim::TupleConstruct(%b, %c)\n  return (%r)\n",
     2, 1, {5}, {2}, {2}},
    /* a write to an element of a list, between the list and its user: the list itself reads no memory */
    {"graph(%x : Tensor, %y : Tensor):\n" ONE "  %0 : int = prim::Constant[value=0]()\n"
     "  %l : Tensor[] = prim::ListConstruct(%x, %y)\n  %w : Tensor = aten::add_(%x, %1, %1)\n"
     "  %b : Tensor = aten::cat(%l, %0)\n  return (%b)\n", 2, 1, {2}, {2}, {1}},
    /* a list to which another node appends cannot be made again in a part */
    {"graph(%x : Tensor, %y : Tensor):\n  %0 : int = prim::Constant[value=0]()\n"
     "  %l : Tensor[] = prim::ListConstruct(%x)\n  %m : Tensor[] = aten::append(%l, %y)\n"
     "  %b : Tensor = aten::cat(%l, %0)\n  %c : Tensor = aten::neg(%b)\n  return (%c)\n", 2, 1, {1}, {1}, {1}},
};
TEST(parts_are_large_and_have_no_cycles) {
    for (size_t g = 0; g < sizeof graphs / sizeof *graphs; g++) {
        char text[2000];
        (void)snprintf(text, sizeof text, "%s", graphs[g].text);
        char *const n = strstr(text, ", %n)");            /* alpha of sub */
        if (n) { memmove(n, n + 4, strlen(n + 4) + 1); }
        opd_graph *graph = opd_graph_parse(text), *before = opd_graph_copy(graph);
        compiler by = named("aten::exp", "aten::neg", "aten::mul");
        opd_part parts[4];
        by.names[3] = "aten::cat";
        CHECK_OK();
        OPD_SCOPE {
            CHECK_INT(opd_graph_partition(graph, supports, &by, parts, 4), graphs[g].parts);
            for (int i = 0; i < graphs[g].parts; i++) {
                CHECK_INT(parts[i].nnodes, graphs[g].nodes[i]);
                CHECK_INT(parts[i].ninputs, graphs[g].ins[i]);
                CHECK_INT(parts[i].noutputs, graphs[g].outs[i]);
                opd_graph *part = opd_graph_extract_part(graph, &parts[i]);
                CHECK_INT(opd_graph_check(part), 0);
                opd_graph_free(part);
            }
        }
        CHECK_INT(opd_graph_check(graph), 0);
        same_runs(graph, before, graphs[g].inputs);
        opd_part_compiler parter = compiler_of(&by);
        CHECK_INT(opd_graph_delegate(graph, &parter), graphs[g].parts);
        CHECK_INT(opd_graph_check(graph), 0);
        CHECK_INT(opd_graph_count(graph, "aten::exp"), 0);
        same_runs(graph, before, graphs[g].inputs);
        CHECK_INT(by.runs, graphs[g].parts);
        opd_graph_free(graph);
        CHECK_INT(by.destroyed, graphs[g].parts);
        opd_graph_free(before);
    }
}
/* The list belongs to the body, and the only call that takes it is in a block. */
TEST(a_list_of_an_outer_block_is_made_in_the_part) {
    opd_graph *graph = opd_graph_parse(
        "graph(%x : Tensor, %n : int):\n  %t : bool = prim::Constant[value=1]()\n  %0 : int = prim::Constant[value=0]()\n"
        "  %l : Tensor[] = prim::ListConstruct(%x, %x)\n"
        "  %z : Tensor = prim::Loop(%n, %t, %x)\n    block0(%i : int, %k : Tensor):\n"
        "      %m : Tensor = aten::cat(%l, %0)\n      -> (%t, %m)\n  return (%z)\n"), *before = opd_graph_copy(graph);
    compiler by = named("aten::cat", NULL, NULL);
    opd_part_compiler parter = compiler_of(&by);
    opd_value in[2], out[1], want[1];
    CHECK_INT(opd_graph_delegate(graph, &parter), 1);
    in[0] = opd_value_tensor(numbers(4)), in[1] = opd_value_int(2);
    CHECK_INT(opd_graph_run_values(before, in, 2, want, 1), 1);
    CHECK_INT(opd_graph_run_values(graph, in, 2, out, 1), 1);
    CHECK(opd_equal(out[0].u.t, want[0].u.t));
    CHECK_INT(by.runs, 2);
    opd_graph_free(graph);
    opd_graph_free(before);
}
/* The function of a part returns new memory, so a view must not be in it whose memory is written. */
TEST(views_whose_memory_is_written_stay_outside) {
    static const char *const texts[] = {
        "graph(%x : Tensor):\n" ONE "  %0 : int = prim::Constant[value=0]()\n  %e : Tensor = aten::exp(%x)\n"
        "  %v : Tensor = aten::select(%x, %0, %0)\n  %w : Tensor = aten::add_(%v, %1, %1)\n"
        "  %y : Tensor = aten::mul(%x, %e)\n  return (%y)\n",
        "graph(%x : Tensor):\n" ONE "  %e : Tensor = aten::exp(%x)\n  %v : Tensor = aten::type_as(%x, %e)\n"
        "  %w : Tensor = aten::add_(%v, %1, %1)\n  %y : Tensor = aten::neg(%x)\n  return (%y)\n",
        /* nobody writes: the view may be copied */
        "graph(%x : Tensor):\n  %0 : int = prim::Constant[value=0]()\n  %v : Tensor = aten::select(%x, %0, %0)\n"
        "  %y : Tensor = aten::exp(%v)\n  return (%y)\n",
        /* a write to the result of a convolution, which is new memory, does not keep it outside */
        "graph(%x : Tensor):\n  %v : Tensor = aten::matmul(%x, %x)\n  %w : Tensor = aten::relu_(%v)\n  return (%w)\n"};
    for (int i = 0; i < 4; i++) {
        opd_graph *graph = opd_graph_parse(texts[i]), *before = opd_graph_copy(graph);
        compiler by = named("aten::select", "aten::exp", "aten::type_as");
        opd_part_compiler parter = compiler_of(&by);
        by.names[3] = "aten::matmul";
        by.fresh = true;
        CHECK_INT(opd_graph_delegate(graph, &parter), 1);
        CHECK_INT(opd_graph_count(graph, "aten::select") + opd_graph_count(graph, "aten::type_as"), i < 2);
        same_runs(graph, before, 1);
        opd_graph_free(graph);
        opd_graph_free(before);
    }
}
/* Two inputs, or two constants, that are views of one tensor: a read of one stays before a write to the other. */
TEST(memory_that_inputs_and_constants_share) {
    for (int constants = 0; constants < 2; constants++) {
        opd_tensor *base = numbers(4), *in[2], *out[1], *want[1];
        opd_graph *graph = opd_graph_new();
        opd_graph_value *v[2], *a, *w, *y, *one[3];
        for (int i = 0; i < 2; i++) {
            v[i] = constants ? opd_graph_constant(graph, opd_value_tensor(i ? opd_view(base, OPD_INTS(4)) : base))
                : opd_graph_input(graph, NULL, NULL);
        }
        one[0] = v[1], one[1] = one[2] = opd_graph_constant(graph, opd_value_int(1));
        CHECK_INT(opd_graph_call(graph, "aten::exp", &v[0], 1, &a, 1), 1);
        CHECK_INT(opd_graph_call(graph, "aten::add_.Tensor", one, 2, &w, 1), 1);
        CHECK_INT(opd_graph_call(graph, "aten::neg", &v[0], 1, &y, 1), 1);
        one[0] = a, one[1] = y;
        CHECK_INT(opd_graph_call(graph, "aten::mul.Tensor", one, 2, &y, 1), 1);
        CHECK_INT(opd_graph_output(graph, &y, 1, false), 0);
        opd_graph *before = opd_graph_copy(graph);
        compiler by = named("aten::exp", "aten::neg", "aten::mul");
        opd_part_compiler parter = compiler_of(&by);
        CHECK_INT(opd_graph_delegate(graph, &parter), 2);            /* exp, and neg with mul: the write is between */
        for (int i = 0; i < 2; i++) {
            opd_copy_(base, numbers(4));
            in[0] = base, in[1] = opd_view(base, OPD_INTS(4));
            CHECK_INT(opd_graph_run(i ? graph : before, in, constants ? 0 : 2, i ? out : want, 1), 1);
        }
        CHECK(opd_equal(out[0], want[0]));
        opd_graph_free(graph);
        opd_graph_free(before);
    }
}
TEST(parts_in_blocks) {
    opd_graph *graph = opd_graph_parse(
        "graph(%x : Tensor, %n : int):\n  %t : bool = prim::Constant[value=1]()\n"
        "  %z : Tensor = prim::Loop(%n, %t, %x)\n    block0(%i : int, %k : Tensor):\n      %m : Tensor = aten::neg(%k)\n"
        "      %e : Tensor = aten::exp(%m)\n      -> (%t, %e)\n  return (%z)\n"), *before = opd_graph_copy(graph);
    compiler by = named("aten::exp", "aten::neg", NULL);
    opd_part_compiler parter = compiler_of(&by);
    opd_value in[2], out[1], want[1];
    CHECK_INT(opd_graph_delegate(graph, &parter), 1);
    in[0] = opd_value_tensor(numbers(4)), in[1] = opd_value_int(3);
    CHECK_INT(opd_graph_run_values(before, in, 2, want, 1), 1);
    CHECK_INT(opd_graph_run_values(graph, in, 2, out, 1), 1);
    CHECK(opd_equal(out[0].u.t, want[0].u.t));
    CHECK_INT(by.runs, 3);
    opd_graph_free(graph);
    opd_graph_free(before);
}

//-- compilers ---------------------------------------------------------------------------------------------------------

static opd_graph *chain(void) {
    return opd_graph_parse("graph(%x : Tensor):\n  %a : Tensor = aten::exp(%x) # model.c:7\n  %b : Tensor = aten::tanh(%a)\n"
                           "  %c : Tensor = aten::exp(%b)\n  %d : Tensor = aten::neg(%c)\n  return (%d)\n");
}
TEST(a_compiler_may_refuse_and_fail) {
    opd_graph *graph = chain(), *before = opd_graph_copy(graph);
    compiler by = named("aten::exp", "aten::neg", NULL);
    opd_part_compiler parter = compiler_of(&by);
    by.fail_at = 2;
    CHECK_INT(opd_graph_delegate(graph, &parter), -1);
    CHECK_ERROR(OPD_ERROR_USER, "no room on the chip [in the graph's node %c = aten::exp");
    CHECK(opd_graph_equal(graph, before));
    CHECK_INT(by.destroyed, 1);
    by.fail_at = 0;
    by.refuse_from = 2;
    by.compiled = 0;
    CHECK_INT(opd_graph_delegate(graph, &parter), 1);
    CHECK_INT(opd_graph_count(graph, "aten::exp"), 1);
    same_runs(graph, before, 1);
    CHECK_INT(by.runs, 1);
    by.refuse_runs = true;
    same_runs(graph, before, 1);
    CHECK_INT(by.runs, 1);
    by.refuse_runs = false;
    by.wrong = true;
    opd_tensor *in[1], *out[1];
    in[0] = numbers(4);
    CHECK_INT(opd_graph_run(graph, in, 1, out, 1), 1);               /* the text gives no dtype to compare with */
    opd_graph_free(graph);
    graph = chain();
    parter.least = 2;
    by = named("aten::exp", "aten::neg", NULL);
    CHECK_INT(opd_graph_delegate(graph, &parter), 1);
    CHECK_INT(opd_graph_count(graph, "aten::neg"), 0);
    CHECK_INT(opd_graph_count(graph, "aten::exp"), 1);
    CHECK_INT(opd_graph_delegate(NULL, &parter), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_delegate: the graph is NULL");
    CHECK_INT(opd_graph_delegate(graph, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_delegate: the compiler is NULL");
    CHECK_INT(opd_graph_partition(graph, NULL, NULL, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_partition: the question is NULL");
    CHECK_INT(opd_graph_save(graph, "/nonexistent/graph"), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_save: a file cannot keep the compiled part 'npu::part'");
    opd_graph_free(graph);
    opd_graph_free(before);
}
static int run_graph(void *part, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_graph_run((const opd_graph *)part, in, n, out, OPD_TRANSFORM_OUTPUTS);
}
static int keeps_graph(void *user, const opd_graph *part, opd_part_function *function) {
    CHECK_INT(opd_graph_ninputs(part), 1);         /* the constant, which is written, is an input */
    function->run = run_graph;
    function->user = (void *)(uintptr_t)part;
    return user ? 0 : -1;
}
static opd_tensor *constant_in_parts;
static int writes_a_constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *before = opd_exp(constant_in_parts);
    opd_tensor *written = opd_add_(constant_in_parts, in[0]);
    out[0] = opd_mul(before, opd_exp(constant_in_parts));
    return written ? 1 : -1;
}
/* The parts before and after a write to a constant keep their places, when the graph is divided once more, too. */
TEST(parts_read_a_constant_before_and_after_it_is_written) {
    const double start[] = {1, 2, -1};
    opd_tensor *in[1], *out[1];
    constant_in_parts = opd_tensor_from(start, OPD_INTS(3), OPD_FLOAT64);
    in[0] = opd_full(OPD_INTS(3), opd_value_double(0.5), OPD_FLOAT64);
    opd_graph *graph = opd_graph_trace(writes_a_constant, NULL, in, 1, NULL);
    compiler by = named("aten::exp", NULL, NULL);
    opd_part_compiler parter = {supports, keeps_graph, 0, NULL};
    parter.user = &by;
    CHECK_INT(opd_graph_delegate(graph, &parter), 2);
    by = named("aten::mul", NULL, NULL);
    parter = compiler_of(&by);
    CHECK_INT(opd_graph_delegate(graph, &parter), 1);
    opd_tensor *const fresh = opd_tensor_from(start, OPD_INTS(3), OPD_FLOAT64);
    opd_tensor *const want = opd_mul(opd_exp(fresh), opd_exp(opd_add(fresh, in[0])));
    for (int i = 0; i < 2; i++) {
        CHECK(opd_copy_(constant_in_parts, fresh));
        CHECK_INT(opd_graph_run(graph, in, 1, out, 1), 1);
        CHECK(opd_equal(out[0], want));
    }
    opd_graph_free(graph);
}
static int forgets(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)in, (void)n, (void)out;
    return 1;
}
static int compiles_forgets(void *user, const opd_graph *part, opd_part_function *function) {
    (void)user, (void)part;
    function->run = forgets;
    return 0;
}
static void soil_stack(void) {
    volatile unsigned char soil[40000];
    for (size_t i = 0; i < sizeof soil; i++) { soil[i] = 0x55; }
    (void)soil;
}
TEST(a_function_that_forgets_an_output_is_named) {
    opd_graph *graph = chain();
    opd_part_compiler parter = {supports, compiles_forgets, 0, NULL};
    compiler by = named("aten::exp", "aten::tanh", "aten::neg");
    parter.user = &by;
    opd_tensor *in[1], *out[1];
    in[0] = numbers(4);
    CHECK_INT(opd_graph_delegate(graph, &parter), 1);
    soil_stack();
    CHECK_INT(opd_graph_run(graph, in, 1, out, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "part: `the function` must only return Tensors, got NULL as output 0");
    opd_graph_free(graph);
}
/* Functions that change the graph from which they are called. */
static bool changes_graph(void *user, const opd_graph_node *node) {
    opd_graph *const graph = (opd_graph *)user;
    opd_graph_value *value = opd_graph_node_output(node, 0);
    return opd_graph_insert_after(graph, value) == 0 && opd_graph_call(graph, "aten::neg", &value, 1, &value, 1) == 1;
}
static bool partitions_graph(void *user, const opd_graph_node *node) {
    compiler by = named("aten::exp", NULL, NULL);
    return node && opd_graph_partition((opd_graph *)user, supports, &by, NULL, 0) >= 0;
}
static int erases_part(void *user, const opd_graph *part, opd_part_function *function) {
    opd_graph *const graph = (opd_graph *)user;
    (void)part;
    function->run = run_part;
    opd_graph_replace(graph, opd_graph_output_at(graph, 0), opd_graph_input_at(graph, 0));
    return opd_graph_dce(graph) < 0 ? -1 : 0;
}
static bool all_calls(void *user, const opd_graph_node *node) { return user && node; }
TEST(functions_must_not_change_the_graph_that_is_divided) {
    opd_graph *graph = chain();
    CHECK_INT(opd_graph_partition(graph, changes_graph, graph, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_partition: the question has changed the graph");
    CHECK_INT(opd_graph_partition(graph, partitions_graph, graph, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_partition: the question has changed the graph");
    opd_part_compiler parter = {all_calls, erases_part, 0, NULL};
    parter.user = graph;
    CHECK_INT(opd_graph_delegate(graph, &parter), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_delegate: the compiler has changed the graph");
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
}
static int traced_chain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_sum(opd_neg(opd_exp(opd_tanh(opd_exp(in[0])))));
    return 1;
}
TEST(parts_run_as_graphs_under_transforms) {
    opd_tensor *x[1], *y[1], *want[1];
    x[0] = numbers(4);
    opd_graph *graph = opd_graph_trace(traced_chain, NULL, x, 1, NULL), *before = opd_graph_copy(graph);
    compiler by = named("aten::exp", "aten::neg", NULL);
    opd_part_compiler parter = compiler_of(&by);
    CHECK_INT(opd_graph_delegate(graph, &parter), 2);
    CHECK_INT(opd_grad(opd_graph_function, graph, x, 1, 0, y, 1), 1);
    CHECK_INT(opd_grad(opd_graph_function, before, x, 1, 0, want, 1), 1);
    CHECK(opd_allclose(y[0], want[0]));
    CHECK_INT(by.runs, 0);
    opd_tensor *leaf = opd_tensor_set_requires_grad(numbers(4), true);
    CHECK_INT(opd_graph_run(graph, &leaf, 1, y, 1), 1);
    CHECK_INT(opd_backward(y[0]), 0);
    CHECK(opd_allclose(opd_tensor_grad(leaf), want[0]));
    CHECK_INT(by.runs, 0);
    opd_graph *again = opd_graph_trace(opd_graph_function, graph, x, 1, NULL);
    CHECK_INT(opd_graph_count(again, "aten::exp"), 2);               /* recorded */
    OPD_NO_GRAD { CHECK_INT(opd_graph_run(graph, &leaf, 1, y, 1), 1); }
    CHECK_INT(by.runs, 2);
    opd_tensor *wide = opd_full(OPD_INTS(4), opd_value_double(0.5), OPD_FLOAT64);   /* the graph was recorded for float32 */
    CHECK_INT(opd_graph_run(before, &wide, 1, want, 1), 1);
    CHECK_INT(opd_graph_run(graph, &wide, 1, y, 1), 1);
    CHECK(opd_equal(y[0], want[0]));
    opd_graph *outer = opd_graph_new();                              /* knows no dtypes of its own input */
    opd_graph_value *value = opd_graph_input(outer, NULL, NULL);
    CHECK_INT(opd_graph_inline(outer, graph, &value, 1, &value, 1), 1);
    CHECK_INT(opd_graph_output(outer, &value, 1, false), 0);
    CHECK_INT(opd_graph_run(outer, &wide, 1, y, 1), 1);
    CHECK(opd_equal(y[0], want[0]));
    opd_graph_free(outer);
    by.wrong = true;
    CHECK_INT(opd_graph_run(graph, x, 1, y, 1), -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "output 0 is a float64 tensor with 1 dims, but the graph has a float32 tensor with 1 "
                "dims [in the graph's node");
    opd_graph_free(graph);
    opd_graph_free(before);
    opd_graph_free(again);
}
/* Delegates a copy of a graph and adds a node to it: a call that succeeds leaves no error. */
static int delegate_copy(void *user) {
    compiler by = named("aten::exp", "aten::neg", NULL);
    opd_part_compiler parter = compiler_of(&by);
    opd_graph *copy = opd_graph_copy((opd_graph *)user);
    int parts = copy ? opd_graph_delegate(copy, &parter) : -1;
    if (parts >= 0 && opd_ok()) {
        opd_graph_value *value = opd_graph_input_at(copy, 0);
        if (opd_graph_call(copy, "aten::neg", &value, 1, &value, 1) != 1) { parts = -1; }
    }
    opd_graph_free(copy);
    CHECK_INT(by.destroyed, by.compiled);
    CHECK((parts >= 0) == opd_ok());
    return parts;
}
TEST(delegating_fails_cleanly_when_memory_runs_out) {
    opd_graph *graph = chain();
    (void)check_allocations(delegate_copy, graph, "opd_graph_delegate", 200, false);
    opd_graph_free(graph);
}
TEST(a_compiled_graph_uses_the_compiler_of_the_program) {
    opd_graph *graph = chain();
    compiler by = named("aten::exp", "aten::neg", NULL);
    opd_part_compiler parter = compiler_of(&by);
    opd_value in[1], out[1], want[1];
    opd_compiled *compiled = opd_graph_compile(graph, NULL);
    CHECK_INT(opd_compiled_delegate(compiled, &parter), 2);
    CHECK_INT(opd_compiled_delegate(compiled, &parter), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_compiled_delegate: the graph has run, or has a compiler already");
    CHECK_INT(opd_graph_count(graph, "aten::exp"), 2);               /* the graph itself has not changed */
    in[0] = opd_value_tensor(numbers(4));
    CHECK_INT(opd_graph_run_values(graph, in, 1, want, 1), 1);
    CHECK_INT(opd_compiled_run(compiled, in, 1, out, 1), 1);
    CHECK(opd_equal(out[0].u.t, want[0].u.t) && !opd_compiled_reason(compiled));
    CHECK_INT(by.runs, 2);
    opd_compiled_free(compiled);
    CHECK_INT(by.destroyed, 2);
    by.compiled = 0;
    by.fail_at = 1;
    compiled = opd_graph_compile(graph, NULL);
    CHECK_INT(opd_compiled_delegate(compiled, &parter), -1);
    CHECK_ERROR(OPD_ERROR_USER, "no room on the chip");
    CHECK_INT(opd_compiled_run(compiled, in, 1, out, 1), 1);         /* as if nothing had been asked */
    CHECK(opd_equal(out[0].u.t, want[0].u.t));
    opd_compiled_free(compiled);
    CHECK_INT(opd_compiled_delegate(NULL, &parter), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_compiled_delegate: the compiled graph is NULL");
    opd_graph_free(graph);
}

//-- a device ----------------------------------------------------------------------------------------------------------

static void *npu_alloc(void *user, int index, size_t bytes) {
    (void)user, (void)index;
    return malloc(bytes ? bytes : 1);
}
static void npu_free(void *user, int index, void *data, size_t bytes) {
    (void)user, (void)index, (void)bytes;
    free(data);
}
static int npu_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    (void)user, (void)to_index, (void)from_index;
    memcpy(to, from, bytes);
    return 0;
}
OPD_LIBRARY_IMPL(_, PrivateUse1, lib) { opd_fallback(lib, opd_cpu_fallback); }
TEST(a_device_compiles_parts) {
    compiler by = named("aten::exp", "aten::neg", NULL);
    opd_part_compiler parter = compiler_of(&by);
    opd_backend_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "npu", desc.alloc = npu_alloc, desc.free = npu_free, desc.copy = npu_copy, desc.parts = &parter;
    CHECK_INT(opd_backend_register(OPD_PRIVATEUSE1, &desc), 0);
    opd_graph *graph = chain();
    opd_compiled *compiled = opd_graph_compile(graph, NULL);
    opd_value in[1], out[1], want[1];
    OPD_SCOPE {
        in[0] = opd_value_tensor(numbers(4));
        CHECK_INT(opd_graph_run_values(graph, in, 1, want, 1), 1);
        in[0] = opd_value_tensor(opd_to_device(in[0].u.t, opd_device_make(OPD_PRIVATEUSE1, 0), OPD_FLOAT32));
        CHECK_OK();
        for (int i = 0; i < 2; i++) {
            CHECK_INT(opd_compiled_run(compiled, in, 1, out, 1), 1);
            CHECK_INT(opd_tensor_device(out[0].u.t).type, OPD_PRIVATEUSE1);
            CHECK(opd_equal(opd_to_device(out[0].u.t, opd_device_make(OPD_CPU, -1), OPD_FLOAT32), want[0].u.t));
        }
        CHECK_INT(by.compiled, 2);
        CHECK_INT(by.runs, 4);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_INT(opd_backend_unregister(OPD_PRIVATEUSE1), 0);
}
CHECK_MAIN()
