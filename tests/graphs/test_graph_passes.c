/* Passes for graphs whose sizes are known: plans of memory, which an interpreter of the test uses for all tensors of a
   run; convolutions with the channels last; pointwise operators that are compiled as parts.  Results stay equal, with
   writes, views and conditions, and if memory runs out. */
#include "../../opdispatch.h"
#include "../check.h"

static char text[40000];
static opd_tensor *numbers(opd_ints sizes, int seed) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((i * 37 + seed * 11) % 101) / 50 - 1; }
    return x;
}

//-- graphs ------------------------------------------------------------------------------------------------------------

/* A residual block: convolutions, batch norms, pooling, a view at the end.  in: x [2, 4, 8, 8]. */
static opd_tensor *weights[8];
static void weights_begin(void) {
    for (int i = 0; i < 4; i++) { weights[i] = opd_keep(numbers(i ? OPD_INTS(4, 4, 3, 3) : OPD_INTS(4, 4, 1, 1), i)); }
    for (int i = 4; i < 7; i++) { weights[i] = opd_keep(numbers(OPD_INTS(4), i)); }
    weights[7] = opd_keep(opd_full(OPD_INTS(4), opd_value_double(0.8), OPD_FLOAT32));
}
static void weights_end(void) { for (int i = 0; i < 8; i++) { opd_release(weights[i]); } }
static opd_tensor *convolved(opd_tensor *x, int which) {
    return opd_conv2d_full(x, weights[which], weights[4], OPD_INTS(1, 1), OPD_INTS(which > 0, which > 0), OPD_INTS(1, 1), 1);
}
static opd_tensor *normed(opd_tensor *x) {
    return opd_batch_norm(x, weights[4], weights[5], weights[6], weights[7], false, 0.1, 1e-5, false);
}
static int residual(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *a = opd_relu(normed(convolved(in[0], 1)));
    opd_tensor *b = opd_relu(opd_add(normed(convolved(a, 2)), convolved(in[0], 0)));
    opd_tensor *c = opd_relu(opd_mul_Scalar(convolved(b, 3), opd_value_double(0.25)));
    out[0] = opd_flatten(opd_adaptive_avg_pool2d(opd_add(c, b), OPD_INTS(2, 2)), 1, -1);
    out[1] = b;
    return 2;
}
/* Joins the results of convolutions, one of them with the input, as a U-Net does. */
static int joining(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *a = opd_relu(convolved(in[0], 1)), *b = convolved(a, 2);
    opd_tensor *both[] = {a, b}, *more[] = {in[0], b, a};
    opd_tensor *c = opd_narrow(opd_cat(opd_tensors_of(both, 2), 1), 1, 2, 4);
    out[0] = opd_relu(opd_cat(opd_tensors_of(both, 2), 2));
    out[1] = opd_add(opd_cat(opd_tensors_of(more, 3), -1), opd_sum(c));
    return 2;
}
/* Writes into images before and after they are joined. */
static int joining_and_writing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *a = opd_relu_(convolved(in[0], 1)), *b = convolved(a, 2);
    opd_tensor *both[] = {a, b}, *c = opd_cat(opd_tensors_of(both, 2), 1);
    (void)opd_mul_Scalar_(opd_select(b, 0, 0), opd_value_double(2));
    (void)opd_relu_(c);
    (void)opd_add_(opd_narrow(c, 1, 0, 4), a);
    out[0] = opd_neg(c);
    out[1] = opd_add(b, a);
    return 2;
}
/* Writes into the result of a convolution, and into a view of another. */
static int writing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *a = opd_relu_(convolved(in[0], 1)), *b = convolved(a, 2), *c = convolved(opd_relu(b), 3);
    (void)opd_mul_Scalar_(opd_select(b, 0, 0), opd_value_double(2));
    out[0] = opd_add(b, a);
    out[1] = opd_view(opd_relu(c), OPD_INTS(2, -1));
    return 2;
}
static int chain(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    opd_tensor *a = opd_sigmoid(opd_mul(in[0], in[0])), *rows = opd_sum_dim(a, OPD_INTS(1), false);
    opd_tensor *b = opd_tanh(opd_add(opd_mul(a, opd_unsqueeze(rows, 1)), in[0]));
    out[0] = opd_reshape(opd_permute(b, OPD_INTS(0, 1, 3, 2)), OPD_INTS(-1));
    out[1] = opd_exp(opd_neg(opd_abs(b)));
    return 2;
}
/* Random calls of operators that make tensors, views and copies, and write. */
static int wild(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    uint32_t state = *(const uint32_t *)user * 2654435761u + 1;
    opd_tensor *made[24];
    (void)n;
    made[0] = opd_select(opd_select(in[0], 0, 0), 0, 0);             /* 8 by 8, a view of the input */
    made[0] = opd_neg(made[0]);
    for (int i = 1; i < 24; i++) {
        opd_tensor *a, *b;
        state = state * 1664525u + 1013904223u;
        a = made[(state >> 8) % (uint32_t)i];
        b = made[(state >> 16) % (uint32_t)i];
        switch (state >> 28) {
        case 0: case 1: made[i] = opd_t(a); break;
        case 2: made[i] = opd_contiguous(a); break;
        case 3: made[i] = opd_reshape(a, OPD_INTS(8, 8)); break;
        case 4: made[i] = opd_mul_Scalar_(a, opd_value_double(0.5)); break;
        case 5: made[i] = opd_copy_(opd_narrow(a, 0, 2, 3), opd_clone(opd_narrow(b, 0, 1, 3))) ? a : NULL; break;
        case 6: made[i] = opd_select(opd_stack(OPD_TENSORS(a, b), 0), 0, 1); break;
        case 7: made[i] = opd_mm(a, b); break;
        case 8: made[i] = opd_add_(a, opd_neg(b)); break;
        case 9: made[i] = opd_squeeze(opd_unsqueeze(a, 0)); break;
        default: made[i] = opd_sub(opd_tanh(a), b); break;
        }
    }
    out[0] = made[23];
    out[1] = made[11];
    return 2;
}

