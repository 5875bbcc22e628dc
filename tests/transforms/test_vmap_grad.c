/* vmap and derivatives of every built-in operator that has a derivative, with the sample arguments of its
   descriptor.  vmap of opd_grad and of opd_jvp equal a loop over the examples, in one level and two.  opd_grad and
   opd_jvp of a vmap, and plain autograd through a vmap, give the sum of the same gradients.  Functional and in-place
   forms.  One case per operator. */
#include "../../opdispatch.h"
#include "../vmap_cases.h"

/* The operator as a function of the slots in `of`, to a number: its results that have gradients, weighted. */
typedef struct number {
    const plan *p;
    int slots[MOST_SLOTS], nslots;
    unsigned results, batched;
    opd_tensor *weights[MOST_RESULTS];
    working w;
    int level;                                    /* of a vmap in it */
    int64_t size;
} number;

static double weight(int seed, int64_t k) { return case_random(seed, k) - 0.3; }
/* The results of a call. */
static int call_number(number *f, opd_tensor *const *in, results *r) {
    int k;
    for (k = 0; k < f->nslots; k++) { slot_set(&f->w, f->p->slots[f->slots[k]], f->p->written >> f->slots[k] & 1 ? opd_clone(in[k]) : in[k]); }
    if (opd_call_all((opd_op *)(uintptr_t)f->p->op, r->rets, f->w.args, f->p->nargs)) { return -1; }
    r->n = results_of(f->p->op, r->rets, r->t);
    return 0;
}
static opd_tensor *sum_up(opd_tensor *sum, opd_tensor *t) { return sum ? opd_add(sum, t) : t; }
static int run_number(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    number *f = (number *)user;
    results r;
    int i;
    (void)n;
    out[0] = NULL;
    if (call_number(f, in, &r)) { return -1; }
    for (i = 0; i < r.n; i++) {
        if (f->results >> i & 1) { out[0] = sum_up(out[0], opd_sum(opd_mul(r.t[i], f->weights[i]))); }
    }
    return out[0] ? 1 : -1;
}
/* The sum of it over a vmap. */
static int run_mapped(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    number *f = (number *)user;
    opd_tensor *x[MOST_SLOTS];
    int k, level = opd_vmap_begin(3, OPD_RANDOM_ERROR), rc = level < 0 ? -1 : 0;
    for (k = 0; k < n && rc == 0; k++) {
        x[k] = f->batched >> f->slots[k] & 1 ? opd_vmap_wrap(in[k], 0, level) : in[k];
        if (!x[k]) { rc = -1; }
    }
    if (rc == 0) { rc = run_number(f, x, n, out) == 1 ? 0 : -1; }
    if (rc == 0 && !(out[0] = opd_vmap_unwrap(out[0], 0, level))) { rc = -1; }
    if (level >= 0 && opd_vmap_end(level)) { rc = -1; }
    return rc == 0 && (out[0] = opd_sum(out[0])) ? 1 : -1;
}
static int run_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_transform_options o;
    int all[MOST_SLOTS], k;
    memset(&o, 0, sizeof o);
    for (k = 0; k < n; k++) { all[k] = k; }
    o.argnums = all;
    o.nargnums = n;
    return opd_grad(run_number, user, in, n, &o, out, OPD_TRANSFORM_OUTPUTS);
}
/* Inputs, then their tangents: the tangent of the number. */
static int run_jvp(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *value[OPD_TRANSFORM_OUTPUTS];
    return opd_jvp(run_number, user, in, in + n / 2, n / 2, NULL, value, out, OPD_TRANSFORM_OUTPUTS);
}
static int run_jvp_mapped(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *value[OPD_TRANSFORM_OUTPUTS];
    return opd_jvp(run_mapped, user, in, in + n / 2, n / 2, NULL, value, out, OPD_TRANSFORM_OUTPUTS);
}

