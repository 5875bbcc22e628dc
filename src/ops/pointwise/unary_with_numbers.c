#include "../ops.h"

//== pointwise operators of one tensor and numbers =====================================================================

OPDI_COLD_BEGIN

static int opdi_unary_params(opd_call *call, const opdi_formula *formula, const opdi_params *params) {
    opd_tensor *ops[2];
    ops[1] = opd_arg_tensor(call, 0);
    return opdi_pointwise(call, formula, ops, 1, params);
}
/* Returns params whose numbers 0 .. count - 1 are the arguments first .. first + count - 1. */
OPDI_INTERNAL opdi_params opdi_params_of(const opd_call *call, int first, int count) {
    opdi_params params = opdi_no_params;
    for (int k = 0; k < count; k++) { opdi_params_set(&params, k, opd_arg_value(call, first + k)); }
    return params;
}
/* The backward function of an operator whose derivatives are 0: the gradients of the first two arguments are zeros with
   the sizes of grad.  It does not compute grad * 0, which would be NaN where grad is infinite. */
OPDI_INTERNAL int opdi_zero_backward(opd_backward_call *bw) {
    for (int i = 0; i < 2; i++) {
        if (opd_bw_needs(bw, i) && opd_bw_return(bw, i, opd_zeros_like(opd_bw_grad(bw, 0))) != 0) { return -1; }
    }
    return 0;
}

static const opdi_formula opdi_formula_clamp = {{opdi_f32_clamp, opdi_f64_clamp, opdi_i64_clamp}, "clamp_cpu",
    OPDI_NOT_BOOL, OPDI_NUMBER(clamp, clamp)};
OPDI_INTERNAL const opdi_formula opdi_formula_clamp_tensor =
    {{opdi_f32_clamp_tensor, opdi_f64_clamp_tensor, opdi_i64_clamp_tensor}, "clamp_cpu", OPDI_NOT_BOOL,
    OPDI_NUMBER(clamp_tensor, clamp_tensor)};
/* Computes clamp of argument 0 with the bounds in params, in dtype `dtype`.  Returns 0, or -1 and sets an error. */
static int opdi_clamp_run(opd_call *call, opd_scalar_type dtype, const opdi_params *params) {
    opd_tensor *ops[4];
    opdi_number number;
    ops[1] = opd_arg_tensor(call, 0);
    if (opd_dtype_is_integral(dtype, false)) {    /* refuse bounds that exclude all numbers of the dtype */
        const int64_t top = dtype == OPD_UINT8 ? 255 : (int64_t)(UINT64_MAX >> (65 - 8 * opd_dtype_size(dtype)));
        const bool low = params->i64[0] > top;
        if (low || params->i64[1] < (dtype == OPD_UINT8 ? 0 : -top - 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Clamp %s value %g is outside the representable range of %s",
                            low ? "min" : "max", params->f64[!low], opd_dtype_name(dtype));
        }
    }
    if (params->f64[0] == params->f64[0] && params->f64[1] == params->f64[1]) {
        return opdi_pointwise_typed(call, &opdi_formula_clamp, ops, 1, dtype, dtype, params);
    }
    ops[2] = ops[3] = opdi_number_make(&number, opd_value_double(NAN));   /* a NaN bound makes everything NaN */
    return opdi_pointwise_typed(call, &opdi_formula_clamp_tensor, ops, 3, dtype, dtype, params);
}
/* Sets the error that clamp has no bounds.  Returns -1. */
OPDI_INTERNAL int opdi_clamp_fail(void) {
    return opd_fail(OPD_ERROR_ARGUMENT, "clamp: at least one of min and max must be given: both are NULL or "
                    "OPD_NONE");
}
/* Runs clamp with the bounds low and high, each of which may be None.  Both take part in type promotion, which decides
   the dtype of the result (at::meta clamp).  Returns 0, or -1 and sets an error. */
