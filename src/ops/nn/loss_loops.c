#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:loss_loops loops over float32 elements of losses and gates
//
//  These loops compute a loss and its sum, its gradient, or a gate in one pass over contiguous tensors.  They are
//  compiled for AVX2 and NEON.  On other processors, and for other tensors, the operators compute step by step.
//----------------------------------------------------------------------------------------------------------------------

//== losses ============================================================================================================

/* A pass over the elements of a loss, or of its gradient.  out: the result, or NULL if only the sum is needed.  sums:
   the sums of all chunks of OPDI_GRAIN elements.  grad: the incoming gradient, one number if `one`. */
typedef struct opdi_loss_pass {
    opdi_loss_terms terms;
    int64_t count;
    const float *x, *y, *grad;
    float *out, factor;
    double *sums;
    bool one;
} opdi_loss_pass;
/* Computes `count` elements of the loss from element `at` on; count is at most 256.  Returns their sum. */
OPDI_VECTOR_LOOP static double opdi_loss_block(const opdi_loss_pass *pass, int64_t at, int64_t count) {
    const float limit = pass->terms.limit, square = pass->terms.square, shift = pass->terms.shift;
    const float scale = pass->terms.scale, *const x = pass->x + at, *const y = pass->y + at;
    float values[256];
    int64_t i;
    OPDI_COLUMN_EACH(
        const float d = opdi_float(opdi_bits(x[j] - y[j]) & 0x7fffffffu);
        values[j] = opdi_select_f32(d <= limit, d * d * square, (d + shift) * scale))
    if (pass->out) { memcpy(pass->out + at, values, (size_t)count * sizeof *values); }
    if (!pass->sums) { return 0; }
    memset(values + count, 0, (size_t)(256 - count) * sizeof *values);
    for (count = 128; count >= 16; count /= 2) { OPDI_SIXTEENS(values[j] += values[count + j]) }
    double sum = 0;
    for (int j = 0; j < 16; j++) { sum += (double)values[j]; }
    return sum;
}
/* Computes chunks [begin, end) of the loss. */
static void opdi_loss_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_loss_pass *const pass = (const opdi_loss_pass *)ctx;
    for (int64_t chunk = begin; chunk < end; chunk++) {
        const int64_t last = OPDI_MIN(pass->count, (chunk + 1) * OPDI_GRAIN);
        double sum = 0;
        for (int64_t at = chunk * OPDI_GRAIN; at < last; at += 256) {
            sum += opdi_loss_block(pass, at, OPDI_MIN(last - at, (int64_t)256));
        }
        if (pass->sums) { pass->sums[chunk] = sum; }
    }
}
/* Computes elements [begin, end) of the gradient of the loss by x. */
OPDI_VECTOR_LOOP static void opdi_slope_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_loss_pass *const pass = (const opdi_loss_pass *)ctx;
    const float top = pass->terms.top, divisor = pass->terms.divisor, factor = pass->factor;
    const float *const x = pass->x + begin, *const y = pass->y + begin, *const grad = pass->grad + begin * !pass->one;
    const float number = pass->one ? *grad : 1;
    const int64_t count = end - begin;
    float *const out = pass->out + begin;
    int64_t i;
    OPDI_COLUMN_EACH(
        const float d = (x[j] - y[j]) / divisor;
        const float low = opdi_select_f32(d < -top, -top, d);
        out[j] = opdi_select_f32(low > top, top, low) * factor * number)
    if (!pass->one) { OPDI_COLUMN_EACH(out[j] *= grad[j]) }
}

/* Returns true if the loops can read a tensor: if it is a contiguous float32 tensor in memory. */
static bool opdi_loss_fits(const opd_tensor *tensor) {
    return opdi_has_vectors() && tensor->dtype == OPD_FLOAT32 && (tensor->flags & OPDI_CONTIGUOUS) &&
        opdi_in_memory(tensor);
}
/* Computes the loss with these terms, and reduces it.  Sets *result to a new tensor, and returns true.  Returns false
   and does nothing if the tensors have different shapes or are not contiguous float32 tensors in memory.  If it fails,
   it sets *result to NULL, and an error. */
OPDI_INTERNAL bool opdi_loss_run(const opdi_loss_terms *terms, opd_tensor *x, opd_tensor *y, int64_t reduction,
                                 opd_tensor **result) {
    const int64_t chunks = (x->numel - 1) / OPDI_GRAIN + 1;
    opdi_loss_pass pass;
    if (!opdi_loss_fits(x) || !opdi_loss_fits(y) || !opdi_same_sizes(x, y) || reduction < OPDI_REDUCE_NONE ||
        reduction > OPDI_REDUCE_SUM) { return false; }
    memset(&pass, 0, sizeof pass);
    pass.terms = *terms;
    pass.count = x->numel;
    pass.x = (const float *)(const void *)x->data;
    pass.y = (const float *)(const void *)y->data;
    *result = reduction == OPDI_REDUCE_NONE ? opd_empty_like(x) : opdi_maybe_zeros(x, opd_ints_of(NULL, 0));
    if (!*result) { return true; }
    if (reduction == OPDI_REDUCE_NONE) { pass.out = (float *)(void *)(*result)->data; }
    else if (!(pass.sums = (double *)opdi_alloc(sizeof(double) * (size_t)chunks))) {
        (void)opdi_buffer_fail();
        *result = NULL;
        return true;
    }
    opdi_parallel_for(chunks, 1, opdi_loss_part, &pass);
    if (pass.sums) {
        double sum = 0;
        for (int64_t i = 0; i < chunks; i++) { sum += pass.sums[i]; }
        *(float *)(void *)(*result)->data = (float)(reduction == OPDI_REDUCE_MEAN ? sum / (double)x->numel : sum);
        opdi_free(pass.sums, sizeof(double) * (size_t)chunks);
    }
    return true;
}
/* Returns the gradient by x of a loss with these terms, times `factor` and the incoming gradient grad.  Returns NULL
   without an error if the tensors have different shapes or are not contiguous float32 tensors in memory. */
