#include "../ops.h"

//== diagonal, unfold ==================================================================================================

/* Sets *geometry to the geometry of tensor's diagonal number `offset` in dims dim1 and dim2: these dims are removed,
   and a last dim with the length of the diagonal is added.  Returns the offset of the diagonal from tensor's first
   element in memory, or -1 and sets an error. */
OPDI_INTERNAL int64_t opdi_diagonal_geometry(const opd_tensor *tensor, int64_t offset, int64_t dim1, int64_t dim2,
                                             opdi_geometry *geometry) {
    int dim = opdi_dim_of(dim1, tensor->ndim), b = dim < 0 ? -1 : opdi_dim_of(dim2, tensor->ndim);
    if (dim < 0 || b < 0) { return -1; }
    if (dim == b) {
        return opd_fail(OPD_ERROR_SHAPE, "diagonal dimensions cannot be identical %lld, %lld", (long long)dim1,
                        (long long)dim2);
    }
    opdi_geometry_of(geometry, tensor);
    offset = OPDI_MIN(OPDI_MAX(offset, -INT64_MAX / 2), INT64_MAX / 2);
    int64_t size = offset >= 0 ? OPDI_MIN(geometry->sizes[dim], geometry->sizes[b] - offset)
        : OPDI_MIN(geometry->sizes[dim] + offset, geometry->sizes[b]);
    size = OPDI_MAX(size, 0);
    int64_t at = size == 0 ? 0 : offset >= 0 ? opdi_size_times(offset, geometry->strides[b])
        : opdi_size_times(-offset, geometry->strides[dim]);
    int64_t stride = opdi_size_plus(geometry->strides[dim], geometry->strides[b]);
    opdi_geometry_remove(geometry, OPDI_MAX(dim, b));
    opdi_geometry_remove(geometry, OPDI_MIN(dim, b));
    opdi_geometry_insert(geometry, geometry->ndim, size, stride);
    return at;
}
static int opdi_diagonal_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_geometry geometry;
    int64_t offset = opdi_diagonal_geometry(self, opd_arg_int(call, 1), opd_arg_int(call, 2), opd_arg_int(call, 3),
                                            &geometry);
    return offset < 0 ? -1 : opdi_return_geometry(call, self, &geometry, offset);
}
static int opdi_diagonal_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_diagonal_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i,
                                                      opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i));
}
static int opdi_diagonal_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0),
        *out = opdi_zero_result(call, opd_arg_ints(call, 1), (opd_scalar_type)grad->dtype);
    opdi_geometry geometry;
    return out ? opdi_put_at(out, &geometry, opdi_diagonal_geometry(out, opd_arg_int(call, 2), opd_arg_int(call, 3),
                                                                    opd_arg_int(call, 4), &geometry), grad) : -1;
}
static int opdi_diagonal_backward_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_diagonal_full(opd_bw_grad(bw, 0), opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i,
                                                  opd_bw_value(bw, 4).u.i));
}
/* opd_diagonal: the diagonal of dims dim1 and dim2, as the last dim of a view */
OPDI_OP(diagonal) {
    op->schema = "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)";
    op->any = opdi_diagonal_kernel; op->backward = opdi_diagonal_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[3,4]; [3,4], 1; [2,3,3], -1, -2, -1";
}
static int opdi_linalg_diagonal_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_diagonal_full(opd_arg_tensor(call, 0), opd_arg_int(call, 1),
                                                     opd_arg_int(call, 2), opd_arg_int(call, 3)));
}
/* opd_linalg_diagonal: the diagonal of the last two dims, as the last dim of a view */
OPDI_OP(linalg_diagonal) {
    op->schema = "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)";
    op->composite = opdi_linalg_diagonal_kernel;
    op->cases = "[3,4]; [2,3,4], offset=1; [2,3,3], offset=-1, dim1=0, dim2=1";
}
/* opd_diagonal_backward: the gradient of diagonal */
OPDI_OP(diagonal_backward) {
    op->schema = "diagonal_backward(Tensor grad_output, SymInt[] input_sizes, int offset, int dim1, int dim2) -> "
        "Tensor";
    op->any = opdi_diagonal_backward_kernel; op->backward = opdi_diagonal_backward_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "diagonal_backward.out";
    op->cases = "[3], (3,4), 0, 0, 1";
}

/* Sets *geometry to the geometry of a view of windows of `size` elements of dim, which begin `step` elements apart: dim
   counts the windows, and a new last dim the elements of a window.  Returns 0, or -1 and sets an error. */
static int opdi_unfold_geometry(const opd_tensor *tensor, int64_t dim, int64_t size, int64_t step,
                                opdi_geometry *geometry) {
    int d = opdi_dim_of(dim, tensor->ndim);
    int64_t length = d >= 0 && tensor->ndim ? opdi_sizes(tensor)[d] : 1,
        stride = d >= 0 && tensor->ndim ? opdi_strides(tensor)[d] : 1;
    if (d < 0) { return -1; }
    if (size < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "size is %lld but must be >= 0", (long long)size); }
    if (size > length) {
        return opd_fail(OPD_ERROR_ARGUMENT, "maximum size for tensor at dimension %d is %lld but size is %lld", d,
                        (long long)length, (long long)size);
    }
    if (step <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "step is %lld but must be > 0", (long long)step); }
    if (tensor->ndim == OPD_MAX_DIMS) { return (int)opdi_count(opdi_sizes(tensor), OPD_MAX_DIMS + 1, 1); }
    opdi_geometry_of(geometry, tensor);
    if (tensor->ndim) {
        geometry->sizes[d] = (length - size) / step + 1;
        geometry->strides[d] = step > 1 && stride > INT64_MAX / step ? INT64_MAX : stride * step;
    }
    opdi_geometry_insert(geometry, geometry->ndim, size, stride);
    return 0;
}
static int opdi_unfold_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_geometry geometry;
    if (opdi_unfold_geometry(self, opd_arg_int(call, 1), opd_arg_int(call, 2), opd_arg_int(call, 3), &geometry)) {
        return -1;
    }
    return opdi_return_geometry(call, self, &geometry, 0);
}
static int opdi_unfold_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_unfold_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i,
                                                    opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i));
}
/* unfold_backward: adds grad to zeros, one position within the windows after another: windows may overlap, but elements
   at the same position of different windows do not. */
