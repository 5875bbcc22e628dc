/* Backward after a fault: every operator with sample arguments, and every fault.  Saved tensors are written to,
   freed, resized, detached, or returned by hooks that fail; gradients are invalid; allocations fail; inputs are
   views without a history.  The gradient equals that of the graph without the fault, or there is one error.  -v
   prints the operator, the case and the fault of each run. */
#include "../further_cases.h"

#define MOST_TENSORS 16

static bool verbose;

//-- one call of an operator, recorded ---------------------------------------------------------------------------------

/* Which inputs require grad: all that may, or one; and how they are made from leaves. */
enum { EVERY = -1 };
enum { PLAIN, NO_GRAD_VIEW, INFERENCE_VIEW, EARLY_VIEW, DETACHED, INFERENCE_TENSOR, MADE_WAYS };
static const char *const made_names[] = {"plain", "views made in no_grad", "views made in inference mode", "views older than requires_grad",
                                         "detached", "inference tensors"};
typedef struct recorded {
    const opd_op *op;
    const char *text;                             /* of its case */
    int mask, made;
    op_case *c;
    opd_tensor *in[MOST_TENSORS], *leaf[MOST_TENSORS], *out[MOST_RESULTS], *use[MOST_RESULTS], *cot[MOST_RESULTS];
    int nin, nleaf, nout, nuse, nfloat;
} recorded;

static opd_op *known(const char *name) {
    opd_op *op = opd_find(name);
    CHECK(op != NULL);
    return op;
}

/* What one written input of the call looks like: a tensor with the values of t and a history that leads to the leaf. */
static opd_tensor *make_input(recorded *r, opd_tensor *t, int arg) {
    const int at = r->nfloat++;
    opd_tensor *u = NULL;
    if (constant_argument(r->op, opd_schema_arg_name(opd_op_schema(r->op), arg))) { return t; }
    if (r->mask != EVERY && r->mask != at) {
        if (r->made == PLAIN) { return t; }
        if (r->made == EARLY_VIEW) { u = opd_alias(t); CHECK(opd_tensor_set_requires_grad(t, true) == t); return u; }
        if (r->made == DETACHED) { CHECK(opd_tensor_set_requires_grad(t, true) == t); return opd_detach(opd_clone(t)); }
        if (r->made == INFERENCE_TENSOR) { OPD_INFERENCE_MODE(true) { u = opd_clone(t); } return u; }
        t = opd_clone(opd_tensor_set_requires_grad(t, true));
        if (r->made == NO_GRAD_VIEW) { OPD_NO_GRAD { u = opd_alias(t); } }
        else { OPD_INFERENCE_MODE(true) { u = opd_alias(t); } }
        return u;
    }
    r->leaf[r->nleaf++] = opd_tensor_set_requires_grad(t, true);
    return opd_clone(t);
}

/* Reads the case and calls the operator.  Returns false if nothing can be differentiated. */
static bool record(recorded *r) {
    const char *text = r->text;
    opd_value rets[OPD_MAX_ARGS];
    int i, k;
    r->nin = r->nleaf = r->nout = r->nuse = r->nfloat = 0;
    r->c->op = r->op;
    r->c->dtype = OPD_FLOAT64;
    r->c->layout = CASE_CONTIGUOUS;
    r->c->smooth = true;
    if (!case_read_next(r->c, &text)) { return false; }
    for (i = 0; i < r->c->nargs; i++) {
        opd_value *v = &r->c->args[i];
        const int n = v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0;
        for (k = 0; k < n && r->nin < MOST_TENSORS; k++) {
            opd_tensor **at = v->tag == OPD_TAG_TENSOR ? &v->u.t : (opd_tensor **)(uintptr_t)&v->u.tensors[k];
            if (!*at) { continue; }
            if (opd_dtype(*at) == OPD_FLOAT64) { *at = make_input(r, *at, i); }
            r->in[r->nin++] = *at;
        }
    }
    if (!r->nleaf || !opd_ok() || opd_call_all((opd_op *)(uintptr_t)r->op, rets, r->c->args, r->c->nargs)) { opd_error_clear(); return false; }
    r->nout = results_of(r->op, rets, r->out);
    for (i = 0; i < r->nout; i++) {
        if (!opd_tensor_node(r->out[i]) || opd_dtype(r->out[i]) != OPD_FLOAT64) { continue; }
        r->cot[r->nuse] = opd_mul(opd_ones_like(r->out[i]), opd_tensor_wrapped_number(opd_value_double(1.5)));
        r->use[r->nuse++] = r->out[i];
    }
    if (!opd_ok()) { opd_error_clear(); return false; }
    return r->nuse > 0;
}

