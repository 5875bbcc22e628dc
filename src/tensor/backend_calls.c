#include "tensor.h"

//== around a device's kernel ==========================================================================================

/* Compares the opdi_place of one tensor of a call with *place.  If *place is -1, sets it to the tensor's place.
   Returns 0, or -1 and sets an error if the places differ.  `mixes` and `backend` are as for opdi_call_place. */
static int opdi_place_check(const opd_call *call, const opd_tensor *tensor, bool mixes, int backend, int *place) {
    const int here = opdi_place_of(tensor);
    if (tensor->backend == OPD_CPU && (mixes || tensor->ndim == 0)) { return 0; }
    if (mixes) {
        if (tensor->backend == backend && *place < 0) { *place = here; }
        return 0;
    }
    if (*place < 0) { *place = here; }
    return *place == here ? 0 : opdi_device_differs(call, opdi_place_device(*place), tensor);
}
/* Returns the opdi_place of a call's tensors.  If there are none, returns the place of its Device argument, if that is
   a device of `backend`, else 0.  If `mixes` is true, only tensors of `backend` count, and all other tensors may be
   anywhere.  Returns -1 and sets an error if places differ. */
static int opdi_call_place(const opd_call *call, bool mixes, int backend) {
    int place = -1;
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (value->tag == OPD_TAG_TENSOR && opdi_place_check(call, value->u.t, mixes, backend, &place)) { return -1; }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] && opdi_place_check(call, value->u.tensors[k], mixes, backend, &place)) {
                return -1;
            }
        }
    }
    for (int i = 0; place < 0 && i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (value->tag == OPD_TAG_DEVICE && value->u.device.type == backend) { place = opdi_place(value->u.device); }
    }
    return OPDI_MAX(place, 0);
}
/* Returns the kernel that a guarding kernel replaced in the table's slot (behind[i], see opdi_guard_slot), and sets the
   call's user pointer to that of the slot.  Returns NULL and sets an error if the table cannot be made. */
static opd_kernel opdi_guarded_kernel(opd_call *call, int i) {
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    if (!table && !(table = opdi_table_make(call->op))) { return NULL; }
    call->user = table->slots[call->slot].user;
    return table->behind[i] ? table->behind[i] : table->slots[call->slot].fn;
}
/* The compiler's function that runs a kernel of the lazy device, or NULL.  If the kernel fails, the function removes
   the operators that the kernel has recorded, and records a call of the kernel's operator instead. */
static int (*opdi_lazy_round)(opd_call *call, opd_kernel kernel);
OPDI_INTERNAL void opdi_lazy_round_set(int (*round)(opd_call *call, opd_kernel kernel)) { opdi_lazy_round = round; }
/* Makes the device of a call the current device, runs the kernel `fn`, and then restores the previous device.  If
   `mixes` is true, the tensors may be on several devices.  If fn is NULL, an error is set. */
static int opdi_device_round(opd_call *call, bool mixes, opd_kernel fn) {
    const int type = (int)(call->slot - OPD_KEY_CPU), place = opdi_call_place(call, mixes, type);
    opdi_backend *backend = opdi_backend_of(type);
    opd_device device = opdi_place_device(place);
    if (!backend || !fn || place < 0) { return !backend ? opdi_backend_missing(type) : -1; }
    if (type == OPD_LAZY && opdi_lazy_round) { return opdi_lazy_round(call, fn); }
    if (!backend->desc.device_get) { return fn(call); }
    int was = backend->desc.device_get(backend->desc.user);
    if (place && device.index >= 0 && device.index != was) {
        if (!opdi_device_find(device, &device.index) ||
            opdi_backend_rc(backend->desc.device_set(backend->desc.user, device.index), type, "device_set")) {
            return -1;
        }
    }
    int rc = fn(call);
    if (backend->desc.device_get(backend->desc.user) != was && backend->desc.device_set(backend->desc.user, was)) {
        rc = opdi_backend_rc(-1, type, "device_set");
    }
    return rc;
}
static int opdi_device_kernel(opd_call *call) {
    return opdi_device_round(call, false, opdi_guarded_kernel(call, (int)(call->slot - OPD_KEY_CPU)));
}
static int opdi_device_mixed_kernel(opd_call *call) {
    return opdi_device_round(call, true, opdi_guarded_kernel(call, (int)(call->slot - OPD_KEY_CPU)));
}
/* Runs a composite kernel with tensors of the lazy device.  In the mode of same bits, a composite of several operators
   is called as a whole, because it may have a way of its own on the CPU. */
