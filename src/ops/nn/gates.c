#include "../ops.h"

//== glu, prelu ========================================================================================================

static int opdi_glu_dim(const opd_tensor *input, int64_t dim, int64_t *half) {
    if (input->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "glu does not support 0-dimensional tensors"); }
    int axis = opdi_dim_of(dim, input->ndim);
    if (axis < 0) { return -1; }
    *half = opdi_sizes(input)[axis] / 2;
    if (opdi_sizes(input)[axis] % 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Halving dimension must be even, but dimension %d is size %lld", axis,
                        (long long)opdi_sizes(input)[axis]);
    }
    return axis;
}
/* glu: computes a * sigmoid(b), where a and b are the two halves of input along dim. */
static int opdi_glu_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    int64_t half;
    const int dim = opdi_glu_dim(input, opd_arg_int(call, 1), &half);
    if (dim < 0 || opdi_norm_floating(input, "glu_cpu")) { return -1; }
    opd_tensor *first = opdi_maybe_narrow(input, dim, 0, half), *gate = opdi_maybe_narrow(input, dim, half, half);
    int rc;
    if (opdi_gate_run(call, OPDI_GATE_GLU, first, gate, NULL, &rc)) { return rc; }
    if (opdi_is_half(OPDI_DTYPE(input))) {        /* computed in float, so that results are rounded once */
        gate = opd_sigmoid(opd_to_dtype(gate, OPD_FLOAT32));
        return opd_return_tensor(call, opd_to_dtype(opd_mul(opd_to_dtype(first, OPD_FLOAT32), gate),
                                                    OPDI_DTYPE(input)));
    }
    return opd_return_tensor(call, opd_mul(first, opd_sigmoid(gate)));
}
static opd_tensor *opdi_glu_slope(opd_tensor *grad, opd_tensor *input, int dim, int64_t half) {
    opd_tensor *first = opdi_maybe_narrow(input, dim, 0, half),
        *gate = opd_sigmoid(opdi_maybe_narrow(input, dim, half, half)),
        *two[2];
    two[0] = opd_mul(grad, gate);
    opd_tensor *const product = opd_mul(two[0], first);
    two[1] = opd_mul(product, opdi_rsubs(1, gate));
    return opd_ok() ? opd_contiguous(opd_cat(opd_tensors_of(two, 2), dim)) : NULL;
}
static int opdi_glu_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    int64_t half, sizes[OPD_MAX_DIMS];
    const int dim = opdi_glu_dim(input, opd_arg_int(call, 2), &half);
    if (dim < 0 || opdi_refuse_complex(input, "glu_backward_cpu") || opdi_refuse_complex(grad, "glu_backward_cpu")) {
        return -1;
    }
    memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
    sizes[dim] = half;
    if (opdi_expand_check(grad, sizes, input->ndim) != 0) { return -1; }
    if (!opd_dtype_is_floating(OPDI_DTYPE(grad)) && opd_dtype_is_floating(OPDI_DTYPE(input))) {
        return opdi_found_fail(OPDI_DTYPE(grad), OPDI_DTYPE(input));
    }
    return opd_return_tensor(call, opdi_glu_slope(opd_arg_tensor(call, 0), input, dim, half));
}
static int opdi_glu_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_glu_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1).u.i));
}
/* Computes the second derivatives of glu, which is a * s with s = sigmoid(b).  G_a and G_b are the incoming gradients
   for the two halves of glu_backward's result.  grad_out gets G_a * s + G_b * a * s * (1 - s).  The halves a and b of
   input get grad_out * G_b * s * (1 - s) and grad_out * s * (1 - s) * (G_a + G_b * a * (1 - 2 * s)). */
