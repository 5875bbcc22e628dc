#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:lists     indexing by lists of index tensors: index, index_put, take, put
//
//  An index list is a Python index such as x[i, :, mask]: tensors of integers or masks, and None for a whole dim.
//----------------------------------------------------------------------------------------------------------------------

/* The plan of an index list for self.  The dims of self are in three groups: before the indexed dims, the indexed dims,
   and after them.  If the indexed dims are not adjacent, the group before them is empty, and all other dims are in the
   group after them.  The index tensors are broadcast to one shape; each position of this shape selects an offset in
   self. */
typedef struct opdi_pick_plan {
    int nbefore, nafter, nshape;                  /* numbers of dims in before, after and shape */
    int64_t before[OPD_MAX_DIMS], before_stride[OPD_MAX_DIMS], after[OPD_MAX_DIMS], after_stride[OPD_MAX_DIMS];
    int64_t shape[OPD_MAX_DIMS];
    int64_t out[OPD_MAX_DIMS];                    /* sizes of the result: before, shape, after */
    int nout;
    int64_t nb, na, nq;                           /* products of the sizes in before, after and shape */
    int64_t *offset;                              /* [nq], in elements of self; NULL for fake tensors */
    opd_tensor *scratch;                          /* owns the memory of offset */
    opd_tensor *index[OPD_MAX_DIMS];              /* the index for each dim of self; NULL: the whole dim */
} opdi_pick_plan;

/* Finds the true elements of a mask of bytes.  Sets out[mask->ndim] to int64 vectors with their coordinates, one vector
   for each dim.  Returns 0, or -1 and sets an error. */
static int opdi_mask_positions(opd_tensor *mask, opd_tensor **out) {
    opd_tensor *mean = mask->backend == OPD_META ? mask : opdi_packed(mask);
    int64_t count = 0, k = 0, at[OPD_MAX_DIMS];
    if (!mean) { return -1; }
    if (mean->backend == OPD_META) {
        count = opdi_fake_size(0, mean->numel);
        for (int dim = 0; dim < mean->ndim && opd_ok(); dim++) {
            out[dim] = opdi_own(opdi_tensor_make(&count, NULL, 1, OPD_INT64, OPD_META));
        }
        return opd_ok() ? 0 : -1;
    }
    for (int64_t i = 0; i < mean->numel; i++) { count += mean->data[i] != 0; }
    for (int dim = 0; dim < mean->ndim; dim++) {
        at[dim] = 0;
        out[dim] = opdi_own(opdi_tensor_make(&count, NULL, 1, OPD_INT64, OPD_CPU));
        if (!out[dim]) { return -1; }
    }
    for (int64_t i = 0; i < mean->numel; i++) {
        if (mean->data[i]) {
            for (int dim = 0; dim < mean->ndim; dim++) { ((int64_t *)(void *)out[dim]->data)[k] = at[dim]; }
            k++;
        }
        for (int dim = mean->ndim - 1; dim >= 0 && ++at[dim] == opdi_sizes(mean)[dim]; dim--) { at[dim] = 0; }
    }
    return 0;
}
OPDI_COLD_BEGIN
/* Fills plan->index from the list.  A mask is replaced by the coordinates of its true elements, one tensor for each dim
   of the mask (at::native::expandTensors).  Returns 0, or -1 and sets an error. */
static int opdi_pick_expand(opdi_pick_plan *plan, const opd_tensor *self, opd_tensors list) {
    int count = 0;
    if (list.n == 0) { return opd_fail(OPD_ERROR_INDEX, "at least one index must be provided"); }
    for (int64_t k = 0; k < list.n; k++) {
        opd_tensor *tensor = list.data[k];
        const int width = !tensor || (tensor->dtype != OPD_BOOL && tensor->dtype != OPD_UINT8) ? 1 : tensor->ndim;
        if (count + width > self->ndim) {
            return opd_fail(OPD_ERROR_INDEX, "too many indices for tensor of dimension %d (got %lld)", self->ndim,
                            (long long)OPDI_MAX(list.n, (int64_t)count + width));
        }
        if (tensor && tensor->dtype == OPD_INT32 && !(tensor = opd_to_dtype(tensor, OPD_INT64))) { return -1; }
        if (!tensor || tensor->dtype == OPD_INT64) {
            plan->index[count++] = tensor;
            continue;
        }
        if (tensor->dtype != OPD_BOOL && tensor->dtype != OPD_UINT8) {
            return opd_fail(OPD_ERROR_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
        }
        for (int dim = 0; dim < tensor->ndim; dim++) {
            if (opdi_sizes(tensor)[dim] != opdi_sizes(self)[count + dim]) {
                char first[256], second[256];
                return opd_fail(OPD_ERROR_INDEX, "The shape of the mask %s at index %d does not match the shape of the "
                                "indexed tensor %s at index %d",
                                opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, first, sizeof first), dim,
                                opdi_sizes_text(opdi_sizes(self), self->ndim, second, sizeof second), count + dim);
            }
        }
        if (tensor->ndim == 0) {
            return opd_fail(OPD_ERROR_INDEX, "a mask without dimensions is not supported as an index");
        }
        if (opdi_mask_positions(tensor, plan->index + count)) { return -1; }
        count += tensor->ndim;
    }
    for (; count < self->ndim; count++) { plan->index[count] = NULL; }
    return 0;
}
OPDI_COLD_END
/* Broadcasts the index tensors against each other and fills plan->offset: for each position, adds up index times stride
   over the indexed dims.  Returns 0, or -1 and sets an error. */
