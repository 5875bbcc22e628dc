#include "../ops.h"

//-- softmax --------------------------------------------------------------------------------------------- >>op:_softmax

/* Returns the largest of `count` > 0 elements, ignoring NaN.  The caller notices a NaN later: in the sum of the
   exponentials. */
OPDI_ALWAYS float opdi_line_max_body(const float *x, int64_t count) {
    float a[32];
    int64_t i = 0;
    for (int j = 0; j < 32; j++) { a[j] = -HUGE_VALF; }
    for (; i + 32 <= count; i += 32) {
        OPDI_UNROLL
        for (int j = 0; j < 32; j++) { a[j] = x[i + j] > a[j] ? x[i + j] : a[j]; }
    }
    for (; i < count; i++) { a[0] = x[i] > a[0] ? x[i] : a[0]; }
    OPDI_UNROLL
    for (int j = 0; j < 16; j++) { a[j] = a[j + 16] > a[j] ? a[j + 16] : a[j]; }
    for (int j = 0; j < 8; j++) { a[j] = a[j + 8] > a[j] ? a[j + 8] : a[j]; }
    for (int j = 1; j < 8; j++) { a[0] = a[j] > a[0] ? a[j] : a[0]; }
    return a[0];
}
/* Computes out = (x - c) * k for `count` elements. */
OPDI_ALWAYS void opdi_line_affine_body(float *out, const float *x, float c, float k, int64_t count) {
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        OPDI_IVDEP
        for (int j = 0; j < 32; j++) { out[i + j] = (x[i + j] - c) * k; }
    }
    for (; i < count; i++) { out[i] = (x[i] - c) * k; }
}
OPDI_ALWAYS void opdi_line_affine64_body(double *out, const double *x, double c, double k, int64_t count) {
    int64_t i;
    OPDI_SIXTEENS(out[j] = (x[j] - c) * k)
    for (; i < count; i++) { out[i] = (x[i] - c) * k; }
}
/* Computes out = (x - c) - k for `count` elements. */
OPDI_ALWAYS void opdi_line_less_body(float *out, const float *x, float c, float k, int64_t count) {
    int64_t i;
    OPDI_SIXTEENS(out[j] = (x[j] - c) - k)
    for (; i < count; i++) { out[i] = (x[i] - c) - k; }
}
/* Returns the sum of x[i] * y[i] over `count` elements. */
OPDI_ALWAYS double opdi_line_dot_body(const float *x, const float *y, int64_t count) {
    double total = 0;
    float a[32];
    int64_t i = 0;
    while (i < count) {
        int64_t rows = OPDI_MIN(count, i + 2048);
        if (i + 32 <= rows) {
            for (int j = 0; j < 32; j++) { a[j] = x[i + j] * y[i + j]; }
            i += 32;
        } else { memset(a, 0, sizeof a); }
        for (; i + 32 <= rows; i += 32) {
            OPDI_UNROLL
            for (int j = 0; j < 32; j++) { a[j] += x[i + j] * y[i + j]; }
        }
        for (; i < rows; i++) { a[0] += x[i] * y[i]; }
        OPDI_UNROLL
        for (int j = 0; j < 16; j++) { a[j] += a[j + 16]; }
        for (int j = 0; j < 8; j++) { a[j] += a[j + 8]; }
        for (int j = 0; j < 8; j++) { total += (double)a[j]; }
    }
    return total;
}
#if defined(OPDI_X86)
OPDI_AVX2 static float opdi_line_max_avx2(const float *x, int64_t count) { return opdi_line_max_body(x, count); }
OPDI_AVX2 static void opdi_line_affine_avx2(float *out, const float *x, float c, float k, int64_t count) {
    opdi_line_affine_body(out, x, c, k, count);
}
OPDI_AVX2 static double opdi_line_dot_avx2(const float *x, const float *y, int64_t count) {
    return opdi_line_dot_body(x, y, count);
}
OPDI_AVX2 static void opdi_line_affine64_avx2(double *out, const double *x, double c, double k, int64_t count) {
    opdi_line_affine64_body(out, x, c, k, count);
}
OPDI_AVX2 static void opdi_line_less_avx2(float *out, const float *x, float c, float k, int64_t count) {
    opdi_line_less_body(out, x, c, k, count);
}
#else
#endif
OPDI_INTERNAL float opdi_line_max(const float *x, int64_t count) {
    OPDI_LINE_WIDE(return opdi_line_max_avx2(x, count))
    return opdi_line_max_body(x, count);
}
OPDI_INTERNAL void opdi_line_affine(float *out, const float *x, float c, float k, int64_t count) {
    OPDI_LINE_WIDE(opdi_line_affine_avx2(out, x, c, k, count); return)
    opdi_line_affine_body(out, x, c, k, count);
}
static void opdi_line_affine64(double *out, const double *x, double c, double k, int64_t count) {
    OPDI_LINE_WIDE(opdi_line_affine64_avx2(out, x, c, k, count); return)
    opdi_line_affine64_body(out, x, c, k, count);
}
static void opdi_line_less(float *out, const float *x, float c, float k, int64_t count) {
    OPDI_LINE_WIDE(opdi_line_less_avx2(out, x, c, k, count); return)
    opdi_line_less_body(out, x, c, k, count);
}
OPDI_INTERNAL double opdi_line_dot(const float *x, const float *y, int64_t count) {
    OPDI_LINE_WIDE(return opdi_line_dot_avx2(x, y, count))
    return opdi_line_dot_body(x, y, count);
}
/* Computes out = x - c * y for `count` elements. */
static void opdi_line_minus(float *out, const float *x, const float *y, float c, int64_t count) {
    int64_t i;
    OPDI_SIXTEENS(out[j] = x[j] - y[j] * c)
    for (; i < count; i++) { out[i] = x[i] - y[i] * c; }
}
OPDI_INTERNAL double opdi_line_sum(const float *x, int64_t count) {
    opdi_folded folded = {0, 0, 0, 0};
    opdi_fold_sum_f32(&folded, x, count, 0, NULL);
    return folded.f;
}
/* The results of passes 0 and 1 of softmax for a line: its largest element (top), and the sum of exp(x - top). */
typedef struct opdi_softmax_state { double top, sum; } opdi_softmax_state;
/* Computes softmax of a line or, if lines->flag is set, log_softmax.  Pass 0 finds the largest element, pass 1 sums the
   exponentials, and pass 2 writes the result; tmp holds the opdi_softmax_state.  If the whole line is one piece and
   lines->flag is not set, pass 1 stores the exponentials in the result. */
