#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:embed     embedding, and sums, means or maxima of selected rows (embedding_bag)
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== embedding, one_hot ================================================================================================

static int opdi_embedding_index(const opd_tensor *input, const char *name) {
    if (input->dtype == OPD_INT64 || input->dtype == OPD_INT32) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "Expected tensor for argument #1 'indices' to have one of the following scalar "
                    "types: int64, int32; but got %s instead "
                    "(while checking arguments for %s)", opd_dtype_name((opd_scalar_type)input->dtype), name);
}
static int opdi_embedding_kernel(opd_call *call) {
    opd_tensor *weight = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    int64_t sizes[OPD_MAX_DIMS];
    if (weight->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "'weight' must be 2-D"); }
    if (opdi_embedding_index(input, "embedding")) { return -1; }
    if (input->ndim >= OPD_MAX_DIMS) { return opdi_dims_fail(input->ndim + 1); }
    memcpy(sizes, opdi_sizes(input), sizeof *sizes * input->ndim);
    sizes[input->ndim] = opdi_sizes(weight)[1];
    opd_tensor *out = opd_result(call, 0, sizes, input->ndim + 1, (opd_scalar_type)weight->dtype);
    return !out ? -1 : !out->data ? 0 : opdi_rows_select(weight, 0, input, out, "index out of range in self");
}
static int opdi_embedding_backward(opd_backward_call *bw) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    return opd_bw_return(bw, 0, opd_embedding_dense_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 1), sizes.data[0],
                                                             opd_bw_value(bw, 2).u.i,
                                                            opd_bw_value(bw, 3).u.i != 0));
}
/* The kernel of embedding under vmap if each example has its own weight: selects rows of the example's weight.  The row
   at padding_idx gets no gradient. */
static int opdi_embedding_rows(opd_call *call) {
    opd_tensor *weight = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    const int64_t skip = opd_arg_int(call, 2);
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (weight->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "'weight' must be 2-D"); }
    if (opdi_embedding_index(input, "embedding")) { return -1; }
    memcpy(sizes, opdi_sizes(input), sizeof *sizes * input->ndim);
    sizes[input->ndim] = opdi_sizes(weight)[1];
    opd_tensor *result = opdi_maybe_reshape(opd_index_select(weight, 0, opdi_maybe_reshape(input, &input->numel, 1)),
                                            sizes, input->ndim + 1);
    if (skip >= 0) {
        result = opd_where_self(opdi_maybe_unsqueeze(opd_eq_Scalar(input, opd_value_int(skip)), -1), opd_detach(result),
                                result);
    }
    return opd_return_tensor(call, result);
}
static int opdi_embedding_batch(opd_call *call) {
    opd_value args[OPD_MAX_ARGS], ret;
    int dim, at;
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    (void)opd_batch_arg(call, 0, &dim);
    const bool loops = opd_arg_bool(call, 3) || opdi_is_block(opd_arg_tensor(call, 0)->dtype);
    if (dim >= 0) { return loops ? opd_batch_loop(call) : opdi_batch_as(call, opdi_embedding_rows); }
    args[1].u.t = opd_batch_arg(call, 1, &at);
    return opd_call_all(call->op, &ret, args, call->op->nargs) ? -1 : opd_batch_return(call, ret.u.t, at);
}
/* opd_embedding: the rows of weight at indices */
OPDI_OP(embedding) {
    op->schema = "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool "
        "sparse=False) -> Tensor";
    op->cpu = op->fake = opdi_embedding_kernel; op->backward = opdi_embedding_backward; op->save = "indices";
    op->vmap = opdi_embedding_batch; op->tags = OPD_OPTAG_CORE;
    op->out = "embedding.out";
    op->cases = "[5,3], [2,2]i5; [5,3], [4]i5, 1";
}
OPDI_COLD_END
/* Returns the p-norm of a row of `width` numbers.  A number is a float32, or a float64 if `twice` is set.  If `pairs`
   is set, the numbers are complex, and each consists of two such floats. */
static double opdi_row_norm(const void *row, int64_t width, bool pairs, bool twice, double p) {
    double sum = 0;
    for (int64_t i = 0; i < width; i++) {
        const int64_t at = i * (1 + pairs);
        const double first = twice ? ((const double *)row)[at] : (double)((const float *)row)[at];
        const double second = !pairs ? 0 : twice ? ((const double *)row)[at + 1] : (double)((const float *)row)[at + 1];
        const double x = pairs ? opdi_hypot_f64(first, second) : fabs(first);
        if (p == INFINITY || p == -INFINITY) {
            sum = i == 0 || x != x || (p > 0 ? x > sum : x < sum) ? x : sum;
        } else { sum += p == 2 ? x * x : p == 1 ? x : p == 0 ? x != 0 : opdi_pow_f64(x, p); }
    }
    sum = p == 2 ? sqrt(sum) : p == 0 || p == 1 || p == INFINITY || p == -INFINITY ? sum : opdi_pow_f64(sum, 1 / p);
    return twice ? sum : (double)(float)sum;
}
/* Returns the indices as int64, after checking that each is in [0, rows).  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_embedding_rows_in(opd_tensor *index, int64_t rows) {
    int64_t bad;
    index = opdi_index_load(index, rows, false, &bad);
    if (!index || bad < 0) { return index; }
    (void)opd_fail(OPD_ERROR_INDEX, "index %lld is out of range for %lld rows",
                   (long long)((const int64_t *)(const void *)index->data)[bad], (long long)rows);
    return NULL;
}
/* embedding_renorm: scales down rows of self [n, d] at the indices: a row whose norm is larger than max_norm gets norm
   max_norm. */
