#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:special_cards special functions as operators, orthogonal polynomials, frexp
//----------------------------------------------------------------------------------------------------------------------

//== loops and operator descriptors ====================================================================================

/* Returns the function to which params->i64[3] points. */
static const opdi_special *opdi_special_of(const opdi_params *params) {
    return (const opdi_special *)(uintptr_t)params->i64[3];
}
/* The loops for float and double: out = function(x) or function(x, y), for params->i64[2] inputs.  If a function of
   two arguments has only one input, its first argument is params->f64[0]. */
static void opdi_special_f32(void *const *data, int64_t count, const opdi_params *params) {
    const opdi_special *function = opdi_special_of(params);
    const float *x = (const float *)data[1], *y = params->i64[2] == 2 ? (const float *)data[2] : NULL;
    float *out = (float *)data[0];
    if (function->one == opdi_special_erfinv || function->one == opdi_special_i1e) {
        (function->one == opdi_special_i1e ? opdi_i1e_f32 : opdi_erfinv_f32)(count, out, x);
        return;
    }
    if (opdi_wide_all(function, data, count, y != NULL, true)) { return; }
    for (int64_t i = 0; function->one && i < count; i++) { out[i] = (float)function->one(x[i]); }
    for (int64_t i = 0; function->two && i < count; i++) {
        out[i] = (float)(y ? function->two(x[i], y[i]) : function->two(params->f64[0], x[i]));
    }
}
static void opdi_special_f64(void *const *data, int64_t count, const opdi_params *params) {
    const opdi_special *function = opdi_special_of(params);
    const double *x = (const double *)data[1], *y = params->i64[2] == 2 ? (const double *)data[2] : NULL;
    double *out = (double *)data[0];
    if (opdi_wide_all(function, data, count, y != NULL, false)) { return; }
    for (int64_t i = 0; function->one && i < count; i++) { out[i] = function->one(x[i]); }
    for (int64_t i = 0; function->two && i < count; i++) {
        out[i] = y ? function->two(x[i], y[i]) : function->two(params->f64[0], x[i]);
    }
}
OPDI_COLD_BEGIN
/* Runs a function on the inputs ops[1] .. ops[nin].  Integers become float32, except for igamma and
   _standard_gamma_grad.  Returns 0, or -1 and sets an error. */
static int opdi_special_run(opd_call *call, const opdi_special *function, opd_tensor **ops, int nin,
                            opdi_params *params) {
    opdi_formula formula = {{opdi_special_f32, opdi_special_f64, NULL}, NULL, 0, {0, 0}, NULL, NULL};
    opd_scalar_type common = nin == 1 ? (opd_scalar_type)ops[1]->dtype : opdi_result_type(ops + 1, nin);
    formula.what = function->what;
    if (strncmp(function->what, "igamma", 6) != 0 && function->what[0] != '_') {
        common = opdi_rule_dtype(OPDI_TO_FLOAT, common);
    }
    if (opd_dtype_is_complex(common) || (!function->half && (common == OPD_FLOAT16 || common == OPD_BFLOAT16))) {
        return opdi_not_implemented(&formula, common);
    }
    params->i64[2] = nin;
    params->i64[3] = (int64_t)(uintptr_t)function;
    return opdi_pointwise_typed(call, &formula, ops, nin, common, common, params);
}
/* The kernel of most operators below.  call->user is the function to compute.  The operator has one tensor argument, or
   two arguments, either of which may be a Scalar. */
static int opdi_special_kernel(opd_call *call) {
    const opdi_special *function = (const opdi_special *)call->user;
    opdi_params params = opdi_no_params;
    opdi_number first, second;
    opd_tensor *ops[3];
    ops[1] = opdi_operand_of(call, 0, &first);
    if (function->two) { ops[2] = opdi_operand_of(call, 1, &second); }
    return opdi_special_run(call, function, ops, function->two ? 2 : 1, &params);
}
/* Fills in the descriptor *op of an operator that computes `function`, except for its schema, cases and derivative.
   `out` is its out= form. */
