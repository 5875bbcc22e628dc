#include "../ops.h"

//== losses over pairs of elements =====================================================================================

/* Checks that the dtype to which both tensors are promoted is a floating dtype; `what` is the kernel's name in errors.
   Returns 0, or -1 and sets an error. */
static int opdi_loss_floating(const opd_tensor *input, const opd_tensor *output, const char *what) {
    opd_tensor *two[2];
    two[0] = (opd_tensor *)(uintptr_t)input;
    two[1] = (opd_tensor *)(uintptr_t)output;
    opd_scalar_type dtype = opdi_result_type(two, 2);
    return opd_dtype_is_floating(dtype) ? 0 : opdi_dtype_fail(what, dtype);
}
/* Returns input - output.  Either may be a tensor of bool. */
static opd_tensor *opdi_loss_difference(opd_tensor *input, opd_tensor *output) {
    if (input->dtype == OPD_BOOL) { input = opd_to_dtype(input, (opd_scalar_type)output->dtype); }
    if (input && output->dtype == OPD_BOOL) { output = opd_to_dtype(output, (opd_scalar_type)input->dtype); }
    return opd_sub(input, output);
}
/* Returns the computed `tensor`, cast to the dtype of `self` if its dtype differs, as the result of an operator.  If
   the cast is not allowed, returns NULL and sets an error. */
static opd_tensor *opdi_loss_as(opd_tensor *tensor, const opd_tensor *self) {
    if (!tensor || tensor->dtype == self->dtype) { return tensor; }
    if (opd_can_cast((opd_scalar_type)tensor->dtype, (opd_scalar_type)self->dtype)) {
        return opd_to_dtype(tensor, (opd_scalar_type)self->dtype);
    }
    (void)opdi_cast_fail(tensor->dtype, self->dtype);
    return NULL;
}
/* Returns the factor for `reduction`: for a mean, 1 / (number of elements in the shape to which input and output
   broadcast); else 1. */
static double opdi_loss_share(const opd_tensor *input, const opd_tensor *output, int64_t reduction) {
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    if (reduction != OPDI_REDUCE_MEAN || opdi_broadcast_into(sizes, &ndim, input) ||
        opdi_broadcast_into(sizes, &ndim, output)) {
        return 1;
    }
    return 1 / (double)opdi_span_of(sizes, 0, ndim);
}
static const opdi_loss_terms opdi_mse_terms = {HUGE_VALF, 1, 0, 1, 1, HUGE_VALF};
static int opdi_mse_loss_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1), *loss;
    if (opdi_loss_floating(input, other, "mse_cpu")) { return -1; }
    if (opdi_loss_run(&opdi_mse_terms, input, other, opd_arg_int(call, 2), &loss)) {
        return opd_return_tensor(call, loss);
    }
    return opd_return_tensor(call, opdi_reduced(opd_square(opdi_loss_difference(input, other)), opd_arg_int(call, 2)));
}
static int opdi_mse_loss_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *other = opd_arg_tensor(call, 2);
    if (opdi_loss_floating(input, other, "mse_backward_cpu_out")) { return -1; }
    const double share = opdi_loss_share(input, other, opd_arg_int(call, 3));
    opd_tensor *const slope = opdi_loss_slope(&opdi_mse_terms, grad, input, other, 2 * share);
    if (slope || !opd_ok()) { return opd_return_tensor(call, slope); }
    other = opd_mul(opdi_muls(opdi_loss_difference(input, other), 2 * share), grad);
    return opd_return_tensor(call, opd_contiguous(opdi_loss_as(other, input)));
}
static int opdi_mse_loss_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_mse_loss_backward(grad, input, other, opd_bw_value(bw, 2).u.i));
    OPDI_BW_RETURN(1, opd_mse_loss_backward(grad, other, input, opd_bw_value(bw, 2).u.i));
    return 0;
}
static int opdi_mse_loss_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1),
        *other = opd_bw_tensor(bw, 2);
    const double f = 2 * opdi_loss_share(input, other, opd_bw_value(bw, 3).u.i);
    OPDI_BW_RETURN(0, opd_mul(opdi_muls(opd_sub(input, other), f), grad));
    opd_tensor *delta = opd_mul(opdi_muls(grad, f), grad_out);
    OPDI_BW_RETURN(1, delta);
    OPDI_BW_RETURN(2, opd_neg(delta));
    return 0;
}
/* opd_mse_loss: (self - target)^2; reduction 0: each, 1: mean, 2: sum */
OPDI_OP(mse_loss) {
    op->schema = "mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor";
    op->any = opdi_mse_loss_kernel; op->backward = opdi_mse_loss_backward; op->save = "self, target";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_FP32;
    op->out = "mse_loss.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [2,3]; [2,3], [2,3], 0";
}
/* opd_mse_loss_backward: derivative of mse_loss */
OPDI_OP(mse_loss_backward) {
    op->schema = "mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor";
    op->any = opdi_mse_loss_backward_kernel; op->backward = opdi_mse_loss_backward_backward;
    op->save = "grad_output, self, target";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "mse_loss_backward.grad_input(grad_input)";
    op->cases = "[], [2,3], [2,3], 1; [2,3], [2,3], [2,3], 0";
    op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
}

static int opdi_l1_loss_kernel(opd_call *call) {
    return opd_return_tensor(call,
                             opdi_reduced(opd_abs(opd_sub(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1))),
                                          opd_arg_int(call, 2)));
}
/* opd_l1_loss: |self - target| */
OPDI_OP(l1_loss) {
    op->schema = "l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor";
    op->composite = opdi_l1_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3]";
}

/* Returns true if `beta` is 0 in the dtype in which numbers of this dtype are computed. */
static bool opdi_huber_is_zero(double beta, const opd_tensor *tensor) {
    return beta <= 0 || (tensor && tensor->dtype != OPD_FLOAT64 && (float)beta == 0);
}
/* Returns smooth_l1 of d = |input - output|: d^2 / (2 * beta) if d < beta, else d - beta / 2.  If `scaled` is true,
   returns this number times beta, which is the Huber loss. */
static opd_tensor *opdi_huber(opd_tensor *input, opd_tensor *output, double beta, bool scaled) {
    opd_tensor *distance = opd_abs(opdi_loss_difference(input, output));
    if (beta <= 0) { return distance; }
    opd_tensor *square = opd_square(distance);
    opd_tensor *tensor = scaled ? opdi_muls(opdi_adds(distance, -0.5 * beta), beta) : opdi_adds(distance, -0.5 * beta);
    if (scaled || isfinite((float)(0.5 / beta))) { square = opdi_muls(square, scaled ? 0.5 : 0.5 / beta); }
    else { square = opd_div_Scalar(opdi_muls(square, 0.5), opd_value_double(beta)); }     /* 0 * inf would be NaN */
    return opd_where_self(scaled ? opd_le_Scalar(distance, opd_value_double(beta)) : opd_lt_Scalar(distance,
        opd_value_double(beta)), square, tensor);
}
static opd_tensor *opdi_huber_slope(opd_tensor *input, opd_tensor *output, double beta, bool scaled) {
    opd_tensor *delta = opdi_loss_difference(input, output);
    if (!scaled && opdi_huber_is_zero(beta, delta)) { return opd_sign(delta); }
    if (!scaled) { delta = opd_div_Scalar(delta, opd_value_double(beta)); }
    return opd_clamp(delta, opd_value_double(scaled ? -beta : -1), opd_value_double(scaled ? beta : 1));
}
/* Sets *terms to the formula of smooth_l1 or, if `scaled`, of huber.  Returns false if float32 cannot hold a number in
   it. */
