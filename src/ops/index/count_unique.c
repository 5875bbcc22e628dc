#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:sets      counting, unique elements, writing through views, searching
//----------------------------------------------------------------------------------------------------------------------

//== bincount, multinomial =============================================================================================

/* Returns the largest of the `count` numbers at values, 0 if there are none, or -1 if a number is negative. */
OPDI_ALWAYS int64_t opdi_bincount_most_body(const int64_t *values, int64_t count) {
    int64_t most[16] = {0}, any[16] = {0}, i;     /* sixteen numbers that do not wait for each other */
    OPDI_SIXTEENS(most[lane] = values[j] > most[lane] ? values[j] : most[lane]; any[lane] |= values[j])
    for (; i < count; i++) {
        most[0] = OPDI_MAX(most[0], values[i]);
        any[0] |= values[i];
    }
    for (int k = 1; k < 16; k++) {
        most[0] = OPDI_MAX(most[0], most[k]);
        any[0] |= any[k];
    }
    return any[0] < 0 ? -1 : most[0];
}
OPDI_VECTOR_LOOP static int64_t opdi_bincount_most_wide(const int64_t *values, int64_t count) {
    return opdi_bincount_most_body(values, count);
}
/* Counts each of the `count` numbers at values. */
static void opdi_bincount_count(const int64_t *values, int64_t count, int64_t *counts) {
    for (int64_t i = 0; i < count; i++) { counts[values[i]]++; }
}
OPDI_COLD_BEGIN
/* bincount: counts how often each number from 0 on occurs in input or, if there are weights, sums the weights of its
   occurrences. */
static int opdi_bincount_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weights = opd_arg_tensor(call, 1);
    const int64_t least = opd_arg_int(call, 2);
    const opd_scalar_type dtype = !weights || (input->ndim == 1 && input->numel == 0) ? OPD_INT64
        : weights->dtype == OPD_FLOAT32 ? OPD_FLOAT32 : OPD_FLOAT64;
    int64_t count = least;
    if (least < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "minlength should be >= 0"); }
    if (!opd_dtype_is_integral((opd_scalar_type)input->dtype, false)) {
        return opdi_dtype_fail("bincount_cpu", input->dtype);
    }
    if (input->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "bincount only supports 1-d non-negative integral inputs.");
    }
    if (weights && input->numel && (weights->ndim != 1 || weights->numel != input->numel)) {
        return opd_fail(OPD_ERROR_SHAPE, "weights should be 1-d and have the same length as input");
    }
    if (input->backend == OPD_META || (weights && weights->backend == OPD_META)) {
        count = opd_fake_new_size(call, least, -1);
        return count >= 0 && opd_result(call, 0, &count, 1, dtype) ? 0 : -1;
    }
    if (!(input = opdi_dense_as(input, OPD_INT64)) || (weights && !(weights = opdi_dense_as(weights, dtype)))) {
        return -1;
    }
    const int64_t *values = (const int64_t *)(const void *)input->data;
    const int64_t most = (opdi_has_vectors() ? opdi_bincount_most_wide
                          : opdi_bincount_most_body)(values, input->numel);
    if (most < 0) {
        return opd_fail(OPD_ERROR_INDEX, "bincount only supports 1-d non-negative integral inputs.");
    }
    if (input->numel) { count = OPDI_MAX(count, most == INT64_MAX ? most : most + 1); }
    opd_tensor *out = opd_result(call, 0, &count, 1, dtype);
    opd_tensor *scratch = out ? opdi_staging(out, dtype) : NULL;
    if (!scratch) { return -1; }
    memset(scratch->data, 0, (size_t)count * opd_dtype_size(dtype));
    if (!weights) { opdi_bincount_count(values, input->numel, (int64_t *)(void *)scratch->data); }
    for (int64_t i = 0; i < input->numel && weights; i++) {
        if (dtype == OPD_FLOAT32) {
            ((float *)(void *)scratch->data)[values[i]] += ((const float *)(const void *)weights->data)[i];
        } else { ((double *)(void *)scratch->data)[values[i]] += ((const double *)(const void *)weights->data)[i]; }
    }
    return opdi_staging_store(out, scratch);
}
/* Computes bincount on other devices than the CPU, by calling public operators. */
static int opdi_bincount_device_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weights = opd_arg_tensor(call, 1);
    const opd_scalar_type dtype = !weights || input->numel == 0 ? OPD_INT64
        : weights->dtype == OPD_FLOAT32 ? OPD_FLOAT32 : OPD_FLOAT64;
    int64_t count = opd_arg_int(call, 2);
    if (count < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "minlength should be >= 0"); }
    if (input->ndim != 1 || !opd_dtype_is_integral((opd_scalar_type)input->dtype, false) ||
        (input->numel && opd_item_i64(opd_min(input)) < 0)) {
        return opd_fail(OPD_ERROR_INDEX, "bincount only supports 1-d non-negative integral inputs.");
    }
    if (weights && input->numel && (weights->ndim != 1 || weights->numel != input->numel)) {
        return opd_fail(OPD_ERROR_SHAPE, "weights should be 1-d and have the same length as input");
    }
    if (input->numel) { count = OPDI_MAX(count, opd_item_i64(opd_max(input)) + 1); }
    if (!opd_ok() || !(input = opd_to_dtype(input, OPD_INT64))) { return -1; }
    weights = weights && input->numel ? opd_to_dtype(weights, dtype) : opd_ones_like(input);
    opd_tensor *out = opd_new_zeros_full(weights, opd_ints_of(&count, 1), opd_value_int(dtype), OPD_NONE, OPD_NONE,
                                         OPD_NONE);
    return opd_return_tensor(call, opd_index_add(out, 0, input, weights));
}
/* opd_bincount: how often each number from 0 on occurs in self; with weights, the sum of its weights */
OPDI_OP(bincount) {
    op->schema = "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor";
    op->cpu = op->fake = opdi_bincount_kernel; op->any = opdi_bincount_device_kernel;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->out = "bincount.out";
    op->cases = "[6]i5; [6]i5, None, 9; [4]i5, [4]";
}

