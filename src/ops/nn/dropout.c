#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:dropout   dropout and fake quantisation
//----------------------------------------------------------------------------------------------------------------------

//== dropout ===========================================================================================================

static int opdi_dropout_check(double p) {
    return p >= 0 && p <= 1 ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "dropout probability has to be between 0 and 1, but "
                                           "got %g", p);
}
/* Returns a tensor whose elements are 1 with probability 1 - p, else 0.  Draws the random numbers for an unbatched
   tensor of these sizes, so that vmap's option `randomness` decides whether all examples get the same numbers. */
static opd_tensor *opdi_dropout_drawn(const opd_tensor *input, const int64_t *sizes, opd_scalar_type dtype, double p) {
    int64_t zeros[OPD_MAX_DIMS];
    memset(zeros, 0, sizeof zeros);
    return opd_bernoulli_p(opd_empty_strided_full(opd_ints_of(sizes, input->ndim), opd_ints_of(zeros, input->ndim),
                                                  opd_value_int(dtype), OPD_NONE,
                                                  opd_value_device(opd_tensor_device(input)), OPD_NONE), 1 - p);
}
static int opdi_native_dropout_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const double p = opd_arg_double(call, 1);
    const bool train = opd_arg_is_none(call, 2) || opd_arg_bool(call, 2);
    if (opdi_dropout_check(p)) { return -1; }
    if (input->numel == 0) {
        return opd_return_tensor(call, opd_clone(input)) ? -1 : opd_return_tensor(call, opd_empty_like(input));
    }
    if (!train) {
        opd_tensor *mask = opd_ones_like_full(input, opd_value_int(OPD_BOOL), OPD_NONE, OPD_NONE, OPD_NONE, OPD_NONE);
        if (opd_return_tensor(call, opd_clone(input))) { return -1; }
        return opd_return_tensor(call, mask);
    }
    opd_tensor *mask = opdi_dropout_drawn(input, opdi_sizes(input), OPD_BOOL, p);
    if (opd_return_tensor(call, opd_native_dropout_backward(input, mask, p >= 1 ? 0 : 1 / (1 - p)))) { return -1; }
    return opd_return_tensor(call, mask);
}
static int opdi_native_dropout_backward(opd_backward_call *bw) {
    const double p = opd_bw_value(bw, 1).u.d;
    const opd_value train = opd_bw_value(bw, 2);
    const bool on = train.tag == OPD_TAG_NONE || train.u.i;
    return opd_bw_return(bw, 0, opd_native_dropout_backward(opd_bw_grad(bw, 0), opd_bw_result(bw, 1), !on ? 1 : p >= 1
                                                            ? 0 : 1 / (1 - p)));
}
/* opd_native_dropout: dropout, and the mask of the kept elements */
OPDI_OP(native_dropout) {
    op->schema = "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)";
    op->any = opdi_native_dropout_kernel; op->backward = opdi_native_dropout_backward; op->save = "result1";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "native_dropout.out(out0, out1)";
    op->cases = "[2,3], 0.0, True";
}

static int opdi_native_dropout_backward_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_muls(opd_mul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)),
                                             opd_arg_double(call, 2)));
}
static int opdi_native_dropout_backward_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(0, opd_native_dropout_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 1), opd_bw_value(bw, 2).u.d));
    return opd_bw_return(bw, 1, NULL);
}
/* opd_native_dropout_backward: derivative of native_dropout */
OPDI_OP(native_dropout_backward) {
    op->schema = "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor";
    op->any = opdi_native_dropout_backward_kernel; op->backward = opdi_native_dropout_backward_backward;
    op->save = "mask";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT;
    op->out = "native_dropout_backward.out";
    op->cases = "[2,3], [2,3]b, 2.0";
}

/* Returns the factor of each element: 0 or 1 / (1 - p).  If `features` is true, there is one factor for each index
   of the first two dims. */
