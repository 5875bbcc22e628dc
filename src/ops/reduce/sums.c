#include "../ops.h"

//== sum, nansum, mean, prod ===========================================================================================

OPDI_COLD_BEGIN

static int opdi_reduce_sum(opd_call *call, const opdi_fold *fold, opd_ints dims, bool keep, int dtype_arg) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = opdi_reduce_dtype(call, dtype_arg, tensor);
    uint64_t mask;
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) != 0) { return -1; }
    /* The loops round elements to whole numbers, but for bool, each element that is not 0 counts.  They cannot read
       complex numbers for a real result. */
    const bool first = (dtype == OPD_BOOL && tensor->dtype != OPD_BOOL) ||
        (opdi_is_complex(tensor) && !opd_dtype_is_complex(dtype));
    if (first && !(tensor = opd_to_dtype(tensor, dtype))) { return -1; }
    return opdi_reduce_kernel(call, fold, tensor, mask, keep, opdi_reduce_compute(tensor, dtype), dtype, OPD_DTYPE_NONE,
                              0);
}
static int opdi_sum_kernel(opd_call *call) {
    return opdi_reduce_sum(call, &opdi_the_sum, opd_ints_of(NULL, 0), false, 1);
}
/* A faster way to sum rows of bytes, or NULL; see opdi_sum_bytes. */
OPDI_INTERNAL int (*opdi_on_byte_sums)(opd_call *call);

static int opdi_sum_dim_kernel(opd_call *call) {
    int (*const bytes)(opd_call *) = OPDI_ACQUIRE(&opdi_on_byte_sums);
    const int done = bytes ? bytes(call) : 0;
    if (done) { return done < 0 ? -1 : 0; }
    return opdi_reduce_sum(call, &opdi_the_sum, opd_arg_ints(call, 1), opd_arg_bool(call, 2), 3);
}
static int opdi_sum_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_bw_expand(bw, opd_bw_grad(bw, 0), -1));
}
static int opdi_sum_dim_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_bw_expand(bw, opd_bw_grad(bw, 0), 1));
}
static int opdi_sum_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opd_sum_dim_full(all, dims, false, opd_arg_value(call, 1)), 0);
}
/* opd_sum: the sum of all elements */
OPDI_OP(sum) {
    op->schema = "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_sum_kernel; op->backward = opdi_sum_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_sum_batch; op->autocast = OPD_AUTOCAST_SET_NOT_CPU; op->flops = opdi_flops_elements;
    op->out = "sum.out";
    op->cases = OPDI_CASES_ALL;
}
/* opd_sum_dim(self, dim, keepdim): the sum over dims */
OPDI_OP(sum_dim_IntList) {
    op->schema = "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_sum_dim_kernel; op->backward = opdi_sum_dim_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_SET_NOT_CPU; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "sum.IntList_out";
    op->cases = OPDI_CASES_DIMS;
}

OPDI_COLD_END
/* Copies `count` floats, with 0 in place of NaN. */
OPDI_ALWAYS void opdi_without_nan_body(float *to, const float *x, int64_t count) {
    int64_t i;
    OPDI_COLUMN_EACH(to[j] = x[j] == x[j] ? x[j] : 0)
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_without_nan_avx2(float *to, const float *x, int64_t count) {
    opdi_without_nan_body(to, x, count);
}
#endif
static void opdi_without_nan(float *to, const float *x, int64_t count) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) {
        opdi_without_nan_avx2(to, x, count);
        return;
    }
#endif
    opdi_without_nan_body(to, x, count);
}
static void opdi_fold_nansum_f32(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                                 const opdi_reduce *reduce) {
    float block[4 * OPDI_BLOCK];
    int64_t many;
    for (int64_t i = 0; i < count; i += many) {
        const opdi_folded before = *folded;
        many = OPDI_MIN(count - i, (int64_t)(4 * OPDI_BLOCK));
        opdi_fold_sum_f32(folded, (const float *)px + i, many, at + i, reduce);
        if (folded->f == folded->f) { continue; } /* none of the elements is NaN */
        *folded = before;
        opdi_without_nan(block, (const float *)px + i, many);
        opdi_fold_sum_f32(folded, block, many, at + i, reduce);
    }
}
OPDI_FOLD_SUM(opdi_fold_nansum_f64, double, x == x ? x : 0)
OPDI_COLD_BEGIN
static const opdi_fold opdi_the_nansum = {
    /* step */ {opdi_fold_nansum_f32, opdi_fold_nansum_f64, opdi_fold_sum_i64},
    /* column */ {NULL, NULL, NULL}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_sum, NULL, /* init */ {0, 0, 0, 0},
    /* out, what */ {OPDI_OUT_F_OR_I, OPDI_OUT_NONE}, "nansum_cpu"};
