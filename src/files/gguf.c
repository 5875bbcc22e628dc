#include "files.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>gguf         reading GGUF files: metadata of several types, and tensors whose numbers may be stored in blocks
//
//  A GGUF file is opened as an opd_tensor_file.  When it is opened, everything in it is checked once: each count and
//  size is compared with the bytes that are left in the file before anything is allocated for it.  Texts are copied, so
//  that they end with a zero; arrays of numbers stay in the file until they are asked for.  This room uses only
//  the entries of >>files, and knows nothing of the models that such files hold.
//----------------------------------------------------------------------------------------------------------------------

//== GGUF: the header ==================================================================================================

OPDI_INTERNAL const opdi_gguf_type opdi_gguf_types[OPDI_GGUF_TYPES] = {
    {"u8", 1}, {"i8", 1}, {"u16", 2}, {"i16", 2}, {"u32", 4}, {"i32", 4}, {"f32", 4}, {"bool", 1}, {"str", 0},
    {"array", 0}, {"u64", 8}, {"i64", 8}, {"f64", 8}};

OPDI_INTERNAL opdi_gguf_pair *opdi_gguf_pair_at(const opd_tensor_file *file, int64_t i) {
    return (opdi_gguf_pair *)(void *)file->gguf->pairs.data + i;
}
/* Returns the dtype of a type of GGUF, or OPD_DTYPE_NONE if there is no such type. */
OPDI_INTERNAL opd_scalar_type opdi_gguf_dtype(uint32_t type) {
    static const opd_scalar_type plain[] = {OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT64};
    if (type < 2) { return type ? OPD_FLOAT16 : OPD_FLOAT32; }
    if (type >= 24 && type <= 28) { return plain[type - 24]; }
    if (type == 30) { return OPD_BFLOAT16; }
    return type < 64 ? opdi_block_info_of(64 + (int)type).dtype : OPD_DTYPE_NONE;
}
/* Skips `count` bytes, and returns where they begin.  If the file has fewer, returns OPDI_NOWHERE and sets an error;
   `what` says what the bytes are. */
static size_t opdi_gguf_skip(opdi_scanner *scanner, uint64_t count, const char *what) {
    const size_t at = scanner->at;
    if (count > scanner->end - at) {
        (void)opdi_bad(scanner->source, at, "%s has %llu bytes, but the file ends after %llu", what,
                       (unsigned long long)count, (unsigned long long)(scanner->end - at));
        return OPDI_NOWHERE;
    }
    scanner->at += (size_t)count;
    return at;
}
/* Reads a number of 4 or 8 bytes.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_number(opdi_scanner *scanner, int bytes, uint64_t *number, const char *what) {
    const size_t at = opdi_gguf_skip(scanner, (uint64_t)bytes, what);
    if (at == OPDI_NOWHERE) { return -1; }
    *number = bytes == 4 ? opdi_le32(scanner->source->data + at) : opdi_le64(scanner->source->data + at);
    return 0;
}
/* Reads a string, and appends it to file->text, with a zero after it.  Sets *at to its position in the text.  A key or
   name (most > 0) must have at most `most` bytes, be UTF-8 and have no zero byte.  Returns 0, or -1 and sets an
   error. */