static void opdi_line_softmax_f32(const opdi_lines *lines, const opdi_piece *at, const void *const *in,
                                  void *const *out, char *tmp) {
    opdi_softmax_state *state = (opdi_softmax_state *)(void *)tmp;
    const float *x = (const float *)in[0];
    float *o = (float *)out[0], block[1024];
    const int64_t count = at->count;
    const bool whole = count == lines->count;
    int64_t rows;
    if (count == 0) { return; }
    if (at->pass == 0) {
        const double top = (double)opdi_line_max(x, count);
        state->top = at->from == 0 || top > state->top ? top : state->top;
        state->sum = 0;
        return;
    }
    for (int64_t i = 0; i < count && at->pass == 1; i += rows) {
        rows = OPDI_MIN(count - i, (int64_t)1024);
        float *to = lines->flag || !whole ? block : o + i;
        opdi_line_affine(to, x + i, (float)state->top, 1, rows);
        opdi_vexp(rows, to, to);
        state->sum += opdi_line_sum(to, rows);
    }
    if (at->pass == 1) { return; }
    if (!lines->flag && whole) {
        opdi_line_affine(o, o, 0, (float)(1.0 / state->sum), count);
        return;
    }
    for (int64_t i = 0; i < count; i += rows) {
        rows = OPDI_MIN(count - i, (int64_t)1024);
        if (lines->flag) {
            opdi_line_less(o + i, x + i, (float)state->top, (float)opdi_log_f64(state->sum), rows);
            continue;
        }
        opdi_line_affine(o + i, x + i, (float)state->top, 1, rows);
        opdi_vexp(rows, o + i, o + i);
        opdi_line_affine(o + i, o + i, 0, (float)(1.0 / state->sum), rows);
    }
}
/* Does the work of opdi_line_softmax_f32 for float64. */
static void opdi_line_softmax_f64(const opdi_lines *lines, const opdi_piece *at, const void *const *in,
                                  void *const *out, char *tmp) {
    opdi_softmax_state *state = (opdi_softmax_state *)(void *)tmp;
    const double *x = (const double *)in[0];
    double *o = (double *)out[0], block[512];
    const int64_t count = at->count;
    const bool whole = count == lines->count;
    opdi_folded folded = {OPDI_MINUS_INF, 0, 0, 0};
    int64_t rows;
    if (count == 0) { return; }
    if (at->pass == 0) {
        if (at->from != 0) { folded.f = state->top; }
        opdi_fold_max_f64(&folded, x, count, 0, NULL);
        state->top = folded.f;
        state->sum = 0;
        return;
    }
    for (int64_t i = 0; i < count && at->pass == 1; i += rows) {
        rows = OPDI_MIN(count - i, (int64_t)512);
        double *to = lines->flag || !whole ? block : o + i;
        opdi_line_affine64(to, x + i, state->top, 1, rows);
        opdi_vexp64(rows, to, to);
        folded.f = state->sum;
        opdi_fold_sum_f64(&folded, to, rows, 0, NULL);
        state->sum = folded.f;
    }
    if (at->pass == 1) { return; }
    if (!lines->flag && whole) {
        opdi_line_affine64(o, o, 0, 1 / state->sum, count);
        return;
    }
    opdi_line_affine64(o, x, state->top, 1, count);
    if (lines->flag) {
        opdi_line_affine64(o, o, opdi_log_f64(state->sum), 1, count);
        return;
    }
    opdi_vexp64(count, o, o);
    opdi_line_affine64(o, o, 0, 1 / state->sum, count);
}
/* Computes the gradient of softmax for a line, y * (grad - sum(grad * y)), or, if lines->flag is set, the gradient of
   log_softmax, grad - exp(y) * sum(grad).  y is the output.  Pass 0 computes the sum. */
