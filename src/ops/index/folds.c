#include "../ops.h"

//== sums, products and means in scatter operators =====================================================================
//
//  To fold src into out is to combine each element of src with the element of out that its index selects.  Sums and
//  products of 16-bit floats are computed in float32 and rounded once, as in PyTorch's scatter_add.  Means also need
//  the number of elements that were added to each element of out.  In general, scratch memory holds all of out in
//  float32.  If only a few rows of out are written, the scratch memory holds only these rows, so that the cost does not
//  depend on the size of out.

OPDI_COLD_BEGIN

OPDI_INTERNAL bool opdi_selects_few(int64_t places, const opd_tensor *out) { return places <= out->numel / 16; }
/* Returns `list`, n indices, expanded to an index tensor that has size n in `dim` and the sizes like[ndim] in the other
   dims. */
OPDI_INTERNAL opd_tensor *opdi_rows_expand(opd_tensor *list, int dim, const int64_t *like, int ndim) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    for (int axis = 0; axis < ndim; axis++) {
        sizes[axis] = axis == dim ? list->numel : like[axis];
        strides[axis] = axis != dim ? 0 : list->ndim == 1 ? opdi_strides(list)[0] : 1;
    }
    return opdi_view(list, sizes, strides, ndim, 0);
}
/* Returns a view of tensor's memory with one dim, in which the index of an element is its offset from the first
   element. */
OPDI_INTERNAL opd_tensor *opdi_span_view(opd_tensor *tensor) {
    const int64_t one = 1;
    int64_t span = tensor->numel ? 1 : 0;
    for (int dim = 0; dim < tensor->ndim && span; dim++) {
        span += (opdi_sizes(tensor)[dim] - 1) * opdi_strides(tensor)[dim];
    }
    return opdi_view(tensor, &span, &one, 1, 0);
}
/* Flattens the operands of *subset: index becomes a list of offsets into self's memory, one per element, and src
   becomes a row.  Returns 0, or -1 and sets an error. */
