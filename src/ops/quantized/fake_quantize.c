#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:quantized  numbers as integers with scales and zero points, and layers of such numbers
//
//  An integer q stands for (q - zero_point) * scale.
//----------------------------------------------------------------------------------------------------------------------

//== fake quantisation, for training quantised models ==================================================================
//
//  A fake quantisation rounds each number to one that an integer with a scale and a zero point can represent.  The
//  gradient passes through unchanged where the number was in range.  In the learnable forms, scale and zero point have
//  gradients, too (learned step sizes, LSQ).

/* A quantization: an integer n, low <= n <= high, stands for the number (n - zero) * scale.  inverse is 1 / scale in
   float.  If `fine` is true, zero need not be an integer.  If `single` is true, n is converted back in float32 even if
   input is float64. */
typedef struct opdi_quant {
    opd_tensor *scale, *inverse, *zero;
    int64_t low, high;
    bool fine, single;
} opdi_quant;

/* Reads quant_min and quant_max, the arguments from number `at` on, into *quant.  Returns 0, or -1 and sets an
   error. */
static int opdi_quant_range(const opd_call *call, int at, opdi_quant *quant) {
    quant->low = opd_arg_int(call, at);
    quant->high = opd_arg_int(call, at + 1);
    quant->fine = false;
    quant->single = true;
    if (quant->low <= quant->high) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "`quant_min` should be less than or equal to `quant_max`.");
}
/* Checks that the zero points are within the range, if their data can be read.  Returns 0, or -1 and sets an error. */
static int opdi_quant_zeros(const opdi_quant *quant, opd_tensor *zero) {
    while (zero->flags & OPDI_BATCHED) { zero = opdi_batched_of(zero)->value; }
    if (!zero->data || zero->backend != OPD_CPU) { return 0; }
    zero = opdi_dense_as(zero, OPD_FLOAT64);
    for (int64_t i = 0; zero && i < zero->numel; i++) {
        const double each = ((const double *)(const void *)zero->data)[i];
        if (!(each >= (double)quant->low && each <= (double)quant->high)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "`zero_point` must be between `quant_min` and `quant_max`.");
        }
    }
    return zero ? 0 : -1;
}
/* Sets the two results of the call: input with each element quantized and converted back, and a mask that is true if
   the quantized number is within range.  NaN becomes the lowest number.  If `enabled` is not NULL and holds 0, the
   first result is input and the mask is true.  Returns 0, or -1 and sets an error. */
static int opdi_quant_return(opd_call *call, opd_tensor *input, const opdi_quant *quant, opd_tensor *enabled) {
    const opd_scalar_type work = input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const opd_value low = opd_value_int(quant->low), high = opd_value_int(quant->high);
    if (!opd_dtype_is_floating((opd_scalar_type)input->dtype)) {
        return opdi_dtype_fail("fake_quantize", input->dtype);
    }
    opd_tensor *x = opd_to_dtype(input, work), *number = x && quant->inverse ? opd_mul(x, quant->inverse) : NULL;
    if (!number) { return -1; }
    number = quant->fine ? opd_round(opd_add(number, quant->zero)) : opd_add(opd_round(number), quant->zero);
    opd_tensor *mask = opd_logical_and(opd_ge_Scalar(number, low), opd_le_Scalar(number, high));
    number = opd_clamp(opd_where_ScalarSelf(opd_ne(number, number), low, number), low, high);
    if (quant->single) { number = opd_to_dtype(number, OPD_FLOAT32); }
    opd_tensor *out = opd_to_dtype(opd_mul(opd_sub(number, quant->zero), quant->scale), (opd_scalar_type)input->dtype);
    if (enabled && opd_ok()) {
        opd_tensor *off = opd_eq_Scalar(enabled, opd_value_int(0));
        out = opd_where_self(off, input, out);
        mask = opd_logical_or(off, mask);
    }
    return !opd_ok() || opd_return_tensor(call, out) ? -1 : opd_return_tensor(call, mask);
}
static int opdi_fake_quantize_tensor_kernel(opd_call *call) {
    const float scale = (float)opd_arg_double(call, 1);
    const int64_t zero = opd_arg_int(call, 2);
    opdi_quant quant;
    if (opdi_quant_range(call, 3, &quant)) { return -1; }
    if (zero < quant.low || zero > quant.high) {
        return opd_fail(OPD_ERROR_ARGUMENT, "`zero_point` must be between `quant_min` and `quant_max`.");
    }
    quant.scale = opd_tensor_wrapped_number(opd_value_double((double)scale));
    quant.inverse = opd_tensor_wrapped_number(opd_value_double((double)(1.0f / scale)));
    quant.zero = opd_tensor_wrapped_number(opd_value_int(zero));
    return opdi_quant_return(call, opd_arg_tensor(call, 0), &quant, NULL);
}
/* Returns `tensor` as float, with ndim dims: its elements lie along dim `dim`, and all other dims have size 1.  If
   dim is negative, all dims have size 1. */
