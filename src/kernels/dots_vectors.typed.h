#if defined(OPDI_NEON)
/* Returns the dot product of `depth` elements of a and x, as the sum of eight vectors of sums: the lanes of AVX2's four
   vectors, so that the sum has the same bits. */
OPDI_TARGET static OPDI_T OPDI_WIDE(dot)(int64_t depth, const OPDI_T *a, const OPDI_T *x) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)), AHEAD = 1024 };
    OPDI_V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0}, s4 = {0}, s5 = {0}, s6 = {0}, s7 = {0};
    OPDI_T rest = 0;
    int64_t step = 0;
#define OPDI_DOT_STEP(k) OPDI_ASM_FMA("p" OPDI_ASM, s##k, left[k], right[k]);
    for (; step + 2 * WIDTH <= depth; step += 2 * WIDTH) {
        const OPDI_V *left = (const OPDI_V *)(const void *)(a + step);
        const OPDI_V *right = (const OPDI_V *)(const void *)(x + step);
        for (; step + 8 * WIDTH <= depth; step += 8 * WIDTH, left += 8, right += 8) {
            for (int at = 0; at < 8 * (int)sizeof(OPDI_V); at += 64) { OPDI_PREFETCH((const char *)left + AHEAD + at); }
            OPDI_DOT_STEP(0) OPDI_DOT_STEP(1) OPDI_DOT_STEP(2) OPDI_DOT_STEP(3)
            OPDI_DOT_STEP(4) OPDI_DOT_STEP(5) OPDI_DOT_STEP(6) OPDI_DOT_STEP(7)
        }
        if (step + 2 * WIDTH > depth) { break; }
        OPDI_DOT_STEP(0) OPDI_DOT_STEP(1)
    }
#undef OPDI_DOT_STEP
    for (; step < depth; step++) { rest += a[step] * x[step]; }
    return OPDI_WIDE(lanes_sum)(((s0 + s2) + (s4 + s6)) + ((s1 + s3) + (s5 + s7))) + rest;
}
#else
/* Returns the dot product of `depth` elements of a and x, as the sum of four vectors of sums.  a may be a row of a
   large matrix: it is asked for AHEAD bytes early, as opdi_block_ahead does. */
OPDI_TARGET static OPDI_T OPDI_WIDE(dot)(int64_t depth, const OPDI_T *a, const OPDI_T *x) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)), AHEAD = 1024 };
    typedef OPDI_T H __attribute__((vector_size(sizeof(OPDI_V) / 2)));
    typedef OPDI_T Q __attribute__((vector_size(sizeof(OPDI_V) / 4)));
    OPDI_V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    H half[2];
    Q quarter[2];
    OPDI_T lanes[WIDTH / 4], sum = 0;
    int64_t step = 0;
    for (; step + 4 * WIDTH <= depth; step += 4 * WIDTH) {
        const OPDI_V *v8f = (const OPDI_V *)(const void *)(a + step), *other = (const OPDI_V *)(const void *)(x + step);
        for (int at = 0; at < 4 * (int)sizeof(OPDI_V); at += 64) { OPDI_PREFETCH((const char *)v8f + AHEAD + at); }
        OPDI_ASM_FMA("p" OPDI_ASM, s0, v8f[0], other[0]);
        OPDI_ASM_FMA("p" OPDI_ASM, s1, v8f[1], other[1]);
        OPDI_ASM_FMA("p" OPDI_ASM, s2, v8f[2], other[2]);
        OPDI_ASM_FMA("p" OPDI_ASM, s3, v8f[3], other[3]);
    }
    for (; step + WIDTH <= depth; step += WIDTH) {
        OPDI_ASM_FMA("p" OPDI_ASM, s0, *(const OPDI_V *)(const void *)(a + step),
                     *(const OPDI_V *)(const void *)(x + step));
    }
    s0 = (s0 + s1) + (s2 + s3);
    memcpy(half, &s0, sizeof half);
    half[0] += half[1];
    memcpy(quarter, &half[0], sizeof quarter);
    quarter[0] += quarter[1];
    memcpy(lanes, &quarter[0], sizeof lanes);
    for (int w = WIDTH / 8; w > 0; w /= 2) {
        for (int lane = 0; lane < w; lane++) { lanes[lane] += lanes[lane + w]; }
    }
    for (; step < depth; step++) { sum += a[step] * x[step]; }
    return lanes[0] + sum;
}
#endif
/* The following macros define a function of type opdi_dots_fn, which multiplies rows of OPDI_T by four rows of `type`.
   load(at) returns a vector of the elements at `at`, converted to OPDI_T. */
#define OPDI_DOTS_FROM(i) \
    const OPDI_T *const a##i = (const OPDI_T *)few[i]; \
    OPDI_V c##i##0 = {0}, c##i##1 = {0}, c##i##2 = {0}, c##i##3 = {0};
#define OPDI_DOTS_STEP(i) { \
        const OPDI_V row = *(const OPDI_V *)(const void *)(a##i + step); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##0, row, y0); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##1, row, y1); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##2, row, y2); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##3, row, y3); \
    }