static int opdi_pick_offsets(opdi_pick_plan *plan, const opd_tensor *self) {
    plan->scratch = opdi_own(opdi_tensor_make(plan->shape, NULL, plan->nshape, OPD_INT64, OPD_CPU));
    if (!plan->scratch) { return -1; }
    plan->offset = (int64_t *)(void *)plan->scratch->data;
    memset(plan->offset, 0, (size_t)plan->nq * sizeof *plan->offset);
    for (int dim = 0; dim < self->ndim; dim++) {
        const int64_t size = opdi_sizes(self)[dim], stride = opdi_strides(self)[dim];
        if (!plan->index[dim]) { continue; }
        opd_tensor *input = opdi_own(opdi_tensor_make(plan->shape, NULL, plan->nshape, OPD_INT64, OPD_CPU));
        if (!input || opdi_copy(input, plan->index[dim])) { return -1; }
        const int64_t *values = (const int64_t *)(const void *)input->data;
        for (int64_t q = 0; q < plan->nq; q++) {
            const int64_t depth = values[q] < 0 ? values[q] + size : values[q];
            if ((uint64_t)depth >= (uint64_t)size) { return opdi_out_of_bounds(values[q], dim, size); }
            plan->offset[q] += depth * stride;
        }
    }
    return 0;
}
OPDI_COLD_BEGIN
static int opdi_pick_shape(opdi_pick_plan *plan, const opd_tensor *self) {
    bool any = false;
    plan->nshape = 0;
    for (int dim = 0; dim < self->ndim; dim++) {
        if (!plan->index[dim]) { continue; }
        any = true;
        if (opdi_broadcast_into(plan->shape, &plan->nshape, plan->index[dim])) { return -1; }
    }
    if (!any) { plan->nshape = 0; }
    plan->nq = opdi_span_of(plan->shape, 0, plan->nshape);
    return 0;
}
/* Makes the plan of self[list].  Returns 0, or -1 and sets an error. */
static int opdi_pick_make(opdi_pick_plan *plan, const opd_tensor *self, opd_tensors list) {
    int first = -1, last = -1, count = 0;
    if (opdi_pick_expand(plan, self, list) || opdi_pick_shape(plan, self)) { return -1; }
    for (int dim = 0; dim < self->ndim; dim++) {
        if (!plan->index[dim]) { continue; }
        if (first < 0) { first = dim; }
        last = dim;
        count++;
    }
    if (count && last - first + 1 != count) { first = 0; }        /* not adjacent: the indexed dims come first */
    if (!count) { first = self->ndim; }
    plan->nbefore = plan->nafter = plan->nout = 0;
    for (int dim = 0; dim < self->ndim; dim++) {
        const bool front = dim < first && count;
        if (plan->index[dim]) { continue; }
        if (front || !count) {
            plan->before[plan->nbefore] = opdi_sizes(self)[dim];
            plan->before_stride[plan->nbefore++] = opdi_strides(self)[dim];
        }
        else {
            plan->after[plan->nafter] = opdi_sizes(self)[dim];
            plan->after_stride[plan->nafter++] = opdi_strides(self)[dim];
        }
    }
    const int ndim = plan->nbefore + plan->nshape + plan->nafter;
    if (ndim > OPD_MAX_DIMS) { return opdi_dims_fail(ndim); }
    for (int dim = 0; dim < plan->nbefore; dim++) { plan->out[plan->nout++] = plan->before[dim]; }
    for (int dim = 0; dim < plan->nshape; dim++) { plan->out[plan->nout++] = plan->shape[dim]; }
    for (int dim = 0; dim < plan->nafter; dim++) { plan->out[plan->nout++] = plan->after[dim]; }
    plan->nb = opdi_span_of(plan->before, 0, plan->nbefore);
    plan->na = opdi_span_of(plan->after, 0, plan->nafter);
    plan->offset = NULL;
    return 0;
}
OPDI_COLD_END

typedef struct opdi_pick_job { const opdi_pick_plan *plan; char *self, *values; int size; } opdi_pick_job;
#define OPDI_PICK_ELEMENTS(type) {                                                                          \
        const type *source = (const type *)(const void *)first; type *value = (type *)(void *)second;       \
        for (int64_t k = 0; k < count; k++) { value[k] = source[places[k]]; } return; }
/* Gathers single elements: copies the element of `first` at offset places[k] to element k of `second`. */
static void opdi_pick_elements(const char *first, const int64_t *places, char *second, int64_t count, int size) {
    switch (size) {
        case 1: OPDI_PICK_ELEMENTS(uint8_t)
        case 2: OPDI_PICK_ELEMENTS(uint16_t)
        case 4: OPDI_PICK_ELEMENTS(uint32_t)
        case 8: OPDI_PICK_ELEMENTS(uint64_t)
        default: break;
    }
    for (int64_t k = 0; k < count; k++) { memcpy(second + k * size, first + places[k] * size, (size_t)size); }
}
/* Copies the elements at positions [begin, end) to values.  A position is a pair: an index in the dims before the
   indexed dims, and a position of the broadcast index.  For each such pair, all elements in the dims after the indexed
   dims are copied. */
