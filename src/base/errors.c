#include "base.h"
//== errors ============================================================================================================

#if defined(OPDI_CORE)

bool opd_ok(void) { return opdi_self()->error == OPD_OK; }
#endif

OPDI_COLD_BEGIN
#if defined(OPDI_CORE)

opd_code opd_error_code(void) { return opdi_self()->error; }
const char *opd_error_message(void) {
    opdi_thread *thread = opdi_self();
    return thread->error != OPD_OK ? thread->message : "";
}
void opd_error_clear(void) { opdi_self()->error = OPD_OK; }

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
#if defined(OPDI_SANITIZED)                       /* frames may be anywhere */
    (void)thread;
    (void)here;
    return false;
#else
    const opd_call *const call = thread->current;
    return call && opdi_on_own_stack(thread, (uintptr_t)call) &&
           (opdi_call_thread(call) != thread ||
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

/* Removes a name that is repeated in a message.  The first `length` bytes of the message are "name: ".  If the rest
   begins with the same name, the first `length` bytes are removed.  If the rest begins with the name without its
   namespace, followed by ": ", this beginning of the rest is removed. */
static void opdi_name_once(char *message, int length) {
    char *const rest = message + length;
    const size_t name = (size_t)length - 2;
    const char *const colons = strstr(message, "::");
    const size_t space = colons && colons < rest ? (size_t)(colons - message) + 2 : name;
    const size_t local = name - space;
    if (strncmp(rest, message, name) == 0 && rest[name] && strchr(" :(.,'", rest[name])) {
        memmove(message, rest, strlen(rest) + 1);
    } else if (local > 0 && strncmp(rest, message + space, local) == 0 && strncmp(rest + local, ": ", 2) == 0) {
        memmove(rest, rest + local + 2, strlen(rest + local + 2) + 1);
    }
}

int opd_fail(opd_code code, const char *format, ...) {
    opdi_thread *thread = opdi_self();
    va_list ap;
    int count = 0;
    if (thread->error != OPD_OK) { return -1; }   /* the first error stays */
    if (thread->current && opdi_is_left(thread)) { return opdi_forget_left(thread); }
    if (thread->current) {
        count = snprintf(thread->message, sizeof thread->message, "%s: ", opdi_call_name(thread->current));
    }
    if (count < 0 || count >= (int)sizeof thread->message) { count = 0; }
    va_start(ap, format);
    vsnprintf(thread->message + count, sizeof thread->message - (size_t)count, format, ap);
    va_end(ap);
    if (count > 0) { opdi_name_once(thread->message, count); }
    thread->error = code == OPD_OK ? OPD_ERROR_USER : code;
    return -1;
}

/* Returns the error code for a failure of the C library: OPD_ERROR_MEMORY if errno says that memory ran out, else
   `otherwise`. */
OPDI_INTERNAL opd_code opdi_errno_code(opd_code otherwise) { return errno == ENOMEM ? OPD_ERROR_MEMORY : otherwise; }

/* Appends a formatted text to the message of the pending error.  A text that begins with " [in the " is not appended
   if the message already contains it.  Returns -1. */
OPDI_INTERNAL int opdi_fail_more(const char *format, ...) OPD_PRINTF_LIKE(1, 2);
OPDI_INTERNAL int opdi_fail_more(const char *format, ...) {
    opdi_thread *thread = opdi_self();
    size_t length = strlen(thread->message);
    char *more = thread->message + length;
    va_list ap;
    va_start(ap, format);
    vsnprintf(more, sizeof thread->message - length, format, ap);
    va_end(ap);
    const char *said = strstr(thread->message, more);
    if (said && said < more && strncmp(more, " [in the ", 9) == 0) { *more = 0; }
    return -1;
}

int opd_error_mark(void) { return opdi_self()->error == OPD_OK ? 1 : 0; }

opd_code opd_error_rewind(int mark) {
    opdi_thread *thread = opdi_self();
    opd_code code = thread->error;
    if (!mark) { return OPD_OK; }                 /* the error was pending before the mark */
    thread->error = OPD_OK;
    return code;
}
#endif

OPDI_COLD_END

