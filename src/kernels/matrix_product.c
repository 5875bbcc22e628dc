#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>products       matrix product
//
//  C[m,n] = A[m,k] * B[k,n] + beta * C.  B is copied into panels of NR columns, in which each row is contiguous.  A is
//  copied into panels of MR rows, unless it can be read directly.  A micro-kernel (the innermost loop) keeps an MR x NR
//  tile of C in registers.  The dimension k is never split among threads, and its blocks depend on k only, so that
//  results do not depend on the number of threads.  C is of float, double, int32 or int64; integers wrap.  words.c has
//  products of bfloat16 and of 8-bit integers.
//----------------------------------------------------------------------------------------------------------------------

//== matrix product ====================================================================================================

#define OPDI_GEMM_K 576                           /* largest depth of a block of floats; a panel of B, K x NR, then has
                                                     at most 72 KiB.  Of doubles and integers: half of it */

static opdi_micro_fn opdi_micro_plain_f32, opdi_micro_plain_f64, opdi_micro_whole_plain_f32, opdi_micro_whole_plain_f64;
static opdi_micro_at_fn opdi_micro_at_plain_f32, opdi_micro_at_plain_f64;

#if defined(OPDI_VECTORS)
OPDI_AVX2 static opdi_micro_fn opdi_micro_avx2_f32, opdi_micro_avx2_f64;
OPDI_AVX2 static opdi_micro_fn opdi_micro_whole_avx2_f32, opdi_micro_whole_avx2_f64;
OPDI_AVX2 static opdi_micro_at_fn opdi_micro_at_avx2_f32, opdi_micro_at_avx2_f64;
#endif
#if defined(OPDI_X86)
OPDI_AVX2 static opdi_micro_fn opdi_micro_few_avx2_f32, opdi_micro_few_avx2_f64;
#if defined(OPDI_WORDS)
OPDI_AVX512 OPDI_INTERNAL opdi_micro_fn opdi_micro_pairs_avx512_f32;
#endif
OPDI_AVX512 static opdi_micro_fn opdi_micro_avx512_f32, opdi_micro_avx512_f64;
OPDI_AVX512 static opdi_micro_fn opdi_micro_narrow_avx512_f32, opdi_micro_narrow_avx512_f64;
OPDI_AVX512 static opdi_micro_fn opdi_micro_whole_avx512_f32, opdi_micro_whole_avx512_f64;
OPDI_AVX512 static opdi_micro_at_fn opdi_micro_at_avx512_f32, opdi_micro_at_avx512_f64;
#endif
#include "../typed/f32.h"
#include "micro_kernel_plain.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "micro_kernel_vectors.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "micro_kernel_vectors.typed.h"
#endif
#include "../typed/f64.h"
#include "micro_kernel_plain.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f64_avx2.h"
#include "micro_kernel_vectors.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f64_avx512.h"
#include "micro_kernel_vectors.typed.h"
#endif
#include "../typed/end.h"

