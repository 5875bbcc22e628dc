/* Returns x^p. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(distance_power)(OPDI_T x, OPDI_T p) {
    return opd_same_bits() ? (OPDI_T)opdi_pow_f64((double)x, (double)p) : OPDI_FN(pow)(x, p);
}
/* Adds the difference v of two elements to the sum s, or compares it with the maximum s, as `norm` (OPDI_DISTANCE_..)
   requires.  p is the order of the norm.  Returns the new s. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(distance_with)(OPDI_T s, OPDI_T v, OPDI_T p, int norm) {
    switch (norm) {
    case OPDI_DISTANCE_0: return s + (OPDI_T)(v < 0 || v > 0 || !(v <= v));
    case OPDI_DISTANCE_1: return s + OPDI_FN(fabs)(v);
    case OPDI_DISTANCE_2: return s + v * v;
    case OPDI_DISTANCE_P: return s + OPDI_TYPED(distance_power)(OPDI_FN(fabs)(v), p);
    default: v = OPDI_FN(fabs)(v); return v > s || !(v <= v) ? v : s;
    }
}
/* Returns the sum (or maximum) over the differences of `count` elements of a and b, as distance_with computes it.
   Long rows are summed in eight separate lanes. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(distance_of)(const OPDI_T *a, const OPDI_T *b, int64_t count, OPDI_T p, int norm) {
    OPDI_T lane[8], sum = 0;
    int64_t i = 0;
    int j;
    if (count >= 16) {
        for (j = 0; j < 8; j++) { lane[j] = 0; }
        for (; i + 8 <= count; i += 8) {
            for (j = 0; j < 8; j++) { lane[j] = OPDI_TYPED(distance_with)(lane[j], a[i + j] - b[i + j], p, norm); }
        }
        for (sum = lane[0], j = 1; j < 8; j++) {
            sum = norm != OPDI_DISTANCE_MAX ? sum + lane[j] : lane[j] > sum || !(lane[j] <= lane[j]) ? lane[j] : sum;
        }
    }
    for (; i < count; i++) { sum = OPDI_TYPED(distance_with)(sum, a[i] - b[i], p, norm); }
    return sum;
}
static OPDI_T OPDI_TYPED(distance)(const OPDI_T *a, const OPDI_T *b, int64_t count, double p) {
    if (p == 2) { return OPDI_FN(sqrt)(OPDI_TYPED(distance_of)(a, b, count, 0, OPDI_DISTANCE_2)); }
    if (p == 1) { return OPDI_TYPED(distance_of)(a, b, count, 0, OPDI_DISTANCE_1); }
    if (p == 0) { return OPDI_TYPED(distance_of)(a, b, count, 0, OPDI_DISTANCE_0); }
    if (p > DBL_MAX) { return OPDI_TYPED(distance_of)(a, b, count, 0, OPDI_DISTANCE_MAX); }
    const OPDI_T sum = OPDI_TYPED(distance_of)(a, b, count, (OPDI_T)p, OPDI_DISTANCE_P);
    return OPDI_TYPED(distance_power)(sum, (OPDI_T)(1 / p));
}
static void OPDI_TYPED(distances)(void *ctx, int64_t begin, int64_t end) {
    const opdi_distances *distances = (const opdi_distances *)ctx;
    for (int64_t row = begin; row < end; row++) {
        const int64_t i = row % distances->n;
        const OPDI_T *x = (const OPDI_T *)distances->x + row * distances->k,
            *y = (const OPDI_T *)distances->y + row / distances->n * distances->m * distances->k;
        OPDI_T *out = (OPDI_T *)distances->out + row / distances->n * distances->n * distances->m;
        int64_t j = distances->pairs ? i + 1 : 0;
#if defined(OPDI_VECTORS)
        if (distances->p == 2 && j < distances->m && opdi_cpu_level() > 0) {
            OPDI_WIDEST(opdi_cpu_level(), OPDI_TYPED(distances_2_avx512), OPDI_TYPED(distances_2_avx2))
                (x, y + j * distances->k, out + opdi_distance_at(distances, i, j), distances->m - j, distances->k);
            continue;
        }
#endif
        for (; j < distances->m; j++) {
            out[opdi_distance_at(distances, i, j)] = OPDI_TYPED(distance)(x, y + j * distances->k, distances->k,
                                                                          distances->p);
        }
    }
}
/* Adds the gradient of the distance d = |x - y| with respect to x [count] to out [count].  With v = x - y, the gradient
   is grad * sign(v) * |v|^(p-1) / d^(p-1), or 0 if x and y are equal or p is 0. */
static void OPDI_TYPED(distance_back)(const OPDI_T *x, const OPDI_T *y, OPDI_T *out, int64_t count, OPDI_T grad,
                                      OPDI_T d, double p) {
    const OPDI_T c = p == 1 || p > DBL_MAX ? grad : p == 2 ? grad / d
        : grad / OPDI_TYPED(distance_power)(d, (OPDI_T)(p - 1));
    if ((d == 0 && p != 1) || p == 0) { return; }
    if (p == 2) { for (int64_t i = 0; i < count; i++) { out[i] += c * (x[i] - y[i]); } }
    else {
        for (int64_t i = 0; i < count; i++) {
            const OPDI_T v = x[i] - y[i], size = OPDI_FN(fabs)(v), sign = (OPDI_T)((v > 0) - (v < 0));
            out[i] += c * sign * (p == 1 ? 1 : p > DBL_MAX ? (OPDI_T)(size == d)
                : p < 1 && v == 0 ? 0 : OPDI_TYPED(distance_power)(size, (OPDI_T)(p - 1)));
        }
    }
}
static void OPDI_TYPED(distances_back)(void *ctx, int64_t begin, int64_t end) {
    const opdi_distances *distances = (const opdi_distances *)ctx;
    for (int64_t row = begin; row < end; row++) {
        const int64_t i = row % distances->n, first = row / distances->n * distances->n * distances->m;
        const OPDI_T *x = (const OPDI_T *)distances->x + row * distances->k,
            *y = (const OPDI_T *)distances->y + row / distances->n * distances->m * distances->k;
        OPDI_T *out = (OPDI_T *)distances->out + row * distances->k;
        memset(out, 0, (size_t)distances->k * sizeof *out);
        for (int64_t j = 0; j < distances->m; j++) {
            const int64_t at = first + opdi_distance_at(distances, i, j);
            if (distances->pairs && i == j) { continue; }
            OPDI_TYPED(distance_back)(x, y + j * distances->k, out, distances->k, ((const OPDI_T *)distances->g)[at],
                                   ((const OPDI_T *)distances->d)[at], distances->p);
        }
    }
}
