#include "kernels.h"

//== products of bfloat16, and the choice of the kernel for a product ==================================================

#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
/* A matrix of bfloat16 (or of floats that are representable in it) that is packed as 32-bit words.  A word has two
   consecutive steps of k.  Steps from `depth` on are 0. */
typedef struct opdi_gemm_pairs { opdi_gemm_in in; const uint16_t *data; int64_t rs, cs, depth; } opdi_gemm_pairs;

/* Packs elements of two rows as words.  The rows begin at `at` and at + rs, their elements are `cs` apart.  out[j] gets
   element j of both rows, for all j < count. */
OPDI_AVX512 static void opdi_pack_pair(const uint16_t *at, int64_t rs, int64_t cs, int64_t count, uint32_t *out) {
    const uint16_t *after = at + rs;
    int64_t j = 0;
    for (; cs == 1 && j + 32 <= count; j += 32) {
        uint32_t words[32];
        for (int lane = 0; lane < 32; lane++) { words[lane] = at[j + lane] | (uint32_t)after[j + lane] << 16; }
        for (int lane = 0; lane < 32; lane++) { out[j + lane] = words[lane]; }
    }
    for (; j < count; j++) { out[j] = at[j * cs] | (uint32_t)after[j * cs] << 16; }
}
/* An opdi_pack_fn: packs a panel of words.  `ctx` is an opdi_gemm_pairs; a step of k stands for two matrix rows. */
static void opdi_pack_pairs(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld, void *out) {
    const opdi_gemm_pairs *pairs = (const opdi_gemm_pairs *)ctx;
    const uint16_t *at = pairs->data + 2 * k0 * pairs->rs + j0 * pairs->cs;
    const int64_t whole = OPDI_MIN(kc, pairs->depth / 2 - k0);
    uint32_t *to = (uint32_t *)out;
    if (pairs->rs == 1 && pairs->cs % 2 == 0 && ((uintptr_t)pairs->data & 3) == 0 && pairs->cs != 0) {
        opdi_pack_transposed((const opdi_word32 *)(const void *)at, pairs->cs / 2, whole, count, ld,
                             (opdi_word32 *)out);
    } else {
        for (int64_t step = 0; step < whole; step++) {
            opdi_pack_pair(at + 2 * step * pairs->rs, pairs->rs, pairs->cs, count, to + step * ld);
        }
    }
    for (int64_t j = 0; whole < kc && j < count; j++) {
        to[whole * ld + j] = at[2 * whole * pairs->rs + j * pairs->cs];
    }
}
/* Packs panels [begin, end) of words of a B with contiguous rows.  Packs eight panels at a time, in order to read
   longer runs of memory. */
static void opdi_pack_pair_panels(const opdi_gemm_job *job, int64_t begin, int64_t end) {
    const opdi_gemm_pairs *pairs = (const opdi_gemm_pairs *)job->b.ctx;
    const int64_t nr = job->mk.nr, whole = OPDI_MIN(job->kc, pairs->depth / 2 - job->k0);
    for (; begin < end; begin += 8) {
        const int64_t stop = OPDI_MIN(begin + 8, end);
        const uint16_t *at = pairs->data + 2 * job->k0 * pairs->rs + job->j0;
        for (int64_t step = 0; step < job->kc; step++, at += 2 * pairs->rs) {
            for (int64_t panel = begin; panel < stop; panel++) {
                const int64_t j = panel * nr, count = OPDI_MIN(nr, job->nc - j);
                uint32_t *to = (uint32_t *)(void *)job->bpack + j * job->kc + step * nr;
                if (step < whole) { opdi_pack_pair(at + j, pairs->rs, 1, count, to); }
                else { for (int64_t i = 0; i < count; i++) { to[i] = at[j + i]; } }
            }
        }
    }
}
/* An opdi_pack_fn: packs a panel of words of floats that are all representable in bfloat16.  Packs a few rows of floats
   first and then joins their upper halves to words. */
OPDI_AVX512 static void opdi_pack_pairs_exact(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld,
                                              void *out) {
    const opdi_gemm_pairs *pairs = (const opdi_gemm_pairs *)ctx;
    opdi_word32 wide[64 * OPDI_MAX_NR], *to = (opdi_word32 *)out;
    for (int64_t begin = 0; begin < kc; begin += 32) {
        const int64_t words = OPDI_MIN(32, kc - begin), steps = OPDI_MIN(2 * words, pairs->depth - 2 * (k0 + begin));
        opdi_pack_panel(&pairs->in, 4, 2 * (k0 + begin), steps, j0, count, ld, wide);
        if (steps < 2 * words) { memset(wide + steps * ld, 0, (size_t)ld * 4); }
        for (int64_t word = 0; word < words; word++) {
            const opdi_word32 *first = wide + 2 * word * ld, *second = first + ld;
            for (int64_t j = 0; j < ld; j += 8, to += 8) {            /* ld is a multiple of eight */
                opdi_word32 both[8];
                for (int lane = 0; lane < 8; lane++) {
                    both[lane] = first[j + lane] >> 16 | (second[j + lane] & 0xffff0000u);
                }
                for (int lane = 0; lane < 8; lane++) { to[lane] = both[lane]; }
            }
        }
    }
}
/* Changes the operand *in, of bfloat16 or of floats that are representable in it, to an operand of words.  *pairs gets
   its data and strides and the depth of the product, and must stay unchanged as long as *in is used. */
