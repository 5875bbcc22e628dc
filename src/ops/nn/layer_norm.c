#include "../ops.h"

//== layer norm ========================================================================================================

/* Checks normalized_shape and the sizes of weight and bias of a norm over the last dims of input.  Returns the first of
   these dims, or -1 and sets an error. */
static int opdi_norm_axis(const opd_tensor *input, opd_ints shape, const opd_tensor *weight, const opd_tensor *bias) {
    const int axis = input->ndim - (int)shape.n;
    char text[256], unit[256];
    if (shape.n < 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected normalized_shape to be at least 1-dimensional, i.e., containing at "
                        "least one element, but got normalized_shape = []");
    }
    for (int i = 0; i < 2; i++) {
        const opd_tensor *part = i ? bias : weight;
        if (part && !opdi_has_sizes(part, shape.data, (int)shape.n)) {
            return opd_fail(OPD_ERROR_SHAPE, "Expected %s to be of same shape as normalized_shape, but got %s of "
                            "shape %s and normalized_shape = %s", i ? "bias" : "weight",
                            i ? "bias" : "weight", opdi_sizes_text(opdi_sizes(part), part->ndim, text, sizeof text),
                            opdi_sizes_text(shape.data, (int)OPDI_MIN(shape.n, (int64_t)8), unit, sizeof unit));
        }
    }
    if (axis < 0 || memcmp(opdi_sizes(input) + axis, shape.data, sizeof(int64_t) * (size_t)shape.n) != 0) {
        return opd_fail(OPD_ERROR_SHAPE, "Given normalized_shape=%s, expected input with shape [*, %s, but got input "
                        "of size%s", opdi_sizes_text(shape.data, (int)OPDI_MIN(shape.n, (int64_t)8), unit, sizeof unit),
                        unit + 1, opdi_sizes_text(opdi_sizes(input), input->ndim, text, sizeof text));
    }
    return axis;
}
static int opdi_layer_norm_axis(const opd_tensor *input, opd_ints shape, const opd_tensor *weight,
                                const opd_tensor *bias) {
    const int axis = opdi_norm_axis(input, shape, weight, bias);
    return axis < 0 || opdi_norm_params_dtype(input, weight, bias) ? -1 : axis;
}
/* native_layer_norm: normalises input over its last dims, whose sizes are normalized_shape.  The results are the
   output, mean and rstd.  In mean and rstd, the normalised dims have size 1. */
static int opdi_native_layer_norm_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 2), *bias = opd_arg_tensor(call, 3),
        *out[3], *scratch[3];
    const int axis = opdi_layer_norm_axis(input, opd_arg_ints(call, 1), weight, bias);
    const opd_scalar_type dtype = opdi_norm_type(input), stat = opdi_norm_stat_type(input, weight);
    int64_t sizes[OPD_MAX_DIMS];
    bool bad = false;
    opdi_norm norm;
    if (axis < 0 || opdi_norm_floating(input, "LayerNormKernelImpl")) { return -1; }
    for (int i = 0; i < input->ndim; i++) { sizes[i] = i < axis ? opdi_sizes(input)[i] : 1; }
    memset(&norm, 0, sizeof norm);
    for (int i = 0; i < 3; i++) {
        out[i] = opd_result(call, i, i ? sizes : opdi_sizes(input), input->ndim,
                            i ? stat : (opd_scalar_type)input->dtype);
        if (!out[i]) { return -1; }
    }
    if (!out[0]->data) { return 0; }
    norm.n = opdi_span_of(opdi_sizes(input), axis, input->ndim);
    const bool half_loop = opd_dtype_size((opd_scalar_type)input->dtype) == 2 && norm.n <= OPDI_NORM_ROW;
    const opd_scalar_type kept = half_loop ? (opd_scalar_type)input->dtype : dtype;
    for (int i = 0; i < 3; i++) { if (!(scratch[i] = opdi_staging(out[i], i ? dtype : kept))) { return -1; } }
    if (half_loop) {
        norm.load = opdi_load_of(OPDI_F32, input->dtype);
        norm.store = opdi_store_of(OPDI_F32, input->dtype);
    }
    norm.a = opdi_span_of(opdi_sizes(input), 0, axis);
    norm.c = 1;
    norm.per = 1;
    norm.layer = true;
    norm.eps = opd_arg_double(call, 4);
    norm.input = opdi_norm_in(input, kept, &bad);
    norm.weight = opdi_norm_in(weight, dtype, &bad);
    norm.bias = opdi_norm_in(bias, dtype, &bad);
    if (bad) { return -1; }
    norm.output = scratch[0]->data;
    norm.mean = scratch[1]->data;
    norm.rstd = scratch[2]->data;
    opdi_norm_run(&norm, dtype, norm.a, norm.n, opdi_norm_forward_f32, opdi_norm_forward_f64);
    for (int i = 0; i < 3; i++) { if (opdi_staging_store(out[i], scratch[i])) { return -1; } }
    return 0;
}
/* Sets mask[0], mask[1] and mask[2] to true if arguments number `x`, `w` and `bias` require gradients. */
OPDI_INTERNAL void opdi_needs_mask(const opd_backward_call *bw, int x, int w, int bias, bool *mask) {
    mask[0] = opd_bw_needs(bw, x);
    mask[1] = opd_bw_needs(bw, w);
    mask[2] = opd_bw_needs(bw, bias);
}
/* Returns the part of the gradient of input that comes through the results mean and rstd, or NULL if neither result has
   a gradient.  Each of the M normalised elements gets g / M from the mean and -g * rstd^2 * xhat / M from rstd, where g
   is the gradient of the statistic, and xhat is the normalised element.  input is viewed with sizes xs, mean and rstd
   (results 1 and 2) with sizes stat; both have `count` dims. */
