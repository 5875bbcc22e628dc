#include "../ops.h"

//== integrals of samples: trapezoid, cumulative_trapezoid =============================================================

/* Returns the elements [start, end) along dim.  Negative numbers count from the end; an `end` of 0 stands for the end
   of the dim. */
static opd_tensor *opdi_slice_dim(opd_tensor *tensor, int dim, int64_t start, int64_t end) {
    return opd_slice(tensor, dim, opd_value_int(start), end ? opd_value_int(end) : OPD_NONE, 1);
}
/* Returns the differences of neighbouring coordinates x along dim.  x is [size] or [.., size, ..]; the result has at
   least as many dims as y.  `name` is the operator's name in messages.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_trapezoid_steps(opd_tensor *y, opd_tensor *x, int dim, const char *name) {
    int64_t sizes[OPD_MAX_DIMS];
    if (y->dtype == OPD_BOOL || x->dtype == OPD_BOOL) {
        opd_fail(OPD_ERROR_DTYPE, "%s: received a bool input for `%s`, but bool is not supported", name,
                 y->dtype == OPD_BOOL ? "y" : "x");
        return NULL;
    }
    for (int i = 0; i < y->ndim; i++) { sizes[i] = 1; }
    if (x->ndim == 1) {
        if (x->numel != opdi_sizes(y)[dim]) {
            opd_fail(OPD_ERROR_SHAPE, "%s: There must be one `x` value for each sample point", name);
            return NULL;
        }
        sizes[dim] = x->numel;
    } else {
        for (int i = 0; i < x->ndim && i < y->ndim; i++) {
            sizes[y->ndim - 1 - i] = opdi_sizes(x)[x->ndim - 1 - i];
        }
    }
    if (x->ndim == 1 || x->ndim < y->ndim) { x = opd_view(x, opd_ints_of(sizes, y->ndim)); }
    opd_tensor *const part = opdi_slice_dim(x, dim, 1, 0);
    return opd_sub(part, opdi_slice_dim(x, dim, 0, -1));
}
/* Returns the sums of neighbouring elements along dim: y[i] + y[i + 1]. */
static opd_tensor *opdi_neighbour_sums(opd_tensor *y, int dim) {
    opd_tensor *const part = opdi_slice_dim(y, dim, 0, -1);
    return opd_add(part, opdi_slice_dim(y, dim, 1, 0));
}
/* Checks the samples y and `step`, the distance between samples.  Returns 0, or -1 and sets an error. */
static int opdi_trapezoid_check(opd_call *call, const opd_tensor *y, opd_value step) {
    if (y->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: received a bool input for `y`, but bool is not supported",
                        call->op->schema->name);
    }
    return step.tag != OPD_TAG_BOOL && step.tag != OPD_TAG_COMPLEX ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: Currently, we only support dx as a real number.", call->op->schema->name);
}
/* Returns the integral of y along a dim of size 0: zeros of y's dtype, with the sizes of y without dim. */
static opd_tensor *opdi_trapezoid_nothing(opd_tensor *y, int dim) {
    int64_t sizes[OPD_MAX_DIMS];
    for (int i = 0; i < y->ndim - 1; i++) { sizes[i] = opdi_sizes(y)[i + (i >= dim)]; }
    return opd_new_zeros(y, opd_ints_of(sizes, y->ndim - 1));
}
static int opdi_trapezoid_dim(opd_call *call, const opd_tensor *y, int i) {
    if (y->ndim == 0) { return opdi_no_dims_fail(opd_arg_int(call, i)); }
    return opdi_dim_of(opd_arg_int(call, i), y->ndim);
}
/* trapezoid.x: computes the sum along dim of (y[i] + y[i + 1]) * (x[i + 1] - x[i]) / 2. */
static int opdi_trapezoid_x_kernel(opd_call *call) {
    opd_tensor *y = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1);
    const int dim = opdi_trapezoid_dim(call, y, 2);
    const int64_t along = dim;
    if (dim < 0) { return -1; }
    if (opdi_sizes(y)[dim] == 0) { return opd_return_tensor(call, opdi_trapezoid_nothing(y, dim)); }
    opd_tensor *steps = opdi_trapezoid_steps(y, x, dim, "trapezoid");
    if (!steps) { return -1; }
    opd_tensor *parts = opd_mul(opdi_neighbour_sums(y, dim), steps);
    return opd_return_tensor(call, opd_div_Scalar(opd_sum_dim(parts, opd_ints_of(&along, 1), false),
                                                  opd_value_double(2)));
}
/* trapezoid.dx: computes (sum of y along dim - half of the first and of the last element) * dx. */
static int opdi_trapezoid_dx_kernel(opd_call *call) {
    opd_tensor *y = opd_arg_tensor(call, 0);
    const int dim = opdi_trapezoid_dim(call, y, 2);
    const int64_t along = dim;
    if (dim < 0) { return -1; }
    if (opdi_sizes(y)[dim] == 0) { return opd_return_tensor(call, opdi_trapezoid_nothing(y, dim)); }
    if (opdi_trapezoid_check(call, y, opd_arg_value(call, 1))) { return -1; }
    opd_tensor *sum = opd_sum_dim(y, opd_ints_of(&along, 1), false);
    opd_tensor *const part = opd_select(y, dim, 0), *ends = opd_add(part, opd_select(y, dim, -1));
    return opd_return_tensor(call, opd_mul_Scalar(opd_sub(sum, opdi_muls(ends, 0.5)),
                                                  opd_value_double(opdi_number_f64(opd_arg_value(call, 1)))));
}
static int opdi_cumulative_trapezoid_x_kernel(opd_call *call) {
    opd_tensor *y = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1);
    const int dim = opdi_trapezoid_dim(call, y, 2);
    opd_tensor *steps = dim < 0 ? NULL : opdi_trapezoid_steps(y, x, dim, "cumulative_trapezoid");
    if (!steps) { return -1; }
    opd_tensor *parts = opd_mul(steps, opdi_neighbour_sums(y, dim));
    return opd_return_tensor(call, opd_div_Scalar(opd_cumsum(parts, dim), opd_value_double(2)));
}
static int opdi_cumulative_trapezoid_dx_kernel(opd_call *call) {
    opd_tensor *y = opd_arg_tensor(call, 0);
    const int dim = opdi_trapezoid_dim(call, y, 2);
    if (dim < 0 || opdi_trapezoid_check(call, y, opd_arg_value(call, 1))) { return -1; }
    opd_tensor *parts = opdi_muls(opdi_neighbour_sums(y, dim), opdi_number_f64(opd_arg_value(call, 1)) / 2);
    return opd_return_tensor(call, opd_cumsum(parts, dim));
}
/* opd_trapezoid_x: the integral of the samples y at the coordinates x along dim, by the trapezoidal rule */
OPDI_OP(trapezoid_x) {
    op->schema = "trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor";
    op->composite = opdi_trapezoid_x_kernel;
    op->cases = "[2,4], [4]; [2,4], [2,4]; [3,2], [3], dim=0";
}
/* opd_trapezoid_dx: the integral of the samples y along dim, which are dx apart, by the trapezoidal rule */
OPDI_OP(trapezoid_dx) {
    op->schema = "trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor";
    op->composite = opdi_trapezoid_dx_kernel;
    op->cases = "[2,4]; [3,2], dx=0.5, dim=0";
}
/* opd_trapz_x: the same as trapezoid.x */
OPDI_OP(trapz_x) {
    op->schema = "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor";
    op->composite = opdi_trapezoid_x_kernel;
    op->cases = "[2,4], [4]";
}
/* opd_trapz_dx: the same as trapezoid.dx */
OPDI_OP(trapz_dx) {
    op->schema = "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor";
    op->composite = opdi_trapezoid_dx_kernel;
    op->cases = "[2,4], dx=0.5";
}
/* opd_cumulative_trapezoid_x: trapezoid.x from the first element up to each element along dim */
OPDI_OP(cumulative_trapezoid_x) {
    op->schema = "cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor";
    op->composite = opdi_cumulative_trapezoid_x_kernel;
    op->cases = "[2,4], [4]; [2,3,2], [2,3,2], dim=1";
}
/* opd_cumulative_trapezoid_dx: trapezoid.dx from the first element up to each element along dim */
OPDI_OP(cumulative_trapezoid_dx) {
    op->schema = "cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor";
    op->composite = opdi_cumulative_trapezoid_dx_kernel;
    op->cases = "[2,4]; [3,2], dx=2, dim=0";
}

