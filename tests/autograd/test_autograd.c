/* Autograd: leaves, graphs, errors, backward functions of programs, deep and wide graphs, threads.  THREADED */
#include "../../opdispatch.h"
#include "../tape.h"

#include <pthread.h>

static double grad_of(opd_tensor *t) {
    CHECK(opd_tensor_grad(t) != NULL);
    return opd_tensor_grad(t) ? opd_item_f64(opd_tensor_grad(t)) : 0;
}
static int grad1(opd_tensor *y, opd_tensor *x, bool create_graph, opd_tensor **g) {
    opd_backward_options o = options();
    o.create_graph = create_graph;
    return opd_autograd_grad(&y, 1, &x, 1, &o, g);
}

//-- leaves ------------------------------------------------------------------------------------------------------------

TEST(leaves) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *i = opd_tensor_new(OPD_INTS(2), OPD_INT64);
    CHECK(opd_tensor_is_leaf(x) && opd_tensor_requires_grad(x) && !opd_tensor_grad_fn(x) && !opd_tensor_grad(x));
    CHECK(!opd_tensor_is_leaf(y) && opd_tensor_requires_grad(y));
    CHECK_STR(opd_tensor_grad_fn(y), "MulBackward0");
    CHECK(opd_tensor_is_leaf(of(1)) && !opd_tensor_requires_grad(of(1)));
    CHECK(opd_tensor_set_requires_grad(i, true) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "only Tensors of floating point and complex dtype can require gradients");
    CHECK(opd_tensor_set_requires_grad(y, false) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                "subgraph that doesn't require differentiation use var_no_grad = var.detach().");
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(x), 6, 0);
    CHECK(opd_tensor_grad(y) == NULL);
    CHECK(!opd_tensor_requires_grad(opd_tensor_grad(x)));
    CHECK(opd_tensor_set_requires_grad(NULL, true) == NULL);
    opd_error_clear();
}

TEST(gradients_accumulate) {
    opd_tensor *x = leaf(3);
    int i;
    for (i = 1; i <= 3; i++) {
        CHECK_INT(opd_backward(opd_mul(x, x)), 0);
        CHECK_NEAR(grad_of(x), 6 * i, 0);
    }
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK(opd_tensor_grad(x) == NULL);
    CHECK_INT(opd_tensor_set_grad(x, of(10)), 0);
    CHECK_INT(opd_backward(opd_mul(x, x)), 0);
    CHECK_NEAR(grad_of(x), 16, 0);
    CHECK_INT(opd_tensor_set_grad(x, vec(3, false)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "assigned grad has data of a different size");
}

TEST(backward_of_a_leaf) {
    opd_tensor *x = leaf(3);
    CHECK_INT(opd_backward(x), 0);
    CHECK_NEAR(grad_of(x), 1, 0);
    CHECK_INT(opd_backward(of(2)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "element 0 of tensors does not require grad and does not have a grad_fn");
    CHECK_INT(opd_backward(opd_mul(vec(3, true), of(2))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "grad can be implicitly created only for scalar outputs");
    CHECK_INT(opd_backward(NULL), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "NULL");
    CHECK_INT(opd_backward_with(NULL, 0, NULL), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "at least one tensor");
}

TEST(given_gradients) {
    opd_tensor *x = vec(3, true), *y = opd_mul(x, x), *g = vec(3, false), *bad = of(1);
    opd_backward_options o = options();
    o.grad_outputs = &g;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 18, 0);
    y = opd_mul(x, x);
    o.grad_outputs = &bad;
    CHECK_INT(opd_backward_with(&y, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Mismatch in shape: grad_output[0] has a shape of [] and output[0] has a shape of [3].");
}

//-- graphs ------------------------------------------------------------------------------------------------------------

TEST(second_backward_needs_retain_graph) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, x);
    opd_backward_options o = options();
    o.retain_graph = true;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(x), 12, 0);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
                "been freed). Saved intermediate values of the graph are freed when you call opd_backward or opd_autograd_grad. Specify "
                "retain_graph if you need to");
    CHECK_NEAR(grad_of(x), 12, 0);
    y = opd_add(x, x);                            /* nothing saved: as often as one likes */
    CHECK_INT(opd_backward(y), 0);
    CHECK_INT(opd_backward(y), 0);
}

