#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:distance  distances between the rows of matrices
//----------------------------------------------------------------------------------------------------------------------

//== distances between rows: _cdist_forward, _pdist_forward ============================================================
//
//  The distance of row i of x and row j of y is d_ij = (sum_k |x_ik - y_jk|^p)^(1/p).  pdist has only one matrix; its
//  result lists the distances of the pairs of rows i < j.
//
//  The gradient of a row of x is a sum over all rows of y, in order.  So the gradient of pdist processes each pair
//  twice, but no two threads write to the same row.

typedef struct opdi_distances {
    int64_t n, m, k;                              /* n, m: number of rows of x and of y; k: the length of a row */
    double p;
    bool pairs;                                   /* pdist: y is x */
    const void *x, *y, *g, *d;                    /* x [b, n, k], y [b, m, k]; gradient and distances [b, n, m] */
    void *out;                                    /* distances, or the gradient of x */
} opdi_distances;
/* Returns the index, in the result, of the distance between rows i and j. */
static int64_t opdi_distance_at(const opdi_distances *distances, int64_t i, int64_t j) {
    const int64_t first = OPDI_MIN(i, j), second = OPDI_MAX(i, j);
    return distances->pairs ? first * distances->n - first * (first + 1) / 2 + second - first - 1
        : i * distances->m + j;
}
enum { OPDI_DISTANCE_0, OPDI_DISTANCE_1, OPDI_DISTANCE_2, OPDI_DISTANCE_P, OPDI_DISTANCE_MAX };     /* the order p: 0,
                                                                                                       1, 2, another
                                                                                                       number,
                                                                                                       infinity */
static void opdi_distances_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_distances_f64(void *ctx, int64_t begin, int64_t end);
static void opdi_distances_back_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_distances_back_f64(void *ctx, int64_t begin, int64_t end);
#if defined(OPDI_VECTORS)
#include "../../typed/f32_avx2.h"
#include "distance_vectors.typed.h"
#include "../../typed/f64_avx2.h"
#include "distance_vectors.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f32_avx512.h"
#include "distance_vectors.typed.h"
#include "../../typed/f64_avx512.h"
#include "distance_vectors.typed.h"
#endif
#include "../../typed/f32.h"
#include "distance_rows.typed.h"
#include "../../typed/f64.h"
#include "distance_rows.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
/* Writes to `out` the distances between the rows of input and the rows of output or, if output is NULL, between the
   pairs of rows of input.  If grad and delta (the distances) are not NULL, writes the gradient of input instead.
   Returns 0, or -1 and sets an error. */
static int opdi_distances_run(opd_tensor *out, opd_tensor *input, opd_tensor *output, opd_tensor *grad,
                              opd_tensor *delta, double p) {
    const opd_scalar_type dtype = (opd_scalar_type)opdi_compute_dtype[opdi_compute_type((opd_scalar_type)out->dtype)];
    const bool twice = dtype == OPD_FLOAT64;
    opdi_distances distances;
    memset(&distances, 0, sizeof distances);
    distances.pairs = !output;
    distances.p = twice || p <= (double)FLT_MAX ? p : (double)INFINITY;
    distances.n = opd_size(input, -2);
    distances.k = opd_size(input, -1);
    distances.m = output ? opd_size(output, -2) : distances.n;
    if (out->numel == 0) { return 0; }
    opd_tensor *work = opdi_staging(out, dtype);
    input = opdi_dense_as(input, dtype);
    output = output ? opdi_dense_as(output, dtype) : input;
    if (!work || !input || !output ||
        (grad && (!(grad = opdi_dense_as(grad, dtype)) || !(delta = opdi_dense_as(delta, dtype))))) {
        return -1;
    }
    distances.x = input->data;
    distances.y = output->data;
    distances.out = work->data;
    if (grad) {
        distances.g = grad->data;
        distances.d = delta->data;
    }
    opdi_parallel_for(grad ? work->numel / distances.k : distances.pairs ? distances.n : work->numel / distances.m,
                      OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX((int64_t)1, distances.m * distances.k)),
                      grad ? twice ? opdi_distances_back_f64 : opdi_distances_back_f32
                      : twice ? opdi_distances_f64 : opdi_distances_f32, &distances);
    return opdi_staging_store(out, work);
}
static bool opdi_cdist_by_product(double p, int64_t mode, const opd_tensor *input, const opd_tensor *output) {
    const bool many = !opd_same_bits() && (opd_size(input, -2) > 25 || opd_size(output, -2) > 25);
    return p == 2 && (mode == 1 || (mode == 0 && many));
}
/* Checks the arguments of cdist: x1 and x2 [.., rows, columns] of one floating point dtype, order p, and mode.  Returns
   0, or -1 and sets an error. */
