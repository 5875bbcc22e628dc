#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:loss      losses, similarities, gated activations with parameters
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== nll_loss and cross_entropy_loss ===================================================================================

/* A loss of input [n, c, inner] (n samples, c classes) for the class numbers target [n, inner].  Targets that equal
   `ignore` do not count. */
typedef struct opdi_nll { int64_t n, c, inner, ignore, reduction; const int64_t *target; const double *weight;
    } opdi_nll;
/* Checks the arguments of nll_loss or, if `two`, nll_loss2d, and sets *nll.  Argument number `first` is the
   reduction, the next argument is ignore_index.  Returns 0, or -1 and sets an error. */
static int opdi_nll_check(opd_call *call, int first, opd_tensor *input, opd_tensor *target, opd_tensor *weight,
                          bool two, opdi_nll *nll) {
    char left[256], second[256];
    memset(nll, 0, sizeof *nll);
    if (two) {
        if (target->ndim != 3) {
            return opd_fail(OPD_ERROR_SHAPE, "only batches of spatial targets supported (3D tensors) but got targets "
                            "of dimension: %d", target->ndim);
        }
        if (input->ndim != 4) {
            return opd_fail(OPD_ERROR_SHAPE, "only batches of spatial inputs supported (4D tensors), but got input of "
                            "dimension: %d", input->ndim);
        }
        if (opdi_sizes(input)[0] != opdi_sizes(target)[0] || opdi_sizes(input)[2] != opdi_sizes(target)[1] ||
            opdi_sizes(input)[3] != opdi_sizes(target)[2]) {
            return opd_fail(OPD_ERROR_SHAPE, "size mismatch (got input: %s , target: %s",
                            opdi_sizes_text(opdi_sizes(input), 4, left, sizeof left),
                            opdi_sizes_text(opdi_sizes(target), 3, second, sizeof second));
        }
        nll->n = opdi_sizes(input)[0];
        nll->c = opdi_sizes(input)[1];
        nll->inner = opdi_sizes(input)[2] * opdi_sizes(input)[3];
    } else {
        if (input->ndim < 1 || input->ndim > 2) { return opd_fail(OPD_ERROR_SHAPE, "input tensor should be 1D or 2D"); }
        if (target->ndim > 1) {
            return opd_fail(OPD_ERROR_SHAPE, "0D or 1D target tensor expected, multi-target not supported");
        }
        if (input->ndim == 1 && target->numel != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "For 1D input, 1D target must have size 1, but got target size: %lld",
                            (long long)target->numel);
        }
        if (input->ndim == 2 && opdi_sizes(input)[0] != (target->ndim ? opdi_sizes(target)[0] : 1)) {
            return opd_fail(OPD_ERROR_SHAPE, "size mismatch (got input: %s, target: %s)",
                            opdi_sizes_text(opdi_sizes(input), input->ndim, left, sizeof left),
                                opdi_sizes_text(opdi_sizes(target), target->ndim, second, sizeof second));
        }
        nll->n = input->ndim == 1 ? 1 : opdi_sizes(input)[0];
        nll->c = opdi_sizes(input)[input->ndim - 1];
        nll->inner = 1;
    }
    if (weight && (weight->numel != nll->c || weight->ndim != 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "weight tensor should be defined either for all %lld classes or no classes "
                        "but got weight tensor of shape: %s", (long long)nll->c,
                        opdi_sizes_text(opdi_sizes(weight), weight->ndim, left, sizeof left));
    }
    if (target->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "expected scalar type int64 but found %s",
                        opd_dtype_name((opd_scalar_type)target->dtype));
    }
    if (weight && weight->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "expected scalar type %s but found %s",
                        opd_dtype_name((opd_scalar_type)input->dtype),
                        opd_dtype_name((opd_scalar_type)weight->dtype));
    }
    if (opdi_norm_floating(input, "nll_loss_out_frame")) { return -1; }
    nll->reduction = opd_arg_int(call, first);
    nll->ignore = opd_arg_int(call, first + 1);
    return 0;
}
static int opdi_nll_store(opd_tensor *out, double v) {
    opdi_number number;
    return opdi_copy(out, opdi_number_make(&number, opd_value_double(v)));
}
OPDI_COLD_END
/* Makes the targets and weights contiguous for the loops, as int64 and double.  Checks that every target is in range
   or ignored.  Returns 0, or -1 and sets an error. */
static int opdi_nll_open(opdi_nll *nll, opd_tensor *target, opd_tensor *weight) {
    target = opdi_dense_as(target, OPD_INT64);
    if (target && weight) {
        weight = opdi_dense_as(weight, OPD_FLOAT64);
        if (!weight) { return -1; }
    }
    if (!target) { return -1; }
    nll->target = (const int64_t *)(const void *)target->data;
    nll->weight = weight ? (const double *)(const void *)weight->data : NULL;
    for (int64_t i = 0; i < target->numel; i++) {
        const int64_t t = nll->target[i];
        if (t != nll->ignore && (t < 0 || t >= nll->c)) {
            return opd_fail(OPD_ERROR_INDEX, "Target %lld is out of bounds.", (long long)t);
        }
    }
    return 0;
}
/* Computes nll_loss or, if `two` is true, nll_loss2d: -weight[t] * self[.., t] for each target t, the sum of these
   numbers, or their weighted mean.  Result 1 is the sum of the weights, or 0 if there is no reduction.  Returns 0, or
   -1 and sets an error. */
