#include "kernels.h"

//== matrix times vector, and products with few rows or columns ========================================================

/* A product y [m] = A [m, k] * x [k], or y += A * x if `add` is set.  Rows of A are rs elements apart, columns cs, and
   elements of y incy. */
typedef struct opdi_gemv_job {
    size_t size;
    const char *a, *x;
    char *y;
    int64_t m, k, rs, cs, incy;
    int add;
} opdi_gemv_job;

/* The functions for a product of a matrix A [m, k] and a contiguous vector x.  opdi_gemv_cols_*, for an A that is
   stored by columns, add multiples of the columns to y.  opdi_dot_*, for an A that is stored by rows, return one
   element of the product: the dot product of a row and x. */
static void opdi_gemv_cols_plain_f32(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
static void opdi_gemv_cols_plain_f64(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
static float opdi_dot_plain_f32(int64_t depth, const float *a, const float *x);
static double opdi_dot_plain_f64(int64_t depth, const double *a, const double *x);
#if defined(OPDI_VECTORS)
OPDI_AVX2 static float opdi_dot_avx2_f32(int64_t depth, const float *a, const float *x);
OPDI_AVX2 static double opdi_dot_avx2_f64(int64_t depth, const double *a, const double *x);
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_gemv_cols_avx512_f32(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
OPDI_AVX512 static void opdi_gemv_cols_avx512_f64(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
OPDI_AVX512 static float opdi_dot_avx512_f32(int64_t depth, const float *a, const float *x);
OPDI_AVX512 static double opdi_dot_avx512_f64(int64_t depth, const double *a, const double *x);
#endif
#include "../typed/f32.h"
#include "columns_by_vector.typed.h"
#include "dots_plain.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "dots_vectors.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "columns_by_vector.typed.h"
#include "dots_vectors.typed.h"
#endif
#include "../typed/f64.h"
#include "columns_by_vector.typed.h"
#include "dots_plain.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f64_avx2.h"
#include "dots_vectors.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f64_avx512.h"
#include "columns_by_vector.typed.h"
#include "dots_vectors.typed.h"
#endif
#include "../typed/end.h"

/* Computes `count` dot products of `depth` elements of `size` bytes each.  The operands of product number i begin at
   element i * as of `first` and at element i * bs of `second`.  Stores the product in product[i * cs]; if beta is not
   0, adds beta times the old number there. */
OPDI_INTERNAL void opdi_dots(size_t size, int64_t count, int64_t depth, const void *first, int64_t as,
                             const void *second, int64_t bs, double beta, void *product, int64_t cs) {
    float (*f32)(int64_t, const float *, const float *) = opdi_dot_plain_f32;
    double (*f64)(int64_t, const double *, const double *) = opdi_dot_plain_f64;
#if defined(OPDI_VECTORS)
    int level = opdi_cpu_level();
    if (level == 1) {
        f32 = opdi_dot_avx2_f32;
        f64 = opdi_dot_avx2_f64;
    }
#endif
#if defined(OPDI_X86)
    if (level == 2) {
        f32 = opdi_dot_avx512_f32;
        f64 = opdi_dot_avx512_f64;
    }
#endif
    for (int64_t i = 0; i < count; i++) {
        float *f = (float *)product + i * cs;
        double *to = (double *)product + i * cs;
        if (size == 4) {
            const float sum = f32(depth, (const float *)first + i * as, (const float *)second + i * bs);
            *f = beta == 0 ? sum : sum + (float)beta * *f;
        } else {
            const double sum = f64(depth, (const double *)first + i * as, (const double *)second + i * bs);
            *to = beta == 0 ? sum : sum + beta * *to;
        }
    }
}
static void opdi_gemv_rows(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y) {
    opdi_dots(job->size, rows, job->k, job->a + i * job->rs * (int64_t)job->size, job->rs, job->x, 0, 0, y, 1);
}

/* The following functions write the rows of an outer product C [rows, count], which are rs elements apart.  Row i is b
   times a[i * as].  If `stream` is true (C is larger than the caches), the writes bypass the caches. */
#if defined(OPDI_VECTORS)
OPDI_AVX2 static void opdi_outer_avx2_f32(int64_t rows, int64_t count, const float *a, int64_t as, const float *b,
                                          float *out_row, int64_t rs, int stream);
OPDI_AVX2 static void opdi_outer_avx2_f64(int64_t rows, int64_t count, const double *a, int64_t as, const double *b,
                                          double *out_row, int64_t rs, int stream);
#endif
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "outer_products.typed.h"
#include "../typed/f64_avx2.h"
#include "outer_products.typed.h"
#endif
#include "../typed/end.h"

/* If there is a special loop for it, computes the outer product C = first second^T and returns 1; else returns 0.
   `large` tells if C is larger than the caches. */
OPDI_INTERNAL int opdi_outer_try(size_t size, int64_t rows, int64_t count, const void *first, int64_t as,
                                 const void *second, void *product, int64_t rs, bool large) {
#if defined(OPDI_VECTORS)
    const int stream = large && ((uintptr_t)product & 31) == 0 && rs * (int64_t)size % 32 == 0;
    if (opdi_cpu_level() == 0) { return 0; }
    if (size == 4) {
        opdi_outer_avx2_f32(rows, count, (const float *)first, as, (const float *)second, (float *)product, rs, stream);
    }
    else {
        opdi_outer_avx2_f64(rows, count, (const double *)first, as, (const double *)second, (double *)product, rs,
                            stream);
    }
    if (stream) { OPDI_STREAM_END; }
    return 1;
#else
    (void)size;
    (void)rows;
    (void)count;
    (void)first;
    (void)as;
    (void)second;
    (void)product;
    (void)rs;
    (void)large;
    return 0;
#endif
}

/* Adds to y the products of x with rows i .. i + rows - 1 (fewer than 16) of A, which is stored by columns. */
static void opdi_gemv_rest(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y) {
    const void *first = job->a + i * job->rs * (int64_t)job->size, *x = job->x;
    for (int64_t step = 0; step < job->k; step++) {
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = row * job->rs + step * job->cs;
            if (job->size == 4) { ((float *)y)[row] += ((const float *)first)[at] * ((const float *)x)[step]; }
            else { ((double *)y)[row] += ((const double *)first)[at] * ((const double *)x)[step]; }
        }
    }
}

static void opdi_gemv_cols(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() == 2) {
        (job->size == 4 ? opdi_gemv_cols_avx512_f32 : opdi_gemv_cols_avx512_f64)(job, i, rows, y);
        return;
    }
#endif
    (job->size == 4 ? opdi_gemv_cols_plain_f32 : opdi_gemv_cols_plain_f64)(job, i, rows, y);
}
/* An opdi_range_fn: computes rows [begin, end) of y = A x, or y += A x if job->add is set.  Works in steps that fit
   into a buffer on the stack. */
static void opdi_gemv_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemv_job *job = (const opdi_gemv_job *)ctx;
    double y[1024];
    int64_t step = job->size == 4 ? 2048 : 1024;
    for (int64_t i = begin; i < end; i += step) {
        int64_t rows = OPDI_MIN(step, end - i), whole = rows & ~(int64_t)15;
        memset(y, 0, (size_t)rows * job->size);
        if (job->cs == 1) {
            opdi_gemv_rows(job, i, rows, y);
        } else {
            opdi_gemv_cols(job, i, whole, y);
            opdi_gemv_rest(job, i + whole, rows - whole, (char *)y + (size_t)whole * job->size);
        }
        for (int64_t row = 0; row < rows; row++) {
            int64_t to = (i + row) * job->incy;
            float *f = (float *)(void *)job->y + to;
            double *dest = (double *)(void *)job->y + to;
            if (job->size == 4) { *f = (job->add ? *f : 0.0f) + ((const float *)(void *)y)[row]; }
            else { *dest = (job->add ? *dest : 0.0) + y[row]; }
        }
    }
}

/* Computes a product with one row or column as matrix times vector.  Returns 1, or 0 if the operands do not suit this
   method, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gemv_try(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const int dtype = job->size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    opdi_gemv_job gemv;
    int64_t incx;
    if ((rows != 1 && count != 1) || job->b.pack || job->a.dtype != dtype || job->b.dtype != dtype) { return 0; }
    gemv.size = job->size;
    gemv.y = job->c;
    gemv.add = job->add;
    gemv.k = depth;
    if (count == 1) {
        gemv.a = (const char *)job->a.data;
        gemv.rs = job->a.cs;
        gemv.cs = job->a.rs;
        gemv.m = rows;
        gemv.incy = job->rsc;
        gemv.x = (const char *)job->b.data;
        incx = job->b.rs;
    } else {
        gemv.a = (const char *)job->b.data;
        gemv.rs = job->b.cs;
        gemv.cs = job->b.rs;
        gemv.m = count;
        gemv.incy = job->csc;
        gemv.x = (const char *)job->a.data;
        incx = job->a.rs;
    }
    if (gemv.cs != 1 && gemv.rs != 1) { return 0; }
    char *copy = NULL;
    if (incx != 1) {
        opdi_gemm_in vector = count == 1 ? job->b : job->a;
        copy = opdi_scratch_alloc((size_t)depth * gemv.size);
        if (!copy) { return -1; }
        opdi_pack_line(&vector, 0, incx, depth, copy);
        gemv.x = copy;
    }
    int64_t grain = opdi_round_up(OPDI_MAX(16, 65536 / depth), 16);
    opdi_parallel_for(gemv.m, grain, opdi_gemv_range, &gemv);
    if (copy) { opdi_scratch_free(copy, (size_t)depth * gemv.size); }
    return 1;
}

/* Computes C = beta * C + A * B without packing.  This is possible if all sizes are at most 64 (and their product at
   most 4096), beta is 0 or 1, and the rows of B and C are contiguous and consist of whole vectors.  Returns false,
   and computes nothing, for any other product. */
OPDI_INTERNAL bool opdi_gemm_small(int dtype, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                                   const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
#if defined(OPDI_VECTORS)
    if (rows > 64 || count > 64 || depth > 64 || rows * count * depth > 4096 || rows < 2 || depth < 1 || csc != 1 ||
        right->cs != 1 || right->pack || count % (dtype == OPD_FLOAT32 ? 8 : 4) || (beta != 0 && beta != 1) ||
        left->dtype != dtype || right->dtype != dtype || opdi_cpu_level() == 0) { return false; }
    if (dtype == OPD_FLOAT32) {
        opdi_gemm_small_avx2_f32(rows, count, depth, left, right, beta != 0, product, rsc);
        return true;
    }
    if (dtype != OPD_FLOAT64) { return false; }
    opdi_gemm_small_avx2_f64(rows, count, depth, left, right, beta != 0, product, rsc);
    return true;
#else
    (void)dtype;
    (void)rows;
    (void)count;
    (void)depth;
    (void)left;
    (void)right;
    (void)beta;
    (void)product;
    (void)rsc;
    (void)csc;
    return false;
#endif
}
/* Computes C = A * B, or C += A * B if job->add is set, by plain loops: for products so small that preparations would
   take longer than the product itself. */
OPDI_INTERNAL void opdi_gemm_tiny(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const float *a = (const float *)job->a.data, *b = (const float *)job->b.data;
    const double *x = (const double *)job->a.data, *y = (const double *)job->b.data;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < count; j++) {
            int64_t at_a = i * job->a.cs, at_b = j * job->b.cs, to = i * job->rsc + j * job->csc;
            float f = 0;
            double d = 0;
            if (job->size == 4) {
                for (int64_t step = 0; step < depth; step++) {
                    f += a[at_a + step * job->a.rs] * b[at_b + step * job->b.rs];
                }
            }
            else {
                for (int64_t step = 0; step < depth; step++) {
                    d += x[at_a + step * job->a.rs] * y[at_b + step * job->b.rs];
                }
            }
            float *single = (float *)(void *)job->c + to;
            double *twice = (double *)(void *)job->c + to;
            if (job->size == 4) { *single = job->add ? *single + f : f; }
            else { *twice = job->add ? *twice + d : d; }
        }
    }
}

