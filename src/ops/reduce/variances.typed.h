/* Adds the elements of x [count] to the state of a variance, in blocks of 1024 elements.  For each block, first
   computes the mean. */
OPDI_ALWAYS void OPDI_TYPED(fold_var_body)(OPDI_FOLD_ARGS) {
    const OPDI_T *x = (const OPDI_T *)px;
    int64_t i, rows;
    if (sizeof(OPDI_T) == 8 && count) { opdi_var_begin(folded, (double)x[0]); }
    const double shift = sizeof(OPDI_T) == 8 ? opdi_var_shift(folded) : 0;
    for (int64_t k = 0; k < count; k += rows) {
        opdi_folded piece = {0, 0, folded->i, 0};
        double a[16] = {0};
        rows = OPDI_MIN(count - k, (int64_t)1024);
        for (i = 0; i + 16 <= rows; i += 16) {
            OPDI_UNROLL
            for (int j = 0; j < 16; j++) { a[j] += (double)x[k + i + j] - shift; }
        }
        for (; i < rows; i++) { a[0] += (double)x[k + i] - shift; }
        for (int j = 1; j < 16; j++) { a[0] += a[j]; }
        piece.n = rows;
        piece.f = a[0] / (double)rows;
        const double mean = piece.f;
        for (int j = 0; j < 16; j++) { a[j] = 0; }
        for (i = 0; i + 16 <= rows; i += 16) {
            OPDI_UNROLL
            for (int j = 0; j < 16; j++) {
                const double d = (double)x[k + i + j] - shift - mean;
                a[j] += d * d;
            }
        }
        for (; i < rows; i++) {
            const double d = (double)x[k + i] - shift - mean;
            a[0] += d * d;
        }
        for (int j = 1; j < 16; j++) { a[0] += a[j]; }
        piece.g = a[0];
        opdi_join_var(folded, &piece, reduce);
    }
    (void)at;
}
#if defined(OPDI_X86)
OPDI_AVX2 static void OPDI_TYPED(fold_var_avx2)(OPDI_FOLD_ARGS) {
    OPDI_TYPED(fold_var_body)(folded, px, count, at, reduce);
}
#endif
static void OPDI_TYPED(fold_var)(OPDI_FOLD_ARGS) {
#if defined(OPDI_X86)
    if (count >= 32 && opdi_cpu_level() > 0) {
        OPDI_TYPED(fold_var_avx2)(folded, px, count, at, reduce);
        return;
    }
#endif
    OPDI_TYPED(fold_var_body)(folded, px, count, at, reduce);
}