static int opdi_row_subset_flatten(opdi_row_subset *subset) {
    int64_t strides[OPD_MAX_DIMS], numel = subset->index->numel;
    const int64_t one = 1, *places = (const int64_t *)(const void *)subset->index->data;
    opd_tensor *list = opdi_own(opdi_tensor_make(&numel, NULL, 1, OPD_INT64, OPD_CPU));
    if (!list) { return -1; }
    int64_t *to = (int64_t *)(void *)list->data;
    for (int64_t i = 0; i < numel; i++) {
        int64_t rest = i, at = 0, from = 0;
        for (int dim = subset->index->ndim - 1; dim >= 0; dim--) {
            const int64_t depth = rest % opdi_sizes(subset->index)[dim];
            rest /= opdi_sizes(subset->index)[dim];
            at += dim == subset->dim ? 0 : depth * opdi_strides(subset->self)[dim];
            from += depth * opdi_strides(subset->index)[dim];
        }
        to[i] = at + places[from] * opdi_strides(subset->self)[subset->dim];
    }
    for (int dim = 0; dim < subset->index->ndim; dim++) {
        strides[dim] = subset->src->ndim ? opdi_strides(subset->src)[dim] : 0;
    }
    subset->src = opdi_view(subset->src, opdi_sizes(subset->index), strides, subset->index->ndim, 0);
    subset->src = subset->src ? opdi_packed(subset->src) : NULL;
    subset->src = subset->src ? opdi_view(subset->src, &numel, &one, 1, 0) : NULL;
    subset->self = opdi_span_view(subset->self);
    subset->index = list;
    subset->dim = 0;
    return subset->src && subset->self ? 0 : -1;
}
/* Sets subset->rows to the distinct numbers in subset->index, in ascending order.  Returns, for each index, the index's
   position in subset->rows.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_row_subset_rows(opdi_row_subset *subset) {
    const int64_t count = opdi_sizes(subset->index)[subset->dim], step = opdi_strides(subset->index)[subset->dim],
        one = 1;
    const int64_t *places = (const int64_t *)(const void *)subset->index->data;
    opdi_key *key = (opdi_key *)opdi_scope_alloc((size_t)count * 2 * sizeof *key);
    opd_tensor *slot = opdi_own(opdi_tensor_make(&count, NULL, 1, OPD_INT64, OPD_CPU));
    opd_tensor *rows = opdi_own(opdi_tensor_make(&count, NULL, 1, OPD_INT64, OPD_CPU));
    int64_t part = 0;
    if (!key || !slot || !rows) { return NULL; }
    for (int64_t i = 0; i < count; i++) {
        key[i].key = (uint64_t)places[i * step];
        key[i].index = i;
    }
    key = opdi_keys_sort(key, key + count, count);
    for (int64_t i = 0; i < count; i++) {
        if (i == 0 || key[i].key != key[i - 1].key) { ((int64_t *)(void *)rows->data)[part++] = (int64_t)key[i].key; }
        ((int64_t *)(void *)slot->data)[key[i].index] = part - 1;
    }
    subset->rows = opdi_view(rows, &part, &one, 1, 0);
    return subset->rows ? slot : NULL;
}
/* Prepares subset->scratch, which holds those rows of subset->self that subset->index selects, converted to dtype
   `work`.  Changes subset->index and subset->src to match the scratch memory.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_row_subset_open(opdi_row_subset *subset, opd_scalar_type work) {
    int64_t sizes[OPD_MAX_DIMS];
    opd_tensor *slot;
    for (int dim = 0; dim < subset->index->ndim; dim++) {
        if (dim == subset->dim || opdi_sizes(subset->index)[dim] == 1 || opdi_strides(subset->index)[dim] == 0) {
            continue;
        }
        if (opdi_row_subset_flatten(subset)) { return -1; }
        break;
    }
    if (!(slot = opdi_row_subset_rows(subset))) { return -1; }
    for (int dim = 0; dim < subset->self->ndim; dim++) {
        sizes[dim] = dim == subset->dim ? subset->rows->numel : opdi_sizes(subset->index)[dim];
    }
    subset->rows = opdi_rows_expand(subset->rows, subset->dim, sizes, subset->self->ndim);
    subset->index = opdi_rows_expand(slot, subset->dim, sizes, subset->self->ndim);
    subset->part =
        opdi_own(opdi_tensor_make(sizes, NULL, subset->self->ndim, (opd_scalar_type)subset->self->dtype, OPD_CPU));
    if (!subset->rows || !subset->index || !subset->part) { return -1; }
    if (opdi_indexed_go(OPDI_WALK_GATHER, subset->self, subset->dim, subset->rows, subset->part, 1)) { return -1; }
    subset->scratch = opdi_dense_as(subset->part, work);
    return subset->scratch ? 0 : -1;
}
OPDI_INTERNAL int opdi_row_subset_close(opdi_row_subset *subset) {
    if (subset->scratch != subset->part && opdi_copy(subset->part, subset->scratch)) { return -1; }
    return opdi_indexed_go(OPDI_WALK_SCATTER, subset->self, subset->dim, subset->rows, subset->part, 1);
}
/* Returns true if folds of this kind into `tensor` must be computed in float32 and rounded once, at the end. */
OPDI_INTERNAL bool opdi_fold_rounds(int kind, const opd_tensor *tensor) {
    return (tensor->dtype == OPD_BFLOAT16 || tensor->dtype == OPD_FLOAT16) &&
        (kind == OPDI_WALK_ADD || kind == OPDI_WALK_MUL);
}

/* Checks the shapes of gather (src is NULL) and scatter by the rules of PyTorch's ScatterGatherChecks.h.  Returns 0, or
   -1 and sets an error. */
static int opdi_indexed_check(const opd_tensor *self, int dim, const opd_tensor *index, const opd_tensor *src,
                              const char *name) {
    char first[256], second[256], at[256];
    bool wrong = false, wrong_src = false;
    if (index->numel == 0) { return 0; }
    if (index->dtype != OPD_INT64 && index->dtype != OPD_INT32) {
        return opd_fail(OPD_ERROR_DTYPE, "%s(): Expected dtype int32/int64 for index", name);
    }
    if (OPDI_MAX((int)self->ndim, 1) != OPDI_MAX((int)index->ndim, 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "Index tensor must have the same number of dimensions as %s tensor",
                        strcmp(name, "gather") == 0 ? "input" : "self");
    }
    if (src && OPDI_MAX((int)src->ndim, 1) != OPDI_MAX((int)index->ndim, 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "Index tensor must have the same number of dimensions as src tensor");
    }
    for (int axis = 0; axis < index->ndim; axis++) {
        const int64_t count = opdi_sizes(index)[axis];
        if (axis != dim && count > (self->ndim ? opdi_sizes(self)[axis] : 1)) { wrong = true; }
        if (src && count > (src->ndim ? opdi_sizes(src)[axis] : 1)) { wrong_src = true; }
    }
    if (src && index->ndim == 0 && src->numel == 0) { wrong_src = true; }
    if (!wrong && !wrong_src) { return 0; }
    opdi_sizes_text(opdi_sizes(index), index->ndim, first, sizeof first);
    opdi_sizes_text(opdi_sizes(self), self->ndim, second, sizeof second);
    if (!src) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected index %s to be no larger than self %s apart from dimension %d",
                        first, second, dim);
    }
    return opd_fail(OPD_ERROR_SHAPE, "Expected index %s to be no larger than self %s apart from dimension %d and to be "
                    "no larger size than src %s", first, second, dim,
                    opdi_sizes_text(opdi_sizes(src), src->ndim, at, sizeof at));
}

