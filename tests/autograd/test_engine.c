/* The backward engine: order of nodes, roots, inputs, accumulation, nested calls, callbacks, threads, failures.
   THREADED */
#include "../../opdispatch.h"
#include "../tape.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static double grad_of(opd_tensor *t) { return opd_tensor_grad(t) ? opd_item_f64(opd_tensor_grad(t)) : -1; }

//-- order, roots, inputs ----------------------------------------------------------------------------------------------

static int64_t order[20];
static int norder;
static int note(opd_tensor **grads, int n, void *user) {
    (void)grads; (void)n;
    if (norder < 20) { order[norder++] = (int64_t)(intptr_t)user; }
    return 0;
}
static void watch(opd_tensor *t, int number) {
    CHECK(opd_node_pre_hook_add(opd_gradient_edge(t).node, note, (void *)(intptr_t)number, NULL) > 0);
}

TEST(later_calls_run_first_and_leaves_at_once) {
    opd_tensor *x = leaf(1), *w = leaf(1), *a = opd_mul(x, w), *b = opd_exp(x), *c = opd_add(b, a), *y;
    opd_tensor *late = opd_exp(w);                /* recorded after c, whose node leads nowhere near it */
    y = opd_add(c, late);
    norder = 0;
    watch(x, 1); watch(w, 2); watch(a, 3); watch(b, 4); watch(c, 5); watch(late, 6); watch(y, 7);
    CHECK_INT(opd_backward(y), 0);
    CHECK_INT(norder, 7);
    CHECK(order[0] == 7 && order[1] == 6 && order[2] == 5 && order[3] == 4 && order[4] == 3);
    CHECK((order[5] == 1 && order[6] == 2) || (order[5] == 2 && order[6] == 1));
}

static opd_node *planned[20];
static int64_t nplanned;
static int plan(opd_tensor **grads, int n, void *user) {
    (void)grads; (void)n;
    nplanned = opd_backward_order(planned, 20);
    CHECK(opd_backward_id() >= 0 && !opd_backward_keeps_graph());
    CHECK(opd_backward_will_run(opd_tensor_node((opd_tensor *)user)) && !opd_backward_will_run(NULL));
    return 0;
}
TEST(the_order_can_be_asked_for) {
    opd_tensor *x = leaf(1), *w = leaf(1), *a = opd_exp(x), *b = opd_mul(a, w), *other = opd_exp(w);
    CHECK(opd_node_pre_hook_add(opd_tensor_node(b), plan, a, NULL) > 0);
    CHECK_INT(opd_backward(b), 0);
    CHECK_INT(nplanned, 4);
    CHECK(planned[0] == opd_tensor_node(b) && planned[1] == opd_gradient_edge(w).node);
    CHECK(planned[2] == opd_tensor_node(a) && planned[3] == opd_gradient_edge(x).node);
    CHECK(opd_backward_id() == -1 && opd_backward_keeps_graph() && !opd_backward_will_run(opd_tensor_node(other)));
    CHECK_INT(opd_backward_order(planned, 20), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "no backward pass is running");
}

TEST(several_and_equal_roots) {                        /* test_duplicate_backward_root */
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *z = opd_mul(y, of(2)), *roots[3], *g[3];
    opd_backward_options o = options();
    roots[0] = y;
    roots[1] = z;
    roots[2] = y;
    CHECK_INT(opd_backward_with(roots, 3, NULL), 0);
    CHECK_NEAR(grad_of(x), 6 + 12 + 6, 0);
    y = opd_mul(x, x);
    roots[0] = roots[1] = y;
    g[0] = of(2);
    g[1] = of(5);
    o.grad_outputs = g;
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_backward_with(roots, 2, &o), 0);
    CHECK_NEAR(grad_of(x), 7 * 6, 0);
    CHECK_NEAR(opd_item_f64(g[0]), 2, 0);         /* what the caller gave stays */
    roots[0] = x;                                 /* a leaf as a root, and among others */
    roots[1] = opd_mul(x, of(4));
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_backward_with(roots, 2, NULL), 0);
    CHECK_NEAR(grad_of(x), 5, 0);
}