//-- plans of memory ---------------------------------------------------------------------------------------------------

enum { MOST = 600 };
static struct { opd_graph_value *value; opd_value is; } known[MOST];
static int nknown;
static opd_value *of(const opd_graph_value *value) {
    for (int i = nknown - 1; i >= 0; i--) { if (known[i].value == value) { return &known[i].is; } }
    CHECK(!"the value is computed before it is used");
    return &known[0].is;
}
static void learn(opd_graph_value *value, opd_value is) {
    CHECK(nknown < MOST);
    known[nknown].value = value;
    known[nknown++].is = is;
}
/* Returns whether a result has the storage of an argument. */
static bool shares_memory(const opd_tensor *made, const opd_tensor *arg) {
    const char *const a = (const char *)opd_data(made), *const b = (const char *)opd_data(arg);
    return a - opd_tensor_offset(made) * (int64_t)opd_dtype_size(opd_dtype(made)) ==
           b - opd_tensor_offset(arg) * (int64_t)opd_dtype_size(opd_dtype(arg));
}
/* Runs a node.  Results that have a slot are copied to it. */
static void interpret(const opd_graph_node *node, const opd_graph_slot *slots, int nslots, char *memory) {
    opd_value args[OPD_MAX_ARGS], rets[8];
    const int count = opd_graph_node_ninputs(node);
    for (int i = 0; i < count; i++) { args[i] = *of(opd_graph_node_input(node, i)); }
    if (opd_graph_node_kind(node) == OPD_GRAPH_LIST) {
        opd_value list;
        if (opd_graph_value_constant(opd_graph_node_output(node, 0), &list)) {
            learn(opd_graph_node_output(node, 0), list);
            return;
        }
        static opd_tensor *lists[MOST], **tensors;
        static int used;
        tensors = lists + (used + count < MOST ? used : (used = 0));
        used += count;
        for (int i = 0; i < count; i++) { tensors[i] = args[i].u.t; }
        learn(opd_graph_node_output(node, 0), opd_value_tensors(tensors, count));
        return;
    }
    if (opd_graph_node_kind(node) == OPD_GRAPH_TUPLE) { return; }
    CHECK_INT(opd_call_all(opd_graph_node_op(node), rets, args, count), 0);
    for (int i = 0; i < opd_graph_node_noutputs(node); i++) {
        for (int k = 0; k < nslots; k++) {
            if (slots[k].value != opd_graph_node_output(node, i)) { continue; }
            opd_tensor *const made = rets[i].u.t;
            bool shares = false;                  /* it may be a view after all */
            for (int j = 0; j < count; j++) { shares |= args[j].tag == OPD_TAG_TENSOR && shares_memory(made, args[j].u.t); }
            if (shares) { continue; }
            opd_tensor *const there = opd_tensor_wrap(memory + slots[k].offset, opd_ints_of(opd_sizes(made), opd_ndim(made)),
                                                      opd_strides(made), opd_dtype(made), NULL, NULL);
            rets[i].u.t = opd_copy_(there, made);
        }
        learn(opd_graph_node_output(node, i), rets[i]);
    }
}
static void check_plan(opd_transform_fn fn, void *user, opd_tensor *x) {
    OPD_SCOPED;
    opd_graph *graph = opd_graph_trace(fn, user, &x, 1, NULL);
    opd_graph_slot slots[100];
    opd_graph_memory memory;
    opd_tensor *want[2], *in = opd_clone(x), *again = opd_clone(x);
    const int count = opd_graph_plan_memory(graph, opd_device_make(OPD_CPU, -1), slots, 100, &memory);
    CHECK(graph && count > 0 && count <= 100);
    CHECK(memory.total >= memory.alive && memory.total <= memory.apart && memory.unknown == 0);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < i; k++) {
            if (slots[i].last < slots[k].first || slots[k].last < slots[i].first) { continue; }
            CHECK(slots[i].offset + slots[i].bytes <= slots[k].offset || slots[k].offset + slots[k].bytes <= slots[i].offset);
        }
        CHECK(slots[i].offset % 64 == 0 && slots[i].offset + slots[i].bytes <= memory.total && slots[i].first <= slots[i].last);
    }
    CHECK_INT(opd_graph_run(graph, &in, 1, want, 2), 2);
    char *const block = (char *)malloc(memory.total + 1);
    memset(block, 0x5a, memory.total);
    nknown = 0;
    learn(opd_graph_input_at(graph, 0), opd_value_tensor(again));
    for (opd_graph_node *node = opd_graph_first(graph); node && opd_ok(); node = opd_graph_next(node)) {
        opd_value constant;
        if (opd_graph_node_kind(node) != OPD_GRAPH_CONSTANT) { interpret(node, slots, count, block); }
        else if (opd_graph_value_constant(opd_graph_node_output(node, 0), &constant)) {
            learn(opd_graph_node_output(node, 0), constant);
        }
    }
    for (int i = 0; i < 2; i++) { CHECK(opd_equal(of(opd_graph_output_at(graph, i))->u.t, want[i])); }
    CHECK_OK();
    free(block);
    opd_graph_free(graph);
}
TEST(tensors_of_a_plan_do_not_overlap) {
    weights_begin();
    check_plan(residual, NULL, numbers(OPD_INTS(2, 4, 8, 8), 9));
    check_plan(writing, NULL, numbers(OPD_INTS(2, 4, 8, 8), 9));
    check_plan(chain, NULL, numbers(OPD_INTS(2, 4, 8, 8), 9));
    for (uint32_t seed = 0; seed < 60; seed++) { check_plan(wild, &seed, numbers(OPD_INTS(2, 4, 8, 8), 9)); }
    weights_end();
}
static const char with_blocks[] =
    "graph(%x : Float(4, strides=[1], device=cpu), %c : bool):\n"
    "  %a : Float(4, strides=[1], device=cpu) = aten::relu(%x)\n"
    "  %b : Float(4, strides=[1], device=cpu) = aten::neg(%a)\n"
    "  %y : Tensor = prim::If(%c)\n"
    "    block0():\n"
    "      %d : Float(4, strides=[1], device=cpu) = aten::tanh(%a)\n"
    "      -> (%d)\n"
    "    block1():\n"
    "      -> (%b)\n"
    "  %z : Float(4, strides=[1], device=cpu) = aten::abs(%b)\n"
    "  %t : (Tensor, Tensor) = prim::TupleConstruct(%z, %y)\n"
    "  return (%t)\n";