static int opdi_cdist_check(const opd_tensor *input, const opd_tensor *output, double p, int64_t mode) {
    const opd_tensor *odd = opd_dtype_is_floating(OPDI_DTYPE(input)) ? output : input;
    if (input->ndim < 2 || output->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "cdist only supports at least 2D tensors, X%d got: %dD",
                        input->ndim < 2 ? 1 : 2, input->ndim < 2 ? input->ndim : output->ndim);
    }
    if (opd_size(input, -1) != opd_size(output, -1)) {
        return opd_fail(OPD_ERROR_SHAPE, "X1 and X2 must have the same number of columns. X1: %lld X2: %lld",
                        (long long)opd_size(input, -1), (long long)opd_size(output, -1));
    }
    if (!opd_dtype_is_floating(OPDI_DTYPE(odd))) {
        return opd_fail(OPD_ERROR_DTYPE, "cdist only supports floating-point dtypes, X%d got: %s", odd == input ? 1 : 2,
                        opd_dtype_name(OPDI_DTYPE(odd)));
    }
    if (!(p >= 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "cdist only supports non-negative p values"); }
    if (mode < 0 || mode > 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "possible modes: 0, 1, 2, but was: %lld", (long long)mode);
    }
    return opdi_same_dtype(input, output);
}
/* Expands the batch dims of tensors[count] to common sizes.  Sets sizes[*ndim] to the sizes of the expanded last
   tensor.  Returns 0, or -1 and sets an error. */
