/* Custom functions, backward functions with a setup, once_differentiable, operators without a derivative, grad
   modes.  PyTorch's results are in golden/function.txt, made by golden/make_function.py.  THREADED */
#include "../../opdispatch.h"
#include "../check.h"

#include <pthread.h>

//-- helpers -----------------------------------------------------------------------------------------------------------

static opd_tensor *num(double v) { return opd_tensor_from(&v, opd_ints_of(NULL, 0), OPD_FLOAT64); }
static opd_tensor *four(double a, double b, double c, double d) {
    double v[4];
    v[0] = a; v[1] = b; v[2] = c; v[3] = d;
    return opd_tensor_from(v, OPD_INTS(4), OPD_FLOAT64);
}
static opd_tensor *leaf(opd_tensor *t) { return opd_tensor_set_requires_grad(t, true); }
static opd_tensor *the_x(void) { return leaf(four(1, 2, 3, 4)); }
static opd_tensor *the_y(void) { return leaf(four(0.5, 1.5, -1, 2)); }
static opd_tensor *into(const char *op, opd_tensor *a, opd_tensor *b) { return OPD_CALL(opd_find(op), a, b); }
static opd_backward_options options(void) { opd_backward_options o; memset(&o, 0, sizeof o); return o; }
static int grads_of(opd_tensor *y, opd_tensor **in, int n, bool create, opd_tensor **g) {
    opd_backward_options o = options();
    o.create_graph = create;
    return opd_autograd_grad(&y, 1, in, n, &o, g);
}

/* Reads the numbers in the occurrence-th line with this name. */
static int golden(const char *name, int occurrence, double *out, int cap) {
    FILE *f = check_golden("function.txt");
    char line[4096];
    int n = 0;
    while (f && fgets(line, sizeof line, f)) {
        char *p = line + strlen(name), *end;
        if (strncmp(line, name, strlen(name)) != 0 || *p != ' ' || occurrence-- > 0) { continue; }
        for (; n < cap; n++, p = end) {
            out[n] = strtod(p, &end);
            if (end == p) { break; }
        }
        break;
    }
    if (f) { (void)fclose(f); }
    return n;
}
/* Checks that the elements of n tensors equal the numbers in a golden line. */
static void same(const char *name, opd_tensor *const *t, int n) {
    double want[64];
    int count = golden(name, 0, want, 64), i, at = 0;
    int64_t k;
    for (i = 0; i < n; i++) {
        CHECK_OR_RETURN(t[i] != NULL && opd_dtype(t[i]) == OPD_FLOAT64);
        for (k = 0; k < opd_numel(t[i]) && at < count; k++) { CHECK_NEAR(opd_data_f64(opd_contiguous(t[i]))[k], want[at++], 1e-12); }
    }
    CHECK_INT(at, count);
    CHECK(count > 0);
}
static void same1(const char *name, opd_tensor *a) { same(name, &a, 1); }
static void same2(const char *name, opd_tensor *a, opd_tensor *b) {
    opd_tensor *t[2];
    t[0] = a; t[1] = b;
    same(name, t, 2);
}
static void flags(const char *name, int occurrence, int n, int a, int b, int c, int d) {
    double want[8] = {0};
    CHECK_INT(golden(name, occurrence, want, 8), n);
    if (n > 0) { CHECK_INT(a, want[0]); }
    if (n > 1) { CHECK_INT(b, want[1]); }
    if (n > 2) { CHECK_INT(c, want[2]); }
    if (n > 3) { CHECK_INT(d, want[3]); }
}

static opd_autograd_function function(const char *name, int (*forward)(opd_context *), opd_backward_fn backward) {
    opd_autograd_function f;
    memset(&f, 0, sizeof f);
    f.name = name;
    f.forward = forward;
    f.backward = backward;
    return f;
}
static int apply(const opd_autograd_function *f, opd_tensor **out, int cap, const opd_value *in, int n) {
    opd_value v[8];
    int i, rc = opd_autograd_apply(f, in, n, v, 8);
    for (i = 0; i < cap; i++) { out[i] = i < rc && v[i].tag == OPD_TAG_TENSOR ? v[i].u.t : NULL; }
    return rc;
}
static opd_tensor *apply1(const opd_autograd_function *f, opd_tensor *x) { return OPD_APPLY(f, x); }
static int apply2(const opd_autograd_function *f, opd_tensor **out, opd_tensor *x, opd_tensor *y) {
    opd_value in[2];
    in[0] = opd_value_tensor(x);
    in[1] = opd_value_tensor(y);
    return apply(f, out, 2, in, 2);
}

//-- a function in one piece, and split ----------------------------------------------------------------------------------

/* a + k b + a b */
static int scaled_compute(opd_context *ctx) {
    opd_tensor *a = opd_context_tensor(ctx, 0), *b = opd_context_tensor(ctx, 2), *k = num(opd_context_input(ctx, 1).u.d);
    CHECK(!opd_grad_mode_enabled());
    CHECK_INT(opd_context_ninputs(ctx), 3);
    return opd_context_return(ctx, opd_add(opd_add(a, opd_mul(k, b)), opd_mul(a, b)));
}
static int scaled_setup(opd_context *ctx) {
    opd_tensor *t[2];
    t[0] = opd_context_tensor(ctx, 0);
    t[1] = opd_context_tensor(ctx, 2);
    if (opd_context_set(ctx, "k", opd_context_input(ctx, 1))) { return -1; }
    return opd_context_save_for_backward(ctx, t, 2);
}
static int scaled_forward(opd_context *ctx) { return scaled_setup(ctx) || scaled_compute(ctx); }
static int scaled_setup_behind(opd_context *ctx) {
    CHECK(opd_context_output(ctx, 0).tag == OPD_TAG_TENSOR && opd_context_output(ctx, 1).tag == OPD_TAG_NONE);
    CHECK(!opd_grad_mode_enabled());
    CHECK_INT(opd_context_return(ctx, num(1)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_context_return can only be called in the forward of a function (ScaledBackward)");
    return scaled_setup(ctx);
}
static int scaled_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *g = opd_bw_grad(bw, 0), *a = opd_context_saved(ctx, 0), *b = opd_context_saved(ctx, 1);
    CHECK_INT(opd_context_nsaved(ctx), 2);
    CHECK(opd_bw_tensor(bw, 1) == b);
    return opd_bw_return(bw, 0, opd_add(g, opd_mul(g, b))) || opd_bw_return(bw, 1, NULL) ||
           opd_bw_return(bw, 2, opd_add(opd_mul(g, num(opd_context_get(ctx, "k").u.d)), opd_mul(g, a)));
}
static void scaled(const opd_autograd_function *f) {
    opd_value in[3], out[1];
    opd_tensor *x = the_x(), *y = the_y(), *go = leaf(num(1)), *r, *gin[3], *g[3];
    opd_backward_options o = options();
    in[0] = opd_value_tensor(x);
    in[1] = opd_value_double(2);
    in[2] = opd_value_tensor(y);
    CHECK_INT(opd_autograd_apply(f, in, 3, out, 1), 1);
    CHECK_OR_RETURN(opd_ok());
    r = out[0].u.t;
    CHECK_STR(opd_tensor_grad_fn(r), "ScaledBackward");
    same1("scaled", r);
    r = opd_sum(r);
    gin[0] = x; gin[1] = y; gin[2] = go;
    o.create_graph = true;
    o.grad_outputs = &go;
    CHECK_INT(opd_autograd_grad(&r, 1, gin, 2, &o, g), 0);
    CHECK_OR_RETURN(opd_ok());
    same("scaled_grads", g, 2);
    CHECK_INT(grads_of(opd_sum(opd_mul(g[0], g[1])), gin, 3, false, g), 0);
    same("scaled_second", g, 3);
}
TEST(function) {
    opd_autograd_function f = function("Scaled", scaled_forward, scaled_backward);
    scaled(&f);
}
TEST(function_split) {
    opd_autograd_function f = function("Scaled", scaled_compute, scaled_backward);
    f.setup_context = scaled_setup_behind;
    scaled(&f);
}

static int packs, unpacks;
static int exp_forward(opd_context *ctx) {
    opd_tensor *t[3];
    t[0] = opd_exp(opd_context_tensor(ctx, 0));
    t[1] = NULL;
    t[2] = t[0];
    return opd_context_save_for_backward(ctx, t, 3) || opd_context_return(ctx, t[0]);
}
static int exp_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    CHECK(opd_context_saved(ctx, 1) == NULL && opd_context_saved(ctx, 3) == NULL && opd_context_saved(ctx, -1) == NULL);
    CHECK(opd_context_saved(ctx, 0) == opd_context_saved(ctx, 2) || packs);
    CHECK((opd_bw_tensor(bw, 0) == opd_bw_tensor(bw, 2) || packs) && opd_bw_tensor(bw, 1) == NULL && opd_bw_tensor(bw, 3) == NULL);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_context_saved(ctx, 2)));
}
TEST(result_saved_and_no_cycle) {                 /* the runner sees whether memory stays */
    opd_autograd_function f = function("Exp", exp_forward, exp_backward);
    opd_tensor *x = the_x(), *g[3];
    CHECK_INT(grads_of(opd_sum(apply1(&f, x)), &x, 1, true, &g[0]), 0);
    CHECK_INT(grads_of(opd_sum(g[0]), &x, 1, true, &g[1]), 0);
    CHECK_INT(grads_of(opd_sum(g[1]), &x, 1, false, &g[2]), 0);
    same("exp", g, 3);
    CHECK(apply1(&f, x) != NULL);                 /* and never differentiated */
}
static void *pack(opd_tensor *t, void *user) { (void)user; packs++; return opd_keep(opd_clone(t)); }
static opd_tensor *unpack(void *p, void *user) { (void)user; unpacks++; return (opd_tensor *)p; }
static void drop(void *p, void *user) { (void)user; opd_release((opd_tensor *)p); }
TEST(saved_tensors_go_through_hooks) {
    opd_autograd_function f = function("Exp", exp_forward, exp_backward);
    opd_saved_hooks hooks;
    opd_tensor *x = the_x(), *y, *g[3];
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = pack;
    hooks.unpack = unpack;
    hooks.drop = drop;
    packs = unpacks = 0;
    CHECK_INT(opd_saved_hooks_begin(&hooks), 0);
    y = opd_sum(apply1(&f, x));
    opd_saved_hooks_end();
    CHECK_INT(packs, 1);
    CHECK_INT(grads_of(y, &x, 1, true, &g[0]), 0);
    CHECK(unpacks > 0);
    CHECK_INT(grads_of(opd_sum(g[0]), &x, 1, true, &g[1]), 0);
    CHECK_INT(grads_of(opd_sum(g[1]), &x, 1, false, &g[2]), 0);
    same("exp", g, 3);
    packs = 0;
}
TEST(saved_tensors_are_checked) {
    opd_autograd_function f = function("Scaled", scaled_forward, scaled_backward);
    opd_value in[3], out[1];
    opd_tensor *x = the_x(), *z = opd_mul(the_y(), num(2)), *r;
    in[0] = opd_value_tensor(x);
    in[1] = opd_value_double(2);
    in[2] = opd_value_tensor(z);
    CHECK_INT(opd_autograd_apply(&f, in, 3, out, 1), 1);
    r = opd_sum(out[0].u.t);
    CHECK_INT(opd_backward(r), 0);
    CHECK_INT(opd_backward(r), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
                "been freed).");
    CHECK_INT(opd_autograd_apply(&f, in, 3, out, 1), 1);
    CHECK(into("aten::mul_.Tensor", z, num(2)) != NULL);
    CHECK_INT(opd_backward(opd_sum(out[0].u.t)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an inplace operation");
}

//-- results -----------------------------------------------------------------------------------------------------------

static int both_forward(opd_context *ctx) {
    return opd_context_return(ctx, opd_context_tensor(ctx, 0)) || opd_context_return(ctx, opd_context_tensor(ctx, 1));
}
static int both_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), num(3))) || opd_bw_return(bw, 1, opd_mul(opd_bw_grad(bw, 1), num(5)));
}
TEST(inputs_returned_as_they_are) {
    opd_autograd_function f = function("Both", both_forward, both_backward);
    opd_tensor *x = the_x(), *y = the_y(), *out[2];
    CHECK_INT(apply2(&f, out, x, y), 2);
    CHECK_OR_RETURN(out[0] && out[1]);
    CHECK(opd_data(out[0]) == opd_data(x));
    CHECK_INT(opd_backward(opd_sum(opd_mul(out[0], out[1]))), 0);
    same2("as_is", opd_tensor_grad(x), opd_tensor_grad(y));
    CHECK_INT(apply2(&f, out, x, four(1, 1, 1, 1)), 2);
    flags("as_is_flags", 0, 4, opd_tensor_requires_grad(out[0]), opd_tensor_requires_grad(out[1]), opd_data(out[0]) == opd_data(x), out[0] == x);
    CHECK(opd_tensor_requires_grad(x) && opd_tensor_is_leaf(x));
    OPD_NO_GRAD { CHECK_INT(apply2(&f, out, x, four(1, 1, 1, 1)), 2); }
    flags("as_is_no_grad", 0, 3, opd_tensor_requires_grad(out[0]), opd_tensor_requires_grad(out[1]), out[0] == x, 0);
    CHECK(opd_tensor_grad_fn(out[0]) == NULL);
}
static int save_first_input(opd_context *ctx) {
    opd_tensor *t = opd_context_tensor(ctx, 0);
    return opd_context_save_for_backward(ctx, &t, 1);
}
TEST(input_returned_and_saved_by_the_setup) {
    opd_autograd_function f = function("Both", both_forward, both_backward);
    opd_tensor *x = the_x(), *out[2];
    f.setup_context = save_first_input;
    CHECK_INT(apply2(&f, out, x, x), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "A input that has been returned as-is as output is being saved for backward. This is not supported if you "
                "override setup_context.");
}