OPDI_INTERNAL opd_tensor *opdi_stats_backward(opd_backward_call *bw, opd_tensor *input, const int64_t *xs,
                                              const int64_t *stat, int count) {
    opd_tensor *gm = opd_bw_grad(bw, 1), *gr = opd_bw_grad(bw, 2), *mean = opd_bw_result(bw, 1),
        *rstd = opd_bw_result(bw, 2), *delta = NULL;
    if ((!gm && !gr) || !mean || !rstd || mean->numel == 0) { return NULL; }
    if (gr) {
        rstd = opdi_maybe_reshape(rstd, stat, count);
        opd_tensor *const shaped = opdi_maybe_reshape(input, xs, count),
            *const difference = opd_sub(shaped, opdi_maybe_reshape(mean, stat, count));
        delta = opd_mul(difference, opd_mul(rstd, opd_square(rstd)));
        delta = opd_mul(delta, opd_neg(opdi_maybe_reshape(gr, stat, count)));
    }
    if (gm) { delta = opdi_plus(opdi_maybe_expand(opdi_maybe_reshape(gm, stat, count), xs, count), delta); }
    delta = opdi_muls(delta, (double)mean->numel / (double)OPDI_MAX(input->numel, (int64_t)1));
    return opdi_maybe_reshape(delta, opdi_sizes(input), input->ndim);
}
/* Sets the gradients of arguments number `x`, `w` and `bias` to results[0], results[1] and results[2], each of which
   may be NULL.  If `stats` is not NULL, adds it to the first gradient.  Returns 0, or not 0 and sets an error. */
OPDI_INTERNAL int opdi_return_norm_grads(opd_backward_call *bw, int x, int w, int bias, opd_tensor **results,
                                         opd_tensor *stats) {
    if (stats) { results[0] = opdi_plus(results[0], stats); }
    if (!opd_ok()) { return -1; }
    return opd_bw_return(bw, x, results[0]) || opd_bw_return(bw, w, results[1]) || opd_bw_return(bw, bias, results[2]);
}
static int opdi_native_layer_norm_backward(opd_backward_call *bw) {
    opd_tensor *results[3] = {NULL, NULL, NULL}, *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0),
        *mean = opd_bw_result(bw, 1);
    bool mask[3];
    opdi_needs_mask(bw, 0, 2, 3, mask);
    if (!opd_ok()) { return -1; }
    if (grad && opd_native_layer_norm_backward(results, grad, input,
                                               opd_ints_of(opd_bw_value(bw, 1).u.ints, opd_bw_value(bw, 1).n), mean,
                                               opd_bw_result(bw, 2), opd_bw_tensor(bw, 2), opd_bw_tensor(bw, 3),
                                               opd_value_bools(mask, 3))) {
        return -1;
    }
    return opdi_return_norm_grads(bw, 0, 2, 3, results,
                                  mask[0]
                                  ? opdi_stats_backward(bw, input, opdi_sizes(input), opdi_sizes(mean), input->ndim)
                                  : NULL);
}
/* Computes layer norm under vmap if weight or bias is batched: first normalises, then multiplies by weight and adds
   bias. */
static int opdi_layer_norm_apart(opd_call *call) {
    opd_tensor *weight = opd_arg_tensor(call, 2), *bias = opd_arg_tensor(call, 3), *input = opd_arg_tensor(call, 0),
        *results[3];
    if (opd_native_layer_norm(results, input, opd_arg_ints(call, 1), NULL, NULL, opd_arg_double(call, 4))) {
        return -1;
    }
    if (weight) { results[0] = opd_mul(results[0], weight); }
    if (bias) { results[0] = opd_add(results[0], bias); }
    return opd_return_tensor(call, opd_to_dtype(results[0], OPDI_DTYPE(input))) ||
        opd_return_tensor(call, results[1]) ? -1 : opd_return_tensor(call, results[2]);
}
static int opdi_layer_norm_batch(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *results[3];
    if (opdi_layer_norm_axis(input, opd_arg_ints(call, 1), opd_arg_tensor(call, 2), opd_arg_tensor(call, 3)) < 0) {
        return -1;
    }
    if (opdi_batch_is(call, 2) || opdi_batch_is(call, 3)) { return opdi_batch_as(call, opdi_layer_norm_apart); }
    input = opdi_batch_front_arg(call, 0);
    if (!input || opd_native_layer_norm(results, input, opd_arg_ints(call, 1), opd_arg_tensor(call, 2),
                                        opd_arg_tensor(call, 3), opd_arg_double(call, 4))) {
        return -1;
    }
    for (int i = 0; i < 3; i++) { if (opd_batch_return(call, results[i], 0)) { return -1; } }
    return 0;
}
/* opd_native_layer_norm: layer_norm, and the means and 1 / standard deviations */
OPDI_OP(native_layer_norm) {
    op->schema = "native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) "
        "-> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_layer_norm_kernel; op->backward = opdi_native_layer_norm_backward;
    op->save = "input, weight, bias, result1, result2";
    op->vmap = opdi_layer_norm_batch; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "native_layer_norm.out(out0, out1, out2)";
    op->cases = "[2,3], (3), [3], [3], 0.00001; [2,3], (3), None, None, 0.00001";
}

/* Makes the results dx, dw and db.  A result is None if output_mask (argument number `mask`) does not select it.  dw
   and db have sizes wsizes[wdim] and dtype wtype.  If `last` is true, dx is stored channels last.  Sets out[3] to the
   results and scratch[3] to the tensors in which they are computed; scratch[0] has dtype `kept`.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_norm_results(opd_call *call, int mask, opd_tensor *input, const int64_t *wsizes, int wdim,
                                    opd_scalar_type wtype, opd_scalar_type kept, bool last, opd_tensor **out,
                                     opd_tensor **scratch) {
    const opd_scalar_type dtype = opdi_norm_type(input);
    for (int i = 0; i < 3; i++) {
        out[i] = scratch[i] = NULL;
        if (!opdi_mask_at(call, mask, i) && !call->targets) { continue; }
        out[i] = opdi_result_format(call, i, last && !i, i ? wsizes : opdi_sizes(input), i ? wdim : input->ndim,
                                    i ? wtype : OPDI_DTYPE(input));
        if (!out[i] || (out[i]->data && !(scratch[i] = opdi_staging(out[i], i ? dtype : kept)))) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL int opdi_norm_return(opd_call *call, opd_tensor **out, opd_tensor **scratch) {
    for (int i = 0; i < 3; i++) {
        if (out[i] && scratch[i] && opdi_staging_store(out[i], scratch[i])) { return -1; }
        if (out[i] ? opd_return_tensor(call, call->rets[i].u.t) : opd_return_value(call, opd_value_none())) {
            return -1;
        }
    }
    return 0;
}
/* Runs layer norm's backward pass on the prepared operands in *norm.  Returns 0, or -1 and sets an error. */
static int opdi_layer_norm_back(opdi_norm *norm, opd_scalar_type dtype) {
    const int64_t blocks = (norm->a + OPDI_NORM_ROWS - 1) / OPDI_NORM_ROWS;
    const size_t bytes = (size_t)(2 * blocks * norm->n) * opd_dtype_size(dtype);
    const bool params = norm->dw || norm->db;
    if (opdi_stack_short(NULL, OPDI_STACK_FOR((dtype == OPD_FLOAT64 ? 50 : 26) << 10))) { return -1; }
    if (params && !(norm->parts = opdi_scratch_alloc(bytes))) { return -1; }
    if (norm->n && (params || norm->dx)) {
        opdi_norm_run(norm, dtype, blocks, OPDI_NORM_ROWS * norm->n, opdi_norm_layer_back_f32,
                      opdi_norm_layer_back_f64);
    }
    if (!params) { return 0; }
    opdi_norm_run(norm, dtype, (norm->n + OPDI_NORM_COLUMNS - 1) / OPDI_NORM_COLUMNS, blocks * OPDI_NORM_COLUMNS,
                  opdi_norm_params_f32, opdi_norm_params_f64);
    opdi_scratch_free((char *)norm->parts, bytes);
    return 0;
}
/* native_layer_norm_backward: computes the gradients of input, weight and bias that output_mask selects, from grad_out
   and the forward call's mean and rstd. */