static int opdi_cdist_expand(opd_tensor **tensors, int count, int64_t *sizes, int *ndim) {
    int i;
    for (*ndim = 0, i = 0; i < count; i++) {
        opd_tensor batch = *tensors[i];
        batch.ndim = (uint8_t)(batch.ndim - OPDI_MIN(2, (int)batch.ndim));
        if (opdi_broadcast_into(sizes, ndim, &batch)) { return -1; }
    }
    for (*ndim += 2, i = 0; i < count; i++) {
        sizes[*ndim - 2] = opd_size(tensors[i], -2);
        sizes[*ndim - 1] = opd_size(tensors[i], -1);
        if (!opd_ok() || !(tensors[i] = opd_expand(tensors[i], opd_ints_of(sizes, *ndim)))) { return -1; }
    }
    return 0;
}
static int opdi__cdist_forward_kernel(opd_call *call) {
    opd_tensor *tensors[2];
    const double p = opd_arg_double(call, 2);
    const int64_t mode = opd_arg_is_none(call, 3) ? 0 : opd_arg_int(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    tensors[0] = opd_arg_tensor(call, 0);
    tensors[1] = opd_arg_tensor(call, 1);
    if (opdi_cdist_check(tensors[0], tensors[1], p, mode) || opdi_cdist_expand(tensors, 2, sizes, &ndim)) { return -1; }
    if (tensors[0]->data && tensors[0]->numel && tensors[1]->numel && opdi_cdist_by_product(p, mode, tensors[0],
            tensors[1])) {
        return opd_return_tensor(call, opd_euclidean_dist(tensors[0], tensors[1]));
    }
    sizes[ndim - 1] = opd_size(tensors[1], -2);
    sizes[ndim - 2] = opd_size(tensors[0], -2);
    opd_tensor *out = opd_result(call, 0, sizes, ndim, OPDI_DTYPE(tensors[0]));
    return !out ? -1 : !out->data ? 0 : opdi_distances_run(out, tensors[0], tensors[1], NULL, NULL, p);
}
/* Computes the gradient of cdist with respect to x1 [.., n, columns] from grad and the distances, both [.., n, m]. */
static int opdi__cdist_backward_kernel(opd_call *call) {
    static const int at[4] = {1, 2, 0, 4};        /* x, y, gradient, distances */
    opd_tensor *tensors[4];
    const double p = opd_arg_double(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    for (int i = 0; i < 4; i++) { tensors[i] = opd_arg_tensor(call, at[i]); }
    if (opdi_cdist_check(tensors[0], tensors[1], p, 0) || opdi_same_dtype(tensors[0], tensors[2]) ||
        opdi_same_dtype(tensors[0], tensors[3])) {
        return -1;
    }
    if (tensors[0]->numel && tensors[1]->numel) {
        for (int i = 2; i < 4; i++) {
            if (tensors[i]->ndim < 2 || opd_size(tensors[i], -2) != opd_size(tensors[0], -2) ||
                opd_size(tensors[i], -1) != opd_size(tensors[1], -2)) {
                return opd_fail(OPD_ERROR_SHAPE, "grad and cdist must be batches of %lld x %lld matrices",
                                (long long)opd_size(tensors[0], -2), (long long)opd_size(tensors[1], -2));
            }
        }
        if (opdi_cdist_expand(tensors, 4, sizes, &ndim)) { return -1; }
    }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(tensors[0]), tensors[0]->ndim, OPDI_DTYPE(tensors[0]));
    if (!out || !out->data) { return out ? 0 : -1; }
    return tensors[0]->numel && tensors[1]->numel ? opdi_distances_run(out, tensors[0], tensors[1], tensors[2],
                                                                       tensors[3], p) : opdi_fill_with(out,
        opd_value_int(0));
}
/* Computes the distances for p = 2 as square roots of |x|^2 - 2 * x * y^T + |y|^2, for rows x of input [n, k] and rows
   y of other [m, k].  The three terms are computed as a single matrix product. */
static int opdi__euclidean_dist_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1), *firsts[3], *others[3];
    const int64_t last = -1;
    firsts[1] = opdi_sum_over(opd_mul(input, input), &last, 1, true);
    others[2] = opdi_sum_over(opd_mul(other, other), &last, 1, true);
    firsts[2] = opd_ones_like(firsts[1]);
    others[1] = opd_ones_like(others[2]);
    firsts[0] = opd_mul_Scalar(input, opd_value_int(-2));
    others[0] = other;
    opd_tensor *const joined = opd_cat(opd_tensors_of(firsts, 3), -1);
    input = opd_matmul(joined, opd_mT(opd_cat(opd_tensors_of(others, 3), -1)));
    return opd_return_tensor(call, opd_sqrt(opd_clamp_min(input, opd_value_int(0))));
}
static int opdi__cdist_forward_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *other = opd_bw_tensor(bw, 1),
        *delta = opd_bw_result(bw, 0);
    const double p = opd_bw_value(bw, 2).u.d;
    OPDI_BW_RETURN(0, opd_cdist_backward(grad, input, other, p, delta));
    if (opd_bw_needs(bw, 1)) {
        opd_tensor *const turned = opd_mT(grad);
        OPDI_BW_RETURN(1, opd_cdist_backward(turned, other, input, p, opd_mT(delta)));
    }
    return 0;
}
/* Computes the gradients of _euclidean_dist.  With result = grad / delta, or 0 where delta is 0, the gradient of x1 is
   x1 * sum(result) - result * x2.  The gradient of x2 is the same with x1 and x2 exchanged and result transposed. */