static int twice_forward(opd_context *ctx) {
    opd_tensor *r = opd_mul(opd_context_tensor(ctx, 0), num(2));
    return opd_context_return(ctx, r) || opd_context_return(ctx, r);
}
static int twice_inplace_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return !into("aten::mul_.Tensor", x, num(2)) || opd_context_mark_dirty(ctx, x) || opd_context_return(ctx, x) || opd_context_return(ctx, x);
}
static int twice_backward(opd_backward_call *bw) {
    opd_tensor *two = num(2);
    return opd_bw_return(bw, 0, opd_add(opd_mul(opd_bw_grad(bw, 0), two), opd_mul(opd_bw_grad(bw, 1), two)));
}
static void twice(opd_autograd_function f, bool clone, const char *name, const char *flag) {
    opd_tensor *x = the_x(), *out[2];
    opd_value in = opd_value_tensor(clone ? opd_clone(x) : x);
    CHECK_INT(apply(&f, out, 2, &in, 1), 2);
    CHECK_OR_RETURN(out[0] && out[1]);
    flags(flag, 0, 2, out[0] == out[1], 1, 0, 0);
    if (clone) { CHECK(out[0] == in.u.t); }
    CHECK_INT(opd_backward(opd_sum(opd_add(opd_mul(out[0], out[0]), out[1]))), 0);
    same1(name, opd_tensor_grad(x));
}
TEST(return_duplicate) {
    twice(function("Twice", twice_forward, twice_backward), false, "twice", "twice_flags");
    twice(function("TwiceInplace", twice_inplace_forward, twice_backward), true, "twice_inplace", "twice_inplace_flags");
}

static int add_into_forward(opd_context *ctx) {
    opd_tensor *a = opd_context_tensor(ctx, 0), *b = opd_context_tensor(ctx, 1);
    return opd_context_mark_dirty(ctx, a) || opd_context_return(ctx, into("aten::add_.Tensor", a, b)) || opd_context_return(ctx, opd_add(b, num(2)));
}
static int add_into_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, g) || opd_bw_return(bw, 1, opd_add(g, opd_bw_grad(bw, 1)));
}
TEST(return_leaf_inplace) {
    opd_autograd_function f = function("AddInto", add_into_forward, add_into_backward);
    opd_tensor *x = four(1, 2, 3, 4), *y = the_y(), *z, *out[2];
    CHECK_INT(apply2(&f, out, x, y), 2);
    flags("dirty_flags", 0, 2, out[0] == x, opd_tensor_requires_grad(x), 0, 0);
    CHECK_INT(opd_backward(opd_sum(out[0])), 0);
    same1("dirty", opd_tensor_grad(y));
    x = the_x();
    y = the_y();
    z = opd_mul(x, num(3));
    CHECK_INT(apply2(&f, out, z, y), 2);
    CHECK_STR(opd_tensor_grad_fn(z), "AddIntoBackward");
    CHECK_INT(opd_backward(opd_sum(opd_mul(out[0], out[1]))), 0);
    same2("dirty_history", opd_tensor_grad(x), opd_tensor_grad(y));
}
static int dirty_not_returned(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return opd_context_mark_dirty(ctx, x) || opd_context_return(ctx, opd_neg(x));
}
static int dirty_no_input(opd_context *ctx) {
    opd_tensor *y = opd_mul(opd_context_tensor(ctx, 0), num(2));
    return opd_context_mark_dirty(ctx, y) || opd_context_return(ctx, y);
}
static char logged[2000];
static int warnings;
static void log_it(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error) { return; }
    warnings++;
    (void)snprintf(logged, sizeof logged, "%s", text);
}
TEST(mark_dirty_mistakes) {
    opd_autograd_function f = function("TwiceInplace", twice_inplace_forward, twice_backward);
    opd_tensor *x = the_x();
    CHECK(apply1(&f, leaf(four(1, 2, 3, 4))) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad has been used in an in-place operation.");
    CHECK(apply1(&f, opd_select(opd_unsqueeze(opd_mul(x, num(1)), 0), 0, 0)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
                "than one Tensor.");
    f = function("F", dirty_not_returned, twice_backward);
    CHECK(apply1(&f, x) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function.");
    f = function("F", dirty_no_input, twice_backward);
    opd_log_set(log_it, NULL);
    warnings = 0;
    CHECK(apply1(&f, x) != NULL);
    opd_log_set(NULL, NULL);
    CHECK_INT(warnings, 1);
    CHECK(strstr(logged, "Only input Tensors should be given to") != NULL);
}

static int mixed_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0), *a = opd_add(x, num(1)), *b = opd_add(x, num(2));
    return opd_context_mark_non_differentiable(ctx, a) || opd_context_return(ctx, a) || opd_context_return(ctx, b);
}
static int mixed_backward(opd_backward_call *bw) {
    same2("mixed_grads", opd_bw_grad(bw, 0), opd_bw_grad(bw, 1));
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 1));
}
TEST(mark_non_differentiable_mixed) {
    opd_autograd_function f = function("Mixed", mixed_forward, mixed_backward);
    opd_tensor *x = the_x(), *out[2];
    opd_value in = opd_value_tensor(x);
    CHECK_INT(apply(&f, out, 2, &in, 1), 2);
    flags("mixed_flags", 0, 2, opd_tensor_requires_grad(out[0]), opd_tensor_requires_grad(out[1]), 0, 0);
    CHECK_INT(opd_backward(opd_sum(out[1])), 0);
    same1("mixed", opd_tensor_grad(x));
}
static int dirty_constant_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return !into("aten::mul_.Tensor", x, num(2)) || opd_context_mark_dirty(ctx, x) || opd_context_mark_non_differentiable(ctx, x) ||
           opd_context_return(ctx, x);
}
TEST(mark_dirty_not_differentiable) {
    opd_autograd_function f = function("DirtyConstant", dirty_constant_forward, both_backward);
    opd_tensor *x = the_x(), *t = opd_clone(x), *r = apply1(&f, t);
    flags("dirty_constant_flags", 0, 3, r == t, opd_tensor_requires_grad(r), opd_tensor_requires_grad(t), 0);
    CHECK_NEAR(opd_data_f64(r)[3], 8, 0);
}

/* Outputs that are not tensors, and tensors without a gradient. */
static int kinds_forward(opd_context *ctx) {
    static const int64_t ints[] = {5, 6, 7};
    opd_value list[2];
    char text[16];
    int rc = opd_context_return(ctx, opd_mul(opd_context_tensor(ctx, 0), num(2)));
    (void)strcpy(text, "five");
    list[0] = opd_value_str(text);
    list[1] = opd_value_bool(true);
    rc = rc || opd_context_return_value(ctx, opd_value_int(5)) || opd_context_return_value(ctx, opd_value_str(text)) ||
         opd_context_return_value(ctx, opd_value_ints(ints, 3)) || opd_context_return_value(ctx, opd_value_list(list, 2)) ||
         opd_context_return_value(ctx, OPD_NONE) || opd_context_return(ctx, opd_tensor_new(OPD_INTS(2), OPD_INT64));
    (void)strcpy(text, "gone");
    return rc;
}
static int kinds_backward(opd_backward_call *bw) {
    CHECK(opd_bw_grad(bw, 1) == NULL && opd_bw_grad(bw, 5) == NULL && opd_bw_grad(bw, 7) == NULL);
    CHECK(opd_bw_grad(bw, 6) && opd_dtype(opd_bw_grad(bw, 6)) == OPD_INT64);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), num(2)));
}
TEST(outputs_of_other_kinds) {
    opd_autograd_function f = function("Kinds", kinds_forward, kinds_backward);
    opd_tensor *x = the_x();
    opd_value in = opd_value_tensor(x), out[7];
    CHECK_INT(opd_autograd_apply(&f, &in, 1, out, 2), 7);
    CHECK_INT(opd_autograd_apply(&f, &in, 1, NULL, 0), 7);
    CHECK_INT(opd_autograd_apply(&f, &in, 1, out, 7), 7);
    CHECK_INT(out[1].u.i, 5);
    CHECK_STR(out[2].u.s, "five");
    CHECK(out[2].n == 4 && out[3].tag == OPD_TAG_INTS && out[3].n == 3 && out[3].u.ints[2] == 7);
    CHECK_STR(out[4].u.list[0].u.s, "five");
    CHECK_INT(out[5].tag, OPD_TAG_NONE);
    CHECK(!opd_tensor_requires_grad(out[6].u.t));
    CHECK_INT(opd_backward(opd_sum(out[0].u.t)), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 2, 0);
}
static opd_tensor *outside;
static int outside_forward(opd_context *ctx) { return opd_context_return(ctx, outside) || opd_context_return(ctx, outside); }
TEST(outputs_that_have_a_history) {               /* they stay what they are */
    opd_autograd_function f = function("Outside", outside_forward, twice_backward);
    opd_tensor *x = the_x(), *y = the_y(), *out[2];
    opd_value in = opd_value_tensor(x);
    outside = opd_neg(y);
    CHECK_INT(apply(&f, out, 2, &in, 1), 2);
    CHECK_STR(opd_tensor_grad_fn(outside), "NegBackward0");
    CHECK_STR(opd_tensor_grad_fn(out[0]), "OutsideBackward");
    CHECK_INT(opd_backward(opd_sum(opd_add(out[0], out[1]))), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 4, 0);
    CHECK(opd_tensor_grad(y) == NULL);
}

