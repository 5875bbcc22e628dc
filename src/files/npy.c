#include "files.h"

//== .npy ==============================================================================================================

/* For each dtype, in the order of opdi_dtype_at: the kind and size in NumPy's notation, or "" if NumPy does not have
   the dtype. */
OPDI_INTERNAL const char opdi_npy_kinds[OPDI_DTYPES][4] = {
    "u1", "i1", "i2", "i4", "i8", "f2", "f4", "f8", "", "c8", "c16", "b1", "", "", "", "", "", "", "", "", "u2", "u4",
    "u8", ""};
typedef struct opdi_npy {
    opd_scalar_type dtype;
    bool swap, fortran;
    int ndim;
    int64_t sizes[OPD_MAX_DIMS], bytes;
    size_t at;                   /* position of the elements */
} opdi_npy;

/* Reads a string in either kind of quotes, without escapes.  Sets *text to its first character and *count to its
   length.  Returns 0, or -1 and sets an error. */
static int opdi_npy_string(opdi_scanner *scanner, const char **text, size_t *count) {
    const int quote = opdi_scanner_peek(scanner);
    if (quote != '\'' && quote != '"') { return opdi_scanner_error(scanner, "a string"); }
    *text = (const char *)scanner->source->data + ++scanner->at;
    for (*count = 0; scanner->at < scanner->end && scanner->source->data[scanner->at] != quote; scanner->at++,
         ++*count) {
        if (scanner->source->data[scanner->at] == '\\' || scanner->source->data[scanner->at] < 32) {
            return opdi_scanner_error(scanner, "a plain string");
        }
    }
    return opdi_scanner_take(scanner, (char)quote);
}
/* Reads the dtype and byte order of a .npy header ('<f4', for example).  Returns 0, or -1 and sets an error. */
static int opdi_npy_descr(opdi_scanner *scanner, opdi_npy *npy) {
    const int first = opdi_scanner_peek(scanner);
    const size_t begin = scanner->at;
    const char *text;
    size_t length;
    if (first == '[' || first == '(' || first == '{') {
        return opdi_bad(scanner->source, begin,
                        "the array has a structured dtype: only arrays of one plain dtype can be "
                        "read");
    }
    if (opdi_npy_string(scanner, &text, &length)) { return -1; }
    npy->swap = length && (*text == '<' || *text == '>') && (*text == '>') != opdi_big_endian();
    if (length && strchr("<>=|", *text) && *text) {
        text++;
        length--;
    }
    for (int i = 0; i <= OPD_UINT64; i++) {
        const char *const kind = opdi_npy_kinds[opdi_dtype_at(i)];
        if (*kind && strlen(kind) == length && memcmp(kind, text, length) == 0) {
            npy->dtype = (opd_scalar_type)i;
            return 0;
        }
    }
    return opdi_bad(scanner->source, begin,
                    length && *text == 'O' ? "the array contains Python objects ('%.*s'), which cannot be read"
                    : "the dtype '%.*s' is not supported", (int)OPDI_MIN(length, 100), text);
}
static int opdi_npy_shape(opdi_scanner *scanner, opdi_npy *npy) {
    bool comma = true;
    if (opdi_scanner_take(scanner, '(')) { return -1; }
    for (npy->ndim = 0; opdi_scanner_peek(scanner) != ')'; npy->ndim++) {
        if (npy->ndim == OPD_MAX_DIMS) {
            return opdi_bad(scanner->source, scanner->at, "the array has more than %d dimensions", OPD_MAX_DIMS);
        }
        if (!comma) { return opdi_scanner_error(scanner, "',' or ')'"); }
        if (opdi_scanner_count(scanner, &npy->sizes[npy->ndim])) { return -1; }
        /* an L after a number, as Python 2 writes it */
        if (scanner->at < scanner->end && scanner->source->data[scanner->at] == 'L') { scanner->at++; }
        comma = opdi_scanner_has(scanner, ',');
    }
    if (npy->ndim == 1 && !comma) { return opdi_scanner_error(scanner, "',' after the only size"); }
    return opdi_scanner_take(scanner, ')');
}
/* Reads the dictionary of a .npy header, which must have each of its three keys once.  Returns 0, or -1 and sets an
   error. */
static int opdi_npy_fields(opdi_scanner *scanner, opdi_npy *npy) {
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    int seen = 0, k;
    if (opdi_scanner_take(scanner, '{')) { return -1; }
    while (opdi_scanner_peek(scanner) != '}') {
        const size_t begin = scanner->at;
        const char *key;
        size_t length;
        int rc;
        if (opdi_npy_string(scanner, &key, &length)) { return -1; }
        for (k = 0; k < 3 && (strlen(keys[k]) != length || memcmp(keys[k], key, length) != 0); k++) { }
        if (k == 3 || seen >> k & 1) {
            return opdi_bad(scanner->source, begin, "the key '%.*s' is %s", (int)OPDI_MIN(length, 100), key,
                            k < 3 ? "given twice" : "not one of descr, fortran_order and shape");
        }
        seen |= 1 << k;
        if (opdi_scanner_take(scanner, ':')) { return -1; }
        if (k == 1) {
            npy->fortran = opdi_scanner_word(scanner, "True");
            rc = npy->fortran || opdi_scanner_word(scanner, "False") ? 0 : opdi_scanner_error(scanner, "True or False");
        } else {
            rc = k ? opdi_npy_shape(scanner, npy) : opdi_npy_descr(scanner, npy);
        }
        if (rc) { return -1; }
        if (!opdi_scanner_has(scanner, ',') && opdi_scanner_peek(scanner) != '}') {
            return opdi_scanner_error(scanner, "',' or '}'");
        }
    }
    for (k = 0; k < 3; k++) {
        if (!(seen >> k & 1)) { return opdi_bad(scanner->source, scanner->at, "the key '%s' is missing", keys[k]); }
    }
    scanner->at++;
    return opdi_scanner_peek(scanner) < 0 ? 0 : opdi_scanner_error(scanner, "nothing");
}
/* Reads the whole header of a .npy file, and computes the number of bytes of the array.  Returns 0, or -1 and sets an
   error. */
