#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>registry     operators, kernels and plug-ins that are registered
//
//  The registry determines which kernel a call runs.  Registrations are made under one lock.  The table of an operator
//  is computed at its first call.  Other threads see only complete tables, and tables do not change, so calls take no
//  lock.  This section uses schemas and keys, and does not depend on tensors.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL bool opdi_calls_shown;
OPDI_INTERNAL const opdi_higher *opdi_above;               /* set by opdi_process_begin */
/* Functions that wait for running collectives before the program uses their memory (see >>collectives).
   opdi_works_before_call waits for the arguments of a call.  opdi_works_before_use waits for a tensor whose data the
   program asks for.  Both return 0, or -1 and set an error. */
OPDI_INTERNAL int (*opdi_works_before_call)(const opd_call *call);
OPDI_INTERNAL int (*opdi_works_before_use)(const opd_tensor *tensor);
/* Returns true if a tensor is this rank's part of a sharded parameter (see >>parallel).  The function pointer is NULL
   while there are no such parts. */
OPDI_INTERNAL bool (*opdi_is_part)(const opd_tensor *tensor);
/* The number of collectives that are running. */
OPDI_INTERNAL int32_t opdi_works_running;

OPDI_INTERNAL opdi_register opdi_registry = {
    /* lock, names */ OPDI_MUTEX_INIT, NULL,
    /* name_memory, op_memory */ {NULL, 0, NULL}, {NULL, 0, NULL},
    /* ranks, first_defined, last_defined */ 0, NULL, NULL,
    /* libraries, unloading, fallbacks, blocks, blocks_end */ NULL, NULL, {NULL}, NULL, NULL,
    /* start, starter, started */ OPDI_MUTEX_INIT, NULL, 0,
    /* aten, builtin, family_first, family_next, making */ NULL, {NULL}, {0}, {0}, 0,
    /* gone, gone_end, gone_count */ NULL, NULL, 0,
    /* listeners, warned_override, warned_gone, extra, mapped, mapper */ NULL, false, false, {0, 0}, NULL, NULL};

OPDI_INTERNAL void opdi_plugin_unpin(opd_plugin *plugin);

/* Sets an error.  Tables replace fallthrough kernels, so this function should never be called. */
int opd_fallthrough(opd_call *call) {
    (void)call;
    return opd_fail(OPD_ERROR_KERNEL, "OPD_FALLTHROUGH was called as a kernel, but can only be registered");
}
int opd_not_differentiable(opd_backward_call *bw) {
    (void)bw;
    return opd_fail(OPD_ERROR_AUTOGRAD, "not differentiable");
}

OPDI_COLD_BEGIN

