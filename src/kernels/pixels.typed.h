/* OPDI_PIXEL_ADD adds to c the products of the vector b and the number at p. */
#if OPDI_LEVEL == 2
#define OPDI_PIXEL_ADD(c, b, p) OPDI_ASM_FMA_AT("s", "16", c, b, p)
#else
#define OPDI_PIXEL_ADD(c, b, p) { \
        OPDI_V one; \
        OPDI_ASM_ONE(OPDI_ASM, one, p); \
        OPDI_ASM_FMA_ONE("p" OPDI_ASM, c, one, b); \
    }
#endif
#define OPDI_PIXEL_ROWS(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#define OPDI_PIXEL_BEGIN(i) \
    const float *p##i = rows[i]; \
    OPDI_V c##i = {0}; \
    if (add) { c##i = *(const OPDI_V *)(const void *)to[i]; }
#define OPDI_PIXEL_STEP(i) OPDI_PIXEL_ADD(c##i, b, p##i + at);
#define OPDI_PIXEL_JUMP(i) p##i += jump;
#define OPDI_PIXEL_END(i) *(OPDI_V *)(void *)to[i] = c##i;
/* An opdi_pixels_fn. */
OPDI_TARGET static void OPDI_WIDE(pixels)(int64_t runs, int64_t jump, int64_t depth, int64_t step,
                                          const float *const *rows, const float *second, int64_t ld, float *const *to,
                                          bool add, opdi_ahead ahead) {
    OPDI_PIXEL_ROWS(OPDI_PIXEL_BEGIN)
    for (int64_t run = 0; run < runs; run++) {
        for (int64_t k = 0, at = 0; k < depth; k++, at += step, second += ld, ahead.at += ahead.step) {
            OPDI_PREFETCH(ahead.at);
            const OPDI_V b = *(const OPDI_V *)(const void *)second;
            OPDI_PIXEL_ROWS(OPDI_PIXEL_STEP)
        }
        if (run + 1 < runs) { OPDI_PIXEL_ROWS(OPDI_PIXEL_JUMP) }
    }
    OPDI_PIXEL_ROWS(OPDI_PIXEL_END)
}
#undef OPDI_PIXEL_ADD
#undef OPDI_PIXEL_ROWS
#undef OPDI_PIXEL_BEGIN
#undef OPDI_PIXEL_STEP
#undef OPDI_PIXEL_JUMP
#undef OPDI_PIXEL_END
