#include "../ops.h"

//== the gates of a cell as one operator ===============================================================================
//
//  For each step of an lstm or gru, two products compute the gates' contributions of the input and of the hidden
//  state.  These operators do the rest of the step.  The layers of the room above call them on CUDA, where each is one
//  kernel.  On other devices, they are made of public operators.  Bias [n H], gates [B, n H], states [B, H].

/* Returns part i of `gates` [B, n H], which has `size` columns. */
static opd_tensor *opdi_cell_part(opd_tensor *gates, int64_t i, int64_t size) {
    return gates ? opd_narrow(gates, -1, i * size, size) : NULL;
}
/* Returns `gates` plus the bias, which may be NULL. */
static opd_tensor *opdi_cell_biased(opd_tensor *gates, opd_tensor *bias) {
    return bias && gates ? opd_add(gates, bias) : gates;
}
/* Checks the arguments of a cell's operator: two tensors of gates [B, parts * H], a state [B, H], and biases.  Returns
   0, or -1 and sets an error. */
static int opdi_cell_fits(const opd_tensor *first, const opd_tensor *second, const opd_tensor *state,
                           opd_tensor *const *biases, int64_t parts) {
    const int64_t size = state->ndim == 2 ? opdi_sizes(state)[1] : 0;
    bool fits = state->ndim == 2 && first->ndim == 2 && opdi_same_sizes(first, second) &&
        opdi_sizes(first)[0] == opdi_sizes(state)[0] && opdi_sizes(first)[1] == parts * size;
    for (int i = 0; i < 2; i++) {
        const opd_tensor *const bias = biases[i];
        fits = fits && (!bias || (bias->ndim == 1 && opdi_sizes(bias)[0] == parts * size));
    }
    if (!fits) {
        char texts[3][256];
        return opd_fail(OPD_ERROR_SHAPE, "gates must have the sizes [B, %d * H], the state [B, H] and biases [%d * H], "
                        "but gates have %s and %s, and the state has %s", (int)parts, (int)parts,
                        opdi_shape_text(first, texts[0]), opdi_shape_text(second, texts[1]),
                        opdi_shape_text(state, texts[2]));
    }
    return opd_dtype_is_floating(OPDI_DTYPE(state)) && first->dtype == state->dtype && second->dtype == state->dtype
        ? 0 : opd_fail(OPD_ERROR_DTYPE, "gates and states must have the same floating point dtype");
}
/* Returns the gradient of a bias: the sum over the rows of the gradient of gates. */
static opd_tensor *opdi_cell_sum(opd_tensor *grad) {
    const int64_t dim = 0;
    return grad ? opd_sum_dim(grad, opd_ints_of(&dim, 1), false) : NULL;
}
/* Activates `sum` [B, 4 H] in four parts: parts[0] to parts[3] become the input and forget gates, the candidate and
   the output gate [B, H]. */
static void opdi_lstm_cell_gates(opd_tensor *sum, int64_t size, opd_tensor **parts) {
    for (int i = 0; i < 4; i++) {
        opd_tensor *const part = opdi_cell_part(sum, i, size);
        parts[i] = i == 2 ? opd_tanh(part) : opd_sigmoid(part);
    }
}
static int opdi_fused_lstm_kernel(opd_call *call) {
    opd_tensor *const biases[2] = {opd_arg_tensor(call, 3), opd_arg_tensor(call, 4)};
    opd_tensor *const c = opd_arg_tensor(call, 2), *gates[4];
    if (opdi_cell_fits(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), c, biases, 4)) { return -1; }
    opd_tensor *const sum = opdi_cell_biased(opdi_cell_biased(opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)),
                                                              biases[0]), biases[1]);
    opdi_lstm_cell_gates(sum, opd_size(c, 1), gates);
    opd_tensor *const product = opd_mul(gates[1], c), *const next = opd_add(product, opd_mul(gates[0], gates[2]));
    if (opd_return_tensor(call, opd_mul(gates[3], opd_tanh(next))) || opd_return_tensor(call, next)) { return -1; }
    return opd_return_tensor(call, opd_cat(opd_tensors_of(gates, 4), 1));
}
/* Computes the gradients of an lstm's cell from its activated gates and its states before and after the step.  Both
   gradients of results may be NULL.  Sets results[0] to the gradient of the sum of gates [B, 4 H], and results[1] to
   that of the state before the step.  Returns 0, or -1 and sets an error. */
