#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:binary    pointwise operators of two and more tensors, and operators for their gradients
//----------------------------------------------------------------------------------------------------------------------

//== add, sub, rsub, mul ===============================================================================================

OPDI_FORMULA_A(add, add, 0)
OPDI_FORMULA_A(add_scaled, add_scaled, 0)
OPDI_FORMULA_A(sub, sub, 0)
OPDI_FORMULA_A(sub_scaled, sub_scaled, 0)
OPDI_FORMULA_A(mul, mul, OPDI_NUMBER_KEPT)
/* Checks the argument `alpha` of an operator with results of this dtype, as at::native does (alpha_check).  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_alpha_check(opd_scalar_type dtype, opd_value alpha) {
    if (alpha.tag == OPD_TAG_COMPLEX && !opd_dtype_is_complex(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "For non-complex input tensors, argument alpha must not be a complex number.");
    }
    if (alpha.tag == OPD_TAG_BOOL && dtype != OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "Boolean alpha only supported for Boolean results.");
    }
    if (opd_dtype_is_integral(dtype, true) && alpha.tag != OPD_TAG_INT && alpha.tag != OPD_TAG_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE,
                        "For integral input tensors, argument alpha must not be a floating point number.");
    }
    return opdi_number_check(alpha, dtype);
}
static int opdi_sub_check(const opd_tensor *first, const opd_tensor *second) {
    if (first->dtype != OPD_BOOL && second->dtype != OPD_BOOL) { return 0; }
    if (first->dtype == OPD_BOOL && second->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "Subtraction, the `-` operator, with two bool tensors is not supported. "
                        "Use the `^` or `logical_xor()` operator instead. (In C, call opd_logical_xor.)");
    }
    return opd_fail(OPD_ERROR_DTYPE,
                    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to "
                    "invert a mask, use the `~` or `logical_not()` operator instead.");
}
/* Computes ops[1] + alpha * ops[2] or ops[1] - alpha * ops[2], as result 0.  `plain` is the pointwise formula for alpha
   = 1, `scaled` the pointwise formula with a factor.  Returns 0, or -1 and sets an error. */