static int opdi_gather_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    if (dim < 0 || opdi_indexed_check(self, dim, index, NULL, "gather")) { return -1; }
    if (opdi_exact_out(call, (opd_scalar_type)self->dtype)) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(index), index->ndim, (opd_scalar_type)self->dtype);
    return !out ? -1 : !out->data ? 0 : opdi_indexed_run(OPDI_WALK_GATHER, self, dim, index, out);
}
static int opdi_gather_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_scatter_add(opdi_maybe_zeros(grad, opd_bw_sizes(bw, 0)), opd_bw_value(bw, 1).u.i,
                                                opd_bw_tensor(bw, 2), grad));
}
/* opd_gather: for each position of index, the element of self at that position, with index as its coordinate in dim */
OPDI_OP(gather) {
    op->schema = "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor";
    op->cpu = op->fake = opdi_gather_kernel; op->backward = opdi_gather_backward; op->save = "index";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_APART;
    op->out = "gather.out";
    op->cases = "[3,4], 1, [3,2]i4; [3,4], 0, [2,4]i3";
}

/* Returns `value`, a Scalar, as a 0-dim tensor of this dtype, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_scalar_as_tensor(opd_value value, opd_scalar_type dtype) {
    opdi_number number;
    opd_tensor *tensor = opdi_own(opdi_tensor_make(NULL, NULL, 0, dtype, OPD_CPU));
    if (!tensor || opdi_number_check(value, dtype) || opdi_copy(tensor, opdi_number_make(&number, value))) {
        return NULL;
    }
    return tensor;
}
/* Folds alpha times src into out: each element of src is combined with the element of out whose coordinate in dim is in
   index, which was checked before.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fold_into(int kind, opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src, double alpha) {
    opdi_row_subset subset;
    if (!opdi_fold_rounds(kind, out) || index->numel == 0) {
        return opdi_indexed_go(kind, out, dim, index, src, alpha);
    }
    if (opdi_selects_few(index->numel, out)) {
        subset.self = out;
        subset.dim = dim;
        subset.index = index;
        subset.src = src;
        return opdi_row_subset_open(&subset, OPD_FLOAT32) ||
            opdi_indexed_go(kind, subset.scratch, subset.dim, subset.index, subset.src, alpha)
            ? -1 : opdi_row_subset_close(&subset);
    }
    opd_tensor *scratch = opdi_scratch_filled(out, OPD_FLOAT32);
    return scratch && opdi_indexed_go(kind, scratch, dim, index, src, alpha) == 0
        ? opdi_staging_store(out, scratch) : -1;
}
/* Returns src for a scatter.  If index is a single 0-dim number, only the first element of src is read: then returns
   this element as a 0-dim view.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_one_source(const opd_tensor *index, opd_tensor *src) {
    return index->ndim == 0 && src->ndim == 1 ? opdi_view(src, NULL, NULL, 0, 0) : src;
}
/* Runs all variants of scatter.  OPDI_WALK_SCATTER writes elements; the other kinds fold them into self.  `name` is
   used in messages.  Returns 0, or -1 and sets an error. */
