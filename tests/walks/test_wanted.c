/* Every operator, with the sample arguments of its descriptor: only one tensor argument requires grad, in each dtype
   that may, also if it has integers in the sample; forward, backward, twice, and in forward mode.  In each case,
   there are gradients with the right sizes and dtypes, or one error.  A built-in backward function never silently
   omits a gradient that is needed.  The test also has backward functions of programs that return too few gradients.
   -v prints the name of each run. */
#include "../further_cases.h"

static bool verbose, listing;

//-- every operator ------------------------------------------------------------------------------------------------------

/* A case with one tensor, number `which`, that may require grad. */
typedef struct subject {
    const opd_op *op;
    const char *text;
    int which;
    opd_scalar_type dtype;                        /* of that tensor; */
    bool whole;                                   /* all floating ones have it */
    op_case *c;
    opd_tensor *leaf, *out[MOST_RESULTS];
    int nout;
} subject;
static char now[300];

/* An error is over: it is none of formulas that say too little, or nothing, nor of writes that a schema does not declare. */
static void cleared(void) {
    const bool bad = !opd_ok() && (strstr(opd_error_message(), "incorrect number of gradients") || strstr(opd_error_message(), "without setting an error") ||
                                   strstr(opd_error_message(), "writes into its argument"));
    if (bad) { printf("%s: %s\n", now, opd_error_message()); CHECK(!"a formula leaves something out"); }
    opd_error_clear();
}
/* Reads the case in a dtype.  Returns false if there is none. */
static bool read_in(subject *s, opd_scalar_type dtype) {
    const char *text = s->text;
    s->c->op = s->op;
    s->c->dtype = dtype;
    s->c->layout = CASE_CONTIGUOUS;
    s->c->smooth = true;
    return case_read_next(s->c, &text);
}
/* Returns the place of the tensors of argument i, and sets *count to their number. */
static opd_tensor **tensors_at(subject *s, int i, int *count) {
    opd_value *const v = &s->c->args[i];
    *count = v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0;
    return v->tag == OPD_TAG_TENSORS ? (opd_tensor **)(uintptr_t)v->u.tensors : &v->u.t;
}
/* Reads the case.  Returns false if it has no such tensor. */
static bool given(subject *s) {
    int i, k, n = 0, count;
    if (!read_in(s, s->whole ? s->dtype : OPD_FLOAT64)) { return false; }
    for (i = 0; i < s->c->nargs; i++) {
        opd_tensor **at = tensors_at(s, i, &count);
        for (k = 0; k < count; k++, at++) {
            if (!*at || n++ != s->which) { continue; }
            s->leaf = opd_to_dtype(*at, s->dtype);
            if (s->leaf == *at) { s->leaf = opd_clone(*at); }
            *at = s->leaf;
            return s->leaf != NULL;
        }
    }
    return false;
}
static void put(subject *s, opd_tensor *t) {
    int i, k, count;
    for (i = 0; i < s->c->nargs; i++) {
        opd_tensor **at = tensors_at(s, i, &count);
        for (k = 0; k < count; k++, at++) {
            if (*at == s->leaf) { *at = t; }
        }
    }
}
static bool called(subject *s) {
    opd_value rets[OPD_MAX_ARGS];
    if (opd_call_all((opd_op *)(uintptr_t)s->op, rets, s->c->args, s->c->nargs)) { return false; }
    s->nout = results_of(s->op, rets, s->out);
    return true;
}
/* The gradient of x along ones of the results that have a history, or of result `only`; false with an error, or without any. */
static bool differentiated(subject *s, int only, bool create, opd_tensor **g) {
    opd_tensor *out[MOST_RESULTS], *w[MOST_RESULTS];
    opd_backward_options o;
    int i, n = 0;
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    o.retain_graph = true;
    o.create_graph = create;
    o.grad_outputs = w;
    for (i = 0; i < s->nout; i++) {
        if (!opd_tensor_node(s->out[i]) || (only >= 0 && only != i)) { continue; }
        w[n] = opd_ones_like(s->out[i]);
        out[n++] = s->out[i];
    }
    return n > 0 && opd_autograd_grad(out, n, &s->leaf, 1, &o, g) == 0;
}
static bool fits(const opd_tensor *g, const opd_tensor *x) { return !g || (same_shape(g, x) && opd_dtype(g) == opd_dtype(x)); }

