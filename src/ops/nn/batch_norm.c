#include "../ops.h"

//== batch norm ========================================================================================================

/* Returns a copy [c, a, n] of tensor [a, c, n], in which a loop over short rows reads contiguous memory.  If `back` is
   true, copies tensor [c, a, n] into `into`, which is [a, c, n], and returns `into`.  On failure, returns NULL and sets
   an error. */
static opd_tensor *opdi_batch_rows(opd_tensor *tensor, const opdi_norm *norm, bool back, opd_tensor *into) {
    int64_t sizes[3], strides[3];
    sizes[0] = norm->c;
    sizes[1] = norm->a;
    sizes[2] = norm->n;
    if (back) {
        strides[0] = norm->n;
        strides[1] = norm->c * norm->n;
        strides[2] = 1;
        opd_tensor *value = opdi_view(into, sizes, strides, 3, 0);
        return value && opdi_copy(value, tensor) == 0 ? into : NULL;
    }
    strides[0] = norm->n;
    strides[1] = norm->c * norm->n;
    strides[2] = 1;
    opd_tensor *value = opdi_view(tensor, sizes, strides, 3, 0);
    return value ? opdi_packed(value) : NULL;
}
/* Checks the arguments of a batch norm of input [N, C, ..]; weight, bias, mean and var must be NULL or have C elements.
   Sets the sizes in *norm.  Returns 0, or -1 and sets an error. */
static int opdi_batch_norm_check(const opd_tensor *input, const opd_tensor *weight, const opd_tensor *bias,
                                 const opd_tensor *mean, const opd_tensor *var, opdi_norm *norm) {
    const opd_tensor *params[4];
    static const char *const names[] = {"weight", "bias", "running_mean", "running_var"};
    memset(norm, 0, sizeof *norm);
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Dimension out of range (expected to be in range of [%d, %d], but got 1)",
                        -OPDI_MAX((int)input->ndim, 1), OPDI_MAX((int)input->ndim, 1) - 1);
    }
    if (opdi_norm_floating(input, "batch_norm")) { return -1; }
    norm->a = opdi_sizes(input)[0];
    norm->c = opdi_sizes(input)[1];
    norm->n = opdi_span_of(opdi_sizes(input), 2, input->ndim);
    params[0] = weight;
    params[1] = bias;
    params[2] = mean;
    params[3] = var;
    for (int i = 0; i < 4; i++) {
        if (params[i] && params[i]->numel != norm->c) {
            return opd_fail(OPD_ERROR_SHAPE, "%s should contain %lld elements not %lld", names[i], (long long)norm->c,
                            (long long)params[i]->numel);
        }
        if (params[i] && !opd_dtype_is_floating((opd_scalar_type)params[i]->dtype)) {
            return opd_fail(OPD_ERROR_DTYPE, "expected scalar type float32 but found %s for %s",
                            opd_dtype_name((opd_scalar_type)params[i]->dtype), names[i]);
        }
    }
    return opdi_norm_params_dtype(input, weight, bias);
}
/* Updates a running mean or, if `variance` is true, a running variance: running = (1 - momentum) * running + momentum *
   now, where now is the statistic of the batch.  Returns 0, or -1 and sets an error. */
static int opdi_batch_norm_track(opd_tensor *running, const opdi_norm *norm, opd_scalar_type dtype, double momentum,
                                 bool variance) {
    const double count = (double)(norm->a * norm->n);
    if (!running || count == 0) { return 0; }     /* no running statistic, or an empty batch */
    if (opdi_version_up(opdi_self(), running, true)) { return -1; }
    opd_tensor *scratch = opdi_own(opdi_tensor_make(&norm->c, NULL, 1, OPD_FLOAT64, OPD_CPU));
    if (!scratch || opdi_copy(scratch, running)) { return -1; }
    for (int64_t i = 0; i < norm->c; i++) {
        double *row = (double *)(void *)scratch->data + i;
        const double now = variance ? ((const double *)norm->db)[i] / (count - 1) : dtype == OPD_FLOAT64
            ? ((const double *)norm->mean)[i] : (double)((const float *)norm->mean)[i];
        *row = momentum * now + (1 - momentum) * *row;
    }
    (void)OPDI_ADD(&running->storage->version, 1u);
    return opdi_copy(running, scratch);
}
/* Normalises all planes by the running statistics.  norm->db gets the rstd of each channel. */
static void opdi_batch_norm_eval(opdi_norm *norm, opd_scalar_type dtype) {
    for (int64_t ch = 0; ch < norm->c; ch++) {
        const double var = dtype == OPD_FLOAT64 ? ((const double *)norm->rstd_in)[ch]
            : (double)((const float *)norm->rstd_in)[ch];
        ((double *)norm->db)[ch] = 1 / sqrt(var + norm->eps);
    }
    opdi_norm_run(norm, dtype, norm->a * norm->c, norm->n, opdi_norm_batch_eval_f32, opdi_norm_batch_eval_f64);
}
/* native_batch_norm of input [N, C, ..]: computes the output, mean [C] and rstd [C].  In training, it uses the
   statistics of the batch and updates the running statistics.  In evaluation, it uses the running statistics, and mean
   and rstd have size [0]. */
