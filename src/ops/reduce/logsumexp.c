#include "../ops.h"

//== logsumexp =========================================================================================================

/* The next two functions compute block = exp(block) for `count` elements. */
static inline void opdi_exps_f32(float *block, int64_t count) { opdi_vexp(count, block, block); }
static inline void opdi_exps_f64(double *block, int64_t count) { opdi_vexp64(count, block, block); }
/* The parameters of a side function.  It folds `count` rows, which lie side by side and have `depth` elements each,
   into foldeds. */
#define OPDI_SIDE_ARGS opdi_folded *foldeds, const void *px, int64_t count, int64_t depth
/* Defines the side function `name`, whose code is name_body.  On x86, also compiles it for AVX2, and uses this version
   on CPUs that have AVX2. */
#if defined(OPDI_X86)
#define OPDI_SIDE_WIDE(name) \
    OPDI_AVX2 static void OPDI_TYPED(name##_avx2)(OPDI_SIDE_ARGS) { \
        OPDI_TYPED(name##_body)(foldeds, px, count, depth); } \
    OPDI_INTERNAL void OPDI_TYPED(name)(OPDI_SIDE_ARGS) { \
        if (opdi_cpu_level() > 0) { OPDI_TYPED(name##_avx2)(foldeds, px, count, depth); } \
        else { OPDI_TYPED(name##_body)(foldeds, px, count, depth); } }
#else
#define OPDI_SIDE_WIDE(name) \
    OPDI_INTERNAL void OPDI_TYPED(name)(OPDI_SIDE_ARGS) { OPDI_TYPED(name##_body)(foldeds, px, count, depth); }
#endif
static opdi_side_fn opdi_side_lse_f32, opdi_side_lse_f64;
static void opdi_fold_lse_f32(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                              const opdi_reduce *reduce);
static void opdi_fold_lse_f64(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                              const opdi_reduce *reduce);
#include "../../typed/f32.h"
#include "logsumexp_rows.typed.h"
#include "../../typed/f64.h"
#include "logsumexp_rows.typed.h"
#include "../../typed/end.h"
static void opdi_join_lse(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    (void)reduce;
    if (with->f > folded->f) {
        folded->g = (folded->f > -OPDI_INF ? folded->g * opdi_exp_f64(folded->f - with->f) : folded->g) + with->g;
        folded->f = with->f;
    }
    else { folded->g += with->f > -OPDI_INF ? with->g * opdi_exp_f64(with->f - folded->f) : with->g; }
}
static void opdi_finish_lse(opdi_folded *folded, const opdi_reduce *reduce) {
    (void)reduce;
    folded->f = opdi_log_f64(folded->g) + (folded->f > -OPDI_INF ? folded->f : 0);
}
OPDI_COLD_BEGIN
static const opdi_fold opdi_the_lse = {
    /* step */ {opdi_fold_lse_f32, opdi_fold_lse_f64, NULL},
    /* column */ {NULL, NULL, NULL}, /* side */ {opdi_side_lse_f32, opdi_side_lse_f64},
    /* join, finish */ opdi_join_lse, opdi_finish_lse, /* init */ {OPDI_MINUS_INF, 0, 0, 0},
    /* out, what */ {OPDI_OUT_F, OPDI_OUT_NONE}, "logsumexp"};
static int opdi_logsumexp_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = opd_dtype_is_integral((opd_scalar_type)tensor->dtype, true) ? OPD_FLOAT32
        : (opd_scalar_type)tensor->dtype;
    uint64_t mask;
    if (opdi_reduce_mask(opd_arg_ints(call, 1), tensor->ndim, &mask) != 0) { return -1; }
    if (opdi_is_complex(tensor)) {
        const opd_ints dims = opd_arg_ints(call, 1);
        if (tensor->numel == 0) {
            return opdi_return_result(call, 0, opd_log(opd_sum_dim(tensor, dims, opd_arg_bool(call, 2))));
        }
        opd_tensor *top = opd_amax(opd_real(tensor), dims, true);
        top = opdi_unless(top, opd_isinf(top));
        opd_tensor *sum = opd_sum_dim(opd_exp(opd_sub(tensor, top)), dims, opd_arg_bool(call, 2));
        if (!opd_arg_bool(call, 2) && sum) { top = opd_reshape(top, opd_ints_of(opd_sizes(sum), opd_ndim(sum))); }
        return opdi_return_result(call, 0, opd_add(opd_log(sum), top));
    }
    return opdi_reduce_kernel(call, &opdi_the_lse, tensor, mask, opd_arg_bool(call, 2), dtype, dtype, OPD_DTYPE_NONE,
                              0);
}
static int opdi_logsumexp_backward(opd_backward_call *bw) {
    const opd_ints dims = opdi_bw_dims(bw, 1);
    opd_tensor *input = opd_bw_tensor(bw, 0);
    opd_tensor *grad = opdi_unreduce(opd_bw_grad(bw, 0), dims, opdi_bw_bool(bw, 2), input->ndim);
    opd_tensor *result = opdi_unreduce(opd_bw_result(bw, 0), dims, opdi_bw_bool(bw, 2), input->ndim);
    return opd_bw_return(bw, 0, opd_mul(grad, opd_exp(opd_sub(input, result))));
}
/* opd_logsumexp(self, dim, keepdim): log(the sum of e^self over dims) */
OPDI_OP(logsumexp) {
    op->schema = "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor";
    op->cpu = op->fake = opdi_logsumexp_kernel; op->backward = opdi_logsumexp_backward; op->save = "self, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU; op->flops = opdi_flops_elements;
    op->out = "logsumexp.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3], (1); [2,3,2], (0,-1), True";
}

static int opdi_special_logsumexp_kernel(opd_call *call) {
    return opd_return_tensor(call,
                             opd_logsumexp(opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_bool(call, 2)));
}
/* opd_special_logsumexp(self, dim, keepdim): the same as logsumexp */
OPDI_OP(special_logsumexp) {
    op->schema = "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor";
    op->composite = opdi_special_logsumexp_kernel;
    op->out = "special_logsumexp.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3], (1)";
}

/* sum_to_size: sums self over the dims in which `size` has size 1 or no dim (at::sum_to). */
static int opdi_sum_to_size_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_ints size = opd_arg_ints(call, 1);
    int64_t dims[OPD_MAX_DIMS], count = 0, lead = tensor->ndim - size.n;
    char first[256], second[256];
    bool fits = lead >= 0;
    if (size.n == 0) { return opd_return_tensor(call, opd_sum(tensor)); }
    for (int64_t i = 0; i < tensor->ndim && fits; i++) {
        const int64_t want = i < lead ? 1 : size.data[i - lead], have = opdi_sizes(tensor)[i];
        if (i < lead || (want == 1 && have != 1)) { dims[count++] = i; }
        else if (want != have) { fits = false; }
    }
    if (!fits) {
        return opd_fail(OPD_ERROR_SHAPE, "size {%s} is not expandable to size {%s}.",
                        opdi_sizes_text(size.data, (int)size.n, first, sizeof first),
                        opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, second, sizeof second));
    }
    if (count) { tensor = opd_sum_dim(tensor, opd_ints_of(dims, count), true); }
    return opd_return_tensor(call, tensor && lead > 0 ? opd_view(tensor, size) : tensor);
}
/* opd_sum_to_size: self summed to this size, the reverse of expand: over the dims that expand would have repeated */
OPDI_OP(sum_to_size) {
    op->schema = "sum_to_size(Tensor self, int[] size) -> Tensor";
    op->composite = opdi_sum_to_size_kernel;
    op->tags = OPDI_OPTAG_SHARES;
    op->cases = "[2,3], (1,3); [4,2,3], (2,1)";
}

static int opdi_nanmean_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_ints dims = opd_arg_ints(call, 1);
    const bool keep = opd_arg_bool(call, 2);
    if (!opd_dtype_is_floating((opd_scalar_type)tensor->dtype) &&
        !opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "nanmean(): expected input to have floating point or complex dtype but got %s",
                        opd_dtype_name((opd_scalar_type)tensor->dtype));
    }
    opd_tensor *count = opd_sum_dim(opd_logical_not(opd_isnan(tensor)), dims, keep);
    opd_tensor *sum = opd_nansum_full(tensor, opd_value_of_ints(dims), keep, opd_call_args(call)[3]);
    return opd_return_tensor(call, opdi_by_count(sum, count));
}
/* opd_nanmean: the mean of the elements that are not NaN, of all or over dims */
OPDI_OP(nanmean) {
    op->schema = "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor";
    op->composite = opdi_nanmean_kernel;
    op->out = "nanmean.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [2,3], (1)";
}

/* trace: computes the sum of the diagonal, which it reads as a view with one dim. */
static int opdi_trace_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = opd_dtype_is_integral((opd_scalar_type)tensor->dtype, true) ? OPD_INT64
        : (opd_scalar_type)tensor->dtype;
    if (tensor->ndim != 2) {
        return opd_fail(OPD_ERROR_SHAPE, "trace: expected a matrix, but got tensor with dim %d", tensor->ndim);
    }
    int64_t count = OPDI_MIN(opdi_sizes(tensor)[0], opdi_sizes(tensor)[1]);
    int64_t stride = opdi_size_plus(opdi_strides(tensor)[0], opdi_strides(tensor)[1]);
    tensor = opdi_view(tensor, &count, &stride, 1, 0);
    return tensor ? opdi_reduce_kernel(call, &opdi_the_sum, tensor, OPDI_ALL_DIMS, false, dtype, dtype, OPD_DTYPE_NONE,
                                       0) : -1;
}
static opd_tensor *opdi_trace_gradient(opd_tensor *grad, opd_ints sizes) {
    return sizes.n == 2 ? opd_mul(grad, opd_triu(opd_tril(opd_new_ones(grad, sizes), 0), 0)) : NULL;
}
static int opdi_trace_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_trace_gradient(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0)));
}
static int opdi_trace_batch(opd_call *call) {
    int64_t buffer[OPD_MAX_DIMS];
    opd_ints dims;
    opd_tensor *all = opdi_batch_whole(call, buffer, &dims);
    return opd_batch_return(call,
                            dims.n == 2 ? opd_sum_dim(opd_diagonal_full(all, 0, 1, 2), opd_ints_of(dims.data, 1), false)
                                        : opd_trace(all),
                            0);
}
/* opd_trace: the sum of a matrix's diagonal */
OPDI_OP(trace) {
    op->schema = "trace(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_trace_kernel; op->backward = opdi_trace_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_trace_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->flops = opdi_flops_elements;
    op->out = "trace.out";
    op->cases = "[3,3]; [2,4]";
}

