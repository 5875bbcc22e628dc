#include "collective.h"

//== sharded data parallel training ====================================================================================

/* Returns the number of the parameter `tensor`, or -1 if there is no such parameter.  The search begins after the
   parameter that was found last. */
OPDI_INTERNAL int opdi_part_find(opd_parallel *parallel, const opd_tensor *tensor) {
    for (int i = 0; i < parallel->count; i++) {
        const int at = parallel->next + i < parallel->count ? parallel->next + i : parallel->next + i - parallel->count;
        if (parallel->params[at].tensor != tensor) { continue; }
        parallel->next = at + 1 < parallel->count ? at + 1 : 0;
        return at;
    }
    return -1;
}
static bool opdi_part_known(const opd_tensor *tensor) {
    bool found = false;
    opdi_lock(&opdi_shardings.lock);
    for (const opd_parallel *one = opdi_shardings.first; one && !found; one = one->following) {
        for (int i = 0; i < one->count && !found; i++) { found = one->params[i].tensor == tensor; }
    }
    opdi_unlock(&opdi_shardings.lock);
    return found;
}
/* Links gathered memory, and the nodes that use it, to the parameter that was gathered. */
typedef struct opdi_unsharded {
    opd_parallel *parallel;
    opd_tensor *memory;          /* device memory, a reference; NULL: host memory */
    int index;
    uint32_t version;
    size_t bytes;
} opdi_unsharded;
static opdi_unsharded *opdi_unsharded_new(opd_parallel *parallel, int index, size_t bytes) {
    opdi_unsharded *const whole = (opdi_unsharded *)opdi_alloc(sizeof *whole);
    if (!whole) { return NULL; }
    memset(whole, 0, sizeof *whole);
    whole->parallel = opdi_parallel_keep(parallel);
    whole->index = index;
    whole->bytes = bytes;
    return whole;
}
static void opdi_unsharded_free(void *its) {
    opdi_unsharded *const whole = (opdi_unsharded *)its;
    opd_parallel *const parallel = whole->parallel;
    opdi_free(whole, sizeof *whole);
    opd_parallel_free(parallel);
}
static void opdi_unsharded_drop(void *data, void *its) {
    const opdi_unsharded *const whole = (const opdi_unsharded *)its;
    if (whole->memory) { opdi_release(whole->memory); } else { opdi_free(data, whole->bytes); }
    opdi_unsharded_free(its);
}
/* Returns contiguous memory for all parts of parameter number `index`, on the parameter's device, and sets *out to the
   opdi_unsharded of this memory.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_unsharded_empty(opd_parallel *parallel, int index, opdi_unsharded **out) {
    const opd_tensor *const part = parallel->params[index].tensor;
    const opd_scalar_type dtype = (opd_scalar_type)part->dtype;
    const int64_t numel = parallel->params[index].part * parallel->group->desc.size;
    const size_t bytes = (size_t)numel * opd_dtype_size(dtype) + 1;
    opdi_unsharded *const whole = *out = opdi_unsharded_new(parallel, index, bytes);
    if (!whole) { return NULL; }
    if (part->backend != OPD_CPU) {
        whole->memory = opdi_keep(opd_tensor_new_on(opd_ints_of(&numel, 1), dtype, opd_tensor_device(part)));
    }
    void *const data = whole->memory ? whole->memory->data : part->backend == OPD_CPU ? opdi_alloc(bytes) : NULL;
    if (!data && !(whole->memory && numel == 0)) {
        opdi_unsharded_free(whole);
        return NULL;
    }
    return whole->memory ? opd_tensor_wrap_on(data, opd_ints_of(&numel, 1), NULL, dtype, opd_tensor_device(part),
                                              opdi_unsharded_drop, whole)
        : opd_tensor_wrap(data, opd_ints_of(&numel, 1), NULL, dtype, opdi_unsharded_drop, whole);
}
/* Begins to gather all parts of parameter number `index` into new contiguous memory.  Returns this memory as a
   tensor, or NULL and sets an error. */