static int opdi_unfold_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0),
        *out = opdi_zero_result(call, opd_arg_ints(call, 1), (opd_scalar_type)grad->dtype);
    int64_t size = opd_arg_int(call, 3);
    opdi_geometry geometry;
    if (!out || opdi_unfold_geometry(out, opd_arg_int(call, 2), size, opd_arg_int(call, 4), &geometry)) { return -1; }
    if (!opdi_has_sizes(grad, geometry.sizes, geometry.ndim)) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "grad_in must have the sizes of unfold's result, %s, but has %s",
                        opdi_sizes_text(geometry.sizes, geometry.ndim, first, sizeof first),
                        opdi_shape_text(grad, second));
    }
    int64_t stride = geometry.strides[--geometry.ndim];
    for (int64_t k = 0; k < size && out->data && out->numel; k++) {
        opd_tensor *const view = opdi_view(out, geometry.sizes, geometry.strides, geometry.ndim, k * stride);
        if (!opd_add_(view, opd_select(grad, -1, k))) { return -1; }
    }
    return 0;
}
static int opdi_unfold_backward_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_unfold(opd_bw_grad(bw, 0), opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i,
                                           opd_bw_value(bw, 4).u.i));
}
/* opd_unfold: a view of windows of dim: dim counts the windows, and a new last dim their elements */
OPDI_OP(unfold) {
    op->schema = "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)";
    op->any = opdi_unfold_kernel; op->backward = opdi_unfold_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[5], 0, 3, 1; [2,6], -1, 2, 3; [5], 0, 2, 2; [], 0, 1, 1";
}
/* The batching rule of unfold_backward.  If the examples of the input have no dims, unfold has one window of at most
   one element, whose gradient is added up; otherwise dims are shifted. */
static int opdi_unfold_backward_batch(opd_call *call) {
    const int64_t last = -1;
    int dim;
    if (opd_arg_ints(call, 1).n > 0) { return opd_batch_shift_dim(call); }
    opd_tensor *const all = opd_batch_arg(call, 0, &dim), *const grad = opd_batch_front(all, dim);
    return opd_batch_return(call, opd_sum_dim(grad, opd_ints_of(&last, 1), false), 0);
}
/* opd_unfold_backward: the gradient of unfold */
OPDI_OP(unfold_backward) {
    op->schema = "unfold_backward(Tensor grad_in, SymInt[] input_sizes, int dim, int size, int step) -> Tensor";
    op->any = opdi_unfold_backward_kernel; op->backward = opdi_unfold_backward_bw;
    op->vmap = opdi_unfold_backward_batch;
    op->out = "unfold_backward.out";
    op->cases = "[3,3], (5), 0, 3, 1; [1], (), 0, 1, 1";
}

//== split, unbind, chunk and other lists of parts =====================================================================

static int opdi_list_fail(int64_t count) {
    return opd_fail(OPD_ERROR_SHAPE, "a list must have fewer than 2^31 tensors, but this one would have %lld",
                    (long long)count);
}
/* Returns memory for a list of `count` tensors, which is freed when the kernel or backward function ends.  On failure,
   returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor **opdi_list_alloc(int64_t count) {
    if (count < 0 || count > INT32_MAX) {
        (void)opdi_list_fail(count);
        return NULL;
    }
    return (opd_tensor **)opdi_scope_alloc((size_t)OPDI_MAX(count, 1) * sizeof(opd_tensor *));
}
/* The sizes of the `count` parts into which `total` elements are split: the list `sizes` or, if sizes is NULL, `each`
   for all parts but the last, which has the rest. */
typedef struct opdi_parts { const int64_t *sizes; int64_t each, count, total; } opdi_parts;
static int64_t opdi_parts_size(const opdi_parts *parts, int64_t i) {
    return parts->sizes ? parts->sizes[i] : i + 1 < parts->count ? parts->each
        : parts->total - parts->each * (parts->count - 1);
}
/* Reads argument 1 of a split, `value`, into *parts: a size or a list of sizes.  `total` is the size of dim.  Returns
   0, or -1 and sets an error. */