/* equal: returns true if self and other have the same sizes and equal elements. */
static int opdi_equal_kernel(opd_call *call) {
    opd_tensor *first = opd_arg_tensor(call, 0), *second = opd_arg_tensor(call, 1);
    if (!opdi_same_sizes(first, second)) { return opd_return_bool(call, false); }
    opd_tensor *all = opd_all(opd_eq(first, second));
    return all ? opd_return_bool(call, opd_item_i64(all) != 0) : -1;
}
/* opd_equal: true if the sizes and all elements of self and other are equal */
OPDI_OP(equal) {
    op->schema = "equal(Tensor self, Tensor other) -> bool";
    op->cpu = opdi_equal_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_DATA_DEPENDENT_OUTPUT;
    op->cases = "[2,3], [2,3]; [2], [3]";
}

/* isclose: returns true where self == other; where the difference is finite and |self - other| <= atol + |rtol *
   other|; and, if equal_nan is true, where both are NaN (aten/src/ATen/native/TensorCompare.cpp). */
static int opdi_isclose_kernel(opd_call *call) {
    opd_tensor *first = opd_arg_tensor(call, 0), *second = opd_arg_tensor(call, 1);
    const double rtol = opd_arg_double(call, 2), atol = opd_arg_double(call, 3);
    if (first->dtype != second->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s did not match %s", opd_dtype_name((opd_scalar_type)first->dtype),
                        opd_dtype_name((opd_scalar_type)second->dtype));
    }
    if (!(rtol >= 0) || !(atol >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s must be greater than or equal to zero, but got %g",
                        rtol >= 0 ? "atol" : "rtol", rtol >= 0 ? atol : rtol);
    }
    opd_tensor *close = opd_eq(first, second);
    if (opd_arg_bool(call, 4) && !opd_dtype_is_integral((opd_scalar_type)first->dtype, true)) {
        close = opd_logical_or(close, opd_logical_and(opd_isnan(first), opd_isnan(second)));
    }
    if (rtol > 0 || atol > 0) {
        if (opd_dtype_is_integral((opd_scalar_type)second->dtype, true)) {
            first = opd_to_dtype(first, OPD_FLOAT32);
            second = opd_to_dtype(second, OPD_FLOAT32);
        }
        opd_tensor *error = opd_abs(opd_sub(first, second));
        second = opd_add_Scalar(opd_abs(opd_mul_Scalar(second, opd_value_double(rtol))), opd_value_double(atol));
        close = opd_logical_or(close, opd_logical_and(opd_isfinite(error), opd_le(error, second)));
    }
    return opd_return_tensor(call, close);
}
#define OPDI_CLOSE_ARGS "Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False"
/* opd_isclose: true where |self - other| <= atol + rtol |other| */
OPDI_OP(isclose) {
    op->schema = "isclose(" OPDI_CLOSE_ARGS ") -> Tensor";
    op->composite = opdi_isclose_kernel;
    op->cases = "[2,3], [2,3]; [2,3], [3], 10., 0.1; [2,3]i5, [2,3]i5, 0., 0., True; [2]b, [2]b";
}