static int opdi_nansum_kernel(opd_call *call) {
    return opdi_reduce_sum(call, &opdi_the_nansum, opd_arg_ints(call, 1), opd_arg_bool(call, 2), 3);
}
static int opdi_nansum_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0,
                         opdi_unless(opdi_bw_expand(bw, opd_bw_grad(bw, 0), 1), opd_isnan(opd_bw_tensor(bw, 0))));
}
/* opd_nansum: the sum of the elements that are not NaN, of all or over dims */
OPDI_OP(nansum) {
    op->schema = "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_nansum_kernel; op->backward = opdi_nansum_backward; op->save = "self";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "nansum.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [2,3,2], (0,-1), True";
}

static void opdi_finish_mean(opdi_folded *folded, const opdi_reduce *reduce) {
    folded->f /= (double)reduce->count;
    if (reduce->it.compute == OPDI_C128) { folded->g /= (double)reduce->count; }
}
static const opdi_fold opdi_the_mean = {
    /* step */ {opdi_fold_sum_f32, opdi_fold_sum_f64, NULL, opdi_fold_sum_c128},
    /* column */ {opdi_f32_add, opdi_f64_add, NULL, NULL}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_sum, opdi_finish_mean, /* init */ {0, 0, 0, 0},
    /* out, what */ {OPDI_OUT_F, OPDI_OUT_NONE}, "mean_cpu"};
static int opdi_reduce_mean(opd_call *call, opd_ints dims, bool keep, int dtype_arg) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const bool given = !opd_arg_is_none(call, dtype_arg);
    const opd_scalar_type in = opd_arg_dtype(call, dtype_arg, (opd_scalar_type)tensor->dtype);
    const opd_scalar_type dtype = !given && call->targets ? (opd_scalar_type)call->targets[0]->dtype : in;
    uint64_t mask;
    if (opd_dtype_is_integral(in, true)) {
        return opd_fail(OPD_ERROR_DTYPE, "mean(): could not infer output dtype. %s dtype must be either a floating "
                        "point or complex dtype. Got: %s", given ? "Optional" : "Input", opd_dtype_name(in));
    }
    if (!opd_can_cast(in, dtype)) { return opdi_cast_fail(in, dtype); }
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) != 0) { return -1; }
    return opdi_reduce_kernel(call, &opdi_the_mean, tensor, mask, keep, opdi_reduce_compute(tensor, in), dtype,
                              OPD_DTYPE_NONE, 0);
}
static int opdi_mean_kernel(opd_call *call) { return opdi_reduce_mean(call, opd_ints_of(NULL, 0), false, 1); }
static int opdi_mean_dim_kernel(opd_call *call) {
    return opdi_reduce_mean(call, opd_arg_ints(call, 1), opd_arg_bool(call, 2), 3);
}
/* Returns the number of elements of argument 0 for each element of a result that was reduced over `dims`.  On failure,
   returns -1 and sets an error. */
static int64_t opdi_bw_count(opd_backward_call *bw, opd_ints dims) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    uint64_t mask;
    int64_t count = 1;
    if (opdi_reduce_mask(dims, (int)sizes.n, &mask) != 0) { return -1; }
    for (int64_t dim = 0; dim < sizes.n; dim++) {
        if (mask >> dim & 1) { count = opdi_size_times(count, sizes.data[dim]); }
    }
    return count;
}
static int opdi_mean_backward_of(opd_backward_call *bw, int dims) {
    const int64_t count = opdi_bw_count(bw, dims < 0 ? opd_ints_of(NULL, 0) : opdi_bw_dims(bw, dims));
    return opd_bw_return(bw, 0, opd_div_Scalar(opdi_bw_expand(bw, opd_bw_grad(bw, 0), dims), opd_value_int(count)));
}
static int opdi_mean_backward(opd_backward_call *bw) { return opdi_mean_backward_of(bw, -1); }
static int opdi_mean_dim_backward(opd_backward_call *bw) { return opdi_mean_backward_of(bw, 1); }
static int opdi_mean_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opd_mean_dim_full(all, dims, false, opd_arg_value(call, 1)), 0);
}
/* opd_mean: the mean of all elements */
OPDI_OP(mean) {
    op->schema = "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_mean_kernel; op->backward = opdi_mean_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_mean_batch; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3]; []";
}
/* opd_mean_dim(self, dim, keepdim): the mean over dims */
OPDI_OP(mean_dim) {
    op->schema = "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_mean_dim_kernel; op->backward = opdi_mean_dim_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->flops = opdi_flops_elements;
    op->out = "mean.out";
    op->cases = OPDI_CASES_DIMS;
}

