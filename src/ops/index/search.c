#include "../ops.h"

//== repeat_interleave, searchsorted, bucketize ========================================================================

/* repeat_interleave.Tensor: writes each index i repeats[i] times, in ascending order.  If output_size is given, it must
   be the sum of repeats. */
static int opdi_repeat_interleave_Tensor_kernel(opd_call *call) {
    opd_tensor *result = opd_arg_tensor(call, 0);
    int64_t count = 0;
    if (result->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "repeat_interleave only accept 1D vector as repeat"); }
    if (result->dtype != OPD_INT64 && result->dtype != OPD_INT32) {
        return opd_fail(OPD_ERROR_DTYPE, "repeats must be an int64 or int32 tensor");
    }
    if (result->backend == OPD_META) {
        count = opd_arg_is_none(call, 1) ? opd_fake_new_size(call, 0, -1) : opd_arg_int(call, 1);
        return opd_ok() && opd_result(call, 0, &count, 1, (opd_scalar_type)result->dtype) ? 0 : -1;
    }
    opd_tensor *input = opdi_dense_as(result, OPD_INT64);
    if (!input) { return -1; }
    const int64_t *values = (const int64_t *)(const void *)input->data;
    for (int64_t i = 0; i < input->numel; i++) {
        if (values[i] < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "repeats can not be negative"); }
        if (values[i] > INT64_MAX / 16 - count) {
            return opd_fail(OPD_ERROR_SHAPE, "the sum of repeats is too large for memory");
        }
        count += values[i];
    }
    if (!opd_arg_is_none(call, 1) && opd_arg_int(call, 1) != count) {
        return opd_fail(OPD_ERROR_SHAPE, "allocated size does not match required size: output_size is %lld, and the "
                        "sum of repeats is %lld", (long long)opd_arg_int(call, 1), (long long)count);
    }
    opd_tensor *out = opd_result(call, 0, &count, 1, (opd_scalar_type)result->dtype);
    opd_tensor *scratch = out ? opdi_staging(out, OPD_INT64) : NULL;
    if (!scratch) { return -1; }
    int64_t *at = (int64_t *)(void *)scratch->data;
    for (int64_t i = 0; i < input->numel; i++) { for (int64_t k = 0; k < values[i]; k++) { *at++ = i; } }
    return opdi_staging_store(out, scratch);
}
OPDI_COLD_BEGIN
/* opd_repeat_interleave_Tensor: each index i of repeats, repeats[i] times, in order */
OPDI_OP(repeat_interleave_Tensor) {
    op->schema = "repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor";
    op->cpu = op->fake = opdi_repeat_interleave_Tensor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->out = "repeat_interleave.Tensor_out";
    op->cases = "[3]i4";
}

/* repeat_interleave.self_Tensor: repeats each slice i of self along dim repeats[i] times.  Without dim, repeats each
   element.  If `repeats` has only one number, it applies to all slices. */
static int opdi_repeat_interleave_self_Tensor_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *repeats = opd_arg_tensor(call, 1);
    const int64_t minus = -1;
    int dim = 0;
    if (opd_arg_is_none(call, 2)) { self = opdi_maybe_reshape(self, &minus, 1); }
    else { dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim); }
    if (!self || !repeats || dim < 0) { return -1; }
    int64_t count = self->ndim ? opdi_sizes(self)[dim] : 1;
    if (repeats->ndim == 0 || (repeats->ndim == 1 && repeats->numel == 1)) {
        repeats = opdi_maybe_expand(opdi_maybe_reshape(repeats, &minus, 1), &count, 1);
    }
    else if (repeats->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "repeats must be 0-dim or 1-dim tensor"); }
    else if (repeats->numel != count) {
        return opd_fail(OPD_ERROR_SHAPE, "repeats must have the same size as input along dim, but got repeats.size(0) "
                        "= %lld and input.size(%d) = %lld", (long long)repeats->numel, dim, (long long)count);
    }
    opd_tensor *index = opd_repeat_interleave_Tensor_full(repeats, opd_arg_value(call, 3));
    return opd_return_tensor(call, opd_index_select(self, dim, index));
}
/* repeat_interleave.self_int: repeats each slice of dim `count` times.  The copies first form a new dim after dim,
   which is then merged with dim.  Without dim, repeats each element. */
static int opdi_repeat_interleave_self_int_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t count = opd_arg_int(call, 1), flat = -1;
    const bool whole = opd_arg_is_none(call, 2);
    int64_t sizes[OPD_MAX_DIMS + 1];
    if ((whole || self->ndim == 0) && !(self = opdi_maybe_reshape(self, &flat, 1))) { return -1; }
    int dim = whole ? 0 : opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    if (dim < 0) { return -1; }
    if (count < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Repeats must be non-negative"); }
    for (int i = 0; i <= self->ndim; i++) { sizes[i] = i == dim + 1 ? count : -1; }
    self = opdi_maybe_expand(opdi_maybe_unsqueeze(self, dim + 1), sizes, self->ndim + 1);
    self = opd_flatten(opd_clone_full(self, opd_value_int(OPDI_FORMAT_CONTIGUOUS)), dim, dim + 1);
    if (self && !opd_arg_is_none(call, 3) && opd_arg_int(call, 3) != opdi_sizes(self)[dim]) {
        return opd_fail(OPD_ERROR_SHAPE, "repeat_interleave: Invalid output_size, expected %lld but got %lld",
                        (long long)opdi_sizes(self)[dim], (long long)opd_arg_int(call, 3));
    }
    return opd_return_tensor(call, self);
}
/* opd_repeat_interleave_self_Tensor: each slice i of dim (without dim: each element) repeats[i] times */
OPDI_OP(repeat_interleave_self_Tensor) {
    op->schema = "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) "
        "-> Tensor";
    op->composite = opdi_repeat_interleave_self_Tensor_kernel;
    op->cases = "[2,3], [3]i4, 1";
}
/* opd_repeat_interleave: each slice of dim (without dim: each element) repeats times */
OPDI_OP(repeat_interleave_self_int) {
    op->schema = "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> "
        "Tensor";
    op->composite = opdi_repeat_interleave_self_int_kernel;
    op->cases = "[2,3], 2, 1";
}
OPDI_COLD_END