static opd_tensor *same(opd_tensor *g, void *user) { (void)user; return g; }
static opd_tensor *joined(const char *name, opd_tensor *x) {
    char full[40];
    (void)snprintf(full, sizeof full, "aten::%s", name);
    return OPD_CALL(op_named(full), OPD_TENSORS(x, x));
}
TEST(what_saves_only_sizes_can_be_passed_again) {
    static const char *const names[] = {"cat", "hstack", "vstack", "dstack", "column_stack"};
    int i;
    for (i = 0; i < 5; i++) {
        opd_tensor *x = vec(2, true);
        opd_tensor *s = opd_sum(joined(names[i], x));
        CHECK_INT(opd_backward(s), 0);
        CHECK_INT(opd_backward(s), 0);
        CHECK_NEAR(opd_item_f64(opd_sum(opd_tensor_grad(x))), 8, 0);
    }
}
TEST(leaves_that_require_grad_no_more) {
    opd_tensor *a = leaf(2), *b = leaf(3), *y = opd_mul(a, b);
    CHECK(opd_tensor_set_requires_grad(a, false) == a);
    CHECK(opd_tensor_hook_add(b, same, NULL, NULL) > 0);
    CHECK(opd_detach_(b) == b);
    CHECK_INT(opd_backward(y), 0);
    CHECK(opd_tensor_grad(a) == NULL && opd_tensor_grad(b) == NULL);
    a = leaf(2);
    y = opd_exp(a);
    CHECK(opd_tensor_set_requires_grad(y, true) == y);         /* it does already */
    CHECK(opd_tensor_set_requires_grad(y, false) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "you can only change requires_grad flags of leaf variables. If you want");
}
TEST(grad_leaves_leaves_alone) {
    opd_tensor *x = leaf(3), *z = leaf(4), *y, *in[2], *g[2];
    opd_backward_options o = options();
    y = opd_mul(x, x);
    in[0] = x;
    in[1] = z;
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, NULL, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused");
    y = opd_mul(x, x);
    o.allow_unused = true;
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, &o, g), 0);
    CHECK(g[0] && !g[1]);
    CHECK_NEAR(opd_item_f64(g[0]), 6, 0);
    CHECK(opd_tensor_grad(x) == NULL);
    in[0] = of(1);
    y = opd_mul(x, x);
    CHECK_INT(opd_autograd_grad(&y, 1, in, 1, &o, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors does not require grad");
    CHECK_INT(opd_autograd_grad(&y, 1, in, 0, &o, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "grad requires non-empty inputs.");
    in[0] = opd_mul(x, x);                        /* a tensor inside the graph, and the same twice */
    in[1] = in[0];
    y = opd_exp(in[0]);
    CHECK_INT(opd_autograd_grad(&y, 1, in, 2, &o, g), 0);
    CHECK_NEAR(opd_item_f64(g[0]), exp(9), 1e-6);
    CHECK_NEAR(opd_item_f64(g[1]), exp(9), 1e-6);
}

TEST(backward_into_some_leaves) {
    opd_tensor *x = leaf(3), *z = leaf(4), *y = opd_mul(x, z);
    opd_backward_options o = options();
    o.inputs = &z;
    o.ninputs = 1;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(opd_tensor_grad(x) == NULL);
    CHECK_NEAR(grad_of(z), 3, 0);
}

TEST(derivatives_of_derivatives) {
    opd_tensor *x = leaf(2), *y = opd_mul(opd_mul(x, x), x), *g, *gg, *ggg;
    CHECK_INT(grad1(y, x, true, &g), 0);
    CHECK_NEAR(opd_item_f64(g), 12, 1e-12);
    CHECK_INT(grad1(g, x, true, &gg), 0);
    CHECK_NEAR(opd_item_f64(gg), 12, 1e-12);
    CHECK_INT(grad1(gg, x, false, &ggg), 0);
    CHECK_NEAR(opd_item_f64(ggg), 6, 1e-12);
    CHECK(!opd_tensor_requires_grad(ggg));
    y = opd_pow_Tensor_Scalar(x, opd_value_int(3));
    CHECK_INT(grad1(y, x, true, &g), 0);
    CHECK_INT(grad1(g, x, true, &gg), 0);
    CHECK_NEAR(opd_item_f64(gg), 12, 1e-12);
}

TEST(no_grad) {
    opd_tensor *x = leaf(2), *y;
    bool was = opd_grad_mode_set(false);
    CHECK(was && !opd_grad_mode_enabled());
    y = opd_mul(x, x);
    CHECK(!opd_tensor_requires_grad(y) && opd_tensor_is_leaf(y));
    (void)opd_grad_mode_set(was);
    CHECK(opd_grad_mode_enabled());
    CHECK(opd_tensor_requires_grad(opd_mul(x, y)));
    y = opd_detach(opd_mul(x, x));
    CHECK(!opd_tensor_requires_grad(y));
}

TEST(backward_into_results) {                      /* PyTorch: as if retain_grad had been called on them */
    opd_tensor *x = leaf(3), *h = opd_mul(x, of(2)), *y = opd_mul(h, h), *both[3];
    opd_backward_options o = options();
    both[0] = both[2] = h;
    both[1] = x;
    o.inputs = both;
    o.ninputs = 3;
    o.retain_graph = true;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK_NEAR(grad_of(h), 12, 0);
    CHECK_NEAR(grad_of(x), 24, 0);
    o.ninputs = 1;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK_NEAR(grad_of(h), 24, 0);
    CHECK_NEAR(grad_of(x), 24, 0);
    CHECK(!opd_tensor_is_leaf(h));
}
TEST(arrays_that_are_not_there) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, x), *g;
    opd_value nothing = opd_value_tensor(x);
    nothing.u.t = NULL;
    CHECK_INT(opd_autograd_grad(&y, 1, NULL, 1, NULL, &g), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_autograd_grad: an array is NULL");
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, NULL, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_autograd_grad: an array is NULL");
    CHECK_INT(opd_autograd_grad(NULL, 1, &x, 1, NULL, &g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "at least one output");
    CHECK_INT(opd_backward_with(NULL, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "at least one tensor");
    y = of(1);
    CHECK_INT(opd_autograd_record("N", opd_not_differentiable, &x, 1, NULL, 0, &nothing, 1, &y, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "value 0 is a NULL tensor");
}
TEST(diamonds) {
    opd_tensor *x = leaf(1.5), *a = opd_sin(x), *b = opd_mul(a, a), *c = opd_exp(a), *y = opd_add(opd_mul(b, c), opd_mul(a, x));
    double s = sin(1.5), k = cos(1.5);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(x), (2 * s * exp(s) + s * s * exp(s)) * k + k * 1.5 + s, 1e-12);
}

TEST(broadcast_gradients_are_summed) {
    opd_tensor *x = vec(3, true), *s = leaf(2), *y = opd_sum(opd_mul(x, s));
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(s), 6, 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[1], 2, 0);
}

//-- in place ----------------------------------------------------------------------------------------------------------

TEST(in_place_rules) {
    opd_tensor *x = leaf(2), *y, *a;
    CHECK(OPD_CALL(op_named("aten::mul_.Tensor"), x, of(2)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation.");
    CHECK_NEAR(opd_item_f64(x), 2, 0);
    a = opd_mul(x, of(3));
    y = OPD_CALL(op_named("aten::mul_.Tensor"), a, of(5));    /* a's value was not saved by anybody */
    CHECK_OK();
    CHECK(y == a);
    CHECK_INT(opd_backward(a), 0);
    CHECK_NEAR(grad_of(x), 15, 0);
    a = opd_mul(x, of(1));
    y = opd_mul(a, a);                            /* saves a */
    CHECK(OPD_CALL(op_named("aten::add_.Tensor"), a, of(1)) != NULL);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "one of the variables needed for gradient computation has been modified by an inplace operation: ");
    a = opd_exp(x);                               /* saves its result */
    CHECK(OPD_CALL(op_named("aten::add_.Tensor"), a, of(1)) != NULL);
    CHECK_INT(opd_backward(a), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "modified by an inplace operation");
    a = of(3);                                    /* takes its history from the other */
    CHECK(OPD_CALL(op_named("aten::mul_.Tensor"), a, x) == a);
    CHECK(opd_tensor_requires_grad(a));
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_backward(a), 0);
    CHECK_NEAR(grad_of(x), 3, 0);
}

/* The texts of the errors are the same as in PyTorch 1.13 and 2.6. */
TEST(in_place_on_some_views_is_refused) {
    opd_op *add_ = op_named("aten::add_.Tensor");
    opd_tensor *x = vec(4, true), *y = opd_mul(x, of(2)), *base = vec(4, false), *v;
    CHECK(OPD_CALL(add_, opd_view(x, OPD_INTS(2, 2)), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a view of a leaf tensor that requires grad is being used in an in-place "
                "operation.");
    CHECK(OPD_CALL(add_, opd_select(opd_view(x, OPD_INTS(2, 2)), 0, 1), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a view of a leaf tensor that requires grad is being used in an in-place "
                "operation.");
    CHECK(OPD_CALL(add_, opd_unbind(y).data[1], 1) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Output 1 of UnbindBackward0 is a view and is being modified inplace. This view is "
                "the output of a function that returns multiple views. Such functions do not allow the output views to be modified inplace.");
    CHECK(OPD_CALL(add_, opd_view(base, OPD_INTS(2, 2)), opd_view(x, OPD_INTS(2, 2))) != NULL);
    (void)opd_grad_mode_set(false);
    v = opd_view(y, OPD_INTS(2, 2));
    CHECK(OPD_CALL(add_, v, 0) == v);              /* inside no_grad both may be */
    (void)opd_grad_mode_set(true);
    CHECK(OPD_CALL(add_, v, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "A view was created in no_grad mode and is being modified inplace with grad mode "
                "enabled.");
    CHECK(OPD_CALL(add_, opd_select(v, 0, 0), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "A view was created in no_grad mode");
    CHECK(OPD_CALL(add_, opd_detach(v), 0) != NULL);
    CHECK_NEAR(opd_data_f64(y)[0], 2, 0);
    CHECK_OK();
}
TEST(in_place_counts_versions) {
    opd_tensor *t = vec(4, false), *v = opd_view(t, OPD_INTS(2, 2));
    uint32_t before = opd_tensor_version(t);
    CHECK(OPD_CALL(op_named("aten::exp_"), v) == v);
    CHECK_INT(opd_tensor_version(t), before + 1);
    CHECK_INT(opd_tensor_version(v), before + 1);
    CHECK(OPD_CALL(op_named("aten::add.out"), vec(4, false), vec(4, false), 1, t) == t);
    CHECK_INT(opd_tensor_version(v), before + 2);
}

TEST(out_forms_refuse_gradients) {
    opd_tensor *x = leaf(2), *out = of(0);
    CHECK(OPD_CALL(op_named("aten::add.out"), x, of(1), 1, out) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    CHECK(OPD_CALL(op_named("aten::add.out"), of(1), of(1), 1, x) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "out=...");
    {
        bool was = opd_grad_mode_set(false);
        CHECK(OPD_CALL(op_named("aten::add.out"), x, of(1), 1, out) == out);
        (void)opd_grad_mode_set(was);
    }
}

//-- backward functions of programs ------------------------------------------------------------------------------------

static int k_square(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    bool was = opd_grad_mode_set(false);
    t = opd_mul(t, t);
    (void)opd_grad_mode_set(was);
    return opd_return_tensor(call, t);
}
static int mode;                                  /* how the formula behaves */
static int k_square_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0), *g = opd_bw_grad(bw, 0);
    switch (mode) {
    case 1: return opd_fail(OPD_ERROR_USER, "the formula is ill");
    case 2: return opd_bw_return(bw, 0, NULL);
    case 3: return opd_bw_return(bw, 0, vec(7, false));
    case 4: return -1;
    case 5: return 0;                             /* gives nothing: an undefined gradient */
    case 6: return opd_bw_return(bw, 9, g);
    case 7: {                                     /* a backward of its own inside */
        opd_tensor *y = opd_tensor_set_requires_grad(opd_clone(opd_detach(x)), true), *z, *inner;
        bool was = opd_grad_mode_set(true);
        int rc;
        z = opd_sum(opd_mul(y, y));
        rc = grad1(z, y, false, &inner);
        (void)opd_grad_mode_set(was);
        return rc ? -1 : opd_bw_return(bw, 0, opd_mul(g, inner));
    }
    default: return opd_bw_return(bw, 0, opd_mul(g, opd_mul(x, of(2))));
    }
}
static opd_op *square(opd_library **lib, bool formula) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "square(Tensor self) -> Tensor";
    d.cpu = k_square;
    d.backward = formula ? k_square_backward : NULL;
    d.save = "self";
    *lib = opd_library_open(OPD_DEF, "tape", NULL, "t", 1);
    CHECK_INT(opd_define(*lib, &d), 0);
    mode = 0;
    return opd_find("tape::square");
}
TEST(formulas_right_and_wrong) {
    opd_library *lib;
    opd_op *op = square(&lib, true);
    opd_tensor *x = vec(3, true), *g, *y;
    CHECK_INT(opd_backward(opd_sum(OPD_CALL(op, x))), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 6, 0);
    CHECK_INT(grad1(opd_sum(OPD_CALL(op, x)), x, true, &g), 0);
    CHECK_INT(grad1(opd_sum(g), x, false, &y), 0);
    CHECK_NEAR(opd_data_f64(y)[0], 2, 0);
    y = OPD_CALL(op, x);
    CHECK_STR(opd_tensor_grad_fn(y), "SquareBackward0");
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    for (mode = 1; mode <= 7; mode++) {
        static const char *const text[] = {"", "the formula is ill", "", "returned an invalid gradient at index 0",
                                           "the backward function of SquareBackward0 failed without setting an error", "incorrect number of gradients (expected 1, got 0)", "argument 9", ""};
        int rc = opd_backward(opd_sum(OPD_CALL(op, x)));
        if (mode == 2) { CHECK_INT(rc, 0); CHECK(opd_tensor_grad(x) == NULL); continue; }
        if (mode == 7) { CHECK_INT(rc, 0); CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 6, 0); continue; }
        CHECK_INT(rc, -1);
        CHECK_ERROR(mode == 1 ? OPD_ERROR_USER : OPD_ERROR_AUTOGRAD, text[mode]);
        CHECK(opd_tensor_grad(x) == NULL);
    }
    opd_library_close(lib);
}
TEST(missing_formula_names_the_operator) {
    opd_library *lib;
    opd_op *op = square(&lib, false);
    opd_tensor *x = vec(3, true), *y = OPD_CALL(op, x);
    CHECK_OK();
    CHECK(opd_tensor_requires_grad(y));
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for tape::square is not implemented");
    opd_library_close(lib);
}
//-- writes that a schema does not declare, and other mistakes of programs ---------------------------------------------

/* Writes in a kernel: into the argument, a view of it, the first of a list, as out=, a copy of it, an argument in no_grad. */
enum { PLAIN_WRITE, VIEW_WRITE, LIST_WRITE, OUT_WRITE, COPY_WRITE, QUIET_WRITE, WRITES };
static int write_way;
static opd_tensor *kept_by_the_program;
static int k_writes(opd_call *call) {
    opd_tensor *x = write_way == LIST_WRITE ? opd_arg_tensors(call, 0).data[0] : kept_by_the_program ? kept_by_the_program : opd_arg_tensor(call, 0);
    switch (write_way) {
    case VIEW_WRITE: (void)opd_add_Scalar_(opd_view(x, OPD_INTS(3, 1)), OPD_V(1)); break;
    case OUT_WRITE: (void)OPD_CALL(op_named("aten::sin.out"), opd_zeros(OPD_INTS(3), OPD_FLOAT64), x); break;
    case COPY_WRITE: x = opd_add_Scalar_(opd_clone(x), OPD_V(1)); break;
    case QUIET_WRITE: OPD_NO_GRAD { (void)opd_add_Scalar_(x, OPD_V(1)); } break;
    default: (void)opd_add_Scalar_(x, OPD_V(1));
    }
    return opd_return_tensor(call, opd_clone(x));
}
static int k_passes_on(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
TEST(undeclared_writes_into_leaves) {
    int formula;
    for (formula = 0; formula < 2; formula++) {
        for (write_way = 0; write_way < WRITES; write_way++) {
            opd_library *lib = opd_library_open(OPD_DEF, "tape", NULL, "t", 1);
            opd_tensor *x = vec(3, true), *y;
            const bool list = write_way == LIST_WRITE, fine = write_way == COPY_WRITE || write_way == QUIET_WRITE;
            opd_op *op;
            opd_op_desc d;
            memset(&d, 0, sizeof d);
            d.schema = list ? "writes(Tensor[] x) -> Tensor" : "writes(Tensor x) -> Tensor";
            d.cpu = k_writes;
            if (formula && !list) { d.backward = k_passes_on; }
            CHECK_INT(opd_define(lib, &d), 0);
            op = opd_find("tape::writes");
            y = list ? OPD_CALL(op, opd_tensors_of(&x, 1)) : OPD_CALL(op, x);
            CHECK((y != NULL) == fine);
            if (!fine) {
                CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation: the kernel of tape::writes "
                            "writes into its argument 'x' with aten::");
                CHECK_NEAR(opd_data_f64(x)[1], opd_data_f64(vec(3, false))[1], 0);
            }
            x = vec(3, false);                    /* nobody follows it, or there is a history: versions tell */
            CHECK((list ? OPD_CALL(op, opd_tensors_of(&x, 1)) : OPD_CALL(op, x)) != NULL);
            x = opd_mul(vec(3, true), of(2));
            CHECK((list ? OPD_CALL(op, opd_tensors_of(&x, 1)) : OPD_CALL(op, x)) != NULL);
            OPD_NO_GRAD { x = vec(3, true); CHECK((list ? OPD_CALL(op, opd_tensors_of(&x, 1)) : OPD_CALL(op, x)) != NULL); }
            CHECK_OK();
            opd_library_close(lib);
        }
    }
    write_way = PLAIN_WRITE;
    {                                             /* what is no argument, and what the schema declares */
        opd_library *lib = opd_library_open(OPD_DEF, "tape", NULL, "t", 1);
        opd_op_desc d;
        memset(&d, 0, sizeof d);
        d.schema = "writes(Tensor x) -> Tensor";
        d.cpu = k_writes;
        CHECK_INT(opd_define(lib, &d), 0);
        kept_by_the_program = vec(3, true);
        CHECK(OPD_CALL(opd_find("tape::writes"), vec(3, true)) != NULL);
        kept_by_the_program = NULL;
        CHECK_OK();
        d.schema = "says(Tensor(a!) x) -> Tensor";
        CHECK_INT(opd_define(lib, &d), 0);
        CHECK(OPD_CALL(opd_find("tape::says"), vec(3, false)) != NULL);
        OPD_NO_GRAD { CHECK(OPD_CALL(opd_find("tape::says"), vec(3, true)) != NULL); }
        CHECK_OK();
        opd_library_close(lib);
    }
}

static int reader;
static int k_reads(opd_backward_call *bw) {
    switch (reader) {
    case 0: (void)opd_bw_tensor(bw, 1); break;
    case 1: (void)opd_bw_tensor(bw, 2); break;
    case 2: (void)opd_bw_tensors(bw, 1); break;
    case 3: (void)opd_bw_tensors(bw, 0); break;
    case 4: (void)opd_bw_tensor(bw, 9); break;
    default: CHECK(opd_bw_tensor(bw, 0) && opd_bw_tensors(bw, 2).n == 1 && opd_bw_int(bw, 1) == 7 && !opd_bw_tensor(bw, 3));
    }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)) || opd_bw_return_at(bw, 2, 0, NULL);
}
static int k_takes(opd_call *call) { return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0))); }
TEST(formulas_that_read_another_type) {
    static const char *const texts[] = {
        ("the backward function of tape::takes reads argument 1 ('n') with opd_bw_tensor, but it is a value of type int: read it with "
        "opd_bw_int (opd_bw_result reads saved results)"),
        "reads argument 2 ('list') with opd_bw_tensor, but it is a value of type List[Tensor]: read it with opd_bw_tensors",
        "reads argument 1 ('n') with opd_bw_tensors, but it is a value of type int: read it with opd_bw_int",
        "reads argument 0 ('x') with opd_bw_tensors, but it is a value of type Tensor: read it with opd_bw_tensor",
        "the backward function reads argument 9 of tape::takes, which does not exist (opd_bw_result reads saved results)"};
    opd_library *lib = opd_library_open(OPD_DEF, "tape", NULL, "t", 1);
    opd_tensor *x = vec(3, true), *y;
    opd_op_desc d;
    opd_value n = opd_value_int(7);
    memset(&d, 0, sizeof d);
    d.schema = "takes(Tensor x, int n, Tensor[] list, Tensor? no=None) -> Tensor";
    d.cpu = k_takes;
    d.backward = k_reads;
    d.save = "x, list, no";
    CHECK_INT(opd_define(lib, &d), 0);
    for (reader = 0; reader <= 5; reader++) {
        y = OPD_CALL(opd_find("tape::takes"), x, 7, opd_tensors_of(&x, 1));
        CHECK_INT(opd_backward(opd_sum(y)), reader < 5 ? -1 : 0);
        if (reader < 5) { CHECK_ERROR(OPD_ERROR_AUTOGRAD, texts[reader]); }
    }
    reader = 0;                                   /* recorded by hand: saved values, numbered */
    OPD_NO_GRAD { y = opd_clone(x); }
    CHECK_INT(opd_autograd_record("HandBackward", k_reads, &x, 1, &x, 1, &n, 1, &y, 1), 0);
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the backward function of HandBackward reads saved value 1 with opd_bw_tensor, but it is a value of type int: read it with opd_bw_int");
    opd_library_close(lib);
}

