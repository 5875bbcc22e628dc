static OPDI_T OPDI_WIDE(dot)(int64_t depth, const OPDI_T *a, const OPDI_T *x) {
    OPDI_T sums[16] = {0}, sum = 0;
    int64_t step = 0;
    for (; step + 16 <= depth; step += 16) {
        for (int lane = 0; lane < 16; lane++) {
            sums[lane] = OPDI_PLUS_PRODUCT(sums[lane], a[step + lane], x[step + lane]);
        }
    }
    for (int lane = 0; lane < 16; lane++) { sum += sums[lane]; }
    for (; step < depth; step++) { sum = OPDI_PLUS_PRODUCT(sum, a[step], x[step]); }
    return sum;
}