static int opdi_gguf_string(opd_tensor_file *file, opdi_scanner *scanner, size_t *at, size_t most, const char *what) {
    const size_t where = scanner->at;
    uint64_t length = 0;
    if (opdi_gguf_number(scanner, 8, &length, "the length of a string")) { return -1; }
    const size_t from = opdi_gguf_skip(scanner, length, what);
    if (from == OPDI_NOWHERE) { return -1; }
    const unsigned char *const text = scanner->source->data + from;
    if (most && length > most) {
        return opdi_bad(scanner->source, where, "%s has %llu bytes, but may have at most %llu", what,
                        (unsigned long long)length, (unsigned long long)most);
    }
    for (size_t k = 0, count; most && k < length; k += count) {
        count = text[k] ? opdi_utf8(text + k, (size_t)length - k) : 0;
        if (!count) {
            return opdi_bad(scanner->source, from + k, "%s %s", what,
                            text[k] ? "is not UTF-8" : "contains a zero byte");
        }
    }
    *at = file->text.length;
    opdi_string_add_n(&file->text, (const char *)text, (size_t)length);
    opdi_string_add_n(&file->text, "", 1);
    return file->text.failed ? -1 : 0;
}
/* Checks that `count` bytes at `at` are bools.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_bools(const opdi_scanner *scanner, size_t at, size_t count) {
    return opdi_bools_check(scanner->source, at, OPD_BOOL, scanner->source->data + at, count);
}
/* Adds the position of the next text to gguf->texts.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_place(opd_tensor_file *file) {
    const size_t place = file->text.length;
    opdi_string_add_n(&file->gguf->texts, (const char *)(const void *)&place, sizeof place);
    return file->gguf->texts.failed ? -1 : 0;
}
/* Reads an array.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_array(opd_tensor_file *file, opdi_scanner *scanner, opdi_gguf_pair *pair) {
    const size_t where = scanner->at;
    uint64_t type = 0, count = 0;
    size_t at;
    if (opdi_gguf_number(scanner, 4, &type, "the type of an array") ||
        opdi_gguf_number(scanner, 8, &count, "the length of an array")) {
        return -1;
    }
    if (type >= OPDI_GGUF_TYPES || type == OPDI_GGUF_ARRAY) {
        return opdi_bad(scanner->source, where, type == OPDI_GGUF_ARRAY ? "an array has arrays as elements"
                        : "%llu is not a type of metadata", (unsigned long long)type);
    }
    const size_t least = type == OPDI_GGUF_STRING ? 8 : (size_t)opdi_gguf_types[type].bytes;
    if (count > (scanner->end - scanner->at) / least) {
        return opdi_bad(scanner->source, where + 4, "an array has %llu elements, which is more than the rest of the "
                        "file can hold", (unsigned long long)count);
    }
    pair->type = (int)type;
    pair->count = (int64_t)count;
    pair->value = scanner->at;
    if (type != OPDI_GGUF_STRING) {
        scanner->at += (size_t)count * least;
        return type == OPDI_GGUF_BOOL ? opdi_gguf_bools(scanner, pair->value, (size_t)count) : 0;
    }
    pair->value = file->gguf->texts.length / sizeof(size_t);
    for (uint64_t i = 0; i < count; i++) {
        if (opdi_gguf_place(file) || opdi_gguf_string(file, scanner, &at, 0, "a string of an array")) { return -1; }
    }
    return opdi_gguf_place(file);
}
/* Reads the value of a key.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_value(opd_tensor_file *file, opdi_scanner *scanner, opdi_gguf_pair *pair) {
    const size_t where = scanner->at;
    uint64_t type = 0;
    size_t at;
    if (opdi_gguf_number(scanner, 4, &type, "the type of a value")) { return -1; }
    if (type >= OPDI_GGUF_TYPES) {
        return opdi_bad(scanner->source, where, "%llu is not a type of metadata", (unsigned long long)type);
    }
    if (type == OPDI_GGUF_ARRAY) { return opdi_gguf_array(file, scanner, pair); }
    pair->type = (int)type;
    pair->count = -1;
    if (type == OPDI_GGUF_STRING) {
        pair->value = file->gguf->texts.length / sizeof(size_t);
        return opdi_gguf_place(file) || opdi_gguf_string(file, scanner, &at, 0, "a string") || opdi_gguf_place(file)
            ? -1 : 0;
    }
    pair->value = opdi_gguf_skip(scanner, (uint64_t)opdi_gguf_types[type].bytes, "a value");
    if (pair->value == OPDI_NOWHERE) { return -1; }
    return type == OPDI_GGUF_BOOL ? opdi_gguf_bools(scanner, pair->value, 1) : 0;
}
/* Reads `count` keys with their values, and makes the list of sorted keys.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_metadata(opd_tensor_file *file, opdi_scanner *scanner, int64_t count) {
    opdi_gguf *const gguf = file->gguf;
    char entry[304];                              /* a copy of the key, since the text moves when strings are added */
    int rc = 0;
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        opdi_gguf_pair pair;
        memset(&pair, 0, sizeof pair);
        pair.where = scanner->at;
        if (opdi_gguf_string(file, scanner, &pair.key, OPDI_GGUF_KEY, "a key of the metadata")) { return -1; }
        (void)snprintf(entry, sizeof entry, "%s", file->text.data + pair.key);
        file->source.entry = entry;
        rc = opdi_gguf_value(file, scanner, &pair);
        file->source.entry = NULL;
        opdi_string_add_n(&gguf->pairs, (const char *)(const void *)&pair, sizeof pair);
        if (gguf->pairs.failed) { rc = -1; }
    }
    if (rc || count == 0) { return rc; }
    gguf->sorted = (opdi_sorted *)opdi_alloc((size_t)count * sizeof *gguf->sorted);
    if (!gguf->sorted) { return -1; }
    file->nmeta = count;
    for (int64_t i = 0; i < count; i++) {
        memset(&gguf->sorted[i], 0, sizeof *gguf->sorted);
        gguf->sorted[i].name = file->text.data + opdi_gguf_pair_at(file, i)->key;
        gguf->sorted[i].place = i;
    }
    const opdi_sorted *const same = opdi_same_names(gguf->sorted, count);
    if (!same) { return 0; }
    return opdi_bad(&file->source, opdi_gguf_pair_at(file, OPDI_MAX(same[-1].place, same->place))->where,
                    "the metadata has the key '%.100s' twice", same->name);
}
/* Returns the pair with that key, or NULL if there is none. */
OPDI_INTERNAL opdi_gguf_pair *opdi_gguf_find(const opd_tensor_file *file, const char *key) {
    int64_t low = 0, high = file->nmeta;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(file->gguf->sorted[middle].name, key);
        if (order == 0) { return opdi_gguf_pair_at(file, file->gguf->sorted[middle].place); }
        if (order < 0) { low = middle + 1; } else { high = middle; }
    }
    return NULL;
}

