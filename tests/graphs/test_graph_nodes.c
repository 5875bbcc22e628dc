/* Graphs that programs read, change, copy, cut, join, compare and rewrite: each function with its results, with the
   mistakes that it names, and with memory that runs out at each allocation. */
#include "../../opdispatch.h"
#include "../check.h"

static char text[8000];

static int layer(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_relu(opd_addmm(in[2], in[0], in[1]));
    return 1;
}
static int two_layers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *next[3];
    next[1] = in[1], next[2] = in[2];
    if (layer(user, in, n, next) < 0) { return -1; }
    out[0] = opd_relu(opd_addmm(in[2], next[0], in[1]));
    out[1] = opd_mul_Scalar(out[0], opd_value_double(0.5));
    return 2;
}
/* Three inputs for the functions above. */
static void inputs(opd_tensor **in) {
    for (int i = 0; i < 3; i++) {
        const int64_t sizes[] = {4, 4};
        in[i] = opd_tensor_new(opd_ints_of(i == 2 ? sizes + 1 : sizes, i == 2 ? 1 : 2), OPD_FLOAT32);
        for (int64_t k = 0; k < opd_numel(in[i]); k++) { opd_data_f32(in[i])[k] = (float)((k * 7 + i * 3) % 11) / 5 - 1; }
    }
}
static opd_graph *traced(opd_transform_fn fn) {
    opd_tensor *in[3];
    inputs(in);
    return opd_graph_trace(fn, NULL, in, 3, NULL);
}
static opd_graph_node *find(const opd_graph *graph, const char *name, int which) {
    opd_graph_node *node = opd_graph_first(graph);
    while (node && (!opd_graph_node_is(node, name) || which--)) { node = opd_graph_next(node); }
    return node;
}
static void check_run(const opd_graph *graph, const opd_graph *other) {
    opd_tensor *in[3], *out[4], *want[4];
    inputs(in);
    const int count = opd_graph_run(other, in, opd_graph_ninputs(other), want, 4);
    CHECK_INT(opd_graph_run(graph, in, opd_graph_ninputs(graph), out, 4), count);
    for (int i = 0; i < count; i++) { CHECK(opd_equal(out[i], want[i])); }
    CHECK_OK();
}

//-- reading -----------------------------------------------------------------------------------------------------------

TEST(nodes_have_operators_arguments_and_results) {
    opd_graph *graph = traced(layer);
    opd_graph_node *addmm = find(graph, "aten::addmm", 0), *relu = find(graph, "aten::relu", 0);
    opd_graph_use uses[2];
    opd_graph_info info;
    opd_value beta;
    CHECK_OR_RETURN(addmm && relu);
    CHECK_INT(opd_graph_node_kind(addmm), OPD_GRAPH_OP);
    CHECK(opd_graph_node_op(addmm) == opd_find("aten::addmm"));
    CHECK(opd_graph_node_is(addmm, "aten::addmm") && !opd_graph_node_is(addmm, "aten::addm"));
    CHECK_INT(opd_graph_node_ninputs(addmm), 5);
    CHECK_INT(opd_graph_node_noutputs(addmm), 1);
    CHECK(opd_graph_node_arg(addmm, "mat1") == opd_graph_input_at(graph, 0));
    CHECK(opd_graph_node_input(addmm, 0) == opd_graph_input_at(graph, 2));
    CHECK(opd_graph_node_arg(relu, "self") == opd_graph_node_output(addmm, 0));
    CHECK(opd_graph_node_output(relu, 0) == opd_graph_output_at(graph, 0));
    CHECK(opd_graph_value_node(opd_graph_node_output(addmm, 0)) == addmm);
    CHECK(opd_graph_value_node(opd_graph_input_at(graph, 0)) == NULL);
    CHECK(opd_graph_value_block(opd_graph_input_at(graph, 0)) == opd_graph_body(graph));
    CHECK(opd_graph_value_block(opd_graph_node_output(relu, 0)) == NULL);
    CHECK(opd_graph_node_inside(relu) == opd_graph_body(graph));
    CHECK(opd_graph_value_constant(opd_graph_node_arg(addmm, "beta"), &beta));
    CHECK_INT(beta.tag == OPD_TAG_INT ? beta.u.i : -1, 1);
    CHECK(!opd_graph_value_constant(opd_graph_input_at(graph, 0), &beta));
    CHECK(opd_graph_value_info(opd_graph_node_output(addmm, 0), &info));
    CHECK_INT(info.dtype, OPD_FLOAT32);
    CHECK(info.sizes.n == 2 && info.sizes.data[0] == 4 && info.strides.data[0] == 4 && !info.requires_grad);
    CHECK_INT(info.device.type, OPD_CPU);
    CHECK_INT(opd_graph_value_tag(opd_graph_node_arg(addmm, "beta")), OPD_TAG_INT);
    CHECK_INT(opd_graph_value_uses(opd_graph_node_output(addmm, 0), uses, 2), 1);
    CHECK(uses[0].node == relu && !uses[0].block && uses[0].index == 0);
    CHECK_INT(opd_graph_value_uses(opd_graph_node_output(relu, 0), uses, 2), 1);
    CHECK(!uses[0].node && uses[0].block == opd_graph_body(graph));
    CHECK_INT(opd_graph_value_uses(opd_graph_node_output(relu, 0), NULL, 0), 1);
    (void)opd_graph_node_name(relu, text, sizeof text);
    CHECK_STR(text, "aten::relu");
    (void)opd_graph_node_print(relu, text, sizeof text);
    CHECK(strstr(text, " : Float(4, 4, strides=[4, 1], requires_grad=0, device=cpu) = aten::relu(%"));
    CHECK(!strchr(text, '\n'));
    CHECK_INT(opd_graph_value_type(opd_graph_node_arg(addmm, "beta"), text, sizeof text), 3);
    CHECK_STR(text, "int");
    (void)opd_graph_value_name(opd_graph_input_at(graph, 0), text, sizeof text);
    CHECK(opd_graph_find(graph, text) == opd_graph_input_at(graph, 0));
    CHECK(!opd_graph_node_place(relu) && !opd_graph_node_has_effects(relu) && !opd_graph_node_nblocks(relu));
    CHECK_OK();
    opd_graph_free(graph);
}
TEST(constants_are_values_of_any_size) {
    opd_graph *graph = opd_graph_new();
    opd_tensor *big = opd_full(OPD_INTS(300), opd_value_double(2.5), OPD_FLOAT32);
    opd_graph_value *x = opd_graph_input(graph, "x", NULL), *v[2], *y;
    const int64_t dims[] = {0, 2};
    opd_value value;
    v[0] = x, v[1] = opd_graph_constant(graph, opd_value_tensor(big));
    CHECK(opd_graph_value_constant(v[1], &value) && value.u.t == big);
    CHECK_INT(opd_graph_call(graph, "aten::add.Tensor", v, 2, &y, 1), 1);
    v[0] = y, v[1] = opd_graph_constant(graph, opd_value_ints(dims, 2));
    CHECK(opd_graph_value_constant(v[1], &value) && value.tag == OPD_TAG_INTS && value.n == 2);
    CHECK_INT(value.u.ints[1], 2);
    CHECK(opd_graph_value_constant(opd_graph_constant(graph, opd_value_str("abc")), &value));
    CHECK_STR(value.u.s, "abc");
    opd_graph_free(graph);
}
static const char blocks[] =
    "graph(%x : Tensor, %c : bool, %n : int):\n"
    "  %t : bool = prim::Constant[value=1]()\n"
    "  %y : Tensor = prim::If(%c)\n"
    "    block0():\n"
    "      %a : Tensor = aten::relu(%x)\n"
    "      -> (%a)\n"
    "    block1():\n"
    "      %b : Tensor = aten::neg(%x)\n"
    "      -> (%b)\n"
    "  %z : Tensor = prim::Loop(%n, %t, %y)\n"
    "    block0(%i : int, %k : Tensor):\n"
    "      %m : Tensor = aten::mul(%k, %x)\n"
    "      -> (%t, %m)\n"
    "  return (%z)\n";
