#include "kernels.h"

//== products with weights in blocks ===================================================================================
//
//  An exact product y = x wT, and a product y = x w (for gradients), converts the weights to floats, a few rows and
//  blocks at a time, into memory that stays in the caches.  Other products are in >>rounded.

/* A product while it is computed. */
typedef struct opdi_block_work {
    const opdi_block_job *job;
    int64_t elements, bytes;                      /* of a block */
    const opdi_block_form *form;                  /* NULL: opdi_blocks_decode converts the blocks */
    opdi_block_info info;                         /* of the dtype, unless the job has a form */
    opdi_micro mk;
    int failed;                                   /* set by a thread that gets no memory */
} opdi_block_work;

/* Sets *work to a job whose weights are converted to floats.  Returns 0, or -1 with an error if they cannot be. */
static int opdi_block_work_begin(opdi_block_work *work, const opdi_block_job *job) {
    work->job = job;
    work->mk = opdi_micro_of(OPD_FLOAT32);
    work->failed = 0;
    work->form = job->form ? job->form : opdi_block_form_of(job->dtype);
    if (job->form) {
        work->elements = job->form->elements;
        work->bytes = job->form->bytes;
        work->info.bits = 0;
        return 0;
    }
    work->info = opdi_block_info_of((int)job->dtype);
    work->elements = work->info.elements;
    work->bytes = work->info.bytes;
    return opdi_blocks_readable(job->dtype);
}
/* Returns 0, or -1 with an error if a thread got no memory. */
static int opdi_block_work_end(const opdi_block_work *work) {
    if (!OPDI_LOAD(&work->failed)) { return 0; }
    return opd_fail(OPD_ERROR_MEMORY, "product of blocks: out of memory for a few rows of %s weights",
                    opd_dtype_name(work->job->dtype));
}
/* Returns the blocks of row `row` of the weights from element `k` on. */
static const uint8_t *opdi_block_at(const opdi_block_work *work, int64_t row, int64_t k) {
    return (const uint8_t *)work->job->w + row * work->job->w_stride + k / work->elements * work->bytes;
}
/* Converts `count` elements of row `row` of the weights, from element k on, to floats. */
static void opdi_block_convert(const opdi_block_work *work, int64_t row, int64_t k, int64_t count, float *out) {
    if (work->info.bits) {
        opdi_int_floats(&work->info, (const uint8_t *)work->job->w + row * work->job->w_stride, k, count, out);
    } else if (work->form) { work->form->floats(work->form, opdi_block_at(work, row, k), count, out); }
    else { (void)opdi_blocks_decode(work->job->dtype, opdi_block_at(work, row, k), out, count); }
}
/* Sets all elements of y [m, columns] to 0. */
static void opdi_block_clear(const opdi_block_job *job, int64_t columns) {
    for (int64_t i = 0; i < job->m; i++) {
        for (int64_t j = 0; j < columns; j++) { job->y[i * job->y_stride + j] = 0; }
    }
}

//== products of floats ================================================================================================

#define OPDI_BLOCK_STEP 256                       /* elements of a row that are converted together: whole blocks */
#define OPDI_BLOCK_FEW 6                          /* largest number of rows of x for which w is not packed */

