/* Hooks, handles of nodes, saved-tensor hooks, checkpoints, anomaly mode.  THREADED */
#include "../../opdispatch.h"
#include "../tape.h"

#include <pthread.h>

static double grad_of(opd_tensor *t) { return opd_tensor_grad(t) ? opd_item_f64(opd_tensor_grad(t)) : -1; }
static double first(opd_tensor *t) { return t && opd_data_f64(t) ? opd_data_f64(t)[0] : -1e9; }
static int backward_again(opd_tensor *y) {
    opd_backward_options o = options();
    o.retain_graph = true;
    return opd_backward_with(&y, 1, &o);
}

//-- nodes -------------------------------------------------------------------------------------------------------------

TEST(handles_of_nodes) {
    opd_tensor *x = vec(3, true), *y = opd_mul(x, of(2)), *z = opd_sum(y);
    opd_node *n = opd_tensor_node(z), *m;
    opd_edge e = opd_gradient_edge(x);
    CHECK_STR(opd_node_name(n), "SumBackward0");
    CHECK_STR(opd_op_name(opd_node_op(n)), "aten::sum");
    CHECK_INT(opd_node_edges(n), 1);
    m = opd_node_edge(n, 0).node;
    CHECK(m == opd_tensor_node(y) && opd_node_edge(n, 0).nr == 0 && opd_node_sequence(m) < opd_node_sequence(n));
    CHECK_INT(opd_node_edges(m), 2);
    CHECK(opd_node_edge(m, 0).node == e.node && opd_node_edge(m, 1).node == NULL && opd_node_edge(m, 2).node == NULL);
    CHECK_STR(opd_node_name(e.node), "torch::autograd::AccumulateGrad");
    CHECK(opd_node_variable(e.node) == x && !opd_node_variable(n) && opd_node_sequence(e.node) == UINT64_MAX);
    CHECK_INT(opd_node_inputs(m), 1);
    CHECK(opd_node_sizes(m, 0).n == 1 && opd_node_sizes(m, 0).data[0] == 3 && opd_node_sizes(m, 1).n == -1);
    CHECK_INT(opd_node_dtype(m, 0), OPD_FLOAT64);
    CHECK_INT(opd_node_device(m, 0).type, OPD_CPU);
    CHECK(opd_node_sizes(e.node, 0).n == 1 && opd_node_edges(e.node) == 0 && !opd_node_op(e.node));
    CHECK(!opd_tensor_node(x) && opd_node_edges(NULL) == 0 && opd_node_inputs(NULL) == 0);
    CHECK_STR(opd_node_name(NULL), "");
    e = opd_gradient_edge(of(1));
    CHECK(!e.node);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "It is not possible to get the gradient edge for a Tensor that does not require gradients");
}

TEST(kept_nodes_outlive_their_tensors) {
    opd_node *n, *a;
    OPD_SCOPE {
        opd_tensor *x = leaf(2);
        n = opd_node_keep(opd_tensor_node(opd_mul(x, x)));
        a = opd_node_keep(opd_gradient_edge(x).node);
    }
    CHECK_STR(opd_node_name(n), "MulBackward0");
    CHECK_NEAR(opd_item_f64(opd_node_variable(a)), 2, 0);
    opd_node_release(n);
    opd_node_release(a);
    opd_node_release(NULL);
}

//-- order -------------------------------------------------------------------------------------------------------------

static char told[400];
static void tells(const char *what) { strncat(told, what, sizeof told - strlen(told) - 1); }
static opd_tensor *tell_tensor(opd_tensor *grad, void *user) { (void)grad; tells((const char *)user); return NULL; }
static int tell_pre(opd_tensor **grads, int n, void *user) { (void)grads; (void)n; tells((const char *)user); return 0; }
static int tell_post(opd_tensor **out, int nout, opd_tensor *const *grads, int n, void *user) {
    (void)out; (void)nout; (void)grads; (void)n;
    tells((const char *)user);
    return 0;
}
static opd_tensor *watched;
static int tell_accumulated(opd_tensor *t, void *user) {
    CHECK(t == watched && opd_tensor_grad(t) != NULL);
    tells((const char *)user);
    return 0;
}
#define TEXT(s) ((void *)(uintptr_t)(s))

static void hook_all(opd_tensor *a, opd_tensor *b) {
    opd_node *na = opd_gradient_edge(a).node, *nb = opd_tensor_node(b);
    told[0] = 0;
    watched = a;
    CHECK(opd_node_post_hook_add(nb, tell_post, TEXT("b-post "), NULL) > 0);
    CHECK(opd_node_pre_hook_add(nb, tell_pre, TEXT("b-pre "), NULL) > 0);
    CHECK(opd_tensor_hook_add(b, tell_tensor, TEXT("b1 "), NULL) > 0);
    CHECK(opd_tensor_hook_add(b, tell_tensor, TEXT("b2 "), NULL) > 0);
    CHECK(opd_node_post_hook_add(na, tell_post, TEXT("a-post "), NULL) > 0);
    CHECK(opd_tensor_post_accumulate_hook_add(a, tell_accumulated, TEXT("a-acc "), NULL) > 0);
    CHECK(opd_node_pre_hook_add(na, tell_pre, TEXT("a-pre "), NULL) > 0);
    CHECK(opd_tensor_hook_add(a, tell_tensor, TEXT("a1 "), NULL) > 0);
}

TEST(order_of_hooks_at_a_node) {
    opd_tensor *a = leaf(1), *b = opd_mul(a, of(2)), *c = opd_mul(b, of(2));
    hook_all(a, b);
    CHECK_INT(opd_backward(c), 0);
    CHECK_STR(told, "b1 b2 b-pre b-post a1 a-pre a-acc a-post ");
    CHECK_NEAR(grad_of(a), 4, 0);
}

TEST(captured_nodes_run_tensor_hooks_only) {           /* test_hook_edge_case_when_called_with_grad */
    opd_tensor *a = leaf(1), *b = opd_mul(a, of(2)), *c = opd_mul(b, of(2)), *both[2], *g[2];
    opd_backward_options o = options();
    o.retain_graph = true;
    both[0] = a;
    both[1] = b;
    hook_all(a, b);
    CHECK_INT(opd_autograd_grad(&c, 1, &b, 1, &o, g), 0);
    CHECK_STR(told, "b1 b2 ");
    told[0] = 0;
    CHECK_INT(opd_autograd_grad(&c, 1, both, 2, &o, g), 0);
    CHECK_STR(told, "b1 b2 b-pre b-post a1 ");
    CHECK(opd_tensor_grad(a) == NULL);
    told[0] = 0;
    o.inputs = &b;
    o.ninputs = 1;
    CHECK_INT(opd_backward_with(&c, 1, &o), 0);
    CHECK_STR(told, "b1 b2 ");
    CHECK_NEAR(grad_of(b), 2, 0);
}

//-- tensor hooks ------------------------------------------------------------------------------------------------------

static opd_tensor *doubled(opd_tensor *grad, void *user) { (void)user; return opd_mul(grad, of(2)); }
static opd_tensor *counted(opd_tensor *grad, void *user) { (void)grad; ++*(int *)user; return NULL; }

TEST(tensor_hooks_replace_gradients) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *z = opd_mul(y, of(5));
    int64_t h = opd_tensor_hook_add(y, doubled, NULL, NULL), k = opd_tensor_hook_add(x, doubled, NULL, NULL);
    CHECK(h > 0 && k > 0 && h != k);
    CHECK_INT(backward_again(z), 0);
    CHECK_NEAR(grad_of(x), 5 * 2 * 6 * 2, 0);
    CHECK(opd_hook_remove(h) && !opd_hook_remove(h) && !opd_hook_remove(0) && !opd_hook_remove(-7) && !opd_hook_remove(h + 100));
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(backward_again(z), 0);
    CHECK_NEAR(grad_of(x), 60, 0);
    CHECK(opd_hook_remove(k));
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_backward(z), 0);
    CHECK_NEAR(grad_of(x), 30, 0);
}

TEST(a_hook_gets_the_sum_once) {
    int n = 0;
    opd_tensor *x = leaf(3), *y = opd_mul(x, of(2)), *z = opd_add(opd_mul(y, y), y);
    CHECK(opd_tensor_hook_add(y, counted, &n, NULL) > 0);
    CHECK_INT(opd_backward(z), 0);
    CHECK_INT(n, 1);
}

TEST(hooks_belong_to_a_result_of_many) {
    int n[2] = {0, 0};
    opd_tensor *x = vec(4, true);
    opd_tensors parts = opd_split(x, 2, 0);
    CHECK(opd_tensor_hook_add(parts.data[0], counted, &n[0], NULL) > 0 && opd_tensor_hook_add(parts.data[1], counted, &n[1], NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(parts.data[1])), 0);
    CHECK_INT(n[0], 0);                           /* no gradient arrives there */
    CHECK_INT(n[1], 1);
}

