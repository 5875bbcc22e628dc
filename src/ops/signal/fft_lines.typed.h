/* Transforms x [length, 2, lanes].  `scratch` is a second buffer of the same size.  Returns the buffer that has the
   result. */
static OPDI_T *OPDI_TYPED(fft_lanes)(const opdi_fft *fft, const opdi_fft_side *side, OPDI_T *x, OPDI_T *scratch,
                                     int64_t lanes, bool swap) {
    int64_t done = 1;
    for (int i = 0; i < side->count; i++) {
        fft->steps.pass(side, i, done, x, scratch, lanes, swap);
        done *= side->factor[i];
        OPDI_T *other = x;
        x = scratch;
        scratch = other;
    }
    return x;
}
/* Sets *first and *second to the real and imaginary part of element number `step` of the line that begins at `at`.
   If fft->mirror is set, elements that a one-sided transform left out are read as conjugates of their mirror images. */
static void OPDI_TYPED(fft_read)(const opdi_fft *fft, int64_t at, int64_t step, OPDI_T *first, OPDI_T *second) {
    const OPDI_T *x = (const OPDI_T *)fft->from + at;
    const int64_t total = fft->plan->length;
    const bool mirrored = fft->mirror && step >= fft->in;
    const int64_t from = mirrored ? total - step : step;
    const OPDI_T imaginary = fft->xcomplex ? x[from * fft->xstep + 1] : 0;
    *first = x[from * fft->xstep];
    /* a transform of real numbers is real at 0 and, for even lengths, in the middle */
    *second = !fft->mirror ? imaginary : from == 0 || 2 * from == total ? 0 : mirrored ? -imaginary : imaginary;
}
static void OPDI_TYPED(fft_write)(const opdi_fft *fft, int64_t to, int64_t step, OPDI_T first, OPDI_T second) {
    OPDI_T *y = (OPDI_T *)fft->to + to + step * fft->ystep;
    if (step >= fft->out) { return; }
    y[0] = first * (OPDI_T)fft->scale;
    if (fft->ycomplex) { y[1] = second * (OPDI_T)fft->scale; }
}
/* Reads the real and imaginary parts of `count` contiguous elements, from number `first` of x on, to a and b. */
static void OPDI_TYPED(fft_read_run)(const opdi_fft *fft, int64_t first, int64_t count, OPDI_T *a, OPDI_T *b) {
    const OPDI_T *x = (const OPDI_T *)fft->from + first;
    if (fft->xcomplex) {
        fft->steps.split(x, count, a, b);
    } else {
        memcpy(a, x, (size_t)count * sizeof *a);
        memset(b, 0, (size_t)count * sizeof *b);
    }
}
static void OPDI_TYPED(fft_write_run)(const opdi_fft *fft, int64_t first, int64_t count, const OPDI_T *a,
                                      const OPDI_T *b) {
    OPDI_T *y = (OPDI_T *)fft->to + first;
    const OPDI_T scale = (OPDI_T)fft->scale;
    if (fft->ycomplex) { fft->steps.join(a, b, count, fft->scale, y); }
    for (int64_t i = 0; !fft->ycomplex && i < count; i++) { y[i] = a[i] * scale; }
}
/* Reads `count` elements, from number `step` on, of the line that begins at `at`: the real parts to a, the imaginary
   parts to b. */
static void OPDI_TYPED(fft_read_row)(const opdi_fft *fft, int64_t at, int64_t step, int64_t count, OPDI_T *a,
                                     OPDI_T *b) {
    const int64_t total = fft->plan->length;
    int64_t i = 0;
    if (fft->xstep == 1 + fft->xcomplex) {
        i = fft->mirror ? OPDI_MAX(OPDI_MIN(fft->in - step, count), (int64_t)0) : count;
        if (i) { OPDI_TYPED(fft_read_run)(fft, at + step * fft->xstep, i, a, b); }
        if (i && fft->mirror && step == 0) { b[0] = 0; }
        if (fft->mirror && total % 2 == 0 && step <= total / 2 && total / 2 < step + i) { b[total / 2 - step] = 0; }
    }
    if (i < count && fft->mirror && fft->xstep == 2) {                         /* mirrored elements */
        const OPDI_T *x = (const OPDI_T *)fft->from + at + (total - step) * 2;
        for (; i < count; i++) {
            a[i] = x[-2 * i];
            b[i] = -x[-2 * i + 1];
        }
    }
    for (; i < count; i++) { OPDI_TYPED(fft_read)(fft, at, step + i, &a[i], &b[i]); }
}
/* Writes `count` elements with real parts a and imaginary parts b to the line that begins at `to`, from number `step`
   on.  Leaves out elements from fft->out on. */