TEST(plans_are_printed_and_know_conditions) {
    opd_graph *graph = opd_graph_parse(with_blocks);
    CHECK_OK();
    opd_graph_slot slots[4];
    opd_graph_memory memory;
    const opd_device cpu = opd_device_make(OPD_CPU, -1);
    CHECK_INT(opd_graph_plan_memory(graph, cpu, slots, 4, &memory), 3);
    CHECK_INT(memory.unknown, 1);
    CHECK(slots[0].value == opd_graph_find(graph, "a") && slots[0].first == 0 && slots[0].last == 2);
    CHECK(slots[1].value == opd_graph_find(graph, "b") && slots[1].last == 5);    /* the condition may return it */
    CHECK(slots[2].value == opd_graph_find(graph, "z") && slots[2].offset == slots[0].offset);
    CHECK(memory.total == 128 && memory.apart == 192 && memory.alive == 128);
    const size_t length = opd_graph_print_memory(graph, cpu, text, sizeof text);
    CHECK(length == strlen(text) && opd_graph_print_memory(graph, cpu, NULL, 0) == length);
    CHECK(strstr(text, "3 tensors in 128 bytes; apart, they need 192; alive at the same time: 128\n"));
    CHECK(strstr(text, "1 tensors of unknown sizes") && strstr(text, "a = aten::relu\n"));
    CHECK_INT(opd_graph_plan_memory(graph, opd_device_make(OPD_CUDA, 0), NULL, 0, NULL), 0);
    CHECK_INT(opd_graph_plan_memory(NULL, cpu, NULL, 0, NULL), -1);
    opd_error_clear();
    CHECK_INT(opd_graph_plan_memory(graph, cpu, NULL, 3, NULL), -1);
    opd_error_clear();
    CHECK(opd_graph_print_memory(NULL, cpu, NULL, 0) == 0 && !opd_ok());
    opd_error_clear();
    opd_graph_free(graph);
}

