/* Transforms of custom operators whose kernels are plain loops, with a backward function, a forward-mode function, a
   batching rule or some of these; with several results, lists, a written argument, setup functions, and backward
   functions that record operators.  Stacks of grad, jvp, vjp, vmap, jacrev, jacfwd, hessian, levels of forward mode
   and recordings are compared with the same stacks of built-in operators (see stacks.h).  A different value fails,
   and an error must be one of those listed here.  C ONLY OPD_STACKS=all in the environment runs every stack;
   otherwise only a part of the deeper ones runs. */
#include "../../opdispatch.h"
#include "../check.h"
#include "../stacks.h"

#define D opd_data_f64
static opd_tensor *times(opd_tensor *a, double s) { return opd_mul_Scalar(a, opd_value_double(s)); }
static opd_tensor *plus(opd_tensor *a, opd_tensor *b) { return !a ? b : !b ? a : opd_add(a, b); }
static opd_tensor *given_tensor(opd_call *call, int i) { return opd_contiguous(opd_arg_tensor(call, i)); }
static opd_tensor *like(opd_call *call, int k, opd_tensor *x) { return x ? opd_result(call, k, opd_sizes(x), opd_ndim(x), OPD_FLOAT64) : NULL; }

//-- two(x, y) = (x x sin y, y cos x) ----------------------------------------------------------------------------------

static int two_cpu(opd_call *call) {
    opd_tensor *x = given_tensor(call, 0), *y = given_tensor(call, 1), *a = like(call, 0, x), *b = like(call, 1, x);
    if (!opd_ok()) { return -1; }
    for (int64_t i = 0; opd_data(a) && i < opd_numel(x); i++) {
        D(a)[i] = D(x)[i] * D(x)[i] * sin(D(y)[i]);
        D(b)[i] = D(y)[i] * cos(D(x)[i]);
    }
    return 0;
}
static int two_gradients(opd_backward_call *bw, opd_tensor *x, opd_tensor *y) {
    opd_tensor *g = opd_bw_grad(bw, 0), *h = opd_bw_grad(bw, 1), *gx = NULL, *gy = NULL;
    if (g) { gx = opd_mul(g, times(opd_mul(x, opd_sin(y)), 2)); gy = opd_mul(g, opd_mul(opd_mul(x, x), opd_cos(y))); }
    if (h) { gx = plus(gx, opd_neg(opd_mul(h, opd_mul(opd_sin(x), y)))); gy = plus(gy, opd_mul(h, opd_cos(x))); }
    if (!opd_ok() || (gx && opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, gx))) { return -1; }
    return gy && opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, gy) : 0;
}
static int two_backward(opd_backward_call *bw) { return two_gradients(bw, opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1)); }
static int two_setup(opd_context *ctx) {
    opd_tensor *t[2] = {opd_context_tensor(ctx, 0), opd_context_tensor(ctx, 1)};
    return opd_context_save_for_backward(ctx, t, 2);
}
static int two_backward_set_up(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    return two_gradients(bw, opd_context_saved(ctx, 0), opd_context_saved(ctx, 1));
}
static int two_jvp(opd_jvp_call *jv) {
    opd_tensor *x = opd_jvp_tensor(jv, 0), *y = opd_jvp_tensor(jv, 1), *t = opd_jvp_tangent(jv, 0), *u = opd_jvp_tangent(jv, 1), *a = NULL, *b = NULL;
    if (t) { a = opd_mul(t, times(opd_mul(x, opd_sin(y)), 2)); b = opd_neg(opd_mul(t, opd_mul(opd_sin(x), y))); }
    if (u) { a = plus(a, opd_mul(u, opd_mul(opd_mul(x, x), opd_cos(y)))); b = plus(b, opd_mul(u, opd_cos(x))); }
    return !opd_ok() || (a && opd_jvp_return(jv, 0, a)) || (b && opd_jvp_return(jv, 1, b)) ? -1 : 0;
}
static int two_vmap(opd_call *call) {
    int dim;
    opd_value args[2], rets[2];
    for (int i = 0; i < 2; i++) {
        opd_tensor *t = opd_batch_arg(call, i, &dim);
        args[i] = opd_value_tensor(opd_batch_front(t, dim));
    }
    if (!opd_ok() || opd_call_all(opd_call_operator(call), rets, args, 2)) { return -1; }
    return opd_batch_return(call, rets[0].u.t, 0) || opd_batch_return(call, rets[1].u.t, 0) ? -1 : 0;
}
/* user: the operator's name, NULL: by operators of the library.  Of both results, or of one; one argument a constant. */
static opd_tensor *two_of(const char *name, opd_tensor *x, opd_tensor *y, int which) {
    opd_value args[2], r[2];
    if (!opd_ok()) { return NULL; }
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(y);
    if (!name) {
        r[0] = opd_value_tensor(opd_mul(opd_mul(x, x), opd_sin(y)));
        r[1] = opd_value_tensor(opd_mul(opd_cos(x), y));
    } else if (opd_call_all(opd_find(name), r, args, 2)) { return NULL; }
    return which < 2 ? r[which].u.t : opd_mul(r[0].u.t, opd_add(r[0].u.t, r[1].u.t));
}
static opd_tensor *two_both(void *user, opd_tensor *x) { return two_of((const char *)user, x, opd_mul(x, opd_cos(x)), 2); }
static opd_tensor *two_one(void *user, opd_tensor *x) { return two_of((const char *)user, x, opd_mul(x, opd_cos(x)), 1); }
static opd_tensor *two_constant(void *user, opd_tensor *x) { return two_of((const char *)user, opd_full_like(x, opd_value_double(0.75)), x, 2); }