TEST(blocks_of_conditions_and_loops_are_read) {
    opd_graph *graph = opd_graph_parse(blocks);
    opd_graph_node *branch = find(graph, "prim::If", 0), *loop = find(graph, "prim::Loop", 0);
    opd_graph_use uses[8];
    CHECK_OR_RETURN(branch && loop);
    CHECK_INT(opd_graph_node_kind(branch), OPD_GRAPH_IF);
    CHECK_INT(opd_graph_node_nblocks(branch), 2);
    opd_graph_node *relu = opd_graph_block_first(opd_graph_node_block(branch, 0));
    CHECK(opd_graph_node_is(relu, "aten::relu") && opd_graph_next(branch) == relu);
    CHECK(opd_graph_next(relu) == opd_graph_block_first(opd_graph_node_block(branch, 1)));
    CHECK(opd_graph_next(opd_graph_next(relu)) == loop);
    CHECK(opd_graph_block_owner(opd_graph_node_inside(relu)) == branch);
    CHECK(opd_graph_block_output(opd_graph_node_block(branch, 0), 0) == opd_graph_node_output(relu, 0));
    opd_graph_block *body = opd_graph_node_block(loop, 0);
    CHECK_INT(opd_graph_block_ninputs(body), 2);
    CHECK_INT(opd_graph_block_noutputs(body), 2);
    CHECK(opd_graph_value_block(opd_graph_block_input(body, 1)) == body);
    CHECK_INT(opd_graph_block_ninputs(opd_graph_body(graph)), 3);
    CHECK(opd_graph_block_output(opd_graph_body(graph), 0) == opd_graph_node_output(loop, 0));
    CHECK_INT(opd_graph_value_uses(opd_graph_find(graph, "x"), uses, 8), 3);
    CHECK_INT(opd_graph_value_uses(opd_graph_node_output(relu, 0), uses, 8), 1);
    CHECK(!uses[0].node && opd_graph_block_owner(uses[0].block) == branch);
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_OK();
    opd_graph_free(graph);
}
TEST(what_is_not_there_is_an_error) {
    opd_graph *graph = traced(layer);
    opd_graph_node *relu = find(graph, "aten::relu", 0);
    CHECK(!opd_graph_input_at(graph, 3));
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_input_at: there is no input 3: there are 3");
    CHECK(!opd_graph_output_at(graph, -1));
    CHECK_ERROR(OPD_ERROR_INDEX, "there is no output -1: there are 1");
    CHECK(!opd_graph_node_input(relu, 1));
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_node_input: there is no input 1");
    CHECK(!opd_graph_node_output(relu, 1));
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_node_output: there is no output 1");
    CHECK(!opd_graph_node_arg(relu, "other"));
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "opd_graph_node_arg: aten::relu has no argument 'other'");
    CHECK(!opd_graph_node_block(relu, 0));
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_node_block: there is no block 0: there are 0");
    CHECK(!opd_graph_block_input(opd_graph_body(graph), 7));
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_block_input: there is no input 7");
    CHECK(!opd_graph_block_output(opd_graph_body(graph), 1));
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_block_output: there is no output 1");
    CHECK(!opd_graph_first(NULL) && !opd_graph_next(NULL) && !opd_graph_node_op(NULL) && !opd_graph_body(NULL));
    CHECK(!opd_graph_node_is(NULL, "x") && !opd_graph_node_is(relu, NULL) && !opd_graph_value_node(NULL));
    CHECK(!opd_graph_node_name(NULL, text, 9) && !opd_graph_value_name(NULL, text, 9) && !opd_graph_value_uses(NULL, NULL, 0));
    CHECK(!opd_graph_value_info(NULL, NULL) && !opd_graph_value_constant(NULL, NULL) && !opd_graph_block_ninputs(NULL));
    CHECK(!opd_graph_node_print(NULL, NULL, 0) && !opd_graph_value_type(NULL, NULL, 0) && !opd_graph_block_first(NULL));
    CHECK_OK();
    opd_graph_free(graph);
}

