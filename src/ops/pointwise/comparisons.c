#include "../ops.h"

//== comparisons, logical and bitwise operators ========================================================================

OPDI_FORMULA_A(eq, eq, OPDI_TO_BOOL)
static int opdi_eq_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_eq); }
/* opd_eq: self == other */
OPDI_OP(eq_Tensor) {
    op->schema = "eq.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_eq_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "eq_.Tensor"; op->out = "eq.Tensor_out";
    op->cases = "[2,3], [2,3]; [2,3]i3, [3]i3";
}
/* opd_eq_Scalar: self == other */
OPDI_OP(eq_Scalar) {
    op->schema = "eq.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_eq_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "eq_.Scalar"; op->out = "eq.Scalar_out";
    op->cases = "[2,3], 0.5; [2,3]i3, 1";
}

OPDI_FORMULA_A(ne, ne, OPDI_TO_BOOL)
static int opdi_ne_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_ne); }
/* opd_ne: self != other */
OPDI_OP(ne_Tensor) {
    op->schema = "ne.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_ne_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "ne_.Tensor"; op->out = "ne.Tensor_out";
    op->cases = "[2,3], [2,3]; [2,3]i3, [3]i3";
}
/* opd_ne_Scalar: self != other */
OPDI_OP(ne_Scalar) {
    op->schema = "ne.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_ne_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "ne_.Scalar"; op->out = "ne.Scalar_out";
    op->cases = "[2,3], 0.5; [2,3]i3, 1";
}

OPDI_FORMULA_A(lt, lt, OPDI_TO_BOOL)
static int opdi_lt_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_lt); }
/* opd_lt: self < other */
OPDI_OP(lt_Tensor) {
    op->schema = "lt.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_lt_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "lt_.Tensor"; op->out = "lt.Tensor_out";
    op->cases = "[2,3], [2,3]; [2,3]i3, [3]i3";
}
/* opd_lt_Scalar: self < other */
OPDI_OP(lt_Scalar) {
    op->schema = "lt.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_lt_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "lt_.Scalar"; op->out = "lt.Scalar_out";
    op->cases = "[2,3], 0.5; [2,3]i3, 1";
}

OPDI_FORMULA_A(le, le, OPDI_TO_BOOL)
static int opdi_le_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_le); }
/* opd_le: self <= other */
OPDI_OP(le_Tensor) {
    op->schema = "le.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_le_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "le_.Tensor"; op->out = "le.Tensor_out";
    op->cases = "[2,3], [2,3]; [2,3]i3, [3]i3";
}
/* opd_le_Scalar: self <= other */
OPDI_OP(le_Scalar) {
    op->schema = "le.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_le_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "le_.Scalar"; op->out = "le.Scalar_out";
    op->cases = "[2,3], 0.5; [2,3]i3, 1";
}

OPDI_FORMULA_A(gt, gt, OPDI_TO_BOOL)
static int opdi_gt_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_gt); }
/* opd_gt: self > other */
OPDI_OP(gt_Tensor) {
    op->schema = "gt.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_gt_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "gt_.Tensor"; op->out = "gt.Tensor_out";
    op->cases = "[2,3], [2,3]; [2,3]i3, [3]i3";
}
/* opd_gt_Scalar: self > other */
OPDI_OP(gt_Scalar) {
    op->schema = "gt.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_gt_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "gt_.Scalar"; op->out = "gt.Scalar_out";
    op->cases = "[2,3], 0.5; [2,3]i3, 1";
}

OPDI_FORMULA_A(ge, ge, OPDI_TO_BOOL)
static int opdi_ge_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_ge); }
/* opd_ge: self >= other */
OPDI_OP(ge_Tensor) {
    op->schema = "ge.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_ge_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "ge_.Tensor"; op->out = "ge.Tensor_out";
    op->cases = "[2,3], [2,3]; [2,3]i3, [3]i3";
}
/* opd_ge_Scalar: self >= other */
OPDI_OP(ge_Scalar) {
    op->schema = "ge.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_ge_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "ge_.Scalar"; op->out = "ge.Scalar_out";
    op->cases = "[2,3], 0.5; [2,3]i3, 1";
}

/* Returns whether both arguments are bool tensors, for which logical and bitwise operators are the same. */
static bool opdi_are_bools(const opd_call *call) {
    return opd_arg_tensor(call, 0)->dtype == OPD_BOOL && opd_arg_tensor(call, 1)->dtype == OPD_BOOL;
}
OPDI_FORMULA_I(bitwise_and, bitwise_and, 0, opdi_bits_or_words_run)
OPDI_FORMULA_DI(logical_and, logical_and, OPDI_TO_BOOL)
static int opdi_logical_and_kernel(opd_call *call) {
    return opdi_binary(call, opdi_are_bools(call) ? &opdi_formula_bitwise_and : &opdi_formula_logical_and);
}
/* opd_logical_and: true where self and other are both not 0 */
OPDI_OP(logical_and) {
    op->schema = "logical_and(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_logical_and_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "logical_and_"; op->out = "logical_and.out";
    op->cases = "[2,3]b, [2,3]b; [2,3]i3, [3]i3";
}