static int opdi_parts_of(opdi_parts *parts, opd_value value, int64_t total, int dim) {
    int64_t sum = 0;
    char text[256];
    memset(parts, 0, sizeof *parts);
    parts->total = total;
    if (value.tag == OPD_TAG_INT) {
        parts->each = value.u.i;
        if (parts->each < 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "split expects split_size be non-negative, but got split_size=%lld",
                            (long long)parts->each);
        }
        if (parts->each == 0 && total != 0) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "split_size can only be 0 if dimension size is 0, but got dimension size of %lld",
                            (long long)total);
        }
        parts->count = total == 0 ? 1 : total / parts->each + (total % parts->each != 0);
        if (total == 0) { parts->each = 0; }
        return 0;
    }
    parts->sizes = value.u.ints;
    parts->count = value.n;
    for (int64_t i = 0; i < parts->count; i++) {
        if (parts->sizes[i] < 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "split_with_sizes expects split_sizes have only non-negative entries, "
                            "but got split_sizes=%s", opdi_sizes_text(parts->sizes, value.n, text, sizeof text));
        }
        if (parts->sizes[i] > total - sum) {
            sum = -1;
            break;
        }
        sum += parts->sizes[i];
    }
    if (sum == total) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "split_with_sizes expects split_sizes to sum exactly to %lld (input tensor's size "
                    "at dimension %d), but got split_sizes=%s", (long long)total, dim,
                    opdi_sizes_text(value.u.ints, value.n, text, sizeof text));
}
/* split.Tensor and split_with_sizes: return a list of views. */
static int opdi_split_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), **list;
    int dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    int64_t at = 0;
    opdi_parts parts;
    opdi_geometry geometry;
    if (self->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "split expects at least a 1-dimensional tensor"); }
    if (dim < 0 || opdi_parts_of(&parts, opd_arg_value(call, 1), opdi_sizes(self)[dim], dim) ||
        !(list = opdi_list_alloc(parts.count))) {
        return -1;
    }
    opdi_geometry_of(&geometry, self);
    for (int64_t i = 0; i < parts.count; i++) {
        geometry.sizes[dim] = opdi_parts_size(&parts, i);
        if (!(list[i] = opdi_view_of_many(opdi_view(self, geometry.sizes, geometry.strides, geometry.ndim,
                                                    opdi_size_times(at, geometry.strides[dim]))))) {
            return -1;
        }
        at += geometry.sizes[dim];
    }
    return opd_return_tensors(call, list, parts.count);
}
/* Returns the gradient of result i (of `count` results) or, if that result has no gradient, zeros of these sizes.
   Returns NULL if no result has a gradient. */
static opd_tensor *opdi_grad_or_zeros(opd_backward_call *bw, int64_t i, int64_t count, opd_ints sizes) {
    opd_tensor *grad = opd_bw_grad(bw, (int)i);
    for (int64_t k = 0; !grad && k < count; k++) {
        if (opd_bw_grad(bw, (int)k)) { return opd_new_zeros(opd_bw_grad(bw, (int)k), sizes); }
    }
    return grad;
}
static int opdi_split_backward(opd_backward_call *bw) {
    opd_ints sizes = opd_bw_sizes(bw, 0);
    int dim = opdi_dim_of(opd_bw_value(bw, 2).u.i, (int)sizes.n);
    int64_t part[OPD_MAX_DIMS];
    opdi_parts parts;
    opd_tensor **list;
    if (dim < 0 || opdi_parts_of(&parts, opd_bw_value(bw, 1), sizes.data[dim], dim) ||
        !(list = opdi_list_alloc(parts.count))) {
        return -1;
    }
    memcpy(part, sizes.data, (size_t)sizes.n * sizeof *part);
    for (int64_t i = 0; i < parts.count; i++) {
        part[dim] = opdi_parts_size(&parts, i);
        list[i] = opdi_grad_or_zeros(bw, i, parts.count, opd_ints_of(part, sizes.n));
        if (!list[i]) { return -1; }
    }
    return opd_bw_return(bw, 0, opd_cat(opd_tensors_of(list, parts.count), dim));
}
/* unbind: returns a list of views, one for each index of dim, without dim. */
static int opdi_unbind_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), **list;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    opdi_geometry geometry;
    if (self->ndim == 0) { return opdi_no_dims_fail(opd_arg_int(call, 1)); }
    int64_t count = dim < 0 ? 0 : opdi_sizes(self)[dim];
    if (dim < 0 || !(list = opdi_list_alloc(count))) { return -1; }
    opdi_geometry_of(&geometry, self);
    opdi_geometry_remove(&geometry, dim);
    for (int64_t i = 0; i < count; i++) {
        if (!(list[i] = opdi_view_of_many(opdi_view(self, geometry.sizes, geometry.strides, geometry.ndim,
                                                    opdi_size_times(i, opdi_strides(self)[dim]))))) {
            return -1;
        }
    }
    return opd_return_tensors(call, list, count);
}
static int opdi_unbind_backward(opd_backward_call *bw) {
    opd_ints sizes = opd_bw_sizes(bw, 0);
    int dim = opdi_dim_of(opd_bw_value(bw, 1).u.i, (int)sizes.n), m = 0;
    int64_t part[OPD_MAX_DIMS], count;
    opd_tensor **list;
    if (dim < 0 || !(list = opdi_list_alloc(count = sizes.data[dim]))) { return -1; }
    for (int k = 0; k < sizes.n; k++) { if (k != dim) { part[m++] = sizes.data[k]; } }
    for (int64_t i = 0; i < count; i++) {
        list[i] = opdi_grad_or_zeros(bw, i, count, opd_ints_of(part, m));
        if (!list[i]) { return -1; }
    }
    return opd_bw_return(bw, 0, opd_stack(opd_tensors_of(list, count), dim));
}
/* opd_split_with_sizes(self, split_sizes, dim): a list of views: parts of these sizes along dim */
OPDI_OP(split_with_sizes) {
    op->schema = "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]";
    op->any = opdi_split_kernel; op->backward = opdi_split_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[5,2], (2,3); [2,5], (1,0,4), -1";
}
/* opd_split(self, split_size, dim): a list of views: parts of this size along dim; the last one may be smaller */
OPDI_OP(split_Tensor) {
    op->schema = "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]";
    op->any = opdi_split_kernel; op->backward = opdi_split_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[5,2], 2; [2,5], 3, 1";
}
/* opd_unbind: a list of views: the slices at each index of dim, without dim */
OPDI_OP(unbind_int) {
    op->schema = "unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]";
    op->any = opdi_unbind_kernel; op->backward = opdi_unbind_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[2,3]; [2,3], 1";
}

