#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:extremes  the largest and smallest elements over dims, any and all, norms
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== largest and smallest elements =====================================================================================

/* Fails if a dim to be reduced has size 0, because the largest of no elements is not defined
   (at::native::zero_numel_check_dims).  Returns 0, or -1 and sets an error that names `name`. */
OPDI_INTERNAL int opdi_reduce_nonempty(const opd_tensor *tensor, opd_ints dims, const char *name) {
    if (tensor->numel > 0) { return 0; }
    if (dims.n == 0) {
        return opd_fail(OPD_ERROR_INDEX, "%s(): Expected reduction dim to be specified for input.numel() == 0. "
                        "Specify the reduction dim with the 'dim' argument.", name);
    }
    for (int64_t i = 0; i < dims.n; i++) {
        const int dim = opdi_dim_of(dims.data[i], tensor->ndim);
        if (dim < 0) { return -1; }
        if (tensor->ndim && opdi_sizes(tensor)[dim] == 0) {
            return opd_fail(OPD_ERROR_INDEX, "%s(): Expected reduction dim %lld to have non-zero size.", name,
                            (long long)dims.data[i]);
        }
    }
    return 0;
}
OPDI_COLD_END
/* Defines a fold that finds the largest (OP is >) or smallest (<) of n > 0 elements, or NaN if an element is NaN. */
#define OPDI_MORE(x, OP, y) ((((x) OP (y)) | ((x) != (x))) ? (x) : (y))
#define OPDI_MORE_LANES(from, x, OP, count) for (j = from; j < count; j++) { a[j] = OPDI_MORE((x)[j], OP, a[j]); }
#define OPDI_MORE_HALVES(OP) \
    OPDI_MORE_LANES(0, a + 32, OP, 32) OPDI_MORE_LANES(0, a + 16, OP, 16) OPDI_MORE_LANES(0, a + 8, OP, 8)
#define OPDI_FOLD_EXTREME(name, type, field, OP)                                                            \
    OPDI_LOOP_TEXT void name##_body(OPDI_FOLD_ARGS) {                                                       \
        const type *x = (const type *)px; type a[64]; int64_t i = 0; int j; (void)at; (void)reduce;         \
        for (j = 0; j < 64; j++) { a[j] = (type)folded->field; }                                            \
        for (; i + 64 <= count; i += 64) { OPDI_UNROLL OPDI_MORE_LANES(0, x + i, OP, 64) }                          \
        if (i > 0) { OPDI_MORE_HALVES(OP) }                                                                 \
        for (j = 1; j < 8 && i > 0; j++) { a[0] = OPDI_MORE(a[j], OP, a[0]); }                             \
        for (; i < count; i++) { a[0] = OPDI_MORE(x[i], OP, a[0]); }                                        \
        folded->field = a[0];                                                                               \
    }                                                                                                       \
    OPDI_FOLD_WIDE(name)
OPDI_FOLD_EXTREME(opdi_fold_more_f32, float, f, >)
OPDI_FOLD_EXTREME(opdi_fold_max_f64, double, f, >)
OPDI_FOLD_EXTREME(opdi_fold_max_i64, int64_t, i, >)
OPDI_FOLD_EXTREME(opdi_fold_less_f32, float, f, <)
OPDI_FOLD_EXTREME(opdi_fold_min_f64, double, f, <)
OPDI_FOLD_EXTREME(opdi_fold_min_i64, int64_t, i, <)
/* Finds the largest or, if `most` is false, the smallest of float32 elements.  opdi_extreme_whole processes most of the
   elements with vector instructions.  Its result and single elements need no loop. */
