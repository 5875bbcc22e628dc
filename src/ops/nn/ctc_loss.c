#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:ctc       the loss of an alignment
//
//  A target of S labels is extended to a row of 2 S + 1 elements, with a blank before, between and after its labels.
//  alpha [N, T, 2 S + 1] holds log-probabilities: alpha[n, t, s] is that of all paths that have reached element s of
//  this row at time t.
//----------------------------------------------------------------------------------------------------------------------

typedef struct opdi_ctc {
    int64_t times, count, classes, blank, width;  /* sizes T, N, C; width: 2 * longest target + 1 */
    const double *probs;                          /* [T, N, C] */
    const int64_t *targets, *starts;              /* starts [N]: where each target begins */
    opd_ints inputs, lengths;                     /* for each item: number of times, number of labels */
} opdi_ctc;
static int64_t opdi_ctc_label(const opdi_ctc *ctc, int64_t item, int64_t place) {
    return place % 2 ? ctc->targets[ctc->starts[item] + place / 2] : ctc->blank;
}
static double opdi_ctc_prob(const opdi_ctc *ctc, int64_t time, int64_t item, int64_t label) {
    return ctc->probs[(time * ctc->count + item) * ctc->classes + label];
}
/* Returns log(e^x + e^y), or NaN if x or y is NaN. */
static double opdi_ctc_add(double x, double y) {
    const double most = OPDI_MAX(x, y);
    if (x == -INFINITY && y == -INFINITY) { return most; }
    return most + opdi_log_f64(opdi_exp_f64(x - most) + opdi_exp_f64(y - most));
}
/* Checks the lengths, writes the start of each target to `starts`, and sets ctc->width.  Returns 0, or -1 and sets
   an error. */
static int opdi_ctc_lengths(opdi_ctc *ctc, const opd_tensor *targets, int64_t *starts) {
    int64_t most = 0, sum = 0;
    if (ctc->inputs.n != ctc->count || ctc->lengths.n != ctc->count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s must be of size batch_size",
                        ctc->inputs.n != ctc->count ? "input_lengths" : "target_lengths");
    }
    for (int64_t i = 0; i < ctc->count; i++) {
        const int64_t length = ctc->lengths.data[i], input = ctc->inputs.data[i];
        const int64_t available = targets->ndim == 2 ? opdi_sizes(targets)[1] : targets->numel - sum;
        if (input < 0 || input > ctc->times) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Expected input_lengths to have value at %s %lld, but got value %lld "
                            "(while checking arguments for ctc_loss_cpu)", input < 0 ? "least" : "most",
                            input < 0 ? 0LL : (long long)ctc->times, (long long)input);
        }
        if (length < 0 || length > available) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Expected target_lengths to have value at %s %lld, but got value "
                            "%lld (while checking arguments for ctc_loss_cpu)", length < 0 ? "least" : "most",
                            length < 0 ? 0LL : (long long)available, (long long)length);
        }
        starts[i] = targets->ndim == 2 ? i * opdi_sizes(targets)[1] : sum;
        sum += length;
        most = OPDI_MAX(most, length);
    }
    if (targets->ndim == 1 && sum != targets->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected tensor to have size %lld at dimension 0, but got size %lld for "
                        "argument #2 'targets' (while checking arguments for ctc_loss_cpu)", (long long)sum,
                        (long long)targets->numel);
    }
    ctc->width = 2 * most + 1;
    ctc->starts = starts;
    return 0;
}
/* Reads the arguments into *ctc: log_probs is argument number `from`, followed by targets and the two lists of
   lengths.  Returns 0, or -1 and sets an error. */