static int opdi_lazy_composite_kernel(opd_call *call) {
    const opd_kernel fn = opdi_guarded_kernel(call, OPD_LAZY);
    return !fn ? -1 : opdi_lazy_round && opd_same_bits() ? opdi_lazy_round(call, fn) : fn(call);
}
/* Runs the kernel of a handle (call->user, see opd_kernel_get) as opdi_device_kernel runs the kernel of a slot. */
OPDI_INTERNAL int opdi_device_handle_kernel(opd_call *call) {
    const opd_kernel_handle *handle = (const opd_kernel_handle *)call->user;
    call->user = handle->slot.user;
    return opdi_backend_of((int)(call->slot - OPD_KEY_CPU))
        ? opdi_device_round(call, opdi_mixes_devices(call->op), handle->slot.fn) : handle->slot.fn(call);
}

/* Returns the index of the argument that is a device, or -1. */
OPDI_INTERNAL int opdi_device_arg(const opd_op *op, const opd_value *args) {
    int i = op->nargs - 1;
    while (i >= 0 && args[i].tag != OPD_TAG_DEVICE) { i--; }
    return i;
}
/* Returns the backend whose kernel serves a call without tensors: the backend of its device argument, or the CPU.
   Returns -1 if the device is not registered and has no separate kernel: then the kernel for all backends serves the
   call. */
OPDI_INTERNAL int opdi_by_device(const opd_op *op, const opdi_table *table, const opd_value *args) {
    const int i = opdi_device_arg(op, args);
    const int type = i < 0 || (unsigned)args[i].u.device.type >= OPD_BACKEND_COUNT ? OPD_CPU : args[i].u.device.type;
    const opd_kernel any = table->behind[15], own = table->slots[OPD_KEY_CPU + type].fn;
    return any == opdi_missing_kernel || opdi_backend_of(type) || (own != any && own != opdi_missing_kernel)
        ? type : -1;
}
/* The kernel of operators that are called without tensors but with a device: continues as if a tensor of that device
   were among the arguments (PyTorch's BackendSelect). */
OPDI_INTERNAL int opdi_by_device_kernel(opd_call *call) {
    const opd_kernel fn = opdi_guarded_kernel(call, 15);
    const opdi_table *table = fn ? OPDI_ACQUIRE(&call->op->table) : NULL;
    const int type = table ? opdi_by_device(call->op, table, call->args) : -1;
    if (type < 0) { return fn ? fn(call) : -1; }
    return opd_redispatch(call, opd_keyset_make(OPD_BIT_OF(OPD_F_DENSE), (uint64_t)1 << type));
}
/* Returns true if an operator has a kernel registered for one device. */
static bool opdi_has_device_kernel(const opd_op *op) {
    for (const opdi_kernel *kernel = op->kernels; kernel; kernel = kernel->next) {
        if (kernel->key >= OPD_KEY_CPU && kernel->key < OPD_KEY_CPU + 16) { return true; }
    }
    return false;
}

/* If a backend is registered for a slot of the table, replaces the slot's kernel by a guarding kernel
   (opdi_device_kernel or opdi_device_mixed_kernel), which calls the replaced kernel, table->behind.  At the slots of
   the lazy device, the guarding kernel of a composite is opdi_lazy_composite_kernel.  At the slot of calls without
   tensors, the guarding kernel is opdi_by_device_kernel.  `how` tells where the slot's kernel comes
   from. */