static opd_tensor *opdi_unsharded_gather(opd_parallel *parallel, int index) {
    static opd_op *op;
    opd_value args[4];
    opdi_unsharded *whole = NULL;
    opd_tensor *const flat = opdi_unsharded_empty(parallel, index, &whole);
    if (!flat) { return NULL; }
    args[0] = opd_value_tensor(parallel->params[index].tensor);
    args[1] = opd_value_int(parallel->group->desc.size);
    args[2] = opd_value_str(parallel->group->name);
    args[3] = opd_value_tensor(flat);
    if (!opd_call_op(opd_op_cached(&op, OPDI_NAME(collectives, "_c10d_functional::all_gather_into_tensor_out")), args,
                     4)) { return NULL; }
    whole->version = OPDI_LOAD(&flat->storage->version);
    return flat;
}
/* Waits for the gradient that is being reduced, if there is one.  Returns 0, or -1 and sets an error. */
static int opdi_part_wait(opd_parallel *parallel) {
    opd_work *const work = parallel->pending;
    parallel->pending = NULL;
    return work ? opd_work_wait(work) : 0;
}
static int opdi_part_done(void *its) {
    opd_parallel *const parallel = (opd_parallel *)its;
    parallel->backward = 0;
    return opdi_part_wait(parallel);
}
/* Returns `numel` zeros with the dtype and device of `tensor`, or NULL and sets an error. */
static opd_tensor *opdi_new_zeros(const opd_tensor *tensor, int64_t numel) {
    opd_tensor *const out = opd_tensor_new_on(opd_ints_of(&numel, 1), (opd_scalar_type)tensor->dtype,
                                              opd_tensor_device(tensor));
    return out ? opd_zero_(out) : NULL;
}
/* Returns true if the gradients of `param` are reduced to plain, unweighted means. */
static bool opdi_unsharded_is_mean(const opd_parallel *parallel, const opd_tensor *param) {
    return parallel->total == 0 || (parallel->even && opd_dtype_size((opd_scalar_type)param->dtype) > 2);
}
/* Returns a gradient in the form in which it is sent: contiguous, weighted, and padded so that all ranks' parts have
   the same number of elements.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_unsharded_weighted(const opd_parallel *parallel, const opdi_parallel_param *param,
                                           opd_tensor *grad) {
    const int64_t numel = param->part * parallel->group->desc.size, row = -1;
    if (parallel->total > 0 && parallel->samples == 0) {
        return opdi_new_zeros(param->tensor, numel);
    }
    opd_tensor *flat = opd_reshape(grad, opd_ints_of(&row, 1));
    if (parallel->total > 0 && !opdi_unsharded_is_mean(parallel, param->tensor) &&
        parallel->samples != parallel->total) {
        flat = opd_mul_Scalar(flat, opd_value_double((double)parallel->samples / (double)parallel->total));
    }
    if (numel == param->numel || !flat) { return opd_contiguous(flat); }
    opd_tensor *const padded = opdi_new_zeros(param->tensor, numel);
    return padded && opd_copy_(opd_narrow(padded, 0, 0, param->numel), flat) ? padded : NULL;
}
/* Begins to compute the mean of all ranks' gradients of parameter number `index`; `grad` is this rank's gradient.
   First waits for the gradient that is being reduced, so that whole gradients do not accumulate in memory.  Returns
   this rank's part of the mean, or NULL and sets an error. */