static void begin(number *f) { working_of(&f->w, f->p->args[0], f->p->nargs); }
/* Which results of the first example require grad when slot `which` does; 0: it has no derivative. */
static unsigned recorded(number *f, int which) {
    results r;
    unsigned m = 0;
    int i;
    opd_tensor *in = opd_tensor_set_requires_grad(opd_clone(slot_get(f->p->args[0], f->p->slots[which])), true);
    begin(f);
    f->slots[0] = which;
    f->nslots = 1;
    if (!in || call_number(f, &in, &r)) { opd_error_clear(); return 0; }
    for (i = 0; i < r.n; i++) {
        if (!opd_tensor_requires_grad(r.t[i]) || opd_dtype(r.t[i]) != OPD_FLOAT64) { continue; }
        OPD_SCOPE {
            opd_backward_options o;
            opd_tensor *g, *one = opd_ones_like(r.t[i]);
            memset(&o, 0, sizeof o);
            o.grad_outputs = &one;
            o.allow_unused = o.retain_graph = true;
            if (opd_autograd_grad(&r.t[i], 1, &in, 1, &o, &g)) { opd_error_clear(); } else { m |= 1u << i; }
        }
    }
    return m;
}
static bool make_number(number *f, const plan *p) {
    results r;
    unsigned m[MOST_SLOTS];
    int which[MOST_SLOTS], n = 0, s, i;
    memset(f, 0, sizeof *f);
    f->p = p;
    for (s = 0; s < p->nslots; s++) {
        const opd_tensor *t = slot_get(p->args[0], p->slots[s]);
        if (opd_dtype(t) != OPD_FLOAT64 || constant_argument(p->op, opd_schema_arg_name(opd_op_schema(p->op), p->slots[s].arg))) { continue; }
        if ((m[n] = recorded(f, s)) != 0) { which[n++] = s; }
    }
    for (i = 0; i < n; i++) { f->results |= m[i]; f->slots[i] = which[i]; }
    f->nslots = n;
    begin(f);
    if (n == 0) { return false; }
    OPD_SCOPE {
        opd_tensor *in[MOST_SLOTS];
        for (i = 0; i < n; i++) { in[i] = slot_get(p->args[0], p->slots[which[i]]); }
        if (call_number(f, in, &r)) { opd_error_clear(); r.n = 0; }
        for (i = 0; i < r.n; i++) {
            int64_t k;
            opd_tensor *w = f->results >> i & 1 ? opd_tensor_new(opd_ints_of(opd_sizes(r.t[i]), opd_ndim(r.t[i])), OPD_FLOAT64) : NULL;
            for (k = 0; w && k < opd_numel(w); k++) { case_put(w, k, weight(1000 + i, k)); }
            f->weights[i] = w ? opd_keep(w) : NULL;
        }
    }
    return r.n > 0;
}
static void drop_number(number *f) { int i; for (i = 0; i < MOST_RESULTS; i++) { opd_release(f->weights[i]); } }

//-- the comparison --------------------------------------------------------------------------------------------------------