OPDI_INTERNAL void opdi_guard_slot(const opd_op *op, opdi_table *table, int slot, opdi_chosen how) {
    opdi_slot *to = &table->slots[slot];
    const int device = slot - OPD_KEY_CPU;
    int i;
    if (slot == OPD_KEY_UNDEFINED && !op->tensor_args && !op->list_args) {
        for (i = 0; i < OPD_BACKEND_COUNT && !opdi_backend_of(i); i++) { }
        if (i == OPD_BACKEND_COUNT && !opdi_has_device_kernel(op)) { return; }
        for (i = 0; i < op->nargs; i++) {
            if (opdi_strip_optional(op->schema->args[i].type)->kind != OPDI_TYPE_DEVICE) { continue; }
            table->behind[15] = to->fn;
            to->fn = opdi_by_device_kernel;
            return;
        }
    }
    const bool lazy = device == OPD_LAZY || slot == OPD_KEY_PER_BACKEND(5, OPD_LAZY);      /* 5: autograd keys */
    if (lazy && how == OPDI_CHOSEN_MATH && opdi_backend_of(OPD_LAZY)) {
        table->behind[OPD_LAZY] = to->fn;
        to->fn = opdi_lazy_composite_kernel;
        return;
    }
    if (!opdi_backend_of(device) || how == OPDI_CHOSEN_MATH || how == OPDI_CHOSEN_AMBIGUOUS ||
        how == OPDI_CHOSEN_MISSING || to->fn == opd_fallthrough) { return; }
    table->behind[device] = to->fn;
    to->fn = opdi_mixes_devices(op) ? opdi_device_mixed_kernel : opdi_device_kernel;
}

//== results like those of the Meta kernel =============================================================================

#define OPDI_STAND_INS 8
/* A stand-in: a tensor without memory that replaces a tensor of a call.  A stand-in lives as long as the opdi_stand_ins
   that contains it, so no code may keep the tensor. */
typedef struct opdi_stand_in_tensor {
    opd_tensor tensor;
    opdi_view_record record;                      /* all zero, for code that looks for a view's base */
} opdi_stand_in_tensor;
typedef struct opdi_stand_ins {
    opdi_stand_in_tensor *fakes, few[OPDI_STAND_INS];
    opd_tensor **real, *few_real[OPDI_STAND_INS];
    int count;
} opdi_stand_ins;
/* Returns the tensor that the stand-in `factor` replaces, or NULL if `factor` is not a stand-in. */
static opd_tensor *opdi_stands_for(const opdi_stand_ins *stand_ins, const opd_tensor *factor) {
    for (int i = 0; i < stand_ins->count; i++) {
        if (factor == &stand_ins->fakes[i].tensor) { return stand_ins->real[i]; }
    }
    return NULL;
}

static opd_tensor *opdi_stand_in(opdi_stand_ins *stand_ins, opd_tensor *tensor) {
    opdi_stand_in_tensor *const fake = &stand_ins->fakes[stand_ins->count];
    opd_tensor *const factor = &fake->tensor;
    if (!tensor || tensor->backend == OPD_META || (tensor->flags & (OPDI_WRAPPED | OPDI_BATCHED))) { return tensor; }
    stand_ins->real[stand_ins->count++] = tensor;
    memset(&fake->record, 0, sizeof fake->record);
    *factor = *tensor;
    factor->refs = 1;
    factor->capacity = 0;
    factor->functionality |= OPDI_TENSOR_KEYS;
    factor->data = NULL;
    factor->grad_fn = NULL;
    factor->meta = NULL;
    factor->flags &= (uint8_t)~(OPDI_REQUIRES_GRAD | OPDI_IS_VIEW);
    factor->backend = OPD_META;
    factor->backend_bit = (uint16_t)(1u << OPD_META);
    return factor;
}
/* Copies the arguments of a call to args, with stand-ins instead of tensors and the meta device instead of devices.
   Returns 0, or -1 if memory runs out. */
static int opdi_stand_ins_for(const opd_call *call, opdi_stand_ins *stand_ins, opd_value *args) {
    int64_t count = 0;
    for (int i = 0; i < call->op->nargs; i++) {
        count += call->args[i].tag == OPD_TAG_TENSOR ? 1 : call->args[i].tag == OPD_TAG_TENSORS ? call->args[i].n : 0;
    }
    stand_ins->count = 0;
    stand_ins->fakes = count <= OPDI_STAND_INS ? stand_ins->few
        : (opdi_stand_in_tensor *)opdi_scope_alloc((size_t)count * sizeof *stand_ins->fakes);
    stand_ins->real = count <= OPDI_STAND_INS ? stand_ins->few_real
        : (opd_tensor **)opdi_scope_alloc((size_t)count * sizeof *stand_ins->real);
    if (!stand_ins->fakes || !stand_ins->real) { return -1; }
    for (int i = 0; i < call->op->nargs; i++) {
        opd_value *value = &args[i];
        *value = call->args[i];
        if (value->tag == OPD_TAG_DEVICE) { *value = opd_value_device(opd_device_make(OPD_META, -1)); }
        if (value->tag == OPD_TAG_TENSOR) { value->u.t = opdi_stand_in(stand_ins, value->u.t); }
        if (value->tag == OPD_TAG_TENSORS && value->n) {
            opd_tensor **list = (opd_tensor **)opdi_scope_alloc((size_t)value->n * sizeof *list);
            for (int k = 0; list && k < value->n; k++) { list[k] = opdi_stand_in(stand_ins, value->u.tensors[k]); }
            if (!list) { return -1; }
            value->u.tensors = list;
        }
    }
    return 0;
}
/* Returns the tensor that the stand-in `factor` replaces.  If `factor` is not a stand-in, makes a tensor with its
   sizes, strides and dtype at `place`.  Returns a reference, or NULL and sets an error. */
