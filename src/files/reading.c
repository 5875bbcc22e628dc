#include "files.h"

//== reading ===========================================================================================================

/* Sets the error `code` for an error at byte `at` of a file (OPDI_NOWHERE: no byte is named).  Control characters in
   the message, which may come from the file, become '?'.  Returns -1. */
static int opdi_bad_file(const opdi_source *source, opd_code code, size_t at, const char *text) {
    char place[32] = "", all[1600];
    if (at != OPDI_NOWHERE) { snprintf(place, sizeof place, ", byte %llu", (unsigned long long)at); }
    (void)snprintf(all, sizeof all, "%s: %.500s%s%.300s%s%s: %.500s", source->who, source->path,
                   source->entry ? ", entry '" : "", source->entry ? source->entry : "", source->entry ? "'" : "",
                   place, text);
    for (char *here = all; *here; here++) { if ((unsigned char)*here < 32 || *here == 127) { *here = '?'; } }
    return opd_fail(code, "%s", all);
}
OPD_PRINTF_LIKE(3, 4) OPDI_INTERNAL int opdi_bad(const opdi_source *source, size_t at, const char *format, ...) {
    char text[512];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return opdi_bad_file(source, OPD_ERROR_FILE, at, text);
}
/* Sets an error with the text `what` and the system's message for errno.  Returns -1. */
OPDI_INTERNAL int opdi_bad_errno(const opdi_source *source, size_t at, const char *what) {
    const opd_code code = opdi_errno_code(OPD_ERROR_FILE);
    char text[512];
    (void)snprintf(text, sizeof text, "%s: %s", what, strerror(errno));
    return opdi_bad_file(source, code, at, text);
}

OPDI_INTERNAL opdi_bulk *opdi_bulk_new(void) {
    opdi_bulk *bulk = (opdi_bulk *)opdi_alloc(sizeof *bulk);
    if (!bulk) { return NULL; }
    memset(bulk, 0, sizeof *bulk);
    bulk->refs = 1;
    return bulk;
}
OPDI_INTERNAL void opdi_bulk_drop(opdi_bulk *bulk) {
    opd_plugin *plugin = bulk->plugin;
    if (opdi_ref_down(&bulk->refs) != 0) { return; }
#if defined(OPDI_MAPS)
    if (bulk->mapped) { (void)munmap(bulk->data, bulk->length); }
#endif
    if (bulk->block) { opdi_free(bulk->data, bulk->block); }
    if (bulk->deleter) { bulk->deleter(bulk->data, bulk->user); }
    opdi_free(bulk, sizeof *bulk);
    if (plugin) { opdi_plugin_let_go(plugin); }
}
OPDI_INTERNAL void opdi_bulk_let_go(void *data, void *user) {
    (void)data;
    opdi_bulk_drop((opdi_bulk *)user);
}

/* Returns true if the path leads to something that is not a regular file, such as a pipe or device.  Such things are
   read and written directly. */
OPDI_INTERNAL bool opdi_is_special(const char *path) {
#if defined(OPDI_MAPS)
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode);
#else
    (void)path;
    return false;
#endif
}
/* Maps a whole file into memory (bulk->data).  Returns false if that is not possible.  Writing to the map changes only
   the memory of this process, not the file. */
static bool opdi_bulk_map(opdi_bulk *bulk, const char *path) {
#if defined(OPDI_MAPS)
#if defined(MAP_NORESERVE)
    const int flags = MAP_PRIVATE | MAP_NORESERVE;
#else
    const int flags = MAP_PRIVATE;
#endif
    struct stat st;
    int fd;
    if (opdi_is_special(path) || (fd = open(path, O_RDONLY)) < 0) { return false; }
    if (fstat(fd, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size <= SIZE_MAX / 2) {
        void *memory = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, flags, fd, 0);
        bulk->mapped = memory != MAP_FAILED;
        if (bulk->mapped) {
            bulk->data = (unsigned char *)memory;
            bulk->length = (size_t)st.st_size;
        }
    }
    (void)close(fd);
#else
    (void)bulk;
    (void)path;
#endif
    return bulk->mapped;
}

OPDI_INTERNAL int opdi_bulk_room(opdi_bulk *bulk, uint64_t count) {
    unsigned char *data = count <= SIZE_MAX / 2 ? (unsigned char *)opdi_alloc((size_t)count) : NULL;
    if (!data) { return opd_ok() ? opd_fail(OPD_ERROR_MEMORY, "out of memory") : -1; }
    if (bulk->length) { memcpy(data, bulk->data, bulk->length); }
    if (bulk->block) { opdi_free(bulk->data, bulk->block); }
    bulk->data = data;
    bulk->block = (size_t)count;
    return 0;
}
/* Reads a file that cannot be mapped into bulk and *source.  If `told` is NULL, reads up to the file's end.  If it is
   not NULL, the file is a pipe or device, which may have no end, and `told` computes the length.  Returns 0, or -1 on
   failure; then the error may not be set yet. */
