#include "../ops.h"

//== writing through a view: slice_scatter and similar operators =======================================================

/* Returns a copy of self as result 0 that keeps self's strides, including gaps, as at::clone_preserve_strides does.  If
   elements of self overlap, the copy gets new strides.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_result_preserve_strides(opd_call *call, opd_tensor *self) {
    int64_t strides[OPD_MAX_DIMS];
    if (opdi_overlaps_itself(self)) { opdi_strides_like(self, strides); }
    else { memcpy(strides, opdi_strides(self), (size_t)self->ndim * sizeof *strides); }
    opd_tensor *out = opd_result_strided(call, 0, opdi_sizes(self), strides, self->ndim, (opd_scalar_type)self->dtype,
                                         opd_tensor_device(self));
    return out && out->data && opdi_copy(out, self) ? NULL : out;
}
/* Copies the memory of self and returns a view of the copy that has self's sizes and strides.  The copy begins with the
   first element of self's storage, so the view begins at element `own`.  The copy ends with the last element that self
   or a view with the call's arguments sizes, strides and offset reaches.  The argument offset is also counted from the
   first element of the storage. */
static opd_tensor *opdi_copy_of_memory(opd_call *call, opd_tensor *self, int64_t own) {
    const opd_ints sizes = opd_arg_ints(call, 2), strides = opd_arg_ints(call, 3);
    const int64_t one = 1, offset = opd_arg_is_none(call, 4) ? own : opd_arg_int(call, 4);
    int64_t end = own + opdi_extent(opdi_sizes(self), opdi_strides(self), self->ndim);
    if (sizes.n == strides.n && offset >= 0 && offset < INT64_MAX / 4) {
        end = OPDI_MAX(end, offset + opdi_extent(sizes.data, strides.data, (int)sizes.n));
    }
    opd_tensor *memory = opd_tensor_view(self, &end, &one, 1, 0);
    memory = memory ? opd_clone(memory) : NULL;
    return memory ? opd_tensor_view(memory, opdi_sizes(self), opdi_strides(self), self->ndim, own) : NULL;
}
static int opdi_as_strided_scatter_check(opd_call *call) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    if (!opd_grad_mode_enabled() || !opd_tensor_requires_grad(self)) { return 0; }
    return opd_is_contiguous(self) && (opd_tensor_offset(self) == 0 || opd_arg_is_none(call, 4)) ? 0
        : opd_fail(OPD_ERROR_AUTOGRAD, "as_strided_scatter is currently only supported for contiguous inputs%s",
                   opd_is_contiguous(self) ? " with storage offset 0" : "");
}
/* Runs an operator such as select_scatter: copies src into a view of a copy of self, and returns that copy to the call.
   The view operator `name` makes the view from the call's `nargs` arguments.  If `flat`, the view (as_strided) counts
   elements in memory, so the copy must have the memory layout of self.  Returns 0, or -1 and sets an error. */
static int opdi_view_scatter(opd_call *call, const char *name, int nargs, bool flat) {
    opd_tensor *self = opd_arg_tensor(call, 0), *src = opd_arg_tensor(call, 1), *out, *scratch;
    opd_value values[6];
    opd_op *op = NULL;
    if (flat && opdi_as_strided_scatter_check(call)) { return -1; }
    const int64_t own = flat && !opdi_overlaps_itself(self) ? opd_tensor_offset(self) : 0;
    if (own && !call->targets) {
        scratch = out = opdi_copy_of_memory(call, self, own);
        if (scratch && opd_return_tensor(call, scratch)) { return -1; }
    } else { scratch = out = opdi_updates_self(call) ? self : opdi_result_preserve_strides(call, self); }
    if (out && own && call->targets) { scratch = opdi_copy_of_memory(call, self, own); }
    else if (out && flat && call->targets && !call->inplace) {    /* the out= tensor may have another memory layout */
        scratch = opdi_own(opdi_tensor_make(self->dims, opdi_overlaps_itself(self) ? NULL : opdi_strides(self),
                                            self->ndim, (opd_scalar_type)self->dtype, opdi_place_of(out)));
        if (scratch && scratch->data && opdi_copy(scratch, self)) { return -1; }
    }
    if (!scratch) { return -1; }
    values[0] = opd_value_tensor(scratch);
    for (int i = 1; i < nargs; i++) { values[i] = call->args[i + 1]; }
    opd_tensor *place = opd_call_op(OPD_OP(&op, name), values, nargs);
    if (!place) { return -1; }
    if (!opdi_same_sizes(place, src)) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "expected src to have a size equal to the slice of self. src size = %s, "
                        "slice size = %s",
                        opdi_sizes_text(opdi_sizes(src), src->ndim, first, sizeof first),
                        opdi_sizes_text(opdi_sizes(place), place->ndim, second, sizeof second));
    }
    return out->data && (opdi_copy(place, src) || opdi_staging_store(out, scratch)) ? -1 : 0;
}
static int opdi_view_scatter_backward(opd_backward_call *bw, const char *view, const char *scatter, int nargs,
                                      bool flat) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    /* as_strided counts from the beginning of the memory, so the gradient must not be a view of other memory */
    if (flat) { grad = opd_clone_full(grad, opd_value_int(OPDI_FORMAT_CONTIGUOUS)); }
    opd_value values[7];
    opd_op *op = NULL, *handle = NULL;
    values[0] = opd_value_tensor(grad);
    for (int i = 1; i < nargs; i++) { values[i] = opd_bw_value(bw, i + 1); }
    opd_tensor *part = opd_call_op(OPD_OP(&op, view), values, nargs);
    if (!part) { return -1; }
    OPDI_BW_RETURN(1, part);
    if (!opd_bw_needs(bw, 0)) { return 0; }
    values[1] = opd_value_tensor(opd_zeros_like(part));
    for (int i = 1; i < nargs; i++) { values[i + 1] = opd_bw_value(bw, i + 1); }
    return opd_bw_return(bw, 0, opd_call_op(OPD_OP(&handle, scatter), values, nargs + 1));
}
/* The batching rule of as_strided_scatter: places the examples one after another in memory, and calls the operator
   once, with the batch dim as one more dim of the sizes and strides. */