static int opdi_ctc_read(opd_call *call, int from, int64_t blank, opdi_ctc *ctc) {
    opd_tensor *probs = opd_arg_tensor(call, from), *targets = opd_arg_tensor(call, from + 1);
    char text[256];
    if (probs->ndim != 3 || (probs->dtype != OPD_FLOAT32 && probs->dtype != OPD_FLOAT64)) {
        return opd_fail(OPD_ERROR_SHAPE, "expected log_probs [T, N, C] of float32 or float64, but got %d "
                        "dimensions of %s", probs->ndim, opd_dtype_name((opd_scalar_type)probs->dtype));
    }
    ctc->times = opdi_sizes(probs)[0];
    ctc->count = opdi_sizes(probs)[1];
    ctc->classes = opdi_sizes(probs)[2];
    ctc->blank = blank;
    ctc->inputs = opd_arg_ints(call, from + 2);
    ctc->lengths = opd_arg_ints(call, from + 3);
    if (targets->dtype != OPD_INT64 && targets->dtype != OPD_INT32) {
        return opd_fail(OPD_ERROR_DTYPE, "expected targets of dtype int32 or int64, but got %s",
                        opd_dtype_name((opd_scalar_type)targets->dtype));
    }
    if (targets->ndim < 1 || targets->ndim > 2 || (targets->ndim == 2 && opdi_sizes(targets)[0] != ctc->count)) {
        return opd_fail(OPD_ERROR_SHAPE, "expected targets [%lld, S] or [sum of target_lengths], but got %s",
                        (long long)ctc->count, opdi_shape_text(targets, text));
    }
    if (blank < 0 || blank >= ctc->classes) {
        return opd_fail(OPD_ERROR_ARGUMENT, "blank must be in label range");
    }
    int64_t *starts = (int64_t *)opdi_scope_alloc(((size_t)ctc->count + 1) * sizeof *starts);
    if (!starts || opdi_ctc_lengths(ctc, targets, starts)) { return -1; }
    if (probs->backend == OPD_META || targets->backend == OPD_META) { return 0; }
    if (!(probs = opdi_dense_as(probs, OPD_FLOAT64)) || !(targets = opdi_dense_as(targets, OPD_INT64))) { return -1; }
    ctc->probs = (const double *)(const void *)probs->data;
    ctc->targets = (const int64_t *)(const void *)targets->data;
    for (int64_t i = 0; i < ctc->count; i++) {
        for (int64_t k = 0; k < ctc->lengths.data[i]; k++) {
            const int64_t label = ctc->targets[starts[i] + k];
            if (label < 0 || label >= ctc->classes) {
                return opd_fail(OPD_ERROR_INDEX, "target %lld is out of range for %lld classes",
                                (long long)label, (long long)ctc->classes);
            }
        }
    }
    return 0;
}
/* Fills alpha [T, width] of item number `item` of the batch.  Returns minus the log-probability of its target. */
static double opdi_ctc_forward(const opdi_ctc *ctc, int64_t item, double *alpha) {
    const int64_t times = ctc->inputs.data[item], last = 2 * ctc->lengths.data[item];
    for (int64_t i = 0; i < ctc->times * ctc->width; i++) { alpha[i] = -INFINITY; }
    if (times == 0) { return last ? INFINITY : 0; }
    for (int64_t place = 0; place <= OPDI_MIN(last, (int64_t)1); place++) {
        alpha[place] = opdi_ctc_prob(ctc, 0, item, opdi_ctc_label(ctc, item, place));
    }
    for (int64_t time = 1; time < times; time++) {
        const double *before = alpha + (time - 1) * ctc->width;
        for (int64_t place = 0; place <= last; place++) {
            const int64_t label = opdi_ctc_label(ctc, item, place);
            double sum = before[place];
            if (place > 0) { sum = opdi_ctc_add(sum, before[place - 1]); }
            if (place > 1 && opdi_ctc_label(ctc, item, place - 2) != label) {
                sum = opdi_ctc_add(sum, before[place - 2]);
            }
            alpha[time * ctc->width + place] = sum + opdi_ctc_prob(ctc, time, item, label);
        }
    }
    const double *end = alpha + (times - 1) * ctc->width;
    return -(last ? opdi_ctc_add(end[last], end[last - 1]) : end[0]);
}
static int opdi__ctc_loss_kernel(opd_call *call) {
    opdi_ctc ctc;
    int64_t sizes[3];
    if (opdi_ctc_read(call, 0, opd_arg_int(call, 4), &ctc)) { return -1; }
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_tensor(call, 0)->dtype;
    sizes[0] = ctc.count;
    sizes[1] = ctc.times;
    sizes[2] = ctc.width;
    opd_tensor *loss = opd_result(call, 0, sizes, 1, dtype), *alpha = opd_result(call, 1, sizes, 3, dtype);
    if (!loss || !alpha || !loss->data || !alpha->data) { return loss && alpha ? 0 : -1; }
    opd_tensor *first = opdi_staging(loss, OPD_FLOAT64), *second = opdi_staging(alpha, OPD_FLOAT64);
    if (!first || !second) { return -1; }
    for (int64_t i = 0; i < ctc.count; i++) {
        double *rows = (double *)(void *)second->data + i * ctc.times * ctc.width;
        ((double *)(void *)first->data)[i] = opdi_ctc_forward(&ctc, i, rows);
    }
    return opdi_staging_store(loss, first) || opdi_staging_store(alpha, second) ? -1 : 0;
}
/* Computes, for each element of the extended target at each time, the log-probability of all paths through this
   element.  Adds it, in log space, to the element of sums [T, N, C] for this time and label.  beta [2, width] is
   scratch memory. */