/* Makes the list the result of the call.  For operators named unsafe_.., the results no longer count as views of self.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_return_list(opd_call *call, opd_tensors list) {
    const bool unsafe = strncmp(call->op->schema->name, "unsafe_", strlen("unsafe_")) == 0;
    for (int64_t i = 0; i < list.n && unsafe; i++) { opdi_view_untie(list.data[i]); }
    return opd_ok() ? opd_return_tensors(call, list.data, list.n) : -1;
}
/* split.sizes, unsafe_split and unsafe_split_with_sizes: call split or split_with_sizes. */
static int opdi_split_of_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_value value = opd_arg_value(call, 1);
    if (value.tag == OPD_TAG_INT) {
        return opdi_return_list(call, opd_split(self, value.u.i, opd_arg_int(call, 2)));
    }
    return opdi_return_list(call,
                            opd_split_with_sizes(self, opd_ints_of(value.u.ints, value.n), opd_arg_int(call, 2)));
}
static int opdi_chunk_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t chunks = opd_arg_int(call, 1);
    int dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    if (self->ndim == 0) { return opd_fail(OPD_ERROR_SHAPE, "chunk expects at least a 1-dimensional tensor"); }
    if (chunks <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "chunk expects `chunks` to be greater than 0, got: %lld",
                        (long long)chunks);
    }
    if (dim < 0) { return -1; }
    int64_t size = opdi_sizes(self)[dim];
    int64_t each = size / chunks + (size % chunks != 0);
    if (each > 0) { return opdi_return_list(call, opd_split(self, each, dim)); }
    if (chunks > INT32_MAX) { return opdi_list_fail(chunks); }
    int64_t *zeros = (int64_t *)opdi_scope_alloc((size_t)chunks * sizeof *zeros);
    if (!zeros) { return -1; }
    memset(zeros, 0, (size_t)chunks * sizeof *zeros);
    return opdi_return_list(call, opd_split_with_sizes(self, opd_ints_of(zeros, chunks), dim));
}
/* opd_split_sizes(self, split_size, dim): a list of views: parts of these sizes along dim */
OPDI_OP(split_sizes) {
    op->schema = "split.sizes(Tensor(a -> *) self, SymInt[] split_size, int dim=0) -> Tensor(a)[]";
    op->composite = opdi_split_of_kernel;
    op->cases = "[5,2], (2,3)";
}
/* opd_unsafe_split: split; the parts do not count as views of self */
OPDI_OP(unsafe_split_Tensor) {
    op->schema = "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]";
    op->composite = opdi_split_of_kernel;
    op->out = "unsafe_split.Tensor_out";
    op->cases = "[5,2], 2";
}
/* opd_unsafe_split_with_sizes: split_with_sizes; the parts do not count as views of self */
OPDI_OP(unsafe_split_with_sizes) {
    op->schema = "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]";
    op->composite = opdi_split_of_kernel;
    op->out = "unsafe_split_with_sizes.out";
    op->cases = "[5,2], (2,3)";
}
/* opd_chunk(self, chunks, dim): a list of at most `chunks` views: parts of equal size along dim, except for a smaller
   last one */
OPDI_OP(chunk) {
    op->schema = "chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]";
    op->composite = opdi_chunk_kernel;
    op->cases = "[5,2], 2; [2,3], 3, 1";
}
/* opd_unsafe_chunk: chunk; the parts do not count as views of self */
OPDI_OP(unsafe_chunk) {
    op->schema = "unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]";
    op->composite = opdi_chunk_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING;
    op->cases = "[5,2], 2";
}

/* Cuts self into `count` slices along dim, with sizes as equal as possible, the longer ones first.  Each slice is a
   separate view, made by opd_slice.  Returns 0, or -1 and sets an error. */
static int opdi_tensor_split_sections(opd_call *call, opd_tensor *self, int64_t count, int64_t dim) {
    int d = opdi_dim_of(dim, self->ndim);
    opd_tensor **list;
    int64_t at = 0, end;
    if (d < 0) { return -1; }
    if (count <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "number of sections must be larger than 0, got %lld", (long long)count);
    }
    if (!(list = opdi_list_alloc(count))) { return -1; }
    for (int64_t i = 0; i < count; i++, at = end) {
        end = at + opdi_sizes(self)[d] / count + (i < opdi_sizes(self)[d] % count);
        if (!(list[i] = opd_slice(self, d, opd_value_int(at), opd_value_int(end), 1))) { return -1; }
    }
    return opd_return_tensors(call, list, count);
}
/* Cuts self along dim before each of the indices in `at`, which may be negative or too large, as in Python's slices.
   Returns 0, or -1 and sets an error. */
