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
static void OPDI_WIDE(micro)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb, void *cv,
                             int64_t ldc, int add) {
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv, acc[4][8] = {{0}};
    for (int64_t step = 0; step < kc; step++, b += ldb) {
        for (int row = 0; row < 4; row++) {
            OPDI_T x = ((const OPDI_T *)rows[row])[step * csa];
            for (int j = 0; j < 8; j++) { acc[row][j] += x * b[j]; }
        }
    }
    for (int row = 0; row < 4; row++) {
        for (int j = 0; j < 8; j++) {
            out_row[row * ldc + j] = add ? out_row[row * ldc + j] + acc[row][j] : acc[row][j];
        }
    }
}
