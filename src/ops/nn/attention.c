#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:attention attention
//
//  Computes softmax(scale * q * k^T + mask) * v for each head.  One kernel computes it for one block of rows of q after
//  another.  For arguments that this kernel does not support, operators compute it in separate steps, like PyTorch's
//  "math" version.
//  This section uses matrix products and the softmax of rows.
//----------------------------------------------------------------------------------------------------------------------

/* _safe_softmax: computes softmax along argument dim.  A line of elements that are all -inf becomes zeros instead of
   NaN. */
static int opdi_safe_softmax_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t dim = opd_arg_int(call, 1);
    opd_tensor *result = opd_softmax_full(self, dim, opd_arg_value(call, 2));
    if (!result) { return -1; }
    opd_tensor *none = opd_all_dim(opd_eq_Scalar(self, opd_value_double(-OPDI_INF)), dim, true);
    return opd_return_tensor(call, opd_masked_fill_Scalar(result, none, opd_value_int(0)));
}
static int opdi_safe_softmax_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd__softmax_backward_data(opd_bw_grad(bw, 0), opd_bw_result(bw, 0),
                                                           opd_bw_value(bw, 1).u.i,
                                                           OPDI_DTYPE(opd_bw_tensor(bw, 0))));
}
/* opd_safe_softmax: softmax; 0 where self is all -inf along dim */
OPDI_OP(_safe_softmax) {
    op->schema = "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor";
    op->any = opdi_safe_softmax_kernel; op->backward = opdi_safe_softmax_backward; op->save = "result, self.sizes";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->cases = "[2,3], 1; [2,3,2], 1";
}

/* Returns the mask of _masked_softmax in a shape that broadcasts to self, or NULL and sets an error.  A mask of type
   0 is [keys, keys].  A mask of type 1 is [batch, keys] and applies to all heads. */
static opd_tensor *opdi_softmax_mask(const opd_tensor *self, opd_tensor *mask, int64_t type) {
    const int64_t *sizes = opdi_sizes(self), *have = opdi_sizes(mask);
    if (mask->dtype != OPD_BOOL) {
        (void)opd_fail(OPD_ERROR_DTYPE, "Mask should be a boolean tensor");
        return NULL;
    }
    if (opdi_same_sizes(self, mask)) { return mask; }
    if (self->ndim != 4 || mask->ndim != 2 || type < 0 || type > 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "For mask_type == 2 mask shape should match input shape");
        return NULL;
    }
    if (have[0] != sizes[type ? 0 : 2] || have[1] != sizes[type ? 3 : 2]) {
        (void)opd_fail(OPD_ERROR_SHAPE, type ? "For mask_type == 1 mask shape should be (B, L)"
                       : "For mask_type == 0 mask shape should be (L, L)");
        return NULL;
    }
    return type ? opdi_unsqueeze_at(opdi_unsqueeze_at(mask, 1), 1) : mask;
}
/* _masked_softmax: computes softmax of the elements whose mask is false, and 0 for all other elements. */
static int opdi_masked_softmax_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1);
    const int64_t dim = opd_arg_is_none(call, 2) ? -1 : opd_arg_int(call, 2);
    if (mask->dtype == OPD_BOOL && opd_arg_is_none(call, 3)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Mask Type should be defined");
    }
    if (!opd_dtype_is_floating((opd_scalar_type)self->dtype)) { return opdi_dtype_fail("masked_softmax", self->dtype); }
    mask = opdi_softmax_mask(self, mask, opd_arg_is_none(call, 3) ? 2 : opd_arg_int(call, 3));
    if (!mask) { return -1; }
    return opd_return_tensor(call, opd_softmax(opd_masked_fill_Scalar(self, mask, opd_value_double(-OPDI_INF)), dim));
}
static int opdi_masked_softmax_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *output = opd_arg_tensor(call, 1), *mask = opd_arg_tensor(call, 2);
    const int64_t dim = opd_arg_is_none(call, 3) ? -1 : opd_arg_int(call, 3);
    if (mask->dtype != OPD_BOOL) { return opd_fail(OPD_ERROR_DTYPE, "Mask should be a boolean tensor"); }
    if (!opdi_same_sizes(grad, mask)) { return opd_fail(OPD_ERROR_SHAPE, "Mask shape should match grad shape"); }
    grad = opd__softmax_backward_data(opdi_unless(grad, mask), output, dim, opd_dtype(output));
    return opd_return_tensor(call, opdi_unless(grad, mask));
}
/* opd__masked_softmax: softmax of the elements whose mask is false; 0 for all other elements */
OPDI_OP(_masked_softmax) {
    op->schema = "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor";
    op->composite = opdi_masked_softmax_kernel;
    op->out = "_masked_softmax.out";
    op->cases = "[2,1,3,3], [3,3]b, 3, 0; [2,3], [2,3]b, None, 2";
}
/* opd__masked_softmax_backward: derivative of _masked_softmax */
OPDI_OP(_masked_softmax_backward) {
    op->schema = "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor";
    op->composite = opdi_masked_softmax_backward_kernel;
    op->out = "_masked_softmax_backward.out";
    op->cases = "[2,3], [2,3]+, [2,3]b, 1";
}

//== attention in one kernel ===========================================================================================

/* A job of the kernel: q [batch, heads, rows, depth], k and v [batch, heads / group, keys, depth].  The rows of a head
   are divided into `blocks` blocks of `block` rows.  Strides are in elements.  mask is NULL or points to elements of
   the type in which the kernel computes; its strides are 0 along dims of size 1. */
typedef struct opdi_attention {
    size_t size;                                  /* 4: float, 8: double */
    int64_t heads, group, rows, keys, depth, block, blocks;
    opd_tensor *q, *k, *v, *out, *lse;            /* out and lse: in the type in which the kernel computes */
    opd_tensor *grad, *grads[3];                  /* backward: grad: the gradient of the output; grads: the gradients of
                                                     q, k, v */
    int64_t wide;                                 /* backward: number of keys in a block */
    const char *mask;
    int64_t mask_strides[4];
    double scale;
    bool causal, narrow;                          /* narrow: weights are rounded to bfloat16 before they multiply v */
    int failed;
} opdi_attention;
#define OPDI_ATTENTION_BLOCK 256                  /* largest number of rows of a block */

/* Computes x = x * k + mask - c for `count` numbers.  Elements of mask are `stride` apart. */
OPDI_ALWAYS void opdi_attention_shift_body(float *x, float k, float c, const float *mask, int64_t stride,
                                           int64_t count) {
    int64_t i = 0;
    if (!mask) { OPDI_SIXTEENS(x[j] = x[j] * k - c) }
    else if (stride == 1) { OPDI_SIXTEENS(x[j] = x[j] * k + mask[j] - c) }
    for (; i < count; i++) { x[i] = x[i] * k + (mask ? mask[i * stride] : 0) - c; }
}
/* Computes g = p * (g - c) * k.  On entry, g is the derivative with respect to the softmax p.  On return, g is the
   derivative with respect to the softmax's input, times k. */
