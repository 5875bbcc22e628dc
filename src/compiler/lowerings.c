//----------------------------------------------------------------------------------------------------------------------
//  >>lowerings    operators become nests of loops
//
//  A lowering is the kernel of an operator on the lazy device. Most are written with other operators; a few make nests
//  of their own: reductions, products and convolutions (which are sums of a product of two loads), what is read at
//  indices.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPDI_CORE)
OPDI_COLD_BEGIN

/* Returns a fresh tensor of the lazy device; NULL with an error. */
static opd_tensor *opdi_lower_empty(const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    return opd_empty_full(opd_ints_of(sizes, ndim), opd_value_int(dtype), opd_value_none(),
                          opd_value_device(opd_device_of(OPD_LAZY, 0)), opd_value_none(), opd_value_none());
}
/* Returns the type in which sums over a dtype are computed. */
static opd_scalar_type opdi_lower_wide(opd_scalar_type dtype) {
    return dtype == OPD_FLOAT64 || dtype == OPD_FLOAT32 ? dtype : opd_dtype_is_floating(dtype) ? OPD_FLOAT32
        : OPD_INT64;
}
/* Stores a value in the i-th result of a call; 0, or -1. */
static int opdi_lower_give(opd_call *call, int i, opd_tensor *value) {
    opd_tensor *const result = opd_call_rets(call)[i].u.t;
    return value && opd_copy_(result, value) ? 0 : -1;
}
/* The same of as many elements in other sizes. */
static int opdi_lower_give_as(opd_call *call, int i, opd_tensor *value) {
    opd_tensor *const result = opd_call_rets(call)[i].u.t;
    return value ? opdi_lower_give(call, i, opd_view(value, opd_ints_of(opd_sizes(result), opd_ndim(result)))) : -1;
}
static opd_tensor *opdi_lower_times(opd_tensor *tensor, double factor) {
    return factor == 1 ? tensor : opd_mul_Scalar(tensor, opd_value_float(factor));
}

/* Returns int64s: first, and how often steps[i] is added the index of dim i says.  NULL with an error. */
static opd_tensor *opdi_lower_counts(const int64_t *sizes, int ndim, const int64_t *steps, int64_t first) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const out = opdi_lower_empty(sizes, ndim, OPD_INT64);
    opdi_nest *const nest = out ? opdi_nest_new(sizes, ndim, 0) : NULL;
    opdi_xpr *const count = nest ? opdi_xpr_new(OPDI_XPR_COUNT, OPD_INT64) : NULL;
    if (!count) { return NULL; }
    for (int i = 0; i < ndim; i++) { by[i] = i; }
    memcpy(count->access.strides, steps, (size_t)ndim * sizeof *steps);
    count->access.offset = first;
    return opdi_nest_out(nest, out, by) || opdi_nest_add(nest, count) ? NULL : out;
}
/* Stores start + step * i, of whole numbers or of doubles, in a tensor of one dim; 0, 1 where nothing is
   recorded, or -1 with an error. */
OPDI_SHARED int opdi_lower_sequence(opd_tensor *out, bool whole, int64_t first, int64_t every, double start,
                                    double step) {
    const int64_t one = 1;
    opdi_recording *const recording = opdi_recording_now;
    if (!recording) { return 1; }
    const char *const was = recording->what;
    recording->what = was ? was : "arange";
    opd_tensor *sequence = opdi_lower_counts(opd_sizes(out), 1, whole ? &every : &one, whole ? first : 0);
    if (sequence && !whole) {
        sequence = opd_mul_Scalar(opd_to_dtype(sequence, OPD_FLOAT64), opd_value_float(step));
        sequence = opd_add_Scalar(sequence, opd_value_float(start));
    }
    const int rc = sequence && opd_copy_(out, sequence) ? 0 : -1;
    recording->what = was;
    return rc;
}

//-- reductions --------------------------------------------------------------------------------------------------------

/* Reduces a tensor over the dims of a mask into out (with those dims kept, of size 1); counts: the value is the index
   in the reduced dims.  0, or -1. */
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
    opdi_xpr *value = opdi_xpr_load(self, by);
    const bool sums = reduction == OPDI_OVER_SUM || reduction == OPDI_OVER_PROD;
    if (sums) {
        const opd_scalar_type result = opd_dtype(out);
        value = opdi_xpr_cast(value, opdi_lower_wide(opd_dtype_is_floating(result) ? result : dtype));
    }
    for (int i = 0; i < ndim; i++) { if (mask >> i & 1) { by[i] = -1; } }
    return opdi_nest_out(nest, out, by) || opdi_nest_add(nest, value) ? -1 : 0;
}
/* Returns which dims a list of them means; none: all. */
static uint64_t opdi_lower_mask(opd_ints dims, int ndim) {
    uint64_t mask = 0;
    for (int i = 0; i < dims.n; i++) { mask |= (uint64_t)1 << (dims.data[i] < 0 ? dims.data[i] + ndim : dims.data[i]); }
    return dims.n && ndim ? mask : ndim < 64 ? ((uint64_t)1 << ndim) - 1 : UINT64_MAX;
}
/* Returns a reduction over dims, which keep size 1, in a dtype; NULL with an error. */
static opd_tensor *opdi_lower_reduced(opd_tensor *self, uint64_t mask, opdi_over reduction, opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(self); i++) { sizes[i] = mask >> i & 1 ? 1 : opd_sizes(self)[i]; }
    opd_tensor *const out = opdi_lower_empty(sizes, opd_ndim(self), dtype);
    return out && opdi_lower_reduce_into(out, self, mask, reduction) == 0 ? out : NULL;
}
static int64_t opdi_lower_count(const opd_tensor *self, uint64_t mask) {
    int64_t count = 1;
    for (int i = 0; i < opd_ndim(self); i++) { count *= mask >> i & 1 ? opd_sizes(self)[i] : 1; }
    return count;
}
/* Returns the type in which a sum for a result of a dtype is computed: floats are added up as doubles. */
static opd_scalar_type opdi_lower_widest(opd_scalar_type dtype) {
    return opd_dtype_is_floating(dtype) ? OPD_FLOAT64 : OPD_INT64;
}
/* Reduces argument 0 over a mask into result i, whose reduced dims may be gone. */
static int opdi_lower_reduction(opd_call *call, int i, uint64_t mask, opdi_over reduction) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const result = opd_call_rets(call)[i].u.t;
    const opd_scalar_type dtype = reduction == OPDI_OVER_SUM ? opdi_lower_widest(opd_dtype(result))
        : reduction == OPDI_OVER_PROD ? opdi_lower_wide(opd_dtype(result)) : opd_dtype(result);
    opd_tensor *const out = opdi_lower_reduced(self, mask, reduction, dtype);
    return out ? opdi_lower_give(call, i, opd_view(out, opd_ints_of(opd_sizes(result), opd_ndim(result)))) : -1;
}
static int opdi_lower_sum(opd_call *call) {
    const bool dims = opd_call_nargs(call) > 2;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_lower_reduction(call, 0, dims ? opdi_lower_mask(opd_arg_ints(call, 1), opd_ndim(self))
        : opdi_lower_mask(opd_ints_of(NULL, 0), opd_ndim(self)), OPDI_OVER_SUM);
}
static int opdi_lower_mean(opd_call *call) {
    const bool dims = opd_call_nargs(call) > 2;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const uint64_t mask = opdi_lower_mask(dims ? opd_arg_ints(call, 1) : opd_ints_of(NULL, 0), opd_ndim(self));
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const sum = opdi_lower_reduced(self, mask, OPDI_OVER_SUM, opdi_lower_widest(opd_dtype(result)));
    if (!sum) { return -1; }
    return opdi_lower_give(call, 0, opd_view(opd_div_Scalar(sum, opd_value_float((double)opdi_lower_count(self, mask))),
                                             opd_ints_of(opd_sizes(result), opd_ndim(result))));
}
/* Amax, amin, any.dim, all.dim, all, any: of dims in argument 1. */
static int opdi_lower_extreme(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value dims = opd_call_nargs(call) > 1 ? opd_arg_value(call, 1) : opd_value_none();
    const int64_t one = dims.tag == OPD_TAG_INT ? dims.u.i : 0;
    const opd_ints list = dims.tag == OPD_TAG_INT ? opd_ints_of(&one, 1)
        : dims.tag == OPD_TAG_INTS ? opd_arg_ints(call, 1) : opd_ints_of(NULL, 0);
    const opdi_over reduction = strstr(name, "amax") ? OPDI_OVER_MAX : strstr(name, "amin") ? OPDI_OVER_MIN
        : strstr(name, "any") ? OPDI_OVER_ANY : OPDI_OVER_ALL;
    const uint64_t mask = opdi_lower_mask(list, opd_ndim(self));
    return opd_results_from_fake(call) || opdi_lower_reduction(call, 0, mask, reduction) ? -1 : 0;
}
/* Max.dim, min.dim: values and indices. */
static int opdi_lower_max_dim(opd_call *call) {
    const bool most = strstr(opd_op_name(opd_call_operator(call)), "max") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int64_t dim = opd_arg_int(call, 1);
    const uint64_t mask = opdi_lower_mask(opd_ints_of(&dim, 1), opd_ndim(self));
    return opd_results_from_fake(call) ||
        opdi_lower_reduction(call, 0, mask, most ? OPDI_OVER_MAX : OPDI_OVER_MIN) ||
        opdi_lower_reduction(call, 1, mask, most ? OPDI_OVER_ARGMAX : OPDI_OVER_ARGMIN) ? -1 : 0;
}

/* Argmax, argmin, prod: of one dim in argument 1, or of all. */
static int opdi_lower_places_max(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value given = opd_call_nargs(call) > 2 ? opd_arg_value(call, 1) : opd_value_none();
    const int64_t dim = given.tag == OPD_TAG_INT ? given.u.i : 0;
    const uint64_t mask = opdi_lower_mask(opd_ints_of(&dim, given.tag == OPD_TAG_INT), opd_ndim(self));
    return opd_results_from_fake(call) || opdi_lower_reduction(call, 0, mask, strstr(name, "prod") ? OPDI_OVER_PROD
        : strstr(name, "argmax") ? OPDI_OVER_ARGMAX : OPDI_OVER_ARGMIN) ? -1 : 0;
}
/* Returns self, of a type in which sums are computed, less its mean over the dims of a mask, and that mean with these
   dims kept; NULL with an error.  A mean that is rounded may be as far off as the elements are from it: what rounding
   took is subtracted, too. */
static opd_tensor *opdi_lower_centred(opd_tensor *self, uint64_t mask, opd_tensor **mean) {
    const opd_value count = opd_value_float((double)opdi_lower_count(self, mask));
    const opd_scalar_type dtype = opd_dtype(self);
    opd_tensor *const wide = opd_to_dtype(self, OPD_FLOAT64);
    opd_tensor *sum = wide ? opdi_lower_reduced(wide, mask, OPDI_OVER_SUM, OPD_FLOAT64) : NULL;
    if (!sum) { return NULL; }
    opd_tensor *const exact = opd_div_Scalar(sum, count);
    *mean = opd_to_dtype(exact, dtype);
    opd_tensor *const less = opd_sub(self, *mean);
    if (dtype != OPD_FLOAT64 || !less) { return opd_sub(less, opd_to_dtype(opd_sub(exact, *mean), dtype)); }
    sum = opdi_lower_reduced(less, mask, OPDI_OVER_SUM, dtype);
    opd_tensor *const rest = sum ? opd_div_Scalar(sum, count) : NULL;
    *mean = opd_add(*mean, rest);
    return opd_sub(less, rest);
}
/* Var.correction, std.correction, var_mean.correction, std_mean.correction. */
static int opdi_lower_var(opd_call *call) {
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
    opd_tensor *out = less ? opdi_lower_reduced(opd_mul(less, less), mask, OPDI_OVER_SUM, OPD_FLOAT64) : NULL;
    if (!out) { return -1; }
    out = opd_div_Scalar(out, opd_value_float(rest > 0 ? rest : 0));
    out = strstr(name, "std") ? opd_sqrt(out) : out;
    return opdi_lower_give(call, 0, opd_view(out, sizes)) ||
        (strstr(name, "mean") && opdi_lower_give(call, 1, opd_view(mean, sizes))) ? -1 : 0;
}

//-- softmax and normalisations ----------------------------------------------------------------------------------------

