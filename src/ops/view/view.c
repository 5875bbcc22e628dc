#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:view      views: tensors that share memory with others, with other sizes, parts or dims
//----------------------------------------------------------------------------------------------------------------------

//== helpers ===========================================================================================================

OPDI_COLD_BEGIN

OPDI_INTERNAL opd_ints opdi_sizes_of(const opd_tensor *tensor) {
    return opd_ints_of(opd_sizes(tensor), opd_ndim(tensor));
}
static int opdi_return_view(opd_call *call, opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                            int64_t offset) {
    if (!opd_ok()) { return -1; }
    return opd_return_tensor(call, opdi_view(tensor, sizes, strides, ndim, offset));
}
OPDI_INTERNAL void opdi_geometry_of(opdi_geometry *geometry, const opd_tensor *tensor) {
    geometry->ndim = tensor->ndim;
    memcpy(geometry->sizes, opdi_sizes(tensor), (size_t)tensor->ndim * sizeof *geometry->sizes);
    memcpy(geometry->strides, opdi_strides(tensor), (size_t)tensor->ndim * sizeof *geometry->strides);
}
OPDI_INTERNAL void opdi_geometry_remove(opdi_geometry *geometry, int dim) {
    for (int i = dim; i + 1 < geometry->ndim; i++) {
        geometry->sizes[i] = geometry->sizes[i + 1];
        geometry->strides[i] = geometry->strides[i + 1];
    }
    if (geometry->ndim > 0) { geometry->ndim--; }
}
OPDI_INTERNAL void opdi_geometry_insert(opdi_geometry *geometry, int dim, int64_t size, int64_t stride) {
    for (int i = geometry->ndim++; i > dim; i--) {
        geometry->sizes[i] = geometry->sizes[i - 1];
        geometry->strides[i] = geometry->strides[i - 1];
    }
    geometry->sizes[dim] = size;
    geometry->strides[dim] = stride;
}
/* Returns a view of tensor's memory with dtype `dtype` and geometry *geometry.  On failure, returns NULL and sets an
   error. */
OPDI_INTERNAL opd_tensor *opdi_view_retyped(opd_tensor *tensor, const opdi_geometry *geometry, opd_scalar_type dtype) {
    opd_tensor *view = opdi_tensor_on(tensor->storage, tensor->data, geometry->sizes, geometry->strides, geometry->ndim,
                                      dtype, tensor->backend);
    if (!view) { return NULL; }
    opdi_view_of(view, tensor);
    return opdi_own(view);
}
/* Returns a view of a complex tensor as real numbers, with a last dim of size 2, as kernels make views.  On failure,
   returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_pairs_of(opd_tensor *tensor) {
    opdi_geometry geometry;
    if (tensor->ndim == OPD_MAX_DIMS) {
        (void)opdi_count(opdi_sizes(tensor), OPD_MAX_DIMS + 1, 1);
        return NULL;
    }
    opdi_geometry_of(&geometry, tensor);
    for (int dim = 0; dim < geometry.ndim; dim++) { geometry.strides[dim] *= 2; }
    opdi_geometry_insert(&geometry, geometry.ndim, 2, 1);
    return opdi_view_retyped(tensor, &geometry, (opd_scalar_type)opdi_real_dtype(tensor->dtype));
}
OPDI_INTERNAL int opdi_return_geometry(opd_call *call, opd_tensor *tensor, const opdi_geometry *geometry,
                                       int64_t offset) {
    return opdi_return_view(call, tensor, geometry->sizes, geometry->strides, geometry->ndim, offset);
}

//== view, reshape, flatten ============================================================================================

/* Copies `shape` to sizes and replaces a -1 by the size for which all sizes give numel elements (at::infer_size).
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_infer_size(opd_ints shape, int64_t numel, int64_t *sizes) {
    int64_t product = 1;
    int unknown = -1;
    char text[256];
    if (shape.n > OPD_MAX_DIMS) { return (int)opdi_count(shape.data, OPD_MAX_DIMS + 1, 1); }
    for (int i = 0; i < shape.n; i++) {
        sizes[i] = shape.data[i];
        if (sizes[i] == -1) {
            if (unknown >= 0) { return opd_fail(OPD_ERROR_SHAPE, "only one dimension can be inferred"); }
            unknown = i;
        } else if (sizes[i] < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "invalid shape dimension %lld", (long long)sizes[i]);
        }
        else { product = product == 0 || sizes[i] == 0 ? 0 : sizes[i] > INT64_MAX / product ? -2 : product * sizes[i]; }
        if (product == -2) { break; }
    }
    if (product >= 0 && (numel == product || (unknown >= 0 && product > 0 && numel % product == 0))) {
        if (unknown >= 0 && product == 0) {
            return opd_fail(OPD_ERROR_SHAPE, "cannot reshape tensor of 0 elements into shape %s because the "
                            "unspecified dimension size -1 can be any value and is ambiguous",
                            opdi_sizes_text(shape.data, (int)shape.n, text, sizeof text));
        }
        if (unknown >= 0) { sizes[unknown] = numel / product; }
        return 0;
    }
    return opd_fail(OPD_ERROR_SHAPE, "shape '%s' is invalid for input of size %lld",
                    opdi_sizes_text(shape.data, (int)shape.n, text, sizeof text), (long long)numel);
}
/* Fills strides [ndim] with the strides of a view of tensor with these sizes.  Returns false if there is no such view
   (at::detail::computeStride). */