OPDI_FORMULA_I(bitwise_or, bitwise_or, 0, opdi_bits_or_words_run)
OPDI_FORMULA_DI(logical_or, logical_or, OPDI_TO_BOOL)
static int opdi_logical_or_kernel(opd_call *call) {
    return opdi_binary(call, opdi_are_bools(call) ? &opdi_formula_bitwise_or : &opdi_formula_logical_or);
}
/* opd_logical_or: true where self or other or both are not 0 */
OPDI_OP(logical_or) {
    op->schema = "logical_or(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_logical_or_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "logical_or_"; op->out = "logical_or.out";
    op->cases = "[2,3]b, [2,3]b; [2,3]i3, [3]i3";
}

OPDI_FORMULA_I(bitwise_xor, bitwise_xor, 0, opdi_bits_or_words_run)
OPDI_FORMULA_DI(logical_xor, logical_xor, OPDI_TO_BOOL)
static int opdi_logical_xor_kernel(opd_call *call) {
    return opdi_binary(call, opdi_are_bools(call) ? &opdi_formula_bitwise_xor : &opdi_formula_logical_xor);
}
/* opd_logical_xor: true where exactly one of self and other is not 0 */
OPDI_OP(logical_xor) {
    op->schema = "logical_xor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_logical_xor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "logical_xor_"; op->out = "logical_xor.out";
    op->cases = "[2,3]b, [2,3]b; [2,3]i3, [3]i3";
}

static int opdi_bitwise_and_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_bitwise_and); }
/* opd_bitwise_and: self & other */
OPDI_OP(bitwise_and_Tensor) {
    op->schema = "bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_and_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "bitwise_and_.Tensor"; op->out = "bitwise_and.Tensor_out";
    op->cases = "[2,3]i5, [2,3]i5; [2,3]i5, [3]i5";
}
/* opd_bitwise_and_Scalar: self & other */
OPDI_OP(bitwise_and_Scalar) {
    op->schema = "bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_and_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "bitwise_and_.Scalar"; op->out = "bitwise_and.Scalar_out";
    op->cases = "[2,3]i5, 2";
}
/* opd_bitwise_and_Scalar_Tensor: self & other */
OPDI_OP(bitwise_and_Scalar_Tensor) {
    op->schema = "bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_and_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "bitwise_and.Scalar_Tensor_out";
    op->cases = "2, [2,3]i5";
}

static int opdi_bitwise_or_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_bitwise_or); }
/* opd_bitwise_or: self | other */
OPDI_OP(bitwise_or_Tensor) {
    op->schema = "bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_or_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "bitwise_or_.Tensor"; op->out = "bitwise_or.Tensor_out";
    op->cases = "[2,3]i5, [2,3]i5; [2,3]i5, [3]i5";
}
/* opd_bitwise_or_Scalar: self | other */
OPDI_OP(bitwise_or_Scalar) {
    op->schema = "bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_or_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "bitwise_or_.Scalar"; op->out = "bitwise_or.Scalar_out";
    op->cases = "[2,3]i5, 2";
}
/* opd_bitwise_or_Scalar_Tensor: self | other */
OPDI_OP(bitwise_or_Scalar_Tensor) {
    op->schema = "bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_or_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "bitwise_or.Scalar_Tensor_out";
    op->cases = "2, [2,3]i5";
}

static int opdi_bitwise_xor_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_bitwise_xor); }
/* opd_bitwise_xor: self ^ other */
OPDI_OP(bitwise_xor_Tensor) {
    op->schema = "bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_xor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "bitwise_xor_.Tensor"; op->out = "bitwise_xor.Tensor_out";
    op->cases = "[2,3]i5, [2,3]i5; [2,3]i5, [3]i5";
}
/* opd_bitwise_xor_Scalar: self ^ other */
OPDI_OP(bitwise_xor_Scalar) {
    op->schema = "bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_xor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPD_OPTAG_CORE;
    op->inplace = "bitwise_xor_.Scalar"; op->out = "bitwise_xor.Scalar_out";
    op->cases = "[2,3]i5, 2";
}
/* opd_bitwise_xor_Scalar_Tensor: self ^ other */
OPDI_OP(bitwise_xor_Scalar_Tensor) {
    op->schema = "bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_xor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "bitwise_xor.Scalar_Tensor_out";
    op->cases = "2, [2,3]i5";
}