static void opdi_pick_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_pick_job *pick_job = (const opdi_pick_job *)ctx;
    const opdi_pick_plan *plan = pick_job->plan;
    const int64_t count = plan->nafter ? plan->after[plan->nafter - 1] : 1,
        stride = plan->nafter ? plan->after_stride[plan->nafter - 1] : 1;
    int64_t item = begin;
    while (item < end) {
        int64_t rest = item / plan->nq, q = item % plan->nq;
        char *first = pick_job->self, *second = pick_job->values + item * plan->na * pick_job->size;
        for (int dim = plan->nbefore - 1; dim >= 0; dim--) {
            first += rest % plan->before[dim] * plan->before_stride[dim] * pick_job->size;
            rest /= plan->before[dim];
        }
        if (plan->na == 1) {
            int64_t rows = OPDI_MIN(plan->nq - q, end - item);
            opdi_pick_elements(first, plan->offset + q, second, rows, pick_job->size);
            item += rows;
            continue;
        }
        first += plan->offset[q] * pick_job->size;
        for (int64_t row = 0; row < plan->na / count; row++) {
            int64_t at = 0;
            rest = row;
            for (int dim = plan->nafter - 2; dim >= 0; dim--) {
                at += rest % plan->after[dim] * plan->after_stride[dim];
                rest /= plan->after[dim];
            }
            opdi_move_run(second + row * count * pick_job->size, pick_job->size, first + at * pick_job->size,
                          stride * pick_job->size, count, pick_job->size);
        }
        item++;
    }
}
OPDI_COLD_BEGIN
/* Fills `values`, a contiguous tensor of self's dtype, with the elements of self that the plan selects. */
static void opdi_pick_go(opdi_pick_plan *plan, opd_tensor *self, opd_tensor *values) {
    opdi_pick_job pick_job;
    if (values->numel == 0) { return; }
    while (plan->nafter > 1 &&
           plan->after_stride[plan->nafter - 2] ==
           plan->after_stride[plan->nafter - 1] * plan->after[plan->nafter - 1]) {
        plan->after[plan->nafter - 2] *= plan->after[plan->nafter - 1];
        plan->after_stride[plan->nafter - 2] = plan->after_stride[plan->nafter - 1];
        plan->nafter--;
    }
    pick_job.plan = plan;
    pick_job.self = self->data;
    pick_job.values = values->data;
    pick_job.size = (int)opd_dtype_size((opd_scalar_type)self->dtype);
    opdi_parallel_for(plan->nb * plan->nq, OPDI_MAX((int64_t)1, OPDI_GRAIN / plan->na), opdi_pick_part, &pick_job);
}
/* Makes the result for the plan.  The dims of the result lie in memory in the order in which TensorIterator arranges
   the strides of self and of the index tensors.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_pick_result(opd_call *call, const opdi_pick_plan *plan, opd_tensor *self) {
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    int64_t strides[OPD_MAX_DIMS] = {0}, next = 1;
    opd_tensor *ops[OPD_MAX_DIMS + 1];
    bool plain = (self->flags & OPDI_CONTIGUOUS) != 0;
    int nops = 1, perm[OPD_MAX_DIMS];
    for (int dim = 0; dim < self->ndim && plain; dim++) {
        const opd_tensor *index = plan->index[dim];
        plain = !index || index->ndim < 2 || (index->flags & OPDI_CONTIGUOUS);
    }
    if (plain || plan->nout < 2) { return opd_result(call, 0, plan->out, plan->nout, dtype); }
    for (int dim = 0; dim < plan->nbefore; dim++) { strides[dim] = plan->before_stride[dim]; }
    for (int dim = 0; dim < plan->nafter; dim++) {
        strides[plan->nbefore + plan->nshape + dim] = plan->after_stride[dim];
    }
    if (!(ops[0] = opdi_view(self, plan->out, strides, plan->nout, 0))) { return NULL; }
    for (int dim = 0; dim < self->ndim; dim++) {
        const opd_tensor *index = plan->index[dim];
        if (!index) { continue; }
        memset(strides, 0, sizeof strides);
        for (int k = 0; k < plan->nshape; k++) {
            strides[plan->nbefore + k] = opdi_broadcast_stride(index, plan->shape, plan->nshape, k);
        }
        if (!(ops[nops++] = opdi_view(plan->index[dim], plan->out, strides, plan->nout, 0))) { return NULL; }
    }
    opdi_dims_order(ops, nops, plan->out, plan->nout, perm);
    for (int i = 0; i < plan->nout; i++) {
        strides[perm[i]] = next;
        next *= plan->out[perm[i]];
    }
    return opd_result_strided(call, 0, plan->out, next ? strides : NULL, plan->nout, dtype, opd_tensor_device(self));
}
static int opdi_index_Tensor_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opdi_pick_plan plan;
    if (opdi_pick_make(&plan, self, opd_arg_tensors(call, 1))) { return -1; }
    opd_tensor *out = opdi_pick_result(call, &plan, self);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (opdi_pick_offsets(&plan, self)) { return -1; }
    opd_tensor *scratch = opdi_staging(out, (opd_scalar_type)self->dtype);
    if (!scratch) { return -1; }
    opdi_pick_go(&plan, self, scratch);
    return opdi_staging_store(out, scratch);
}
static int opdi_index_Tensor_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0,
                         opd_index_put(opdi_maybe_zeros(grad, opd_bw_sizes(bw, 0)), opd_bw_tensors(bw, 1), grad,
                                            true));
}
/* The index list of index and index_put under vmap, rewritten so that a single call serves all examples.  nshape:
   number of dims of the broadcast indices.  lead: dims before the first indexed dim.  width: number of indexed dims. */
typedef struct opdi_index_plan {
    opd_tensors list;
    int nshape, lead, width;                      /* numbers of dims */
    bool batched, adjacent;                       /* batched: true if an index differs per example; adjacent: true if
                                                     the indexed dims are adjacent */
} opdi_index_plan;
/* Makes *plan from the call's list.  If self_batched, self has one entry per example in dim 0; otherwise all examples
   share one self.  Returns 0, or -1 and sets an error. */
static int opdi_index_plan_of(opd_call *call, opdi_index_plan *plan, bool self_batched) {
    const opd_tensors list = opd_arg_tensors(call, 1);
    opd_tensor **out = (opd_tensor **)opdi_scope_alloc(((size_t)list.n + 2) * sizeof *out);
    int64_t ones[OPD_MAX_DIMS];
    int regions = 0, count = 0, dim;
    bool inside = false;
    if (!out) { return -1; }
    memset(plan, 0, sizeof *plan);
    for (int64_t k = 0; k < list.n; k++) {
        opd_tensor *tensor = list.data[k];
        const bool mask = tensor && (tensor->dtype == OPD_BOOL || tensor->dtype == OPD_UINT8);
        if (!tensor) {
            plan->lead += regions == 0;
            inside = false;
            continue;
        }
        (void)opd_batch_value(tensor, &dim);
        if (mask && dim >= 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "vmap: We do not support batching operators that can output dynamic "
                            "shape. Attempting to batch over indexing with a boolean mask.");
        }
        regions += !inside;
        inside = true;
        plan->nshape = OPDI_MAX(plan->nshape, mask ? 1 : tensor->ndim);
        plan->width += mask ? tensor->ndim : 1;
        plan->batched = plan->batched || dim >= 0;
    }
    plan->adjacent = regions <= 1;
    if (self_batched && plan->batched) {
        opd_tensor *first = opd_arg_tensor(call, 0);
        for (int axis = 0; axis <= plan->nshape && axis < OPD_MAX_DIMS; axis++) {
            ones[axis] = axis ? 1 : call->th->innermost.rule->size;
        }
        first = opd_arange_full(opd_value_int(call->th->innermost.rule->size), opd_value_int(OPD_INT64), OPD_NONE,
                                opd_value_device(opd_tensor_device(first)), OPD_NONE);
        out[count++] = opdi_maybe_reshape(first, ones, plan->nshape + 1);
        if (!out[0]) { return -1; }
    } else if (self_batched) { out[count++] = NULL; }
    for (int64_t k = 0; k < list.n; k++) {
        opd_tensor *tensor = list.data[k] ? opd_batch_value(list.data[k], &dim) : NULL;
        if (tensor && dim >= 0 && !(tensor = opdi_batch_pad(opd_batch_front(tensor, dim), plan->nshape))) { return -1; }
        out[count++] = tensor;
    }
    plan->list = opd_tensors_of(out, count);
    return 0;
}
/* Exchanges two groups of dims: returns tensor [B, a..., b..., rest] as [B, b..., a..., rest], where a has `first` dims
   and b has `second` dims. */