OPDI_ALWAYS void opdi_attention_slope_body(float *g, const float *p, float c, float k, int64_t count) {
    int64_t i;
    OPDI_SIXTEENS(g[j] = p[j] * (g[j] - c) * k)
    for (; i < count; i++) { g[i] = p[i] * (g[i] - c) * k; }
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_attention_shift_avx2(float *x, float k, float c, const float *mask, int64_t stride,
                                                int64_t count) {
    opdi_attention_shift_body(x, k, c, mask, stride, count);
}
OPDI_AVX2 static void opdi_attention_slope_avx2(float *g, const float *p, float c, float k, int64_t count) {
    opdi_attention_slope_body(g, p, c, k, count);
}
#endif
static void opdi_attention_shift(float *x, float k, float c, const float *mask, int64_t stride, int64_t count) {
    OPDI_LINE_WIDE(opdi_attention_shift_avx2(x, k, c, mask, stride, count); return)
    opdi_attention_shift_body(x, k, c, mask, stride, count);
}
static void opdi_attention_slope(float *g, const float *p, float c, float k, int64_t count) {
    OPDI_LINE_WIDE(opdi_attention_slope_avx2(g, p, c, k, count); return)
    opdi_attention_slope_body(g, p, c, k, count);
}

/* Replaces x [count] by the softmax of scale * x + mask; elements of mask are `stride` apart.  Returns the logarithm of
   the sum of exponentials.  If all numbers are -inf, writes zeros and returns 0. */
static double opdi_attention_row_f32(float *x, int64_t count, float scale, const float *mask, int64_t stride) {
    const bool later = !mask && scale > 0;        /* true: multiply by scale only after subtracting the largest
                                                     number */
    if (!later) { opdi_attention_shift(x, scale, 0, mask, stride, count); }
    scale = later ? scale : 1;
    float top = count ? opdi_line_max(x, count) : -(float)OPDI_INF;
    if (top == -(float)OPDI_INF) {
        int64_t i = 0;
        while (i < count && x[i] == top) { i++; }
        if (i == count) {
            for (i = 0; i < count; i++) { x[i] = 0; }
            return 0;
        }
        top = 0;                                  /* all numbers are -inf or NaN */
    }
    opdi_line_affine(x, x, top, scale, count);
    opdi_vexp(count, x, x);
    const double sum = opdi_line_sum(x, count);
    opdi_line_affine(x, x, 0, (float)(1 / sum), count);
    return (double)top * (double)scale + opdi_log_f64(sum);
}
static double opdi_attention_row_f64(double *x, int64_t count, double scale, const double *mask, int64_t stride) {
    double sum = 0, top = -OPDI_INF;
    bool nan = false;
    for (int64_t i = 0; i < count; i++) {
        x[i] = x[i] * scale + (mask ? mask[i * stride] : 0);
        top = x[i] > top ? x[i] : top;
        nan = nan || x[i] != x[i];
    }
    if (top == -OPDI_INF && !nan) {
        for (int64_t i = 0; i < count; i++) { x[i] = 0; }
        return 0;
    }
    top = top == -OPDI_INF ? 0 : top;
    for (int64_t i = 0; i < count; i++) { sum += x[i] = opdi_exp_f64(x[i] - top); }
    for (int64_t i = 0; i < count; i++) { x[i] /= sum; }
    return top + opdi_log_f64(sum);
}
/* Returns the address of row number `row` of head `head` of sample n in `tensor`. */
static char *opdi_attention_at(const opd_tensor *tensor, int64_t n, int64_t head, int64_t row) {
    const int64_t *strides = opdi_strides(tensor);
    return tensor->data + (n * strides[0] + head * strides[1] + row * strides[2]) *
        (int64_t)opd_dtype_size(OPDI_DTYPE(tensor));
}
/* Returns the address of the row of the mask for row `row` of head `head` of sample n, or NULL if there is no mask. */
static const char *opdi_attention_mask_at(const opdi_attention *job, int64_t n, int64_t head, int64_t row) {
    const int64_t *ms = job->mask_strides;
    return job->mask ? job->mask + (n * ms[0] + head * ms[1] + row * ms[2]) * (int64_t)job->size : NULL;
}
/* Replaces `scores` [rows, keys] of head `head` of sample n, whose first row is row `first` of q, by their softmax.
   With a causal mask, a row sees only the keys up to its own position; the other weights become 0.  Writes the
   logarithm of each row's sum of exponentials to job->lse. */
static void opdi_attention_rows(const opdi_attention *job, int64_t n, int64_t head, int64_t first, int64_t rows,
                                char *scores, int64_t keys) {
    const int64_t size = (int64_t)job->size, step = job->mask_strides[3];
    for (int64_t i = 0; i < rows; i++) {
        const int64_t seen = job->causal ? OPDI_MIN(keys, first + i + 1) : keys;
        const void *mask = opdi_attention_mask_at(job, n, head, first + i);
        void *row = scores + i * keys * size, *sum = opdi_attention_at(job->lse, n, head, first + i);
        if (size == 4) {
            *(float *)sum = (float)opdi_attention_row_f32((float *)row, seen, (float)job->scale, (const float *)mask,
                                                          step);
        } else {
            *(double *)sum = opdi_attention_row_f64((double *)row, seen, job->scale, (const double *)mask, step);
        }
        memset((char *)row + seen * size, 0, (size_t)((keys - seen) * size));
    }
}
/* Returns the rows from `first` on of head `head` of sample n of `tensor` as an operand of a matrix product.  If
   `turned` is true, returns their transpose. */
static opdi_gemm_in opdi_attention_in(const opd_tensor *tensor, int64_t n, int64_t head, int64_t first, bool turned) {
    const int64_t *strides = opdi_strides(tensor);
    return opdi_gemm_in_of(opdi_attention_at(tensor, n, head, first), tensor->dtype, strides[turned ? 3 : 2],
                           strides[turned ? 2 : 3]);
}
#if defined(OPDI_AMX)
/* Replaces `scores` [rows, keys] by bfloat16, which take the first half of their memory: each number by e^(its score -
   the largest score of its row).  parts[i] gets the factor that makes row i a softmax; otherwise this function does the
   work of opdi_attention_rows. */
static void opdi_attention_powers(const opdi_attention *job, int64_t n, int64_t head, int64_t first, int64_t rows,
                                  float *scores, int64_t keys, float *parts) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t seen = job->causal ? OPDI_MIN(keys, first + i + 1) : keys;
        const float *const mask = (const float *)(const void *)opdi_attention_mask_at(job, n, head, first + i);
        const bool later = !mask && job->scale > 0;
        const float scale = later ? (float)job->scale : 1;
        float *const row = scores + i * keys;
        float *const lse = (float *)(void *)opdi_attention_at(job->lse, n, head, first + i);
        uint16_t *const to = (uint16_t *)(void *)scores + i * keys;
        if (!later) { opdi_attention_shift(row, (float)job->scale, 0, mask, job->mask_strides[3], seen); }
        float top = seen ? opdi_line_max(row, seen) : -(float)OPDI_INF;
        int64_t none = 0;
        while (top == -(float)OPDI_INF && none < seen && row[none] == top) { none++; }
        if (none == seen) {                       /* all numbers are -inf */
            parts[i] = *lse = 0;
            memset(to, 0, (size_t)keys * 2);
            continue;
        }
        top = top == -(float)OPDI_INF ? 0 : top;  /* all numbers are -inf or NaN */
        const float sum = opdi_exp_narrow_avx512(seen, to, row, top, scale);
        memset(to + seen, 0, (size_t)(keys - seen) * 2);
        parts[i] = 1 / sum;
        *lse = (float)((double)top * (double)scale + opdi_log_f64((double)sum));
    }
}
#endif
/* Computes the output and lse of `rows` rows of a head, from row `first` on.  `scores` [rows, keys] has their products
   with k, and is overwritten.  Returns 0, or -1 if memory runs out. */
static int opdi_attention_output(const opdi_attention *job, int64_t n, int64_t head, int64_t first, int64_t rows,
                                 char *scores, int64_t keys) {
    const int64_t *const to = opdi_strides(job->out);
    const opdi_gemm_in v = opdi_attention_in(job->v, n, head / job->group, 0, false);
    opdi_gemm_in weights = opdi_gemm_in_of(scores, job->size == 4 ? OPD_FLOAT32 : OPD_FLOAT64, keys, 1);
    char *const out = opdi_attention_at(job->out, n, head, first);
#if defined(OPDI_AMX)
    if (job->narrow) {                            /* as in PyTorch's kernel; tiles multiply bfloat16 */
        float parts[OPDI_ATTENTION_BLOCK];
        opdi_attention_powers(job, n, head, first, rows, (float *)(void *)scores, keys, parts);
        weights.dtype = OPD_BFLOAT16;
        if (opdi_gemm(job->size, rows, job->depth, keys, &weights, &v, 0, out, to[2], to[3])) { return -1; }
        for (int64_t i = 0; i < rows; i++) {
            float *const row = (float *)(void *)out + i * to[2];
            if (to[3] == 1) { opdi_line_affine(row, row, 0, parts[i], job->depth); }
            else {
                for (int64_t j = 0; j < job->depth; j++) { row[j * to[3]] *= parts[i]; }
            }
        }
        return 0;
    }
#endif
    opdi_attention_rows(job, n, head, first, rows, scores, keys);
    return opdi_gemm(job->size, rows, job->depth, keys, &weights, &v, 0, out, to[2], to[3]);
}
/* Computes the output and lse of items [begin, end) of the job ctx.  An item is a block of rows of one head. */
static void opdi_attention_range(void *ctx, int64_t begin, int64_t end) {
    opdi_attention *job = (opdi_attention *)ctx;
    const size_t bytes = (size_t)(job->block * OPDI_MAX(job->keys, (int64_t)1)) * job->size;
    char *scores = opdi_scratch_alloc(bytes);
    bool failed = !scores;
    for (int64_t item = begin; item < end && !failed; item++) {
        const int64_t n = item / job->blocks / job->heads, head = item / job->blocks % job->heads,
            first = item % job->blocks * job->block, rows = OPDI_MIN(job->block, job->rows - first),
            keys = job->causal ? OPDI_MIN(job->keys, first + rows) : job->keys;
        const opdi_gemm_in q = opdi_attention_in(job->q, n, head, first, false),
            k = opdi_attention_in(job->k, n, head / job->group, 0, true);
        failed = opdi_gemm(job->size, rows, keys, job->depth, &q, &k, 0, scores, keys, 1) ||
            opdi_attention_output(job, n, head, first, rows, scores, keys);
    }
    if (failed) { OPDI_STORE(&job->failed, 1); }
    if (scores) { opdi_scratch_free(scores, bytes); }
}

//== the derivative of the kernel ======================================================================================
//
//   P = softmax(scale * q * k^T + mask),  dP = grad * v^T,  dS = scale * P * (dP - sum(grad * out)):
//     dq = dS * k,  dk = dS^T * q,  dv = P^T * grad
//
// For each head, each block of rows is combined with each block of keys.  P is computed again from the logarithms of
// sums.  So blocks do not depend on each other, and memory grows with rows plus keys, not with rows times keys.
//
// k^T and v^T are stored in blocks [depth, wide], as are the sums dk^T and dv^T.  q^T and grad^T of the current rows
// are [depth, OPDI_FLASH_ROWS].  So no product has to transpose an operand.

