/* Every operator, with the sample arguments of its descriptor: shapes without data, layouts, out= and in-place
   forms, dtypes, first and second derivatives, failing allocations, extreme arguments.  One case per operator. */
#include "../inside.h"
#include "../cases.h"


/* Returns whether a shape or a number in the result depends on the data: then there is no fake kernel. */
static bool depends_on_data(const opd_op *op) {
    static const char *const list[] = {"item", "_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "allclose",
                                       "unique", "_unique2", "unique_consecutive", "unique_dim", "unique_dim_consecutive", "bincount", "repeat_interleave.Tensor",
                                       "repeat_interleave.self_Tensor", "one_hot", "nonzero_numpy", "argwhere", "is_same_size", NULL};
    return named(op, list) || strcmp(opd_op_name(op), "aten::where") == 0;
}
/* Returns whether the result depends on the strides of the arguments. */
static bool depends_on_strides(const opd_op *op) {
    static const char *const list[] = {"as_strided", "as_strided_", "as_strided_copy", "as_strided_scatter", "_reshape_alias",
                                       "_reshape_alias_copy", "resize_", "resize_as_", NULL};
    return named(op, list);
}
//-- calling -----------------------------------------------------------------------------------------------------------

/* Calls the operator.  If it writes to its first argument, and derivatives are tested, this argument is a copy. */
static int call_case(const op_case *c, opd_value *rets) {
    opd_value args[OPD_MAX_ARGS];
    memcpy(args, c->args, sizeof args);
    if (c->smooth && args[0].tag == OPD_TAG_TENSOR && opd_schema_is_mutable(opd_op_schema(c->op))) {
        args[0] = opd_value_tensor(opd_clone(args[0].u.t));
    }
    return opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs);
}

static int run_case(const op_case *c, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    if (call_case(c, rets)) { return -1; }
    return results_of(c->op, rets, out);
}

static bool same_strides(const opd_tensor *a, const opd_tensor *b) {
    int d;
    for (d = 0; d < opd_ndim(a); d++) {
        if (opd_sizes(a)[d] > 1 && opd_strides(a)[d] != opd_strides(b)[d]) { return false; }
    }
    return true;
}
//-- the tests of one case ---------------------------------------------------------------------------------------------

typedef struct subject { const opd_op *op; const opd_op_desc *card; const char *text; int index; op_case *c; } subject;

/* Reads the case again with other tensors. */
static bool again(const subject *s, opd_scalar_type dtype, int layout, bool smooth, bool meta) {
    const char *text = s->text;
    s->c->op = s->op;
    s->c->dtype = dtype;
    s->c->layout = layout;
    s->c->smooth = smooth;
    s->c->meta = meta;
    (void)snprintf(what, sizeof what, "    case %d \"%.*s\" %s%s%s", s->index, (int)strcspn(s->text + (*s->text == ';'), ";"),
                   s->text + (*s->text == ';'), opd_dtype_name(dtype), meta ? " fake" : "", layout == CASE_TRANSPOSED ? " transposed"
                   : layout == CASE_SLICED ? " sliced" : layout == CASE_ZERO ? " zero-size" : "");
    return case_read_next(s->c, &text);
}
static bool has_tensor(const op_case *c) {
    int i;
    for (i = 0; i < c->nargs; i++) { if (c->args[i].tag == OPD_TAG_TENSOR || c->args[i].tag == OPD_TAG_TENSORS) { return true; } }
    return false;
}

