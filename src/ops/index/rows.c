#include "../ops.h"

//== slices of one dim: index_select, index_add, index_copy, index_fill, index_reduce ==================================

typedef struct opdi_rows {                        /* pairs row self[o][index[j]] with row source[o][j], o: an outer row;
                                                     self and source are contiguous */
    char *self, *source;
    const int64_t *index;
    int64_t size, n, inner, bytes;                /* size: number of rows of self; n: number of rows of source (both per
                                                     outer row); inner, bytes: number of elements and number of bytes of
                                                     a row */
} opdi_rows;
static void opdi_rows_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_rows *rows = (const opdi_rows *)ctx;
    int64_t row = begin;
    while (row < end) {
        const int64_t o = row / rows->n, stop = OPDI_MIN(end, (o + 1) * rows->n);
        char *first = rows->self + o * rows->size * rows->bytes, *second = rows->source + row * rows->bytes;
        const int64_t *places = rows->index + (row - o * rows->n);
        int64_t part = stop - row;
        if (rows->bytes == 4) {
            for (int64_t k = 0; k < part; k++) { memcpy(second + k * 4, first + places[k] * 4, 4); }
        }
        else if (rows->bytes == 8) {
            for (int64_t k = 0; k < part; k++) { memcpy(second + k * 8, first + places[k] * 8, 8); }
        }
        else {
            for (int64_t k = 0; k < part; k++) {
                opdi_move(second + k * rows->bytes, first + places[k] * rows->bytes, (size_t)rows->bytes);
            }
        }
        row = stop;
    }
}
OPDI_COLD_BEGIN
/* Fills *rows for a contiguous tensor `first`, indexed along dim by checked int64 indices, and the contiguous rows of
   `second`.  Returns the number of outer rows: the product of the sizes before dim. */
static int64_t opdi_rows_init(opdi_rows *rows, opd_tensor *first, int dim, opd_tensor *index, opd_tensor *second) {
    rows->self = first->data;
    rows->source = second->data;
    rows->index = (const int64_t *)(const void *)index->data;
    rows->size = first->ndim ? opdi_sizes(first)[dim] : 1;
    rows->n = index->numel;
    rows->inner = first->ndim ? opdi_span_of(opdi_sizes(first), dim + 1, first->ndim) : 1;
    rows->bytes = rows->inner * (int64_t)opd_dtype_size((opd_scalar_type)first->dtype);
    return first->ndim ? opdi_span_of(opdi_sizes(first), 0, dim) : 1;
}
/* Does the work of opdi_rows_select for a tensor `first` that is not contiguous.  Returns 0, or -1 and sets an
   error. */