static int opdi_embedding_renorm_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1);
    const double most = opd_arg_double(call, 2), p = opd_arg_double(call, 3);
    const bool pairs = self->dtype == OPD_COMPLEX64 || self->dtype == OPD_COMPLEX128;
    const bool twice = self->dtype == OPD_FLOAT64 || self->dtype == OPD_COMPLEX128;
    const opd_scalar_type dtype = pairs ? OPDI_DTYPE(self) : twice ? OPD_FLOAT64 : OPD_FLOAT32;
    if (self->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "'weight' must be 2-D"); }
    if (opdi_embedding_index(index, "embedding_renorm") ||
        (!pairs && opdi_kernel_dtype(OPDI_DTYPE(self), false, "embedding_renorm") < 0)) {
        return -1;
    }
    const int64_t rows = opdi_sizes(self)[0], width = opdi_sizes(self)[1];
    if (index->data && !(index = opdi_embedding_rows_in(index, rows))) { return -1; }
    opd_tensor *out = opdi_update(call, true);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_scratch_filled(out, dtype);
    const size_t bytes = (size_t)rows / 8 + 1;
    uint8_t *seen = scratch ? (uint8_t *)opdi_scope_alloc(bytes) : NULL;
    if (!seen) { return -1; }
    memset(seen, 0, bytes);
    for (int64_t i = 0; i < index->numel; i++) {
        const int64_t at = ((const int64_t *)(const void *)index->data)[i];
        if (seen[at / 8] >> at % 8 & 1) { continue; }
        seen[at / 8] |= (uint8_t)(1 << at % 8);
        char *row = scratch->data + at * width * (int64_t)opd_dtype_size(dtype);
        const double norm = opdi_row_norm(row, width, pairs, twice, p), factor = most / (norm + 1e-7);
        for (int64_t k = 0; norm > most && k < width * (1 + pairs); k++) {
            if (twice) { ((double *)(void *)row)[k] *= factor; }
            else { ((float *)(void *)row)[k] *= (float)factor; }
        }
    }
    return opdi_staging_store(out, scratch);
}
/* Computes the gradient of y = f * x with f = max_norm / (n + 1e-7), where x is a row and n its norm.  The gradient of
   the row is f * (g - n' * (g . x) / (n + 1e-7)).  Here g is the gradient of y, n' the derivative of the norm, and g .
   x the real part of the sum of g * conj(x).  A row that was not scaled has gradient g. */
static int opdi_embedding_renorm_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *self = opd_bw_tensor(bw, 0), *index = opd_bw_tensor(bw, 1);
    const double most = opd_bw_value(bw, 2).u.d, p = opd_bw_value(bw, 3).u.d;
    const int64_t dim = 1, minus = -1;
    const opd_ints dims = opd_ints_of(&dim, 1);
    opd_tensor *norm = opd_linalg_vector_norm_full(self, opd_value_double(p), opd_value_of_ints(dims), true, OPD_NONE);
    opd_tensor *over = opd_reciprocal(opdi_adds(norm, 1e-7));
    opd_tensor *along = self && opdi_is_complex(self) ? opd_real(opd_mul(grad, opd_conj(self))) : opd_mul(grad, self);
    along = opd_mul(opdi_maybe_sum_dims(along, &dim, 1, true), over);
    opd_tensor *slope = opd_sub(grad, opdi_norm_gradient(along, self, p, norm, dims));
    slope = opd_mul(slope, opdi_muls(over, most));
    opd_tensor *named = opd_index_fill_int_Scalar(opd_zeros_like(norm), 0, opdi_maybe_reshape(index, &minus, 1),
                                                  opd_value_int(1));
    named = opd_mul(named, opd_gt_Scalar(norm, opd_value_double(most)));
    return opd_bw_return(bw, 0, opd_where_self(opd_gt_Scalar(named, opd_value_int(0)), slope, grad));
}
OPDI_COLD_BEGIN
/* opd_embedding_renorm: self, in which each row at indices whose norm is above max_norm is scaled down to that norm */
OPDI_OP(embedding_renorm) {
    op->schema = "embedding_renorm(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor";
    op->cpu = op->fake = opdi_embedding_renorm_kernel; op->backward = opdi_embedding_renorm_backward;
    op->save = "self, indices"; op->tags = OPDI_OPTAG_CONJUGATES;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->inplace = "embedding_renorm_"; op->out = "embedding_renorm.out";
    op->cases = "[5,3], [2,2]i5, 1.0, 2.0; [5,3], [3]i5, 0.5, 1.5";
}
/* Checks the gradient of an embedding, and the number of rows of its weight.  Returns 0, or -1 and sets an error. */
static int opdi_embedding_grad_check(const opd_tensor *grad, int64_t rows) {
    return grad->ndim > 0 && rows >= 0 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "expected grad_output with one dimension or more and num_weights >= 0, but got %d "
                   "dimensions and %lld", grad->ndim, (long long)rows);
}
OPDI_COLD_END
/* embedding_dense_backward: adds each row of grad_output to the row of the result that the index of this row names,
   unless the index is padding_idx.  If scale_grad_by_freq, the row is first divided by the number of times that the
   index occurs. */
