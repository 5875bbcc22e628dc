#include "collective.h"

//== subgroups =========================================================================================================

opd_group *opd_group_split(opd_group *group, const char *name, const int32_t *ranks, int32_t count) {
    opd_group_desc desc;
    int32_t mine = -1;
    if (!opd_ok() || opdi_group_none(group, "opd_group_split")) { return NULL; }
    for (int32_t i = 0; ranks && i < count; i++) {
        bool twice = false;
        for (int32_t k = 0; k < i; k++) { twice = twice || ranks[k] == ranks[i]; }
        if (ranks[i] < 0 || ranks[i] >= group->desc.size || twice) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_split: rank %d is not in process group '%s', which has %d "
                           "rank(s), or is given twice", (int)ranks[i], group->name, (int)group->desc.size);
            return NULL;
        }
        if (ranks[i] == group->desc.rank) { mine = i; }
    }
    if (!ranks || count < 1) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_split: the new group has no ranks");
        return NULL;
    }
    if (mine < 0) { return NULL; }
    memset(&desc, 0, sizeof desc);
    if (count > 1 && !group->desc.split) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_split: process group '%s' does not support subgroups",
                       group->name);
        return NULL;
    }
    if (count > 1) {
        opdi_lock(&group->lock);
        const int rc = group->desc.split(group->desc.user, ranks, count, &desc);
        opdi_unlock(&group->lock);
        if (rc) {
            if (opd_ok()) {
                (void)opd_fail(OPD_ERROR_KERNEL, "opd_group_split: the group's function `split` failed without setting "
                               "an error (opd_fail)");
            }
            return NULL;
        }
    }
    desc.name = name;
    desc.rank = mine;
    desc.size = count;
    desc.timeout_ms = group->desc.timeout_ms;
    desc.checked = group->desc.checked;
    opd_group *const part = opd_group_register(&desc);
    if (!part && desc.destroy) { desc.destroy(desc.user); }
    if (!part || !group->moves || opd_group_device_add(part, group->device) == 0) { return part; }
    (void)opd_group_unregister(part);
    return NULL;
}

//== memory of devices =================================================================================================

/* Tells all ranks the error of this rank, if it has one.  Returns 0 if no rank has an error.  Otherwise returns -1
   on all ranks, with the error of the first rank that has one. */
static int opdi_group_agree(opd_group *group, const char *who) {
    enum { LENGTH = 400 };
    char mine[LENGTH] = "";
    const size_t bytes = (size_t)group->desc.size * LENGTH;
    opd_transfer transfer;
    if (!opd_ok()) {
        (void)snprintf(mine, sizeof mine, "%s", opd_error_message());
        opd_error_clear();
    }
    char *const all = (char *)opdi_alloc(bytes);
    if (!all) {
        (void)opdi_group_lost(group);
        return -1;
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_GATHER;
    transfer.dtype = OPD_UINT8;
    transfer.send = mine;
    transfer.recv = all;
    transfer.count = LENGTH;
    int rc = opd_work_wait(opd_group_start(group, &transfer));
    for (int rank = 0; rank < group->desc.size && rc == 0; rank++) {
        const char *const said = all + (size_t)rank * LENGTH;
        if (*said) {
            rc = opd_fail(OPD_ERROR_KERNEL, "%s: rank %d of process group '%s': %s", who, rank, group->name, said);
        }
    }
    opdi_free(all, bytes);
    return rc ? -1 : 0;
}
/* Returns the backend of *device, on which groups can move memory, or NULL and sets an error. */
static opdi_backend *opdi_group_backend(opd_device *device) {
    if (device->type == OPD_CPU || device->type == OPD_META) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_device_add: %s is not an accelerator",
                       opdi_device_name(device->type));
        return NULL;
    }
    return OPDI_DEVICE_WITH(device, group_new, "process groups");
}
int opd_group_device_add(opd_group *group, opd_device device) {
    static const char who[] = "opd_group_device_add";
    unsigned char id[OPD_GROUP_ID];
    opd_group_mover mover;
    opd_transfer transfer;
    if (opdi_group_lost(group) || opdi_group_none(group, who)) { return -1; }
    memset(id, 0, sizeof id);
    memset(&mover, 0, sizeof mover);
    memset(&transfer, 0, sizeof transfer);
    const opdi_backend *const backend = opdi_group_backend(&device);
    if (group->desc.size == 1) { return backend ? 0 : -1; }
    if (group->moves) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_device_add: the group already has a device"); }
    else if (backend) {
        (void)opdi_backend_rc(backend->desc.group_id(backend->desc.user, device.index, NULL), device.type, "group_id");
    }
    if (opdi_group_agree(group, who)) { return -1; }
    if (group->desc.rank == 0) {
        (void)opdi_backend_rc(backend->desc.group_id(backend->desc.user, device.index, id), device.type, "group_id");
    }
    transfer.kind = OPD_COLLECTIVE_BROADCAST;
    transfer.dtype = OPD_UINT8;
    transfer.count = OPD_GROUP_ID;
    transfer.send = transfer.recv = id;
    if (opdi_group_agree(group, who) || opd_work_wait(opd_group_start(group, &transfer))) { return -1; }
    const bool made = opdi_backend_rc(backend->desc.group_new(backend->desc.user, device.index, &group->desc, id,
                                                              &mover), device.type, "group_new") == 0;
    int rc = opdi_group_agree(group, who);
    if (rc == 0) {
        (void)opdi_backend_rc(mover.ready(mover.user), device.type, "ready");
        rc = opdi_group_agree(group, who);
    }
    if (rc) {
        if (made) {
            (void)mover.abandon(mover.user, "another rank has no group");
            (void)mover.destroy(mover.user);
        }
        return -1;
    }
    group->mover = mover;
    group->device = device;
    group->moves = true;
    return 0;
}