static opd_tensor *of_example(const number *f, int k, int example) {
    return slot_get(f->p->args[f->batched >> f->slots[k] & 1 ? example : 0], f->p->slots[f->slots[k]]);
}
static void saying(const char *text) {
    char *at = strstr(what, " :: ");
    if (at) { *at = 0; }
    if (text) { (void)snprintf(what + strlen(what), sizeof what - strlen(what), " :: %s", text); }
}
static void near(opd_tensor *got, opd_tensor *want) {
    if (went_well(got && want ? 0 : -1)) { same_values(opd_detach(got), opd_detach(want), 1e-7); }
}
/* Gradients and tangents of one example by themselves. */
static bool alone(number *f, int example, opd_tensor **grads, opd_tensor **tangent, bool forward) {
    opd_tensor *in[2 * MOST_SLOTS], *y[OPD_TRANSFORM_OUTPUTS];
    opd_backward_options o;
    int k;
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    for (k = 0; k < f->nslots; k++) { in[k] = opd_tensor_set_requires_grad(opd_clone(of_example(f, k, example)), true); }
    if (run_number(f, in, f->nslots, y) != 1 || opd_autograd_grad(y, 1, in, f->nslots, &o, grads)) { return false; }
    for (k = 0; k < f->nslots; k++) { if (!grads[k]) { grads[k] = opd_zeros_like(opd_detach(in[k])); } }
    for (k = 0; k < f->nslots; k++) {
        in[k] = of_example(f, k, example);
        in[f->nslots + k] = of_example(f, k, (example + 1) % EXAMPLES);
    }
    if (forward && run_jvp(f, in, 2 * f->nslots, tangent) != 1) { return false; }
    return opd_ok();
}
/* vmap of fn (n inputs), batched where f says so; levels: 1, or 2 with 2 times 3 examples. */
static int map_it(number *f, opd_transform_fn fn, opd_tensor *const *in, int n, int levels, opd_tensor **out) {
    opd_tensor *x[2 * MOST_SLOTS];
    int level = opd_vmap_begin(levels == 2 ? 2 : 3, OPD_RANDOM_ERROR), inner = levels == 2 && level >= 0 ? opd_vmap_begin(3, OPD_RANDOM_ERROR) : 0, m = -1, k;
    begin(f);
    for (k = 0; k < n && opd_ok(); k++) {
        x[k] = in[k];
        if (!(f->batched >> f->slots[k % f->nslots] & 1)) { continue; }
        x[k] = opd_vmap_wrap(x[k], 0, level);
        if (x[k] && inner) { x[k] = opd_vmap_wrap(x[k], 0, inner); }
    }
    if (opd_ok()) { m = fn(f, x, n, out); }
    for (k = 0; k < m && inner; k++) { if (!(out[k] = opd_vmap_unwrap(out[k], 0, inner))) { m = -1; } }
    if (inner) { (void)opd_vmap_end(inner); }
    for (k = 0; k < m; k++) { if (!(out[k] = opd_vmap_unwrap(out[k], 0, level))) { m = -1; } }
    (void)opd_vmap_end(level);
    return m;
}
static void compare(number *f, unsigned batched, bool all) {
    static opd_tensor *grads[EXAMPLES][MOST_SLOTS];
    opd_tensor *t[EXAMPLES], *tangents[EXAMPLES], *in[2 * MOST_SLOTS], *out[OPD_TRANSFORM_OUTPUTS], *want[MOST_SLOTS], *y[OPD_TRANSFORM_OUTPUTS];
    const int levels = all ? 2 : 1;
    bool forward = true;
    opd_transform_options o;
    opd_backward_options b;
    int argnums[MOST_SLOTS], i, k, m, count, level;
    saying(NULL);
    f->batched = batched;
    for (i = 0; i < (levels == 2 ? EXAMPLES : 3); i++) {
        begin(f);
        if (!alone(f, i, grads[i], &tangents[i], forward)) {
            opd_error_clear();
            if (!forward) { return; }
            forward = false;
            i = -1;
        }
    }
    for (level = 1; level <= levels; level++) {
        count = level == 2 ? EXAMPLES : 3;
        for (k = 0; k < f->nslots; k++) {
            for (i = 0; i < count; i++) { t[i] = of_example(f, k, i); }
            in[k] = batched >> f->slots[k] & 1 ? together(t, level == 2 ? 2 : 3, level == 2 ? 3 : 0, FIRST) : t[0];
            for (i = 0; i < count; i++) { t[i] = of_example(f, k, (i + 1) % EXAMPLES); }
            in[f->nslots + k] = batched >> f->slots[k] & 1 ? together(t, level == 2 ? 2 : 3, level == 2 ? 3 : 0, FIRST) : t[0];
        }
        saying(level == 2 ? "vmap of vmap of grad" : "vmap of grad");
        m = map_it(f, run_grad, in, f->nslots, level, out);
        if (went_well(m) && say(m == f->nslots, "another number of gradients")) {
            for (k = 0; k < m; k++) {
                for (i = 0; i < count; i++) { t[i] = grads[i][k]; }
                near(out[k], together(t, level == 2 ? 2 : 3, level == 2 ? 3 : 0, FIRST));
            }
        }
        saying(level == 2 ? "vmap of vmap of jvp" : "vmap of jvp");
        if (forward && went_well(m = map_it(f, run_jvp, in, 2 * f->nslots, level, out))) {
            near(out[0], together(tangents, level == 2 ? 2 : 3, level == 2 ? 3 : 0, FIRST));
        }
        if (level == 2) { return; }
        for (k = 0; k < f->nslots; k++) {         /* of the sum over all examples */
            argnums[k] = k;
            for (i = 0; i < 3; i++) { t[i] = grads[i][k]; }
            want[k] = together(t, 3, 0, FIRST);
            if (!(batched >> f->slots[k] & 1)) { want[k] = opd_sum_dim(want[k], OPD_INTS(0), false); }
        }
        saying("the tape through vmap");
        memset(&b, 0, sizeof b);
        b.allow_unused = true;
        for (k = 0; k < f->nslots; k++) { in[k] = opd_tensor_set_requires_grad(opd_clone(in[k]), true); }
        begin(f);
        if (went_well(run_mapped(f, in, f->nslots, y) == 1 ? 0 : -1) && went_well(opd_autograd_grad(y, 1, in, f->nslots, &b, out))) {
            for (k = 0; k < f->nslots; k++) { if (out[k]) { near(out[k], want[k]); } else { near(opd_zeros_like(opd_detach(in[k])), want[k]); } }
        }
        for (k = 0; k < f->nslots; k++) { in[k] = opd_detach(in[k]); }
        saying("grad of vmap");
        memset(&o, 0, sizeof o);
        o.argnums = argnums;
        o.nargnums = f->nslots;
        begin(f);
        if (went_well(opd_grad(run_mapped, f, in, f->nslots, &o, out, OPD_TRANSFORM_OUTPUTS))) { for (k = 0; k < f->nslots; k++) { near(out[k], want[k]); } }
        saying("jvp of vmap");
        begin(f);
        if (forward && went_well(run_jvp_mapped(f, in, 2 * f->nslots, out))) {
            near(out[0], opd_sum(together(tangents, 3, 0, FIRST)));
        }
    }
}

