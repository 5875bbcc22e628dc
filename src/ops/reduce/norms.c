#include "../ops.h"

//== norms =============================================================================================================

OPDI_FOLD_SUM(opdi_fold_abs_f32, float, fabs((double)x))
OPDI_FOLD_SUM(opdi_fold_abs_f64, double, fabs(x))
OPDI_FOLD_SUM(opdi_fold_squares_f32, float, (double)x * (double)x)
OPDI_FOLD_SUM(opdi_fold_square_f64, double, x * x)
OPDI_FOLD_SUM(opdi_fold_power_f32, float, opdi_pow_f64(fabs((double)x), reduce->number))
OPDI_FOLD_SUM(opdi_fold_power_f64, double, opdi_pow_f64(fabs(x), reduce->number))
#if defined(OPDI_X86) || defined(OPDI_PORTABLE)
#include "../../typed/f64_avx2.h"
#include "square_sums.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f64_avx512.h"
#include "square_sums.typed.h"
#endif
#include "../../typed/end.h"
static void opdi_fold_square_f32(OPDI_FOLD_ARGS) {
    const float *x = (const float *)px;
    int64_t whole = 0;
#if defined(OPDI_X86) || defined(OPDI_PORTABLE)
    if (count >= 32 && opdi_cpu_level() > 0) {
        whole = count & ~(int64_t)31;
        folded->f += OPDI_WIDEST(opdi_cpu_level(), opdi_squares_sum_avx512_f64, opdi_squares_sum_avx2_f64)(x, whole);
    }
#endif
    if (whole < count) { opdi_fold_squares_f32(folded, x + whole, count - whole, at, reduce); }
}
/* Defines a fold that finds the largest or smallest |x|, a block of 256 elements at a time. */
#define OPDI_FOLD_ABS_EXTREME(name, type, fold)                                                             \
    static void name(opdi_folded *folded, const void *px, int64_t count, int64_t at, const opdi_reduce *reduce) { \
        const type *x = (const type *)px; type block[256]; int64_t i, k, rows;                              \
        for (k = 0; k < count; k += rows) {                                                                 \
            rows = OPDI_MIN(count - k, (int64_t)256);                                                       \
            for (i = 0; i < rows; i++) { block[i] = x[k + i] < 0 ? -x[k + i] : x[k + i]; }                  \
            fold(folded, block, rows, at, reduce);                                                          \
        }                                                                                                   \
    }
OPDI_FOLD_ABS_EXTREME(opdi_fold_abs_max_f32, float, opdi_fold_max_f32)
OPDI_FOLD_ABS_EXTREME(opdi_fold_abs_max_f64, double, opdi_fold_max_f64)
OPDI_FOLD_ABS_EXTREME(opdi_fold_abs_min_f32, float, opdi_fold_min_f32)
OPDI_FOLD_ABS_EXTREME(opdi_fold_abs_min_f64, double, opdi_fold_min_f64)
static void opdi_finish_root(opdi_folded *folded, const opdi_reduce *reduce) {
    (void)reduce;
    folded->f = sqrt(folded->f);
}
OPDI_COLD_BEGIN
static void opdi_finish_power(opdi_folded *folded, const opdi_reduce *reduce) {
    folded->f = opdi_pow_f64(folded->f, 1.0 / reduce->number);
}
#define OPDI_NORM_FOLD(f32, f64, join, finish, init)                                                        \
    {/* step */ {f32, f64, NULL}, /* column */ {NULL, NULL, NULL}, /* side */ {NULL, NULL}, \
     join, finish, {init, 0, 0, 0}, {OPDI_OUT_F, OPDI_OUT_NONE}, "norm_cpu"}
static const opdi_fold opdi_the_norms[6] = {
    OPDI_NORM_FOLD(opdi_fold_count_f32, opdi_fold_count_f64, opdi_join_sum, NULL, 0),
    OPDI_NORM_FOLD(opdi_fold_abs_f32, opdi_fold_abs_f64, opdi_join_sum, NULL, 0),
    OPDI_NORM_FOLD(opdi_fold_square_f32, opdi_fold_square_f64, opdi_join_sum, opdi_finish_root, 0),
    OPDI_NORM_FOLD(opdi_fold_abs_max_f32, opdi_fold_abs_max_f64, opdi_join_max, NULL, 0),
    OPDI_NORM_FOLD(opdi_fold_abs_min_f32, opdi_fold_abs_min_f64, opdi_join_min, NULL, OPDI_INF),
    OPDI_NORM_FOLD(opdi_fold_power_f32, opdi_fold_power_f64, opdi_join_sum, opdi_finish_power, 0)};