static int opdi_embedding_dense_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    const int64_t rows = opd_arg_int(call, 2), skip = opd_arg_int(call, 3);
    const bool scale = opd_arg_bool(call, 4);
    int64_t sizes[2];
    opd_tensor *count = NULL;
    if (opdi_embedding_index(input, "embedding_backward")) { return -1; }
    if (opdi_embedding_grad_check(grad, rows)) { return -1; }
    sizes[0] = rows;
    sizes[1] = opdi_sizes(grad)[grad->ndim - 1];
    if (sizes[1] && grad->numel / sizes[1] != input->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_output has %lld rows for %lld indices",
                        (long long)(grad->numel / sizes[1]), (long long)input->numel);
    }
    if (opdi_is_complex(grad)) { return opdi_by_parts(call); }
    if (!opd_dtype_is_floating((opd_scalar_type)grad->dtype)) {
        return opdi_dtype_fail("embedding_backward", grad->dtype);
    }
    opd_tensor *out = opd_result(call, 0, sizes, 2, (opd_scalar_type)grad->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_staging_f32(out);
    grad = scratch ? opdi_dense_as(grad, (opd_scalar_type)scratch->dtype) : NULL;
    input = grad ? opdi_dense_as(input, OPD_INT64) : NULL;
    count = input ? opdi_own(opdi_tensor_make(&rows, NULL, 1, OPD_INT64, OPD_CPU)) : NULL;
    if (!count) { return -1; }
    int64_t *counts = (int64_t *)(void *)count->data;
    memset(counts, 0, (size_t)rows * sizeof *counts);
    memset(scratch->data, 0, (size_t)scratch->numel * opd_dtype_size((opd_scalar_type)scratch->dtype));
    for (int64_t i = 0; i < input->numel; i++) {
        int64_t depth = ((const int64_t *)(const void *)input->data)[i];
        if (depth == skip) { continue; }
        if (depth < 0 || depth >= rows) { return opd_fail(OPD_ERROR_INDEX, "index out of range in self"); }
        counts[depth]++;
    }
    for (int64_t i = 0; i < input->numel; i++) {
        int64_t depth = ((const int64_t *)(const void *)input->data)[i];
        if (depth == skip) { continue; }
        double f = scale ? 1.0 / (double)counts[depth] : 1.0;
        if (scratch->dtype == OPD_FLOAT32) {
            float *a = (float *)(void *)scratch->data + depth * sizes[1];
            const float *b = (const float *)(const void *)grad->data + i * sizes[1], sum = (float)f;
            for (int64_t channel = 0; channel < sizes[1]; channel++) { a[channel] += sum * b[channel]; }
        } else {
            double *a = (double *)(void *)scratch->data + depth * sizes[1];
            const double *b = (const double *)(const void *)grad->data + i * sizes[1];
            for (int64_t channel = 0; channel < sizes[1]; channel++) { a[channel] += f * b[channel]; }
        }
    }
    return opdi_staging_store(out, scratch);
}
OPDI_COLD_BEGIN
static int opdi_embedding_dense_backward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 1);
    const int64_t skip = opd_bw_value(bw, 3).u.i;
    if (opd_bw_value(bw, 4).u.i) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "double backward of embedding with scale_grad_by_freq is not supported");
    }
    grad = opd_embedding(grad, input);
    if (skip >= 0) { grad = opdi_unless(grad, opdi_maybe_unsqueeze(opd_eq_Scalar(input, opd_value_int(skip)), -1)); }
    return opd_bw_return(bw, 0, grad);
}
/* The kernel of embedding_dense_backward under vmap if each example has its own indices: adds each example's rows to a
   separate result. */
static int opdi_embedding_dense_backward_put(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    const int64_t skip = opd_arg_int(call, 3);
    int64_t sizes[2];
    if (opdi_embedding_index(input, "embedding_backward")) { return -1; }
    sizes[0] = opd_arg_int(call, 2);
    if (opdi_embedding_grad_check(grad, sizes[0])) { return -1; }
    sizes[1] = opdi_sizes(grad)[grad->ndim - 1];
    if (skip >= 0) { grad = opdi_unless(grad, opdi_maybe_unsqueeze(opd_eq_Scalar(input, opd_value_int(skip)), -1)); }
    input = opd_to_dtype(input, OPD_INT64);
    if (!grad || !input) { return -1; }
    return opd_return_tensor(call,
                             opd_index_put(opdi_maybe_zeros(grad, opd_ints_of(sizes, 2)),
                                                opd_tensors_of(&input, 1), grad, true));
}
/* The batching rule of embedding_dense_backward.  If all examples share their indices, a single call computes all
   gradients; it takes the examples' rows side by side as one longer row.  Otherwise index_put adds up the rows or, if
   gradients are scaled by frequency, the examples run one after another. */