static int opdi_tensor_split_indices(opd_call *call, opd_tensor *self, opd_ints at, int64_t dim) {
    opd_tensor **list = opdi_list_alloc(at.n + 1);
    for (int64_t i = 0; list && i <= at.n; i++) {
        list[i] = opd_slice(self, dim, opd_value_int(i ? at.data[i - 1] : 0),
                            i < at.n ? opd_value_int(at.data[i]) : OPD_NONE, 1);
        if (!list[i]) { return -1; }
    }
    return list ? opd_return_tensors(call, list, at.n + 1) : -1;
}
/* Runs tensor_split of argument 0 along dim.  `value` is a number of parts, a list of indices, or an int64 CPU tensor
   that holds a number or a list.  Returns 0, or -1 and sets an error. */
static int opdi_tensor_split_by(opd_call *call, opd_value value, int64_t dim) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (self->ndim == 0) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims");
    }
    if (value.tag == OPD_TAG_INT) { return opdi_tensor_split_sections(call, self, value.u.i, dim); }
    if (value.tag == OPD_TAG_INTS) {
        return opdi_tensor_split_indices(call, self, opd_ints_of(value.u.ints, value.n), dim);
    }
    opd_tensor *tensor = value.u.t;
    if (tensor->backend != OPD_CPU || tensor->dtype != OPD_INT64 || tensor->ndim > 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "tensor_split expected tensor_indices_or_sections to be a zero-dimensional "
                        "or one-dimensional int64 tensor on cpu");
    }
    if (tensor->ndim == 0) { return opdi_tensor_split_sections(call, self, opd_item_i64(tensor), dim); }
    tensor = opd_contiguous(tensor);
    return tensor && opd_data_i64(tensor) ? opdi_tensor_split_indices(call, self,
                                                                      opd_ints_of(opd_data_i64(tensor), tensor->numel),
                                                                      dim) : -1;
}
static int opdi_tensor_split_kernel(opd_call *call) {
    return opdi_tensor_split_by(call, opd_arg_value(call, 1), opd_arg_int(call, 2));
}
/* opd_tensor_split: a list of views: `sections` parts along dim, with sizes as equal as possible */
OPDI_OP(tensor_split_sections) {
    op->schema = "tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor(a)[]";
    op->composite = opdi_tensor_split_kernel;
    op->cases = "[5,2], 2";
}
/* opd_tensor_split_indices: a list of views: self cut along dim before each of these indices */
OPDI_OP(tensor_split_indices) {
    op->schema = "tensor_split.indices(Tensor(a -> *) self, SymInt[] indices, int dim=0) -> Tensor(a)[]";
    op->composite = opdi_tensor_split_kernel;
    op->cases = "[5,2], (1,3)";
}
/* opd_tensor_split_tensor: tensor_split, with the number of parts or the indices in a tensor */
OPDI_OP(tensor_split_tensor_indices_or_sections) {
    op->schema = "tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor tensor_indices_or_sections, int "
        "dim=0) -> Tensor(a)[]";
    op->composite = opdi_tensor_split_kernel;
    op->cases = "";
}

/* hsplit, vsplit and dsplit: call tensor_split for dim 1 (for vectors dim 0), dim 0 and dim 2. */
static int opdi_xsplit_kernel(opd_call *call) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    const char *name = call->op->schema->name;
    const bool rows = strcmp(name, "vsplit") == 0, depth = strcmp(name, "dsplit") == 0;
    const int least = depth ? 3 : rows ? 2 : 1, dim = depth ? 2 : rows ? 0 : self->ndim > 1;
    opd_value value = opd_arg_value(call, 1);
    if (self->ndim < least) {
        return opd_fail(OPD_ERROR_SHAPE, "%s requires a tensor with at least %d dimension, "
                        "but got a tensor with %d dimensions!", name, least, self->ndim);
    }
    if (value.tag == OPD_TAG_INT && (value.u.i == 0 || opdi_sizes(self)[dim] % value.u.i != 0)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s attempted to split along dimension %d, "
                        "but the size of the dimension %lld is not divisible by the split_size %lld!", name, dim,
                        (long long)opdi_sizes(self)[dim], (long long)value.u.i);
    }
    return opdi_tensor_split_by(call, value, dim);
}
/* opd_hsplit: self cut into equal parts along dim 1 (for vectors, along dim 0) */
OPDI_OP(hsplit_int) {
    op->schema = "hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]";
    op->composite = opdi_xsplit_kernel;
    op->cases = "[2,4], 2";
}
/* opd_hsplit_array: self cut before these indices along dim 1 (for vectors, along dim 0) */
OPDI_OP(hsplit_array) {
    op->schema = "hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]";
    op->composite = opdi_xsplit_kernel;
    op->cases = "[2,4], (1,3)";
}
/* opd_vsplit: self cut into equal parts along dim 0 */
OPDI_OP(vsplit_int) {
    op->schema = "vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]";
    op->composite = opdi_xsplit_kernel;
    op->cases = "[2,4], 2";
}
/* opd_vsplit_array: self cut before these indices along dim 0 */
OPDI_OP(vsplit_array) {
    op->schema = "vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]";
    op->composite = opdi_xsplit_kernel;
    op->cases = "[2,4], (1)";
}
/* opd_dsplit: self cut into equal parts along dim 2 */
OPDI_OP(dsplit_int) {
    op->schema = "dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]";
    op->composite = opdi_xsplit_kernel;
    op->cases = "[2,2,4], 2";
}
/* opd_dsplit_array: self cut before these indices along dim 2 */
OPDI_OP(dsplit_array) {
    op->schema = "dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]";
    op->composite = opdi_xsplit_kernel;
    op->cases = "[2,2,4], (1)";
}