static opd_tensor *opdi_stood_for(const opdi_stand_ins *stand_ins, const opd_tensor *factor, int place) {
    opd_tensor *const tensor = opdi_stands_for(stand_ins, factor);
    if (tensor) {
        opdi_retain(tensor);
        return tensor;
    }
    return opdi_tensor_make(factor->dims, factor->flags & OPDI_CONTIGUOUS ? NULL : factor->dims + factor->ndim,
                            factor->ndim, (opd_scalar_type)factor->dtype, place);
}
/* Makes result `i` of the call, with the sizes, strides and dtype of `value`, a result of the Meta kernel.  If `update`
   is true, argument 0 may itself become result 0.  Returns 0, or -1 and sets an error. */
static int opdi_result_like_fake(opd_call *call, const opdi_stand_ins *stand_ins, int i, opd_value value, bool update) {
    const int place = opdi_place(opdi_call_device(call));
    const opd_tensor *factor = value.tag == OPD_TAG_TENSOR ? value.u.t : NULL;
    if (update && factor && opdi_has_sizes(call->args[0].u.t, factor->dims, factor->ndim) && opdi_updates_self(call)) {
        return 0;
    }
    opd_tensor *const tensor = factor ? opdi_stands_for(stand_ins, factor) : NULL;
    if (factor && !tensor) {
        return opd_result_strided(call, i, factor->dims, factor->dims + factor->ndim, factor->ndim,
                                  (opd_scalar_type)factor->dtype, opdi_call_device(call)) ? 0 : -1;
    }
    call->filled |= 1u << i;
    call->rets[i] = value;
    if (factor) {
        const int alias = call->op->ret_alias[i];
        call->rets[i].u.t = tensor;
        if (alias < 0 || call->args[alias].u.t != tensor) {
            opdi_retain(tensor);
            call->owned |= 1u << i;
        }
    } else if (value.tag == OPD_TAG_TENSORS) {
        opd_tensor **list = (opd_tensor **)opdi_ret_block((size_t)value.n * sizeof *list);
        call->rets[i] = opd_value_none();
        if (!list) { return -1; }
        memset(list, 0, (size_t)value.n * sizeof *list);
        call->rets[i] = opd_value_tensors(list, value.n);
        call->owned |= 1u << i;
        for (int32_t k = 0; k < value.n; k++) {
            if (value.u.tensors[k] && !(list[k] = opdi_stood_for(stand_ins, value.u.tensors[k], place))) { return -1; }
        }
    }
    return 0;
}

/* Runs the operator's Meta kernel with stand-ins for the call's tensors, and makes results with the same sizes, strides
   and dtypes.  If `update` is true, argument 0 may itself become result 0.  Returns 0, or -1 and sets an error. */