static int opdi_rows_walk(opd_tensor *first, int dim, opd_tensor *input, opd_tensor *out) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], count = 1;
    for (int axis = first->ndim - 1; axis >= 0; axis--) {
        strides[axis] = count;
        sizes[axis] = axis == dim ? input->numel : opdi_sizes(first)[axis];
        count = opdi_size_times(count, OPDI_MAX(sizes[axis], (int64_t)1));
    }
    out = opdi_view(out, sizes, strides, first->ndim, 0);
    input = opdi_rows_expand(input, dim, sizes, first->ndim);
    return out && input ? opdi_indexed_go(OPDI_WALK_GATHER, first, dim, input, out, 1) : -1;
}
/* Copies the slices of `first` at `index` along dim to out, which is contiguous, in the order outer dims, index, inner
   dims.  If an index is out of range, fails with the message `text`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rows_select(opd_tensor *first, int dim, opd_tensor *index, opd_tensor *out, const char *text) {
    const int64_t size = first->ndim ? opdi_sizes(first)[dim] : 1;
    opdi_rows rows;
    int64_t bad;
    if (out->numel == 0 && index->numel == 0) { return 0; }
    opd_tensor *input = opdi_index_load(index, size, false, &bad);
    if (!input) { return -1; }
    if (bad >= 0) { return opd_fail(OPD_ERROR_INDEX, "%s", text); }
    opd_tensor *scratch = opdi_staging(out, (opd_scalar_type)out->dtype);
    if (!scratch) { return -1; }
    if (!(first->flags & OPDI_CONTIGUOUS)) {
        return opdi_rows_walk(first, dim, input, scratch) ? -1 : opdi_staging_store(out, scratch);
    }
    int64_t outer = opdi_rows_init(&rows, first, dim, input, scratch);
    if (out->numel) {
        opdi_parallel_for(outer * rows.n, OPDI_MAX((int64_t)1, 4 * OPDI_GRAIN / OPDI_MAX(rows.bytes, (int64_t)1)),
                          opdi_rows_part, &rows);
    }
    return opdi_staging_store(out, scratch);
}
static int opdi_index_select_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    int64_t sizes[OPD_MAX_DIMS];
    if (dim < 0) { return -1; }
    if (index->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "index_select(): Index is supposed to be a vector"); }
    if (opdi_index_dtype(index, "index_select(): Expected dtype int32 or int64 for index")) { return -1; }
    if (self->ndim == 0 && index->numel != 1) {
        return opd_fail(OPD_ERROR_INDEX, "index_select(): Index to scalar can have only 1 value, got %lld value(s)",
                        (long long)index->numel);
    }
    memcpy(sizes, opdi_sizes(self), sizeof *sizes * self->ndim);
    if (self->ndim) { sizes[dim] = index->numel; }
    opd_tensor *out = opd_result(call, 0, sizes, self->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    return opdi_rows_select(self, dim, index, out, "index out of range in self");
}
static int opdi_index_select_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_index_select_backward(opd_bw_grad(bw, 0), opd_bw_sizes(bw, 0),
                                                          opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2)));
}
static int opdi_rows_batch(opd_call *call);
/* opd_index_select: the slices of dim at the positions in index */
OPDI_OP(index_select) {
    op->schema = "index_select(Tensor self, int dim, Tensor index) -> Tensor";
    op->cpu = op->fake = opdi_index_select_kernel; op->backward = opdi_index_select_backward; op->save = "index";
    op->vmap = opdi_rows_batch; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_APART;
    op->out = "index_select.out";
    op->cases = "[3,4], 1, [5]i4; [3,4], 0, [2]i3";
}

static int opdi_index_select_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_index_add(opdi_maybe_zeros(grad, opd_arg_ints(call, 1)), opd_arg_int(call, 2),
                                                 opd_arg_tensor(call, 3), grad));
}
/* opd_index_select_backward: the gradient of index_select */
OPDI_OP(index_select_backward) {
    op->schema = "index_select_backward(Tensor grad, int[] self_sizes, int dim, Tensor index) -> Tensor";
    op->composite = opdi_index_select_backward_kernel;
    op->cases = "[3,2], (3,4), 1, [2]i4";
}

/* Checks the arguments of index_add, index_copy and index_reduce: index must be a vector with one element per slice of
   src along dim, and the other sizes of self and src must be equal.  `name` is used in messages.  Returns 0, or -1 and
   sets an error. */
static int opdi_rows_check(const opd_tensor *self, int dim, const opd_tensor *index, const opd_tensor *src,
                           const char *name) {
    const int64_t count = src->ndim ? opdi_sizes(src)[OPDI_MIN(dim, src->ndim - 1)] : 1;
    int axis, k;
    if (index->ndim > 1) {
        return opd_fail(OPD_ERROR_INDEX, "%s: Index is supposed to be a vector, but got dim: %d with type: %s and "
                        "size: %lld", name, index->ndim, opd_dtype_name((opd_scalar_type)index->dtype),
                            (long long)index->numel);
    }
    if (self->dtype != src->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: self and source expected to have the same dtype, but got (self) %s and "
                        "(source) %s", name, opd_dtype_name((opd_scalar_type)self->dtype),
                            opd_dtype_name((opd_scalar_type)src->dtype));
    }
    if (src->ndim && dim >= src->ndim) {
        return opd_fail(OPD_ERROR_INDEX, "%s: Indexing dim %d is out of bounds of the source tensor with dim %d", name,
                        dim, src->ndim);
    }
    if (index->numel != count) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Number of indices (%lld) should be equal to source.size(dim): (%lld), "
                        "for dim: %d", name, (long long)index->numel, (long long)count, dim);
    }
    if (self->ndim <= 1 && src->ndim <= 1) { return 0; }
    for (axis = 0, k = self->ndim != src->ndim; axis < self->ndim && !k; axis++) {
        k = axis != dim && opdi_sizes(self)[axis] != opdi_sizes(src)[axis];
    }
    char first[256], second[256];
    return k ? opd_fail(OPD_ERROR_SHAPE, "%s: Source/destination tensor must have same slice shapes, but self is %s "
                        "and source %s, at dim %d", name, opdi_shape_text(self, first),
                        opdi_shape_text(src, second), dim) : 0;
}
/* Checks `index` and returns it expanded to src's sizes, so that every element of src has an index.  `wrap` and `text`
   are as for opdi_index_checked. */
