#include "../ops.h"

//== attention of texts of different lengths ===========================================================================
//
//  The rows of several texts lie one after another in one tensor, without padding; offsets say where each text begins.
//  Each text is one call of scaled_dot_product_attention, so that its kernels on all devices, its derivatives and all
//  transforms hold here, too.  On a GPU, one kernel computes all texts if no other layer has to see the operators.  It
//  reads the offsets itself, so that the host does not wait for them.

/* Reads offsets [texts + 1], the places where texts begin in `rows` rows, and the end of the last.  Returns them, or
   NULL and sets an error.  Offsets on the CPU are read without operators, so that a trace and fake tensors may have
   offsets with data, which are constants there. */
static const int64_t *opdi_varlen_offsets(opd_tensor *offsets, const char *name, int64_t rows) {
    if (offsets->ndim != 1 || offsets->numel < 1 || (offsets->dtype != OPD_INT32 && offsets->dtype != OPD_INT64)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_varlen_attention: %s must be int32 or int64 [texts + 1], but is a %d-D "
                       "tensor of %s with %lld elements", name, (int)offsets->ndim,
                       opd_dtype_name(opd_dtype(offsets)), (long long)offsets->numel);
        return NULL;
    }
    const opd_tensor *const host = offsets->backend == OPD_CPU ? offsets
        : opd_to_device(opd_detach(offsets), opd_device_make(OPD_CPU, -1), OPD_INT64);
    const int64_t *const wide = host && host->dtype == OPD_INT64 ? opd_data_i64(host) : NULL;
    const int32_t *const brief = host && host->dtype == OPD_INT32 ? opd_data_i32(host) : NULL;
    int64_t *const all = wide || brief ? (int64_t *)opdi_scope_alloc((size_t)host->numel * sizeof *all) : NULL;
    for (int64_t i = 0; all && i < host->numel; i++) {
        const int64_t place = i * host->dims[1], before = i ? all[i - 1] : 0;
        const int64_t at = wide ? wide[place] : brief[place];
        if (at < before || at > rows || (i == 0 && at != 0) || (i + 1 == host->numel && at != rows)) {
            (void)opd_fail(OPD_ERROR_INDEX, "opd_varlen_attention: element %lld of %s is %lld, but offsets must begin "
                           "with 0, never fall, and end with the number of rows, %lld", (long long)i, name,
                           (long long)at, (long long)rows);
            return NULL;
        }
        all[i] = at;
    }
    return all;
}
/* Checks the tensors that do not depend on offsets.  Returns 0, or -1 and sets an error. */
static int opdi_varlen_check(opd_tensor *const *in /*[3]*/, int64_t left, int64_t right) {
    static const char *const names[3] = {"query", "key", "value"};
    for (int i = 0; i < 3; i++) {
        if (in[i]->ndim == 3) { continue; }
        return opd_fail(OPD_ERROR_SHAPE, "opd_varlen_attention: %s must be [rows, heads, features], but has %d dims",
                        names[i], (int)in[i]->ndim);
    }
    if (in[1]->dims[0] != in[2]->dims[0] || in[1]->dims[1] != in[2]->dims[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_varlen_attention: key and value must have the same rows and heads, but "
                        "have %lld x %lld and %lld x %lld", (long long)in[1]->dims[0], (long long)in[1]->dims[1],
                        (long long)in[2]->dims[0], (long long)in[2]->dims[1]);
    }
    return left >= -1 && right >= -1 ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "opd_varlen_attention: window_left is %lld and window_right %lld, but they must "
                   "be -1 (no limit) or more", (long long)left, (long long)right);
}
/* Returns which keys each row of a text sees, bool [rows, keys].  The last row has the position of the last key. */
static opd_tensor *opdi_varlen_window(int64_t rows, int64_t keys, int64_t left, int64_t right, opd_device device) {
    opd_tensor *const from = opd_arange_start(opd_value_int(keys - rows), opd_value_int(keys), OPD_INT64);
    opd_tensor *const row = opd_unsqueeze(opd_to_device(from, device, OPD_INT64), 1);
    opd_tensor *const key = opd_to_device(opd_arange(opd_value_int(keys), OPD_INT64), device, OPD_INT64);
    opd_tensor *const back = opd_sub(row, key);
    opd_tensor *const after = right >= 0 ? opd_ge_Scalar(back, opd_value_int(-right)) : NULL;
    opd_tensor *const before = left >= 0 ? opd_le_Scalar(back, opd_value_int(left)) : NULL;
    return after && before ? opd_logical_and(after, before) : after ? after : before;
}
/* Returns rows [rows, heads, features] as [1, heads, rows, features]. */
static opd_tensor *opdi_varlen_heads(opd_tensor *rows, int64_t at, int64_t count) {
    return opd_unsqueeze(opd_transpose(opd_narrow(rows, 0, at, count), 0, 1), 0);
}
/* Computes attention of a text: rows at.. at + rows of query, and keys from.. from + keys. */
static opd_tensor *opdi_varlen_text(opd_tensor *const *in /*[3]*/, int64_t at, int64_t rows, int64_t from, int64_t keys,
                                    int64_t left, int64_t right, opd_value scale) {
    const bool causal = right == 0 && left < 0 && rows == keys, limited = (left >= 0 || right >= 0) && !causal;
    opd_tensor *const mask = limited ? opdi_varlen_window(rows, keys, left, right, opd_tensor_device(in[0])) : NULL;
    if (limited && !mask) { return NULL; }
    opd_tensor *const q = opdi_varlen_heads(in[0], at, rows), *const k = opdi_varlen_heads(in[1], from, keys),
        *const v = opdi_varlen_heads(in[2], from, keys);
    opd_tensor *const y = opd_scaled_dot_product_attention_full(q, k, v, mask, 0, causal, scale, true);
    return opd_transpose(opd_select(y, 0, 0), 0, 1);
}
static opd_tensor *opdi_varlen_all(opd_tensor *const *in /*[3]*/, opd_tensor *offsets_q, opd_tensor *offsets_k,
                                   int64_t left, int64_t right, opd_value scale) {
    if (opdi_varlen_check(in, left, right)) { return NULL; }
    const int64_t *const at = opdi_varlen_offsets(offsets_q, "offsets_q", in[0]->dims[0]);
    const int64_t *const from = at ? opdi_varlen_offsets(offsets_k, "offsets_k", in[1]->dims[0]) : NULL;
    if (!from) { return NULL; }
    if (offsets_q->numel != offsets_k->numel) {
        (void)opd_fail(OPD_ERROR_SHAPE, "opd_varlen_attention: offsets_q and offsets_k must have as many elements, but "
                       "have %lld and %lld", (long long)offsets_q->numel, (long long)offsets_k->numel);
        return NULL;
    }
    opd_tensor **const parts = opdi_scope_tensors((int)offsets_q->numel);
    int64_t n = 0;
    for (int64_t i = 0; parts && i + 1 < offsets_q->numel; i++) {
        const int64_t rows = at[i + 1] - at[i];
        if (rows == 0) { continue; }
        parts[n++] = opdi_varlen_text(in, at[i], rows, from[i], from[i + 1] - from[i], left, right, scale);
        if (!opd_ok()) { return NULL; }
    }
    if (parts && n == 0) {                        /* no rows: with the features of value */
        parts[n++] = opdi_varlen_text(in, 0, 0, 0, in[1]->dims[0], -1, -1, scale);
    }
    return parts && opd_ok() ? opd_cat(opd_tensors_of(parts, n), 0) : NULL;
}

