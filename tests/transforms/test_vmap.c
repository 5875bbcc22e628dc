/* vmap of every built-in operator, with the sample arguments of its descriptor.  The result equals that of a loop
   over the examples: for each set of batched tensors, with the batch dim first, last and between, in two nested
   levels, without any example, in place and with out=.  Gradients by vmap of grad equal those of each example.  One
   case per operator; a part of a name as program argument selects operators.  With VMAP_LOOPS=1 in the environment,
   the names of operators that run example by example are printed ("loop NAME"). */
#include "../../opdispatch.h"
#include "../vmap_cases.h"
#include "../further_cases.h"

static bool looped;

static int one_example(const plan *p, unsigned outer, unsigned inner, int i, int j, results *r, opd_tensor **wrote) {
    static working w;
    int s;
    working_of(&w, p->args[0], p->nargs);
    for (s = 0; s < p->nslots; s++) {
        opd_tensor *t = slot_get(p->args[reading(outer, inner, s, i, j)], p->slots[s]);
        wrote[s] = NULL;
        if (p->written >> s & 1 && !(t = wrote[s] = opd_clone(t))) { return -1; }
        slot_set(&w, p->slots[s], t);
    }
    if (opd_call_all((opd_op *)(uintptr_t)p->op, r->rets, w.args, p->nargs)) { return -1; }
    r->n = results_of(p->op, r->rets, r->t);
    return 0;
}
//-- vmap ----------------------------------------------------------------------------------------------------------------

/* The same by vmap: outer is the level around, inner the level inside (0: there is none).  stacked: the slots' tensors. */
static int vmapped(const plan *p, unsigned outer, unsigned inner, int where, opd_randomness randomness, results *r,
                   opd_tensor **stacked) {
    static working w;
    const int n0 = inner ? 2 : 3, n1 = inner ? 3 : 0;
    const int64_t slow = opd_vmap_fallback_count();
    int s, i, j, level, deeper = 0, rc = 0;
    opd_tensor *t[EXAMPLES];
    working_of(&w, p->args[0], p->nargs);
    for (s = 0; s < p->nslots; s++) {
        const bool o = (outer >> s & 1) != 0, in = (inner >> s & 1) != 0;
        stacked[s] = NULL;
        if (!o && !in) { continue; }
        for (i = 0; i < (o ? n0 : 1); i++) {
            for (j = 0; j < (in ? n1 : 1); j++) { t[i * (in ? n1 : 1) + j] = slot_get(p->args[reading(outer, inner, s, i, j)], p->slots[s]); }
        }
        stacked[s] = o ? together(t, n0, in ? n1 : 0, where) : together(t, n1, 0, where);
        if (!stacked[s]) { return -1; }
    }
    if ((level = opd_vmap_begin(n0, randomness)) < 0) { return -1; }
    if (inner && (deeper = opd_vmap_begin(n1, randomness)) < 0) { rc = -1; }
    for (s = 0; s < p->nslots && rc == 0; s++) {
        opd_tensor *x = stacked[s];
        if (!x) { continue; }
        if (outer >> s & 1) { x = opd_vmap_wrap(x, dim_at(where, opd_ndim(x) - 1), level); }
        if (x && (inner >> s & 1)) { x = opd_vmap_wrap(x, dim_at(where, opd_ndim(x) - 1), deeper); }
        if (!x) { rc = -1; break; }
        slot_set(&w, p->slots[s], x);
    }
    if (rc == 0) { rc = opd_call_all((opd_op *)(uintptr_t)p->op, r->rets, w.args, p->nargs); }
    r->n = rc ? 0 : results_of(p->op, r->rets, r->t);
    for (i = 0; i < r->n && inner && rc == 0; i++) { if (!(r->t[i] = opd_vmap_unwrap(r->t[i], dim_at(where, opd_ndim(r->t[i])), deeper))) { rc = -1; } }
    if (inner && opd_vmap_end(deeper)) { rc = -1; }
    for (i = 0; i < r->n && rc == 0; i++) { if (!(r->t[i] = opd_vmap_unwrap(r->t[i], dim_at(where, opd_ndim(r->t[i])), level))) { rc = -1; } }
    if (opd_vmap_end(level)) { rc = -1; }
    if (opd_vmap_fallback_count() > slow) { looped = true; }
    return rc;
}