/* Marked where the set-up is apart, as in forward. */
static int half_plain_forward(opd_context *ctx) {
    return opd_context_return(ctx, into("aten::mul_.Tensor", opd_context_tensor(ctx, 0), num(2)));
}
static int marks_in_setup(opd_context *ctx) { return opd_context_mark_dirty(ctx, opd_context_tensor(ctx, 0)); }
static int half_inplace_forward_without_return(opd_context *ctx) {
    return opd_context_return(ctx, opd_clone(into("aten::mul_.Tensor", opd_context_tensor(ctx, 0), num(2))));
}
static int half_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), num(2))); }
static int half_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_sum(apply1((const opd_autograd_function *)user, opd_mul(in[0], num(1))));
    return out[0] ? 1 : -1;
}
TEST(mark_dirty_in_setup_context) {
    opd_autograd_function f = function("Double", half_plain_forward, half_backward);
    opd_tensor *x = the_x(), *y = opd_mul(x, num(1)), *g = NULL;
    const uint32_t version = opd_tensor_version(y);
    f.setup_context = marks_in_setup;
    CHECK(apply1(&f, y) == y);
    CHECK_STR(opd_tensor_grad_fn(y), "DoubleBackward");
    CHECK_INT(opd_tensor_version(y), version + 2);                                /* the operator's, and the mark */
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 2, 0);
    CHECK(!apply1(&f, x));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad");
    x = opd_detach(the_x());
    CHECK_INT(opd_grad(half_of, &f, &x, 1, NULL, &g, 1), 1);
    CHECK_NEAR(opd_data_f64(g)[0], 2, 0);
    f.forward = half_inplace_forward_without_return;
    CHECK(!apply1(&f, opd_mul(x, num(1))) || !opd_ok());
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "must all be outputs");
}

/* Views: written to as the only output; made inside. */
static int half_inplace_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return !into("aten::mul_.Tensor", x, num(2)) || opd_context_mark_dirty(ctx, x) || opd_context_return(ctx, x);
}
static int half_inplace_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), num(2))); }
TEST(views_written_to) {
    opd_autograd_function f = function("Double", half_inplace_forward, half_inplace_backward);
    opd_tensor *x = the_x(), *base = opd_mul(x, num(1)), *v = opd_select(opd_unsqueeze(base, 0), 0, 0), *r = apply1(&f, v);
    CHECK(r == v);
    CHECK_NEAR(opd_data_f64(base)[3], 8, 0);
    CHECK_STR(opd_tensor_grad_fn(base), "CopySlices");
    CHECK_INT(opd_backward(opd_sum(opd_mul(base, v))), 0);                        /* (2x)(2x) */
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[3], 32, 0);
    f.once_differentiable = true;
    x = the_x();
    base = opd_mul(x, num(1));
    v = opd_view(base, OPD_INTS(2, 2));
    CHECK(apply1(&f, v) == v);
    CHECK_INT(grads_of(opd_sum(base), &x, 1, true, &r), 0);
    CHECK_NEAR(opd_data_f64(r)[0], 2, 0);
    CHECK_INT(opd_backward(opd_sum(r)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "trying to differentiate twice");
    CHECK(apply1(&f, opd_view(the_x(), OPD_INTS(2, 2))) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a view of a leaf tensor that requires grad is being used in an in-place operation.");
}
static int local_view_forward(opd_context *ctx) {
    opd_tensor *v = opd_view(opd_clone(opd_context_tensor(ctx, 0)), OPD_INTS(2, 2));
    if (opd_context_user(ctx) && !into("aten::add_.Tensor", v, num(2))) { return -1; }
    return opd_context_return(ctx, v);
}
static int local_view_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_view(opd_bw_grad(bw, 0), OPD_INTS(4))); }
TEST(views_made_inside) {
    opd_autograd_function f = function("My", local_view_forward, local_view_backward);
    opd_tensor *x = the_x(), *r;
    int i;
    for (i = 0; i < 2; i++) {
        r = apply1(&f, x);
        CHECK_STR(opd_tensor_grad_fn(r), "MyBackward");
        CHECK_INT(opd_backward(opd_sum(opd_mul(r, r))), 0);
        r = apply1(&f, x);
        CHECK(into("aten::mul_.Tensor", r, num(2)) == NULL);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Output 0 of MyBackward is a view and is being modified inplace. This view was created inside a custom Function");
        CHECK(into("aten::mul_.Tensor", opd_view(r, OPD_INTS(4)), num(2)) == NULL);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "This view was created inside a custom Function");
        f.user = &f;                              /* written to inside */
    }
    f = function("Both", both_forward, both_backward);
    {
        opd_tensor *out[2];
        CHECK_INT(apply2(&f, out, x, the_y()), 2);
        CHECK(into("aten::mul_.Tensor", out[1], num(2)) == NULL);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Output 1 of BothBackward is a view and is being modified inplace. This view is the output of a function that "
                    "returns multiple views.");
    }
}

//-- gradients in and out ------------------------------------------------------------------------------------------------

