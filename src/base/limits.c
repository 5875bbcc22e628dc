#include "base.h"

//== code from files, interruptions, limits ============================================================================
//
//  Each function that loads machine code or starts a program first calls opd_code_forbidden.  tests/code_switch.py
//  finds calls of the system's functions in other places.

static int opdi_code_banned;                      /* only ever set */
static bool opdi_environment_bans(void) {
    const char *const value = getenv("OPD_NO_CODE");
    return value && *value && strcmp(value, "0") != 0;
}
void opd_code_forbid(void) { OPDI_STORE(&opdi_code_banned, 1); }
bool opd_code_forbidden(const char *who) {
    if (!OPDI_LOAD(&opdi_code_banned) && opdi_environment_bans()) { opd_code_forbid(); }
    if (!OPDI_LOAD(&opdi_code_banned)) { return false; }
    if (who) {
        (void)opd_fail(OPD_ERROR_FORBIDDEN, "%s: machine code from files is forbidden in this process (opd_code_forbid "
                       "was called, or the environment has OPD_NO_CODE)", who);
    }
    return true;
}

#if defined(OPDI_DIVIDED)                         /* base.h declares this variable */
int opdi_interrupts;
#endif
void opd_interrupt(void) { OPDI_STORE(&opdi_interrupts, 1); }
void opd_interrupt_clear(void) { OPDI_STORE(&opdi_interrupts, 0); }
bool opd_interrupted(void) { return opdi_run_ends(opdi_self()); }

static bool opdi_time_is_over(const opdi_thread *thread) {
    if (!thread->limits.until || opdi_clock() < thread->limits.until) { return false; }
    (void)opd_fail(OPD_ERROR_LIMIT, "the time limit of %g seconds (opd_limits_set) has passed", thread->limits.seconds);
    return true;
}
OPDI_NOINLINE OPDI_INTERNAL bool opdi_run_end(const opdi_thread *thread) {
    if (OPDI_LOAD(&opdi_interrupts)) {
        (void)opd_fail(OPD_ERROR_INTERRUPTED, "the run was interrupted (opd_interrupt)");
        return true;
    }
    return opdi_time_is_over(thread);
}
OPDI_NOINLINE OPDI_INTERNAL bool opdi_node_count(opdi_thread *thread) {
    if (opdi_time_is_over(thread) || opdi_stack_short(NULL, OPDI_STACK_CALL)) { return true; }
    if (thread->limits.nodes != 1) {
        thread->limits.nodes -= thread->limits.nodes > 1;
        return false;
    }
    (void)opd_fail(OPD_ERROR_LIMIT, "the limit for the number of values and nodes is reached (opd_limits_set)");
    return true;
}

/* Returns true if the same call may succeed later, because the pending error does not depend on its arguments: memory
   ran out, a run was interrupted, or a limit was reached. */
OPDI_INTERNAL bool opdi_error_passes(void) {
    const opd_code code = opd_error_code();
    return code == OPD_ERROR_MEMORY || code == OPD_ERROR_INTERRUPTED || code == OPD_ERROR_LIMIT;
}

int opd_limits_set(const opd_limits *limits) {
    opdi_thread *const thread = opdi_self();
    const bool counted = thread->limits.bytes != 0;
    memset(&thread->limits, 0, sizeof thread->limits);
    if (limits) {
        const int64_t live = thread->live_before + thread->live_delta;
        if (limits->seconds > 0 && limits->seconds < 1e9) {
            thread->limits.seconds = limits->seconds;
            thread->limits.until = opdi_clock() + (int64_t)(limits->seconds * 1e9) + 1;
        }
        if (limits->bytes > 0) {
            const int64_t most = live + OPDI_MIN(limits->bytes, INT64_MAX / 4);
            thread->limits.bytes = most ? most : 1;
        }
        if (limits->nodes > 0) { thread->limits.nodes = OPDI_MIN(limits->nodes, INT64_MAX - 1) + 1; }
        thread->limits.depth = OPDI_MAX(limits->depth, 0);
    }
    (void)OPDI_ADD(&opdi_fail_on, 2 * ((thread->limits.bytes != 0) - (int)counted));
    return 0;
}
/* Returns `left`, but at least `least`, because 0 means that there is no limit. */
static int64_t opdi_limit_left(int64_t left, int64_t least) { return OPDI_MAX(left, least); }
opd_limits opd_limits_left(void) {
    const opdi_thread *const thread = opdi_self();
    opd_limits left;
    memset(&left, 0, sizeof left);
    if (thread->limits.until) { left.seconds = 1e-9 * (double)opdi_limit_left(thread->limits.until - opdi_clock(), 1); }
    if (thread->limits.bytes) {
        left.bytes = opdi_limit_left(thread->limits.bytes - thread->live_before - thread->live_delta, 1);
    }
    left.nodes = opdi_limit_left(thread->limits.nodes - 1, thread->limits.nodes ? 1 : 0);
    left.depth = thread->limits.depth;
    return left;
}
