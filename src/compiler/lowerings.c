#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>lowerings    operators as nests of loops
//
//  A lowering is the kernel of an operator on the lazy device.  Most lowerings call other operators.  A few record
//  nests: those of reductions, of products and convolutions (sums of products of two loads), and of reads at indices.
//----------------------------------------------------------------------------------------------------------------------

/* Returns a new tensor on the lazy device, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_lower_empty(const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    return opd_empty_full(opd_ints_of(sizes, ndim), opd_value_int(dtype), opd_value_none(),
                          opd_value_device(opd_device_make(OPD_LAZY, 0)), opd_value_none(), opd_value_none());
}
/* Returns the dtype in which sums of elements of `dtype` are computed. */
OPDI_INTERNAL opd_scalar_type opdi_lower_wide(opd_scalar_type dtype) {
    return dtype == OPD_FLOAT64 || dtype == OPD_FLOAT32 ? dtype : opd_dtype_is_floating(dtype) ? OPD_FLOAT32
        : OPD_INT64;
}
/* Records a copy of `value` to result i of a call.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_return(opd_call *call, int i, opd_tensor *value) {
    opd_tensor *const result = opd_call_rets(call)[i].u.t;
    return value && opd_copy_(result, value) ? 0 : -1;
}
/* Records a copy of `value` to result i of a call.  Both have the same number of elements, but may have different
   sizes.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_return_as(opd_call *call, int i, opd_tensor *value) {
    opd_tensor *const result = opd_call_rets(call)[i].u.t;
    return value ? opdi_lower_return(call, i, opd_view(value, opd_ints_of(opd_sizes(result), opd_ndim(result)))) : -1;
}
static opd_tensor *opdi_lower_times(opd_tensor *tensor, double factor) {
    return factor == 1 ? tensor : opd_mul_Scalar(tensor, opd_value_double(factor));
}

/* Returns an int64 tensor whose elements are `first` + sum over i of steps[i] * (index in dim i).  On failure, returns
   NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_lower_counts(const int64_t *sizes, int ndim, const int64_t *steps, int64_t first) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const out = opdi_lower_empty(sizes, ndim, OPD_INT64);
    opdi_nest *const nest = out ? opdi_nest_new(sizes, ndim, 0) : NULL;
    opdi_expr *const count = nest ? opdi_expr_new(OPDI_EXPR_COUNT, OPD_INT64) : NULL;
    if (!count) { return NULL; }
    for (int i = 0; i < ndim; i++) { by[i] = i; }
    memcpy(count->access.strides, steps, (size_t)ndim * sizeof *steps);
    count->access.offset = first;
    return opdi_nest_out(nest, out, by) || opdi_nest_add(nest, count) ? NULL : out;
}
/* Records a nest that fills a tensor of one dim.  If `whole` is true, element i is the integer first + every * i,
   otherwise the double start + step * i.  Returns 0; 1 if there is no recording; or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_sequence(opd_tensor *out, bool whole, int64_t first, int64_t every, double start,
                                      double step) {
    const int64_t one = 1;
    opdi_recording *const recording = opdi_recording_now;
    if (!recording) { return 1; }
    const char *const was = recording->what;
    recording->what = was ? was : "arange";
    opd_tensor *sequence = opdi_lower_counts(opd_sizes(out), 1, whole ? &every : &one, whole ? first : 0);
    if (sequence && !whole) {
        sequence = opd_mul_Scalar(opd_to_dtype(sequence, OPD_FLOAT64), opd_value_double(step));
        sequence = opd_add_Scalar(sequence, opd_value_double(start));
    }
    const int rc = sequence && opd_copy_(out, sequence) ? 0 : -1;
    recording->what = was;
    return rc;
}

//== reductions ========================================================================================================

/* Says that the nests of the operator that is being lowered give its bits in the mode of same bits. */
OPDI_INTERNAL void opdi_lower_vouch(void) { opdi_recording_now->vouched = true; }
/* Records the reduction of a tensor over the dims in `mask` into `out`, in which these dims have size 1.  If the
   reduction finds an index, the index counts the elements of all reduced dims.  Returns 0, or -1 and sets an error. */