static bool opdi_huber_terms(double beta, bool scaled, opdi_loss_terms *terms) {
    const float limit = (float)beta;
    terms->limit = scaled ? limit : nextafterf(limit, -1);   /* smooth_l1 is linear at beta itself */
    terms->square = (float)(scaled ? 0.5 : 0.5 / beta);
    terms->shift = (float)(-0.5 * beta);
    terms->scale = scaled ? limit : 1;
    terms->divisor = scaled ? 1 : limit;
    terms->top = scaled ? limit : 1;
    return limit > 0 && isfinite(limit) && isfinite(terms->square);
}
static bool opdi_huber_scaled(const opd_call *call) {
    return strncmp(call->op->schema->name, "huber_", strlen("huber_")) == 0;
}
static int opdi_huber_like_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    const bool scaled = opdi_huber_scaled(call);
    const double beta = opd_arg_double(call, 3);
    if (scaled && !(beta > 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "huber_loss does not support non-positive values for delta.");
    }
    if (!(beta >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "smooth_l1_loss does not support negative values for beta.");
    }
    if (opdi_loss_floating(input, other, scaled ? "huber_cpu" : "smooth_l1_cpu")) { return -1; }
    opdi_loss_terms terms;
    opd_tensor *loss;
    if (opdi_huber_terms(beta, scaled, &terms) &&
        opdi_loss_run(&terms, input, other, opd_arg_int(call, 2), &loss)) { return opd_return_tensor(call, loss); }
    other = opdi_huber(input, other, beta, scaled);
    return opd_return_tensor(call, opdi_reduced(scaled ? opdi_loss_as(other, input) : other, opd_arg_int(call, 2)));
}
static int opdi_huber_like_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *other = opd_arg_tensor(call, 2);
    const double beta = opd_arg_double(call, 4), share = opdi_loss_share(input, other, opd_arg_int(call, 3));
    const bool scaled = opdi_huber_scaled(call);
    opdi_loss_terms terms;
    if (opdi_huber_terms(beta, scaled, &terms)) {
        opd_tensor *const slope = opdi_loss_slope(&terms, grad, input, other, share);
        if (slope || !opd_ok()) { return opd_return_tensor(call, slope); }
    }
    opd_tensor *delta = opdi_huber_slope(input, other, beta, scaled);
    delta = opd_mul(opdi_muls(delta, share), grad);
    return opd_return_tensor(call, opd_contiguous(opdi_loss_as(delta, input)));
}
/* Computes the second derivatives of smooth_l1 or, if `scaled`, of huber.  The derivative by grad_out is the slope
   of the loss.  The derivatives by input and target are nonzero only where the loss is quadratic. */
static int opdi_huber_double_backward(opd_backward_call *bw, bool scaled) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1),
        *other = opd_bw_tensor(bw, 2);
    const double beta = opd_bw_value(bw, 4).u.d, f = opdi_loss_share(input, other, opd_bw_value(bw, 3).u.i);
    OPDI_BW_RETURN(0, opd_mul(opdi_muls(opdi_huber_slope(input, other, beta, scaled), f), grad));
    opd_tensor *delta = opd_mul(opdi_muls(grad, scaled ? f : beta > 0 ? f / beta : 0), grad_out);
    delta = opdi_where(opd_lt_Scalar(opd_abs(opdi_loss_difference(input, other)), opd_value_double(beta)), delta);
    OPDI_BW_RETURN(1, delta);
    OPDI_BW_RETURN(2, opd_neg(delta));
    return 0;
}
static int opdi_smooth_l1_loss_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0,
                   opd_smooth_l1_loss_backward(grad, input, other, opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.d));
    OPDI_BW_RETURN(1,
                   opd_smooth_l1_loss_backward(grad, other, input, opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.d));
    return 0;
}
static int opdi_smooth_l1_loss_backward_backward(opd_backward_call *bw) {
    return opdi_huber_double_backward(bw, false);
}
/* opd_smooth_l1_loss: l1_loss, but a parabola for |self - target| < beta */
OPDI_OP(smooth_l1_loss) {
    op->schema = "smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor";
    op->any = opdi_huber_like_kernel; op->backward = opdi_smooth_l1_loss_backward; op->save = "self, target";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_FP32;
    op->out = "smooth_l1_loss.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [2,3]; [2,3], [2,3], 0, 0.5";
}
/* opd_smooth_l1_loss_backward: derivative of smooth_l1_loss */
OPDI_OP(smooth_l1_loss_backward) {
    op->schema = "smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) "
        "-> Tensor";
    op->any = opdi_huber_like_backward_kernel; op->backward = opdi_smooth_l1_loss_backward_backward;
    op->save = "grad_output, self, target";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "smooth_l1_loss_backward.grad_input(grad_input)";
    op->cases = "[], [2,3], [2,3], 1, 0.5";
    op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
}

static int opdi_huber_loss_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_huber_loss_backward(grad, input, other, opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.d));
    OPDI_BW_RETURN(1, opd_huber_loss_backward(grad, other, input, opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.d));
    return 0;
}
static int opdi_huber_loss_backward_backward(opd_backward_call *bw) { return opdi_huber_double_backward(bw, true); }
/* opd_huber_loss: a parabola for |self - target| < delta, a straight line beyond */
OPDI_OP(huber_loss) {
    op->schema = "huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor";
    op->any = opdi_huber_like_kernel; op->backward = opdi_huber_loss_backward; op->save = "self, target";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_FP32;
    op->out = "huber_loss.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [2,3]; [2,3], [2,3], 0, 0.5";
}
/* opd_huber_loss_backward: derivative of huber_loss */
OPDI_OP(huber_loss_backward) {
    op->schema = "huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> "
        "Tensor";
    op->any = opdi_huber_like_backward_kernel; op->backward = opdi_huber_loss_backward_backward;
    op->save = "grad_output, self, target";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "huber_loss_backward.out(grad_input)";
    op->cases = "[], [2,3], [2,3], 1, 0.5";
    op->tags = OPDI_OPTAG_OUT_PART;
}