static int opdi_scaled(opd_call *call, opd_tensor **ops, opd_value alpha, const opdi_formula *plain,
                       const opdi_formula *scaled) {
    if (alpha.tag == OPD_TAG_INT && alpha.u.i == 1) { return opdi_pointwise(call, plain, ops, 2, &opdi_no_params); }
    opd_scalar_type dtype = opdi_result_type(ops + 1, 2);
    if (opdi_alpha_check(dtype, alpha) != 0) { return -1; }
    opdi_params params = opdi_no_params;
    opdi_params_set(&params, 0, alpha);
    opdi_params_half(&params, 0, dtype);
    if (dtype == OPD_BOOL) { params.i64[0] = params.i64[0] != 0; }
    return opdi_pointwise(call, scaled, ops, 2, &params);
}
static int opdi_add_kernel(opd_call *call) {
    opd_tensor *ops[3];
    opdi_number number;
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opdi_operand_of(call, 1, &number);
    return opdi_scaled(call, ops, opd_arg_value(call, 2), &opdi_formula_add, &opdi_formula_add_scaled);
}
static int opdi_sub_kernel(opd_call *call) {
    opd_tensor *ops[3];
    opdi_number number;
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opdi_operand_of(call, 1, &number);
    if (opdi_sub_check(ops[1], ops[2]) != 0) { return -1; }
    return opdi_scaled(call, ops, opd_arg_value(call, 2), &opdi_formula_sub, &opdi_formula_sub_scaled);
}
static int opdi_rsub_kernel(opd_call *call) {
    opd_tensor *ops[3];
    opdi_number number;
    ops[2] = opd_arg_tensor(call, 0);
    ops[1] = opdi_operand_of(call, 1, &number);
    if (opdi_sub_check(ops[2], ops[1]) != 0) { return -1; }
    return opdi_scaled(call, ops, opd_arg_value(call, 2), &opdi_formula_sub, &opdi_formula_sub_scaled);
}
static int opdi_mul_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_mul); }
static int opdi_add_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(1, opdi_scale(grad, opd_bw_value(bw, 2)));
    return 0;
}
static int opdi_sub_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(1, opd_neg(opdi_scale(grad, opd_bw_value(bw, 2))));
    return 0;
}
static int opdi_rsub_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_neg(opdi_scale(grad, opd_bw_value(bw, 2))));
    OPDI_BW_RETURN(1, grad);
    return 0;
}
static int opdi_mul_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_mul(grad, opd_bw_tensor(bw, 1)));
    OPDI_BW_RETURN(1, opd_mul(grad, opd_bw_tensor(bw, 0)));
    return 0;
}
static int opdi_mul_Scalar_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_scale(opd_bw_grad(bw, 0), opd_bw_value(bw, 1)));
}
/* opd_add: self + alpha * other */
OPDI_OP(add_Tensor) {
    op->schema = "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_add_kernel; op->backward = opdi_add_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS;
    op->inplace = "add_.Tensor"; op->out = "add.out";
    op->cases = OPDI_CASES_BINARY "; [2,3], [3], alpha=2";
}
/* opd_add_Scalar: self + alpha * other */
OPDI_OP(add_Scalar) {
    op->schema = "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_add_kernel; op->backward = opdi_add_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "add_.Scalar"; op->out = "add.Scalar_out";
    op->cases = "[2,3], 1.5; [2,3], 2, 3";
}
/* opd_sub: self - alpha * other */
OPDI_OP(sub_Tensor) {
    op->schema = "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_sub_kernel; op->backward = opdi_sub_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS;
    op->inplace = "sub_.Tensor"; op->out = "sub.out";
    op->cases = OPDI_CASES_BINARY "; [2,3], [3], alpha=2";
}
/* opd_sub_Scalar: self - alpha * other */
OPDI_OP(sub_Scalar) {
    op->schema = "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_sub_kernel; op->backward = opdi_sub_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "sub_.Scalar"; op->out = "sub.Scalar_out";
    op->cases = "[2,3], 1.5; [2,3], 2, 3";
}
/* opd_rsub: other - alpha * self */
OPDI_OP(rsub_Tensor) {
    op->schema = "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_rsub_kernel; op->backward = opdi_rsub_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "rsub.Tensor_out";
    op->cases = OPDI_CASES_BINARY "; [2,3], [3], alpha=2";
}
/* opd_rsub_Scalar: other - alpha * self */
OPDI_OP(rsub_Scalar) {
    op->schema = "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_rsub_kernel; op->backward = opdi_rsub_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "rsub.Scalar_out";
    op->cases = "[2,3], 1.5; [2,3], 2, 3";
}
/* opd_mul: self * other */
OPDI_OP(mul_Tensor) {
    op->schema = "mul.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_mul_kernel; op->backward = opdi_mul_backward; op->save = "self(other), other(self)";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS;
    op->inplace = "mul_.Tensor"; op->out = "mul.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_mul_Scalar: self * other */
OPDI_OP(mul_Scalar) {
    op->schema = "mul.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_mul_kernel; op->backward = opdi_mul_Scalar_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "mul_.Scalar"; op->out = "mul.Scalar_out";
    op->cases = "[2,3], 1.5; [2,3], 2";
}

//== div, floor_divide, fmod, remainder ================================================================================

OPDI_FORMULA_F(div, div, OPDI_TO_FLOAT | OPDI_NUMBER_KEPT)
OPDI_FORMULA_F(div_trunc_bf16, div_trunc_bf16, 0)
OPDI_FORMULA_F(div_trunc_f16, div_trunc_f16, 0)
OPDI_FORMULA_A(div_trunc, div_trunc, OPDI_NOT_BOOL | OPDI_NUMBER_KEPT)
OPDI_FORMULA_V(div_floor, div_floor, OPDI_NOT_BOOL | OPDI_NUMBER_KEPT)
OPDI_FORMULA_V(fmod, fmod, OPDI_NOT_BOOL)
OPDI_FORMULA_V(remainder, remainder, OPDI_NOT_BOOL)
static int opdi_div_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_div); }
/* Returns the pointwise formula of a truncated quotient.  For two tensors of 16-bit floats, the formula rounds the
   quotient to 16 bits before it truncates it. */
