#include "../ops.h"

//== histogram, histogramdd ============================================================================================
//
//  A histogram of a tensor [.., n] counts points with n coordinates (axes).  The last bin of each axis includes its
//  upper edge.  Points that lie outside of all bins or have a NaN coordinate are not counted.

/* Sets ends[2] to the range of axis i: the two numbers in `range` or, without a range, the smallest and the largest
   coordinate.  If both are equal, they are moved apart by 0.5 each.  Without a range, only float32 and float64 are
   supported, as in PyTorch.  Returns 0, or -1 and sets an error. */
static int opdi_histogram_range(opd_tensor *points, opd_value range, int64_t i, double *ends) {
    ends[0] = 0;
    ends[1] = 1;
    if (range.tag == OPD_TAG_FLOATS) {
        if (range.n != 2 * opdi_sizes(points)[1]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "histogramdd: for a %lld-dimensional histogram range should "
                            "have %lld elements, but got %d", (long long)opdi_sizes(points)[1],
                            (long long)(2 * opdi_sizes(points)[1]), (int)range.n);
        }
        memcpy(ends, range.u.floats + 2 * i, 2 * sizeof *ends);
    } else if (points->numel && points->dtype != OPD_FLOAT32 && points->dtype != OPD_FLOAT64) {
        return opd_fail(OPD_ERROR_DTYPE, "\"histogramdd\" without a range not implemented for '%s'",
                        opd_dtype_name(OPDI_DTYPE(points)));
    } else if (points->numel && points->backend != OPD_META) {
        opd_tensor *pair[2];
        if (opd_aminmax(pair, opd_select(points, 1, i))) { return -1; }
        for (int k = 0; k < 2; k++) { ends[k] = opd_item_f64(pair[k]); }
    }
    if (!opd_ok()) { return -1; }
    if (!(fabs(ends[0]) <= DBL_MAX) || !(fabs(ends[1]) <= DBL_MAX)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "histogramdd: dimension %lld's range [%g, %g] is not finite",
                        (long long)i, ends[0], ends[1]);
    }
    if (ends[0] > ends[1]) {
        return opd_fail(OPD_ERROR_ARGUMENT, "histogramdd: min should not exceed max, but got min %g max %g for "
                        "dimension %lld", ends[0], ends[1], (long long)i);
    }
    if (ends[0] >= ends[1]) {
        ends[0] -= 0.5;
        ends[1] += 0.5;
    }
    return 0;
}
/* Returns the points in self [.., n] as a matrix [points, n].  n must be `axes`.  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_histogram_points(opd_tensor *self, int64_t axes) {
    int64_t sizes[2];
    if (self->ndim < 2) {
        opd_fail(OPD_ERROR_SHAPE, "histogramdd: input tensor should have at least 2 dimensions, but got %d",
                 self->ndim);
        return NULL;
    }
    if (!opd_dtype_is_floating(OPDI_DTYPE(self))) {
        opdi_dtype_fail("histogramdd", OPDI_DTYPE(self));
        return NULL;
    }
    sizes[1] = opdi_sizes(self)[self->ndim - 1];
    sizes[0] = sizes[1] ? self->numel / sizes[1] : 0;
    if (sizes[1] != axes) {
        opd_fail(OPD_ERROR_SHAPE, "histogramdd: expected %lld sequences of bin edges for a %lld-dimensional "
                 "histogram but got %lld", (long long)sizes[1], (long long)sizes[1], (long long)axes);
        return NULL;
    }
    return opdi_maybe_reshape(self, sizes, 2);
}
/* Sets edges[i], for each axis i, to the edges of counts.data[i] bins of equal size.  Returns 0, or -1 and sets an
   error. */