static void opdi_ctc_sums(const opdi_ctc *ctc, int64_t item, const double *alpha, double *beta, double *sums) {
    const int64_t times = ctc->inputs.data[item], last = 2 * ctc->lengths.data[item];
    for (int64_t time = times - 1; time >= 0; time--) {
        double *now = beta + time % 2 * ctc->width;
        const double *next = beta + (time + 1) % 2 * ctc->width;
        for (int64_t place = 0; place <= last; place++) {
            const int64_t label = opdi_ctc_label(ctc, item, place);
            double *to = sums + (time * ctc->count + item) * ctc->classes + label, sum = -INFINITY;
            if (time == times - 1) { sum = place >= last - 1 ? 0 : -INFINITY; }
            else {
                sum = next[place];
                if (place < last) { sum = opdi_ctc_add(sum, next[place + 1]); }
                if (place < last - 1 && opdi_ctc_label(ctc, item, place + 2) != label) {
                    sum = opdi_ctc_add(sum, next[place + 2]);
                }
            }
            now[place] = sum + opdi_ctc_prob(ctc, time, item, label);
            *to = opdi_ctc_add(*to, alpha[time * ctc->width + place] + now[place]);
        }
    }
}
/* Computes grad * (e^log_probs - e^(sums + loss - log_probs)), where opdi_ctc_sums computes the sums.  The gradient
   is 0 from the input length of each item on.  With zero_infinity, it is also 0 for targets that no path reaches. */
static int opdi__ctc_loss_backward_kernel(opd_call *call) {
    opdi_ctc ctc;
    if (opdi_ctc_read(call, 1, opd_arg_int(call, 7), &ctc)) { return -1; }
    opd_tensor *probs = opd_arg_tensor(call, 1), *grad = opd_arg_tensor(call, 0), *loss = opd_arg_tensor(call, 5);
    opd_tensor *alpha = opd_arg_tensor(call, 6);
    const bool zero = opd_arg_bool(call, 8);
    opd_tensor *out = opd_result(call, 0, opdi_sizes(probs), 3, (opd_scalar_type)probs->dtype);
    if (grad->numel != ctc.count || loss->numel != ctc.count ||
        alpha->numel != ctc.count * ctc.times * ctc.width) {
        return opd_fail(OPD_ERROR_SHAPE, "grad, neg_log_likelihood and log_alpha must have the sizes of the results of "
                        "_ctc_loss");
    }
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_staging(out, OPD_FLOAT64);
    double *beta = (double *)opdi_scope_alloc((size_t)ctc.width * 2 * sizeof *beta);
    if (!scratch || !beta || !(grad = opdi_dense_as(grad, OPD_FLOAT64)) || !(loss = opdi_dense_as(loss, OPD_FLOAT64)) ||
        !(alpha = opdi_dense_as(alpha, OPD_FLOAT64))) { return -1; }
    double *sums = (double *)(void *)scratch->data;
    for (int64_t i = 0; i < out->numel; i++) { sums[i] = -INFINITY; }
    for (int64_t item = 0; item < ctc.count; item++) {
        const double cost = ((const double *)(const void *)loss->data)[item];
        const double factor = ((const double *)(const void *)grad->data)[item];
        const bool none = zero && cost == INFINITY;
        const double *rows = (const double *)(const void *)alpha->data + item * ctc.times * ctc.width;
        if (!none) { opdi_ctc_sums(&ctc, item, rows, beta, sums); }
        for (int64_t time = 0; time < ctc.times; time++) {
            for (int64_t label = 0; label < ctc.classes; label++) {
                const double log_prob = opdi_ctc_prob(&ctc, time, item, label);
                double *at = sums + (time * ctc.count + item) * ctc.classes + label;
                *at = none || time >= ctc.inputs.data[item] ? 0
                    : (opdi_exp_f64(log_prob) - opdi_exp_f64(*at + cost - log_prob)) * factor;
            }
        }
    }
    return opdi_staging_store(out, scratch);
}
/* Calls _ctc_loss_backward.  `args` are the six arguments of _ctc_loss, loss and alpha its results. */
static opd_tensor *opdi_ctc_slope(opd_tensor *grad, const opd_value *args, opd_tensor *loss, opd_tensor *alpha) {
    opd_value values[9];
    opd_op *op = NULL;
    values[0] = opd_value_tensor(grad);
    memcpy(values + 1, args, 4 * sizeof *values);
    values[5] = opd_value_tensor(loss);
    values[6] = opd_value_tensor(alpha);
    memcpy(values + 7, args + 4, 2 * sizeof *values);
    return opd_call_op(OPD_OP(&op, OPDI_NAME(_ctc_loss_backward, "aten::_ctc_loss_backward")), values, 9);
}
static int opdi__ctc_loss_backward(opd_backward_call *bw) {
    opd_value args[6];
    if (!opd_bw_grad(bw, 0)) { return 0; }
    for (int i = 0; i < 6; i++) { args[i] = i < 2 ? opd_value_tensor(opd_bw_tensor(bw, i)) : opd_bw_value(bw, i); }
    return opd_bw_return(bw, 0, opdi_ctc_slope(opd_bw_grad(bw, 0), args, opd_bw_result(bw, 0), opd_bw_result(bw, 1)));
}
/* Forward mode: for each item, the sum of the products of the gradient with the tangent. */
static int opdi__ctc_loss_jvp(opd_jvp_call *jv) {
    static const int64_t dims[] = {0, 2};
    opd_tensor *loss = opd_jvp_result(jv, 0), *tangent = opd_jvp_tangent(jv, 0);
    opd_value args[6];
    for (int i = 0; i < 6; i++) { args[i] = i < 2 ? opd_value_tensor(opd_jvp_tensor(jv, i)) : opd_jvp_value(jv, i); }
    opd_tensor *slope = loss && tangent
        ? opdi_ctc_slope(opd_ones_like(loss), args, loss, opd_jvp_result(jv, 1)) : NULL;
    return slope ? opd_jvp_return(jv, 0, opd_sum_dim(opd_mul(slope, tangent), opd_ints_of(dims, 2), false)) : -1;
}
/* Computes the losses of the items with _ctc_loss, and reduces them: to the mean of loss / max(length of the target,
   1), to the sum, or not at all.  Returns 0, or -1 and sets an error. */