//-- one(x) = x x sin x ------------------------------------------------------------------------------------------------

static int one_cpu(opd_call *call) {
    opd_tensor *x = given_tensor(call, 0), *y = like(call, 0, x);
    for (int64_t i = 0; y && opd_data(y) && i < opd_numel(x); i++) { D(y)[i] = D(x)[i] * D(x)[i] * sin(D(x)[i]); }
    return y ? 0 : -1;
}
static opd_tensor *one_plain(opd_tensor *x) { return opd_mul(opd_mul(x, x), opd_sin(x)); }
static opd_tensor *one_slope(opd_tensor *x) { return opd_add(times(opd_mul(x, opd_sin(x)), 2), opd_mul(opd_mul(x, x), opd_cos(x))); }
static int one_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), one_slope(opd_bw_tensor(bw, 0)))); }
static opd_tensor *one_use(void *user, opd_tensor *x) {
    opd_value v = opd_value_tensor(opd_add(x, opd_sin(x))), r[1];
    if (!opd_ok()) { return NULL; }
    if (user) { return opd_call_all(opd_find((const char *)user), r, &v, 1) ? NULL : opd_mul(r[0].u.t, x); }
    return opd_mul(one_plain(v.u.t), x);
}
/* The set-up keeps what it computes, which is a constant for a second derivative: the formula says that it has none. */
static int sine_setup(opd_context *ctx) {
    opd_tensor *t[2] = {opd_context_tensor(ctx, 0), opd_sin(opd_context_tensor(ctx, 0))};
    return opd_ok() ? opd_context_save_for_backward(ctx, t, 2) : -1;
}
static opd_tensor *slope_by_sine(opd_tensor *x, opd_tensor *sine) { return opd_add(times(opd_mul(x, sine), 2), opd_mul(opd_mul(x, x), opd_cos(x))); }
static int sine_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), slope_by_sine(opd_context_saved(ctx, 0), opd_context_saved(ctx, 1))));
}
/* Kernels at Autograd: a formula recorded by hand; a custom function; operators of the library. */
static opd_tensor *below(opd_op *op, opd_tensor *x) {
    opd_key_guard guard = opd_keys_exclude(OPD_KEYS_AUTOGRAD);
    opd_value v = opd_value_tensor(x);
    opd_tensor *y = opd_call_op(op, &v, 1);
    opd_keys_restore(guard);
    return y;
}
static int by_hand(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = below(opd_call_operator(call), x);
    return !y || opd_autograd_record("ByHand", one_backward, &x, 1, &x, 1, NULL, 0, &y, 1) ? -1 : opd_return_tensor(call, y);
}
static int function_forward(opd_context *ctx) { return opd_context_return(ctx, below(opd_find("own::one_by_function"), opd_context_tensor(ctx, 0))); }
static int function_setup(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return opd_context_save_for_backward(ctx, &x, 1) || opd_context_save_for_forward(ctx, &x, 1) ? -1 : 0;
}
static int function_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), one_slope(opd_context_saved(opd_bw_context(bw), 0))));
}
static int function_jvp(opd_jvp_call *jv) {
    return opd_jvp_return(jv, 0, opd_mul(opd_jvp_tangent(jv, 0), one_slope(opd_context_saved(opd_jvp_context(jv), 0))));
}
static int by_function(opd_call *call) {
    const opd_autograd_function f = {.name = "one", .forward = function_forward, .setup_context = function_setup,
                                     .backward = function_backward, .jvp = function_jvp};
    opd_value v = opd_arg_value(call, 0);
    return opd_return_tensor(call, opd_autograd_call(&f, &v, 1));
}
static int by_operators(opd_call *call) { return opd_return_tensor(call, one_plain(opd_arg_tensor(call, 0))); }