static int opdi_npy_head(const opdi_source *source, opdi_npy *npy) {
    opdi_scanner scanner;
    if (source->length < 10) {
        return opdi_bad(source, 0, "%llu bytes are too few for a .npy file", (unsigned long long)source->length);
    }
    if (memcmp(source->data, "\x93NUMPY", 6) != 0) {
        return opdi_bad(source, 0, "this is not a .npy file, which begins with \\x93NUMPY");
    }
    if (source->data[6] < 1 || source->data[6] > 3 || source->data[7]) {
        return opdi_bad(source, 6, "the file has version %d.%d of the format, but only 1.0, 2.0 and 3.0 can be read",
                        source->data[6], source->data[7]);
    }
    scanner.source = source;
    scanner.at = source->data[6] == 1 ? 10 : 12;
    size_t length = source->data[6] == 1 ? opdi_le16(source->data + 8) : source->length < 12 ? SIZE_MAX
        : opdi_le32(source->data + 8);
    if (source->length < scanner.at || length > source->length - scanner.at) {
        return opdi_bad(source, 8, "the header does not end within the file, which has %llu bytes",
                        (unsigned long long)source->length);
    }
    npy->at = scanner.end = scanner.at + length;
    if (opdi_npy_fields(&scanner, npy)) { return -1; }
    npy->bytes = opdi_sizes_bytes(source, npy->at, npy->sizes, npy->ndim, 8 * (int64_t)opd_dtype_size(npy->dtype));
    return npy->bytes < 0 ? -1 : 0;
}
static uint64_t opdi_npy_length(const opdi_source *source) {
    const unsigned char *at = source->data;
    opdi_npy npy;
    if (source->length < 12) { return 12; }
    if (memcmp(at, "\x93NUMPY", 6) != 0) { return 0; }
    uint64_t end = at[6] == 1 ? 10 + (uint64_t)opdi_le16(at + 8) : 12 + (uint64_t)opdi_le32(at + 8);
    memset(&npy, 0, sizeof npy);
    return source->length < end ? end : opdi_npy_head(source, &npy) ? 0 : npy.at + (uint64_t)npy.bytes;
}
static int opdi_npy_header(const opdi_source *source, opdi_npy *npy) {
    if (opdi_npy_head(source, npy)) { return -1; }
    if ((uint64_t)npy->bytes != source->length - npy->at) {
        return opdi_bad(source, npy->at, "the array has %lld bytes, but the file has %llu bytes from here on",
                        (long long)npy->bytes, (unsigned long long)(source->length - npy->at));
    }
    return 0;
}
/* Returns the array of a .npy file as a new tensor.  Returns a reference, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_npy_read(const opdi_source *source) {
    int64_t strides[OPD_MAX_DIMS], step = 1;
    opdi_npy npy;
    memset(&npy, 0, sizeof npy);
    if (opdi_npy_header(source, &npy)) { return NULL; }
    for (int i = 0; i < npy.ndim; i++) {
        strides[i] = step;
        step *= OPDI_MAX(npy.sizes[i], 1);
    }
    opd_tensor *tensor = opdi_tensor_make(npy.sizes, npy.fortran ? strides : NULL, npy.ndim, npy.dtype, OPD_CPU);
    if (!tensor) { return NULL; }
    if (npy.bytes) { memcpy(tensor->data, source->data + npy.at, (size_t)npy.bytes); }
    if (npy.swap) {
        opdi_swap(tensor->data, (size_t)npy.bytes, opd_dtype_size(npy.dtype) >> opd_dtype_is_complex(npy.dtype));
    }
    if (opdi_bools_check(source, npy.at, npy.dtype, tensor->data, (size_t)npy.bytes)) {
        opdi_drop(tensor);
        return NULL;
    }
    return tensor;
}
opd_tensor *opd_npy_load(const char *path) {
    opdi_source source;
    opdi_file_buffer *buffer = opdi_file_buffer_open(&source, "opd_npy_load", path, opdi_npy_length);
    opd_tensor *tensor = buffer ? opdi_npy_read(&source) : NULL;
    if (buffer) { opdi_file_buffer_drop(buffer); }
    return tensor ? opdi_own(tensor) : NULL;
}
opd_tensor *opd_npy_parse(const void *data, size_t size) {
    opdi_source source = {"opd_npy_parse", "memory", /* entry, data, length */ NULL, NULL, 0};
    source.data = (const unsigned char *)data;
    source.length = size;
    if (!opd_ok()) { return NULL; }
    if (!data) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_npy_parse: the data is NULL");
        return NULL;
    }
    opd_tensor *tensor = opdi_npy_read(&source);
    return tensor ? opdi_own(tensor) : NULL;
}
