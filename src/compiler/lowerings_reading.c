#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>lowered_reads  operators that read elements at indices, as loops
//
//  Lowerings (see >>lowerings) of operators that read elements at indices, and of pooling, scans and sorting.
//----------------------------------------------------------------------------------------------------------------------

//== reading at indices ================================================================================================

/* Adds an index to a load: the offset of its element grows by `stride` times the value of `index`.  The index must be
   below `size`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_index_by(opdi_expr *load, opdi_expr *index, int64_t stride, int64_t size) {
    if (!load || !index) { return -1; }
    if (load->nin == OPDI_NEST_INDICES) {
        return opd_fail(OPD_ERROR_ARGUMENT, "more than 4 indices cannot be compiled");
    }
    load->in[load->nin] = opdi_expr_cast(index, OPD_INT64);
    load->index_strides[load->nin] = stride;
    load->index_sizes[load->nin++] = size;
    return 0;
}
OPDI_INTERNAL int opdi_lower_embedding(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 0), *const indices = opd_arg_tensor(call, 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(result);
    const int weights[2] = {-1, ndim - 1};
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), ndim, 0);
    opdi_expr *const load = nest ? opdi_expr_load(weight, weights) : NULL;
    if (!load || opdi_lower_index_by(load, opdi_expr_load(indices, by), opd_strides(weight)[0], opd_sizes(weight)[0]) ||
        opdi_nest_out(nest, result, by)) { return -1; }
    return opdi_nest_add(nest, load);
}
/* Records that `result` gets the elements of self whose indices along `dim` are in `index`.  If `gather` is true,
   `index` has the dims of the result; otherwise it has one dim, and applies to all positions in the other dims.
   Returns 0, or -1 and sets an error. */
static int opdi_lower_take(opd_tensor *result, opd_tensor *self, opd_tensor *index, int64_t dim, bool gather) {
    const int ndim = opd_ndim(result);
    int by[OPD_MAX_DIMS], others[OPD_MAX_DIMS];
    if (ndim == 0 || opd_ndim(self) != ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gather of a tensor without dims cannot be compiled");
    }
    dim = dim < 0 ? dim + ndim : dim;
    for (int i = 0; i < ndim; i++) {
        by[i] = i;
        others[i] = i == dim ? -1 : i;
    }
    const int row = (int)dim;
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), ndim, 0);
    opdi_expr *const load = nest ? opdi_expr_load(self, others) : NULL;
    if (!load || opdi_lower_index_by(load, opdi_expr_load(index, gather ? by : &row), opd_strides(self)[dim],
                                     opd_sizes(self)[dim]) || opdi_nest_out(nest, result, by)) { return -1; }
    return opdi_nest_add(nest, load);
}
/* Lowers gather, whose index has the dims of self, and index_select, whose index has one dim.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_lower_gather(opd_call *call) {
    const bool gather = strstr(opd_op_name(opd_call_operator(call)), "gather") != NULL;
    return opd_results_from_fake(call) || opdi_lower_take(opd_call_rets(call)[0].u.t, opd_arg_tensor(call, 0),
        opd_arg_tensor(call, 2), opd_arg_int(call, 1), gather) ? -1 : 0;
}
/* Fills *places for tensor[indices].  Does not support masks.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_places_of(opdi_lower_places *places, const opd_tensor *tensor, opd_tensors indices) {
    int first = -1, last = -1, given = 0;
    memset(places, 0, sizeof *places);
    for (int i = 0; i < (int)indices.n; i++) {
        if (!indices.data[i]) { continue; }
        if (opd_dtype(indices.data[i]) == OPD_BOOL || opd_dtype(indices.data[i]) == OPD_UINT8) {
            return opd_fail(OPD_ERROR_ARGUMENT, "a mask as an index makes a size that depends on data, which cannot be "
                            "compiled");
        }
        first = first < 0 ? i : first;
        last = i;
        given++;
        places->wide = OPDI_MAX(places->wide, opd_ndim(indices.data[i]));
    }
    places->where = last - first + 1 == given ? OPDI_MAX(first, 0) : 0;
    places->ndim = opd_ndim(tensor) - given + places->wide;
    for (int i = 0; i < places->wide; i++) { places->sizes[places->where + i] = 1; }
    for (int i = 0, next = 0; i < opd_ndim(tensor); i++) {
        const opd_tensor *const index = i < (int)indices.n ? indices.data[i] : NULL;
        if (next == places->where) { next += places->wide; }
        places->dims[i] = index ? -1 : next++;
        if (!index) { places->sizes[places->dims[i]] = opd_sizes(tensor)[i]; }
        for (int k = 0; index && k < opd_ndim(index); k++) {
            int64_t *const size = &places->sizes[places->where + places->wide - opd_ndim(index) + k];
            *size = *size == 1 ? opd_sizes(index)[k] : *size;
        }
    }
    return 0;
}
/* Adds the elements of the tensors `indices` as indices to a load or store.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_places_by(opdi_expr *expr, const opdi_lower_places *places, const opd_tensor *tensor,
                                       opd_tensors indices) {
    int by[OPD_MAX_DIMS];
    expr->wraps = true;
    for (int i = 0; i < (int)indices.n; i++) {
        opd_tensor *const index = indices.data[i];
        for (int k = 0; index && k < opd_ndim(index); k++) {
            by[k] = opd_sizes(index)[k] == 1 ? -1 : places->where + places->wide - opd_ndim(index) + k;
        }
        if (index && opdi_lower_index_by(expr, opdi_expr_load(index, by), opd_strides(tensor)[i],
                                         opd_sizes(tensor)[i])) { return -1; }
    }
    return 0;
}
/* Lowers index: self[indices], with integer tensors for some dims.  The index tensors are broadcast.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_lower_index(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_tensors indices = opd_arg_tensors(call, 1);
    opdi_lower_places places;
    int by[OPD_MAX_DIMS];
    if (opdi_lower_places_of(&places, self, indices) || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    for (int i = 0; i < opd_ndim(result); i++) { by[i] = i; }
    if (opd_numel(result) == 0) { return 0; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), opd_ndim(result), 0);
    opdi_expr *const load = nest ? opdi_expr_load(self, places.dims) : NULL;
    if (!load || opdi_nest_out(nest, result, by) || opdi_lower_places_by(load, &places, self, indices)) { return -1; }
    return opdi_nest_add(nest, load);
}

/* Returns a load of the element, selected by loop `loop`, of `count` integers that are known when the graph is
   compiled.  (opdi_lower_weight_row does this for floats.) */
