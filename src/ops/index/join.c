#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:join      joining and padding
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== joining ===========================================================================================================

static bool opdi_cat_skips(const opd_tensor *tensor) { return tensor->ndim == 1 && tensor->numel == 0; }
/* Copies tensor into out along dim, starting at index `at`.  Returns 0, or -1 and sets an error. */
static int opdi_cat_piece(opd_tensor *out, int dim, int64_t at, const opd_tensor *tensor) {
    const int64_t inner = opdi_span_of(opdi_sizes(out), dim + 1, out->ndim), outer = opdi_span_of(opdi_sizes(out), 0,
            dim);
    const int64_t es = (int64_t)opd_dtype_size((opd_scalar_type)out->dtype),
        count = opdi_sizes(tensor)[dim] * inner * es;
    const int64_t row = opdi_sizes(out)[dim] * inner * es;
    int rc = -1;
    if (tensor->numel == 0) { return 0; }
    if (tensor->dtype == out->dtype && (tensor->flags & out->flags & OPDI_CONTIGUOUS) &&
        (outer == 1 || tensor->numel < 4 * OPDI_GRAIN) && tensor->numel < 32 * OPDI_GRAIN) {
        char *dst = out->data + at * inner * es;
        if (count == es) {
            opdi_scatter(dst, row, tensor->data, es, outer, (int)es);
            return 0;
        }
        for (int64_t o = 0; o < outer; o++) { opdi_move(dst + o * row, tensor->data + o * count, (size_t)count); }
        return 0;
    }
    OPD_SCOPE {
        opd_tensor *piece = opdi_view(out, opdi_sizes(tensor), opdi_strides(out), out->ndim,
                                      at * opdi_strides(out)[dim]);
        rc = piece ? opdi_copy(piece, tensor) : -1;
    }
    return rc;
}
/* A job that joins tensors row by row: each row of out consists of one piece of each tensor.  row: bytes of a row of
   out; inner: bytes of an element of dim. */
typedef struct opdi_cat_job { opd_tensors list; char *out; int64_t row, inner; int dim; } opdi_cat_job;
static void opdi_cat_rows(void *ctx, int64_t begin, int64_t end) {
    enum { ROWS = 16 };                           /* of each tensor that are copied in turn */
    const opdi_cat_job *job = (const opdi_cat_job *)ctx;
    for (int64_t i = begin; i < end; i += ROWS) {
        char *to = job->out + i * job->row;
        for (int64_t k = 0; k < job->list.n; k++) {
            const opd_tensor *tensor = job->list.data[k];
            if (tensor->numel == 0) { continue; }
            const int64_t bytes = opdi_sizes(tensor)[job->dim] * job->inner;
            opdi_copy_whole_rows(to, job->row, tensor->data + i * bytes, bytes, OPDI_MIN(end - i, (int64_t)ROWS),
                                 bytes);
            to += bytes;
        }
    }
}
/* Joins contiguous tensors of out's dtype row by row.  Returns false and does nothing if the tensors are not such
   tensors, or if their pieces of a row are very short or very long. */
static bool opdi_cat_by_rows(opd_tensor *out, opd_tensors list, int dim) {
    const int64_t outer = opdi_span_of(opdi_sizes(out), 0, dim);
    opdi_cat_job job;
    job.list = list;
    job.out = out->data;
    job.dim = dim;
    job.inner = opdi_span_of(opdi_sizes(out), dim + 1, out->ndim);
    job.inner *= (int64_t)opd_dtype_size((opd_scalar_type)out->dtype);
    job.row = opdi_sizes(out)[dim] * job.inner;
    if (outer < 2 || !(out->flags & OPDI_CONTIGUOUS) || job.row < 64 * list.n || job.row > 65536) { return false; }
    for (int64_t k = 0; k < list.n; k++) {
        if (list.data[k]->dtype != out->dtype || !(list.data[k]->flags & OPDI_CONTIGUOUS)) { return false; }
    }
    opdi_parallel_for(outer, OPDI_MAX((int64_t)1, 4 * OPDI_GRAIN / job.row), opdi_cat_rows, &job);
    return true;
}
/* Sets sizes to the sizes of the list's tensors joined along dim.  `first` is the first tensor that is not left out
   (see opdi_cat_skips).  Returns 0, or -1 and sets an error. */
static int opdi_cat_sizes(opd_tensors list, const opd_tensor *first, int dim, int64_t *sizes) {
    memcpy(sizes, opdi_sizes(first), sizeof *sizes * first->ndim);
    sizes[dim] = 0;
    for (int64_t k = 0; k < list.n; k++) {
        const opd_tensor *tensor = list.data[k];
        if (opdi_cat_skips(tensor)) { continue; }
        if (tensor->ndim != first->ndim) {
            return opd_fail(OPD_ERROR_SHAPE, "Tensors must have same number of dimensions: got %d and %d", first->ndim,
                            tensor->ndim);
        }
        for (int axis = 0; axis < tensor->ndim; axis++) {
            if (axis != dim && opdi_sizes(tensor)[axis] != sizes[axis]) {
                return opd_fail(OPD_ERROR_SHAPE, "Sizes of tensors must match except in dimension %d. Expected size "
                                "%lld but got size %lld for tensor number %lld in the list.",
                                dim, (long long)sizes[axis], (long long)opdi_sizes(tensor)[axis], (long long)k);
            }
        }
        sizes[dim] = opdi_size_plus(sizes[dim], opdi_sizes(tensor)[dim]);
    }
    return 0;
}
/* Returns true if all tensors of the list are stored channels last.  Then the joined tensor is, too. */
static bool opdi_cat_is_last(opd_tensors list) {
    for (int64_t k = 0; k < list.n; k++) { if (!opdi_is_channels_last(list.data[k])) { return false; } }
    return true;
}
/* cat: joins the tensors of a list along dim, in the dtype that they promote to.  Tensors of size [0] are left out. */
static int opdi_cat_kernel(opd_call *call) {
    opd_tensors list = opd_arg_tensors(call, 0);
    const opd_tensor *first = NULL;
    int64_t sizes[OPD_MAX_DIMS], at = 0;
    int dim = 0;
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "cat: expected a non-empty list of Tensors"); }
    for (int64_t k = 0; k < list.n; k++) {
        if (list.data[k]->ndim == 0) {
            return opd_fail(OPD_ERROR_SHAPE, "zero-dimensional tensor (at position %lld) cannot be concatenated",
                            (long long)k);
        }
        if (!first && !opdi_cat_skips(list.data[k])) { first = list.data[k]; }
    }
    if (!first) {
        if (opdi_dim_of(opd_arg_int(call, 1), 1) < 0) { return -1; }
        sizes[0] = 0;
        return opd_result(call, 0, sizes, 1, opdi_result_type(list.data, (int)list.n)) ? 0 : -1;
    }
    dim = opdi_dim_of(opd_arg_int(call, 1), first->ndim);
    if (dim < 0 || opdi_cat_sizes(list, first, dim, sizes)) { return -1; }
    opd_tensor *out = opdi_result_format(call, 0, opdi_cat_is_last(list), sizes, first->ndim,
                                         opdi_result_type(list.data, (int)list.n));
    if (!out || !out->data) { return out ? 0 : -1; }
    if (opdi_cat_by_rows(out, list, dim)) { return 0; }
    for (int64_t k = 0; k < list.n; k++) {
        if (opdi_cat_skips(list.data[k])) { continue; }
        if (opdi_cat_piece(out, dim, at, list.data[k])) { return -1; }
        at += opdi_sizes(list.data[k])[dim];
    }
    return 0;
}
/* Computes the gradient of cat: each tensor gets its part of grad, or zeros if it was left out.  Returns 0, or -1 and
   sets an error. */