static const opdi_fold *opdi_norm_fold(double p) {
    if (p == 0 || p == 1 || p == 2) { return &opdi_the_norms[(int)p]; }
    return &opdi_the_norms[p == OPDI_INF ? 3 : p == -OPDI_INF ? 4 : 5];
}
static double opdi_norm_order(opd_value value) { return value.tag == OPD_TAG_NONE ? 2.0 : opdi_number_f64(value); }
/* Checks that the dtype requested for a norm can represent the elements of the input.  `name` is used in messages.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_norm_dtype_check(const opd_tensor *tensor, opd_scalar_type dtype, const char *name) {
    const opd_scalar_type in = opd_dtype(tensor);
    const bool complex = opd_dtype_is_complex(in);
    if (dtype == OPD_DTYPE_NONE) { return 0; }
    if (!opd_dtype_is_floating(dtype) && !opd_dtype_is_complex(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: dtype should be floating point or complex, but got %s", name,
                        opd_dtype_name(dtype));
    }
    if (complex != opd_dtype_is_complex(dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: dtype should be %s for %s inputs, but got %s", name,
                        complex ? "complex" : "real", complex ? "complex" : "real", opd_dtype_name(dtype));
    }
    return opd_promote_types(in, dtype) == dtype ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: the dtype of the input (%s) should be convertible without narrowing to the "
                   "specified dtype (%s)", name, opd_dtype_name(in), opd_dtype_name(dtype));
}
/* Computes the norm of order p of argument 0 over `dims`, which stay with size 1 if `keep` is true.  `want` is the
   dtype of the result, or None; `name` is the operator's name in messages.  Returns 0, or -1 and sets an error. */
static int opdi_reduce_norm(opd_call *call, double p, opd_ints dims, bool keep, opd_value want, const char *name) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    opd_scalar_type given = want.tag == OPD_TAG_NONE ? OPD_DTYPE_NONE : (opd_scalar_type)want.u.i;
    const bool whole = opd_dtype_is_integral(opd_dtype(tensor), true) ||
        (given != OPD_DTYPE_NONE && opd_dtype_is_integral(given, true));
    if (!whole && opdi_norm_dtype_check(tensor, given, "linalg.vector_norm")) { return -1; }
    if (opdi_is_complex(tensor)) {                /* the norm of the absolute values */
        if (given != OPD_DTYPE_NONE) { given = (opd_scalar_type)opdi_real_dtype((int32_t)given); }
        if (!(tensor = opd_abs(tensor))) { return -1; }
    }
    const opd_scalar_type in = (opd_scalar_type)tensor->dtype;
    const opd_scalar_type dtype = given != OPD_DTYPE_NONE ? given : in;
    uint64_t mask;
    if (opd_dtype_is_integral(in, true)) {
        return strcmp(name, "norm") == 0
            ? opd_fail(OPD_ERROR_DTYPE, "norm(): input dtype should be either floating point or complex. Got %s "
                       "instead.", opd_dtype_name(in))
            : opd_fail(OPD_ERROR_DTYPE, "linalg.vector_norm: Expected a floating point or complex tensor as input. "
                       "Got %s", opd_dtype_name(in));
    }
    if (opd_dtype_is_integral(dtype, true)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: dtype should be floating point or complex. Got %s", name,
                        opd_dtype_name(dtype));
    }
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) != 0) { return -1; }
    if (tensor->numel == 0 && (p < 0 || p == OPDI_INF)) {
        int empty = 0;
        for (int dim = 0; dim < tensor->ndim; dim++) {
            if ((mask >> dim & 1) && opdi_sizes(tensor)[dim] == 0) { empty = 1; }
        }
        if (empty) {
            return opd_fail(OPD_ERROR_ARGUMENT, "linalg.vector_norm cannot compute the %g norm on an empty tensor "
                            "because the operation does not have an identity", p);
        }
    }
    return opdi_reduce_kernel(call, opdi_norm_fold(p), tensor, mask, keep, opdi_reduce_compute(tensor, dtype), dtype,
                              OPD_DTYPE_NONE, p);
}
static int opdi_linalg_vector_norm_kernel(opd_call *call) {
    return opdi_reduce_norm(call, opdi_norm_order(opd_arg_value(call, 1)), opd_arg_ints(call, 2), opd_arg_bool(call, 3),
                            opd_call_args(call)[4], "linalg.vector_norm");
}
static int opdi_norm_Scalar_kernel(opd_call *call) {
    return opdi_reduce_norm(call, opdi_norm_order(opd_arg_value(call, 1)), opd_ints_of(NULL, 0), false,
                            opd_value_none(), "norm");
}
static int opdi_norm_ScalarOpt_dtype_kernel(opd_call *call) {
    return opdi_reduce_norm(call, opdi_norm_order(opd_call_args(call)[1]), opd_ints_of(NULL, 0), false,
                            opd_call_args(call)[2], "norm");
}
static int opdi_norm_ScalarOpt_dim_kernel(opd_call *call) {
    return opdi_reduce_norm(call, opdi_norm_order(opd_call_args(call)[1]), opd_arg_ints(call, 2), opd_arg_bool(call, 3),
                            opd_value_none(), "norm");
}
static int opdi_norm_ScalarOpt_dim_dtype_kernel(opd_call *call) {
    return opdi_reduce_norm(call, opdi_norm_order(opd_call_args(call)[1]), opd_arg_ints(call, 2), opd_arg_bool(call, 3),
                            opd_call_args(call)[4], "norm");
}
static opd_tensor *opdi_pow_of(opd_tensor *tensor, double p) {
    return opd_pow_Tensor_Scalar(tensor, opd_value_double(p));
}
/* Returns the gradient of the p-norm `result` of input over dims (at::norm_backward).  grad and result have the reduced
   dims, with size 1. */