//-- layouts -----------------------------------------------------------------------------------------------------------

/* Compares a graph before and after a pass, and returns what the pass returned. */
static int check_pass(opd_transform_fn fn, opd_tensor *x, int (*pass)(opd_graph *graph)) {
    OPD_SCOPED;
    opd_graph *graph = opd_graph_trace(fn, NULL, &x, 1, NULL);
    opd_tensor *want[2], *got[2], *first = opd_clone(x), *second = opd_clone(x);
    CHECK_INT(opd_graph_run(graph, &first, 1, want, 2), 2);
    const int count = pass(graph);
    CHECK(count >= 0 && opd_graph_check(graph) == 0);
    for (int round = 0; round < 2; round++) {
        second = opd_clone(x);
        CHECK_INT(opd_graph_run(graph, &second, 1, got, 2), 2);
        for (int i = 0; i < 2 && opd_ok(); i++) {
            CHECK(opd_allclose(got[i], want[i]));
            for (int d = 0; d < opd_ndim(want[i]); d++) { CHECK_INT(opd_strides(got[i])[d], opd_strides(want[i])[d]); }
        }
    }
    CHECK(opd_equal(first, second));
    CHECK_OK();
    opd_graph_print(graph, text, sizeof text);
    opd_graph_free(graph);
    return count;
}
TEST(chains_of_convolutions_convert_at_their_ends) {
    weights_begin();
    opd_tensor *x = numbers(OPD_INTS(2, 4, 8, 8), 9);
    CHECK_INT(check_pass(residual, x, opd_graph_channels_last), 3);  /* x; the result b; before the view */
    CHECK(strstr(text, "strides=[256, 1, 32, 4]"));
    CHECK_INT(check_pass(writing, x, opd_graph_channels_last), 5);   /* x; a for b, and for the sum; c, and its view */
    CHECK(strstr(text, "aten::relu_("));
    CHECK_INT(check_pass(joining, x, opd_graph_channels_last), 4);   /* x; before narrow; the results */
    CHECK(strstr(text, "strides=[512, 1, 64, 8]"));                   /* of the joined channels */
    CHECK(check_pass(joining_and_writing, x, opd_graph_channels_last) >= 0);
    CHECK_INT(check_pass(chain, x, opd_graph_channels_last), 0);
    CHECK_INT(check_pass(residual, opd_contiguous_full(x, 2), opd_graph_channels_last), 0);
    CHECK_INT(opd_graph_channels_last(NULL), -1);
    opd_error_clear();
    weights_end();
}