//== functions for collectives, without operators ======================================================================

/* Checks that a tensor's memory can be moved without a copy, and waits until it may be read or, if `writes` is true,
   written.  Returns 0, or -1 and sets an error. */
static int opdi_move_check(const opd_group *group, opd_tensor *tensor, const char *who, bool writes) {
    if (opdi_null_tensor(tensor, who)) { return -1; }
    const bool moves = opdi_group_moves(group, tensor);
    if (!moves || (tensor->flags & (OPDI_BATCHED | OPDI_TRACED | OPDI_LAZY)) || !tensor->data) {
        if (tensor->numel == 0 && moves) { return 0; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensor is neither on the CPU nor on a device of the group: "
                        "add its device with opd_group_device_add", who);
    }
    if (!(tensor->flags & OPDI_CONTIGUOUS)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensor must be contiguous (opd_contiguous copies one that is not)",
                        who);
    }
    if (writes && opd_tensor_requires_grad(tensor) && opd_grad_mode_enabled()) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s: the tensor that it writes into requires grad (call it under "
                        "OPD_NO_GRAD)", who);
    }
    return writes ? opdi_wait_for(tensor) : opdi_wait_to_send(tensor);
}
OPDI_INTERNAL void opdi_move_writes(const opd_tensor *tensor) { (void)OPDI_ADD(&tensor->storage->version, 1); }
static opd_work *opdi_group_pair(opd_group *group, opd_collective kind, opd_tensor *tensor, int peer, int tag,
                                 const char *who) {
    opd_transfer transfer;
    const bool recv = kind == OPD_COLLECTIVE_RECV;
    if (opdi_group_lost(group) || opdi_group_none(group, who) || opdi_move_check(group, tensor, who, recv)) {
        return NULL;
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = kind;
    transfer.dtype = (opd_scalar_type)tensor->dtype;
    transfer.count = tensor->numel;
    transfer.peer = peer;
    transfer.tag = tag;
    if (recv) { transfer.recv = tensor->data; } else { transfer.send = tensor->data; }
    opd_work *const work = opdi_group_move(group, &transfer, recv ? NULL : tensor, recv ? tensor : NULL);
    if (work && recv) { opdi_move_writes(tensor); }
    return work;
}
opd_work *opd_group_send(opd_group *group, opd_tensor *tensor, int to, int tag) {
    return opdi_group_pair(group, OPD_COLLECTIVE_SEND, tensor, to, tag, "opd_group_send");
}
opd_work *opd_group_recv(opd_group *group, opd_tensor *tensor, int from, int tag) {
    return opdi_group_pair(group, OPD_COLLECTIVE_RECV, tensor, from, tag, "opd_group_recv");
}
opd_work *opd_group_reduce(opd_group *group, opd_tensor *tensor, const char *reduce_op, int root) {
    opd_transfer transfer;
    if (opdi_group_lost(group) || opdi_group_none(group, "opd_group_reduce") ||
        opdi_move_check(group, tensor, "opd_group_reduce", true)) {
        return NULL;
    }
    const int reduction = opdi_reduction_of(reduce_op);
    if (reduction < 0) { return NULL; }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_REDUCE;
    transfer.reduction = (opd_reduction)reduction;
    transfer.dtype = (opd_scalar_type)tensor->dtype;
    transfer.count = tensor->numel;
    transfer.peer = root;
    transfer.send = transfer.recv = tensor->data;
    opd_work *const work = opdi_group_move(group, &transfer, NULL, tensor);
    if (work && root == group->desc.rank) { opdi_move_writes(tensor); }
    return work;
}
/* Begins a gather or scatter between `tensor` and `list`, which contains one such tensor for each rank.  Returns the
   work, or NULL and sets an error. */
static opd_work *opdi_group_listed(opd_group *group, opd_collective kind, opd_tensor *tensor, opd_tensor *list,
                                   int root, const char *who) {
    opd_transfer transfer;
    const bool scatter = kind == OPD_COLLECTIVE_SCATTER;
    if (opdi_group_lost(group) || opdi_group_none(group, who) || opdi_move_check(group, tensor, who, scatter)) {
        return NULL;
    }
    const bool here = root == group->desc.rank;
    if (here && opdi_move_check(group, list, who, !scatter)) { return NULL; }
    if (here && (list->dtype != tensor->dtype || list->backend != tensor->backend ||
                 list->ndim != tensor->ndim + 1 || list->dims[0] != group->desc.size ||
                 memcmp(list->dims + 1, tensor->dims, (size_t)tensor->ndim * sizeof *list->dims) != 0)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: the list must have the device, dtype and sizes of the tensor, and one "
                       "more dim in front, of size %d", who, (int)group->desc.size);
        return NULL;
    }
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = kind;
    transfer.dtype = (opd_scalar_type)tensor->dtype;
    transfer.count = tensor->numel;
    transfer.peer = root;
    opd_tensor *const all = here ? list : NULL;   /* only the root uses its list */
    opd_tensor *const read = scatter ? all : tensor, *const written = scatter ? tensor : all;
    transfer.send = read ? read->data : NULL;
    transfer.recv = written ? written->data : NULL;
    opd_work *const work = opdi_group_move(group, &transfer, read, written);
    if (work && written) { opdi_move_writes(written); }
    return work;
}
opd_work *opd_group_gather(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root) {
    return opdi_group_listed(group, OPD_COLLECTIVE_GATHER, tensor, list, root, "opd_group_gather");
}
opd_work *opd_group_scatter(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root) {
    return opdi_group_listed(group, OPD_COLLECTIVE_SCATTER, tensor, list, root, "opd_group_scatter");
}
opd_work *opd_group_barrier(opd_group *group) {
    opd_transfer transfer;
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_BARRIER;
    transfer.dtype = OPD_UINT8;
    return opd_group_start(group, &transfer);
}