static int opdi_scatter_kind(opd_call *call, int kind, const char *name) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2);
    const opd_value value = opd_arg_value(call, 3);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    opd_tensor *src = value.tag == OPD_TAG_TENSOR ? value.u.t : NULL;
    if (dim < 0) { return -1; }
    if (src && src->dtype != self->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s(): Expected self.dtype to be equal to src.dtype", name);
    }
    if (opdi_indexed_check(self, dim, index, src, name)) { return -1; }
    if (kind == OPDI_WALK_ADD && src && opd_dtype_is_complex(dtype)) { return opdi_by_parts(call); }
    opd_tensor *out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (src && !(src = opdi_one_source(index, src))) { return -1; }
    if (!src && !(src = opdi_scalar_as_tensor(value, dtype))) { return -1; }
    index = opdi_index_checked(index, dim, out->ndim ? opdi_sizes(out)[dim] : 1, false, NULL);
    return !index ? -1 : kind == OPDI_WALK_SCATTER ? opdi_indexed_go(kind, out, dim, index, src, 1)
           : opdi_fold_into(kind, out, dim, index, src, 1);
}
static int opdi_scatter_src_kernel(opd_call *call) { return opdi_scatter_kind(call, OPDI_WALK_SCATTER, "scatter"); }
static int opdi_scatter_add_kernel(opd_call *call) { return opdi_scatter_kind(call, OPDI_WALK_ADD, "scatter_add"); }
static int opdi_scatter_reduce_kernel(opd_call *call) {
    const char *how = opd_arg_str(call, 4);
    if (strcmp(how, "add") == 0) { return opdi_scatter_kind(call, OPDI_WALK_ADD, "scatter"); }
    if (strcmp(how, "multiply") == 0) { return opdi_scatter_kind(call, OPDI_WALK_MUL, "scatter"); }
    return opd_fail(OPD_ERROR_ARGUMENT, "reduce argument must be either add or multiply.");
}
/* Returns `part`, the gradient of the elements of src (argument 3) that a scatter has read, with the sizes of src: the
   other elements get zeros.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_source_gradient(opd_backward_call *bw, opd_tensor *part) {
    const opd_ints sizes = opd_bw_sizes(bw, 3);
    int64_t pads[2 * OPD_MAX_DIMS];
    bool pad = false;
    if (part && part->ndim == 0 && sizes.n == 1) { part = opd_unsqueeze(part, 0); }
    for (int dim = 0; part && dim < (int)sizes.n && dim < (int)part->ndim; dim++) {
        const int at = 2 * ((int)sizes.n - 1 - dim);
        pads[at] = 0;
        pads[at + 1] = sizes.data[dim] - opdi_sizes(part)[dim];
        pad = pad || pads[at + 1] != 0;
    }
    return part && pad ? opd_constant_pad_nd(part, opd_ints_of(pads, 2 * part->ndim)) : part;
}
static int opdi_scatter_src_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *index = opd_bw_tensor(bw, 2);
    const int64_t dim = opd_bw_value(bw, 1).u.i;
    OPDI_BW_RETURN(0, opd_scatter_value(grad, dim, index, opd_value_int(0)));
    OPDI_BW_RETURN(3, opdi_source_gradient(bw, opd_gather(grad, dim, index)));
    return 0;
}
static int opdi_scatter_add_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, grad);
    OPDI_BW_RETURN(3, opdi_source_gradient(bw, opd_gather(grad, opd_bw_value(bw, 1).u.i, opd_bw_tensor(bw, 2))));
    return 0;
}
/* opd_scatter: self, with src written at index along dim */
OPDI_OP(scatter_src) {
    op->schema = "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
    op->cpu = op->fake = opdi_scatter_src_kernel; op->backward = opdi_scatter_src_backward; op->save = "index";
    op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_PART;
    op->inplace = "scatter_.src"; op->out = "scatter.src_out";
    op->cases = "[3,4], 1, [3,1]i4, [3,1]";
}
/* opd_scatter_value: self, with value written at index along dim */
OPDI_OP(scatter_value) {
    op->schema = "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor";
    op->cpu = op->fake = opdi_scatter_src_kernel; op->backward = opdi_scatter_src_backward; op->save = "index";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_PART;
    op->inplace = "scatter_.value"; op->out = "scatter.value_out";
    op->cases = "[3,4], 1, [3,1]i4, 1.5";
}
/* opd_scatter_reduce: self, with src added or multiplied at index along dim; reduce is "add" or "multiply" */
OPDI_OP(scatter_reduce) {
    op->schema = "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor";
    op->cpu = op->fake = opdi_scatter_reduce_kernel; op->backward = opdi_refused_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->inplace = "scatter_.reduce"; op->out = "scatter.reduce_out";
    op->cases = "";
}
/* opd_scatter_value_reduce: self, with value added or multiplied at index along dim; reduce is "add" or "multiply" */
OPDI_OP(scatter_value_reduce) {
    op->schema = "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor";
    op->cpu = op->fake = opdi_scatter_reduce_kernel; op->backward = opdi_refused_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->inplace = "scatter_.value_reduce"; op->out = "scatter.value_reduce_out";
    op->cases = "";
}
/* opd_scatter_add: self, with src added at index along dim */
OPDI_OP(scatter_add) {
    op->schema = "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor";
    op->cpu = op->fake = opdi_scatter_add_kernel; op->backward = opdi_scatter_add_backward; op->save = "index(src)";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU;
    op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_PART;
    op->flops = opdi_flops_elements;
    op->inplace = "scatter_add_"; op->out = "scatter_add.out";
    op->cases = "[3,4], 1, [3,2]i4, [3,2]";
}

