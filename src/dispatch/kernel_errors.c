#include "dispatch.h"

//== errors inside of kernels ==========================================================================================

/* Returns true if an exception or a longjmp has left the kernel of thread->current.  `here` is an address in a live
   frame.  If the kernel was left, the frame of its call is no longer above `here` on the stack, or has been
   overwritten.  Calls on other stacks are not examined. */
OPDI_INTERNAL bool opdi_is_left_at(opdi_thread *thread, const volatile void *here) {
#if defined(OPDI_SANITIZED)                       /* a sanitizer may put frames anywhere */
    (void)thread;
    (void)here;
    return false;
#else
    const opd_call *const call = thread->current;
    return call && opdi_on_own_stack(thread, (uintptr_t)call) &&
           (call->th != thread ||
            ((uintptr_t)call <= (uintptr_t)here && opdi_on_own_stack(thread, (uintptr_t)here)));
#endif
}
/* Returns the index of the outermost visit that an exception or a longjmp has left, or -1 if there is none.  A visit
   that was left is recognised as a call is: see opdi_is_left_at. */
static int opdi_visit_left_at(opdi_thread *thread, const volatile void *here) {
    const int count = (int)OPDI_MIN(thread->nvisits, OPDI_VISITS);
    for (int i = 0; i < count; i++) {
#if !defined(OPDI_SANITIZED)
        const opdi_visit_frame *const frame = thread->visits[i].frame;
        if (opdi_on_own_stack(thread, (uintptr_t)frame) &&
            (frame->thread != thread || frame->at != i ||
             ((uintptr_t)frame <= (uintptr_t)here && opdi_on_own_stack(thread, (uintptr_t)here)))) { return i; }
#else
        (void)here;
#endif
    }
    return -1;
}
/* Returns true if an exception or a longjmp has left the kernel of thread->current or a visit.  This function is not
   inlined, so all live frames of callers are above its own frame. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_is_left(opdi_thread *thread) {
    const volatile char here = 0;
    return opdi_is_left_at(thread, &here) || opdi_visit_left_at(thread, &here) >= 0;
}

/* Begins a visit, which opdi_visit_end ends.  `frame` is a variable of the caller.  `what` says what kind of code runs.
   If the code does not return, the layers and modes that it has opened are closed, and `end`, which may be NULL, closes
   everything else.  `user` is for `end`. */
OPDI_INTERNAL void opdi_visit_begin(opdi_thread *thread, opdi_visit_frame *frame, const char *what,
                                    void (*end)(opdi_visit *visit), void *user) {
    frame->thread = thread;
    frame->at = thread->nvisits++;
    if (frame->at >= OPDI_VISITS) { return; }
    opdi_visit *const visit = &thread->visits[frame->at];
    visit->frame = frame;
    visit->what = what;
    visit->end = end;
    visit->user = user;
    visit->scope_depth = thread->scope_depth;
    visit->scope_mark = thread->scope_mark;
    visit->depth = thread->depth;
    visit->top = thread->top;
    visit->innermost = thread->innermost;
    visit->state = thread->state;
    visit->current = thread->current;
    visit->observing = thread->observing;
}
/* Forgets the visits from number `first` on, which were left: ends what was opened since the outermost of them began,
   and restores the thread's innermost objects and modes. */
static void opdi_visits_forget(opdi_thread *thread, int first) {
    const opdi_visit *const visit = &thread->visits[first];
    int i = (int)OPDI_MIN(thread->nvisits, OPDI_VISITS);
    thread->nvisits = first;                      /* so that functions that `end` calls examine no visits */
    while (i-- > first) { if (thread->visits[i].end) { thread->visits[i].end(&thread->visits[i]); } }
    opdi_scope_end_all(thread, visit->top);
    const opdi_innermost now = thread->innermost;
    thread->innermost = visit->innermost;
    thread->innermost.packer = now.packer;
    thread->innermost.layer = now.layer;
    thread->innermost.serials = now.serials;
    thread->innermost.serial = now.serial;
    thread->innermost.tape = now.tape;
    thread->state.autocast = visit->state.autocast;
    thread->state.inference = visit->state.inference;
    thread->state.forward = visit->state.forward;
    thread->observing = visit->observing;
    thread->depth = visit->depth;
    if (thread->scope_depth > visit->scope_depth) {        /* else the scopes have been closed */
        thread->scope_depth = visit->scope_depth;
        thread->scope_mark = visit->scope_mark;
    }
}
/* Forgets the calls and visits that an exception or a longjmp has left, and the state that was set for them.  Returns
   -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_forget_left(opdi_thread *thread) {
    const volatile char here = 0;
    const int first = opdi_visit_left_at(thread, &here);
    const char *const what = first < 0 ? "a kernel" : thread->visits[first].what;
    thread->current = first < 0 ? NULL : thread->visits[first].current;
    if (opdi_is_left_at(thread, &here)) { thread->current = NULL; }
    thread->planned = NULL;
    thread->run = 0;
    thread->left = true;
    if (first >= 0) { opdi_visits_forget(thread, first); }
    thread->state.include = OPDI_DEFAULT_INCLUDE;
    thread->state.allow = OPDI_DEFAULT_ALLOW | (thread->state.autocast ? OPD_BIT_OF(OPD_F_AUTOCAST) : 0);
    thread->state.no_grad = 0;
    return opd_fail(OPD_ERROR_KERNEL, "an exception or a longjmp has left %s, but %s must return (in C++, "
                    "OPD_CATCH(%s) turns exceptions into errors); the included and excluded keys and the grad mode "
                    "were reset to their initial state", what, what, first < 0 ? "kernel" : "function");
}
/* Looks whether an exception or a longjmp has left a visit.  If so, forgets the visit, sets an error and returns
   true. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_visits_examine(opdi_thread *thread) {
    return opdi_is_left(thread) && opdi_forget_left(thread) != 0;
}
/* Returns the name of the operator that the program called.  Inside of a derived form, returns the name of the form. */
OPDI_INTERNAL const char *opdi_call_name(const opd_call *call) {
    return (call->targets && call->outer ? call->outer : call)->op->name;
}
/* Begins the message of an error that a kernel sets: writes the name of its operator and ": " to thread->message.
   Returns the length of this text, or 0 if it does not fit.  If an exception or a longjmp has left the kernel, returns
   -1 and sets an error that says so. */
OPDI_INTERNAL int opdi_error_begin(opdi_thread *thread) {
    if (opdi_is_left(thread)) { return opdi_forget_left(thread); }
    const int count = snprintf(thread->message, sizeof thread->message, "%s: ", opdi_call_name(thread->current));
    return count < 0 || count >= (int)sizeof thread->message ? 0 : count;
}
