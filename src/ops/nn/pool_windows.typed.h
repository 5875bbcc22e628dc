/* Returns x if `take` is true, else y, without a branch: which element of a window is the largest is hard to
   foresee. */
OPDI_ALWAYS OPDI_T OPDI_TYPED(pool_pick)(bool take, OPDI_T x, OPDI_T y) {
    OPDI_BITS first, second;
    memcpy(&first, &x, sizeof x);
    memcpy(&second, &y, sizeof y);
    second ^= (first ^ second) & ((OPDI_BITS)0 - (OPDI_BITS)take);
    memcpy(&y, &second, sizeof y);
    return y;
}
static void OPDI_TYPED(max_pool_2x2)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t *at) {
    const int64_t width = windows->in[2];
    for (int64_t batch = 0; batch < windows->out[1]; batch++) {
        for (int64_t channel = 0; channel < windows->out[2]; channel++) {
            const int64_t place = 2 * batch * width + 2 * channel;
            const OPDI_T e = x[place], f = x[place + 1], grad = x[place + width], h = x[place + width + 1];
            const bool right = (f > e) | OPDI_IS_NAN(f), down = (h > grad) | OPDI_IS_NAN(h);
            const OPDI_T m = OPDI_TYPED(pool_pick)(right, f, e), n = OPDI_TYPED(pool_pick)(down, h, grad);
            const bool lower = (n > m) | OPDI_IS_NAN(n);
            *y++ = OPDI_TYPED(pool_pick)(lower, n, m);
            *at++ = place + right + ((width + down - right) & -(int64_t)lower);
        }
    }
}
/* Writes the largest element of each window of the plane x to y, and the position of that element in the plane to `at`.
   NaN counts as the largest.  If windows are `narrow`, there are no branches; in larger ones, most branches are the
   same. */
