#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:unary     pointwise operators of one tensor
//----------------------------------------------------------------------------------------------------------------------

//== operator descriptors with their kernels and backward functions ====================================================

OPDI_FORMULA_F(exp, exp, OPDI_TO_FLOAT)
static int opdi_exp_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_exp); }
static int opdi_exp_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, result));
}
/* opd_exp: e^self */
OPDI_OP(exp) {
    op->schema = "exp(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_exp_kernel; op->backward = opdi_exp_backward; op->save = "result";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "exp_"; op->out = "exp.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(exp2, exp2, OPDI_TO_FLOAT)
static int opdi_exp2_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_exp2); }
static int opdi_exp2_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opdi_muls(opd_mul(grad, result), 0.69314718055994530942));
}
/* opd_exp2: 2^self */
OPDI_OP(exp2) {
    op->schema = "exp2(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_exp2_kernel; op->backward = opdi_exp2_backward; op->save = "result";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "exp2_"; op->out = "exp2.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(expm1, expm1, OPDI_TO_FLOAT)
static int opdi_expm1_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_expm1); }
static int opdi_expm1_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_adds(result, 1)));
}
/* opd_expm1: e^self - 1, accurate near 0 */
OPDI_OP(expm1) {
    op->schema = "expm1(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_expm1_kernel; op->backward = opdi_expm1_backward; op->save = "result";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "expm1_"; op->out = "expm1.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(log, log, OPDI_TO_FLOAT)
static int opdi_log_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_log); }
static int opdi_log_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, input));
}
/* opd_log: the natural logarithm */
OPDI_OP(log) {
    op->schema = "log(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_log_kernel; op->backward = opdi_log_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "log_"; op->out = "log.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_F(log2, log2, OPDI_TO_FLOAT)
static int opdi_log2_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_log2); }
static int opdi_log2_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, opdi_muls(input, 0.69314718055994530942)));
}
/* opd_log2: the logarithm to base 2 */
OPDI_OP(log2) {
    op->schema = "log2(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_log2_kernel; op->backward = opdi_log2_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "log2_"; op->out = "log2.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_F(log10, log10, OPDI_TO_FLOAT)
static int opdi_log10_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_log10); }
static int opdi_log10_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, opdi_muls(input, 2.30258509299404568402)));
}
/* opd_log10: the logarithm to base 10 */
OPDI_OP(log10) {
    op->schema = "log10(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_log10_kernel; op->backward = opdi_log10_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "log10_"; op->out = "log10.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_F(log1p, log1p, OPDI_TO_FLOAT)
static int opdi_log1p_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_log1p); }
static int opdi_log1p_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, opdi_adds(input, 1)));
}
/* opd_log1p: log(1 + self), accurate near 0 */
OPDI_OP(log1p) {
    op->schema = "log1p(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_log1p_kernel; op->backward = opdi_log1p_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "log1p_"; op->out = "log1p.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_F(sqrt, sqrt, OPDI_TO_FLOAT)
static int opdi_sqrt_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_sqrt); }
static int opdi_sqrt_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, opdi_muls(result, 2)));
}
/* opd_sqrt: the square root */
OPDI_OP(sqrt) {
    op->schema = "sqrt(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sqrt_kernel; op->backward = opdi_sqrt_backward; op->save = "result";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "sqrt_"; op->out = "sqrt.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_F(rsqrt, rsqrt, OPDI_TO_FLOAT)
static int opdi_rsqrt_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_rsqrt); }
static int opdi_rsqrt_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *const scaled = opdi_muls(grad, -0.5);
    return opd_bw_return(bw, 0, opd_mul(scaled, opd_mul(result, opd_square(result))));
}
/* opd_rsqrt: 1 / sqrt(self) */
OPDI_OP(rsqrt) {
    op->schema = "rsqrt(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_rsqrt_kernel; op->backward = opdi_rsqrt_backward; op->save = "result";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "rsqrt_"; op->out = "rsqrt.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_F(reciprocal, reciprocal, OPDI_TO_FLOAT)
static int opdi_reciprocal_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_reciprocal); }
static int opdi_reciprocal_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    opd_tensor *const minus = opd_neg(grad);
    return opd_bw_return(bw, 0, opd_mul(minus, opd_mul(result, result)));
}
/* opd_reciprocal: 1 / self */
OPDI_OP(reciprocal) {
    op->schema = "reciprocal(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_reciprocal_kernel; op->backward = opdi_reciprocal_backward; op->save = "result";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "reciprocal_"; op->out = "reciprocal.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_A(square, square, OPDI_BOOL_TO_INT)
static int opdi_square_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_square); }
static int opdi_square_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_muls(input, 2)));
}
/* opd_square: self * self */
OPDI_OP(square) {
    op->schema = "square(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_square_kernel; op->backward = opdi_square_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "square_"; op->out = "square.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(sin, sin, OPDI_TO_FLOAT)
static int opdi_sin_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_sin); }
static int opdi_sin_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_cos(input)));
}
/* opd_sin: sine */
OPDI_OP(sin) {
    op->schema = "sin(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sin_kernel; op->backward = opdi_sin_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "sin_"; op->out = "sin.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(cos, cos, OPDI_TO_FLOAT)
static int opdi_cos_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_cos); }
static int opdi_cos_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_neg(opd_sin(input))));
}
/* opd_cos: cosine */
OPDI_OP(cos) {
    op->schema = "cos(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_cos_kernel; op->backward = opdi_cos_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "cos_"; op->out = "cos.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(tan, tan, OPDI_TO_FLOAT)
static int opdi_tan_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_tan); }
static int opdi_tan_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_adds(opd_square(result), 1)));
}
/* opd_tan: tangent */
OPDI_OP(tan) {
    op->schema = "tan(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_tan_kernel; op->backward = opdi_tan_backward; op->save = "result";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "tan_"; op->out = "tan.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_B(asin, asin, OPDI_TO_FLOAT)
static int opdi_asin_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_asin); }
static int opdi_asin_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_rsqrt(opdi_rsubs(1, opd_square(input)))));
}
/* opd_asin: arc sine */
OPDI_OP(asin) {
    op->schema = "asin(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_asin_kernel; op->backward = opdi_asin_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "asin_"; op->out = "asin.out";
    op->cases = "[2,3]u";
}