static int opdi_lower_reduce_into(opd_tensor *out, opd_tensor *self, uint64_t mask, opdi_over reduction) {
    const int ndim = opd_ndim(self);
    const opd_scalar_type dtype = opd_dtype(self);
    int64_t sizes[OPD_MAX_DIMS];
    int by[OPD_MAX_DIMS], kept = 0, count = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < ndim; i++) {
            if ((int)(mask >> i & 1) != pass) { continue; }
            by[i] = count;
            sizes[count++] = opd_sizes(self)[i];
        }
        if (!pass) { kept = count; }
    }
    opdi_nest *const nest = opdi_nest_new(sizes, ndim, ndim - kept);
    if (!nest) { return -1; }
    nest->reduction = reduction;
    opdi_expr *value = opdi_expr_load(self, by);
    const bool sums = reduction == OPDI_REDUCTION_SUM || reduction == OPDI_REDUCTION_PROD;
    if (sums) {
        const opd_scalar_type result = opd_dtype(out);
        value = opdi_expr_cast(value, opdi_lower_wide(opd_dtype_is_floating(result) ? result : dtype));
    }
    for (int i = 0; i < ndim; i++) { if (mask >> i & 1) { by[i] = -1; } }
    return opdi_nest_out(nest, out, by) || opdi_nest_add(nest, value) ? -1 : 0;
}
/* Returns the mask of the dims in a list.  If the list is empty, returns the mask of all dims. */
OPDI_INTERNAL uint64_t opdi_lower_mask(opd_ints dims, int ndim) {
    uint64_t mask = 0;
    for (int i = 0; i < dims.n; i++) { mask |= (uint64_t)1 << (dims.data[i] < 0 ? dims.data[i] + ndim : dims.data[i]); }
    return dims.n && ndim ? mask : ndim < 64 ? ((uint64_t)1 << ndim) - 1 : UINT64_MAX;
}
/* Returns the reduction of self over the dims in `mask`, as a tensor of dtype `dtype` in which these dims have size 1.
   On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_lower_reduced(opd_tensor *self, uint64_t mask, opdi_over reduction,
                                             opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(self); i++) { sizes[i] = mask >> i & 1 ? 1 : opd_sizes(self)[i]; }
    opd_tensor *const out = opdi_lower_empty(sizes, opd_ndim(self), dtype);
    return out && opdi_lower_reduce_into(out, self, mask, reduction) == 0 ? out : NULL;
}
/* Returns the sum of self over the dims in `mask`, as a double, added in this order (OPDI_ORDER_...). */
OPDI_INTERNAL opd_tensor *opdi_lower_ordered(opd_tensor *self, uint64_t mask, int32_t order) {
    opd_tensor *const out = self ? opdi_lower_reduced(self, mask, OPDI_REDUCTION_SUM, OPD_FLOAT64) : NULL;
    if (out) { opdi_recording_now->last->order = order; }
    return out;
}
static int64_t opdi_lower_count(const opd_tensor *self, uint64_t mask) {
    int64_t count = 1;
    for (int i = 0; i < opd_ndim(self); i++) { count *= mask >> i & 1 ? opd_sizes(self)[i] : 1; }
    return count;
}
/* Returns the dtype in which a sum is computed whose result has dtype `dtype`: float64 for floats, else int64. */
static opd_scalar_type opdi_lower_widest(opd_scalar_type dtype) {
    return opd_dtype_is_floating(dtype) ? OPD_FLOAT64 : OPD_INT64;
}
/* Records the reduction of argument 0 over the dims in `mask` into result i of a call.  The result may or may not have
   these dims.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_reduction(opd_call *call, int i, uint64_t mask, opdi_over reduction) {
    opd_tensor *self = opd_arg_tensor(call, 0), *const result = opd_call_rets(call)[i].u.t;
    if (opd_dtype(result) == OPD_BOOL) { self = opd_to_dtype(self, OPD_BOOL); }          /* see opdi_reduce_sum */
    const opd_scalar_type dtype = reduction == OPDI_REDUCTION_SUM ? opdi_lower_widest(opd_dtype(result))
        : reduction == OPDI_REDUCTION_PROD ? opdi_lower_wide(opd_dtype(result)) : opd_dtype(result);
    opd_tensor *const out = opdi_lower_reduced(self, mask, reduction, dtype);
    return out ? opdi_lower_return(call, i, opd_view(out, opd_ints_of(opd_sizes(result), opd_ndim(result)))) : -1;
}
OPDI_INTERNAL int opdi_lower_sum(opd_call *call) {
    const bool dims = opd_call_nargs(call) > 2;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_lower_reduction(call, 0, dims ? opdi_lower_mask(opd_arg_ints(call, 1), opd_ndim(self))
        : opdi_lower_mask(opd_ints_of(NULL, 0), opd_ndim(self)), OPDI_REDUCTION_SUM);
}
OPDI_INTERNAL int opdi_lower_mean(opd_call *call) {
    const bool dims = opd_call_nargs(call) > 2;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const uint64_t mask = opdi_lower_mask(dims ? opd_arg_ints(call, 1) : opd_ints_of(NULL, 0), opd_ndim(self));
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const sum = opdi_lower_reduced(self, mask, OPDI_REDUCTION_SUM, opdi_lower_widest(opd_dtype(result)));
    if (!sum) { return -1; }
    return opdi_lower_return(call, 0,
                             opd_view(opd_div_Scalar(sum, opd_value_double((double)opdi_lower_count(self, mask))),
                                      opd_ints_of(opd_sizes(result), opd_ndim(result))));
}
/* Lowers amax, amin, any.dim, all.dim, all and any.  Argument 1 has the dims.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_extreme(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value dims = opd_call_nargs(call) > 1 ? opd_arg_value(call, 1) : opd_value_none();
    const int64_t one = dims.tag == OPD_TAG_INT ? dims.u.i : 0;
    const opd_ints list = dims.tag == OPD_TAG_INT ? opd_ints_of(&one, 1)
        : dims.tag == OPD_TAG_INTS ? opd_arg_ints(call, 1) : opd_ints_of(NULL, 0);
    const opdi_over reduction = strstr(name, "amax") ? OPDI_REDUCTION_MAX : strstr(name, "amin") ? OPDI_REDUCTION_MIN
        : strstr(name, "any") ? OPDI_REDUCTION_ANY : OPDI_REDUCTION_ALL;
    const uint64_t mask = opdi_lower_mask(list, opd_ndim(self));
    return opd_results_from_fake(call) || opdi_lower_reduction(call, 0, mask, reduction) ? -1 : 0;
}
/* Lowers max.dim and min.dim, which return values and indices. */
OPDI_INTERNAL int opdi_lower_max_dim(opd_call *call) {
    const bool most = strstr(opd_op_name(opd_call_operator(call)), "max") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int64_t dim = opd_arg_int(call, 1);
    const uint64_t mask = opdi_lower_mask(opd_ints_of(&dim, 1), opd_ndim(self));
    return opd_results_from_fake(call) ||
        opdi_lower_reduction(call, 0, mask, most ? OPDI_REDUCTION_MAX : OPDI_REDUCTION_MIN) ||
        opdi_lower_reduction(call, 1, mask, most ? OPDI_REDUCTION_ARGMAX : OPDI_REDUCTION_ARGMIN) ? -1 : 0;
}

/* Lowers argmax, argmin and prod, over the dim in argument 1, or over all dims.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_places_max(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value given = opd_call_nargs(call) > 2 ? opd_arg_value(call, 1) : opd_value_none();
    const int64_t dim = given.tag == OPD_TAG_INT ? given.u.i : 0;
    const uint64_t mask = opdi_lower_mask(opd_ints_of(&dim, given.tag == OPD_TAG_INT), opd_ndim(self));
    return opd_results_from_fake(call) || opdi_lower_reduction(call, 0, mask, strstr(name, "prod") ? OPDI_REDUCTION_PROD
        : strstr(name, "argmax") ? OPDI_REDUCTION_ARGMAX : OPDI_REDUCTION_ARGMIN) ? -1 : 0;
}
/* Returns self minus its mean over the dims in `mask`, and sets *mean.  self has the dtype in which sums are computed.
   The rounding error of the mean may be as large as the differences.  So the mean of float32 numbers is computed in
   double and subtracted in two parts.  For float64, the mean of the differences is subtracted, too.  On failure,
   returns NULL and sets an error. */