static void opdi_line_softmax_backward_f32(const opdi_lines *lines, const opdi_piece *at, const void *const *in,
                                           void *const *out, char *tmp) {
    opdi_softmax_state *state = (opdi_softmax_state *)(void *)tmp;
    const float *grad = (const float *)in[0], *y = (const float *)in[1], c = at->pass ? (float)state->sum : 0;
    float *to = (float *)out[0], block[256];
    const int64_t count = at->count;
    int64_t rows;
    if (at->pass == 0) {
        state->sum = (at->from ? state->sum : 0) + (lines->flag ? opdi_line_sum(grad, count) : opdi_line_dot(grad, y,
            count));
        return;
    }
    for (int64_t i = 0; i < count; i += rows) {
        rows = OPDI_MIN(count - i, (int64_t)256);
        if (lines->flag) {
            opdi_vexp(rows, block, y + i);
            opdi_line_minus(to + i, grad + i, block, c, rows);
        } else {
            void *data[3];
            opdi_line_affine(block, grad + i, c, 1, rows);
            data[0] = to + i;
            data[1] = block;
            data[2] = (void *)(uintptr_t)(y + i);
            opdi_f32_mul(data, rows, &opdi_no_params);
        }
    }
}
static void opdi_line_softmax_backward_f64(const opdi_lines *lines, const opdi_piece *at, const void *const *in,
                                           void *const *out, char *tmp) {
    opdi_softmax_state *state = (opdi_softmax_state *)(void *)tmp;
    const double *grad = (const double *)in[0], *y = (const double *)in[1];
    double *to = (double *)out[0];
    double block[256];
    int64_t i, rows;
    if (at->pass == 0 && at->from == 0) { state->sum = 0; }
    for (int64_t from = 0; from < at->count; from += rows) {
        const int64_t count = rows = OPDI_MIN(at->count - from, (int64_t)256);
        opdi_folded folded = {state->sum, 0, 0, 0};
        const double *first = grad + from, *second = y + from, c = state->sum;
        if (at->pass == 0 && lines->flag) { opdi_fold_sum_f64(&folded, first, count, 0, NULL); }
        else if (at->pass == 0) {
            OPDI_SIXTEENS(block[j] = first[j] * second[j])
            for (; i < count; i++) { block[i] = first[i] * second[i]; }
            opdi_fold_sum_f64(&folded, block, count, 0, NULL);
        } else if (lines->flag) {
            opdi_vexp64(count, block, second);
            OPDI_SIXTEENS(to[from + j] = first[j] - block[j] * c)
            for (; i < count; i++) { to[from + i] = first[i] - block[i] * c; }
        } else {
            OPDI_SIXTEENS(to[from + j] = second[j] * (first[j] - c))
            for (; i < count; i++) { to[from + i] = second[i] * (first[i] - c); }
        }
        state->sum = folded.f;
    }
}
/* Softmax of lines that lie side by side in memory, for up to OPDI_COLUMNS lines at a time.  The lines are the columns
   of a matrix, whose row i has element i of each line.

   A step processes one row x (and y); `to` is the output row. TOP: top = max(top, x). LESS: to = x - top. LOG: to =
   x - top - factor. TIMES: to = x * factor. PART: adds `to`, the partial sums, to sum, and sets them to 0. SUM: sum
   += x. DOT: sum += x * y. BACK: to = y * (x - factor). LOG_BACK: to = x - y * factor. ADD: sum += x; to = sum. */