static int opdi_clamp_bounds(opd_call *call, opd_value low, opd_value high) {
    opd_tensor *ops[4];
    opdi_number numbers[2];
    opdi_params params = opdi_no_params;
    int nin = 1;
    ops[1] = opd_arg_tensor(call, 0);
    if (low.tag != OPD_TAG_NONE) { ops[++nin] = opdi_number_make(&numbers[0], low); }
    if (high.tag != OPD_TAG_NONE) { ops[++nin] = opdi_number_make(&numbers[1], high); }
    if (nin == 1) { return opdi_clamp_fail(); }
    opd_scalar_type dtype = opdi_result_type(ops + 1, nin);
    opdi_params_set_f64(&params, 0, -INFINITY);
    opdi_params_set_f64(&params, 1, INFINITY);
    params.i64[0] = INT64_MIN;
    params.i64[1] = INT64_MAX;
    if (low.tag != OPD_TAG_NONE) { opdi_params_set(&params, 0, low); }
    if (high.tag != OPD_TAG_NONE) { opdi_params_set(&params, 1, high); }
    return opdi_clamp_run(call, dtype, &params);
}
static int opdi_clamp_kernel(opd_call *call) {
    return opdi_clamp_bounds(call, opd_arg_value(call, 1), opd_arg_value(call, 2));
}
static int opdi_clamp_min_kernel(opd_call *call) {
    return opdi_clamp_bounds(call, opd_arg_value(call, 1), opd_value_none());
}
static int opdi_clamp_max_kernel(opd_call *call) {
    return opdi_clamp_bounds(call, opd_value_none(), opd_arg_value(call, 1));
}
/* Returns the gradient of clamp: grad where low < input < high, and 0 elsewhere, also at the bounds.  A bound may be
   None. */
static opd_tensor *opdi_clamp_mask(opd_tensor *grad, opd_tensor *input, opd_value low, opd_value high) {
    if (low.tag != OPD_TAG_NONE) { grad = opdi_where(opd_gt_Scalar(input, low), grad); }
    return high.tag != OPD_TAG_NONE ? opdi_where(opd_lt_Scalar(input, high), grad) : grad;
}
static int opdi_clamp_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_clamp_mask(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1),
                                                opd_bw_value(bw, 2)));
}
static int opdi_clamp_min_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_clamp_mask(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1),
                                                opd_value_none()));
}
static int opdi_clamp_max_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_clamp_mask(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_value_none(),
                                                opd_bw_value(bw, 1)));
}
/* opd_clamp(self, min, max): min(max(self, min), max) */
OPDI_OP(clamp) {
    op->schema = "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor";
    op->cpu = op->fake = opdi_clamp_kernel; op->backward = opdi_clamp_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "clamp_"; op->out = "clamp.out";
    op->cases = "[2,3], -0.5, 0.5; [2,3], None, 0.25; [2,3]i5, 1, 3";
}
/* opd_clamp_min: max(self, min) */
OPDI_OP(clamp_min) {
    op->schema = "clamp_min(Tensor self, Scalar min) -> Tensor";
    op->cpu = op->fake = opdi_clamp_min_kernel; op->backward = opdi_clamp_min_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "clamp_min_"; op->out = "clamp_min.out";
    op->cases = "[2,3], 0.1";
}
/* opd_clamp_max: min(self, max) */
OPDI_OP(clamp_max) {
    op->schema = "clamp_max(Tensor self, Scalar max) -> Tensor";
    op->cpu = op->fake = opdi_clamp_max_kernel; op->backward = opdi_clamp_max_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "clamp_max_"; op->out = "clamp_max.out";
    op->cases = "[2,3], 0.1";
}

static int opdi_hardtanh_bounds(opd_call *call, opd_value low, opd_value high) {
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    opdi_params params = opdi_no_params;
    if (dtype == OPD_BOOL) { return opd_fail(OPD_ERROR_DTYPE, "bool inputs not supported for hardtanh"); }
    opdi_params_set(&params, 0, low);
    opdi_params_set(&params, 1, high);
    return opdi_clamp_run(call, dtype, &params);
}
static int opdi_hardtanh_kernel(opd_call *call) {
    return opdi_hardtanh_bounds(call, opd_arg_value(call, 1), opd_arg_value(call, 2));
}
static int opdi_hardtanh_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_hardtanh_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1),
                                                      opd_bw_value(bw, 2)));
}
/* opd_hardtanh: self limited to [min_val, max_val] */
OPDI_OP(hardtanh) {
    op->schema = "hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor";
    op->cpu = op->fake = opdi_hardtanh_kernel; op->backward = opdi_hardtanh_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "hardtanh_"; op->out = "hardtanh.out";
    op->cases = "[2,3]; [2,3], -0.5, 0.25";
}

