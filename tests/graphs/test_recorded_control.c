/* Conditions and loops in a trace: one node with blocks, printed, parsed, saved, run, differentiated, vmapped; and the
   derivatives of conditions and loops in a trace, which have a fixed number of nodes. */
#include "../../opdispatch.h"
#include "../traced_control.h"

//-- graphs ------------------------------------------------------------------------------------------------------------

static void print_to(const opd_graph *graph, char **text) {
    const size_t length = opd_graph_print(graph, NULL, 0);
    if ((*text = (char *)malloc(length + 1)) != NULL) { (void)opd_graph_print(graph, *text, length + 1); }
}
/* Traces `fn` with the inputs `in`.  The graph, and the graph of its text, must compute what `fn` computes, also for
   the inputs `others`.  Returns the number of nodes. */
static int agrees(const char *name, opd_transform_fn fn, opd_tensor *const *in, opd_tensor *const *others, int n) {
    OPD_SCOPED;
    char *text = NULL;
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    if (!graph) { fprintf(stderr, "%s\n", name); }
    CHECK_OK();
    if (!graph) { return 0; }
    print_to(graph, &text);
    opd_graph *const parsed = opd_graph_parse(text);
    const int nodes = opd_graph_count(graph, NULL);
    CHECK_OK();
    for (int k = 0; k < 4; k++) {
        opd_tensor *want[4], *got[4];
        const int count = fn(NULL, k & 1 ? others : in, n, want);
        CHECK_INT(opd_graph_run(k & 2 ? parsed : graph, k & 1 ? others : in, n, got, 4), count);
        for (int i = 0; i < count && opd_ok(); i++) {
            const bool close = opd_allclose(want[i], got[i]);
            CHECK(close);
            if (!close) { fprintf(stderr, "%s, inputs %d, output %d\n", name, k, i); }
        }
        CHECK_OK();
    }
    free(text);
    opd_graph_free(graph);
    opd_graph_free(parsed);
    return nodes;
}