//-- the comparison ------------------------------------------------------------------------------------------------------

/* The strides of an example decide. */
static bool depends_on_strides(const opd_op *op) {
    static const char *const list[] = {"as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter", "_reshape_alias",
                                       "_reshape_alias_copy", "resize_", "resize_as_", "set_", "view_as_real", "stride", "sym_stride",
                                       "sym_is_contiguous", NULL};
    return named(op, list);
}
/* The numbers decide the sizes of the result. */
static bool dynamic(const opd_op *op) {
    static const char *const list[] = {"repeat_interleave", "masked_select", "nonzero", "bincount", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive", "index", "index_put", "index_put_", "argwhere",
                                       "nonzero_numpy", "nms", NULL};
    return named(op, list) || strcmp(opd_op_name(op), "aten::where") == 0;
}
/* What it says is a reason that PyTorch has, too. */
static bool may_refuse(const plan *p) {
    const char *text = opd_error_message();
    const uint32_t tags = opd_op_tags(p->op);
    if (dynamic(p->op) && (strstr(text, "do not support batching operators that can output dynamic shape") || strstr(text, "stack expects each tensor to be equal size"))) { return true; }
    if (strstr(text, "last dimension with stride 1") || strstr(text, "view size is not compatible")) { return true; }
    if (tags & OPD_OPTAG_DATA_DEPENDENT_OUTPUT || strstr(opd_op_name(p->op), "is_nonzero") || strstr(opd_op_name(p->op), "is_same_size")) {
        return strstr(text, "vmap: It looks like you're calling .item() on a Tensor") || strstr(text, "Batching rule not implemented for");
    }
    return false;
}
static bool same_number(const opd_value *a, const opd_value *b) {
    return a->tag == b->tag && (a->tag == OPD_TAG_FLOAT ? fabs(a->u.d - b->u.d) < 1e-6 : a->tag == OPD_TAG_INT || a->tag == OPD_TAG_BOOL ? a->u.i == b->u.i : true);
}
/* Compares one way to batch with the loop.  False: something was wrong, or there is nothing to compare. */
static bool compare(const plan *p, const char *name, unsigned outer, unsigned inner, int where, bool values) {
    static results one[EXAMPLES], got;
    opd_tensor *wrote[EXAMPLES][MOST_SLOTS], *stacked[MOST_SLOTS], *t[EXAMPLES], *want;
    const int n0 = inner ? 2 : 3, n1 = inner ? 3 : 1, failures = check_failures;
    int i, j, k, s, rc;
    bool shapes = true;
    size_t end = strlen(what);
    (void)snprintf(what + end, sizeof what - end, " %s batched %x%s%.0x%s", name, outer, inner ? " inside " : "", inner, where == LAST ? " last" : where == MIDDLE ? " middle" : "");
    for (i = 0; i < n0; i++) {
        for (j = 0; j < n1; j++) {
            k = i * n1 + j;
            if (one_example(p, outer, inner, i, j, &one[k], wrote[k])) { opd_error_clear(); what[end] = 0; CHECK(true); return false; }
            for (s = 0; s < one[k].n && s < one[0].n; s++) { shapes = shapes && same_shape(one[k].t[s], one[0].t[s]); }
            shapes = shapes && one[k].n == one[0].n;
        }
    }
    rc = vmapped(p, outer, inner, where, OPD_RANDOM_DIFFERENT, &got, stacked);
    if (rc && !opd_ok() && may_refuse(p)) { opd_error_clear(); CHECK(true); }
    else if (!shapes) { (void)say(rc != 0 && !opd_ok(), "examples of different shapes are no error"); opd_error_clear(); }
    else if (went_well(rc) && say(got.n == one[0].n, "another number of results")) {
        for (k = 0; k < got.n; k++) {
            for (i = 0; i < n0 * n1; i++) { t[i] = one[i].t[k]; }
            want = together(t, n0, inner ? n1 : 0, where);
            if (!went_well(want ? 0 : -1)) { continue; }
            (void)say(opd_dtype(got.t[k]) == opd_dtype(want), "another dtype");
            if (values) { same_values(got.t[k], want, 2e-5); } else { (void)say(same_shape(got.t[k], want), "shapes differ"); }
        }
        for (k = 0; k < opd_schema_nreturns(opd_op_schema(p->op)); k++) {
            for (i = 0; i < n0 * n1; i++) { (void)say(same_number(&got.rets[k], &one[i].rets[k]), "another number"); }
        }
        for (s = 0; s < p->nslots; s++) {
            if (!(p->written >> s & 1)) { continue; }
            for (i = 0; i < n0 * n1; i++) { t[i] = wrote[i][s]; }
            if (!stacked[s] || !values || depends_on_strides(p->op) || opd_op_tags(p->op) & OPD_OPTAG_INPLACE_VIEW) { continue; }
            want = together(t, n0, inner ? n1 : 0, where);
            if (went_well(want ? 0 : -1)) { (void)say(opd_dtype(stacked[s]) == opd_dtype(want), "what is written has another dtype"); same_values(stacked[s], want, 2e-5); }
        }
    }
    what[end] = 0;
    return check_failures == failures;
}
/* A batched tensor is written to a tensor that is not batched: an error. */
static void no_room(const plan *p, const char *name, unsigned outer) {
    static results got;
    opd_tensor *stacked[MOST_SLOTS];
    char text[400];
    const int beta = arg_named(p->op, "beta");
    int rc;
    bool right;
    if (one_example(p, 0, 0, 0, 0, &got, stacked)) { opd_error_clear(); return; }
    if (beta >= 0 && p->args[0][beta].tag == OPD_TAG_INT && p->args[0][beta].u.i == 0) { return; }   /* what is batched may be what nobody reads */
    rc = vmapped(p, outer, 0, FIRST, OPD_RANDOM_DIFFERENT, &got, stacked);
    right = rc != 0 && !opd_ok() && may_refuse(p);
    right = right || (rc != 0 && !opd_ok() && (may_refuse(p) || strstr(opd_error_message(), "is not possible because there exists a Tensor `other` in extra_args")));
    (void)snprintf(text, sizeof text, "%s batched %x into what is not: %.200s", name, outer, rc ? opd_error_message() : "no error");
    opd_error_clear();
    (void)say(right, text);
}
/* No examples.  The slots of `set` are batched. */
static bool none(const plan *p, const char *name, unsigned set) {
    static working w;
    static results one, got;
    opd_tensor *wrote[MOST_SLOTS], *x;
    const int failures = check_failures;
    const size_t end = strlen(what);
    int s, level, rc = 0;
    (void)snprintf(what + end, sizeof what - end, " %s without examples, batched %x", name, set);
    if (one_example(p, set, 0, 0, 0, &one, wrote)) { opd_error_clear(); what[end] = 0; return false; }
    working_of(&w, p->args[0], p->nargs);
    if (!went_well(level = opd_vmap_begin(0, OPD_RANDOM_DIFFERENT))) { return false; }
    for (s = 0; s < p->nslots && rc == 0; s++) {
        x = slot_get(w.args, p->slots[s]);
        if (!(set >> s & 1)) {
            if (p->written >> s & 1 && !(x = opd_clone(x))) { rc = -1; } else { slot_set(&w, p->slots[s], x); }
            continue;
        }
        {
            int64_t sizes[OPD_MAX_DIMS];
            sizes[0] = 0;
            memcpy(sizes + 1, opd_sizes(x), (size_t)opd_ndim(x) * sizeof(int64_t));
            x = opd_tensor_new(opd_ints_of(sizes, opd_ndim(x) + 1), opd_dtype(x));
        }
        if (!x || !(x = opd_vmap_wrap(x, 0, level))) { rc = -1; } else { slot_set(&w, p->slots[s], x); }
    }
    if (rc == 0) { rc = opd_call_all((opd_op *)(uintptr_t)p->op, got.rets, w.args, p->nargs); }
    if (rc && may_refuse(p)) { opd_error_clear(); rc = 1; }
    else if (went_well(rc)) {
        got.n = results_of(p->op, got.rets, got.t);
        (void)say(got.n == one.n, "another number of results");
        for (s = 0; s < got.n && s < one.n; s++) {
            x = opd_vmap_unwrap(got.t[s], 0, level);
            if (!went_well(x ? 0 : -1)) { continue; }
            if (!dynamic(p->op)) { (void)say(opd_ndim(x) == opd_ndim(one.t[s]) + 1 && opd_size(x, 0) == 0 &&
                      memcmp(opd_sizes(x) + 1, opd_sizes(one.t[s]), (size_t)opd_ndim(one.t[s]) * sizeof(int64_t)) == 0, "another shape"); }
            (void)say(opd_dtype(x) == opd_dtype(one.t[s]), "another dtype");
        }
    }
    (void)opd_vmap_end(level);
    what[end] = 0;
    return check_failures == failures;
}