TEST(inputs_of_every_kind) {
    opd_tensor *x = leaf(3), *w = leaf(2), *y = opd_mul(x, w), *z = opd_mul(y, y), *in[4], *g[4];
    opd_edge e[2];
    opd_backward_options o = options();
    o.retain_graph = true;
    in[0] = y;
    in[1] = x;
    in[2] = y;                                    /* twice */
    in[3] = z;                                    /* the root itself */
    CHECK_INT(opd_autograd_grad(&z, 1, in, 4, &o, g), 0);
    CHECK_NEAR(opd_item_f64(g[0]), 12, 0);
    CHECK_NEAR(opd_item_f64(g[1]), 24, 0);
    CHECK_NEAR(opd_item_f64(g[2]), 12, 0);
    CHECK_NEAR(opd_item_f64(g[3]), 1, 0);
    CHECK(!opd_tensor_grad(x) && !opd_tensor_grad(w) && !opd_tensor_grad(y));
    e[0] = opd_gradient_edge(y);
    e[1] = opd_gradient_edge(w);
    o.input_edges = e;
    CHECK_INT(opd_autograd_grad(&z, 1, NULL, 2, &o, g), 0);
    CHECK_NEAR(opd_item_f64(g[0]), 12, 0);
    CHECK_NEAR(opd_item_f64(g[1]), 36, 0);
    o.ninputs = 2;
    CHECK_INT(opd_backward_with(&z, 1, &o), 0);   /* of edges the leaves are accumulated */
    CHECK_NEAR(grad_of(w), 36, 0);
    CHECK(!opd_tensor_grad(x));
    e[0].nr = 5;
    CHECK_INT(opd_autograd_grad(&z, 1, NULL, 2, &o, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors does not require grad");
    o = options();
    o.inputs = in;
    o.ninputs = 2;
    CHECK_INT(opd_backward_with(&z, 1, &o), 0);   /* as if retain_grad had been called on y */
    CHECK_NEAR(grad_of(y), 12, 0);
    CHECK(opd_tensor_retains_grad(y));
    CHECK_NEAR(grad_of(x), 24, 0);
    CHECK_NEAR(grad_of(w), 36, 0);
}

TEST(unused_inputs) {
    opd_tensor *x = leaf(3), *u = vec(4, true), *y = opd_mul(x, x), *in[2], *g[2];
    opd_backward_options o = options();
    o.retain_graph = true;
    in[0] = x;
    in[1] = u;
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, &o, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors appears to not have been used in the graph.");
    CHECK(!g[0] && !g[1]);
    o.allow_unused = true;
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, &o, g), 0);
    CHECK(g[0] && !g[1]);
    o.allow_unused = false;
    o.materialize_grads = true;
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, &o, g), 0);
    CHECK(g[1] && opd_numel(g[1]) == 4 && opd_dtype(g[1]) == OPD_FLOAT64 && !opd_tensor_requires_grad(g[1]));
    CHECK_NEAR(opd_item_f64(opd_sum(g[1])), 0, 0);
}

TEST(without_saved_tensors_twice) {                    /* test_backward_twice_without_saved_values */
    opd_tensor *x = leaf(3), *y = opd_add(x, of(1));
    CHECK_INT(opd_backward(y), 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(x), 2, 0);
}

//-- accumulation ------------------------------------------------------------------------------------------------------

TEST(identity_of_accumulated_gradients) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *first;
    opd_backward_options o = options();
    o.retain_graph = true;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    first = opd_keep(opd_tensor_grad(x));
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(opd_tensor_grad(x) == first && opd_item_f64(first) == 12);       /* added in place */
    o.create_graph = true;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(opd_tensor_grad(x) != first && grad_of(x) == 18 && opd_item_f64(first) == 12);
    CHECK(opd_tensor_requires_grad(opd_tensor_grad(x)));
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    opd_release(first);
}

TEST(gradients_have_the_layout_of_their_leaf) {
    int create;
    for (create = 0; create < 2; create++) {
        opd_tensor *x = opd_tensor_set_requires_grad(opd_empty_strided(OPD_INTS(2, 3), OPD_INTS(1, 2), OPD_FLOAT64), true);
        opd_tensor *w = opd_ones(OPD_INTS(2, 3), OPD_FLOAT64), *g, *y;
        opd_backward_options o = options();
        o.create_graph = create != 0;
        y = opd_sum(opd_mul(x, w));
        CHECK_INT(opd_backward_with(&y, 1, &o), 0);
        g = opd_tensor_grad(x);
        CHECK_OR_RETURN(g != NULL);
        CHECK(opd_strides(g)[0] == 1 && opd_strides(g)[1] == 2);
        CHECK_NEAR(opd_item_f64(opd_sum(g)), 6, 0);
        CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    }
}

