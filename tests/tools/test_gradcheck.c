/* gradcheck and gradgradcheck: functions that pass, every way to fail with its text, options, bad input, failing
   allocations.  Verdicts and texts are PyTorch's. */
#include "../../opdispatch.h"
#include "../check.h"

static opd_tensor *numbers(opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT64);
    int64_t i;
    for (i = 0; i < opd_numel(t); i++) { opd_data_f64(t)[i] = 0.3 + 0.17 * (double)((i * 7) % 11); }
    return dtype == OPD_FLOAT64 ? t : opd_to_dtype(t, dtype);
}
static opd_tensor *leaf(opd_ints sizes) { return opd_tensor_set_requires_grad(numbers(sizes, OPD_FLOAT64), true); }
static opd_gradcheck_options quiet(char *buf, size_t cap) {
    opd_gradcheck_options o = opd_gradcheck_defaults();
    o.raise_exception = false;
    o.report = buf;
    o.report_cap = cap;
    return o;
}
static void starts_with(const char *text, const char *start) {
    if (strncmp(text, start, strlen(start)) != 0) { printf("  is       \"%s\"\n  expected \"%s...\"\n", text, start); }
    CHECK(strncmp(text, start, strlen(start)) == 0);
}

//-- functions to check ------------------------------------------------------------------------------------------------

static int product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_mul(opd_sin(in[0]), n > 1 ? in[1] : in[0]);
    return 1;
}
/* Two results, of which the second does not depend on the first input, and one without gradients. */
static int several(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(in[0], in[1]);
    out[1] = opd_exp(in[1]);
    out[2] = opd_argmax(in[0], OPD_NONE, false);
    return 3;
}
/* Twice the right gradient where x is more than one. */
static int wrong_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0), *g = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(g, opd_add_Scalar(opd_to_dtype(opd_gt_Scalar(x, OPD_V(1.0)), OPD_FLOAT64), OPD_V(1))));
}
static int adds_one(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_add_Scalar(opd_bw_grad(bw, 0), OPD_V(1e-9))); }
static int runs;
static int never_the_same(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), OPD_V(1 + 1e-7 * (double)(runs++ % 2))));
}
/* Of two results: right with both gradients, and with one of them that is not zero. */
static opd_tensor *one_of_two(opd_backward_call *bw, bool *zero) {
    opd_tensor *a = opd_bw_grad(bw, 0), *b = opd_bw_grad(bw, 1);
    *zero = (!a || !b) && opd_item_i64(opd_any(a ? a : b)) == 0;
    return a && b ? opd_add(a, b) : a ? a : b;
}
static int fails_without(opd_backward_call *bw) {
    bool zero;
    opd_tensor *g = one_of_two(bw, &zero);
    return zero ? opd_fail(OPD_ERROR_USER, "both, please") : opd_bw_return(bw, 0, g);
}
static int fills_in(opd_backward_call *bw) {
    bool zero;
    opd_tensor *g = one_of_two(bw, &zero);
    return opd_bw_return(bw, 0, zero ? opd_ones_like(g) : g);
}
static int fails(opd_backward_call *bw) { (void)bw; return opd_fail(OPD_ERROR_USER, "no"); }

/* The identity, one or two results, with this formula. */
typedef struct identity { opd_backward_fn formula; int results; } identity;
static int by_hand(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const identity *how = (const identity *)user;
    opd_tensor *x = in[0];
    int i;
    (void)n;
    for (i = 0; i < how->results; i++) { out[i] = opd_clone(opd_detach(x)); }
    if (opd_autograd_record("ByHandBackward", how->formula, &x, 1, &x, 1, NULL, 0, out, how->results)) { return -1; }
    return how->results;
}
static int constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_exp(opd_detach(in[0]));
    return 1;
}
static int really_constant(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_zeros_like(in[0]);
    return 1;
}
/* The checks use random gradients also for complex results, even for several of them. */
TEST(complex_results) {
    opd_gradcheck_options o = opd_gradcheck_defaults();
    opd_tensor *x = opd_tensor_set_requires_grad(numbers(OPD_INTS(2, 3), OPD_COMPLEX128), true);
    o.check_batched_grad = true;
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &o), 0);
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, &o), 0);
    CHECK_OK();
}

//-- functions that pass -----------------------------------------------------------------------------------------------