static void OPDI_TYPED(fft_write_row)(const opdi_fft *fft, int64_t to, int64_t step, int64_t count, const OPDI_T *a,
                                      const OPDI_T *b) {
    count = OPDI_MIN(count, fft->out - step);
    if (fft->ystep == 1 + fft->ycomplex) {
        if (count > 0) { OPDI_TYPED(fft_write_run)(fft, to + step * fft->ystep, count, a, b); }
        return;
    }
    for (int64_t i = 0; i < count; i++) { OPDI_TYPED(fft_write)(fft, to, step + i, a[i], b[i]); }
}
static int64_t OPDI_TYPED(fft_round)(int64_t count) {
    return (count + OPDI_FFT_LANES - 1) / OPDI_FFT_LANES * OPDI_FFT_LANES;
}
/* Returns the number of lanes that a transform of this length processes at a time, if there are `count` lines. */
static int64_t OPDI_TYPED(fft_width)(int64_t length, int64_t count) {
    const int64_t all = OPDI_TYPED(fft_round)(count);
    return length * all <= OPDI_FFT_WHOLE ? all : (int64_t)OPDI_FFT_LANES;
}
/* Returns the number of elements of scratch memory that fft_line needs for this plan. */
static int64_t OPDI_TYPED(fft_scratch_size)(const opdi_fft_plan *plan) {
    const int64_t rows = plan->rows.length, columns = plan->columns.length;
    if (plan->inner) { return 4 * plan->inner->length + OPDI_TYPED(fft_scratch_size)(plan->inner); }
    const int64_t first = rows * OPDI_TYPED(fft_width)(rows, columns);
    const int64_t second = columns * OPDI_TYPED(fft_width)(columns, rows);
    return 4 * OPDI_MAX(first, second) + (columns > 1 ? 2 * columns * OPDI_TYPED(fft_round)(rows) : 0);
}
static void OPDI_TYPED(fft_chirp)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *scratch);
static void OPDI_TYPED(fft_powers)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *scratch);
/* Transforms the columns of a line that is cut into a matrix.  If there are several columns, also multiplies them by
   the twiddle factors and writes them transposed to `middle`. */
static void OPDI_TYPED(fft_columns)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *work, OPDI_T *middle) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->rows.length, columns = plan->columns.length, height = OPDI_TYPED(fft_round)(rows);
    const int64_t width = OPDI_TYPED(fft_width)(rows, columns);
    for (int64_t first = 0; first < columns; first += width) {
        const int64_t count = OPDI_MIN(width, columns - first);
        if (count < width) { memset(work, 0, (size_t)(2 * rows * width) * sizeof *work); }
        for (int64_t row = 0; row < rows; row++) {
            OPDI_T *parts = work + row * 2 * width;
            OPDI_TYPED(fft_read_row)(fft, at, row * columns + first, count, parts, parts + width);
        }
        const OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->rows, work, work + 2 * rows * width, width,
                                                   fft->exchange);
        if (columns > 1) { fft->steps.turn(plan, done, width, first, count, middle, height, fft->exchange); }
        for (int64_t row = 0; columns == 1 && row < rows; row++) {
            OPDI_TYPED(fft_write)(fft, to, row, done[row * 2 * width], done[(row * 2 + 1) * width]);
        }
    }
}
/* Transforms the line of x that begins at `at` to the line of y that begins at `to`.  `scratch` is scratch memory of
   fft_scratch_size elements. */
