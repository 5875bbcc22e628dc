/* Every built-in backward function, with the sample arguments of the operator's descriptor.  Each operator that
   backward calls is made to fail in turn.  With one input at a time that requires grad, first and second directional
   derivatives equal finite differences or are refused; none is zero because something is missing.  One case per
   operator. */
#include "../../opdispatch.h"
#include "../cases.h"

/* Runs a case, in place on a copy; the float64 results that are there. */
static int run_case(const op_case *c, opd_tensor **out) {
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    const opd_schema *schema = opd_op_schema(c->op);
    int i, k, n = 0;
    memcpy(args, c->args, sizeof args);
    if (args[0].tag == OPD_TAG_TENSOR && opd_schema_is_mutable(schema)) { args[0] = opd_value_tensor(opd_clone(args[0].u.t)); }
    if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs)) { return -1; }
    for (i = 0; i < opd_schema_nreturns(schema); i++) {
        opd_tensor *const *at = rets[i].tag == OPD_TAG_TENSORS ? rets[i].u.tensors : &rets[i].u.t;
        for (k = 0; k < (rets[i].tag == OPD_TAG_TENSORS ? rets[i].n : rets[i].tag == OPD_TAG_TENSOR) && n < MOST_RESULTS; k++) {
            if (at[k] && opd_dtype(at[k]) == OPD_FLOAT64) { out[n++] = at[k]; }
        }
    }
    return n;
}
static int inputs_of(const op_case *c, opd_tensor **in) {
    int i, k, n = 0;
    for (i = 0; i < c->nargs; i++) {
        const opd_value *v = &c->args[i];
        opd_tensor *const *at = v->tag == OPD_TAG_TENSORS ? v->u.tensors : &v->u.t;
        for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR) && n < MOST_INPUTS; k++) {
            if (at[k] && opd_dtype(at[k]) == OPD_FLOAT64 && opd_numel(at[k]) > 0) { in[n++] = at[k]; }
        }
    }
    return n;
}
static double weight(int seed, int64_t k) { return case_random(seed, k) - 0.3; }
static opd_tensor *weights(const opd_tensor *like, int seed) {
    opd_tensor *w = opd_tensor_new(opd_ints_of(opd_sizes(like), opd_ndim(like)), OPD_FLOAT64);
    int64_t i;
    for (i = 0; w && i < opd_numel(w); i++) { case_put(w, i, weight(seed, i)); }
    return w;
}

/* Which results require grad, and their weighted sum as a number. */
static unsigned recorded;
static double number_of(const op_case *c) {
    opd_tensor *r[MOST_RESULTS];
    double sum = 0;
    int i, n;
    int64_t k;
    OPD_NO_GRAD OPD_SCOPE {
        n = run_case(c, r);
        for (i = 0; i < n; i++) {
            for (k = 0; (recorded >> i & 1) && k < opd_numel(r[i]); k++) { sum += case_get(r[i], k) * weight(1000 + i, k); }
        }
    }
    return sum;
}
/* The results that require grad, and a weight for each that requires grad too. */
static int graph_of(const op_case *c, opd_tensor **out, opd_tensor **w) {
    opd_tensor *r[MOST_RESULTS];
    int i, n = run_case(c, r), m = 0;
    recorded = 0;
    for (i = 0; i < n; i++) {
        if (!opd_tensor_requires_grad(r[i])) { continue; }
        recorded |= 1u << i;
        out[m] = r[i];
        w[m++] = opd_tensor_set_requires_grad(weights(r[i], 1000 + i), true);
    }
    return n < 0 ? -1 : m;
}
static int gradient(const op_case *c, opd_tensor *in, bool create, opd_tensor **g) {
    opd_tensor *out[MOST_RESULTS], *w[MOST_RESULTS];
    opd_backward_options o;
    int n = graph_of(c, out, w);
    *g = NULL;
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    o.create_graph = create;
    o.grad_outputs = w;
    return n <= 0 ? n : opd_autograd_grad(out, n, &in, 1, &o, g) ? -1 : n;
}
static double gradient_number(const op_case *c, opd_tensor *in) {
    opd_tensor *g;
    double sum = 0;
    int64_t k;
    OPD_SCOPE {
        if (gradient(c, in, false, &g) > 0) { for (k = 0; g && k < opd_numel(g); k++) { sum += case_get(g, k) * weight(2000, k); } }
    }
    return sum;
}
static void move(opd_tensor *in, double by) {
    int64_t k;
    for (k = 0; k < opd_numel(in); k++) { case_put(in, k, case_get(in, k) + by * weight(3000, k)); }
}
static double along(const opd_tensor *g) {
    double sum = 0;
    int64_t k;
    for (k = 0; g && k < opd_numel(g); k++) { sum += case_get(g, k) * weight(3000, k); }
    return sum;
}

