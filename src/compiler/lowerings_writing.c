#include "compiler.h"

//== writing at indices ================================================================================================
//
//  Lowerings (see >>lowerings) of operators that write elements at indices, and of concatenation and similar operators.

/* Copies self to the result of a call and returns the result, for operators that return self with some elements
   changed.  If self is the result, copies nothing.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_lower_updated(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return NULL; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    const bool same = opd_numel(self) == 0 || opd_device_data(self, OPD_LAZY) == opd_device_data(result, OPD_LAZY);
    return same || opd_copy_(result, self) ? result : NULL;
}
/* Stores `values`, converted to the dtype of the result, at the indices in `place`.  dims[i] is the loop over dim i of
   the result, or -1 if an index selects the element.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_put(opd_tensor *result, opd_tensor *values, const int *dims, opdi_expr *place) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const from = opd_clone(opd_to_dtype(values, opd_dtype(result)));
    if (!from || !place) { return -1; }
    for (int i = 0; i < opd_ndim(from); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(from), opd_ndim(from), 0);
    opdi_expr *const load = nest ? opdi_expr_load(from, by) : NULL;
    if (!load || opdi_nest_out(nest, result, dims)) { return -1; }
    nest->place = place;
    return opdi_nest_add(nest, load);
}
/* Lowers index_copy, whose index has one dim, and scatter, whose index has the dims of the source.  Writes only those
   elements of the source for which there is an index.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_scatter(opd_call *call) {
    opd_tensor *const index = opd_arg_tensor(call, 2);
    const bool scatter = strstr(opd_op_name(opd_call_operator(call)), "scatter") != NULL;
    const opd_value given = opd_arg_value(call, 3);
    int64_t dim = opd_arg_int(call, 1);
    opd_tensor *const result = opdi_lower_updated(call);
    if (!result || !opd_numel(index)) { return result ? 0 : -1; }         /* an empty index may have other dims */
    const int ndim = opd_ndim(result), row = (int)(dim < 0 ? dim + ndim : dim);
    int by[OPD_MAX_DIMS], dims[OPD_MAX_DIMS];
    if (ndim == 0 || (scatter && opd_ndim(index) != ndim)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "indices into a tensor without dims cannot be compiled");
    }
    for (int i = 0; i < ndim; i++) {
        by[i] = i;
        dims[i] = i == row ? -1 : i;
    }
    opd_tensor *values = given.tag == OPD_TAG_TENSOR ? given.u.t
        : opd_new_full(result, opd_ints_of(opd_sizes(index), ndim), given);
    if (scatter && given.tag == OPD_TAG_TENSOR) {
        for (int i = 0; i < ndim && values; i++) { values = opd_narrow(values, i, 0, opd_sizes(index)[i]); }
    }
    opdi_expr *const place = opdi_expr_new(OPDI_EXPR_PLACE, opd_dtype(result));
    if (!values || !place || opdi_lower_index_by(place, opdi_expr_load(index, scatter ? by : &row),
                                                 opd_strides(result)[row], opd_sizes(result)[row])) { return -1; }
    return opdi_lower_put(result, values, dims, place);
}
static int opdi_lower_index_accumulate(opd_call *call);
/* Lowers index_put, with integer tensors for some dims.  The index tensors are broadcast.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_lower_index_put(opd_call *call) {
    const opd_tensors indices = opd_arg_tensors(call, 1);
    opd_tensor *values = opd_arg_tensor(call, 2);
    opdi_lower_places places;
    if (opd_arg_bool(call, 3)) { return opdi_lower_index_accumulate(call); }
    if (opdi_lower_places_of(&places, opd_arg_tensor(call, 0), indices)) { return -1; }
    opd_tensor *const result = opdi_lower_updated(call);
    opdi_expr *const place = result ? opdi_expr_new(OPDI_EXPR_PLACE, opd_dtype(result)) : NULL;
    if (!place || opdi_lower_places_by(place, &places, result, indices)) { return -1; }
    values = opd_expand(values, opd_ints_of(places.sizes, places.ndim));
    return values && opd_numel(values) ? opdi_lower_put(result, values, places.dims, place) : opd_ok() ? 0 : -1;
}

//== concatenation, padding, flip, tril and triu =======================================================================

OPDI_INTERNAL int opdi_lower_cat(opd_call *call) {
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
OPDI_INTERNAL int opdi_lower_pad(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    const int count = (int)pad.n / 2;
    int64_t before[OPD_MAX_DIMS], after[OPD_MAX_DIMS];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < count; i++) {
        before[i] = pad.data[2 * (count - 1 - i)];
        after[i] = pad.data[2 * (count - 1 - i) + 1];
    }
    return opdi_lower_return(call, 0, opdi_lower_padded(self, opd_ndim(self) - count, before, after, NULL,
                                                        opd_arg_value(call, 2)));
}

/* Lowers flip: reads the flipped dims backwards.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_flip(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_ints dims = opd_arg_ints(call, 1);
    int by[OPD_MAX_DIMS];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < opd_ndim(self); i++) { by[i] = i; }
    opdi_nest *const nest = opdi_nest_new(opd_sizes(self), opd_ndim(self), 0);
    opdi_expr *const load = nest ? opdi_expr_load(self, by) : NULL;
    if (!load || opdi_nest_out(nest, opd_call_rets(call)[0].u.t, by)) { return -1; }
    for (int i = 0; i < dims.n; i++) {
        const int dim = (int)(dims.data[i] < 0 ? dims.data[i] + opd_ndim(self) : dims.data[i]);
        if (!opd_ndim(self)) { break; }
        load->access.offset += load->access.strides[dim] * (opd_sizes(self)[dim] - 1);
        load->access.strides[dim] = -load->access.strides[dim];
    }
    return opdi_nest_add(nest, load);
}
/* Lowers tril and triu: elements on the wrong side of the diagonal become zero.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_triangle(opd_call *call) {
    const bool lower = strstr(opd_op_name(opd_call_operator(call)), "tril") != NULL;
    const int64_t steps[2] = {-1, 1};
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value diagonal = opd_value_int(opd_arg_int(call, 1));
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const apart = opdi_lower_counts(opd_sizes(self) + opd_ndim(self) - 2, 2, steps, 0);
    opd_tensor *const kept = !apart ? NULL : lower ? opd_le_Scalar(apart, diagonal) : opd_ge_Scalar(apart, diagonal);
    return kept ? opdi_lower_return(call, 0, opd_where_self(kept, self, opd_zeros_like(self))) : -1;
}

//== adding at indices =================================================================================================

/* Combines elements of `acc`, at the indices in `place`, with `values` by a pointwise formula, one value after another.
   `dims` is as for opdi_lower_put.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_put_accumulate(opd_tensor *acc, opd_tensor *values, const int *dims, opdi_expr *place,
                                            opd_formula formula) {
    int by[OPD_MAX_DIMS];
    opd_tensor *const from = opd_clone(opd_to_dtype(values, opd_dtype(acc)));
    opdi_expr *const was = from && place ? opdi_expr_load(acc, dims) : NULL;
    if (!was) { return -1; }
    for (int i = 0; i < opd_ndim(from); i++) { by[i] = i; }
    for (int i = 0; i < place->nin; i++) {
        if (opdi_lower_index_by(was, place->in[i], place->index_strides[i], place->index_sizes[i])) { return -1; }
    }
    was->wraps = place->wraps;
    opdi_nest *const nest = opdi_nest_new(opd_sizes(from), opd_ndim(from), 0);
    opdi_expr *const load = nest ? opdi_expr_load(from, by) : NULL;
    if (!load || opdi_nest_out(nest, acc, dims)) { return -1; }
    nest->place = place;
    return opdi_nest_add(nest, opdi_expr_formula(formula, opd_dtype(acc), was, load));
}
/* Returns an expression that selects elements of `acc` along `dim` by `index`, and sets `dims` as for opdi_lower_put.
   If `row` is true, `index` has one dim; otherwise it has an index for each element.  On failure, returns NULL and sets
   an error. */