static int opdi_multinomial_check(const opd_tensor *probs, int64_t count, bool again) {
    if (!opd_dtype_is_floating((opd_scalar_type)probs->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "multinomial only supports floating-point dtypes for input, got: %s",
                        opd_dtype_name((opd_scalar_type)probs->dtype));
    }
    if (probs->ndim != 1 && probs->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "prob_dist must be 1 or 2 dim"); }
    if (count <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "cannot sample n_sample <= 0 samples"); }
    if (!again && count > opd_size(probs, -1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    }
    return opd_size(probs, -1) <= 1 << 24 && opd_size(probs, -1) > 0 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "number of categories cannot exceed 2^24 and must be positive, but is %lld",
                   (long long)opd_size(probs, -1));
}
/* Checks that the probabilities of multinomial are finite and not negative, and that each row has a sum above 0.
   Returns 0, or -1 and sets an error. */
static int opdi_multinomial_values(opd_tensor *probs) {
    const int64_t last = -1;
    if (probs->backend == OPD_META || probs->numel == 0) { return 0; }
    opd_tensor *right = opd_all(opd_logical_and(opd_isfinite(probs), opd_ge_Scalar(probs, opd_value_int(0))));
    if (!right) { return -1; }
    if (!opd_item_i64(right)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "probability tensor contains either `inf`, `nan` or element < 0");
    }
    opd_tensor *sums = opd_min(opd_sum_dim(probs, opd_ints_of(&last, 1), false));
    return sums && opd_item_f64(sums) > 0 ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "invalid multinomial distribution (sum of probabilities <= 0)");
}
/* multinomial: draws `count` samples from each row of probs.  Without replacement, or if count is 1, every element gets
   an exponential random number whose rate is its probability, and the elements with the smallest numbers are chosen
   (the code compares the reciprocals).  With replacement, uniform random numbers are looked up among the cumulative
   sums of the probabilities. */
