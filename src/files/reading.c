#include "files.h"

//== reading ===========================================================================================================

/* Sets an error with the code `code` and the message `text`, which also names the file and byte `at` (OPDI_NOWHERE: no
   byte).  Control characters in the message, which may come from the file, become '?'.  Returns -1. */
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
    (void)snprintf(text, sizeof text, "%s: %s", what, opdi_errno_text());
    return opdi_bad_file(source, code, at, text);
}

OPDI_INTERNAL opdi_file_buffer *opdi_file_buffer_new(void) {
    opdi_file_buffer *buffer = (opdi_file_buffer *)opdi_alloc(sizeof *buffer);
    if (!buffer) { return NULL; }
    memset(buffer, 0, sizeof *buffer);
    buffer->refs = 1;
    return buffer;
}
OPDI_INTERNAL void opdi_file_buffer_drop(opdi_file_buffer *buffer) {
    opd_plugin *plugin = buffer->plugin;
    if (opdi_ref_down(&buffer->refs) != 0) { return; }
    if (buffer->mapped) { opdi_file_unmap(buffer->data, buffer->length); }
    if (buffer->block) { opdi_free(buffer->data, buffer->block); }
    if (buffer->deleter) { buffer->deleter(buffer->data, buffer->user); }
    opdi_free(buffer, sizeof *buffer);
    if (plugin) { opdi_plugin_unpin(plugin); }
}
OPDI_INTERNAL void opdi_file_buffer_release(void *data, void *user) {
    (void)data;
    opdi_file_buffer_drop((opdi_file_buffer *)user);
}

/* Maps a whole file into memory (buffer->data).  Returns false if that is not possible.  Writing to the map changes
   only the memory of this process, not the file. */
static bool opdi_file_buffer_map(opdi_file_buffer *buffer, const char *path) {
    void *data;
    size_t length;
    if (!opdi_file_map(path, &data, &length)) { return false; }
    buffer->mapped = true;
    buffer->data = (unsigned char *)data;
    buffer->length = length;
    return true;
}

OPDI_INTERNAL int opdi_file_buffer_reserve(opdi_file_buffer *buffer, uint64_t count) {
    unsigned char *data = count <= SIZE_MAX / 2 ? (unsigned char *)opdi_alloc((size_t)count) : NULL;
    if (!data) { return opd_ok() ? opd_fail(OPD_ERROR_MEMORY, "out of memory") : -1; }
    if (buffer->length) { memcpy(data, buffer->data, buffer->length); }
    if (buffer->block) { opdi_free(buffer->data, buffer->block); }
    buffer->data = data;
    buffer->block = (size_t)count;
    return 0;
}
/* Reads `file`, which cannot be mapped, into buffer and *source.  If `length_of` is NULL, reads up to the file's end.
   Otherwise the file is a pipe or device, which may have no end, and `length_of` computes the length.  Returns 0, or -1
   on failure; then the error may not be set yet. */
static int opdi_file_buffer_read(opdi_file_buffer *buffer, opdi_source *source, FILE *file,
                                 opdi_file_length_fn length_of) {
    uint64_t want = length_of ? length_of(source) : 65536;
    size_t got = 1;
    while (got && buffer->length < want) {
        if (buffer->block < want && opdi_file_buffer_reserve(buffer, want)) { return -1; }
        got = fread(buffer->data + buffer->length, 1, OPDI_MIN(buffer->block - buffer->length, OPDI_FILE_PART), file);
        buffer->length += got;
        source->data = buffer->data;
        source->length = buffer->length;
        if (buffer->length == want) { want = length_of ? length_of(source) : 2 * want; }
    }
    return ferror(file) || !opd_ok() ? -1 : 0;
}
/* Returns a buffer with the bytes of the whole file `path`, mapped or read.  Sets *source to these bytes and to the
   names for error messages (`who`, path).  `length_of` computes the length of a pipe's data.  On failure, returns NULL
   and sets an error. */