static int nothing_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, NULL); }
static int double_forward(opd_context *ctx) { return opd_context_return(ctx, opd_mul(opd_context_tensor(ctx, 0), num(2))); }
TEST(function_returns_undefined_tensor) {
    opd_autograd_function f = function("Nothing", double_forward, nothing_backward);
    opd_backward_options o = options();
    opd_tensor *x = the_x(), *y = opd_sum(apply1(&f, x)), *g = x;
    CHECK_INT(opd_backward(y), 0);
    CHECK(opd_tensor_grad(x) == NULL);
    CHECK_INT(opd_backward(opd_sum(apply1(&f, opd_mul(x, x)))), 0);
    CHECK(opd_tensor_grad(x) == NULL);
    CHECK_INT(opd_backward(opd_sum(opd_add(apply1(&f, x), x))), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 1, 0);
    o.allow_unused = true;
    y = opd_sum(apply1(&f, x));
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, &g), 0);
    CHECK(g == NULL);
}
static bool was_materialized, was_called;
static int plain_forward(opd_context *ctx) {
    if (opd_context_user(ctx)) { opd_context_set_materialize_grads(ctx, false); }
    return opd_context_return(ctx, opd_neg(opd_context_tensor(ctx, 0)));
}
static int plain_backward(opd_backward_call *bw) {
    was_called = true;
    was_materialized = opd_bw_grad(bw, 0) != NULL;
    if (was_materialized) { CHECK_NEAR(opd_data_f64(opd_bw_grad(bw, 0))[3], 0, 0); }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
TEST(materialize_grads) {
    opd_autograd_function f = function("Plain", plain_forward, plain_backward), undefined = function("Nothing", double_forward, nothing_backward);
    opd_tensor *x = the_x();
    was_called = false;
    CHECK_INT(opd_backward(opd_sum(apply1(&undefined, apply1(&f, x)))), 0);
    CHECK(was_called && was_materialized);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[1], 0, 0);
    f.user = &f;
    x = the_x();
    was_called = false;
    CHECK_INT(opd_backward(opd_sum(apply1(&undefined, apply1(&f, x)))), 0);
    CHECK(was_called && !was_materialized && opd_tensor_grad(x) == NULL);
}
static int wrong_at;
static int wrong_backward(opd_backward_call *bw) { return opd_bw_return(bw, wrong_at, opd_bw_grad(bw, 0)); }
TEST(gradients_for_what_is_no_tensor) {
    opd_autograd_function f = function("Scaled", scaled_compute, wrong_backward);
    opd_value in[3], out[1];
    opd_tensor *x = the_x(), *y = the_y();
    in[0] = opd_value_tensor(x);
    in[1] = opd_value_double(2);
    in[2] = opd_value_tensor(y);
    CHECK_INT(opd_autograd_apply(&f, in, 3, out, 1), 1);
    wrong_at = 1;
    CHECK_INT(opd_backward(opd_sum(out[0].u.t)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "function ScaledBackward returned a gradient at position 2, but the input at this position is not a tensor");
    wrong_at = 3;
    CHECK_INT(opd_backward(opd_sum(out[0].u.t)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "function ScaledBackward returned an incorrect number of gradients (expected 3, got 4)");
    CHECK(opd_tensor_grad(x) == NULL && opd_tensor_grad(y) == NULL);
    wrong_at = 2;
    CHECK_INT(opd_backward(opd_sum(out[0].u.t)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "ScaledBackward returned an incorrect number of gradients (expected 2, got 1): there is none for input 0");
    CHECK(opd_tensor_grad(x) == NULL && opd_tensor_grad(y) == NULL);
}

static int needs_forward(opd_context *ctx) {
    flags("needs", (int)(intptr_t)opd_context_user(ctx), 3, opd_context_needs_input_grad(ctx, 0), opd_context_needs_input_grad(ctx, 1),
          opd_context_needs_input_grad(ctx, 2), 0);
    CHECK(!opd_context_needs_input_grad(ctx, 3) && !opd_context_needs_input_grad(ctx, -1));
    return opd_context_return(ctx, opd_mul(opd_context_tensor(ctx, 0), opd_context_tensor(ctx, 1)));
}
static int needs_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    flags("needs_backward", 0, 3, opd_context_needs_input_grad(ctx, 0), opd_context_needs_input_grad(ctx, 1), opd_context_needs_input_grad(ctx, 2), 0);
    CHECK(opd_bw_needs(bw, 0) && !opd_bw_needs(bw, 1) && !opd_bw_needs(bw, 2) && !opd_bw_needs(bw, 3));
    CHECK(opd_bw_sizes(bw, 0).n == 1 && opd_bw_sizes(bw, 1).n == -1);
    CHECK(opd_context_input(ctx, 0).tag == OPD_TAG_NONE && opd_context_output(ctx, 0).tag == OPD_TAG_NONE);
    CHECK_INT(opd_context_save_for_backward(ctx, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "can only be called in the forward or setup_context of a function (NeedsBackward)");
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
TEST(needs_input_grad) {
    opd_autograd_function f = function("Needs", needs_forward, needs_backward);
    opd_tensor *x = the_x(), *out;
    opd_value in[3];
    in[0] = opd_value_tensor(x);
    in[1] = opd_value_tensor(four(1, 1, 1, 1));
    in[2] = opd_value_int(3);
    CHECK_INT(apply(&f, &out, 1, in, 3), 1);
    CHECK_INT(opd_backward(opd_sum(out)), 0);
    in[1] = opd_value_tensor(the_y());
    f.user = (void *)(intptr_t)1;
    OPD_NO_GRAD { CHECK_INT(apply(&f, &out, 1, in, 3), 1); }
    CHECK(!opd_tensor_requires_grad(out));
}

/* Lists of tensors as inputs. */
static int total_forward(opd_context *ctx) {
    opd_value list = opd_context_input(ctx, 1);
    opd_tensor *sum = opd_context_tensor(ctx, 0);
    int i;
    CHECK(opd_context_needs_input_grad(ctx, 1));
    for (i = 0; i < list.n; i++) { if (list.u.tensors[i]) { sum = opd_add(sum, opd_mul(list.u.tensors[i], num(i + 1))); } }
    return opd_context_return(ctx, sum);
}
static int total_backward(opd_backward_call *bw) {
    int k, rc = 0;
    CHECK(!opd_bw_needs(bw, 0) && opd_bw_needs(bw, 1) && opd_bw_needs_at(bw, 1, 0) && !opd_bw_needs_at(bw, 1, 1) && !opd_bw_needs_at(bw, 1, 3));
    for (k = 0; k < 3 && !rc; k++) { rc = opd_bw_return_at(bw, 1, k, opd_mul(opd_bw_grad(bw, 0), num(k + 1))); }
    return rc;
}
TEST(list_inputs) {
    opd_autograd_function f = function("Total", total_forward, total_backward);
    opd_tensor *list[3], *out;
    opd_value in[2];
    list[0] = the_x();
    list[1] = NULL;
    list[2] = the_y();
    in[0] = opd_value_tensor(four(1, 1, 1, 1));
    in[1] = opd_value_tensors(list, 3);
    CHECK_INT(apply(&f, &out, 1, in, 2), 1);
    CHECK_INT(opd_backward(opd_sum(out)), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(list[0]))[0], 1, 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(list[2]))[0], 3, 0);
}

/* What one function left out, the next does not see: an output without a gradient between two functions. */
static int noise_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0), *noise = opd_ones_like(x);
    return opd_context_mark_non_differentiable(ctx, noise) || opd_context_return(ctx, x) || opd_context_return(ctx, noise);
}
static int first_grad(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
static int first_input(opd_context *ctx) { return opd_context_return(ctx, opd_context_tensor(ctx, 0)); }
TEST(dep_nograd) {
    opd_autograd_function f1 = function("F1", noise_forward, first_grad), f2 = function("F2", first_input, first_grad);
    opd_tensor *x = the_x(), *out[2], *b, *c[2];
    opd_value in = opd_value_tensor(x);
    CHECK_INT(apply(&f1, out, 2, &in, 1), 2);
    b = opd_add(out[1], num(1));
    CHECK(opd_tensor_requires_grad(out[0]) && !opd_tensor_requires_grad(b));
    CHECK_INT(apply2(&f2, c, out[0], b), 1);
    CHECK_INT(opd_backward(opd_sum(c[0])), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[3], 1, 0);
}

static int as_is_and_saved(opd_context *ctx) {
    opd_tensor *t[2];
    t[0] = opd_context_tensor(ctx, 0);
    t[1] = opd_context_tensor(ctx, 1);
    return opd_context_save_for_backward(ctx, t, 2) || opd_context_return(ctx, t[0]);
}
static int as_is_and_saved_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(g, opd_bw_tensor(bw, 1))) || opd_bw_return(bw, 1, opd_mul(g, opd_bw_tensor(bw, 0)));
}
TEST(returns_input_as_is_and_saves_it) {
    opd_autograd_function f = function("AsIs", as_is_and_saved, as_is_and_saved_backward);
    opd_tensor *x = the_x(), *y = the_y(), *out[2];
    CHECK_INT(apply2(&f, out, x, y), 1);
    CHECK_INT(opd_backward(opd_sum(out[0])), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 0.5, 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(y))[3], 4, 0);
}
static int wrong_size(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_zeros(OPD_INTS(10), OPD_FLOAT64)); }
static int other_dtype(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_full(OPD_INTS(3, 4), OPD_V(2), OPD_FLOAT32)); }
TEST(invalid_gradients) {
    opd_autograd_function f = function("My", double_forward, wrong_size);
    opd_tensor *x = the_x();
    CHECK_INT(opd_backward(opd_sum(apply1(&f, x))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Function MyBackward returned an invalid gradient at index 0 - got [10] but expected shape compatible with [4]");
    f.backward = other_dtype;                     /* broadcast and of another dtype: summed and cast */
    CHECK_INT(opd_backward(opd_sum(apply1(&f, x))), 0);
    CHECK(opd_dtype(opd_tensor_grad(x)) == OPD_FLOAT64);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 6, 0);
}
TEST(no_grad_custom_function) {
    opd_autograd_function f = function("My", double_forward, first_grad);
    opd_tensor *x = the_x(), *y = NULL;
    OPD_NO_GRAD { y = apply1(&f, x); }
    CHECK(y && !opd_tensor_requires_grad(y) && !opd_tensor_grad_fn(y));
    y = apply1(&f, opd_detach(x));
    CHECK(y && !opd_tensor_requires_grad(y));
    CHECK(OPD_APPLY(&f, 3) == NULL);
    opd_error_clear();
}

TEST(functions_in_inference_mode) {
    opd_autograd_function f = function("Both", both_forward, both_backward), e = function("Exp", exp_forward, exp_backward);
    opd_tensor *x = the_x(), *out[2], *y = NULL;
    OPD_INFERENCE_MODE(true) {
        CHECK_INT(apply2(&f, out, x, four(1, 2, 3, 4)), 2);
        CHECK(!opd_tensor_requires_grad(out[0]) && !opd_tensor_requires_grad(out[1]));
        y = apply1(&e, x);
        CHECK(y && !opd_tensor_requires_grad(y));
    }
    CHECK_OK();
    CHECK(opd_tensor_requires_grad(apply1(&e, x)));
    e = function("Scale", as_is_and_saved, as_is_and_saved_backward);
    CHECK_INT(apply2(&e, out, x, y), -1);         /* saves one that was made there */
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Inference tensors cannot be saved for backward.");
}

//-- once differentiable -------------------------------------------------------------------------------------------------

static int square_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return opd_context_save_for_backward(ctx, &x, 1) || opd_context_return(ctx, opd_mul(x, x));
}
static int square_backward(opd_backward_call *bw) {
    flags("once_grad_mode", 0, 1, opd_grad_mode_enabled(), 0, 0, 0);
    return opd_bw_return(bw, 0, opd_mul(opd_mul(opd_bw_grad(bw, 0), num(2)), opd_bw_tensor(bw, 0)));
}
#define TWICE "trying to differentiate twice a function that was marked with @once_differentiable"
TEST(once_differentiable) {
    opd_autograd_function f = function("Once", square_forward, square_backward);
    opd_tensor *x = the_x(), *go = leaf(four(1, 1, 1, 1)), *y, *g, *h, *in[2];
    opd_backward_options o = options();
    f.once_differentiable = true;
    y = apply1(&f, x);
    o.grad_outputs = &go;
    o.create_graph = true;
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, &g), 0);
    CHECK_OR_RETURN(opd_ok());
    same1("once", g);
    flags("once_flags", 0, 1, opd_tensor_requires_grad(g), 0, 0, 0);
    CHECK_STR(opd_tensor_grad_fn(g), "Error");
    CHECK_INT(opd_backward(opd_sum(g)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, TWICE " (OnceBackward)");
    /* whatever asks, and by whatever way, though some may go unused */
    in[0] = x; in[1] = go;
    o = options();
    o.allow_unused = true;
    for (int i = 0; i < 2; i++) {
        h = opd_sum(g);
        CHECK_INT(opd_autograd_grad(&h, 1, &in[i], 1, &o, &y), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, TWICE);
    }
    /* without create_graph nothing is refused, and with it only derivatives through these gradients */
    CHECK_INT(grads_of(opd_sum(apply1(&f, x)), &x, 1, false, &g), 0);
    CHECK(!opd_tensor_requires_grad(g));
    CHECK_INT(grads_of(opd_sum(apply1(&f, x)), &x, 1, true, &g), 0);
    CHECK_INT(grads_of(opd_sum(opd_mul(opd_detach(g), x)), &x, 1, false, &h), 0);
    CHECK_NEAR(opd_data_f64(h)[3], 8, 0);
}
static int once_op_backward(opd_backward_call *bw) {
    CHECK(!opd_grad_mode_enabled());
    return opd_bw_return(bw, 0, opd_mul(opd_mul(opd_bw_grad(bw, 0), num(2)), opd_bw_tensor(bw, 0)));
}
static int k_square(opd_call *call) { return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0))); }
TEST(once_differentiable_operator) {
    opd_library *lib = opd_library_open(OPD_DEF, "once", NULL, "t", 1);
    opd_tensor *x = the_x(), *g;
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "square(Tensor self) -> Tensor";
    d.cpu = k_square;
    d.backward = once_op_backward;
    d.save = "self";
    d.once_differentiable = 1;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(grads_of(opd_sum(OPD_CALL(opd_find("once::square"), x)), &x, 1, true, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[2], 6, 0);
    CHECK_INT(opd_backward(opd_sum(g)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, TWICE " (SquareBackward0)");
    opd_library_close(lib);
}

//-- forward mode --------------------------------------------------------------------------------------------------------

static int jvp_mode;
static int exp_dual_forward(opd_context *ctx) {
    opd_tensor *r = opd_exp(opd_context_tensor(ctx, 0));
    return opd_context_save_for_backward(ctx, &r, 1) || opd_context_save_for_forward(ctx, &r, 1) || opd_context_return(ctx, r) ||
           opd_context_return_value(ctx, opd_value_int(3));
}
static int exp_dual_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0))); }
static int exp_jvp(opd_jvp_call *jv) {
    opd_context *ctx = opd_jvp_context(jv);
    opd_tensor *t = opd_jvp_tangent(jv, 0);
    CHECK(t != NULL && opd_jvp_tangent(jv, 1) == NULL && opd_jvp_tensor(jv, 0) == opd_context_tensor(ctx, 0));
    CHECK(opd_jvp_result(jv, 0) == opd_context_output(ctx, 0).u.t && opd_jvp_result(jv, 1) == NULL && opd_jvp_value(jv, 0).tag == OPD_TAG_TENSOR);
    CHECK(!opd_forward_grad_enabled());
    if (jvp_mode == 1) { return -1; }
    if (jvp_mode == 2) { return opd_jvp_return(jv, 2, t); }
    return opd_jvp_return(jv, 0, opd_mul(t, opd_context_saved(ctx, 0)));
}
TEST(jvp) {
    opd_autograd_function f = function("Exp", exp_dual_forward, exp_dual_backward);
    opd_tensor *x = the_x(), *t = four(1, 2, 3, 4), *dual, *y, *g, *tangent;
    int level = opd_dual_level_begin();
    dual = opd_dual_new(x, t);
    CHECK(apply1(&f, dual) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the function ExpBackward has no `jvp` (see opd_autograd_function), so it cannot be used in forward mode");
    f.jvp = exp_jvp;
    y = apply1(&f, dual);
    CHECK_OR_RETURN(y != NULL);
    CHECK_STR(opd_tensor_grad_fn(y), "ExpBackward");
    (void)opd_dual_unpack(y, &tangent);
    CHECK_OR_RETURN(tangent != NULL);
    CHECK_NEAR(opd_data_f64(tangent)[2], 3 * exp(3), 1e-12);
    CHECK_INT(grads_of(opd_sum(tangent), &x, 1, false, &g), 0);                   /* the tangent is on the tape */
    CHECK_NEAR(opd_data_f64(g)[2], 3 * exp(3), 1e-12);
    for (jvp_mode = 1; jvp_mode <= 2; jvp_mode++) {
        CHECK(apply1(&f, dual) == NULL);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, jvp_mode == 1 ? "the jvp of ExpBackward failed without setting an error" : "Function's jvp returned an invalid number of forward gradients (expected 2 but got 3)");
    }
    jvp_mode = 0;
    f = function("Double", half_inplace_forward, half_inplace_backward);
    CHECK(apply1(&f, opd_mul(dual, num(1))) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has no `jvp`");
    (void)opd_dual_level_end(level);
}
static int double_jvp(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, into("aten::mul_.Tensor", opd_jvp_tangent(jv, 0), num(2))); }
static int square_setup(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    CHECK(opd_context_output(ctx, 0).tag == OPD_TAG_TENSOR);
    return opd_context_save_for_backward(ctx, &x, 1);
}
static int square_setup_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_mul(opd_bw_grad(bw, 0), num(2)), opd_context_saved(opd_bw_context(bw), 0)));
}
TEST(forward_mode_in_place_and_by_a_setup) {
    opd_autograd_function f = function("Double", half_inplace_forward, half_inplace_backward);
    opd_library *lib = opd_library_open(OPD_DEF, "fwd", NULL, "t", 1);
    opd_tensor *x = the_x(), *y, *tangent;
    opd_op_desc d;
    int level = opd_dual_level_begin();
    f.jvp = double_jvp;
    y = opd_mul(opd_dual_new(x, four(1, 2, 3, 4)), num(1));
    CHECK(apply1(&f, y) == y);
    (void)opd_dual_unpack(y, &tangent);
    CHECK(tangent && fabs(opd_data_f64(tangent)[3] - 8) < 1e-12);
    memset(&d, 0, sizeof d);
    d.schema = "square(Tensor self) -> Tensor";
    d.cpu = k_square;
    d.setup_context = square_setup;
    d.backward = square_setup_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    y = OPD_CALL(opd_find("fwd::square"), opd_dual_new(x, four(1, 1, 1, 1)));
    (void)opd_dual_unpack(y, &tangent);
    CHECK(tangent && fabs(opd_data_f64(tangent)[3] - 8) < 1e-12);
    (void)opd_dual_level_end(level);
    opd_library_close(lib);
}