static int opdi_multinomial_kernel(opd_call *call) {
    opd_tensor *probs = opd_arg_tensor(call, 0), *parts[2];
    const int64_t count = opd_arg_int(call, 1);
    const bool again = opd_arg_bool(call, 2);
    const opd_value value = opd_arg_value(call, 3);
    opd_generator *generator = value.tag == OPD_TAG_OBJECT ? (opd_generator *)value.u.object : NULL;
    int64_t sizes[2];
    if (opdi_multinomial_check(probs, count, again) || opdi_multinomial_values(probs) ||
        opdi_exact_out(call, OPD_INT64)) {
        return -1;
    }
    if (!again || count == 1) {
        opd_tensor *upper = opd_exponential_full_(opd_empty_like(probs), 1, generator);
        upper = opd_div(probs, upper);
        if (count == 1) { return opd_return_tensor(call, opd_argmax(upper, opd_value_int(-1), true)); }
        return opd_topk_full(parts, upper, count, -1, true, true) ? -1 : opd_return_tensor(call, parts[1]);
    }
    opd_tensor *sums = opd_cumsum_full(probs, -1, opd_value_int(OPD_FLOAT64));
    sizes[0] = opdi_sizes(probs)[0];
    sizes[probs->ndim - 1] = count;
    opd_tensor *upper = opd_uniform_full_(opd_new_empty_full(sums, opd_ints_of(sizes, probs->ndim), OPD_NONE, OPD_NONE,
                                                             OPD_NONE, OPD_NONE), 0, 1, generator);
    opd_tensor *const scaled = opd_mul_Scalar(upper, opd_value_double(1 - 1e-15));
    upper = opd_mul(scaled, opdi_range_dim(sums, -1, opd_size(sums, -1) - 1, opd_size(sums, -1)));
    upper = opd_searchsorted_full(sums, upper, false, true, OPD_NONE, OPD_NONE);
    return opd_return_tensor(call, opd_clamp_max(upper, opd_value_int(opd_size(probs, -1) - 1)));
}
/* opd_multinomial(self, num_samples, replacement): num_samples indices, each drawn with a probability proportional to
   its element of self */
OPDI_OP(multinomial) {
    op->schema = "multinomial(Tensor self, int num_samples, bool replacement=False, *, Generator? generator=None) -> "
        "Tensor";
    op->any = opdi_multinomial_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_NONDETERMINISTIC_SEEDED;
    op->out = "multinomial.out";
    op->cases = "[4]+, 3; [2,4]+, 1; [2,3]+, 5, True";
}

//== histc =============================================================================================================

/* Counts the elements of a contiguous tensor, float32 or float64, in counts[bins + 1]: in each of `bins` equal parts of
   [end[0], end[1]], which are `span` long together; the last number counts all others.  The parts of a block are found
   before they are counted, so that these computations do not wait for the counts. */
#define OPDI_HISTC_COUNT(type) \
    const type *x = (const type *)(const void *)input->data; \
    const type low = (type)end[0], high = (type)end[1], part = (type)span, many = (type)bins; \
    type at[OPDI_BLOCK]; \
    for (int64_t from = 0; from < input->numel; from += OPDI_BLOCK, x += OPDI_BLOCK) { \
        const int64_t count = OPDI_MIN((int64_t)OPDI_BLOCK, input->numel - from); \
        int64_t i; \
        OPDI_COLUMN_EACH(at[j] = (x[j] - low) * many / part)   /* in [0, bins], or NaN if it overflows */ \
        for (i = 0; i < count; i++) { \
            places[i] = !(x[i] >= low && x[i] <= high) ? bins : at[i] < many ? (int64_t)at[i] : bins - 1; \
        } \
        for (i = 0; i < count; i++) { counts[places[i]]++; } \
    }