OPDI_COLD_END
/* Defines a fold that multiplies the elements of x [count], in 32 products in parallel. */
#define OPDI_FOLD_PROD(name, type)                                                                          \
    OPDI_LOOP_TEXT void name##_body(OPDI_FOLD_ARGS) {                                                       \
        const type *x = (const type *)px; double a[32]; int64_t i = 0; int j; (void)at; (void)reduce;       \
        for (j = 0; j < 32; j++) { a[j] = 1; }                                                              \
        for (; i + 32 <= count; i += 32) { OPDI_UNROLL for (j = 0; j < 32; j++) { a[j] *= (double)x[i + j]; } } \
        for (; i < count; i++) { a[i & 31] *= (double)x[i]; }                                               \
        for (j = 0; j < 16; j++) { a[j] *= a[j + 16]; }                                                     \
        for (j = 0; j < 8; j++) { a[j] *= a[j + 8]; }                                                       \
        for (j = 1; j < 8; j++) { a[0] *= a[j]; }                                                           \
        folded->f *= a[0];                                                                                  \
    }                                                                                                       \
    OPDI_FOLD_WIDE(name)
OPDI_FOLD_PROD(opdi_fold_doubled_f32, float)
OPDI_FOLD_PROD(opdi_fold_prod_f64, double)
static void opdi_fold_prod_f32(OPDI_FOLD_ARGS) {
    const float *x = (const float *)px;
    const int64_t whole = opdi_prod_whole(x, count, &folded->f);
    if (whole < count) { opdi_fold_doubled_f32(folded, x + whole, count - whole, at, reduce); }
}
static void opdi_fold_prod_i64(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                               const opdi_reduce *reduce) {
    const int64_t *places = (const int64_t *)px;
    (void)at;
    (void)reduce;
    for (int64_t i = 0; i < count; i++) { folded->i = opdi_wrap_mul(folded->i, places[i]); }
}
static void opdi_prod_times(opdi_folded *folded, double re, double im) {
    const opdi_complex product = opdi_complex_mul(opdi_complex_make(folded->f, folded->g), opdi_complex_make(re, im));
    folded->f = product.re;
    folded->g = product.im;
}
static void opdi_fold_prod_c128(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                                const opdi_reduce *reduce) {
    const opdi_complex *from = (const opdi_complex *)x;
    (void)at;
    (void)reduce;
    for (int64_t i = 0; i < count; i++) { opdi_prod_times(folded, from[i].re, from[i].im); }
}
static void opdi_join_prod(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    if (reduce->it.compute == OPDI_C128) {
        opdi_prod_times(folded, with->f, with->g);
        return;
    }
    folded->f *= with->f;
    folded->i = opdi_wrap_mul(folded->i, with->i);
}
OPDI_COLD_BEGIN
static const opdi_fold opdi_the_prod = {
    /* step */ {opdi_fold_prod_f32, opdi_fold_prod_f64, opdi_fold_prod_i64, opdi_fold_prod_c128},
    /* column */ {NULL, NULL, NULL}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_prod, NULL, /* init */ {1, 0, 1, 0},
    /* out, what */ {OPDI_OUT_F_OR_I, OPDI_OUT_NONE}, "prod_cpu"};
static int opdi_prod_kernel(opd_call *call) {
    return opdi_reduce_sum(call, &opdi_the_prod, opd_ints_of(NULL, 0), false, 1);
}
static int opdi_prod_dim_kernel(opd_call *call) {
    const int64_t dim = opd_arg_int(call, 1);
    return opdi_reduce_sum(call, &opdi_the_prod, opd_ints_of(&dim, 1), opd_arg_bool(call, 2), 3);
}