//-- attributes ----------------------------------------------------------------------------------------------------------

static int destroyed;
static void destroy_data(void *p) { destroyed++; free(p); }
static int attributes_forward(opd_context *ctx) {
    static const double floats[] = {1.5, 2.5};
    opd_tensor *x = opd_context_tensor(ctx, 0);
    char text[8];
    (void)strcpy(text, "mode");
    CHECK_INT(opd_context_set(ctx, "n", opd_value_int(1)), 0);
    CHECK_INT(opd_context_set(ctx, "n", opd_value_int(7)), 0);
    CHECK_INT(opd_context_set(ctx, "s", opd_value_str(text)), 0);
    CHECK_INT(opd_context_set(ctx, "f", opd_value_doubles(floats, 2)), 0);
    CHECK_INT(opd_context_set(ctx, "t", opd_value_tensor(x)), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'t' contains tensors; save them with opd_context_save_for_backward");
    CHECK_INT(opd_context_set_data(ctx, malloc(1), destroy_data), 0);
    CHECK_INT(opd_context_set_data(ctx, malloc(2), destroy_data), 0);
    (void)strcpy(text, "gone");
    return opd_context_return(ctx, opd_neg(x));
}
static int attributes_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    CHECK_INT(opd_context_get(ctx, "n").u.i, 7);
    CHECK_STR(opd_context_get(ctx, "s").u.s, "mode");
    CHECK_INT(opd_context_get(ctx, "s").n, 4);
    CHECK_NEAR(opd_context_get(ctx, "f").u.floats[1], 2.5, 0);
    CHECK_INT(opd_context_get(ctx, "none").tag, OPD_TAG_NONE);
    CHECK(opd_context_data(ctx) != NULL && opd_context_user(ctx) == &destroyed);
    CHECK_INT(opd_context_set(ctx, "seen", opd_value_bool(true)), 0);
    return opd_bw_return(bw, 0, opd_neg(opd_bw_grad(bw, 0)));
}
TEST(attributes_live_as_long_as_the_node) {
    opd_autograd_function f = function("Attributes", attributes_forward, attributes_backward);
    f.user = &destroyed;
    destroyed = 0;
    OPD_SCOPE {
        opd_tensor *x = the_x(), *y = opd_sum(apply1(&f, x));
        CHECK_INT(destroyed, 1);                  /* the first of the two pointers */
        CHECK_INT(opd_backward(y), 0);
        CHECK_INT(opd_backward(y), 0);            /* nothing saved: as often as one likes */
        CHECK_INT(destroyed, 1);
    }
    CHECK_INT(destroyed, 2);
    OPD_NO_GRAD { CHECK(apply1(&f, the_x()) != NULL); }
    CHECK_INT(destroyed, 4);
    CHECK(apply1(&f, four(1, 2, 3, 4)) != NULL);
    CHECK_INT(destroyed, 6);
}
static int many_forward(opd_context *ctx) {
    opd_tensor *t[200], *x = opd_context_tensor(ctx, 0);
    int i;
    for (i = 0; i < 200; i++) { t[i] = opd_mul(x, num(i)); }
    CHECK_INT(opd_context_save_for_backward(ctx, t, 200), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "0 to 190 tensors can be saved, not 200");
    CHECK_INT(opd_context_save_for_backward(ctx, NULL, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "0 to 190");
    CHECK_INT(opd_context_save_for_forward(ctx, t, 200), 0);
    return opd_context_save_for_backward(ctx, t, 190) || opd_context_return(ctx, t[3]);
}
static int many_backward(opd_backward_call *bw) {
    CHECK_INT(opd_context_nsaved(opd_bw_context(bw)), 190);
    CHECK_NEAR(opd_data_f64(opd_context_saved(opd_bw_context(bw), 189))[1], 378, 0);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), num(3)));
}
TEST(many_saved_tensors) {
    opd_autograd_function f = function("Many", many_forward, many_backward);
    opd_tensor *x = the_x();
    CHECK_INT(opd_backward(opd_sum(apply1(&f, x))), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 3, 0);
}

static int hoard(opd_context *ctx) {
    opd_tensor *big = opd_zeros(OPD_INTS(1000, 1000), OPD_FLOAT64);
    return opd_context_save_for_backward(ctx, &big, 1) || opd_context_save_for_forward(ctx, &big, 1);
}
static int hoard_forward(opd_context *ctx) { return hoard(ctx) || double_forward(ctx); }
static int hoard_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
TEST(saved_tensors_go_with_the_graph) {
    opd_autograd_function f = function("Hoard", hoard_forward, hoard_backward);
    opd_library *lib = opd_library_open(OPD_DEF, "hoard", NULL, "t", 1);
    opd_tensor *x = the_x(), *y;
    opd_op_desc d;
    int i;
    memset(&d, 0, sizeof d);
    d.schema = "f(Tensor x) -> Tensor";
    d.cpu = k_square;
    d.backward = hoard_backward;
    d.setup_context = hoard;
    CHECK_INT(opd_define(lib, &d), 0);
    for (i = 0; i < 2; i++) {
        int64_t live = opd_memory_stats().live;
        y = i ? OPD_CALL(opd_find("hoard::f"), x) : apply1(&f, x);
        CHECK(opd_memory_stats().live > live + 8000000);
        CHECK_INT(opd_backward(opd_sum(y)), 0);
        CHECK(opd_memory_stats().live < live + 1000000);
    }
    OPD_NO_GRAD {                                 /* nothing is recorded, nothing held */
        int64_t live = opd_memory_stats().live;
        CHECK(apply1(&f, x) != NULL);
        CHECK(opd_memory_stats().live < live + 1000000);
    }
    opd_library_close(lib);
}