OPDI_INTERNAL opd_tensor *opdi_loss_slope(const opdi_loss_terms *terms, opd_tensor *grad, opd_tensor *x, opd_tensor *y,
                                          double factor) {
    opdi_loss_pass pass;
    if (!opdi_loss_fits(x) || !opdi_loss_fits(y) || !opdi_loss_fits(grad) || !opdi_same_sizes(x, y) ||
        (grad->ndim != 0 && !opdi_same_sizes(grad, x))) { return NULL; }
    opd_tensor *const result = opd_empty_like(x);
    if (!result) { return NULL; }
    memset(&pass, 0, sizeof pass);
    pass.terms = *terms;
    pass.one = grad->ndim == 0;
    pass.factor = (float)factor;
    pass.x = (const float *)(const void *)x->data;
    pass.y = (const float *)(const void *)y->data;
    pass.grad = (const float *)(const void *)grad->data;
    pass.out = (float *)(void *)result->data;
    opdi_parallel_for(x->numel, OPDI_GRAIN, opdi_slope_part, &pass);
    return result;
}

//== gates =============================================================================================================

/* prelu: x where x > 0, else y * x. */
OPDI_VECTOR_LOOP static void opdi_f32_prelu(void *const *data, int64_t count, const opdi_params *params) {
    const float *const x = (const float *)data[1], *const y = (const float *)data[2];
    float *const out = (float *)data[0];
    int64_t i;
    (void)params;
    OPDI_COLUMN_EACH(out[j] = opdi_select_f32(x[j] > 0, x[j], y[j] * x[j]))
}
/* glu: x * sigmoid(y). */
OPDI_VECTOR_LOOP static void opdi_f32_glu(void *const *data, int64_t total, const opdi_params *params) {
    float block[256];
    (void)params;
    for (int64_t at = 0, count; at < total; at += count) {
        const float *const x = (const float *)data[1] + at;
        float *const out = (float *)data[0] + at;
        int64_t i;
        count = OPDI_MIN(total - at, (int64_t)256);
        opdi_vsigmoid(count, block, (const float *)data[2] + at);
        OPDI_COLUMN_EACH(out[j] = x[j] * block[j])
    }
}
/* log_sigmoid_backward: with q = z / (1 + z), x * (1 - q) where y < 0, else x * q. */
OPDI_VECTOR_LOOP static void opdi_f32_log_sigmoid_slope(void *const *data, int64_t count, const opdi_params *params) {
    const float *const x = (const float *)data[1], *const y = (const float *)data[2], *const z = (const float *)data[3];
    float *const out = (float *)data[0];
    int64_t i;
    (void)params;
    OPDI_COLUMN_EACH(
        const float q = z[j] / (z[j] + 1.0f);
        out[j] = x[j] * opdi_select_f32(y[j] < 0, 1.0f - q, q))
}
static const opdi_formula opdi_gate_formulas[] = {      /* by OPDI_GATE_.. */
    {{opdi_f32_prelu, NULL, NULL}, "prelu_cpu", 0, {0, 0}, NULL, NULL},
    {{opdi_f32_glu, NULL, NULL}, "glu_cpu", 0, {0, 0}, NULL, NULL},
    {{opdi_f32_log_sigmoid_slope, NULL, NULL}, "log_sigmoid_backward_cpu", 0, {0, 0}, NULL, NULL}};
/* Runs a gate (OPDI_GATE_..) of x, y and, unless it is NULL, z, as result 0 of `call`, and sets *rc to its status.
   Returns false and does nothing if one of them is not a float32 tensor in memory. */
OPDI_INTERNAL bool opdi_gate_run(opd_call *call, int gate, opd_tensor *x, opd_tensor *y, opd_tensor *z, int *rc) {
    opd_tensor *ops[4] = {NULL, x, y, z};
    const int inputs = z ? 3 : 2;
    if (!opdi_has_vectors()) { return false; }
    for (int k = 1; k <= inputs; k++) {
        if (!ops[k] || ops[k]->dtype != OPD_FLOAT32 || !opdi_in_memory(ops[k])) { return false; }
    }
    *rc = opdi_pointwise(call, &opdi_gate_formulas[gate], ops, inputs, &opdi_no_params);
    return true;
}
