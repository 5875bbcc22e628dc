/* Forward mode.  The tangents of every operator, with the sample arguments of its descriptor, equal finite
   differences of its results and agree with its gradients.  Then dual tensors, levels, views, in-place operators,
   derivatives of programs, forward mode together with autograd, memory, threads.  THREADED */
#include "../../opdispatch.h"
#include "../cases.h"

#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
#include <pthread.h>
#endif

//-- every operator ----------------------------------------------------------------------------------------------------


typedef struct subject { const opd_op *op; const opd_op_desc *card; const char *text; int index; op_case *c; } subject;

static bool again(const subject *s, int layout) {
    const char *text = s->text;
    s->c->op = s->op;
    s->c->dtype = OPD_FLOAT64;
    s->c->layout = layout;
    s->c->smooth = true;
    s->c->meta = false;
    (void)snprintf(what, sizeof what, "    case %d \"%.*s\"%s", s->index, (int)strcspn(s->text + (*s->text == ';'), ";"),
                   s->text + (*s->text == ';'), layout == CASE_TRANSPOSED ? " transposed" : layout == CASE_SLICED ? " sliced" : "");
    return case_read_next(s->c, &text);
}

/* Finds the arguments that are differentiated.  Returns their number. */
static int inputs_of(op_case *c, opd_tensor **in) {
    int i, k, n = 0;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        if (constant_argument(c->op, opd_schema_arg_name(opd_op_schema(c->op), i))) { continue; }
        if (v->tag == OPD_TAG_TENSOR && opd_dtype(v->u.t) == OPD_FLOAT64 && n < MOST_INPUTS) { in[n++] = v->u.t; }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n && n < MOST_INPUTS; k++) {
            if (v->u.tensors[k] && opd_dtype(v->u.tensors[k]) == OPD_FLOAT64) { in[n++] = v->u.tensors[k]; }
        }
    }
    return n;
}

/* Calls the operator with `instead` instead of the tensors `in`; a written argument is a copy.  Returns the number of
   result tensors, or -1. */
static int run_with(const op_case *c, const opd_op *op, opd_tensor **in, opd_tensor **instead, int n, opd_tensor **out) {
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    opd_tensor *lists[OPD_MAX_ARGS][CASE_LIST];
    int i, j;
    int32_t k;
    memcpy(args, c->args, sizeof args);
    for (i = 0; i < c->nargs; i++) {
        for (j = 0; j < n && args[i].tag == OPD_TAG_TENSOR; j++) {
            if (args[i].u.t == in[j]) { args[i].u.t = instead[j]; break; }
        }
        if (args[i].tag != OPD_TAG_TENSORS) { continue; }
        for (k = 0; k < args[i].n; k++) {
            lists[i][k] = args[i].u.tensors[k];
            for (j = 0; j < n && lists[i][k]; j++) {
                if (lists[i][k] == in[j]) { lists[i][k] = instead[j]; break; }
            }
        }
        args[i] = opd_value_tensors(lists[i], args[i].n);
    }
    if (args[0].tag == OPD_TAG_TENSOR && opd_schema_is_mutable(opd_op_schema(op))) { args[0] = opd_value_tensor(opd_clone(args[0].u.t)); }
    if (opd_call_all((opd_op *)(uintptr_t)op, rets, args, c->nargs)) { return -1; }
    return results_of(op, rets, out);
}
static opd_tensor *noise(const opd_tensor *like, int seed) {
    opd_tensor *t = opd_tensor_new(opd_ints_of(opd_sizes(like), opd_ndim(like)), OPD_FLOAT64);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { case_put(t, i, case_random(seed, i) - 0.4); }
    return t;
}
static double dot(const opd_tensor *a, const opd_tensor *b) {
    double sum = 0;
    int64_t i;
    for (i = 0; i < opd_numel(a); i++) { sum += case_get(a, i) * case_get(b, i); }
    return sum;
}

static double reverse_sum(const op_case *c, const opd_op *op, opd_tensor **in, opd_tensor **t, int n, unsigned *counted) {
    opd_tensor *r[MOST_RESULTS], *g[MOST_INPUTS], *f = NULL;
    opd_backward_options o;
    double sum = 0;
    int i, m;
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    *counted = 0;
    for (i = 0; i < n; i++) { if (!opd_tensor_set_requires_grad(in[i], true)) { return 0; } }
    m = run_with(c, op, NULL, NULL, 0, r);
    if (m > 1 && first_result_only(c->op)) { m = 1; }
    for (i = 0; i < m; i++) {
        if (!opd_tensor_requires_grad(r[i]) || opd_dtype(r[i]) != OPD_FLOAT64) { continue; }
        *counted |= 1u << i;
        f = f ? opd_add(f, opd_sum(opd_mul(r[i], noise(r[i], 700 + i)))) : opd_sum(opd_mul(r[i], noise(r[i], 700 + i)));
    }
    if (f && opd_autograd_grad(&f, 1, in, n, &o, g) == 0) {
        for (i = 0; i < n; i++) { if (g[i]) { sum += dot(g[i], t[i]); } }
    }
    for (i = 0; i < n; i++) { (void)opd_tensor_set_requires_grad(in[i], false); }
    return sum;
}
static void move(opd_tensor **in, opd_tensor **t, int n, double by) {
    int64_t k;
    int i;
    for (i = 0; i < n; i++) { for (k = 0; k < opd_numel(in[i]); k++) { case_put(in[i], k, case_get(in[i], k) + by * case_get(t[i], k)); } }
}

/* Returns whether ATen defines a derivative that differs from the derivative of the values. */
static bool by_definition(const subject *s) {
    static const char *const list[] = {"bernoulli", "as_strided_scatter", "detach", NULL};
    static const char *const by_strides[] = {"_reshape_alias", "_reshape_alias_copy", NULL};
    int i;
    if (named(s->op, list) || is_random(s->op) || (s->c->layout != CASE_CONTIGUOUS && named(s->op, by_strides))) { return true; }
    for (i = 0; i < opd_schema_nargs(opd_op_schema(s->op)); i++) {
        const opd_value v = s->c->args[i];
        if (strcmp(opd_schema_arg_name(opd_op_schema(s->op), i), "padding_idx") == 0 && v.tag == OPD_TAG_INT && v.u.i >= 0) { return true; }
    }
    return false;
}
static void test_tangents(const subject *s, const opd_op *op, int layout) {
    opd_tensor *in[MOST_INPUTS], *t[MOST_INPUTS], *dual[MOST_INPUTS], *r[MOST_RESULTS], *up[MOST_RESULTS], *down[MOST_RESULTS];
    char text[300];
    double reverse, forward = 0, size = 0;
    unsigned counted;
    int i, n, m, level;
    int64_t k;
    const double eps = 1e-5;
    if (!again(s, layout) || by_definition(s) || (n = inputs_of(s->c, in)) == 0) { return; }
    for (i = 0; i < n; i++) { t[i] = noise(in[i], 40 + i); }
    reverse = reverse_sum(s->c, op, in, t, n, &counted);
    if (!opd_ok() && (strstr(opd_error_message(), "view size is not compatible") || strstr(opd_error_message(), "last dimension with stride 1"))) {
        opd_error_clear();
        return;
    }
    if (!went_well(0) || counted == 0) { return; }
    move(in, t, n, eps);
    m = run_with(s->c, op, NULL, NULL, 0, up);
    for (i = 0; i < m; i++) { up[i] = opd_clone(up[i]); }
    move(in, t, n, -2 * eps);
    (void)run_with(s->c, op, NULL, NULL, 0, down);
    for (i = 0; i < m; i++) { down[i] = opd_clone(down[i]); }
    move(in, t, n, eps);
    if (!went_well(m)) { return; }
    level = opd_dual_level_begin();
    for (i = 0; i < n; i++) { dual[i] = opd_dual_new(in[i], t[i]); }
    m = opd_ok() ? run_with(s->c, op, in, dual, n, r) : -1;
    if (!went_well(m)) { (void)opd_dual_level_end(level); return; }
    for (i = 0; i < m; i++) {
        opd_tensor *got = NULL, *primal = opd_dual_unpack(r[i], &got);
        if (!went_well(primal ? 0 : -1)) { break; }
        if (opd_dtype(r[i]) != OPD_FLOAT64) { (void)say(!got, "a result without derivative has a tangent"); }
        if (!(counted >> i & 1) || opd_numel(r[i]) == 0) { continue; }
        if (!say(got != NULL, "no tangent") || !say(opd_numel(got) == opd_numel(r[i]), "another size")) { continue; }
        (void)say(!opd_tensor_requires_grad(got), "a tangent that requires grad");
        forward += dot(got, noise(r[i], 700 + i));
        for (k = 0; k < opd_numel(got); k++) {
            double have = case_get(got, k), want = (case_get(up[i], k) - case_get(down[i], k)) / (2 * eps);
            size += fabs(have);
            if (fabs(have - want) <= 5e-5 * (1 + fabs(want)) || (isnan(have) && isnan(want))) { continue; }
            (void)snprintf(text, sizeof text, "tangent %d element %d is %.9g, differences say %.9g", i, (int)k, have, want);
            (void)say(false, text);
            break;
        }
    }
    CHECK_INT(opd_dual_level_end(level), 0);
    (void)snprintf(text, sizeof text, "<u, J t> is %.12g, <J^T u, t> is %.12g", forward, reverse);
    (void)say(fabs(forward - reverse) <= 1e-9 * (1 + size) || (isnan(forward) && isnan(reverse)), text);
}