static void backward(subject *s) {
    opd_tensor *g = NULL, *h = NULL, *sum;
    opd_backward_options o;
    int i, more = 0;
    if (!given(s) || !opd_tensor_set_requires_grad(s->leaf, true)) { cleared(); return; }
    (void)called(s);                              /* with the leaf itself */
    cleared();
    put(s, opd_clone(s->leaf));
    if (!called(s)) { cleared(); return; }
    for (i = 0; i < s->nout; i++) { more += opd_tensor_node(s->out[i]) != NULL; }
    for (i = 0; i < s->nout && more > 1; i++) {
        if (differentiated(s, i, false, &g)) { CHECK(fits(g, s->leaf)); }
        cleared();
    }
    if (!differentiated(s, -1, false, &g)) {
        if (listing && more && !strstr(opd_error_message(), "not implemented")) { printf("ERROR %s %s: %s\n", now, opd_schema_arg_name(opd_op_schema(s->op), s->which), opd_error_message()); }
        cleared();
        return;
    }
    CHECK(fits(g, s->leaf));
    if (!g && listing) { printf("NONE %s\n", now); }
    if (!differentiated(s, -1, true, &g) || !g || !opd_tensor_requires_grad(g)) { cleared(); return; }
    memset(&o, 0, sizeof o);
    o.allow_unused = true;
    sum = opd_sum(opd_mul(g, g));
    if (opd_dtype_is_complex(opd_dtype(g))) { sum = opd_sum(opd_abs(g)); }
    if (sum && opd_autograd_grad(&sum, 1, &s->leaf, 1, &o, &h) == 0) { CHECK(fits(h, s->leaf)); }
    cleared();
}
/* All floating tensors at once require grad but `without` (-1: none), and so do the gradients, for a second derivative. */
static bool together(subject *s, int without) {
    opd_tensor *leaf[MOST_INPUTS], *g[MOST_INPUTS], *out[MOST_RESULTS], *w[MOST_RESULTS], *h;
    opd_backward_options o;
    int i, k, n = 0, m = 0, seen = 0, count;
    if (!read_in(s, OPD_FLOAT64)) { return false; }
    for (i = 0; i < s->c->nargs; i++) {
        opd_tensor **at = tensors_at(s, i, &count);
        for (k = 0; k < count && n < MOST_INPUTS; k++, at++) {
            if (!*at || opd_dtype(*at) != OPD_FLOAT64 || constant_argument(s->op, opd_schema_arg_name(opd_op_schema(s->op), i))) { continue; }
            if (seen++ == without) { continue; }
            leaf[n++] = opd_tensor_set_requires_grad(*at, true);
            *at = opd_clone(*at);
        }
    }
    if (!called(s)) { cleared(); return without < seen - 1; }
    memset(&o, 0, sizeof o);
    o.allow_unused = o.create_graph = true;
    o.grad_outputs = w;
    for (i = 0; i < s->nout; i++) {
        if (!opd_tensor_node(s->out[i])) { continue; }
        w[m] = opd_tensor_set_requires_grad(opd_ones_like(s->out[i]), true);
        out[m++] = s->out[i];
    }
    if (m && n && opd_autograd_grad(out, m, leaf, n, &o, g) == 0) {
        o.grad_outputs = NULL;
        o.create_graph = false;
        o.retain_graph = true;
        for (i = 0; i < n; i++) {
            CHECK(fits(g[i], leaf[i]));
            if (!g[i] || !opd_tensor_requires_grad(g[i]) || opd_dtype_is_complex(opd_dtype(g[i]))) { continue; }
            h = opd_sum(opd_mul(g[i], g[i]));
            if (h) { opd_tensor *again[MOST_INPUTS]; (void)opd_autograd_grad(&h, 1, leaf, n, &o, again); }
            cleared();
        }
    }
    cleared();
    return without < seen - 1;
}
static void forward(subject *s) {
    int level = opd_dual_level_begin(), i;
    if (given(s)) {
        opd_tensor *dual = opd_dual_new(s->leaf, opd_ones_like(s->leaf)), *tangent = NULL;
        if (dual) { put(s, opd_clone(dual)); }
        if (dual && called(s)) {
            for (i = 0; i < s->nout; i++) {
                if (opd_dual_unpack(s->out[i], &tangent)) { CHECK(!tangent || same_shape(tangent, s->out[i])); }
            }
        }
    }
    cleared();
    CHECK_INT(opd_dual_level_end(level), 0);
}
static void test_cases(const opd_op *op, const char *cases) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT64, OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16, OPD_COMPLEX128, OPD_COMPLEX64};
    static op_case c;
    subject s;
    const char *text;
    size_t d;
    memset(&s, 0, sizeof s);
    s.op = op;
    s.c = &c;
    for (text = cases; *text;) {
        const char *rest = text;
        bool more;
        c.op = s.op;
        c.dtype = OPD_FLOAT64;
        c.layout = CASE_CONTIGUOUS;
        OPD_SCOPE { more = case_read_next(&c, &rest); }
        opd_error_clear();
        if (!more) { break; }
        s.text = text;
        for (s.which = -1, more = true; more; s.which++) {
            (void)snprintf(now, sizeof now, "%s \"%.*s\" all tensors but %d", opd_op_name(s.op), (int)strcspn(text + (*text == ';'), ";"),
                           text + (*text == ';'), s.which);
            if (verbose) { printf("case %s\n", now); fflush(stdout); }
            OPD_SCOPE { more = together(&s, s.which); }
        }
        for (s.which = 0, more = true; more; s.which++) {
            for (d = 0; d < 2 * sizeof dtypes / sizeof dtypes[0] && more; d++) {
                s.dtype = dtypes[d / 2];
                s.whole = d % 2 == 1;
                if (s.whole && (s.dtype == OPD_FLOAT64 || s.dtype == OPD_COMPLEX64)) { continue; }       /* seen; cases have none */
                (void)snprintf(now, sizeof now, "%s \"%.*s\" tensor %d %s%s", opd_op_name(s.op), (int)strcspn(text + (*text == ';'), ";"),
                               text + (*text == ';'), s.which, opd_dtype_name(s.dtype), s.whole ? " as all" : "");
                if (verbose) { printf("case %s\n", now); fflush(stdout); }
                OPD_SCOPE { more = given(&s); }
                opd_error_clear();
                if (!more) { break; }
                OPD_SCOPE { backward(&s); }
                OPD_SCOPE { forward(&s); }
            }
        }
        text = rest;
    }
    CHECK(true);
}
static void test_operator(void *arg) { test_cases((const opd_op *)arg, cases_of((const opd_op *)arg)); }
static void test_further(void *arg) { test_cases(opd_find(further[(uintptr_t)arg].name), further[(uintptr_t)arg].cases); }