/* Returns the logarithm of `tensor` or, if `plus1`, of 1 + tensor, but at least -100, so that the loss stays finite. */
static opd_tensor *opdi_log_floor(opd_tensor *tensor, bool plus1) {
    return opd_clamp_min(plus1 ? opd_log1p(tensor) : opd_log(tensor), opd_value_int(-100));
}
/* Checks that all elements are between 0 and 1, if their data can be read.  Returns 0, or -1 and sets an error. */
static int opdi_loss_in_unit(opd_tensor *tensor, const char *what) {
    while (tensor->flags & OPDI_BATCHED) { tensor = opdi_batched_of(tensor)->value; }
    if (!tensor->data || tensor->backend != OPD_CPU) { return 0; }
    tensor = opdi_dense_as(tensor, opdi_norm_type(tensor));
    for (int64_t i = 0; tensor && i < tensor->numel; i++) {
        const double p = tensor->dtype == OPD_FLOAT64 ? ((const double *)(const void *)tensor->data)[i]
            : (double)((const float *)(const void *)tensor->data)[i];
        if (!(p >= 0 && p <= 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "all elements of %s should be between 0 and 1", what);
        }
    }
    return tensor ? 0 : -1;
}
static int opdi_binary_cross_entropy_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2);
    if (opdi_norm_floating(input, "binary_cross_entropy")) { return -1; }
    if (other->dtype != input->dtype) { return opdi_found_fail(other->dtype, input->dtype); }
    if (opdi_loss_in_unit(input, "input") || opdi_loss_in_unit(other, "target")) { return -1; }
    opd_tensor *const log = opdi_log_floor(opd_neg(input), true),
        *const product = opd_mul(log, opdi_adds(other, -1)),
        *loss = opd_sub(product, opd_mul(opdi_log_floor(input, false), other));          /* with strides like input's */
    if (weight) { loss = opdi_loss_as(opd_mul(loss, weight), input); }
    return opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 3)));
}
static int opdi_binary_cross_entropy_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *other = opd_arg_tensor(call, 2),
        *weight = opd_arg_tensor(call, 3);
    opd_tensor *const product = opd_mul(opd_sub(input, other), grad),
        *const slope = opd_clamp_min(opd_mul(opdi_rsubs(1, input), input), opd_value_double(1e-12)),
        *delta = opd_div(product, slope);         /* with strides like input's */
    if (weight) { delta = opd_mul(delta, weight); }
    if (opd_arg_int(call, 4) == OPDI_REDUCE_MEAN) {
        delta = opd_div_Scalar(delta, opd_value_double((double)input->numel));
    }
    return opd_return_tensor(call, opdi_loss_as(delta, input));
}
/* Computes the gradients of binary_cross_entropy.  The gradient of target is grad * (log(1 - input) - log(input)). */
static int opdi_binary_cross_entropy_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1),
        *weight = opd_bw_tensor(bw, 2);
    const int64_t reduction = opd_bw_value(bw, 3).u.i;
    OPDI_BW_RETURN(0, opd_binary_cross_entropy_backward_full(grad, input, other, weight, reduction));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *const log = opd_log(opdi_rsubs(1, input)), *delta = opd_mul(opd_sub(log, opd_log(input)), grad);
    if (weight) { delta = opd_mul(delta, weight); }
    return opd_bw_return(bw, 1,
                         reduction == OPDI_REDUCE_MEAN ? opd_div_Scalar(delta, opd_value_double((double)input->numel))
                         : delta);
}
/* Computes the second derivatives of binary_cross_entropy.  With input x, target y and q = x * (1 - x), the gradient is
   (x - y) / q.  Its derivatives are (x^2 - 2 * x * y + y) / q^2 by x and -1 / q by y. */
static int opdi_binary_cross_entropy_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1),
        *other = opd_bw_tensor(bw, 2), *weight = opd_bw_tensor(bw, 3);
    const int64_t reduction = opd_bw_value(bw, 4).u.i;
    OPDI_BW_RETURN(0, opd_binary_cross_entropy_backward_full(grad, input, other, weight, reduction));
    opd_tensor *quotient = opd_clamp_min(opd_mul(opdi_rsubs(1, input), input), opd_value_double(1e-12));
    opd_tensor *keep = opd_div(opd_mul(grad, grad_out), quotient);
    if (weight) { keep = opd_mul(keep, weight); }
    if (reduction == OPDI_REDUCE_MEAN) { keep = opd_div_Scalar(keep, opd_value_double((double)input->numel)); }
    opd_tensor *delta = opd_add(opd_mul(input, opd_sub(input, opdi_muls(other, 2))), other);
    OPDI_BW_RETURN(1, opd_mul(keep, opd_div(delta, quotient)));
    OPDI_BW_RETURN(2, opd_neg(keep));
    return 0;
}
/* opd_binary_cross_entropy: -(target * log(self) + (1 - target) * log(1 - self)) */
OPDI_OP(binary_cross_entropy) {
    op->schema = "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor";
    op->any = opdi_binary_cross_entropy_kernel; op->backward = opdi_binary_cross_entropy_backward;
    op->save = "self, target, weight"; op->constant = "weight";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_BANNED_FP32_CPU;
    op->out = "binary_cross_entropy.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3]u, [2,3]u; [2,3]u, [2,3]u, [2,3]+, 0";
}
/* opd_binary_cross_entropy_backward: derivative of binary_cross_entropy */
OPDI_OP(binary_cross_entropy_backward) {
    op->schema = "binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, "
        "int reduction=1) -> Tensor";
    op->any = opdi_binary_cross_entropy_backward_kernel; op->backward = opdi_binary_cross_entropy_backward_backward;
    op->save = "grad_output, self, target, weight"; op->constant = "weight";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "binary_cross_entropy_backward.grad_input(grad_input)";
    op->cases = "[], [2,3]u, [2,3]u";
    op->tags = OPDI_OPTAG_OUT_PART;
}

/* Returns `result` converted to `dtype`, in which PyTorch's in-place operation would store it.  On failure, returns
   NULL and sets an error. */
static opd_tensor *opdi_in_dtype(opd_tensor *result, opd_scalar_type dtype) {
    if (!result || result->dtype == dtype) { return result; }
    if (opd_can_cast((opd_scalar_type)result->dtype, dtype)) { return opd_to_dtype(result, dtype); }
    (void)opdi_cast_fail(result->dtype, dtype);
    return NULL;
}
/* binary_cross_entropy_with_logits: computes (1 - y) * x - ((p - 1) * y + 1) * log(sigmoid(x)) for input x, target y
   and pos_weight p (1 if it is None).  Rounds each step to the dtype in which PyTorch's in-place operation stores
   it. */