/* Keeps the half above the middle element if `above`, else the half below it; does nothing if *count is 0. */
OPDI_ALWAYS void opdi_search_step(int64_t *low, int64_t *count, bool above) {
    const int64_t half = *count / 2, mask = -(int64_t)((*count > 0) & above);
    *low += (half + 1) & mask;
    *count = half + ((*count - 2 * half - 1) & mask);
}
/* opdi_search_f64 and opdi_search_i64 set out[k] to the position of v[k], for k < n <= 4, among `total` sorted numbers
   in seq: the first number that is not less than v[k] or, if `right`, the first number that is greater.  If order is
   not NULL, number i of the sorted sequence is seq[order[i]].  The halves are chosen without branches, which the
   processor could not foresee.  Four searches run side by side, because each step of a search waits for the last. */
#define OPDI_SEARCH(type) { \
        int64_t low[4] = {0}, count[4] = {total, total, total, total};       /* position: low to low + count */ \
        for (int64_t most = total; most > 0; most /= 2) { \
            OPDI_UNROLL \
            for (int k = 0; k < 4; k++) { \
                const int64_t mid = low[k] + count[k] / 2, at = mid - (mid == total); \
                const type y = seq[order ? order[at] : at], x = v[k < n ? k : 0]; \
                opdi_search_step(&low[k], &count[k], right ? !(y > x) : !(y >= x)); \
            } \
        } \
        memcpy(out, low, (size_t)n * sizeof *out); \
    }
static void opdi_search_f64(const double *seq, const int64_t *order, int64_t total, const double *v, int64_t n,
                            int64_t *out, bool right) {
    OPDI_SEARCH(double)
}
static void opdi_search_i64(const int64_t *seq, const int64_t *order, int64_t total, const int64_t *v, int64_t n,
                            int64_t *out, bool right) {
    OPDI_SEARCH(int64_t)
}
/* opdi_search_all_f64 and opdi_search_all_i64 do the same for all `n` values, if seq is sorted and has no NaN.  A step
   leaves the same number of places for all values, so it takes fewer instructions than opdi_search_step. */
#define OPDI_SEARCH_EIGHT(above) \
    for (int64_t left = total, half; left > 0; left -= half) { \
        half = left - left / 2; \
        OPDI_UNROLL \
        for (int k = 0; k < 8; k++) { low[k] += half & -(int64_t)!(seq[low[k] + half - 1] above v[i + k]); } \
    }
#define OPDI_SEARCH_ALL(search) \
    int64_t i = 0; \
    for (; i + 8 <= n; i += 8) { \
        int64_t low[8] = {0}; \
        if (right) { OPDI_SEARCH_EIGHT(>) } \
        else { OPDI_SEARCH_EIGHT(>=) } \
        memcpy(out + i, low, sizeof low); \
    } \
    for (; i < n; i += 4) { search(seq, NULL, total, v + i, OPDI_MIN(n - i, (int64_t)4), out + i, right); }
static void opdi_search_all_f64(const double *seq, int64_t total, const double *v, int64_t n, int64_t *out,
                                bool right) {
    OPDI_SEARCH_ALL(opdi_search_f64)
}
static void opdi_search_all_i64(const int64_t *seq, int64_t total, const int64_t *v, int64_t n, int64_t *out,
                                bool right) {
    OPDI_SEARCH_ALL(opdi_search_i64)
}
/* Returns whether `total` numbers are sorted and not NaN: int64 if `whole`, else doubles. */
static bool opdi_search_is_sorted(const void *seq, int64_t total, bool whole) {
    const int64_t *const numbers = (const int64_t *)seq;
    const double *const x = (const double *)seq;
    bool sorted = whole || total == 0 || x[0] == x[0];
    for (int64_t i = 1; sorted && i < total; i++) { sorted = whole ? numbers[i - 1] <= numbers[i] : x[i - 1] <= x[i]; }
    return sorted;
}
/* Searches rows of seq [.., n] for the values of the same row of values [.., m], or seq [n] for values of any shape.
   sorter and `right` are as for opdi_search_f64.  The result has dtype int32 if `narrow` is set, else int64.  Returns
   0, or -1 and sets an error. */
