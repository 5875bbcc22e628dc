#include "collective.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:collective  collectives of process groups as operators
//
//  Schemas, derivatives and fakes follow torch/distributed/_functional_collectives.py.  Arguments that
//  are Python objects there are strings here.  A kernel makes its result, begins the transfer and
//  returns; >>collectives does the rest.  Operators on lists are composite operators that call those on tensors.
//----------------------------------------------------------------------------------------------------------------------

//== transfers =========================================================================================================

/* Begins a transfer from `input` to the existing tensor `out`, and returns `out` as the call's result.  If one of
   the tensors is not contiguous, also waits for the transfer.  Returns 0, or -1 and sets an error. */
static int opdi_collective_run(opd_call *call, opd_group *group, opd_transfer *transfer, opd_tensor *input,
                               opd_tensor *out) {
    const bool same = input == out;
    opd_tensor *const to = opd_is_contiguous(out) ? out
        : opd_tensor_new_on(opd_ints_of(opd_sizes(out), opd_ndim(out)), opd_dtype(out), opd_tensor_device(out));
    opd_tensor *const from = same && to == out ? to : opd_contiguous(input);
    if (!to || !from || opdi_wait_for(to) || (from != to && opdi_wait_to_send(from))) { return -1; }
    transfer->dtype = opd_dtype(out);
    transfer->send = from->data;
    transfer->recv = to->data;
    opd_work *const work = opdi_group_move(group, transfer, from == to ? NULL : from, to);
    if (!work) { return -1; }
    if (to == out) {
        opd_work_release(work);
        return opd_return_tensor(call, out);
    }
    return opd_work_wait(work) || !opd_copy_(out, to) ? -1 : opd_return_tensor(call, out);
}
/* Runs a collective on a device: by `kernel` if the group moves memory of the device (opd_group_device_add),
   otherwise through host memory.  Returns 0, or -1 and sets an error. */
static int opdi_collective_on(opd_call *call, opd_collective kind, opd_kernel kernel) {
    const opd_tensor *const tensor = opd_arg_tensor(call, 0);
    const char *texts[2] = {NULL, NULL};          /* the group's name is last, after the reduction */
    opd_transfer transfer;
    for (int i = 0; i < opd_call_nargs(call); i++) {
        if (opd_call_args(call)[i].tag != OPD_TAG_STR) { continue; }
        texts[0] = texts[1];
        texts[1] = opd_call_args(call)[i].u.s;
    }
    opd_group *const group = opd_group_find(texts[1]);
    if (!group) { return -1; }
    const int reduction = texts[0] ? opdi_reduction_of(texts[0]) : OPD_REDUCTION_SUM;
    if (reduction < 0) { return -1; }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = kind;
    transfer.reduction = (opd_reduction)reduction;
    transfer.dtype = opd_dtype(tensor);
    if (kind == OPD_COLLECTIVE_SEND || kind == OPD_COLLECTIVE_RECV) { transfer.tag = opd_arg_int(call, 2) != 0; }
    return opdi_group_can_move(group, tensor, &transfer) ? kernel(call) : opd_cpu_fallback(call);
}
/* Calls operator `name` on `grad` and the `count` arguments in `rest`, to compute a derivative that is itself a
   collective.  *op keeps the operator for the next call.  Returns the result, or NULL on failure or if grad is NULL. */
static opd_tensor *opdi_collective_again(opd_op **op, const char *name, opd_tensor *grad, const opd_value *rest,
                                         int count) {
    opd_value args[4];
    if (!grad) { return NULL; }
    args[0] = opd_value_tensor(opd_contiguous(grad));
    for (int i = 0; i < count; i++) { args[i + 1] = rest[i]; }
    return args[0].u.t ? opd_call_op(opd_op_cached(op, name), args, count + 1) : NULL;
}
static bool opdi_collective_extreme(const char *reduce_op) {
    return strcmp(reduce_op, "min") == 0 || strcmp(reduce_op, "max") == 0;
}
static bool opdi_collective_product(const char *reduce_op) { return strcmp(reduce_op, "product") == 0; }
/* Fails if the reduction of an in-place form has no derivative because the input was overwritten.  Returns 0 for sum
   and avg, whose derivatives do not need the input. */
static int opdi_collective_linear(opd_value reduce_op, const char *name) {
    if (!opdi_collective_extreme(reduce_op.u.s) && !opdi_collective_product(reduce_op.u.s)) { return 0; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s has no derivative for %.40s (all_reduce has one)", name,
                    reduce_op.u.s);
}
static opd_tensor *opdi_collective_sum(opd_tensor *input, const char *reduce_op, const char *group) {
    static opd_op *op;
    const opd_value rest[2] = {opd_value_str(reduce_op), opd_value_str(group)};
    return opdi_collective_again(&op, OPDI_NAME(collectives, "_c10d_functional::all_reduce"), input, rest, 2);
}
static opd_tensor *opdi_collective_part(opd_tensor *input, const char *reduce_op, const char *name) {
    static opd_op *op;
    const opd_group *const group = opd_group_find(name);
    const opd_value rest[3] = {opd_value_str(reduce_op), opd_value_int(group ? opd_group_size(group) : 1),
                               opd_value_str(name)};
    return opdi_collective_again(
        &op, OPDI_NAME(collectives, "_c10d_functional::reduce_scatter_tensor"), input, rest, 3);
}
static opd_tensor *opdi_collective_whole(opd_tensor *input, const char *name) {
    static opd_op *op;
    const opd_group *const group = opd_group_find(name);
    const opd_value rest[2] = {opd_value_int(group ? opd_group_size(group) : 1), opd_value_str(name)};
    return opdi_collective_again(
        &op, OPDI_NAME(collectives, "_c10d_functional::all_gather_into_tensor"), input, rest, 2);
}
/* Returns the tensors `input` of all ranks, stacked along a new first dim. */
static opd_tensor *opdi_collective_stack(opd_tensor *input, const char *group) {
    return opdi_collective_whole(opd_unsqueeze(input, 0), group);
}
/* Returns, for each row of `all`, the product of all other rows: the product of the rows above times that of the
   rows below. */
static opd_tensor *opdi_collective_others(opd_tensor *all) {
    const int64_t count = all ? opd_size(all, 0) : 0, first = 0;
    const opd_ints rows = opd_ints_of(&first, 1);
    opd_tensor *above[2], *below[2];
    if (count <= 1) { return all ? opd_ones_like(all) : NULL; }
    above[0] = below[0] = opd_ones_like(opd_narrow(all, 0, 0, 1));
    above[1] = opd_narrow(all, 0, 0, count - 1);
    below[1] = opd_flip(opd_narrow(all, 0, 1, count - 1), rows);
    const opd_tensors upper = {above, 2}, lower = {below, 2};
    if (!opd_ok()) { return NULL; }
    opd_tensor *const product = opd_cumprod(opd_cat(upper, 0), 0);
    return opd_mul(product, opd_flip(opd_cumprod(opd_cat(lower, 0), 0), rows));
}
/* Returns the gradient of a product over the ranks with respect to this rank's input, from the gradients and inputs
   of all ranks.  If reduce_op is "sum", the ranks' gradients are summed; if "avg", all ranks have the same gradient. */
static opd_tensor *opdi_product_backward(opd_tensor *grad, opd_tensor *input, const char *reduce_op,
                                         const char *group) {
    opd_tensor *others = grad ? opdi_collective_others(opdi_collective_stack(input, group)) : NULL;
    if (others && opd_dtype_is_complex(opd_dtype(others))) { others = opd_conj(others); }
    opd_tensor *const row = others ? opdi_collective_part(opd_mul(others, grad), reduce_op, group) : NULL;
    return row ? opd_select(row, 0, 0) : NULL;
}
static opd_tensor *opdi_product_tangent(opd_tensor *input, opd_tensor *tangent, const char *group) {
    const int64_t first = 0;
    opd_tensor *const others = opdi_collective_others(opdi_collective_stack(input, group));
    opd_tensor *const all = others ? opdi_collective_stack(tangent, group) : NULL;
    return all ? opd_sum_dim(opd_mul(others, all), opd_ints_of(&first, 1), false) : NULL;
}
/* The batching rule of collectives: moves the batch dim to the end, and lets the operator process the other dims. */
static int opdi_collective_batch(opd_call *call) {
    const int count = opd_call_nargs(call);
    opd_value args[5];
    int dim;
    opd_tensor *const input = opd_batch_arg(call, 0, &dim);
    if (!input || count > 5) { return -1; }
    for (int i = 1; i < count; i++) { args[i] = opd_call_args(call)[i]; }
    if (opd_ndim(input) < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: each example of the batch must have at least one dim",
                        opd_op_name(opd_call_operator(call)));
    }
    args[0] = opd_value_tensor(opd_movedim(input, dim, -1));
    opd_tensor *const out = args[0].u.t ? opd_call_op(opd_call_operator(call), args, count) : NULL;
    return out ? opd_batch_return(call, out, opd_ndim(out) - 1) : -1;
}
/* The batching rule of operators that accept tensors of any sizes: moves the batch dim to the front, so that all
   ranks send the elements in the same order, wherever the batch dim is on each rank. */