static const opdi_formula *opdi_div_trunc_formula(opd_call *call) {
    opd_tensor *ops[2];
    opdi_number number;
    ops[0] = opd_arg_tensor(call, 0);
    ops[1] = opdi_operand_of(call, 1, &number);
    const opd_scalar_type common = opdi_result_type(ops, 2);
    if (ops[1]->ndim == 0 && ops[1]->dtype != (int32_t)common) { return &opdi_formula_div_trunc; }
    return common == OPD_BFLOAT16 ? &opdi_formula_div_trunc_bf16 : common == OPD_FLOAT16 ? &opdi_formula_div_trunc_f16
        : &opdi_formula_div_trunc;
}
static int opdi_div_mode_kernel(opd_call *call) {
    const char *mode = opd_arg_is_none(call, 2) ? NULL : opd_arg_str(call, 2);
    if (!mode) { return opdi_binary(call, &opdi_formula_div); }
    if (strcmp(mode, "trunc") == 0) { return opdi_binary_div(call, opdi_div_trunc_formula(call)); }
    if (strcmp(mode, "floor") == 0) { return opdi_binary_div(call, &opdi_formula_div_floor); }
    return opd_fail(OPD_ERROR_ARGUMENT,
                    "rounding_mode must be NULL, 'trunc' or 'floor', not '%s'", mode);
}
static int opdi_floor_divide_kernel(opd_call *call) { return opdi_binary_div(call, &opdi_formula_div_floor); }
static int opdi_fmod_kernel(opd_call *call) { return opdi_binary_div(call, &opdi_formula_fmod); }
static int opdi_remainder_kernel(opd_call *call) { return opdi_binary_div(call, &opdi_formula_remainder); }
/* Computes the gradients of input / other: grad / other for input, and -grad * (input / other) / other for other. */
static int opdi_div_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_div(grad, other));
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const minus = opd_neg(grad);
        OPDI_BW_RETURN(1, opd_mul(minus, opd_div(opd_div(input, other), other)));
    }
    return 0;
}
static int opdi_div_mode_backward(opd_backward_call *bw) {
    return opd_bw_value(bw, 2).tag == OPD_TAG_NONE ? opdi_div_backward(bw) : opdi_zero_backward(bw);
}
static int opdi_div_Scalar_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_div_Scalar(opd_bw_grad(bw, 0), opd_bw_value(bw, 1)));
}
static int opdi_div_Scalar_mode_backward(opd_backward_call *bw) {
    return opd_bw_value(bw, 2).tag == OPD_TAG_NONE ? opdi_div_Scalar_backward(bw) : opdi_zero_backward(bw);
}
static int opdi_fmod_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, grad);
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const minus = opd_neg(grad);
        OPDI_BW_RETURN(1, opd_mul(minus, opd_div_Tensor_mode(input, other, "trunc")));
    }
    return 0;
}
static int opdi_remainder_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, grad);
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const minus = opd_neg(grad);
        OPDI_BW_RETURN(1, opd_mul(minus, opd_div_Tensor_mode(input, other, "floor")));
    }
    return 0;
}
/* opd_div: self / other */
OPDI_OP(div_Tensor) {
    op->schema = "div.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_div_kernel; op->backward = opdi_div_backward; op->save = "self(other), other";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS;
    op->inplace = "div_.Tensor"; op->out = "div.out";
    op->cases = OPDI_CASES_DIV;
}
/* opd_div_Scalar: self / other */
OPDI_OP(div_Scalar) {
    op->schema = "div.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_div_kernel; op->backward = opdi_div_Scalar_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "div_.Scalar"; op->out = "div.Scalar_out";
    op->cases = "[2,3], 2; [2,3], 1.5";
}
/* opd_div_Tensor_mode: self / other, rounded towards 0 if rounding_mode is "trunc", down if it is "floor" */
OPDI_OP(div_Tensor_mode) {
    op->schema = "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor";
    op->cpu = op->fake = opdi_div_mode_kernel; op->backward = opdi_div_mode_backward; op->save = "self(other), other";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS;
    op->inplace = "div_.Tensor_mode"; op->out = "div.out_mode";
    op->cases = "[2,3], [3]+, rounding_mode=None; [2,3], [3]+, rounding_mode='floor'; [2,3], [2,3]+, "
        "rounding_mode='trunc'";
}
/* opd_div_Scalar_mode: self / other, rounded towards 0 if rounding_mode is "trunc", down if it is "floor" */
OPDI_OP(div_Scalar_mode) {
    op->schema = "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor";
    op->cpu = op->fake = opdi_div_mode_kernel; op->backward = opdi_div_Scalar_mode_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_NUMBERS | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "div_.Scalar_mode"; op->out = "div.Scalar_mode_out";
    op->cases = "[2,3], 2, rounding_mode=None; [2,3], 0.5, rounding_mode='floor'";
}
/* opd_floor_divide: self / other, rounded down */
OPDI_OP(floor_divide) {
    op->schema = "floor_divide(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_floor_divide_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_NUMBERS;
    op->inplace = "floor_divide_.Tensor"; op->out = "floor_divide.out";
    op->cases = OPDI_CASES_DIV;
}
/* opd_floor_divide_Scalar: self / other, rounded down */
OPDI_OP(floor_divide_Scalar) {
    op->schema = "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_floor_divide_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_NUMBERS;
    op->inplace = "floor_divide_.Scalar";
    op->cases = "[2,3], 2";
}
/* opd_fmod: the remainder of self / other with the sign of self, as fmod in C */
OPDI_OP(fmod_Tensor) {
    op->schema = "fmod.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_fmod_kernel; op->backward = opdi_fmod_backward; op->save = "self(other), other(other)";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "fmod_.Tensor"; op->out = "fmod.Tensor_out";
    op->cases = OPDI_CASES_DIV;
}
/* opd_fmod_Scalar: the remainder of self / other with the sign of self, as fmod in C */
OPDI_OP(fmod_Scalar) {
    op->schema = "fmod.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_fmod_kernel; op->backward = opdi_pass_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "fmod_.Scalar"; op->out = "fmod.Scalar_out";
    op->cases = "[2,3], 0.5";
}
/* opd_remainder: the remainder of self / other with the sign of other, as % in Python */
OPDI_OP(remainder_Tensor) {
    op->schema = "remainder.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_remainder_kernel; op->backward = opdi_remainder_backward;
    op->save = "self(other), other(other)";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "remainder_.Tensor"; op->out = "remainder.Tensor_out";
    op->cases = OPDI_CASES_DIV;
}
/* opd_remainder_Scalar: the remainder of self / other with the sign of other, as % in Python */
OPDI_OP(remainder_Scalar) {
    op->schema = "remainder.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_remainder_kernel; op->backward = opdi_pass_backward;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "remainder_.Scalar"; op->out = "remainder.Scalar_out";
    op->cases = "[2,3], 0.5";
}