enum { OPDI_FLASH_ROWS = 60 };                    /* a multiple of the rows of a tile, and of 4 */

typedef struct opdi_attention_head {
    const opdi_attention *job;
    int64_t n, head, first, rows;                 /* the rows that are being processed */
    char *kt, *vt, *dk, *dv, *qt, *gt;
    char *weights, *scores;                       /* weights: P; scores: dP, then dS; both [OPDI_FLASH_ROWS, wide] */
    double sums[OPDI_FLASH_ROWS];                 /* the sum of grad * out over each row */
} opdi_attention_head;

/* Returns the number of bytes of scratch memory that a thread needs.  Keys are rounded up to whole blocks. */
static size_t opdi_attention_scratch_size(const opdi_attention *job) {
    const int64_t keys = opdi_round_up(job->keys, job->wide), rows = OPDI_FLASH_ROWS;
    return (size_t)(4 * keys * job->depth + 2 * rows * (job->depth + job->wide)) * job->size;
}
/* Transposes a matrix: to[j * ts + i] = from[i * fs + j] for i < rows and j < count. */
static void opdi_attention_transpose(size_t size, char *to, int64_t ts, const char *from, int64_t fs, int64_t rows,
                                     int64_t count) {
    const opdi_tile_fn tile = opdi_transpose_of((int)size);
    const int64_t bytes = (int64_t)size;
    for (int64_t i = 0; i < rows; i += OPDI_TILE) {
        for (int64_t j = 0; j < count; j += OPDI_TILE) {
            tile(to + (j * ts + i) * bytes, ts * bytes, from + (i * fs + j) * bytes, fs * bytes,
                 OPDI_MIN(rows - i, (int64_t)OPDI_TILE), OPDI_MIN(count - j, (int64_t)OPDI_TILE),
                 (j + OPDI_TILE < count ? OPDI_TILE : OPDI_TILE * fs - j) * bytes);
        }
    }
}
/* Replaces row i of the products q * k^T (at->weights) and grad * v^T (at->scores) by the same row of P and dS, for
   keys key .. key + count - 1. */
static void opdi_attention_back_row(const opdi_attention_head *at, int64_t i, int64_t key, int64_t count) {
    const opdi_attention *job = at->job;
    const int64_t row = at->first + i, size = (int64_t)job->size, step = job->mask_strides[3],
        seen = job->causal ? OPDI_MAX(OPDI_MIN(count, row + 1 - key), (int64_t)0) : count;
    const char *mask = opdi_attention_mask_at(job, at->n, at->head, row);
    const void *lse = opdi_attention_at(job->lse, at->n, at->head, row);
    char *p = at->weights + i * job->wide * size, *g = at->scores + i * job->wide * size;
    if (mask) { mask += key * step * size; }
    if (size == 4) {
        float *x = (float *)(void *)p;
        opdi_attention_shift(x, (float)job->scale, *(const float *)lse, (const float *)(const void *)mask, step, seen);
        opdi_vexp(seen, x, x);
        opdi_attention_slope((float *)(void *)g, x, (float)at->sums[i], (float)job->scale, seen);
    } else {
        double *x = (double *)(void *)p, *y = (double *)(void *)g;
        const double *add = (const double *)(const void *)mask;
        for (int64_t j = 0; j < seen; j++) {
            x[j] = x[j] * job->scale + (add ? add[j * step] : 0) - *(const double *)lse;
        }
        opdi_vexp64(seen, x, x);
        for (int64_t j = 0; j < seen; j++) { y[j] = x[j] * (y[j] - at->sums[i]) * job->scale; }
    }
    memset(p + seen * size, 0, (size_t)((job->wide - seen) * size));
    memset(g + seen * size, 0, (size_t)((job->wide - seen) * size));
}
/* Combines the current rows with the block of keys that begins at `key`: adds their contributions to dq, dk and dv.
   Returns 0, or -1 if memory runs out. */
static int opdi_attention_back_block(const opdi_attention_head *at, int64_t key) {
    const opdi_attention *job = at->job;
    const int64_t wide = job->wide, count = OPDI_MIN(wide, job->keys - key), rows = at->rows, depth = job->depth;
    const size_t size = job->size, off = (size_t)(key * depth) * size;
    const int dtype = job->q->dtype;
    char *const dq = opdi_attention_at(job->grads[0], at->n, at->head, at->first);
    opdi_gemm_in q = opdi_attention_in(job->q, at->n, at->head, at->first, false),
        grad = opdi_attention_in(job->grad, at->n, at->head, at->first, false),
        k = opdi_attention_in(job->k, at->n, at->head / job->group, key, false),
        kt = opdi_gemm_in_of(at->kt + off, dtype, wide, 1), vt = opdi_gemm_in_of(at->vt + off, dtype, wide, 1),
        qt = opdi_gemm_in_of(at->qt, dtype, OPDI_FLASH_ROWS, 1),
        gt = opdi_gemm_in_of(at->gt, dtype, OPDI_FLASH_ROWS, 1), p = opdi_gemm_in_of(at->weights, dtype, wide, 1),
        ds = opdi_gemm_in_of(at->scores, dtype, wide, 1);
    if (opdi_gemm(size, rows, wide, depth, &q, &kt, 0, at->weights, wide, 1) ||
        opdi_gemm(size, rows, wide, depth, &grad, &vt, 0, at->scores, wide, 1)) {
        return -1;
    }
    for (int64_t i = 0; i < rows; i++) { opdi_attention_back_row(at, i, key, count); }
    return opdi_gemm(size, depth, wide, rows, &gt, &p, 1, at->dv + off, wide, 1) ||
        opdi_gemm(size, depth, wide, rows, &qt, &ds, 1, at->dk + off, wide, 1) ||
        opdi_gemm(size, rows, depth, count, &ds, &k, key > 0, dq, opdi_strides(job->grads[0])[2], 1) ? -1 : 0;
}
/* Processes the current block of rows (at->first, at->rows) with all keys that these rows see.  Returns 0, or -1 if
   memory runs out. */
static int opdi_attention_back_rows(opdi_attention_head *at) {
    const opdi_attention *job = at->job;
    const int64_t end = job->causal ? OPDI_MIN(job->keys, at->first + at->rows) : job->keys, depth = job->depth;
    opdi_attention_transpose(job->size, at->qt, OPDI_FLASH_ROWS, opdi_attention_at(job->q, at->n, at->head, at->first),
                             opdi_strides(job->q)[2], at->rows, depth);
    opdi_attention_transpose(job->size, at->gt, OPDI_FLASH_ROWS,
                             opdi_attention_at(job->grad, at->n, at->head, at->first), opdi_strides(job->grad)[2],
                             at->rows, depth);
    for (int64_t i = 0; i < at->rows; i++) {
        const void *x = opdi_attention_at(job->grad, at->n, at->head, at->first + i),
            *y = opdi_attention_at(job->out, at->n, at->head, at->first + i);
        const double *a = (const double *)x, *b = (const double *)y;
        at->sums[i] = job->size == 4 ? opdi_line_dot((const float *)x, (const float *)y, depth) : 0;
        for (int64_t j = 0; j < depth && job->size == 8; j++) { at->sums[i] += a[j] * b[j]; }
    }
    for (int64_t key = 0; key < end; key += job->wide) { if (opdi_attention_back_block(at, key)) { return -1; } }
    return 0;
}
/* Computes the derivatives of the head at->head of sample at->n.  Returns 0, or -1 if memory runs out. */
static int opdi_attention_back_head(opdi_attention_head *at) {
    const opdi_attention *job = at->job;
    const int64_t n = at->n, few = at->head / job->group, wide = job->wide, depth = job->depth,
        size = (int64_t)job->size;
    memset(at->kt, 0, (size_t)(4 * opdi_round_up(job->keys, wide) * depth * size));
    for (int64_t key = 0; key < job->keys; key += wide) {
        const int64_t count = OPDI_MIN(wide, job->keys - key), off = key * depth * size;
        opdi_attention_transpose(job->size, at->kt + off, wide, opdi_attention_at(job->k, n, few, key),
                                 opdi_strides(job->k)[2], count, depth);
        opdi_attention_transpose(job->size, at->vt + off, wide, opdi_attention_at(job->v, n, few, key),
                                 opdi_strides(job->v)[2], count, depth);
    }
    for (at->first = 0; at->first < job->rows; at->first += OPDI_FLASH_ROWS) {
        at->rows = OPDI_MIN((int64_t)OPDI_FLASH_ROWS, job->rows - at->first);
        if (opdi_attention_back_rows(at)) { return -1; }
    }
    for (int64_t key = 0; key < job->keys; key += wide) {
        const int64_t count = OPDI_MIN(wide, job->keys - key), off = key * depth * size;
        for (int i = 1; i < 3; i++) {
            opdi_attention_transpose(job->size, opdi_attention_at(job->grads[i], n, at->head, key),
                                     opdi_strides(job->grads[i])[2], (i == 1 ? at->dk : at->dv) + off, wide, depth,
                                     count);
        }
    }
    return 0;
}
/* Computes the derivatives of items [begin, end) of the job ctx.  An item is a head. */
static void opdi_attention_back_range(void *ctx, int64_t begin, int64_t end) {
    opdi_attention *job = (opdi_attention *)ctx;
    const size_t bytes = opdi_attention_scratch_size(job),
        side = (size_t)(opdi_round_up(job->keys, job->wide) * job->depth) *
        job->size, turned = (size_t)(OPDI_FLASH_ROWS * job->depth) * job->size;
    char *const scratch = opdi_scratch_alloc(bytes);
    opdi_attention_head at;
    bool failed = !scratch;
    memset(&at, 0, sizeof at);
    at.job = job;
    at.kt = scratch;
    for (int64_t item = begin; item < end && !failed; item++) {
        at.vt = at.kt + side;
        at.dk = at.vt + side;
        at.dv = at.dk + side;
        at.qt = at.dv + side;
        at.gt = at.qt + turned;
        at.weights = at.gt + turned;
        at.scores = at.weights + (size_t)(OPDI_FLASH_ROWS * job->wide) * job->size;
        at.n = item / job->heads;
        at.head = item % job->heads;
        failed = opdi_attention_back_head(&at) != 0;
    }
    if (failed) { OPDI_STORE(&job->failed, 1); }
    if (scratch) { opdi_scratch_free(scratch, bytes); }
}