static int opdi_native_batch_norm_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2),
        *rm = opd_arg_tensor(call, 3), *rv = opd_arg_tensor(call, 4);
    opd_tensor *out[3], *scratch[3];
    const bool train = opd_arg_bool(call, 5);
    const opd_scalar_type dtype = opdi_norm_type(input), stat = opdi_norm_stat_type(input, weight ? weight : rm);
    const int64_t zero = 0;
    bool bad = false;
    opdi_norm norm;
    if (opdi_batch_norm_check(input, weight, bias, rm, rv, &norm)) { return -1; }
    if (!train && (!rm || !rv)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "running_mean and running_var must be given if training is false");
    }
    if (train && ((rm && opdi_check_internal_overlap(rm)) || (rv && opdi_check_internal_overlap(rv)))) { return -1; }
    for (int i = 0; i < 3; i++) {
        out[i] = opdi_result_format(call, i, !i && opdi_is_channels_last(input), i ? (train ? &norm.c : &zero)
                                    : opdi_sizes(input), i ? 1 : input->ndim, i ? stat : OPDI_DTYPE(input));
        if (!out[i]) { return -1; }
    }
    if (!out[0]->data) { return 0; }
    for (int i = 0; i < 3; i++) { if (!(scratch[i] = opdi_staging(out[i], dtype))) { return -1; } }
    bool turn = norm.n < 16 && norm.a > 1;
    opd_tensor *rows = opdi_dense_as(input, dtype);
    if (rows && turn) { rows = opdi_batch_rows(rows, &norm, false, NULL); }
    opd_tensor *output = rows && turn ? opdi_own(opdi_tensor_make(opdi_sizes(rows), NULL, 3, dtype, OPD_CPU))
        : scratch[0];
    opd_tensor *devs = opdi_own(opdi_tensor_make(&norm.c, NULL, 1, OPD_FLOAT64, OPD_CPU));
    if (!rows || !output || !devs) { return -1; }
    norm.eps = opd_arg_double(call, 7);
    norm.eval = !train;
    norm.weight = opdi_norm_in(weight, dtype, &bad);
    norm.bias = opdi_norm_in(bias, dtype, &bad);
    if (!train) {
        norm.mean_in = opdi_norm_in(rm, dtype, &bad);
        norm.rstd_in = opdi_norm_in(rv, dtype, &bad);
    }
    if (bad) { return -1; }
    norm.input = rows->data;
    norm.output = output->data;
    norm.mean = scratch[1]->data;
    norm.rstd = scratch[2]->data;
    norm.db = devs->data;
    if (turn) {
        norm.n *= norm.a;
        norm.a = 1;
    }
    if (train) { opdi_norm_run(&norm, dtype, norm.c, norm.a * norm.n, opdi_norm_batch_f32, opdi_norm_batch_f64); }
    else { opdi_batch_norm_eval(&norm, dtype); }
    if (train && (opdi_batch_norm_track(rm, &norm, dtype, opd_arg_double(call, 6), false) ||
                  opdi_batch_norm_track(rv, &norm, dtype, opd_arg_double(call, 6), true))) {
        return -1;
    }
    if (turn) {
        norm.a = opdi_sizes(input)[0];
        norm.n /= norm.a;
        if (!opdi_batch_rows(output, &norm, true, scratch[0])) { return -1; }
    }
    for (int i = 0; i < 3; i++) { if (opdi_staging_store(out[i], scratch[i])) { return -1; } }
    return 0;
}
/* The backward function of all batch norms.  If `train` is false, uses the running statistics, which are then
   constants: argument number `running` is the mean, the next argument the variance.  Returns 0, or -1 and sets an
   error. */
static int opdi_batch_norm_formula(opd_backward_call *bw, int running, bool train, double eps) {
    opd_tensor *results[3] = {NULL, NULL, NULL}, *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    int64_t stat[OPD_MAX_DIMS];
    bool mask[3];
    opdi_needs_mask(bw, 0, 1, 2, mask);
    if (!opd_ok()) { return -1; }
    if (grad && opd_native_batch_norm_backward(results, grad, input, opd_bw_tensor(bw, 1),
                                               train ? NULL : opd_bw_tensor(bw, running),
                                               train ? NULL : opd_bw_tensor(bw, running + 1), opd_bw_result(bw, 1),
                                               opd_bw_result(bw, 2), train, eps, opd_value_bools(mask, 3))) {
        return -1;
    }
    for (int dim = 0; dim < input->ndim; dim++) { stat[dim] = dim == 1 ? input->dims[1] : 1; }
    return opdi_return_norm_grads(bw, 0, 1, 2, results,
                                  mask[0] && train
                                  ? opdi_stats_backward(bw, input, opdi_sizes(input), stat, input->ndim) : NULL);
}
static int opdi_native_batch_norm_backward(opd_backward_call *bw) {
    return opdi_batch_norm_formula(bw, 3, opd_bw_value(bw, 5).u.i != 0, opd_bw_value(bw, 7).u.d);
}
static int opdi_batch_norm_batch(opd_call *call) {
    static const opdi_channel_kind training[8] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST, OPDI_CHANNEL_WRITTEN, OPDI_CHANNEL_WRITTEN,
        OPDI_CHANNEL_NONE, OPDI_CHANNEL_NONE, OPDI_CHANNEL_NONE};
    static const opdi_channel_kind fixed[8] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST,
        OPDI_CHANNEL_NONE, OPDI_CHANNEL_NONE, OPDI_CHANNEL_NONE};
    static const opdi_channel_kind results[3] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST};
    for (int i = 3; i < 5; i++) {
        if (opd_arg_bool(call, 5) && opd_arg_tensor(call, i) && !opdi_batch_is(call, i) && opdi_batch_is(call, 0)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Batch norm got a batched tensor as input while the running_mean or "
                            "running_var, which will be updated in place, were not batched. "
                            "Pass NULL as running_mean and running_var, or batch them.");
        }
    }
    return opdi_batch_by_channel(call, opd_arg_bool(call, 5) ? training : fixed, results);
}
/* opd_native_batch_norm: batch_norm; also returns the means and the reciprocals of the deviations */
OPDI_OP(native_batch_norm) {
    op->schema = "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_batch_norm_kernel; op->backward = opdi_native_batch_norm_backward;
    op->save = "input, weight, running_mean, running_var, result1, result2"; op->constant = "running_mean, running_var";
    op->vmap = opdi_batch_norm_batch; op->flops = opdi_flops_elements;
    op->out = "native_batch_norm.out(out, save_mean, save_invstd)";
    op->cases = "[4,3,2], [3], [3], None, None, True, 0.1, 0.00001; [4,3,2], [3], [3], [3], [3]+, False, 0.1, 0.00001";
}

