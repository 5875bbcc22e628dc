#include "collective.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>parallel     data parallel training
//
//  A hook runs after the accumulation of each gradient and notices when a bucket has all its gradients.  The gradients
//  are copied into the bucket and weighted.  Then the bucket is reduced over all ranks, after all previous buckets, in
//  the same order on every rank.  At the end of backward, the remaining buckets follow, and backward waits for all of
//  them.  A gradient that this backward has made then becomes a view of a part of the bucket.  An older gradient is
//  overwritten with the result.  If other code uses the memory of a bucket, for example by older gradients, the bucket
//  gets new memory.  This section uses >>collectives and public functions of hooks and operators.
//----------------------------------------------------------------------------------------------------------------------

static const char *opdi_parallel_maker(const opd_parallel *parallel) {
    return parallel->sharded ? "opd_sharded_parallel" : "opd_data_parallel";
}

//== buckets ===========================================================================================================

static opd_scalar_type opdi_param_dtype(const opd_parallel *parallel, int64_t index) {
    return (opd_scalar_type)parallel->params[index].tensor->dtype;
}
static void opdi_buckets_drop(opd_parallel *parallel) {
    for (int i = 0; i < parallel->nbuckets; i++) {
        opd_work_release(parallel->buckets[i].work);
        opdi_release(parallel->buckets[i].flat);
    }
    memset(parallel->buckets, 0, ((size_t)parallel->count + 1) * sizeof *parallel->buckets);
    parallel->nbuckets = 0;
}
/* Allocates memory for a bucket, with the dtype and device of `beside`.  Returns 0.  On failure, returns -1 and sets
   an error, and the bucket keeps its old memory. */
static int opdi_bucket_memory(opdi_bucket *bucket, const opd_tensor *beside) {
    opd_tensor *flat = NULL;
    OPD_SCOPE {
        flat = opdi_keep(opd_tensor_new_on(opd_ints_of(&bucket->numel, 1), (opd_scalar_type)beside->dtype,
                                           opd_tensor_device(beside)));
    }
    if (!flat) { return -1; }
    opdi_release(bucket->flat);
    bucket->flat = flat;
    return 0;
}
/* Returns true if the gradient of parameter number `index` is large enough for its own message.  Such a message
   needs no copy (see opdi_bucket_adopt), and its latency hardly matters. */
static bool opdi_param_is_alone(const opd_parallel *parallel, int64_t index) {
    const opd_tensor *const tensor = parallel->params[index].tensor;
    return tensor->backend == OPD_CPU &&
        tensor->numel * (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype) >= 512 << 10;
}
/* Distributes the parameters over buckets in the order of parallel->order.  Returns 0, or -1 and sets an error. */
static int opdi_buckets_make(opd_parallel *parallel) {
    const int last = parallel->count - 1;
    opdi_buckets_drop(parallel);
    for (int i = 0; i < parallel->count; i++) {
        opdi_parallel_param *const param = &parallel->params[parallel->order[i]];
        const opd_scalar_type dtype = opdi_param_dtype(parallel, parallel->order[i]);
        opdi_bucket *bucket = parallel->nbuckets ? &parallel->buckets[parallel->nbuckets - 1] : NULL;
        if (!bucket || dtype != opdi_param_dtype(parallel, parallel->order[i - 1]) ||
            param->tensor->backend != parallel->params[parallel->order[i - 1]].tensor->backend ||
            opdi_param_is_alone(parallel, parallel->order[i]) ||
            opdi_param_is_alone(parallel, parallel->order[i - 1]) ||
            (bucket->numel + param->tensor->numel) * (int64_t)opd_dtype_size(dtype) > parallel->bucket_bytes) {
            bucket = &parallel->buckets[parallel->nbuckets++];
        }
        param->bucket = parallel->nbuckets - 1;
        param->offset = bucket->numel;
        bucket->numel += param->tensor->numel;
        bucket->count++;
    }
    parallel->nbuckets += opdi_param_is_alone(parallel, parallel->order[last]);
    parallel->buckets[parallel->nbuckets - 1].numel++;        /* one more element, for the number of ranks that lack a
                                                                 gradient */
    for (int i = 0, first = 0; i < parallel->nbuckets; first += parallel->buckets[i++].count) {
        const int64_t param = parallel->order[OPDI_MIN(first, last)];
        if (opdi_bucket_memory(&parallel->buckets[i], parallel->params[param].tensor)) { return -1; }
    }
    return 0;
}
/* Returns the part of a bucket for the gradient of `param`, as a tensor with the parameter's sizes, or NULL and sets
   an error. */