/* Reads number i of a pair: its value (count is -1), or an element of an array, into *integer or *real.  Returns false
   for strings. */
OPDI_INTERNAL bool opdi_gguf_element(const opd_tensor_file *file, const opdi_gguf_pair *pair, int64_t i,
                                     int64_t *integer, double *real) {
    const unsigned char *const at = file->source.data + pair->value + i * opdi_gguf_types[pair->type].bytes;
    float single;
    uint32_t half;
    uint64_t whole;
    switch (pair->type) {
    case OPDI_GGUF_U8: case OPDI_GGUF_BOOL: *integer = at[0]; break;
    case OPDI_GGUF_I8: *integer = (int8_t)at[0]; break;
    case OPDI_GGUF_U16: *integer = (int64_t)opdi_le16(at); break;
    case OPDI_GGUF_I16: *integer = (int16_t)opdi_le16(at); break;
    case OPDI_GGUF_U32: *integer = (int64_t)opdi_le32(at); break;
    case OPDI_GGUF_I32: *integer = (int32_t)opdi_le32(at); break;
    case OPDI_GGUF_U64: case OPDI_GGUF_I64: *integer = (int64_t)opdi_le64(at); break;
    case OPDI_GGUF_F32:
        half = opdi_le32(at);
        memcpy(&single, &half, sizeof single);
        *real = (double)single;
        return true;
    case OPDI_GGUF_F64:
        whole = opdi_le64(at);
        memcpy(real, &whole, sizeof whole);
        return true;
    default: return false;
    }
    *real = pair->type == OPDI_GGUF_U64 ? (double)(uint64_t)*integer : (double)*integer;
    return true;
}

//== GGUF: the tensors =================================================================================================