/* Does the work of opdi_gemm_tile for all rows of x: multiplies them by a panel of `depth` rows. */
static void opdi_block_tiles(const opdi_block_work *work, int64_t k, int64_t depth, int64_t j, int64_t count,
                             const float *panel) {
    opdi_gemm_job gemm;
    memset(&gemm, 0, sizeof gemm);
    gemm.mk = work->mk;
    gemm.dtype = OPD_FLOAT32;
    gemm.size = sizeof(float);
    gemm.a.data = work->job->x;
    gemm.a.rs = 1;
    gemm.a.cs = work->job->x_stride;
    gemm.c = (char *)work->job->y;
    gemm.rsc = work->job->y_stride;
    gemm.csc = 1;
    gemm.mc = work->job->m;
    gemm.k0 = k;
    gemm.kc = depth;
    gemm.add = k > 0;
    for (int64_t i = 0; i < gemm.mc; i += gemm.mk.mr) { opdi_gemm_tile(&gemm, i, j, count, panel, gemm.mk.nr); }
}
/* An opdi_range_fn for y = x wT: computes the columns of y for the groups begin .. end - 1 of mk.nr rows of w. */
static void opdi_block_forward(void *ctx, int64_t begin, int64_t end) {
    opdi_block_work *const work = (opdi_block_work *)ctx;
    const opdi_block_job *const job = work->job;
    const int64_t nr = work->mk.nr;
    const size_t bytes = (size_t)(2 * nr * OPDI_BLOCK_STEP) * sizeof(float);
    float *const rows = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!rows) {
        OPDI_STORE(&work->failed, 1);
        return;
    }
    float *const panel = rows + nr * OPDI_BLOCK_STEP;
    for (int64_t group = begin; group < end; group++) {
        const int64_t j = group * nr, count = OPDI_MIN(nr, job->n - j);
        for (int64_t k = 0; k < job->k; k += OPDI_BLOCK_STEP) {
            const int64_t depth = OPDI_MIN(OPDI_BLOCK_STEP, job->k - k);
            if (job->codes && job->w_stride % 4 == 0 && depth % 4 == 0 && ((uintptr_t)job->codes & 3) == 0) {
                opdi_word32 *const words = (opdi_word32 *)(void *)(rows + nr);
                for (int64_t row = 0; row < nr; row++) {
                    rows[row] = job->scales ? job->scales[j + OPDI_MIN(row, count - 1)] : 1;
                }
                if (count < nr) { memset(words, 0, (size_t)(depth / 4 * nr) * sizeof *words); }
                opdi_pack_transposed((const opdi_word32 *)(const void *)(job->codes + j * job->w_stride + k),
                                     job->w_stride / 4, depth / 4, count, nr, words);
                opdi_codes_panel(words, job->minus, depth / 4, nr, rows, panel);
                opdi_block_tiles(work, k, depth, j, count, panel);
                continue;
            }
            for (int64_t row = 0; row < nr; row++) {                  /* surplus rows repeat the last row */
                opdi_block_convert(work, j + OPDI_MIN(row, count - 1), k, depth, rows + row * OPDI_BLOCK_STEP);
            }
            opdi_pack_transposed((const opdi_word32 *)(const void *)rows, OPDI_BLOCK_STEP, depth, nr, nr,
                                 (opdi_word32 *)(void *)panel);
            opdi_block_tiles(work, k, depth, j, count, panel);
        }
    }
    opdi_scratch_free((char *)rows, bytes);
}
/* An opdi_range_fn for y = x wT with few rows of x: computes the columns begin .. end - 1 of y. */
static void opdi_block_forward_few(void *ctx, int64_t begin, int64_t end) {
    const opdi_block_work *const work = (const opdi_block_work *)ctx;
    const opdi_block_job *const job = work->job;
    float row[4 * OPDI_BLOCK_STEP];
    for (int64_t j = begin; j < end; j++) {
        for (int64_t k = 0; k < job->k; k += 4 * OPDI_BLOCK_STEP) {
            const int64_t depth = OPDI_MIN(4 * OPDI_BLOCK_STEP, job->k - k);
            opdi_block_convert(work, j, k, depth, row);
            opdi_dots(sizeof(float), job->m, depth, job->x + k, job->x_stride, row, 0, k > 0, job->y + j,
                      job->y_stride);
        }
    }
}
/* Computes y [m, n] = x [m, k] wT, with w as floats.  Returns 0, or -1 with an error. */
static int opdi_block_exact(const opdi_block_job *job) {
    opdi_block_work work;
    if (opdi_block_work_begin(&work, job)) { return -1; }
    if (job->k == 0) {
        opdi_block_clear(job, job->n);
        return 0;
    }
    if (job->m <= OPDI_BLOCK_FEW && !opd_same_bits()) {
        opdi_parallel_for(job->n, OPDI_MAX(1, 16384 / job->k), opdi_block_forward_few, &work);
        return 0;
    }
    const int64_t nr = work.mk.nr;
    opdi_parallel_for_scratch((job->n - 1) / nr + 1, 1, opdi_block_forward, &work,
                              (size_t)(2 * nr * OPDI_BLOCK_STEP) * sizeof(float));
    return opdi_block_work_end(&work);
}