TEST(traces_of_conditions_and_loops_agree) {
    OPD_SCOPED;
    opd_tensor *const a[] = {number(3), number(100)}, *const b[] = {number(0.5), number(0.4)};
    opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
    opd_tensor *const d[] = {number(-0.3), numbers(y_values, 4), number(0.9)};
    (void)agrees("cond", chooses, a, b, 2);
    (void)agrees("while", grows, a, b, 2);
    (void)agrees("scan", recurrent, c, d, 3);
    (void)agrees("scan with a counter", counts, c, d, 2);
    (void)agrees("nested", nested, c, d, 3);
    (void)agrees("cond, gradient", chooses_by, a, b, 2);
    (void)agrees("while, gradient", grows_by, a, b, 2);
    (void)agrees("while, gradient, first no round", grows_by, b, a, 2);
    (void)agrees("scan, gradient", recurrent_by, c, d, 3);
    (void)agrees("scan with a counter, gradient", counts_by, c, d, 2);
    (void)agrees("cond, forward", chooses_along, a, b, 2);
    (void)agrees("while, forward", grows_along, a, b, 2);
    (void)agrees("scan, forward", recurrent_along, c, d, 3);
}
/* Functions that write into a view which does not begin at the first element, and that return one. */
BODY(squares_but_one) {
    UNUSED();
    opd_tensor *const all = opd_clone(in[0]);
    (void)opd_zero_(opd_select(all, 0, 1));
    out[0] = opd_mul(all, all);
    DONE(1);
}
BODY(maps_but_one) {
    UNUSED();
    if (opd_map(squares_but_one, NULL, in, 1, NONE, out, 1) != 1) { return -1; }
    out[0] = opd_sum(out[0]);
    DONE(1);
}
BODY(chooses_but_one) {
    UNUSED();
    opd_tensor *const pred = opd_gt_Scalar(opd_sum(in[0]), OPD_V(-1000));
    if (opd_cond(pred, squares_but_one, same, NULL, in, 1, out, 1) != 1) { return -1; }
    out[0] = opd_sum(out[0]);
    DONE(1);
}
BODY(adds_and_cuts) {
    UNUSED();
    out[0] = opd_add(in[0], in[1]);
    out[1] = opd_as_strided_full(opd_select(out[0], 0, 1), OPD_INTS(1), OPD_INTS(1), OPD_NONE);
    DONE(2);
}
BODY(scans_cuts) {
    UNUSED();
    opd_tensor *got[2];
    if (opd_scan(adds_and_cuts, NULL, in, 1, in + 1, 1, NONE, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_add(opd_sum(opd_sin(got[0])), opd_sum(opd_mul(got[1], got[1])));
    DONE(1);
}
BODY(maps_but_one_by) { UNUSED(); return by(firsts, 1, maps_but_one, in, n, out); }
BODY(chooses_but_one_by) { UNUSED(); return by(firsts, 1, chooses_but_one, in, n, out); }
BODY(scans_cuts_by) { UNUSED(); return by(firsts, 2, scans_cuts, in, n, out); }
BODY(maps_but_one_along) { UNUSED(); return along(maps_but_one, in, n, out); }
BODY(chooses_but_one_along) { UNUSED(); return along(chooses_but_one, in, n, out); }
BODY(scans_cuts_along) { UNUSED(); return along(scans_cuts, in, n, out); }
TEST(traces_with_views_behind_the_first_element_agree) {
    OPD_SCOPED;
    opd_tensor *const x = opd_reshape(numbers(x_values, 4), OPD_INTS(2, 2));
    opd_tensor *const y = opd_reshape(numbers(y_values, 4), OPD_INTS(2, 2));
    opd_tensor *const a[] = {opd_select(x, 0, 0), x}, *const b[] = {opd_select(y, 0, 1), y};
    (void)agrees("map, gradient", maps_but_one_by, &x, &y, 1);
    (void)agrees("map, forward", maps_but_one_along, &x, &y, 1);
    (void)agrees("cond, gradient", chooses_but_one_by, &x, &y, 1);
    (void)agrees("cond, forward", chooses_but_one_along, &x, &y, 1);
    (void)agrees("scan, gradient", scans_cuts_by, a, b, 2);
    (void)agrees("scan, forward", scans_cuts_along, a, b, 2);
}
TEST(traces_of_second_derivatives_agree) {
    OPD_SCOPED;
    opd_tensor *const a[] = {number(3), number(100)}, *const b[] = {number(0.5), number(0.4)};
    opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)};
    opd_tensor *const d[] = {number(-0.3), numbers(y_values, 4), number(0.9)};
    opd_tensor *const rows = opd_reshape(c[1], OPD_INTS(2, 2)), *const more = opd_reshape(d[1], OPD_INTS(2, 2));
    opd_tensor *const f[] = {c[0], rows, opd_select(more, 0, 0)}, *const g[] = {c[0], more, opd_select(rows, 0, 1)};
    (void)agrees("scan, second derivative", recurrent_twice, c, d, 3);
    (void)agrees("while, second derivative", grows_twice, a, b, 2);
    (void)agrees("map, gradient", maps_by, f, g, 3);
    CHECK(!opd_graph_trace(grows_twice, NULL, b, 2, NULL));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_while: the second derivative of a loop without rounds cannot be recorded");
}
TEST(traces_under_vmap_agree) {
    OPD_SCOPED;
    const double u[] = {3, 20, 2, 200}, v[] = {300, 200, 1000, 101};
    opd_tensor *const a[] = {numbers(u, 4), number(100)}, *const b[] = {numbers(v, 4), number(0.9)};
    opd_tensor *const c[] = {numbers(x_values, 2), opd_reshape(numbers(x_values, 4), OPD_INTS(2, 2)), number(0.7)};
    opd_tensor *const d[] = {numbers(y_values, 2), opd_reshape(numbers(y_values, 4), OPD_INTS(2, 2)), number(0.9)};
    (void)agrees("cond, one condition", chooses_all, a, b, 2);
    (void)agrees("cond, a condition for each", each_chooses, a, b, 2);
    (void)agrees("while", grows_all, a, b, 2);
    (void)agrees("while, gradients", grows_all_by, a, b, 2);
    (void)agrees("scan", recurrent_all, c, d, 3);
    (void)agrees("scan, gradients", recurrent_all_by, c, d, 3);
    (void)agrees("scan, gradient of a sum", summed_by, c, d, 3);
}
TEST(derivatives_have_as_many_nodes_for_each_length) {
    OPD_SCOPED;
    const double all[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
    int nodes[2];
    for (int k = 0; k < 2; k++) {
        opd_tensor *const in[] = {number(0.1), numbers(all, k ? 9 : 3), number(0.7)};
        nodes[k] = agrees("lengths", recurrent_by, in, in, 3);
    }
    CHECK_INT(nodes[0], nodes[1]);
    CHECK(nodes[0] < 100);
}

//-- texts, files, runs ------------------------------------------------------------------------------------------------

static const char *const cond_text =
    "graph(%0 : Double(requires_grad=0, device=cpu),\n"
    "      %1 : Double(requires_grad=0, device=cpu)):\n"
    "  %2 : int = prim::Constant[value=1]()\n"
    "  %3 : Bool(requires_grad=0, device=cpu) = aten::gt(%1, %2)\n"
    "  %4 : bool = aten::Bool(%3)\n"
    "  %8 : Double(requires_grad=0, device=cpu) = prim::If(%4)\n"
    "    block0():\n"
    "      %5 : Double(requires_grad=0, device=cpu) = aten::mul(%0, %0)\n"
    "      -> (%5)\n"
    "    block1():\n"
    "      %6 : int = prim::Constant[value=1]()\n"
    "      %7 : Double(requires_grad=0, device=cpu) = aten::add(%0, %0, %6)\n"
    "      -> (%7)\n"
    "  return (%8)\n";
BODY(sums) { UNUSED(); out[0] = out[1] = opd_add(in[0], in[1]); DONE(2); }
BODY(cumulates) { UNUSED(); return opd_scan(sums, NULL, in, 1, in + 1, 1, NONE, NULL, out, 2); }
static const char *const scan_text =
    "graph(%0 : Double(requires_grad=0, device=cpu),\n"
    "      %1 : Double(4, strides=[1], requires_grad=0, device=cpu)):\n"
    "  %2 : int = prim::Constant[value=0]()\n"
    "  %3 : int = aten::size(%1, %2)\n"
    "  %4 : bool = prim::Constant[value=1]()\n"
    "  %5 : Tensor[] = prim::ListConstruct()\n"
    "  %13 : Double(requires_grad=0, device=cpu) = prim::Loop(%3, %4, %0)\n"
    "    block0(%6 : int, %7 : Tensor):\n"
    "      %8 : int = prim::Constant[value=0]()\n"
    "      %9 : Tensor = aten::select(%1, %8, %6)\n"
    "      %10 : int = prim::Constant[value=1]()\n"
    "      %11 : Double(requires_grad=0, device=cpu) = aten::add(%7, %9, %10)\n"
    "      %12 : Tensor[] = aten::append(%5, %11)\n"
    "      -> (%4, %11)\n"
    "  %14 : int = prim::Constant[value=0]()\n"
    "  %15 : Double(4, strides=[1], requires_grad=0, device=cpu) = aten::stack(%5, %14)\n"
    "  %16 : (Double(requires_grad=0, device=cpu), Double(4, strides=[1], requires_grad=0, device=cpu)) = "
    "prim::TupleConstruct(%13, %15)\n"
    "  return (%16)\n";
/* Returns how often `part` is in the text of a graph. */
static int occurs(const opd_graph *graph, const char *part) {
    char *text = NULL;
    int count = 0;
    print_to(graph, &text);
    for (const char *at = text; at && (at = strstr(at, part)) != NULL; at++) { count++; }
    free(text);
    return count;
}
static void prints(const opd_graph *graph, const char *want) {
    char *text = NULL;
    print_to(graph, &text);
    CHECK_STR(text ? text : "", want);
    free(text);
}
TEST(graphs_are_printed_and_saved) {
    OPD_SCOPED;
    char path[100];
    opd_tensor *const a[] = {number(3), number(0)}, *const c[] = {number(0.1), numbers(x_values, 4)}, *out[2], *want[2];
    opd_tensor *const longer[] = {number(2), opd_cat(OPD_TENSORS(c[1], c[1], c[1]), 0)};
    opd_graph *const cond = opd_graph_trace(chooses, NULL, a, 2, NULL);
    opd_graph *const scan = opd_graph_trace(cumulates, NULL, c, 2, NULL);
    prints(cond, cond_text);
    prints(scan, scan_text);
    (void)snprintf(path, sizeof path, "/tmp/opdispatch_control_%p.graph", (void *)path);
    CHECK_INT(opd_graph_save(scan, path), 0);
    opd_graph *const loaded = opd_graph_load(path);
    (void)remove(path);
    CHECK_OK();
    prints(loaded, scan_text);
    CHECK_INT(cumulates(NULL, longer, 2, want), 2);
    CHECK_INT(opd_graph_run(loaded, longer, 2, out, 2), 2);          /* the graph takes any number of slices */
    CHECK(opd_allclose(out[1], want[1]));
    opd_graph_free(cond);
    opd_graph_free(scan);
    opd_graph_free(loaded);
    CHECK_OK();
}
BODY(runs) { return opd_graph_run((const opd_graph *)user, in, n, out, 4); }
TEST(runs_are_differentiated_and_vmapped) {
    OPD_SCOPED;
    opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)}, *out[3], *want[3];
    opd_tensor *const many[] = {numbers(x_values, 2), opd_reshape(numbers(x_values, 4), OPD_INTS(2, 2)), number(0.7)};
    opd_graph *const graph = opd_graph_trace(recurrent, NULL, c, 3, NULL);
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = firsts;
    options.nargnums = 3;
    CHECK_INT(opd_grad(runs, graph, c, 3, &options, out, 3), 3);
    CHECK_INT(recurrent_by(NULL, c, 3, want), 3);
    for (int i = 0; i < 3; i++) { CHECK(opd_allclose(out[i], want[i])); }
    opd_vmap_options each;
    memset(&each, 0, sizeof each);
    each.in_dims = three_dims;
    each.nin_dims = 3;
    CHECK_INT(opd_vmap(runs, graph, many, 3, &each, out, 1), 1);
    CHECK_INT(recurrent_all(NULL, many, 3, want), 1);
    CHECK(opd_allclose(out[0], want[0]));
    opd_graph_free(graph);
    CHECK_OK();
}
BODY(backwards) {
    UNUSED();
    opd_tensor *const w = opd_tensor_set_requires_grad(opd_detach(in[2]), true);
    opd_tensor *const with[] = {in[0], in[1], w};
    opd_tensor *loss[1];
    if (recurrent(NULL, with, 3, loss) != 1) { return -1; }
    return opd_autograd_grad(loss, 1, &w, 1, NULL, out) == 0 ? 1 : -1;
}
TEST(backward_in_a_trace_agrees) {
    OPD_SCOPED;
    opd_tensor *const c[] = {number(0.1), numbers(x_values, 4), number(0.7)}, *out[1], *want[1];
    opd_trace_options options;
    memset(&options, 0, sizeof options);
    options.parts = true;
    opd_graph *const graph = opd_graph_trace(backwards, NULL, c, 3, &options);
    CHECK_OK();
    CHECK_INT(opd_graph_run(graph, c, 3, out, 1), 1);
    CHECK_INT(recurrent_by_w(NULL, c, 3, want), 1);
    CHECK(opd_allclose(out[0], want[0]));
    CHECK_INT(occurs(graph, "prim::Loop"), 2);
    opd_graph_free(graph);
}

