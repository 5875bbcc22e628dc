//== functions of tools that are left out ==============================================================================
//
//  If a macro leaves a tool out, all its functions still exist, so that programs, plug-ins and other tools can be
//  linked.  Such a function fails with an error that names the macro, writes NULL for its results, and does not take
//  ownership of arguments.  Functions that free or close something do nothing.

OPDI_INTERNAL bool opdi_autocast_eligible(const opd_tensor *tensor, int device);
OPDI_INTERNAL int opdi_cast_device(const opd_tensor *tensor);
#if defined(OPDI_TOOLS_LESS)
OPDI_ONCE_BEGIN
#if defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

//== functions that other sections of the library call =================================================================

#if defined(OPD_NO_AUTOCAST)                      /* no region can be open: only the thread's `allow` bit decides */
OPDI_INTERNAL bool opdi_autocast_is_on(const opdi_thread *thread, int device) {
    return (thread->state.allow & OPD_BIT_OF(OPD_F_AUTOCAST)) != 0;
}
static int opdi_autocast_kernel(opd_call *call) { /* runs the program's kernel */
    const opdi_kernel *kernel = (const opdi_kernel *)call->user;
    call->user = kernel->user;
    return kernel->fn(call);
}
static int opdi_autocast_of_fakes(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AUTOCAST)));
}
static opdi_kernel *opdi_autocast_policy(const opd_op *op, int device) { return NULL; }
OPDI_INTERNAL bool opdi_autocast_eligible(const opd_tensor *tensor, int device) { return false; }
OPDI_INTERNAL int opdi_cast_device(const opd_tensor *tensor) { return OPD_CPU; }
#endif

//== functions that programs call ======================================================================================

/* Fails because `function` is left out by the macro `macro`.  Returns -1. */
static int opdi_without(const char *function, const char *macro) {
    return opd_fail(OPD_ERROR_NOT_FOUND, "%s is left out: %s was defined", function, macro);
}
static void *opdi_null_without(const char *function, const char *macro) {
    (void)opdi_without(function, macro);
    return NULL;
}
/* Writes zeros over `count` results of `bytes` bytes each, if there are any. */
static void opdi_no_results(void *results, int64_t count, size_t bytes) {
    if (results && count > 0) { memset(results, 0, (size_t)count * bytes); }
}

#include "left_out.printed.h"
#if defined(__GNUC__) && !defined(__TINYC__)
#pragma GCC diagnostic pop
#endif
OPDI_ONCE_END
#endif