static opd_tensor *opdi_index_swap(opd_tensor *tensor, int first, int second) {
    int64_t dims[OPD_MAX_DIMS];
    if (!tensor || first == 0 || second == 0) { return tensor; }
    for (int dim = 0; dim < tensor->ndim; dim++) {
        dims[dim] = dim == 0 || dim > first + second ? dim : dim <= second ? dim + first : dim - second;
    }
    return opd_permute(tensor, opd_ints_of(dims, tensor->ndim));
}
static int opdi_index_batch(opd_call *call) {
    opdi_index_plan plan;
    int dim;
    opd_tensor *self = opd_batch_arg(call, 0, &dim);
    if (opdi_index_plan_of(call, &plan, dim >= 0)) { return -1; }
    opd_tensor *result = opd_index(dim >= 0 ? opd_batch_front(self, dim) : self, plan.list);
    if (!plan.batched) { return opd_batch_return(call, result, plan.adjacent ? 0 : plan.nshape); }
    if (dim < 0) { return opd_batch_return(call, result, plan.adjacent ? plan.lead : 0); }
    return opd_batch_return(call, plan.adjacent ? opdi_index_swap(result, plan.nshape, plan.lead) : result, 0);
}
/* The batching rule of index_put.  Dim 0 of self counts the examples.  If an index differs per example, one more index
   selects the example. */
static int opdi_index_put_batch(opd_call *call) {
    opdi_index_plan plan;
    int64_t sizes[OPD_MAX_DIMS + 1];
    const int ndim = call->args[0].u.t->ndim, nvalues = call->args[2].u.t->ndim;
    int dim;
    opd_tensor *values = opd_batch_arg(call, 2, &dim), *self = opdi_batch_front_arg(call, 0);
    if (!self || opdi_index_plan_of(call, &plan, true)) { return -1; }
    int rank = plan.nshape + ndim - plan.width;
    if (plan.width > ndim || nvalues > rank || rank >= OPD_MAX_DIMS) { return opdi_batch_unfit(call); }
    if (dim >= 0) { values = opdi_batch_pad(opd_batch_front(values, dim), rank); }
    else {
        for (int axis = 0; axis <= rank; axis++) {
            sizes[axis] = axis <= rank - nvalues ? 1 : opdi_sizes(values)[axis - 1 - rank + nvalues];
        }
        values = opdi_maybe_reshape(values, sizes, rank + 1);
    }
    if (!values) { return -1; }
    if (plan.batched && plan.adjacent) { values = opdi_index_swap(values, plan.lead, plan.nshape); }
    if (!plan.batched && !plan.adjacent) { values = opd_movedim(values, 0, plan.nshape); }
    return opd_batch_return(call, opd_index_put(self, plan.list, values, opd_arg_bool(call, 3)), 0);
}
/* opd_index: the elements of self that a list of indices selects: one tensor or None (the whole dim) for each dim, or
   masks */
OPDI_OP(index_Tensor) {
    op->schema = "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor";
    op->cpu = op->fake = opdi_index_Tensor_kernel; op->backward = opdi_index_Tensor_backward; op->save = "indices";
    op->vmap = opdi_index_batch;
    op->tags = OPD_OPTAG_CORE | OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPDI_OPTAG_OUT_APART;
    op->out = "index.Tensor_out";
    op->cases = "[3,4], {[2]i3}; [3,4,2], {[2,1]i3, [2]i4}";
}

static int opdi_put_check(const opdi_pick_plan *plan, const opd_tensor *values) {
    char first[256], second[256];
    bool fits = values->ndim <= plan->nout;
    for (int dim = 0; dim < values->ndim && fits; dim++) {
        const int64_t count = opdi_sizes(values)[dim];
        fits = count == 1 || count == plan->out[plan->nout - values->ndim + dim];
    }
    return fits ? 0 : opd_fail(OPD_ERROR_SHAPE, "shape mismatch: value tensor of shape %s cannot be broadcast to "
                               "indexing result of shape %s",
                               opdi_sizes_text(opdi_sizes(values), values->ndim, first, sizeof first),
                               opdi_sizes_text(plan->out, plan->nout, second, sizeof second));
}
/* Returns values, viewed with the dims that opdi_put_values uses: the dims before the indexed dims, one dim for all
   positions of the broadcast index, and the dims after the indexed dims.  Makes a copy if such a view is impossible or
   if values share memory with out. */
static opd_tensor *opdi_put_source(const opdi_pick_plan *plan, const opd_tensor *out, opd_tensor *values,
                                   const int64_t *sizes, int ndim) {
    int64_t strides[OPD_MAX_DIMS], count = 1;
    bool packed = opdi_has_sizes(values, plan->out, plan->nout) && (values->flags & OPDI_CONTIGUOUS);
    if (values->storage == out->storage || (plan->nshape > 1 && !packed)) {
        opd_tensor *full = opdi_own(opdi_tensor_make(plan->out, NULL, plan->nout, (opd_scalar_type)values->dtype,
                                                     OPD_CPU));
        if (!full || opdi_copy(full, values)) { return NULL; }
        values = full;
        packed = true;
    }
    if (packed) {
        for (int dim = ndim - 1; dim >= 0; count = opdi_size_times(count, sizes[dim--])) { strides[dim] = count; }
        return opdi_view(values, sizes, strides, ndim, 0);
    }
    for (int dim = 0; dim < ndim; dim++) {        /* strides of a broadcast view; without dims of the index, values lack
                                                     dim nbefore, which has size 1 */
        int k = values->ndim - plan->nout + (plan->nshape == 0 && dim > plan->nbefore ? dim - 1 : dim);
        strides[dim] = k < 0 || opdi_sizes(values)[k] == 1 || (plan->nshape == 0 && dim == plan->nbefore)
            ? 0 : opdi_strides(values)[k];
    }
    return opdi_view(values, sizes, strides, ndim, 0);
}
/* Writes values to the positions of out that the index list selects or, if `accumulate`, adds them there.  Runs one
   walk (see opdi_indexed_go) over a view of out in which a single dim of stride 1 replaces all indexed dims; the walk's
   index holds offsets along this dim.  Returns 0, or -1 and sets an error. */