static opdi_expr *opdi_lower_constant_row(const int64_t *numbers, int64_t count, int loop) {
    opd_tensor *const host = opd_empty(opd_ints_of(&count, 1), OPD_INT64);
    if (!host) { return NULL; }
    memcpy(opd_data_i64(host), numbers, (size_t)count * sizeof *numbers);
    opd_tensor *const row = opd_to_device(host, opd_device_make(OPD_LAZY, 0), OPD_INT64);
    return row ? opdi_expr_load(row, &loop) : NULL;
}
static opdi_expr *opdi_lower_weight_row(const double *numbers, int64_t count, int loop, opd_scalar_type dtype) {
    opd_tensor *host = opd_empty(opd_ints_of(&count, 1), OPD_FLOAT64);
    if (!host) { return NULL; }
    memcpy(opd_data_f64(host), numbers, (size_t)count * sizeof *numbers);
    host = opd_to_dtype(host, dtype);
    opd_tensor *const row = host ? opd_to_device(host, opd_device_make(OPD_LAZY, 0), dtype) : NULL;
    return row ? opdi_expr_load(row, &loop) : NULL;
}
OPDI_INTERNAL double opdi_lower_rounded(double value, bool exactly) { return exactly ? value : (double)(float)value; }
/* Fails for images of bytes: their kernel interpolates with integers, and rounds after each dim.  Returns 0, or -1 and
   sets an error, after which the operator is called. */
OPDI_INTERNAL int opdi_lower_not_bytes(const opd_tensor *self) {
    return opd_dtype(self) != OPD_UINT8 ? 0
        : opd_fail(OPD_ERROR_NO_KERNEL, "interpolation of uint8 images cannot be written as C");
}
/* Lowers upsample_nearest2d, _nearest_exact2d and upsample_bilinear2d.  The elements that each row and column reads are
   known when the graph is compiled.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_upsample(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool linear = strstr(name, "bilinear") != NULL, exact = strstr(name, "exact") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const bool corners = linear && opd_arg_bool(call, 2);
    if ((linear && opdi_lower_not_bytes(self)) || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), 4, 0);
    const int by[4] = {0, 1, 2, 3}, outer[4] = {0, 1, -1, -1};
    opdi_expr *at[2][2] = {{NULL, NULL}, {NULL, NULL}}, *part[2] = {NULL, NULL};
    if (!nest || opdi_nest_out(nest, result, by)) { return -1; }
    for (int k = 0; k < 2; k++) {
        const int64_t in = opd_sizes(self)[2 + k], out = opd_sizes(result)[2 + k];
        const opd_value given = opd_arg_value(call, (linear ? 3 : 2) + k);
        const double factor = given.tag == OPD_TAG_FLOAT && given.u.d > 0 ? 1 / given.u.d : (double)in / (double)out;
        const bool exactly = wide == OPD_FLOAT64;    /* positions are computed in the dtype in which sums are
                                                        computed */
        const double scale = opdi_lower_rounded(corners ? out > 1 ? (double)(in - 1) / (double)(out - 1) : 0 : factor,
            exactly);
        int64_t *const low = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)out * 3 * sizeof *low);
        if (!low) { return -1; }
        int64_t *const high = low + out;
        double *const weight = (double *)(void *)(high + out);
        for (int64_t i = 0; i < out; i++) {
            const double half = linear || exact ? 0.5 : 0, middle = opdi_lower_rounded(scale * ((double)i + half),
                exactly);
            const double place = corners ? opdi_lower_rounded(scale * (double)i, exactly)
                : linear ? opdi_lower_rounded(middle - 0.5, exactly) : middle;
            const double clipped = place < 0 ? 0 : place;
            low[i] = OPDI_MIN((int64_t)clipped, in - 1);
            high[i] = OPDI_MIN(low[i] + 1, in - 1);
            weight[i] = OPDI_MIN(opdi_lower_rounded(clipped - (double)low[i], exactly), 1.0);
        }
        at[k][0] = opdi_lower_constant_row(low, out, 2 + k);
        at[k][1] = linear ? opdi_lower_constant_row(high, out, 2 + k) : NULL;
        part[k] = linear ? opdi_lower_weight_row(weight, out, 2 + k, wide) : NULL;
    }
    opdi_expr *corner[4] = {NULL, NULL, NULL, NULL};
    for (int k = 0; k < (linear ? 4 : 1); k++) {
        opdi_expr *const load = opdi_expr_load(self, outer);
        if (!load || opdi_lower_index_by(load, at[0][k / 2], opd_strides(self)[2], opd_sizes(self)[2]) ||
            opdi_lower_index_by(load, at[1][k % 2], opd_strides(self)[3], opd_sizes(self)[3])) { return -1; }
        corner[k] = linear ? opdi_expr_cast(load, wide) : load;
    }
    if (!linear) { return opdi_nest_add(nest, corner[0]); }
    opdi_expr *rows[2];
    for (int k = 0; k < 3; k++) {                 /* first + part * (second - first): twice along columns, then along
                                                     rows */
        opdi_expr *const first = k < 2 ? corner[2 * k] : rows[0], *const second = k < 2 ? corner[2 * k + 1] : rows[1];
        opdi_expr *const more = opdi_expr_formula(OPD_FORMULA_mul, wide, part[k < 2],
                                                  opdi_expr_formula(OPD_FORMULA_sub, wide, second, first));
        opdi_expr *const sum = opdi_expr_formula(OPD_FORMULA_add, wide, first, more);
        if (k < 2) { rows[k] = sum; } else { return opdi_nest_add(nest, opdi_expr_cast(sum, nest->out.dtype)); }
    }
    return -1;
}