static opd_tensor *opdi_bucket_part(const opd_parallel *parallel, const opdi_parallel_param *param) {
    opd_tensor *const flat = parallel->buckets[param->bucket].flat;
    opd_tensor *const part = opd_narrow(flat, 0, param->offset, param->tensor->numel);
    return part ? opd_view(part, opd_ints_of(param->tensor->dims, param->tensor->ndim)) : NULL;
}
/* Returns true if a parameter got a gradient in this backward, or in an earlier backward without communication. */
static bool opdi_param_arrived(const opdi_parallel_param *param) { return param->seen || param->added; }
/* Returns true if this rank has no samples in this backward but has gradients from earlier backwards without
   communication.  Those gradients are then not weighted again. */
static bool opdi_parallel_joins_with(const opd_parallel *parallel) {
    return parallel->total > 0 && parallel->samples == 0 && parallel->added;
}
static bool opdi_bucket_halves(const opdi_bucket *bucket) {
    return opd_dtype_size((opd_scalar_type)bucket->flat->dtype) == 2;
}
/* Returns true if the group can compute the mean of a bucket together with the sum. */
static bool opdi_bucket_averages(const opd_parallel *parallel, const opdi_bucket *bucket) {
    opd_transfer transfer;
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_REDUCE;
    transfer.reduction = OPD_REDUCTION_AVG;
    transfer.dtype = (opd_scalar_type)bucket->flat->dtype;
    transfer.count = bucket->numel;
    return opdi_group_averages(parallel->group, &transfer);
}
/* Returns the factor by which gradients are multiplied when they are copied into a bucket, and sets *reduction to the
   reduction of the bucket.  If the number of ranks is a power of two, dividing before the sum is as exact as dividing
   after it.  For 16-bit floats, weights are divided by the total before the sum, because the sum might overflow
   otherwise. */
static double opdi_bucket_factor(const opd_parallel *parallel, const opdi_bucket *bucket, opd_reduction *reduction) {
    const int size = parallel->group->desc.size;
    const bool half = opdi_bucket_halves(bucket);
    const int64_t samples = opdi_parallel_joins_with(parallel) ? parallel->total : parallel->samples;
    *reduction = OPD_REDUCTION_SUM;
    if (parallel->total > 0 && (half || !parallel->even)) {
        return half ? (double)samples / (double)parallel->total : (double)samples;
    }
    *reduction = OPD_REDUCTION_AVG;
    if (!half && bucket->flat->backend == OPD_CPU && (size & (size - 1)) == 0 &&
        !opdi_bucket_averages(parallel, bucket)) {
        *reduction = OPD_REDUCTION_SUM;
        return 1.0 / size;
    }
    return 1;
}
/* Returns true if `grad` uses the memory of `part`, its part of the bucket, maybe in another layout. */
static bool opdi_grad_is_here(const opd_tensor *part, const opd_tensor *grad) {
    return grad->data == part->data && opdi_storage_root(grad) == opdi_storage_root(part);
}
/* Returns the gradient that a parameter contributes to its bucket.  Returns NULL if there is none (zeros are used) or
   on an error.  An older gradient that was not set to zero counts even if this backward made no gradient.  If an older
   gradient is in the bucket's memory, first moves it out, because it must stay unchanged if no rank has a new
   gradient. */
static opd_tensor *opdi_bucket_grad(const opdi_parallel_param *param, const opd_tensor *part, double factor) {
    opd_tensor *const grad = opd_tensor_grad(param->tensor);
    if (!grad || opdi_param_arrived(param)) { return grad; }
    if (opdi_grad_is_here(part, grad)) {
        opd_tensor *const own = opd_clone(grad);
        if (!own || opd_tensor_set_grad(param->tensor, own)) { return NULL; }
    }
    return factor > 0 ? opd_tensor_grad(param->tensor) : NULL;  /* factor 0 excludes even infinite gradients */
}
/* Returns the factor for an older gradient of a parameter that got none in this backward, while other parameters got
   one. */
static double opdi_parallel_old(const opd_parallel *parallel) { return parallel->added ? parallel->rescaled : 1; }
/* Copies `grad`, times `factor`, to `part` of the bucket.  If grad is NULL, writes zeros.  Returns 0, or -1 and sets
   an error. */