static int opdi_lower_softmax(opd_call *call) {
    const bool logs = strstr(opd_op_name(opd_call_operator(call)), "log") != NULL;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(result)));
    const int64_t dim = opd_arg_int(call, 1);
    const opd_ints dims = opd_ints_of(&dim, 1);
    if (opd_ndim(self) == 0) {
        return opdi_lower_give(call, 0, logs ? opd_sub(self, self) : opd_exp(opd_sub(self, self)));
    }
    opd_tensor *const less = opd_sub(self, opd_amax(self, dims, true));
    opd_tensor *const exps = opd_exp(less), *const sum = opd_sum_dim(exps, dims, true);
    return opdi_lower_give(call, 0, logs ? opd_sub(less, opd_log(sum)) : opd_div(exps, sum));
}
/* Normalises self, of rows that reduce over mask: (x - mean) * rstd, and both of these with kept dims. */
static opd_tensor *opdi_lower_normalised(opd_tensor *self, uint64_t mask, double eps, opd_tensor **mean,
                                         opd_tensor **rstd, opd_tensor **var) {
    const double count = (double)opdi_lower_count(self, mask);
    opd_tensor *const less = opdi_lower_centred(self, mask, mean);
    opd_tensor *const squares = less ? opdi_lower_reduced(opd_mul(less, less), mask, OPDI_OVER_SUM, opd_dtype(self))
        : NULL;
    if (!squares) { return NULL; }
    *var = opd_div_Scalar(squares, opd_value_float(count));
    *rstd = opd_rsqrt(opd_add_Scalar(*var, opd_value_float(eps)));
    return opd_mul(less, *rstd);
}
static int opdi_lower_layer_norm(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 2), *const bias = opd_arg_tensor(call, 3);
    opd_tensor *mean, *rstd, *var;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(opd_arg_tensor(call, 0))));
    uint64_t mask = 0;
    for (int i = opd_ndim(self) - (int)opd_arg_ints(call, 1).n; i < opd_ndim(self); i++) { mask |= (uint64_t)1 << i; }
    opd_tensor *out = opdi_lower_normalised(self, mask, opd_arg_float(call, 4), &mean, &rstd, &var);
    if (out && weight) { out = opd_mul(out, weight); }
    if (out && bias) { out = opd_add(out, bias); }
    return opdi_lower_give(call, 0, out) || opdi_lower_give(call, 1, mean) || opdi_lower_give(call, 2, rstd) ? -1 : 0;
}
static int opdi_lower_group_norm(opd_call *call) {
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
    opd_tensor *out = opd_ok() ? opdi_lower_normalised(wide, 2, opd_arg_float(call, 7), &mean, &rstd, &var) : NULL;
    if (!out) { return -1; }
    out = opd_view(out, opd_ints_of(channels, 3));
    if (weight) { out = opd_mul(out, opd_view(weight, opd_ints_of(column, 3))); }
    if (bias) { out = opd_add(out, opd_view(bias, opd_ints_of(column, 3))); }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    return opdi_lower_give(call, 0, opd_view(out, opd_ints_of(opd_sizes(result), opd_ndim(result)))) ||
        opdi_lower_give(call, 1, opd_view(mean, opd_ints_of(by_group, 2))) ||
        opdi_lower_give(call, 2, opd_view(rstd, opd_ints_of(by_group, 2))) ? -1 : 0;
}
/* Returns a tensor of channels that broadcasts against self. */
static opd_tensor *opdi_lower_channels(opd_tensor *tensor, const opd_tensor *self) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(self); i++) { sizes[i] = i == 1 ? opd_sizes(self)[1] : 1; }
    return tensor ? opd_view(tensor, opd_ints_of(sizes, opd_ndim(self))) : NULL;
}
static int opdi_lower_batch_norm(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 1), *const bias = opd_arg_tensor(call, 2);
    opd_tensor *const running_mean = opd_arg_tensor(call, 3), *const running_var = opd_arg_tensor(call, 4);
    const bool training = strstr(opd_op_name(opd_call_operator(call)), "no_training") == NULL && opd_arg_bool(call, 5);
    const bool none = strstr(opd_op_name(opd_call_operator(call)), "no_training") != NULL;
    const double momentum = opd_arg_float(call, none ? 5 : 6), eps = opd_arg_float(call, none ? 6 : 7);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(opd_arg_tensor(call, 0))));
    opd_tensor *mean = NULL, *rstd = NULL, *var = NULL, *out;
    if (training) {
        const uint64_t mask = (((uint64_t)1 << opd_ndim(self)) - 1) & ~(uint64_t)2;
        const double count = (double)opdi_lower_count(self, mask);
        out = opdi_lower_normalised(self, mask, eps, &mean, &rstd, &var);
        if (!out) { return -1; }
        mean = opd_flatten(mean);
        rstd = opd_flatten(rstd);
        if (running_mean) {
            (void)opd_copy_(running_mean, opd_add(opdi_lower_times(running_mean, 1 - momentum),
                                                  opdi_lower_times(mean, momentum)));
        }
        if (running_var) {
            (void)opd_copy_(running_var, opd_add(opdi_lower_times(running_var, 1 - momentum),
                                                 opdi_lower_times(opd_flatten(var), momentum * count / (count - 1))));
        }
        out = weight ? opd_mul(out, opdi_lower_channels(weight, self)) : out;
    } else {
        opd_tensor *scale = opd_rsqrt(opd_add_Scalar(running_var, opd_value_float(eps)));
        scale = weight ? opd_mul(scale, weight) : scale;
        out = opd_mul(opd_sub(self, opdi_lower_channels(running_mean, self)), opdi_lower_channels(scale, self));
    }
    if (out && bias) { out = opd_add(out, opdi_lower_channels(bias, self)); }
    if (opdi_lower_give(call, 0, out)) { return -1; }
    return mean && (opdi_lower_give(call, 1, mean) || opdi_lower_give(call, 2, rstd)) ? -1 : 0;
}

//-- products and convolutions -----------------------------------------------------------------------------------------

/* Stores sum over k of first[..., m, k] * second[..., k, n] in out[..., m, n]; 0, or -1. */
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
    nest->reduction = OPDI_OVER_SUM;
    return opdi_nest_add(nest, opdi_xpr_formula(OPD_FORMULA_mul, wide, opdi_xpr_cast(opdi_xpr_load(first, by_first),
        wide),
                                                opdi_xpr_cast(opdi_xpr_load(second, by_second), wide)));
}
static opd_tensor *opdi_lower_product(opd_tensor *first, opd_tensor *second) {
    const int batch = opd_ndim(first) - 2;
    int64_t sizes[3];
    sizes[0] = opd_sizes(first)[0];
    sizes[batch] = opd_sizes(first)[batch];
    sizes[batch + 1] = opd_sizes(second)[batch + 1];
    opd_tensor *const out = opdi_lower_empty(sizes, batch + 2, opdi_lower_wide(opd_dtype(first)));
    return out && opdi_lower_product_into(out, first, second) == 0 ? out : NULL;
}
/* Mm, bmm. */
static int opdi_lower_mm(opd_call *call) {
    return opd_results_from_fake(call) ||
        opdi_lower_give(call, 0, opdi_lower_product(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1))) ? -1 : 0;
}
static opd_tensor *opdi_lower_scaled(opd_tensor *tensor, opd_value factor) {
    if (tensor && factor.tag == OPD_TAG_FLOAT && opd_dtype_is_integral(opd_dtype(tensor), true) &&
        fabs(factor.u.d) < 9e18) { factor = opd_value_int((int64_t)factor.u.d); }     /* as the operators do */
    const bool one = (factor.tag == OPD_TAG_INT && factor.u.i == 1) || (factor.tag == OPD_TAG_FLOAT && factor.u.d == 1);
    return one || !tensor ? tensor : opd_mul_Scalar(tensor, factor);
}
/* Addmm, baddbmm: beta * self + alpha * product. */
static int opdi_lower_addmm(opd_call *call) {
    const opd_value beta = opd_arg_value(call, 3), alpha = opd_arg_value(call, 4);
    const bool none = (beta.tag == OPD_TAG_INT && beta.u.i == 0) || (beta.tag == OPD_TAG_FLOAT && beta.u.d == 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const self = opd_arg_tensor(call, 0);
    opd_tensor *out = opdi_lower_scaled(opdi_lower_product(opd_arg_tensor(call, 1), opd_arg_tensor(call, 2)), alpha);
    if (out && !none) { out = opd_add(out, opdi_lower_scaled(opd_to_dtype(self, opd_dtype(out)), beta)); }
    return opdi_lower_give(call, 0, out);
}
/* Returns self with rows of a value around its dims from `first` on, before[i] and after[i] (which may be negative),
   and steps[i] - 1 of them between its elements; NULL with an error. */
static opd_tensor *opdi_lower_padded(opd_tensor *self, int first, const int64_t *before, const int64_t *after,
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
        const int64_t skip = before[k] < 0 ? (step - 1 - before[k]) / step : 0;                /* elements cut away */
        const int64_t at = before[k] + skip * step;
        const int64_t room = (sizes[first + k] - at + step - 1) / step, take = OPDI_MIN(size - skip, room);
        from = opd_narrow(from, first + k, skip, take);
        inside = opd_slice(inside, first + k, opd_value_int(at), opd_value_int(at + (take - 1) * step + 1), step);
    }
    return opd_copy_(inside, from) ? out : NULL;
}
/* Adds to nest and load the strides of windows: loop `at + i` moves them by steps[i], loop `window + i` inside by
   dilation[i], both along dim first + i of a tensor. */
static void opdi_lower_windows(opdi_access *access, const opd_tensor *self, int first, int count, int at, int window,
                               const int64_t *steps, const int64_t *dilation) {
    for (int i = 0; i < count; i++) {
        access->strides[at + i] += opd_strides(self)[first + i] * steps[i];
        access->strides[window + i] += opd_strides(self)[first + i] * dilation[i];
    }
}
/* Stores a convolution of what is padded already: out[n, g, co, o...] = sum in[n, g, ci, o... * step + k... * dilation]
   * weight[g, co, ci, k...]; flip: weight is [ci, co] of each group, and read backwards. */
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
    opdi_xpr *const x = nest ? opdi_xpr_load(self, none) : NULL, *const w = x ? opdi_xpr_load(weight, none) : NULL;
    if (!w || opdi_nest_out(nest, out, none)) { return -1; }
    const int64_t *const out_strides = opd_strides(out), *const strides = opd_strides(self);
    const int64_t *const weights = opd_strides(weight);
    nest->reduction = OPDI_OVER_SUM;
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
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    return opdi_nest_add(nest, opdi_xpr_formula(OPD_FORMULA_mul, wide, opdi_xpr_cast(w, wide), opdi_xpr_cast(x, wide)));
}
/* Stores a transposed convolution with steps: out[n, g, co, steps * q + r] = sum over ci and k of
   self[n, g, ci, q + k] * weight[g, ci, co, steps * (taps - 1 - k) + r], where self has taps - 1 zeros in front, and
   weight taps * steps elements; the rest between steps is never there to be multiplied.  0, or -1. */
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
    opdi_xpr *const x = nest ? opdi_xpr_load(self, none) : NULL, *const w = x ? opdi_xpr_load(weight, none) : NULL;
    if (!w || opdi_nest_out(nest, out, none)) { return -1; }
    nest->reduction = OPDI_OVER_SUM;
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
    return opdi_nest_add(nest, opdi_xpr_formula(OPD_FORMULA_mul, wide, opdi_xpr_cast(w, wide), opdi_xpr_cast(x, wide)));
}
/* Returns a transposed convolution of such sizes, in front of which `cut` rows are left away; NULL with an error. */
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
static int opdi_lower_convolution(opd_call *call) {
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
    if (opd_ndim(self) != count + 2) { return opd_fail(OPD_ERROR_ARGUMENT, "a convolution without a batch"); }
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
    if (steps && !dilates && count < 3) {         /* else what follows would be no part of the product any more */
        if (!(out = opdi_lower_transposed(self, weight, result, spread, cut, groups))) { return -1; }
    } else {
        if (!(self = opdi_lower_padded(self, 2, before, after, spread, opd_value_int(0)))) { return -1; }
        out = opdi_lower_empty(opd_sizes(result), opd_ndim(result), opdi_lower_wide(opd_dtype(result)));
        if (!out || opdi_lower_convolve(out, self, weight, step, every, groups, transposed)) { return -1; }
    }
    if (bias) { out = opd_add(out, opdi_lower_channels(opd_to_dtype(bias, opd_dtype(out)), out)); }
    return opdi_lower_give(call, 0, out);
}

//-- pools -------------------------------------------------------------------------------------------------------------

/* Fills what a pool's windows need of arguments: sizes, steps, rows in front and behind. */
typedef struct opdi_lower_pool {
    int count;                                    /* dims that are pooled */
    int64_t window[3], steps[3], before[3], after[3], dilation[3];
} opdi_lower_pool;
static void opdi_lower_pool_of(opdi_lower_pool *pool, const opd_call *call, const opd_tensor *self,
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
/* Reduces the windows of self, which is padded, into out. */
static int opdi_lower_pool_into(opd_tensor *out, opd_tensor *self, const opdi_lower_pool *pool,
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
    opdi_xpr *const load = opdi_xpr_load(self, by);
    if (!load) { return -1; }
    opdi_lower_windows(&load->access, self, first, pool->count, first, ndim, pool->steps, pool->dilation);
    nest->reduction = reduction;
    return opdi_nest_add(nest, reduction == OPDI_OVER_SUM ? opdi_xpr_cast(load, opdi_lower_wide(load->dtype)) : load);
}
/* Returns the smallest value of a dtype. */
static opd_value opdi_lower_least(opd_scalar_type dtype) {
    return opd_dtype_is_floating(dtype) ? opd_value_float(-(double)INFINITY)
        : opd_value_int(dtype == OPD_UINT8 || dtype == OPD_BOOL ? 0 : dtype == OPD_INT8 ? INT8_MIN
                        : dtype == OPD_INT16 ? INT16_MIN : dtype == OPD_INT32 ? INT32_MIN : INT64_MIN);
}
/* Returns where place `at` of a window is along a pooled dim, walked by a loop: of a window whose elements are all the
   least the first one that is no padding. */
static opdi_xpr *opdi_lower_pooled(const opdi_lower_pool *pool, int dim, int loop, opdi_xpr *at) {
    opdi_xpr *const start = opdi_xpr_new(OPDI_XPR_COUNT, OPD_INT64);
    opdi_xpr *const every = opdi_xpr_number(OPD_INT64, 0, pool->dilation[dim]);
    if (!start || !every) { return NULL; }
    start->access.offset = -pool->before[dim];
    start->access.strides[loop] = pool->steps[dim];
    opdi_xpr *const inside = opdi_xpr_formula(OPD_FORMULA_remainder, OPD_INT64, start, every);
    opdi_xpr *const moved = opdi_xpr_formula(OPD_FORMULA_mul, OPD_INT64, at, every);
    return opdi_xpr_formula(OPD_FORMULA_maximum, OPD_INT64, opdi_xpr_formula(OPD_FORMULA_add, OPD_INT64, start, moved),
                            inside);
}
/* Max_pool2d_with_indices and its like: the place in the window becomes one in the image. */
static int opdi_lower_max_pool(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    opdi_lower_pool pool;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t, *const indices = opd_call_rets(call)[1].u.t;
    opdi_lower_pool_of(&pool, call, self, result, true);
    const int ndim = opd_ndim(self), first = ndim - pool.count;
    opd_tensor *const padded = opdi_lower_padded(self, first, pool.before, pool.after, NULL,
                                                 opdi_lower_least(opd_dtype(self)));
    if (!padded || opdi_lower_pool_into(result, padded, &pool, OPDI_OVER_MAX)) { return -1; }
    opd_tensor *const place = opdi_lower_empty(opd_sizes(result), ndim, OPD_INT64);
    if (!place || opdi_lower_pool_into(place, padded, &pool, OPDI_OVER_POOLED)) { return -1; }
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), ndim, 0);
    opdi_xpr *left = nest ? opdi_xpr_load(place, by) : NULL, *sum = NULL;
    if (!left || opdi_nest_out(nest, indices, by)) { return -1; }
    int64_t step = 1;
    for (int i = pool.count - 1; i >= 0; i--) {   /* the innermost dim's digit of the place is the last one */
        opdi_xpr *const window = opdi_xpr_number(OPD_INT64, 0, pool.window[i]);
        opdi_xpr *const digit = i ? opdi_xpr_formula(OPD_FORMULA_remainder, OPD_INT64, left, window) : left;
        opdi_xpr *const at = opdi_lower_pooled(&pool, i, first + i, digit);
        opdi_xpr *const part = step == 1 ? at : opdi_xpr_formula(OPD_FORMULA_mul, OPD_INT64, at,
                                                                 opdi_xpr_number(OPD_INT64, 0, step));
        sum = sum ? opdi_xpr_formula(OPD_FORMULA_add, OPD_INT64, sum, part) : part;
        left = i ? opdi_xpr_formula(OPD_FORMULA_div_trunc, OPD_INT64, left, window) : left;
        step *= opd_sizes(self)[first + i];
        if (!left || !sum) { return -1; }
    }
    return opdi_nest_add(nest, sum);
}

