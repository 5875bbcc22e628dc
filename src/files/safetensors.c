#include "files.h"

//== safetensors: the header ===========================================================================================

/* Reads a JSON string and appends it to `text`, with a zero behind it.  Sets *at to its position in text.  Returns 0,
   or -1 and sets an error. */
static int opdi_json_string(opdi_look *look, opdi_string *text, size_t *at) {
    *at = text->length;
    if (opdi_look_take(look, '"')) { return -1; }
    while (look->at < look->end && look->source->data[look->at] != '"') {
        const unsigned char *here = look->source->data + look->at;
        const size_t count = *here < 32 ? 0 : opdi_utf8(here, look->end - look->at);
        char out[4];
        size_t made;
        if (count == 0) {
            return opdi_bad(look->source, look->at,
                            *here < 32 ? "the string contains a control character" : "the string is not UTF-8");
        }
        look->at += count;
        if (*here != '\\') {
            opdi_string_add_n(text, (const char *)here, count);
            continue;
        }
        if ((made = opdi_json_escape(look, out)) == 0) { return -1; }
        opdi_string_add_n(text, out, made);
    }
    opdi_string_add_n(text, "", 1);
    if (opdi_look_take(look, '"')) { return -1; }
    return text->failed ? -1 : 0;
}
/* Skips a JSON value whose key has no meaning in the format.  Returns 0, or -1 and sets an error. */
static int opdi_st_skip(opd_tensor_file *file, opdi_look *look, int depth) {
    const int first = opdi_look_peek(look);
    const char end = first == '{' ? '}' : ']';
    const size_t was = file->text.length;
    size_t at;
    int rc = 0;
    if (depth > OPDI_JSON_DEPTH) {
        return opdi_bad(look->source, look->at, "lists and objects are nested more than %d deep",
                        OPDI_JSON_DEPTH);
    }
    switch (first) {
    case '"': rc = opdi_json_string(look, &file->text, &at); break;
    case 't': rc = opdi_look_word(look, "true") ? 0 : opdi_look_wrong(look, "a value"); break;
    case 'f': rc = opdi_look_word(look, "false") ? 0 : opdi_look_wrong(look, "a value"); break;
    case 'n': rc = opdi_look_word(look, "null") ? 0 : opdi_look_wrong(look, "a value"); break;
    case -1: rc = opdi_look_wrong(look, "a value"); break;
    case '{': case '[':
        look->at++;
        for (int more = !opdi_look_has(look, end); rc == 0 && more;) {
            rc = (first == '{' && (opdi_json_string(look, &file->text, &at) || opdi_look_take(look, ':'))) ||
                opdi_st_skip(file, look, depth + 1) || (more = opdi_json_more(look, end)) < 0 ? -1 : 0;
        }
        break;
    default: rc = opdi_json_number(look); break;
    }
    file->text.length = was;
    return rc;
}
/* Reads the __metadata__ of a safetensors header, which may be null.  Returns 0, or -1 and sets an error. */
static int opdi_st_metadata(opd_tensor_file *file, opdi_look *look) {
    opdi_string keys = {NULL, 0, 0, false};       /* opdi_sorted[], where `place` is the position of the key */
    const opdi_sorted *same;
    int rc = 0;
    if (opdi_look_word(look, "null")) { return 0; }
    if (file->meta.length) { return opdi_bad(look->source, look->at, "__metadata__ is given twice"); }
    if (opdi_look_take(look, '{')) { return -1; }
    for (int more = !opdi_look_has(look, '}'); rc == 0 && more; ) {
        opdi_sorted key;
        size_t pair[2];
        memset(&key, 0, sizeof key);
        key.place = (int64_t)look->at;
        rc = opdi_json_string(look, &file->text, &pair[0]) || opdi_look_take(look, ':') ||
            opdi_json_string(look, &file->text, &pair[1]) || (more = opdi_json_more(look, '}')) < 0 ? -1 : 0;
        if (rc) { break; }
        key.name = file->text.data + pair[0];
        opdi_string_add_n(&keys, (const char *)(const void *)&key, sizeof key);
        opdi_string_add_n(&file->meta, (const char *)(const void *)pair, sizeof pair);
        file->nmeta++;
        rc = keys.failed || file->meta.failed ? -1 : 0;
    }
    if (rc == 0 && (same = opdi_same_names((opdi_sorted *)(void *)keys.data, file->nmeta)) != NULL) {
        rc = opdi_bad(look->source, (size_t)OPDI_MAX(same[-1].place, same->place),
                      "the metadata has the key '%.100s' twice", same->name);
    }
    opdi_string_free(&keys);
    return rc;
}
/* Appends the numbers of a list, at most `most`, to the file's dims.  Returns their number, or -1 and sets an error. */
static int opdi_st_numbers(opd_tensor_file *file, opdi_look *look, int most) {
    int count = 0;
    if (opdi_look_take(look, '[')) { return -1; }
    for (int more = !opdi_look_has(look, ']'); more; count++) {
        int64_t value;
        if (count == most) { return opdi_bad(look->source, look->at, "the list has more than %d numbers", most); }
        if (opdi_look_count(look, &value)) { return -1; }
        opdi_string_add_n(&file->dims, (const char *)(const void *)&value, sizeof value);
        if (file->dims.failed || (more = opdi_json_more(look, ']')) < 0) { return -1; }
    }
    return count;
}
static int opdi_st_dtype(opd_tensor_file *file, opdi_look *look) {
    const size_t begin = look->at, was = file->text.length;
    size_t at;
    int row;
    if (opdi_json_string(look, &file->text, &at)) { return -1; }
    for (row = 0; row < OPDI_ST_DTYPES && strcmp(opdi_st_dtypes[row].name, file->text.data + at) != 0; row++) { }
    if (row == OPDI_ST_DTYPES) {
        return opdi_bad(look->source, begin, "'%.100s' is not a dtype of safetensors", file->text.data + at);
    }
    file->text.length = was;
    return row;
}
/* Reads {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, each of these keys once, in any order, and skips
   other keys. `base` is the position in the file from which data_offsets are counted.  Returns 0, or -1 and sets an
   error. */