static int sin_below(opd_context *ctx) { return opd_context_return(ctx, OPD_CALL(opd_find("tape::again"), opd_context_tensor(ctx, 0))); }
static opd_autograd_function again_function;
static int k_applies(opd_call *call) { return opd_return_tensor(call, OPD_APPLY(&again_function, opd_arg_tensor(call, 0))); }
/* An autograd kernel calls its own operator without excluding its key, and so itself: the error names the place
   once. */
TEST(a_function_without_end) {
    opd_library *lib = opd_library_open(OPD_DEF, "tape", NULL, "t", 1);
    const char *at;
    again_function.name = "Again";
    again_function.forward = sin_below;
    again_function.backward = k_passes_on;
    CHECK_INT(opd_def(lib, "again(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "again", "Autograd", k_applies, NULL, NULL), 0);
    CHECK(OPD_CALL(opd_find("tape::again"), vec(3, true)) == NULL);
    at = strstr(opd_error_message(), " [in the forward of AgainBackward]");
    CHECK(at && !strstr(at + 2, "[in the forward of"));
    CHECK_ERROR(OPD_ERROR_KERNEL, "opd_keys_exclude(OPD_KEYS_AUTOGRAD)");
    opd_library_close(lib);
}
TEST(graph_outlives_the_library) {
    opd_library *lib;
    opd_op *op = square(&lib, true);
    opd_tensor *x = vec(3, true), *y = OPD_CALL(op, x);
    opd_library_close(lib);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[1], 4, 0);
}

/* Autograd by hand: a kernel at Autograd that redispatches and records. */
static int hand_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0);
    CHECK_INT(opd_bw_is_none(bw, 0) ? 0 : 1, 1);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_mul(x, of(2))));
}
static int k_hand(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    opd_value v = opd_value_int(2);
    if (opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))) { return -1; }
    y = opd_call_rets(call)[0].u.t;
    return opd_autograd_record("HandBackward", hand_backward, &x, 1, &x, 1, &v, 1, &y, 1);
}
TEST(autograd_by_hand) {
    opd_library *lib = opd_library_open(OPD_DEF, "hand", NULL, "t", 1);
    opd_tensor *x = vec(3, true), *y, *g;
    CHECK_INT(opd_def(lib, "square(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(lib, "square", "CPU", k_square, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "square", "Autograd", k_hand, NULL, NULL), 0);
    y = OPD_CALL(opd_find("hand::square"), x);
    CHECK_OK();
    CHECK_STR(opd_tensor_grad_fn(y), "HandBackward");
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2], 6, 0);
    CHECK_INT(grad1(opd_sum(OPD_CALL(opd_find("hand::square"), x)), x, true, &g), 0);
    CHECK_INT(grad1(opd_sum(g), x, false, &y), 0);
    CHECK_NEAR(opd_data_f64(y)[0], 2, 0);
    y = OPD_CALL(opd_find("hand::square"), vec(3, false));
    CHECK(!opd_tensor_requires_grad(y));
    opd_library_close(lib);
}