static int opdi_search(opd_call *call, opd_tensor *seq, opd_tensor *values, opd_tensor *sorter, bool narrow,
                       bool right) {
    const bool whole = opd_dtype_is_integral((opd_scalar_type)seq->dtype, true);
    const opd_scalar_type dtype = whole ? OPD_INT64 : OPD_FLOAT64;
    const int64_t count = seq->ndim ? opdi_sizes(seq)[seq->ndim - 1] : 1;
    const int64_t rows = seq->ndim > 1 ? opdi_sizes(values)[values->ndim - 1] : OPDI_MAX(values->numel, (int64_t)1);
    if (narrow && count > INT32_MAX) {
        return opd_fail(OPD_ERROR_SHAPE, "searchsorted: the size of boundaries' last dimension should be less "
                        "than 2147483647");
    }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(values), values->ndim, narrow ? OPD_INT32 : OPD_INT64);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_staging(out, OPD_INT64);
    seq = scratch ? opdi_dense_as(seq, dtype) : NULL;
    values = seq ? opdi_dense_as(values, dtype) : NULL;
    if (!values || (sorter && !(sorter = opdi_packed(sorter)))) { return -1; }
    if (!sorter && seq->ndim == 1 && count <= values->numel && opdi_search_is_sorted(seq->data, count, whole)) {
        int64_t *const at = (int64_t *)(void *)scratch->data;
        const void *const numbers = seq->data, *const value = values->data;
        const int64_t n = values->numel;
        if (whole) { opdi_search_all_i64((const int64_t *)numbers, count, (const int64_t *)value, n, at, right); }
        else { opdi_search_all_f64((const double *)numbers, count, (const double *)value, n, at, right); }
        return opdi_staging_store(out, scratch);
    }
    for (int64_t i = 0, found; i < values->numel; i += found) {
        const int64_t row = seq->ndim > 1 ? i / rows : 0;
        const int64_t *order = sorter ? (const int64_t *)(const void *)sorter->data + row * count : NULL;
        const void *const text = seq->data + row * count * 8, *const value = values->data + i * 8;
        int64_t *const at = (int64_t *)(void *)scratch->data + i;
        found = OPDI_MIN((int64_t)4, seq->ndim > 1 ? (row + 1) * rows - i : values->numel - i);
        if (whole) { opdi_search_i64((const int64_t *)text, order, count, (const int64_t *)value, found, at, right); }
        else { opdi_search_f64((const double *)text, order, count, (const double *)value, found, at, right); }
    }
    return opdi_staging_store(out, scratch);
}
OPDI_COLD_BEGIN
/* Checks the arguments of searchsorted.  If seq [.., n] has leading dims, they must equal those of values.  sorter is
   NULL or has the sizes of seq and holds indices into seq's last dim.  Returns 0, or -1 and sets an error. */
static int opdi_search_check(opd_tensor *seq, opd_tensor *values, opd_tensor *sorter) {
    int64_t count = seq->ndim ? opdi_sizes(seq)[seq->ndim - 1] : 1;
    char first[256], second[256];
    if (seq->ndim == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "searchsorted: boundaries tensor should have positive dimension, but "
                        "got 0 dimension");
    }
    if (opd_dtype_is_complex((opd_scalar_type)seq->dtype)) {
        return opdi_dtype_fail("searchsorted_out_cpu", seq->dtype);
    }
    for (int dim = 0; seq->ndim > 1 && dim < seq->ndim - 1; dim++) {
        if (seq->ndim != values->ndim || opdi_sizes(seq)[dim] != opdi_sizes(values)[dim]) {
            return opd_fail(OPD_ERROR_SHAPE, "searchsorted: boundaries tensor should be 1 dimension or the "
                            "first N-1 dimensions of boundaries tensor and input value tensor must match, but we got "
                            "boundaries tensor %s and input value tensor %s", opdi_shape_text(seq, first),
                            opdi_shape_text(values, second));
        }
    }
    if (!sorter) { return 0; }
    if (!opdi_same_sizes(sorter, seq)) {
        return opd_fail(OPD_ERROR_SHAPE, "searchsorted: boundary and sorter must have the same size, but got "
                        "boundary tensor %s and got sorter tensor %s", opdi_shape_text(seq, first),
                        opdi_shape_text(sorter, second));
    }
    if (sorter->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "searchsorted: sorter must be a tensor of int64 but got dtype "
                        "%s", opd_dtype_name((opd_scalar_type)sorter->dtype));
    }
    if (!sorter->data) { return 0; }
    sorter = opdi_packed(sorter);
    for (int64_t i = 0; sorter && i < sorter->numel; i++) {
        const int64_t depth = ((const int64_t *)(const void *)sorter->data)[i];
        if (depth < 0 || depth >= count) {
            return opd_fail(OPD_ERROR_INDEX, "searchsorted: sorter index out of range");
        }
    }
    return sorter ? 0 : -1;
}
/* Converts *seq and *values to one dtype that holds the numbers of both; a wrapped number needs no conversion.  Returns
   0, or -1 and sets an error. */