static int opdi_results_from_fake(opd_call *call, bool update) {
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    const opd_call was = *call;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opdi_stand_ins stand_ins;
    if (!table && !(table = opdi_table_make(call->op))) { return -1; }
    if (opdi_stand_ins_for(call, &stand_ins, args)) { return -1; }
    call->keys = opd_keyset_make(OPD_BIT_OF(OPD_F_DENSE), (uint64_t)1 << OPD_META);
    call->slot = OPD_KEY_META;
    call->user = table->slots[OPD_KEY_META].user;
    call->args = args;
    call->rets = rets;
    call->stands_in = true;                       /* the kernel may read targets, as some operators check dtypes */
    call->filled = call->owned = 0;
    call->cursor = 0;
    int64_t mark = call->th->top;
    int rc = (call->flags & OPDI_STORED ? opdi_stored_slot(call, &table->slots[OPD_KEY_META])
              : &table->slots[OPD_KEY_META])->fn(call);
    opdi_scope_unwind(call->th, mark);            /* views of the stand-ins must not outlive the stand-ins */
    opd_call fake = *call;
    *call = was;
    if (rc == 0 && call->th->error != OPD_OK) { rc = -1; }
    for (int i = 0; rc == 0 && i < call->op->nrets; i++) {
        if (!(fake.filled >> i & 1)) { continue; }
        rc = opdi_result_like_fake(call, &stand_ins, i, rets[i], update && i == 0);
        if (rets[i].tag != OPD_TAG_TENSOR && rets[i].tag != OPD_TAG_TENSORS) {     /* moves a text or list */
            call->owned |= fake.owned & 1u << i;
            fake.owned &= ~(1u << i);
        }
    }
    for (int i = 0; i < call->op->nrets; i++) { if (!(fake.filled >> i & 1)) { rets[i] = opd_value_none(); } }
    fake.rets = rets;
    opdi_rets_drop(&fake);
    return rc;
}
int opd_results_from_fake(opd_call *call) { return opdi_results_from_fake(call, false); }
opd_tensor *opd_result_update(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opdi_results_from_fake(call, true)) { return NULL; }
    opd_tensor *out = call->rets[0].tag == OPD_TAG_TENSOR ? call->rets[0].u.t : NULL;
    return out == self || (out && opdi_copy(out, self) == 0) ? out : NULL;
}

//== running an operator on the CPU instead ============================================================================

/* Returns tensor if it is on the host, or else its copy on the host, which belongs to the scope.  Returns NULL and sets
   an error if that fails. */
OPDI_INTERNAL opd_tensor *opdi_on_host(opd_tensor *tensor) {
    return tensor && opdi_on_device(tensor) ? opdi_own(opdi_host_copy(tensor)) : tensor;
}

/* Writes a copy of an argument for the CPU to *out: tensors of a device are copied to the host, and a device becomes
   the CPU.  Returns 0, or -1 and sets an error. */
static int opdi_value_on_host(const opd_value *value, opd_value *out) {
    *out = *value;
    if (value->tag == OPD_TAG_DEVICE) { *out = opd_value_device(opd_device_make(OPD_CPU, -1)); }
    if (value->tag == OPD_TAG_TENSOR) {
        out->u.t = opdi_on_host(value->u.t);
        return out->u.t ? 0 : -1;
    }
    if (value->tag != OPD_TAG_TENSORS || value->n == 0) { return 0; }
    opd_tensor **list = (opd_tensor **)opdi_scope_alloc((size_t)value->n * sizeof *list);
    for (int k = 0; list && k < value->n; k++) {
        list[k] = opdi_on_host(value->u.tensors[k]);
        if (!list[k] && value->u.tensors[k]) { return -1; }
    }
    out->u.tensors = list;
    return list ? 0 : -1;
}
/* Returns how many writes the storage of an argument has counted, or 0 for a list. */
static uint32_t opdi_writes_of(const opd_value *value) {
    return value->tag == OPD_TAG_TENSOR ? OPDI_LOAD(&value->u.t->storage->version) : 0;
}
/* Copies values that an operator has written to `host`, the copy of `tensor` on the host, back to `tensor`.  Returns 0,
   or -1 and sets an error. */
static int opdi_written_back(opd_tensor *tensor, const opd_tensor *host) {
    if (tensor == host || !tensor) { return 0; }
    if (!opdi_has_sizes(tensor, host->dims, host->ndim) && opdi_resize(tensor, host->dims, host->ndim)) { return -1; }
    return opdi_copy(tensor, host);
}
/* Returns a copy of a tensor of the host at `place` (an opdi_place), or `tensor` itself if the place is the host.
   Returns NULL and sets an error if that fails. */