//-- ownership in the autograd graph -----------------------------------------------------------------------------------

TEST(in_place_with_itself) {
    opd_tensor *x = leaf(3), *y = opd_mul(x, of(1));
    CHECK(OPD_CALL(op_named("aten::mul_.Tensor"), y, y) == y);
    CHECK_INT(opd_backward(y), 0);
    CHECK_NEAR(grad_of(x), 6, 0);
}

/* A result that is saved by hand makes no cycle (the runner counts memory), and is void once it was written to. */
static int saved_backward(opd_backward_call *bw) {
    opd_tensor *y = opd_bw_tensor(bw, 0);
    return y ? opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), y)) : -1;
}
static opd_tensor *exp_by_hand(opd_tensor *x) {
    bool was = opd_grad_mode_set(false);
    opd_tensor *y = opd_exp(x);
    (void)opd_grad_mode_set(was);
    return opd_autograd_record("ExpByHand", saved_backward, &x, 1, &y, 1, NULL, 0, &y, 1) ? NULL : y;
}
TEST(by_hand_with_its_own_result_saved) {
    opd_tensor *x = leaf(1), *y, *g, *gg;
    int i;
    for (i = 0; i < 3; i++) { (void)exp_by_hand(x); }
    y = exp_by_hand(x);
    CHECK_INT(grad1(y, x, true, &g), 0);
    CHECK_INT(grad1(g, x, false, &gg), 0);
    CHECK_NEAR(opd_item_f64(gg), exp(1), 1e-12);
    y = exp_by_hand(x);
    CHECK(OPD_CALL(op_named("aten::add_.Tensor"), y, of(1), 1) == y);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "has been modified by an inplace operation");
}
TEST(one_result_recorded_twice) {
    opd_tensor *x = leaf(1), *y = of(2), *both[2];
    both[0] = both[1] = y;
    CHECK_INT(opd_autograd_record("TwiceBackward", saved_backward, &x, 1, &y, 1, NULL, 0, both, 2), 0);
}

