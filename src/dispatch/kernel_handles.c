#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>kernel_handles  handles of registered kernels
//
//  A handle remembers the kernel of one slot of an operator's table.  A kernel that is registered later calls the
//  kernel that it replaces by a handle.  A kernel knows its handles, so that they fail when it is not registered any
//  more.  A call by a handle takes no lock: a kernel whose library is closed is freed after the running calls.
//----------------------------------------------------------------------------------------------------------------------

/* Returns the kernel of a handle, or NULL and sets an error if it is not registered any more.  The thread is inside a
   call, so the kernel is not freed before this call ends. */
OPDI_INTERNAL const opdi_kernel *opdi_handle_kernel(const opd_kernel_handle *handle) {
    const opdi_kernel *kernel = handle ? OPDI_ACQUIRE(&handle->kernel) : NULL;
    if (!opd_ok()) { return NULL; }
    if (!handle) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "the handle of a kernel is NULL: did opd_kernel_get fail?");
    } else if (!kernel) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "the kernel of %s for %s (%s) is not registered any more, because its "
                       "library was closed: free the handle, and get a new one (opd_kernel_get)", handle->op->name,
                       opd_key_name(handle->key), handle->place);
    }
    return kernel;
}

/* Returns true if a slot is that of a device. */
static bool opdi_is_device_slot(opd_key slot) { return slot >= OPD_KEY_CPU && slot < OPD_KEY_CPU + 16; }

/* Returns the slot with which `call` runs the kernel of a handle.  Gives the call the keys of `all` up to the handle's
   key.  For a fallthrough, returns the slot below the handle's key.  made[2] is memory for slots. */
OPDI_INTERNAL const opdi_slot *opdi_handle_slot(const opd_kernel_handle *handle, const opdi_table *table,
                                                opd_call *call, opd_keyset all, opdi_slot *made) {
    const opd_keyset own = opdi_keyset_of(handle->key);
    const uint64_t below = own.functionality ? own.functionality - 1 : 0;
    if (handle->slot.fn == opd_fallthrough) {
        const opdi_slot *slot = opdi_slot_for_keys(table, call, opd_keyset_make(all.functionality & below,
                                                                               all.backends | own.backends));
        return call->flags & OPDI_STORED ? opdi_stored_slot(call, slot) : slot;
    }
    call->slot = handle->key;
    call->keys = opd_keyset_make((all.functionality & below) | own.functionality, all.backends | own.backends);
    made[0] = handle->slot;
    if (opdi_is_device_slot(handle->key) && !handle->alone) {
        made[0].fn = opdi_device_handle_kernel;
        made[0].user = (void *)(uintptr_t)handle;
    }
    if (!(call->flags & OPDI_STORED) || !handle->ours) { return made; }
    made[1].fn = opdi_stored_kernel;
    made[1].user = made;
    return made + 1;
}

/* Fills a handle from the kernel that its operator has at its key.  Returns true if there is one.  The caller holds the
   lock. */
static bool opdi_handle_fill(opd_kernel_handle *handle) {
    opdi_chosen how;
    opdi_kernel *kernel = opdi_compute_slot(handle->op, handle->key, &how);
    if (!kernel) { return false; }
    handle->alone = how == OPDI_CHOSEN_MATH;
    handle->ours = opdi_is_device_slot(handle->key) && opdi_has_own_kernel(handle->op) &&
        (handle->key == OPD_KEY_CUDA ||
         ((const opdi_registration *)(const void *)kernel)[-1].lib == opdi_registry.aten);
    handle->slot.fn = kernel->fn;
    handle->slot.user = kernel->user;
    if (opdi_is_autocast_slot(handle->key) && kernel->fn != opd_fallthrough) {
        handle->slot.fn = opdi_autocast_kernel;
        handle->slot.user = kernel;
    }
    (void)opdi_place_text(kernel->place, handle->place, sizeof handle->place);
    handle->kernel = kernel;
    handle->next = kernel->handles;
    kernel->handles = handle;
    return true;
}

opd_kernel_handle *opd_kernel_get(opd_op *op, const char *key) {
    char have[1200];
    const opd_key wanted = opd_ok() ? opd_key_parse(key) : (opd_key)OPD_KEY_INVALID;
    if (!op || !opdi_key_is_runtime(wanted)) {
        (void)(op ? opd_fail(OPD_ERROR_ARGUMENT, "opd_kernel_get: %s is not the key of a kernel (such as CPU or "
                             "AutogradCPU)", key)
               : opd_fail(OPD_ERROR_NOT_FOUND, "opd_kernel_get: the operator is NULL"));
        return NULL;
    }
    opd_kernel_handle *handle = (opd_kernel_handle *)opdi_alloc(sizeof *handle);
    if (!handle) { return NULL; }
    memset(handle, 0, sizeof *handle);
    handle->op = op;
    handle->key = wanted;
    opdi_lock(&opdi_registry.lock);
    const bool defined = op->definition != NULL, found = defined && opdi_handle_fill(handle);
    if (!found) { (void)opdi_table_text(op, have, sizeof have); }
    opdi_unlock(&opdi_registry.lock);
    if (found) { return handle; }
    opdi_free(handle, sizeof *handle);
    (void)(defined ? opd_fail(OPD_ERROR_NO_KERNEL, "opd_kernel_get: no kernel of %s runs for %s. There are these: [%s]",
                              op->name, opd_key_name(wanted), have) : opdi_undefined_error(op));
    return NULL;
}

void opd_kernel_free(void *handle) {
    opd_kernel_handle *const gone = (opd_kernel_handle *)handle;
    if (!gone) { return; }
    opdi_lock(&opdi_registry.lock);
    opd_kernel_handle **handles = gone->kernel ? &gone->kernel->handles : NULL;
    while (handles && *handles && *handles != gone) { handles = &(*handles)->next; }
    if (handles && *handles) { *handles = gone->next; }
    opdi_unlock(&opdi_registry.lock);
    opdi_free(gone, sizeof *gone);
}