static opd_tensor *opdi_quant_along(opd_tensor *tensor, int64_t dim, int ndim) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { sizes[i] = i == dim ? tensor->numel : 1; }
    return opdi_reshape_to(opd_to_dtype(tensor, OPD_FLOAT32), sizes, ndim);
}
static int opdi_fake_quantize_qparams_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *scale = opd_arg_tensor(call, 1), *zero = opd_arg_tensor(call, 2),
        *enabled = opd_arg_tensor(call, 3);
    opdi_quant quant;
    if (opdi_quant_range(call, 4, &quant)) { return -1; }
    if (scale->numel != 1 || zero->numel != 1 || enabled->numel != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "scale, zero_point and fake_quant_enabled must have one "
                        "element each");
    }
    quant.scale = opdi_quant_along(scale, -1, 0);
    quant.zero = opd_trunc(opdi_quant_along(zero, -1, 0));
    quant.inverse = opd_reciprocal(quant.scale);
    enabled = opdi_reshape_to(enabled, NULL, 0);
    return opd_ok() ? opdi_quant_return(call, input, &quant, enabled) : -1;
}
static int opdi_fake_quantize_channel_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *scale = opd_arg_tensor(call, 1), *zero = opd_arg_tensor(call, 2);
    const int64_t axis = opd_arg_int(call, 3);
    opdi_quant quant;
    if (scale->dtype != OPD_FLOAT32 && scale->dtype != OPD_BFLOAT16) {
        return opd_fail(OPD_ERROR_DTYPE, "Scale must be float32 or bfloat16, found %s",
                        opd_dtype_name((opd_scalar_type)scale->dtype));
    }
    if (zero->dtype != OPD_INT32 && zero->dtype != OPD_FLOAT32 && zero->dtype != OPD_FLOAT16) {
        return opd_fail(OPD_ERROR_DTYPE, "Zero-point must be int32, float32 or float16, found %s",
                        opd_dtype_name((opd_scalar_type)zero->dtype));
    }
    if (scale->ndim != 1 || zero->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "scale and zero_point should be 1-D tensors");
    }
    if (scale->numel != zero->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "scale and zero-point need to have the same dimensions");
    }
    if (axis < 0 || axis >= input->ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "`axis` must be between 0 and number of dimensions of input");
    }
    if (scale->numel != opdi_sizes(input)[axis]) {
        return opd_fail(OPD_ERROR_SHAPE, "dimensions of scale and zero-point are not consistent with input tensor");
    }
    if (opdi_quant_range(call, 4, &quant)) { return -1; }
    quant.fine = zero->dtype != OPD_INT32;
    quant.single = false;
    if (!quant.fine && opdi_quant_zeros(&quant, zero)) { return -1; }
    quant.scale = opdi_quant_along(scale, axis, input->ndim);
    quant.zero = opdi_quant_along(zero, axis, input->ndim);
    quant.inverse = opd_reciprocal(quant.scale);
    return opd_ok() ? opdi_quant_return(call, input, &quant, NULL) : -1;
}
/* Computes the straight-through gradient: grad for elements whose quantized number was within range, else 0. */
static int opdi_fake_quantize_mask_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1);
    if (mask->dtype != OPD_BOOL) { return opd_fail(OPD_ERROR_DTYPE, "mask must have dtype bool"); }
    if (mask->numel != grad->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "`mask` and `dY` are not the same size: `mask` is size %lld and `dY` is size "
                        "%lld", (long long)mask->numel, (long long)grad->numel);
    }
    return opd_return_tensor(call, grad->numel ? opd_mul(grad, mask) : grad);
}
static int opdi_fake_quantize_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_fake_quantize_per_tensor_affine_cachemask_backward(opd_bw_grad(bw, 0),
                                                                                       opd_bw_result(bw, 1)));
}
static int opdi_fake_quantize_per_tensor_kernel(opd_call *call) {
    opd_tensor *rets[2];
    return opd_fake_quantize_per_tensor_affine_cachemask(rets, opd_arg_tensor(call, 0), opd_arg_double(call, 1),
                                                         opd_arg_int(call, 2), opd_arg_int(call, 3),
                                                         opd_arg_int(call, 4))
        ? -1 : opd_return_tensor(call, rets[0]);
}
static int opdi_fake_quantize_per_tensor_qparams_kernel(opd_call *call) {
    opd_tensor *rets[2], *scale = opd_arg_tensor(call, 1), *on = opd_new_ones(scale, OPD_INTS(1));
    return !on || opd__fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        rets, opd_arg_tensor(call, 0), scale, opd_arg_tensor(call, 2), on, opd_arg_int(call, 3), opd_arg_int(call, 4))
        ? -1 : opd_return_tensor(call, rets[0]);
}
static int opdi_fake_quantize_per_channel_kernel(opd_call *call) {
    opd_tensor *rets[2];
    return opd_fake_quantize_per_channel_affine_cachemask(rets, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                          opd_arg_tensor(call, 2), opd_arg_int(call, 3),
                                                          opd_arg_int(call, 4), opd_arg_int(call, 5))
        ? -1 : opd_return_tensor(call, rets[0]);
}
/* opd_fake_quantize_per_tensor_affine: self rounded to (n - zero_point) scale, n from quant_min to quant_max */
OPDI_OP(fake_quantize_per_tensor_affine) {
    op->schema = "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int "
        "quant_max) -> Tensor";
    op->composite = opdi_fake_quantize_per_tensor_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "";
}
/* opd_fake_quantize_per_tensor_affine_tensor_qparams: fake_quantize_per_tensor_affine by scale, zero_point tensors */
OPDI_OP(fake_quantize_per_tensor_affine_tensor_qparams) {
    op->schema = "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int "
        "quant_min, int quant_max) -> Tensor";
    op->composite = opdi_fake_quantize_per_tensor_qparams_kernel;
    op->cases = "";
}
/* opd_fake_quantize_per_tensor_affine_cachemask: fake_quantize_per_tensor_affine, and a mask of elements in range */
OPDI_OP(fake_quantize_per_tensor_affine_cachemask) {
    op->schema = "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, "
        "int quant_max) -> (Tensor output, Tensor mask)";
    op->any = opdi_fake_quantize_tensor_kernel; op->backward = opdi_fake_quantize_backward; op->save = "result1";
    op->vmap = OPD_BATCH_POINTWISE;        /* batch this operator, not the operators that its kernel calls */
    op->out = "fake_quantize_per_tensor_affine_cachemask.out(Tensor self, float scale, int zero_point, int quant_min, "
        "int quant_max, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))";
    op->cases = "";
}
/* opd__fake_quantize_per_tensor_affine_cachemask_tensor_qparams: the same with tensors; self if fake_quant_enabled
   is 0 */
