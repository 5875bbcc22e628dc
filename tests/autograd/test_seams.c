/* Combinations of the parts of autograd: writes to views with hooks, saved-tensor hooks, checkpoints, custom
   functions, inference mode, forward mode, threads.  C ONLY  THREADED */
#include "../../opdispatch.h"
#include "../tape.h"

#include <pthread.h>

static opd_op *aten(const char *name) {
    char full[64];
    snprintf(full, sizeof full, "aten::%s", name);
    return opd_find(full);
}
static opd_tensor *non_leaf(opd_tensor *t) { return opd_mul(t, of(1)); }
static opd_tensor *part(opd_tensor *t, int64_t from, int64_t to) { return opd_slice(t, 0, OPD_V(from), OPD_V(to), 1); }
static opd_tensor *times(opd_tensor *t, opd_tensor *by) { return OPD_CALL(aten("mul_.Tensor"), t, by); }
static opd_tensor *plus(opd_tensor *t, opd_tensor *by) { return OPD_CALL(aten("add_.Tensor"), t, by); }
static opd_tensor *exp_in(opd_tensor *t) { return OPD_CALL(aten("exp_"), t); }
static void check_all(opd_tensor *t, const double *want, int64_t n, int line) {
    opd_tensor *c = t ? opd_contiguous(t) : NULL;
    if (!c) { printf("line %d\n", line); }
    CHECK_OR_RETURN(c != NULL);
    CHECK_INT(opd_numel(c), n);
    for (int64_t i = 0; i < n && i < opd_numel(c); i++) {
        if (fabs(opd_data_f64(c)[i] - want[i]) > 1e-9) { printf("line %d, element %d\n", line, (int)i); }
        CHECK_NEAR(opd_data_f64(c)[i], want[i], 1e-9);
    }
}
#define CHECK_VALUES(t, ...) do { const double want_[] = {__VA_ARGS__}; \
    check_all(t, want_, (int64_t)(sizeof want_ / sizeof *want_), __LINE__); } while (0)
#define CHECK_GRAD(t, ...) CHECK_VALUES(opd_tensor_grad(t), __VA_ARGS__)

//-- hooks and retain_grad ---------------------------------------------------------------------------------------------

static int hook_runs;
static double hook_saw[8];
static opd_tensor *see(opd_tensor *grad, void *user) {
    (void)user;
    hook_runs++;
    for (int i = 0; i < 8; i++) { hook_saw[i] = i < opd_numel(grad) ? opd_data_f64(opd_contiguous(grad))[i] : 0; }
    return NULL;
}
static opd_tensor *ten_times(opd_tensor *grad, void *user) { (void)user; return opd_mul(grad, of(10)); }

TEST(hooks_of_a_base_whose_view_is_written) {     /* the hook stays with the history of before */
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2);
    CHECK(opd_tensor_hook_add(y, see, NULL, NULL) > 0);
    hook_runs = 0;
    CHECK(times(v, of(5)) == v);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, vec(3, false)))), 0);
    CHECK_INT(hook_runs, 1);
    CHECK(hook_saw[0] == 5 && hook_saw[1] == 10 && hook_saw[2] == 3);
    CHECK_GRAD(x, 5, 10, 3);
}
TEST(hooks_of_a_written_view) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2);
    CHECK(times(v, of(5)) == v);
    CHECK(opd_tensor_hook_add(v, ten_times, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(opd_mul(v, vec(2, false)))), 0);
    CHECK_GRAD(x, 50, 100, 0);
    x = vec(3, true); y = non_leaf(x); v = part(y, 0, 2);
    /* stays with the slice, which nothing comes through */
    CHECK(opd_tensor_hook_add(v, ten_times, NULL, NULL) > 0);
    CHECK(times(v, of(5)) == v);
    CHECK_INT(opd_backward(opd_sum(opd_mul(v, vec(2, false)))), 0);
    CHECK_GRAD(x, 5, 10, 0);
}
TEST(retain_grad_follows_through_views) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2);
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    CHECK_INT(opd_tensor_retain_grad(v), 0);
    CHECK(times(v, of(5)) == v);
    CHECK(opd_tensor_retains_grad(y) && opd_tensor_retains_grad(v));
    CHECK_INT(opd_backward(opd_sum(opd_add(opd_sum(y), opd_mul(v, vec(2, false))))), 0);
    CHECK_GRAD(v, 1, 2);
    CHECK_GRAD(y, 2 + 1, 2 + 2, 2);
    CHECK_GRAD(x, 5 * 3, 5 * 4, 2);
}
TEST(retain_grad_of_a_view_whose_base_is_written) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2);
    CHECK_INT(opd_tensor_retain_grad(v), 0);
    CHECK(times(y, of(5)) == y);
    CHECK_INT(opd_backward(opd_sum(opd_mul(v, vec(2, false)))), 0);
    CHECK_GRAD(v, 1, 2);
    CHECK_GRAD(x, 5, 10, 0);
}
static int zero_grad_and_step(opd_tensor *leaf, void *user) {
    hook_runs++;
    OPD_NO_GRAD { (void)opd_optimizer_step((opd_optimizer *)user); }
    return opd_tensor_set_grad(leaf, NULL);
}
TEST(a_step_in_a_post_accumulate_hook) {
    opd_tensor *x = vec(3, true), *s;
    opd_sgd_options sgd = opd_sgd_defaults();
    opd_optimizer *o;
    sgd.lr = 0.5;
    o = opd_sgd_new(&x, 1, &sgd);
    hook_runs = 0;
    CHECK(opd_tensor_post_accumulate_hook_add(x, zero_grad_and_step, o, NULL) > 0);
    s = opd_sum(opd_mul(x, x));
    CHECK_INT(opd_backward(s), 0);
    CHECK(hook_runs == 1 && opd_tensor_grad(x) == NULL);
    CHECK_VALUES(x, 0, 0, 0);
    s = opd_sum(opd_mul(x, x));
    OPD_NO_GRAD { plus(x, of(1)); }
    CHECK_INT(opd_backward(s), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has been modified by an inplace operation");
    s = opd_sum(opd_mul(x, x));
    CHECK_INT(opd_optimizer_step(o), 0);              /* no gradient: nothing changed */
    CHECK_INT(opd_backward(s), 0);
    opd_optimizer_free(o);
}
static opd_tensor *writes_grad(opd_tensor *grad, void *user) { (void)user; return times(grad, of(3)); }
TEST(a_hook_writes_into_its_gradient) {           /* which is a part of another, and expanded */
    opd_tensor *x = vec(4, true), *y = non_leaf(x), *a = part(y, 0, 2), *b = part(y, 2, 4),
        *c = opd_cat(OPD_TENSORS(a, b), 0);
    CHECK(opd_tensor_hook_add(a, writes_grad, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(opd_mul(c, vec(4, false)))), 0);
    CHECK_GRAD(x, 3, 6, 3, 4);
}

//-- saved-tensor hooks ------------------------------------------------------------------------------------------------

static int packed, unpacked, dropped;
static void *pack(opd_tensor *t, void *user) { (void)user; (void)CHECK_COUNT(packed); OPD_NO_GRAD { t = opd_clone(t);
    } return opd_keep(t); }
static opd_tensor *unpack(void *p, void *user) { (void)user; (void)CHECK_COUNT(unpacked); return (opd_tensor *)p; }
static void drop(void *p, void *user) { (void)user; (void)CHECK_COUNT(dropped); opd_release((opd_tensor *)p); }
static const opd_saved_hooks saving = {pack, unpack, drop, NULL, NULL};

TEST(saved_tensor_hooks_and_written_views) {
    for (int i = 0; i < 2; i++) {
        packed = unpacked = dropped = 0;
        OPD_SCOPE {
            opd_tensor *x = vec(4, true), *y = non_leaf(x), *v = part(y, 0, 2), *s, *g;
            opd_backward_options o = options();
            o.create_graph = i == 1;
            CHECK_INT(opd_saved_hooks_begin(&saving), 0);
            CHECK(exp_in(v) == v);
            s = opd_sum(opd_mul(y, y));
            opd_saved_hooks_end();
            CHECK(packed >= 3);
            if (i == 0) { CHECK(plus(y, of(1)) == y); }                           /* packed copies: no version check */
            CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, &o, &g), 0);
            CHECK_VALUES(g, 2 * exp(2), 2 * exp(4), 6, 8);
            if (i == 1) {
                s = opd_sum(g);
                CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, NULL, &g), 0);
                CHECK_VALUES(g, 4 * exp(2), 4 * exp(4), 2, 2);
            }
        }
        CHECK(unpacked > 0);
        CHECK_INT(dropped, packed);
    }
}
TEST(nodes_of_written_bases_name_the_operator) {
    opd_tensor *x = vec(4, true), *y = non_leaf(x), *v = part(y, 0, 2);
    opd_node *n;
    CHECK(exp_in(v) == v);
    n = opd_tensor_node(y);
    CHECK_STR(opd_node_name(n), "CopySlices");
    CHECK_STR(opd_op_name(opd_node_op(n)), "aten::exp_");
    CHECK(opd_node_saved(n, "result") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "CopySlices has no saved tensor 'result'");
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(x, exp(1), exp(2), 1, 1);
}