typedef struct subject { const opd_op *op; const opd_op_desc *card; const char *text; int index; op_case *c; } subject;
static bool again(const subject *s) {
    const char *text = s->text;
    s->c->op = s->op;
    s->c->dtype = OPD_FLOAT64;
    s->c->layout = CASE_CONTIGUOUS;
    s->c->smooth = true;
    s->c->meta = false;
    (void)snprintf(what, sizeof what, "%s case %d \"%.*s\"", opd_op_name(s->op), s->index, (int)strcspn(s->text + (*s->text == ';'), ";"),
                   s->text + (*s->text == ';'));
    return case_read_next(s->c, &text);
}

//-- one input at a time -------------------------------------------------------------------------------------------------

#define EPS 1e-6
static bool near(double a, double b, double scale) { return fabs(a - b) <= 2e-4 * (scale + fabs(b)) || (isnan(a) && isnan(b)); }
static void one_input(const subject *s, int which) {
    opd_tensor *in[MOST_INPUTS], *x, *g, *gg = NULL, *h;
    opd_backward_options o;
    double have, want;
    char text[200];
    int n;
    if (!again(s) || (n = inputs_of(s->c, in)) <= which) { return; }
    for (int i = 0; i < s->c->nargs; i++) {       /* the row at padding_idx has no derivative, by definition */
        const char *name = opd_schema_arg_name(opd_op_schema(s->op), i);
        if (strcmp(name, "padding_idx") == 0 && s->c->args[i].tag == OPD_TAG_INT && s->c->args[i].u.i >= 0) { return; }
    }
    x = in[which];
    for (int i = 0; i < n; i++) { if (i != which && in[i] == x) { return; } }
    if (!opd_tensor_set_requires_grad(x, true)) { CHECK_OK(); return; }
    n = gradient(s->c, x, true, &g);
    if (n < 0) {
        if (opd_error_code() == OPD_ERROR_AUTOGRAD) { opd_error_clear(); CHECK(true); return; }         /* refused */
        printf("    %s input %d: %s\n", what, which, opd_error_message());
        CHECK_OK();
        opd_error_clear();
        return;
    }
    if (n == 0) { return; }
    move(x, EPS);
    want = number_of(s->c);
    move(x, -2 * EPS);
    want = (want - number_of(s->c)) / (2 * EPS);
    move(x, EPS);
    have = along(g);
    (void)snprintf(text, sizeof text, "input %d: first derivative %.9g, differences say %.9g%s", which, have, want, g ? "" : " (none)");
    if (!say(near(have, want, 1), text)) { return; }
    if (!g) { return; }
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    if (opd_tensor_requires_grad(g)) {
        h = opd_sum(opd_mul(g, weights(g, 2000)));
        if (opd_autograd_grad(&h, 1, &x, 1, &o, &gg)) {
            if (strstr(opd_error_message(), "once_differentiable")) { opd_error_clear(); return; }      /* refused */
            printf("    %s input %d, second: %s\n", what, which, opd_error_message());
            CHECK_OK();
            opd_error_clear();
            return;
        }
    }
    move(x, EPS);
    want = gradient_number(s->c, x);
    move(x, -2 * EPS);
    want = (want - gradient_number(s->c, x)) / (2 * EPS);
    move(x, EPS);
    have = along(gg);
    (void)snprintf(text, sizeof text, "input %d: second derivative %.9g, differences say %.9g%s", which, have, want, gg ? "" : " (none)");
    (void)say(near(have, want, 1), text);
    CHECK_OK();
    opd_error_clear();
}

//-- failing backward functions -------------------------------------------------------------------------------------------