static void opdi_fold_extreme_f32(bool most, OPDI_FOLD_ARGS) {
    const float *x = (const float *)px;
    float best = x[0];
    const int64_t whole = opdi_extreme_whole(most, x, count, &best), first = OPDI_MAX(whole, 1);
    const float y = (float)folded->f;
    folded->f = (double)(((most ? best > y : best < y) | (best != best)) ? best : y);
    if (first == count) { return; }
    (most ? opdi_fold_more_f32 : opdi_fold_less_f32)(folded, x + first, count - first, at, reduce);
}
OPDI_INTERNAL void opdi_fold_max_f32(OPDI_FOLD_ARGS) { opdi_fold_extreme_f32(true, folded, px, count, at, reduce); }
OPDI_INTERNAL void opdi_fold_min_f32(OPDI_FOLD_ARGS) { opdi_fold_extreme_f32(false, folded, px, count, at, reduce); }
OPDI_INTERNAL void opdi_join_max(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    opdi_fold_max_f64(folded, &with->f, 1, 0, reduce);
    opdi_fold_max_i64(folded, &with->i, 1, 0, reduce);
}
OPDI_INTERNAL void opdi_join_min(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    opdi_fold_min_f64(folded, &with->f, 1, 0, reduce);
    opdi_fold_min_i64(folded, &with->i, 1, 0, reduce);
}
static const opdi_fold opdi_the_max = {
    /* step */ {opdi_fold_max_f32, opdi_fold_max_f64, opdi_fold_max_i64},
    /* column */ {opdi_f32_maximum, opdi_f64_maximum, opdi_i64_maximum}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_max, NULL, /* init */ {OPDI_MINUS_INF, 0, INT64_MIN, 0},
    /* out, what */ {OPDI_OUT_F_OR_I, OPDI_OUT_NONE}, "max_cpu"};
static const opdi_fold opdi_the_min = {
    /* step */ {opdi_fold_min_f32, opdi_fold_min_f64, opdi_fold_min_i64},
    /* column */ {opdi_f32_minimum, opdi_f64_minimum, opdi_i64_minimum}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_min, NULL, /* init */ {OPDI_INF, 0, INT64_MAX, 0},
    /* out, what */ {OPDI_OUT_F_OR_I, OPDI_OUT_NONE}, "min_cpu"};
/* Defines a fold that finds the largest (OP is <=) or smallest (>=) element and its index: the first of several equal
   elements, or the first NaN if there is one.  folded->n is the index so far, or -1 before the first element. */
#define OPDI_FOLD_WHERE(name, type, field, OP)                                                              \
    static void name(opdi_folded *folded, const void *px, int64_t count, int64_t at, const opdi_reduce *reduce) { \
        const type *x = (const type *)px; type best = (type)folded->field; int64_t i, index = folded->n;    \
        (void)reduce;                                                                                       \
        if (index < 0 && count > 0) { best = x[0]; index = at; }                                            \
        for (i = 0; i < count; i++) {                                                                       \
            if (OPDI_UNLIKELY(!(x[i] OP best))) {                                                           \
                if (best != best) { break; }                                                                \
                best = x[i]; index = at + i;                                                                \
            }                                                                                               \
        }                                                                                                   \
        folded->field = best; folded->n = index;                                                            \
    }
OPDI_FOLD_WHERE(opdi_fold_argmax_f32, float, f, <=)
OPDI_FOLD_WHERE(opdi_fold_argmax_f64, double, f, <=)
OPDI_FOLD_WHERE(opdi_fold_argmax_i64, int64_t, i, <=)
OPDI_FOLD_WHERE(opdi_fold_argmin_f32, float, f, >=)
OPDI_FOLD_WHERE(opdi_fold_argmin_f64, double, f, >=)
OPDI_FOLD_WHERE(opdi_fold_argmin_i64, int64_t, i, >=)
/* Joins the states of two chunks.  Chunks are joined in order, so that the first of equal elements is kept. */
static void opdi_join_where(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    opdi_folded next = *with;
    if (reduce->it.compute == OPDI_I64) {
        reduce->fold->step[OPDI_I64](folded, &next.i, 1, next.n, reduce);
        return;
    }
    (reduce->fold->init.g > 0 ? opdi_fold_argmax_f64 : opdi_fold_argmin_f64)(folded, &next.f, 1, next.n, reduce);
}
OPDI_COLD_BEGIN
#define OPDI_WHERE_MAX \
    /* step */ {opdi_fold_argmax_f32, opdi_fold_argmax_f64, opdi_fold_argmax_i64}, /* column */ {NULL, NULL, NULL}, \
    /* side */ {NULL, NULL}, /* join, finish */ opdi_join_where, NULL, /* init */ {0, 1, 0, -1}