static int opdi_glu_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *input = opd_bw_tensor(bw, 1), *two[2];
    int64_t half;
    const int dim = opdi_glu_dim(input, opd_bw_value(bw, 2).u.i, &half);
    if (dim < 0) { return -1; }
    opd_tensor *first = opdi_maybe_narrow(input, dim, 0, half);
    opd_tensor *gate = opd_sigmoid(opdi_maybe_narrow(input, dim, half, half));
    opd_tensor *ga = opdi_maybe_narrow(grad, dim, 0, half);
    opd_tensor *gb = opdi_maybe_narrow(grad, dim, half, half);
    opd_tensor *quotient = opd_mul(gate, opdi_rsubs(1, gate));
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *const product = opd_mul(ga, gate);
        OPDI_BW_RETURN(0, opd_add(product, opd_mul(opd_mul(gb, first), quotient)));
    }
    two[0] = opd_mul(opd_mul(grad_out, gb), quotient);
    opd_tensor *const first_product = opd_mul(grad_out, quotient), *const other_product = opd_mul(gb, first);
    two[1] = opd_mul(first_product, opd_add(ga, opd_mul(other_product, opdi_rsubs(1, opdi_muls(gate, 2)))));
    if (!opd_ok()) { return -1; }
    OPDI_BW_RETURN(1, opd_cat(opd_tensors_of(two, 2), dim));
    return 0;
}
/* opd_glu: the first half along dim times sigmoid of the second half */
OPDI_OP(glu) {
    op->schema = "glu(Tensor self, int dim=-1) -> Tensor";
    op->any = opdi_glu_kernel; op->backward = opdi_glu_backward; op->save = "self";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "glu.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,4]; [4,3], 0";
}
/* opd_glu_backward: derivative of glu */
OPDI_OP(glu_backward) {
    op->schema = "glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor";
    op->any = opdi_glu_backward_kernel; op->backward = opdi_glu_backward_backward; op->save = "grad_output, self";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "glu_backward.grad_input(grad_input)";
    op->cases = "[2,2], [2,4], -1";
}

