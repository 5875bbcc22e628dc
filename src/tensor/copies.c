#include "tensor.h"

//== copies ============================================================================================================

/* Copies `bytes` bytes as memmove does.  For 2 KB to 1 MB, glibc's memmove uses an instruction that is up to 15 times
   slower on AMD Zen 4 if `to` is less than 64 bytes ahead of `from` within a page of 4 KB.  For blocks of 1 KB, glibc
   does not use it.  These are copied by memmove, too, because gcc would replace a memcpy of fixed size by a similar
   instruction. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_move(void *to, const void *from, size_t bytes) {
    enum { BLOCK = 1024 };
    char *dst = (char *)to;
    const char *src = (const char *)from;
    const uintptr_t ahead = (uintptr_t)dst - (uintptr_t)src, in_page = ahead & 4095;
    if (in_page && in_page < 64 && ahead >= bytes) {            /* no byte is written before it is read */
        for (; bytes > 2 * BLOCK; bytes -= BLOCK, dst += BLOCK, src += BLOCK) { memmove(dst, src, BLOCK); }
    }
    memmove(dst, src, bytes);
}
/* Copies `count` elements of `size` bytes, which are `ss` bytes apart at `from` and `ds` bytes apart at `to`. */
OPDI_INTERNAL void opdi_move_run(char *to, int64_t ds, const char *from, int64_t ss, int64_t count, int size) {
    if (ds == size && ss == size) { opdi_move(to, from, (size_t)count * (size_t)size); }     /* may share memory */
    else if (ds == size) { opdi_gather(to, from, ss, count, size); }
    else { opdi_scatter(to, ds, from, ss, count, size); }
}
/* Copies rows of `bytes` contiguous bytes, which are `ss` bytes apart at `from` and `ds` bytes apart at `to`.  Rows of
   8 to 64 bytes are copied as one or more blocks of 16 or 8 bytes, the last of which may overlap the one before.  A row
   and the row that it is copied to may share memory.  Rows of up to 1 KB are prefetched: processors do not foresee the
   jump to the next row. */
#define OPDI_ROWS_MOVE(block) { \
        for (int64_t row = 0; row < rows; row++, to += ds, from += ss) { \
            for (int64_t at = 0; at < bytes - (block); at += (block)) { memmove(to + at, from + at, (block)); } \
            memmove(to + bytes - (block), from + bytes - (block), (block)); \
        } \
    }
OPDI_INTERNAL void opdi_copy_whole_rows(char *to, int64_t ds, const char *from, int64_t ss, int64_t rows,
                                        int64_t bytes) {
    if (bytes > 64 && bytes <= 1024) {
        enum { AHEAD = 4 };                       /* rows */
        for (int64_t row = 0; row < rows; row++) {
            for (int64_t at = 0; at < bytes && row < rows - AHEAD && ss != bytes; at += 64) {
                OPDI_PREFETCH(from + (row + AHEAD) * ss + at);
            }
            memmove(to + row * ds, from + row * ss, (size_t)bytes);
        }
    } else if (bytes > 64 || bytes < 8) {
        for (int64_t row = 0; row < rows; row++) { opdi_move(to + row * ds, from + row * ss, (size_t)bytes); }
    }
    else if (bytes >= 16) { OPDI_ROWS_MOVE(16) }
    else { OPDI_ROWS_MOVE(8) }
}
/* Copies `rows` neighbouring rows of a pass, which extend along dim 0 and are counted along dim `across`.  Short rows
   are copied column by column, if that makes longer loops. */
static void opdi_copy_plane(const opdi_iter *iter, int across, char *to, const char *from, int64_t rows) {
    enum { HIGH = 256 };                          /* rows whose columns stay in the cache */
    const opdi_operand *const first = &iter->op[0], *const second = &iter->op[1];
    const int64_t ds = first->stride[across], ss = second->stride[across], count = iter->sizes[0];
    const int size = first->size;
    if (first->stride[0] == size && second->stride[0] == size) {
        opdi_copy_whole_rows(to, ds, from, ss, rows, count * size);
        return;
    }
    /* a whole vector per row is faster than a column */
    const bool reversed = count == 16 && first->stride[0] == size && second->stride[0] == -size;
    if (count > 16 || rows <= count || reversed) {
        for (int64_t row = 0; row < rows; row++) {
            opdi_move_run(to + row * ds, first->stride[0], from + row * ss, second->stride[0], count, size);
        }
        return;
    }
    for (int64_t row = 0; row < rows; row += HIGH) {
        for (int64_t i = 0; i < count; i++) {
            opdi_move_run(to + row * ds + i * first->stride[0], ds, from + row * ss + i * second->stride[0], ss,
                          OPDI_MIN((int64_t)HIGH, rows - row), size);
        }
    }
}
/* Returns whether no two elements of the result share memory, so that they can be copied in any order.  May return
   false for other results, too. */
static bool opdi_copy_any_order(const opdi_iter *iter) {
    int64_t span = iter->op[0].size;              /* of the dims so far, in bytes */
    for (int dim = 0; dim < iter->ndim; dim++) {
        const int64_t stride = iter->op[0].stride[dim], step = stride < 0 ? -stride : stride;
        if (iter->sizes[dim] > 1 && step < span) { return false; }
        span += (iter->sizes[dim] - 1) * step;
    }
    return true;
}
/* Copies elements [begin, end) of a pass between two operands of one dtype with any strides, by planes of dims 0 and
   1, and parts of rows at the ends.  If dims 0 and 1 are short, planes extend along dims 0 and 2. */
