#include "dispatch.h"

//== kernels of vmap, of fake tensors and of recording =================================================================
//
//  A call can reach these kernels only after the program has called a certain function, for example opd_vmap_begin.
//  This function fills the table opdi_late.  So a lean program that does not call the function does not contain the
//  kernels.

OPDI_INTERNAL opd_kernel opdi_late[OPDI_LATES];

OPDI_INTERNAL void opdi_late_fill(int first, const opd_kernel *kernels, int count) {
    for (int i = 0; i < count; i++) { OPDI_STORE(&opdi_late[first + i], kernels[i]); }
}

/* Runs the kernel at a key.  If it is not there, the program has only included the key: passes the call on. */
static int opdi_late_call(opd_call *call, int which, int functionality) {
    const opd_kernel fn = OPDI_LOAD(&opdi_late[which]);
    return fn ? fn(call) : opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(functionality)));
}
OPDI_INTERNAL int opdi_front_fallback(opd_call *call) {
    return opdi_late_call(call, OPDI_LATE_FRONT, OPD_F_DYNAMIC_LAYER_FRONT);
}
OPDI_INTERNAL int opdi_back_fallback(opd_call *call) {
    return opdi_late_call(call, OPDI_LATE_BACK, OPD_F_DYNAMIC_LAYER_BACK);
}
OPDI_INTERNAL int opdi_batched_fallback(opd_call *call) {
    return opdi_late_call(call, OPDI_LATE_BATCHED, OPD_F_BATCHED);
}
OPDI_INTERNAL int opdi_tracer_fallback(opd_call *call) {
    return opdi_late_call(call, OPDI_LATE_TRACER, OPD_F_TRACER);
}
OPDI_INTERNAL int opdi_fake_fallback(opd_call *call) { return opdi_late_call(call, OPDI_LATE_FAKE, OPD_F_FAKE); }

/* Runs a batching rule. */
static int opdi_late_rule(opd_call *call, int which, const char *name) {
    const opd_kernel fn = OPDI_LOAD(&opdi_late[which]);
    return fn ? fn(call) : opd_fail(OPD_ERROR_KERNEL, "%s: no batching rule is running", name);
}
int opd_batch_pointwise(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_POINTWISE, "opd_batch_pointwise"); }
int opd_batch_shift_dim(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_SHIFT_DIM, "opd_batch_shift_dim"); }
int opd_batch_view(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_VIEW, "opd_batch_view"); }
int opd_batch_decompose(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_DECOMPOSE, "opd_batch_decompose"); }
int opd_batch_factory(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_FACTORY, "opd_batch_factory"); }
int opd_batch_loop(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_LOOP, "opd_batch_loop"); }
/* Runs an operator once for each example, because a batching rule cannot take its arguments: see opdi_rule_unfit. */
OPDI_INTERNAL int opdi_batch_unfit(opd_call *call) { return opdi_late_rule(call, OPDI_LATE_UNFIT, "opdi_batch_unfit"); }
