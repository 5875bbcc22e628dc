OPDI_ALWAYS OPDI_T OPDI_TYPED(row_term)(OPDI_T v, OPDI_T u, OPDI_T c, int what) {
    return what == OPDI_ROW_SUM ? v - c : what == OPDI_ROW_DOT ? v * (u - c) : (v - c) * (v - c);
}
/* Returns the sum of 16 lanes.  Adds the second half of the lanes to the first half, until one number is left. */
OPDI_ROW_LANES double OPDI_TYPED(row_lanes)(const OPDI_T *lane) {
    double half[8];
    for (int j = 0; j < 8; j++) { half[j] = (double)lane[j] + (double)lane[j + 8]; }
    return ((half[0] + half[4]) + (half[2] + half[6])) + ((half[1] + half[5]) + (half[3] + half[7]));
}
/* Returns the sum over x[0 .. count) of the terms that `what` names (OPDI_ROW_SUM, ...), which may also use y and c.
   Within a block of 1024 elements, adds in 16 lanes of OPDI_T; adds the sums of the blocks in double. */
OPDI_ALWAYS double OPDI_TYPED(row)(const OPDI_T *x, const OPDI_T *y, int64_t count, OPDI_T c, int what) {
    double total = 0;
    int64_t i = 0;
    while (i < count) {
        const int64_t stop = OPDI_MIN(count, i + 1024);
        OPDI_T lane[16];
        for (int j = 0; j < 16; j++) { lane[j] = 0; }
        for (; i + 16 <= stop; i += 16) {
            OPDI_UNROLL
            for (int j = 0; j < 16; j++) { lane[j] += OPDI_TYPED(row_term)(x[i + j], y[i + j], c, what); }
        }
#if defined(__clang__)
        OPDI_T all[16];
        for (int j = 0; j < 16; j++) { all[j] = lane[j]; }
        double sum = OPDI_TYPED(row_lanes)(all);
#else
        double sum = OPDI_TYPED(row_lanes)(lane);
#endif
        for (; i < stop; i++) { sum += (double)OPDI_TYPED(row_term)(x[i], y[i], c, what); }
        total += sum;
    }
    return total;
}
OPDI_ROW_AVX2 static double OPDI_TYPED(row_wide)(const OPDI_T *x, const OPDI_T *y, int64_t count, OPDI_T c, int what) {
    switch (what) {
        case OPDI_ROW_SUM: return OPDI_TYPED(row)(x, y, count, c, OPDI_ROW_SUM);
        case OPDI_ROW_DOT: return OPDI_TYPED(row)(x, y, count, c, OPDI_ROW_DOT);
        default: return OPDI_TYPED(row)(x, y, count, c, OPDI_ROW_DEVIATION);
    }
}
static double OPDI_TYPED(row_of)(const OPDI_T *x, const OPDI_T *y, int64_t count, OPDI_T c, int what) {
    if (OPDI_ROW_WIDE(count)) { return OPDI_TYPED(row_wide)(x, y, count, c, what); }
    return OPDI_TYPED(row)(x, y, count, c, what);
}
static double OPDI_TYPED(row_sum)(const OPDI_T *x, const OPDI_T *y, int64_t count, OPDI_T c) {
    return OPDI_TYPED(row_of)(x, y, count, c, OPDI_ROW_SUM);
}
static double OPDI_TYPED(row_dev)(const OPDI_T *x, const OPDI_T *y, int64_t count, OPDI_T c) {
    return OPDI_TYPED(row_of)(x, y, count, c, OPDI_ROW_DEVIATION);
}
static double OPDI_TYPED(row_dot)(const OPDI_T *x, const OPDI_T *y, int64_t count, OPDI_T c) {
    return OPDI_TYPED(row_of)(x, y, count, c, OPDI_ROW_DOT);
}
/* The operands of row_become, see OPDI_ROW_NORM and the constants that follow it. */
typedef struct OPDI_TYPED(row_ops) {
    OPDI_T *to;
    const OPDI_T *x, *y;
    OPDI_T *z;
    OPDI_T c, k, d, e;
} OPDI_TYPED(row_ops);
#if defined(__clang__)                            /* clang vectorises a plain loop */
#define OPDI_ROW_EACH(statement) {                                                                        \
        for (int64_t j = 0; j < count; j++) { statement; }                                                \
        break;                                                                                            \
    }
#else
#define OPDI_ROW_EACH(statement) {                                                                        \
        int64_t i;                                                                                        \
        OPDI_SIXTEENS(statement)                                                                          \
        for (int64_t j = i; j < count; j++) { statement; }                                                \
        break;                                                                                            \
    }