/* Returns 1 / sqrt(var + eps), converted to dtype `dtype`, or NULL on failure. */
static opd_tensor *opdi_invstd(opd_tensor *var, double eps, opd_scalar_type dtype) {
    opd_tensor *value = opdi_own(opdi_tensor_make(&var->numel, NULL, 1, OPD_FLOAT64, OPD_CPU));
    if (!value || opdi_copy(value, var)) { return NULL; }
    for (int64_t i = 0; i < value->numel; i++) {
        double *at = (double *)(void *)value->data + i;
        *at = 1 / sqrt(*at + eps);
    }
    return opdi_dense_as(value, dtype);
}
/* native_batch_norm_backward: computes those gradients of input, weight and bias that output_mask selects.  Uses the
   saved statistics in training, and the running statistics in evaluation. */
static int opdi_native_batch_norm_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2),
        *out[3], *scratch[3], *dx = NULL;
    const bool train = opd_arg_bool(call, 7);
    const opd_scalar_type dtype = opdi_norm_type(input);
    bool bad = false;
    opdi_norm norm;
    opd_tensor *mean = opd_arg_tensor(call, train ? 5 : 3), *rstd = opd_arg_tensor(call, train ? 6 : 4);
    if (!mean || !rstd) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s must be given if train is %s",
                        train ? "save_mean and save_invstd" : "running_mean and running_var", train ? "true" : "false");
    }
    if (opdi_batch_norm_check(input, weight, NULL, mean, rstd, &norm)) { return -1; }
    if (!opdi_same_sizes(grad, input)) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_out must have the sizes of input");
    }
    if (opdi_norm_results(call, 9, input, &norm.c, 1, (opd_scalar_type)(weight ? weight->dtype : input->dtype),
                          opdi_norm_type(input), opdi_is_channels_last(input), out, scratch)) {
        return -1;
    }
    if (call->keys.backends >> OPD_META & 1) { return opdi_norm_return(call, out, scratch); }
    bool turn = norm.n < 16 && norm.a > 1;
    for (int i = 1; i < 3 && input->numel == 0; i++) {                       /* then dw and db are sums over no
                                                                                elements */
        if (scratch[i]) { memset(scratch[i]->data, 0, (size_t)scratch[i]->numel * opd_dtype_size(dtype)); }
    }
    if (input->numel == 0) { return opdi_norm_return(call, out, scratch); }
    opd_tensor *xs = opdi_dense_as(input, dtype), *gs = opdi_dense_as(grad, dtype);
    if (xs && gs && turn) {
        xs = opdi_batch_rows(xs, &norm, false, NULL);
        gs = opdi_batch_rows(gs, &norm, false, NULL);
    }
    if (!xs || !gs) { return -1; }
    if (scratch[0]) {
        dx = turn ? opdi_own(opdi_tensor_make(opdi_sizes(xs), NULL, 3, dtype, OPD_CPU)) : scratch[0];
        if (!dx) { return -1; }
    }
    norm.eval = !train;
    norm.weight = opdi_norm_in(weight, dtype, &bad);
    norm.mean_in = opdi_norm_in(mean, dtype, &bad);
    if (!train && !(rstd = opdi_invstd(rstd, opd_arg_double(call, 8), dtype))) { return -1; }
    norm.rstd_in = opdi_norm_in(rstd, dtype, &bad);
    if (bad) { return -1; }
    norm.input = xs->data;
    norm.grad = gs->data;
    norm.dx = dx ? dx->data : NULL;
    norm.dw = scratch[1] ? scratch[1]->data : NULL;
    norm.db = scratch[2] ? scratch[2]->data : NULL;
    if (turn) {
        norm.n *= norm.a;
        norm.a = 1;
    }
    opdi_norm_run(&norm, dtype, norm.c, norm.a * norm.n, opdi_norm_batch_backward_f32, opdi_norm_batch_backward_f64);
    if (turn && dx) {
        norm.a = opdi_sizes(input)[0];
        norm.n /= norm.a;
        if (!opdi_batch_rows(dx, &norm, true, scratch[0])) { return -1; }
    }
    return opdi_norm_return(call, out, scratch);
}
/* Computes the second derivatives of a batch norm, with input viewed as [N, C, rest]. */
static int opdi_native_batch_norm_backward_backward(opd_backward_call *bw) {
    opdi_norm_second second;
    opd_tensor *dg, *dx, *dw, *input = opd_bw_tensor(bw, 1), *grad = opd_bw_tensor(bw, 0),
        *weight = opd_bw_tensor(bw, 2);
    const bool train = opd_bw_value(bw, 7).u.i != 0;
    int64_t three[3], wide[3];
    three[0] = opdi_sizes(input)[0];
    three[1] = wide[1] = opdi_sizes(input)[1];
    three[2] = opdi_span_of(opdi_sizes(input), 2, input->ndim);
    wide[0] = wide[2] = 1;
    memset(&second, 0, sizeof second);
    second.fixed = !train;
    second.grad = opdi_maybe_reshape(grad, three, 3);
    second.input = opdi_maybe_reshape(input, three, 3);
    second.mean = opdi_maybe_reshape(opd_bw_tensor(bw, train ? 5 : 3), wide, 3);
    second.rstd = opdi_maybe_reshape(train ? opd_bw_tensor(bw, 6)
                                     : opd_rsqrt(opdi_adds(opd_bw_tensor(bw, 4), opd_bw_value(bw, 8).u.d)), wide, 3);
    second.weight = weight ? opdi_maybe_reshape(weight, wide, 3) : NULL;
    second.GX = opd_bw_grad(bw, 0) ? opdi_maybe_reshape(opd_bw_grad(bw, 0), three, 3) : NULL;
    second.GW = opd_bw_grad(bw, 1) ? opdi_maybe_reshape(opd_bw_grad(bw, 1), wide, 3) : NULL;
    second.GB = opd_bw_grad(bw, 2) ? opdi_maybe_reshape(opd_bw_grad(bw, 2), wide, 3) : NULL;
    second.ndims = second.nsum = 2;
    second.dims[0] = second.sum[0] = 0;
    second.dims[1] = second.sum[1] = 2;
    if (!opd_ok() || opdi_norm_double_backward(&second, &dg, &dx, &dw)) { return -1; }
    OPDI_BW_RETURN(0, dg ? opdi_maybe_reshape(dg, opdi_sizes(grad), grad->ndim) : NULL);
    OPDI_BW_RETURN(1, dx ? opdi_maybe_reshape(dx, opdi_sizes(input), input->ndim) : NULL);
    OPDI_BW_RETURN(2, dw ? opdi_maybe_reshape(dw, wide + 1, 1) : NULL);
    for (int i = 3; i < 7; i++) { if (opd_bw_return(bw, i, NULL)) { return -1; } }
    return 0;
}
static int opdi_batch_norm_back_batch(opd_call *call) {
    static const opdi_channel_kind kinds[10] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST,
        OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST, OPDI_CHANNEL_NONE, OPDI_CHANNEL_NONE, OPDI_CHANNEL_NONE};
    static const opdi_channel_kind results[3] = {
        OPDI_CHANNEL_IMAGE, OPDI_CHANNEL_LIST, OPDI_CHANNEL_LIST};
    return opdi_batch_by_channel(call, kinds, results);
}
/* opd_native_batch_norm_backward: those derivatives of native_batch_norm that output_mask selects */
OPDI_OP(native_batch_norm_backward) {
    op->schema = "native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, "
        "Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> "
        "(Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_batch_norm_backward_kernel;
    op->backward = opdi_native_batch_norm_backward_backward;
    op->save = "grad_out, input, weight, running_mean, running_var, save_mean, save_invstd";
    op->vmap = opdi_batch_norm_back_batch; op->flops = opdi_flops_elements;
    op->out = "native_batch_norm_backward.out(out0, out1, out2)";
    op->cases = "";
}