static void OPDI_TYPED(fft_line)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *scratch) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->rows.length, columns = plan->columns.length, height = OPDI_TYPED(fft_round)(rows);
    if (plan->inner) {
        if (plan->order) { OPDI_TYPED(fft_powers)(fft, at, to, scratch); }
        else { OPDI_TYPED(fft_chirp)(fft, at, to, scratch); }
        return;
    }
    const int64_t width = OPDI_TYPED(fft_width)(rows, columns), depth = OPDI_TYPED(fft_width)(columns, rows);
    OPDI_T *middle = scratch + 4 * OPDI_MAX(rows * width, columns * depth);
    OPDI_TYPED(fft_columns)(fft, at, to, scratch, middle);
    for (int64_t first = 0; columns > 1 && first < rows; first += depth) {
        const int64_t count = OPDI_MIN(depth, rows - first);
        OPDI_T *work = depth < height ? scratch + 2 * columns * depth : middle;
        for (int64_t row = 0; depth < height && row < 2 * columns; row++) {
            memcpy(work + row * depth, middle + row * height + first, (size_t)depth * sizeof *work);
        }
        const OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->columns, work, scratch, depth, fft->exchange);
        for (int64_t row = 0; row < columns && row * rows + first < fft->out; row++) {
            OPDI_TYPED(fft_write_row)(fft, to, row * rows + first, count, done + row * 2 * depth,
                                      done + (row * 2 + 1) * depth);
        }
    }
}
/* Transforms contiguous complex numbers x [length, 2] to y.  If `exchange` is true, x and y have the imaginary part
   first. */
static void OPDI_TYPED(fft_inner)(const opdi_fft_plan *plan, const opdi_fft_steps *steps, bool exchange,
                                  const OPDI_T *x, OPDI_T *y, OPDI_T *scratch) {
    opdi_fft inner;
    memset(&inner, 0, sizeof inner);
    inner.plan = plan;
    inner.steps = *steps;
    inner.in = inner.out = plan->length;
    inner.xstep = inner.ystep = 2;
    inner.xcomplex = inner.ycomplex = true;
    inner.exchange = exchange;
    inner.scale = 1;
    inner.from = x;
    inner.to = y;
    OPDI_TYPED(fft_line)(&inner, 0, 0, scratch);
}
#if OPDI_BYTES == 8
static void opdi_fft_once_f64(const opdi_fft_plan *plan, const double *x, double *y, double *scratch) {
    opdi_fft_steps steps;
    opdi_fft_steps_here(&steps, true);
    opdi_fft_inner_f64(plan, &steps, false, x, y, scratch);
}
#endif
/* Multiplies the complex numbers x [count, 2] by weights [count, 2] and writes the products to y.  If `exchange` is
   true, x and y (not the weights) have the imaginary part first. */
static void OPDI_TYPED(fft_weighted)(const OPDI_T *weights, int64_t count, bool exchange, const OPDI_T *x, OPDI_T *y) {
    const int re = exchange, im = !exchange;
    for (int64_t i = 0; i < 2 * count; i += 2) {
        const OPDI_T a = x[i + re], b = x[i + im], wr = weights[i], wi = weights[i + 1];
        y[i + re] = a * wr - b * wi;
        y[i + im] = a * wi + b * wr;
    }
}
/* Transforms a line by Bluestein's algorithm: a convolution with a chirp, by two transforms of the inner plan. */
static void OPDI_TYPED(fft_chirp)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *scratch) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t count = plan->length, rows = plan->inner->length;
    const OPDI_T *chirp = (const OPDI_T *)plan->chirp, *kernel = (const OPDI_T *)plan->kernel;
    const bool exchange = fft->exchange;
    OPDI_T *a = scratch, *b = scratch + 2 * rows, *rest = b + 2 * rows;
    for (int64_t step = 0; step < count; step++) {
        OPDI_TYPED(fft_read)(fft, at, step, &a[2 * step], &a[2 * step + 1]);
    }
    OPDI_TYPED(fft_weighted)(chirp, count, exchange, a, a);
    memset(a + 2 * count, 0, (size_t)(2 * (rows - count)) * sizeof *a);
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, exchange, a, b, rest);
    OPDI_TYPED(fft_weighted)(kernel, rows, exchange, b, b);
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, !exchange, b, a, rest);    /* the inverse transform */
    OPDI_TYPED(fft_weighted)(chirp, count, exchange, a, a);
    for (int64_t step = 0; step < count; step++) {
        OPDI_TYPED(fft_write)(fft, to, step, a[2 * step], a[2 * step + 1]);
    }
}
/* Transforms a line of n points by Rader's algorithm; n is prime.  g is a primitive root modulo n.  Elements 1 .. n
   - 1, in the order g^0, g^1, ..., are convolved with exp(-2 pi i g^-q / n).  Result q of the convolution belongs to
   output g^-q. */