/* Returns the micro-kernel for a C of dtype `dtype`, with the sizes of its tiles. */
OPDI_INTERNAL opdi_micro opdi_micro_of(int dtype) {
    const bool whole = dtype == OPD_INT32 || dtype == OPD_INT64, four = dtype == OPD_FLOAT32 || dtype == OPD_INT32;
    opdi_micro mk = {four ? opdi_micro_plain_f32 : opdi_micro_plain_f64, 4, 8,
        whole || !four ? OPDI_GEMM_K / 2 : OPDI_GEMM_K, four ? opdi_micro_at_plain_f32 : opdi_micro_at_plain_f64, NULL};
    if (whole) { mk.run = four ? opdi_micro_whole_plain_f32 : opdi_micro_whole_plain_f64; }
#if defined(OPDI_VECTORS)
    int level = opdi_cpu_level();
    if (level == 1) {
        mk.run = four ? opdi_micro_avx2_f32 : opdi_micro_avx2_f64;
        mk.run_at = four ? opdi_micro_at_avx2_f32 : opdi_micro_at_avx2_f64;
        if (whole) { mk.run = four ? opdi_micro_whole_avx2_f32 : opdi_micro_whole_avx2_f64; }
#if defined(OPDI_NEON)
        mk.mr = whole ? 4 : 8;
        mk.nr = four ? 8 : 4;
#else
        mk.mr = whole ? 4 : 6;
        mk.nr = four ? 16 : 8;
#if defined(OPDI_X86)
        mk.run_few = whole ? NULL : four ? opdi_micro_few_avx2_f32 : opdi_micro_few_avx2_f64;
#endif
#endif
    }
#endif
#if defined(OPDI_X86)
    else if (level == 2) {
        mk.run = four ? opdi_micro_avx512_f32 : opdi_micro_avx512_f64;
        mk.run_at = four ? opdi_micro_at_avx512_f32 : opdi_micro_at_avx512_f64;
        if (whole) { mk.run = four ? opdi_micro_whole_avx512_f32 : opdi_micro_whole_avx512_f64; }
        mk.mr = whole ? 4 : 8;
        mk.nr = four ? 32 : 16;
    }
#endif
    return mk;
}
#if defined(OPDI_X86)
/* Do all elements of a matrix [rows, columns] of int64 fit into 32 bits? */
static bool opdi_gemm_fits(const opdi_gemm_in *in, int64_t rows, int64_t columns) {
    const bool down = in->rs == 1;
    const int64_t inner = down ? rows : columns, outer = down ? columns : rows, step = down ? 1 : in->cs;
    uint64_t beyond = 0;
    if (in->pack || in->at || in->dtype != OPD_INT64) { return false; }
    for (int64_t i = 0; i < outer && !beyond; i++) {
        const uint64_t *const at = (const uint64_t *)in->data + i * (down ? in->cs : in->rs);
        for (int64_t j = 0; j < inner; j++) { beyond |= (at[j * step] + UINT64_C(0x80000000)) >> 32; }
    }
    return !beyond;
}
#endif
/* Chooses a faster micro-kernel for a product of int64 if all elements fit into 32 bits, which is read first.  The
   sums have the same bits: integers wrap. */
OPDI_INTERNAL void opdi_micro_brief(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth,
                                    const opdi_gemm_in *left, const opdi_gemm_in *right) {
#if defined(OPDI_X86)
    const int level = opdi_cpu_level();
    if (level == 0 || job->dtype != OPD_INT64 || OPDI_MIN(rows, count) < 16) { return; }
    if (!opdi_gemm_fits(left, rows, depth) || !opdi_gemm_fits(right, depth, count)) { return; }
    job->mk.run = level == 1 ? opdi_micro_brief_avx2_f64 : opdi_micro_brief_avx512_f64;
#else
    (void)job;
    (void)rows;
    (void)count;
    (void)depth;
    (void)left;
    (void)right;
#endif
}
static inline float opdi_gemm_load_f32(const opdi_gemm_in *in, int64_t at) {
    if (in->dtype == OPD_BFLOAT16) { return opdi_bf16_to_f32(((const uint16_t *)in->data)[at]); }
    if (in->dtype == OPD_FLOAT16) { return opdi_f16_to_f32(((const uint16_t *)in->data)[at]); }
    return ((const float *)in->data)[at];
}

#if defined(OPDI_VECTORS)
/* Converts at most `count` float16 numbers at `at` to float, in whole vectors.  Returns how many numbers it has
   converted. */