//-- checkpoints -------------------------------------------------------------------------------------------------------

static int runs;
static int custom_inside(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user);
static int writes_inside(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    opd_tensor *y = opd_mul(in[0], in[0]), *v = part(y, 0, 2);
    (void)n; (void)m; (void)user;
    (void)CHECK_COUNT(runs);
    times(v, in[1]);
    exp_in(part(y, 2, 3));
    out[0] = opd_mul(y, opd_sum(v));
    return 0;
}
TEST(checkpoints_that_write_into_views) {
    double want[2][6];
    for (int k = 0; k < 2; k++) {
        opd_tensor *x = vec(4, true), *w = opd_tensor_set_requires_grad(opd_mul(vec(2, false), of(0.25)),
            true), *in[2] = {x, w}, *y, *s;
        if (k) { CHECK_INT(opd_checkpoint(writes_inside, NULL, NULL, in, 2, &y, 1), 0); }
        else { (void)writes_inside(in, 2, &y, 1, NULL); }
        s = opd_sum(opd_mul(y, y));
        CHECK_INT(opd_backward(s), 0);
        CHECK_OK();
        for (int i = 0; i < 4; i++) { want[k][i] = opd_tensor_grad(x) ? opd_data_f64(opd_tensor_grad(x))[i] : -k; }
        for (int i = 0; i < 2; i++) { want[k][4 + i] = opd_tensor_grad(w) ? opd_data_f64(opd_tensor_grad(w))[i] : -k; }
    }
    for (int i = 0; i < 6; i++) { CHECK_NEAR(want[0][i], want[1][i], 1e-12 * fabs(want[0][i])); }
}
static int writes_input(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    (void)n; (void)m; (void)user;
    (void)CHECK_COUNT(runs);
    times(in[0], of(2));
    out[0] = opd_exp(in[0]);
    return 0;
}
TEST(a_checkpoint_that_writes_its_input) {        /* is refused, or right; never silently wrong */
    opd_tensor *x = vec(2, true), *y = opd_mul(x, of(0.5)), *out = NULL;
    int rc = opd_checkpoint(writes_input, NULL, NULL, &y, 1, &out, 1);
    if (rc == 0 && opd_backward(opd_sum(out)) == 0) { CHECK_GRAD(x, exp(1), exp(2)); }
    else { CHECK(!opd_ok()); opd_error_clear(); }
}
TEST(a_written_result_of_a_checkpoint) {
    opd_tensor *x = vec(4, true), *w = vec(2, true), *in[2] = {x, w}, *y, *ref;
    double g[4];
    (void)writes_inside(in, 2, &ref, 1, NULL);
    times(part(ref, 1, 3), vec(2, false));
    CHECK_INT(opd_backward(opd_sum(ref)), 0);
    for (int i = 0; i < 4; i++) { g[i] = opd_data_f64(opd_tensor_grad(x))[i]; }
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_checkpoint(writes_inside, NULL, NULL, in, 2, &y, 1), 0);
    CHECK(times(part(y, 1, 3), vec(2, false)) != NULL);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(x, g[0], g[1], g[2], g[3]);
}
TEST(a_checkpoint_in_inference_mode_and_backward_in_it) {
    opd_tensor *x = vec(4, true), *w = vec(2, true), *in[2] = {x, w}, *y = NULL;
    OPD_INFERENCE_MODE(true) {
        CHECK_INT(opd_checkpoint(writes_inside, NULL, NULL, in, 2, &y, 1), 0);
        CHECK(y && opd_tensor_is_inference(y) && !opd_tensor_requires_grad(y));
    }
    CHECK_INT(opd_checkpoint(writes_inside, NULL, NULL, in, 2, &y, 1), 0);
    OPD_INFERENCE_MODE(true) { CHECK_INT(opd_backward(opd_sum(y)), -1); }
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "does not require grad");
    y = opd_sum(y);
    OPD_INFERENCE_MODE(true) { CHECK_INT(opd_backward(y), 0); }
    CHECK(opd_tensor_grad(x) && opd_tensor_is_inference(opd_tensor_grad(x)));
    (void)writes_inside(in, 2, &y, 1, NULL);
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Inplace update to inference tensor outside InferenceMode is not allowed.");
    OPD_INFERENCE_MODE(true) { w = opd_mul(w, w); in[0] = in[1] = w;
    CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, in, 1, &y, 1), 0); }
}