static opd_backward_options options_for(recorded *r, bool retain) {
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.grad_outputs = r->cot;
    o.allow_unused = true;
    o.retain_graph = retain;
    return o;
}
static int gradients(recorded *r, bool retain, opd_tensor **g) {
    opd_backward_options o = options_for(r, retain);
    return opd_autograd_grad(r->use, r->nuse, r->leaf, r->nleaf, &o, g);
}

//-- conditions --------------------------------------------------------------------------------------------------------

static bool like(const opd_tensor *a, const opd_tensor *b) {
    int64_t i;
    if (!a || !b) { return a == b; }
    if (!same_shape(a, b) || opd_dtype(a) != opd_dtype(b)) { return false; }
    if (opd_dtype_is_complex(opd_dtype(a))) { return true; }
    for (i = 0; i < opd_numel(a); i++) {
        const double x = case_get(a, i), y = case_get(b, i);
        if (!(isnan(x) && isnan(y)) && !(fabs(x - y) <= 1e-9 * (1 + fabs(y))) && !(isinf(x) && isinf(y) && (x > 0) == (y > 0))) { return false; }
    }
    return true;
}
static bool all_like(opd_tensor *const *a, opd_tensor *const *b, int n) {
    int i;
    for (i = 0; i < n && like(a[i], b[i]); i++) { }
    return i == n;
}
/* A backward ended: rc and the pending error agree; what came fits its leaf, and is `right` where that is given.  An
   error has one of the two texts, where one is given.  True when it went well. */
static bool ended(int rc, opd_tensor *const *g, recorded *r, opd_tensor *const *right, const char *text, const char *other) {
    const bool fine = rc >= 0;
    int i;
    if (!say(fine == opd_ok(), "the result and the pending error do not agree")) { opd_error_clear(); return false; }
    for (i = 0; fine && g && i < r->nleaf; i++) {
        if (g[i]) { (void)say(same_shape(g[i], r->leaf[i]) && opd_dtype(g[i]) == opd_dtype(r->leaf[i]), "a gradient that does not fit its leaf"); }
    }
    if (fine && right) { (void)say(all_like(g, right, r->nleaf), "no error, and another gradient than without the fault"); }
    if (!fine && text && !strstr(opd_error_message(), text) && !(other && strstr(opd_error_message(), other))) {
        printf("%s: the error is: %s\n", what, opd_error_message());
        CHECK(!"the error is about something else");
    }
    opd_error_clear();
    return fine;
}
#define WRITTEN "modified by an inplace operation"
#define OF_SEVERAL "its base or another view of its base has been modified inplace. This view is the output of a function that returns multiple"
#define DETACHED_TEXT "has been detached in-place"

/* Writes other values to t.  Returns false if t cannot be written. */
static bool write_to(opd_tensor *t) {
    OPD_NO_GRAD {
        if (opd_dtype(t) == OPD_BOOL) { (void)OPD_CALL(known("aten::logical_not_"), t); }
        else if (opd_dtype(t) == OPD_FLOAT64) { (void)OPD_CALL(known("aten::fill_.Scalar"), t, 0.375); }
        else { (void)OPD_CALL(known("aten::zero_"), t); }
    }
    if (opd_ok()) { return true; }
    opd_error_clear();
    return false;
}

static bool begin(recorded *r, const char *fault, int k) {
    (void)snprintf(what, sizeof what, "%s \"%.*s\" input %d %s: %s %d", opd_op_name(r->op), (int)strcspn(r->text + (*r->text == ';'), ";"),
                   r->text + (*r->text == ';'), r->mask, made_names[r->made], fault, k);
    if (verbose) { printf("case %s\n", what); }
    return record(r);
}