//== operators that call views: narrow, movedim, mT, unflatten, meshgrid ===============================================

/* Returns a view of `length` elements of dim, from index `start` on; a negative start counts from the end.  On failure,
   returns NULL and sets the error of narrow. */
static opd_tensor *opdi_narrowed(opd_tensor *tensor, int64_t dim, int64_t start, int64_t length) {
    int d = opdi_dim_of(dim, tensor->ndim);
    if (tensor->ndim == 0) {
        (void)opd_fail(OPD_ERROR_SHAPE, "narrow() cannot be applied to a 0-dim tensor.");
        return NULL;
    }
    if (d < 0) { return NULL; }
    int64_t size = opdi_sizes(tensor)[d];
    if (length < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "narrow(): length must be non-negative.");
        return NULL;
    }
    if (start < -size || start > size) {
        (void)opd_fail(OPD_ERROR_INDEX, "start out of range (expected to be in range of [%lld, %lld], but got %lld)",
                       (long long)-size, (long long)size, (long long)start);
        return NULL;
    }
    if (start < 0) { start += size; }
    if (length > size - start) {
        (void)opd_fail(OPD_ERROR_SHAPE, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)start,
                       (long long)length, (long long)size);
        return NULL;
    }
    return opd_slice(tensor, d, opd_value_int(start), opd_value_int(start + length), 1);
}
static int opdi_narrow_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_narrowed(opd_arg_tensor(call, 0), opd_arg_int(call, 1), opd_arg_int(call, 2),
                                                 opd_arg_int(call, 3)));
}
static int opdi_narrow_Tensor_kernel(opd_call *call) {
    const opd_tensor *start = opd_arg_tensor(call, 2);
    if (start->ndim != 0 || !opd_dtype_is_integral((opd_scalar_type)start->dtype, false)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "start must be an 0-dim integral Tensor.");
    }
    return opd_return_tensor(call, opdi_narrowed(opd_arg_tensor(call, 0), opd_arg_int(call, 1), opd_item_i64(start),
                                                 opd_arg_int(call, 3)));
}
static int opdi_narrow_copy_kernel(opd_call *call) {
    opd_tensor *part = opdi_narrowed(opd_arg_tensor(call, 0), opd_arg_int(call, 1), opd_arg_int(call, 2),
                                     opd_arg_int(call, 3));
    return opd_return_tensor(call, opd_clone_full(part, opd_value_int(OPDI_FORMAT_CONTIGUOUS)));
}
/* opd_narrow: a view of `length` elements of dim, from index start on */
OPDI_OP(narrow) {
    op->schema = "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)";
    op->composite = opdi_narrow_kernel;
    op->cases = "[5,2], 0, 1, 3";
}
/* opd_narrow_Tensor: a view of `length` elements of dim, from index start on */
OPDI_OP(narrow_Tensor) {
    op->schema = "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)";
    op->composite = opdi_narrow_Tensor_kernel;
    op->cases = "";
}
/* opd_narrow_copy: narrow that returns a copy */
OPDI_OP(narrow_copy) {
    op->schema = "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor";
    op->composite = opdi_narrow_copy_kernel;
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "narrow_copy.out";
    op->cases = "[5,2], 0, 1, 3";
}

/* movedim: moves dim from[i] of argument 0 to position to[i]; the other dims keep their order.  Returns 0, or -1 and
   sets an error. */
static int opdi_move_dims(opd_call *call, opd_ints from, opd_ints to) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t perm[OPD_MAX_DIMS];
    bool used[OPD_MAX_DIMS];
    int axis, next = 0;
    char first[256], second[256];
    if (from.n != to.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "movedim: Invalid source or destination dims: "
                        "source (%s dims) should contain the same number of dims as destination (%s dims)",
                        opdi_sizes_text(from.data, (int)from.n, first, sizeof first),
                        opdi_sizes_text(to.data, (int)to.n, second, sizeof second));
    }
    memset(used, 0, sizeof used);
    for (int i = 0; i < self->ndim; i++) { perm[i] = -1; }
    for (int i = 0; i < from.n; i++) {
        int dim = opdi_dim_of(from.data[i], self->ndim);
        if (dim < 0 || (axis = opdi_dim_of(to.data[i], self->ndim)) < 0) { return -1; }
        if (self->ndim == 0) { continue; }
        if (used[dim] || perm[axis] >= 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "movedim: repeated dim in `%s`", used[dim] ? "source" : "destination");
        }
        used[dim] = true;
        perm[axis] = dim;
    }
    for (int i = 0; i < self->ndim; i++) {
        if (perm[i] >= 0) { continue; }
        while (used[next]) { next++; }
        perm[i] = next++;
    }
    return opd_return_tensor(call, opd_permute(self, opd_ints_of(perm, self->ndim)));
}
static int opdi_movedim_kernel(opd_call *call) {
    int64_t first = opd_arg_int(call, 1), second = opd_arg_int(call, 2);
    return opdi_move_dims(call, opd_ints_of(&first, 1), opd_ints_of(&second, 1));
}
static int opdi_movedims_kernel(opd_call *call) {
    return opdi_move_dims(call, opd_arg_ints(call, 1), opd_arg_ints(call, 2));
}
/* opd_movedim: a view of self with dim source moved to position destination */
OPDI_OP(movedim_int) {
    op->schema = "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)";
    op->composite = opdi_movedim_kernel;
    op->cases = "[2,3,4], 0, 2";
}
/* opd_movedim_intlist: a view of self with dims source[i] moved to positions destination[i] */
OPDI_OP(movedim_intlist) {
    op->schema = "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)";
    op->composite = opdi_movedims_kernel;
    op->cases = "[2,3,4], (0,1), (2,0)";
}
/* opd_moveaxis: the same as movedim */
OPDI_OP(moveaxis_int) {
    op->schema = "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)";
    op->composite = opdi_movedim_kernel;
    op->cases = "[2,3,4], 0, 2";
}
/* opd_moveaxis_intlist: the same as movedim */
OPDI_OP(moveaxis_intlist) {
    op->schema = "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)";
    op->composite = opdi_movedims_kernel;
    op->cases = "[2,3,4], (0,1), (2,0)";
}