static opd_tensor *opdi_unsharded_reduce(opd_parallel *parallel, int index, opd_tensor *grad) {
    const int64_t id = opd_backward_id();
    if (parallel->backward != id) {
        if (opd_backward_callback(opdi_part_done, opdi_parallel_keep(parallel), opdi_parallel_release)) {
            opd_parallel_free(parallel);
            return NULL;
        }
        parallel->backward = id;
    }
    opd_tensor *const flat = opdi_unsharded_weighted(parallel, &parallel->params[index], grad);
    if (!flat || opdi_part_wait(parallel)) { return NULL; }
    const bool means = opdi_unsharded_is_mean(parallel, parallel->params[index].tensor);
    opd_tensor *const part = opd_reduce_scatter(flat, means ? "avg" : "sum", parallel->group->name);
    if (part) { parallel->pending = opdi_work_of(opdi_storage_root(part), false); }
    return part;
}
static int opdi_unsharded_forward(opd_context *ctx) {
    const opdi_unsharded *const asked = (const opdi_unsharded *)opd_context_user(ctx);
    const opdi_parallel_param *const param = &asked->parallel->params[asked->index];
    opd_tensor *const flat = opdi_unsharded_gather(asked->parallel, asked->index);
    opdi_unsharded *const whole = flat ? opdi_unsharded_new(asked->parallel, asked->index, 0) : NULL;
    if (!whole || opd_context_set_data(ctx, whole, opdi_unsharded_free)) {
        if (whole) { opdi_unsharded_free(whole); }
        return -1;
    }
    opd_tensor *const values = opd_narrow(flat, 0, 0, param->numel);
    return opd_context_return(ctx, opd_view(values, opd_ints_of(param->sizes, param->ndim)));
}
static int opdi_unsharded_backward(opd_backward_call *bw) {
    const opdi_unsharded *const whole = (const opdi_unsharded *)opd_context_data(opd_bw_context(bw));
    return opd_bw_return(bw, 0, opdi_unsharded_reduce(whole->parallel, whole->index, opd_bw_grad(bw, 0)));
}
opd_tensor *opd_parallel_full(opd_parallel *parallel, opd_tensor *param) {
    opd_autograd_function function;
    opdi_unsharded asked;
    if (opdi_group_lost(parallel ? parallel->group : NULL) || opdi_null_tensor(param, "opd_parallel_full")) {
        return NULL;
    }
    const int index = parallel && parallel->sharded ? opdi_part_find(parallel, param) : -1;
    if (index < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_parallel_full: %s", !parallel ? "NULL" : parallel->sharded
                       ? "the tensor is not one of the parameters"
                       : "the parameters are not sharded: make the opd_parallel with opd_sharded_parallel");
        return NULL;
    }
    memset(&asked, 0, sizeof asked);
    asked.parallel = parallel;
    asked.index = index;
    memset(&function, 0, sizeof function);
    function.name = "ShardedParameter";
    function.forward = opdi_unsharded_forward;
    function.backward = opdi_unsharded_backward;
    function.user = &asked;
    function.once_differentiable = true;
    const opd_value input = opd_value_tensor(param);
    return opd_autograd_call(&function, &input, 1);
}

/* Returns the gathered parameter whose memory `tensor` uses, or NULL if there is none, or if that memory was changed
   after the gathering. */