static void test_fake(const subject *s, opd_tensor **real, int n) {
    opd_tensor *fake[MOST_RESULTS];
    int i, m;
    if (!again(s, OPD_FLOAT32, CASE_CONTIGUOUS, false, true) || !has_tensor(s->c) || depends_on_data(s->op)) { return; }
    m = run_case(s->c, fake);
    if (!went_well(m) || !say(m == n, "another number of results")) { return; }
    for (i = 0; i < n; i++) {
        (void)say(same_shape(fake[i], real[i]), "the fake has other sizes");
        (void)say(opd_dtype(fake[i]) == opd_dtype(real[i]), "the fake has another dtype");
        if (same_shape(fake[i], real[i])) { (void)say(same_strides(fake[i], real[i]), "the fake has other strides"); }
        (void)say(opd_tensor_device(fake[i]).type == OPD_META, "the fake is not on meta");
    }
}
static void test_layouts(const subject *s, opd_tensor **real, int n) {
    opd_tensor *got[MOST_RESULTS];
    int layout, i;
    for (layout = CASE_TRANSPOSED; layout <= CASE_SLICED; layout++) {
        int m;
        if (!again(s, OPD_FLOAT32, layout, false, false)) { return; }
        m = run_case(s->c, got);
        if (!opd_ok() && (strstr(opd_error_message(), "view size is not compatible") ||
                          strstr(opd_error_message(), "last dimension with stride 1"))) { opd_error_clear(); continue; }
        if (!went_well(m) || !say(m == n, "another number of results")) { continue; }
        for (i = 0; i < n && !is_random(s->op); i++) {
            if (depends_on_strides(s->op)) { continue; }
            same_values(got[i], real[i], 1e-5);
        }
    }
    if (again(s, OPD_FLOAT32, CASE_ZERO, false, false)) {
        (void)run_case(s->c, got);                /* any answer but a crash */
        opd_error_clear();
        CHECK(true);
    }
}

/* Results in float32, float16 and bfloat16 are approximately equal to results in float64. */
static void test_dtypes(const subject *s) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_BFLOAT16, OPD_FLOAT16};
    opd_tensor *want[MOST_RESULTS], *got[MOST_RESULTS];
    int i, k, n, m;
    static const char *const rough[] = {"nextafter", NULL};
    static const char *const bags[] = {"embedding_bag", "_embedding_bag", "_embedding_bag_forward_only", NULL};
    if (is_random(s->op) || named(s->op, rough) || !again(s, OPD_FLOAT64, CASE_CONTIGUOUS, false, false)) { return; }
    n = run_case(s->c, want);
    if (!went_well(n)) { return; }
    for (k = 0; k < 3; k++) {
        if (!again(s, dtypes[k], CASE_CONTIGUOUS, false, false)) { return; }
        m = run_case(s->c, got);
        if (k > 0 && !opd_ok()) { opd_error_clear(); continue; }              /* a dtype it does not have */
        if (!went_well(m)) { continue; }
        for (i = 0; i < n && i < m; i++) {        /* which bag an index is in is said of sums of doubles alone */
            if (i == 1 && opd_numel(got[1]) == 0 && named(s->op, bags)) { continue; }
            same_values(got[i], want[i], k == 0 ? 2e-4 : k == 1 ? 0.06 : 0.02);
        }
    }
}

