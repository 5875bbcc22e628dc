/* The rows or columns of an image that are read for one coordinate.  at: their indices, or -1 if outside of the image.
   weight: their weights.  slope: the derivatives of the weights with respect to the coordinate.  lost is added to the
   result: NaN if the coordinate, after padding, is NaN or infinite; else 0.  In nearest mode it is always 0. */
typedef struct OPDI_TYPED(grid_taps) {
    int count;
    int64_t at[4];
    OPDI_T weight[4], slope[4], lost;
} OPDI_TYPED(grid_taps);
/* Returns coordinate `at`, moved into [0, size - 1] as grid->outside (border or reflection) says; NaN becomes 0.
   Multiplies *factor by the derivative of this move. */
static OPDI_T OPDI_TYPED(grid_inside)(const opdi_grid *grid, OPDI_T at, int64_t size, OPDI_T *factor) {
    const OPDI_T low = grid->corners ? 0 : (OPDI_T)-0.5, span = grid->corners ? (OPDI_T)(size - 1) : (OPDI_T)size;
    if (grid->outside == OPDI_GRID_REFLECTION) {
        if (!(span > 0)) {
            *factor = 0;
            return 0;
        }
        at -= low;
        if (at < 0) {
            at = -at;
            *factor = -*factor;
        }
        OPDI_T times = OPDI_FN(floor)(at / span);
        at = OPDI_FN(fmod)(at, span);
        if (OPDI_FN(fmod)(times, 2) > 0) {
            at = span - at;
            *factor = -*factor;
        }
        at += low;
    }
    if (!(at > 0)) {
        *factor = 0;
        return 0;
    }
    if (at >= (OPDI_T)(size - 1)) {
        *factor = 0;
        return (OPDI_T)(size - 1);
    }
    return at;
}
/* Sets *taps to the rows or columns around coordinate `at`, which runs from -1 to 1 along a dim of `size`. */
static void OPDI_TYPED(grid_taps_set)(OPDI_TYPED(grid_taps) *taps, const opdi_grid *grid, OPDI_T at, int64_t size) {
    OPDI_T factor = grid->corners ? (OPDI_T)(size - 1) / 2 : (OPDI_T)size / 2, none = 0;
    at = grid->corners ? (at + 1) / 2 * (OPDI_T)(size - 1) : ((at + 1) * (OPDI_T)size - 1) / 2;
    if (grid->how != OPDI_GRID_BICUBIC && grid->outside != OPDI_GRID_ZEROS) {
        at = OPDI_TYPED(grid_inside)(grid, at, size, &factor);
    }
    taps->lost = grid->how == OPDI_GRID_NEAREST ? 0 : at - at;
    if (!(at > (OPDI_T)-1e9 && at < (OPDI_T)1e9)) { at = -100; }
    taps->count = grid->how == OPDI_GRID_NEAREST ? 1 : grid->how == OPDI_GRID_BILINEAR ? 2 : 4;
    OPDI_T first = taps->count == 1 ? OPDI_FN(rint)(at) : OPDI_FN(floor)(at);
    OPDI_T t = at - first;
    taps->weight[0] = 1;
    taps->slope[0] = 0;
    if (taps->count == 2) {
        taps->weight[0] = 1 - t;
        taps->weight[1] = t;
        taps->slope[0] = -factor;
        taps->slope[1] = factor;
    }
    if (taps->count == 4) {                   /* cubic weights with a = -3/4 */
        const OPDI_T a = (OPDI_T)-0.75, r = 1 - t, u = t + 1, v = 2 - t;
        first -= 1;
        taps->weight[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
        taps->weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        taps->weight[2] = ((a + 2) * r - (a + 3)) * r * r + 1;
        taps->weight[3] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a;
        taps->slope[0] = factor * ((3 * a * u - 10 * a) * u + 8 * a);
        taps->slope[1] = factor * (3 * (a + 2) * t - 2 * (a + 3)) * t;
        taps->slope[2] = -factor * (3 * (a + 2) * r - 2 * (a + 3)) * r;
        taps->slope[3] = -factor * ((3 * a * v - 10 * a) * v + 8 * a);
    }
    for (int i = 0; i < taps->count; i++) {
        OPDI_T line = first + (OPDI_T)i;
        if (taps->count == 4 && grid->outside != OPDI_GRID_ZEROS) {
            line = OPDI_TYPED(grid_inside)(grid, line, size, &none);
        }
        taps->at[i] = line >= 0 && line < (OPDI_T)size ? (int64_t)line : -1;
    }
}
static void OPDI_TYPED(grid_places)(const opdi_grid *grid, int64_t place, OPDI_TYPED(grid_taps) *taps) {
    const OPDI_T *at = (const OPDI_T *)grid->grid + place * 2;
    OPDI_TYPED(grid_taps_set)(&taps[0], grid, at[1], grid->in[0]);
    OPDI_TYPED(grid_taps_set)(&taps[1], grid, at[0], grid->in[1]);
}
/* Computes rows [begin, end) of the output, counted over all images, in all channels. */
static void OPDI_TYPED(grid_rows)(void *ctx, int64_t begin, int64_t end) {
    const opdi_grid *grid = (const opdi_grid *)ctx;
    const int64_t area = grid->in[0] * grid->in[1], points = grid->out[0] * grid->out[1];
    for (int64_t place = begin; place < end; place++) {
        const int64_t count = place / grid->out[0];
        const OPDI_T *x = (const OPDI_T *)grid->input + count * grid->c * area;
        for (int64_t j = 0; j < grid->out[1]; j++) {
            OPDI_T *y = (OPDI_T *)grid->output + count * grid->c * points + place % grid->out[0] * grid->out[1] + j;
            OPDI_TYPED(grid_taps) taps[2];
            OPDI_TYPED(grid_places)(grid, place * grid->out[1] + j, taps);
            for (int64_t channel = 0; channel < grid->c; channel++) {
                OPDI_T sum = taps[0].lost + taps[1].lost;
                for (int first = 0; first < taps[0].count; first++) {
                    const OPDI_T *row = x + channel * area + taps[0].at[first] * grid->in[1];
                    OPDI_T part = 0;
                    if (taps[0].at[first] < 0) { continue; }
                    for (int batch = 0; batch < taps[1].count; batch++) {
                        if (taps[1].at[batch] >= 0) { part += taps[1].weight[batch] * row[taps[1].at[batch]]; }
                    }
                    sum += taps[0].weight[first] * part;
                }
                y[channel * points] = sum;
            }
        }
    }
}
/* Computes the gradients for images [begin, end), one output element after another.  Each output element adds to the
   gradients of the input elements that it read.  The gradient of its grid coordinates follows from the derivatives
   of the weights. */
static void OPDI_TYPED(grid_back)(void *ctx, int64_t begin, int64_t end) {
    const opdi_grid *grid = (const opdi_grid *)ctx;
    const int64_t area = grid->in[0] * grid->in[1], points = grid->out[0] * grid->out[1];
    for (int64_t count = begin; count < end; count++) {
        OPDI_T *dx = grid->dx ? (OPDI_T *)grid->dx + count * grid->c * area : NULL;
        if (dx) { memset(dx, 0, (size_t)(grid->c * area) * sizeof *dx); }
        for (int64_t plane = 0; plane < points; plane++) {
            OPDI_T *to = (OPDI_T *)grid->dgrid + (count * points + plane) * 2;
            OPDI_TYPED(grid_taps) taps[2];
            OPDI_T along[2] = {0, 0};
            OPDI_TYPED(grid_places)(grid, count * points + plane, taps);
            for (int64_t channel = 0; channel < grid->c; channel++) {
                const OPDI_T *x = (const OPDI_T *)grid->input + (count * grid->c + channel) * area;
                const OPDI_T grad = ((const OPDI_T *)grid->grad)[(count * grid->c + channel) * points + plane];
                for (int first = 0; first < taps[0].count; first++) {
                    for (int batch = 0; batch < taps[1].count; batch++) {
                        const int64_t at = taps[0].at[first] * grid->in[1] + taps[1].at[batch];
                        if (taps[0].at[first] < 0 || taps[1].at[batch] < 0) { continue; }
                        if (dx) { dx[channel * area + at] += grad * taps[0].weight[first] * taps[1].weight[batch]; }
                        along[0] += grad * x[at] * taps[0].slope[first] * taps[1].weight[batch];
                        along[1] += grad * x[at] * taps[0].weight[first] * taps[1].slope[batch];
                    }
                }
            }
            to[0] = along[1];
            to[1] = along[0];
        }
    }
}