#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
typedef float opdi_v16p __attribute__((vector_size(64), aligned(2), may_alias));      /* for bfloat16 pairs */
/* Returns the dot product of `depth` bfloat16 numbers of a and x, as the sum of four vectors of sums. */
OPDI_AVX512 static float opdi_dot_pairs(int64_t depth, const uint16_t *a, const uint16_t *x) {
    opdi_v16f s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    float lanes[16], sum = 0;
    int64_t step = 0;
    for (; step + 128 <= depth; step += 128) {
        const opdi_v16p *v16f = (const opdi_v16p *)(const void *)(a + step);
        const opdi_v16p *other = (const opdi_v16p *)(const void *)(x + step);
        OPDI_ASM_PAIRS(s0, v16f[0], other[0]);
        OPDI_ASM_PAIRS(s1, v16f[1], other[1]);
        OPDI_ASM_PAIRS(s2, v16f[2], other[2]);
        OPDI_ASM_PAIRS(s3, v16f[3], other[3]);
    }
    for (; step + 32 <= depth; step += 32) {
        OPDI_ASM_PAIRS(s0, *(const opdi_v16p *)(const void *)(a + step), *(const opdi_v16p *)(const void *)(x + step));
    }
    s0 = (s0 + s1) + (s2 + s3);
    memcpy(lanes, &s0, sizeof lanes);
    for (int lane = 0; lane < 16; lane++) { sum += lanes[lane]; }
    for (; step < depth; step++) { sum += opdi_bf16_to_f32(a[step]) * opdi_bf16_to_f32(x[step]); }
    return sum;
}
#else
static float opdi_dot_pairs(int64_t depth, const uint16_t *a, const uint16_t *x) {
    float sum = 0;
    for (int64_t step = 0; step < depth; step++) { sum += opdi_bf16_to_f32(a[step]) * opdi_bf16_to_f32(x[step]); }
    return sum;
}
#endif
#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
/* An opdi_dots_fn: computes the 16 dot products of `depth` bfloat16 numbers of four rows with four other rows, each in
   a separate vector of sums. */