OPDI_ALWAYS void OPDI_TYPED(max_pool_sized)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t *at,
                                            bool narrow) {
    int64_t first, second, channels;
    OPDI_POOL_EACH(windows, first, second, channels) {
        int64_t best = (windows->lo[0][first] * windows->in[1] + windows->lo[1][second]) * windows->in[2] +
            windows->lo[2][channels];
        OPDI_T top = OPDI_LOWEST;
        for (int64_t i = windows->lo[0][first]; i < windows->hi[0][first]; i += windows->dilation[0]) {
            for (int64_t j = windows->lo[1][second]; j < windows->hi[1][second]; j += windows->dilation[1]) {
                for (int64_t k = windows->lo[2][channels]; k < windows->hi[2][channels]; k += windows->dilation[2]) {
                    const int64_t place = (i * windows->in[1] + j) * windows->in[2] + k;
                    const bool take = (x[place] > top) | OPDI_IS_NAN(x[place]);
                    if (narrow) {
                        top = OPDI_TYPED(pool_pick)(take, x[place], top);
                        best ^= (best ^ place) & -(int64_t)take;
                    } else if (take) {
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
/* Sets *top and *row, the largest element of a column and the start of its row, to `value` and `line` if value is
   larger or NaN. */
OPDI_ALWAYS void OPDI_TYPED(max_pool_column)(OPDI_T value, int32_t line, OPDI_T *top, int32_t *row) {
    const OPDI_T before = *top;
    *row = ((value > before) | OPDI_IS_NAN(value)) ? line : *row;
    *top = ((value > before) | OPDI_IS_NAN(value)) ? value : before;
}
/* Returns the position of the largest element of a window: of `most`, whose position is `at`, and of every `step`-th of
   the columns [begin, end), whose largest elements and starts of rows are in tops and rows.  Column number 0 is column
   `from` of the plane.  Of several equal elements, the first counts, and of several NaN the last. */
OPDI_ALWAYS int64_t OPDI_TYPED(max_pool_best)(const OPDI_T *tops, const int32_t *rows, int64_t begin, int64_t end,
                                              int64_t step, int64_t from, OPDI_T most, int64_t at) {
    OPDI_T top = most;
    int unknown = OPDI_IS_NAN(most);
    for (int64_t k = begin; k < end; k += step) {
        unknown |= OPDI_IS_NAN(tops[k]);
        top = tops[k] > top ? tops[k] : top;
    }
    if (unknown) {
        int64_t last = OPDI_IS_NAN(most) ? at : 0;
        for (int64_t k = begin; k < end; k += step) {
            if (OPDI_IS_NAN(tops[k])) { last = OPDI_MAX(last, rows[k] + from + k); }
        }
        return last;
    }
    int64_t best = most == top ? at : INT64_MAX;
    for (int64_t k = begin; k < end; k += step) {
        const int64_t place = (rows[k] + from + k) | (INT64_MAX & -(int64_t)(tops[k] != top));
        best = OPDI_MIN(best, place);
    }
    return best;
}
/* Does the work of max_pool for line (first, second) of the output, whose elements and positions are y and at.  First
   finds the largest element of each column and the start of its row, 256 columns at a time, and then the largest of the
   columns of each window.  Of several equal elements, the position is that of the first; of several NaN, of the
   last. */
static void OPDI_TYPED(max_pool_line)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t *at,
                                      int64_t first, int64_t second) {
    const int64_t start = (windows->lo[0][first] * windows->in[1] + windows->lo[1][second]) * windows->in[2];
    const int64_t step = windows->dilation[2];
    const bool empty = windows->lo[0][first] >= windows->hi[0][first] ||
        windows->lo[1][second] >= windows->hi[1][second];
    for (int64_t c = 0; c < windows->out[2]; c++) {
        y[c] = OPDI_LOWEST;
        at[c] = start + windows->lo[2][c];
    }
    for (int64_t from = 0, count; from < windows->in[2]; from += count) {
        OPDI_T tops[256];
        int32_t rows[256];
        count = OPDI_MIN(windows->in[2] - from, (int64_t)256);
        int64_t i;
        OPDI_COLUMN_EACH(tops[j] = OPDI_LOWEST; rows[j] = (int32_t)start)
        for (int64_t a = windows->lo[0][first]; a < windows->hi[0][first]; a += windows->dilation[0]) {
            for (int64_t b = windows->lo[1][second]; b < windows->hi[1][second]; b += windows->dilation[1]) {
                const int32_t line = (int32_t)((a * windows->in[1] + b) * windows->in[2]);
                const OPDI_T *const row = x + line + from;
                if (count < 16) { OPDI_COLUMN_EACH(OPDI_TYPED(max_pool_column)(row[j], line, &tops[j], &rows[j])) }
                for (int64_t k = 0; count >= 16 && k < count; k += 16) {      /* the last sixteen may be seen twice */
                    const int64_t lanes = OPDI_MIN(k, count - 16);
                    OPDI_IVDEP
                    OPDI_UNROLL
                    for (int lane = 0; lane < 16; lane++) {
                        OPDI_TYPED(max_pool_column)(row[lanes + lane], line, &tops[lanes + lane], &rows[lanes + lane]);
                    }
                }
            }
        }
        for (int64_t c = 0; c < windows->out[2]; c++) {
            const int64_t end = OPDI_MIN(windows->hi[2][c] - from, count), low = windows->lo[2][c] - from;
            if (empty || windows->lo[2][c] >= windows->hi[2][c]) { continue; }
            at[c] = OPDI_TYPED(max_pool_best)(tops, rows, low < 0 ? low + (step - 1 - low) / step * step : low, end,
                                              step, from, y[c], at[c]);
            y[c] = x[at[c]];
        }
    }
}
static void OPDI_TYPED(max_pool)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t *at) {
    int64_t elements = 1, columns = 0;            /* of a window in the middle */
    for (int dim = 0; dim < 3; dim++) {
        const int64_t middle = windows->out[dim] / 2;
        columns = (windows->hi[dim][middle] - windows->lo[dim][middle] - 1) / windows->dilation[dim] + 1;
        elements *= columns;
    }
    if (elements <= 9) { OPDI_TYPED(max_pool_sized)(windows, x, y, at, true); }
    else if (columns * windows->out[2] < windows->in[2] / 2 || opdi_vol_area(windows->in) > INT32_MAX) {
        OPDI_TYPED(max_pool_sized)(windows, x, y, at, false);
    } else {
        for (int64_t line = 0; line < windows->out[0] * windows->out[1]; line++) {
            OPDI_TYPED(max_pool_line)(windows, x, y + line * windows->out[2], at + line * windows->out[2],
                                      line / windows->out[1], line % windows->out[1]);
        }
    }
}
/* Does the work of max_pool_inside for windows that are `step` elements apart. */
OPDI_ALWAYS void OPDI_TYPED(max_pool_lanes)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t begin,
                                            int64_t end, int64_t step, bool first) {
    const int64_t next = windows->dilation[2], kernel = windows->kernel[2];
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
        OPDI_T tops[16];
        if (first) { for (int lane = 0; lane < 16; lane++) { tops[lane] = OPDI_LOWEST; } }
        else { memcpy(tops, y + i, sizeof tops); }
        for (int64_t k = 0; k < kernel; k++) {
            const OPDI_T *const from = x + i * step + k * next;
            OPDI_IVDEP
            OPDI_UNROLL
            for (int lane = 0; lane < 16; lane++) {
                const OPDI_T value = from[lane * step];
                tops[lane] = ((value > tops[lane]) | OPDI_IS_NAN(value)) ? value : tops[lane];
            }
        }
        memcpy(y + i, tops, sizeof tops);
    }
    for (; i < end; i++) {
        OPDI_T top = first ? OPDI_LOWEST : y[i];
        for (int64_t k = 0; k < kernel; k++) {
            const OPDI_T value = x[i * step + k * next];
            top = OPDI_TYPED(pool_pick)((value > top) | OPDI_IS_NAN(value), value, top);
        }
        y[i] = top;
    }
}
OPDI_VECTOR_LOOP static void OPDI_TYPED(max_pool_close)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y,
                                                        int64_t begin, int64_t end, bool first) {
    OPDI_TYPED(max_pool_lanes)(windows, x, y, begin, end, 1, first);
}
#if defined(OPDI_X86)
/* Does the work of max_pool_inside for rows of windows of `size` elements, 2 or 3, that touch each other.  Compilers
   read the elements as whole vectors, because all of them are needed.  Returns the first element of y that it has not
   set. */
OPDI_ALWAYS int64_t OPDI_TYPED(max_pool_tiles)(const OPDI_T *x, OPDI_T *y, int64_t begin, int64_t end, int size,
                                               bool first) {
    int64_t i = begin;
    for (; i + 16 <= end; i += 16) {
        OPDI_T tops[16];
        if (first) { for (int lane = 0; lane < 16; lane++) { tops[lane] = OPDI_LOWEST; } }
        else { memcpy(tops, y + i, sizeof tops); }
        OPDI_IVDEP
        for (int lane = 0; lane < 16; lane++) {
            const OPDI_T *const from = x + (i + lane) * size;
            const OPDI_T a = from[0], b = from[1], c = from[size - 1];
            OPDI_T top = tops[lane];
            top = ((a > top) | OPDI_IS_NAN(a)) ? a : top;
            top = ((b > top) | OPDI_IS_NAN(b)) ? b : top;
            if (size == 3) { top = ((c > top) | OPDI_IS_NAN(c)) ? c : top; }
            tops[lane] = top;
        }
        memcpy(y + i, tops, sizeof tops);
    }
    return i;
}
OPDI_AVX512 static int64_t OPDI_TYPED(max_pool_touching)(const OPDI_T *x, OPDI_T *y, int64_t begin, int64_t end,
                                                         int64_t size, bool first) {
    return size == 2 ? OPDI_TYPED(max_pool_tiles)(x, y, begin, end, 2, first)
        : OPDI_TYPED(max_pool_tiles)(x, y, begin, end, 3, first);
}
#endif
/* Sets elements [begin, end) of row y of the output to the largest of the elements of row x of the input in their
   windows and, unless x is the `first` row, of themselves.  No window goes beyond the ends of x. */
static void OPDI_TYPED(max_pool_inside)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t begin,
                                        int64_t end, bool first) {
    const int64_t step = windows->stride[2];
    x -= windows->pad[2];
#if defined(OPDI_X86)
    if ((step == 2 || step == 3) && windows->kernel[2] == step && windows->dilation[2] == 1 && opdi_cpu_level() > 1) {
        begin = OPDI_TYPED(max_pool_touching)(x, y, begin, end, step, first);
    }
#endif
    if (opdi_has_vectors() && step == 1) { OPDI_TYPED(max_pool_close)(windows, x, y, begin, end, first); }
    else { OPDI_TYPED(max_pool_lanes)(windows, x, y, begin, end, step, first); }
}
/* Writes the largest element of each window of the plane x to y.  NaN counts as the largest. */
static void OPDI_TYPED(max_pool_values)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y) {
    const int64_t reach = windows->dilation[2] * (windows->kernel[2] - 1), wide = windows->out[2];
    const int64_t begin = OPDI_MIN((windows->pad[2] + windows->stride[2] - 1) / windows->stride[2], wide);
    const int64_t last = windows->in[2] - 1 - reach + windows->pad[2];
    const int64_t end = last < 0 ? begin : OPDI_MAX(OPDI_MIN(last / windows->stride[2] + 1, wide), begin);
    for (int64_t line = 0; line < windows->out[0] * windows->out[1]; line++, y += wide) {
        const int64_t above = line / windows->out[1], along = line % windows->out[1];
        bool first = true;
        for (int64_t a = windows->lo[0][above]; a < windows->hi[0][above]; a += windows->dilation[0]) {
            for (int64_t b = windows->lo[1][along]; b < windows->hi[1][along]; b += windows->dilation[1]) {
                const OPDI_T *const row = x + (a * windows->in[1] + b) * windows->in[2];
                OPDI_TYPED(max_pool_inside)(windows, row, y, begin, end, first);
                for (int64_t i = begin ? 0 : end; i < wide; i = i + 1 == begin ? end : i + 1) {
                    OPDI_T top = first ? OPDI_LOWEST : y[i];
                    for (int64_t k = windows->lo[2][i]; k < windows->hi[2][i]; k += windows->dilation[2]) {
                        top = row[k] > top || OPDI_IS_NAN(row[k]) ? row[k] : top;
                    }
                    y[i] = top;
                }
                first = false;
            }
        }
        for (int64_t i = 0; i < wide && first; i++) { y[i] = OPDI_LOWEST; }
    }
}
/* Adds the sum of each window of line (first, second) of the output to y[out[2]].  Elements of one column are added
   first, 256 columns at a time. */