//-- changing ----------------------------------------------------------------------------------------------------------

TEST(uses_of_a_value_are_replaced) {
    opd_graph *graph = traced(layer), *want;
    opd_graph_value *relu = opd_graph_output_at(graph, 0), *tanh, *half, *v[2];
    CHECK_INT(opd_graph_insert_after(graph, relu), 0);
    CHECK_INT(opd_graph_call(graph, "aten::tanh", &relu, 1, &tanh, 1), 1);
    v[0] = tanh, v[1] = opd_graph_constant(graph, opd_value_double(0.5));
    CHECK_INT(opd_graph_call(graph, "aten::mul.Scalar", v, 2, &half, 1), 1);
    CHECK_INT(opd_graph_replace(graph, relu, half), 1);              /* not the use by tanh */
    CHECK(opd_graph_output_at(graph, 0) == half);
    want = opd_graph_parse("graph(%x : Tensor, %w : Tensor, %b : Tensor):\n  %1 : int = prim::Constant[value=1]()\n"
                           "  %h : float = prim::Constant[value=0.5]()\n"
                           "  %y : Tensor = aten::addmm(%b, %x, %w, %1, %1)\n  %z : Tensor = aten::relu(%y)\n"
                           "  %t : Tensor = aten::tanh(%z)\n  %r : Tensor = aten::mul(%t, %h)\n  return (%r)\n");
    check_run(graph, want);
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_graph_replace(graph, tanh, relu), 1);              /* removes tanh again */
    CHECK_INT(opd_graph_erase_node(graph, opd_graph_value_node(tanh)), 0);
    CHECK(!find(graph, "aten::tanh", 0) && opd_graph_value_node(tanh) == NULL);
    CHECK_INT(opd_graph_set_input(graph, opd_graph_value_node(half), 0, opd_graph_input_at(graph, 0)), 0);
    CHECK_INT(opd_graph_dce(graph), 4);
    CHECK_INT(opd_graph_count(graph, "aten::addmm"), 0);
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_OK();
    opd_graph_free(graph);
    opd_graph_free(want);
}
TEST(several_outputs_are_replaced_one_by_one) {
    opd_graph *graph = traced(two_layers);
    opd_graph_value *half = opd_graph_output_at(graph, 1), *x = opd_graph_input_at(graph, 0);
    opd_graph_use use[1];
    CHECK_INT(opd_graph_replace(graph, half, x), 1);
    CHECK(opd_graph_output_at(graph, 1) == x);
    CHECK_INT(opd_graph_value_uses(x, use, 1), 2);
    opd_graph_value *both = opd_graph_node_output(find(graph, "prim::TupleConstruct", 0), 0);
    CHECK_INT(opd_graph_replace(graph, both, x), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "but the value before has the type (Tensor, Tensor)");
    opd_tensor *in[3], *out[2];
    inputs(in);
    CHECK_INT(opd_graph_run(graph, in, 3, out, 2), 2);
    CHECK(opd_equal(out[1], in[0]));
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
}
TEST(values_in_blocks_are_replaced_and_nodes_added) {
    opd_graph *graph = opd_graph_parse(blocks);
    opd_graph_value *a = opd_graph_find(graph, "a"), *x = opd_graph_find(graph, "x"), *b = opd_graph_find(graph, "b"), *y;
    CHECK_INT(opd_graph_replace(graph, b, a), -1);                   /* of the other block */
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_replace: the new value is computed after this use, or in an inner block "
                "[in the graph's node %y = prim::If");
    CHECK_INT(opd_graph_insert_before(graph, a), 0);
    CHECK_INT(opd_graph_call(graph, "aten::exp", &x, 1, &y, 1), 1);
    CHECK(opd_graph_block_owner(opd_graph_node_inside(opd_graph_value_node(y))) == find(graph, "prim::If", 0));
    CHECK_INT(opd_graph_replace(graph, a, y), 1);
    CHECK_INT(opd_graph_erase_node(graph, opd_graph_value_node(a)), 0);
    CHECK_INT(opd_graph_insert_after(graph, opd_graph_find(graph, "k")), 0);     /* at the beginning of the loop's block */
    CHECK_INT(opd_graph_call(graph, "aten::neg", &x, 1, &y, 1), 1);
    CHECK(opd_graph_block_first(opd_graph_node_block(find(graph, "prim::Loop", 0), 0)) == opd_graph_value_node(y));
    CHECK_INT(opd_graph_insert_before(graph, NULL), 0);
    CHECK_INT(opd_graph_call(graph, "aten::neg", &y, 1, &y, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "value 0 is made after the place where nodes are inserted, or in an inner block");
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_graph_erase(graph, opd_graph_find(graph, "i")), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the value is an input of a block, which cannot be removed");
    opd_graph_free(graph);
}
TEST(wrong_changes_name_the_node_and_change_nothing) {
    opd_graph *graph = traced(two_layers), *other = traced(layer), *before = opd_graph_copy(graph);
    opd_graph_node *addmm = find(graph, "aten::addmm", 0), *relu = find(graph, "aten::relu", 1);
    opd_graph_value *beta = opd_graph_node_arg(addmm, "beta"), *x = opd_graph_input_at(graph, 0);
    opd_graph_value *late = opd_graph_node_output(relu, 0), *foreign = opd_graph_input_at(other, 0);
    CHECK_INT(opd_graph_replace(graph, x, beta), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_replace: the new value has the type int, but argument 'mat1' takes Tensor "
                "[in the graph's node");
    CHECK_INT(opd_graph_replace(graph, x, late), 0);                 /* all uses of x lead to it */
    CHECK_INT(opd_graph_replace(graph, beta, x), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument 'beta' takes Scalar");
    CHECK_INT(opd_graph_replace(graph, x, foreign), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_replace: the new value is a value of another graph");
    CHECK_INT(opd_graph_replace(graph, NULL, x), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_replace: the value is NULL");
    CHECK_INT(opd_graph_replace(NULL, x, x), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_replace: the graph is NULL");
    CHECK_INT(opd_graph_set_input(graph, addmm, 1, late), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_set_input: the new value is computed after this use");
    CHECK_INT(opd_graph_set_input(graph, addmm, 5, x), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "opd_graph_set_input: there is no input 5: the node has 5");
    CHECK_INT(opd_graph_set_input(graph, opd_graph_first(other), 0, x), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_set_input: the node is a node of another graph");
    CHECK_INT(opd_graph_erase_node(graph, addmm), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, " is still used [in the graph's node");
    CHECK_INT(opd_graph_erase_node(graph, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_erase_node: the node is NULL");
    CHECK(opd_graph_equal(graph, before));
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_graph_check(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_check: the graph is NULL");
    opd_graph_free(graph);
    opd_graph_free(other);
    opd_graph_free(before);
}
TEST(a_loop_over_nodes_may_remove_and_add_them) {
    opd_graph *graph = traced(two_layers);
    int seen = 0;
    for (opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
        opd_graph_value *self, *y;
        if (!opd_graph_node_is(node, "aten::relu")) { continue; }
        self = opd_graph_node_input(node, 0);
        CHECK_INT(opd_graph_insert_after(graph, opd_graph_node_output(node, 0)), 0);
        CHECK_INT(opd_graph_call(graph, "aten::tanh", &self, 1, &y, 1), 1);
        CHECK_INT(opd_graph_replace(graph, opd_graph_node_output(node, 0), y), 1 + seen);
        CHECK_INT(opd_graph_erase_node(graph, node), 0);
        seen++;
    }
    CHECK_INT(seen, 2);
    CHECK_INT(opd_graph_count(graph, "aten::tanh"), 2);
    CHECK_INT(opd_graph_count(graph, "aten::relu"), 0);
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
}

TEST(sizes_and_dtypes_are_computed_anew) {
    opd_graph *graph = traced(two_layers);
    opd_graph_value *half = opd_graph_output_at(graph, 1), *relu = opd_graph_output_at(graph, 0), *v[2], *y;
    opd_graph_info info;
    opd_tensor *in[3];
    inputs(in);
    v[0] = relu;
    CHECK_INT(opd_graph_insert_after(graph, relu), 0);
    v[1] = opd_graph_constant(graph, opd_value_int(OPD_FLOAT64));
    CHECK_INT(opd_graph_call(graph, "aten::_to_copy", v, 2, &y, 1), 1);
    CHECK(!opd_graph_value_info(y, &info));
    CHECK(opd_graph_replace(graph, relu, y) > 0);
    in[0] = opd_tensor_new(OPD_INTS(7, 4), OPD_FLOAT32);
    CHECK_INT(opd_graph_infer(graph, in, 3), 0);
    CHECK(opd_graph_value_info(half, &info) && info.dtype == OPD_FLOAT64);
    CHECK(info.sizes.n == 2 && info.sizes.data[0] == 7 && info.device.type == OPD_CPU);
    CHECK(opd_graph_value_info(opd_graph_input_at(graph, 0), &info) && info.sizes.data[0] == 7);
    in[0] = opd_tensor_new(OPD_INTS(7, 5), OPD_FLOAT32);
    CHECK_INT(opd_graph_infer(graph, in, 3), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "[in the graph's node");
    CHECK(opd_graph_value_info(half, &info) && info.sizes.data[0] == 7);
    CHECK_INT(opd_graph_infer(graph, in, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_infer: expected 3 inputs but got 2");
    CHECK_INT(opd_graph_infer(NULL, in, 3), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_infer: the graph is NULL");
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
}

//-- copies, parts, comparisons ----------------------------------------------------------------------------------------

TEST(copies_are_equal_and_independent) {
    for (int k = 0; k < 2; k++) {
        opd_graph *graph = k ? opd_graph_parse(blocks) : traced(two_layers), *copy = opd_graph_copy(graph);
        static char first[8000];
        CHECK(copy != NULL);
        (void)opd_graph_print(graph, first, sizeof first);
        (void)opd_graph_print(copy, text, sizeof text);
        CHECK_STR(text, first);
        CHECK(opd_graph_equal(graph, copy));
        CHECK(opd_graph_hash(graph) == opd_graph_hash(copy));
        CHECK_INT(opd_graph_check(copy), 0);
        if (!k) { check_run(copy, graph); }
        opd_graph_value *x = opd_graph_input_at(copy, 0), *y;
        CHECK_INT(opd_graph_insert_after(copy, x), 0);
        CHECK_INT(opd_graph_call(copy, "aten::neg", &x, 1, &y, 1), 1);
        CHECK(opd_graph_replace(copy, x, y) > 0);
        CHECK(!opd_graph_equal(graph, copy));
        CHECK(opd_graph_hash(graph) != opd_graph_hash(copy));
        (void)opd_graph_print(graph, text, sizeof text);
        CHECK_STR(text, first);
        opd_graph_free(graph);
        CHECK_INT(opd_graph_check(copy), 0);
        opd_graph_free(copy);
    }
    CHECK(!opd_graph_copy(NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_copy: the graph is NULL");
    CHECK(!opd_graph_equal(NULL, NULL) && !opd_graph_hash(NULL));
}
TEST(equal_graphs_differ_in_names_only) {
    static const char *const texts[] = {
        "graph(%x : Tensor):\n  %n : int = prim::Constant[value=2]()\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n",
        "graph(%a : Tensor):\n  %b : int = prim::Constant[value=2]()\n  %c : Tensor = aten::mul(%a, %b)\n  return (%c)\n",
        "graph(%x : Tensor):\n  %n : int = prim::Constant[value=3]()\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n",
        "graph(%x : Tensor):\n  %n : float = prim::Constant[value=2.]()\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n",
        "graph(%x : Tensor):\n  %n : int = prim::Constant[value=2]()\n  %y : Tensor = aten::sub(%x, %n, %n)\n  return (%y)\n",
        "graph(%x : Tensor):\n  %n : int = prim::Constant[value=2]()\n  %y : Tensor = aten::mul(%x, %n)\n  return (%x)\n",
        "graph(%x : Tensor, %z : Tensor):\n  %n : int = prim::Constant[value=2]()\n  %y : Tensor = aten::mul(%x, %n)\n  return (%y)\n"};
    opd_graph *graphs[7];
    for (int i = 0; i < 7; i++) { graphs[i] = opd_graph_parse(texts[i]); }
    CHECK_OK();
    for (int i = 0; i < 7; i++) {
        for (int k = 0; k < 7; k++) {
            const bool same = i == k || i + k == 1;
            CHECK_INT(opd_graph_equal(graphs[i], graphs[k]), same);
            if (same) { CHECK(opd_graph_hash(graphs[i]) == opd_graph_hash(graphs[k])); }
        }
    }
    for (int i = 0; i < 7; i++) { opd_graph_free(graphs[i]); }
}
TEST(parts_are_extracted_and_inlined) {
    opd_graph *graph = traced(two_layers), *copy = opd_graph_copy(graph);
    opd_graph_value *in[3], *ends[2], *results[2];
    in[0] = opd_graph_node_output(find(graph, "aten::relu", 0), 0);
    in[1] = opd_graph_input_at(graph, 1), in[2] = opd_graph_input_at(graph, 2);
    ends[0] = opd_graph_output_at(graph, 0), ends[1] = opd_graph_output_at(graph, 1);
    opd_graph *part = opd_graph_extract(graph, in, 3, ends, 2);
    CHECK_OR_RETURN(part != NULL);
    CHECK_INT(opd_graph_ninputs(part), 3);
    CHECK_INT(opd_graph_noutputs(part), 2);
    CHECK_INT(opd_graph_count(part, "aten::addmm"), 1);
    CHECK_INT(opd_graph_count(part, "aten::mul"), 1);
    CHECK_INT(opd_graph_check(part), 0);
    CHECK(opd_graph_equal(graph, copy));
    CHECK_INT(opd_graph_insert_after(graph, in[0]), 0);
    CHECK_INT(opd_graph_describe(part, opd_graph_output_at(part, 0), "inner", NULL), 0);
    CHECK_INT(opd_graph_inline(graph, part, in, 3, results, 2), 2);
    CHECK(opd_graph_find(graph, "inner") == results[0]);
    CHECK_STR(opd_graph_node_place(opd_graph_value_node(results[0])),
              opd_graph_node_place(opd_graph_value_node(opd_graph_output_at(part, 0))));
    CHECK_INT(opd_graph_inline(graph, part, in, 3, results, 2), 2);
    CHECK(opd_graph_find(graph, "inner.1") == results[0]);
    for (int i = 0; i < 2; i++) { CHECK(opd_graph_replace(graph, ends[i], results[i]) > 0); }
    CHECK(opd_graph_dce(graph) > 0);
    CHECK_INT(opd_graph_count(graph, "aten::addmm"), 2);
    CHECK_INT(opd_graph_check(graph), 0);
    check_run(graph, copy);
    CHECK(!opd_graph_extract(graph, in, 1, results, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is used, but is no input [in the graph's node");
    CHECK(!opd_graph_extract(graph, in, 3, results, 0));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_extract: there are no outputs");
    in[1] = in[0];
    CHECK(!opd_graph_extract(graph, in, 3, results, 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_extract: input 1 is given twice");
    CHECK(!opd_graph_extract(graph, in, 1, &in[2], 1));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "output 0 is an input of the graph, but no input of the part");
    CHECK_INT(opd_graph_inline(graph, part, in, 2, results, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_inline: the inner graph has 3 inputs, but 2 arguments were given");
    CHECK_INT(opd_graph_inline(graph, graph, in, 3, results, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a graph cannot be inlined into itself");
    in[1] = opd_graph_node_arg(find(graph, "aten::addmm", 0), "beta");
    CHECK_INT(opd_graph_inline(graph, part, in, 3, results, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "value 1 has the type int, but the input has the type Tensor");
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
    opd_graph_free(copy);
    opd_graph_free(part);
}
/* y = x + 1; v is a view of y; writes into v change y and into x do not; the part has the writes that it needs. */
TEST(a_part_has_the_writes_to_its_values) {
    opd_graph *graph = opd_graph_parse(
        "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  %0 : int = prim::Constant[value=0]()\n"
        "  %y : Tensor = aten::add(%x, %1, %1)\n  %v : Tensor = aten::select(%y, %0, %0)\n"
        "  %a : Tensor = aten::mul_(%v, %0)\n  %c : Tensor = aten::neg(%x)\n  %d : Tensor = aten::add_(%c, %1, %1)\n"
        "  %z : Tensor = aten::exp(%y)\n  return (%z)\n");
    opd_graph_value *x = opd_graph_find(graph, "x"), *z = opd_graph_find(graph, "z"), *y = opd_graph_find(graph, "y");
    opd_graph *part = opd_graph_extract(graph, &x, 1, &z, 1), *rest = opd_graph_extract(graph, &y, 1, &z, 1);
    CHECK_INT(opd_graph_count(part, "aten::mul_"), 1);
    CHECK_INT(opd_graph_count(part, "aten::add_"), 0);
    CHECK_INT(opd_graph_count(rest, "aten::mul_"), 1);               /* it comes after y */
    CHECK_INT(opd_graph_count(rest, "aten::add"), 0);
    opd_tensor *in[1], *out[1], *want[1];
    in[0] = opd_full(OPD_INTS(2), opd_value_double(0.5), OPD_FLOAT32);
    CHECK_INT(opd_graph_run(graph, in, 1, want, 1), 1);
    CHECK_INT(opd_graph_run(part, in, 1, out, 1), 1);
    CHECK(opd_equal(out[0], want[0]));
    CHECK_NEAR(opd_data_f32(out[0])[0], 1, 0);
    opd_graph_free(graph);
    opd_graph_free(part);
    opd_graph_free(rest);
}

//-- rewriting ---------------------------------------------------------------------------------------------------------

static int addmm_relu(opd_call *call) {
    return opd_return_tensor(call, opd_relu(opd_addmm(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                      opd_arg_tensor(call, 2))));
}
OPD_LIBRARY(nodes, lib) {
    opd_op_desc desc = {0};
    desc.schema = "addmm_relu(Tensor b, Tensor x, Tensor w) -> Tensor";
    desc.composite = addmm_relu;
    opd_define(lib, &desc);
}
static int fused(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    static opd_op *op;
    out[0] = OPD_CALL(OPD_OP(&op, "nodes::addmm_relu"), in[2], in[0], in[1]);
    return 1;
}
static bool is_first(void *user, const opd_match *match) {
    const opd_graph *const pattern = (const opd_graph *)user;
    return opd_graph_value_node(opd_match_value(match, opd_graph_input_at(pattern, 0))) == NULL;
}
TEST(a_pattern_is_replaced_wherever_it_stands) {
    opd_graph *graph = traced(two_layers), *copy = opd_graph_copy(graph), *pattern = traced(layer), *by = traced(fused);
    opd_rewrite_options options = {is_first, NULL, pattern, false};
    OPD_USE_LIBRARY(nodes);
    CHECK_INT(opd_graph_rewrite(copy, pattern, by, &options), 1);
    CHECK_INT(opd_graph_count(copy, "aten::addmm"), 1);
    check_run(copy, graph);
    CHECK_INT(opd_graph_rewrite(copy, pattern, by, NULL), 1);
    CHECK_INT(opd_graph_count(copy, "aten::addmm"), 0);
    CHECK_INT(opd_graph_count(copy, "nodes::addmm_relu"), 2);
    CHECK_INT(opd_graph_rewrite(copy, pattern, by, NULL), 0);
    CHECK_INT(opd_graph_check(copy), 0);
    check_run(copy, graph);
    opd_graph_free(copy);
    copy = opd_graph_copy(graph);
    opd_graph_value *inside = opd_graph_node_output(find(copy, "aten::addmm", 1), 0);
    CHECK_INT(opd_graph_replace(copy, opd_graph_output_at(copy, 1), inside), 1);         /* a second user */
    CHECK_INT(opd_graph_rewrite(copy, pattern, by, NULL), 1);
    opd_graph_free(graph);
    opd_graph_free(copy);
    opd_graph_free(pattern);
    opd_graph_free(by);
}
static int make_half(void *user, opd_graph *graph, const opd_match *match, opd_graph_value **results) {
    opd_graph *const pattern = (opd_graph *)user;
    opd_graph_value *v[2];
    opd_value number = opd_value_none();
    (void)opd_graph_value_constant(opd_match_value(match, opd_graph_find(pattern, "n")), &number);
    v[0] = opd_match_value(match, opd_graph_find(pattern, "x"));
    v[1] = opd_graph_constant(graph, opd_value_double(number.u.d / 2));
    return opd_graph_call(graph, "aten::mul.Scalar", v, 2, results, 1) == 1 ? 0 : -1;
}
static int make_nothing(void *user, opd_graph *graph, const opd_match *match, opd_graph_value **results) {
    opd_graph_value *v[1];
    (void)user;
    v[0] = opd_match_value(match, opd_graph_input_at((opd_graph *)user, 0));
    results[0] = NULL;
    return opd_graph_call(graph, "aten::neg", v, 1, v, 1) == 1 ? 0 : -1;
}
static bool when_erases(void *user, const opd_match *match) {
    opd_graph *const graph = (opd_graph *)user;
    (void)opd_graph_replace(graph, opd_graph_output_at(graph, 0), opd_graph_input_at(graph, 0));
    return match && opd_graph_dce(graph) >= 0;
}
/* Lets the users of the match's output use what it makes, and then fails. */
static int make_and_use(void *user, opd_graph *graph, const opd_match *match, opd_graph_value **results) {
    opd_graph *const pattern = (opd_graph *)user;
    opd_graph_value *value = opd_match_value(match, opd_graph_input_at(pattern, 0));
    (void)opd_graph_call(graph, "aten::neg", &value, 1, results, 1);
    (void)opd_graph_replace(graph, opd_match_value(match, opd_graph_output_at(pattern, 0)), results[0]);
    return opd_fail(OPD_ERROR_USER, "no more");
}
TEST(functions_that_change_the_graph_which_is_rewritten) {
    opd_graph *graph = opd_graph_parse("graph(%x : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::relu(%a)\n"
                                       "  return (%b)\n"), *copy = opd_graph_copy(graph);
    opd_graph *pattern = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
    opd_rewrite_options options = {when_erases, NULL, graph, false};
    CHECK_INT(opd_graph_rewrite(graph, pattern, pattern, &options), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_rewrite: the function `when` has changed the graph");
    CHECK_INT(opd_graph_check(graph), 0);
    options.when = NULL;
    options.make = make_and_use;
    options.user = pattern;
    CHECK_INT(opd_graph_rewrite(copy, pattern, NULL, &options), -1);
    CHECK_ERROR(OPD_ERROR_USER, "no more");
    CHECK_INT(opd_graph_check(copy), 0);
    CHECK_INT(opd_graph_count(copy, "aten::neg"), 1);
    opd_graph_free(graph);
    opd_graph_free(copy);
    opd_graph_free(pattern);
}
TEST(a_function_makes_what_takes_the_place) {
    opd_graph *graph = traced(two_layers), *before;
    opd_graph *any = opd_graph_parse("graph(%x : Tensor):\n  %n : float = prim::Constant[value=7.]()\n"
                                     "  %y : Tensor = aten::mul.Scalar(%x, %n)\n  return (%y)\n");
    opd_rewrite_options options = {NULL, make_half, any, false};
    CHECK_INT(opd_graph_rewrite(graph, any, NULL, &options), 0);     /* 7 is not 0.5 */
    options.ignore_constants = true;
    CHECK_INT(opd_graph_rewrite(graph, any, NULL, &options), 1);
    opd_value number;
    CHECK(opd_graph_value_constant(opd_graph_node_input(find(graph, "aten::mul", 0), 1), &number));
    CHECK_NEAR(number.u.d, 0.25, 0);
    before = opd_graph_copy(graph);
    options.make = make_nothing;
    CHECK_INT(opd_graph_rewrite(graph, any, NULL, &options), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_rewrite: a result of `make` is NULL");
    CHECK(opd_graph_equal(graph, before));
    CHECK_INT(opd_graph_check(graph), 0);
    opd_graph_free(graph);
    opd_graph_free(before);
    opd_graph_free(any);
}
/* Between the nodes of the second match stands a write that the first replacement has added; and a list to which another
   node appends is not the list of a pattern. */
TEST(patterns_and_writes_that_come_with_replacements) {
    opd_graph *graph = opd_graph_parse(
        "graph(%x : Tensor):\n  %a : Tensor = aten::exp(%x)\n  %b : Tensor = aten::exp(%x)\n"
        "  %c : Tensor = aten::log(%a)\n  %d : Tensor = aten::log(%b)\n  %m : Tensor = aten::mul(%c, %d)\n  return (%m)\n");
    opd_graph *pair = opd_graph_parse("graph(%x : Tensor):\n  %e : Tensor = aten::exp(%x)\n  %l : Tensor = aten::log(%e)\n"
                                      "  return (%l)\n");
    opd_graph *writes = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::sin_(%x)\n  return (%y)\n");
    opd_graph *appends = opd_graph_parse(
        "graph(%x : Tensor):\n  %0 : int = prim::Constant[value=0]()\n  %1 : int = prim::Constant[value=1]()\n"
        "  %l : int[] = prim::ListConstruct(%0)\n  %m : int[] = aten::append(%l, %1)\n"
        "  %b : Tensor = aten::permute(%x, %l)\n  return (%b)\n");
    opd_graph *permute = opd_graph_parse(
        "graph(%x : Tensor):\n  %0 : int = prim::Constant[value=0]()\n  %l : int[] = prim::ListConstruct(%0)\n"
        "  %b : Tensor = aten::permute(%x, %l)\n  return (%b)\n");
    opd_graph *first = opd_graph_parse("graph(%x : Tensor):\n  return (%x)\n");
    CHECK_OK();
    CHECK_INT(opd_graph_rewrite(graph, pair, writes, NULL), 1);
    CHECK_INT(opd_graph_rewrite(appends, permute, first, NULL), 0);
    CHECK_OK();
    opd_graph_free(graph);
    opd_graph_free(pair);
    opd_graph_free(writes);
    opd_graph_free(appends);
    opd_graph_free(permute);
    opd_graph_free(first);
}
TEST(patterns_with_two_outputs_and_with_writes_between) {
    static const char between[] =
        "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n  %e : Tensor = aten::exp(%x)\n"
        "  %w : Tensor = aten::add_(%x, %1, %1)\n  %l : Tensor = aten::log(%e)\n  return (%l)\n";
    opd_graph *graph = opd_graph_parse("graph(%x : Tensor):\n  %s : Tensor = aten::sin(%x)\n  %c : Tensor = aten::cos(%x)\n"
                                       "  %m : Tensor = aten::mul(%s, %c)\n  return (%m)\n");
    opd_graph *two = opd_graph_parse("graph(%x : Tensor):\n  %s : Tensor = aten::sin(%x)\n  %c : Tensor = aten::cos(%x)\n"
                                     "  %r : (Tensor, Tensor) = prim::TupleConstruct(%s, %c)\n  return (%r)\n");
    opd_graph *swapped = opd_graph_parse("graph(%x : Tensor):\n  %s : Tensor = aten::neg(%x)\n  %c : Tensor = aten::exp(%x)\n"
                                         "  %r : (Tensor, Tensor) = prim::TupleConstruct(%s, %c)\n  return (%r)\n");
    opd_graph *pair = opd_graph_parse("graph(%x : Tensor):\n  %e : Tensor = aten::exp(%x)\n  %l : Tensor = aten::log(%e)\n"
                                      "  return (%l)\n");
    opd_graph *one = opd_graph_parse("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
    opd_graph *written = opd_graph_parse(between);
    CHECK_OK();
    CHECK_INT(opd_graph_rewrite(graph, two, swapped, NULL), 1);
    CHECK_INT(opd_graph_count(graph, "aten::neg"), 1);
    CHECK_INT(opd_graph_count(graph, "aten::sin"), 0);
    CHECK_INT(opd_graph_check(graph), 0);
    CHECK_INT(opd_graph_rewrite(written, pair, one, NULL), 0);       /* relu would read x after the write */
    CHECK_INT(opd_graph_rewrite(graph, two, one, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pattern has 1 inputs and 2 outputs, but the replacement has 1 and 1");
    CHECK_INT(opd_graph_rewrite(graph, NULL, one, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_graph_rewrite: the pattern is NULL");
    CHECK_INT(opd_graph_rewrite(graph, pair, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "give a replacement, or a function `make`");
    CHECK_INT(opd_graph_rewrite(graph, written, one, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a node of the pattern does not lead to an output [in the graph's node %w = aten::add_");
    CHECK_INT(opd_graph_rewrite(graph, graph, one, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the graph is its own pattern");
    CHECK(!opd_match_value(NULL, NULL));
    opd_graph_free(graph);
    opd_graph_free(two);
    opd_graph_free(swapped);
    opd_graph_free(pair);
    opd_graph_free(one);
    opd_graph_free(written);
}

//-- memory ------------------------------------------------------------------------------------------------------------

/* Does one of each change, and returns whether all succeeded. */
static bool all_changes(opd_graph *graph, const opd_graph *pattern, const opd_graph *by) {
    opd_graph_use uses[4];
    opd_graph_value *x = opd_graph_input_at(graph, 0), *y, *out;
    opd_graph *copy = opd_graph_copy(graph), *part;
    bool done = copy != NULL && opd_graph_value_uses(x, uses, 4) >= 0 && opd_graph_equal(graph, copy);
    if (done) {
        x = opd_graph_input_at(copy, 0);
        done = opd_graph_rewrite(copy, pattern, by, NULL) == 2 && opd_graph_insert_after(copy, x) == 0 &&
            opd_graph_call(copy, "aten::neg", &x, 1, &y, 1) == 1 && opd_graph_replace(copy, x, y) >= 0;
    }
    if (done) {
        opd_graph_value *in[3];
        for (int i = 0; i < 3; i++) { in[i] = opd_graph_input_at(copy, i); }
        out = opd_graph_output_at(copy, 0);
        part = opd_graph_extract(copy, in, 3, &out, 1);
        done = part && opd_graph_inline(copy, part, in, 3, &out, 1) == 1;
        opd_graph_free(part);
    }
    if (copy) {
        const bool ok = opd_ok();
        if (!ok) { opd_error_clear(); }
        CHECK_INT(opd_graph_check(copy), 0);
        if (!ok) { (void)opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
    }
    opd_graph_free(copy);
    return done;
}
TEST(changes_fail_cleanly_when_memory_runs_out) {
    opd_graph *graph = traced(two_layers), *pattern = traced(layer), *by = traced(fused);
    int64_t n = 0;
    bool done = false;
    while (!done && n++ < 2000) {
        opd_graph *fresh = opd_graph_copy(graph);
        OPD_SCOPE {
            (void)opd_memory_fail_at(n, false);
            done = all_changes(fresh, pattern, by);
            (void)opd_memory_fail_at(0, false);
            if (!done) { CHECK_ERROR(OPD_ERROR_MEMORY, ""); }
        }
        CHECK(opd_graph_equal(fresh, graph));
        opd_graph_free(fresh);
    }
    CHECK(done && n > 5);
    opd_graph_free(graph);
    opd_graph_free(pattern);
    opd_graph_free(by);
}
CHECK_MAIN()