static const opdi_unsharded *opdi_unsharded_of(const opd_tensor *tensor) {
    const opdi_storage *const storage = opdi_storage_root(tensor);
    const opdi_foreign *const foreign = (const opdi_foreign *)(const void *)storage;
    if (storage->block_bytes >= 0 || storage->block_bytes == OPDI_AGAIN || foreign->deleter != opdi_unsharded_drop) {
        return NULL;
    }
    const opdi_unsharded *const whole = (const opdi_unsharded *)foreign->user;
    const bool same = tensor->storage == storage && OPDI_LOAD(&storage->version) == whole->version &&
        tensor->dtype == whole->parallel->params[whole->index].tensor->dtype && !(tensor->flags & OPDI_LAZY);
    return same ? whole : NULL;
}
static void *opdi_gathered_pack(opd_tensor *tensor, void *user) {
    const opdi_unsharded *const whole = opdi_unsharded_of(tensor);
    opdi_gathered *const packed = (opdi_gathered *)opdi_alloc(sizeof *packed);
    (void)user;
    if (!packed) { return NULL; }
    memset(packed, 0, sizeof *packed);
    if (!whole) {
        packed->kept = opdi_keep(tensor);
        return packed;
    }
    packed->parallel = opdi_parallel_keep(whole->parallel);
    packed->index = whole->index;
    packed->version = OPDI_LOAD(&whole->parallel->params[whole->index].tensor->storage->version);
    packed->ndim = tensor->ndim;
    memcpy(packed->dims, tensor->dims, 2 * (size_t)tensor->ndim * sizeof *tensor->dims);
    packed->offset = (tensor->data - tensor->storage->data) /
        (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    opdi_lock(&opdi_shardings.lock);
    packed->before = packed->parallel->kept;
    if (packed->before) { packed->before->after = packed; }
    packed->parallel->kept = packed;
    opdi_unlock(&opdi_shardings.lock);
    return packed;
}
static bool opdi_gathered_fits(const opdi_gathered *packed) {
    return OPDI_LOAD(&packed->parallel->params[packed->index].tensor->storage->version) == packed->version;
}
/* Begins to gather the parameter that backward will probably need next: the parameter of the tensor that was saved
   before `packed`.  Does nothing if no earlier backward has gathered that parameter.  All ranks do the same.  Returns
   0, or -1 and sets an error. */
static int opdi_gathered_prefetch(opdi_gathered *packed) {
    const int64_t id = opd_backward_id();
    if (id <= 0) { return 0; }
    packed->backward = id;
    packed->parallel->params[packed->index].asked = true;
    opdi_lock(&opdi_shardings.lock);
    opdi_gathered *next = packed->before;
    while (next && next->backward == id) { next = next->before; }
    opdi_unlock(&opdi_shardings.lock);
    if (!next || next->ahead || !next->parallel->params[next->index].asked || !opdi_gathered_fits(next)) { return 0; }
    OPD_SCOPE { next->ahead = opdi_keep(opdi_unsharded_gather(next->parallel, next->index)); }
    return next->ahead ? 0 : -1;
}
static opd_tensor *opdi_gathered_unpack(void *its, void *user) {
    opdi_gathered *const packed = (opdi_gathered *)its;
    opd_tensor *const ahead = packed->ahead;
    (void)user;
    if (packed->kept) { return packed->kept; }
    packed->ahead = NULL;
    opd_tensor *const flat = !opdi_gathered_fits(packed) ? NULL : ahead ? ahead
        : opdi_unsharded_gather(packed->parallel, packed->index);
    if (!flat && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "sharded parameter %d was changed between forward and backward, but "
                       "backward needs its old value", packed->index);
    }
    opd_tensor *const view = !flat || opdi_gathered_prefetch(packed) ? NULL
        : opd_as_strided_full(flat, opd_ints_of(packed->dims, packed->ndim),
                              opd_ints_of(packed->dims + packed->ndim, packed->ndim), opd_value_int(packed->offset));
    opdi_release(ahead);
    return view;
}
static void opdi_gathered_drop(void *its, void *user) {
    opdi_gathered *const packed = (opdi_gathered *)its;
    (void)user;
    if (packed->parallel) {
        opdi_lock(&opdi_shardings.lock);
        if (packed->before) { packed->before->after = packed->after; }
        if (packed->after) { packed->after->before = packed->before; }
        else { packed->parallel->kept = packed->before; }
        opdi_unlock(&opdi_shardings.lock);
    }
    opdi_release(packed->kept);
    opdi_release(packed->ahead);
    opd_parallel_free(packed->parallel);
    opdi_free(packed, sizeof *packed);
}
int opd_sharded_hooks_begin(opd_parallel *parallel) {
    opd_saved_hooks hooks;
    if (!opd_ok()) { return -1; }
    if (!parallel || !parallel->sharded) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_hooks_begin: %s", parallel
                        ? "the parameters are not sharded: make the opd_parallel with opd_sharded_parallel" : "NULL");
    }
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = opdi_gathered_pack;
    hooks.unpack = opdi_gathered_unpack;
    hooks.drop = opdi_gathered_drop;
    return opd_saved_hooks_begin(&hooks);
}