/* float32's tangents are roughly those of float64; zero-size ones are any answer but a crash; fakes have the sizes. */
static int tangents_of(const subject *s, opd_scalar_type dtype, int layout, bool meta, opd_tensor **out, opd_tensor **r) {
    opd_tensor *in[MOST_INPUTS], *dual[MOST_INPUTS];
    const char *text = s->text;
    int i, n, m = -1;
    if (!again(s, layout)) { return -1; }
    n = inputs_of(s->c, in);
    if (dtype != OPD_FLOAT64 || meta) {           /* the same inputs of another dtype */
        opd_tensor *was[MOST_INPUTS];
        memcpy(was, in, sizeof was);
        s->c->dtype = dtype;
        s->c->meta = meta;
        if (!case_read_next(s->c, &text)) { return -1; }
        for (i = n = 0; i < s->c->nargs; i++) {
            opd_value *v = &s->c->args[i];
            int32_t k;
            if (constant_argument(s->op, opd_schema_arg_name(opd_op_schema(s->op), i))) { continue; }
            if (v->tag == OPD_TAG_TENSOR && opd_dtype(v->u.t) == dtype && n < MOST_INPUTS) { in[n++] = v->u.t; }
            for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n && n < MOST_INPUTS; k++) {
                if (v->u.tensors[k] && opd_dtype(v->u.tensors[k]) == dtype) { in[n++] = v->u.tensors[k]; }
            }
        }
    }
    (void)opd_dual_level_begin();
    for (i = 0; i < n; i++) {
        opd_tensor *t = meta ? opd_empty_like(in[i]) : opd_to_dtype(noise(in[i], 40 + i), dtype);
        dual[i] = opd_dual_new(in[i], t);
    }
    if (opd_ok()) { m = run_with(s->c, s->op, in, dual, n, r); }
    for (i = 0; i < m; i++) { if (!opd_dual_unpack(r[i], &out[i])) { m = -1; } }
    (void)opd_dual_level_end(0);
    return m;
}
static void test_other_dtypes(const subject *s) {
    opd_tensor *want[MOST_RESULTS], *got[MOST_RESULTS], *r[MOST_RESULTS];
    int i, n, m;
    int64_t k;
    if (!again(s, CASE_CONTIGUOUS) || by_definition(s)) { return; }
    n = tangents_of(s, OPD_FLOAT64, CASE_CONTIGUOUS, false, want, r);
    if (!went_well(n)) { return; }
    m = tangents_of(s, OPD_FLOAT32, CASE_CONTIGUOUS, false, got, r);
    (void)snprintf(what + strlen(what), sizeof what - strlen(what), " float32");
    if (!went_well(m) || !say(m == n, "another number of results")) { return; }
    for (i = 0; i < n; i++) {
        if (!say(!want[i] == !got[i], "a tangent in one dtype only") || !got[i]) { continue; }
        (void)say(opd_dtype(got[i]) == opd_dtype(r[i]), "a tangent of another dtype");
        for (k = 0; k < opd_numel(got[i]); k++) {
            const double x = case_get(got[i], k), y = case_get(want[i], k);
            if (fabs(x - y) > 2e-3 * (1 + fabs(y))) { (void)say(false, "another tangent"); break; }
        }
    }
    m = tangents_of(s, OPD_FLOAT32, CASE_CONTIGUOUS, true, got, r);
    if (opd_ok() && m == n) {
        for (i = 0; i < n; i++) {
            if (got[i]) { (void)say(opd_tensor_device(got[i]).type == OPD_META && opd_numel(got[i]) == opd_numel(r[i]), "a fake's tangent"); }
        }
    }
    opd_error_clear();
    (void)tangents_of(s, OPD_FLOAT64, CASE_ZERO, false, got, r);
    opd_error_clear();
}

/* The in-place form gives the same tangent as the functional form, in the memory of self's tangent. */
static void test_inplace_tangent(const subject *s) {
    const opd_op *form = form_of(s->op, s->card->inplace);
    opd_tensor *in[MOST_INPUTS], *dual[MOST_INPUTS], *r[MOST_RESULTS], *w[MOST_RESULTS], *want = NULL, *had, *got;
    int i, n, level;
    int64_t k;
    if (!again(s, CASE_CONTIGUOUS) || by_definition(s) || (n = inputs_of(s->c, in)) == 0 || !form) { return; }
    if (opd_schema_nargs(opd_op_schema(form)) != s->c->nargs) { return; }
    (void)snprintf(what + strlen(what), sizeof what - strlen(what), " in place");
    level = opd_dual_level_begin();
    for (i = 0; i < n; i++) { dual[i] = opd_dual_new(in[i], noise(in[i], 40 + i)); }
    if (went_well(run_with(s->c, s->op, in, dual, n, r)) && opd_dtype(r[0]) == OPD_FLOAT64 && r[0] &&
        opd_numel(r[0]) == opd_numel(in[0]) && in[0] == s->c->args[0].u.t) {
        (void)opd_dual_unpack(r[0], &want);
        (void)opd_dual_unpack(dual[0], &had);
        if (went_well(run_with(s->c, form, in, dual, n, w))) {
            (void)opd_dual_unpack(w[0], &got);
            if (want && say(got != NULL, "no tangent")) {
                for (k = 0; k < opd_numel(want) && fabs(case_get(got, k) - case_get(want, k)) <= 1e-12; k++) { }
                (void)say(k == opd_numel(want), "another tangent than the functional form's");
            }
        }
    }
    opd_error_clear();
    CHECK_INT(opd_dual_level_end(level), 0);
}

static int forward_once(void *arg) {
    const subject *s = (const subject *)arg;
    opd_tensor *in[MOST_INPUTS], *dual[MOST_INPUTS], *r[MOST_RESULTS];
    int i, n, m, level;
    if (!again(s, CASE_CONTIGUOUS) || !opd_ok()) { return -1; }
    n = inputs_of(s->c, in);
    if ((level = opd_dual_level_begin()) < 0) { return -1; }
    for (i = 0; i < n; i++) { dual[i] = opd_dual_new(in[i], noise(in[i], 40 + i)); }
    m = opd_ok() ? run_with(s->c, s->op, in, dual, n, r) : -1;
    (void)opd_dual_level_end(level);
    return m;
}
static void test_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    subject s;
    s.op = op;
    s.card = opd_op_card(op);
    s.index = 0;
    s.c = &c;
    CHECK_OR_RETURN(s.card && cases_of(s.op));
    if (s.card->backward == OPD_NOT_DIFFERENTIABLE) { return; }
    s.text = cases_of(s.op);
    do {
        const char *rest = s.text;
        int layout;
        bool more;
        OPD_SCOPE {
            c.op = op;
            c.dtype = OPD_FLOAT64;
            c.layout = CASE_CONTIGUOUS;
            c.smooth = true;
            c.meta = false;
            more = case_read_next(&c, &rest);
        }
        if (!more) { break; }
        for (layout = CASE_CONTIGUOUS; layout <= CASE_SLICED; layout++) { OPD_SCOPE { test_tangents(&s, op, layout); } }
        if (s.card->inplace) { OPD_SCOPE { test_inplace_tangent(&s); } }
        OPD_SCOPE { test_other_dtypes(&s); }
        if (s.index == 0) { (void)check_allocations(forward_once, &s, what, 100, false); }
        s.text = rest;
        s.index++;
    } while (*s.text);
}
static void add_operators(void) {
    add_builtin_operators(test_operator, NULL);
}


//-- dual tensors ------------------------------------------------------------------------------------------------------
//
// TestAutogradForwardMode of PyTorch's test_autograd.py, as far as it makes sense in C; what it says of values is checked
// against torch 1.13.

static opd_tensor *vec(double a, double b) { double v[2]; v[0] = a; v[1] = b; return opd_tensor_from(v, OPD_INTS(2), OPD_FLOAT64); }
static opd_tensor *tangent_of(opd_tensor *t) { opd_tensor *g; (void)opd_dual_unpack(t, &g); return g; }
static opd_tensor *mat(int64_t rows, int64_t cols, double a, double b, double c, double d, double e, double f) {
    double v[6];
    v[0] = a; v[1] = b; v[2] = c; v[3] = d; v[4] = e; v[5] = f;
    return opd_tensor_from(v, OPD_INTS(rows, cols), OPD_FLOAT64);
}
static opd_tensor *write_to(const char *name, opd_tensor *x, opd_tensor *y) {
    opd_value v[3];
    v[0] = opd_value_tensor(x);
    if (y) { v[1] = opd_value_tensor(y); }
    v[2] = opd_value_int(1);
    return opd_call_op(opd_find(name), v, !y ? 1 : strstr(name, "add") ? 3 : 2);
}
static opd_tensor *add_to(opd_tensor *x, opd_tensor *y) { return write_to("aten::add_.Tensor", x, y); }
static opd_tensor *mul_to(opd_tensor *x, opd_tensor *y) { return write_to("aten::mul_.Tensor", x, y); }
static bool is_2(const opd_tensor *t, double a, double b) {
    return t && opd_numel(t) == 2 && fabs(case_get(t, 0) - a) < 1e-9 && fabs(case_get(t, 1) - b) < 1e-9;
}
static bool equal(opd_tensor *a, opd_tensor *b) { return a && b && opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))) < 1e-12; }

