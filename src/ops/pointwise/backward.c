#include "../ops.h"

//== operators that compute gradients of pointwise operators ===========================================================

/* Runs a pointwise formula of arguments 0 and 1, grad and self.  The numbers of the formula are the `count` arguments
   from number `first` on.  Returns 0, or -1 and sets an error. */
static int opdi_binary_params(opd_call *call, const opdi_formula *formula, int first, int count) {
    opd_tensor *ops[3];
    opdi_params params = opdi_params_of(call, first, count);
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opd_arg_tensor(call, 1);
    return opdi_pointwise(call, formula, ops, 2, &params);
}
/* Runs a pointwise formula of self and grad, in this order, and of the number in argument 2.  PyTorch passes the
   operands to its iterator in this order, which decides the strides of the result.  Returns 0, or -1 and sets an
   error. */
static int opdi_binary_swapped(opd_call *call, const opdi_formula *formula) {
    opd_tensor *ops[3];
    opdi_params params = opdi_params_of(call, 2, 1);
    ops[1] = opd_arg_tensor(call, 1);
    ops[2] = opd_arg_tensor(call, 0);
    return opdi_pointwise(call, formula, ops, 2, &params);
}
#define OPDI_CASES_PAIR "[2,3], [2,3]"

OPDI_FORMULA_F(tanh_backward, tanh_backward, 0)
static int opdi_tanh_backward_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_tanh_backward); }
static int opdi_tanh_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_tanh_backward(grad, opdi_conj(other)));
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const conjugate = opdi_conj(grad);
        OPDI_BW_RETURN(1, opd_mul(conjugate, opd_mul(opdi_muls(opdi_conj(other), -2), grad_out)));
    }
    return 0;
}
/* opd_tanh_backward: the gradient of tanh, computed from its output */
OPDI_OP(tanh_backward) {
    op->schema = "tanh_backward(Tensor grad_output, Tensor output) -> Tensor";
    op->cpu = op->fake = opdi_tanh_backward_kernel; op->backward = opdi_tanh_backward_backward;
    op->save = "grad_output(output), output";
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_FORMULA;
    op->out = "tanh_backward.grad_input(grad_input)";
    op->cases = OPDI_CASES_PAIR;
}

OPDI_FORMULA_F(sigmoid_backward, sigmoid_backward, 0)
static int opdi_sigmoid_backward_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_sigmoid_backward); }
static int opdi_sigmoid_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_sigmoid_backward(grad, opdi_conj(other)));
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const product = opd_mul(opdi_conj(grad), grad_out);
        OPDI_BW_RETURN(1, opd_mul(product, opdi_adds(opdi_muls(opdi_conj(other), -2), 1)));
    }
    return 0;
}
/* opd_sigmoid_backward: the gradient of sigmoid, computed from its output */
OPDI_OP(sigmoid_backward) {
    op->schema = "sigmoid_backward(Tensor grad_output, Tensor output) -> Tensor";
    op->cpu = op->fake = opdi_sigmoid_backward_kernel; op->backward = opdi_sigmoid_backward_backward;
    op->save = "grad_output(output), output";
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_FORMULA;
    op->out = "sigmoid_backward.grad_input(grad_input)";
    op->cases = OPDI_CASES_PAIR;
}

static const opdi_formula opdi_formula_threshold_backward =
    {{opdi_f32_threshold, opdi_f64_threshold, opdi_i64_threshold}, "threshold_cpu", OPDI_NOT_BOOL,
    OPDI_NUMBER(threshold, threshold)};
static int opdi_threshold_backward_kernel(opd_call *call) {
    return opdi_binary_swapped(call, &opdi_formula_threshold_backward);
}
static int opdi_threshold_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_threshold_backward(grad, opd_bw_tensor(bw, 1), opd_bw_value(bw, 2)));
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
/* opd_threshold_backward: the gradient of threshold and relu */
OPDI_OP(threshold_backward) {
    op->schema = "threshold_backward(Tensor grad_output, Tensor self, Scalar threshold) -> Tensor";
    op->cpu = op->fake = opdi_threshold_backward_kernel; op->backward = opdi_threshold_backward_backward;
    op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "threshold_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3], 0.1";
}