//-- custom functions --------------------------------------------------------------------------------------------------

static int triple_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    if (opd_context_mark_dirty(ctx, x)) { return -1; }
    times(x, of(3));
    return opd_context_return(ctx, x);
}
static int triple_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), of(3))); }
static int triple_jvp(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, times(opd_jvp_tangent(jv, 0), of(3))); }
static const opd_autograd_function triple = {"Triple", triple_forward, NULL, triple_backward, triple_jvp, NULL,
    false, NULL, {NULL}};
static int square_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    if (opd_context_save_for_backward(ctx, &x, 1)) { return -1; }
    return opd_context_return(ctx, opd_mul(x, x));
}
static int square_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_mul(opd_bw_grad(bw, 0), of(2)), opd_context_saved(opd_bw_context(bw), 0)));
}
static const opd_autograd_function square = {"Square", square_forward, NULL, square_backward, NULL, NULL, false,
    NULL, {NULL}};
static opd_tensor *apply(const opd_autograd_function *f, opd_tensor *x) { opd_value v = opd_value_tensor(x);
    return opd_autograd_call(f, &v, 1); }

static int custom_inside(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    opd_tensor *y = opd_mul(in[0], in[0]);
    (void)n; (void)m; (void)user;
    (void)CHECK_COUNT(runs);
    apply(&triple, part(y, 1, 2));
    out[0] = apply(&square, y);
    return 0;
}
static int tanh_of(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    (void)n; (void)m; (void)user;
    out[0] = opd_tanh(in[0]);
    return 0;
}
/* bench/growth.c measures that the cost of each does not grow with their number. */
TEST(many_checkpoints) {
    opd_tensor *const xs[2] = {vec(1, true), vec(1, true)};
    for (int plain = 0; plain < 2; plain++) {
        opd_tensor *y = opd_keep(non_leaf(xs[plain]));
        for (int i = 0; i < 40000; i++) {
            OPD_SCOPED;
            opd_tensor *out = NULL;
            if (plain) { out = opd_tanh(y); }
            else { CHECK_INT(opd_checkpoint(tanh_of, NULL, NULL, &y, 1, &out, 1), 0); }
            opd_assign(&y, out);
        }
        CHECK_INT(opd_backward(opd_mul_Scalar(y, OPD_V(1e6))), 0);
        opd_release(y);
    }
    const double grad = opd_item_f64(opd_tensor_grad(xs[1]));
    CHECK(grad > 0);
    CHECK_NEAR(opd_item_f64(opd_tensor_grad(xs[0])), grad, 1e-6 * grad);
}
TEST(custom_functions_in_checkpoints) {
    opd_tensor *x = vec(3, true), *y, *s, *g;
    opd_backward_options o = options();
    CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, &x, 1, &y, 1), 0);
    s = opd_sum(y);
    o.create_graph = true;
    runs = 0;
    CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, &o, &g), 0);
    CHECK(runs >= 1);
    CHECK_VALUES(g, 4, 9 * 4 * 8, 4 * 27);        /* 4 x^3, nine times where tripled before the square */
    s = opd_sum(g);
    CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, NULL, &g), 0);
    CHECK_VALUES(g, 12, 9 * 12 * 4, 12 * 9);
}
TEST(a_dirty_view_with_hooks) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2), *r;
    hook_runs = 0;
    CHECK(opd_tensor_hook_add(y, see, NULL, NULL) > 0);
    CHECK_INT(opd_tensor_retain_grad(y), 0);
    CHECK_INT(opd_tensor_retain_grad(v), 0);
    r = apply(&triple, v);
    CHECK(r == v);
    CHECK_INT(opd_tensor_version(y), 2);
    CHECK(opd_tensor_hook_add(v, ten_times, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(opd_add(opd_sum(y), opd_sum(v)))), 0);
    CHECK_GRAD(x, 3 * (1 + 10), 3 * (1 + 10), 1);
    CHECK_GRAD(v, 10, 10);
    CHECK_INT(hook_runs, 1);
}
TEST(a_dirty_view_in_inference_mode) {
    opd_tensor *x = vec(3, false), *y = opd_clone(x), *v = part(y, 0, 2);
    OPD_INFERENCE_MODE(true) { CHECK(apply(&triple, v) == v); }
    CHECK_VALUES(y, 3, 6, 3);
    OPD_INFERENCE_MODE(true) { y = opd_clone(x); CHECK(apply(&triple, y) == y); }
    CHECK(opd_tensor_is_inference(y));
    CHECK(apply(&triple, y) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "nference");
    CHECK(apply(&square, opd_add(y, vec(3, true))) != NULL);
    CHECK_OK();
}
TEST(dirty_duals) {
    opd_tensor *x = vec(3, true), *t = opd_tensor_set_requires_grad(vec(3, false), true), *g[2], *in[2] = {x,
        t}, *s, *tangent;
    OPD_DUAL_LEVEL {
        opd_tensor *y = opd_mul(opd_dual_new(x, t), of(1)), *v = part(y, 0, 2);
        CHECK(apply(&triple, v) == v);
        (void)opd_dual_unpack(y, &tangent);
        CHECK_VALUES(tangent, 3, 6, 3);
        (void)opd_dual_unpack(v, &tangent);
        CHECK_VALUES(tangent, 3, 6);
        y = opd_mul(y, y);
        (void)opd_dual_unpack(y, &tangent);       /* 2 y dy */
        CHECK_VALUES(tangent, 2 * 3 * 3, 2 * 6 * 6, 2 * 3 * 3);
        s = opd_sum(tangent);
        CHECK_INT(opd_autograd_grad(&s, 1, in, 2, NULL, g), 0);
        CHECK_VALUES(g[0], 2 * 3 * 3, 2 * 3 * 6, 2 * 3);
        CHECK_VALUES(g[1], 2 * 3 * 3, 2 * 3 * 6, 2 * 3);
    }
}

//-- forward mode ------------------------------------------------------------------------------------------------------

