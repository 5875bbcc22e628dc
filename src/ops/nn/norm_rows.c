#include "../ops.h"

#if !defined(OPD_NO_OPERATORS)

//----------------------------------------------------------------------------------------------------------------------
//  >>op:norm      normalisation
//----------------------------------------------------------------------------------------------------------------------

OPDI_LOOPS_BEGIN
OPDI_COLD_BEGIN

//== functions shared by the operators of layers, losses and indices ===================================================
//
//  These functions convert tensors to contiguous memory, make results that begin as a copy of self, and call operators
//  if a tensor is not NULL.

OPDI_INTERNAL opd_tensor *opdi_packed(opd_tensor *tensor) {
    return tensor ? opdi_dense_as(tensor, (opd_scalar_type)tensor->dtype) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_staging_f32(opd_tensor *out) {
    return opdi_staging(out, out->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32);
}

OPDI_INTERNAL int64_t opdi_span_of(const int64_t *sizes, int from, int to) {
    int64_t count = 1;
    for (; from < to; from++) { count = opdi_size_times(count, sizes[from]); }
    return count;
}

/* The functions below call an operator, or return NULL if the tensor is NULL. */
OPDI_INTERNAL opd_tensor *opdi_maybe_zeros(opd_tensor *like, opd_ints sizes) {
    return like ? opd_new_zeros(like, sizes) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_narrow(opd_tensor *tensor, int dim, int64_t start, int64_t length) {
    return tensor ? opd_slice(tensor, dim, opd_value_int(start), opd_value_int(start + length), 1) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_select(opd_tensor *tensor, int64_t dim, int64_t index) {
    return tensor ? opd_select(tensor, dim, index) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_reshape(opd_tensor *tensor, const int64_t *sizes, int64_t count) {
    return tensor ? opd_reshape(tensor, opd_ints_of(sizes, count)) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_expand(opd_tensor *tensor, const int64_t *sizes, int64_t count) {
    return tensor ? opd_expand(tensor, opd_ints_of(sizes, count)) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_unsqueeze(opd_tensor *tensor, int64_t dim) {
    return tensor ? opd_unsqueeze(tensor, dim) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_sum(opd_tensor *tensor) {
    return tensor ? opd_sum(tensor) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_mean(opd_tensor *tensor) {
    return tensor ? opd_mean(tensor) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_sum_dims(opd_tensor *tensor, const int64_t *dims, int64_t count, bool keep) {
    return tensor ? opd_sum_dim(tensor, opd_ints_of(dims, count), keep) : NULL;
}
OPDI_INTERNAL opd_tensor *opdi_maybe_mean_dims(opd_tensor *tensor, const int64_t *dims, int64_t count, bool keep) {
    return tensor ? opd_mean_dim(tensor, opd_ints_of(dims, count), keep) : NULL;
}

OPDI_COLD_END
OPDI_LOOPS_END

#endif
#if !defined(OPD_NO_OP_NORM)
OPDI_LOOPS_BEGIN

//== rows of numbers: sums that depend only on the row =================================================================

enum { OPDI_ROW_SUM, OPDI_ROW_DEVIATION, OPDI_ROW_DOT };      /* sums of v - c, (v - c)^2, v * (u - c) */
/* What row_become computes for each element of a row.  NORM: (x - c) * k.  AFFINE: (x - c) * k + d.  SCALED: ((x - c) *
   k + d) * y.  SHIFTED: ((x - c) * k + d) * y + z.  TIMES: x * y.  BACK: k * (y - d - (x - c) * e).  PARAMS adds y * (x
   - c) * k to the sum in `to`, and y to the sum in z. */
enum { OPDI_ROW_NORM, OPDI_ROW_AFFINE, OPDI_ROW_SCALED, OPDI_ROW_SHIFTED, OPDI_ROW_TIMES, OPDI_ROW_BACK,
       OPDI_ROW_PARAMS };
/* Is true if a row of `count` elements is long enough for the code for AVX2, and the CPU has AVX2. */
#if defined(OPDI_X86)
#define OPDI_ROW_WIDE(count) ((count) >= 16 && opdi_cpu_level() > 0)
#else
#define OPDI_ROW_WIDE(count) false
#endif
/* The storage class of row_lanes.  With clang, row_lanes is not inlined: if clang sees how the lanes are added up, it
   spills them to memory in the loop that fills them. */
#if defined(__clang__)
#define OPDI_ROW_LANES static OPDI_NOINLINE
#else
#define OPDI_ROW_LANES OPDI_ALWAYS
#endif
OPDI_INTERNAL void opdi_norm_forward_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_forward_f64(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_backward_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_backward_f64(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_layer_back_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_layer_back_f64(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_params_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_params_f64(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_batch_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_batch_f64(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_batch_eval_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_batch_eval_f64(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_batch_backward_f32(void *ctx, int64_t begin, int64_t end);
OPDI_INTERNAL void opdi_norm_batch_backward_f64(void *ctx, int64_t begin, int64_t end);
#include "../../typed/f32.h"
#include "norm_rows.typed.h"
#include "../../typed/f64.h"
#include "norm_rows.typed.h"
#include "../../typed/end.h"

OPDI_COLD_BEGIN
/* Returns the data of `tensor` as contiguous elements of `dtype`, or NULL if the tensor is NULL.  On failure, returns
   NULL and sets *bad to true. */
OPDI_INTERNAL const void *opdi_norm_in(opd_tensor *tensor, opd_scalar_type dtype, bool *bad) {
    if (!tensor) { return NULL; }
    tensor = opdi_dense_as(tensor, dtype);
    if (!tensor) {
        *bad = true;
        return NULL;
    }
    return tensor->data;
}
OPDI_INTERNAL opd_scalar_type opdi_norm_type(const opd_tensor *input) {
    return input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
}
/* Returns the dtype of the statistics: float if the weights are float and input is half precision, else the dtype of
   input. */
OPDI_INTERNAL opd_scalar_type opdi_norm_stat_type(const opd_tensor *input, const opd_tensor *weight) {
    return weight && weight->dtype == OPD_FLOAT32 && input->dtype != OPD_FLOAT64 ? OPD_FLOAT32
        : (opd_scalar_type)input->dtype;
}
OPDI_INTERNAL int opdi_norm_floating(const opd_tensor *input, const char *what) {
    return opd_dtype_is_floating((opd_scalar_type)input->dtype) ? 0
        : opdi_dtype_fail(what, input->dtype);
}
/* Checks that weight and bias have the dtype of input, or that they are float32 and input is half precision.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_norm_params_dtype(const opd_tensor *input, const opd_tensor *weight, const opd_tensor *bias) {
    const opd_tensor *params[2];
    params[0] = weight;
    params[1] = bias;
    for (int i = 0; i < 2; i++) {
        if (!params[i] || params[i]->dtype == input->dtype ||
            (params[i]->dtype == OPD_FLOAT32 && opd_dtype_size((opd_scalar_type)input->dtype) == 2)) {
            continue;
        }
        return opd_fail(OPD_ERROR_DTYPE, "expected scalar type %s but found %s",
                        opd_dtype_name((opd_scalar_type)input->dtype),
                        opd_dtype_name((opd_scalar_type)params[i]->dtype));
    }
    return 0;
}
OPDI_INTERNAL void opdi_norm_run(const opdi_norm *norm, opd_scalar_type dtype, int64_t units, int64_t cost,
                                 opdi_range_fn f32, opdi_range_fn f64) {
    opdi_parallel_for(units, OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX(cost, (int64_t)1)), dtype == OPD_FLOAT64 ? f64
                      : f32, (void *)(uintptr_t)norm);
}
static opd_tensor *opdi_norm_mean(const opdi_norm_second *second, opd_tensor *tensor) {
    return opdi_maybe_mean_dims(tensor, second->dims, second->ndims, true);
}
static opd_tensor *opdi_norm_j(const opdi_norm_second *second, opd_tensor *xhat, opd_tensor *value) {
    if (second->fixed) { return opd_mul(value, second->rstd); }
    opd_tensor *const difference = opd_sub(value, opdi_norm_mean(second, value));
    value = opd_sub(difference, opd_mul(xhat, opdi_norm_mean(second, opd_mul(value, xhat))));
    return opd_mul(value, second->rstd);
}
/* Computes the derivative of the norm's backward function, whose data are in *second.  Sets *dg, *dx and *dw to the
   gradients with respect to that function's arguments grad, input and weight, or to NULL if there is no such gradient.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_norm_double_backward(const opdi_norm_second *second, opd_tensor **dg, opd_tensor **dx,
                                            opd_tensor **dw) {
    opd_tensor *xhat = opd_mul(opd_sub(second->input, second->mean), second->rstd),
        *jg = second->GX ? opdi_norm_j(second, xhat, second->GX) : NULL;
    *dg = jg && second->weight ? opd_mul(jg, second->weight) : jg;
    if (second->GW) { *dg = opdi_plus(*dg, opd_mul(second->GW, xhat)); }
    if (second->GB) { *dg = opdi_plus(*dg, second->GB); }
    if (*dg) { *dg = opd_add(*dg, opd_zeros_like(second->input)); }
    *dw = jg ? opd_mul(second->grad, jg) : NULL;
    if (*dw && second->nsum) { *dw = opdi_maybe_sum_dims(*dw, second->sum, second->nsum, true); }
    *dx = second->GW ? opdi_norm_j(second, xhat, opd_mul(second->grad, second->GW)) : NULL;
    if (second->GX && !second->fixed) {
        opd_tensor *gy = second->weight ? opd_mul(second->grad, second->weight) : second->grad,
            *right = opdi_norm_mean(second, opd_mul(gy, xhat)),
            *third = opdi_norm_mean(second, opd_mul(second->GX, xhat));
        opd_tensor *const first_mean = opdi_norm_mean(second, opd_mul(second->GX, gy)),
            *const other_mean = opdi_norm_mean(second, second->GX),
            *keep = opd_sub(first_mean, opd_mul(other_mean, opdi_norm_mean(second, gy)));
        opd_tensor *const product = opd_mul(opd_square(second->rstd), xhat),
            *result = opd_mul(product, opd_sub(keep, opd_mul(right, third)));
        opd_tensor *const first_product = opd_mul(gy, third);
        result = opd_add(result,
            opdi_norm_j(second, xhat, opd_mul(second->rstd, opd_add(first_product, opd_mul(second->GX, right)))));
        *dx = *dx ? opd_sub(*dx, result) : opd_neg(result);
    }
    return opd_ok() ? 0 : -1;
}

//== batching rules of norms ===========================================================================================

/* Computes a norm over channels under vmap in one call, in which the channels of all examples are concatenated.
   `kinds` tells how each argument relates to channels, and `results` how each of the three results does.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_by_channel(opd_call *call, const opdi_channel_kind *kinds,
                                        const opdi_channel_kind *results) {
    opd_value args[OPD_MAX_ARGS], rets[3];
    const int nargs = call->op->nargs;
    const int64_t size = opd_batch_size();
    int dim;
    if (size == 0) { return opdi_batch_empty(call); }
    memcpy(args, call->args, (size_t)nargs * sizeof *args);
    for (int i = 0; i < nargs; i++) {
        if (kinds[i] == OPDI_CHANNEL_COUNT) { args[i] = opd_value_int(opdi_size_times(args[i].u.i, size)); }
        if (args[i].tag != OPD_TAG_TENSOR) { continue; }
        if (args[i].u.t->ndim < (kinds[i] == OPDI_CHANNEL_IMAGE ? 2 : 1)) { return opdi_batch_unfit(call); }
        args[i].u.t = opd_batch_arg(call, i, &dim);
        if (kinds[i] == OPDI_CHANNEL_IMAGE) { args[i].u.t = opdi_batch_channels(args[i].u.t, dim); }
        else { args[i].u.t = opdi_batch_merge(opd_batch_front(args[i].u.t, dim), 0); }
        if (!args[i].u.t) { return -1; }
    }
    if (opd_call_all(call->op, rets, args, nargs)) { return -1; }
    for (int i = 0; i < nargs; i++) {
        opd_tensor *tensor = kinds[i] == OPDI_CHANNEL_WRITTEN ? opd_batch_arg(call, i, &dim) : NULL, *now = args[i].u.t;
        if (!tensor || tensor->storage == now->storage) { continue; }
        now = opdi_batch_split(now, 0, now->numel / size);
        if (!opd_copy_(dim < 0 ? tensor : opd_batch_front(tensor, dim), dim < 0 ? opd_select(now, 0, 0) : now)) {
            return -1;
        }
    }
    for (int i = 0; i < 3; i++) {
        opd_tensor *result = rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
        const int at = results[i] == OPDI_CHANNEL_IMAGE;
        if (result ? opd_batch_return(call, opdi_batch_split(result, at, opdi_sizes(result)[at] / size), at)
            : opd_return_value(call, OPD_NONE)) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL bool opdi_batch_is(opd_call *call, int i) {
    int dim;
    (void)opd_batch_arg(call, i, &dim);
    return dim >= 0;
}
OPDI_COLD_END
OPDI_LOOPS_END
#endif