/* The reductions of scatter_reduce.two, index_reduce and segment_reduce, in the order of their numbers `how`. */
OPDI_INTERNAL const char *const opdi_reduce_names[] = {"sum", "prod", "amax", "amin", "mean"};
OPDI_INTERNAL int opdi_reduce_of(const char *name) {
    for (int i = 0; i < 5; i++) { if (strcmp(name, opdi_reduce_names[i]) == 0) { return i; } }
    return opd_fail(OPD_ERROR_ARGUMENT, "reduce argument must be either sum, prod, mean, amax or amin, got %s", name);
}
/* Returns the neutral element of the reduction `how` as a number of this dtype. */
OPDI_INTERNAL opd_value opdi_reduce_start(int how, opd_scalar_type dtype) {
    const int bits = 8 * (int)opd_dtype_size(dtype) - 1;
    const bool most = how == 3;                   /* true for amin, which starts with the largest number; amax starts
                                                     with the smallest */
    if (how == 1) { return opd_value_int(1); }
    if (how != 2 && how != 3) { return opd_value_int(0); }
    if (!opd_dtype_is_integral(dtype, true)) { return opd_value_double(most ? INFINITY : -INFINITY); }
    if (dtype == OPD_BOOL || dtype == OPD_UINT8) { return opd_value_int(!most ? 0 : dtype == OPD_BOOL ? 1 : 255); }
    return opd_value_int(most ? INT64_MAX >> (63 - bits) : -(INT64_MAX >> (63 - bits)) - 1);
}
OPDI_COLD_END
/* Divides each element of scratch by max(count, 1).  Integers are rounded down. */
static void opdi_reduce_divide(opd_tensor *scratch, const opd_tensor *count) {
    const int64_t *counts = (const int64_t *)(const void *)count->data;
    for (int64_t i = 0; i < scratch->numel; i++) {
        const int64_t depth = OPDI_MAX(counts[i], (int64_t)1);
        if (scratch->dtype == OPD_FLOAT32) { ((float *)(void *)scratch->data)[i] /= (float)depth; }
        else if (scratch->dtype == OPD_FLOAT64) { ((double *)(void *)scratch->data)[i] /= (double)depth; }
        else {
            int64_t *at = (int64_t *)(void *)scratch->data + i, q = *at / depth;
            *at = *at % depth < 0 ? q - 1 : q;
        }
    }
}
OPDI_COLD_BEGIN
/* Reduces src into scratch memory, like opdi_reduce_into.  If include_self is false, the written elements are first set
   to the neutral element.  For means, the memory must be contiguous and of a dtype in which loops compute.  Returns 0,
   or -1 and sets an error. */