static int opdi_cat_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    int64_t at = 0;
    const opd_tensors list = opd_bw_tensors(bw, 0);
    int dim = opdi_dim_of(opd_bw_value(bw, 1).u.i, grad->ndim);
    for (int k = 0; k < (int)list.n && dim >= 0; k++) {
        const opd_tensor *tensor = list.data[k];
        if (opdi_cat_skips(tensor)) {
            if (opd_bw_needs_at(bw, 0, k) && opd_bw_return_at(bw, 0, k, opd_new_zeros(grad, opdi_sizes_of(tensor)))) {
                return -1;
            }
            continue;
        }
        if (opd_bw_needs_at(bw, 0, k)) {
            opd_tensor *part = opdi_maybe_narrow(grad, dim, at, opdi_sizes(tensor)[dim]);
            if (opd_bw_return_at(bw, 0, k, part)) { return -1; }
        }
        at += opdi_sizes(tensor)[dim];
    }
    return dim < 0 ? -1 : 0;
}
/* Runs the fallback of an operator that takes a list of tensors.  An empty list has no tensor to dispatch on; then the
   CPU kernel runs and reports the error. */
static int opdi_list_of_none(opd_call *call) {
    return opd_arg_tensors(call, 0).n ? opdi_hidden_fallback(call) : opd_op_card(call->op)->cpu(call);
}
/* The batching rule of cat (`more` is 0) and stack (`more` is 1).  `more` is the number of dims that the operator
   adds. */
static int opdi_join_batch(opd_call *call, int more) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    opd_tensor **all = (opd_tensor **)opdi_scope_alloc(((size_t)list.n + 1) * sizeof *all);
    int at, dim = opdi_dim_of(opd_arg_int(call, 1), list.data[0]->ndim + more);
    for (int64_t k = 0; all && k < list.n; k++) {
        opd_tensor *tensor = opd_batch_value(list.data[k], &at);
        if (list.data[k]->ndim != list.data[0]->ndim || list.data[k]->ndim + more == 0) {
            return opdi_batch_unfit(call);
        }
        if (!(all[k] = opd_batch_front(tensor, at))) { return -1; }
    }
    if (!all || dim < 0) { return -1; }
    return opd_batch_return(call, more ? opd_stack(opd_tensors_of(all, list.n), dim + 1)
                            : opd_cat(opd_tensors_of(all, list.n), dim + 1), 0);
}
static int opdi_cat_batch(opd_call *call) { return opdi_join_batch(call, 0); }
static int opdi_stack_batch(opd_call *call) { return opdi_join_batch(call, 1); }
/* opd_cat(tensors, dim): joins tensors along an existing dim */
OPDI_OP(cat) {
    op->schema = "cat(Tensor[] tensors, int dim=0) -> Tensor";
    op->cpu = op->fake = opdi_cat_kernel; op->any = opdi_list_of_none; op->backward = opdi_cat_backward;
    op->save = "tensors.sizes"; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_cat_batch; op->autocast = OPD_AUTOCAST_PROMOTE_CPU;
    op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->out = "cat.out";
    op->cases = "{[2,3], [1,3]}; {[2,3], [2,2]}, 1";
}

/* Two arrays that are interleaved: to[2 i] is first[i], to[2 i + 1] is second[i].  Elements have 8 bytes if `wide`,
   else 4. */
typedef struct opdi_interleave_job { const void *first, *second; void *to; bool wide; } opdi_interleave_job;
OPDI_COLD_END
OPDI_LOOPS_BEGIN
static void opdi_interleave_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_interleave_job *turns = (const opdi_interleave_job *)ctx;
    const opdi_word64 *a = (const opdi_word64 *)turns->first + begin, *b = (const opdi_word64 *)turns->second + begin;
    const opdi_word32 *x = (const opdi_word32 *)turns->first, *y = (const opdi_word32 *)turns->second;
    opdi_word64 *wide = (opdi_word64 *)turns->to + 2 * begin;
    opdi_word32 *to = (opdi_word32 *)turns->to + 2 * begin;
    int64_t i, count = end - begin;
    x += begin;
    y += begin;
    if (turns->wide) {
        OPDI_COLUMN_EACH(wide[2 * j] = a[j];
                         wide[2 * j + 1] = b[j])
        return;
    }
    OPDI_COLUMN_EACH(to[2 * j] = x[j];
                     to[2 * j + 1] = y[j])
}
OPDI_LOOPS_END
OPDI_COLD_BEGIN
/* Stacks two tensors along a new last dim, which interleaves their elements.  Returns false and does nothing unless all
   tensors are contiguous, on the CPU and of the same dtype with 4 or 8 bytes. */
static bool opdi_stack_interleaved(opd_tensor *out, opd_tensors list) {
    const size_t size = opd_dtype_size(OPDI_DTYPE(out));
    if (list.n != 2 || (size != 4 && size != 8) || !(out->flags & OPDI_CONTIGUOUS) || opdi_on_device(out)) {
        return false;
    }
    for (int k = 0; k < 2; k++) {
        const opd_tensor *tensor = list.data[k];
        if (tensor->dtype != out->dtype || (tensor->flags & (OPDI_CONTIGUOUS | OPDI_LAZY)) != OPDI_CONTIGUOUS ||
            opdi_on_device(tensor)) {
            return false;
        }
    }
    opdi_interleave_job turns = {list.data[0]->data, list.data[1]->data, out->data, size == 8};
    opdi_parallel_for(list.data[0]->numel, OPDI_GRAIN, opdi_interleave_range, &turns);
    return true;
}
/* Makes the result of stack, with sizes [ndim + 1], where ndim is the number of dims of the list's tensors.  If the
   tensors are stored channels last, and `dim` is not behind all their dims, the result lies in memory like the tensors
   joined by cat along dim.  Returns the result, or NULL and sets an error. */
