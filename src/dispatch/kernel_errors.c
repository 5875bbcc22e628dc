#include "dispatch.h"

//== errors inside of kernels ==========================================================================================

/* Returns true if the address p lies on the stack that the system gave this thread, and not on the stack of a coroutine
   or a signal handler. */
static bool opdi_on_own_stack(opdi_thread *thread, uintptr_t p) {
#if defined(OPDI_STACK_KNOWN)
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (!thread->stack_low && pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &size)) { size = 0; }
        thread->stack_low = (uintptr_t)low;
        thread->stack_bytes = size;
        (void)pthread_attr_destroy(&attr);
    }
#elif defined(_WIN32)
    if (!thread->stack_low) {
        opdi_windows_size low = 0, high = 0;
        GetCurrentThreadStackLimits(&low, &high);
        thread->stack_low = (uintptr_t)low;
        thread->stack_bytes = (size_t)(high - low);
    }
#endif
    return p - thread->stack_low < thread->stack_bytes;
}
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
/* Returns true if an exception or a longjmp has left the kernel of thread->current.  This function is not inlined, so
   all live frames of callers are above its own frame. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_is_left(opdi_thread *thread) {
    const volatile char here = 0;
    return opdi_is_left_at(thread, &here);
}
/* Forgets the call that an exception or a longjmp has left, and the state that the dispatcher had set for it.  Returns
   -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_forget_left(opdi_thread *thread) {
    thread->current = NULL;
    thread->planned = NULL;
    thread->run = 0;
    thread->left = true;
    thread->state.include = OPDI_DEFAULT_INCLUDE;
    thread->state.allow = OPDI_DEFAULT_ALLOW | (thread->state.autocast ? OPD_BIT_OF(OPD_F_AUTOCAST) : 0);
    thread->state.no_grad = 0;
    return opd_fail(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel, but a kernel must return (in C++, "
                    "OPD_CATCH(kernel) turns exceptions into errors); the included and excluded keys and the grad mode "
                    "were reset to their initial state");
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