/* Kernels that return their arguments, in lists and twice. */
static int k_list(opd_call *call) {
    opd_tensor *t[2];
    t[0] = t[1] = opd_arg_tensor(call, 0);
    return opd_return_tensors(call, t, 2);
}
static int k_pair(opd_call *call) {
    opd_tensor *t = opd_neg(opd_arg_tensor(call, 0));
    return opd_return_tensor(call, t) || opd_return_tensor(call, t);
}
static int two_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_add(opd_bw_grad(bw, 0), opd_bw_grad(bw, 1))); }
TEST(results_that_are_arguments_or_equal) {
    opd_library *lib = opd_library_open(OPD_DEF, "alias", NULL, "t", 1);
    opd_tensor *x = vec(3, true), *two[2];
    opd_tensors l;
    opd_value v = opd_value_tensor(x);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.backward = two_backward;
    d.schema = "list(Tensor x) -> Tensor[]";
    d.cpu = k_list;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "pair(Tensor x) -> (Tensor, Tensor)";
    d.cpu = k_pair;
    CHECK_INT(opd_define(lib, &d), 0);
    l = opd_call_list(opd_find("alias::list"), &v, 1);
    CHECK_INT(l.n, 2);
    CHECK(opd_tensor_is_leaf(x));
    CHECK(l.n == 2 && l.data[0] != x && l.data[1] != x && l.data[0] != l.data[1]);
    if (l.n == 2) { CHECK_INT(opd_backward(opd_sum(opd_add(l.data[0], l.data[1]))), 0); }
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 2, 0);
    CHECK_INT(opd_call_tensors(opd_find("alias::pair"), two, &v, 1), 0);
    CHECK(two[0] != two[1]);
    CHECK_INT(opd_backward(opd_sum(opd_add(two[0], two[1]))), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 4, 0);
    opd_library_close(lib);
}