static int opdi_binary_cross_entropy_with_logits_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2),
        *part = opd_arg_tensor(call, 3), *loss = opd_log_sigmoid(input);
    for (int i = 1; i < 4; i++) {
        if (opdi_refuse_complex(opd_arg_tensor(call, i), "binary_cross_entropy_with_logits")) { return -1; }
    }
    const opd_scalar_type dtype = (opd_scalar_type)other->dtype, log_dtype = (opd_scalar_type)input->dtype;
    if (part) { loss = opdi_in_dtype(opd_mul(loss, opdi_adds(opd_mul(opdi_adds(part, -1), other), 1)), log_dtype); }
    loss = opdi_in_dtype(opd_sub(opdi_in_dtype(opd_mul(opdi_rsubs(1, other), input), dtype), loss), dtype);
    if (weight) { loss = opdi_in_dtype(opd_mul(loss, weight), dtype); }
    return opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 4)));
}
/* opd_binary_cross_entropy_with_logits: binary_cross_entropy of sigmoid(self) */
OPDI_OP(binary_cross_entropy_with_logits) {
    op->schema = "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? "
        "pos_weight=None, int reduction=1) -> Tensor";
    op->composite = opdi_binary_cross_entropy_with_logits_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->out = "binary_cross_entropy_with_logits.out";
    op->cases = "[2,3], [2,3]u; [2,3], [2,3]u, [3]+, [3]+, 0";
}

/* log_sigmoid_forward: computes min(0, input) - log1p(buffer), where buffer = exp(-|input|) is the second result. */
static int opdi_log_sigmoid_forward_kernel(opd_call *call) {
    opd_tensor *input = opd_contiguous(opd_arg_tensor(call, 0));
    if (!input || opdi_norm_floating(input, "log_sigmoid_cpu")) { return -1; }
    const opd_scalar_type dtype = OPDI_DTYPE(input);
    if (opdi_is_half(dtype)) { input = opd_to_dtype(input, OPD_FLOAT32); }        /* round results only once */
    opd_tensor *buffer = opd_exp(opd_copysign_Scalar(input, opd_value_int(-1)));
    opd_tensor *const clamped = opd_clamp_max(input, opd_value_int(0)), *output = opd_sub(clamped, opd_log1p(buffer));
    if (opdi_is_half(dtype)) {
        output = opd_to_dtype(output, dtype);
        buffer = opd_to_dtype(buffer, dtype);
    }
    return opd_return_tensor(call, output) ? -1 : opd_return_tensor(call, buffer);
}
static int opdi_log_sigmoid_forward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return grad ? opd_bw_return(bw, 0, opd_log_sigmoid_backward(grad, opd_bw_tensor(bw, 0), opd_bw_result(bw, 1))) : 0;
}
/* Computes the gradient of log_sigmoid: with q = buffer / (1 + buffer), grad * (1 - q) if input < 0, else grad * q. */
static int opdi_log_sigmoid_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *second = opd_arg_tensor(call, 2);
    int rc;
    if (second->numel != input->numel) { second = opd_exp(opd_neg(opd_abs(input))); }
    if (opdi_gate_run(call, OPDI_GATE_LOG_SIGMOID_BACKWARD, grad, input, second, &rc)) { return rc; }
    opd_tensor *negative = opd_lt_Scalar(input, opd_value_int(0));
    opd_tensor *quotient = opd_div(second, opdi_adds(second, 1));
    return opd_return_tensor(call, opd_mul(grad, opd_where_self(negative, opdi_rsubs(1, quotient), quotient)));
}
static int opdi_log_sigmoid_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_log_sigmoid_backward(grad, input, opd_bw_tensor(bw, 2)));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *gate = opd_sigmoid(input);
    return opd_bw_return(bw, 1, opd_neg(opd_sigmoid_backward(opd_mul(grad, opd_bw_tensor(bw, 0)), gate)));
}
/* opd_log_sigmoid_forward: log_sigmoid, and a buffer for its derivative */
OPDI_OP(log_sigmoid_forward) {
    op->schema = "log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)";
    op->any = opdi_log_sigmoid_forward_kernel; op->backward = opdi_log_sigmoid_forward_backward;
    op->save = "self, buffer"; op->constant = "buffer";
    op->vmap = OPD_BATCH_POINTWISE;        /* batch this operator, not the operators that its kernel calls */
    op->out = "log_sigmoid_forward.output(Tensor self, *, Tensor(a!) output, Tensor(b!) buffer) -> (Tensor(a!), "
        "Tensor(b!))";
    op->cases = "[2,3]";
    op->tags = OPDI_OPTAG_OUT_EXACT;
}
/* opd_log_sigmoid_backward: derivative of log_sigmoid */
OPDI_OP(log_sigmoid_backward) {
    op->schema = "log_sigmoid_backward(Tensor grad_output, Tensor self, Tensor buffer) -> Tensor";
    op->any = opdi_log_sigmoid_backward_kernel; op->backward = opdi_log_sigmoid_backward_backward;
    op->save = "grad_output, self, buffer";
    op->vmap = OPD_BATCH_POINTWISE;        /* the backward function is pointwise, too */
    op->out = "log_sigmoid_backward.grad_input(grad_input)";
    op->cases = "";
}

static int opdi_log_sigmoid_kernel(opd_call *call) {
    opd_tensor *results[2];
    return opd_log_sigmoid_forward(results, opd_arg_tensor(call, 0)) ? -1 : opd_return_tensor(call, results[0]);
}
/* opd_log_sigmoid: log(sigmoid(self)) */
OPDI_OP(log_sigmoid) {
    op->schema = "log_sigmoid(Tensor self) -> Tensor";
    op->composite = opdi_log_sigmoid_kernel;
    op->out = "log_sigmoid.out";
    op->cases = "[2,3]";
}

/* soft_margin_loss: computes log(1 + exp(-target * input)). */
static int opdi_soft_margin_loss_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    other = opdi_loss_as(opd_log1p(opd_exp(opd_mul(opd_neg(input), other))), input);
    return opd_return_tensor(call, opdi_reduced(other, opd_arg_int(call, 2)));
}
static int opdi_soft_margin_loss_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *other = opd_arg_tensor(call, 2),
        *zeros = opd_exp(opd_mul(opd_neg(other), input));
    opd_tensor *const product = opd_mul(opd_neg(other), zeros);
    zeros = opd_mul(opd_mul(opd_div(product, opdi_adds(zeros, 1)), grad),
        opd_tensor_wrapped_number(opd_value_double(opdi_loss_share(input, other, opd_arg_int(call, 3)))));
    return opd_return_tensor(call, opdi_loss_as(zeros, input));
}
static int opdi_soft_margin_loss_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_soft_margin_loss_backward(grad, input, other, opd_bw_value(bw, 2).u.i));
    OPDI_BW_RETURN(1, opd_soft_margin_loss_backward(grad, other, input, opd_bw_value(bw, 2).u.i));
    return 0;
}
/* Computes the second derivatives of soft_margin_loss.  With input x, target y and s = sigmoid(-y * x), the gradient is
   -y * s.  Its derivatives are y^2 * s * (1 - s) by x and x * y * s * (1 - s) - s by y. */