//== gradient: derivatives of samples ==================================================================================
//
//  Between the ends, the derivative is (next - before) / (2 step).  If coordinates are given instead of a step, it is
//  the derivative of the parabola through three neighbouring samples.  At both ends, two (edge_order 1) or three
//  (edge_order 2) samples are used.

/* Returns number i of a list of numbers.  If value is a single number, returns this number. */
OPDI_INTERNAL opd_value opdi_listed_number(opd_value value, int64_t i) {
    if (value.tag == OPD_TAG_LIST) { return value.u.list[i]; }
    if (value.tag == OPD_TAG_INTS) { return opd_value_int(value.u.ints[i]); }
    if (value.tag == OPD_TAG_FLOATS) { return opd_value_double(value.u.floats[i]); }
    return value.tag == OPD_TAG_BOOLS ? opd_value_int(value.u.bools[i]) : value;
}
/* Returns the sum of three slices of self with weights: slice i begins at index at + i and has `length` elements along
   dim.  The weight of slice i is weights[i], a tensor that broadcasts, or numbers[i] if weights is NULL. */
static opd_tensor *opdi_three_points(opd_tensor *self, int dim, int64_t at, int64_t length, opd_tensor *const *weights,
                                     const double *numbers) {
    opd_tensor *sum = NULL;
    for (int i = 0; i < 3; i++) {
        opd_tensor *part = opd_narrow(self, dim, at + i, length);
        part = weights ? opd_mul(part, weights[i]) : opdi_muls(part, numbers[i]);
        sum = i ? opd_add(sum, part) : part;
    }
    return sum;
}
/* Returns the derivative along dim of samples whose distance is `step`.  `order` is the edge_order.  On failure,
   returns NULL and sets an error. */
