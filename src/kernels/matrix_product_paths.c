#include "kernels.h"

//== the choice of the kernel for a product ============================================================================

/* Computes the product of *job in blocks, with pairs of bfloat16 if the operands and the processor allow it.  Returns
   0, or -1 if memory runs out. */
static int opdi_gemm_general(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const int done = opdi_gemm_pairs_try(job, rows, count, depth);
    if (done) { return done < 0 ? -1 : 0; }
    if (!job->b.at) { opdi_micro_narrow(job, count); }
    return opdi_gemm_blocked(job, rows, count, depth);
}

/* Computes C = A * B + beta * C, where A is `left`, B is `right`, and C is `product` [rows, count] with strides rsc and
   csc, of float, double, int32 or int64.  For integers, which wrap, beta is 0 or 1.  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_gemm_of(int dtype, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                               const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
    const bool same = opd_same_bits();
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
    opdi_micro_brief(&job, rows, count, depth, left, right);
    const bool turned = same ? count < rows && count < job.mk.nr / 2 : csc != 1 && rsc == 1 && count != 1;
    if (!right->pack && turned) {
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
    if (!same && rows <= 16 && count <= 16 && depth <= 16 && rows * count * depth <= 256 && !right->pack &&
        left->dtype == dtype && right->dtype == dtype) {
        opdi_gemm_tiny(&job, rows, count, depth);
        return 0;
    }
    int done = opdi_row_groups_try(&job, rows, count, depth);         /* the others sum up in another order */
    if (!done && !same) { done = opdi_gemv_try(&job, rows, count, depth); }
    if (!done && !same) { done = opdi_few_rows_try(&job, rows, count, depth); }
    if (!done && !same) { done = opdi_halves_try(&job, rows, count, depth); }
    if (!done && !same) { done = opdi_cols_try(&job, rows, count, depth); }
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
