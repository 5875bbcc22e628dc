#include "base.h"

//== the log ===========================================================================================================

/* Errors and warnings may have texts of files.  Control characters, which could change the terminal, become '?'. */
OPDI_INTERNAL void opdi_log_default(void *user, int is_error, const char *text) {
    char clean[2200];                             /* no error is longer; the end of a longer warning is left out */
    size_t to = 0;
    (void)user;
    for (const unsigned char *at = (const unsigned char *)text; *at && is_error >= 0 && to + 1 < sizeof clean; at++) {
        const bool two = at[0] == 0xc2 && (at[1] & 0xe0) == 0x80;      /* one of U+0080 to U+009F */
        clean[to++] = (*at < 32 && *at != '\n') || *at == 127 || two ? '?' : (char)*at;
        at += two;
    }
    clean[to] = 0;
    fprintf(stderr, "opdispatch: %s%s\n", is_error > 0 ? "error: " : is_error ? "" : "warning: ",
            is_error < 0 ? text : clean);
}

OPDI_INTERNAL opdi_log_target opdi_log = {OPDI_MUTEX_INIT, opdi_log_default, NULL};

int opd_log_set(opd_log_fn fn, void *user) {
    opdi_lock(&opdi_log.lock);
    opdi_log.fn = fn ? fn : opdi_log_default;
    opdi_log.user = user;
    opdi_unlock(&opdi_log.lock);
    return 0;
}

/* Passes a text to the log function; is_error is as in opd_log_fn.  If `bare` is true, the default log function writes
   the text without "opdispatch: " in front.  While the log function runs, its plug-in stays loaded, as during a
   call. */
OPDI_INTERNAL void opdi_log_write(opdi_thread *thread, int is_error, const char *text, bool bare) {
    const uint64_t was = opdi_enter(thread);
    opdi_lock(&opdi_log.lock);
    opd_log_fn fn = opdi_log.fn;
    void *user = opdi_log.user;
    opdi_unlock(&opdi_log.lock);
    if (bare && fn == opdi_log_default) { (void)fprintf(stderr, "%s\n", text); } else { fn(user, is_error, text); }
    opdi_leave(thread, was);
}

void opd_warn(const char *format, ...) {
    char text[1024];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    opdi_log_write(opdi_self(), 0, text, false);
}