static void test_out(const subject *s, opd_tensor **real, int n) {
    const opd_op *form = form_of(s->op, s->card->out);
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    opd_tensor *got[MOST_RESULTS], *outs[MOST_RESULTS];
    int i, rest, how;
    bool list;
    if (!went_well(form ? 0 : -1)) { return; }
    for (how = 0; how < (depends_on_strides(s->op) ? 2 : 3); how++) {               /* empty, of the right sizes, transposed */
        static const int64_t none[] = {0};
        if (!again(s, OPD_FLOAT32, CASE_CONTIGUOUS, false, false) || !other_form(s->c, form, args, &rest)) { return; }
        (void)snprintf(what + strlen(what), sizeof what - strlen(what), " out= %s", how == 0 ? "empty" : how == 1 ? "of its size" : "transposed");
        list = opd_schema_nreturns(opd_op_schema(form)) == 0;
        if (!say(rest + (list ? 1 : n) <= opd_schema_nargs(opd_op_schema(form)), "not enough out arguments")) { return; }
        for (i = 0; i < n; i++) {
            outs[i] = how == 0 ? opd_tensor_new(opd_ints_of(none, 1), opd_dtype(real[i]))
                      : case_tensor(opd_sizes(real[i]), opd_ndim(real[i]), opd_dtype(real[i]), how == 1 ? CASE_CONTIGUOUS : CASE_TRANSPOSED, false);
            if (!list) { args[rest + i] = opd_value_tensor(outs[i]); }
        }
        if (list) { args[rest] = opd_value_tensors(outs, n); }       /* one argument, and nothing comes back */
        if (!went_well(opd_call_all((opd_op *)(uintptr_t)form, rets, args, opd_schema_nargs(opd_op_schema(form))))) { continue; }
        if (!list && !say(results_of(form, rets, got) == n, "another number of results")) { continue; }
        for (i = 0; i < n; i++) {
            if (list) { got[i] = outs[i]; }
            (void)say(got[i] == outs[i], "the out= tensor does not come back");
            if (!is_random(s->op)) { same_values(got[i], real[i], 1e-6); }
        }
    }
}
static void test_inplace(const subject *s, opd_tensor **real, int n) {
    const opd_op *form = form_of(s->op, s->card->inplace);
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    int rest, layout, rc;
    if (!went_well(form ? 0 : -1)) { return; }
    for (layout = CASE_CONTIGUOUS; layout <= CASE_TRANSPOSED; layout++) {
        opd_tensor *self;
        bool fits;
        if (!again(s, OPD_FLOAT32, layout, false, false) || !other_form(s->c, form, args, &rest) || args[0].tag != OPD_TAG_TENSOR) { return; }
        (void)snprintf(what + strlen(what), sizeof what - strlen(what), " in place");
        self = args[0].u.t;
        fits = n >= 1 && same_shape(self, real[0]) && opd_can_cast(opd_dtype(real[0]), opd_dtype(self));
        if (strstr(opd_op_name(s->op), "::float_power")) { fits = fits && opd_dtype(real[0]) == opd_dtype(self); }
        rc = opd_call_all((opd_op *)(uintptr_t)form, rets, args, opd_schema_nargs(opd_op_schema(form)));
        if (!fits) { (void)say(rc != 0 && !opd_ok(), "takes a result that does not fit"); opd_error_clear(); continue; }
        if (!went_well(rc)) { continue; }
        (void)say(rets[0].tag == OPD_TAG_TENSOR && rets[0].u.t == self, "self does not come back");
        if (!is_random(s->op) && opd_dtype(real[0]) == opd_dtype(self)) { same_values(self, real[0], 1e-6); }
    }
}

//-- derivatives -------------------------------------------------------------------------------------------------------

enum { BROADCAST = CASE_LAYOUTS, IN_PLACE, INTO_VIEW };
static const char *const derived_layouts[] = {" broadcast", " in place", " into a view"};
/* Finds the float64 tensors that have derivatives, and their places in the case. */
static int inputs_of(op_case *c, opd_tensor **in, opd_tensor ***slots) {
    int i, k, n = 0;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        opd_tensor **at = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
        if (constant_argument(c->op, opd_schema_arg_name(opd_op_schema(c->op), i))) { continue; }
        for (k = 0; k < (v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0) && n < MOST_INPUTS; k++) {
            if (at[k] && opd_dtype(at[k]) == OPD_FLOAT64) { slots[n] = &at[k]; in[n++] = at[k]; }
        }
    }
    return n;
}

/* A case as a function of its inputs.  Inputs that were narrowed are given to the operator as they were: broadcast.  With
   a form that writes its first argument: that one is a copy, or a view of a copy, which is the result. */
