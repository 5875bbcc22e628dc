#include "../ops.h"

//== cumulative sums, products, logsumexp, maxima ======================================================================

#define OPDI_LINE_SCAN(name, type, A, first, body)                                                          \
    static void name(const opdi_lines *lines, const opdi_piece *at, const void *const *in, void *const *out, \
                     char *tmp) {                                                                           \
        const type *x = (const type *)in[0]; type *to = (type *)out[0]; A a = first;                        \
        const int64_t count = at->count; int64_t i;                                                         \
        (void)lines;                                                                                        \
        if (at->from) { memcpy(&a, tmp, sizeof a); }                                                        \
        for (i = 0; i < count; i++) { body; to[i] = (type)a; }                                              \
        memcpy(tmp, &a, sizeof a);                                                                          \
    }
OPDI_LINE_SCAN(opdi_line_cumsum_f32, float, double, 0, a += (double)x[i])
OPDI_LINE_SCAN(opdi_line_cumsum_f64, double, double, 0, a += x[i])
OPDI_LINE_SCAN(opdi_line_cumsum_i64, int64_t, uint64_t, 0, a += (uint64_t)x[i])
OPDI_LINE_SCAN(opdi_line_cumprod_f32, float, double, 1, a *= (double)x[i])
OPDI_LINE_SCAN(opdi_line_cumprod_f64, double, double, 1, a *= x[i])
OPDI_LINE_SCAN(opdi_line_cumprod_i64, int64_t, uint64_t, 1, a *= (uint64_t)x[i])
static double opdi_log_add_exp(double a, double b) {
    const double low = a < b ? a : b, top = a != a || b != b ? (double)NAN : a < b ? b : a;
    return low != top || (top < OPDI_INF && top > -OPDI_INF) ? opdi_log1p_f64(opdi_exp_f64(low - top)) + top : top;
}
OPDI_LINE_SCAN(opdi_line_logcumsumexp_f32, float, double, -OPDI_INF, a = opdi_log_add_exp((double)x[i], a))
OPDI_LINE_SCAN(opdi_line_logcumsumexp_f64, double, double, -OPDI_INF, a = opdi_log_add_exp(x[i], a))
static const opdi_line_fn opdi_line_cumsum[3] = {opdi_line_cumsum_f32, opdi_line_cumsum_f64, opdi_line_cumsum_i64};
static const opdi_line_fn opdi_line_cumprod[3] = {opdi_line_cumprod_f32, opdi_line_cumprod_f64, opdi_line_cumprod_i64};
static const opdi_line_fn opdi_line_logcumsumexp[3] = {opdi_line_logcumsumexp_f32, opdi_line_logcumsumexp_f64, NULL};
/* Computes the cumulative sums or products of groups [begin, end) of lines.  A group has four lines of float32, which
   are processed at the same time: within one line, each addition would have to wait for the one before.  The elements
   of an input line may lie apart, or be one number. */
OPDI_ALWAYS void opdi_lines_group(const opdi_lines *lines, int64_t begin, int64_t end, bool product) {
    const int64_t count = lines->count, step = lines->step[0] / 4;
    for (int64_t item = begin; item < end; item++) {
        const int64_t left = OPDI_MIN(lines->outer - 4 * item, (int64_t)4);
        const float *x[4];
        float *to[4];
        double sums[4];
        for (int j = 0; j < 4; j++) {             /* a line that is missing is the last one again */
            const int64_t line = 4 * item + OPDI_MIN(j, left - 1);
            x[j] = (const float *)(const void *)(lines->data[0] + line * lines->stride[0][0]);
            to[j] = (float *)(void *)(lines->data[1] + line * lines->stride[1][0]);
            sums[j] = product ? 1 : 0;
        }
        double next[4];
        OPDI_UNROLL
        for (int j = 0; j < 4; j++) { next[j] = count ? (double)x[j][0] : 0; }     /* stays if the line is one number */
        for (int64_t i = 0; i < count; i++) {
            OPDI_UNROLL
            for (int j = 0; j < 4; j++) { next[j] = step ? (double)x[j][i * step] : next[j]; }
            OPDI_UNROLL
            for (int j = 0; j < 4; j++) {
                sums[j] = product ? sums[j] * next[j] : sums[j] + next[j];
                to[j][i] = (float)sums[j];
            }
        }
    }
}
static void opdi_lines_cumsum(void *ctx, int64_t begin, int64_t end) {
    opdi_lines_group((const opdi_lines *)ctx, begin, end, false);
}
static void opdi_lines_cumprod(void *ctx, int64_t begin, int64_t end) {
    opdi_lines_group((const opdi_lines *)ctx, begin, end, true);
}
OPDI_COLD_BEGIN
/* If the lines are float32, and contiguous in the result, runs opdi_lines_cumsum or opdi_lines_cumprod, and returns
   true.  Otherwise returns false. */