OPDI_AVX2 OPDI_INTERNAL int64_t opdi_widen_f16_avx2(const uint16_t *at, int64_t count, float *out) {
    const int step = (int)(sizeof(OPDI_V_4_1) / sizeof(float));
    int64_t j = 0;
    for (; j + step <= count; j += step) {
        OPDI_V_4_1 wide;
        OPDI_ASM_WIDEN(wide, *(const OPDI_V_HALVES_1 *)(const void *)(at + j));
        *(OPDI_V_4_1 *)(void *)(out + j) = wide;
    }
    return j;
}
#endif
#if defined(OPDI_X86)
OPDI_AVX512 OPDI_INTERNAL int64_t opdi_widen_f16_avx512(const uint16_t *at, int64_t count, float *out) {
    int64_t j = 0;
    for (; j + 16 <= count; j += 16) {
        opdi_v16f wide;
        OPDI_ASM_WIDEN(wide, *(const opdi_v16h *)(const void *)(at + j));
        *(opdi_v16f *)(void *)(out + j) = wide;
    }
    return j;
}
#endif
/* Converts `count` contiguous numbers to float: bfloat16 if `bf16` is not 0, else float16. */
OPDI_INTERNAL void opdi_widen(const uint16_t *at, int bf16, int64_t count, float *out) {
    int64_t j = 0;
#if defined(OPDI_X86)
    if (!bf16 && opdi_cpu_level() > 1) { j = opdi_widen_f16_avx512(at, count, out); } else
#endif
#if defined(OPDI_VECTORS)
    if (!bf16 && opdi_cpu_level() > 0) { j = opdi_widen_f16_avx2(at, count, out); }
#endif
    for (; bf16 && j + 16 <= count; j += 16) {
        float x[16];
        for (int lane = 0; lane < 16; lane++) { x[lane] = opdi_bf16_to_f32(at[j + lane]); }
        for (int lane = 0; lane < 16; lane++) { out[j + lane] = x[lane]; }
    }
    for (; !bf16 && j + 16 <= count; j += 16) {
        float x[16];
        for (int lane = 0; lane < 16; lane++) { x[lane] = opdi_f16_to_f32(at[j + lane]); }
        for (int lane = 0; lane < 16; lane++) { out[j + lane] = x[lane]; }
    }
    for (; j < count; j++) { out[j] = bf16 ? opdi_bf16_to_f32(at[j]) : opdi_f16_to_f32(at[j]); }
}

/* Copies a line of the operand `in`: sets out[j] to the element at index at + j * stride, for all j < count.  Half
   precision becomes float. */
OPDI_INTERNAL void opdi_pack_line(const opdi_gemm_in *in, int64_t at, int64_t stride, int64_t count, void *out) {
    const size_t size = opdi_gemm_moved(in);
    if (stride == 1 && size) {
        memcpy(out, (const char *)in->data + at * (int64_t)size, (size_t)count * size);
    } else if (size == 8) {
        const opdi_word64 *from = (const opdi_word64 *)in->data + at;
        for (int64_t j = 0; j < count; j++) { ((opdi_word64 *)out)[j] = from[j * stride]; }
    } else if (size == 4) {
        const opdi_word32 *from = (const opdi_word32 *)in->data + at;
        for (int64_t j = 0; j < count; j++) { ((opdi_word32 *)out)[j] = from[j * stride]; }
    } else if (stride == 1) {
        opdi_widen((const uint16_t *)in->data + at, in->dtype == OPD_BFLOAT16, count, (float *)out);
    } else {
        for (int64_t j = 0; j < count; j++) { ((float *)out)[j] = opdi_gemm_load_f32(in, at + j * stride); }
    }
}

/* Packs `count` columns of a matrix of 4-byte words, in which columns are contiguous and cs apart: out[step * ld +
   j] = in[j * cs + step] for step < kc. */
OPDI_INTERNAL void opdi_pack_transposed(const opdi_word32 *in, int64_t cs, int64_t kc, int64_t count, int64_t ld,
                                        opdi_word32 *out) {
    int64_t begin = 0;
    for (; begin + 4 <= kc; begin += 16) {        /* 16 words of each column, one cache line */
        const int64_t end = OPDI_MIN(begin + 16, kc & ~(int64_t)3);
        int64_t j = 0;
        for (; j + 4 <= count; j += 4) {
            for (int64_t step = begin; step < end; step += 4) {
                const opdi_word32 *at = in + j * cs + step;
                opdi_transpose4(at, at + cs, at + 2 * cs, at + 3 * cs, out + step * ld + j, ld);
            }
        }
        for (; j < count; j++) {
            for (int64_t step = begin; step < end; step++) { out[step * ld + j] = in[j * cs + step]; }
        }
    }
    for (int64_t step = kc & ~(int64_t)3; step < kc; step++) {
        for (int64_t j = 0; j < count; j++) { out[step * ld + j] = in[j * cs + step]; }
    }
}

/* Copies a row of a panel.  Most rows have 32, 64 or 128 bytes, for which there are special cases. */
static inline void opdi_copy_line(void *to, const void *from, size_t bytes) {
    if (bytes == 128) { memcpy(to, from, 128); }
    else if (bytes == 64) { memcpy(to, from, 64); }
    else if (bytes == 32) { memcpy(to, from, 32); }
    else { memcpy(to, from, bytes); }
}
/* Packs rows k0 .. k0 + kc - 1 of columns j0 .. j0 + count - 1 into a panel that is ld wide.  The remaining columns
   of the panel become zero. */