static opd_tensor *opdi_stack_result(opd_call *call, opd_tensors list, int dim, const int64_t *sizes) {
    const opd_tensor *first = list.data[0];
    const opd_scalar_type dtype = opdi_result_type(list.data, (int)list.n);
    int64_t joined[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    if (dim == first->ndim || !opdi_cat_is_last(list)) { return opd_result(call, 0, sizes, first->ndim + 1, dtype); }
    memcpy(joined, opdi_sizes(first), sizeof *joined * first->ndim);
    joined[dim] = opdi_size_times(joined[dim], list.n);
    (void)opdi_strides_format(joined, first->ndim, opdi_format_of(first), strides);
    memmove(strides + dim + 1, strides + dim, sizeof *strides * (size_t)(first->ndim - dim));
    strides[dim] = strides[dim + 1] * opdi_sizes(first)[dim];
    return opd_result_strided(call, 0, sizes, strides, first->ndim + 1, dtype, opdi_call_device(call));
}
/* stack: joins the tensors of a list, which have the same sizes, along a new dim.  The result has the dtype to which
   they promote. */
static int opdi_stack_kernel(opd_call *call) {
    opd_tensors list = opd_arg_tensors(call, 0);
    int64_t sizes[OPD_MAX_DIMS];
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "stack expects a non-empty TensorList"); }
    const opd_tensor *first = list.data[0];
    int dim = opdi_dim_of(opd_arg_int(call, 1), first->ndim + 1);
    if (dim < 0) { return -1; }
    if (first->ndim == OPD_MAX_DIMS) { return opdi_dims_fail(first->ndim + 1); }
    for (int64_t k = 1; k < list.n; k++) {
        if (!opdi_same_sizes(first, list.data[k])) {
            char left[256], second[256];
            return opd_fail(OPD_ERROR_SHAPE, "stack expects each tensor to be equal size, but got %s at entry 0 and "
                            "%s at entry %lld", opdi_sizes_text(opdi_sizes(first), first->ndim, left, sizeof left),
                            opdi_sizes_text(opdi_sizes(list.data[k]), list.data[k]->ndim, second, sizeof second),
                            (long long)k);
        }
    }
    for (int axis = 0; axis <= first->ndim; axis++) {
        sizes[axis] = axis == dim ? list.n : opdi_sizes(first)[axis - (axis > dim)];
    }
    opd_tensor *out = opdi_stack_result(call, list, dim, sizes);
    if (!out || !out->data || (dim == first->ndim && opdi_stack_interleaved(out, list))) { return out ? 0 : -1; }
    for (int64_t k = 0; k < list.n; k++) {
        int64_t strides[OPD_MAX_DIMS];
        const opd_tensor *tensor = list.data[k];
        int rc = -1;
        for (int axis = 0; axis <= first->ndim; axis++) {
            strides[axis] = axis == dim ? 0 : opdi_strides(tensor)[axis - (axis > dim)];
        }
        sizes[dim] = 1;
        OPD_SCOPE {
            opd_tensor *wide = opdi_view(list.data[k], sizes, strides, first->ndim + 1, 0);
            rc = wide ? opdi_cat_piece(out, dim, k, wide) : -1;
        }
        if (rc) { return -1; }
    }
    return 0;
}
static int opdi_stack_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const int64_t dim = opd_bw_value(bw, 1).u.i, count = grad->ndim ? opd_size(grad, (int)dim) : 0;
    for (int k = 0; k < (int)count; k++) {
        if (opd_bw_needs_at(bw, 0, k) && opd_bw_return_at(bw, 0, k, opdi_maybe_select(grad, dim, k))) { return -1; }
    }
    return 0;
}
/* opd_stack(tensors, dim): joins tensors along a new dim */
OPDI_OP(stack) {
    op->schema = "stack(Tensor[] tensors, int dim=0) -> Tensor";
    op->cpu = op->fake = opdi_stack_kernel; op->any = opdi_list_of_none; op->backward = opdi_stack_backward;
    op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_stack_batch; op->autocast = OPD_AUTOCAST_PROMOTE_CPU;
    op->out = "stack.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2,3], [2,3]}; {[2,3], [2,3]}, 1; {[], []}";
}

/* Runs hstack, vstack, dstack, column_stack and row_stack: gives every tensor at least `least` dims, then joins the
   tensors along dim.  If `column`, vectors are first converted to columns.  `name` is used in messages.  Returns 0, or
   -1 and sets an error. */
static int opdi_stack_like(opd_call *call, int least, int dim, bool column, const char *name) {
    opd_tensors list = opd_arg_tensors(call, 0);
    const size_t bytes = (size_t)list.n * sizeof(opd_tensor *);
    int rc = 0;
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "%s expects a non-empty TensorList", name); }
    opd_tensor **wide = (opd_tensor **)opdi_alloc(bytes);
    if (!wide) { return -1; }
    for (int64_t k = 0; k < list.n && rc == 0; k++) {
        opd_tensor *tensor = list.data[k];
        int64_t sizes[3];
        if (tensor->ndim < least) {
            const int64_t at = tensor->ndim ? opdi_sizes(tensor)[0] : 1;
            sizes[0] = column ? at : least == 1 ? at : 1;
            sizes[1] = column ? 1 : tensor->ndim == 2 ? opdi_sizes(tensor)[1] : at;
            sizes[2] = 1;
            if (tensor->ndim == 2) { sizes[0] = opdi_sizes(tensor)[0]; }
            tensor = opdi_maybe_reshape(tensor, sizes, least);
        }
        wide[k] = tensor;
        rc = tensor ? 0 : -1;
    }
    if (rc == 0) {
        if (dim == 1 && !column && wide[0]->ndim == 1) { dim = 0; }
        opd_tensor *result = opd_cat(opd_tensors_of(wide, list.n), dim);
        rc = opd_return_tensor(call, result);
    }
    opdi_free(wide, bytes);
    return rc;
}
static int opdi_hstack_kernel(opd_call *call) { return opdi_stack_like(call, 1, 1, false, "hstack"); }
static int opdi_vstack_kernel(opd_call *call) { return opdi_stack_like(call, 2, 0, false, "vstack"); }
static int opdi_dstack_kernel(opd_call *call) { return opdi_stack_like(call, 3, 2, false, "dstack"); }
static int opdi_column_stack_kernel(opd_call *call) { return opdi_stack_like(call, 2, 1, true, "column_stack"); }
static int opdi_concat_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_cat(opd_arg_tensors(call, 0), opd_arg_int(call, 1)));
}
/* opd_hstack: joins tensors along dim 1 (vectors: along dim 0) */
OPDI_OP(hstack) {
    op->schema = "hstack(Tensor[] tensors) -> Tensor";
    op->composite = opdi_hstack_kernel;
    op->out = "hstack.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2,3], [2,2]}; {[2], [3]}";
}
/* opd_vstack: joins tensors along dim 0; vectors count as rows */
OPDI_OP(vstack) {
    op->schema = "vstack(Tensor[] tensors) -> Tensor";
    op->composite = opdi_vstack_kernel;
    op->out = "vstack.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2,3], [1,3]}; {[2], [2]}";
}
/* opd_dstack: joins tensors along dim 2, after adding dims until each has three */
OPDI_OP(dstack) {
    op->schema = "dstack(Tensor[] tensors) -> Tensor";
    op->composite = opdi_dstack_kernel;
    op->out = "dstack.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2,3], [2,3]}; {[2], [2]}";
}
/* opd_column_stack: joins tensors along dim 1; vectors count as columns */
OPDI_OP(column_stack) {
    op->schema = "column_stack(Tensor[] tensors) -> Tensor";
    op->composite = opdi_column_stack_kernel;
    op->out = "column_stack.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2], [2,3]}";
}
/* opd_row_stack: the same as vstack */
OPDI_OP(row_stack) {
    op->schema = "row_stack(Tensor[] tensors) -> Tensor";
    op->composite = opdi_vstack_kernel;
    op->out = "row_stack.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2], [2]}";
}
/* opd_concat: the same as cat */
OPDI_OP(concat) {
    op->schema = "concat(Tensor[] tensors, int dim=0) -> Tensor";
    op->composite = opdi_concat_kernel;
    op->out = "concat.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2,3], [1,3]}";
}
/* opd_concatenate: the same as cat */
OPDI_OP(concatenate) {
    op->schema = "concatenate(Tensor[] tensors, int dim=0) -> Tensor";
    op->composite = opdi_concat_kernel;
    op->out = "concatenate.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_APART;
    op->cases = "{[2,3], [1,3]}";
}

/* Checks the list of tensors of _chunk_cat.  dim must already be nonnegative.  Returns 0, or -1 and sets an error. */
static int opdi_chunk_check(opd_tensors list, int dim) {
    for (int64_t i = 0; i < list.n; i++) {
        const opd_tensor *tensor = list.data[i];
        if (tensor->numel == 0) {
            return opd_fail(OPD_ERROR_SHAPE, "_chunk_cat expects non-empty tensor");
        }
        if (tensor->dtype != list.data[0]->dtype) {
            return opd_fail(OPD_ERROR_DTYPE, "_chunk_cat expects all input tensors with the same dtype");
        }
        if (dim >= tensor->ndim) {
            return opd_fail(OPD_ERROR_SHAPE, "_chunk_cat expects dim < ndim for all input tensors");
        }
        if (memcmp(opdi_sizes(tensor), opdi_sizes(list.data[0]), (size_t)dim * sizeof(int64_t)) != 0) {
            return opd_fail(OPD_ERROR_SHAPE, "_chunk_cat expects same sizes of 0,...,dim-1 dimensions for all tensors");
        }
    }
    return 0;
}
/* Returns tensor [a..., n, b...] as [a..., chunks, rest], where n is at `dim` and is padded with zeros to a multiple of
   `chunks`. */