static opd_tensor *opdi_on_place(opd_tensor *tensor, int place) {
    if (!tensor || place == OPD_CPU) { return tensor; }
    opd_tensor *delta = opdi_own(opdi_tensor_make(tensor->dims,
                                                  opdi_overlaps_itself(tensor) ? NULL : tensor->dims + tensor->ndim,
                                                  tensor->ndim, (opd_scalar_type)tensor->dtype, place));
    return delta && opdi_copy(delta, tensor) == 0 ? delta : NULL;
}
static int opdi_return_from_host(opd_call *call, int i, const opd_value *value, int place) {
    const int alias = call->op->ret_alias[i];
    if (alias >= 0 && call->args[alias].tag == OPD_TAG_TENSOR) {
        return opd_return_tensor(call, call->args[alias].u.t);
    }
    if (value->tag == OPD_TAG_TENSOR) {
        opd_tensor *tensor = opdi_on_place(value->u.t, place);
        return tensor ? opd_return_tensor(call, tensor) : -1;
    }
    if (value->tag != OPD_TAG_TENSORS || value->n == 0) { return opd_return_value(call, *value); }
    opd_tensor **list = (opd_tensor **)opdi_scope_alloc((size_t)value->n * sizeof *list);
    for (int k = 0; list && k < value->n; k++) {
        list[k] = opdi_on_place(value->u.tensors[k], place);
        if (!list[k] && value->u.tensors[k]) { return -1; }
    }
    return list ? opd_return_tensors(call, list, value->n) : -1;
}
/* Returns true if a result of op is a view of an argument: annotated as an alias that is not written. */
OPDI_INTERNAL bool opdi_returns_view(const opd_op *op) {
    for (int i = 0; i < op->nrets; i++) {
        const opdi_type *type = op->schema->returns[i].type;
        const opdi_alias *alias = type->alias ? type->alias : type->kind == OPDI_TYPE_LIST ? type->elems[0]->alias
            : NULL;
        if (alias && !alias->write) { return true; }
    }
    return false;
}

bool opd_cpu_fallback_set(opd_backend backend, bool on) {
    if (backend <= OPD_CPU || backend >= OPD_META) { return false; }
    opdi_lock(&opdi_backend_lock);
    const bool was = OPDI_LOAD(&opdi_cpu_fallback_of[backend]) != NULL;
    OPDI_STORE(&opdi_cpu_fallback_of[backend], on ? &opd_cpu_fallback : NULL);
    opdi_unlock(&opdi_backend_lock);
    return was;
}
static int64_t opdi_cpu_fallbacks;
int64_t opd_cpu_fallback_count(void) { return OPDI_LOAD(&opdi_cpu_fallbacks); }
/* Counts a call whose kernel computes a tensor of a device on the host. */
OPDI_INTERNAL void opdi_cpu_fallback_note(const opd_tensor *tensor) {
    if (opd_tensor_device(tensor).type != OPD_CPU) { (void)OPDI_ADD(&opdi_cpu_fallbacks, (int64_t)1); }
}

/* Runs the operator on the CPU, on copies of its arguments, and copies its results, and the arguments that it has
   written, back to the device.  The written arguments include arguments that the schema does not mark as written, such
   as the running statistics of native_batch_norm.  Returns 0, or -1 and sets an error. */
int opd_cpu_fallback(opd_call *call) {
    opd_op *const op = call->op;
    const int type = call->slot >= OPD_KEY_CPU && call->slot < OPD_KEY_CPU + OPD_BACKEND_COUNT
        ? (int)(call->slot - OPD_KEY_CPU) : OPD_CPU;
    const int place = opdi_call_place(call, true, type);
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    uint32_t writes[OPD_MAX_ARGS];
    if (opdi_returns_view(op)) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "%s returns a view of its argument, so it cannot be computed on the CPU "
                        "for %s: register a kernel for this device", op->name, opdi_device_name(type));
    }
    (void)OPDI_ADD(&opdi_cpu_fallbacks, (int64_t)1);
    for (int i = 0; i < op->nargs; i++) {
        if (opdi_value_on_host(&call->args[i], &args[i])) { return -1; }
        writes[i] = opdi_writes_of(&args[i]);
    }
    call->th->state.allow &= ~OPD_BIT_OF(OPD_F_AUTOCAST);          /* the device's autocast kernel has already run */
    if (opd_call_all(op, rets, args, op->nargs)) { return -1; }
    for (int i = 0; i < op->nargs; i++) {
        const opd_value *value = &call->args[i];
        if (!(op->written_args >> i & 1)) {
            if (opdi_writes_of(&args[i]) == writes[i] || value->u.t == args[i].u.t) { continue; }
            if (!opd_copy_(value->u.t, args[i].u.t)) { return -1; }        /* opd_copy_ also counts the write */
            continue;
        }
        if (value->tag == OPD_TAG_TENSOR && opdi_written_back(value->u.t, args[i].u.t)) { return -1; }
        for (int k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (opdi_written_back(value->u.tensors[k], args[i].u.tensors[k])) { return -1; }
        }
    }
    for (int i = 0; i < op->nrets; i++) { if (opdi_return_from_host(call, i, &rets[i], place)) { return -1; } }
    return opd_ok() ? 0 : -1;
}
/* Replaces the lazy tensors (conjugated or negated when they are read) in *value, which is argument `i`, by copies with
   the computed values.  Returns 0, or -1 and sets an error. */