/* Returns the weight, a single number or one number for each channel (dim 1), in a shape that broadcasts to self. */
static opd_tensor *opdi_prelu_weight(const opd_tensor *input, opd_tensor *weight) {
    int64_t sizes[OPD_MAX_DIMS], channels = input->ndim > 1 ? opdi_sizes(input)[1] : 1;
    if (weight->numel != 1) {
        if (input->ndim == 0) {
            (void)opd_fail(OPD_ERROR_SHAPE, "Not allow zero-dim input tensor.");
            return NULL;
        }
        if (weight->numel != channels) {
            (void)opd_fail(OPD_ERROR_SHAPE, "Mismatch of parameter numbers and input channel size. Found parameter "
                           "numbers = %lld and channel size = %lld.", (long long)weight->numel, (long long)channels);
            return NULL;
        }
    }
    if (weight->ndim > 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "prelu: Expected `weight` to be a scalar or 1D tensor, but got ndim = %d",
                       weight->ndim);
        return NULL;
    }
    for (int dim = 0; dim < input->ndim; dim++) { sizes[dim] = dim == 1 && weight->numel != 1 ? channels : 1; }
    return opdi_maybe_reshape(weight, sizes, input->ndim);
}
static int opdi_prelu_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opdi_prelu_weight(input, opd_arg_tensor(call, 1));
    if (!weight || opdi_norm_floating(input, "prelu_cpu")) { return -1; }
    if (weight->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "prelu: Type promoting not supported. Got %s and %s",
                        opd_dtype_name((opd_scalar_type)input->dtype),
                        opd_dtype_name((opd_scalar_type)weight->dtype));
    }
    return opd_return_tensor(call, opd__prelu_kernel(input, weight));
}
/* Returns `tensor`, which has the sizes of input, summed over dims so that it has the sizes of weight. */
static opd_tensor *opdi_prelu_gather(opd_tensor *tensor, opd_tensor *weight, const opd_tensor *input) {
    int64_t dims[OPD_MAX_DIMS];
    int count = 0;
    for (int dim = 0; dim < input->ndim; dim++) { if (dim != 1 || weight->numel == 1) { dims[count++] = dim; } }
    if (count) { tensor = opdi_maybe_sum_dims(tensor, dims, count, false); }
    return opdi_maybe_reshape(tensor, opdi_sizes(weight), weight->ndim);
}
static int opdi_prelu_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2);
    opd_tensor *wide = opdi_prelu_weight(input, weight), *parts[2];
    if (!wide || opd__prelu_kernel_backward(parts, grad, input, wide)) { return -1; }
    if (opd_return_tensor(call, opd_contiguous(parts[0]))) { return -1; }
    return opd_return_tensor(call, opdi_prelu_gather(parts[1], weight, input));
}
/* opd_prelu: self, multiplied by weight if it is negative; one weight for all elements, or one for each channel */
OPDI_OP(prelu) {
    op->schema = "prelu(Tensor self, Tensor weight) -> Tensor";
    op->composite = opdi_prelu_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->out = "prelu.out";
    op->cases = "[2,3], [3]; [2,3], [1]";
}
/* opd_prelu_backward: derivatives of prelu */
OPDI_OP(prelu_backward) {
    op->schema = "prelu_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)";
    op->composite = opdi_prelu_backward_kernel;
    op->out = "prelu_backward.out(out0, out1)";
    op->cases = "[2,3], [2,3], [3]";
}
static int opdi_prelu_broadcast_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1);
    if (opdi_norm_floating(input, "prelu_cpu")) { return -1; }
    if (weight->dtype != input->dtype) { return opdi_found_fail(weight->dtype, input->dtype); }
    int rc;
    if (opdi_gate_run(call, OPDI_GATE_PRELU, input, weight, NULL, &rc)) { return rc; }
    return opd_return_tensor(call,
                             opd_where_self(opd_gt_Scalar(input, opd_value_int(0)), input, opd_mul(weight, input)));
}
static int opdi_prelu_broadcast_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2);
    opd_tensor *up = opd_gt_Scalar(input, opd_value_int(0));
    if (opd_return_tensor(call, opd_where_self(up, grad, opd_mul(weight, grad)))) { return -1; }
    return opd_return_tensor(call, opd_where_self(up, opdi_maybe_zeros(grad, opd_ints_of(NULL, 0)),
                                                  opd_mul(grad, input)));
}
static int opdi_prelu_broadcast_backward(opd_backward_call *bw) {
    opd_tensor *results[2];
    if (opd__prelu_kernel_backward(results, opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1))) {
        return -1;
    }
    OPDI_BW_RETURN(0, results[0]);
    OPDI_BW_RETURN(1, results[1]);
    return 0;
}
static int opdi_prelu_broadcast_backward_backward(opd_backward_call *bw) {
    opd_tensor *gx = opd_bw_grad(bw, 0), *gw = opd_bw_grad(bw, 1), *grad_out = opd_bw_tensor(bw, 0),
        *input = opd_bw_tensor(bw, 1), *weight = opd_bw_tensor(bw, 2), *to = NULL;
    opd_tensor *up = opd_gt_Scalar(input, opd_value_int(0));
    if (gx) { to = opd_where_self(up, gx, opd_mul(weight, gx)); }
    if (gw) { to = opdi_plus(to, opdi_unless(opd_mul(gw, input), up)); }
    OPDI_BW_RETURN(0, to);
    OPDI_BW_RETURN(1, gw ? opdi_unless(opd_mul(gw, grad_out), up) : NULL);
    OPDI_BW_RETURN(2, gx ? opdi_unless(opd_mul(gx, grad_out), up) : NULL);
    return 0;
}
/* opd__prelu_kernel: self, multiplied by weight (broadcast) if it is negative */
OPDI_OP(_prelu_kernel) {
    op->schema = "_prelu_kernel(Tensor self, Tensor weight) -> Tensor";
    op->any = opdi_prelu_broadcast_kernel; op->backward = opdi_prelu_broadcast_backward; op->save = "self, weight";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->cases = "[2,3], [3]; [2,3,4], [3,1]; [2,3], [2,3]";
}
/* opd__prelu_kernel_backward: derivatives of _prelu_kernel, in the sizes of self */
OPDI_OP(_prelu_kernel_backward) {
    op->schema = "_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)";
    op->any = opdi_prelu_broadcast_backward_kernel; op->backward = opdi_prelu_broadcast_backward_backward;
    op->save = "grad_output, self, weight";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->cases = "[2,3], [2,3], [3]; [2,3], [2,3], [2,3]";
}