OPDI_INTERNAL opd_tensor *opdi_lower_known(const double *numbers, int64_t count, int dim, int ndim,
                                           opd_scalar_type dtype);
/* Returns sums divided by a number or tensor; quotients of integers are rounded towards zero. */
static opd_tensor *opdi_lower_quotient(opd_tensor *sums, opd_value by) {
    const bool whole = sums && opd_dtype_is_integral(opd_dtype(sums), true);
    if (by.tag == OPD_TAG_TENSOR) { return whole ? opd_div_Tensor_mode(sums, by.u.t, "trunc") : opd_div(sums, by.u.t); }
    return whole ? opd_div_Scalar_mode(sums, by, "trunc") : opd_div_Scalar(sums, by);
}
/* Divides the sum of each window by the number of its elements, one dim after another.  If `outside` is true, elements
   in the padding count, too.  Returns the means, or NULL and sets an error. */
static opd_tensor *opdi_lower_pool_means(opd_tensor *sums, const opd_tensor *self, const opdi_lower_pool *pool,
                                         bool outside) {
    for (int i = 0; i < pool->count && sums; i++) {
        const int dim = opd_ndim(sums) - pool->count + i;
        const int64_t size = opd_sizes(sums)[dim], in = opd_sizes(self)[dim], pad = pool->before[i];
        double *const counts = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)size * sizeof *counts);
        if (!counts) { return NULL; }
        for (int64_t k = 0; k < size; k++) {
            const int64_t first = k * pool->steps[i] - pad, end = OPDI_MIN(first + pool->window[i], in + pad);
            counts[k] = (double)(outside ? end - first : OPDI_MIN(end, in) - OPDI_MAX(first, 0));
        }
        opd_tensor *const by = opdi_lower_known(counts, size, dim, opd_ndim(sums), opd_dtype(sums));
        sums = by ? opdi_lower_quotient(sums, opd_value_tensor(by)) : NULL;
    }
    return sums;
}
/* Lowers avg_pool2d and similar operators: sums of windows, divided by the number of elements that count.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_avg_pool(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    opdi_lower_pool pool;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(self);
    const bool whole = opd_arg_bool(call, 4), outside = opd_arg_bool(call, 5);
    const opd_value divisor = opd_call_nargs(call) > 6 ? opd_arg_value(call, 6) : opd_value_none();
    opdi_lower_pool_of(&pool, call, self, result, false);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    opd_tensor *const padded = opdi_lower_padded(opd_to_dtype(self, wide), ndim - pool.count, pool.before, pool.after,
        NULL,
                                                 opd_value_int(0));
    opd_tensor *const sums = opdi_lower_empty(opd_sizes(result), ndim, wide);
    if (!padded || !sums || opdi_lower_pool_into(sums, padded, &pool, OPDI_REDUCTION_SUM)) { return -1; }
    int64_t count = 1;
    bool plain = true;
    for (int i = 0; i < pool.count; i++) {
        count *= pool.window[i];
        plain = plain && (outside ? !whole : !pool.before[i] && !pool.after[i]);
    }
    if (divisor.tag == OPD_TAG_INT) {
        count = divisor.u.i;
        plain = true;
    }
    if (!plain) { return opdi_lower_return(call, 0, opdi_lower_pool_means(sums, self, &pool, outside)); }
    return opdi_lower_return(call, 0, opdi_lower_quotient(sums, opd_value_int(count)));
}
OPDI_INTERNAL int opdi_lower_adaptive_means(opd_call *call, int count);
/* Lowers _adaptive_avg_pool2d if all its windows have the same size.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_adaptive(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    opdi_lower_pool pool;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(self);
    memset(&pool, 0, sizeof pool);
    pool.count = 2;
    int64_t count = 1;
    for (int i = 0; i < 2; i++) {
        const int64_t in = opd_sizes(self)[ndim - 2 + i], out = opd_sizes(result)[ndim - 2 + i];
        if (!out || in % out) { return opdi_lower_adaptive_means(call, 2); }
        pool.window[i] = pool.steps[i] = in / out;
        pool.dilation[i] = 1;
        count *= in / out;
    }
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    opd_tensor *const sums = opdi_lower_empty(opd_sizes(result), ndim, wide);
    if (!sums || opdi_lower_pool_into(sums, self, &pool, OPDI_REDUCTION_SUM)) { return -1; }
    return opdi_lower_return(call, 0, opdi_lower_quotient(sums, opd_value_int(count)));
}
/* Records one step of a scan along `dim`.  If `more` is false, copies element 0 of self to element 0 of `out`.
   Otherwise computes element i + 1 of `out`, for all i, by the pointwise formula from element i of `out` and element i
   + 1 of self.  Returns 0, or -1 and sets an error. */