static bool opdi_view_strides(const opd_tensor *tensor, const int64_t *sizes, int ndim, int64_t *strides) {
    const int64_t *old = opdi_sizes(tensor), *steps = opdi_strides(tensor);
    int64_t chunk = 1, made = 1;
    int value = ndim - 1;
    if (tensor->numel == 0 && opdi_has_sizes(tensor, sizes, ndim)) {
        memcpy(strides, steps, (size_t)ndim * sizeof *strides);
        return true;
    }
    if ((tensor->flags & OPDI_CONTIGUOUS) || tensor->ndim == 0) {
        opdi_strides_fill(sizes, strides, ndim);
        return true;
    }
    int64_t base = steps[tensor->ndim - 1];
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        chunk *= old[dim];
        if (dim > 0 && (old[dim - 1] == 1 || steps[dim - 1] == chunk * base)) { continue; }
        while (value >= 0 && (made < chunk || sizes[value] == 1)) {
            strides[value] = made * base;
            made *= sizes[value--];
        }
        if (made != chunk) { return false; }
        if (dim > 0) {
            base = steps[dim - 1];
            chunk = made = 1;
        }
    }
    return value == -1;
}
static int opdi_view_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints shape = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    if (opdi_infer_size(shape, self->numel, sizes)) { return -1; }
    if (!opdi_view_strides(self, sizes, (int)shape.n, strides)) {
        return opd_fail(OPD_ERROR_SHAPE, "view size is not compatible with input tensor's size and stride (at least "
                        "one dimension spans across two contiguous subspaces). Use .reshape(...) instead. (In C, call "
                        "opd_reshape.)");
    }
    return opdi_return_view(call, self, sizes, strides, (int)shape.n, 0);
}
OPDI_INTERNAL int opdi_view_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_reshape(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0)));
}
/* The batching rule of view and _unsafe_view: the number of examples is the first of the new sizes.  _unsafe_view may
   copy, because its result does not count as a view of self. */
static int opdi_view_batch(opd_call *call) {
    opd_tensor *all = opdi_batch_front_arg(call, 0);
    opd_ints shape = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], buffer[OPD_MAX_DIMS];
    if (!all || opdi_infer_size(shape, opd_arg_tensor(call, 0)->numel, sizes)) { return -1; }
    shape = opdi_batch_ints(opd_batch_size(), opd_ints_of(sizes, shape.n), buffer);
    return opd_batch_return(call, call->op->schema->name[0] == '_' ? opd_reshape(all, shape) : opd_view(all, shape), 0);
}
/* opd_view: the same elements with other sizes, without a copy */
OPDI_OP(view) {
    op->schema = "view(Tensor(a) self, SymInt[] size) -> Tensor(a)";
    op->any = opdi_view_kernel; op->backward = opdi_view_backward;
    op->vmap = opdi_view_batch; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3], (3,2); [2,3], (-1); [], (1,1)";
}

/* _unsafe_view: returns a view of self that does not count as a view of self.  Nothing else may use self. */
static int opdi_unsafe_view_kernel(opd_call *call) {
    if (opdi_view_kernel(call)) { return -1; }
    opdi_view_untie(call->rets[0].u.t);
    return 0;
}
/* opd_unsafe_view: view of a tensor that nothing else uses */
OPDI_OP(_unsafe_view) {
    op->schema = "_unsafe_view(Tensor self, SymInt[] size) -> Tensor";
    op->any = opdi_unsafe_view_kernel; op->backward = opdi_view_backward;
    op->tags = OPDI_OPTAG_SHARES;
    op->vmap = opdi_view_batch;
    op->out = "_unsafe_view.out";
    op->cases = "[2,3], (3,2)";
}

static int opdi_as_strided_at(opd_call *call, int64_t offset) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints sizes = opd_arg_ints(call, 1), strides = opd_arg_ints(call, 2);
    if (sizes.n != strides.n) {
        return opd_fail(OPD_ERROR_SHAPE, "mismatch in length of strides and shape: %lld and %lld", (long long)strides.n,
                        (long long)sizes.n);
    }
    return opd_return_tensor(call, opd_tensor_view(self, sizes.data, strides.data,
                                                   (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1), offset));
}
static int opdi_reshape_alias_kernel(opd_call *call) {
    return opdi_as_strided_at(call, opd_tensor_offset(opd_arg_tensor(call, 0)));
}
/* opd_reshape_alias: a view with these sizes and strides, used by reshape */
OPDI_OP(_reshape_alias) {
    op->schema = "_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)";
    op->any = opdi_reshape_alias_kernel; op->backward = opdi_view_backward;
    op->vmap = OPD_BATCH_VIEW;
    op->cases = "[2,3], (3,2), (2,1)";
}

/* reshape: returns a view if one exists, else a copy. */
static int opdi_reshape_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints shape = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    if (opdi_infer_size(shape, self->numel, sizes)) { return -1; }
    shape.data = sizes;
    if (opdi_view_strides(self, sizes, (int)shape.n, strides)) {
        return opd_return_tensor(call, opd_view(self, shape));
    }
    return opd_return_tensor(call, opd_unsafe_view(opd_clone_full(self, opd_value_int(OPDI_FORMAT_CONTIGUOUS)), shape));
}
/* opd_reshape: the same elements with other sizes; a copy only if there is no such view */
OPDI_OP(reshape) {
    op->schema = "reshape(Tensor(a) self, SymInt[] shape) -> Tensor(a)";
    op->composite = opdi_reshape_kernel;
    op->cases = "[2,3], (3,2); [2,3], (-1)";
}

static int opdi_view_as_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_view(opd_arg_tensor(call, 0), opdi_sizes_of(opd_arg_tensor(call, 1))));
}
static int opdi_reshape_as_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_reshape(opd_arg_tensor(call, 0), opdi_sizes_of(opd_arg_tensor(call, 1))));
}
static int opdi_expand_as_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_expand(opd_arg_tensor(call, 0), opdi_sizes_of(opd_arg_tensor(call, 1))));
}
/* opd_view_as: self viewed with other's sizes */
OPDI_OP(view_as) {
    op->schema = "view_as(Tensor(a) self, Tensor other) -> Tensor(a)";
    op->composite = opdi_view_as_kernel;
    op->cases = "[2,3], [3,2]";
}
/* opd_reshape_as: self reshaped to other's sizes */
OPDI_OP(reshape_as) {
    op->schema = "reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)";
    op->composite = opdi_reshape_as_kernel;
    op->cases = "[2,3], [3,2]";
}
/* opd_expand_as: self expanded to other's sizes */
OPDI_OP(expand_as) {
    op->schema = "expand_as(Tensor(a) self, Tensor other) -> Tensor(a)";
    op->composite = opdi_expand_as_kernel;
    op->cases = "[3], [2,3]";
}