/* An opdi_range_fn for y = x w: computes the columns of y for the groups begin .. end - 1 of OPDI_BLOCK_STEP columns of
   w. */
static void opdi_block_backward(void *ctx, int64_t begin, int64_t end) {
    opdi_block_work *const work = (opdi_block_work *)ctx;
    const opdi_block_job *const job = work->job;
    const int64_t nr = work->mk.nr;
    const size_t bytes = (size_t)(OPDI_BLOCK_STEP * OPDI_BLOCK_STEP) * sizeof(float);
    float *const panels = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!panels) {
        OPDI_STORE(&work->failed, 1);
        return;
    }
    for (int64_t k = begin * OPDI_BLOCK_STEP; k < OPDI_MIN(end * OPDI_BLOCK_STEP, job->k); k += OPDI_BLOCK_STEP) {
        const int64_t columns = OPDI_MIN(OPDI_BLOCK_STEP, job->k - k);
        for (int64_t j = 0; j < job->n; j += OPDI_BLOCK_STEP) {
            const int64_t depth = OPDI_MIN(OPDI_BLOCK_STEP, job->n - j);
            float row[OPDI_BLOCK_STEP + 64] = {0};
            for (int64_t step = 0; step < depth; step++) {
                opdi_block_convert(work, j + step, k, columns, row);
                for (int64_t at = 0; at < columns; at += nr) {        /* surplus columns are not used */
                    memcpy(panels + at * depth + step * nr, row + at, (size_t)nr * sizeof(float));
                }
            }
            for (int64_t at = 0; at < columns; at += nr) {
                opdi_block_tiles(work, j, depth, k + at, OPDI_MIN(nr, columns - at), panels + at * depth);
            }
        }
    }
    opdi_scratch_free((char *)panels, bytes);
}
#include "../typed/f32.h"
#include "block_gradient.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "block_gradient.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "block_gradient.typed.h"
#endif
#include "../typed/end.h"
/* Adds the products of `count` rows of w, at most four, from row j on and of `columns` columns from column k on.
   `rows` has memory for these elements. */
static void opdi_block_backward_rows(const opdi_block_work *work, int64_t j, int64_t count, int64_t k, int64_t columns,
                                     float *rows) {
    const opdi_block_job *const job = work->job;
    const int level = opdi_cpu_level();
    for (int64_t row = 0; row < count; row++) {
        opdi_block_convert(work, j + row, k, columns, rows + row * OPDI_BLOCK_STEP);
    }
    for (int64_t row = count; row < 4; row++) { memset(rows + row * OPDI_BLOCK_STEP, 0, OPDI_BLOCK_STEP * 4); }
    for (int64_t i = 0; i < job->m; i++) {
        float x[4] = {0}, *const y = job->y + i * job->y_stride + k;
        memcpy(x, job->x + i * job->x_stride + j, (size_t)count * sizeof(float));
#if defined(OPDI_VECTORS)
        if (level > 0) {
            OPDI_WIDEST(level, opdi_block_add_rows_avx512_f32, opdi_block_add_rows_avx2_f32)
                (x, rows, OPDI_BLOCK_STEP, columns, y);
            continue;
        }
#endif
        (void)level;
        opdi_block_add_rows_plain_f32(x, rows, OPDI_BLOCK_STEP, columns, y);
    }
}
/* An opdi_range_fn that does the work of opdi_block_backward for few rows of x, whose y is 0 at first. */
static void opdi_block_backward_few(void *ctx, int64_t begin, int64_t end) {
    const opdi_block_work *const work = (const opdi_block_work *)ctx;
    const opdi_block_job *const job = work->job;
    const int64_t stop = OPDI_MIN(end * OPDI_BLOCK_STEP, job->k);
    float rows[4 * OPDI_BLOCK_STEP];
    for (int64_t j = 0; j < job->n; j += 4) {
        for (int64_t k = begin * OPDI_BLOCK_STEP; k < stop; k += OPDI_BLOCK_STEP) {
            opdi_block_backward_rows(work, j, OPDI_MIN(4, job->n - j), k, OPDI_MIN(OPDI_BLOCK_STEP, stop - k), rows);
        }
    }
}
//== products with weights of 16 bits ==================================================================================