static int opdi_lower_add_up(opd_tensor *out, opd_tensor *self, int dim, bool more, opd_formula formula) {
    const int64_t count = opd_sizes(self)[dim], stride = opd_strides(out)[dim];
    int64_t sizes[OPD_MAX_DIMS];
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(self); i++) {
        sizes[i] = i != dim ? opd_sizes(self)[i] : more ? count - 1 : OPDI_MIN(count, 1);
        by[i] = i;
    }
    opdi_nest *const nest = opdi_nest_new(sizes, opd_ndim(self), 0);
    opdi_expr *load = nest ? opdi_expr_load(self, by) : NULL;
    if (!load || opdi_nest_out(nest, out, by)) { return -1; }
    if (more) {
        load->access.offset += opd_strides(self)[dim];
        nest->out.offset += stride;
        nest->follows = true;
    }
    load = opdi_expr_cast(load, opd_dtype(out));
    return opdi_nest_add(nest, more ? opdi_expr_formula(formula, opd_dtype(out), opdi_expr_load(out, by), load) : load);
}
/* Returns a scan of self along `dim`, as a tensor of dtype `dtype`.  Result 0 is element 0, and each further result is
   computed by the pointwise formula from the previous result and the next element.  On failure, returns NULL and sets
   an error. */
static opd_tensor *opdi_lower_scanned(opd_tensor *self, int dim, opd_formula formula, opd_scalar_type dtype) {
    opd_tensor *const out = opdi_lower_empty(opd_sizes(self), opd_ndim(self), dtype);
    if (!out || !opd_numel(self)) { return out; }
    if (opdi_lower_add_up(out, self, dim, false, formula) ||
        (opd_sizes(self)[dim] > 1 && opdi_lower_add_up(out, self, dim, true, formula))) { return NULL; }
    return out;
}
/* Lowers cumsum, cumprod and logcumsumexp to scans.  Floats are computed in double.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_lower_cumsum(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t given = opd_arg_int(call, 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(self), dim = (int)(given < 0 ? given + ndim : given);
    const bool floating = opd_dtype_is_floating(opd_dtype(result));
    if (floating && opd_same_bits()) { return opdi_same_refuse(name); }      /* it adds -0 to 0; a copy does not */
    if (!ndim) { return opdi_lower_return(call, 0, self); }
    self = opd_to_dtype(self, opd_dtype(result));
    opd_tensor *const out = !self ? NULL : opdi_lower_scanned(self, dim, strstr(name, "cumprod") ? OPD_FORMULA_mul
        : strstr(name, "logcum") ? OPD_FORMULA_logaddexp : OPD_FORMULA_add, floating ? OPD_FLOAT64 : OPD_INT64);
    return out && opd_numel(self) ? opdi_lower_return(call, 0, out) : out ? 0 : -1;
}
/* Lowers cummax and cummin.  The index names the last element that equals the largest or smallest value so far.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_cummax(opd_call *call) {
    const bool most = strstr(opd_op_name(opd_call_operator(call)), "cummax") != NULL;
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t given = opd_arg_int(call, 1);
    int64_t steps[OPD_MAX_DIMS] = {0};
    if (opd_results_from_fake(call)) { return -1; }
    const int ndim = opd_ndim(self), dim = (int)(given < 0 ? given + ndim : given);
    const opd_scalar_type dtype = opdi_lower_wide(opd_dtype(self));
    if (!ndim || !opd_numel(self)) { return opd_fail(OPD_ERROR_ARGUMENT, "an empty cummax cannot be compiled"); }
    steps[dim] = 1;
    self = opd_to_dtype(self, dtype);
    opd_tensor *const out = self
        ? opdi_lower_scanned(self, dim, most ? OPD_FORMULA_maximum : OPD_FORMULA_minimum, dtype) : NULL;
    opd_tensor *const places = out ? opdi_lower_counts(opd_sizes(self), ndim, steps, 0) : NULL;
    opd_tensor *here = places ? opd_eq(self, out) : NULL;
    if (here && opd_dtype_is_floating(dtype)) { here = opd_logical_or(here, opd_isnan(self)); }
    opd_tensor *const at = here ? opd_where_self(here, places, opd_zeros_like(places)) : NULL;
    if (!at || opdi_lower_return(call, 0, out)) { return -1; }
    return opdi_lower_return(call, 1, opdi_lower_scanned(at, dim, OPD_FORMULA_maximum, OPD_INT64));
}

//== sorting ===========================================================================================================

/* Returns the indices along `dim` of the first `count` elements in sorted order, which is descending if `most` is true.
   On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_lower_order(opd_tensor *self, int dim, int64_t count, bool most) {
    const int ndim = opd_ndim(self), last = ndim - 1;
    const int64_t rows = opd_sizes(self)[dim];
    int64_t sizes[OPD_MAX_DIMS + 1];
    int by[OPD_MAX_DIMS], from[OPD_MAX_DIMS];
    opd_tensor *const keys = opd_to_dtype(self, opdi_lower_wide(opd_dtype(self)));
    for (int i = 0, at = 0; i < ndim; i++) {      /* the loops: first the other dims, then the results, then the keys */
        by[i] = i == dim ? last : at;
        from[i] = i == dim ? ndim : at;
        sizes[by[i]] = i == dim ? count : opd_sizes(self)[i];
        at += i != dim;
    }
    opd_tensor *out = opdi_lower_empty(sizes, ndim, OPD_INT64);
    out = out ? opd_movedim(out, last, dim) : NULL;
    sizes[ndim] = rows;
    opdi_nest *const nest = keys && out ? opdi_nest_new(sizes, ndim + 1, 1) : NULL;
    opdi_expr *const load = nest ? opdi_expr_load(keys, from) : NULL;
    if (!load || opdi_nest_out(nest, out, by)) { return NULL; }
    nest->reduction = most ? OPDI_REDUCTION_MOST : OPDI_REDUCTION_LEAST;
    return opdi_nest_add(nest, load) ? NULL : out;
}
/* Lowers sort and topk, which return elements and indices, and argsort, which returns only indices. */
OPDI_INTERNAL int opdi_lower_sort(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool top = strstr(name, "topk") != NULL, stable = strstr(name, "stable") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int at = top || stable ? 2 : 1;
    const int64_t given = opd_arg_int(call, at);
    const bool most = opd_arg_bool(call, at + 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    if (opd_ndim(self) == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "sorting a tensor without dims cannot be compiled");
    }
    const int dim = (int)(given < 0 ? given + opd_ndim(self) : given);
    if (!opd_numel(result)) { return 0; }
    opd_tensor *const order = opdi_lower_order(self, dim, opd_sizes(result)[dim], most);
    if (!order || strstr(name, "argsort")) { return order ? opdi_lower_return(call, 0, order) : -1; }
    return opdi_lower_take(result, self, order, dim, true) || opdi_lower_return(call, 1, order) ? -1 : 0;
}