static int opdi_lstm_cell_slopes(opd_tensor *const *grads, opd_tensor *before, opd_tensor *after,
                                 opd_tensor *const *gates, opd_tensor **results) {
    opd_tensor *const t = opd_tanh(after), *slopes[4], *c = grads[1];
    if (grads[0]) {
        opd_tensor *const product = opd_mul(grads[0], gates[3]),
            *const more = opd_mul(product, opdi_rsubs(1, opd_mul(t, t)));
        c = c ? opd_add(c, more) : more;
    }
    if (!c) { c = opd_zeros_like(after); }
    for (int i = 0; i < 2; i++) {
        slopes[i] = opd_mul(c, i ? before : gates[2]);
        slopes[i] = opd_mul(slopes[i], opd_mul(gates[i], opdi_rsubs(1, gates[i])));
    }
    opd_tensor *const first_product = opd_mul(c, gates[0]);
    slopes[2] = opd_mul(first_product, opdi_rsubs(1, opd_mul(gates[2], gates[2])));
    slopes[3] = grads[0] ? opd_mul(grads[0], t) : opd_zeros_like(after);
    if (grads[0]) { slopes[3] = opd_mul(slopes[3], opd_mul(gates[3], opdi_rsubs(1, gates[3]))); }
    results[0] = opd_ok() ? opd_cat(opd_tensors_of(slopes, 4), 1) : NULL;
    results[1] = opd_mul(c, gates[1]);
    return results[0] && results[1] ? 0 : -1;
}
static int opdi_fused_lstm_backward_kernel(opd_call *call) {
    opd_tensor *const grads[2] = {opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)}, *const c = opd_arg_tensor(call, 2),
        *const acts = opd_arg_tensor(call, 4), *const none[2] = {NULL, NULL};
    opd_tensor *gates[4], *results[2];
    if (!grads[0] && !grads[1]) {
        return opd_fail(OPD_ERROR_ARGUMENT, "grad_hy or grad_cy must be given");
    }
    if (opdi_cell_fits(acts, acts, c, none, 4)) { return -1; }
    for (int i = 0; i < 4; i++) { gates[i] = opdi_cell_part(acts, i, opd_size(c, 1)); }
    if (opdi_lstm_cell_slopes(grads, c, opd_arg_tensor(call, 3), gates, results)) { return -1; }
    if (opd_return_tensor(call, results[0]) || opd_return_tensor(call, results[1])) { return -1; }
    return opd_arg_bool(call, 5) ? opd_return_tensor(call, opdi_cell_sum(results[0]))
        : opd_return_value(call, OPD_NONE);
}
/* The backward function of the lstm's cell.  If the gradients may be differentiated, computes them by operators from
   the arguments, otherwise from the gates that the forward pass has kept. */