static int opdi_collective_batch_any(opd_call *call) {
    const int count = opd_call_nargs(call);
    opd_value args[5];
    int dim;
    opd_tensor *const input = opd_batch_arg(call, 0, &dim);
    if (!input || count > 5) { return -1; }
    for (int i = 1; i < count; i++) { args[i] = opd_call_args(call)[i]; }
    args[0] = opd_value_tensor(opd_batch_front(input, dim));
    opd_tensor *const out = args[0].u.t ? opd_call_op(opd_call_operator(call), args, count) : NULL;
    if (!out) { return -1; }
    return call->op->written_args ? opd_return_tensor(call, opd_arg_tensor(call, 0)) : opd_batch_return(call, out, 0);
}

//== all_reduce, broadcast =============================================================================================

/* Begins to reduce `input` into `out`, which may be the same tensor, and returns `out` as the call's result.
   Returns 0, or -1 and sets an error. */
static int opdi_all_reduce_to(opd_call *call, opd_tensor *input, opd_tensor *out, int reduction) {
    opd_transfer transfer;
    if (!out || out->backend == OPD_META) { return out ? opd_return_tensor(call, out) : -1; }
    opd_group *const group = opdi_group_of_size(opd_arg_str(call, 2), -1);
    if (!group) { return -1; }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_REDUCE;
    transfer.reduction = (opd_reduction)reduction;
    transfer.count = opd_numel(out);
    return opdi_collective_run(call, group, &transfer, input, out);
}
static int opdi_all_reduce_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int reduction = opdi_reduction_of(opd_arg_str(call, 1));
    return reduction < 0 ? -1 : opdi_all_reduce_to(call, input, opd_result(call, 0, opd_sizes(input), opd_ndim(input),
                                                                           opd_dtype(input)), reduction);
}
static int opdi_all_reduce__kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int reduction = opdi_reduction_of(opd_arg_str(call, 1));
    return reduction < 0 ? -1 : opdi_all_reduce_to(call, input, input, reduction);
}
/* Saves the input and the result for min and max, or the input for product.  The gradients of min and max compare
   both to find the ranks that have the extreme value. */
static int opdi_reduction_setup(opd_context *ctx) {
    opd_tensor *kept[2] = {opd_context_tensor(ctx, 0), opd_context_output(ctx, 0).u.t};
    const char *const reduce_op = opd_context_input(ctx, 1).u.s;
    const bool extreme = opdi_collective_extreme(reduce_op);
    return extreme || opdi_collective_product(reduce_op) ? opd_context_save_for_backward(ctx, kept, extreme ? 2 : 1)
        : 0;
}
/* Returns a mask of the elements at which this rank's input is the extreme value `value`.  NaN counts as the extreme
   value only if the result is NaN.  Sets *count to the number of ranks that have the extreme value. */
static opd_tensor *opdi_extreme_mask(opd_tensor *input, opd_tensor *value, const char *group, opd_tensor **count) {
    opd_tensor *const mask = opd_logical_or(opd_eq(input, value), opd_logical_and(opd_isnan(input), opd_isnan(value)));
    *count = mask ? opdi_collective_sum(opd_to_dtype(mask, OPD_FLOAT32), "sum", group) : NULL;
    return *count ? mask : NULL;
}
/* Returns `grad`, the sum of all ranks' gradients or this rank's tangent, divided among the ranks that have the
   extreme value. */
static opd_tensor *opdi_collective_share(opd_tensor *grad, opd_tensor *input, opd_tensor *value, const char *group) {
    opd_tensor *count = NULL;
    opd_tensor *const mask = grad ? opdi_extreme_mask(input, value, group, &count) : NULL;
    opd_tensor *const share = mask ? opd_to_dtype(opd_div(grad, count), opd_dtype(grad)) : NULL;
    return share ? opd_where_ScalarOther(mask, share, OPD_V(0)) : NULL;
}
/* Computes the gradient.  For sum and avg, it is the all_reduce of the ranks' gradients with the same reduction.  For
   min and max, it is the sum of the gradients, divided among the ranks that have the extreme value (PyTorch's
   all_reduce_backward).  For a product, which has no derivative in PyTorch, it is the sum times the product of the
   other ranks' inputs. */
static int opdi_all_reduce_backward(opd_backward_call *bw) {
    const char *const reduce_op = opd_bw_value(bw, 1).u.s, *const group = opd_bw_value(bw, 2).u.s;
    const bool extreme = opdi_collective_extreme(reduce_op), product = opdi_collective_product(reduce_op);
    opd_context *const ctx = extreme || product ? opd_bw_context(bw) : NULL;
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (product) {
        return opd_bw_return(bw, 0, opdi_product_backward(grad, opd_context_saved(ctx, 0), "sum", group));
    }
    grad = opdi_collective_sum(grad, extreme ? "sum" : reduce_op, group);
    if (grad && extreme) {
        grad = opdi_collective_share(grad, opd_context_saved(ctx, 0), opd_context_saved(ctx, 1), group);
    }
    return opd_bw_return(bw, 0, grad);
}
static int opdi_all_reduce__backward(opd_backward_call *bw) {
    return opdi_collective_linear(opd_bw_value(bw, 1), "all_reduce_") ? -1 : opdi_all_reduce_backward(bw);
}
static int opdi_all_reduce__jvp(opd_jvp_call *jv) {
    return opdi_collective_linear(opd_jvp_value(jv, 1), "all_reduce_") ? -1 : opd_jvp_linear(jv);
}
static int opdi_all_reduce_jvp(opd_jvp_call *jv) {
    const char *const reduce_op = opd_jvp_value(jv, 1).u.s, *const group = opd_jvp_value(jv, 2).u.s;
    if (opdi_collective_product(reduce_op)) {
        return opd_jvp_return(jv, 0, opdi_product_tangent(opd_jvp_tensor(jv, 0), opd_jvp_tangent(jv, 0), group));
    }
    if (!opdi_collective_extreme(reduce_op)) { return opd_jvp_linear(jv); }
    opd_tensor *const mine = opdi_collective_share(opd_jvp_tangent(jv, 0), opd_jvp_tensor(jv, 0), opd_jvp_result(jv, 0),
                                                  group);
    return opd_jvp_return(jv, 0, mine ? opdi_collective_sum(mine, "sum", group) : NULL);
}
static int opdi_all_reduce_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_ALL_REDUCE, opdi_all_reduce_kernel);
}
OPDI_INTERNAL void opdi_collective_all_reduce(opd_op_desc *op) {
    op->schema = "all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor";
    op->cpu = op->fake = opdi_all_reduce_kernel; op->any = opdi_all_reduce_on;
    op->backward = opdi_all_reduce_backward; op->setup_context = opdi_reduction_setup; op->jvp = opdi_all_reduce_jvp;
    op->vmap = opdi_collective_batch_any; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_elements;
    op->cases = "[2,3], 'sum', 'self'; [4], 'avg', 'self'; [], 'sum', 'self'; [0,3], 'sum', 'self'; "
        "[4], 'max', 'self'; [2,3], 'product', 'self'";
}
static int opdi_all_reduce__on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_ALL_REDUCE, opdi_all_reduce__kernel);
}
OPDI_INTERNAL void opdi_collective_all_reduce_(opd_op_desc *op) {
    op->schema = "all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)";
    op->cpu = op->fake = opdi_all_reduce__kernel; op->any = opdi_all_reduce__on;
    op->backward = opdi_all_reduce__backward; op->jvp = opdi_all_reduce__jvp;
    op->vmap = opdi_collective_batch_any; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_elements;
    op->cases = "[2,3], 'sum', 'self'; [4], 'avg', 'self'";
}
static int opdi_broadcast_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    opd_transfer transfer;
    opd_tensor *const out = opd_result(call, 0, opd_sizes(input), opd_ndim(input), opd_dtype(input));
    if (!out || out->backend == OPD_META) { return out ? opd_return_tensor(call, out) : -1; }
    opd_group *const group = opdi_group_of_size(opd_arg_str(call, 2), -1);
    const int64_t src = opd_arg_int(call, 1);
    if (!group) { return -1; }
    if (src < 0 || src >= opd_group_size(group)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "broadcast: src is %lld, but process group '%s' has %d rank(s)",
                        (long long)src, opd_group_name(group), opd_group_size(group));
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_BROADCAST;
    transfer.count = opd_numel(out);
    transfer.peer = (int32_t)src;
    return opdi_collective_run(call, group, &transfer, input, out);
}
/* Computes the gradient: the sum of all ranks' gradients on rank src, zeros on all other ranks. */
static int opdi_broadcast_backward(opd_backward_call *bw) {
    static opd_op *op;
    const opd_value rest[2] = {opd_value_str("sum"), opd_bw_value(bw, 2)};
    opd_tensor *grad = opdi_collective_again(&op, OPDI_NAME(collectives, "_c10d_functional::all_reduce"),
                                             opd_bw_grad(bw, 0), rest, 2);
    const opd_group *const group = grad ? opd_group_find(rest[1].u.s) : NULL;
    if (!group) { return -1; }
    if (opd_group_rank(group) != opd_bw_value(bw, 1).u.i) { grad = opd_zeros_like(grad); }   /* also if grad is inf */
    return opd_bw_return(bw, 0, grad);
}
static int opdi_broadcast_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_BROADCAST, opdi_broadcast_kernel);
}
OPDI_INTERNAL void opdi_collective_broadcast(opd_op_desc *op) {
    op->schema = "broadcast(Tensor input, int src, str group_name) -> Tensor";
    op->cpu = op->fake = opdi_broadcast_kernel; op->any = opdi_broadcast_on;
    op->backward = opdi_broadcast_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_collective_batch_any; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
    op->inplace = "broadcast_"; op->cases = "[2,3], 0, 'self'; [], 0, 'self'";
}