static int opdi_put_values(opd_tensor *out, opd_tensors list, opd_tensor *values, bool accumulate) {
    int64_t sizes[OPD_MAX_DIMS + 1], strides[OPD_MAX_DIMS + 1];
    opdi_pick_plan plan;
    opdi_row_subset other;
    opd_tensor *scratch = out;
    const int kind = accumulate ? OPDI_WALK_ADD : OPDI_WALK_SCATTER;
    bool few = false;
    int ndim = 0;
    if (opdi_pick_make(&plan, out, list)) { return -1; }
    if (opdi_fold_rounds(kind, out) && !(few = opdi_selects_few(plan.nb * plan.nq * plan.na, out))) {
        scratch = opdi_scratch_filled(out, OPD_FLOAT32);
        if (!scratch || opdi_pick_make(&plan, scratch, list)) { return -1; }
    }
    if (opdi_pick_offsets(&plan, scratch) || opdi_put_check(&plan, values)) { return -1; }
    for (int dim = 0; dim < plan.nbefore; dim++) {
        sizes[ndim] = plan.before[dim];
        strides[ndim++] = plan.before_stride[dim];
    }
    sizes[ndim] = plan.nq;
    strides[ndim++] = 1;
    for (int dim = 0; dim < plan.nafter; dim++) {
        sizes[ndim] = plan.after[dim];
        strides[ndim++] = plan.after_stride[dim];
    }
    if (ndim > OPD_MAX_DIMS) { return opdi_dims_fail(ndim); }
    other.dim = plan.nbefore;
    other.self = opdi_view(scratch, sizes, strides, ndim, 0);
    other.src = opdi_put_source(&plan, out, values, sizes, ndim);
    other.index = opdi_rows_expand(plan.scratch, other.dim, sizes, ndim);
    if (!other.self || !other.src || !other.index || other.index->numel == 0) {
        return other.self && other.src && other.index ? 0 : -1;
    }
    if (few) {
        return opdi_row_subset_open(&other, OPD_FLOAT32) ||
            opdi_indexed_go(kind, other.scratch, other.dim, other.index, other.src, 1)
                ? -1 : opdi_row_subset_close(&other);
    }
    return opdi_indexed_go(kind, other.self, other.dim, other.index, other.src, 1)
        ? -1 : opdi_staging_store(out, scratch);
}
static int opdi_index_put_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *values = opd_arg_tensor(call, 2);
    const bool accumulate = opd_arg_bool(call, 3);
    if (self->dtype != values->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Index put requires the source and destination dtypes match, got %s for the "
                        "destination and %s for the source.",
                        opd_dtype_name((opd_scalar_type)self->dtype), opd_dtype_name((opd_scalar_type)values->dtype));
    }
    if (accumulate && opdi_is_complex(self)) { return opdi_by_parts(call); }
    opd_tensor *out = opdi_update(call, true);
    return !out ? -1 : !out->data ? 0 : opdi_put_values(out, opd_arg_tensors(call, 1), values, accumulate);
}
static int opdi_index_put_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_tensors list = opd_bw_tensors(bw, 1);
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *zero = opd_bw_value(bw, 3).u.i ? NULL : opdi_maybe_zeros(grad, opd_ints_of(NULL, 0));
        if (opd_bw_return(bw, 0, opd_bw_value(bw, 3).u.i ? grad : opd_index_put(grad, list, zero, false))) {
            return -1;
        }
    }
    OPDI_BW_RETURN(2, opd_index(grad, list));
    return 0;
}
/* opd_index_put(self, indices, values, accumulate): self, with values written at indices or, if accumulate is true,
   added there */
OPDI_OP(index_put) {
    op->schema = "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor";
    op->cpu = op->fake = opdi_index_put_kernel; op->backward = opdi_index_put_backward; op->save = "indices";
    op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_index_put_batch; op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU; op->tags = OPD_OPTAG_CORE;
    op->inplace = "index_put_"; op->out = "index_put.out";
    op->cases = "[3,4], {[1]i3}, [4]; [3,4], {[2]i3}, [2,4], True";
}

static int opdi_index_put_impl__kernel(opd_call *call) {
    opd_value values[4];
    static opd_op *op;
    for (int i = 0; i < 4; i++) { values[i] = call->args[i]; }
    return opd_return_tensor(call, opd_call_op(OPD_OP(&op, OPDI_NAME(index_put, "aten::index_put_")), values, 4));
}
/* opd__index_put_impl_: index_put into self itself */
OPDI_OP(_index_put_impl_) {
    op->schema = "_index_put_impl_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False, bool "
        "unsafe=False) -> Tensor(a!)";
    op->composite = opdi_index_put_impl__kernel;
    op->cases = "";
}

/* Returns all elements of tensor as one row.  The row may share tensor's memory, so the caller must only read it. */
static opd_tensor *opdi_flat_of(opd_tensor *tensor) {
    const int64_t one = 1;
    tensor = opdi_packed(tensor);
    return tensor ? opdi_view(tensor, &tensor->numel, &one, 1, 0) : NULL;
}
/* Returns checked positions, which count the elements of self in row-major order, as offsets into self's memory.  On
   failure, returns NULL and sets an error. */
static opd_tensor *opdi_take_offsets(opd_tensor *index, const opd_tensor *self) {
    if (!index || (self->flags & OPDI_CONTIGUOUS)) { return index; }
    opd_tensor *tensor = opdi_own(opdi_tensor_make(index->dims, NULL, index->ndim, OPD_INT64, OPD_CPU));
    if (!tensor) { return NULL; }
    int64_t *to = (int64_t *)(void *)tensor->data;
    for (int64_t i = 0; i < tensor->numel; i++) {
        int64_t rest = ((const int64_t *)(const void *)index->data)[i], at = 0;
        for (int dim = self->ndim - 1; dim >= 0; dim--) {
            at += rest % opdi_sizes(self)[dim] * opdi_strides(self)[dim];
            rest /= opdi_sizes(self)[dim];
        }
        to[i] = at;
    }
    return tensor;
}
/* Returns the index of take as contiguous int64 numbers in [0, numel).  If an index is out of range, fails with take's
   message.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_take_index(opd_tensor *index, int64_t numel) {
    int64_t bad;
    opd_tensor *input = opdi_index_load(index, numel, true, &bad);
    if (input && bad >= 0) {
        (void)opd_fail(OPD_ERROR_INDEX, "out of range: tried to access index %lld on a tensor of %lld elements.",
                       (long long)((const int64_t *)(const void *)input->data)[bad], (long long)numel);
        return NULL;
    }
    return input;
}
static int opdi_take_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1);
    if (index->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "take(): Expected a long tensor for index, but got %s",
                        opd_dtype_name((opd_scalar_type)index->dtype));
    }
    if (self->numel == 0 && index->numel) {
        return opd_fail(OPD_ERROR_INDEX, "take(): tried to take from an empty tensor");
    }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(index), index->ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    index = opdi_take_offsets(opdi_take_index(index, self->numel), self);
    opd_tensor *flat = index ? opdi_span_view(self) : NULL;
    return flat ? opdi_rows_select(flat, 0, index, out, "out of range") : -1;
}
static int opdi_take_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    return opd_bw_return(bw, 0, opd_put_full(opdi_maybe_zeros(grad, opd_bw_sizes(bw, 0)), opd_bw_tensor(bw, 1), grad,
                                             true));
}
/* The kernel of take under vmap: reshapes self to one row and indexes this row. */
static int opdi_take_indexed(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1);
    self = opdi_maybe_reshape(self, &self->numel, 1);
    return self ? opd_return_tensor(call, opd_index(self, opd_tensors_of(&index, 1))) : -1;
}
static int opdi_take_batch(opd_call *call) {
    int dim, at;
    opd_tensor *self = opd_batch_arg(call, 0, &dim), *index = opd_batch_arg(call, 1, &at);
    if (call->args[1].u.t->dtype != OPD_INT64 || (dim >= 0 && call->args[0].u.t->numel == 0)) {
        return opdi_batch_unfit(call);
    }
    return dim < 0 ? opd_batch_return(call, opd_take(self, index), at) : opdi_batch_as(call, opdi_take_indexed);
}
/* opd_take: the elements of self at index, which counts all elements of self in row-major order */
OPDI_OP(take) {
    op->schema = "take(Tensor self, Tensor index) -> Tensor";
    op->cpu = op->fake = opdi_take_kernel; op->backward = opdi_take_backward; op->save = "index";
    op->vmap = opdi_take_batch;
    op->out = "take.out"; op->tags = OPDI_OPTAG_OUT_APART;
    op->cases = "[3,4], [2,3]i12";
}