enum { OPDI_COLUMN_TOP, OPDI_COLUMN_LESS, OPDI_COLUMN_LOG, OPDI_COLUMN_TIMES, OPDI_COLUMN_PART, OPDI_COLUMN_SUM,
       OPDI_COLUMN_DOT, OPDI_COLUMN_BACK, OPDI_COLUMN_LOG_BACK, OPDI_COLUMN_ADD };
typedef struct opdi_columns {
    float top[OPDI_COLUMNS], factor[OPDI_COLUMNS], in[2][OPDI_COLUMNS], out[OPDI_COLUMNS];
    float part[OPDI_COLUMNS];                     /* sums of some rows that are not yet added to sum */
    double sum[OPDI_COLUMNS];
} opdi_columns;
/* Runs step `what` (OPDI_COLUMN_..) for a row of `count` columns. */
OPDI_ALWAYS void opdi_column_row_body(int what, opdi_columns *columns, float *to, const float *x, const float *y,
                                      int64_t count) {
    float *top = columns->top, *factor = columns->factor;
    double *sum = columns->sum;
    int64_t i;
    switch (what) {
        case OPDI_COLUMN_TOP: OPDI_COLUMN_EACH(top[j] = x[j] > top[j] ? x[j] : top[j]) break;
        case OPDI_COLUMN_LESS: OPDI_COLUMN_EACH(to[j] = x[j] - top[j]) break;
        case OPDI_COLUMN_LOG: OPDI_COLUMN_EACH(to[j] = x[j] - top[j] - factor[j]) break;
        case OPDI_COLUMN_TIMES: OPDI_COLUMN_EACH(to[j] = x[j] * factor[j]) break;
        case OPDI_COLUMN_SUM: OPDI_COLUMN_EACH(sum[j] += (double)x[j]) break;
        case OPDI_COLUMN_PART: OPDI_COLUMN_EACH(sum[j] += (double)to[j]; to[j] = 0) break;
        case OPDI_COLUMN_DOT: OPDI_COLUMN_EACH(sum[j] += (double)x[j] * (double)y[j]) break;
        case OPDI_COLUMN_ADD: OPDI_COLUMN_EACH(sum[j] += (double)x[j]; to[j] = (float)sum[j]) break;
        case OPDI_COLUMN_BACK: OPDI_COLUMN_EACH(to[j] = y[j] * (x[j] - factor[j])) break;
        default: OPDI_COLUMN_EACH(to[j] = x[j] - y[j] * factor[j])
    }
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_column_row_avx2(int what, opdi_columns *columns, float *to, const float *x, const float *y,
                                           int64_t count) {
    opdi_column_row_body(what, columns, to, x, y, count);
}
#endif
static void opdi_column_row(int what, opdi_columns *columns, float *to, const float *x, const float *y, int64_t count) {
    OPDI_LINE_WIDE(opdi_column_row_avx2(what, columns, to, x, y, count); return)
    opdi_column_row_body(what, columns, to, x, y, count);
}
/* Computes to = exp(x - top) for columns [i, count) of a row, and adds the results to columns->part.  lv is the level
   of instructions. */
OPDI_ALWAYS void opdi_column_exp_body(int lv, opdi_columns *columns, float *to, const float *x, int64_t i,
                                      int64_t count) {
    float *const top = columns->top, *const part = columns->part;
    for (; i + OPDI_VSTEP <= count; i += OPDI_VSTEP) {
        float y[OPDI_VSTEP];
        for (int step = 0; step < OPDI_VSTEP; step++) { y[step] = opdi_exp1(lv, x[i + step] - top[i + step]); }
        for (int step = 0; step < OPDI_VSTEP; step++) { to[i + step] = y[step]; }
        for (int step = 0; step < OPDI_VSTEP; step++) { part[i + step] += y[step]; }
    }
    for (; i < count; i++) {
        to[i] = opdi_exp1(lv, x[i] - top[i]);
        part[i] += to[i];
    }
}
#if defined(OPDI_VECTORS)
OPDI_AVX2 static void opdi_column_exp_avx2(opdi_columns *columns, float *to, const float *x, int64_t i, int64_t count) {
    opdi_column_exp_body(1, columns, to, x, i, count);
}
#endif
static void opdi_column_exp(opdi_columns *columns, float *to, const float *x, int64_t count) {
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    int64_t from = 0;
#if defined(OPDI_X86)
    if (level == 2) { opdi_exp_sums_avx512(from = count & ~(int64_t)15, to, x, columns->top, columns->part); }
#endif
    if (level) {
        opdi_column_exp_avx2(columns, to, x, from, count);
        return;
    }
#endif
    opdi_column_exp_body(0, columns, to, x, 0, count);
}
/* Returns row i of operand k as floats: `count` columns, the first of which begins at `at`.  Returns the row in place,
   or a converted copy in columns->in. */
static const float *opdi_column_in(const opdi_lines *lines, opdi_columns *columns, int k, const char *at, int64_t i,
                                   int64_t count) {
    const char *row = at + i * lines->step[k];
    if (!lines->load[k]) { return (const float *)(const void *)row; }
    lines->load[k](columns->in[k], row, count);
    return columns->in[k];
}
/* Computes softmax of `count` columns or, if lines->flag is set, log_softmax, by the method of opdi_line_softmax_f32.
   at[] are the addresses of the columns in the operands. */
static void opdi_columns_softmax(const opdi_lines *lines, opdi_columns *columns, char *const *at, int64_t count) {
    const bool kept = !lines->flag && !lines->store[1];
    for (int64_t j = 0; j < count; j++) {
        columns->top[j] = -HUGE_VALF;
        columns->sum[j] = 0;
        columns->part[j] = 0;
    }
    for (int64_t i = 0; i < lines->count; i++) {
        const float *x = opdi_column_in(lines, columns, 0, at[0], i, count);
        opdi_column_row(OPDI_COLUMN_TOP, columns, NULL, x, NULL, count);
    }
    for (int64_t i = 0; i < lines->count; i++) {
        float *to = kept ? (float *)(void *)(at[1] + i * lines->step[1]) : columns->out;
        opdi_column_exp(columns, to, opdi_column_in(lines, columns, 0, at[0], i, count), count);
        if (i % 16 == 15 || i + 1 == lines->count) {
            opdi_column_row(OPDI_COLUMN_PART, columns, columns->part, NULL, NULL, count);
        }
    }
    const bool logs = lines->flag && opdi_has_vectors();
    if (logs) { opdi_vlog64(count, columns->sum, columns->sum); }
    for (int64_t j = 0; j < count; j++) {
        const double sum = columns->sum[j];
        columns->factor[j] = (float)(logs ? sum : lines->flag ? opdi_log_f64(sum) : 1.0 / sum);
    }
    for (int64_t i = 0; i < lines->count; i++) {
        char *row = at[1] + i * lines->step[1];
        float *to = lines->store[1] ? columns->out : (float *)(void *)row;
        if (!kept) {
            opdi_column_row(lines->flag ? OPDI_COLUMN_LOG : OPDI_COLUMN_LESS, columns, to,
                            opdi_column_in(lines, columns, 0, at[0], i, count), NULL, count);
        }
        if (!lines->flag) {
            if (!kept) { opdi_vexp(count, to, to); }
            opdi_column_row(OPDI_COLUMN_TIMES, columns, to, to, NULL, count);
        }
        if (lines->store[1]) { lines->store[1](row, to, count); }
    }
}
/* Computes the gradient of softmax for count columns, by the method of opdi_line_softmax_backward_f32. */
static void opdi_columns_softmax_backward(const opdi_lines *lines, opdi_columns *columns, char *const *at,
                                          int64_t count) {
    for (int64_t j = 0; j < count; j++) { columns->sum[j] = 0; }
    for (int64_t i = 0; i < lines->count; i++) {
        const float *grad = opdi_column_in(lines, columns, 0, at[0], i, count);
        const float *y = lines->flag ? NULL : opdi_column_in(lines, columns, 1, at[1], i, count);
        opdi_column_row(y ? OPDI_COLUMN_DOT : OPDI_COLUMN_SUM, columns, NULL, grad, y, count);
    }
    for (int64_t j = 0; j < count; j++) { columns->factor[j] = (float)columns->sum[j]; }
    for (int64_t i = 0; i < lines->count; i++) {
        const float *grad = opdi_column_in(lines, columns, 0, at[0], i, count);
        const float *y = opdi_column_in(lines, columns, 1, at[1], i, count);
        char *row = at[2] + i * lines->step[2];
        float *to = lines->store[2] ? columns->out : (float *)(void *)row;
        if (lines->flag) {
            opdi_vexp(count, columns->top, y);
            y = columns->top;
        }
        opdi_column_row(lines->flag ? OPDI_COLUMN_LOG_BACK : OPDI_COLUMN_BACK, columns, to, grad, y, count);
        if (lines->store[2]) { lines->store[2](row, to, count); }
    }
}
/* Sets at[] to the addresses at which the columns of block number `item` begin in each operand.  Returns the number of
   columns of the block. */
static int64_t opdi_columns_at(const opdi_lines *lines, int64_t item, char **at) {
    const int64_t blocks = (lines->sizes[0] - 1) / OPDI_COLUMNS + 1, from = item % blocks * OPDI_COLUMNS;
    int64_t rest = item / blocks;
    for (int k = 0; k < lines->nops; k++) { at[k] = lines->data[k] + from * lines->stride[k][0]; }
    for (int dim = 1; dim < lines->ndim; dim++) {
        for (int k = 0; k < lines->nops; k++) { at[k] += rest % lines->sizes[dim] * lines->stride[k][dim]; }
        rest /= lines->sizes[dim];
    }
    return OPDI_MIN(lines->sizes[0] - from, OPDI_COLUMNS);
}
/* Computes cumulative sums of columns, for blocks [begin, end) of columns of ctx, an opdi_lines. */
OPDI_INTERNAL void opdi_columns_cumsum(void *ctx, int64_t begin, int64_t end) {
    const opdi_lines *lines = (const opdi_lines *)ctx;
    opdi_columns columns;
    for (int64_t item = begin; item < end; item++) {
        char *at[4];
        const int64_t count = opdi_columns_at(lines, item, at);
        for (int64_t j = 0; j < count; j++) { columns.sum[j] = 0; }
        for (int64_t row = 0; row < lines->count; row++) {
            char *place = at[1] + row * lines->step[1];
            float *to = lines->store[1] ? columns.out : (float *)(void *)place;
            const float *x = opdi_column_in(lines, &columns, 0, at[0], row, count);
            opdi_column_row(OPDI_COLUMN_ADD, &columns, to, x, NULL, count);
            if (lines->store[1]) { lines->store[1](place, to, count); }
        }
    }
}
/* Computes softmax (one input) or its gradient (two inputs) for blocks [begin, end) of columns of ctx, an
   opdi_lines. */
static void opdi_columns_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_lines *lines = (const opdi_lines *)ctx;
    opdi_columns columns;
    for (int64_t item = begin; item < end; item++) {
        char *at[4];
        const int64_t count = opdi_columns_at(lines, item, at);
        if (lines->nin == 1) { opdi_columns_softmax(lines, &columns, at, count); }
        else { opdi_columns_softmax_backward(lines, &columns, at, count); }
    }
}
OPDI_COLD_BEGIN
/* If the lines are computed in float32 and at least 8 of them lie side by side in memory, runs fn on blocks of columns
   and returns true.  Otherwise returns false. */