/* Reads general.alignment.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_alignment(const opd_tensor_file *file, uint64_t *alignment) {
    const opdi_gguf_pair *const pair = opdi_gguf_find(file, "general.alignment");
    *alignment = OPDI_GGUF_ALIGNMENT;
    if (!pair) { return 0; }
    if (pair->type != OPDI_GGUF_U32 || pair->count >= 0) {
        return opdi_bad(&file->source, pair->where, "general.alignment must have the type u32");
    }
    *alignment = opdi_le32(file->source.data + pair->value);
    if (*alignment && (*alignment & (*alignment - 1)) == 0) { return 0; }
    return opdi_bad(&file->source, pair->value, "general.alignment is %llu, which is not a power of two",
                    (unsigned long long)*alignment);
}
/* Reads the sizes and the type of a tensor, and sets its number of bytes.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_sizes(opd_tensor_file *file, opdi_scanner *scanner, opdi_file_entry *named, uint64_t *bytes) {
    uint64_t ndim = 0, type = 0, size = 0;
    int64_t sizes[OPDI_GGUF_DIMS], part;
    size_t where = scanner->at;
    if (opdi_gguf_number(scanner, 4, &ndim, "the number of dimensions")) { return -1; }
    if (ndim > OPDI_GGUF_DIMS) {
        return opdi_bad(scanner->source, where, "it has %llu dimensions, but may have at most %d",
                        (unsigned long long)ndim, OPDI_GGUF_DIMS);
    }
    for (int i = (int)ndim - 1; i >= 0; i--) {
        where = scanner->at;
        if (opdi_gguf_number(scanner, 8, &size, "a size")) { return -1; }
        if (size > INT64_MAX) {
            return opdi_bad(scanner->source, where, "it has the size %llu", (unsigned long long)size);
        }
        sizes[i] = (int64_t)size;
    }
    named->ndim = (int)ndim;
    named->dims = file->dims.length / sizeof(int64_t);
    if (ndim) { opdi_string_add_n(&file->dims, (const char *)(const void *)sizes, (size_t)ndim * sizeof *sizes); }
    if (file->dims.failed) { return -1; }
    where = scanner->at;
    if (opdi_gguf_number(scanner, 4, &type, "a type")) { return -1; }
    named->row = opdi_gguf_dtype((uint32_t)type);
    if (named->row == OPD_DTYPE_NONE) {
        return opdi_bad(scanner->source, where, "%llu is not a type of tensors", (unsigned long long)type);
    }
    const int64_t block = opd_dtype_block((opd_scalar_type)named->row, &part);
    const int64_t row = ndim ? sizes[ndim - 1] : 1;
    const int64_t count = opdi_sizes_bytes(scanner->source, where, sizes, (int)ndim, 8);
    if (count < 0) { return -1; }
    if (row % block) {
        return opdi_bad(scanner->source, where, "its rows have %lld elements, which do not fill blocks of %lld (%s)",
                        (long long)row, (long long)block, opd_dtype_name((opd_scalar_type)named->row));
    }
    *bytes = (uint64_t)(count / block) * (uint64_t)part;   /* less than 2^63: opdi_sizes_bytes has refused more */
    return 0;
}
/* Reads the description of a tensor.  *sum is where its data must begin, counted from the begin of all data, and is
   moved to where the next must begin.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_tensor(opd_tensor_file *file, opdi_scanner *scanner, opdi_file_entry *named, uint64_t alignment,
                            uint64_t *sum) {
    uint64_t bytes = 0, offset = 0;
    if (opdi_gguf_sizes(file, scanner, named, &bytes)) { return -1; }
    const size_t where = scanner->at;
    if (opdi_gguf_number(scanner, 8, &offset, "an offset")) { return -1; }
    if (offset != *sum) {
        return opdi_bad(scanner->source, where, "its data begins at %llu of all data, but should begin at %llu, after "
                        "the tensor before it", (unsigned long long)offset, (unsigned long long)*sum);
    }
    if (offset > scanner->end || bytes > scanner->end - offset) {
        return opdi_bad(scanner->source, where, "its %llu bytes of data are not in the file, which has %llu",
                        (unsigned long long)bytes, (unsigned long long)scanner->end);
    }
    named->begin = (size_t)offset;
    named->end = (size_t)(offset + bytes);
    *sum = (offset + bytes + alignment - 1) & ~(alignment - 1);
    return 0;
}
/* Reads the descriptions of `count` tensors.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_tensors(opd_tensor_file *file, opdi_scanner *scanner, int64_t count) {
    uint64_t sum = 0, alignment;
    int rc = opdi_gguf_alignment(file, &alignment);
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        opdi_file_entry named;
        memset(&named, 0, sizeof named);
        named.where = scanner->at;
        if (opdi_gguf_string(file, scanner, &named.name, OPDI_GGUF_NAME, "the name of a tensor")) { return -1; }
        file->source.entry = file->text.data + named.name;
        rc = opdi_gguf_tensor(file, scanner, &named, alignment, &sum) || opdi_file_entry_add(file, &named) ? -1 : 0;
        file->source.entry = NULL;
    }
    const uint64_t begin = ((uint64_t)scanner->at + alignment - 1) & ~(alignment - 1);
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        opdi_file_entry *const named = opdi_file_entry_of(file, i);
        const size_t end = named->end;
        if (begin > scanner->end || end > scanner->end - begin) {
            file->source.entry = opdi_file_entry_name(file, i);
            return opdi_bad(&file->source, named->where, "its data ends at byte %llu, but the file already at byte "
                            "%llu", (unsigned long long)(begin + end), (unsigned long long)scanner->end);
        }
        named->begin += (size_t)begin;
        named->data = named->begin;
        named->end += (size_t)begin;
    }
    if (rc) { return -1; }
    /* the texts no longer move, but they may have moved since the keys were sorted */
    for (int64_t i = 0; i < file->nmeta; i++) {
        opdi_sorted *const key = &file->gguf->sorted[i];
        key->name = file->text.data + opdi_gguf_pair_at(file, key->place)->key;
    }
    return opdi_file_entry_check(file, 0, file->source.length, false);
}
/* Reads and checks the header of a GGUF file, without its other parts.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_gguf_parse(opd_tensor_file *file) {
    opdi_source *const source = &file->source;
    opdi_scanner scanner = {source, 8, source->length};
    uint64_t tensors = 0, pairs = 0;
    const uint32_t version = source->length >= 8 ? opdi_le32(source->data + 4) : 0;
    if (source->length < 24) {
        return opdi_bad(source, source->length, "a GGUF file has a header of 24 bytes, but this file ends here");
    }
    if ((version & 0xffff) == 0 && version) {
        return opdi_bad(source, 4, "this GGUF file is big-endian, which is not supported: convert it to little-endian");
    }
    if (version < 2 || version > 3) {
        return opdi_bad(source, 4, "this GGUF file has version %lu: versions 2 and 3 can be read",
                        (unsigned long)version);
    }
    (void)opdi_gguf_number(&scanner, 8, &tensors, "");
    (void)opdi_gguf_number(&scanner, 8, &pairs, "");
    if (tensors > (source->length - 24) / OPDI_GGUF_LEAST_TENSOR || pairs > (source->length - 24) /
        OPDI_GGUF_LEAST_PAIR) {
        return opdi_bad(source, 8, "the header names %llu tensors and %llu keys, which is more than %llu bytes can "
                        "hold", (unsigned long long)tensors, (unsigned long long)pairs,
                        (unsigned long long)source->length);
    }
    file->gguf = (opdi_gguf *)opdi_alloc(sizeof *file->gguf);
    if (!file->gguf) { return -1; }
    memset(file->gguf, 0, sizeof *file->gguf);
    return opdi_gguf_metadata(file, &scanner, (int64_t)pairs) || opdi_gguf_tensors(file, &scanner, (int64_t)tensors)
        ? -1 : 0;
}
/* Returns the bytes that the elements of an array take as parts of an opd_value. */
OPDI_INTERNAL size_t opdi_gguf_list_bytes(const opdi_gguf_pair *pair) {
    return OPDI_MAX((size_t)pair->count, 1) * (pair->type == OPDI_GGUF_STRING ? sizeof(opd_value)
                                               : pair->type == OPDI_GGUF_BOOL ? sizeof(bool) : sizeof(int64_t));
}
/* Frees what only GGUF files have, after their parts were closed. */
OPDI_INTERNAL void opdi_gguf_free(opd_tensor_file *file) {
    opdi_gguf *const gguf = file->gguf;
    if (gguf->parts) { opdi_free(gguf->parts, (size_t)gguf->most_parts * sizeof *gguf->parts); }
    const int64_t pairs = (int64_t)(gguf->pairs.length / sizeof(opdi_gguf_pair));
    for (int64_t i = 0; i < pairs; i++) {
        const opdi_gguf_pair *const pair = opdi_gguf_pair_at(file, i);
        if (pair->list) { opdi_free(pair->list, opdi_gguf_list_bytes(pair)); }
    }
    if (gguf->sorted) { opdi_free(gguf->sorted, (size_t)file->nmeta * sizeof *gguf->sorted); }
    opdi_string_free(&gguf->pairs);
    opdi_string_free(&gguf->texts);
    opdi_free(gguf, sizeof *gguf);
}
/* Returns the tensor of an entry of a GGUF file.  The tensor uses the file's memory if kernels can read it there. */
OPDI_INTERNAL opd_tensor *opdi_gguf_read(const opd_tensor_file *file, const opdi_file_entry *named) {
    const opd_tensor_file *const part = named->member ? file->gguf->parts[named->member - 1] : file;
    const int64_t *const dims = named->ndim ? (const int64_t *)(void *)file->dims.data + named->dims : NULL;
    const opd_ints sizes = opd_ints_of(dims, named->ndim);
    return opdi_file_view(part->bytes, named->data, named->end - named->data, sizes, (opd_scalar_type)named->row);
}