TEST(right_functions_pass) {
    opd_tensor *in[3];
    opd_gradcheck_options o = opd_gradcheck_defaults();
    int fast;
    CHECK_NEAR(o.eps, 1e-6, 0);
    CHECK_NEAR(o.atol, 1e-5, 0);
    CHECK_NEAR(o.rtol, 1e-3, 0);
    CHECK(o.raise_exception && o.check_undefined_grad && o.check_backward_ad && !o.fast_mode && !o.check_forward_ad);
    for (fast = 0; fast < 2; fast++) {
        o.fast_mode = fast != 0;
        in[0] = leaf(OPD_INTS(2, 3));
        in[1] = leaf(OPD_INTS(3));
        CHECK_INT(opd_gradcheck(product, NULL, in, 1, &o), 0);
        CHECK_INT(opd_gradcheck(product, NULL, in, 2, &o), 0);
        CHECK_INT(opd_gradcheck(several, NULL, in, 2, &o), 0);
        CHECK_INT(opd_gradgradcheck(product, NULL, in, 1, NULL, &o), 0);
        CHECK_INT(opd_gradgradcheck(product, NULL, in, 2, NULL, &o), 0);
        CHECK_INT(opd_gradgradcheck(several, NULL, in, 2, NULL, &o), 0);
        in[1] = numbers(OPD_INTS(3), OPD_FLOAT64);                           /* an input without a gradient */
        CHECK_INT(opd_gradcheck(product, NULL, in, 2, &o), 0);
        CHECK_INT(opd_gradgradcheck(product, NULL, in, 2, NULL, &o), 0);
        in[0] = leaf(OPD_INTS(2, 0));
        CHECK_INT(opd_gradcheck(product, NULL, in, 1, &o), 0);
        CHECK_INT(opd_gradgradcheck(product, NULL, in, 1, NULL, &o), 0);
        in[0] = leaf(opd_ints_of(NULL, 0));
        CHECK_INT(opd_gradcheck(product, NULL, in, 1, NULL), 0);
        CHECK_INT(opd_gradgradcheck(product, NULL, in, 1, NULL, NULL), 0);
        CHECK_INT(opd_gradcheck(really_constant, NULL, in, 1, &o), 0);
    }
}
/* Zero, with a gradient of 9e-6 for each pair of elements. */
static int almost_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_expand_as(opd_mul_Scalar(opd_sum(opd_bw_grad(bw, 0)), opd_item_f64(opd_select(x, 0, 0)) > 1
                                              ? OPD_V(1.2e-5) : OPD_V(9e-6)), x));
}
static int almost(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    (void)user; (void)n;
    out[0] = opd_zeros(OPD_INTS(50), OPD_FLOAT64);
    return opd_autograd_record("AlmostBackward", almost_backward, &x, 1, &x, 1, NULL, 0, out, 1) ? -1 : 1;
}
TEST(a_projection_may_differ_by_as_much_as_its_elements) {
    opd_tensor *x = leaf(OPD_INTS(40));
    char report[2000];
    int fast;
    for (fast = 0; fast < 2; fast++) {
        opd_gradcheck_options o = quiet(report, sizeof report);
        o.fast_mode = fast != 0;
        opd_data_f64(x)[0] = 0.5;
        CHECK_INT(opd_gradcheck(almost, NULL, &x, 1, &o), 0);
        opd_data_f64(x)[0] = 1.5;
        CHECK_INT(opd_gradcheck(almost, NULL, &x, 1, &o), 1);
    }
}
/* A custom function with a complex input and a real output: the real part of the square. */
static int power_backward(opd_backward_call *bw) {
    opd_tensor *z = opd_bw_tensor(bw, 0), *dz = opd_clone(z), *g = opd_contiguous(opd_bw_grad(bw, 0));
    double *p = (double *)opd_data(dz);
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < 2 * opd_numel(z); i++) { p[i] *= 2 * opd_data_f64(g)[i / 2]; }
    return opd_bw_return(bw, 0, dz);
}
static int power(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *z = in[0];
    const double *p = (const double *)opd_data(z);
    int64_t i;
    (void)user; (void)n;
    out[0] = opd_tensor_new(opd_ints_of(opd_sizes(z), opd_ndim(z)), OPD_FLOAT64);
    for (i = 0; i < opd_numel(z); i++) { opd_data_f64(out[0])[i] = p[2 * i] * p[2 * i] + p[2 * i + 1] * p[2 * i + 1]; }
    return opd_autograd_record("PowerBackward", power_backward, &z, 1, &z, 1, NULL, 0, out, 1) ? -1 : 1;
}
TEST(complex_inputs_and_real_outputs) {
    static const double a[] = {0.5, -1, 2, 0.25, 1, 1};
    opd_tensor *z = opd_tensor_set_requires_grad(opd_tensor_from(a, OPD_INTS(3), OPD_COMPLEX128), true);
    opd_gradcheck_options o = opd_gradcheck_defaults();
    CHECK_INT(opd_gradcheck(power, NULL, &z, 1, &o), 0);
    o.fast_mode = true;
    CHECK_INT(opd_gradcheck(power, NULL, &z, 1, &o), 0);
}
TEST(inputs_stay_as_they_were) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_t(numbers(OPD_INTS(3, 2), OPD_FLOAT64)), true), *was = opd_clone(opd_detach(x));
    uint32_t version = opd_tensor_version(x);
    CHECK(!opd_is_contiguous(x));
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, NULL), 0);
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, NULL), 0);
    CHECK(opd_item_i64(opd_all(opd_eq(opd_detach(x), was))) == 1);
    CHECK_INT(opd_tensor_version(x), version);
    CHECK(opd_tensor_grad(x) == NULL);
}
TEST(gradients_of_outputs_can_be_given) {
    opd_tensor *x = leaf(OPD_INTS(2, 2)), *g = leaf(OPD_INTS(2, 2)), *short_one = leaf(OPD_INTS(3)), *none = NULL;
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, &g, NULL), 0);
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, &short_one, NULL), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Mismatch in shape");
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, &none, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "gradient 0 is NULL");
}