OPDI_INTERNAL bool opdi_columns_run(opdi_lines *lines, int type, opdi_range_fn fn) {
    if (type != OPDI_F32 || lines->ndim == 0 || lines->sizes[0] < 8) { return false; }
    for (int k = 0; k < lines->nops; k++) {
        if (lines->stride[k][0] != lines->size[k] || lines->step[k] == lines->size[k]) { return false; }
    }
    const int64_t blocks = (lines->sizes[0] - 1) / OPDI_COLUMNS + 1, items = lines->outer / lines->sizes[0] * blocks;
    const int64_t each = OPDI_MAX(lines->count * OPDI_MIN(lines->sizes[0], OPDI_COLUMNS), (int64_t)1);
    opdi_parallel_for(items, OPDI_MAX(OPDI_GRAIN / each, (int64_t)1), fn, lines);
    return true;
}
/* Computes softmax or, if `logarithm`, log_softmax of argument 0 along the dim in argument 1.  Returns 0, or -1 and
   sets an error. */
static int opdi_softmax_of(opd_call *call, bool logarithm) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *ops[2];
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    const int dim = opdi_dim_of(opd_arg_int(call, 1), tensor->ndim), type = opdi_compute_type(dtype);
    opdi_lines lines;
    if (dim < 0) { return -1; }
    if (opd_arg_bool(call, 2)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s with half to float conversion is not supported on CPU",
                        logarithm ? "log_softmax" : "softmax");
    }
    if (!opd_dtype_is_floating(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "\"%s_lastdim_kernel_impl\" not implemented for '%s'",
                        logarithm ? "log_softmax" : "softmax", opd_dtype_name(dtype));
    }
    ops[0] = tensor;
    ops[1] = opd_result(call, 0, opdi_sizes(tensor), tensor->ndim, dtype);
    if (!ops[1]) { return -1; }
    if (!ops[1]->data || tensor->numel == 0) { return 0; }
    opdi_lines_init(&lines, ops, 1, 2, dim, type, 0);
    lines.flag = logarithm;
    lines.passes = 3;
    if (opdi_columns_run(&lines, type, opdi_columns_range)) { return 0; }
    return opdi_lines_run(&lines, type == OPDI_F64 ? opdi_line_softmax_f64 : opdi_line_softmax_f32, 1);
}
/* Computes the gradient of softmax or, if `logarithm`, log_softmax.  Argument 0 is grad, argument 1 the output,
   argument 2 the dim.  Returns 0, or -1 and sets an error. */