//-- the faults --------------------------------------------------------------------------------------------------------

/* Writes in place to input k (k >= 0), or to result -1 - k. */
static bool fault_written(recorded *r, int k) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    if (!begin(r, "written", k) || k >= r->nin || -1 - k >= r->nout) { return false; }
    if (!ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return true; }
    if (!write_to(k >= 0 ? r->in[k] : r->out[-1 - k])) { return true; }
    (void)ended(gradients(r, false, g), g, r, right, WRITTEN, OF_SEVERAL);
    return true;
}
static void fault_twice(recorded *r) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    if (!begin(r, "twice", 0) || !ended(gradients(r, false, right), right, r, NULL, NULL, NULL)) { return; }
    (void)ended(gradients(r, false, g), g, r, right, "Trying to backward through the graph a second time", NULL);
}
/* Frees all inputs and results except those that are differentiated. */
static void fault_released(recorded *r) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    bool well;
    int i;
    opd_scope inner = opd_scope_open();
    well = begin(r, "released", 0);
    for (i = 0; i < r->nleaf && well; i++) { (void)opd_keep(r->leaf[i]); }
    for (i = 0; i < r->nuse && well; i++) { (void)opd_keep(r->use[i]); (void)opd_keep(r->cot[i]); }
    opd_scope_close(&inner);
    if (!well) { return; }
    if (ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { (void)ended(gradients(r, false, g), g, r, right, "none", NULL); }
    for (i = 0; i < r->nleaf; i++) { opd_release(r->leaf[i]); }
    for (i = 0; i < r->nuse; i++) { opd_release(r->use[i]); opd_release(r->cot[i]); }
}
/* What saves input k holds it, and its history is gone. */
static bool fault_detached(recorded *r, int k) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    if (!begin(r, "detached", k) || k >= r->nin) { return false; }
    if (!ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return true; }
    if (!OPD_CALL(known("aten::detach_"), r->in[k])) { opd_error_clear(); return true; }
    /* of what is written in place it is the result */
    (void)ended(gradients(r, false, g), g, r, right, DETACHED_TEXT, "does not require grad and does not have a grad_fn");
    return true;
}
/* Other sizes or other data behind the back of what was saved: what comes fits, if anything. */
static bool fault_resized(recorded *r, int k, bool data) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    int rc;
    if (!begin(r, data ? "given other data" : "resized", k) || k >= r->nin) { return false; }
    if (!ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return true; }
    rc = data ? opd_tensor_set_data(r->in[k], opd_zeros(OPD_INTS(1, 3), opd_dtype(r->in[k])))
        : OPD_CALL(known("aten::resize_"), r->in[k], OPD_INTS(1, 5)) ? 0 : -1;
    opd_error_clear();
    if (rc) { return true; }
    (void)ended(gradients(r, false, g), g, r, NULL, NULL, NULL);
    return true;
}

enum { UNPACKS, FAILS, GIVES_NULL, GIVES_OTHER_SIZES, GIVES_OTHER_DTYPE, UNPACK_WAYS };
static int unpack_way;
static void *pack(opd_tensor *t, void *user) { (void)user; return opd_keep(t); }
static void drop(void *packed, void *user) { (void)user; opd_release((opd_tensor *)packed); }
static opd_tensor *unpack(void *packed, void *user) {
    opd_tensor *t = (opd_tensor *)packed;
    (void)user;
    switch (unpack_way) {
    case FAILS: (void)opd_fail(OPD_ERROR_USER, "unpack has nothing"); return NULL;
    case GIVES_NULL: return NULL;
    case GIVES_OTHER_SIZES: return opd_new_zeros(t, OPD_INTS(7, 1, 3));
    case GIVES_OTHER_DTYPE: return opd_to_dtype(t, OPD_FLOAT32);
    default: return t;
    }
}
static void fault_unpacked(recorded *r, int way, bool second) {
    static const char *const texts[] = {"none", "unpack has nothing", "Output of saved tensor unpack_hook", "Output of saved tensor unpack_hook",
                                        "Output of saved tensor unpack_hook"};
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    opd_backward_options o;
    opd_saved_hooks hooks;
    bool well;
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = pack;
    hooks.unpack = unpack;
    hooks.drop = drop;
    unpack_way = UNPACKS;
    CHECK_INT(opd_saved_hooks_begin(&hooks), 0);
    well = begin(r, second ? "unpacked for a second derivative" : "unpacked", way);
    opd_saved_hooks_end();
    if (!well || !ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return; }
    unpack_way = way;
    o = options_for(r, false);
    o.create_graph = second;
    (void)ended(opd_autograd_grad(r->use, r->nuse, r->leaf, r->nleaf, &o, g), g, r, right, texts[way],
                second ? "is not differentiable with respect to" : NULL);       /* as PyTorch's, too */
    unpack_way = UNPACKS;
}