static opd_tensor *opdi_rows_index(const opd_tensor *out, int dim, opd_tensor *index, const opd_tensor *src, bool wrap,
                                   const char *text) {
    index = opdi_index_checked(index, dim, out->ndim ? opdi_sizes(out)[dim] : 1, wrap, text);
    return index ? opdi_rows_expand(index, dim, opdi_sizes(src), src->ndim) : NULL;
}
/* Runs index_add for complex numbers: once for the real parts and once for the imaginary parts.  Returns 0, or -1 and
   sets an error. */
static int opdi_index_add_complex(opd_call *call, opd_tensor *self, opd_tensor *src, opd_value alpha) {
    opd_tensor *index = opd_arg_tensor(call, 2), *parts[2];
    const int64_t dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    src = opdi_scale(src, alpha);
    for (int i = 0; i < 2; i++) {
        opd_tensor *const part = opdi_part_of(self, i);
        parts[i] = opd_index_add(part, dim, index, opdi_part_of(src, i));
    }
    return opdi_return_parts(call, 0, parts[0], parts[1]);
}
/* index_add: adds alpha times slice i of source to slice index[i] of self along dim, for each i. */
static int opdi_index_add_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3);
    const int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    opd_value alpha = opd_arg_value(call, 4);
    if (dim < 0 || opdi_index_dtype(index, "index_add_(): Expected dtype int32/int64 for index") ||
        opdi_rows_check(self, dim, index, src, "index_add_()") || opdi_alpha_check(dtype, alpha)) {
        return -1;
    }
    if (opd_dtype_is_complex(dtype)) { return opdi_index_add_complex(call, self, src, alpha); }
    opd_tensor *out = opdi_update(call, false);
    if (!out || !out->data || (out->ndim > 1 && !out->numel)) { return out ? 0 : -1; }
    if (alpha.tag == OPD_TAG_INT && (alpha.u.i > (int64_t)1 << 53 || alpha.u.i < -((int64_t)1 << 53)) &&
        opd_dtype_is_integral(dtype, false)) {    /* the walk converts alpha to double, which would round it */
        src = opd_mul_Scalar(src, alpha);
        alpha = opd_value_int(1);
        if (!src) { return -1; }
    }
    index = opdi_index_checked(index, dim, out->ndim ? opdi_sizes(out)[dim] : 1, false, "index out of range in self");
    if (index && opdi_fold_rounds(OPDI_WALK_ADD, out)) {
        index = opdi_rows_expand(index, dim, opdi_sizes(src), src->ndim);
        return index ? opdi_fold_into(OPDI_WALK_ADD, out, dim, index, src, opdi_number_f64(alpha)) : -1;
    }
    return index ? opdi_indexed_go(OPDI_WALK_ADD, out, dim, index, src, opdi_number_f64(alpha)) : -1;
}
/* Returns the slices of grad at index, reshaped to the sizes of argument number `at`, the source. */
static opd_tensor *opdi_rows_back(opd_backward_call *bw, opd_tensor *grad, int at) {
    opd_tensor *tensor = opd_index_select(grad, opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2));
    const opd_ints sizes = opd_bw_sizes(bw, at);
    return tensor && sizes.n != tensor->ndim ? opdi_maybe_reshape(tensor, sizes.data, sizes.n) : tensor;
}
static int opdi_index_add_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(3, opdi_scale(opdi_rows_back(bw, grad, 3), opd_bw_value(bw, 4)));
    return 0;
}
/* opd_index_add: self, with slice i of source added to slice index[i] of dim, times alpha */
OPDI_OP(index_add) {
    op->schema = "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_index_add_kernel; op->backward = opdi_index_add_backward; op->save = "index(source)";
    op->vmap = opdi_rows_batch; op->flops = opdi_flops_elements;
    op->inplace = "index_add_"; op->out = "index_add.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[3,4], 1, [2]i4, [3,2]; [3,4], 0, [5]i3, [5,4], alpha=2";
}