typedef struct as_function {
    op_case *c;
    const opd_op *form;
    int layout;
    opd_tensor **slots[MOST_INPUTS];
    int64_t sizes[MOST_INPUTS][OPD_MAX_DIMS];
} as_function;
static int call_form(const as_function *f, opd_tensor **out) {
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    int rest;
    if (!other_form(f->c, f->form, args, &rest)) { return 0; }
    out[0] = opd_clone(args[0].u.t);
    if (f->layout == INTO_VIEW) { out[0] = opd_flatten(out[0], 0, -1); }
    args[0] = opd_value_tensor(f->layout == INTO_VIEW ? opd_view(out[0], opd_ints_of(opd_sizes(args[0].u.t), opd_ndim(args[0].u.t))) : out[0]);
    return opd_call_all((opd_op *)(uintptr_t)f->form, rets, args, opd_schema_nargs(opd_op_schema(f->form))) ? -1 : 1;
}
static int call_function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    as_function *f = (as_function *)user;
    opd_tensor *r[MOST_RESULTS];
    int i, k = 0, m;
    for (i = 0; i < n; i++) {
        bool narrowed = memcmp(f->sizes[i], opd_sizes(in[i]), (size_t)opd_ndim(in[i]) * sizeof(int64_t)) != 0;
        *f->slots[i] = narrowed ? opd_expand(in[i], opd_ints_of(f->sizes[i], opd_ndim(in[i]))) : in[i];
    }
    if (f->form) { return call_form(f, out); }
    m = run_case(f->c, r);
    if (m > 1 && first_result_only(f->c->op)) { m = 1; }
    for (i = 0; i < m; i++) { if (opd_dtype(r[i]) == OPD_FLOAT64) { out[k++] = r[i]; } }
    return m < 0 ? -1 : k;
}
/* Inputs whose derivatives ATen does not give; arguments that say what the layout must be. */
static bool undifferentiated(const subject *s, int layout) {
    static const char *const list[] = {"bernoulli", "detach", "detach_copy", "as_strided_scatter", NULL};
    static const char *const one_layout[] = {"_reshape_alias", "_reshape_alias_copy", NULL};
    return named(s->op, list) || is_random(s->op) || (layout != CASE_CONTIGUOUS && named(s->op, one_layout));
}
/* Derivatives that are NaN, as in ATen: of norms and statistics of nothing, of the deviation of equal numbers; what divides by
   such a deviation, or by the steps between equal places, is NaN itself. */
static bool singular(const subject *s, opd_tensor *const *out, int n, int layout) {
    static const char *const nothing[] = {"linalg_vector_norm", "norm", "frobenius_norm", "dist", "native_batch_norm", "nll_loss2d_forward",
                                          NULL};
    static const char *const equal[] = {"std", "std_mean", NULL}, *const divided[] = {"corrcoef", "gradient", NULL};
    bool nan = false;
    int64_t k;
    int i;
    for (i = 0; i < n; i++) { for (k = 0; k < opd_numel(out[i]); k++) { nan = nan || isnan(case_get(out[i], k)); } }
    return (layout == CASE_ZERO && (nan || named(s->op, nothing))) ||
           (layout == BROADCAST && (named(s->op, equal) || (nan && named(s->op, divided))));
}
/* Matrices with equal rows have no inverse, and no derivative of factors: of these operators only other inputs and batches are
   narrowed. */
static bool narrowable(const subject *s, opd_tensor *const *in, int i) {
    static const char *const regular[] = {"_linalg_det", "_linalg_slogdet", "_linalg_solve_ex", "_lu_with_info", "det", "inverse", "linalg_det",
        "linalg_inv", "linalg_inv_ex", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "linalg_slogdet", "linalg_solve",
        "linalg_solve_ex", "logdet", "slogdet", "_linalg_svd", "linalg_svdvals", "linalg_qr", "qr", "svd", "nuclear_norm",
        "linalg_matrix_norm", "linalg_norm", "linalg_cond", "linalg_pinv", "pinverse", "linalg_lstsq", NULL};
    static const char *const unfolded[] = {"linalg_tensorsolve", "linalg_tensorinv", NULL};
    if (i == 0 && (named(s->op, unfolded) || (opd_ndim(in[i]) == 2 && named(s->op, regular)))) { return false; }
    return opd_ndim(in[i]) > 0 && opd_size(in[i], 0) > 1;
}
/* Returns whether the result fits into the first argument. */
static bool fits_in_place(const op_case *c) {
    opd_tensor *r[MOST_RESULTS];
    bool fits = false;
    OPD_SCOPE {
        fits = c->args[0].tag == OPD_TAG_TENSOR && opd_dtype(c->args[0].u.t) == OPD_FLOAT64 && run_case(c, r) > 0 &&
               same_shape(r[0], c->args[0].u.t) && opd_dtype(r[0]) == OPD_FLOAT64;
    }
    return fits && opd_ok();
}
/* Runs gradcheck and gradgradcheck for one case.  A Jacobian with many columns is tested element by element in one
   layout.  In the others, a random projection is enough, because backward functions do not depend on the layout. */