/* The gradient of a factor of a matrix product has the layout of the factor, so a leaf whose transpose is the factor
   gets it without a copy. */
TEST(gradients_of_products_have_the_layout_of_the_factor) {
    for (int way = 0; way < 8; way++) {
        OPD_SCOPE {
            opd_tensor *a = opd_arange(opd_value_int(12), OPD_FLOAT64), *b = opd_arange(opd_value_int(20), OPD_FLOAT64), *bias = opd_zeros(OPD_INTS(5), OPD_FLOAT64), *y;
            a = opd_reshape(a, way & 1 ? OPD_INTS(4, 3) : OPD_INTS(3, 4));
            b = opd_reshape(b, way & 2 ? OPD_INTS(5, 4) : OPD_INTS(4, 5));
            opd_tensor_set_requires_grad(a, true);
            opd_tensor_set_requires_grad(b, true);
            opd_tensor *in[2] = {way & 1 ? opd_t(a) : a, way & 2 ? opd_t(b) : b}, *g[2] = {NULL, NULL};
            y = way & 4 ? opd_addmm_full(bias, in[0], in[1], opd_value_int(1), opd_value_int(2)) : opd_mm(in[0], in[1]);
            y = opd_sum(opd_mul(y, y));
            CHECK_INT(opd_autograd_grad(&y, 1, in, 2, NULL, g), 0);
            for (int i = 0; i < 2 && g[i]; i++) {
                CHECK(opd_strides(g[i])[0] == opd_strides(in[i])[0] && opd_strides(g[i])[1] == opd_strides(in[i])[1]);
            }
            opd_tensor *const sum = opd_mm(in[0], in[1]);
            opd_tensor *const factor = opd_tensor_wrapped_number(opd_value_int(way & 4 ? 8 : 2));
            CHECK(opd_equal(g[0], opd_mul(opd_mm(sum, opd_t(in[1])), factor)));
            CHECK(opd_equal(g[1], opd_mul(opd_mm(opd_t(in[0]), sum), factor)));
            CHECK_OK();
        }
    }
}

static const void *gradient_at;
static opd_tensor *where_it_is(opd_tensor *grad, void *user) { (void)user; gradient_at = opd_data(grad); return NULL; }
TEST(gradients_that_nobody_holds_are_taken_over) {
    opd_tensor *x = vec(3, true), *w = vec(3, true), *y = opd_sum(opd_mul(x, opd_mul(w, w)));
    CHECK(opd_tensor_hook_add(x, where_it_is, NULL, NULL) > 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK(opd_data(opd_tensor_grad(x)) == gradient_at);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 9, 0);
    y = opd_sum(opd_add(x, w));                   /* one gradient for two leaves: they share no memory */
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_tensor_set_grad(w, NULL), 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK(opd_data(opd_tensor_grad(x)) != opd_data(opd_tensor_grad(w)));
}

static opd_tensor *kept_gradient;
static opd_tensor *keep_it(opd_tensor *grad, void *user) { (void)user; opd_assign(&kept_gradient, grad); return NULL; }
TEST(gradients_that_others_hold_are_copied) {
    opd_tensor *x = vec(3, true), *y = opd_sum(opd_mul(x, x));
    opd_backward_options o = options();
    o.retain_graph = true;
    CHECK(opd_tensor_hook_add(x, keep_it, NULL, NULL) > 0);
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(kept_gradient && kept_gradient != opd_tensor_grad(x));
    CHECK(opd_data_f64(kept_gradient) != opd_data_f64(opd_tensor_grad(x)));
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 12, 0);
    CHECK_NEAR(opd_data_f64(kept_gradient)[2], 6, 0);
    opd_assign(&kept_gradient, NULL);
}

//-- backward inside backward ------------------------------------------------------------------------------------------

static int k_same(opd_call *call) { return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0))); }
/* deep(x): backward counts x down by one in a backward of its own. */
static int deep_runs, deep_same;
static int deep_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0);
    double left = opd_item_f64(x);
    deep_runs++;
    deep_same += opd_same_bits();
    if (left > 0) {
        bool was = opd_grad_mode_set(true);
        opd_tensor *y = opd_tensor_set_requires_grad(of(left - 1), true);
        int rc = opd_backward(opd_sum(OPD_CALL(op_named("engine::deep"), y)));
        opd_grad_mode_set(was);
        if (rc) { return -1; }
    } else if (left < 0) { return opd_fail(OPD_ERROR_USER, "at the bottom"); }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