static int opdi_strided_scatter_batch(opd_call *call) {
    const opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_ints sizes = opd_arg_ints(call, 2), strides = opd_arg_ints(call, 3);
    const int64_t offset = opd_arg_is_none(call, 4) ? 0 : opd_arg_int(call, 4) - opd_tensor_offset(self);
    int64_t buffer[2][OPD_MAX_DIMS];
    if (!(self->flags & OPDI_CONTIGUOUS) || sizes.n != strides.n || offset < 0 || offset > self->numel ||
        opdi_extent(sizes.data, strides.data, (int)sizes.n) > self->numel - offset) { return opdi_batch_unfit(call); }
    opd_tensor *const all = opd_clone_full(opdi_batch_front_arg(call, 0), opd_value_int(OPDI_FORMAT_CONTIGUOUS));
    const opd_ints size = opdi_batch_ints(opd_batch_size(), sizes, buffer[0]),
        stride = opdi_batch_ints(self->numel, strides, buffer[1]);
    return opd_batch_return(call, opd_as_strided_scatter_full(all, opdi_batch_front_arg(call, 1), size, stride,
                                                              opd_value_int(offset)), 0);
}
static int opdi_slice_scatter_kernel(opd_call *call) {
    return opdi_view_scatter(call, OPDI_NAME(slice_Tensor, "aten::slice.Tensor"), 5, false);
}
static int opdi_slice_scatter_backward(opd_backward_call *bw) {
    return opdi_view_scatter_backward(bw, OPDI_NAME(slice_Tensor, "aten::slice.Tensor"),
                                      OPDI_NAME(slice_scatter, "aten::slice_scatter"),
                                      5, false);
}
/* opd_slice_scatter: self, with src written into the view that slice makes */
OPDI_OP(slice_scatter) {
    op->schema = "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt "
        "step=1) -> Tensor";
    op->cpu = op->fake = opdi_slice_scatter_kernel; op->backward = opdi_slice_scatter_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_VIEW_COPY | OPD_OPTAG_CORE;
    op->out = "slice_scatter.out";
    op->cases = "[4,3], [2,3], 0, 1, 3";
}

static int opdi_select_scatter_kernel(opd_call *call) {
    return opdi_view_scatter(call, OPDI_NAME(select_int, "aten::select.int"), 3, false);
}
static int opdi_select_scatter_backward(opd_backward_call *bw) {
    return opdi_view_scatter_backward(bw, OPDI_NAME(select_int, "aten::select.int"),
                                      OPDI_NAME(select_scatter, "aten::select_scatter"),
                                      3, false);
}
/* opd_select_scatter: self, with src written into the view that select makes */
OPDI_OP(select_scatter) {
    op->schema = "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor";
    op->cpu = op->fake = opdi_select_scatter_kernel; op->backward = opdi_select_scatter_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->out = "select_scatter.out";
    op->cases = "[4,3], [4], 1, 2";
}