/* The name is defined anew, with other arguments, while a tape of the old definition lives. */
static int k_first(opd_call *call) { return opd_return_tensor(call, opd_neg(opd_arg_tensor(call, 0))); }
static int neg_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_neg(opd_mul(opd_bw_grad(bw, 0), opd_bw_double(bw, 1) > 2 ? of(1) : of(5)))); }
TEST(graph_outlives_the_schema) {
    static const char *const schemas[] = {"f(Tensor a, float k) -> Tensor", "f(int p, int q, int[] r, Tensor[] l, Tensor a, Tensor b, str s='x') -> Tensor"};
    int i, formula;
    for (formula = 1; formula >= 0; formula--) {
        opd_tensor *x = leaf(3), *y = NULL;
        for (i = 0; i < 2; i++) {
            opd_library *lib = opd_library_open(OPD_DEF, "anew", NULL, "t", 1);
            opd_op_desc d;
            memset(&d, 0, sizeof d);
            d.schema = schemas[i];
            d.cpu = k_first;
            d.backward = formula ? neg_backward : NULL;
            CHECK_INT(opd_define(lib, &d), 0);
            if (i == 0) { y = OPD_CALL(opd_find("anew::f"), x, 2.5); }
            else {
                CHECK_INT(opd_backward(y), formula ? 0 : -1);
                if (!formula) { CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for anew::f is not implemented"); }
                else { CHECK_NEAR(grad_of(x), -1, 0); }
            }
            opd_library_close(lib);
        }
    }
}

TEST(gradient_of_a_result_without_formula) {
    opd_library *lib;
    opd_op *op = square(&lib, false);
    opd_tensor *x = vec(3, true), *y = OPD_CALL(op, x), *g;
    CHECK_INT(grad1(opd_sum(opd_mul(y, y)), y, false, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[1], 8, 0);
    opd_library_close(lib);
}

TEST(gradients_are_not_what_the_caller_gave) {
    opd_backward_options o = options();
    opd_tensor *x = vec(2, true), *v = vec(2, false), *y = opd_add(x, of(0));
    o.grad_outputs = &v;
    o.create_graph = true;
    CHECK_INT(opd_backward_with(&y, 1, &o), 0);
    CHECK(opd_tensor_grad(x) != v);
    CHECK_INT(opd_backward(opd_sum(x)), 0);
    CHECK_NEAR(opd_data_f64(v)[0], 1, 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 2, 0);
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_tensor_set_grad(x, x), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "can't assign a tensor as its own grad");
}

TEST(gradients_of_another_device) {
    opd_backward_options o = options();
    opd_tensor *x = leaf(2), *y, *g = opd_tensor_new_on(opd_ints_of(NULL, 0), OPD_FLOAT64, opd_device_make(OPD_META, -1));
    o.grad_outputs = &g;
    y = opd_mul(x, of(2));
    CHECK_INT(opd_backward_with(&y, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "expected device cpu but got meta");
}

static int leaves_a_scope_open(opd_backward_call *bw) {
    (void)opd_scope_open();
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
TEST(formula_that_leaves_a_scope_open) {
    opd_tensor *x = leaf(1), *y = of(2);
    int depth = opd_scope_stats().depth;
    CHECK_INT(opd_autograd_record("OpenBackward", leaves_a_scope_open, &x, 1, NULL, 0, NULL, 0, &y, 1), 0);
    CHECK_INT(opd_backward(y), 0);
    CHECK_INT(opd_scope_stats().depth, depth);
}

static int keeps_a_list_backward(opd_backward_call *bw) {
    opd_value v = opd_bw_value(bw, 1);
    CHECK(v.tag == OPD_TAG_LIST && v.n == 2 && v.u.list[1].tag == OPD_TAG_STR);
    if (v.tag == OPD_TAG_LIST && v.n == 2) { CHECK_STR(v.u.list[1].u.s, "second"); }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
TEST(kept_lists_of_strings) {
    opd_library *lib = opd_library_open(OPD_DEF, "kept", NULL, "t", 1);
    opd_tensor *x = leaf(1), *y;
    char *text = (char *)malloc(8);
    opd_value list[2], args[2];
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "f(Tensor x, str[] names) -> Tensor";
    d.cpu = k_first;
    d.backward = keeps_a_list_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    strcpy(text, "second");
    list[0] = opd_value_str("first");
    list[1] = opd_value_str(text);
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_list(list, 2);
    y = opd_call_op(opd_find("kept::f"), args, 2);
    strcpy(text, "gone");
    free(text);
    CHECK_INT(opd_backward(y), 0);
    opd_library_close(lib);
}

static int k_writes_second(opd_call *call) { return opd_return_tensor(call, opd_neg(opd_arg_tensor(call, 0))); }
TEST(other_written_arguments) {
    opd_library *lib = opd_library_open(OPD_DEF, "wr", NULL, "t", 1);
    opd_tensor *x = leaf(1);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "f(Tensor x, Tensor(a!) count) -> Tensor";
    d.cpu = k_writes_second;
    d.backward = neg_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK(OPD_CALL(opd_find("wr::f"), x, of(0)) != NULL);
    CHECK(OPD_CALL(opd_find("wr::f"), x, x) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation.");
    CHECK(OPD_CALL(opd_find("wr::f"), x, opd_neg(x)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "writes its argument 'count', which requires grad");
    opd_library_close(lib);
}

//-- large graphs ------------------------------------------------------------------------------------------------------

TEST(wide_graph) {
    opd_tensor **leaves = (opd_tensor **)calloc(10000, sizeof *leaves), *sum = NULL;
    int i;
    for (i = 0; i < 10000; i++) {
        leaves[i] = leaf(i);
        sum = sum ? opd_add(sum, opd_mul(leaves[i], leaves[i])) : opd_mul(leaves[i], leaves[i]);
    }
    CHECK_INT(opd_backward(sum), 0);
    for (i = 0; i < 10000; i++) {
        if (!opd_tensor_grad(leaves[i]) || fabs(opd_item_f64(opd_tensor_grad(leaves[i])) - 2 * i) > 0) { break; }
    }
    CHECK_INT(i, 10000);
    free(leaves);
}
static int k_many(opd_call *call) { return opd_return_tensors(call, opd_unbind(opd_arg_tensor(call, 0)).data, 1000); }
TEST(many_results_of_one_call) {
    enum { N = 1000 };
    opd_tensor *x = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(N, 2), OPD_FLOAT64), true);
    opd_tensor *sum = NULL, *scaled, *g;
    opd_tensors rows = opd_unbind(opd_mul(x, of(3))), parts = opd_split(opd_mul(x, of(5)), 1, 0);
    opd_library *lib = opd_library_open(OPD_DEF, "many", NULL, "t", 1);
    opd_value arg;
    int i;
    CHECK_INT(rows.n, N);
    CHECK_INT(parts.n, N);
    for (i = 0; i < N; i++) {
        scaled = opd_mul(opd_add(rows.data[i], opd_select(parts.data[i], 0, 0)), of(i));
        sum = sum ? opd_add(sum, scaled) : scaled;
    }
    CHECK_INT(grad1(opd_sum(sum), x, false, &g), 0);
    for (i = 0; i < 2 * N && fabs(opd_data_f64(g)[i] - 8. * (i / 2)) < 1e-9; i++) { }
    CHECK_INT(i, 2 * N);
    CHECK_INT(opd_backward(opd_sum(opd_unbind(x).data[N - 1])), 0);          /* only one of them */
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[2 * N - 1], 1, 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 0, 0);
    CHECK_INT(opd_def(lib, "f(Tensor x) -> Tensor[]"), 0);                   /* by one without a formula */
    CHECK_INT(opd_impl_key(lib, "f", "CPU", k_many, NULL, NULL), 0);
    arg = opd_value_tensor(x);
    rows = opd_call_list(opd_find("many::f"), &arg, 1);
    CHECK_INT(rows.n, N);
    CHECK_INT(opd_backward(opd_sum(rows.data[999])), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "derivative for many::f is not implemented");
    opd_library_close(lib);
}
TEST(many_uses_of_one_leaf) {
    opd_tensor *x = leaf(2), *sum = x;
    int i;
    for (i = 0; i < 5000; i++) { sum = opd_add(sum, x); }
    CHECK_INT(opd_backward(sum), 0);
    CHECK_NEAR(grad_of(x), 5001, 0);
}

#if !defined(OPD_NO_THREADS)
#if defined(CHECK_SANITIZED)
#define CHAIN 100000
#define STACK (1 << 20)
#else
#define CHAIN 1000000
#define STACK (128 << 10)
#endif
static int chain_wrong;
static void *long_chain(void *arg) {
    opd_tensor *x = leaf(1), *y = NULL;
    int i, k;
    (void)arg;
    for (k = 0; k < 2; k++) {                     /* once through backward, once only freed */
        (void)opd_assign(&y, x);
        for (i = 0; i < CHAIN; i++) {
            OPD_SCOPED;
            (void)opd_assign(&y, i % 3 ? opd_neg(y) : opd_tanh(y));
        }
        if (k == 0 && (opd_backward(y) || !opd_tensor_grad(x))) { chain_wrong++; }
        (void)opd_assign(&y, NULL);
    }
    (void)opd_finish();
    return NULL;
}
static void *long_grads(void *arg) {
    opd_tensor *t = NULL;
    int i;
    (void)arg;
    for (i = 0; i < CHAIN / 2; i++) {
        OPD_SCOPED;
        opd_tensor *next = of(i);
        if (opd_tensor_set_grad(next, t)) { chain_wrong++; }
        (void)opd_assign(&t, next);
    }
    opd_release(t);
    (void)opd_finish();
    return NULL;
}
static void on_a_small_stack(void *(*fn)(void *)) {
    pthread_attr_t attr;
    pthread_t id;
    chain_wrong = 0;
    CHECK_INT(pthread_attr_init(&attr), 0);
    CHECK_INT(pthread_attr_setstacksize(&attr, STACK), 0);
    CHECK_INT(pthread_create(&id, &attr, fn, NULL), 0);
    CHECK_INT(pthread_join(id, NULL), 0);
    (void)pthread_attr_destroy(&attr);
    CHECK_INT(chain_wrong, 0);
}
TEST(gradients_of_gradients_on_a_small_stack) { on_a_small_stack(long_grads); }
TEST(long_chain_on_a_small_stack) {
    int64_t live = opd_memory_stats().live;
    on_a_small_stack(long_chain);
    CHECK(opd_memory_stats().live <= live + 100000);
}

//-- threads -----------------------------------------------------------------------------------------------------------

#define THREADS 4
#define ROUNDS 200
static opd_tensor *shared_leaf, *shared_graph;
static int thread_errors;
static void *backward_shared(void *arg) {         /* one graph, everybody */
    opd_backward_options o = options();
    opd_tensor *root = shared_graph;
    int i;
    (void)arg;
    o.retain_graph = true;
    for (i = 0; i < ROUNDS; i++) {
        OPD_SCOPED;
        if (opd_backward_with(&root, 1, &o)) { (void)__atomic_add_fetch(&thread_errors, 1, __ATOMIC_RELAXED); opd_error_clear(); }
    }
    return NULL;
}
static void *backward_disjoint(void *arg) {       /* a graph each */
    int i;
    (void)arg;
    for (i = 0; i < ROUNDS; i++) {
        OPD_SCOPED;
        opd_tensor *x = leaf(i), *y = opd_mul(opd_sin(x), x);
        double want = cos(i) * i + sin(i);
        if (opd_backward(y) || !opd_tensor_grad(x) || fabs(opd_item_f64(opd_tensor_grad(x)) - want) > 1e-9) { (void)__atomic_add_fetch(&thread_errors, 1, __ATOMIC_RELAXED); }
    }
    return NULL;
}
static void *backward_overlapping(void *arg) {    /* graphs of one's own over a shared leaf */
    int i;
    (void)arg;
    for (i = 0; i < ROUNDS; i++) {
        OPD_SCOPED;
        if (opd_backward(opd_mul(shared_leaf, of(2)))) { (void)__atomic_add_fetch(&thread_errors, 1, __ATOMIC_RELAXED); }
    }
    return NULL;
}
static void in_threads(void *(*fn)(void *)) {
    pthread_t id[THREADS];
    int i;
    thread_errors = 0;
    for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&id[i], NULL, fn, NULL), 0); }
    for (i = 0; i < THREADS; i++) { CHECK_INT(pthread_join(id[i], NULL), 0); }
    CHECK_INT(thread_errors, 0);
}
TEST(threads_on_one_graph) {
    shared_leaf = leaf(3);
    shared_graph = opd_mul(opd_exp(opd_mul(shared_leaf, of(0))), shared_leaf);
    in_threads(backward_shared);
    CHECK_NEAR(grad_of(shared_leaf), THREADS * ROUNDS * 1.0, 0);
}
TEST(threads_on_their_own_graphs) { in_threads(backward_disjoint); }
TEST(threads_on_one_leaf) {
    shared_leaf = leaf(3);
    in_threads(backward_overlapping);
    CHECK_NEAR(grad_of(shared_leaf), 2.0 * THREADS * ROUNDS, 0);
}
#endif