static int opdi_search_promote(opd_tensor **seq, opd_tensor **values) {
    opd_tensor *both[2];
    both[0] = *seq;
    both[1] = *values;
    if (both[0]->dtype == both[1]->dtype || (both[1]->flags & OPDI_WRAPPED)) { return 0; }
    opd_scalar_type dtype = opdi_result_type(both, 2);
    *seq = opd_to_dtype(both[0], dtype);
    *values = opd_to_dtype(both[1], dtype);
    return *seq && *values ? 0 : -1;
}
/* Returns argument i, a Tensor or a Scalar, as a tensor.  A Scalar becomes a wrapped number, as in PyTorch. */
static opd_tensor *opdi_search_value(opd_call *call, int i) {
    const opd_value value = opd_arg_value(call, i);
    return value.tag == OPD_TAG_TENSOR ? value.u.t : opd_tensor_wrapped_number(value);
}
static int opdi_searchsorted_kernel(opd_call *call) {
    opd_tensor *seq = opd_arg_tensor(call, 0), *values = opdi_search_value(call, 1), *sorter = opd_arg_tensor(call, 5);
    bool right = opd_arg_bool(call, 3);
    if (!values) { return -1; }
    if (!opd_arg_is_none(call, 4)) {
        const char *side = opd_arg_str(call, 4);
        if (strcmp(side, "left") && strcmp(side, "right")) {
            return opd_fail(OPD_ERROR_ARGUMENT, "searchsorted: side can only be 'left' or 'right' but got %s",
                            side);
        }
        if (right && *side == 'l') {
            return opd_fail(OPD_ERROR_ARGUMENT, "searchsorted: side and right can't be set to opposites, got "
                            "side of left while right was True");
        }
        right = *side == 'r';
    }
    if (opdi_search_promote(&seq, &values) || opdi_search_check(seq, values, sorter)) { return -1; }
    return opdi_search(call, seq, values, sorter, opd_arg_bool(call, 2), right);
}
static int opdi_bucketize_check(const opd_tensor *seq) {
    return seq->ndim == 1 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "boundaries tensor must be 1 dimension, but got dim(%d)", seq->ndim);
}
static int opdi_bucketize_kernel(opd_call *call) {
    opd_tensor *values = opdi_search_value(call, 0), *seq = opd_arg_tensor(call, 1);
    if (!values) { return -1; }
    if (opdi_bucketize_check(seq)) { return -1; }
    if (opdi_search_promote(&seq, &values) || opdi_search_check(seq, values, NULL)) { return -1; }
    return opdi_search(call, seq, values, NULL, opd_arg_bool(call, 2), opd_arg_bool(call, 3));
}
/* The batching rule of searchsorted.  If all examples share the sequence, it is searched for the values of all examples
   in one call; otherwise the examples become leading dims of one call. */
static int opdi_searchsorted_batch(opd_call *call) {
    opd_tensor *seq = call->args[0].u.t, *values = call->args[1].u.t, *front[3], *result;
    opd_value args[OPD_MAX_ARGS];
    const bool sorted = call->args[5].tag == OPD_TAG_TENSOR;
    int64_t sizes[OPD_MAX_DIMS + 1];
    int at[3] = {-1, -1, -1}, ndim = values->ndim;
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    front[0] = opd_batch_arg(call, 0, &at[0]);
    front[1] = opd_batch_arg(call, 1, &at[1]);
    front[2] = opd_batch_arg(call, 5, &at[2]);
    if (seq->ndim == 0 || (seq->ndim > 1 && seq->ndim != ndim)) { return opdi_batch_unfit(call); }
    if (seq->ndim > 1 || at[0] >= 0 || at[2] >= 0) {
        front[0] = opd_batch_front(front[0], at[0]);
        front[1] = opd_batch_front(front[1], at[1]);
        at[1] = 0;
        sizes[0] = call->th->innermost.rule->size;
        sizes[1] = values->numel;
        if (seq->ndim == 1) { front[1] = opdi_maybe_reshape(front[1], sizes, 2); }
        if (sorted) { front[2] = opd_batch_front(front[2], at[2]); }
    }
    args[0].u.t = front[0];
    args[1].u.t = front[1];
    if (sorted) { args[5].u.t = front[2]; }
    if (!front[0] || !front[1] || (sorted && !front[2])) { return -1; }
    if (!(result = opd_call_op(call->op, args, call->op->nargs))) { return -1; }
    if (result->ndim == ndim + 1) { return opd_batch_return(call, result, at[1]); }
    memcpy(sizes + 1, opdi_sizes(values), sizeof *sizes * (size_t)ndim);
    return opd_batch_return(call, opdi_maybe_reshape(result, sizes, ndim + 1), 0);
}
static int opdi_bucketize_searched(opd_call *call) {
    opd_tensor *seq = opd_arg_tensor(call, 1);
    if (opdi_bucketize_check(seq)) { return -1; }
    return opd_return_tensor(call, opd_searchsorted_full(seq, opd_arg_tensor(call, 0), opd_arg_bool(call, 2),
                                                         opd_arg_bool(call, 3), OPD_NONE, OPD_NONE));
}
static int opdi_bucketize_batch(opd_call *call) {
    opd_value args[OPD_MAX_ARGS], ret;
    int dim;
    (void)opd_batch_arg(call, 1, &dim);
    if (dim >= 0) { return opdi_batch_as(call, opdi_bucketize_searched); }
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    args[0].u.t = opd_batch_arg(call, 0, &dim);
    return opd_call_all(call->op, &ret, args, call->op->nargs) ? -1 : opd_batch_return(call, ret.u.t, dim);
}
/* opd_searchsorted: the index at which each element of self would be inserted into a sorted sequence */
OPDI_OP(searchsorted_Tensor) {
    op->schema = "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor";
    op->cpu = op->fake = opdi_searchsorted_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_searchsorted_batch;
    op->out = "searchsorted.Tensor_out";
    op->cases = "[4], [2,3]";
}
/* opd_searchsorted_Scalar: the index at which the number self would be inserted into a sorted sequence */
OPDI_OP(searchsorted_Scalar) {
    op->schema = "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
        "str? side=None, Tensor? sorter=None) -> Tensor";
    op->cpu = op->fake = opdi_searchsorted_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "searchsorted.Scalar_out";
    op->cases = "[4], 0.5";
}
/* opd_bucketize: the number of the interval between sorted boundaries that each element of self falls into */
OPDI_OP(bucketize_Tensor) {
    op->schema = "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
        "Tensor";
    op->cpu = op->fake = opdi_bucketize_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_bucketize_batch;
    op->out = "bucketize.Tensor_out";
    op->cases = "[2,3], [4]";
}
/* opd_bucketize_Scalar: the number of the interval between sorted boundaries that self falls into */
OPDI_OP(bucketize_Scalar) {
    op->schema = "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> "
        "Tensor";
    op->cpu = op->fake = opdi_bucketize_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "bucketize.Scalar_out";
    op->cases = "0.5, [4]";
}
OPDI_COLD_END