static int opdi_softmax_backward_of(opd_call *call, bool logarithm) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *ops[3];
    const int dim = opdi_dim_of(opd_arg_int(call, 2), grad->ndim);
    const opd_scalar_type dtype = (opd_scalar_type)grad->dtype;
    const int type = opdi_compute_type(dtype);
    opdi_lines lines;
    ops[0] = grad;
    ops[1] = opd_arg_tensor(call, 1);
    if (dim < 0) { return -1; }
    if (!opdi_same_sizes(ops[0], ops[1])) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "grad_output and output must have the same sizes, but have %s and %s",
                        opdi_shape_text(ops[0], first), opdi_shape_text(ops[1], second));
    }
    if (!opd_dtype_is_floating(dtype) || ops[1]->dtype != dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "\"%ssoftmax_backward\" not implemented for '%s'", logarithm ? "log_" : "",
                        opd_dtype_name(dtype));
    }
    ops[2] = opd_result(call, 0, opdi_sizes(grad), grad->ndim, dtype);
    if (!ops[2]) { return -1; }
    if (!ops[2]->data || grad->numel == 0) { return 0; }
    opdi_lines_init(&lines, ops, 2, 3, dim, type, 0);
    lines.flag = logarithm;
    lines.passes = 2;
    if (opdi_columns_run(&lines, type, opdi_columns_range)) { return 0; }
    return opdi_lines_run(&lines, type == OPDI_F64 ? opdi_line_softmax_backward_f64 : opdi_line_softmax_backward_f32,
                          1);
}
static int opdi__softmax_kernel(opd_call *call) { return opdi_softmax_of(call, false); }
static int opdi__log_softmax_kernel(opd_call *call) { return opdi_softmax_of(call, true); }
static int opdi__softmax_backward_data_kernel(opd_call *call) { return opdi_softmax_backward_of(call, false); }
static int opdi__log_softmax_backward_data_kernel(opd_call *call) { return opdi_softmax_backward_of(call, true); }
static int opdi__softmax_backward(opd_backward_call *bw) {
    opd_tensor *output = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd__softmax_backward_data(opd_bw_grad(bw, 0), output, opd_bw_value(bw, 1).u.i,
                                                           opd_bw_dtype(bw, 0)));
}
static int opdi__log_softmax_backward(opd_backward_call *bw) {
    opd_tensor *output = opd_bw_result(bw, 0);
    return opd_bw_return(bw, 0, opd__log_softmax_backward_data(opd_bw_grad(bw, 0), output, opd_bw_value(bw, 1).u.i,
                                                               opd_bw_dtype(bw, 0)));
}
OPDI_INTERNAL opd_tensor *opdi_sum_keep(opd_tensor *tensor, int64_t dim) {
    return opd_sum_dim(tensor, opd_ints_of(&dim, 1), true);
}
static int opdi__softmax_backward_data_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1);
    const int64_t dim = opd_bw_value(bw, 2).u.i;
    OPDI_BW_RETURN(0, opd__softmax_backward_data(grad, other, dim, (opd_scalar_type)opd_bw_value(bw, 3).u.i));
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *const product = opd_mul(grad_out, grad),
        *const difference = opd_sub(product, opd_mul(opdi_sum_keep(opd_mul(other, grad_out), dim), grad));
    return opd_bw_return(bw, 1, opd_sub(difference, opd_mul(grad_out, opdi_sum_keep(opd_mul(other, grad), dim))));
}
static int opdi__log_softmax_backward_data_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *grad_out = opd_bw_tensor(bw, 0), *extra = opd_exp(opd_bw_tensor(bw, 1));
    const int64_t dim = opd_bw_value(bw, 2).u.i;
    OPDI_BW_RETURN(0, opd_sub(grad, opdi_sum_keep(opd_mul(grad, extra), dim)));
    OPDI_BW_RETURN(1, opd_mul(opd_mul(opd_neg(opdi_sum_keep(grad_out, dim)), extra), grad));
    return 0;
}
/* opd__softmax: softmax along dim; half_to_float=True fails on the CPU, as in PyTorch */
OPDI_OP(_softmax) {
    op->schema = "_softmax(Tensor self, int dim, bool half_to_float) -> Tensor";
    op->cpu = op->fake = opdi__softmax_kernel; op->backward = opdi__softmax_backward; op->save = "result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_softmax.out";
    op->cases = "[2,3], 1, False; [2,3,2], 1, False";
}
/* opd__log_softmax: log_softmax along dim; half_to_float=True fails on the CPU, as in PyTorch */
OPDI_OP(_log_softmax) {
    op->schema = "_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor";
    op->cpu = op->fake = opdi__log_softmax_kernel; op->backward = opdi__log_softmax_backward; op->save = "result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_log_softmax.out";
    op->cases = "[2,3], 1, False; [2,3,2], 1, False";
}
/* opd__softmax_backward_data: the gradient of softmax, computed from its output */
OPDI_OP(_softmax_backward_data) {
    op->schema = "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor";
    op->cpu = op->fake = opdi__softmax_backward_data_kernel; op->backward = opdi__softmax_backward_data_backward;
    op->save = "grad_output(output), output";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "_softmax_backward_data.out(grad_input)";
    op->cases = "[2,3], [2,3], 1, 6";
}
/* opd__log_softmax_backward_data: the gradient of log_softmax, computed from its output */
OPDI_OP(_log_softmax_backward_data) {
    op->schema = "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> "
        "Tensor";
    op->cpu = op->fake = opdi__log_softmax_backward_data_kernel;
    op->backward = opdi__log_softmax_backward_data_backward; op->save = "grad_output(output), output";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "_log_softmax_backward_data.out";
    op->cases = "[2,3], [2,3], 1, 6";
}