OPDI_INTERNAL opdi_expr *opdi_lower_row_place(opd_tensor *acc, int dim, opd_tensor *index, bool row, int *dims) {
    int by[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(acc); i++) {
        by[i] = i;
        dims[i] = i == dim ? -1 : i;
    }
    opdi_expr *const place = opdi_expr_new(OPDI_EXPR_PLACE, opd_dtype(acc));
    return place && opdi_lower_index_by(place, opdi_expr_load(index, row ? &dim : by), opd_strides(acc)[dim],
                                        opd_sizes(acc)[dim]) == 0 ? place : NULL;
}
/* Combines elements of `acc`, at the indices `index` along `dim`, with `values`.  If `row` is true, `index` has one
   dim, and whole rows are combined; otherwise it has an index for each element of `values`.  `how` is the name of the
   reduction.  If `include` is false, first sets the elements to the neutral element of the reduction.  Returns 0, or -1
   and sets an error. */
static int opdi_lower_accumulate_along(opd_tensor *acc, int dim, opd_tensor *index, opd_tensor *values, bool row,
                                       const char *how, bool include) {
    const bool most = strcmp(how, "amax") == 0, least = strcmp(how, "amin") == 0, times = strncmp(how, "prod", 4) == 0;
    const bool floating = opd_dtype_is_floating(opd_dtype(acc));
    int dims[OPD_MAX_DIMS];
    if (!opd_numel(values)) { return 0; }
    if (!include) {
        const opd_value nothing = !most && !least ? opd_value_int(times)
            : floating ? opd_value_double(most ? -(double)INFINITY : (double)INFINITY)
            : opd_value_int(most ? INT64_MIN : INT64_MAX);
        opd_tensor *const fresh = opd_new_full(acc, opd_ints_of(opd_sizes(values), opd_ndim(values)), nothing);
        if (!fresh || opdi_lower_put(acc, fresh, dims, opdi_lower_row_place(acc, dim, index, row, dims))) { return -1; }
    }
    return opdi_lower_put_accumulate(acc, values, dims, opdi_lower_row_place(acc, dim, index, row, dims),
                                     most ? OPD_FORMULA_maximum : least ? OPD_FORMULA_minimum : times ? OPD_FORMULA_mul
                                     : OPD_FORMULA_add);
}
/* Lowers scatter_add, scatter_reduce, scatter.reduce, scatter.value_reduce, index_add and index_reduce.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_accumulate(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool row = strstr(name, "index_") != NULL, by_name = strstr(name, "reduce") != NULL;
    const opd_value given = opd_arg_value(call, 3);
    opd_tensor *const self = opd_arg_tensor(call, 0), *const index = opd_arg_tensor(call, 2);
    const char *how = by_name ? opd_arg_str(call, 4) : "sum";
    const bool include = opd_call_nargs(call) > 5 ? opd_arg_bool(call, 5) : true;
    const bool means = strcmp(how, "mean") == 0;
    const opd_scalar_type wide = opdi_lower_wide(opd_dtype(self));
    const int ndim = opd_ndim(self);
    if (!opd_numel(index)) { return opdi_lower_updated(call) ? 0 : -1; }  /* an empty index may have other dims */
    if (!ndim || opd_dtype(self) == OPD_BOOL || (means && !opd_dtype_is_floating(wide)) ||
        (!row && opd_ndim(index) > ndim)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "sums at indices of a tensor without dims or of bools, and means of "
                        "integers, cannot be compiled");
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
    if (!acc || !values || opdi_lower_accumulate_along(acc, dim, index, values, row, how, include)) { return -1; }
    if (means) {
        opd_tensor *const ones = opd_new_full(acc, opd_ints_of(opd_sizes(values), ndim), opd_value_int(1));
        opd_tensor *const counts = opd_full_like(acc, opd_value_int(include));
        if (!ones || !counts || opdi_lower_accumulate_along(counts, dim, index, ones, row, "sum", true)) { return -1; }
        acc = opd_div(acc, opd_clamp_min(counts, opd_value_int(1)));
    }
    return opdi_lower_return(call, 0, acc);
}
/* Lowers index_put with accumulate=True.  Returns 0, or -1 and sets an error. */
static int opdi_lower_index_accumulate(opd_call *call) {
    const opd_tensors indices = opd_arg_tensors(call, 1);
    opd_tensor *const self = opd_arg_tensor(call, 0), *values = opd_arg_tensor(call, 2);
    opdi_lower_places places;
    if (opd_dtype(self) == OPD_BOOL) { return opd_fail(OPD_ERROR_ARGUMENT, "sums of bools cannot be compiled"); }
    if (opdi_lower_places_of(&places, self, indices) || opd_results_from_fake(call)) { return -1; }
    opd_tensor *const acc = opd_clone(opd_to_dtype(self, opdi_lower_wide(opd_dtype(self))));
    opdi_expr *const place = acc ? opdi_expr_new(OPDI_EXPR_PLACE, opd_dtype(acc)) : NULL;
    if (!place || opdi_lower_places_by(place, &places, acc, indices)) { return -1; }
    values = opd_expand(values, opd_ints_of(places.sizes, places.ndim));
    if (!values || (opd_numel(values) && opdi_lower_put_accumulate(acc, values, places.dims, place, OPD_FORMULA_add))) {
        return -1;
    }
    return opdi_lower_return(call, 0, acc);
}
/* Lowers index_fill with a number, or with a tensor that has one number.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lower_index_fill(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *const index = opd_arg_tensor(call, 2);
    const opd_value given = opd_arg_value(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS];
    const int ndim = opd_ndim(self);
    if (!ndim) { return opd_fail(OPD_ERROR_ARGUMENT, "indices into a tensor without dims cannot be compiled"); }
    const int dim = (int)(opd_arg_int(call, 1) < 0 ? opd_arg_int(call, 1) + ndim : opd_arg_int(call, 1));
    opd_tensor *const result = opdi_lower_updated(call);
    for (int i = 0; i < ndim; i++) { sizes[i] = i == dim ? opd_numel(index) : opd_sizes(self)[i]; }
    opd_tensor *const values = !result ? NULL : given.tag == OPD_TAG_TENSOR
        ? opd_expand(opd_to_dtype(given.u.t, opd_dtype(result)), opd_ints_of(sizes, ndim))
        : opd_new_full(result, opd_ints_of(sizes, ndim), given);
    if (!values) { return -1; }
    opdi_expr *const place = opdi_lower_row_place(result, dim, index, true, dims);
    if (!place) { return -1; }
    place->wraps = true;
    return opd_numel(values) ? opdi_lower_put(result, values, dims, place) : 0;
}
/* Lowers one_hot.  A class that is out of range is reported as an index that is out of range.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_lower_one_hot(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int ndim = opd_ndim(self);
    int dims[OPD_MAX_DIMS];
    if (opd_arg_int(call, 1) < 1 || !opd_numel(self)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a number of classes that depends on data, or an empty tensor, cannot be "
                        "compiled");
    }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const result = opd_call_rets(call)[0].u.t;
    opd_tensor *const at = opd_unsqueeze(self, -1);
    opd_tensor *const ones = at ? opd_ones_like(at) : NULL;
    if (!ones || !opd_fill_(result, opd_value_int(0))) { return -1; }
    return opdi_lower_put(result, ones, dims, opdi_lower_row_place(result, ndim, at, false, dims));
}
/* Lowers slice_scatter and similar operators: copies the source into a view of the result.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_lower_view_put(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const src = opd_arg_tensor(call, 1), *const result = opdi_lower_updated(call);
    if (!result) { return -1; }
    opd_tensor *const view = strstr(name, "slice")
        ? opd_slice(result, opd_arg_int(call, 2), opd_arg_value(call, 3), opd_arg_value(call, 4), opd_arg_int(call, 5))
        : strstr(name, "select") ? opd_select(result, opd_arg_int(call, 2), opd_arg_int(call, 3))
        : opd_diagonal_full(result, opd_arg_int(call, 2), opd_arg_int(call, 3), opd_arg_int(call, 4));
    return view && opd_copy_(view, src) ? 0 : -1;
}
