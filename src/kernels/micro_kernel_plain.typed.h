/* An opdi_micro_fn: computes a tile of a product of integer matrices, whose elements are as wide as OPDI_T. */
static void OPDI_WIDE(micro_whole)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb,
                                   void *cv, int64_t ldc, int add) {
    const OPDI_BITS *b = (const OPDI_BITS *)bv;
    OPDI_BITS *out_row = (OPDI_BITS *)cv, acc[4][8] = {{0}};
    for (int64_t step = 0; step < kc; step++, b += ldb) {
        for (int row = 0; row < 4; row++) {
            const OPDI_BITS x = ((const OPDI_BITS *)rows[row])[step * csa];
            for (int j = 0; j < 8; j++) { acc[row][j] += x * b[j]; }
        }
    }
    for (int row = 0; row < 4; row++) {
        for (int j = 0; j < 8; j++) {
            out_row[row * ldc + j] = add ? out_row[row * ldc + j] + acc[row][j] : acc[row][j];
        }
    }
}
/* Does the work of an opdi_micro_fn or, if `at` is not NULL, of an opdi_micro_at_fn. */
OPDI_ALWAYS void OPDI_WIDE(micro_any)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb,
                                      const int64_t *at, void *cv, int64_t ldc, int add) {
    OPDI_T *out_row = (OPDI_T *)cv, acc[4][8] = {{0}};
    for (int64_t step = 0; step < kc; step++) {
        const OPDI_T *const b = (const OPDI_T *)bv + (at ? at[step] : step * ldb);
        for (int row = 0; row < 4; row++) {
            OPDI_T x = ((const OPDI_T *)rows[row])[step * csa];
            for (int j = 0; j < 8; j++) { acc[row][j] = OPDI_PLUS_PRODUCT(acc[row][j], x, b[j]); }
        }
    }
    for (int row = 0; row < 4; row++) {
        for (int j = 0; j < 8; j++) {
            out_row[row * ldc + j] = add ? out_row[row * ldc + j] + acc[row][j] : acc[row][j];
        }
    }
}
static void OPDI_WIDE(micro)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb, void *cv,
                             int64_t ldc, int add) {
    OPDI_WIDE(micro_any)(kc, rows, csa, bv, ldb, NULL, cv, ldc, add);
}
static void OPDI_WIDE(micro_at)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, const int64_t *at,
                                void *cv, int64_t ldc, int add) {
    OPDI_WIDE(micro_any)(kc, rows, csa, bv, 0, at, cv, ldc, add);
}