static int opdi_nll_forward(opd_call *call, bool two) {
    opd_tensor *input = opd_arg_tensor(call, 0), *target = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2);
    double sum = 0, weight = 0;
    opdi_nll nll;
    if (opdi_nll_check(call, 3, input, target, w, two, &nll)) { return -1; }
    bool each = nll.reduction == OPDI_REDUCE_NONE && input->ndim > 1;
    opd_tensor *out = opd_result(call, 0, opdi_sizes(target), each ? target->ndim : 0, (opd_scalar_type)input->dtype);
    opd_tensor *total = out ? opd_result(call, 1, NULL, 0, (opd_scalar_type)input->dtype) : NULL;
    if (!total || !out->data) { return total ? 0 : -1; }
    if (opdi_nll_open(&nll, target, w)) { return -1; }
    input = opdi_dense_as(input, opdi_norm_type(input));
    opd_tensor *scratch = input && each ? opdi_staging(out, (opd_scalar_type)input->dtype) : out;
    if (!input || !scratch) { return -1; }
    for (int64_t i = 0, sample = 0, next = nll.inner; i < nll.n * nll.inner; i++) {
        if (i == next) {
            sample++;
            next += nll.inner;
        }
        const int64_t t = nll.target[i], at = (sample * (nll.c - 1) + t) * nll.inner + i;
        double v = 0;
        if (t != nll.ignore) {
            double f = nll.weight ? nll.weight[t] : 1;
            v = -f * (input->dtype == OPD_FLOAT64 ? ((const double *)(const void *)input->data)[at]
                      : (double)((const float *)(const void *)input->data)[at]);
            weight += f;
            sum += v;
        }
        if (each && input->dtype == OPD_FLOAT64) { ((double *)(void *)scratch->data)[i] = v; }
        else if (each) { ((float *)(void *)scratch->data)[i] = (float)v; }
    }
    if (each) { return opdi_nll_store(total, 0) ? -1 : opdi_staging_store(out, scratch); }
    if (nll.reduction == OPDI_REDUCE_MEAN) { sum /= weight; }
    return opdi_nll_store(total, weight) ? -1 : opdi_nll_store(out, sum);
}
/* Returns total_weight.  If it is the sum of the weights, rounded to a 16-bit float (which ends at 65,504 or counts to
   256), returns this sum. */
static double opdi_nll_total(const opdi_nll *nll, opd_tensor *total) {
    const double given = opdi_element_f64(total, 0);
    double sum = 0;
    if (opd_dtype_size(OPDI_DTYPE(total)) != 2) { return given; }
    for (int64_t i = 0; i < nll->n * nll->inner; i++) {
        const int64_t t = nll->target[i];
        if (t != nll->ignore) { sum += nll->weight ? nll->weight[t] : 1; }
    }
    opd_tensor *rounded = opdi_own(opdi_tensor_make(NULL, NULL, 0, OPDI_DTYPE(total), OPD_CPU));
    return rounded && opdi_nll_store(rounded, sum) == 0 && opdi_element_f64(rounded, 0) == given ? sum : given;
}
/* Computes the gradient of opdi_nll_forward with respect to self: -weight[t] * grad at each target t (divided by
   total_weight for a mean), and 0 elsewhere.  Returns 0, or -1 and sets an error. */