#define OPDI_WHERE_MIN \
    /* step */ {opdi_fold_argmin_f32, opdi_fold_argmin_f64, opdi_fold_argmin_i64}, /* column */ {NULL, NULL, NULL}, \
    /* side */ {NULL, NULL}, /* join, finish */ opdi_join_where, NULL, /* init */ {0, -1, 0, -1}
static const opdi_fold opdi_the_argmax = {OPDI_WHERE_MAX, {OPDI_OUT_INDEX, OPDI_OUT_NONE}, "argmax_cpu"},
    opdi_the_argmin = {OPDI_WHERE_MIN, {OPDI_OUT_INDEX, OPDI_OUT_NONE}, "argmin_cpu"};
static const opdi_fold opdi_the_max_where = {OPDI_WHERE_MAX, {OPDI_OUT_F_OR_I, OPDI_OUT_INDEX}, "max_cpu"},
    opdi_the_min_where = {OPDI_WHERE_MIN, {OPDI_OUT_F_OR_I, OPDI_OUT_INDEX}, "min_cpu"};

static int opdi_reduce_extreme(opd_call *call, const opdi_fold *fold, opd_ints dims, bool keep, const char *name) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    uint64_t mask;
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) != 0 || opdi_reduce_nonempty(tensor, dims, name) != 0) {
        return -1;
    }
    if (call->targets && call->exact && fold->out[0] == OPDI_OUT_F_OR_I && call->targets[0]->dtype != dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected the dtype for input and out to match, "
                        "but got %s for input's dtype and %s for out's dtype.", opd_dtype_name(dtype),
                        opd_dtype_name((opd_scalar_type)call->targets[0]->dtype));
    }
    return opdi_reduce_kernel(call, fold, tensor, mask, keep, dtype, fold->out[0] == OPDI_OUT_INDEX ? OPD_INT64 : dtype,
                              OPD_INT64, 0);
}
static int opdi_amax_kernel(opd_call *call) {
    return opdi_reduce_extreme(call, &opdi_the_max, opd_arg_ints(call, 1), opd_arg_bool(call, 2), "amax");
}
static int opdi_amin_kernel(opd_call *call) {
    return opdi_reduce_extreme(call, &opdi_the_min, opd_arg_ints(call, 1), opd_arg_bool(call, 2), "amin");
}
static int opdi_max_kernel(opd_call *call) {
    return opdi_reduce_extreme(call, &opdi_the_max, opd_ints_of(NULL, 0), false, "max");
}
static int opdi_min_kernel(opd_call *call) {
    return opdi_reduce_extreme(call, &opdi_the_min, opd_ints_of(NULL, 0), false, "min");
}
static int opdi_reduce_where(opd_call *call, const opdi_fold *fold, const char *name) {
    const int64_t dim = opd_arg_int(call, 1);
    return opdi_reduce_extreme(call, fold, opd_ints_of(&dim, opd_arg_is_none(call, 1) ? 0 : 1),
                               opd_arg_bool(call, 2), name);
}
static int opdi_max_dim_kernel(opd_call *call) { return opdi_reduce_where(call, &opdi_the_max_where, "max"); }
static int opdi_min_dim_kernel(opd_call *call) { return opdi_reduce_where(call, &opdi_the_min_where, "min"); }
static int opdi_reduce_arg(opd_call *call, const opdi_fold *fold, const char *name) {
    if (opd_arg_tensor(call, 0)->dtype == OPD_BOOL) { return opdi_dtype_fail(fold->what, OPD_BOOL); }
    return opdi_reduce_where(call, fold, name);
}
static int opdi_argmax_kernel(opd_call *call) { return opdi_reduce_arg(call, &opdi_the_argmax, "argmax"); }
static int opdi_argmin_kernel(opd_call *call) { return opdi_reduce_arg(call, &opdi_the_argmin, "argmin"); }