//== all texts in one kernel of a GPU ==================================================================================

#if !defined(OPD_NO_OP_SEQUENCE)
/* Returns the operator of the CUDA plug-in for texts of different lengths, or NULL if there is none. */
static opd_op *opdi_varlen_op(void) {
    static opd_op *attention;
    return opdi_cuda_op(&attention, "opd_cuda::attention_texts");
}
/* The inputs are query, key, value, both offsets, the window and scale.  The output is None if there is no kernel. */
static int opdi_varlen_record(opd_context *ctx) {
    static const char *const names[3] = {"left", "right", "scale"};
    opd_value args[8], got[3];
    opd_tensor *saved[8];
    for (int i = 0; i < 8; i++) { args[i] = opd_context_input(ctx, i); }
    if (opd_call_all(opdi_varlen_op(), got, args, 8)) { return -1; }
    if (got[0].tag != OPD_TAG_TENSOR) { return opd_context_return_value(ctx, opd_value_none()); }
    for (int i = 0; i < 5; i++) { saved[i] = args[i].u.t; }
    for (int i = 0; i < 3; i++) {
        saved[5 + i] = got[i].u.t;
        if (opd_context_set(ctx, names[i], args[5 + i])) { return -1; }
    }
    return opd_context_save_for_backward(ctx, saved, 8) ? -1 : opd_context_return(ctx, got[0].u.t);
}
/* Computes the derivatives by operators, so that they can be differentiated.  in: the gradient of the result, query,
   key, value and both offsets. */