OPDI_INTERNAL void opdi_pack_panel(const opdi_gemm_in *in, size_t size, int64_t k0, int64_t kc, int64_t j0,
                                   int64_t count, int64_t ld, void *out) {
    char *to = (char *)out;
    size_t line = (size_t)ld * size;
    int64_t at = k0 * in->rs + j0 * in->cs;
    if (in->pack) {
        in->pack(in->ctx, k0, kc, j0, count, ld, out);
        return;
    }
    if (count < ld) { memset(to, 0, line * (size_t)kc); }
    if (in->rs == 1 && in->cs != 1 && opdi_gemm_moved(in) == 4) {
        opdi_pack_transposed((const opdi_word32 *)in->data + at, in->cs, kc, count, ld, (opdi_word32 *)out);
    } else if (in->rs == 1 && in->cs != 1 && size == 4) {             /* half precision, 64 rows at a time */
        float wide[OPDI_MAX_NR * 64];
        for (int64_t step = 0; step < kc; step += 64) {
            int64_t rows = OPDI_MIN(64, kc - step);
            for (int64_t j = 0; j < count; j++) { opdi_pack_line(in, at + step + j * in->cs, 1, rows, wide + j * 64); }
            opdi_pack_transposed((const opdi_word32 *)(const void *)wide, 64, rows, count, ld,
                                 (opdi_word32 *)out + step * ld);
        }
    } else if (in->cs == 1 && count == ld && opdi_gemm_moved(in)) {
        const char *here = (const char *)in->data + at * (int64_t)size;
        int64_t step = in->rs * (int64_t)size;
        for (int64_t turn = 0; turn < kc; turn++) {
            opdi_copy_line(to + turn * (int64_t)line, here + turn * step, line);
        }
    } else {
        for (int64_t step = 0; step < kc; step++) {
            opdi_pack_line(in, at + step * in->rs, in->cs, count, to + step * (int64_t)line);
        }
    }
}

/* With AVX-512, chooses a micro-kernel of half the width if C has at most half as many columns (`count`) as a tile. */
OPDI_INTERNAL void opdi_micro_narrow(opdi_gemm_job *job, int64_t count) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() < 2 || count > job->mk.nr / 2) { return; }
    job->mk.run = job->size == 4 ? opdi_micro_narrow_avx512_f32 : opdi_micro_narrow_avx512_f64;
    job->mk.nr /= 2;
#else
    (void)job;
    (void)count;
#endif
}
/* Packs panels `begin` to `end` - 1 of the operand `in` of *job, for the rows of B from job->k0 on.  Each panel is `ld`
   columns wide.  The first panel begins at column `first`, and all panels together have `count` columns. */
static void opdi_gemm_pack_panels(const opdi_gemm_job *job, const opdi_gemm_in *in, int64_t first, int64_t count,
                                  int64_t ld, char *to, int64_t begin, int64_t end) {
    const int64_t size = (int64_t)job->size, line = ld * size, whole = count / ld;
    if (in->dtype == job->dtype && in->cs == 1 && !in->pack && line >= 32) {
        for (; begin < OPDI_MIN(end, whole); begin += 8) {            /* eight panels, to read longer runs */
            const int64_t panels = OPDI_MIN(8, OPDI_MIN(end, whole) - begin);
            const char *at = (const char *)in->data + (job->k0 * in->rs + first + begin * ld) * size;
            char *out = to + begin * ld * job->kc * size;
            for (int64_t step = 0; step < job->kc; step++, at += in->rs * size, out += line) {
                for (int64_t q = 0; q < panels; q++) {
                    opdi_copy_line(out + q * job->kc * line, at + q * line, (size_t)line);
                }
            }
        }
        begin = OPDI_MIN(begin, whole);
    }
    for (int64_t panel = begin; panel < end; panel++) {
        opdi_pack_panel(in, job->size, job->k0, job->kc, first + panel * ld, OPDI_MIN(ld, count - panel * ld), ld,
                        to + (size_t)(panel * ld * job->kc) * job->size);
    }
}
static void opdi_gemm_pack_a(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemm_job *job = (const opdi_gemm_job *)ctx;
    opdi_gemm_pack_panels(job, &job->a, job->i0, job->mc, job->mk.mr, job->apack, begin, end);
}
/* Packs panels `begin` to `end` - 1 of B for the job `ctx` (opdi_gemm_job).  Each panel is `nr` columns wide. */
static void opdi_gemm_pack_b(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemm_job *job = (const opdi_gemm_job *)ctx;
    if (job->pack_panels) { job->pack_panels(job, begin, end); }
    else { opdi_gemm_pack_panels(job, &job->b, job->j0, job->nc, job->mk.nr, job->bpack, begin, end); }
}