static opd_library *deep_library(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "engine", NULL, "t", 1);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "deep(Tensor self) -> Tensor";
    d.cpu = k_same;
    d.backward = deep_backward;
    d.save = "self";
    CHECK_INT(opd_define(lib, &d), 0);
    return lib;
}
static void deep(double levels, int want) {
    opd_tensor *x = leaf(levels);
    deep_runs = deep_same = 0;
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op_named("engine::deep"), x))), want);
}
TEST(backward_nests_to_any_depth) {                    /* test_deep_reentrant */
    opd_library *lib = deep_library();
    int i;
    for (i = 0; i < 2; i++) {
        deep(i ? 2000 : 59, 0);
        CHECK_INT(deep_runs, i ? 2001 : 60);
        CHECK_OK();
    }
    for (i = 1; i >= 0; i--) {                    /* other threads have the mode of this one */
        const bool was = opd_same_bits_set(i != 0);
        deep(200, 0);
        CHECK_INT(deep_same, i ? 201 : 0);
        (void)opd_same_bits_set(was);
    }
    opd_library_close(lib);
}
/* down(x): backward calls backward until down_left is 0, in a fake mode that counts and with saved-tensor hooks off. */
static int down_left, down_told;
static int down_backward(opd_backward_call *bw) {
    if (--down_left > 0) {
        bool was = opd_grad_mode_set(true);
        opd_tensor *y = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(7), OPD_FLOAT32), true);
        int rc = opd_backward(opd_sum(OPD_CALL(op_named("engine::down"), y)));
        opd_grad_mode_set(was);
        if (rc) { return -1; }
        down_told += opd_saved_hooks_disabled() != NULL && strcmp(opd_saved_hooks_disabled(), "not now") == 0;
    }
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_bw_grad(bw, 0)));
}
TEST(nested_backwards_see_what_is_around) {            /* after 60 they go on on another thread's stack */
    opd_library *lib = opd_library_open(OPD_DEF, "engine", NULL, "t", 1);
    opd_op_desc d;
    int i;
    memset(&d, 0, sizeof d);
    d.schema = "down(Tensor self) -> Tensor";
    d.any = k_same;
    d.backward = down_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    for (i = 0; i < 2; i++) {
        const int levels = i ? 150 : 50;
        opd_cost *cost = opd_cost_begin();
        down_left = levels;
        down_told = 0;
        OPD_FAKE_MODE {
            opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(7), OPD_FLOAT32), true);
            CHECK_INT(opd_saved_hooks_disable("not now"), 0);
            CHECK_INT(opd_backward(opd_sum(OPD_CALL(op_named("engine::down"), x))), 0);
            (void)opd_saved_hooks_disable(NULL);
        }
        opd_cost_end(cost);
        CHECK_NEAR(opd_cost_total(cost).flops, 14. * levels, 0);
        CHECK_INT(down_told, levels - 1);
        opd_cost_free(cost);
    }
    opd_library_close(lib);
}
TEST(errors_of_nested_backwards_arrive) {              /* test_reentrant_child_error */
    opd_library *lib = deep_library();
    deep(150.5, -1);
    CHECK_INT(deep_runs, 152);
    CHECK(strstr(opd_error_message(), "at the bottom [in DeepBackward0 of engine::deep] [in DeepBackward0 of engine::deep]") != NULL);
    CHECK_ERROR(OPD_ERROR_USER, "at the bottom");
    deep(3, 0);
    opd_library_close(lib);
}

static opd_tensor *nested_on;
static opd_tensor *backward_inside(opd_tensor *grad, void *user) {
    opd_backward_options o = options();
    int64_t id = opd_backward_id();
    (void)grad;
    o.retain_graph = true;
    CHECK_INT(opd_backward_with((opd_tensor *const *)user, 1, &o), 0);
    CHECK(opd_backward_id() == id);
    return NULL;
}
TEST(backward_over_the_same_graph_inside) {            /* the saved tensors of the outer one stay until it is through */
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *z = opd_mul(y, y);
    nested_on = y;
    CHECK(opd_tensor_hook_add(z, backward_inside, &nested_on, NULL) > 0);
    CHECK_INT(opd_backward(z), 0);
    CHECK_NEAR(grad_of(x), 6 + 4 * 27, 0);
}