//-- parts(x) = [x x, sin x]; a number beside a tensor; a written argument; a list of arguments ------------------------

static int parts_cpu(opd_call *call) {
    opd_tensor *x = given_tensor(call, 0), *p[2];
    if (!x || !(p[0] = opd_empty_like(x)) || !(p[1] = opd_empty_like(x))) { return -1; }
    for (int64_t i = 0; opd_data(x) && i < opd_numel(x); i++) { D(p[0])[i] = D(x)[i] * D(x)[i]; D(p[1])[i] = sin(D(x)[i]); }
    return opd_return_tensors(call, p, 2);
}
static int parts_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0), *g = opd_bw_grad(bw, 0), *h = opd_bw_grad(bw, 1);
    opd_tensor *d = plus(g ? times(opd_mul(g, x), 2) : NULL, h ? opd_mul(h, opd_cos(x)) : NULL);
    return d ? opd_bw_return(bw, 0, d) : 0;
}
static opd_tensor *parts_use(void *user, opd_tensor *x) {
    opd_tensor *rows = opd_unsqueeze(x, 0);
    opd_value v, r[1];
    if (!rows || !(rows = opd_cat(OPD_TENSORS(rows, rows), 0))) { return NULL; }
    v = opd_value_tensor(rows);
    if (!user) { return opd_mul(opd_mul(opd_mul(rows, rows), opd_sin(rows)), x); }
    return opd_call_all(opd_find((const char *)user), r, &v, 1) ? NULL : opd_mul(opd_mul(r[0].u.tensors[0], r[0].u.tensors[1]), x);
}
static int number_cpu(opd_call *call) {
    opd_tensor *x = given_tensor(call, 0), *y = x ? one_plain(x) : NULL;
    return opd_return_tensor(call, y) || opd_return_double(call, D(x) ? D(x)[0] : 0) ? -1 : 0;
}
static opd_tensor *number_use(void *user, opd_tensor *x) {
    opd_tensor *rows = opd_unsqueeze(x, 0);
    opd_value v = opd_value_tensor(rows), r[2];
    if (!user || !rows) { return one_plain(rows); }
    return opd_call_all(opd_find((const char *)user), r, &v, 1) ? NULL : opd_alias(r[0].u.t);
}
static int write_cpu(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = given_tensor(call, 1), *new_x = opd_clone(given_tensor(call, 0));
    if (!opd_ok()) { return -1; }
    for (int64_t i = 0; opd_data(new_x) && i < opd_numel(x); i++) { D(new_x)[i] *= D(new_x)[i] * D(y)[i]; }
    return opd_copy_(x, new_x) ? opd_return_tensor(call, x) : -1;
}
static int write_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1), *g = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, times(opd_mul(g, opd_mul(x, y)), 2))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_mul(g, opd_mul(x, x))) : 0;
}
static opd_tensor *write_use(void *user, opd_tensor *x) {
    opd_tensor *y = opd_cos(x), *v = opd_slice(y, -1, OPD_V(0), OPD_V(2), 1), *w = opd_slice(opd_sin(x), -1, OPD_V(1), OPD_V(3), 1);
    opd_value args[2], r[1];
    if (!opd_ok()) { return NULL; }
    args[0] = opd_value_tensor(v);
    args[1] = opd_value_tensor(w);
    if (user) { return opd_call_all(opd_find((const char *)user), r, args, 2) ? NULL : opd_mul(y, x); }
    return opd_mul(opd_cat(OPD_TENSORS(opd_mul(opd_mul(v, v), w), opd_slice(y, -1, OPD_V(2), OPD_V(3), 1)), -1), x);
}
static int product_cpu(opd_call *call) {
    const opd_tensors l = opd_arg_tensors(call, 0);
    opd_tensor *y = like(call, 0, l.data[0]);
    for (int64_t i = 0; y && opd_data(y) && i < opd_numel(y); i++) { D(y)[i] = 1; }
    for (int64_t k = 0; y && opd_data(y) && k < l.n; k++) {
        opd_tensor *x = opd_contiguous(l.data[k]);
        for (int64_t i = 0; x && i < opd_numel(y); i++) { D(y)[i] *= D(x)[i]; }
    }
    return opd_ok() ? 0 : -1;
}
static int product_backward(opd_backward_call *bw) {
    const opd_tensors l = opd_bw_tensors(bw, 0);
    for (int k = 0; k < (int)l.n; k++) {
        opd_tensor *d = opd_bw_grad(bw, 0);
        for (int j = 0; j < (int)l.n; j++) { if (j != k) { d = opd_mul(d, l.data[j]); } }
        if (opd_bw_needs_at(bw, 0, k) && opd_bw_return_at(bw, 0, k, d)) { return -1; }
    }
    return 0;
}
static opd_tensor *product_use(void *user, opd_tensor *x) {
    opd_tensor *l[4] = {x, opd_full_like(x, opd_value_double(1.25)), opd_sin(x), x};
    opd_value v = opd_value_tensors(l, 4), r[1];
    if (!opd_ok()) { return NULL; }
    if (user) { return opd_call_all(opd_find((const char *)user), r, &v, 1) ? NULL : r[0].u.t; }
    return opd_mul(opd_mul(opd_mul(l[0], l[1]), l[2]), l[3]);
}