//== operators =========================================================================================================

/* Checks the arguments of the kernel as PyTorch does, and the sizes that the kernel relies on.  `mask` may be NULL;
   `dropout` must be 0.  Returns 0, or -1 and sets an error. */
static int opdi_flash_check(const opd_tensor *q, const opd_tensor *k, const opd_tensor *v, const opd_tensor *mask,
                            double dropout) {
    const char *const name = "scaled_dot_product_attention_flash_attention";
    char text[3][256];
    if (!opd_dtype_is_floating(OPDI_DTYPE(q))) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: Expected data type in FP32, FP64, BF16, FP16, but got %s instead.", name,
                        opd_dtype_name(OPDI_DTYPE(q)));
    }
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Accept only 4 dims inputs shape of {B, H, T, K}", name);
    }
    if (dropout != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: Currently do not support dropout > 0", name);
    }
    if (q->dims[3] != v->dims[3] || k->dims[3] != v->dims[3]) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Q/K/V should have the same head size", name);
    }
    if (mask && mask->dtype != q->dtype && mask->dtype != OPD_FLOAT32) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: Attention mask is the same data type as query", name);
    }
    if (mask && mask->ndim != 2 && mask->ndim != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Attention mask dim in {2, 4}", name);
    }
    if (opdi_same_dtype(q, k) || opdi_same_dtype(q, v)) { return -1; }
    if (k->dims[0] == q->dims[0] && opdi_same_sizes(k, v) &&
        (k->dims[1] ? q->dims[1] % k->dims[1] == 0 : q->dims[1] == 0)) {
        return 0;
    }
    return opd_fail(OPD_ERROR_SHAPE, "key and value must have the same sizes, the batch size of query and a number of "
                    "heads that divides query's, but query is %s, key %s and value %s", opdi_shape_text(q, text[0]),
                    opdi_shape_text(k, text[1]), opdi_shape_text(v, text[2]));
}
/* Sets job->mask to the mask's elements, converted to the type `work` in which the kernel computes, and sets its
   strides.  Returns 0, or -1 and sets an error. */
static int opdi_flash_mask(opdi_attention *job, opd_tensor *mask, opd_scalar_type work) {
    int64_t full[4];
    const int shift = mask ? 4 - mask->ndim : 0;
    memset(job->mask_strides, 0, sizeof job->mask_strides);
    if (!mask) { return 0; }
    memcpy(full, opdi_sizes(job->q), sizeof full);
    full[3] = job->keys;
    if (opdi_expand_check(mask, full, 4)) { return -1; }
    if (!mask->data) { return 0; }
    if (!(mask = opdi_dense_as(mask, work))) { return -1; }
    for (int i = 0; i < mask->ndim; i++) {
        job->mask_strides[i + shift] = mask->dims[i] == 1 ? 0 : opdi_strides(mask)[i];
    }
    job->mask = mask->data;
    return 0;
}
/* Returns the tensor in which the kernel computes `out`: out itself if it has dtype `work`, or else a new tensor of
   this dtype with the same sizes and strides. */
static opd_tensor *opdi_flash_scratch(opd_tensor *out, opd_scalar_type work) {
    return out->dtype == work ? out
        : opdi_own(opdi_tensor_make(opdi_sizes(out), opdi_strides(out), out->ndim, work, OPD_CPU));
}
OPDI_INTERNAL double opdi_attention_scale(opd_value scale, const opd_tensor *query) {
    return scale.tag == OPD_TAG_NONE ? 1 / sqrt((double)opd_size(query, -1))
        : scale.tag == OPD_TAG_INT ? (double)scale.u.i : scale.u.d;
}
static void opdi_flash_job(opdi_attention *job, opd_tensor *q, opd_tensor *k, opd_tensor *v) {
    memset(job, 0, sizeof *job);
    job->q = q;
    job->k = k;
    job->v = v;
    job->heads = q->dims[1];
    job->rows = q->dims[2];
    job->depth = q->dims[3];
    job->keys = k->dims[2];
    job->group = job->heads / OPDI_MAX(k->dims[1], (int64_t)1);
}
/* Computes attention with one kernel.  Result 0 is the output, whose dims are stored in the order of query's.
   Result 1 has the logarithms of sums of exponentials [B, H, L], stored as [B, L, H]. */
static int opdi_flash_kernel(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2),
        *mask = opd_arg_tensor(call, 5);
    const opd_scalar_type work = q->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    int64_t strides[4];
    opdi_attention job;
    if (opdi_flash_check(q, k, v, mask, opd_arg_double(call, 3))) { return -1; }
    opdi_flash_job(&job, q, k, v);
    opdi_strides_like(q, strides);
    opd_tensor *out = opd_result_strided(call, 0, opdi_sizes(q), strides, 4, OPDI_DTYPE(q), opd_tensor_device(q));
    strides[0] = job.rows * job.heads;
    strides[1] = 1;
    strides[2] = job.heads;
    opd_tensor *lse = out ? opd_result_strided(call, 1, opdi_sizes(q), strides, 3, work, opd_tensor_device(q)) : NULL;
    if (!lse || opdi_flash_mask(&job, mask, work)) { return -1; }
    if (!out->data || !q->data || q->dims[0] * job.heads * job.rows == 0) { return 0; }
    job.size = opd_dtype_size(work);
    job.scale = opdi_attention_scale(opd_arg_value(call, 6), q);
    job.causal = opd_arg_bool(call, 4);
    job.narrow = v->dtype == OPD_BFLOAT16 && job.rows >= 16 && opdi_cpu_tiles();
    job.block = OPDI_MIN((int64_t)OPDI_ATTENTION_BLOCK, OPDI_MAX((int64_t)32, 131072 / (job.keys + 1)));
    if (job.narrow) { job.block = opdi_round_up(job.block, 32); }     /* whole tiles */
    job.block = OPDI_MIN(job.rows, job.block);
    job.blocks = (job.rows + job.block - 1) / job.block;
    if (!(job.out = opdi_flash_scratch(out, work)) || !(job.lse = opdi_flash_scratch(lse, work))) { return -1; }
    const double cost = (double)job.block * (double)(job.keys + 1) * (double)(job.depth + 8);
    const size_t scores = (size_t)(job.block * OPDI_MAX(job.keys, (int64_t)1)) * job.size;
    opdi_parallel_for_scratch(q->dims[0] * job.heads * job.blocks,
                              cost > OPDI_GRAIN ? 1 : (int64_t)(OPDI_GRAIN / cost) + 1, opdi_attention_range, &job,
                              OPDI_SCRATCH_BYTES(scores) +
                           OPDI_MAX(opdi_gemm_scratch_size(job.size, job.block, job.keys, job.depth),
                                    opdi_gemm_scratch_size(job.size, job.block, job.depth, job.keys)));
    if (OPDI_LOAD(&job.failed)) { return opdi_buffer_fail(); }
    return opdi_staging_store(out, job.out) || opdi_staging_store(lse, job.lse) ? -1 : 0;
}
/* Returns the number of floating-point operations: two matrix products of rows and keys for each head. */
static double opdi_flash_flops(const opd_call *call) {
    const opd_tensor *q = call->args[0].u.t, *k = call->args[1].u.t;
    return 4. * (double)q->numel * (double)opd_size(k, 2);
}
static int opdi_flash_backward(opd_backward_call *bw) {
    opd_tensor *results[3];
    if (!opd_bw_grad(bw, 0)) { return 0; }
    if (opd_scaled_dot_product_flash_attention_for_cpu_backward_full(
            results, opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), opd_bw_tensor(bw, 2),
            opd_bw_result(bw, 0), opd_bw_result(bw, 1), opd_bw_value(bw, 3).u.d, opd_bw_value(bw, 4).u.i != 0,
            opd_bw_tensor(bw, 5), opd_bw_value(bw, 6))) {
        return -1;
    }
    for (int i = 0; i < 3; i++) { OPDI_BW_RETURN(i, results[i]); }
    return 0;
}
/* Returns the mask for one call of the kernel with the samples of all examples of vmap's batch.  `samples` is the
   number of samples of one example.  Returns a mask that is the same for all samples as it is. */
