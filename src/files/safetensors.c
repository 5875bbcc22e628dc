#include "files.h"

//== safetensors: the header ===========================================================================================

/* Reads a JSON string and appends it to `text`, with a zero after it.  Sets *at to its position in text.  Returns 0, or
   -1 and sets an error. */
static int opdi_json_string(opdi_scanner *scanner, opdi_string *text, size_t *at) {
    *at = text->length;
    if (opdi_scanner_take(scanner, '"')) { return -1; }
    while (scanner->at < scanner->end && scanner->source->data[scanner->at] != '"') {
        const unsigned char *here = scanner->source->data + scanner->at;
        const size_t count = *here < 32 ? 0 : opdi_utf8(here, scanner->end - scanner->at);
        char out[4];
        size_t made;
        if (count == 0) {
            return opdi_bad(scanner->source, scanner->at,
                            *here < 32 ? "the string contains a control character" : "the string is not UTF-8");
        }
        scanner->at += count;
        if (*here != '\\') {
            opdi_string_add_n(text, (const char *)here, count);
            continue;
        }
        if ((made = opdi_json_escape(scanner, out)) == 0) { return -1; }
        opdi_string_add_n(text, out, made);
    }
    opdi_string_add_n(text, "", 1);
    if (opdi_scanner_take(scanner, '"')) { return -1; }
    return text->failed ? -1 : 0;
}
/* Skips a JSON value whose key has no meaning in the format.  Returns 0, or -1 and sets an error. */
static int opdi_safetensors_skip(opd_tensor_file *file, opdi_scanner *scanner, int depth) {
    const int first = opdi_scanner_peek(scanner);
    const char end = first == '{' ? '}' : ']';
    const size_t was = file->text.length;
    size_t at;
    int rc = 0;
    if (opdi_node_denied()) { return -1; }
    if (depth > opdi_depth_most(OPDI_JSON_DEPTH)) {
        return opdi_bad(scanner->source, scanner->at, "lists and objects are nested more than %d deep",
                        opdi_depth_most(OPDI_JSON_DEPTH));
    }
    switch (first) {
    case '"': rc = opdi_json_string(scanner, &file->text, &at); break;
    case 't': rc = opdi_scanner_word(scanner, "true") ? 0 : opdi_scanner_error(scanner, "a value"); break;
    case 'f': rc = opdi_scanner_word(scanner, "false") ? 0 : opdi_scanner_error(scanner, "a value"); break;
    case 'n': rc = opdi_scanner_word(scanner, "null") ? 0 : opdi_scanner_error(scanner, "a value"); break;
    case -1: rc = opdi_scanner_error(scanner, "a value"); break;
    case '{': case '[':
        scanner->at++;
        for (int more = !opdi_scanner_has(scanner, end); rc == 0 && more;) {
            rc = (first == '{' && (opdi_json_string(scanner, &file->text, &at) || opdi_scanner_take(scanner, ':'))) ||
                opdi_safetensors_skip(file, scanner, depth + 1) || (more = opdi_json_more(scanner, end)) < 0 ? -1 : 0;
        }
        break;
    default: rc = opdi_json_number(scanner); break;
    }
    file->text.length = was;
    return rc;
}
/* Reads the __metadata__ of a safetensors header, which may be null.  Returns 0, or -1 and sets an error. */
static int opdi_safetensors_metadata(opd_tensor_file *file, opdi_scanner *scanner) {
    opdi_string keys = {NULL, 0, 0, false};       /* the keys, an array of opdi_sorted; place: where the key begins in
                                                     the file, in bytes */
    const opdi_sorted *same;
    int rc = 0;
    if (opdi_scanner_word(scanner, "null")) { return 0; }
    if (file->meta.length) { return opdi_bad(scanner->source, scanner->at, "__metadata__ is given twice"); }
    if (opdi_scanner_take(scanner, '{')) { return -1; }
    for (int more = !opdi_scanner_has(scanner, '}'); rc == 0 && more; ) {
        opdi_sorted key;
        size_t pair[2];
        memset(&key, 0, sizeof key);
        key.place = (int64_t)scanner->at;
        rc = opdi_json_string(scanner, &file->text, &pair[0]) || opdi_scanner_take(scanner, ':') ||
            opdi_json_string(scanner, &file->text, &pair[1]) || (more = opdi_json_more(scanner, '}')) < 0 ? -1 : 0;
        if (rc) { break; }
        key.name = file->text.data + pair[0];
        opdi_string_add_n(&keys, (const char *)(const void *)&key, sizeof key);
        opdi_string_add_n(&file->meta, (const char *)(const void *)pair, sizeof pair);
        file->nmeta++;
        rc = keys.failed || file->meta.failed ? -1 : 0;
    }
    if (rc == 0 && (same = opdi_same_names((opdi_sorted *)(void *)keys.data, file->nmeta)) != NULL) {
        rc = opdi_bad(scanner->source, (size_t)OPDI_MAX(same[-1].place, same->place),
                      "the metadata has the key '%.100s' twice", same->name);
    }
    opdi_string_free(&keys);
    return rc;
}
/* Reads a list of at most `most` numbers, and appends them to file->dims.  Returns how many there are, or -1 and sets
   an error. */