static int opdi_native_layer_norm_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 5),
        *out[3], *scratch[3];
    const opd_ints shape = opd_arg_ints(call, 2);
    const int axis = opdi_layer_norm_axis(input, shape, weight, NULL);
    const opd_scalar_type dtype = opdi_norm_type(input);
    bool bad = false;
    opdi_norm norm;
    if (axis < 0 || opdi_norm_floating(input, "LayerNormBackwardKernelImpl")) { return -1; }
    memset(&norm, 0, sizeof norm);
    norm.a = opdi_span_of(opdi_sizes(input), 0, axis);
    norm.c = 1;
    norm.per = 1;
    norm.n = opdi_span_of(opdi_sizes(input), axis, input->ndim);
    norm.layer = true;
    if (!opdi_same_sizes(grad, input) || opd_arg_tensor(call, 3)->numel != norm.a ||
        opd_arg_tensor(call, 4)->numel != norm.a) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_out must have the sizes of input, and mean and rstd %lld elements each",
                        (long long)norm.a);
    }
    const bool half_loop = opd_dtype_size((opd_scalar_type)input->dtype) == 2 && norm.n <= OPDI_NORM_ROW &&
        grad->dtype == input->dtype;
    const opd_scalar_type kept = half_loop ? (opd_scalar_type)input->dtype : dtype;
    if (opdi_norm_results(call, 7, input, shape.data, (int)shape.n,
                          (opd_scalar_type)(weight ? weight->dtype : input->dtype), kept, false, out, scratch)) {
        return -1;
    }
    if (call->keys.backends >> OPD_META & 1) { return opdi_norm_return(call, out, scratch); }
    if (half_loop) {
        norm.load = opdi_load_of(OPDI_F32, input->dtype);
        norm.store = opdi_store_of(OPDI_F32, input->dtype);
    }
    norm.input = opdi_norm_in(input, kept, &bad);
    norm.grad = opdi_norm_in(grad, kept, &bad);
    norm.weight = opdi_norm_in(weight, dtype, &bad);
    norm.mean_in = opdi_norm_in(opd_arg_tensor(call, 3), dtype, &bad);
    norm.rstd_in = opdi_norm_in(opd_arg_tensor(call, 4), dtype, &bad);
    if (bad) { return -1; }
    norm.dx = scratch[0] ? scratch[0]->data : NULL;
    norm.dw = scratch[1] ? scratch[1]->data : NULL;
    norm.db = scratch[2] ? scratch[2]->data : NULL;
    return opdi_layer_norm_back(&norm, dtype) ? -1 : opdi_norm_return(call, out, scratch);
}
/* Computes the gradients of native_layer_norm_backward with respect to grad_out, input and weight. */
static int opdi_native_layer_norm_backward_backward(opd_backward_call *bw) {
    const opd_value shape = opd_bw_value(bw, 2);
    opdi_norm_second second;
    opd_tensor *dg, *dx, *dw, *input = opd_bw_tensor(bw, 1);
    memset(&second, 0, sizeof second);
    second.grad = opd_bw_tensor(bw, 0);
    second.input = input;
    second.mean = opd_bw_tensor(bw, 3);
    second.rstd = opd_bw_tensor(bw, 4);
    second.weight = opd_bw_tensor(bw, 5);
    second.GX = opd_bw_grad(bw, 0);
    second.GW = opd_bw_grad(bw, 1);
    second.GB = opd_bw_grad(bw, 2);
    for (int i = 0; i < input->ndim; i++) {
        if (i < input->ndim - shape.n) { second.sum[second.nsum++] = i; } else { second.dims[second.ndims++] = i; }
    }
    if (opdi_norm_double_backward(&second, &dg, &dx, &dw)) { return -1; }
    OPDI_BW_RETURN(0, dg);
    OPDI_BW_RETURN(1, dx);
    OPDI_BW_RETURN(5, dw ? opdi_maybe_reshape(dw, shape.u.ints, shape.n) : NULL);
    return opd_bw_return(bw, 3, NULL) || opd_bw_return(bw, 4, NULL) || opd_bw_return(bw, 6, NULL);
}
/* Computes native_layer_norm_backward under vmap if weight is batched, or if the gradient of weight or bias is needed.
   For the gradient of input, multiplies grad by weight, and then calls the operator without weight.  The gradients of
   weight and bias are sums over the rows of each example. */