static opd_tensor *opdi_flash_batch_mask(opd_call *call, int64_t samples) {
    int dim;
    int64_t sizes[OPD_MAX_DIMS];
    opd_tensor *mask = opd_batch_arg(call, 5, &dim);
    if (!mask || (dim < 0 && (mask->ndim == 2 || (mask->ndim == 4 && mask->dims[0] == 1)))) { return mask; }
    if (!(mask = opd_batch_front(mask, dim))) { return NULL; }
    if (mask->ndim == 3) { mask = opd_unsqueeze(opd_unsqueeze(mask, 1), 1); }
    if (!mask || mask->ndim != 5) { return mask; }
    memcpy(sizes, opdi_sizes(mask), sizeof *sizes * 5);
    sizes[1] = samples;
    return opdi_batch_merge(opd_expand(mask, opd_ints_of(sizes, 5)), 0);
}
static int opdi_flash_batch(opd_call *call) {
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *results[2];
    if (opd_batch_size() == 0 || opd_arg_tensor(call, 0)->ndim != 4) { return opd_batch_loop(call); }
    const int64_t samples = opdi_sizes(opd_arg_tensor(call, 0))[0];
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    for (int i = 0; i < 3; i++) { args[i] = opd_value_tensor(opdi_batch_merge(opdi_batch_front_arg(call, i), 0)); }
    args[5] = opd_arg_tensor(call, 5) ? opd_value_tensor(opdi_flash_batch_mask(call, samples)) : OPD_NONE;
    if (!opd_ok() || opd_call_tensors(call->op, results, args, call->op->nargs)) { return -1; }
    return opd_batch_return(call, opdi_batch_split(results[0], 0, samples), 0) ? -1
        : opd_batch_return(call, opdi_batch_split(results[1], 0, samples), 0);
}
/* opd_scaled_dot_product_flash_attention_for_cpu: scaled_dot_product_attention in one kernel, and log(sum e^x) */
OPDI_OP(_scaled_dot_product_flash_attention_for_cpu) {
    op->schema = "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float "
        "dropout_p=0., bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor "
        "logsumexp)";
    op->cpu = op->fake = opdi_flash_kernel; op->backward = opdi_flash_backward;
    op->save = "query, key, value, attn_mask, output, logsumexp"; op->constant = "attn_mask, logsumexp";
    op->vmap = opdi_flash_batch;
    op->flops = opdi_flash_flops;
    op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[1,2,3,2], [1,2,4,2], [1,2,4,2]; [2,2,3,2], [2,1,4,2], [2,1,4,2], 0.0, True, scale=0.3";
}

/* Returns a mask that can be added to scores.  Returns a mask of numbers as it is; in a mask of bools, true becomes 0
   and false becomes -inf. */
static opd_tensor *opdi_attention_mask(opd_tensor *mask, opd_scalar_type dtype) {
    if (!mask || mask->dtype != OPD_BOOL) { return mask; }
    const opd_value type = opd_value_int(dtype), device = opd_value_device(opd_tensor_device(mask));
    return opd_where_self(mask, opd_scalar_tensor_full(opd_value_double(0), type, OPD_NONE, device, OPD_NONE),
                          opd_scalar_tensor_full(opd_value_double(-OPDI_INF), type, OPD_NONE, device, OPD_NONE));
}
/* Returns the causal mask for scores [.., L, S]: row i sees the keys up to i. */
static opd_tensor *opdi_causal_mask(opd_tensor *scores) {
    int64_t sizes[2];
    if (!scores) { return NULL; }
    sizes[0] = opd_size(scores, -2);
    sizes[1] = opd_size(scores, -1);
    return opdi_attention_mask(opd_tril(opd_ones_full(opd_ints_of(sizes, 2), opd_value_int(OPD_BOOL), OPD_NONE,
                                                      opd_value_device(opd_tensor_device(scores)), OPD_NONE), 0),
                               OPDI_DTYPE(scores));
}
/* Repeats the heads of *keys, which are dim -3, so that there are as many as in query.  Returns true, or false and sets
   an error. */
static bool opdi_sdpa_repeat(const opd_tensor *query, opd_tensor **keys) {
    const int64_t heads = query && query->ndim > 2 ? opd_size(query, -3) : 0,
        few = *keys && (*keys)->ndim > 2 ? opd_size(*keys, -3) : 0;
    if (!opd_ok()) { return false; }
    if (few == 0 || heads % few) {
        (void)opd_fail(OPD_ERROR_SHAPE, "Number of heads in key and value must divide the number of heads in query");
        return false;
    }
    *keys = heads == few ? *keys : opd_repeat_interleave_full(*keys, heads / few, opd_value_int(-3), OPD_NONE);
    return *keys != NULL;
}

/* Sets the results of the call to the three gradients in `results`, converted to `dtype` and stored as [B, L, H, D], as
   in PyTorch.  Returns 0, or -1 and sets an error. */
static int opdi_flash_return(opd_call *call, opd_tensor *const *results, opd_scalar_type dtype) {
    for (int i = 0; i < 3; i++) {
        opd_tensor *grad = opd_contiguous(opd_transpose(opd_to_dtype(results[i], dtype), 1, 2));
        if (opd_return_tensor(call, opd_transpose(grad, 1, 2))) { return -1; }
    }
    return 0;
}
/* Returns the gradient `grad` [B, heads, S, D], summed over the heads of each group, so that `few` heads are left. */
static opd_tensor *opdi_flash_group_sum(opd_tensor *grad, int64_t few) {
    const int64_t two = 2;
    int64_t split[5];
    if (!grad || grad->dims[1] == few) { return grad; }
    split[0] = grad->dims[0];
    split[1] = few;
    split[2] = grad->dims[1] / few;
    split[3] = grad->dims[2];
    split[4] = grad->dims[3];
    return opdi_maybe_sum_dims(opdi_maybe_reshape(grad, split, 5), &two, 1, false);
}
/* Returns true if the derivative can be computed block by block: all tensors lie in memory of the same device, and the
   computation of the derivative need not itself be recorded. */
static bool opdi_flash_back_fits(opd_call *call) {
    const opd_tensor *const q = opd_arg_tensor(call, 1), *const lse = opd_arg_tensor(call, 5),
        *const mask = opd_arg_tensor(call, 8);
    if (!opdi_nothing_follows()) { return false; }
    for (int i = 0; i < 9; i++) {
        const opd_tensor *const tensor = i == 6 || i == 7 ? q : opd_arg_tensor(call, i);
        if (i == 8 && !tensor) { continue; }
        if (!opdi_in_memory_of(tensor, q->backend) || tensor->numel == 0 ||
            (opd_grad_mode_enabled() && opdi_tracked(tensor)) || (i < 5 && tensor->dtype != q->dtype) ||
            tensor->storage->index != q->storage->index) {
            return false;
        }
    }
    return lse->dtype == (q->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32) && opdi_has_sizes(lse, q->dims, 3) &&
        opdi_same_sizes(opd_arg_tensor(call, 4), q) &&
        (!mask || ((q->backend == OPD_CPU ? mask->dtype != OPD_BOOL
                    : mask->dtype == q->dtype || mask->dtype == OPD_FLOAT32) && (mask->ndim == 2 || mask->ndim == 4)));
}
/* Returns `tensor`, or a copy of it, with dtype `dtype` and with contiguous elements along the last dim. */
static opd_tensor *opdi_flash_read(opd_tensor *tensor, opd_scalar_type dtype) {
    return tensor->dtype == dtype && opdi_strides(tensor)[3] == 1 ? tensor : opdi_dense_as(tensor, dtype);
}
/* Computes the derivatives with respect to q, k and v block by block.  The three tensors in `results` have the dtype in
   which the kernel computes and are stored as [B, L, H, D].  Returns 0, or -1 and sets an error. */