static int opdi_resolve_value(const opd_op *op, int i, opd_value *value) {
    opd_tensor **list = NULL;
    if (value->tag == OPD_TAG_TENSOR) {
        return value->u.t->flags & OPDI_LAZY && !(value->u.t = opdi_resolved(value->u.t)) ? -1 : 0;
    }
    for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
        const opd_tensor *tensor = value->u.tensors[k];
        if (!tensor || !(tensor->flags & OPDI_LAZY)) { continue; }
        if (op->written_args >> i & 1) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s writes tensors of the list '%s', but element %d is a lazily "
                            "conjugated or negated view: pass the result of opd_resolve_conj or opd_resolve_neg",
                            op->name, op->schema->args[i].name, (int)k);
        }
        if (!list) {
            if (!(list = (opd_tensor **)opdi_scope_alloc((size_t)value->n * sizeof *list))) { return -1; }
            memcpy(list, value->u.tensors, (size_t)value->n * sizeof *list);
        }
        if (!(list[k] = opdi_resolved(tensor))) { return -1; }
    }
    if (list) { value->u.tensors = list; }
    return 0;
}
/* Called after the operator has run with `args`, in which copies replace the call's lazy arguments.  Copies the values
   that the operator wrote to such copies to the call's arguments.  If such a copy is a result, the argument becomes the
   result instead.  Returns 0, or -1 and sets an error. */
static int opdi_resolved_back(opd_call *call, const opd_value *args) {
    const opd_op *op = call->op;
    for (uint64_t mask = op->tensor_args & op->written_args; mask; mask &= mask - 1) {
        const int i = opdi_low_bit(mask);
        if (args[i].tag == OPD_TAG_TENSOR && opdi_written_back(call->args[i].u.t, args[i].u.t)) { return -1; }
    }
    for (int i = 0; i < op->nrets; i++) {
        const int alias = op->ret_alias[i];
        if (alias < 0 || call->rets[i].tag != OPD_TAG_TENSOR || args[alias].tag != OPD_TAG_TENSOR ||
            call->rets[i].u.t != args[alias].u.t || (call->owned >> i & 1)) { continue; }
        call->rets[i].u.t = call->args[alias].u.t;
    }
    return 0;
}
/* The kernel at the keys Conjugate and Negative, for every operator: computes the values of arguments that are
   conjugated or negated when they are read.  Then it runs the operator below the key, and copies new values of written
   arguments back.  View operators, and operators that only change how self is read, get the arguments unchanged
   (aten/src/ATen/native/MathBitsFallback.h). */
OPDI_INTERNAL int opdi_lazy_fallback(opd_call *call) {
    const opd_op *const op = call->op;
    const opd_keyset below = opd_keyset_and(call->keys, opd_keyset_below(opdi_key_functionality(call->slot)));
    const bool looks = (opd_op_tags(op) & OPD_OPTAG_INPLACE_VIEW) != 0;
    opd_value args[OPD_MAX_ARGS];
    opd_call other = *call;
    if (opdi_returns_view(op)) { return opd_redispatch(call, below); }
    memcpy(args, call->args, (size_t)op->nargs * sizeof args[0]);
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        const int i = opdi_low_bit(mask);
        if (!(looks && (op->written_args >> i & 1)) && opdi_resolve_value(op, i, &args[i])) { return -1; }
    }
    other.args = args;
    if (opd_redispatch(&other, below)) { return -1; }
    call->filled = other.filled;
    call->owned = other.owned;
    call->cursor = other.cursor;
    return opdi_resolved_back(call, args);
}
