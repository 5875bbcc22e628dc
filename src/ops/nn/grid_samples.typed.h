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
    if (grid->corners) { at = (at + 1) / 2 * (OPDI_T)(size - 1); }
    else {
        volatile OPDI_T product = (at + 1) * (OPDI_T)size;         /* is rounded, not fused with the difference */
        at = (product - 1) / 2;
    }
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
    if (taps->count == 2) {
        const int64_t line = (int64_t)first;
        taps->at[0] = (uint64_t)line < (uint64_t)size ? line : -1;
        taps->at[1] = (uint64_t)line + 1 < (uint64_t)size ? line + 1 : -1;
        return;
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
/* The taps of `wide` points.  Tap number k of point i has number n = k * wide + i, and is the element at[n] of a
   channel, times weight[n].  Bits of the element that mask[n] does not have are ignored: all of them if the tap is
   outside of the image. */
typedef struct OPDI_TYPED(grid_block) {
    int64_t taps, wide, at[OPDI_GRID_TAPS];
    OPDI_BITS mask[OPDI_GRID_TAPS];
    OPDI_T weight[OPDI_GRID_TAPS], lost[OPDI_GRID_TAPS];
} OPDI_TYPED(grid_block);
/* Does the work of grid_block_set for nearest and bilinear interpolation, if an index into a channel fits into 32 bits.
   Returns false, without a result, if a coordinate that is mirrored is NaN or far outside of the image. */
OPDI_VECTOR_LOOP static bool OPDI_TYPED(grid_block_two)(const opdi_grid *grid, int64_t place,
                                                        OPDI_TYPED(grid_block) *block) {
    const OPDI_T *const from = (const OPDI_T *)grid->grid + place * 2;
    const int64_t count = block->wide;
    int32_t line[2][OPDI_GRID_TAPS];
    OPDI_T part[2][OPDI_GRID_TAPS], *const lost = block->lost;
    int64_t i;
    OPDI_COLUMN_EACH(part[0][j] = from[2 * j + 1]; part[1][j] = from[2 * j]; lost[j] = 0)
    for (int dim = 0; dim < 2; dim++) {
        const OPDI_T size = (OPDI_T)grid->in[dim], most = (OPDI_T)(grid->in[dim] - 1);
        OPDI_T *const at = part[dim];
        if (grid->corners) { OPDI_COLUMN_EACH(at[j] = (at[j] + 1) / 2 * most) }
        else {                                    /* two loops, so that the product is rounded as in grid_taps_set */
            OPDI_COLUMN_EACH(at[j] = (at[j] + 1) * size)
            OPDI_COLUMN_EACH(at[j] = (at[j] - 1) / 2)
        }
        if (grid->outside == OPDI_GRID_REFLECTION) {      /* see grid_inside */
            const OPDI_T first = grid->corners ? 0 : (OPDI_T)-0.5, span = grid->corners ? most : size;
            for (int64_t j = 0; j < count; j++) {
                if (!(OPDI_FN(fabs)(at[j] - first) < span * 1000000)) { return false; }
            }
            OPDI_COLUMN_EACH(
                const OPDI_T away = OPDI_FN(fabs)(at[j] - first); const int32_t times = (int32_t)(away / span);
                const OPDI_T rest = OPDI_FN(fma)(-(OPDI_T)times, span, away);
                const OPDI_T inside = rest < 0 ? rest + span : rest;
                at[j] = (times & 1 ? span - inside : inside) + first)
        }
        if (grid->outside != OPDI_GRID_ZEROS) {
            OPDI_COLUMN_EACH(const OPDI_T low = at[j] > 0 ? at[j] : 0; at[j] = low >= most ? most : low)
        }
        OPDI_COLUMN_EACH(
            const OPDI_T known = ((at[j] > (OPDI_T)-1e9) & (at[j] < (OPDI_T)1e9)) ? at[j] : -100;
            const int32_t whole = (int32_t)known;
            const int32_t first = whole - ((OPDI_T)whole > known);
            lost[j] += at[j] - at[j];
            line[dim][j] = first;
            at[j] = known - (OPDI_T)first)
        if (grid->how == OPDI_GRID_NEAREST) {     /* the half between two lines belongs to the even one */
            OPDI_COLUMN_EACH(
                line[dim][j] += (at[j] > (OPDI_T)0.5) | ((at[j] == (OPDI_T)0.5) & (line[dim][j] & 1));
                lost[j] = at[j] = 0)
        }
    }
    for (int k = 0; k < block->taps; k++) {
        const int32_t row = k / 2, column = k % 2;
        const uint32_t height = (uint32_t)grid->in[0], width = (uint32_t)grid->in[1];
        int64_t *const at = block->at + k * count;
        OPDI_BITS *const mask = block->mask + k * count;
        OPDI_T *const weight = block->weight + k * count;
        OPDI_COLUMN_EACH(
            const int32_t y = line[0][j] + row; const int32_t x = line[1][j] + column;
            const int32_t inside = -(int32_t)(((uint32_t)y < height) & ((uint32_t)x < width));
            const OPDI_T up = row ? part[0][j] : 1 - part[0][j];
            const OPDI_T left = column ? part[1][j] : 1 - part[1][j];
            at[j] = (int32_t)((uint32_t)y * width + (uint32_t)x) & inside;
            mask[j] = (OPDI_BITS)(int64_t)inside;
            weight[j] = inside ? up * left : 0)
    }
    return true;
}
/* Fills *block for points from number `place` on. */
static void OPDI_TYPED(grid_block_set)(const opdi_grid *grid, int64_t place, OPDI_TYPED(grid_block) *block) {
    if (opdi_has_vectors() && grid->how != OPDI_GRID_BICUBIC && grid->in[0] <= INT32_MAX / 2 / grid->in[1] &&
        OPDI_TYPED(grid_block_two)(grid, place, block)) { return; }
    for (int64_t i = 0; i < block->wide; i++) {
        OPDI_TYPED(grid_taps) taps[2];
        OPDI_TYPED(grid_places)(grid, place + i, taps);
        block->lost[i] = taps[0].lost + taps[1].lost;
        int64_t n = i;
        for (int row = 0; row < taps[0].count; row++) {
            for (int column = 0; column < taps[1].count; column++, n += block->wide) {
                const bool inside = taps[0].at[row] >= 0 && taps[1].at[column] >= 0;
                block->at[n] = inside ? taps[0].at[row] * grid->in[1] + taps[1].at[column] : 0;
                block->mask[n] = (OPDI_BITS)0 - (OPDI_BITS)inside;
                block->weight[n] = inside ? taps[0].weight[row] * taps[1].weight[column] : 0;
            }
        }
    }
}
/* Does the work of grid_block_sum if x[0] is finite: taps outside of the image are x[0] times 0. */
OPDI_ALWAYS void OPDI_TYPED(grid_taps_sum)(const OPDI_TYPED(grid_block) *block, int taps, const OPDI_T *x, OPDI_T *y) {
    const int64_t count = block->wide;
    for (int64_t i = 0; i < count; i++) {
        OPDI_T s = block->lost[i];
        OPDI_UNROLL for (int k = 0; k < taps; k++) { s += block->weight[k * count + i] * x[block->at[k * count + i]]; }
        y[i] = s;
    }
}
/* Computes the points y[block->wide] of the channel x.  All elements are read before they are used, because memory that
   has just been written by elements is slow to read by vectors. */
static void OPDI_TYPED(grid_block_sum)(const OPDI_TYPED(grid_block) *block, const OPDI_T *x, OPDI_T *y) {
    union { OPDI_BITS bits[OPDI_GRID_TAPS]; OPDI_T value[OPDI_GRID_TAPS]; } read;
    const int64_t count = block->wide;
    if (x[0] - x[0] == 0) {
        if (block->taps == 1) { OPDI_TYPED(grid_taps_sum)(block, 1, x, y); }
        else if (block->taps == 4) { OPDI_TYPED(grid_taps_sum)(block, 4, x, y); }
        else { OPDI_TYPED(grid_taps_sum)(block, (int)block->taps, x, y); }
        return;
    }
    for (int64_t n = 0; n < block->taps * count; n++) {
        memcpy(&read.bits[n], x + block->at[n], sizeof *x);
        read.bits[n] &= block->mask[n];
    }
    memcpy(y, block->lost, (size_t)count * sizeof *y);
    for (int64_t first = 0; first < block->taps * count; first += count) {
        const OPDI_T *const weight = block->weight + first, *const value = read.value + first;
        int64_t i;
        OPDI_COLUMN_EACH(y[j] += weight[j] * value[j])
    }
}
/* Computes rows [begin, end) of the output, counted over all images, in all channels. */
static void OPDI_TYPED(grid_rows)(void *ctx, int64_t begin, int64_t end) {
    const opdi_grid *grid = (const opdi_grid *)ctx;
    const int64_t area = grid->in[0] * grid->in[1], points = grid->out[0] * grid->out[1];
    OPDI_TYPED(grid_block) block;
    block.taps = grid->how == OPDI_GRID_NEAREST ? 1 : grid->how == OPDI_GRID_BILINEAR ? 4 : 16;
    for (int64_t place = begin * grid->out[1]; place < end * grid->out[1]; place += block.wide) {
        const int64_t image = place / points, at = place % points;
        block.wide = OPDI_MIN(OPDI_GRID_TAPS / block.taps, OPDI_MIN(points - at, end * grid->out[1] - place));
        OPDI_TYPED(grid_block_set)(grid, place, &block);
        for (int64_t channel = image * grid->c; channel < (image + 1) * grid->c; channel++) {
            OPDI_TYPED(grid_block_sum)(&block, (const OPDI_T *)grid->input + channel * area,
                                       (OPDI_T *)grid->output + channel * points + at);
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