OPDI_AVX512 static void opdi_dots_pairs(int64_t depth, const void *const *few, const void *const *many, void *product) {
    const uint16_t *const *a = (const uint16_t *const *)few, *const *x = (const uint16_t *const *)many;
    float *const sums = (float *)product;
    typedef float opdi_half __attribute__((vector_size(32)));
    typedef float opdi_quarter __attribute__((vector_size(16)));
    const uint16_t *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    opdi_v16f all[16] = {{0}};
    int64_t step = 0;
#define OPDI_PAIRS_AT(p) (*(const opdi_v16p *)(const void *)((p) + step))
#define OPDI_PAIRS_FOUR(i) { \
        const opdi_v16f row = OPDI_PAIRS_AT(a##i); \
        OPDI_ASM_PAIRS(c##i##0, row, y0); \
        OPDI_ASM_PAIRS(c##i##1, row, y1); \
        OPDI_ASM_PAIRS(c##i##2, row, y2); \
        OPDI_ASM_PAIRS(c##i##3, row, y3); \
    }
#define OPDI_PAIRS_ZERO(i) opdi_v16f c##i##0 = {0}, c##i##1 = {0}, c##i##2 = {0}, c##i##3 = {0};
#define OPDI_PAIRS_KEEP(i) \
    all[4 * i] = c##i##0, all[4 * i + 1] = c##i##1, all[4 * i + 2] = c##i##2, all[4 * i + 3] = c##i##3;
    OPDI_PAIRS_ZERO(0) OPDI_PAIRS_ZERO(1) OPDI_PAIRS_ZERO(2) OPDI_PAIRS_ZERO(3)
    for (; step + 32 <= depth; step += 32) {
        const opdi_v16f y0 = OPDI_PAIRS_AT(x0), y1 = OPDI_PAIRS_AT(x1), y2 = OPDI_PAIRS_AT(x2), y3 = OPDI_PAIRS_AT(x3);
        OPDI_PAIRS_FOUR(0) OPDI_PAIRS_FOUR(1) OPDI_PAIRS_FOUR(2) OPDI_PAIRS_FOUR(3)
    }
    OPDI_PAIRS_KEEP(0) OPDI_PAIRS_KEEP(1) OPDI_PAIRS_KEEP(2) OPDI_PAIRS_KEEP(3)
#undef OPDI_PAIRS_AT
#undef OPDI_PAIRS_FOUR
#undef OPDI_PAIRS_ZERO
#undef OPDI_PAIRS_KEEP
    for (int k = 0; k < 16; k++) {
        opdi_half halves[2];
        opdi_quarter quarters[2];
        memcpy(halves, &all[k], sizeof halves);
        halves[0] += halves[1];
        memcpy(quarters, &halves[0], sizeof quarters);
        quarters[0] += quarters[1];
        sums[k] = (quarters[0][0] + quarters[0][1]) + (quarters[0][2] + quarters[0][3]);
    }
    for (; step < depth; step++) {
        for (int k = 0; k < 16; k++) {
            sums[k] += opdi_bf16_to_f32(a[k / 4][step]) * opdi_bf16_to_f32(x[k % 4][step]);
        }
    }
}
#endif
/* A product of a few rows with many rows of half precision, computed by dot products. */
typedef struct opdi_halves_job {
    opdi_gemm_in few, many;
    const float *rows;                            /* the few rows as float [nrows, depth], or NULL if bfloat16 are
                                                     multiplied as pairs */
    float *out;
    int64_t nrows, depth, across, along;          /* element (i, j) of the product is out[i * across + j * along] */
    int add;
} opdi_halves_job;
static void opdi_halves_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_halves_job *job = (const opdi_halves_job *)ctx;
    float wide[1024], sums[OPDI_FEW];
    for (int64_t j = begin; j < end; j++) {
        const uint16_t *const row = (const uint16_t *)job->many.data + j * job->many.cs;
        for (int64_t i = 0; !job->rows && i < job->nrows; i++) {
            sums[i] = opdi_dot_pairs(job->depth, row, (const uint16_t *)job->few.data + i * job->few.cs);
        }
        for (int64_t at = 0; job->rows && at < job->depth; at += 1024) {
            const int64_t part = OPDI_MIN(1024, job->depth - at);
            opdi_widen(row + at, job->many.dtype == OPD_BFLOAT16, part, wide);
            opdi_dots(4, job->nrows, part, job->rows + at, job->depth, wide, 0, at ? 1 : 0, sums, 1);
        }
        for (int64_t i = 0; i < job->nrows; i++) {
            float *const to = job->out + i * job->across + j * job->along;
            *to = job->add ? *to + sums[i] : sums[i];
        }
    }
}
/* A product of a few rows with many rows, all contiguous along k.  One call of `run` takes `high` of the few rows
   and four of the many rows. */
typedef struct opdi_few_rows_job {
    opdi_dots_fn *run;
    int64_t high;
    const char *few, *many;
    int64_t few_step, many_step;                  /* bytes from one row to the next */
    char *out;
    int64_t nrows, depth, across, along;          /* element (i, j) of the product is at out + (i * across + j * along)
                                                     * size */
    size_t size;
    int add;
} opdi_few_rows_job;
static void opdi_few_rows_put(const opdi_few_rows_job *job, int64_t i, int64_t j, const double *sums, int64_t k) {
    char *const to = job->out + (i * job->across + j * job->along) * (int64_t)job->size;
    float *const f = (float *)(void *)to;
    double *const d = (double *)(void *)to;
    if (job->size == 8) { *d = job->add ? *d + sums[k] : sums[k]; }
    else {
        const float sum = ((const float *)(const void *)sums)[k];
        *f = job->add ? *f + sum : sum;
    }
}
static void opdi_few_rows_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_few_rows_job *job = (const opdi_few_rows_job *)ctx;
    for (int64_t j = begin; j < end; j += 4) {
        const void *few[4], *many[4];
        const int64_t wide = OPDI_MIN(4, end - j);
        double sums[16];                          /* or 16 floats */
        for (int64_t k = 0; k < 4; k++) {         /* surplus rows repeat the last row; their sums are unused */
            many[k] = job->many + (j + OPDI_MIN(k, wide - 1)) * job->many_step;
        }
        for (int64_t i = 0; i < job->nrows; i += job->high) {
            const int64_t rows = OPDI_MIN(job->high, job->nrows - i);
            for (int64_t k = 0; k < job->high; k++) {
                few[k] = job->few + (i + OPDI_MIN(k, rows - 1)) * job->few_step;
            }
            job->run(job->depth, few, many, sums);
            for (int64_t k = 0; k < 4 * rows; k++) {
                if (k % 4 < wide) { opdi_few_rows_put(job, i + k / 4, j + k % 4, sums, k); }
            }
        }
    }
}
/* Sets few->run to the function that multiplies rows of floats (or doubles) by rows of dtype `many` or, if `pairs` is
   true, rows of bfloat16 by rows of bfloat16.  Sets few->high to the number of the few rows that the function takes in
   one call.  If this processor has no such function, sets few->run to NULL. */
static void opdi_few_rows_choose(opdi_few_rows_job *few, int many, bool pairs) {
    few->run = NULL;
    few->high = 4;
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level == 0) { return; }
#if !defined(OPDI_NEON)
    if (level == 1) { few->high = 2; }
#endif
    if (many == OPD_FLOAT32) { few->run = OPDI_WIDEST(level, opdi_dots_few_avx512_f32, opdi_dots_few_avx2_f32); }
    if (many == OPD_FLOAT64) { few->run = OPDI_WIDEST(level, opdi_dots_few_avx512_f64, opdi_dots_few_avx2_f64); }
    if (many == OPD_FLOAT16 && few->nrows > 1) {
        few->run = OPDI_WIDEST(level, opdi_dots_few_f16_avx512_f32, opdi_dots_few_f16_avx2_f32);
    }
    if (many == OPD_FLOAT16 && few->nrows == 1) {
        few->run = OPDI_WIDEST(level, opdi_dots_one_f16_avx512_f32, opdi_dots_one_f16_avx2_f32);
        few->high = 1;
    }
    if (many == OPD_BFLOAT16 && few->nrows > 1) {
        few->run = OPDI_WIDEST(level, opdi_dots_few_bf16_avx512_f32, opdi_dots_few_bf16_avx2_f32);
    }
    if (many == OPD_BFLOAT16 && few->nrows == 1) {
        few->run = OPDI_WIDEST(level, opdi_dots_one_bf16_avx512_f32, opdi_dots_one_bf16_avx2_f32);
        few->high = 1;
    }
#if defined(OPDI_ASM_PAIRS)
    if (pairs) {
        few->run = opdi_dots_pairs;
        few->high = 4;
    }
#endif
#endif
    (void)many;
    (void)pairs;
}
/* Returns the function that multiplies *high rows by four rows, all of floats (if size is 4) or of doubles, or NULL if
   this processor has no such function. */
OPDI_INTERNAL opdi_dots_fn *opdi_dots_of(size_t size, int64_t *high) {
    opdi_few_rows_job few;
    few.nrows = 4;
    opdi_few_rows_choose(&few, size == 4 ? OPD_FLOAT32 : OPD_FLOAT64, false);
#if defined(OPDI_NEON)
    if (few.run && opd_same_bits()) {
        few.run = size == 4 ? opdi_dots_same_avx2_f32 : opdi_dots_same_avx2_f64;
        few.high = 2;
    }
#endif
    *high = few.high;
    return few.run;
}
/* Computes a product by an opdi_dots_fn, if one side has few rows and k is contiguous on both sides.  Operands are
   floats, doubles or half precision.  Returns 1, or 0 if the operands do not suit this method, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_few_rows_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const bool turned = count < rows;
    const bool pairs = job->a.dtype == OPD_BFLOAT16 && job->b.dtype == OPD_BFLOAT16 &&
        (opdi_cpu_words() & OPDI_HAS_PAIRS) != 0;
    const opdi_gemm_in *const less = turned ? &job->b : &job->a, *const more = turned ? &job->a : &job->b;
    const int64_t nrows = OPDI_MIN(rows, count);
    /* half: the many rows are converted to floats; if the few rows are, too, this is done once */
    const bool half = opdi_gemm_moved(more) == 0, both = half && opdi_gemm_moved(less) == 0;
    opdi_few_rows_job few;
    few.nrows = nrows;
    opdi_few_rows_choose(&few, more->dtype, pairs);
    /* Dot products add up their lanes at the end.  If the rows are long, this costs less than packing the other
       operand. */
    const bool lengthy = depth * (int64_t)job->size >= 80 * nrows;
    const int64_t most = pairs ? nrows > OPDI_FEW_TILES && opdi_cpu_tiles() ? OPDI_FEW_TILES : OPDI_FEW_PAIRS
        : half ? OPDI_FEW_ROWS : OPDI_FEW_FLOATS * (lengthy ? few.high : 1);
    if (!few.run || nrows > most || job->b.pack || job->a.rs != 1 || job->b.rs != 1 ||
        (job->a.dtype != job->b.dtype && (!half || less->dtype != OPD_FLOAT32)) ||
        (half ? pairs && nrows <= OPDI_FEW : depth < 256 || nrows == 1)) { return 0; }
    const size_t bytes = (size_t)(nrows * depth) * sizeof(float);
    float *const wide = both && !pairs ? (float *)(void *)opdi_scratch_alloc(bytes) : NULL;
    if (both && !pairs && !wide) { return -1; }
    for (int64_t i = 0; wide && i < nrows; i++) { opdi_pack_line(less, i * less->cs, 1, depth, wide + i * depth); }
    few.size = job->size;
    few.few = wide ? (const char *)wide : (const char *)less->data;
    few.few_step = wide ? depth * (int64_t)sizeof(float) : less->cs * (both ? 2 : (int64_t)job->size);
    few.many = (const char *)more->data;
    few.many_step = more->cs * (half ? 2 : (int64_t)job->size);
    few.out = job->c;
    few.depth = depth;
    few.across = turned ? job->csc : job->rsc;
    few.along = turned ? job->rsc : job->csc;
    few.add = job->add;
    opdi_parallel_for(OPDI_MAX(rows, count), opdi_round_up(OPDI_MAX(1, 65536 / depth), 4), opdi_few_rows_range, &few);
    if (wide) { opdi_scratch_free((char *)wide, bytes); }
    return 1;
}
/* Computes a product of half-precision operands, if one side has at most OPDI_FEW rows and k is contiguous on both
   sides.  Returns 1, or 0 if the operands do not suit this method, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_halves_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const bool turned = count < rows;
    const bool pairs = job->a.dtype == OPD_BFLOAT16 && job->b.dtype == OPD_BFLOAT16 &&
        (opdi_cpu_words() & OPDI_HAS_PAIRS) != 0;
    opdi_halves_job halves;
    if (OPDI_MIN(rows, count) > OPDI_FEW || job->b.pack || job->a.rs != 1 || job->b.rs != 1 ||
        opdi_gemm_moved(&job->a) || opdi_gemm_moved(&job->b)) { return 0; }
    halves.few = turned ? job->b : job->a;
    halves.many = turned ? job->a : job->b;
    halves.nrows = OPDI_MIN(rows, count);
    const size_t bytes = (size_t)(halves.nrows * depth) * sizeof(float);
    float *const wide = pairs ? NULL : (float *)(void *)opdi_scratch_alloc(bytes);
    if (!pairs && !wide) { return -1; }
    for (int64_t i = 0; wide && i < halves.nrows; i++) {
        opdi_pack_line(&halves.few, i * halves.few.cs, 1, depth, wide + i * depth);
    }
    halves.rows = wide;
    halves.out = (float *)(void *)job->c;
    halves.depth = depth;
    halves.across = turned ? job->csc : job->rsc;
    halves.along = turned ? job->rsc : job->csc;
    halves.add = job->add;
    opdi_parallel_for(OPDI_MAX(rows, count), OPDI_MAX(1, 65536 / depth), opdi_halves_range, &halves);
    if (wide) { opdi_scratch_free((char *)wide, bytes); }
    return 1;
}

//== few rows times a matrix with contiguous rows ======================================================================
//
//  The matrix is read once and not packed.

#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "row_groups.typed.h"
#include "../typed/f64_avx2.h"
#include "row_groups.typed.h"
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "row_groups.typed.h"
#include "../typed/f64_avx512.h"
#include "row_groups.typed.h"
#endif
#include "../typed/end.h"
typedef void opdi_row_groups_f32_fn(int64_t rows, int64_t count, int64_t depth, const float *x, const float *b,
                                    int64_t bs, float *y, int64_t ys);
typedef void opdi_row_groups_f64_fn(int64_t rows, int64_t count, int64_t depth, const double *x, const double *b,
                                    int64_t bs, double *y, int64_t ys);
typedef struct opdi_row_groups_job {
    opdi_row_groups_f32_fn *f32;
    opdi_row_groups_f64_fn *f64;
    const char *x, *b;                            /* x [depth, nrows] */
    char *out;
    int64_t nrows, depth, bs, rsc;                /* element (i, j) of the result: out + (i * rsc + j) * size */
    int64_t kstep;                                /* depth of a block */
    int64_t size;                                 /* bytes of an element */
    int add;
} opdi_row_groups_job;
/* For all rows i, adds row i of `sums`, whose rows have `count` elements, to row i of out, or stores it there if `add`
   is 0. */