#define FEW_COLUMNS 24
static void test_derivatives(const subject *s, int layout) {
    static as_function f;
    opd_tensor *in[MOST_INPUTS];
    opd_gradcheck_options o = opd_gradcheck_defaults();
    int64_t columns = 0;
    int i, n;
    bool narrowed = false;
    if (undifferentiated(s, layout) || !again(s, OPD_FLOAT64, layout >= BROADCAST ? CASE_CONTIGUOUS : layout, true, false)) { return; }
    if (layout >= BROADCAST) { (void)snprintf(what + strlen(what), sizeof what - strlen(what), "%s", derived_layouts[layout - BROADCAST]); }
    f.form = layout >= IN_PLACE ? form_of(s->op, s->card->inplace) : NULL;
    f.layout = layout;
    if (f.form && !fits_in_place(s->c)) { return; }
    i = arg_named(s->op, "padding_idx");          /* its row has no derivative, by definition */
    if (i >= 0 && s->c->args[i].tag == OPD_TAG_INT && s->c->args[i].u.i >= 0) { return; }
    f.c = s->c;
    n = inputs_of(s->c, in, f.slots);
    for (i = 0; i < n; i++) {
        memcpy(f.sizes[i], opd_sizes(in[i]), (size_t)opd_ndim(in[i]) * sizeof(int64_t));
        if (layout == BROADCAST && narrowable(s, in, i)) {
            in[i] = opd_contiguous(opd_slice(in[i], 0, opd_value_int(0), opd_value_int(1), 1));
            narrowed = true;
        }
        columns += opd_numel(in[i]);
        if (!went_well(opd_tensor_set_requires_grad(in[i], true) ? 0 : -1)) { return; }
    }
    if (n == 0 || (layout == BROADCAST && !narrowed)) { return; }
    OPD_SCOPE {
        opd_tensor *out[OPD_GRADCHECK_OUTPUTS];
        i = call_function(&f, in, n, out);
        if (i > 0 && singular(s, out, i, layout)) { i = 0; }
    }
    if (layout != CASE_CONTIGUOUS && !f.form && !opd_ok()) { opd_error_clear(); return; }       /* test_layouts looks at those */
    o.check_forward_ad = o.check_fwd_over_rev = true;
    o.fast_mode = columns > FEW_COLUMNS && layout != CASE_CONTIGUOUS;
#if defined(CHECK_SANITIZED)
    o.fast_mode = true;                           /* the numbers are looked at without a sanitizer, too */
#endif
    o.check_batched_grad = o.check_batched_forward_grad = layout == CASE_CONTIGUOUS;
    if (!went_well(i) || i == 0 || !went_well(opd_gradcheck(call_function, &f, in, n, &o))) { return; }
    (void)snprintf(what + strlen(what), sizeof what - strlen(what), " second");
    (void)went_well(opd_gradgradcheck(call_function, &f, in, n, NULL, &o));
}

static bool has_formula(const opd_op_desc *card) {
    return card->backward != OPD_NOT_DIFFERENTIABLE && (card->backward || card->composite || card->autograd);
}

//-- out of memory -----------------------------------------------------------------------------------------------------

/* Calls the operator and its derivatives.  Returns 0, or -1 on an error. */
static int with_derivatives(void *arg) {
    const subject *s = (const subject *)arg;
    static as_function f;
    opd_tensor *in[MOST_INPUTS], *g[MOST_INPUTS], *out[MOST_RESULTS], *total = NULL;
    opd_backward_options o;
    int i, n, m;
    memset(&o, 0, sizeof o);
    o.allow_unused = o.create_graph = true;
    if (!again(s, OPD_FLOAT64, CASE_CONTIGUOUS, true, false) || !opd_ok()) { return -1; }
    n = has_formula(s->card) ? inputs_of(s->c, in, f.slots) : 0;
    for (i = 0; i < n; i++) { if (!opd_tensor_set_requires_grad(in[i], true)) { return -1; } }
    m = run_case(s->c, out);
    if (m > 1 && first_result_only(s->op)) { m = 1; }
    for (i = 0; i < m; i++) {
        if (opd_tensor_requires_grad(out[i])) { total = !total ? opd_sum(out[i]) : opd_add(total, opd_sum(out[i])); }
    }
    if (!total || n == 0 || !opd_ok()) { return opd_ok() ? 0 : -1; }
    return opd_autograd_grad(&total, 1, in, n, &o, g);
}