//-- what is read at indices -------------------------------------------------------------------------------------------

/* Adds an index to a load: the value of index there, times stride. */
static int opdi_lower_index_by(opdi_xpr *load, opdi_xpr *index, int64_t stride, int64_t size) {
    if (!load || !index) { return -1; }
    if (load->nin == OPDI_NEST_INDICES) { return opd_fail(OPD_ERROR_ARGUMENT, "more than 4 indices"); }
    load->in[load->nin] = opdi_xpr_cast(index, OPD_INT64);
    load->index_strides[load->nin] = stride;
    load->index_sizes[load->nin++] = size;
    return 0;
}
static int opdi_lower_embedding(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 0), *const indices = opd_arg_tensor(call, 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(result);
    const int weights[2] = {-1, ndim - 1};
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), ndim, 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(weight, weights) : NULL;
    if (!load || opdi_lower_index_by(load, opdi_xpr_load(indices, by), opd_strides(weight)[0], opd_sizes(weight)[0]) ||
        opdi_nest_out(nest, result, by)) { return -1; }
    return opdi_nest_add(nest, load);
}
/* Reads self at an index along dim: of the result's dims (gather), or one row of it. */
static int opdi_lower_take(opd_tensor *result, opd_tensor *self, opd_tensor *index, int64_t dim, bool gather) {
    const int ndim = opd_ndim(result);
    int by[OPD_MAX_DIMS], others[OPD_MAX_DIMS];
    if (ndim == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "gather of a number"); }
    dim = dim < 0 ? dim + ndim : dim;
    for (int i = 0; i < ndim; i++) {
        by[i] = i;
        others[i] = i == dim ? -1 : i;
    }
    const int row = (int)dim;
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), ndim, 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(self, others) : NULL;
    if (!load || opdi_lower_index_by(load, opdi_xpr_load(index, gather ? by : &row), opd_strides(self)[dim],
                                     opd_sizes(self)[dim]) || opdi_nest_out(nest, result, by)) { return -1; }
    return opdi_nest_add(nest, load);
}
/* Gather (index has self's dims) and index_select (index is one row along dim). */
static int opdi_lower_gather(opd_call *call) {
    const bool gather = strstr(opd_op_name(opd_call_operator(call)), "gather") != NULL;
    return opd_results_from_fake(call) || opdi_lower_take(opd_call_rets(call)[0].u.t, opd_arg_tensor(call, 0),
        opd_arg_tensor(call, 2), opd_arg_int(call, 1), gather) ? -1 : 0;
}
/* What tensor[indices] reads or writes: its sizes, and for each dim of tensor the loop that walks it (-1: an index). */
typedef struct opdi_lower_places {
    int64_t sizes[2 * OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS], ndim, where, wide;    /* where: the first of the loops over the indices, which are `wide` */
} opdi_lower_places;
/* Finds that; refuses masks.  0, or -1 with an error. */
static int opdi_lower_places_of(opdi_lower_places *places, const opd_tensor *tensor, opd_tensors indices) {
    int first = -1, last = -1, given = 0;
    memset(places, 0, sizeof *places);
    for (int i = 0; i < (int)indices.n; i++) {
        if (!indices.data[i]) { continue; }
        if (opd_dtype(indices.data[i]) == OPD_BOOL || opd_dtype(indices.data[i]) == OPD_UINT8) {
            return opd_fail(OPD_ERROR_ARGUMENT, "a mask as an index gives a size that depends on data, which cannot be "
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
/* Adds indices to a load or place; 0, or -1. */
static int opdi_lower_places_by(opdi_xpr *xpr, const opdi_lower_places *places, const opd_tensor *tensor,
                                opd_tensors indices) {
    int by[OPD_MAX_DIMS];
    xpr->wraps = true;
    for (int i = 0; i < (int)indices.n; i++) {
        opd_tensor *const index = indices.data[i];
        for (int k = 0; index && k < opd_ndim(index); k++) {
            by[k] = opd_sizes(index)[k] == 1 ? -1 : places->where + places->wide - opd_ndim(index) + k;
        }
        if (index && opdi_lower_index_by(xpr, opdi_xpr_load(index, by), opd_strides(tensor)[i],
                                         opd_sizes(tensor)[i])) { return -1; }
    }
    return 0;
}
/* Self[indices]: tensors of integers, which broadcast, for some dims. */
static int opdi_lower_index(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_tensors indices = opd_arg_tensors(call, 1);
    opdi_lower_places places;
    int by[OPD_MAX_DIMS];
    if (opdi_lower_places_of(&places, self, indices) || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    for (int i = 0; i < opd_ndim(result); i++) { by[i] = i; }
    if (opd_numel(result) == 0) { return 0; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), opd_ndim(result), 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(self, places.dims) : NULL;
    if (!load || opdi_nest_out(nest, result, by) || opdi_lower_places_by(load, &places, self, indices)) { return -1; }
    return opdi_nest_add(nest, load);
}

/* Returns the load of a row of numbers that are known now, walked by a loop; then the same of a floating dtype. */
static opdi_xpr *opdi_lower_constant_row(const int64_t *numbers, int64_t count, int loop) {
    opd_tensor *const host = opd_empty(opd_ints_of(&count, 1), OPD_INT64);
    if (!host) { return NULL; }
    memcpy(opd_data_i64(host), numbers, (size_t)count * sizeof *numbers);
    opd_tensor *const row = opd_to_device(host, opd_device_of(OPD_LAZY, 0), OPD_INT64);
    return row ? opdi_xpr_load(row, &loop) : NULL;
}
static opdi_xpr *opdi_lower_weight_row(const double *numbers, int64_t count, int loop, opd_scalar_type dtype) {
    opd_tensor *host = opd_empty(opd_ints_of(&count, 1), OPD_FLOAT64);
    if (!host) { return NULL; }
    memcpy(opd_data_f64(host), numbers, (size_t)count * sizeof *numbers);
    host = opd_to_dtype(host, dtype);
    opd_tensor *const row = host ? opd_to_device(host, opd_device_of(OPD_LAZY, 0), dtype) : NULL;
    return row ? opdi_xpr_load(row, &loop) : NULL;
}
static double opdi_lower_rounded(double value, bool exactly) { return exactly ? value : (double)(float)value; }
/* Upsample_nearest2d, _nearest_exact2d and upsample_bilinear2d: what each row and column reads is known now. */
static int opdi_lower_upsample(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool linear = strstr(name, "bilinear") != NULL, exact = strstr(name, "exact") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const bool corners = linear && opd_arg_bool(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), 4, 0);
    const int by[4] = {0, 1, 2, 3}, outer[4] = {0, 1, -1, -1};
    opdi_xpr *at[2][2] = {{NULL, NULL}, {NULL, NULL}}, *part[2] = {NULL, NULL};
    if (!nest || opdi_nest_out(nest, result, by)) { return -1; }
    for (int k = 0; k < 2; k++) {
        const int64_t in = opd_sizes(self)[2 + k], out = opd_sizes(result)[2 + k];
        const opd_value given = opd_arg_value(call, (linear ? 3 : 2) + k);
        const double factor = given.tag == OPD_TAG_FLOAT && given.u.d > 0 ? 1 / given.u.d : (double)in / (double)out;
        const bool exactly = wide == OPD_FLOAT64;    /* places are computed in the type of the sums */
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
    opdi_xpr *corner[4] = {NULL, NULL, NULL, NULL};
    for (int k = 0; k < (linear ? 4 : 1); k++) {
        opdi_xpr *const load = opdi_xpr_load(self, outer);
        if (!load || opdi_lower_index_by(load, at[0][k / 2], opd_strides(self)[2], opd_sizes(self)[2]) ||
            opdi_lower_index_by(load, at[1][k % 2], opd_strides(self)[3], opd_sizes(self)[3])) { return -1; }
        corner[k] = linear ? opdi_xpr_cast(load, wide) : load;
    }
    if (!linear) { return opdi_nest_add(nest, corner[0]); }
    opdi_xpr *rows[2];
    for (int k = 0; k < 3; k++) {                 /* first + part * (second - first), of columns and then of rows */
        opdi_xpr *const first = k < 2 ? corner[2 * k] : rows[0], *const second = k < 2 ? corner[2 * k + 1] : rows[1];
        opdi_xpr *const more = opdi_xpr_formula(OPD_FORMULA_mul, wide, part[k < 2],
                                                opdi_xpr_formula(OPD_FORMULA_sub, wide, second, first));
        opdi_xpr *const sum = opdi_xpr_formula(OPD_FORMULA_add, wide, first, more);
        if (k < 2) { rows[k] = sum; } else { return opdi_nest_add(nest, opdi_xpr_cast(sum, nest->out.dtype)); }
    }
    return -1;
}

static opd_tensor *opdi_lower_known(const double *numbers, int64_t count, int dim, int ndim, opd_scalar_type dtype);
/* Divides sums of windows by how many elements each has, one dim after the other; `outside`: those of the padding count
   that the call asked for.  NULL with an error. */
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
        sums = by ? opd_div(sums, by) : NULL;
    }
    return sums;
}
/* Avg_pool2d and its like: sums of windows over how many elements count. */
static int opdi_lower_avg_pool(opd_call *call) {
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
    if (!padded || !sums || opdi_lower_pool_into(sums, padded, &pool, OPDI_OVER_SUM)) { return -1; }
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
    if (!plain) { return opdi_lower_give(call, 0, opdi_lower_pool_means(sums, self, &pool, outside)); }
    return opdi_lower_give(call, 0, opd_div_Scalar(sums, opd_value_float((double)count)));
}
static int opdi_lower_adaptive_means(opd_call *call, int count);
/* _adaptive_avg_pool2d; here where the windows are all of one size. */
static int opdi_lower_adaptive(opd_call *call) {
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
    if (!sums || opdi_lower_pool_into(sums, self, &pool, OPDI_OVER_SUM)) { return -1; }
    return opdi_lower_give(call, 0, opd_div_Scalar(sums, opd_value_float((double)count)));
}
/* Stores in out[..., i + 1, ...] along dim what is in self there, and with `more` what a formula makes of it and
   out[..., i, ...]; without it out[..., 0, ...] alone is stored.  0, or -1. */
static int opdi_lower_add_up(opd_tensor *out, opd_tensor *self, int dim, bool more, opd_formula formula) {
    const int64_t count = opd_sizes(self)[dim], stride = opd_strides(out)[dim];
    int64_t sizes[OPD_MAX_DIMS];
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(self); i++) {
        sizes[i] = i != dim ? opd_sizes(self)[i] : more ? count - 1 : OPDI_MIN(count, 1);
        by[i] = i;
    }
    opdi_nest *const nest = opdi_nest_new(sizes, opd_ndim(self), 0);
    opdi_xpr *load = nest ? opdi_xpr_load(self, by) : NULL;
    if (!load || opdi_nest_out(nest, out, by)) { return -1; }
    if (more) {
        load->access.offset += opd_strides(self)[dim];
        nest->out.offset += stride;
        nest->follows = true;
    }
    load = opdi_xpr_cast(load, opd_dtype(out));
    return opdi_nest_add(nest, more ? opdi_xpr_formula(formula, opd_dtype(out), opdi_xpr_load(out, by), load) : load);
}
/* Returns what a formula makes of each element and what it made of those before, in a dtype; NULL with an error. */
static opd_tensor *opdi_lower_scanned(opd_tensor *self, int dim, opd_formula formula, opd_scalar_type dtype) {
    opd_tensor *const out = opdi_lower_empty(opd_sizes(self), opd_ndim(self), dtype);
    if (!out || !opd_numel(self)) { return out; }
    if (opdi_lower_add_up(out, self, dim, false, formula) ||
        (opd_sizes(self)[dim] > 1 && opdi_lower_add_up(out, self, dim, true, formula))) { return NULL; }
    return out;
}
/* Cumsum, cumprod, logcumsumexp: each is the one before and an element more.  Those of floats are doubles. */
static int opdi_lower_cumsum(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t given = opd_arg_int(call, 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(self), dim = (int)(given < 0 ? given + ndim : given);
    if (!ndim) { return opdi_lower_give(call, 0, self); }
    const bool floating = opd_dtype_is_floating(opd_dtype(result));
    self = opd_to_dtype(self, opd_dtype(result));
    opd_tensor *const out = !self ? NULL : opdi_lower_scanned(self, dim, strstr(name, "cumprod") ? OPD_FORMULA_mul
        : strstr(name, "logcum") ? OPD_FORMULA_logaddexp : OPD_FORMULA_add, floating ? OPD_FLOAT64 : OPD_INT64);
    return out && opd_numel(self) ? opdi_lower_give(call, 0, out) : out ? 0 : -1;
}
/* Cummax, cummin: the place is the last one where an element is what is the largest up to there. */
static int opdi_lower_cummax(opd_call *call) {
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
    if (!at || opdi_lower_give(call, 0, out)) { return -1; }
    return opdi_lower_give(call, 1, opdi_lower_scanned(at, dim, OPD_FORMULA_maximum, OPD_INT64));
}

//-- what is sorted ----------------------------------------------------------------------------------------------------

/* Returns the places along dim of the first `count` elements of self as it would be sorted; NULL with an error. */
static opd_tensor *opdi_lower_order(opd_tensor *self, int dim, int64_t count, bool most) {
    const int ndim = opd_ndim(self), last = ndim - 1;
    const int64_t rows = opd_sizes(self)[dim];
    int64_t sizes[OPD_MAX_DIMS + 1];
    int by[OPD_MAX_DIMS], from[OPD_MAX_DIMS];
    opd_tensor *const keys = opd_to_dtype(self, opdi_lower_wide(opd_dtype(self)));
    for (int i = 0, at = 0; i < ndim; i++) {      /* loops: the other dims, then what is stored, then what is read */
        by[i] = i == dim ? last : at;
        from[i] = i == dim ? ndim : at;
        sizes[by[i]] = i == dim ? count : opd_sizes(self)[i];
        at += i != dim;
    }
    opd_tensor *out = opdi_lower_empty(sizes, ndim, OPD_INT64);
    out = out ? opd_movedim(out, last, dim) : NULL;
    sizes[ndim] = rows;
    opdi_nest *const nest = keys && out ? opdi_nest_new(sizes, ndim + 1, 1) : NULL;
    opdi_xpr *const load = nest ? opdi_xpr_load(keys, from) : NULL;
    if (!load || opdi_nest_out(nest, out, by)) { return NULL; }
    nest->reduction = most ? OPDI_OVER_MOST : OPDI_OVER_LEAST;
    return opdi_nest_add(nest, load) ? NULL : out;
}
/* Sort, topk: the elements, and their places; argsort: these alone. */
static int opdi_lower_sort(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool top = strstr(name, "topk") != NULL, stable = strstr(name, "stable") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int at = top || stable ? 2 : 1;
    const int64_t given = opd_arg_int(call, at);
    const bool most = opd_arg_bool(call, at + 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    if (opd_ndim(self) == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "what sorts a number cannot be compiled");
    }
    const int dim = (int)(given < 0 ? given + opd_ndim(self) : given);
    if (!opd_numel(result)) { return 0; }
    opd_tensor *const order = opdi_lower_order(self, dim, opd_sizes(result)[dim], most);
    if (!order || strstr(name, "argsort")) { return order ? opdi_lower_give(call, 0, order) : -1; }
    return opdi_lower_take(result, self, order, dim, true) || opdi_lower_give(call, 1, order) ? -1 : 0;
}

//-- bags --------------------------------------------------------------------------------------------------------------

/* Returns 0, once it has been seen that a value is in [0, size); NULL with an error. */
static opdi_xpr *opdi_lower_checked(opdi_xpr *value, int64_t size) {
    const int64_t one = 1;
    int none = -1;
    opd_tensor *const zero = opdi_lower_empty(&one, 1, OPD_INT64);
    if (!zero || !opd_fill_(zero, opd_value_int(0))) { return NULL; }
    opdi_xpr *const load = opdi_xpr_load(zero, &none);
    return load && opdi_lower_index_by(load, value, 0, size) == 0 ? load : NULL;
}
static opdi_xpr *opdi_lower_sum_of(opdi_xpr *x, opdi_xpr *y) {
    return opdi_xpr_formula(OPD_FORMULA_add, OPD_INT64, x, y);
}
/* Returns where bags begin, int64s that do not decrease, from 0 to at most `total`: checked when it runs. */
static opd_tensor *opdi_lower_bags(opd_tensor *offsets, int64_t total) {
    const int64_t count = opd_numel(offsets);
    int by = 0;
    opd_tensor *const out = opdi_lower_empty(&count, 1, OPD_INT64);
    opd_tensor *const wide = opd_to_dtype(offsets, OPD_INT64);
    for (int part = 0; part < 2 && out && wide && opd_ok(); part++) {     /* the first, and the others */
        const int64_t size = part ? count - 1 : 1;
        if (!size) { break; }
        opdi_nest *const nest = opdi_nest_new(&size, 1, 0);
        opdi_xpr *const here = nest ? opdi_xpr_load(wide, &by) : NULL, *const before = opdi_xpr_load(wide, &by);
        if (!here || !before || opdi_nest_out(nest, out, &by)) { return NULL; }
        if (part) {
            here->access.offset += opd_strides(wide)[0];
            nest->out.offset++;
        }
        opdi_xpr *const more = part ? opdi_xpr_formula(OPD_FORMULA_sub, OPD_INT64, here, before) : here;
        opdi_xpr *const zero = opdi_lower_checked(more, part ? total + 1 : 1);
        opdi_xpr *const inside = opdi_lower_checked(here, total + 1);
        if (!zero || !inside ||
            opdi_nest_add(nest, opdi_lower_sum_of(here, opdi_lower_sum_of(zero, inside)))) { return NULL; }
    }
    return opd_ok() ? out : NULL;
}
/* Adds rows of weight, times factors where these are given, to the rows of out that `bags` names. */
static int opdi_lower_add_rows(opd_tensor *out, opd_tensor *weight, opd_tensor *indices, opd_tensor *bags,
                               opd_tensor *factors) {
    const int64_t sizes[2] = {opd_numel(indices), opd_sizes(weight)[1]};
    const int row = 0, column[2] = {-1, 1};
    const opd_scalar_type wide = opd_dtype(out);
    opdi_nest *const nest = opdi_nest_new(sizes, 2, 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(weight, column) : NULL, *const place = opdi_xpr_new(OPDI_XPR_PLACE,
        wide);
    opdi_xpr *const was = load ? opdi_xpr_load(out, column) : NULL;
    if (!was || !place || opdi_nest_out(nest, out, column) ||
        opdi_lower_index_by(load, opdi_xpr_load(indices, &row), opd_strides(weight)[0], opd_sizes(weight)[0]) ||
        opdi_lower_index_by(was, opdi_xpr_load(bags, &row), opd_strides(out)[0], opd_sizes(out)[0]) ||
        opdi_lower_index_by(place, opdi_xpr_load(bags, &row), opd_strides(out)[0], opd_sizes(out)[0])) { return -1; }
    opdi_xpr *part = opdi_xpr_cast(load, wide);
    if (factors) {
        part = opdi_xpr_formula(OPD_FORMULA_mul, wide, part, opdi_xpr_cast(opdi_xpr_load(factors, &row), wide));
    }
    nest->place = place;
    return part ? opdi_nest_add(nest, opdi_xpr_formula(OPD_FORMULA_add, wide, was, part)) : -1;
}
/* Returns which bag each of `total` indices is in: how many begin up to there, less one. */
static opd_tensor *opdi_lower_bag_of(opd_tensor *begin, int64_t total) {
    const int64_t dim = 0, one = 1;
    opd_tensor *const numbers = opdi_lower_counts(&total, 1, &one, 0);
    if (!numbers) { return NULL; }
    opd_tensor *const begun = opd_le(opd_unsqueeze(begin, 1), opd_unsqueeze(numbers, 0));
    return begun ? opd_sub_Scalar(opd_sum_dim(begun, opd_ints_of(&dim, 1), false), opd_value_int(1)) : NULL;
}
/* Returns how many indices each bag has. */
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
static int opdi_lower_put_more(opd_tensor *acc, opd_tensor *values, const int *dims, opdi_xpr *place,
                               opd_formula formula);
static opdi_xpr *opdi_lower_row_place(opd_tensor *acc, int dim, opd_tensor *index, bool row, int *dims);
/* What maxima of bags are made of: rows, [total, d], the bag of each, and of each bag which of them is its first. */
typedef struct opdi_lower_maxima { opd_tensor *rows, *bag, *first, *most, *place; } opdi_lower_maxima;
/* Returns a row's element of what bags have, and to nest where that is. */
static opdi_xpr *opdi_lower_of_bag(opdi_nest *nest, opd_tensor *acc, opd_tensor *bag, bool stores) {
    const int row = 0, column[2] = {-1, 1};
    opdi_xpr *const was = opdi_xpr_load(acc, column), *const place = opdi_xpr_new(OPDI_XPR_PLACE, opd_dtype(acc));
    if (!was || !place || opdi_lower_index_by(was, opdi_xpr_load(bag, &row), opd_strides(acc)[0], opd_sizes(acc)[0]) ||
        opdi_lower_index_by(place, opdi_xpr_load(bag, &row), opd_strides(acc)[0], opd_sizes(acc)[0])) { return NULL; }
    if (!stores) { return was; }
    nest->place = place;
    return opdi_nest_out(nest, acc, column) ? NULL : was;
}
static opdi_xpr *opdi_lower_where(opd_scalar_type dtype, opdi_xpr *x, opdi_xpr *y, opdi_xpr *z) {
    opdi_xpr *const value = y && z ? opdi_xpr_formula(OPD_FORMULA_where, dtype, x, y) : NULL;
    if (!value) { return NULL; }
    value->in[2] = z;
    value->nin = 3;
    return value;
}
/* Makes bags' maxima, which begin with the first of each, larger; a first one that is NaN stays. */
static int opdi_lower_bags_most(opdi_lower_maxima *all) {
    const int by[2] = {0, 1};
    const opd_scalar_type dtype = opd_dtype(all->most);
    opdi_nest *const nest = opdi_nest_new(opd_sizes(all->rows), 2, 0);
    opdi_xpr *const was = nest ? opdi_lower_of_bag(nest, all->most, all->bag, true) : NULL;
    opdi_xpr *const row = was ? opdi_xpr_load(all->rows, by) : NULL;
    if (!row) { return -1; }
    return opdi_nest_add(nest, opdi_lower_where(dtype, opdi_xpr_formula(OPD_FORMULA_gt, dtype, row, was), row, was));
}
/* Makes the places of bags' maxima be those of the first rows that are equal to them. */
static int opdi_lower_bags_places(opdi_lower_maxima *all) {
    const int by[2] = {0, 1};
    opdi_nest *const nest = opdi_nest_new(opd_sizes(all->rows), 2, 0);
    opdi_xpr *const was = nest ? opdi_lower_of_bag(nest, all->place, all->bag, true) : NULL;
    opdi_xpr *const most = was ? opdi_lower_of_bag(nest, all->most, all->bag, false) : NULL;
    opdi_xpr *const row = most ? opdi_xpr_load(all->rows, by) : NULL;
    opdi_xpr *const here = row ? opdi_xpr_new(OPDI_XPR_COUNT, OPD_INT64) : NULL;
    if (!here) { return -1; }
    here->access.strides[0] = 1;
    opdi_xpr *const same = opdi_xpr_formula(OPD_FORMULA_eq, opd_dtype(all->most), row, most);
    return opdi_nest_add(nest, opdi_lower_where(OPD_INT64, opdi_xpr_cast(same, OPD_INT64),
                                                opdi_xpr_formula(OPD_FORMULA_minimum, OPD_INT64, was, here), was));
}
/* Stores the maxima of bags, and the indices that they are from; 0 of bags without rows. */
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
    if (!all.first || opdi_lower_put_more(all.first, numbers, dims,
                                          opdi_lower_row_place(all.first, 0, bag, true, dims), OPD_FORMULA_minimum)) {
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
    opd_tensor *from = opd_index_select(indices, 0, opd_flatten(all.place));
    from = from ? opd_where_self(some, opd_view(from, opd_ints_of(sizes, 2)), opd_zeros_like(all.place)) : NULL;
    opd_tensor *const out = from ? opd_where_self(some, all.most, opd_zeros_like(all.most)) : NULL;
    return out && opdi_lower_give(call, 0, opd_narrow(out, 0, 0, bags)) == 0
        ? opdi_lower_give(call, 3, opd_narrow(from, 0, 0, bags)) : -1;
}
/* Stores sums or means of bags; rows of bag number `bags` belong to none. */
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
    return opdi_lower_give(call, 0, out);
}
/* Returns how many indices each bag has, of those that are not left out; NULL with an error. */
static opd_tensor *opdi_lower_bags_counted(opd_tensor *bag, int64_t bags) {
    const int64_t more = bags + 1;
    int dims[OPD_MAX_DIMS] = {-1};
    opd_tensor *const counts = opd_new_zeros(bag, opd_ints_of(&more, 1));
    if (!counts || opdi_lower_put_more(counts, opd_ones_like(bag), dims,
                                       opdi_lower_row_place(counts, 0, bag, true, dims), OPD_FORMULA_add)) {
        return NULL;
    }
    return opd_narrow(counts, 0, 0, bags);
}
/* _embedding_bag: sums, means and maxima. */
static int opdi_lower_embedding_bag(opd_call *call) {
    opd_tensor *const indices = opd_arg_tensor(call, 1), *const offsets = opd_arg_tensor(call, 2);
    const int64_t mode = opd_arg_int(call, 4), total = opd_numel(indices), skip = opd_arg_int(call, 8);
    const bool last = opd_arg_bool(call, 7);
    const int64_t bags = opd_numel(offsets) - last;
    if (bags < 1 || !total) {
        return opd_fail(OPD_ERROR_ARGUMENT, "bags with nothing in them cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    const opd_value *const rets = opd_call_rets(call);
    opd_tensor *const begin = opdi_lower_bags(offsets, total);
    opd_tensor *const bag = begin ? opdi_lower_bag_of(begin, total) : NULL;
    if (!bag) { return -1; }
    if (opd_numel(rets[1].u.t) && opdi_lower_give(call, 1, bag)) { return -1; }
    opd_tensor *const kept = skip < 0 ? bag
        : opd_where_self(opd_ne_Scalar(indices, opd_value_int(skip)), bag, opd_full_like(bag, opd_value_int(bags)));
    opd_tensor *const counts = !kept ? NULL : skip < 0 && !last ? opdi_lower_bag_sizes(begin, total)
        : opdi_lower_bags_counted(kept, bags);
    if (!counts || (mode < 2 ? opdi_lower_bags_sums(call, kept, counts, bags)
                    : opdi_lower_bags_maxima(call, kept, bags))) { return -1; }
    opd_tensor *const sizes = mode ? counts : opd_zeros_like(rets[2].u.t);
    return opdi_lower_give(call, 2, sizes) || (mode < 2 && opdi_lower_give(call, 3, sizes)) ? -1 : 0;
}

//-- what is written at indices ----------------------------------------------------------------------------------------

/* Begins a result that is a copy of self with other elements: copies it, where it is not self.  NULL with an error. */
static opd_tensor *opdi_lower_updated(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return NULL; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const bool same = opd_numel(self) == 0 || opd_device_data(self, OPD_LAZY) == opd_device_data(result, OPD_LAZY);
    return same || opd_copy_(result, self) ? result : NULL;
}
/* Stores values, of the dtype of the result, with indices for some dims of it: `dims` says which loop walks each other
   dim (-1: an index), indices are in `place`.  0, or -1. */
static int opdi_lower_put(opd_tensor *result, opd_tensor *values, const int *dims, opdi_xpr *place) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const from = opd_clone(opd_to_dtype(values, opd_dtype(result)));
    if (!from || !place) { return -1; }
    for (int i = 0; i < opd_ndim(from); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(from), opd_ndim(from), 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(from, by) : NULL;
    if (!load || opdi_nest_out(nest, result, dims)) { return -1; }
    nest->place = place;
    return opdi_nest_add(nest, load);
}
/* Index_copy (index is one row along dim) and scatter (index has the source's dims, and says how much is written). */
static int opdi_lower_scatter(opd_call *call) {
    opd_tensor *const index = opd_arg_tensor(call, 2);
    const bool scatter = strstr(opd_op_name(opd_call_operator(call)), "scatter") != NULL;
    const opd_value given = opd_arg_value(call, 3);
    int64_t dim = opd_arg_int(call, 1);
    opd_tensor *const result = opdi_lower_updated(call);
    if (!result) { return -1; }
    const int ndim = opd_ndim(result), row = (int)(dim < 0 ? dim + ndim : dim);
    int by[OPD_MAX_DIMS], dims[OPD_MAX_DIMS];
    if (ndim == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "indices of a number cannot be compiled"); }
    for (int i = 0; i < ndim; i++) {
        by[i] = i;
        dims[i] = i == row ? -1 : i;
    }
    opd_tensor *values = given.tag == OPD_TAG_TENSOR ? given.u.t
        : opd_new_full(result, opd_ints_of(opd_sizes(index), ndim), given);
    if (scatter && given.tag == OPD_TAG_TENSOR) {
        for (int i = 0; i < ndim && values; i++) { values = opd_narrow(values, i, 0, opd_sizes(index)[i]); }
    }
    opdi_xpr *const place = opdi_xpr_new(OPDI_XPR_PLACE, opd_dtype(result));
    if (!values || !place || opdi_lower_index_by(place, opdi_xpr_load(index, scatter ? by : &row),
                                                 opd_strides(result)[row], opd_sizes(result)[row])) { return -1; }
    return opd_numel(index) ? opdi_lower_put(result, values, dims, place) : 0;
}
static int opdi_lower_index_more(opd_call *call);
/* Index_put with tensors of integers for some dims, which broadcast. */
static int opdi_lower_index_put(opd_call *call) {
    const opd_tensors indices = opd_arg_tensors(call, 1);
    opd_tensor *values = opd_arg_tensor(call, 2);
    opdi_lower_places places;
    if (opd_arg_bool(call, 3)) { return opdi_lower_index_more(call); }
    if (opdi_lower_places_of(&places, opd_arg_tensor(call, 0), indices)) { return -1; }
    opd_tensor *const result = opdi_lower_updated(call);
    opdi_xpr *const place = result ? opdi_xpr_new(OPDI_XPR_PLACE, opd_dtype(result)) : NULL;
    if (!place || opdi_lower_places_by(place, &places, result, indices)) { return -1; }
    values = opd_expand(values, opd_ints_of(places.sizes, places.ndim));
    return values && opd_numel(values) ? opdi_lower_put(result, values, places.dims, place) : opd_ok() ? 0 : -1;
}

//-- what is put together ----------------------------------------------------------------------------------------------

static int opdi_lower_cat(opd_call *call) {
    const opd_tensors tensors = opd_arg_tensors(call, 0);
    const bool stack = strstr(opd_op_name(opd_call_operator(call)), "stack") != NULL;
    int64_t dim = opd_arg_int(call, 1), at = 0;
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    dim = dim < 0 ? dim + opd_ndim(result) : dim;
    for (int64_t i = 0; i < tensors.n && opd_ok(); i++) {
        opd_tensor *const tensor = stack ? opd_unsqueeze(tensors.data[i], dim) : tensors.data[i];
        if (!stack && opd_ndim(tensor) == 1 && opd_numel(tensor) == 0) { continue; }
        if (!tensor || !opd_copy_(opd_narrow(result, dim, at, opd_sizes(tensor)[dim]), tensor)) { return -1; }
        at += opd_sizes(tensor)[dim];
    }
    return opd_ok() ? 0 : -1;
}
static int opdi_lower_pad(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    const int count = (int)pad.n / 2;
    int64_t before[OPD_MAX_DIMS], after[OPD_MAX_DIMS];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < count; i++) {
        before[i] = pad.data[2 * (count - 1 - i)];
        after[i] = pad.data[2 * (count - 1 - i) + 1];
    }
    return opdi_lower_give(call, 0, opdi_lower_padded(self, opd_ndim(self) - count, before, after, NULL,
                                                      opd_arg_value(call, 2)));
}

/* Flip: what is read from the other end. */
static int opdi_lower_flip(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_ints dims = opd_arg_ints(call, 1);
    int by[OPD_MAX_DIMS];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < opd_ndim(self); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(self), opd_ndim(self), 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(self, by) : NULL;
    if (!load || opdi_nest_out(nest, opd_call_rets(call)[0].u.t, by)) { return -1; }
    for (int i = 0; i < dims.n; i++) {
        const int dim = (int)(dims.data[i] < 0 ? dims.data[i] + opd_ndim(self) : dims.data[i]);
        if (!opd_ndim(self)) { break; }
        load->access.offset += load->access.strides[dim] * (opd_sizes(self)[dim] - 1);
        load->access.strides[dim] = -load->access.strides[dim];
    }
    return opdi_nest_add(nest, load);
}
/* Tril, triu: zero where the column is too far from the row. */
static int opdi_lower_triangle(opd_call *call) {
    const bool lower = strstr(opd_op_name(opd_call_operator(call)), "tril") != NULL;
    const int64_t steps[2] = {-1, 1};
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value diagonal = opd_value_int(opd_arg_int(call, 1));
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const apart = opdi_lower_counts(opd_sizes(self) + opd_ndim(self) - 2, 2, steps, 0);
    opd_tensor *const kept = !apart ? NULL : lower ? opd_le_Scalar(apart, diagonal) : opd_ge_Scalar(apart, diagonal);
    return kept ? opdi_lower_give(call, 0, opd_where_self(kept, self, opd_zeros_like(self))) : -1;
}

//-- what is added up at indices ---------------------------------------------------------------------------------------

/* Makes elements of acc, at indices in `place`, what a formula makes of them and values, one after the other; `dims`
   as in opdi_lower_put.  0, or -1. */
static int opdi_lower_put_more(opd_tensor *acc, opd_tensor *values, const int *dims, opdi_xpr *place,
                               opd_formula formula) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const from = opd_clone(opd_to_dtype(values, opd_dtype(acc)));
    opdi_xpr *const was = from && place ? opdi_xpr_load(acc, dims) : NULL;
    if (!was) { return -1; }
    for (int i = 0; i < opd_ndim(from); i++) { by[i] = i; }
    for (int i = 0; i < place->nin; i++) {
        if (opdi_lower_index_by(was, place->in[i], place->index_strides[i], place->index_sizes[i])) { return -1; }
    }
    was->wraps = place->wraps;
    opdi_nest *const nest = opdi_nest_new(opd_sizes(from), opd_ndim(from), 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(from, by) : NULL;
    if (!load || opdi_nest_out(nest, acc, dims)) { return -1; }
    nest->place = place;
    return opdi_nest_add(nest, opdi_xpr_formula(formula, opd_dtype(acc), was, load));
}
/* Returns indices along a dim of acc, of one row of values or of all of them; NULL with an error. */
static opdi_xpr *opdi_lower_row_place(opd_tensor *acc, int dim, opd_tensor *index, bool row, int *dims) {
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(acc); i++) {
        by[i] = i;
        dims[i] = i == dim ? -1 : i;
    }
    opdi_xpr *const place = opdi_xpr_new(OPDI_XPR_PLACE, opd_dtype(acc));
    return place && opdi_lower_index_by(place, opdi_xpr_load(index, row ? &dim : by), opd_strides(acc)[dim],
                                        opd_sizes(acc)[dim]) == 0 ? place : NULL;
}
/* Makes rows of acc (row: index is one of them), or single elements, more of themselves; first, unless `include`, what
   changes nothing is put there.  0, or -1. */
static int opdi_lower_more_along(opd_tensor *acc, int dim, opd_tensor *index, opd_tensor *values, bool row,
                                 const char *how, bool include) {
    const bool most = strcmp(how, "amax") == 0, least = strcmp(how, "amin") == 0, times = strncmp(how, "prod", 4) == 0;
    const bool floating = opd_dtype_is_floating(opd_dtype(acc));
    int dims[OPD_MAX_DIMS];
    if (!opd_numel(values)) { return 0; }
    if (!include) {
        const opd_value nothing = !most && !least ? opd_value_int(times)
            : floating ? opd_value_float(most ? -(double)INFINITY : (double)INFINITY)
            : opd_value_int(most ? INT64_MIN : INT64_MAX);
        opd_tensor *const fresh = opd_new_full(acc, opd_ints_of(opd_sizes(values), opd_ndim(values)), nothing);
        if (!fresh || opdi_lower_put(acc, fresh, dims, opdi_lower_row_place(acc, dim, index, row, dims))) { return -1; }
    }
    return opdi_lower_put_more(acc, values, dims, opdi_lower_row_place(acc, dim, index, row, dims),
                               most ? OPD_FORMULA_maximum : least ? OPD_FORMULA_minimum : times ? OPD_FORMULA_mul
                               : OPD_FORMULA_add);
}
/* Scatter_add, scatter_reduce, scatter.reduce, scatter.value_reduce, index_add, index_reduce. */
static int opdi_lower_more(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool row = strstr(name, "index_") != NULL, by_name = strstr(name, "reduce") != NULL;
    const opd_value given = opd_arg_value(call, 3);
    opd_tensor *const self = opd_arg_tensor(call, 0), *const index = opd_arg_tensor(call, 2);
    const char *how = by_name ? opd_arg_str(call, 4) : "sum";
    const bool include = opd_call_nargs(call) > 5 ? opd_arg_bool(call, 5) : true;
    const bool means = strcmp(how, "mean") == 0;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    const int ndim = opd_ndim(self);
    if (!ndim || opd_dtype(self) == OPD_BOOL || (means && !opd_dtype_is_floating(wide))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "what is added up at indices of a number, of bools or to whole means "
                        "cannot be compiled");
    }
    const int dim = (int)(opd_arg_int(call, 1) < 0 ? opd_arg_int(call, 1) + ndim : opd_arg_int(call, 1));
    if (strcmp(how, "multiply") == 0) { how = "prod"; }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *acc = opd_clone(opd_to_dtype(self, wide));
    opd_tensor *values = given.tag == OPD_TAG_TENSOR ? given.u.t
        : acc ? opd_new_full(acc, opd_ints_of(opd_sizes(index), opd_ndim(index)), given) : NULL;
    for (int i = 0; i < ndim && values && !row && given.tag == OPD_TAG_TENSOR; i++) {
        values = opd_narrow(values, i, 0, opd_ndim(index) ? opd_sizes(index)[i] : 1);
    }
    values = values ? opd_to_dtype(values, wide) : NULL;
    if (values && !by_name && row) { values = opdi_lower_scaled(values, opd_arg_value(call, 4)); }
    if (!acc || !values || opdi_lower_more_along(acc, dim, index, values, row, how, include)) { return -1; }
    if (means) {
        opd_tensor *const ones = opd_new_full(acc, opd_ints_of(opd_sizes(values), ndim), opd_value_int(1));
        opd_tensor *const counts = opd_full_like(acc, opd_value_int(include));
        if (!ones || !counts || opdi_lower_more_along(counts, dim, index, ones, row, "sum", true)) { return -1; }
        acc = opd_div(acc, opd_clamp_min(counts, opd_value_int(1)));
    }
    return opdi_lower_give(call, 0, acc);
}
/* Index_put with accumulate. */
static int opdi_lower_index_more(opd_call *call) {
    const opd_tensors indices = opd_arg_tensors(call, 1);
    opd_tensor *const self = opd_arg_tensor(call, 0), *values = opd_arg_tensor(call, 2);
    opdi_lower_places places;
    if (opd_dtype(self) == OPD_BOOL) { return opd_fail(OPD_ERROR_ARGUMENT, "sums of bools cannot be compiled"); }
    if (opdi_lower_places_of(&places, self, indices) || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const acc = opd_clone(opd_to_dtype(self, opdi_lower_wide(opd_dtype(self))));
    opdi_xpr *const place = acc ? opdi_xpr_new(OPDI_XPR_PLACE, opd_dtype(acc)) : NULL;
    if (!place || opdi_lower_places_by(place, &places, acc, indices)) { return -1; }
    values = opd_expand(values, opd_ints_of(places.sizes, places.ndim));
    if (!values || (opd_numel(values) && opdi_lower_put_more(acc, values, places.dims, place, OPD_FORMULA_add))) {
        return -1;
    }
    return opdi_lower_give(call, 0, acc);
}
/* Index_fill: a number, or a tensor of one. */
static int opdi_lower_index_fill(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const index = opd_arg_tensor(call, 2);
    const opd_value given = opd_arg_value(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS];
    const int ndim = opd_ndim(self);
    if (!ndim) { return opd_fail(OPD_ERROR_ARGUMENT, "indices of a number cannot be compiled"); }
    const int dim = (int)(opd_arg_int(call, 1) < 0 ? opd_arg_int(call, 1) + ndim : opd_arg_int(call, 1));
    opd_tensor *const result = opdi_lower_updated(call);
    for (int i = 0; i < ndim; i++) { sizes[i] = i == dim ? opd_numel(index) : opd_sizes(self)[i]; }
    opd_tensor *const values = !result ? NULL : given.tag == OPD_TAG_TENSOR
        ? opd_expand(opd_to_dtype(given.u.t, opd_dtype(result)), opd_ints_of(sizes, ndim))
        : opd_new_full(result, opd_ints_of(sizes, ndim), given);
    if (!values) { return -1; }
    opdi_xpr *const place = opdi_lower_row_place(result, dim, index, true, dims);
    if (!place) { return -1; }
    place->wraps = true;
    return opd_numel(values) ? opdi_lower_put(result, values, dims, place) : 0;
}
/* One_hot: a class that is not there is an index out of range. */
static int opdi_lower_one_hot(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int ndim = opd_ndim(self);
    int dims[OPD_MAX_DIMS];
    if (opd_arg_int(call, 1) < 1 || !opd_numel(self)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "classes that depend on data, or none, cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const at = opd_unsqueeze(self, -1);
    opd_tensor *const ones = at ? opd_ones_like(at) : NULL;
    if (!ones || !opd_fill_(result, opd_value_int(0))) { return -1; }
    return opdi_lower_put(result, ones, dims, opdi_lower_row_place(result, ndim, at, false, dims));
}
/* Slice_scatter and its like: a view of the result gets the source. */
static int opdi_lower_view_put(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const src = opd_arg_tensor(call, 1), *const result = opdi_lower_updated(call);
    if (!result) { return -1; }
    opd_tensor *const view = strstr(name, "slice")
        ? opd_slice(result, opd_arg_int(call, 2), opd_arg_value(call, 3), opd_arg_value(call, 4), opd_arg_int(call, 5))
        : strstr(name, "select") ? opd_select(result, opd_arg_int(call, 2), opd_arg_int(call, 3))
        : opd_diagonal_full(result, opd_arg_int(call, 2), opd_arg_int(call, 3), opd_arg_int(call, 4));
    return view && opd_copy_(view, src) ? 0 : -1;
}

//-- what is written with other operators ------------------------------------------------------------------------------

/* Returns rows of self at places along dim, which are known now; NULL with an error. */
static opd_tensor *opdi_lower_rows_at(opd_tensor *self, int dim, const int64_t *places, int64_t count) {
    opd_tensor *const host = opd_empty(opd_ints_of(&count, 1), OPD_INT64);
    if (!self || !host) { return NULL; }
    if (count) { memcpy(opd_data_i64(host), places, (size_t)count * sizeof *places); }
    opd_tensor *const at = opd_to_device(host, opd_device_of(OPD_LAZY, 0), OPD_INT64);
    return at ? opd_index_select(self, dim, at) : NULL;
}
/* Returns numbers that are known now, of a dtype, along one of ndim dims, for broadcasting; NULL with an error. */
static opd_tensor *opdi_lower_known(const double *numbers, int64_t count, int dim, int ndim, opd_scalar_type dtype) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < ndim; i++) { sizes[i] = i == dim ? count : 1; }
    opd_tensor *host = opd_empty(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    if (!host) { return NULL; }
    if (count) { memcpy(opd_data_f64(host), numbers, (size_t)count * sizeof *numbers); }
    host = opd_to_dtype(host, dtype);
    return host ? opd_to_device(host, opd_device_of(OPD_LAZY, 0), dtype) : NULL;
}
/* What one size becomes by interpolation: of each result the places that it reads, and their weights. */
typedef struct opdi_lower_taps { int64_t count, *places[4]; double *weights[4]; int taps; } opdi_lower_taps;
/* The weights of four neighbours, the second of which is t away (A = -0.75). */
static void opdi_lower_cubic(double t, double weights[4]) {
    const double a = -0.75, x[4] = {t + 1, t, 1 - t, 2 - t};
    for (int k = 0; k < 4; k++) {
        weights[k] = k == 0 || k == 3 ? ((a * x[k] - 5 * a) * x[k] + 8 * a) * x[k] - 4 * a
            : ((a + 2) * x[k] - (a + 3)) * x[k] * x[k] + 1;
    }
}
/* Finds them: taps is 1 (nearest, or with `exact` the middle's), 2 (linear) or 4 (cubic); factor is the given scale's
   reciprocal, or 0.  0, or -1 with an error. */
static int opdi_lower_taps_of(opdi_lower_taps *all, int64_t in, int64_t out, double factor, bool corners, bool exact,
                              bool wide) {
    const double scale = opdi_lower_rounded(corners ? out > 1 ? (double)(in - 1) / (double)(out - 1) : 0
        : factor > 0 ? factor : (double)in / (double)out, wide);
    all->count = out;
    for (int k = 0; k < all->taps; k++) {
        all->places[k] = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)out * sizeof(int64_t));
        all->weights[k] = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)out * sizeof(double));
        if (!all->places[k] || !all->weights[k]) { return -1; }
    }
    for (int64_t i = 0; i < out; i++) {
        const double half = all->taps > 1 || exact ? 0.5 : 0;
        const double middle = opdi_lower_rounded(scale * ((double)i + half), wide);
        double place = corners ? opdi_lower_rounded(scale * (double)i, wide)
            : all->taps > 1 ? opdi_lower_rounded(middle - 0.5, wide) : middle, weights[4] = {1, 0, 0, 0};
        place = all->taps < 4 && place < 0 ? 0 : place;
        int64_t first = (int64_t)floor(place);
        first = all->taps < 4 ? OPDI_MIN(first, in - 1) : first;
        const double t = opdi_lower_rounded(OPDI_MIN(place - (double)first, 1.0), wide);
        if (all->taps == 4) { opdi_lower_cubic(t, weights); }
        if (all->taps == 2) {
            weights[0] = 1 - t;
            weights[1] = t;
        }
        for (int k = 0; k < all->taps; k++) {
            const int64_t at = first + k - (all->taps == 4);
            all->places[k][i] = at < 0 ? 0 : OPDI_MIN(at, in - 1);
            all->weights[k][i] = weights[k];
        }
    }
    return 0;
}
/* Upsample_nearest1d and 3d, linear1d, trilinear3d, bicubic2d: one dim after the other. */
static int opdi_lower_upsample_dims(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool nearest = strstr(name, "nearest") != NULL, cubic = strstr(name, "cubic") != NULL;
    const bool corners = !nearest && opd_arg_bool(call, 2);
    opd_tensor *out = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(out));
    out = nearest ? out : opd_to_dtype(out, wide);
    for (int dim = opd_ndim(result) - 1; dim > 1 && out; dim--) {
        const opd_value given = opd_arg_value(call, (nearest ? 2 : 3) + dim - 2);
        opdi_lower_taps taps;
        opd_tensor *sum = NULL;
        memset(&taps, 0, sizeof taps);
        taps.taps = nearest ? 1 : cubic ? 4 : 2;
        if (opdi_lower_taps_of(&taps, opd_sizes(out)[dim], opd_sizes(result)[dim],
                               given.tag == OPD_TAG_FLOAT && given.u.d > 0 ? 1 / given.u.d : 0, corners,
                               strstr(name, "exact") != NULL, wide == OPD_FLOAT64)) { return -1; }
        for (int k = 0; k < taps.taps && opd_ok(); k++) {
            opd_tensor *part = opdi_lower_rows_at(out, dim, taps.places[k], taps.count);
            if (!nearest && part) {
                opd_tensor *const weights = opdi_lower_known(taps.weights[k], taps.count, dim, opd_ndim(out), wide);
                part = weights ? opd_mul(part, weights) : NULL;
            }
            sum = sum && part ? opd_add(sum, part) : part;
        }
        out = opd_ok() ? sum : NULL;
    }
    return opdi_lower_give(call, 0, out);
}
/* Returns the windows of an adaptive pool along dim, whose elements are dim + 1; of those that end earlier the last
   element comes again.  lengths: how many each has.  NULL with an error. */
