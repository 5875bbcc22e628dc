#include "lean.h"

//== listeners =========================================================================================================

opd_listener *opd_listener_add(opd_listener_fn defined, opd_listener_fn undefined, void *user) {
    opd_listener *listener, **end = &opdi_registry.listeners;
    opdi_started();
    opdi_builtins_make(NULL);
    if (!opd_ok() || !(listener = (opd_listener *)opdi_alloc(sizeof *listener))) { return NULL; }
    listener->defined = defined;
    listener->undefined = undefined;
    listener->user = user;
    listener->next = NULL;
    opdi_lock(&opdi_registry.lock);
    for (opd_op *op = opdi_registry.first_defined; op && defined; op = op->next_defined) { defined(user, op); }
    while (*end) { end = &(*end)->next; }
    *end = listener;
    opdi_unlock(&opdi_registry.lock);
    return listener;
}

void opd_listener_remove(opd_listener *listener) {
    opd_listener **listeners = &opdi_registry.listeners;
    opdi_lock(&opdi_registry.lock);
    while (*listeners && *listeners != listener) { listeners = &(*listeners)->next; }
    opd_listener *found = *listeners;
    if (found) { *listeners = found->next; }
    opdi_unlock(&opdi_registry.lock);
    opdi_free(found, sizeof *found);
}