static int opdi_embedding_dense_backward_batch(opd_call *call) {
    int64_t sizes[OPD_MAX_DIMS + 1];
    const int ndim = call->args[0].u.t->ndim;
    int dim;
    opd_tensor *input = opd_batch_arg(call, 1, &dim);
    if (dim >= 0 || ndim != input->ndim + 1) {
        return opd_arg_bool(call, 4) ? opd_batch_loop(call) : opdi_batch_as(call, opdi_embedding_dense_backward_put);
    }
    opd_tensor *grad = opd_batch_arg(call, 0, &dim);
    grad = dim == ndim - 1 ? grad : opd_movedim(grad, dim, ndim - 1);
    if (!grad) { return -1; }
    memcpy(sizes, opdi_sizes(grad), sizeof *sizes * grad->ndim);
    sizes[ndim - 1] = opdi_size_times(sizes[ndim - 1], sizes[ndim]);
    input = opd_embedding_dense_backward(opdi_maybe_reshape(grad, sizes, ndim), input, opd_arg_int(call, 2),
                                         opd_arg_int(call, 3), opd_arg_bool(call, 4));
    sizes[0] = opd_arg_int(call, 2);
    sizes[2] = opdi_sizes(grad)[ndim];
    sizes[1] = call->th->innermost.rule->size;
    return opd_batch_return(call, opdi_maybe_reshape(input, sizes, 3), 1);
}
/* opd_embedding_dense_backward: the gradient of embedding's weight */
OPDI_OP(embedding_dense_backward) {
    op->schema = "embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, int padding_idx, "
        "bool scale_grad_by_freq) -> Tensor";
    op->cpu = op->fake = opdi_embedding_dense_backward_kernel; op->backward = opdi_embedding_dense_backward_backward;
    op->save = "indices";
    op->vmap = opdi_embedding_dense_backward_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "embedding_dense_backward.out";
    op->cases = "[2,2,3], [2,2]i5, 5, 1, False";
}

static int opdi_embedding_backward_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_embedding_dense_backward(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                                opd_arg_int(call, 2),
                                                               opd_arg_int(call, 3), opd_arg_bool(call, 4)));
}
/* opd_embedding_backward: the gradient of embedding's weight; the gradient is dense even if sparse is true */
OPDI_OP(embedding_backward) {
    op->schema = "embedding_backward(Tensor grad, Tensor indices, SymInt num_weights, int padding_idx, bool "
        "scale_grad_by_freq, bool sparse) -> Tensor";
    op->composite = opdi_embedding_backward_kernel;
    op->cases = "";
}
OPDI_COLD_END
/* one_hot: converts class numbers [..] to int64 [.., num_classes] with 1 at the class and 0 elsewhere.  If num_classes
   is -1, the largest class number plus 1 is used. */
static int opdi_one_hot_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    int64_t count = opd_arg_int(call, 1), sizes[OPD_MAX_DIMS], most = -1;
    if (input->dtype != OPD_INT64) { return opd_fail(OPD_ERROR_DTYPE, "one_hot is only applicable to index tensor."); }
    if (input->ndim >= OPD_MAX_DIMS) { return opdi_dims_fail(input->ndim + 1); }
    if (input->numel == 0 && count <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Can not infer total number of classes from empty tensor.");
    }
    if (!input->data && count == -1 && (count = opd_fake_new_size(call, 1, -1)) < 0) { return -1; }
    input = input->data ? opdi_packed(input) : input;
    if (!input) { return -1; }
    const int64_t *values = (const int64_t *)(const void *)input->data;
    for (int64_t i = 0; values && i < input->numel; i++) {
        if (values[i] < 0) { return opd_fail(OPD_ERROR_INDEX, "Class values must be non-negative."); }
        most = OPDI_MAX(most, values[i]);
    }
    if (count == -1) { count = most == INT64_MAX ? most : most + 1; }
    else if (count < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "num_classes should be positive"); }
    else if (most >= count) { return opd_fail(OPD_ERROR_INDEX, "Class values must be smaller than num_classes."); }
    memcpy(sizes, opdi_sizes(input), sizeof *sizes * input->ndim);
    sizes[input->ndim] = count;
    opd_tensor *out = opd_result(call, 0, sizes, input->ndim + 1, OPD_INT64);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_staging(out, OPD_INT64);
    if (!scratch) { return -1; }
    memset(scratch->data, 0, (size_t)scratch->numel * 8);
    for (int64_t i = 0; i < input->numel; i++) { ((int64_t *)(void *)scratch->data)[i * count + values[i]] = 1; }
    return opdi_staging_store(out, scratch);
}
OPDI_COLD_BEGIN
static int opdi_one_hot_batch(opd_call *call) {
    int dim;
    opd_tensor *input = opd_batch_arg(call, 0, &dim);
    if (opd_arg_int(call, 1) == -1) { return opdi_batch_dynamic(call); }
    return opd_batch_return(call, opd_one_hot(input, opd_arg_int(call, 1)), dim);
}
/* opd_one_hot(self, num_classes): int64 [.., num_classes], with 1 at the index that is in self [..] and 0 elsewhere */
OPDI_OP(one_hot) {
    op->schema = "one_hot(Tensor self, int num_classes=-1) -> Tensor";
    op->cpu = op->fake = opdi_one_hot_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_one_hot_batch; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->cases = "[2,3]i5, 5";
}

//== embedding bags: _embedding_bag ====================================================================================
//
//  A bag is a list of rows of weight [n, d].  Bag number b consists of the rows at indices[offsets[b]],
//  indices[offsets[b] + 1] and so on, up to the offset of the next bag.  Result 0 is the sum, mean or maximum of the
//  rows of each bag.  The other results are saved for the backward function: the bag of each index (empty for sums in
//  other dtypes than float64 without a padding_idx), the number of rows in each bag (0 for sums), and the row that each
//  maximum comes from (for sums and means, the numbers of rows again).