static int opdi_bucket_take(opd_tensor *part, opd_tensor *grad, double factor) {
    static opd_op *mul;
    if (!grad) { return opd_zero_(part) ? 0 : -1; }
    const bool memory = opdi_grad_is_here(part, grad), here = memory && opdi_same_layout(part, grad);
    if (memory && !here && !(grad = opd_clone(grad))) { return -1; }
    if (factor == 1.0) { return here || opd_copy_(part, grad) ? 0 : -1; }
    if (here) { return opd_mul_Scalar_(grad, opd_value_double(factor)) ? 0 : -1; }
    const opd_value args[3] = {opd_value_tensor(grad), opd_value_double(factor), opd_value_tensor(part)};
    return opd_call_op(opd_op_cached(&mul, OPDI_NAME(mul_Scalar, "aten::mul.Scalar_out")), args, 3) ? 0 : -1;
}
/* Returns true if something other than the parameters' gradients uses the memory of bucket number `which`. */
static bool opdi_bucket_is_seen(const opd_parallel *parallel, int which) {
    opdi_storage *const storage = opdi_storage_root(parallel->buckets[which].flat);
    int32_t own = 1;
    for (int i = 0; i < parallel->count; i++) {
        const opd_tensor *const grad = parallel->params[i].bucket == which
            ? opd_tensor_grad(parallel->params[i].tensor) : NULL;
        own += grad && opdi_storage_root(grad) == storage;
    }
    return OPDI_ACQUIRE(&storage->refs) != own;
}
/* Returns true if `grad` was made by this backward, has no other owner, and can be replaced by `part` of the bucket. */
static bool opdi_grad_is_new(const opdi_parallel_param *param, const opd_tensor *grad, const opd_tensor *part) {
    return opdi_held_by(grad, 1) && !(OPDI_LOAD(&grad->own) & OPDI_GRAD_LEFT) && !param->added &&
        !opd_tensor_requires_grad(grad) && opdi_same_layout(param->tensor, part);
}
/* If bucket number `which` has a single gradient, which this backward made and which has no other owner, uses the
   gradient's memory as the bucket, so that it is summed without a copy.  Returns 0, or -1 and sets an error. */