OPDI_FORMULA_B(acos, acos, OPDI_TO_FLOAT)
static int opdi_acos_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_acos); }
static int opdi_acos_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_neg(opd_rsqrt(opdi_rsubs(1, opd_square(input))))));
}
/* opd_acos: arc cosine */
OPDI_OP(acos) {
    op->schema = "acos(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_acos_kernel; op->backward = opdi_acos_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "acos_"; op->out = "acos.out";
    op->cases = "[2,3]u";
}

static const opdi_formula opdi_formula_atan = {{opdi_f32_atan, opdi_f64_vatan, NULL}, "atan_cpu", OPDI_TO_FLOAT,
    OPDI_NUMBER(atan, atan)};
static int opdi_atan_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_atan); }
static int opdi_atan_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, opdi_adds(opd_square(input), 1)));
}
/* opd_atan: arc tangent */
OPDI_OP(atan) {
    op->schema = "atan(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_atan_kernel; op->backward = opdi_atan_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "atan_"; op->out = "atan.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_B(sinh, sinh, OPDI_TO_FLOAT)
static int opdi_sinh_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_sinh); }
static int opdi_sinh_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_cosh(input)));
}
/* opd_sinh: hyperbolic sine */
OPDI_OP(sinh) {
    op->schema = "sinh(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sinh_kernel; op->backward = opdi_sinh_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "sinh_"; op->out = "sinh.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_DV(cosh, cosh, OPDI_TO_FLOAT)
static int opdi_cosh_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_cosh); }
static int opdi_cosh_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_sinh(input)));
}
/* opd_cosh: hyperbolic cosine */
OPDI_OP(cosh) {
    op->schema = "cosh(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_cosh_kernel; op->backward = opdi_cosh_backward; op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "cosh_"; op->out = "cosh.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_B(asinh, asinh, OPDI_TO_FLOAT)
static int opdi_asinh_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_asinh); }
static int opdi_asinh_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_rsqrt(opdi_adds(opd_square(input), 1))));
}
/* opd_asinh: the inverse of sinh */
OPDI_OP(asinh) {
    op->schema = "asinh(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_asinh_kernel; op->backward = opdi_asinh_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "asinh_"; op->out = "asinh.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_DV(acosh, acosh, OPDI_TO_FLOAT)
static int opdi_acosh_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_acosh); }
static int opdi_acosh_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    if (input && opdi_is_complex(input)) {        /* if Re(input) < 0, the square root of the product would have the
                                                     wrong sign */
        opd_tensor *const root = opd_rsqrt(opdi_adds(input, -1)),
            *const roots = opd_mul(root, opd_rsqrt(opdi_adds(input, 1)));
        return opd_bw_return(bw, 0, opd_mul(grad, roots));
    }
    return opd_bw_return(bw, 0, opd_mul(grad, opd_rsqrt(opdi_adds(opd_square(input), -1))));
}
/* opd_acosh: the inverse of cosh */
OPDI_OP(acosh) {
    op->schema = "acosh(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_acosh_kernel; op->backward = opdi_acosh_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "acosh_"; op->out = "acosh.out";
    op->cases = "[2,3]+";
}