static void OPDI_TYPED(fft_powers)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *scratch) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->inner->length;
    const OPDI_T *kernel = (const OPDI_T *)plan->kernel;
    const int32_t *order = plan->order;
    OPDI_T *a = scratch, *b = scratch + 2 * rows, *rest = b + 2 * rows, first, second;
    OPDI_TYPED(fft_read)(fft, at, 0, &first, &second);
    for (int64_t k = 0; k < rows; k++) { OPDI_TYPED(fft_read)(fft, at, order[k], &a[2 * k], &a[2 * k + 1]); }
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, fft->exchange, a, b, rest);
    const OPDI_T re = b[0] + first, im = b[1] + second;
    OPDI_TYPED(fft_weighted)(kernel, rows, fft->exchange, b, b);
    b[0] += first;
    b[1] += second;
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, !fft->exchange, b, a, rest);
    OPDI_TYPED(fft_write)(fft, to, 0, re, im);
    for (int64_t q = 0; q < rows; q++) {
        OPDI_TYPED(fft_write)(fft, to, order[q ? rows - q : 0], a[2 * q], a[2 * q + 1]);
    }
}
/* Returns true if the `count` starts of lines in at[] are each `apart` numbers from the next one. */
static bool OPDI_TYPED(fft_even)(const int64_t *at, int64_t count, int64_t apart) {
    for (int64_t lane = 1; lane < count; lane++) { if (at[lane] != at[0] + lane * apart) { return false; } }
    return true;
}
/* Reads `count` lines into rows x [pairs, 2, lanes].  A real line of 2 n numbers is read as n pairs of neighbouring
   numbers.  If fft->mirror is set, the line is instead the first half of the transform of a real line: n + 1 complex
   numbers.  The first and the last of these are real, so the last one is stored as the first one's imaginary part. */
static void OPDI_TYPED(fft_read_halves)(const opdi_fft *fft, const int64_t *at, int64_t count, OPDI_T *x) {
    const OPDI_T *from = (const OPDI_T *)fft->from;
    const int64_t pairs = fft->plan->length, apart = count > 1 ? at[1] - at[0] : 0;
    const int64_t pair = fft->mirror ? fft->xstep : 2 * fft->xstep, second = fft->mirror ? 1 : fft->xstep;
    const bool fast = pair == 2 && second == 1 && count == OPDI_FFT_LANES && OPDI_TYPED(fft_even)(at, count, apart);
    if (fast) { fft->steps.in(from + at[0], apart, pairs, x); }
    for (int64_t step = 0; !fast && step < pairs; step++) {
        OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        for (int64_t lane = 0; lane < count; lane++) {
            a[lane] = from[at[lane] + step * pair];
            b[lane] = from[at[lane] + step * pair + second];
        }
    }
    for (int64_t lane = 0; fft->mirror && lane < count; lane++) {
        x[OPDI_FFT_LANES + lane] = from[at[lane] + pairs * pair];
    }
}
/* Writes rows x [pairs, 2, lanes] to lines.  If fft->mirror is set, these are pairs of real numbers.  Otherwise they
   are the first half of the transforms of real lines, whose last number is taken from the imaginary part of the
   first. */