static opd_tensor *opdi_gradient_even(opd_tensor *self, int dim, opd_value step, int64_t order) {
    static const double first[3] = {-1.5, 2, -0.5}, last[3] = {0.5, -2, 1.5};
    const int64_t count = opdi_sizes(self)[dim];
    opd_tensor *list[3];
    opd_tensor *const part = opdi_slice_dim(self, dim, 2, 0);
    list[1] = opd_sub(part, opdi_slice_dim(self, dim, 0, -2));
    list[1] = opd_div_Scalar(opd_div_Scalar(list[1], step), opd_value_int(2));
    if (order == 1) {
        opd_tensor *const first_part = opd_narrow(self, dim, 1, 1);
        list[0] = opd_sub(first_part, opd_narrow(self, dim, 0, 1));
        opd_tensor *const other_part = opd_narrow(self, dim, count - 1, 1);
        list[2] = opd_sub(other_part, opd_narrow(self, dim, count - 2, 1));
    } else {
        list[0] = opdi_three_points(self, dim, 0, 1, NULL, first);
        list[2] = opdi_three_points(self, dim, count - 3, 1, NULL, last);
    }
    list[0] = opd_div_Scalar(list[0], step);
    list[2] = opd_div_Scalar(list[2], step);
    return opd_ok() ? opd_cat(opd_tensors_of(list, 3), dim) : NULL;
}
/* Sets weights[3] to the weights with which three samples give the derivative of the parabola through them: at the
   middle sample (`where` is 0), the first (-1) or the last (1).  x and y are the distances from the middle sample to
   the first and to the last. */
static void opdi_parabola(opd_tensor **weights, opd_tensor *x, opd_tensor *y, int where) {
    opd_tensor *sum = opd_add(x, y), *xx = opd_mul(x, sum), *yy = opd_mul(y, sum), *xy = opd_mul(x, y);
    if (where == 0) {
        weights[0] = opd_div(opd_neg(y), xx);
        weights[1] = opd_div(opd_sub(y, x), xy);
        weights[2] = opd_div(x, yy);
    } else if (where < 0) {
        weights[0] = opd_div(opd_neg(opd_add(sum, x)), xx);
        weights[1] = opd_div(sum, xy);
        weights[2] = opd_div(opd_neg(x), yy);
    } else {
        weights[0] = opd_div(y, xx);
        weights[1] = opd_div(opd_neg(sum), xy);
        weights[2] = opd_div(opd_add(sum, y), yy);
    }
}
/* Returns the derivative along dim of samples at the coordinates in the vector `places`.  `order` is the edge_order.
   On failure, returns NULL and sets an error. */
static opd_tensor *opdi_gradient_places(opd_tensor *self, int dim, opd_tensor *places, int64_t order) {
    const int64_t count = opdi_sizes(self)[dim];
    opd_tensor *const part = opdi_slice_dim(places, 0, 1, 0), *list[3], *weights[3],
        *steps = opd_sub(part, opdi_slice_dim(places, 0, 0, -1));
    int64_t shape[OPD_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) { shape[i] = i == dim ? -1 : 1; }
    opd_tensor *const first_part = opdi_slice_dim(steps, 0, 0, -1);
    opdi_parabola(weights, first_part, opdi_slice_dim(steps, 0, 1, 0), 0);
    for (int i = 0; i < 3; i++) { weights[i] = opd_reshape(weights[i], opd_ints_of(shape, self->ndim)); }
    if (!opd_ok()) { return NULL; }
    list[1] = opdi_three_points(self, dim, 0, count - 2, weights, NULL);
    if (order == 1) {
        opd_tensor *const other_part = opd_narrow(self, dim, 1, 1),
            *const difference = opd_sub(other_part, opd_narrow(self, dim, 0, 1));
        list[0] = opd_div(difference, opd_select(steps, 0, 0));
        opd_tensor *const first = opd_narrow(self, dim, count - 1, 1);
        list[2] = opd_sub(first, opd_narrow(self, dim, count - 2, 1));
        list[2] = opd_div(list[2], opd_select(steps, 0, -1));
    } else {
        opd_tensor *const one = opd_select(steps, 0, 0);
        opdi_parabola(weights, one, opd_select(steps, 0, 1), -1);
        list[0] = opdi_three_points(self, dim, 0, 1, weights, NULL);
        opd_tensor *const left = opd_select(steps, 0, -2);
        opdi_parabola(weights, left, opd_select(steps, 0, -1), 1);
        list[2] = opdi_three_points(self, dim, count - 3, 1, weights, NULL);
    }
    return opd_ok() ? opd_cat(opd_tensors_of(list, 3), dim) : NULL;
}
/* Checks that dim has enough samples for the edge_order `order`, and that `places` has a coordinate for each.  Returns
   0, or -1 and sets an error. */