//-- the operators -----------------------------------------------------------------------------------------------------

#define NO_FORMULA "is not implemented"
#define NO_FORWARD "forward AD"
#define TWICE "differentiate twice"
#define UNSEEN "cannot become part of the graph that is being recorded"
#define INSIDE "reads a tensor that was made inside of an operator"
#define NO_LOOP "We could not generate a fallback"
#define TWO "(Tensor x, Tensor y) -> (Tensor, Tensor)"
#define ONE "(Tensor x) -> Tensor"
typedef struct own_op { opd_op_desc d; stack_fn use[3]; const char *errors[4]; bool first_order; } own_op;
static const own_op own[] = {
    {{.schema = "two" TWO, .cpu = two_cpu, .backward = two_backward, .save = "x, y"}, {two_both, two_one, two_constant}, {0}, false},
    {{.schema = "two_jvp" TWO, .cpu = two_cpu, .backward = two_backward, .save = "x, y", .jvp = two_jvp}, {two_both, two_one, two_constant}, {0}, false},
    {{.schema = "two_family" TWO, .cpu = two_cpu, .backward = two_backward, .save = "x, y", .vmap = OPD_BATCH_POINTWISE}, {two_both}, {0}, false},
    {{.schema = "two_rule" TWO, .cpu = two_cpu, .backward = two_backward, .save = "x, y", .vmap = two_vmap}, {two_both, two_constant}, {0}, false},
    {{.schema = "two_set_up" TWO, .cpu = two_cpu, .backward = two_backward_set_up, .setup_context = two_setup}, {two_both, two_one}, {0}, false},
    {{.schema = "two_set_up_jvp" TWO, .cpu = two_cpu, .backward = two_backward_set_up, .setup_context = two_setup, .jvp = two_jvp, .vmap = two_vmap},
     {two_both}, {0}, false},
    {{.schema = "two_forward" TWO, .cpu = two_cpu, .jvp = two_jvp, .vmap = two_vmap}, {two_both}, {NO_FORMULA}, false},
    {{.schema = "two_bare" TWO, .cpu = two_cpu}, {two_both}, {NO_FORMULA, NO_FORWARD}, false},
    {{.schema = "two_once" TWO, .cpu = two_cpu, .backward = two_backward, .save = "x, y", .once_differentiable = 1}, {two_both}, {TWICE}, false},
    {{.schema = "two_once_jvp" TWO, .cpu = two_cpu, .backward = two_backward, .save = "x, y", .once_differentiable = 1, .jvp = two_jvp, .vmap = two_vmap},
     {two_both}, {TWICE}, false},
    {{.schema = "two_late" TWO, .cpu = two_cpu}, {two_both, two_one, two_constant}, {0}, false},      /* see start */
    {{.schema = "two_late_jvp" TWO, .cpu = two_cpu}, {two_both}, {0}, false},
    {{.schema = "one_fold" ONE, .cpu = one_cpu, .backward = one_backward, .save = "x", .vmap = OPD_BATCH_FOLD}, {one_use}, {0}, false},
    {{.schema = "one_shift" ONE, .cpu = one_cpu, .backward = one_backward, .save = "x", .vmap = OPD_BATCH_SHIFT_DIM}, {one_use}, {0}, false},
    {{.schema = "one_sine" ONE, .cpu = one_cpu, .backward = sine_backward, .setup_context = sine_setup}, {one_use}, {INSIDE}, true},
    {{.schema = "one_by_hand" ONE, .cpu = one_cpu, .autograd = by_hand}, {one_use}, {UNSEEN, INSIDE}, false},
    {{.schema = "one_by_function" ONE, .cpu = one_cpu, .autograd = by_function}, {one_use}, {UNSEEN, INSIDE, "requires grad as a constant"}, false},
    {{.schema = "one_by_operators" ONE, .cpu = one_cpu, .autograd = by_operators}, {one_use}, {UNSEEN, INSIDE, "requires grad as a constant"}, false},
    {{.schema = "parts(Tensor x) -> Tensor[]", .cpu = parts_cpu, .backward = parts_backward, .save = "x"}, {parts_use}, {0}, false},
    {{.schema = "parts_family(Tensor x) -> Tensor[]", .cpu = parts_cpu, .backward = parts_backward, .save = "x", .vmap = OPD_BATCH_POINTWISE},
     {parts_use}, {0}, false},
    {{.schema = "parts_fold(Tensor x) -> Tensor[]", .cpu = parts_cpu, .backward = parts_backward, .save = "x", .vmap = OPD_BATCH_FOLD},
     {parts_use}, {0}, false},
    {{.schema = "parts_shift(Tensor x) -> Tensor[]", .cpu = parts_cpu, .backward = parts_backward, .save = "x", .vmap = OPD_BATCH_SHIFT_DIM},
     {parts_use}, {0}, false},
    {{.schema = "number_family(Tensor x) -> (Tensor, float)", .cpu = number_cpu, .backward = one_backward, .save = "x", .vmap = OPD_BATCH_POINTWISE},
     {number_use}, {NO_LOOP, "of a traced tensor"}, false},
    {{.schema = "number_fold(Tensor x) -> (Tensor, float)", .cpu = number_cpu, .backward = one_backward, .save = "x", .vmap = OPD_BATCH_FOLD},
     {number_use}, {NO_LOOP, "of a traced tensor"}, false},
    {{.schema = "number_shift(Tensor x) -> (Tensor, float)", .cpu = number_cpu, .backward = one_backward, .save = "x", .vmap = OPD_BATCH_SHIFT_DIM},
     {number_use}, {NO_LOOP, "of a traced tensor"}, false},
    {{.schema = "write_(Tensor(a!) self, Tensor by) -> Tensor(a!)", .cpu = write_cpu, .backward = write_backward, .save = "self, by"}, {write_use}, {0}, false},
    {{.schema = "write_family_(Tensor(a!) self, Tensor by) -> Tensor(a!)", .cpu = write_cpu, .backward = write_backward, .save = "self, by",
      .vmap = OPD_BATCH_POINTWISE}, {write_use}, {0}, false},
    {{.schema = "product(Tensor[] xs) -> Tensor", .cpu = product_cpu, .backward = product_backward, .save = "xs"}, {product_use}, {0}, false},
    {{.schema = "product_family(Tensor[] xs) -> Tensor", .cpu = product_cpu, .backward = product_backward, .save = "xs", .vmap = OPD_BATCH_POINTWISE},
     {product_use}, {0}, false},
};
#define OWN ((int)(sizeof own / sizeof *own))

