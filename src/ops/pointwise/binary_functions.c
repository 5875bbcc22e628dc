#include "../ops.h"

//== atan2, hypot, xlogy, logaddexp and similar functions ==============================================================

static void opdi_f64_vatan2(void *const *data, int64_t count, OPD_UNUSED const opdi_params *params) {
    opdi_vatan264(count, (double *)data[0], (const double *)data[1], (const double *)data[2]);
}
static const opdi_formula opdi_formula_atan2 = {{opdi_f32_vatan2, opdi_f64_vatan2, NULL}, "atan2_cpu", OPDI_TO_FLOAT,
    OPDI_NUMBER(atan2, atan2)};
OPDI_FORMULA_B(hypot, hypot, 0)
static void opdi_f64_vxlogy(void *const *data, int64_t count, OPD_UNUSED const opdi_params *params) {
    const double *x = (const double *)data[1], *y = (const double *)data[2];
    double *out = (double *)data[0], logs[256];
    for (int64_t from = 0, rows; from < count; from += rows) {
        rows = OPDI_MIN(count - from, (int64_t)256);
        for (int64_t i = 0; i < rows; i++) { logs[i] = x[from + i] == 0 ? 1 : y[from + i]; }
        opdi_vlog64(rows, logs, logs);
        for (int64_t i = 0; i < rows; i++) {
            const double times = x[from + i] == 0 ? 0 : x[from + i] * logs[i];
            out[from + i] = y[from + i] != y[from + i] ? y[from + i] : times;
        }
    }
}
OPDI_FORMULA_DV(xlogy, xlogy, OPDI_TO_FLOAT)
OPDI_COLD_BEGIN
OPDI_FORMULA_B(logaddexp, logaddexp, 0)
OPDI_FORMULA_DV(logaddexp2, logaddexp2, 0)
OPDI_FORMULA_F(copysign, copysign, OPDI_TO_FLOAT)
static const opdi_formula opdi_formula_nextafter = {{opdi_f32_vnextafter, opdi_f64_vnextafter, NULL}, "nextafter_cpu",
    0, OPDI_NUMBER(nextafter, nextafter)};
OPDI_FORMULA_A(heaviside, heaviside, 0)
static int opdi_atan2_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_atan2); }
static int opdi_hypot_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_hypot); }
/* Computes x * log(y) or x * log1p(y).  For 16-bit floats, the logarithm is rounded to 16 bits before the
   multiplication, as in PyTorch.  `formula` is the pointwise formula for other dtypes, `log` the operator for the
   logarithm.  Returns 0, or -1 and sets an error. */