/* Numbers that where does not choose: an infinite derivative makes their gradient NaN, unless the function got other
   numbers there. */
TEST(where_once_and_twice) {
    for (int twice = 0; twice < 2; twice++) {
        opd_tensor *const x = opd_tensor_set_requires_grad(opd_arange(OPD_V(2), OPD_FLOAT64), true);
        opd_tensor *const positive = opd_gt_Scalar(x, OPD_V(0)), *const from = twice ? opd_where_self(positive, x, opd_ones_like(x)) : x;
        CHECK_INT(opd_backward(opd_sum(opd_where_self(positive, opd_sqrt(from), opd_zeros_like(x)))), 0);
        CHECK_INT(isnan(opd_data_f64(opd_tensor_grad(x))[0]) != 0, !twice);
        CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[1], 0.5, 0);
        if (twice) { CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], 0, 0); }
    }
}

/* A write through a pointer is noticed if the program reports it. */
TEST(reported_writes_through_pointers) {
    opd_tensor *x = vec(3, true), *y = opd_exp(x), *part = opd_narrow(y, 0, 1, 1);
    const uint32_t version = opd_tensor_version(y);
    opd_data_f64(y)[0] = 0;
    CHECK_INT(opd_tensor_version_add(part), 0);
    CHECK_INT(opd_tensor_version(y), version + 1);
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "modified by an inplace operation");
    CHECK_INT(opd_tensor_version_add(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_tensor_version_add");
    OPD_INFERENCE_MODE(true) { CHECK_INT(opd_tensor_version_add(vec(2, false)), 0); }
}

CHECK_MAIN()