static int opdi_varlen_steps(opd_tensor *const *in /*[6]*/, int64_t left, int64_t right, double scale,
                             opd_tensor **results /*[3]*/) {
    const int64_t *const at = opdi_varlen_offsets(in[4], "offsets_q", in[1]->dims[0]);
    const int64_t *const from = at ? opdi_varlen_offsets(in[5], "offsets_k", in[2]->dims[0]) : NULL;
    const int64_t texts = in[4]->numel - 1;
    opd_tensor **const parts = from ? opdi_scope_tensors((int)(3 * texts)) : NULL;
    for (int64_t i = 0; parts && i < texts; i++) {
        const int64_t rows = at[i + 1] - at[i], keys = from[i + 1] - from[i];
        opd_tensor *const mask = left >= 0 || right >= 0
            ? opdi_varlen_window(rows, keys, left, right, opd_tensor_device(in[1])) : NULL;
        opd_tensor *x[4], *grads[3];
        for (int k = 0; k < 4; k++) {
            x[k] = opdi_varlen_heads(in[k], k < 2 ? at[i] : from[i], k < 2 ? rows : keys);
        }
        if (!opd_ok() || opdi_flash_back_steps(x, mask, false, scale, NULL, grads)) { return -1; }
        for (int k = 0; k < 3; k++) { parts[k * texts + i] = opd_transpose(opd_select(grads[k], 0, 0), 0, 1); }
    }
    for (int k = 0; k < 3 && parts; k++) {
        results[k] = opd_to_dtype(opd_cat(opd_tensors_of(parts + k * texts, texts), 0), OPDI_DTYPE(in[1]));
    }
    return parts && opd_ok() ? 0 : -1;
}
static int opdi_varlen_formula(opd_backward_call *bw) {
    static opd_op *back;
    opd_context *const ctx = opd_bw_context(bw);
    opd_tensor *saved[9], *results[3];
    if (!(saved[0] = opd_bw_grad(bw, 0))) { return 0; }
    for (int i = 0; i < 8; i++) { if (!(saved[1 + i] = opd_context_saved(ctx, i))) { return -1; } }
    const opd_value left = opd_context_get(ctx, "left"), right = opd_context_get(ctx, "right"),
        scale = opd_context_get(ctx, "scale");
    if (opd_grad_mode_enabled() || !opdi_only_autocast_follows() || !opdi_in_cuda(saved[0]) ||
        !opdi_in_cuda(saved[1])) {
        if (opdi_varlen_steps(saved, left.u.i, right.u.i, scale.u.d, results)) { return -1; }
    } else {
        opd_op *const op = opdi_cuda_op(&back, "opd_cuda::attention_texts_backward");
        opd_value args[10], got[3];
        for (int i = 0; i < 7; i++) { args[i] = opd_value_tensor(saved[i < 4 ? i : i + 2]); }
        args[7] = left;
        args[8] = right;
        args[9] = scale;
        if (!op || opd_call_all(op, got, args, 10)) { return -1; }
        for (int i = 0; i < 3; i++) { results[i] = got[i].u.t; }
    }
    for (int i = 0; i < 3; i++) {
        if (opd_context_needs_input_grad(ctx, i) && opd_bw_return(bw, i, results[i])) { return -1; }
    }
    return 0;
}
/* Returns whether one kernel may compute all texts.  Offsets in memory of the host are checked there. */
static bool opdi_varlen_fits(opd_tensor *const *in /*[5]*/) {
    const opd_tensor *const q = in[0], *const k = in[1];
    if (q->backend != OPD_CUDA || !opdi_only_autocast_follows() || !opdi_varlen_op() ||
        (opdi_self()->state.autocast && opd_autocast_enabled(OPD_CUDA) &&
         opd_autocast_dtype(OPD_CUDA) != OPDI_DTYPE(q))) { return false; }
    for (int i = 0; i < 5; i++) {
        const opd_tensor *const t = in[i];
        if (i > 2 && t->backend == OPD_CPU && opdi_in_memory(t)) { continue; }
        if (!opdi_in_cuda(t) || t->storage->index != q->storage->index || t->numel == 0) { return false; }
        if (i < 3 && (t->dtype != q->dtype || t->dims[2] != q->dims[2] || opdi_strides(t)[2] != 1)) { return false; }
    }
    return k->dims[1] > 0 && q->dims[1] % k->dims[1] == 0 && in[3]->numel == in[4]->numel && in[3]->numel > 1 &&
        in[3]->numel < 1 << 28 && q->dims[0] < 1 << 30 && k->dims[0] < 1 << 30;
}
/* Computes all texts by one kernel, and sets *result.  in: query, key, value and both offsets.  Returns 1, or -1 and
   sets an error, or 0 if this is not possible. */