/* flatten: merges dims start_dim to end_dim of self into one dim; a tensor without dims becomes [1].  Returns a view if
   the strides allow it, else a copy. */
static int opdi_flatten_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int first = opdi_dim_of(opd_arg_int(call, 1), self->ndim),
        last = opdi_dim_of(opd_arg_int(call, 2), self->ndim), count = 0;
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (first < 0 || last < 0) { return -1; }
    if (first > last) {
        return opd_fail(OPD_ERROR_ARGUMENT, "flatten() has invalid args: start_dim cannot come after end_dim");
    }
    if (self->ndim == 0) {
        sizes[0] = 1;
        return opd_return_tensor(call, opd_reshape(self, opd_ints_of(sizes, 1)));
    }
    if (first == last) { return opd_return_tensor(call, self); }
    for (int i = 0; i < self->ndim; i++) {
        if (i > first && i <= last) { sizes[count - 1] = opdi_size_times(sizes[count - 1], opdi_sizes(self)[i]); }
        else { sizes[count++] = opdi_sizes(self)[i]; }
    }
    return opd_return_tensor(call, opd_reshape(self, opd_ints_of(sizes, count)));
}
/* opd_flatten(self, start_dim, end_dim): self with dims start_dim to end_dim merged into one dim */
OPDI_OP(flatten_using_ints) {
    op->schema = "flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)";
    op->composite = opdi_flatten_kernel;
    op->cases = "[2,3]; [2,3,2], 1; []";
}

//== expand ============================================================================================================

/* Sets *geometry to the geometry of tensor expanded to the sizes `to` (at::inferExpandGeometry).  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_expand_geometry(const opd_tensor *tensor, opd_ints to, opdi_geometry *geometry) {
    char first[256], second[256];
    if (to.n > OPD_MAX_DIMS) { return (int)opdi_count(to.data, OPD_MAX_DIMS + 1, 1); }
    if (to.n < tensor->ndim) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "expand(CPU%sType{%s}, size=%s): the number of sizes provided (%lld) must be greater or equal "
                        "to the number of dimensions in the tensor (%d)",
                        opd_dtype_name((opd_scalar_type)tensor->dtype),
                        opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, first, sizeof first),
                        opdi_sizes_text(to.data, (int)to.n, second, sizeof second), (long long)to.n, tensor->ndim);
    }
    geometry->ndim = (int)to.n;
    for (int i = geometry->ndim - 1; i >= 0; i--) {
        const int dim = i - (geometry->ndim - tensor->ndim);
        int64_t size = dim >= 0 ? opdi_sizes(tensor)[dim] : 1, want = to.data[i];
        int64_t stride = dim >= 0 ? opdi_strides(tensor)[dim] : i + 1 < geometry->ndim
            ? opdi_size_times(geometry->sizes[i + 1], geometry->strides[i + 1]) : 1;
        if (want == -1 && dim < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "The expanded size of the tensor (%lld) isn't allowed in a leading, "
                            "non-existing dimension %d", (long long)want, i);
        }
        if (want == -1) { want = size; }
        if (want != size && size != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The expanded size of the tensor (%lld) must match the existing size "
                            "(%lld) at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                            (long long)want, (long long)size, i,
                            opdi_sizes_text(to.data, (int)to.n, first, sizeof first),
                            opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, second, sizeof second));
        }
        geometry->sizes[i] = want;
        geometry->strides[i] = want != size ? 0 : stride;
    }
    return opdi_count(geometry->sizes, geometry->ndim, opdi_element_size(tensor->dtype)) < 0 ? -1 : 0;
}
static int opdi_expand_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_geometry geometry;
    return opdi_expand_geometry(self, opd_arg_ints(call, 1), &geometry) ? -1 : opdi_return_geometry(call, self,
        &geometry, 0);
}
static int opdi_expand_batch(opd_call *call) {
    opd_tensor *all = opdi_batch_front_arg(call, 0);
    opd_ints sizes = opd_arg_ints(call, 1);
    int64_t buffer[OPD_MAX_DIMS];
    int ndim = (int)sizes.n - opd_arg_tensor(call, 0)->ndim;
    bool wrong = ndim < 0;
    for (int i = 0; i < ndim; i++) { wrong = wrong || sizes.data[i] < 0; }
    if (wrong) { return opd_batch_view(call); }   /* sets the error */
    all = opd_expand(opdi_batch_pad(all, (int)sizes.n), opdi_batch_ints(opd_batch_size(), sizes, buffer));
    return opd_batch_return(call, all, 0);
}
/* opd_expand: a view in which dims of size 1 are repeated to these sizes; -1 keeps a size */
OPDI_OP(expand) {
    op->schema = "expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)";
    op->any = opdi_expand_kernel; op->backward = opdi_pass_backward;
    op->vmap = opdi_expand_batch; op->tags = OPD_OPTAG_CORE;
    op->cases = "[3,1], (3,4); [3], (2,-1); [], (2)";
}

//== transpose, permute, squeeze, unsqueeze ============================================================================