/* Passes gradients that are NULL or invalid. */
static void fault_gradients(recorded *r) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    int i, k;
    if (!begin(r, "gradients", 0) || !ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return; }
    for (k = 0; k < r->nuse; k++) {
        opd_tensor *was = r->cot[k];
        r->cot[k] = opd_to_dtype(was, OPD_FLOAT16);
        (void)ended(gradients(r, true, g), g, r, NULL, NULL, NULL);
        r->cot[k] = opd_zeros(OPD_INTS(0, 3), OPD_FLOAT64);
        if (!same_shape(was, r->cot[k])) { (void)say(!ended(gradients(r, true, g), g, r, NULL, "Mismatch in shape", NULL), "a gradient of another shape is taken"); }
        r->cot[k] = opd_expand(opd_tensor_wrapped_number(opd_value_double(1.5)), opd_ints_of(opd_sizes(was), opd_ndim(was)));
        if (r->cot[k]) { (void)ended(gradients(r, true, g), g, r, right, "none", NULL); }
        r->cot[k] = was;
        opd_error_clear();
    }
    for (k = 0; k < r->nuse && r->nuse > 1; k++) {             /* some alone */
        opd_tensor *use = r->use[k], *cot = r->cot[k];
        opd_backward_options o = options_for(r, true);
        o.grad_outputs = &cot;
        (void)ended(opd_autograd_grad(&use, 1, r->leaf, r->nleaf, &o, g), g, r, NULL, "none", NULL);
    }
    for (i = 0; i < r->nuse; i++) { r->cot[i] = OPD_CALL(known("aten::stack"), OPD_TENSORS(r->cot[i], r->cot[i]), 0); }
    {
        opd_backward_options o = options_for(r, true);
        o.is_grads_batched = true;
        if (opd_autograd_grad(r->use, r->nuse, r->leaf, r->nleaf, &o, g)) { (void)say(!opd_ok(), "an error that is none"); opd_error_clear(); return; }
        CHECK_OK();
        for (i = 0; i < r->nleaf; i++) {
            if (g[i]) { (void)say(like(opd_select(g[i], 0, 1), right[i]), "a batched gradient is another one"); }
        }
    }
}
static void fault_memory(recorded *r) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    int64_t n;
    bool last = false;
    if (!begin(r, "no memory", 0) || !ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return; }
    for (n = 1; n < 400 && !last; n += n < 12 ? 1 : 9) {
        OPD_SCOPE {
            int rc;
            (void)opd_memory_fail_at(n, (n & 1) != 0);
            rc = gradients(r, true, g);
            last = opd_memory_fail_at(0, false) < n;
            (void)ended(rc, g, r, right, "memory", NULL);
        }
    }
}
static void fault_anomaly(recorded *r) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    if (!begin(r, "anomaly mode", 0) || !ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { return; }
    {
        const int was = opd_anomaly_set(true, false);
        (void)ended(gradients(r, false, g), g, r, right, "none", NULL);
        (void)opd_anomaly_set((was & OPD_ANOMALY_ON) != 0, (was & OPD_ANOMALY_NAN) != 0);
    }
}