OPDI_COLD_END
enum { OPDI_BAG_SUM = 0, OPDI_BAG_MEAN, OPDI_BAG_MAX };
typedef struct opdi_bags {
    int64_t d, skip;                              /* d: row length; skip: the row that is not counted, or -1 */
    int mode;
    bool packed;                                  /* true: `rows` has one row per index, in order; false: index selects
                                                     the rows */
    const int64_t *index, *begin;                 /* index [n]; begin [bags + 1], where each bag begins in index */
    const void *rows, *weights;                   /* weights: NULL, or a factor for each index */
    void *out;
    int64_t *counts, *most;                       /* counts: rows per bag [bags]; most: rows of maxima [bags, d] */
} opdi_bags;
static void opdi_bags_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_bags_f64(void *ctx, int64_t begin, int64_t end);
#include "../../typed/f32.h"
#include "embedding_bags.typed.h"
#include "../../typed/f64.h"
#include "embedding_bags.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
/* Checks the arguments of an embedding_bag: weight [n, d], indices (input) and offsets of one dim, and the mode.
   `factors` is per_sample_weights or NULL.  `last` is include_last_offset.  Returns 0, or -1 and sets an error. */
static int opdi_bags_check(opd_tensor *weight, opd_tensor *input, opd_tensor *offsets, int64_t mode,
                           opd_tensor *factors, bool last) {
    if (input->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "input has to be a 1D Tensor, but got Tensor of dimension %d", input->ndim);
    }
    if (offsets->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "offsets has to be a 1D Tensor, but got Tensor of dimension %d",
                        offsets->ndim);
    }
    if (weight->ndim != 2) {
        return opd_fail(OPD_ERROR_SHAPE, "weight has to be a 2D Tensor, but got Tensor of dimension %d", weight->ndim);
    }
    if (mode < OPDI_BAG_SUM || mode > OPDI_BAG_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "mode must be 0 (sum), 1 (mean) or 2 (max), but is %lld", (long long)mode);
    }
    if (opdi_embedding_index(input, "embedding_bag") || opdi_embedding_index(offsets, "embedding_bag") ||
        opdi_kernel_dtype(OPDI_DTYPE(weight), false, "embedding_bag") < 0) {
        return -1;
    }
    if (last && offsets->numel < 1) {
        return opd_fail(OPD_ERROR_SHAPE, "include_last_offset: number of offset should be at least 1");
    }
    if (!factors) { return 0; }
    if (mode != OPDI_BAG_SUM) {
        return opd_fail(OPD_ERROR_ARGUMENT, "embedding_bag: per_sample_weights is only supported for mode 0 (sum), "
                        "not for %s. Pass 0 as mode, or NULL as per_sample_weights.",
                        mode == OPDI_BAG_MEAN ? "mean" : "max");
    }
    if (factors->ndim != 1 || factors->numel != input->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "per_sample_weights must be 1-D and have an element for each of the %lld "
                        "indices", (long long)input->numel);
    }
    return opdi_same_dtype(weight, factors);
}
/* Returns begin [bags + 1]: the position in the `total` indices at which each bag begins, and the position after the
   last bag.  If `last` is set, the last offset is the end of the last bag.  On failure, returns NULL and sets an
   error. */
static int64_t *opdi_bags_begin(opd_tensor *offsets, int64_t total, bool last) {
    const int64_t count = offsets->numel;
    int64_t *begin = (int64_t *)opdi_scope_alloc((size_t)(count + 1) * sizeof *begin);
    offsets = opdi_dense_as(offsets, OPD_INT64);
    if (!begin || !offsets) { return NULL; }
    const int64_t *at = (const int64_t *)(const void *)offsets->data;
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 && at[0] != 0) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
                           "to start from position 0. However, got %lld", (long long)at[0]);
            return NULL;
        }
        if (at[i] > total) {
            (void)opd_fail(OPD_ERROR_INDEX, "offsets[-1] can not be greater than input's length %lld but got "
                           "offsets[-1] of %lld", (long long)total, (long long)at[i]);
            return NULL;
        }
        if (i > 0 && at[i] < at[i - 1]) {
            (void)opd_fail(OPD_ERROR_INDEX, "offsets must not decrease, but offset %lld is %lld and the one before it "
                           "%lld", (long long)i, (long long)at[i], (long long)at[i - 1]);
            return NULL;
        }
        begin[i] = at[i];
    }
    begin[count] = last ? 0 : total;
    return begin;
}
/* Computes _embedding_bag and _embedding_bag_forward_only.  Result 0 is the sum, mean or maximum of the rows of weight
   in each bag, [bags, d].  The other three results are the bag of each index, the sizes of the bags, and the rows that
   the maxima came from.  For sums with `forward_only`, result 2 has the length of offsets.  Returns 0, or -1 and sets
   an error. */