static int opdi_softmax_composite(opd_call *call, bool logarithm) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    if (!opd_arg_is_none(call, 2)) { tensor = opd_to_dtype(tensor, opd_arg_dtype(call, 2, OPD_FLOAT32)); }
    if (!tensor) { return -1; }
    return opd_return_tensor(call, logarithm ? opd__log_softmax(tensor, opd_arg_int(call, 1), false)
                             : opd__softmax(tensor, opd_arg_int(call, 1), false));
}
static int opdi_softmax_int_kernel(opd_call *call) { return opdi_softmax_composite(call, false); }
static int opdi_log_softmax_int_kernel(opd_call *call) { return opdi_softmax_composite(call, true); }
/* opd_softmax: e^self divided by the sum of e^self along dim */
OPDI_OP(softmax_int) {
    op->schema = "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
    op->composite = opdi_softmax_int_kernel;
    op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->out = "softmax.int_out";
    op->cases = "[2,3], 1";
}
/* opd_log_softmax: self - log(the sum of e^self along dim) */
OPDI_OP(log_softmax_int) {
    op->schema = "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
    op->composite = opdi_log_softmax_int_kernel;
    op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->out = "log_softmax.int_out";
    op->cases = "[2,3], 1";
}
/* opd_special_softmax: the same as softmax */
OPDI_OP(special_softmax) {
    op->schema = "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
    op->composite = opdi_softmax_int_kernel;
    op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->cases = "[2,3], 1";
}
/* opd_special_log_softmax: the same as log_softmax */
OPDI_OP(special_log_softmax) {
    op->schema = "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
    op->composite = opdi_log_softmax_int_kernel;
    op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->cases = "[2,3], 1";
}
OPDI_COLD_END