static int opdi_return_swapped(opd_call *call, opd_tensor *self, int first, int second) {
    opdi_geometry geometry;
    opdi_geometry_of(&geometry, self);
    if (self->ndim > 0) {
        geometry.sizes[first] = opdi_sizes(self)[second];
        geometry.sizes[second] = opdi_sizes(self)[first];
        geometry.strides[first] = opdi_strides(self)[second];
        geometry.strides[second] = opdi_strides(self)[first];
    }
    return opdi_return_geometry(call, self, &geometry, 0);
}
static int opdi_transpose_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim),
        b = dim < 0 ? -1 : opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    return dim < 0 || b < 0 ? -1 : opdi_return_swapped(call, self, dim, b);
}
OPDI_INTERNAL int opdi_transpose_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_transpose(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i, opd_bw_value(bw, 2).u.i));
}
/* opd_transpose: a view of self with dims dim0 and dim1 exchanged */
OPDI_OP(transpose_int) {
    op->schema = "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)";
    op->any = opdi_transpose_kernel; op->backward = opdi_transpose_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[2,3], 0, 1; [2,3,2], -1, 0";
}

static int opdi_t_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (self->ndim > 2) {
        return opd_fail(OPD_ERROR_SHAPE, "t() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    }
    return opdi_return_swapped(call, self, 0, self->ndim < 2 ? 0 : 1);
}
OPDI_INTERNAL int opdi_t_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_t(opd_bw_grad(bw, 0))); }
static int opdi_t_batch(opd_call *call) {
    if (opd_arg_tensor(call, 0)->ndim != 2) { return opd_batch_view(call); }
    return opd_batch_return(call, opd_transpose(opdi_batch_front_arg(call, 0), 1, 2), 0);
}
/* opd_t: the transpose of a matrix, as a view; tensors with fewer dims stay unchanged */
OPDI_OP(t) {
    op->schema = "t(Tensor(a) self) -> Tensor(a)";
    op->any = opdi_t_kernel; op->backward = opdi_t_backward;
    op->vmap = opdi_t_batch;
    op->cases = "[2,3]; [3]";
}

/* Sets perm[i] to dims[i], where negative dims count from the end, for the ndim dims of a tensor.  Fails unless each
   dim is named once.  Returns 0, or -1 and sets an error. */
static int opdi_permutation(opd_ints dims, int ndim, int64_t *perm) {
    bool seen[OPD_MAX_DIMS];
    int dim;
    if (dims.n != ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "permute(sparse_coo): number of dimensions in the tensor input does not match "
                        "the length of the desired ordering of dimensions i.e. "
                        "input.dim() = %d is not equal to len(dims) = %lld", ndim, (long long)dims.n);
    }
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < ndim; i++) {
        if ((dim = opdi_dim_of(dims.data[i], ndim)) < 0) { return -1; }
        if (seen[dim]) { return opd_fail(OPD_ERROR_SHAPE, "permute(): duplicate dims are not allowed."); }
        seen[dim] = true;
        perm[i] = dim;
    }
    return 0;
}
static int opdi_permute_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t perm[OPD_MAX_DIMS];
    opdi_geometry geometry;
    if (opdi_permutation(opd_arg_ints(call, 1), self->ndim, perm)) { return -1; }
    geometry.ndim = self->ndim;
    for (int i = 0; i < geometry.ndim; i++) {
        geometry.sizes[i] = opdi_sizes(self)[perm[i]];
        geometry.strides[i] = opdi_strides(self)[perm[i]];
    }
    return opdi_return_geometry(call, self, &geometry, 0);
}
static int opdi_permute_backward(opd_backward_call *bw) {
    opd_value dims = opd_bw_value(bw, 1);
    int64_t perm[OPD_MAX_DIMS], inverse[OPD_MAX_DIMS];
    if (opdi_permutation(opd_ints_of(dims.u.ints, dims.n), dims.n, perm)) { return -1; }
    for (int i = 0; i < dims.n; i++) { inverse[perm[i]] = i; }
    return opd_bw_return(bw, 0, opd_permute(opd_bw_grad(bw, 0), opd_ints_of(inverse, dims.n)));
}
static int opdi_permute_batch(opd_call *call) {
    int64_t perm[OPD_MAX_DIMS], buffer[OPD_MAX_DIMS];
    opd_ints dims = opd_arg_ints(call, 1);
    if (opdi_permutation(dims, opd_arg_tensor(call, 0)->ndim, perm)) { return -1; }
    for (int i = 0; i < dims.n; i++) { perm[i]++; }
    return opd_batch_return(call, opd_permute(opdi_batch_front_arg(call, 0),
                                              opdi_batch_ints(0, opd_ints_of(perm, dims.n), buffer)), 0);
}
/* opd_permute: a view of self with its dims in this order */
OPDI_OP(permute) {
    op->schema = "permute(Tensor(a) self, int[] dims) -> Tensor(a)";
    op->any = opdi_permute_kernel; op->backward = opdi_permute_backward;
    op->vmap = opdi_permute_batch; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3], (1,0); [2,3,2], (2,0,-2)";
}

OPDI_INTERNAL int opdi_geometry_unsqueezed(opd_call *call, opdi_geometry *geometry) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    const int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim + 1);
    if (dim < 0) { return -1; }
    opdi_geometry_of(geometry, self);
    opdi_geometry_insert(geometry, dim, 1, dim < self->ndim ? opdi_size_times(geometry->sizes[dim],
                                                                              geometry->strides[dim]) : 1);
    return 0;
}
static int opdi_unsqueeze_kernel(opd_call *call) {
    opdi_geometry geometry;
    return opdi_geometry_unsqueezed(call, &geometry) ? -1 : opdi_return_geometry(call, opd_arg_tensor(call, 0),
        &geometry, 0);
}
OPDI_INTERNAL int opdi_unsqueeze_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_squeeze_dim(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i));
}
/* opd_unsqueeze: a view of self with a new dim of size 1 at position dim */
OPDI_OP(unsqueeze) {
    op->schema = "unsqueeze(Tensor(a) self, int dim) -> Tensor(a)";
    op->any = opdi_unsqueeze_kernel; op->backward = opdi_unsqueeze_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3], 1; [2,3], -1; [], 0";
}