static int opdi_bucket_adopt(opd_parallel *parallel, int which) {
    opdi_bucket *const bucket = &parallel->buckets[which];
    const opdi_parallel_param *param = parallel->params;
    if (bucket->count != 1 || bucket->flat->backend != OPD_CPU) { return 0; }
    while (param->bucket != which) { param++; }
    opd_tensor *const grad = opd_tensor_grad(param->tensor);
    if (!grad || !param->seen || grad->numel != bucket->numel || grad->dtype != bucket->flat->dtype ||
        !grad->data || !opdi_grad_is_new(param, grad, grad) || !opd_is_contiguous(grad)) { return 0; }
    opd_tensor *const flat = opd_view(grad, opd_ints_of(&bucket->numel, 1));
    if (!flat) { return -1; }
    opdi_release(bucket->flat);
    bucket->flat = opdi_keep(flat);
    return 0;
}
/* Fills bucket number `which` and begins to reduce it.  Returns 0, or -1 and sets an error. */
static int opdi_bucket_fill(opd_parallel *parallel, int which) {
    opdi_bucket *const bucket = &parallel->buckets[which];
    opd_transfer transfer;
    opd_reduction reduction;
    const double factor = opdi_bucket_factor(parallel, bucket, &reduction);
    if (opdi_bucket_adopt(parallel, which)) { return -1; }
    if (opdi_bucket_is_seen(parallel, which) && opdi_bucket_memory(bucket, bucket->flat)) { return -1; }
    for (int i = 0; i < parallel->count; i++) {
        const opdi_parallel_param *const param = &parallel->params[i];
        if (param->bucket != which) { continue; }
        opd_tensor *const part = opdi_bucket_part(parallel, param);
        const double weight = opdi_param_arrived(param) ? factor : factor * opdi_parallel_old(parallel);
        opd_tensor *const grad = part ? opdi_bucket_grad(param, part, factor) : NULL;
        if (!opd_ok() || opdi_bucket_take(part, grad, weight)) { return -1; }
    }
    if (which == parallel->nbuckets - 1 &&
        !opd_fill_(opd_narrow(bucket->flat, 0, bucket->numel - 1, 1), OPD_V(parallel->missing > 0))) {
        return -1;
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_REDUCE;
    transfer.reduction = reduction;
    transfer.dtype = (opd_scalar_type)bucket->flat->dtype;
    transfer.count = bucket->numel;
    transfer.send = transfer.recv = bucket->flat->data;
    bucket->work = opdi_group_start_for(parallel->group, &transfer, bucket->flat);
    return bucket->work ? 0 : -1;
}
static int opdi_bucket_launch(opd_parallel *parallel) {
    const bool was = opd_grad_mode_set(false);
    int rc = -1;
    OPD_SCOPE { rc = opdi_bucket_fill(parallel, parallel->next); }
    (void)opd_grad_mode_set(was);
    parallel->next++;
    return rc;
}

//== during a backward =================================================================================================

/* Resets the state for the next backward.  Waits for transfers that are still running. */
static void opdi_parallel_reset(opd_parallel *parallel) {
    for (int i = 0; i < parallel->nbuckets; i++) {
        opdi_bucket *const bucket = &parallel->buckets[i];
        if (bucket->work) { (void)opd_work_wait(bucket->work); }
        bucket->work = NULL;
        bucket->ready = 0;
    }
    for (int i = 0; parallel->params && i < parallel->count; i++) { parallel->params[i].seen = false; }
    parallel->next = parallel->arrived = parallel->missing = 0;
    parallel->runs = false;
    parallel->total = 0;
}
/* Runs a collective of all ranks on `count` elements at `data`, in this process's memory, and waits for it.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_parallel_move(const opd_parallel *parallel, opd_collective kind, opd_reduction reduction,
                                     opd_scalar_type dtype, void *data, int64_t count) {
    opd_transfer transfer;
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = kind;
    transfer.reduction = reduction;
    transfer.dtype = dtype;
    transfer.count = count;
    transfer.send = transfer.recv = data;
    return opd_work_wait(opd_group_start(parallel->group, &transfer));
}
/* Orders the buckets of the next backward by the order in which rank 0's gradients arrived.  Returns 0, or -1 and
   sets an error. */
static int opdi_parallel_reorder(opd_parallel *parallel) {
    int64_t at = parallel->arrived;
    parallel->ordered = true;
    for (int i = parallel->count - 1; i >= 0; i--) {
        if (!parallel->params[i].seen) { parallel->order[at++] = i; }
    }
    if (opdi_parallel_move(parallel, OPD_COLLECTIVE_BROADCAST, OPD_REDUCTION_SUM, OPD_INT64, parallel->order,
                           parallel->count)) { return -1; }
    return opdi_buckets_make(parallel);
}
static void opdi_grad_leave(const opdi_parallel_param *param) {
    opd_tensor *const grad = opd_tensor_grad(param->tensor);
    if (grad) { OPDI_STORE(&grad->own, (uint8_t)(grad->own | OPDI_GRAD_LEFT)); }
}
/* Makes the mean in a bucket the gradient of `param`.  Returns 0, or -1 and sets an error. */
static int opdi_parallel_set_grad(opd_parallel *parallel, opdi_parallel_param *param) {
    opd_tensor *const part = opdi_bucket_part(parallel, param);
    opd_tensor *const grad = opd_tensor_grad(param->tensor);
    if (!part) { return -1; }
    if (grad && opdi_grad_is_here(part, grad)) {
        return opdi_same_layout(part, grad) || opd_copy_(grad, opd_clone(part)) ? 0 : -1;
    }
    if (grad && !(parallel->ordered && opdi_grad_is_new(param, grad, part))) {
        return opd_copy_(grad, part) ? 0 : -1;
    }
    opd_tensor *const fresh = parallel->ordered ? part : opd_clone(part);   /* a copy if the buckets will be freed */
    return fresh ? opd_tensor_set_grad(param->tensor, fresh) : -1;
}
/* Sets used[i] to 1 if parameter i has a gradient (on any rank if find_unused is set, otherwise on this rank), else to
   0.  Returns 0, or -1 and sets an error. */
static int opdi_parallel_used(opd_parallel *parallel, int32_t *used) {
    for (int i = 0; i < parallel->count; i++) { used[i] = opdi_param_arrived(&parallel->params[i]); }
    return !parallel->find_unused ? 0
        : opdi_parallel_move(parallel, OPD_COLLECTIVE_ALL_REDUCE, OPD_REDUCTION_MAX, OPD_INT32, used, parallel->count);
}
/* Waits for a bucket and, if its sum is weighted by samples, divides it.  Returns 0, or -1 and sets an error. */
static int opdi_bucket_finish(opd_parallel *parallel, opdi_bucket *bucket) {
    opd_work *const work = bucket->work;
    bucket->work = NULL;
    if (opd_work_wait(work)) { return -1; }
    if (parallel->total == 0 || parallel->even || opdi_bucket_halves(bucket)) { return 0; }
    return opd_div_Scalar_(bucket->flat, opd_value_int(parallel->total)) ? 0 : -1;
}
/* Returns the number of ranks that lack a gradient (of any parameter) that they should have.  The last element of the
   last bucket has this number.  If the bucket is not on the CPU, the ranks send the number in a separate message, so
   that they do not have to wait for the device. */
static double opdi_parallel_lacking(const opd_parallel *parallel) {
    const opdi_bucket *const last = &parallel->buckets[parallel->nbuckets - 1];
    int64_t ranks = parallel->missing > 0;
    if (last->flat->backend == OPD_CPU) { return opd_item_f64(opd_narrow(last->flat, 0, last->numel - 1, 1)); }
    return opdi_parallel_move(parallel, OPD_COLLECTIVE_ALL_REDUCE, OPD_REDUCTION_SUM, OPD_INT64, &ranks, 1) ? 0
        : (double)ranks;
}
/* If a rank lacks a gradient that it should have, returns -1 and sets an error on every rank, which names the
   parameter.  Otherwise returns 0. */
static int opdi_parallel_lacks(opd_parallel *parallel) {
    const double ranks = opdi_parallel_lacking(parallel);
    const int size = parallel->group->desc.size;
    int64_t first = (int64_t)(size - parallel->group->desc.rank) << 32 | (int64_t)(parallel->missing - 1);
    if (!opd_ok() || !(ranks > 0)) { return opd_ok() ? 0 : -1; }
    if (parallel->missing == 0) { first = 0; }
    if (opdi_parallel_move(parallel, OPD_COLLECTIVE_ALL_REDUCE, OPD_REDUCTION_MAX, OPD_INT64, &first, 1)) { return -1; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "opd_data_parallel: parameter %d of %d got no gradient in this backward on "
                    "rank %d: set find_unused to allow this", (int)(first & 0xFFFFFFFF), parallel->count,
                    size - (int)(first >> 32));
}
static int opdi_parallel_collect(opd_parallel *parallel, int32_t *used, bool joins) {
    if (opdi_parallel_used(parallel, used)) { return -1; }
    for (int i = 0; i < parallel->nbuckets; i++) {
        if (opdi_bucket_finish(parallel, &parallel->buckets[i])) { return -1; }
    }
    if (opdi_parallel_lacks(parallel)) { return -1; }
    for (int i = 0; i < parallel->count; i++) {
        const bool wanted = used[i] || joins || !parallel->find_unused;
        if (wanted && opdi_parallel_set_grad(parallel, &parallel->params[i])) { return -1; }
        opdi_grad_leave(&parallel->params[i]);
    }
    return parallel->ordered ? 0 : opdi_parallel_reorder(parallel);
}
/* Sends the remaining buckets and stores the results.  `joins` is true if this rank has no samples, and so no new
   gradients.  Returns 0, or -1 and sets an error. */
static int opdi_parallel_finish(opd_parallel *parallel, bool joins) {
    const size_t bytes = (size_t)parallel->count * sizeof(int32_t);
    int rc = 0, missing = 0;
    while (missing < parallel->count && opdi_param_arrived(&parallel->params[missing])) { missing++; }
    parallel->missing = missing < parallel->count && !parallel->find_unused && !joins ? missing + 1 : 0;
    int32_t *const used = (int32_t *)opdi_alloc(bytes);
    if (!used) { rc = -1; }
    while (!rc && parallel->next < parallel->nbuckets) { rc = opdi_bucket_launch(parallel); }
    if (!rc) {
        const bool was = opd_grad_mode_set(false);
        OPD_SCOPE { rc = opdi_parallel_collect(parallel, used, joins && !parallel->find_unused); }
        (void)opd_grad_mode_set(was);
    }
    if (used) { opdi_free(used, bytes); }
    for (int i = 0; i < parallel->count; i++) { parallel->params[i].added = false; }
    parallel->added = false;
    parallel->share = 0;
    opdi_parallel_reset(parallel);
    return rc;
}
static int opdi_parallel_done(void *user) {
    opd_parallel *const parallel = (opd_parallel *)user;
    return parallel->runs ? opdi_parallel_finish(parallel, false) : 0;
}
OPDI_INTERNAL opd_parallel *opdi_parallel_keep(opd_parallel *parallel) {
    opdi_ref_up(&parallel->refs);
    return parallel;
}
OPDI_INTERNAL void opdi_parallel_release(void *parallel) { opd_parallel_free((opd_parallel *)parallel); }
/* Lets running transfers make progress, because some libraries move data only inside calls.  Returns 0, or -1 and
   sets an error. */
static int opdi_buckets_poll(const opd_parallel *parallel) {
    for (int i = 0; i < parallel->next; i++) {
        opd_work *const work = parallel->buckets[i].work;
        if (work && work->backend == OPD_CPU && OPDI_ACQUIRE(&work->state) == OPDI_WORK_RUNS) {
            return opd_work_test(work) < 0 ? -1 : 0;
        }
    }
    return 0;
}
/* The hook that runs after a gradient was accumulated into a parameter. */
static int opdi_parallel_hook(opd_tensor *leaf, void *user) {
    opdi_parallel_param *const param = (opdi_parallel_param *)user;
    opd_parallel *const parallel = param->parallel;
    const int64_t id = opd_backward_id();
    (void)leaf;
    if (!parallel->sync) {
        if (!parallel->added) { parallel->rescaled = 1; }
        param->added = parallel->added = true;
        return 0;
    }
    if (parallel->runs && parallel->backward != id) {         /* the last backward failed */
        const int64_t total = parallel->total;
        opdi_parallel_reset(parallel);
        parallel->total = total;
    }
    if (!parallel->runs) {
        if (opd_backward_callback(opdi_parallel_done, opdi_parallel_keep(parallel), opdi_parallel_release)) {
            opdi_parallel_release(parallel);
            return -1;
        }
        parallel->backward = id;
        parallel->runs = true;
    }
    if (param->seen) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_data_parallel: the gradient of parameter %d arrived twice in one "
                        "backward", param->index);
    }
    param->seen = true;
    if (!parallel->ordered) { parallel->order[parallel->arrived++] = param->index; }
    parallel->buckets[param->bucket].ready++;
    while (parallel->next < parallel->nbuckets &&
           parallel->buckets[parallel->next].ready == parallel->buckets[parallel->next].count) {
        if (opdi_bucket_launch(parallel)) { return -1; }
    }
    return opdi_buckets_poll(parallel);
}