static int opdi_batch_norm_kernel(opd_call *call) {
    opd_tensor *results[3];
    return opd_native_batch_norm(results, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                 opd_arg_tensor(call, 3), opd_arg_tensor(call, 4),
                                 opd_arg_bool(call, 5), opd_arg_double(call, 6), opd_arg_double(call, 7)) ? -1
                                 : opd_return_tensor(call, results[0]);
}
/* opd_batch_norm: each channel normalised to mean 0, variance 1, by the statistics of the batch or by running ones */
OPDI_OP(batch_norm) {
    op->schema = "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, "
        "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor";
    op->composite = opdi_batch_norm_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING;
    op->cases = "[4,3], [3], [3], None, None, True, 0.1, 0.00001, False";
}

//== batch norm, the forms in exported programs ========================================================================

/* opd_native_batch_norm_legit: native_batch_norm with a schema that marks the written arguments */
OPDI_OP(_native_batch_norm_legit) {
    op->schema = "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
        "Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi_native_batch_norm_kernel; op->backward = opdi_native_batch_norm_backward;
    op->save = "input, weight, running_mean, running_var, result1, result2"; op->constant = "running_mean, running_var";
    op->vmap = opdi_batch_norm_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->cases = "";                               /* the functional variant has the test cases */
}

/* Calls native_batch_norm with the call's first three arguments.  Sets the results of the call to its three results,
   followed by count - 3 empty tensors.  The running statistics are the arguments number `running` and running + 1; if
   `running` is 0, there are none.  The last two arguments of the call are momentum and eps.  Returns 0, or -1 and sets
   an error. */