OPDI_COLD_END
static void opdi_histc_count(const opd_tensor *input, const double *end, double span, int64_t bins, int64_t *counts) {
    int64_t places[OPDI_BLOCK];
    memset(counts, 0, (size_t)(bins + 1) * sizeof *counts);
    if (input->dtype == OPD_FLOAT32) { OPDI_HISTC_COUNT(float) }
    else { OPDI_HISTC_COUNT(double) }
}
OPDI_COLD_BEGIN
/* histc: counts how many elements are in each of `bins` equal parts of [min, max], both ends included.  If min and max
   are equal, the range of the elements is used; if this has length 0, it is extended by 1 at both ends. */
static int opdi_histc_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *ends[2];
    const int64_t bins = opd_arg_int(call, 1);
    const opd_scalar_type dtype = OPDI_DTYPE(input);
    double end[2];
    if (!opd_dtype_is_floating(dtype)) { return opdi_dtype_fail("histogram_cpu", dtype); }
    if (bins <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "histogram: bins must be > 0, but got %lld for dimension 0",
                        (long long)bins);
    }
    if (input->backend == OPD_META) { return opd_result(call, 0, &bins, 1, dtype) ? 0 : -1; }
    for (int i = 0; i < 2; i++) {
        ends[i] = opd_scalar_tensor(opd_arg_value(call, 2 + i), dtype);
        end[i] = ends[i] ? opd_item_f64(ends[i]) : 0;
    }
    if (end[0] <= end[1] && end[0] >= end[1] && input->numel) {
        if (opd_aminmax(ends, input)) { return -1; }
        for (int i = 0; i < 2; i++) { end[i] = opd_item_f64(ends[i]); }
    }
    if (end[0] <= end[1] && end[0] >= end[1]) {
        end[0] -= 1;
        end[1] += 1;
    }
    if (!opd_ok()) { return -1; }
    if (!(fabs(end[0]) <= DBL_MAX) || !(fabs(end[1]) <= DBL_MAX)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "histc: range of [%g, %g] is not finite", end[0], end[1]);
    }
    if (!(end[0] < end[1])) { return opd_fail(OPD_ERROR_ARGUMENT, "histc: max must be larger than min"); }
    ends[1] = opd_scalar_tensor(opd_value_double(end[1]), dtype);
    ends[1] = opd_sub_Scalar(ends[1], opd_value_double(end[0]));
    if (ends[1] && (dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64) && opdi_in_memory(input)) {
        const int64_t more = bins < INT64_MAX ? bins + 1 : bins;
        opd_tensor *found = opdi_own(opdi_tensor_make(&more, NULL, 1, OPD_INT64, OPD_CPU));
        if (!found || !(input = opd_contiguous(input))) { return -1; }
        opdi_histc_count(input, end, opd_item_f64(ends[1]), bins, (int64_t *)(void *)found->data);
        return opd_return_tensor(call, opd_to_dtype(opd_narrow(found, 0, 0, bins), dtype));
    }
    opd_tensor *in = opd_logical_and(opd_ge_Scalar(input, opd_value_double(end[0])),
                                     opd_le_Scalar(input, opd_value_double(end[1])));
    opd_tensor *at = opd_sub_Scalar(input, opd_value_double(end[0]));
    at = opd_div_Scalar(opd_mul_Scalar(at, opd_value_int(bins)), opd_value_double(ends[1] ? opd_item_f64(ends[1]) : 1));
    at = opd_clamp_max(opd_to_dtype(opdi_where(in, at), OPD_INT64), opd_value_int(bins - 1));
    opd_tensor *counts = opd_new_zeros_full(input, opd_ints_of(&bins, 1), opd_value_int(OPD_INT64), OPD_NONE, OPD_NONE,
                                            OPD_NONE);
    opd_tensor *const shaped = opdi_maybe_reshape(at, &input->numel, 1);
    counts = opd_index_add(counts, 0, shaped, opdi_maybe_reshape(opd_to_dtype(in, OPD_INT64), &input->numel, 1));
    return opd_return_tensor(call, opd_to_dtype(counts, dtype));
}
/* opd_histc(self, bins): the number of elements in each of bins equal parts between min and max */
OPDI_OP(histc) {
    op->schema = "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor";
    op->any = opdi_histc_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "histc.out";
    op->cases = "[6], 3; [2,3], 4; [2,3], 5, -1, 1.5";
}