OPDI_FORMULA_I(bitwise_left_shift, bitwise_left_shift, OPDI_NOT_BOOL, opdi_bits_run)
static int opdi_bitwise_left_shift_kernel(opd_call *call) {
    return opdi_binary(call, &opdi_formula_bitwise_left_shift);
}
/* opd_bitwise_left_shift: self << other */
OPDI_OP(bitwise_left_shift_Tensor) {
    op->schema = "bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_left_shift_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "bitwise_left_shift_.Tensor"; op->out = "bitwise_left_shift.Tensor_out";
    op->cases = "[2,3]i5, [2,3]i5; [2,3]i5, [3]i5";
}
/* opd_bitwise_left_shift_Tensor_Scalar: self << other */
OPDI_OP(bitwise_left_shift_Tensor_Scalar) {
    op->schema = "bitwise_left_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_left_shift_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "bitwise_left_shift_.Tensor_Scalar"; op->out = "bitwise_left_shift.Tensor_Scalar_out";
    op->cases = "[2,3]i5, 2";
}
/* opd_bitwise_left_shift_Scalar_Tensor: self << other */
OPDI_OP(bitwise_left_shift_Scalar_Tensor) {
    op->schema = "bitwise_left_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_left_shift_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "bitwise_left_shift.Scalar_Tensor_out";
    op->cases = "2, [2,3]i5";
}

OPDI_FORMULA_I(bitwise_right_shift, bitwise_right_shift, OPDI_NOT_BOOL, opdi_bits_run)
static int opdi_bitwise_right_shift_kernel(opd_call *call) {
    return opdi_binary(call, &opdi_formula_bitwise_right_shift);
}
/* opd_bitwise_right_shift: self >> other */
OPDI_OP(bitwise_right_shift_Tensor) {
    op->schema = "bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_right_shift_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "bitwise_right_shift_.Tensor"; op->out = "bitwise_right_shift.Tensor_out";
    op->cases = "[2,3]i5, [2,3]i5; [2,3]i5, [3]i5";
}
/* opd_bitwise_right_shift_Tensor_Scalar: self >> other */
OPDI_OP(bitwise_right_shift_Tensor_Scalar) {
    op->schema = "bitwise_right_shift.Tensor_Scalar(Tensor self, Scalar other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_right_shift_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "bitwise_right_shift_.Tensor_Scalar"; op->out = "bitwise_right_shift.Tensor_Scalar_out";
    op->cases = "[2,3]i5, 2";
}
/* opd_bitwise_right_shift_Scalar_Tensor: self >> other */
OPDI_OP(bitwise_right_shift_Scalar_Tensor) {
    op->schema = "bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_bitwise_right_shift_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA | OPDI_OPTAG_OUT_EXACT;
    op->out = "bitwise_right_shift.Scalar_Tensor_out";
    op->cases = "2, [2,3]i5";
}