#endif
OPDI_ALWAYS void OPDI_TYPED(row_become_body)(int what, const OPDI_TYPED(row_ops) *ops, int64_t count) {
    OPDI_T *to = ops->to, *z = ops->z;
    const OPDI_T *x = ops->x, *y = ops->y, c = ops->c, k = ops->k, d = ops->d, e = ops->e;
    switch (what) {
        case OPDI_ROW_NORM: OPDI_ROW_EACH(to[j] = (x[j] - c) * k)
        case OPDI_ROW_AFFINE: OPDI_ROW_EACH(to[j] = (x[j] - c) * k + d)
        case OPDI_ROW_SCALED: OPDI_ROW_EACH(to[j] = ((x[j] - c) * k + d) * y[j])
        case OPDI_ROW_SHIFTED: OPDI_ROW_EACH(to[j] = ((x[j] - c) * k + d) * y[j] + z[j])
        case OPDI_ROW_TIMES: OPDI_ROW_EACH(to[j] = x[j] * y[j])
        case OPDI_ROW_BACK:
            if (y != to) { OPDI_ROW_EACH(to[j] = k * (y[j] - d - (x[j] - c) * e)) }
            OPDI_ROW_EACH(to[j] = k * (to[j] - d - (x[j] - c) * e))
        default: OPDI_ROW_EACH(to[j] += y[j] * ((x[j] - c) * k); z[j] += y[j])
    }
}
#undef OPDI_ROW_EACH
OPDI_ROW_AVX2 static void OPDI_TYPED(row_become_wide)(int what, const OPDI_TYPED(row_ops) *ops, int64_t count) {
    OPDI_TYPED(row_become_body)(what, ops, count);
}
static void OPDI_TYPED(row_become)(int what, const OPDI_TYPED(row_ops) *ops, int64_t count) {
    if (OPDI_ROW_WIDE(count)) { OPDI_TYPED(row_become_wide)(what, ops, count); }
    else { OPDI_TYPED(row_become_body)(what, ops, count); }
}
/* Returns the mean of the rows of a norm: x, x + step, .., each of `count` elements.  Sums the differences from one of
   the elements, so that rounding errors are relative to the spread, not to the mean, which may be much larger.  This
   element is not the first of a row, because the first often differs from the other elements. */
static double OPDI_TYPED(norm_mean)(const OPDI_T *x, int64_t rows, int64_t step, int64_t count) {
    double sum = 0, plain = 0;
    const double all = (double)(rows * count);
    if (!rows || !count) { return 0; }
    const OPDI_T one = x[count - 1 - count / 3];
    for (int64_t i = 0; i < rows; i++) { sum += OPDI_TYPED(row_sum)(x + i * step, x + i * step, count, one); }
    sum = (double)one + sum / all;
    if (sum - sum == 0) { return sum; }
    for (int64_t i = 0; i < rows; i++) { plain += OPDI_TYPED(row_sum)(x + i * step, x + i * step, count, 0); }
    return plain / all;
}
/* Returns the variance.  `off` is the sum of the squares of `count` differences from the rounded mean; `rest` is the
   mean minus the rounded mean. */
