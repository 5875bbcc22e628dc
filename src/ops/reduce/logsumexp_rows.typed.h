/* Returns the largest of `top` and the elements of x [count] that are not +infinity or NaN. */
static double OPDI_TYPED(finite_max)(const OPDI_T *x, int64_t count, OPDI_T top) {
    OPDI_T a[16];
    int64_t i = 0;
    for (int j = 0; j < 16; j++) { a[j] = top; }
    for (; i + 16 <= count; i += 16) {
        OPDI_UNROLL
        for (int j = 0; j < 16; j++) {
            const OPDI_T v = x[i + j];
            a[j] = ((v > a[j]) & (v < (OPDI_T)HUGE_VAL)) ? v : a[j];
        }
    }
    for (; i < count; i++) { a[0] = x[i] > a[0] && x[i] < (OPDI_T)HUGE_VAL ? x[i] : a[0]; }
    for (int j = 1; j < 16; j++) { a[0] = a[j] > a[0] ? a[j] : a[0]; }
    return (double)a[0];
}
/* Returns sum plus all elements of x [count]. */
static double OPDI_TYPED(fold_added)(double sum, const OPDI_T *x, int64_t count) {
    opdi_folded folded = {0, 0, 0, 0};
    folded.f = sum;
    OPDI_TYPED(fold_sum)(&folded, x, count, 0, NULL);
    return folded.f;
}
/* Folds `count` elements of a logsumexp: folded->f is the largest finite element so far, and folded->g the sum of exp(x
   - folded->f).  Infinities and NaN make folded->g infinite or NaN. */
static void OPDI_TYPED(fold_lse)(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                                 const opdi_reduce *reduce) {
    const OPDI_T *x = (const OPDI_T *)px;
    OPDI_T block[256];
    int64_t i, rows;
    (void)at;
    (void)reduce;
    for (int64_t k = 0; k < count; k += rows) {
        double top = folded->f;
        rows = OPDI_MIN(count - k, (int64_t)256);
        top = OPDI_TYPED(finite_max)(x + k, rows, (OPDI_T)top);
        if (top > folded->f) {
            folded->g = folded->f > -OPDI_INF ? folded->g * opdi_exp_f64(folded->f - top) : folded->g;
            folded->f = top;
        }
        double shift = folded->f > -OPDI_INF ? folded->f : 0;
        for (i = 0; i + 16 <= rows; i += 16) {
            for (int j = 0; j < 16; j++) { block[i + j] = x[k + i + j] - (OPDI_T)shift; }
        }
        for (; i < rows; i++) { block[i] = x[k + i] - (OPDI_T)shift; }
        OPDI_TYPED(exps)(block, rows);
        folded->g = OPDI_TYPED(fold_added)(folded->g, block, rows);
    }
}
/* Does the work of fold_var for `count` rows that lie side by side. */
OPDI_ALWAYS void OPDI_TYPED(side_var_body)(OPDI_SIDE_ARGS) {
    double sum[OPDI_COLUMNS_TRANSPOSED] = {0}, off[OPDI_COLUMNS_TRANSPOSED] = {0}, mean[OPDI_COLUMNS_TRANSPOSED],
        shift[OPDI_COLUMNS_TRANSPOSED] = {0};
    int64_t i;
    for (int64_t j = 0; sizeof(OPDI_T) == 8 && depth && j < count; j++) {
        opdi_var_begin(&foldeds[j], (double)((const OPDI_T *)px)[j]);
        shift[j] = opdi_var_shift(&foldeds[j]);
    }
    for (int64_t k = 0; k < depth; k++) {
        const OPDI_T *x = (const OPDI_T *)px + k * OPDI_COLUMNS_TRANSPOSED;
        OPDI_COLUMN_EACH(sum[j] += (double)x[j] - (sizeof(OPDI_T) == 8 ? shift[j] : 0))
    }
    for (int64_t j = 0; j < count; j++) { mean[j] = sum[j] / (double)depth; }
    for (int64_t k = 0; k < depth; k++) {
        const OPDI_T *x = (const OPDI_T *)px + k * OPDI_COLUMNS_TRANSPOSED;
        OPDI_COLUMN_EACH(const double d = (double)x[j] - (sizeof(OPDI_T) == 8 ? shift[j] : 0) - mean[j];
                         off[j] += d * d)
    }
    for (int64_t j = 0; j < count; j++) {
        opdi_folded piece = {0, 0, foldeds[j].i, 0};
        piece.f = mean[j];
        piece.g = off[j];
        piece.n = depth;
        opdi_join_var(&foldeds[j], &piece, NULL);
    }
}
OPDI_SIDE_WIDE(side_var)
/* Does the work of fold_lse for `count` rows that lie side by side. */
OPDI_ALWAYS void OPDI_TYPED(side_lse_body)(OPDI_SIDE_ARGS) {
    OPDI_T top[OPDI_COLUMNS_TRANSPOSED], block[OPDI_COLUMNS_TRANSPOSED];
    double sum[OPDI_COLUMNS_TRANSPOSED] = {0};
    int64_t i;
    for (int64_t j = 0; j < count; j++) { top[j] = (OPDI_T)foldeds[j].f; }
    for (int64_t k = 0; k < depth; k++) {
        const OPDI_T *x = (const OPDI_T *)px + k * OPDI_COLUMNS_TRANSPOSED;
        OPDI_COLUMN_EACH(top[j] = ((x[j] > top[j]) & (x[j] < (OPDI_T)HUGE_VAL)) ? x[j] : top[j])
    }
    for (int64_t j = 0; j < count; j++) {
        opdi_folded *folded = &foldeds[j];
        if ((double)top[j] > folded->f) {
            folded->g = folded->f > -OPDI_INF ? folded->g * opdi_exp_f64(folded->f - (double)top[j]) : folded->g;
            folded->f = (double)top[j];
        }
        top[j] = folded->f > -OPDI_INF ? top[j] : 0;
    }
    for (int64_t k = 0; k < depth; k++) {
        const OPDI_T *x = (const OPDI_T *)px + k * OPDI_COLUMNS_TRANSPOSED;
        OPDI_COLUMN_EACH(block[j] = x[j] - top[j])
        OPDI_TYPED(exps)(block, count);
        OPDI_COLUMN_EACH(sum[j] += (double)block[j])
    }
    for (int64_t j = 0; j < count; j++) { foldeds[j].g += sum[j]; }
}
OPDI_SIDE_WIDE(side_lse)