OPDI_OP(_fake_quantize_per_tensor_affine_cachemask_tensor_qparams) {
    op->schema = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor "
        "zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)";
    op->any = opdi_fake_quantize_qparams_kernel; op->backward = opdi_fake_quantize_backward; op->save = "result1";
    op->constant = "scale, zero_point, fake_quant_enabled";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.out(Tensor self, Tensor scale, Tensor "
        "zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max, *, Tensor(a!) out0, Tensor(b!) out1) -> "
        "(Tensor(a!), Tensor(b!))";
    op->cases = "";
}
/* opd_fake_quantize_per_tensor_affine_cachemask_backward: derivative of fake_quantize_per_tensor_affine */
OPDI_OP(fake_quantize_per_tensor_affine_cachemask_backward) {
    op->schema = "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor";
    op->composite = opdi_fake_quantize_mask_kernel;
    op->cases = "[2,3], [2,3]b";
}
/* opd_fake_quantize_per_channel_affine: fake quantization with a scale and a zero_point for each index of axis */
OPDI_OP(fake_quantize_per_channel_affine) {
    op->schema = "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int "
        "quant_min, int quant_max) -> Tensor";
    op->composite = opdi_fake_quantize_per_channel_kernel;
    op->cases = "";
}
/* opd_fake_quantize_per_channel_affine_cachemask: fake_quantize_per_channel_affine, and a mask of elements in range */
OPDI_OP(fake_quantize_per_channel_affine_cachemask) {
    op->schema = "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, "
        "int quant_min, int quant_max) -> (Tensor output, Tensor mask)";
    op->any = opdi_fake_quantize_channel_kernel; op->backward = opdi_fake_quantize_backward; op->save = "result1";
    op->constant = "scale, zero_point";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "fake_quantize_per_channel_affine_cachemask.out(Tensor self, Tensor scale, Tensor zero_point, int axis, "
        "int quant_min, int quant_max, *, Tensor(a!) out0, Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))";
    op->cases = "";
}
/* opd_fake_quantize_per_channel_affine_cachemask_backward: derivative of fake_quantize_per_channel_affine */
OPDI_OP(fake_quantize_per_channel_affine_cachemask_backward) {
    op->schema = "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor";
    op->composite = opdi_fake_quantize_mask_kernel;
    op->cases = "[2,3], [2,3]b";
}

//== learnable scales and zero points ==================================================================================

/* Returns the zero point as an integer between quant_min and quant_max, in float32, along dim `axis` of a tensor of
   ndim dims.  Axis -1: one number for all elements.  For the gradients of this form, which `back` says, PyTorch rounds
   in another way. */
static opd_tensor *opdi_learnable_zero(opd_tensor *zero, const opdi_quant *quant, int64_t axis, int ndim, bool back) {
    const opd_value low = opd_value_int(quant->low), high = opd_value_int(quant->high);
    zero = opdi_quant_along(zero, axis, axis < 0 ? 0 : ndim);
    return back && axis < 0 ? opd_trunc(opd_clamp(opd_add_Scalar(zero, opd_value_double(0.5)), low, high))
        : opd_round(opd_clamp(zero, low, high));
}
/* Reads the arguments of a learnable quantisation, from number `at` (self) on, into *quant.  Returns 0, or -1 and sets
   an error. */
static int opdi_learnable_read(const opd_call *call, int at, bool channels, opdi_quant *quant, int64_t *axis) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const input = opd_arg_tensor(call, at), *const scale = opd_arg_tensor(call, at + 1),
        *const zero = opd_arg_tensor(call, at + 2);
    *axis = channels ? opd_arg_int(call, at + 3) : -1;
    if (channels && (*axis < 0 || *axis >= input->ndim)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: axis must be between 0 and %d, but is %lld", name, input->ndim - 1,
                        (long long)*axis);
    }
    const int64_t count = channels ? opdi_sizes(input)[*axis] : 1;
    if (scale->numel != count || zero->numel != count) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: scale and zero_point must have %lld elements each", name,
                        (long long)count);
    }
    if (!opd_dtype_is_floating(OPDI_DTYPE(input))) { return opdi_dtype_fail("fake_quantize", input->dtype); }
    if (opdi_quant_range(call, at + (channels ? 4 : 3), quant)) { return -1; }
    quant->scale = opdi_quant_along(scale, *axis, channels ? input->ndim : 0);
    quant->zero = opdi_learnable_zero(zero, quant, *axis, input->ndim, at == 1);
    quant->inverse = quant->zero ? opd_reciprocal(quant->scale) : NULL;
    return quant->inverse ? 0 : -1;
}
static int opdi_learnable_forward(opd_call *call, bool channels) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const opd_value *const args = opd_call_args(call);
    opdi_quant quant;
    int64_t axis;
    if (opdi_learnable_read(call, 0, channels, &quant, &axis)) { return -1; }
    const opd_scalar_type work = input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const int at = channels ? 4 : 3;
    opd_tensor *number = opd_add(opd_round(opd_mul(opd_to_dtype(input, work), quant.inverse)), quant.zero);
    number = opd_clamp(opd_where_ScalarSelf(opd_ne(number, number), args[at], number), args[at], args[at + 1]);
    opd_tensor *const out = opd_mul(opd_sub(number, quant.zero), quant.scale);
    return opd_return_tensor(call, opd_to_dtype(out, OPDI_DTYPE(input)));
}
/* The gradients.  Self has the gradient of the result where the number was in range.  The scale and the zero point have
   those that the rounded number gives them (Esser et al., Learned Step Size Quantization), times grad_factor. */