static int opdi_batch_norm_as(opd_call *call, int running, bool train, int count) {
    const int last = call->op->nargs - 1;
    opd_tensor *results[4], *input = opd_arg_tensor(call, 0);
    const int64_t zero = 0;
    if (opd_native_batch_norm(results, input, opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                              running ? opd_arg_tensor(call, running) : NULL,
                              running ? opd_arg_tensor(call, running + 1) : NULL, train, opd_arg_double(call, last - 1),
                              opd_arg_double(call, last))) {
        return -1;
    }
    if (count > 3) {
        results[3] = opd_new_empty_full(input, opd_ints_of(&zero, 1), opd_value_int(OPD_UINT8), OPD_NONE, OPD_NONE,
                                        OPD_NONE);
    }
    for (int i = 0; i < count; i++) { if (opd_return_tensor(call, results[i])) { return -1; } }
    return 0;
}
static int opdi_batch_norm_no_stats_kernel(opd_call *call) {
    return opdi_batch_norm_as(call, 0, opd_arg_bool(call, 3), 3);
}
static int opdi_batch_norm_no_training_kernel(opd_call *call) { return opdi_batch_norm_as(call, 3, false, 3); }
static int opdi_batch_norm_with_update_kernel(opd_call *call) { return opdi_batch_norm_as(call, 3, true, 4); }
static int opdi_batch_norm_no_update_kernel(opd_call *call) { return opdi_batch_norm_as(call, 3, false, 4); }
static int opdi_batch_norm_no_stats_backward(opd_backward_call *bw) {
    return opdi_batch_norm_formula(bw, 0, opd_bw_value(bw, 3).u.i != 0, opd_bw_value(bw, 5).u.d);
}
static int opdi_batch_norm_eval_backward(opd_backward_call *bw) {
    return opdi_batch_norm_formula(bw, 3, false, opd_bw_value(bw, 6).u.d);
}
static int opdi_batch_norm_train_backward(opd_backward_call *bw) {
    return opdi_batch_norm_formula(bw, 3, true, opd_bw_value(bw, 6).u.d);
}
/* opd_native_batch_norm_legit_no_stats: native_batch_norm with the batch's statistics; there are no running ones */
OPDI_OP(_native_batch_norm_legit_no_stats) {
    op->schema = "_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float "
        "momentum, float eps) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_batch_norm_no_stats_kernel; op->backward = opdi_batch_norm_no_stats_backward;
    op->save = "input, weight, result1, result2";
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_native_batch_norm_legit.no_stats_out(out, save_mean, save_invstd)";
    op->cases = "[4,3,2], [3], [3], True, 0.1, 0.00001";
}
/* opd_native_batch_norm_legit_no_training: native_batch_norm in evaluation */
OPDI_OP(_native_batch_norm_legit_no_training) {
    op->schema = "_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_batch_norm_no_training_kernel; op->backward = opdi_batch_norm_eval_backward;
    op->save = "input, weight, running_mean, running_var, result1, result2"; op->constant = "running_mean, running_var";
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_native_batch_norm_legit_no_training.out(out0, out1, out2)";
    op->cases = "[4,3,2], [3], [3], [3], [3]+, 0.1, 0.00001; [4,3], None, None, [3], [3]+, 0.1, 0.00001";
}
/* opd_batch_norm_with_update: native_batch_norm in training, and a reserve that the backward function may use */
OPDI_OP(_batch_norm_with_update) {
    op->schema = "_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, "
        "Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)";
    op->any = opdi_batch_norm_with_update_kernel; op->backward = opdi_batch_norm_train_backward;
    op->save = "input, weight, result1, result2"; op->constant = "running_mean, running_var";
    op->vmap = OPD_BATCH_DECOMPOSE; op->flops = opdi_flops_elements;
    op->cases = "";
}
/* opd_batch_norm_no_update: native_batch_norm in evaluation, and a reserve that the backward function may use */
OPDI_OP(_batch_norm_no_update) {
    op->schema = "_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)";
    op->any = opdi_batch_norm_no_update_kernel; op->backward = opdi_batch_norm_eval_backward;
    op->save = "input, weight, running_mean, running_var, result1, result2"; op->constant = "running_mean, running_var";
    op->vmap = OPD_BATCH_DECOMPOSE; op->flops = opdi_flops_elements;
    op->out = "_batch_norm_no_update.out(out0, out1, out2, out3)";
    op->cases = "[4,3,2], [3], [3], [3], [3]+, 0.1, 0.00001";
}

/* Calls `op`, the variant that writes the running statistics, with copies of them.  Sets the results of the call to the
   `count` results of op, followed by the two copies.  If input is a batched tensor of vmap, the copies are batched too.
   Returns 0, or -1 and sets an error. */
static int opdi_batch_norm_functional(opd_call *call, opd_op *op, int count) {
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *results[6];
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    for (int i = 0; i < 2; i++) {
        opd_tensor *running = opd_arg_tensor(call, 3 + i),
            *zeros = opd_new_zeros_full(opd_arg_tensor(call, 0), opdi_sizes_of(running),
                                        opd_value_int(OPDI_DTYPE(running)), OPD_NONE, OPD_NONE, OPD_NONE);
        results[count + i] = opd_detach(opd_add(zeros, running));
        args[3 + i] = opd_value_tensor(results[count + i]);
    }
    if (!opd_ok() || opd_call_tensors(op, results, args, call->op->nargs)) { return -1; }
    for (int i = 0; i < count + 2; i++) { if (opd_return_tensor(call, results[i])) { return -1; } }
    return 0;
}
static int opdi_batch_norm_legit_functional_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_batch_norm_functional(call, OPD_OP(&op, OPDI_NAME(_native_batch_norm_legit,
                                                                "aten::_native_batch_norm_legit")), 3);
}
static int opdi_batch_norm_with_update_functional_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_batch_norm_functional(call, OPD_OP(&op, OPDI_NAME(_batch_norm_with_update,
                                                                "aten::_batch_norm_with_update")), 4);
}
/* opd_native_batch_norm_legit_functional: native_batch_norm, and the new running statistics */
OPDI_OP(_native_batch_norm_legit_functional) {
    op->schema = "_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor "
        "running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, "
        "Tensor running_mean_out, Tensor running_var_out)";
    op->composite = opdi_batch_norm_legit_functional_kernel;
    op->cases = "[4,3,2], [3], [3], [3], [3]+, True, 0.1, 0.00001";
}
/* opd_batch_norm_with_update_functional: _batch_norm_with_update, and the new running statistics */
OPDI_OP(_batch_norm_with_update_functional) {
    op->schema = "_batch_norm_with_update_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, "
        "Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, "
        "Tensor running_var_out)";
    op->composite = opdi_batch_norm_with_update_functional_kernel;
    op->cases = "[4,3,2], [3], [3], [3], [3]+, 0.1, 0.00001";
}

