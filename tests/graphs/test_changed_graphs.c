/* Passes over graphs that write, have views, lists, conditions and loops: whatever is changed, divided, extracted or
   rewritten, the results and what was written to the inputs stay the same. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_graph *parsed(const char *body) {
    static char whole[2000];
    (void)snprintf(whole, sizeof whole, "graph(%%x : Tensor):\n  %%0 : int = prim::Constant[value=0]()\n"
                   "  %%1 : int = prim::Constant[value=1]()\n  %%2 : int = prim::Constant[value=2]()\n%s", body);
    return opd_graph_parse(whole);
}
static int nodes_of(const opd_graph *graph, opd_graph_node **nodes, int cap) {
    int count = 0;
    for (opd_graph_node *node = opd_graph_first(graph); node && count < cap; node = opd_graph_next(node)) {
        if (opd_graph_node_inside(node) == opd_graph_body(graph)) { nodes[count++] = node; }
    }
    return count;
}
static bool erase_nodes(opd_graph *graph, opd_graph_node *const *nodes, int count) {
    for (int i = count - 1; i >= 0; i--) {
        if (opd_graph_node_inside(nodes[i]) && opd_graph_erase_node(graph, nodes[i]) < 0) { return false; }
    }
    return true;
}

//-- passes ------------------------------------------------------------------------------------------------------------

static int run_part(void *part, opd_tensor *const *in, int n, opd_tensor **out) {
    const int count = opd_graph_run((const opd_graph *)part, in, n, out, OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < count; i++) { out[i] = opd_clone(out[i]); }        /* new memory, as from another device */
    return count;
}
static int compile_part(void *user, const opd_graph *part, opd_part_function *function) {
    (void)user;
    function->run = run_part;
    function->user = (void *)(uintptr_t)part;
    return 0;
}
static bool some(void *user, const opd_graph_node *node) {
    uint64_t *const state = (uint64_t *)user;
    (void)node;
    *state = *state * 6364136223846793005u + 1;
    return (*state >> 40) % 3 != 0;
}
/* Takes the whole graph out, and puts it back. */
static bool pass_whole(opd_graph *graph) {
    opd_graph_value *in[4], *out[8];
    opd_graph_node *nodes[1000];
    const int ninputs = opd_graph_ninputs(graph), noutputs = opd_graph_noutputs(graph);
    const int count = nodes_of(graph, nodes, 1000);
    for (int i = 0; i < ninputs; i++) { in[i] = opd_graph_input_at(graph, i); }
    for (int i = 0; i < noutputs; i++) { out[i] = opd_graph_output_at(graph, i); }
    opd_graph *inner = opd_graph_extract(graph, in, ninputs, out, noutputs);
    const bool done = inner && opd_graph_inline(graph, inner, in, ninputs, out, noutputs) == noutputs &&
        opd_graph_output(graph, out, noutputs, false) == 0 && erase_nodes(graph, nodes, count);
    opd_graph_free(inner);
    return done;
}
/* Takes each part out, and puts it back, from the last part to the first. */
static bool pass_parts(opd_graph *graph, uint64_t seed) {
    opd_part parts[200];
    const int count = opd_graph_partition(graph, some, &seed, parts, 200);
    bool done = count >= 0;
    for (int i = count - 1; i >= 0 && done; i--) {
        opd_graph_value *results[64];
        if (!parts[i].noutputs) { continue; }
        opd_graph *inner = opd_graph_extract_part(graph, &parts[i]);
        done = inner && opd_graph_insert_before(graph, opd_graph_node_output(parts[i].nodes[0], 0)) == 0 &&
            opd_graph_inline(graph, inner, parts[i].inputs, parts[i].ninputs, results, 64) == parts[i].noutputs;
        for (int k = 0; k < parts[i].noutputs && done; k++) {
            done = opd_graph_replace(graph, parts[i].outputs[k], results[k]) >= 0;
        }
        done = done && erase_nodes(graph, parts[i].nodes, parts[i].nnodes) && opd_graph_insert_before(graph, NULL) == 0;
        opd_graph_free(inner);
    }
    return done;
}
/* Replaces calls by themselves: add_ and a sum, and a product with its arguments exchanged. */
static bool pass_rewrite(opd_graph *graph) {
    static const char *const texts[][2] = {
        {"  %y : Tensor = aten::add_(%x, %t, %1)\n  %z : Tensor = aten::mul(%y, %u)\n  return (%z)\n",
         "  %y : Tensor = aten::add_(%x, %t, %1)\n  %z : Tensor = aten::mul(%u, %y)\n  return (%z)\n"},
        {"  %y : Tensor = aten::t(%x)\n  %z : Tensor = aten::mul(%y, %t)\n  %w : Tensor = aten::mul(%z, %u)\n"
         "  return (%w)\n",
         "  %y : Tensor = aten::t(%x)\n  %z : Tensor = aten::mul(%t, %y)\n  %w : Tensor = aten::mul(%z, %u)\n"
         "  return (%w)\n"}};
    bool done = true;
    for (int i = 0; i < 2 && done; i++) {
        opd_graph *pair[2];
        for (int k = 0; k < 2; k++) {
            char whole[600];
            (void)snprintf(whole, sizeof whole, "graph(%%x : Tensor, %%t : Tensor, %%u : Tensor):\n"
                           "%s%s", i ? "" : "  %1 : int = prim::Constant[value=1]()\n", texts[i][k]);
            pair[k] = opd_graph_parse(whole);
        }
        done = opd_graph_rewrite(graph, pair[0], pair[1], NULL) >= 0;
        for (int k = 0; k < 2; k++) { opd_graph_free(pair[k]); }
    }
    return done;
}
enum { PASSES = 8 };
static bool pass(opd_graph **graph, int which, uint64_t seed) {
    opd_part_compiler compiler = {some, compile_part, 1, NULL};
    compiler.user = &seed;
    switch (which) {
    case 0: return opd_graph_delegate(*graph, &compiler) >= 0;
    case 1: return opd_graph_delegate(*graph, &compiler) >= 0 && opd_graph_delegate(*graph, &compiler) >= 0;
    case 2: return pass_whole(*graph);
    case 3: return pass_parts(*graph, seed);
    case 4: return pass_rewrite(*graph);
    case 5: return opd_graph_dce(*graph) >= 0 && opd_graph_cse(*graph) >= 0 && opd_graph_fold(*graph) >= 0;
    case 6: return pass_whole(*graph) && pass_parts(*graph, seed) && pass_rewrite(*graph);
    default: break;
    }
    const size_t length = opd_graph_print(*graph, NULL, 0);
    char *const whole = (char *)malloc(length + 1);
    (void)opd_graph_print(*graph, whole, length + 1);
    opd_graph *const again = opd_graph_parse(whole);
    CHECK(opd_graph_equal(again, *graph));
    CHECK(opd_graph_hash(again) == opd_graph_hash(*graph));
    free(whole);
    opd_graph_free(*graph);
    *graph = again;
    return again != NULL;
}