static int opdi_embedding_bag_of(opd_call *call, bool forward_only) {
    opd_tensor *weight = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *offsets = opd_arg_tensor(call, 2),
        *results[4];
    opd_tensor *factors = opd_arg_tensor(call, 6);
    const int64_t mode = opd_arg_int(call, 4), skip = opd_arg_int(call, 8), numel = input->numel;
    const bool last = opd_arg_bool(call, 7);
    const opd_scalar_type dtype = weight->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32, index = OPDI_DTYPE(offsets);
    int64_t sizes[2], bad, given = 0, i;
    opdi_bags other;
    if (opdi_bags_check(weight, input, offsets, mode, factors, last)) { return -1; }
    sizes[0] = offsets->numel - last;
    sizes[1] = opdi_sizes(weight)[1];
    given = mode == OPDI_BAG_SUM && skip < 0 && weight->dtype != OPD_FLOAT64 ? 0 : numel;
    results[0] = opd_result(call, 0, sizes, 2, OPDI_DTYPE(weight));
    results[1] = opd_result(call, 1, &given, 1, index);
    int64_t batch = mode == OPDI_BAG_SUM && forward_only ? offsets->numel : sizes[0];
    results[2] = opd_result(call, 2, &batch, 1, index);
    results[3] = mode == OPDI_BAG_MAX ? opd_result(call, 3, sizes, 2, index) : opd_result(call, 3, &batch, 1, index);
    if (!results[0] || !results[1] || !results[2] || !results[3]) { return -1; }
    if (!results[0]->data && !results[1]->data && !results[2]->data) { return 0; }
    memset(&other, 0, sizeof other);
    other.d = sizes[1];
    other.skip = skip;
    other.mode = (int)mode;
    other.begin = opdi_bags_begin(offsets, numel, last);
    if (!other.begin) { return -1; }
    input = opdi_index_load(input, opdi_sizes(weight)[0], false, &bad);
    if (!input) { return -1; }
    other.index = (const int64_t *)(const void *)input->data;
    if (bad >= 0) {
        return opd_fail(OPD_ERROR_INDEX, "embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                        "%lld", (long long)other.index[bad]);
    }
    other.packed = weight->dtype != dtype || !(weight->flags & OPDI_CONTIGUOUS);
    opd_tensor *rows = other.packed ? opdi_dense_as(opd_index_select(weight, 0, input), dtype) : weight;
    opd_tensor *scratch = rows ? opdi_staging(results[0], dtype) : NULL;
    if (!scratch || (factors && !(factors = opdi_dense_as(factors, dtype)))) { return -1; }
    opd_tensor *counts = opdi_own(opdi_tensor_make(sizes, NULL, 1, OPD_INT64, OPD_CPU));
    if (!counts) { return -1; }
    other.rows = rows->data;
    other.weights = factors ? factors->data : NULL;
    other.out = scratch->data;
    other.counts = (int64_t *)(void *)counts->data;
    if (mode == OPDI_BAG_MAX) {
        opd_tensor *most = opdi_staging(results[3], OPD_INT64);
        if (!most) { return -1; }
        other.most = (int64_t *)(void *)most->data;
        opdi_parallel_for(sizes[0], 64, dtype == OPD_FLOAT64 ? opdi_bags_f64 : opdi_bags_f32, &other);
        if (opdi_staging_store(results[3], most)) { return -1; }
    } else {
        opdi_parallel_for(sizes[0], 64, dtype == OPD_FLOAT64 ? opdi_bags_f64 : opdi_bags_f32, &other);
    }
    if (mode == OPDI_BAG_SUM ? opdi_fill_with(results[2], opd_value_int(0)) : opdi_copy(results[2], counts)) {
        return -1;
    }
    if (mode != OPDI_BAG_MAX && opdi_copy(results[3], results[2])) { return -1; }
    if (given) {
        opd_tensor *bags = opdi_staging(results[1], OPD_INT64);
        if (!bags) { return -1; }
        for (batch = 0, i = 0; i < numel; i++) {
            while (batch < sizes[0] && i >= other.begin[batch + 1]) { batch++; }
            ((int64_t *)(void *)bags->data)[i] = offsets->numel ? batch : -1;
        }
        if (opdi_staging_store(results[1], bags)) { return -1; }
    }
    return opdi_staging_store(results[0], scratch);
}
static int opdi__embedding_bag_kernel(opd_call *call) { return opdi_embedding_bag_of(call, false); }
static int opdi__embedding_bag_forward_only_kernel(opd_call *call) { return opdi_embedding_bag_of(call, true); }
static int opdi__embedding_bag_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 1), *offsets = opd_bw_tensor(bw, 2);
    opd_tensor *bags = opd_bw_result(bw, 1);
    const int64_t mode = opd_bw_value(bw, 4).u.i, skip = opd_bw_value(bw, 8).u.i;
    if (!grad) { return 0; }
    OPDI_BW_RETURN(0,
                   opd_embedding_bag_backward_full(grad, input, offsets, bags, opd_bw_result(bw, 2),
                                                   opd_bw_result(bw, 3), opd_bw_sizes(bw, 0).data[0],
                                                   opd_bw_value(bw, 3).u.i != 0, mode, opd_bw_value(bw, 5).u.i != 0,
                                                   opd_bw_tensor(bw, 6), skip));
    OPDI_BW_RETURN(6,
                   opd_embedding_bag_per_sample_weights_backward_full(grad, opd_bw_tensor(bw, 0), input, offsets, bags,
                                                                      mode, skip));
    return 0;
}
/* opd_under_embedding_bag: the operator that embedding_bag calls; its backward function uses the results 1 to 3 */
OPDI_OP(_embedding_bag) {
    op->schema = "_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
        "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int "
        "padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi__embedding_bag_kernel; op->backward = opdi__embedding_bag_backward;
    op->save = "weight(per_sample_weights), indices, offsets, per_sample_weights, result1, result2, result3";
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_CORE;
    op->out = "_embedding_bag.out(out0, out1, out2, out3)";
    op->cases = "[5,3], [4]i5, [1]i1; [5,3], [4]i5, [1]i1, False, 1; [5,3], [4]i5, [1]i1, False, 2; [5,3], [4]i5, "
        "[1]i1, False, 0, False, [4]; [5,3], [4]i5, [2]i1, False, 0, False, None, True, 2";
}
/* opd_embedding_bag_forward_only: embedding_bag if no gradients are needed */
OPDI_OP(_embedding_bag_forward_only) {
    op->schema = "_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool "
        "scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool "
        "include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)";
    op->cpu = op->fake = opdi__embedding_bag_forward_only_kernel; op->backward = opdi__embedding_bag_backward;
    op->save = "weight(per_sample_weights), indices, offsets, per_sample_weights, result1, result2, result3";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_embedding_bag_forward_only.out(out0, out1, out2, out3)";
    op->cases = "[5,3], [4]i5, [1]i1; [5,3], [4]i5, [1]i1, False, 1; [5,3], [4]i5, [1]i1, False, 2; [5,3], [4]i5, "
        "[1]i1, False, 0, False, [4]; [5,3], [4]i5, [2]i1, False, 0, False, None, True, 2";
}

