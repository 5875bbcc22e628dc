#include "files.h"

//== open files ========================================================================================================

void opd_tensor_file_close(opd_tensor_file *file) {
    if (!file) { return; }
    if (file->sorted) {
        opdi_free(file->sorted, file->entries.length / sizeof(opdi_file_entry) * sizeof *file->sorted);
    }
    for (int64_t i = 0; file->runs && i < file->nruns; i++) { opdi_free(file->runs[i].names, file->runs[i].bytes); }
    if (file->runs) { opdi_free(file->runs, (size_t)file->nruns * sizeof *file->runs); }
    opdi_string_free(&file->values);
    const int64_t storages = file->nstorages;
    for (int64_t i = 0; i < storages; i++) { if (file->storages[i]) { opdi_drop(file->storages[i]); } }
    opdi_free(file->storages, (size_t)storages * sizeof *file->storages);
    opdi_string_free(&file->members);
    opdi_string_free(&file->text);
    opdi_string_free(&file->entries);
    opdi_string_free(&file->dims);
    opdi_string_free(&file->meta);
    for (int64_t i = 0; file->gguf && i < file->gguf->nparts; i++) { opd_tensor_file_close(file->gguf->parts[i]); }
    if (file->gguf) { opdi_gguf_free(file); }
    opdi_file_buffer_drop(file->bytes);
    opdi_free(file, sizeof *file + file->path_bytes);
}
/* Makes an opd_tensor_file without entries, which takes over `bytes`.  Returns NULL and sets an error if it fails, and
   returns NULL if `bytes` is NULL, which means that reading has failed. */
static opd_tensor_file *opdi_tensor_file_new(opdi_file_buffer *bytes, const opdi_source *source) {
    const size_t length = bytes ? strlen(source->path) + 1 : 0;
    opd_tensor_file *file = bytes ? (opd_tensor_file *)opdi_alloc(sizeof *file + length) : NULL;
    if (!file) {
        if (bytes) { opdi_file_buffer_drop(bytes); }
        return NULL;
    }
    memset(file, 0, sizeof *file);
    file->bytes = bytes;
    file->path_bytes = length;
    file->source = *source;
    file->source.path = (const char *)memcpy(file + 1, source->path, length);
    return file;
}
static bool opdi_is_npy(const opdi_source *source) {
    return source->length >= 6 && memcmp(source->data, "\x93NUMPY", 6) == 0;
}
/* Makes the opd_tensor_file for the file in `bytes`, with its entries, and takes over `bytes`.  Returns NULL and sets
   an error if it fails, and returns NULL if `bytes` is NULL, which means that reading has failed. */
OPDI_INTERNAL opd_tensor_file *opdi_tensor_file(opdi_file_buffer *bytes, const opdi_source *source) {
    opd_tensor_file *file = opdi_tensor_file_new(bytes, source);
    int rc;
    if (!file) { return NULL; }
    if (opdi_is_npy(&file->source)) {
        rc = opdi_bad(&file->source, 0, "this is a .npy file, which has one tensor: read it with opd_npy_load");
    } else {
        rc = opdi_is_gguf(&file->source) ? opdi_gguf_parse(file) : opdi_is_zip(&file->source) ? opdi_zip_parse(file)
            : opdi_legacy_magic(&file->source) ? opdi_legacy_parse(file) : opdi_safetensors_parse(file);
        const int64_t pickle = rc == 0 && file->zip ? opdi_checkpoint_find(file) : -1;
        if (pickle >= 0) { rc = opdi_checkpoint_parse(file, pickle); }
    }
    if (rc == 0) { return file; }
    opd_tensor_file_close(file);
    return NULL;
}
/* Returns true if the name of entry i of a zip file ends with .npy in the directory.  (The name in file->text lacks
   this ending.) */