static int opdi_allclose_kernel(opd_call *call) {
    opd_tensor *all = opd_all(opd_isclose_full(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                               opd_arg_double(call, 2), opd_arg_double(call, 3),
                                               opd_arg_bool(call, 4)));
    return all ? opd_return_bool(call, opd_item_i64(all) != 0) : -1;
}
/* opd_allclose: true if isclose is true for all elements */
OPDI_OP(allclose) {
    op->schema = "allclose(" OPDI_CLOSE_ARGS ") -> bool";
    op->any = opdi_allclose_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_DATA_DEPENDENT_OUTPUT;
    op->cases = "[2,3], [2,3]; [2], [2], 10., 10.";
}

OPDI_COLD_END
/* Writes to places[] the positions of those of the elements [begin, begin + count) of a contiguous tensor that are not
   0, counted from `begin`, and returns their number.  count is at most OPDI_BLOCK. */
static int64_t opdi_nonzero_places(const opd_tensor *tensor, int64_t begin, int64_t count, int64_t *places) {
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    const char *const from = tensor->data + begin * (int64_t)opd_dtype_size(dtype);
    uint64_t block[OPDI_BLOCK];
    int64_t found = 0;
    if (dtype == OPD_BOOL || dtype == OPD_UINT8 || dtype == OPD_INT8) {
        for (int64_t i = 0; i < count; i++) {
            places[found] = i;
            found += from[i] != 0;
        }
    } else if (opdi_compute_type(dtype) == OPDI_I64) {
        opdi_load_of(OPDI_I64, dtype)(block, from, count);
        for (int64_t i = 0; i < count; i++) {
            places[found] = i;
            found += block[i] != 0;
        }
    } else {
        const double *const x = (const double *)(const void *)block;
        opdi_load_of(OPDI_F64, dtype)(block, from, count);
        for (int64_t i = 0; i < count; i++) {
            places[found] = i;
            found += !(x[i] == 0);
        }
    }
    return found;
}
/* Writes the coordinates of the `found` elements at `begin` + places[] to rows of `out` from number `row` on. */
static void opdi_nonzero_rows(const opd_tensor *tensor, opd_tensor *out, int64_t row, int64_t begin,
                              const int64_t *places, int64_t found) {
    const int64_t step = opdi_strides(out)[0];
    int64_t width = 1;                            /* elements of a slice with one coordinate */
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        const int64_t size = opdi_sizes(tensor)[dim];
        int64_t *to = (int64_t *)(void *)out->data + row * step + dim * opdi_strides(out)[1];
        const int64_t first = begin / width % size, left = (begin / width + 1) * width - begin;
        if (width == 1 && begin % size + OPDI_BLOCK <= size) {     /* the block is inside of one row */
            for (int64_t i = 0; i < found; i++) { to[i * step] = first + places[i]; }
        }
        else if (found == 0 || places[found - 1] < left) {         /* all elements have the same coordinate */
            for (int64_t i = 0; i < found; i++) { to[i * step] = first; }
        }
        else { for (int64_t i = 0; i < found; i++) { to[i * step] = (begin + places[i]) / width % size; } }
        width *= size;
    }
}
/* nonzero: returns the coordinates of the elements that are not 0, in order, as rows [count, ndim].  count depends on
   the elements. */