static int opdi_and_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_and(self, other.u.t)
                             : opd_bitwise_and_Scalar(self, other));
}
/* opd_and_Tensor: self & other, for each bit */
OPDI_OP(__and___Tensor) {
    op->schema = "__and__.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_and_kernel;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_and_Scalar: self & other, for each bit */
OPDI_OP(__and___Scalar) {
    op->schema = "__and__.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_and_kernel;
    op->cases = "[2,3]i5, 2";
}
static int opdi_iand_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_and_(self, other.u.t)
                             : opd_bitwise_and_Scalar_(self, other));
}
/* opd_iand_Tensor: writes self & other to self */
OPDI_OP(__iand___Tensor) {
    op->schema = "__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
    op->composite = opdi_iand_kernel;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_iand_Scalar: writes self & other to self */
OPDI_OP(__iand___Scalar) {
    op->schema = "__iand__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)";
    op->composite = opdi_iand_kernel;
    op->cases = "[2,3]i5, 2";
}
static int opdi_or_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_or(self, other.u.t)
                             : opd_bitwise_or_Scalar(self, other));
}
/* opd_or_Tensor: self | other, for each bit */
OPDI_OP(__or___Tensor) {
    op->schema = "__or__.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_or_kernel;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_or_Scalar: self | other, for each bit */
OPDI_OP(__or___Scalar) {
    op->schema = "__or__.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_or_kernel;
    op->cases = "[2,3]i5, 2";
}
static int opdi_ior_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_or_(self, other.u.t)
                             : opd_bitwise_or_Scalar_(self, other));
}
/* opd_ior_Tensor: writes self | other to self */
OPDI_OP(__ior___Tensor) {
    op->schema = "__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
    op->composite = opdi_ior_kernel;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_ior_Scalar: writes self | other to self */
OPDI_OP(__ior___Scalar) {
    op->schema = "__ior__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)";
    op->composite = opdi_ior_kernel;
    op->cases = "[2,3]i5, 2";
}
static int opdi_xor_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_xor(self, other.u.t)
                             : opd_bitwise_xor_Scalar(self, other));
}
/* opd_xor_Tensor: self ^ other, for each bit */
OPDI_OP(__xor___Tensor) {
    op->schema = "__xor__.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_xor_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_xor_Scalar: self ^ other, for each bit */
OPDI_OP(__xor___Scalar) {
    op->schema = "__xor__.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_xor_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]i5, 2";
}
static int opdi_ixor_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_xor_(self, other.u.t)
                             : opd_bitwise_xor_Scalar_(self, other));
}
/* opd_ixor_Tensor: writes self ^ other to self */
OPDI_OP(__ixor___Tensor) {
    op->schema = "__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
    op->composite = opdi_ixor_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_ixor_Scalar: writes self ^ other to self */
OPDI_OP(__ixor___Scalar) {
    op->schema = "__ixor__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)";
    op->composite = opdi_ixor_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]i5, 2";
}
static int opdi_lshift_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_left_shift(self, other.u.t)
                             : opd_bitwise_left_shift_Tensor_Scalar(self, other));
}
/* opd_lshift_Tensor: self << other */
OPDI_OP(__lshift___Tensor) {
    op->schema = "__lshift__.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_lshift_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->out = "__lshift__.Tensor_out";
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_lshift_Scalar: self << other */
OPDI_OP(__lshift___Scalar) {
    op->schema = "__lshift__.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_lshift_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->out = "__lshift__.Scalar_out";
    op->cases = "[2,3]i5, 2";
}
static int opdi_ilshift_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_left_shift_(self, other.u.t)
                             : opd_bitwise_left_shift_Tensor_Scalar_(self, other));
}
/* opd_ilshift_Tensor: writes self << other to self */
OPDI_OP(__ilshift___Tensor) {
    op->schema = "__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
    op->composite = opdi_ilshift_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_ilshift_Scalar: writes self << other to self */
OPDI_OP(__ilshift___Scalar) {
    op->schema = "__ilshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)";
    op->composite = opdi_ilshift_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]i5, 2";
}
static int opdi_rshift_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_right_shift(self, other.u.t)
                             : opd_bitwise_right_shift_Tensor_Scalar(self, other));
}
/* opd_rshift_Tensor: self >> other */
OPDI_OP(__rshift___Tensor) {
    op->schema = "__rshift__.Tensor(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_rshift_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->out = "__rshift__.Tensor_out";
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_rshift_Scalar: self >> other */
OPDI_OP(__rshift___Scalar) {
    op->schema = "__rshift__.Scalar(Tensor self, Scalar other) -> Tensor";
    op->composite = opdi_rshift_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->out = "__rshift__.Scalar_out";
    op->cases = "[2,3]i5, 2";
}
static int opdi_irshift_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value other = opd_arg_value(call, 1);
    return opd_return_tensor(call, other.tag == OPD_TAG_TENSOR ? opd_bitwise_right_shift_(self, other.u.t)
                             : opd_bitwise_right_shift_Tensor_Scalar_(self, other));
}
/* opd_irshift_Tensor: writes self >> other to self */
OPDI_OP(__irshift___Tensor) {
    op->schema = "__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)";
    op->composite = opdi_irshift_kernel;
    op->cases = "[2,3]i5, [3]i5";
}
/* opd_irshift_Scalar: writes self >> other to self */
OPDI_OP(__irshift___Scalar) {
    op->schema = "__irshift__.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)";
    op->composite = opdi_irshift_kernel;
    op->cases = "[2,3]i5, 2";
}

OPDI_FORMULA_I(gcd, gcd, OPDI_NOT_BOOL, NULL)
static int opdi_gcd_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_gcd); }
/* opd_gcd: the greatest common divisor of two integers */
OPDI_OP(gcd) {
    op->schema = "gcd(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_gcd_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "gcd_"; op->out = "gcd.out";
    op->cases = "[2,3]i9, [3]i9";
}

OPDI_FORMULA_I(lcm, lcm, OPDI_NOT_BOOL, NULL)
static int opdi_lcm_kernel(opd_call *call) { return opdi_binary(call, &opdi_formula_lcm); }
/* opd_lcm: the least common multiple of two integers */
OPDI_OP(lcm) {
    op->schema = "lcm(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_lcm_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->tags = OPDI_OPTAG_FORMULA;
    op->inplace = "lcm_"; op->out = "lcm.out";
    op->cases = "[2,3]i9, [3]i9";
}