static opd_tensor *opdi_lower_adaptive_windows(opd_tensor *self, int dim, int64_t out, double *lengths, int64_t *places,
                                               int64_t most) {
    const int64_t in = opd_sizes(self)[dim];
    for (int64_t i = 0; i < out; i++) {
        const int64_t first = i * in / out, end = ((i + 1) * in + out - 1) / out;
        lengths[i] = (double)(end - first);
        for (int64_t k = 0; k < most; k++) { places[i * most + k] = OPDI_MIN(first + k, end - 1); }
    }
    opd_tensor *const rows = opdi_lower_rows_at(self, dim, places, out * most);
    const int64_t sizes[2] = {out, most};
    return rows ? opd_unflatten(rows, dim, opd_ints_of(sizes, 2)) : NULL;
}
/* Returns how long the longest window of an adaptive pool is. */
static int64_t opdi_lower_adaptive_most(int64_t in, int64_t out) {
    int64_t most = 0;
    for (int64_t i = 0; i < out; i++) { most = OPDI_MAX(most, ((i + 1) * in + out - 1) / out - i * in / out); }
    return most;
}
/* _adaptive_avg_pool2d and 3d, of windows of different lengths: means along one dim after the other. */
static int opdi_lower_adaptive_means(opd_call *call, int count) {
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *out = opd_arg_tensor(call, 0);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(out));
    out = opd_to_dtype(out, wide);
    for (int i = 0; i < count && out; i++) {
        const int dim = opd_ndim(result) - count + i;
        const int64_t in = opd_sizes(out)[dim], size = opd_sizes(result)[dim];
        const int64_t most = opdi_lower_adaptive_most(in, size);
        int64_t *const places = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)(size * most + 1) * 8);
        double *const numbers = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)(size * (most + 1) + 1) * 8);
        if (!places || !numbers) { return -1; }
        opd_tensor *windows = opdi_lower_adaptive_windows(out, dim, size, numbers, places, most);
        opd_tensor *lengths = opdi_lower_known(numbers, size, dim, opd_ndim(out), wide);
        for (int64_t k = 0; k < size * most; k++) { numbers[size + k] = (double)(k % most) < numbers[k / most]; }
        opd_tensor *kept = opdi_lower_known(numbers + size, size * most, dim, opd_ndim(out), OPD_BOOL);
        const int64_t sizes[2] = {size, most}, inside = dim + 1;
        kept = kept ? opd_unflatten(kept, dim, opd_ints_of(sizes, 2)) : NULL;
        windows = windows && kept ? opd_where_self(kept, windows, opd_zeros_like(windows)) : NULL;
        out = windows && lengths ? opd_div(opd_sum_dim(windows, opd_ints_of(&inside, 1), false), lengths) : NULL;
    }
    return opdi_lower_give(call, 0, out);
}
static int opdi_lower_adaptive_3d(opd_call *call) {
    return opd_results_from_fake(call) ? -1 : opdi_lower_adaptive_means(call, 3);
}
/* Values and places of the largest of rows along a dim, as pools have them. */
static int opdi_lower_pooled_rows(opd_tensor *pair[2], opd_tensor *self, int dim) {
    for (int i = 0; i < 2; i++) {
        opd_tensor *const kept = opdi_lower_reduced(self, (uint64_t)1 << dim, i ? OPDI_OVER_POOLED : OPDI_OVER_MAX,
                                                    i ? OPD_INT64 : opd_dtype(self));
        if (!kept || !(pair[i] = opd_squeeze_dim(kept, dim))) { return -1; }
    }
    return 0;
}
/* Adaptive_max_pool2d: values, and where they are in the image. */
static int opdi_lower_adaptive_max(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int ndim = opd_ndim(self), first = ndim - 2;
    const int64_t *const in = opd_sizes(self) + first, *const out = opd_sizes(result) + first;
    int64_t most[2], *places[2];
    double *lengths = NULL;
    opd_tensor *windows = self, *at[2], *pair[2];
    if (!opd_numel(result)) { return 0; }
    for (int i = 1; i >= 0; i--) {                /* columns first, so that rows stay where they are */
        most[i] = opdi_lower_adaptive_most(in[i], out[i]);
        places[i] = (int64_t *)opdi_recording_alloc(opdi_recording_now, (size_t)(out[i] * most[i]) * 8);
        lengths = (double *)opdi_recording_alloc(opdi_recording_now, (size_t)out[i] * 8);
        if (!places[i] || !lengths || !windows) { return -1; }
        windows = opdi_lower_adaptive_windows(windows, first + i, out[i], lengths, places[i], most[i]);
    }
    windows = windows ? opd_flatten_full(opd_movedim(windows, first + 1, first + 2), first + 2, first + 3) : NULL;
    if (!windows || opdi_lower_pooled_rows(pair, windows, first + 2) ||
        opdi_lower_give(call, 0, pair[0])) { return -1; }
    for (int i = 0; i < 2; i++) {                 /* the place in the window becomes one in the image */
        opd_tensor *const inside = i ? opd_remainder_Scalar(pair[1], opd_value_int(most[1]))
            : opd_div_Scalar_mode(pair[1], opd_value_int(most[1]), "floor");
        const int64_t step = most[i];
        opd_tensor *begin = inside ? opdi_lower_counts(&out[i], 1, &step, 0) : NULL;
        if (begin && i == 0) { begin = opd_unsqueeze(begin, 1); }
        const int64_t size = out[i] * most[i];
        opd_tensor *const table = begin ? opd_empty(opd_ints_of(&size, 1), OPD_INT64) : NULL;
        if (!table) { return -1; }
        memcpy(opd_data_i64(table), places[i], (size_t)size * 8);
        opd_tensor *const known = opd_to_device(table, opd_device_of(OPD_LAZY, 0), OPD_INT64);
        opd_tensor *const index = known ? opd_add(inside, begin) : NULL;
        at[i] = index ? opd_reshape(opd_index_select(known, 0, opd_flatten(index)),
                                    opd_ints_of(opd_sizes(index), opd_ndim(index))) : NULL;
        if (!at[i]) { return -1; }
    }
    return opdi_lower_give(call, 1, opd_add(opd_mul_Scalar(at[0], opd_value_int(in[1])), at[1]));
}
/* Places of a grid along one dim: the lines that they look at, their weights, and where these are there. */
typedef struct opdi_lower_lines { int count; opd_tensor *at[4], *weights[4], *there[4], *lost; } opdi_lower_lines;
/* Brings places inside of [0, size), by reflection or to the border; NULL with an error. */
static opd_tensor *opdi_lower_inside(opd_tensor *at, int64_t size, bool reflects, bool corners) {
    const double low = corners ? 0 : -0.5, span = (double)(corners ? size - 1 : size);
    if (reflects && span > 0) {
        opd_tensor *const off = opd_abs(opd_sub_Scalar(at, opd_value_float(low)));
        opd_tensor *const times = off ? opd_floor(opd_div_Scalar(off, opd_value_float(span))) : NULL;
        opd_tensor *const rest = times ? opd_fmod_Scalar(off, opd_value_float(span)) : NULL;
        opd_tensor *const odd = rest ? opd_gt_Scalar(opd_fmod_Scalar(times, opd_value_int(2)), opd_value_int(0)) : NULL;
        at = odd ? opd_where_self(odd, opd_add_Scalar(opd_neg(rest), opd_value_float(span)), rest) : NULL;
        at = at ? opd_add_Scalar(at, opd_value_float(low)) : NULL;
    } else if (reflects) { at = opd_zeros_like(at); }
    at = at ? opd_where_self(opd_gt_Scalar(at, opd_value_int(0)), at, opd_zeros_like(at)) : NULL;
    return at ? opd_clamp_max(at, opd_value_int(size - 1)) : NULL;
}
/* Fills the lines that coordinates look at, -1 to 1 along a dim of `size`; 0, or -1 with an error. */
static int opdi_lower_lines_of(opdi_lower_lines *lines, opd_tensor *at, int64_t size, int64_t outside, bool corners) {
    at = opd_add_Scalar(at, opd_value_int(1));
    at = corners ? opd_mul_Scalar(opd_div_Scalar(at, opd_value_int(2)), opd_value_int(size - 1))
        : opd_div_Scalar(opd_sub_Scalar(opd_mul_Scalar(at, opd_value_int(size)), opd_value_int(1)), opd_value_int(2));
    if (at && lines->count < 4 && outside) { at = opdi_lower_inside(at, size, outside == 2, corners); }
    if (!at) { return -1; }
    lines->lost = opd_sub(at, at);
    opd_tensor *const known = opd_lt_Scalar(opd_abs(at), opd_value_float(1e9));
    at = known ? opd_where_self(known, at, opd_full_like(at, opd_value_int(-100))) : NULL;
    opd_tensor *const first = !at ? NULL : lines->count == 1 ? opd_round(at) : opd_floor(at);
    opd_tensor *const t = first ? opd_sub(at, first) : NULL;
    for (int k = 0; k < lines->count && t && opd_ok(); k++) {
        opd_tensor *line = opd_add_Scalar(first, opd_value_int(k - (lines->count == 4))), *w = t;
        if (lines->count == 2) { w = k ? t : opd_add_Scalar(opd_neg(t), opd_value_int(1)); }
        if (lines->count == 4) {                  /* the cubic with a = -3/4, of how far away the line is */
            const double a = -0.75;
            const bool outer = k == 0 || k == 3;
            const double c[4] = {outer ? a : a + 2, outer ? -5 * a : -(a + 3), outer ? 8 * a : 0, outer ? -4 * a : 1};
            opd_tensor *const away = k < 2 ? opd_add_Scalar(t, opd_value_int(1 - k))
                : opd_add_Scalar(opd_neg(t), opd_value_int(k - 1));
            w = opd_add_Scalar(opd_mul_Scalar(away, opd_value_float(c[0])), opd_value_float(c[1]));
            w = opd_add_Scalar(opd_mul(w, away), opd_value_float(c[2]));
            w = opd_add_Scalar(opd_mul(w, away), opd_value_float(c[3]));
            if (outside) { line = opdi_lower_inside(line, size, outside == 2, corners); }
        }
        lines->there[k] = opd_logical_and(opd_ge_Scalar(line, opd_value_int(0)),
                                          opd_lt_Scalar(line, opd_value_int(size)));
        lines->weights[k] = w;
        line = opd_clamp_max(opd_clamp_min(line, opd_value_int(0)), opd_value_int(size - 1));
        lines->at[k] = line ? opd_to_dtype(line, OPD_INT64) : NULL;
    }
    return t && opd_ok() ? 0 : -1;
}
/* Grid_sampler_2d. */
static int opdi_lower_grid(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int64_t how = opd_arg_int(call, 2), outside = opd_arg_int(call, 3);
    opdi_lower_lines lines[2];
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const int64_t *const in = opd_sizes(self), *const out = opd_sizes(result);
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    opd_tensor *const grid = opd_to_dtype(opd_arg_tensor(call, 1), wide);
    const int64_t flat[3] = {in[0], in[1], in[2] * in[3]}, row[3] = {out[0], 1, out[2] * out[3]};
    const int64_t rows[3] = {out[0], out[1], out[2] * out[3]};
    opd_tensor *const image = opd_reshape(self, opd_ints_of(flat, 3));
    opd_tensor *sum = NULL;
    if (!grid || !image) { return -1; }
    for (int k = 0; k < 2; k++) {
        memset(&lines[k], 0, sizeof lines[k]);
        lines[k].count = how == 1 ? 1 : how == 0 ? 2 : 4;
        if (opdi_lower_lines_of(&lines[k], opd_select(grid, 3, 1 - k), in[2 + k], outside, opd_arg_bool(call, 4))) {
            return -1;
        }
    }
    for (int k = 0; k < lines[0].count * lines[1].count && opd_ok(); k++) {
        const int i = k / lines[0].count, j = k % lines[0].count;
        opd_tensor *at = opd_add(opd_mul_Scalar(lines[0].at[i], opd_value_int(in[3])), lines[1].at[j]);
        at = at ? opd_expand(opd_reshape(at, opd_ints_of(row, 3)), opd_ints_of(rows, 3)) : NULL;
        opd_tensor *part = at ? opd_view(opd_to_dtype(opd_gather(image, 2, at), wide), opd_ints_of(out, 4)) : NULL;
        opd_tensor *const there = opd_unsqueeze(opd_logical_and(lines[0].there[i], lines[1].there[j]), 1);
        part = part && there ? opd_where_self(there, part, opd_zeros_like(part)) : NULL;
        if (part && how != 1) {
            part = opd_mul(part, opd_unsqueeze(opd_mul(lines[0].weights[i], lines[1].weights[j]), 1));
        }
        sum = sum && part ? opd_add(sum, part) : part;
    }
    if (sum && how != 1) { sum = opd_add(sum, opd_unsqueeze(opd_add(lines[0].lost, lines[1].lost), 1)); }
    return opdi_lower_give(call, 0, sum);
}
/* Im2col: windows are walked as they lie in the padded image.  Col2im: each place of the window adds what it has. */
static int opdi_lower_columns(opd_call *call) {
    const bool back = strstr(opd_op_name(opd_call_operator(call)), "col2im") != NULL;
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints given[4];                            /* window, dilation, padding, steps */
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], all[4][2], out[2];
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const image = back ? result : self;
    const int ndim = opd_ndim(image), first = ndim - 2;
    for (int k = 0; k < 4; k++) {
        given[k] = opd_arg_ints(call, k + 1 + back);
        for (int i = 0; i < 2; i++) { all[k][i] = given[k].data[given[k].n == 1 ? 0 : i]; }
    }
    for (int i = 0; i < 2; i++) {
        out[i] = (opd_sizes(image)[first + i] + 2 * all[2][i] - all[1][i] * (all[0][i] - 1) - 1) / all[3][i] + 1;
    }
    for (int i = 0; i < first; i++) { sizes[i] = opd_sizes(image)[i]; }
    for (int i = 0; i < 2; i++) {
        sizes[first + i] = opd_sizes(image)[first + i] + 2 * all[2][i];
    }
    opd_tensor *const padded = back ? opdi_lower_empty(sizes, ndim, opdi_lower_wide(opd_dtype(self)))
        : opdi_lower_padded(self, first, all[2], all[2], NULL, opd_value_int(0));
    if (!padded || (back && !opd_fill_(padded, opd_value_int(0)))) { return -1; }
    for (int i = 0; i < first; i++) { strides[i] = opd_strides(padded)[i]; }
    for (int i = 0; i < 2; i++) {
        sizes[first + i] = all[0][i];
        sizes[ndim + i] = out[i];
        strides[first + i] = opd_strides(padded)[first + i] * all[1][i];
        strides[ndim + i] = opd_strides(padded)[first + i] * all[3][i];
    }
    opd_tensor *windows = opd_as_strided_full(padded, opd_ints_of(sizes, ndim + 2), opd_ints_of(strides, ndim + 2),
                                              opd_storage_offset(padded));
    if (!windows) { return -1; }
    if (!back) {
        return opdi_lower_give(call, 0, opd_reshape(opd_contiguous(windows), opd_ints_of(opd_sizes(result),
                                                                                         opd_ndim(result))));
    }
    self = opd_reshape(opd_to_dtype(self, opd_dtype(padded)), opd_ints_of(sizes, ndim + 2));
    for (int64_t k = 0; k < all[0][0] * all[0][1] && self; k++) {
        const int64_t i = k / all[0][1], j = k % all[0][1];
        opd_tensor *const to = opd_select(opd_select(windows, first, i), first, j);
        if (!to || !opd_add_(to, opd_select(opd_select(self, first, i), first, j))) { return -1; }
    }
    for (int i = 0; i < 2 && self; i++) {
        windows = opd_narrow(i ? windows : padded, first + i, all[2][i], opd_sizes(image)[first + i]);
    }
    return self ? opdi_lower_give(call, 0, windows) : -1;
}
/* Count_nonzero, nansum, aminmax. */
static int opdi_lower_counted(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value dims = opd_call_nargs(call) > 1 ? opd_arg_value(call, 1) : opd_value_none();
    const int64_t one = dims.tag == OPD_TAG_INT ? dims.u.i : 0;
    const uint64_t mask = opdi_lower_mask(dims.tag == OPD_TAG_INTS ? opd_arg_ints(call, 1)
        : opd_ints_of(&one, dims.tag == OPD_TAG_INT), opd_ndim(self));
    if (opd_results_from_fake(call)) { return -1; }
    const opd_scalar_type dtype = opd_dtype(opd_call_rets(call)[0].u.t);
    if (strstr(name, "aminmax")) {
        return opdi_lower_give_as(call, 0, opdi_lower_reduced(self, mask, OPDI_OVER_MIN, dtype)) ||
            opdi_lower_give_as(call, 1, opdi_lower_reduced(self, mask, OPDI_OVER_MAX, dtype)) ? -1 : 0;
    }
    self = strstr(name, "nansum") ? opd_masked_fill_Scalar(self, opd_isnan(self), opd_value_int(0))
        : opd_ne_Scalar(self, opd_value_int(0));
    const opd_scalar_type wide = opdi_lower_wide(dtype);
    self = self ? opd_to_dtype(self, wide) : NULL;
    return self ? opdi_lower_give_as(call, 0, opdi_lower_reduced(self, mask, OPDI_OVER_SUM, wide)) : -1;
}
/* Kthvalue, median.dim: the elements and places at one place of the order; a median is NaN where there is one. */
static int opdi_lower_kth(opd_call *call) {
    const bool median = strstr(opd_op_name(opd_call_operator(call)), "median") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int64_t given = opd_arg_int(call, median ? 1 : 2);
    const int ndim = opd_ndim(self), dim = (int)(given < 0 ? given + ndim : given);
    if (!ndim || !opd_numel(self)) { return opd_fail(OPD_ERROR_ARGUMENT, "what sorts nothing cannot be compiled"); }
    if (opd_results_from_fake(call)) { return -1; }
    const int64_t k = median ? (opd_sizes(self)[dim] - 1) / 2 : opd_arg_int(call, 1) - 1, one = 1;
    opd_tensor *const order = opdi_lower_order(self, dim, opd_sizes(self)[dim], false);
    opd_tensor *at = order ? opd_narrow(order, dim, k, one) : NULL;
    if (at && median && opd_dtype_is_floating(opd_dtype(self))) {
        opd_tensor *const nan = opd_to_dtype(opd_isnan(self), OPD_INT64);
        opd_tensor *const first = nan ? opd_argmax_full(nan, opd_value_int(dim), true) : NULL;
        at = first ? opd_where_self(opd_to_dtype(opd_gather(nan, dim, first), OPD_BOOL), first, at) : NULL;
    }
    return at && opdi_lower_give_as(call, 0, opd_gather(self, dim, at)) == 0 ? opdi_lower_give_as(call, 1, at) : -1;
}