//-- functions that fail -----------------------------------------------------------------------------------------------

TEST(a_wrong_formula_is_shown_with_both_jacobians) {
    static const char *const text =
        "Jacobian mismatch for output 0 with respect to input 0,\n"
        "worst element: row 1 (of the input), column 1 (of the output): numerical 1, analytical 2\n"
        "numerical:tensor([[1.0000, 0.0000],\n"
        "        [0.0000, 1.0000]], dtype=torch.float64)\n"
        "analytical:tensor([[1., 0.],\n"
        "        [0., 2.]], dtype=torch.float64)\n";
    identity wrong;
    char report[4000];
    opd_gradcheck_options o = quiet(report, sizeof report);
    opd_tensor *x = leaf(OPD_INTS(2)), *many = leaf(OPD_INTS(30, 40));
    wrong.formula = wrong_backward;
    wrong.results = 1;
    CHECK_INT(opd_gradcheck(by_hand, &wrong, &x, 1, &o), 1);
    CHECK_OK();
    CHECK_STR(report, text);
    CHECK_INT(opd_gradcheck(by_hand, &wrong, &x, 1, NULL), -1);
    CHECK_STR(opd_error_message(), text);
    opd_error_clear();
    o.report_cap = 9;
    o.raise_exception = true;
    CHECK_INT(opd_gradcheck(by_hand, &wrong, &x, 1, &o), -1);
    CHECK_STR(report, "Jacobian");
    CHECK_STR(opd_error_message(), text);
    opd_error_clear();
    o = quiet(report, sizeof report);
    o.fast_mode = true;
    CHECK_INT(opd_gradcheck(by_hand, &wrong, &x, 1, &o), 1);
    CHECK_STR(report, text);
    CHECK_INT(opd_gradcheck(by_hand, &wrong, &many, 1, &o), 1);             /* a million and a half elements each */
    CHECK_OK();
    starts_with(report, "Jacobian mismatch for output 0 with respect to input 0,\nworst element: row ");
    CHECK(strstr(report, "numerical:tensor([[") && strstr(report, "analytical:tensor([[") && strlen(report) < 4000);
}
TEST(every_check_has_its_text) {
    static const struct { opd_backward_fn formula; int results; const char *text; } cases[] = {
        {adds_one, 1, "backward not multiplied by grad_output"},
        {never_the_same, 1, "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                            "different values, although analytical gradient matches numerical gradient.The tolerance for nondeterminism was 0."},
        {fails_without, 2, "Expected backward function to handle undefined output grads."},
        {fills_in, 2, "Expected all input grads to be undefined or zero when all output grads are undefined or zero."},
    };
    char report[3000];
    opd_gradcheck_options o = quiet(report, sizeof report);
    opd_tensor *x = leaf(OPD_INTS(3));
    size_t i;
    int fast;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (fast = 0; fast < 2; fast++) {
            identity f;
            f.formula = cases[i].formula;
            f.results = cases[i].results;
            o = quiet(report, sizeof report);
            o.fast_mode = fast != 0;
            CHECK_INT(opd_gradcheck(by_hand, &f, &x, 1, &o), 1);
            CHECK_OK();
            starts_with(report, cases[i].text);
            o.raise_exception = true;
            CHECK_INT(opd_gradcheck(by_hand, &f, &x, 1, &o), -1);
            CHECK_ERROR(OPD_ERROR_AUTOGRAD, cases[i].text);
        }
    }
    {
        identity f;
        f.formula = never_the_same;
        f.results = 1;
        o.nondet_tol = 1e-6;
        CHECK_INT(opd_gradcheck(by_hand, &f, &x, 1, &o), 0);
        f.formula = fills_in;
        f.results = 2;
        o.check_undefined_grad = false;
        CHECK_INT(opd_gradcheck(by_hand, &f, &x, 1, &o), 0);
    }
}
TEST(a_function_without_gradients_must_be_constant) {
    opd_tensor *x = leaf(OPD_INTS(3));
    char report[300];
    opd_gradcheck_options o = quiet(report, sizeof report);
    CHECK_INT(opd_gradcheck(constant, NULL, &x, 1, &o), 1);
    starts_with(report, "Numerical gradient for function expected to be zero");
}
/* A formula whose second derivative is silently zero. */
static int forgets(opd_backward_call *bw) {
    bool was = opd_grad_mode_set(false);
    opd_tensor *x = opd_bw_tensor(bw, 0), *g = opd_mul(opd_bw_grad(bw, 0), opd_mul_Scalar(x, OPD_V(2)));
    (void)opd_grad_mode_set(was);
    return opd_bw_return(bw, 0, g);
}
static int square(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    (void)user; (void)n;
    out[0] = opd_mul(opd_detach(x), opd_detach(x));
    return opd_autograd_record("SquareBackward", forgets, &x, 1, &x, 1, NULL, 0, out, 1) ? -1 : 1;
}
TEST(a_second_derivative_that_is_forgotten_is_found) {
    opd_tensor *x = leaf(OPD_INTS(3));
    CHECK_INT(opd_gradcheck(square, NULL, &x, 1, NULL), 0);
    CHECK_INT(opd_gradgradcheck(square, NULL, &x, 1, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Numerical gradient for function expected to be zero");
}

//-- forward mode ------------------------------------------------------------------------------------------------------

/* Doubles its argument.  If a flag asks for a wrong derivative, the tangent is three times the argument's tangent. */
static int twice_cpu(opd_call *call) { return opd_return_tensor(call, opd_mul_Scalar(opd_arg_tensor(call, 0), OPD_V(2))); }
static int twice_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), OPD_V(2))); }
static int twice_jvp(opd_jvp_call *jv) {
    opd_tensor *t = opd_jvp_tangent(jv, 0);
    return opd_jvp_return(jv, 0, opd_mul_Scalar(t, OPD_V(opd_jvp_value(jv, 1).u.i ? 3 : 2)));
}
/* x y, whose tangent takes that of y for ones where there is none. */
static int pair_cpu(opd_call *call) { return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1))); }
static int pair_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_mul(g, y))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_mul(g, x)) : 0;
}
static int pair_jvp(opd_jvp_call *jv) {
    opd_tensor *x = opd_jvp_tensor(jv, 0), *y = opd_jvp_tensor(jv, 1), *dx = opd_jvp_tangent(jv, 0), *dy = opd_jvp_tangent(jv, 1);
    if (!dx) { return opd_jvp_return(jv, 0, opd_mul(x, dy)); }
    if (!dy) { dy = opd_item_f64(opd_select(dx, 0, 0)) == 0.75 ? opd_ones_like(y) : opd_zeros_like(y); }
    return opd_jvp_return(jv, 0, opd_add(opd_mul(dx, y), opd_mul(x, dy)));
}
/* 2 x; the rule for vmap is another operator's, or there is none. */
static int doubled_cpu(opd_call *call) { return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0))); }
static int doubled_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, OPD_CALL(opd_find("gradcheck_test::doubled"), opd_bw_grad(bw, 0))); }
static bool refuses;
static int doubled_rule(opd_call *call) {
    int dim;
    opd_tensor *x = opd_batch_arg(call, 0, &dim);
    return refuses ? opd_fail(OPD_ERROR_USER, "no examples, please") : opd_batch_return(call, opd_mul(x, x), dim);
}
OPD_LIBRARY(gradcheck_test, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "doubled(Tensor x) -> Tensor";
    d.cpu = doubled_cpu;
    d.backward = doubled_backward;
    d.vmap = doubled_rule;
    opd_define(lib, &d);
    d.vmap = NULL;
    d.schema = "twice(Tensor x, bool wrong) -> Tensor";
    d.cpu = twice_cpu;
    d.backward = twice_backward;
    d.jvp = twice_jvp;
    opd_define(lib, &d);
    d.schema = "pair(Tensor x, Tensor y) -> Tensor";
    d.cpu = pair_cpu;
    d.backward = pair_backward;
    d.save = "x, y";
    d.jvp = pair_jvp;
    opd_define(lib, &d);
}
static int twice(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value v[2];
    (void)n;
    v[0] = opd_value_tensor(in[0]);
    v[1] = opd_value_bool(user != NULL);
    out[0] = opd_call_op(opd_find("gradcheck_test::twice"), v, 2);
    return 1;
}
static int doubled(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = OPD_CALL(opd_find("gradcheck_test::doubled"), in[0]);
    return 1;
}
TEST(batched_gradients) {
    opd_tensor *x = leaf(OPD_INTS(2, 3));
    char text[2000];
    opd_gradcheck_options o = quiet(text, sizeof text);
    o.check_forward_ad = true;
    refuses = false;
    CHECK_INT(opd_gradcheck(doubled, NULL, &x, 1, &o), 0);
    o.check_batched_grad = true;
    CHECK_INT(opd_gradcheck(doubled, NULL, &x, 1, &o), 1);
    starts_with(text, "For output 0 and input 0: gradcheck or gradgradcheck failed while testing batched gradient computation. Got: ");
    refuses = true;
    CHECK_INT(opd_gradcheck(doubled, NULL, &x, 1, &o), 1);
    starts_with(text, "While computing batched gradients, got: ");
    CHECK(strstr(text, "no examples, please") != NULL);
    o.check_batched_grad = false;
    o.check_batched_forward_grad = true;
    CHECK_INT(opd_gradcheck(doubled, NULL, &x, 1, &o), 1);
    starts_with(text, "While computing batched gradients, got: ");
    refuses = false;
    CHECK_INT(opd_gradcheck(doubled, NULL, &x, 1, &o), 1);
    starts_with(text, "For output 0 and input 0: ");
    CHECK_INT(opd_transform_depth(), 0);
    o = opd_gradcheck_defaults();
    o.check_batched_grad = o.check_fwd_over_rev = o.check_batched_forward_grad = true;
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, &o), 0);
    o.check_fwd_over_rev = false;
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "check_batched_forward_grad requires check_fwd_over_rev to be true");
}
static int pair_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value v[2];
    (void)user; (void)n;
    v[0] = opd_value_tensor(in[0]);
    v[1] = opd_value_tensor(in[1]);
    out[0] = opd_call_op(opd_find("gradcheck_test::pair"), v, 2);
    return 1;
}
TEST(forward_mode) {
    char report[2000];
    opd_gradcheck_options o = quiet(report, sizeof report);
    opd_tensor *in[2];
    int fast, wrong = 1, mode;
    in[0] = leaf(OPD_INTS(3));
    in[1] = leaf(OPD_INTS(3));
    for (mode = 0; mode < 4; mode++) {
        o.fast_mode = (mode & 1) != 0;
        o.check_forward_ad = o.check_fwd_over_rev = true;
        o.check_backward_ad = o.check_rev_over_rev = mode < 2;
        CHECK_INT(opd_gradcheck(product, NULL, in, 2, &o), 0);
        CHECK_INT(opd_gradcheck(several, NULL, in, 2, &o), 0);
        CHECK_INT(opd_gradcheck(twice, NULL, in, 1, &o), 0);
        o.check_undefined_grad = mode < 2;
        CHECK_INT(opd_gradgradcheck(product, NULL, in, 2, NULL, &o), 0);
        CHECK_OK();
    }
    for (fast = 0; fast < 2; fast++) {
        o = quiet(report, sizeof report);
        o.fast_mode = fast != 0;
        CHECK_INT(opd_gradcheck(twice, &wrong, in, 1, &o), 0);              /* which backward does not see */
        o.check_forward_ad = true;
        CHECK_INT(opd_gradcheck(twice, &wrong, in, 1, &o), 1);
        starts_with(report, "Jacobian computed with forward mode mismatch for output 0 with respect to input 0,\nworst element: row ");
        CHECK(strstr(report, "numerical 2, analytical 3\nnumerical:tensor([[2.0000, 0.0000, 0.0000],\n"));
        CHECK(strstr(report, "analytical:tensor([[3., 0., 0.],\n        [0., 3., 0.],\n        [0., 0., 3.]], dtype=torch.float64)\n"));
        CHECK_INT(opd_gradcheck(pair_of, NULL, in, 2, &o), 1);
        starts_with(report, "Mismatch in tangent values for output with index: 0 when input: 1 has an undefined tangent value.");
        CHECK_OK();
    }
    {
        const int level = opd_dual_level_begin();
        CHECK_INT(opd_gradcheck(twice, NULL, in, 1, &o), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Nested forward mode AD is not supported at the moment");
        CHECK_INT(opd_dual_level_end(level), 0);
    }
}

//-- PyTorch's verdicts (golden/gradcheck.txt) -------------------------------------------------------------------------

static const struct { const char *name; opd_gradcheck_fn fn; opd_backward_fn formula; int results, inputs; double first; } subjects[] = {
    {"product", product, NULL, 0, 2, 0}, {"several", several, NULL, 0, 2, 0}, {"wrong", by_hand, wrong_backward, 1, 1, 0},
    {"adds", by_hand, adds_one, 1, 1, 0}, {"never_the_same", by_hand, never_the_same, 1, 1, 0},
    {"fails_without", by_hand, fails_without, 2, 1, 0}, {"fills_in", by_hand, fills_in, 2, 1, 0}, {"constant", constant, NULL, 0, 1, 0},
    {"really_constant", really_constant, NULL, 0, 1, 0}, {"forgets", square, NULL, 0, 1, 0}, {"almost_right", almost, NULL, 0, 1, 0.5},
    {"almost_wrong", almost, NULL, 0, 1, 1.5},
};
TEST(the_same_verdicts_as_pytorch) {
    enum { SUBJECTS = sizeof subjects / sizeof *subjects };
    char line[600], report[4000];
    int n = 0;
    FILE *f = check_golden("gradcheck.txt");
    CHECK_OR_RETURN(f != NULL);
    while (fgets(line, sizeof line, f)) OPD_SCOPE {
        opd_gradcheck_options o = quiet(report, sizeof report);
        opd_tensor *in[2];
        identity how;
        size_t i = 0, length = strcspn(line, " ");
        char *text = strchr(line, '|') + 1;
        int rc;
        while (i < SUBJECTS - 1 && (strlen(subjects[i].name) != length || strncmp(subjects[i].name, line, length) != 0)) { i++; }
        how.formula = subjects[i].formula;
        how.results = subjects[i].results;
        in[0] = leaf(OPD_INTS(strncmp(line, "almost", 6) == 0 ? 40 : 3));
        in[1] = leaf(OPD_INTS(3));
        if (subjects[i].first > 0) { opd_data_f64(in[0])[0] = subjects[i].first; }
        o.fast_mode = strstr(line, " fast|") != NULL;
        rc = strncmp(line + length, " gradcheck", 10) == 0 ? opd_gradcheck(subjects[i].fn, &how, in, subjects[i].inputs, &o)
             : opd_gradgradcheck(subjects[i].fn, &how, in, subjects[i].inputs, NULL, &o);
        CHECK_OK();
        text[strcspn(text, "\n")] = 0;
        CHECK_INT(rc, strcmp(text, "passes") == 0 ? 0 : 1);
        if (rc == 1) { starts_with(report, text); }
        n++;
    }
    (void)fclose(f);
    CHECK_INT(n, 30);
}

//-- complex numbers: as their parts -----------------------------------------------------------------------------------

/* z -> conj(z) w, by hand: copies are all there is for complex tensors. */
static int complex_product_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_contiguous(opd_bw_grad(bw, 0)), *z = opd_bw_tensor(bw, 0), *w = opd_bw_tensor(bw, 1);
    opd_tensor *dz = opd_clone(z), *dw = opd_clone(w);
    const double *pg = (const double *)opd_data(g), *pz = (const double *)opd_data(z), *pw = (const double *)opd_data(w);
    double *pdz = (double *)opd_data(dz), *pdw = (double *)opd_data(dw);
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(z); i++, pg += 2, pz += 2, pw += 2, pdz += 2, pdw += 2) {
        pdz[0] = pg[0] * pw[0] + pg[1] * pw[1];                             /* w conj(g) */
        pdz[1] = pg[0] * pw[1] - pg[1] * pw[0];
        pdw[0] = pg[0] * pz[0] - pg[1] * pz[1];                             /* g z */
        pdw[1] = pg[0] * pz[1] + pg[1] * pz[0];
    }
    if (bw && opd_bw_return(bw, 0, dz)) { return -1; }
    return opd_bw_return(bw, 1, dw);
}
static int complex_product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *z = in[0], *w = in[1];
    double *o;
    const double *pz = (const double *)opd_data(z), *pw = (const double *)opd_data(w);
    int64_t i;
    (void)n;
    out[0] = opd_clone(opd_detach(z));
    if (!opd_ok()) { return -1; }
    o = (double *)opd_data(out[0]);
    for (i = 0; i < opd_numel(z); i++, o += 2, pz += 2, pw += 2) {
        o[0] = pz[0] * pw[0] + pz[1] * pw[1];
        o[1] = pz[0] * pw[1] - pz[1] * pw[0] * (user ? 1.5 : 1);
    }
    return opd_autograd_record("ComplexProductBackward", complex_product_backward, in, 2, in, 2, NULL, 0, out, 1) ? -1 : 1;
}
TEST(complex_tensors_count_as_two) {
    static const double a[] = {0.5, -1, 2, 0.25}, b[] = {1.5, 0.5, -0.75, 1};
    opd_tensor *in[2];
    char report[3000];
    int fast, bad = 1;
    in[0] = opd_tensor_set_requires_grad(opd_tensor_from(a, OPD_INTS(2), OPD_COMPLEX128), true);
    in[1] = opd_tensor_set_requires_grad(opd_tensor_from(b, OPD_INTS(2), OPD_COMPLEX128), true);
    for (fast = 0; fast < 2; fast++) {
        opd_gradcheck_options o = quiet(report, sizeof report);
        o.fast_mode = fast != 0;
        o.check_undefined_grad = false;
        CHECK_INT(opd_gradcheck(complex_product, NULL, in, 2, &o), 0);
        CHECK_OK();
        CHECK_INT(opd_gradcheck(complex_product, &bad, in, 2, &o), 1);
        starts_with(report, "Jacobian mismatch for output 0 with respect to input 0,");
    }
}