static int opdi_gradient_check(opd_tensor *self, int dim, const opd_tensor *places, int64_t order) {
    if (opdi_sizes(self)[dim] < order + 1) {
        return opd_fail(OPD_ERROR_SHAPE, "gradient expected each dimension size to be at least edge_order+1");
    }
    if (places && places->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "gradient expected each element of spacing to have one dimension, but "
                        "got an element with %d dimensions!", places->ndim);
    }
    if (places && places->numel != opdi_sizes(self)[dim]) {
        return opd_fail(OPD_ERROR_SHAPE, "gradient expected dimension %d of the input tensor to match "
                        "dimension 0 of the spacing tensor, but got %lld and %lld", dim,
                        (long long)opdi_sizes(self)[dim], (long long)places->numel);
    }
    return 0;
}
/* Computes the derivatives of argument 0 along `dims` or, if `all` is true, along all dims.  `spacing` has a step or a
   vector of coordinates for each dim, or one for all dims.  `order` is the edge_order.  Returns 0, or -1 and sets an
   error. */
static int opdi_gradient(opd_call *call, opd_value spacing, opd_ints dims, bool all, int64_t order) {
    opd_tensor *self = opd_arg_tensor(call, 0), *list[OPD_MAX_DIMS];
    const int64_t count = all ? self->ndim : dims.n;
    const bool listed = spacing.tag >= OPD_TAG_INTS && spacing.tag <= OPD_TAG_LIST;
    uint64_t seen = 0;
    if (self->dtype == OPD_UINT8) {
        return opd_fail(OPD_ERROR_DTYPE, "gradient does not support uint8 input.");
    }
    if (order != 1 && order != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradient only supports edge_order=1 and edge_order=2.");
    }
    if (listed && spacing.n != count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradient expected spacing to be unspecified, a scalar or a list of "
                        "length %lld, but got a list of length %d", (long long)count, (int)spacing.n);
    }
    for (int64_t i = 0; i < count; i++) {
        const int dim = all ? (int)i : opdi_dim_of(dims.data[i], self->ndim);
        opd_tensor *places = spacing.tag == OPD_TAG_TENSORS ? spacing.u.tensors[i] : NULL;
        if (dim < 0) { return -1; }
        if (self->ndim == 0) { return opdi_no_dims_fail(dims.data[i]); }
        if (seen >> dim & 1) { return opdi_dim_twice_fail(dim); }
        seen |= (uint64_t)1 << dim;
        if (opdi_gradient_check(self, dim, places, order)) { return -1; }
        list[i] = places ? opdi_gradient_places(self, dim, places, order)
            : opdi_gradient_even(self, dim, opdi_listed_number(spacing, i), order);
        if (!list[i]) { return -1; }
    }
    return opd_return_tensors(call, list, count);
}
/* Runs gradient along the dim in argument 2 or, if argument 2 is None, along all dims. */
static int opdi_gradient_one_kernel(opd_call *call) {
    const bool all = opd_arg_is_none(call, 2);
    const int64_t dim = all ? 0 : opd_arg_int(call, 2);
    const opd_value spacing = opd_arg_is_none(call, 1) ? opd_value_int(1) : opd_arg_value(call, 1);
    return opdi_gradient(call, spacing, opd_ints_of(&dim, 1), all, opd_arg_int(call, 3));
}
static int opdi_gradient_list_kernel(opd_call *call) {
    return opdi_gradient(call, opd_arg_value(call, 1), opd_arg_ints(call, 2), false, opd_arg_int(call, 3));
}
static int opdi_gradient_array_kernel(opd_call *call) {
    return opdi_gradient(call, opd_value_int(1), opd_arg_ints(call, 1), false, opd_arg_int(call, 2));
}
/* opd_gradient_scalarint: derivatives of samples along dim or all dims, by central differences; spacing is their
   distance */