static void OPDI_TYPED(fft_write_halves)(const opdi_fft *fft, const int64_t *to, int64_t count, OPDI_T *x) {
    OPDI_T *out = (OPDI_T *)fft->to;
    const OPDI_T scale = (OPDI_T)fft->scale;
    const int64_t pairs = fft->plan->length, apart = count > 1 ? to[1] - to[0] : 0;
    const int64_t pair = fft->mirror ? 2 * fft->ystep : fft->ystep, second = fft->mirror ? fft->ystep : 1;
    for (int64_t lane = 0; !fft->mirror && lane < count; lane++) {
        out[to[lane] + pairs * pair] = x[OPDI_FFT_LANES + lane] * scale;
        out[to[lane] + pairs * pair + second] = 0;
        x[OPDI_FFT_LANES + lane] = 0;
    }
    if (pair == 2 && second == 1 && count == OPDI_FFT_LANES && OPDI_TYPED(fft_even)(to, count, apart)) {
        fft->steps.out(x, apart, pairs, fft->scale, out + to[0]);
        return;
    }
    for (int64_t step = 0; step < pairs; step++) {
        const OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        for (int64_t lane = 0; lane < count; lane++) {
            out[to[lane] + step * pair] = a[lane] * scale;
            out[to[lane] + step * pair + second] = b[lane] * scale;
        }
    }
}
/* Reads the `count` lines that begin at at[] as rows x [length, 2, lanes]. */
static void OPDI_TYPED(fft_read_group)(const opdi_fft *fft, const int64_t *at, int64_t count, OPDI_T *x) {
    const int64_t total = fft->plan->length, apart = count > 1 ? at[1] - at[0] : 0;
    const bool beside = !fft->mirror && OPDI_TYPED(fft_even)(at, count, 1 + fft->xcomplex);
    if (!fft->mirror && fft->xcomplex && fft->xstep == 2 && count == OPDI_FFT_LANES && !beside &&
        OPDI_TYPED(fft_even)(at, count, apart)) {
        fft->steps.in((const OPDI_T *)fft->from + at[0], apart, total, x);
        return;
    }
    for (int64_t step = 0; step < total; step++) {
        OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        if (beside) { OPDI_TYPED(fft_read_run)(fft, at[0] + step * fft->xstep, count, a, b); }
        for (int64_t lane = 0; !beside && lane < count; lane++) {
            OPDI_TYPED(fft_read)(fft, at[lane], step, a + lane, b + lane);
        }
    }
}
static void OPDI_TYPED(fft_write_group)(const opdi_fft *fft, const int64_t *to, int64_t count, const OPDI_T *x) {
    const int64_t apart = count > 1 ? to[1] - to[0] : 0;
    const bool beside = OPDI_TYPED(fft_even)(to, count, 1 + fft->ycomplex);
    if (fft->ycomplex && fft->ystep == 2 && count == OPDI_FFT_LANES && !beside &&
        OPDI_TYPED(fft_even)(to, count, apart)) {
        fft->steps.out(x, apart, fft->out, fft->scale, (OPDI_T *)fft->to + to[0]);
        return;
    }
    for (int64_t step = 0; step < fft->out; step++) {
        const OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        if (beside) { OPDI_TYPED(fft_write_run)(fft, to[0] + step * fft->ystep, count, a, b); }
        for (int64_t lane = 0; !beside && lane < count; lane++) {
            OPDI_TYPED(fft_write)(fft, to[lane], step, a[lane], b[lane]);
        }
    }
}
/* Transforms several lines by Bluestein's algorithm, as fft_chirp transforms a single one.  x [rows, 2, lanes] has at
   least as many rows as the inner plan.  `scratch` is a second buffer of the same size.  Returns the buffer that has
   the result. */
static OPDI_T *OPDI_TYPED(fft_group_chirp)(const opdi_fft *fft, OPDI_T *x, OPDI_T *scratch, bool swap) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t total = plan->length, rows = plan->inner->length;
    fft->steps.times(plan->chirp, total, x, swap);
    memset(x + total * 2 * OPDI_FFT_LANES, 0, (size_t)((rows - total) * 2 * OPDI_FFT_LANES) * sizeof *x);
    OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, x, scratch, OPDI_FFT_LANES, swap);
    fft->steps.times(plan->kernel, rows, done, swap);
    done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, done, done == x ? scratch : x, OPDI_FFT_LANES, !swap);
    fft->steps.times(plan->chirp, total, done, swap);
    return done;
}
static OPDI_T *OPDI_TYPED(fft_group_powers)(const opdi_fft *fft, OPDI_T *x, OPDI_T *scratch, bool swap) {
    enum { ROW = 2 * OPDI_FFT_LANES };
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->inner->length;
    OPDI_T first[ROW], all[ROW];
    memcpy(first, x, sizeof first);
    for (int64_t k = 0; k < rows; k++) { memcpy(scratch + k * ROW, x + plan->order[k] * ROW, sizeof first); }
    OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, scratch, x, OPDI_FFT_LANES, swap);
    for (int i = 0; i < ROW; i++) { all[i] = done[i] + first[i]; }
    fft->steps.times(plan->kernel, rows, done, swap);
    for (int i = 0; i < ROW; i++) { done[i] += first[i]; }
    done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, done, done == x ? scratch : x, OPDI_FFT_LANES, !swap);
    OPDI_T *other = done == x ? scratch : x;
    memcpy(other, all, sizeof all);
    for (int64_t q = 0; q < rows; q++) {
        memcpy(other + plan->order[q ? rows - q : 0] * ROW, done + q * ROW, sizeof first);
    }
    return other;
}
/* Transforms x [rows, 2, lanes], whose lines have the plan's length.  Returns the address of the result, in x or in
   the buffer after it. */
