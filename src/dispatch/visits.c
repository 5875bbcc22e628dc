#include "dispatch.h"

//== leaving a kernel without a return =================================================================================
//
//  A visit is a call from the library into code of the program.  If an exception or a longjmp leaves a kernel or a
//  visit, the next function that looks notices it here.

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
OPDI_INTERNAL int opdi_visit_left_at(opdi_thread *thread, const volatile void *here) {
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