/* put: returns self with source's elements written or, if `accumulate`, added at the positions in index, which count
   the elements of self in row-major order. */
static int opdi_put_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1), *src = opd_arg_tensor(call, 2);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (index->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "put_(): Expected a long tensor for index, but got %s",
                        opd_dtype_name((opd_scalar_type)index->dtype));
    }
    if (self->dtype != src->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "put_(): self and source expected to have the same dtype, but got self.dtype "
                        "= %s and source.dtype = %s", opd_dtype_name(dtype),
                        opd_dtype_name((opd_scalar_type)src->dtype));
    }
    if (index->numel != src->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "put_(): Expected source and index to have the same number of elements, but "
                        "got source.numel() = %lld, index.numel() = %lld", (long long)src->numel,
                            (long long)index->numel);
    }
    if (self->numel == 0 && index->numel) {
        return opd_fail(OPD_ERROR_INDEX, "put_(): Tried to put elements into an empty tensor");
    }
    if (call->targets && call->inplace &&
        (opdi_check_overlap(self, index, true) || opdi_check_overlap(self, src, true))) { return -1; }
    if (opd_arg_bool(call, 3) && opdi_is_complex(self)) { return opdi_by_parts(call); }
    opd_tensor *out = opdi_update(call, true);
    if (!out || !out->data) { return out ? 0 : -1; }
    index = opdi_take_offsets(opdi_take_index(index, self->numel), out);
    index = index ? opdi_flat_of(index) : NULL;
    opd_tensor *flat = index ? opdi_span_view(out) : NULL;
    src = flat ? opdi_flat_of(src) : NULL;
    return src ? opdi_put_values(flat, opd_tensors_of(&index, 1), src, opd_arg_bool(call, 3)) : -1;
}
static int opdi_put_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *index = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *zeros = opd_bw_value(bw, 3).u.i ? NULL
            : opdi_maybe_zeros(grad, opd_ints_of(opdi_sizes(index), index->ndim));
        if (opd_bw_return(bw, 0, opd_bw_value(bw, 3).u.i ? grad : opd_put_full(grad, index, zeros, false))) {
            return -1;
        }
    }
    if (opd_bw_needs(bw, 2)) {
        const opd_ints sizes = opd_bw_sizes(bw, 2);
        if (opd_bw_return(bw, 2, opdi_maybe_reshape(opd_take(grad, index), sizes.data, sizes.n))) { return -1; }
    }
    return 0;
}
static int opdi_put_indexed(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1), *source = opd_arg_tensor(call, 2);
    if (self->numel == 0 || index->dtype != OPD_INT64 || index->numel != source->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected int64 indices, one for each of the %lld elements of source, "
                        "and a self that is not empty", (long long)source->numel);
    }
    index = opdi_maybe_reshape(index, &index->numel, 1);
    source = opdi_maybe_reshape(source, &source->numel, 1);
    opd_tensor *result = opd_index_put(opdi_maybe_reshape(self, &self->numel, 1), opd_tensors_of(&index, 1),
                                            source, opd_arg_bool(call, 3));
    return opd_return_tensor(call, opdi_maybe_reshape(result, opdi_sizes(self), self->ndim));
}
static int opdi_put_batch(opd_call *call) { return opdi_batch_as(call, opdi_put_indexed); }
/* opd_put: self, with source written or, if accumulate is true, added at the row-major positions in index */
OPDI_OP(put) {
    op->schema = "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor";
    op->cpu = op->fake = opdi_put_kernel; op->backward = opdi_put_backward; op->save = "index";
    op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_put_batch;
    op->inplace = "put_"; op->out = "put.out";
    op->cases = "[3,4], [1]i12, [1]; [3,4], [5]i12, [5], True";
}

/* take_along_dim: gathers along dim, with the other dims broadcast.  Without dim, gathers from all elements of self as
   one row. */
static int opdi_take_along_dim_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1);
    int64_t first[OPD_MAX_DIMS], second[OPD_MAX_DIMS], minus = -1;
    if (index->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "take_along_dim: dtype of indices should be int64 but got %s",
                        opd_dtype_name((opd_scalar_type)index->dtype));
    }
    if (opd_arg_is_none(call, 2)) {
        opd_tensor *const shaped = opdi_maybe_reshape(self, &minus, 1);
        return opd_return_tensor(call, opd_gather(shaped, 0, opdi_maybe_reshape(index, &minus, 1)));
    }
    if (self->ndim != index->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "take_along_dim: input and indices should have the same number of "
                        "dimensions, but got %d dimensions for input, "
                        "and %d dimensions for indices", self->ndim, index->ndim);
    }
    int dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    if (dim < 0) { return -1; }
    if (self->ndim > 0) {                          /* negative indices count from the end */
        opd_tensor *below = opd_to_dtype(opd_lt_Scalar(index, opd_value_int(0)), OPD_INT64);
        index = opd_add_full(index, below, opd_value_int(opdi_sizes(self)[dim]));
        if (!index) { return -1; }
    }
    for (int axis = 0; axis < self->ndim; axis++) {
        const int64_t rows = opdi_sizes(self)[axis], count = opdi_sizes(index)[axis];
        if (axis != dim && rows != count && rows != 1 && count != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %d", (long long)rows, (long long)count, axis);
        }
        first[axis] = axis == dim ? rows : rows == 1 ? count : rows;
        second[axis] = axis == dim ? count : first[axis];
    }
    opd_tensor *const expanded = opdi_maybe_expand(self, first, self->ndim);
    return opd_return_tensor(call, opd_gather(expanded, dim, opdi_maybe_expand(index, second, self->ndim)));
}
/* opd_take_along_dim: gather along dim, with the other dims broadcast; without dim, the same as take */
OPDI_OP(take_along_dim) {
    op->schema = "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor";
    op->composite = opdi_take_along_dim_kernel;
    op->out = "take_along_dim.out"; op->tags = OPDI_OPTAG_OUT_APART;
    op->cases = "[3,4], [3,2]i4, 1; [3,4], [5]i12";
}