static int opdi_learnable_backward(opd_call *call, bool channels) {
    opd_tensor *const grad = opd_arg_tensor(call, 0), *const input = opd_arg_tensor(call, 1);
    const int at = channels ? 5 : 4;
    const opd_value *const args = opd_call_args(call), factor = args[at + 2];
    opdi_quant quant;
    int64_t axis;
    if (opdi_learnable_read(call, 1, channels, &quant, &axis)) { return -1; }
    const opd_scalar_type work = input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    opd_tensor *const x = opd_to_dtype(input, work), *const g = opd_to_dtype(grad, work);
    opd_tensor *const number = opd_round(opd_add(opd_mul(x, quant.inverse), quant.zero));
    opd_tensor *const whole = opd_clamp(number, args[at], args[at + 1]);
    opd_tensor *const inside = opd_eq(number, whole), *const steps = opd_sub(whole, quant.zero);
    opd_tensor *const error = opd_mul(opd_sub(opd_mul(steps, quant.scale), x), quant.inverse);
    opd_tensor *const none = g ? opd_zeros_like(g) : NULL;
    opd_tensor *of[3];
    of[0] = opd_where_self(inside, g, none);
    of[1] = opd_mul_Scalar(opd_mul(g, opd_where_self(inside, error, steps)), factor);
    of[2] = opd_mul_Scalar(opd_where_self(inside, none, opd_neg(opd_mul(g, quant.scale))), factor);
    for (int i = 1; i < 3 && opd_ok(); i++) {
        const int64_t count = channels ? opdi_sizes(input)[axis] : 1;
        opd_tensor *const rows = channels ? opd_reshape(opd_transpose(of[i], 0, axis), OPD_INTS(count, -1)) : of[i];
        of[i] = channels ? opd_sum_dim(rows, OPD_INTS(1), false) : opd_unsqueeze(opd_sum(of[i]), 0);
        const opd_tensor *const like = opd_arg_tensor(call, i + 1);
        of[i] = opd_to_dtype(opd_reshape(of[i], opd_ints_of(opdi_sizes(like), like->ndim)), OPDI_DTYPE(like));
    }
    of[0] = opd_to_dtype(of[0], OPDI_DTYPE(input));
    for (int i = 0; i < 3; i++) {
        if (!opd_ok() || opd_return_tensor(call, of[i])) { return -1; }
    }
    return 0;
}
static int opdi_learnable_tensor_kernel(opd_call *call) { return opdi_learnable_forward(call, false); }
static int opdi_learnable_channel_kernel(opd_call *call) { return opdi_learnable_forward(call, true); }
static int opdi_learnable_tensor_grads_kernel(opd_call *call) { return opdi_learnable_backward(call, false); }
static int opdi_learnable_channel_grads_kernel(opd_call *call) { return opdi_learnable_backward(call, true); }
static int opdi_learnable_tensor_backward(opd_backward_call *bw) {
    opd_tensor *rets[3];
    if (opd__fake_quantize_learnable_per_tensor_affine_backward_full(
            rets, opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), opd_bw_tensor(bw, 2),
            opd_bw_int(bw, 3), opd_bw_int(bw, 4), opd_bw_double(bw, 5))) { return -1; }
    for (int i = 0; i < 3; i++) { OPDI_BW_RETURN(i, rets[i]); }
    return 0;
}
static int opdi_learnable_channel_backward(opd_backward_call *bw) {
    opd_tensor *rets[3];
    if (opd__fake_quantize_learnable_per_channel_affine_backward_full(
            rets, opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), opd_bw_tensor(bw, 2),
            opd_bw_int(bw, 3), opd_bw_int(bw, 4), opd_bw_int(bw, 5), opd_bw_double(bw, 6))) { return -1; }
    for (int i = 0; i < 3; i++) { OPDI_BW_RETURN(i, rets[i]); }
    return 0;
}
/* opd__fake_quantize_learnable_per_tensor_affine: fake quantisation whose scale and zero_point have gradients */
OPDI_OP(_fake_quantize_learnable_per_tensor_affine) {
    op->schema = "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int "
        "quant_min, int quant_max, float grad_factor=1.0) -> Tensor";
    op->any = opdi_learnable_tensor_kernel; op->backward = opdi_learnable_tensor_backward;
    op->save = "self, scale, zero_point"; op->vmap = OPD_BATCH_LOOP;
    op->out = "_fake_quantize_learnable_per_tensor_affine.out"; op->tags = OPD_OPTAG_GENERATED;
    op->cases = "";
}
/* opd__fake_quantize_learnable_per_channel_affine: the same, with a scale and a zero_point for each index of axis */
OPDI_OP(_fake_quantize_learnable_per_channel_affine) {
    op->schema = "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, "
        "int quant_min, int quant_max, float grad_factor=1.0) -> Tensor";
    op->any = opdi_learnable_channel_kernel; op->backward = opdi_learnable_channel_backward;
    op->save = "self, scale, zero_point"; op->vmap = OPD_BATCH_LOOP;
    op->out = "_fake_quantize_learnable_per_channel_affine.out"; op->tags = OPD_OPTAG_GENERATED;
    op->cases = "";
}
/* opd__fake_quantize_learnable_per_tensor_affine_backward: the gradients of self, scale and zero_point */
OPDI_OP(_fake_quantize_learnable_per_tensor_affine_backward) {
    op->schema = "_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor "
        "zero_point, int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_learnable_tensor_grads_kernel; op->backward = OPD_NOT_DIFFERENTIABLE; op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* opd__fake_quantize_learnable_per_channel_affine_backward: the gradients of self, scale and zero_point */
OPDI_OP(_fake_quantize_learnable_per_channel_affine_backward) {
    op->schema = "_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor "
        "zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.0) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_learnable_channel_grads_kernel; op->backward = OPD_NOT_DIFFERENTIABLE; op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}

//== fake quantisation with an observer ================================================================================
//
//  While a quantised model is trained, an observer follows the smallest and the largest number of each batch by moving
//  averages, and chooses the scale and the zero point.  The state are four tensors: running_min, running_max, scale and
//  zero_point, with an element for each row of self, or one.

typedef struct opdi_observed {
    opd_tensor *state[4], *results[2];            /* the new state, and the output and the mask */
    int64_t count;               /* the elements of a state tensor */
    bool observes, quantises;
} opdi_observed;

/* Reads and checks the arguments.  Returns 0, or -1 and sets an error. */
static int opdi_observed_read(const opd_call *call, opdi_observed *made) {
    static const char *const names[] = {"running_min", "running_max", "scale", "zero_point"};
    const char *const name = opd_op_name(opd_call_operator(call));
    const opd_tensor *const x = opd_arg_tensor(call, 0);
    const bool rows = opd_arg_bool(call, 11);
    memset(made, 0, sizeof *made);
    if (x->dtype != OPD_FLOAT32) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: self must be float32, but is %s", name, opd_dtype_name(OPDI_DTYPE(x)));
    }
    if (opd_arg_int(call, 8) > opd_arg_int(call, 9)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: `quant_min` should be less than or equal to `quant_max`.", name);
    }
    if (rows && (opd_arg_int(call, 10) != 0 || x->ndim < 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: with per_row_fake_quant, ch_axis must be 0, and self must have a dim",
                        name);
    }
    for (int i = 1; i < 3; i++) {
        if (opd_arg_tensor(call, i)->numel != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "%s: %s must have one element", name,
                            i == 1 ? "observer_on" : "fake_quant_on");
        }
    }
    made->count = rows ? opdi_sizes(x)[0] : 1;
    for (int i = 0; i < 4; i++) {
        const opd_tensor *const state = opd_arg_tensor(call, 3 + i);
        const bool fits = i < 3 ? state->dtype == OPD_FLOAT32 : state->dtype == OPD_INT32 || state->dtype == OPD_INT64;
        if (!fits || (state->numel != made->count && !(rows && !state->numel))) {
            return opd_fail(OPD_ERROR_SHAPE, "%s: %s must have dtype %s and %lld elements, but has %s and %lld", name,
                            names[i], i < 3 ? "float32" : "int32", (long long)made->count,
                            opd_dtype_name(OPDI_DTYPE(state)), (long long)state->numel);
        }
    }
    return 0;
}
/* Returns the integer that stands for 0, and sets *scale, such that the integers from least to most stand for the
   numbers from low to high.  symmetric: numbers on both sides of 0 get the same range. */