static int opdi_relu6_kernel(opd_call *call) { return opdi_hardtanh_bounds(call, opd_value_int(0), opd_value_int(6)); }
static int opdi_relu6_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_hardtanh_backward(grad, input, opd_value_int(0), opd_value_int(6)));
}
/* opd_relu6: self limited to [0, 6] */
OPDI_OP(relu6) {
    op->schema = "relu6(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_relu6_kernel; op->backward = opdi_relu6_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "relu6_";
    op->cases = "[2,3]";
}

static const opdi_formula opdi_formula_gelu = {{opdi_f32_vgelu, opdi_f64_vgelu, NULL}, "GeluKernelImpl", 0,
    OPDI_NUMBER(gelu, gelu)};
static const opdi_formula opdi_formula_gelu_tanh = {{opdi_f32_vgelu_tanh, opdi_f64_vgelu_tanh, NULL}, "GeluKernelImpl",
    0, OPDI_NUMBER(gelu_tanh, gelu_tanh)};
OPDI_INTERNAL const opdi_formula opdi_formula_gelu_backward = {{opdi_f32_vgelu_backward, opdi_f64_vgelu_backward, NULL},
    "GeluBackwardKernelImpl", 0, OPDI_NUMBER(gelu_backward, gelu_backward)};
OPDI_INTERNAL const opdi_formula opdi_formula_gelu_tanh_backward =
    {{opdi_f32_vgelu_tanh_backward, opdi_f64_vgelu_tanh_backward, NULL}, "GeluBackwardKernelImpl", 0,
    OPDI_NUMBER(gelu_tanh_backward, gelu_tanh_backward)};
/* Returns 0 for the text "none" and 1 for "tanh".  For other texts, returns -1 and sets an error. */
OPDI_INTERNAL int opdi_gelu_approximate(const char *text) {
    if (text && strcmp(text, "none") == 0) { return 0; }
    if (text && strcmp(text, "tanh") == 0) { return 1; }
    return opd_fail(OPD_ERROR_ARGUMENT, "approximate argument must be either none or tanh.");
}
static int opdi_gelu_kernel(opd_call *call) {
    int k = opdi_gelu_approximate(opd_arg_str(call, 1));
    return k < 0 ? -1 : opdi_unary(call, k ? &opdi_formula_gelu_tanh : &opdi_formula_gelu);
}
static int opdi_gelu_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_gelu_backward_full(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw,
        1).u.s));
}
/* opd_gelu: self * Phi(self), with the standard normal distribution Phi; approximate="tanh": Phi is approximated by a
   tanh */
OPDI_OP(gelu) {
    op->schema = "gelu(Tensor self, *, str approximate='none') -> Tensor";
    op->cpu = op->fake = opdi_gelu_kernel; op->backward = opdi_gelu_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "gelu_"; op->out = "gelu.out";
    op->cases = "[2,3]; [2,3], approximate='tanh'";
}

OPDI_FORMULA_F(leaky_relu, leaky_relu, 0)
static int opdi_leaky_relu_kernel(opd_call *call) {
    opdi_params params = opdi_params_of(call, 1, 1);
    return opdi_unary_params(call, &opdi_formula_leaky_relu, &params);
}
static int opdi_leaky_relu_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_leaky_relu_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1),
                                                        false));
}
/* opd_leaky_relu(self, negative_slope): self where self > 0, else negative_slope * self */
OPDI_OP(leaky_relu) {
    op->schema = "leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor";
    op->cpu = op->fake = opdi_leaky_relu_kernel; op->backward = opdi_leaky_relu_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "leaky_relu_"; op->out = "leaky_relu.out";
    op->cases = "[2,3]; [2,3], 0.2";
}