/* self(x) saves x and calls backward over its own node before it reads it. */
static opd_tensor *self_result;
static int self_backward(opd_backward_call *bw) {
    opd_tensor *again = self_result;
    self_result = NULL;
    if (again && opd_backward(again)) { return -1; }
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0)));
}
TEST(saved_tensors_stay_while_a_formula_is_inside) {
    opd_library *lib = opd_library_open(OPD_DEF, "engine", NULL, "t", 1);
    opd_tensor *x = leaf(3), *y;
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "self(Tensor self) -> Tensor";
    d.cpu = k_same;
    d.backward = self_backward;
    d.save = "self";
    CHECK_INT(opd_define(lib, &d), 0);
    y = self_result = OPD_CALL(op_named("engine::self"), x);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(x), 6, 0);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time");
    opd_library_close(lib);
}

//-- callbacks ---------------------------------------------------------------------------------------------------------

static opd_tensor *callback_leaf;
static int callbacks, callbacks_gone;
static void callback_gone(void *user) { (void)user; callbacks_gone++; }
static int final_callback(void *user) {
    callbacks++;
    CHECK(opd_tensor_grad(callback_leaf) != NULL && opd_backward_id() >= 0);
    if (user) { CHECK_INT(opd_backward_callback(final_callback, NULL, callback_gone), 0); }
    return 0;
}
static int failing_callback(void *user) { (void)user; return -1; }
static opd_tensor *queue(opd_tensor *grad, void *user) {
    (void)grad;
    CHECK(callback_leaf == NULL || opd_tensor_grad(callback_leaf) == NULL);
    (void)opd_backward_callback((opd_callback_fn)(user ? failing_callback : final_callback), &callbacks, callback_gone);
    return NULL;
}
static opd_tensor *queue_and_fail(opd_tensor *grad, void *user) {
    (void)queue(grad, user);
    (void)opd_fail(OPD_ERROR_USER, "after queueing");
    return NULL;
}
TEST(final_callbacks) {
    opd_tensor *x = leaf(2), *y = opd_mul(x, x);
    int64_t h;
    callbacks = callbacks_gone = 0;
    callback_leaf = x;
    CHECK_INT(opd_backward_callback(final_callback, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Final callbacks can only be installed during backward pass.");
    h = opd_tensor_hook_add(y, queue, NULL, NULL);
    CHECK_INT(opd_backward(y), 0);
    CHECK(callbacks == 2 && callbacks_gone == 2); /* the first has added another */
    CHECK(opd_hook_remove(h));
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    y = opd_mul(x, x);
    h = opd_tensor_hook_add(y, queue_and_fail, NULL, NULL);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_USER, "after queueing");
    CHECK(callbacks == 2 && callbacks_gone == 3);
    CHECK(opd_hook_remove(h));
    h = opd_tensor_hook_add(y, queue, &callbacks, NULL);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a final callback of backward failed without setting an error");
    CHECK(callbacks_gone == 4 && opd_tensor_grad(x) != NULL);
    callback_leaf = NULL;
}

//-- failures ----------------------------------------------------------------------------------------------------------

static int two_backward(opd_backward_call *bw) {      /* the second gradient does not fit */
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)) || opd_bw_return(bw, 1, vec(7, false));
}
static int k_two(opd_call *call) { return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1))); }
TEST(a_wrong_gradient_stops_before_any_of_its_node_is_added) {
    opd_library *lib = opd_library_open(OPD_DEF, "engine", NULL, "t", 1);
    opd_tensor *a = vec(3, true), *b = vec(3, true), *c = vec(3, true), *y, *z;
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "two(Tensor a, Tensor b) -> Tensor";
    d.cpu = k_two;
    d.backward = two_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    y = OPD_CALL(op_named("engine::two"), a, b);
    z = opd_sum(opd_mul(y, c));
    CHECK_INT(opd_backward(z), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Function TwoBackward0 returned an invalid gradient at index 1 - got [7] but expected shape compatible with "
                "[3] [in TwoBackward0 of engine::two]");
    CHECK(!opd_tensor_grad(a) && !opd_tensor_grad(b));
    CHECK(opd_tensor_grad(c) != NULL);            /* what was added before stays */
    CHECK_INT(opd_backward(opd_sum(opd_mul(a, b))), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(a))[2], 3, 0);
    opd_library_close(lib);
}