static int opdi__euclidean_dist_backward(opd_backward_call *bw) {
    opd_tensor *delta = opd_bw_result(bw, 0), *zero = opd_eq_Scalar(delta, opd_value_int(0)), *in[2];
    opd_tensor *result = opdi_div_unless(opd_bw_grad(bw, 0), delta, zero);
    const int64_t last = -1;
    in[0] = opd_bw_tensor(bw, 0);
    in[1] = opd_bw_tensor(bw, 1);
    for (int i = 0; i < 2; i++) {
        if (opd_bw_needs(bw, i)) {
            opd_tensor *const product = opd_mul(in[i], opdi_sum_over(result, &last, 1, true));
            OPDI_BW_RETURN(i, opd_sub(product, opd_matmul(result, in[1 - i])));
        }
        result = opd_mT(result);
    }
    return 0;
}
/* Computes the gradients of _cdist_backward, whose result for row i is the sum over j of grad_ij * factor_ijk *
   third_ij.  Here, value = input_i - output_j, factor = sign(value) * |value|^(p-1) and third = delta^(1-p).  `upper`
   is the gradient of this result.  Sets results[0] to results[3] to the gradients of grad, input, output and delta;
   NULL means 0. */
static void opdi_cdist_second(opd_tensor *upper, opd_tensor *grad, opd_tensor *input, opd_tensor *output,
                              opd_tensor *delta, double p, opd_tensor **results /*[4]*/) {
    const int64_t rows = -2, columns = -1, all = -3;
    const opd_value none = opd_value_int(0), one = opd_value_int(1);
    opd_tensor *const column = opd_unsqueeze(input, -2), *value = opd_sub(column, opd_unsqueeze(output, -3)),
        *same = opd_eq_Scalar(delta, none);
    opd_tensor *factor = opd_sign(value), *size = opd_abs(value), *zero = opd_eq_Scalar(value, none);
    results[0] = results[1] = results[2] = results[3] = NULL;
    if (p == 0) { return; }
    upper = opd_unsqueeze(upper, -2);
    if (p == 1 || p > DBL_MAX) {
        if (p > 1) { factor = opd_mul(factor, opd_eq(size, opd_unsqueeze(delta, -1))); }
        results[0] = opdi_sum_over(opd_mul(upper, factor), &columns, 1, false);
        return;
    }
    delta = opd_masked_fill_Scalar(delta, same, one);
    opd_tensor *third = opd_masked_fill_Scalar(opd_pow_Tensor_Scalar(delta, opd_value_double(1 - p)), same, none);
    size = opd_masked_fill_Scalar(size, zero, one);
    factor = p == 2 ? value : opd_mul(factor, opd_pow_Tensor_Scalar(size, opd_value_double(p - 1)));
    results[0] = opd_mul(opdi_sum_over(opd_mul(upper, factor), &columns, 1, false), third);
    results[3] = opd_mul_Scalar(opd_mul(grad, opd_div(results[0], delta)), opd_value_double(1 - p));
    factor = opd_mul(upper, opd_unsqueeze(opd_mul(grad, third), -1));
    if (p != 2) {
        size = opd_mul_Scalar(opd_pow_Tensor_Scalar(size, opd_value_double(p - 2)), opd_value_double(p - 1));
        factor = opd_mul(factor, opd_masked_fill_Scalar(size, zero, none));
    }
    results[1] = opdi_sum_over(factor, &rows, 1, false);
    results[2] = opd_neg(opdi_sum_over(factor, &all, 1, false));
}
static int opdi__cdist_backward_backward(opd_backward_call *bw) {
    static const int at[4] = {0, 1, 2, 4};
    opd_tensor *results[4];
    if (!opd_numel(opd_bw_tensor(bw, 1)) || !opd_numel(opd_bw_tensor(bw, 2))) {        /* there are no distances */
        for (int i = 0; i < 4; i++) { OPDI_BW_RETURN(at[i], opd_zeros_like(opd_bw_tensor(bw, at[i]))); }
        return 0;
    }
    opdi_cdist_second(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1), opd_bw_tensor(bw, 2),
                      opd_bw_tensor(bw, 4), opd_bw_value(bw, 3).u.d, results);
    for (int i = 0; i < 4; i++) { OPDI_BW_RETURN(at[i], results[i]); }
    return 0;
}
/* Batches operators on matrices: the examples become the first batch dim. */
static int opdi_matrices_batch(opd_call *call) {
    opd_value args[OPD_MAX_ARGS], ret;
    int ndim = 0;
    if (opd_batch_size() == 0) { return opdi_batch_empty(call); }     /* the gradient of no distances has x1's sizes */
    for (int i = 0; i < call->op->nargs; i++) {
        args[i] = call->args[i];
        if (args[i].tag == OPD_TAG_TENSOR) { ndim = OPDI_MAX(ndim, (int)args[i].u.t->ndim); }
    }
    return opdi_batch_align(call, args, ndim, false) || opd_call_all(call->op, &ret, args, call->op->nargs) ? -1
        : opd_batch_return(call, ret.u.t, 0);
}
/* Batches _cdist_backward.  Without distances, the gradient has the sizes of x1, which may be the same for all
   examples. */