OPDI_FORMULA_DV(atanh, atanh, OPDI_TO_FLOAT)
static int opdi_atanh_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_atanh); }
static int opdi_atanh_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_div(grad, opdi_rsubs(1, opd_square(input))));
}
/* opd_atanh: the inverse of tanh */
OPDI_OP(atanh) {
    op->schema = "atanh(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_atanh_kernel; op->backward = opdi_atanh_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "atanh_"; op->out = "atanh.out";
    op->cases = "[2,3]u";
}

OPDI_FORMULA_F(tanh, tanh, OPDI_TO_FLOAT)
static int opdi_tanh_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_tanh); }
static int opdi_tanh_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_tanh_backward(grad, result));
}
/* opd_tanh: hyperbolic tangent */
OPDI_OP(tanh) {
    op->schema = "tanh(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_tanh_kernel; op->backward = opdi_tanh_backward; op->save = "result";
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "tanh_"; op->out = "tanh.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(erf, erf, OPDI_TO_FLOAT)
static int opdi_erf_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_erf); }
static int opdi_erf_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(opdi_muls(opd_exp(opd_neg(opd_square(input))), 1.12837916709551257390), grad));
}
/* opd_erf: error function */
OPDI_OP(erf) {
    op->schema = "erf(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_erf_kernel; op->backward = opdi_erf_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "erf_"; op->out = "erf.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(erfc, erfc, OPDI_TO_FLOAT)
static int opdi_erfc_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_erfc); }
static int opdi_erfc_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(opdi_muls(opd_exp(opd_neg(opd_square(input))), -1.12837916709551257390), grad));
}
/* opd_erfc: 1 - erf(self) */
OPDI_OP(erfc) {
    op->schema = "erfc(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_erfc_kernel; op->backward = opdi_erfc_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "erfc_"; op->out = "erfc.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(sigmoid, sigmoid, OPDI_TO_FLOAT)
static int opdi_sigmoid_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_sigmoid); }
static int opdi_sigmoid_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_sigmoid_backward(grad, result));
}
/* opd_sigmoid: 1 / (1 + e^-self) */
OPDI_OP(sigmoid) {
    op->schema = "sigmoid(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sigmoid_kernel; op->backward = opdi_sigmoid_backward; op->save = "result";
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "sigmoid_"; op->out = "sigmoid.out";
    op->cases = "[2,3]";
}