/* Returns the params of the formula of elu: (e^(x * input_scale) - 1) * alpha * scale for x <= 0, else x * scale. */
OPDI_INTERNAL opdi_params opdi_elu_params(opd_value alpha, opd_value scale, opd_value input_scale) {
    opdi_params params = opdi_no_params;
    opdi_params_set(&params, 0, alpha);           /* sets params.beyond or params.pairs if alpha does not fit */
    opdi_params_set_f64(&params, 0, opdi_number_f64(alpha) * opdi_number_f64(scale));
    opdi_params_set(&params, 1, scale);
    opdi_params_set(&params, 2, input_scale);
    return params;
}
OPDI_FORMULA_B(elu, elu, 0)
static int opdi_elu_kernel(opd_call *call) {
    opdi_params params = opdi_elu_params(opd_arg_value(call, 1), opd_arg_value(call, 2), opd_arg_value(call, 3));
    return opdi_unary_params(call, &opdi_formula_elu, &params);
}
static int opdi_elu_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_elu_backward(opd_bw_grad(bw, 0), opd_bw_value(bw, 1), opd_bw_value(bw, 2),
                                                 opd_bw_value(bw, 3), false, opd_bw_tensor(bw, 0)));
}
/* opd_elu: scale * self where self > 0, else scale * alpha * (e^(input_scale * self) - 1) */
OPDI_OP(elu) {
    op->schema = "elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor";
    op->cpu = op->fake = opdi_elu_kernel; op->backward = opdi_elu_backward; op->save = "self";
    op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "elu_"; op->out = "elu.out";
    op->cases = "[2,3]; [2,3], 2, 0.5, 1.5";
}

/* selu and celu are elu with other constants (at::native::selu, celu). */
static int opdi_selu_kernel(opd_call *call) {
    opdi_params params = opdi_elu_params(opd_value_double(1.6732632423543772848170429916717),
                                         opd_value_double(1.0507009873554804934193349852946),
                                         opd_value_int(1));
    return opdi_unary_params(call, &opdi_formula_elu, &params);
}
static int opdi_selu_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0,
                         opd_elu_backward(grad, opd_value_double(1.6732632423543772848170429916717),
                                          opd_value_double(1.0507009873554804934193349852946), opd_value_int(1), false,
                                          input));
}
/* opd_selu: elu with the constants that preserve mean 0 and variance 1 */
OPDI_OP(selu) {
    op->schema = "selu(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_selu_kernel; op->backward = opdi_selu_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "selu_";
    op->cases = "[2,3]";
}

static int opdi_celu_kernel(opd_call *call) {
    double alpha = opdi_number_f64(opd_arg_value(call, 1));
    if (alpha == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "ZeroDivisionError: alpha cannot be 0 for CELU"); }
    opdi_params params = opdi_elu_params(opd_value_double(alpha), opd_value_int(1), opd_value_double(1 / alpha));
    return opdi_unary_params(call, &opdi_formula_elu, &params);
}
static int opdi_celu_backward(opd_backward_call *bw) {
    double alpha = opdi_number_f64(opd_bw_value(bw, 1));
    return opd_bw_return(bw, 0, opd_elu_backward(opd_bw_grad(bw, 0), opd_value_double(alpha), opd_value_int(1),
                                                 opd_value_double(1 / alpha),
                                                 false, opd_bw_tensor(bw, 0)));
}
/* opd_celu: self where self > 0, else alpha * (e^(self / alpha) - 1) */
OPDI_OP(celu) {
    op->schema = "celu(Tensor self, Scalar alpha=1.) -> Tensor";
    op->cpu = op->fake = opdi_celu_kernel; op->backward = opdi_celu_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "celu_"; op->out = "celu.out";
    op->cases = "[2,3]; [2,3], 2";
}

static const opdi_formula opdi_formula_softplus = {{opdi_f32_vsoftplus, opdi_f64_vsoftplus, NULL}, "softplus_cpu", 0,
    OPDI_NUMBER(softplus, softplus)};