TEST(duals_and_written_views_on_the_tape) {
    opd_tensor *x = vec(4, true), *w = vec(2, true), *in[2] = {x, w}, *g[2], *s, *tangent;
    opd_backward_options o = options();
    OPD_DUAL_LEVEL {
        opd_tensor *y = opd_mul(opd_dual_new(x, opd_ones(OPD_INTS(4), OPD_FLOAT64)), of(1)), *v = part(y, 1, 3);
        hook_runs = 0;
        CHECK(opd_tensor_hook_add(y, see, NULL, NULL) > 0);
        CHECK(times(v, opd_dual_new(w, opd_ones(OPD_INTS(2), OPD_FLOAT64))) == v);
        (void)opd_dual_unpack(y, &tangent);
        CHECK_VALUES(tangent, 1, 2 + 1, 3 + 2, 1);
        CHECK(opd_tensor_requires_grad(tangent));
        s = opd_sum(opd_mul(tangent, tangent));   /* 1 + (x1 + w0)^2 + (x2 + w1)^2 + 1 */
        o.retain_graph = true;
        CHECK_INT(opd_autograd_grad(&s, 1, in, 2, &o, g), 0);
        hook_runs = 0;
        CHECK_VALUES(g[0], 0, 6, 10, 0);
        CHECK_VALUES(g[1], 6, 10);
        s = opd_sum(y);
        CHECK_INT(opd_autograd_grad(&s, 1, in, 2, NULL, g), 0);
        CHECK_VALUES(g[0], 1, 1, 2, 1);
        CHECK_INT(hook_runs, 1);
    }
}
TEST(a_base_without_tangent_gets_one_by_its_view) {
    opd_tensor *y = vec(4, false), *v = part(y, 0, 2), *tangent;
    OPD_DUAL_LEVEL {
        CHECK(times(v, opd_dual_new(vec(2, false), opd_ones(OPD_INTS(2), OPD_FLOAT64))) == v);
        (void)opd_dual_unpack(y, &tangent);
        CHECK_VALUES(tangent, 1, 2, 0, 0);
        (void)opd_dual_unpack(part(y, 1, 3), &tangent);
        CHECK_VALUES(tangent, 2, 0);
    }
    CHECK_VALUES(y, 1, 4, 3, 4);
}
TEST(checkpoints_and_custom_functions_of_duals) {
    opd_tensor *x = vec(3, true), *y = NULL, *tangent = NULL;
    OPD_DUAL_LEVEL {
        opd_tensor *d = opd_dual_new(x, opd_ones(OPD_INTS(3), OPD_FLOAT64)), *w = vec(2, true), *in[2] = {d, w};
        CHECK_INT(opd_checkpoint(writes_inside, NULL, NULL, in, 2, &y, 1), 0);
        if (y) {
            opd_tensor *s = opd_sum(y), *plain, *tp;
            (void)opd_dual_unpack(y, &tangent);
            (void)writes_inside(in, 2, &plain, 1, NULL);
            (void)opd_dual_unpack(plain, &tp);
            CHECK(tangent != NULL && tp != NULL);
            if (tangent && tp) { CHECK_VALUES(tangent, opd_data_f64(tp)[0], opd_data_f64(tp)[1], opd_data_f64(tp)[2]); }
            opd_backward_options o = options();
            o.retain_graph = true;
            CHECK_INT(opd_backward_with(&s, 1, &o), 0);
            s = opd_sum(tangent);
            CHECK_INT(opd_backward(s), 0);
            CHECK_OK();
        }
    }
}
static opd_tensor *uses_duals(opd_tensor *grad, void *user) {
    opd_tensor *tangent = NULL;
    (void)user;
    OPD_DUAL_LEVEL { (void)opd_dual_unpack(opd_exp(opd_dual_new(opd_detach(grad), opd_ones(OPD_INTS(3),
        OPD_FLOAT64))), &tangent); }
    return tangent;
}
TEST(forward_mode_in_a_hook) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x);
    CHECK(opd_tensor_hook_add(y, uses_duals, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, vec(3, false)))), 0);
    CHECK_GRAD(x, exp(1), exp(2), exp(3));
}

//-- inference mode ----------------------------------------------------------------------------------------------------

static opd_tensor *in_inference(opd_tensor *grad, void *user) {
    (void)user;
    OPD_INFERENCE_MODE(true) { grad = opd_mul(grad, of(2)); }
    return grad;
}
TEST(a_hook_gives_an_inference_tensor) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *s, *g;
    opd_backward_options o = options();
    CHECK(opd_tensor_hook_add(y, in_inference, NULL, NULL) > 0);
    s = opd_sum(y);
    o.retain_graph = true;
    CHECK_INT(opd_backward_with(&s, 1, &o), 0);
    CHECK_GRAD(x, 2, 2, 2);
    CHECK_INT(opd_backward_with(&s, 1, &o), 0);
    CHECK_OK();
    CHECK_GRAD(x, 4, 4, 4);
    o.create_graph = true;
    if (opd_autograd_grad(&s, 1, &x, 1, &o, &g) == 0) { CHECK_VALUES(g, 2, 2, 2); }
    opd_error_clear();
}
TEST(written_in_inference_mode_between) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2), *z = opd_exp(y), *u;
    OPD_INFERENCE_MODE(true) { CHECK(plus(v, of(1)) == v); u = part(y, 0, 2); CHECK(plus(y, of(1)) == y); }
    CHECK_INT(opd_tensor_version(y), 2);
    CHECK_INT(opd_backward(opd_sum(z)), 0);       /* exp keeps its result alone */
    y = non_leaf(x); v = part(y, 0, 2);
    CHECK(plus(u, of(1)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "inference mode");
    CHECK(opd_tensor_hook_add(v, see, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(v)), 0);
    CHECK_OK();
}

//-- refused roots and saved tensors -----------------------------------------------------------------------------------

TEST(complex_roots) {
    opd_tensor *x = vec(2, true), *c = opd_view_as_complex(opd_mul(x, of(1))), *g = vec(1, false);
    opd_backward_options o = options();
    CHECK_INT(opd_backward(c), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "grad can be implicitly created only for real scalar outputs but got complex128");
    o.grad_outputs = &g;
    c = opd_view(c, OPD_INTS(1));
    CHECK_INT(opd_backward_with(&c, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "For complex Tensors, both grad_output and output are required to have the same "
                "dtype. Mismatch in dtype: grad_output[0] has a dtype of float64 and output[0] has a dtype of complex128.");
    g = opd_view_as_complex(opd_view(vec(2, false), OPD_INTS(1, 2)));
    CHECK_INT(opd_backward_with(&c, 1, &o), 0);
    CHECK_GRAD(x, 1, 2);
}
TEST(root_gradients_of_another_dtype) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true), *y = opd_mul(x, x);
    opd_tensor *g = opd_ones(OPD_INTS(2), OPD_FLOAT64);
    opd_backward_options o = options();
    o.grad_outputs = &g;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(opd_tensor_grad(x) && opd_dtype(opd_tensor_grad(x)) == OPD_FLOAT32);
    CHECK_INT(opd_backward_with(&x, 1, &o), 0);
    CHECK(opd_tensor_grad(x) && opd_dtype(opd_tensor_grad(x)) == OPD_FLOAT32);
}
TEST(hints_of_written_tensors) {
    opd_tensor *x = vec(2, true), *w = vec(2, false), *y = opd_mul(x, w);
    plus(w, of(1));
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "inplace operation: [float64 [2]] is at version 1; expected version 0 instead. Hint: "
                "enable anomaly detection to find the operation that failed to compute its gradient, with "
                "opd_anomaly_set(true, true).");
}