static int opdi_histogram_edges(opd_tensor *points, opd_ints counts, opd_value range, opd_tensor **edges) {
    for (int64_t i = 0; i < counts.n; i++) {
        double ends[2];
        if (counts.data[i] <= 0 || counts.data[i] == INT64_MAX) {
            return opd_fail(OPD_ERROR_ARGUMENT, "histogramdd: bins must be > 0, but got %lld for dimension "
                            "%lld", (long long)counts.data[i], (long long)i);
        }
        if (opdi_histogram_range(points, range, i, ends)) { return -1; }
        edges[i] = opd_linspace_full(opd_value_double(ends[0]), opd_value_double(ends[1]),
                                     counts.data[i] + 1, opd_value_int(points->dtype),
                                     OPD_NONE, opd_value_device(opd_tensor_device(points)), OPD_NONE);
        if (!edges[i]) { return -1; }
    }
    return 0;
}
/* Returns the number of the bin of each point along one axis.  values [points] are the coordinates.  Sets *inside
   [points] to false where a point is outside of the edges; makes *inside first if it is NULL.  If `even`, all bins have
   the same size: the numbers are computed and then corrected by comparisons with the edges. */
static opd_tensor *opdi_histogram_bin(opd_tensor *values, opd_tensor *edges, bool even, opd_tensor **inside) {
    if (!values || !edges) { return NULL; }       /* an earlier operator failed */
    const int64_t bins = edges->numel - 1;
    opd_tensor *first = opd_select(edges, 0, 0), *last = opd_select(edges, 0, -1), *at;
    opd_tensor *in = opd_logical_and(opd_ge(values, first), opd_le(values, last));
    *inside = *inside ? opd_logical_and(*inside, in) : in;
    values = opdi_where(in, values);
    if (even) {
        opd_tensor *const difference = opd_sub(values, first);
        at = opd_mul_Scalar(opd_div(difference, opd_sub(last, first)), opd_value_int(bins));
        at = opd_clamp(opd_to_dtype(opdi_where(in, at), OPD_INT64), opd_value_int(0), opd_value_int(bins - 1));
        at = opd_sub(at, opd_to_dtype(opd_lt(values, opd_take(edges, at)), OPD_INT64));
        at = opd_clamp_min(at, opd_value_int(0));
        at = opd_add(at, opd_to_dtype(opd_ge(values, opd_take(edges, opd_add_Scalar(at, opd_value_int(1)))),
                                      OPD_INT64));
    } else {
        at = opd_sub_Scalar(opd_searchsorted_full(edges, values, false, true, OPD_NONE, OPD_NONE), opd_value_int(1));
    }
    return opd_clamp(at, opd_value_int(0), opd_value_int(bins - 1));
}
/* Sets the error that a histogram has too many dimensions.  Returns -1. */
static int opdi_histogram_axes_fail(int64_t axes) {
    return opd_fail(OPD_ERROR_SHAPE, "a histogram has at most %d dimensions, but the input has %lld columns",
                    OPD_MAX_DIMS, (long long)axes);
}
/* Returns the sum of the points' weights (1 by default) in each bin.  If `density`, divides by the sum over all bins
   and by the sizes of the bins.  16-bit floats are summed in float32, because adding 1 to a large 16-bit float would
   not change it. */