static bool opdi_lines_group_try(opdi_lines *lines, int type, bool product) {
    if (type != OPDI_F32 || lines->ndim != 1 || lines->load[0] || lines->store[1] || lines->step[1] != 4) {
        return false;
    }
    opdi_parallel_for((lines->outer + 3) / 4, OPDI_GRAIN / (4 * lines->count) + 1,
                      product ? opdi_lines_cumprod : opdi_lines_cumsum, lines);
    return true;
}
/* Does the work of opdi_scan for complex numbers.  `what` is 's' for sums, 'p' for products, 'l' for logsumexp.
   Returns 0, or -1 and sets an error. */
static int opdi_complex_scan(opd_call *call, opd_tensor *tensor, int dim, opd_scalar_type dtype, char what) {
    if (opdi_complex_left_out()) { return -1; }
    opd_tensor *out = opdi_updates_self(call) ? tensor
        : opd_result(call, 0, opdi_sizes(tensor), tensor->ndim, dtype);
    if (!out || !out->data || tensor->numel == 0) { return out ? 0 : -1; }
    opd_tensor *work = opdi_own(opdi_tensor_make(opdi_sizes(tensor), NULL, tensor->ndim, OPD_COMPLEX128, OPD_CPU));
    if (!work || opdi_copy(work, tensor)) { return -1; }
    opdi_complex *at = (opdi_complex *)(void *)work->data;
    const int64_t count = tensor->ndim ? opdi_sizes(tensor)[dim] : 1;
    const int64_t step = tensor->ndim ? opdi_strides(work)[dim] : 1;
    for (int64_t i = 0; i < work->numel; i++) {
        const bool begins = i / step % count == 0;
        if (what == 'l') {
            at[i] = opdi_complex_logaddexp(at[i], begins ? opdi_complex_make(-INFINITY, 0) : at[i - step]);
        } else if (!begins) {
            at[i] = what == 's' ? opdi_complex_add(at[i - step], at[i]) : opdi_complex_mul(at[i - step], at[i]);
        }
    }
    return opdi_copy(out, work);
}
/* Scans argument 0 along the dim in argument 1, by the line function in fns[] for the type in which the scan computes.
   The result has dtype `dtype`; in an in-place form, it is argument 0.  `what` is the operator's name in messages.
   Returns 0, or -1 and sets an error. */