//-- pictures, anomaly mode --------------------------------------------------------------------------------------------

TEST(pictures_of_all_that) {
    opd_tensor *x = vec(4, true), *y = non_leaf(x), *v = part(y, 0, 2), *z, *in[2] = {NULL, NULL}, *c;
    char text[8192];
    size_t n;
    CHECK(times(v, of(2)) == v);
    CHECK(apply(&triple, part(y, 2, 3)) != NULL);
    in[0] = y;
    in[1] = vec(2, true);
    CHECK_INT(opd_checkpoint(writes_inside, NULL, NULL, in, 2, &c, 1), 0);
    z = opd_sum(apply(&square, c));
    n = opd_graph_dot(&z, 1, NULL, text, sizeof text);
    CHECK_OK();
    CHECK(n > 0 && n < sizeof text && strstr(text, "CopySlices") && strstr(text, "SquareBackward"));
    CHECK_INT(opd_backward(z), 0);
    n = opd_graph_dot(&z, 1, NULL, text, sizeof text);
    CHECK(n > 0);
    CHECK_OK();
}
static char logged[20000];
static void keep_log(void *user, int is_error, const char *text) {
    (void)user; (void)is_error;
    strncat(logged, text, sizeof logged - strlen(logged) - 1);
}
TEST(anomaly_in_a_written_view) {
    opd_tensor *x, *y, *v;
    int was;
    logged[0] = 0;
    opd_log_set(keep_log, NULL);
    was = opd_anomaly_set(true, true);
    x = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(3), OPD_FLOAT64), true); y = non_leaf(x); v = part(y, 0, 2);
    CHECK(OPD_CALL(aten("sqrt_"), v) == v);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, opd_zeros(OPD_INTS(3), OPD_FLOAT64)))), -1);
    CHECK(strstr(opd_error_message(), "nan values in its 0th output") != NULL);
    CHECK(strstr(logged, "Error detected in CopySlices") != NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "[in CopySlices of aten::sqrt_]");
    (void)opd_anomaly_set(was & OPD_ANOMALY_ON, was & OPD_ANOMALY_NAN);
    opd_log_set(NULL, NULL);
}

//-- threads -----------------------------------------------------------------------------------------------------------

typedef struct shared_view { opd_tensor *view, *w; } shared_view;
static void *reads_the_view(void *p) {
    shared_view *s = (shared_view *)p;
    OPD_SCOPE {
        opd_tensor *y = opd_sum(opd_mul(s->view, s->view)), *g = NULL;
        opd_backward_options o = options();
        o.retain_graph = true;
        CHECK_INT(opd_autograd_grad(&y, 1, &s->w, 1, &o, &g), 0);
        if (g) { CHECK_VALUES(g, 2 * 4 * 1, 2 * 4 * 2, 0); }
        CHECK_OK();
    }
    return NULL;
}
TEST(threads_that_read_one_written_view) {
    for (int round = 0; round < 20; round++) {
        OPD_SCOPED;
        opd_tensor *x = vec(3, true), *y = non_leaf(x), *v = part(y, 0, 2);
        pthread_t t[4];
        shared_view s = {v, x};
        if (round & 1) { CHECK_INT(opd_tensor_retain_grad(v), 0); }
        CHECK(times(y, of(2)) == y);              /* v is regenerated by the first who asks */
        for (int i = 0; i < 4; i++) { CHECK_INT(pthread_create(&t[i], NULL, reads_the_view, &s), 0); }
        for (int i = 0; i < 4; i++) { pthread_join(t[i], NULL); }
    }
}

//-- more --------------------------------------------------------------------------------------------------------------