/* Calls _embedding_bag or, if no gradient is needed, its forward-only variant.  `skip` is the row that is padding; -1
   means that there is none. */
static int opdi_embedding_bag_call(opd_call *call, int64_t skip) {
    opd_tensor *weight = opd_arg_tensor(call, 0), *factors = opd_arg_tensor(call, 6);
    const bool wants = opd_tensor_requires_grad(weight) || (factors && opd_tensor_requires_grad(factors));
    opd_value args[9], rets[4];
    memcpy(args, call->args, 8 * sizeof *args);
    args[8] = opd_value_int(skip);
    opd_op *const op = opd_op_builtin(wants ? OPDI_BY_NUMBER(_embedding_bag)
                                            : OPDI_BY_NUMBER(_embedding_bag_forward_only));
    if (opd_call_all(op, rets, args, 9)) { return -1; }
    for (int i = 0; i < 4; i++) { if (opd_return_tensor(call, rets[i].u.t)) { return -1; } }
    return 0;
}
static int opdi_embedding_bag_kernel(opd_call *call) { return opdi_embedding_bag_call(call, -1); }
static int opdi_embedding_bag_padding_idx_kernel(opd_call *call) {
    const opd_tensor *weight = opd_arg_tensor(call, 0);
    const int64_t count = weight->ndim ? opdi_sizes(weight)[0] : 0,
        skip = opd_arg_is_none(call, 8) ? 0 : opd_arg_int(call, 8);
    if (opd_arg_is_none(call, 8)) { return opdi_embedding_bag_call(call, -1); }
    if (skip < -count || skip >= count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "padding_idx must be within the number of embeddings, -%lld through %lld, "
                        "but got %lld", (long long)count, (long long)count - 1, (long long)skip);
    }
    return opdi_embedding_bag_call(call, skip < 0 ? skip + count : skip);
}
/* opd_embedding_bag: the sum (mode 0), mean (1) or maximum (2) of the rows of weight in bags, which begin at offsets */
OPDI_OP(embedding_bag) {
    op->schema = "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int "
        "mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, "
        "Tensor, Tensor, Tensor)";
    op->composite = opdi_embedding_bag_kernel;
    op->cases = "[5,3], [4]i5, [1]i1";
}
/* opd_embedding_bag_padding_idx: embedding_bag that leaves out the row padding_idx of weight */
OPDI_OP(embedding_bag_padding_idx) {
    op->schema = "embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, "
        "int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, "
        "Tensor, Tensor, Tensor)";
    op->composite = opdi_embedding_bag_padding_idx_kernel;
    op->cases = "[5,3], [4]i5, [1]i1, False, 1, False, None, False, None";
}

/* Returns, for each index, the number of the bag that the index belongs to: `bags` if the forward call filled it, else
   numbers computed from the offsets. */
static opd_tensor *opdi_bags_of(opd_tensor *bags, opd_tensor *offsets, opd_tensor *input) {
    if (!bags || !offsets || !input || bags->numel == input->numel) { return bags; }
    bags = opd_arange_full(opd_value_int(input->numel), opd_value_int(offsets->dtype), OPD_NONE,
                           opd_value_device(opd_tensor_device(offsets)), OPD_NONE);
    bags = opd_searchsorted_full(offsets, bags, false, true, OPD_NONE, OPD_NONE);
    return opd_sub_Scalar(bags, opd_value_int(1));
}
/* Returns, for each index, the row of grad [bags, ..] for the bag that the index belongs to.  Indices outside of all
   bags get zeros. */
static opd_tensor *opdi_bags_rows(opd_tensor *grad, opd_tensor *bags) {
    static const int64_t below[4] = {0, 0, 0, 1};
    if (!grad || !bags) { return NULL; }
    bags = opd_masked_fill_Scalar(bags, opd_lt_Scalar(bags, opd_value_int(0)), opd_value_int(opdi_sizes(grad)[0]));
    return opd_index_select(opd_constant_pad_nd(grad, opd_ints_of(below, 4)), 0, bags);
}
/* Computes the gradient of weight: adds each bag's row of grad, times the index's factor, to the rows at the bag's
   indices.  For maxima, each element of grad is added to the row that the maximum came from. */