static int opdi_safetensors_numbers(opd_tensor_file *file, opdi_scanner *scanner, int most) {
    int count = 0;
    if (opdi_scanner_take(scanner, '[')) { return -1; }
    for (int more = !opdi_scanner_has(scanner, ']'); more; count++) {
        int64_t value;
        if (count == most) { return opdi_bad(scanner->source, scanner->at, "the list has more than %d numbers", most); }
        if (opdi_scanner_count(scanner, &value)) { return -1; }
        opdi_string_add_n(&file->dims, (const char *)(const void *)&value, sizeof value);
        if (file->dims.failed || (more = opdi_json_more(scanner, ']')) < 0) { return -1; }
    }
    return count;
}
static int opdi_safetensors_dtype(opd_tensor_file *file, opdi_scanner *scanner) {
    const size_t begin = scanner->at, was = file->text.length;
    size_t at;
    int row;
    if (opdi_json_string(scanner, &file->text, &at)) { return -1; }
    for (row = 0; row < OPDI_SAFETENSORS_DTYPES && strcmp(opdi_safetensors_dtypes[row].name, file->text.data + at) != 0;
         row++) { }
    if (row == OPDI_SAFETENSORS_DTYPES) {
        return opdi_bad(scanner->source, begin, "'%.100s' is not a dtype of safetensors", file->text.data + at);
    }
    file->text.length = was;
    return row;
}
/* Reads {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, each of these keys once, in any order, and skips
   other keys. `base` is the position in the file from which data_offsets are counted.  Returns 0, or -1 and sets an
   error. */
static int opdi_safetensors_tensor(opd_tensor_file *file, opdi_scanner *scanner, opdi_file_entry *named, size_t base) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    size_t at[2] = {0, 0};
    int seen = 0, k;
    if (opdi_scanner_take(scanner, '{')) { return -1; }
    for (int more = !opdi_scanner_has(scanner, '}'); more; ) {
        const size_t was = file->text.length, where = scanner->at;
        size_t key;
        if (opdi_json_string(scanner, &file->text, &key)) { return -1; }
        for (k = 0; k < 3 && strcmp(keys[k], file->text.data + key) != 0; k++) { }
        if (k < 3 && seen >> k & 1) {
            return opdi_bad(scanner->source, where, "the key '%.100s' is given twice", file->text.data + key);
        }
        file->text.length = was;
        seen |= 1 << k;
        if (opdi_scanner_take(scanner, ':')) { return -1; }
        if (k == 3) {
            if (opdi_safetensors_skip(file, scanner, 0)) { return -1; }
        } else if (k == 0) {
            if ((named->row = opdi_safetensors_dtype(file, scanner)) < 0) { return -1; }
        } else {
            const size_t from = scanner->at;
            int count;
            at[k - 1] = file->dims.length / sizeof(int64_t);
            if ((count = opdi_safetensors_numbers(file, scanner, k == 1 ? OPD_MAX_DIMS : 2)) < 0) { return -1; }
            if (k == 1) { named->ndim = count; }
            else if (count != 2) {
                return opdi_bad(scanner->source, from, "data_offsets must be two numbers, not %d", count);
            }
        }
        if ((more = opdi_json_more(scanner, '}')) < 0) { return -1; }
    }
    for (k = 0; k < 3; k++) {
        if (!(seen >> k & 1)) { return opdi_bad(scanner->source, scanner->at, "the key '%s' is missing", keys[k]); }
    }
    named->dims = at[0];
    const int64_t *offsets = (const int64_t *)(void *)file->dims.data + at[1];
    int64_t bytes = opdi_sizes_bytes(scanner->source, named->where, (const int64_t *)(void *)file->dims.data + at[0],
                                     named->ndim, opdi_safetensors_dtypes[named->row].bits);
    if (bytes < 0) { return -1; }
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > file->source.length - base) {
        return opdi_bad(scanner->source, named->where,
                        "data_offsets [%lld, %lld] are outside of the data, which has %llu "
                        "bytes", (long long)offsets[0], (long long)offsets[1],
                        (unsigned long long)(file->source.length - base));
    }
    if (offsets[1] - offsets[0] != bytes) {
        return opdi_bad(scanner->source, named->where, "data_offsets [%lld, %lld] give %lld bytes, but dtype and shape "
                        "give %lld", (long long)offsets[0], (long long)offsets[1], (long long)(offsets[1] - offsets[0]),
                        (long long)bytes);
    }
    named->begin = named->data = base + (size_t)offsets[0];
    named->end = base + (size_t)offsets[1];
    return 0;
}
/* Allocates file->text with space for `count` bytes, so that names and texts do not move when more are added.  `count`
   is the length of the source, and all names and texts together are not longer.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_text_reserve(opd_tensor_file *file, size_t count) {
    file->text.data = (char *)opdi_alloc(count + 2);
    file->text.cap = file->text.data ? count + 2 : 0;
    return file->text.data ? 0 : -1;
}
/* Reads and checks the header of a safetensors file.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_safetensors_parse(opd_tensor_file *file) {
    opdi_scanner scanner;
    if (file->source.length < 9) {
        return opdi_bad(&file->source, 0, "%llu bytes are too few for a file of tensors",
                        (unsigned long long)file->source.length);
    }
    uint64_t count = opdi_le64(file->source.data);
    if (count > OPDI_SAFETENSORS_HEADER || count > file->source.length - 8) {
        return opdi_bad(&file->source, 0, "this is neither a zip file nor a GGUF file, and no safetensors file, whose "
                        "header would have %llu bytes of %s%llu", (unsigned long long)count,
                        count > OPDI_SAFETENSORS_HEADER ? "at most " : "",
                        count > OPDI_SAFETENSORS_HEADER ? (unsigned long long)OPDI_SAFETENSORS_HEADER
                        : (unsigned long long)(file->source.length - 8));
    }
    scanner.source = &file->source;
    scanner.at = 8;
    scanner.end = 8 + (size_t)count;
    if (file->source.data[8] != '{') {
        const int first = file->source.data[8];
        return opdi_bad(&file->source, 8, first >= 32 && first < 127 ? "the header begins with '%c', not with '{'"
                        : "the header begins with the byte \\x%02x, not with '{'", first);
    }
    scanner.at++;
    if (opdi_text_reserve(file, (size_t)count)) { return -1; }
    for (int more = !opdi_scanner_has(&scanner, '}'); more; ) {
        opdi_file_entry named;
        int rc;
        memset(&named, 0, sizeof named);
        (void)opdi_scanner_peek(&scanner);
        named.where = scanner.at;
        if (opdi_json_string(&scanner, &file->text, &named.name) || opdi_scanner_take(&scanner, ':')) { return -1; }
        if (strcmp(file->text.data + named.name, "__metadata__") == 0) {
            rc = opdi_safetensors_metadata(file, &scanner);
        } else {
            file->source.entry = file->text.data + named.name;
            rc = opdi_safetensors_tensor(file, &scanner, &named, scanner.end) || opdi_file_entry_add(file, &named);
            file->source.entry = NULL;
        }
        if (rc || (more = opdi_json_more(&scanner, '}')) < 0) { return -1; }
    }
    if (opdi_scanner_peek(&scanner) >= 0) { return opdi_scanner_error(&scanner, "nothing after the header's object"); }
    return opdi_file_entry_check(file, scanner.end, file->source.length, true);
}

/* Returns true for a zip file.  A safetensors file may also begin with the bytes PK, as a part of its header's length;
   then a '{' follows the length. */