static int opdi_softplus_kernel(opd_call *call) {
    opdi_params params = opdi_params_of(call, 1, 2);
    return opdi_unary_params(call, &opdi_formula_softplus, &params);
}
static int opdi_softplus_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_softplus_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1),
                                                      opd_bw_value(bw, 2)));
}
/* opd_softplus: log(1 + e^(beta * self)) / beta, or self where beta * self > threshold */
OPDI_OP(softplus) {
    op->schema = "softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor";
    op->cpu = op->fake = opdi_softplus_kernel; op->backward = opdi_softplus_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "softplus.out";
    op->cases = "[2,3]; [2,3], 2, 0.5";
}

OPDI_FORMULA_A(threshold, threshold, OPDI_NOT_BOOL)
static int opdi_threshold_kernel(opd_call *call) {
    opdi_params params = opdi_params_of(call, 1, 2);
    opd_tensor *ops[3], *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (opdi_number_check(opd_arg_value(call, 1), dtype) || opdi_number_check(opd_arg_value(call, 2), dtype)) {
        return -1;
    }
    ops[1] = ops[2] = self;
    return opdi_pointwise(call, &opdi_formula_threshold, ops, 2, &params);
}
static int opdi_threshold_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_threshold_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1)));
}
/* opd_threshold: self where self > threshold, else value */
OPDI_OP(threshold) {
    op->schema = "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor";
    op->cpu = op->fake = opdi_threshold_kernel; op->backward = opdi_threshold_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "threshold_"; op->out = "threshold.out";
    op->cases = "[2,3], 0.1, 2";
}

OPDI_FORMULA_F(round_decimals, round_decimals, 0)
static int opdi_round_decimals_kernel(opd_call *call) {
    int64_t decimals = opd_arg_int(call, 1);
    opdi_params params = opdi_no_params;
    opdi_params_set_f64(&params, 0, opdi_pow_f64(10, decimals < 0 ? -(double)decimals : (double)decimals));
    opdi_params_set_f64(&params, 1, decimals < 0);
    return opdi_unary_params(call, &opdi_formula_round_decimals, &params);
}
/* opd_round_decimals: self rounded to this number of decimal digits; halves are rounded to even digits */
OPDI_OP(round_decimals) {
    op->schema = "round.decimals(Tensor self, *, int decimals) -> Tensor";
    op->cpu = op->fake = opdi_round_decimals_kernel; op->backward = opdi_zero_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "round_.decimals"; op->out = "round.decimals_out";
    op->cases = "[2,3], decimals=1; [2,3], decimals=-1";
}

OPDI_FORMULA_F(softshrink, softshrink, 0)
static int opdi_softshrink_kernel(opd_call *call) {
    opdi_params params = opdi_params_of(call, 1, 1);
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    if (!(params.f64[0] >= 0 && params.f64[0] <= opdi_float_top(dtype))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "lambda must be in range [0, %g] for input dtype %s, but found %g",
                        opdi_float_top(dtype), opd_dtype_name(dtype), params.f64[0]);
    }
    opdi_params_half(&params, 0, dtype);
    return opdi_unary_params(call, &opdi_formula_softshrink, &params);
}
static int opdi_softshrink_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_softshrink_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1)));
}
/* opd_softshrink: self moved towards 0 by lambd, but not beyond 0 */
OPDI_OP(softshrink) {
    op->schema = "softshrink(Tensor self, Scalar lambd=0.5) -> Tensor";
    op->cpu = op->fake = opdi_softshrink_kernel; op->backward = opdi_softshrink_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "softshrink.out";
    op->cases = "[2,3]; [2,3], 0.2";
}

OPDI_FORMULA_F(hardshrink, hardshrink, 0)
static int opdi_hardshrink_kernel(opd_call *call) {
    opdi_params params = opdi_params_of(call, 1, 1);
    opdi_params_half(&params, 0, (opd_scalar_type)opd_arg_tensor(call, 0)->dtype);
    return opdi_unary_params(call, &opdi_formula_hardshrink, &params);
}
static int opdi_hardshrink_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_hardshrink_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1)));
}
/* opd_hardshrink: self, but 0 where |self| <= lambd */
OPDI_OP(hardshrink) {
    op->schema = "hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor";
    op->cpu = op->fake = opdi_hardshrink_kernel; op->backward = opdi_hardshrink_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "hardshrink.out";
    op->cases = "[2,3]; [2,3], 0.2";
}

