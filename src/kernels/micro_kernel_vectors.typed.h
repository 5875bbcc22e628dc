#define OPDI_ROW_INIT(i) OPDI_ROW_FROM(i) OPDI_V d##i = {0};
#define OPDI_ROW_FROM(i) \
    const OPDI_T *p##i = (const OPDI_T *)rows[i]; \
    OPDI_V c##i = {0};
#define OPDI_ROW_STEP(i) { \
        OPDI_V v8f; \
        OPDI_ASM_ONE(OPDI_ASM, v8f, p##i + at); \
        OPDI_ASM_FMA_ONE("p" OPDI_ASM, c##i, v8f, b0); \
        OPDI_ASM_FMA_ONE("p" OPDI_ASM, d##i, v8f, b1); \
    }
#define OPDI_ROW_PAIRS(i) { \
        OPDI_V v8f; \
        OPDI_ASM_SPLAT(OPDI_ASM, v8f, p##i + at); \
        OPDI_ASM_PAIRS(c##i, v8f, b0); \
        OPDI_ASM_PAIRS(d##i, v8f, b1); \
    }
#if OPDI_LEVEL == 2 && OPDI_BYTES == 4
#define OPDI_ROW_NARROW(i) OPDI_ASM_FMA_AT(OPDI_ASM, "16", c##i, b0, p##i + at);
#elif OPDI_LEVEL == 2
#define OPDI_ROW_NARROW(i) OPDI_ASM_FMA_AT(OPDI_ASM, "8", c##i, b0, p##i + at);
#else
#define OPDI_ROW_NARROW(i) { \
        OPDI_V v8f; \
        OPDI_ASM_ONE(OPDI_ASM, v8f, p##i + at); \
        OPDI_ASM_FMA_ONE("p" OPDI_ASM, c##i, v8f, b0); \
    }
#endif
#define OPDI_ROW_PUT(i) { \
        OPDI_V *v8f = (OPDI_V *)(void *)(out_row + i * ldc); \
        if (add) { c##i += *v8f; } \
        *v8f = c##i; \
    }
#define OPDI_ROW_STORE(i) { \
        OPDI_V *v8f = (OPDI_V *)(void *)(out_row + i * ldc), *q1 = (OPDI_V *)(void *)(out_row + i * ldc + WIDTH); \
        if (add) { c##i += *v8f; d##i += *q1; } \
        *v8f = c##i; \
        *q1 = d##i; \
    }
#if OPDI_V_MANY
#define OPDI_TILE_ROWS(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#else
#define OPDI_TILE_ROWS(M) M(0) M(1) M(2) M(3) M(4) M(5)
#endif
OPDI_TARGET static void OPDI_WIDE(micro)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb,
                                         void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_INIT)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b, b1 = *(const OPDI_V *)(const void *)(b + WIDTH);
        OPDI_TILE_ROWS(OPDI_ROW_STEP)
    }
    OPDI_TILE_ROWS(OPDI_ROW_STORE)
}
#if OPDI_LEVEL == 1 && defined(OPDI_X86)
/* An opdi_micro_fn: computes the first four rows of a tile. */
OPDI_TARGET static void OPDI_WIDE(micro_few)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                             int64_t ldb, void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_ROW_INIT(0) OPDI_ROW_INIT(1) OPDI_ROW_INIT(2) OPDI_ROW_INIT(3)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b, b1 = *(const OPDI_V *)(const void *)(b + WIDTH);
        OPDI_ROW_STEP(0) OPDI_ROW_STEP(1) OPDI_ROW_STEP(2) OPDI_ROW_STEP(3)
    }
    OPDI_ROW_STORE(0) OPDI_ROW_STORE(1) OPDI_ROW_STORE(2) OPDI_ROW_STORE(3)
}
#endif
/* An opdi_micro_at_fn. */
OPDI_TARGET static void OPDI_WIDE(micro_at)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                            const int64_t *from, void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_INIT)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa) {
        const OPDI_T *const b = (const OPDI_T *)bv + from[step];
        OPDI_V b0 = *(const OPDI_V *)(const void *)b, b1 = *(const OPDI_V *)(const void *)(b + WIDTH);
        OPDI_TILE_ROWS(OPDI_ROW_STEP)
    }
    OPDI_TILE_ROWS(OPDI_ROW_STORE)
}
#if OPDI_LEVEL == 2
/* An opdi_micro_fn: computes a tile that is only one vector wide. */
OPDI_TARGET static void OPDI_WIDE(micro_narrow)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                                int64_t ldb, void *cv, int64_t ldc, int add) {
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_FROM)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b;
        OPDI_TILE_ROWS(OPDI_ROW_NARROW)
    }
    OPDI_TILE_ROWS(OPDI_ROW_PUT)
}
#endif
#if OPDI_LEVEL == 2 && OPDI_BYTES == 4 && defined(OPDI_ASM_PAIRS)
/* An opdi_micro_fn that computes a float32 tile of a product of bfloat16 matrices.  Each 32-bit word of the operands
   has two consecutive steps of k. */