//-- random functions --------------------------------------------------------------------------------------------------

static uint64_t dice;
static int roll(int sides) {
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice >> 33) % (uint64_t)sides);
}
static int body(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_tanh(opd_add(opd_mul(in[0], in[n - 1]), in[n > 2 ? 1 : 0]));
    out[1] = opd_mul(out[0], in[0]);
    return opd_ok() ? 2 : -1;
}
static int grown(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_add_Scalar(opd_abs(in[0]), opd_value_double(0.5));
    return opd_ok() ? 1 : -1;
}
static int halved(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_mul_Scalar(opd_relu(in[n - 1]), opd_value_double(0.5));
    return opd_ok() ? 1 : -1;
}
static int is_small(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_lt_Scalar(opd_sum(opd_abs(in[0])), opd_value_int(20));
    return opd_ok() ? 1 : -1;
}
/* A condition or a loop, whose result has the sizes of a, [4, 4]. */
static opd_tensor *flow(opd_tensor *a, opd_tensor *b) {
    opd_tensor *in[2], *xs[1], *other[1], *out[2];
    in[0] = a, in[1] = b, xs[0] = b;
    switch (roll(3)) {
    case 0:
        return opd_cond(opd_gt_Scalar(opd_sum(b), opd_value_int(roll(2))), grown, halved, NULL, in, 2, out, 2) < 0
            ? NULL : out[0];
    case 1: return opd_while(is_small, grown, NULL, in, 1, NULL, 0, out, 2) < 0 ? NULL : out[0];
    default:
        in[0] = opd_sum_dim(a, OPD_INTS(0), false);
        other[0] = opd_select(a, 0, 1);
        return opd_scan(body, NULL, in, 1, xs, 1, other, 1, NULL, out, 2) < 0 ? NULL : out[1];
    }
}
/* One call on two of the values, which all have the sizes [4, 4].  Returns the result; NULL if it only writes. */
static opd_tensor *call(opd_tensor *a, opd_tensor *b) {
    opd_tensor *two[2];
    switch (roll(14)) {
    case 0: return opd_tanh(a);
    case 1: return opd_mul(a, b);
    case 2: return opd_add_full(a, b, opd_value_int(roll(3)));
    case 3: return opd_t(a);
    case 4:
        two[0] = opd_narrow(a, 0, 0, 2), two[1] = opd_narrow(b, 0, 1, 2);
        return opd_cat(opd_tensors_of(two, 2), 0);
    case 5: return opd_view(opd_contiguous(a), OPD_INTS(4, 4));
    case 6: return opd_softmax(a, roll(2));
    case 7: case 8: return flow(a, b);
    case 9: (void)opd_add_(a, b); return NULL;
    case 10: (void)opd_mul_Scalar_(opd_narrow(a, roll(2), roll(3), 2), opd_value_double(0.5)); return NULL;
    case 11: (void)opd_sin_(opd_chunk(a, 2, roll(2)).data[roll(2)]); return NULL;
    case 12: (void)opd_copy_(opd_select(a, 0, roll(4)), opd_sum_dim(b, OPD_INTS(1), false)); return NULL;
    default: return opd_mul(opd_add_(opd_clone(a), b), a);
    }
}
static int function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *values[32];
    int count = 0;
    dice = *(const uint64_t *)user;
    for (int i = 0; i < n; i++) { values[count++] = in[i]; }
    for (int i = 3 + roll(12); i > 0 && opd_ok(); i--) {
        opd_tensor *const a = values[roll(count)], *const made = call(a, values[roll(count)]);
        if (made) { values[count++] = made; }
    }
    out[0] = opd_mul_Scalar(values[count - 1], opd_value_double(2));
    out[1] = values[roll(count)];
    return opd_ok() ? 2 : -1;
}