//-- extreme arguments -------------------------------------------------------------------------------------------------

#define EXTREMES 12
/* Sets argument i to its extreme variant k.  Returns false if there is none. */
static bool make_extreme(op_case *c, int i, int k) {
    static const int64_t ints[] = {INT64_MIN, -1, 0, 7, (int64_t)1 << 40, INT64_MAX};
    static const double floats[] = {(double)INFINITY, (double)NAN, -1e300};
    static const opd_scalar_type dtypes[] = {OPD_BOOL, OPD_INT8, OPD_INT64, OPD_FLOAT16, OPD_COMPLEX64};
    static const int64_t zeros[OPD_MAX_DIMS] = {0};
    opd_value *v = &c->args[i];
    opd_tensor *t = v->tag == OPD_TAG_TENSOR ? v->u.t : NULL;
    int64_t *list = c->lists[i].ints;
    int n;
    if (k == 0) { *v = OPD_NONE; return true; }
    k--;
    if (v->tag == OPD_TAG_INTS && k < 9) {
        for (n = 0; n < CASE_LIST && k < 6; n++) { list[n] = ints[k]; }
        *v = opd_value_ints(list, k < 6 ? v->n : k == 6 ? 0 : k == 7 ? 1 : v->n + 1);
        return true;
    }
    if (!t && v->tag != OPD_TAG_INTS && v->tag != OPD_TAG_TENSORS && k < 9) {
        *v = k < 6 ? opd_value_int(ints[k]) : opd_value_double(floats[k - 6]);
        return true;
    }
    if (!t || k >= 11) { return false; }
    if (k < 5) {
        t = opd_tensor_new(opd_ints_of(opd_sizes(t), opd_ndim(t)), dtypes[k]);
        if (opd_data(t)) { memset(opd_data(t), 1, (size_t)opd_tensor_storage_bytes(t)); }
    }
    else if (k == 5) { t = case_tensor(opd_sizes(t), opd_ndim(t), opd_dtype(t), CASE_CONTIGUOUS, true); }
    else if (k == 6) { t = opd_tensor_view(t, opd_sizes(t), zeros, opd_ndim(t), 0); }
    else if (k == 7) { t = opd_zeros(opd_ints_of(NULL, 0), opd_dtype(t)); }
    else if (k == 8) { t = opd_zeros(OPD_INTS(0), opd_dtype(t)); }
    else if (k == 9) { t = opd_full_like(t, OPD_V(INT64_MAX)); }
    else { t = opd_full_like(t, OPD_V(INT64_MIN)); }
    *v = opd_value_tensor(t);
    opd_error_clear();                            /* a number that its dtype cannot hold */
    return t != NULL;
}
/* Returns a hash of the tensors' memory and sizes. */
static uint64_t print_of(const op_case *c) {
    uint64_t h = 1469598103934665603u;
    int64_t k;
    int i;
    for (i = 0; i < c->nargs; i++) {
        const opd_tensor *t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        const unsigned char *p = t ? (const unsigned char *)opd_data(t) : NULL;
        if (p) { p -= opd_tensor_offset(t) * (int64_t)opd_dtype_size(opd_dtype(t)); }
        for (k = 0; p && k < opd_tensor_storage_bytes(t); k++) { h = (h ^ p[k]) * 1099511628211u; }
        for (k = 0; t && k < opd_ndim(t); k++) { h = (h ^ (uint64_t)opd_sizes(t)[k]) * 1099511628211u; }
    }
    return h;
}
/* Sets each argument to extreme values: the call succeeds, or fails with an error and changes nothing. */
static void test_extremes(const subject *s) {
    int i, k;
    for (i = 0; i < s->c->nargs; i++) {
        for (k = 0; k <= EXTREMES; k++) {
            OPD_SCOPED;
            opd_value rets[MOST_RESULTS];
            uint64_t before;
            int rc;
            if (!again(s, OPD_FLOAT32, CASE_CONTIGUOUS, false, false)) { return; }
            if (!make_extreme(s->c, i, k)) { break; }
            before = print_of(s->c);
            rc = opd_call_all((opd_op *)(uintptr_t)s->op, rets, s->c->args, s->c->nargs);
            CHECK((rc != 0) == !opd_ok());
            if (rc && print_of(s->c) != before) {
                printf("%s: argument %d, variant %d: %s\n", what, i, k, opd_error_message());
                CHECK(!"a call that failed has changed something");
            }
            opd_error_clear();
        }
    }
}