static opd_tensor *opdi_chunk_rows(opd_tensor *tensor, int dim, int64_t chunks) {
    int64_t pad[2 * OPD_MAX_DIMS] = {0}, sizes[OPD_MAX_DIMS + 1];
    const int after = tensor->ndim - 1 - dim;
    const int64_t over = opdi_sizes(tensor)[dim] % chunks;
    if (dim + 2 > OPD_MAX_DIMS) {
        (void)opdi_dims_fail(dim + 2);
        return NULL;
    }
    for (int i = 0; i < dim; i++) { sizes[i] = opdi_sizes(tensor)[i]; }
    sizes[dim] = chunks;
    sizes[dim + 1] = -1;
    pad[2 * after + 1] = chunks - over;
    if (over) { tensor = opd_constant_pad_nd(tensor, opd_ints_of(pad, 2 * after + 2)); }
    return tensor ? opd_reshape(tensor, opd_ints_of(sizes, dim + 2)) : NULL;
}
static int opdi_chunk_cat_kernel(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    const int64_t chunks = opd_arg_int(call, 2);
    opd_tensor **rows = opdi_list_alloc(list.n);
    if (chunks < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "_chunk_cat expects positive num_chunks"); }
    if (list.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "_chunk_cat expects a non-empty input tensor list"); }
    const int dim = opdi_dim_of(opd_arg_int(call, 1), list.data[0]->ndim);
    if (!rows || dim < 0 || opdi_chunk_check(list, dim)) { return -1; }
    for (int64_t i = 0; i < list.n; i++) {
        if (!(rows[i] = opdi_chunk_rows(list.data[i], dim, chunks))) { return -1; }
    }
    return opd_return_tensor(call, opd_cat(opd_tensors_of(rows, list.n), dim + 1));
}
/* opd__chunk_cat: cuts dim of each tensor into num_chunks chunks, flattens each chunk, and joins the chunks that have
   the same number */
OPDI_OP(_chunk_cat) {
    op->schema = "_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor";
    op->composite = opdi_chunk_cat_kernel;
    op->out = "_chunk_cat.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "{[3,4], [5,4]}, 0, 2; {[2,3], [2,2,2]}, 1, 2; {[3]}, -1, 2";
}

//== block_diag ========================================================================================================

/* Sets *rows and *columns to the size of tensor i as a block.  A vector [n] counts as a row, a tensor without dims as a
   1 x 1 block.  Returns 0, or -1 and sets an error. */
static int opdi_block_of(const opd_tensor *tensor, int i, int64_t *rows, int64_t *columns) {
    if (tensor->ndim > 2) {
        return opd_fail(OPD_ERROR_SHAPE, "block_diag: Input tensors must have 2 or fewer dimensions. Input %d "
                        "has %d dimensions", i, tensor->ndim);
    }
    *rows = tensor->ndim == 2 ? opdi_sizes(tensor)[0] : 1;
    *columns = tensor->ndim ? opdi_sizes(tensor)[tensor->ndim - 1] : 1;
    return 0;
}
static int opdi_block_diag_kernel(opd_call *call) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    opd_tensor **bands = opdi_list_alloc(list.n);
    int64_t total = 0, at = 0, sizes[2], pad[2];
    if (list.n == 0) { return opd_return_tensor(call, opd_empty(OPD_INTS(1, 0), OPD_FLOAT32)); }
    for (int i = 0; i < list.n; i++) {
        if (opdi_block_of(list.data[i], i, &sizes[0], &sizes[1])) { return -1; }
        total = opdi_size_plus(total, sizes[1]);
    }
    for (int i = 0; i < list.n && bands; i++) {
        if (opdi_block_of(list.data[i], i, &sizes[0], &sizes[1])) { return -1; }
        pad[0] = at;
        at += sizes[1];
        pad[1] = total - at;
        bands[i] = opdi_reshape_to(list.data[i], sizes, 2);
        bands[i] = bands[i] ? opd_constant_pad_nd(bands[i], opd_ints_of(pad, 2)) : NULL;
        if (!bands[i]) { return -1; }
    }
    return opd_return_tensor(call, bands ? opd_cat(opd_tensors_of(bands, list.n), 0) : NULL);
}
static int opdi_block_diag_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_tensors list = opd_bw_tensors(bw, 0);
    int64_t row = 0, column = 0, sizes[2];
    for (int i = 0; i < (int)list.n; i++) {
        const opd_tensor *tensor = list.data[i];
        if (opdi_block_of(tensor, i, &sizes[0], &sizes[1])) { return -1; }
        if (opd_bw_needs_at(bw, 0, i)) {
            opd_tensor *part = opdi_maybe_narrow(opdi_maybe_narrow(grad, 0, row, sizes[0]), 1, column, sizes[1]);
            part = part ? opdi_reshape_to(part, opdi_sizes(tensor), tensor->ndim) : NULL;
            if (opd_bw_return_at(bw, 0, i, part)) { return -1; }
        }
        row += sizes[0];
        column += sizes[1];
    }
    return 0;
}
/* opd_block_diag: a matrix with the tensors as blocks on its diagonal, and zeros elsewhere */
OPDI_OP(block_diag) {
    op->schema = "block_diag(Tensor[] tensors) -> Tensor";
    op->any = opdi_block_diag_kernel; op->backward = opdi_block_diag_backward; op->save = "tensors.sizes";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "block_diag.out";
    op->cases = "{[2,3], [1,2]}; {[2], [], [2,2]}; {[0,2], [2,1]}";
}

//== padding ===========================================================================================================

/* constant_pad_nd: surrounds self with `value`.  `pad` has two sizes per dim, before and after, beginning with the last
   dim.  Negative sizes cut elements off. */
