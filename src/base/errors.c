#include "base.h"
//== errors ============================================================================================================

bool opd_ok(void) { return opdi_self()->error == OPD_OK; }

OPDI_COLD_BEGIN

opd_code opd_error_code(void) { return opdi_self()->error; }
const char *opd_error_message(void) {
    opdi_thread *thread = opdi_self();
    return thread->error != OPD_OK ? thread->message : "";
}
void opd_error_clear(void) { opdi_self()->error = OPD_OK; }

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

/* Begins the message of an error that a kernel sets: see opdi_error_begin. */
OPDI_INTERNAL int (*opdi_error_in_call)(opdi_thread *thread);
/* Ends this message: see opdi_error_end. */
OPDI_INTERNAL void (*opdi_error_after_call)(opdi_thread *thread);
int opd_fail(opd_code code, const char *format, ...) {
    opdi_thread *thread = opdi_self();
    va_list ap;
    int count = 0;
    if (thread->error != OPD_OK) { return -1; }   /* the first error stays */
    if (thread->current && (count = opdi_error_in_call(thread)) < 0) { return -1; }
    va_start(ap, format);
    vsnprintf(thread->message + count, sizeof thread->message - (size_t)count, format, ap);
    va_end(ap);
    if (count > 0) { opdi_name_once(thread->message, count); }
    thread->error = code == OPD_OK ? OPD_ERROR_USER : code;
    if (count > 0) { opdi_error_after_call(thread); }
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

OPDI_COLD_END