OPDI_FORMULA_A(hardtanh_backward, hardtanh_backward, OPDI_NOT_BOOL)
static int opdi_hardtanh_backward_kernel(opd_call *call) {
    return opdi_binary_params(call, &opdi_formula_hardtanh_backward, 2, 2);
}
static int opdi_hardtanh_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_hardtanh_backward(grad, opd_bw_tensor(bw, 1), opd_bw_value(bw, 2), opd_bw_value(bw, 3)));
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
/* opd_hardtanh_backward: the gradient of hardtanh */
OPDI_OP(hardtanh_backward) {
    op->schema = "hardtanh_backward(Tensor grad_output, Tensor self, Scalar min_val, Scalar max_val) -> Tensor";
    op->cpu = op->fake = opdi_hardtanh_backward_kernel; op->backward = opdi_hardtanh_backward_backward;
    op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "hardtanh_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3], -0.5, 0.5";
}

OPDI_FORMULA_F(leaky_relu_backward, leaky_relu_backward, 0)
static int opdi_leaky_relu_backward_kernel(opd_call *call) {
    if (opd_arg_bool(call, 3) && opdi_number_f64(opd_arg_value(call, 2)) < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "In-place leakyReLu backward calculation is triggered with a negative "
                        "slope which is not supported. This is caused by calling in-place forward function with a "
                        "negative slope, please call out-of-place version instead.");
    }
    return opdi_binary_swapped(call, &opdi_formula_leaky_relu_backward);
}
static int opdi_leaky_relu_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_leaky_relu_backward(grad, opd_bw_tensor(bw, 1), opd_bw_value(bw, 2), false));
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
/* opd_leaky_relu_backward: the gradient of leaky_relu */
OPDI_OP(leaky_relu_backward) {
    op->schema = "leaky_relu_backward(Tensor grad_output, Tensor self, Scalar negative_slope, bool self_is_result) -> "
        "Tensor";
    op->cpu = op->fake = opdi_leaky_relu_backward_kernel; op->backward = opdi_leaky_relu_backward_backward;
    op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "leaky_relu_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3], 0.2, False";
}

OPDI_FORMULA_F(hardsigmoid_backward, hardsigmoid_backward, 0)
static int opdi_hardsigmoid_backward_kernel(opd_call *call) {
    return opdi_binary(call, &opdi_formula_hardsigmoid_backward);
}
static int opdi_hardsigmoid_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_hardsigmoid_backward(grad, opd_bw_tensor(bw, 1)));
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
/* opd_hardsigmoid_backward: the gradient of hardsigmoid */
OPDI_OP(hardsigmoid_backward) {
    op->schema = "hardsigmoid_backward(Tensor grad_output, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_hardsigmoid_backward_kernel; op->backward = opdi_hardsigmoid_backward_backward;
    op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "hardsigmoid_backward.grad_input(grad_input)";
    op->cases = OPDI_CASES_PAIR;
}

OPDI_FORMULA_F(hardswish_backward, hardswish_backward, 0)
static int opdi_hardswish_backward_kernel(opd_call *call) {
    return opdi_binary(call, &opdi_formula_hardswish_backward);
}
static int opdi_hardswish_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_hardswish_backward(grad, input));
    OPDI_BW_RETURN(1,
                   opdi_where(opd_logical_and(opd_gt_Scalar(input, opd_value_int(-3)),
                                              opd_lt_Scalar(input, opd_value_int(3))),
                              opdi_muls(opd_mul(grad, grad_out), 1.0 / 3.0)));
    return 0;
}
/* opd_hardswish_backward: the gradient of hardswish */
OPDI_OP(hardswish_backward) {
    op->schema = "hardswish_backward(Tensor grad_output, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_hardswish_backward_kernel; op->backward = opdi_hardswish_backward_backward;
    op->save = "grad_output(self), self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "hardswish_backward.out";
    op->cases = OPDI_CASES_PAIR;
}

OPDI_FORMULA_B(softplus_backward, softplus_backward, 0)
static int opdi_softplus_backward_kernel(opd_call *call) {
    return opdi_binary_params(call, &opdi_formula_softplus_backward, 2, 2);
}
/* Computes the gradients of softplus_backward.  With s = sigmoid(beta * input), the second derivative of softplus with
   respect to input is beta * s * (1 - s), and 0 where beta * input exceeds the threshold. */