//== all_gather, reduce_scatter, all_to_all ============================================================================

/* Makes the result of an operator: like `input`, but its first dim has size `rows`.  Returns NULL and sets an error on
   failure. */
static opd_tensor *opdi_collective_rows(opd_call *call, opd_tensor *input, int64_t rows) {
    int64_t sizes[OPD_MAX_DIMS];
    memcpy(sizes, opd_sizes(input), (size_t)opd_ndim(input) * sizeof *sizes);
    sizes[0] = rows;
    return opd_result(call, 0, sizes, opd_ndim(input), opd_dtype(input));
}
/* Checks that `input` has at least one dim and that `size`, the size of the group, is positive.  Returns 0, or -1
   and sets an error. */
static int opdi_collective_check(const opd_tensor *input, int64_t size, const char *name) {
    if (opd_ndim(input) < 1) { return opd_fail(OPD_ERROR_SHAPE, "%s: input must have at least one dim", name); }
    return size >= 1 ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: group_size must be at least 1, not %lld", name,
                                    (long long)size);
}
static int opdi_all_gather_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int64_t size = opd_arg_int(call, 1);
    opd_transfer transfer;
    if (opdi_collective_check(input, size, "all_gather_into_tensor")) { return -1; }
    if (opd_size(input, 0) > INT64_MAX / size) {
        return opd_fail(OPD_ERROR_SHAPE, "all_gather_into_tensor: group_size is too large");
    }
    opd_tensor *const out = opdi_collective_rows(call, input, opd_size(input, 0) * size);
    if (!out || out->backend == OPD_META) { return out ? opd_return_tensor(call, out) : -1; }
    opd_group *const group = opdi_group_of_size(opd_arg_str(call, 2), size);
    if (!group) { return -1; }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_GATHER;
    transfer.count = opd_numel(input);
    return opdi_collective_run(call, group, &transfer, input, out);
}
/* Computes the gradient: the sum of all ranks' gradients for this rank's part. */
static int opdi_all_gather_backward(opd_backward_call *bw) {
    static opd_op *op;
    const opd_value rest[3] = {opd_value_str("sum"), opd_bw_value(bw, 1), opd_bw_value(bw, 2)};
    return opd_bw_return(bw, 0, opdi_collective_again(
        &op, OPDI_NAME(collectives, "_c10d_functional::reduce_scatter_tensor"), opd_bw_grad(bw, 0), rest, 3));
}
static int opdi_all_gather_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_ALL_GATHER, opdi_all_gather_kernel);
}
OPDI_INTERNAL void opdi_collective_all_gather(opd_op_desc *op) {
    op->schema = "all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor";
    op->cpu = op->fake = opdi_all_gather_kernel; op->any = opdi_all_gather_on;
    op->backward = opdi_all_gather_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_collective_batch; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
    op->out = "all_gather_into_tensor_out(Tensor input, int group_size, str group_name, *, Tensor(a!) out) -> "
        "Tensor(a!)";
    op->cases = "[2,3], 1, 'self'; [4], 1, 'self'; [0,3], 1, 'self'";
}
static int opdi_reduce_scatter_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int reduction = opdi_reduction_of(opd_arg_str(call, 1));
    const int64_t size = opd_arg_int(call, 2);
    opd_transfer transfer;
    if (reduction < 0 || opdi_collective_check(input, size, "reduce_scatter_tensor")) { return -1; }
    if (opd_size(input, 0) % size != 0) {
        return opd_fail(OPD_ERROR_SHAPE, "reduce_scatter_tensor: the first dim of input, of size %lld, is not a "
                        "multiple of group_size %lld", (long long)opd_size(input, 0), (long long)size);
    }
    opd_tensor *const out = opdi_collective_rows(call, input, opd_size(input, 0) / size);
    if (!out || out->backend == OPD_META) { return out ? opd_return_tensor(call, out) : -1; }
    opd_group *const group = opdi_group_of_size(opd_arg_str(call, 3), size);
    if (!group) { return -1; }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_REDUCE_SCATTER;
    transfer.reduction = (opd_reduction)reduction;
    transfer.count = opd_numel(out);
    return opdi_collective_run(call, group, &transfer, input, out);
}
/* Computes the gradient: the gathered gradients of all parts, divided by the number of parts for avg.  For min, max and
   product, see opdi_all_reduce_backward. */
static int opdi_reduce_scatter_backward(opd_backward_call *bw) {
    const char *const reduce_op = opd_bw_value(bw, 1).u.s, *const group = opd_bw_value(bw, 3).u.s;
    const bool extreme = opdi_collective_extreme(reduce_op), product = opdi_collective_product(reduce_op);
    opd_context *const ctx = extreme || product ? opd_bw_context(bw) : NULL;
    opd_tensor *grad = opdi_collective_whole(opd_bw_grad(bw, 0), group);
    if (grad && strcmp(reduce_op, "avg") == 0) { grad = opd_div_Scalar(grad, opd_bw_value(bw, 2)); }
    if (grad && product) { grad = opdi_product_backward(grad, opd_context_saved(ctx, 0), "avg", group); }
    if (grad && extreme) {
        opd_tensor *const value = opdi_collective_whole(opd_context_saved(ctx, 1), group);
        grad = value ? opdi_collective_share(grad, opd_context_saved(ctx, 0), value, group) : NULL;
    }
    return opd_bw_return(bw, 0, grad);
}
static int opdi_reduce_scatter_jvp(opd_jvp_call *jv) {
    const char *const reduce_op = opd_jvp_value(jv, 1).u.s, *const group = opd_jvp_value(jv, 3).u.s;
    const bool product = opdi_collective_product(reduce_op);
    opd_tensor *mine = NULL;
    if (!product && !opdi_collective_extreme(reduce_op)) { return opd_jvp_linear(jv); }
    if (product) { mine = opdi_product_tangent(opd_jvp_tensor(jv, 0), opd_jvp_tangent(jv, 0), group); }
    else {
        opd_tensor *const value = opdi_collective_whole(opd_jvp_result(jv, 0), group);
        mine = value ? opdi_collective_share(opd_jvp_tangent(jv, 0), opd_jvp_tensor(jv, 0), value, group) : NULL;
    }
    return opd_jvp_return(jv, 0, mine ? opdi_collective_part(mine, product ? "avg" : "sum", group) : NULL);
}
static int opdi_reduce_scatter_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_REDUCE_SCATTER, opdi_reduce_scatter_kernel);
}
OPDI_INTERNAL void opdi_collective_reduce_scatter(opd_op_desc *op) {
    op->schema = "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor";
    op->cpu = op->fake = opdi_reduce_scatter_kernel; op->any = opdi_reduce_scatter_on;
    op->backward = opdi_reduce_scatter_backward; op->jvp = opdi_reduce_scatter_jvp;
    op->setup_context = opdi_reduction_setup;
    op->vmap = opdi_collective_batch; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_elements;
    op->out = "reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, str group_name, *, Tensor(a!) "
        "out) -> Tensor(a!)";
    op->cases = "[2,3], 'sum', 1, 'self'; [4], 'avg', 1, 'self'; [0,3], 'sum', 1, 'self'; [4], 'min', 1, 'self'; "
        "[2,3], 'product', 1, 'self'";
}
/* Returns the sum of the sizes in `splits`, or -1 and sets an error.  `name` is the argument's name. */
static int64_t opdi_splits_sum(opd_ints splits, const char *name) {
    int64_t sum = 0;
    for (int64_t i = 0; i < splits.n; i++) {
        if (splits.data[i] < 0 || splits.data[i] > INT64_MAX - sum) {
            return opd_fail(OPD_ERROR_ARGUMENT, "all_to_all_single: %s contains %lld, which is negative or too large",
                            name, (long long)splits.data[i]);
        }
        sum += splits.data[i];
    }
    return sum;
}
static int opdi_all_to_all_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const opd_ints to = opd_arg_ints(call, 1), from = opd_arg_ints(call, 2);
    opd_transfer transfer;
    if (opdi_collective_check(input, 1, "all_to_all_single")) { return -1; }
    const int64_t rows = opdi_splits_sum(to, "output_split_sizes"), given = opdi_splits_sum(from, "input_split_sizes");
    if (rows < 0 || given < 0) { return -1; }
    if (given != opd_size(input, 0) || to.n != from.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "all_to_all_single: the sum of input_split_sizes is %lld, but the first "
                        "dim of input is %lld (both lists must have one size for each rank)", (long long)given,
                        (long long)opd_size(input, 0));
    }
    opd_tensor *const out = opdi_collective_rows(call, input, rows);
    if (!out || out->backend == OPD_META) { return out ? opd_return_tensor(call, out) : -1; }
    opd_group *const group = opdi_group_of_size(opd_arg_str(call, 3), -1);
    if (!group) { return -1; }
    if (to.n != opd_group_size(group)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "all_to_all_single: there are %lld split sizes for the %d rank(s) of "
                        "process group '%s'", (long long)to.n, opd_group_size(group), opd_group_name(group));
    }
    int64_t *const counts = (int64_t *)opdi_scope_alloc(2 * (size_t)to.n * sizeof *counts);
    int64_t row = 1;
    for (int i = 1; i < opd_ndim(input); i++) { row *= opd_size(input, i); }
    if (!counts) { return -1; }
    for (int64_t i = 0; i < to.n; i++) {
        counts[i] = from.data[i] * row;
        counts[to.n + i] = to.data[i] * row;
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_TO_ALL;
    transfer.send_counts = counts;
    transfer.recv_counts = counts + to.n;
    if (to.n == 1) {
        if (rows != given) {
            return opd_fail(OPD_ERROR_ARGUMENT, "all_to_all_single: a rank sends itself %lld row(s), but receives %lld "
                            "from itself", (long long)given, (long long)rows);
        }
        transfer.count = counts[0];
    }
    return opdi_collective_run(call, group, &transfer, input, out);
}
/* Computes the gradient: all_to_all with the split sizes of input and output exchanged. */
static int opdi_all_to_all_backward(opd_backward_call *bw) {
    static opd_op *op;
    const opd_value rest[3] = {opd_bw_value(bw, 2), opd_bw_value(bw, 1), opd_bw_value(bw, 3)};
    return opd_bw_return(bw, 0, opdi_collective_again(
        &op, OPDI_NAME(collectives, "_c10d_functional::all_to_all_single"), opd_bw_grad(bw, 0), rest, 3));
}
static int opdi_all_to_all_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_ALL_TO_ALL, opdi_all_to_all_kernel);
}
OPDI_INTERNAL void opdi_collective_all_to_all(opd_op_desc *op) {
    op->schema = "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str "
        "group_name) -> Tensor";
    op->cpu = op->fake = opdi_all_to_all_kernel; op->any = opdi_all_to_all_on;
    op->backward = opdi_all_to_all_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = opdi_collective_batch; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
    op->cases = "[2,3], (2), (2), 'self'; [4], (4), (4), 'self'";
}