static void OPDI_TYPED(avg_pool_line)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y, int64_t first,
                                      int64_t second) {
    for (int64_t from = 0, count; from < windows->in[2]; from += count) {
        OPDI_T sums[256] = {0};
        count = OPDI_MIN(windows->in[2] - from, (int64_t)256);
        for (int64_t a = windows->lo[0][first]; a < windows->hi[0][first]; a++) {
            for (int64_t b = windows->lo[1][second]; b < windows->hi[1][second]; b++) {
                const OPDI_T *const row = x + (a * windows->in[1] + b) * windows->in[2] + from;
                int64_t i;
                OPDI_COLUMN_EACH(sums[j] = OPDI_PLUS(sums[j], row[j]))
            }
        }
        for (int64_t c = 0; c < windows->out[2]; c++) {
            const int64_t end = OPDI_MIN(windows->hi[2][c] - from, count);
            for (int64_t i = OPDI_MAX(windows->lo[2][c] - from, (int64_t)0); i < end; i++) {
                y[c] = OPDI_PLUS(y[c], sums[i]);
            }
        }
    }
}
static void OPDI_TYPED(avg_pool)(const opdi_windows *windows, const OPDI_T *x, OPDI_T *y) {
    for (int64_t first = 0; first < windows->out[0]; first++) {
        for (int64_t second = 0; second < windows->out[1]; second++, y += windows->out[2]) {
            for (int64_t c = 0; c < windows->out[2]; c++) { y[c] = 0; }
            OPDI_TYPED(avg_pool_line)(windows, x, y, first, second);
            for (int64_t c = 0; c < windows->out[2]; c++) {
                const int64_t count = opdi_pool_divisor(windows, first, second, c);
                y[c] = count ? (OPDI_T)(y[c] / (OPDI_T)count) : (OPDI_T)0;
            }
        }
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