/* Returns the random factors of rrelu in training: between lower and upper for elements that are not positive, 1 for
   positive elements. */
static opd_tensor *opdi_rrelu_factors(opd_call *call, opd_tensor *input, double lower, double upper) {
    opd_tensor *factor = opd_rand_generator_full(opd_ints_of(opdi_sizes(input), input->ndim), opdi_generator_of(call),
                                                 opd_value_int(input->dtype), OPD_NONE,
                                                 opd_value_device(opd_tensor_device(input)), OPD_NONE);
    factor = opdi_adds(opdi_muls(factor, upper - lower), lower);
    return opd_where_self(opd_le_Scalar(input, opd_value_int(0)), factor, opd_ones_like(input));
}
/* rrelu: in training, multiplies each negative element by its own random factor between lower and upper; in evaluation,
   by the mean of lower and upper.  If `noise` is true, there is a second result: the factors in training, a copy of the
   noise argument in evaluation.  Returns 0, or -1 and sets an error. */
static int opdi_rrelu_of(opd_call *call, bool noise) {
    opd_tensor *input = opd_arg_tensor(call, 0), *factors = noise ? opd_arg_tensor(call, 1) : NULL;
    const int at = noise ? 2 : 1;
    const double lower = opdi_scalar_of(&call->args[at]), upper = opdi_scalar_of(&call->args[at + 1]);
    if (!(lower <= upper)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Lower bound should be less than or equal to the upper bound");
    }
    const bool training = opd_arg_bool(call, at + 2);
    if (training) { factors = opdi_rrelu_factors(call, input, lower, upper); }
    opd_tensor *out = training ? opd_mul(input, factors)
        : opd_leaky_relu(input, opd_value_double((lower + upper) / 2));
    if (opd_return_tensor(call, out) || !noise) { return opd_ok() ? 0 : -1; }
    return opd_return_tensor(call, training ? factors : opd_clone(factors));
}
static int opdi_rrelu_kernel(opd_call *call) { return opdi_rrelu_of(call, false); }
static int opdi_rrelu_with_noise_functional_kernel(opd_call *call) { return opdi_rrelu_of(call, true); }
/* Returns rrelu_with_noise; in training, also writes the factors into the argument noise.  On failure, returns NULL and
   sets an error. */
static opd_tensor *opdi_rrelu_writing(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *noise = opd_arg_tensor(call, 1), *rets[2];
    const bool training = opd_arg_bool(call, 4);
    if (training && !opdi_same_sizes(self, noise)) {
        char first[256], second[256];
        (void)opd_fail(OPD_ERROR_SHAPE, "noise must have self's sizes, %s, but has %s", opdi_shape_text(self, first),
                       opdi_shape_text(noise, second));
        return NULL;
    }
    if (opd_rrelu_with_noise_functional_full(rets, self, noise, opd_arg_value(call, 2), opd_arg_value(call, 3),
                                             training, opdi_generator_of(call))) {
        return NULL;
    }
    return !training || opd_copy_(noise, opd_detach(rets[1])) ? rets[0] : NULL;
}
static int opdi_rrelu_with_noise_kernel(opd_call *call) { return opd_return_tensor(call, opdi_rrelu_writing(call)); }
static int opdi_rrelu_with_noise_out_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out = opd_arg_tensor(call, 6);
    if (opd_call_requires_grad(call)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "rrelu_with_noise(): functions with out=... arguments don't support "
                        "automatic differentiation, but one of the arguments requires grad.");
    }
    if (out->dtype != self->dtype) { return opdi_out_dtype_fail(self->dtype, out->dtype); }
    opd_tensor *made = opdi_rrelu_writing(call);
    if (made && !opdi_same_sizes(out, made)) { out = opd_resize_(out, opd_ints_of(opdi_sizes(made), made->ndim)); }
    return opd_return_tensor(call, made && out ? opd_copy_(out, made) : NULL);
}
static int opdi_rrelu_with_noise_inplace_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opd_grad_mode_enabled() && opd_tensor_requires_grad(self) && opd_tensor_is_leaf(self)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place "
                        "operation.");
    }
    opd_tensor *out = opdi_rrelu_writing(call);
    return opd_return_tensor(call, out ? opd_copy_(self, out) : NULL);
}
/* Training: computes grad_output times the factors of the forward call, which are in noise.  Evaluation: computes the
   gradient of leaky_relu. */
