/* Returns the sum of the squares of `count` floats, a multiple of 32.  Computes in double, into which one instruction
   converts half a vector of floats.  NEON has two vectors in place of each one of AVX2, so that the sum has the same
   bits. */
OPDI_TARGET static double OPDI_WIDE(squares_sum)(const float *x, int64_t count) {
    typedef float opdi_floats __attribute__((vector_size(sizeof(OPDI_V) / 2), aligned(4), may_alias));
    OPDI_V a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, next;
#define OPDI_SQUARES_STEP(k) \
        OPDI_ASM_TO_DOUBLE(next, at[k]); \
        OPDI_ASM_FMA("pd", a##k, next, next);
#if defined(OPDI_NEON)
    OPDI_V a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
    for (int64_t i = 0; i < count; i += 16) {
        const opdi_floats *const at = (const opdi_floats *)(const void *)(x + i);
        OPDI_SQUARES_STEP(0) OPDI_SQUARES_STEP(1) OPDI_SQUARES_STEP(2) OPDI_SQUARES_STEP(3)
        OPDI_SQUARES_STEP(4) OPDI_SQUARES_STEP(5) OPDI_SQUARES_STEP(6) OPDI_SQUARES_STEP(7)
    }
    return OPDI_WIDE(lanes_sum)(((a0 + a2) + (a4 + a6)) + ((a1 + a3) + (a5 + a7)));
#else
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(double)) };
    for (int64_t i = 0; i < count; i += 4 * WIDTH) {
        const opdi_floats *const at = (const opdi_floats *)(const void *)(x + i);
        OPDI_SQUARES_STEP(0) OPDI_SQUARES_STEP(1) OPDI_SQUARES_STEP(2) OPDI_SQUARES_STEP(3)
    }
    return OPDI_WIDE(lanes_sum)((a0 + a1) + (a2 + a3));
#endif
#undef OPDI_SQUARES_STEP
}