static int opdi_reduce_on(opd_tensor *scratch, int dim, opd_tensor *index, opd_tensor *src, int how,
                          bool include_self) {
    static const int kinds[] = {OPDI_WALK_ADD, OPDI_WALK_MUL, OPDI_WALK_MAX, OPDI_WALK_MIN, OPDI_WALK_ADD};
    const opd_scalar_type dtype = (opd_scalar_type)scratch->dtype;
    if (!include_self) {
        opd_tensor *start = opdi_scalar_as_tensor(opdi_reduce_start(how, dtype), dtype);
        if (!start || opdi_indexed_go(OPDI_WALK_SCATTER, scratch, dim, index, start, 1)) { return -1; }
    }
    if (opdi_indexed_go(kinds[how], scratch, dim, index, src, 1)) { return -1; }
    if (how != 4) { return 0; }
    opd_tensor *one = opdi_scalar_as_tensor(opd_value_int(1), OPD_INT64);
    opd_tensor *start = opdi_scalar_as_tensor(opd_value_int(include_self), OPD_INT64);
    opd_tensor *count = opdi_own(opdi_tensor_make(opdi_sizes(scratch), NULL, scratch->ndim, OPD_INT64, OPD_CPU));
    if (!one || !start || !count || opdi_copy(count, start) ||
        opdi_indexed_go(OPDI_WALK_ADD, count, dim, index, one, 1)) {
        return -1;
    }
    opdi_reduce_divide(scratch, count);
    return 0;
}
/* Reduces src into out along dim at the positions in index.  Each size of src is at least the size of index.  If
   include_self is false, the old values of the written elements do not count.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_reduce_into(opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src, int how,
                                   bool include_self) {
    const opd_scalar_type dtype = (opd_scalar_type)opdi_compute_dtype[opdi_compute_type((opd_scalar_type)out->dtype)];
    opdi_row_subset subset;
    index = opdi_index_checked(index, dim, out->ndim ? opdi_sizes(out)[dim] : 1, false, NULL);
    if (!index || index->numel == 0) { return index ? 0 : -1; }
    if (how != 4 && !(how < 2 && opdi_fold_rounds(OPDI_WALK_ADD, out))) {
        return opdi_reduce_on(out, dim, index, src, how, include_self);
    }
    if (opdi_selects_few(index->numel, out)) {
        subset.self = out;
        subset.dim = dim;
        subset.index = index;
        subset.src = src;
        return opdi_row_subset_open(&subset, dtype) ||
            opdi_reduce_on(subset.scratch, subset.dim, subset.index, subset.src, how, include_self)
            ? -1 : opdi_row_subset_close(&subset);
    }
    opd_tensor *scratch = opdi_scratch_filled(out, dtype);
    return scratch && opdi_reduce_on(scratch, dim, index, src, how, include_self) == 0
        ? opdi_staging_store(out, scratch)
        : -1;
}
static int opdi_scatter_reduce_two_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2), *src = opd_arg_tensor(call, 3);
    int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim), how = opdi_reduce_of(opd_arg_str(call, 4));
    if (dim < 0 || how < 0) { return -1; }
    if (src->dtype != self->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "scatter(): Expected self.dtype to be equal to src.dtype");
    }
    if (opdi_is_complex(self) && (how == 0 || how == 4)) { return opdi_by_parts(call); }
    if (opd_dtype_is_complex((opd_scalar_type)self->dtype) && how != 1) {
        return opdi_dtype_fail("scatter_reduce", self->dtype);
    }
    if (opdi_indexed_check(self, dim, index, src, "scatter")) { return -1; }
    opd_tensor *out = opdi_update(call, false);
    if (!out || !out->data) { return out ? 0 : -1; }
    src = opdi_one_source(index, src);
    return src ? opdi_reduce_into(out, dim, index, src, how, opd_arg_bool(call, 5)) : -1;
}
/* The arguments that the gradients of scatter_reduce and index_reduce share.  opdi_picked reads a tensor at index: by
   index_select along dim if `rows` is set (index_reduce), else by gather. */
typedef struct opdi_picker { int64_t dim; opd_tensor *index; bool rows, include_self; } opdi_picker;
static opd_tensor *opdi_picked(const opdi_picker *picker, opd_tensor *tensor) {
    return picker->rows ? opd_index_select(tensor, picker->dim, picker->index) : opd_gather(tensor, picker->dim,
        picker->index);
}
static opd_tensor *opdi_drop_into(const opdi_picker *picker, opd_tensor *tensor, opd_tensor *src) {
    return picker->rows ? opd_index_add(tensor, picker->dim, picker->index, src) : opd_scatter_add(tensor, picker->dim,
        picker->index, src);
}
static opd_tensor *opdi_blank(const opdi_picker *picker, opd_tensor *tensor, int v) {
    return picker->rows ? opd_index_fill_int_Scalar(tensor, picker->dim, picker->index, opd_value_int(v))
        : opd_scatter_value(tensor, picker->dim, picker->index, opd_value_int(v));
}
/* Returns the gradient of src from that of the part that was read. */
static opd_tensor *opdi_source_part(opd_backward_call *bw, const opdi_picker *picker, opd_tensor *part) {
    return picker->rows ? part : opdi_source_gradient(bw, part);
}
/* Returns the part of src that a scatter reads: the part that has the sizes of index.  index_reduce reads all of
   src. */