static opd_tensor *opdi_lower_centred(opd_tensor *self, uint64_t mask, opd_tensor **mean) {
    const opd_value count = opd_value_double((double)opdi_lower_count(self, mask));
    const opd_scalar_type dtype = opd_dtype(self);
    opd_tensor *const wide = opd_to_dtype(self, OPD_FLOAT64);
    opd_tensor *sum = wide ? opdi_lower_reduced(wide, mask, OPDI_REDUCTION_SUM, OPD_FLOAT64) : NULL;
    if (!sum) { return NULL; }
    opd_tensor *const exact = opd_div_Scalar(sum, count);
    *mean = opd_to_dtype(exact, dtype);
    opd_tensor *const less = opd_sub(self, *mean);
    if (dtype != OPD_FLOAT64 || !less) { return opd_sub(less, opd_to_dtype(opd_sub(exact, *mean), dtype)); }
    sum = opdi_lower_reduced(less, mask, OPDI_REDUCTION_SUM, dtype);
    opd_tensor *const rest = sum ? opd_div_Scalar(sum, count) : NULL;
    *mean = opd_add(*mean, rest);
    return opd_sub(less, rest);
}
/* Lowers var.correction, std.correction, var_mean.correction and std_mean.correction.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_lower_var(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value list = opd_arg_value(call, 1), given = opd_arg_value(call, 2);
    const double correction = given.tag == OPD_TAG_INT ? (double)given.u.i : given.tag == OPD_TAG_FLOAT ? given.u.d : 1;
    const uint64_t mask = opdi_lower_mask(list.tag == OPD_TAG_INTS ? opd_arg_ints(call, 1) : opd_ints_of(NULL, 0),
                                          opd_ndim(self));
    const double count = (double)opdi_lower_count(self, mask), rest = count - correction;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(result));
    const opd_ints sizes = opd_ints_of(opd_sizes(result), opd_ndim(result));
    opd_tensor *const x = opd_to_dtype(self, wide);
    opd_tensor *mean = NULL, *less = x ? opdi_lower_centred(x, mask, &mean) : NULL;
    less = less ? opd_to_dtype(less, OPD_FLOAT64) : NULL;
    opd_tensor *out = less ? opdi_lower_reduced(opd_mul(less, less), mask, OPDI_REDUCTION_SUM, OPD_FLOAT64) : NULL;
    if (!out) { return -1; }
    out = opd_div_Scalar(out, opd_value_double(rest > 0 ? rest : 0));
    out = strstr(name, "std") ? opd_sqrt(out) : out;
    return opdi_lower_return(call, 0, opd_view(out, sizes)) ||
        (strstr(name, "mean") && opdi_lower_return(call, 1, opd_view(mean, sizes))) ? -1 : 0;
}

//== softmax and normalizations ========================================================================================

/* Returns the logarithm of doubles by the C library, as opdi_line_softmax_f32 computes it. */
static opd_tensor *opdi_lower_log_f64(opd_tensor *self) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const out = opdi_lower_empty(opd_sizes(self), opd_ndim(self), OPD_FLOAT64);
    opdi_nest *const nest = out ? opdi_nest_new(opd_sizes(self), opd_ndim(self), 0) : NULL;
    for (int i = 0; i < opd_ndim(self); i++) { by[i] = i; }
    if (!nest || opdi_nest_out(nest, out, by)) { return NULL; }
    opdi_expr *const value = opdi_expr_formula(OPD_FORMULA_log, OPD_FLOAT64, opdi_expr_load(self, by), NULL);
    return opdi_nest_add(nest, value) ? NULL : out;
}
/* Returns whether elements along dim are adjacent, so that kernels compute line by line. */
static bool opdi_lower_along_rows(const opd_tensor *self, int64_t dim) {
    const int64_t last = opd_ndim(self) - 1;
    return (dim == -1 || dim == last) && opd_is_contiguous(self);
}
/* Does the work of opdi_lower_softmax in the mode of same bits: adds and rounds as opdi_line_softmax_f32 does. */
static int opdi_lower_softmax_same(opd_call *call, opd_tensor *self, bool logs) {
    const uint64_t mask = (uint64_t)1 << (opd_ndim(self) - 1);
    opd_tensor *const top = opdi_lower_reduced(self, mask, OPDI_REDUCTION_MAX, OPD_FLOAT32);
    opd_tensor *const less = top ? opd_sub(self, top) : NULL, *const exps = less ? opd_exp(less) : NULL;
    opd_tensor *const sum = exps ? opdi_lower_ordered(exps, mask, OPDI_ORDER_ROW) : NULL;
    if (!sum) { return -1; }
    opd_tensor *const part = logs ? opdi_lower_log_f64(sum) : opd_reciprocal(sum);
    opd_tensor *const one = part ? opd_to_dtype(part, OPD_FLOAT32) : NULL;
    opdi_lower_vouch();
    return one ? opdi_lower_return(call, 0, logs ? opd_sub(less, one) : opd_mul(exps, one)) : -1;
}
OPDI_INTERNAL int opdi_lower_softmax(opd_call *call) {
    const bool logs = strstr(opd_op_name(opd_call_operator(call)), "log") != NULL;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(result)));
    const int64_t dim = opd_arg_int(call, 1);
    const opd_ints dims = opd_ints_of(&dim, 1);
    if (opd_ndim(self) == 0) {
        return opdi_lower_return(call, 0, logs ? opd_sub(self, self) : opd_exp(opd_sub(self, self)));
    }
    if (opdi_same_writes() && opd_dtype(opd_arg_tensor(call, 0)) == OPD_FLOAT32 && opd_dtype(self) == OPD_FLOAT32 &&
        opdi_lower_along_rows(opd_arg_tensor(call, 0), dim) && opd_size(self, -1) <= OPDI_ORDER_ROW_MOST) {
        return opdi_lower_softmax_same(call, self, logs);
    }
    opd_tensor *const less = opd_sub(self, opd_amax(self, dims, true));
    opd_tensor *const exps = opd_exp(less), *const sum = opd_sum_dim(exps, dims, true);
    return opdi_lower_return(call, 0, logs ? opd_sub(less, opd_log(sum)) : opd_div(exps, sum));
}
/* Returns (self - mean) * rstd, with mean and variance over the dims in `mask`.  Sets *mean, *rstd and *var, in which
   these dims have size 1.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_lower_normalised(opd_tensor *self, uint64_t mask, double eps, opd_tensor **mean,
                                         opd_tensor **rstd, opd_tensor **var) {
    const double count = (double)opdi_lower_count(self, mask);
    opd_tensor *const less = opdi_lower_centred(self, mask, mean);
    opd_tensor *const squares = less
        ? opdi_lower_reduced(opd_mul(less, less), mask, OPDI_REDUCTION_SUM, opd_dtype(self))
        : NULL;
    if (!squares) { return NULL; }
    *var = opd_div_Scalar(squares, opd_value_double(count));
    *rstd = opd_rsqrt(opd_add_Scalar(*var, opd_value_double(eps)));
    return opd_mul(less, *rstd);
}
OPDI_INTERNAL int opdi_lower_layer_norm(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 2), *const bias = opd_arg_tensor(call, 3);
    opd_tensor *mean, *rstd, *var;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(opd_arg_tensor(call, 0))));
    uint64_t mask = 0;
    for (int i = opd_ndim(self) - (int)opd_arg_ints(call, 1).n; i < opd_ndim(self); i++) { mask |= (uint64_t)1 << i; }
    opd_tensor *out = opdi_lower_normalised(self, mask, opd_arg_double(call, 4), &mean, &rstd, &var);
    if (out && weight) { out = opd_mul(out, weight); }
    if (out && bias) { out = opd_add(out, bias); }
    return opdi_lower_return(call, 0, out) || opdi_lower_return(call, 1, mean) || opdi_lower_return(call, 2, rstd)
        ? -1 : 0;
}
OPDI_INTERNAL int opdi_lower_group_norm(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 1);
    opd_tensor *const bias = opd_arg_tensor(call, 2);
    const int64_t n = opd_arg_int(call, 3), c = opd_arg_int(call, 4), inner = opd_arg_int(call, 5);
    const int64_t groups = opd_arg_int(call, 6);
    opd_tensor *mean, *rstd, *var;
    if (opd_results_from_fake(call)) { return -1; }
    if (!groups || !n || !c) { return opd_fail(OPD_ERROR_ARGUMENT, "an empty group_norm cannot be compiled"); }
    const int64_t rows[2] = {n * groups, c / groups * inner}, channels[3] = {n, c, inner}, column[3] = {1, c, 1};
    const int64_t by_group[2] = {n, groups};
    opd_tensor *const wide = opd_to_dtype(opd_reshape(self, opd_ints_of(rows, 2)), opdi_lower_wide(opd_dtype(self)));
    opd_tensor *out = opd_ok() ? opdi_lower_normalised(wide, 2, opd_arg_double(call, 7), &mean, &rstd, &var) : NULL;
    if (!out) { return -1; }
    out = opd_view(out, opd_ints_of(channels, 3));
    if (weight) { out = opd_mul(out, opd_view(weight, opd_ints_of(column, 3))); }
    if (bias) { out = opd_add(out, opd_view(bias, opd_ints_of(column, 3))); }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    return opdi_lower_return(call, 0, opd_view(out, opd_ints_of(opd_sizes(result), opd_ndim(result)))) ||
        opdi_lower_return(call, 1, opd_view(mean, opd_ints_of(by_group, 2))) ||
        opdi_lower_return(call, 2, opd_view(rstd, opd_ints_of(by_group, 2))) ? -1 : 0;
}
/* Reshapes a tensor with one element per channel, so that it broadcasts against self, whose dim 1 counts the channels.
   Returns the new tensor, or NULL and sets an error. */