/* batch_norm_update_stats: computes mean and variance (divided by the number of elements) of each channel, and updates
   the running statistics, which may be None.  The running variance gets the variance divided by this number minus 1. */
static int opdi_batch_norm_update_stats_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *running[2] = {opd_arg_tensor(call, 1), opd_arg_tensor(call, 2)},
        *stats[2], *next[2];
    const double momentum = opd_arg_double(call, 3);
    int64_t dims[OPD_MAX_DIMS];
    char text[256];
    opdi_norm norm;
    if (opdi_batch_norm_check(input, NULL, NULL, running[0], running[1], &norm) ||
        opdi_norm_params_dtype(input, running[0], running[1])) {
        return -1;
    }
    if (input->numel == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "input tensor must have at least one element, but got input_sizes = %s",
                        opdi_shape_text(input, text));
    }
    const opd_scalar_type work = opdi_norm_type(input), stat = opdi_norm_stat_type(input, running[0]);
    for (int i = 0; i < input->ndim - 1; i++) { dims[i] = i ? i + 1 : 0; }
    if (opd_var_mean_correction(stats, opd_to_dtype(input, work), opd_ints_of(dims, input->ndim - 1),
                                opd_value_int(0), false)) {
        return -1;
    }
    const double count = (double)(norm.a * norm.n);
    for (int i = 0; i < 2; i++) {                 /* 0: the mean, which is stats[1] */
        if (!running[i]) { continue; }
        opd_tensor *now = opdi_muls(opd_detach(stats[1 - i]), i ? momentum * count / (count - 1) : momentum);
        next[i] = opd_add(opdi_muls(opd_to_dtype(running[i], work), 1 - momentum), now);
        if (!next[i] || opdi_check_internal_overlap(running[i])) { return -1; }
    }
    for (int i = 0; i < 2; i++) {                 /* from here on, nothing fails that can be known before */
        if (running[i] && !opd_copy_(running[i], next[i])) { return -1; }
    }
    for (int i = 1; i >= 0; i--) {
        if (opd_return_tensor(call, opd_to_dtype(stats[i], stat))) { return -1; }
    }
    return 0;
}
/* opd_batch_norm_update_stats: the mean and variance of each channel; also updates the running statistics */
OPDI_OP(batch_norm_update_stats) {
    op->schema = "batch_norm_update_stats(Tensor input, Tensor? running_mean, Tensor? running_var, float momentum) -> "
        "(Tensor, Tensor)";
    op->composite = opdi_batch_norm_update_stats_kernel;
    op->out = "batch_norm_update_stats.out(out0, out1)";
    op->cases = "[4,3,2], None, None, 0.1; [4,3], None, None, 0.5";
}

/* batch_norm_backward: calls native_batch_norm_backward, which does not use `reserve`. */
static int opdi_batch_norm_backward_kernel(opd_call *call) {
    opd_tensor *results[3];
    if (opd_native_batch_norm_backward(results, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                       opd_arg_tensor(call, 2), opd_arg_tensor(call, 3), opd_arg_tensor(call, 4),
                                       opd_arg_tensor(call, 5), opd_arg_tensor(call, 6), opd_arg_bool(call, 7),
                                       opd_arg_double(call, 8), opd_arg_value(call, 9))) {
        return -1;
    }
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, results[i])) { return -1; } }
    return 0;
}
/* opd_batch_norm_backward: the derivatives of a batch norm that output_mask selects; reserve is not used */
OPDI_OP(batch_norm_backward) {
    op->schema = "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, Tensor? "
        "running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, bool[3] output_mask, Tensor "
        "reserve) -> (Tensor, Tensor, Tensor)";
    op->composite = opdi_batch_norm_backward_kernel;
    op->cases = "";
}

/* Returns a vector in which `tensor` is repeated `count` times, or NULL if tensor is NULL. */
static opd_tensor *opdi_repeated(opd_tensor *tensor, int64_t count) {
    int64_t two[2], minus = -1;
    if (!tensor) { return NULL; }
    two[0] = count;
    two[1] = tensor->numel;
    return opdi_maybe_reshape(opdi_maybe_expand(tensor, two, 2), &minus, 1);
}
/* Computes an instance norm of input [N, C, ..] as a batch norm of [1, N * C, ..].  The new running statistics of a
   channel are the means of the statistics of the N examples. */