OPDI_COLD_BEGIN
//== segment_reduce ====================================================================================================
//
//  Dim `axis` of data [.., size, ..] is cut into segments, and each segment is reduced to one number.  The segments are
//  given either by lengths [.., segments] or by offsets [.., segments + 1]: the positions at which each segment begins,
//  and the position after the last segment.  lengths and offsets also have the dims of data before axis.

typedef struct opdi_segments {
    int axis, how;                                /* how: the number of the reduction, see opdi_reduce_of */
    int64_t segments;
    opd_tensor *index;                            /* the segment of each element, counted from 1; 0: before the first,
                                                     segments + 1: after the last */
    opd_tensor *counts;                           /* [.., segments, 1, ..]: number of elements of each segment */
} opdi_segments;

/* Returns the number of the reduction `name`, as opdi_reduce_of does.  amax and amin may also be called max and min
   here. */
static int opdi_segments_fold_of(const char *name) {
    return opdi_reduce_of(strcmp(name, "max") == 0 ? "amax" : strcmp(name, "min") == 0 ? "amin" : name);
}
/* Checks the offsets if their values are known: they must be in [0, size] and never decrease.  If `whole`, the last one
   must be size.  Returns 0, or -1 and sets an error. */
static int opdi_segments_check(const opd_call *call, opd_tensor *offsets, int64_t size, bool whole) {
    while (offsets->flags & OPDI_BATCHED) { offsets = opdi_batched_of(offsets)->value; }
    if (offsets->backend == OPD_META) { return 0; }
    if (offsets->backend != OPD_CPU) { offsets = opd_to_device(offsets, opd_device_make(OPD_CPU, -1), OPD_INT64); }
    offsets = offsets && offsets->data ? opdi_dense_as(offsets, OPD_INT64) : offsets;
    if (!offsets || !offsets->data) { return opd_ok() ? 0 : -1; }
    const int64_t count = opdi_sizes(offsets)[offsets->ndim - 1];
    const int64_t *at = (const int64_t *)(const void *)offsets->data;
    for (int64_t i = 0; i < offsets->numel; i++) {
        if (at[i] < 0 || at[i] > size || (i % count && at[i] < at[i - 1])) {
            return opd_fail(OPD_ERROR_INDEX, "segments must lie in the %lld elements of data along axis, and no "
                            "segment may have a negative length", (long long)size);
        }
        if (whole && i % count == count - 1 && at[i] != size) {
            return opd_fail(OPD_ERROR_SHAPE, "%s(): Expected all rows of lengths along axis to sum to "
                            "data.size(lengths.dim()-1) when !unsafe.", call->op->schema->name);
        }
    }
    return 0;
}
/* Returns the offsets of the segments of data, as int64 [.., segments + 1]: where each segment begins, and where the
   last one ends.  Argument `at_offsets` of the call holds offsets; if it is None, argument `at` holds lengths.  On
   failure, returns NULL and sets an error. */
static opd_tensor *opdi_segments_offsets(opd_call *call, opd_tensor *data, int axis, int at, int at_offsets) {
    const bool given = !opd_arg_is_none(call, at_offsets);
    opd_tensor *offsets = given || !opd_arg_is_none(call, at) ? opd_arg_tensor(call, given ? at_offsets : at) : NULL;
    const char *const name = call->op->schema->name, *const which = given ? "offsets" : "lengths";
    if (!offsets) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s(): Either lengths or offsets must be defined.", name);
        return NULL;
    }
    if (offsets->dtype != OPD_INT64 && offsets->dtype != OPD_INT32) {
        (void)opd_fail(OPD_ERROR_DTYPE, "expected %s of dtype int32 or int64, but got %s", which,
                       opd_dtype_name(OPDI_DTYPE(offsets)));
        return NULL;
    }
    if (axis != offsets->ndim - 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s(): Expected axis to be the last dimension of %s but got %d.", name, which,
                       axis);
        return NULL;
    }
    for (int i = 0; i < axis; i++) {
        if (opdi_sizes(offsets)[i] != opdi_sizes(data)[i]) {
            (void)opd_fail(OPD_ERROR_SHAPE, "Expected %s to have data's size %lld in dimension %d, but got %lld", which,
                           (long long)opdi_sizes(data)[i], i, (long long)opdi_sizes(offsets)[i]);
            return NULL;
        }
    }
    if (given && opdi_sizes(offsets)[axis] == 0) {
        (void)opd_fail(OPD_ERROR_SHAPE, "Expected offsets to have an element or more along axis");
        return NULL;
    }
    offsets = opd_to_dtype(offsets, OPD_INT64);
    if (given || !offsets) { return offsets; }
    const int64_t front[] = {1, 0};
    return opd_constant_pad_nd(opd_cumsum(offsets, -1), opd_ints_of(front, 2));
}
/* Returns tensor with a zero added at each end of dim axis. */
static opd_tensor *opdi_segments_frame(opd_tensor *tensor, int axis) {
    int64_t pad[2 * OPD_MAX_DIMS];
    const int count = tensor ? tensor->ndim - axis : 0;
    for (int i = 0; i < count; i++) { pad[2 * i] = pad[2 * i + 1] = i == count - 1; }
    return tensor ? opd_constant_pad_nd(tensor, opd_ints_of(pad, 2 * count)) : NULL;
}
/* Reads the arguments of a segment reduction of data into *to.  Argument number `at` of the call is the name of the
   reduction.  arguments[0], arguments[1] and arguments[2] are the numbers of the arguments lengths, offsets and axis.
   If `whole`, lengths must sum to data's size.  Returns 0, or -1 and sets an error. */