static opd_tensor *opdi_reach(const opdi_picker *picker, opd_tensor *src) {
    for (int dim = 0; !picker->rows && dim < picker->index->ndim; dim++) {
        if (opdi_sizes(src)[dim] != opdi_sizes(picker->index)[dim]) {
            src = opdi_maybe_narrow(src, dim, 0, opdi_sizes(picker->index)[dim]);
        }
        if (!src) { return NULL; }
    }
    return !picker->rows && picker->index->ndim == 0 && src->ndim == 1 ? opd_select(src, 0, 0) : src;
}
/* Returns which factors of products are zero.  The product of the other factors, by which a factor's gradient is
   multiplied, is a quotient if none of them is zero, and must not be one otherwise. */
OPDI_INTERNAL opdi_zero_factors opdi_zero_factors_of(opd_tensor *factors) {
    opdi_zero_factors to;
    to.zero = opd_eq_Scalar(factors, opd_value_int(0));
    to.live = opdi_differentiated_again(factors) ? opdi_where(to.zero, factors) : NULL;
    to.ones = opd_masked_fill_Scalar(factors, to.zero, opd_value_int(1));
    return to;
}
/* Returns delta, the product of the nonzero other factors, times the product of the other factors that are zero.  The
   latter is 1 without such factors, their sum if there is one, and (sum^2 - sum of squares) / 2 if there are two, which
   has the right derivatives.  From three zeros on, the first two derivatives of the product are 0.  counts, sums and
   squares are sums over all zero factors of the same product: of 1, of the factors, and of their squares.  sums and
   squares are NULL if there is no further derivative. */
OPDI_INTERNAL opd_tensor *opdi_times_zeros(opd_tensor *delta, const opdi_zero_factors *own, opd_tensor *counts,
                                           opd_tensor *sums, opd_tensor *squares) {
    opd_tensor *others = opd_sub(counts, opd_to_dtype(own->zero, OPD_INT64));
    if (!sums) { return opdi_unless(delta, opd_gt_Scalar(others, opd_value_int(0))); }
    opd_tensor *sum = opd_sub(sums, own->live), *square = opd_sub(squares, opd_mul(own->live, own->live));
    opd_tensor *two = opdi_muls(opd_sub(opd_mul(sum, sum), square), 0.5);
    opd_tensor *zeros = opd_where_self(opd_eq_Scalar(others, opd_value_int(1)), sum, two);
    delta = opd_where_self(opd_eq_Scalar(others, opd_value_int(0)), delta, opd_mul(delta, zeros));
    return opdi_unless(delta, opd_gt_Scalar(others, opd_value_int(2)));
}
/* Computes the gradients of prod: the gradient of a factor is grad times the product of the other factors. */
static int opdi_reduce_prod_backward(opd_backward_call *bw, const opdi_picker *picker, opd_tensor *grad,
                                     opd_tensor *self, opd_tensor *src, int at) {
    opd_tensor *part = opdi_reach(picker, src), *base = picker->include_self ? self : opdi_blank(picker, self, 1);
    if (!part || !base) { return -1; }
    const opdi_zero_factors mine = opdi_zero_factors_of(base), theirs = opdi_zero_factors_of(part);
    opd_tensor *const converted = opd_to_dtype(mine.zero, OPD_INT64),
        *counts = opdi_drop_into(picker, converted, opd_to_dtype(theirs.zero, OPD_INT64));
    opd_tensor *rest = picker->rows ? opd_index_reduce(mine.ones, picker->dim, picker->index, theirs.ones, "prod")
        : opd_scatter_reduce_two(mine.ones, picker->dim, picker->index, theirs.ones, "prod");
    opd_tensor *sums = NULL, *squares = NULL;
    if (mine.live && theirs.live) {
        sums = opdi_drop_into(picker, mine.live, theirs.live);
        opd_tensor *const product = opd_mul(mine.live, mine.live);
        squares = opdi_drop_into(picker, product, opd_mul(theirs.live, theirs.live));
    }
    if (!opd_ok()) { return -1; }
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *delta = opdi_times_zeros(opd_div(rest, mine.ones), &mine, counts, sums, squares);
        delta = opd_mul(delta, grad);
        if (opd_bw_return(bw, 0, picker->include_self ? delta : opdi_blank(picker, delta, 0))) { return -1; }
    }
    if (opd_bw_needs(bw, at)) {
        opd_tensor *delta = opd_div(opdi_picked(picker, rest), theirs.ones);
        counts = opdi_picked(picker, counts);
        if (sums) { sums = opdi_picked(picker, sums); }
        if (squares) { squares = opdi_picked(picker, squares); }
        delta = opdi_times_zeros(delta, &theirs, counts, sums, squares);
        delta = opd_mul(delta, opdi_picked(picker, grad));
        if (opd_bw_return(bw, at, opdi_source_part(bw, picker, delta))) { return -1; }
    }
    return 0;
}
/* Computes the gradients of scatter_reduce or, if `rows` is true, of index_reduce.  The gradient is grad for sum, grad
   / count for mean, and for amax and amin grad, divided equally among the elements that equal the result.  For prod,
   see opdi_reduce_prod_backward. */