static int opdi_softplus_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    const opd_value beta = opd_bw_value(bw, 2), limit = opd_bw_value(bw, 3);
    OPDI_BW_RETURN(0, opd_softplus_backward(grad, input, beta, limit));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *bx = opdi_scale(input, beta);
    opd_tensor *gate = opd_sigmoid(bx);
    opd_tensor *delta = opdi_scale(opd_sigmoid_backward(opd_mul(grad, grad_out), gate), beta);
    return opd_bw_return(bw, 1, opdi_unless(delta, opd_gt_Scalar(bx, limit)));
}
/* opd_softplus_backward: the gradient of softplus */
OPDI_OP(softplus_backward) {
    op->schema = "softplus_backward(Tensor grad_output, Tensor self, Scalar beta, Scalar threshold) -> Tensor";
    op->cpu = op->fake = opdi_softplus_backward_kernel; op->backward = opdi_softplus_backward_backward;
    op->save = "grad_output(self), self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "softplus_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3], 1.5, 20";
}

static const opdi_formula opdi_formula_silu_backward = {{opdi_f32_vsilu_backward, opdi_f64_vsilu_backward, NULL},
    "silu_backward_cpu", 0, OPDI_NUMBER(silu_backward, silu_backward)};
static int opdi_silu_backward_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_silu_backward); }
/* Computes the gradients of silu_backward.  With s = sigmoid(input), the second derivative of silu is s * (1 - s) * (2
   + input * (1 - 2 * s)). */
static int opdi_silu_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_silu_backward(grad, input));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *gate = opd_sigmoid(input);
    opd_tensor *delta = opdi_adds(opd_mul(input, opdi_adds(opdi_muls(gate, -2), 1)), 2);
    opd_tensor *const product = opd_mul(grad, grad_out);
    return opd_bw_return(bw, 1, opd_mul(opd_mul(product, opd_mul(gate, opdi_rsubs(1, gate))), delta));
}
/* opd_silu_backward: the gradient of silu */
OPDI_OP(silu_backward) {
    op->schema = "silu_backward(Tensor grad_output, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_silu_backward_kernel; op->backward = opdi_silu_backward_backward;
    op->save = "grad_output(self), self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "silu_backward.grad_input(grad_input)";
    op->cases = OPDI_CASES_PAIR;
}

OPDI_FORMULA_B(mish_backward, mish_backward, 0)
static int opdi_mish_backward_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_mish_backward); }
/* Computes the gradients of mish_backward.  With t = tanh(softplus(input)) and s = sigmoid(input), the second
   derivative of mish is (1 - t^2) * s * (2 + input * (1 - s - 2 * t * s)). */
static int opdi_mish_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_mish_backward(grad, input));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *gate = opd_sigmoid(input);
    opd_tensor *tensor = opd_tanh(opd_softplus(input));
    opd_tensor *const rest = opdi_rsubs(1, gate),
        *delta = opd_mul(input, opd_sub(rest, opdi_muls(opd_mul(tensor, gate), 2)));
    opd_tensor *const product = opd_mul(opdi_rsubs(1, opd_square(tensor)), gate);
    delta = opd_mul(product, opdi_adds(delta, 2));
    return opd_bw_return(bw, 1, opd_mul(opd_mul(grad, grad_out), delta));
}
/* opd_mish_backward: the gradient of mish */
OPDI_OP(mish_backward) {
    op->schema = "mish_backward(Tensor grad_output, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_mish_backward_kernel; op->backward = opdi_mish_backward_backward;
    op->save = "grad_output(self), self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->cases = OPDI_CASES_PAIR;
}

static int opdi_gelu_backward_kernel(opd_call *call) {
    int k = opdi_gelu_approximate(opd_arg_str(call, 2));
    return k < 0 ? -1 : opdi_binary(call, k ? &opdi_formula_gelu_tanh_backward : &opdi_formula_gelu_backward);
}
/* Returns the second derivative of gelu at x, the input: phi(x) * (2 - x^2), where phi is the density of the normal
   distribution.  If tanh_form is true, gelu is the approximation by tanh; with u = k * (x + c * x^3) and t = tanh(u),
   its second derivative is (1 - t^2) * (u' + x * u'' / 2 - x * t * u'^2). */