static opd_tensor *opdi_lower_channels(opd_tensor *tensor, const opd_tensor *self) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(self); i++) { sizes[i] = i == 1 ? opd_sizes(self)[1] : 1; }
    return tensor ? opd_view(tensor, opd_ints_of(sizes, opd_ndim(self))) : NULL;
}
OPDI_INTERNAL int opdi_lower_batch_norm(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 1), *const bias = opd_arg_tensor(call, 2);
    opd_tensor *const running_mean = opd_arg_tensor(call, 3), *const running_var = opd_arg_tensor(call, 4);
    const bool training = strstr(opd_op_name(opd_call_operator(call)), "no_training") == NULL && opd_arg_bool(call, 5);
    const bool none = strstr(opd_op_name(opd_call_operator(call)), "no_training") != NULL;
    const double momentum = opd_arg_double(call, none ? 5 : 6), eps = opd_arg_double(call, none ? 6 : 7);
    if (training && !opd_numel(opd_arg_tensor(call, 0))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "an empty batch_norm cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(opd_arg_tensor(call, 0))));
    opd_tensor *mean = NULL, *rstd = NULL, *var = NULL, *out;
    if (training) {
        const uint64_t mask = (((uint64_t)1 << opd_ndim(self)) - 1) & ~(uint64_t)2;
        const double count = (double)opdi_lower_count(self, mask);
        out = opdi_lower_normalised(self, mask, eps, &mean, &rstd, &var);
        if (!out) { return -1; }
        mean = opd_flatten(mean, 0, -1);
        rstd = opd_flatten(rstd, 0, -1);
        if (running_mean) {
            (void)opd_copy_(running_mean, opd_add(opdi_lower_times(running_mean, 1 - momentum),
                                                  opdi_lower_times(mean, momentum)));
        }
        if (running_var) {
            opd_tensor *flat = opd_flatten(var, 0, -1);
            (void)opd_copy_(running_var, opd_add(opdi_lower_times(running_var, 1 - momentum),
                                                 opdi_lower_times(flat, momentum * count / (count - 1))));
        }
        out = weight ? opd_mul(out, opdi_lower_channels(weight, self)) : out;
    } else {
        opd_tensor *scale = opd_rsqrt(opd_add_Scalar(running_var, opd_value_double(eps)));
        scale = weight ? opd_mul(scale, weight) : scale;
        out = opd_mul(opd_sub(self, opdi_lower_channels(running_mean, self)), opdi_lower_channels(scale, self));
    }
    if (out && bias) { out = opd_add(out, opdi_lower_channels(bias, self)); }
    if (opdi_lower_return(call, 0, out)) { return -1; }
    return mean && (opdi_lower_return(call, 1, mean) || opdi_lower_return(call, 2, rstd)) ? -1 : 0;
}

//== matrix products and convolutions ==================================================================================

/* Records a matrix product: out[..., m, n] = sum over k of first[..., m, k] * second[..., k, n].  Returns 0, or -1 and
   sets an error. */
static int opdi_lower_product_into(opd_tensor *out, opd_tensor *first, opd_tensor *second) {
    const int batch = opd_ndim(out) - 2;
    int64_t sizes[4];
    int by_first[3], by_second[3], by_out[3], n = 0;
    if (batch) {
        sizes[0] = opd_sizes(out)[0];
        by_first[0] = by_second[0] = by_out[0] = 0;
        n = 1;
    }
    sizes[n] = opd_sizes(out)[n];
    sizes[n + 1] = opd_sizes(out)[n + 1];
    sizes[n + 2] = opd_sizes(first)[n + 1];
    by_first[n] = by_out[n] = n;
    by_first[n + 1] = by_second[n] = n + 2;
    by_second[n + 1] = by_out[n + 1] = n + 1;
    opdi_nest *const nest = opdi_nest_new(sizes, n + 3, 1);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(first));
    if (!nest || opdi_nest_out(nest, out, by_out)) { return -1; }
    nest->reduction = OPDI_REDUCTION_SUM;
    nest->order = wide == OPD_FLOAT32 && opdi_same_writes() ? OPDI_ORDER_CHAIN : OPDI_ORDER_FREE;
    return opdi_nest_add(nest, opdi_expr_formula(OPD_FORMULA_mul, wide, opdi_expr_cast(opdi_expr_load(first, by_first),
        wide),
                                                 opdi_expr_cast(opdi_expr_load(second, by_second), wide)));
}
OPDI_INTERNAL opd_tensor *opdi_lower_product(opd_tensor *first, opd_tensor *second) {
    const int batch = opd_ndim(first) - 2;
    int64_t sizes[3];
    sizes[0] = opd_sizes(first)[0];
    sizes[batch] = opd_sizes(first)[batch];
    sizes[batch + 1] = opd_sizes(second)[batch + 1];
    opd_tensor *const out = opdi_lower_empty(sizes, batch + 2, opdi_lower_wide(opd_dtype(first)));
    return out && opdi_lower_product_into(out, first, second) == 0 ? out : NULL;
}
/* Returns whether the product of a row and a column of this length is a chain of fused multiply-adds in the mode of
   same bits, and can be written as such.  A product of one number is none: its zeros have other signs. */
OPDI_INTERNAL bool opdi_lower_chains(const opd_tensor *first, int64_t depth) {
    return opdi_same_writes() && opd_dtype(first) == OPD_FLOAT32 && depth > 1;
}
/* The depth of a block, OPDI_GEMM_K.  Kernels are not asked, because programs that only write C do not have them. */
#define OPDI_SAME_DEPTH INT64_C(576)
/* Returns start + first * second (`start` NULL: the product alone), added in blocks of the depth, as kernels do in the
   mode of same bits. */