/* Copies the first `rows` x `count` elements of a computed tile to C at (i, j).  If job->add is set, adds them to C
   instead. */
OPDI_INTERNAL void opdi_gemm_store(const opdi_gemm_job *job, const void *tile, int64_t i, int64_t j, int64_t rows,
                                   int64_t count) {
    if (job->csc == 1 && !job->add) {
        for (int64_t row = 0; row < rows; row++) {
            memcpy(job->c + ((i + row) * job->rsc + j) * (int64_t)job->size,
                   (const char *)tile + row * job->mk.nr * (int64_t)job->size, (size_t)count * job->size);
        }
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t q = 0; q < count; q++) {
            int64_t to = (i + row) * job->rsc + (j + q) * job->csc;
            if (job->dtype == OPD_INT32) {
                const uint32_t v = ((const uint32_t *)tile)[row * job->mk.nr + q];
                uint32_t *sum = (uint32_t *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            } else if (job->dtype == OPD_INT64) {
                const uint64_t v = ((const uint64_t *)tile)[row * job->mk.nr + q];
                uint64_t *sum = (uint64_t *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            } else if (job->size == 4) {
                float v = ((const float *)tile)[row * job->mk.nr + q], *sum = (float *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            } else {
                double v = ((const double *)tile)[row * job->mk.nr + q], *sum = (double *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            }
        }
    }
}

/* Computes the tile of at most MR rows from row i on, and of `count` columns from column j on, of the current block.
   `panel` has these columns of B; its rows are `ldb` apart. */
OPDI_INTERNAL void opdi_gemm_tile(const opdi_gemm_job *job, int64_t i, int64_t j, int64_t count, const void *panel,
                                  int64_t ldb) {
    double tile[OPDI_MAX_MR * OPDI_MAX_NR / 2];
    const void *rows[OPDI_MAX_MR];
    const opdi_micro *mk = &job->mk;
    int64_t part = OPDI_MIN(mk->mr, job->mc - i), csa = mk->mr, size = (int64_t)job->size;
    for (int64_t row = 0; row < mk->mr; row++) {
        int64_t real = OPDI_MIN(row, part - 1);   /* surplus rows repeat the last row */
        if (job->apack) { rows[row] = job->apack + (i * job->kc + row) * size; }
        else {
            rows[row] = (const char *)job->a.data + ((job->i0 + i + real) * job->a.cs + job->k0 * job->a.rs) * size;
        }
    }
    if (!job->apack) { csa = job->a.rs; }
    const bool direct = part == mk->mr && count == mk->nr && job->csc == 1;
    void *const to = direct ? job->c + ((job->i0 + i) * job->rsc + job->j0 + j) * size : (char *)tile;
    const int64_t ldc = direct ? job->rsc : mk->nr;
    const int add = direct && job->add;
    if (direct) {                                 /* rows of C that are far apart are not prefetched by hardware */
        for (int64_t row = 0; row < part; row++) {
            OPDI_PREFETCH((const char *)to + row * ldc * size);
            OPDI_PREFETCH((const char *)to + row * ldc * size + 64);
        }
    }
    if (job->b.at) { mk->run_at(job->kc, rows, csa, panel, job->b.at + job->k0, to, ldc, add); }
    else { (part <= 4 && mk->run_few ? mk->run_few : mk->run)(job->kc, rows, csa, panel, ldb, to, ldc, add); }
    if (!direct) { opdi_gemm_store(job, tile, job->i0 + i, job->j0 + j, part, count); }
}

/* Does the work of opdi_gemm_tile for whole tiles, from row i on and below row `end`.  Returns the first row that is
   left.  In products of small depth, a tile takes little longer than finding the addresses of its rows. */
static int64_t opdi_gemm_whole_tiles(const opdi_gemm_job *job, int64_t i, int64_t end, int64_t j, const void *panel,
                                     int64_t ldb) {
    const opdi_micro *const mk = &job->mk;
    const int64_t size = (int64_t)job->size, line = job->rsc * size, row_step = (job->apack ? 1 : job->a.cs) * size;
    const int64_t step = mk->mr * (job->apack ? job->kc * size : row_step), csa = job->apack ? mk->mr : job->a.rs;
    const char *from = job->apack ? job->apack + i * job->kc * size
        : (const char *)job->a.data + ((job->i0 + i) * job->a.cs + job->k0 * job->a.rs) * size;
    char *to = job->c + ((job->i0 + i) * job->rsc + job->j0 + j) * size;
    const void *rows[OPDI_MAX_MR];
    for (; i + mk->mr <= end; i += mk->mr, from += step, to += mk->mr * line) {
        for (int64_t row = 0; row < mk->mr; row++) {
            rows[row] = from + row * row_step;
            OPDI_PREFETCH(to + row * line);       /* hardware does not prefetch rows that are far apart */
            OPDI_PREFETCH(to + row * line + 64);
        }
        if (job->b.at) { mk->run_at(job->kc, rows, csa, panel, job->b.at + job->k0, to, job->rsc, job->add); }
        else { mk->run(job->kc, rows, csa, panel, ldb, to, job->rsc, job->add); }
    }
    return i;
}

/* Computes work items [begin, end) of ctx, an opdi_gemm_job.  An item is a group of mb x nb elements of the current
   block of C; items are numbered row by row. */
static void opdi_gemm_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemm_job *job = (const opdi_gemm_job *)ctx;
    int64_t across = (job->nc - 1) / job->nb + 1, nr = job->mk.nr;
    for (int64_t item = begin; item < end; item++) {
        int64_t ib = item / across * job->mb, jb = item % across * job->nb;
        int64_t ie = OPDI_MIN(ib + job->mb, job->mc), je = OPDI_MIN(jb + job->nb, job->nc);
        for (int64_t j = jb; j < je; j += nr) {
            int64_t count = OPDI_MIN(nr, job->nc - j), ldb = nr;
            const char *second;
            if (job->b.at) { second = (const char *)job->b.data + (job->j0 + j) * (int64_t)job->size; }
            else if (job->bpack) {
                second = job->bpack + (size_t)(j * job->kc) * job->size;
            } else {
                ldb = job->b.rs;
                second = (const char *)job->b.data + (job->k0 * ldb + job->j0 + j) * (int64_t)job->size;
            }
            int64_t i = ib;
            if (count == nr && job->csc == 1) { i = opdi_gemm_whole_tiles(job, i, ie, j, second, ldb); }
            for (; i < ie; i += job->mk.mr) { opdi_gemm_tile(job, i, j, count, second, ldb); }
        }
    }
}

/* Adds the products over rows k0 .. k0 + kc - 1 of B to the current block of C, job->mc x job->nc elements at (i0, j0).
   Packs A unless it can be read directly, then computes the tiles in groups of mb x nb, which are divided among the
   threads. */
static void opdi_gemm_block(opdi_gemm_job *job) {
    int64_t mr = job->mk.mr, nr = job->mk.nr, rows = (job->mc - 1) / mr + 1, cols = (job->nc - 1) / nr + 1;
    double work = (double)job->mc * (double)job->nc * (double)job->kc;
    int64_t threads = work < 1e6 ? 1 : opd_threads(), mp = 32, np = 64;
    while (threads > 1 && ((rows - 1) / mp + 1) * ((cols - 1) / np + 1) < 4 * threads && (mp > 2 || np > 1)) {
        if (np > 1) { np /= 2; }
        else { mp /= 2; }
    }
    job->mb = mp * mr;
    job->nb = np * nr;
    if (job->apack) {
        opdi_parallel_for(rows, threads > 1 ? OPDI_MAX(1, 16384 / (mr * job->kc)) : rows, opdi_gemm_pack_a, job);
    }
    int64_t items = ((job->mc - 1) / job->mb + 1) * ((job->nc - 1) / job->nb + 1);
    opdi_parallel_for(items, threads > 1 ? 1 : items, job->compute ? job->compute : opdi_gemm_blocks, job);
}

#define OPDI_GEMM_N 1024                          /* columns of a block of B */
#define OPDI_GEMM_M 256                           /* rows of a block of A, for each thread */

OPDI_INTERNAL int64_t opdi_round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

/* Returns the depth of a block of a product whose depth is `depth`.  With opd_same_bits, it does not depend on `depth`,
   because masked attention may multiply zeros at the end of a row or leave them out. */
OPDI_INTERNAL int64_t opdi_gemm_depth_step(const opdi_micro *mk, int64_t depth) {
    if (opd_same_bits()) { return OPDI_MIN(mk->kc, depth); }
    const int64_t parts = (depth - 1) / mk->kc + 1;
    return OPDI_MIN(opdi_round_up((depth - 1) / parts + 1, 16), depth);
}
/* Chooses the block sizes of a product: steps[0] rows, steps[1] columns, and a depth of steps[2]. */
static void opdi_gemm_steps(const opdi_micro *mk, int64_t rows, int64_t count, int64_t depth, int64_t steps[3]) {
    const int64_t most = OPDI_GEMM_M * OPDI_MIN(opd_threads(), 8);
    steps[0] = OPDI_MIN(opdi_round_up(rows, mk->mr), most / mk->mr * mk->mr);
    steps[1] = OPDI_MIN(opdi_round_up(count, mk->nr), OPDI_GEMM_N);
    if (rows <= 2 * mk->mr && opd_same_bits()) {  /* panels that are used at once, while the cache has them */
        steps[1] = OPDI_MIN(steps[1], 4 * mk->nr * OPDI_MIN(opd_threads(), 8));
    }
    steps[2] = opdi_gemm_depth_step(mk, depth);
}
/* Returns an upper bound of the scratch memory, in bytes, that a product needs, no matter which operands are packed.
   `size` is 4 for float, 8 for double. */
OPDI_INTERNAL size_t opdi_gemm_scratch_size(size_t size, int64_t rows, int64_t count, int64_t depth) {
    const opdi_micro mk = opdi_micro_of(size == 4 ? OPD_FLOAT32 : OPD_FLOAT64);
    int64_t steps[3], turned[3];
    if (rows <= 0 || count <= 0 || depth <= 0) { return 0; }
    opdi_gemm_steps(&mk, rows, count, depth, steps);
    opdi_gemm_steps(&mk, count, rows, depth, turned);
    int64_t sides = OPDI_MAX(steps[0] + steps[1], turned[0] + turned[1]) * steps[2];
#if defined(OPDI_AMX)
    if (OPDI_MIN(rows, count) > OPDI_FEW_TILES && depth > 30) { sides += OPDI_AMX_ROWS * steps[2]; }
    if (OPDI_MIN(rows, count) > OPDI_FEW_TILES && OPDI_MIN(rows, count) <= OPDI_AMX_ROWS) {
        const int64_t deep = OPDI_MIN(OPDI_AMX_LONG, opdi_round_up((depth + 1) / 2, 16)),
            tall = OPDI_MIN(OPDI_MAX(rows, count), OPDI_GEMM_M * OPDI_MIN(opd_threads(), 8));
        sides = OPDI_MAX(sides, (opdi_round_up(tall, OPDI_AMX_ROWS) + OPDI_AMX_ROWS) * deep);
    }
#endif
    if (rows > 1 && count > 1 && sides * (int64_t)size + 64 <= 4096) { return 0; }      /* fits on the stack */
    const int64_t few = OPDI_MIN(rows, count) <= OPDI_FEW_ROWS ? OPDI_FEW_ROWS * depth : depth;
    return OPDI_SCRATCH_BYTES((size_t)(OPDI_MAX(sides, few) * (int64_t)size) + 64);
}

/* Computes C [rows, count] = A * B, or C += A * B if job->add is set, block by block.  Panels of B and blocks of A are
   packed into one buffer, unless the micro-kernel can read them in place.  Returns 0, or -1 if there is no memory for
   the buffer. */
OPDI_INTERNAL int opdi_gemm_blocked(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const int64_t nr = job->mk.nr, size = (int64_t)job->size;
    int64_t steps[3];
    opdi_gemm_steps(&job->mk, rows, count, depth, steps);
    const int64_t mstep = steps[0], nstep = steps[1], kstep = steps[2];
    /* Rows of A that are 4 KiB or more apart compete for the same cache lines, so that A is packed. */
    int same = !job->a.pack && (job->compute || (job->a.dtype == job->dtype && job->a.rs == 1 &&
                                                 (count < 512 || rows < 256 || job->a.cs * size < 4096)));
    int direct = job->b.at || (!job->b.pack && job->b.dtype == job->dtype && job->b.cs == 1 && count % nr == 0 &&
                               count * depth * size <= 32768);
    size_t asize = same ? 0 : (size_t)(mstep * kstep * size), bsize = direct ? 0 : (size_t)(nstep * kstep * size);
    double local[512];                            /* 4 KiB, so that small products allocate nothing */
    char *buffer = (char *)local;
    if (asize + bsize + 64 > sizeof local) {
        buffer = opdi_scratch_alloc(asize + bsize + 64);
        if (!buffer) { return -1; }
    }
    char *at = buffer + (64 - ((uintptr_t)buffer & 63));
    int first = job->add;
    job->bpack = direct ? NULL : at;
    job->apack = same ? NULL : at + bsize;
    for (job->j0 = 0; job->j0 < count; job->j0 += nstep) {
        job->nc = OPDI_MIN(nstep, count - job->j0);
        for (job->k0 = 0; job->k0 < depth; job->k0 += kstep) {
            job->kc = OPDI_MIN(kstep, depth - job->k0);
            job->add = first || job->k0 > 0;
            int64_t panels = (job->nc - 1) / nr + 1, grain = OPDI_MAX(1, 16384 / (nr * job->kc));
            if (job->bpack) {
                opdi_parallel_for(panels, (double)rows * (double)count * (double)depth < 1e6 ? panels : grain,
                                  opdi_gemm_pack_b, job);
            }
            for (job->i0 = 0; job->i0 < rows; job->i0 += mstep) {
                job->mc = OPDI_MIN(mstep, rows - job->i0);
                opdi_gemm_block(job);
            }
        }
    }
    if (buffer != (char *)local) { opdi_scratch_free(buffer, asize + bsize + 64); }
    return 0;
}

/* Computes panels `begin` to `end` - 1 of the product [rows, ldc] of floats left [rows, depth] * right.  `right` is
   packed as panels that are as wide as the tiles of the micro-kernel: panel j has the columns from j * nr on, in
   `depth` rows.  The depth is split into pieces whose part of a panel, 32 KiB, the first cache keeps. */
OPD_UNUSED OPDI_INTERNAL void opdi_gemm_packed(int64_t rows, int64_t depth, const float *left, const float *right,
                                               float *product, int64_t ldc, int64_t begin, int64_t end) {
    opdi_gemm_job job;
    memset(&job, 0, sizeof job);
    job.mk = opdi_micro_of(OPD_FLOAT32);
    job.dtype = OPD_FLOAT32;
    job.size = sizeof(float);
    job.a.data = left;
    job.a.rs = 1;
    job.a.cs = depth;
    job.c = (char *)product;
    job.rsc = ldc;
    job.csc = 1;
    job.mc = rows;
    const int64_t nr = job.mk.nr, part = 8192 / nr;
    for (int64_t j = begin * nr; j < end * nr; j += nr) {
        for (job.k0 = 0; job.k0 < depth; job.k0 += part) {
            job.kc = OPDI_MIN(part, depth - job.k0);
            job.add = job.k0 > 0;
            const float *const panel = right + j * depth + job.k0 * nr;
            for (int64_t i = 0; i < rows; i += job.mk.mr) { opdi_gemm_tile(&job, i, j, nr, panel, nr); }
        }
    }
}

/* Sets C = beta * C.  With beta == 0, C is not read; for integers, beta is 0 or 1. */
OPDI_INTERNAL void opdi_gemm_scale(const opdi_gemm_job *job, int64_t rows, int64_t count, double beta) {
    const bool whole = job->dtype == OPD_INT32 || job->dtype == OPD_INT64;
    if (beta == 1) { return; }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < count; j++) {
            int64_t at = i * job->rsc + j * job->csc;
            float *f = (float *)(void *)job->c + at;
            double *to = (double *)(void *)job->c + at;
            if (whole) { memset(job->c + at * (int64_t)job->size, 0, job->size); }
            else if (job->size == 4) { *f = beta == 0 ? 0.0f : *f * (float)beta; }
            else { *to = beta == 0 ? 0.0 : *to * beta; }
        }
    }
}
