#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:composite pointwise operators that call other operators, and aliases of operators
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

static int opdi_true_divide_Tensor_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_div(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
/* opd_true_divide: self / other */
OPDI_OP(true_divide_Tensor) {
    op->schema = "true_divide.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_true_divide_Tensor_kernel;
    op->tags = OPDI_OPTAG_NUMBERS | OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->inplace = "true_divide_.Tensor"; op->out = "true_divide.out";
    op->cases = OPDI_CASES_DIV;
}

/* The kernels of true_divide.Scalar and of the following overloads, which take a number instead of a tensor. */
static int opdi_true_divide_Scalar_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_div_Scalar(opd_arg_tensor(call, 0), opd_arg_value(call, 1)));
}
static int opdi_copysign_Scalar_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_copysign(opd_arg_tensor(call, 0),
                                                opd_tensor_wrapped_number(opd_arg_value(call, 1))));
}
static int opdi_xlogy_Scalar_Other_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_xlogy(opd_arg_tensor(call, 0),
                                             opd_tensor_wrapped_number(opd_arg_value(call, 1))));
}
static int opdi_xlogy_Scalar_Self_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_xlogy(opd_tensor_wrapped_number(opd_arg_value(call, 0)),
                                             opd_arg_tensor(call, 1)));
}
static int opdi_remainder_Scalar_Tensor_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_remainder(opd_tensor_wrapped_number(opd_arg_value(call, 0)),
                                                 opd_arg_tensor(call, 1)));
}
/* opd_true_divide_Scalar: self / other */
OPDI_OP(true_divide_Scalar) {
    op->schema = "true_divide.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_true_divide_Scalar_kernel;
    op->tags = OPDI_OPTAG_NUMBERS;
    op->inplace = "true_divide_.Scalar";
    op->cases = "[2,3], 2.5";
}
/* opd_copysign_Scalar: self with other's sign */
OPDI_OP(copysign_Scalar) {
    op->schema = "copysign.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_copysign_Scalar_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->inplace = "copysign_.Scalar"; op->out = "copysign.Scalar_out";
    op->cases = "[2,3], -2.5";
}
/* opd_xlogy_Scalar_Other: self * log(other), 0 where self is 0 */
OPDI_OP(xlogy_Scalar_Other) {
    op->schema = "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_xlogy_Scalar_Other_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->inplace = "xlogy_.Scalar_Other"; op->out = "xlogy.OutScalar_Other";
    op->cases = "[2,3], 2.5";
}
/* opd_xlogy_Scalar_Self: self * log(other), 0 where self is 0 */
OPDI_OP(xlogy_Scalar_Self) {
    op->schema = "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor";
    op->composite = opdi_xlogy_Scalar_Self_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->out = "xlogy.OutScalar_Self";
    op->cases = "2.5, [2,3]+";
}
/* opd_remainder_Scalar_Tensor: the remainder of self / other with the sign of other, as % in Python */
OPDI_OP(remainder_Scalar_Tensor) {
    op->schema = "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";
    op->composite = opdi_remainder_Scalar_Tensor_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->out = "remainder.Scalar_Tensor_out";
    op->cases = "7.5, [2,3]+";
}

/* ldexp: computes self * 2^other.  If other has an integral dtype, the result keeps self's dtype. */
static int opdi_ldexp_Tensor_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    const bool whole = opd_dtype_is_integral(opd_dtype(other), true);
    if (whole && !opd_dtype_is_integral(opd_dtype(self), true)) { other = opd_to_dtype(other, opd_dtype(self)); }
    return opd_return_tensor(call, opd_mul(self, opd_pow_Scalar(opd_value_double(2), other)));
}
/* opd_ldexp: self * 2^other */
OPDI_OP(ldexp_Tensor) {
    op->schema = "ldexp.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_ldexp_Tensor_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->inplace = "ldexp_"; op->out = "ldexp.out";
    op->cases = "[2,3], [2,3]";
}

OPDI_COLD_END

OPDI_COLD_BEGIN
//== aliases ===========================================================================================================
//
//  An alias is a composite operator that calls the operator of which it is another name, as in PyTorch.