static void opdi_f64_vsinc(void *const *data, int64_t count, OPD_UNUSED const opdi_params *params) {
    opdi_vsinc64(count, (double *)data[0], (const double *)data[1]);
}
OPDI_FORMULA_DV(sinc, sinc, OPDI_TO_FLOAT)
static int opdi_sinc_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_sinc); }
static int opdi_sinc_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opdi_sinc_derivative(grad, input));
}
/* opd_sinc: sin(pi self) / (pi self), or 1 where self is 0 */
OPDI_OP(sinc) {
    op->schema = "sinc(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sinc_kernel; op->backward = opdi_sinc_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "sinc_"; op->out = "sinc.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_A(floor, floor, OPDI_NOT_BOOL)
static int opdi_floor_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_floor); }
/* opd_floor: the greatest integer that is not greater than self */
OPDI_OP(floor) {
    op->schema = "floor(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_floor_kernel; op->backward = opdi_flat_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "floor_"; op->out = "floor.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(frac, frac, 0)
static int opdi_frac_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_frac); }
/* opd_frac: the fractional part, self - trunc(self) */
OPDI_OP(frac) {
    op->schema = "frac(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_frac_kernel; op->backward = opdi_pass_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "frac_"; op->out = "frac.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_A(sign, sign, 0)
static int opdi_sign_kernel(opd_call *call) {
    if (opdi_is_complex(opd_arg_tensor(call, 0))) {
        return opd_fail(OPD_ERROR_DTYPE, "opd_sign does not support complex numbers. Use opd_sgn instead.");
    }
    return opdi_unary(call, &opdi_formula_sign);
}
/* opd_sign: -1 where self < 0, 0 where it is 0, 1 where self > 0 */
OPDI_OP(sign) {
    op->schema = "sign(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sign_kernel; op->backward = opdi_flat_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "sign_"; op->out = "sign.out";
    op->cases = "[2,3]";
}

static const opdi_formula opdi_formula_abs = {{opdi_f32_abs, opdi_f64_abs, opdi_i64_abs}, "abs_cpu", OPDI_NOT_BOOL,
    OPDI_NUMBER_RUN(abs, abs, opdi_bits_run)};
static int opdi_abs_kernel(opd_call *call) { return opdi_unary_real(call, &opdi_formula_abs); }
static int opdi_abs_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_sgn(input)));
}
/* opd_abs: absolute value */
OPDI_OP(abs) {
    op->schema = "abs(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_abs_kernel; op->backward = opdi_abs_backward; op->save = "self";
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "abs_"; op->out = "abs.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(hardsigmoid, hardsigmoid, 0)
static int opdi_hardsigmoid_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_hardsigmoid); }
static int opdi_hardsigmoid_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_hardsigmoid_backward(grad, input));
}
/* opd_hardsigmoid: relu6(self + 3) / 6 */
OPDI_OP(hardsigmoid) {
    op->schema = "hardsigmoid(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_hardsigmoid_kernel; op->backward = opdi_hardsigmoid_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "hardsigmoid_"; op->out = "hardsigmoid.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_F(hardswish, hardswish, 0)
static int opdi_hardswish_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_hardswish); }
static int opdi_hardswish_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_hardswish_backward(grad, input));
}
/* opd_hardswish: self * relu6(self + 3) / 6 */
OPDI_OP(hardswish) {
    op->schema = "hardswish(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_hardswish_kernel; op->backward = opdi_hardswish_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "hardswish_"; op->out = "hardswish.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_B(mish, mish, 0)
static int opdi_mish_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_mish); }
static int opdi_mish_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mish_backward(grad, input));
}
/* opd_mish: self * tanh(log(1 + e^self)) */
OPDI_OP(mish) {
    op->schema = "mish(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_mish_kernel; op->backward = opdi_mish_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "mish_"; op->out = "mish.out";
    op->cases = "[2,3]";
}

/* The formulas of ceil, round, trunc and similar operators.  Integers are already rounded: the int64 loop of floor
   copies them. */
static const opdi_formula opdi_formula_ceil = {{opdi_f32_ceil, opdi_f64_ceil, opdi_i64_floor}, "ceil_cpu",
    OPDI_NOT_BOOL, OPDI_NUMBER(ceil, floor)};
static const opdi_formula opdi_formula_round = {{opdi_f32_round, opdi_f64_round, opdi_i64_floor}, "round_cpu",
    OPDI_NOT_BOOL, OPDI_NUMBER(round, floor)};
static const opdi_formula opdi_formula_trunc = {{opdi_f32_trunc, opdi_f64_trunc, opdi_i64_floor}, "trunc_cpu",
    OPDI_NOT_BOOL, OPDI_NUMBER(trunc, floor)};
static const opdi_formula opdi_formula_sgn = {{opdi_f32_sign, opdi_f64_sign, opdi_i64_sign}, "sgn_cpu", 0,
    OPDI_NUMBER(sign, sign)};