static void opdi_special_card(opd_op_desc *op, const opdi_special *function, const char *out) {
    op->cpu = op->fake = opdi_special_kernel; op->user = (void *)(uintptr_t)function;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_POINTWISE; op->tags = OPD_OPTAG_POINTWISE;
    op->out = out;
}
static int opdi_lgamma_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_digamma(input)));
}
/* opd_lgamma: log of |gamma(self)| */
OPDI_OP(lgamma) {
    static const opdi_special function = {"lgamma_vml_cpu", true, opdi_special_lgamma, NULL};
    op->schema = "lgamma(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "lgamma.out");
    op->backward = opdi_lgamma_backward; op->save = "self";
    op->inplace = "lgamma_";
    op->cases = "[2,3]+; []+";
}
static int opdi_digamma_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_polygamma(1, input)));
}
/* opd_digamma: derivative of lgamma */
OPDI_OP(digamma) {
    static const opdi_special function = {"digamma", true, opdi_special_digamma, NULL};
    op->schema = "digamma(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "digamma.out");
    op->backward = opdi_digamma_backward; op->save = "self";
    op->inplace = "digamma_";
    op->cases = "[2,3]+; []+";
}
/* Computes polygamma(n, self): passes n to opdi_special_polygamma as its first argument. */
static int opdi_polygamma_kernel(opd_call *call) {
    static const opdi_special function = {"polygamma", true, NULL, opdi_special_polygamma};
    opdi_params params = opdi_no_params;
    opd_tensor *ops[2];
    const int64_t n = opd_arg_int(call, 0);
    if (n < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "polygamma(n, x) does not support negative n."); }
    opdi_params_set_f64(&params, 0, (double)n);
    ops[1] = opd_arg_tensor(call, 1);
    return opdi_special_run(call, &function, ops, 1, &params);
}
static int opdi_polygamma_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 1);
    const int64_t n = opd_bw_value(bw, 0).u.i;
    return opd_bw_return(bw, 1, opd_mul(grad, opd_polygamma(n == INT64_MAX ? n : n + 1, input)));
}
/* opd_polygamma: derivative n of digamma */
OPDI_OP(polygamma) {
    op->schema = "polygamma(int n, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_polygamma_kernel; op->backward = opdi_polygamma_backward; op->save = "self";
    op->vmap = OPD_BATCH_POINTWISE; op->tags = OPD_OPTAG_POINTWISE;
    op->out = "polygamma.out";
    op->cases = "1, [2,3]+; 2, [2,3]+; 0, []+";
}
/* polygamma_(self, n): polygamma in place, with the arguments in the opposite order. */
static int opdi_polygamma__kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opd_dtype_is_integral((opd_scalar_type)self->dtype, true)) { return opdi_cast_fail(OPD_FLOAT32, self->dtype); }
    return opd_return_tensor(call, opd_copy_(self, opd_polygamma(opd_arg_int(call, 1), opd_clone(self))));
}
/* opd_polygamma_: polygamma in place */
OPDI_OP(polygamma_) {
    op->schema = "polygamma_(Tensor(a!) self, int n) -> Tensor(a!)";
    op->composite = opdi_polygamma__kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "";
}
/* mvlgamma: computes p * (p - 1) / 4 * log(pi) + the sum of lgamma(self - j / 2) for j = 0 .. p - 1. */
static int opdi_mvlgamma_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t count = opd_arg_int(call, 1), last = -1;
    const opd_scalar_type dtype = opdi_rule_dtype(OPDI_TO_FLOAT, (opd_scalar_type)self->dtype);
    if (self->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "The input tensor may not be a boolean tensor.");
    }
    if (count < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "p has to be greater than or equal to 1"); }
    if (count >> 30) {                            /* 2^30 terms or more per element would take minutes */
        return opd_fail(OPD_ERROR_ARGUMENT, "p is %lld, but must be less than 2^30", (long long)count);
    }
    opd_tensor *steps = opd_arange_full(opd_value_int(count), opd_value_int(dtype), opd_value_none(),
                                        opd_value_device(opd_tensor_device(self)), opd_value_none());
    opd_tensor *const column = opd_unsqueeze(self, -1), *each = opd_lgamma(opd_add(column, opdi_muls(steps, -0.5)));
    const double more = (double)count * (double)(count - 1) / 4 * opdi_log_f64(OPDI_PI);
    return opd_return_tensor(call, opdi_adds(opd_sum_dim(each, opd_ints_of(&last, 1), false), more));
}
/* opd_mvlgamma: log of the multivariate gamma function of dimension p */
OPDI_OP(mvlgamma) {
    op->schema = "mvlgamma(Tensor self, int p) -> Tensor";
    op->composite = opdi_mvlgamma_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->inplace = "mvlgamma_"; op->out = "mvlgamma.out";
    op->cases = "[2,3]+, 1; [2,3]+, 3";
}
static int opdi_erfinv_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_muls(opd_exp(opd_square(result)), 0.88622692545275801365)));
}
/* opd_erfinv: inverse of erf */
OPDI_OP(erfinv) {
    static const opdi_special function = {"erfinv_vml_cpu", true, opdi_special_erfinv, NULL};
    op->schema = "erfinv(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "erfinv.out");
    op->backward = opdi_erfinv_backward; op->save = "result";
    op->inplace = "erfinv_";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->cases = "[2,3]u; []u";
}
static int opdi_special_ndtri_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *delta = opdi_muls(opd_square(result), 0.5);
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_muls(opd_exp(delta), 2.50662827463100050242)));
}
/* opd_special_ndtri: inverse of special_ndtr */
OPDI_OP(special_ndtri) {
    static const opdi_special function = {"ndtri_cpu", false, opdi_special_ndtri, NULL};
    op->schema = "special_ndtri(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_ndtri.out");
    op->backward = opdi_special_ndtri_backward; op->save = "result";
    op->cases = "[2,3]u; []u";
}
static int opdi_special_log_ndtr_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *delta = opd_add(result, opdi_muls(opd_square(input), 0.5));
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_muls(opd_exp(opd_neg(delta)), 0.39894228040143267794)));
}
/* opd_special_log_ndtr: log of special_ndtr */
OPDI_OP(special_log_ndtr) {
    static const opdi_special function = {"log_ndtr_cpu", false, opdi_special_log_ndtr, NULL};
    op->schema = "special_log_ndtr(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_log_ndtr.out");
    op->backward = opdi_special_log_ndtr_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_erfcx_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *delta = opdi_muls(opd_mul(input, result), 2);
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_adds(delta, -1.12837916709551257390)));
}
/* opd_special_erfcx: exp(self^2) * erfc(self) */
OPDI_OP(special_erfcx) {
    static const opdi_special function = {"erfcx_cpu", false, opdi_special_erfcx, NULL};
    op->schema = "special_erfcx(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_erfcx.out");
    op->backward = opdi_special_erfcx_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_entr_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_neg(opd_mul(grad, opdi_adds(opd_log(input), 1))));
}
/* opd_special_entr: -self * log(self) */
OPDI_OP(special_entr) {
    static const opdi_special function = {"entr_cpu", true, opdi_special_entr, NULL};
    op->schema = "special_entr(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_entr.out");
    op->backward = opdi_special_entr_backward; op->save = "self";
    op->cases = "[2,3]+; []+";
}
/* special_ndtr: computes erfc(-self / sqrt(2)) / 2. */
static int opdi_special_ndtr_kernel(opd_call *call) {
    opd_tensor *root = opdi_muls(opd_arg_tensor(call, 0), -0.70710678118654752440);
    return opd_return_tensor(call, opdi_muls(opd_erfc(root), 0.5));
}
/* opd_special_ndtr: the distribution function of the normal distribution */
OPDI_OP(special_ndtr) {
    op->schema = "special_ndtr(Tensor self) -> Tensor";
    op->composite = opdi_special_ndtr_kernel;
    op->out = "special_ndtr.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; []";
}

/* Returns grad * (before - result / input), in which the second factor is replaced by 1/2 where input is 0.  This is
   the gradient of an odd function, such as i1, whose series begins with input / 2. */