static int opdi_segments_read(opd_call *call, opd_tensor *data, int at, const int *arguments, bool whole,
                              opdi_segments *to) {
    int64_t sizes[OPD_MAX_DIMS];
    to->axis = opdi_dim_of(opd_arg_int(call, arguments[2]), data->ndim);
    if (to->axis < 0 || (to->how = opdi_segments_fold_of(opd_arg_str(call, at))) < 0) { return -1; }
    if (data->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "data must have one dimension or more"); }
    if (opdi_kernel_dtype(OPDI_DTYPE(data), false, "segment_reduce") < 0) { return -1; }
    opd_tensor *offsets = opdi_segments_offsets(call, data, to->axis, arguments[0], arguments[1]);
    const int64_t size = opdi_sizes(data)[to->axis];
    whole = whole && opd_arg_is_none(call, arguments[1]);
    if (!offsets || opdi_segments_check(call, offsets, size, whole)) { return -1; }
    to->segments = opdi_sizes(offsets)[to->axis] - 1;
    opd_tensor *places = opd_arange_full(opd_value_int(size), opd_value_int(OPD_INT64), OPD_NONE,
                                         opd_value_device(opd_tensor_device(data)), OPD_NONE);
    opd_tensor *counts = opd_diff(offsets);
    memcpy(sizes, opdi_sizes(data), (size_t)data->ndim * sizeof *sizes);
    places = opdi_maybe_expand(places, sizes, to->axis + 1);
    to->index = opd_searchsorted_full(offsets, places, false, true, OPD_NONE, OPD_NONE);
    for (int i = to->axis + 1; i < data->ndim; i++) {
        to->index = opdi_maybe_unsqueeze(to->index, -1);
        counts = opdi_maybe_unsqueeze(counts, -1);
    }
    to->index = opdi_maybe_expand(to->index, sizes, data->ndim);
    to->counts = counts;
    return opd_ok() ? 0 : -1;
}
/* Returns src [.., size, ..] reduced to one number per segment by `how`, a name of scatter_reduce.  Empty segments get
   `fill`.  If with_fill, the reduction of each segment begins with `fill`. */
static opd_tensor *opdi_segments_fold(const opdi_segments *segments, opd_tensor *src, const char *how, opd_value fill,
                                      bool with_fill) {
    int64_t sizes[OPD_MAX_DIMS];
    if (!src) { return NULL; }
    memcpy(sizes, opdi_sizes(src), (size_t)src->ndim * sizeof *sizes);
    sizes[segments->axis] = segments->segments + 2;
    opd_tensor *all = opd_scatter_reduce_two_full(opd_new_full(src, opd_ints_of(sizes, src->ndim), fill),
                                                  segments->axis, segments->index, src, how, with_fill);
    return opdi_maybe_narrow(all, segments->axis, 1, segments->segments);
}
/* Returns for each element of data the value of its segment in tensor [.., segments, ..], or 0 if it is in no
   segment. */
static opd_tensor *opdi_segments_pick(const opdi_segments *segments, opd_tensor *tensor) {
    int64_t sizes[OPD_MAX_DIMS];
    if (!tensor || !segments->index) { return NULL; }
    memcpy(sizes, opdi_sizes(segments->index), (size_t)segments->index->ndim * sizeof *sizes);
    sizes[segments->axis] = segments->segments;
    tensor = opdi_maybe_expand(tensor, sizes, segments->index->ndim);
    return opd_gather(opdi_segments_frame(tensor, segments->axis), segments->axis, segments->index);
}
static int opdi_segment_reduce_kernel(opd_call *call) {
    static const int arguments[] = {2, 4, 5};
    opd_tensor *data = opd_arg_tensor(call, 0);
    const bool given = !opd_arg_is_none(call, 7);
    opdi_segments segments;
    if (!opd_arg_is_none(call, 3)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "segment_reduce(): indices based reduction is not supported yet.");
    }
    if (opdi_segments_read(call, data, 1, arguments, !opd_arg_bool(call, 6), &segments)) { return -1; }
    const opd_value fill = given ? opd_arg_value(call, 7) : opdi_reduce_start(segments.how, OPDI_DTYPE(data));
    const char *how = opdi_reduce_names[segments.how == 4 ? 0 : segments.how];
    opd_tensor *result = opdi_segments_fold(&segments, data, how, fill, given);
    if (segments.how == 4) {                      /* an empty segment has mean NaN, or initial if it is given */
        opd_tensor *counts = given ? opd_clamp_min(segments.counts, opd_value_int(1)) : segments.counts;
        return opd_return_tensor(call, opdi_by_count(result, counts));
    }
    return opd_return_tensor(call, opd_clone_full(result, opd_value_int(0)));
}
/* Returns for each element of data the sum of its segment in tensor [.., size, ..]. */
static opd_tensor *opdi_segments_sum(const opdi_segments *segments, opd_tensor *tensor) {
    return tensor ? opdi_segments_pick(segments, opdi_segments_fold(segments, tensor, "sum", opd_value_int(0), true))
        : NULL;
}
/* Computes the gradient of prod: grad times the product of the other elements of the segment, which is NaN if another
   element is NaN. */