/* Returns this rank's part of the whole parameter `tensor`, as a new tensor, or NULL and sets an error. */
static opd_tensor *opdi_part_cut(const opd_parallel *parallel, opd_tensor *tensor) {
    const int64_t size = parallel->group->desc.size, part = (tensor->numel + size - 1) / size, row = -1;
    const int64_t begin = OPDI_MIN(parallel->group->desc.rank * part, tensor->numel);
    const int64_t count = OPDI_MIN(part, tensor->numel - begin);
    opd_tensor *const flat = opd_reshape(opd_tensor_data(tensor), opd_ints_of(&row, 1));
    opd_tensor *const own = opdi_new_zeros(tensor, part);
    return flat && own && opd_copy_(opd_narrow(own, 0, 0, count), opd_narrow(flat, 0, begin, count)) ? own : NULL;
}
/* Allocates space for `count` more parameters in parallel->params.  Returns 0, or -1 and sets an error. */
static int opdi_parts_grow(opd_parallel *parallel, int count) {
    const int capacity = parallel->count + count > 2 * parallel->capacity
        ? parallel->count + count : 2 * parallel->capacity;
    if (parallel->count + count <= parallel->capacity) { return 0; }
    opdi_parallel_param *const more = (opdi_parallel_param *)opdi_alloc((size_t)capacity * sizeof *more);
    if (!more) { return -1; }
    memset(more, 0, (size_t)capacity * sizeof *more);
    opdi_lock(&opdi_shardings.lock);
    if (parallel->params) { memcpy(more, parallel->params, (size_t)parallel->count * sizeof *more); }
    opdi_parallel_param *const old = parallel->params;
    const size_t bytes = (size_t)parallel->capacity * sizeof *more;
    parallel->params = more;
    parallel->capacity = capacity;
    opdi_unlock(&opdi_shardings.lock);
    if (old) { opdi_free(old, bytes); }
    return 0;
}
/* Stores the sizes of `count` whole parameters in the next elements of parallel->params.  Returns 0, or -1 and sets an
   error. */
static int opdi_parts_describe(opd_parallel *parallel, opd_tensor *const *params, int count) {
    const int64_t size = parallel->group->desc.size;
    for (int i = 0; i < count; i++) {
        opdi_parallel_param *const param = &parallel->params[parallel->count + i];
        const size_t bytes = ((size_t)params[i]->ndim + 1) * sizeof *param->sizes;
        memset(param, 0, sizeof *param);
        param->sizes = (int64_t *)opdi_alloc(bytes);
        if (!param->sizes) { return -1; }
        memcpy(param->sizes, params[i]->dims, (size_t)params[i]->ndim * sizeof *param->sizes);
        param->ndim = params[i]->ndim;
        param->numel = params[i]->numel;
        param->part = (param->numel + size - 1) / size;
        param->parallel = parallel;
        param->index = parallel->count + i;
    }
    return 0;
}
/* Replaces all parameters by their parts.  Returns 0.  On failure, replaces no parameter, returns -1 and sets an
   error. */
