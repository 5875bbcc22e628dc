/* Forward mode: every operator's tangents, by its sample cases, against differences of its results and against its
   gradients; then dual tensors, levels, views, writes in place, formulas of one's own, the tape, memory, threads.
   THREADED */
#include "../opdispatch.h"
#include "cases.h"

#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
#include <pthread.h>
#endif

//-- every operator ----------------------------------------------------------------------------------------------------

static char what[400];                            /* what is being done, for messages */
static bool say(bool right, const char *text) {
    if (!right) { printf("%s: %s\n", what, text); }
    CHECK(right);
    return right;
}
static bool went_well(int rc) {
    if (rc >= 0 && opd_ok()) { return true; }
    printf("%s: %s\n", what, opd_error_message());
    CHECK(opd_ok() && rc >= 0);
    opd_error_clear();
    return false;
}

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

/* The arguments that are differentiated. */
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

/* Calls with `instead` in place of the tensors `in`; what is written first is a copy.  The results, flat; -1: failed. */
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

/* Where ATen's derivative is not that of the values. */
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
    level = opd_dual_enter();
    for (i = 0; i < n; i++) { dual[i] = opd_make_dual(in[i], t[i]); }
    m = opd_ok() ? run_with(s->c, op, in, dual, n, r) : -1;
    if (!went_well(m)) { (void)opd_dual_exit(level); return; }
    for (i = 0; i < m; i++) {
        opd_tensor *got = NULL, *primal = opd_unpack_dual(r[i], &got);
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
    CHECK_INT(opd_dual_exit(level), 0);
    (void)snprintf(text, sizeof text, "<u, J t> is %.12g, <J^T u, t> is %.12g", forward, reverse);
    (void)say(fabs(forward - reverse) <= 1e-9 * (1 + size) || (isnan(forward) && isnan(reverse)), text);
}

static const opd_op *form_of(const subject *s, const char *form) {
    char name[200];
    (void)snprintf(name, sizeof name, "%.*s::%.*s", (int)strcspn(opd_op_name(s->op), ":"), opd_op_name(s->op),
                   (int)strcspn(form, "("), form);
    return opd_find(name);
}
/* The in-place form has the tangent that the functional one has, in the memory of self's. */
static void test_inplace_tangent(const subject *s) {
    const opd_op *form = form_of(s, s->card->inplace);
    opd_tensor *in[MOST_INPUTS], *dual[MOST_INPUTS], *r[MOST_RESULTS], *w[MOST_RESULTS], *want = NULL, *had, *got;
    int i, n, level;
    int64_t k;
    if (!again(s, CASE_CONTIGUOUS) || by_definition(s) || (n = inputs_of(s->c, in)) == 0 || !form) { return; }
    if (opd_schema_nargs(opd_op_schema(form)) != s->c->nargs) { return; }
    (void)snprintf(what + strlen(what), sizeof what - strlen(what), " in place");
    level = opd_dual_enter();
    for (i = 0; i < n; i++) { dual[i] = opd_make_dual(in[i], noise(in[i], 40 + i)); }
    if (went_well(run_with(s->c, s->op, in, dual, n, r)) && opd_dtype(r[0]) == OPD_FLOAT64 && r[0] &&
        opd_numel(r[0]) == opd_numel(in[0]) && in[0] == s->c->args[0].u.t) {
        (void)opd_unpack_dual(r[0], &want);
        (void)opd_unpack_dual(dual[0], &had);
        if (went_well(run_with(s->c, form, in, dual, n, w))) {
            (void)opd_unpack_dual(w[0], &got);
            if (want && say(got != NULL, "no tangent")) {
                for (k = 0; k < opd_numel(want) && fabs(case_get(got, k) - case_get(want, k)) <= 1e-12; k++) { }
                (void)say(k == opd_numel(want), "another tangent than the functional form's");
            }
        }
    }
    opd_error_clear();
    CHECK_INT(opd_dual_exit(level), 0);
}

static int forward_once(const subject *s) {
    opd_tensor *in[MOST_INPUTS], *dual[MOST_INPUTS], *r[MOST_RESULTS];
    int i, n, m, level;
    if (!again(s, CASE_CONTIGUOUS) || !opd_ok()) { return -1; }
    n = inputs_of(s->c, in);
    if ((level = opd_dual_enter()) < 0) { return -1; }
    for (i = 0; i < n; i++) { dual[i] = opd_make_dual(in[i], noise(in[i], 40 + i)); }
    m = opd_ok() ? run_with(s->c, s->op, in, dual, n, r) : -1;
    (void)opd_dual_exit(level);
    return m;
}
/* Every n-th allocation fails. */
static void test_memory(const subject *s) {
    int64_t n, seen, live;
    int rc = 0;
    OPD_SCOPE { (void)forward_once(s); }
    opd_error_clear();
    for (n = 1; n < 1000; n += n < 100 ? 1 : 7) {
        live = opd_memory_stats().live;
        (void)opd_memory_fail_at(n, (n & 1) != 0);
        OPD_SCOPE { rc = forward_once(s); }
        seen = opd_memory_fail_at(0, false);
        if (seen < n) { opd_error_clear(); break; }
        if (opd_ok() ? rc < 0 : opd_error_code() != OPD_ERROR_MEMORY) {
            printf("%s allocation %d: %s\n", what, (int)n, opd_error_message());
            CHECK(!"an error that is not OPD_ERROR_MEMORY");
        }
        opd_error_clear();
        if (opd_memory_stats().live > live) {
            printf("%s allocation %d: loses %d bytes\n", what, (int)n, (int)(opd_memory_stats().live - live));
            CHECK(!"memory is lost");
            break;
        }
    }
    CHECK(true);
}

static void test_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    subject s;
    s.op = op;
    s.card = opd_op_card(op);
    s.index = 0;
    s.c = &c;
    CHECK_OR_RETURN(s.card && s.card->cases);
    if (s.card->backward == OPD_NOT_DIFFERENTIABLE) { return; }
    s.text = s.card->cases;
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
        if (s.index == 0) { OPD_SCOPE { test_memory(&s); } }
        s.text = rest;
        s.index++;
    } while (*s.text);
}
static void add_operators(void) {
    int i;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        if (op) { check_add_with(opd_op_name(op), test_operator, (void *)(uintptr_t)op); }
    }
}

CHECK_MAIN_ADD(add_operators)