static int opdi_times_log(opd_call *call, const opdi_formula *formula, opd_tensor *(*log)(opd_tensor *)) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1);
    if (x->dtype != y->dtype || !opdi_is_half((opd_scalar_type)x->dtype) || x->backend != OPD_CPU) {
        return opdi_binary(call, formula);
    }
    opd_tensor *zero = opd_eq_Scalar(x, opd_value_int(0));
    opd_tensor *product = log(opd_where_ScalarSelf(zero, opd_value_double(1), y));
    (void)opd_mul_(product, x);
    (void)opd_masked_fill_Scalar_(product, zero, opd_value_int(0));
    return opd_return_tensor(call, opd_where_self(opd_isnan(y), y, product));
}
static int opdi_xlogy_kernel(opd_call *call) { return opdi_times_log(call, &opdi_formula_xlogy, opd_log); }
static int opdi_logaddexp_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_logaddexp); }
static int opdi_logaddexp2_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_logaddexp2); }
static int opdi_copysign_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_copysign); }
OPDI_FORMULA_F(nextafter_bf16, nextafter_bf16, 0)
OPDI_FORMULA_F(nextafter_f16, nextafter_f16, 0)
static int opdi_nextafter_kernel(opd_call *call) {
    opd_tensor *ops[2];
    ops[0] = opd_arg_tensor(call, 0);
    ops[1] = opd_arg_tensor(call, 1);
    const opd_scalar_type common = opdi_result_type(ops, 2);
    return opdi_binary(call, common == OPD_BFLOAT16 ? &opdi_formula_nextafter_bf16
                       : common == OPD_FLOAT16 ? &opdi_formula_nextafter_f16 : &opdi_formula_nextafter);
}
static int opdi_heaviside_kernel(opd_call *call) {
    if (opd_arg_tensor(call, 0)->dtype != opd_arg_tensor(call, 1)->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "heaviside is not yet implemented for tensors with different dtypes.");
    }
    return opdi_binary(call, &opdi_formula_heaviside);
}
static int opdi_atan2_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    opd_tensor *const product = opd_mul(input, input), *sum = opd_add(product, opd_mul(other, other));
    opd_tensor *zero = opd_eq_Scalar(sum, opd_value_int(0));
    opd_tensor *keep = opdi_unless(opd_reciprocal(opd_add(sum, zero)), zero);      /* or 0 at (0, 0) */
    OPDI_BW_RETURN(0, opd_mul(opd_mul(grad, other), keep));
    OPDI_BW_RETURN(1, opd_mul(opd_mul(grad, opd_neg(input)), keep));
    return 0;
}
static int opdi_hypot_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *result = opd_bw_result(bw, 0);
    OPDI_BW_RETURN(0, opd_mul(grad, opd_div(opd_bw_tensor(bw, 0), result)));
    OPDI_BW_RETURN(1, opd_mul(grad, opd_div(opd_bw_tensor(bw, 1), result)));
    return 0;
}
static int opdi_xlogy_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    const opd_value zero = opd_value_int(0);
    opd_tensor *none = opd_logical_and(opd_eq_Scalar(input, zero), opd_le_Scalar(other, zero));
    OPDI_BW_RETURN(0, opd_xlogy(grad, opd_masked_fill_Scalar(other, none, opd_value_int(1))));
    OPDI_BW_RETURN(1, opd_div(opd_mul(grad, input), other));
    return 0;
}
static int opdi_logaddexp_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_mul(grad, opd_sigmoid(opd_sub(input, other))));
    OPDI_BW_RETURN(1, opd_mul(grad, opd_sigmoid(opd_sub(other, input))));
    return 0;
}
static int opdi_logaddexp2_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    const double ln2 = 0.69314718055994530942;
    OPDI_BW_RETURN(0, opd_mul(grad, opd_sigmoid(opdi_muls(opd_sub(input, other), ln2))));
    OPDI_BW_RETURN(1, opd_mul(grad, opd_sigmoid(opdi_muls(opd_sub(other, input), ln2))));
    return 0;
}
static int opdi_copysign_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *const sign = opd_sgn(opd_bw_result(bw, 0));
        OPDI_BW_RETURN(0, opd_mul(grad, opd_mul(sign, opd_sgn(input))));
    }
    if (opd_bw_needs(bw, 1)) { return opd_bw_return(bw, 1, opd_zeros_like(grad)); }
    return 0;
}
/* opd_atan2: the angle of the point with the coordinates (other, self), from -pi to pi */
OPDI_OP(atan2) {
    op->schema = "atan2(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_atan2_kernel; op->backward = opdi_atan2_backward; op->save = "self, other";
    op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CORE;
    op->inplace = "atan2_"; op->out = "atan2.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_hypot: sqrt(self^2 + other^2) */
OPDI_OP(hypot) {
    op->schema = "hypot(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_hypot_kernel; op->backward = opdi_hypot_backward;
    op->save = "self(self), other(other), result";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "hypot_"; op->out = "hypot.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_xlogy: self * log(other), but 0 where self is 0 */
OPDI_OP(xlogy_Tensor) {
    op->schema = "xlogy.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_xlogy_kernel; op->backward = opdi_xlogy_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "xlogy_.Tensor"; op->out = "xlogy.OutTensor";
    op->cases = "[2,3], [2,3]+; [2,3], [3]+";
}
/* opd_logaddexp: log(e^self + e^other) */
OPDI_OP(logaddexp) {
    op->schema = "logaddexp(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_logaddexp_kernel; op->backward = opdi_logaddexp_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "logaddexp.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_logaddexp2: log2(2^self + 2^other) */
OPDI_OP(logaddexp2) {
    op->schema = "logaddexp2(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_logaddexp2_kernel; op->backward = opdi_logaddexp2_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA;
    op->out = "logaddexp2.out";
    op->cases = OPDI_CASES_BINARY;
}
/* opd_copysign: self with other's sign */
OPDI_OP(copysign_Tensor) {
    op->schema = "copysign.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_copysign_kernel; op->backward = opdi_copysign_backward;
    op->save = "self(self), result(self)";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "copysign_.Tensor"; op->out = "copysign.out";
    op->cases = OPDI_CASES_BINARY;
}

/* Computes the gradients of nextafter: grad for self, but 0 where self equals other; 0 for other. */
static int opdi_nextafter_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(0, opdi_unless(opd_bw_grad(bw, 0), opd_eq(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1))));
    OPDI_BW_RETURN(1, opd_zeros_like(opd_bw_grad(bw, 0)));
    return 0;
}
/* opd_nextafter: the floating point number next to self in the direction of other */
OPDI_OP(nextafter) {
    op->schema = "nextafter(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_nextafter_kernel; op->backward = opdi_nextafter_backward; op->save = "self, other";
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "nextafter_"; op->out = "nextafter.out";
    op->cases = "[2,3], [2,3]";
}
/* opd_heaviside: 0 where self < 0, values where self is 0, 1 where self > 0 */
OPDI_OP(heaviside) {
    op->schema = "heaviside(Tensor self, Tensor values) -> Tensor";
    op->cpu = op->fake = opdi_heaviside_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "heaviside_"; op->out = "heaviside.out";
    op->cases = "[2,3], [3]";
}

//== where, masked_fill, lerp, addcmul, addcdiv ========================================================================

static const opdi_formula opdi_formula_where = {{opdi_f32_where, opdi_f64_where, opdi_i64_where}, "where_cpu", 0,
    OPDI_NUMBER(where, where)};
static int opdi_check_condition(const opd_tensor *third) {
    if (third->dtype == OPD_BOOL || third->dtype == OPD_UINT8) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "where expected condition to be a boolean tensor, but got a tensor with dtype %s",
                    opd_dtype_name((opd_scalar_type)third->dtype));
}
static int opdi_where_self_kernel(opd_call *call) {
    opd_tensor *ops[4];
    opdi_number number, other;
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opdi_operand_of(call, 1, &number);
    ops[3] = opdi_operand_of(call, 2, &other);
    if (opdi_check_condition(ops[1]) != 0) { return -1; }
    opd_scalar_type dtype = opdi_result_type(ops + 2, 2);
    if ((ops[2] == &number.t && opdi_number_check(opd_arg_value(call, 1), dtype)) ||
        (ops[3] == &other.t && opdi_number_check(opd_arg_value(call, 2), dtype))) {
        return -1;
    }
    return opdi_pointwise_typed(call, &opdi_formula_where, ops, 3, dtype, dtype, &opdi_no_params);
}
static int opdi_where_self_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *third = opd_bw_tensor(bw, 0);
    OPDI_BW_RETURN(1, opdi_where(third, grad));
    OPDI_BW_RETURN(2, opd_where_ScalarSelf(third, opd_value_int(0), grad));
    return 0;
}
/* The kernel of where under vmap if the condition has dtype uint8: calls the operator with a bool condition, because
   the rule of pointwise operators takes a tensor of another dtype for an operand of type promotion. */