static int opdi_nll_backward(opd_call *call, bool two) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *target = opd_arg_tensor(call, 2),
        *weight = opd_arg_tensor(call, 3);
    opd_tensor *total = opd_arg_tensor(call, 6);
    double one = 0;
    opdi_nll nll;
    if (opdi_nll_check(call, 4, input, target, weight, two, &nll)) { return -1; }
    bool each = nll.reduction == OPDI_REDUCE_NONE && input->ndim > 1;
    if (total->numel != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "expected total_weight to be a single element tensor, got: %lld elements",
                        (long long)total->numel);
    }
    if (each ? !opdi_same_sizes(grad, target) : grad->ndim > 1 || grad->numel != 1) {
        char first[256];
        return opd_fail(OPD_ERROR_SHAPE, "Expected a %s, but got: %s", each
                        ? "grad_output tensor of target's size" : "single element grad_output tensor",
                            opdi_sizes_text(opdi_sizes(grad), grad->ndim, first, sizeof first));
    }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(input), input->ndim, (opd_scalar_type)input->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (opdi_nll_open(&nll, target, weight)) { return -1; }
    opd_tensor *scratch = opdi_staging_f32(out);
    grad = scratch ? opdi_dense_as(grad, OPD_FLOAT64) : NULL;
    if (!grad) { return -1; }
    memset(scratch->data, 0, (size_t)scratch->numel * opd_dtype_size((opd_scalar_type)scratch->dtype));
    if (!each) {
        one = ((const double *)(const void *)grad->data)[0];
        if (nll.reduction == OPDI_REDUCE_MEAN) { one /= opdi_nll_total(&nll, total); }
    }
    for (int64_t i = 0, sample = 0, next = nll.inner; i < nll.n * nll.inner; i++) {
        if (i == next) {
            sample++;
            next += nll.inner;
        }
        const int64_t t = nll.target[i], at = (sample * (nll.c - 1) + t) * nll.inner + i;
        if (t == nll.ignore) { continue; }
        double v = -(nll.weight ? nll.weight[t] : 1) * (each ? ((const double *)(const void *)grad->data)[i] : one);
        if (scratch->dtype == OPD_FLOAT64) {
            ((double *)(void *)scratch->data)[at] = v;
            } else {
                ((float *)(void *)scratch->data)[at] = (float)v;
            }
    }
    return opdi_staging_store(out, scratch);
}
OPDI_COLD_BEGIN
static int opdi_nll_loss_forward_kernel(opd_call *call) { return opdi_nll_forward(call, false); }
static int opdi_nll_loss2d_forward_kernel(opd_call *call) { return opdi_nll_forward(call, true); }
static int opdi_nll_loss_backward_kernel(opd_call *call) { return opdi_nll_backward(call, false); }
static int opdi_nll_loss2d_backward_kernel(opd_call *call) { return opdi_nll_backward(call, true); }
/* Returns the weight of each row's target.  Computes it as the loss of a tensor that holds -weight (or -1) instead
   of log-probabilities.  self is argument number `first`, followed by target, weight, reduction and ignore_index. */
static opd_tensor *opdi_nll_weights(opd_call *call, int first) {
    opd_tensor *input = opd_arg_tensor(call, first), *weight = opd_arg_tensor(call, first + 2), *results[2];
    weight = weight ? opd_neg(weight) : opd_new_full(input, opd_ints_of(input->dims, 0), opd_value_int(-1));
    if (weight && weight->ndim == 1 && input->ndim == 4) { weight = opd_unsqueeze(opd_unsqueeze(weight, -1), -1); }
    weight = opd_expand(weight, opd_ints_of(input->dims, input->ndim));
    return (input->ndim == 4 ? opd_nll_loss2d_forward : opd_nll_loss_forward) (results, weight,
        opd_arg_tensor(call, first + 1), NULL, OPDI_REDUCE_NONE, opd_arg_int(call, first + 4)) ? NULL : results[0];
}
/* Returns the sum of a tensor; that of 16-bit floats in float32, because the sum of the weights can be a count. */
static opd_tensor *opdi_nll_sum(opd_tensor *tensor) {
    if (!tensor || opd_dtype_size(OPDI_DTYPE(tensor)) != 2) { return opd_sum(tensor); }
    return opd_sum_full(tensor, opd_value_int(OPD_FLOAT32));
}
/* Computes nll_loss under vmap if the weights are batched.  Calls the operator without weight and reduction, and
   applies both to its result. */
static int opdi_nll_apart(opd_call *call) {
    const int64_t reduction = opd_arg_int(call, 3);
    const bool rows = opd_arg_tensor(call, 0)->ndim > 1, weighted = !opd_arg_is_none(call, 2);
    opd_value args[5], rets[2];
    memcpy(args, call->args, sizeof args);
    args[2] = OPD_NONE;
    args[3] = opd_value_int(OPDI_REDUCE_NONE);
    if (opd_call_all(call->op, rets, args, 5)) { return -1; }
    opd_tensor *loss = rets[0].u.t;
    opd_tensor *total = rets[1].u.t;
    if (weighted || (rows && reduction != OPDI_REDUCE_NONE)) { total = opdi_nll_weights(call, 0); }
    if (weighted) { loss = opd_mul(loss, total); }
    if (rows && reduction == OPDI_REDUCE_NONE) { total = rets[1].u.t; }
    else if (rows) {
        loss = opdi_nll_sum(loss);
        total = opdi_nll_sum(total);
    }
    if (reduction == OPDI_REDUCE_MEAN) { loss = opd_div(loss, total); }
    const opd_scalar_type dtype = OPDI_DTYPE(rets[0].u.t);
    return opd_return_tensor(call, opd_to_dtype(loss, dtype)) ? -1
        : opd_return_tensor(call, opd_to_dtype(total, dtype));
}
static int opdi_nll_back_apart(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *target = opd_arg_tensor(call, 2);
    opd_value args[7];
    memcpy(args, call->args, sizeof args);
    if (opd_arg_int(call, 4) == OPDI_REDUCE_MEAN) {
        const bool shorter = opd_dtype_size(OPDI_DTYPE(grad)) == 2;
        grad = opd_to_dtype(opd_div(grad, shorter ? opdi_nll_sum(opdi_nll_weights(call, 1)) : opd_arg_tensor(call, 6)),
                            OPDI_DTYPE(grad));
    }
    if (!opd_arg_is_none(call, 3)) { grad = opd_mul(grad, opdi_nll_weights(call, 1)); }
    args[0] = opd_value_tensor(opd_expand(grad, opd_ints_of(target->dims, target->ndim)));
    args[3] = OPD_NONE;
    args[4] = opd_value_int(OPDI_REDUCE_NONE);
    return args[0].u.t ? opd_return_tensor(call, opd_call_op(call->op, args, 7)) : -1;
}
/* Returns true if the input (argument number `first`), target and weight have sizes that nll_loss or nll_loss2d
   accepts. */