OPDI_INTERNAL opd_op *opdi_first_name(const opd_call *call) { return opd_op_builtin((opd_op_id)(intptr_t)call->user); }
static int opdi_second_name_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_call_op(opdi_first_name(call), call->args, call->op->nargs));
}
/* Fills in the operator descriptor of an alias of operator `first`, except for its schema, cases and derived forms. */
OPDI_INTERNAL void opdi_second_card(opd_op_desc *op, opd_op_id first) {
    op->composite = opdi_second_name_kernel; op->user = (void *)(intptr_t)first;
    op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;           /* right for most aliases, which are pointwise */
}
/* opd_absolute: the same as abs */
OPDI_OP(absolute) {
    op->schema = "absolute(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(abs));
    op->inplace = "absolute_"; op->out = "absolute.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3]+";
}
/* opd_arccos: the same as acos */
OPDI_OP(arccos) {
    op->schema = "arccos(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(acos));
    op->inplace = "arccos_"; op->out = "arccos.out";
    op->cases = "[2,3]u";
}
/* opd_arccosh: the same as acosh */
OPDI_OP(arccosh) {
    op->schema = "arccosh(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(acosh));
    op->inplace = "arccosh_"; op->out = "arccosh.out";
    op->cases = "[2,3]+";
}
/* opd_arcsin: the same as asin */
OPDI_OP(arcsin) {
    op->schema = "arcsin(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(asin));
    op->inplace = "arcsin_"; op->out = "arcsin.out";
    op->cases = "[2,3]u";
}
/* opd_arcsinh: the same as asinh */
OPDI_OP(arcsinh) {
    op->schema = "arcsinh(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(asinh));
    op->inplace = "arcsinh_"; op->out = "arcsinh.out";
    op->cases = "[2,3]+";
}
/* opd_arctan: the same as atan */
OPDI_OP(arctan) {
    op->schema = "arctan(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(atan));
    op->inplace = "arctan_"; op->out = "arctan.out";
    op->cases = "[2,3]+";
}
/* opd_arctanh: the same as atanh */
OPDI_OP(arctanh) {
    op->schema = "arctanh(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(atanh));
    op->inplace = "arctanh_"; op->out = "arctanh.out";
    op->cases = "[2,3]u";
}
/* opd_fix: the same as trunc */
OPDI_OP(fix) {
    op->schema = "fix(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(trunc));
    op->inplace = "fix_"; op->out = "fix.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3]+";
}
/* opd_negative: the same as neg */
OPDI_OP(negative) {
    op->schema = "negative(Tensor self) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(neg));
    op->inplace = "negative_"; op->out = "negative.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3]+";
}
/* opd_arctan2: the same as atan2 */
OPDI_OP(arctan2) {
    op->schema = "arctan2(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(atan2));
    op->inplace = "arctan2_"; op->out = "arctan2.out";
    op->cases = "[2,3], [2,3]";
}
/* opd_clip: the same as clamp */
OPDI_OP(clip) {
    op->schema = "clip(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(clamp));
    op->inplace = "clip_"; op->out = "clip.out";
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], -0.5, 0.5";
}
/* opd_clip_Tensor: the same as clamp.Tensor */
OPDI_OP(clip_Tensor) {
    op->schema = "clip.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(clamp_Tensor));
    op->inplace = "clip_.Tensor"; op->out = "clip.Tensor_out";
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [3], None";
}
/* opd_subtract_Tensor: the same as sub.Tensor */
OPDI_OP(subtract_Tensor) {
    op->schema = "subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(sub_Tensor));
    op->inplace = "subtract_.Tensor"; op->out = "subtract.out";
    op->cases = "[2,3], [3], alpha=2";
}
/* opd_subtract_Scalar: the same as sub.Scalar */
OPDI_OP(subtract_Scalar) {
    op->schema = "subtract.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(sub_Scalar));
    op->inplace = "subtract_.Scalar";
    op->cases = "[2,3], 1.5";
}
/* opd_multiply_Tensor: the same as mul.Tensor */
OPDI_OP(multiply_Tensor) {
    op->schema = "multiply.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(mul_Tensor));
    op->inplace = "multiply_.Tensor"; op->out = "multiply.out";
    op->cases = "[2,3], [3]";
}
/* opd_multiply_Scalar: the same as mul.Scalar */
OPDI_OP(multiply_Scalar) {
    op->schema = "multiply.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(mul_Scalar));
    op->inplace = "multiply_.Scalar";
    op->cases = "[2,3], 1.5";
}
/* opd_divide_Tensor: the same as div.Tensor */
OPDI_OP(divide_Tensor) {
    op->schema = "divide.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(div_Tensor));
    op->inplace = "divide_.Tensor"; op->out = "divide.out";
    op->cases = "[2,3], [3]+";
}
/* opd_divide_Scalar: the same as div.Scalar */
OPDI_OP(divide_Scalar) {
    op->schema = "divide.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(div_Scalar));
    op->inplace = "divide_.Scalar";
    op->cases = "[2,3], 1.5";
}
/* opd_divide_Tensor_mode: the same as div.Tensor_mode */
OPDI_OP(divide_Tensor_mode) {
    op->schema = "divide.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(div_Tensor_mode));
    op->inplace = "divide_.Tensor_mode"; op->out = "divide.out_mode";
    op->cases = "[2,3], [3]+, rounding_mode='floor'";
}
/* opd_divide_Scalar_mode: the same as div.Scalar_mode */
OPDI_OP(divide_Scalar_mode) {
    op->schema = "divide.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(div_Scalar_mode));
    op->inplace = "divide_.Scalar_mode";
    op->cases = "[2,3], 1.5, rounding_mode='trunc'";
}
/* opd_greater_Tensor: the same as gt.Tensor */
OPDI_OP(greater_Tensor) {
    op->schema = "greater.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(gt_Tensor));
    op->inplace = "greater_.Tensor"; op->out = "greater.Tensor_out";
    op->cases = "[2,3]i3, [3]i3";
}
/* opd_greater_Scalar: the same as gt.Scalar */
OPDI_OP(greater_Scalar) {
    op->schema = "greater.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(gt_Scalar));
    op->inplace = "greater_.Scalar"; op->out = "greater.Scalar_out";
    op->cases = "[2,3]i3, 1";
}
/* opd_greater_equal_Tensor: the same as ge.Tensor */
OPDI_OP(greater_equal_Tensor) {
    op->schema = "greater_equal.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(ge_Tensor));
    op->inplace = "greater_equal_.Tensor"; op->out = "greater_equal.Tensor_out";
    op->cases = "[2,3]i3, [3]i3";
}
/* opd_greater_equal_Scalar: the same as ge.Scalar */
OPDI_OP(greater_equal_Scalar) {
    op->schema = "greater_equal.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(ge_Scalar));
    op->inplace = "greater_equal_.Scalar"; op->out = "greater_equal.Scalar_out";
    op->cases = "[2,3]i3, 1";
}
/* opd_less_Tensor: the same as lt.Tensor */
OPDI_OP(less_Tensor) {
    op->schema = "less.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(lt_Tensor));
    op->inplace = "less_.Tensor"; op->out = "less.Tensor_out";
    op->cases = "[2,3]i3, [3]i3";
}
/* opd_less_Scalar: the same as lt.Scalar */
OPDI_OP(less_Scalar) {
    op->schema = "less.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(lt_Scalar));
    op->inplace = "less_.Scalar"; op->out = "less.Scalar_out";
    op->cases = "[2,3]i3, 1";
}
/* opd_less_equal_Tensor: the same as le.Tensor */
OPDI_OP(less_equal_Tensor) {
    op->schema = "less_equal.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(le_Tensor));
    op->inplace = "less_equal_.Tensor"; op->out = "less_equal.Tensor_out";
    op->cases = "[2,3]i3, [3]i3";
}
/* opd_less_equal_Scalar: the same as le.Scalar */
OPDI_OP(less_equal_Scalar) {
    op->schema = "less_equal.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(le_Scalar));
    op->inplace = "less_equal_.Scalar"; op->out = "less_equal.Scalar_out";
    op->cases = "[2,3]i3, 1";
}
/* opd_not_equal_Tensor: the same as ne.Tensor */
OPDI_OP(not_equal_Tensor) {
    op->schema = "not_equal.Tensor(Tensor self, Tensor other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(ne_Tensor));
    op->inplace = "not_equal_.Tensor"; op->out = "not_equal.Tensor_out";
    op->cases = "[2,3]i3, [3]i3";
}
/* opd_not_equal_Scalar: the same as ne.Scalar */
OPDI_OP(not_equal_Scalar) {
    op->schema = "not_equal.Scalar(Tensor self, Scalar other) -> Tensor";
    opdi_second_card(op, OPDI_BY_NUMBER(ne_Scalar));
    op->inplace = "not_equal_.Scalar"; op->out = "not_equal.Scalar_out";
    op->cases = "[2,3]i3, 1";
}
OPDI_COLD_END