/* Random operators in 'error' mode. */
static void refuse_random(const plan *p) {
    static results got;
    opd_tensor *stacked[MOST_SLOTS];
    const bool random = opd_schema_is_nondeterministic(opd_op_schema(p->op), p->args[0]);
    const int rc = vmapped(p, (1u << p->nslots) - 1, 0, FIRST, OPD_RANDOM_ERROR, &got, stacked);
    if (!random) { (void)went_well(rc); return; }
    if (rc == 0 && p->args[0][1].tag == OPD_TAG_FLOAT && p->args[0][1].u.d == 0) { return; }      /* nothing to drop */
    (void)say(rc != 0 && strstr(opd_error_message(), "vmap: called random operation while in randomness error mode"), "random, and no error");
    opd_error_clear();
}

//-- gradients of each example ------------------------------------------------------------------------------------------

typedef struct subject { const plan *p; const opd_value *args; const unsigned *wrt; } subject;
/* The sum of what the operator gives, squared so that the results themselves count. */
static int summed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const subject *u = (const subject *)user;
    working w;
    results *r = (results *)calloc(1, sizeof *r);
    opd_tensor *total = NULL;
    int s, k, i = 0;
    if (!r) { return -1; }
    working_of(&w, u->args, u->p->nargs);
    for (s = 0; s < u->p->nslots && i < n; s++) { if (*u->wrt >> s & 1) { slot_set(&w, u->p->slots[s], in[i++]); } }
    if (opd_call_all((opd_op *)(uintptr_t)u->p->op, r->rets, w.args, u->p->nargs) == 0) {
        k = results_of(u->p->op, r->rets, r->t);
        if (first_result_only(u->p->op)) { k = 1; }
        for (s = 0; s < k; s++) {
            opd_tensor *x = r->t[s];
            if (!opd_dtype_is_floating(opd_dtype(x))) { continue; }
            x = opd_sum(opd_mul(x, x));
            total = total ? opd_add(total, x) : x;
        }
    }
    free(r);
    out[0] = total;
    return total ? 1 : -1;
}
static double largest(const opd_tensor *t) {
    double most = 0;
    int64_t i;
    for (i = 0; i < opd_numel(t); i++) { if (fabs(case_get(t, i)) > most && !isinf(case_get(t, i))) { most = fabs(case_get(t, i)); } }
    return most;
}
/* Gradients by vmap of grad against those of each example alone. */
static void gradients(const plan *p, unsigned set) {
    static working w;
    const opd_schema *schema = opd_op_schema(p->op);
    unsigned wrt = 0;
    opd_tensor *in[MOST_SLOTS], *one[3][MOST_SLOTS], *got[OPD_TRANSFORM_OUTPUTS], *t[3], *want;
    subject u;
    opd_transform_options o;
    int argnums[MOST_SLOTS], s, k, n = 0, level, rc;
    const size_t end = strlen(what);
    memset(&o, 0, sizeof o);
    for (s = 0; s < p->nslots; s++) {
        if (opd_dtype_is_floating(opd_dtype(slot_get(p->args[0], p->slots[s]))) &&
            !constant_argument(p->op, opd_schema_arg_name(schema, p->slots[s].arg))) { wrt |= 1u << s; argnums[n] = n; n++; }
    }
    if (!n || p->written) { return; }
    (void)snprintf(what + end, sizeof what - end, " gradients batched %x", set);
    u.p = p; u.wrt = &wrt;
    o.argnums = argnums;
    o.nargnums = n;
    for (k = 0; k < 3; k++) {
        int i = 0;
        working_of(&w, p->args[0], p->nargs);
        for (s = 0; s < p->nslots; s++) {
            if (set >> s & 1) { slot_set(&w, p->slots[s], slot_get(p->args[k], p->slots[s])); }
            if (wrt >> s & 1) { in[i++] = slot_get(w.args, p->slots[s]); }
        }
        u.args = w.args;
        if (opd_grad(summed, &u, in, n, &o, one[k], MOST_SLOTS) < 0) { opd_error_clear(); what[end] = 0; return; }
    }
    working_of(&w, p->args[0], p->nargs);
    if (!went_well(level = opd_vmap_begin(3, OPD_RANDOM_DIFFERENT))) { return; }
    for (n = s = 0; s < p->nslots; s++) {
        if (set >> s & 1) {
            for (k = 0; k < 3; k++) { t[k] = slot_get(p->args[k], p->slots[s]); }
            slot_set(&w, p->slots[s], opd_vmap_wrap(opd_stack(opd_tensors_of(t, 3), 0), 0, level));
        }
        if (wrt >> s & 1) { in[n++] = slot_get(w.args, p->slots[s]); }
    }
    u.args = w.args;
    rc = opd_ok() ? opd_grad(summed, &u, in, n, &o, got, OPD_TRANSFORM_OUTPUTS) : -1;
    for (k = 0; k < n && rc >= 0; k++) { if (!(got[k] = opd_vmap_unwrap(got[k], 0, level))) { rc = -1; } }
    (void)opd_vmap_end(level);
    if (rc < 0 && !opd_ok() && may_refuse(p)) { opd_error_clear(); CHECK(true); }
    else if (went_well(rc)) {
        for (s = 0; s < n; s++) {
            for (k = 0; k < 3; k++) { t[k] = one[k][s]; }
            want = opd_stack(opd_tensors_of(t, 3), 0);
            /* sums of products round by the size of what is summed, which may cancel: 1e-5 of the largest gradient */
            if (went_well(want ? 0 : -1)) { same_values(got[s], want, 1e-4 + 1e-5 * largest(want)); }
        }
    }
    what[end] = 0;
}