//== sums, means and maxima of bags of rows (embedding_bag) ============================================================

/* Returns an expression with the value 0.  When it is computed in a run, it checks that `value` is in [0, size).  On
   failure, returns NULL and sets an error. */
static opdi_expr *opdi_lower_checked(opdi_expr *value, int64_t size) {
    const int64_t one = 1;
    int none = -1;
    opd_tensor *const zero = opdi_lower_empty(&one, 1, OPD_INT64);
    if (!zero || !opd_fill_(zero, opd_value_int(0))) { return NULL; }
    opdi_expr *const load = opdi_expr_load(zero, &none);
    return load && opdi_lower_index_by(load, value, 0, size) == 0 ? load : NULL;
}
static opdi_expr *opdi_lower_sum_of(opdi_expr *x, opdi_expr *y) {
    return opdi_expr_formula(OPD_FORMULA_add, OPD_INT64, x, y);
}
/* Returns `offsets`, the index at which each bag begins, as int64.  Runs check that the first offset is 0, that the
   offsets never decrease, and that none is larger than `total`. */
static opd_tensor *opdi_lower_bags(opd_tensor *offsets, int64_t total) {
    const int64_t count = opd_numel(offsets);
    int by = 0;
    opd_tensor *const out = opdi_lower_empty(&count, 1, OPD_INT64);
    opd_tensor *const wide = opd_to_dtype(offsets, OPD_INT64);
    for (int part = 0; part < 2 && out && wide && opd_ok(); part++) {     /* part 0: the first offset; part 1: the
                                                                             others */
        const int64_t size = part ? count - 1 : 1;
        if (!size) { break; }
        opdi_nest *const nest = opdi_nest_new(&size, 1, 0);
        opdi_expr *const here = nest ? opdi_expr_load(wide, &by) : NULL, *const before = opdi_expr_load(wide, &by);
        if (!here || !before || opdi_nest_out(nest, out, &by)) { return NULL; }
        if (part) {
            here->access.offset += opd_strides(wide)[0];
            nest->out.offset++;
        }
        opdi_expr *const more = part ? opdi_expr_formula(OPD_FORMULA_sub, OPD_INT64, here, before) : here;
        opdi_expr *const zero = opdi_lower_checked(more, part ? total + 1 : 1);
        opdi_expr *const inside = opdi_lower_checked(here, total + 1);
        if (!zero || !inside ||
            opdi_nest_add(nest, opdi_lower_sum_of(here, opdi_lower_sum_of(zero, inside)))) { return NULL; }
    }
    return opd_ok() ? out : NULL;
}
/* For each i, records the addition of row indices[i] of `weight`, times factors[i] if `factors` is not NULL, to row
   bags[i] of `out`.  Returns 0, or -1 and sets an error. */