static int opdi_st_tensor(opd_tensor_file *file, opdi_look *look, opdi_named *named, size_t base) {
    static const char *const keys[] = {"dtype", "shape", "data_offsets"};
    size_t at[2] = {0, 0};
    int seen = 0, k;
    if (opdi_look_take(look, '{')) { return -1; }
    for (int more = !opdi_look_has(look, '}'); more; ) {
        const size_t was = file->text.length, where = look->at;
        size_t key;
        if (opdi_json_string(look, &file->text, &key)) { return -1; }
        for (k = 0; k < 3 && strcmp(keys[k], file->text.data + key) != 0; k++) { }
        if (k < 3 && seen >> k & 1) {
            return opdi_bad(look->source, where, "the key '%.100s' is given twice", file->text.data + key);
        }
        file->text.length = was;
        seen |= 1 << k;
        if (opdi_look_take(look, ':')) { return -1; }
        if (k == 3) {
            if (opdi_st_skip(file, look, 0)) { return -1; }
        } else if (k == 0) {
            if ((named->row = opdi_st_dtype(file, look)) < 0) { return -1; }
        } else {
            const size_t from = look->at;
            int count;
            at[k - 1] = file->dims.length / sizeof(int64_t);
            if ((count = opdi_st_numbers(file, look, k == 1 ? OPD_MAX_DIMS : 2)) < 0) { return -1; }
            if (k == 1) { named->ndim = count; }
            else if (count != 2) {
                return opdi_bad(look->source, from, "data_offsets must be two numbers, not %d", count);
            }
        }
        if ((more = opdi_json_more(look, '}')) < 0) { return -1; }
    }
    for (k = 0; k < 3; k++) {
        if (!(seen >> k & 1)) { return opdi_bad(look->source, look->at, "the key '%s' is missing", keys[k]); }
    }
    named->dims = at[0];
    const int64_t *offsets = (const int64_t *)(void *)file->dims.data + at[1];
    int64_t bytes = opdi_sizes_bytes(look->source, named->where, (const int64_t *)(void *)file->dims.data + at[0],
                                     named->ndim, opdi_st_dtypes[named->row].bits);
    if (bytes < 0) { return -1; }
    if (offsets[0] > offsets[1] || (uint64_t)offsets[1] > file->source.length - base) {
        return opdi_bad(look->source, named->where, "data_offsets [%lld, %lld] are outside of the data, which has %llu "
                        "bytes", (long long)offsets[0], (long long)offsets[1],
                        (unsigned long long)(file->source.length - base));
    }
    if (offsets[1] - offsets[0] != bytes) {
        return opdi_bad(look->source, named->where, "data_offsets [%lld, %lld] give %lld bytes, but dtype and shape "
                        "give %lld", (long long)offsets[0], (long long)offsets[1], (long long)(offsets[1] - offsets[0]),
                        (long long)bytes);
    }
    named->begin = named->data = base + (size_t)offsets[0];
    named->end = base + (size_t)offsets[1];
    return 0;
}
/* Reserves `count` bytes (the length of the source) for all names and texts, which together are never longer than their
   source, so that they do not move when texts are added.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_text_reserve(opd_tensor_file *file, size_t count) {
    file->text.data = (char *)opdi_alloc(count + 2);
    file->text.cap = file->text.data ? count + 2 : 0;
    return file->text.data ? 0 : -1;
}
/* Reads and checks the header of a safetensors file.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_st_parse(opd_tensor_file *file) {
    opdi_look look;
    if (file->source.length < 9) {
        return opdi_bad(&file->source, 0, "%llu bytes are too few for a file of tensors",
                        (unsigned long long)file->source.length);
    }
    uint64_t count = opdi_le64(file->source.data);
    if (count > OPDI_ST_HEADER || count > file->source.length - 8) {
        return opdi_bad(&file->source, 0, "this is neither a zip file nor a safetensors file, whose header would have "
                        "%llu bytes of %s%llu", (unsigned long long)count, count > OPDI_ST_HEADER ? "at most " : "",
                        count > OPDI_ST_HEADER ? (unsigned long long)OPDI_ST_HEADER
                        : (unsigned long long)(file->source.length - 8));
    }
    look.source = &file->source;
    look.at = 8;
    look.end = 8 + (size_t)count;
    if (file->source.data[8] != '{') {
        const int first = file->source.data[8];
        return opdi_bad(&file->source, 8, first >= 32 && first < 127 ? "the header begins with '%c', not with '{'"
                        : "the header begins with the byte \\x%02x, not with '{'", first);
    }
    look.at++;
    if (opdi_text_reserve(file, (size_t)count)) { return -1; }
    for (int more = !opdi_look_has(&look, '}'); more; ) {
        opdi_named named;
        int rc;
        memset(&named, 0, sizeof named);
        (void)opdi_look_peek(&look);
        named.where = look.at;
        if (opdi_json_string(&look, &file->text, &named.name) || opdi_look_take(&look, ':')) { return -1; }
        if (strcmp(file->text.data + named.name, "__metadata__") == 0) {
            rc = opdi_st_metadata(file, &look);
        } else {
            file->source.entry = file->text.data + named.name;
            rc = opdi_st_tensor(file, &look, &named, look.end) || opdi_named_add(file, &named);
            file->source.entry = NULL;
        }
        if (rc || (more = opdi_json_more(&look, '}')) < 0) { return -1; }
    }
    if (opdi_look_peek(&look) >= 0) { return opdi_look_wrong(&look, "nothing after the header's object"); }
    return opdi_named_check(file, look.end, file->source.length, true);
}

/* Returns true for a zip file.  A safetensors file may also begin with the bytes PK, as a part of its header's length;
   then a '{' follows the length. */