static opd_tensor *opdi_histogram_of(opd_tensor *points, opd_tensor *const *edges, bool even, opd_tensor *weight,
                                     bool density) {
    const int64_t axes = opdi_sizes(points)[1], flat = -1;
    const opd_scalar_type dtype = OPDI_DTYPE(points), work = opdi_float_work(points->dtype);
    int64_t sizes[OPD_MAX_DIMS], shape[OPD_MAX_DIMS], total = 1;
    opd_tensor *inside = NULL, *at = NULL;
    if (axes > OPD_MAX_DIMS) {
        (void)opdi_histogram_axes_fail(axes);
        return NULL;
    }
    for (int64_t i = 0; i < axes; i++) { sizes[i] = edges[i]->numel - 1; }
    if ((total = opdi_count(sizes, (int)axes, 8)) < 0) { return NULL; }
    if (!(points = opd_to_dtype(points, work))) { return NULL; }
    for (int64_t i = 0; i < axes; i++) {
        opd_tensor *const line = opd_contiguous(opd_select(points, 1, i)),
            *bin = opdi_histogram_bin(line, opd_to_dtype(edges[i], work), even, &inside);
        at = at ? opd_add(opd_mul_Scalar(at, opd_value_int(sizes[i])), bin) : bin;
    }
    opd_tensor *counts = opd_new_zeros(points, opd_ints_of(&total, 1));
    if (weight) { weight = opdi_maybe_reshape(opd_to_dtype(weight, work), &flat, 1); }
    else { weight = opd_new_ones(points, opd_ints_of(opdi_sizes(points), 1)); }
    if (axes) { counts = opd_index_add(counts, 0, at, opdi_where(inside, weight)); }
    counts = opdi_maybe_reshape(counts, sizes, axes);
    if (!density) { return opd_to_dtype(counts, dtype); }
    counts = opd_div(counts, opd_sum(counts));
    for (int64_t i = 0; i < axes; i++) {
        for (int64_t k = 0; k < axes; k++) { shape[k] = k == i ? -1 : 1; }
        opd_tensor *edge = opd_to_dtype(edges[i], work);
        opd_tensor *const part = opd_narrow(edge, 0, 1, sizes[i]),
            *width = opd_sub(part, opd_narrow(edge, 0, 0, sizes[i]));
        counts = opd_div(counts, opd_reshape(width, opd_ints_of(shape, axes)));
    }
    return opd_to_dtype(counts, dtype);
}
static int opdi_histogram_weight(opd_tensor *self, opd_tensor *weight, int64_t points) {
    if (!weight) { return 0; }
    if (weight->dtype != self->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "histogramdd: if weight tensor is provided, input tensor and weight "
                        "tensor should have the same dtype, but got input %s, and weight %s",
                        opd_dtype_name(OPDI_DTYPE(self)), opd_dtype_name(OPDI_DTYPE(weight)));
    }
    if (weight->numel != points) {
        return opd_fail(OPD_ERROR_SHAPE, "histogramdd: if weight tensor is provided it should have the same "
                        "shape as the input tensor excluding its innermost dimension, but got %lld weights for %lld "
                        "points", (long long)weight->numel, (long long)points);
    }
    return 0;
}
/* Checks `given`, the edges that the caller passed, which must be vectors of self's dtype.  Returns 0, or -1 and sets
   an error. */
static int opdi_histogram_given(opd_tensor *self, opd_tensors given) {
    for (int64_t i = 0; i < given.n; i++) {
        if (given.data[i]->ndim != 1 || given.data[i]->numel < 1) {
            return opd_fail(OPD_ERROR_SHAPE, "histogramdd: bins tensor should have one dimension, and at least "
                            "one element, but got %d dimensions and %lld elements for dimension %lld",
                            given.data[i]->ndim, (long long)given.data[i]->numel, (long long)i);
        }
        if (given.data[i]->dtype != self->dtype) {
            return opd_fail(OPD_ERROR_DTYPE, "histogramdd: input tensor and bins tensors should have the same "
                            "dtype, but got input with dtype %s and bins for dimension %lld with dtype %s",
                            opd_dtype_name(OPDI_DTYPE(self)), (long long)i,
                            opd_dtype_name(OPDI_DTYPE(given.data[i])));
        }
        if (given.data[i]->numel == 1) {
            return opd_fail(OPD_ERROR_ARGUMENT, "histogramdd: bins must be > 0, but got 0 for dimension %lld",
                            (long long)i);
        }
    }
    return 0;
}
/* Which results an operator returns: only edges, only counts, counts and a list of edges, or counts and one tensor of
   edges. */
enum { OPDI_HISTOGRAM_EDGES, OPDI_HISTOGRAM_COUNTS, OPDI_HISTOGRAM_BOTH, OPDI_HISTOGRAM_FLAT };
/* Counts the points of self between edges.  `bins` holds either the number of bins of each axis or their edges.
   Returns to the call the results that `what` (OPDI_HISTOGRAM_..) names. */