static int opdi_index_copy_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    if (dim < 0) { return -1; }
    if (index->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "index_copy_(): Expected a long tensor for index, but got %s",
                        opd_dtype_name((opd_scalar_type)index->dtype));
    }
    if (opdi_rows_check(self, dim, index, src, "index_copy_()")) { return -1; }
    opd_tensor *out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    index = opdi_rows_index(out, dim, index, src, false, NULL);
    return index ? opdi_indexed_go(OPDI_WALK_SCATTER, out, dim, index, src, 1) : -1;
}
static int opdi_index_copy_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_index_fill_int_Scalar(grad, opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2), opd_value_int(0)));
    OPDI_BW_RETURN(3, opdi_rows_back(bw, grad, 3));
    return 0;
}
/* opd_index_copy: self, with slice i of source written to slice index[i] of dim */
OPDI_OP(index_copy) {
    op->schema = "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor";
    op->cpu = op->fake = opdi_index_copy_kernel; op->backward = opdi_index_copy_backward; op->save = "index";
    op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_rows_batch; op->autocast = OPD_AUTOCAST_PROMOTE_CPU;
    op->inplace = "index_copy_"; op->out = "index_copy.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[3,4], 1, [1]i4, [3,1]";
}

/* index_fill: fills the slices of self at index along dim with `value`, a number or a tensor without dims. */
static int opdi_index_fill_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2);
    const opd_value value = opd_arg_value(call, 3);
    const int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    if (dim < 0) { return -1; }
    if (value.tag == OPD_TAG_TENSOR && value.u.t->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                        "%d dimension(s).", value.u.t->ndim);
    }
    if (index->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "index_fill_(): Expected dtype int64 for index.");
    }
    if (index->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "Index has to be a vector/scalar"); }
    if ((value.tag == OPD_TAG_COMPLEX || (value.tag == OPD_TAG_TENSOR && opdi_is_complex(value.u.t))) &&
        !opdi_is_complex(self)) {
        return opd_fail(OPD_ERROR_DTYPE, "index_fill_(): Converting complex Scalar to non-complex type is not "
                        "supported");
    }
    opd_tensor *out = opdi_update(call, true);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *src = value.tag == OPD_TAG_TENSOR ? opdi_dense_as(value.u.t, (opd_scalar_type)self->dtype)
        : opdi_scalar_as_tensor(value, (opd_scalar_type)self->dtype);
    index = src ? opdi_rows_index(out, dim, index, out, true, NULL) : NULL;
    return index ? opdi_indexed_go(OPDI_WALK_SCATTER, out, dim, index, src, 1) : -1;
}
static int opdi_index_fill_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *index = opd_bw_tensor(bw, 2);
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    OPDI_BW_RETURN(0, opd_index_fill_int_Scalar(grad, dim, index, opd_value_int(0)));
    if (opd_bw_needs(bw, 3)) {                    /* the sum of grad over all written elements, each counted once */
        opd_tensor *none = opd_zeros_like(grad), *written = none ? opd_to_dtype(none, OPD_BOOL) : NULL;
        written = opd_index_fill_int_Scalar(written, dim, index, opd_value_bool(true));
        OPDI_BW_RETURN(3, opdi_maybe_sum(opd_where_self(written, grad, none)));
    }
    return 0;
}
/* opd_index_fill_int_Scalar: self, with value written to the slices of dim at index */
OPDI_OP(index_fill_int_Scalar) {
    op->schema = "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor";
    op->cpu = op->fake = opdi_index_fill_kernel; op->backward = opdi_index_fill_backward; op->save = "index";
    op->vmap = opdi_rows_batch;
    op->inplace = "index_fill_.int_Scalar"; op->out = "index_fill.int_Scalar_out";
    op->cases = "[3,4], 1, [2]i4, 1.5";
}
/* opd_index_fill_int_Tensor: self, with value written to the slices of dim at index */
OPDI_OP(index_fill_int_Tensor) {
    op->schema = "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor";
    op->cpu = op->fake = opdi_index_fill_kernel; op->backward = opdi_index_fill_backward; op->save = "index";
    op->vmap = opdi_rows_batch;
    op->inplace = "index_fill_.int_Tensor"; op->out = "index_fill.int_Tensor_out";
    op->cases = "[3,4], 1, [1]i4, []";
}

