static void OPDI_TYPED(max_pool_2x2)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t *at) {
    const int64_t width = windows->in[2];
    for (int64_t batch = 0; batch < windows->out[1]; batch++) {
        for (int64_t channel = 0; channel < windows->out[2]; channel++) {
            const int64_t place = 2 * batch * width + 2 * channel;
            const OPDI_T e = x[place], f = x[place + 1], grad = x[place + width], h = x[place + width + 1];
            const bool right = (f > e) | OPDI_IS_NAN(f), down = (h > grad) | OPDI_IS_NAN(h);
            const OPDI_T m = right ? f : e, n = down ? h : grad;
            const bool lower = (n > m) | OPDI_IS_NAN(n);
            *y++ = lower ? n : m;
            *at++ = place + (lower ? width + down : right);
        }
    }
}
/* Writes the largest element of each window of the plane x to y, and the position of that element in the plane to `at`.
   NaN counts as the largest. */
static void OPDI_TYPED(max_pool)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t *at) {
    int64_t first, second, channels;
    OPDI_POOL_EACH(windows, first, second, channels) {
        int64_t best = (windows->lo[0][first] * windows->in[1] + windows->lo[1][second]) * windows->in[2] +
            windows->lo[2][channels];
        OPDI_T top = OPDI_LOWEST;
        for (int64_t i = windows->lo[0][first]; i < windows->hi[0][first]; i += windows->dilation[0]) {
            for (int64_t j = windows->lo[1][second]; j < windows->hi[1][second]; j += windows->dilation[1]) {
                for (int64_t k = windows->lo[2][channels]; k < windows->hi[2][channels]; k += windows->dilation[2]) {
                    const int64_t place = (i * windows->in[1] + j) * windows->in[2] + k;
                    if (x[place] > top || OPDI_IS_NAN(x[place])) {
                        top = x[place];
                        best = place;
                    }
                }
            }
        }
        *y++ = top;
        *at++ = best;
    }
}
static void OPDI_TYPED(avg_pool)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y) {
    int64_t first, second, channels, i, j, depth;
    OPDI_POOL_EACH(windows, first, second, channels) {
        OPDI_T sum = 0;
        const int64_t count = opdi_pool_divisor(windows, first, second, channels);
        OPDI_POOL_WINDOW(windows, first, second, channels, i, j, depth) {
            sum = (OPDI_T)(sum + x[(i * windows->in[1] + j) * windows->in[2] + depth]);
        }
        *y++ = count ? (OPDI_T)(sum / (OPDI_T)count) : (OPDI_T)0;
    }
}
#if !OPDI_WHOLE
static void OPDI_TYPED(avg_pool_backward)(const opdi_windows *windows, const OPDI_T *grad, OPDI_T *gx) {
    int64_t first, second, channels, i, j, depth;
    OPDI_POOL_EACH(windows, first, second, channels) {
        const int64_t count = opdi_pool_divisor(windows, first, second, channels);
        const OPDI_T part = count ? *grad / (OPDI_T)count : (OPDI_T)0;
        grad++;
        OPDI_POOL_WINDOW(windows, first, second, channels, i, j, depth) {
            gx[(i * windows->in[1] + j) * windows->in[2] + depth] += part;
        }
    }
}
static int OPDI_TYPED(max_pool_backward)(const opdi_windows *windows, const OPDI_T *grad, const int64_t *at,
                                         OPDI_T *gx) {
    const int64_t count = opdi_vol_area(windows->out);
    const uint64_t area = (uint64_t)opdi_vol_area(windows->in);
    for (int64_t i = 0; i < count; i++) {
        if ((uint64_t)at[i] >= area) { return 1; }
        gx[at[i]] += grad[i];
    }
    return 0;
}
#endif