static int opdi_diagonal_scatter_kernel(opd_call *call) {
    return opdi_view_scatter(call, OPDI_NAME(diagonal, "aten::diagonal"), 4, false);
}
static int opdi_diagonal_scatter_backward(opd_backward_call *bw) {
    return opdi_view_scatter_backward(bw, OPDI_NAME(diagonal, "aten::diagonal"),
                                      OPDI_NAME(diagonal_scatter, "aten::diagonal_scatter"),
                                      4, false);
}
/* opd_diagonal_scatter: self, with src written into the view that diagonal makes */
OPDI_OP(diagonal_scatter) {
    op->schema = "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor";
    op->cpu = op->fake = opdi_diagonal_scatter_kernel; op->backward = opdi_diagonal_scatter_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "diagonal_scatter.out";
    op->cases = "[4,3], [3]";
}

/* Writes value to the elements of self whose coordinates are equal in all dims.  Returns 0, or -1 and sets an error. */
static int opdi_diagonal_fill(opd_tensor *self, opd_value value) {
    opd_tensor *diagonal = self;
    int left = opd_ndim(self);
    while (diagonal && left-- > 1) { diagonal = opd_diagonal_full(diagonal, 0, 0, -1); }
    return diagonal && opd_fill_(diagonal, value) ? 0 : -1;
}
/* Writes value to the diagonal of a matrix that has more rows than columns.  After every columns + 1 rows, the diagonal
   begins again.  Returns 0, or -1 and sets an error. */
static int opdi_diagonal_wrap(opd_tensor *self, opd_value value) {
    const int64_t rows = opd_size(self, 0), columns = opd_size(self, 1), whole = rows / (columns + 1);
    const int64_t sizes[] = {whole, columns + 1}, rest = rows - whole * (columns + 1);
    opd_tensor *blocks = opd_narrow(self, 0, 0, rows - rest);
    blocks = blocks ? opd_unflatten(blocks, 0, opd_ints_of(sizes, 2)) : NULL;
    blocks = blocks ? opd_diagonal_full(blocks, 0, 1, 2) : NULL;
    if (!blocks || !opd_fill_(blocks, value)) { return -1; }
    opd_tensor *const last = rest ? opd_narrow(self, 0, rows - rest, rest) : NULL;
    return rest ? (last ? opdi_diagonal_fill(last, value) : -1) : 0;
}
static int opdi_fill_diagonal_kernel(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const opd_value value = opd_arg_value(call, 1);
    const int ndim = opd_ndim(self);
    if (ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "self must have 2 dimensions or more, but has %d", ndim);
    }
    for (int dim = 1; ndim > 2 && dim < ndim; dim++) {
        if (opd_size(self, dim) != opd_size(self, 0)) {
            return opd_fail(OPD_ERROR_SHAPE, "all dimensions of self must have the same size if it has more than 2, "
                            "but got %lld and %lld", (long long)opd_size(self, 0), (long long)opd_size(self, dim));
        }
    }
    const bool wrap = ndim == 2 && opd_arg_bool(call, 2) && opd_size(self, 0) > opd_size(self, 1) + 1;
    const int rc = wrap ? opdi_diagonal_wrap(self, value) : opdi_diagonal_fill(self, value);
    return rc ? -1 : opd_return_tensor(call, self);
}
/* opd_fill_diagonal_: writes value where all coordinates are equal; if wrap, repeats the diagonal down a tall matrix */
OPDI_OP(fill_diagonal_) {
    op->schema = "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)";
    op->composite = opdi_fill_diagonal_kernel;
    op->cases = "[3,4], 2; [7,2], 0.5, True; [3,3,3], 1";
}

static int opdi_as_strided_scatter_kernel(opd_call *call) {
    return opdi_view_scatter(call, OPDI_NAME(as_strided, "aten::as_strided"), 4, true);
}
static int opdi_as_strided_scatter_backward(opd_backward_call *bw) {
    return opdi_view_scatter_backward(bw, OPDI_NAME(as_strided, "aten::as_strided"),
                                      OPDI_NAME(as_strided_scatter, "aten::as_strided_scatter"),
                                      4, true);
}
/* opd_as_strided_scatter: self, with src written into the view that as_strided makes */
OPDI_OP(as_strided_scatter) {
    op->schema = "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? "
        "storage_offset=None) -> Tensor";
    op->cpu = op->fake = opdi_as_strided_scatter_kernel; op->backward = opdi_as_strided_scatter_backward;
    op->vmap = opdi_strided_scatter_batch;
    op->out = "as_strided_scatter.out";
    op->cases = "[4,3], [2,2], (2,2), (3,1), 1";
}