static int opdi_constant_pad_nd_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS], inside[OPD_MAX_DIMS], at = 0, from = 0;
    int ndim = self->ndim;
    if (pad.n % 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Length of pad must be even but instead it equals %lld", (long long)pad.n);
    }
    if (pad.n > 2 * ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Length of pad should be no more than twice the number of dimensions of the "
                        "input. Pad length is %lld while the input has %d dimensions.", (long long)pad.n, ndim);
    }
    for (int dim = 0; dim < ndim; dim++) {
        const int k = 2 * (ndim - 1 - dim);
        const int64_t low = k < pad.n ? pad.data[k] : 0, high = k < pad.n ? pad.data[k + 1] : 0,
            size = opdi_sizes(self)[dim];
        if (low > INT64_MAX / 4 || high > INT64_MAX / 4 || low < -size || high < -size) {
            sizes[dim] = low < 0 || high < 0 ? -1 : INT64_MAX;
        }
        else { sizes[dim] = size + low + high; }
        if (sizes[dim] < 0) {
            return opd_fail(OPD_ERROR_SHAPE, "The input size %lld, plus negative padding %lld and %lld, resulted in a "
                            "negative output size, which is invalid. "
                            "Check dimension %d of your input.", (long long)size, (long long)low, (long long)high, dim);
        }
        inside[dim] = size + OPDI_MIN(low, (int64_t)0) + OPDI_MIN(high, (int64_t)0);
        if (inside[dim] < 0) { inside[dim] = 0; }
    }
    opd_tensor *out = opdi_result_format(call, 0, opdi_is_channels_last(self), sizes, ndim, OPDI_DTYPE(self));
    if (!out || !out->data) { return out ? 0 : -1; }
    for (int dim = 0; dim < ndim; dim++) {
        const int k = 2 * (ndim - 1 - dim);
        const int64_t low = k < pad.n ? pad.data[k] : 0;
        if (low > 0) { at += low * opdi_strides(out)[dim]; } else { from -= low * opdi_strides(self)[dim]; }
    }
    opd_tensor *fill = opdi_scalar_as_tensor(opd_arg_value(call, 2), (opd_scalar_type)self->dtype);
    if (!fill || (out->numel && !opdi_same_sizes(out, self) && opdi_copy(out, fill))) { return -1; }
    if (opdi_span_of(inside, 0, ndim) == 0) { return out->numel ? opdi_copy(out, fill) : 0; }
    opd_tensor *dst = opdi_view(out, inside, opdi_strides(out), ndim, at);
    opd_tensor *src = opdi_view(self, inside, opdi_strides(self), ndim, from);
    if (opdi_same_sizes(out, self) && opdi_copy(out, fill)) { return -1; }
    return dst && src ? opdi_copy(dst, src) : -1;
}
static int opdi_constant_pad_nd_backward(opd_backward_call *bw) {
    const opd_value pad = opd_bw_value(bw, 1);
    int64_t minus[2 * OPD_MAX_DIMS];
    for (int i = 0; i < pad.n && i < 2 * OPD_MAX_DIMS; i++) { minus[i] = -pad.u.ints[i]; }
    return opd_bw_return(bw, 0, opd_constant_pad_nd(opd_bw_grad(bw, 0), opd_ints_of(minus, pad.n)));
}
static int opdi_constant_pad_nd_batch(opd_call *call) {
    if (call->args[1].n > 2 * call->args[0].u.t->ndim) { return opdi_batch_unfit(call); }
    return opd_batch_return(call, opd_constant_pad_nd_full(opdi_batch_front_arg(call, 0), opd_arg_ints(call, 1),
                                                           opd_arg_value(call, 2)), 0);
}
/* opd_constant_pad_nd: surrounds self with value; pad has two sizes per dim, before and after, from the last dim on */
OPDI_OP(constant_pad_nd) {
    op->schema = "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor";
    op->cpu = op->fake = opdi_constant_pad_nd_kernel; op->backward = opdi_constant_pad_nd_backward;
    op->vmap = opdi_constant_pad_nd_batch; op->tags = OPD_OPTAG_CORE;
    op->out = "constant_pad_nd.out";
    op->cases = "[2,3], (1,2); [2,3], (1,-1,0,2), 1.5";
}
OPDI_COLD_END

enum { OPDI_PAD_REPLICATE, OPDI_PAD_REFLECT, OPDI_PAD_CIRCULAR };
/* A padding of the last n <= 3 dims with elements of the tensor: out[i, j, k] = in[map[0][i], map[1][j], map[2][k]].
   If `back` is true, the job computes the gradient: adds each element of out to the element of in that it was copied
   from. */
typedef struct opdi_pad_job {
    char *in, *out;
    int64_t planes, in_size[3], out_size[3];
    int64_t *map[3];                              /* input coordinate of each output coordinate */
    int64_t first, last;                          /* columns [first, last) of the output are neighbours in the input */
    int size, compute;
    bool back;
} opdi_pad_job;
static int64_t opdi_pad_map(int64_t i, int64_t low, int64_t count, int how) {
    i -= low;
    if (how == OPDI_PAD_REPLICATE) { return i < 0 ? 0 : i >= count ? count - 1 : i; }
    if (how == OPDI_PAD_CIRCULAR) { return i < 0 ? i + count : i >= count ? i - count : i; }
    return i < 0 ? -i : i >= count ? 2 * (count - 1) - i : i;
}
#define OPDI_PAD_ROW_MOVE(type) {                                                                           \
        const type *first = (const type *)(const void *)pad_job->in + x;                                    \
        type *second = (type *)(void *)pad_job->out + y;                                                    \
        for (int64_t k = 0; k < pad_job->first; k++) { second[k] = first[masks[k]]; }                       \
        if (pad_job->first < pad_job->last) {                                                               \
            opdi_move(second + pad_job->first, first + masks[pad_job->first],                               \
                      (size_t)(pad_job->last - pad_job->first) * sizeof(type));                             \
        }                                                                                                   \
        for (int64_t k = pad_job->last; k < count; k++) { second[k] = first[masks[k]]; } break; }
#define OPDI_PAD_ROW_ADD(type) {                                                                            \
        type *a = (type *)(void *)pad_job->in + x; const type *b = (const type *)(const void *)pad_job->out + y; \
        for (int64_t k = 0; k < count; k++) { a[masks[k]] += b[k]; } }
/* Pads planes [begin, end) of ctx, an opdi_pad_job: copies element map[o] along each dim to element o.  If `back`, adds
   element o to element map[o] instead. */
static void opdi_pad_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_pad_job *pad_job = (const opdi_pad_job *)ctx;
    const int64_t in_plane = pad_job->in_size[0] * pad_job->in_size[1] * pad_job->in_size[2],
        count = pad_job->out_size[2], *masks = pad_job->map[2];
    int64_t y;
    for (int64_t plane = begin; plane < end; plane++) {
        for (int64_t item = 0; item < pad_job->out_size[0]; item++) {
            for (int64_t value = 0; value < pad_job->out_size[1]; value++) {
                const int64_t x = plane * in_plane +
                    (pad_job->map[0][item] * pad_job->in_size[1] + pad_job->map[1][value]) * pad_job->in_size[2];
                y = ((plane * pad_job->out_size[0] + item) * pad_job->out_size[1] + value) * count;
                if (pad_job->back) {
                    if (pad_job->compute == OPDI_F64) { OPDI_PAD_ROW_ADD(double) } else { OPDI_PAD_ROW_ADD(float) }
                    continue;
                }
                switch (pad_job->size) {
                    case 1: OPDI_PAD_ROW_MOVE(uint8_t)
                    case 2: OPDI_PAD_ROW_MOVE(uint16_t)
                    case 4: OPDI_PAD_ROW_MOVE(uint32_t)
                    case 8: OPDI_PAD_ROW_MOVE(uint64_t)
                    default: for (int64_t k = 0; k < count; k++) {
                        memcpy(pad_job->out + (y + k) * pad_job->size, pad_job->in + (x + masks[k]) * pad_job->size,
                               (size_t)pad_job->size);
                        }
                }
            }
        }
    }
}
OPDI_COLD_BEGIN
/* Pads `in` to `out` in the way `how` (OPDI_PAD_...).  If `back`, adds the elements of out to `in` instead, which is a
   gradient that the caller has set to zero. */