OPDI_INTERNAL opd_tensor *opdi_flip_dim(opd_tensor *tensor, int64_t dim) {
    return tensor ? opd_flip(tensor, opd_ints_of(&dim, 1)) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_cat_dim(opd_tensor *first, opd_tensor *second, int64_t dim) {
    opd_tensor *list[2] = {first, second};
    return first && second ? opd_cat(opd_tensors_of(list, 2), dim) : NULL;
}
/* Returns zeros of these sizes into which src is written (if `add` is true, added) at the positions in `index` along
   dim.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_scatter_dim(opd_tensor *src, opd_ints sizes, int64_t dim, opd_tensor *index, bool add) {
    opd_tensor *const zeros = src && index ? opd_new_zeros(src, sizes) : NULL;
    return !zeros ? NULL : add ? opd_scatter_add(zeros, dim, index, src) : opd_scatter(zeros, dim, index, src);
}
OPDI_INTERNAL opd_tensor *opdi_range_dim(opd_tensor *tensor, int64_t dim, int64_t begin, int64_t end) {
    return opd_slice(tensor, dim, opd_value_int(begin), opd_value_int(end), 1);
}
/* Returns grad times, for each element, the product of all other elements along dim: the product of the elements before
   it, times the product of the elements after it. */
static opd_tensor *opdi_prod_others(opd_tensor *grad, opd_tensor *input, int64_t dim) {
    const int64_t count = input ? opd_size(input, (int)dim) : 0;
    if (count <= 1) {
        return count == 1 ? opd_expand(grad, opd_ints_of(opd_sizes(input), opd_ndim(input))) : input
            ? opd_zeros_like(input) : NULL;
    }
    opd_tensor *ones = opd_ones_like(opdi_range_dim(input, dim, 0, 1));
    opd_tensor *left = opd_cumprod(opdi_cat_dim(ones, opdi_range_dim(input, dim, 0, count - 1), dim), dim);
    opd_tensor *right = opd_cumprod(opdi_cat_dim(ones, opdi_flip_dim(opdi_range_dim(input, dim, 1, count), dim), dim),
                                    dim);
    return opd_mul(grad, opd_mul(left, opdi_flip_dim(right, dim)));
}
OPDI_INTERNAL opd_tensor *opdi_dense_as(opd_tensor *tensor, opd_scalar_type dtype);
/* Returns true if a division by elements of input might divide by zero: if input has a zero, or if its elements cannot
   be read.  Also returns true while calls are recorded, because the recorded calls must be right for any elements. */
OPDI_INTERNAL bool opdi_may_have_zero(opd_tensor *input) {
    bool zero = false;
    while (input->flags & OPDI_BATCHED) { input = opdi_batched_of(input)->value; }
    int64_t count = input->numel;
    if (input->backend != OPD_CPU || !input->data || opdi_self()->innermost.tracer) { return true; }
    const opd_tensor *third = opdi_dense_as(input, (opd_scalar_type)input->dtype);
    if (!third || third->flags & OPDI_STORED) { return true; }
    if (third->dtype == OPD_FLOAT32) {
        for (int64_t i = 0; i < count; i++) { zero |= ((const float *)(const void *)third->data)[i] == 0; }
        return zero;
    }
    if (third->dtype == OPD_FLOAT64) {
        for (int64_t i = 0; i < count; i++) { zero |= ((const double *)(const void *)third->data)[i] == 0; }
        return zero;
    }
    if (opdi_is_complex(third)) {
        const bool twice = third->dtype == OPD_COMPLEX128;
        for (int64_t i = 0; i < count; i++) {
            zero |= twice ? opdi_complex_zero(((const opdi_complex *)(const void *)third->data)[i])
                : ((const float *)(const void *)third->data)[2 * i] == 0 &&
                ((const float *)(const void *)third->data)[2 * i + 1] == 0;
        }
        return zero;
    }
    if (opd_dtype_size((opd_scalar_type)third->dtype) != 2) { return true; }
    for (int64_t i = 0; i < count; i++) { zero |= (((const uint16_t *)(const void *)third->data)[i] & 0x7fff) == 0; }
    return zero;
}
static opd_tensor *opdi_prod_gradient(opd_tensor *grad, opd_tensor *input, opd_tensor *result, int64_t dim) {
    return opdi_may_have_zero(input) ? opdi_prod_others(grad, input, dim) : opd_mul(grad, opd_div(result, input));
}
static int opdi_prod_backward(opd_backward_call *bw) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    const int64_t flat = -1;
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    if (sizes.n == 0) { return opd_bw_return(bw, 0, grad); }
    if (!opdi_may_have_zero(input)) { return opd_bw_return(bw, 0, opd_mul(grad, opd_div(result, input))); }
    return opd_bw_return(bw, 0, opd_reshape(opdi_prod_others(grad, opd_reshape(input, opd_ints_of(&flat, 1)), 0),
                                            sizes));
}
static int opdi_prod_dim_backward(opd_backward_call *bw) {
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    const opd_ints sizes = opd_bw_sizes(bw, 0), dims = opd_ints_of(&dim, 1);
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0), *result = opd_bw_result(bw, 0);
    const bool keep = opdi_bw_bool(bw, 2);
    if (sizes.n == 0) { return opd_bw_return(bw, 0, grad); }
    grad = opdi_unreduce(grad, dims, keep, (int)sizes.n);
    result = opdi_unreduce(result, dims, keep, (int)sizes.n);
    return opd_bw_return(bw, 0, opdi_prod_gradient(grad, input, result, dim));
}
static int opdi_prod_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call, opd_prod_dim_full(opdi_batch_flat(all), 1, false, opd_arg_value(call, 1)), 0);
}
/* opd_prod: the product of all elements */
OPDI_OP(prod) {
    op->schema = "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_prod_kernel; op->backward = opdi_prod_backward; op->save = "self, result";
    op->vmap = opdi_prod_batch; op->autocast = OPD_AUTOCAST_SET_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "prod.out";
    op->cases = OPDI_CASES_ALL;
}
/* opd_prod_dim(self, dim, keepdim): the product along dim */
OPDI_OP(prod_dim_int) {
    op->schema = "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
    op->cpu = op->fake = opdi_prod_dim_kernel; op->backward = opdi_prod_dim_backward; op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_SET_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "prod.int_out";
    op->cases = "[2,3], 1; [2,3,2], -2, True; [], 0";
}