static int opdi_rrelu_with_noise_backward_kernel(opd_call *call) {
    const double lower = opdi_scalar_of(&call->args[3]), upper = opdi_scalar_of(&call->args[4]);
    opd_tensor *grad = opd_arg_tensor(call, 0);
    if (opd_arg_bool(call, 5)) {
        return opd_return_tensor(call, opd_mul(grad, opd_arg_tensor(call, 2)));
    }
    return opd_return_tensor(call, opd_leaky_relu_backward(grad, opd_arg_tensor(call, 1),
                                                           opd_value_double((lower + upper) / 2),
                                                           opd_arg_bool(call, 6)));
}
/* opd_rrelu: leaky_relu with a random slope for each element */
OPDI_OP(rrelu) {
    op->schema = "rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False, "
        "Generator? generator=None) -> Tensor";
    op->composite = opdi_rrelu_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->inplace = "rrelu_";
    op->cases = "[2,3], 0.5, 0.5, True";
}
/* opd_rrelu_with_noise_functional: rrelu, and the slopes (1 for positive elements) */
OPDI_OP(rrelu_with_noise_functional) {
    op->schema = "rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar "
        "upper=0.33333333333333331, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)";
    op->composite = opdi_rrelu_with_noise_functional_kernel;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd_rrelu_with_noise: rrelu, with the slopes (1 for positive elements) written into noise */
OPDI_OP(rrelu_with_noise) {
    op->schema = "rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
        "upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor";
    op->composite = opdi_rrelu_with_noise_kernel;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";                               /* the functional variant has the test cases */
}
/* opd_rrelu_with_noise_out(self, noise, lower, upper, training, generator, out): rrelu into out, with the slopes
   written into noise */
OPDI_OP(rrelu_with_noise_out) {
    op->schema = "rrelu_with_noise.out(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
        "upper=0.33333333333333331, bool training=False, Generator? generator=None, *, Tensor(a!) out) -> Tensor(a!)";
    op->composite = opdi_rrelu_with_noise_out_kernel;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd_rrelu_with_noise_: rrelu into self, with the slopes written into noise */
OPDI_OP(rrelu_with_noise_) {
    op->schema = "rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, Scalar lower=0.125, Scalar "
        "upper=0.33333333333333331, bool training=False, Generator? generator=None) -> Tensor(a!)";
    op->composite = opdi_rrelu_with_noise_inplace_kernel;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "";
}
/* opd_rrelu_with_noise_backward: derivative of rrelu_with_noise */
OPDI_OP(rrelu_with_noise_backward) {
    op->schema = "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, "
        "bool training, bool self_is_result) -> Tensor";
    op->composite = opdi_rrelu_with_noise_backward_kernel;
    op->out = "rrelu_with_noise_backward.out";
    op->cases = "[2,3], [2,3], [2,3]u, 0.1, 0.3, True, False; [2,3], [2,3], [2,3]u, 0.1, 0.3, False, False";
}