//== from one rank to another rank =====================================================================================

/* Begins a transfer between two ranks.  Sends the current values of `tensor`, or receives into it, as `kind` says.
   Returns 0, or -1 and sets an error. */
static int opdi_pair_run(opd_call *call, opd_collective kind, opd_tensor *tensor, opd_tensor *out) {
    opd_group *const group = opdi_group_of_size(opd_arg_str(call, 3), -1);
    const int64_t peer = opd_arg_int(call, 1), tag = opd_arg_int(call, 2);
    opd_transfer transfer;
    if (!group || (kind == OPD_COLLECTIVE_SEND ? opdi_wait_to_send(tensor) : opdi_wait_for(tensor))) { return -1; }
    if (peer < 0 || peer >= opd_group_size(group) || tag < 0 || tag > INT32_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: rank %lld with tag %lld is not possible: process group '%s' has %d "
                        "rank(s), and tags must not be negative", kind == OPD_COLLECTIVE_SEND ? "isend" : "irecv",
                        (long long)peer, (long long)tag, opd_group_name(group), opd_group_size(group));
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = kind;
    transfer.dtype = opd_dtype(tensor);
    transfer.count = opd_numel(tensor);
    transfer.peer = (int32_t)peer;
    transfer.tag = (int32_t)tag;
    if (kind == OPD_COLLECTIVE_SEND) { transfer.send = tensor->data; } else { transfer.recv = tensor->data; }
    opd_work *const work = opdi_group_move(group, &transfer, kind == OPD_COLLECTIVE_SEND ? tensor : NULL, out);
    if (!work) { return -1; }
    opd_work_release(work);
    return opd_return_tensor(call, out);
}
/* isend: returns a tensor without elements.  Waiting for this tensor waits until the sent tensor may be written
   again. */
static int opdi_isend_kernel(opd_call *call) {
    const int64_t none = 0;
    opd_tensor *const tensor = opd_arg_tensor(call, 0), *const out = opd_result(call, 0, &none, 1, opd_dtype(tensor));
    if (!out || tensor->backend == OPD_META) { return out ? opd_return_tensor(call, out) : -1; }
    opd_tensor *const dense = opd_contiguous(tensor);
    return dense ? opdi_pair_run(call, OPD_COLLECTIVE_SEND, dense, out) : -1;
}
static int opdi_irecv_kernel(opd_call *call) {
    opd_tensor *const tensor = opd_arg_tensor(call, 0);
    if (tensor->backend == OPD_META) { return opd_return_tensor(call, tensor); }
    if (!opd_is_contiguous(tensor)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "irecv: the tensor must be contiguous");
    }
    return opdi_pair_run(call, OPD_COLLECTIVE_RECV, tensor, tensor);
}
static int opdi_isend_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_SEND, opdi_isend_kernel);
}
/* The batching rule of isend: sends the whole batch as one message, with the batch dim in front, as irecv expects
   it. */
static int opdi_isend_batch(opd_call *call) {
    opd_value args[4];
    int dim;
    opd_tensor *const tensor = opd_batch_arg(call, 0, &dim);
    if (!tensor) { return -1; }
    for (int i = 1; i < 4; i++) { args[i] = opd_call_args(call)[i]; }
    args[0] = opd_value_tensor(opd_batch_front(tensor, dim));
    opd_tensor *const out = args[0].u.t ? opd_call_op(opd_call_operator(call), args, 4) : NULL;
    return out ? opd_return_tensor(call, out) : -1;
}
OPDI_INTERNAL void opdi_collective_isend(opd_op_desc *op) {
    op->schema = "isend(Tensor tensor, int dst, int tag, str group_name) -> Tensor";
    op->cpu = op->fake = opdi_isend_kernel; op->any = opdi_isend_on; op->tags = OPDI_OPTAG_SENDS;
    op->vmap = opdi_isend_batch; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
}
static int opdi_irecv_on(opd_call *call) {
    return opdi_collective_on(call, OPD_COLLECTIVE_RECV, opdi_irecv_kernel);
}
OPDI_INTERNAL void opdi_collective_irecv(opd_op_desc *op) {
    op->schema = "irecv(Tensor(a!) tensor, int src, int tag, str group_name) -> Tensor(a!)";
    op->cpu = op->fake = opdi_irecv_kernel; op->any = opdi_irecv_on;
    op->vmap = opdi_collective_batch_any; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
}

/* batch_p2p_ops: begins all transfers in order. */
static int opdi_batch_pairs_kernel(opd_call *call) {
    const opd_value *const words = &opd_call_args(call)[0];
    const opd_ints peers = opd_arg_ints(call, 1), tags = opd_arg_ints(call, 2);
    const opd_tensors list = opd_arg_tensors(call, 3);
    opd_tensor **const out = (opd_tensor **)opdi_scope_alloc(((size_t)list.n + 1) * sizeof *out);
    if (!out) { return -1; }
    if (words->n != list.n || peers.n != list.n || tags.n != list.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "batch_p2p_ops: there are %lld tensor(s), but %d operation(s), %lld "
                        "rank(s) and %lld tag(s)", (long long)list.n, (int)words->n, (long long)peers.n,
                        (long long)tags.n);
    }
    for (int64_t i = 0; i < list.n; i++) {
        const char *const word = words->u.list[i].u.s;
        const bool sends = strcmp(word, "isend") == 0;
        const opd_value args[4] = {opd_value_tensor(list.data[i]), opd_value_int(peers.data[i]),
                                   opd_value_int(tags.data[i]), opd_value_str(opd_arg_str(call, 4))};
        if (!sends && strcmp(word, "irecv") != 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "batch_p2p_ops: '%.40s' is neither isend nor irecv", word);
        }
        opd_op *const op = opd_find(sends ? "_c10d_functional::isend" : "_c10d_functional::irecv");
        out[i] = op ? opd_call_op(op, args, 4) : NULL;
        if (!out[i]) { return -1; }
    }
    return opd_return_tensors(call, out, list.n);
}
OPDI_INTERNAL void opdi_collective_batch_pairs(opd_op_desc *op) {
    op->schema = "batch_p2p_ops(str[] op_list, int[] peer_list, int[] tag_list, Tensor[] tensors, str group_name) -> "
        "Tensor[]";
    op->composite = opdi_batch_pairs_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
}