/* Returns grad, divided equally among the elements of input that equal `value`, the extreme.  Here, NaN equals NaN.
   grad and value broadcast to input. */
static opd_tensor *opdi_share(opd_tensor *grad, opd_tensor *input, opd_tensor *value, opd_ints dims) {
    opd_tensor *mask = opd_logical_or(opd_eq(input, value), opd_logical_and(opd_isnan(input), opd_isnan(value)));
    return opdi_where(mask, opd_expand_as(opdi_by_count(grad, opd_sum_dim(mask, dims, true)), input));
}
static opd_tensor *opdi_share_all(opd_tensor *grad, opd_tensor *input, opd_tensor *value) {
    return opdi_share(grad, input, value, opd_ints_of(NULL, 0));
}
/* Does the work of opdi_share, but NaN does not equal NaN (PyTorch's scale_grad_by_count). */
static opd_tensor *opdi_share_equal(opd_tensor *grad, opd_tensor *input, opd_tensor *value, opd_ints dims) {
    opd_tensor *mask = opd_eq(input, value);
    opd_tensor *const product = opd_mul(grad, mask);
    return opdi_by_count(product, opd_sum_dim(mask, dims, true));
}
OPDI_INTERNAL int opdi_max_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_share_all(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_result(bw, 0)));
}
static int opdi_amax_backward(opd_backward_call *bw) {
    const opd_ints dims = opdi_bw_dims(bw, 1);
    opd_tensor *input = opd_bw_tensor(bw, 0);
    opd_tensor *grad = opdi_unreduce(opd_bw_grad(bw, 0), dims, opdi_bw_bool(bw, 2), input->ndim);
    opd_tensor *value = opdi_unreduce(opd_bw_result(bw, 0), dims, opdi_bw_bool(bw, 2), input->ndim);
    return opd_bw_return(bw, 0, opdi_share_equal(grad, input, value, dims));
}
/* Returns the gradient of elements that were selected along dim: zeros of these sizes with grad at the positions in
   `index` (value_selecting_reduction_backward).  If `keep` is true, grad and index have the reduced dim, with size
   1. */
static opd_tensor *opdi_unselect(opd_tensor *grad, int64_t dim, opd_tensor *index, opd_ints sizes, bool keep) {
    if (!keep && sizes.n > 0) {
        grad = opd_unsqueeze(grad, dim);
        index = opd_unsqueeze(index, dim);
    }
    return opdi_scatter_dim(grad, sizes, dim, index, false);
}
OPDI_INTERNAL int opdi_bw_unselect(opd_backward_call *bw, int64_t dim, bool keep) {
    return opd_bw_return(bw, 0,
                         opdi_unselect(opd_bw_grad(bw, 0), dim, opd_bw_result(bw, 1), opd_bw_sizes(bw, 0), keep));
}
static int opdi_max_dim_backward(opd_backward_call *bw) {
    return opd_bw_grad(bw, 0) ? opdi_bw_unselect(bw, opd_bw_value(bw, 1).u.i, opdi_bw_bool(bw, 2)) : 0;
}
static int opdi_value_selecting_reduction_backward_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_unselect(opd_arg_tensor(call, 0), opd_arg_int(call, 1), opd_arg_tensor(call, 2),
                                                 opd_arg_ints(call, 3), opd_arg_bool(call, 4)));
}
/* opd_value_selecting_reduction_backward: the gradient of max, min, median and mode over a dim */
OPDI_OP(value_selecting_reduction_backward) {
    op->schema = "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim) "
        "-> Tensor";
    op->composite = opdi_value_selecting_reduction_backward_kernel;
    op->cases = "";
}
/* opd_amax(self, dim, keepdim): the greatest element over dims; equal elements share the gradient */
OPDI_OP(amax) {
    op->schema = "amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_amax_kernel; op->backward = opdi_amax_backward; op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "amax.out";
    op->cases = OPDI_CASES_DIMS;
}
/* opd_amin(self, dim, keepdim): the smallest element over dims; equal elements share the gradient */
OPDI_OP(amin) {
    op->schema = "amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_amin_kernel; op->backward = opdi_amax_backward; op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "amin.out";
    op->cases = OPDI_CASES_DIMS;
}