static int opdi_ctc_loss(opd_call *call, opd_ints inputs, opd_ints lengths) {
    opd_tensor *probs = opd_arg_tensor(call, 0), *targets = opd_arg_tensor(call, 1);
    opd_value values[6];
    opd_op *op = NULL;
    const int64_t reduction = opd_arg_int(call, 5);
    const bool single = probs->ndim == 2, zero = opd_arg_bool(call, 6);
    if (single) { probs = opd_unsqueeze(probs, 1); }
    targets = opd_to_device(targets, opd_tensor_device(probs), OPD_INT64);
    if (!probs || !targets) { return -1; }
    values[0] = opd_value_tensor(probs);
    values[1] = opd_value_tensor(targets);
    values[2] = opd_value_ints(inputs.data, inputs.n);
    values[3] = opd_value_ints(lengths.data, lengths.n);
    values[4] = opd_arg_value(call, 4);
    values[5] = opd_value_bool(zero);
    opd_tensor *loss = opd_call_op(OPD_OP(&op, OPDI_NAME(_ctc_loss, "aten::_ctc_loss")), values, 6);
    if (zero) { loss = opdi_unless(loss, opd_isinf(loss)); }
    if (reduction != 1) {
        return opd_return_tensor(call, reduction == 2 ? opd_sum(loss) : single ? opd_squeeze_dim(loss, 0) : loss);
    }
    int64_t *least = (int64_t *)opdi_scope_alloc(((size_t)lengths.n + 1) * sizeof *least);
    if (!least || !loss) { return -1; }
    for (int64_t i = 0; i < lengths.n; i++) { least[i] = OPDI_MAX(lengths.data[i], (int64_t)1); }
    opd_tensor *sizes = opd_tensor_from(least, opd_ints_of(&lengths.n, 1), OPD_INT64);
    sizes = opd_to_device(sizes, opd_tensor_device(loss), OPD_INT64);
    return opd_return_tensor(call, opd_mean(opd_div(loss, sizes)));
}
static int opdi_ctc_loss_IntList_kernel(opd_call *call) {
    return opdi_ctc_loss(call, opd_arg_ints(call, 2), opd_arg_ints(call, 3));
}
/* Reads the numbers of argument i, a tensor of integers with readable data, into *numbers.  Returns 0, or -1 and
   sets an error. */