static int opdi_soft_margin_loss_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 1), *other = opd_bw_tensor(bw, 2);
    const double f = opdi_loss_share(input, other, opd_bw_value(bw, 3).u.i);
    OPDI_BW_RETURN(0, opd_soft_margin_loss_backward(grad, input, other, opd_bw_value(bw, 3).u.i));
    opd_tensor *gate = opd_sigmoid(opd_mul(opd_neg(other), input));
    opd_tensor *quotient = opd_mul(opd_mul(gate, opdi_rsubs(1, gate)), other);
    grad = opdi_muls(opd_mul(grad, opd_bw_tensor(bw, 0)), f);
    OPDI_BW_RETURN(1, opd_mul(grad, opd_mul(quotient, other)));
    OPDI_BW_RETURN(2, opd_mul(grad, opd_sub(opd_mul(quotient, input), gate)));
    return 0;
}
/* opd_soft_margin_loss: log(1 + e^(-target * self)) */
OPDI_OP(soft_margin_loss) {
    op->schema = "soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor";
    op->any = opdi_soft_margin_loss_kernel; op->backward = opdi_soft_margin_loss_backward; op->save = "self, target";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_FP32;
    op->out = "soft_margin_loss.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [2,3]";
}
/* opd_soft_margin_loss_backward: derivative of soft_margin_loss */
OPDI_OP(soft_margin_loss_backward) {
    op->schema = "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor";
    op->any = opdi_soft_margin_loss_backward_kernel; op->backward = opdi_soft_margin_loss_backward_backward;
    op->save = "grad_output, self, target";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "soft_margin_loss_backward.grad_input(grad_input)";
    op->cases = "[], [2,3], [2,3], 1";
    op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
}

//== composite losses and distances ====================================================================================

static int opdi_kl_div_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    if (opd_dtype_is_integral((opd_scalar_type)input->dtype, true) ||
        opd_dtype_is_integral((opd_scalar_type)other->dtype, true)) {
        return opd_fail(OPD_ERROR_DTYPE, "kl_div: Integral inputs not supported.");
    }
    if (opdi_is_complex(input) || opdi_is_complex(other)) {
        return opd_fail(OPD_ERROR_DTYPE, "kl_div: Complex inputs not supported.");
    }
    opd_tensor *loss = opd_arg_bool(call, 3) ? opd_exp(other) : opd_xlogy(other, other);
    loss = opd_arg_bool(call, 3) ? opd_mul(loss, opd_sub(other, input)) : opd_sub(loss, opd_mul(other, input));
    return opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 2)));
}
static int opdi_hinge_embedding_loss_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1), *zero = opd_zeros_like(input);
    opd_tensor *mean = opd_clamp_min(opdi_rsubs(opd_arg_double(call, 2), input), opd_value_int(0));
    opd_tensor *const chosen = opd_where_self(opd_ne_Scalar(other, opd_value_int(1)), mean, zero);
    mean = opd_add(chosen, opd_where_self(opd_ne_Scalar(other, opd_value_int(-1)), input, zero));
    return opd_return_tensor(call, opdi_reduced(mean, opd_arg_int(call, 3)));
}
static int opdi_margin_ranking_loss_kernel(opd_call *call) {
    opd_tensor *const minus = opd_neg(opd_arg_tensor(call, 2)),
        *delta = opd_mul(minus, opd_sub(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
    return opd_return_tensor(call,
                             opdi_reduced(opd_clamp_min(opdi_adds(delta, opd_arg_double(call, 3)), opd_value_int(0)),
                                          opd_arg_int(call, 4)));
}
/* cosine_similarity: computes the sum along dim of x1 * x2 / (max(|x1|, eps) * max(|x2|, eps)), with x1 and x2
   broadcast to each other. */
static int opdi_cosine_similarity_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    const int64_t dim = opd_arg_int(call, 2);
    const opd_value eps = opd_value_double(opd_arg_double(call, 3)), at = opd_value_of_ints(opd_ints_of(&dim, 1));
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    if (!(opd_arg_double(call, 3) >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "eps must be non-negative, got: %g", opd_arg_double(call, 3));
    }
    if (opdi_loss_floating(input, other, "cosine_similarity") || opdi_broadcast_into(sizes, &ndim, input) ||
        opdi_broadcast_into(sizes, &ndim, other)) {
        return -1;
    }
    opd_tensor *both[2];
    both[0] = input;
    both[1] = other;
    const opd_scalar_type dtype = opdi_result_type(both, 2);
    if (input->dtype != dtype) { input = opd_to_dtype(input, dtype); }
    if (other->dtype != dtype) { other = opd_to_dtype(other, dtype); }
    if (input && !opdi_has_sizes(input, sizes, ndim)) { input = opdi_maybe_expand(input, sizes, ndim); }
    if (other && !opdi_has_sizes(other, sizes, ndim)) { other = opdi_maybe_expand(other, sizes, ndim); }
    if (!input || !other) { return -1; }
    opd_tensor *first = opd_clamp_min(opd_linalg_vector_norm_full(input, opd_value_int(2), at, true, OPD_NONE), eps);
    opd_tensor *second = opd_clamp_min(opd_linalg_vector_norm_full(other, opd_value_int(2), at, true, OPD_NONE), eps);
    opd_tensor *const quotient = opd_div(input, first);
    return opd_return_tensor(call, opdi_maybe_sum_dims(opd_mul(quotient, opd_div(other, second)), &dim, 1, false));
}
static int opdi_cosine_embedding_loss_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1), *tensor = opd_arg_tensor(call, 2);
    const int64_t dim = tensor->ndim;
    if (tensor->ndim > 1 || input->ndim != tensor->ndim + 1 || other->ndim != tensor->ndim + 1) {
        return opd_fail(OPD_ERROR_SHAPE, "%dD target tensor expects %dD input tensors", tensor->ndim, tensor->ndim + 1);
    }
    opd_tensor *third = opdi_maybe_sum_dims(opd_mul(input, other), &dim, 1, false);
    opd_tensor *const shifted = opdi_adds(opdi_maybe_sum_dims(opd_mul(input, input), &dim, 1, false), 1e-12),
        *loss = opd_mul(shifted, opdi_adds(opdi_maybe_sum_dims(opd_mul(other, other), &dim, 1, false), 1e-12));
    third = opd_div(third, opd_sqrt(loss));
    opd_tensor *zero = opd_zeros_like(third);
    loss = opd_where_self(opd_eq_Scalar(tensor, opd_value_int(1)), opdi_rsubs(1, third), zero);
    loss = opd_add(loss,
                   opd_where_self(opd_eq_Scalar(tensor, opd_value_int(-1)),
                                  opd_clamp_min(opdi_adds(third, -opd_arg_double(call, 3)), opd_value_int(0)), zero));
    return opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 4)));
}
static opd_tensor *opdi_norm_distance(opd_tensor *input, opd_tensor *output, double p, double eps, bool keep) {
    const int64_t last = OPDI_MAX((int)input->ndim, (int)output->ndim) - 1;
    return opd_norm_dim(opdi_adds(opd_sub(input, output), eps), opd_value_double(p), opd_ints_of(&last, 1), keep);
}
static int opdi_pairwise_distance_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_norm_distance(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                      opd_arg_double(call, 2), opd_arg_double(call, 3),
                                                          opd_arg_bool(call, 4)));
}
static int opdi_triplet_margin_loss_kernel(opd_call *call) {
    opd_tensor *first = opd_arg_tensor(call, 0), *part = opd_arg_tensor(call, 1), *next = opd_arg_tensor(call, 2);
    const double k = opd_arg_double(call, 4), eps = opd_arg_double(call, 5);
    if (first->ndim != part->ndim || part->ndim != next->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "All inputs should have same dimension but got %dD, %dD and %dD inputs.",
                        first->ndim, part->ndim, next->ndim);
    }
    opd_tensor *hit = opdi_norm_distance(first, part, k, eps, false);
    opd_tensor *miss = opdi_norm_distance(first, next, k, eps, false);
    if (opd_arg_bool(call, 6)) { miss = opd_minimum(miss, opdi_norm_distance(part, next, k, eps, false)); }
    return opd_return_tensor(call, opdi_reduced(opd_clamp_min(opd_sub(opdi_adds(hit, opd_arg_double(call, 3)), miss),
                                                              opd_value_int(0)), opd_arg_int(call, 7)));
}
static int opdi_poisson_nll_loss_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    opd_tensor *loss = opd_arg_bool(call, 2) ? opd_exp(input) : input;
    loss = opd_sub(loss, opd_mul(other, opd_arg_bool(call, 2) ? input
                                 : opd_log(opdi_adds(input, opd_arg_double(call, 4)))));
    if (opd_arg_bool(call, 3)) {                  /* Stirling's formula, for y > 1 */
        opd_tensor *low = opd_le_Scalar(other, opd_value_int(1));
        other = opd_masked_fill_Scalar(other, low, opd_value_int(1));     /* 0 has an infinite derivative */
        opd_tensor *sum = opd_sub(opd_mul(other, opd_log(other)), other);
        sum = opd_add(sum, opdi_muls(opd_log(opdi_muls(other, 2 * 3.14159265358979323846)), 0.5));
        loss = opd_add(loss, opdi_unless(sum, low));
    }
    return opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 5)));
}
/* opd_kl_div: target * (log(target) - self) */
OPDI_OP(kl_div) {
    op->schema = "kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor";
    op->composite = opdi_kl_div_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3]u";
}
/* opd_hinge_embedding_loss: self where target is 1, max(0, margin - self) where it is -1 */
OPDI_OP(hinge_embedding_loss) {
    op->schema = "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor";
    op->composite = opdi_hinge_embedding_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3]i2";
}
/* opd_margin_ranking_loss: max(0, -target * (input1 - input2) + margin) */
OPDI_OP(margin_ranking_loss) {
    op->schema = "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) "
        "-> Tensor";
    op->composite = opdi_margin_ranking_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3], [2,3]";
}
/* opd_cosine_similarity: x1 . x2 / (|x1| |x2|) along dim */
OPDI_OP(cosine_similarity) {
    op->schema = "cosine_similarity(Tensor x1, Tensor x2, int dim=1, float eps=1e-08) -> Tensor";
    op->composite = opdi_cosine_similarity_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->cases = "[2,3], [2,3]";
}
/* opd_cosine_embedding_loss: 1 - cosine where target is 1, max(0, cosine - margin) where it is -1 */
OPDI_OP(cosine_embedding_loss) {
    op->schema = "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int "
        "reduction=1) -> Tensor";
    op->composite = opdi_cosine_embedding_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3], [2]i2";
}
/* opd_pairwise_distance: the p-norm of x1 - x2 + eps along the last dim */
OPDI_OP(pairwise_distance) {
    op->schema = "pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, bool keepdim=False) -> Tensor";
    op->composite = opdi_pairwise_distance_kernel;
    op->cases = "[2,3], [2,3]";
}
/* opd_triplet_margin_loss: max(0, d(anchor, positive) - d(anchor, negative) + margin) */
OPDI_OP(triplet_margin_loss) {
    op->schema = "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, "
        "float eps=1e-06, bool swap=False, int reduction=1) -> Tensor";
    op->composite = opdi_triplet_margin_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3], [2,3]";
}
/* opd_poisson_nll_loss: e^input - target * input if log_input, else input - target * log(input) */
OPDI_OP(poisson_nll_loss) {
    op->schema = "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) "
        "-> Tensor";
    op->composite = opdi_poisson_nll_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[2,3], [2,3]+, True, False, 0.00000001, 1";
}

