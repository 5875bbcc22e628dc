OPDI_TARGET static void OPDI_WIDE(gemv_cols)(const opdi_gemv_job *job, int64_t i, int64_t rows, void *yv) {
    const OPDI_T *a = (const OPDI_T *)(const void *)job->a + i * job->rs, *x = (const OPDI_T *)(const void *)job->x;
    OPDI_T *y = (OPDI_T *)yv;
    const int64_t k = job->k, cs = job->cs, left = k % 4;
    for (int64_t step = 0; step + 4 <= k; step += 4) {
        const OPDI_T x0 = x[step], x1 = x[step + 1], x2 = x[step + 2], x3 = x[step + 3], *at = a + step * cs;
        for (int64_t j = 0; j < rows; j += 16) {
            OPDI_T work[16];
            for (int lane = 0; lane < 16; lane++) {
                work[lane] = y[j + lane] + ((x0 * at[j + lane] + x1 * at[cs + j + lane]) +
                                            (x2 * at[2 * cs + j + lane] + x3 * at[3 * cs + j + lane]));
            }
            for (int lane = 0; lane < 16; lane++) { y[j + lane] = work[lane]; }
        }
    }
    /* the last one to three columns are added without padding by zeros, because infinity times 0 would be NaN */
    for (int64_t j = 0; left && j < rows; j += 16) {
        const OPDI_T *const at = a + (k - left) * cs + j, *const with = x + k - left;
        OPDI_T work[16];
        for (int lane = 0; lane < 16; lane++) { work[lane] = with[0] * at[lane]; }
        for (int lane = 0; left > 1 && lane < 16; lane++) { work[lane] += with[1] * at[cs + lane]; }
        for (int lane = 0; left > 2 && lane < 16; lane++) { work[lane] += with[2] * at[2 * cs + lane]; }
        for (int lane = 0; lane < 16; lane++) { y[j + lane] += work[lane]; }
    }
}