static int opdi_batch_nonempty(opd_call *call, const char *name) {
    return opdi_reduce_nonempty(opd_arg_tensor(call, 0), opd_ints_of(NULL, 0), name);
}
static int opdi_max_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opdi_batch_nonempty(call, "max") ? NULL : opd_amax(all, dims, false), 0);
}
/* opd_max: the greatest element of self */
OPDI_OP(max) {
    op->schema = "max(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_max_kernel; op->backward = opdi_max_backward; op->save = "self, result";
    op->vmap = opdi_max_batch; op->flops = opdi_flops_elements;
    op->out = "max.unary_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = OPDI_CASES_ALL;
}

static int opdi_min_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opdi_batch_nonempty(call, "min") ? NULL : opd_amin(all, dims, false), 0);
}
/* opd_min: the smallest element of self */
OPDI_OP(min) {
    op->schema = "min(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_min_kernel; op->backward = opdi_max_backward; op->save = "self, result";
    op->vmap = opdi_min_batch; op->flops = opdi_flops_elements;
    op->out = "min.unary_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = OPDI_CASES_ALL;
}
#define OPDI_CASES_SELECT "[2,3], 1; [2,3,2], -2, True; [2,3]i5, 0"
/* opd_max_dim(self, dim, keepdim): the greatest element along dim, and its index */
OPDI_OP(max_dim) {
    op->schema = "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)";
    op->cpu = op->fake = opdi_max_dim_kernel; op->backward = opdi_max_dim_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_APART;
    op->flops = opdi_flops_elements;
    op->out = "max.dim_max(max, max_values)";
    op->cases = OPDI_CASES_SELECT;
}
/* opd_min_dim(self, dim, keepdim): the smallest element along dim, and its index */
OPDI_OP(min_dim) {
    op->schema = "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)";
    op->cpu = op->fake = opdi_min_dim_kernel; op->backward = opdi_max_dim_backward; op->save = "indices";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_APART;
    op->flops = opdi_flops_elements;
    op->out = "min.dim_min(min, min_indices)";
    op->cases = OPDI_CASES_SELECT;
}
/* opd_argmax(self, dim, keepdim): the index of the greatest element along dim or, without dim, in the flattened self */
OPDI_OP(argmax) {
    op->schema = "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_argmax_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "argmax.out";
    op->cases = "[2,3]; [2,3], 1, True";
}
/* opd_argmin(self, dim, keepdim): the index of the smallest element along dim or, without dim, in the flattened self */
OPDI_OP(argmin) {
    op->schema = "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_argmin_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "argmin.out";
    op->cases = "[2,3]; [2,3], 1, True";
}