OPDI_INTERNAL bool opdi_is_zip(const opdi_source *source) {
    return source->length >= 8 && source->data[0] == 'P' && source->data[1] == 'K' &&
        (source->data[2] == 5 || opdi_le64(source->data) > OPDI_ST_HEADER ||
         (source->length > 8 && source->data[8] != '{'));
}
/* Returns the length of a safetensors file (an opdi_told_fn): the end of the data, from the "data_offsets":[begin,end]
   with the largest end, by a quick scan of the header.  opdi_st_parse checks the header later. */
OPDI_INTERNAL uint64_t opdi_st_told(const opdi_source *source) {
    static const char key[] = "\"data_offsets\"";
    const uint64_t head = source->length < 9 ? 1 : opdi_le64(source->data);
    opdi_look look;
    uint64_t most = 0;
    if (opdi_is_zip(source)) {
        (void)opdi_bad(source, 0, "a zip file cannot be read from a pipe, because it is read from its end");
        return 0;
    }
    if (head > OPDI_ST_HEADER || (source->length >= 9 && source->data[8] != '{')) { return 0; }
    if (source->length < 8 + head) { return 8 + head; }
    look.source = source;
    look.at = 8;
    for (look.end = 8 + (size_t)head; look.at < look.end; look.at++) {
        int64_t value;
        if (!opdi_look_word(&look, key)) { continue; }
        if (opdi_look_take(&look, ':') || opdi_look_take(&look, '[') || opdi_look_count(&look, &value) ||
            opdi_look_take(&look, ',') || opdi_look_count(&look, &value)) {
            return 0;
        }
        most = OPDI_MAX(most, (uint64_t)value);
    }
    return look.end + most;
}