static bool opdi_nll_fits(opd_call *call, int first) {
    const opd_tensor *input = call->args[first].u.t, *target = call->args[first + 1].u.t;
    const opd_tensor *weight = opd_arg_tensor(call, first + 2);
    const int c = input->ndim > 1;
    return input->ndim > 0 && input->ndim != 3 && input->ndim < 5 && target->ndim == (input->ndim == 4 ? 3 : c) &&
        (!c || opdi_sizes(input)[0] == opdi_sizes(target)[0]) &&
        (!weight || (weight->ndim == 1 && weight->numel == opdi_sizes(input)[c]));
}
/* The batching rule of nll_loss: computes the rows of all examples in one call. */
static int opdi_nll_batch(opd_call *call) {
    const opd_tensor *input = call->args[0].u.t;
    const bool rows = input->ndim > 1;
    opd_value args[5], rets[2];
    if (!opdi_nll_fits(call, 0)) { return opdi_batch_unfit(call); }
    if (opd_arg_int(call, 3) != OPDI_REDUCE_NONE || (rows ? opdi_batch_is(call, 2) : !opd_arg_is_none(call, 2))) {
        return opdi_batch_as(call, opdi_nll_apart);
    }
    memcpy(args, call->args, sizeof args);
    for (int i = 0; i < 2; i++) {
        args[i].u.t = opdi_batch_front_arg(call, i);
        if (rows) { args[i].u.t = opdi_batch_merge(args[i].u.t, 0); }
        if (!args[i].u.t) { return -1; }
    }
    if (opd_call_all(call->op, rets, args, 5)) { return -1; }
    if (rows) {
        return opd_batch_return(call, opdi_batch_split(rets[0].u.t, 0, opdi_sizes(input)[0]), 0) ? -1
            : opd_batch_return(call, rets[1].u.t, -1);
    }
    return opd_batch_return(call, rets[0].u.t, 0) ? -1 : opd_batch_return(call,
                                                                          opd_to_dtype(opd_ne_Scalar(args[1].u.t,
        opd_arg_value(call, 4)), OPDI_DTYPE(input)), 0);
}
static int opdi_nll_back_batch(opd_call *call) {
    opd_value args[7];
    int dim;
    if (!opdi_nll_fits(call, 1)) { return opdi_batch_unfit(call); }
    if (opd_arg_int(call, 4) != OPDI_REDUCE_NONE || opdi_batch_is(call, 3)) {
        return opdi_batch_as(call, opdi_nll_back_apart);
    }
    memcpy(args, call->args, sizeof args);
    args[6] = opd_value_tensor(opd_new_zeros(opd_batch_arg(call, 6, &dim), opd_ints_of(NULL, 0)));
    return args[6].u.t ? opdi_batch_fold(call, args, 7, call->args[1].u.t->ndim == 1) : -1;
}
#define OPDI_CASES_nll_loss "[3,4], [3]i4, [4]+, 1, -100"
#define OPDI_CASES_nll_loss2d "[2,3,2,2], [2,2,2]i3, [3]+, 1, -100"
static int opdi_nll_loss_forward_backward(opd_backward_call *bw) {
    if (!opd_bw_grad(bw, 0)) { return 0; }
    return opd_bw_return(bw, 0,
                         opd_nll_loss_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1),
                                               opd_bw_tensor(bw, 2), opd_bw_value(bw, 3).u.i, opd_bw_value(bw, 4).u.i,
                                               opd_bw_result(bw, 1)));
}
static int opdi_nll_loss_backward_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(1, opd_zeros_like(opd_bw_grad(bw, 0)));
    OPDI_BW_RETURN(0, opd_nll_loss_full(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 2), opd_bw_tensor(bw, 3),
                                        opd_bw_value(bw, 4).u.i, opd_bw_value(bw, 5).u.i));
    return 0;
}
static int opdi_nll_loss_kernel(opd_call *call) {
    opd_tensor *results[2];
    return opd_nll_loss_forward(results, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                opd_arg_int(call, 3), opd_arg_int(call, 4))
               ? -1
               : opd_return_tensor(call, results[0]);
}
/* opd_nll_loss_forward: nll_loss, and the sum of the weights */
OPDI_OP(nll_loss_forward) {
    op->schema = "nll_loss_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
        "(Tensor output, Tensor total_weight)";
    op->cpu = op->fake = opdi_nll_loss_forward_kernel; op->backward = opdi_nll_loss_forward_backward;
    op->save = "self, target, weight, total_weight"; op->constant = "weight, total_weight";
    op->vmap = opdi_nll_batch; op->flops = opdi_flops_elements;
    op->out = "nll_loss_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, "
        "*, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))";
    op->cases = OPDI_CASES_nll_loss;
}
/* opd_nll_loss_backward: derivative of nll_loss */
OPDI_OP(nll_loss_backward) {
    op->schema = "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
        "int ignore_index, Tensor total_weight) -> Tensor";
    op->cpu = op->fake = opdi_nll_loss_backward_kernel; op->backward = opdi_nll_loss_backward_backward;
    op->save = "target, weight"; op->constant = "weight, total_weight";
    op->vmap = opdi_nll_back_batch;
    op->out = "nll_loss_backward.grad_input(grad_input)";
    op->cases = "";
}
/* opd_nll_loss: -self[target], weighted; reduction 0: each, 1: mean, 2: sum */
OPDI_OP(nll_loss) {
    op->schema = "nll_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) "
        "-> Tensor";
    op->composite = opdi_nll_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->out = "nll_loss.out";
    op->cases = "";
}