static int opdi_scan(opd_call *call, const opdi_line_fn *fns, opd_scalar_type dtype, const char *what) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *ops[2];
    const int dim = opdi_dim_of(opd_arg_int(call, 1), tensor->ndim), type = opdi_compute_type(dtype);
    opdi_lines lines;
    if (dim < 0) { return -1; }
    const bool pairs = opd_dtype_is_complex(dtype);
    if (!pairs && (!fns[type] || dtype == OPD_BOOL)) { return opdi_dtype_fail(what, dtype); }
    if (call->targets && call->targets[0] == tensor && dtype != opd_dtype(tensor)) {
        return opd_fail(OPD_ERROR_DTYPE, "Bad in-place call: input tensor dtype %s and output tensor dtype %s should "
                        "match", opd_dtype_name(opd_dtype(tensor)), opd_dtype_name(dtype));
    }
    if (pairs) {
        return opdi_complex_scan(call, tensor, dim, dtype,
                                 fns == opdi_line_cumsum ? 's' : fns == opdi_line_cumprod ? 'p' : 'l');
    }
    if (opdi_is_complex(tensor) && !(tensor = opd_to_dtype(tensor, dtype))) { return -1; }
    ops[0] = tensor;
    ops[1] = opdi_updates_self(call) ? tensor : opd_result(call, 0, opdi_sizes(tensor), tensor->ndim, dtype);
    if (!ops[1]) { return -1; }
    if (!ops[1]->data || tensor->numel == 0) { return 0; }
    opdi_lines_init(&lines, ops, 1, 2, dim, type, 0);
    if ((fns == opdi_line_cumsum && opdi_columns_run(&lines, type, opdi_columns_cumsum)) ||
        (fns != opdi_line_logcumsumexp && opdi_lines_group_try(&lines, type, fns == opdi_line_cumprod))) {
        return 0;
    }
    return opdi_lines_run(&lines, fns[type], 2);
}
static int opdi_cumsum_kernel(opd_call *call) {
    return opdi_scan(call, opdi_line_cumsum, opdi_reduce_dtype(call, 2, opd_arg_tensor(call, 0)), "cumsum_out_cpu");
}
static int opdi_cumprod_kernel(opd_call *call) {
    return opdi_scan(call, opdi_line_cumprod, opdi_reduce_dtype(call, 2, opd_arg_tensor(call, 0)), "cumprod_out_cpu");
}
static int opdi_logcumsumexp_kernel(opd_call *call) {
    return opdi_scan(call, opdi_line_logcumsumexp, opd_dtype(opd_arg_tensor(call, 0)), "logcumsumexp_out_cpu");
}
/* Returns the cumulative sums of grad along dim, from the end to the beginning. */
static opd_tensor *opdi_sum_from_end(opd_tensor *grad, int64_t dim) {
    if (!grad || opd_numel(grad) <= 1 || opd_size(grad, (int)dim) == 1) { return grad; }
    return opdi_flip_dim(opd_cumsum(opdi_flip_dim(grad, dim), dim), dim);
}
static int opdi_cumsum_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_sum_from_end(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i));
}
/* Returns the gradient of cumprod with respect to input.  If input has no zeros, the gradient is the cumulative sum
   from the end of grad * output, divided by input.  Otherwise each element k is computed from products without
   input[k].  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_cumprod_gradient(opd_tensor *grad, opd_tensor *input, int64_t dim, opd_tensor *output) {
    opd_tensor *result = NULL;
    if (!grad || !input || !output) { return NULL; }
    if (opd_numel(input) <= 1) { return grad; }
    if (dim < 0) { dim += input->ndim; }
    int64_t count = opd_size(input, (int)dim);
    if (count == 1) { return grad; }
    if (!opdi_may_have_zero(input)) { return opd_div(opdi_sum_from_end(opd_mul(output, grad), dim), input); }
    for (int64_t k = 0; k < count; k++) {
        opd_tensor *others = opd_ones_like(opdi_range_dim(input, dim, 0, 1));
        if (k + 1 < count) {
            others = opdi_cat_dim(others, opd_cumprod(opdi_range_dim(input, dim, k + 1, count), dim), dim);
        }
        if (k > 0) { others = opd_mul(others, opd_prod_dim(opdi_range_dim(input, dim, 0, k), dim, true)); }
        opd_tensor *part = opdi_sum_keep(opd_mul(opdi_range_dim(grad, dim, k, count), others), dim);
        result = result ? opdi_cat_dim(result, part, dim) : part;
        if (!result) { return NULL; }
    }
    return result;
}
static int opdi_cumprod_backward(opd_backward_call *bw) {
    opd_tensor *input = opd_bw_tensor(bw, 0), *output = opd_bw_result(bw, 0);
    if (input && output && input->dtype != output->dtype) { input = opd_to_dtype(input, opd_dtype(output)); }
    return opd_bw_return(bw, 0, opdi_cumprod_gradient(opd_bw_grad(bw, 0), input, opd_bw_value(bw, 1).u.i, output));
}
static int opdi_cumprod_backward_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_conj(opdi_cumprod_gradient(opdi_conj(opd_arg_tensor(call, 0)),
        opd_arg_tensor(call, 1), opd_arg_int(call, 2), opd_arg_tensor(call, 3))));
}
/* Computes the gradient of logcumsumexp: exp(input) times the sums of grad * exp(-output) from each element to the end.
   The sums are computed as logcumsumexp of log|grad| - output, separately for positive and negative grad. */