static double opdi_observed_steps(double low, double high, double least, double most, bool symmetric, double *scale) {
    const double smallest = 6.1e-5, width = most - least;
    const bool both = symmetric && low < 0 && high > 0;
    if (both) {
        const double below = -floor(width / 2) - 1, above = floor(width / 2);
        const double each = OPDI_MAX(fabs(low / below), fabs(high / above));
        low = each * below;
        high = each * above;
    }
    low = low > 0 ? 0 : low;                      /* NaN remains, and then is the scale, as in PyTorch */
    high = high < 0 ? 0 : high;
    *scale = (high - low) / width;
    if ((float)*scale == 0 || isinf(1 / (float)*scale)) { *scale = 0.1; }
    if (*scale < smallest) {
        const double wider = smallest / *scale;
        const bool positive = low == 0, negative = high == 0;
        *scale = smallest;
        low = positive ? 0 : negative ? -smallest * width : low * wider;
        high = positive ? smallest * width : negative ? 0 : high * wider;
    }
    *scale = (double)(float)*scale;               /* as the state has it */
    const bool from_low = fabs(least) + fabs(low / *scale) < fabs(most) + fabs(high / *scale);
    const double zero = both ? (least + most) / 2 : from_low ? least - low / *scale : most - high / *scale;
    return zero > most ? most : zero >= least ? nearbyint(zero) : least;
}
/* Updates the smallest and the largest numbers of the new state.  Returns 0, or -1 and sets an error. */
static int opdi_observed_numbers(const opd_call *call, const opdi_observed *made) {
    opd_tensor *const whole = opd_reshape(opd_arg_tensor(call, 0), OPD_INTS(made->count, -1));
    const float share = (float)opd_arg_double(call, 7);
    const int64_t last = 1;
    for (int side = 0; side < 2; side++) {
        opd_tensor *const found = side ? opd_amax(whole, opd_ints_of(&last, 1), false)
            : opd_amin(whole, opd_ints_of(&last, 1), false);
        const opd_tensor *const numbers = opd_contiguous(found);
        float *const to = (float *)(void *)made->state[side]->data;
        if (!numbers) { return -1; }
        for (int64_t i = 0; i < made->count; i++) {
            const float number = ((const float *)(const void *)numbers->data)[i];
            to[i] = isinf(to[i]) ? number : to[i] + share * (number - to[i]);
        }
    }
    return 0;
}
/* Sets the new state.  As in PyTorch, a call that quantises chooses the scale and the zero point also if it does not
   observe.  Returns 0, or -1 and sets an error. */