static int opdi_parts_set(opd_parallel *parallel, opd_tensor *const *params, int count) {
    opd_tensor **const parts = (opd_tensor **)opdi_scope_alloc(2 * (size_t)count * sizeof *parts);
    int done = 0;
    for (int i = 0; parts && i < count; i++) {
        parts[i] = opdi_parallel_broadcast(parallel, params[i]) ? NULL : opdi_part_cut(parallel, params[i]);
        parts[count + i] = parts[i] ? opd_tensor_data(params[i]) : NULL;
        if (!parts[count + i]) { return -1; }
    }
    while (parts && done < count && opd_tensor_set_data(params[done], parts[done]) == 0) { done++; }
    if (parts && done == count) { return 0; }
    while (parts && --done >= 0) { (void)opd_tensor_set_data(params[done], parts[count + done]); }
    return -1;
}
int opd_sharded_add(opd_parallel *parallel, opd_tensor *const *params, int count) {
    if (opdi_group_lost(parallel ? parallel->group : NULL)) { return -1; }
    if (!parallel || !parallel->sharded) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_add: %s", parallel
                        ? "the parameters are not sharded: make the opd_parallel with opd_sharded_parallel" : "NULL");
    }
    if (opdi_parallel_check(params, count, parallel->group, "opd_sharded_add")) { return -1; }
    for (int i = 0; i < count; i++) {
        if (opdi_part_known(params[i])) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_add: parameter %d is already sharded", i);
        }
    }
    if (opdi_parallel_compare(parallel, params, count) || opdi_parts_grow(parallel, count)) { return -1; }
    int rc = opdi_parts_describe(parallel, params, count);
    const bool was = opd_grad_mode_set(false);
    OPD_SCOPE { rc = rc ? rc : opdi_parts_set(parallel, params, count); }
    (void)opd_grad_mode_set(was);
    for (int i = 0; i < count; i++) {
        opdi_parallel_param *const param = &parallel->params[parallel->count + i];
        if (rc && param->sizes) {
            opdi_free(param->sizes, ((size_t)param->ndim + 1) * sizeof *param->sizes);
            param->sizes = NULL;
        }
        if (rc) { continue; }
        param->tensor = opdi_keep(params[i]);
        opdi_unused_data_free(params[i]);
        (void)opd_tensor_set_grad(params[i], NULL);
    }
    opdi_lock(&opdi_shardings.lock);
    parallel->count += rc ? 0 : count;
    opdi_unlock(&opdi_shardings.lock);
    return rc ? -1 : 0;
}
opd_parallel *opd_sharded_parallel(opd_tensor *const *params, int count, opd_group *group,
                                   const opd_parallel_options *options) {
    if (opdi_group_lost(group) || opdi_group_none(group, "opd_sharded_parallel")) { return NULL; }
    opd_parallel *const parallel = (opd_parallel *)opdi_alloc(sizeof *parallel);
    if (!parallel) { return NULL; }
    memset(parallel, 0, sizeof *parallel);
    parallel->group = group;
    parallel->sharded = parallel->sync = true;
    parallel->refs = 1;
    opdi_ref_up(&group->refs);
    opdi_lock(&opdi_shardings.lock);
    parallel->following = opdi_shardings.first;
    opdi_shardings.first = parallel;
    OPDI_PUBLISH(&opdi_is_part, &opdi_part_known);
    opdi_unlock(&opdi_shardings.lock);
    int rc = opdi_parallel_take_buffers(parallel, options) || opdi_parallel_compare(parallel, NULL, 0);
    for (int i = 0; i < parallel->nbuffers && !rc; i++) {
        rc = opdi_parallel_broadcast(parallel, parallel->buffers[i]);
    }
    if (rc || ((params || count != 0) && opd_sharded_add(parallel, params, count))) {
        opd_parallel_free(parallel);
        return NULL;
    }
    return parallel;
}
/* Reduces `count` numbers over all ranks.  Returns 0, or -1 and sets an error. */
static int opdi_parts_total(opd_parallel *parallel, double *numbers, int count, opd_reduction reduction) {
    return opdi_parallel_move(parallel, OPD_COLLECTIVE_ALL_REDUCE, reduction, OPD_FLOAT64, numbers, count);
}
opd_tensor *opd_sharded_clip_grad_norm(opd_parallel *parallel, double max_norm) {
    double sum = 0;
    opd_tensor *result = NULL;
    if (opdi_group_lost(parallel ? parallel->group : NULL)) { return NULL; }
    if (!parallel || !parallel->sharded || !(max_norm >= 0)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_sharded_clip_grad_norm: %s", !parallel ? "NULL" : !parallel->sharded
                       ? "the parameters are not sharded: make the opd_parallel with opd_sharded_parallel"
                       : "the norm is negative or NaN");
        return NULL;
    }
    const bool was = opd_grad_mode_set(false);
    for (int i = 0; i < parallel->count && opd_ok(); i++) {
        OPD_SCOPE {
            opd_tensor *const grad = opd_tensor_grad(parallel->params[i].tensor);
            opd_tensor *const wide = grad ? opd_to_dtype(grad, OPD_FLOAT64) : NULL;
            if (wide) { sum += opd_item_f64(opd_sum(opd_mul(wide, wide))); }
        }
    }
    if (opd_ok() && opdi_parts_total(parallel, &sum, 1, OPD_REDUCTION_SUM) == 0) {
        const double factor = max_norm / (sqrt(sum) + 1e-6);
        for (int i = 0; i < parallel->count && opd_ok() && !(factor >= 1); i++) {
            OPD_SCOPE {
                opd_tensor *const grad = opd_tensor_grad(parallel->params[i].tensor);
                if (grad) { (void)opd_mul_Scalar_(grad, opd_value_double(factor)); }
            }
        }
        if (opd_ok()) { result = opd_full(opd_ints_of(NULL, 0), opd_value_double(sqrt(sum)), OPD_FLOAT32); }
    }
    (void)opd_grad_mode_set(was);
    return result;
}