static int opdi__embedding_bag_dense_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *bags = opd_arg_tensor(call, 2);
    opd_tensor *counts = opd_arg_tensor(call, 3), *most = opd_arg_tensor(call, 4), *factors = opd_arg_tensor(call, 8);
    const int64_t count = opd_arg_int(call, 5), mode = opd_arg_int(call, 7);
    int64_t sizes[2];
    if (opdi_refuse_complex(grad, "embedding_bag_backward") || opdi_refuse_complex(factors, "embedding_bag_backward")) {
        return -1;
    }
    if (grad->ndim != 2 || input->ndim != 1 || count < 0) {
        return opd_fail(OPD_ERROR_SHAPE, "grad must be 2-D, indices 1-D and num_weights >= 0, but got %d-D, %d-D and "
                        "%lld", grad->ndim, input->ndim, (long long)count);
    }
    if (opdi_embedding_index(input, "embedding_bag")) { return -1; }
    if (mode == OPDI_BAG_MAX) {
        sizes[0] = count;
        sizes[1] = opdi_sizes(grad)[1];
        if (count == 0) { return opd_return_tensor(call, opdi_maybe_zeros(grad, opd_ints_of(sizes, 2))); }
        grad = opdi_unless(grad, opd_unsqueeze(opd_eq_Scalar(counts, opd_value_int(0)), 1));
        return opd_return_tensor(call, opd_scatter_add(opdi_maybe_zeros(grad, opd_ints_of(sizes, 2)), 0,
                                                       opd_to_dtype(most, OPD_INT64), grad));
    }
    if (mode == OPDI_BAG_MEAN) {
        grad = opdi_by_count(grad, opd_unsqueeze(opd_clamp_min(counts, opd_value_int(1)), 1));
    }
    grad = opdi_bags_rows(grad, bags);
    if (factors) { grad = opd_mul(grad, opd_unsqueeze(factors, 1)); }
    return opd_return_tensor(call,
                             opd_embedding_dense_backward(grad, input, count, opd_arg_int(call, 9),
                                                          opd_arg_bool(call, 6)));
}
static int opdi__embedding_bag_backward_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 1);
    if (opd_arg_bool(call, 9)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "sparse gradients are not available: pass false as sparse");
    }
    return opd_return_tensor(call, opd_embedding_bag_dense_backward_full(
        opd_arg_tensor(call, 0), input, opdi_bags_of(opd_arg_tensor(call, 3), opd_arg_tensor(call, 2), input),
        opd_arg_tensor(call, 4), opd_arg_tensor(call, 5), opd_arg_int(call, 6), opd_arg_bool(call, 7),
        opd_arg_int(call, 8), opd_arg_tensor(call, 10), opd_arg_int(call, 11)));
}
/* Computes the gradient of per_sample_weights: for each index, the dot product of its bag's gradient and its row of
   weight. */
static int opdi__embedding_bag_per_sample_weights_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *input = opd_arg_tensor(call, 2);
    opd_tensor *bags = opdi_bags_of(opd_arg_tensor(call, 4), opd_arg_tensor(call, 3), input);
    const int64_t skip = opd_arg_int(call, 6), last = -1;
    if (opd_arg_int(call, 5) != OPDI_BAG_SUM) {
        return opd_fail(OPD_ERROR_ARGUMENT, "embedding_bag_backward: per_sample_weights only supported for mode='sum'");
    }
    if (opdi_refuse_complex(grad, "_embedding_bag_per_sample_weights_backward_cpu") ||
        opdi_refuse_complex(weight, "_embedding_bag_per_sample_weights_backward_cpu")) { return -1; }
    opd_tensor *const rows = opdi_bags_rows(grad, bags);
    grad = opdi_maybe_sum_dims(opd_mul(rows, opd_index_select(weight, 0, input)), &last, 1, false);
    return opd_return_tensor(call, skip < 0 ? grad : opdi_unless(grad, opd_eq_Scalar(input, opd_value_int(skip))));
}
/* opd_embedding_bag_dense_backward: the gradient of _embedding_bag's weight */
OPDI_OP(_embedding_bag_dense_backward) {
    op->schema = "_embedding_bag_dense_backward(Tensor grad, Tensor indices, Tensor offset2bag, Tensor bag_size, "
        "Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, Tensor? per_sample_weights, "
        "int padding_idx=-1) -> Tensor";
    op->composite = opdi__embedding_bag_dense_backward_kernel;
    op->out = "_embedding_bag_dense_backward.out";
    op->cases = "[3,2], [4]i5, [4]i3, [3]i3, [3]i3, 5, False, 0, None; [3,2], [4]i5, [4]i3, [3]i3, [3,2]i5, 5, False, "
        "2, None; [3,2], [4]i5, [4]i3, [3]i3, [3]i3, 5, False, 1, None, 1; [3,2], [4]i5, [4]i3, [3]i3, [3]i3, 5, "
        "False, 0, [4]";
}
/* opd_embedding_bag_backward: the gradient of _embedding_bag's weight; sparse gradients are not supported */
OPDI_OP(_embedding_bag_backward) {
    op->schema = "_embedding_bag_backward(Tensor grad, Tensor indices, Tensor offsets, Tensor offset2bag, Tensor "
        "bag_size, Tensor maximum_indices, SymInt num_weights, bool scale_grad_by_freq, int mode, bool sparse, "
        "Tensor? per_sample_weights, int padding_idx=-1) -> Tensor";
    op->composite = opdi__embedding_bag_backward_kernel;
    op->cases = "[1,3], [4]i5, [1]i1, [0]i1, [1]i3, [1]i3, 5, False, 0, False, None";
}
/* opd_embedding_bag_per_sample_weights_backward: the gradient of _embedding_bag's per_sample_weights */
OPDI_OP(_embedding_bag_per_sample_weights_backward) {
    op->schema = "_embedding_bag_per_sample_weights_backward(Tensor grad, Tensor weight, Tensor indices, Tensor "
        "offsets, Tensor offset2bag, int mode, int padding_idx=-1) -> Tensor";
    op->composite = opdi__embedding_bag_per_sample_weights_backward_kernel;
    op->out = "_embedding_bag_per_sample_weights_backward.out";
    op->cases = "[3,2], [5,2], [4]i5, [3]i1, [4]i3, 0; [1,3], [5,3], [4]i5, [1]i1, [0]i1, 0, 2";
}
OPDI_COLD_END