OPDI_INTERNAL opd_tensor *opdi_lower_product_same(opd_tensor *start, opd_tensor *first, opd_tensor *second) {
    const int64_t depth = opd_size(first, -1), step = OPDI_MIN(depth, OPDI_SAME_DEPTH);
    for (int64_t from = 0; from < depth && opd_ok(); from += step) {
        const int64_t count = OPDI_MIN(step, depth - from);
        opd_tensor *const part = opdi_lower_product(opd_narrow(first, -1, from, count),
                                                    opd_narrow(second, -2, from, count));
        start = start && part ? opd_add(start, part) : part;
    }
    opdi_lower_vouch();
    return opd_ok() ? start : NULL;
}
/* Lowers mm and bmm.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_mm(opd_call *call) {
    opd_tensor *const first = opd_arg_tensor(call, 0), *const second = opd_arg_tensor(call, 1);
    if (opdi_lower_chains(first, opd_size(first, -1))) {
        return opd_results_from_fake(call) ||
            opdi_lower_return(call, 0, opdi_lower_product_same(NULL, first, second)) ? -1 : 0;
    }
    return opd_results_from_fake(call) ||
        opdi_lower_return(call, 0, opdi_lower_product(first, second)) ? -1 : 0;
}
OPDI_INTERNAL opd_tensor *opdi_lower_scaled(opd_tensor *tensor, opd_value factor) {
    if (tensor && factor.tag == OPD_TAG_FLOAT && opd_dtype_is_integral(opd_dtype(tensor), true) &&
        fabs(factor.u.d) < 9e18) { factor = opd_value_int((int64_t)factor.u.d); }  /* as operators of integers convert
                                                                                      the factor */
    const bool one = (factor.tag == OPD_TAG_INT && factor.u.i == 1) || (factor.tag == OPD_TAG_FLOAT && factor.u.d == 1);
    return one || !tensor ? tensor : opd_mul_Scalar(tensor, factor);
}
/* Lowers addmm and baddbmm: beta * self + alpha * (matrix product).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_addmm(opd_call *call) {
    const opd_value beta = opd_arg_value(call, 3), alpha = opd_arg_value(call, 4);
    const bool none = (beta.tag == OPD_TAG_INT && beta.u.i == 0) || (beta.tag == OPD_TAG_FLOAT && beta.u.d == 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const self = opd_arg_tensor(call, 0), *const first = opd_arg_tensor(call, 1);
    opd_tensor *const second = opd_arg_tensor(call, 2);
    const bool one = (alpha.tag == OPD_TAG_INT && alpha.u.i == 1) || (alpha.tag == OPD_TAG_FLOAT && alpha.u.d == 1);
    const bool same = opdi_lower_chains(first, opd_size(first, -1));
    if (same && one) {                            /* kernels add the products to beta * self */
        opd_tensor *const start = none ? NULL : opdi_lower_scaled(opd_to_dtype(self, OPD_FLOAT32), beta);
        return opdi_lower_return(call, 0, opdi_lower_product_same(start, first, second));
    }
    opd_tensor *out = same ? opdi_lower_product_same(NULL, first, second) : opdi_lower_product(first, second);
    out = opdi_lower_scaled(out, alpha);
    if (out && !none) { out = opd_add(out, opdi_lower_scaled(opd_to_dtype(self, opd_dtype(out)), beta)); }
    return opdi_lower_return(call, 0, out);
}
/* Returns self, padded by `value` along the dims from number `first` on.  Dim first + i gets before[i] and after[i]
   elements at its two ends (a negative number removes elements), and steps[i] - 1 elements between neighbouring
   elements (`steps` NULL: none).  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_lower_padded(opd_tensor *self, int first, const int64_t *before, const int64_t *after,
                                            const int64_t *steps, opd_value value) {
    const int ndim = opd_ndim(self), count = ndim - first;
    int64_t sizes[OPD_MAX_DIMS];
    bool plain = true;
    for (int i = 0; i < ndim; i++) {
        const int k = i - first;
        sizes[i] = opd_sizes(self)[i];
        if (k < 0) { continue; }
        const int64_t step = steps ? steps[k] : 1;
        plain = plain && !before[k] && !after[k] && step == 1;
        sizes[i] = (sizes[i] - 1) * step + 1 + before[k] + after[k];
    }
    if (plain) { return self; }
    opd_tensor *const out = opdi_lower_empty(sizes, ndim, opd_dtype(self));
    if (!out || !opd_fill_(out, value)) { return NULL; }
    opd_tensor *inside = out, *from = self;
    for (int k = 0; k < count; k++) {
        const int64_t step = steps ? steps[k] : 1, size = opd_sizes(self)[first + k];
        const int64_t skip = before[k] < 0 ? (step - 1 - before[k]) / step : 0;              /* number of elements that
                                                                                                are removed */
        const int64_t at = before[k] + skip * step;
        const int64_t available = (sizes[first + k] - at + step - 1) / step, take = OPDI_MIN(size - skip, available);
        from = opd_narrow(from, first + k, skip, take);
        inside = opd_slice(inside, first + k, opd_value_int(at), opd_value_int(at + (take - 1) * step + 1), step);
    }
    return opd_copy_(inside, from) ? out : NULL;
}
/* Sets the strides of an access to the strides of windows over `count` dims of self, from dim `first` on.  Along dim
   first + i, loop at + i moves the window by steps[i] elements, and loop window + i moves inside the window by
   dilation[i] elements. */
static void opdi_lower_windows(opdi_access *access, const opd_tensor *self, int first, int count, int at, int window,
                               const int64_t *steps, const int64_t *dilation) {
    for (int i = 0; i < count; i++) {
        access->strides[at + i] += opd_strides(self)[first + i] * steps[i];
        access->strides[window + i] += opd_strides(self)[first + i] * dilation[i];
    }
}
/* Returns the sizes of a convolution of padded input in one or two dimensions, or NULL and sets an error. */
static const opdi_conv *opdi_lower_conv_of(const opd_tensor *out, const opd_tensor *self, const opd_tensor *weight,
                                           const int64_t *steps, const int64_t *dilation, int64_t groups) {
    opdi_conv *const conv = (opdi_conv *)opdi_recording_alloc(opdi_recording_now, sizeof *conv);
    const int last = opd_ndim(self) - 1, count = last - 1;
    if (!conv) { return NULL; }
    memset(conv, 0, sizeof *conv);
    conv->n = opd_sizes(self)[0];
    conv->c = opd_sizes(self)[1];
    conv->oc = opd_sizes(out)[1];
    conv->groups = groups;
    conv->h = conv->kh = conv->sh = conv->dh = conv->oh = 1;
    conv->w = opd_sizes(self)[last];
    conv->kw = opd_sizes(weight)[last];
    conv->ow = opd_sizes(out)[last];
    conv->sw = steps[count - 1];
    conv->dw = dilation[count - 1];
    if (count < 2) { return conv; }
    conv->h = opd_sizes(self)[2];
    conv->kh = opd_sizes(weight)[2];
    conv->oh = opd_sizes(out)[2];
    conv->sh = steps[0];
    conv->dh = dilation[0];
    return conv;
}
/* Records a convolution of padded input: out[n, g, co, o...] = sum over ci and k of self[n, g, ci, o * step + k *
   dilation] * weight[g, co, ci, k...].  If `flip` is true, the weight is [g, ci, co, k...], and is read backwards along
   k.  Returns 0, or -1 and sets an error. */