TEST(hooks_that_are_refused) {
    int n = 0;
    opd_tensor *x = leaf(1), *y = opd_mul(x, x);
    CHECK_INT(opd_tensor_hook_add(of(1), counted, &n, NULL), 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "cannot register a hook on a variable that doesn't require gradient");
    CHECK_INT(opd_tensor_hook_add(NULL, counted, &n, NULL), 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "cannot register a hook");
    CHECK_INT(opd_tensor_hook_add(x, NULL, NULL, NULL), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a hook is NULL");
    CHECK_INT(opd_tensor_post_accumulate_hook_add(y, tell_accumulated, NULL, NULL), 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "post accumulate grad hooks cannot be registered on non-leaf tensors");
    CHECK_INT(opd_tensor_post_accumulate_hook_add(of(1), tell_accumulated, NULL, NULL), 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "cannot register a hook on a variable that doesn't require gradient");
    CHECK_INT(opd_node_pre_hook_add(NULL, tell_pre, NULL, NULL), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the node is NULL");
    CHECK_INT(opd_tensor_retain_grad(of(1)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "can't retain_grad on a tensor that does not require grad");
}

static opd_tensor *wrong_size(opd_tensor *grad, void *user) { (void)grad; (void)user; return vec(2, false); }
static opd_tensor *wrong_type(opd_tensor *grad, void *user) { (void)user; return opd_to_dtype(grad, OPD_FLOAT32); }
static opd_tensor *failing(opd_tensor *grad, void *user) { (void)grad; (void)user; (void)opd_fail(OPD_ERROR_USER, "no"); return NULL; }
static int set_none(opd_tensor **grads, int n, void *user) { (void)n; (void)user; grads[0] = of(1); return 0; }
static int pre_fails(opd_tensor **grads, int n, void *user) { (void)grads; (void)n; (void)user; return -1; }

TEST(replacements_are_checked) {
    static const struct { opd_tensor_hook_fn fn; const char *text; opd_code code; } bad[] = {
        {wrong_size, "has changed the size of value", OPD_ERROR_AUTOGRAD},
        {wrong_type, "has changed the type of value (was float64 on cpu, got float32 on cpu)", OPD_ERROR_AUTOGRAD},
        {failing, "no", OPD_ERROR_USER}};
    size_t i;
    for (i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        opd_tensor *x = leaf(3), *y = opd_mul(x, x), *z = opd_mul(y, of(5));
        int64_t h = opd_tensor_hook_add(y, bad[i].fn, NULL, NULL);
        CHECK_INT(backward_again(z), -1);
        CHECK(strstr(opd_error_message(), " [in MulBackward0 of aten::mul.Tensor]") != NULL);
        CHECK_ERROR(bad[i].code, bad[i].text);
        CHECK(opd_tensor_grad(x) == NULL);
        CHECK(opd_hook_remove(h));
        h = opd_tensor_hook_add(x, bad[i].fn, NULL, NULL);
        CHECK_INT(backward_again(z), -1);
        CHECK(strstr(opd_error_message(), " [in torch::autograd::AccumulateGrad]") != NULL);
        CHECK_ERROR(bad[i].code, bad[i].text);
        CHECK(opd_hook_remove(h));
        CHECK_INT(backward_again(z), 0);          /* the next one works */
        CHECK_NEAR(grad_of(x), 30, 0);
    }
}

//-- node hooks --------------------------------------------------------------------------------------------------------

static int pre_doubles(opd_tensor **grads, int n, void *user) {
    int i;
    (void)user;
    for (i = 0; i < n; i++) { if (grads[i]) { grads[i] = opd_mul(grads[i], of(2)); } }
    return 0;
}
static int post_takes_away(opd_tensor **out, int nout, opd_tensor *const *grads, int n, void *user) {
    CHECK(nout == 2 && n == 1 && out[0] && grads[0]);
    *(double *)user = opd_item_f64(out[0]);
    out[1] = NULL;
    return 0;
}

TEST(node_hooks_replace_gradients) {
    double seen = 0;
    opd_tensor *x = leaf(3), *w = leaf(4), *y = opd_mul(x, w), *z = opd_mul(y, of(1));
    CHECK(opd_node_pre_hook_add(opd_tensor_node(y), pre_doubles, NULL, NULL) > 0);
    CHECK(opd_node_post_hook_add(opd_tensor_node(y), post_takes_away, &seen, NULL) > 0);
    CHECK_INT(opd_backward(z), 0);
    CHECK_NEAR(seen, 8, 0);
    CHECK_NEAR(grad_of(x), 8, 0);
    CHECK(opd_tensor_grad(w) == NULL);
}

TEST(node_hooks_see_undefined_gradients) {
    opd_tensor *x = vec(4, true);
    opd_tensors parts = opd_unbind(x);
    int64_t h = opd_node_pre_hook_add(opd_tensor_node(parts.data[0]), set_none, NULL, NULL);
    CHECK_INT(backward_again(parts.data[1]), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a hook that gets NULL must return NULL");
    CHECK(opd_hook_remove(h));
    h = opd_node_pre_hook_add(opd_tensor_node(parts.data[0]), pre_fails, NULL, NULL);
    CHECK_INT(backward_again(parts.data[1]), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "failed without setting an error");
    CHECK(opd_hook_remove(h));
    CHECK_INT(opd_backward(parts.data[1]), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[1], 1, 0);
}

//-- handles and lifetimes ---------------------------------------------------------------------------------------------

static int destroyed;
static void destroy(void *user) { ++*(int *)user; }

TEST(user_pointers_are_destroyed_once) {
    int64_t h;
    destroyed = 0;
    OPD_SCOPE {
        opd_tensor *x = leaf(1), *y = opd_mul(x, x);
        h = opd_tensor_hook_add(y, tell_tensor, &destroyed, destroy);
        CHECK(opd_hook_remove(h));
        CHECK_INT(destroyed, 1);
        h = opd_tensor_hook_add(y, tell_tensor, &destroyed, destroy);
        CHECK(opd_tensor_hook_add(x, tell_tensor, &destroyed, destroy) > 0);
        CHECK(opd_node_post_hook_add(opd_tensor_node(y), tell_post, &destroyed, destroy) > 0);
    }
    CHECK_INT(destroyed, 4);                      /* with the graph */
    CHECK(!opd_hook_remove(h));
    CHECK_INT(destroyed, 4);
}

typedef struct removal { int64_t self, other; int ran; opd_tensor *t; } removal;
static opd_tensor *removes(opd_tensor *grad, void *user) {
    removal *r = (removal *)user;
    (void)grad;
    r->ran++;
    CHECK(opd_hook_remove(r->self));
    if (r->other) { CHECK(opd_hook_remove(r->other)); }
    if (r->t) { CHECK(opd_tensor_hook_add(r->t, counted, &destroyed, NULL) > 0); }
    return NULL;
}
TEST(hooks_may_remove_and_add_hooks) {
    removal r = {0, 0, 0, NULL};
    int n = 0;
    opd_tensor *x = leaf(1), *y = opd_mul(x, x);
    destroyed = 0;
    r.self = opd_tensor_hook_add(y, removes, &r, NULL);
    r.other = opd_tensor_hook_add(y, counted, &n, NULL);
    r.t = y;
    CHECK_INT(backward_again(y), 0);
    CHECK(r.ran == 1 && n == 0 && destroyed == 0);
    CHECK_INT(backward_again(y), 0);
    CHECK(r.ran == 1 && n == 0 && destroyed == 1);           /* the added one runs from the next time on */
}

TEST(many_hooks) {
    int64_t h[100];
    int n = 0, i;
    opd_tensor *x = leaf(1), *y = opd_mul(x, x);
    for (i = 0; i < 100; i++) { h[i] = opd_tensor_hook_add(i % 2 ? x : y, counted, &n, NULL); }
    CHECK_INT(backward_again(y), 0);
    CHECK_INT(n, 100);
    for (i = 0; i < 100; i += 3) { CHECK(opd_hook_remove(h[i])); }
    n = 0;
    CHECK_INT(backward_again(y), 0);
    CHECK_INT(n, 66);
}

//-- in place, retain_grad ---------------------------------------------------------------------------------------------

TEST(hooks_stay_behind_in_place) {                     /* test_hook_with_inplace */
    double at[2] = {0, 0};
    int before = 0, after = 0;
    opd_tensor *x = leaf(3), *y = opd_mul(x, of(2));
    (void)at;
    CHECK(opd_tensor_hook_add(y, counted, &before, NULL) > 0);
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    CHECK(OPD_CALL(op_named("aten::mul_.Tensor"), y, of(10)) == y);
    CHECK(opd_tensor_hook_add(y, doubled, NULL, NULL) > 0 && opd_tensor_hook_add(y, counted, &after, NULL) > 0);
    CHECK_INT(opd_backward(opd_mul(y, of(7))), 0);
    CHECK(before == 1 && after == 1);
    CHECK_NEAR(grad_of(y), 14, 0);                /* of the newest value */
    CHECK_NEAR(grad_of(x), 14 * 20, 0);
}

TEST(retain_grad) {                                    /* test_retain_grad */
    opd_tensor *x = vec(3, true), *h = opd_mul(x, of(3)), *out = opd_sum(opd_mul(h, h));
    CHECK_INT(opd_tensor_retain_grad(h), 0);
    CHECK_INT(opd_tensor_retain_grad(h), 0);
    CHECK(opd_tensor_retains_grad(h) && !opd_tensor_retains_grad(x));
    CHECK_INT(backward_again(out), 0);
    CHECK_NEAR(first(opd_tensor_grad(h)), 6, 0);
    CHECK_INT(backward_again(out), 0);
    CHECK_NEAR(first(opd_tensor_grad(h)), 12, 0);
    CHECK_INT(opd_tensor_set_grad(h, NULL), 0);
    CHECK(opd_tensor_grad(h) == NULL);
    CHECK_INT(opd_backward(out), 0);
    CHECK_NEAR(first(opd_tensor_grad(h)), 6, 0);
    CHECK_INT(opd_tensor_retain_grad(x), 0);      /* nothing to do for a leaf */
    CHECK(!opd_tensor_retains_grad(x));
}

TEST(retained_gradients_are_those_after_all_tensor_hooks) {
    opd_tensor *x = leaf(1), *y = opd_mul(x, of(1));
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    CHECK(opd_tensor_hook_add(y, doubled, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_mul(y, of(1))), 0);
    CHECK_NEAR(grad_of(y), 2, 0);
}

TEST(a_tensor_that_is_gone_retains_nothing) {
    opd_tensor *x = leaf(2), *z;
    opd_scope s = opd_scope_open();
    opd_tensor *y = opd_mul(x, of(3));
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    z = opd_scope_return(opd_mul(y, of(1)));
    opd_scope_close(&s);
    CHECK_INT(opd_backward(z), 0);
    CHECK_NEAR(grad_of(x), 3, 0);
    y = opd_mul(x, of(3));                        /* and one that outlives its graph */
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(y), 1, 0);
}

TEST(hooks_see_history_with_create_graph) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *z = opd_mul(y, y), *g = NULL, *gg = NULL;
    opd_backward_options o = options();
    o.create_graph = true;
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    CHECK(opd_tensor_hook_add(y, doubled, NULL, NULL) > 0);
    CHECK_INT(opd_autograd_grad(&z, 1, &x, 1, &o, &g), 0);
    CHECK(opd_tensor_requires_grad(g) && opd_tensor_requires_grad(opd_tensor_grad(y)));
    CHECK_NEAR(opd_item_f64(g), 2 * 4 * 27, 0);
    CHECK_INT(opd_autograd_grad(&g, 1, &x, 1, NULL, &gg), 0);
    CHECK(gg != NULL);
    CHECK_INT(opd_tensor_set_grad(y, NULL), 0);
}

//-- several tensors ---------------------------------------------------------------------------------------------------

typedef struct seen { int calls, n, given; double sum; } seen;
static int see(opd_tensor *const *grads, int n, void *user) {
    seen *s = (seen *)user;
    int i;
    s->calls++;
    s->n = n;
    s->given = 0;
    s->sum = 0;
    for (i = 0; i < n; i++) {
        if (!grads[i]) { continue; }
        s->given++;
        s->sum += opd_item_f64(opd_sum(grads[i]));
    }
    return 0;
}

TEST(one_hook_for_several_tensors) {                   /* test_register_multi_grad_hook (all) */
    seen all = {0, 0, 0, 0}, any = {0, 0, 0, 0};
    opd_tensor *t[4], *a = leaf(2), *b = leaf(3), *c = leaf(4), *ab, *out;
    int64_t h, k;
    ab = opd_mul(a, b);
    t[0] = a;
    t[1] = b;
    t[2] = ab;
    t[3] = c;
    out = opd_mul(ab, of(10));
    h = opd_multi_hook_add(t, 4, OPD_MULTI_ALL, see, &all, NULL);
    k = opd_multi_hook_add(t, 4, OPD_MULTI_ANY, see, &any, NULL);
    CHECK(h > 0 && k > 0);
    CHECK_INT(backward_again(out), 0);
    CHECK(all.calls == 1 && all.n == 4 && all.given == 3);   /* c is not reached */
    CHECK_NEAR(all.sum, 10 * 3 + 10 * 2 + 10, 0);
    CHECK(any.calls == 1 && any.given == 1);
    CHECK_NEAR(any.sum, 10, 0);
    CHECK_INT(backward_again(opd_mul(out, c)), 0);           /* each backward for itself */
    CHECK(all.calls == 2 && all.given == 4 && any.calls == 2);
    CHECK(opd_hook_remove(h) && !opd_hook_remove(h));
    CHECK_INT(backward_again(out), 0);
    CHECK(all.calls == 2 && any.calls == 3);
    CHECK(opd_hook_remove(k));
    CHECK_INT(opd_multi_hook_add(t, 4, (opd_multi_mode)7, see, &all, NULL), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expects mode to be one of ('all', 'any') but got 7");
    t[3] = of(1);
    CHECK_INT(opd_multi_hook_add(t, 4, OPD_MULTI_ALL, see, &all, NULL), 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "cannot register a hook on a variable that doesn't require gradient");
}

TEST(several_tensors_that_go_one_by_one) {
    int64_t h;
    opd_tensor *t[2];
    destroyed = 0;
    t[0] = leaf(1);
    OPD_SCOPE {
        t[1] = leaf(2);
        h = opd_multi_hook_add(t, 2, OPD_MULTI_ALL, see, &destroyed, destroy);
    }
    CHECK_INT(destroyed, 0);
    CHECK(opd_hook_remove(h));
    CHECK_INT(destroyed, 1);
}

//-- saved-tensor hooks ------------------------------------------------------------------------------------------------

static int packs, unpacks, drops;
static void *pack_double(opd_tensor *t, void *user) {
    (void)user;
    packs++;
    CHECK(!opd_tensor_requires_grad(t));
    return opd_keep(opd_mul(t, of(2)));
}
static opd_tensor *unpack_same(void *packed, void *user) { (void)user; unpacks++; return (opd_tensor *)packed; }
static void drop_tensor(void *packed, void *user) { (void)user; drops++; opd_release((opd_tensor *)packed); }
static opd_saved_hooks doubling(void) {
    opd_saved_hooks h;
    memset(&h, 0, sizeof h);
    h.pack = pack_double;
    h.unpack = unpack_same;
    h.drop = drop_tensor;
    packs = unpacks = drops = 0;
    return h;
}

TEST(default_saved_tensor_hooks) {                     /* test_saved_variable_packing_unpacking_did_not_save_original */
    opd_saved_hooks h = doubling();
    opd_tensor *a = leaf(5), *y;
    destroyed = 0;
    h.user = &destroyed;
    h.destroy = destroy;
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    y = opd_mul(a, a);
    opd_saved_hooks_end();
    CHECK(packs == 2 && unpacks == 0 && destroyed == 0);
    CHECK_NEAR(opd_item_f64(y), 25, 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(a), 2 * 2 * 5, 0);         /* what was packed was doubled */
    CHECK(unpacks >= 2 && drops == 2 && destroyed == 1);
    opd_saved_hooks_end();                        /* none is there: harmless */
}

TEST(innermost_saved_tensor_hooks_win) {
    opd_saved_hooks h = doubling();
    opd_tensor *a = leaf(2), *y;
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    y = opd_exp(a);                               /* saves its result */
    CHECK_INT(packs, 1);
    opd_saved_hooks_end();
    opd_saved_hooks_end();
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(a), 2 * exp(2), 1e-12);
    CHECK_INT(drops, 1);
}

TEST(saved_tensor_hooks_and_second_derivatives) {
    opd_saved_hooks h = doubling();
    opd_tensor *a = leaf(2), *y, *z, *g = NULL, *gg = NULL;
    opd_backward_options o = options();
    o.create_graph = true;
    h.pack = NULL;
    CHECK_INT(opd_saved_hooks_begin(&h), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "both pack and unpack must be given");
    h = doubling();
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    y = opd_mul(a, a);
    z = opd_mul(y, a);
    opd_saved_hooks_end();
    CHECK_INT(opd_autograd_grad(&z, 1, &a, 1, &o, &g), 0);
    /* z = y a with saved 2 y and 2 a: y's gradient 2a, a's 2y; of y = a a each 2 a times 2 a */
    CHECK_NEAR(opd_item_f64(g), 2 * 4 + 2 * (2 * 2 * 2 * 2), 0);
    CHECK_INT(opd_autograd_grad(&g, 1, &a, 1, NULL, &gg), 0);
    CHECK(gg != NULL && opd_item_f64(gg) > 0);    /* the unpacked ones have their history */
}

static void *pack_writes(opd_tensor *t, void *user) { (void)user; (void)OPD_CALL(op_named("aten::add_.Tensor"), t, of(1)); return NULL; }
static void *pack_fails(opd_tensor *t, void *user) { (void)t; (void)user; (void)opd_fail(OPD_ERROR_USER, "disk full"); return NULL; }
static opd_tensor *unpack_nothing(void *packed, void *user) { (void)packed; (void)user; return NULL; }
TEST(saved_tensor_hooks_that_fail) {
    opd_saved_hooks h = doubling();
    opd_tensor *a = leaf(2), *y;
    h.drop = NULL;
    h.pack = pack_writes;
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    CHECK(opd_exp(a) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not "
                "be modified by in-place operations as this can lead to unexpected side-effects.");
    opd_saved_hooks_end();
    h.pack = pack_fails;
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    CHECK(opd_mul(a, a) == NULL);
    CHECK_ERROR(OPD_ERROR_USER, "disk full");
    opd_saved_hooks_end();
    h = doubling();
    h.unpack = unpack_nothing;
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    y = opd_mul(a, a);
    opd_saved_hooks_end();
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Output of saved tensor unpack_hook expected to be a Tensor but got NULL");
    CHECK_INT(drops, 0);
}

TEST(saved_tensor_hooks_switched_off) {                /* test_disabling_saved_tensor_hooks */
    opd_saved_hooks h = doubling();
    CHECK(opd_saved_hooks_disabled() == NULL);
    CHECK_INT(opd_saved_hooks_disable("error message"), 0);
    CHECK_STR(opd_saved_hooks_disabled(), "error message");
    CHECK_INT(opd_saved_hooks_begin(&h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "error message");
    CHECK_INT(opd_saved_hooks_disable(NULL), 0);
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    CHECK_INT(opd_saved_hooks_disable("not now"), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "not now");
    CHECK_INT(opd_saved_hooks_disable(NULL), 0);
    opd_saved_hooks_end();
}

//-- writes to saved tensors: PyTorch's TestAllowMutationOnSaved --------------------------------------------------------

static opd_tensor *sin_(opd_tensor *t) { static opd_op *op; return OPD_CALL(OPD_OP(&op, "aten::sin_"), t); }
static opd_tensor *square(opd_tensor *t) { return opd_pow_Tensor_Scalar(t, OPD_V(2)); }
static opd_tensor *clone_of(opd_tensor *t) { return opd_clone(t); }
static opd_tensor *large(void) {
    opd_tensor *a = opd_linspace(OPD_V(0.1), OPD_V(0.9), 3000, OPD_FLOAT64);
    return opd_tensor_set_requires_grad(a, true);
}
static int64_t copies_made(opd_tensor *(*write)(opd_tensor *), opd_tensor *t) {
    const int64_t live = opd_memory_stats().live;
    CHECK(write(t) != NULL);
    return (opd_memory_stats().live - live) / (3000 * 8);
}
static void check_twice(opd_tensor *a, double factor) {
    int i;
    CHECK_OR_RETURN(opd_tensor_grad(a) != NULL);
    for (i = 0; i < 3000; i += 700) {
        CHECK_NEAR(opd_data_f64(opd_tensor_grad(a))[i], factor * opd_data_f64(a)[i], 1e-12);
    }
}
static opd_tensor *sin_in_no_grad(opd_tensor *t) {
    opd_tensor *r = NULL;
    OPD_NO_GRAD { r = sin_(t); }
    return r;
}

TEST(saved_may_be_written) {                      /* test_basic, test_save_base_and_modify_view, _view_modify_base */
    opd_tensor *a, *b, *out;
    OPD_ALLOW_MUTATION {
        a = large();
        b = clone_of(a);
        out = opd_sum(square(b));
        CHECK_INT(copies_made(sin_in_no_grad, b), 1);
        CHECK_INT(opd_backward(out), 0);
        check_twice(a, 2);

        a = large();
        b = clone_of(a);
        out = opd_sum(square(b));
        CHECK(sin_(opd_slice(b, 0, OPD_V(1), OPD_NONE, 1)) && sin_(opd_slice(b, 0, OPD_V(0), OPD_V(2), 1)));
        CHECK_INT(opd_backward(out), 0);
        check_twice(a, 2);

        a = large();
        b = clone_of(a);
        out = opd_sum(square(opd_slice(b, 0, OPD_NONE, OPD_NONE, 1)));
        CHECK(sin_(b) != NULL);
        CHECK_INT(opd_backward(out), 0);
        check_twice(a, 2);
    }
}
TEST(saved_many_times_is_copied_once) {           /* test_saved_same_tensor_many_times, _different_versions */
    opd_tensor *a = large(), *b, *out, *two = of(2), *x;
    OPD_ALLOW_MUTATION {
        b = clone_of(a);
        x = opd_add(opd_mul(b, b), opd_mul(b, b));
        out = opd_sum(x);
        CHECK_INT(copies_made(sin_in_no_grad, b), 1);
        CHECK_INT(opd_backward(out), 0);
        check_twice(a, 4);

        a = large();
        b = clone_of(a);
        out = square(b);
        OPD_NO_GRAD { CHECK(OPD_CALL(op_named("aten::mul_.Tensor"), b, two) != NULL); }
        out = opd_sum(opd_add(out, square(b)));   /* d (2a)^2/d(2a) = 4a, which the write in no_grad hides */
        CHECK_INT(copies_made(sin_in_no_grad, b), 1);
        CHECK_INT(copies_made(sin_in_no_grad, b), 0);
        CHECK_INT(opd_backward(out), 0);
        check_twice(a, 2 + 4);
    }
}
TEST(saved_and_gone_is_not_copied) {              /* test_saved_but_not_anymore */
    opd_tensor *a = large(), *b;
    OPD_ALLOW_MUTATION {
        b = clone_of(a);
        OPD_SCOPE { CHECK(square(b) != NULL); }
        CHECK_INT(copies_made(sin_in_no_grad, b), 0);
        OPD_SCOPE { CHECK_INT(opd_backward(opd_sum(square(b))), 0); }
        CHECK_INT(copies_made(sin_in_no_grad, b), 0);
    }
}
TEST(written_values_and_second_derivatives) {     /* test_double_backward; a leaf under no_grad; out= */
    opd_tensor *a = large(), *b, *out, *g = NULL;
    opd_backward_options o = options();
    opd_value v[2];
    o.create_graph = true;
    OPD_ALLOW_MUTATION {
        b = clone_of(a);
        out = opd_sum(square(b));
        CHECK(sin_(b) != NULL);
        CHECK_INT(opd_autograd_grad(&out, 1, &a, 1, &o, &g), 0);
        CHECK_INT(opd_backward(opd_sum(g)), 0);
        CHECK_NEAR(first(opd_tensor_grad(a)), 2, 0);

        a = large();                              /* test_with_out_variant */
        b = opd_rand(OPD_INTS(3000), OPD_FLOAT64);
        g = clone_of(b);
        out = opd_sum(opd_mul(a, b));
        OPD_NO_GRAD {
            v[0] = opd_value_tensor(a);
            v[1] = opd_value_tensor(b);
            CHECK(opd_call_op(op_named("aten::sin.out"), v, 2) == b);
            CHECK(sin_(a) == a);
        }
        CHECK_INT(opd_backward(out), 0);
        CHECK_NEAR(first(opd_tensor_grad(a)), first(g), 0);

        a = large();                              /* the value of its own node; the node of the write itself */
        b = opd_exp(a);
        g = opd_detach(clone_of(b));
        CHECK(sin_(b) == b);
        CHECK_INT(opd_backward(opd_sum(b)), 0);
        CHECK_NEAR(first(opd_tensor_grad(a)), first(g) * cos(first(g)), 1e-12);
    }
}
TEST(saved_outside_of_the_mode) {                 /* test_backward_out_of_context, test_disallow_nesting */
    opd_tensor *a = large(), *b, *out = NULL;
    opd_saved_hooks h = doubling();
    OPD_ALLOW_MUTATION {
        out = opd_sum(square(clone_of(a)));
        CHECK_INT(opd_allow_mutation_begin(), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "allow_mutation_on_saved_tensors contexts cannot be nested");
        OPD_ALLOW_MUTATION { CHECK(false); }
        opd_error_clear();
    }
    CHECK_INT(opd_backward(out), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded.");
    OPD_ALLOW_MUTATION {                          /* another one is no help */
        CHECK_INT(opd_backward(out), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward outside");
    }
    b = clone_of(a);                              /* saved before: as ever */
    out = opd_sum(square(b));
    OPD_ALLOW_MUTATION { CHECK(sin_(b) != NULL); }
    CHECK_INT(opd_backward(out), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "modified by an inplace operation");
    CHECK_INT(opd_allow_mutation_begin(), 0);     /* hooks inside are asked first, and may outlive it */
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    out = opd_exp(a);
    opd_allow_mutation_end();
    opd_allow_mutation_end();                     /* none is open: harmless */
    CHECK_INT(packs, 1);
    out = opd_sum(opd_exp(out));
    CHECK_INT(packs, 2);
    opd_saved_hooks_end();
    CHECK_INT(opd_backward(out), 0);
    CHECK_INT(opd_saved_hooks_disable("no hooks here"), 0);
    CHECK_INT(opd_allow_mutation_begin(), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "no hooks here");
    CHECK_INT(opd_saved_hooks_disable(NULL), 0);
}
TEST(many_saved_parts_of_one_memory) {
    opd_tensor *a = large(), *b = clone_of(a), *sum = of(0);
    int i;
    OPD_ALLOW_MUTATION {
        for (i = 0; i < 3000; i++) { sum = opd_add(sum, square(opd_select(b, 0, i))); }
        for (i = 0; i < 3000; i += 3) { CHECK(sin_(opd_select(b, 0, i)) != NULL); }
        CHECK_INT(opd_backward(sum), 0);
        check_twice(a, 2);
    }
}
static opd_tensor *mutation_graphs[4][50];
static void *run_backwards(void *arg) {
    opd_tensor **y = (opd_tensor **)arg;
    int i;
    for (i = 0; i < 50; i++) {
        OPD_SCOPE { CHECK_INT(opd_backward(y[i]), 0); }
        opd_release(y[i]);
    }
    return NULL;
}
TEST(graphs_of_the_mode_run_on_other_threads) {
    pthread_t thread[4];
    opd_tensor *a[4], *b;
    int i, k;
    OPD_ALLOW_MUTATION {
        for (k = 0; k < 4; k++) {
            a[k] = vec(8, true);
            for (i = 0; i < 50; i++) {
                OPD_SCOPE {
                    b = clone_of(a[k]);
                    mutation_graphs[k][i] = opd_keep(opd_sum(square(b)));
                    CHECK(sin_(b) != NULL);
                }
            }
        }
        for (k = 0; k < 4; k++) { CHECK_INT(pthread_create(&thread[k], NULL, run_backwards, mutation_graphs[k]), 0); }
        for (i = 0; i < 200; i++) {
            OPD_SCOPE {
                b = vec(8, true);
                CHECK(square(clone_of(b)) && sin_in_no_grad(b) == b);
            }
        }
        for (k = 0; k < 4; k++) { (void)pthread_join(thread[k], NULL); }
    }
    for (k = 0; k < 4; k++) { CHECK_NEAR(first(opd_tensor_grad(a[k])), 50 * 2, 1e-9); }
}
TEST(saved_may_be_written_when_memory_runs_out) {
    int64_t n;
    for (n = 1; n < 300; n++) {
        OPD_SCOPE {
            opd_tensor *a = leaf(3), *b = clone_of(a), *out;
            (void)opd_memory_fail_at(n, false);
            OPD_ALLOW_MUTATION {
                out = opd_sum(square(b));
                (void)sin_(b);
                if (opd_backward(out) == 0) { CHECK_NEAR(grad_of(a), 6, 0); }
            }
            (void)opd_memory_fail_at(0, false);
        }
        if (opd_ok()) { break; }
        CHECK_ERROR(OPD_ERROR_MEMORY, "");
    }
    CHECK(n > 10 && n < 300);
}

static int k_product(opd_call *call) {
    opd_tensors xs = opd_arg_tensors(call, 0);
    return opd_return_tensor(call, opd_mul(xs.data[0], xs.data[1]));
}
static int product_backward(opd_backward_call *bw) {
    opd_tensors xs = opd_bw_tensors(bw, 0);
    return xs.n != 2 || opd_bw_return_at(bw, 0, 0, opd_mul(opd_bw_grad(bw, 0), xs.data[1])) ||
           opd_bw_return_at(bw, 0, 1, opd_mul(opd_bw_grad(bw, 0), xs.data[0])) ? -1 : 0;
}
static opd_library *product_library(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "hooked", NULL, "t", 1);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "product(Tensor[] xs) -> Tensor";
    d.cpu = k_product;
    d.backward = product_backward;
    d.save = "xs";
    CHECK_INT(opd_define(lib, &d), 0);
    return lib;
}
TEST(saved_tensor_hooks_and_lists) {
    opd_library *lib = product_library();
    opd_saved_hooks h = doubling();
    opd_tensor *t[2], *y, *g = NULL, *gg = NULL;
    opd_backward_options o = options();
    o.create_graph = true;
    t[0] = vec(2, true);
    t[1] = vec(2, true);
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    y = opd_sum(OPD_CALL(op_named("hooked::product"), opd_tensors_of(t, 2)));
    opd_saved_hooks_end();
    CHECK_INT(packs, 2);
    CHECK_INT(opd_autograd_grad(&y, 1, &t[0], 1, &o, &g), 0);
    CHECK_NEAR(first(g), 2, 0);
    g = opd_sum(g);
    CHECK_INT(opd_autograd_grad(&g, 1, &t[1], 1, NULL, &gg), 0);
    CHECK_NEAR(first(gg), 1, 0);                  /* unpacked with its history */
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(first(opd_tensor_grad(t[0])), 2, 0);
    CHECK_INT(drops, packs);
    opd_library_close(lib);
}

TEST(saved_values_by_name) {                           /* test_saved_variables_... with register_hooks */
    opd_saved_hooks h = doubling();
    opd_tensor *a = leaf(5), *b = of(3), *y = opd_mul(a, b), *e = opd_exp(a);
    const opd_value matrix = opd_value_tensor(opd_tensor_set_requires_grad(opd_eye(3, OPD_FLOAT64), true));
    opd_value qr[2];
    opd_node *n = opd_tensor_node(y);
    CHECK(opd_node_saved(n, "other") == b);
    CHECK(opd_node_saved(n, "self") == NULL && opd_ok());    /* b wants no gradient */
    CHECK(opd_node_saved(n, "nobody") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "MulBackward0 has no saved tensor 'nobody'");
    CHECK_NEAR(opd_item_f64(opd_node_saved(opd_tensor_node(e), "result")), exp(5), 0);
    CHECK(opd_tensor_node(opd_node_saved(opd_tensor_node(e), "result")) == opd_tensor_node(e));
    CHECK_INT(opd_call_all(opd_find("aten::linalg_qr"), qr, &matrix, 1), 0);     /* saves both: by name, and by number */
    CHECK(opd_node_saved(opd_tensor_node(qr[0].u.t), "R") == qr[1].u.t);
    CHECK(opd_node_saved(opd_tensor_node(qr[0].u.t), "result1") == qr[1].u.t);
    CHECK_INT(opd_node_saved_hooks(n, "self", &h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "hooks cannot be registered on a saved tensor that is NULL");
    CHECK_INT(opd_node_saved_hooks(n, "other", &h), 0);
    CHECK_INT(opd_node_saved_hooks(n, "other", &h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                "is allowed at a time.");
    CHECK_NEAR(opd_item_f64(opd_node_saved(n, "other")), 6, 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(a), 6, 0);
    CHECK(opd_node_saved(n, "other") == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time (or directly access saved tensors after they have "
                "already been freed)");
    CHECK_INT(opd_node_saved_hooks(n, "other", &h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Calling register_hooks on a saved tensor after it has been freed.");
}

static int pair_forward(opd_context *ctx) {
    opd_tensor *t[3];
    t[0] = opd_context_tensor(ctx, 0);
    t[1] = NULL;
    t[2] = opd_context_tensor(ctx, 1);
    return opd_context_save_for_backward(ctx, t, 3) || opd_context_return(ctx, opd_mul(t[0], t[2]));
}
static int pair_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(g, opd_context_saved(ctx, 2))) || opd_bw_return(bw, 1, opd_mul(g, opd_context_saved(ctx, 0)));
}
TEST(hooks_for_one_that_a_function_saved) {
    opd_autograd_function f;
    opd_saved_hooks h = doubling();
    opd_tensor *a = leaf(3), *b = leaf(5), *y;
    opd_node *n;
    memset(&f, 0, sizeof f);
    f.name = "Pair";
    f.forward = pair_forward;
    f.backward = pair_backward;
    y = OPD_APPLY(&f, a, b);
    n = opd_tensor_node(y);
    CHECK(opd_node_saved(n, "saved_tensors[0]") == a && opd_node_saved(n, "saved_tensors[2]") == b);
    CHECK(opd_node_saved(n, "saved_tensors[1]") == NULL && opd_ok());
    CHECK(opd_node_saved(n, "saved_tensors[3]") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "PairBackward has no saved tensor 'saved_tensors[3]'");
    CHECK(opd_node_saved(n, "saved_tensors") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "PairBackward has no saved tensor 'saved_tensors'");
    CHECK(opd_node_saved(opd_tensor_node(opd_mul(a, b)), "saved_tensors[0]") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "MulBackward0 has no saved tensor 'saved_tensors[0]'");
    CHECK_INT(opd_node_saved_hooks(n, "saved_tensors[1]", &h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "hooks cannot be registered on a saved tensor that is NULL");
    CHECK_INT(opd_node_saved_hooks(n, "saved_tensors[2]", &h), 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(a), 2 * 5, 0);
    CHECK_NEAR(grad_of(b), 3, 0);
    CHECK_INT(drops, 1);
}
TEST(hooks_for_one_of_a_saved_list) {
    opd_library *lib = product_library();
    opd_saved_hooks h = doubling();
    opd_tensor *t[2], *y;
    opd_node *n;
    t[0] = vec(2, true);
    t[1] = vec(2, true);
    y = OPD_CALL(op_named("hooked::product"), opd_tensors_of(t, 2));
    n = opd_tensor_node(y);
    CHECK(opd_node_saved(n, "xs[1]") == t[1] && opd_node_saved(n, "xs[0]") == t[0]);
    CHECK(opd_node_saved(n, "xs") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has a saved list 'xs' of 2 tensors: name one of them, as in 'xs[0]'");
    CHECK(opd_node_saved(n, "xs[2]") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has no saved tensor 'xs[2]'");
    CHECK_INT(opd_node_saved_hooks(n, "xs[]", &h), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has no saved tensor 'xs[]'");
    CHECK_INT(opd_node_saved_hooks(n, "xs[1]", &h), 0);
    CHECK_INT(packs, 1);
    CHECK_INT(opd_node_saved_hooks(n, "xs[1]", &h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Calling register_hooks on a saved tensor whose hooks have already been set.");
    CHECK_NEAR(first(opd_node_saved(n, "xs[1]")), 2, 0);
    CHECK_INT(backward_again(opd_sum(y)), 0);
    CHECK_NEAR(first(opd_tensor_grad(t[0])), 2, 0);          /* the doubled one */
    CHECK_NEAR(first(opd_tensor_grad(t[1])), 1, 0);
    OPD_NO_GRAD { CHECK(sin_(t[0]) != NULL); }
    CHECK_INT(opd_node_saved_hooks(n, "xs[0]", &h), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "modified by an inplace operation");
    CHECK_INT(drops, 0);
    opd_library_close(lib);
}

//-- checkpoints -------------------------------------------------------------------------------------------------------

static int segment_runs;
static opd_tensor *weight;
static int segment(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    opd_tensor *x = inputs[0];
    int i;
    CHECK(n == 1 && m == 2);
    segment_runs++;
    for (i = 0; i < 4; i++) { x = opd_tanh(opd_mul(x, weight)); }
    if (user) { x = opd_dropout(x, 0.5, true); }
    outputs[0] = x;
    outputs[1] = opd_exp(x);
    return 0;
}
static void run_segment(bool checkpointed, int depth, opd_tensor *x, opd_tensor **out);
static int outer_segment(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    (void)n; (void)m;
    run_segment(true, *(int *)user - 1, inputs[0], outputs);
    outputs[0] = opd_mul(outputs[0], outputs[1]);
    return opd_ok() ? 0 : -1;
}
static int depths[] = {0, 1, 2, 3};
static void run_segment(bool checkpointed, int depth, opd_tensor *x, opd_tensor **out) {
    if (depth > 0) {
        if (checkpointed) { (void)opd_checkpoint(outer_segment, &depths[depth], NULL, &x, 1, out, 2); }
        else { CHECK_INT(outer_segment(&x, 1, out, 2, &depths[depth]), 0); }
    } else if (checkpointed) { (void)opd_checkpoint(segment, &segment_runs, NULL, &x, 1, out, 2); }
    else { CHECK_INT(segment(&x, 1, out, 2, &segment_runs), 0); }
}
/* Gradients of x and weight, and of x's gradient if `twice` is set, have the same bits with and without a
   checkpoint. */
static void same_gradients(int depth, bool twice) {
    double g[2][3][8];
    int k, i;
    for (k = 0; k < 2; k++) {
        opd_tensor *x = vec(8, true), *out[2], *in[2], *grads[2], *sum, *gg;
        opd_backward_options o = options();
        o.create_graph = twice;
        weight = opd_tensor_set_requires_grad(opd_full(OPD_INTS(8), OPD_V(0.3), OPD_FLOAT64), true);
        opd_manual_seed(7);
        segment_runs = 0;
        run_segment(k == 1, depth, x, out);
        CHECK_INT(segment_runs, 1);
        (void)opd_rand(OPD_INTS(100), OPD_FLOAT64);          /* the generator is elsewhere by now */
        in[0] = x;
        in[1] = weight;
        sum = opd_sum(opd_add(out[0], out[1]));
        CHECK_INT(opd_autograd_grad(&sum, 1, in, 2, &o, grads), 0);
        CHECK_OK();
        if (!opd_ok()) { return; }
        if (k == 1) { CHECK(segment_runs >= 2); }
        memcpy(g[k][0], opd_data_f64(grads[0]), sizeof g[k][0]);
        memcpy(g[k][1], opd_data_f64(grads[1]), sizeof g[k][1]);
        memset(g[k][2], 0, sizeof g[k][2]);
        if (!twice) { continue; }
        sum = opd_sum(grads[0]);
        CHECK_INT(opd_autograd_grad(&sum, 1, &weight, 1, NULL, &gg), 0);
        memcpy(g[k][2], opd_data_f64(gg), sizeof g[k][2]);
    }
    for (i = 0; i < 3; i++) { CHECK(memcmp(g[0][i], g[1][i], sizeof g[0][i]) == 0); }
    CHECK(fabs(g[0][0][0]) + fabs(g[0][0][1]) + fabs(g[0][0][2]) > 0);
}

TEST(checkpoint_gives_the_same_gradients) { same_gradients(0, false); }
TEST(checkpoints_in_checkpoints) { same_gradients(1, false); same_gradients(2, false); }
TEST(checkpoints_differentiated_twice) { same_gradients(0, true); same_gradients(1, true); }

TEST(checkpoint_recomputes_once_a_backward) {
    opd_tensor *x = vec(8, true), *out[2], *y;
    weight = of(0.5);
    destroyed = segment_runs = 0;
    CHECK_INT(opd_checkpoint(segment, NULL, NULL, &x, 1, out, 2), 0);
    y = opd_sum(out[1]);
    CHECK_INT(segment_runs, 1);
    CHECK_INT(backward_again(y), 0);
    CHECK_INT(segment_runs, 2);
    CHECK_INT(backward_again(y), 0);
    CHECK_INT(segment_runs, 3);
    CHECK_INT(opd_backward(y), 0);
    CHECK_INT(segment_runs, 4);
    OPD_SCOPE { CHECK_INT(opd_checkpoint(segment, &destroyed, destroy, &x, 1, out, 2), 0); }
    CHECK(destroyed == 1);
    OPD_SCOPE {                                   /* nothing to record */
        bool was = opd_grad_mode_set(false);
        CHECK_INT(opd_checkpoint(segment, &destroyed, destroy, &x, 1, out, 2), 0);
        opd_grad_mode_set(was);
        CHECK(destroyed == 2 && !opd_tensor_requires_grad(out[0]));
    }
}

static int grows(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    int i, times = ++*(int *)user;
    opd_tensor *x = inputs[0];
    (void)n; (void)m;
    for (i = 0; i < times; i++) { x = opd_exp(x); }
    outputs[0] = x;
    return 0;
}
static int changes_shape(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    (void)n; (void)m;
    outputs[0] = opd_sum(opd_exp(++*(int *)user == 1 ? inputs[0] : opd_view(inputs[0], OPD_INTS(2, 4))));
    return 0;
}
static int fails_later(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    (void)n; (void)m;
    if (++*(int *)user > 1) { return opd_fail(OPD_ERROR_USER, "segment failed"); }
    outputs[0] = opd_exp(inputs[0]);
    return 0;
}
static int fails_at_once(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    (void)n; (void)m; (void)user;
    outputs[0] = opd_exp(inputs[0]);
    return -1;
}
TEST(checkpoints_that_go_wrong) {
    opd_tensor *x = vec(8, true), *out;
    opd_checkpoint_options o;
    int runs = 0;
    memset(&o, 0, sizeof o);
    o.no_early_stop = true;
    CHECK_INT(opd_checkpoint_with(grows, &runs, NULL, &x, 1, &out, 1, &o), 0);
    CHECK_INT(opd_backward(opd_sum(out)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "A different number of tensors was saved during the original forward and recomputation.\nNumber of tensors "
                "saved during forward: 1\nNumber of tensors saved during recomputation: 2");
    runs = 0;
    CHECK_INT(opd_checkpoint(changes_shape, &runs, NULL, &x, 1, &out, 1), 0);
    CHECK_INT(opd_backward(out), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Recomputed values for the following tensors have different metadata than during the forward pass.");
    runs = 0;
    CHECK_INT(opd_checkpoint(fails_later, &runs, NULL, &x, 1, &out, 1), 0);
    CHECK_INT(opd_backward(opd_sum(out)), -1);
    CHECK_ERROR(OPD_ERROR_USER, "segment failed");
    CHECK_INT(opd_checkpoint(fails_at_once, NULL, NULL, &x, 1, &out, 1), -1);
    CHECK(out == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the function failed without setting an error");
    CHECK_INT(opd_checkpoint(NULL, NULL, NULL, &x, 1, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_checkpoint");
    CHECK_INT(opd_backward(opd_sum(opd_exp(x))), 0);         /* and nothing is left behind */
}

/* The derivative of x^3 at x, times x, by a backward of its own inside: in the second call it reads what it has saved
   itself.  torch.utils.checkpoint(f, x, use_reentrant=False) gives 9 x^2. */
static int inner_runs;
static int inner_backward(opd_tensor *const *in, int n, opd_tensor **out, int nout, void *user) {
    opd_tensor *z = opd_tensor_set_requires_grad(opd_detach(in[0]), true), *cube, *grad = NULL;
    (void)n; (void)nout; (void)user;
    inner_runs++;
    cube = opd_sum(opd_mul(z, opd_mul(z, z)));
    if (!cube || opd_autograd_grad(&cube, 1, &z, 1, NULL, &grad)) { return -1; }
    out[0] = opd_mul(opd_mul(in[0], in[0]), opd_mul(in[0], opd_detach(opd_div(grad, opd_mul(z, z)))));
    return out[0] ? 0 : -1;
}
static int seventeen(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int i;
    (void)n;
    for (i = 0; i < *(int *)user; i++) { out[i] = opd_mul(in[0], in[0]); }
    return *(int *)user;
}
TEST(checkpoints_of_functions_with_a_backward_inside) {
    const double v[3] = {0.5, 1.5, 2.5};
    opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(v, OPD_INTS(3), OPD_FLOAT64), true), *y = NULL, *out[24];
    opd_checkpoint_options options;
    int i, count = 17;
    memset(&options, 0, sizeof options);
    for (i = 0; i < 2; i++) {
        options.no_early_stop = i == 1;
        inner_runs = 0;
        (void)opd_tensor_set_grad(x, NULL);
        CHECK_INT(opd_checkpoint_with(inner_backward, NULL, NULL, &x, 1, &y, 1, &options), 0);
        CHECK_OK();
        CHECK_INT(opd_backward(opd_sum(y)), 0);
        CHECK_INT(inner_runs, 3);                         /* the backward inside asks for a second run, too */
        CHECK_OR_RETURN(opd_tensor_grad(x) != NULL);
        CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 9 * 2.5 * 2.5, 1e-12);     /* 3 x^3, differentiated */
    }
    CHECK_INT(opd_checkpoint_call(seventeen, &count, NULL, &x, 1, NULL, out, 24), 17);
    CHECK_INT(opd_backward(opd_sum(out[16])), 0);
}

/* Reads its own results after the last operator that saves something. */
static int last_seen;
static int ends_with_sums(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    opd_tensor *x = opd_exp(inputs[0]);
    (void)n; (void)m;
    outputs[0] = opd_add(opd_add(x, x), inputs[0]);
    last_seen = outputs[0] ? last_seen + 1 : last_seen;
    if (user && !opd_ok()) { opd_error_clear(); }
    return outputs[0] ? 0 : -1;
}
TEST(recomputation_stops_early) {                 /* test_checkpointing_without_reentrant_early_free, early_stop */
    opd_tensor *x = vec(8, true), *out;
    opd_checkpoint_options o;
    memset(&o, 0, sizeof o);
    last_seen = 0;
    CHECK_INT(opd_checkpoint(ends_with_sums, NULL, NULL, &x, 1, &out, 1), 0);
    CHECK_INT(opd_backward(opd_sum(out)), 0);
    CHECK_INT(last_seen, 1);
    CHECK_NEAR(first(opd_tensor_grad(x)), 2 * exp(1) + 1, 1e-12);
    CHECK_INT(opd_checkpoint(ends_with_sums, x, NULL, &x, 1, &out, 1), 0);      /* whatever it makes of the error */
    CHECK_INT(opd_backward(opd_sum(out)), 0);
    CHECK_INT(last_seen, 2);
    o.no_early_stop = true;
    CHECK_INT(opd_checkpoint_with(ends_with_sums, NULL, NULL, &x, 1, &out, 1, &o), 0);
    CHECK_INT(opd_backward(opd_sum(out)), 0);
    CHECK_INT(last_seen, 4);
    CHECK_NEAR(first(opd_tensor_grad(x)), 3 * (2 * exp(1) + 1), 1e-12);
}

static opd_generator *own_generator;
static int draws(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    opd_tensor *r = opd_bernoulli_full(opd_full(OPD_INTS(64), OPD_V(0.5), OPD_FLOAT64), (opd_generator *)user);
    (void)n; (void)m;
    outputs[0] = opd_mul(opd_exp(inputs[0]), r);
    return opd_ok() ? 0 : -1;
}
/* Returns whether backward saw the same random numbers as forward, and did not change the generator. */
static bool draws_the_same(opd_generator *g, const opd_checkpoint_options *o) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(64), OPD_FLOAT64), true), *out, *a, *b;
    opd_generator_seed(g, 5);
    CHECK_INT(opd_checkpoint_with(draws, g, NULL, &x, 1, &out, 1, o), 0);
    a = opd_bernoulli_full(opd_full(OPD_INTS(64), OPD_V(0.5), OPD_FLOAT64), g);
    CHECK_INT(opd_backward(opd_sum(out)), 0);
    b = opd_bernoulli_full(opd_full(OPD_INTS(64), OPD_V(0.5), OPD_FLOAT64), g);
    CHECK_OK();
    if (!opd_ok()) { return false; }
    CHECK(o->no_preserve_rng_state || memcmp(opd_data(a), opd_data(b), 64 * sizeof(double)) != 0);
    return memcmp(opd_data(opd_tensor_grad(x)), opd_data(out), 64 * sizeof(double)) == 0;
}
TEST(generators_of_checkpoints) {                 /* preserve_rng_state, and generators that are given */
    opd_tensor *x = vec(2, true), *out;
    opd_checkpoint_options o;
    memset(&o, 0, sizeof o);
    own_generator = opd_generator_new(3);
    CHECK(draws_the_same(NULL, &o));
    CHECK(!draws_the_same(own_generator, &o));
    o.generators = &own_generator;
    o.ngenerators = 1;
    CHECK(draws_the_same(own_generator, &o));
    CHECK(draws_the_same(NULL, &o));
    o.no_preserve_rng_state = true;
    CHECK(!draws_the_same(NULL, &o));
    CHECK(draws_the_same(own_generator, &o));
    o.generators = NULL;
    CHECK_INT(opd_checkpoint_with(ends_with_sums, NULL, NULL, &x, 1, &out, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the pointer to the generators is NULL");
    opd_generator_free(own_generator);
}

TEST(checkpoint_inputs_must_not_change) {
    opd_tensor *x = vec(8, true), *in = opd_mul(x, of(2)), *out[2];
    weight = of(0.5);
    CHECK_INT(opd_checkpoint(segment, NULL, NULL, &in, 1, out, 2), 0);
    CHECK(OPD_CALL(op_named("aten::mul_.Tensor"), in, of(3)) == in);
    CHECK_INT(opd_backward(opd_sum(out[0])), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has been modified by an inplace operation");
}

//-- anomaly mode ------------------------------------------------------------------------------------------------------

static char logged[20000];
static void log_here(void *user, int is_error, const char *text) {
    (void)user; (void)is_error;
    strncat(logged, text, sizeof logged - strlen(logged) - 1);
    strncat(logged, "|", sizeof logged - strlen(logged) - 1);
}
#if defined(__GNUC__)
__attribute__((noinline))
#endif
static opd_tensor *takes_a_root(opd_tensor *x) {
    opd_tensor *y = opd_sqrt(x);
    if (!opd_ok()) { return NULL; }
    return y;
}

TEST(anomaly_mode_names_the_call) {
    opd_tensor *x = leaf(0), *y, *g;
    opd_backward_options o = options();
    int was;
    logged[0] = 0;
    opd_log_set(log_here, NULL);
    y = opd_mul(takes_a_root(x), of(0));
    CHECK_INT(opd_backward(y), 0);                /* off: a NaN is a gradient like any other */
    CHECK_STR(logged, "");
    was = opd_anomaly_set(true, true);
    CHECK_INT(was, 0);
    CHECK(strstr(logged, "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.") != NULL);
    CHECK_INT(opd_anomaly_set(true, true), OPD_ANOMALY_ON | OPD_ANOMALY_NAN);      /* nested */
    logged[0] = 0;
    y = opd_mul(takes_a_root(x), of(0));
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Function 'SqrtBackward0' returned nan values in its 0th output.");
    CHECK(strstr(logged, "Error detected in SqrtBackward0. Traceback of forward call that caused the error:\n") != NULL);
#if defined(__ELF__) && defined(__linux__)
    CHECK(strstr(logged, "takes_a_root") != NULL);
#endif
    CHECK(strstr(logged, "Previous calculation") == NULL);
    logged[0] = 0;                                /* a node that a formula recorded: the chain of parents */
    o.create_graph = true;
    x = leaf(0);
    y = opd_mul(x, opd_mul(x, x));
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, &g), 0);
    y = opd_mul(takes_a_root(g), of(0));
    (void)opd_anomaly_set(true, false);
    CHECK_INT(opd_backward(y), 0);
    (void)opd_anomaly_set(was & OPD_ANOMALY_ON, was & OPD_ANOMALY_NAN);
    opd_log_set(NULL, NULL);
}

static int k_same(opd_call *call) { return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0))); }
static int fails_second(opd_backward_call *bw) {
    if (!opd_grad_mode_enabled()) { return opd_fail(OPD_ERROR_USER, "second"); }
    return opd_bw_return(bw, 0, OPD_CALL(op_named("anomaly::same"), opd_bw_grad(bw, 0)));
}
TEST(anomaly_mode_tells_the_parents) {
    opd_library *lib = opd_library_open(OPD_DEF, "anomaly", NULL, "t", 1);
    opd_op_desc d;
    opd_tensor *x = leaf(2), *y, *g, *one = leaf(1);
    opd_backward_options o = options();
    memset(&d, 0, sizeof d);
    d.schema = "same(Tensor self) -> Tensor";
    d.cpu = k_same;
    d.backward = fails_second;
    CHECK_INT(opd_define(lib, &d), 0);
    logged[0] = 0;
    opd_log_set(log_here, NULL);
    (void)opd_anomaly_set(true, true);
    y = OPD_CALL(op_named("anomaly::same"), x);
    o.create_graph = true;
    o.grad_outputs = &one;
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, &g), 0);
    CHECK(opd_tensor_requires_grad(g));
    logged[0] = 0;
    CHECK_INT(opd_backward(g), -1);
    CHECK(strstr(opd_error_message(), "[in SameBackward0 of anomaly::same]") != NULL);
    CHECK_ERROR(OPD_ERROR_USER, "second");
    CHECK(strstr(logged, "Error detected in SameBackward0. Traceback of forward call") != NULL);
    CHECK(strstr(logged, "\n\nPrevious calculation was induced by SameBackward0. Traceback of forward call that induced the previous "
                 "calculation:\n") != NULL);
    (void)opd_anomaly_set(false, false);
    logged[0] = 0;
    y = OPD_CALL(op_named("anomaly::same"), x);
    (void)opd_anomaly_set(true, true);
    logged[0] = 0;
    CHECK_INT(opd_backward(y), -1);
    opd_error_clear();
    CHECK(strstr(logged, "Error detected in SameBackward0. No forward pass information available. Enable detect anomaly during forward pass "
                 "for more information.") != NULL);
    (void)opd_anomaly_set(false, false);
    opd_log_set(NULL, NULL);
    opd_library_close(lib);
}

//-- costs and leaks ---------------------------------------------------------------------------------------------------

TEST(every_allocation_fails_in_turn) {
    int64_t n, calls;
    int done = 0;
    for (n = 1; !done && n < 2000; n++) {
        OPD_SCOPED;
        opd_saved_hooks h = doubling();
        seen all = {0, 0, 0, 0};
        opd_tensor *x = leaf(3), *y, *z, *t[2];
        weight = of(0.5);
        (void)opd_memory_fail_at(n, false);
        (void)opd_saved_hooks_begin(&h);
        y = opd_mul(x, x);
        opd_saved_hooks_end();
        z = opd_mul(y, of(2));
        if (opd_ok()) {
            t[0] = x;
            t[1] = y;
            (void)opd_tensor_hook_add(y, doubled, NULL, NULL);
            (void)opd_tensor_retain_grad(y);
            (void)opd_node_post_hook_add(opd_gradient_edge(x).node, tell_post, TEXT(""), NULL);
            (void)opd_multi_hook_add(t, 2, OPD_MULTI_ALL, see, &all, NULL);
            (void)opd_checkpoint(segment, NULL, NULL, &x, 1, t, 2);
            if (opd_ok()) { (void)backward_again(opd_add(z, opd_add(t[0], t[1]))); }
        }
        calls = opd_memory_fail_at(0, false);
        done = calls < n;
        CHECK(done == opd_ok());
        if (!done) { CHECK_INT(opd_error_code(), OPD_ERROR_MEMORY); opd_error_clear(); }
    }
    CHECK(done && n > 20);
}

/* Hooks that are added inside of a transform belong to this transform: an outer transform does not run them again. */
static opd_tensor *hook_twice(opd_tensor *grad, void *user) { (void)user; return opd_mul_Scalar(grad, opd_value_double(2)); }
static int pre_twice(opd_tensor **grads, int n, void *user) {
    int i;
    for (i = 0; i < n; i++) { if (grads[i]) { grads[i] = hook_twice(grads[i], user); } }
    return opd_ok() ? 0 : -1;
}
static int post_twice(opd_tensor **out, int nout, opd_tensor *const *grads, int n, void *user) {
    (void)grads; (void)n;
    return pre_twice(out, nout, user);
}
typedef struct hooked_sine { int where; bool plain; opd_tensor *w; } hooked_sine;
static int sine_inside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const hooked_sine *h = (const hooked_sine *)user;
    opd_tensor *z = opd_mul(h->w, in[0]);
    int64_t handle;
    (void)n;
    if (!z) { return -1; }
    switch (h->where) {
    case 0: handle = opd_tensor_hook_add(z, hook_twice, NULL, NULL); break;
    case 1: handle = opd_node_pre_hook_add(opd_tensor_node(z), pre_twice, NULL, NULL); break;
    case 2: handle = opd_node_post_hook_add(opd_tensor_node(z), post_twice, NULL, NULL); break;
    default: handle = opd_tensor_hook_add(in[0], hook_twice, NULL, NULL); break;
    }
    CHECK(handle != 0);
    return (out[0] = opd_sum(opd_mul(opd_sin(z), in[0]))) != NULL ? 1 : -1;
}
/* Its gradient, as it is with the hook. */
static int sine_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    hooked_sine *h = (hooked_sine *)user;
    opd_tensor *z = opd_mul(h->w, in[0]), *sine = opd_sin(z), *rest = opd_mul(opd_mul(h->w, opd_cos(z)), in[0]);
    if (!h->plain) { return opd_grad(sine_inside, h, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
    rest = hook_twice(rest, NULL);
    out[0] = opd_add(rest, h->where == 3 ? hook_twice(sine, NULL) : sine);
    return out[0] ? 1 : -1;
}
static int sum_of_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (sine_gradient(user, in, n, out) < 0) { return -1; }
    return (out[0] = opd_sum(opd_mul(out[0], out[0]))) != NULL ? 1 : -1;
}
static void numbers_of(hooked_sine *h, int way, double *to) {
    opd_tensor *x = vec(3, way == 1), *out[1], *by[2], *g[2];
    int i;
    h->w = opd_tensor_set_requires_grad(opd_cos(vec(3, false)), true);
    by[0] = h->w;
    by[1] = x;
    if (way == 2 && opd_grad(sum_of_gradient, h, &x, 1, NULL, out, 1) > 0) { g[1] = out[0]; }
    else if (way == 3 && opd_jacrev(sine_gradient, h, &x, 1, NULL, out, 1) > 0) { g[1] = opd_diagonal(out[0]); }
    else if (way < 2) { CHECK_INT(sum_of_gradient(h, &x, 1, out), 1); g[1] = out[0]; }
    if (way >= 2) { out[0] = opd_sum(g[1]); }
    CHECK_INT(opd_autograd_grad(out, 1, by, way == 1 ? 2 : 1, NULL, g), 0);
    if (way == 1) { g[0] = opd_add(g[0], opd_mul_Scalar(g[1], opd_value_double(8))); }
    for (i = 0; i < 3; i++) { to[i] = opd_data_f64(opd_contiguous(g[0]))[i]; }
    CHECK_OK();
}
TEST(hooks_inside_of_derivatives_of_functions) {
    int way, i;
    for (way = 0; way < 4; way++) {
        hooked_sine h;
        memset(&h, 0, sizeof h);
        for (h.where = 0; h.where < 4; h.where++) {
            double got[3], want[3];
            h.plain = false;
            numbers_of(&h, way, got);
            h.plain = true;
            numbers_of(&h, way, want);
            for (i = 0; i < 3; i++) { CHECK_NEAR(got[i], want[i], 1e-12 * (1 + fabs(want[i]))); }
        }
    }
}
//-- opd_transform_fn in all functions that take one -------------------------------------------------------------------

typedef struct runs { int count, fails, destroyed; } runs;
/* tanh(x y), and its double: as many outputs as `fails` leaves. */
static int tanh_twice(void *user, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    runs *r = (runs *)user;
    CHECK_INT(n, 2);
    r->count++;
    if (r->fails == r->count) { return -1; }
    outputs[0] = opd_tanh(opd_mul(inputs[0], inputs[1]));
    outputs[1] = opd_add(outputs[0], outputs[0]);
    return opd_ok() ? 2 : -1;
}
static void runs_end(void *user) { ((runs *)user)->destroyed++; }
TEST(one_function_is_run_again_transformed_and_checked) {
    opd_tensor *in[2], *out[OPD_TRANSFORM_OUTPUTS], *plain[2], *grads[2], *again[2];
    opd_checkpoint_options options;
    runs r = {0, 0, 0};
    int i;
    memset(&options, 0, sizeof options);
    options.no_early_stop = true;
    for (i = 0; i < 2; i++) {
        in[i] = opd_tensor_set_requires_grad(opd_add_Scalar(opd_rand(OPD_INTS(3), OPD_FLOAT64), opd_value_double(0.1)), true);
    }
    CHECK_INT(tanh_twice(&r, in, 2, plain), 2);
    plain[1] = opd_sum(plain[1]);
    CHECK_INT(opd_autograd_grad(&plain[1], 1, in, 2, NULL, grads), 0);
    OPD_SCOPE {
        CHECK_INT(opd_checkpoint_call(tanh_twice, &r, runs_end, in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), 2);
        CHECK_INT(r.count, 2);
        out[1] = opd_sum(out[1]);
        CHECK_INT(opd_autograd_grad(&out[1], 1, in, 2, NULL, again), 0);
        CHECK_INT(r.count, 3);
        for (i = 0; i < 2; i++) { CHECK(opd_equal(grads[i], again[i])); }
    }
    CHECK_INT(r.destroyed, 1);
    OPD_SCOPE {
        CHECK_INT(opd_checkpoint_call(tanh_twice, &r, runs_end, in, 2, &options, out, OPD_TRANSFORM_OUTPUTS), 2);
        CHECK(opd_equal(opd_sum(out[1]), plain[1]));
        CHECK_INT(opd_vmap(tanh_twice, &r, in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), 2);
        CHECK_INT(opd_gradcheck(tanh_twice, &r, in, 2, NULL), 0);
    }
    CHECK_OK();
    CHECK_INT(r.destroyed, 2);
    /* failures: immediately without an error text; later; without a function */
    r.count = 0;
    r.fails = 1;
    CHECK_INT(opd_checkpoint_call(tanh_twice, &r, runs_end, in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the function failed without setting an error");
    CHECK_INT(r.destroyed, 3);
    r.count = 0;
    r.fails = 2;
    OPD_SCOPE {
        CHECK_INT(opd_checkpoint_call(tanh_twice, &r, runs_end, in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), 2);
        out[1] = opd_sum(out[1]);
        CHECK_INT(opd_autograd_grad(&out[1], 1, in, 2, NULL, again), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_checkpoint: the function failed without setting an error");
    }
    CHECK_INT(r.destroyed, 4);
    CHECK_INT(opd_checkpoint_call(NULL, &r, runs_end, in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_checkpoint_call: the function is NULL");
    CHECK_INT(r.destroyed, 4);
}
static int segment_of_one(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    (void)n; (void)m; (void)user;
    out[0] = opd_sin(opd_mul(in[0], in[0]));
    return out[0] ? 0 : -1;
}
/* The input of a segment gets a history that contains the segment: it must not hold a reference to itself. */
TEST(the_input_of_a_segment_is_written_to) {
    int64_t live = 0;
    int way, i;
    for (way = 0; way < 2; way++) {
        for (i = 0; i < 3; i++) {
            if (i == 2) { live = opd_memory_stats().live; }
            OPD_SCOPE {
                opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3), OPD_FLOAT64), true), *y = way ? opd_clone(x) : x, *out = NULL;
                CHECK_INT(opd_checkpoint(segment_of_one, NULL, NULL, &y, 1, &out, 1), 0);
                if (!way) { CHECK(opd_tensor_set_requires_grad(x, false) == x); }
                CHECK(opd_add_(y, out) == y);
            }
        }
        CHECK_INT(opd_memory_stats().live - live, 0);
    }
}

CHECK_MAIN()