//== operators that wait, operators on lists, and the names of _c10d_functional_autograd ===============================

/* wait_tensor: returns its argument.  Calling the operator has already waited for the argument. */
static int opdi_wait_tensor_kernel(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int opdi_wait_tensors_kernel(opd_call *call) { return opd_return_list(call, opd_arg_tensors(call, 0)); }
OPDI_INTERNAL void opdi_collective_wait_tensor(opd_op_desc *op) {
    op->schema = "wait_tensor(Tensor tensor) -> Tensor";
    op->composite = opdi_wait_tensor_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
    op->cases = "[2,3]";
}
OPDI_INTERNAL void opdi_collective_wait_tensors(opd_op_desc *op) {
    op->schema = "wait_tensors(Tensor[] tensors) -> Tensor[]";
    op->composite = opdi_wait_tensors_kernel;
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
    op->cases = "{[2,3],[4]}";
}
/* Calls the operator whose name is the kernel's user pointer for each tensor of the list, with the call's other
   arguments. */
static int opdi_coalesced_kernel(opd_call *call) {
    opd_op *const op = opd_find((const char *)opd_call_user(call));
    const opd_tensors list = opd_arg_tensors(call, 0);
    const int count = opd_call_nargs(call);
    opd_value args[4];
    opd_tensor **const out = (opd_tensor **)opdi_scope_alloc(((size_t)list.n + 1) * sizeof *out);
    if (!op || !out || count > 4) { return -1; }
    for (int i = 1; i < count; i++) { args[i] = opd_call_args(call)[i]; }
    for (int64_t i = 0; i < list.n; i++) {
        args[0] = opd_value_tensor(list.data[i]);
        out[i] = opd_call_op(op, args, count);
        if (!out[i]) { return -1; }
    }
    return opd_return_tensors(call, out, list.n);
}
/* Calls the operator whose name is the kernel's user pointer with the same arguments. */
static int opdi_renamed_kernel(opd_call *call) {
    opd_op *const op = opd_find((const char *)opd_call_user(call));
    opd_tensor *const out = op ? opd_call_op(op, opd_call_args(call), opd_call_nargs(call)) : NULL;
    return out ? opd_return_tensor(call, out) : -1;
}
static void opdi_coalesced_card(opd_op_desc *op, const char *one) {
    op->composite = opdi_coalesced_kernel; op->user = (void *)(uintptr_t)one;
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
}
OPDI_INTERNAL void opdi_collective_all_reduce_coalesced(opd_op_desc *op) {
    op->schema = "all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]";
    opdi_coalesced_card(op, "_c10d_functional::all_reduce");
    op->cases = "{[2,3],[4]}, 'sum', 'self'";
}
OPDI_INTERNAL void opdi_collective_all_reduce_coalesced_(opd_op_desc *op) {
    op->schema = "all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, str group_name) -> Tensor[](a!)";
    opdi_coalesced_card(op, "_c10d_functional::all_reduce_");
}
OPDI_INTERNAL void opdi_collective_all_gather_coalesced(opd_op_desc *op) {
    op->schema = "all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]";
    opdi_coalesced_card(op, "_c10d_functional::all_gather_into_tensor");
    op->cases = "{[2,3],[4]}, 1, 'self'";
}
OPDI_INTERNAL void opdi_collective_reduce_scatter_coalesced(opd_op_desc *op) {
    op->schema = "reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name) -> "
        "Tensor[]";
    opdi_coalesced_card(op, "_c10d_functional::reduce_scatter_tensor");
    op->cases = "{[2,3],[4]}, 'sum', 1, 'self'";
}
static void opdi_renamed_card(opd_op_desc *op, const char *one) {
    op->composite = opdi_renamed_kernel; op->user = (void *)(uintptr_t)one; op->cases = NULL;
    op->cpu = op->fake = op->any = NULL; op->backward = NULL; op->setup_context = NULL; op->jvp = NULL;
    op->inplace = op->out = NULL;
    op->vmap = OPD_BATCH_DECOMPOSE; op->flops = opdi_flops_none;
}
OPDI_INTERNAL void opdi_collective_autograd_all_gather(opd_op_desc *op) {
    opdi_collective_all_gather(op);
    opdi_renamed_card(op, "_c10d_functional::all_gather_into_tensor");
}
OPDI_INTERNAL void opdi_collective_autograd_reduce_scatter(opd_op_desc *op) {
    opdi_collective_reduce_scatter(op);
    opdi_renamed_card(op, "_c10d_functional::reduce_scatter_tensor");
}
OPDI_INTERNAL void opdi_collective_autograd_all_to_all(opd_op_desc *op) {
    opdi_collective_all_to_all(op);
    opdi_renamed_card(op, "_c10d_functional::all_to_all_single");
}
OPDI_INTERNAL void opdi_collective_autograd_wrap(opd_op_desc *op) {
    opdi_collective_wait_tensor(op);
    op->schema = "_wrap_tensor_autograd(Tensor input) -> Tensor";
}

//== c10d: collectives into existing memory, which return a work =======================================================
//
//  The schemas are those of torch/csrc/distributed/c10d/Ops.cpp.  A ProcessGroup is an opd_group or its name, a
//  ReduceOp is its name, and a Work is an opd_work that the caller owns.  None of these operators is differentiated,
//  recorded or batched: use _c10d_functional for that.

/* The state of a call: the common part of its transfers, and the works that have begun. */
typedef struct opdi_c10d {
    opd_group *group;
    opd_transfer transfer;
    int64_t timeout_ms;                           /* 0: the group's time limit */
    bool waits, nothing;                          /* waits: true if the call waits for its transfers; nothing: true if
                                                     there is no transfer, because the tensors are meta tensors */
    opd_work *works;
} opdi_c10d;
/* Returns the argument `name`, or None if the schema does not have it. */
static opd_value opdi_c10d_arg(const opd_call *call, const char *name) {
    const int at = opdi_arg_index(opd_op_schema(opd_call_operator(call)), name, strlen(name));
    return at < 0 ? opd_value_none() : opd_call_args(call)[at];
}
static int opdi_c10d_read(opd_call *call, opdi_c10d *its) {
    static const char *const peers[] = {"root_rank", "dst", "src"};
    const opd_value group = opdi_c10d_arg(call, "process_group"), waits = opdi_c10d_arg(call, "async_op"),
        timeout = opdi_c10d_arg(call, "timeout"), tag = opdi_c10d_arg(call, "tag"),
        reduce_op = opdi_c10d_arg(call, "reduce_op");
    memset(its, 0, sizeof *its);
    for (int i = 0; i < 3; i++) {
        const opd_value peer = opdi_c10d_arg(call, peers[i]);
        if (peer.tag != OPD_TAG_INT) { continue; }
        its->transfer.peer = peer.u.i < 0 || peer.u.i > INT32_MAX ? -1 : (int32_t)peer.u.i;
    }
    its->transfer.tag = tag.tag != OPD_TAG_INT ? 0 : tag.u.i < 0 || tag.u.i > INT32_MAX ? -1 : (int32_t)tag.u.i;
    its->waits = waits.tag == OPD_TAG_BOOL && !waits.u.i;
    its->timeout_ms = timeout.tag == OPD_TAG_INT && timeout.u.i > 0 ? timeout.u.i : 0;
    if (reduce_op.tag == OPD_TAG_OBJECT) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: reduce_op must be the name of a reduction, such as 'sum'",
                        opd_op_name(opd_call_operator(call)));
    }
    const int reduction = reduce_op.tag == OPD_TAG_STR ? opdi_reduction_of(reduce_op.u.s) : OPD_REDUCTION_SUM;
    its->group = reduction < 0 ? NULL : opdi_group_given(&group);
    its->transfer.reduction = (opd_reduction)reduction;
    return its->group ? 0 : -1;
}
/* Fails if a tensor does not have its own memory, or if it is written but has a gradient history.  Returns 0, or -1
   and sets an error. */
static int opdi_c10d_check(const opd_call *call, const opd_tensor *tensor, bool writes) {
    const char *const name = opd_op_name(opd_call_operator(call));
    if (tensor->flags & (OPDI_BATCHED | OPDI_TRACED | OPDI_LAZY)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s cannot be recorded or batched: use the operators of _c10d_functional",
                        name);
    }
    if (writes && opd_tensor_requires_grad(tensor) && opd_grad_mode_enabled()) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s: the tensor that it writes into requires grad (call it under "
                        "OPD_NO_GRAD)", name);
    }
    return 0;
}
/* Returns the tensor or a contiguous copy of it: on its device if the group can move memory there, otherwise on the
   CPU. */
static opd_tensor *opdi_c10d_place(opd_group *group, const opd_transfer *transfer, opd_tensor *tensor) {
    return opd_contiguous(opdi_group_can_move(group, tensor, transfer) ? tensor
                          : opd_to_device(tensor, opd_device_make(OPD_CPU, -1), opd_dtype(tensor)));
}
/* Begins a transfer of `count` elements from `read` to `written`.  Either may be NULL, and both may be the same
   tensor.  If the result must be copied afterwards, waits for the transfer.  Returns 0, or -1 and sets an error. */