static int opdi_max_other_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_maximum(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
static int opdi_min_other_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_minimum(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
/* opd_max_other: for each pair of elements of self and other, the greater one; the same as maximum */
OPDI_OP(max_other) {
    op->schema = "max.other(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_max_other_kernel;
    op->flops = opdi_flops_elements;
    op->out = "max.out"; op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [3]";
}
/* opd_min_other: for each pair of elements of self and other, the smaller one; the same as minimum */
OPDI_OP(min_other) {
    op->schema = "min.other(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_min_other_kernel;
    op->flops = opdi_flops_elements;
    op->out = "min.out"; op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [3]";
}

OPDI_COLD_END
/* Finds the largest and the smallest element.  folded->f (for integers i) is the largest element so far, folded->g (for
   integers n) the smallest. */
static void opdi_fold_both_f32(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                               const opdi_reduce *reduce) {
    opdi_folded other = *folded;
    other.f = folded->g;
    opdi_fold_max_f32(folded, x, count, at, reduce);
    opdi_fold_min_f32(&other, x, count, at, reduce);
    folded->g = other.f;
}
static void opdi_fold_both_f64(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                               const opdi_reduce *reduce) {
    opdi_folded other = *folded;
    other.f = folded->g;
    opdi_fold_max_f64(folded, x, count, at, reduce);
    opdi_fold_min_f64(&other, x, count, at, reduce);
    folded->g = other.f;
}
static void opdi_fold_both_i64(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                               const opdi_reduce *reduce) {
    opdi_folded other = *folded;
    other.i = folded->n;
    opdi_fold_max_i64(folded, x, count, at, reduce);
    opdi_fold_min_i64(&other, x, count, at, reduce);
    folded->n = other.i;
}
static void opdi_join_both(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    opdi_fold_both_f64(folded, &with->f, 1, 0, reduce);
    opdi_fold_both_f64(folded, &with->g, 1, 0, reduce);
    opdi_fold_both_i64(folded, &with->i, 1, 0, reduce);
    opdi_fold_both_i64(folded, &with->n, 1, 0, reduce);
}
OPDI_COLD_BEGIN
static const opdi_fold opdi_the_aminmax = {
    /* step */ {opdi_fold_both_f32, opdi_fold_both_f64, opdi_fold_both_i64},
    /* column */ {NULL, NULL, NULL}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_both, NULL, /* init */ {OPDI_MINUS_INF, OPDI_INF, INT64_MIN, INT64_MAX},
    /* out, what */ {OPDI_OUT_G_OR_N, OPDI_OUT_F_OR_I}, "aminmax_kernel"};
static int opdi_aminmax_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const int64_t dim = opd_arg_int(call, 1);
    const opd_ints dims = opd_ints_of(&dim, opd_arg_is_none(call, 1) ? 0 : 1);
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    uint64_t mask;
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) != 0 || opdi_reduce_nonempty(tensor, dims, "aminmax") != 0) {
        return -1;
    }
    for (int i = 0; i < 2 && call->targets; i++) {
        if (call->targets[i]->dtype != dtype) { return opdi_out_dtype_fail(dtype, call->targets[i]->dtype); }
    }
    return opdi_reduce_kernel(call, &opdi_the_aminmax, tensor, mask, opd_arg_bool(call, 2), dtype, dtype, dtype, 0);
}
static int opdi_aminmax_backward(opd_backward_call *bw) {
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    const opd_ints dims = opd_ints_of(&dim, opd_bw_value(bw, 1).tag == OPD_TAG_NONE ? 0 : 1);
    const bool keep = opdi_bw_bool(bw, 2);
    opd_tensor *input = opd_bw_tensor(bw, 0), *sum = NULL;
    for (int i = 0; i < 2; i++) {
        if (!opd_bw_grad(bw, i)) { continue; }
        opd_tensor *const spread = opdi_unreduce(opd_bw_grad(bw, i), dims, keep, input->ndim),
            *part = opdi_share_equal(spread, input, opdi_unreduce(opd_bw_result(bw, i), dims, keep, input->ndim),
            dims);
        sum = sum ? opd_add(sum, part) : part;
        if (!sum) { return -1; }
    }
    return sum ? opd_bw_return(bw, 0, sum) : 0;
}
/* opd_aminmax: the smallest and the greatest element, of all or along dim */
OPDI_OP(aminmax) {
    op->schema = "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)";
    op->cpu = op->fake = opdi_aminmax_kernel; op->backward = opdi_aminmax_backward; op->save = "self, min, max";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "aminmax.out(min, max)";
    op->cases = "[2,3]; [2,3], dim=1, keepdim=True";
    op->tags = OPDI_OPTAG_OUT_APART;
}

//== any, all, count_nonzero ===========================================================================================

OPDI_COLD_END
#define OPDI_FOLD_COUNT(name, type)                                                                         \
    OPDI_LOOP_TEXT void name##_body(OPDI_FOLD_ARGS) {                                                       \
        const type *x = (const type *)px; int64_t a[16] = {0}; int64_t i = 0; int j;                        \
        (void)at; (void)reduce;                                                                             \
        for (; i + 16 <= count; i += 16) { OPDI_UNROLL for (j = 0; j < 16; j++) { a[j] += x[i + j] != 0; } } \
        for (; i < count; i++) { a[0] += x[i] != 0; }                                                       \
        for (j = 0; j < 16; j++) { folded->i += a[j]; }                                                     \
        folded->f = (double)folded->i;                                                                      \
    }                                                                                                       \
    OPDI_FOLD_WIDE(name)