//-- errors ------------------------------------------------------------------------------------------------------------

BODY(leaks) { UNUSED(); out[0] = opd_assign((opd_tensor **)user, opd_mul(in[0], in[0])); DONE(1); }
BODY(writes) { UNUSED(); (void)opd_add_(in[0], in[0]); out[0] = in[0]; DONE(1); }
BODY(writes_view) { UNUSED(); out[0] = opd_mul_Scalar_(opd_reshape(in[0], OPD_INTS(1)), OPD_V(2)); DONE(1); }
BODY(writes_own) { UNUSED(); out[0] = opd_exp(in[0]); (void)opd_add_(out[0], in[0]); DONE(1); }
BODY(shared) { UNUSED(); out[0] = opd_mul(in[0], *(opd_tensor **)user); DONE(1); }
BODY(wide) { UNUSED(); out[0] = opd_stack(OPD_TENSORS(in[0], in[0]), 0); DONE(1); }
BODY(fails) { UNUSED(); return opd_fail(OPD_ERROR_USER, "the function gives up"); }
BODY(reads) { UNUSED(); out[0] = opd_item_f64(in[0]) > 0 ? in[0] : opd_neg(in[0]); DONE(1); }
static int both(opd_transform_fn then_fn, opd_transform_fn else_fn, void *user, opd_tensor *const *in,
                opd_tensor **out) {
    return opd_cond(opd_gt_Scalar(in[0], OPD_V(1)), then_fn, else_fn, user, in, 1, out, 1);
}
BODY(shares) { opd_tensor *closure = in[1]; (void)user; (void)n; return both(shared, same, &closure, in, out); }
BODY(shares_by) { UNUSED(); return by(firsts, 2, shares, in, n, out); }
BODY(shares_along) { UNUSED(); return along(shares, in, n, out); }
BODY(shares_all) { UNUSED(); return over(two_dims, shares, in + 1, 1, out); }
BODY(wrong) {
    opd_tensor *leak = NULL;
    (void)n;
    switch (*(int *)user) {
    case 0: return both(squared, wide, NULL, in, out);
    case 1: return both(writes, same, NULL, in, out);
    case 2: return both(same, writes_view, NULL, in, out);
    case 3: return both(fails, same, NULL, in, out);
    case 4: return both(same, fails, NULL, in, out);
    case 5: return both(reads, same, NULL, in, out);
    case 6:
        if (both(leaks, leaks, &leak, in, out) == 1) { out[0] = opd_mul(leak, leak); }
        (void)opd_assign(&leak, NULL);
        DONE(1);
    case 7: return shares_by(NULL, in, 2, out);
    case 8: return shares_along(NULL, in, 2, out);
    default: return opd_while(below, wide, NULL, in, 1, in + 1, 1, out, 1);
    }
}
static const char *const texts[] = {
    "opd_cond: output 0 of then_fn is a float64 tensor of sizes [], but that of else_fn is a float64 tensor of sizes "
    "[2]",
    "opd_cond: inside of a trace, aten::add_.Tensor writes into a tensor that the function has not made itself",
    "opd_cond: inside of a trace, aten::mul_.Scalar writes into", "the function gives up", "the function gives up", "",
    "a tensor that a function of opd_cond, opd_while, opd_scan or opd_map has made inside of a trace is used outside",
    "opd_cond: inside of a trace, a function uses a tensor that requires grad or has a tangent, and that is not one of "
    "its inputs", "opd_cond: inside of a trace, a function uses a tensor that requires grad or has a tangent",
    "opd_while: output 0 of body_fn is a float64 tensor of sizes [2], but the value that it replaces is"};