//== functions that call the operators =================================================================================

static opd_tensor *opdi_collective_call(opd_op **op, const char *name, opd_tensor *input, const opd_value *rest,
                                        int count) {
    opd_value args[4];
    if (!opd_ok()) {                              /* the last argument names the group */
        opdi_lock(&opdi_groups.lock);
        opd_group *const group = rest[count - 1].u.s ? opdi_group_named(rest[count - 1].u.s) : NULL;
        opdi_unlock(&opdi_groups.lock);
        (void)opdi_group_lost(group);
        return NULL;
    }
    args[0] = opd_value_tensor(input);
    for (int i = 0; i < count; i++) { args[i + 1] = rest[i]; }
    return opd_call_op(opd_op_cached(op, name), args, count + 1);
}
opd_tensor *opd_all_reduce(opd_tensor *input, const char *reduce_op, const char *group_name) {
    static opd_op *op;
    const opd_value rest[2] = {opd_value_str(reduce_op), opd_value_str(group_name)};
    return opdi_collective_call(&op, OPDI_NAME(collectives, "_c10d_functional::all_reduce"), input, rest, 2);
}
opd_tensor *opd_all_reduce_(opd_tensor *input, const char *reduce_op, const char *group_name) {
    static opd_op *op;
    const opd_value rest[2] = {opd_value_str(reduce_op), opd_value_str(group_name)};
    return opdi_collective_call(&op, OPDI_NAME(collectives, "_c10d_functional::all_reduce_"), input, rest, 2);
}
opd_tensor *opd_all_gather(opd_tensor *input, const char *group_name) {
    static opd_op *op;
    const opd_group *const group = opd_group_find(group_name);
    const opd_value rest[2] = {opd_value_int(group ? group->desc.size : 1), opd_value_str(group_name)};
    return opdi_collective_call(
        &op, OPDI_NAME(collectives, "_c10d_functional::all_gather_into_tensor"), input, rest, 2);
}
opd_tensor *opd_reduce_scatter(opd_tensor *input, const char *reduce_op, const char *group_name) {
    static opd_op *op;
    const opd_group *const group = opd_group_find(group_name);
    const opd_value rest[3] = {opd_value_str(reduce_op), opd_value_int(group ? group->desc.size : 1),
                               opd_value_str(group_name)};
    return opdi_collective_call(&op, OPDI_NAME(collectives, "_c10d_functional::reduce_scatter_tensor"), input, rest, 3);
}
opd_tensor *opd_broadcast(opd_tensor *input, int src, const char *group_name) {
    static opd_op *op;
    const opd_value rest[2] = {opd_value_int(src), opd_value_str(group_name)};
    return opdi_collective_call(&op, OPDI_NAME(collectives, "_c10d_functional::broadcast"), input, rest, 2);
}
opd_tensor *opd_broadcast_(opd_tensor *input, int src, const char *group_name) {
    static opd_op *op;
    const opd_value rest[2] = {opd_value_int(src), opd_value_str(group_name)};
    return opdi_collective_call(&op, OPDI_NAME(collectives, "_c10d_functional::broadcast_"), input, rest, 2);
}