static opd_tensor *opdi_odd_derivative(opd_tensor *grad, opd_tensor *input, opd_tensor *before, opd_tensor *result) {
    opd_tensor *zero = opd_eq_Scalar(input, opd_value_int(0));
    opd_tensor *some = opd_masked_fill_Scalar(input, zero, opd_value_int(1));
    opd_tensor *delta = opd_sub(before, opd_div(result, some));
    return opd_mul(grad, opd_masked_fill_Scalar(delta, zero, opd_value_double(0.5)));
}
static int opdi_i0_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_special_i1(input)));
}
/* opd_i0: modified Bessel function of order 0 */
OPDI_OP(i0) {
    static const opdi_special function = {"i0_vml_cpu", true, opdi_special_i0, NULL};
    op->schema = "i0(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "i0.out");
    op->backward = opdi_i0_backward; op->save = "self";
    op->inplace = "i0_";
    op->cases = "[2,3]; []";
}
static int opdi_special_i0e_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *const bessel = opd_special_i1e(input);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_sub(bessel, opd_mul(opd_sgn(input), result))));
}
/* opd_special_i0e: i0(self) * exp(-|self|) */
OPDI_OP(special_i0e) {
    static const opdi_special function = {"i0e_cpu", true, opdi_special_i0e, NULL};
    op->schema = "special_i0e(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_i0e.out");
    op->backward = opdi_special_i0e_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_i1_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opdi_odd_derivative(grad, input, opd_i0(input), result));
}
/* opd_special_i1: modified Bessel function of order 1 */
OPDI_OP(special_i1) {
    static const opdi_special function = {"i1_cpu", true, opdi_special_i1, NULL};
    op->schema = "special_i1(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_i1.out");
    op->backward = opdi_special_i1_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_i1e_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *const bessel = opd_special_i0e(input), *delta = opd_sub(bessel, opd_mul(opd_sgn(input), result));
    return opd_bw_return(bw, 0, opdi_odd_derivative(grad, input, delta, result));
}
/* opd_special_i1e: special_i1(self) * exp(-|self|) */
OPDI_OP(special_i1e) {
    static const opdi_special function = {"i1e_cpu", true, opdi_special_i1e, NULL};
    op->schema = "special_i1e(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_i1e.out");
    op->backward = opdi_special_i1e_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_modified_bessel_i0_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_special_modified_bessel_i1(input)));
}
/* opd_special_modified_bessel_i0: the same as i0 */
OPDI_OP(special_modified_bessel_i0) {
    static const opdi_special function = {"modified_bessel_i0_cpu", false, opdi_special_i0, NULL};
    op->schema = "special_modified_bessel_i0(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_modified_bessel_i0.out");
    op->backward = opdi_special_modified_bessel_i0_backward; op->save = "self";
    op->cases = "[2,3]; []";
}
static int opdi_special_modified_bessel_i1_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opdi_odd_derivative(grad, input, opd_special_modified_bessel_i0(input), result));
}
/* opd_special_modified_bessel_i1: the same as special_i1 */
OPDI_OP(special_modified_bessel_i1) {
    static const opdi_special function = {"modified_bessel_i1_cpu", false, opdi_special_i1, NULL};
    op->schema = "special_modified_bessel_i1(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_modified_bessel_i1.out");
    op->backward = opdi_special_modified_bessel_i1_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_modified_bessel_k0_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_neg(opd_mul(grad, opd_special_modified_bessel_k1(input))));
}
/* opd_special_modified_bessel_k0: modified Bessel function of the second kind, order 0 */
OPDI_OP(special_modified_bessel_k0) {
    static const opdi_special function = {"modified_bessel_k0_cpu", false, opdi_special_k0, NULL};
    op->schema = "special_modified_bessel_k0(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_modified_bessel_k0.out");
    op->backward = opdi_special_modified_bessel_k0_backward; op->save = "self";
    op->cases = "[2,3]+; []+";
}
static int opdi_special_modified_bessel_k1_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *const bessel = opd_special_modified_bessel_k0(input),
        *delta = opd_add(bessel, opd_div(result, input));
    return opd_bw_return(bw, 0, opd_neg(opd_mul(grad, delta)));
}
/* opd_special_modified_bessel_k1: modified Bessel function of the second kind, order 1 */
OPDI_OP(special_modified_bessel_k1) {
    static const opdi_special function = {"modified_bessel_k1_cpu", false, opdi_special_k1, NULL};
    op->schema = "special_modified_bessel_k1(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_modified_bessel_k1.out");
    op->backward = opdi_special_modified_bessel_k1_backward; op->save = "self, result";
    op->cases = "[2,3]+; []+";
}
/* opd_special_scaled_modified_bessel_k0: special_modified_bessel_k0(x) * exp(x) */
OPDI_OP(special_scaled_modified_bessel_k0) {
    static const opdi_special function = {"scaled_modified_bessel_k0_cpu", false, opdi_special_scaled_k0, NULL};
    op->schema = "special_scaled_modified_bessel_k0(Tensor x) -> Tensor";
    opdi_special_card(op, &function, "special_scaled_modified_bessel_k0.out");
    op->cases = "[2,3]+; []+";
}
/* opd_special_scaled_modified_bessel_k1: special_modified_bessel_k1(x) * exp(x) */
OPDI_OP(special_scaled_modified_bessel_k1) {
    static const opdi_special function = {"scaled_modified_bessel_k1_cpu", false, opdi_special_scaled_k1, NULL};
    op->schema = "special_scaled_modified_bessel_k1(Tensor x) -> Tensor";
    opdi_special_card(op, &function, "special_scaled_modified_bessel_k1.out");
    op->cases = "[2,3]+; []+";
}
static int opdi_special_bessel_j0_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_neg(opd_mul(grad, opd_special_bessel_j1(input))));
}
/* opd_special_bessel_j0: Bessel function of order 0 */
OPDI_OP(special_bessel_j0) {
    static const opdi_special function = {"bessel_j0_cpu", false, opdi_special_j0, NULL};
    op->schema = "special_bessel_j0(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_bessel_j0.out");
    op->backward = opdi_special_bessel_j0_backward; op->save = "self";
    op->cases = "[2,3]; []";
}
static int opdi_special_bessel_j1_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opdi_odd_derivative(grad, input, opd_special_bessel_j0(input), result));
}
/* opd_special_bessel_j1: Bessel function of order 1 */
OPDI_OP(special_bessel_j1) {
    static const opdi_special function = {"bessel_j1_cpu", false, opdi_special_j1, NULL};
    op->schema = "special_bessel_j1(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_bessel_j1.out");
    op->backward = opdi_special_bessel_j1_backward; op->save = "self, result";
    op->cases = "[2,3]; []";
}
static int opdi_special_bessel_y0_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_neg(opd_mul(grad, opd_special_bessel_y1(input))));
}
/* opd_special_bessel_y0: Bessel function of the second kind, order 0 */
OPDI_OP(special_bessel_y0) {
    static const opdi_special function = {"bessel_y0_cpu", false, opdi_special_y0, NULL};
    op->schema = "special_bessel_y0(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_bessel_y0.out");
    op->backward = opdi_special_bessel_y0_backward; op->save = "self";
    op->cases = "[2,3]+; []+";
}
static int opdi_special_bessel_y1_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *const zero = opd_eq_Scalar(input, opd_value_int(0));   /* there, the quotient alone is infinite */
    opd_tensor *const bessel = opd_masked_fill_Scalar(opd_special_bessel_y0(input), zero, opd_value_int(0));
    return opd_bw_return(bw, 0, opd_mul(grad, opd_sub(bessel, opd_div(result, input))));
}
/* opd_special_bessel_y1: Bessel function of the second kind, order 1 */
OPDI_OP(special_bessel_y1) {
    static const opdi_special function = {"bessel_y1_cpu", false, opdi_special_y1, NULL};
    op->schema = "special_bessel_y1(Tensor self) -> Tensor";
    opdi_special_card(op, &function, "special_bessel_y1.out");
    op->backward = opdi_special_bessel_y1_backward; op->save = "self, result";
    op->cases = "[2,3]+; []+";
}
/* opd_special_spherical_bessel_j0: sin(x) / x */
OPDI_OP(special_spherical_bessel_j0) {
    static const opdi_special function = {"spherical_bessel_j0_cpu", false, opdi_special_spherical_j0, NULL};
    op->schema = "special_spherical_bessel_j0(Tensor x) -> Tensor";
    opdi_special_card(op, &function, "special_spherical_bessel_j0.out");
    op->cases = "[2,3]; []";
}
/* opd_special_airy_ai: the Airy function Ai */
OPDI_OP(special_airy_ai) {
    static const opdi_special function = {"airy_ai_cpu", false, opdi_special_airy_ai, NULL};
    op->schema = "special_airy_ai(Tensor x) -> Tensor";
    opdi_special_card(op, &function, "special_airy_ai.out");
    op->cases = "[2,3]; []";
}

