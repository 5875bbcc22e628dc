/* Calls that are added to graphs with C values (OPD_GRAPH_CALL): the graph gives the same results as the same calls
   outside of it; mistakes name the operator, the argument and the place, and change nothing. */
#include "../../opdispatch.h"
#include "../check.h"

static char text[8000];

/* Runs a graph of one input on x, and compares with `want`. */
static void check_result(opd_graph *graph, opd_tensor *x, opd_tensor *want) {
    opd_tensor *out[2] = {NULL, NULL};
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_graph_run(graph, &x, 1, out, 2), 1);
    CHECK(opd_ok() && opd_equal(out[0], want));
    CHECK_OK();
}
/* Returns x, 3 by 4. */
static opd_tensor *input(void) {
    return opd_reshape(opd_arange_full(opd_value_int(12), opd_value_dtype(OPD_FLOAT32), OPD_NONE, OPD_NONE, OPD_NONE),
                       OPD_INTS(3, 4));
}

TEST(c_values_become_constants) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *y;
    opd_tensor *in = input(), *weight = opd_full(OPD_INTS(4, 2), opd_value_double(0.5), OPD_FLOAT32);
    y = OPD_GRAPH_CALL(graph, "aten::add.Tensor", x, 2, 3);
    CHECK_OR_RETURN(y);
    y = OPD_GRAPH_CALL(graph, "aten::mul", y, x);
    y = OPD_GRAPH_CALL(graph, "aten::clamp", y, 2, 70.5);
    y = OPD_GRAPH_CALL(graph, "aten::relu", OPD_GRAPH_CALL(graph, "aten::mm", y, weight));
    y = OPD_GRAPH_CALL(graph, "aten::sum", y, OPD_INTS(0), true);
    y = OPD_GRAPH_CALL(graph, "aten::cat", OPD_GRAPH_VALUES(y, y), OPD_GRAPH_NAMED("dim", 1));
    CHECK_OR_RETURN(y);
    opd_graph_output(graph, &y, 1, false);
    opd_tensor *want = opd_mul(opd_add_full(in, opd_full(OPD_INTS(1), opd_value_double(2), OPD_FLOAT32),
                                            opd_value_int(3)), in);
    want = opd_relu(opd_mm(opd_clamp(want, opd_value_int(2), opd_value_double(70.5)), weight));
    want = opd_sum_dim_full(want, OPD_INTS(0), true, OPD_NONE);
    check_result(graph, in, opd_cat(OPD_TENSORS(want, want), 1));
    opd_graph_print(graph, text, sizeof text);
    CHECK(strstr(text, "aten::clamp(") && strstr(text, "70.5"));
    opd_graph_free(graph);
}
TEST(defaults_names_and_converted_numbers) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *y, *none = NULL;
    opd_value value;
    y = OPD_GRAPH_CALL(graph, "aten::softmax.int", OPD_GRAPH_NAMED("dim", -1), OPD_GRAPH_NAMED("self", x));
    CHECK_OR_RETURN(y);
    opd_graph_node *node = opd_graph_value_node(y);
    CHECK(opd_graph_value_constant(opd_graph_node_arg(node, "dtype"), &value) && value.tag == OPD_TAG_NONE);
    CHECK(opd_graph_value_constant(opd_graph_node_arg(node, "dim"), &value) && value.u.i == -1);
    y = OPD_GRAPH_CALL(graph, "aten::sum.dim_IntList", y, 1, 1);     /* int to int[1], int to bool */
    CHECK_OR_RETURN(y);
    node = opd_graph_value_node(y);
    CHECK(opd_graph_value_constant(opd_graph_node_arg(node, "keepdim"), &value) && value.tag == OPD_TAG_BOOL);
    CHECK(opd_graph_value_constant(opd_graph_node_arg(node, "dim"), &value) && value.tag == OPD_TAG_INTS && value.n == 1);
    y = OPD_GRAPH_CALL(graph, "aten::leaky_relu", y, 1);             /* a Scalar stays an int */
    y = OPD_GRAPH_CALL(graph, "aten::dropout", y, 1, false);         /* int to float */
    CHECK_OR_RETURN(y);
    CHECK(opd_graph_value_constant(opd_graph_node_arg(opd_graph_value_node(y), "p"), &value));
    CHECK(value.tag == OPD_TAG_FLOAT && value.u.d == 1);
    y = OPD_GRAPH_CALL(graph, "aten::clamp", y, OPD_NONE, 5);
    y = OPD_GRAPH_CALL(graph, "aten::add", y, OPD_GRAPH_NAMED("alpha", 2), OPD_GRAPH_NAMED("other", 1.5));
    y = OPD_GRAPH_CALL(graph, "aten::to.dtype", y, OPD_FLOAT64, OPD_DEFAULT, OPD_DEFAULT, OPD_NONE);
    CHECK_OR_RETURN(y);
    opd_graph_output(graph, &y, 1, false);
    opd_tensor *in = input(), *want = opd_sum_dim_full(opd_softmax(in, -1), OPD_INTS(1), true, OPD_NONE);
    check_result(graph, in, opd_to_dtype(opd_add_Scalar(want, opd_value_double(3)), OPD_FLOAT64));
    CHECK(none == NULL);
    opd_graph_free(graph);
}
TEST(several_results_and_the_place) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *y = OPD_GRAPH_CALL(graph, "aten::neg", x), *top;
    opd_graph_output(graph, &y, 1, false);
    CHECK_INT(opd_graph_insert_before(graph, y), 0);
    top = OPD_GRAPH_CALL(graph, "aten::max.dim", x, 1);
    CHECK_OR_RETURN(top);
    opd_graph_value *const at = opd_graph_node_output(opd_graph_value_node(top), 1);
    opd_graph_value *const picked = OPD_GRAPH_CALL(graph, "aten::gather", x, 1,
                                                   OPD_GRAPH_CALL(graph, "aten::unsqueeze", at, 1));
    CHECK_OR_RETURN(picked);
    CHECK_INT(opd_graph_set_input(graph, opd_graph_value_node(y), 0, picked), 0);
    opd_tensor *in = input();
    check_result(graph, in, opd_neg(opd_amax(in, OPD_INTS(1), true)));
    opd_graph_free(graph);
}
static void check_refused(opd_graph *graph, opd_graph_value *made, const char *word, const char *second) {
    static char now[8000];
    CHECK(!made && !opd_ok());
    if (!strstr(opd_error_message(), word) || !strstr(opd_error_message(), second)) {
        printf("expected '%s' and '%s': %s\n", word, second, opd_error_message());
        CHECK(!"the error has these words");
    }
    opd_error_clear();
    opd_graph_print(graph, now, sizeof now);
    CHECK_STR(now, text);
}
TEST(mistakes_name_the_argument_and_change_nothing) {
    opd_graph *graph = opd_graph_new(), *other = opd_graph_new();
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *y = OPD_GRAPH_CALL(graph, "aten::relu", x), *nothing = NULL;
    opd_graph_value *foreign = opd_graph_input(other, "z", NULL);
    opd_tensor *leaf = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    opd_graph_arg many[OPD_MAX_ARGS + 1], odd = OPD_GRAPH_V(x);
    opd_graph_output(graph, &y, 1, false);
    opd_graph_print(graph, text, sizeof text);
    opd_graph_insert_before(graph, y);
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add.Tensor", x, "abc"), "argument 'other'", "type 'str'");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add.Tensor", x, "abc"), "aten::add.Tensor",
                  "before the graph's node");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add.Tensor", x), "missing value", "'other'");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::relu", x, 2), "argument 1", "more arguments");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::relu", x, OPD_GRAPH_NAMED("slope", 2)), "'slope'",
                  "no argument of this name");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::relu", x, OPD_GRAPH_NAMED("self", x)), "'self'", "given twice");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add", x, "abc"), "no overload of aten::add", "add.Tensor");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::nothing_here", x), "aten::nothing_here", "");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add", x, y), "value 0", "[argument 1]");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add", x, foreign), "not a value of this graph", "[argument 1]");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add", x, nothing), "NULL", "[argument 1]");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::add", x, leaf), "requires grad", "[argument 1]");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::cat", OPD_GRAPH_VALUES(x, foreign)), "not a value of this graph",
                  "[argument 0]");
    check_refused(graph, OPD_GRAPH_CALL(graph, "aten::sum.dim_IntList", x, OPD_INTS(0), 2), "argument 'keepdim'", "'int'");
    check_refused(graph, opd_graph_call_args(graph, NULL, NULL, 0), "NULL", "");
    check_refused(graph, opd_graph_call_args(graph, "aten::relu", NULL, 1), "NULL", "");
    check_refused(graph, opd_graph_call_args(graph, "aten::relu", many, OPD_MAX_ARGS + 1), "too many", "");
    odd.kind = (opd_graph_arg_kind)7;
    check_refused(graph, opd_graph_call_args(graph, "aten::relu", &odd, 1), "argument 0 has no known kind", "");
    CHECK(!OPD_GRAPH_CALL((opd_graph *)NULL, "aten::relu", x) && !opd_ok());
    opd_error_clear();
    opd_graph_free(graph);
    opd_graph_free(other);
}
static int attempt(void *arg) {
    opd_graph *graph = opd_graph_new();
    opd_graph_value *x = graph ? opd_graph_input(graph, "x", NULL) : NULL, *y;
    (void)arg;
    y = OPD_GRAPH_CALL(graph, "aten::add", x, 2.5, OPD_GRAPH_NAMED("alpha", 2));
    y = OPD_GRAPH_CALL(graph, "aten::cat", OPD_GRAPH_VALUES(y, x), 1);
    y = OPD_GRAPH_CALL(graph, "aten::sum", y, OPD_INTS(0, 1));
    const int rc = y ? 0 : -1;
    opd_graph_free(graph);
    return rc;
}
TEST(memory_that_runs_out_changes_nothing) {
    CHECK(check_allocations(attempt, NULL, "OPD_GRAPH_CALL", 200, false) > 3);
}
CHECK_MAIN()