static int opdi_logcumsumexp_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *output = opd_bw_result(bw, 0), *part[2];
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    const double lowest = grad->dtype == OPD_FLOAT64 ? -1.7976931348623157e308 : grad->dtype == OPD_FLOAT16 ? -65504.0
                          : grad->dtype == OPD_BFLOAT16 ? -3.3895313892515355e38 : -3.4028234663852886e38;
    if (opd_bw_sizes(bw, 0).n == 0 || grad->numel == 0) { return opd_bw_return(bw, 0, grad); }
    if (opdi_is_complex(grad)) {                  /* all complex numbers have logarithms */
        opd_tensor *last = opd_logcumsumexp(opdi_flip_dim(opd_sub(opd_log(grad), output), dim), dim);
        return opd_bw_return(bw, 0, opd_exp(opd_add(opdi_flip_dim(last, dim), input)));
    }
    for (int i = 0; i < 2; i++) {
        opd_tensor *first = i ? opd_neg(grad) : grad, *positive = opd_gt_Scalar(first, opd_value_int(0));
        opd_tensor *last =
            opd_masked_fill_Scalar(opd_log(opd_masked_fill_Scalar(first, opd_logical_not(positive), opd_value_int(1))),
                                   opd_logical_not(positive), opd_value_double(lowest));
        last = opdi_flip_dim(opd_logcumsumexp(opdi_flip_dim(opd_sub(last, output), dim), dim), dim);
        part[i] = opd_exp(opd_add(last, input));
    }
    return opd_bw_return(bw, 0, opd_sub(part[0], part[1]));
}
/* opd_cumsum: cumulative sums along dim */
OPDI_OP(cumsum) {
    op->schema = "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_cumsum_kernel; op->backward = opdi_cumsum_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_PART;
    op->flops = opdi_flops_elements;
    op->inplace = "cumsum_"; op->out = "cumsum.out";
    op->cases = "[2,3], 1; [2,3]i5, 0; [], 0";
}
/* opd_cumprod: cumulative products along dim */
OPDI_OP(cumprod) {
    op->schema = "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_cumprod_kernel; op->backward = opdi_cumprod_backward; op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_SET_NOT_CPU; op->flops = opdi_flops_elements;
    op->inplace = "cumprod_"; op->out = "cumprod.out";
    op->cases = "[2,3], 1; [2,3]i5, 0; [], 0";
    op->tags = OPDI_OPTAG_OUT_PART;
}
/* opd_logcumsumexp: the logsumexp of the elements up to each element along dim */
OPDI_OP(logcumsumexp) {
    op->schema = "logcumsumexp(Tensor self, int dim) -> Tensor";
    op->cpu = op->fake = opdi_logcumsumexp_kernel; op->backward = opdi_logcumsumexp_backward; op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "logcumsumexp.out";
    op->cases = "[2,3], 1; [], 0";
    op->tags = OPDI_OPTAG_OUT_PART;
}
/* opd_cumprod_backward: the gradient of cumprod's input */
OPDI_OP(cumprod_backward) {
    op->schema = "cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor";
    op->composite = opdi_cumprod_backward_kernel;
    op->cases = "[2,3], [2,3], 1, [2,3]";
}

OPDI_COLD_END
static void opdi_line_cummax_f32(const opdi_lines *lines, const opdi_piece *part, const void *const *in,
                                 void *const *out, char *tmp);
static void opdi_line_cummax_f64(const opdi_lines *lines, const opdi_piece *part, const void *const *in,
                                 void *const *out, char *tmp);