/* Checks that target, [n] or [], has a class for each row of input [n, c] or [c].  Returns 0, or -1 and sets an
   error. */
static int opdi_margin_check(const opd_tensor *input, const opd_tensor *target, const opd_tensor *weight) {
    if (input->ndim < 1 || input->ndim > 2 || opdi_sizes(input)[input->ndim - 1] == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected non-empty vector or matrix with optional 0-dim batch size, but got "
                        "%d dims", input->ndim);
    }
    if (target->ndim > 1 || target->numel != (input->ndim == 2 ? opdi_sizes(input)[0] : 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "inconsistent target size, expected %lld but got %lld",
                        (long long)(input->ndim == 2 ? opdi_sizes(input)[0] : 1), (long long)target->numel);
    }
    if (target->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "expected scalar type int64 but found %s",
                        opd_dtype_name((opd_scalar_type)target->dtype));
    }
    if (weight && (weight->ndim != 1 || weight->numel != opdi_sizes(input)[input->ndim - 1])) {
        return opd_fail(OPD_ERROR_SHAPE, "inconsistent weight size, expected %lld but got %lld elements",
                        (long long)opdi_sizes(input)[input->ndim - 1], (long long)weight->numel);
    }
    return opdi_norm_floating(input, "multi_margin_loss_cpu_kernel");
}
/* Returns the losses [.., classes] that multi_margin_loss sums: max(0, margin - x[target] + x)^p * weight[target] for
   each class, and 0 for the target itself.  If `slope` is true, returns their derivatives by x instead.  target has the
   batch dims of input and a last dim of size 1. */
static opd_tensor *opdi_margin_terms(opd_tensor *input, opd_tensor *target, double p, double margin,
                                     opd_tensor *weight, bool slope) {
    opd_tensor *loss = opdi_adds(opd_sub(input, opd_gather(input, -1, target)), margin);
    if (slope && p == 1) { loss = opd_to_dtype(opd_gt_Scalar(loss, opd_value_int(0)), opd_dtype(input)); }
    else { loss = opd_relu(loss); }
    if (p == 2) { loss = slope ? opdi_muls(loss, 2) : opd_square(loss); }
    if (weight && target) {
        opd_tensor *each = opd_index_select(weight, 0, opd_flatten(target, 0, -1));
        loss = opd_mul(loss, opdi_reshape_to(each, opdi_sizes(target), target->ndim));
    }
    opd_tensor *own = opd_zeros_like(loss);
    return own ? opd_scatter(loss, -1, target, opd_gather(own, -1, target)) : NULL;
}
/* Checks the arguments of a multi_margin_loss, of which self is argument number `from`.  Sets *input [.., classes]
   and *target [.., 1].  Returns the number of classes, or -1 and sets an error. */