TEST(levels) {
    opd_tensor *foo = vec(1, 2), *bar = vec(3, 4), *dual, *g = foo;
    int level;
    CHECK(opd_dual_new(foo, bar) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to create a dual Tensor for forward AD but no level exists");
    CHECK(opd_dual_unpack(foo, &g) == foo && !g);
    CHECK_INT(opd_dual_level_end(0), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to exit a forward AD level that was not the last one that was created");
    level = opd_dual_level_begin();
    CHECK_INT(level, 0);
    CHECK_INT(opd_dual_level_begin(), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Nested forward mode AD is not supported at the moment");
    dual = opd_dual_new(foo, bar);
    CHECK(!tangent_of(foo) && tangent_of(dual) == bar);
    CHECK_INT(opd_dual_level_end(1), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "not the last one");
    CHECK(tangent_of(dual) == bar);
    (void)opd_fail(OPD_ERROR_USER, "pending");
    CHECK_INT(opd_dual_level_end(level), 0);           /* also while an error is pending */
    CHECK_ERROR(OPD_ERROR_USER, "pending");
    CHECK(!tangent_of(dual));                     /* test_grad_cleanup */
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(!tangent_of(dual));
    CHECK(tangent_of(opd_dual_new(dual, bar)) == bar);
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

/* Tangents are freed with their tensors, or at the end of the level. */
static void clean_up(bool check) {
    int64_t live, in;
    CHECK_INT(opd_dual_level_begin(), 0);
    in = opd_memory_stats().live;
    OPD_SCOPE {
        opd_tensor *dual = opd_dual_new(vec(1, 2), vec(3, 4));
        CHECK(opd_tanh(opd_mul(dual, dual)) != NULL);
    }
    if (check) { CHECK_INT(opd_memory_stats().live, in); }
    CHECK_INT(opd_dual_level_end(0), 0);
    live = opd_memory_stats().live;
    OPD_SCOPE {                                   /* test_backward_graph_destruction: the tangent's history holds the dual */
        opd_tensor *a = opd_tensor_set_requires_grad(vec(1, 2), true), *db;
        CHECK_INT(opd_dual_level_begin(), 0);
        db = opd_keep(opd_exp(opd_dual_new(vec(3, 4), a)));
        CHECK(opd_tensor_requires_grad(tangent_of(db)));
        opd_release(db);
        CHECK_INT(opd_dual_level_end(0), 0);
    }
    if (check) { CHECK_INT(opd_memory_stats().live, live); }
}
TEST(levels_clean_up) {
    clean_up(false);                              /* what the first use sets up stays */
    clean_up(true);
    CHECK_OK();
}

TEST(duals_that_are_refused) {
    opd_tensor *foo = vec(1, 2), *whole = opd_ones(OPD_INTS(2), OPD_INT64), *dual;
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(!opd_dual_new(foo, opd_ones(OPD_INTS(3), OPD_FLOAT64)));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
                "supported. Tensor is of size [2] while the given forward gradient is of size [3].");
    CHECK(!opd_dual_new(whole, foo));
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected primal to be floating point or complex, but got: int64");
    CHECK(!opd_dual_new(foo, whole));
    CHECK_ERROR(OPD_ERROR_DTYPE, "Expected tangent to be floating point or complex, but got: int64");
    dual = opd_dual_new(foo, vec(3, 4));
    CHECK(!opd_dual_new(dual, foo));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0");
    CHECK(!opd_dual_new(foo, dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Setting a forward grad that itself has a forward gradient at the same level");
    CHECK(!opd_dual_new(NULL, foo));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK(!opd_dual_unpack(NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    CHECK_INT(opd_dual_level_end(0), 0);
}

TEST(packing_and_unpacking) {
    opd_tensor *foo = vec(1, 2), *bar = vec(3, 4), *dual, *p, *t;
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(foo, bar);
    CHECK(opd_tensor_same_storage(dual, foo));
    (void)add_to(foo, vec(1, 1));
    CHECK_INT(opd_tensor_version(foo), opd_tensor_version(dual));
    p = opd_dual_unpack(dual, &t);
    CHECK(opd_tensor_same_storage(p, foo) && t == bar && !tangent_of(p));
    CHECK_INT(opd_tensor_version(foo), opd_tensor_version(p));
    CHECK(opd_dual_unpack(dual, NULL) != NULL);
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

/* Tangents that are used without a copy, and tangents that are copied to the layout of the primal. */
TEST(layouts_of_tangents) {
    opd_tensor *five = opd_ones(OPD_INTS(5), OPD_FLOAT64), *four = opd_ones(OPD_INTS(4), OPD_FLOAT64), *dual, *t, *a, *b;
    const int64_t none[] = {0}, one[] = {1};
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(opd_narrow(five, 0, 0, 4), four);          /* test_metadata_check_checks_storage_numel */
    t = tangent_of(dual);
    CHECK(t && t != four && !opd_tensor_same_storage(t, four) && equal(t, four));
    CHECK_INT(opd_tensor_storage_bytes(t), 40);
    dual = opd_dual_new(opd_ones(OPD_INTS(5), OPD_FLOAT64), t = opd_full(OPD_INTS(5), OPD_V(2.0), OPD_FLOAT64));
    CHECK(tangent_of(dual) == t);
    a = opd_tensor_view(five, none, one, 1, 1);   /* test_metadata_check_ignore_storage_offset_for_zero_numel_tensor */
    b = opd_tensor_view(opd_ones(OPD_INTS(5), OPD_FLOAT64), none, one, 1, 2);
    CHECK(tangent_of(opd_dual_new(a, b)) == b);
    a = opd_ones(OPD_INTS(10, 1), OPD_FLOAT64);   /* test_metadata_check_ignore_size1_strides */
    b = opd_as_strided(opd_ones(OPD_INTS(10, 1), OPD_FLOAT64), OPD_INTS(10, 1), OPD_INTS(1, 5));
    CHECK(tangent_of(opd_dual_new(a, b)) == b);
    a = opd_ones(OPD_INTS(2, 3), OPD_FLOAT64);
    b = opd_t(mat(3, 2, 1, 2, 3, 4, 5, 6));
    t = tangent_of(opd_dual_new(a, b));
    CHECK(t && t != b && equal(t, b) && opd_is_contiguous(t));
    t = tangent_of(opd_dual_new(opd_t(opd_ones(OPD_INTS(3, 2), OPD_FLOAT64)), b));
    CHECK(t == b);
    t = tangent_of(opd_dual_new(a, a));          /* memory of its own */
    CHECK(t && !opd_tensor_same_storage(t, a) && equal(t, a));
    /* elements that share memory may have tangents of their own */
    a = opd_narrow(mat(2, 3, 3, 4, 5, 0, 0, 0), 0, 0, 1);
    dual = opd_dual_new(opd_expand(a, OPD_INTS(2, 3)), t = mat(2, 3, 1, 2, 3, 4, 5, 6));
    CHECK(equal(tangent_of(dual), t) && equal(tangent_of(opd_mul(dual, dual)), mat(2, 3, 6, 16, 30, 24, 40, 60)));
    dual = opd_dual_new(opd_as_strided(mat(2, 3, 1, 2, 3, 4, 5, 6), OPD_INTS(2, 3), OPD_INTS(1, 1)), t);
    CHECK(equal(tangent_of(opd_mul(dual, dual)), mat(2, 3, 2, 8, 18, 16, 30, 48)));
    t = tangent_of(opd_dual_new(opd_ones(OPD_INTS(2), OPD_FLOAT64), opd_ones(OPD_INTS(2), OPD_FLOAT32)));
    CHECK(t && opd_dtype(t) == OPD_FLOAT64);
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

//-- views and writes --------------------------------------------------------------------------------------------------

TEST(views_without_tangents) {                    /* test_view_inplace_non_differentiable_views */
    opd_tensor *foo = vec(1, 2), *bar = vec(1, 1), *dual, *p, *t;
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(foo, bar);
    (void)mul_to(dual, vec(2, 2));
    CHECK(!tangent_of(foo) && is_2(bar, 2, 2) && tangent_of(dual) == bar && is_2(foo, 2, 4) && is_2(dual, 2, 4));
    p = opd_dual_unpack(dual, &t);
    CHECK(!tangent_of(p) && !tangent_of(t));
    (void)mul_to(p, vec(2, 2));
    CHECK(is_2(dual, 4, 8) && is_2(tangent_of(dual), 2, 2));
    (void)mul_to(t, vec(2, 2));
    CHECK(is_2(dual, 4, 8) && is_2(tangent_of(dual), 4, 4));
    CHECK(!tangent_of(opd_detach(dual)) && !tangent_of(opd_mul(opd_detach(dual), foo)));
    t = opd_clone(dual);
    CHECK(tangent_of(t) && opd_detach_(t) == t && !tangent_of(t) && !tangent_of(opd_mul(t, foo)));
    t = opd_clone(dual);                          /* not so when the family is that of most tensors */
    CHECK(tangent_of(t) && !tangent_of(opd_detach(t)) && !tangent_of(opd_view(opd_detach(t), OPD_INTS(2, 1))));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

TEST(views_with_tangents) {                       /* test_view_inplace_differentiable_views */
    opd_tensor *foo = vec(1, 2), *dual, *view, *baz, *again;
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(foo, vec(1, 1));
    view = opd_narrow(dual, 0, 0, 1);
    (void)mul_to(view, opd_full(OPD_INTS(1), OPD_V(2.0), OPD_FLOAT64));
    CHECK(!tangent_of(foo) && is_2(tangent_of(dual), 2, 1) && case_get(tangent_of(view), 0) == 2);
    CHECK(opd_tensor_same_storage(tangent_of(view), tangent_of(dual)));
    baz = vec(5, 6);                              /* tensors that were not dual */
    (void)add_to(baz, dual);
    CHECK(is_2(tangent_of(baz), 2, 1));
    baz = vec(5, 6);
    again = opd_view(baz, OPD_INTS(2, 1));        /* made before there is a tangent: case 5 */
    (void)opd_copy_(opd_select(baz, 0, 0), opd_select(dual, 0, 0));       /* a view written, the base gets zeros elsewhere: case 4 */
    CHECK(is_2(tangent_of(baz), 2, 0));
    CHECK(opd_ndim(tangent_of(again)) == 2 && is_2(tangent_of(again), 2, 0));
    (void)opd_copy_(opd_select(again, 0, 1), opd_select(opd_view(dual, OPD_INTS(2, 1)), 0, 1));
    CHECK(is_2(tangent_of(baz), 2, 1));
    (void)opd_zero_(opd_select(baz, 0, 0));
    CHECK(is_2(tangent_of(baz), 0, 1));
    (void)opd_fill_(baz, OPD_V(3.0));
    CHECK(is_2(tangent_of(baz), 0, 0));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

static opd_tensor *write_copy(opd_tensor *x, opd_tensor *y) { return opd_copy_(x, y); }
TEST(writes_keep_tangents_views) {                /* test_view_inplace_always_creates_a_view */
    opd_tensor *(*const writes[])(opd_tensor *, opd_tensor *) = {add_to, mul_to, write_copy};
    int i;
    for (i = 0; i < 3; i++) {
        opd_tensor *base = opd_full(OPD_INTS(2, 2), OPD_V(3.0), OPD_FLOAT64), *view = opd_transpose(base, 0, 1), *dual, *p, *t, *pc, *tc;
        CHECK_INT(opd_dual_level_begin(), 0);
        dual = opd_dual_new(mat(2, 2, 1, 2, 3, 4, 0, 0),
                             mat(2, 2, 5, 6, 7, 8, 0, 0));
        (void)writes[i](view, dual);
        p = opd_dual_unpack(base, &t);
        CHECK(t && case_get(t, 1) == (i == 1 ? 21 : 7));
        pc = opd_clone(p);
        tc = opd_clone(t);
        (void)mul_to(view, opd_full(OPD_INTS(2, 2), OPD_V(2.0), OPD_FLOAT64));
        p = opd_dual_unpack(base, &t);
        CHECK(equal(opd_add(pc, pc), p) && equal(opd_add(tc, tc), t));
        CHECK_INT(opd_dual_level_end(0), 0);
    }
    CHECK_OK();
}

TEST(writes_that_read_themselves) {
    opd_tensor *x;
    CHECK_INT(opd_dual_level_begin(), 0);
    x = opd_dual_new(vec(3, 4), vec(1, 10));
    (void)mul_to(x, x);
    CHECK(is_2(x, 9, 16) && is_2(tangent_of(x), 6, 80));
    (void)mul_to(x, opd_view(x, OPD_INTS(2)));
    CHECK(is_2(tangent_of(x), 2 * 9 * 6, 2 * 16 * 80));
    x = opd_dual_new(vec(3, 4), vec(1, 10));
    (void)write_to("aten::exp_", x, NULL);
    CHECK(is_2(tangent_of(x), exp(3), 10 * exp(4)));
    x = opd_dual_new(opd_ones(OPD_INTS(1, 2), OPD_FLOAT64), opd_view(vec(1, 10), OPD_INTS(1, 2)));
    (void)opd_t_(x);
    CHECK(opd_sizes(tangent_of(x))[0] == 2 && opd_ndim(tangent_of(x)) == 2 && is_2(tangent_of(x), 1, 10));
    CHECK(!opd_resize_(x, OPD_INTS(3, 3)));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "cannot resize variables that has a forward grad");
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK(opd_resize_(x, OPD_INTS(3, 3)) != NULL);
    CHECK_OK();
}

static opd_tensor *leave_the_block(int how) {
    int rounds = 0;
    OPD_DUAL_LEVEL {
        opd_tensor *dual = opd_dual_new(vec(1, 2), vec(3, 4));
        rounds++;
        CHECK(tangent_of(dual) != NULL);
        if (how == 1) { return dual; }
        if (how == 2) { goto out; }
        OPD_DUAL_LEVEL { CHECK(!"entered twice"); }
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Nested forward mode AD");
    }
out:
    CHECK_INT(rounds, 1);
    return NULL;
}
TEST(level_blocks) {
    int how;
    for (how = 0; how < 3; how++) {
#if defined(__TINYC__)
        if (how > 0) { continue; }                /* jumps out of the block leave the level open */
#endif
        (void)leave_the_block(how);
        CHECK_INT(opd_dual_level_begin(), 0);           /* closed */
        CHECK_INT(opd_dual_level_end(0), 0);
    }
    CHECK_OK();
}

TEST(out_forms_are_refused) {                     /* test_out_variant */
    opd_tensor *foo, *bar = vec(1, 2), *sum;
    opd_value v[4];
    CHECK_INT(opd_dual_level_begin(), 0);
    foo = opd_dual_new(vec(1, 2), vec(3, 4));
    v[0] = opd_value_tensor(bar);
    v[1] = opd_value_tensor(bar);
    v[2] = opd_value_int(1);
    v[3] = opd_value_tensor(foo);
    CHECK(!opd_call_op(opd_find("aten::add.out"), v, 4));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with add_out that does not support it because it is an out= function");
    v[0] = opd_value_tensor(foo);
    v[3] = opd_value_tensor(sum = vec(0, 0));
    CHECK(!opd_call_op(opd_find("aten::add.out"), v, 4));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "out= function");
    CHECK(is_2(sum, 0, 0));
    CHECK_INT(opd_dual_level_end(0), 0);
}

TEST(results_without_derivative) {                /* test_non_differentiable */
    opd_tensor *foo;
    opd_tensor *max[2];
    CHECK_INT(opd_dual_level_begin(), 0);
    foo = opd_dual_new(vec(1, 2), vec(3, 4));
    CHECK(!tangent_of(opd_eq(foo, vec(1, 3))) && !tangent_of(opd_argmax(foo, OPD_NONE, false)) && !tangent_of(opd_zeros_like(foo)));
    CHECK(opd_max_dim(max, foo, 0, false) == 0 && opd_item_f64(tangent_of(max[0])) == 4 && !tangent_of(max[1]));
    CHECK(is_2(tangent_of(opd_floor(foo)), 0, 0));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

TEST(switched_off) {                              /* test_set_fwd_grad_enabled */
    opd_tensor *dual, *y;
    CHECK(opd_forward_grad_enabled());
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(vec(1, 2), vec(3, 4));
    CHECK(opd_forward_grad_set(false) && !opd_forward_grad_enabled());
    CHECK(!tangent_of(dual));
    y = opd_clone(dual);
    CHECK(!opd_forward_grad_set(true));
    CHECK(!tangent_of(y) && tangent_of(dual));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK(opd_forward_grad_set(false));
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(!tangent_of(opd_dual_new(vec(1, 2), vec(3, 4))));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK(!opd_forward_grad_set(true));
    CHECK_OK();
}

TEST(inference_mode) {                            /* test_make_dual_inference_tensor_in_inference_mode */
    OPD_INFERENCE_MODE(true) {
        opd_tensor *foo = vec(1, 2);
        CHECK_INT(opd_dual_level_begin(), 0);
        CHECK(!opd_forward_grad_enabled());
        (void)add_to(opd_dual_new(foo, vec(3, 4)), vec(1, 1));
        CHECK(is_2(foo, 2, 3));
        CHECK_INT(opd_dual_level_end(0), 0);
    }
    CHECK(opd_forward_grad_enabled());
    CHECK_OK();
}

//-- autograd ----------------------------------------------------------------------------------------------------------

static int grads_of(opd_tensor *y, opd_tensor **in, int n, bool create, opd_tensor **g) {
    opd_backward_options o;
    opd_tensor *s = opd_sum(y);
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    o.retain_graph = true;
    o.create_graph = create;
    return opd_autograd_grad(&s, 1, in, n, &o, g);
}

TEST(parts_of_a_dual_on_the_tape) {               /* test_advanced_packing_unpacking */
    opd_tensor *in[2], *g[2], *dual, *p, *t, *out;
    bool was;
    in[0] = opd_tensor_set_requires_grad(vec(1, 2), true);
    in[1] = opd_tensor_set_requires_grad(vec(3, 4), true);
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(in[0], in[1]);
    p = opd_dual_unpack(dual, &t);
    CHECK(grads_of(p, in, 2, false, g) == 0 && is_2(g[0], 1, 1) && !g[1]);
    CHECK(t == in[1] && grads_of(t, in, 2, false, g) == 0 && !g[0] && is_2(g[1], 1, 1));
    out = opd_mul(opd_detach(dual), vec(2, 2));
    p = opd_dual_unpack(out, &t);
    CHECK(!opd_tensor_requires_grad(p) && is_2(p, 2, 4) && !t);
    was = opd_grad_mode_set(false);
    out = opd_mul(dual, vec(3, 3));
    (void)opd_grad_mode_set(was);
    p = opd_dual_unpack(out, &t);
    CHECK(!opd_tensor_requires_grad(p) && !opd_tensor_requires_grad(t) && is_2(p, 3, 6) && is_2(t, 9, 12));
    t = opd_tensor_view(in[1], opd_sizes(in[1]), opd_strides(in[1]), 1, 0);
    CHECK(t != NULL);
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

/* f(x) = sum(tanh(x)^3 exp(x)); its second derivative by differences. */
static opd_tensor *curve(opd_tensor *x) { return opd_sum(opd_mul(opd_pow_Tensor_Scalar(opd_tanh(x), OPD_V(3)), opd_exp(x))); }
static opd_tensor *curve_grad(double a, double b) {
    opd_tensor *x = opd_tensor_set_requires_grad(vec(a, b), true), *g = NULL;
    CHECK(grads_of(curve(x), &x, 1, false, &g) == 0);
    return g;
}
TEST(forward_over_reverse) {
    opd_tensor *up = curve_grad(0.5 + 1e-5 * 2, -0.3 - 1e-5), *down = curve_grad(0.5 - 1e-5 * 2, -0.3 + 1e-5), *x, *g, *hv;
    int create;
    for (create = 0; create < 2; create++) {
        x = opd_tensor_set_requires_grad(vec(0.5, -0.3), true);
        CHECK_INT(opd_dual_level_begin(), 0);
        x = opd_dual_new(x, vec(2, -1));
        CHECK(grads_of(curve(x), &x, 1, create != 0, &g) == 0);
        hv = tangent_of(g);
        CHECK(hv && fabs(case_get(hv, 0) - (case_get(up, 0) - case_get(down, 0)) / 2e-5) < 1e-6);
        CHECK(hv && fabs(case_get(hv, 1) - (case_get(up, 1) - case_get(down, 1)) / 2e-5) < 1e-6);
        CHECK_INT(opd_dual_level_end(0), 0);
    }
    CHECK_OK();
}
TEST(saved_duals) {                               /* a node keeps a copy of a view: with its tangent */
    opd_tensor *x = opd_tensor_set_requires_grad(vec(1, 2), true), *y, *g;
    CHECK_INT(opd_dual_level_begin(), 0);
    x = opd_dual_new(x, vec(3, 4));
    y = opd_mul(x, opd_view(x, OPD_INTS(2)));
    CHECK(grads_of(opd_mul(x, y), &x, 1, false, &g) == 0);
    CHECK(is_2(g, 3, 12) && is_2(tangent_of(g), 6 * 1 * 3, 6 * 2 * 4));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}
TEST(reverse_over_forward) {
    opd_tensor *up = curve_grad(0.5 + 1e-5 * 2, -0.3 - 1e-5), *down = curve_grad(0.5 - 1e-5 * 2, -0.3 + 1e-5);
    opd_tensor *in[2], *g[2], *jv, *plain = curve_grad(0.5, -0.3);
    in[0] = opd_tensor_set_requires_grad(vec(0.5, -0.3), true);
    in[1] = opd_tensor_set_requires_grad(vec(2, -1), true);
    CHECK_INT(opd_dual_level_begin(), 0);
    jv = tangent_of(curve(opd_dual_new(in[0], in[1])));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OR_RETURN(jv && opd_tensor_requires_grad(jv));
    CHECK(grads_of(jv, in, 2, false, g) == 0);
    CHECK(fabs(case_get(g[0], 0) - (case_get(up, 0) - case_get(down, 0)) / 2e-5) < 1e-6);
    CHECK(fabs(case_get(g[0], 1) - (case_get(up, 1) - case_get(down, 1)) / 2e-5) < 1e-6);
    CHECK(equal(g[1], plain));
    CHECK_OK();
}
/* Writes to views, while autograd records the tangents: d/dt of the sum of the squares of (c ta, tb). */
TEST(reverse_over_forward_and_writes) {
    opd_tensor *t = opd_tensor_set_requires_grad(vec(3, 4), true), *h, *jv, *g;
    CHECK_INT(opd_dual_level_begin(), 0);
    h = opd_mul(opd_dual_new(vec(1, 2), t), vec(1, 1));
    (void)mul_to(opd_narrow(h, 0, 0, 1), opd_full(OPD_INTS(1), OPD_V(5.0), OPD_FLOAT64));
    jv = tangent_of(h);
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK(is_2(jv, 15, 4) && opd_tensor_requires_grad(jv));
    CHECK(grads_of(opd_mul(jv, jv), &t, 1, false, &g) == 0 && is_2(g, 2 * 25 * 3, 2 * 4));
    CHECK_OK();
}
/* Tensors that are only used for tangents are in no graph, so saved-tensor hooks do not pack them. */
static int packed;
static void *count_pack(opd_tensor *t, void *user) { (void)user; packed++; return opd_keep(t); }
static opd_tensor *count_unpack(void *p, void *user) { (void)user; return (opd_tensor *)p; }
static void count_drop(void *p, void *user) { (void)user; opd_release((opd_tensor *)p); }
TEST(saved_tensor_hooks) {
    opd_saved_hooks h;
    opd_tensor *x;
    memset(&h, 0, sizeof h);
    h.pack = count_pack;
    h.unpack = count_unpack;
    h.drop = count_drop;
    packed = 0;
    CHECK_INT(opd_dual_level_begin(), 0);
    x = opd_dual_new(mat(2, 3, 1, 2, 3, 4, 5, 6), mat(2, 3, 1, 1, 2, 2, 3, 3));
    CHECK_INT(opd_saved_hooks_begin(&h), 0);
    CHECK(tangent_of(opd_softmax(opd_cumsum(x, 1), 1)) != NULL);
    CHECK_INT(packed, 0);
    opd_saved_hooks_end();
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}
/* A function with a composite operator, an in-place operator and a matrix product. */
static opd_tensor *net(opd_tensor *w, opd_tensor *x) {
    opd_tensor *h = opd_mm(x, w);
    (void)mul_to(h, h);
    return opd_sum(opd_log_softmax(opd_relu(h), 1));
}
TEST(second_derivatives_agree) {
    opd_tensor *w0 = noise(opd_zeros(OPD_INTS(3, 2), OPD_FLOAT64), 1), *x = noise(opd_zeros(OPD_INTS(4, 3), OPD_FLOAT64), 2);
    opd_tensor *t = noise(w0, 3), *w, *g, *one, *two, *three;
    w = opd_tensor_set_requires_grad(opd_clone(w0), true);
    CHECK(grads_of(net(w, x), &w, 1, true, &g) == 0);
    CHECK(grads_of(opd_mul(g, t), &w, 1, false, &one) == 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    w = opd_dual_new(opd_tensor_set_requires_grad(opd_clone(w0), true), t);
    CHECK(grads_of(net(w, x), &w, 1, false, &g) == 0);
    two = tangent_of(g);
    w = opd_tensor_set_requires_grad(opd_clone(w0), true);
    g = tangent_of(net(opd_dual_new(w, t), x));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OR_RETURN(g != NULL);
    CHECK(grads_of(g, &w, 1, false, &three) == 0);
    CHECK(equal(one, two) && equal(one, three));
    CHECK_OK();
}

//-- custom operators --------------------------------------------------------------------------------------------------

static int double_cpu(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(x); i++) { opd_data_f64(out)[i] = 2 * case_get(x, i); }
    return opd_return_tensor(call, out);
}
static int double_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_add(g, g));
}
static int double_raw(opd_backward_call *bw) {    /* right, but with loops of its own */
    opd_tensor *g = opd_bw_grad(bw, 0), *out = opd_tensor_new(opd_ints_of(opd_sizes(g), opd_ndim(g)), OPD_FLOAT64);
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(g); i++) { opd_data_f64(out)[i] = 2 * case_get(g, i); }
    return opd_bw_return(bw, 0, out);
}
static int jvp_calls;
static int double_jvp(opd_jvp_call *jv) {
    opd_tensor *t = opd_jvp_tangent(jv, 0);
    jvp_calls++;
    CHECK(opd_jvp_tensor(jv, 0) && opd_jvp_result(jv, 0) && opd_jvp_value(jv, 0).tag == OPD_TAG_TENSOR);
    CHECK(!opd_jvp_result(jv, 1) && !opd_jvp_tensor(jv, 1) && !opd_jvp_tangent(jv, -1));
    CHECK(!tangent_of(opd_jvp_tensor(jv, 0)));    /* off */
    return opd_jvp_return(jv, 0, opd_add(t, t));
}
static int bad_jvp(opd_jvp_call *jv) { (void)jv; return -1; }
static int wrong_size_jvp(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_ones(OPD_INTS(5), OPD_FLOAT64)); }
static int wrong_result_jvp(opd_jvp_call *jv) { return opd_jvp_return(jv, 1, opd_jvp_tangent(jv, 0)); }
static int null_jvp(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, NULL); }
static opd_tensor *call_1(const char *name, opd_tensor *x) {
    opd_value v = opd_value_tensor(x);
    return opd_call_op(opd_find(name), &v, 1);
}
static void define(opd_library *lib, const char *schema, opd_backward_fn backward, opd_jvp_fn jvp, const char *inplace) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema;
    d.cpu = double_cpu;
    d.backward = backward;
    d.jvp = jvp;
    d.inplace = inplace;
    CHECK_INT(opd_define(lib, &d), 0);
}
TEST(operators_of_ones_own) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwd", NULL, __FILE__, __LINE__);
    opd_tensor *dual, *x;
    define(lib, "plain(Tensor x) -> Tensor", double_backward, NULL, "plain_");
    define(lib, "raw(Tensor x) -> Tensor", double_raw, NULL, NULL);
    define(lib, "none(Tensor x) -> Tensor", NULL, NULL, NULL);
    define(lib, "only(Tensor x) -> Tensor", NULL, double_jvp, NULL);
    define(lib, "both(Tensor x) -> Tensor", double_raw, double_jvp, "both_");
    define(lib, "linear(Tensor x) -> Tensor", double_raw, OPD_JVP_LINEAR, NULL);
    define(lib, "flat(Tensor x) -> Tensor", OPD_NOT_DIFFERENTIABLE, NULL, "flat_");
    define(lib, "bad(Tensor x) -> Tensor", double_raw, bad_jvp, NULL);
    define(lib, "wrong_size(Tensor x) -> Tensor", double_raw, wrong_size_jvp, NULL);
    define(lib, "wrong_result(Tensor x) -> Tensor", double_raw, wrong_result_jvp, NULL);
    define(lib, "null(Tensor x) -> Tensor", double_raw, null_jvp, NULL);
    CHECK(opd_def(lib, "bare(Tensor x) -> Tensor") == 0 && opd_impl_key(lib, "bare", "CPU", double_cpu, NULL, NULL) == 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(vec(1, 2), vec(3, 4));
    CHECK(is_2(tangent_of(call_1("fwd::plain", dual)), 6, 8));
    CHECK(!call_1("fwd::raw", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "backward function cannot be differentiated itself; give the operator a .jvp");
    CHECK(!call_1("fwd::none", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with none that does not support it because it has not been implemented yet.");
    CHECK(!call_1("fwd::bare", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with bare that does not support it because it has not been implemented yet.");
    jvp_calls = 0;
    CHECK(is_2(tangent_of(call_1("fwd::only", dual)), 6, 8));
    CHECK(is_2(tangent_of(call_1("fwd::both", dual)), 6, 8));
    CHECK_INT(jvp_calls, 2);
    CHECK(is_2(tangent_of(call_1("fwd::linear", dual)), 6, 8));
    CHECK(!tangent_of(call_1("fwd::flat", dual)));
    CHECK(!call_1("fwd::bad", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "failed without setting an error");
    CHECK(!call_1("fwd::wrong_size", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "different size");
    CHECK(!call_1("fwd::wrong_result", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a tangent for a result that does not exist: 1");
    CHECK(!call_1("fwd::null", dual));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "NULL as the tangent of result 0");
    x = opd_clone(dual);
    CHECK(call_1("fwd::plain_", x) == x && is_2(tangent_of(x), 6, 8));
    CHECK(call_1("fwd::both_", x) == x && is_2(tangent_of(x), 12, 16) && is_2(x, 4, 8));
    CHECK(call_1("fwd::flat_", x) == x && is_2(tangent_of(x), 0, 0));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK(call_1("fwd::none", vec(1, 2)) != NULL);
    opd_library_close(lib);
    CHECK_OK();
}

/* A rule may make tangents in scopes of its own, by any of the ways to set them. */
static void reuse_memory(void) {
    for (int i = 0; i < 50; i++) { OPD_SCOPE { (void)vec(100, 100); } }
}
static int scoped_jvp(opd_jvp_call *jv) {
    int rc = 0;
    OPD_SCOPE { rc = opd_jvp_return(jv, 0, vec(1, 1)); }        /* the second one counts */
    OPD_SCOPE { OPD_SCOPE { rc = rc || opd_jvp_return(jv, 0, opd_mul_Scalar(opd_jvp_tangent(jv, 0), OPD_V(2))); } }
    reuse_memory();
    return rc;
}
static int scoped_linear(opd_jvp_call *jv) {
    int rc = 0;
    OPD_SCOPE { rc = opd_jvp_linear(jv); }
    reuse_memory();
    return rc;
}
static int scoped_backward(opd_jvp_call *jv) {
    int rc = 0;
    OPD_SCOPE { rc = opd_jvp_backward(jv); }
    reuse_memory();
    return rc;
}
static int scoped_failure(opd_jvp_call *jv) {
    OPD_SCOPE { (void)opd_jvp_return(jv, 0, vec(1, 1)); }
    return opd_fail(OPD_ERROR_USER, "after a tangent");
}
TEST(rules_with_scopes_of_their_own) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwds", NULL, __FILE__, __LINE__);
    opd_tensor *dual, *x;
    define(lib, "given(Tensor x) -> Tensor", double_raw, scoped_jvp, "given_");
    define(lib, "linear(Tensor x) -> Tensor", double_raw, scoped_linear, NULL);
    define(lib, "back(Tensor x) -> Tensor", double_backward, scoped_backward, NULL);
    define(lib, "fails(Tensor x) -> Tensor", double_raw, scoped_failure, NULL);
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(vec(1, 2), vec(3, 4));
    CHECK(is_2(tangent_of(call_1("fwds::given", dual)), 6, 8));
    x = opd_clone(dual);
    CHECK(call_1("fwds::given_", x) == x && is_2(tangent_of(x), 6, 8));
    CHECK(is_2(tangent_of(call_1("fwds::linear", dual)), 6, 8));
    CHECK(is_2(tangent_of(call_1("fwds::back", dual)), 6, 8));
    CHECK(!call_1("fwds::fails", dual));
    CHECK_ERROR(OPD_ERROR_USER, "after a tangent");
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_library_close(lib);
    CHECK_OK();
}

/* Kernels that call operators: these calls compute no tangents, and need no derivatives. */
static int inner_cpu(opd_call *call) { return opd_return_tensor(call, call_1("fwdin::bare", opd_arg_tensor(call, 0))); }
TEST(kernels_that_call_operators) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwdin", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    opd_tensor *dual, *y;
    CHECK(opd_def(lib, "bare(Tensor x) -> Tensor") == 0 && opd_impl_key(lib, "bare", "CPU", double_cpu, NULL, NULL) == 0);
    memset(&d, 0, sizeof d);
    d.schema = "outer(Tensor x) -> Tensor";
    d.cpu = inner_cpu;
    d.backward = double_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    dual = opd_dual_new(vec(1, 2), vec(3, 4));
    y = call_1("fwdin::outer", dual);
    CHECK(is_2(y, 2, 4) && is_2(tangent_of(y), 6, 8));
    CHECK_INT((int)opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_NOTHING), (int)OPD_AUTOGRAD_FALLBACK_ERROR);
    y = call_1("fwdin::bare", dual);              /* PyTorch's fallback says nothing */
    CHECK(is_2(y, 2, 4) && !tangent_of(y));
    (void)opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_ERROR);
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_library_close(lib);
    CHECK_OK();
}

/* A kernel at the Autograd key: the backward function given to opd_autograd_record is also used in forward mode. */
static int hand_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0))); }
static int hand_autograd(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *r;
    const bool tape = opd_call_requires_grad(call);
    if (opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))) { return -1; }
    if (!tape) { return 0; }
    r = opd_call_rets(call)[0].u.t;
    return opd_autograd_record("HandBackward", hand_backward, &x, 1, &r, 1, NULL, 0, &r, 1);
}
static int exp_cpu(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(x); i++) { opd_data_f64(out)[i] = exp(case_get(x, i)); }
    return opd_return_tensor(call, out);
}
TEST(autograd_by_hand) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwdhand", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    opd_tensor *x, *y, *g;
    memset(&d, 0, sizeof d);
    d.schema = "exp(Tensor x) -> Tensor";
    d.cpu = exp_cpu;
    d.autograd = hand_autograd;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(is_2(tangent_of(call_1("fwdhand::exp", opd_dual_new(vec(1, 2), vec(3, 4)))), 3 * exp(1), 4 * exp(2)));
    x = opd_tensor_set_requires_grad(vec(1, 2), true);
    y = call_1("fwdhand::exp", opd_dual_new(x, vec(3, 4)));
    CHECK(is_2(tangent_of(y), 3 * exp(1), 4 * exp(2)));
    CHECK(grads_of(tangent_of(y), &x, 1, false, &g) == 0 && is_2(g, 3 * exp(1), 4 * exp(2)));
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_library_close(lib);
    CHECK_OK();
}

//-- custom functions ----------------------------------------------------------------------------------------------------

static int fn_forward(opd_context *ctx) {         /* x y and a constant */
    opd_tensor *in[2], *k = opd_ones(OPD_INTS(1), OPD_INT64);
    in[0] = opd_context_tensor(ctx, 0);
    in[1] = opd_context_tensor(ctx, 1);
    CHECK(!tangent_of(in[0]));                    /* off */
    if (opd_context_save_for_backward(ctx, in, 2) || opd_context_save_for_forward(ctx, in, 2)) { return -1; }
    return opd_context_return(ctx, opd_mul(in[0], in[1])) || opd_context_return(ctx, k);
}
static int fn_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(g, opd_context_saved(ctx, 1))) || opd_bw_return(bw, 1, opd_mul(g, opd_context_saved(ctx, 0)));
}
static int fn_jvp(opd_jvp_call *jv) {
    opd_tensor *tx = opd_jvp_tangent(jv, 0), *ty = opd_jvp_tangent(jv, 1), *t = NULL;
    opd_context *ctx = opd_jvp_context(jv);
    if (tx) { t = opd_mul(tx, opd_context_saved(ctx, 1)); }
    if (ty) { t = t ? opd_add(t, opd_mul(ty, opd_context_saved(ctx, 0))) : opd_mul(ty, opd_context_saved(ctx, 0)); }
    return opd_jvp_return(jv, 0, t);
}
static int fn_view(opd_context *ctx) { return opd_context_return(ctx, opd_view(opd_context_tensor(ctx, 0), OPD_INTS(2, 1))); }
static int fn_write(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return opd_context_mark_dirty(ctx, x) || opd_context_return(ctx, mul_to(x, vec(2, 2)));
}
static int fn_double(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_mul(opd_jvp_tangent(jv, 0), vec(2, 2))); }
static int fn_written(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, mul_to(opd_jvp_tangent(jv, 0), vec(2, 2))); }
static int fn_viewed(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_view(opd_jvp_tangent(jv, 0), OPD_INTS(2, 1))); }
static opd_tensor *apply(int (*forward)(opd_context *), opd_jvp_fn jvp, opd_tensor *x, opd_tensor *y) {
    opd_autograd_function f;
    opd_value in[2], out[2];
    memset(&f, 0, sizeof f);
    f.name = "Fn";
    f.forward = forward;
    f.backward = fn_backward;
    f.jvp = jvp;
    in[0] = opd_value_tensor(x);
    if (y) { in[1] = opd_value_tensor(y); }
    return opd_autograd_apply(&f, in, y ? 2 : 1, out, 2) < 1 ? NULL : out[0].u.t;
}
TEST(custom_functions) {                          /* their errors: test_function.c */
    opd_tensor *x, *y, *r, *in[2], *g[2];
    CHECK_INT(opd_dual_level_begin(), 0);
    x = opd_dual_new(vec(1, 2), vec(3, 4));
    y = opd_dual_new(vec(5, 6), vec(1, 1));
    r = apply(fn_forward, fn_jvp, x, y);
    CHECK(is_2(r, 5, 12) && is_2(tangent_of(r), 3 * 5 + 1, 4 * 6 + 2));
    CHECK(is_2(tangent_of(apply(fn_forward, fn_jvp, vec(1, 2), y)), 1, 2));
    CHECK(apply(fn_forward, NULL, vec(1, 2), vec(1, 2)) != NULL);
    r = apply(fn_view, fn_viewed, x, NULL);
    CHECK(r && opd_ndim(tangent_of(r)) == 2 && opd_tensor_same_storage(tangent_of(r), tangent_of(x)) && is_2(tangent_of(r), 3, 4));
    r = apply(fn_write, fn_written, x, NULL);
    CHECK(is_2(r, 2, 4) && is_2(tangent_of(r), 6, 8) && is_2(tangent_of(x), 6, 8));
    r = apply(fn_write, fn_written, opd_select(opd_view(x, OPD_INTS(1, 2)), 0, 0), NULL);
    CHECK(is_2(tangent_of(r), 12, 16) && is_2(tangent_of(x), 12, 16));
    in[0] = opd_tensor_set_requires_grad(vec(3, 4), true);          /* the tangent's history */
    in[1] = opd_tensor_set_requires_grad(vec(5, 6), true);
    r = tangent_of(apply(fn_forward, fn_jvp, opd_dual_new(vec(1, 2), in[0]), in[1]));
    CHECK(r && grads_of(r, in, 2, false, g) == 0 && is_2(g[0], 5, 6) && is_2(g[1], 3, 4));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

/* What PyTorch says to jvps of inputs (x, y) by what forward returns and by which of them has a tangent. */
static int strict_case;
enum { WRITES, RETURNS_VIEW, RETURNS_INPUT, RETURNS_TWO, WRITES_OTHER };
static int strict_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0), *y = opd_context_tensor(ctx, 1), *z;
    switch (strict_case) {
    case WRITES: return opd_context_mark_dirty(ctx, x) || opd_context_return(ctx, mul_to(x, vec(2, 2)));
    case RETURNS_VIEW: return opd_context_return(ctx, opd_slice(x, 0, OPD_V(0), OPD_V(1), 1));
    case RETURNS_INPUT: return opd_context_return(ctx, x);
    case RETURNS_TWO: return opd_context_return(ctx, opd_mul(x, x)) || opd_context_return(ctx, opd_mul(y, y));
    default: z = opd_clone(x); return opd_context_mark_dirty(ctx, z) || opd_context_return(ctx, z);
    }
}
static int gives_double_y(opd_jvp_call *jv) {
    opd_tensor *t = opd_mul(opd_jvp_tangent(jv, 1), vec(2, 2));
    return opd_jvp_return(jv, 0, strict_case == RETURNS_VIEW ? opd_slice(t, 0, OPD_V(0), OPD_V(1), 1) : t);
}
static int gives_same(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_jvp_tangent(jv, 0)); }
static int gives_written_copy(opd_jvp_call *jv) {
    opd_tensor *t = mul_to(opd_jvp_tangent(jv, 0), vec(2, 2));
    return opd_jvp_return(jv, 0, opd_clone(t));
}
static int gives_nothing(opd_jvp_call *jv) { (void)jv; return 0; }
static int gives_first_part(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_slice(opd_jvp_tangent(jv, 0), 0, OPD_V(0), OPD_V(1), 1)); }
static int gives_last_part(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_slice(opd_jvp_tangent(jv, 0), 0, OPD_V(1), OPD_V(2), 1)); }
static int gives_copied_part(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, opd_clone(opd_slice(opd_jvp_tangent(jv, 0), 0, OPD_V(0), OPD_V(1), 1))); }
static int gives_one_too_many(opd_jvp_call *jv) { opd_tensor *t = vec(1, 1);
    return opd_jvp_return(jv, 0, t) || opd_jvp_return(jv, 1, t) || opd_jvp_return(jv, 2, t); }
