/* Functions of opdi_block_search, see there.  `n` is a multiple of 16.  Sums have 16 lanes at each level of
   instructions, and products are not fused with sums, so that all levels find the same scales. */
OPDI_TARGET OPDI_ALWAYS float OPDI_WIDE(sum_lanes)(const float *lanes) {
    float sums[8];
    for (int j = 0; j < 8; j++) { sums[j] = lanes[j] + lanes[j + 8]; }
    for (int j = 0; j < 4; j++) { sums[j] += sums[j + 4]; }
    return (sums[0] + sums[2]) + (sums[1] + sums[3]);
}
/* Returns x, rounded to an integer and limited to the range from low to high. */
OPDI_TARGET OPDI_ALWAYS float OPDI_WIDE(code)(float x, float low, float high) {
    float q = x < low ? low : x;
    q = q > high ? high : q;
    q = OPDI_ROUNDED(float, q + OPDI_MAGIC);
    return q - OPDI_MAGIC;
}
/* Returns the number of a table that is nearest to x.  Bounds are halfway between numbers. */
OPDI_TARGET OPDI_ALWAYS float OPDI_WIDE(number)(float x, const opdi_block_numbers *numbers) {
    float q = numbers->least;
    for (int k = 0; k < 15; k++) { q += x > numbers->bounds[k] ? numbers->gaps[k] : 0.0f; }
    return q;
}
/* With q = x * inverse, rounded: sets sums[0] to the sum of x * q, and sums[1] to the sum of q * q. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(sums_of_scale)(const float *x, int n, float inverse,
                                                      const opdi_block_numbers *numbers, float *sums) {
    float xq[16] = {0}, qq[16] = {0};
    const float low = numbers->low, high = numbers->high;
    for (int i = 0; i < n; i += 16) {
        float q[16];
        if (numbers->table) {
            for (int j = 0; j < 16; j++) { q[j] = OPDI_WIDE(number)(x[i + j] * inverse, numbers); }
        } else {
            for (int j = 0; j < 16; j++) { q[j] = OPDI_WIDE(code)(x[i + j] * inverse, low, high); }
        }
        for (int j = 0; j < 16; j++) {
            xq[j] += x[i + j] * q[j];
            qq[j] += q[j] * q[j];
        }
    }
    sums[0] = OPDI_WIDE(sum_lanes)(xq);
    sums[1] = OPDI_WIDE(sum_lanes)(qq);
}
/* Tries `inverse`.  If the error is less than with *scale, replaces *scale by the best scale for the same q. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(try_scale)(const float *x, int n, float inverse,
                                                  const opdi_block_numbers *numbers, float *gain, float *scale) {
    float sums[2];
    OPDI_WIDE(sums_of_scale)(x, n, inverse, numbers, sums);
    if (sums[1] > 0 && sums[0] * sums[0] > *gain * sums[1]) {
        *gain = sums[0] * sums[0] / sums[1];
        *scale = sums[0] / sums[1];
    }
}
OPDI_TARGET static float OPDI_WIDE(best_scale)(const float *x, int n, const opdi_block_numbers *numbers) {
    float top = 0, gain = 0, scale = 0;
    for (int i = 0; i < n; i++) { top = fabsf(x[i]) > fabsf(top) ? x[i] : top; }
    if (fabsf(top) < OPDI_BLOCK_TINY) { return 0; }
    for (int t = -9; t <= 9; t++) {
        const float step = numbers->step * (float)t;
        OPDI_WIDE(try_scale)(x, n, (numbers->low - step) / top, numbers, &gain, &scale);
        if (numbers->high > 0) { OPDI_WIDE(try_scale)(x, n, (numbers->high + step) / top, numbers, &gain, &scale); }
    }
    for (int t = 0; t < 2 && fabsf(scale) > OPDI_BLOCK_TINY; t++) {
        OPDI_WIDE(try_scale)(x, n, 1.0f / scale, numbers, &gain, &scale);
    }
    return scale;
}
OPDI_TARGET static float OPDI_WIDE(scale_error)(const float *x, int n, float scale, const opdi_block_numbers *numbers,
                                                float *sums) {
    const bool none = fabsf(scale) < OPDI_BLOCK_TINY;
    OPDI_WIDE(sums_of_scale)(x, n, none ? 0.0f : 1.0f / scale, numbers, sums);
    /* The sum of (x - scale * q)^2, less the sum of x^2. */
    return none ? 0.0f : scale * (scale * sums[1] - 2.0f * sums[0]);
}
/* With q = (x + minimum) * inverse, rounded: sets sums to the sums of x * q, q * q and q. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(sums_of_range)(const float *x, int n, float inverse, float minimum, float high,
                                                      float *sums) {
    float xq[16] = {0}, qq[16] = {0}, qs[16] = {0};
    for (int i = 0; i < n; i += 16) {
        float q[16];
        for (int j = 0; j < 16; j++) { q[j] = OPDI_WIDE(code)((x[i + j] + minimum) * inverse, 0.0f, high); }
        for (int j = 0; j < 16; j++) {
            xq[j] += x[i + j] * q[j];
            qq[j] += q[j] * q[j];
            qs[j] += q[j];
        }
    }
    sums[0] = OPDI_WIDE(sum_lanes)(xq);
    sums[1] = OPDI_WIDE(sum_lanes)(qq);
    sums[2] = OPDI_WIDE(sum_lanes)(qs);
}
/* Tries a scale and a minimum.  If the error is less than *error, replaces *scale and *minimum by the best ones for the
   same q.  `sum` is the sum of x. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(try_range)(const float *x, int n, float inverse, float start, float high,
                                                  float sum, float *error, float *scale, float *minimum) {
    float sums[3], s, m;
    OPDI_WIDE(sums_of_range)(x, n, inverse, start, high, sums);
    const float count = (float)n, determinant = sums[1] * count - sums[2] * sums[2];
    if (!(sums[1] > 0)) { return; }
    s = determinant > 0 ? (sums[0] * count - sum * sums[2]) / determinant : 0.0f;
    m = determinant > 0 ? (sums[0] * sums[2] - sum * sums[1]) / determinant : 0.0f;
    if (!(determinant > 0) || m < 0) {
        m = 0;
        s = sums[0] / sums[1];
    }
    const float e = s * (s * sums[1] - 2.0f * sums[0]) + m * (count * m + 2.0f * sum) - 2.0f * (s * m * sums[2]);
    if (s > 0 && e < *error) {
        *error = e;
        *scale = s;
        *minimum = m;
    }
}
OPDI_TARGET static float OPDI_WIDE(best_range)(const float *x, int n, float high, float *minimum) {
    float least = 0, most = x[0], sum = 0, error = 0, scale = 0;
    for (int i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        sum += x[i];
    }
    *minimum = 0;
    if (most <= least || most - least < OPDI_BLOCK_TINY) {        /* all numbers are equal, and not positive */
        *minimum = -least;
        return 0;
    }
    error = 3e38f;
    for (int t = -9; t <= 9; t++) {
        OPDI_WIDE(try_range)(x, n, (high + 0.1f * (float)t) / (most - least), -least, high, sum, &error, &scale, minimum);
    }
    for (int t = 0; t < 3 && scale > OPDI_BLOCK_TINY; t++) {
        OPDI_WIDE(try_range)(x, n, 1.0f / scale, *minimum, high, sum, &error, &scale, minimum);
    }
    return scale;
}
OPDI_TARGET static float OPDI_WIDE(range_error)(const float *x, int n, float scale, float minimum, float high,
                                                float *sums) {
    const float m = minimum, count = (float)n;
    if (scale < OPDI_BLOCK_TINY) {
        sums[0] = sums[1] = sums[2] = 0;
        return m * (count * m + 2.0f * sums[3]);
    }
    OPDI_WIDE(sums_of_range)(x, n, 1.0f / scale, m, high, sums);
    return scale * (scale * sums[1] - 2.0f * sums[0]) + m * (count * m + 2.0f * sums[3]) - 2.0f * (scale * m * sums[2]);
}