//== pow ===============================================================================================================

OPDI_FORMULA_V(pow, pow, OPDI_NOT_BOOL)
static const opdi_formula opdi_formula_pow_2 = {{opdi_f32_square, opdi_f64_square, opdi_i64_square}, "pow",
    OPDI_NOT_BOOL, OPDI_NUMBER(square, square)};
static const opdi_formula opdi_formula_pow_3 = {{opdi_f32_cube, opdi_f64_cube, opdi_i64_cube}, "pow", OPDI_NOT_BOOL,
    OPDI_NUMBER(cube, cube)};
OPDI_FORMULA_F(pow_half, sqrt, 0)
OPDI_FORMULA_F(pow_inverse, reciprocal, 0)
OPDI_FORMULA_F(pow_rsqrt, rsqrt, 0)
OPDI_FORMULA_A(pow_bool, ge, 0)                   /* x^y equals x >= y for bools */
static int opdi_pow_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_pow); }
OPDI_FORMULA_V(pow_Scalar, pow, OPDI_NOT_BOOL | OPDI_CONTIGUOUS_RESULT)
static int opdi_pow_Scalar_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_pow_Scalar); }
/* pow.Tensor_Scalar: computes self^exponent.  Some exponents, such as 2 and 0.5, have their own loops
   (at::native::pow_tensor_scalar_optimized_kernel). */