static const opdi_formula opdi_formula_isinf = {{opdi_f32_isinf, opdi_f64_isinf, opdi_i64_zero}, "isinf_cpu",
    OPDI_TO_BOOL, OPDI_NUMBER(isinf, zero)};
static const opdi_formula opdi_formula_isfinite = {{opdi_f32_isfinite, opdi_f64_isfinite, opdi_i64_one}, "isfinite_cpu",
    OPDI_TO_BOOL, OPDI_NUMBER(isfinite, one)};
static const opdi_formula opdi_formula_isposinf = {{NULL, opdi_f64_isposinf, opdi_i64_zero}, "isposinf_cpu",
    OPDI_TO_BOOL, OPDI_NUMBER(isposinf, zero)};
static const opdi_formula opdi_formula_isneginf = {{NULL, opdi_f64_isneginf, opdi_i64_zero}, "isneginf_cpu",
    OPDI_TO_BOOL, OPDI_NUMBER(isneginf, zero)};
static int opdi_ceil_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_ceil); }
/* opd_ceil: the least integer that is not less than self */
OPDI_OP(ceil) {
    op->schema = "ceil(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_ceil_kernel; op->backward = opdi_flat_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "ceil_"; op->out = "ceil.out";
    op->cases = "[2,3]";
}

static int opdi_round_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_round); }
/* opd_round: the nearest integer; the even one if two are equally near */
OPDI_OP(round) {
    op->schema = "round(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_round_kernel; op->backward = opdi_flat_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "round_"; op->out = "round.out";
    op->cases = "[2,3]";
}

static int opdi_trunc_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_trunc); }
/* opd_trunc: self without its fractional part */
OPDI_OP(trunc) {
    op->schema = "trunc(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_trunc_kernel; op->backward = opdi_flat_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "trunc_"; op->out = "trunc.out";
    op->cases = "[2,3]";
}

static int opdi_sgn_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_sgn); }
/* Computes the gradient (g - Re(g * conj(result)) * result) / |input|, which is the component of g along the unit
   circle.  The gradient is 0 where input is 0. */
static int opdi_sgn_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    if (!opdi_is_complex(input)) { return opd_bw_return(bw, 0, opd_zeros_like(grad)); }
    opd_tensor *size = opd_abs(input), *result = opd_sgn(input),
        *along = opd_mul(opd_real(opd_mul(grad, opdi_conj(result))), result);
    return opd_bw_return(bw, 0, opdi_div_unless(opd_sub(grad, along), size, opd_eq_Scalar(size, opd_value_int(0))));
}
/* opd_sgn: the sign -1, 0 or 1; for complex numbers self / |self|, or 0 */
OPDI_OP(sgn) {
    op->schema = "sgn(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_sgn_kernel; op->backward = opdi_sgn_backward; op->save = "self";
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "sgn_"; op->out = "sgn.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_A(isnan, isnan, OPDI_TO_BOOL)
OPDI_FORMULA_DI(signbit, signbit, OPDI_TO_BOOL)
OPDI_FORMULA_DI(logical_not, logical_not, OPDI_TO_BOOL)
static int opdi_isnan_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_isnan); }
/* opd_isnan: true where self is NaN */
OPDI_OP(isnan) {
    op->schema = "isnan(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_isnan_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "isnan_"; op->out = "isnan.out";
    op->cases = "[2,3]; [2,3]i5";
}

static int opdi_isinf_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_isinf); }
/* opd_isinf: true where self is infinite */
OPDI_OP(isinf) {
    op->schema = "isinf(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_isinf_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "isinf_"; op->out = "isinf.out";
    op->cases = "[2,3]; [2,3]i5";
}

static int opdi_isfinite_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_isfinite); }
/* opd_isfinite: true where self is neither infinite nor NaN */
OPDI_OP(isfinite) {
    op->schema = "isfinite(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_isfinite_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "isfinite_"; op->out = "isfinite.out";
    op->cases = "[2,3]; [2,3]i5";
}

static int opdi_isposinf_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_isposinf); }
/* opd_isposinf: true where self is +infinity */
OPDI_OP(isposinf) {
    op->schema = "isposinf(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_isposinf_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "isposinf_"; op->out = "isposinf.out";
    op->cases = "[2,3]; [2,3]i5";
}