//== var, std ==========================================================================================================
OPDI_COLD_END

/* The state of a variance.  f: the mean minus a shift; g: the sum of squared deviations; n: the count; i: the bits of
   the shift.

   Each piece takes two passes, and pieces are joined by the method of Chan, Golub and LeVeque.  For float64, the shift
   is the first element, so that the numbers that are summed are about as small as the deviations.  float32 elements
   need no shift, because they are summed in double.  opdi_var_shift returns the shift, opdi_var_begin sets it. */
OPDI_INTERNAL double opdi_var_shift(const opdi_folded *folded) {
    double shift;
    memcpy(&shift, &folded->i, sizeof shift);
    return shift;
}
OPDI_INTERNAL void opdi_var_begin(opdi_folded *folded, double first) {
    if (folded->n == 0 && fabs(first) < 1e300) { memcpy(&folded->i, &first, sizeof first); }
}
OPDI_INTERNAL void opdi_join_var(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    const double n = (double)(folded->n + with->n);
    const double delta = with->f - folded->f + (opdi_var_shift(with) - opdi_var_shift(folded));
    (void)reduce;
    if (with->n == 0) { return; }
    if (folded->n == 0) {
        *folded = *with;
        return;
    }
    folded->f += delta * ((double)with->n / n);
    folded->g += with->g + delta * delta * ((double)folded->n * (double)with->n / n);
    folded->n += with->n;
}
OPDI_INTERNAL opdi_side_fn opdi_side_var_f32, opdi_side_var_f64;
static void opdi_fold_var_f32(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                              const opdi_reduce *reduce);
static void opdi_fold_var_f64(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                              const opdi_reduce *reduce);
#include "../../typed/f32.h"
#include "variances.typed.h"
#include "../../typed/f64.h"
#include "variances.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
static void opdi_finish_var(opdi_folded *folded, const opdi_reduce *reduce) {
    const double n = (double)folded->n - reduce->number;
    folded->f = folded->n == 0 ? (double)NAN : folded->f + opdi_var_shift(folded);
    folded->g = folded->g / (n > 0 ? n : 0);
}
static void opdi_finish_std(opdi_folded *folded, const opdi_reduce *reduce) {
    opdi_finish_var(folded, reduce);
    folded->g = sqrt(folded->g);
}
#define OPDI_VAR_PARTS /* step */ {opdi_fold_var_f32, opdi_fold_var_f64, NULL}, /* column */ {NULL, NULL, NULL}, \
    /* side */ {opdi_side_var_f32, opdi_side_var_f64}, /* join */ opdi_join_var