static double OPDI_TYPED(norm_var)(double off, double count, double rest) {
    const double var = off / count - rest * rest;
    return var < 0 ? 0 : var;
}
/* Normalises groups [begin, end) of a layer or group norm; ctx is its opdi_norm. */
OPDI_INTERNAL void OPDI_TYPED(norm_forward)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    const int64_t len = norm->per * norm->n;
    const OPDI_T *weight = (const OPDI_T *)norm->weight, *b = (const OPDI_T *)norm->bias;
    OPDI_T wide[OPDI_NORM_ROW];
    for (int64_t row = begin; row < end; row++) {
        const OPDI_T *x = norm->load ? wide : (const OPDI_T *)norm->input + row * len;
        OPDI_T *y = norm->load ? wide : (OPDI_T *)norm->output + row * len;
        if (norm->load) { norm->load(wide, (const uint16_t *)norm->input + row * len, len); }
        const double m = OPDI_TYPED(norm_mean)(x, 1, 0, len);
        const OPDI_T mean = (OPDI_T)m;
        const double rest = m - (double)mean, off = OPDI_TYPED(row_dev)(x, x, len, mean);
        const double var = len ? OPDI_TYPED(norm_var)(off, (double)len, rest) : 0;
        const OPDI_T rstd = (OPDI_T)(1 / sqrt(var + norm->eps));
        const OPDI_T less = rest != 0 ? (OPDI_T)(rest * (double)rstd) : 0;
        ((OPDI_T *)norm->mean)[row] = mean;
        ((OPDI_T *)norm->rstd)[row] = rstd;
        OPDI_TYPED(row_ops) ops = {y, x, weight, (OPDI_T *)(uintptr_t)b, mean, rstd, -less, 0};
        if (norm->layer) {
            OPDI_TYPED(row_become)(!weight ? OPDI_ROW_AFFINE : b ? OPDI_ROW_SHIFTED : OPDI_ROW_SCALED, &ops, len);
            if (b && !weight) { for (int64_t i = 0; i < len; i++) { y[i] += b[i]; } }
            if (norm->load) { norm->store((uint16_t *)norm->output + row * len, wide, len); }
            continue;
        }
        for (int64_t ch = 0; ch < norm->per; ch++, x += norm->n, y += norm->n) {
            const int64_t at = (row * norm->per + ch) % norm->c;
            ops.to = y;
            ops.x = x;
            ops.k = weight ? rstd * weight[at] : rstd;
            ops.d = (b ? b[at] : 0) - (weight ? less * weight[at] : less);
            OPDI_TYPED(row_become)(OPDI_ROW_AFFINE, &ops, norm->n);
        }
    }
}
/* Computes dx = rstd * (weight * grad - mean(weight * grad) - xhat * mean(weight * grad * xhat)) of one row or group,
   where xhat is the normalised x. */
static void OPDI_TYPED(norm_back)(const opdi_norm *norm, int64_t row, const OPDI_T *x, const OPDI_T *grad,
                                  OPDI_T *dx) {
    const int64_t len = norm->per * norm->n;
    const OPDI_T *weight = (const OPDI_T *)norm->weight;
    const OPDI_T mean = ((const OPDI_T *)norm->mean_in)[row], rstd = ((const OPDI_T *)norm->rstd_in)[row];
    OPDI_TYPED(row_ops) ops = {dx, grad, weight, NULL, 0, 1, 0, 0};
    if (!weight) { memcpy(dx, grad, (size_t)len * sizeof *dx); }
    else if (norm->layer) { OPDI_TYPED(row_become)(OPDI_ROW_TIMES, &ops, len); }
    for (int64_t ch = 0; weight && !norm->layer && ch < norm->per; ch++) {
        ops.to = dx + ch * norm->n;
        ops.x = grad + ch * norm->n;
        ops.k = weight[(row * norm->per + ch) % norm->c];
        OPDI_TYPED(row_become)(OPDI_ROW_NORM, &ops, norm->n);
    }
    const double s1 = OPDI_TYPED(row_sum)(dx, dx, len, 0), s2 = OPDI_TYPED(row_dot)(dx, x, len, mean);
    ops.to = dx;
    ops.x = x;
    ops.y = dx;
    ops.c = mean;
    ops.k = rstd;
    ops.d = (OPDI_T)(s1 / (double)len);
    ops.e = (OPDI_T)(s2 * (double)rstd * (double)rstd / (double)len);
    OPDI_TYPED(row_become)(OPDI_ROW_BACK, &ops, len);
}
/* Computes dx for rows or groups [begin, end); ctx is their opdi_norm. */
OPDI_INTERNAL void OPDI_TYPED(norm_backward)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    const int64_t len = norm->per * norm->n;
    for (int64_t row = begin; row < end; row++) {
        OPDI_TYPED(norm_back)(norm, row, (const OPDI_T *)norm->input + row * len,
                              (const OPDI_T *)norm->grad + row * len, (OPDI_T *)norm->dx + row * len);
    }
}
/* Computes the gradients of layer norm for blocks [begin, end), each of OPDI_NORM_ROWS rows: dx unless norm->dx is NULL
   and, unless norm->parts is NULL, the sums of dw and db over each block.  Reads each row once. */
