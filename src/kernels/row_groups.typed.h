/* Adds the product of x and B to y, for `rows` rows of y, which are ys elements apart, and `count` columns.  Element
   (i, k) of x is x[k * rows + i].  Rows of B are contiguous and bs elements apart; eight of them are read at a time. */
OPDI_TARGET static void OPDI_WIDE(row_groups)(int64_t rows, int64_t count, int64_t depth, const OPDI_T *x,
                                              const OPDI_T *b, int64_t bs, OPDI_T *y, int64_t ys) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const int64_t whole = count - count % WIDTH;
    int64_t k = 0;
    for (; k + 8 <= depth; k += 8, b += 8 * bs, x += 8 * rows) {
        for (int64_t j = 0; j < whole; j += WIDTH) {
            OPDI_V w[8];
            for (int step = 0; step < 8; step++) { w[step] = *(const OPDI_V *)(const void *)(b + step * bs + j); }
            for (int64_t i = 0; i < rows; i++) {
                OPDI_V *const to = (OPDI_V *)(void *)(y + i * ys + j), factor;
                OPDI_V sum = *to;
                for (int step = 0; step < 8; step++) {
                    OPDI_ASM_SPLAT(OPDI_ASM, factor, x + step * rows + i);
                    OPDI_ASM_FMA("p" OPDI_ASM, sum, w[step], factor);
                }
                *to = sum;
            }
        }
        for (int64_t j = whole; j < count; j++) {
            for (int64_t i = 0; i < rows; i++) {
                for (int step = 0; step < 8; step++) { y[i * ys + j] += x[step * rows + i] * b[step * bs + j]; }
            }
        }
    }
    for (; k < depth; k++, b += bs, x += rows) {
        for (int64_t i = 0; i < rows; i++) {
            for (int64_t j = 0; j < count; j++) { y[i * ys + j] += x[i] * b[j]; }
        }
    }
}