//== GGUF: files in parts ==============================================================================================

/* Reads the integer under a key.  Returns -1 if there is none; then sets an error only if the key has another type. */
static int64_t opdi_gguf_integer(const opd_tensor_file *file, const char *key) {
    const opdi_gguf_pair *const pair = opdi_gguf_find(file, key);
    int64_t integer = -1;
    double real;
    if (!pair) { return -1; }
    if (pair->count >= 0 || pair->type == OPDI_GGUF_F32 || pair->type == OPDI_GGUF_F64 ||
        !opdi_gguf_element(file, pair, 0, &integer, &real) || integer < 0) {
        return opdi_bad(&file->source, pair->where, "the key %s has no value that is a count", key);
    }
    return integer;
}
/* Returns how many parts the model in a GGUF file has, 1 for an ordinary file; -1 and sets an error if the file is not
   the first part. */
static int64_t opdi_gguf_parts(const opd_tensor_file *file) {
    const int64_t count = opdi_gguf_integer(file, "split.count");
    const int64_t place = opd_ok() && count > 1 ? opdi_gguf_integer(file, "split.no") : 0;
    if (!opd_ok()) { return -1; }
    if (place < 0) {
        return opdi_bad(&file->source, OPDI_NOWHERE, "split.count is %lld, but the key split.no is missing",
                        (long long)count);
    }
    if (place != 0) {
        return opdi_bad(&file->source, OPDI_NOWHERE, "this is part %lld of a model in %lld files: open the first",
                        (long long)place + 1, (long long)count);
    }
    return count > 1 ? count : 1;
}
/* Checks that a file that was read from memory is not the part of a model.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_gguf_alone(const opd_tensor_file *file) {
    const int64_t count = opdi_gguf_parts(file);
    if (count == 1) { return 0; }
    return count < 0 ? -1 : opdi_bad(&file->source, OPDI_NOWHERE, "this is the first of %lld files of a model: open it "
                                     "by its path, so that the others can be found", (long long)count);
}
/* Adds the tensors of a part, which is the last of the file's parts, to the file.  Returns 0, or -1 and sets an
   error. */