/* Returns the dtype of the numbers of a weight that the products of matrices can read, or OPD_DTYPE_NONE for blocks
   that have to be decoded. */
static opd_scalar_type opdi_weight_numbers(const opdi_block_job *job) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    (void)job;
    return OPD_DTYPE_NONE;
#else
    if (((uintptr_t)job->w | (uintptr_t)job->w_stride) & 1) { return OPD_DTYPE_NONE; }
    return job->dtype == OPD_WEIGHT_F16 ? OPD_FLOAT16 : job->dtype == OPD_WEIGHT_BF16 ? OPD_BFLOAT16 : OPD_DTYPE_NONE;
#endif
}
/* Computes y = x wT or, if `back` is true, y = x w, with w of 16-bit floats.  x has the dtype `from`.  Returns 0, or -1
   with an error. */
static int opdi_weight_product(const opdi_block_job *job, const void *x, opd_scalar_type from, int64_t x_stride,
                                     bool back) {
    const int64_t apart = job->w_stride / 2, columns = back ? job->k : job->n;
    const opdi_gemm_in left = opdi_gemm_in_of(x, from, x_stride, 1);
    const opdi_gemm_in right = opdi_gemm_in_of(job->w, opdi_weight_numbers(job), back ? apart : 1, back ? 1 : apart);
    return opdi_gemm(sizeof(float), job->m, columns, back ? job->n : job->k, &left, &right, 0, job->y, job->y_stride, 1)
        ? opd_fail(OPD_ERROR_MEMORY, "product of %s: out of memory for a few rows of weights",
                   opd_dtype_name(job->dtype)) : 0;
}

/* Computes y [m, k] = x [m, n] w, with w as floats.  Returns 0, or -1 with an error. */
OPDI_INTERNAL int opdi_block_product_back(const opdi_block_job *job) {
    opdi_block_work work;
    if (opdi_block_work_begin(&work, job)) { return -1; }
    if (job->m <= 0 || job->k <= 0) { return 0; }
    if (job->n == 0) {
        opdi_block_clear(job, job->k);
        return 0;
    }
    if (opdi_weight_numbers(job) != OPD_DTYPE_NONE) {
        return opdi_weight_product(job, job->x, OPD_FLOAT32, job->x_stride, true);
    }
    const int64_t groups = (job->k - 1) / OPDI_BLOCK_STEP + 1;
    if (job->m <= OPDI_BLOCK_FEW && !opd_same_bits()) {
        const int64_t threads = opd_threads(), fewest = OPDI_MAX(1, 64 / job->n);
        opdi_block_clear(job, job->k);            /* each thread reads long parts of the rows */
        opdi_parallel_for(groups, OPDI_MAX(fewest, (groups - 1) / threads + 1), opdi_block_backward_few, &work);
        return 0;
    }
    opdi_parallel_for_scratch(groups, 1, opdi_block_backward, &work,
                              (size_t)(OPDI_BLOCK_STEP * OPDI_BLOCK_STEP) * sizeof(float));
    return opdi_block_work_end(&work);
}

/* Computes y [m, n] = x [m, k] wT.  Returns 0, or -1 with an error. */
OPDI_INTERNAL int opdi_block_product(const opdi_block_job *job) {
    if (job->m <= 0 || job->n <= 0) { return 0; }
    if (opdi_weight_numbers(job) != OPD_DTYPE_NONE) {
        return opdi_weight_product(job, job->x, OPD_FLOAT32, job->x_stride, false);
    }
    const int done = job->exact ? 0 : opdi_block_rounded_try(job, opdi_block_exact);
    if (done) { return done < 0 ? -1 : 0; }
    return opdi_block_exact(job);
}