static int opdi_layer_norm_back_apart(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *mean = opd_arg_tensor(call, 3),
        *rstd = opd_arg_tensor(call, 4), *weight = opd_arg_tensor(call, 5), *results[3] = {NULL, NULL, NULL};
    const opd_ints shape = opd_arg_ints(call, 2);
    const bool *mask = opd_call_args(call)[7].u.bools, only[3] = {true, false, false};
    const int rows = input->ndim - (int)shape.n;
    int64_t dims[OPD_MAX_DIMS];
    for (int i = 0; i < rows; i++) { dims[i] = i; }
    if (mask[0]) {
        opd_tensor *gw = weight ? opd_mul(grad, weight) : grad;
        if (opd_native_layer_norm_backward(results, gw, input, shape, mean, rstd, NULL, NULL,
                                           opd_value_bools(only, 3))) {
            return -1;
        }
    }
    for (int i = 1; i < 3 && opd_ok(); i++) {
        if (!mask[i]) { continue; }
        results[i] = i == 1 ? opd_mul(grad, opd_mul(opd_sub(input, mean), rstd)) : grad;
        if (rows) { results[i] = opd_sum_dim(results[i], opd_ints_of(dims, rows), false); }
        results[i] = opd_to_dtype(results[i], OPDI_DTYPE(weight ? weight : input));
    }
    for (int i = 0; i < 3; i++) {
        if (mask[i] ? opd_return_tensor(call, results[i]) : opd_return_value(call, OPD_NONE)) { return -1; }
    }
    return 0;
}
static int opdi_layer_norm_back_batch(opd_call *call) {
    const bool *mask = opd_call_args(call)[7].u.bools;
    opd_tensor *tensors[5], *results[3];
    if (opdi_layer_norm_axis(opd_arg_tensor(call, 1), opd_arg_ints(call, 2), opd_arg_tensor(call, 5), NULL) < 0) {
        return -1;
    }
    if (mask[1] || mask[2] || opdi_batch_is(call, 5)) { return opdi_batch_as(call, opdi_layer_norm_back_apart); }
    for (int i = 0; i < 5; i++) { if (i != 2 && !(tensors[i] = opdi_batch_front_arg(call, i))) { return -1; } }
    if (opd_native_layer_norm_backward(results, tensors[0], tensors[1], opd_arg_ints(call, 2), tensors[3], tensors[4],
                                       opd_arg_tensor(call, 5), NULL, opd_value_bools(mask, 3))) {
        return -1;
    }
    if (mask[0] ? opd_batch_return(call, results[0], 0) : opd_return_value(call, OPD_NONE)) { return -1; }
    return opd_return_value(call, OPD_NONE) ? -1 : opd_return_value(call, OPD_NONE);
}
/* opd_native_layer_norm_backward: those derivatives of native_layer_norm that output_mask selects */
OPDI_OP(native_layer_norm_backward) {
    op->schema = "native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, "
        "Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_layer_norm_backward_kernel;
    op->backward = opdi_native_layer_norm_backward_backward; op->save = "grad_out, input, mean, rstd, weight";
    op->vmap = opdi_layer_norm_back_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "native_layer_norm_backward.out(out0, out1, out2)";
    op->cases = "";
}

static int opdi_layer_norm_kernel(opd_call *call) {
    opd_tensor *results[3];
    return opd_native_layer_norm(results, opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_tensor(call, 2),
                                 opd_arg_tensor(call, 3), opd_arg_double(call, 4)) ? -1
           : opd_return_tensor(call, results[0]);
}
/* opd_layer_norm(input, normalized_shape, weight, bias, eps): self normalised to mean 0, variance 1 over the last dims,
   times weight plus bias */
OPDI_OP(layer_norm) {
    op->schema = "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float "
        "eps=1e-05, bool cudnn_enable=True) -> Tensor";
    op->composite = opdi_layer_norm_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->cases = "[2,3], (3), [3], [3]";
}

//== rms norm ==========================================================================================================

/* Computes results[0], input * rsqrt(mean(input^2) + eps) * weight in the dtype of input, and results[1], the factor
   rsqrt(...).  Computes in float32 if input is half precision.  Returns 0, or -1 and sets an error. */
static int opdi_rms_norm(opd_call *call, opd_tensor **results) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 2);
    const bool pairs = OPDI_DTYPE(input) == OPD_COMPLEX64 || OPDI_DTYPE(input) == OPD_COMPLEX128;
    const opd_scalar_type dtype = OPDI_DTYPE(input), work = pairs ? dtype : opdi_norm_type(input);
    const opd_ints shape = opd_arg_ints(call, 1);
    const int axis = opdi_norm_axis(input, shape, weight, NULL);
    const bool wide = work == OPD_FLOAT64 || work == OPD_COMPLEX128;
    const double least = wide ? 2.220446049250313e-16 : 1.1920928955078125e-07;
    const double eps = opd_arg_is_none(call, 3) ? least : opd_arg_double(call, 3);
    int64_t dims[OPD_MAX_DIMS];
    if (axis < 0 || (!pairs && opdi_norm_floating(input, "rms_norm"))) { return -1; }
    for (int i = 0; i < input->ndim - axis; i++) { dims[i] = axis + i; }
    input = opd_to_dtype(input, work);
    results[1] = opd_rsqrt(opdi_adds(opdi_maybe_mean_dims(opd_square(input), dims, shape.n, true),
                                     wide ? eps : (double)(float)eps));
    results[0] = opd_mul(input, results[1]);
    if (weight) { results[0] = opd_mul(results[0], weight); }
    results[0] = opd_contiguous_full(opd_to_dtype(results[0], dtype),
                                     opdi_format_of(opd_arg_tensor(call, 0)));
    return opd_ok() ? 0 : -1;
}
/* The number of elements in a row of rms_norm. */
static int64_t opdi_rms_row(opd_ints shape) {
    int64_t count = 1;
    for (int64_t i = 0; i < shape.n; i++) { count *= shape.data[i]; }
    return count;
}
/* Returns the operator of the CUDA plug-in for rms_norm, or NULL if there is none. */
static opd_op *opdi_rms_op(void) {
    static opd_op *norm;
    return opdi_cuda_op(&norm, "opd_cuda::rms_norm");
}
/* Computes rms_norm on a GPU in one kernel: results[0], and results[1] with one dim, 1 / the root of the mean square of
   each row of `count` elements.  If residual is not NULL: of input + residual, which becomes results[2].  Returns 0, or
   -1 and sets an error. */
static int opdi_rms_at_once(opd_tensor *input, opd_tensor *weight, int64_t count, double eps, opd_tensor *residual,
                            opd_tensor **results /*[3]*/) {
    opd_value args[5], got[3];
    args[0] = opd_value_tensor(input);
    args[1] = weight ? opd_value_tensor(weight) : opd_value_none();
    args[2] = opd_value_int(count);
    args[3] = opd_value_double(eps);
    args[4] = residual ? opd_value_tensor(residual) : opd_value_none();
    if (opd_call_all(opdi_rms_op(), got, args, 5)) { return -1; }
    for (int i = 0; i < 3; i++) { results[i] = i < 2 || residual ? got[i].u.t : NULL; }
    return 0;
}
/* Computes the gradients of opdi_rms_at_once by operators, so that they can be differentiated: results[0] and, if there
   is a weight, results[1]. */