static int opdi_nll_loss2d_forward_backward(opd_backward_call *bw) {
    if (!opd_bw_grad(bw, 0)) { return 0; }
    return opd_bw_return(bw, 0,
                         opd_nll_loss2d_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1),
                                                 opd_bw_tensor(bw, 2), opd_bw_value(bw, 3).u.i, opd_bw_value(bw, 4).u.i,
                                                 opd_bw_result(bw, 1)));
}
static int opdi_nll_loss2d_backward_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(1, opd_zeros_like(opd_bw_grad(bw, 0)));
    OPDI_BW_RETURN(0, opd_nll_loss2d_full(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 2), opd_bw_tensor(bw, 3),
                                          opd_bw_value(bw, 4).u.i, opd_bw_value(bw, 5).u.i));
    return 0;
}
static int opdi_nll_loss2d_kernel(opd_call *call) {
    opd_tensor *results[2];
    return opd_nll_loss2d_forward(results, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                  opd_arg_int(call, 3), opd_arg_int(call, 4))
               ? -1
               : opd_return_tensor(call, results[0]);
}
/* opd_nll_loss2d_forward: nll_loss2d, and the sum of the weights */
OPDI_OP(nll_loss2d_forward) {
    op->schema = "nll_loss2d_forward(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> "
        "(Tensor output, Tensor total_weight)";
    op->cpu = op->fake = opdi_nll_loss2d_forward_kernel; op->backward = opdi_nll_loss2d_forward_backward;
    op->save = "self, target, weight, total_weight"; op->constant = "weight, total_weight";
    op->vmap = opdi_nll_batch; op->flops = opdi_flops_elements;
    op->out = "nll_loss2d_forward.output(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, "
        "*, Tensor(a!) output, Tensor(b!) total_weight) -> (Tensor(a!), Tensor(b!))";
    op->cases = OPDI_CASES_nll_loss2d;
}
/* opd_nll_loss2d_backward: derivative of nll_loss2d */
OPDI_OP(nll_loss2d_backward) {
    op->schema = "nll_loss2d_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
        "int ignore_index, Tensor total_weight) -> Tensor";
    op->cpu = op->fake = opdi_nll_loss2d_backward_kernel; op->backward = opdi_nll_loss2d_backward_backward;
    op->save = "target, weight"; op->constant = "weight, total_weight";
    op->vmap = opdi_nll_back_batch;
    op->out = "nll_loss2d_backward.grad_input(grad_input)";
    op->cases = "";
}
/* opd_nll_loss2d: nll_loss of [N, C, H, W] */
OPDI_OP(nll_loss2d) {
    op->schema = "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int ignore_index=-100) "
        "-> Tensor";
    op->composite = opdi_nll_loss2d_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->out = "nll_loss2d.out";
    op->cases = "";
}

/* Returns the loss of input [n, c, ...], with any number of further dims, for target [n, ...], or NULL and sets an
   error. */