static int gives_one(opd_jvp_call *jv) { return opd_jvp_return(jv, 0, vec(1, 1)); }
static int doubled_forward(opd_context *ctx) {
    return opd_context_return(ctx, opd_mul_Scalar(opd_context_tensor(ctx, 0), OPD_V(2)));
}
TEST(custom_rules_with_scopes_of_their_own) {
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(is_2(tangent_of(apply(doubled_forward, scoped_jvp, opd_dual_new(vec(1, 2), vec(3, 4)), vec(5, 6))), 6, 8));
    CHECK(!apply(doubled_forward, scoped_failure, opd_dual_new(vec(1, 2), vec(3, 4)), vec(5, 6)));
    CHECK_ERROR(OPD_ERROR_USER, "after a tangent");
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}
static opd_tensor *strict(int which, opd_jvp_fn jvp, bool dual_x) {
    opd_tensor *x = vec(1, 2), *y = vec(5, 6);
    strict_case = which;
    return apply(strict_forward, jvp, dual_x ? opd_dual_new(x, vec(3, 4)) : x, dual_x ? y : opd_dual_new(y, vec(1, 1)));
}
static void refused(int which, opd_jvp_fn jvp, const char *text) {
    CHECK(strict(which, jvp, true) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, text);
}
TEST(what_jvps_must_give) {
    static const char *const unwritten = "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
        "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace.";
    static const char *const copied = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view.";
    opd_tensor *r;
    CHECK_INT(opd_dual_level_begin(), 0);
    refused(WRITES, fn_double, unwritten);
    refused(WRITES, gives_same, unwritten);
    refused(WRITES, gives_written_copy, "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying "
            "an input inplace, then the jvp function must modify the gradient inplace and return it as-is.");
    CHECK(is_2(tangent_of(strict(WRITES, fn_written, true)), 6, 8));
    CHECK(is_2(tangent_of(strict(WRITES, gives_double_y, false)), 2, 2));      /* x had none: this is it */
    refused(RETURNS_VIEW, gives_copied_part, copied);
    refused(RETURNS_VIEW, gives_last_part, "A custom Function is returning a view but the jvp is not returning a view of the given grad input.");
    CHECK_NEAR(opd_item_f64(tangent_of(strict(RETURNS_VIEW, gives_first_part, true))), 3, 0);
    CHECK_NEAR(opd_item_f64(tangent_of(strict(RETURNS_VIEW, gives_double_y, false))), 2, 0);
    refused(RETURNS_INPUT, fn_double, copied);
    r = strict(RETURNS_INPUT, gives_same, true);
    CHECK(is_2(tangent_of(r), 3, 4));
    refused(RETURNS_TWO, gives_one, "Function's jvp returned an invalid number of forward gradients (expected 2 but got 1: none for output 1)");
    refused(RETURNS_TWO, gives_nothing, "(expected 2 but got 0");
    refused(RETURNS_TWO, gives_one_too_many, "Function's jvp returned an invalid number of forward gradients (expected 2 but got 3)");
    refused(RETURNS_INPUT, gives_first_part, "A custom Function is returning a view but the jvp is not returning a view of the given grad input.");
    refused(WRITES_OTHER, gives_one, "Only input Tensors should be given to opd_context_mark_dirty.");
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
}