static int opdi_where_by_bool(opd_call *call) {
    opd_value args[3];
    for (int i = 0; i < 3; i++) { args[i] = opd_arg_value(call, i); }
    if (opdi_check_condition(args[0].u.t) != 0) { return -1; }
    args[0].u.t = opd_to_dtype(args[0].u.t, OPD_BOOL);
    return args[0].u.t ? opd_return_tensor(call, opd_call_op(call->op, args, 3)) : -1;
}
static int opdi_where_batch(opd_call *call) {
    return opd_arg_tensor(call, 0)->dtype == OPD_BOOL ? opd_batch_pointwise(call)
        : opdi_batch_as(call, opdi_where_by_bool);
}
/* opd_where_self: self where condition is true, else other */
OPDI_OP(where_self) {
    op->schema = "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_where_self_kernel; op->backward = opdi_where_self_backward; op->save = "condition";
    op->vmap = opdi_where_batch;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_POINTWISE | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_EXACT;
    op->out = "where.self_out";
    op->cases = "[2,3]b, [2,3], [3]; [3]b, [2,1], []";
}
/* opd_where_ScalarOther: self where condition is true, else other */
OPDI_OP(where_ScalarOther) {
    op->schema = "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_where_self_kernel; op->backward = opdi_where_self_backward; op->save = "condition";
    op->vmap = opdi_where_batch;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]b, [2,3], 1.5";
}
/* opd_where_ScalarSelf: self where condition is true, else other */
OPDI_OP(where_ScalarSelf) {
    op->schema = "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_where_self_kernel; op->backward = opdi_where_self_backward; op->save = "condition";
    op->vmap = opdi_where_batch;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]b, 1.5, [2,3]";
}