static int64_t opdi_margin_read(opd_call *call, int from, opd_tensor **input, opd_tensor **target) {
    opd_tensor *weight = opd_arg_tensor(call, from + 4);
    const double p = opdi_scalar_of(&call->args[from + 2]);
    *input = opd_arg_tensor(call, from);
    *target = opd_arg_tensor(call, from + 1);
    if (p != 1 && p != 2) { return opd_fail(OPD_ERROR_ARGUMENT, "only p == 1 and p == 2 supported"); }
    if ((*input)->ndim == 0 && !(*input = opd_unsqueeze(*input, 0))) { return -1; }
    if (opdi_margin_check(*input, *target, weight) || opdi_refuse_complex(*input, call->op->schema->name) ||
        opdi_refuse_complex(weight, call->op->schema->name)) {
        return -1;
    }
    *target = opd_unsqueeze((*input)->ndim == 1 ? opd_squeeze(*target) : *target, -1);
    return *target ? opdi_sizes(*input)[(*input)->ndim - 1] : -1;
}
/* multi_margin_loss: computes for each row the sum of opdi_margin_terms over the classes, divided by the number of
   classes. */
static int opdi_multi_margin_loss_kernel(opd_call *call) {
    opd_tensor *input, *target;
    const int64_t classes = opdi_margin_read(call, 0, &input, &target), last = -1;
    if (classes < 0) { return -1; }
    opd_tensor *loss = opdi_margin_terms(input, target, opdi_scalar_of(&call->args[2]),
                                         opdi_scalar_of(&call->args[3]), opd_arg_tensor(call, 4), false);
    loss = opdi_muls(opdi_maybe_sum_dims(loss, &last, 1, false), 1 / (double)classes);
    if (input->ndim == 1 && opd_arg_tensor(call, 1)->ndim == 1) { loss = opd_unsqueeze(loss, 0); }
    return opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 5)));
}
/* Returns the gradient of input: slopes [.., classes] times the gradient of the loss of each row under `reduction`. */
static opd_tensor *opdi_margin_chain(opd_tensor *slope, opd_tensor *grad, opd_tensor *input, int64_t reduction) {
    const int64_t rows = slope && slope->ndim == 2 ? opdi_sizes(slope)[0] : 1;
    const bool each = reduction == 0 && grad->ndim == 1 && slope && slope->ndim == 2;
    if (!slope) { return NULL; }
    if (each ? grad->numel != rows : grad->numel != 1 || grad->ndim > 1) {
        char text[256];
        (void)opd_fail(OPD_ERROR_SHAPE, "Expected grad_output to have the sizes of the loss, but got %s",
                       opdi_sizes_text(opdi_sizes(grad), grad->ndim, text, sizeof text));
        return NULL;
    }
    grad = opdi_reshape_to(grad, &rows, each);
    slope = opd_mul(slope, each ? opd_unsqueeze(grad, -1) : grad);
    if (reduction == 1) { slope = opdi_muls(slope, 1 / (double)OPDI_MAX(rows, (int64_t)1)); }
    return opdi_reshape_to(slope, opdi_sizes(input), input->ndim);
}
static int opdi_multi_margin_loss_backward_kernel(opd_call *call) {
    opd_tensor *input, *target;
    const int64_t classes = opdi_margin_read(call, 1, &input, &target), last = -1;
    if (classes < 0 || opdi_same_dtype(input, opd_arg_tensor(call, 0))) { return -1; }
    opd_tensor *slope = opdi_margin_terms(input, target, opdi_scalar_of(&call->args[3]),
                                          opdi_scalar_of(&call->args[4]), opd_arg_tensor(call, 5), true);
    slope = opd_scatter(slope, -1, target, opd_neg(opdi_maybe_sum_dims(slope, &last, 1, true)));
    slope = opdi_muls(slope, 1 / (double)classes);
    return opd_return_tensor(call, opdi_margin_chain(slope, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                     opd_arg_int(call, 6)));
}
/* Checks the labels, if their data can be read: no label may be less than -1, the end of a list of labels.  Returns 0,
   or -1 and sets an error. */
static int opdi_multilabel_check(opd_tensor *target) {
    while (target->flags & OPDI_BATCHED) { target = opdi_batched_of(target)->value; }
    if (!target->data || target->backend != OPD_CPU) { return 0; }
    target = opdi_dense_as(target, OPD_INT64);
    for (int64_t i = 0; target && i < target->numel; i++) {
        if (((const int64_t *)(const void *)target->data)[i] < -1) {
            return opd_fail(OPD_ERROR_INDEX, "argument #2 'target' is out of range");
        }
    }
    return target ? 0 : -1;
}
/* Checks the arguments of a multilabel_margin_loss: self is argument number `from`, target the next argument.  Sets
   *input and *target, with at least one dim.  Sets *valid to true for the labels before the first -1 of their row.
   Returns 0, or -1 and sets an error. */
static int opdi_multilabel_read(opd_call *call, int from, opd_tensor **input, opd_tensor **target, opd_tensor **valid) {
    *input = opd_arg_tensor(call, from);
    *target = opd_arg_tensor(call, from + 1);
    const int ndim = (*input)->ndim;
    if (ndim > 2 || (ndim && opdi_sizes(*input)[ndim - 1] == 0) || !opdi_same_sizes(*input, *target) ||
        (*target)->dtype != OPD_INT64) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "expected a vector or matrix that is not empty and an int64 target with the "
                        "same sizes, but got %s and %s%s", opdi_shape_text(*input, first),
                        opd_dtype_name(OPDI_DTYPE(*target)), opdi_shape_text(*target, second));
    }
    if (opdi_norm_floating(*input, call->op->schema->name) || opdi_multilabel_check(*target)) { return -1; }
    if (ndim == 0) {
        *input = opd_unsqueeze(*input, 0);
        *target = opd_unsqueeze(*target, 0);
    }
    opd_tensor *ended = opd_to_dtype(opd_lt_Scalar(*target, opd_value_int(0)), OPD_INT64);
    *valid = opd_eq_Scalar(opd_cumsum(ended, -1), opd_value_int(0));
    return opd_ok() ? 0 : -1;
}
/* Returns 1 - x[t] + x[i] for each label t of a row and each class i, [.., labels, classes].  Sets *counts to true
   for the pairs that contribute to the loss: a valid label, and a class that is not a target. */
