/* Custom functions: a forward function, which saves values in a context, and a backward function.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/custom_function.c -o custom_function -lm && ./custom_function

   1. softplus, log(1 + exp(x)).  Its derivative can be computed without the exponential of a large number.  One function
      computes the result and fills the context.  A scale is stored as an attribute of the context.
   2. Rounding in place, with a gradient that passes through unchanged.
   3. A function with plain loops, in which two functions compute the result and fill the context.  Autograd cannot
      record the loops, so the function sets once_differentiable: computing a second derivative is then an error. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>

//-- softplus(x, beta) = log(1 + exp(beta x)) / beta -----------------------------------------------------------------

static opd_tensor *number(double v) { return opd_full(opd_ints_of(NULL, 0), OPD_V(v), OPD_FLOAT64); }

static int softplus_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0), *beta = number(opd_context_input(ctx, 1).u.d);
    opd_tensor *bx = opd_mul(x, beta);
    opd_tensor *stable = opd_add(opd_relu(bx), opd_log1p(opd_exp(opd_neg(opd_abs(bx)))));
    if (opd_context_save_for_backward(ctx, &x, 1)) { return -1; }
    if (opd_context_set(ctx, "beta", opd_context_input(ctx, 1))) { return -1; }
    return opd_context_return(ctx, opd_div(stable, beta));
}
/* It calls operators, so autograd can differentiate it again. */
static int softplus_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *x = opd_context_saved(ctx, 0), *beta = number(opd_context_get(ctx, "beta").u.d);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_sigmoid(opd_mul(x, beta))));
}
static opd_tensor *softplus(opd_tensor *x, double beta) {
    static const opd_autograd_function f = {
        .name = "Softplus", .forward = softplus_forward, .backward = softplus_backward };
    return OPD_APPLY(&f, x, beta);
}

//-- rounding in place -------------------------------------------------------------------------------------------------

static int round_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    if (opd_context_mark_dirty(ctx, x)) { return -1; }
    return opd_context_return(ctx, opd_copy_(x, opd_round(x)));
}
static int round_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
static opd_tensor *round_(opd_tensor *x) {
    static const opd_autograd_function f = { .name = "Round", .forward = round_forward, .backward = round_backward };
    return OPD_APPLY(&f, x);
}

//-- the running maximum, with loops -----------------------------------------------------------------------------------

static int peak_forward(opd_context *ctx) {
    opd_tensor *x = opd_contiguous(opd_context_tensor(ctx, 0)), *out = opd_empty_like(x);
    double *o = opd_data_f64(out), *in = opd_data_f64(x);
    for (int64_t i = 0; opd_ok() && i < opd_numel(x); i++) { o[i] = i && o[i - 1] > in[i] ? o[i - 1] : in[i]; }
    return opd_context_return(ctx, out);
}
static int peak_setup(opd_context *ctx) {
    opd_tensor *saved[] = {opd_context_tensor(ctx, 0), opd_context_output(ctx, 0).u.t};
    return opd_context_save_for_backward(ctx, saved, 2);
}
static int peak_backward(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *g = opd_contiguous(opd_bw_grad(bw, 0)), *x = opd_contiguous(opd_context_saved(ctx, 0));
    opd_tensor *d = opd_zeros_like(x);
    double *out = opd_data_f64(d), *in = opd_data_f64(x), *grad = opd_data_f64(g);
    for (int64_t i = 0, at = 0; opd_ok() && i < opd_numel(x); i++) {
        if (in[i] >= in[at]) { at = i; }
        out[at] += grad[i];
    }
    return opd_bw_return(bw, 0, d);
}
static opd_tensor *peak(opd_tensor *x) {
    static const opd_autograd_function f = { .name = "Peak", .forward = peak_forward, .setup_context = peak_setup,
                                             .backward = peak_backward, .once_differentiable = true };
    return OPD_APPLY(&f, x);
}

//-- calls of the functions --------------------------------------------------------------------------------------------

static int as_function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    return (out[0] = softplus(in[0], 2)) ? 1 : -1;
}

int main(void) {
    OPD_SCOPE {
        const double data[] = {-1.5, 0.4, 800, 0.6};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(4), OPD_FLOAT64), true);
        opd_tensor *y = softplus(x, 2), *g;
        opd_backward_options graph = {.create_graph = true};
        printf("softplus, a result of %s:\n", opd_tensor_grad_fn(y));
        opd_print(y);
        opd_backward(opd_sum(y));
        opd_print(opd_tensor_grad(x));

        opd_tensor *small = opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(2), OPD_FLOAT64), true);
        printf("gradcheck: %s\n", opd_gradcheck(as_function, NULL, &small, 1, NULL) == 0 ? "right" : "wrong");
        printf("gradgradcheck: %s\n", opd_gradgradcheck(as_function, NULL, &small, 1, NULL, NULL) == 0 ? "right" : "wrong");

        opd_tensor_set_grad(x, NULL);
        y = opd_mul(x, number(3));
        round_(y);
        printf("rounded in place, the gradient passes straight through:\n");
        opd_print(y);
        opd_backward(opd_sum(y));
        opd_print(opd_tensor_grad(x));

        y = opd_sum(peak(x));
        opd_autograd_grad(&y, 1, &x, 1, &graph, &g);
        printf("the running maximum's gradient:\n");
        opd_print(g);
        opd_backward(opd_sum(g));                 /* an error, and not a gradient of zero */
        printf("differentiated twice: %s\n", opd_error_message());
        opd_error_clear();
    }
    return opd_finish();
}
