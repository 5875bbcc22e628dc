/* Writes the distances (p is 2) of the row x [count] and of each row of y [rows, count] to out. */
OPDI_TARGET static void OPDI_WIDE(distances_2)(const OPDI_T *x, const OPDI_T *y, OPDI_T *out, int64_t rows,
                                               int64_t count) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (int64_t j = 0; j < rows; j++, y += count) {
        OPDI_V first = {0}, second = {0};
        OPDI_T rest = 0;
        int64_t i = 0;
        for (; i + 2 * WIDTH <= count; i += 2 * WIDTH) {
            const OPDI_V *const a = (const OPDI_V *)(const void *)(x + i);
            const OPDI_V *const b = (const OPDI_V *)(const void *)(y + i);
            const OPDI_V v = a[0] - b[0], w = a[1] - b[1];
            OPDI_ASM_FMA("p" OPDI_ASM, first, v, v);
            OPDI_ASM_FMA("p" OPDI_ASM, second, w, w);
        }
        for (; i + WIDTH <= count; i += WIDTH) {
            const OPDI_V v = *(const OPDI_V *)(const void *)(x + i) - *(const OPDI_V *)(const void *)(y + i);
            OPDI_ASM_FMA("p" OPDI_ASM, first, v, v);
        }
        for (; i < count; i++) { rest += (x[i] - y[i]) * (x[i] - y[i]); }
        out[j] = OPDI_FN(sqrt)(OPDI_WIDE(lanes_sum)(first + second) + rest);
    }
}