static void opdi_row_groups_put(const opdi_row_groups_job *job, const void *sums, int64_t count, char *out, int add) {
    for (int64_t i = 0; i < job->nrows; i++, out += job->rsc * job->size) {
        const void *const row = (const char *)sums + i * count * job->size;
        if (!add) { memcpy(out, row, (size_t)(count * job->size)); }
        else if (job->size == 4) {
            for (int64_t j = 0; j < count; j++) { ((float *)(void *)out)[j] += ((const float *)row)[j]; }
        } else {
            for (int64_t j = 0; j < count; j++) { ((double *)(void *)out)[j] += ((const double *)row)[j]; }
        }
    }
}
/* An opdi_range_fn: computes columns [begin, end) of the result, as many at a time as fit in the cache.  Like
   opdi_gemm_blocked, sums up each block of job->kstep steps separately, and then adds the sums to the result.  So a row
   gets the same bits as in a product of many rows. */
static void opdi_row_groups_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_row_groups_job *const job = (const opdi_row_groups_job *)ctx;
    const int64_t size = job->size, most = OPDI_ROW_GROUPS_BYTES / (job->nrows * size) & ~(int64_t)15;
    char sums[OPDI_ROW_GROUPS_BYTES] __attribute__((aligned(64)));
    for (int64_t at = begin, count; at < end; at += count) {
        count = OPDI_MIN(most, end - at);
        for (int64_t k = 0; k < job->depth; k += job->kstep) {
            const int64_t depth = OPDI_MIN(job->kstep, job->depth - k);
            const void *const b = job->b + (k * job->bs + at) * size, *const x = job->x + k * job->nrows * size;
            memset(sums, 0, (size_t)(job->nrows * count * size));
            if (size == 4) {
                job->f32(job->nrows, count, depth, (const float *)x, (const float *)b, job->bs, (float *)(void *)sums,
                         count);
            } else {
                job->f64(job->nrows, count, depth, (const double *)x, (const double *)b, job->bs,
                         (double *)(void *)sums, count);
            }
            opdi_row_groups_put(job, sums, count, job->out + at * size, job->add || k > 0);
        }
    }
}
/* Computes a product of a few rows of floats or doubles with a matrix whose rows are contiguous.  Returns 1, or 0 if
   the operands do not suit this method, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_row_groups_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const int dtype = job->size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    const double matrix = (double)count * (double)depth * (double)job->size;      /* in bytes */
    /* with more rows, packing the matrix would cost less time than it saves; the limits were measured on Zen 4 */
    const int64_t most = matrix >= 8 << 20 ? 6 : matrix >= 256 << 10 ? 3 : matrix >= 64 << 10 ? 2 : 0;
    opdi_row_groups_job groups;
    const int level = opdi_cpu_level();
    if (level == 0 || rows < (level == 1 ? 1 : 2) || rows > most || count < 64 || depth < 64 || job->b.pack ||
        job->b.cs != 1 || job->csc != 1 || job->a.dtype != dtype || job->b.dtype != dtype) { return 0; }
    const size_t bytes = (size_t)(rows * depth) * job->size;
    char *const x = opdi_scratch_alloc(bytes);
    if (!x) { return -1; }
    for (int64_t k = 0; k < depth; k++) {
        opdi_pack_line(&job->a, k * job->a.rs, job->a.cs, rows, x + k * rows * (int64_t)job->size);
    }
    groups.f32 = opdi_row_groups_avx2_f32;
    groups.f64 = opdi_row_groups_avx2_f64;