OPDI_OP(gradient_scalarint) {
    op->schema = "gradient.scalarint(Tensor self, *, Scalar? spacing=None, int? dim=None, int edge_order=1) -> "
        "Tensor[]";
    op->composite = opdi_gradient_one_kernel;
    op->cases = "[3,4]; [5], spacing=0.5, edge_order=2; [3,4], spacing=2, dim=1";
}
/* opd_gradient_scalararray: gradient along several dims; spacing is the distance of samples in all dims */
OPDI_OP(gradient_scalararray) {
    op->schema = "gradient.scalararray(Tensor self, *, Scalar spacing, int[] dim, int edge_order=1) -> Tensor[]";
    op->composite = opdi_gradient_list_kernel;
    op->cases = "[3,4], spacing=0.5, dim=(0,1)";
}
/* opd_gradient_array: gradient along several dims; samples have the distance 1 */
OPDI_OP(gradient_array) {
    op->schema = "gradient.array(Tensor self, *, int[] dim, int edge_order=1) -> Tensor[]";
    op->composite = opdi_gradient_array_kernel;
    op->cases = "[3,4], dim=(1,)";
}
/* opd_gradient_scalarrayint: gradient, where spacing has the distance of samples in each dim */
OPDI_OP(gradient_scalarrayint) {
    op->schema = "gradient.scalarrayint(Tensor self, *, Scalar[] spacing, int? dim=None, int edge_order=1) -> "
        "Tensor[]";
    op->composite = opdi_gradient_one_kernel;
    op->cases = "[3,4], spacing=(2,3)";
}
/* opd_gradient_scalarrayarray: gradient along several dims, where spacing has the distance of samples in each dim */
OPDI_OP(gradient_scalarrayarray) {
    op->schema = "gradient.scalarrayarray(Tensor self, *, Scalar[] spacing, int[] dim, int edge_order=1) -> Tensor[]";
    op->composite = opdi_gradient_list_kernel;
    op->cases = "[3,4], spacing=(2,3), dim=(1,0), edge_order=2";
}
/* opd_gradient_tensorarrayint: gradient, where spacing has a vector of coordinates for each dim */
OPDI_OP(gradient_tensorarrayint) {
    op->schema = "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> "
        "Tensor[]";
    op->composite = opdi_gradient_one_kernel;
    op->cases = "[3,4], spacing={[3]+,[4]+}";
}
/* opd_gradient_tensorarray: gradient along several dims, where spacing has a vector of coordinates for each */
OPDI_OP(gradient_tensorarray) {
    op->schema = "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]";
    op->composite = opdi_gradient_list_kernel;
    op->cases = "[3,4], spacing={[4]+}, dim=(1,), edge_order=2";
}

//== quantile, nanquantile =============================================================================================

/* What to do with a rank that is not a whole number: round it, or interpolate between the two elements next to it. */
enum { OPDI_QUANTILE_LINEAR, OPDI_QUANTILE_LOWER, OPDI_QUANTILE_HIGHER, OPDI_QUANTILE_MIDPOINT, OPDI_QUANTILE_NEAREST };
static int opdi_quantile_interpolation(const char *name) {
    static const char *const names[5] = {"linear", "lower", "higher", "midpoint", "nearest"};
    for (int i = 0; i < 5; i++) { if (strcmp(name, names[i]) == 0) { return i; } }
    return opd_fail(OPD_ERROR_ARGUMENT, "quantile() interpolation must be one of linear, lower, higher, midpoint or "
                    "nearest, but got %s", name);
}
static int opdi_quantile_check(const opd_tensor *self, opd_tensor *q) {
    if (self->dtype != OPD_FLOAT32 && self->dtype != OPD_FLOAT64) {
        return opd_fail(OPD_ERROR_DTYPE, "quantile() input tensor must be either float or double dtype");
    }
    if (q->ndim > 1) { return opd_fail(OPD_ERROR_SHAPE, "quantile() q must be a scalar or 1D tensor"); }
    if (q->dtype != self->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "quantile() q tensor must be same dtype as the input tensor");
    }
    if (self->numel == 0) { return opd_fail(OPD_ERROR_SHAPE, "quantile() input tensor must be non-empty"); }
    return 0;
}
/* Sets ends[0] and ends[1] to the smallest and the largest element of a tensor with at most one dim, or both to NaN if
   an element is NaN.  Reads the elements directly, not by operators.  Returns false if there is no element, or if
   elements cannot be read, because the tensor is batched, fake or on another device. */