/* Sets *geometry to the geometry of argument 0 without its dims of size 1.  If the operator has an argument 1, removes
   only dims that argument 1 names.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_geometry_squeezed(const opd_call *call, opdi_geometry *geometry) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value value = call->op->nargs < 2 ? opd_value_none() : opd_arg_value(call, 1);
    uint64_t only = value.tag == OPD_TAG_NONE ? ~(uint64_t)0 : 0;
    int dim;
    for (int32_t k = 0; k < (value.tag == OPD_TAG_INTS ? value.n : value.tag == OPD_TAG_INT); k++) {
        if ((dim = opdi_dim_of(value.tag == OPD_TAG_INT ? value.u.i : value.u.ints[k], self->ndim)) < 0) { return -1; }
        if (only >> dim & 1) { return opdi_dim_twice_fail(dim); }
        only |= (uint64_t)1 << dim;
    }
    opdi_geometry_of(geometry, self);
    for (dim = geometry->ndim - 1; dim >= 0; dim--) {
        if (geometry->sizes[dim] == 1 && (only >> dim & 1)) { opdi_geometry_remove(geometry, dim); }
    }
    return 0;
}
static int opdi_squeeze_kernel(opd_call *call) {
    opdi_geometry geometry;
    return opdi_geometry_squeezed(call, &geometry) ? -1 : opdi_return_geometry(call, opd_arg_tensor(call, 0), &geometry,
        0);
}
static int opdi_squeeze_batch(opd_call *call) {
    int64_t dims[OPD_MAX_DIMS];
    const int ndim = opd_arg_tensor(call, 0)->ndim;
    if (ndim == 0) { return opd_batch_view(call); }
    return opd_batch_return(call, opd_squeeze_dims(opdi_batch_front_arg(call, 0), opdi_batch_all_dims(ndim, dims)), 0);
}
/* opd_squeeze: a view of self without its dims of size 1 */
OPDI_OP(squeeze) {
    op->schema = "squeeze(Tensor(a) self) -> Tensor(a)";
    op->any = opdi_squeeze_kernel; op->backward = opdi_view_backward;
    op->vmap = opdi_squeeze_batch;
    op->cases = "[2,1,3,1]; [1]";
}
/* opd_squeeze_dim: a view of self without dim, if its size is 1 */
OPDI_OP(squeeze_dim) {
    op->schema = "squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)";
    op->any = opdi_squeeze_kernel; op->backward = opdi_view_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,1,3], 1; [2,3], 0; [], 0";
}
/* opd_squeeze_dims: a view of self without those dims in `dim` whose size is 1 */
OPDI_OP(squeeze_dims) {
    op->schema = "squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a)";
    op->any = opdi_squeeze_kernel; op->backward = opdi_view_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,1,3,1], (1,-1); [2,1,3,1], (0,1); [1,2], ()";
}

static int opdi_alias_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opdi_return_view(call, self, opdi_sizes(self), opdi_strides(self), self->ndim, 0);
}
OPDI_INTERNAL int opdi_detach_kernel(opd_call *call) {
    if (opdi_alias_kernel(call)) { return -1; }
    opdi_view_untie(call->rets[0].u.t);
    return 0;
}
/* opd_detach: a view of self without autograd history */
OPDI_OP(detach) {
    op->schema = "detach(Tensor(a) self) -> Tensor(a)";
    op->any = opdi_detach_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[2,3]";
}
/* opd_alias: a view of self with all its elements */
OPDI_OP(alias) {
    op->schema = "alias(Tensor(a) self) -> Tensor(a)";
    op->any = opdi_alias_kernel; op->backward = opdi_pass_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3]";
}

//== parts of tensors: select, slice, as_strided =======================================================================

/* Sets *geometry to the geometry of the slice of tensor at `index` of dim, without dim.  Returns the offset of the
   slice from the first element of tensor in memory, or -1 and sets an error. */
static int64_t opdi_select_geometry(const opd_tensor *tensor, int64_t dim, int64_t index, opdi_geometry *geometry) {
    char text[256];
    int axis;
    if (tensor->ndim == 0) { return opd_fail(OPD_ERROR_INDEX, "select() cannot be applied to a 0-dim tensor."); }
    if ((axis = opdi_dim_of(dim, tensor->ndim)) < 0) { return -1; }
    int64_t size = opdi_sizes(tensor)[axis];
    if (index < -size || index >= size) {
        return opd_fail(OPD_ERROR_INDEX, "select(): index %lld out of range for tensor of size %s at dimension %d",
                        (long long)index, opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, text, sizeof text), axis);
    }
    opdi_geometry_of(geometry, tensor);
    opdi_geometry_remove(geometry, axis);
    return opdi_size_times(index < 0 ? index + size : index, opdi_strides(tensor)[axis]);
}
static int opdi_select_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_geometry geometry;
    int64_t offset = opdi_select_geometry(self, opd_arg_int(call, 1), opd_arg_int(call, 2), &geometry);
    return offset < 0 ? -1 : opdi_return_geometry(call, self, &geometry, offset);
}
static int opdi_select_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_select_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i,
                                                    opd_bw_value(bw, 2).u.i));
}
/* opd_select: a view of the slice of self at index of dim, without dim */
OPDI_OP(select_int) {
    op->schema = "select.int(Tensor(a) self, int dim, int index) -> Tensor(a)";
    op->any = opdi_select_kernel; op->backward = opdi_select_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3], 0, 1; [2,3], -1, -2";
}

/* Sets *geometry to the geometry of every step-th slice of dim in [start, end), both of which are limited to the size
   of dim.  Returns the offset of the first slice from the first element of tensor in memory, or -1 and sets an
   error. */
