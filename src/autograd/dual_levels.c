#include "autograd.h"

//== opening and closing levels of forward mode ========================================================================

/* Opens a level of forward mode: for the innermost layer of transforms if `transform` is true, or for
   opd_dual_level_begin if false.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_level_begin(opdi_thread *thread, bool transform) {
    static uint64_t serials;
    opdi_level *level = (opdi_level *)opdi_alloc(sizeof *level);
    if (!level) { return -1; }
    level->duals = NULL;
    level->outer = thread->innermost.level;
    level->serial = OPDI_ADD(&serials, (uint64_t)1);
    level->layer = transform ? opd_transform_depth() : opd_transform_depth() + 1;
    level->transform = transform;
    level->around = thread->state.forward;
    opdi_forward_reach();
    thread->innermost.level = level;
    thread->state.forward |= OPDI_FORWARD_OPEN;
    return 0;
}

int opd_dual_level_begin(void) {
    opdi_thread *thread = opdi_self();
    if (opdi_visits_left(thread) || !opd_ok()) { return -1; }
    if (thread->innermost.level) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Nested forward mode AD is not supported at the moment");
    }
    return opdi_level_begin(thread, false);
}

int opd_dual_level_end(int level) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    if (level != 0 || !thread->innermost.level || thread->innermost.level->transform) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to exit a forward AD level that was not the last one that was "
                        "created. This is not supported.");
    }
    opdi_level_end(thread);
    return 0;
}