OPDI_INTERNAL opd_tensor *opdi_norm_gradient(opd_tensor *grad, opd_tensor *input, double p, opd_tensor *result,
                                             opd_ints dims) {
    if (p == 0) { return opd_zeros_like(input); }
    if (p == 1) { return opd_mul(opd_sgn(input), grad); }
    if (p == OPDI_INF || p == -OPDI_INF) {
        opd_tensor *first = opd_abs(input), *mask = opd_logical_or(opd_eq(first, result), opd_isnan(first));
        opd_tensor *const sign = opd_sgn(input);
        return opd_mul(sign, opd_mul(opdi_by_count(grad, opd_sum_dim(mask, dims, true)), mask));
    }
    if (p < 1) {
        opd_tensor *none = opd_eq_Scalar(input, opd_value_int(0));
        opd_tensor *sizes = opd_masked_fill_Scalar(opd_abs(input), none, opd_value_int(1));
        opd_tensor *const first_sign = opd_sgn(input), *sum = opd_mul(first_sign, opdi_pow_of(sizes, p - 1));
        opd_tensor *const product = opd_mul(sum, grad);
        return opd_mul(product, opdi_pow_of(result, 1 - p));
    }
    /* Where the norm is 0, the gradient is 0 times what it is for a norm of 1, so that its derivatives are finite. */
    opd_tensor *zero = opd_eq_Scalar(result, opd_value_int(0));
    grad = opdi_unless(grad, zero);
    result = opd_masked_fill_Scalar(result, zero, opd_value_int(1));
    if (p == 2) { return opd_mul(grad, opd_div(input, result)); }
    input = opd_masked_fill_Scalar(input, zero, opd_value_int(1));
    grad = opd_div(grad, opdi_pow_of(result, p - 1));
    if (p < 2) {
        opd_tensor *const other_sign = opd_sgn(input);
        return opd_mul(opd_mul(other_sign, opdi_pow_of(opd_abs(input), p - 1)), grad);
    }
    return opd_mul(opd_mul(input, opdi_pow_of(opd_abs(input), p - 2)), grad);
}
/* Computes the gradient of a norm.  If dim_arg >= 0, arguments dim_arg and dim_arg + 1 of the forward call are dims and
   keepdim; if it is -1, all dims were reduced.  Returns 0, or -1 and sets an error. */