OPDI_INTERNAL void OPDI_TYPED(norm_layer_back)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    const int64_t n = norm->n;
    OPDI_T wide[3][OPDI_NORM_ROW];
    OPDI_TYPED(row_ops) ops = {NULL, NULL, NULL, NULL, 0, 0, 0, 0};
    for (int64_t row = begin * OPDI_NORM_ROWS; row < OPDI_MIN(end * OPDI_NORM_ROWS, norm->a); row++) {
        const OPDI_T *x = norm->load ? wide[0] : (const OPDI_T *)norm->input + row * n,
            *grad = norm->load ? wide[1] : (const OPDI_T *)norm->grad + row * n;
        OPDI_T *dx = norm->load ? wide[2] : norm->dx ? (OPDI_T *)norm->dx + row * n : NULL;
        if (norm->load) {
            norm->load(wide[0], (const uint16_t *)norm->input + row * n, n);
            norm->load(wide[1], (const uint16_t *)norm->grad + row * n, n);
        }
        if (norm->dx) { OPDI_TYPED(norm_back)(norm, row, x, grad, dx); }
        if (norm->dx && norm->load) { norm->store((uint16_t *)norm->dx + row * n, wide[2], n); }
        if (!norm->parts) { continue; }
        if (row % OPDI_NORM_ROWS == 0) {
            ops.to = (OPDI_T *)norm->parts + row / OPDI_NORM_ROWS * 2 * n;
            ops.z = ops.to + n;
            for (int64_t i = 0; i < 2 * n; i++) { ops.to[i] = 0; }
        }
        ops.x = x;
        ops.y = grad;
        ops.c = ((const OPDI_T *)norm->mean_in)[row];
        ops.k = ((const OPDI_T *)norm->rstd_in)[row];
        OPDI_TYPED(row_become)(OPDI_ROW_PARAMS, &ops, n);
    }
}
/* Computes dw and db of layer norm for the block of columns that begins at `from`, by summing the parts of all
   blocks of rows in double. */
static void OPDI_TYPED(norm_columns)(const opdi_norm *norm, int64_t from) {
    const int64_t count = OPDI_MIN((int64_t)OPDI_NORM_COLUMNS, norm->n - from);
    double dw[OPDI_NORM_COLUMNS], db[OPDI_NORM_COLUMNS];
    for (int64_t i = 0; i < count; i++) { dw[i] = db[i] = 0; }
    for (int64_t row = 0; row < norm->a; row += OPDI_NORM_ROWS) {
        const OPDI_T *const part = (const OPDI_T *)norm->parts + row / OPDI_NORM_ROWS * 2 * norm->n + from;
        for (int64_t i = 0; i < count; i++) {
            dw[i] += (double)part[i];
            db[i] += (double)part[norm->n + i];
        }
    }
    for (int64_t i = 0; i < count; i++) {
        if (norm->dw) { ((OPDI_T *)norm->dw)[from + i] = (OPDI_T)dw[i]; }
        if (norm->db) { ((OPDI_T *)norm->db)[from + i] = (OPDI_T)db[i]; }
    }
}
/* Computes dw and db as sums over all rows, in order.  An item of [begin, end) is a block of columns (layer norm) or
   a channel (group norm). */
OPDI_INTERNAL void OPDI_TYPED(norm_params)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    for (int64_t item = begin; item < end; item++) {
        double dw = 0, db = 0;
        if (norm->layer) {
            OPDI_TYPED(norm_columns)(norm, item * OPDI_NORM_COLUMNS);
            continue;
        }
        for (int64_t row = 0; row < norm->a; row++) {
            const int64_t at = row * norm->c + item, q = at / norm->per;
            const OPDI_T *x = (const OPDI_T *)norm->input + at * norm->n,
                *grad = (const OPDI_T *)norm->grad + at * norm->n;
            dw += OPDI_TYPED(row_dot)(grad, x, norm->n,
                                      ((const OPDI_T *)norm->mean_in)[q]) * (double)((const OPDI_T *)norm->rstd_in)[q];
            db += OPDI_TYPED(row_sum)(grad, grad, norm->n, 0);
        }
        if (norm->dw) { ((OPDI_T *)norm->dw)[item] = (OPDI_T)dw; }
        if (norm->db) { ((OPDI_T *)norm->db)[item] = (OPDI_T)db; }
    }
}
/* Normalises plane `at` of a batch norm, which belongs to channel ch.  The mean of the channel is mean + rest. */
static void OPDI_TYPED(norm_plane)(const opdi_norm *norm, int64_t at, int64_t ch, OPDI_T mean, OPDI_T rstd,
                                   double rest) {
    const OPDI_T *weight = (const OPDI_T *)norm->weight, *b = (const OPDI_T *)norm->bias;
    OPDI_TYPED(row_ops) ops = {NULL, NULL, NULL, NULL, mean, 0, 0, 0};
    ops.k = weight ? rstd * weight[ch] : rstd;
    ops.d = (OPDI_T)((b ? (double)b[ch] : 0) - (rest != 0 ? rest * (double)ops.k : 0));
    ops.x = (const OPDI_T *)norm->input + at * norm->n;
    ops.to = (OPDI_T *)norm->output + at * norm->n;
    OPDI_TYPED(row_become)(OPDI_ROW_AFFINE, &ops, norm->n);
}
/* Normalises channels [begin, end) of a batch norm by the statistics of the batch; ctx is its opdi_norm. */
OPDI_INTERNAL void OPDI_TYPED(norm_batch)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    const double count = (double)(norm->a * norm->n);
    for (int64_t ch = begin; ch < end; ch++) {
        const OPDI_T *const first = (const OPDI_T *)norm->input + ch * norm->n;
        const double m = count > 0 ? OPDI_TYPED(norm_mean)(first, norm->a, norm->c * norm->n, norm->n) : (double)NAN;
        const OPDI_T mean = (OPDI_T)m;
        const double rest = m - (double)mean;
        double v = 0;
        for (int64_t row = 0; row < norm->a; row++) {
            const OPDI_T *x = first + row * norm->c * norm->n;
            v += OPDI_TYPED(row_dev)(x, x, norm->n, mean);
        }
        v = OPDI_TYPED(norm_var)(v, count, rest);
        ((double *)norm->db)[ch] = v * count;     /* for running_var */
        const OPDI_T rstd = (OPDI_T)(1 / sqrt(v + norm->eps));
        ((OPDI_T *)norm->mean)[ch] = mean;
        ((OPDI_T *)norm->rstd)[ch] = rstd;
        for (int64_t row = 0; row < norm->a; row++) {
            OPDI_TYPED(norm_plane)(norm, row * norm->c + ch, ch, mean, rstd, rest);
        }
    }
}
/* Normalises planes [begin, end) of a batch norm by the running statistics; ctx is its opdi_norm, whose db has the rstd
   of each channel.  Memory is read and written in order, not channel by channel, so that the processor reads ahead. */