static int opdi_pow_Tensor_Scalar_kernel(opd_call *call) {
    opd_tensor *ops[3];
    opdi_number number;
    opd_value value = opd_arg_value(call, 1);
    const double e = opdi_number_f64(value);
    const opdi_formula *formula = &opdi_formula_pow;
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opdi_number_make(&number, value);
    opd_scalar_type dtype = opdi_result_type(ops + 1, 2);
    if (opd_dtype_is_integral(dtype, true) && e < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Integers to negative integer powers are not allowed.");
    }
    if (opd_dtype_is_integral(dtype, true) && opdi_number_check(value, dtype)) { return -1; }
    if (dtype == OPD_BOOL) { formula = &opdi_formula_pow_bool; }
    else if (value.tag == OPD_TAG_COMPLEX && value.u.c[1] != 0) { formula = &opdi_formula_pow; }
    else if (e == 2) { formula = &opdi_formula_pow_2; }
    else if (e == 3) { formula = &opdi_formula_pow_3; }
    else if (e == 0.5) { formula = &opdi_formula_pow_half; }
    else if (e == -1) { formula = &opdi_formula_pow_inverse; }
    else if (e == -0.5) { formula = &opdi_formula_pow_rsqrt; }
    const bool both = formula == &opdi_formula_pow || formula == &opdi_formula_pow_bool;
    return opdi_pointwise_typed(call, formula, ops, both ? 2 : 1, dtype, dtype, &opdi_no_params);
}
/* Computes the gradient of input^e: grad * e * input^(e-1), or 0 if e is 0. */
static int opdi_pow_Tensor_Scalar_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    opd_value value = opd_bw_value(bw, 1), less = value;
    double parts[2];
    if (opdi_number_is_zero(value)) { return opd_bw_return(bw, 0, opd_zeros_like(grad)); }
    if (value.tag == OPD_TAG_FLOAT) { less.u.d -= 1; }
    else if (value.tag == OPD_TAG_COMPLEX) {
        parts[0] = value.u.c[0] - 1;
        parts[1] = value.u.c[1];
        less = opd_value_complex(parts);
    }
    else { less = opd_value_int(opdi_wrap_sub(value.u.i, 1)); }
    return opd_bw_return(bw, 0, opd_mul(grad, opdi_scale(opd_pow_Tensor_Scalar(input, less), value)));
}
/* Returns a tensor that is true where the derivative of 0^extra with respect to extra is 0: where extra is real and not
   negative. */
static opd_tensor *opdi_pow_flat(opd_tensor *extra) {
    opd_tensor *flat = opd_ge_Scalar(opd_real(extra), opd_value_int(0));
    return opdi_is_complex(extra) ? opd_logical_and(flat, opd_isreal(extra)) : flat;
}
/* Computes the gradients of input^extra.  The derivative with respect to extra is input^extra * log(input), or 0 where
   input is 0 and extra >= 0. */
static int opdi_pow_Tensor_Tensor_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *extra = opd_bw_tensor(bw, 1);
    const opd_value zero = opd_value_int(0);
    if (opdi_is_complex(grad)) { input = opd_to_dtype(input, opd_dtype(grad)); }  /* then log(-1) is defined */
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *none = opd_logical_and(opd_eq_Scalar(extra, zero),
                                           opd_logical_not(opd_gt_Scalar(opd_abs(input), zero)));
        opd_tensor *base = opd_masked_fill_Scalar(input, none, opd_value_int(1));
        opd_tensor *power = opd_pow_Tensor_Tensor(base, opdi_adds(extra, -1));
        if (opd_bw_return(bw, 0, opdi_unless(opd_mul(grad, opd_mul(extra, power)), none))) { return -1; }
    }
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *none = opd_logical_and(opd_eq_Scalar(input, zero), opdi_pow_flat(extra));
        opd_tensor *log_of = opd_log(opd_masked_fill_Scalar(input, none, opd_value_int(1)));
        return opd_bw_return(bw, 1, opd_mul(grad, opd_mul(opd_bw_result(bw, 0), log_of)));
    }
    return 0;
}
/* Returns log(value): the logarithm of its real part or, if `pairs` is true, the complex logarithm, which is also
   stored in logs[0] and logs[1]. */