/* index_reduce: combines slice i of source with slice index[i] of self along dim by prod, mean, amax or amin. */
static int opdi_index_reduce_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim), how = opdi_reduce_of(opd_arg_str(call, 4));
    if (dim < 0 || how < 0) { return -1; }
    if (how == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "index_reduce(): Expected reduce to be one of prod, mean, amax or amin "
                        "but got sum");
    }
    if (opdi_index_dtype(index, "index_reduce(): Expected dtype int32/int64 for index") ||
        opdi_rows_check(self, dim, index, src, "index_reduce()")) {
        return -1;
    }
    if (opdi_is_complex(self) && how == 4) { return opdi_by_parts(call); }
    if (opdi_is_complex(self) && how != 1) { return opdi_dtype_fail("index_reduce", self->dtype); }
    opd_tensor *out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    index = opdi_rows_index(out, dim, index, src, false, NULL);
    return index ? opdi_reduce_into(out, dim, index, src, how, opd_arg_bool(call, 5)) : -1;
}
static int opdi_index_reduce_backward(opd_backward_call *bw) { return opdi_reduce_backward(bw, true); }
/* opd_index_reduce: self, with slice i of source reduced into slice index[i] of dim by prod, mean, amax or amin */
OPDI_OP(index_reduce) {
    op->schema = "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool "
        "include_self=True) -> Tensor";
    op->cpu = op->fake = opdi_index_reduce_kernel; op->backward = opdi_index_reduce_backward;
    op->save = "self, index, source, result";
    op->vmap = opdi_rows_batch; op->flops = opdi_flops_elements;
    op->inplace = "index_reduce_"; op->out = "index_reduce.out"; op->tags = OPDI_OPTAG_OUT_PART;
    op->cases = "[3,4], 1, [2]i4, [3,2], 'mean'; [2,3], 1, [4]i3, [2,4], 'prod'; "
        "[2,3], 1, [4]i3, [2,4], 'prod', include_self=False";
}

typedef enum opdi_rows_kind {
    OPDI_INDEX_SELECT, OPDI_INDEX_ADD, OPDI_INDEX_COPY, OPDI_INDEX_FILL, OPDI_INDEX_REDUCE
} opdi_rows_kind;
static opdi_rows_kind opdi_rows_kind_of(const opd_op *op) {
    static const char *const names[] = {"index_select", "index_add", "index_copy", "index_fill"};
    int kind = OPDI_INDEX_SELECT;
    while (kind < OPDI_INDEX_REDUCE && strncmp(op->schema->name, names[kind], strlen(names[kind])) != 0) { kind++; }
    return (opdi_rows_kind)kind;
}
/* Computes index_select or another operator of opdi_rows_batch under vmap if each example has its own indices: calls
   index, index_put or scatter_reduce. */