//== unique ============================================================================================================
//
//  unique compares each element or slice with the one before it, after sorting them (unique) or in the given order
//  (unique_consecutive).  An element that differs from the one before it is kept.  The index of an element's value
//  among the kept elements is the number of elements kept so far, minus one.  The distance between two neighbouring
//  kept elements is the number of times that the first one occurs.

/* Computes the results of unique from a tensor [count, ..] whose equal rows are neighbours.  fresh [count - 1] tells
   for each row after the first whether it differs from the row before.  from [count] holds the index that each row had
   in the input; NULL means that the rows were not reordered.  Sets results[0] to the kept rows, results[1], if
   `inverse` is true, to the index of each input row among the kept rows, and results[2] to the number of times that
   each kept row occurs.  Returns 0, or -1 and sets an error. */
static int opdi_unique_of(opd_tensor *tensor, opd_tensor *fresh, opd_tensor *from, bool inverse,
                          opd_tensor **results) {
    const int64_t one = 1, count = tensor ? opdi_sizes(tensor)[0] : 0;
    opd_tensor *pair[2];
    if (!tensor || !fresh) { return -1; }
    pair[0] = opd_new_ones(fresh, opd_ints_of(&one, 1));
    pair[1] = fresh;
    fresh = opd_cat(opd_tensors_of(pair, 2), 0);
    if (inverse) {
        results[1] = opd_sub_Scalar(opd_cumsum_full(fresh, 0, opd_value_int(OPD_INT64)), opd_value_int(1));
        if (from && results[1]) { results[1] = opd_scatter(opd_empty_like(results[1]), 0, from, results[1]); }
        if (!results[1]) { return -1; }
    }
    opd_tensor *at = opd_nonzero(fresh);
    at = at ? opdi_maybe_reshape(at, &opdi_sizes(at)[0], 1) : NULL;
    results[0] = opd_index_select(tensor, 0, at);
    if (!results[0]) { return -1; }
    pair[0] = opdi_maybe_narrow(at, 0, 1, opdi_sizes(at)[0] - 1);
    pair[1] = opd_new_full(at, opd_ints_of(&one, 1), opd_value_int(count));
    results[2] = opd_sub(opd_cat(opd_tensors_of(pair, 2), 0), at);
    return results[2] ? 0 : -1;
}
static int opdi_unique_return(opd_call *call, opd_tensor **results) {
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, results[i])) { return -1; } }
    return 0;
}
static opd_tensor *opdi_unique_none(opd_tensor *input) {
    const int64_t none = 0;
    return opd_new_empty_full(input, opd_ints_of(&none, 1), opd_value_int(OPD_INT64), OPD_NONE, OPD_NONE, OPD_NONE);
}
/* Compares rows [1, count) of tensor [count, ..] with rows [0, count - 1).  Returns a bool tensor that is true where
   elements differ, or NULL. */
static opd_tensor *opdi_unique_differs(opd_tensor *tensor) {
    const int64_t count = tensor ? opdi_sizes(tensor)[0] : 0;
    return tensor
        ? opd_ne(opdi_maybe_narrow(tensor, 0, 1, count - 1), opdi_maybe_narrow(tensor, 0, 0, count - 1)) : NULL;
}
/* Computes unique over all elements, and returns its results to the call.  If `sorts`, the elements are sorted first.
   Without `inverse` or `counts`, the second or third result is empty.  Returns 0, or -1 and sets an error. */