static int opdi_norm_backward_of(opd_backward_call *bw, int dim_arg) {
    const opd_ints dims = dim_arg < 0 ? opd_ints_of(NULL, 0) : opdi_bw_dims(bw, dim_arg);
    const bool keep = dim_arg >= 0 && opdi_bw_bool(bw, dim_arg + 1);
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    if (input && grad && opdi_real_dtype(input->dtype) != grad->dtype) {
        input = opd_to_dtype(input, !opdi_is_complex(input) ? opd_dtype(grad) : grad->dtype == OPD_FLOAT64
                             ? OPD_COMPLEX128 : OPD_COMPLEX64);
    }
    if (!input) { return -1; }
    grad = opdi_unreduce(grad, dims, keep, input->ndim);
    result = opdi_unreduce(result, dims, keep, input->ndim);
    return opd_bw_return(bw, 0, opdi_norm_gradient(grad, input, opdi_norm_order(opd_bw_value(bw, 1)), result, dims));
}
static int opdi_norm_all_backward(opd_backward_call *bw) { return opdi_norm_backward_of(bw, -1); }
static int opdi_norm_dims_backward(opd_backward_call *bw) { return opdi_norm_backward_of(bw, 2); }
/* linalg__powsum: computes the sum of |self|^ord over dims, in float32 for 16-bit floats. */
static int opdi_powsum_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const double p = opdi_norm_order(opd_arg_value(call, 1));
    const opd_scalar_type given = opd_arg_dtype(call, 4, opd_dtype(self));
    if (!opd_ok()) { return -1; }
    if (opd_dtype_is_integral(given, true)) { return opdi_dtype_fail("powsum_cpu", given); }
    const opd_scalar_type dtype = opd_dtype_is_complex(given) ? (opd_scalar_type)opdi_real_dtype(given) : given;
    self = opd_to_dtype(opdi_is_complex(self) ? opd_abs(self) : self, dtype == OPD_FLOAT64 ? dtype : OPD_FLOAT32);
    opd_tensor *powers = p == 2 ? opd_square(self) : p == 1 ? opd_abs(self)
        : opd_pow_Tensor_Scalar(opd_abs(self), opd_value_double(p));
    opd_tensor *sum = opd_sum_dim(powers, opd_arg_ints(call, 2), opd_arg_bool(call, 3));
    return opd_return_tensor(call, opd_to_dtype(sum, dtype));
}
/* opd_linalg__powsum: the sum of |self|^ord over dims */
OPDI_OP(linalg__powsum) {
    op->schema = "linalg__powsum(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor";
    op->composite = opdi_powsum_kernel;
    op->cases = "[2,3]; [2,3], 3, (1), True; [2,3], 1.5";
}
/* opd_linalg_vector_norm: (the sum of |self|^ord over dims)^(1 / ord) */
OPDI_OP(linalg_vector_norm) {
    op->schema = "linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_linalg_vector_norm_kernel; op->backward = opdi_norm_dims_backward;
    op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->tags = OPDI_OPTAG_CONJUGATES; op->autocast = OPD_AUTOCAST_SET_NOT_CPU; op->flops = opdi_flops_elements;
    op->out = "linalg_vector_norm.out";
    op->cases = "[2,3]; [2,3], 3, (1); [2,3], 1.5, (0), True";
}

/* renorm: scales each slice of self along dim whose p-norm is above maxnorm down to p-norm maxnorm. */
static int opdi_renorm_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const double p = opdi_scalar_of(&call->args[1]), most = opdi_scalar_of(&call->args[3]);
    int64_t dims[OPD_MAX_DIMS];
    int count = 0;
    for (int i = 1; i < 4; i += 2) {
        if (call->args[i].tag == OPD_TAG_COMPLEX) {
            return opd_fail(OPD_ERROR_ARGUMENT, "renorm: %s must be real-valued", i == 1 ? "p" : "maxnorm");
        }
    }
    if (!(p > 0)) { return opd_fail(OPD_ERROR_ARGUMENT, "renorm: non-positive-norm not supported"); }
    if (!(most >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "renorm: expected maxnorm to be >= 0 but got %g", most);
    }
    if (self->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "renorm: input needs at least 2 dimensions, got %d dimensions", self->ndim);
    }
    const int dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    if (dim < 0) { return -1; }
    for (int i = 0; i < self->ndim; i++) { if (i != dim) { dims[count++] = i; } }
    const opd_scalar_type real = (opd_scalar_type)opdi_real_dtype(self->dtype);
    const bool half = real == OPD_FLOAT16 || real == OPD_BFLOAT16;
    opd_tensor *norm = opd_linalg_vector_norm_full(self, opd_value_double(p), opd_value_ints(dims, count), true,
                                                   half ? opd_value_int(OPD_FLOAT32) : OPD_NONE);
    opd_tensor *over = opd_gt_Scalar(norm, opd_value_double(most)), *one = opd_ones_like(norm);
    norm = opd_where_self(over, norm, one);      /* 1 where nothing is scaled; then the gradient is right for any
                                                    maxnorm */
    opd_tensor *factor = opd_mul_Scalar(opd_reciprocal(opd_add_Scalar(norm, opd_value_double(1e-7))),
                                        opd_value_double(isinf(most) ? 1 : most));
    factor = opd_where_self(over, factor, one);
    factor = factor && half ? opd_to_dtype(factor, real) : factor;
    return opd_return_tensor(call, opd_contiguous(opd_mul(self, factor)));
}
/* opd_renorm: self, in which each slice along dim whose p-norm is above maxnorm is scaled down to that norm */
OPDI_OP(renorm) {
    op->schema = "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor";
    op->composite = opdi_renorm_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->inplace = "renorm_"; op->out = "renorm.out"; op->tags = OPDI_OPTAG_OUT_EXACT | OPDI_OPTAG_OUT_PART;
    op->cases = "[3,4], 2, 0, 1; [3,2,2], 1.5, -1, 0.5; [2,3], 1, 1, 100";
}