static int opdi_histogram(opd_call *call, opd_tensor *self, opd_value bins, opd_value range, opd_tensor *weight,
                          bool density, int what) {
    const int64_t axes = bins.n;
    const bool even = bins.tag != OPD_TAG_TENSORS;
    opd_tensor **edges = opdi_list_alloc(axes + 1);
    opd_tensor *points = opdi_histogram_points(self, axes);
    if (!points || !edges || opdi_histogram_weight(self, weight, opdi_sizes(points)[0])) { return -1; }
    if (even ? opdi_histogram_edges(points, opd_ints_of(bins.u.ints, axes), range, edges)
             : opdi_histogram_given(self, opd_tensors_of(bins.u.tensors, axes))) { return -1; }
    if (!even) { memcpy(edges, bins.u.tensors, (size_t)axes * sizeof *edges); }
    if (what == OPDI_HISTOGRAM_EDGES) { return opd_return_tensors(call, edges, axes); }
    if (opd_return_tensor(call, opdi_histogram_of(points, edges, even, weight, density))) { return -1; }
    return what == OPDI_HISTOGRAM_COUNTS ? 0
        : what == OPDI_HISTOGRAM_BOTH ? opd_return_tensors(call, edges, axes)
        : opd_return_tensor(call, even ? edges[0] : opd_clone(edges[0]));
}
static int opdi__histogramdd_bin_edges_kernel(opd_call *call) {
    return opdi_histogram(call, opd_arg_tensor(call, 0), opd_arg_value(call, 1), opd_arg_value(call, 2),
                          opd_arg_tensor(call, 3), opd_arg_bool(call, 4), OPDI_HISTOGRAM_EDGES);
}
static int opdi__histogramdd_from_bin_cts_kernel(opd_call *call) {
    return opdi_histogram(call, opd_arg_tensor(call, 0), opd_arg_value(call, 1), opd_arg_value(call, 2),
                          opd_arg_tensor(call, 3), opd_arg_bool(call, 4), OPDI_HISTOGRAM_COUNTS);
}
static int opdi__histogramdd_from_bin_tensors_kernel(opd_call *call) {
    return opdi_histogram(call, opd_arg_tensor(call, 0), opd_arg_value(call, 1), OPD_NONE, opd_arg_tensor(call, 2),
                          opd_arg_bool(call, 3), OPDI_HISTOGRAM_COUNTS);
}
/* histogram: returns all elements of self as points with one coordinate, [numel, 1]. */
static opd_tensor *opdi_histogram_column(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t sizes[2] = {self->numel, 1};
    return opdi_maybe_reshape(self, sizes, 2);
}
static int opdi_histogram_bins_tensor_kernel(opd_call *call) {
    opd_tensor *bins = opd_arg_tensor(call, 1), *column = opdi_histogram_column(call);
    return column ? opdi_histogram(call, column, opd_value_tensors(&bins, 1), OPD_NONE, opd_arg_tensor(call, 2),
                                   opd_arg_bool(call, 3), OPDI_HISTOGRAM_FLAT) : -1;
}
static int opdi_histogram_bin_ct_kernel(opd_call *call) {
    const int64_t bins = opd_arg_int(call, 1);
    opd_tensor *column = opdi_histogram_column(call);
    return column ? opdi_histogram(call, column, opd_value_ints(&bins, 1), opd_arg_value(call, 2),
                                   opd_arg_tensor(call, 3), opd_arg_bool(call, 4), OPDI_HISTOGRAM_FLAT) : -1;
}
static int opdi_histogramdd_kernel(opd_call *call) {
    return opdi_histogram(call, opd_arg_tensor(call, 0), opd_arg_value(call, 1), opd_arg_value(call, 2),
                          opd_arg_tensor(call, 3), opd_arg_bool(call, 4), OPDI_HISTOGRAM_BOTH);
}
static int opdi_histogramdd_int_bins_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t bins[OPD_MAX_DIMS];
    const int64_t axes = self->ndim ? opdi_sizes(self)[self->ndim - 1] : 0;
    if (axes > OPD_MAX_DIMS) {
        return opdi_histogram_axes_fail(axes);
    }
    for (int64_t i = 0; i < axes; i++) { bins[i] = opd_arg_int(call, 1); }
    return opdi_histogram(call, self, opd_value_ints(bins, axes), opd_arg_value(call, 2), opd_arg_tensor(call, 3),
                          opd_arg_bool(call, 4), OPDI_HISTOGRAM_BOTH);
}
/* opd__histogramdd_bin_edges: the edges of bins of equal size over the range of each column */
OPDI_OP(_histogramdd_bin_edges) {
    op->schema = "_histogramdd_bin_edges(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
        "density=False) -> Tensor[]";
    op->any = opdi__histogramdd_bin_edges_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_histogramdd_bin_edges.out";
    op->cases = "[5,2], (3,2); [5,1], (2,), range=(0.0,1.0)";
}
/* opd__histogramdd_from_bin_cts: the number of points in each bin, if the bins of each axis have equal sizes */
OPDI_OP(_histogramdd_from_bin_cts) {
    op->schema = "_histogramdd_from_bin_cts(Tensor self, int[] bins, *, float[]? range=None, Tensor? weight=None, bool "
        "density=False) -> Tensor";
    op->any = opdi__histogramdd_from_bin_cts_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_histogramdd_from_bin_cts.out";
    op->cases = "[5,2], (3,2); [5,2], (2,2), range=(-1.0,1.0,0.0,1.0), weight=[5]; [2,3,1], (4,), density=True";
}
/* opd__histogramdd_from_bin_tensors: the number of points in each bin between the given edges */
OPDI_OP(_histogramdd_from_bin_tensors) {
    op->schema = "_histogramdd_from_bin_tensors(Tensor self, Tensor[] bins, *, Tensor? weight=None, bool "
        "density=False) -> Tensor";
    op->any = opdi__histogramdd_from_bin_tensors_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "_histogramdd_from_bin_tensors.out";
    op->cases = "";
}
/* opd_histogram_bins_tensor: the number of elements in each bin between the given edges, and the edges */
OPDI_OP(histogram_bins_tensor) {
    op->schema = "histogram.bins_tensor(Tensor self, Tensor bins, *, Tensor? weight=None, bool density=False) -> "
        "(Tensor hist, Tensor bin_edges)";
    op->any = opdi_histogram_bins_tensor_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "histogram.bins_tensor_out(hist, bin_edges)";
    op->cases = "";
}
/* opd_histogram_bin_ct: the number of elements in each of `bins` bins of equal size, and the edges of the bins */
OPDI_OP(histogram_bin_ct) {
    op->schema = "histogram.bin_ct(Tensor self, int bins=100, *, float[]? range=None, Tensor? weight=None, bool "
        "density=False) -> (Tensor hist, Tensor bin_edges)";
    op->any = opdi_histogram_bin_ct_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "histogram.bin_ct_out(hist, bin_edges)";
    op->cases = "[6], 3; [2,5], 4, range=(-1.0,1.0), density=True; [6], 2, weight=[6]";
}
/* opd_histogramdd: a histogram of points, each of which is a row of self; bins has the number of bins per coordinate */
OPDI_OP(histogramdd) {
    op->schema = "histogramdd(Tensor self, int[] bins, float[]? range=None, Tensor? weight=None, bool density=False) "
        "-> (Tensor hist, Tensor[] bin_edges)";
    op->composite = opdi_histogramdd_kernel;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* opd_histogramdd_int_bins: histogramdd with the same number of bins for each coordinate */
OPDI_OP(histogramdd_int_bins) {
    op->schema = "histogramdd.int_bins(Tensor self, int bins, float[]? range=None, Tensor? weight=None, bool "
        "density=False) -> (Tensor hist, Tensor[] bin_edges)";
    op->composite = opdi_histogramdd_int_bins_kernel;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* opd_histogramdd_TensorList_bins: histogramdd with the given edges of the bins of each coordinate */
OPDI_OP(histogramdd_TensorList_bins) {
    op->schema = "histogramdd.TensorList_bins(Tensor self, Tensor[] bins, float[]? range=None, Tensor? weight=None, "
        "bool density=False) -> (Tensor hist, Tensor[] bin_edges)";
    op->composite = opdi_histogramdd_kernel;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