//-- backward functions of programs -------------------------------------------------------------------------------------

static int sum_of_two(opd_call *call) { return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1))); }
static int sum_of_list(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    return opd_return_tensor(call, opd_add(list.data[0], list.data[1]));
}
static int two_results(opd_call *call) {
    return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0))) || opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 1)));
}
static int gives_first(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
static int gives_nothing(opd_backward_call *bw) { (void)bw; return 0; }
static int says_none(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)) || opd_bw_return(bw, 1, NULL); }
static int gives_what_came(opd_backward_call *bw) {
    int i;
    for (i = 0; i < 2; i++) {
        opd_tensor *g = opd_bw_grad(bw, i);
        if (g && opd_bw_return(bw, i, g)) { return -1; }
    }
    return 0;
}
static int takes_it_back(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, NULL) || opd_bw_return(bw, 0, opd_bw_grad(bw, 0)) || opd_bw_return(bw, 1, opd_bw_grad(bw, 0)) ||
           opd_bw_return(bw, 1, NULL);
}
static int gives_first_element(opd_backward_call *bw) { return opd_bw_return_at(bw, 0, 0, opd_bw_grad(bw, 0)); }
/* The sizes of argument 0 from their end, and one more, whether it is wanted or not. */
static int reads_sizes(opd_backward_call *bw) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    const bool wanted = opd_bw_needs(bw, 0);
    CHECK_INT(sizes.n, wanted ? 1 : -1);
    CHECK_INT(sizes.data[wanted ? 0 : sizes.n - 2], wanted ? 2 : 0);
    CHECK_INT(sizes.data[wanted ? 0 : 3], wanted ? 2 : 0);
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)) || opd_bw_return(bw, 1, opd_bw_grad(bw, 0));
}
static opd_library *library;
static opd_op *operator_of(const char *schema, opd_kernel kernel, opd_backward_fn formula, const char *name) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema;
    d.cpu = d.fake = kernel;
    d.backward = formula;
    library = opd_library_open(OPD_DEF, "few", NULL, "t", 1);
    CHECK_INT(opd_define(library, &d), 0);
    return opd_find(name);
}
static opd_tensor *leaf(bool on) {
    opd_tensor *t = opd_ones(OPD_INTS(2), OPD_FLOAT64);
    return on ? opd_tensor_set_requires_grad(t, true) : t;
}
#define FEW(expected, got) "returned an incorrect number of gradients (expected " #expected ", got " #got ")"
/* Runs backward with both results, then with only the first. */
static void must_fail(opd_op *op, const char *text) {
    opd_tensor *a = leaf(true), *b = leaf(true);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, a, b))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, text);
    CHECK(!opd_tensor_grad(a) && !opd_tensor_grad(b));
}
static unsigned failed_parts(opd_op *op, unsigned tests, char *report, size_t cap) {
    opd_value args[2];
    opd_opcheck_options o;
    unsigned failed = 0;
    memset(&o, 0, sizeof o);
    o.tests = tests;
    o.failed = &failed;
    o.report = report;
    o.report_cap = cap;
    args[0] = opd_value_tensor(leaf(true));
    args[1] = opd_value_tensor(leaf(true));
    CHECK_INT(opd_opcheck(op, args, 2, &o), 0);
    return failed;
}
TEST(a_card_with_too_few_gradients) {
    opd_op *op = operator_of("one(Tensor x, Tensor y) -> Tensor", sum_of_two, gives_first, "few::one");
    opd_tensor *a = leaf(true), *in[2], *g[2], *y;
    char report[2000];
    must_fail(op, "the backward function of few::one " FEW(2, 1) ": there is none for argument 'y', which requires grad; return it with "
              "opd_bw_return(bw, 1, grad), or call opd_bw_return(bw, 1, NULL) if there is none");
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, a, leaf(false)))), 0);      /* nobody wants the other */
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(a))[1], 1, 0);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, leaf(false), a))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, FEW(1, 0));
    in[0] = a;
    in[1] = leaf(true);
    y = opd_sum(OPD_CALL(op, in[0], in[1]));
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, NULL, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, FEW(2, 1));
    CHECK_INT(failed_parts(op, OPD_OPCHECK_AUTOGRAD, report, sizeof report), OPD_OPCHECK_AUTOGRAD);
    CHECK(strstr(report, "test_autograd_registration failed with the backward function of few::one " FEW(2, 1)) != NULL);
    CHECK((failed_parts(op, 0, report, sizeof report) & OPD_OPCHECK_AUTOGRAD) != 0);
    opd_library_close(library);
}
TEST(a_card_with_no_gradient) {
    opd_op *op = operator_of("none(Tensor x, Tensor y) -> Tensor", sum_of_two, gives_nothing, "few::none");
    char report[2000];
    must_fail(op, "few::none " FEW(2, 0) ": there is none for argument 'x'");
    CHECK_INT(failed_parts(op, OPD_OPCHECK_AUTOGRAD, report, sizeof report), OPD_OPCHECK_AUTOGRAD);
    opd_library_close(library);
}
TEST(a_registered_formula_with_too_few_gradients) {
    opd_op *op = operator_of("third(Tensor x, Tensor y) -> Tensor", sum_of_two, NULL, "few::third");
    char report[2000];
    CHECK_INT(opd_autograd_register(library, "third", gives_first, NULL), 0);
    must_fail(op, "few::third " FEW(2, 1) ": there is none for argument 'y'");
    CHECK_INT(failed_parts(op, OPD_OPCHECK_AUTOGRAD, report, sizeof report), OPD_OPCHECK_AUTOGRAD);
    opd_library_close(library);
}
TEST(a_list_with_too_few_gradients) {
    opd_op *op = operator_of("list(Tensor[] all) -> Tensor", sum_of_list, gives_first_element, "few::list");
    opd_tensor *list[2];
    list[0] = leaf(true);
    list[1] = leaf(true);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, opd_tensors_of(list, 2)))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "few::list " FEW(2, 1) ": there is none for argument 'all', which requires grad; return it with opd_bw_return_at(bw, 0, 1, grad)");
    opd_library_close(library);
}
TEST(a_formula_may_say_that_there_is_none) {
    opd_op *op = operator_of("said(Tensor x, Tensor y) -> Tensor", sum_of_two, says_none, "few::said");
    opd_tensor *a = leaf(true), *b = leaf(true);
    char report[2000];
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, a, b))), 0);
    CHECK(opd_tensor_grad(a) && !opd_tensor_grad(b));
    CHECK_INT(failed_parts(op, 0, report, sizeof report), 0);
    opd_library_close(library);
    op = operator_of("back(Tensor x, Tensor y) -> Tensor", sum_of_two, takes_it_back, "few::back");
    a = leaf(true);
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, a, b))), 0);
    CHECK(opd_tensor_grad(a) && !opd_tensor_grad(b));
    opd_library_close(library);
}
/* A backward function returns no gradient because the gradient of a result for which it asked is NULL. */
TEST(a_formula_that_saw_no_gradient) {
    opd_op *op = operator_of("two(Tensor x, Tensor y) -> (Tensor, Tensor)", two_results, gives_what_came, "few::two");
    opd_tensor *a = leaf(true), *b = leaf(true);
    opd_value rets[2];
    char report[2000];
    CHECK_INT(OPD_CALL_N(op, rets, a, b), 0);
    CHECK_INT(opd_backward(opd_sum(rets[1].u.t)), 0);
    CHECK(!opd_tensor_grad(a) && opd_tensor_grad(b));
    CHECK_INT(failed_parts(op, 0, report, sizeof report), 0);
    opd_library_close(library);
    op = operator_of("two(Tensor x, Tensor y) -> (Tensor, Tensor)", two_results, gives_first, "few::two");
    CHECK_INT(OPD_CALL_N(op, rets, a, b), 0);
    CHECK_INT(opd_backward(opd_sum(rets[0].u.t)), -1);            /* it did not ask for the other */
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, FEW(2, 1));
    opd_library_close(library);
}
static int function_sum(opd_context *ctx) { return opd_context_return(ctx, opd_add(opd_context_tensor(ctx, 0), opd_context_tensor(ctx, 1))); }
TEST(a_function_with_too_few_gradients) {
    opd_autograd_function f;
    opd_tensor *a = leaf(true), *b = leaf(true), *y;
    memset(&f, 0, sizeof f);
    f.name = "Few";
    f.forward = function_sum;
    f.backward = gives_first;
    CHECK_INT(opd_backward(opd_sum(OPD_APPLY(&f, a, b))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the backward function of FewBackward " FEW(2, 1) ": there is none for input 1, which requires grad; return it with "
                "opd_bw_return(bw, 1, grad)");
    CHECK_INT(opd_backward(opd_sum(OPD_APPLY(&f, a, leaf(false)))), 0);
    f.once_differentiable = true;
    CHECK_INT(opd_backward(opd_sum(OPD_APPLY(&f, a, b))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, FEW(2, 1));
    f.backward = says_none;
    CHECK_INT(opd_backward(opd_sum(OPD_APPLY(&f, a, b))), 0);
    CHECK(!opd_tensor_grad(b));
    /* written by hand, and into a view */
    y = opd_clone(b);
    OPD_NO_GRAD { y = opd_clone(b); }
    {
        opd_tensor *in[2];
        in[0] = a;
        in[1] = b;
        CHECK_INT(opd_autograd_record("HandBackward", gives_first, in, 2, NULL, 0, NULL, 0, &y, 1), 0);
    }
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the backward function of HandBackward " FEW(2, 1) ": there is none for input 1");
}
TEST(sizes_of_what_nobody_wants) {
    opd_op *op = operator_of("sized(Tensor x, Tensor y) -> Tensor", sum_of_two, reads_sizes, "few::sized");
    int i;
    for (i = 1; i < 4; i++) { CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, leaf((i & 1) != 0), leaf((i & 2) != 0)))), 0); }
    opd_library_close(library);
}

static void say_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
int main(int argc, char **argv) {
    opd_op *op;
    int i;
    for (i = 1; i < argc; i++) { verbose = verbose || strcmp(argv[i], "-v") == 0; }
    listing = getenv("OPD_TEST_LIST") != NULL;
    opd_log_set(say_nothing, NULL);
    (void)(opd_find("torchvision::nms") && opd_find("_c10d_functional::wait_tensor"));     /* with all that come with them */
    opd_error_clear();
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        if (cases_of(op)) { check_add_with(opd_op_name(op), test_operator, op); }
    }
    for (i = 0; i < (int)(sizeof further / sizeof *further); i++) { check_add_with(further[i].name, test_further, (void *)(uintptr_t)i); }
    return check_main(argc, argv, __FILE__);
}
