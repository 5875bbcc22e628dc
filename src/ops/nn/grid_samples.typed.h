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
/* The taps of `wide` points.  They are in windows of `columns` elements, which are neighbours in memory.  The element
   at[n] of a channel is the first of window number n = k * wide + i, which is window k of point i.  Element s of this
   window is multiplied by weight[n * columns + s].  Bits of the element that mask[n * columns + s] does not have are
   ignored: all of them if the element is not a tap of the point. */
typedef struct OPDI_TYPED(grid_block) {
    int64_t windows, columns, wide, at[OPDI_GRID_TAPS];
    OPDI_BITS mask[OPDI_GRID_TAPS];
    OPDI_T weight[OPDI_GRID_TAPS], lost[OPDI_GRID_WIDE];
} OPDI_TYPED(grid_block);
/* Coordinates of up to OPDI_GRID_WIDE points.  line: the row and the column that contains the point (in nearest mode
   the nearest ones).  part: the distance of the point to this line, from 0 to 1 (in nearest mode 0). */
typedef struct OPDI_TYPED(grid_lines) {
    int32_t line[2][OPDI_GRID_WIDE];
    OPDI_T part[2][OPDI_GRID_WIDE];
} OPDI_TYPED(grid_lines);
/* Sets *lines and lost[count] for `count` points from number `place` on.  Returns false, without a result, if a
   coordinate that is mirrored is NaN or far outside of the image. */
OPDI_VECTOR_LOOP static bool OPDI_TYPED(grid_lines_set)(const opdi_grid *grid, int64_t place, int64_t count,
                                                        OPDI_TYPED(grid_lines) *lines, OPDI_T *lost) {
    const OPDI_T *const from = (const OPDI_T *)grid->grid + place * 2;
    int64_t i;
    OPDI_COLUMN_EACH(lines->part[0][j] = from[2 * j + 1]; lines->part[1][j] = from[2 * j]; lost[j] = 0)
    for (int dim = 0; dim < 2; dim++) {
        const OPDI_T size = (OPDI_T)grid->in[dim], most = (OPDI_T)(grid->in[dim] - 1);
        OPDI_T *const at = lines->part[dim];
        int32_t *const line = lines->line[dim];
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
            line[j] = first;
            at[j] = known - (OPDI_T)first)
        if (grid->how == OPDI_GRID_NEAREST) {     /* the half between two lines belongs to the even one */
            OPDI_COLUMN_EACH(
                const OPDI_T half = line[j] & 1 ? (OPDI_T)0.5 : (OPDI_T)0.75;
                line[j] += (at[j] > (OPDI_T)0.5) | (at[j] == half);
                lost[j] = 0)
        }
    }
    return true;
}
/* Sets weights[k][j] to the weight of the k-th of `columns` rows or columns around a point whose distance to the line
   that contains it is part[j].  See grid_taps_set. */
OPDI_VECTOR_LOOP static void OPDI_TYPED(grid_weights)(int64_t count, int64_t columns, const OPDI_T *part,
                                                      OPDI_T (*weights)[OPDI_GRID_WIDE]) {
    int64_t i;
    if (columns == 2) {
        OPDI_COLUMN_EACH(weights[0][j] = 1 - part[j]; weights[1][j] = part[j])
        return;
    }
    OPDI_COLUMN_EACH(
        const OPDI_T a = (OPDI_T)-0.75; const OPDI_T t = part[j]; const OPDI_T r = 1 - t; const OPDI_T u = t + 1;
        const OPDI_T v = 2 - t;
        weights[0][j] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
        weights[1][j] = ((a + 2) * t - (a + 3)) * t * t + 1;
        weights[2][j] = ((a + 2) * r - (a + 3)) * r * r + 1;
        weights[3][j] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a)
}
/* Sets the windows of *block to the taps around the points *lines.  A row of the image is at least as wide as a window.
   A window that is partly outside of the image is moved into it: then some of its elements are not taps. */