OPDI_INTERNAL opdi_file_buffer *opdi_file_buffer_open(opdi_source *source, const char *who, const char *path,
                                                      opdi_file_length_fn length_of) {
    memset(source, 0, sizeof *source);
    source->who = who;
    source->path = path;
    if (!opd_ok()) { return NULL; }
    if (!path) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the path is NULL", who);
        return NULL;
    }
    opdi_file_buffer *buffer = opdi_file_buffer_new();
    if (buffer && !opdi_file_buffer_map(buffer, path)) {
        FILE *file = opdi_file_open(path, "rb");
        int wrong = !file || opdi_file_buffer_read(buffer, source, file, opdi_is_special(path) ? length_of : NULL);
        if (wrong && opd_ok()) { (void)opdi_bad_errno(source, OPDI_NOWHERE, "cannot be read"); }
        if (file) { (void)fclose(file); }
        if (wrong) {
            opdi_file_buffer_drop(buffer);
            return NULL;
        }
    }
    if (buffer) {
        source->data = buffer->data;
        source->length = buffer->length;
    }
    return buffer;
}

/* Returns the next character that is not a blank, without skipping it, or -1 at the end. */
OPDI_INTERNAL int opdi_scanner_peek(opdi_scanner *scanner) {
    while (scanner->at < scanner->end) {
        const int ch = scanner->source->data[scanner->at];
        if (ch != ' ' && ch != '\n' && ch != '\t' && ch != '\r') { return ch; }
        scanner->at++;
    }
    return -1;
}
OPDI_INTERNAL int opdi_scanner_error(opdi_scanner *scanner, const char *expected) {
    const int ch = opdi_scanner_peek(scanner);
    if (ch < 0) { return opdi_bad(scanner->source, scanner->at, "expected %s, but the header ends here", expected); }
    return opdi_bad(scanner->source, scanner->at,
                    ch > 32 && ch < 127 ? "expected %s, not '%c'" : "expected %s, not \\x%02x", expected, ch);
}
OPDI_INTERNAL int opdi_scanner_take(opdi_scanner *scanner, char ch) {
    const char expected[] = {'\'', ch, '\'', 0};
    if (opdi_scanner_peek(scanner) != ch) { return opdi_scanner_error(scanner, expected); }
    scanner->at++;
    return 0;
}
OPDI_INTERNAL bool opdi_scanner_has(opdi_scanner *scanner, char ch) {
    if (opdi_scanner_peek(scanner) != ch) { return false; }
    scanner->at++;
    return true;
}
OPDI_INTERNAL bool opdi_scanner_word(opdi_scanner *scanner, const char *word) {
    const size_t length = strlen(word);
    (void)opdi_scanner_peek(scanner);
    if (scanner->end - scanner->at < length || memcmp(scanner->source->data + scanner->at, word, length) != 0) {
        return false;
    }
    scanner->at += length;
    return true;
}
OPDI_INTERNAL int opdi_scanner_count(opdi_scanner *scanner, int64_t *values) {
    const int first = opdi_scanner_peek(scanner);
    const size_t begin = scanner->at;
    if (first < '0' || first > '9') { return opdi_scanner_error(scanner, "a number"); }
    for (*values = 0; scanner->at < scanner->end; scanner->at++) {
        const int digit = scanner->source->data[scanner->at] - '0';
        if (digit < 0 || digit > 9) { break; }
        if (*values > (INT64_MAX - digit) / 10) { return opdi_bad(scanner->source, begin, "the number is too large"); }
        *values = *values * 10 + digit;
    }
    return first == '0' && scanner->at > begin + 1 ? opdi_bad(scanner->source, begin, "the number begins with 0") : 0;
}
/* Returns the number of bytes of a tensor of these sizes, whose elements have `bits` bits.  If the elements do not fill
   whole bytes, or are too many for any memory, returns -1 and sets an error at byte `at`. */
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
