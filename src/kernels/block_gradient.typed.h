/* Adds to the `count` elements of y, a multiple of 8, the products of four rows of w, which are `step` elements apart,
   and the elements of x that belong to them. */
OPDI_TARGET static void OPDI_WIDE(block_add_rows)(const float *x, const float *w, int64_t step, int64_t count,
                                                  float *y) {
    const float x0 = x[0], x1 = x[1], x2 = x[2], x3 = x[3];
    const float *const w1 = w + step, *const w2 = w1 + step, *const w3 = w2 + step;
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        float sums[16];
        for (int lane = 0; lane < 16; lane++) { sums[lane] = w[i + lane] * x0; }
        for (int lane = 0; lane < 16; lane++) { sums[lane] += w1[i + lane] * x1; }
        for (int lane = 0; lane < 16; lane++) { sums[lane] += w2[i + lane] * x2; }
        for (int lane = 0; lane < 16; lane++) { sums[lane] += w3[i + lane] * x3; }
        for (int lane = 0; lane < 16; lane++) { sums[lane] += y[i + lane]; }
        for (int lane = 0; lane < 16; lane++) { y[i + lane] = sums[lane]; }
    }
    for (; i < count; i++) { y[i] += w[i] * x0 + w1[i] * x1 + w2[i] * x2 + w3[i] * x3; }
}