static opd_tensor *opdi_segments_prod(const opdi_segments *segments, opd_tensor *grad, opd_tensor *data,
                                      opd_value initial) {
    opdi_zero_factors zeros = opdi_zero_factors_of(data);
    opd_tensor *lost = opd_isnan(data), *own = opd_to_dtype(lost, OPD_INT64);
    zeros.ones = opd_masked_fill_Scalar(zeros.ones, lost, opd_value_int(1));
    opd_tensor *rest = opdi_segments_fold(segments, zeros.ones, "prod", initial, true);
    opd_tensor *share = opd_div(opdi_segments_pick(segments, opd_mul(grad, rest)), zeros.ones);
    opd_tensor *const counts = opdi_segments_sum(segments, opd_to_dtype(zeros.zero, OPD_INT64)),
        *const sums = opdi_segments_sum(segments, zeros.live),
        *const squares = opdi_segments_sum(segments, zeros.live ? opd_mul(zeros.live, zeros.live) : NULL);
    share = opdi_times_zeros(share, &zeros, counts, sums, squares);
    return opd_masked_fill_Scalar(share, opd_gt(opdi_segments_sum(segments, own), own), opd_value_double(NAN));
}
/* Computes the gradient of data.  The gradient is, for sum, the grad of the segment; for mean, this grad divided by the
   number of elements; for max and min, this grad divided equally among the elements that equal the result or are NaN.
   For prod, see opdi_segments_prod. */
static int opdi__segment_reduce_backward_kernel(opd_call *call) {
    static const int arguments[] = {4, 5, 6};
    opd_tensor *grad = opd_arg_tensor(call, 0), *output = opd_arg_tensor(call, 1), *data = opd_arg_tensor(call, 2);
    const opd_value initial = opd_arg_is_none(call, 7) ? opd_value_int(1) : opd_arg_value(call, 7);
    int64_t sizes[OPD_MAX_DIMS];
    opdi_segments segments;
    if (opdi_segments_read(call, data, 3, arguments, false, &segments)) { return -1; }
    memcpy(sizes, opdi_sizes(data), (size_t)data->ndim * sizeof *sizes);
    sizes[segments.axis] = segments.segments;
    if (!opdi_has_sizes(grad, sizes, data->ndim) || !opdi_has_sizes(output, sizes, data->ndim)) {
        char first[256];
        return opd_fail(OPD_ERROR_SHAPE, "grad and output must have the sizes of the reduction of data, %s",
                        opdi_sizes_text(sizes, data->ndim, first, sizeof first));
    }
    if (opdi_same_dtype(data, grad)) { return -1; }
    if (segments.how == 0) { return opd_return_tensor(call, opdi_segments_pick(&segments, grad)); }
    if (segments.how == 1) { return opd_return_tensor(call, opdi_segments_prod(&segments, grad, data, initial)); }
    if (segments.how == 4) {
        grad = opdi_by_count(grad, opd_clamp_min(segments.counts, opd_value_int(1)));
        return opd_return_tensor(call, opdi_segments_pick(&segments, grad));
    }
    opd_tensor *hits = opd_logical_or(opd_eq(data, opdi_segments_pick(&segments, output)), opd_isnan(data));
    opd_tensor *counts = opdi_segments_fold(&segments, opd_to_dtype(hits, OPD_INT64), "sum", opd_value_int(0), true);
    grad = opdi_by_count(grad, opd_clamp_min(counts, opd_value_int(1)));
    return opd_return_tensor(call, opdi_where(hits, opdi_segments_pick(&segments, grad)));
}
static int opdi_segment_reduce_backward(opd_backward_call *bw) {
    opd_value args[8];
    static opd_op *op;
    args[0] = opd_value_tensor(opd_bw_grad(bw, 0));
    args[1] = opd_value_tensor(opd_bw_result(bw, 0));
    args[2] = opd_value_tensor(opd_bw_tensor(bw, 0));
    args[3] = opd_bw_value(bw, 1);
    args[4] = opd_value_tensor(opd_bw_tensor(bw, 2));
    args[5] = opd_value_tensor(opd_bw_tensor(bw, 4));
    args[6] = opd_bw_value(bw, 5);
    args[7] = opd_bw_value(bw, 7);
    for (int i = 4; i < 6; i++) { if (!args[i].u.t) { args[i] = opd_value_none(); } }
    opd_op *const backward = OPD_OP(&op, OPDI_NAME(_segment_reduce_backward, "aten::_segment_reduce_backward"));
    return opd_bw_return(bw, 0, opd_call_op(backward, args, 8));
}
/* opd_segment_reduce: cuts dim axis of data into segments and reduces each by sum, mean, prod, max or min */
OPDI_OP(segment_reduce) {
    op->schema = "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
        "offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor";
    op->any = opdi_segment_reduce_kernel; op->backward = opdi_segment_reduce_backward;
    op->save = "data, lengths, offsets, result";
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->out = "segment_reduce.out";
    op->cases = "[5,2], 'sum', lengths=[3]i2, unsafe=True; [4,3], 'mean', lengths=[4,2]i2, axis=1, unsafe=True, "
        "initial=0.5; [6], 'max', lengths=[3]i3, unsafe=True, initial=-9; [5,2], 'prod', lengths=[2]i3, unsafe=True";
}
/* opd__segment_reduce_backward: the gradient of segment_reduce's data */
OPDI_OP(_segment_reduce_backward) {
    op->schema = "_segment_reduce_backward(Tensor grad, Tensor output, Tensor data, str reduce, *, Tensor? "
        "lengths=None, Tensor? offsets=None, int axis=0, Scalar? initial=None) -> Tensor";
    op->composite = opdi__segment_reduce_backward_kernel;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_segment_reduce_backward.out";
    op->cases = "[3,2], [3,2], [5,2], 'sum', lengths=[3]i2; [2,2], [2,2], [5,2], 'mean', lengths=[2]i3";
}