static int opdi_c10d_begin(opd_call *call, opdi_c10d *its, opd_collective kind, opd_tensor *read, opd_tensor *written,
                           int64_t count) {
    opd_transfer transfer = its->transfer;
    if ((read && opdi_c10d_check(call, read, false)) || (written && opdi_c10d_check(call, written, true))) {
        return -1;
    }
    if ((read ? read : written)->backend == OPD_META) {
        its->nothing = true;
        return 0;
    }
    transfer.kind = kind;
    transfer.count = count;
    transfer.dtype = opd_dtype(read ? read : written);
    if (read && written && (opd_dtype(written) != transfer.dtype || written->backend != read->backend)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: the tensor that is sent (%s) and the tensor that receives it (%s) have "
                        "different dtypes or devices", opd_op_name(opd_call_operator(call)),
                        opd_dtype_name(transfer.dtype), opd_dtype_name(opd_dtype(written)));
    }
    opd_tensor *const from = read ? opdi_c10d_place(its->group, &transfer, read) : NULL;
    opd_tensor *const to = !written ? NULL : written == read ? from
        : opdi_c10d_place(its->group, &transfer, written);
    if (!opd_ok() || (from && from != to && opdi_wait_to_send(from)) || (to && opdi_wait_for(to))) { return -1; }
    transfer.send = from ? from->data : NULL;
    transfer.recv = to ? to->data : NULL;
    opd_work *const work = opdi_group_move(its->group, &transfer, from == to ? NULL : from, to);
    if (!work) { return -1; }
    its->works = opdi_work_joined(work, its->works, its->timeout_ms);
    if (to == written) {
        if (written) { opdi_move_writes(written); }
        return 0;
    }
    return opdi_works_finish(work) || !opd_copy_(written, to) ? -1 : 0;
}
/* Sets the results of a call: if the schema has two results, argument 0 and the work of *its; if it has one, only the
   work.  If rc is not 0 (an error occurred), releases the work instead.  Returns 0, or -1 and sets an error. */
static int opdi_c10d_return(opd_call *call, opdi_c10d *its, int rc) {
    const int nrets = opd_call_operator(call)->nrets;
    if (!rc && !its->works) {
        its->works = opdi_work_none(its->group);
        rc = its->works ? 0 : -1;
    }
    if (!rc && its->waits) { rc = opdi_works_finish(its->works); }
    if (!rc && nrets > 1) { rc = opdi_return_given(call, 0); }
    if (!rc && nrets > 0) { rc = opd_return_value(call, opd_value_object(its->works)); }
    if (rc || nrets == 0) { opd_work_release(its->works); }
    return rc;
}
/* Returns the only tensor of a list, or NULL and sets an error. */
static opd_tensor *opdi_c10d_one(const opd_call *call, opd_value list) {
    if (list.tag == OPD_TAG_TENSOR) { return list.u.t; }
    if (list.tag == OPD_TAG_TENSORS && list.n == 1) { return list.u.tensors[0]; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: each rank must give one tensor, not %d",
                   opd_op_name(opd_call_operator(call)), (int)list.n);
    return NULL;
}
/* Sets *out to the only list of tensors in `value`, a list of lists; it must have `count` tensors (-1: any number).
   Returns 0, or -1 and sets an error. */
static int opdi_c10d_list(const opd_call *call, opd_value value, int64_t count, opd_tensors *out) {
    if (value.tag == OPD_TAG_LIST && value.n == 1) { value = value.u.list[0]; }
    const bool is_list = value.tag == OPD_TAG_TENSORS;
    out->data = is_list ? value.u.tensors : NULL;
    out->n = is_list ? value.n : 0;
    if ((is_list || value.n == 0) && (count < 0 || out->n == count)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: each rank must give one list, with a tensor for each of %lld rank(s)",
                    opd_op_name(opd_call_operator(call)), (long long)count);
}
/* Returns contiguous memory for all tensors of a list, as a tensor; if `fill` is true, with their values.  Returns
   NULL and sets an error on failure. */
static opd_tensor *opdi_c10d_flat(const opd_call *call, opd_tensors list, bool fill) {
    const int64_t all[1] = {-1};
    int64_t sum = 0;
    opd_tensor **const flat = (opd_tensor **)opdi_scope_alloc(((size_t)list.n + 1) * sizeof *flat);
    if (!flat) { return NULL; }
    for (int64_t i = 0; i < list.n; i++) {
        if (opdi_c10d_check(call, list.data[i], !fill)) { return NULL; }
        if (opd_dtype(list.data[i]) != opd_dtype(list.data[0]) || list.data[i]->backend != list.data[0]->backend) {
            (void)opd_fail(OPD_ERROR_DTYPE, "%s: all tensors of a list must have the same dtype and device",
                           opd_op_name(opd_call_operator(call)));
            return NULL;
        }
        sum += opd_numel(list.data[i]);
        flat[i] = fill ? opd_reshape(list.data[i], opd_ints_of(all, 1)) : NULL;
    }
    if (list.n == 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the list is empty", opd_op_name(opd_call_operator(call)));
        return NULL;
    }
    const opd_tensors parts = {flat, list.n};
    return fill ? opd_cat(parts, 0) : opd_tensor_new_on(opd_ints_of(&sum, 1), opd_dtype(list.data[0]),
                                                        opd_tensor_device(list.data[0]));
}
/* Waits for the works, and copies the contiguous result `flat` into the tensors of a list.  Returns 0, or -1 and
   sets an error. */
static int opdi_c10d_unflatten(opdi_c10d *its, opd_tensor *flat, opd_tensors list) {
    int64_t at = 0;
    if (its->nothing) { return 0; }
    if (opdi_works_finish(its->works)) { return -1; }
    for (int64_t i = 0; i < list.n; i++) {
        const int64_t numel = opd_numel(list.data[i]);
        opd_tensor *const part = opd_narrow(flat, 0, at, numel);
        if (!part || !opd_copy_(list.data[i], opd_reshape(part, opd_ints_of(opd_sizes(list.data[i]),
                                                                            opd_ndim(list.data[i]))))) { return -1; }
        at += numel;
    }
    return 0;
}
/* Fails unless each tensor of a list has `count` elements.  Returns 0, or -1 and sets an error. */
static int opdi_c10d_alike(const opd_call *call, opd_tensors list, int64_t count) {
    for (int64_t i = 0; i < list.n; i++) {
        if (opd_numel(list.data[i]) == count) { continue; }
        return opd_fail(OPD_ERROR_SHAPE, "%s: tensor %lld of the list has %lld element(s), not %lld",
                        opd_op_name(opd_call_operator(call)), (long long)i, (long long)opd_numel(list.data[i]),
                        (long long)count);
    }
    return 0;
}
/* Returns the number of elements of `part` if `whole` has that many elements for each rank, or -1 and sets an error. */
static int64_t opdi_c10d_part(const opd_call *call, const opdi_c10d *its, const opd_tensor *part,
                              const opd_tensor *whole) {
    const int64_t count = part ? opd_numel(part) : 0, all = whole ? opd_numel(whole) : 0;
    if (part && whole && count * opd_group_size(its->group) == all) { return count; }
    if (part && whole) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: %lld element(s) from each of %d rank(s) do not fill the tensor, which has "
                       "%lld", opd_op_name(opd_call_operator(call)), (long long)count,
                       opd_group_size(its->group), (long long)all);
    }
    return -1;
}
/* The kernel of allreduce_, broadcast_ and reduce_, which work in place on a tensor, and of allreduce_coalesced_,
   which works on each tensor of a list. */
enum { OPDI_C10D_EACH = 64 };
static int opdi_c10d_in_place(opd_call *call) {
    const int what = (int)(intptr_t)opd_call_user(call);
    const opd_collective kind = (opd_collective)(what & ~OPDI_C10D_EACH);
    const opd_value list = opd_call_args(call)[0], root = opdi_c10d_arg(call, "root_tensor");
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    if (opdi_c10d_arg(call, "sparse_indices").tag == OPD_TAG_TENSOR || (root.tag == OPD_TAG_INT && root.u.i != 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: sparse tensors are not supported, and each rank must give one tensor",
                        opd_op_name(opd_call_operator(call)));
    }
    int rc = !(what & OPDI_C10D_EACH) && !opdi_c10d_one(call, list) ? -1 : 0;
    for (int32_t i = 0; i < list.n && rc == 0; i++) {
        opd_tensor *const tensor = list.u.tensors[i];
        rc = opdi_c10d_begin(call, &its, kind, tensor, tensor, opd_numel(tensor));
    }
    return opdi_c10d_return(call, &its, rc);
}
/* The kernel of gathers into a tensor that has a part for each rank, and of scatters from such a tensor.  If the
   arguments are two lists, it processes each pair of tensors. */