/* An operator whose set-up saves: by its `backward` in forward mode, with the context. */
static int set_up(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    return opd_context_save_for_backward(ctx, &x, 1);
}
static int set_up_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_exp(opd_context_saved(opd_bw_context(bw), 0))));
}
TEST(operators_with_a_set_up) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwdsetup", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    opd_tensor *x;
    memset(&d, 0, sizeof d);
    d.schema = "exp(Tensor x) -> Tensor";
    d.cpu = exp_cpu;
    d.backward = set_up_backward;
    d.setup_context = set_up;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(is_2(tangent_of(call_1("fwdsetup::exp", opd_dual_new(vec(1, 2), vec(3, 4)))), 3 * exp(1), 4 * exp(2)));
    x = opd_tensor_set_requires_grad(vec(1, 2), true);
    CHECK(is_2(tangent_of(call_1("fwdsetup::exp", opd_dual_new(x, vec(3, 4)))), 3 * exp(1), 4 * exp(2)));
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_library_close(lib);
    CHECK_OK();
}

static int pair_cpu(opd_call *call) {
    return opd_return_tensor(call, opd_exp(opd_arg_tensor(call, 0))) || opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
static int pair_set_up(opd_context *ctx) {
    return set_up(ctx) || opd_context_mark_non_differentiable(ctx, opd_context_output(ctx, 1).u.t);
}
TEST(set_up_that_marks_a_result) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwdpair", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    opd_value v, rets[2];
    memset(&d, 0, sizeof d);
    d.schema = "pair(Tensor x) -> (Tensor, Tensor)";
    d.cpu = pair_cpu;
    d.backward = set_up_backward;
    d.setup_context = pair_set_up;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    v = opd_value_tensor(opd_dual_new(vec(1, 2), vec(3, 4)));
    CHECK_INT(opd_call_all(opd_find("fwdpair::pair"), rets, &v, 1), 0);
    CHECK(is_2(tangent_of(rets[0].u.t), 3 * exp(1), 4 * exp(2)) && !tangent_of(rets[1].u.t));
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_library_close(lib);
    CHECK_OK();
}