static bool all_ways(const plan *p, const char *name, bool values) {
    const unsigned all = (1u << p->nslots) - 1, most = p->nslots <= 4 ? all : (unsigned)p->nslots + 1;
    unsigned k, set, alternate = p->written;
    int s;
    for (k = 1; k <= most; k++) {                 /* every set of four; else each one, and all of them */
        bool right = false;
        set = p->nslots <= 4 ? k : k > (unsigned)p->nslots ? all : 1u << (k - 1);
        if (p->nslots > 4) { set |= p->written; }
        if (p->written & ~set) {
            if (!(set & p->written)) { OPD_SCOPE { no_room(p, name, set); } }   /* one of several that are written may be the same for all */
            continue;
        }
        OPD_SCOPE { right = compare(p, name, set, 0, FIRST, values); }
        if (right) { OPD_SCOPE { right = compare(p, name, set, 0, LAST, values); } }
        if (right) { OPD_SCOPE { right = compare(p, name, set, 0, MIDDLE, values); } }
        if (right) { OPD_SCOPE { right = compare(p, name, set, set, k == most ? FIRST : MIDDLE, values); } }
        if (right) { OPD_SCOPE { right = none(p, name, set); } }
        if (right && values && !*name) { OPD_SCOPE { gradients(p, set); } }
        if (!right) { return false; }
    }
    for (s = 0; s < p->nslots; s += 2) { alternate |= 1u << s; }
    if (p->nslots > 1) {                          /* some at one level, the others at another, either way round */
        OPD_SCOPE { if (compare(p, name, alternate, (all & ~alternate) | p->written, FIRST, values)) { (void)compare(p, name, (all & ~alternate) | p->written, alternate, LAST, values); } }
    }
    return true;
}