static int opdi_instance_norm_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *results[3], *run[2], *all[2];
    const bool use_input = opd_arg_bool(call, 5);
    int64_t sizes[OPD_MAX_DIMS], nc[2], zero = 0;
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected at least 2 dimensions for input tensor but received %d",
                        input->ndim);
    }
    run[0] = opd_arg_tensor(call, 3);
    run[1] = opd_arg_tensor(call, 4);
    if (!use_input && (!run[0] || !run[1])) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected running_mean and running_var to be defined when use_input_stats "
                        "is false");
    }
    memcpy(sizes, opdi_sizes(input), sizeof *sizes * input->ndim);
    nc[0] = sizes[0];
    nc[1] = sizes[1];
    sizes[0] = 1;
    sizes[1] = nc[0] * nc[1];
    for (int i = 0; i < 2; i++) {
        all[i] = opdi_repeated(run[i], nc[0]);
        if (all[i] && (nc[0] == 1 || run[i]->numel == 1)) {
            all[i] = opd_clone(all[i]);           /* a view of run[i]: the batch norm writes each of its elements,
                                                     and the backward function reads them after run[i] was written */
        }
    }
    opd_tensor *const rows = opdi_maybe_reshape(input, sizes, input->ndim),
        *const weight = opdi_repeated(opd_arg_tensor(call, 1), nc[0]),
        *const bias = opdi_repeated(opd_arg_tensor(call, 2), nc[0]);
    if (opd_native_batch_norm(results, rows, weight, bias, all[0], all[1], use_input, opd_arg_double(call, 6),
                              opd_arg_double(call, 7))) {
        return -1;
    }
    for (int i = 0; i < 2 && use_input; i++) {
        opd_tensor *const own = run[i]
            ? opdi_maybe_mean_dims(opdi_maybe_reshape(all[i], nc, 2), &zero, 1, false) : NULL;
        if (run[i] && (!own || !opd_copy_(run[i], own))) { return -1; }
    }
    return opd_return_tensor(call, opdi_maybe_reshape(results[0], opdi_sizes(input), input->ndim));
}
/* opd_instance_norm: mean 0, variance 1 of each channel of each example */
OPDI_OP(instance_norm) {
    op->schema = "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
        "running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor";
    op->composite = opdi_instance_norm_kernel;
    op->cases = "[2,3,4], [3], [3], None, None, True, 0.1, 0.00001, False";
}

//== weight norm =======================================================================================================

/* The operands of weight_norm, v * (g / norm(v)): v, made contiguous, and g, with as many dims as v.  Computes in dtype
   `work`.  dims[count] are the dims over which norms are taken, and `kept` are the sizes of the norms. */
typedef struct opdi_weight_norm {
    opd_tensor *v, *g;
    opd_scalar_type work;
    int64_t dims[OPD_MAX_DIMS], kept[OPD_MAX_DIMS];
    int count;
} opdi_weight_norm;

/* Checks the arguments and fills in *norm.  If dim is -1, the norm is over all dims, else over all dims except dim.  If
   g is NULL, v keeps its dtype, and norm->g is not set.  Returns 0, or -1 and sets an error. */
static int opdi_weight_norm_open(opd_tensor *v, opd_tensor *g, int64_t dim, opdi_weight_norm *norm) {
    const int keep = dim == -1 ? -1 : opdi_dim_of(dim, v->ndim);
    if ((keep < 0 && dim != -1) || opdi_norm_floating(v, "weight_norm_kernel")) { return -1; }
    if (v->ndim == 0 && dim != -1) { return opdi_no_dims_fail(dim); }
    norm->count = 0;
    norm->work = opdi_norm_type(v);
    for (int i = 0; i < v->ndim; i++) {
        norm->kept[i] = i == keep ? opdi_sizes(v)[i] : 1;
        if (i != keep) { norm->dims[norm->count++] = i; }
    }
    norm->v = opd_contiguous(v);
    if (!g) { return 0; }
    if (opdi_same_dtype(v, g)) { return -1; }
    if (g->numel != (keep < 0 ? 1 : norm->kept[keep])) {
        return opd_fail(OPD_ERROR_SHAPE, "g has %lld elements, but v has %lld norms", (long long)g->numel,
                        (long long)(keep < 0 ? 1 : norm->kept[keep]));
    }
    norm->v = opd_to_dtype(norm->v, norm->work);
    norm->g = opd_to_dtype(opdi_maybe_reshape(g, norm->kept, v->ndim), norm->work);
    return opd_ok() ? 0 : -1;
}
static opd_tensor *opdi_weight_norms(const opdi_weight_norm *norm) {
    return norm->count == 0 ? opd_abs(norm->v)
        : opd_linalg_vector_norm_full(norm->v, opd_value_int(2), opd_value_ints(norm->dims, norm->count), true,
                                      OPD_NONE);
}
static int opdi_weight_norm_kernel(opd_call *call) {
    opd_tensor *results[2], *v = opd_arg_tensor(call, 0), *g = opd_arg_tensor(call, 1);
    const int64_t dim = opd_arg_int(call, 2);
    const bool half = v->dtype == OPD_FLOAT16 || g->dtype == OPD_FLOAT16;
    opdi_weight_norm norm;
    if (!half && (dim == 0 || (dim == v->ndim - 1 && dim > 0))) {
        return opd_weight_norm_interface_full(results, v, g, dim) ? -1 : opd_return_tensor(call, results[0]);
    }
    if (opdi_weight_norm_open(v, NULL, dim, &norm)) { return -1; }
    return opd_return_tensor(call, opd_mul(norm.v, v->numel ? opd_div(g, opdi_weight_norms(&norm)) : g));
}
static int opdi_weight_norm_interface_kernel(opd_call *call) {
    opd_tensor *v = opd_arg_tensor(call, 0), *norms;
    const int64_t dim = opd_arg_int(call, 2);
    opdi_weight_norm norm;
    if (v->ndim > 0 && dim != 0 && dim != v->ndim - 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "dim must be the first or the last of %d dimensions, but is %lld", v->ndim,
                        (long long)dim);
    }
    if (opdi_weight_norm_open(v, opd_arg_tensor(call, 1), dim, &norm) || !(norms = opdi_weight_norms(&norm))) {
        return -1;
    }
    v = opd_to_dtype(opd_mul(norm.v, opd_div(norm.g, norms)), OPDI_DTYPE(v));
    norms = opdi_maybe_reshape(norms, opdi_sizes(opd_arg_tensor(call, 1)), opd_arg_tensor(call, 1)->ndim);
    return opd_return_tensor(call, v) ? -1 : opd_return_tensor(call, opd_clone(norms));      /* not a view of `norms` */
}
/* Computes dv = g / norm * (grad - v * sum(grad * v) / norm^2) and dg = sum(grad * v) / norm. */
static int opdi_weight_norm_back_kernel(opd_call *call) {
    opd_tensor *v = opd_arg_tensor(call, 1), *g = opd_arg_tensor(call, 2), *norms = opd_arg_tensor(call, 3);
    opdi_weight_norm norm;
    if (opdi_weight_norm_open(v, g, opd_arg_int(call, 4), &norm)) { return -1; }
    if (v->numel == 0) {
        return opd_return_tensor(call, opd_zeros_like(v)) ? -1 : opd_return_tensor(call, opd_zeros_like(g));
    }
    opd_tensor *grad = opd_to_dtype(opd_contiguous(opd_arg_tensor(call, 0)), norm.work), *sums = opd_mul(grad, norm.v);
    if (norm.count) { sums = opdi_maybe_sum_dims(sums, norm.dims, norm.count, true); }
    norms = opdi_maybe_reshape(norms, norm.kept, norm.v->ndim);
    opd_tensor *dv = opd_mul(norm.v, opd_div(sums, opd_square(norms))), *dg = opd_div(sums, norms);
    opd_tensor *const quotient = opd_div(norm.g, norms);
    dv = opd_mul(quotient, opd_sub(grad, dv));
    if (opd_return_tensor(call, opd_to_dtype(dv, OPDI_DTYPE(v)))) { return -1; }
    return opd_return_tensor(call, opd_to_dtype(opdi_maybe_reshape(dg, opdi_sizes(g), g->ndim), OPDI_DTYPE(g)));
}
/* Computes the gradients of _weight_norm_interface.  Computes the norms again by operators, so that the derivative of
   the norms, v / norm, is recorded. */