static void opdi_copy_rows(void *ctx, int64_t begin, int64_t end) {
    const opdi_iter *iter = (const opdi_iter *)ctx;
    const int64_t wide = iter->sizes[0], high = iter->ndim > 1 ? iter->sizes[1] : 1;
    const bool planes = iter->ndim > 1 && opdi_copy_any_order(iter);
    const bool deep = planes && iter->ndim > 2 && wide * high <= 64 && iter->sizes[2] > high;
    const int64_t unit = deep ? wide * high : wide;
    int64_t idx[OPD_MAX_DIMS], count, rest = begin;
    for (int dim = 0; dim < iter->ndim; dim++) {
        idx[dim] = rest % iter->sizes[dim];
        rest /= iter->sizes[dim];
    }
    for (int64_t pos = begin; pos < end; pos += count) {
        const bool whole = planes && idx[0] == 0 && !(deep && idx[1]);
        const int64_t rows = whole ? OPDI_MIN((end - pos) / unit, iter->sizes[1 + deep] - idx[1 + deep]) : 0;
        char *to = iter->op[0].data;
        const char *from = iter->op[1].data;
        for (int dim = 0; dim < iter->ndim; dim++) {
            to += idx[dim] * iter->op[0].stride[dim];
            from += idx[dim] * iter->op[1].stride[dim];
        }
        count = rows ? rows * unit : OPDI_MIN(end - pos, wide - idx[0]);
        for (int64_t i = 0; rows && i < (deep ? high : 1); i++) {
            opdi_copy_plane(iter, 1 + deep, to + i * iter->op[0].stride[1], from + i * iter->op[1].stride[1], rows);
        }
        if (!rows) {
            opdi_move_run(to, iter->op[0].stride[0], from, iter->op[1].stride[0], count, iter->op[0].size);
        }
        opdi_iter_step(iter, idx, count);
    }
}
/* Copies elements [begin, end) of a pass between operands of different dtypes, block by block through the compute
   type. */
static void opdi_copy_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_iter *iter = (const opdi_iter *)ctx;
    const opdi_operand *operand = &iter->op[0];
    uint64_t block[OPDI_BLOCK];
    int64_t idx[OPD_MAX_DIMS], count, rest = begin;
    const bool rows = iter->sizes[0] >= OPDI_ROW;
    for (int dim = 0; dim < iter->ndim; dim++) {
        idx[dim] = rest % iter->sizes[dim];
        rest /= iter->sizes[dim];
    }
    for (int64_t pos = begin; pos < end; pos += count) {
        count = OPDI_MIN(end - pos, (int64_t)OPDI_BLOCK);
        if (rows) { count = OPDI_MIN(count, iter->sizes[0] - idx[0]); }
        void *t = opdi_iter_target(iter, operand, idx, pos, count);
        void *source = opdi_iter_load(iter, &iter->op[1], idx, pos, count, (char *)(t ? t : (void *)block));
        if (!t) { opdi_iter_store(iter, operand, idx, pos, count, (char *)source); }
        else if (source != t) { memcpy(t, source, (size_t)count * (size_t)operand->size); }
        opdi_iter_step(iter, idx, count);
    }
}
/* Copies elements [begin, end) of a pass as opdi_copy_blocks does, if both operands are dense and one of them has the
   compute type: then one conversion of all elements is enough. */
static void opdi_copy_converted(void *ctx, int64_t begin, int64_t end) {
    const opdi_operand *const to = ((const opdi_iter *)ctx)->op, *const from = to + 1;
    const opdi_convert one = to->convert ? to->store : from->load;
    one(to->data + begin * to->size, from->data + begin * from->size, end - begin);
}
#if defined(__GNUC__) && !defined(__TINYC__)
#if !defined(OPDI_NEON)
typedef float opdi_sum_lanes __attribute__((vector_size(32), aligned(4), may_alias));     /* also without OPDI_X86 */
#endif
/* Returns the sum of x[0 .. count).  Each group of up to 4096 elements is summed in 64 float accumulators, whose sum is
   added to a double.  If `odd` is not NULL, elements at odd indices are added to *odd instead; then count is even. */
#if defined(OPDI_NEON)
OPDI_ALWAYS double opdi_sum_f32_body(const float *x, int64_t count, double *odd) {
    double total = 0;
    int64_t i = 0;
#define OPDI_SUM_STEP(k) a##k += row[k];
    while (count - i >= 64) {                     /* low and high halves of eight vectors, as in AVX2 */
        opdi_v4f a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
        opdi_v4f a8 = {0}, a9 = {0}, a10 = {0}, a11 = {0}, a12 = {0}, a13 = {0}, a14 = {0}, a15 = {0};
        for (int64_t rows = OPDI_MIN(count, i + 4096) - 63; i < rows; i += 64) {
            const opdi_v4f *row = (const opdi_v4f *)(const void *)(x + i);
            OPDI_SUM_STEP(0) OPDI_SUM_STEP(1) OPDI_SUM_STEP(2) OPDI_SUM_STEP(3)
            OPDI_SUM_STEP(4) OPDI_SUM_STEP(5) OPDI_SUM_STEP(6) OPDI_SUM_STEP(7)
            OPDI_SUM_STEP(8) OPDI_SUM_STEP(9) OPDI_SUM_STEP(10) OPDI_SUM_STEP(11)
            OPDI_SUM_STEP(12) OPDI_SUM_STEP(13) OPDI_SUM_STEP(14) OPDI_SUM_STEP(15)
        }
        a0 = ((a0 + a2) + (a4 + a6)) + ((a8 + a10) + (a12 + a14));
        a1 = ((a1 + a3) + (a5 + a7)) + ((a9 + a11) + (a13 + a15));
        for (int j = 0; j < 4; j++) { *(odd && j & 1 ? odd : &total) += (double)a0[j]; }
        for (int j = 0; j < 4; j++) { *(odd && j & 1 ? odd : &total) += (double)a1[j]; }
    }
    if (count - i >= 8) {                         /* the rest, in two accumulators */
        opdi_v4f a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0};
        for (; i + 16 <= count; i += 16) {
            const opdi_v4f *row = (const opdi_v4f *)(const void *)(x + i);
            OPDI_SUM_STEP(0) OPDI_SUM_STEP(1) OPDI_SUM_STEP(2) OPDI_SUM_STEP(3)
        }
        if (i + 8 <= count) {
            const opdi_v4f *row = (const opdi_v4f *)(const void *)(x + i);
            OPDI_SUM_STEP(0) OPDI_SUM_STEP(1)
            i += 8;
        }
        a0 += a2;
        a1 += a3;
        if (odd) {
            for (int j = 0; j < 4; j++) { *(j & 1 ? odd : &total) += (double)a0[j]; }
            for (int j = 0; j < 4; j++) { *(j & 1 ? odd : &total) += (double)a1[j]; }
        } else {
            a0 += a1;
            total += (double)((a0[0] + a0[2]) + (a0[1] + a0[3]));
        }
    }
