#include "files.h"

//== reading the metadata of files =====================================================================================

static opdi_gguf_pair *opdi_gguf_key(const opd_tensor_file *file, const char *key) {
    return file && file->gguf && key ? opdi_gguf_find(file, key) : NULL;
}
/* Returns text i of a pair of strings, and writes its length to *length. */
static const char *opdi_gguf_text(const opd_tensor_file *file, const opdi_gguf_pair *pair, int64_t i, size_t *length) {
    const size_t *const places = (const size_t *)(void *)file->gguf->texts.data + pair->value + i;
    *length = places[1] - places[0] - 1;
    return file->text.data + places[0];
}
static const char *opdi_gguf_metadata_key(const opd_tensor_file *file, int64_t i) {
    return file->text.data + opdi_gguf_pair_at(file, i)->key;
}
static const char *opdi_gguf_name_at(const void *file, int64_t i) {
    return opd_tensor_file_metadata_key((const opd_tensor_file *)file, i);
}
/* Sets the error that the metadata has no such key.  Returns -1. */
static int opdi_gguf_missing(const opd_tensor_file *file, const char *key, const char *who) {
    char near_text[400];
    if (!file) { return opd_fail(OPD_ERROR_NOT_FOUND, "%s: the file is NULL", who); }
    (void)opdi_did_you_mean(near_text, key, opdi_gguf_name_at, file, "opd_tensor_file_metadata_key");
    return opd_fail(OPD_ERROR_NOT_FOUND, "%s: the metadata of %.500s has no key '%.300s'%s", who, file->source.path,
                    key ? key : "NULL", near_text);
}
/* Sets the error that the value of a pair cannot be used as it was asked for.  Returns -1. */
static int opdi_gguf_unfit(const opd_tensor_file *file, const opdi_gguf_pair *pair, const char *who, const char *what) {
    return opd_fail(OPD_ERROR_DTYPE, "%s: %.500s, byte %llu: the value of '%.300s' %s", who, file->source.path,
                    (unsigned long long)pair->where, file->text.data + pair->key, what);
}
/* Returns a text as a value.  A text with a zero byte inside cannot be a value: then sets an error. */
static opd_value opdi_gguf_string_value(const opd_tensor_file *file, const opdi_gguf_pair *pair, int64_t i) {
    size_t length;
    const char *const text = opdi_gguf_text(file, pair, i, &length);
    if (strlen(text) != length) {
        (void)opdi_gguf_unfit(file, pair, "opd_tensor_file_metadata_value",
                              "has a zero byte inside a string: read it with opd_tensor_file_metadata_text");
        return opd_value_none();
    }
    return opd_value_str(text);
}
/* Makes the elements of an array for an opd_value.  Returns NULL if memory runs out. */
static void *opdi_gguf_list_make(const opd_tensor_file *file, const opdi_gguf_pair *pair, size_t bytes) {
    void *const list = opdi_alloc(bytes);
    for (int64_t i = 0; list && i < pair->count; i++) {
        int64_t integer = 0;
        double real = 0;
        if (pair->type == OPDI_GGUF_STRING) {
            ((opd_value *)list)[i] = opdi_gguf_string_value(file, pair, i);
            if (!opd_ok()) {
                opdi_free(list, bytes);
                return NULL;
            }
            continue;
        }
        (void)opdi_gguf_element(file, pair, i, &integer, &real);
        if (pair->type == OPDI_GGUF_F32 || pair->type == OPDI_GGUF_F64) { ((double *)list)[i] = real; }
        else if (pair->type == OPDI_GGUF_BOOL) { ((bool *)list)[i] = integer != 0; }
        else { ((int64_t *)list)[i] = integer; }
    }
    return list;
}
/* Returns the elements of an array, which the first call makes; any thread may call this function.  Returns NULL and
   sets an error if it fails. */