/* The pointwise formula for the gradients of softshrink and hardshrink: 0 where |self| <= lambd, else grad. */
OPDI_FORMULA_F(shrink_backward, shrink_backward, 0)
static int opdi_shrink_backward_kernel(opd_call *call) {
    opdi_params params = opdi_params_of(call, 2, 1);
    opd_tensor *ops[3];
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opd_arg_tensor(call, 1);
    opdi_params_half(&params, 0, (opd_scalar_type)ops[2]->dtype);
    return opdi_pointwise(call, &opdi_formula_shrink_backward, ops, 2, &params);
}
/* Computes the gradients of grad * f'(input), where f' is piecewise constant.  The gradient of grad is the incoming
   gradient times f'(input); the gradient of input is 0. */
static int opdi_softshrink_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_softshrink_backward(grad, input, opd_bw_value(bw, 2))) != 0) {
        return -1;
        }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_zeros_like(grad)) : 0;
}
/* opd_softshrink_backward: the gradient of softshrink */
OPDI_OP(softshrink_backward) {
    op->schema = "softshrink_backward(Tensor grad_output, Tensor self, Scalar lambd) -> Tensor";
    op->cpu = op->fake = opdi_shrink_backward_kernel; op->backward = opdi_softshrink_backward_backward;
    op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "softshrink_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3], 0.5";
}
/* opd_hardshrink_backward: the gradient of hardshrink */
OPDI_OP(hardshrink_backward) {
    op->schema = "hardshrink_backward(Tensor grad_out, Tensor self, Scalar lambd) -> Tensor";
    op->cpu = op->fake = opdi_shrink_backward_kernel; op->backward = opdi_softshrink_backward_backward;
    op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "hardshrink_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3], 0.5";
}

/* The pointwise formula of nan_to_num.  By default, NaN is replaced by 0, infinity and -infinity by the largest and the
   smallest number of the dtype. */
static const opdi_formula opdi_formula_nan_to_num =
    {{opdi_f32_nan_to_num, opdi_f64_nan_to_num, opdi_i64_floor}, "nan_to_num", 0, OPDI_NUMBER(nan_to_num, floor)};
static double opdi_dtype_max(int32_t t) {
    return t == OPD_FLOAT16 ? 65504.0 : t == OPD_BFLOAT16 ? 3.38953138925153547590e38
        : t == OPD_FLOAT32 ? (double)FLT_MAX : DBL_MAX;
}
static int opdi_nan_to_num_kernel(opd_call *call) {
    if (opdi_is_complex(opd_arg_tensor(call, 0))) { return opdi_by_parts(call); }
    const double top = opdi_dtype_max(opd_arg_tensor(call, 0)->dtype);
    opdi_params params = opdi_no_params;
    opdi_params_set_f64(&params, 0, opd_arg_is_none(call, 1) ? 0 : opd_arg_double(call, 1));
    opdi_params_set_f64(&params, 1, opd_arg_is_none(call, 2) ? top : opd_arg_double(call, 2));
    opdi_params_set_f64(&params, 2, opd_arg_is_none(call, 3) ? -top : opd_arg_double(call, 3));
    return opdi_unary_params(call, &opdi_formula_nan_to_num, &params);
}
static int opdi_nan_to_num_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opdi_where(opd_isfinite(input), grad));
}
/* opd_nan_to_num: self with NaN, infinity and -infinity replaced by nan, posinf and neginf */
OPDI_OP(nan_to_num) {
    op->schema = "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor";
    op->cpu = op->fake = opdi_nan_to_num_kernel; op->backward = opdi_nan_to_num_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "nan_to_num_"; op->out = "nan_to_num.out";
    op->cases = "[2,3]; [2,3], 1., 2., 3.";
}

