/* Returns x with each float rounded to the nearest bfloat16, which is in the upper 16 bits of the element. */
OPDI_TARGET OPDI_ALWAYS OPDI_V_BITS OPDI_WIDE(nearest)(OPDI_V x) {
    OPDI_V_BITS bits;
    memcpy(&bits, &x, sizeof bits);
    const OPDI_V_BITS nan = (OPDI_V_BITS)((OPDI_V_INT)(bits & 0x7fffffffu) > 0x7f800000);
    return ((bits + 0x7fffu + ((bits >> 16) & 1u)) & ~nan) | ((bits | 0x400000u) & nan);
}
/* Converts two vectors to 16-bit floats, rounded to nearest, and writes them to `at` in the order in which
   OPDI_WIDE(longer) reads them. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(shorter)(const OPDI_V *two, bool bf16, uint16_t *at) {
    if (!bf16) {
        OPDI_V_HALVES *const halves = (OPDI_V_HALVES *)(void *)at;
        OPDI_ASM_NARROW(halves[0], two[0]);
        OPDI_ASM_NARROW(halves[1], two[1]);
        return;
    }
    const OPDI_V_BITS words = (OPDI_WIDE(nearest)(two[0]) >> 16) | (OPDI_WIDE(nearest)(two[1]) & 0xffff0000u);
    memcpy(at, &words, sizeof words);
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(half_loop_two)(int what, bool bf16, uint16_t *to, const uint16_t *x,
                                                      const uint16_t *y) {
    OPDI_V a[2], b[2];
    OPDI_WIDE(longer)(x, bf16, a);
    OPDI_WIDE(longer)(y, bf16, b);
    for (int i = 0; i < 2; i++) {
        if (what == OPDI_HALF_MUL) { a[i] *= b[i]; }
        else if (what == OPDI_HALF_ADD) { a[i] += b[i]; }
        else { a[i] -= b[i]; }
    }
    OPDI_WIDE(shorter)(a, bf16, to);
}
OPDI_TARGET static int64_t OPDI_WIDE(half_loop)(int what, bool bf16, uint16_t *to, const uint16_t *x, const uint16_t *y,
                                                int64_t count) {
    enum { STEP = 2 * (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    int64_t j = 0;
    if (bf16) { for (; j + STEP <= count; j += STEP) { OPDI_WIDE(half_loop_two)(what, true, to + j, x + j, y + j); } }
    else { for (; j + STEP <= count; j += STEP) { OPDI_WIDE(half_loop_two)(what, false, to + j, x + j, y + j); } }
    return j;
}
/* Reads 16-bit floats and adds them to `sums`, as many as vectors[4] of floats hold; with NEON, as many as vectors[8]:
   the lower and the upper half of each vector of AVX2, so that sums have the same bits. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(sum_four)(const uint16_t *x, bool bf16, OPDI_V *sums) {
    OPDI_V two[2];
#if defined(OPDI_NEON)
    for (int part = 0; part < 4; part++) {
        OPDI_WIDE(longer)(x + part * 8, bf16, two);
        const int first = bf16 ? part / 2 * 4 + part % 2 : 2 * part;
        sums[first] += two[0];
        sums[first + (bf16 ? 2 : 1)] += two[1];
    }
#else
    for (int part = 0; part < 4; part += 2) {
        OPDI_WIDE(longer)(x + part * (int)(sizeof(OPDI_V) / sizeof(OPDI_T)), bf16, two);
        sums[part] += two[0];
        sums[part + 1] += two[1];
    }
#endif
}
/* Returns the sum of the `count` 16-bit floats at x.  Each group of 4096 elements is summed in four vectors of floats,
   whose sum is added to a double. */
OPDI_TARGET OPDI_INTERNAL double OPDI_WIDE(sum_halves)(const uint16_t *x, int64_t count, bool bf16) {
#if defined(OPDI_NEON)
    enum { PARTS = 2, WIDTH = 2 * (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
#else
    enum { PARTS = 1, WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
#endif
    double total = 0;
    int64_t i = 0;
    while (count - i >= 4 * WIDTH) {
        OPDI_V sums[4 * PARTS] = {{0}};
        const int64_t rows = OPDI_MIN(count, i + 4096) - (4 * WIDTH - 1);
        if (bf16) { for (; i < rows; i += 4 * WIDTH) { OPDI_WIDE(sum_four)(x + i, true, sums); } }
        else { for (; i < rows; i += 4 * WIDTH) { OPDI_WIDE(sum_four)(x + i, false, sums); } }
        for (int part = 0; part < PARTS; part++) {
            const OPDI_V sum = (sums[part] + sums[PARTS + part]) + (sums[2 * PARTS + part] + sums[3 * PARTS + part]);
            for (int j = 0; j < WIDTH / PARTS; j++) { total += (double)sum[j]; }
        }
    }
    for (; i < count; i++) { total += (double)(bf16 ? opdi_bf16_to_f32(x[i]) : opdi_f16_to_f32(x[i])); }
    return total;
}
/* Adds the sum of four rows of `count` 16-bit floats, `step` elements apart, to acc[count]: see opdi_sum_four. */
OPDI_TARGET static void OPDI_WIDE(sum_four_halves)(float *acc, const uint16_t *from, int64_t step, int64_t count,
                                                   bool bf16) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const uint16_t *const first = from, *const second = from + step, *const third = second + step;
    const uint16_t *const fourth = third + step;
    int64_t i = 0;
    if (bf16) {
        OPDI_COLUMN_EACH(acc[j] += (opdi_bf16_to_f32(first[j]) + opdi_bf16_to_f32(second[j])) +
                         (opdi_bf16_to_f32(third[j]) + opdi_bf16_to_f32(fourth[j])))
        return;
    }
    for (; i + WIDTH <= count; i += WIDTH) {
        OPDI_V a, b, c, d;
        OPDI_ASM_WIDEN(a, *(const OPDI_V_HALVES *)(const void *)(first + i));
        OPDI_ASM_WIDEN(b, *(const OPDI_V_HALVES *)(const void *)(second + i));
        OPDI_ASM_WIDEN(c, *(const OPDI_V_HALVES *)(const void *)(third + i));
        OPDI_ASM_WIDEN(d, *(const OPDI_V_HALVES *)(const void *)(fourth + i));
        *(OPDI_V *)(void *)(acc + i) += (a + b) + (c + d);
    }
    for (; i < count; i++) {
        acc[i] += (opdi_f16_to_f32(first[i]) + opdi_f16_to_f32(second[i])) +
            (opdi_f16_to_f32(third[i]) + opdi_f16_to_f32(fourth[i]));
    }
}