static int opdi_swap_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_transpose(opd_arg_tensor(call, 0), opd_arg_int(call, 1), opd_arg_int(call, 2)));
}
/* opd_swapaxes: the same as transpose */
OPDI_OP(swapaxes) {
    op->schema = "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)";
    op->composite = opdi_swap_kernel;
    op->cases = "[2,3], 0, 1";
}
/* opd_swapdims: the same as transpose */
OPDI_OP(swapdims) {
    op->schema = "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
    op->composite = opdi_swap_kernel;
    op->cases = "[2,3], 0, 1";
}

static int opdi_numpy_T_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t perm[OPD_MAX_DIMS];
    for (int i = 0; i < self->ndim; i++) { perm[i] = self->ndim - 1 - i; }
    return opd_return_tensor(call, opd_permute(self, opd_ints_of(perm, self->ndim)));
}
/* opd_numpy_T: a view of self with all dims in reverse order */
OPDI_OP(numpy_T) {
    op->schema = "numpy_T(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_numpy_T_kernel;
    op->cases = "[2,3,4]";
}

/* mT, mH, matrix_H and adjoint: return views with the last two dims exchanged; all but mT are conjugated. */
static int opdi_matrix_transpose_kernel(opd_call *call) {
    const char *name = call->op->schema->name;
    opd_tensor *self = strcmp(name, "mT") == 0 ? opd_arg_tensor(call, 0) : opd_conj(opd_arg_tensor(call, 0));
    if (!self) { return -1; }
    if (strcmp(name, "matrix_H") == 0) {
        if (self->ndim == 2) { return opd_return_tensor(call, opd_transpose(self, 0, 1)); }
        if (self->ndim == 0) { return opd_return_tensor(call, opd_alias(self)); }
        return opd_fail(OPD_ERROR_SHAPE,
                        "tensor.H is only supported on matrices (2-D tensors). Got %d-D tensor.", self->ndim);
    }
    if (self->ndim == 0) { return opd_return_tensor(call, opd_alias(self)); }
    if (self->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "tensor.%s is only supported on matrices or batches of matrices. Got %d-D tensor.",
                        name, self->ndim);
    }
    return opd_return_tensor(call, opd_transpose(self, -2, -1));
}
/* opd_mT: a view of self with the last two dims exchanged */
OPDI_OP(mT) {
    op->schema = "mT(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_matrix_transpose_kernel;
    op->cases = "[2,3]";
}
/* opd_mH: self with the last two dims exchanged and complex numbers conjugated */
OPDI_OP(mH) {
    op->schema = "mH(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_matrix_transpose_kernel;
    op->cases = "[2,3]";
}
/* opd_matrix_H: the conjugate transpose of a matrix */
OPDI_OP(matrix_H) {
    op->schema = "matrix_H(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_matrix_transpose_kernel;
    op->cases = "[2,3]";
}
/* opd_adjoint: the same as mH */
OPDI_OP(adjoint) {
    op->schema = "adjoint(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_matrix_transpose_kernel;
    op->cases = "[2,3]";
}

/* unflatten: returns a view of self in which dim is split into dims of the given sizes; one size may be -1. */
static int opdi_unflatten_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim), count = 0;
    opd_ints into = opd_arg_ints(call, 2);
    int64_t sizes[OPD_MAX_DIMS], inner[OPD_MAX_DIMS];
    if (dim < 0) { return -1; }
    if (into.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "unflatten: sizes must be non-empty"); }
    if (self->ndim == 0 || self->ndim - 1 + into.n > OPD_MAX_DIMS ||
        opdi_infer_size(into, opdi_sizes(self)[dim], inner)) {
        char text[256];
        opd_error_clear();
        return opd_fail(OPD_ERROR_SHAPE, "unflatten: Provided sizes %s don't multiply up to the size of dim %d (%lld) "
                        "in the input tensor",
                        opdi_sizes_text(into.data, (int)OPDI_MIN(into.n, OPD_MAX_DIMS), text, sizeof text), dim,
                        (long long)(self->ndim ? opdi_sizes(self)[dim] : 1));
    }
    for (int i = 0; i < self->ndim; i++) {
        for (int k = 0; i == dim && k < into.n; k++) { sizes[count++] = inner[k]; }
        if (i != dim) { sizes[count++] = opdi_sizes(self)[i]; }
    }
    return opd_return_tensor(call, opd_view(self, opd_ints_of(sizes, count)));
}
/* opd_unflatten: a view of self in which dim is split into dims of these sizes */
OPDI_OP(unflatten_int) {
    op->schema = "unflatten.int(Tensor(a) self, int dim, SymInt[] sizes) -> Tensor(a)";
    op->composite = opdi_unflatten_kernel;
    op->cases = "[6,2], 0, (2,3); [6], -1, (-1,2)";
}