static int opdi_observed_state(const opd_call *call, opdi_observed *made) {
    const opd_tensor *const x = opd_arg_tensor(call, 0);
    float *to[3];
    for (int i = 0; i < 4; i++) {
        opd_tensor *const now = opd_arg_tensor(call, 3 + i);
        opd_tensor *const none = opd_full(OPD_INTS(made->count), opd_value_double(
            i == 0 ? (double)INFINITY : i == 1 ? -(double)INFINITY : i == 2), i < 3 ? OPD_FLOAT32 : OPDI_DTYPE(now));
        if (none && now->numel) { (void)opd_copy_(none, opd_reshape(now, OPD_INTS(-1))); }
        made->state[i] = none;
        if (!none || !opd_ok()) { return -1; }
        if (i < 3) { to[i] = (float *)(void *)none->data; }
    }
    if (!x->numel || (made->observes && opdi_observed_numbers(call, made))) { return x->numel ? -1 : 0; }
    opd_tensor *const zeros = made->quantises ? opd_empty(OPD_INTS(made->count), OPD_INT64) : NULL;
    if (!zeros) { return made->quantises ? -1 : 0; }
    for (int64_t i = 0; i < made->count; i++) {
        double scale;
        ((int64_t *)(void *)zeros->data)[i] = (int64_t)opdi_observed_steps(
            (double)to[0][i], (double)to[1][i], (double)opd_arg_int(call, 8), (double)opd_arg_int(call, 9),
            opd_arg_bool(call, 12), &scale);
        to[2][i] = (float)scale;
    }
    return opd_copy_(made->state[3], zeros) ? 0 : -1;
}
/* Computes the results and the new state.  Returns 0, or -1 and sets an error. */
static int opdi_observed_make(const opd_call *call, opdi_observed *made) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const on = opd_arg_tensor(call, 2);
    if (opdi_observed_read(call, made)) { return -1; }
    made->observes = opd_item_f64(opd_arg_tensor(call, 1)) != 0;
    made->quantises = opd_ok() && opd_item_f64(on) != 0;
    if (!opd_ok() || opdi_observed_state(call, made)) { return -1; }
    if (opd_arg_bool(call, 11) && made->quantises) {
        return opd_fake_quantize_per_channel_affine_cachemask(
            made->results, x, made->state[2], opd_to_dtype(made->state[3], OPD_INT32), 0, opd_arg_int(call, 8),
            opd_arg_int(call, 9));
    }
    if (opd_arg_bool(call, 11)) {
        made->results[0] = opd_clone(x);
        made->results[1] = opd_ones(opd_ints_of(opdi_sizes(x), x->ndim), OPD_BOOL);
        return opd_ok() ? 0 : -1;
    }
    return opd__fake_quantize_per_tensor_affine_cachemask_tensor_qparams(
        made->results, x, made->state[2], made->state[3], on, opd_arg_int(call, 8), opd_arg_int(call, 9));
}
static int opdi_observed_return(opd_call *call, opdi_observed *made) {
    return opd_return_tensor(call, made->results[0]) ? -1 : opd_return_tensor(call, made->results[1]);
}
static int opdi_observed_kernel(opd_call *call) {
    opdi_observed made;
    if (opdi_observed_make(call, &made)) { return -1; }
    for (int i = 0; i < 4; i++) {
        opd_tensor *state = opd_arg_tensor(call, 3 + i);
        if (state->numel && !(i < 2 ? made.observes : made.quantises)) { continue; }
        if (!state->numel && made.count) { state = opd_resize_(state, OPD_INTS(made.count)); }
        if (!state || !opd_copy_(state, opd_reshape(made.state[i], opd_ints_of(opdi_sizes(state), state->ndim)))) {
            return -1;
        }
    }
    return opdi_observed_return(call, &made);
}
static int opdi_observed_functional_kernel(opd_call *call) {
    opdi_observed made;
    if (opdi_observed_make(call, &made) || opdi_observed_return(call, &made)) { return -1; }
    for (int i = 0; i < 4; i++) {
        const opd_tensor *const state = opd_arg_tensor(call, 3 + i);
        opd_tensor *const whole = state->numel ? opd_reshape(made.state[i], opd_ints_of(opdi_sizes(state), state->ndim))
            : made.state[i];
        if (!whole || opd_return_tensor(call, whole)) { return -1; }
    }
    return 0;
}
static int opdi_observed_fake(opd_call *call) {
    opdi_observed made;
    const opd_tensor *const x = opd_arg_tensor(call, 0);
    if (opdi_observed_read(call, &made) || !opd_result(call, 0, opdi_sizes(x), x->ndim, OPD_FLOAT32) ||
        !opd_result(call, 1, opdi_sizes(x), x->ndim, OPD_BOOL)) { return -1; }
    for (int i = 2; i < call->op->nrets; i++) {
        const opd_tensor *const state = opd_arg_tensor(call, 1 + i);
        const bool given = state->numel > 0;
        const int64_t *const sizes = given ? opdi_sizes(state) : &made.count;
        if (!opd_result(call, i, sizes, given ? state->ndim : 1, OPDI_DTYPE(state))) { return -1; }
    }
    return 0;
}
/* opd__fused_moving_avg_obs_fq_helper: updates the range with self, if observer_on is not 0; if fake_quant_on is not
   0, sets scale and zero_point by the range, and returns self after fake quantisation; and a mask of the elements in
   range */