/* The pointwise formula of masked_fill.  The result is contiguous, like the clone that masked_fill makes in PyTorch. */
static const opdi_formula opdi_formula_masked_fill = {{opdi_f32_where, opdi_f64_where, opdi_i64_where}, "masked_fill",
                                                      OPDI_CONTIGUOUS_RESULT, OPDI_NUMBER(where, where)};
/* masked_fill: returns `value`, a number or a tensor without dims, where mask is true, else self.  value is cast to
   self's dtype. */
static int opdi_masked_fill_kernel(opd_call *call) {
    opd_tensor *ops[4], *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    opdi_number number, cast;
    opd_tensor *value = opdi_operand_of(call, 2, &number);
    ops[1] = opd_arg_tensor(call, 1);
    ops[2] = opdi_number_make(&cast, opd_value_int(0));
    ops[3] = self;
    if (ops[1]->dtype != OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_fill only supports boolean masks, but got mask with dtype %s",
                        opd_dtype_name((opd_scalar_type)ops[1]->dtype));
    }
    if (value->ndim != 0) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with %d "
                        "dimension(s).", value->ndim);
    }
    if ((value == &number.t && !opdi_number_fits(opd_arg_value(call, 2), dtype)) ||
        (opd_dtype_is_complex((opd_scalar_type)value->dtype) && !opd_dtype_is_complex(dtype))) {
        return opdi_overflow_fail(dtype);
    }
    cast.t.dtype = (int32_t)dtype;
    if (value->data && opdi_copy(&cast.t, value) != 0) { return -1; }
    return opdi_pointwise_typed(call, &opdi_formula_masked_fill, ops, 3, dtype, dtype, &opdi_no_params);
}
static int opdi_masked_fill_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *mask = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opdi_unless(grad, mask));
    OPDI_BW_RETURN(2, opdi_where(mask, grad));
    return 0;
}
/* opd_masked_fill_Scalar: value where mask is true, else self */
OPDI_OP(masked_fill_Scalar) {
    op->schema = "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor";
    op->cpu = op->fake = opdi_masked_fill_kernel; op->backward = opdi_masked_fill_backward; op->save = "mask";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "masked_fill_.Scalar"; op->out = "masked_fill.Scalar_out";
    op->cases = "[2,3], [2,3]b, 1.5; [2,3], [3]b, 0";
}