static int opdi_c10d_whole(opd_call *call) {
    const opd_collective kind = (opd_collective)(intptr_t)opd_call_user(call);
    const opd_value to = opd_call_args(call)[0], from = opd_call_args(call)[1];
    const bool lists = to.tag == OPD_TAG_TENSORS;
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    if (lists && to.n != from.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: there are %d tensor(s) to receive, but %d to send",
                        opd_op_name(opd_call_operator(call)), (int)to.n, (int)from.n);
    }
    int rc = 0;
    for (int32_t i = 0; i < (lists ? to.n : 1) && rc == 0; i++) {
        opd_tensor *const out = lists ? to.u.tensors[i] : to.u.t, *const in = lists ? from.u.tensors[i] : from.u.t;
        const bool elsewhere = kind == OPD_COLLECTIVE_GATHER && its.transfer.peer != opd_group_rank(its.group);
        const int64_t count = elsewhere ? opd_numel(in) : kind == OPD_COLLECTIVE_REDUCE_SCATTER
            ? opdi_c10d_part(call, &its, out, in) : opdi_c10d_part(call, &its, in, out);
        rc = count < 0 ? -1 : opdi_c10d_begin(call, &its, kind, in, elsewhere ? NULL : out, count);
    }
    return opdi_c10d_return(call, &its, rc);
}
/* The kernel of allgather_ and gather_, which fill a list with one tensor from each rank. */
static int opdi_c10d_gather(opd_call *call) {
    const opd_collective kind = (opd_collective)(intptr_t)opd_call_user(call);
    opd_tensors list;
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    opd_tensor *const in = opdi_c10d_one(call, opd_call_args(call)[1]);
    const bool here = kind == OPD_COLLECTIVE_ALL_GATHER || its.transfer.peer == opd_group_rank(its.group);
    if (!in || opdi_c10d_list(call, opd_call_args(call)[0], here ? opd_group_size(its.group) : -1, &list) ||
        (here && opdi_c10d_alike(call, list, opd_numel(in)))) { return -1; }
    opd_tensor *const flat = here ? opdi_c10d_flat(call, list, false) : NULL;
    int rc = here && !flat ? -1 : opdi_c10d_begin(call, &its, kind, in, flat, opd_numel(in));
    if (rc == 0 && here) { rc = opdi_c10d_unflatten(&its, flat, list); }
    return opdi_c10d_return(call, &its, rc);
}
/* The kernel of allgather_coalesced_: each rank's tensors fill the list for that rank. */
static int opdi_c10d_gather_lists(opd_call *call) {
    const opd_value rows = opd_call_args(call)[0];
    const opd_tensors in = opd_arg_tensors(call, 1);
    opdi_c10d its;
    int rc = opdi_c10d_read(call, &its);
    if (rc) { return -1; }
    if (rows.tag != OPD_TAG_LIST || rows.n != opd_group_size(its.group)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "c10d::allgather_coalesced_: there are %d list(s) for %d rank(s)",
                        (int)rows.n, opd_group_size(its.group));
    }
    opd_tensor **const column = (opd_tensor **)opdi_scope_alloc((size_t)rows.n * sizeof *column);
    if (!column) { return -1; }
    for (int64_t i = 0; i < in.n && rc == 0; i++) {
        const opd_tensors list = {column, rows.n};
        for (int32_t k = 0; k < rows.n && rc == 0; k++) {
            if (rows.u.list[k].tag != OPD_TAG_TENSORS || rows.u.list[k].n != in.n) {
                rc = opd_fail(OPD_ERROR_ARGUMENT, "c10d::allgather_coalesced_: the list for rank %d has %d tensor(s), "
                              "not %lld", (int)k, (int)rows.u.list[k].n, (long long)in.n);
            } else { column[k] = rows.u.list[k].u.tensors[i]; }
        }
        opd_tensor *const flat = rc || opdi_c10d_alike(call, list, opd_numel(in.data[i])) ? NULL
            : opdi_c10d_flat(call, list, false);
        rc = flat ? opdi_c10d_begin(call, &its, OPD_COLLECTIVE_ALL_GATHER, in.data[i], flat, opd_numel(in.data[i]))
            : -1;
        if (rc == 0) { rc = opdi_c10d_unflatten(&its, flat, list); }
    }
    return opdi_c10d_return(call, &its, rc);
}
/* The kernel of reduce_scatter_ and scatter_, whose input is a list with one tensor for each rank. */
static int opdi_c10d_scatter(opd_call *call) {
    const opd_collective kind = (opd_collective)(intptr_t)opd_call_user(call);
    opd_tensors list;
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    opd_tensor *const out = opdi_c10d_one(call, opd_call_args(call)[0]);
    const bool here = kind == OPD_COLLECTIVE_REDUCE_SCATTER || its.transfer.peer == opd_group_rank(its.group);
    if (!out || opdi_c10d_list(call, opd_call_args(call)[1], here ? opd_group_size(its.group) : -1, &list) ||
        (here && opdi_c10d_alike(call, list, opd_numel(out)))) { return -1; }
    opd_tensor *const flat = here ? opdi_c10d_flat(call, list, true) : NULL;
    return opdi_c10d_return(call, &its, here && !flat ? -1 : opdi_c10d_begin(call, &its, kind, flat, out,
                                                                             opd_numel(out)));
}
/* Begins an all_to_all: for each rank r, sends counts[r] elements of `from` to rank r, and receives counts[ranks + r]
   elements from rank r into `to`.  Returns 0, or -1 and sets an error. */
static int opdi_c10d_all_to_all_begin(opd_call *call, opdi_c10d *its, opd_tensor *from, opd_tensor *to,
                                      const int64_t *counts) {
    const int ranks = opd_group_size(its->group);
    its->transfer.send_counts = counts;
    its->transfer.recv_counts = counts + ranks;
    if (ranks == 1 && counts[0] != counts[1]) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a rank sends itself %lld element(s), but receives %lld from itself",
                        opd_op_name(opd_call_operator(call)), (long long)counts[0], (long long)counts[1]);
    }
    return opdi_c10d_begin(call, its, OPD_COLLECTIVE_ALL_TO_ALL, from, to, ranks == 1 ? counts[0] : 0);
}
static int opdi_c10d_all_to_all(opd_call *call) {
    const opd_tensors to = opd_arg_tensors(call, 0), from = opd_arg_tensors(call, 1);
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    const int ranks = opd_group_size(its.group);
    int64_t *const counts = (int64_t *)opdi_scope_alloc(2 * (size_t)ranks * sizeof *counts);
    if (!counts) { return -1; }
    if (to.n != ranks || from.n != ranks) {
        return opd_fail(OPD_ERROR_ARGUMENT, "c10d::alltoall_: there are %lld output tensor(s) and %lld input tensor(s) "
                        "for %d rank(s)", (long long)to.n, (long long)from.n, ranks);
    }
    for (int i = 0; i < ranks; i++) {
        counts[i] = opd_numel(from.data[i]);
        counts[ranks + i] = opd_numel(to.data[i]);
    }
    opd_tensor *const sent = opdi_c10d_flat(call, from, true), *const taken = sent ? opdi_c10d_flat(call, to, false)
        : NULL;
    int rc = taken ? opdi_c10d_all_to_all_begin(call, &its, sent, taken, counts) : -1;
    if (rc == 0) { rc = opdi_c10d_unflatten(&its, taken, to); }
    return opdi_c10d_return(call, &its, rc);
}
/* Sets counts[ranks] to the number of elements for each rank.  `splits` has the sizes into which the first dim is
   split; if it is empty, the parts are equal.  Returns 0, or -1 and sets an error. */