OPDI_VECTOR_LOOP static void OPDI_TYPED(grid_windows)(const opdi_grid *grid, const OPDI_TYPED(grid_lines) *lines,
                                                      OPDI_TYPED(grid_block) *block) {
    const int64_t count = block->wide;
    const int32_t columns = (int32_t)block->columns, before = columns == 4, most = (int32_t)grid->in[1] - columns;
    const uint32_t height = (uint32_t)grid->in[0], width = (uint32_t)grid->in[1];
    OPDI_T weights[2][4][OPDI_GRID_WIDE], element[4][OPDI_GRID_WIDE], across[OPDI_GRID_WIDE];
    int32_t known[4][OPDI_GRID_WIDE], start[OPDI_GRID_WIDE], inside[OPDI_GRID_WIDE];
    int64_t i;
    memset(weights, 0, sizeof weights);
    for (int dim = 0; dim < 2; dim++) {
        OPDI_TYPED(grid_weights)(count, columns, lines->part[dim], weights[dim]);
    }
    OPDI_COLUMN_EACH(
        const int32_t first = lines->line[1][j] - before; const int32_t low = first > 0 ? first : 0;
        start[j] = low < most ? low : most)
    for (int32_t s = 0; s < columns; s++) {
        OPDI_COLUMN_EACH(
            const int32_t tap = start[j] + s - (lines->line[1][j] - before);
            known[s][j] = -(int32_t)((uint32_t)tap < (uint32_t)columns);
            const OPDI_T left = tap == 0 ? weights[1][0][j] : tap == 1 ? weights[1][1][j] : 0;
            element[s][j] = tap == 2 ? weights[1][2][j] : tap == 3 ? weights[1][3][j] : left)
    }
    for (int32_t k = 0; k < columns; k++) {
        int64_t *const at = block->at + k * count;
        OPDI_BITS *const mask = block->mask + k * columns * count;
        OPDI_T *const weight = block->weight + k * columns * count;
        OPDI_COLUMN_EACH(
            const uint32_t row = (uint32_t)(lines->line[0][j] - before + k);
            inside[j] = -(int32_t)(row < height);
            at[j] = (int32_t)(row * width + (uint32_t)start[j]) & inside[j];
            across[j] = inside[j] ? weights[0][k][j] : 0)
        if (columns == 2) {
            OPDI_COLUMN_EACH(
                mask[2 * j] = (OPDI_BITS)(int64_t)(known[0][j] & inside[j]);
                mask[2 * j + 1] = (OPDI_BITS)(int64_t)(known[1][j] & inside[j]))
            OPDI_COLUMN_EACH(weight[2 * j] = across[j] * element[0][j]; weight[2 * j + 1] = across[j] * element[1][j])
            continue;
        }
        OPDI_COLUMN_EACH(
            mask[4 * j] = (OPDI_BITS)(int64_t)(known[0][j] & inside[j]);
            mask[4 * j + 1] = (OPDI_BITS)(int64_t)(known[1][j] & inside[j]);
            mask[4 * j + 2] = (OPDI_BITS)(int64_t)(known[2][j] & inside[j]);
            mask[4 * j + 3] = (OPDI_BITS)(int64_t)(known[3][j] & inside[j]))
        OPDI_COLUMN_EACH(
            weight[4 * j] = across[j] * element[0][j]; weight[4 * j + 1] = across[j] * element[1][j];
            weight[4 * j + 2] = across[j] * element[2][j]; weight[4 * j + 3] = across[j] * element[3][j])
    }
}
/* Sets the only tap of the points *lines in nearest mode. */
OPDI_VECTOR_LOOP static void OPDI_TYPED(grid_nearest)(const opdi_grid *grid, const OPDI_TYPED(grid_lines) *lines,
                                                      OPDI_TYPED(grid_block) *block) {
    const int64_t count = block->wide;
    const uint32_t height = (uint32_t)grid->in[0], width = (uint32_t)grid->in[1];
    int64_t i;
    OPDI_COLUMN_EACH(
        const uint32_t y = (uint32_t)lines->line[0][j]; const uint32_t x = (uint32_t)lines->line[1][j];
        const int32_t inside = -(int32_t)((y < height) & (x < width));
        block->at[j] = (int32_t)(y * width + x) & inside;
        block->mask[j] = (OPDI_BITS)(int64_t)inside)
}
/* Does the work of grid_block_set with vectors, if an index into a channel fits into 32 bits.  Returns false, without a
   result, if it cannot. */