static bool opdi_ends_of(const opd_tensor *tensor, double *ends) {
    if (!tensor->data || !tensor->numel || (tensor->flags & OPDI_BATCHED) || tensor->backend != OPD_CPU) {
        return false;
    }
    if ((tensor->flags & OPDI_LAZY) && !(tensor = opdi_resolved(tensor))) { return false; }
    const int64_t bytes = (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    const int64_t step = tensor->ndim ? opdi_strides(tensor)[0] * bytes : 0;
    for (int64_t i = 0; i < tensor->numel; i++) {
        const double x = opdi_element_f64(tensor, i * step);
        if (i == 0 || x < ends[0] || isnan(x)) { ends[0] = x; }
        if (i == 0 || x > ends[1] || isnan(x)) { ends[1] = x; }
    }
    return true;
}
/* Returns the ranks [.., parts] of the quantiles q [parts] in sorted [.., count], where NaN comes last.  If `skips` is
   true, NaN is not counted.  Otherwise, all ranks of a line with a NaN are the index of its last element, a NaN. */
static opd_tensor *opdi_quantile_ranks(opd_tensor *sorted, opd_tensor *q, bool skips) {
    const int64_t last = opdi_sizes(sorted)[sorted->ndim - 1] - 1, along = -1;
    opd_tensor *nan = opd_isnan(sorted);
    if (skips) {
        opd_tensor *count = opd_sum_dim(opd_logical_not(nan), opd_ints_of(&along, 1), true);
        opd_tensor *most = opd_to_dtype(opd_sub_Scalar(count, opd_value_int(1)), (opd_scalar_type)sorted->dtype);
        return opd_clamp_min(opd_mul(q, most), opd_value_int(0));
    }
    opd_tensor *ranks = opd_mul_Scalar(q, opd_value_int(last));
    return opd_masked_fill_Scalar(ranks, opd_any_dim(nan, -1, true), opd_value_int(last));
}
/* Returns the elements of `sorted` at `ranks`, which are rounded or interpolated by `way` (OPDI_QUANTILE_..). */
static opd_tensor *opdi_quantile_read(opd_tensor *sorted, opd_tensor *ranks, int way) {
    if (way == OPDI_QUANTILE_LOWER) { ranks = opd_floor(ranks); }
    if (way == OPDI_QUANTILE_HIGHER) { ranks = opd_ceil(ranks); }
    if (way == OPDI_QUANTILE_NEAREST) { ranks = opd_round(ranks); }
    opd_tensor *below = opd_to_dtype(ranks, OPD_INT64), *low = opd_gather(sorted, -1, below);
    if (way != OPDI_QUANTILE_LINEAR && way != OPDI_QUANTILE_MIDPOINT) { return low; }
    opd_tensor *high = opd_gather(sorted, -1, opd_to_dtype(opd_ceil(ranks), OPD_INT64));
    return way == OPDI_QUANTILE_MIDPOINT ? opd_lerp_Scalar(low, high, opd_value_double(0.5))
        : opd_lerp(low, high, opd_sub(ranks, opd_to_dtype(below, (opd_scalar_type)sorted->dtype)));
}
static int opdi_quantile(opd_call *call, opd_tensor *q, bool skips) {
    opd_tensor *self = opd_arg_tensor(call, 0), *pair[2];
    const bool whole = opd_arg_is_none(call, 2), keep = opd_arg_bool(call, 3);
    const int way = opdi_quantile_interpolation(opd_arg_str(call, 4)), ndim = self->ndim;
    int64_t sizes[OPD_MAX_DIMS + 1];
    double ends[2];
    if (way < 0 || !q || opdi_quantile_check(self, q)) { return -1; }
    if (opdi_ends_of(q, ends) && !(ends[0] >= 0 && ends[1] <= 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "quantile() q values must be in the range [0, 1]");
    }
    const int dim = whole ? 0 : opdi_dim_of(opd_arg_int(call, 2), ndim);
    const bool listed = q->ndim > 0;
    if (dim < 0) { return -1; }
    const int64_t parts = q->numel;
    self = whole || ndim == 0 ? opd_flatten(self, 0, -1) : opd_transpose(opd_unsqueeze(self, -1), dim, -1);
    if (opd_sort_stable(pair, self, OPD_NONE, -1, false)) { return -1; }
    opd_tensor *ranks = opdi_quantile_ranks(pair[0], opd_reshape(q, opd_ints_of(&parts, 1)), skips);
    for (int i = 0; i < pair[0]->ndim; i++) { sizes[i] = i < pair[0]->ndim - 1 ? opdi_sizes(pair[0])[i] : parts; }
    ranks = opd_expand(ranks, opd_ints_of(sizes, pair[0]->ndim));
    opd_tensor *result = opdi_quantile_read(pair[0], ranks, way);
    if (!result) { return -1; }
    /* q is the last dim of result; the reduced dim is still there, with size 1, unless all elements form one line */
    if (whole && keep) {
        for (int i = 0; i < ndim; i++) { sizes[i] = 1; }
        sizes[ndim] = parts;
        result = opd_reshape(result, opd_ints_of(sizes, ndim + 1));
    } else if (!whole && ndim && !keep) { result = opd_squeeze_dim(result, dim); }
    return opd_return_tensor(call, listed ? opd_movedim(result, -1, 0) : opd_squeeze_dim(result, -1));
}
static int opdi_quantile_kernel(opd_call *call) { return opdi_quantile(call, opd_arg_tensor(call, 1), false); }
static int opdi_nanquantile_kernel(opd_call *call) { return opdi_quantile(call, opd_arg_tensor(call, 1), true); }
static int opdi_quantile_number(opd_call *call, bool skips) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const double q = opd_arg_double(call, 1);
    if (!(q >= 0 && q <= 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "quantile() q must be in the range [0, 1] but got %g", q);
    }
    return opdi_quantile(call, opd_new_full(self, opd_ints_of(NULL, 0), opd_value_double(q)), skips);
}
static int opdi_quantile_scalar_kernel(opd_call *call) { return opdi_quantile_number(call, false); }
static int opdi_nanquantile_scalar_kernel(opd_call *call) { return opdi_quantile_number(call, true); }
/* opd_quantile(self, q, dim, keepdim): for each number in q, the value below which this fraction of the elements along
   dim lies */