static opd_tensor *opdi_nll_nd(opd_tensor *input, opd_tensor *target, opd_tensor *weight, int64_t reduction,
                               int64_t ignore) {
    int64_t sizes[4], table[3];
    if (!input || !target) { return NULL; }
    if (input->ndim < 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "Expected 1 or more dimensions (got 0)");
        return NULL;
    }
    if (input->ndim != 1 && (target->ndim == 0 || opdi_sizes(input)[0] != opdi_sizes(target)[0])) {
        (void)opd_fail(OPD_ERROR_SHAPE, "Expected input batch_size (%lld) to match target batch_size (%lld).",
                       (long long)opdi_sizes(input)[0], (long long)(target->ndim ? opdi_sizes(target)[0] : 0));
        return NULL;
    }
    if (input->ndim <= 2) { return opd_nll_loss_full(input, target, weight, reduction, ignore); }
    if (input->ndim == 4) { return opd_nll_loss2d_full(input, target, weight, reduction, ignore); }
    if (target->ndim != input->ndim - 1 || memcmp(opdi_sizes(input) + 2, opdi_sizes(target) + 1,
                                                  sizeof(int64_t) * (size_t)(input->ndim - 2)) != 0) {
        char first[256], second[256];
        (void)opd_fail(OPD_ERROR_SHAPE, "Expected target to have input's sizes without dimension 1, but got input %s "
                       "and target %s", opdi_shape_text(input, first), opdi_shape_text(target, second));
        return NULL;
    }
    sizes[0] = table[0] = opdi_sizes(input)[0];
    sizes[1] = opdi_sizes(input)[1];
    sizes[2] = table[1] = 1;
    sizes[3] = table[2] = opdi_span_of(opdi_sizes(input), 2, input->ndim);
    opd_tensor *const shaped = opdi_maybe_reshape(input, sizes, 4),
        *result = opd_nll_loss2d_full(shaped, opdi_maybe_reshape(target, table, 3), weight, reduction, ignore);
    return result && reduction == OPDI_REDUCE_NONE
        ? opdi_maybe_reshape(result, opdi_sizes(target), target->ndim) : result;
}
static int opdi_nll_loss_nd_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_nll_nd(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                               opd_arg_tensor(call, 2), opd_arg_int(call, 3), opd_arg_int(call, 4)));
}
/* opd_nll_loss_nd: nll_loss of any number of dims */
OPDI_OP(nll_loss_nd) {
    op->schema = "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
        "ignore_index=-100) -> Tensor";
    op->composite = opdi_nll_loss_nd_kernel;
    op->cases = "[2,3,4], [2,4]i3; [2,3], [2]i3";
}

static int opdi_reduction_check(int64_t reduction) {
    return reduction >= OPDI_REDUCE_NONE && reduction <= OPDI_REDUCE_SUM ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "reduction must be 0 (none), 1 (mean) or 2 (sum), got %lld",
                   (long long)reduction);
}
OPDI_INTERNAL opd_tensor *opdi_reduced(opd_tensor *tensor, int64_t reduction) {
    if (!tensor || opdi_reduction_check(reduction)) { return NULL; }
    if (reduction == OPDI_REDUCE_NONE) { return tensor; }
    return reduction == OPDI_REDUCE_MEAN ? opdi_maybe_mean(tensor) : opdi_maybe_sum(tensor);
}
/* Returns the class weights in a shape that broadcasts to input: along dim 1, or dim 0 for a single sample. */
static opd_tensor *opdi_typeweights(opd_tensor *weight, const opd_tensor *input) {
    int64_t sizes[OPD_MAX_DIMS];
    int size_class = input->ndim == 1 ? 0 : 1;
    for (int dim = 0; dim < input->ndim; dim++) { sizes[dim] = dim == size_class ? opdi_sizes(input)[dim] : 1; }
    if (weight->ndim != 1 || weight->numel != sizes[size_class]) {
        (void)opd_fail(OPD_ERROR_SHAPE, "cross_entropy: weight tensor should be defined either for all %lld classes "
                       "or no classes", (long long)sizes[size_class]);
        return NULL;
    }
    return opdi_maybe_reshape(weight, sizes, input->ndim);
}
static opd_tensor *opdi_cross_entropy_probabilities(opd_tensor *input, opd_tensor *target, opd_tensor *weight,
                                                    int64_t reduction, double smooth, int64_t channels) {
    const int64_t count = opdi_sizes(input)[channels], rows = count ? input->numel / count : 0;
    if (opdi_reduction_check(reduction)) { return NULL; }
    if (smooth > 0) { target = opdi_adds(opdi_muls(target, 1 - smooth), smooth / (double)count); }
    opd_tensor *loss = opd_mul(opd_log_softmax(input, channels), target);
    if (weight) { loss = opd_mul(loss, opdi_typeweights(weight, input)); }
    if (reduction == OPDI_REDUCE_NONE) { return opd_neg(opdi_maybe_sum_dims(loss, &channels, 1, false)); }
    loss = opd_neg(opdi_maybe_sum(loss));
    return reduction == OPDI_REDUCE_SUM ? loss : opd_div_Scalar(loss, opd_value_double((double)rows));
}
/* Returns the loss with label smoothing: (1 - share) * nll + share / count * (the weighted sum of -log softmax over all
   `count` classes, which are dim `channels`).  Ignored targets do not count. */