/* The pointwise formula of deg2rad and rad2deg: a product with a constant. */
static const opdi_formula opdi_formula_degrees = {{opdi_f32_mul, opdi_f64_mul, NULL}, "mul",
    OPDI_TO_FLOAT | OPDI_NUMBER_KEPT, OPDI_NUMBER(mul, mul)};
static int opdi_unary_times(opd_call *call, double k) {
    opd_tensor *ops[3];
    opdi_number number;
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opdi_number_make(&number, opd_value_double(k));
    if (opdi_is_complex(ops[1])) {
        return opd_fail(OPD_ERROR_DTYPE, "%s is not supported for complex tensors.", call->op->schema->name);
    }
    return opdi_pointwise(call, &opdi_formula_degrees, ops, 2, &opdi_no_params);
}
static int opdi_deg2rad_kernel(opd_call *call) { return opdi_unary_times(call, 3.14159265358979323846 / 180.0); }
static int opdi_deg2rad_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opdi_muls(grad, 3.14159265358979323846 / 180.0));
}
/* opd_deg2rad: converts degrees to radians */
OPDI_OP(deg2rad) {
    op->schema = "deg2rad(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_deg2rad_kernel; op->backward = opdi_deg2rad_backward;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "deg2rad_"; op->out = "deg2rad.out";
    op->cases = "[2,3]";
}

static int opdi_rad2deg_kernel(opd_call *call) { return opdi_unary_times(call, 180.0 / 3.14159265358979323846); }
static int opdi_rad2deg_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opdi_muls(grad, 180.0 / 3.14159265358979323846));
}
/* opd_rad2deg: converts radians to degrees */
OPDI_OP(rad2deg) {
    op->schema = "rad2deg(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_rad2deg_kernel; op->backward = opdi_rad2deg_backward;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "rad2deg_"; op->out = "rad2deg.out";
    op->cases = "[2,3]";
}