OPDI_INTERNAL void OPDI_TYPED(norm_batch_eval)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    int64_t ch = end > begin ? begin % norm->c : 0;
    for (int64_t at = begin; at < end; at++, ch = ch + 1 < norm->c ? ch + 1 : 0) {
        const OPDI_T mean = ((const OPDI_T *)norm->mean_in)[ch], rstd = (OPDI_T)((const double *)norm->db)[ch];
        OPDI_TYPED(norm_plane)(norm, at, ch, mean, rstd, 0);
    }
}
/* Computes the gradients dw, db and dx of batch norm, unless they are NULL, for channels [begin, end); ctx is the
   opdi_norm.  If norm->eval is set, the statistics are constants. */
OPDI_INTERNAL void OPDI_TYPED(norm_batch_backward)(void *ctx, int64_t begin, int64_t end) {
    const opdi_norm *norm = (const opdi_norm *)ctx;
    const double count = (double)(norm->a * norm->n);
    for (int64_t ch = begin; ch < end; ch++) {
        const OPDI_T mean = ((const OPDI_T *)norm->mean_in)[ch], rstd = ((const OPDI_T *)norm->rstd_in)[ch];
        const OPDI_T f = norm->weight ? ((const OPDI_T *)norm->weight)[ch] * rstd : rstd;
        double s1 = 0, s2 = 0;
        for (int64_t row = 0; row < norm->a; row++) {
            const int64_t at = (row * norm->c + ch) * norm->n;
            s1 += OPDI_TYPED(row_sum)((const OPDI_T *)norm->grad + at, (const OPDI_T *)norm->grad + at, norm->n, 0);
            s2 += OPDI_TYPED(row_dot)((const OPDI_T *)norm->grad + at, (const OPDI_T *)norm->input + at, norm->n, mean);
        }
        if (norm->dw) { ((OPDI_T *)norm->dw)[ch] = (OPDI_T)(s2 * (double)rstd); }
        if (norm->db) { ((OPDI_T *)norm->db)[ch] = (OPDI_T)s1; }
        if (!norm->dx) { continue; }
        for (int64_t row = 0; row < norm->a; row++) {
            const int64_t at = (row * norm->c + ch) * norm->n;
            const OPDI_T *grad = (const OPDI_T *)norm->grad + at;
            OPDI_TYPED(row_ops) ops = {(OPDI_T *)norm->dx + at, grad, grad, NULL, 0, f, 0, 0};
            if (!norm->eval) {
                ops.x = (const OPDI_T *)norm->input + at;
                ops.c = mean;
                ops.d = (OPDI_T)(s1 / count);
                ops.e = (OPDI_T)(s2 * (double)rstd * (double)rstd / count);
            }
            OPDI_TYPED(row_become)(norm->eval ? OPDI_ROW_NORM : OPDI_ROW_BACK, &ops, norm->n);
        }
    }
}