/* create_graph, then input k (k >= 0), result or gradient -1 - k is written to, then the gradient of the gradients. */
static bool fault_second(recorded *r, int k) {
    opd_tensor *g[MOST_TENSORS], *h[MOST_TENSORS], *ones[MOST_TENSORS], *from[2 * MOST_TENSORS], *right[2 * MOST_TENSORS], *again[2 * MOST_TENSORS], *written;
    opd_backward_options o;
    int i, n = 0, nfrom = 0, rc;
    if (!begin(r, "written before the second derivative", k) || k >= r->nin || -1 - k >= r->nout + r->nuse) { return false; }
    o = options_for(r, true);
    o.create_graph = true;
    for (i = 0; i < r->nuse; i++) {
        from[nfrom++] = opd_tensor_set_requires_grad(r->cot[i], true);
        r->cot[i] = opd_clone(r->cot[i]);
    }
    for (i = 0; i < r->nleaf; i++) { from[nfrom++] = r->leaf[i]; }
    if (!ended(opd_autograd_grad(r->use, r->nuse, r->leaf, r->nleaf, &o, g), g, r, NULL, NULL, NULL)) { return false; }
    for (i = 0; i < r->nleaf; i++) {
        if (g[i] && opd_tensor_requires_grad(g[i])) { ones[n] = opd_ones_like(g[i]); h[n++] = g[i]; }
    }
    if (!n) { return false; }
    o = options_for(r, true);
    o.grad_outputs = ones;
    if (opd_autograd_grad(h, n, from, nfrom, &o, right)) { opd_error_clear(); return false; }
    written = k >= 0 ? r->in[k] : -1 - k < r->nout ? r->out[-1 - k] : r->cot[-1 - k - r->nout];
    if (!write_to(written)) { return true; }
    o.retain_graph = false;
    rc = opd_autograd_grad(h, n, from, nfrom, &o, again);
    (void)ended(rc, NULL, r, NULL, NULL, NULL);
    if (rc == 0) { (void)say(all_like(again, right, nfrom), "no error, and another second derivative than without the write"); }
    return true;
}

/* Inputs but one are made in ways that give them no gradient: that one gets the same as ever. */
static void fault_made(recorded *r, int made) {
    opd_tensor *right[MOST_TENSORS], *g[MOST_TENSORS];
    opd_scope inner = opd_scope_open();
    r->made = PLAIN;
    if (!begin(r, "beside", 0) || is_random(r->op) || !ended(gradients(r, true, right), right, r, NULL, NULL, NULL)) { opd_scope_close(&inner); return; }
    r->made = made;
    if (begin(r, "beside", 0)) { (void)ended(gradients(r, true, g), g, r, right, "none", NULL); }
    opd_error_clear();
    r->made = PLAIN;
    opd_scope_close(&inner);
}
/* All inputs are made in ways that give them no gradient: there are no gradients, and no error. */
static void fault_no_edges(recorded *r, int made) {
    opd_tensor *w, *sum;
    int i;
    r->made = made;
    r->mask = MOST_TENSORS;
    (void)begin(r, "no edges", 0);                /* no leaf: it reads, but does not call */
    r->made = PLAIN;
    {
        opd_value rets[OPD_MAX_ARGS];
        if (opd_call_all((opd_op *)(uintptr_t)r->op, rets, r->c->args, r->c->nargs)) { opd_error_clear(); return; }
        r->nout = results_of(r->op, rets, r->out);
    }
    w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT64), true);
    sum = opd_sum(w);
    for (i = 0; i < r->nout; i++) {
        if (opd_dtype(r->out[i]) == OPD_FLOAT64) { sum = opd_add(sum, opd_sum(r->out[i])); }
    }
    if (!opd_ok()) { opd_error_clear(); return; }
    if (!say(opd_backward(sum) == 0, "a backward that nothing is wanted of fails")) { printf("%s\n", opd_error_message()); opd_error_clear(); return; }
    (void)say(opd_tensor_grad(w) && opd_item_f64(opd_sum(opd_tensor_grad(w))) == 2, "what is beside it gets no gradient");
}

//-- one operator ------------------------------------------------------------------------------------------------------