static int opdi_lower_convolve(opd_tensor *out, opd_tensor *self, opd_tensor *weight, const int64_t *steps,
                               const int64_t *dilation, int64_t groups, bool flip) {
    const int count = opd_ndim(self) - 2;
    const int64_t co = opd_sizes(out)[1] / groups, ci = opd_sizes(self)[1] / groups;
    int64_t sizes[OPDI_NEST_DIMS + 3];
    const int at = 3, channel = 3 + count, window = channel + 1;
    sizes[0] = opd_sizes(self)[0];
    sizes[1] = groups;
    sizes[2] = co;
    sizes[channel] = ci;
    for (int i = 0; i < count; i++) {
        sizes[at + i] = opd_sizes(out)[2 + i];
        sizes[window + i] = opd_sizes(weight)[2 + i];
    }
    opdi_nest *const nest = opdi_nest_new(sizes, window + count, 1 + count);
    int none[OPD_MAX_DIMS];
    for (int i = 0; i < OPD_MAX_DIMS; i++) { none[i] = -1; }
    opdi_expr *const x = nest ? opdi_expr_load(self, none) : NULL, *const w = x ? opdi_expr_load(weight, none) : NULL;
    if (!w || opdi_nest_out(nest, out, none)) { return -1; }
    const int64_t *const out_strides = opd_strides(out), *const strides = opd_strides(self);
    const int64_t *const weights = opd_strides(weight);
    nest->reduction = OPDI_REDUCTION_SUM;
    nest->out.strides[0] = out_strides[0];
    nest->out.strides[1] = out_strides[1] * co;
    nest->out.strides[2] = out_strides[1];
    x->access.strides[0] = strides[0];
    x->access.strides[1] = strides[1] * ci;
    x->access.strides[channel] = strides[1];
    w->access.strides[1] = weights[0] * (flip ? ci : co);
    w->access.strides[2] = weights[flip ? 1 : 0];
    w->access.strides[channel] = weights[flip ? 0 : 1];
    opdi_lower_windows(&x->access, self, 2, count, at, window, steps, dilation);
    for (int i = 0; i < count; i++) {
        nest->out.strides[at + i] = out_strides[2 + i];
        w->access.strides[window + i] = flip ? -weights[2 + i] : weights[2 + i];
        if (flip) { w->access.offset += weights[2 + i] * (opd_sizes(weight)[2 + i] - 1); }
    }
    nest->order = opdi_recording_now->vouched ? OPDI_ORDER_CHAIN : OPDI_ORDER_FREE;
    nest->conv = flip || count > 2 ? NULL : opdi_lower_conv_of(out, self, weight, steps, dilation, groups);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    return opdi_nest_add(nest,
                         opdi_expr_formula(OPD_FORMULA_mul, wide, opdi_expr_cast(w, wide), opdi_expr_cast(x, wide)));
}
/* Records a transposed convolution with the strides `steps`: out[n, g, co, steps * q + r] = sum over ci and k of
   self[n, g, ci, q + k] * weight[g, ci, co, steps * (taps - 1 - k) + r].  Along each dim, self begins with taps - 1
   zeros, and the weight has taps * steps elements.  In this form, the zeros between elements are not multiplied.
   Returns 0, or -1 and sets an error. */
static int opdi_lower_convolve_back(opd_tensor *out, opd_tensor *self, opd_tensor *weight, const int64_t *steps,
                                    int64_t groups) {
    const int count = opd_ndim(self) - 2, channel = 3 + 2 * count;
    const int64_t co = opd_sizes(out)[1] / groups, ci = opd_sizes(self)[1] / groups;
    const int64_t *const to = opd_strides(out), *const from = opd_strides(self), *const by = opd_strides(weight);
    int64_t sizes[OPDI_NEST_DIMS];
    int none[OPD_MAX_DIMS];
    for (int i = 0; i < OPD_MAX_DIMS; i++) { none[i] = -1; }
    sizes[0] = opd_sizes(self)[0];
    sizes[1] = groups;
    sizes[2] = co;
    sizes[channel] = ci;
    for (int i = 0; i < count; i++) {
        sizes[3 + 2 * i] = opd_sizes(out)[2 + i] / steps[i];
        sizes[4 + 2 * i] = steps[i];
        sizes[channel + 1 + i] = opd_sizes(weight)[2 + i] / steps[i];
    }
    opdi_nest *const nest = opdi_nest_new(sizes, channel + 1 + count, 1 + count);
    opdi_expr *const x = nest ? opdi_expr_load(self, none) : NULL, *const w = x ? opdi_expr_load(weight, none) : NULL;
    if (!w || opdi_nest_out(nest, out, none)) { return -1; }
    nest->reduction = OPDI_REDUCTION_SUM;
    nest->out.strides[0] = to[0];
    nest->out.strides[1] = to[1] * co;
    nest->out.strides[2] = to[1];
    x->access.strides[0] = from[0];
    x->access.strides[1] = from[1] * ci;
    x->access.strides[channel] = from[1];
    w->access.strides[1] = by[0] * ci;
    w->access.strides[2] = by[1];
    w->access.strides[channel] = by[0];
    for (int i = 0; i < count; i++) {
        nest->out.strides[3 + 2 * i] = to[2 + i] * steps[i];
        nest->out.strides[4 + 2 * i] = to[2 + i];
        x->access.strides[3 + 2 * i] = x->access.strides[channel + 1 + i] = from[2 + i];
        w->access.strides[4 + 2 * i] = by[2 + i];
        w->access.strides[channel + 1 + i] = -by[2 + i] * steps[i];
        w->access.offset += by[2 + i] * (opd_sizes(weight)[2 + i] - steps[i]);
    }
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    return opdi_nest_add(nest,
                         opdi_expr_formula(OPD_FORMULA_mul, wide, opdi_expr_cast(w, wide), opdi_expr_cast(x, wide)));
}
/* Returns a transposed convolution with the sizes of `result`; the first cut[i] elements along dim i of the image are
   left out.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_lower_transposed(opd_tensor *self, opd_tensor *weight, const opd_tensor *result,
                                         const int64_t *steps, const int64_t *cut, int64_t groups) {
    const int count = opd_ndim(self) - 2;
    int64_t before[OPD_MAX_DIMS] = {0}, after[OPD_MAX_DIMS] = {0}, none[OPD_MAX_DIMS] = {0}, sizes[OPD_MAX_DIMS];
    for (int i = 0; i < count; i++) {
        const int64_t size = opd_sizes(self)[2 + i], window = opd_sizes(weight)[2 + i], step = steps[i];
        const int64_t taps = (window + step - 1) / step, need = (cut[i] + opd_sizes(result)[2 + i] + step - 1) / step;
        const int64_t rounds = OPDI_MAX(size + taps - 1, need);
        after[i] = taps * step - window;
        before[i] = taps - 1;
        sizes[2 + i] = rounds;
    }
    if (!(weight = opdi_lower_padded(weight, 2, none, after, NULL, opd_value_int(0)))) { return NULL; }
    for (int i = 0; i < count; i++) {
        after[i] = sizes[2 + i] - opd_sizes(self)[2 + i];
        sizes[2 + i] *= steps[i];
    }
    sizes[0] = opd_sizes(result)[0];
    sizes[1] = opd_sizes(result)[1];
    self = opdi_lower_padded(self, 2, before, after, NULL, opd_value_int(0));
    opd_tensor *out = self ? opdi_lower_empty(sizes, count + 2, opdi_lower_wide(opd_dtype(result))) : NULL;
    if (!out || opdi_lower_convolve_back(out, self, weight, steps, groups)) { return NULL; }
    for (int i = 0; i < count; i++) {
        const int64_t size = opd_sizes(result)[2 + i];
        if (size != sizes[2 + i]) { out = opd_narrow(out, 2 + i, cut[i], size); }
    }
    return out;
}
#if defined(OPD_NO_OP_CONV)
static bool opdi_winograd_wanted(void) { return false; }
#endif
/* Returns whether kernels compute each element of a convolution as a chain of fused multiply-adds in the mode of same
   bits: not if they use Winograd's method, or have other loops for groups. */