static int opdi_flash_back_run(opd_call *call, opd_tensor **results) {
    const opd_tensor *const key = opd_arg_tensor(call, 2);
    const opd_scalar_type work = opd_arg_tensor(call, 1)->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    opd_tensor *in[5];
    opdi_attention job;
    for (int i = 0; i < 5; i++) { if (!(in[i] = opdi_flash_read(opd_arg_tensor(call, i), work))) { return -1; } }
    opdi_flash_job(&job, in[1], in[2], in[3]);
    job.grad = in[0];
    job.out = in[4];
    job.lse = opd_arg_tensor(call, 5);
    job.size = opd_dtype_size(work);
    job.scale = opdi_attention_scale(opd_arg_value(call, 9), in[1]);
    job.causal = opd_arg_bool(call, 7);
    if (opdi_flash_mask(&job, opd_arg_tensor(call, 8), work)) { return -1; }
    const int64_t most = 32768 / (job.depth * (int64_t)job.size) / 32 * 32;       /* number of keys whose k^T fits into
                                                                                     a cache */
    job.wide = OPDI_MIN(opdi_round_up(job.keys, 32), OPDI_MAX((int64_t)32, OPDI_MIN((int64_t)256, most)));
    for (int i = 0; i < 3; i++) {
        int64_t sizes[4];
        sizes[0] = in[1]->dims[0];
        sizes[1] = i ? job.keys : job.rows;
        sizes[2] = job.heads;
        sizes[3] = job.depth;
        results[i] = opd_transpose(opdi_own(opdi_tensor_make(sizes, NULL, 4, work, OPD_CPU)), 1, 2);
        if (!(job.grads[i] = results[i])) { return -1; }
    }
    const double cost = (double)job.rows * (double)job.keys * (double)(job.depth + 8);
    const int64_t rows = OPDI_FLASH_ROWS;
    opdi_parallel_for_scratch(in[1]->dims[0] * job.heads, cost > OPDI_GRAIN ? 1 : (int64_t)(OPDI_GRAIN / cost) + 1,
                              opdi_attention_back_range, &job, OPDI_SCRATCH_BYTES(opdi_attention_scratch_size(&job)) +
                           OPDI_MAX(opdi_gemm_scratch_size(job.size, rows, job.wide, job.depth),
                                    OPDI_MAX(opdi_gemm_scratch_size(job.size, job.depth, job.wide, rows),
                                             opdi_gemm_scratch_size(job.size, rows, job.depth, job.wide))));
    if (OPDI_LOAD(&job.failed)) { return opdi_buffer_fail(); }
    for (int i = 1; i < 3; i++) { results[i] = opdi_flash_group_sum(results[i], key->dims[1]); }
    return opd_ok() ? 0 : -1;
}
/* Computes the derivatives by the kernel of the device.  Returns 0, -1 and sets an error, or 1 if there is none. */
static int opdi_flash_back_device(opd_call *call) {
    const opd_tensor *const q = opd_arg_tensor(call, 1), *const mask = opd_arg_tensor(call, 8);
    const opdi_backend *const backend = opdi_backend_of(q->backend);
    int64_t full[4];
    memcpy(full, opdi_sizes(q), sizeof full);
    full[3] = opd_size(opd_arg_tensor(call, 2), 2);
    if (mask && opdi_expand_check(mask, full, 4)) { return -1; }
    return backend && backend->desc.attention_backward ? backend->desc.attention_backward(call) : 1;
}
/* Computes the derivatives of attention by operators, which have derivatives.  in: the gradient of the result, q, k and
   v.  kept: what dropout multiplied the weights by, or NULL.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_flash_back_steps(opd_tensor *const *in /*[4]*/, opd_tensor *mask, bool causal, double scale,
                                        opd_tensor *kept, opd_tensor **results /*[3]*/) {
    opd_tensor *x[4];
    const opd_scalar_type work = in[1]->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const int64_t few = in[2]->dims[1], group = in[1]->dims[1] / OPDI_MAX(few, (int64_t)1);
    for (int i = 0; i < 4; i++) {
        x[i] = opd_to_dtype(in[i], work);
        if (i > 1 && group != 1) { x[i] = opd_repeat_interleave_full(x[i], group, opd_value_int(1), OPD_NONE); }
    }
    opd_tensor *weights = opdi_muls(opd_matmul(x[1], opdi_mt(x[2])), scale), *dropped = opd_matmul(x[0], opdi_mt(x[3]));
    if (mask) { weights = opd_add(weights, opd_to_dtype(opdi_attention_mask(mask, work), work)); }
    if (causal) { weights = opd_add(weights, opdi_causal_mask(weights)); }
    weights = opd_safe_softmax(weights, -1);
    if (kept) { dropped = opd_mul(dropped, kept); }
    opd_tensor *scores = opdi_muls(opd__softmax_backward_data(dropped, weights, -1, work), scale);
    results[0] = opd_matmul(scores, x[2]);
    results[1] = opdi_flash_group_sum(opd_matmul(opdi_mt(scores), x[1]), few);
    results[2] = opdi_flash_group_sum(opd_matmul(opdi_mt(kept ? opd_mul(weights, kept) : weights), x[0]), few);
    return opd_ok() ? 0 : -1;
}
/* Computes the derivatives of attention with one kernel.  If this computation must itself be recorded, uses separate
   operators, which have derivatives. */
static int opdi_flash_back_kernel(opd_call *call) {
    opd_tensor *in[4], *results[3], *const q = opd_arg_tensor(call, 1);
    for (int i = 0; i < 4; i++) { in[i] = opd_arg_tensor(call, i); }
    if (opdi_flash_check(q, in[2], in[3], NULL, opd_arg_double(call, 6)) || !opdi_same_sizes(in[0], q)) {
        return opd_ok() ? opd_fail(OPD_ERROR_SHAPE, "grad_out must have the sizes of query") : -1;
    }
    if (opdi_flash_back_fits(call)) {
        if (q->backend == OPD_CPU) {
            return opdi_flash_back_run(call, results) ? -1 : opdi_flash_return(call, results, OPDI_DTYPE(q));
        }
        const int rc = opdi_flash_back_device(call);
        if (rc <= 0) { return rc; }
    }
    return opdi_flash_back_steps(in, opd_arg_tensor(call, 8), opd_arg_bool(call, 7),
                                 opdi_attention_scale(opd_arg_value(call, 9), q), NULL, results) ? -1
        : opdi_flash_return(call, results, OPDI_DTYPE(q));
}
/* opd_scaled_dot_product_flash_attention_for_cpu_backward: derivatives of that operator without _backward */
OPDI_OP(_scaled_dot_product_flash_attention_for_cpu_backward) {
    op->schema = "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, "
        "Tensor value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
        "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)";
    op->composite = opdi_flash_back_kernel;
    op->cases = "";
}

//== attention =========================================================================================================

/* Checks the arguments as PyTorch's validate_sdpa_input does.  Returns 0, or -1 and sets an error. */
static int opdi_sdpa_check(const opd_tensor *q, const opd_tensor *k, const opd_tensor *v, const opd_tensor *mask) {
    if (q->dtype != k->dtype || q->dtype != v->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected query, key, and value to have the same dtype, but got query.dtype: "
                        "%s key.dtype: %s and value.dtype: %s instead.", opd_dtype_name(OPDI_DTYPE(q)),
                        opd_dtype_name(OPDI_DTYPE(k)), opd_dtype_name(OPDI_DTYPE(v)));
    }
    if (q->ndim < 2 || k->ndim < 2 || v->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected query, key, and value to all be  at least 2 dimensional, but got "
                        "query.dim: %d key.dim: %d and value.dim: %d instead.", q->ndim, k->ndim, v->ndim);
    }
    if (mask && mask->dtype != OPD_BOOL && mask->dtype != OPD_FLOAT32 && mask->dtype != q->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected attn_mask dtype to be bool or float or to match query dtype, but "
                        "got attn_mask.dtype: %s and  query.dtype: %s instead.", opd_dtype_name(OPDI_DTYPE(mask)),
                        opd_dtype_name(OPDI_DTYPE(q)));
    }
    return 0;
}
/* Returns the size of dim `dim`, counted from the last dim, or 1 if tensor has fewer dims. */
static int64_t opdi_sdpa_size(const opd_tensor *tensor, int dim) {
    return dim < tensor->ndim ? opdi_sizes(tensor)[tensor->ndim - 1 - dim] : 1;
}
/* Returns the first dim from `dim` on, counted from the last dim, at which first and second do not broadcast, or -1. */
static int opdi_sdpa_misfit(const opd_tensor *first, const opd_tensor *second, int dim) {
    for (; dim < OPDI_MIN(first->ndim, second->ndim); dim++) {
        const int64_t a = opdi_sdpa_size(first, dim), b = opdi_sdpa_size(second, dim);
        if (a != b && a != 1 && b != 1) { return dim; }
    }
    return -1;
}
/* Checks the sizes of key or value, which `name` tells.  Returns 0, or -1 and sets an error. */
static int opdi_sdpa_check_heads(const char *name, const opd_tensor *q, const opd_tensor *other, bool gqa) {
    char first[256], second[256];
    const int dim = opdi_sdpa_misfit(q, other, gqa ? 3 : 2);
    if (dim < 0) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "the sizes %s of query and %s of %s do not broadcast at dim %d%s",
                    opdi_shape_text(q, first), opdi_shape_text(other, second), name, -1 - dim, dim > 2 ? ""
                    : "; if several heads of query share a head of key and value, set enable_gqa");
}
/* Checks the sizes for attention in separate steps, so that an error names an argument and not a step.  Returns 0, or
   -1 and sets an error. */