/* Runs a graph of three inputs.  results: its two outputs, and the inputs after the run. */
static bool run(const opd_graph *graph, opd_tensor **results) {
    opd_tensor *in[3], *out[2];
    for (int i = 0; i < 3; i++) {
        in[i] = opd_empty(OPD_INTS(4, 4), OPD_FLOAT32);
        float *const data = opd_data_f32(in[i]);
        for (int k = 0; k < 16; k++) { data[k] = (float)((k * 7 + i * 5) % 13) / 6 - 1; }
    }
    if (opd_graph_run(graph, in, 3, out, 2) != 2) { return false; }
    for (int i = 0; i < 5; i++) { results[i] = i < 2 ? opd_clone(out[i]) : in[i - 2]; }
    return true;
}
TEST(random_graphs_compute_the_same_after_each_pass) {
    int traced = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        OPD_SCOPED;
        opd_tensor *in[3], *want[5], *got[5];
        uint64_t start = seed * 7919 + 13;
        for (int i = 0; i < 3; i++) { in[i] = opd_full(OPD_INTS(4, 4), opd_value_double(0.5), OPD_FLOAT32); }
        opd_graph *graph = opd_graph_trace(function, &start, in, 3, NULL);
        CHECK_OR_RETURN(graph && run(graph, want));
        traced++;
        for (int which = 0; which < PASSES; which++) {
            opd_graph *copy = opd_graph_copy(graph);
            bool same = pass(&copy, which, seed) && opd_graph_check(copy) == 0;
            for (int round = 0; round < 2 && same; round++) {
                same = run(copy, got);
                for (int i = 0; i < 5 && same; i++) { same = opd_equal(got[i], want[i]); }
            }
            if (!same) { printf("function %d, pass %d: %s\n", (int)seed, which, opd_error_message()); }
            CHECK(same);
            CHECK_OK();
            opd_graph_free(copy);
        }
        opd_graph_free(graph);
    }
    CHECK_INT(traced, 120);
}

