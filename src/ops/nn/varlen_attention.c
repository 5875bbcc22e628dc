#include "../ops.h"

//== attention of texts of different lengths ===========================================================================
//
//  The rows of several texts lie one after another in one tensor, without padding; offsets say where each text begins.
//  Each text is one call of scaled_dot_product_attention, so that its kernels on all devices, its derivatives and all
//  transforms hold here, too.

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
opd_tensor *opd_varlen_attention(opd_tensor *query, opd_tensor *key, opd_tensor *value, opd_tensor *offsets_q,
                                 opd_tensor *offsets_k, int64_t window_left, int64_t window_right, opd_value scale) {
    opd_tensor *const in[3] = {query, key, value};
    opd_tensor *out = NULL;
    if (!opd_ok() || opdi_null_tensor(query, "opd_varlen_attention") || opdi_null_tensor(key, "opd_varlen_attention") ||
        opdi_null_tensor(value, "opd_varlen_attention") || opdi_null_tensor(offsets_q, "opd_varlen_attention") ||
        opdi_null_tensor(offsets_k, "opd_varlen_attention")) { return NULL; }
    OPD_SCOPE {
        out = opdi_varlen_all(in, offsets_q, offsets_k, window_left, window_right, scale);
        if (out) { out = opd_scope_return(out); }
    }
    return out;
}