static int opdi_rms_back(opd_tensor *grad, opd_tensor *input, opd_tensor *weight, int64_t count, double eps,
                         opd_tensor **results) {
    const opd_scalar_type dtype = OPDI_DTYPE(input), work = opdi_norm_type(input);
    int64_t rows[2], last = 1, first = 0;
    rows[0] = -1;
    rows[1] = count;
    opd_tensor *const shape = input;
    grad = opdi_maybe_reshape(opd_to_dtype(grad, work), rows, 2);
    input = opdi_maybe_reshape(opd_to_dtype(input, work), rows, 2);
    opd_tensor *const rstd = opd_rsqrt(opdi_adds(opdi_maybe_mean_dims(opd_square(input), &last, 1, true), eps));
    opd_tensor *const normal = opd_mul(input, rstd);
    opd_tensor *const scaled = weight
        ? opd_mul(grad, opdi_maybe_reshape(opd_to_dtype(weight, work), rows + 1, 1)) : grad;
    opd_tensor *const along = opdi_maybe_mean_dims(opd_mul(scaled, normal), &last, 1, true);
    results[0] = opd_mul(rstd, opd_sub(scaled, opd_mul(normal, along)));
    results[0] = opd_to_dtype(opdi_maybe_reshape(results[0], opdi_sizes(shape), shape->ndim), dtype);
    results[1] = weight ? opdi_maybe_sum_dims(opd_mul(grad, normal), &first, 1, false) : NULL;
    if (weight) {
        results[1] = opd_to_dtype(opdi_maybe_reshape(results[1], opdi_sizes(weight), weight->ndim),
                                  OPDI_DTYPE(weight));
    }
    return opd_ok() ? 0 : -1;
}
/* The inputs are the input, weight, the number of elements in a row, eps and residual. */
static int opdi_rms_record(opd_context *ctx) {
    opd_tensor *saved[3], *out[3], *const weight = opd_context_tensor(ctx, 1),
        *const residual = opd_context_tensor(ctx, 4);
    const opd_value count = opd_context_input(ctx, 2), eps = opd_context_input(ctx, 3);
    if (opdi_rms_at_once(opd_context_tensor(ctx, 0), weight, count.u.i, eps.u.d, residual, out)) { return -1; }
    saved[0] = residual ? out[2] : opd_context_tensor(ctx, 0);
    saved[1] = out[1];
    saved[2] = weight;
    return opd_context_set(ctx, "count", count) || opd_context_set(ctx, "eps", eps) ||
        opd_context_set(ctx, "weight", opd_value_bool(weight != NULL)) ||
        opd_context_set(ctx, "residual", opd_value_bool(residual != NULL)) ||
        opd_context_save_for_backward(ctx, saved, weight ? 3 : 2) || opd_context_return(ctx, out[0]) ? -1
        : residual ? opd_context_return(ctx, out[2]) : 0;
}
/* Returns the gradients for the input (and residual) and for the weight, which may be NULL. */
static int opdi_rms_return(opd_backward_call *bw, opd_tensor *input, opd_tensor *weight) {
    static const int at[3] = {0, 1, 4};
    for (int i = 0; i < 3; i++) {
        opd_tensor *const grad = i == 1 ? weight : input;
        if (grad && opd_context_needs_input_grad(opd_bw_context(bw), at[i]) && opd_bw_return(bw, at[i], grad)) {
            return -1;
        }
    }
    return 0;
}
static int opdi_rms_formula(opd_backward_call *bw) {
    static opd_op *back;
    opd_context *const ctx = opd_bw_context(bw);
    opd_tensor *const grad = opd_bw_grad(bw, 0), *const input = opd_context_saved(ctx, 0), *results[2],
        *const added = opd_context_get(ctx, "residual").u.i ? opd_bw_grad(bw, 1) : NULL,
        *const weight = opd_context_get(ctx, "weight").u.i ? opd_context_saved(ctx, 2) : NULL;
    const opd_value count = opd_context_get(ctx, "count");
    opd_tensor *const rstd = opd_context_saved(ctx, 1);
    if (!input || !rstd) { return -1; }
    if (!grad) { return added ? opdi_rms_return(bw, added, NULL) : opd_ok() ? 0 : -1; }
    if (opd_grad_mode_enabled() || !opdi_only_autocast_follows() || !opdi_in_cuda(grad) || !opdi_in_cuda(input)) {
        if (opdi_rms_back(grad, input, weight, count.u.i, opd_context_get(ctx, "eps").u.d, results)) { return -1; }
        if (added && !(results[0] = opd_add(results[0], added))) { return -1; }
    } else {
        opd_op *const op = opdi_cuda_op(&back, "opd_cuda::rms_norm_backward");
        const bool need = weight && opd_context_needs_input_grad(ctx, 1);
        opd_value args[7], got[2];
        args[0] = opd_value_tensor(grad);
        args[1] = opd_value_tensor(input);
        args[2] = weight ? opd_value_tensor(weight) : opd_value_none();
        args[3] = opd_value_tensor(rstd);
        args[4] = count;
        args[5] = opd_value_bool(need);
        args[6] = added ? opd_value_tensor(added) : opd_value_none();
        if (!op || opd_call_all(op, got, args, 7)) { return -1; }
        results[0] = got[0].u.t;
        results[1] = need ? opd_reshape(got[1].u.t, opd_ints_of(opdi_sizes(weight), weight->ndim)) : NULL;
    }
    return opdi_rms_return(bw, results[0], results[1]);
}
/* Computes rms_norm on a GPU in one kernel, and sets *result.  Returns 1, or -1 and sets an error, or 0 if this is not
   possible, because another layer has to see the operators, or because of dtypes or layouts.  If `scales` is not NULL,
   sets *scales to the factors as opdi_rms_norm returns them, and does nothing if a gradient would be needed.  If
   residual is not NULL, the norm is that of input + residual, to which *sum is set. */