static bool retained, cleared_early;
static int clearing_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    const int64_t live = opd_memory_stats().live;
    CHECK(opd_context_saved(ctx, 0) != NULL);
    CHECK_INT(opd_context_maybe_clear_saved_tensors(ctx), 0);
    cleared_early = opd_memory_stats().live < live - 7000000;
    CHECK(opd_context_saved(ctx, 0) == NULL || retained);
    if (!retained) { CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time"); }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
TEST(saved_tensors_may_be_cleared) {              /* maybe_clear_saved_tensors */
    opd_autograd_function f = function("Hoard", hoard_forward, clearing_backward);
    opd_tensor *x = the_x(), *y = opd_sum(apply1(&f, x));
    opd_backward_options o = options();
    o.retain_graph = retained = true;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(!cleared_early);
    retained = false;
    CHECK_INT(opd_backward(y), 0);
    CHECK(cleared_early);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time");
    CHECK_INT(opd_context_maybe_clear_saved_tensors(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the context is NULL");
}

//-- failures ------------------------------------------------------------------------------------------------------------

static int ill;
static int ill_forward(opd_context *ctx) {
    opd_tensor *t = opd_neg(opd_context_tensor(ctx, 0));
    (void)opd_context_return(ctx, t);
    if (ill == 1) { return -1; }
    if (ill == 2) { return opd_fail(OPD_ERROR_USER, "ill"); }
    if (ill == 3) { (void)opd_fail(OPD_ERROR_USER, "and says nothing"); }
    if (ill == 4) { (void)opd_scope_open(); (void)opd_grad_mode_set(true); }
    if (ill == 5) { return opd_context_return_value(ctx, opd_value_tensors(&t, 1)); }
    return 0;
}
static int ill_backward(opd_backward_call *bw) { (void)bw; return ill == 6 ? -1 : opd_fail(OPD_ERROR_USER, "ill"); }
TEST(functions_that_fail) {
    static const char *const text[] = {"", "the forward of IllBackward failed without setting an error", "ill [in the forward of IllBackward]",
                                       "and says nothing [in the forward of IllBackward]", "", "a list of tensors cannot be an output"};
    opd_autograd_function f = function("Ill", ill_forward, ill_backward);
    opd_tensor *x = the_x();
    opd_value v = opd_value_tensor(NULL);
    for (ill = 1; ill <= 5; ill++) {
        opd_tensor *y = apply1(&f, x);
        CHECK((y != NULL) == (ill == 4));
        CHECK(opd_grad_mode_enabled());
        if (ill == 4) { CHECK_OK(); } else { CHECK_ERROR(ill == 2 || ill == 3 ? OPD_ERROR_USER : ill == 5 ? OPD_ERROR_ARGUMENT : OPD_ERROR_AUTOGRAD, text[ill]); }
    }
    for (ill = 6; ill <= 7; ill++) {
        CHECK_INT(opd_backward(opd_sum(apply1(&f, x))), -1);
        CHECK_ERROR(ill == 6 ? OPD_ERROR_AUTOGRAD : OPD_ERROR_USER, ill == 6 ? "the backward function of IllBackward failed without setting an error" : "ill [in IllBackward]");
    }
    ill = 0;
    f.backward = NULL;
    CHECK_INT(opd_backward(opd_sum(apply1(&f, x))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "You must implement the backward of your custom function (IllBackward) to use it with backward mode AD.");
    CHECK_INT(opd_autograd_apply(NULL, NULL, 0, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function must have a name and a forward");
    f.forward = NULL;
    CHECK_INT(opd_autograd_apply(&f, NULL, 0, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function must have a name and a forward");
    f.forward = ill_forward;
    v.tag = OPD_TAG_TENSOR;
    v.u.t = NULL;
    CHECK_INT(opd_autograd_apply(&f, &v, 1, NULL, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 0 of Ill is a NULL tensor");
    CHECK_INT(opd_context_set(NULL, "a", OPD_NONE), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK_INT(opd_context_return(NULL, x), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the context is NULL");
    CHECK(!opd_context_tensor(NULL, 0) && !opd_context_saved(NULL, 0) && !opd_context_data(NULL) && !opd_context_ninputs(NULL));
    CHECK(opd_tensor_grad(x) == NULL);
}
static int everything(void *arg) {
    static opd_autograd_function f[5];
    opd_value in[3], out[7];
    opd_tensor *x = the_x(), *y = the_y(), *r, *two[2], *g[2], *inputs[2];
    opd_backward_options o = options();
    (void)arg;
    f[0] = function("Scaled", scaled_forward, scaled_backward);
    f[1] = function("Exp", exp_forward, exp_backward);
    f[2] = function("AddInto", add_into_forward, add_into_backward);
    f[3] = function("Kinds", kinds_forward, first_grad);
    f[4] = function("Once", square_forward, once_op_backward);
    f[4].once_differentiable = true;
    if (!x || !y) { return -1; }
    in[0] = opd_value_tensor(x);
    in[1] = opd_value_double(2);
    in[2] = opd_value_tensor(y);
    if (opd_autograd_apply(&f[0], in, 3, out, 7) < 0) { return -1; }
    in[0] = out[0];
    if (opd_autograd_apply(&f[1], in, 1, out, 7) < 0) { return -1; }
    if (apply2(&f[2], two, opd_mul(out[0].u.t, num(1)), y) < 0) { return -1; }
    in[0] = opd_value_tensor(two[1]);
    if (opd_autograd_apply(&f[3], in, 1, out, 7) < 0) { return -1; }
    r = apply1(&f[4], out[0].u.t);
    if (!r || !(r = opd_sum(opd_mul(r, two[0])))) { return -1; }
    inputs[0] = x; inputs[1] = y;
    o.create_graph = true;
    return opd_autograd_grad(&r, 1, inputs, 2, &o, g);
}
TEST(out_of_memory) {
    int64_t n;
    OPD_SCOPE { CHECK_INT(everything(NULL), 0); }
    n = check_allocations(everything, NULL, "everything", 2000, true);
    CHECK(n > 50 && n < 2000);
}

//-- backward within a function --------------------------------------------------------------------------------------------

static int inner_forward(opd_context *ctx) {
    opd_tensor *x = leaf(opd_clone(opd_context_tensor(ctx, 0))), *t[2];
    OPD_ENABLE_GRAD { t[1] = opd_mul(opd_mul(x, x), x); }
    CHECK(opd_tensor_requires_grad(t[1]));
    t[0] = x;
    return opd_context_save_for_backward(ctx, t, 2) || opd_context_return(ctx, opd_detach(t[1]));
}
static int inner_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0), *r = NULL, *g;
    OPD_ENABLE_GRAD { r = opd_sum(opd_mul(opd_bw_tensor(bw, 1), opd_bw_grad(bw, 0))); }
    return opd_autograd_grad(&r, 1, &x, 1, NULL, &g) || opd_bw_return(bw, 0, g);
}
TEST(reentrant) {
    opd_autograd_function f = function("Inner", inner_forward, inner_backward);
    opd_tensor *x = the_x();
    CHECK_INT(opd_backward(opd_sum(opd_mul(apply1(&f, opd_mul(x, num(2))), num(3)))), 0);
    same1("inner", opd_tensor_grad(x));
}

static int thread_errors;
static char events[400];
static void *event_begins(const opd_event *e, void *user) {
    (void)user;
    (void)snprintf(events + strlen(events), sizeof events - strlen(events), "%d %s %d|", e->kind, e->name, e->kind == OPD_OBSERVE_SPAN ? e->nargs : 0);
    return NULL;
}
static void event_ends(const opd_event *e, void *context, void *user) {
    (void)context; (void)user;
    if (e->kind == OPD_OBSERVE_SPAN) { (void)snprintf(events + strlen(events), sizeof events - strlen(events), "%s ends, %d results|", e->name, e->nrets); }
}
TEST(functions_are_observed) {
    opd_autograd_function f = function("Ill", ill_forward, ill_backward);
    opd_observer o;
    opd_tensor *x = the_x();
    int64_t id;
    memset(&o, 0, sizeof o);
    o.begin = event_begins;
    o.end = event_ends;
    events[0] = 0;
    id = opd_observer_add_local(&o);
    ill = 0;
    CHECK(apply1(&f, x) != NULL);
    ill = 2;
    CHECK(apply1(&f, x) == NULL);
    opd_error_clear();
    (void)opd_observer_remove(id);
    CHECK_STR(events, "4 Ill 1|1 aten::neg 0|Ill ends, 1 results|4 Ill 1|1 aten::neg 0|Ill ends, 0 results|");
    ill = 0;
}

static char there[256];
static void *fail_on_a_thread(void *arg) {
    opd_autograd_function f = function("Ill", ill_forward, ill_backward), g = function("Nothing", double_forward, nothing_backward);
    opd_tensor *x = the_x();
    (void)arg;
    ill = 7;
    OPD_SCOPE {
        if (opd_backward(opd_sum(apply1(&f, x))) == 0) { thread_errors++; }
        (void)snprintf(there, sizeof there, "%s", opd_error_message());
        opd_error_clear();
        ill = 0;
        if (opd_backward(opd_sum(apply1(&g, x))) || opd_tensor_grad(x)) { thread_errors++; }
    }
    return NULL;
}
TEST(a_failure_is_no_missing_gradient_on_any_thread) {
    pthread_t id;
    thread_errors = 0;
    CHECK_INT(pthread_create(&id, NULL, fail_on_a_thread, NULL), 0);
    CHECK_INT(pthread_join(id, NULL), 0);
    CHECK_INT(thread_errors, 0);
    CHECK_STR(there, "ill [in IllBackward]");
    CHECK_OK();
}
static void *run_threads(void *arg) {
    opd_autograd_function f = function("Exp", exp_forward, exp_backward);
    int i;
    (void)arg;
    for (i = 0; i < 100; i++) {
        OPD_SCOPED;
        opd_tensor *x = the_x(), *g;
        char name[32];
        (void)snprintf(name, sizeof name, "Exp%d", i % 7);
        f.name = name;
        if (grads_of(opd_sum(apply1(&f, x)), &x, 1, false, &g) || fabs(opd_data_f64(g)[0] - exp(1)) > 1e-12) {
            (void)__atomic_add_fetch(&thread_errors, 1, __ATOMIC_RELAXED);
        }
    }
    return NULL;
}
TEST(functions_on_several_threads) {
    pthread_t id[4];
    int i;
    thread_errors = 0;
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_create(&id[i], NULL, run_threads, NULL), 0); }
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_join(id[i], NULL), 0); }
    CHECK_INT(thread_errors, 0);
}

//-- operators with a set-up -------------------------------------------------------------------------------------------

/* combine(xs, k) = [xs[0] k, xs[0] xs[1]], and the sum of both; the formula reads what the set-up left. */
static int k_combine(opd_call *call) {
    opd_tensors xs = opd_arg_tensors(call, 0);
    opd_tensor *two[2];
    two[0] = opd_mul(xs.data[0], num(opd_arg_double(call, 1)));
    two[1] = opd_mul(xs.data[0], xs.data[1]);
    if (!opd_ok()) { return -1; }
    return opd_return_tensors(call, two, 2) || opd_return_tensor(call, opd_add(two[0], two[1])) ||
           opd_return_tensor(call, opd_tensor_new(OPD_INTS(1), OPD_INT64));
}
static int setups;
static int combine_setup(opd_context *ctx) {
    opd_value xs = opd_context_input(ctx, 0);
    setups++;
    CHECK_INT(opd_context_ninputs(ctx), 2);
    CHECK(opd_context_output(ctx, 0).tag == OPD_TAG_TENSORS && opd_context_output(ctx, 1).tag == OPD_TAG_TENSOR && !opd_grad_mode_enabled());
    CHECK(opd_context_needs_input_grad(ctx, 0) && !opd_context_needs_input_grad(ctx, 1));
    CHECK_INT(opd_context_mark_dirty(ctx, xs.u.tensors[0]), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_context_mark_dirty can only be called in the forward of a function");
    return opd_context_set(ctx, "k", opd_context_input(ctx, 1)) || opd_context_save_for_backward(ctx, xs.u.tensors, xs.n);
}
static int combine_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *g0 = opd_add(opd_bw_grad(bw, 0), opd_bw_grad(bw, 2)), *g1 = opd_add(opd_bw_grad(bw, 1), opd_bw_grad(bw, 2));
    opd_tensor *k = num(opd_context_get(ctx, "k").u.d);
    return opd_bw_return_at(bw, 0, 0, opd_add(opd_mul(g0, k), opd_mul(g1, opd_context_saved(ctx, 1)))) ||
           opd_bw_return_at(bw, 0, 1, opd_mul(g1, opd_context_saved(ctx, 0)));
}
static opd_op_desc combine(void) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "combine(Tensor[] xs, float k=2.5) -> (Tensor[], Tensor, Tensor)";
    d.cpu = k_combine;
    d.backward = combine_backward;
    d.setup_context = combine_setup;
    return d;
}
TEST(operator_with_a_setup) {
    opd_library *lib = opd_library_open(OPD_DEF, "setup", NULL, "t", 1);
    opd_op_desc d = combine();
    opd_tensor *in[2], *g[2];
    opd_value args, rets[3];
    in[0] = the_x();
    in[1] = the_y();
    args = opd_value_tensors(in, 2);
    CHECK_INT(opd_define(lib, &d), 0);
    setups = 0;
    CHECK_INT(opd_call_all(opd_find("setup::combine"), rets, &args, 1), 0);
    CHECK_INT(setups, 1);
    CHECK_STR(opd_tensor_grad_fn(rets[1].u.t), "CombineBackward0");
    CHECK(!opd_tensor_requires_grad(rets[2].u.t));
    /* d/dx (x 2.5 + x y) = 2.5 + y: the list's gradients are zeros */
    CHECK_INT(grads_of(opd_sum(rets[1].u.t), in, 2, true, g), 0);
    CHECK_OR_RETURN(opd_ok());
    CHECK_NEAR(opd_data_f64(g[0])[1], 4, 0);
    CHECK_NEAR(opd_data_f64(g[1])[1], 2, 0);
    CHECK_INT(grads_of(opd_sum(opd_mul(g[0], g[1])), in, 2, false, g), 0);       /* d/dx (2.5 + y) x */
    CHECK_NEAR(opd_data_f64(g[0])[1], 4, 0);
    CHECK_NEAR(opd_data_f64(g[1])[1], 2, 0);
    CHECK_INT(opd_call_all(opd_find("setup::combine"), rets, &args, 1), 0);
    CHECK_INT(grads_of(opd_sum(rets[0].u.tensors[1]), in, 2, false, g), 0);
    CHECK_NEAR(opd_data_f64(g[0])[1], 1.5, 0);
    setups = 0;
    OPD_NO_GRAD { CHECK_INT(opd_call_all(opd_find("setup::combine"), rets, &args, 1), 0); }
    CHECK_INT(setups, 0);
    opd_library_close(lib);
}
static int constant_setup(opd_context *ctx) { return opd_context_mark_non_differentiable(ctx, opd_context_output(ctx, 1).u.t); }
static int failing_setup(opd_context *ctx) { (void)ctx; return -1; }
TEST(setups_that_say_more_or_fail) {
    opd_library *lib = opd_library_open(OPD_DEF, "setup", NULL, "t", 1);
    opd_op_desc d = combine();
    opd_tensor *in[2];
    opd_value args, rets[3];
    in[0] = the_x();
    in[1] = the_y();
    args = opd_value_tensors(in, 2);
    d.setup_context = constant_setup;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "failing(Tensor[] xs, float k=2.5) -> (Tensor[], Tensor, Tensor)";
    d.setup_context = failing_setup;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_call_all(opd_find("setup::combine"), rets, &args, 1), 0);
    CHECK(!opd_tensor_requires_grad(rets[1].u.t) && opd_tensor_requires_grad(rets[0].u.tensors[0]));
    CHECK_INT(opd_call_all(opd_find("setup::failing"), rets, &args, 1), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the setup_context of FailingBackward0 failed without setting an error");
    d.schema = "f(Tensor(a!) x) -> Tensor(a!)";
    CHECK_INT(opd_define(lib, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator setup::f");
    d.schema = "g(Tensor(a) x) -> Tensor(a)";
    CHECK_INT(opd_define(lib, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator setup::g");
    d.schema = "h(Tensor x) -> Tensor";
    d.backward = NULL;
    CHECK_INT(opd_define(lib, &d), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "`setup_context` needs a backward function");
    CHECK(opd_find_quiet("setup::h") == NULL);
    opd_library_close(lib);
}

static int square_registered_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    CHECK(ctx != NULL);
    return opd_bw_return(bw, 0, opd_mul(opd_mul(opd_bw_grad(bw, 0), num(2)), opd_context_saved(ctx, 0)));
}
static int zeros_backward(opd_backward_call *bw) {
    CHECK(opd_bw_context(bw) != NULL && opd_context_nsaved(opd_bw_context(bw)) == 0);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), num(0)));
}
static int k_second(opd_call *call) { return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 1), num(2))); }
TEST(formula_registered_before_its_operator) {
    opd_library *other = opd_library_open(OPD_FRAGMENT, "reg", NULL, "t", 2), *lib;
    opd_tensor *x = the_x(), *g;
    CHECK_INT(opd_autograd_register(other, "square", square_registered_backward, square_setup), 0);
    CHECK_INT(opd_autograd_register(other, "late_(Tensor x)", square_registered_backward, square_setup), -1);
    opd_error_clear();
    CHECK_INT(opd_autograd_register(other, "late_", square_registered_backward, square_setup), 0);
    CHECK(opd_find("reg::square") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "Could not find schema for reg::square, but we found an implementation");
    lib = opd_library_open(OPD_DEF, "reg", NULL, "t", 1);
    CHECK_INT(opd_def(lib, "square(Tensor x) -> Tensor") || opd_def(lib, "late_(Tensor(a!) x) -> Tensor(a!)"), 0);
    CHECK_INT(opd_impl_key(lib, "square", "CPU", k_square, NULL, NULL), 0);
    CHECK_INT(grads_of(opd_sum(OPD_CALL(opd_find("reg::square"), x)), &x, 1, false, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[2], 6, 0);
    CHECK(OPD_CALL(opd_find("reg::late_"), x) == NULL);           /* found out where it is known */
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator reg::late_");
    opd_library_close(other);
    opd_library_close(lib);
}
TEST(formula_registered_by_itself) {
    opd_library *lib = opd_library_open(OPD_DEF, "reg", NULL, "t", 1), *other = opd_library_open(OPD_IMPL, "reg", NULL, "t", 2), *third;
    opd_tensor *x = the_x(), *g, *y;
    CHECK_INT(opd_def(lib, "square(Tensor x) -> Tensor") || opd_def(lib, "double_(Tensor(a!) x) -> Tensor(a!)") || opd_def(lib, "v(Tensor(a) x) -> Tensor(a)"), 0);
    CHECK_INT(opd_impl_key(lib, "square", "CPU", k_square, NULL, NULL), 0);
    CHECK_INT(opd_autograd_register(other, "square", square_registered_backward, square_setup), 0);
    CHECK_STR(opd_tensor_grad_fn(OPD_CALL(opd_find("reg::square"), x)), "SquareBackward0");
    CHECK_INT(grads_of(opd_sum(OPD_CALL(opd_find("reg::square"), x)), &x, 1, true, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[2], 6, 0);
    CHECK_INT(grads_of(opd_sum(g), &x, 1, false, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[2], 2, 0);
    OPD_NO_GRAD { CHECK(!opd_tensor_requires_grad(OPD_CALL(opd_find("reg::square"), x))); }
    CHECK_INT(opd_autograd_register(other, "double_", square_registered_backward, NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator reg::double_");
    CHECK_INT(opd_autograd_register(other, "v", square_registered_backward, NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Cannot register autograd formula for non-functional operator reg::v");
    CHECK_INT(opd_autograd_register(other, "square", NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "the backward function is NULL");
    CHECK(opd_op_card(opd_find("reg::square")) == NULL);
    y = OPD_CALL(opd_find("reg::square"), x);
    opd_library_close(other);                     /* the graph keeps its formula */
    CHECK_INT(grads_of(opd_sum(y), &x, 1, false, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[2], 6, 0);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(opd_find("reg::square"), x))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for reg::square is not implemented");
    third = opd_library_open(OPD_IMPL, "reg", NULL, "t", 3);
    CHECK_INT(opd_autograd_register(third, "square", zeros_backward, NULL), 0);
    CHECK_INT(grads_of(opd_sum(OPD_CALL(opd_find("reg::square"), x)), &x, 1, false, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[2], 0, 0);
    opd_library_close(lib);
    lib = opd_library_open(OPD_DEF, "reg", NULL, "t", 1);
    CHECK_INT(opd_def(lib, "square(Tensor[] x, Tensor y) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "square", "CPU", k_second, NULL, NULL), 0);
    y = OPD_CALL(opd_find("reg::square"), OPD_TENSORS(x), x);     /* defined anew with other arguments: so is its node */
    CHECK_STR(opd_tensor_grad_fn(y), "SquareBackward0");
    opd_library_close(third);
    opd_library_close(lib);
}

//-- operators without a backward function -------------------------------------------------------------------------------

static int k_double(opd_call *call) { return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), num(2))); }
static int k_same(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int k_double_inplace(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    bool was = opd_grad_mode_set(false);
    (void)into("aten::mul_.Tensor", x, num(2));
    (void)opd_grad_mode_set(was);
    return opd_return_tensor(call, x);
}
static int ran;
static int k_fill(opd_call *call) { (void)call; ran++; return 0; }
static int k_lists(opd_call *call) {
    opd_tensors xs = opd_arg_tensors(call, 0);
    opd_tensor *out[3];
    int i;
    for (i = 0; i < 3; i++) { out[i] = opd_clone(xs.data[i % 2]); }
    return opd_return_tensors(call, out, 3) || opd_return_tensor(call, opd_tensor_new(OPD_INTS(2), OPD_INT64)) || opd_return_value(call, OPD_NONE);
}
static opd_library *without_formulas(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "none", NULL, "t", 1);
    CHECK_INT(opd_def(lib, "double(Tensor x) -> Tensor") || opd_def(lib, "double_(Tensor(a!) x, Tensor? y=None) -> Tensor(a!)") ||
              opd_def(lib, "fill(Tensor(a!) x, Tensor y) -> ()") || opd_def(lib, "lists(Tensor[] xs) -> (Tensor[], Tensor, Tensor?)") ||
              opd_def(lib, "same(Tensor x) -> Tensor") || opd_def(lib, "double.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)"), 0);
    CHECK_INT(opd_impl_key(lib, "double", "CPU", k_double, NULL, NULL) || opd_impl_key(lib, "double_", "CPU", k_double_inplace, NULL, NULL) ||
              opd_impl_key(lib, "fill", "CPU", k_fill, NULL, NULL) || opd_impl_key(lib, "lists", "CPU", k_lists, NULL, NULL) ||
              opd_impl_key(lib, "same", "CPU", k_same, NULL, NULL) || opd_impl_key(lib, "double.out", "CPU", k_double_inplace, NULL, NULL), 0);
    return lib;
}
static opd_tensor *none1(const char *op, opd_tensor *x) { return OPD_CALL(opd_find(op), x); }
#define WAYS_OUT "is not implemented; give the operator a backward function (.backward), a composite kernel, or OPD_NOT_DIFFERENTIABLE"

TEST(without_a_formula_backward_is_an_error) {
    opd_library *lib = without_formulas();
    opd_tensor *x = the_x(), *y = none1("none::double", x), *z = opd_mul(x, num(1)), *xs[2];
    opd_value args, rets[3];
    CHECK_STR(opd_tensor_grad_fn(y), "NotImplemented");
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for none::double " WAYS_OUT);
    /* in place: what is written gets the node too; a leaf is refused before anything is written */
    CHECK(none1("none::double_", z) == z);
    CHECK_STR(opd_tensor_grad_fn(z), "NotImplemented");
    CHECK_NEAR(opd_data_f64(z)[0], 2, 0);
    CHECK_INT(opd_backward(opd_sum(z)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for none::double_ " WAYS_OUT);
    z = opd_mul(x, num(1));
    CHECK(none1("none::double_", opd_view(z, OPD_INTS(2, 2))) != NULL);           /* into a view: the base knows */
    CHECK_NEAR(opd_data_f64(z)[3], 8, 0);
    CHECK_INT(opd_backward(opd_sum(z)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for none::double_ " WAYS_OUT);
    CHECK(none1("none::double_", x) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad");
    CHECK_NEAR(opd_data_f64(x)[0], 1, 0);
    z = four(1, 2, 3, 4);
    CHECK(into("none::double_", z, x) == z && opd_tensor_requires_grad(z));
    /* no result: no hole */
    ran = 0;
    CHECK_INT(OPD_CALL_N(opd_find("none::fill"), rets, four(1, 2, 3, 4), x), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "none::fill writes its argument 'x', does not return it and has no backward function, but one of its arguments "
                "requires grad");
    CHECK_INT(ran, 0);
    CHECK_INT(OPD_CALL_N(opd_find("none::fill"), rets, four(1, 2, 3, 4), opd_detach(x)), 0);
    CHECK_INT(ran, 1);
    CHECK(OPD_CALL(opd_find("none::double.out"), x, four(1, 1, 1, 1)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    xs[0] = x; xs[1] = four(1, 1, 1, 1);
    args = opd_value_tensors(xs, 2);
    CHECK_INT(opd_call_all(opd_find("none::lists"), rets, &args, 1), 0);
    CHECK(opd_tensor_requires_grad(rets[0].u.tensors[2]) && !opd_tensor_requires_grad(rets[1].u.t));
    CHECK_INT(opd_backward(opd_sum(rets[0].u.tensors[1])), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for none::lists");
    /* not used in backward: nothing is wrong */
    CHECK_INT(opd_backward(opd_sum(opd_mul(x, opd_detach(none1("none::double", x))))), 0);
    opd_library_close(lib);
}
static void count_warnings(void) { opd_log_set(log_it, NULL); warnings = 0; logged[0] = 0; }
TEST(without_a_formula_warn_mode) {
    opd_library *lib = without_formulas();
    opd_tensor *x = the_x(), *y, *z, *xs[2];
    opd_value args, rets[3];
    CHECK_INT(opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_WARN), OPD_AUTOGRAD_FALLBACK_ERROR);
    count_warnings();
    y = none1("none::double", x);
    CHECK_STR(opd_tensor_grad_fn(y), "MulBackward0");    /* the kernel's own operators record, as in PyTorch */
    CHECK_INT(warnings, 0);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_INT(warnings, 1);
    CHECK(strstr(logged, "none::double: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop") != NULL);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 2, 0);
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK(none1("none::same", x) == x);                                           /* what is returned stays what it is */
    CHECK(opd_tensor_is_leaf(x));
    x = the_x();
    count_warnings();
    xs[0] = x; xs[1] = four(1, 1, 1, 1);
    args = opd_value_tensors(xs, 2);
    OPD_NO_GRAD { CHECK(!opd_tensor_requires_grad(none1("none::double", x))); }
    CHECK_INT(warnings, 0);
    /* an integer result, an undefined one, lists */
    CHECK_INT(opd_call_all(opd_find("none::lists"), rets, &args, 1), 0);
    CHECK_STR(opd_tensor_grad_fn(rets[0].u.tensors[1]), "WarnNotImplemented");
    CHECK(!opd_tensor_requires_grad(rets[1].u.t));
    CHECK_INT(opd_backward(opd_sum(rets[0].u.tensors[1])), 0);
    CHECK_INT(warnings, 1);
    CHECK(strstr(logged, "none::lists: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it.") != NULL);
    CHECK(opd_tensor_grad(x) == NULL);
    /* writes: what has a history keeps it */
    z = opd_mul(x, num(1));
    count_warnings();
    CHECK(none1("none::double_", z) == z);
    CHECK_STR(opd_tensor_grad_fn(z), "MulBackward0");
    CHECK_INT(opd_backward(opd_sum(z)), 0);
    CHECK_INT(warnings, 1);
    count_warnings();
    CHECK_INT(OPD_CALL_N(opd_find("none::fill"), rets, four(1, 2, 3, 4), x), 0);
    CHECK_INT(warnings, 1);
    CHECK(strstr(logged, "none::fill: an autograd kernel was not registered to the Autograd key(s) but it writes an argument") != NULL);
    opd_log_set(NULL, NULL);
    CHECK_INT(opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_ERROR), OPD_AUTOGRAD_FALLBACK_WARN);
    opd_library_close(lib);
}
TEST(without_a_formula_nothing_mode) {
    opd_library *lib = without_formulas();
    opd_tensor *x = the_x(), *xs[2];
    opd_value args, rets[3];
    (void)opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_NOTHING);
    count_warnings();
    xs[0] = opd_detach(x); xs[1] = x;
    args = opd_value_tensors(xs, 2);
    CHECK_INT(opd_call_all(opd_find("none::lists"), rets, &args, 1), 0);
    CHECK(!opd_tensor_requires_grad(rets[0].u.tensors[0]));
    CHECK_STR(opd_tensor_grad_fn(rets[0].u.tensors[1]), "CloneBackward0");
    CHECK_INT(opd_backward(opd_sum(none1("none::double", x))), 0);               /* through the kernel's operators */
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 2, 0);
    CHECK_INT(OPD_CALL_N(opd_find("none::fill"), rets, four(1, 2, 3, 4), x), 0);
    CHECK_INT(warnings, 0);
    opd_log_set(NULL, NULL);
    (void)opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_ERROR);
    opd_library_close(lib);
}
TEST(not_implemented_as_a_kernel) {               /* whatever the mode */
    opd_library *lib = without_formulas();
    opd_tensor *x = the_x();
    CHECK_INT(opd_def(lib, "views(Tensor(a) x, Tensor(b) y) -> (Tensor(a), Tensor(b))"), 0);
    CHECK_INT(opd_impl_key(lib, "views", "CPU", k_double, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "double", "Autograd", opd_autograd_not_implemented, NULL, NULL) ||
              opd_impl_key(lib, "views", "Autograd", opd_autograd_not_implemented, NULL, NULL), 0);
    (void)opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_NOTHING);
    CHECK(!opd_tensor_requires_grad(none1("none::double", opd_detach(x))));
    CHECK_INT(opd_backward(opd_sum(none1("none::double", x))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for none::double " WAYS_OUT);
    CHECK(OPD_CALL(opd_find("none::views"), x, x) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Expected only a single output in the operator schema to have a non-write alias annotation");
    (void)opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_ERROR);
    opd_library_close(lib);
}

/* Each backend has its own kernel at its autograd key. */
static int seen_cpu, seen_other;
static int k_autograd_cpu(opd_call *call) {
    seen_cpu++;
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}
static int k_autograd_other(opd_call *call) {
    seen_other++;
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}
static int k_any(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_result_strided(call, 0, opd_sizes(x), NULL, opd_ndim(x), opd_dtype(x), opd_tensor_device(x)));
}
static void *test_alloc(void *user, int device, size_t bytes) { (void)user; (void)device; return malloc(bytes); }
static void test_free(void *user, int device, void *p, size_t bytes) { (void)user; (void)device; (void)bytes; free(p); }
static int test_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    (void)user; (void)to_index; (void)from_index;
    memcpy(to, from, bytes);
    return 0;
}
TEST_KEEPS(autograd_kernels_of_two_backends) {
    static const char *const others[] = {"AutogradPrivateUse1", "AutogradCUDA", "AutogradMeta"};
    static const opd_backend backends[] = {OPD_PRIVATEUSE1, OPD_CUDA, OPD_META};
    opd_backend_desc b;
    int i;
    memset(&b, 0, sizeof b);
    b.alloc = test_alloc;
    b.free = test_free;
    b.copy = test_copy;
    for (i = 0; i < 2; i++) {                     /* no CUDA is needed to be called by that name */
        if (opd_device_count(backends[i]) == 0) { CHECK_INT(opd_backend_register(backends[i], &b), 0); }
    }
    for (i = 0; i < 3; i++) {
        opd_library *lib = opd_library_open(OPD_DEF, "two", NULL, "t", 1);
        opd_op *op;
        opd_tensor *there, *here = four(1, 2, 3, 4);
        CHECK_INT(opd_def(lib, "f(Tensor x, Tensor? y=None) -> Tensor"), 0);
        CHECK_INT(opd_impl_key(lib, "f", "CompositeExplicitAutograd", k_any, NULL, NULL), 0);
        CHECK_INT(opd_impl_key(lib, "f", "AutogradCPU", k_autograd_cpu, NULL, NULL), 0);
        CHECK_INT(opd_impl_key(lib, "f", others[i], k_autograd_other, NULL, NULL), 0);
        op = opd_find("two::f");
        there = opd_tensor_new_on(OPD_INTS(4), OPD_FLOAT64, opd_device_make(backends[i], 0));
        CHECK_OR_RETURN(there != NULL);
        seen_cpu = seen_other = 0;
        CHECK(OPD_CALL(op, leaf(there)) != NULL);
        CHECK_INT(seen_other, 1);
        CHECK_INT(seen_cpu, 0);
        CHECK(OPD_CALL(op, leaf(here)) != NULL);
        CHECK_INT(seen_other, 1);
        CHECK_INT(seen_cpu, 1);
        opd_library_close(lib);
    }
}

//-- grad modes ------------------------------------------------------------------------------------------------------------

static int leaves_early(int how) {
    int i;
    for (i = 0; i < 3; i++) {
        OPD_NO_GRAD {
            if (how == 1) { continue; }
            if (how == 2) { return opd_grad_mode_enabled() ? -1 : 7; }
        }
        if (!opd_grad_mode_enabled()) { return -1; }
    }
    return i;
}
TEST(grad_mode_blocks) {
    opd_tensor *x = the_x();
    int rounds = 0;
    OPD_NO_GRAD {
        rounds++;
        CHECK(!opd_grad_mode_enabled() && !opd_tensor_requires_grad(opd_neg(x)));
        OPD_ENABLE_GRAD {
            CHECK(opd_grad_mode_enabled() && opd_tensor_requires_grad(opd_neg(x)));
            OPD_GRAD_MODE(false) { CHECK(!opd_grad_mode_enabled()); }
            CHECK(opd_grad_mode_enabled());
        }
        CHECK(!opd_grad_mode_enabled());
    }
    CHECK(opd_grad_mode_enabled() && rounds == 1);
    CHECK_INT(leaves_early(0), 3);
    CHECK_INT(leaves_early(1), 3);
#if defined(__GNUC__) && !defined(__TINYC__)
    CHECK_INT(leaves_early(2), 7);
#endif
    CHECK(opd_grad_mode_enabled());
    OPD_GRAD_MODE(true) { CHECK(opd_grad_mode_enabled()); }
    OPD_NO_GRAD { (void)opd_fail(OPD_ERROR_USER, "an error is no way around it"); }
    CHECK_ERROR(OPD_ERROR_USER, "no way");
    CHECK(opd_grad_mode_enabled());
    OPD_NO_GRAD {                                 /* what else is changed inside is undone too */
        opd_tensor_set_requires_grad(opd_neg(x), true);
        (void)opd_grad_mode_set(true);
    }
    CHECK(opd_grad_mode_enabled());
}
static int k_leaves_mode(opd_call *call) {
    (void)opd_grad_mode_set(false);
    return opd_return_tensor(call, opd_neg(opd_arg_tensor(call, 0)));
}
static int backward_leaves_mode(opd_backward_call *bw) {
    (void)opd_grad_mode_set(!opd_grad_mode_enabled());
    return opd_bw_return(bw, 0, opd_neg(opd_bw_grad(bw, 0)));
}
TEST(grad_mode_ends_with_kernels_and_formulas) {
    opd_library *lib = opd_library_open(OPD_DEF, "mode", NULL, "t", 1);
    opd_tensor *x = the_x(), *y;
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "f(Tensor x) -> Tensor";
    d.cpu = k_leaves_mode;
    d.backward = backward_leaves_mode;
    CHECK_INT(opd_define(lib, &d), 0);
    y = OPD_CALL(opd_find("mode::f"), x);
    CHECK(opd_grad_mode_enabled() && opd_tensor_requires_grad(y));
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_grad_mode_enabled());
    OPD_NO_GRAD { CHECK_INT(opd_backward(opd_sum(y)), -1); }
    opd_error_clear();
    CHECK(opd_grad_mode_enabled());
    opd_library_close(lib);
}
static bool there_on, there_carried;
static opd_dispatch_state carried;
static void *other_thread(void *arg) {
    (void)arg;
    there_on = opd_grad_mode_enabled();
    carried = opd_dispatch_state_set(carried);
    there_carried = opd_grad_mode_enabled();
    (void)opd_dispatch_state_set(carried);
    return NULL;
}
TEST(grad_mode_is_each_threads_own) {
    pthread_t id;
    OPD_NO_GRAD {
        carried = opd_dispatch_state_get();
        CHECK_INT(pthread_create(&id, NULL, other_thread, NULL), 0);
        CHECK_INT(pthread_join(id, NULL), 0);
    }
    CHECK(there_on && !there_carried);
    carried = opd_dispatch_state_get();
    OPD_NO_GRAD {
        opd_dispatch_state was = opd_dispatch_state_set(carried);
        CHECK(opd_grad_mode_enabled());
        (void)opd_dispatch_state_set(was);
        CHECK(!opd_grad_mode_enabled());
    }
}
#if defined(__cplusplus)
static void throws(void) { OPD_NO_GRAD { throw 1; } }
TEST(grad_mode_after_an_exception) {
    try { throws(); } catch (int) { CHECK(opd_grad_mode_enabled()); }
}
#endif

CHECK_MAIN()