static void test_mask(recorded *r) {
    bool more;
    int k;
    for (k = 0, more = true; more; k++) { OPD_SCOPE { more = fault_written(r, k); } }
    for (k = -1, more = true; more; k--) { OPD_SCOPE { more = fault_written(r, k); } }
    for (k = 0, more = true; more; k++) { OPD_SCOPE { more = fault_detached(r, k); } }
    for (k = 0, more = true; more; k++) { OPD_SCOPE { more = fault_resized(r, k, false); } }
    for (k = 0, more = true; more; k++) { OPD_SCOPE { more = fault_resized(r, k, true); } }
    OPD_SCOPE { fault_twice(r); }
    OPD_SCOPE { fault_released(r); }
    for (k = 0; k < UNPACK_WAYS; k++) { OPD_SCOPE { fault_unpacked(r, k, false); } }
    for (k = 1; k < MADE_WAYS; k++) { OPD_SCOPE { if (r->mask != EVERY) { fault_made(r, k); } } }
}
static bool returns_views(const opd_op *op) {
    int i, any = 0;
    for (i = 0; i < opd_schema_nreturns(opd_op_schema(op)); i++) { any += opd_schema_is_aliasing(opd_op_schema(op), OPD_RESULT(i)); }
    return any > 0;
}
static void test_case(recorded *r) {
    bool more;
    int k, n;
    r->made = PLAIN;
    r->mask = EVERY;
    OPD_SCOPE {
        more = begin(r, "none", 0);
        n = r->nfloat;
        for (k = 0; more && k < r->nout && !opd_op_card(r->op)->composite; k++) {
            if (!returns_views(r->op)) { (void)say(!opd_tensor_base(r->out[k]), "a result is a view of what is gone"); }
        }
    }
    test_mask(r);
    for (k = 0, more = true; more; k++) { OPD_SCOPE { more = fault_second(r, k); } }
    for (k = -1, more = true; more; k--) { OPD_SCOPE { more = fault_second(r, k); } }
    for (k = 0; k < UNPACK_WAYS; k++) { OPD_SCOPE { fault_unpacked(r, k, true); } }
    OPD_SCOPE { fault_gradients(r); }
    OPD_SCOPE { fault_memory(r); }
    OPD_SCOPE { fault_anomaly(r); }
    for (r->mask = 0; r->mask < n; r->mask++) { test_mask(r); }
    for (k = 1; k < MADE_WAYS; k++) { OPD_SCOPE { fault_no_edges(r, k); } }
    r->mask = EVERY;
    OPD_SCOPE {                                   /* nothing of all that stays */
        opd_tensor *g[MOST_TENSORS];
        if (begin(r, "none", 1)) { (void)ended(gradients(r, false, g), g, r, NULL, NULL, NULL); }
    }
}
static void test_cases(const opd_op *op, const char *text) {
    static op_case c;
    recorded r;
    CHECK_OR_RETURN(op && text);
    memset(&r, 0, sizeof r);
    r.op = op;
    r.c = &c;
    while (*text) {
        const char *rest = text;
        bool more;
        c.op = r.op;
        c.dtype = OPD_FLOAT64;
        c.layout = CASE_CONTIGUOUS;
        c.smooth = true;
        OPD_SCOPE { more = case_read_next(&c, &rest); }
        opd_error_clear();
        if (!more) { break; }
        r.text = text;
        test_case(&r);
        text = rest;
    }
}
static void test_operator(void *arg) { test_cases((const opd_op *)arg, cases_of((const opd_op *)arg)); }
static void test_further(void *arg) { test_cases(opd_find(further[(uintptr_t)arg].name), further[(uintptr_t)arg].cases); }
static void say_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
int main(int argc, char **argv) {
    opd_op *op;
    int i;
    for (i = 1; i < argc; i++) { verbose = verbose || strcmp(argv[i], "-v") == 0; }
    opd_log_set(say_nothing, NULL);               /* of slow batching, of anomaly mode */
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        if (cases_of(op)) { check_add_with(opd_op_name(op), test_operator, op); }
    }
    for (i = 0; i < (int)(sizeof further / sizeof *further); i++) { check_add_with(further[i].name, test_further, (void *)(uintptr_t)i); }
    return check_main(argc, argv, __FILE__);
}