static int opdi_norm_Scalar_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opd_norm_dim(all, opd_arg_value(call, 1), dims, false), 0);
}
/* opd_norm_Scalar(self, p): (the sum of |self|^p over all elements)^(1 / p) */
OPDI_OP(norm_Scalar) {
    op->schema = "norm.Scalar(Tensor self, Scalar p=2) -> Tensor";
    op->cpu = op->fake = opdi_norm_Scalar_kernel; op->backward = opdi_norm_all_backward; op->save = "self, result";
    op->vmap = opdi_norm_Scalar_batch; op->autocast = OPD_AUTOCAST_APPEND_NOT_CPU; op->flops = opdi_flops_elements;
    OPDI_NEEDS(norm_ScalarOpt_dtype);             /* autocast calls this operator */
    op->out = "norm.Scalar_out";
    op->cases = "[2,3]; [2,3], 3";
}

static int opdi_norm_ScalarOpt_dtype_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(
        call, opd_norm_dim_dtype(all, opd_arg_value(call, 1), dims, false, opd_arg_dtype(call, 2, OPD_DTYPE_NONE)), 0);
}
/* opd_norm_dtype: (the sum of |self|^p over all elements)^(1 / p), computed in dtype */
OPDI_OP(norm_ScalarOpt_dtype) {
    op->schema = "norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor";
    op->cpu = op->fake = opdi_norm_ScalarOpt_dtype_kernel; op->backward = opdi_norm_all_backward;
    op->save = "self, result";
    op->vmap = opdi_norm_ScalarOpt_dtype_batch; op->flops = opdi_flops_elements;
    op->out = "norm.ScalarOpt_dtype_out";
    op->cases = "[2,3], 2, dtype=7";
}
/* opd_norm_dim(self, p, dim, keepdim): (the sum of |self|^p over dims)^(1 / p) */
OPDI_OP(norm_ScalarOpt_dim) {
    op->schema = "norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_norm_ScalarOpt_dim_kernel; op->backward = opdi_norm_dims_backward;
    op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_APPEND_NOT_CPU; op->flops = opdi_flops_elements;
    OPDI_NEEDS(norm_ScalarOpt_dim_dtype);         /* autocast calls this operator */
    op->out = "norm.out";
    op->cases = "[2,3], 2, (1); [2,3], 3, (0), True";
}
/* opd_norm_dim_dtype: (the sum of |self|^p over dims)^(1 / p), computed in dtype */
OPDI_OP(norm_ScalarOpt_dim_dtype) {
    op->schema = "norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> "
        "Tensor";
    op->cpu = op->fake = opdi_norm_ScalarOpt_dim_dtype_kernel; op->backward = opdi_norm_dims_backward;
    op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "norm.dtype_out";
    op->cases = "[2,3], 2, (1), False, dtype=7";
}

static int opdi_frobenius_norm_dim_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_ints dims = opd_arg_ints(call, 1);
    const bool keep = opd_arg_bool(call, 2);
    if (opd_dtype_is_integral(opd_dtype(tensor), true)) {
        return opd_fail(OPD_ERROR_DTYPE, "norm(): input dtype should be either floating point or complex. Got %s "
                        "instead.", opd_dtype_name(opd_dtype(tensor)));
    }
    if (dims.n > 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected at most 2 dimensions, but got %lld dimensions instead.",
                        (long long)dims.n);
    }
    return opd_return_tensor(call, opd_norm_dim(tensor, opd_value_int(2), dims, keep));
}
/* opd_frobenius_norm(self, dim, keepdim): the square root of the sum of |self|^2 over dims */
OPDI_OP(frobenius_norm_dim) {
    op->schema = "frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor";
    op->composite = opdi_frobenius_norm_dim_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "frobenius_norm.out";
    op->cases = "[2,3], (0,1); [2,3], (1), True";
}

static int opdi_dist_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_norm_Scalar(opd_sub(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)),
                                                   opd_arg_value(call, 2)));
}
/* opd_dist: the p-norm of self - other */
OPDI_OP(dist) {
    op->schema = "dist(Tensor self, Tensor other, Scalar p=2) -> Tensor";
    op->composite = opdi_dist_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "dist.out";
    op->cases = "[2,3], [3]; [2,3], [2,3], 3";
}
OPDI_COLD_END