static int opdi_cdist_backward_batch(opd_call *call) {
    int dim, other;
    opd_tensor *const input = opd_batch_arg(call, 1, &dim), *const output = opd_batch_arg(call, 2, &other);
    if (!input || !output) { return -1; }
    return dim < 0 && (!input->numel || !output->numel) ? opd_batch_return(call, opd_zeros_like(input), -1)
        : opdi_matrices_batch(call);
}
/* opd_cdist_forward: the operator under cdist that computes the distances */
OPDI_OP(_cdist_forward) {
    op->schema = "_cdist_forward(Tensor x1, Tensor x2, float p, int? compute_mode) -> Tensor";
    op->cpu = op->fake = opdi__cdist_forward_kernel; op->backward = opdi__cdist_forward_backward;
    op->save = "x1, x2, result";
    op->vmap = opdi_matrices_batch; op->tags = OPD_OPTAG_CORE;
    op->out = "_cdist_forward.out";
    op->cases = "[3,4], [2,4], 2.0, None; [2,3,4], [1,2,4], 1.0, None; [3,2], [2,2], 1.5, None; [3,3], [4,3], 3.0, 2; "
        "[2,17], [2,17], inf, 1; [3,2], [2,2], 2.0, 1";
}
/* opd_cdist_backward: the gradient of cdist's x1 */
OPDI_OP(_cdist_backward) {
    op->schema = "_cdist_backward(Tensor grad, Tensor x1, Tensor x2, float p, Tensor cdist) -> Tensor";
    op->cpu = op->fake = opdi__cdist_backward_kernel; op->backward = opdi__cdist_backward_backward;
    op->save = "grad, x1, x2, cdist";
    op->vmap = opdi_cdist_backward_batch;
    op->out = "_cdist_backward.out";
    op->cases = "[3,2], [3,4], [2,4], 2.0, [3,2]+; [2,3,2], [2,3,4], [1,2,4], 1.5, [2,3,2]+";
}
/* opd_euclidean_dist: cdist for p = 2, computed by a matrix product */
OPDI_OP(_euclidean_dist) {
    op->schema = "_euclidean_dist(Tensor x1, Tensor x2) -> Tensor";
    op->any = opdi__euclidean_dist_kernel; op->backward = opdi__euclidean_dist_backward; op->save = "x1, x2, result";
    op->vmap = opdi_matrices_batch;
    op->out = "_euclidean_dist.out";
    op->cases = "[3,4], [2,4]; [2,3,4], [2,2,4]";
}