static int opdi_pad_run(opd_tensor *in, opd_tensor *out, opd_ints pad, int how, bool back) {
    const int ndim = (int)pad.n / 2;
    opdi_pad_job pad_job;
    int64_t total = 0;
    pad_job.in = in->data;
    pad_job.out = out->data;
    pad_job.back = back;
    pad_job.size = (int)opd_dtype_size((opd_scalar_type)in->dtype);
    pad_job.compute = opdi_compute_type((opd_scalar_type)in->dtype);
    pad_job.planes = opdi_span_of(opdi_sizes(in), 0, in->ndim - ndim);
    for (int dim = 0; dim < 3; dim++) {
        const int at = in->ndim - 3 + dim;
        pad_job.in_size[dim] = 3 - dim <= ndim ? opdi_sizes(in)[at] : 1;
        pad_job.out_size[dim] = 3 - dim <= ndim ? opdi_sizes(out)[at] : 1;
        total += pad_job.out_size[dim];
    }
    opd_tensor *maps = opdi_own(opdi_tensor_make(&total, NULL, 1, OPD_INT64, OPD_CPU));
    if (!maps) { return -1; }
    pad_job.map[0] = (int64_t *)(void *)maps->data;
    pad_job.map[1] = pad_job.map[0] + pad_job.out_size[0];
    pad_job.map[2] = pad_job.map[1] + pad_job.out_size[1];
    for (int dim = 0; dim < 3; dim++) {
        const int64_t low = 3 - dim <= ndim ? pad.data[2 * (2 - dim)] : 0;
        for (int64_t i = 0; i < pad_job.out_size[dim]; i++) {
            pad_job.map[dim][i] = opdi_pad_map(i, low, pad_job.in_size[dim], how);
        }
    }
    pad_job.first = OPDI_MIN(OPDI_MAX(pad.data[0], (int64_t)0), pad_job.out_size[2]);
    pad_job.last = OPDI_MAX(OPDI_MIN(pad.data[0] + pad_job.in_size[2], pad_job.out_size[2]), pad_job.first);
    if (out->numel == 0) { return 0; }
    opdi_parallel_for(pad_job.planes, OPDI_MAX((int64_t)1, OPDI_GRAIN * pad_job.planes / out->numel), opdi_pad_part,
                      &pad_job);
    return 0;
}
/* Checks the arguments of a padding of `in` by the sizes in `pad`, and sets sizes[in->ndim] to the sizes of the padded
   tensor.  `reflect` limits the padding to the size of each dim minus 1.  Returns 0, or -1 and sets an error. */
static int opdi_pad_sizes(const opd_call *call, const opd_tensor *in, opd_ints pad, bool reflect, int64_t *sizes) {
    const int ndim = *(strstr(call->op->schema->name, "pad") + 3) - '0';     /* the digit in "reflection_pad2d" */
    char text[256];
    (void)opdi_sizes_text(opdi_sizes(in), in->ndim, text, sizeof text);
    if (pad.n != 2 * ndim) { return opd_fail(OPD_ERROR_ARGUMENT, "padding size is expected to be %d", 2 * ndim); }
    if (in->ndim != ndim + 1 && in->ndim != ndim + 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and "
                        "other non-zero dimensions for input, but got: %s", ndim + 1, ndim + 2, text);
    }
    for (int dim = 0; dim < in->ndim; dim++) {
        const int k = 2 * (in->ndim - 1 - dim);
        const int64_t count = opdi_sizes(in)[dim];
        sizes[dim] = count;
        if (count == 0 && !(dim == 0 && in->ndim == ndim + 2)) {
            return opd_fail(OPD_ERROR_SHAPE, "Expected %dD or %dD (batch mode) tensor with possibly 0 batch size and "
                            "other non-zero dimensions for input, but got: %s", ndim + 1, ndim + 2, text);
        }
        if (k >= pad.n) { continue; }
        if (reflect && (pad.data[k] >= count || pad.data[k + 1] >= count)) {
            return opd_fail(OPD_ERROR_SHAPE, "Argument #4: Padding size should be less than the corresponding input "
                            "dimension, but got: padding (%lld, %lld) at dimension %d of input %s",
                            (long long)pad.data[k], (long long)pad.data[k + 1], dim, text);
        }
        if (OPDI_MAX(pad.data[k], pad.data[k + 1]) > INT64_MAX / 4 || pad.data[k] < -count ||
            pad.data[k + 1] < -count || count + pad.data[k] + pad.data[k + 1] < 1) {
            return opd_fail(OPD_ERROR_SHAPE, "input (size %lld at dimension %d) is too small for the padding (%lld, "
                            "%lld)", (long long)count, dim,
                            (long long)pad.data[k], (long long)pad.data[k + 1]);
        }
        sizes[dim] = count + pad.data[k] + pad.data[k + 1];
    }
    return 0;
}
static int opdi_pad_how(const opd_call *call) {
    return strncmp(call->op->schema->name, "reflection", 10) == 0 ? OPDI_PAD_REFLECT : OPDI_PAD_REPLICATE;
}
static int opdi_pad_nd_kernel(opd_call *call) {
    opd_tensor *in = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    const int how = opdi_pad_how(call);
    int64_t sizes[OPD_MAX_DIMS];
    if (opdi_pad_sizes(call, in, pad, how == OPDI_PAD_REFLECT, sizes)) { return -1; }
    if (in->dtype == OPD_BOOL) { return opdi_dtype_fail(call->op->schema->name, in->dtype); }
    opd_tensor *out = opdi_result_format(call, 0, opdi_is_channels_last(in), sizes, in->ndim, OPDI_DTYPE(in));
    if (!out || !out->data) { return out ? 0 : -1; }
    in = opdi_packed(in);
    opd_tensor *scratch = in ? opdi_staging(out, (opd_scalar_type)out->dtype) : NULL;
    return scratch && opdi_pad_run(in, scratch, pad, how, false) == 0 ? opdi_staging_store(out, scratch) : -1;
}
/* Computes the gradient of reflection and replication padding: adds each element of grad to the element that it was
   copied from. */
static int opdi_pad_nd_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *in = opd_arg_tensor(call, 1);
    const opd_ints pad = opd_arg_ints(call, 2);
    const int how = opdi_pad_how(call);
    int64_t sizes[OPD_MAX_DIMS];
    if (opdi_pad_sizes(call, in, pad, how == OPDI_PAD_REFLECT, sizes)) { return -1; }
    if (!opdi_has_sizes(grad, sizes, in->ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_output width unexpected. Expected: %lld, Got: %lld",
                        (long long)sizes[in->ndim - 1], (long long)(grad->ndim ? opdi_sizes(grad)[grad->ndim - 1] : 0));
    }
    if (opdi_same_dtype(grad, in)) { return -1; }
    if (opdi_is_complex(grad)) { return opdi_by_parts(call); }
    if (!opd_dtype_is_floating((opd_scalar_type)grad->dtype)) {
        return opdi_dtype_fail(call->op->schema->name, grad->dtype);
    }
    opd_tensor *out = opdi_result_format(call, 0, opdi_is_channels_last(in), opdi_sizes(in), in->ndim,
                                         OPDI_DTYPE(grad));
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_staging_f32(out);
    grad = scratch ? opdi_dense_as(grad, (opd_scalar_type)scratch->dtype) : NULL;
    if (!grad) { return -1; }
    memset(scratch->data, 0, (size_t)scratch->numel * opd_dtype_size((opd_scalar_type)scratch->dtype));
    return opdi_pad_run(scratch, grad, pad, how, true) == 0 ? opdi_staging_store(out, scratch) : -1;
}
/* The batching rule of reflection and replication padding: merges the examples with the planes, which are padded
   independently, in one call. */