static int opdi_bulk_read(opdi_bulk *bulk, opdi_source *source, FILE *file, opdi_told_fn told) {
    uint64_t want = told ? told(source) : 65536;
    size_t got = 1;
    while (got && bulk->length < want) {
        if (bulk->block < want && opdi_bulk_room(bulk, want)) { return -1; }
        got = fread(bulk->data + bulk->length, 1, bulk->block - bulk->length, file);
        bulk->length += got;
        source->data = bulk->data;
        source->length = bulk->length;
        if (bulk->length == want) { want = told ? told(source) : 2 * want; }
    }
    return ferror(file) || !opd_ok() ? -1 : 0;
}
/* Maps or reads the whole file `path`.  Fills `source` with the names for error messages (`who`, path) and with the
   bytes. `told` computes the length of a pipe's data.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_bulk *opdi_bulk_open(opdi_source *source, const char *who, const char *path, opdi_told_fn told) {
    memset(source, 0, sizeof *source);
    source->who = who;
    source->path = path;
    if (!opd_ok()) { return NULL; }
    if (!path) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the path is NULL", who);
        return NULL;
    }
    opdi_bulk *bulk = opdi_bulk_new();
    if (bulk && !opdi_bulk_map(bulk, path)) {
        FILE *file = fopen(path, "rb");
        int wrong = !file || opdi_bulk_read(bulk, source, file, opdi_is_special(path) ? told : NULL);
        if (wrong && opd_ok()) { (void)opdi_bad_errno(source, OPDI_NOWHERE, "cannot be read"); }
        if (file) { (void)fclose(file); }
        if (wrong) {
            opdi_bulk_drop(bulk);
            return NULL;
        }
    }
    if (bulk) {
        source->data = bulk->data;
        source->length = bulk->length;
    }
    return bulk;
}

/* Returns the next character that is not a blank, without skipping it, or -1 at the end. */
OPDI_INTERNAL int opdi_look_peek(opdi_look *look) {
    while (look->at < look->end) {
        const int ch = look->source->data[look->at];
        if (ch != ' ' && ch != '\n' && ch != '\t' && ch != '\r') { return ch; }
        look->at++;
    }
    return -1;
}
OPDI_INTERNAL int opdi_look_wrong(opdi_look *look, const char *expected) {
    const int ch = opdi_look_peek(look);
    if (ch < 0) { return opdi_bad(look->source, look->at, "expected %s, but the header ends here", expected); }
    return opdi_bad(look->source, look->at, ch > 32 && ch < 127 ? "expected %s, not '%c'" : "expected %s, not \\x%02x",
                    expected, ch);
}
OPDI_INTERNAL int opdi_look_take(opdi_look *look, char ch) {
    const char expected[] = {'\'', ch, '\'', 0};
    if (opdi_look_peek(look) != ch) { return opdi_look_wrong(look, expected); }
    look->at++;
    return 0;
}
OPDI_INTERNAL bool opdi_look_has(opdi_look *look, char ch) {
    if (opdi_look_peek(look) != ch) { return false; }
    look->at++;
    return true;
}
OPDI_INTERNAL bool opdi_look_word(opdi_look *look, const char *word) {
    const size_t length = strlen(word);
    (void)opdi_look_peek(look);
    if (look->end - look->at < length || memcmp(look->source->data + look->at, word, length) != 0) { return false; }
    look->at += length;
    return true;
}
OPDI_INTERNAL int opdi_look_count(opdi_look *look, int64_t *values) {
    const int first = opdi_look_peek(look);
    const size_t begin = look->at;
    if (first < '0' || first > '9') { return opdi_look_wrong(look, "a number"); }
    for (*values = 0; look->at < look->end; look->at++) {
        const int digit = look->source->data[look->at] - '0';
        if (digit < 0 || digit > 9) { break; }
        if (*values > (INT64_MAX - digit) / 10) { return opdi_bad(look->source, begin, "the number is too large"); }
        *values = *values * 10 + digit;
    }
    return first == '0' && look->at > begin + 1 ? opdi_bad(look->source, begin, "the number begins with 0") : 0;
}
/* Returns the number of bytes of a tensor of these sizes, whose elements have `bits` bits.  If the bytes are not whole
   or are too many for any memory, returns -1 and sets an error at byte `at`. */
OPDI_INTERNAL int64_t opdi_sizes_bytes(const opdi_source *source, size_t at, const int64_t *sizes, int ndim,
                                       int64_t bits) {
    const int64_t limit = INT64_C(1) << 62;
    int64_t count = bits;
    bool zero = false;
    for (int i = 0; i < ndim; i++) {
        if (sizes[i] == 0) {
            zero = true;
            continue;
        }
        if (sizes[i] > limit / count) { return opdi_bad(source, at, "the sizes are too large for any memory"); }
        count *= sizes[i];
    }
    if (!zero && count % 8) { return opdi_bad(source, at, "the elements do not fill whole bytes"); }
    return zero ? 0 : count / 8;
}
OPDI_INTERNAL int opdi_bools_check(const opdi_source *source, size_t at, opd_scalar_type dtype, const void *data,
                                   size_t size) {
    const size_t right = dtype == OPD_BOOL ? opdi_bools(data, size) : size;
    return right == size ? 0 : opdi_bad(source, at + right, "a bool has the value %d, but must be 0 or 1",
                                        ((const unsigned char *)data)[right]);
}