static int64_t opdi_slice_geometry(const opd_tensor *tensor, int64_t dim, int64_t start, int64_t end, int64_t step,
                                   opdi_geometry *geometry) {
    int axis;
    if (tensor->ndim == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "slice() cannot be applied to a 0-dim tensor."); }
    if ((axis = opdi_dim_of(dim, tensor->ndim)) < 0) { return -1; }
    if (step <= 0) { return opd_fail(OPD_ERROR_ARGUMENT, "slice step must be positive"); }
    int64_t size = opdi_sizes(tensor)[axis];
    if (start < 0) { start += size; }
    if (end < 0) { end += size; }
    start = OPDI_MIN(OPDI_MAX(start, 0), size);
    end = OPDI_MIN(OPDI_MAX(end, start), size);
    opdi_geometry_of(geometry, tensor);
    geometry->sizes[axis] = (end - start) / step + ((end - start) % step != 0);
    geometry->strides[axis] = step > 1 && geometry->strides[axis] > INT64_MAX / step ? INT64_MAX
        : geometry->strides[axis] * step;
    return opdi_size_times(start, opdi_strides(tensor)[axis]);
}
static int opdi_slice_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_value start = opd_arg_value(call, 2), end = opd_arg_value(call, 3);
    opdi_geometry geometry;
    int64_t offset = opdi_slice_geometry(self, opd_arg_int(call, 1), start.tag == OPD_TAG_INT ? start.u.i : 0,
                                         end.tag == OPD_TAG_INT ? end.u.i : INT64_MAX, opd_arg_int(call, 4), &geometry);
    return offset < 0 ? -1 : opdi_return_geometry(call, self, &geometry, offset);
}
static int opdi_slice_bw(opd_backward_call *bw) {
    opd_value start = opd_bw_value(bw, 2), end = opd_bw_value(bw, 3);
    return opd_bw_return(bw, 0, opd_slice_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0), opd_bw_value(bw, 1).u.i,
                                                   start.tag == OPD_TAG_INT ? start.u.i : 0,
                                                   end.tag == OPD_TAG_INT ? end.u.i : INT64_MAX,
                                                   opd_bw_value(bw, 4).u.i));
}
/* opd_slice(self, dim, start, end, step): a view of every step-th slice of dim from start up to, not including, end */
OPDI_OP(slice_Tensor) {
    op->schema = "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
        "Tensor(a)";
    op->any = opdi_slice_kernel; op->backward = opdi_slice_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->cases = "[4,3], 0, 1, 3; [4,3], 1, None, None, 2; [4,3], -1, -2";
}

static int opdi_as_strided_kernel(opd_call *call) {
    opd_value offset = opd_arg_value(call, 3);
    return opdi_as_strided_at(call, offset.tag == OPD_TAG_INT ? offset.u.i
                              : opd_tensor_offset(opd_arg_tensor(call, 0)));
}
/* Computes the gradient of as_strided.  The saved values are the sizes and strides of self, the sizes and strides of
   the result, and the offset of the result from self. */
OPDI_INTERNAL int opdi_as_strided_bw(opd_backward_call *bw) {
    opd_value values[4];
    for (int i = 0; i < 4; i++) { values[i] = opd_bw_value(bw, i); }
    return opd_bw_return(bw, 0, opd_as_strided_backward(opd_bw_grad(bw, 0), opd_ints_of(values[0].u.ints, values[0].n),
                                                        opd_ints_of(values[1].u.ints, values[1].n),
                                                        opd_ints_of(values[2].u.ints, values[2].n),
                                                        opd_ints_of(values[3].u.ints, values[3].n),
                                                        opd_bw_value(bw, 4).u.i));
}
/* The autograd kernel of as_strided: records the call itself, because the backward function needs self's strides, but
   not self. */
static int opdi_as_strided_autograd(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_value offset = opd_arg_value(call, 3), values[5];
    if (!opd_call_requires_grad(call)) { return opdi_below_autograd(call); }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_below_autograd(call)) { return -1; }
    opd_tensor *result = call->rets[0].u.t;
    values[0] = opd_value_ints(opd_sizes(self), self->ndim);
    values[1] = opd_value_ints(opd_strides(self), self->ndim);
    values[2] = opd_arg_value(call, 1);
    values[3] = opd_arg_value(call, 2);
    values[4] = opd_value_int(offset.tag == OPD_TAG_INT ? offset.u.i - opd_tensor_offset(self) : 0);
    return opd_autograd_record("AsStridedBackward0", opdi_as_strided_bw, &self, 1, NULL, 0, values, 5, &result, 1);
}
/* opd_as_strided: a view of self's storage with these sizes, strides and offset */
OPDI_OP(as_strided) {
    op->schema = "as_strided(Tensor(a) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor(a)";
    op->any = opdi_as_strided_kernel; op->autograd = opdi_as_strided_autograd;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_CORE;
    op->cases = "[3,4], (2,2), (4,1); [6], (2,2), (1,1), 1";
}

//== gradients of parts: zeros into which the gradient is written ======================================================

/* Makes result 0 with these sizes and fills it with zeros.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_zero_result(opd_call *call, opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *out = opd_result(call, 0, sizes.data, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1), dtype);
    return out && opdi_fill_with(out, opd_value_int(0)) == 0 ? out : NULL;
}
OPDI_INTERNAL int opdi_put_at(opd_tensor *out, const opdi_geometry *geometry, int64_t offset, const opd_tensor *grad) {
    if (offset < 0) { return -1; }
    opd_tensor *part = opdi_view(out, geometry->sizes, geometry->strides, geometry->ndim, offset);
    if (!part) { return -1; }
    if (!opdi_has_sizes(part, opdi_sizes(grad), grad->ndim)) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "expected a gradient with sizes %s, but got %s", opdi_shape_text(part, first),
                        opdi_shape_text(grad, second));
    }
    return out->data && grad->data ? opdi_copy(part, grad) : 0;
}
static int opdi_select_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0),
        *out = opdi_zero_result(call, opd_arg_ints(call, 1), (opd_scalar_type)grad->dtype);
    opdi_geometry geometry;
    return out ? opdi_put_at(out, &geometry,
                             opdi_select_geometry(out, opd_arg_int(call, 2), opd_arg_int(call, 3), &geometry), grad)
        : -1;
}
static int opdi_select_backward_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_select(opd_bw_grad(bw, 0), opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i));
}
/* opd_select_backward: the gradient of select */
OPDI_OP(select_backward) {
    op->schema = "select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, int index) -> Tensor";
    op->any = opdi_select_backward_kernel; op->backward = opdi_select_backward_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "select_backward.out";
    op->cases = "[3], (2,3), 0, 1";
}