static int opdi_pad_nd_batch(opd_call *call) {
    const int tensors = call->op->nargs - 1, nd = (int)call->args[tensors].n / 2, ndim = call->args[0].u.t->ndim;
    const bool merge = ndim == nd + 2;            /* the tensors have batch dims: examples are merged with those */
    int64_t sizes[OPD_MAX_DIMS + 1];
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *result;
    args[tensors] = call->args[tensors];
    if ((ndim != nd + 1 && !merge) || call->args[tensors - 1].u.t->ndim != ndim) { return opdi_batch_unfit(call); }
    for (int i = 0; i < tensors; i++) {
        if (!(result = opdi_batch_front_arg(call, i))) { return -1; }
        memcpy(sizes, opdi_sizes(result), sizeof *sizes * result->ndim);
        sizes[1] = opdi_size_times(sizes[1], sizes[0]);
        args[i] = opd_value_tensor(merge ? opdi_maybe_reshape(result, sizes + 1, ndim) : result);
    }
    if (!(result = opd_call_op(call->op, args, call->op->nargs)) || !merge) {
        return opd_batch_return(call, result, 0);
    }
    memcpy(sizes + 1, opdi_sizes(result), sizeof *sizes * result->ndim);
    sizes[0] = call->th->innermost.rule->size;
    sizes[1] = call->args[0].u.t->dims[0];
    return opd_batch_return(call, opdi_maybe_reshape(result, sizes, ndim + 1), 0);
}
/* Calls reflection_pad or replication_pad for the number of dims that `pad` (a list of integers) has sizes for.  If
   tensor is NULL, returns NULL. */
static opd_tensor *opdi_maybe_pad(opd_tensor *tensor, opd_value pad, bool reflect) {
    const opd_ints padding = opd_ints_of(pad.u.ints, pad.n);
    if (!tensor) { return NULL; }
    switch (pad.n / 2) {
    case 1: return reflect ? opd_reflection_pad1d(tensor, padding) : opd_replication_pad1d(tensor, padding);
    case 2: return reflect ? opd_reflection_pad2d(tensor, padding) : opd_replication_pad2d(tensor, padding);
    default: return reflect ? opd_reflection_pad3d(tensor, padding) : opd_replication_pad3d(tensor, padding);
    }
}
/* Calls the operator for the gradient of opdi_maybe_pad with respect to `in`. */
static opd_tensor *opdi_maybe_pad_backward(opd_tensor *grad, opd_tensor *in, opd_value pad, bool reflect) {
    const opd_ints padding = opd_ints_of(pad.u.ints, pad.n);
    if (!grad || !in) { return NULL; }
    switch (pad.n / 2) {
    case 1: return reflect ? opd_reflection_pad1d_backward(grad, in, padding) : opd_replication_pad1d_backward(
        grad, in, padding);
    case 2: return reflect ? opd_reflection_pad2d_backward(grad, in, padding) : opd_replication_pad2d_backward(
        grad, in, padding);
    default: return reflect ? opd_reflection_pad3d_backward(grad, in, padding) : opd_replication_pad3d_backward(
        grad, in, padding);
    }
}
static int opdi_reflection_pad_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0,
                         opdi_maybe_pad_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), true));
}
static int opdi_reflection_pad_backward_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(0, opdi_maybe_pad(opd_bw_grad(bw, 0), opd_bw_value(bw, 2), true));
    OPDI_BW_RETURN(1, opdi_maybe_zeros(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 1)));
    return 0;
}
/* opd_reflection_pad1d: pads the last dim by mirroring it at its ends */
OPDI_OP(reflection_pad1d) {
    op->schema = "reflection_pad1d(Tensor self, int[2] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_kernel; op->backward = opdi_reflection_pad_backward; op->save = "self";
    op->vmap = opdi_pad_nd_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->out = "reflection_pad1d.out";
    op->cases = "[2,3,4], (1,2)";
}
/* opd_reflection_pad1d_backward: the gradient of reflection_pad1d */
OPDI_OP(reflection_pad1d_backward) {
    op->schema = "reflection_pad1d_backward(Tensor grad_output, Tensor self, int[2] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_backward_kernel; op->backward = opdi_reflection_pad_backward_backward;
    op->vmap = opdi_pad_nd_batch;
    op->out = "reflection_pad1d_backward.grad_input(grad_input)";
    op->cases = "[2,3,7], [2,3,4], (1,2)";
}

/* opd_reflection_pad2d: pads the last two dims by mirroring them at their ends */
OPDI_OP(reflection_pad2d) {
    op->schema = "reflection_pad2d(Tensor self, int[4] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_kernel; op->backward = opdi_reflection_pad_backward; op->save = "self";
    op->vmap = opdi_pad_nd_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->out = "reflection_pad2d.out";
    op->cases = "[2,3,4], (1,2,1,0)";
}
/* opd_reflection_pad2d_backward: the gradient of reflection_pad2d */
OPDI_OP(reflection_pad2d_backward) {
    op->schema = "reflection_pad2d_backward(Tensor grad_output, Tensor self, int[4] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_backward_kernel; op->backward = opdi_reflection_pad_backward_backward;
    op->vmap = opdi_pad_nd_batch;
    op->out = "reflection_pad2d_backward.grad_input(grad_input)";
    op->cases = "[2,4,7], [2,3,4], (1,2,1,0)";
}

/* opd_reflection_pad3d: pads the last three dims by mirroring them at their ends */
OPDI_OP(reflection_pad3d) {
    op->schema = "reflection_pad3d(Tensor self, int[6] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_kernel; op->backward = opdi_reflection_pad_backward; op->save = "self";
    op->vmap = opdi_pad_nd_batch; op->tags = OPD_OPTAG_CORE;
    op->out = "reflection_pad3d.out";
    op->cases = "[2,2,3,4], (1,2,1,0,0,1)";
}
/* opd_reflection_pad3d_backward: the gradient of reflection_pad3d */
OPDI_OP(reflection_pad3d_backward) {
    op->schema = "reflection_pad3d_backward(Tensor grad_output, Tensor self, int[6] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_backward_kernel; op->backward = opdi_reflection_pad_backward_backward;
    op->vmap = opdi_pad_nd_batch;
    op->out = "reflection_pad3d_backward.grad_input(grad_input)";
    op->cases = "[2,3,4,7], [2,2,3,4], (1,2,1,0,0,1)";
}

static int opdi_replication_pad_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0,
                         opdi_maybe_pad_backward(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_value(bw, 1), false));
}
static int opdi_replication_pad_backward_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(0, opdi_maybe_pad(opd_bw_grad(bw, 0), opd_bw_value(bw, 2), false));
    OPDI_BW_RETURN(1, opdi_maybe_zeros(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 1)));
    return 0;
}
/* opd_replication_pad1d: pads the last dim by repeating its first and last element */
OPDI_OP(replication_pad1d) {
    op->schema = "replication_pad1d(Tensor self, int[2] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_kernel; op->backward = opdi_replication_pad_backward; op->save = "self";
    op->vmap = opdi_pad_nd_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "replication_pad1d.out";
    op->cases = "[2,3,4], (1,2)";
}
/* opd_replication_pad1d_backward: the gradient of replication_pad1d */
OPDI_OP(replication_pad1d_backward) {
    op->schema = "replication_pad1d_backward(Tensor grad_output, Tensor self, int[2] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_backward_kernel; op->backward = opdi_replication_pad_backward_backward;
    op->vmap = opdi_pad_nd_batch;
    op->out = "replication_pad1d_backward.grad_input(grad_input)";
    op->cases = "[2,3,7], [2,3,4], (1,2)";
}