static void test_plan(const plan *p) {
    static number f;
    int k;
    const int failures = check_failures;
    OPD_SCOPE {
        if (make_number(&f, p)) {
            unsigned all = 0;
            for (k = 0; k < f.nslots; k++) { all |= 1u << f.slots[k]; }
            for (k = 0; k < f.nslots && f.nslots > 1 && check_failures == failures; k++) {
                const unsigned set = 1u << f.slots[k];
                if (!(p->written & ~set)) { OPD_SCOPE { compare(&f, set, false); } }
            }
            if (!(p->written & ~all) && check_failures == failures) { OPD_SCOPE { compare(&f, all, true); } }
        }
        drop_number(&f);
    }
    opd_error_clear();
}

static void test_operator(void *arg) {
    static opd_value args[EXAMPLES][OPD_MAX_ARGS];
    const opd_op *op = (const opd_op *)arg, *form;
    const opd_op_desc *card = opd_op_card(op);
    const char *text = cases_of(op), *rest;
    int index = 0, k, behind;
    plan p;
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    do {
        OPD_SCOPE {
            if (read_all(op, text, index, &rest, OPD_FLOAT64) && plan_of(&p, op, readings[0].args)) {
                for (k = 0; k < EXAMPLES; k++) { p.args[k] = readings[k].args; }
                test_plan(&p);
                form = card->inplace ? form_of(op, card->inplace) : NULL;
                for (k = 0; k < EXAMPLES && form; k++) { if (!other_form(&readings[k], form, args[k], &behind)) { form = NULL; } }
                if (form && plan_of(&p, form, args[0])) {
                    saying(NULL);
                    (void)snprintf(what + strlen(what), sizeof what - strlen(what), " in place");
                    for (k = 0; k < EXAMPLES; k++) { p.args[k] = args[k]; }
                    test_plan(&p);
                }
            }
        }
        text = rest;
        index++;
    } while (*text && !readings[0].wrong);
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
    CHECK(true);
}

static void add_operators(void) {
    add_builtin_operators(test_operator, has_derivative);
}
CHECK_MAIN_ADD(add_operators)