OPDI_INTERNAL int opdi_rms_in_cuda(opd_tensor *input, opd_ints shape, opd_tensor *weight, opd_value epsilon,
                                   opd_tensor *residual, opd_tensor **result, opd_tensor **scales,
                                   opd_tensor **sum) {
    opd_tensor *out[3];
    const bool wide = input->dtype == OPD_FLOAT64;
    const double given = epsilon.tag == OPD_TAG_NONE ? wide ? 2.220446049250313e-16 : 1.1920928955078125e-07
        : epsilon.tag == OPD_TAG_INT ? (double)epsilon.u.i : epsilon.u.d, eps = wide ? given : (double)(float)given;
    if (input->backend != OPD_CUDA || !opdi_only_autocast_follows() || !opdi_in_cuda(input) || input->numel == 0 ||
        !opdi_rms_op() || (residual && opdi_autocast_is_on(opdi_self(), OPD_CUDA)) ||         /* the sum may be cast */
        (residual && (!opdi_in_cuda(residual) || residual->storage->index != input->storage->index ||
                      residual->dtype != input->dtype || !opdi_same_sizes(residual, input) ||
                      !opd_is_contiguous(residual))) ||
        !opd_dtype_is_floating(OPDI_DTYPE(input)) || (input->ndim > 3 && !opd_is_contiguous(input)) ||
        (weight && (!opdi_in_cuda(weight) || weight->storage->index != input->storage->index ||
                    (weight->dtype != input->dtype && (weight->dtype != OPD_FLOAT32 || wide)) ||
                    (input->dtype == OPD_FLOAT32 && weight->dtype != OPD_FLOAT32)))) {
        return 0;
    }
    const int axis = opdi_norm_axis(input, shape, weight, NULL);
    if (axis < 0 || opdi_norm_floating(input, "rms_norm")) { return -1; }
    const bool learns = opd_grad_mode_enabled() && (opdi_tracked(input) || (weight && opdi_tracked(weight)) ||
                                                    (residual && opdi_tracked(residual)));
    if (learns && scales) { return 0; }
    if (!learns) {
        int64_t sizes[OPD_MAX_DIMS];
        if (opdi_rms_at_once(input, weight, opdi_rms_row(shape), eps, residual, out)) { return -1; }
        for (int i = 0; i < input->ndim; i++) { sizes[i] = i < axis ? opdi_sizes(input)[i] : 1; }
        if (scales) { *scales = opdi_maybe_reshape(out[1], sizes, input->ndim); }
        if (residual) { *sum = out[2]; }
        *result = out[0];
        return opd_ok() ? 1 : -1;
    }
    opd_autograd_function function;
    opd_value values[5], got[2];
    memset(&function, 0, sizeof function);
    function.name = "RmsNorm";
    function.forward = opdi_rms_record;
    function.backward = opdi_rms_formula;
    values[0] = opd_value_tensor(input);
    values[1] = weight ? opd_value_tensor(weight) : opd_value_none();
    values[2] = opd_value_int(opdi_rms_row(shape));
    values[3] = opd_value_double(eps);
    values[4] = residual ? opd_value_tensor(residual) : opd_value_none();
    if (opd_autograd_apply(&function, values, 5, got, residual ? 2 : 1) < 0) { return -1; }
    *result = got[0].u.t;
    if (residual) { *sum = got[1].u.t; }
    return 1;
}
/* Computes the layer norm of input + residual on a GPU in one kernel.  Returns 1, and sets *result and *sum; -1 and
   sets an error; or 0 if this is not possible, because a gradient is needed, because another layer has to see the
   operators, or because of dtypes or layouts. */
OPDI_INTERNAL int opdi_layer_norm_sum_in_cuda(opd_tensor *input, opd_tensor *residual, opd_ints shape,
                                              opd_tensor *weight, opd_tensor *bias, double eps, opd_tensor **result,
                                              opd_tensor **sum) {
    static opd_op *norm;
    opd_tensor *const all[4] = {input, residual, weight, bias};
    opd_op *op;
    opd_value args[6], got[2];
    if (input->backend != OPD_CUDA || opdi_autocast_is_on(opdi_self(), OPD_CUDA) || !opdi_only_autocast_follows() ||
        input->numel == 0 || !opd_dtype_is_floating(OPDI_DTYPE(input)) || residual->dtype != input->dtype ||
        !opdi_same_sizes(residual, input) || !opd_is_contiguous(input) || !opd_is_contiguous(residual) ||
        (weight && bias && weight->dtype != bias->dtype)) { return 0; }
    for (int i = 0; i < 4; i++) {
        if (!all[i]) { continue; }
        if (!opdi_in_cuda(all[i]) || all[i]->storage->index != input->storage->index ||
            (opd_grad_mode_enabled() && opdi_tracked(all[i])) ||
            (all[i]->dtype != input->dtype && (all[i]->dtype != OPD_FLOAT32 || input->dtype == OPD_FLOAT64))) {
            return 0;
        }
    }
    if (!(op = opdi_cuda_op(&norm, "opd_cuda::layer_norm_sum"))) { return 0; }
    if (opdi_norm_axis(input, shape, weight, bias) < 0) { return -1; }
    args[0] = opd_value_tensor(input);
    args[1] = opd_value_tensor(residual);
    args[2] = weight ? opd_value_tensor(weight) : opd_value_none();
    args[3] = bias ? opd_value_tensor(bias) : opd_value_none();
    args[4] = opd_value_int(opdi_rms_row(shape));
    args[5] = opd_value_double(eps);
    if (opd_call_all(op, got, args, 6)) { return -1; }
    *result = got[0].u.t;
    *sum = got[1].u.t;
    return 1;
}
static int opdi_rms_norm_kernel(opd_call *call) {
    opd_tensor *results[2];
    const int done = opdi_rms_in_cuda(opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_tensor(call, 2),
                                      opd_arg_value(call, 3), NULL, results, NULL, NULL);
    if (done) { return done < 0 ? -1 : opd_return_tensor(call, results[0]); }
    return opdi_rms_norm(call, results) ? -1 : opd_return_tensor(call, results[0]);
}
static int opdi_fused_rms_norm_kernel(opd_call *call) {
    opd_tensor *results[2];
    const int done = opdi_rms_in_cuda(opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_tensor(call, 2),
                                      opd_arg_value(call, 3), NULL, results, results + 1, NULL);
    if (done) {
        return done < 0 || opd_return_tensor(call, results[0]) ? -1 : opd_return_tensor(call, results[1]);
    }
    return opdi_rms_norm(call, results) || opd_return_tensor(call, results[0]) ? -1
        : opd_return_tensor(call, results[1]);
}
/* opd_rms_norm(input, normalized_shape, weight, eps): input divided by the root of its mean square over the last dims,
   times weight */
OPDI_OP(rms_norm) {
    op->schema = "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor";
    op->composite = opdi_rms_norm_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->cases = "[2,3], (3), [3], 0.00001; [2,3], (2,3)";
}
/* opd_fused_rms_norm: rms_norm, and 1 / the root of the mean square */
OPDI_OP(_fused_rms_norm) {
    op->schema = "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, "
        "Tensor)";
    op->composite = opdi_fused_rms_norm_kernel;
    op->cases = "[2,3], (3), [3], 0.00001; [2,3], (2,3), None, None";
}