static int opdi_unique_flat(opd_call *call, bool sorts, bool inverse, bool counts) {
    opd_tensor *input = opd_arg_tensor(call, 0), *results[3], *sorted[2] = {NULL, NULL};
    if (input->backend == OPD_META) {
        const int64_t numel = opd_fake_new_size(call, 0, input->numel), none = 0;
        return numel >= 0 && opd_result(call, 0, &numel, 1, OPDI_DTYPE(input)) &&
            opd_result(call, 1, inverse ? opdi_sizes(input) : &none, inverse ? input->ndim : 1, OPD_INT64) &&
            opd_result(call, 2, counts ? &numel : &none, 1, OPD_INT64) ? 0 : -1;
    }
    opd_tensor *flat = opdi_maybe_reshape(input, &input->numel, 1);
    if (sorts && flat && input->numel && opd_sort_stable(sorted, flat, opd_value_bool(true), 0, false)) { return -1; }
    if (sorted[0]) { flat = sorted[0]; }
    if (input->numel == 0) {
        results[0] = opd_clone(flat);
        results[1] = opd_to_dtype(opd_empty_like(input), OPD_INT64);
        results[2] = opdi_unique_none(input);
    } else if (opdi_unique_of(flat, opdi_unique_differs(flat), sorted[1], inverse, results)) { return -1; }
    results[1] = inverse ? opdi_maybe_reshape(results[1], opdi_sizes(input), input->ndim) : opdi_unique_none(input);
    if (!counts) { results[2] = opdi_unique_none(input); }
    return opdi_unique_return(call, results);
}
/* Computes unique over the slices of dim `along`, and returns its results to the call.  If `sorts`, the slices are
   sorted first: by their last element, then by the element before it, and so on up to the first.  Each of these sorts
   is stable, so the first element has the highest priority.  Returns 0, or -1 and sets an error. */