OPDI_FOLD_COUNT(opdi_fold_count_f32, float)
OPDI_FOLD_COUNT(opdi_fold_count_f64, double)
OPDI_FOLD_COUNT(opdi_fold_count_i64, int64_t)
OPDI_COLD_BEGIN
static void opdi_finish_any(opdi_folded *folded, const opdi_reduce *reduce) {
    (void)reduce;
    folded->i = folded->i > 0;
}
static void opdi_finish_all(opdi_folded *folded, const opdi_reduce *reduce) { folded->i = folded->i == reduce->count; }
#define OPDI_COUNT_PARTS \
    /* step */ {opdi_fold_count_f32, opdi_fold_count_f64, opdi_fold_count_i64}, /* column */ {NULL, NULL, NULL}, \
    /* side */ {NULL, NULL}, /* join */ opdi_join_sum
/* The counting folds for bool are sums, because the elements are loaded as the integers 0 and 1. */
#define OPDI_TRUTH_PARTS \
    {NULL, NULL, opdi_fold_sum_i64}, {NULL, NULL, opdi_i64_add}, /* side */ {NULL, NULL}, /* join */ opdi_join_sum
/* Indices into opdi_the_truth; OPDI_OF_BOOL is added for bool. */
enum { OPDI_ANY, OPDI_ALL, OPDI_COUNT, OPDI_OF_BOOL };
static const opdi_fold opdi_the_truth[6] = {
    {OPDI_COUNT_PARTS, opdi_finish_any, /* init */ {0, 0, 0, 0}, {OPDI_OUT_I, OPDI_OUT_NONE}, "any"},
    {OPDI_COUNT_PARTS, opdi_finish_all, /* init */ {0, 0, 0, 0}, {OPDI_OUT_I, OPDI_OUT_NONE}, "all"},
    {OPDI_COUNT_PARTS, /* finish */ NULL, /* init */ {0, 0, 0, 0}, {OPDI_OUT_I, OPDI_OUT_NONE}, "count_nonzero"},
    {OPDI_TRUTH_PARTS, opdi_finish_any, /* init */ {0, 0, 0, 0}, {OPDI_OUT_I, OPDI_OUT_NONE}, "any"},
    {OPDI_TRUTH_PARTS, opdi_finish_all, /* init */ {0, 0, 0, 0}, {OPDI_OUT_I, OPDI_OUT_NONE}, "all"},
    {OPDI_TRUTH_PARTS, /* finish */ NULL, /* init */ {0, 0, 0, 0}, {OPDI_OUT_I, OPDI_OUT_NONE}, "count_nonzero"}};