//-- bad input ---------------------------------------------------------------------------------------------------------

static int changes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int *calls = (int *)user;
    (void)n;
    switch ((*calls)++ ? calls[1] : 0) {
        case 1: out[0] = opd_sum(in[0]); return 1;
        case 2: out[0] = opd_to_dtype(in[0], OPD_FLOAT32); return 1;
        case 3: out[0] = out[1] = in[0]; return 2;
        case 4: out[0] = NULL; return 1;
        case 5: return -1;
        case 6: return opd_fail(OPD_ERROR_USER, "the function says no");
        case 7: return 100;
        default: out[0] = opd_clone(in[0]); return 1;
    }
}
TEST(functions_that_change_or_fail) {
    static const char *const texts[] = {
        "Expected `func` to return outputs with the same shape when inputs are perturbed by 1e-06, but got: shapes [2] and [].",
        "Expected `func` to return outputs with the same dtype when inputs are perturbed by 1e-06, but got: dtypes float64 and float32.",
        "returned 1 outputs, and 2 outputs when it was called again", "but got: shapes [2] and none", "failed without setting an error", "the function says no", "returned 100 outputs, but at most"};
    opd_gradcheck_options o = opd_gradcheck_defaults();
    int k;
    o.raise_exception = false;                    /* these are errors all the same */
    for (k = 1; k <= 7; k++) {
        opd_tensor *x = leaf(OPD_INTS(2));
        double first = opd_data_f64(x)[0];
        int state[2];
        state[0] = 0;
        state[1] = k;
        CHECK_INT(opd_gradcheck(changes, state, &x, 1, &o), -1);
        CHECK(strstr(opd_error_message(), texts[k - 1]) != NULL);
        if (!strstr(opd_error_message(), texts[k - 1])) { printf("%d: %s\n", k, opd_error_message()); }
        opd_error_clear();
        CHECK_NEAR(opd_data_f64(x)[0], first, 0);
    }
}
static int warned;
static void count_warnings(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error == 0 && strstr(text, "gradcheck: input 0 is float32. Rounding errors can then look like a wrong derivative")) { warned++; }
}
TEST(bad_input) {
    opd_tensor *x = leaf(OPD_INTS(2)), *no = numbers(OPD_INTS(2), OPD_FLOAT64), *in[2];
    opd_gradcheck_options o = opd_gradcheck_defaults(), zero;
    identity f;
    f.formula = fails;
    f.results = 1;
    memset(&zero, 0, sizeof zero);
    CHECK_INT(opd_gradcheck(NULL, NULL, &x, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function and the array of inputs");
    CHECK_INT(opd_gradcheck(product, NULL, NULL, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function and the array of inputs");
    CHECK_INT(opd_gradgradcheck(NULL, NULL, &x, 1, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function and the array");
    CHECK_INT(opd_gradcheck(product, NULL, &no, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "gradcheck expects at least one input tensor to require gradient, but none of them does (opd_tensor_set_requires_grad).");
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &zero), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected at least one of check_forward_ad or check_backward_ad to be true");
    o.eps = 0;
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "eps must be positive");
    o = opd_gradcheck_defaults();
    o.check_batched_grad = true;
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &o), 0);
    o.check_batched_forward_grad = true;
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "check_batched_forward_grad requires check_forward_ad to be true");
    o.check_forward_ad = true;
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &o), 0);
    o.check_backward_ad = false;
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "check_batched_grad requires check_backward_ad to be true");
    o = opd_gradcheck_defaults();
    o.check_fwd_over_rev = true;
    o.check_rev_over_rev = false;
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "check_undefined_grad requires check_rev_over_rev to be true");
    o = opd_gradcheck_defaults();
    o.check_rev_over_rev = false;
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be true");
    CHECK_INT(opd_gradcheck(by_hand, &f, &x, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_USER, "no");
    in[0] = opd_tensor_set_requires_grad(opd_detach(opd_expand(numbers(OPD_INTS(1), OPD_FLOAT64), OPD_INTS(3))), true);
    CHECK_INT(opd_gradcheck(product, NULL, in, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "The 0th input has a dimension with stride 0.");
    in[0] = opd_tensor_set_requires_grad(opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT64, opd_device_make(OPD_META, -1)), true);
    CHECK_INT(opd_gradcheck(product, NULL, in, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 0 has no data that can be changed");
    in[0] = opd_tensor_set_requires_grad(numbers(OPD_INTS(2), OPD_FLOAT32), true);
    opd_log_set(count_warnings, NULL);
    warned = 0;
    o = opd_gradcheck_defaults();
    o.eps = 1e-2;
    o.atol = 1e-2;
    CHECK_INT(opd_gradcheck(product, NULL, in, 1, &o), 0);
    opd_log_set(NULL, NULL);
    CHECK_INT(warned, 1);
    in[0] = NULL;                                 /* passed on */
    in[1] = x;
    CHECK_INT(opd_gradcheck(product, NULL, in, 2, NULL), -1);
    opd_error_clear();
    (void)opd_fail(OPD_ERROR_USER, "pending");
    CHECK_INT(opd_gradcheck(product, NULL, &x, 1, NULL), -1);
    CHECK_INT(opd_gradgradcheck(product, NULL, &x, 1, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_USER, "pending");
}
TEST(any_allocation_may_fail) {
    opd_tensor *in[2];
    double before[5];
    int64_t n, live = 0;
    int how;
    in[0] = leaf(OPD_INTS(2));
    in[1] = leaf(OPD_INTS(2));
    memcpy(before, opd_data_f64(in[0]), 2 * sizeof *before);
    CHECK_INT(opd_gradgradcheck(several, NULL, in, 2, NULL, NULL), 0);         /* what is made once */
    for (how = 0; how < 4; how++) {
        for (n = 1; n < 6000; n += n < 60 ? 1 : 13) {
            opd_gradcheck_options o = opd_gradcheck_defaults();
            int rc;
            o.fast_mode = (how & 1) != 0;
            o.check_forward_ad = o.check_fwd_over_rev = true;
            live = opd_memory_stats().live;
            (void)opd_memory_fail_at(n, n % 2 == 0);
            rc = how < 2 ? opd_gradcheck(several, NULL, in, 2, &o) : opd_gradgradcheck(several, NULL, in, 2, NULL, &o);
            if (opd_memory_fail_at(0, false) < n) { CHECK_INT(rc, 0); CHECK_OK(); break; }
            CHECK(rc == -1 ? opd_error_code() == OPD_ERROR_MEMORY : opd_ok());
            if (rc == -1 && opd_error_code() != OPD_ERROR_MEMORY) { printf("allocation %d: %s\n", (int)n, opd_error_message()); }
            opd_error_clear();
            CHECK(opd_memory_stats().live <= live);
            CHECK(memcmp(before, opd_data_f64(in[0]), 2 * sizeof *before) == 0);
        }
    }
}

/* Fourier transforms of complex numbers, which the language of cases does not have: pairs of x [2,4,2] or [2,3,4,2]. */
typedef struct transform { int kind; int64_t dims[2], n; } transform;
static int transformed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const transform *t = (const transform *)user;
    opd_tensor *z = opd_view_as_complex(in[0]);
    opd_ints dims = opd_ints_of(t->dims, opd_ndim(z) - 1);
    (void)n;
    out[0] = t->kind < 2 ? opd_view_as_real(opd_fft_c2c(z, dims, t->kind, t->kind == 1)) : opd_fft_c2r(z, dims, 1, t->n);
    return out[0] ? 1 : -1;
}
TEST(fourier_transforms) {
    static const transform all[] = {{0, {1, 2}, 0}, {1, {2, 0}, 0}, {2, {1, 2}, 6}, {2, {1, 2}, 7}, {2, {1, 2}, 4}, {2, {1, 2}, 1}, {2, {1, 2}, 5}};
    opd_gradcheck_options o = opd_gradcheck_defaults();
    size_t k;
    for (k = 0; k < sizeof all / sizeof *all; k++) {
        opd_tensor *x = k % 2 ? leaf(OPD_INTS(2, 3, 4, 2)) : leaf(OPD_INTS(2, 4, 2));
        transform t = all[k];
        CHECK_INT(opd_gradcheck(transformed, &t, &x, 1, &o), 0);
        CHECK_INT(opd_gradgradcheck(transformed, &t, &x, 1, NULL, &o), 0);
        CHECK_OK();
        opd_error_clear();
    }
}

CHECK_MAIN()