static int opdi_varlen_in_cuda(opd_tensor *const *in /*[5]*/, int64_t left, int64_t right, opd_value scale,
                               opd_tensor **result) {
    static const char *const names[2] = {"offsets_q", "offsets_k"};
    opd_autograd_function function;
    opd_value values[8], got;
    if (opdi_varlen_check(in, left, right)) { return -1; }
    for (int i = 3; i < 5; i++) {
        const opd_scalar_type dtype = OPDI_DTYPE(in[i]);
        if (in[i]->ndim != 1 || (dtype != OPD_INT32 && dtype != OPD_INT64)) { return 0; }
    }
    if (!opdi_varlen_fits(in)) { return 0; }
    for (int i = 0; i < 5; i++) {
        opd_tensor *t = in[i];
        if (t->backend == OPD_CPU) {
            if (!opdi_varlen_offsets(t, names[i - 3], in[i - 3]->dims[0])) { return -1; }
            t = opd_to_device(t, opd_tensor_device(in[0]), OPDI_DTYPE(t));
        }
        values[i] = opd_value_tensor(t);
    }
    values[5] = opd_value_int(left);
    values[6] = opd_value_int(right);
    values[7] = opd_value_double(opdi_attention_scale(scale, in[0]));
    memset(&function, 0, sizeof function);
    function.name = "VarlenAttention";
    function.forward = opdi_varlen_record;
    function.backward = opdi_varlen_formula;
    if (!opd_ok() || opd_autograd_apply(&function, values, 8, &got, 1) < 0) { return -1; }
    *result = got.tag == OPD_TAG_TENSOR ? got.u.t : NULL;
    return *result ? 1 : 0;
}
#endif
opd_tensor *opd_varlen_attention(opd_tensor *query, opd_tensor *key, opd_tensor *value, opd_tensor *offsets_q,
                                 opd_tensor *offsets_k, int64_t window_left, int64_t window_right, opd_value scale) {
    opd_tensor *const in[5] = {query, key, value, offsets_q, offsets_k};
    opd_tensor *out = NULL;
    if (!opd_ok() || opdi_null_tensor(query, "opd_varlen_attention") || opdi_null_tensor(key, "opd_varlen_attention") ||
        opdi_null_tensor(value, "opd_varlen_attention") || opdi_null_tensor(offsets_q, "opd_varlen_attention") ||
        opdi_null_tensor(offsets_k, "opd_varlen_attention")) { return NULL; }
    OPD_SCOPE {
        int done = 0;
#if !defined(OPD_NO_OP_SEQUENCE)
        done = opdi_varlen_in_cuda(in, window_left, window_right, scale, &out);
#endif
        if (!done) { out = opdi_varlen_all(in, offsets_q, offsets_k, window_left, window_right, scale); }
        if (out) { out = opd_scope_return(out); }
    }
    return out;
}