static int opdi_sdpa_check_sizes(const opd_tensor *q, const opd_tensor *k, const opd_tensor *v, const opd_tensor *mask,
                                 bool gqa) {
    char first[256], second[256];
    const int64_t rows = opdi_sdpa_size(q, 1), columns = opdi_sdpa_size(k, 1);
    if (opdi_sdpa_size(q, 0) != opdi_sdpa_size(k, 0)) {
        return opd_fail(OPD_ERROR_SHAPE, "query and key must have the same last size, but have the sizes %s and %s",
                        opdi_shape_text(q, first), opdi_shape_text(k, second));
    }
    if (columns != opdi_sdpa_size(v, 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "key and value must have the same size at dim -2, but have the sizes %s and "
                        "%s", opdi_shape_text(k, first), opdi_shape_text(v, second));
    }
    if (opdi_sdpa_check_heads("key", q, k, gqa) || opdi_sdpa_check_heads("value", q, v, gqa)) { return -1; }
    if (!mask || ((opdi_sdpa_size(mask, 0) == 1 || opdi_sdpa_size(mask, 0) == columns) &&
                  (opdi_sdpa_size(mask, 1) == 1 || opdi_sdpa_size(mask, 1) == rows || rows == 1) &&
                  opdi_sdpa_misfit(mask, q, 2) < 0 && opdi_sdpa_misfit(mask, k, gqa ? 3 : 2) < 0)) {
        return 0;
    }
    return opd_fail(OPD_ERROR_SHAPE, "attn_mask has the sizes %s, but must broadcast to the scores, whose last sizes "
                    "are %lld and %lld, and whose other sizes are the sizes of query, %s", opdi_shape_text(mask, first),
                    (long long)rows, (long long)columns, opdi_shape_text(q, second));
}
/* Returns true if `mask` broadcasts to the sizes [B, H, L, S] of the scores of q and k. */
static bool opdi_sdpa_mask_fits(const opd_tensor *mask, const opd_tensor *q, const opd_tensor *k) {
    const int shift = 4 - mask->ndim;
    if (mask->ndim != 2 && mask->ndim != 4) { return false; }
    for (int i = 0; i < mask->ndim; i++) {
        const int64_t full = i + shift == 3 ? k->dims[2] : q->dims[i + shift];
        if (mask->dims[i] != 1 && mask->dims[i] != full) { return false; }
    }
    return true;
}
/* Returns true if q and k belong to a graph that is compiled, and the compiled code may call the kernel. */
static bool opdi_sdpa_called(const opd_tensor *q, const opd_tensor *k) {
#if defined(OPD_NO_COMPILER)
    (void)q;
    (void)k;
    return false;
#else
    return opd_tensor_device(q).type == OPD_LAZY && q->ndim == 4 && k->ndim == 4 &&
        opdi_lazy_calls((double)q->numel * (double)k->dims[2]);
#endif
}
/* Returns true if one kernel can do all the work.  On the CPU, these are the cases in which PyTorch uses its own
   kernel (sdp::use_flash_attention_cpp).  On GPUs, q must also be of 16-bit floats, or of float32 with more than 32
   rows, and have at most 256 elements in a row.  A graph that is compiled calls the kernel if the scores of q and k are
   many. */
static bool opdi_sdpa_flash(const opd_tensor *q, const opd_tensor *k, const opd_tensor *v, const opd_tensor *mask,
                            double dropout, bool gqa) {
    const opd_tensor *all[3];
    all[0] = q;
    all[1] = k;
    all[2] = v;
    const int backend = opd_tensor_device(q).type;
    if (dropout != 0 || (backend != OPD_CPU && backend != OPD_CUDA && !opdi_sdpa_called(q, k)) ||
        !opd_dtype_is_floating(OPDI_DTYPE(q))) {
        return false;
    }
    if (backend == OPD_CUDA) {
        const bool half = q->dtype == OPD_FLOAT16 || q->dtype == OPD_BFLOAT16;
        if (q->ndim != 4 || q->dims[3] > 256) { return false; }
        if (!half && (q->dtype != OPD_FLOAT32 || q->dims[2] <= 32)) { return false; }
    }
    for (int i = 0; i < 3; i++) {
        if (all[i]->ndim != 4 || all[i]->dims[0] != q->dims[0] || all[i]->dims[2] == 0 ||
            all[i]->dims[3] != q->dims[3] || opdi_strides(all[i])[3] != 1) {
            return false;
        }
    }
    if (!opdi_same_sizes(k, v)) { return false; }
    const int64_t heads = q->dims[1], few = k->dims[1];
    if (heads != few && few != 1 && !(gqa && few > 0 && heads % few == 0)) { return false; }
    return !mask || opdi_sdpa_mask_fits(mask, q, k);
}
/* Returns true if the mask may need a derivative, which the kernel does not compute: autograd tracks the mask, or
   the mask has a tangent, perhaps inside of its vmap wrappers. */
static bool opdi_sdpa_mask_needs_grad(const opd_tensor *mask) {
    return mask && (opdi_is_dual_inside(mask) || opdi_tracked(mask));
}

//== attention with dropout on a GPU ===================================================================================
//
//  One kernel computes which weights are kept from a seed: the key of the generator and the position of its next random
//  word.  The derivative computes this again from the seed.  The seed lies in memory of the GPU, so that replays of a
//  captured graph have other numbers.

/* Returns the operator of the CUDA plug-in for attention with dropout, or NULL if there is none. */
static opd_op *opdi_sdpa_dropout_op(void) {
    static opd_op *attention;
    return opdi_cuda_op(&attention, "opd_cuda::attention_dropout");
}
/* The inputs are query, key, value, mask, the probability, is_causal and scale.  The output is None if there is no
   kernel for them. */
static int opdi_sdpa_dropout_record(opd_context *ctx) {
    opd_value args[7], got[3];
    opd_tensor *saved[7];
    for (int i = 0; i < 7; i++) { args[i] = opd_context_input(ctx, i); }
    if (opd_call_all(opdi_sdpa_dropout_op(), got, args, 7)) { return -1; }
    if (got[0].tag != OPD_TAG_TENSOR) { return opd_context_return_value(ctx, opd_value_none()); }
    for (int i = 0; i < 3; i++) {
        saved[i] = args[i].u.t;
        saved[3 + i] = got[i].u.t;
    }
    saved[6] = opd_context_tensor(ctx, 3);
    return opd_context_set(ctx, "p", args[4]) || opd_context_set(ctx, "causal", args[5]) ||
        opd_context_set(ctx, "scale", args[6]) || opd_context_save_for_backward(ctx, saved, 7) ? -1
        : opd_context_return(ctx, got[0].u.t);
}
/* Computes the derivatives by operators.  in: the gradient of the output, query, key and value. */
static int opdi_sdpa_dropout_steps(opd_context *ctx, opd_tensor *const *in /*[4]*/, opd_tensor **results) {
    static opd_op *kept;
    int64_t sizes[4];
    opd_value args[3], got;
    memcpy(sizes, opdi_sizes(in[1]), sizeof sizes);
    sizes[3] = in[2]->dims[2];
    args[0] = opd_value_tensor(opd_context_saved(ctx, 5));
    args[1] = opd_value_ints(sizes, 4);
    args[2] = opd_context_get(ctx, "p");
    if (!args[0].u.t || opd_call_all(opdi_cuda_op(&kept, "opd_cuda::attention_kept"), &got, args, 3) ||
        opdi_flash_back_steps(in, opd_context_saved(ctx, 6), opd_context_get(ctx, "causal").u.i != 0,
                              opd_context_get(ctx, "scale").u.d, got.u.t, results)) { return -1; }
    for (int i = 0; i < 3; i++) { results[i] = opd_to_dtype(results[i], OPDI_DTYPE(in[1])); }
    return opd_ok() ? 0 : -1;
}
static int opdi_sdpa_dropout_formula(opd_backward_call *bw) {
    static opd_op *back;
    opd_context *const ctx = opd_bw_context(bw);
    opd_tensor *saved[8], *results[3];
    saved[0] = opd_bw_grad(bw, 0);
    if (!saved[0]) { return 0; }
    for (int i = 0; i < 7; i++) { if (!(saved[1 + i] = opd_context_saved(ctx, i)) && i < 6) { return -1; } }
    if (opd_grad_mode_enabled() || !opdi_only_autocast_follows() || !opdi_in_cuda(saved[0]) ||
        !opdi_in_cuda(saved[1])) {
        if (opdi_sdpa_dropout_steps(ctx, saved, results)) { return -1; }
    } else {
        opd_value args[11], got[3];
        opd_op *const op = opdi_cuda_op(&back, "opd_cuda::attention_dropout_backward");
        for (int i = 0; i < 8; i++) { args[i] = saved[i] ? opd_value_tensor(saved[i]) : opd_value_none(); }
        args[8] = opd_context_get(ctx, "p");
        args[9] = opd_context_get(ctx, "causal");
        args[10] = opd_context_get(ctx, "scale");
        if (!op || opd_call_all(op, got, args, 11)) { return -1; }
        for (int i = 0; i < 3; i++) { results[i] = got[i].u.t; }
    }
    for (int i = 0; i < 3; i++) {
        if (opd_context_needs_input_grad(ctx, i) && opd_bw_return(bw, i, results[i])) { return -1; }
    }
    return 0;
}
/* Computes attention with dropout on a GPU in one kernel, and sets *result.  `in`: query, key, value and mask.  Returns
   1, or -1 and sets an error, or 0 if this is not possible, because another layer has to see the operators, or because
   of the arguments. */