static int opdi_lower_logsumexp(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    const uint64_t mask = opdi_lower_mask(opd_arg_ints(call, 1), opd_ndim(self));
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(opd_call_rets(call)[0].u.t));
    if (!opd_numel(self)) { return opd_fail(OPD_ERROR_ARGUMENT, "a logsumexp over nothing cannot be compiled"); }
    self = opd_to_dtype(self, wide);
    opd_tensor *most = self ? opdi_lower_reduced(self, mask, OPDI_OVER_MAX, wide) : NULL;
    most = most ? opd_masked_fill_Scalar(most, opd_isinf(most), opd_value_int(0)) : NULL;
    opd_tensor *const exps = most ? opd_exp(opd_sub(self, most)) : NULL;
    opd_tensor *const sum = exps ? opdi_lower_reduced(exps, mask, OPDI_OVER_SUM, wide) : NULL;
    return opdi_lower_give_as(call, 0, sum ? opd_add(opd_log(sum), most) : NULL);
}
/* Max, min of all. */
static int opdi_lower_most(opd_call *call) {
    const bool most = strstr(opd_op_name(opd_call_operator(call)), "max") != NULL;
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (!opd_numel(self)) { return opd_fail(OPD_ERROR_ARGUMENT, "a maximum of nothing cannot be compiled"); }
    return opd_results_from_fake(call) ||
        opdi_lower_reduction(call, 0, opdi_lower_mask(opd_ints_of(NULL, 0), opd_ndim(self)),
                             most ? OPDI_OVER_MAX : OPDI_OVER_MIN) ? -1 : 0;
}
/* Mv, dot, addmv: products of matrices of one column. */
static int opdi_lower_mv(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool more = strstr(name, "addmv") != NULL, dot = strstr(name, "dot") != NULL;
    opd_tensor *const first = opd_arg_tensor(call, more), *const second = opd_arg_tensor(call, more + 1);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const column = opd_unsqueeze(second, 1), *const rows = dot ? opd_unsqueeze(first, 0) : first;
    opd_tensor *out = column && rows ? opdi_lower_product(rows, column) : NULL;
    out = out ? opd_view(out, opd_ints_of(opd_sizes(result), opd_ndim(result))) : NULL;
    if (out && more) {
        const opd_value beta = opd_arg_value(call, 3);
        const bool none = (beta.tag == OPD_TAG_INT && beta.u.i == 0) || (beta.tag == OPD_TAG_FLOAT && beta.u.d == 0);
        out = opdi_lower_scaled(out, opd_arg_value(call, 4));
        opd_tensor *const self = opd_to_dtype(opd_arg_tensor(call, 0), opdi_lower_wide(opd_dtype(result)));
        if (!none && out) { out = opd_add(out, opdi_lower_scaled(self, beta)); }
    }
    return opdi_lower_give(call, 0, out);
}
static int opdi_lower_trace(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const diagonal = opd_diagonal(self);
    return diagonal ? opdi_lower_give_as(call, 0, opdi_lower_reduced(diagonal, 1, OPDI_OVER_SUM,
        opdi_lower_wide(opd_dtype(opd_call_rets(call)[0].u.t)))) : -1;
}
/* Reflection_pad and replication_pad of one to three dims: each reads rows at the places that formulas of the index
   give. */
