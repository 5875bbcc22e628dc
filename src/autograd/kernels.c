#include "autograd.h"

//== the kernels at Autograd ===========================================================================================
//
//  Each kernel calls forward mode if an argument has a tangent.  Otherwise it calls the functions of
//  src/autograd/recording.c and writes.c, which record the call in the autograd graph.

/* Runs a call of an operator that has a backward function, and records the call if something requires grad.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_recording_kernel(opd_call *call, const opdi_card *card) {
    /* call->flags has both flags if the dispatcher has already found that an argument requires grad */
    const unsigned seen = OPDI_FLAGS_KNOWN | OPDI_REQUIRES_GRAD;
    const unsigned flags = (call->flags & seen) == seen && !call->th->state.no_grad ? call->flags
        : opdi_call_flags(call);
    if (!flags) { return opdi_below_autograd(call); }
    if (OPDI_UNLIKELY(flags & OPDI_IS_VIEW) && card->desc.backward != opd_not_differentiable &&
        opdi_refresh_args(call)) { return -1; }
    if (OPDI_UNLIKELY(card->constant_args) && opdi_check_constant(call, card)) { return -1; }
    if (OPDI_UNLIKELY(call->op->written_args != 0)) { return opdi_recording_writes(call, card); }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_below_autograd(call)) { return -1; }
    if (card->desc.backward == opd_not_differentiable) { return 0; }
    if (opdi_unalias_results(call)) { return -1; }
    return opdi_record(call, card, &card->formula, call->args);
}

OPDI_INTERNAL int opdi_autograd_kernel(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    return opdi_call_forward(call) ? OPDI_ACQUIRE(&opdi_on_forward)->kernel(call, card)
        : opdi_recording_kernel(call, card);
}
OPDI_INTERNAL int opdi_autograd_inplace_kernel(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    opd_tensor *self = call->args[0].tag == OPD_TAG_TENSOR ? call->args[0].u.t : NULL;
    return opdi_call_forward(call) ? OPDI_ACQUIRE(&opdi_on_forward)->inplace(call, card, self)
        : opdi_recording_inplace_kernel(call, card, self);
}

/* The kernel at Autograd of out= forms, which are never recorded: fails if something requires grad.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_autograd_out_kernel(opd_call *call) {
    if (opdi_call_forward(call)) { return opdi_forward_unable(call, "_out", "because it is an out= function"); }
    if (!opdi_call_flags(call)) { return opdi_below_autograd(call); }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s(): functions with out=... arguments don't support automatic "
                    "differentiation, but one of the arguments requires grad.", call->op->schema->name);
}

OPDI_COLD_BEGIN

/* The kernel at Autograd of operators for which nothing is registered there.  If something requires grad, records a
   node that fails or warns in backward.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_recording_fallback(opd_call *call) {
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    const int mode = OPDI_LOAD(&opdi_fallback_mode);
    if (mode == OPD_AUTOGRAD_FALLBACK_NOTHING || !opdi_call_flags(call)) { return opdi_below_autograd(call); }
    /* looks up both kernels in one table, because another thread may register a backward function and its kernel
       meanwhile */
    if (!table && !(table = opdi_table_make(call->op))) { return -1; }
    if (table->slots[call->slot].fn != opdi_autograd_fallback) { return opd_redispatch(call, call->keys); }
    return mode == OPD_AUTOGRAD_FALLBACK_WARN ? opdi_warn_in(table, call) : opdi_not_implemented_in(table, call);
}
OPDI_INTERNAL int opdi_autograd_fallback(opd_call *call) {
    return opdi_call_forward(call) ? OPDI_ACQUIRE(&opdi_on_forward)->kernel(call, NULL) : opdi_recording_fallback(call);
}
int opd_autograd_not_implemented(opd_call *call) {
    if (opdi_call_forward(call)) { return opdi_forward_missing(call); }
    if (!opdi_call_flags(call)) { return opdi_below_autograd(call); }
    return opdi_not_implemented_in(OPDI_ACQUIRE(&call->op->table), call);
}
/* Only forward mode makes the argument of these rules. */
int opd_jvp_pointwise(opd_jvp_call *jv) { return OPDI_ACQUIRE(&opdi_on_forward)->pointwise(jv); }
int opd_jvp_linear(opd_jvp_call *jv) { return OPDI_ACQUIRE(&opdi_on_forward)->linear(jv); }
int opd_jvp_backward(opd_jvp_call *jv) { return OPDI_ACQUIRE(&opdi_on_forward)->backward(jv); }
OPDI_COLD_END