static opd_value opdi_number_log(opd_value value, bool pairs, double *logs) {
    const double re = opdi_number_f64(value), im = value.tag == OPD_TAG_COMPLEX ? value.u.c[1] : 0;
    const opdi_complex log_of = opdi_complex_log(opdi_complex_make(re, im));
    if (!pairs) { return opd_value_double(opdi_log_f64(re)); }
    logs[0] = log_of.re;
    logs[1] = log_of.im;
    return opd_value_complex(logs);
}
static int opdi_pow_Scalar_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *extra = opd_bw_tensor(bw, 1), *result = opd_bw_result(bw, 0);
    const opd_value value = opd_bw_value(bw, 0);
    double logs[2];
    opd_tensor *delta = opd_mul_Scalar(result, opdi_number_log(value, opdi_is_complex(result), logs));
    if (opdi_number_is_zero(value)) { delta = opdi_unless(delta, opdi_pow_flat(extra)); }
    return opd_bw_return(bw, 1, opd_mul(grad, delta));
}
/* opd_pow_Tensor_Tensor: self^exponent */
OPDI_OP(pow_Tensor_Tensor) {
    op->schema = "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor";
    op->cpu = op->fake = opdi_pow_kernel; op->backward = opdi_pow_Tensor_Tensor_backward;
    op->save = "self, exponent, result(exponent)";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "pow_.Tensor"; op->out = "pow.Tensor_Tensor_out";
    op->cases = "[2,3]+, [2,3]; [2,3]+, [3]";
}
/* opd_pow_Tensor_Scalar: self^exponent */
OPDI_OP(pow_Tensor_Scalar) {
    op->schema = "pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor";
    op->cpu = op->fake = opdi_pow_Tensor_Scalar_kernel; op->backward = opdi_pow_Tensor_Scalar_backward;
    op->save = "self";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "pow_.Scalar"; op->out = "pow.Tensor_Scalar_out";
    op->cases = "[2,3], 2; [2,3]+, 1.5; [2,3]+, -1; [2,3], 3; [2,3], 0";
}
/* opd_pow_Scalar: self^exponent, where self is a number */
OPDI_OP(pow_Scalar) {
    op->schema = "pow.Scalar(Scalar self, Tensor exponent) -> Tensor";
    op->cpu = op->fake = opdi_pow_Scalar_kernel; op->backward = opdi_pow_Scalar_backward; op->save = "exponent, result";
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->out = "pow.Scalar_out";
    op->cases = "2, [2,3]; 1.5, [2,3]";
}

//== maximum, minimum, fmax, fmin ======================================================================================

/* The pointwise formulas of maximum, minimum, fmax and fmin.  Where both inputs are equal, each of them gets half of
   the gradient. */
OPDI_FORMULA_A(maximum, maximum, 0)
OPDI_FORMULA_A(minimum, minimum, 0)
OPDI_FORMULA_A(fmax, fmax, 0)
OPDI_FORMULA_A(fmin, fmin, 0)
static int opdi_maximum_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_maximum); }
static int opdi_minimum_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_minimum); }
static int opdi_fmax_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_fmax); }
static int opdi_fmin_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_fmin); }
/* Returns the gradient of one input of maximum or minimum: 0 where `loses` is true, because this input is not the
   result; grad / 2 where `equal` is true; grad elsewhere. */
static opd_tensor *opdi_tie_gradient(opd_tensor *grad, opd_tensor *equal, opd_tensor *loses) {
    return opd_where_ScalarSelf(loses, opd_value_int(0), opd_where_self(equal, opdi_muls(grad, 0.5), grad));
}
/* Computes the gradients of maximum (`larger` is true) or minimum with respect to argument 0 and to argument number
   `other`.  Returns 0, or -1 and sets an error. */
static int opdi_extreme_share(opd_backward_call *bw, int other, bool larger) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *target = opd_bw_tensor(bw, other),
        *extra = opd_eq(input, target);
    OPDI_BW_RETURN(0, opdi_tie_gradient(grad, extra, larger ? opd_lt(input, target) : opd_gt(input, target)));
    OPDI_BW_RETURN(other, opdi_tie_gradient(grad, extra, larger ? opd_gt(input, target) : opd_lt(input, target)));
    return 0;
}
static int opdi_maximum_backward(opd_backward_call *bw) { return opdi_extreme_share(bw, 1, true); }
static int opdi_minimum_backward(opd_backward_call *bw) { return opdi_extreme_share(bw, 1, false); }
/* Computes the gradients of fmax or fmin.  `wins` is true where self is greater than other (fmax) or smaller (fmin).
   Where other is NaN, self is the result, too.  Returns 0, or -1 and sets an error. */