static bool OPDI_TYPED(grid_block_vectors)(const opdi_grid *grid, int64_t place, OPDI_TYPED(grid_block) *block) {
    OPDI_TYPED(grid_lines) lines;
    if (!opdi_has_vectors() || grid->in[0] > INT32_MAX / 2 / grid->in[1] || grid->in[1] < block->columns ||
        block->windows > 4 || !OPDI_TYPED(grid_lines_set)(grid, place, block->wide, &lines, block->lost)) {
        return false;
    }
    if (block->columns == 1) { OPDI_TYPED(grid_nearest)(grid, &lines, block); }
    else { OPDI_TYPED(grid_windows)(grid, &lines, block); }
    return true;
}
/* Sets window number n of *block to the taps in columns at[block->columns] (-1 if outside) of the image's row `row`. */
static void OPDI_TYPED(grid_window_set)(const opdi_grid *grid, int64_t n, int64_t row, OPDI_T across,
                                        const OPDI_TYPED(grid_taps) *taps, OPDI_TYPED(grid_block) *block) {
    const int64_t columns = block->columns, last = OPDI_MAX(grid->in[0] * grid->in[1] - columns, (int64_t)0);
    block->at[n] = 0;
    for (int64_t k = columns; k-- > 0;) {
        block->mask[n * columns + k] = 0;
        block->weight[n * columns + k] = 0;
        if (row >= 0 && taps->at[k] >= 0) { block->at[n] = OPDI_MIN(row * grid->in[1] + taps->at[k], last); }
    }
    for (int64_t k = 0; k < columns; k++) {
        if (row < 0 || taps->at[k] < 0) { continue; }
        const int64_t element = n * columns + row * grid->in[1] + taps->at[k] - block->at[n];
        block->mask[element] = (OPDI_BITS)0 - (OPDI_BITS)1;
        block->weight[element] = across * taps->weight[k];
    }
}
/* Fills *block for points from number `place` on. */
static void OPDI_TYPED(grid_block_set)(const opdi_grid *grid, int64_t place, OPDI_TYPED(grid_block) *block) {
    if (OPDI_TYPED(grid_block_vectors)(grid, place, block)) { return; }
    for (int64_t i = 0; i < block->wide; i++) {
        OPDI_TYPED(grid_taps) taps[2];
        OPDI_TYPED(grid_places)(grid, place + i, taps);
        block->lost[i] = taps[0].lost + taps[1].lost;
        int64_t n = i;
        for (int row = 0; row < taps[0].count; row++) {
            if (block->columns > 1) {
                OPDI_TYPED(grid_window_set)(grid, n, taps[0].at[row], taps[0].weight[row], &taps[1], block);
                n += block->wide;
                continue;
            }
            for (int column = 0; column < taps[1].count; column++, n += block->wide) {
                const bool inside = taps[0].at[row] >= 0 && taps[1].at[column] >= 0;
                block->at[n] = inside ? taps[0].at[row] * grid->in[1] + taps[1].at[column] : 0;
                block->mask[n] = (OPDI_BITS)0 - (OPDI_BITS)inside;
                block->weight[n] = inside ? taps[0].weight[row] * taps[1].weight[column] : 0;
            }
        }
    }
}
/* Copies windows of `columns` elements of the channel x to `read`. */
OPDI_ALWAYS void OPDI_TYPED(grid_windows_read)(const OPDI_TYPED(grid_block) *block, int columns, const OPDI_T *x,
                                               OPDI_BITS *read) {
    const int64_t count = block->windows * block->wide;
    OPDI_UNROLL
    for (int64_t n = 0; n < count; n++) {
        memcpy(read + n * columns, x + block->at[n], (size_t)columns * sizeof *x);
    }
}
/* Computes the points y[block->wide] of the channel x.  All windows are copied before they are used, because memory
   that has just been written by elements is slow to read by vectors. */