static int opdi_lower_pad_rows(opd_call *call) {
    const bool reflects = strstr(opd_op_name(opd_call_operator(call)), "reflection") != NULL;
    const opd_ints pad = opd_arg_ints(call, 1);
    const int64_t one = 1;
    opd_tensor *out = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < (int)pad.n / 2 && out; i++) {
        const int dim = opd_ndim(out) - 1 - i;
        const int64_t last = opd_sizes(out)[dim] - 1, size = last + 1 + pad.data[2 * i] + pad.data[2 * i + 1];
        if (!pad.data[2 * i] && !pad.data[2 * i + 1]) { continue; }
        opd_tensor *at = opdi_lower_counts(&size, 1, &one, -pad.data[2 * i]);
        if (at && reflects) {
            at = opd_abs(opd_sub_Scalar(opd_abs(at), opd_value_int(last)));
            at = opd_add_Scalar(opd_neg(at), opd_value_int(last));
        } else if (at) { at = opd_clamp_max(opd_clamp_min(at, opd_value_int(0)), opd_value_int(last)); }
        out = at ? opd_index_select(out, dim, at) : NULL;
    }
    return opdi_lower_give(call, 0, out);
}
/* Searchsorted, bucketize: how many are smaller (right: not larger).  NaN is larger than all. */
static int opdi_lower_searchsorted(opd_call *call) {
    const bool buckets = strstr(opd_op_name(opd_call_operator(call)), "bucketize") != NULL;
    opd_tensor *row = opd_arg_tensor(call, buckets), *self = opd_arg_tensor(call, !buckets);
    const bool asked = opd_arg_bool(call, 3);
    const int64_t last = -1;
    if (!buckets && (opd_arg_value(call, 4).tag == OPD_TAG_STR || opd_arg_tensor(call, 5))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a side or a sorter cannot be compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    self = opd_unsqueeze(self, -1);
    row = opd_ndim(row) > 1 ? opd_unsqueeze(row, -2) : row;
    opd_tensor *const beyond = !self || !row ? NULL : asked ? opd_gt(row, self) : opd_ge(row, self);
    opd_tensor *const sum = beyond ? opd_sum_dim(opd_logical_not(beyond), opd_ints_of(&last, 1), false) : NULL;
    return opdi_lower_give(call, 0, sum);
}
/* Returns a norm of any order over a mask of dims, which stay with size 1; NULL with an error. */
static opd_tensor *opdi_lower_norm_of(opd_tensor *self, double order, uint64_t mask) {
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    const bool most = order > DBL_MAX, least = order < -DBL_MAX;
    if (order == 0) {
        self = opd_to_dtype(opd_ne_Scalar(self, opd_value_int(0)), wide);
    } else { self = order == 2 ? opd_mul(self, self) : opd_abs(self); }
    if (self && order != 0 && order != 1 && order != 2 && !most && !least) {
        self = opd_pow_Tensor_Scalar(self, opd_value_float(order));
    }
    opd_tensor *const out = self ? opdi_lower_reduced(self, mask, most ? OPDI_OVER_MAX : least ? OPDI_OVER_MIN
        : OPDI_OVER_SUM, wide) : NULL;
    if (!out || order == 0 || order == 1 || most || least) { return out; }
    return order == 2 ? opd_sqrt(out) : opd_pow_Tensor_Scalar(out, opd_value_float(1 / order));
}
/* Linalg_vector_norm, norm: Scalar, ScalarOpt_dim and those with a dtype. */
static int opdi_lower_norm(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const opd_value given = opd_arg_value(call, 1);
    const double order = given.tag == OPD_TAG_INT ? (double)given.u.i : given.tag == OPD_TAG_FLOAT ? given.u.d : 2;
    const bool dims = strstr(name, "vector") || strstr(name, "_dim");
    const opd_value list = dims ? opd_arg_value(call, 2) : opd_value_none();
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (!opd_numel(self) && (order < 0 || order > DBL_MAX)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a norm of order %g of nothing cannot be compiled", order);
    }
    if (opd_results_from_fake(call)) { return -1; }
    const uint64_t mask = opdi_lower_mask(list.tag == OPD_TAG_INTS ? opd_arg_ints(call, 2) : opd_ints_of(NULL, 0),
                                          opd_ndim(self));
    opd_tensor *const x = opd_to_dtype(self, opdi_lower_wide(opd_dtype(opd_call_rets(call)[0].u.t)));
    return x ? opdi_lower_give_as(call, 0, opdi_lower_norm_of(x, order, mask)) : -1;
}
/* _cdist_forward, _euclidean_dist: norms of the differences of all rows. */
static int opdi_lower_cdist(opd_call *call) {
    opd_tensor *const first = opd_arg_tensor(call, 0), *const second = opd_arg_tensor(call, 1);
    const double order = opd_call_nargs(call) > 2 ? opd_arg_float(call, 2) : 2;
    if (opd_results_from_fake(call)) { return -1; }
    if (!opd_numel(first) || !opd_numel(second)) { return opd_fail(OPD_ERROR_ARGUMENT, "distances of nothing"); }
    opd_tensor *const less = opd_sub(opd_unsqueeze(first, -2), opd_unsqueeze(second, -3));
    const uint64_t last = less ? (uint64_t)1 << (opd_ndim(less) - 1) : 0;
    return less ? opdi_lower_give_as(call, 0, opdi_lower_norm_of(less, order, last)) : -1;
}

/* Take: self as one row, read at indices. */
static int opdi_lower_take_flat(opd_call *call) {
    opd_tensor *const flat = opd_flatten(opd_arg_tensor(call, 0)), *const index = opd_arg_tensor(call, 1);
    int by[OPD_MAX_DIMS], none = -1;
    if (!flat || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    for (int i = 0; i < opd_ndim(result); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), opd_ndim(result), 0);
    opdi_xpr *const load = nest ? opdi_xpr_load(flat, &none) : NULL;
    if (!load || opdi_lower_index_by(load, opdi_xpr_load(index, by), opd_strides(flat)[0], opd_numel(flat)) ||
        opdi_nest_out(nest, result, by)) { return -1; }
    load->wraps = true;
    return opdi_nest_add(nest, load);
}
/* Put: the same of what is written, or added. */
static int opdi_lower_put_flat(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const source = opd_flatten(opd_arg_tensor(call, 2));
    opd_tensor *const index = opd_flatten(opd_arg_tensor(call, 1));
    const bool adds = opd_arg_bool(call, 3);
    int dims[OPD_MAX_DIMS] = {-1};
    if (adds && opd_dtype(self) == OPD_BOOL) {
        return opd_fail(OPD_ERROR_ARGUMENT, "sums of bools cannot be compiled");
    }
    if (!source || !index || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const flat = opd_clone(opd_flatten(opd_to_dtype(self, adds ? opdi_lower_wide(opd_dtype(self))
        : opd_dtype(self))));
    opdi_xpr *const place = flat ? opdi_lower_row_place(flat, 0, index, true, dims) : NULL;
    if (!place) { return -1; }
    place->wraps = true;
    if (opd_numel(index) && (adds ? opdi_lower_put_more(flat, source, dims, place, OPD_FORMULA_add)
                             : opdi_lower_put(flat, source, dims, place))) { return -1; }
    return opdi_lower_give_as(call, 0, flat);
}
/* _softmax_backward_data: grad * out - out * sum(grad * out); _log_softmax_backward_data: grad - exp(out) sum(grad). */
static int opdi_lower_softmax_back(opd_call *call) {
    const bool logs = strstr(opd_op_name(opd_call_operator(call)), "log") != NULL;
    const int64_t dim = opd_arg_int(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(opd_arg_tensor(call, 0)));
    opd_tensor *grad = opd_to_dtype(opd_arg_tensor(call, 0), wide), *out = opd_to_dtype(opd_arg_tensor(call, 1), wide);
    if (!grad || !out) { return -1; }
    out = logs ? opd_exp(out) : out;
    grad = logs ? grad : opd_mul(grad, out);
    if (!grad || !out) { return -1; }
    opd_tensor *const sum = opdi_lower_reduced(grad, opdi_lower_mask(opd_ints_of(&dim, 1), opd_ndim(grad)),
                                               OPDI_OVER_SUM, wide);
    return sum ? opdi_lower_give(call, 0, opd_sub(grad, opd_mul(out, sum))) : -1;
}
/* What a loss of targets reads: classes, with 0 for those that are ignored, which of them count, and weights. */
typedef struct opdi_lower_nll { opd_tensor *at, *counts, *weights; int dim; } opdi_lower_nll;
static int opdi_lower_nll_of(opdi_lower_nll *all, opd_tensor *self, opd_tensor *target, opd_tensor *weight,
                             int64_t ignored) {
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    all->dim = opd_ndim(self) > 1;
    all->counts = opd_ne_Scalar(target, opd_value_int(ignored));
    all->at = all->counts ? opd_where_self(all->counts, target, opd_zeros_like(target)) : NULL;
    all->at = all->at ? opd_to_dtype(all->at, OPD_INT64) : NULL;
    if (!all->at) { return -1; }
    all->weights = opd_to_dtype(all->counts, wide);
    if (weight) {
        opd_tensor *const of = opd_index_select(opd_to_dtype(weight, wide), 0, opd_flatten(all->at));
        all->weights = of ? opd_where_self(all->counts, opd_view(of, opd_ints_of(opd_sizes(target), opd_ndim(target))),
                                           opd_zeros_like(all->weights)) : NULL;
    }
    all->at = opd_unsqueeze(all->at, all->dim);
    return all->weights && all->at ? 0 : -1;
}
/* Nll_loss_forward, nll_loss2d_forward: the loss, and the sum of weights. */
static int opdi_lower_nll_forward(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const target = opd_arg_tensor(call, 1);
    const int64_t reduction = opd_arg_int(call, 3);
    const uint64_t everything = opdi_lower_mask(opd_ints_of(NULL, 0), opd_ndim(target));
    opdi_lower_nll all;
    if (opd_results_from_fake(call) || opdi_lower_nll_of(&all, self, target, opd_arg_tensor(call, 2),
                                                         opd_arg_int(call, 4))) { return -1; }
    const opd_scalar_type wide = opd_dtype(all.weights);
    opd_tensor *picked = opd_squeeze_dim(opd_gather(self, all.dim, all.at), all.dim);
    picked = picked ? opd_mul(opd_neg(opd_to_dtype(picked, wide)), all.weights) : NULL;
    picked = picked ? opd_where_self(all.counts, picked, opd_zeros_like(picked)) : NULL;
    if (!picked) { return -1; }
    if (reduction == 0 && opd_ndim(self) > 1) {
        return opdi_lower_give(call, 0, picked) || !opd_fill_(opd_call_rets(call)[1].u.t, opd_value_int(0)) ? -1 : 0;
    }
    opd_tensor *sum = opdi_lower_reduced(picked, everything, OPDI_OVER_SUM, wide);
    opd_tensor *const total = sum ? opdi_lower_reduced(all.weights, everything, OPDI_OVER_SUM, wide) : NULL;
    sum = total && reduction == 1 ? opd_div(sum, total) : sum;
    return total && opdi_lower_give_as(call, 0, sum) == 0 ? opdi_lower_give_as(call, 1, total) : -1;
}
/* Nll_loss_backward, nll_loss2d_backward: what each target's class gets. */
static int opdi_lower_nll_backward(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 1), *const target = opd_arg_tensor(call, 2);
    opdi_lower_nll all;
    if (opd_results_from_fake(call) || opdi_lower_nll_of(&all, self, target, opd_arg_tensor(call, 3),
                                                         opd_arg_int(call, 5))) { return -1; }
    const opd_scalar_type wide = opd_dtype(all.weights);
    opd_tensor *grad = opd_to_dtype(opd_arg_tensor(call, 0), wide), *const total = opd_arg_tensor(call, 6);
    const bool each = opd_arg_int(call, 4) == 0 && opd_ndim(self) > 1;
    grad = each ? grad : opd_view(grad, opd_ints_of(NULL, 0));
    if (opd_arg_int(call, 4) == 1) { grad = opd_div(grad, opd_view(opd_to_dtype(total, wide), opd_ints_of(NULL, 0))); }
    opd_tensor *values = grad ? opd_neg(opd_mul(grad, all.weights)) : NULL;
    values = values ? opd_where_self(all.counts, values, opd_zeros_like(values)) : NULL;
    opd_tensor *const zeros = values ? opd_zeros_like_full(self, opd_value_int(wide), opd_value_none(),
                                                           opd_value_none(), opd_value_none(), opd_value_none()) : NULL;
    return zeros ? opdi_lower_give(call, 0, opd_scatter(zeros, all.dim, all.at, opd_unsqueeze(values, all.dim)))
        : -1;
}
/* Embedding_dense_backward: rows of the gradient are added up at their indices, but for the padding's. */
static int opdi_lower_embedding_back(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *const index = opd_flatten(opd_arg_tensor(call, 1));
    const int64_t skip = opd_arg_int(call, 3), d = opd_sizes(grad)[opd_ndim(grad) - 1], rows = -1;
    const int64_t sizes[2] = {rows, d}, table[2] = {opd_arg_int(call, 2), d};
    int dims[OPD_MAX_DIMS];
    if (opd_arg_bool(call, 4) || !opd_numel(grad)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradients of nothing, or by frequency, cannot be compiled");
    }
    if (!index || opd_results_from_fake(call)) { return -1; }
    grad = opd_to_dtype(opd_reshape(grad, opd_ints_of(sizes, 2)), opdi_lower_wide(opd_dtype(grad)));
    opd_tensor *const kept = opd_unsqueeze(opd_ne_Scalar(index, opd_value_int(skip)), 1);
    grad = grad && kept ? opd_where_self(kept, grad, opd_zeros_like(grad)) : NULL;
    opd_tensor *const acc = grad ? opd_new_zeros(grad, opd_ints_of(table, 2)) : NULL;
    if (!acc || opdi_lower_put_more(acc, grad, dims, opdi_lower_row_place(acc, 0, index, true, dims),
                                    OPD_FORMULA_add)) { return -1; }
    return opdi_lower_give(call, 0, acc);
}
/* Median of all elements. */
static int opdi_lower_median(opd_call *call) {
    opd_tensor *const self = opd_flatten(opd_arg_tensor(call, 0));
    opd_tensor *pair[2];
    if (!self || !opd_numel(self)) { return opd_fail(OPD_ERROR_ARGUMENT, "a median of nothing cannot be compiled"); }
    if (opd_results_from_fake(call) || opd_median_dim(pair, self, 0, false)) { return -1; }
    return opdi_lower_give_as(call, 0, pair[0]);
}
/* Special functions of one or two tensors: a formula of that name, of doubles. */
static int opdi_lower_special(opd_call *call) {
    const char *name = opd_op_name(opd_call_operator(call)) + 6;
    opdi_xpr *in[2] = {NULL, NULL};
    int by[OPD_MAX_DIMS], formula = OPD_FORMULA_COUNT;
    const int count = opd_call_nargs(call);
    const int formulas = (int)(sizeof opdi_formula_names / sizeof *opdi_formula_names);
    name += strncmp(name, "special_", 8) == 0 ? 8 : 0;
    name += strncmp(name, "modified_bessel_", 16) == 0 ? 16 : 0;
    while (formula < formulas && strcmp(opdi_formula_names[formula], name) != 0) { formula++; }
    if (formula == formulas) { return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled", name); }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    for (int i = 0; i < opd_ndim(result); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(result), opd_ndim(result), 0);
    if (!nest || opdi_nest_out(nest, result, by)) { return -1; }
    for (int i = 0; i < count; i++) {
        opd_tensor *const x = opd_expand(opd_arg_tensor(call, i), opd_ints_of(opd_sizes(result), opd_ndim(result)));
        in[i] = x ? opdi_xpr_cast(opdi_xpr_cast(opdi_xpr_load(x, by), opd_dtype(result)), OPD_FLOAT64) : NULL;
        if (!in[i]) { return -1; }
    }
    opdi_xpr *const value = opdi_xpr_formula(OPD_FORMULA_copy, OPD_FLOAT64, in[0], in[1]);
    if (value) { value->formula = formula; }
    return opdi_nest_add(nest, opdi_xpr_cast(value, opd_dtype(result)));
}

OPDI_COLD_END
#endif