//== group norm ========================================================================================================

/* Reads the integer arguments N, C, HxW and group, from number `first` on, into *norm, and checks them against
   input, weight and bias.  Returns 0, or -1 and sets an error. */
static int opdi_group_norm_open(opd_call *call, int first, const opd_tensor *input, const opd_tensor *weight,
                                const opd_tensor *bias, opdi_norm *norm) {
    const int64_t groups = opd_arg_int(call, first + 3);
    memset(norm, 0, sizeof *norm);
    norm->a = opd_arg_int(call, first);
    norm->c = opd_arg_int(call, first + 1);
    norm->n = opd_arg_int(call, first + 2);
    if (opdi_norm_floating(input, "GroupNormKernelImpl")) { return -1; }
    if (norm->c == 0 || norm->n == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected %s to be greater than 0, got 0", norm->c ? "HxW" : "number of "
                        "channels");
    }
    if (groups < 1 || norm->c < 0 || norm->c % groups) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected number of channels in input to be divisible by num_groups, but got "
                        "C = %lld and num_groups=%lld", (long long)norm->c, (long long)groups);
    }
    if (norm->a < 0 || norm->n < 0 || norm->a > INT32_MAX || norm->c > INT32_MAX || norm->n > INT32_MAX ||
        norm->a * norm->c > INT32_MAX || norm->a * norm->c * norm->n != input->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected input with N * C * HxW elements, but got %lld for N=%lld, C=%lld "
                        "and HxW=%lld", (long long)input->numel, (long long)norm->a, (long long)norm->c,
                        (long long)norm->n);
    }
    if ((weight && weight->numel != norm->c) || (bias && bias->numel != norm->c)) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected weight and bias to be vectors of size equal to the number of "
                        "channels in input, %lld", (long long)norm->c);
    }
    norm->per = norm->c / groups;
    norm->groups = groups;
    return opdi_norm_params_dtype(input, weight, bias);
}
/* native_group_norm: normalises input [N, C, ..] over the channels of each of `group` groups.  The results are the
   output, mean [N, group] and rstd [N, group]. */
static int opdi_native_group_norm_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2),
        *out[3], *scratch[3];
    const opd_scalar_type dtype = opdi_norm_type(input), stat = opdi_norm_stat_type(input, weight);
    int64_t sizes[2];
    bool bad = false;
    opdi_norm norm;
    if (opdi_group_norm_open(call, 3, input, weight, bias, &norm)) { return -1; }
    sizes[0] = norm.a;
    sizes[1] = norm.groups;
    for (int i = 0; i < 3; i++) {
        out[i] = opdi_result_format(call, i, !i && opdi_is_channels_last(input), i ? sizes : opdi_sizes(input),
                                    i ? 2 : input->ndim, i ? stat : OPDI_DTYPE(input));
        if (!out[i]) { return -1; }
    }
    if (!out[0]->data) { return 0; }
    for (int i = 0; i < 3; i++) { if (!(scratch[i] = opdi_staging(out[i], dtype))) { return -1; } }
    norm.eps = opd_arg_double(call, 7);
    norm.input = opdi_norm_in(input, dtype, &bad);
    norm.weight = opdi_norm_in(weight, dtype, &bad);
    norm.bias = opdi_norm_in(bias, dtype, &bad);
    if (bad) { return -1; }
    norm.output = scratch[0]->data;
    norm.mean = scratch[1]->data;
    norm.rstd = scratch[2]->data;
    opdi_norm_run(&norm, dtype, norm.a * norm.groups, norm.per * norm.n, opdi_norm_forward_f32, opdi_norm_forward_f64);
    for (int i = 0; i < 3; i++) { if (opdi_staging_store(out[i], scratch[i])) { return -1; } }
    return 0;
}
static int opdi_native_group_norm_backward(opd_backward_call *bw) {
    opd_tensor *results[3] = {NULL, NULL, NULL}, *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    int64_t three[3], stat[3];
    bool mask[3];
    opdi_needs_mask(bw, 0, 1, 2, mask);
    if (!opd_ok()) { return -1; }
    if (grad && opd_native_group_norm_backward(results, grad, input, opd_bw_result(bw, 1), opd_bw_result(bw, 2),
                                               opd_bw_tensor(bw, 1), opd_bw_value(bw, 3).u.i, opd_bw_value(bw, 4).u.i,
                                               opd_bw_value(bw, 5).u.i, opd_bw_value(bw, 6).u.i,
                                               opd_value_bools(mask, 3))) {
        return -1;
    }
    three[0] = stat[0] = opd_bw_value(bw, 3).u.i;
    three[1] = stat[1] = opd_bw_value(bw, 6).u.i;
    three[2] = three[0] * three[1] != 0 ? input->numel / (three[0] * three[1]) : 1;
    stat[2] = 1;
    return opdi_return_norm_grads(bw, 0, 1, 2, results,
                                  mask[0] ? opdi_stats_backward(bw, input, three, stat, 3) : NULL);
}
static int opdi_group_norm_batch(opd_call *call) {
    static const opdi_channel_kind kinds[8] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST, OPDI_CHANNEL_NONE, OPDI_CHANNEL_COUNT,
        OPDI_CHANNEL_NONE, OPDI_CHANNEL_COUNT, OPDI_CHANNEL_NONE};
    static const opdi_channel_kind results[3] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_IMAGE};
    return opdi_batch_by_channel(call, kinds, results);
}
/* opd_native_group_norm: group_norm, and the means and 1 / standard deviations */
OPDI_OP(native_group_norm) {
    op->schema = "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int "
        "group, float eps) -> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_group_norm_kernel; op->backward = opdi_native_group_norm_backward;
    op->save = "input, weight, result1, result2";
    op->vmap = opdi_group_norm_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "native_group_norm.out(out0, out1, out2)";
    op->cases = "[2,4,3], [4], [4], 2, 4, 3, 2, 0.00001";
}

/* native_group_norm_backward: computes the gradients of input, weight and bias that output_mask selects, from grad_out
   and the forward call's mean and rstd [N, group]. */