OPDI_INTERNAL int opdi_reduce_backward(opd_backward_call *bw, bool rows) {
    opd_tensor *self = opd_bw_tensor(bw, 0), *src = opd_bw_tensor(bw, 3), *result = opd_bw_result(bw, 0);
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const int how = opdi_reduce_of(opd_bw_value(bw, 4).u.s), at = 3;
    opdi_picker picker, *other = &picker;
    other->dim = opd_bw_value(bw, 1).u.i;
    other->index = opd_bw_tensor(bw, 2);
    other->rows = rows;
    other->include_self = opd_bw_value(bw, 5).u.i != 0;
    if (how == 0 || how == 4) {
        if (how == 4) {
            opd_tensor *ones = opd_ones_like_full(grad, opd_value_int(OPD_INT64), OPD_NONE, OPD_NONE, OPD_NONE,
                                                  OPD_NONE);
            opd_tensor *count = other->include_self ? ones : opdi_blank(other, ones, 0);
            count = opdi_drop_into(other, count, opdi_picked(other, ones));
            grad = opdi_by_count(grad, opd_clamp_min(count, opd_value_int(1)));
        }
        OPDI_BW_RETURN(0, other->include_self ? grad : opdi_blank(other, grad, 0));
        OPDI_BW_RETURN(at, opdi_source_part(bw, other, opdi_picked(other, grad)));
        return 0;
    }
    if (how == 1) { return opdi_reduce_prod_backward(bw, other, grad, self, src, at); }
    opd_tensor *part = opdi_reach(other, src);
    opd_tensor *mine = opd_to_dtype(opd_eq(self, result), OPD_INT64);
    opd_tensor *hit = opd_to_dtype(opd_eq(part, opdi_picked(other, result)), OPD_INT64);
    if (!other->include_self) { mine = opdi_blank(other, mine, 1); }
    opd_tensor *count = opdi_drop_into(other, other->include_self ? mine : opdi_blank(other, mine, 0), hit);
    grad = opdi_by_count(grad, opd_clamp_min(count, opd_value_int(1)));
    OPDI_BW_RETURN(0, other->include_self ? opd_mul(grad, mine) : opdi_blank(other, grad, 0));
    OPDI_BW_RETURN(at, opdi_source_part(bw, other, opd_mul(opdi_picked(other, grad), hit)));
    return 0;
}
static int opdi_scatter_reduce_two_backward(opd_backward_call *bw) { return opdi_reduce_backward(bw, false); }
/* opd_scatter_reduce_two: self, with src reduced at index along dim by "sum", "prod", "mean", "amax" or "amin" */
OPDI_OP(scatter_reduce_two) {
    op->schema = "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool "
        "include_self=True) -> Tensor";
    op->cpu = op->fake = opdi_scatter_reduce_two_kernel; op->backward = opdi_scatter_reduce_two_backward;
    op->save = "self, index, src, result";
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_PART;
    op->flops = opdi_flops_elements;
    op->inplace = "scatter_reduce_.two"; op->out = "scatter_reduce.two_out";
    op->cases = "[3,4], 1, [3,2]i4, [3,2], 'sum'; [3,4], 1, [3,2]i4, [3,2], 'mean'; [2,3], 1, [2,4]i3, [2,4], 'prod'; "
        "[2,3], 1, [2,4]i3, [2,4], 'prod', include_self=False";
}
OPDI_COLD_END