/* A backward function with once_differentiable cannot be differentiated with respect to its gradient. */
TEST(once_differentiable_formulas) {
    opd_library *lib = opd_library_open(OPD_DEF, "fwdonce", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "twice(Tensor x) -> Tensor";
    d.cpu = double_cpu;
    d.backward = double_raw;
    d.once_differentiable = 1;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(!call_1("fwdonce::twice", opd_dual_new(vec(1, 2), vec(3, 4))));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "[in the forward derivative of fwdonce::twice]");
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_library_close(lib);
}

//-- random programs whose answers PyTorch gave: golden/make_forward.py --------------------------------------------------

#define MOST_TENSORS 64
typedef struct program { opd_tensor *t[MOST_TENSORS], *x[4], *g[4]; int leaf[4], n, nleaves, line; } program;
static int differences;
static void differs(const program *p, const char *what) {
    if (++differences <= 20) { printf("forward.txt:%d: %s %s\n", p->line, what, opd_error_message()); }
    opd_error_clear();
}
static opd_tensor *golden_values(const long *sizes, int n, int id, double scale, double by, double step, double from) {
    int64_t s[8], i;
    opd_tensor *t;
    for (i = 0; i < n; i++) { s[i] = sizes[i]; }
    t = opd_tensor_new(opd_ints_of(s, n), OPD_FLOAT64);
    for (i = 0; t && i < opd_numel(t); i++) {
        const double d = (double)(i + 1) * by + id * step;
        opd_data_f64(t)[i] = from + scale * (d - floor(d));
    }
    return t;
}
static void golden_leaf(program *p, const char *text, bool tape) {
    long v[8];
    int n = 0, more;
    opd_tensor *x, *g;
    while (n < 8 && sscanf(text, "%ld%n", &v[n], &more) == 1) { text += more; n++; }
    x = golden_values(v + 3, n - 3, p->n, 0.6, 0.61803398875, 0.27, 0.2);
    g = v[1] ? golden_values(v + 3, n - 3, p->n, 1.3, 0.41421356237, 0.31, -0.5) : NULL;
    if (tape) { (void)opd_tensor_set_requires_grad(x, true); if (g) { (void)opd_tensor_set_requires_grad(g, true); } }
    p->x[p->nleaves] = x;
    p->g[p->nleaves] = g;
    p->leaf[p->nleaves++] = p->n;
    p->t[p->n++] = g ? opd_dual_new(x, g) : x;
}
static bool golden_call(program *p, char *text) {
    opd_value args[8], rets[MOST_RESULTS];
    opd_tensor *out[MOST_RESULTS];
    int64_t lists[8][8];
    char name[80], *word = strtok(text, " "), *end;
    const opd_op *op;
    int n = 0, k;
    (void)snprintf(name, sizeof name, "aten::%s", word);
    for (word = strtok(NULL, " "); word && n < 8; word = strtok(NULL, " "), n++) {
        if (*word == 't') { args[n] = opd_value_tensor(p->t[atoi(word + 1)]); }
        else if (*word == '(') {
            for (k = 0, word++; *word && *word != ')'; k++) { lists[n][k] = strtol(word, &word, 10); word += *word == ','; }
            args[n] = opd_value_ints(lists[n], k);
        }
        else if (!strcmp(word, "True") || !strcmp(word, "False")) { args[n] = opd_value_bool(*word == 'T'); }
        else if (strchr(word, '.')) { args[n] = opd_value_double(strtod(word, &end)); }
        else { args[n] = *word == '_' ? opd_value_none() : opd_value_int(strtol(word, &end, 10)); }
    }
    op = opd_find(name);
    if (!op || opd_call_all((opd_op *)(uintptr_t)op, rets, args, n)) { return false; }
    if (!opd_schema_is_mutable(opd_op_schema(op)) && results_of(op, rets, out) > 0) { p->t[p->n++] = out[0]; }
    return true;
}
/* "1 2 3" or "-"; where what follows begins. */
static const char *golden_compare(const program *p, const char *text, opd_tensor *t, const char *what) {
    char *end;
    int64_t i;
    bool zero = strstr(what, "gradient") != NULL; /* zeros are as good as none there */
    while (*text == ' ') { text++; }
    if (*text == '-' && (text[1] == ' ' || !text[1])) {
        for (i = 0; t && zero && i < opd_numel(t); i++) { zero = fabs(case_get(t, i)) < 1e-12; }
        if (t && !zero) { differs(p, what); }
        return text + 1;
    }
    if (!t && zero && strspn(text, "-0 ") == strcspn(text, ";")) { return text + strcspn(text, ";"); }
    if (!t) { differs(p, what); return text + strcspn(text, ";"); }
    for (i = 0; i < opd_numel(t); i++, text = end) {
        const double want = strtod(text, &end), have = case_get(t, i);
        if (end == text || fabs(want - have) > 1e-9 * (1 + fabs(want))) { differs(p, what); return text + strcspn(text, ";"); }
    }
    return text;
}
TEST(random_programs_as_in_pytorch) {
    FILE *f = fopen("tests/golden/forward.txt", "r");
    static char line[20000], *lines[200];
    int programs = 0, tangents = 0, tapes = 0, i, n;
    program p;
    if (!f) { f = fopen("golden/forward.txt", "r"); }
    CHECK_OR_RETURN(f != NULL);
    differences = 0;
    p.line = 0;
    for (;;) {
        bool tape = false;
        const int first = p.line;
        for (n = 0; n < 200 && fgets(line, sizeof line, f); n++) {
            line[strcspn(line, "\n")] = 0;
            lines[n] = (char *)malloc(strlen(line) + 1);
            if (!lines[n]) { abort(); }
            strcpy(lines[n], line);
            tape = tape || *line == 'R';
            if (*line == 'E') { n++; break; }
        }
        if (n == 0) { break; }
        memset(&p, 0, sizeof p);
        programs++;
        OPD_SCOPE {
            opd_tensor *loss = NULL, *by[8], *grads[8];
            opd_backward_options o;
            int leaf = 0, m = 0;
            CHECK_INT(opd_dual_level_begin(), 0);
            for (i = 0; i < n; i++) {
                char *text = lines[i] + (lines[i][1] ? 2 : 1);
                p.line = first + i + 1;
                if (*lines[i] == 'L') { golden_leaf(&p, text, tape); }
                else if (*lines[i] == 'C') { if (!golden_call(&p, text)) { differs(&p, "fails"); break; } }
                else if (*lines[i] == 'T') {
                    const int id = (int)strtol(text, &text, 10);
                    opd_tensor *g, *x = opd_dual_unpack(p.t[id], &g);
                    const char *rest = golden_compare(&p, text, x, "another value");
                    tangents += g != NULL;
                    (void)golden_compare(&p, rest + strcspn(rest, ";") + 1, g, "another tangent");
                    if (g && tape && opd_tensor_requires_grad(g)) {
                        g = opd_sum(opd_mul(opd_mul(g, g), opd_full(opd_ints_of(NULL, 0), OPD_V((double)(id + 1)), OPD_FLOAT64)));
                        loss = loss ? opd_add(loss, g) : g;
                    }
                }
                else if (*lines[i] == 'R') {
                    int k;
                    memset(&o, 0, sizeof o);
                    o.allow_unused = true;
                    for (k = 0; k < p.nleaves; k++) { by[m++] = p.x[k]; if (p.g[k]) { by[m++] = p.g[k]; } }
                    if (!loss || opd_autograd_grad(&loss, 1, by, m, &o, grads)) { differs(&p, "no gradients"); break; }
                    tapes++;
                    m = 0;
                }
                else if (*lines[i] == 'G') {
                    const char *rest = golden_compare(&p, text + strspn(text, "0123456789"), grads[m++], "another gradient");
                    if (p.g[leaf++]) { (void)golden_compare(&p, rest + strcspn(rest, ";") + 1, grads[m++], "another gradient by the tangent"); }
                }
                if (!opd_ok()) { differs(&p, "an error"); }
            }
            CHECK_INT(opd_dual_level_end(0), 0);
        }
        p.line = first + n;
        for (i = 0; i < n; i++) { free(lines[i]); }
    }
    fclose(f);
    CHECK_INT(differences, 0);
    CHECK(programs >= 400 && tangents > 2000 && tapes > 50);
}