static void opdi_gemm_pair(opdi_gemm_in *in, opdi_gemm_pairs *pairs, int64_t depth) {
    pairs->in = *in;
    pairs->data = (const uint16_t *)in->data;
    pairs->rs = in->rs;
    pairs->cs = in->cs;
    pairs->depth = depth;
    in->pack = in->exact ? opdi_pack_pairs_exact : opdi_pack_pairs;
    in->ctx = pairs;
    in->at = NULL;
}
static bool opdi_gemm_is_short(const opdi_gemm_in *in, int64_t rows) {
    return (in->dtype == OPD_BFLOAT16 && !in->pack) || (in->exact && rows >= 16);
}
#endif
/* Computes the product of *job in blocks, with pairs of bfloat16 if the operands and the processor allow it.  Returns
   0, or -1 if memory runs out. */
static int opdi_gemm_general(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
    opdi_gemm_pairs left, right;
    if (opdi_gemm_is_short(&job->a, rows) && opdi_gemm_is_short(&job->b, rows) && opdi_cpu_pairs()) {
        const bool runs = job->b.dtype == OPD_BFLOAT16 && job->b.cs == 1;
        job->mk.run = opdi_micro_pairs_avx512_f32;
        opdi_gemm_pair(&job->a, &left, depth);
        opdi_gemm_pair(&job->b, &right, depth);
        if (runs) { job->pack_panels = opdi_pack_pair_panels; }
        return opdi_gemm_blocked(job, rows, count, (depth + 1) / 2);
    }
#endif
    if (!job->b.at) { opdi_micro_narrow(job, count); }
    return opdi_gemm_blocked(job, rows, count, depth);
}

/* Computes C = A * B + beta * C, where A is `left`, B is `right`, and C is `product` [rows, count] with strides rsc and
   csc, of float, double, int32 or int64.  For integers, which wrap, beta is 0 or 1.  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_gemm_of(int dtype, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                               const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
    opdi_gemm_job job;
    if (rows <= 0 || count <= 0) { return 0; }
    if (opdi_gemm_small(dtype, rows, count, depth, left, right, beta, product, rsc, csc)) { return 0; }
    memset(&job, 0, sizeof job);
    job.mk = opdi_micro_of(dtype);
    job.dtype = dtype;
    job.size = dtype == OPD_FLOAT32 || dtype == OPD_INT32 ? 4 : 8;
    job.c = (char *)product;
    job.rsc = rsc;
    job.csc = csc;
    if (depth <= 0 || (beta != 0 && beta != 1)) { opdi_gemm_scale(&job, rows, count, beta); }
    if (depth <= 0) { return 0; }
    job.add = beta != 0;
    if (!right->pack && csc != 1 && rsc == 1 && count != 1) {
        int64_t t = rows;                         /* compute C^T = B^T A^T, whose rows are contiguous */
        rows = count;
        count = t;
        job.rsc = csc;
        job.csc = rsc;
        job.a = *right;
        job.b = *left;
        t = job.b.rs;
        job.b.rs = job.b.cs;
        job.b.cs = t;
    } else {
        job.a = *left;
        job.a.rs = left->cs;
        job.a.cs = left->rs;
        job.b = *right;
    }
    if (dtype == OPD_INT32 || dtype == OPD_INT64) { return opdi_gemm_blocked(&job, rows, count, depth); }
    if (rows <= 16 && count <= 16 && depth <= 16 && rows * count * depth <= 256 && !right->pack &&
        left->dtype == dtype && right->dtype == dtype) {
        opdi_gemm_tiny(&job, rows, count, depth);
        return 0;
    }
    int done = opdi_gemv_try(&job, rows, count, depth);
    if (!done) { done = opdi_few_rows_try(&job, rows, count, depth); }
    if (!done) { done = opdi_row_groups_try(&job, rows, count, depth); }
    if (!done) { done = opdi_halves_try(&job, rows, count, depth); }
    if (!done) { done = opdi_cols_try(&job, rows, count, depth); }
    if (done) { return done < 0 ? -1 : 0; }
    return opdi_gemm_general(&job, rows, count, depth);
}
/* Does the work of opdi_gemm_of for a product of floats (if size is 4) or doubles (if size is 8).  Returns 0, or -1 if
   memory runs out. */
OPDI_INTERNAL int opdi_gemm(size_t size, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                            const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
    return opdi_gemm_of(size == 4 ? OPD_FLOAT32 : OPD_FLOAT64, rows, count, depth, left, right, beta, product, rsc,
                        csc);
}

OPDI_INTERNAL opdi_gemm_in opdi_gemm_in_of(const void *data, int dtype, int64_t rs, int64_t cs) {
    opdi_gemm_in in;
    in.data = data;
    in.dtype = dtype;
    in.rs = rs;
    in.cs = cs;
    in.pack = NULL;
    in.ctx = NULL;
    in.at = NULL;
    in.exact = false;
    return in;
}

OPD_UNUSED OPDI_INTERNAL int opdi_gemm_f32(int64_t rows, int64_t count, int64_t depth, const float *a, int64_t rsa,
                                           int64_t csa, const float *b, int64_t rsb, int64_t csb, float beta,
                                           float *product, int64_t rsc, int64_t csc) {
    opdi_gemm_in left = opdi_gemm_in_of(a, OPD_FLOAT32, rsa, csa), right = opdi_gemm_in_of(b, OPD_FLOAT32, rsb, csb);
    return opdi_gemm(4, rows, count, depth, &left, &right, (double)beta, product, rsc, csc);
}

OPD_UNUSED static int opdi_gemm_f64(int64_t rows, int64_t count, int64_t depth, const double *a, int64_t rsa,
                                    int64_t csa, const double *b, int64_t rsb, int64_t csb, double beta,
                                    double *product, int64_t rsc, int64_t csc) {
    opdi_gemm_in left = opdi_gemm_in_of(a, OPD_FLOAT64, rsa, csa), right = opdi_gemm_in_of(b, OPD_FLOAT64, rsb, csb);
    return opdi_gemm(8, rows, count, depth, &left, &right, beta, product, rsc, csc);
}