OPDI_OP(quantile) {
    op->schema = "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> "
        "Tensor";
    op->composite = opdi_quantile_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "quantile.out";
    op->cases = "[2,5], [3]u; [2,5], []u, 1; [3,4], [2]u, 0, True; [6], []u, 0, interpolation='nearest'; "
        "[2,3], [2]u, None, True, interpolation='midpoint'";
}
/* opd_quantile_scalar: the value below which the fraction q of the elements along dim lies */
OPDI_OP(quantile_scalar) {
    op->schema = "quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor";
    op->composite = opdi_quantile_scalar_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "quantile.scalar_out";
    op->cases = "[2,5], 0.3; [2,5], 0.5, 0; [7], 0.9, 0, True, interpolation='lower'; "
        "[7], 0.9, -1, interpolation='higher'";
}
/* opd_nanquantile: quantile of the elements that are not NaN */
OPDI_OP(nanquantile) {
    op->schema = "nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor";
    op->composite = opdi_nanquantile_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "nanquantile.out";
    op->cases = "[2,5], [3]u, 1; [2,5], []u";
}
/* opd_nanquantile_scalar: quantile of the elements that are not NaN */
OPDI_OP(nanquantile_scalar) {
    op->schema = "nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
        "interpolation='linear') -> Tensor";
    op->composite = opdi_nanquantile_scalar_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "nanquantile.scalar_out";
    op->cases = "[2,5], 0.25, 1";
}

//== cov, corrcoef =====================================================================================================

/* Checks the weights of the `count` columns, which must be integers if `whole` is true, else floats.  `name` is the
   name of the argument in messages.  Returns 0, or -1 and sets an error. */
static int opdi_cov_weights(opd_tensor *weights, int64_t count, const char *name, bool whole) {
    double ends[2];
    if (!weights) { return 0; }
    if (weights->ndim > 1) {
        return opd_fail(OPD_ERROR_SHAPE, "cov(): expected %s to have one or fewer dimensions but got %s with %d "
                        "dimensions", name, name, weights->ndim);
    }
    if (whole != opd_dtype_is_integral((opd_scalar_type)weights->dtype, false) ||
        (!whole && !opd_dtype_is_floating((opd_scalar_type)weights->dtype))) {
        return opd_fail(OPD_ERROR_DTYPE, "cov(): expected %s to have %s dtype but got %s with %s dtype", name,
                        whole ? "integral" : "floating point", name, opd_dtype_name((opd_scalar_type)weights->dtype));
    }
    if (weights->numel != count) {
        return opd_fail(OPD_ERROR_SHAPE, "cov(): expected %s to have the same numel as there are observations in the "
                        "input but got %lld != %lld", name, (long long)weights->numel, (long long)count);
    }
    if (opdi_ends_of(weights, ends) && !(ends[0] >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "cov(): %s cannot be negative", name);
    }
    return 0;
}
/* Returns the conjugate transpose of a matrix. */
static opd_tensor *opdi_cov_adjoint(opd_tensor *tensor) { return opdi_conj(opd_t(tensor)); }
/* cov: computes (x - m) (w * (x - m))^H / norm for the rows x and their weighted means m.  norm is the sum of the
   weights w minus the correction; with aweights, the correction is multiplied by sum(w * aweights) / sum(w). */