OPDI_OP(_fused_moving_avg_obs_fq_helper) {
    op->schema = "_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
        "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int "
        "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor "
        "output, Tensor mask)";
    op->cpu = opdi_observed_kernel; op->fake = opdi_observed_fake; op->backward = opdi_fake_quantize_backward;
    op->save = "result1"; op->constant = "running_min, running_max, scale, zero_point";
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* opd__fused_moving_avg_obs_fq_helper_functional: the same, but the new state are results */
OPDI_OP(_fused_moving_avg_obs_fq_helper_functional) {
    op->schema = "_fused_moving_avg_obs_fq_helper_functional(Tensor self, Tensor observer_on, Tensor fake_quant_on, "
        "Tensor running_min, Tensor running_max, Tensor scale, Tensor zero_point, float averaging_const, int "
        "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor "
        "output, Tensor mask, Tensor running_min_out, Tensor running_max_out, Tensor scale_out, Tensor zero_point_out)";
    op->cpu = opdi_observed_functional_kernel; op->fake = opdi_observed_fake;
    op->backward = opdi_fake_quantize_backward; op->any = opd_cpu_fallback;
    op->save = "result1"; op->constant = "running_min, running_max, scale, zero_point";
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
static int opdi_observed_composite(opd_call *call) {
    const opd_value *const args = opd_call_args(call);
    opd_tensor *rets[2];
    if (!args[0].u.t->numel) { return opd_return_tensor(call, opd_clone(args[0].u.t)); }
    if (opd__fused_moving_avg_obs_fq_helper_full(
            rets, args[0].u.t, args[1].u.t, args[2].u.t, args[3].u.t, args[4].u.t, args[5].u.t, args[6].u.t,
            opd_arg_double(call, 7), opd_arg_int(call, 8), opd_arg_int(call, 9), opd_arg_int(call, 10),
            opd_arg_bool(call, 11), opd_arg_bool(call, 12))) { return -1; }
    return opd_return_tensor(call, rets[0]);
}
/* opd_fused_moving_avg_obs_fake_quant: fake quantisation with an observer, for training quantised models */
OPDI_OP(fused_moving_avg_obs_fake_quant) {
    op->schema = "fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) "
        "running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int "
        "quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor";
    op->composite = opdi_observed_composite;
    op->cases = "";
}