static int opdi_fused_lstm_backward(opd_backward_call *bw) {
    opd_tensor *const grads[2] = {opd_bw_grad(bw, 0), opd_bw_grad(bw, 1)}, *const c = opd_bw_tensor(bw, 2);
    opd_tensor *gates[4], *results[3];
    if ((!grads[0] && !grads[1]) || !c) { return opd_ok() ? 0 : -1; }
    if (opd_grad_mode_enabled()) {
        opd_tensor *const sum = opdi_cell_biased(opdi_cell_biased(opd_add(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1)),
                                                                  opd_bw_tensor(bw, 3)), opd_bw_tensor(bw, 4));
        opdi_lstm_cell_gates(sum, opd_size(c, 1), gates);
        if (opdi_lstm_cell_slopes(grads, c, opd_bw_result(bw, 1), gates, results)) { return -1; }
    } else if (opd__thnn_fused_lstm_cell_backward_impl(results, grads[0], grads[1], c, opd_bw_result(bw, 1),
                                                       opd_bw_result(bw, 2), false)) { return -1; }
    OPDI_BW_RETURN(0, results[0]);
    OPDI_BW_RETURN(1, results[0]);
    OPDI_BW_RETURN(2, results[1]);
    for (int i = 3; i < 5; i++) { if (opd_bw_needs(bw, i)) { OPDI_BW_RETURN(i, opdi_cell_sum(results[0])); } }
    return 0;
}
/* opd__thnn_fused_lstm_cell: a step of an lstm from the sums that give its gates: new h and c, and activated gates */
OPDI_OP(_thnn_fused_lstm_cell) {
    op->schema = "_thnn_fused_lstm_cell(Tensor input_gates, Tensor hidden_gates, Tensor cx, Tensor? input_bias=None, "
        "Tensor? hidden_bias=None) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_fused_lstm_kernel; op->backward = opdi_fused_lstm_backward;
    op->save = "input_gates, hidden_gates, cx, input_bias, hidden_bias, result1, result2"; op->constant = "result2";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->cases = "";
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
}
/* opd__thnn_fused_lstm_cell_backward_impl: derivatives of _thnn_fused_lstm_cell: of the gates, cx and a bias */
OPDI_OP(_thnn_fused_lstm_cell_backward_impl) {
    op->schema = "_thnn_fused_lstm_cell_backward_impl(Tensor? grad_hy, Tensor? grad_cy, Tensor cx, Tensor cy, Tensor "
        "workspace, bool has_bias) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_fused_lstm_backward_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->cases = "";
}

//== gru ===============================================================================================================

/* The parts of a gru's step: the gates r (reset) and z (keep), the candidate n, and what r is multiplied by, m. */
typedef struct opdi_gru_parts { opd_tensor *r, *z, *n, *m; } opdi_gru_parts;
static opdi_gru_parts opdi_gru_cell_parts(opd_tensor *input, opd_tensor *hidden, int64_t size) {
    opdi_gru_parts parts;
    opd_tensor *const part = opdi_cell_part(input, 0, size);
    parts.r = opd_sigmoid(opd_add(part, opdi_cell_part(hidden, 0, size)));
    opd_tensor *const first_part = opdi_cell_part(input, 1, size);
    parts.z = opd_sigmoid(opd_add(first_part, opdi_cell_part(hidden, 1, size)));
    parts.m = opdi_cell_part(hidden, 2, size);
    opd_tensor *const other_part = opdi_cell_part(input, 2, size);
    parts.n = opd_tanh(opd_add(other_part, opd_mul(parts.r, parts.m)));
    return parts;
}
static int opdi_fused_gru_kernel(opd_call *call) {
    opd_tensor *const biases[2] = {opd_arg_tensor(call, 3), opd_arg_tensor(call, 4)};
    opd_tensor *const h = opd_arg_tensor(call, 2), *kept[5];
    if (opdi_cell_fits(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), h, biases, 3)) { return -1; }
    opd_tensor *const biased = opdi_cell_biased(opd_arg_tensor(call, 0), biases[0]);
    const opdi_gru_parts parts = opdi_gru_cell_parts(biased, opdi_cell_biased(opd_arg_tensor(call, 1), biases[1]),
        opd_size(h, 1));
    kept[0] = parts.r;
    kept[1] = parts.z;
    kept[2] = parts.n;
    kept[3] = h;
    kept[4] = parts.m;
    if (opd_return_tensor(call, opd_add(opd_mul(opd_sub(h, parts.n), parts.z), parts.n))) { return -1; }
    return opd_return_tensor(call, opd_cat(opd_tensors_of(kept, 5), 1));
}
/* Computes the gradients of a gru's cell from the gradient of its new state.  Sets results[0] and results[1] to the
   gradients of both tensors of gates [B, 3 H], and results[2] to that of the state h.  Returns 0, or -1 and sets an
   error. */