static int opdi_isneginf_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_isneginf); }
/* opd_isneginf: true where self is -infinity */
OPDI_OP(isneginf) {
    op->schema = "isneginf(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_isneginf_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "isneginf_"; op->out = "isneginf.out";
    op->cases = "[2,3]; [2,3]i5";
}

static int opdi_signbit_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_signbit); }
/* opd_signbit: true where the sign of self is minus, also for -0 */
OPDI_OP(signbit) {
    op->schema = "signbit(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_signbit_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "signbit_"; op->out = "signbit.out";
    op->cases = "[2,3]; [2,3]i5";
}

static const opdi_formula opdi_formula_bitwise_not_bool = {{NULL, NULL, opdi_i64_logical_not}, "bitwise_not_cpu",
    0, OPDI_NUMBER_RUN(logical_not, logical_not, opdi_bits_run)};
static int opdi_logical_not_kernel(opd_call *call) {
    const bool b = opd_arg_tensor(call, 0)->dtype == OPD_BOOL;
    return opdi_unary(call, b ? &opdi_formula_bitwise_not_bool : &opdi_formula_logical_not);
}
/* opd_logical_not: true where self is 0 */
OPDI_OP(logical_not) {
    op->schema = "logical_not(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_logical_not_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "logical_not_"; op->out = "logical_not.out";
    op->cases = "[2,3]; [2,3]i5";
}

//== neg, bitwise_not, relu: bool is treated separately ================================================================
OPDI_FORMULA_A(neg, neg, 0)
static int opdi_neg_kernel(opd_call *call) {
    if (opd_arg_tensor(call, 0)->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE,
                        "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
                        "invert a mask, use the `~` or `logical_not()` operator instead. (In C, call "
                        "opd_logical_not.)");
    }
    return opdi_unary(call, &opdi_formula_neg);
}
static int opdi_neg_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_neg(grad));
}
/* opd_neg: -self */
OPDI_OP(neg) {
    op->schema = "neg(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_neg_kernel; op->backward = opdi_neg_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "neg_"; op->out = "neg.out";
    op->cases = "[2,3]";
}

OPDI_FORMULA_I(bitwise_not, bitwise_not, 0, opdi_words_run)
static int opdi_bitwise_not_kernel(opd_call *call) {
    bool b = opd_arg_tensor(call, 0)->dtype == OPD_BOOL;
    return opdi_unary(call, b ? &opdi_formula_bitwise_not_bool : &opdi_formula_bitwise_not);
}
/* opd_bitwise_not: self with all bits inverted; for bool: not self */
OPDI_OP(bitwise_not) {
    op->schema = "bitwise_not(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_not_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "bitwise_not_"; op->out = "bitwise_not.out";
    op->cases = "[2,3]i5; [2,3]b";
}

OPDI_FORMULA_A(relu, relu, 0)
static int opdi_relu_kernel(opd_call *call) {
    if (opd_arg_tensor(call, 0)->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "Boolean inputs not supported for relu");
    }
    return opdi_unary(call, &opdi_formula_relu);
}
static int opdi_relu_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd_threshold_backward(grad, result, opd_value_int(0)));
}
/* opd_relu: max(self, 0) */
OPDI_OP(relu) {
    op->schema = "relu(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_relu_kernel; op->backward = opdi_relu_backward; op->save = "result";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "relu_"; op->out = "relu.out";
    op->cases = "[2,3]";
}

/* The formula of silu.  Its loops process blocks by vector functions. */
static const opdi_formula opdi_formula_silu = {{opdi_f32_vsilu, opdi_f64_vsilu, NULL}, "silu_cpu", 0,
    OPDI_NUMBER(silu, silu)};
static int opdi_silu_kernel(opd_call *call) { return opdi_unary(call, &opdi_formula_silu); }
static int opdi_silu_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_silu_backward(grad, input));
}
/* opd_silu: self * sigmoid(self) */
OPDI_OP(silu) {
    op->schema = "silu(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_silu_kernel; op->backward = opdi_silu_backward; op->save = "self";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "silu_"; op->out = "silu.out";
    op->cases = "[2,3]";
}