static bool opdi_lower_conv_chains(const opd_call *call, const opd_tensor *weight, const opd_tensor *result) {
    const int64_t *const sizes = opd_sizes(weight);
    const int last = opd_ndim(weight) - 1;
    const opd_ints strides = opd_arg_ints(call, 3), dilation = opd_arg_ints(call, 5);
    bool plain = sizes[last] == 3 && (last < 3 || sizes[2] == 3);
    for (int i = 0; i < strides.n; i++) { plain = plain && strides.data[i] == 1; }
    for (int i = 0; i < dilation.n; i++) { plain = plain && dilation.data[i] == 1; }
    const bool tiles = plain && last == 3 && sizes[0] >= 16 && sizes[1] >= 16 && opd_size(result, 2) >= 4 &&
        opd_size(result, 3) >= 4 && opd_size(result, 3) <= 2048 && opdi_winograd_wanted();
    if (!opdi_lower_chains(weight, 2) || opd_arg_bool(call, 6) || opd_arg_int(call, 8) != 1) { return false; }
    if (tiles) {
        (void)opdi_same_refuse("a convolution by Winograd's method (set OPD_WINOGRAD=0 in the environment)");
    }
    return (last == 2 || last == 3) && (sizes[0] > 1 || sizes[1] > 1);
}
/* Records the convolution of padded input in blocks of the depth, as kernels add in the mode of same bits.  Returns 0,
   or -1 and sets an error. */
static int opdi_lower_convolve_same(opd_tensor *out, opd_tensor *self, opd_tensor *weight, const int64_t *steps,
                                    const int64_t *dilation) {
    const int64_t channels = opd_size(weight, 1), taps = opd_numel(weight) / channels / opd_size(weight, 0);
    const int64_t depth = OPDI_MIN(channels * taps, OPDI_SAME_DEPTH), step = depth / taps;
    if (step * taps != depth) {
        return opdi_same_refuse("a convolution whose blocks do not end with a channel");
    }
    opdi_lower_vouch();
    for (int64_t from = 0; from < channels && opd_ok(); from += step) {
        const int64_t count = OPDI_MIN(step, channels - from);
        opd_tensor *const part = from ? opdi_lower_empty(opd_sizes(out), opd_ndim(out), OPD_FLOAT32) : out;
        if (!part || opdi_lower_convolve(part, opd_narrow(self, 1, from, count), opd_narrow(weight, 1, from, count),
                                         steps, dilation, 1, false) ||
            (from && !opd_add_(out, part))) { return -1; }
    }
    return opd_ok() ? 0 : -1;
}
OPDI_INTERNAL int opdi_lower_convolution(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 1),
        *const bias = opd_arg_tensor(call, 2);
    const opd_ints strides = opd_arg_ints(call, 3), padding = opd_arg_ints(call, 4), dilation = opd_arg_ints(call, 5);
    const opd_ints more = opd_arg_ints(call, 7);
    const bool transposed = opd_arg_bool(call, 6);
    const int64_t groups = opd_arg_int(call, 8);
    int64_t before[OPD_MAX_DIMS], after[OPD_MAX_DIMS], step[OPD_MAX_DIMS], every[OPD_MAX_DIMS], spread[OPD_MAX_DIMS];
    int64_t cut[OPD_MAX_DIMS];
    bool steps = false, dilates = false;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int count = opd_ndim(weight) - 2;
    if (opd_ndim(self) != count + 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a convolution without a batch cannot be compiled");
    }
    for (int i = 0; i < count; i++) {
        const int64_t dilated = dilation.data[dilation.n == 1 ? 0 : i], given = padding.data[padding.n == 1 ? 0 : i];
        const int64_t moved = strides.data[strides.n == 1 ? 0 : i];
        const int64_t span = (opd_sizes(weight)[2 + i] - 1) * dilated;
        before[i] = transposed ? span - given : given;
        after[i] = transposed ? span - given + more.data[more.n == 1 ? 0 : i] : given;
        spread[i] = transposed ? moved : 1;
        step[i] = transposed ? 1 : moved;
        every[i] = dilated;
        cut[i] = given;
        steps = steps || (transposed && moved > 1);
        dilates = dilates || dilated > 1 || given || opd_sizes(weight)[2 + i] % moved ||
            opd_sizes(result)[2 + i] != (opd_sizes(self)[2 + i] - 1) * moved + opd_sizes(weight)[2 + i];
    }
    opd_tensor *out;
    if (steps && !dilates && count < 3) {         /* otherwise, later operations could not be fused into the product */
        if (!(out = opdi_lower_transposed(self, weight, result, spread, cut, groups))) { return -1; }
    } else {
        if (!(self = opdi_lower_padded(self, 2, before, after, spread, opd_value_int(0)))) { return -1; }
        out = opdi_lower_empty(opd_sizes(result), opd_ndim(result), opdi_lower_wide(opd_dtype(result)));
        const bool chains = out && opdi_lower_conv_chains(call, weight, result);
        if (!out || !opd_ok()) { return -1; }
        if (chains ? opdi_lower_convolve_same(out, self, weight, step, every)
            : opdi_lower_convolve(out, self, weight, step, every, groups, transposed)) { return -1; }
    }
    if (bias) { out = opd_add(out, opdi_lower_channels(opd_to_dtype(bias, opd_dtype(out)), out)); }
    return opdi_lower_return(call, 0, out);
}

//== pooling ===========================================================================================================