static int opdi_native_group_norm_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 4),
        *out[3], *scratch[3];
    const opd_scalar_type dtype = opdi_norm_type(input);
    bool bad = false;
    opdi_norm norm;
    if (opdi_group_norm_open(call, 5, input, weight, NULL, &norm)) { return -1; }
    if (grad->numel != input->numel || opd_arg_tensor(call, 2)->numel != norm.a * norm.groups ||
        opd_arg_tensor(call, 3)->numel != norm.a * norm.groups) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_out must have the sizes of input, and mean and rstd %lld elements each",
                        (long long)(norm.a * norm.groups));
    }
    if (opdi_norm_results(call, 9, input, &norm.c, 1, (opd_scalar_type)(weight ? weight->dtype : input->dtype),
                          opdi_norm_type(input), opdi_is_channels_last(input), out, scratch)) {
        return -1;
    }
    if (call->keys.backends >> OPD_META & 1) { return opdi_norm_return(call, out, scratch); }
    norm.input = opdi_norm_in(input, dtype, &bad);
    norm.grad = opdi_norm_in(grad, dtype, &bad);
    norm.weight = opdi_norm_in(weight, dtype, &bad);
    norm.mean_in = opdi_norm_in(opd_arg_tensor(call, 2), dtype, &bad);
    norm.rstd_in = opdi_norm_in(opd_arg_tensor(call, 3), dtype, &bad);
    if (bad) { return -1; }
    norm.dx = scratch[0] ? scratch[0]->data : NULL;
    norm.dw = scratch[1] ? scratch[1]->data : NULL;
    norm.db = scratch[2] ? scratch[2]->data : NULL;
    if (norm.dx && input->numel) {
        opdi_norm_run(&norm, dtype, norm.a * norm.groups, norm.per * norm.n, opdi_norm_backward_f32,
                      opdi_norm_backward_f64);
    }
    if (norm.dw || norm.db) {
        opdi_norm_run(&norm, dtype, norm.c, norm.a * norm.n, opdi_norm_params_f32, opdi_norm_params_f64);
    }
    return opdi_norm_return(call, out, scratch);
}
/* Computes the second derivatives of group norm, with input viewed as [N, group, C / group, HxW]. */
static int opdi_native_group_norm_backward_backward(opd_backward_call *bw) {
    opdi_norm_second second;
    opd_tensor *dg, *dx, *dw, *input = opd_bw_tensor(bw, 1), *grad = opd_bw_tensor(bw, 0),
        *weight = opd_bw_tensor(bw, 4);
    const int64_t count = opd_bw_value(bw, 5).u.i, channels = opd_bw_value(bw, 6).u.i, hw = opd_bw_value(bw, 7).u.i,
        groups = opd_bw_value(bw, 8).u.i;
    int64_t four[4], stat[4], wide[4];
    four[0] = stat[0] = count;
    four[1] = stat[1] = wide[1] = groups;
    four[2] = wide[2] = channels / groups;
    four[3] = hw;
    stat[2] = stat[3] = wide[0] = wide[3] = 1;
    memset(&second, 0, sizeof second);
    second.grad = opdi_maybe_reshape(grad, four, 4);
    second.input = opdi_maybe_reshape(input, four, 4);
    second.mean = opdi_maybe_reshape(opd_bw_tensor(bw, 2), stat, 4);
    second.rstd = opdi_maybe_reshape(opd_bw_tensor(bw, 3), stat, 4);
    second.weight = weight ? opdi_maybe_reshape(weight, wide, 4) : NULL;
    second.GX = opd_bw_grad(bw, 0) ? opdi_maybe_reshape(opd_bw_grad(bw, 0), four, 4) : NULL;
    second.GW = opd_bw_grad(bw, 1) ? opdi_maybe_reshape(opd_bw_grad(bw, 1), wide, 4) : NULL;
    second.GB = opd_bw_grad(bw, 2) ? opdi_maybe_reshape(opd_bw_grad(bw, 2), wide, 4) : NULL;
    second.ndims = second.nsum = 2;
    second.dims[0] = 2;
    second.dims[1] = 3;
    second.sum[0] = 0;
    second.sum[1] = 3;
    if (!opd_ok() || opdi_norm_double_backward(&second, &dg, &dx, &dw)) { return -1; }
    OPDI_BW_RETURN(0, dg ? opdi_maybe_reshape(dg, opdi_sizes(grad), grad->ndim) : NULL);
    OPDI_BW_RETURN(1, dx ? opdi_maybe_reshape(dx, opdi_sizes(input), input->ndim) : NULL);
    OPDI_BW_RETURN(4, dw ? opdi_maybe_reshape(dw, &channels, 1) : NULL);
    return opd_bw_return(bw, 2, NULL) || opd_bw_return(bw, 3, NULL);
}
static int opdi_group_norm_back_batch(opd_call *call) {
    static const opdi_channel_kind kinds[10] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST,
        OPDI_CHANNEL_NONE, OPDI_CHANNEL_COUNT, OPDI_CHANNEL_NONE, OPDI_CHANNEL_COUNT, OPDI_CHANNEL_NONE};
    static const opdi_channel_kind results[3] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST};
    return opdi_batch_by_channel(call, kinds, results);
}
/* opd_native_group_norm_backward: those derivatives of native_group_norm that output_mask selects */
OPDI_OP(native_group_norm_backward) {
    op->schema = "native_group_norm_backward(Tensor grad_out, Tensor input, Tensor mean, Tensor rstd, Tensor? weight, "
        "SymInt N, SymInt C, SymInt HxW, int group, bool[3] output_mask) -> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_group_norm_backward_kernel;
    op->backward = opdi_native_group_norm_backward_backward; op->save = "grad_out, input, mean, rstd, weight";
    op->vmap = opdi_group_norm_back_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "native_group_norm_backward.out(out0, out1, out2)";
    op->cases = "";
}

static int opdi_group_norm_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *results[3];
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected at least 2 dimensions for input tensor but received %d",
                        input->ndim);
    }
    int64_t hw = opdi_span_of(opdi_sizes(input), 2, input->ndim);
    return opd_native_group_norm(results, input, opd_arg_tensor(call, 2), opd_arg_tensor(call, 3), opdi_sizes(input)[0],
                                 opdi_sizes(input)[1], hw, opd_arg_int(call, 1), opd_arg_double(call, 4)) ? -1
           : opd_return_tensor(call, results[0]);
}
/* opd_group_norm(input, num_groups, weight, bias, eps): groups of channels normalised to mean 0, variance 1, times
   weight plus bias */
OPDI_OP(group_norm) {
    op->schema = "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-05, "
        "bool cudnn_enabled=True) -> Tensor";
    op->composite = opdi_group_norm_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->cases = "[2,4,3], 2, [4], [4]";
}