static const void *opdi_gguf_list(const opd_tensor_file *file, opdi_gguf_pair *pair) {
    void *list = OPDI_ACQUIRE(&pair->list), *was = NULL;
    if (list) { return list; }
    if (pair->count > INT32_MAX || (uint64_t)pair->count > SIZE_MAX / sizeof(opd_value)) {
        (void)opdi_gguf_unfit(file, pair, "opd_tensor_file_metadata_value", "has too many elements for an opd_value");
        return NULL;
    }
    const size_t bytes = opdi_gguf_list_bytes(pair);
    list = opdi_gguf_list_make(file, pair, bytes);
    while (list && !OPDI_EXCHANGE(&pair->list, &was, list)) {
        if (!was) { continue; }
        opdi_free(list, bytes);                   /* another thread has made it */
        return was;
    }
    return list;
}
/* Writes the value of a pair to *value.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_value_of(const opd_tensor_file *file, opdi_gguf_pair *pair, opd_value *value) {
    int64_t integer = 0;
    double real = 0;
    if (pair->count >= 0) {
        const void *const list = opdi_gguf_list(file, pair);
        if (!list) { return -1; }
        switch (pair->type) {
        case OPDI_GGUF_STRING: *value = opd_value_list((const opd_value *)list, pair->count); break;
        case OPDI_GGUF_BOOL: *value = opd_value_bools((const bool *)list, pair->count); break;
        case OPDI_GGUF_F32: case OPDI_GGUF_F64:
            *value = opd_value_doubles((const double *)list, pair->count);
            break;
        default: *value = opd_value_ints((const int64_t *)list, pair->count);
        }
        return 0;
    }
    (void)opdi_gguf_element(file, pair, 0, &integer, &real);
    switch (pair->type) {
    case OPDI_GGUF_STRING: *value = opdi_gguf_string_value(file, pair, 0); break;
    case OPDI_GGUF_BOOL: *value = opd_value_bool(integer != 0); break;
    case OPDI_GGUF_F32: case OPDI_GGUF_F64: *value = opd_value_double(real); break;
    default: *value = opd_value_int(integer);
    }
    return opd_ok() ? 0 : -1;
}
static const char *opdi_gguf_metadata_string(const opd_tensor_file *file, const char *key) {
    const opdi_gguf_pair *const pair = opdi_gguf_find(file, key);
    if (!pair || pair->type != OPDI_GGUF_STRING || pair->count >= 0) { return NULL; }
    return opdi_gguf_string_value(file, pair, 0).u.s;
}
const char *opd_tensor_file_metadata_key(const opd_tensor_file *file, int64_t i) {
    if (!file || i < 0 || i >= file->nmeta) { return NULL; }
    return file->gguf ? opdi_gguf_metadata_key(file, i)
        : file->text.data + ((const size_t *)(void *)file->meta.data)[2 * i];
}
const char *opd_tensor_file_metadata(const opd_tensor_file *file, const char *key) {
    if (file && file->gguf && key) { return opdi_gguf_metadata_string(file, key); }
    for (int64_t i = 0; file && key && i < file->nmeta; i++) {
        if (strcmp(key, opd_tensor_file_metadata_key(file, i)) == 0) {
            return file->text.data + ((const size_t *)(void *)file->meta.data)[2 * i + 1];
        }
    }
    return NULL;
}
int opd_tensor_file_metadata_value(const opd_tensor_file *file, const char *key, opd_value *value) {
    if (!value) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_file_metadata_value: the pointer to the value is NULL");
    }
    *value = opd_value_none();
    if (!opd_ok()) { return -1; }
    opdi_gguf_pair *const pair = opdi_gguf_key(file, key);
    if (pair) { return opdi_gguf_value_of(file, pair, value); }
    const char *const text = file && !file->gguf && key ? opd_tensor_file_metadata(file, key) : NULL;
    if (!text) { return opdi_gguf_missing(file, key, "opd_tensor_file_metadata_value"); }
    *value = opd_value_str(text);
    return 0;
}
const char *opd_tensor_file_metadata_type(const opd_tensor_file *file, const char *key) {
    const opdi_gguf_pair *const pair = opdi_gguf_key(file, key);
    if (pair) { return opdi_gguf_types[pair->type].name; }
    return file && !file->gguf && key && opd_tensor_file_metadata(file, key) ? "str" : NULL;
}
int64_t opd_tensor_file_metadata_count(const opd_tensor_file *file, const char *key) {
    const opdi_gguf_pair *const pair = opdi_gguf_key(file, key);
    return pair ? pair->count : -1;
}
/* Returns the pair of a key if it has an element i; otherwise returns NULL and sets an error. */
static opdi_gguf_pair *opdi_gguf_pair_with(const opd_tensor_file *file, const char *key, int64_t i, const char *who) {
    if (!opd_ok()) { return NULL; }
    opdi_gguf_pair *const pair = opdi_gguf_key(file, key);
    if (!pair) { (void)opdi_gguf_missing(file, key, who); }
    else if (i < 0 || i >= (pair->count < 0 ? 1 : pair->count)) {
        (void)opd_fail(OPD_ERROR_INDEX, "%s: the value of '%.300s' has no element %lld: it has %lld", who, key,
                       (long long)i, (long long)(pair->count < 0 ? 1 : pair->count));
        return NULL;
    }
    return pair;
}
const char *opd_tensor_file_metadata_text(const opd_tensor_file *file, const char *key, int64_t i, size_t *length) {
    static const char who[] = "opd_tensor_file_metadata_text";
    size_t bytes;
    if (length) { *length = 0; }
    if (file && !file->gguf && key && i == 0 && opd_tensor_file_metadata(file, key)) {
        const char *const value = opd_tensor_file_metadata(file, key);
        if (length) { *length = strlen(value); }
        return opd_ok() ? value : NULL;
    }
    const opdi_gguf_pair *const pair = opdi_gguf_pair_with(file, key, i, who);
    if (!pair) { return NULL; }
    if (pair->type != OPDI_GGUF_STRING) {
        (void)opdi_gguf_unfit(file, pair, who, "is not a string");
        return NULL;
    }
    const char *const text = opdi_gguf_text(file, pair, i, &bytes);
    if (length) { *length = bytes; }
    return text;
}
int opd_tensor_file_metadata_number(const opd_tensor_file *file, const char *key, int64_t i, double *number) {
    static const char who[] = "opd_tensor_file_metadata_number";
    int64_t integer;
    if (!number) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the pointer to the number is NULL", who); }
    *number = 0;
    if (opd_ok() && file && !file->gguf && key && opd_tensor_file_metadata(file, key)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: %.500s: the value of '%.300s' is not a number", who, file->source.path,
                        key);
    }
    const opdi_gguf_pair *const pair = opdi_gguf_pair_with(file, key, i, who);
    if (!pair) { return -1; }
    return opdi_gguf_element(file, pair, i, &integer, number) ? 0
        : opdi_gguf_unfit(file, pair, who, "is not a number");
}