static int takes_away(opd_tensor **grads, int n, void *user) { (void)n; (void)user; grads[0] = NULL; return 0; }
TEST(the_gradient_of_a_written_view_is_taken_away) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *w = vec(3, true);
    CHECK(times(part(y, 0, 2), of(5)) != NULL);
    CHECK(opd_node_pre_hook_add(opd_tensor_node(y), takes_away, NULL, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, w))), 0);
    CHECK(opd_tensor_grad(x) == NULL);
    CHECK_GRAD(w, 5, 10, 3);
}
static int pops_too_many(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    (void)n; (void)m; (void)user;
    out[0] = opd_exp(in[0]);
    opd_saved_hooks_end();
    opd_saved_hooks_end();
    out[0] = opd_exp(out[0]);
    return 0;
}
TEST(a_checkpoint_that_pops_too_many_hooks) {
    CHECK_OK();
    opd_tensor *x = vec(3, true), *y;
    (void)opd_checkpoint(pops_too_many, NULL, NULL, &x, 1, &y, 1);
    opd_error_clear();
}
static int switches_inference_off(opd_tensor *const *in, int n, opd_tensor **out, int m, void *user) {
    (void)n; (void)m; (void)user;
    OPD_INFERENCE_MODE(false) { out[0] = opd_mul(in[0], in[0]); }
    return 0;
}
TEST(a_checkpoint_that_leaves_inference_mode) {
    opd_tensor *x = vec(2, true), *y = NULL;
    OPD_INFERENCE_MODE(true) { CHECK_INT(opd_checkpoint(switches_inference_off, NULL, NULL, &x, 1, &y, 1), 0); }
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(x, 2, 4);
}
TEST(a_checkpoint_without_grad_mode_that_turns_it_on) {
    opd_tensor *x = vec(2, true), *y = NULL;
    OPD_NO_GRAD { CHECK_INT(opd_checkpoint(switches_inference_off, NULL, NULL, &x, 1, &y, 1), 0); }
    if (opd_tensor_requires_grad(y)) { CHECK_INT(opd_backward(opd_sum(y)), 0); CHECK_GRAD(x, 2, 4); }
    CHECK_OK();
}
TEST(retain_grad_of_a_stale_view) {
    opd_tensor *y = vec(4, false), *v = part(y, 0, 2), *u = part(y, 2, 4), *w = vec(2, true);
    CHECK(times(v, w) == v);
    CHECK_INT(opd_tensor_retain_grad(u), 0);      /* requires grad only since its base does */
    CHECK_INT(opd_backward(opd_sum(opd_mul(u, u))), 0);
    CHECK_GRAD(u, 6, 8);
}
TEST(inputs_that_are_written_views) {
    opd_tensor *x = vec(4, true), *y = non_leaf(x), *v = part(y, 0, 2), *s, *in[2], *g[2];
    opd_backward_options o = options();
    CHECK(times(v, of(5)) == v);
    s = opd_sum(opd_mul(y, vec(4, false)));
    in[0] = y;
    o.retain_graph = true;
    CHECK_INT(opd_autograd_grad(&s, 1, in, 1, &o, g), 0);
    CHECK_VALUES(g[0], 1, 2, 3, 4);
    in[0] = v;
    CHECK_INT(opd_autograd_grad(&s, 1, in, 1, &o, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "appears to not have been used in the graph");
    s = opd_add(s, opd_sum(v));
    CHECK_INT(opd_autograd_grad(&s, 1, in, 1, &o, g), 0);
    CHECK_VALUES(g[0], 1, 1);
    o.inputs = in;
    o.ninputs = 1;
    CHECK_INT(opd_backward_with(&s, 1, &o), 0);
    CHECK_GRAD(v, 1, 1);
    CHECK(opd_tensor_grad(x) == NULL);
}
static opd_tensor *writes_base(opd_tensor *grad, void *user) { (void)grad; OPD_NO_GRAD {
    times((opd_tensor *)user, of(2)); } return NULL; }
TEST(a_hook_writes_what_backward_still_needs) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *z = opd_mul(y, y), *u = opd_mul(z, of(2));
    CHECK(opd_tensor_hook_add(z, writes_base, y, NULL) > 0);
    CHECK_INT(opd_backward(opd_sum(u)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has been modified by an inplace operation");
    CHECK(opd_tensor_grad(x) == NULL);
}
static int records_on(opd_tensor **out, int nout, opd_tensor *const *grads, int n, void *user) {
    (void)grads; (void)n; (void)nout; (void)out;
    times(part((opd_tensor *)user, 0, 1), of(3));         /* in a backward: grad mode is off, versions count */
    return 0;
}
TEST(a_post_hook_writes_into_a_view) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *z = non_leaf(x), *u = opd_sum(opd_add(opd_exp(y), opd_exp(z)));
    CHECK(opd_node_post_hook_add(opd_tensor_node(u), records_on, y, NULL) > 0);
    CHECK_INT(opd_backward(u), 0);
    CHECK_STR(opd_tensor_grad_fn(y), "MulBackward0");
    CHECK_INT(opd_tensor_version(y), 1);
}
static int gradcheck_inplace(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *y = opd_mul(in[0], in[0]), *v = part(y, 1, 3);
    (void)user; (void)n;
    times(v, in[1]);
    times(part(v, 0, 1), opd_sum(in[1]));
    exp_in(part(y, 0, 1));
    out[0] = opd_mul(y, y);
    out[1] = v;
    return 2;
}
static int gradcheck_checkpoint(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    return opd_checkpoint(writes_inside, NULL, NULL, in, 2, out, 1) ? -1 : 1;
}
TEST(gradcheck_of_all_that) {
    opd_tensor *in[2] = {opd_tensor_set_requires_grad(opd_mul(vec(4, false), of(0.3)), true),
                         opd_tensor_set_requires_grad(opd_mul(vec(2, false), of(0.4)), true)};
    opd_gradcheck_options o = opd_gradcheck_defaults();
    CHECK_INT(opd_gradcheck(gradcheck_checkpoint, NULL, in, 2, NULL), 0);
    CHECK_INT(opd_gradgradcheck(gradcheck_checkpoint, NULL, in, 2, NULL, NULL), 0);
    o.check_forward_ad = o.check_fwd_over_rev = true;
    CHECK_INT(opd_gradcheck(gradcheck_inplace, NULL, in, 2, &o), 0);
    CHECK_OK();
    opd_error_clear();
    CHECK_INT(opd_gradgradcheck(gradcheck_inplace, NULL, in, 2, NULL, &o), 0);
    CHECK_OK();
    opd_error_clear();
    CHECK_INT(opd_gradcheck(gradcheck_checkpoint, NULL, in, 2, &o), 0);
    CHECK_OK();
    opd_error_clear();
}
TEST(saved_hooks_in_forward_mode_over_written_views) {
    opd_tensor *x = vec(4, true), *g, *tangent, *s;
    packed = dropped = 0;
    OPD_SCOPE {
        OPD_DUAL_LEVEL {
            opd_tensor *y, *v;
            CHECK_INT(opd_saved_hooks_begin(&saving), 0);
            y = opd_mul(opd_dual_new(x, opd_ones(OPD_INTS(4), OPD_FLOAT64)), of(1));
            v = part(y, 0, 2);
            CHECK(exp_in(v) == v);
            (void)opd_dual_unpack(y, &tangent);
            s = opd_sum(tangent);
            opd_saved_hooks_end();
            CHECK_VALUES(tangent, exp(1), exp(2), 1, 1);
            CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, NULL, &g), 0);
            CHECK_VALUES(g, exp(1), exp(2), 0, 0);
        }
    }
}
TEST(writes_into_a_dual_that_does_not_lie_in_rows) {
    opd_tensor *x = opd_t(opd_view(vec(6, false), OPD_INTS(2, 3))), *w = vec(2, true), *g, *tangent, *s;
    CHECK(opd_tensor_set_requires_grad(x, true) == x);
    OPD_DUAL_LEVEL {
        opd_tensor *y = opd_mul(opd_dual_new(x, opd_mul(x, of(1))), of(1)), *v = opd_select(y, 0, 1);    /* 2, 5 */
        CHECK(times(v, w) == v);
        (void)opd_dual_unpack(y, &tangent);
        CHECK_VALUES(tangent, 1, 4, 2, 10, 3, 6);
        s = opd_sum(opd_mul(tangent, opd_view(vec(6, false), OPD_INTS(3, 2))));
        CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, NULL, &g), 0);
        CHECK_VALUES(g, 1, 2, 3, 8, 5, 6);
    }
}
TEST(as_strided_scatter_of_gradients_in_any_layout) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_view(vec(6, false), OPD_INTS(2, 3)), true), *w = vec(2,
        true), *y;
    y = opd_as_strided_scatter_full(x, w, OPD_INTS(2), OPD_INTS(1), OPD_V(1));
    CHECK_INT(opd_backward(opd_sum(opd_mul(opd_t(y), opd_view(vec(6, false), OPD_INTS(3, 2))))), 0);
    CHECK_GRAD(x, 1, 0, 0, 2, 4, 6);
    CHECK_GRAD(w, 3, 5);
    y = opd_sum(opd_as_strided_scatter_full(x, w, OPD_INTS(2), OPD_INTS(1), OPD_V(1)));
    CHECK_INT(opd_backward(y), 0);
    CHECK_GRAD(w, 4, 6);
    CHECK(opd_as_strided_scatter_full(opd_t(x), w, OPD_INTS(2), OPD_INTS(1), OPD_V(1)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "as_strided_scatter is currently only supported for contiguous inputs");
}
TEST(grads_that_are_views) {
    opd_tensor *buffer = opd_zeros(OPD_INTS(6), OPD_FLOAT64), *a = vec(3, true), *b = vec(3, true);
    CHECK_INT(opd_tensor_set_grad(a, part(buffer, 0, 3)), 0);
    CHECK_INT(opd_tensor_set_grad(b, part(buffer, 3, 6)), 0);
    CHECK_INT(opd_backward(opd_sum(opd_mul(a, b))), 0);
    CHECK_VALUES(buffer, 1, 2, 3, 1, 2, 3);
    CHECK_INT(opd_tensor_version(buffer), 2);
}
TEST(a_detached_alias_written_between) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *d = opd_detach(y), *z = opd_mul(y, y);
    CHECK(times(part(d, 0, 1), of(3)) != NULL);
    CHECK_INT(opd_backward(opd_sum(z)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has been modified by an inplace operation");
}
TEST(a_cycle_through_a_checkpoint) {              /* what it saved leads to its own input: nothing is lost */
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *z;
    CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, &y, 1, &z, 1), 0);
    CHECK(times(y, opd_exp(z)) == y);
    CHECK(times(part(y, 0, 1), part(z, 0, 1)) != NULL);
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "");
}
TEST(a_cycle_through_a_custom_function) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *z = apply(&square, y);
    CHECK(times(y, opd_exp(z)) == y);
    CHECK(times(part(y, 0, 1), part(z, 0, 1)) != NULL);
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has been modified by an inplace operation");
}
TEST(saved_hooks_that_keep_the_tensor_and_a_write) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *z;
    CHECK_INT(opd_saved_hooks_begin(&saving), 0);
    z = opd_mul(y, y);
    CHECK(times(y, z) == y);
    opd_saved_hooks_end();
    CHECK_INT(opd_backward(opd_sum(y)), 0);       /* y^3 */
    CHECK_GRAD(x, 3, 12, 27);
}