//== isin ==============================================================================================================

/* Returns tensor converted to dtype.  A wrapped number is also moved to the device of `beside`. */
static opd_tensor *opdi_isin_as(opd_tensor *tensor, const opd_tensor *beside, opd_scalar_type dtype) {
    return tensor->flags & OPDI_WRAPPED ? opd_to_device(tensor, opd_tensor_device(beside), dtype)
        : opd_to_dtype(tensor, dtype);
}
/* Returns to the call which of `elements` are among `others` or, if `invert`, which are not.  If `others` has fewer
   than 8 elements, compares each element with all of them; otherwise sorts them and searches. */
static int opdi_isin(opd_call *call, opd_tensor *elements, opd_tensor *others, bool invert) {
    opd_tensor *both[2], *pair[2], *found;
    const int64_t flat = -1;
    both[0] = elements;
    both[1] = others;
    if (!elements || !others) { return -1; }
    for (int i = 0; i < 2; i++) {
        if (both[i]->dtype == OPD_BOOL || opd_dtype_is_complex(OPDI_DTYPE(both[i]))) {
            return opd_fail(OPD_ERROR_DTYPE, "Unsupported input type encountered for isin(): %s",
                            opd_dtype_name(OPDI_DTYPE(both[i])));
        }
    }
    const opd_scalar_type dtype = opdi_result_type(both, 2);
    elements = opdi_isin_as(elements, both[1], dtype);
    others = opdi_maybe_reshape(opdi_isin_as(others, both[0], dtype), &flat, 1);
    if (!elements || !others) { return -1; }
    if (others->numel < 8) {
        found = opd_any_dim(opd_eq(opd_unsqueeze(elements, -1), others), -1, false);
    } else {
        if (opd_sort_stable(pair, others, OPD_NONE, -1, false)) { return -1; }
        opd_tensor *at = opd_clamp(opd_searchsorted(pair[0], elements), OPD_NONE,
                                        opd_value_int(others->numel - 1));
        found = opd_eq(opd_take(pair[0], at), elements);
    }
    return opd_return_tensor(call, invert ? opd_logical_not(found) : found);
}
static int opdi_isin_Tensor_Tensor_kernel(opd_call *call) {
    return opdi_isin(call, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_bool(call, 3));
}
static int opdi_isin_Tensor_Scalar_kernel(opd_call *call) {
    opd_tensor *other = opd_tensor_wrapped_number(opd_arg_value(call, 1));
    return opdi_isin(call, opd_arg_tensor(call, 0), other, opd_arg_bool(call, 3));
}
static int opdi_isin_Scalar_Tensor_kernel(opd_call *call) {
    opd_tensor *element = opd_tensor_wrapped_number(opd_arg_value(call, 0));
    return opdi_isin(call, element, opd_arg_tensor(call, 1), opd_arg_bool(call, 3));
}
/* opd_isin_Tensor_Tensor: true for elements that are among test_elements; with invert, for those that are not */
OPDI_OP(isin_Tensor_Tensor) {
    op->schema = "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
        "invert=False) -> Tensor";
    op->any = opdi_isin_Tensor_Tensor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "isin.Tensor_Tensor_out";
    op->cases = "[2,3]i5, [2]i5; [2,3]i5, [2,5]i3, invert=True; [3], []i3";
}
/* opd_isin_Tensor_Scalar: true for elements that equal test_element */
OPDI_OP(isin_Tensor_Scalar) {
    op->schema = "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
        "invert=False) -> Tensor";
    op->any = opdi_isin_Tensor_Scalar_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "isin.Tensor_Scalar_out";
    op->cases = "[2,3]i3, 1; [2,3]i3, 1.5, invert=True";
}
/* opd_isin_Scalar_Tensor: true if element is among test_elements */
OPDI_OP(isin_Scalar_Tensor) {
    op->schema = "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
        "invert=False) -> Tensor";
    op->any = opdi_isin_Scalar_Tensor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "isin.Scalar_Tensor_out";
    op->cases = "1, [2,3]i3; 2, [9]i3";
}
OPDI_COLD_END