//-- one operator ------------------------------------------------------------------------------------------------------

static void test_case(const subject *s) {
    opd_tensor *real[MOST_RESULTS];
    int n, layout;
    OPD_SCOPED;
    if (!again(s, OPD_FLOAT32, CASE_CONTIGUOUS, false, false)) { return; }
    n = run_case(s->c, real);
    if (!went_well(n)) { return; }
    OPD_SCOPE { test_fake(s, real, n); }
    OPD_SCOPE { test_layouts(s, real, n); }
    OPD_SCOPE { test_dtypes(s); }
    if (s->card->out) { OPD_SCOPE { test_out(s, real, n); } }
    if (s->card->inplace) { OPD_SCOPE { test_inplace(s, real, n); } }
    for (layout = CASE_CONTIGUOUS; layout <= (s->card->inplace ? INTO_VIEW : BROADCAST) && has_formula(s->card); layout++) {
        OPD_SCOPE { test_derivatives(s, layout); }
    }
    (void)check_allocations(with_derivatives, (void *)(uintptr_t)s, what, 200, false);
    OPD_SCOPE { test_extremes(s); }
}
static void test_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    subject s;
    s.op = op;
    s.card = opd_op_card(op);
    s.index = 0;
    s.c = &c;
    CHECK_OR_RETURN(s.card != NULL);
    CHECK(s.card->vmap != NULL);
    CHECK(s.card->autocast != OPD_AUTOCAST_FORGOTTEN);
    CHECK(s.card->backward || s.card->composite || s.card->autograd);
    CHECK(s.card->cpu || s.card->any || s.card->composite);
    CHECK(s.card->fake || s.card->any || s.card->composite || depends_on_data(op));
    CHECK_OR_RETURN(cases_of(s.op) != NULL);
    s.text = cases_of(s.op);
    do {
        const char *rest = s.text;
        opd_scope scope = opd_scope_open();
        c.op = op;
        c.dtype = OPD_FLOAT32;
        c.layout = CASE_CONTIGUOUS;
        c.smooth = c.meta = false;
        if (!case_read_next(&c, &rest)) {
            if (c.wrong) { printf("%s: cases: cannot read \"%s\"\n", opd_op_name(op), c.wrong); }
            CHECK(!c.wrong);
            opd_scope_close(&scope);
            break;
        }
        opd_scope_close(&scope);
        test_case(&s);
        s.text = rest;
        s.index++;
    } while (*s.text);
}

static void add_operators(void) {
    inside_most = (size_t)64 << 20;               /* what an extreme argument asks for is not there */
    add_builtin_operators(test_operator, NULL);
}

//-- all operators -----------------------------------------------------------------------------------------------------

TEST(cards_have_every_field) {
    int i, offenders = 0;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const opd_op_desc *d = op ? opd_op_card(op) : NULL;
        const char *missing = !d ? "card" : !d->vmap ? "vmap" : !d->autocast ? "autocast" : !d->cases ? "cases" :
                              !(d->backward || d->composite || d->autograd) ? "backward" : NULL;
        if (missing) { printf("    %s: no %s\n", op ? opd_op_name(op) : "?", missing); offenders++; }
    }
    CHECK_INT(offenders, 0);
}

CHECK_MAIN_ADD(add_operators)