//-- who holds a gradient ----------------------------------------------------------------------------------------------

static opd_tensor *held;
static opd_tensor *hold(opd_tensor *grad, void *user) { (void)user; held = opd_keep(grad); return NULL; }
static int hold_out(opd_tensor **out, int nout, opd_tensor *const *grads, int n, void *user) {
    (void)nout; (void)grads; (void)n; (void)user;
    held = opd_keep(out[0]);
    return 0;
}
static int hold_many(opd_tensor *const *grads, int n, void *user) { (void)n; (void)user; held = opd_keep(grads[0]); return 0; }
TEST(gradients_that_are_held_are_not_added_to) {
    for (int k = 0; k < 5; k++) {
        OPD_SCOPED;
        opd_tensor *x = vec(3, true), *y = opd_add(x, of(1)), *s = opd_sum(opd_mul(y, vec(3, false)));
        opd_backward_options o = options();
        o.retain_graph = true;
        held = NULL;
        if (k == 0) { CHECK_INT(opd_tensor_retain_grad(y), 0); }
        if (k == 1) { CHECK(opd_tensor_hook_add(x, hold, NULL, NULL) > 0); }
        if (k == 2) { CHECK(opd_tensor_hook_add(y, hold, NULL, NULL) > 0); }
        if (k == 3) { CHECK(opd_node_post_hook_add(opd_tensor_node(y), hold_out, NULL, NULL) > 0); }
        if (k == 4) { CHECK(opd_multi_hook_add(&y, 1, OPD_MULTI_ALL, hold_many, NULL, NULL) > 0); }
        CHECK_INT(opd_backward_with(&s, 1, &o), 0);
        if (k == 0) { CHECK_GRAD(y, 1, 2, 3); held = opd_keep(opd_tensor_grad(y)); }
        opd_tensor *first = held;
        CHECK_OR_RETURN(first != NULL);
        CHECK(opd_data(first) != opd_data(opd_tensor_grad(x)));
        CHECK_INT(opd_backward_with(&s, 1, &o), 0);
        CHECK_GRAD(x, 2, 4, 6);
        if (k) { CHECK_VALUES(first, 1, 2, 3); opd_release(held); } else { CHECK_GRAD(y, 2, 4, 6); }
        opd_release(first);
    }
}
TEST(two_leaves_do_not_share_a_gradient) {
    opd_tensor *a = vec(3, true), *b = vec(3, true), *s = opd_sum(opd_mul(opd_add(a, b), vec(3, false)));
    opd_tensor *v = opd_view(b, OPD_INTS(3)), *t;
    CHECK_INT(opd_backward(s), 0);
    CHECK(opd_data(opd_tensor_grad(a)) != opd_data(opd_tensor_grad(b)));
    t = opd_sum(opd_mul(a, of(10)));
    CHECK_INT(opd_backward(t), 0);
    CHECK_GRAD(a, 11, 12, 13);
    CHECK_GRAD(b, 1, 2, 3);
    CHECK(v != NULL);
}
TEST(a_given_gradient_is_not_taken) {             /* of a leaf, of a result that passes it on, of a written view */
    opd_tensor *x = vec(3, true), *g = vec(3, false), *y = opd_add(x, of(1)), *z = non_leaf(x);
    opd_backward_options o = options();
    o.grad_outputs = &g;
    CHECK_INT(opd_backward_with(&x, 1, &o), 0);
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(times(part(z, 0, 2), of(2)) != NULL);
    CHECK_INT(opd_backward_with(&z, 1, &o), 0);
    CHECK_VALUES(g, 1, 2, 3);
    CHECK_GRAD(x, 4, 8, 9);
}
static int steps_in_backward(opd_tensor *const *grads, int n, void *user) {
    (void)n; (void)user;
    opd_tensor *x = vec(2, true), *y = non_leaf(x), *c;
    CHECK(times(part(y, 0, 1), of(4)) != NULL);
    CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, &y, 1, &c, 1), 0);
    OPD_ENABLE_GRAD {
        CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, &x, 1, &c, 1), 0);
        CHECK_INT(opd_backward(opd_sum(c)), 0);
    }
    CHECK(opd_tensor_grad(x) != NULL && grads[0] != NULL);
    return 0;
}
TEST(everything_again_inside_a_hook) {
    opd_tensor *x = vec(3, true), *y = non_leaf(x), *c;
    CHECK(opd_multi_hook_add(&y, 1, OPD_MULTI_ANY, steps_in_backward, NULL, NULL) > 0);
    CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, &y, 1, &c, 1), 0);
    CHECK_INT(opd_backward(opd_sum(c)), 0);
    CHECK_GRAD(x, 4, 9 * 4 * 8, 4 * 27);
}
TEST(once_differentiable_meets_forward_mode_and_views) {
    opd_autograd_function f = square;
    opd_tensor *x = vec(3, true), *y, *g, *s;
    opd_backward_options o = options();
    f.once_differentiable = true;
    y = non_leaf(x);
    times(part(y, 0, 1), apply(&f, opd_clone(part(y, 1, 2))));
    s = opd_sum(opd_mul(y, y));                   /* (a b^2)^2 + b^2 + c^2 */
    o.create_graph = true;
    CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, &o, &g), 0);
    CHECK_OK();
    if (g) { CHECK_VALUES(g, 2 * 1 * 16, 4 * 8 + 4, 6); }
    CHECK_INT(opd_backward(opd_sum(g)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "trying to differentiate twice");
}
typedef struct racing { opd_tensor *x; int rounds; } racing;
static void *races(void *p) {
    racing *r = (racing *)p;
    for (int i = 0; i < r->rounds; i++) {
        OPD_SCOPED;
        opd_tensor *y = non_leaf(r->x), *v = part(y, 0, 2), *c;
        CHECK_INT(opd_saved_hooks_begin(&saving), 0);
        times(v, of(2));
        opd_saved_hooks_end();
        CHECK_INT(opd_checkpoint(custom_inside, NULL, NULL, &y, 1, &c, 1), 0);
        OPD_DUAL_LEVEL {
            opd_tensor *t, *d = opd_mul(opd_dual_new(c, opd_ones(OPD_INTS(3), OPD_FLOAT64)), of(2));
            (void)opd_dual_unpack(d, &t);
            CHECK(t != NULL);
            CHECK_INT(opd_backward(opd_sum(d)), 0);
        }
    }
    return NULL;
}
TEST(threads_with_everything_on_one_leaf) {
    opd_tensor *x = vec(3, true);
    racing r = {x, 20};
    pthread_t t[3];
    for (int i = 0; i < 3; i++) { CHECK_INT(pthread_create(&t[i], NULL, races, &r), 0); }
    for (int i = 0; i < 3; i++) { pthread_join(t[i], NULL); }
    CHECK_GRAD(x, 60 * 2 * 64.0 / 1, 60 * 2 * 9 * 64.0 * 8, 60 * 2 * 4 * 27.0);
}