static const opdi_fold opdi_the_var[4] = {
    {OPDI_VAR_PARTS, opdi_finish_var, /* init */ {0, 0, 0, 0}, {OPDI_OUT_G, OPDI_OUT_NONE}, "std_cpu"},
    {OPDI_VAR_PARTS, opdi_finish_std, /* init */ {0, 0, 0, 0}, {OPDI_OUT_G, OPDI_OUT_NONE}, "std_cpu"},
    {OPDI_VAR_PARTS, opdi_finish_var, /* init */ {0, 0, 0, 0}, {OPDI_OUT_G, OPDI_OUT_F}, "std_cpu"},
    {OPDI_VAR_PARTS, opdi_finish_std, /* init */ {0, 0, 0, 0}, {OPDI_OUT_G, OPDI_OUT_F}, "std_cpu"}};
static double opdi_correction(opd_value value) { return value.tag == OPD_TAG_NONE ? 1.0 : opdi_number_f64(value); }
/* Sets result i of the call to a copy of tensor.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_return_result(opd_call *call, int i, opd_tensor *tensor) {
    opd_tensor *out = tensor ? opd_result(call, i, opd_sizes(tensor), opd_ndim(tensor), opd_dtype(tensor)) : NULL;
    return !out ? -1 : out->data ? opdi_copy_into(out, tensor) : 0;
}
/* Does the work of opdi_reduce_var for complex numbers: adds the variances of the real and imaginary parts.  Returns 0,
   or -1 and sets an error. */
static int opdi_complex_var(opd_call *call, opd_tensor *tensor, int which) {
    static opd_op *op;
    opd_tensor *parts = opd_view_as_real(tensor), *var = NULL;
    opd_value args[4];
    for (int i = 1; i < 4; i++) { args[i] = opd_call_args(call)[i]; }
    for (int part = 0; part < 2 && parts; part++) {
        args[0] = opd_value_tensor(opd_select(parts, -1, part));
        opd_tensor *one = opd_call_op(OPD_OP(&op, OPDI_NAME(var_correction, "aten::var.correction")), args, 4);
        var = part ? opd_add(var, one) : one;
    }
    if (opdi_return_result(call, 0, which & 1 ? opd_sqrt(var) : var)) { return -1; }
    return which < 2 ? 0
        : opdi_return_result(call, 1, opd_mean_dim(tensor, opd_arg_ints(call, 1), opd_arg_bool(call, 3)));
}
/* Computes var (`which` is 0), std (1), var_mean (2) or std_mean (3).  Returns 0, or -1 and sets an error. */
static int opdi_reduce_var(opd_call *call, int which) {
    static const char *const names[4] = {"var", "std", "var_mean", "std_mean"};
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    uint64_t mask;
    if (opd_dtype_is_integral(dtype, true)) {
        return which < 2 ? opd_fail(OPD_ERROR_DTYPE, "std and var only support floating point and complex dtypes")
                         : opd_fail(OPD_ERROR_DTYPE, "%s only support floating point and complex dtypes", names[which]);
    }
    if (opdi_is_complex(tensor)) { return opdi_complex_var(call, tensor, which); }
    if (opdi_reduce_mask(opd_arg_ints(call, 1), tensor->ndim, &mask) != 0) { return -1; }
    return opdi_reduce_kernel(call, &opdi_the_var[which], tensor, mask, opd_arg_bool(call, 3), dtype, dtype, dtype,
                              opdi_correction(opd_arg_value(call, 2)));
}
static int opdi_var_correction_kernel(opd_call *call) { return opdi_reduce_var(call, 0); }
static int opdi_std_correction_kernel(opd_call *call) { return opdi_reduce_var(call, 1); }
static int opdi_var_mean_correction_kernel(opd_call *call) { return opdi_reduce_var(call, 2); }
static int opdi_std_mean_correction_kernel(opd_call *call) { return opdi_reduce_var(call, 3); }
/* Returns tensor minus its mean over dims.  The mean is subtracted twice, because the first mean is rounded, and its
   error may be as large as the deviations.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_centred(opd_tensor *tensor, opd_ints dims) {
    tensor = opd_sub(tensor, opd_mean_dim(tensor, dims, true));
    return opd_sub(tensor, opd_mean_dim(tensor, dims, true));
}
/* Computes the gradient of var: 2 / (count - correction) * grad * (input - mean(input)).  For std (if `root` is true),
   grad is first divided by 2 * std, or set to 0 where std is 0.  If with_mean is true, adds the gradient of the mean.
   Returns 0, or -1 and sets an error. */
