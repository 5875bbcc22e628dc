/* Writes the distances (p is 2) of the row x [count] and of each row of y [rows, count] to out.  NEON has two vectors
   in place of each one of AVX2, so that the distances have the same bits. */
#define OPDI_DISTANCE_STEP(sum, k) { \
        const OPDI_V less = a[k] - b[k]; \
        OPDI_ASM_FMA("p" OPDI_ASM, sum, less, less); \
    }
OPDI_TARGET static void OPDI_WIDE(distances_2)(const OPDI_T *x, const OPDI_T *y, OPDI_T *out, int64_t rows,
                                               int64_t count) {
#if defined(OPDI_NEON)
    enum { WIDTH = 2 * (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
#else
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
#endif
    for (int64_t j = 0; j < rows; j++, y += count) {
        OPDI_V first = {0}, second = {0};
        OPDI_T rest = 0;
        int64_t i = 0;
#if defined(OPDI_NEON)
        OPDI_V high = {0}, other = {0};
#endif
        for (; i + WIDTH <= count; i += WIDTH) {
            const OPDI_V *const a = (const OPDI_V *)(const void *)(x + i);
            const OPDI_V *const b = (const OPDI_V *)(const void *)(y + i);
            const bool two = i + 2 * WIDTH <= count;
#if defined(OPDI_NEON)
            OPDI_DISTANCE_STEP(first, 0) OPDI_DISTANCE_STEP(high, 1)
            if (two) { OPDI_DISTANCE_STEP(second, 2) OPDI_DISTANCE_STEP(other, 3) }
#else
            OPDI_DISTANCE_STEP(first, 0)
            if (two) { OPDI_DISTANCE_STEP(second, 1) }
#endif
            i += two ? WIDTH : 0;
        }
        for (; i < count; i++) { rest += (x[i] - y[i]) * (x[i] - y[i]); }
        first += second;
#if defined(OPDI_NEON)
        first += high + other;
#endif
        out[j] = OPDI_FN(sqrt)(OPDI_WIDE(lanes_sum)(first) + rest);
    }
}
#undef OPDI_DISTANCE_STEP
