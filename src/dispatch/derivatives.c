#include "dispatch.h"

//== derivatives of nodes that a program makes =========================================================================

/* The derivative of nodes that opd_autograd_record or opd_autograd_apply makes.  In memory, a copy of the node's name
   follows the struct. */
typedef struct opdi_manual_derivative {
    opdi_derivative formula;
    struct opdi_manual_derivative *next;
    size_t bytes;
} opdi_manual_derivative;
static opdi_manual_derivative *opdi_manual_derivatives; /* a list: one entry for each pair of name and backward
                                                           function; a plug-in's entries are freed with the plug-in */

static opdi_manual_derivative *opdi_manual_find(const char *name, opd_backward_fn fn, bool context, bool once) {
    opdi_manual_derivative *manual = OPDI_ACQUIRE(&opdi_manual_derivatives);
    while (manual && (manual->formula.fn != fn || manual->formula.context != context || manual->formula.once != once ||
                      strcmp(manual->formula.name, name) != 0)) { manual = manual->next; }
    return manual;
}
/* Returns the derivative with this name and backward function.  The derivative is made at the first use and kept.
   Returns NULL if memory runs out. */
OPDI_INTERNAL const opdi_derivative *opdi_manual_formula(const char *name, opd_backward_fn fn, bool context, bool once)
                                                         {
    const size_t size = strlen(name) + 1;
    opdi_manual_derivative *manual = opdi_manual_find(name, fn, context, once);
    if (manual) { return &manual->formula; }
    opdi_lock(&opdi_registry.lock);
    manual = opdi_manual_find(name, fn, context, once);
    if (!manual) {
        manual = (opdi_manual_derivative *)opdi_alloc(sizeof *manual + size);
        if (manual) {
            memset(manual, 0, sizeof *manual);
            manual->bytes = sizeof *manual + size;
            manual->formula.name = (const char *)memcpy(manual + 1, name, size);
            manual->formula.fn = fn;
            manual->formula.plugin = opdi_plugin_at((uintptr_t)fn);
            manual->formula.context = context;
            manual->formula.once = once;
            manual->next = opdi_manual_derivatives;
            OPDI_PUBLISH(&opdi_manual_derivatives, manual);
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return manual ? &manual->formula : NULL;
}
/* Frees the derivatives of a plug-in that no call can be using any more.  The caller holds the registry's lock. */
OPDI_INTERNAL void opdi_manuals_forget(const opd_plugin *plugin) {
    opdi_manual_derivative **hands = &opdi_manual_derivatives;
    while (*hands) {
        opdi_manual_derivative *old = *hands;
        if (old->formula.plugin != plugin) {
            hands = &old->next;
            continue;
        }
        *hands = old->next;
        opdi_free(old, old->bytes);
    }
}