#if defined(OPDI_X86)
    if (level == 2) {
        groups.f32 = opdi_row_groups_avx512_f32;
        groups.f64 = opdi_row_groups_avx512_f64;
    }
#endif
    groups.x = x;
    groups.b = (const char *)job->b.data;
    groups.out = job->c;
    groups.nrows = rows;
    groups.depth = depth;
    groups.bs = job->b.rs;
    groups.rsc = job->rsc;
    groups.kstep = opdi_gemm_depth_step(&job->mk, depth);
    groups.size = (int64_t)job->size;
    groups.add = job->add;
    opdi_parallel_for(count, opdi_round_up(OPDI_MAX(64, 65536 / depth), 64), opdi_row_groups_range, &groups);
    opdi_scratch_free(x, bytes);
    return 1;
}
#else
OPDI_INTERNAL int opdi_row_groups_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    (void)job;
    (void)rows;
    (void)count;
    (void)depth;
    return 0;
}
#endif

//== one row times a matrix of half precision =========================================================================

#if defined(OPDI_VECTORS)
/* A row of floats times a matrix of float16 or bfloat16, whose rows are contiguous and `rs` elements apart. */
typedef struct opdi_cols_job {
    const float *x;
    const uint16_t *b;
    float *out;
    int64_t depth, rs, along;                     /* column j of the product is out[j * along] */
    bool bf16;
    int add;
} opdi_cols_job;
static void opdi_cols_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_cols_job *job = (const opdi_cols_job *)ctx;
    float sums[1024] __attribute__((aligned(64)));
    const int64_t step = 2 * (int64_t)OPDI_WIDEST(opdi_cpu_level(), sizeof(opdi_v16f), sizeof(OPDI_V_4_1)) / 4;
    for (int64_t at = begin, count; at < end; at += count) {
        count = OPDI_MIN(1024, end - at);
        const int64_t whole = count - count % step;
        const uint16_t *const b = job->b + at;
        memset(sums, 0, (size_t)count * sizeof *sums);
        OPDI_WIDEST(step == 32 ? 2 : 1, opdi_halves_cols_avx512_f32, opdi_halves_cols_avx2_f32)
            (job->depth, whole, job->bf16, job->x, b, job->rs, sums);
        for (int64_t k = 0; k < job->depth; k++) {
            for (int64_t j = whole; j < count; j++) {
                const uint16_t half = b[k * job->rs + j];
                sums[j] += job->x[k] * (job->bf16 ? opdi_bf16_to_f32(half) : opdi_f16_to_f32(half));
            }
        }
        for (int64_t j = 0; j < count; j++) {
            const int64_t in = j % step, place = in % 2 ? step / 2 + in / 2 : in / 2;
            const float sum = sums[j < whole && job->bf16 ? j - in + place : j];
            float *const to = job->out + (at + j) * job->along;
            *to = job->add ? *to + sum : sum;
        }
    }
}
/* Computes a product of a single row (or column), of floats or half precision, with an operand of half precision whose
   rows (or columns) are contiguous.  Returns 1, or 0 if the operands do not suit this method, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_cols_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const bool turned = count == 1;
    const opdi_gemm_in *const less = turned ? &job->b : &job->a, *const more = turned ? &job->a : &job->b;
    opdi_cols_job cols;
    if ((rows != 1 && count != 1) || job->b.pack || more->cs != 1 || opdi_gemm_moved(more) ||
        (opdi_gemm_moved(less) && less->dtype != OPD_FLOAT32) || OPDI_MAX(rows, count) < 64 ||
        opdi_cpu_level() == 0) { return 0; }
    const size_t bytes = (size_t)depth * sizeof(float);
    float *const x = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!x) { return -1; }
    opdi_pack_line(less, 0, less->rs, depth, x);
    cols.x = x;
    cols.b = (const uint16_t *)more->data;
    cols.out = (float *)(void *)job->c;
    cols.depth = depth;
    cols.rs = more->rs;
    cols.along = turned ? job->rsc : job->csc;
    cols.bf16 = more->dtype == OPD_BFLOAT16;
    cols.add = job->add;
    opdi_parallel_for(OPDI_MAX(rows, count), opdi_round_up(OPDI_MAX(64, 65536 / depth), 64), opdi_cols_range, &cols);
    opdi_scratch_free((char *)x, bytes);
    return 1;
}
#else
OPDI_INTERNAL int opdi_cols_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    (void)job;
    (void)rows;
    (void)count;
    (void)depth;
    return 0;
}
#endif