static int opdi_reduce_truth(opd_call *call, int which, opd_ints dims, bool keep) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    if (opdi_is_complex(tensor) && !(tensor = opd_ne_Scalar(tensor, opd_value_int(0)))) { return -1; }
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype,
        out = which == OPDI_COUNT ? OPD_INT64 : dtype == OPD_UINT8 ? OPD_UINT8 : OPD_BOOL;
    const opdi_fold *fold = &opdi_the_truth[which + (dtype == OPD_BOOL ? OPDI_OF_BOOL : 0)];
    uint64_t mask;
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) != 0) { return -1; }
    if (call->targets && which != OPDI_COUNT && call->targets[0]->dtype != OPD_BOOL &&
        call->targets[0]->dtype != OPD_UINT8) {
        return opd_fail(OPD_ERROR_DTYPE, "%s only supports bool tensor for result, got: %s", fold->what,
                        opd_dtype_name((opd_scalar_type)call->targets[0]->dtype));
    }
    return opdi_reduce_kernel(call, fold, tensor, mask, keep, dtype, out, OPD_DTYPE_NONE, 0);
}
static int opdi_truth_dim(opd_call *call, int which) {
    const int64_t dim = opd_arg_int(call, 1);
    return opdi_reduce_truth(call, which, opd_ints_of(&dim, 1), opd_arg_bool(call, 2));
}
static int opdi_any_kernel(opd_call *call) {
    return opdi_reduce_truth(call, OPDI_ANY, opd_ints_of(NULL, 0), false);
}
static int opdi_all_kernel(opd_call *call) {
    return opdi_reduce_truth(call, OPDI_ALL, opd_ints_of(NULL, 0), false);
}
static int opdi_any_dim_kernel(opd_call *call) { return opdi_truth_dim(call, OPDI_ANY); }
static int opdi_all_dim_kernel(opd_call *call) { return opdi_truth_dim(call, OPDI_ALL); }
static int opdi_any_dims_kernel(opd_call *call) {
    return opdi_reduce_truth(call, OPDI_ANY, opd_arg_ints(call, 1), opd_arg_bool(call, 2));
}
static int opdi_all_dims_kernel(opd_call *call) {
    return opdi_reduce_truth(call, OPDI_ALL, opd_arg_ints(call, 1), opd_arg_bool(call, 2));
}
static int opdi_count_nonzero_dims_kernel(opd_call *call) {
    return opdi_reduce_truth(call, OPDI_COUNT, opd_arg_ints(call, 1), false);
}
static int opdi_count_nonzero_kernel(opd_call *call) {
    const int64_t dim = opd_arg_int(call, 1);
    return opdi_reduce_truth(call, OPDI_COUNT, opd_ints_of(&dim, opd_arg_is_none(call, 1) ? 0 : 1), false);
}
static int opdi_any_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opd_any_dims(all, dims, false), 0);
}
/* opd_any: true if an element is not 0 */
OPDI_OP(any) {
    op->schema = "any(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_any_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_any_batch; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->flops = opdi_flops_elements;
    op->out = "any.all_out";
    op->cases = "[2,3]; [2,3]b";
}

static int opdi_all_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opd_all_dims(all, dims, false), 0);
}
/* opd_all: true if no element is 0 */
OPDI_OP(all) {
    op->schema = "all(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_all_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_all_batch; op->flops = opdi_flops_elements;
    op->out = "all.all_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [2,3]b";
}
/* opd_any_dim(self, dim, keepdim): true where an element along dim is not 0 */
OPDI_OP(any_dim) {
    op->schema = "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_any_dim_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->flops = opdi_flops_elements;
    op->out = "any.out";
    op->cases = "[2,3]b, 1";
}
/* opd_all_dim(self, dim, keepdim): true where no element along dim is 0 */
OPDI_OP(all_dim) {
    op->schema = "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_all_dim_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "all.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]b, 1";
}
/* opd_any_dims(self, dim, keepdim): reduces the dims in `dim`; true if any of the reduced elements is not 0 */
OPDI_OP(any_dims) {
    op->schema = "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_any_dims_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->flops = opdi_flops_elements;
    op->out = "any.dims_out";
    op->cases = "[2,3]b, (0,1)";
}
/* opd_all_dims(self, dim, keepdim): true where no element over dims is 0 */
OPDI_OP(all_dims) {
    op->schema = "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_all_dims_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "all.dims_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]b, (0,1)";
}
/* opd_count_nonzero_dim: the number of nonzero elements over dims */
OPDI_OP(count_nonzero_dim_IntList) {
    op->schema = "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor";
    op->cpu = op->fake = opdi_count_nonzero_dims_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "count_nonzero.dim_IntList_out";
    op->cases = "[2,3]b, (0)";
}
/* opd_count_nonzero: the number of nonzero elements, of all or along dim */
OPDI_OP(count_nonzero) {
    op->schema = "count_nonzero(Tensor self, int? dim=None) -> Tensor";
    op->cpu = op->fake = opdi_count_nonzero_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "count_nonzero.out";
    op->cases = "[2,3]b; [2,3]i5, 1";
}
OPDI_COLD_END