/* Returns grad times the derivative of P(a, x) with respect to x: x^(a - 1) exp(-x) / gamma(a). */
static opd_tensor *opdi_igamma_derivative(opd_backward_call *bw) {
    opd_tensor *a = opd_bw_tensor(bw, 0), *x = opd_bw_tensor(bw, 1);
    opd_tensor *const shifted = opdi_adds(a, -1), *const product = opd_mul(shifted, opd_log(x)),
        *power = opd_sub(product, opd_add(x, opd_lgamma(a)));
    return opd_mul(opd_bw_grad(bw, 0), opd_exp(power));
}
static int opdi_igamma_backward(opd_backward_call *bw) { return opd_bw_return(bw, 1, opdi_igamma_derivative(bw)); }
static int opdi_igammac_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 1, opd_neg(opdi_igamma_derivative(bw)));
}
/* opd_igamma: regularized lower incomplete gamma function: the integral from 0 to other, divided by gamma(self) */
OPDI_OP(igamma) {
    static const opdi_special function = {"igamma_cpu", true, NULL, opdi_special_igamma};
    op->schema = "igamma(Tensor self, Tensor other) -> Tensor";
    opdi_special_card(op, &function, "igamma.out");
    op->backward = opdi_igamma_backward; op->save = "self, other"; op->constant = "self"; op->inplace = "igamma_";
    op->cases = "[2,3]+, [2,3]+; [2,3]+, [3]+";
}
/* opd_igammac: regularized upper incomplete gamma function: the integral from other on, divided by gamma(self) */
OPDI_OP(igammac) {
    static const opdi_special function = {"igammac_cpu", true, NULL, opdi_special_igammac};
    op->schema = "igammac(Tensor self, Tensor other) -> Tensor";
    opdi_special_card(op, &function, "igammac.out");
    op->backward = opdi_igammac_backward; op->save = "self, other"; op->constant = "self"; op->inplace = "igammac_";
    op->cases = "[2,3]+, [2,3]+; [2,3]+, [3]+";
}
static int opdi_special_zeta_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *power = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    opd_tensor *const minus = opd_neg(opd_mul(grad, power));
    return opd_bw_return(bw, 1, opd_mul(minus, opd_special_zeta(opdi_adds(power, 1), input)));
}
/* opd_special_zeta: sum of (other + k)^-self, k from 0 on */
OPDI_OP(special_zeta) {
    static const opdi_special function = {"zeta_cpu", false, NULL, opdi_special_zeta};
    op->schema = "special_zeta(Tensor self, Tensor other) -> Tensor";
    opdi_special_card(op, &function, "special_zeta.out");
    op->backward = opdi_special_zeta_backward; op->save = "self, other"; op->constant = "self";
    op->cases = "[2,3]+, [2,3]+; [2,3]+, [3]+";
}
static int opdi_special_xlog1py_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    opd_tensor *none = opd_logical_and(opd_eq_Scalar(input, opd_value_int(0)), opd_le_Scalar(other, opd_value_int(-1)));
    OPDI_BW_RETURN(0, opd_special_xlog1py(grad, opd_masked_fill_Scalar(other, none, opd_value_int(0))));
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const product = opd_mul(grad, input);
        OPDI_BW_RETURN(1, opd_div(product, opdi_adds(other, 1)));
    }
    return 0;
}
/* opd_special_xlog1py: self * log(1 + other), or 0 if self is 0 */
OPDI_OP(special_xlog1py) {
    static const opdi_special function = {"xlog1py_cpu", true, NULL, opdi_special_xlog1py};
    op->schema = "special_xlog1py(Tensor self, Tensor other) -> Tensor";
    opdi_special_card(op, &function, "special_xlog1py.out");
    op->backward = opdi_special_xlog1py_backward; op->save = "self, other";
    op->cases = "[2,3], [2,3]+; [2,3], [3]+";
}

/* Runs an operator that has a Scalar argument: calls the operator of the same name with a tensor instead of the
   Scalar. */