//-- threads -----------------------------------------------------------------------------------------------------------

#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
static opd_tensor *shared_x;
static void *on_a_thread(void *arg) {
    const double by = *(const double *)arg;
    int i;
    for (i = 0; i < 200; i++) OPD_SCOPE {
        opd_tensor *dual, *y;
        CHECK_INT(opd_dual_level_begin(), 0);
        dual = opd_dual_new(shared_x, opd_full(OPD_INTS(2), OPD_V(by), OPD_FLOAT64));
        y = opd_mul(dual, shared_x);
        CHECK(is_2(tangent_of(y), by * 2, by * 3) && !tangent_of(shared_x));
        CHECK_INT(opd_dual_level_end(0), 0);
    }
    CHECK_INT(opd_dual_level_begin(), 0);               /* left open: goes with the thread */
    (void)opd_dual_new(shared_x, opd_ones(OPD_INTS(2), OPD_FLOAT64));
    CHECK_OK();
    return NULL;
}
static opd_tensor *shared_dual;
static void *sees_no_tangent(void *arg) {
    (void)arg;
    CHECK(!tangent_of(shared_dual));
    CHECK_INT(opd_dual_level_begin(), 0);
    CHECK(!tangent_of(shared_dual) && !tangent_of(opd_exp(shared_dual)));
    CHECK_INT(opd_dual_level_end(0), 0);
    CHECK_OK();
    return NULL;
}
TEST(threads_have_levels_of_their_own) {
    double by[4] = {1, 2, 3, 4};
    pthread_t t[4];
    int i;
    shared_x = opd_keep(vec(2, 3));
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_create(&t[i], NULL, on_a_thread, &by[i]), 0); }
    for (i = 0; i < 4; i++) { (void)pthread_join(t[i], NULL); }
    CHECK_INT(opd_dual_level_begin(), 0);
    shared_dual = opd_dual_new(shared_x, vec(1, 1));
    CHECK_INT(pthread_create(&t[0], NULL, sees_no_tangent, NULL), 0);
    (void)pthread_join(t[0], NULL);
    CHECK(tangent_of(shared_dual) != NULL);
    CHECK_INT(opd_dual_level_end(0), 0);
    opd_release(shared_x);
    CHECK_OK();
}
#endif