static void opdi_line_cummax_i64(const opdi_lines *lines, const opdi_piece *part, const void *const *in,
                                 void *const *out, char *tmp);
#include "../../typed/f32.h"
#include "running_maximum.typed.h"
#include "../../typed/f64.h"
#include "running_maximum.typed.h"
#include "../../typed/i64.h"
#include "running_maximum.typed.h"
#include "../../typed/end.h"
static const opdi_line_fn opdi_line_cummax[3] = {opdi_line_cummax_f32, opdi_line_cummax_f64, opdi_line_cummax_i64};
/* Makes two results, values and their indices, by the line function in fns[] for the type in which it computes.  The
   lines of the results have `len` elements; if `reduce` is true, they have one element, and the dim is removed unless
   `keep` is true.  `cost` is the work per element, `what` the operator's name in messages.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_lines_select(opd_call *call, const opdi_line_fn *fns, int64_t dim_arg, int64_t len, bool reduce,
                                    bool keep, opdi_lines *lines, int64_t cost, const char *what) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *ops[3], views[2];
    const int dim = opdi_dim_of(dim_arg, tensor->ndim), type = opdi_compute_type((opd_scalar_type)tensor->dtype);
    int64_t sizes[OPD_MAX_DIMS], dims[2][2 * OPD_MAX_DIMS];
    if (dim < 0) { return -1; }
    if (!fns[type] || opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        return opdi_dtype_fail(what, tensor->dtype);
    }
    int ndim = opdi_reduce_sizes(tensor, reduce ? (uint64_t)1 << dim : 0, keep, sizes);
    if (!reduce && tensor->ndim) { sizes[dim] = len; }
    ops[0] = tensor;
    {   /* results of sort keep the order of self's strides */
        int64_t like[OPD_MAX_DIMS];
        const int64_t *strides = lines->keep_strides ? like : NULL;
        if (strides) { opdi_strides_like(tensor, like); }
        ops[1] = opd_result_strided(call, 0, sizes, strides, ndim, opd_dtype(tensor), opd_tensor_device(tensor));
        ops[2] = ops[1] ? opd_result_strided(call, 1, sizes, strides, ndim, OPD_INT64, opd_tensor_device(tensor))
            : NULL;
    }
    if (!ops[2]) { return -1; }
    if (!ops[1]->data || ops[1]->numel == 0) { return 0; }
    for (int k = 0; k < 2 && reduce && !keep && tensor->ndim; k++) {  /* views of the results with the reduced dim */
        opd_tensor *full = ops[k + 1];
        views[k] = *full;
        for (int axis = 0; axis < tensor->ndim; axis++) {
            dims[k][axis] = axis == dim ? 1 : opdi_sizes(full)[axis - (axis > dim)];
            dims[k][tensor->ndim + axis] = axis == dim ? 1 : opdi_strides(full)[axis - (axis > dim)];
        }
        views[k].dims = dims[k];
        views[k].ndim = tensor->ndim;
        ops[k + 1] = &views[k];
    }
    {
        const int64_t number = lines->number;
        const size_t tmp = lines->tmp;
        const int passes = lines->passes;
        const bool flag = lines->flag, flag2 = lines->flag2;
        opdi_lines_init(lines, ops, 1, 3, dim, type, 4);
        lines->number = number;
        lines->tmp = tmp;
        lines->flag = flag;
        lines->flag2 = flag2;
        lines->passes = passes;
    }
    return opdi_lines_run(lines, fns[type], cost);
}
OPDI_COLD_BEGIN
static int opdi_cummax_of(opd_call *call, bool smallest) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const int64_t dim = opd_arg_int(call, 1);
    opdi_lines lines;
    lines.flag = smallest;
    lines.flag2 = lines.keep_strides = false;
    lines.tmp = 32;
    lines.number = 0;
    lines.passes = 1;
    return opdi_lines_select(call, opdi_line_cummax, dim, tensor->ndim && opdi_dim_of(dim, tensor->ndim) >= 0
                             ? opdi_sizes(tensor)[opdi_dim_of(dim, tensor->ndim)] : 1,
                             false, true, &lines, 2, smallest ? "cummin_cpu" : "cummax_cpu");
}
static int opdi_cummax_kernel(opd_call *call) { return opdi_cummax_of(call, false); }
static int opdi_cummin_kernel(opd_call *call) { return opdi_cummax_of(call, true); }
static int opdi_cummax_backward(opd_backward_call *bw) {
    if (!opd_bw_grad(bw, 0)) { return 0; }
    return opd_bw_return(bw, 0, opdi_scatter_dim(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i,
                                                 opd_bw_result(bw, 1), true));
}
/* opd_cummax: the greatest element so far for each element along dim, and its index */
OPDI_OP(cummax) {
    op->schema = "cummax(Tensor self, int dim)" OPDI_PAIR;
    op->cpu = op->fake = opdi_cummax_kernel; op->backward = opdi_cummax_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "cummax.out(values, indices)";
    op->cases = "[2,3], 1; [2,3]i5, 0";
}
/* opd_cummin: the smallest element so far for each element along dim, and its index */
OPDI_OP(cummin) {
    op->schema = "cummin(Tensor self, int dim)" OPDI_PAIR;
    op->cpu = op->fake = opdi_cummin_kernel; op->backward = opdi_cummax_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "cummin.out(values, indices)";
    op->cases = "[2,3], 1; [2,3]i5, 0";
}