static OPDI_T *OPDI_TYPED(fft_group_run)(const opdi_fft *fft, OPDI_T *x, int64_t rows) {
    OPDI_T *scratch = x + rows * 2 * OPDI_FFT_LANES;
    if (!fft->plan->inner) {
        return OPDI_TYPED(fft_lanes)(fft, &fft->plan->rows, x, scratch, OPDI_FFT_LANES, fft->exchange);
    }
    return fft->plan->order ? OPDI_TYPED(fft_group_powers)(fft, x, scratch, fft->exchange)
        : OPDI_TYPED(fft_group_chirp)(fft, x, scratch, fft->exchange);
}
/* Transforms `count` lines (at most OPDI_FFT_LANES) side by side.  Line i begins at fft->from + at[i], and its
   transform at fft->to + to[i], counted in numbers.  `x` is scratch memory. */
static void OPDI_TYPED(fft_group)(const opdi_fft *fft, const int64_t *at, const int64_t *to, int64_t count, OPDI_T *x) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->inner ? OPDI_MAX(plan->inner->length, plan->length) : plan->length;
    if (count < OPDI_FFT_LANES) { memset(x, 0, (size_t)(rows * 2 * OPDI_FFT_LANES) * sizeof *x); }
    if (!fft->halves) {
        OPDI_TYPED(fft_read_group)(fft, at, count, x);
        OPDI_TYPED(fft_write_group)(fft, to, count, OPDI_TYPED(fft_group_run)(fft, x, rows));
        return;
    }
    OPDI_TYPED(fft_read_halves)(fft, at, count, x);
    if (fft->mirror) { fft->steps.real(fft->turn, plan->length, true, x, false); }
    x = OPDI_TYPED(fft_group_run)(fft, x, rows);
    if (!fft->mirror) { fft->steps.real(fft->turn, plan->length, false, x, false); }
    OPDI_TYPED(fft_write_halves)(fft, to, count, x);
}
/* Transforms groups [begin, end) of lines of ctx, an opdi_fft.  Sets `failed` if memory runs out. */
static void OPDI_TYPED(fft_range)(void *ctx, int64_t begin, int64_t end) {
    opdi_fft *fft = (opdi_fft *)ctx;
    const int64_t most = fft->side_by_side ? OPDI_FFT_LANES : 1;
    const size_t scratch = (size_t)OPDI_TYPED(fft_scratch_size)(fft->plan) * sizeof(OPDI_T);
    OPDI_T *x = (OPDI_T *)(void *)opdi_scratch_alloc(scratch);
    if (!x) {
        OPDI_STORE(&fft->failed, 1);
        return;
    }
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * most, count = OPDI_MIN(most, fft->lines - first);
        int64_t at[OPDI_FFT_MOST], to[OPDI_FFT_MOST];
        for (int lane = 0; lane < count; lane++) {
            int64_t rest = first + lane;
            at[lane] = to[lane] = 0;
            for (int dim = fft->ndim - 1; dim >= 0; dim--) {
                at[lane] += rest % fft->sizes[dim] * fft->xs[dim];
                to[lane] += rest % fft->sizes[dim] * fft->ys[dim];
                rest /= fft->sizes[dim];
            }
        }
        if (fft->side_by_side) { OPDI_TYPED(fft_group)(fft, at, to, count, x); }
        else { OPDI_TYPED(fft_line)(fft, at[0], to[0], x); }
    }
    opdi_scratch_free((char *)x, scratch);
}