/* Makes the mistake, forgets it, and goes on. */
BODY(goes_on) {
    opd_tensor *ignored[OPD_TRANSFORM_OUTPUTS];
    CHECK_INT(wrong(user, in, n, ignored), -1);
    opd_error_clear();
    out[0] = opd_mul(in[0], in[1]);
    return both(writes_own, same, NULL, out, out);
}
TEST(mistakes_in_a_trace_are_named) {
    for (int k = 0; k < (int)(sizeof texts / sizeof *texts); k++) {
        OPD_SCOPED;
        opd_tensor *in[] = {number(3), number(5)}, *out[1];
        CHECK(!opd_graph_trace(wrong, &k, in, 2, NULL));
        CHECK(!opd_ok());
        CHECK_ERROR(opd_error_code(), texts[k]);
        CHECK(opd_grad_mode_enabled());
        if (k == 6) { continue; }
        in[0] = number(3);
        opd_graph *const graph = opd_graph_trace(goes_on, &k, in, 2, NULL);
        CHECK_OK();
        CHECK_INT(opd_graph_run(graph, in, 2, out, 1), 1);
        if (k != 1 && k != 2) { CHECK_NEAR(opd_item_f64(out[0]), exp(15) + 15, 1e-3); }
        CHECK_INT(occurs(graph, "prim::If"), 1);
        opd_graph_free(graph);
    }
}

TEST(allocations_of_traces_fail) {
    int64_t n = 1, seen = 1, live = 0;
    for (int way = 0; way < 2; way++) {
        for (n = 1; n < 20000; n += n < 40 ? 1 : 29) {
            opd_memory_trim();
            live = opd_memory_stats().live;
            OPD_SCOPE {
                opd_tensor *const in[] = {number(0.1), numbers(x_values, 4), number(0.7)}, *out[3];
                (void)opd_memory_fail_at(n, false);
                opd_graph *const graph = opd_graph_trace(way ? nested : recurrent_by, NULL, in, 3, NULL);
                if (graph) { (void)opd_graph_run(graph, in, 3, out, 3); }
                seen = opd_memory_fail_at(0, false);
                CHECK(opd_ok() || opd_error_code() == OPD_ERROR_MEMORY);
                opd_error_clear();
                opd_graph_free(graph);
            }
            if (n > 300) { CHECK_INT(opd_memory_stats().live, live); }
            if (seen < n) { break; }
        }
        CHECK(n > 100 && n < 20000);
    }
}

CHECK_MAIN()