#undef OPDI_SUM_STEP
    for (; i < count; i++) { *(odd && i & 1 ? odd : &total) += (double)x[i]; }
    return total;
}
#else
OPDI_ALWAYS double opdi_sum_f32_body(const float *x, int64_t count, double *odd) {
    enum { LANES = (int)(sizeof(opdi_sum_lanes) / sizeof(float)), STEP = 8 * LANES };
    double total = 0;
    int64_t i = 0;
    while (count - i >= STEP) {
        opdi_sum_lanes a0 = {0}, a1 = {0}, a2 = {0}, a3 = {0}, a4 = {0}, a5 = {0}, a6 = {0}, a7 = {0};
        for (int64_t rows = OPDI_MIN(count, i + 4096) - (STEP - 1); i < rows; i += STEP) {
            const opdi_sum_lanes *row = (const opdi_sum_lanes *)(const void *)(x + i);
            a0 += row[0];
            a1 += row[1];
            a2 += row[2];
            a3 += row[3];
            a4 += row[4];
            a5 += row[5];
            a6 += row[6];
            a7 += row[7];
        }
        a0 = ((a0 + a1) + (a2 + a3)) + ((a4 + a5) + (a6 + a7));
        for (int j = 0; j < LANES; j++) { *(odd && j & 1 ? odd : &total) += (double)a0[j]; }
    }
    if (count - i >= LANES) {                     /* the rest, in two accumulators */
        opdi_sum_lanes a0 = {0}, a1 = {0};
        for (; i + 2 * LANES <= count; i += 2 * LANES) {
            const opdi_sum_lanes *row = (const opdi_sum_lanes *)(const void *)(x + i);
            a0 += row[0];
            a1 += row[1];
        }
        if (i + LANES <= count) {
            a0 += *(const opdi_sum_lanes *)(const void *)(x + i);
            i += LANES;
        }
        a0 += a1;
        if (odd) { for (int j = 0; j < LANES; j++) { *(j & 1 ? odd : &total) += (double)a0[j]; } }
        else {
            const float low = (a0[0] + a0[4]) + (a0[2] + a0[6]);
            total += (double)(low + ((a0[1] + a0[5]) + (a0[3] + a0[7])));
        }
    }
    for (; i < count; i++) { *(odd && i & 1 ? odd : &total) += (double)x[i]; }
    return total;
}
#endif
#else
OPDI_ALWAYS double opdi_sum_f32_body(const float *x, int64_t count, double *odd) {
    double total = 0;
    for (int64_t i = 0; i < count; i++) { *(odd && i & 1 ? odd : &total) += (double)x[i]; }
    return total;
}
#endif
#if defined(OPDI_X86)
/* Writes the sum of each of `rows` neighbouring rows x [rows, count] to sums. */
OPDI_AVX2 OPDI_INTERNAL void opdi_sum_rows_avx2(const float *x, int64_t rows, int64_t count, double *sums) {
    for (int64_t row = 0; row < rows; row++) { sums[row] = opdi_sum_f32_body(x + row * count, count, NULL); }
}
OPDI_AVX2 static double opdi_sum_c64_avx2(const float *x, int64_t count, double *imaginary) {
    return opdi_sum_f32_body(x, 2 * count, imaginary);
}
#endif
#if defined(OPDI_NEON)
/* Returns the product of the `count` floats at x, a multiple of 32.  Two instructions convert four floats to double. */
static double opdi_prod_avx2(const float *x, int64_t count) {
    opdi_v2d a0 = {1, 1}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, next;
    for (int64_t i = 0; i < count; i += 16) {
        const opdi_v4f *const at = (const opdi_v4f *)(const void *)(x + i);
#define OPDI_PROD_STEP(k, low, high) \
        __asm__("fcvtl %0.2d, %1.2s" : "=w"(next) : "w"(at[k])); \
        a##low *= next; \
        __asm__("fcvtl2 %0.2d, %1.4s" : "=w"(next) : "w"(at[k])); \
        a##high *= next;
        OPDI_PROD_STEP(0, 0, 1) OPDI_PROD_STEP(1, 2, 3) OPDI_PROD_STEP(2, 4, 5) OPDI_PROD_STEP(3, 6, 7)
#undef OPDI_PROD_STEP
    }
    a0 = ((a0 * a4) * (a2 * a6)) * ((a1 * a5) * (a3 * a7));
    return a0[0] * a0[1];
}
#define OPDI_EXTREME_STEP(a, x) { \
        if (most) { __asm__("fmax %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(x)); } \
        else { __asm__("fmin %0.4s, %0.4s, %1.4s" : "+w"(a) : "w"(x)); } \
    }
#define OPDI_EXTREME_FOUR(a, b, c, d, w, x, y, z) \
    OPDI_EXTREME_STEP(a, w) OPDI_EXTREME_STEP(b, x) OPDI_EXTREME_STEP(c, y) OPDI_EXTREME_STEP(d, z)
/* Returns the largest (smallest, if `most` is false) of `count` floats, a multiple of 64, or NaN if one of them is NaN,
   as the instructions do. */
OPDI_ALWAYS float opdi_extreme_body(const float *x, int64_t count, bool most) {
    const opdi_v4f *const start = (const opdi_v4f *)(const void *)x;
    opdi_v4f a0 = start[0], a1 = start[1], a2 = start[2], a3 = start[3];
    opdi_v4f a4 = start[4], a5 = start[5], a6 = start[6], a7 = start[7];
    float best;
    for (const opdi_v4f *at = start; at < start + count / 4; at += 8) {
        OPDI_EXTREME_FOUR(a0, a1, a2, a3, at[0], at[1], at[2], at[3])
        OPDI_EXTREME_FOUR(a4, a5, a6, a7, at[4], at[5], at[6], at[7])
    }
    OPDI_EXTREME_FOUR(a0, a1, a2, a3, a4, a5, a6, a7)
    OPDI_EXTREME_FOUR(a0, a1, a0, a0, a2, a3, a1, a1)
    if (most) { __asm__("fmaxv %s0, %1.4s" : "=w"(best) : "w"(a0)); }
    else { __asm__("fminv %s0, %1.4s" : "=w"(best) : "w"(a0)); }
    return best == best ? best : NAN;
}
static float opdi_extreme_max_avx2(const float *x, int64_t count) { return opdi_extreme_body(x, count, true); }
static float opdi_extreme_min_avx2(const float *x, int64_t count) { return opdi_extreme_body(x, count, false); }
#undef OPDI_EXTREME_STEP
#undef OPDI_EXTREME_FOUR
#endif
#if defined(OPDI_X86) || defined(OPDI_PORTABLE)
/* Returns the product of the `count` floats at x, a multiple of 32.  One instruction reads four floats and converts
   them to double. */
OPDI_AVX2 static double opdi_prod_avx2(const float *x, int64_t count) {
    opdi_v4d a0 = {1, 1, 1, 1}, a1 = a0, a2 = a0, a3 = a0, a4 = a0, a5 = a0, a6 = a0, a7 = a0, next;
    for (int64_t i = 0; i < count; i += 32) {
        const opdi_v4f *const at = (const opdi_v4f *)(const void *)(x + i);
#define OPDI_PROD_STEP(k) \
        OPDI_ASM_TO_DOUBLE(next, at[k]); \
        a##k *= next;
        OPDI_PROD_STEP(0) OPDI_PROD_STEP(1) OPDI_PROD_STEP(2) OPDI_PROD_STEP(3)
        OPDI_PROD_STEP(4) OPDI_PROD_STEP(5) OPDI_PROD_STEP(6) OPDI_PROD_STEP(7)
#undef OPDI_PROD_STEP
    }
    a0 = ((a0 * a4) * (a2 * a6)) * ((a1 * a5) * (a3 * a7));
    return (a0[0] * a0[2]) * (a0[1] * a0[3]);
}
#endif
#if defined(OPDI_PORTABLE)
OPDI_ALWAYS float opdi_extreme_body(const float *x, int64_t count, bool most) {
    float best = x[0];
    for (int64_t i = 0; i < count && best == best; i++) {
        if (x[i] != x[i] || (most ? x[i] > best : x[i] < best)) { best = x[i]; }
    }
    return best == best ? best : NAN;
}
static float opdi_extreme_max_avx2(const float *x, int64_t count) { return opdi_extreme_body(x, count, true); }
static float opdi_extreme_min_avx2(const float *x, int64_t count) { return opdi_extreme_body(x, count, false); }
#endif
#if defined(OPDI_X86)
/* Returns the largest (smallest, if `most` is false) of the eight floats at `tops`, or NaN if one of the eight words at
   `flags` is not 0. */
static float opdi_extreme_lanes(const void *tops, const void *flags, bool most) {
    uint32_t bits[8], any = 0;
    float lanes[8];
    memcpy(bits, flags, sizeof bits);
    memcpy(lanes, tops, sizeof lanes);
    for (int lane = 0; lane < 8; lane++) { any |= bits[lane]; }
    float best = lanes[0];                        /* without branches, which no processor could predict */
    for (int lane = 1; lane < 8 && most; lane++) { best = lanes[lane] > best ? lanes[lane] : best; }
    for (int lane = 1; lane < 8 && !most; lane++) { best = lanes[lane] < best ? lanes[lane] : best; }
    return any ? NAN : best;
}
/* Defines a function that returns the largest or smallest of `count` floats, a multiple of 64.  The instruction
   (vmaxps, vminps) returns its second operand if either operand is NaN.  So NaNs are looked for separately, two vectors
   at a time, and NaN is returned if there is one. */
#define OPDI_EXTREME(name, instruction) \
    OPDI_AVX2 static float name(const float *x, int64_t count) { \
        const opdi_v8f *const start = (const opdi_v8f *)(const void *)x; \
        opdi_v8f a0 = start[0], a1 = start[1], a2 = start[2], a3 = start[3], a4 = start[4], a5 = start[5], \
            a6 = start[6], a7 = start[7], odd = {0}; \
        for (int64_t i = 0; i < count; i += 64) { OPDI_EXTREME_NEXT(instruction) } \
        OPDI_EXTREME_FOLD(instruction) \
        const opdi_v8f flags = odd, tops = a0;    /* copies, so that odd and a0 stay in registers */ \
        return opdi_extreme_lanes(&tops, &flags, (instruction)[1] == 'a'); \
    }
enum { OPDI_EXTREME_AHEAD = 512 };                /* elements of a large tensor that are asked for early */
#define OPDI_EXTREME_NEXT(instruction) \
    const opdi_v8f *const at = (const opdi_v8f *)(const void *)(x + i); \
    for (int line = 0; line < 64; line += 16) { OPDI_PREFETCH(x + i + OPDI_EXTREME_AHEAD + line); } \
    OPDI_EXTREME_TWO(instruction, 0, 1) OPDI_EXTREME_TWO(instruction, 2, 3) \
    OPDI_EXTREME_TWO(instruction, 4, 5) OPDI_EXTREME_TWO(instruction, 6, 7)
#define OPDI_EXTREME_FOLD(instruction) \
    OPDI_EXTREME_STEP(instruction, a0, a4) OPDI_EXTREME_STEP(instruction, a1, a5) \
    OPDI_EXTREME_STEP(instruction, a2, a6) OPDI_EXTREME_STEP(instruction, a3, a7) \
    OPDI_EXTREME_STEP(instruction, a0, a2) OPDI_EXTREME_STEP(instruction, a1, a3) \
    OPDI_EXTREME_STEP(instruction, a0, a1)
#define OPDI_EXTREME_STEP(instruction, a, x) __asm__("v" instruction "ps %0, %1, %0" : "+x"(a) : "x"(x));
#define OPDI_EXTREME_TWO(instruction, k, l) { \
        const opdi_v8f first = at[k], second = at[l]; \
        opdi_v8f unordered; \
        __asm__("vcmpunordps %1, %2, %0" : "=x"(unordered) : "x"(first), "x"(second)); \
        __asm__("vorps %0, %1, %0" : "+x"(odd) : "x"(unordered)); \
        OPDI_EXTREME_STEP(instruction, a##k, first) \
        OPDI_EXTREME_STEP(instruction, a##l, second) \
    }
OPDI_EXTREME(opdi_extreme_max_avx2, "max")
OPDI_EXTREME(opdi_extreme_min_avx2, "min")
#undef OPDI_EXTREME
#undef OPDI_EXTREME_STEP
#undef OPDI_EXTREME_NEXT
#undef OPDI_EXTREME_FOLD
#undef OPDI_EXTREME_TWO
#endif
/* Multiplies *product by the first floats at x: by as many of the `count` floats as make a multiple of 32.  Returns the
   number of these floats; 0 without AVX2 or NEON. */
OPDI_INTERNAL int64_t opdi_prod_whole(const float *x, int64_t count, double *product) {
    const int64_t whole = count & ~(int64_t)31;
#if defined(OPDI_VECTORS)
    if (whole && opdi_cpu_level() > 0) {
        *product *= opdi_prod_avx2(x, whole);
        return whole;
    }
#endif
    (void)x;
    (void)product;
    (void)whole;
    return 0;
}
/* Sets *best to the largest (smallest, if `most` is false) of the first floats at x: of as many of the `count` floats
   as make a multiple of 64.  Returns the number of these floats; 0 without AVX2 or NEON. */
OPDI_INTERNAL int64_t opdi_extreme_whole(bool most, const float *x, int64_t count, float *best) {
    const int64_t whole = count & ~(int64_t)63;
#if defined(OPDI_VECTORS)
    if (whole && opdi_cpu_level() > 0) {
        *best = (most ? opdi_extreme_max_avx2 : opdi_extreme_min_avx2)(x, whole);
        return whole;
    }
#endif
    (void)most;
    (void)x;
    (void)best;
    (void)whole;
    return 0;
}
OPDI_INTERNAL double opdi_sum_f32_plain(const float *x, int64_t count) { return opdi_sum_f32_body(x, count, NULL); }
/* Returns the sum of the real parts of `count` complex numbers, and writes that of their imaginary parts to
   *imaginary. */
OPDI_INTERNAL double opdi_sum_c64(const float *x, int64_t count, double *imaginary) {
    *imaginary = 0;
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { return opdi_sum_c64_avx2(x, count, imaginary); }
#endif
    return opdi_sum_f32_body(x, 2 * count, imaginary);
}
/* Copies bands (see opdi_band_at) `begin` to `end` - 1, tile by tile. */
static void opdi_copy_bands(void *ctx, int64_t begin, int64_t end) {
    const opdi_transpose *tr = (const opdi_transpose *)ctx;
    const opdi_iter *iter = tr->it;
    const int size = iter->op[0].size;
    const int64_t across = iter->op[0].stride[tr->across], step = iter->op[1].stride[0];
    const opdi_tile_fn tile = opdi_transpose_of(size);
    char *at[OPDI_ITER_OPS];
    for (int64_t item = begin; item < end; item++) {
        const int64_t high = opdi_band_at(tr, item, at);
        for (int64_t i = 0; i < iter->sizes[0]; i += OPDI_TILE) {
            tile(at[0] + i * size, across, at[1] + i * step, step, OPDI_MIN((int64_t)OPDI_TILE, iter->sizes[0] - i),
                 high, opdi_tile_next(iter, 1, i));
        }
    }
}
/* Returns the dim along which the source is contiguous, while the destination is contiguous along dim 0, if copying by
   tiles is faster; else 0. */
static int opdi_copy_across(const opdi_iter *iter) {
    const int size = iter->op[0].size;
    if (iter->op[0].stride[0] != size || iter->op[1].stride[0] == size || iter->op[1].stride[0] == 0 || size > 8) {
        return 0;
    }
    if (iter->sizes[0] < 8) { return 0; }
    for (int dim = 1; dim < iter->ndim; dim++) {
        if (iter->op[1].stride[dim] == size && iter->sizes[dim] >= 8) { return dim; }
    }
    return 0;
}
typedef struct opdi_bytes { char *dst; const char *src; } opdi_bytes;
static void opdi_copy_bytes(void *ctx, int64_t begin, int64_t end) {
    const opdi_bytes *job = (const opdi_bytes *)ctx;
    opdi_move(job->dst + begin, job->src + begin, (size_t)(end - begin));
}
static int opdi_copy_same(opdi_iter *iter) {
    const int across = opdi_copy_across(iter);
    if (across) {
        if (opdi_stack_short(NULL, OPDI_STACK_FOR(OPDI_TILE_BYTES))) { return -1; }
        opdi_transpose tr;
        tr.it = iter;
        tr.across = across;
        opdi_parallel_for(opdi_bands_of(iter, across), opdi_bands_grain(iter), opdi_copy_bands, &tr);
    } else { opdi_parallel_for(iter->numel, OPDI_GRAIN, opdi_copy_rows, iter); }
    return 0;
}
/* Returns the type (OPDI_F32, ...) through which numbers of one dtype are converted to another.  Neither dtype is
   complex. */
static int opdi_copy_compute(opd_scalar_type to, opd_scalar_type from) {
    const bool beyond = from == OPD_UINT64 && !opd_dtype_is_integral(to, true);  /* int64_t cannot hold it */
    if (to == OPD_FLOAT32 && (from == OPD_UINT8 || from == OPD_INT32)) { return OPDI_F32; }   /* not through int64 */
    return !beyond ? opdi_compute_type(from) : to == OPD_FLOAT64 ? OPDI_F64 : OPDI_F32;
}
/* Copies one part of all elements (`part` 0: real, 1: imaginary), for a dst or src that is complex.  The imaginary part
   of real numbers is 0.  Returns 0, or -1 and sets an error. */
static int opdi_copy_part(opd_tensor *dst, const opd_tensor *src, int part) {
    opd_tensor *ops[2];
    opdi_iter iter;
    uint64_t zero = 0;
    const int compute = opdi_copy_compute((opd_scalar_type)opdi_real_dtype(dst->dtype),
                                          (opd_scalar_type)opdi_real_dtype(src->dtype));
    ops[0] = dst;
    ops[1] = (opd_tensor *)(uintptr_t)src;
    if (opdi_iter_init(&iter, ops, 2, 1, OPD_DTYPE_NONE, compute) != 0) { return -1; }
    iter.op[0].data += part * iter.op[0].size;
    if (opd_dtype_is_complex((opd_scalar_type)src->dtype)) { iter.op[1].data += part * iter.op[1].size; }
    else if (part) {
        iter.op[1].data = (char *)&zero;
        for (int dim = 0; dim < iter.ndim; dim++) { iter.op[1].stride[dim] = 0; }
        iter.op[1].walk = OPDI_WALK_STRIDED;
        /* float8_e8m0fnu has no 0, so the zero is read as uint8 */
        if (src->dtype == OPD_FLOAT8_E8M0FNU) { iter.op[1].load = opdi_load_of(compute, OPD_UINT8); }
    }
    opdi_parallel_for(iter.numel, OPDI_GRAIN, opdi_copy_blocks, &iter);
    return 0;
}
/* Copies numbers [begin, end) of float32 to the real parts of complex64, and sets the imaginary parts to 0. */
static void opdi_copy_real_parts(void *ctx, int64_t begin, int64_t end) {
    const opdi_bytes *const pass = (const opdi_bytes *)ctx;
    const float *const x = (const float *)(const void *)pass->src + begin;
    float *const out = (float *)(void *)pass->dst + 2 * begin;
    const int64_t count = end - begin;
    int64_t i;
    OPDI_COLUMN_EACH(
        out[2 * j] = x[j];
        out[2 * j + 1] = 0)
}
/* Runs opdi_copy_real_parts.  Returns false and does nothing if it cannot copy src to dst. */
static bool opdi_copy_real(const opd_tensor *dst, const opd_tensor *src) {
    opdi_bytes pass;
    if (dst->dtype != OPD_COMPLEX64 || src->dtype != OPD_FLOAT32 || !(dst->flags & src->flags & OPDI_CONTIGUOUS) ||
        dst->numel != src->numel || opdi_same_memory(dst, src)) { return false; }
    pass.dst = dst->data;
    pass.src = src->data;
    opdi_parallel_for(dst->numel, OPDI_GRAIN, opdi_copy_real_parts, &pass);
    return true;
}
/* A loop that copies `count` complex numbers; the pass converts them from and to the dtypes of the operands. */
static void opdi_copy_pairs(void *const *data, int64_t count, const opdi_params *params) {
    (void)params;
    memcpy(data[0], data[1], (size_t)count * sizeof(opdi_complex));
}
/* Copies elements as opdi_copy does, for a dst or src that is conjugated or negated when it is read.  Returns 0, or -1
   and sets an error. */
OPDI_NOINLINE static int opdi_copy_lazy(opd_tensor *dst, const opd_tensor *src) {
    const uint64_t keys = dst->functionality & OPDI_LAZY_KEYS;
    opd_tensor *plain = (opd_tensor *)(uintptr_t)src;
    if (keys == (src->functionality & OPDI_LAZY_KEYS) && dst->dtype == src->dtype) {
        plain = opdi_stored_as(src, 0);
        return plain && (dst = opdi_stored_as(dst, 0)) != NULL ? opdi_copy(dst, plain) : -1;
    }
    if (plain->flags & OPDI_LAZY) { plain = opdi_resolved(plain); }
    if (!plain || !keys) { return plain ? opdi_copy(dst, plain) : -1; }
    if (plain->dtype != dst->dtype) {             /* to conjugate or negate in dst's dtype */
        opd_tensor *as = opdi_own(opdi_tensor_make(plain->dims, NULL, plain->ndim, (opd_scalar_type)dst->dtype,
                                                   opdi_place_of(plain)));
        if (!as || opdi_copy(as, plain)) { return -1; }
        plain = as;
    }
    plain = opdi_stored_as(plain, keys);
    if (!plain || !(plain = opdi_resolved(plain)) || !(dst = opdi_stored_as(dst, 0))) { return -1; }
    return opdi_copy(dst, plain);
}

//== copies from and to devices ========================================================================================

OPDI_COLD_BEGIN

/* Returns the number of bytes from the first byte of the tensor's first element to the end of its last element. */
OPDI_INTERNAL size_t opdi_span(const opd_tensor *tensor) {
    return (size_t)opdi_elements_bytes(tensor->dtype, opdi_extent(tensor->dims, tensor->dims + tensor->ndim,
                                                                  tensor->ndim));
}
/* Makes a copy of `tensor` in the host's memory, with the same strides.  Returns a reference to the copy, or NULL and
   sets an error. */
OPDI_INTERNAL opd_tensor *opdi_host_copy(const opd_tensor *tensor) {
    opd_tensor *hidden = opdi_tensor_make(tensor->dims, tensor->dims + tensor->ndim, tensor->ndim,
                                          (opd_scalar_type)tensor->dtype, OPD_CPU);
    if (hidden && opdi_device_move(NULL, hidden->data, tensor->storage, tensor->data, opdi_span(tensor))) {
        opdi_drop(hidden);
        return NULL;
    }
    return hidden;
}

/* Returns true if the backend has a kernel for a built-in operator other than `ours`, the built-in kernel. */
static bool opdi_device_has(opd_op *op, int backend, opd_kernel ours) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    const opdi_table *table = op ? OPDI_ACQUIRE(&op->table) : NULL;
    if (op && !table) { table = opdi_table_make(op); }
    bool own = table && table->behind[backend] && table->behind[backend] != ours;
    opdi_leave(thread, was);
    return own;
}
/* Calls op with the Autograd keys and ADInplaceOrView excluded: without history, and without counting writes.  Returns
   0, or -1 and sets an error. */
static int opdi_device_call(opd_op *op, const opd_value *args, int nargs) {
    opd_key_guard guard = opd_keys_exclude(opd_keyset_make(OPDI_AUTOGRAD_BITS | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW),
                                                           0));
    opd_tensor *tensor = opd_call_op(op, args, nargs);
    opd_keys_restore(guard);
    return tensor ? 0 : -1;
}

/* Fills `tensor` with a number by the device's fill_, and sets *rc to the result of that call, 0 or -1.  Returns false
   if the device has no fill_. */
OPDI_INTERNAL bool opdi_device_fill(opd_tensor *tensor, opd_value value, int *rc) {
    static opd_op *op;
    opd_value args[2];
    if (!opdi_device_has(OPD_OP(&op, OPDI_NAME(fill__Scalar, "aten::fill_.Scalar")), tensor->backend,
                         opdi_fill_Scalar_kernel)) { return false; }
    args[0] = opd_value_tensor(tensor);
    args[1] = value;
    *rc = opdi_device_call(op, args, 2);
    return true;
}

/* Returns true if both tensors have the same dtype and sizes and are contiguous. */
OPDI_INTERNAL bool opdi_like(const opd_tensor *first, const opd_tensor *second) {
    return first->dtype == second->dtype && opdi_has_sizes(first, second->dims, second->ndim) &&
        (first->flags & second->flags & OPDI_CONTIGUOUS);
}
/* Copies src to dst between two memories, as contiguous tensors of dst's or src's dtype.  One of the two must be on a
   device that runs pointwise formulas: this device converts and packs the elements.  Returns 0, or -1 and sets an
   error. */
static int opdi_copy_packed(opd_tensor *dst, const opd_tensor *src) {
    const bool from = opdi_on_device(src), at_source = from && (!(src->flags & OPDI_CONTIGUOUS) ||
                                                                src->dtype != dst->dtype);
    opd_tensor *tensor;
    int rc;
    if (opdi_like(dst, src)) {
        return opdi_device_move(dst->storage, dst->data, src->storage, src->data, opdi_span(dst));
    }
    if (at_source) {                              /* converts and packs src on its device */
        tensor = opdi_tensor_make(src->dims, NULL, src->ndim, (opd_scalar_type)dst->dtype, opdi_place_of(src));
        rc = tensor ? opdi_copy_by_formula(tensor, src) : -1;
    } else {                                      /* moves src without conversion, then converts it at dst */
        const opd_tensor *sum = src;
        if (!from && !(src->flags & OPDI_CONTIGUOUS)) {
            opd_tensor *order = opdi_tensor_make(src->dims, NULL, src->ndim, (opd_scalar_type)src->dtype, OPD_CPU);
            if (!order || opdi_copy(order, src)) {
                if (order) { opdi_drop(order); }
                return -1;
            }
            sum = order;
        }
        tensor = opdi_tensor_make(src->dims, NULL, src->ndim, (opd_scalar_type)src->dtype, opdi_place_of(dst));
        rc = tensor ? opdi_device_move(tensor->storage, tensor->data, sum->storage, sum->data, opdi_span(sum)) : -1;
        if (sum != src) { opdi_drop((opd_tensor *)(uintptr_t)sum); }
    }
    if (rc == 0) { rc = opdi_copy(dst, tensor); }
    if (tensor) { opdi_drop(tensor); }
    return rc;
}

/* Copies src to dst through the host, which converts dtypes, follows strides and broadcasts.  Returns 0, or -1 and sets
   an error. */
static int opdi_copy_by_host(opd_tensor *dst, const opd_tensor *src) {
    opd_tensor *from = opdi_on_device(src) ? opdi_host_copy(src) : (opd_tensor *)(uintptr_t)src, *to = dst;
    int rc = from ? 0 : -1;
    if (rc == 0 && opdi_on_device(dst)) {
        if (!(dst->flags & OPDI_CONTIGUOUS)) { to = opdi_host_copy(dst); }    /* the copy back also writes the gaps */
        else { to = opdi_tensor_make(dst->dims, NULL, dst->ndim, (opd_scalar_type)dst->dtype, OPD_CPU); }
    }
    if (!to || (rc == 0 && opdi_copy(to, from))) { rc = -1; }
    if (rc == 0 && to != dst) { rc = opdi_device_move(dst->storage, dst->data, NULL, to->data, opdi_span(dst)); }
    if (from && from != src) { opdi_drop(from); }
    if (to && to != dst) { opdi_drop(to); }
    return rc;
}
/* Copies src to dst on the same device, where one of them has a stored dtype, by the device's function for such copies.
   Returns 0, -1 and sets an error, or 1 if the device cannot. */
static int opdi_device_convert(opd_tensor *dst, const opd_tensor *src) {
    const opdi_backend *const backend = opdi_backend_of(dst->backend);
    const bool blocks = opdi_is_block(src->dtype), ordered = dst->flags & src->flags & OPDI_CONTIGUOUS;
    const opd_tensor *const plain = dst->flags & OPDI_STORED ? src : dst;
    if (!backend || !backend->desc.convert || plain->flags & OPDI_STORED ||
        !opdi_has_sizes(src, dst->dims, dst->ndim) || !opd_dtype_is_floating((opd_scalar_type)plain->dtype) ||
        (plain == src && !opdi_is_float8(dst->dtype)) ||
        (plain == dst && !blocks && !opdi_is_float8(src->dtype))) { return 1; }
    if (!ordered && (blocks || opdi_extent(dst->dims, dst->dims + dst->ndim, dst->ndim) != dst->numel ||
                     memcmp(dst->dims + dst->ndim, src->dims + src->ndim,
                            (size_t)dst->ndim * sizeof *dst->dims) != 0 || opdi_overlaps_itself(dst))) { return 1; }
    int rc = -1;
    OPD_SCOPE {
        rc = backend->desc.convert(backend->desc.user, dst->storage->index, dst, (opd_tensor *)(uintptr_t)src);
    }
    return rc;
}
/* Copies src to dst if one of them is batched or on a device.  If their elements lie in the same order without gaps,
   all bytes are copied at once.  Within a device, the device's copy_ or its pointwise formulas are used.  All other
   copies go through the host.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_device_copy(opd_tensor *dst, const opd_tensor *src) {
    static opd_op *op;
    const bool within = opdi_place_of(dst) == opdi_place_of(src);
    opd_value args[3];
    if ((dst->flags | src->flags) & OPDI_BATCHED) { return opdi_above->batch_copy(dst, src); }
    if (dst->backend == OPD_META) { return 0; }
    if (src->backend == OPD_META) { return opd_fail(OPD_ERROR_ARGUMENT, "Cannot copy out of meta tensor; no data!"); }
    const bool stored = ((dst->flags | src->flags) & OPDI_STORED) != 0;            /* no device converts stored
                                                                                      dtypes */
    if (!stored && src->backend == OPD_CPU && src->ndim == 0 && opdi_backend_pointwise(dst->backend)) {
        return opdi_copy_by_formula(dst, src);    /* does not wait for a copy */
    }
    if (within && opdi_check_partial_overlap(dst, src)) { return -1; }
    if (dst->dtype == src->dtype && opdi_has_sizes(src, dst->dims, dst->ndim) &&
        opdi_extent(dst->dims, dst->dims + dst->ndim, dst->ndim) == dst->numel && !opdi_overlaps_itself(dst) &&
        ((dst->flags & src->flags & OPDI_CONTIGUOUS) || dst->ndim == 0 ||
         memcmp(dst->dims + dst->ndim, src->dims + src->ndim, (size_t)dst->ndim * sizeof *dst->dims) == 0)) {
        return opdi_device_move(dst->storage, dst->data, src->storage, src->data, opdi_span(dst));
    }
    if (stored) {
        const int rc = within ? opdi_device_convert(dst, src) : 1;
        return rc == 1 ? opdi_copy_by_host(dst, src) : rc;
    }
    if (within && opdi_device_has(OPD_OP(&op, OPDI_NAME(copy_, "aten::copy_")), dst->backend, opdi_copy__kernel)) {
        args[0] = opd_value_tensor(dst);
        args[1] = opd_value_tensor((opd_tensor *)(uintptr_t)src);
        args[2] = opd_value_bool(false);
        return opdi_device_call(op, args, 3);
    }
    if (within && opdi_backend_pointwise(dst->backend)) { return opdi_copy_by_formula(dst, src); }
    if (opdi_backend_pointwise(opdi_on_device(src) ? src->backend : dst->backend)) {
        return opdi_copy_packed(dst, src);
    }
    return opdi_copy_by_host(dst, src);
}