OPDI_COLD_BEGIN
//== float_power =======================================================================================================

static bool opdi_is_pair(opd_value value) {
    return value.tag == OPD_TAG_COMPLEX ||
        (value.tag == OPD_TAG_TENSOR && opd_dtype_is_complex((opd_scalar_type)value.u.t->dtype));
}
/* Computes pow with both arguments converted to float64 or, if one of them is complex, to complex128.  `name` is the
   pow overload to call.  Returns 0, or -1 and sets an error. */
static int opdi_float_power(opd_call *call, const char *name) {
    opd_value values[2];
    opd_op *op = NULL;
    values[0] = opd_arg_value(call, 0);
    values[1] = opd_arg_value(call, 1);
    const opd_scalar_type dtype = opdi_is_pair(values[0]) || opdi_is_pair(values[1]) ? OPD_COMPLEX128 : OPD_FLOAT64;
    for (int i = 0; i < 2; i++) {
        if (values[i].tag != OPD_TAG_TENSOR) { continue; }
        opd_tensor *tensor = opd_to_dtype(values[i].u.t, dtype);
        if (!tensor) { return -1; }
        values[i] = opd_value_tensor(tensor);
    }
    return opd_return_tensor(call, opd_call_op(OPD_OP(&op, name), values, 2));
}
static int opdi_float_power_Tensor_Tensor_kernel(opd_call *call) {
    return opdi_float_power(call, OPDI_NAME(pow_Tensor_Tensor, "aten::pow.Tensor_Tensor"));
}
static int opdi_float_power_Scalar_kernel(opd_call *call) {
    return opdi_float_power(call, OPDI_NAME(pow_Scalar, "aten::pow.Scalar"));
}
static int opdi_float_power_Tensor_Scalar_kernel(opd_call *call) {
    return opdi_float_power(call, OPDI_NAME(pow_Tensor_Scalar, "aten::pow.Tensor_Scalar"));
}
/* opd_float_power_Tensor_Tensor: self^exponent, computed in float64 or complex128 */
OPDI_OP(float_power_Tensor_Tensor) {
    op->schema = "float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor";
    op->composite = opdi_float_power_Tensor_Tensor_kernel;
    op->inplace = "float_power_.Tensor"; op->out = "float_power.Tensor_Tensor_out";
    op->tags = OPDI_OPTAG_OUT_EXACT | OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]+, [2,3]; [2,3]i4, [3]i3";
}
/* opd_float_power_Scalar: self^exponent, computed in float64 or complex128 */
OPDI_OP(float_power_Scalar) {
    op->schema = "float_power.Scalar(Scalar self, Tensor exponent) -> Tensor";
    op->composite = opdi_float_power_Scalar_kernel;
    op->out = "float_power.Scalar_out"; op->tags = OPDI_OPTAG_OUT_EXACT | OPD_OPTAG_POINTWISE;
    op->cases = "2, [2,3]; 1.5, [3]i4";
}
/* opd_float_power_Tensor_Scalar: self^exponent, computed in float64 or complex128 */
OPDI_OP(float_power_Tensor_Scalar) {
    op->schema = "float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor";
    op->composite = opdi_float_power_Tensor_Scalar_kernel;
    op->inplace = "float_power_.Scalar"; op->out = "float_power.Tensor_Scalar_out";
    op->tags = OPDI_OPTAG_OUT_EXACT | OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]+, 2.5; [3]i5, 2";
}
OPDI_COLD_END