static int opdi_nonzero_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *out = NULL;
    if (opdi_is_complex(tensor) && !(tensor = opd_ne_Scalar(tensor, opd_value_int(0)))) { return -1; }
    int64_t sizes[2], strides[2], places[OPDI_BLOCK], count = 0, numel = tensor->numel;
    if (tensor->backend == OPD_META) {
        sizes[0] = opd_fake_new_size(call, 0, numel);
        sizes[1] = tensor->ndim;
        strides[0] = 1;
        strides[1] = OPDI_MAX(sizes[0], 1);
        return opd_ok() && opd_result_strided(call, 0, sizes, strides, 2, OPD_INT64, opd_tensor_device(tensor)) ? 0
            : -1;
    }
    tensor = opd_contiguous(tensor);
    if (!tensor) { return -1; }
    for (int64_t i = 0; i < numel; i += OPDI_BLOCK) {
        count += opdi_nonzero_places(tensor, i, OPDI_MIN(numel - i, (int64_t)OPDI_BLOCK), places);
    }
    sizes[0] = count;
    sizes[1] = tensor->ndim;
    strides[0] = 1;
    strides[1] = count ? count : 1;               /* stored by columns, as in PyTorch */
    out = opd_result_strided(call, 0, sizes, strides, 2, OPD_INT64, opd_tensor_device(tensor));
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    for (int64_t i = 0, row = 0; i < numel; i += OPDI_BLOCK) {
        const int64_t found = opdi_nonzero_places(tensor, i, OPDI_MIN(numel - i, (int64_t)OPDI_BLOCK), places);
        opdi_nonzero_rows(tensor, out, row, i, places, found);
        row += found;
    }
    return 0;
}
OPDI_COLD_BEGIN
/* opd_nonzero: the coordinates of the elements that are not 0, one row for each: [count, dims] */
OPDI_OP(nonzero) {
    op->schema = "nonzero(Tensor self) -> Tensor";
    op->cpu = op->fake = opdi_nonzero_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_dynamic;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPDI_OPTAG_OUT_DYNAMIC;
    op->out = "nonzero.out";
    op->cases = "[2,3]; [2,3]b; []";
}
OPDI_COLD_END