static int opdi_lower_add_rows(opd_tensor *out, opd_tensor *weight, opd_tensor *indices, opd_tensor *bags,
                               opd_tensor *factors) {
    const int64_t sizes[2] = {opd_numel(indices), opd_sizes(weight)[1]};
    const int row = 0, column[2] = {-1, 1};
    const opd_scalar_type wide = opd_dtype(out);
    opdi_nest *const nest = opdi_nest_new(sizes, 2, 0);
    opdi_expr *const load = nest ? opdi_expr_load(weight, column) : NULL, *const place = opdi_expr_new(OPDI_EXPR_PLACE,
        wide);
    opdi_expr *const was = load ? opdi_expr_load(out, column) : NULL;
    if (!was || !place || opdi_nest_out(nest, out, column) ||
        opdi_lower_index_by(load, opdi_expr_load(indices, &row), opd_strides(weight)[0], opd_sizes(weight)[0]) ||
        opdi_lower_index_by(was, opdi_expr_load(bags, &row), opd_strides(out)[0], opd_sizes(out)[0]) ||
        opdi_lower_index_by(place, opdi_expr_load(bags, &row), opd_strides(out)[0], opd_sizes(out)[0])) { return -1; }
    opdi_expr *part = opdi_expr_cast(load, wide);
    if (factors) {
        part = opdi_expr_formula(OPD_FORMULA_mul, wide, part, opdi_expr_cast(opdi_expr_load(factors, &row), wide));
    }
    nest->place = place;
    return part ? opdi_nest_add(nest, opdi_expr_formula(OPD_FORMULA_add, wide, was, part)) : -1;
}
/* Returns the number of the bag of each of `total` indices: the number of bags that begin at the index or before it,
   minus 1. */
static opd_tensor *opdi_lower_bag_of(opd_tensor *begin, int64_t total) {
    const int64_t dim = 0, one = 1;
    opd_tensor *const numbers = opdi_lower_counts(&total, 1, &one, 0);
    if (!numbers) { return NULL; }
    opd_tensor *const begun = opd_le(opd_unsqueeze(begin, 1), opd_unsqueeze(numbers, 0));
    return begun ? opd_sub_Scalar(opd_sum_dim(begun, opd_ints_of(&dim, 1), false), opd_value_int(1)) : NULL;
}
/* Returns the number of indices in each bag.  `begin` has the first index of each bag, and `total` is the number of
   indices. */
static opd_tensor *opdi_lower_bag_sizes(opd_tensor *begin, int64_t total) {
    const int64_t last = opd_numel(begin) - 1;
    opd_tensor *const counts = opd_empty_like(begin);
    if (counts && last > 0) {
        (void)opd_copy_(opd_narrow(counts, 0, 0, last),
                        opd_sub(opd_narrow(begin, 0, 1, last), opd_narrow(begin, 0, 0, last)));
    }
    opd_tensor *const rest = counts ? opd_narrow(begin, 0, last, 1) : NULL;
    (void)opd_copy_(rest ? opd_narrow(counts, 0, last, 1) : NULL,
                    opd_add_Scalar(opd_neg(rest), opd_value_int(total)));
    return opd_ok() ? counts : NULL;
}
OPDI_INTERNAL int opdi_lower_put_accumulate(opd_tensor *acc, opd_tensor *values, const int *dims, opdi_expr *place,
                                            opd_formula formula);
OPDI_INTERNAL opdi_expr *opdi_lower_row_place(opd_tensor *acc, int dim, opd_tensor *index, bool row, int *dims);
/* Tensors for the maxima of bags.  rows [total, d]: the selected rows.  bag: the number of each row's bag.  first: the
   first row of each bag.  most: the maxima.  place: for each maximum, the number of the row that has it. */
