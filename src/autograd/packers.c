#include "autograd.h"

//== the open saved-tensor hooks =======================================================================================

OPDI_INTERNAL opdi_packer *opdi_packer_keep(opdi_packer *packer) {
    (void)OPDI_ADD(&packer->refs, 1);
    return packer;
}
OPDI_INTERNAL void opdi_packer_release(opdi_packer *packer) {
    if (OPDI_SUB(&packer->refs, 1) > 0) { return; }
    if (packer->hooks.destroy) { packer->hooks.destroy(packer->hooks.user); }
    if (packer->plugin) { opdi_plugin_unpin(packer->plugin); }
    opdi_free(packer, sizeof *packer);
}

OPDI_INTERNAL int opdi_packers_check(void) {
    const char *why = opdi_self()->innermost.packers_off;
    if (!opd_ok()) { return -1; }
    return why ? opd_fail(OPD_ERROR_AUTOGRAD, "%s", why) : 0;
}

void opd_saved_hooks_end(void) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    opdi_packer *packer = thread->innermost.packer;
    if (!packer) { return; }
    thread->innermost.packer = packer->outer;
    opdi_packer_release(packer);
}
/* Ends the hooks that were begun during a visit that an exception or a longjmp has left.  If the hooks around the visit
   have ended, too, does nothing. */
OPDI_INTERNAL void opdi_packers_leave(opdi_visit *visit) {
    const opdi_thread *thread = opdi_self();
    const opdi_packer *packer = thread->innermost.packer;
    while (packer && packer != visit->innermost.packer) { packer = packer->outer; }
    while (packer == visit->innermost.packer && thread->innermost.packer != packer) { opd_saved_hooks_end(); }
}
/* Ends the hooks that were begun inside of a hook that an exception or a longjmp has left, and makes the hooks around
   it the open ones. */
OPDI_INTERNAL void opdi_packers_return(opdi_visit *visit) {
    opdi_thread *thread = opdi_self();
    while (thread->innermost.packer && thread->innermost.packer != visit->innermost.packer) { opd_saved_hooks_end(); }
    thread->innermost.packer = visit->innermost.packer;
}
int opd_saved_hooks_disable(const char *message) {
    static OPDI_TLS char text[256];
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    if (message) { snprintf(text, sizeof text, "%s", message); }
    thread->innermost.packers_off = message ? text : NULL;
    return thread->innermost.packer ? opdi_packers_check() : 0;
}
const char *opd_saved_hooks_disabled(void) { return opdi_self()->innermost.packers_off; }