OPDI_INTERNAL bool opdi_is_zip(const opdi_source *source) {
    return source->length >= 8 && source->data[0] == 'P' && source->data[1] == 'K' &&
        (source->data[2] == 5 || opdi_le64(source->data) > OPDI_SAFETENSORS_HEADER ||
         (source->length > 8 && source->data[8] != '{'));
}
/* An opdi_file_length_fn: returns the length of a safetensors file.  Scans the header for the
   "data_offsets":[begin,end] with the largest end, where the file ends; opdi_safetensors_parse checks the header
   later. */
OPDI_INTERNAL uint64_t opdi_safetensors_length(const opdi_source *source) {
    static const char key[] = "\"data_offsets\"";
    const uint64_t head = source->length < 9 ? 1 : opdi_le64(source->data);
    opdi_scanner scanner;
    uint64_t most = 0;
    if (opdi_is_gguf(source)) {
        (void)opdi_bad(source, 0, "a GGUF file cannot be read from a pipe: save it first");
        return 0;
    }
    if (opdi_is_zip(source)) {
        (void)opdi_bad(source, 0, "a zip file cannot be read from a pipe, because it is read from its end");
        return 0;
    }
    if (head > OPDI_SAFETENSORS_HEADER || (source->length >= 9 && source->data[8] != '{')) { return 0; }
    if (source->length < 8 + head) { return 8 + head; }
    scanner.source = source;
    scanner.at = 8;
    for (scanner.end = 8 + (size_t)head; scanner.at < scanner.end; scanner.at++) {
        int64_t value;
        if (!opdi_scanner_word(&scanner, key)) { continue; }
        if (opdi_scanner_take(&scanner, ':') || opdi_scanner_take(&scanner, '[') ||
            opdi_scanner_count(&scanner, &value) || opdi_scanner_take(&scanner, ',') ||
            opdi_scanner_count(&scanner, &value)) {
            return 0;
        }
        most = OPDI_MAX(most, (uint64_t)value);
    }
    return scanner.end + most;
}