//== making, beginning and freeing an opd_parallel =====================================================================

/* Overwrites `tensor` with rank 0's values.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_parallel_broadcast(const opd_parallel *parallel, opd_tensor *tensor) {
    const bool was = opd_grad_mode_set(false);
    int rc = -1;
    OPD_SCOPE {
        opd_tensor *const here = opd_tensor_data(tensor);
        rc = here && opd_broadcast_(here, 0, parallel->group->name) ? opdi_wait_for(here) : -1;
    }
    (void)opd_grad_mode_set(was);
    return rc;
}
/* The values that ranks compare: the number of parameters, the number of their elements, and a hash of their sizes
   and dtypes; the same three for buffers; and options. */
enum {
    OPDI_PARALLEL_COUNT, OPDI_PARALLEL_NUMEL, OPDI_PARALLEL_SIZES, OPDI_PARALLEL_BUFFERS, OPDI_PARALLEL_BUFFERS_NUMEL,
    OPDI_PARALLEL_BUFFERS_SIZES, OPDI_PARALLEL_BYTES, OPDI_PARALLEL_UNUSED, OPDI_PARALLEL_FINGERPRINT
};
/* Writes three numbers to `sent`: the number of tensors, the number of their elements, and a hash of their sizes and
   dtypes. */
static void opdi_parallel_fingerprint(opd_tensor *const *tensors, int count, int64_t *sent) {
    sent[0] = count;
    sent[1] = 0;
    sent[2] = 17;
    for (int i = 0; i < count; i++) {
        const opd_tensor *const tensor = tensors[i];
        uint64_t hash = (uint64_t)sent[2] * 31 + (uint64_t)tensor->dtype;
        for (int k = 0; k < tensor->ndim; k++) { hash = (hash ^ (uint64_t)tensor->dims[k]) * 0x9E3779B97F4A7C15u; }
        sent[1] += tensor->numel;
        sent[2] = (int64_t)(hash >> 1);
    }
}
/* Sets an error that tells how the values `its` of rank `rank` differ from `all`, those of rank 0.  Returns -1. */
static int opdi_parallel_differs(const opd_parallel *parallel, const int64_t *all, const int64_t *its, int rank) {
    const char *const who = opdi_parallel_maker(parallel);
    const bool params = memcmp(all, its, 3 * sizeof *all) != 0;
    const int at = params ? OPDI_PARALLEL_COUNT : OPDI_PARALLEL_BUFFERS;
    if (params || memcmp(all + at, its + at, 3 * sizeof *all) != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: rank 0 has %lld %s(s) of %lld element(s), rank %d has %lld of %lld%s",
                        who, (long long)all[at], params ? "parameter" : "buffer", (long long)all[at + 1], rank,
                        (long long)its[at], (long long)its[at + 1], all[at] == its[at] && all[at + 1] == its[at + 1]
                        ? ", of other sizes or dtypes" : "");
    }
    const int option = all[OPDI_PARALLEL_BYTES] != its[OPDI_PARALLEL_BYTES] ? OPDI_PARALLEL_BYTES
        : OPDI_PARALLEL_UNUSED;
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s is %lld on rank 0, and %lld on rank %d", who,
                    option == OPDI_PARALLEL_BYTES ? "bucket_bytes" : "find_unused", (long long)all[option],
                    (long long)its[option], rank);
}
/* Compares parameters, buffers and options over the ranks.  Returns 0, or -1 and sets an error on all ranks. */
OPDI_INTERNAL int opdi_parallel_compare(const opd_parallel *parallel, opd_tensor *const *params, int count) {
    const int size = parallel->group->desc.size;
    const size_t bytes = OPDI_PARALLEL_FINGERPRINT * (size_t)size * sizeof(int64_t);
    int64_t mine[OPDI_PARALLEL_FINGERPRINT];
    opd_transfer transfer;
    int64_t *const all = (int64_t *)opdi_alloc(bytes);
    opdi_parallel_fingerprint(params, count, mine);
    opdi_parallel_fingerprint(parallel->buffers, parallel->nbuffers, mine + OPDI_PARALLEL_BUFFERS);
    mine[OPDI_PARALLEL_BYTES] = parallel->bucket_bytes;
    mine[OPDI_PARALLEL_UNUSED] = parallel->find_unused;
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_GATHER;
    transfer.dtype = OPD_INT64;
    transfer.count = OPDI_PARALLEL_FINGERPRINT;
    transfer.send = mine;
    transfer.recv = all;
    int rc = all ? opd_work_wait(opd_group_start(parallel->group, &transfer)) : -1;
    for (int rank = 1; rank < size && rc == 0; rank++) {
        const int64_t *const its = all + OPDI_PARALLEL_FINGERPRINT * (size_t)rank;
        if (memcmp(all, its, sizeof mine) != 0) { rc = opdi_parallel_differs(parallel, all, its, rank); }
    }
    if (all) { opdi_free(all, bytes); }
    return rc;
}
OPDI_INTERNAL int opdi_parallel_check(opd_tensor *const *params, int count, opd_group *group, const char *who) {
    if (opdi_group_lost(group) || opdi_group_none(group, who)) { return -1; }
    if (count < 1 || !params) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: there are no parameters", who); }
    for (int i = 0; i < count; i++) {
        if (opdi_null_tensor(params[i], who)) { return -1; }
        if (!opd_tensor_is_leaf(params[i]) || !opd_tensor_requires_grad(params[i]) ||
            !opdi_group_moves(group, params[i]) || opd_dtype_is_complex((opd_scalar_type)params[i]->dtype)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: parameter %d must be a leaf that requires grad, of a real dtype, "
                            "on the CPU or on a device of the group (opd_group_device_add)", who, i);
        }
        for (int k = 0; k < i; k++) {
            if (params[k] == params[i]) {
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: parameters %d and %d are the same", who, k, i);
            }
        }
    }
    return 0;
}
/* The objects that opd_sharded_parallel has made. */
OPDI_INTERNAL opdi_sharding_list opdi_shardings = {OPDI_MUTEX_INIT, NULL};
static void opdi_shardings_forget(opd_parallel *parallel) {
    opdi_lock(&opdi_shardings.lock);
    for (opd_parallel **at = &opdi_shardings.first; *at; at = &(*at)->following) {
        if (*at == parallel) {
            *at = parallel->following;
            break;
        }
    }
    opdi_unlock(&opdi_shardings.lock);
}
void opd_parallel_free(opd_parallel *parallel) {
    if (parallel) { (void)opdi_group_lost(parallel->group); }
    if (!parallel || opdi_ref_down(&parallel->refs)) { return; }
    const size_t count = (size_t)parallel->count, capacity = (size_t)parallel->capacity;
    if (parallel->sharded) { opdi_shardings_forget(parallel); }
    for (size_t i = 0; parallel->params && i < count; i++) {
        opdi_parallel_param *const param = &parallel->params[i];
        if (param->hook) { (void)opd_hook_remove(param->hook); }
        if (param->sizes) { opdi_free(param->sizes, ((size_t)param->ndim + 1) * sizeof *param->sizes); }
        opdi_release(param->tensor);
    }
    if (parallel->buckets) {
        opdi_parallel_reset(parallel);
        opdi_buckets_drop(parallel);
        opdi_free(parallel->buckets, (count + 1) * sizeof *parallel->buckets);
    }
    if (parallel->params) { opdi_free(parallel->params, capacity * sizeof *parallel->params); }
    if (parallel->order) { opdi_free(parallel->order, count * sizeof *parallel->order); }
    for (int i = 0; parallel->buffers && i < parallel->nbuffers; i++) { opdi_release(parallel->buffers[i]); }
    if (parallel->buffers) { opdi_free(parallel->buffers, (size_t)parallel->nbuffers * sizeof *parallel->buffers); }
    opd_work_release(parallel->pending);
    opdi_group_release(parallel->group);
    opdi_free(parallel, sizeof *parallel);
}
/* Stores references to the buffers.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_parallel_take_buffers(opd_parallel *parallel, const opd_parallel_options *options) {
    if (!options || options->nbuffers <= 0 || !options->buffers) { return 0; }
    parallel->buffers = (opd_tensor **)opdi_alloc((size_t)options->nbuffers * sizeof *parallel->buffers);
    if (!parallel->buffers) { return -1; }
    memset(parallel->buffers, 0, (size_t)options->nbuffers * sizeof *parallel->buffers);
    parallel->nbuffers = options->nbuffers;
    for (int i = 0; i < parallel->nbuffers; i++) {
        if (opdi_null_tensor(options->buffers[i], opdi_parallel_maker(parallel))) { return -1; }
        parallel->buffers[i] = opdi_keep(options->buffers[i]);
    }
    return 0;
}
/* Stores references to the parameters and buffers.  Returns 0, or -1 and sets an error. */
static int opdi_parallel_take(opd_parallel *parallel, opd_tensor *const *params, const opd_parallel_options *options) {
    const size_t count = (size_t)parallel->count;
    parallel->params = (opdi_parallel_param *)opdi_alloc(count * sizeof *parallel->params);
    parallel->capacity = parallel->count;
    if (parallel->params) { memset(parallel->params, 0, count * sizeof *parallel->params); }
    parallel->buckets = (opdi_bucket *)opdi_alloc((count + 1) * sizeof *parallel->buckets);
    if (parallel->buckets) { memset(parallel->buckets, 0, (count + 1) * sizeof *parallel->buckets); }
    parallel->order = (int64_t *)opdi_alloc(count * sizeof *parallel->order);
    if (!parallel->params || !parallel->buckets || !parallel->order) { return -1; }
    for (int i = 0; i < parallel->count; i++) {
        parallel->params[i].parallel = parallel;
        parallel->params[i].index = i;
        parallel->params[i].tensor = opdi_keep(params[i]);
        parallel->order[i] = parallel->count - 1 - i;
    }
    return opdi_parallel_take_buffers(parallel, options);
}
/* Gives all ranks the values of rank 0 and adds the hooks.  Returns 0, or -1 and sets an error. */
static int opdi_parallel_start(opd_parallel *parallel, opd_tensor *const *params) {
    if (opdi_parallel_compare(parallel, params, parallel->count) || opdi_buckets_make(parallel)) { return -1; }
    for (int i = 0; i < parallel->count; i++) {
        opdi_parallel_param *const param = &parallel->params[i];
        if (opdi_parallel_broadcast(parallel, param->tensor)) { return -1; }
        param->hook = opd_tensor_post_accumulate_hook_add(param->tensor, opdi_parallel_hook, param, NULL);
        if (!param->hook) { return -1; }
    }
    for (int i = 0; i < parallel->nbuffers; i++) {
        if (opdi_parallel_broadcast(parallel, parallel->buffers[i])) { return -1; }
    }
    return 0;
}
opd_parallel *opd_data_parallel(opd_tensor *const *params, int count, opd_group *group,
                                const opd_parallel_options *options) {
    if (opdi_parallel_check(params, count, group, "opd_data_parallel")) { return NULL; }
    opd_parallel *const parallel = (opd_parallel *)opdi_alloc(sizeof *parallel);
    if (!parallel) { return NULL; }
    memset(parallel, 0, sizeof *parallel);
    parallel->refs = 1;
    parallel->group = group;
    parallel->count = count;
    parallel->sync = true;
    parallel->find_unused = options && options->find_unused;
    parallel->bucket_bytes = options && options->bucket_bytes > 0 ? options->bucket_bytes : (int64_t)25 << 20;
    opdi_ref_up(&group->refs);
    if (opdi_parallel_take(parallel, params, options) || opdi_parallel_start(parallel, params)) {
        opd_parallel_free(parallel);
        return NULL;
    }
    return parallel;
}
/* Rescales gradients that were added up without communication, if this rank's share of all samples (samples / total)
   has changed since then.  Returns 0, or -1 and sets an error. */