static opd_tensor *opdi_gelu_second(opd_tensor *input, bool tanh_form) {
    opd_tensor *x2 = opd_square(input);
    if (!tanh_form) {
        opd_tensor *const scaled = opdi_muls(opd_exp(opdi_muls(x2, -0.5)), 0.39894228040143267794);
        return opd_mul(scaled, opdi_rsubs(2, x2));
    }
    opd_tensor *const first_scaled = opdi_muls(input, 0.79788456080286535588),
        *tensor = opd_tanh(opd_mul(first_scaled, opdi_adds(opdi_muls(x2, 0.044715), 1)));
    opd_tensor *du = opdi_muls(opdi_adds(opdi_muls(x2, 0.134145), 1), 0.79788456080286535588);
    opd_tensor *ddu = opdi_muls(x2, 0.5 * 0.26829 * 0.79788456080286535588);
    opd_tensor *const sum = opd_add(du, ddu), *const product = opd_mul(input, tensor),
        *delta = opd_sub(sum, opd_mul(product, opd_square(du)));
    return opd_mul(opdi_rsubs(1, opd_square(tensor)), delta);
}
static int opdi_gelu_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1);
    const char *approximate = opd_bw_value(bw, 2).u.s;
    OPDI_BW_RETURN(0, opd_gelu_backward_full(grad, input, approximate));
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const product = opd_mul(grad, grad_out);
        OPDI_BW_RETURN(1, opd_mul(product, opdi_gelu_second(input, strcmp(approximate, "tanh") == 0)));
    }
    return 0;
}
/* opd_gelu_backward: the gradient of gelu */
OPDI_OP(gelu_backward) {
    op->schema = "gelu_backward(Tensor grad_output, Tensor self, *, str approximate='none') -> Tensor";
    op->cpu = op->fake = opdi_gelu_backward_kernel; op->backward = opdi_gelu_backward_backward;
    op->save = "grad_output(self), self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "gelu_backward.grad_input(grad_input)";
    op->cases = "[2,3], [2,3]; [2,3], [2,3], approximate='tanh'";
}

OPDI_FORMULA_B(elu_backward, elu_backward, 0)
OPDI_FORMULA_F(elu_backward_result, elu_backward_result, 0)
static int opdi_elu_backward_kernel(opd_call *call) {
    opd_tensor *ops[3];
    opdi_params params = opdi_elu_params(opd_arg_value(call, 1), opd_arg_value(call, 2), opd_arg_value(call, 3));
    bool result = opd_arg_bool(call, 4);
    if (result && opdi_number_f64(opd_arg_value(call, 1)) < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "In-place elu backward calculation is triggered with a negative slope "
                        "which is not supported. This is caused by calling in-place forward function with a negative "
                        "slope, please call out-of-place version instead.");
    }
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opd_arg_tensor(call, 5);
    return opdi_pointwise(call, result ? &opdi_formula_elu_backward_result : &opdi_formula_elu_backward, ops, 2,
                          &params);
}
/* Computes the gradients of elu_backward.  For input < 0, the second derivative of elu is alpha * scale * input_scale^2
   * e^(input * input_scale).  If is_result is true, elu_backward was computed from the result of elu, which is argument
   5; the derivative with respect to this result is input_scale where the result is negative.  Elsewhere, the
   derivatives are 0. */
static int opdi_elu_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 5);
    const opd_value alpha = opd_bw_value(bw, 1), scale = opd_bw_value(bw, 2), input_scale = opd_bw_value(bw, 3);
    const bool result = opd_bw_value(bw, 4).u.i != 0;
    OPDI_BW_RETURN(0, opd_elu_backward(grad, alpha, scale, input_scale, result, input));
    if (!opd_bw_needs(bw, 5)) { return 0; }
    opd_tensor *delta = opdi_scale(opd_mul(grad, grad_out), input_scale);
    if (!result) {
        delta = opdi_scale(opdi_scale(opdi_scale(delta, input_scale), alpha), scale);
        delta = opd_mul(delta, opd_exp(opdi_scale(input, input_scale)));
    }
    return opd_bw_return(bw, 5, opdi_unless(delta, opd_ge_Scalar(input, opd_value_int(0))));
}
/* opd_elu_backward: the gradient of elu */
OPDI_OP(elu_backward) {
    op->schema = "elu_backward(Tensor grad_output, Scalar alpha, Scalar scale, Scalar input_scale, bool is_result, "
        "Tensor self_or_result) -> Tensor";
    op->cpu = op->fake = opdi_elu_backward_kernel; op->backward = opdi_elu_backward_backward;
    op->save = "grad_output(self_or_result), self_or_result";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "elu_backward.grad_input(grad_input)";
    op->cases = "[2,3], 1, 1, 1, False, [2,3]; [2,3], 2, 0.5, 1.5, False, [2,3]";
}