//-- nothing leaks when memory runs out --------------------------------------------------------------------------------

/* All of it at once; what it reads is made before. */
static void everything(opd_tensor *x, opd_tensor *w, bool twice) {
    opd_tensor *in[2] = {x, w}, *y = non_leaf(x), *v = part(y, 0, 2), *out = NULL, *s, *g[2], *tangent;
    opd_backward_options o = options();
    o.create_graph = twice;
    (void)opd_tensor_retain_grad(v);
    (void)opd_tensor_retain_grad(y);
    if (opd_tensor_hook_add(y, ten_times, NULL, NULL) == 0) { return; }
    if (opd_saved_hooks_begin(&saving)) { return; }
    times(v, w);
    apply(&triple, part(y, 2, 3));
    opd_saved_hooks_end();
    in[0] = y;
    if (!opd_ok() || opd_checkpoint(writes_inside, NULL, NULL, in, 2, &out, 1)) { return; }
    times(part(out, 0, 2), w);
    OPD_DUAL_LEVEL {
        opd_tensor *d = opd_mul(opd_dual_new(out, opd_mul(out, out)), of(1));
        times(part(d, 1, 3), w);
        apply(&triple, part(d, 0, 1));
        s = opd_sum(d);
        (void)opd_dual_unpack(s, &tangent);
        if (opd_ok()) { s = opd_add(s, tangent); }
    }
    in[0] = x;
    if (!opd_ok() || opd_autograd_grad(&s, 1, in, 2, &o, g)) { return; }
    if (twice) { (void)opd_backward(opd_sum(opd_mul(g[0], g[0]))); }
}
static void fail_each(bool twice, int64_t step) {
    bool done = false;
    OPD_SCOPE { everything(vec(4, true), vec(2, true), twice); }          /* what comes with the first use */
    CHECK_OK();
    for (int64_t n = 1; !done && n < 20000; n += step) {
        OPD_SCOPED;
        opd_tensor *x = vec(4, true), *w = vec(2, true);
        int64_t calls;
        bool failed;
        opd_error_clear();
        (void)opd_memory_fail_at(n, false);
        everything(x, w, twice);
        calls = opd_memory_fail_at(0, false);
        done = calls < n;
        failed = !opd_ok();
        if (failed) {
            if (done) { printf("%s\n", opd_error_message()); }
            CHECK(!done && opd_error_code() == OPD_ERROR_MEMORY);
            if (opd_error_code() != OPD_ERROR_MEMORY) { printf("%d: %s\n", (int)n, opd_error_message()); }
            opd_error_clear();
        }
        CHECK(opd_grad_mode_enabled() && !opd_inference_mode_enabled() && opd_saved_hooks_disabled() == NULL);
        CHECK(opd_backward_id() == -1);
        if (n % 5 == 0) {                         /* the next one works */
            opd_tensor *z = opd_sum(opd_mul(x, x));
            CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
            CHECK_INT(opd_backward(z), 0);
            CHECK_GRAD(x, 2, 4, 6, 8);
        }
        if (check_failures > 10) { return; }
    }
    CHECK(done);
}
TEST(every_allocation_fails_once) { fail_each(false, 1); }
TEST(allocations_fail_in_second_derivatives) { fail_each(true, 13); }
static void quiet_log(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
TEST(allocations_fail_in_anomaly_mode) {
    int was;
    opd_log_set(quiet_log, NULL);
    was = opd_anomaly_set(true, true);
    fail_each(false, 11);
    (void)opd_anomaly_set(was & OPD_ANOMALY_ON, was & OPD_ANOMALY_NAN);
    opd_log_set(NULL, NULL);
}

CHECK_MAIN()