/* While the mode is on, call number fails_at of the thread fails (0: none). */
static int64_t calls, fails_at;
static bool silently;
static int failing_fallback(opd_call *call) {
    const opd_keyset mode = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_7 + 1);
    if (++calls == fails_at) { return silently ? -1 : opd_fail(OPD_ERROR_USER, "call %d is made to fail", (int)calls); }
    return opd_redispatch(call, opd_keyset_minus(opd_call_keys(call), mode));
}
static int failing_backward(opd_tensor **out, int n, opd_tensor **w, opd_tensor **in, int nin, bool create, opd_tensor **g) {
    opd_key_guard guard = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_7 + 1));
    opd_backward_options o;
    int rc;
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    o.retain_graph = true;
    o.create_graph = create;
    o.grad_outputs = w;
    calls = 0;
    rc = opd_autograd_grad(out, n, in, nin, &o, g);
    opd_keys_restore(guard);
    return rc;
}
static bool equal(opd_tensor *const *a, opd_tensor *const *b, int n) {
    int64_t k;
    int i;
    for (i = 0; i < n; i++) {
        if (!a[i] != !b[i]) { return false; }
        for (k = 0; a[i] && k < opd_numel(a[i]); k++) {
            double x = case_get(a[i], k), y = case_get(b[i], k);
            if (memcmp(&x, &y, sizeof x) != 0 && !(isnan(x) && isnan(y))) { return false; }
        }
    }
    return true;
}
static void test_failing(const subject *s) {
    opd_tensor *in[MOST_INPUTS], *out[MOST_RESULTS], *w[MOST_RESULTS], *right[MOST_INPUTS], *g[MOST_INPUTS];
    int i, m, n = again(s) ? inputs_of(s->c, in) : 0;
    int64_t most, at;
    for (i = 0; i < n; i++) {
        if (!opd_tensor_set_requires_grad(in[i], true)) { CHECK_OK(); return; }
    }
    m = n ? graph_of(s->c, out, w) : 0;
    for (i = n - 1; i >= 0 && m < 0; i--) {       /* an argument without a derivative: try without the last ones */
        opd_error_clear();
        (void)opd_tensor_set_requires_grad(in[i], false);
        n = i;
        m = n ? graph_of(s->c, out, w) : 0;
    }
    opd_error_clear();
    if (m <= 0) { return; }
    for (int create = 0; create < 2; create++) {
        fails_at = 0;
        if (failing_backward(out, m, w, in, n, create, right)) { opd_error_clear(); CHECK(true); return; }
        most = calls;
        for (at = 1; at <= most; at++) {
            int64_t live = opd_memory_stats().live;
            fails_at = at;
            silently = (at & 1) != 0;
            OPD_SCOPE {
                int rc = failing_backward(out, m, w, in, n, create, g);
                char text[300];
                (void)snprintf(text, sizeof text, "call %d of %d fails: %d, %s", (int)at, (int)most, rc, opd_error_message());
                if (!say(rc == -1 && !opd_ok() && (silently || (opd_error_code() == OPD_ERROR_USER && strstr(opd_error_message(), "is made to fail"))), text)) {
                    at = most;
                }
                opd_error_clear();
            }
            if (!say(opd_memory_stats().live <= live, "memory is lost")) { break; }
        }
        fails_at = 0;
        OPD_SCOPE { (void)say(failing_backward(out, m, w, in, n, create, g) == 0 && equal(g, right, n), "the next backward is another one"); }
        opd_error_clear();
    }
}

//-- one operator ------------------------------------------------------------------------------------------------------------

static void test_operator(void *arg) {
    static op_case c;
    subject s;
    int i;
    s.op = (const opd_op *)arg;
    s.card = opd_op_card(s.op);
    s.index = 0;
    s.c = &c;
    s.text = s.card->cases;
    do {
        const char *rest = s.text;
        opd_scope scope = opd_scope_open();
        c.op = s.op;
        c.dtype = OPD_FLOAT32;
        c.layout = CASE_CONTIGUOUS;
        c.smooth = c.meta = false;
        if (!case_read_next(&c, &rest)) { opd_scope_close(&scope); break; }
        opd_scope_close(&scope);
        for (i = 0; i < MOST_INPUTS; i++) { OPD_SCOPE { one_input(&s, i); } }
        OPD_SCOPE { test_failing(&s); }
        s.text = rest;
        s.index++;
    } while (*s.text);
    CHECK(true);
}

static void add_operators(void) {
    opd_library *lib;
    (void)opd_key_define(OPD_F_USER_7 + 1, "FailingMode");
    lib = opd_library_open(OPD_IMPL, "_", "FailingMode", "t", 1);
    if (!lib || opd_fallback(lib, failing_fallback)) { printf("%s\n", opd_error_message()); exit(1); }
    add_builtin_operators(test_operator, has_derivative);
}

CHECK_MAIN_ADD(add_operators)
