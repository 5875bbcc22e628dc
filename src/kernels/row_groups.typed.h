/* Does the work of row_groups for at most 8 steps of the depth and at most one vector of columns: adds the product of
   `steps` columns of x and `steps` rows of B to y, in `width` columns. */
OPDI_TARGET static void OPDI_WIDE(row_groups_rest)(int64_t rows, int64_t steps, int64_t width, const OPDI_T *x,
                                                   const OPDI_T *b, int64_t bs, OPDI_T *y, int64_t ys) {
    const size_t bytes = (size_t)width * sizeof(OPDI_T);
    OPDI_V w[8] = {{0}};
    for (int64_t step = 0; step < steps; step++) { memcpy(&w[step], b + step * bs, bytes); }
    for (int64_t i = 0; i < rows; i++) {
        OPDI_V factor, sum = {0};
        memcpy(&sum, y + i * ys, bytes);
        for (int64_t step = 0; step < steps; step++) {
            OPDI_ASM_SPLAT(OPDI_ASM, factor, x + step * rows + i);
            OPDI_ASM_FMA("p" OPDI_ASM, sum, w[step], factor);
        }
        memcpy(y + i * ys, &sum, bytes);
    }
}
/* Adds the product of x [rows, depth] and B [depth, count] to y, whose rows are ys elements apart.  Element (i, k) of x
   is x[k * rows + i].  Rows of B are contiguous and bs elements apart; eight of them are read at a time. */
OPDI_TARGET static void OPDI_WIDE(row_groups)(int64_t rows, int64_t count, int64_t depth, const OPDI_T *x,
                                              const OPDI_T *b, int64_t bs, OPDI_T *y, int64_t ys) {
    const int64_t wide = (int64_t)(sizeof(OPDI_V) / sizeof(OPDI_T));
    for (int64_t k = 0; k < depth; k += 8, b += 8 * bs, x += 8 * rows) {
        const int64_t steps = OPDI_MIN(8, depth - k), whole = steps < 8 ? 0 : count - count % wide;
        for (int64_t j = 0; j < whole; j += wide) {
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
        for (int64_t j = whole; j < count; j += wide) {
            OPDI_WIDE(row_groups_rest)(rows, steps, OPDI_MIN(wide, count - j), x, b + j, bs, y + j, ys);
        }
    }
}