/* opd_replication_pad2d: pads the last two dims by repeating their first and last elements */
OPDI_OP(replication_pad2d) {
    op->schema = "replication_pad2d(Tensor self, int[4] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_kernel; op->backward = opdi_replication_pad_backward; op->save = "self";
    op->vmap = opdi_pad_nd_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->out = "replication_pad2d.out";
    op->cases = "[2,3,4], (1,2,1,0)";
}
/* opd_replication_pad2d_backward: the gradient of replication_pad2d */
OPDI_OP(replication_pad2d_backward) {
    op->schema = "replication_pad2d_backward(Tensor grad_output, Tensor self, int[4] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_backward_kernel; op->backward = opdi_replication_pad_backward_backward;
    op->vmap = opdi_pad_nd_batch;
    op->out = "replication_pad2d_backward.grad_input(grad_input)";
    op->cases = "[2,4,7], [2,3,4], (1,2,1,0)";
}

/* opd_replication_pad3d: pads the last three dims by repeating their first and last elements */
OPDI_OP(replication_pad3d) {
    op->schema = "replication_pad3d(Tensor self, int[6] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_kernel; op->backward = opdi_replication_pad_backward; op->save = "self";
    op->vmap = opdi_pad_nd_batch; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->out = "replication_pad3d.out";
    op->cases = "[2,2,3,4], (1,2,1,0,0,1)";
}
/* opd_replication_pad3d_backward: the gradient of replication_pad3d */
OPDI_OP(replication_pad3d_backward) {
    op->schema = "replication_pad3d_backward(Tensor grad_output, Tensor self, int[6] padding) -> Tensor";
    op->cpu = op->fake = opdi_pad_nd_backward_kernel; op->backward = opdi_replication_pad_backward_backward;
    op->vmap = opdi_pad_nd_batch;
    op->out = "replication_pad3d_backward.grad_input(grad_input)";
    op->cases = "[2,3,4,7], [2,2,3,4], (1,2,1,0,0,1)";
}

/* Returns the first argument, padded circularly along all dims at once.  Returns NULL if that fails, and also, without
   an error, if another layer has to see the operators that opdi_pad_circular calls, if there is nothing to pad, or if a
   size is negative or too large. */
static opd_tensor *opdi_pad_circular_at_once(const opd_call *call, opd_value pad) {
    opd_tensor *in = opd_arg_tensor(call, 0);
    int64_t sizes[OPD_MAX_DIMS];
    if (!opdi_nothing_follows() || !opdi_in_memory(in) || opd_call_requires_grad(call) || in->numel == 0 ||
        pad.n == 0 || pad.n % 2 || pad.n > 6) {
        return NULL;
    }
    memcpy(sizes, opdi_sizes(in), (size_t)in->ndim * sizeof *sizes);
    for (int k = 0; k < pad.n; k++) {
        const int dim = in->ndim - 1 - k / 2;
        if (pad.u.ints[k] < 0 || pad.u.ints[k] > opdi_sizes(in)[dim]) { return NULL; }
        sizes[dim] += pad.u.ints[k];
    }
    opd_tensor *out = opd_new_empty(in, opd_ints_of(sizes, in->ndim));
    in = out ? opdi_packed(in) : NULL;
    return in && opdi_pad_run(in, out, opd_ints_of(pad.u.ints, pad.n), OPDI_PAD_CIRCULAR, false) == 0 ? out : NULL;
}
/* Returns the first argument, padded circularly, dim by dim: elements before the first are copies of the last ones, and
   vice versa.  Negative sizes cut elements off.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_pad_circular(const opd_call *call, opd_value pad) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *out = opdi_pad_circular_at_once(call, pad);
    if (out || !opd_ok()) { return out; }
    for (int k = 0; k < pad.n / 2 && tensor; k++) {
        const int dim = tensor->ndim - 1 - k;
        const int64_t low = pad.u.ints[2 * k], high = pad.u.ints[2 * k + 1], whole = opdi_sizes(tensor)[dim];
        const int64_t first = low < 0 ? low < -whole ? whole : -low : 0, last = high < 0 ? high < -whole ? whole
            : -high : 0, count = whole - first - last;
        opd_tensor *parts[3];
        int np = 0;
        if (count < 0) {
            (void)opd_fail(OPD_ERROR_SHAPE, "Negative padding value is resulting in an empty dimension");
            return NULL;
        }
        if (low > count || high > count) {
            (void)opd_fail(OPD_ERROR_SHAPE, "Padding value causes wrapping around more than once.");
            return NULL;
        }
        if (count < whole) { tensor = opdi_maybe_narrow(tensor, dim, first, count); }
        if (low > 0) { parts[np++] = opdi_maybe_narrow(tensor, dim, count - low, low); }
        parts[np++] = tensor;
        if (high > 0) { parts[np++] = opdi_maybe_narrow(tensor, dim, 0, high); }
        if (!opd_ok()) { return NULL; }
        tensor = opd_cat(opd_tensors_of(parts, np), dim);
    }
    return tensor ? opd_contiguous(tensor) : NULL;
}
static int opdi_pad_circular_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    const int ndim = self->ndim;
    if (pad.n / 2 + 2 != ndim && pad.n / 2 + 1 != ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Invalid padding size, expected 1 or 2 non-padded dimensions, which would be "
                        "equivalent to padding of length %d or %d respectively but got %lld", 2 * (ndim - 1),
                        2 * (ndim - 2), (long long)pad.n);
    }
    return opd_return_tensor(call, opdi_pad_circular(call, opd_value_of_ints(pad)));
}
/* opd__pad_circular: pads each dim with copies of the elements at its other end */
OPDI_OP(_pad_circular) {
    op->schema = "_pad_circular(Tensor self, int[] pad) -> Tensor";
    op->composite = opdi_pad_circular_kernel;
    op->cases = "[1,2,4], (1,2); [2,3,4], (0,1,2,0)";
}
/* pad: calls the padding operator for `mode`: constant, reflect, replicate or circular.  Only constant accepts a
   value. */
static int opdi_pad_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints pad = opd_arg_ints(call, 1);
    const char *mode = opd_arg_str(call, 2);
    const opd_value value = opd_value_of_ints(pad);
    const int ndim = (int)pad.n / 2;
    if (strcmp(mode, "constant") == 0) {
        return opd_return_tensor(call, opd_constant_pad_nd_full(self, pad, opd_arg_is_none(call, 3)
                                                                ? opd_value_double(0) : opd_arg_value(call, 3)));
    }
    if (pad.n % 2 || pad.n > 2 * self->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Padding length must be divisible by 2 and at most twice the number of "
                        "dimensions of the input, but got %lld for %d dimensions", (long long)pad.n, self->ndim);
    }
    if (!opd_arg_is_none(call, 3) && opd_arg_double(call, 3) > 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Padding mode \"%s\" doesn't take in value argument", mode);
    }
    if (ndim < 1 || ndim > 3 || (self->ndim != ndim + 1 && self->ndim != ndim + 2)) {
        return opd_fail(OPD_ERROR_SHAPE, "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
    }
    if (strcmp(mode, "reflect") == 0) { return opd_return_tensor(call, opdi_maybe_pad(self, value, true)); }
    if (strcmp(mode, "replicate") == 0) { return opd_return_tensor(call, opdi_maybe_pad(self, value, false)); }
    if (strcmp(mode, "circular") == 0) { return opd_return_tensor(call, opdi_pad_circular(call, value)); }
    return opd_fail(OPD_ERROR_ARGUMENT, "Unrecognised padding mode %s", mode);
}
/* opd_pad(self, pad, mode, value): padding with mode "constant", "reflect", "replicate" or "circular" */
OPDI_OP(pad) {
    op->schema = "pad(Tensor self, int[] pad, str mode='constant', float? value=None) -> Tensor";
    op->composite = opdi_pad_kernel;
    op->cases = "[2,3,4], (1,2); [2,3,4], (1,2), 'reflect'; [2,3,4], (1,2), 'circular'";
}
OPDI_COLD_END
