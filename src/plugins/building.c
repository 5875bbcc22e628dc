#include "plugins.h"

//== for all systems that compile at run time ==========================================================================

/* Returns `hash` mixed with `size` bytes. */
OPDI_INTERNAL uint64_t opdi_hash_bytes(uint64_t hash, const void *data, size_t size) {
    const char *at = (const char *)data;
    uint64_t word;
    hash = (hash ^ size) * 0x9e3779b97f4a7c15u;
    for (; size; at += OPDI_MIN(size, 8), size -= OPDI_MIN(size, 8)) {
        word = 0;
        memcpy(&word, at, OPDI_MIN(size, 8));
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
    }
    return hash;
}
OPDI_INTERNAL uint64_t opdi_hash_text(uint64_t hash, const char *text) {
    return opdi_hash_bytes(hash, text, strlen(text));
}

/* Writes a path to `out`, which has OPDI_PATH bytes.  Returns 0, or -1 and sets an error if the path is too long. */
OPD_PRINTF_LIKE(2, 3) OPDI_INTERNAL int opdi_path(char *out, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    int count = vsnprintf(out, OPDI_PATH, format, ap);
    va_end(ap);
    return count >= 0 && count < OPDI_PATH ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "the path %.60s... is too long", out);
}

/* Returns what to do about the error number `code` of a write into the cache. */
OPDI_INTERNAL const char *opdi_cache_advice(int code) {
    bool full = code == ENOSPC || code == EFBIG;
#if defined(EDQUOT)
    full = full || code == EDQUOT;
#endif
    return full ? "; make room there, or set $XDG_CACHE_HOME to a folder on another disk"
        : "; set $XDG_CACHE_HOME to a folder that this program can write";
}
/* Sets an error from errno: the file or folder at `path` could not be made or written.  Returns -1. */
OPDI_INTERNAL int opdi_cache_fails(const char *path) {
    const int code = errno;
    return opd_fail(opdi_errno_code(OPD_ERROR_REGISTER), "the cache for compiled code: cannot write %s: %s%s", path,
                    opdi_errno_text(), opdi_cache_advice(code));
}
/* Returns true if a file in the cache has a name as this library gives it: one that ends in - and 16 hexadecimal digits
   before the last dot. */
OPDI_INTERNAL bool opdi_cache_has(const char *name) {
    const char *const dot = strrchr(name, '.');
    return dot && dot - name > 17 && dot[-17] == '-' && strspn(dot - 16, "0123456789abcdef") == 16;
}
/* Adds an opdi_cached to `list`.  A file takes whole blocks of the disk. */
OPDI_INTERNAL void opdi_cached_add(opdi_string *list, const char *name, int64_t bytes, int64_t used) {
    opdi_cached one;
    memset(&one, 0, sizeof one);
    one.bytes = (bytes + 4095) / 4096 * 4096;
    one.used = used;
    if (strlen(name) >= sizeof one.name) { return; }
    (void)snprintf(one.name, sizeof one.name, "%s", name);
    opdi_string_add_n(list, (const char *)&one, sizeof one);
}

/* Returns true if the file at `path` can be opened for reading. */
OPDI_INTERNAL bool opdi_is_readable(const char *path) {
    FILE *const file = opdi_file_open(path, "rb");
    if (file) { (void)fclose(file); }
    return file != NULL;
}
/* Returns the length of the program's name at the beginning of a command.  The name has spaces only if the whole
   command is the path of a file. */
OPDI_INTERNAL size_t opdi_command_name(const char *command) {
    const size_t length = strcspn(command, " \t\n");
    return command[length] && opdi_is_readable(command) ? strlen(command) : length;
}