static int opdi_slice_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0),
        *out = opdi_zero_result(call, opd_arg_ints(call, 1), (opd_scalar_type)grad->dtype);
    opdi_geometry geometry;
    if (!out) { return -1; }
    int64_t offset = opdi_slice_geometry(out, opd_arg_int(call, 2), opd_arg_int(call, 3), opd_arg_int(call, 4),
                                         opd_arg_int(call, 5), &geometry);
    return opdi_put_at(out, &geometry, offset, grad);
}
static int opdi_slice_backward_bw(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_slice(opd_bw_grad(bw, 0), opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3),
                                          opd_bw_value(bw, 4), opd_bw_value(bw, 5).u.i));
}
/* opd_slice_backward: the gradient of slice */
OPDI_OP(slice_backward) {
    op->schema = "slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, SymInt "
        "step) -> Tensor";
    op->any = opdi_slice_backward_kernel; op->backward = opdi_slice_backward_bw;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "slice_backward.out";
    op->cases = "[2,3], (4,3), 0, 1, 3, 1";
}

OPDI_COLD_END
/* Walks over the view of base with these sizes and strides that begins at element `at`.  Adds `values` (NULL: ones) to
   the elements of the view, in order, or, if `take`, copies the elements of the view to `values`. */
static void opdi_walk_strided(double *base, double *values, opd_ints sizes, opd_ints strides, int64_t at, bool take) {
    int64_t idx[OPD_MAX_DIMS], pos = at;
    int dim;
    memset(idx, 0, sizeof idx);
    for (dim = 0; dim < sizes.n; dim++) { if (sizes.data[dim] == 0) { return; } }
    for (int64_t k = 0;; k++) {
        if (take) { values[k] = base[pos]; } else { base[pos] += values ? values[k] : 1; }
        for (dim = (int)sizes.n - 1; dim >= 0; dim--) {
            pos += strides.data[dim];
            if (++idx[dim] < sizes.data[dim]) { break; }
            pos -= strides.data[dim] * sizes.data[dim];
            idx[dim] = 0;
        }
        if (dim < 0) { return; }
    }
}
static opd_tensor *opdi_doubles(opd_ints sizes, const opd_tensor *from) {
    opd_tensor *tensor = opd_tensor_new(sizes, OPD_FLOAT64);
    if (!tensor || (from ? opdi_copy(tensor, from) : opdi_fill_with(tensor, opd_value_int(0)))) { return NULL; }
    return tensor;
}
/* Computes as_strided_backward of real numbers: adds grad to a base buffer by the geometry of the result, then reads
   the base by the geometry of the input to `out`.  The base has all elements of both geometries.  Elements of the input
   that share memory share the sum equally (torch/csrc/autograd/FunctionsManual.cpp).  `offset` counts from the input's
   first element.  Returns 0, or -1 and sets an error. */
static int opdi_strided_back(opd_tensor *out, const opd_tensor *grad, const opd_ints *lists, int64_t offset) {
    const opd_ints in = lists[0], in_strides = lists[1], size = lists[2], stride = lists[3];
    const int64_t low = OPDI_MIN(offset, 0);
    opd_tensor *base, *count = NULL;
    for (int64_t i = 0; i < in.n + size.n; i++) {
        if ((i < in.n ? in_strides.data[i] : stride.data[i - in.n]) < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "negative strides are not supported");
        }
    }
    int64_t first = opdi_extent(in.data, in_strides.data, (int)in.n);
    int64_t second = opdi_extent(size.data, stride.data, (int)size.n);
    if (first < 0 || second < 0 || offset > INT64_MAX / 4 || offset < -(INT64_MAX / 4)) {
        return opd_fail(OPD_ERROR_SHAPE, "sizes and strides do not fit into memory");
    }
    /* the usual case: the view has each element of a part of a contiguous input once */
    if (offset >= 0 && second + offset <= first && (out->flags & OPDI_CONTIGUOUS) &&
        opdi_strides_contiguous(in.data, in_strides.data, (int)in.n)) {
        if (!(base = opdi_view(out, size.data, stride.data, (int)size.n, offset))) { return -1; }
        if (!opdi_overlaps_itself(base)) {
            return opdi_fill_with(out, opd_value_int(0)) ? -1 : opdi_copy(base, grad);
        }
    }
    int64_t length = OPDI_MAX(first - low, second + offset - low);
    base = opdi_doubles(opd_ints_of(&length, 1), NULL);
    opd_tensor *values = base ? opdi_doubles(size, grad) : NULL;
    opd_tensor *input = values ? opdi_doubles(in, NULL) : NULL;
    if (!input) { return -1; }
    opdi_walk_strided((double *)(void *)base->data, (double *)(void *)values->data, size, stride, offset - low, false);
    opdi_walk_strided((double *)(void *)base->data, (double *)(void *)input->data, in, in_strides, -low, true);
    if (first < input->numel) {
        double *x = (double *)(void *)input->data;
        if (opdi_fill_with(base, opd_value_int(0)) || !(count = opdi_doubles(in, NULL))) { return -1; }
        opdi_walk_strided((double *)(void *)base->data, NULL, in, in_strides, -low, false);
        opdi_walk_strided((double *)(void *)base->data, (double *)(void *)count->data, in, in_strides, -low, true);
        double *out_row = (double *)(void *)count->data;
        for (int64_t i = 0; i < input->numel; i++) { x[i] /= out_row[i]; }
    }
    return opdi_copy(out, input);
}
/* as_strided_backward.  Complex numbers are computed as pairs of real numbers: with one more dim of size 2, and doubled
   strides. */