//== differences of neighbouring elements: diff ========================================================================

/* Checks `more`, a tensor (or NULL) that diff joins to self along dim: in the other dims, both must have the same
   sizes.  Returns 0, or -1 and sets an error. */
static int opdi_diff_end_check(const opd_tensor *self, const opd_tensor *more, int dim) {
    if (!more) { return 0; }
    if (more->ndim != self->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "diff expects prepend or append to be the same dimension as input");
    }
    for (int i = 0; i < self->ndim; i++) {
        if (i == dim || opdi_sizes(more)[i] == opdi_sizes(self)[i]) { continue; }
        return opd_fail(OPD_ERROR_SHAPE, "diff expects the shape of tensor to prepend or append to match that of input "
                        "except along the differencing dimension; input.size(%d) = %lld, but got tensor.size(%d) = "
                        "%lld", i, (long long)opdi_sizes(self)[i], i, (long long)opdi_sizes(more)[i]);
    }
    return 0;
}
/* diff: replaces each element except the first by its difference from the element before, n times.  For bool, the
   difference is true if the two elements differ. */
static int opdi_diff_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *list[3], *prepend = opd_arg_tensor(call, 3),
        *append = opd_arg_tensor(call, 4);
    const int dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    const int64_t times = opd_arg_int(call, 1);
    int count = 0;
    if (self->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "diff expects input to be at least one-dimensional"); }
    if (dim < 0 || opdi_diff_end_check(self, prepend, dim) || opdi_diff_end_check(self, append, dim)) { return -1; }
    if (times < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "order must be non-negative but got %lld", (long long)times);
    }
    if (times == 0) { return opd_return_tensor(call, opd_clone(self)); }
    if (prepend) { list[count++] = prepend; }
    list[count++] = self;
    if (append) { list[count++] = append; }
    if (count > 1 && !(self = opd_cat(opd_tensors_of(list, count), dim))) { return -1; }
    for (int64_t i = 0; i < times && self; i++) {
        const int64_t left = opdi_sizes(self)[dim];
        if (left == 0) { break; }
        opd_tensor *last = opd_narrow(self, dim, 1, left - 1), *first = opd_narrow(self, dim, 0, left - 1);
        self = self->dtype == OPD_BOOL ? opd_logical_xor(last, first) : opd_sub(last, first);
    }
    return opd_return_tensor(call, self);
}
/* opd_diff: the differences of neighbouring elements along dim, n times; prepend and append are joined to self first */
OPDI_OP(diff) {
    op->schema = "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor";
    op->composite = opdi_diff_kernel;
    op->out = "diff.out";
    op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,4]; [4,3], 2, 0, [1,3], [2,3]; [2,3]b; [3], 7";
}
OPDI_COLD_END