/* cdist: calls _euclidean_dist if p is 2 and there are many rows (or compute_mode asks for it), else _cdist_forward. */
static int opdi_cdist_kernel(opd_call *call) {
    opd_tensor *tensors[2];
    const double p = opd_arg_double(call, 2);
    const int64_t mode = opd_arg_is_none(call, 3) ? 0 : opd_arg_int(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    tensors[0] = opd_arg_tensor(call, 0);
    tensors[1] = opd_arg_tensor(call, 1);
    if (opdi_cdist_check(tensors[0], tensors[1], p, mode)) { return -1; }
    if (!opdi_cdist_by_product(p, mode, tensors[0], tensors[1]) || !tensors[0]->numel || !tensors[1]->numel) {
        return opd_return_tensor(call, opd_cdist_forward(tensors[0], tensors[1], p, opd_arg_value(call, 3)));
    }
    return opdi_cdist_expand(tensors, 2, sizes, &ndim) ? -1 : opd_return_tensor(call,
        opd_euclidean_dist(tensors[0], tensors[1]));
}
/* opd_cdist(x1, x2, p): the p-norm distance of each row of x1 to each row of x2 */
OPDI_OP(cdist) {
    op->schema = "cdist(Tensor x1, Tensor x2, float p=2, int? compute_mode=None) -> Tensor";
    op->composite = opdi_cdist_kernel;
    op->autocast = OPD_AUTOCAST_FP32;
    op->cases = "[3,4], [2,4]; [2,3,4], [2,4], 2, 1; [3,4], [3,4], 1.0";
}

static int opdi_pdist_check(const opd_tensor *input, double p) {
    if (!opd_dtype_is_floating(OPDI_DTYPE(input))) {
        return opd_fail(OPD_ERROR_DTYPE, "pdist only supports floating-point dtypes");
    }
    if (input->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "pdist only supports 2D tensors, got: %dD", input->ndim); }
    if (input->dims[0] >> 32) {
        return opd_fail(OPD_ERROR_SHAPE, "input must have fewer than 2^32 rows, but has %lld",
                        (long long)input->dims[0]);
    }
    return p >= 0 ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "pdist only supports non-negative p values");
}
static int opdi__pdist_forward_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    if (opdi_pdist_check(input, opd_arg_double(call, 1))) { return -1; }
    int64_t count = opdi_sizes(input)[0];
    count = count & 1 ? (count - 1) / 2 * count : count / 2 * (count - 1);
    opd_tensor *out = opd_result(call, 0, &count, 1, OPDI_DTYPE(input));
    return !out ? -1 : !out->data ? 0 : opdi_distances_run(out, input, NULL, NULL, NULL, opd_arg_double(call, 1));
}
static int opdi__pdist_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *delta = opd_arg_tensor(call, 3);
    if (opdi_pdist_check(input, opd_arg_double(call, 2)) || opdi_same_dtype(input, grad) ||
        opdi_same_dtype(input, delta)) {
        return -1;
    }
    int64_t count = opdi_sizes(input)[0];
    count = count & 1 ? (count - 1) / 2 * count : count / 2 * (count - 1);
    if (opdi_expand_check(grad, &count, 1) || opdi_expand_check(delta, &count, 1)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(input), 2, OPDI_DTYPE(input));
    if (!out || !out->data) { return out ? 0 : -1; }
    grad = opd_expand(grad, opd_ints_of(&count, 1));
    delta = opd_expand(delta, opd_ints_of(&count, 1));
    return grad && delta ? opdi_distances_run(out, input, NULL, grad, delta, opd_arg_double(call, 2)) : -1;
}
static int opdi__pdist_forward_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_pdist_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1).u.d,
                                                   opd_bw_result(bw, 0)));
}
/* Returns a symmetric matrix [count, count] that has the number of each pair i < j at (i, j) and at (j, i).  `tensor`
   has the numbers of the pairs, and `at` their positions i * count + j.  opdi_matrix_pairs is the transpose of this
   linear map. */