typedef struct opdi_lower_maxima { opd_tensor *rows, *bag, *first, *most, *place; } opdi_lower_maxima;
/* Returns a load of the element of `acc` for the bag of the current row.  If `stores` is true, also makes the nest
   store its value in this element. */
static opdi_expr *opdi_lower_of_bag(opdi_nest *nest, opd_tensor *acc, opd_tensor *bag, bool stores) {
    const int row = 0, column[2] = {-1, 1};
    opdi_expr *const was = opdi_expr_load(acc, column), *const place = opdi_expr_new(OPDI_EXPR_PLACE, opd_dtype(acc));
    if (!was || !place || opdi_lower_index_by(was, opdi_expr_load(bag, &row), opd_strides(acc)[0], opd_sizes(acc)[0]) ||
        opdi_lower_index_by(place, opdi_expr_load(bag, &row), opd_strides(acc)[0], opd_sizes(acc)[0])) { return NULL; }
    if (!stores) { return was; }
    nest->place = place;
    return opdi_nest_out(nest, acc, column) ? NULL : was;
}
static opdi_expr *opdi_lower_where(opd_scalar_type dtype, opdi_expr *x, opdi_expr *y, opdi_expr *z) {
    opdi_expr *const value = y && z ? opdi_expr_formula(OPD_FORMULA_where, dtype, x, y) : NULL;
    if (!value) { return NULL; }
    value->in[2] = z;
    value->nin = 3;
    return value;
}
/* Replaces all->most, the maxima of the bags, by larger elements of the bags' rows.  The caller has set the maxima to
   the first row of each bag.  A NaN in the first row remains, because no number is larger than NaN.  Returns 0, or -1
   and sets an error. */
static int opdi_lower_bags_most(opdi_lower_maxima *all) {
    const int by[2] = {0, 1};
    const opd_scalar_type dtype = opd_dtype(all->most);
    opdi_nest *const nest = opdi_nest_new(opd_sizes(all->rows), 2, 0);
    opdi_expr *const was = nest ? opdi_lower_of_bag(nest, all->most, all->bag, true) : NULL;
    opdi_expr *const row = was ? opdi_expr_load(all->rows, by) : NULL;
    if (!row) { return -1; }
    return opdi_nest_add(nest, opdi_lower_where(dtype, opdi_expr_formula(OPD_FORMULA_gt, dtype, row, was), row, was));
}
/* Sets the place of each bag's maximum to the first row that equals it, if the number of this row is smaller than the
   place.  Returns 0, or -1 and sets an error. */
static int opdi_lower_bags_places(opdi_lower_maxima *all) {
    const int by[2] = {0, 1};
    opdi_nest *const nest = opdi_nest_new(opd_sizes(all->rows), 2, 0);
    opdi_expr *const was = nest ? opdi_lower_of_bag(nest, all->place, all->bag, true) : NULL;
    opdi_expr *const most = was ? opdi_lower_of_bag(nest, all->most, all->bag, false) : NULL;
    opdi_expr *const row = most ? opdi_expr_load(all->rows, by) : NULL;
    opdi_expr *const here = row ? opdi_expr_new(OPDI_EXPR_COUNT, OPD_INT64) : NULL;
    if (!here) { return -1; }
    here->access.strides[0] = 1;
    opdi_expr *const same = opdi_expr_formula(OPD_FORMULA_eq, opd_dtype(all->most), row, most);
    return opdi_nest_add(nest, opdi_lower_where(OPD_INT64, opdi_expr_cast(same, OPD_INT64),
                                                opdi_expr_formula(OPD_FORMULA_minimum, OPD_INT64, was, here), was));
}
/* Stores the maxima of `bags` bags, and the indices of the rows that have them, in the results of the call.  Bags
   without rows get 0.  Returns 0, or -1 and sets an error. */