static int opdi_gru_cell_slopes(opd_tensor *grad, const opdi_gru_parts *parts, opd_tensor *h, opd_tensor **results) {
    opd_tensor *slopes[3];
    opd_tensor *const product = opd_mul(grad, opdi_rsubs(1, parts->z));
    slopes[2] = opd_mul(product, opdi_rsubs(1, opd_mul(parts->n, parts->n)));
    opd_tensor *const first_product = opd_mul(grad, opd_sub(h, parts->n));
    slopes[1] = opd_mul(first_product, opd_mul(parts->z, opdi_rsubs(1, parts->z)));
    opd_tensor *const other_product = opd_mul(slopes[2], parts->m);
    slopes[0] = opd_mul(other_product, opd_mul(parts->r, opdi_rsubs(1, parts->r)));
    results[0] = opd_ok() ? opd_cat(opd_tensors_of(slopes, 3), 1) : NULL;
    slopes[2] = opd_mul(slopes[2], parts->r);
    results[1] = opd_ok() ? opd_cat(opd_tensors_of(slopes, 3), 1) : NULL;
    results[2] = opd_mul(grad, parts->z);
    return opd_ok() ? 0 : -1;
}
static int opdi_fused_gru_backward_kernel(opd_call *call) {
    opd_tensor *const kept = opd_arg_tensor(call, 1), *results[3];
    const int64_t size = kept->ndim == 2 ? opdi_sizes(kept)[1] / 5 : 0;
    if (kept->ndim != 2 || opdi_sizes(kept)[1] != 5 * size) {
        return opd_fail(OPD_ERROR_SHAPE, "workspace must have the sizes [B, 5 * H]");
    }
    const opdi_gru_parts parts = {opdi_cell_part(kept, 0, size), opdi_cell_part(kept, 1, size),
                                  opdi_cell_part(kept, 2, size), opdi_cell_part(kept, 4, size)};
    if (opdi_gru_cell_slopes(opd_arg_tensor(call, 0), &parts, opdi_cell_part(kept, 3, size), results)) { return -1; }
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, results[i])) { return -1; } }
    for (int i = 0; i < 2; i++) {
        if (opd_arg_bool(call, 2) ? opd_return_tensor(call, opdi_cell_sum(results[i]))
            : opd_return_value(call, OPD_NONE)) { return -1; }
    }
    return 0;
}
/* The backward function of the gru's cell; see opdi_fused_lstm_backward. */
static int opdi_fused_gru_backward(opd_backward_call *bw) {
    opd_tensor *const grad = opd_bw_grad(bw, 0), *const h = opd_bw_tensor(bw, 2), *results[5];
    if (!grad || !h) { return opd_ok() ? 0 : -1; }
    if (opd_grad_mode_enabled()) {
        opd_tensor *const biased = opdi_cell_biased(opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 3));
        const opdi_gru_parts parts = opdi_gru_cell_parts(biased,
            opdi_cell_biased(opd_bw_tensor(bw, 1), opd_bw_tensor(bw, 4)), opd_size(h, 1));
        if (opdi_gru_cell_slopes(grad, &parts, h, results)) { return -1; }
    } else if (opd__thnn_fused_gru_cell_backward(results, grad, opd_bw_result(bw, 1), false)) { return -1; }
    for (int i = 0; i < 3; i++) { OPDI_BW_RETURN(i, results[i]); }
    for (int i = 3; i < 5; i++) { if (opd_bw_needs(bw, i)) { OPDI_BW_RETURN(i, opdi_cell_sum(results[i - 3])); } }
    return 0;
}
/* opd__thnn_fused_gru_cell: a step of a gru from the sums that give its gates: new h, and what backward reads */
OPDI_OP(_thnn_fused_gru_cell) {
    op->schema = "_thnn_fused_gru_cell(Tensor input_gates, Tensor hidden_gates, Tensor hx, Tensor? input_bias=None, "
        "Tensor? hidden_bias=None) -> (Tensor, Tensor)";
    op->any = opdi_fused_gru_kernel; op->backward = opdi_fused_gru_backward;
    op->save = "input_gates, hidden_gates, hx, input_bias, hidden_bias, result1"; op->constant = "result1";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->cases = "";
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
}
/* opd__thnn_fused_gru_cell_backward: derivatives of _thnn_fused_gru_cell: of both gates, hx and both biases */
OPDI_OP(_thnn_fused_gru_cell_backward) {
    op->schema = "_thnn_fused_gru_cell_backward(Tensor grad_hy, Tensor workspace, bool has_bias) -> (Tensor, Tensor, "
        "Tensor, Tensor, Tensor)";
    op->any = opdi_fused_gru_backward_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->cases = "";
}