static opd_tensor *opdi_multilabel_gaps(opd_tensor *input, opd_tensor *target, opd_tensor *valid, opd_tensor *hits,
                                        opd_tensor **counts) {
    opd_tensor *at = opd_gather(input, -1, opd_clamp_min(target, opd_value_int(0)));
    *counts = opd_logical_and(opd_unsqueeze(valid, -1), opd_unsqueeze(opd_logical_not(hits), -2));
    opd_tensor *const column = opd_unsqueeze(input, -2);
    return opdi_adds(opd_sub(column, opd_unsqueeze(at, -1)), 1);
}
/* multilabel_margin_loss_forward: computes the sum of max(0, 1 - x[t] + x[i]) over each target t and each class i
   that is not a target, divided by the number of classes.  The list of targets ends at the first -1.  The second
   result is 1 for each class that is a target, else 0. */
static int opdi_multilabel_margin_loss_forward_kernel(opd_call *call) {
    opd_tensor *input, *target, *valid, *counts, *first = opd_arg_tensor(call, 0);
    const int64_t last[] = {-2, -1};
    if (opdi_multilabel_read(call, 0, &input, &target, &valid)) { return -1; }
    const double classes = (double)opdi_sizes(input)[input->ndim - 1];
    opd_tensor *hits = opd_zeros_like_full(input, opd_value_int(OPD_INT64), OPD_NONE, OPD_NONE, OPD_NONE, OPD_NONE);
    opd_tensor *const clamped = opd_clamp_min(target, opd_value_int(0));
    hits = opd_scatter_add(hits, -1, clamped, opd_to_dtype(valid, OPD_INT64));
    hits = opd_gt_Scalar(hits, opd_value_int(0));
    opd_tensor *loss = opdi_multilabel_gaps(input, target, valid, hits, &counts);
    loss = opdi_muls(opdi_maybe_sum_dims(opdi_where(counts, opd_relu(loss)), last, 2, false), 1 / classes);
    if (opd_return_tensor(call, opdi_reduced(loss, opd_arg_int(call, 2)))) { return -1; }
    hits = opd_to_dtype(hits, opd_dtype(first));
    return opd_return_tensor(call, opdi_reshape_to(hits, opdi_sizes(first), first->ndim));
}
static int opdi_multilabel_margin_loss_kernel(opd_call *call) {
    opd_tensor *rets[2];
    if (opd_multilabel_margin_loss_forward(rets, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                           opd_arg_int(call, 2))) {
        return -1;
    }
    return opd_return_tensor(call, rets[0]);
}
/* Computes the gradient of multilabel_margin_loss: each pair of a label and a class whose loss is positive adds to the
   gradient of the class, and subtracts from the gradient of the label. */
static int opdi_multilabel_margin_loss_backward_kernel(opd_call *call) {
    opd_tensor *input, *target, *valid, *counts, *grad = opd_arg_tensor(call, 0), *first = opd_arg_tensor(call, 1);
    opd_tensor *hits = opd_arg_tensor(call, 4);
    const int64_t labels = -2, last = -1;
    if (opdi_multilabel_read(call, 1, &input, &target, &valid) || opdi_same_dtype(first, grad)) { return -1; }
    if (!opdi_same_sizes(hits, first)) {
        return opd_fail(OPD_ERROR_SHAPE, "is_target must have the sizes of self");
    }
    hits = opdi_reshape_to(opd_ne_Scalar(hits, opd_value_int(0)), opdi_sizes(input), input->ndim);
    const double classes = (double)opdi_sizes(input)[input->ndim - 1];
    opd_tensor *pairs = opdi_multilabel_gaps(input, target, valid, hits, &counts);
    pairs = opd_logical_and(counts, opd_gt_Scalar(pairs, opd_value_int(0)));
    pairs = opdi_muls(opd_to_dtype(pairs, opd_dtype(first)), 1 / classes);
    opd_tensor *const sum = opdi_maybe_sum_dims(pairs, &labels, 1, false),
        *const clamped = opd_clamp_min(target, opd_value_int(0)),
        *slope = opd_scatter_add(sum, -1, clamped, opd_neg(opdi_maybe_sum_dims(pairs, &last, 1, false)));
    return opd_return_tensor(call, opdi_margin_chain(slope, grad, first, opd_arg_int(call, 3)));
}
/* opd_multi_margin_loss: the sum of max(0, margin - x[target] + x[i])^p over all other classes i */
OPDI_OP(multi_margin_loss) {
    op->schema = "multi_margin_loss(Tensor self, Tensor target, Scalar p=1, Scalar margin=1, Tensor? weight=None, int "
        "reduction=1) -> Tensor";
    op->composite = opdi_multi_margin_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->out = "multi_margin_loss.out";
    op->cases = "[2,3], [2]i3; [3,4], [3]i4, 2, 0.5, [4]+, 2; [4], []i4, 1, 1, None, 0";
}
/* opd_multi_margin_loss_backward: derivative of multi_margin_loss */
OPDI_OP(multi_margin_loss_backward) {
    op->schema = "multi_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, Scalar p, Scalar margin, "
        "Tensor? weight=None, int reduction=1) -> Tensor";
    op->composite = opdi_multi_margin_loss_backward_kernel;
    op->out = "multi_margin_loss_backward.grad_input(grad_input)";
    op->cases = "[], [2,3], [2]i3, 1, 1; [3], [3,4], [3]i4, 2, 0.5, [4]+, 0; [], [4], []i4, 1, 1, None, 2";
}
/* opd_multilabel_margin_loss: the sum of max(0, 1 - x[t] + x[i]) over targets t and all other classes i */
OPDI_OP(multilabel_margin_loss) {
    op->schema = "multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor";
    op->composite = opdi_multilabel_margin_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->out = "multilabel_margin_loss.out";
    op->cases = "[2,3], [2,3]i3; [4], [4]i4, 0";
}
/* opd_multilabel_margin_loss_forward: multilabel_margin_loss, and 1 for each class that is a target */
OPDI_OP(multilabel_margin_loss_forward) {
    op->schema = "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> (Tensor output, Tensor "
        "is_target)";
    op->composite = opdi_multilabel_margin_loss_forward_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "multilabel_margin_loss_forward.output(Tensor self, Tensor target, int reduction, *, Tensor(a!) output, "
        "Tensor(b!) is_target) -> (Tensor(a!), Tensor(b!))";
    op->cases = "[2,3], [2,3]i3, 1; [4], [4]i4, 0";
}
/* opd_multilabel_margin_loss_backward: derivative of multilabel_margin_loss_forward */
OPDI_OP(multilabel_margin_loss_backward) {
    op->schema = "multilabel_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, "
        "Tensor is_target) -> Tensor";
    op->composite = opdi_multilabel_margin_loss_backward_kernel;
    op->out = "multilabel_margin_loss_backward.grad_input(grad_input)";
    op->cases = "[], [2,3], [2,3]i3, 1, [2,3]b; [2], [2,3], [2,3]i3, 0, [2,3]b";
}