static opd_tensor *opdi_dropout_noise(opd_tensor *input, double p, bool features) {
    int64_t sizes[OPD_MAX_DIMS];
    if (features) {
        if (input->ndim < 2) {
            (void)opd_fail(OPD_ERROR_SHAPE, "Feature dropout requires at least 2 dimensions in the input");
            return NULL;
        }
        for (int dim = 0; dim < input->ndim; dim++) { sizes[dim] = dim < 2 ? opdi_sizes(input)[dim] : 1; }
    }
    opd_tensor *tensor = opdi_dropout_drawn(input, features ? sizes : opdi_sizes(input), (opd_scalar_type)input->dtype,
                                            p);
    return p >= 1 ? tensor : opd_div_Scalar(tensor, opd_value_double(1 - p));
}
static int opdi_dropout_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const double p = opd_arg_double(call, 1);
    const char *name = call->op->schema->name;
    if (opdi_dropout_check(p)) { return -1; }
    if (!(p > 0) || !opd_arg_bool(call, 2) || input->numel == 0) { return opd_return_tensor(call, input); }
    /* on GPUs, call the fused kernel, as PyTorch does; but not for float64, because the noise in float64 has other
       random numbers than the bool mask of native_dropout (see opd_draw) */
    if (strcmp(name, "dropout") == 0 && p < 1 && opd_tensor_device(input).type == OPD_CUDA &&
        input->dtype != OPD_FLOAT64) {
        opd_tensor *results[2];
        return opd_native_dropout(results, input, p, opd_value_bool(true)) ? -1 : opd_return_tensor(call, results[0]);
    }
    opd_tensor *noise = opdi_dropout_noise(input, p, strncmp(name, "feature_", strlen("feature_")) == 0);
    if (name[strlen(name) - 1] != '_') { return opd_return_tensor(call, opd_mul(input, noise)); }
    return opd_return_tensor(call, noise ? opd_mul_(input, noise) : NULL);
}
/* opd_dropout: 0 with probability p, else input / (1 - p); input itself unless train */
OPDI_OP(dropout) {
    op->schema = "dropout(Tensor input, float p, bool train) -> Tensor";
    op->composite = opdi_dropout_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3], 0.0, True";
}
/* opd_dropout_: dropout, in place */
OPDI_OP(dropout_) {
    op->schema = "dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)";
    op->composite = opdi_dropout_kernel; op->cases = "";
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
}
/* opd_feature_dropout: dropout of whole channels */
OPDI_OP(feature_dropout) {
    op->schema = "feature_dropout(Tensor input, float p, bool train) -> Tensor";
    op->composite = opdi_dropout_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3,4], 0.0, True";
}
/* opd_feature_dropout_: feature_dropout, in place */
OPDI_OP(feature_dropout_) {
    op->schema = "feature_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)";
    op->composite = opdi_dropout_kernel; op->cases = "";
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
}

/* alpha_dropout and feature_alpha_dropout: replace dropped elements by -1.758, the limit of SELU for x -> -infinity,
   and then compute a * x + b, so that the results keep mean 0 and variance 1. */
static int opdi_alpha_dropout_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const double p = opd_arg_double(call, 1), alpha = 1.7580993408473766;
    const double a = 1 / sqrt((alpha * alpha * p + 1) * (1 - p));
    if (opdi_dropout_check(p)) { return -1; }
    if (!(p > 0) || !opd_arg_bool(call, 2) || input->numel == 0) { return opd_return_tensor(call, input); }
    const char *name = call->op->schema->name;
    const bool here = name[strlen(name) - 1] == '_', features = strncmp(name, "feature_", strlen("feature_")) == 0;
    if (p >= 1 && here) { return opd_return_tensor(call, opd_mul_Scalar_(input, opd_value_int(0))); }
    if (p >= 1) { return opd_return_tensor(call, opdi_muls(input, 0)); }
    opd_tensor *kept = opdi_muls(opdi_dropout_noise(input, p, features), 1 - p);                 /* 0 or 1 */
    opd_tensor *shift = opdi_adds(opdi_muls(opdi_adds(kept, -1), alpha * a), alpha * a * p);
    if (here) { return opd_return_tensor(call, opd_add_(opd_mul_(input, opdi_muls(kept, a)), shift)); }
    return opd_return_tensor(call, opd_add(opd_mul(input, opdi_muls(kept, a)), shift));
}
/* opd_alpha_dropout: dropout that keeps mean and variance of SELU's outputs */
OPDI_OP(alpha_dropout) {
    op->schema = "alpha_dropout(Tensor input, float p, bool train) -> Tensor";
    op->composite = opdi_alpha_dropout_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3], 0.0, True";
}
/* opd_feature_alpha_dropout: alpha_dropout of whole channels */
OPDI_OP(feature_alpha_dropout) {
    op->schema = "feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor";
    op->composite = opdi_alpha_dropout_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING | OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[2,3,4], 0.0, True";
}
/* opd_alpha_dropout_: alpha_dropout, in place */
OPDI_OP(alpha_dropout_) {
    op->schema = "alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)";
    op->composite = opdi_alpha_dropout_kernel; op->cases = "";
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
}
/* opd_feature_alpha_dropout_: feature_alpha_dropout, in place */
OPDI_OP(feature_alpha_dropout_) {
    op->schema = "feature_alpha_dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)";
    op->composite = opdi_alpha_dropout_kernel; op->cases = "";
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
}

//== fake quantisation =================================================================================================

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