static int opdi_as_strided_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0);
    int64_t memory[4][OPD_MAX_DIMS + 1], offset = opd_arg_int(call, 5);
    opd_ints lists[4];
    for (int k = 0; k < 4; k++) { lists[k] = opd_arg_ints(call, k + 1); }
    if (lists[0].n != lists[1].n || lists[2].n != lists[3].n || lists[0].n > OPD_MAX_DIMS ||
        !opdi_has_sizes(grad, lists[2].data, (int)lists[2].n)) {
        return opd_fail(OPD_ERROR_SHAPE, "mismatch in length of strides and shape");
    }
    opd_tensor *out = opd_result(call, 0, lists[0].data, (int)lists[0].n, (opd_scalar_type)grad->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (!opdi_is_complex(grad)) { return opdi_strided_back(out, grad, lists, offset); }
    for (int k = 0; k < 4; k++) {
        const int64_t count = lists[k].n;
        for (int64_t i = 0; i < count; i++) { memory[k][i] = opdi_size_times(lists[k].data[i], k & 1 ? 2 : 1); }
        memory[k][count] = k & 1 ? 1 : 2;
        lists[k] = opd_ints_of(memory[k], count + 1);
    }
    opd_tensor *pairs = opdi_pairs_of(out), *grads = pairs ? opdi_pairs_of(grad) : NULL;
    if (offset > -(INT64_MAX / 4) && offset < INT64_MAX / 4) { offset *= 2; }
    return grads ? opdi_strided_back(pairs, grads, lists, offset) : -1;
}
OPDI_COLD_BEGIN
/* Computes the gradient of as_strided_backward, its transpose: adds grad to a base buffer by the geometry of the input,
   where elements that share memory share the sum equally, then reads the base by the geometry of the result. */
static int opdi_as_strided_backward_bw(opd_backward_call *bw) {
    opd_value values[4];
    int64_t offset = opd_bw_value(bw, 5).u.i, low = OPDI_MIN(offset, 0), step = 1;
    opd_tensor *grad = opd_bw_grad(bw, 0);
    for (int i = 0; i < 4; i++) { values[i] = opd_bw_value(bw, i + 1); }
    opd_ints in = opd_ints_of(values[0].u.ints, values[0].n);
    opd_ints in_strides = opd_ints_of(values[1].u.ints, values[1].n);
    opd_ints size = opd_ints_of(values[2].u.ints, values[2].n);
    opd_ints stride = opd_ints_of(values[3].u.ints, values[3].n);
    int64_t at = opdi_extent(in.data, in_strides.data, (int)in.n);
    int64_t length = OPDI_MAX(at, opdi_extent(size.data, stride.data, (int)size.n) + offset) - low;
    opd_ints whole = opd_ints_of(&length, 1);
    opd_ints one = opd_ints_of(&step, 1);
    if (at < opd_numel(grad)) {
        opd_tensor *base = opd_as_strided_backward(opd_ones_like(grad), whole, one, in, in_strides, -low);
        grad = opd_div(grad, base ? opd_as_strided_full(base, in, in_strides, opd_value_int(-low)) : NULL);
    }
    opd_tensor *base = opd_as_strided_backward(grad, whole, one, in, in_strides, -low);
    return opd_bw_return(bw, 0, opd_as_strided_full(base, size, stride, opd_value_int(offset - low)));
}
/* The batching rule of as_strided_backward: calls the operator once, with the batch dim as one more dim of all sizes
   and strides, so that the base buffers of the examples lie one after another in memory. */
static int opdi_as_strided_backward_batch(opd_call *call) {
    int64_t buffer[4][OPD_MAX_DIMS];
    const int64_t offset = opd_arg_int(call, 5), low = OPDI_MIN(offset, 0), count = opd_batch_size();
    opd_ints lists[4];
    for (int i = 0; i < 4; i++) { lists[i] = opd_arg_ints(call, i + 1); }
    if (lists[0].n != lists[1].n || lists[2].n != lists[3].n) { return opdi_batch_unfit(call); }
    int64_t first = opdi_extent(lists[0].data, lists[1].data, (int)lists[0].n);
    int64_t second = opdi_extent(lists[2].data, lists[3].data, (int)lists[2].n);
    if (first < 0 || second < 0 || offset > INT64_MAX / 4 || offset < -(INT64_MAX / 4)) {
        return opdi_batch_unfit(call);
    }
    for (int i = 0; i < 4; i++) {
        lists[i] = opdi_batch_ints(i & 1 ? OPDI_MAX(first, second + offset) - low : count, lists[i], buffer[i]);
    }
    return opd_batch_return(call, opd_as_strided_backward(opdi_batch_front_arg(call, 0), lists[0], lists[1], lists[2],
                                                          lists[3], offset), 0);
}
/* opd_as_strided_backward: the gradient of as_strided */
OPDI_OP(as_strided_backward) {
    op->schema = "as_strided_backward(Tensor grad_output, SymInt[] input_sizes, SymInt[] input_strides, SymInt[] "
        "size, SymInt[] stride, SymInt storage_offset) -> Tensor";
    op->any = opdi_as_strided_backward_kernel; op->backward = opdi_as_strided_backward_bw;
    op->vmap = opdi_as_strided_backward_batch;
    op->cases = "[2,2], (6), (1), (2,2), (1,1), 1";
}
OPDI_COLD_END