static bool opdi_npy_entry(const opd_tensor_file *file, int64_t i) {
    const size_t length = opdi_le16(file->source.data + opdi_file_entry_of(file, i)->where + 28);
    return length > strlen(opdi_file_entry_name(file, i));
}
/* Returns the kind of a zip file, judged by the names of its entries below the root folder. */
static opd_file_kind opdi_zip_kind(const opd_tensor_file *file) {
    bool pickle = false, constants = false, program = false, compiled = false, arrays = file->count > 0;
    for (int64_t i = 0; i < file->count; i++) {
        const char *name = opdi_file_entry_name(file, i), *slash = strchr(name, '/'), *below = slash ? slash + 1 : name;
        pickle = pickle || strcmp(below, "data.pkl") == 0;
        constants = constants || strcmp(below, "constants.pkl") == 0 || strncmp(below, "code/", 5) == 0;
        compiled = compiled || strncmp(below, "data/aotinductor/", 17) == 0;
        program = program || strcmp(below, "archive_format") == 0 ||
            strcmp(below, "serialized_exported_program.json") == 0;
        arrays = arrays && opdi_npy_entry(file, i);
    }
    if (compiled) { return OPD_FILE_COMPILED; }
    if (program) { return OPD_FILE_PROGRAM; }
    if (pickle) { return constants ? OPD_FILE_SCRIPT : OPD_FILE_CHECKPOINT; }
    return arrays ? OPD_FILE_NPZ : OPD_FILE_NONE;
}
/* Returns true if the first `count` bytes of a file, or all bytes of a shorter file, are text. */
static bool opdi_begins_as_text(const opdi_source *source, size_t count) {
    size_t at = 0;
    for (; at < source->length && at < count; at++) {
        const unsigned char byte = source->data[at];
        if ((byte < 32 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 127) { return false; }
    }
    return at > 0;
}
/* Returns true if a file seems to be a zip file, perhaps with a damaged beginning: two or more of its first four bytes
   are correct, and so is its end (if it has at least 8 bytes). */
static bool opdi_was_zip(const opdi_source *source) {
    static const char head[] = "PK\3\4";
    int same = 0;
    for (size_t i = 0; i < 4 && i < source->length; i++) { same += source->data[i] == (unsigned char)head[i]; }
    return source->length >= 4 && same >= 2 && (source->length < 8 || (source->length >= 22 &&
        opdi_le32(source->data + source->length - 22) == 0x06054b50u));
}
/* Returns true if a file seems to be in safetensors format, perhaps damaged.  Such a file either has 8 bytes that are
   not text and then a '{', or its first 8 bytes are a possible length of the header and the second character of the
   header is '"' or '{'. */
static bool opdi_was_safetensors(const opdi_source *source) {
    const uint64_t count = source->length >= 8 ? opdi_le64(source->data) : 0;
    if (source->length < 9) { return source->length == 8 && count && count <= OPDI_SAFETENSORS_HEADER; }
    const bool brace = source->data[8] == '{' && !opdi_begins_as_text(source, 8);
    return brace || (count && count <= OPDI_SAFETENSORS_HEADER && count <= source->length - 8 && source->length > 9 &&
                     (source->data[9] == '"' || source->data[9] == '{'));
}
/* Sets an error if a file is too short to tell its format, or is a .npy file, GGUF file or old checkpoint whose first
   bytes are damaged.  Returns -1 if an error was set, else 0. */
static int opdi_was_known(const opdi_source *source) {
    static const char gguf[] = "GGUF", array[] = "\x93NUMPY";
    static const char old[] = "\x80\2\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    size_t same[2] = {0, 0}, letters = 0;
    for (size_t i = 0; i < sizeof old - 1 && i < source->length; i++) {
        if (i < sizeof array - 1) { same[0] += source->data[i] == (unsigned char)array[i]; }
        same[1] += source->data[i] == (unsigned char)old[i];
    }
    for (size_t i = 0; i < 4 && i < source->length; i++) { letters += source->data[i] == (unsigned char)gguf[i]; }
    if (letters == 3 && source->length >= 24 && opdi_le32(source->data + 4) - 1 < 3) {
        return opdi_bad(source, 0, "the first bytes are nearly right for a GGUF file: the file is damaged");
    }
    if (same[0] >= 5 || same[1] >= 12) {
        return opdi_bad(source, 0, "the first bytes are almost those of %s: the file is damaged",
                        same[0] >= 5 ? "a .npy file" : "a checkpoint of PyTorch before 1.6");
    }
    if (source->length && source->length < 8 && (same[0] >= source->length || !opdi_begins_as_text(source, 8))) {
        return opdi_bad(source, 0, "%llu bytes are too few for a file of tensors: the file is incomplete",
                        (unsigned long long)source->length);
    }
    return 0;
}
opd_file_kind opd_file_kind_of(const char *path) {
    opdi_source source;
    opd_file_kind kind = OPD_FILE_NONE;
    opdi_file_buffer *buffer = opdi_file_buffer_open(&source, "opd_file_kind_of", path, opdi_safetensors_length);
    opd_tensor_file *file = opdi_tensor_file_new(buffer, &source);
    if (!file) { return kind; }
    if (opdi_is_npy(&file->source)) { kind = OPD_FILE_NPY; }
    else if (opdi_is_gguf(&file->source)) { kind = opdi_gguf_parse(file) ? OPD_FILE_NONE : OPD_FILE_GGUF; }
    else if (opdi_legacy_magic(&file->source)) { kind = OPD_FILE_CHECKPOINT; }
    else if (opdi_is_zip(&file->source) || opdi_was_zip(&file->source)) {
        kind = opdi_zip_parse(file) ? OPD_FILE_NONE : opdi_zip_kind(file);
    } else if (opdi_was_known(&file->source) == 0) {
        const int mark = opd_error_mark();
        kind = opdi_safetensors_parse(file) ? OPD_FILE_NONE : OPD_FILE_SAFETENSORS;
        if (!opdi_error_passes() && !opdi_was_safetensors(&file->source)) { (void)opd_error_rewind(mark); }
    }
    opd_tensor_file_close(file);
    return kind;
}
opd_tensor_file *opd_tensor_file_open(const char *path) {
    opdi_source source;
    opdi_file_buffer *buffer = opdi_file_buffer_open(&source, "opd_tensor_file_open", path, opdi_safetensors_length);
    opd_tensor_file *const file = opdi_tensor_file(buffer, &source);
    if (!file || !file->gguf || opdi_gguf_join(file, opdi_tensor_file) == 0) { return file; }
    opd_tensor_file_close(file);
    return NULL;
}
opd_tensor_file *opd_tensor_file_parse(void *data, size_t size, opd_deleter deleter, void *user) {
    opdi_source source = {"opd_tensor_file_parse", "memory", /* entry, data, length */ NULL, NULL, 0};
    opdi_file_buffer *buffer = opd_ok() && data ? opdi_file_buffer_new() : NULL;
    if (opd_ok() && !data) { (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_file_parse: the data is NULL"); }
    if (buffer) {
        buffer->data = (unsigned char *)data;
        buffer->length = size;
        buffer->deleter = deleter;
        buffer->user = user;
        buffer->plugin = opdi_plugin_hold((uintptr_t)deleter);
        source.data = buffer->data;
        source.length = size;
    } else if (deleter) {
        deleter(data, user);
    }
    opd_tensor_file *const file = opdi_tensor_file(buffer, &source);
    if (!file || !file->gguf || opdi_gguf_alone(file) == 0) { return file; }
    opd_tensor_file_close(file);
    return NULL;
}

int64_t opd_tensor_file_count(const opd_tensor_file *file) { return file ? file->count : 0; }
/* Returns the entry to which name number i belongs.  If the entry is a run, sets *k to the number of the run's element,
   else to 0. */
static opdi_file_entry *opdi_entry_of(const opd_tensor_file *file, int64_t i, int64_t *k) {
    int64_t low = 0, high = (int64_t)(file->entries.length / sizeof(opdi_file_entry));
    *k = 0;
    if (high == file->count) { return opdi_file_entry_of(file, i); }
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (opdi_file_entry_of(file, middle)->begin <= (size_t)i) { low = middle; } else { high = middle; }
    }
    *k = i - (int64_t)opdi_file_entry_of(file, low)->begin;
    return opdi_file_entry_of(file, low);
}
/* Returns the names of a run's elements.  The first call makes the names; any thread may call this function.  Returns
   NULL if memory runs out. */
static const char *opdi_run_names(const opd_tensor_file *file, const opdi_file_entry *named) {
    opdi_named_run *const run = &file->runs[named->dims];
    const char *const prefix = file->text.data + named->name;
    const size_t length = strlen(prefix), bytes = run->bytes;
    char *names = OPDI_ACQUIRE(&run->names), *was = NULL;
    if (names || !(names = (char *)opdi_alloc(bytes))) { return names; }
    char *at = names;
    for (size_t k = 0; k < named->end; k++) {
        memcpy(at, prefix, length);
        at += length + 1 + (size_t)snprintf(at + length, 24, "%llu", (unsigned long long)k);
    }
    while (!OPDI_EXCHANGE(&run->names, &was, names)) {
        if (!was) { continue; }
        opdi_free(names, bytes);                   /* another thread has made them */
        return was;
    }
    return names;
}
const char *opd_tensor_file_name(const opd_tensor_file *file, int64_t i) {
    int64_t k;
    if (!file || i < 0 || i >= file->count) { return NULL; }
    const opdi_file_entry *const named = opdi_entry_of(file, i, &k);
    if (!file->checkpoint || !named->end) { return file->text.data + named->name; }
    const char *const names = opdi_run_names(file, named), *const prefix = file->text.data + named->name;
    return names ? names + opdi_run_place((size_t)k, strlen(prefix) + 1) : NULL;
}
/* Returns the first position in file->sorted whose name does not come before the `length` bytes of `name`, or the
   position after the last entry. */
static int64_t opdi_sorted_first(const opd_tensor_file *file, const char *name, size_t length) {
    int64_t low = 0, high = (int64_t)(file->entries.length / sizeof(opdi_file_entry));
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (strncmp(file->sorted[middle].name, name, length) < 0) { low = middle + 1; } else { high = middle; }
    }
    return low;
}
/* Finds the entries of a checkpoint with the name `name` or, if `run` is true, the runs with the prefix `name` that
   have an element k.  Adds their number to *count, and sets the first two of `places` to the indices of their names. */
static void opdi_checkpoint_lookup(const opd_tensor_file *file, const char *name, size_t length, bool run, int64_t k,
                                   int64_t *places, int *count) {
    const int64_t entries = (int64_t)(file->entries.length / sizeof(opdi_file_entry));
    for (int64_t i = opdi_sorted_first(file, name, length); i < entries; i++) {
        const opdi_file_entry *const named = opdi_file_entry_of(file, file->sorted[i].place);
        if (strncmp(file->sorted[i].name, name, length) != 0 || file->sorted[i].name[length]) { break; }
        if (run != (named->end != 0) || (run && (size_t)k >= named->end)) { continue; }
        if (*count < 2) { places[*count] = (int64_t)named->begin + k; }
        ++*count;
    }
}
/* Returns the index of the name `name` (`length` bytes) in a checkpoint, or -1 if there is none.  Returns -1 and sets
   an error if several entries have the name. */
static int64_t opdi_checkpoint_index(const opd_tensor_file *file, const char *name, size_t length) {
    int64_t places[2] = {-1, -1}, k = 0;
    size_t at = length;
    int count = 0;
    opdi_checkpoint_lookup(file, name, length, false, 0, places, &count);
    while (at && name[at - 1] >= '0' && name[at - 1] <= '9') { at--; }
    if (at < length && length - at < 18 && (name[at] != '0' || length - at == 1) && file->nruns) {
        for (size_t i = at; i < length; i++) { k = 10 * k + (name[i] - '0'); }
        opdi_checkpoint_lookup(file, name, at, true, k, places, &count);
    }
    if (count < 2) { return places[0]; }
    opdi_source source = file->source;
    source.entry = name;
    return opdi_bad(&source, OPDI_NOWHERE, "%d entries have this name, such as those at %lld and %lld: read each with "
                    "opd_tensor_file_at or opd_tensor_file_value_at", count, (long long)OPDI_MIN(places[0], places[1]),
                    (long long)OPDI_MAX(places[0], places[1]));
}
int64_t opd_tensor_file_find(const opd_tensor_file *file, const char *name) {
    const size_t length = name ? strlen(name) : 0;
    if (!file || !name) { return -1; }
    if (file->checkpoint) { return opdi_checkpoint_index(file, name, length); }
    int64_t i = opdi_tensor_file_find(file, name, length);
    if (i < 0 && file->zip && length > 4 && memcmp(name + length - 4, ".npy", 4) == 0) {
        i = opdi_tensor_file_find(file, name, length - 4);
    }
    return i;
}
/* Returns the tensor of an entry of a safetensors file, as opdi_file_view does. */
static opd_tensor *opdi_safetensors_read(const opd_tensor_file *file, const opdi_file_entry *named) {
    const opd_scalar_type dtype = opdi_safetensors_dtypes[named->row].dtype;
    const opd_ints sizes = opd_ints_of((const int64_t *)(void *)file->dims.data + named->dims, named->ndim);
    unsigned char *data = file->bytes->data + named->data;
    opdi_source source = file->source;
    source.entry = file->text.data + named->name;
    if (dtype == OPD_DTYPE_NONE) {
        (void)opdi_bad(&source, named->where, "the dtype %s is not supported",
                       opdi_safetensors_dtypes[named->row].name);
        return NULL;
    }
    if (opdi_bools_check(&source, named->data, dtype, data, named->end - named->data)) { return NULL; }
    return opdi_file_view(file->bytes, named->data, named->end - named->data, sizes, dtype);
}
opd_tensor *opd_tensor_file_at(const opd_tensor_file *file, int64_t i) {
    if (!opd_ok()) { return NULL; }
    if (!file || i < 0 || i >= file->count) {
        (void)opd_fail(OPD_ERROR_INDEX, "opd_tensor_file_at: there is no tensor %lld: the file has %lld", (long long)i,
                       (long long)opd_tensor_file_count(file));
        return NULL;
    }
    if (file->checkpoint) {
        int64_t k;
        const opdi_file_entry *const named = opdi_entry_of(file, i, &k);
        return opdi_checkpoint_read(file, named, k);
    }
    if (file->gguf) { return opdi_gguf_read(file, opdi_file_entry_of(file, i)); }
    if (!file->zip) { return opdi_safetensors_read(file, opdi_file_entry_of(file, i)); }
    opd_tensor *tensor = opdi_zip_read(file, opdi_file_entry_of(file, i));
    return tensor ? opdi_own(tensor) : NULL;
}
static const char *opdi_file_name_at(const void *file, int64_t i) {
    return opd_tensor_file_name((const opd_tensor_file *)file, i);
}
/* Sets the error that the file has no `what` ("tensor", "entry") of this name.  Returns -1. */
static int opdi_not_in_file(const opd_tensor_file *file, const char *name, const char *what, const char *function) {
    char near_text[400];
    if (!file) { return opd_fail(OPD_ERROR_NOT_FOUND, "%s: the file is NULL", function); }
    (void)opdi_did_you_mean(near_text, name, opdi_file_name_at, file, "opd_tensor_file_name");
    return opd_fail(OPD_ERROR_NOT_FOUND, "%s: %.500s has no %s '%.300s'%s", function, file->source.path, what,
                    name ? name : "NULL", near_text);
}
opd_tensor *opd_tensor_file_get(const opd_tensor_file *file, const char *name) {
    const int64_t i = opd_tensor_file_find(file, name);
    if (i >= 0) { return opd_tensor_file_at(file, i); }
    (void)opdi_not_in_file(file, name, "tensor", "opd_tensor_file_get");
    return NULL;
}
opd_tensor *opd_tensor_file_bytes(const opd_tensor_file *file, int64_t i) {
    opdi_source source;
    unsigned char *own = NULL;
    if (!opd_ok()) { return NULL; }
    if (!file || !file->zip || file->checkpoint || i < 0 || i >= file->count) {
        (void)opd_fail(OPD_ERROR_INDEX, "opd_tensor_file_bytes: there is no entry %lld, or the file is not a zip file",
                       (long long)i);
        return NULL;
    }
    if (opdi_zip_bytes(file, opdi_file_entry_of(file, i), 1, &source, &own)) { return NULL; }
    const int64_t bytes = (int64_t)source.length;
    if (own) {
        opd_tensor *tensor = opd_tensor_from(own, opd_ints_of(&bytes, 1), OPD_UINT8);
        opdi_free(own, source.length);
        return tensor;
    }
    opdi_ref_up(&file->bytes->refs);
    return opd_tensor_wrap(file->bytes->data + (source.data - file->bytes->data), opd_ints_of(&bytes, 1), NULL,
                           OPD_UINT8, opdi_file_buffer_release, file->bytes);
}
bool opd_tensor_file_requires_grad(const opd_tensor_file *file, int64_t i) {
    int64_t k;
    return file && file->checkpoint && i >= 0 && i < file->count && opdi_entry_of(file, i, &k)->grad;
}
/* Returns true if name number i of a checkpoint is a value that contains no tensors.  An unreadable value that a
   function of torch makes may contain tensors: for such a value, returns false. */
OPDI_INTERNAL bool opdi_tensor_file_is_data(const opd_tensor_file *file, int64_t i) {
    int64_t k;
    if (!file->checkpoint) { return false; }
    const opdi_file_entry *const named = opdi_entry_of(file, i, &k);
    return named->member < 0 && named->strange != OPDI_FOREIGN_TENSORS &&
        (named->strange <= 0 || strncmp(opdi_pickle_globals[named->strange].module, "torch", 5) != 0);
}
int opd_tensor_file_value_at(const opd_tensor_file *file, int64_t i, opd_value *value) {
    int64_t k;
    if (!value) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_file_value_at: the pointer to the value is NULL"); }
    *value = opd_value_none();
    if (!opd_ok()) { return -1; }
    if (!file || i < 0 || i >= file->count) {
        return opd_fail(OPD_ERROR_INDEX, "opd_tensor_file_value_at: there is no entry %lld: the file has %lld",
                        (long long)i, (long long)opd_tensor_file_count(file));
    }
    const opdi_file_entry *const named = opdi_entry_of(file, i, &k);
    if (!file->checkpoint || named->member >= 0) {
        *value = opd_value_tensor(opd_tensor_file_at(file, i));
        return opd_ok() ? 0 : -1;
    }
    if (named->strange) { return opdi_checkpoint_unreadable(file, named); }
    *value = ((const opd_value *)(const void *)file->values.data)[named->data + (size_t)k];
    if (value->tag == OPD_TAG_STR) { value->u.s = file->text.data + value->u.i; }
    if (value->tag == OPD_TAG_COMPLEX) {
        value->u.c = (const double *)(const void *)((const int64_t *)(void *)file->dims.data + value->u.i);
    }
    return 0;
}
int opd_tensor_file_value(const opd_tensor_file *file, const char *name, opd_value *value) {
    const int64_t i = opd_tensor_file_find(file, name);
    if (!value) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_file_value: the pointer to the value is NULL"); }
    *value = opd_value_none();
    if (!opd_ok()) { return -1; }
    return i >= 0 ? opd_tensor_file_value_at(file, i, value)
        : opdi_not_in_file(file, name, "entry", "opd_tensor_file_value");
}

int opd_tensor_file_number(const opd_tensor_file *file, const char *name, double *number) {
    opd_value value;
    if (!number) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_tensor_file_number: the pointer to the number is NULL"); }
    *number = 0;
    OPD_SCOPE {
        if (opd_tensor_file_value(file, name, &value) == 0) {
            if (value.tag == OPD_TAG_TENSOR && value.u.t->numel == 1) { *number = opd_item_f64(value.u.t); }
            else if (value.tag == OPD_TAG_FLOAT) { *number = value.u.d; }
            else if (value.tag == OPD_TAG_INT || value.tag == OPD_TAG_BOOL) { *number = (double)value.u.i; }
            else { (void)opd_fail(OPD_ERROR_DTYPE, "opd_tensor_file_number: '%.300s' is not a number", name); }
        }
    }
    return opd_ok() ? 0 : -1;
}