/* The kernel that masked_fill has under vmap if each example has its own value: calls where. */
static int opdi_masked_fill_where(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *value = opd_arg_tensor(call, 2);
    if (value->ndim != 0) { return opdi_masked_fill_kernel(call); }
    if (opdi_is_complex(value) && !opdi_is_complex(self)) { return opdi_overflow_fail(opd_dtype(self)); }
    return opd_return_tensor(call, opd_where_self(opd_arg_tensor(call, 1), opd_to_dtype(value, opd_dtype(self)), self));
}
static int opdi_masked_fill_batch(opd_call *call) {
    int dim;
    (void)opd_batch_arg(call, 2, &dim);
    return dim < 0 && opd_arg_tensor(call, 0)->ndim && opd_arg_tensor(call, 1)->ndim ? opd_batch_pointwise(call)
        : opdi_batch_as(call, opdi_masked_fill_where);
}
/* opd_masked_fill: value where mask is true, else self */
OPDI_OP(masked_fill_Tensor) {
    op->schema = "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor";
    op->cpu = op->fake = opdi_masked_fill_kernel; op->backward = opdi_masked_fill_backward; op->save = "mask";
    op->jvp = OPD_JVP_POINTWISE;
    op->vmap = opdi_masked_fill_batch;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "masked_fill_.Tensor"; op->out = "masked_fill.Tensor_out";
    op->cases = "[2,3], [2,3]b, []";
}

/* The pointwise formulas of lerp: self + weight * (end - self). */
OPDI_FORMULA_F(lerp, lerp, 0)
OPDI_FORMULA_F(lerp_scalar, lerp_scalar, 0)
static int opdi_lerp_check(const opd_tensor *tensor, const char *name, opd_scalar_type want) {
    if (tensor->dtype == (int32_t)want) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "expected dtype %s for `%s` but got dtype %s", opd_dtype_name(want), name,
                    opd_dtype_name((opd_scalar_type)tensor->dtype));
}
static int opdi_lerp_kernel(opd_call *call) {
    opd_tensor *ops[4];
    const opd_value wrapped = opd_arg_value(call, 2);
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    opdi_params params = opdi_no_params;
    ops[1] = opd_arg_tensor(call, 0);
    ops[2] = opd_arg_tensor(call, 1);
    if (opdi_lerp_check(ops[2], "end", dtype) != 0) { return -1; }
    if (wrapped.tag != OPD_TAG_TENSOR) {
        opdi_params_set(&params, 0, wrapped);
        return opdi_pointwise_typed(call, &opdi_formula_lerp_scalar, ops, 2, dtype, dtype, &params);
    }
    ops[3] = wrapped.u.t;
    if (opdi_lerp_check(ops[3], "weight", dtype) != 0) { return -1; }
    return opdi_pointwise_typed(call, &opdi_formula_lerp, ops, 3, dtype, dtype, &params);
}
static int opdi_lerp_Scalar_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_value weight = opd_bw_value(bw, 2);
    const double w = opdi_number_f64(weight);
    if (weight.tag == OPD_TAG_COMPLEX) {
        OPDI_BW_RETURN(0, opd_sub(grad, opd_mul_Scalar(grad, weight)));
        OPDI_BW_RETURN(1, opd_mul_Scalar(grad, weight));
        return 0;
    }
    OPDI_BW_RETURN(0, opdi_muls(grad, 1 - w));
    OPDI_BW_RETURN(1, opdi_muls(grad, w));
    return 0;
}
static int opdi_lerp_Tensor_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1),
        *weight = opd_bw_tensor(bw, 2);
    OPDI_BW_RETURN(0, opd_mul(grad, opdi_rsubs(1, weight)));
    OPDI_BW_RETURN(1, opd_mul(grad, weight));
    OPDI_BW_RETURN(2, opd_mul(grad, opd_sub(other, input)));
    return 0;
}
/* opd_lerp_Scalar: self + weight * (end - self) */
OPDI_OP(lerp_Scalar) {
    op->schema = "lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor";
    op->cpu = op->fake = opdi_lerp_kernel; op->backward = opdi_lerp_Scalar_backward;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "lerp_.Scalar"; op->out = "lerp.Scalar_out";
    op->cases = "[2,3], [2,3], 0.3; [2,3], [3], 0.8";
}
/* opd_lerp: self + weight * (end - self) */
OPDI_OP(lerp_Tensor) {
    op->schema = "lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor";
    op->cpu = op->fake = opdi_lerp_kernel; op->backward = opdi_lerp_Tensor_backward;
    op->save = "self(weight), end(weight), weight";
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->inplace = "lerp_.Tensor"; op->out = "lerp.Tensor_out";
    op->cases = "[2,3], [2,3], [3]";
}