static int opdi_unique_slices(opd_call *call, int64_t along, bool sorts) {
    opd_tensor *input = opd_arg_tensor(call, 0), *results[3], *from = NULL, *sorted[2];
    const int dim = opdi_dim_of(along, input->ndim);
    int64_t sizes[OPD_MAX_DIMS], flat[2];
    if (dim < 0) { return -1; }
    memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
    if (input->ndim == 0) { sizes[0] = 1; }
    flat[0] = sizes[dim];
    flat[1] = flat[0] ? input->numel / flat[0] : 0;
    if (input->backend == OPD_META) {
        const int64_t count = flat[0];
        if ((sizes[dim] = opd_fake_new_size(call, 0, count)) < 0) { return -1; }
        return opd_result(call, 0, sizes, input->ndim, OPDI_DTYPE(input)) &&
            opd_result(call, 1, &count, 1, OPD_INT64) && opd_result(call, 2, &sizes[dim], 1, OPD_INT64) ? 0 : -1;
    }
    if (input->numel == 0) {
        if (flat[0]) {
            return opd_fail(OPD_ERROR_SHAPE, "There are 0 sized dimensions, and they aren't selected, so unique cannot "
                            "be applied");
        }
        results[0] = opd_clone(input);
        results[1] = opdi_unique_none(input);
        results[2] = opdi_unique_none(input);
        return opdi_unique_return(call, results);
    }
    opd_tensor *rows = input->ndim ? opd_transpose(input, 0, dim) : input;
    if (!rows) { return -1; }
    memcpy(sizes, opdi_sizes(rows), (size_t)input->ndim * sizeof *sizes);
    rows = opdi_maybe_reshape(rows, flat, 2);
    for (int64_t i = sorts ? flat[1] - 1 : -1; i >= 0 && rows; i--) {
        opd_tensor *fresh = opdi_maybe_select(rows, 1, i);
        if (from) { fresh = opd_index_select(fresh, 0, from); }
        if (opd_sort_stable(sorted, fresh, opd_value_bool(true), 0, false)) { return -1; }
        from = from ? opd_index_select(from, 0, sorted[1]) : sorted[1];
    }
    if (from) { rows = opd_index_select(rows, 0, from); }
    opd_tensor *fresh = opdi_unique_differs(rows);
    if (!fresh || opdi_unique_of(rows, opd_any_dim(fresh, 1, false), from, true, results)) { return -1; }
    sizes[0] = opdi_sizes(results[0])[0];
    results[0] = opdi_maybe_reshape(results[0], sizes, input->ndim);
    if (input->ndim && results[0]) { results[0] = opd_transpose(results[0], 0, dim); }
    return opdi_unique_return(call, results);
}
static int opdi__unique2_kernel(opd_call *call) {
    return opdi_unique_flat(call, true, opd_arg_bool(call, 2), opd_arg_bool(call, 3));
}
static int opdi_unique_dim_kernel(opd_call *call) { return opdi_unique_slices(call, opd_arg_int(call, 1), true); }
static int opdi_unique_dim_consecutive_kernel(opd_call *call) {
    return opdi_unique_slices(call, opd_arg_int(call, 1), false);
}
static int opdi_unique_consecutive_kernel(opd_call *call) {
    const bool flat = opd_arg_is_none(call, 3) || (opd_arg_int(call, 3) == 0 && opd_arg_tensor(call, 0)->ndim == 1);
    return flat ? opdi_unique_flat(call, false, opd_arg_bool(call, 1), opd_arg_bool(call, 2))
        : opdi_unique_slices(call, opd_arg_int(call, 3), false);
}
/* opd_unique2: the distinct elements, the index of each element of self among them, and how often each occurs */
OPDI_OP(_unique2) {
    op->schema = "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
        "(Tensor, Tensor, Tensor)";
    op->any = opdi__unique2_kernel; op->backward = opdi_refused_backward;
    op->vmap = opdi_batch_dynamic; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->out = "_unique2.out(out0, out1, out2)";
    op->cases = "[6]i3; [2,3]i4, True, True; [2,4]i3, True, True, True; [6]i3, True, False, True";
}
/* opd_unique_dim: the distinct slices of dim, the index of each slice of self among them, and how often each occurs */
OPDI_OP(unique_dim) {
    op->schema = "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool "
        "return_counts=False) -> (Tensor, Tensor, Tensor)";
    op->any = opdi_unique_dim_kernel; op->backward = opdi_refused_backward;
    op->vmap = opdi_batch_dynamic; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->out = "unique_dim.out(out0, out1, out2)";
    op->cases = "[4,2]i2, 0; [2,4]i2, 1, True, True, True";
}
/* opd_unique_consecutive: one element per run of equal elements, the run number of each element, and the run lengths */
OPDI_OP(unique_consecutive) {
    op->schema = "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) "
        "-> (Tensor, Tensor, Tensor)";
    op->any = opdi_unique_consecutive_kernel; op->backward = opdi_refused_backward;
    op->vmap = opdi_batch_dynamic; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->out = "unique_consecutive.out(out0, out1, out2)";
    op->cases = "[6]i2; [4,2]i2, True, True; [4,2]i2, True, True, 0";
}
/* opd_unique_dim_consecutive: one slice per run of equal slices of dim, the run number of each slice, the run
   lengths */
OPDI_OP(unique_dim_consecutive) {
    op->schema = "unique_dim_consecutive(Tensor self, int dim, bool return_inverse=False, bool return_counts=False) "
        "-> (Tensor, Tensor, Tensor)";
    op->any = opdi_unique_dim_consecutive_kernel; op->backward = opdi_refused_backward;
    op->vmap = opdi_batch_dynamic; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->out = "unique_dim_consecutive.out(out0, out1, out2)";
    op->cases = "[4,2]i2, 0";
}
OPDI_COLD_END