static int opdi_ctc_numbers(opd_call *call, int i, opd_ints *numbers) {
    opd_tensor *lengths = opd_arg_tensor(call, i);
    if (!opd_dtype_is_integral(OPDI_DTYPE(lengths), false)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s must be integral", call->op->schema->args[i].name);
    }
    lengths = opdi_on_host(opd_contiguous(opd_to_dtype(lengths, OPD_INT64)));
    if (!lengths) { return -1; }
    *numbers = opd_ints_of(opd_data_i64(lengths), opd_numel(lengths));
    return opd_ok() ? 0 : -1;
}
static int opdi_ctc_loss_Tensor_kernel(opd_call *call) {
    opd_ints inputs, lengths;
    if (opdi_ctc_numbers(call, 2, &inputs) || opdi_ctc_numbers(call, 3, &lengths)) { return -1; }
    return opdi_ctc_loss(call, inputs, lengths);
}
/* opd__ctc_loss: minus the log-probabilities of targets over all alignments, and the alphas of the forward algorithm */
OPDI_OP(_ctc_loss) {
    op->schema = "_ctc_loss(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int blank=0, "
        "bool zero_infinity=False) -> (Tensor, Tensor)";
    op->cpu = op->fake = opdi__ctc_loss_kernel; op->backward = opdi__ctc_loss_backward;
    op->save = "log_probs, targets, result0, result1"; op->constant = "result1"; op->jvp = opdi__ctc_loss_jvp;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* opd__ctc_loss_backward: derivative of _ctc_loss, for log_probs that are normalised (made by log_softmax) */
OPDI_OP(_ctc_loss_backward) {
    op->schema = "_ctc_loss_backward(Tensor grad, Tensor log_probs, Tensor targets, int[] input_lengths, int[] "
        "target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> Tensor";
    op->cpu = op->fake = opdi__ctc_loss_backward_kernel; op->backward = opdi_refused_backward;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* opd_ctc_loss_Tensor: ctc_loss.IntList with lengths that are tensors */
OPDI_OP(ctc_loss_Tensor) {
    op->schema = "ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
        "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor";
    op->composite = opdi_ctc_loss_Tensor_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "";
}
/* opd_ctc_loss_IntList: connectionist temporal classification loss; targets [N, S], or one after the other */
OPDI_OP(ctc_loss_IntList) {
    op->schema = "ctc_loss.IntList(Tensor log_probs, Tensor targets, int[] input_lengths, int[] target_lengths, int "
        "blank=0, int reduction=1, bool zero_infinity=False) -> Tensor";
    op->composite = opdi_ctc_loss_IntList_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "";
}
/* Runs the operator `name`, _ctc_loss or _ctc_loss_backward, for lengths that are given as tensors: argument number
   `at` and the next argument.  Returns 0, or -1 and sets an error. */
static int opdi_ctc_by_numbers(opd_call *call, const char *name, int at) {
    opd_value args[OPD_MAX_ARGS], rets[2];
    opd_op *op = NULL;
    opd_ints inputs, lengths;
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    if (opdi_ctc_numbers(call, at, &inputs) || opdi_ctc_numbers(call, at + 1, &lengths)) { return -1; }
    args[at] = opd_value_ints(inputs.data, inputs.n);
    args[at + 1] = opd_value_ints(lengths.data, lengths.n);
    if (opd_call_all(OPD_OP(&op, name), rets, args, call->op->nargs)) { return -1; }
    for (int i = 0; i < call->op->nrets; i++) { if (opd_return_tensor(call, rets[i].u.t)) { return -1; } }
    return 0;
}
static int opdi__ctc_loss_Tensor_kernel(opd_call *call) {
    return opdi_ctc_by_numbers(call, OPDI_NAME(_ctc_loss, "aten::_ctc_loss"), 2);
}
static int opdi__ctc_loss_backward_Tensor_kernel(opd_call *call) {
    return opdi_ctc_by_numbers(call, OPDI_NAME(_ctc_loss_backward, "aten::_ctc_loss_backward"), 3);
}
/* opd__ctc_loss_Tensor: _ctc_loss with the lengths in tensors */
OPDI_OP(_ctc_loss_Tensor) {
    op->schema = "_ctc_loss.Tensor(Tensor log_probs, Tensor targets, Tensor input_lengths, Tensor target_lengths, int "
        "blank=0, bool zero_infinity=False) -> (Tensor, Tensor)";
    op->composite = opdi__ctc_loss_Tensor_kernel;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_ctc_loss.Tensor_out(out0, out1)";
    op->cases = "";
}
/* opd__ctc_loss_backward_Tensor: derivative of _ctc_loss.Tensor */
OPDI_OP(_ctc_loss_backward_Tensor) {
    op->schema = "_ctc_loss_backward.Tensor(Tensor grad, Tensor log_probs, Tensor targets, Tensor input_lengths, "
        "Tensor target_lengths, Tensor neg_log_likelihood, Tensor log_alpha, int blank, bool zero_infinity=False) -> "
        "Tensor";
    op->composite = opdi__ctc_loss_backward_Tensor_kernel;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