static opd_tensor *opdi_pairs_matrix(opd_tensor *tensor, opd_tensor *at, int64_t count) {
    const int64_t sizes[2] = {count, count}, flat = count * count;
    tensor = opd_index_put(opd_new_zeros(tensor, opd_ints_of(&flat, 1)), opd_tensors_of(&at, 1), tensor, false);
    tensor = opdi_reshape_to(tensor, sizes, 2);
    return opd_add(tensor, opd_mT(tensor));
}
static opd_tensor *opdi_matrix_pairs(opd_tensor *tensor, opd_tensor *at, int64_t count) {
    const int64_t flat = count * count;
    return tensor ? opd_index_select(opdi_reshape_to(opd_add(tensor, opd_mT(tensor)), &flat, 1), 0, at) : NULL;
}
/* Computes the gradients of _pdist_backward like those of _cdist_backward with input as both matrices. */
static int opdi__pdist_backward_backward(opd_backward_call *bw) {
    opd_tensor *input = opd_bw_tensor(bw, 1), *results[4];
    const int64_t count = opdi_sizes(input)[0];
    opd_tensor *at = opd_triu_indices_full(count, count, 1, opd_value_int(OPD_INT64), OPD_NONE,
                                           opd_value_device(opd_tensor_device(input)), OPD_NONE);
    opd_tensor *const scaled = opd_mul_Scalar(opd_select(at, 0, 0), opd_value_int(count));
    at = opd_add(scaled, opd_select(at, 0, 1));
    opd_tensor *const first = opdi_pairs_matrix(opd_bw_tensor(bw, 0), at, count);
    opdi_cdist_second(opd_bw_grad(bw, 0), first, input, input, opdi_pairs_matrix(opd_bw_tensor(bw, 3), at, count),
        opd_bw_value(bw, 2).u.d, results);
    if (!opd_ok()) { return -1; }
    OPDI_BW_RETURN(0, results[0] ? opdi_matrix_pairs(results[0], at, count) : NULL);
    OPDI_BW_RETURN(1, results[1] ? opd_add(results[1], results[2]) : NULL);
    OPDI_BW_RETURN(3, results[3] ? opdi_matrix_pairs(results[3], at, count) : NULL);
    return 0;
}
/* opd_pdist_forward: the operator under pdist that computes the distances */
OPDI_OP(_pdist_forward) {
    op->schema = "_pdist_forward(Tensor self, float p=2) -> Tensor";
    op->cpu = op->fake = opdi__pdist_forward_kernel; op->backward = opdi__pdist_forward_backward;
    op->save = "self, result";
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_CORE;
    op->out = "_pdist_forward.out";
    op->cases = "[4,3]; [3,2], 1.0; [3,2], 1.5; [4,3], 3.0; [2,17], inf; [1,3]";
}
/* opd_pdist_backward: the gradient of pdist's self */
OPDI_OP(_pdist_backward) {
    op->schema = "_pdist_backward(Tensor grad, Tensor self, float p, Tensor pdist) -> Tensor";
    op->cpu = op->fake = opdi__pdist_backward_kernel; op->backward = opdi__pdist_backward_backward;
    op->save = "grad, self, pdist";
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_pdist_backward.out";
    op->cases = "[6], [4,3], 2.0, [6]+; [3], [3,2], 1.5, [3]+";
}

static int opdi_pdist_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const double p = opd_arg_double(call, 1);
    return opdi_pdist_check(input, p) ? -1 : opd_return_tensor(call, opd_pdist_forward_full(opd_contiguous(input), p));
}
/* opd_pdist: the p-norm distances between all pairs of rows i < j, as a vector */
OPDI_OP(pdist) {
    op->schema = "pdist(Tensor self, float p=2) -> Tensor";
    op->composite = opdi_pdist_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->cases = "[4,3]; [3,2], 1.0";
}
OPDI_COLD_END