static int opdi_with_number_kernel(opd_call *call) {
    opd_value args[2];
    for (int i = 0; i < 2; i++) {
        args[i] = opd_arg_value(call, i);
        if (args[i].tag != OPD_TAG_TENSOR) { args[i] = opd_value_tensor(opd_tensor_wrapped_number(args[i])); }
        if (!args[i].u.t) { return -1; }
    }
    return opd_return_tensor(call, opd_call_op(opdi_first_name(call), args, 2));
}
/* opd_special_xlog1py_self_scalar: special_xlog1py with a number as self */
OPDI_OP(special_xlog1py_self_scalar) {
    op->schema = "special_xlog1py.self_scalar(Scalar self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(special_xlog1py));
    op->out = "special_xlog1py.self_scalar_out";
    op->composite = opdi_with_number_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->cases = "2.5, [2,3]+";
}
/* opd_special_xlog1py_other_scalar: special_xlog1py with a number as other */
OPDI_OP(special_xlog1py_other_scalar) {
    op->schema = "special_xlog1py.other_scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(special_xlog1py));
    op->out = "special_xlog1py.other_scalar_out";
    op->composite = opdi_with_number_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], 2.5";
}
/* opd_special_zeta_self_scalar: special_zeta with a number as self */
OPDI_OP(special_zeta_self_scalar) {
    op->schema = "special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(special_zeta));
    op->out = "special_zeta.self_scalar_out";
    op->composite = opdi_with_number_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->cases = "2.5, [2,3]+";
}
/* opd_special_zeta_other_scalar: special_zeta with a number as other */
OPDI_OP(special_zeta_other_scalar) {
    op->schema = "special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(special_zeta));
    op->out = "special_zeta.other_scalar_out";
    op->composite = opdi_with_number_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3]+, 2.5";
}

//== operator descriptors of orthogonal polynomials ====================================================================

static const opdi_special opdi_the_chebyshev_polynomial_t = {
    "chebyshev_polynomial_t_cpu", false, NULL, opdi_special_chebyshev_t};