//== masked_select, masked_scatter =====================================================================================

/* Replaces *tensors and *mask by contiguous tensors that are broadcast against each other.  Sets sizes[*ndim] to their
   common sizes.  Returns 0, or -1 and sets an error. */
static int opdi_masked_open(opd_tensor **tensors, opd_tensor **mask, int64_t *sizes, int *ndim) {
    opd_tensor *both[2];
    *ndim = 0;
    both[0] = *tensors;
    both[1] = *mask;
    if (opdi_broadcast_into(sizes, ndim, *tensors) || opdi_broadcast_into(sizes, ndim, *mask)) { return -1; }
    for (int i = 0; i < 2; i++) {
        if (opdi_has_sizes(both[i], sizes, *ndim) && (both[i]->flags & OPDI_CONTIGUOUS)) { continue; }
        opd_tensor *third = opdi_own(opdi_tensor_make(sizes, NULL, *ndim, (opd_scalar_type)both[i]->dtype, OPD_CPU));
        if (!third || opdi_copy(third, both[i])) { return -1; }
        both[i] = third;
    }
    *tensors = both[0];
    *mask = both[1];
    return 0;
}
OPDI_COLD_END
#define OPDI_MASKED_MOVE(type) {                                                                            \
        type *to = (type *)(void *)dst; const type *from = (const type *)(const void *)src;                 \
        if (compress) { for (int64_t i = 0; i < count; i++) { if (mask[i]) { *to++ = from[i]; } } }         \
        else { for (int64_t i = 0; i < count; i++) { if (mask[i]) { to[i] = *from++; } } } return; }
/* Moves the elements that the mask selects.  If `compress`, the selected elements of src are written to dst one after
   another.  Otherwise the elements of src are written in order to the selected positions of dst.  `count` is the number
   of mask elements, `size` the bytes of an element. */
static void opdi_masked_move(char *dst, const char *src, const char *mask, int64_t count, int size, bool compress) {
    switch (size) {
        case 1: OPDI_MASKED_MOVE(uint8_t)
        case 2: OPDI_MASKED_MOVE(uint16_t)
        case 4: OPDI_MASKED_MOVE(uint32_t)
        case 8: OPDI_MASKED_MOVE(uint64_t)
        default: break;
    }
    for (int64_t i = 0; i < count; i++) {
        if (!mask[i]) { continue; }
        memcpy(compress ? dst : dst + i * size, compress ? src + i * size : src, (size_t)size);
        if (compress) { dst += size; } else { src += size; }
    }
}
static int64_t opdi_mask_count(const opd_tensor *mask) {
    int64_t count = 0;
    for (int64_t i = 0; i < mask->numel; i++) { count += mask->data[i] != 0; }
    return count;
}
OPDI_COLD_BEGIN
/* masked_select: returns a row of the elements of self where mask is true.  self and mask are broadcast against each
   other. */
static int opdi_masked_select_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1);
    int64_t sizes[OPD_MAX_DIMS], count;
    int ndim;
    if (mask->dtype != OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_select: expected BoolTensor for mask");
    }
    if (mask->backend == OPD_META) {
        ndim = 0;
        if (opdi_broadcast_into(sizes, &ndim, self) || opdi_broadcast_into(sizes, &ndim, mask)) { return -1; }
        count = opd_fake_new_size(call, 0, opdi_count(sizes, ndim, 1));
        return opd_ok() && opd_result(call, 0, &count, 1, (opd_scalar_type)self->dtype) ? 0 : -1;
    }
    if (opdi_masked_open(&self, &mask, sizes, &ndim)) { return -1; }
    count = opdi_mask_count(mask);
    opd_tensor *out = opd_result(call, 0, &count, 1, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    opd_tensor *scratch = opdi_staging(out, (opd_scalar_type)out->dtype);
    if (!scratch) { return -1; }
    opdi_masked_move(scratch->data, self->data, mask->data, self->numel,
                     (int)opd_dtype_size((opd_scalar_type)self->dtype), true);
    return opdi_staging_store(out, scratch);
}
/* Computes the gradient of self: writes grad's elements at the selected positions of zeros, and sums over the dims in
   which self was broadcast. */
static int opdi_masked_select_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *mask = opd_bw_tensor(bw, 1);
    const opd_ints own = opd_bw_sizes(bw, 0);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = (int)own.n, dim;
    memcpy(sizes, own.data, sizeof *sizes * (size_t)own.n);
    if (opdi_broadcast_into(sizes, &ndim, mask)) { return -1; }
    grad = opd_masked_scatter(opdi_maybe_zeros(grad, opd_ints_of(sizes, ndim)), mask, grad);
    int shift = ndim - (int)own.n;
    for (dim = 0; dim < shift; dim++) { sizes[dim] = dim; }
    for (ndim = shift, dim = 0; dim < (int)own.n && grad; dim++) {
        if (own.data[dim] == 1 && opdi_sizes(grad)[dim + shift] != 1) { sizes[ndim++] = dim + shift; }
    }
    if (ndim && grad) { grad = opdi_maybe_reshape(opdi_maybe_sum_dims(grad, sizes, ndim, true), own.data, own.n); }
    return opd_bw_return(bw, 0, grad);
}
/* The kernel of masked_select under vmap if all examples share the mask: uses the mask as an index. */
static int opdi_masked_select_indexed(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    if (opdi_broadcast_into(sizes, &ndim, self) || opdi_broadcast_into(sizes, &ndim, mask)) { return -1; }
    int64_t count = opdi_span_of(sizes, 0, ndim);
    self = opdi_maybe_reshape(opdi_maybe_expand(self, sizes, ndim), &count, 1);
    mask = opdi_maybe_reshape(opdi_maybe_expand(mask, sizes, ndim), &count, 1);
    return mask ? opd_return_tensor(call, opd_index(self, opd_tensors_of(&mask, 1))) : -1;
}
static int opdi_masked_select_batch(opd_call *call) {
    int dim;
    (void)opd_batch_arg(call, 1, &dim);
    return dim >= 0 ? opdi_batch_dynamic(call) : opdi_batch_as(call, opdi_masked_select_indexed);
}
/* opd_masked_select: the elements of self where mask is true, as a vector */
OPDI_OP(masked_select) {
    op->schema = "masked_select(Tensor self, Tensor mask) -> Tensor";
    op->cpu = op->fake = opdi_masked_select_kernel; op->backward = opdi_masked_select_backward; op->save = "mask";
    op->vmap = opdi_masked_select_batch;
    op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPDI_OPTAG_OUT_DYNAMIC | OPDI_OPTAG_OUT_APART;
    op->out = "masked_select.out";
    op->cases = "[3,4], [3,4]b; [3,4], [4]b";
}