/* Fills *pool from the arguments of a call: the sizes of the windows, their steps, and the padding before and after.
   If `dilated` is true, argument 4 is the dilation. */
OPDI_INTERNAL void opdi_lower_pool_of(opdi_lower_pool *pool, const opd_call *call, const opd_tensor *self,
                                      const opd_tensor *result, bool dilated) {
    const opd_ints window = opd_arg_ints(call, 1), steps = opd_arg_ints(call, 2), padding = opd_arg_ints(call, 3);
    const opd_ints dilation = dilated ? opd_arg_ints(call, 4) : opd_ints_of(NULL, 0);
    const char *const name = opd_op_name(opd_call_operator(call));
    pool->count = strstr(name, "1d") ? 1 : strstr(name, "3d") ? 3 : 2;
    for (int i = 0; i < pool->count; i++) {
        const int64_t size = opd_sizes(self)[opd_ndim(self) - pool->count + i];
        const int64_t out = opd_sizes(result)[opd_ndim(result) - pool->count + i];
        pool->window[i] = window.data[window.n == 1 ? 0 : i];
        pool->steps[i] = steps.n ? steps.data[steps.n == 1 ? 0 : i] : pool->window[i];
        pool->before[i] = padding.n ? padding.data[padding.n == 1 ? 0 : i] : 0;
        pool->dilation[i] = dilation.n ? dilation.data[dilation.n == 1 ? 0 : i] : 1;
        pool->after[i] = (out - 1) * pool->steps[i] + (pool->window[i] - 1) * pool->dilation[i] + 1 - size -
            pool->before[i];
        pool->after[i] = OPDI_MAX(pool->after[i], 0);
    }
}
/* Records the reduction of each window of self, which already has its padding, to an element of `out`.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_pool_into(opd_tensor *out, opd_tensor *self, const opdi_lower_pool *pool,
                                       opdi_over reduction) {
    const int ndim = opd_ndim(self), first = ndim - pool->count;
    int64_t sizes[OPDI_NEST_DIMS + 3];
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) {
        sizes[i] = opd_sizes(out)[i];
        by[i] = i;
    }
    for (int i = 0; i < pool->count; i++) { sizes[ndim + i] = pool->window[i]; }
    opdi_nest *const nest = opdi_nest_new(sizes, ndim + pool->count, pool->count);
    if (!nest || opdi_nest_out(nest, out, by)) { return -1; }
    for (int i = first; i < ndim; i++) { by[i] = -1; }
    opdi_expr *const load = opdi_expr_load(self, by);
    if (!load) { return -1; }
    opdi_lower_windows(&load->access, self, first, pool->count, first, ndim, pool->steps, pool->dilation);
    nest->reduction = reduction;
    return opdi_nest_add(nest,
                         reduction == OPDI_REDUCTION_SUM ? opdi_expr_cast(load, opdi_lower_wide(load->dtype)) : load);
}
/* Returns the smallest value of a dtype. */
static opd_value opdi_lower_least(opd_scalar_type dtype) {
    return opd_dtype_is_floating(dtype) ? opd_value_double(-(double)INFINITY)
        : opd_value_int(dtype == OPD_UINT8 || dtype == OPD_BOOL ? 0 : dtype == OPD_INT8 ? INT8_MIN
                        : dtype == OPD_INT16 ? INT16_MIN : dtype == OPD_INT32 ? INT32_MIN : INT64_MIN);
}
/* Returns an expression for a position in self along pooled dim `dim`: the position of element number `at` of the
   window that loop `loop` selects.  If all elements of a window are the smallest value of the dtype, `at` may be in the
   padding; then the result is the position of the first element of the window outside of the padding. */
static opdi_expr *opdi_lower_pooled(const opdi_lower_pool *pool, int dim, int loop, opdi_expr *at) {
    opdi_expr *const start = opdi_expr_new(OPDI_EXPR_COUNT, OPD_INT64);
    opdi_expr *const every = opdi_expr_number(OPD_INT64, 0, pool->dilation[dim]);
    if (!start || !every) { return NULL; }
    start->access.offset = -pool->before[dim];
    start->access.strides[loop] = pool->steps[dim];
    opdi_expr *const inside = opdi_expr_formula(OPD_FORMULA_remainder, OPD_INT64, start, every);
    opdi_expr *const moved = opdi_expr_formula(OPD_FORMULA_mul, OPD_INT64, at, every);
    return opdi_expr_formula(OPD_FORMULA_maximum, OPD_INT64,
                             opdi_expr_formula(OPD_FORMULA_add, OPD_INT64, start, moved),
                             inside);
}
/* Lowers max_pool2d_with_indices and similar operators.  Converts the index in the window to an index in the image.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_max_pool(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    opdi_lower_pool pool;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t, *const indices = opd_call_rets(call)[1].u.t;
    opdi_lower_pool_of(&pool, call, self, result, true);
    const int ndim = opd_ndim(self), first = ndim - pool.count;
    opd_tensor *const padded = opdi_lower_padded(self, first, pool.before, pool.after, NULL,
                                                 opdi_lower_least(opd_dtype(self)));
    if (!padded || opdi_lower_pool_into(result, padded, &pool, OPDI_REDUCTION_MAX)) { return -1; }
    int64_t elements = 1;
    for (int i = 0; i < pool.count; i++) { elements *= pool.window[i]; }
    if (opdi_same_writes() && elements <= 9) {    /* the first of equal zeros counts, as in opdi_max_pool_f32 */
        opdi_recording_now->last->order = OPDI_ORDER_LINE;
        opdi_lower_vouch();
    }
    opd_tensor *const place = opdi_lower_empty(opd_sizes(result), ndim, OPD_INT64);
    if (!place || opdi_lower_pool_into(place, padded, &pool, OPDI_REDUCTION_POOLED)) { return -1; }
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), ndim, 0);
    opdi_expr *left = nest ? opdi_expr_load(place, by) : NULL, *sum = NULL;
    if (!left || opdi_nest_out(nest, indices, by)) { return -1; }
    int64_t step = 1;
    for (int i = pool.count - 1; i >= 0; i--) {   /* the last digit of the index belongs to the innermost dim */
        opdi_expr *const window = opdi_expr_number(OPD_INT64, 0, pool.window[i]);
        opdi_expr *const digit = i ? opdi_expr_formula(OPD_FORMULA_remainder, OPD_INT64, left, window) : left;
        opdi_expr *const at = opdi_lower_pooled(&pool, i, first + i, digit);
        opdi_expr *const part = step == 1 ? at : opdi_expr_formula(OPD_FORMULA_mul, OPD_INT64, at,
                                                                   opdi_expr_number(OPD_INT64, 0, step));
        sum = sum ? opdi_expr_formula(OPD_FORMULA_add, OPD_INT64, sum, part) : part;
        left = i ? opdi_expr_formula(OPD_FORMULA_div_trunc, OPD_INT64, left, window) : left;
        step *= opd_sizes(self)[first + i];
        if (!left || !sum) { return -1; }
    }
    return opdi_nest_add(nest, sum);
}