/* opd_special_chebyshev_polynomial_t: Chebyshev polynomial of degree n, first kind */
OPDI_OP(special_chebyshev_polynomial_t) {
    op->schema = "special_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_t,
                      "special_chebyshev_polynomial_t.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_chebyshev_polynomial_t_x_scalar: special_chebyshev_polynomial_t with a number as x */
OPDI_OP(special_chebyshev_polynomial_t_x_scalar) {
    op->schema = "special_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_t,
                      "special_chebyshev_polynomial_t.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_chebyshev_polynomial_t_n_scalar: special_chebyshev_polynomial_t with a number as n */
OPDI_OP(special_chebyshev_polynomial_t_n_scalar) {
    op->schema = "special_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_t,
                      "special_chebyshev_polynomial_t.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_chebyshev_polynomial_u = {
    "chebyshev_polynomial_u_cpu", false, NULL, opdi_special_chebyshev_u};
/* opd_special_chebyshev_polynomial_u: Chebyshev polynomial of degree n, second kind */
OPDI_OP(special_chebyshev_polynomial_u) {
    op->schema = "special_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_u,
                      "special_chebyshev_polynomial_u.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_chebyshev_polynomial_u_x_scalar: special_chebyshev_polynomial_u with a number as x */
OPDI_OP(special_chebyshev_polynomial_u_x_scalar) {
    op->schema = "special_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_u,
                      "special_chebyshev_polynomial_u.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_chebyshev_polynomial_u_n_scalar: special_chebyshev_polynomial_u with a number as n */
OPDI_OP(special_chebyshev_polynomial_u_n_scalar) {
    op->schema = "special_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_u,
                      "special_chebyshev_polynomial_u.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_chebyshev_polynomial_v = {
    "chebyshev_polynomial_v_cpu", false, NULL, opdi_special_chebyshev_v};
/* opd_special_chebyshev_polynomial_v: Chebyshev polynomial of degree n, third kind */
OPDI_OP(special_chebyshev_polynomial_v) {
    op->schema = "special_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_v,
                      "special_chebyshev_polynomial_v.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_chebyshev_polynomial_v_x_scalar: special_chebyshev_polynomial_v with a number as x */
OPDI_OP(special_chebyshev_polynomial_v_x_scalar) {
    op->schema = "special_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_v,
                      "special_chebyshev_polynomial_v.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_chebyshev_polynomial_v_n_scalar: special_chebyshev_polynomial_v with a number as n */
OPDI_OP(special_chebyshev_polynomial_v_n_scalar) {
    op->schema = "special_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_v,
                      "special_chebyshev_polynomial_v.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_chebyshev_polynomial_w = {
    "chebyshev_polynomial_w_cpu", false, NULL, opdi_special_chebyshev_w};
/* opd_special_chebyshev_polynomial_w: Chebyshev polynomial of degree n, fourth kind */
OPDI_OP(special_chebyshev_polynomial_w) {
    op->schema = "special_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_w,
                      "special_chebyshev_polynomial_w.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_chebyshev_polynomial_w_x_scalar: special_chebyshev_polynomial_w with a number as x */
OPDI_OP(special_chebyshev_polynomial_w_x_scalar) {
    op->schema = "special_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_w,
                      "special_chebyshev_polynomial_w.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_chebyshev_polynomial_w_n_scalar: special_chebyshev_polynomial_w with a number as n */
OPDI_OP(special_chebyshev_polynomial_w_n_scalar) {
    op->schema = "special_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_chebyshev_polynomial_w,
                      "special_chebyshev_polynomial_w.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_shifted_chebyshev_polynomial_t = {
    "shifted_chebyshev_polynomial_t_cpu", false, NULL, opdi_special_shifted_t};
/* opd_special_shifted_chebyshev_polynomial_t: special_chebyshev_polynomial_t at 2 x - 1 */
OPDI_OP(special_shifted_chebyshev_polynomial_t) {
    op->schema = "special_shifted_chebyshev_polynomial_t(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_t,
                      "special_shifted_chebyshev_polynomial_t.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_t_x_scalar: special_shifted_chebyshev_polynomial_t with a number as x */
OPDI_OP(special_shifted_chebyshev_polynomial_t_x_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_t.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_t,
                      "special_shifted_chebyshev_polynomial_t.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_t_n_scalar: special_shifted_chebyshev_polynomial_t with a number as n */
OPDI_OP(special_shifted_chebyshev_polynomial_t_n_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_t.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_t,
                      "special_shifted_chebyshev_polynomial_t.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_shifted_chebyshev_polynomial_u = {
    "shifted_chebyshev_polynomial_u_cpu", false, NULL, opdi_special_shifted_u};
/* opd_special_shifted_chebyshev_polynomial_u: special_chebyshev_polynomial_u at 2 x - 1 */
OPDI_OP(special_shifted_chebyshev_polynomial_u) {
    op->schema = "special_shifted_chebyshev_polynomial_u(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_u,
                      "special_shifted_chebyshev_polynomial_u.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_u_x_scalar: special_shifted_chebyshev_polynomial_u with a number as x */
OPDI_OP(special_shifted_chebyshev_polynomial_u_x_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_u.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_u,
                      "special_shifted_chebyshev_polynomial_u.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_u_n_scalar: special_shifted_chebyshev_polynomial_u with a number as n */
OPDI_OP(special_shifted_chebyshev_polynomial_u_n_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_u.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_u,
                      "special_shifted_chebyshev_polynomial_u.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_shifted_chebyshev_polynomial_v = {
    "shifted_chebyshev_polynomial_v_cpu", false, NULL, opdi_special_shifted_v};
/* opd_special_shifted_chebyshev_polynomial_v: special_chebyshev_polynomial_v at 2 x - 1 */
OPDI_OP(special_shifted_chebyshev_polynomial_v) {
    op->schema = "special_shifted_chebyshev_polynomial_v(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_v,
                      "special_shifted_chebyshev_polynomial_v.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_v_x_scalar: special_shifted_chebyshev_polynomial_v with a number as x */
OPDI_OP(special_shifted_chebyshev_polynomial_v_x_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_v.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_v,
                      "special_shifted_chebyshev_polynomial_v.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_v_n_scalar: special_shifted_chebyshev_polynomial_v with a number as n */
OPDI_OP(special_shifted_chebyshev_polynomial_v_n_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_v.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_v,
                      "special_shifted_chebyshev_polynomial_v.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_shifted_chebyshev_polynomial_w = {
    "shifted_chebyshev_polynomial_w_cpu", false, NULL, opdi_special_shifted_w};
/* opd_special_shifted_chebyshev_polynomial_w: special_chebyshev_polynomial_w at 2 x - 1 */
OPDI_OP(special_shifted_chebyshev_polynomial_w) {
    op->schema = "special_shifted_chebyshev_polynomial_w(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_w,
                      "special_shifted_chebyshev_polynomial_w.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_w_x_scalar: special_shifted_chebyshev_polynomial_w with a number as x */
OPDI_OP(special_shifted_chebyshev_polynomial_w_x_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_w.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_w,
                      "special_shifted_chebyshev_polynomial_w.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_shifted_chebyshev_polynomial_w_n_scalar: special_shifted_chebyshev_polynomial_w with a number as n */
OPDI_OP(special_shifted_chebyshev_polynomial_w_n_scalar) {
    op->schema = "special_shifted_chebyshev_polynomial_w.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_shifted_chebyshev_polynomial_w,
                      "special_shifted_chebyshev_polynomial_w.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_hermite_polynomial_h = {
    "hermite_polynomial_h_cpu", false, NULL, opdi_special_hermite_h};
/* opd_special_hermite_polynomial_h: physicists' Hermite polynomial of degree n */
OPDI_OP(special_hermite_polynomial_h) {
    op->schema = "special_hermite_polynomial_h(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_hermite_polynomial_h,
                      "special_hermite_polynomial_h.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_hermite_polynomial_h_x_scalar: special_hermite_polynomial_h with a number as x */
OPDI_OP(special_hermite_polynomial_h_x_scalar) {
    op->schema = "special_hermite_polynomial_h.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_hermite_polynomial_h,
                      "special_hermite_polynomial_h.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_hermite_polynomial_h_n_scalar: special_hermite_polynomial_h with a number as n */
OPDI_OP(special_hermite_polynomial_h_n_scalar) {
    op->schema = "special_hermite_polynomial_h.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_hermite_polynomial_h,
                      "special_hermite_polynomial_h.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_hermite_polynomial_he = {
    "hermite_polynomial_he_cpu", false, NULL, opdi_special_hermite_he};
/* opd_special_hermite_polynomial_he: statisticians' Hermite polynomial of degree n */
OPDI_OP(special_hermite_polynomial_he) {
    op->schema = "special_hermite_polynomial_he(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_hermite_polynomial_he,
                      "special_hermite_polynomial_he.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_hermite_polynomial_he_x_scalar: special_hermite_polynomial_he with a number as x */
OPDI_OP(special_hermite_polynomial_he_x_scalar) {
    op->schema = "special_hermite_polynomial_he.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_hermite_polynomial_he,
                      "special_hermite_polynomial_he.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_hermite_polynomial_he_n_scalar: special_hermite_polynomial_he with a number as n */
OPDI_OP(special_hermite_polynomial_he_n_scalar) {
    op->schema = "special_hermite_polynomial_he.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_hermite_polynomial_he,
                      "special_hermite_polynomial_he.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_laguerre_polynomial_l = {
    "laguerre_polynomial_l_cpu", false, NULL, opdi_special_laguerre_l};
/* opd_special_laguerre_polynomial_l: Laguerre polynomial of degree n */
OPDI_OP(special_laguerre_polynomial_l) {
    op->schema = "special_laguerre_polynomial_l(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_laguerre_polynomial_l,
                      "special_laguerre_polynomial_l.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_laguerre_polynomial_l_x_scalar: special_laguerre_polynomial_l with a number as x */
OPDI_OP(special_laguerre_polynomial_l_x_scalar) {
    op->schema = "special_laguerre_polynomial_l.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_laguerre_polynomial_l,
                      "special_laguerre_polynomial_l.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_laguerre_polynomial_l_n_scalar: special_laguerre_polynomial_l with a number as n */
OPDI_OP(special_laguerre_polynomial_l_n_scalar) {
    op->schema = "special_laguerre_polynomial_l.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_laguerre_polynomial_l,
                      "special_laguerre_polynomial_l.n_scalar_out");
    op->cases = "[2,3], 3";
}
static const opdi_special opdi_the_legendre_polynomial_p = {
    "legendre_polynomial_p_cpu", false, NULL, opdi_special_legendre_p};
/* opd_special_legendre_polynomial_p: Legendre polynomial of degree n */
OPDI_OP(special_legendre_polynomial_p) {
    op->schema = "special_legendre_polynomial_p(Tensor x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_legendre_polynomial_p,
                      "special_legendre_polynomial_p.out");
    op->cases = "[2,3], [2,3]i5; [2,3], [3]i5";
}
/* opd_special_legendre_polynomial_p_x_scalar: special_legendre_polynomial_p with a number as x */
OPDI_OP(special_legendre_polynomial_p_x_scalar) {
    op->schema = "special_legendre_polynomial_p.x_scalar(Scalar x, Tensor n) -> Tensor";
    opdi_special_card(op, &opdi_the_legendre_polynomial_p,
                      "special_legendre_polynomial_p.x_scalar_out");
    op->cases = "0.5, [2,3]i5";
}
/* opd_special_legendre_polynomial_p_n_scalar: special_legendre_polynomial_p with a number as n */
OPDI_OP(special_legendre_polynomial_p_n_scalar) {
    op->schema = "special_legendre_polynomial_p.n_scalar(Tensor x, Scalar n) -> Tensor";
    opdi_special_card(op, &opdi_the_legendre_polynomial_p,
                      "special_legendre_polynomial_p.n_scalar_out");
    op->cases = "[2,3], 3";
}

//== frexp =============================================================================================================

/* frexp: computes mantissa and exponent with self = mantissa * 2^exponent.  The mantissa's absolute value is 0 or in
   [1/2, 1). */
static int opdi_frexp_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (!opd_dtype_is_floating(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "frexp() only supports floating-point dtypes");
    }
    for (int i = 0; i < 2 && call->targets; i++) {
        const opd_scalar_type want = i ? OPD_INT32 : dtype, have = (opd_scalar_type)call->targets[i]->dtype;
        if (have == want) { continue; }
        return opd_fail(OPD_ERROR_DTYPE, "frexp() expects %s to have dtype %s but got %s",
                        i ? "exponent" : "mantissa", opd_dtype_name(want), opd_dtype_name(have));
    }
    int64_t strides[OPD_MAX_DIMS];
    opdi_strides_like(self, strides);
    opd_tensor *mantissa = opd_result_strided(call, 0, opdi_sizes(self), strides, self->ndim, dtype,
                                              opd_tensor_device(self));
    opd_tensor *exponent = opd_result_strided(call, 1, opdi_sizes(self), strides, self->ndim, OPD_INT32,
                                              opd_tensor_device(self));
    if (!mantissa || !exponent || !mantissa->data || !exponent->data) { return mantissa && exponent ? 0 : -1; }
    self = opdi_dense_as(self, OPD_FLOAT64);
    opd_tensor *parts = opdi_staging(mantissa, OPD_FLOAT64), *powers = opdi_staging(exponent, OPD_INT32);
    if (!self || !parts || !powers) { return -1; }
    for (int64_t i = 0; i < self->numel; i++) {
        const double x = ((const double *)(const void *)self->data)[i];
        int power = 0;
        ((double *)(void *)parts->data)[i] = x - x == 0 ? frexp(x, &power) : x;
        ((int32_t *)(void *)powers->data)[i] = power;
    }
    return opdi_staging_store(mantissa, parts) || opdi_staging_store(exponent, powers) ? -1 : 0;
}
static int opdi_frexp_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_div(opd_bw_grad(bw, 0), opd_exp2(opd_bw_result(bw, 1))));
}
/* opd_frexp_Tensor: mantissa and exponent: self = mantissa * 2^exponent */
OPDI_OP(frexp_Tensor) {
    op->schema = "frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)";
    op->cpu = op->fake = opdi_frexp_kernel; op->backward = opdi_frexp_backward; op->save = "exponent";
    op->constant = "exponent";
    op->vmap = OPD_BATCH_POINTWISE;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT | OPDI_OPTAG_OUT_PART; op->flops = opdi_flops_elements;
    op->out = "frexp.Tensor_out(mantissa, exponent)";
    op->cases = "[2,3]; []";
}

//== aliases ===========================================================================================================

/* opd_special_psi: the same as digamma */
OPDI_OP(special_psi) {
    op->schema = "special_psi(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(digamma));
    op->out = "special_psi.out"; op->cases = "[2,3]+";
}
/* opd_special_digamma: the same as digamma */
OPDI_OP(special_digamma) {
    op->schema = "special_digamma(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(digamma));
    op->out = "special_digamma.out"; op->cases = "[2,3]+";
}
/* opd_special_gammaln: the same as lgamma */
OPDI_OP(special_gammaln) {
    op->schema = "special_gammaln(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(lgamma));
    op->out = "special_gammaln.out"; op->cases = "[2,3]+";
}
/* opd_special_multigammaln: the same as mvlgamma */
OPDI_OP(special_multigammaln) {
    op->schema = "special_multigammaln(Tensor self, int p) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(mvlgamma));
    op->out = "special_multigammaln.out"; op->tags = OPDI_OPTAG_OUT_CASTS; op->cases = "[2,3]+, 2";
}
/* opd_special_polygamma: the same as polygamma */
OPDI_OP(special_polygamma) {
    op->schema = "special_polygamma(int n, Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(polygamma));
    op->out = "special_polygamma.out"; op->cases = "1, [2,3]+";
}
/* opd_special_gammainc: the same as igamma */
OPDI_OP(special_gammainc) {
    op->schema = "special_gammainc(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(igamma));
    op->out = "special_gammainc.out"; op->cases = "[2,3]+, [2,3]+";
}
/* opd_special_gammaincc: the same as igammac */
OPDI_OP(special_gammaincc) {
    op->schema = "special_gammaincc(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(igammac));
    op->out = "special_gammaincc.out"; op->cases = "[2,3]+, [2,3]+";
}
/* opd_special_i0: the same as i0 */
OPDI_OP(special_i0) {
    op->schema = "special_i0(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(i0));
    op->out = "special_i0.out"; op->cases = "[2,3]";
}
/* opd_special_erf: the same as erf */
OPDI_OP(special_erf) {
    op->schema = "special_erf(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(erf));
    op->out = "special_erf.out"; op->cases = "[2,3]";
}
/* opd_special_erfc: the same as erfc */
OPDI_OP(special_erfc) {
    op->schema = "special_erfc(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(erfc));
    op->out = "special_erfc.out"; op->cases = "[2,3]";
}
/* opd_special_erfinv: the same as erfinv */
OPDI_OP(special_erfinv) {
    op->schema = "special_erfinv(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(erfinv));
    op->out = "special_erfinv.out"; op->cases = "[2,3]u";
}
/* opd_special_exp2: the same as exp2 */
OPDI_OP(special_exp2) {
    op->schema = "special_exp2(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(exp2));
    op->out = "special_exp2.out"; op->cases = "[2,3]";
}
/* opd_special_expm1: the same as expm1 */
OPDI_OP(special_expm1) {
    op->schema = "special_expm1(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(expm1));
    op->out = "special_expm1.out"; op->cases = "[2,3]";
}
/* opd_special_log1p: the same as log1p */
OPDI_OP(special_log1p) {
    op->schema = "special_log1p(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(log1p));
    op->out = "special_log1p.out"; op->cases = "[2,3]+";
}
/* opd_special_expit: the same as sigmoid */
OPDI_OP(special_expit) {
    op->schema = "special_expit(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(sigmoid));
    op->out = "special_expit.out"; op->cases = "[2,3]";
}
/* opd_special_logit: the same as logit */
OPDI_OP(special_logit) {
    op->schema = "special_logit(Tensor self, float? eps=None) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(logit));
    op->out = "special_logit.out"; op->cases = "[2,3]u; [2,3]u, 0.1";
}
/* opd_special_sinc: the same as sinc */
OPDI_OP(special_sinc) {
    op->schema = "special_sinc(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(sinc));
    op->out = "special_sinc.out"; op->cases = "[2,3]";
}
/* opd_special_round: the same as round.decimals */
OPDI_OP(special_round) {
    op->schema = "special_round(Tensor self, *, int decimals=0) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(round_decimals));
    op->out = "special_round.out"; op->tags = OPDI_OPTAG_OUT_PART; op->cases = "[2,3]; [2,3], decimals=1";
}
/* opd_special_xlogy: the same as xlogy.Tensor */
OPDI_OP(special_xlogy) {
    op->schema = "special_xlogy(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(xlogy_Tensor));
    op->out = "special_xlogy.out"; op->cases = "[2,3], [2,3]+";
}
/* opd_special_xlogy_self_scalar: the same as xlogy.Scalar_Self */
OPDI_OP(special_xlogy_self_scalar) {
    op->schema = "special_xlogy.self_scalar(Scalar self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(xlogy_Scalar_Self));
    op->out = "special_xlogy.self_scalar_out"; op->cases = "2.5, [2,3]+";
}
/* opd_special_xlogy_other_scalar: the same as xlogy.Scalar_Other */
OPDI_OP(special_xlogy_other_scalar) {
    op->schema = "special_xlogy.other_scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(xlogy_Scalar_Other));
    op->out = "special_xlogy.other_scalar_out"; op->cases = "[2,3], 2.5";
}

//== derivatives of random numbers by the parameters of their distribution =============================================
//
//  A random number x of a gamma distribution satisfies P(a, x) = u, with a uniform u.  If a changes and u does not, x
//  changes by -(dP/da) / (dP/dx) times the change of a.  Below the middle of the distribution, both derivatives are
//  sums of positive terms.  Above the middle, the same holds for 1 - P.  So few digits cancel.
#include "sample_derivatives.typed.h"

static int opdi_standard_gamma_grad_kernel(opd_call *call) {
    const opd_scalar_type dtype = opd_dtype(opd_arg_tensor(call, 0)), other = opd_dtype(opd_arg_tensor(call, 1));
    if (other != dtype) { return opdi_found_fail(other, dtype); }
    return opdi_exact_out(call, dtype) ? -1 : opdi_special_kernel(call);
}
/* opd_standard_gamma_grad: the derivative of a gamma distributed number by the shape of its distribution */
OPDI_OP(_standard_gamma_grad) {
    static const opdi_special function = {"_standard_gamma_grad_cpu", false, NULL, opdi_special_gamma_moves};
    op->schema = "_standard_gamma_grad(Tensor self, Tensor output) -> Tensor";
    opdi_special_card(op, &function, "_standard_gamma_grad.out");
    op->cpu = op->fake = opdi_standard_gamma_grad_kernel;
    op->backward = opdi_refused_backward; op->constant = "self, output";
    op->cases = "[2,3]+, [2,3]+; [3]+, [2,1]u";
}
/* A job that computes out [n] from the arrays x (in[0]), a (in[1]) and total (in[2]), which have n elements each. */
typedef struct opdi_beta_job { double *out; const double *in[3]; } opdi_beta_job;
static void opdi_beta_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_beta_job *job = (const opdi_beta_job *)ctx;
    for (int64_t i = begin; i < end; i++) {
        job->out[i] = opdi_beta_moves(job->in[0][i], job->in[1][i], job->in[2][i]);
    }
}
static int opdi_dirichlet_grad_kernel(opd_call *call) {
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    opdi_beta_job job;
    for (int i = 0; i < 3; i++) {
        const opd_tensor *tensor = opd_arg_tensor(call, i);
        if (opdi_sample_dtype("_dirichlet_grad_cpu", tensor, false)) { return -1; }
        if (tensor->dtype != dtype) { return opdi_found_fail(tensor->dtype, dtype); }
        if (opdi_broadcast_into(sizes, &ndim, tensor)) { return -1; }
    }
    opd_tensor *out = opd_result(call, 0, sizes, ndim, dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *staging = opd_tensor_new(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    opdi_cpu_fallback_note(out);
    for (int i = 0; i < 3; i++) {
        const opd_tensor *tensor = opdi_to_f64(opd_arg_tensor(call, i), sizes, ndim);
        if (!tensor || !staging) { return -1; }
        job.in[i] = (const double *)(const void *)tensor->data;
    }
    job.out = (double *)(void *)staging->data;
    opdi_parallel_for(out->numel, 256, opdi_beta_part, &job);
    return opdi_copy(out, staging);
}
/* opd_dirichlet_grad: the derivative of a beta distributed number x by the first parameter, divided by 1 - x */
OPDI_OP(_dirichlet_grad) {
    op->schema = "_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor";
    op->any = opdi_dirichlet_grad_kernel; op->backward = opdi_refused_backward;
    op->constant = "x, alpha, total";
    op->vmap = OPD_BATCH_POINTWISE;
    op->out = "_dirichlet_grad.out"; op->tags = OPDI_OPTAG_OUT_EXACT;
    op->cases = "[2,3]u, [2,3]u, [2,3]g; [3]u, [2,1]u, [2,3]g";
}
OPDI_COLD_END