static int opdi_weight_norm_interface_backward(opd_backward_call *bw) {
    opd_tensor *v = opd_bw_tensor(bw, 0), *g = opd_bw_tensor(bw, 1), *results[2] = {NULL, NULL}, *norms;
    const int64_t dim = opd_bw_value(bw, 2).u.i;
    opdi_weight_norm norm;
    if (opdi_weight_norm_open(v, g, dim, &norm) || !(norms = opdi_weight_norms(&norm))) { return -1; }
    if (opd_bw_grad(bw, 0) && opd_weight_norm_differentiable_backward(results, opd_bw_grad(bw, 0), v, g, norms, dim)) {
        return -1;
    }
    if (opd_bw_grad(bw, 1)) {
        opd_tensor *dv = opdi_maybe_reshape(opd_bw_grad(bw, 1), norm.kept, v->ndim);
        dv = opd_to_dtype(opd_mul(dv, opd_div(norm.v, norms)), OPDI_DTYPE(v));
        results[0] = results[0] ? opd_add(results[0], dv) : dv;
    }
    OPDI_BW_RETURN(0, results[0]);
    OPDI_BW_RETURN(1, results[1]);
    return 0;
}
/* opd_weight_norm: v scaled to the norms g, taken over all dims but dim (-1: over all dims) */
OPDI_OP(_weight_norm) {
    op->schema = "_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor";
    op->composite = opdi_weight_norm_kernel;
    op->cases = "[3,2], [3,1]; [2,3,4], [1,3,1], 1; [2,3], [], -1";
}
/* opd_weight_norm_interface: _weight_norm of the first or last dim, and the norms of v */
OPDI_OP(_weight_norm_interface) {
    op->schema = "_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)";
    op->any = opdi_weight_norm_interface_kernel; op->backward = opdi_weight_norm_interface_backward;
    op->save = "v, g";
    op->vmap = OPD_BATCH_DECOMPOSE; op->flops = opdi_flops_elements;
    op->out = "_weight_norm_interface.out(out0, out1)";
    op->cases = "[3,2], [3,1]; [2,3], [1,3], 1; [3], [3]";
}
/* opd_weight_norm_interface_backward: derivatives of _weight_norm_interface */
OPDI_OP(_weight_norm_interface_backward) {
    op->schema = "_weight_norm_interface_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor saved_norms, "
        "int dim) -> (Tensor, Tensor)";
    op->composite = opdi_weight_norm_back_kernel;
    op->out = "_weight_norm_interface_backward.out(out0, out1)";
    op->cases = "[3,2], [3,2], [3,1], [3,1]+, 0";
}
/* opd_weight_norm_differentiable_backward: derivatives of _weight_norm_interface */
OPDI_OP(_weight_norm_differentiable_backward) {
    op->schema = "_weight_norm_differentiable_backward(Tensor grad_w, Tensor saved_v, Tensor saved_g, Tensor "
        "saved_norms, int dim) -> (Tensor, Tensor)";
    op->composite = opdi_weight_norm_back_kernel;
    op->cases = "[3,2], [3,2], [3,1], [3,1]+, 0";
}