static opd_library *start(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "own", NULL, __FILE__, __LINE__);
    for (int i = 0; i < OWN; i++) { CHECK_INT(opd_define(lib, &own[i].d), 0); }
    CHECK_INT(opd_autograd_register(lib, "two_late", two_backward_set_up, two_setup), 0);
    CHECK_INT(opd_autograd_register(lib, "two_late_jvp", two_backward_set_up, two_setup), 0);
    CHECK_INT(opd_jvp_register(lib, "two_late_jvp", two_jvp), 0);
    CHECK_INT(opd_vmap_register(lib, "two_late_jvp", two_vmap), 0);
    return lib;
}

//-- the stacks --------------------------------------------------------------------------------------------------------

/* Stack number k of depth d.  A level of forward mode may also be inside of vmaps and a recording, a backward inside of the
   latter: they begin anew there. */
static bool stack_make(stack_of *s, int d, int k, int most) {
    memset(s, 0, sizeof *s);
    s->n = d;
    for (int i = 0; i < d; i++, k /= KINDS) { s->kinds[i] = k % KINDS; }
    for (int i = 1; i < d; i++) {
        if (s->kinds[i] == TRACE || s->kinds[i] == VMAP_AROUND) { return false; }
        for (int j = 0; j < i && s->kinds[i] >= NESTING; j++) {
            const int o = s->kinds[j];
            if (o != TRACE && (s->kinds[i] == TAPE || o < VMAP || o > VMAP_AROUND)) { return false; }
        }
    }
    return k == 0 && stack_order(s) <= most;
}
static void own_check(const own_op *op, const char *name, stack_of *s, stack_fn use) {
    const double start_at[3] = {0.4375, -0.71875, 1.0625};
    stack_of plain = *s;
    char text[200];
    OPD_SCOPE {
        opd_tensor *x = stack_input(s, opd_tensor_from(start_at, OPD_INTS(3), OPD_FLOAT64)), *want, *got;
        s->fn = plain.fn = use;
        s->user = (void *)(uintptr_t)name;
        if (!(want = stack_plain(&plain, x))) { CHECK(strcmp(opd_error_message(), STACK_TOO_LARGE) == 0); opd_error_clear(); }
        else {
            bool fine;
            stack_poison();
            got = stack_run(s, x);
            fine = got && stack_apart(got, want) < 1e-7;
            for (int i = 0; !got && i < 4 && op->errors[i]; i++) { fine = fine || strstr(opd_error_message(), op->errors[i]); }
            if (!fine) { printf("%s, %s: %s\n", name, stack_name(s, text, sizeof text), got ? "another value" : opd_error_message()); }
            CHECK(fine);
            opd_error_clear();
        }
    }
}
static void walk(int depth) {
    const char *const wanted = getenv("OPD_STACKS");
    opd_library *lib = start();
    int stacks = 1;
    for (int i = 0; i < depth; i++) { stacks *= KINDS; }
    for (int f = 0; f < OWN; f++) {
        char name[64];
        (void)snprintf(name, sizeof name, "own::%.*s", (int)strcspn(own[f].d.schema, "("), own[f].d.schema);
        for (int u = 0; u < 3 && own[f].use[u]; u++) {
            for (int k = 0; k < stacks; k++) {
                const int part = depth == 3 ? 79 : depth == 2 && k % KINDS != TRACE ? 3 : 1;
                const bool inner = depth == 3 && k / KINDS % KINDS == VMAP && k / KINDS / KINDS == GRAD && k % KINDS == GRAD;
                if ((k + 5 * f + u) % part && !inner && !(wanted && strcmp(wanted, "all") == 0)) { continue; }
                stack_of s;
                if (stack_make(&s, depth, k, own[f].first_order ? 1 : 3)) { own_check(&own[f], name, &s, own[f].use[u]); }
            }
        }
    }
    opd_library_close(lib);
}
TEST_KEEPS(one_transform) { (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT); walk(1); }
TEST_KEEPS(two_transforms) { (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT); walk(2); }
TEST_KEEPS(three_transforms) { (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT); walk(3); }
CHECK_MAIN()