static int opdi_var_backward_of(opd_backward_call *bw, bool root, bool with_mean) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *gm = with_mean ? opd_bw_grad(bw, 1) : NULL,
        *input = opd_bw_tensor(bw, 0), *delta = NULL;
    const opd_ints dims = opdi_bw_dims(bw, 1);
    const int64_t count = opdi_bw_count(bw, dims);
    if (grad && root) {
        opd_tensor *std = opd_bw_result(bw, 0);
        grad = opdi_div_unless(grad, opdi_muls(std, 2), opd_eq_Scalar(std, opd_value_int(0)));
    }
    if (grad) {
        const double dof = (double)count - opdi_correction(opd_bw_value(bw, 2));
        grad = opdi_unreduce(grad, dims, opdi_bw_bool(bw, 3), input->ndim);
        opd_tensor *const scaled = opdi_muls(grad, 2.0 / dof);
        delta = opd_mul(scaled, opdi_centred(input, dims));
        if (!delta) { return -1; }
    }
    if (gm) {
        gm = opdi_unreduce(gm, dims, opdi_bw_bool(bw, 3), input->ndim);
        gm = opd_div_Scalar(opd_expand(gm, opd_bw_sizes(bw, 0)), opd_value_int(count));
        delta = delta ? opd_add(delta, gm) : gm;
        if (!delta) { return -1; }
    }
    return delta ? opd_bw_return(bw, 0, delta) : 0;
}
static int opdi_var_correction_backward(opd_backward_call *bw) { return opdi_var_backward_of(bw, false, false); }
static int opdi_std_correction_backward(opd_backward_call *bw) { return opdi_var_backward_of(bw, true, false); }
static int opdi_var_mean_correction_backward(opd_backward_call *bw) { return opdi_var_backward_of(bw, false, true); }
static int opdi_std_mean_correction_backward(opd_backward_call *bw) { return opdi_var_backward_of(bw, true, true); }
#define OPDI_CASES_VAR "[2,3], (1); [2,3,2], (0,-1), correction=0, keepdim=True; [4], None"
/* opd_var_correction(self, dim, correction, keepdim): the variance: the sum of squared deviations / (n - correction);
   the default correction is 1 */
OPDI_OP(var_correction) {
    op->schema = "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
        "Tensor";
    op->cpu = op->fake = opdi_var_correction_kernel; op->backward = opdi_var_correction_backward; op->save = "self";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->tags = OPDI_OPTAG_CONJUGATES | OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->flops = opdi_flops_elements;
    op->out = "var.correction_out";
    op->cases = OPDI_CASES_VAR;
}
/* opd_std_correction(self, dim, correction, keepdim): the standard deviation: the square root of var */
OPDI_OP(std_correction) {
    op->schema = "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "
        "Tensor";
    op->cpu = op->fake = opdi_std_correction_kernel; op->backward = opdi_std_correction_backward;
    op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->flops = opdi_flops_elements;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS;
    op->out = "std.correction_out";
    op->cases = OPDI_CASES_VAR;
}
/* opd_var_mean_correction(self, dim, correction, keepdim): the variance and the mean */
OPDI_OP(var_mean_correction) {
    op->schema = "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
        "-> (Tensor, Tensor)";
    op->cpu = op->fake = opdi_var_mean_correction_kernel; op->backward = opdi_var_mean_correction_backward;
    op->save = "self";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->tags = OPDI_OPTAG_CONJUGATES; op->flops = opdi_flops_elements;
    op->out = "var_mean.correction_out(out0, out1)";
    op->cases = OPDI_CASES_VAR;
}
/* opd_std_mean_correction(self, dim, correction, keepdim): the standard deviation and the mean */
OPDI_OP(std_mean_correction) {
    op->schema = "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
        "-> (Tensor, Tensor)";
    op->cpu = op->fake = opdi_std_mean_correction_kernel; op->backward = opdi_std_mean_correction_backward;
    op->save = "self, result0";
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->tags = OPDI_OPTAG_CONJUGATES; op->flops = opdi_flops_elements;
    op->out = "std_mean.correction_out(out0, out1)";
    op->cases = OPDI_CASES_VAR;
}