OPDI_FORMULA_A(addcmul, addcmul, OPDI_NOT_BOOL)
OPDI_FORMULA_F(addcdiv, addcdiv, 0)
static int opdi_addc(opd_call *call, const opdi_formula *formula) {
    opd_tensor *ops[4];
    opdi_params params = opdi_params_of(call, 3, 1);
    for (int i = 0; i < 3; i++) { ops[i + 1] = opd_arg_tensor(call, i); }
    if (opd_dtype_is_integral((opd_scalar_type)ops[1]->dtype, true) &&
        opdi_number_check(opd_arg_value(call, 3), opdi_result_type(ops + 1, 3))) {
        return -1;
    }
    return opdi_pointwise(call, formula, ops, 3, &params);
}
static int opdi_addcmul_kernel(opd_call *call) { return opdi_addc(call, &opdi_formula_addcmul); }
static int opdi_addcdiv_kernel(opd_call *call) {
    if (opd_dtype_is_integral((opd_scalar_type)opd_arg_tensor(call, 1)->dtype, true) &&
        opd_dtype_is_integral((opd_scalar_type)opd_arg_tensor(call, 2)->dtype, true)) {
        return opd_fail(OPD_ERROR_DTYPE,
                        "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will "
                        "perform a true division of tensor1 and tensor2.");
    }
    return opdi_addc(call, &opdi_formula_addcdiv);
}
static int opdi_addcmul_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_value value = opd_bw_value(bw, 3);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(1, opd_mul(grad, opdi_scale(opd_bw_tensor(bw, 2), value)));
    OPDI_BW_RETURN(2, opd_mul(grad, opdi_scale(opd_bw_tensor(bw, 1), value)));
    return 0;
}
static int opdi_addcdiv_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *t1 = opd_bw_tensor(bw, 1), *t2 = opd_bw_tensor(bw, 2);
    const opd_value value = opd_bw_value(bw, 3);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(1, opd_mul(grad, opdi_scale(opd_reciprocal(t2), value)));
    if (opd_bw_needs(bw, 2)) {
        opd_tensor *const minus = opd_neg(grad), *const first = opdi_scale(t1, value);
        OPDI_BW_RETURN(2, opd_mul(minus, opd_div(first, opd_mul(t2, t2))));
    }
    return 0;
}
/* opd_addcmul(self, tensor1, tensor2, value): self + value * tensor1 * tensor2 */
OPDI_OP(addcmul) {
    op->schema = "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor";
    op->cpu = op->fake = opdi_addcmul_kernel; op->backward = opdi_addcmul_backward;
    op->save = "tensor1(tensor2), tensor2(tensor1)";
    op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU; op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "addcmul_"; op->out = "addcmul.out";
    op->cases = "[2,3], [2,3], [3]; [2,3], [2,1], [3], value=2";
}
/* opd_addcdiv(self, tensor1, tensor2, value): self + value * tensor1 / tensor2 */
OPDI_OP(addcdiv) {
    op->schema = "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor";
    op->cpu = op->fake = opdi_addcdiv_kernel; op->backward = opdi_addcdiv_backward;
    op->save = "tensor1(tensor2), tensor2";
    op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU; op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "addcdiv_"; op->out = "addcdiv.out";
    op->cases = "[2,3], [2,3], [3]+; [2,3], [2,1], [3]+, value=2";
}
OPDI_COLD_END