static int opdi_lower_bags_maxima(opd_call *call, opd_tensor *bag, int64_t bags) {
    const int64_t total = opd_numel(bag), more = bags + 1, one = 1, d = opd_sizes(opd_arg_tensor(call, 0))[1];
    const int64_t sizes[2] = {more, d};
    int dims[OPD_MAX_DIMS] = {-1};
    opdi_lower_maxima all;
    opd_tensor *const indices = opd_to_dtype(opd_arg_tensor(call, 1), OPD_INT64);
    opd_tensor *const weight = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(opd_arg_tensor(call,
                                                                                                              0))));
    opd_tensor *const numbers = opdi_lower_counts(&total, 1, &one, 0);
    all.bag = bag;
    all.rows = numbers && weight && indices ? opd_index_select(weight, 0, indices) : NULL;
    all.first = all.rows ? opd_new_full(indices, opd_ints_of(&more, 1), opd_value_int(total)) : NULL;
    if (!all.first || opdi_lower_put_accumulate(all.first, numbers, dims,
                                                opdi_lower_row_place(all.first, 0, bag, true, dims),
                                                OPD_FORMULA_minimum)) {
        return -1;
    }
    opd_tensor *const some = opd_unsqueeze(opd_lt_Scalar(all.first, opd_value_int(total)), 1);
    opd_tensor *const start = opd_clamp_max(all.first, opd_value_int(total - 1));
    all.most = start ? opd_contiguous(opd_index_select(all.rows, 0, start)) : NULL;
    if (!some || !all.most || opdi_lower_bags_most(&all)) { return -1; }
    all.place = opd_expand(opd_unsqueeze(start, 1), opd_ints_of(sizes, 2));
    opd_tensor *const none = opd_isnan(all.most);
    all.place = none && all.place ? opd_where_self(none, all.place, opd_full_like(all.place, opd_value_int(total - 1)))
        : NULL;
    all.place = all.place ? opd_clone(opd_contiguous(all.place)) : NULL;
    if (!all.place || opdi_lower_bags_places(&all)) { return -1; }
    opd_tensor *from = opd_index_select(indices, 0, opd_flatten(all.place, 0, -1));
    from = from ? opd_where_self(some, opd_view(from, opd_ints_of(sizes, 2)), opd_zeros_like(all.place)) : NULL;
    opd_tensor *const out = from ? opd_where_self(some, all.most, opd_zeros_like(all.most)) : NULL;
    return out && opdi_lower_return(call, 0, opd_narrow(out, 0, 0, bags)) == 0
        ? opdi_lower_return(call, 3, opd_narrow(from, 0, 0, bags)) : -1;
}
/* Stores the sums or means of `bags` bags in the result of the call.  Leaves out rows whose bag number is `bags`.
   Returns 0, or -1 and sets an error. */
static int opdi_lower_bags_sums(opd_call *call, opd_tensor *bag, opd_tensor *counts, int64_t bags) {
    opd_tensor *const weight = opd_arg_tensor(call, 0), *const indices = opd_arg_tensor(call, 1);
    const int64_t sizes[2] = {bags + 1, opd_sizes(weight)[1]}, column[2] = {bags, 1};
    opd_tensor *const sums = opdi_lower_empty(sizes, 2, opdi_lower_wide(opd_dtype(weight)));
    if (!sums || !opd_fill_(sums, opd_value_int(0)) ||
        opdi_lower_add_rows(sums, weight, indices, bag, opd_arg_tensor(call, 6))) { return -1; }
    opd_tensor *out = opd_narrow(sums, 0, 0, bags);
    if (opd_arg_int(call, 4)) {
        out = opd_div(out, opd_clamp_min(opd_to_dtype(opd_view(counts, opd_ints_of(column, 2)), opd_dtype(sums)),
                                         opd_value_int(1)));
    }
    return opdi_lower_return(call, 0, out);
}
/* Returns, for each bag, the number of its indices that are not left out.  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_lower_bags_counted(opd_tensor *bag, int64_t bags) {
    const int64_t more = bags + 1;
    int dims[OPD_MAX_DIMS] = {-1};
    opd_tensor *const counts = opd_new_zeros(bag, opd_ints_of(&more, 1));
    if (!counts || opdi_lower_put_accumulate(counts, opd_ones_like(bag), dims,
                                             opdi_lower_row_place(counts, 0, bag, true, dims), OPD_FORMULA_add)) {
        return NULL;
    }
    return opd_narrow(counts, 0, 0, bags);
}
/* Lowers _embedding_bag: sums, means and maxima of bags of rows.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_embedding_bag(opd_call *call) {
    opd_tensor *const indices = opd_arg_tensor(call, 1), *const offsets = opd_arg_tensor(call, 2);
    const int64_t mode = opd_arg_int(call, 4), total = opd_numel(indices), skip = opd_arg_int(call, 8);
    const bool last = opd_arg_bool(call, 7);
    const int64_t bags = opd_numel(offsets) - last;
    if (bags < 1 || !total) {
        return opd_fail(OPD_ERROR_ARGUMENT, "empty bags cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    const opd_value *const rets = opd_call_rets(call);
    opd_tensor *const begin = opdi_lower_bags(offsets, total);
    opd_tensor *const bag = begin ? opdi_lower_bag_of(begin, total) : NULL;
    if (!bag) { return -1; }
    if (opd_numel(rets[1].u.t) && opdi_lower_return(call, 1, bag)) { return -1; }
    opd_tensor *const kept = skip < 0 ? bag
        : opd_where_self(opd_ne_Scalar(indices, opd_value_int(skip)), bag, opd_full_like(bag, opd_value_int(bags)));
    opd_tensor *const counts = !kept ? NULL : skip < 0 && !last ? opdi_lower_bag_sizes(begin, total)
        : opdi_lower_bags_counted(kept, bags);
    if (!counts || (mode < 2 ? opdi_lower_bags_sums(call, kept, counts, bags)
                    : opdi_lower_bags_maxima(call, kept, bags))) { return -1; }
    opd_tensor *const sizes = mode ? counts : opd_zeros_like(rets[2].u.t);
    return opdi_lower_return(call, 2, sizes) || (mode < 2 && opdi_lower_return(call, 3, sizes)) ? -1 : 0;
}