static opd_tensor *opdi_cross_entropy_smooth(opd_tensor *input, opd_tensor *target, opd_tensor *weight,
                                             int64_t reduction, int64_t ignore, double share, int64_t channels) {
    const int64_t count = opdi_sizes(input)[channels];
    opd_tensor *logs = opd_log_softmax(input, channels), *nll = opdi_nll_nd(logs, target, weight, reduction, ignore);
    if (!nll) { return NULL; }
    opd_tensor *smooth = opd_neg(opdi_maybe_sum_dims(weight ? opd_mul(logs, opdi_typeweights(weight, input)) : logs,
                                                     &channels, 1, false));
    opd_tensor *mask = opd_eq_Scalar(target, opd_value_int(ignore));
    smooth = opdi_unless(smooth, mask);
    if (reduction == OPDI_REDUCE_SUM) { smooth = opdi_maybe_sum(smooth); }
    else if (reduction == OPDI_REDUCE_MEAN && weight) {
        opd_tensor *safe = opd_masked_fill_Scalar(target, mask, opd_value_int(0));
        const int64_t minus = -1;
        opd_tensor *weights = opdi_maybe_reshape(opd_index_select(weight, 0, opdi_maybe_reshape(safe, &minus, 1)),
                                                 opdi_sizes(target), target->ndim);
        opd_tensor *const sum = opdi_maybe_sum(smooth);
        smooth = opd_div(sum, opdi_maybe_sum(opdi_unless(weights, mask)));
    } else if (reduction == OPDI_REDUCE_MEAN) {
        opd_tensor *const first_sum = opdi_maybe_sum(smooth);
        smooth = opd_div(first_sum, opdi_maybe_sum(opd_logical_not(mask)));
    }
    opd_tensor *const scaled = opdi_muls(nll, 1 - share);
    return opd_add(scaled, opdi_muls(smooth, share / (double)count));
}
/* Computes the gradient of opdi_entropy_in_cuda by operators, so that it can be differentiated: (softmax(input) - 1 at
   the target) times the gradient of the row.  `total`: the number of rows that count. */
static opd_tensor *opdi_entropy_back(opd_tensor *grad, opd_tensor *input, opd_tensor *target, opd_tensor *total,
                                     int64_t reduction, int64_t ignore) {
    const opd_scalar_type dtype = OPDI_DTYPE(input), work = dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    opd_tensor *const mask = opd_eq_Scalar(target, opd_value_int(ignore));
    opd_tensor *const safe = opd_masked_fill_Scalar(target, mask, opd_value_int(0));
    opd_tensor *const at = opd_to_dtype(opd_one_hot(safe, opdi_sizes(input)[1]), work);
    opd_tensor *const gap = opd_sub(opd_softmax(opd_to_dtype(input, work), 1), at);
    grad = opd_to_dtype(grad, work);
    if (reduction == OPDI_REDUCE_MEAN) { grad = opd_div(grad, total); }
    grad = opdi_unless(opd_expand(grad, opd_ints_of(opdi_sizes(target), 1)), mask);
    return opd_to_dtype(opd_mul(gap, opd_unsqueeze(grad, 1)), dtype);
}
/* Returns the operator of the CUDA plug-in for cross_entropy_loss, or NULL if there is none. */
static opd_op *opdi_entropy_op(void) {
    static opd_op *entropy;
    return opdi_cuda_op(&entropy, "opd_cuda::cross_entropy");
}
static int opdi_entropy_record(opd_context *ctx) {
    opd_tensor *saved[4];
    opd_value args[4], got[3];
    for (int i = 0; i < 4; i++) { args[i] = opd_context_input(ctx, i); }
    if (opd_call_all(opdi_entropy_op(), got, args, 4)) { return -1; }
    saved[0] = args[0].u.t;
    saved[1] = args[1].u.t;
    saved[2] = got[1].u.t;
    saved[3] = got[2].u.t;
    return opd_context_set(ctx, "reduction", args[2]) || opd_context_set(ctx, "ignore", args[3]) ||
        opd_context_save_for_backward(ctx, saved, 4) ? -1 : opd_context_return(ctx, got[0].u.t);
}
static int opdi_entropy_formula(opd_backward_call *bw) {
    static opd_op *back;
    opd_context *const ctx = opd_bw_context(bw);
    opd_tensor *saved[4], *const grad = opd_bw_grad(bw, 0);
    const opd_value reduction = opd_context_get(ctx, "reduction"), ignore = opd_context_get(ctx, "ignore");
    for (int i = 0; i < 4; i++) { if (!(saved[i] = opd_context_saved(ctx, i))) { return -1; } }
    if (!grad) { return 0; }
    if (opd_grad_mode_enabled() || !opdi_only_autocast_follows() || !opdi_in_cuda(grad) || !opdi_in_cuda(saved[0])) {
        return opd_bw_return(bw, 0, opdi_entropy_back(grad, saved[0], saved[1], saved[3], reduction.u.i, ignore.u.i));
    }
    opd_op *const op = opdi_cuda_op(&back, "opd_cuda::cross_entropy_backward");
    opd_value args[7], got;
    args[0] = opd_value_tensor(grad);
    for (int i = 0; i < 4; i++) { args[i + 1] = opd_value_tensor(saved[i]); }
    args[5] = reduction;
    args[6] = ignore;
    return !op || opd_call_all(op, &got, args, 7) ? -1 : opd_bw_return(bw, 0, got.u.t);
}
/* Computes the loss of input [rows, many classes] on a GPU, whose kernel reads the logits once, and sets *result.
   Returns 1, or -1 and sets an error, or 0 if this is not possible, because another layer has to see the operators, or
   because of the arguments.  Under autocast, the loss is float32, as log_softmax would be. */