OPDI_TARGET OPDI_INTERNAL void OPDI_WIDE(micro_pairs)(int64_t kc, const void *const *rows, int64_t csa,
                                                      const void *bv, int64_t ldb, void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_INIT)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b, b1 = *(const OPDI_V *)(const void *)(b + WIDTH);
        OPDI_TILE_ROWS(OPDI_ROW_PAIRS)
    }
    OPDI_TILE_ROWS(OPDI_ROW_STORE)
}
#endif
/* Returns b times the integer at p.  `brief` (constant): both are int64 that fit into 32 bits, so that one instruction
   multiplies them exactly. */
OPDI_TARGET OPDI_ALWAYS OPDI_V_BITS OPDI_WIDE(whole_product)(OPDI_V_BITS b, const OPDI_BITS *p, bool brief) {
#if OPDI_BYTES == 8 && defined(OPDI_X86)
    if (brief) {
        OPDI_V_BITS product;
        OPDI_ASM_SPLAT("d", product, p);
        __asm__("vpmuldq {%1, %0, %0|%0, %0, %1}" : "+v"(product) : "v"(b));
        return product;
    }
#endif
    (void)brief;
    return b * *p;
}
/* Computes a tile, with four rows, of a product of integer matrices, whose elements are as wide as OPDI_T. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(whole_tile)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                                   int64_t ldb, void *cv, int64_t ldc, int add, bool brief) {
    enum { WIDTH = (int)(sizeof(OPDI_V_BITS) / sizeof(OPDI_BITS)) };
    const OPDI_BITS *const *from = (const OPDI_BITS *const *)(const void *)rows;
    const OPDI_BITS *p0 = from[0], *p1 = from[1], *p2 = from[2], *p3 = from[3], *b = (const OPDI_BITS *)bv;
    OPDI_V_BITS sums[8] = {{0}}, *to0 = (OPDI_V_BITS *)cv;
    OPDI_V_BITS *to1 = (OPDI_V_BITS *)(void *)((OPDI_BITS *)cv + ldc);
    OPDI_V_BITS *to2 = (OPDI_V_BITS *)(void *)((OPDI_BITS *)cv + 2 * ldc);
    OPDI_V_BITS *to3 = (OPDI_V_BITS *)(void *)((OPDI_BITS *)cv + 3 * ldc);
    for (int64_t step = 0; step < kc; step++, p0 += csa, p1 += csa, p2 += csa, p3 += csa, b += ldb) {
        const OPDI_V_BITS b0 = *(const OPDI_V_BITS *)(const void *)b;
        const OPDI_V_BITS b1 = *(const OPDI_V_BITS *)(const void *)(b + WIDTH);
        sums[0] += OPDI_WIDE(whole_product)(b0, p0, brief);
        sums[1] += OPDI_WIDE(whole_product)(b1, p0, brief);
        sums[2] += OPDI_WIDE(whole_product)(b0, p1, brief);
        sums[3] += OPDI_WIDE(whole_product)(b1, p1, brief);
        sums[4] += OPDI_WIDE(whole_product)(b0, p2, brief);
        sums[5] += OPDI_WIDE(whole_product)(b1, p2, brief);
        sums[6] += OPDI_WIDE(whole_product)(b0, p3, brief);
        sums[7] += OPDI_WIDE(whole_product)(b1, p3, brief);
    }
    if (add) {
        sums[0] += to0[0];
        sums[1] += to0[1];
        sums[2] += to1[0];
        sums[3] += to1[1];
        sums[4] += to2[0];
        sums[5] += to2[1];
        sums[6] += to3[0];
        sums[7] += to3[1];
    }
    to0[0] = sums[0];
    to0[1] = sums[1];
    to1[0] = sums[2];
    to1[1] = sums[3];
    to2[0] = sums[4];
    to2[1] = sums[5];
    to3[0] = sums[6];
    to3[1] = sums[7];
}
/* An opdi_micro_fn for integers. */
OPDI_TARGET static void OPDI_WIDE(micro_whole)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                               int64_t ldb, void *cv, int64_t ldc, int add) {
    OPDI_WIDE(whole_tile)(kc, rows, csa, bv, ldb, cv, ldc, add, false);
}
#if OPDI_BYTES == 8 && defined(OPDI_X86)
/* An opdi_micro_fn for int64 that fit into 32 bits. */
OPDI_TARGET static void OPDI_WIDE(micro_brief)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                               int64_t ldb, void *cv, int64_t ldc, int add) {
    OPDI_WIDE(whole_tile)(kc, rows, csa, bv, ldb, cv, ldc, add, true);
}
#endif
#if OPDI_LEVEL == 1
/* Computes the product of opdi_gemm_small, four rows at a time, with tiles that are one vector wide. */
OPDI_TARGET OPDI_INTERNAL void OPDI_WIDE(gemm_small)(int64_t rows, int64_t count, int64_t depth,
                                                     const opdi_gemm_in *left, const opdi_gemm_in *right, int add,
                                                     void *cv, int64_t ldc) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *const a = (const OPDI_T *)left->data;
    const int64_t csa = left->cs, ldb = right->rs;
    for (int64_t j = 0; j < count; j += WIDTH) {
        int64_t i = 0;
        for (; i + 4 <= rows; i += 4) {
            const OPDI_T *b = (const OPDI_T *)right->data + j, *const p0 = a + i * left->rs, *const p1 = p0 + left->rs,
                *const p2 = p1 + left->rs, *const p3 = p2 + left->rs;
            OPDI_T *const out_row = (OPDI_T *)cv + i * ldc + j;
            OPDI_V c0 = {0}, c1 = {0}, c2 = {0}, c3 = {0};
            for (int64_t step = 0, at = 0; step < depth; step++, at += csa, b += ldb) {
                const OPDI_V b0 = *(const OPDI_V *)(const void *)b;
                OPDI_ROW_NARROW(0) OPDI_ROW_NARROW(1) OPDI_ROW_NARROW(2) OPDI_ROW_NARROW(3)
            }
            OPDI_ROW_PUT(0) OPDI_ROW_PUT(1) OPDI_ROW_PUT(2) OPDI_ROW_PUT(3)
        }
        for (; i < rows; i++) {
            const OPDI_T *b = (const OPDI_T *)right->data + j, *const p0 = a + i * left->rs;
            OPDI_T *const out_row = (OPDI_T *)cv + i * ldc + j;
            OPDI_V c0 = {0};
            for (int64_t step = 0, at = 0; step < depth; step++, at += csa, b += ldb) {
                const OPDI_V b0 = *(const OPDI_V *)(const void *)b;
                OPDI_ROW_NARROW(0)
            }
            OPDI_ROW_PUT(0)
        }
    }
}
#endif
#undef OPDI_ROW_INIT
#undef OPDI_ROW_FROM
#undef OPDI_ROW_NARROW
#undef OPDI_ROW_PUT
#undef OPDI_ROW_PAIRS
#undef OPDI_ROW_STEP
#undef OPDI_ROW_STORE
#undef OPDI_TILE_ROWS