/* masked_scatter: returns self with the elements of source, in order, at the positions where mask is true.  self and
   mask are broadcast against each other. */
static int opdi_masked_scatter_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *src = opd_arg_tensor(call, 2);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim = 0;
    if (self->dtype != src->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_scatter: expected self and source to have same dtypes but got%s and "
                        "%s", opd_dtype_name((opd_scalar_type)self->dtype),
                            opd_dtype_name((opd_scalar_type)src->dtype));
    }
    if (mask->dtype != OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_scatter_ only supports boolean masks, but got mask with dtype %s",
                        opd_dtype_name((opd_scalar_type)mask->dtype));
    }
    if (opdi_broadcast_into(sizes, &ndim, self) || opdi_broadcast_into(sizes, &ndim, mask)) { return -1; }
    opd_tensor *out = call->targets && call->inplace ? opdi_update(call, false)
        : opd_result(call, 0, sizes, ndim, (opd_scalar_type)self->dtype);
    if (!out || !out->data) { return out ? 0 : -1; }
    if (!opdi_has_sizes(out, sizes, ndim)) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_SHAPE, "output with shape %s doesn't match the broadcast shape %s",
                        opdi_shape_text(out, first), opdi_sizes_text(sizes, ndim, second, sizeof second));
    }
    if (!(call->targets && call->inplace) && opdi_copy(out, self)) { return -1; }
    opd_tensor *mean = opdi_own(opdi_tensor_make(sizes, NULL, ndim, (opd_scalar_type)mask->dtype, OPD_CPU));
    opd_tensor *scratch = opdi_scratch_filled(out, (opd_scalar_type)out->dtype);
    src = opdi_packed(src);
    if (!mean || !scratch || !src || opdi_copy(mean, mask)) { return -1; }
    if (opdi_mask_count(mean) > src->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "Number of elements of source < number of ones in mask");
    }
    opdi_masked_move(scratch->data, src->data, mean->data, scratch->numel,
                     (int)opd_dtype_size((opd_scalar_type)out->dtype),
                     false);
    return opdi_staging_store(out, scratch);
}
/* Computes the gradient of source, which has `count` elements, without intermediate results whose sizes depend on the
   mask.  A selected position received the element of source whose index is the number of selected positions before
   it. */
static opd_tensor *opdi_masked_scatter_put(opd_tensor *grad, opd_tensor *mask, int64_t count) {
    opd_tensor *zeros = opdi_maybe_zeros(grad, opd_ints_of(&count, 1));
    if (count == 0) { return zeros; }
    mask = opdi_maybe_reshape(opdi_maybe_expand(opd_to_dtype(mask, OPD_BOOL), opdi_sizes(grad), grad->ndim),
                              &grad->numel, 1);
    opd_tensor *at = opd_sub_Scalar(opd_cumsum(opd_to_dtype(mask, OPD_INT64), 0), opd_value_int(1));
    at = opd_clamp_min(at, opd_value_int(0));
    grad = opdi_where(mask, opdi_maybe_reshape(grad, &grad->numel, 1));
    return at ? opd_index_put(zeros, opd_tensors_of(&at, 1), grad, true) : NULL;
}
static int opdi_masked_scatter_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *mask = opd_bw_tensor(bw, 1);
    OPDI_BW_RETURN(0, opd_masked_fill_Scalar(grad, mask, opd_value_int(0)));
    if (opd_bw_needs(bw, 2)) {                    /* grad at the selected positions, then zeros for the rest of
                                                     source */
        const opd_ints sizes = opd_bw_sizes(bw, 2);
        int64_t pad[2] = {0, 0};
        if (opd_tensor_is_batched(mask)) {
            opd_tensor *tensor = opdi_masked_scatter_put(grad, mask, opdi_span_of(sizes.data, 0, (int)sizes.n));
            return opd_bw_return(bw, 2, opdi_maybe_reshape(tensor, sizes.data, sizes.n));
        }
        opd_tensor *tensor = opd_masked_select(grad, mask);
        if (!tensor) { return -1; }
        pad[1] = opdi_span_of(sizes.data, 0, (int)sizes.n) - tensor->numel;
        if (pad[1]) { tensor = opd_constant_pad_nd(tensor, opd_ints_of(pad, 2)); }
        return opd_bw_return(bw, 2, opdi_maybe_reshape(tensor, sizes.data, sizes.n));
    }
    return 0;
}
/* opd_masked_scatter: self, with the elements of source, in order, at the positions where mask is true */
OPDI_OP(masked_scatter) {
    op->schema = "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor";
    op->cpu = op->fake = opdi_masked_scatter_kernel; op->backward = opdi_masked_scatter_backward; op->save = "mask";
    op->vmap = OPD_BATCH_LOOP; op->tags = OPD_OPTAG_CORE;
    op->inplace = "masked_scatter_"; op->out = "masked_scatter.out";
    op->cases = "[3,4], [3,4]b, [12]";
}

//== where with numbers, where of one argument =========================================================================

static int opdi_where_Scalar_kernel(opd_call *call) {
    opd_value arg = opd_arg_value(call, 1), second = opd_arg_value(call, 2);
    return opd_return_tensor(call, opd_where_self(opd_arg_tensor(call, 0), opd_tensor_wrapped_number(arg),
                                                  opd_tensor_wrapped_number(second)));
}
/* opd_where_Scalar: self where condition is true, else other */
OPDI_OP(where_Scalar) {
    op->schema = "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor";
    op->composite = opdi_where_Scalar_kernel;
    op->cases = "[2,3]b, 1.5, 2.5";
}

static int opdi_where_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_tensor *list[OPD_MAX_DIMS];
    int64_t count = OPDI_MAX((int)self->ndim, 1);
    if (self->ndim == 0) { self = opd_unsqueeze(self, 0); }
    opd_tensor *tensor = opd_nonzero(self);
    if (!tensor) { return -1; }
    for (int64_t dim = 0; dim < count; dim++) {
        list[dim] = opdi_maybe_select(tensor, 1, dim);
        if (!list[dim]) { return -1; }
    }
    return opd_return_tensors(call, list, count);
}
/* opd_where: the coordinates of the elements of condition that are not 0, one index tensor for each dim */
OPDI_OP(where) {
    op->schema = "where(Tensor condition) -> Tensor[]";
    op->composite = opdi_where_kernel;
    op->cases = "[2,3]b; []b";
}
OPDI_COLD_END