TEST(memory_runs_out_in_the_middle_of_backward) {
    int64_t n, calls;
    bool done = false;
    for (n = 1; !done && n < 500; n++) {
        OPD_SCOPED;
        opd_tensor *x = vec(8, true), *w = vec(8, true), *y = opd_sum(opd_mul(opd_exp(opd_mul(x, w)), opd_mul(w, w)));
        CHECK_INT(opd_tensor_retain_grad(y), 0);
        (void)opd_memory_fail_at(n, false);
        (void)opd_backward(y);
        calls = opd_memory_fail_at(0, false);
        done = calls < n;
        CHECK(done == opd_ok());
        if (!done) { CHECK_INT(opd_error_code(), OPD_ERROR_MEMORY); opd_error_clear(); }
        CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
        CHECK_INT(opd_backward(opd_sum(opd_mul(x, w))), 0);
        CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[7], 8, 0);
    }
    CHECK(done && n > 10);
}

//-- large -------------------------------------------------------------------------------------------------------------

TEST(a_hundred_thousand_inputs) {
    const int n = 100000;
    opd_tensor **x = (opd_tensor **)malloc((size_t)n * sizeof *x), **g = (opd_tensor **)calloc((size_t)n, sizeof *g), *sum = NULL;
    double total = 0;
    int i;
    for (i = 0; i < n; i++) {
        OPD_SCOPED;
        x[i] = opd_keep(leaf(i % 10));
        opd_assign(&sum, sum ? opd_add(sum, opd_mul(x[i], x[i])) : opd_mul(x[i], x[i]));
    }
    OPD_SCOPE {
        CHECK_INT(opd_autograd_grad(&sum, 1, x, n, NULL, g), 0);
        for (i = 0; i < n; i++) { total += opd_item_f64(g[i]); }
        CHECK_NEAR(total, 2 * 4.5 * n, 0);
    }
    opd_release(sum);
    for (i = 0; i < n; i++) { opd_release(x[i]); }
    free(x);
    free(g);
}

TEST(second_derivative_of_a_long_chain) {
    const int n = 10000;
    opd_tensor *x = leaf(1), *w = of(1), *y = NULL, *g, *gg;
    opd_backward_options o = options();
    int i;
    o.create_graph = true;
    for (i = 0; i < n; i++) {
        OPD_SCOPED;
        opd_assign(&y, y ? opd_mul(y, w) : opd_mul(x, x));
    }
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, &g), 0);
    CHECK_INT(opd_autograd_grad(&g, 1, &x, 1, NULL, &gg), 0);
    CHECK_NEAR(opd_item_f64(gg), 2, 0);
    opd_release(y);
}

//-- threads -----------------------------------------------------------------------------------------------------------

enum { THREADS = 4 };
typedef struct shared { opd_tensor *y; bool retain; int ok, twice, other; } shared;
static void *run_shared(void *arg) {
    shared *s = (shared *)arg;
    opd_backward_options o = options();
    o.retain_graph = s->retain;
    if (opd_backward_with(&s->y, 1, &o) == 0) { (void)__atomic_add_fetch(&s->ok, 1, __ATOMIC_SEQ_CST); }
    else if (strstr(opd_error_message(), "a second time")) { (void)__atomic_add_fetch(&s->twice, 1, __ATOMIC_SEQ_CST); }
    else { (void)__atomic_add_fetch(&s->other, 1, __ATOMIC_SEQ_CST); printf("%s\n", opd_error_message()); }
    opd_error_clear();
    return NULL;
}
static void threads_on(bool retain) {
    int round, i;
    for (round = 0; round < 20; round++) {
        OPD_SCOPED;
        pthread_t t[THREADS];
        shared s;
        opd_tensor *x = leaf(3), *y = x;
        for (i = 0; i < 50; i++) { y = opd_mul(y, opd_exp(opd_mul(x, of(0)))); }
        memset(&s, 0, sizeof s);
        s.y = y;
        s.retain = retain;
        for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&t[i], NULL, run_shared, &s), 0); }
        for (i = 0; i < THREADS; i++) { (void)pthread_join(t[i], NULL); }
        CHECK(s.other == 0 && s.ok + s.twice == THREADS && s.ok >= 1);
        if (retain) { CHECK_INT(s.ok, THREADS); CHECK_NEAR(grad_of(x), THREADS, 1e-12); }
    }
}
TEST(threads_on_one_graph_that_is_kept) { threads_on(true); }
TEST(threads_on_one_graph_that_is_freed) { threads_on(false); }