//-- pointwise operators -----------------------------------------------------------------------------------------------

static int fuse(opd_graph *graph) { return opd_graph_fuse_pointwise(graph, 0); }
TEST(pointwise_operators_become_parts) {
    opd_tensor *x = numbers(OPD_INTS(2, 4, 8, 8), 9);
    weights_begin();
    CHECK_INT(check_pass(chain, x, fuse), 2);
    CHECK(strstr(text, "pointwise(") && !strstr(text, "aten::sigmoid"));
    CHECK(check_pass(writing, x, fuse) >= 0);
    CHECK(check_pass(residual, x, fuse) >= 1);
    weights_end();
    CHECK_INT(opd_graph_fuse_pointwise(NULL, 0), -1);
    opd_error_clear();
}
TEST(fused_graphs_have_gradients_and_work_under_vmap) {
    opd_tensor *x = opd_tensor_set_requires_grad(numbers(OPD_INTS(2, 4, 8, 8), 9), true), *out[2], *want, *got;
    opd_graph *graph;
    opd_tensor *plain = opd_detach(x);
    CHECK_INT(chain(NULL, &x, 1, out), 2);
    opd_backward(opd_sum(opd_add(opd_sum(out[0]), opd_sum(out[1]))));
    want = opd_clone(opd_tensor_grad(x));
    opd_tensor_set_grad(x, NULL);
    graph = opd_graph_trace(chain, NULL, &plain, 1, NULL);
    CHECK_INT(opd_graph_fuse_pointwise(graph, 2), 2);
    CHECK_INT(opd_graph_run(graph, &x, 1, out, 2), 2);
    opd_backward(opd_sum(opd_add(opd_sum(out[0]), opd_sum(out[1]))));
    got = opd_tensor_grad(x);
    CHECK(opd_allclose(got, want));
    CHECK_OK();
    opd_graph_free(graph);
}

//-- memory that runs out ----------------------------------------------------------------------------------------------

static int attempt(void *arg) {
    opd_graph *const graph = opd_graph_copy((opd_graph *)arg);
    opd_graph_slot slots[40];
    int rc = graph ? opd_graph_plan_memory(graph, opd_device_make(OPD_CPU, -1), slots, 40, NULL) : -1;
    if (rc >= 0) { rc = opd_graph_channels_last(graph); }
    if (rc >= 0) { rc = opd_graph_fuse_pointwise(graph, 2); }
    opd_graph_free(graph);
    return rc;
}
TEST(passes_fail_cleanly_if_memory_runs_out) {
    weights_begin();
    opd_tensor *x = numbers(OPD_INTS(2, 4, 8, 8), 9);
    opd_graph *graph = opd_graph_trace(residual, NULL, &x, 1, NULL);
    CHECK(check_allocations(attempt, graph, "passes", 150, false) > 20);
    opd_graph_free(graph);
    weights_end();
}
CHECK_MAIN()