static int opdi_gguf_add_part(opd_tensor_file *file, const opd_tensor_file *part) {
    const size_t texts = file->text.length, dims = file->dims.length / sizeof(int64_t);
    opdi_string_add_n(&file->text, part->text.data, part->text.length);
    opdi_string_add_n(&file->dims, part->dims.data, part->dims.length);
    if (file->text.failed || file->dims.failed) { return -1; }
    for (int64_t i = 0; i < part->count; i++) {
        opdi_file_entry named = *opdi_file_entry_of(part, i);
        named.name += texts;
        named.dims += dims;
        named.member = file->gguf->nparts;
        if (opdi_file_entry_add(file, &named)) { return -1; }
    }
    return 0;
}
/* Sorts the tensors of all parts by name, and the keys again, since the texts have moved.  Returns 0, or -1 and sets an
   error. */
static int opdi_gguf_sort(opd_tensor_file *file) {
    opdi_gguf *const gguf = file->gguf;
    for (int64_t i = 0; i < file->nmeta; i++) {
        gguf->sorted[i].name = file->text.data + opdi_gguf_pair_at(file, gguf->sorted[i].place)->key;
    }
    file->sorted = file->count ? (opdi_sorted *)opdi_alloc((size_t)file->count * sizeof *file->sorted) : NULL;
    if (file->count && !file->sorted) { return -1; }
    for (int64_t i = 0; i < file->count; i++) {
        memset(&file->sorted[i], 0, sizeof *file->sorted);
        file->sorted[i].name = opdi_file_entry_name(file, i);
        file->sorted[i].place = i;
    }
    const opdi_sorted *const same = opdi_same_names(file->sorted, file->count);
    if (!same) { return 0; }
    file->source.entry = same->name;
    return opdi_bad(&file->source, OPDI_NOWHERE, "two parts have a tensor of this name");
}
/* Opens part number i of `count`, and adds its tensors.  `path` ends with the text -0000i-of-count.gguf.  `make` is
   opdi_tensor_file.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_open_part(opd_tensor_file *file, opdi_file_maker make, const char *path, int64_t i,
                               int64_t count) {
    opdi_source source;
    opdi_gguf *const gguf = file->gguf;
    opdi_file_buffer *const buffer = opdi_file_buffer_open(&source, file->source.who, path, NULL);
    opd_tensor_file *const part = make(buffer, &source);
    if (!part) { return -1; }
    gguf->parts[gguf->nparts++] = part;
    if (!part->gguf) { return opdi_bad(&part->source, 0, "this part of a model is not a GGUF file"); }
    const int64_t its_count = opdi_gguf_integer(part, "split.count"), its_place = opdi_gguf_integer(part, "split.no");
    if (!opd_ok()) { return -1; }
    if (its_count != count || its_place != i) {
        return opdi_bad(&part->source, OPDI_NOWHERE, "this should be part %lld of %lld, but split.no is %lld and "
                        "split.count %lld", (long long)i + 1, (long long)count, (long long)its_place,
                        (long long)its_count);
    }
    return opdi_gguf_add_part(file, part);
}
/* Opens the other parts of a model whose first part is `file`, and adds their tensors to it.  `make` is
   opdi_tensor_file.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_gguf_join(opd_tensor_file *file, opdi_file_maker make) {
    opdi_gguf *const gguf = file->gguf;
    const int64_t count = opdi_gguf_parts(file), all = opdi_gguf_integer(file, "split.tensors.count");
    const size_t length = strlen(file->source.path);
    char tail[40];
    int rc = 0;
    if (count < 0 || !opd_ok()) { return -1; }
    if (count == 1) { return 0; }
    (void)snprintf(tail, sizeof tail, "-%05lld-of-%05lld.gguf", 1LL, (long long)count);
    const size_t end = strlen(tail);
    if (count > 99999 || length < end || strcmp(file->source.path + length - end, tail) != 0) {
        return opdi_bad(&file->source, OPDI_NOWHERE, "this is the first of %lld files of a model: its name must end "
                        "with '%s', so that the others can be found", (long long)count, tail);
    }
    char *const path = (char *)opdi_alloc(length + 1);
    gguf->parts = (opd_tensor_file **)opdi_alloc((size_t)(count - 1) * sizeof *gguf->parts);
    gguf->most_parts = gguf->parts ? count - 1 : 0;
    if (!path || !gguf->parts) { rc = -1; }
    if (path) { memcpy(path, file->source.path, length + 1); }
    if (file->sorted) { opdi_free(file->sorted, (size_t)file->count * sizeof *file->sorted); }
    file->sorted = NULL;
    for (int64_t i = 1; rc == 0 && i < count; i++) {
        (void)snprintf(path + length - end, end + 1, "-%05lld-of-%05lld.gguf", (long long)i + 1, (long long)count);
        rc = opdi_gguf_open_part(file, make, path, i, count);
    }
    if (path) { opdi_free(path, length + 1); }
    if (rc || opdi_gguf_sort(file)) { return -1; }
    if (all < 0 || all == file->count) { return 0; }
    return opdi_bad(&file->source, OPDI_NOWHERE, "split.tensors.count is %lld, but the parts have %lld tensors",
                    (long long)all, (long long)file->count);
}