static int shared_count;
static opd_tensor *count_shared(opd_tensor *grad, void *user) {
    (void)grad; (void)user;
    (void)__atomic_add_fetch(&shared_count, 1, __ATOMIC_SEQ_CST);
    return NULL;
}
TEST(threads_on_one_graph_with_hooks) {
    pthread_t t[THREADS];
    shared s;
    int i;
    opd_tensor *x = leaf(3), *y = opd_mul(x, x);
    CHECK(opd_tensor_hook_add(y, count_shared, NULL, NULL) > 0 && opd_tensor_hook_add(x, count_shared, NULL, NULL) > 0);
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    shared_count = 0;
    memset(&s, 0, sizeof s);
    s.y = y;
    s.retain = true;
    for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&t[i], NULL, run_shared, &s), 0); }
    for (i = 0; i < THREADS; i++) { (void)pthread_join(t[i], NULL); }
    CHECK_INT(shared_count, 2 * THREADS);
    CHECK_NEAR(grad_of(y), THREADS, 0);
    CHECK_NEAR(grad_of(x), 6 * THREADS, 0);
}

static int exp_segment(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    (void)n; (void)m; (void)user;
    outputs[0] = opd_exp(opd_mul(opd_exp(inputs[0]), inputs[0]));
    return 0;
}
TEST(threads_on_one_checkpoint) {
    pthread_t t[THREADS];
    shared s;
    int i;
    opd_tensor *x = leaf(0), *y;
    CHECK_INT(opd_checkpoint(exp_segment, NULL, NULL, &x, 1, &y, 1), 0);
    memset(&s, 0, sizeof s);
    s.y = y;
    s.retain = true;
    for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&t[i], NULL, run_shared, &s), 0); }
    for (i = 0; i < THREADS; i++) { (void)pthread_join(t[i], NULL); }
    CHECK_INT(s.ok, THREADS);
    CHECK_NEAR(grad_of(x), THREADS, 0);
}

static opd_tensor *pass_on(opd_tensor *g, void *user) { (void)g; (void)user; return NULL; }
static void *run_hooked(void *arg) {
    opd_tensor *x = (opd_tensor *)arg;
    int i;
    for (i = 0; i < 30; i++) {
        OPD_SCOPE {
            CHECK_INT(opd_backward(opd_mul(x, x)), 0);
            CHECK(opd_tensor_hook_add(x, pass_on, NULL, NULL) > 0);
        }
    }
    return NULL;
}
TEST(hooks_come_to_a_leaf_that_others_are_at) {
    opd_tensor *x = leaf(1);
    pthread_t t[THREADS];
    int i;
    for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&t[i], NULL, run_hooked, x), 0); }
    for (i = 0; i < THREADS; i++) { (void)pthread_join(t[i], NULL); }
    CHECK_NEAR(grad_of(x), 60 * THREADS, 0);
}

TEST(nested_backwards_on_threads) {
    opd_library *lib = deep_library();
    pthread_t t[2];
    shared s[2];
    int i;
    for (i = 0; i < 2; i++) {
        memset(&s[i], 0, sizeof s[i]);
        s[i].y = opd_sum(OPD_CALL(op_named("engine::deep"), leaf(130)));
        CHECK_INT(pthread_create(&t[i], NULL, run_shared, &s[i]), 0);
        (void)pthread_join(t[i], NULL);
        CHECK_INT(s[i].ok, 1);
    }
    opd_library_close(lib);
}

#if !defined(__SANITIZE_THREAD__)
TEST(backward_in_a_forked_child) {                     /* after threads have run backward here */
    int status = -1;
    pid_t pid;
    threads_on(true);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        opd_tensor *x = leaf(3);
        bool right = opd_backward(opd_mul(x, x)) == 0 && grad_of(x) == 6;
        CHECK_CHILD_ENDS(right ? 0 : 1);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

/* The gradient that arrives first is a view: the sum is written to the second one, which needs no third block. */
TEST(sum_in_the_second_gradient) {
    enum { N = 512 };
    OPD_SCOPE {
        opd_tensor *const w = opd_full(OPD_INTS(N, N), OPD_V(0.5), OPD_FLOAT32),
            *const x = opd_full(OPD_INTS(1, N), OPD_V(3), OPD_FLOAT32),
            *const by = opd_full(OPD_INTS(N, N), OPD_V(2), OPD_FLOAT32);
        (void)opd_tensor_set_requires_grad(w, true);
        opd_tensor *const first = opd_sum(opd_mul(w, by)), *const loss = opd_add(first, opd_sum(opd_mm(x, opd_t(w))));
        opd_memory_reset_peak();
        const int64_t before = opd_memory_stats().peak;
        CHECK_INT(opd_backward(loss), 0);
        CHECK(opd_memory_stats().peak - before < (int64_t)N * N * 4 * 5 / 2);
        const float *const grad = opd_data_f32(opd_tensor_grad(w));
        for (int i = 0; grad && i < N * N; i += 997) { CHECK(grad[i] == 5); }
        CHECK(opd_data_f32(by)[0] == 2 && opd_data_f32(x)[0] == 3);
        CHECK_OK();
    }
}

/* A gradient in memory of the program, or a constant of a graph that is traced, is never written to. */
static float lent_memory[4];
static int keep_input(opd_context *ctx) {
    return opd_context_return(ctx, opd_clone(opd_context_tensor(ctx, 0)));
}
static int give_wrapped(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_tensor_wrap(lent_memory, OPD_INTS(4), NULL, OPD_FLOAT32, NULL, NULL));
}
static int give_constant(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_tensor_from(lent_memory, OPD_INTS(4), OPD_FLOAT32));
}
/* Returns the gradient of x, whose two parts come from outside and through a view.  order: which part is recorded
   first; 2: both come from outside. */