static int opdi_cov_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *often = opd_arg_tensor(call, 2), *share = opd_arg_tensor(call, 3);
    const int64_t correction = opd_arg_int(call, 1), along = 1;
    opd_tensor *weights = often ? often : share;
    double ends[2];
    if (self->ndim > 2) {
        return opd_fail(OPD_ERROR_SHAPE, "cov(): expected input to have two or fewer dimensions but got an input with "
                        "%d dimensions", self->ndim);
    }
    if (self->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "cov(): bool dtype is not supported for input");
    }
    const int64_t flat[2] = {1, self->numel};
    if (self->ndim < 2) { self = opd_reshape(self, opd_ints_of(flat, 2)); }
    const int64_t count = opd_size(self, 1);
    if (opdi_cov_weights(often, count, "fweights", true) || opdi_cov_weights(share, count, "aweights", false)) {
        return -1;
    }
    if (often && share) { weights = opd_mul(often, share); }
    if (!weights) {
        for (int i = 0; i < 2; i++) {             /* subtracted twice, as in opdi_centred */
            opd_tensor *mean = opd_div_Scalar(opd_sum_dim(self, opd_ints_of(&along, 1), true), opd_value_int(count));
            self = opd_sub(self, mean);
        }
        opd_tensor *whole = opd_mm(self, opdi_cov_adjoint(self));
        const double norm = OPDI_MAX((double)count - (double)correction, 0.0);
        return opd_return_tensor(call, opd_squeeze(opd_div_Scalar(whole, opd_value_double(norm))));
    }
    opd_tensor *sum = opd_sum(weights);
    if (sum && opdi_ends_of(sum, ends) && ends[1] <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "cov(): weights sum to zero, can't be normalized");
    }
    opd_tensor *lost = share && correction ? opd_div(opd_sum(opd_mul(weights, share)), sum) : NULL;
    opd_tensor *norm = lost ? opd_sub(sum, opd_mul_Scalar(lost, opd_value_int(correction)))
        : opd_sub_Scalar(sum, opd_value_int(correction));
    for (int i = 0; i < 2; i++) {
        self = opd_sub(self, opd_div(opd_sum_dim(opd_mul(self, weights), opd_ints_of(&along, 1), true), sum));
    }
    opd_tensor *whole = opd_mm(self, opdi_cov_adjoint(opd_mul(self, weights)));
    return opd_return_tensor(call, opd_squeeze(opd_div(whole, opd_clamp_min(norm, opd_value_int(0)))));
}
static opd_tensor *opdi_corrcoef_clip(opd_tensor *real) {
    return opd_clamp(real, opd_value_int(-1), opd_value_int(1));
}
/* corrcoef: returns the covariances divided by both standard deviations, limited to [-1, 1]; the real and imaginary
   parts of complex numbers are limited separately. */
static int opdi_corrcoef_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t column[2] = {-1, 1}, row[2] = {1, -1};
    if (self->ndim > 2) {
        return opd_fail(OPD_ERROR_SHAPE, "corrcoef(): expected input to have two or fewer dimensions but got an input "
                        "with %d dimensions", self->ndim);
    }
    opd_tensor *cov = opd_cov(self);
    if (!cov) { return -1; }
    if (cov->ndim == 0) { return opd_return_tensor(call, opd_div(cov, cov)); }
    opd_tensor *deviation = opd_diagonal(cov);
    const bool pairs = opd_dtype_is_complex((opd_scalar_type)cov->dtype);
    deviation = opd_sqrt(pairs ? opd_real(deviation) : deviation);
    cov = opd_div(cov, opd_view(deviation, opd_ints_of(column, 2)));
    cov = opd_div(cov, opd_view(deviation, opd_ints_of(row, 2)));
    opd_tensor *const real = opdi_corrcoef_clip(pairs ? opd_real(cov) : cov);
    return opd_return_tensor(call, pairs ? opd_complex(real, opdi_corrcoef_clip(opd_imag(cov))) : real);
}
/* opd_cov: the covariances of the rows of self; columns are observations */
OPDI_OP(cov) {
    op->schema = "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor";
    op->composite = opdi_cov_kernel;
    op->cases = "[3,4]; [5], correction=0; [2,4], aweights=[4]+; [2,4], correction=2, fweights=[4]i5, aweights=[4]+";
}
/* opd_corrcoef: the correlation coefficients of the rows of self; columns are observations */
OPDI_OP(corrcoef) {
    op->schema = "corrcoef(Tensor self) -> Tensor";
    op->composite = opdi_corrcoef_kernel;
    op->cases = "[3,5]; [4]";
}