static int opdi_parallel_share(opd_parallel *parallel, int64_t samples, int64_t total) {
    const double share = samples > 0 ? (double)samples / (double)total : 1;
    double was = parallel->share;
    if (total <= 0) { return 0; }
    if (was <= 0 && samples == 0) { was = 1.0 / parallel->group->desc.size; }
    parallel->share = share;
    if (!parallel->added || was <= 0 || (was >= share && was <= share)) { return 0; }
    parallel->rescaled *= was / share;
    const bool mode = opd_grad_mode_set(false);
    int rc = 0;
    OPD_SCOPE {
        for (int i = 0; i < parallel->count && rc == 0; i++) {
            opd_tensor *const grad = parallel->params[i].added ? opd_tensor_grad(parallel->params[i].tensor) : NULL;
            if (grad && !opd_mul_Scalar_(grad, opd_value_double(was / share))) { rc = -1; }
        }
    }
    (void)opd_grad_mode_set(mode);
    return rc;
}
/* Returns true if all ranks have the same number of samples.  `squares` is the sum of the squares of these numbers.  It
   equals `size` times the square of their mean only if all numbers are equal. */
static bool opdi_parallel_is_even(int64_t total, int64_t squares, int size) {
    return total > 0 && total <= INT32_MAX && total % size == 0 && squares == total / size * total;
}
int64_t opd_parallel_begin(opd_parallel *parallel, int64_t samples) {
    int64_t sums[2] = {samples, (int64_t)((uint64_t)samples * (uint64_t)samples)};        /* and their square */
    if (opdi_group_lost(parallel ? parallel->group : NULL)) { return -1; }
    if (!parallel || samples < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_parallel_begin: %s", parallel ? "the number is negative" : "NULL");
    }
    const bool adds = !parallel->sync && !parallel->sharded;
    if (!adds && !parallel->sharded) { opdi_parallel_reset(parallel); }
    if (opdi_parallel_move(parallel, OPD_COLLECTIVE_ALL_REDUCE, OPD_REDUCTION_SUM, OPD_INT64, sums, 2)) {
        return -1;
    }
    const int64_t total = sums[0];
    if (!parallel->sharded && opdi_parallel_share(parallel, samples, total)) { return -1; }
    if (adds) { return total; }
    for (int i = 0; i < parallel->nbuffers && total > 0; i++) {
        if (opdi_parallel_broadcast(parallel, parallel->buffers[i])) { return -1; }
    }
    parallel->samples = samples;
    parallel->total = total;
    parallel->even = opdi_parallel_is_even(total, sums[1], parallel->group->desc.size);
    if (parallel->sharded || samples > 0 || total == 0) { return total; }
    return opdi_parallel_finish(parallel, true) ? -1 : total;
}
bool opd_parallel_sync_set(opd_parallel *parallel, bool on) {
    const bool was = parallel && parallel->sync;
    if (parallel) { parallel->sync = on; }
    return was;
}