OPDI_INTERNAL void opdi_text_add(opdi_text *text, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
OPDI_INTERNAL void opdi_text_add(opdi_text *text, const char *format, ...) {
    va_list ap;
    if (!text) { return; }                        /* the caller only wants the length */
    va_start(ap, format);
    int count = vsnprintf(text->length < text->cap ? text->buf + text->length : NULL,
                          text->length < text->cap ? text->cap - text->length : 0, format, ap);
    va_end(ap);
    if (count > 0) { text->length += (size_t)count; }
}
OPDI_INTERNAL opdi_text opdi_text_of(char *buf, size_t cap) {
    opdi_text text;
    text.buf = buf;
    text.cap = buf ? cap : 0;
    text.length = 0;
    if (text.cap) { buf[0] = 0; }
    return text;
}
/* Writes sizes as "[2, 3]" to buf.  Returns buf. */
OPDI_INTERNAL const char *opdi_sizes_text(const int64_t *sizes, int ndim, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    opdi_text_add(&text, "[");
    for (int i = 0; i < ndim; i++) { opdi_text_add(&text, "%s%lld", i ? ", " : "", (long long)sizes[i]); }
    opdi_text_add(&text, "]");
    return buf;
}

const char *opd_op_name(const opd_op *op) { return op ? op->name : ""; }
/* Returns the reason why an operator that was defined is no longer defined. */
OPDI_INTERNAL const char *opdi_undefined_why(const opd_op *op) {
    return OPDI_LOAD(&op->unloaded) ? "its plug-in was unloaded (opd_plugin_unload)"
        : "its library was closed (opd_library_close)";
}
OPDI_INTERNAL int opdi_undefined_error(const opd_op *op) {
    return opd_fail(OPD_ERROR_NOT_FOUND, "the operator %s is not defined any more: %s", op->name,
                    opdi_undefined_why(op));
}

//== objects that are out of use =======================================================================================

/* Puts an object that was just taken out of use on a waiting list.  give_back frees the object, and is called once no
   running call can be using it.  The caller holds the registry's lock. */
OPDI_INTERNAL void opdi_retire(opdi_retired *gone, void (*give_back)(opdi_retired *gone)) {
    if (!opdi_registry.gone) { opdi_registry.gone_end = &opdi_registry.gone; }
    gone->next = NULL;
    gone->give_back = give_back;
    gone->stamp = opdi_epoch;
    OPDI_PUBLISH(&opdi_epoch, opdi_epoch + 1);
    *opdi_registry.gone_end = gone;
    opdi_registry.gone_end = &gone->next;
    OPDI_STORE(&opdi_registry.gone_count, opdi_registry.gone_count + 1);
}

#define OPDI_MANY_RETIRED 20000
/* Frees the waiting objects that no call can be using any more.  The caller must not hold the lock, because the
   destructors of user pointers may register. */
OPDI_INTERNAL void opdi_retired_reclaim(void) {
    opdi_lock(&opdi_registry.lock);
    opdi_retired **end = &opdi_registry.gone;
    uint64_t oldest = *end ? opdi_oldest_call() : 0;
    if (opdi_epoch <= oldest) {                   /* then all objects can be freed */
        end = opdi_registry.gone_end;
        OPDI_STORE(&opdi_registry.gone_count, 0);
    }
    for (; *end && (*end)->stamp < oldest; end = &(*end)->next) {
        OPDI_STORE(&opdi_registry.gone_count, opdi_registry.gone_count - 1);
    }
    opdi_retired *first = end == &opdi_registry.gone ? NULL : opdi_registry.gone;
    if (first) {
        opdi_registry.gone = *end;
        *end = NULL;
    }
    bool many = opdi_registry.gone_count > OPDI_MANY_RETIRED && !opdi_registry.warned_gone;
    opdi_registry.warned_gone |= many;
    opdi_unlock(&opdi_registry.lock);
    if (many) {
        opd_warn("Warning only once: more than %d tables and kernels of closed libraries cannot be freed yet, because "
                 "a call that began before is still running. They are freed when it ends.", OPDI_MANY_RETIRED);
    }
    while (first) {
        opdi_retired *gone = first;
        first = gone->next;
        OPDI_PREFETCH(first);
        gone->give_back(gone);
    }
}

OPDI_INTERNAL void opdi_table_reclaim(opdi_retired *gone) { opdi_free_fresh(gone, sizeof(opdi_table)); }
/* Frees a registration that is not in any list. */
OPDI_INTERNAL void opdi_registration_free(opdi_registration *registration) {
    opdi_kernel *kernel = registration->kernel;
    if (kernel && kernel->plugin) { opdi_plugin_unpin(kernel->plugin); }
    opdi_free(registration, sizeof *registration + (kernel ? sizeof *kernel : 0));
}
/* Frees a kernel's registration and destroys the kernel's user pointer. */
OPDI_INTERNAL void opdi_kernel_reclaim(opdi_retired *gone) {
    opdi_registration *registration = (opdi_registration *)(void *)gone;
    if (registration->kernel->destroy) { registration->kernel->destroy(registration->kernel->user); }
    opdi_registration_free(registration);
}

//== plug-ins by address ===============================================================================================

OPDI_INTERNAL opd_plugin *opdi_plugins;                   /* list of plug-ins that are loaded, or still mapped */

/* Returns the plug-in whose code or data contains an address, or NULL.  The caller holds the registry's lock. */
OPDI_INTERNAL opd_plugin *opdi_plugin_at(uintptr_t address) {
    opd_plugin *plugin = opdi_plugins;
    while (plugin && (address < plugin->begin || address >= plugin->end)) { plugin = plugin->next; }
    return plugin;
}

OPDI_INTERNAL bool opdi_plugin_loaded(const opd_plugin *plugin) { return OPDI_LOAD(&plugin->loaded); }
OPDI_INTERNAL void opdi_plugin_pin(opd_plugin *plugin) { (void)OPDI_ADD(&plugin->pins, 1); }

/* Pins the plug-in that contains `address`, so that it stays mapped, and returns it.  Returns NULL if no plug-in
   contains the address. */
OPDI_INTERNAL opd_plugin *opdi_plugin_hold(uintptr_t address) {
    if (!OPDI_LOAD(&opdi_plugins)) { return NULL; }
    opdi_lock(&opdi_registry.lock);
    opd_plugin *plugin = opdi_plugin_at(address);
    if (plugin) { opdi_plugin_pin(plugin); }
    opdi_unlock(&opdi_registry.lock);
    return plugin;
}

/* Unpins a plug-in.  After this, the opd_plugin must not be read, because another thread may free it. */
OPDI_INTERNAL void opdi_plugin_unpin(opd_plugin *plugin) {
    void (*const unpinned)(void) = plugin->unpinned;
    if (OPDI_SUB(&plugin->pins, 1) == 0) { unpinned(); }
}

opd_plugin *opd_plugin_next(const opd_plugin *plugin) {
    opdi_lock(&opdi_registry.lock);
    opd_plugin *next = plugin ? plugin->next : opdi_plugins;
    while (next && !next->loaded) { next = next->next; }
    opdi_unlock(&opdi_registry.lock);
    return next;
}
const char *opd_plugin_path(const opd_plugin *plugin) { return plugin ? plugin->path : ""; }

OPDI_COLD_END