//-- one operator ----------------------------------------------------------------------------------------------------------

static void test_form(const opd_op *op, const char *form, bool out) {
    static opd_value args[EXAMPLES][OPD_MAX_ARGS];
    static opd_tensor *lists[EXAMPLES][MOST_RESULTS];
    static results one;
    const opd_op *f = form_of(op, form);
    opd_tensor *wrote[MOST_SLOTS];
    plan p;
    int k, i, rest = 0;
    if (!went_well(f ? 0 : -1) || !plan_of(&p, op, readings[0].args)) { opd_error_clear(); return; }
    if (one_example(&p, 0, 0, 0, 0, &one, wrote) || (out && dynamic(op))) { opd_error_clear(); return; }
    for (k = 0; k < EXAMPLES; k++) {
        if (!other_form(&readings[k], f, args[k], &rest)) { return; }
        for (i = 0; i < one.n && out; i++) {
            lists[k][i] = opd_full_like(one.t[i], opd_value_int(k));
            if (opd_schema_nreturns(opd_op_schema(f)) > 0) { args[k][rest + i] = opd_value_tensor(lists[k][i]); }
        }
        if (out && opd_schema_nreturns(opd_op_schema(f)) == 0) { args[k][rest] = opd_value_tensors(lists[k], one.n); }
    }
    if (!went_well(opd_ok() ? 0 : -1) || !plan_of(&p, f, args[0])) { return; }
    for (k = 0; k < EXAMPLES; k++) { p.args[k] = args[k]; }
    (void)all_ways(&p, out ? "out=" : "in place", !is_random(op));
}
static void test_cases(const opd_op *op, const char *text) {
    const opd_op_desc *card = opd_op_card(op);
    const char *rest;
    int index = 0, k;
    looped = false;
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    do {
        OPD_SCOPE {
            plan p;
            if (read_all(op, text, index, &rest, OPD_FLOAT32)) {
                if (plan_of(&p, op, readings[0].args)) {
                    for (k = 0; k < EXAMPLES; k++) { p.args[k] = readings[k].args; }
                    if (depends_on_strides(op)) { OPD_SCOPE { (void)compare(&p, "", (1u << p.nslots) - 1, 0, FIRST, true); } }
                    else if (all_ways(&p, "", !is_random(op))) {
                        if (card->inplace) { OPD_SCOPE { test_form(op, card->inplace, false); } }
                        if (card->out && !is_random(op)) { OPD_SCOPE { test_form(op, card->out, true); } }
                    }
                    OPD_SCOPE { if (is_random(op)) { refuse_random(&p); } }
                }
            }
        }
        text = rest;
        index++;
    } while (*text && !readings[0].wrong);
    if (looped && getenv("VMAP_LOOPS")) { printf("loop %s\n", opd_op_name(op)); }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
    CHECK(true);
}

static void test_operator(void *arg) {
    const opd_op *op = (const opd_op *)arg;
    test_cases(op, cases_of(op));
}

static void test_further(void *arg) {
    const size_t k = (size_t)(uintptr_t)arg;
    const opd_op *op = opd_find(further[k].name);
    if (went_well(op ? 0 : -1)) { test_cases(op, further[k].cases); }
}

static void add_operators(void) {
    size_t k;
    add_builtin_operators(test_operator, has_tensor_cases);
    for (k = 0; k < sizeof further / sizeof *further; k++) { check_add_with(further[k].name, test_further, (void *)(uintptr_t)k); }
}
CHECK_MAIN_ADD(add_operators)