static int opdi_c10d_splits(const opd_call *call, opd_tensor *tensor, opd_ints splits, int ranks, int64_t *counts) {
    const int64_t rows = opd_ndim(tensor) ? opd_size(tensor, 0) : 0, numel = opd_numel(tensor);
    int64_t sum = 0;
    bool right = opd_ndim(tensor) > 0 && (splits.n == ranks || (splits.n == 0 && rows % ranks == 0));
    for (int i = 0; i < ranks && right; i++) {
        const int64_t each = splits.n ? splits.data[i] : rows / ranks;
        right = each >= 0 && each <= rows - sum;
        sum += each;
        counts[i] = rows ? each * (numel / rows) : 0;
    }
    return right && sum == rows ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: there must be one split size for each of %d "
                                               "rank(s), and their sum must be the first dim, %lld",
                                               opd_op_name(opd_call_operator(call)), ranks, (long long)rows);
}
static int opdi_c10d_all_to_all_base(opd_call *call) {
    opd_tensor *const to = opd_arg_tensor(call, 0), *const from = opd_arg_tensor(call, 1);
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    const int ranks = opd_group_size(its.group);
    int64_t *const counts = (int64_t *)opdi_scope_alloc(2 * (size_t)ranks * sizeof *counts);
    if (!counts || opdi_c10d_splits(call, from, opd_arg_ints(call, 4), ranks, counts) ||
        opdi_c10d_splits(call, to, opd_arg_ints(call, 3), ranks, counts + ranks)) { return -1; }
    return opdi_c10d_return(call, &its, opdi_c10d_all_to_all_begin(call, &its, from, to, counts));
}
static int opdi_c10d_pair(opd_call *call) {
    const opd_collective kind = (opd_collective)(intptr_t)opd_call_user(call);
    opd_tensor *const tensor = opdi_c10d_one(call, opd_call_args(call)[0]);
    const bool sends = kind == OPD_COLLECTIVE_SEND;
    opdi_c10d its;
    if (!tensor || opdi_c10d_read(call, &its)) { return -1; }
    return opdi_c10d_return(call, &its, opdi_c10d_begin(call, &its, kind, sends ? tensor : NULL, sends ? NULL : tensor,
                                                        opd_numel(tensor)));
}
static int opdi_c10d_any_source(opd_call *call) {
    (void)call;
    return opd_fail(OPD_ERROR_ARGUMENT, "c10d::recv_any_source_ is not supported: receive from a given rank "
                    "(c10d::recv_)");
}
static int opdi_c10d_barrier(opd_call *call) {
    opdi_c10d its;
    if (opdi_c10d_read(call, &its)) { return -1; }
    opd_work *const work = opd_group_barrier(its.group);
    if (work) { its.works = opdi_work_joined(work, NULL, its.timeout_ms); }
    its.waits = its.waits || opd_call_operator(call)->nrets == 0;
    return opdi_c10d_return(call, &its, work ? 0 : -1);
}
static int opdi_c10d_nan(opd_call *call) {
    opd_tensor *const tensor = opd_arg_tensor(call, 0);
    const bool floats = opd_dtype_is_floating(opd_dtype(tensor)) || opd_dtype_is_complex(opd_dtype(tensor));
    if (tensor->backend == OPD_META || !floats) { return 0; }
    opd_tensor *const any = opd_any(opd_isnan(tensor));
    const int64_t found = any ? opd_item_i64(any) : 0;
    return !opd_ok() ? -1 : found ? opd_fail(OPD_ERROR_ARGUMENT, "c10d::check_for_nan: the tensor contains a NaN") : 0;
}
#define OPDI_C10D_GROUP "__torch__.torch.classes.c10d.ProcessGroup process_group"
#define OPDI_C10D_REDUCE OPDI_C10D_GROUP ", __torch__.torch.classes.c10d.ReduceOp reduce_op"
#define OPDI_C10D_TIMED ", bool async_op=True, int timeout=-1) -> "
#define OPDI_C10D_WORK "__torch__.torch.classes.c10d.Work"
typedef struct opdi_c10d_op { const char *schema; opd_kernel kernel; int kind; } opdi_c10d_op;
static const opdi_c10d_op opdi_c10d_ops[] = {
    {"allreduce_(Tensor[] tensors, " OPDI_C10D_REDUCE ", Tensor? sparse_indices" OPDI_C10D_TIMED "(Tensor[], "
     OPDI_C10D_WORK ")", opdi_c10d_in_place, OPD_COLLECTIVE_ALL_REDUCE},
    {"allreduce_coalesced_(Tensor[] tensors, " OPDI_C10D_REDUCE OPDI_C10D_TIMED OPDI_C10D_WORK, opdi_c10d_in_place,
     (int)OPD_COLLECTIVE_ALL_REDUCE | OPDI_C10D_EACH},
    {"broadcast_(Tensor[] tensors, " OPDI_C10D_GROUP ", int root_rank, int root_tensor" OPDI_C10D_TIMED "(Tensor[], "
     OPDI_C10D_WORK ")", opdi_c10d_in_place, OPD_COLLECTIVE_BROADCAST},
    {"reduce_(Tensor[] tensors, " OPDI_C10D_REDUCE ", int root_rank, int root_tensor" OPDI_C10D_TIMED OPDI_C10D_WORK,
     opdi_c10d_in_place, OPD_COLLECTIVE_REDUCE},
    {"allgather_(Tensor[][] output_tensors, Tensor[] input_tensors, " OPDI_C10D_GROUP OPDI_C10D_TIMED "(Tensor[][], "
     OPDI_C10D_WORK ")", opdi_c10d_gather, OPD_COLLECTIVE_ALL_GATHER},
    {"_allgather_base_(Tensor output_tensor, Tensor input_tensor, " OPDI_C10D_GROUP OPDI_C10D_TIMED "(Tensor, "
     OPDI_C10D_WORK ")", opdi_c10d_whole, OPD_COLLECTIVE_ALL_GATHER},
    {"allgather_coalesced_(Tensor[][] output_lists, Tensor[] input_list, " OPDI_C10D_GROUP ", bool async_op=True) -> "
     OPDI_C10D_WORK, opdi_c10d_gather_lists, OPD_COLLECTIVE_ALL_GATHER},
    {"allgather_into_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, " OPDI_C10D_GROUP ", bool async_op=True) -> "
     OPDI_C10D_WORK, opdi_c10d_whole, OPD_COLLECTIVE_ALL_GATHER},
    {"reduce_scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, " OPDI_C10D_REDUCE OPDI_C10D_TIMED
     "(Tensor[], " OPDI_C10D_WORK ")", opdi_c10d_scatter, OPD_COLLECTIVE_REDUCE_SCATTER},
    {"_reduce_scatter_base_(Tensor output_tensor, Tensor input_tensor, " OPDI_C10D_REDUCE OPDI_C10D_TIMED "(Tensor, "
     OPDI_C10D_WORK ")", opdi_c10d_whole, OPD_COLLECTIVE_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced_(Tensor[] outputs, Tensor[] inputs, " OPDI_C10D_REDUCE OPDI_C10D_TIMED
     OPDI_C10D_WORK, opdi_c10d_whole, OPD_COLLECTIVE_REDUCE_SCATTER},
    {"gather_(Tensor[][] output_tensors, Tensor[] input_tensors, " OPDI_C10D_GROUP ", int root_rank" OPDI_C10D_TIMED
     OPDI_C10D_WORK, opdi_c10d_gather, OPD_COLLECTIVE_GATHER},
    {"gather_into_tensor_(Tensor output_tensor, Tensor input_tensor, " OPDI_C10D_GROUP ", int root_rank"
     OPDI_C10D_TIMED "(Tensor, " OPDI_C10D_WORK ")", opdi_c10d_whole, OPD_COLLECTIVE_GATHER},
    {"scatter_(Tensor[] output_tensors, Tensor[][] input_tensors, " OPDI_C10D_GROUP ", int root_rank" OPDI_C10D_TIMED
     "(Tensor[], " OPDI_C10D_WORK ")", opdi_c10d_scatter, OPD_COLLECTIVE_SCATTER},
    {"alltoall_(Tensor[] output_tensors, Tensor[] input_tensors, " OPDI_C10D_GROUP OPDI_C10D_TIMED "(Tensor[], "
     OPDI_C10D_WORK ")", opdi_c10d_all_to_all, OPD_COLLECTIVE_ALL_TO_ALL},
    {"alltoall_base_(Tensor output, Tensor input, " OPDI_C10D_GROUP ", int[] output_split_sizes, int[] "
     "input_split_sizes" OPDI_C10D_TIMED OPDI_C10D_WORK, opdi_c10d_all_to_all_base, OPD_COLLECTIVE_ALL_TO_ALL},
    {"send(Tensor[] tensors, " OPDI_C10D_GROUP ", int dst, int tag) -> " OPDI_C10D_WORK, opdi_c10d_pair,
     OPD_COLLECTIVE_SEND},
    {"recv_(Tensor[] tensors, " OPDI_C10D_GROUP ", int src, int tag) -> " OPDI_C10D_WORK, opdi_c10d_pair,
     OPD_COLLECTIVE_RECV},
    {"recv_any_source_(Tensor[] tensors, " OPDI_C10D_GROUP ", int tag) -> " OPDI_C10D_WORK, opdi_c10d_any_source,
     OPD_COLLECTIVE_RECV},
    {"barrier(Tensor tensor, " OPDI_C10D_GROUP ", int[] device_ids" OPDI_C10D_TIMED OPDI_C10D_WORK, opdi_c10d_barrier,
     OPD_COLLECTIVE_BARRIER},
    {"monitored_barrier_(Tensor tensor, " OPDI_C10D_GROUP ", int[] device_ids, int timeout, bool wait_all_ranks) -> ()",
     opdi_c10d_barrier, OPD_COLLECTIVE_BARRIER},
    {"check_for_nan(Tensor tensor) -> ()", opdi_c10d_nan, OPD_COLLECTIVE_BARRIER}};
OPDI_HAS_COUNT(opdi_c10d_ops, OPDI_C10D_OPS);
OPDI_INTERNAL void opdi_c10d_card(opd_op_desc *op, int i) {
    op->schema = opdi_c10d_ops[i].schema;
    op->composite = opdi_c10d_ops[i].kernel; op->user = (void *)(intptr_t)opdi_c10d_ops[i].kind;
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_KEEP; op->flops = opdi_flops_none;
}