static int opdi_rows_indexed(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 2), *list[OPD_MAX_DIMS];
    const opd_value value = call->op->nargs > 3 ? call->args[3] : opd_value_none();
    const char *name = call->op->schema->name;
    const opdi_rows_kind kind = opdi_rows_kind_of(call->op);
    const int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    const int64_t one = 1, numel = input->numel;
    int64_t sizes[OPD_MAX_DIMS];
    opd_tensor *src = value.tag == OPD_TAG_TENSOR ? value.u.t : NULL;
    if (dim < 0) { return -1; }
    if (input->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "%s(): Index is supposed to be a vector", name); }
    if (opdi_index_dtype(input, "Expected dtype int32 or int64 for index") ||
        (src && kind != OPDI_INDEX_FILL && opdi_rows_check(self, dim, input, src, name))) { return -1; }
    /* A tensor without dims is treated as a vector of one element. */
    if (self->ndim == 0 || (src && src->ndim == 0 && kind != OPDI_INDEX_FILL)) {
        opd_value args[OPD_MAX_ARGS];
        memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
        if (self->ndim == 0) { args[0].u.t = opdi_maybe_reshape(self, &one, 1); }
        if (src && src->ndim == 0 && kind != OPDI_INDEX_FILL) { args[3].u.t = opdi_maybe_reshape(src, &one, 1); }
        opd_tensor *result = opd_call_op(call->op, args, call->op->nargs);
        return opd_return_tensor(call, self->ndim == 0 ? opdi_maybe_reshape(result, NULL, 0) : result);
    }
    input = opdi_maybe_reshape(opd_to_dtype(input, OPD_INT64), &numel, 1);
    if (kind == OPDI_INDEX_REDUCE) {              /* calls scatter_reduce, with one index for each element */
        for (int axis = 0; axis < self->ndim; axis++) { sizes[axis] = axis == dim ? numel : 1; }
        input = opdi_maybe_expand(opdi_maybe_reshape(input, sizes, self->ndim), opdi_sizes(src), src->ndim);
        return opd_return_tensor(call, opd_scatter_reduce_two_full(self, dim, input, src, opd_arg_str(call, 4),
                                                                   opd_arg_bool(call, 5)));
    }
    if (kind != OPDI_INDEX_FILL) {                            /* negative indices are invalid here: replaces them by an
                                                                 index that is out of range */
        input = opd_masked_fill_Scalar(input, opd_lt_Scalar(input, opd_value_int(0)),
                                       opd_value_int(opdi_sizes(self)[dim]));
    }
    for (int axis = 0; axis < dim; axis++) { list[axis] = NULL; }
    if (!(list[dim] = input)) { return -1; }
    if (kind == OPDI_INDEX_SELECT) { return opd_return_tensor(call, opd_index(self, opd_tensors_of(list, dim + 1))); }
    if (kind == OPDI_INDEX_ADD) { src = opdi_scale(src, call->args[4]); }
    if (kind == OPDI_INDEX_FILL) {
        src = src ? opd_to_dtype(src, opd_dtype(self)) : opd_new_full(self, opd_ints_of(NULL, 0), value);
    }
    return opd_return_tensor(call, opd_index_put(self, opd_tensors_of(list, dim + 1), src,
                                                      kind == OPDI_INDEX_ADD));
}
/* The batching rule of index_select, index_add and similar operators: makes a single call with a shifted dim if
   possible, else indexes with an index per example. */
static int opdi_rows_batch(opd_call *call) {
    opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS], ret;
    const opdi_rows_kind kind = opdi_rows_kind_of(op);
    const int ndim = call->args[0].u.t->ndim, dim = opdi_dim_of(call->args[1].u.i, ndim);
    const bool src = op->nargs > 3 && call->args[3].tag == OPD_TAG_TENSOR;
    int at, at_index, at_src = -1;
    if (dim < 0) { return -1; }
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    args[0].u.t = opd_batch_arg(call, 0, &at);
    args[2].u.t = opd_batch_arg(call, 2, &at_index);
    if (src) { args[3].u.t = opd_batch_arg(call, 3, &at_src); }
    if (kind == OPDI_INDEX_SELECT && at < 0 && ndim > 0 && call->args[2].u.t->ndim <= 1) {  /* self is shared */
        int64_t sizes[OPD_MAX_DIMS + 1], numel = call->args[2].u.t->numel * call->th->innermost.rule->size;
        opd_tensor *input = opd_batch_front(args[2].u.t, at_index);
        opd_tensor *result = opd_index_select(args[0].u.t, dim, opdi_maybe_reshape(input, &numel, 1));
        if (!result) { return -1; }
        for (int axis = 0; axis <= ndim; axis++) { sizes[axis] = opdi_sizes(result)[axis > dim ? axis - 1 : axis]; }
        sizes[dim] = call->th->innermost.rule->size;
        sizes[dim + 1] = call->args[2].u.t->numel;
        return opd_batch_return(call, opdi_maybe_reshape(result, sizes, ndim + 1), dim);
    }
    if (at_index >= 0 || ndim == 0 || (src && (kind == OPDI_INDEX_FILL ? at_src >= 0 : call->args[3].u.t->ndim == 0))) {
        return opdi_batch_as(call, opdi_rows_indexed);
    }
    if (kind != OPDI_INDEX_SELECT) {
        args[0].u.t = opd_batch_front(args[0].u.t, at);
        at = 0;
    }
    if (src && kind != OPDI_INDEX_FILL) { args[3].u.t = opd_batch_front(args[3].u.t, at_src); }
    args[1].u.i = dim + (dim >= at);
    return opd_call_all(op, &ret, args, op->nargs) ? -1 : opd_batch_return(call, ret.u.t, at);
}
OPDI_COLD_END
