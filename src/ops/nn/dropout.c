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
    const bool here = name[strlen(name) - 1] == '_';
    if (p >= 1 && here) { return opd_return_tensor(call, opd_mul_Scalar_(input, opd_value_int(0))); }
    if (p >= 1) { return opd_return_tensor(call, opdi_muls(input, 0)); }       /* as PyTorch: draws no numbers */
    opd_tensor *noise = opdi_dropout_noise(input, p, strncmp(name, "feature_", strlen("feature_")) == 0);
    if (!here) { return opd_return_tensor(call, opd_mul(input, noise)); }
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