static int opdi_fmaxmin_backward(opd_backward_call *bw, opd_tensor *wins) {
    opd_tensor *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1), *extra = opd_eq(input, other);
    opd_tensor *mask = opd_logical_or(wins, opd_isnan(other));
    opd_tensor *grad = opd_where_self(extra, opdi_muls(opd_bw_grad(bw, 0), 0.5), opd_bw_grad(bw, 0));
    OPDI_BW_RETURN(0, opdi_where(opd_logical_or(mask, extra), grad));
    OPDI_BW_RETURN(1, opdi_unless(grad, mask));
    return 0;
}
static int opdi_fmax_backward(opd_backward_call *bw) {
    return opdi_fmaxmin_backward(bw, opd_gt(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1)));
}
static int opdi_fmin_backward(opd_backward_call *bw) {
    return opdi_fmaxmin_backward(bw, opd_lt(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1)));
}
/* opd_maximum: the greater number; NaN if either is NaN */
OPDI_OP(maximum) {
    op->schema = "maximum(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_maximum_kernel; op->backward = opdi_maximum_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->out = "maximum.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_minimum: the smaller number; NaN if either is NaN */
OPDI_OP(minimum) {
    op->schema = "minimum(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_minimum_kernel; op->backward = opdi_minimum_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->out = "minimum.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_fmax: the greater number; NaN only if both are NaN */
OPDI_OP(fmax) {
    op->schema = "fmax(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_fmax_kernel; op->backward = opdi_fmax_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "fmax.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_fmin: the smaller number; NaN only if both are NaN */
OPDI_OP(fmin) {
    op->schema = "fmin(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_fmin_kernel; op->backward = opdi_fmin_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "fmin.out";
    op->cases = OPDI_CASES_BINARY;
}

//== clamp with tensors ================================================================================================

static int opdi_clamp_Tensor_kernel(opd_call *call) {
    opd_tensor *ops[4], *low = opd_arg_tensor(call, 1), *high = opd_arg_tensor(call, 2);
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = low ? low : high;
    ops[3] = high;
    if (low && high) { return opdi_pointwise(call, &opdi_formula_clamp_tensor, ops, 3, &opdi_no_params); }
    if (!low && !high) { return opdi_clamp_fail(); }
    return opdi_pointwise(call, low ? &opdi_formula_maximum : &opdi_formula_minimum, ops, 2, &opdi_no_params);
}
/* Computes the gradients of clamp.  input gets grad where it is between the bounds.  low gets grad where input < low <=
   high.  high gets grad where input > high or high < low.  Where low < high and input equals one of the bounds, input
   and this bound get half of grad each. */
static int opdi_clamp_Tensor_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *low = opd_bw_tensor(bw, 1),
        *high = opd_bw_tensor(bw, 2);
    if (!low || !high) { return opdi_extreme_share(bw, low ? 1 : 2, low != NULL); }
    opd_tensor *apart = opd_lt(low, high);
    opd_tensor *at_low = opd_logical_and(opd_eq(input, low), apart);
    opd_tensor *at_high = opd_logical_and(opd_eq(input, high), apart);
    OPDI_BW_RETURN(0,
                   opdi_tie_gradient(grad, opd_logical_or(at_low, at_high),
                                     opd_logical_or(opd_lt(input, low), opd_gt(input, high))));
    grad = opd_where_self(opd_logical_or(at_low, at_high), opdi_muls(grad, 0.5), grad);
    OPDI_BW_RETURN(1, opdi_where(opd_logical_or(at_low, opd_logical_and(opd_lt(input, low), opd_le(low, high))), grad));
    OPDI_BW_RETURN(2,
                   opdi_where(opd_logical_or(at_high, opd_logical_or(opd_gt(input, high), opd_gt(low, high))), grad));
    return 0;
}
/* opd_clamp_Tensor: min(max(self, min), max) */
OPDI_OP(clamp_Tensor) {
    op->schema = "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor";
    op->cpu = op->fake = opdi_clamp_Tensor_kernel; op->backward = opdi_clamp_Tensor_backward;
    op->save = "self, min, max";
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "clamp_.Tensor"; op->out = "clamp.Tensor_out";
    op->cases = "[2,3], [2,3], [3]; [2,3], [3]; [2,3], None, [2,3]";
}
/* opd_clamp_min_Tensor: max(self, min) */
OPDI_OP(clamp_min_Tensor) {
    op->schema = "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor";
    op->cpu = op->fake = opdi_maximum_kernel; op->backward = opdi_maximum_backward; op->save = "self, min";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "clamp_min_.Tensor"; op->out = "clamp_min.Tensor_out";
    op->cases = "[2,3], [3]";
}
/* opd_clamp_max_Tensor: min(self, max) */
OPDI_OP(clamp_max_Tensor) {
    op->schema = "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor";
    op->cpu = op->fake = opdi_minimum_kernel; op->backward = opdi_minimum_backward; op->save = "self, max";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "clamp_max_.Tensor"; op->out = "clamp_max.Tensor_out";
    op->cases = "[2,3], [3]";
}