static int opdi_entropy_in_cuda(opd_tensor *input, opd_tensor *target, int64_t reduction, int64_t ignore,
                                opd_tensor **result) {
    const opd_scalar_type dtype = OPDI_DTYPE(input);
    if (input->backend != OPD_CUDA || input->ndim != 2 || target->ndim != 1 || target->dtype != OPD_INT64 ||
        !opdi_only_autocast_follows() || !opdi_in_cuda(input) || !opdi_in_cuda(target) || !opdi_entropy_op() ||
        !opd_dtype_is_floating(dtype) || input->dims[0] != target->dims[0] || input->dims[0] == 0 ||
        input->dims[1] < 256 || input->dims[1] > INT32_MAX || input->storage->index != target->storage->index ||
        opdi_reduction_check(reduction)) {
        return opd_ok() ? 0 : -1;
    }
    opd_autograd_function function;
    opd_value values[4], got;
    const bool autocast = opdi_autocast_is_on(opdi_self(), OPD_CUDA);
    memset(&function, 0, sizeof function);
    function.name = "CrossEntropy";
    function.forward = opdi_entropy_record;
    function.backward = opdi_entropy_formula;
    values[0] = opd_value_tensor(input);
    values[1] = opd_value_tensor(target);
    values[2] = opd_value_int(reduction);
    values[3] = opd_value_int(ignore);
    if (opd_autograd_apply(&function, values, 4, &got, 1) < 0) { return -1; }
    *result = autocast ? got.u.t : opd_to_dtype(got.u.t, dtype);
    return *result ? 1 : -1;
}
/* cross_entropy_loss of logits.  Classes are dim 1, or dim 0 if there is no other dim.  Targets with the sizes of
   the logits are probabilities; other targets are class numbers. */
static int opdi_cross_entropy_loss_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *target = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2);
    const int64_t reduction = opd_arg_int(call, 3), ignore = opd_arg_int(call, 4), channels = input->ndim == 1 ? 0 : 1;
    const double smooth = opd_arg_double(call, 5);
    if (input->ndim == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "input must have at least one dimension");
    }
    if (!(smooth >= 0 && smooth <= 1) && !opdi_same_sizes(input, target)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "label_smoothing must be between 0.0 and 1.0. Got: %g", smooth);
    }
    if (opdi_same_sizes(input, target)) {
        if (!opd_dtype_is_floating((opd_scalar_type)target->dtype)) {
            return opd_fail(OPD_ERROR_DTYPE, "Expected floating point type for target with class probabilities, got "
                            "%s", opd_dtype_name((opd_scalar_type)target->dtype));
        }
        if (ignore >= 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "ignore_index is not supported for floating point target");
        }
        if (!(smooth >= 0 && smooth <= 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "label_smoothing must be between 0.0 and 1.0. Got: %g", smooth);
        }
        return opd_return_tensor(call,
                                 opdi_cross_entropy_probabilities(input, target, weight, reduction, smooth, channels));
    }
    if (smooth > 0) {
        if (opdi_reduction_check(reduction)) { return -1; }
        return opd_return_tensor(call,
                                 opdi_cross_entropy_smooth(input, target, weight, reduction, ignore, smooth, channels));
    }
    opd_tensor *loss = NULL;
    const int done = weight ? 0 : opdi_entropy_in_cuda(input, target, reduction, ignore, &loss);
    if (done) { return done < 0 ? -1 : opd_return_tensor(call, loss); }
    return opd_return_tensor(call, opdi_nll_nd(opd_log_softmax(input, channels), target, weight, reduction, ignore));
}
/* opd_cross_entropy_loss: nll_loss of log_softmax(self); target holds class numbers or probabilities */
OPDI_OP(cross_entropy_loss) {
    op->schema = "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, int "
        "ignore_index=-100, float label_smoothing=0.0) -> Tensor";
    op->composite = opdi_cross_entropy_loss_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "[3,4], [3]i4; [3,4], [3,4]u; [3,4], [3]i4, [4]+, 1, -100, 0.1";
}
OPDI_COLD_END