OPDI_COLD_END
/* Computes logit: log(p / (1 - p)), where p is the input limited to [params->f64[0], params->f64[1]]. */
static void opdi_f64_vlogit(void *const *data, int64_t count, const opdi_params *params) {
    const double low = params->f64[0], high = params->f64[1], *x = (const double *)data[1];
    double ratio[256];
    for (int64_t from = 0, rows; from < count; from += rows) {
        rows = OPDI_MIN(count - from, (int64_t)256);
        for (int64_t i = 0; i < rows; i++) {
            const double p = x[from + i] < low ? low : x[from + i] > high ? high : x[from + i];
            ratio[i] = p / (1 - p);
        }
        opdi_vlog64(rows, (double *)data[0] + from, ratio);
    }
}
OPDI_LOOPS_BEGIN
/* Replaces 256 numbers x, limited to [low, high], by their odds x / (1 - x). */
OPDI_ALWAYS void opdi_odds_body(float low, float high, float *x) {
    OPDI_IVDEP
    for (int i = 0; i < 256; i++) {
        const float p = opdi_select_f32(x[i] < low, low, opdi_select_f32(x[i] > high, high, x[i]));
        x[i] = p / (1 - p);
    }
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_odds_avx2(float low, float high, float *x) { opdi_odds_body(low, high, x); }
#endif
static void opdi_odds_plain(float low, float high, float *x) { opdi_odds_body(low, high, x); }
static void opdi_f32_vlogit(void *const *data, int64_t count, const opdi_params *params) {
    void (*odds)(float, float, float *) = opdi_odds_plain;
    float x[256] = {0};
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { odds = opdi_odds_avx2; }
#endif
    for (int64_t from = 0, rows; from < count; from += rows) {
        rows = OPDI_MIN(count - from, (int64_t)256);
        memcpy(x, (const float *)data[1] + from, (size_t)rows * sizeof *x);
        odds((float)params->f64[0], (float)params->f64[1], x);
        opdi_vlog(rows, (float *)data[0] + from, x);
    }
}
OPDI_LOOPS_END
OPDI_COLD_BEGIN
static const opdi_formula opdi_formula_logit = {{opdi_f32_vlogit, opdi_f64_vlogit, NULL}, "logit_cpu", OPDI_TO_FLOAT,
    OPDI_NUMBER(logit, logit)};
/* Returns logit of 16-bit floats.  Each step is rounded to 16 bits, as in PyTorch's CPU kernel.  If eps is not NULL, x
   is first limited to [*eps, 1 - *eps]. */
static opd_tensor *opdi_logit_of_halves(opd_tensor *x, const double *eps) {
    if (eps) {
        opd_tensor *low = opd_full(opd_ints_of(NULL, 0), opd_value_double(*eps), (opd_scalar_type)x->dtype);
        x = opd_clamp_Tensor_full(x, low, opd_rsub_Scalar(low, opd_value_int(1)));
    }
    return opd_log(opd_div(x, opd_rsub_Scalar(x, opd_value_int(1))));
}
static int opdi_logit_kernel(opd_call *call) {
    opdi_params params = opdi_no_params;
    opd_tensor *self = opd_arg_tensor(call, 0);
    bool none = opd_arg_is_none(call, 1);
    const double eps = none ? 0 : opd_arg_double(call, 1);
    if (opdi_is_half((opd_scalar_type)self->dtype) && self->backend == OPD_CPU) {
        return opd_return_tensor(call, opdi_logit_of_halves(self, none || eps < 0 ? NULL : &eps));
    }
    opdi_params_set_f64(&params, 0, none ? -INFINITY : opd_arg_double(call, 1));
    opdi_params_set_f64(&params, 1, none ? INFINITY : 1 - opd_arg_double(call, 1));
    return opdi_unary_params(call, &opdi_formula_logit, &params);
}
static int opdi_logit_backward(opd_backward_call *bw) {
    opd_value eps = opd_bw_value(bw, 1);
    return opd_bw_return(bw, 0, opd_logit_backward_full(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), eps));
}
/* opd_logit: log(self / (1 - self)), with self limited to [eps, 1 - eps] if eps is given */
OPDI_OP(logit) {
    op->schema = "logit(Tensor self, float? eps=None) -> Tensor";
    op->cpu = op->fake = opdi_logit_kernel; op->backward = opdi_logit_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "logit_"; op->out = "logit.out";
    op->cases = "[2,3]u, 0.1";
}

OPDI_FORMULA_D(logit_backward, logit_backward, 0)
static int opdi_logit_backward_kernel(opd_call *call) {
    opdi_params params = opdi_no_params;
    bool none = opd_arg_is_none(call, 2);
    double eps = none ? 0 : opd_arg_double(call, 2);
    opd_tensor *ops[3];
    opdi_params_set_f64(&params, 0, eps < 0 ? 0 : eps);
    opdi_params_set_f64(&params, 1, eps < 0 ? 1 : 1 - eps);
    opdi_params_set_f64(&params, 2, none || eps < 0 ? NAN : 0);
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opd_arg_tensor(call, 1);
    return opdi_pointwise(call, &opdi_formula_logit_backward, ops, 2, &params);
}
static int opdi_logit_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    opd_value eps = opd_bw_value(bw, 2);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_logit_backward_full(grad, input, eps)) != 0) { return -1; }
    if (!opd_bw_needs(bw, 1)) { return 0; }
    /* the derivative of 1 / (x * (1 - x)) is (2 * x - 1) / (x * (1 - x))^2 */
    grad_out = opd_mul(grad_out, opdi_adds(opdi_muls(input, 2), -1));
    grad_out = opd_logit_backward_full(opd_logit_backward_full(grad_out, input, eps), input, eps);
    return opd_bw_return(bw, 1, opd_mul(grad, grad_out));
}
/* opd_logit_backward: the gradient of logit */
OPDI_OP(logit_backward) {
    op->schema = "logit_backward(Tensor grad_output, Tensor self, float? eps=None) -> Tensor";
    op->cpu = op->fake = opdi_logit_backward_kernel; op->backward = opdi_logit_backward_backward;
    op->save = "grad_output(self), self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "logit_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3]u, 0.1";
}
OPDI_COLD_END