OPDI_ALWAYS void OPDI_TYPED(grid_block_sum)(const OPDI_TYPED(grid_block) *block, const OPDI_T *x, OPDI_T *y) {
    OPDI_BITS read[OPDI_GRID_TAPS];
    OPDI_T sum[OPDI_GRID_TAPS];
    const OPDI_T *const lost = block->lost;
    const int64_t row = block->wide * block->columns, all = row * block->windows;
    int64_t count = row;
    if (block->columns == 1) { OPDI_TYPED(grid_windows_read)(block, 1, x, read); }
    else if (block->columns == 2) { OPDI_TYPED(grid_windows_read)(block, 2, x, read); }
    else { OPDI_TYPED(grid_windows_read)(block, 4, x, read); }
    memset(sum, 0, (size_t)row * sizeof *sum);
    for (int64_t first = 0; first < all; first += row) {
        const OPDI_T *const weight = block->weight + first;
        const OPDI_BITS *const mask = block->mask + first, *const bits = read + first;
        int64_t i;
        OPDI_COLUMN_EACH(
            const OPDI_BITS known = bits[j] & mask[j]; OPDI_T value; memcpy(&value, &known, sizeof value);
            sum[j] += weight[j] * value)
    }
    count = block->wide;
    int64_t i;
    if (block->columns == 1) { OPDI_COLUMN_EACH(y[j] = lost[j] + sum[j]) }
    else if (block->columns == 2) { OPDI_COLUMN_EACH(y[j] = lost[j] + (sum[2 * j] + sum[2 * j + 1])) }
    else {
        OPDI_COLUMN_EACH(y[j] = lost[j] + ((sum[4 * j] + sum[4 * j + 1]) + (sum[4 * j + 2] + sum[4 * j + 3])))
    }
}
static void OPDI_TYPED(grid_sum_plain)(const OPDI_TYPED(grid_block) *block, const OPDI_T *x, OPDI_T *y) {
    OPDI_TYPED(grid_block_sum)(block, x, y);
}
OPDI_VECTOR_LOOP static void OPDI_TYPED(grid_sum_vectors)(const OPDI_TYPED(grid_block) *block, const OPDI_T *x,
                                                          OPDI_T *y) {
    OPDI_TYPED(grid_block_sum)(block, x, y);
}
/* Does the work of grid_block_sum in nearest mode, where each point is an element of x, or 0. */
static void OPDI_TYPED(grid_block_copy)(const OPDI_TYPED(grid_block) *block, const OPDI_T *x, OPDI_T *y) {
    const int64_t count = block->wide;
    OPDI_UNROLL
    for (int64_t i = 0; i < count; i++) {
        OPDI_BITS bits;
        memcpy(&bits, x + block->at[i], sizeof bits);
        bits &= block->mask[i];
        memcpy(y + i, &bits, sizeof bits);
    }
}
/* Computes rows [begin, end) of the output, counted over all images, in all channels.  In bicubic mode with padding by
   border or reflection, several taps of a point can be the same element.  Their products are added one by one, because
   they may be infinite and of different sign: so each window has one element. */
static void OPDI_TYPED(grid_rows)(void *ctx, int64_t begin, int64_t end) {
    const opdi_grid *grid = (const opdi_grid *)ctx;
    const int64_t area = grid->in[0] * grid->in[1], points = grid->out[0] * grid->out[1];
    const bool nearest = grid->how == OPDI_GRID_NEAREST, two = grid->how == OPDI_GRID_BILINEAR;
    OPDI_TYPED(grid_block) block;
    block.columns = nearest ? 1 : two ? 2 : grid->outside == OPDI_GRID_ZEROS ? 4 : 1;
    block.windows = nearest ? 1 : two ? 2 : 16 / block.columns;
    for (int64_t place = begin * grid->out[1]; place < end * grid->out[1]; place += block.wide) {
        const int64_t image = place / points, at = place % points;
        block.wide = OPDI_MIN(OPDI_GRID_TAPS / (block.columns * block.windows), (int64_t)OPDI_GRID_WIDE);
        block.wide = OPDI_MIN(block.wide, OPDI_MIN(points - at, end * grid->out[1] - place));
        OPDI_TYPED(grid_block_set)(grid, place, &block);
        for (int64_t channel = image * grid->c; channel < (image + 1) * grid->c; channel++) {
            const OPDI_T *x = (const OPDI_T *)grid->input + channel * area;
            OPDI_T *y = (OPDI_T *)grid->output + channel * points + at, few[4] = {0, 0, 0, 0};
            if (area < block.columns) {           /* a window would be larger than the image */
                memcpy(few, x, (size_t)area * sizeof *x);
                x = few;
            }
            if (nearest) { OPDI_TYPED(grid_block_copy)(&block, x, y); }
            else if (opdi_has_vectors()) { OPDI_TYPED(grid_sum_vectors)(&block, x, y); }
            else { OPDI_TYPED(grid_sum_plain)(&block, x, y); }
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