/* Complex views of real tensors, and real and imaginary parts, share the tangent as they share the memory.  Writes
   to one change the tangents of all. */
TEST(tangents_of_complex_views) {
    const int level = opd_dual_level_begin();
    opd_tensor *x = opd_dual_new(opd_ones(OPD_INTS(3, 2), OPD_FLOAT32),
                                  opd_reshape(opd_arange(OPD_V(6), OPD_FLOAT32), OPD_INTS(3, 2)));
    opd_tensor *c = opd_select(opd_view_as_complex(x), 0, 1), *t = NULL;
    CHECK_INT(level, 0);
    (void)opd_dual_unpack(c, &t);
    CHECK(t && opd_dtype(t) == OPD_COMPLEX64 && opd_ndim(t) == 0);
    (void)opd_dual_unpack(opd_view_as_real(c), &t);
    CHECK(t && opd_data_f32(t)[0] == 2 && opd_data_f32(t)[1] == 3);
    CHECK(opd_zero_(opd_view_as_real(c)) != NULL);
    (void)opd_dual_unpack(x, &t);
    t = t ? opd_contiguous(t) : NULL;
    CHECK(t && opd_data_f32(t)[1] == 1 && opd_data_f32(t)[2] == 0 && opd_data_f32(t)[3] == 0 && opd_data_f32(t)[4] == 4);
    CHECK_INT(opd_dual_level_end(level), 0);
    CHECK_OK();
}
CHECK_MAIN_ADD(add_operators)