static int opdi_sdpa_dropout_in_cuda(opd_tensor *const *in /*[4]*/, double p, bool causal, opd_value scale, bool gqa,
                                     opd_tensor **result) {
    if (in[0]->backend != OPD_CUDA || !(p > 0 && p < 1) || !opdi_only_autocast_follows() || !opdi_sdpa_dropout_op() ||
        !opdi_sdpa_flash(in[0], in[1], in[2], in[3], 0, gqa) || opdi_sdpa_mask_needs_grad(in[3])) { return 0; }
    for (int i = 0; i < 4; i++) {
        if (in[i] && (!opdi_in_cuda(in[i]) || in[i]->storage->index != in[0]->storage->index)) { return 0; }
    }
    opd_tensor *const mask = in[3] ? opdi_attention_mask(in[3], OPDI_DTYPE(in[0])) : NULL;
    opd_autograd_function function;
    opd_value values[7], got;
    memset(&function, 0, sizeof function);
    function.name = "AttentionDropout";
    function.forward = opdi_sdpa_dropout_record;
    function.backward = opdi_sdpa_dropout_formula;
    for (int i = 0; i < 3; i++) { values[i] = opd_value_tensor(in[i]); }
    values[3] = mask ? opd_value_tensor(mask) : opd_value_none();
    values[4] = opd_value_double(p);
    values[5] = opd_value_bool(causal);
    values[6] = opd_value_double(opdi_attention_scale(scale, in[0]));
    if (!opd_ok() || opd_autograd_apply(&function, values, 7, &got, 1) < 0) { return -1; }
    *result = got.tag == OPD_TAG_TENSOR ? got.u.t : NULL;
    return *result ? 1 : 0;
}

//== scaled_dot_product_attention ======================================================================================

/* scaled_dot_product_attention: computes attention with one kernel, or else in separate steps.  Tensors of three
   dims are taken as the heads of one sample. */
static int opdi_sdpa_kernel(opd_call *call) {
    opd_tensor *in[4], *results[2];
    const double dropout = opd_arg_double(call, 4);
    const bool causal = opd_arg_bool(call, 5), gqa = opd_arg_bool(call, 7);
    const opd_value scale = opd_arg_value(call, 6);
    for (int i = 0; i < 4; i++) { in[i] = opd_arg_tensor(call, i); }
    if (opdi_sdpa_check(in[0], in[1], in[2], in[3])) { return -1; }
    const bool one = in[0]->ndim == 3 && in[1]->ndim == 3 && in[2]->ndim == 3;
    for (int i = 0; i < 3 && one; i++) { if (!(in[i] = opd_unsqueeze(in[i], 0))) { return -1; } }
    while (one && in[3] && in[3]->ndim < 4) { if (!(in[3] = opd_unsqueeze(in[3], 0))) { return -1; } }
    if (in[3] && causal) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                        "is_causal=True");
    }
    const int done = opdi_sdpa_dropout_in_cuda(in, dropout, causal, scale, gqa, results);
    if (done < 0) { return -1; }
    if (!done && opdi_sdpa_flash(in[0], in[1], in[2], in[3], dropout, gqa) && !opdi_sdpa_mask_needs_grad(in[3])) {
        opd_tensor *mask = in[3] ? opdi_attention_mask(in[3], OPDI_DTYPE(in[0])) : NULL;
        if (!opd_ok() || opd_scaled_dot_product_flash_attention_for_cpu_full(results, in[0], in[1], in[2], dropout,
                                                                            causal, mask, scale)) {
            return -1;
        }
    } else if (!done &&
               (opdi_sdpa_check_sizes(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                      opd_arg_tensor(call, 3), gqa) ||
                opd_scaled_dot_product_attention_math_full(results, in[0], in[1], in[2], in[3], dropout, causal, NULL,
                                                           scale, gqa))) {
        return -1;
    }
    return opd_return_tensor(call, one ? opd_squeeze_dim(results[0], 0) : results[0]);
}
/* opd_scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal): softmax(query key^T scale +
   attn_mask) value */
OPDI_OP(scaled_dot_product_attention) {
    op->schema = "scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
        "dropout_p=0., bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor";
    op->composite = opdi_sdpa_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[1,2,3,2], [1,2,3,2], [1,2,3,2]; [2,3,2], [2,4,2], [2,4,2], [3,4]; [2,3,2], [2,3,2], [2,3,2], None, "
        "0.0, True, scale=0.5; [1,4,3,2], [1,2,3,2], [1,2,3,2], [3,3]b, enable_gqa=True; [3,2], [4,2], [4,3]";
}

/* Computes attention in separate steps; q and k are each multiplied by the square root of the scale.  The results are
   the output and the weights. */
static int opdi_sdpa_math_kernel(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2),
        *mask = opd_arg_tensor(call, 3), *drop = opd_arg_tensor(call, 6);
    const opd_scalar_type dtype = OPDI_DTYPE(q);
    const opd_scalar_type work = dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16 ? OPD_FLOAT32 : dtype;
    const double dropout = opd_arg_double(call, 4), scale = opdi_attention_scale(opd_arg_value(call, 7), q),
        root = sqrt(fabs(scale));
    if (mask && opd_arg_bool(call, 5)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_scaled_dot_product_attention: Explicit attn_mask should not be set when "
                        "is_causal=True");
    }
    if (opdi_is_complex(q) || opdi_is_complex(k) || opdi_is_complex(v)) {
        return opdi_same_dtype(q, k) || opdi_same_dtype(q, v) ? -1
            : opdi_refuse_complex(q, "softmax_lastdim_kernel_impl");
    }
    q = opdi_muls(opd_to_dtype(q, work), scale < 0 ? -root : root);
    k = opd_to_dtype(k, work);
    v = opd_to_dtype(v, work);
    if (opd_arg_bool(call, 8) && (!opdi_sdpa_repeat(q, &k) || !opdi_sdpa_repeat(q, &v))) { return -1; }
    opd_tensor *weights = opd_matmul(q, opdi_muls(opdi_mt(k), root));
    if (mask) { weights = opd_add(weights, opdi_attention_mask(mask, work)); }
    if (opd_arg_bool(call, 5)) { weights = opd_add(weights, opdi_causal_mask(weights)); }
    weights = opd_safe_softmax(weights, -1);
    if (drop && dropout > 0) {
        weights = opd_masked_fill_Scalar(weights, opd_logical_not(drop), opd_value_double(0));
        v = opdi_muls(v, 1 / (1 - dropout));
    } else if (dropout > 0) { weights = opd_dropout(weights, dropout, true); }
    if (opd_return_tensor(call, opd_to_dtype(opd_matmul(weights, v), dtype))) { return -1; }
    return opd_return_tensor(call, opd_to_dtype(weights, dtype));
}
/* opd_scaled_dot_product_attention_math: scaled_dot_product_attention in separate steps, and the softmax */
OPDI_OP(_scaled_dot_product_attention_math) {
    op->schema = "_scaled_dot_product_attention_math(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
        "float dropout_p=0., bool is_causal=False, Tensor? dropout_mask=None, *, float? scale=None, bool "
        "enable_gqa=False) -> (Tensor, Tensor)";
    op->composite = opdi_sdpa_math_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[1,2,3,2], [1,2,3,2], [1,2,3,2]; [2,3,2], [2,4,2], [2,4,3], [3,4]; [3,2], [4,2], [4,2], None, 0.5, "
        "False, [3,4]b, scale=-0.5; [4,3,2], [2,3,2], [2,3,2], None, 0.0, True, enable_gqa=True";
}
/* Computes attention for programs saved by PyTorch 1.13.  The results are the output and the weights, which are
   computed even if need_attn_weights is false. */
static int opdi_sdpa_old_kernel(opd_call *call) {
    opd_tensor *results[2] = {NULL, NULL};
    if (opd_scaled_dot_product_attention_math_full(results, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                   opd_arg_tensor(call, 2), opd_arg_tensor(call, 3),
                                                   opd_arg_double(call, 4), opd_arg_bool(call, 6), NULL,
                                                   opd_value_none(), false)) { return -1; }
    if (opd_return_tensor(call, results[0])) { return -1; }
    return opd_return_tensor(call, results[1]);
}
/* opd__scaled_dot_product_attention: attention's output and weights, for programs of PyTorch 1.13 */
OPDI_OP(_scaled_dot_product_attention) {
    op->schema = "_scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float "
        "dropout_p=0., bool need_attn_weights=False, bool is_causal=False) -> (Tensor, Tensor)";
    op->composite = opdi_sdpa_old_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[1,2,3,2], [1,2,3,2], [1,2,3,2], None, 0.0, True; [2,3,2], [2,4,2], [2,4,3], [3,4]";
}
/* opd__scaled_dot_product_attention_forward: attention's output and weights, for programs of PyTorch 1.13 */
OPDI_OP(_scaled_dot_product_attention_forward) {
    op->schema = "_scaled_dot_product_attention_forward(Tensor query, Tensor key, Tensor value, Tensor? "
        "attn_mask=None, float dropout_p=0., bool need_attn_weights=False, bool is_causal=False) -> (Tensor, Tensor)";
    op->composite = opdi_sdpa_old_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->cases = "[1,2,3,2], [1,2,3,2], [1,2,3,2], None, 0.0, True; [3,2], [4,2], [4,2], None, 0.0, False, True";
}