OPDI_COLD_END

//== any copy ==========================================================================================================

/* Copies src, which broadcasts to dst, to dst.  Both may have any dtypes and strides (copy_, contiguous, to, clone).
   Returns 0, or -1 and sets an error if src does not broadcast or the memory overlaps. */
OPDI_INTERNAL int opdi_copy(opd_tensor *dst, const opd_tensor *src) {
    opd_tensor *ops[2];
    opdi_iter iter;
    if (src->ndim > dst->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "copy: a tensor of %d dimensions cannot be copied into one of %d", src->ndim,
                        dst->ndim);
    }
    for (int dim = 0; dim < src->ndim; dim++) {
        int64_t first = opdi_sizes(dst)[dst->ndim - src->ndim + dim], second = opdi_sizes(src)[dim];
        if (first != second && second != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d", (long long)first, (long long)second,
                            dst->ndim - src->ndim + dim);
        }
    }
    if (dst->numel == 0 || dst->backend == OPD_META) { return 0; }
    if (opdi_wait_for(src) || opdi_wait_for(dst)) { return -1; }
    if (OPDI_UNLIKELY((dst->flags | src->flags) & OPDI_LAZY)) { return opdi_copy_lazy(dst, src); }
    if (OPDI_UNLIKELY(((dst->backend | src->backend) | ((dst->flags | src->flags) & OPDI_BATCHED)) != OPD_CPU)) {
        return opdi_device_copy(dst, src);
    }
    if (dst->dtype == src->dtype && (dst->flags & src->flags & OPDI_CONTIGUOUS) && dst->numel == src->numel) {
        opdi_bytes other;
        const int64_t numel = opdi_elements_bytes(dst->dtype, dst->numel);
        if (opdi_check_partial_overlap(dst, src) != 0) { return -1; }
        other.dst = dst->data;
        other.src = src->data;
        if (numel <= 4 * OPDI_GRAIN) { memmove(other.dst, other.src, (size_t)numel); }
        else { opdi_parallel_for(numel, 4 * OPDI_GRAIN, opdi_copy_bytes, &other); }
        return 0;
    }
    if (OPDI_UNLIKELY(opdi_is_block(dst->dtype) || opdi_is_block(src->dtype))) {
        const opdi_block_forms *const forms = opdi_block_forms_of();
        return forms ? forms->copy(dst, src) : -1;
    }
    ops[0] = dst;
    ops[1] = (opd_tensor *)(uintptr_t)src;
    if (opd_dtype_is_complex((opd_scalar_type)dst->dtype) || opd_dtype_is_complex((opd_scalar_type)src->dtype)) {
        if (dst->dtype == OPD_BOOL) {             /* a number is true if either part is not 0 */
            return opdi_iter_run(ops, 2, 1, (opd_scalar_type)src->dtype, OPDI_C128, opdi_copy_pairs, NULL);
        }
        if (opdi_copy_real(dst, src)) { return 0; }
        if (opdi_copy_part(dst, src, 0) != 0) { return -1; }
        return opd_dtype_is_complex((opd_scalar_type)dst->dtype) ? opdi_copy_part(dst, src, 1) : 0;
    }
    const int compute = opdi_copy_compute((opd_scalar_type)dst->dtype, (opd_scalar_type)src->dtype);
    if (opdi_iter_init(&iter, ops, 2, 1, OPD_DTYPE_NONE, compute) != 0) { return -1; }
    if (dst->dtype == src->dtype) { return opdi_copy_same(&iter); }
    const bool dense = iter.op[0].walk == OPDI_WALK_LINEAR && iter.op[1].walk == OPDI_WALK_LINEAR;
    const bool once = dense && iter.op[0].convert != iter.op[1].convert && !iter.op[1].round;
    opdi_parallel_for(iter.numel, OPDI_GRAIN, once ? opdi_copy_converted : opdi_copy_blocks, &iter);
    return 0;
}