#define OPDI_DOTS_SUM(i) \
    sums[4 * i] = OPDI_WIDE(lanes_sum)(c##i##0); \
    sums[4 * i + 1] = OPDI_WIDE(lanes_sum)(c##i##1); \
    sums[4 * i + 2] = OPDI_WIDE(lanes_sum)(c##i##2); \
    sums[4 * i + 3] = OPDI_WIDE(lanes_sum)(c##i##3); \
    for (int64_t at = step; at < depth; at++) { \
        sums[4 * i] += a##i[at] * OPDI_DOTS_ONE(x0[at]); \
        sums[4 * i + 1] += a##i[at] * OPDI_DOTS_ONE(x1[at]); \
        sums[4 * i + 2] += a##i[at] * OPDI_DOTS_ONE(x2[at]); \
        sums[4 * i + 3] += a##i[at] * OPDI_DOTS_ONE(x3[at]); \
    }
#define OPDI_DOTS_NAMES(type) \
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) }; \
    OPDI_T *const sums = (OPDI_T *)product; \
    int64_t step = 0; \
    const type *const x0 = (const type *)many[0], *const x1 = (const type *)many[1], \
        *const x2 = (const type *)many[2], *const x3 = (const type *)many[3];
#define OPDI_DOTS_TILE(name, ROWS, type, load) \
    OPDI_TARGET static void OPDI_WIDE(name)(int64_t depth, const void *const *few, const void *const *many, \
                                            void *product) { \
        OPDI_DOTS_NAMES(type) \
        ROWS(OPDI_DOTS_FROM) \
        for (; step + WIDTH <= depth; step += WIDTH) { \
            const OPDI_V y0 = load(x0 + step), y1 = load(x1 + step), y2 = load(x2 + step), y3 = load(x3 + step); \
            ROWS(OPDI_DOTS_STEP) \
        } \
        ROWS(OPDI_DOTS_SUM) \
    }
#if OPDI_V_MANY
#define OPDI_DOTS_FEW(M) M(0) M(1) M(2) M(3)
#else
#define OPDI_DOTS_FEW(M) M(0) M(1)
#endif
#define OPDI_DOTS_LOAD(at) (*(const OPDI_V *)(const void *)(at))
#define OPDI_DOTS_ONE(x) (x)
OPDI_DOTS_TILE(dots_few, OPDI_DOTS_FEW, OPDI_T, OPDI_DOTS_LOAD)
#if defined(OPDI_NEON)
#define OPDI_DOTS_ADD(i, k) { c##i##0 += c##k##0; c##i##1 += c##k##1; c##i##2 += c##k##2; c##i##3 += c##k##3; }
/* An opdi_dots_fn that multiplies two rows by four rows.  Two vectors have the lanes of one vector of AVX2, so that the
   sums have the same bits. */
OPDI_TARGET static void OPDI_WIDE(dots_same)(int64_t depth, const void *const *two, const void *const *many,
                                             void *product) {
    OPDI_DOTS_NAMES(OPDI_T)
    const void *const few[4] = {two[0], two[1], (const OPDI_T *)two[0] + WIDTH, (const OPDI_T *)two[1] + WIDTH};
    OPDI_DOTS_FROM(0) OPDI_DOTS_FROM(1) OPDI_DOTS_FROM(2) OPDI_DOTS_FROM(3)
    for (; step + 2 * WIDTH <= depth; step += 2 * WIDTH) {
        OPDI_V y0 = OPDI_DOTS_LOAD(x0 + step), y1 = OPDI_DOTS_LOAD(x1 + step), y2 = OPDI_DOTS_LOAD(x2 + step),
            y3 = OPDI_DOTS_LOAD(x3 + step);
        OPDI_DOTS_STEP(0) OPDI_DOTS_STEP(1)
        y0 = OPDI_DOTS_LOAD(x0 + step + WIDTH);
        y1 = OPDI_DOTS_LOAD(x1 + step + WIDTH);
        y2 = OPDI_DOTS_LOAD(x2 + step + WIDTH);
        y3 = OPDI_DOTS_LOAD(x3 + step + WIDTH);
        OPDI_DOTS_STEP(2) OPDI_DOTS_STEP(3)
    }
    OPDI_DOTS_ADD(0, 2) OPDI_DOTS_ADD(1, 3)
    OPDI_DOTS_SUM(0) OPDI_DOTS_SUM(1)
}
#endif
#if OPDI_LEVEL > 0 && OPDI_BYTES == 4
OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(from_f16)(const uint16_t *at) {
    OPDI_V wide;
    OPDI_ASM_WIDEN(wide, *(const OPDI_V_HALVES *)(const void *)at);
    return wide;
}
#undef OPDI_DOTS_ONE
#define OPDI_DOTS_ONE(x) opdi_f16_to_f32(x)
OPDI_DOTS_TILE(dots_few_f16, OPDI_DOTS_FEW, uint16_t, OPDI_WIDE(from_f16))
OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(from_bf16)(const uint16_t *at) {
    OPDI_V_BITS words;
    OPDI_V wide;
    OPDI_ASM_WIDEN_BF16(words, *(const OPDI_V_HALVES *)(const void *)at);
    memcpy(&wide, &words, sizeof wide);
    return wide;
}
#undef OPDI_DOTS_ONE
#define OPDI_DOTS_ONE(x) opdi_bf16_to_f32(x)
OPDI_DOTS_TILE(dots_few_bf16, OPDI_DOTS_FEW, uint16_t, OPDI_WIDE(from_bf16))
OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(from_half)(const uint16_t *at, bool bf16) {
    return bf16 ? OPDI_WIDE(from_bf16)(at) : OPDI_WIDE(from_f16)(at);
}
/* Computes the dot products of a row of OPDI_T, few[0], with four rows of float16 or (if `bf16` is true) bfloat16.  The
   four rows are read one after another, as memory likes best. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(dots_one)(int64_t depth, const void *const *few, const void *const *many,
                                                 OPDI_T *product, bool bf16) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)), AHEAD = 512 };
    const OPDI_T *const a = (const OPDI_T *)few[0];
    for (int row = 0; row < 4; row++) {
        const uint16_t *const x = (const uint16_t *)many[row];
        OPDI_V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
        int64_t step = 0;
        for (; step + 4 * WIDTH <= depth; step += 4 * WIDTH) {
            const OPDI_V y0 = OPDI_WIDE(from_half)(x + step, bf16), y1 = OPDI_WIDE(from_half)(x + step + WIDTH, bf16);
            const OPDI_V y2 = OPDI_WIDE(from_half)(x + step + 2 * WIDTH, bf16);
            const OPDI_V y3 = OPDI_WIDE(from_half)(x + step + 3 * WIDTH, bf16);
            const OPDI_V *const b = (const OPDI_V *)(const void *)(a + step);
            for (int at = 0; at < 4 * WIDTH; at += 32) { OPDI_PREFETCH(x + step + AHEAD + at); }
            OPDI_ASM_FMA("p" OPDI_ASM, s0, y0, b[0]);
            OPDI_ASM_FMA("p" OPDI_ASM, s1, y1, b[1]);
            OPDI_ASM_FMA("p" OPDI_ASM, s2, y2, b[2]);
            OPDI_ASM_FMA("p" OPDI_ASM, s3, y3, b[3]);
        }
        for (; step + WIDTH <= depth; step += WIDTH) {
            const OPDI_V y0 = OPDI_WIDE(from_half)(x + step, bf16);
            OPDI_ASM_FMA("p" OPDI_ASM, s0, y0, OPDI_DOTS_LOAD(a + step));
        }
        OPDI_T sum = OPDI_WIDE(lanes_sum)((s0 + s1) + (s2 + s3));
        for (; step < depth; step++) { sum += a[step] * (bf16 ? opdi_bf16_to_f32(x[step]) : opdi_f16_to_f32(x[step])); }
        product[row] = sum;
    }
}
OPDI_TARGET static void OPDI_WIDE(dots_one_f16)(int64_t depth, const void *const *few, const void *const *many,
                                                void *product) {
    OPDI_WIDE(dots_one)(depth, few, many, (OPDI_T *)product, false);
}
OPDI_TARGET static void OPDI_WIDE(dots_one_bf16)(int64_t depth, const void *const *few, const void *const *many,
                                                 void *product) {
    OPDI_WIDE(dots_one)(depth, few, many, (OPDI_T *)product, true);
}
#endif
#if OPDI_LEVEL > 0 && OPDI_BYTES == 4
/* Adds x[k] * B[k, j], for all k < depth, to sums[j], for `count` columns of float16 or (if `bf16` is true) bfloat16.
   Rows of B are `rs` elements apart.  `count` is a multiple of two vectors.  For bfloat16, the first of each two
   vectors of sums is for the even columns, the second for the odd columns. */
OPDI_TARGET static void OPDI_WIDE(halves_cols)(int64_t depth, int64_t count, bool bf16, const float *x,
                                               const uint16_t *b, int64_t rs, float *sums) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (int64_t k = 0; k < depth; k += 4) {
        const int64_t rows = OPDI_MIN(4, depth - k);
        for (int64_t j = 0; j < count; j += 2 * WIDTH) {
            OPDI_V *const to = (OPDI_V *)(void *)(sums + j), first = to[0], second = to[1];
            for (int64_t row = 0; row < rows; row++) {
                OPDI_V two[2], factor;
                OPDI_WIDE(longer)(b + (k + row) * rs + j, bf16, two);
                OPDI_ASM_SPLAT(OPDI_ASM, factor, x + k + row);
                OPDI_ASM_FMA("p" OPDI_ASM, first, two[0], factor);
                OPDI_ASM_FMA("p" OPDI_ASM, second, two[1], factor);
            }
            to[0] = first;
            to[1] = second;
        }
    }
}
#endif
#undef OPDI_DOTS_FROM
#undef OPDI_DOTS_STEP
#undef OPDI_DOTS_SUM
#undef OPDI_DOTS_ADD
#undef OPDI_DOTS_NAMES
#undef OPDI_DOTS_TILE
#undef OPDI_DOTS_FEW
#undef OPDI_DOTS_LOAD
#undef OPDI_DOTS_ONE