//-- single cases ------------------------------------------------------------------------------------------------------

/* The elements of the list that chunk returns are views of x. */
TEST(writes_to_views_in_a_list_belong_to_what_is_viewed) {
    opd_graph *graph = parsed("  %c : Tensor[] = aten::chunk(%x, %2, %0)\n  %a : Tensor, %b : Tensor = prim::ListUnpack(%c)\n"
                              "  %s : Tensor = aten::sin_(%a)\n  %y : Tensor = aten::exp(%x)\n  return (%y)\n");
    opd_graph_value *x = opd_graph_input_at(graph, 0), *y = opd_graph_output_at(graph, 0);
    opd_graph *part = opd_graph_extract(graph, &x, 1, &y, 1);
    CHECK_INT(opd_graph_count(part, "aten::sin_"), 1);
    uint64_t seed = 3;
    opd_part parts[4];
    for (int count = opd_graph_partition(graph, some, &seed, parts, 4), i = 0; i < count; i++) {
        for (int k = 0; k < parts[i].nnodes; k++) { CHECK(!opd_graph_node_is(parts[i].nodes[k], "aten::chunk")); }
    }
    CHECK_OK();
    opd_graph_free(graph);
    opd_graph_free(part);
}
/* Numbers in lists, too: each append changes what sum and the next element see. */
TEST(a_part_has_the_appends_to_its_lists) {
    opd_graph *graph = parsed(
        "  %l : int[] = prim::ListConstruct(%1)\n  %n : int[][] = prim::ListConstruct(%l)\n"
        "  %i : int[] = aten::__getitem__(%n, %0)\n  %a : int[] = aten::append(%i, %2)\n  %s : int = aten::sum(%l)\n"
        "  %y : Tensor = aten::mul(%x, %s)\n  return (%y)\n");
    opd_graph_value *x = opd_graph_input_at(graph, 0), *y = opd_graph_output_at(graph, 0);
    opd_graph *part = opd_graph_extract(graph, &x, 1, &y, 1);
    CHECK_OR_RETURN(part != NULL);
    opd_tensor *one = opd_full(OPD_INTS(1), opd_value_int(1), OPD_FLOAT32), *out[1];
    CHECK_INT(opd_graph_run(part, &one, 1, out, 1), 1);
    CHECK_NEAR(opd_item_f64(out[0]), 3, 0);
    opd_graph_free(graph);
    opd_graph_free(part);
}
TEST(a_constant_of_a_pattern_stands_for_several_equal_ones) {
    static const char *const patterns[] = {
        "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  %y : Tensor = aten::addmm(%x, %x, %x, %1, %1)\n"
        "  return (%y)\n",
        "graph(%x : Tensor, %n : int):\n  %y : Tensor = aten::addmm(%x, %x, %x, %n, %n)\n  return (%y)\n",
        "graph(%x : Tensor):\n  %2 : int = prim::Constant[value=2]()\n  %y : Tensor = aten::addmm(%x, %x, %x, %2, %2)\n"
        "  return (%y)\n"};
    static const int want[] = {1, 1, 0};
    for (int i = 0; i < 3; i++) {
        opd_graph *graph = opd_graph_parse(
            "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  %2 : int = prim::Constant[value=1]()\n"
            "  %3 : int = prim::Constant[value=2]()\n  %y : Tensor = aten::addmm(%x, %x, %x, %1, %2)\n"
            "  %z : Tensor = aten::addmm(%y, %y, %y, %2, %3)\n  return (%z)\n");
        opd_graph *pattern = opd_graph_parse(patterns[i]);
        opd_graph *by = opd_graph_parse(i == 1 ? "graph(%x : Tensor, %n : int):\n  return (%x)\n"
                                        : "graph(%x : Tensor):\n  return (%x)\n");
        CHECK_INT(opd_graph_rewrite(graph, pattern, by, NULL), want[i]);
        CHECK_INT(opd_graph_count(graph, "aten::addmm"), 2 - want[i]);
        CHECK_INT(opd_graph_count(graph, NULL), i == 2 ? 5 : i ? 4 : 3);     /* unused constants are removed */
        CHECK_INT(opd_graph_check(graph), 0);
        opd_graph_free(graph);
        opd_graph_free(pattern);
        opd_graph_free(by);
    }
}
/* What a match writes, a node between its nodes reads; and random numbers are drawn in their order. */
TEST(a_match_with_effects_does_not_move_over_other_nodes) {
    opd_graph *graph = parsed("  %v : Tensor = aten::t(%x)\n  %a : Tensor = aten::add_(%v, %1, %1)\n"
                              "  %m : Tensor = aten::neg(%x)\n  %b : Tensor = aten::exp(%a)\n"
                              "  %y : Tensor = aten::mul(%m, %b)\n  return (%y)\n");
    opd_graph *write = parsed("  %a : Tensor = aten::add_(%x, %1, %1)\n  %b : Tensor = aten::exp(%a)\n  return (%b)\n");
    opd_graph *draws = parsed("  %a : Tensor = aten::rand_like(%x)\n  %m : Tensor = aten::rand_like(%x)\n"
                              "  %b : Tensor = aten::exp(%a)\n  %y : Tensor = aten::mul(%m, %b)\n  return (%y)\n");
    opd_graph *draw = parsed("  %a : Tensor = aten::rand_like(%x)\n  %b : Tensor = aten::exp(%a)\n  return (%b)\n");
    opd_graph *by = opd_graph_parse("graph(%x : Tensor):\n  return (%x)\n");
    CHECK_OK();
    CHECK_INT(opd_graph_dce(write) + opd_graph_dce(draw), 5);
    CHECK_INT(opd_graph_rewrite(graph, write, by, NULL), 0);
    CHECK_INT(opd_graph_rewrite(draws, draw, by, NULL), 0);
    CHECK_OK();
    opd_graph_free(graph);
    opd_graph_free(write);
    opd_graph_free(draws);
    opd_graph_free(draw);
    opd_graph_free(by);
}
TEST(values_of_any_type_are_outputs) {
    opd_graph *graph = parsed("  %n : int = aten::size(%x, %0)\n  %y : Tensor = aten::exp(%x)\n"
                              "  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)\n  return (%t)\n");
    opd_graph_value *n = opd_graph_find(graph, "n"), *two[2];
    CHECK_INT(opd_graph_value_tag(opd_graph_find(graph, "t")), OPD_TAG_LIST);
    CHECK_INT(opd_graph_output(graph, &n, 1, false), 0);
    opd_value x = opd_value_tensor(opd_zeros(OPD_INTS(3, 2), OPD_FLOAT32)), out;
    CHECK_INT(opd_graph_run_values(graph, &x, 1, &out, 1), 1);
    CHECK_INT(out.tag == OPD_TAG_INT ? out.u.i : -1, 3);
    two[0] = opd_graph_list(graph, "int", &n, 1);
    CHECK_INT(opd_graph_output(graph, two, 1, false), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "output 0 is a list or tuple, whose elements are the outputs");
    two[0] = two[1] = n;
    CHECK_INT(opd_graph_output(graph, two, 2, false), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "output 0 is not a tensor");
    opd_graph_free(graph);
}
TEST(a_part_without_outputs_is_named) {
    opd_graph *graph = parsed("  %y : Tensor = aten::exp(%x)\n  return (%x)\n");
    opd_part part;
    uint64_t seed = 1;
    CHECK_INT(opd_graph_partition(graph, some, &seed, &part, 1), 1);
    CHECK_INT(part.noutputs, 0);
    CHECK(!opd_graph_extract_part(graph, &part));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_extract_part: the part has no outputs: no other node uses its results");

    opd_graph_free(graph);
}
CHECK_MAIN()