static int opdi_ravel_kernel(opd_call *call) {
    const int64_t all = -1;
    opd_tensor *tensor = opd_contiguous(opd_arg_tensor(call, 0));
    int64_t numel = tensor ? tensor->numel : all;
    return opd_return_tensor(call, opd_view(tensor, opd_ints_of(&numel, 1)));
}
/* opd_ravel: self as a vector, a view if possible, else a copy */
OPDI_OP(ravel) {
    op->schema = "ravel(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_ravel_kernel;
    op->cases = "[2,3]";
}

static int opdi_broadcast_to_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_expand(opd_arg_tensor(call, 0), opd_arg_ints(call, 1)));
}
/* opd_broadcast_to: the same as expand */
OPDI_OP(broadcast_to) {
    op->schema = "broadcast_to(Tensor(a) self, SymInt[] size) -> Tensor(a)";
    op->composite = opdi_broadcast_to_kernel;
    op->cases = "[3], (2,3)";
}

static int opdi_broadcast_tensors_kernel(opd_call *call) {
    opd_tensors in = opd_arg_tensors(call, 0);
    opd_tensor **list = opdi_list_alloc(in.n);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    for (int64_t i = 0; i < in.n; i++) { if (opdi_broadcast_into(sizes, &ndim, in.data[i])) { return -1; } }
    for (int64_t i = 0; list && i < in.n; i++) {
        if (!(list[i] = opd_expand(in.data[i], opd_ints_of(sizes, ndim)))) { return -1; }
    }
    return list ? opd_return_tensors(call, list, in.n) : -1;
}
/* opd_broadcast_tensors: all tensors, expanded to the sizes to which they broadcast */
OPDI_OP(broadcast_tensors) {
    op->schema = "broadcast_tensors(Tensor[] tensors) -> Tensor[]";
    op->composite = opdi_broadcast_tensors_kernel;
    op->cases = "{[3],[2,1]}";
}

/* meshgrid: returns each of the vectors (or numbers) expanded to the grid that all of them span.  Vector number i runs
   along dim i.  If `swap`, the first two dims of the grid are exchanged. */
static int opdi_meshgrid(opd_call *call, bool swap) {
    const opd_tensors in = opd_arg_tensors(call, 0);
    opd_tensor **list = in.n > 0 && in.n <= OPD_MAX_DIMS ? opdi_list_alloc(in.n) : NULL;
    int64_t sizes[OPD_MAX_DIMS], shape[OPD_MAX_DIMS];
    if (in.n < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "meshgrid expects a non-empty TensorList"); }
    if (in.n > OPD_MAX_DIMS) { return (int)opdi_count(shape, OPD_MAX_DIMS + 1, 1); }
    swap = swap && in.n > 1;
    for (int i = 0; i < in.n; i++) {
        const opd_tensor *tensor = in.data[i];
        if (tensor->ndim > 1) {
            return opd_fail(OPD_ERROR_SHAPE, "meshgrid: Expected 0D or 1D tensor in the tensor list but got: "
                            "%dD", tensor->ndim);
        }
        if (tensor->dtype != in.data[0]->dtype) {
            return opd_fail(OPD_ERROR_DTYPE, "meshgrid expects all tensors to have the same dtype");
        }
        sizes[swap && i < 2 ? 1 - i : i] = tensor->numel;
    }
    for (int i = 0; i < in.n && list; i++) {
        const int dim = swap && i < 2 ? 1 - i : i;
        for (int k = 0; k < in.n; k++) { shape[k] = k == dim ? -1 : 1; }
        list[i] = opd_expand(opd_view(in.data[i], opd_ints_of(shape, in.n)), opd_ints_of(sizes, in.n));
        if (!list[i]) { return -1; }
    }
    return list ? opd_return_tensors(call, list, in.n) : -1;
}
static int opdi_meshgrid_kernel(opd_call *call) { return opdi_meshgrid(call, false); }
static int opdi_meshgrid_indexing_kernel(opd_call *call) {
    const char *indexing = opd_arg_str(call, 1);
    if (strcmp(indexing, "xy") == 0 || strcmp(indexing, "ij") == 0) {
        return opdi_meshgrid(call, indexing[0] == 'x');
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "meshgrid: indexing must be one of \"xy\" or \"ij\", but received: %s",
                    indexing);
}
/* opd_meshgrid: each vector, expanded to the grid that all vectors span; vector number i runs along dim i */
OPDI_OP(meshgrid) {
    op->schema = "meshgrid(Tensor[] tensors) -> Tensor[]";
    op->composite = opdi_meshgrid_kernel;
    op->cases = "{[3],[2]}; {[3],[],[2]}";
}
/* opd_meshgrid_indexing: meshgrid; with indexing "xy", the first two dims are exchanged */
OPDI_OP(meshgrid_indexing) {
    op->schema = "meshgrid.indexing(Tensor[] tensors, *, str indexing) -> Tensor[]";
    op->composite = opdi_meshgrid_indexing_kernel;
    op->cases = "{[3],[2]}, indexing='xy'; {[3],[2],[2]}, indexing='ij'";
}