/* Runs an overload that has `unbiased` instead of a correction, by calling the operator `name` with correction 1 (if
   unbiased is true) or 0.  If `dims` is true, the overload has the arguments dim and keepdim.  Returns 0, or -1 and
   sets an error. */
static int opdi_var_composite(opd_call *call, opd_op **handle, const char *name, bool dims) {
    opd_value values[4], rets[2];
    values[0] = opd_value_tensor(opd_arg_tensor(call, 0));
    values[1] = dims ? opd_call_args(call)[1] : opd_value_none();
    values[2] = opd_value_int(opd_arg_bool(call, dims ? 2 : 1) ? 1 : 0);
    values[3] = opd_value_bool(dims && opd_arg_bool(call, 3));
    if (!OPD_OP(handle, name) || opd_call_all(*handle, rets, values, 4) != 0) { return -1; }
    int count = opd_schema_nreturns(opd_op_schema(*handle));
    for (int i = 0; i < count; i++) { if (opd_return_value(call, rets[i]) != 0) { return -1; } }
    return 0;
}
static int opdi_var_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(var_correction, "aten::var.correction"), false);
}
static int opdi_var_dim_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(var_correction, "aten::var.correction"), true);
}
/* opd_var: the variance of all elements: the sum of squared deviations / (n - 1), or / n if unbiased is false */
OPDI_OP(var) {
    op->schema = "var(Tensor self, bool unbiased=True) -> Tensor";
    op->composite = opdi_var_kernel;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3]; [2,3], False";
}
/* opd_var_dim(self, dim, unbiased, keepdim): the variance over dims: the sum of squared deviations / (n - 1), or / n if
   unbiased is false */
OPDI_OP(var_dim) {
    op->schema = "var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor";
    op->composite = opdi_var_dim_kernel;
    op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->flops = opdi_flops_elements;
    op->out = "var.out";
    op->cases = "[2,3], (1); [2,3], (0), False, True";
}

static int opdi_std_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(std_correction, "aten::std.correction"), false);
}
static int opdi_std_dim_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(std_correction, "aten::std.correction"), true);
}
/* opd_std: the standard deviation of all elements: the square root of var */
OPDI_OP(std) {
    op->schema = "std(Tensor self, bool unbiased=True) -> Tensor";
    op->composite = opdi_std_kernel;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3]; [2,3], False";
}
/* opd_std_dim(self, dim, unbiased, keepdim): the standard deviation over dims: the square root of var */
OPDI_OP(std_dim) {
    op->schema = "std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor";
    op->composite = opdi_std_dim_kernel;
    op->flops = opdi_flops_elements;
    op->out = "std.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3], (1); [2,3], (0), False, True";
}

static int opdi_var_mean_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(var_mean_correction, "aten::var_mean.correction"), false);
}
static int opdi_var_mean_dim_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(var_mean_correction, "aten::var_mean.correction"), true);
}
/* opd_var_mean: the variance and the mean of all elements */
OPDI_OP(var_mean) {
    op->schema = "var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)";
    op->composite = opdi_var_mean_kernel;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3]; [2,3], False";
}
/* opd_var_mean_dim: the variance and the mean over dims */
OPDI_OP(var_mean_dim) {
    op->schema = "var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)";
    op->composite = opdi_var_mean_dim_kernel;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3], (1); [2,3], (0), False, True";
}

static int opdi_std_mean_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(std_mean_correction, "aten::std_mean.correction"), false);
}
static int opdi_std_mean_dim_kernel(opd_call *call) {
    static opd_op *op;
    return opdi_var_composite(call, &op, OPDI_NAME(std_mean_correction, "aten::std_mean.correction"), true);
}
/* opd_std_mean: the standard deviation and the mean of all elements */
OPDI_OP(std_mean) {
    op->schema = "std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)";
    op->composite = opdi_std_mean_kernel;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3]; [2,3], False";
}
/* opd_std_mean_dim: the standard deviation and the mean over dims */
OPDI_OP(std_mean_dim) {
    op->schema = "std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)";
    op->composite = opdi_std_mean_dim_kernel;
    op->flops = opdi_flops_elements;
    op->cases = "[2,3], (1); [2,3], (0), False, True";
}
OPDI_COLD_END