static opd_tensor *grad_from_outside(opd_tensor *x, opd_tensor *g, opd_autograd_function *f, int order) {
    opd_tensor *outs[2], *grads[2], *result = NULL;
    opd_backward_options o = options();
    grads[0] = grads[1] = g;
    o.grad_outputs = grads;
    for (int i = 0; i < 2; i++) { outs[i] = i == order ? opd_view(x, OPD_INTS(4)) : OPD_APPLY(f, x); }
    return opd_autograd_grad(outs, 2, &x, 1, &o, &result) ? NULL : result;
}
TEST(sum_with_memory_of_the_program) {
    opd_autograd_function f;
    memset(&f, 0, sizeof f);
    f.name = "Outside";
    f.forward = keep_input;
    f.backward = give_wrapped;
    for (int i = 0; i < 4; i++) { lent_memory[i] = 2; }
    for (int order = 0; order < 3; order++) {
        OPD_SCOPE {
            opd_tensor *x = opd_ones(OPD_INTS(4), OPD_FLOAT32), *g = opd_ones(OPD_INTS(4), OPD_FLOAT32);
            (void)opd_tensor_set_requires_grad(x, true);
            CHECK_NEAR(opd_item_f64(opd_max(grad_from_outside(x, g, &f, order))), order == 2 ? 4 : 3, 0);
            CHECK(lent_memory[0] == 2 && opd_data_f32(g)[0] == 1);
            CHECK_INT(opd_backward(opd_sum(OPD_APPLY(&f, x))), 0);
            CHECK_INT(opd_backward(opd_sum(OPD_APPLY(&f, x))), 0);
            CHECK(lent_memory[0] == 2 && opd_data_f32(opd_tensor_grad(x))[0] == 4);
        }
    }
}
typedef struct outside_case { opd_autograd_function f; int order; } outside_case;
static int trace_outside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    outside_case *const outside = (outside_case *)user;
    opd_tensor *const x = opd_detach(in[0]);
    (void)n;
    (void)opd_tensor_set_requires_grad(x, true);
    return (out[0] = grad_from_outside(x, in[1], &outside->f, outside->order)) ? 1 : -1;
}
TEST(sum_with_a_constant_of_a_graph) {
    outside_case outside;
    memset(&outside, 0, sizeof outside);
    outside.f.name = "Outside";
    outside.f.forward = keep_input;
    outside.f.backward = give_constant;
    for (int i = 0; i < 4; i++) { lent_memory[i] = 2; }
    for (outside.order = 0; outside.order < 3; outside.order++) {
        OPD_SCOPE {
            opd_tensor *in[2], *out = NULL;
            opd_trace_options o;
            memset(&o, 0, sizeof o);
            o.parts = true;
            for (int i = 0; i < 2; i++) { in[i] = opd_ones(OPD_INTS(4), OPD_FLOAT32); }
            opd_graph *const graph = opd_graph_trace(trace_outside, &outside, in, 2, &o);
            CHECK(graph != NULL);
            for (int i = 0; i < 3 && graph; i++) {
                CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), 1);
                CHECK_NEAR(opd_item_f64(opd_max(out)), outside.order == 2 ? 4 : 3, 0);
            }
            opd_graph_free(graph);
        }
    }
}

CHECK_MAIN()
