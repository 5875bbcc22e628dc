#include "files.h"

//== writing GGUF files ================================================================================================

static void opdi_gguf_put(opdi_string *to, uint64_t number, int bytes) {
    unsigned char out[8];
    (void)opdi_le_put(out, number, bytes);
    opdi_string_add_n(to, (const char *)out, (size_t)bytes);
}
static void opdi_gguf_put_text(opdi_string *to, const char *text, size_t length) {
    opdi_gguf_put(to, length, 8);
    opdi_string_add_n(to, text, length);
}
static void opdi_gguf_pad(opdi_string *to, uint64_t alignment) {
    while (!to->failed && to->length % alignment) { opdi_string_add_n(to, "", 1); }
}
/* Returns the type that a key of opd_gguf_save names after a colon, or -1 if it names none.  Sets *length to the length
   of the key without the colon and type. */
static int opdi_gguf_named_type(const char *key, size_t *length) {
    const char *const colon = strrchr(key, ':');
    *length = strlen(key);
    for (int type = 0; colon && type < OPDI_GGUF_TYPES; type++) {
        if (type == OPDI_GGUF_ARRAY || strcmp(colon + 1, opdi_gguf_types[type].name) != 0) { continue; }
        *length = (size_t)(colon - key);
        return type;
    }
    return -1;
}
/* Returns how many elements a list has; -1 for a value that is not a list, -2 for a list of negative length. */
static int64_t opdi_gguf_length(const opd_value *value) {
    const int32_t tag = value->tag;
    const bool list = tag == OPD_TAG_INTS || tag == OPD_TAG_FLOATS || tag == OPD_TAG_BOOLS || tag == OPD_TAG_LIST;
    return !list ? -1 : value->n < 0 ? -2 : value->n;
}
/* Returns element i of a list, or a value that is not a list itself. */
static opd_value opdi_gguf_nth(const opd_value *value, int64_t i) {
    switch (value->tag) {
    case OPD_TAG_INTS: return opd_value_int(value->u.ints[i]);
    case OPD_TAG_FLOATS: return opd_value_double(value->u.floats[i]);
    case OPD_TAG_BOOLS: return opd_value_bool(value->u.bools[i]);
    case OPD_TAG_LIST: return value->u.list[i];
    default: return *value;
    }
}
/* Returns the type with which a value is written if its key names none; -1 if GGUF has no such values. */
static int opdi_gguf_usual_type(const opd_value *value) {
    const int64_t count = opdi_gguf_length(value);
    bool fits_int32 = true, positive = true;
    if (count == 0 && value->tag == OPD_TAG_LIST) { return OPDI_GGUF_STRING; }
    for (int64_t i = 0; i < (count < 0 ? 1 : count); i++) {
        const opd_value element = opdi_gguf_nth(value, i);
        switch (element.tag) {
        case OPD_TAG_STR: return OPDI_GGUF_STRING;
        case OPD_TAG_FLOAT: return OPDI_GGUF_F32;
        case OPD_TAG_BOOL: return OPDI_GGUF_BOOL;
        case OPD_TAG_INT: break;
        default: return -1;
        }
        fits_int32 = fits_int32 && element.u.i >= INT32_MIN && element.u.i <= INT32_MAX;
        positive = positive && element.u.i >= 0 && element.u.i <= (int64_t)UINT32_MAX;
    }
    if (count == 0) {
        return value->tag == OPD_TAG_FLOATS ? OPDI_GGUF_F32 : value->tag == OPD_TAG_BOOLS ? OPDI_GGUF_BOOL
            : OPDI_GGUF_I32;
    }
    if (count < 0 && positive) { return OPDI_GGUF_U32; }
    return fits_int32 ? OPDI_GGUF_I32 : positive ? OPDI_GGUF_U32 : OPDI_GGUF_I64;
}
/* Appends a number or string.  Returns 0, or -1 and sets an error if the type cannot hold it. */
static int opdi_gguf_put_element(const opdi_source *source, opdi_string *to, int type, const opd_value *element) {
    const opdi_gguf_type *const row = &opdi_gguf_types[type];
    const bool floating = type == OPDI_GGUF_F32 || type == OPDI_GGUF_F64;
    const int32_t tag = element->tag, wanted = type == OPDI_GGUF_STRING ? OPD_TAG_STR : type == OPDI_GGUF_BOOL
        ? OPD_TAG_BOOL : floating && tag == OPD_TAG_FLOAT ? OPD_TAG_FLOAT : OPD_TAG_INT;
    if (tag != wanted || (tag == OPD_TAG_STR && !element->u.s)) {
        return opdi_bad(source, OPDI_NOWHERE, "a value of another kind cannot be written with the type %s", row->name);
    }
    if (type == OPDI_GGUF_STRING) {
        opdi_gguf_put_text(to, element->u.s, strlen(element->u.s));
        return 0;
    }
    const double real = tag == OPD_TAG_FLOAT ? element->u.d : (double)element->u.i;
    const int64_t integer = tag == OPD_TAG_FLOAT ? 0 : element->u.i;
    if (floating) {
        const float single = (float)real;
        uint32_t half;
        uint64_t whole;
        memcpy(&half, &single, sizeof half);
        memcpy(&whole, &real, sizeof whole);
        if (type == OPDI_GGUF_F32 && single - single != 0 && real - real == 0) {
            return opdi_bad(source, OPDI_NOWHERE, "%g is too large for the type f32", real);
        }
        if (tag == OPD_TAG_INT && (integer > INT64_C(1) << 53 || integer < -(INT64_C(1) << 53) ||
                                   (type == OPDI_GGUF_F32 && fabs((double)single - real) > 0))) {
            return opdi_bad(source, OPDI_NOWHERE, "%lld cannot be written exactly with the type %s", (long long)integer,
                            row->name);
        }
        opdi_gguf_put(to, type == OPDI_GGUF_F32 ? half : whole, row->bytes);
        return 0;
    }
    const int64_t most = row->bytes == 8 ? INT64_MAX : (INT64_C(1) << (8 * row->bytes - (row->name[0] == 'i'))) - 1;
    const int64_t least = row->bytes == 8 ? INT64_MIN : row->name[0] == 'i' ? -most - 1 : 0;
    if (integer < least || integer > most) {
        return opdi_bad(source, OPDI_NOWHERE, "%lld does not fit the type %s", (long long)integer, row->name);
    }
    opdi_gguf_put(to, (uint64_t)integer, row->bytes);
    return 0;
}
/* Appends a key with its value; reads the alignment of the data if this is its key.  Returns 0, or -1 and sets an
   error. */
static int opdi_gguf_put_pair(opdi_source *source, opdi_string *to, const char *key, const opd_value *value,
                              uint64_t *alignment) {
    size_t length;
    const int64_t count = opdi_gguf_length(value);
    int rc = 0;
    if (count < -1 || (count > 0 && !value->u.list) || (value->tag == OPD_TAG_STR && !value->u.s)) {
        return opdi_bad(source, OPDI_NOWHERE, "the value is NULL, or a list of negative length");
    }
    const int named = opdi_gguf_named_type(key, &length), type = named >= 0 ? named : opdi_gguf_usual_type(value);
    if (type < 0) {
        return opdi_bad(source, OPDI_NOWHERE, "GGUF has no values of this kind: only ints, floats, bools, strings and "
                        "lists of them");
    }
    if (length == 0 || (named < 0 && strchr(key, ':'))) {
        return opdi_bad(source, OPDI_NOWHERE, length == 0 ? "the key is empty"
                        : "the text after the last colon of a key must be a type, such as u64 or f32");
    }
    if (length > OPDI_GGUF_KEY) {
        return opdi_bad(source, OPDI_NOWHERE, "the key has %llu bytes, but may have at most %d",
                        (unsigned long long)length, OPDI_GGUF_KEY);
    }
    opdi_gguf_put_text(to, key, length);
    if (count >= 0) { opdi_gguf_put(to, OPDI_GGUF_ARRAY, 4); }
    opdi_gguf_put(to, (uint64_t)type, 4);
    if (count >= 0) { opdi_gguf_put(to, (uint64_t)count, 8); }
    for (int64_t i = 0; rc == 0 && i < (count < 0 ? 1 : count); i++) {
        const opd_value element = opdi_gguf_nth(value, i);
        rc = opdi_gguf_put_element(source, to, type, &element);
    }
    if (rc || length != 17 || memcmp(key, "general.alignment", 17) != 0) { return rc; }
    if (count >= 0 || type != OPDI_GGUF_U32 || value->u.i < 1 || value->u.i > 65536 ||
        (value->u.i & (value->u.i - 1))) {
        return opdi_bad(source, OPDI_NOWHERE, "the alignment must be a power of two up to 65536, with the type u32");
    }
    *alignment = (uint64_t)value->u.i;
    return 0;
}
/* Checks that no key is given twice.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_keys_check(const opdi_source *source, const char *const *keys, int64_t count) {
    opdi_string text = {NULL, 0, 0, false};       /* the keys without types, each with a zero after it */
    opdi_sorted *const sorted = count ? (opdi_sorted *)opdi_alloc((size_t)count * sizeof *sorted) : NULL;
    const opdi_sorted *same = NULL;
    int rc = count && !sorted ? -1 : 0;
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        size_t length;
        rc = opdi_name_check(source, keys[i], "a key");
        if (rc) { break; }
        (void)opdi_gguf_named_type(keys[i], &length);
        sorted[i].begin = text.length;
        sorted[i].place = i;
        opdi_string_add_n(&text, keys[i], length);
        opdi_string_add_n(&text, "", 1);
        rc = text.failed ? -1 : 0;
    }
    for (int64_t i = 0; rc == 0 && i < count; i++) { sorted[i].name = text.data + sorted[i].begin; }
    if (rc == 0 && count) { same = opdi_same_names(sorted, count); }
    if (same) { rc = opdi_bad(source, OPDI_NOWHERE, "the key '%.300s' is given twice", same->name); }
    if (sorted) { opdi_free(sorted, (size_t)count * sizeof *sorted); }
    opdi_string_free(&text);
    return rc;
}
/* Returns the number of a dtype in the format, or -1 if the format lacks it. */
static int opdi_gguf_type_of(opd_scalar_type dtype) {
    if (opdi_is_block((int)dtype)) { return (int)dtype < OPD_INT_BLOCKS ? (int)dtype - 64 : -1; }
    for (int type = 0; type < 64; type++) {
        if (opdi_gguf_dtype((uint32_t)type) == dtype) { return type; }
    }
    return -1;
}
/* Appends the description of a tensor, whose data begins at `begin`.  Returns 0, or -1 and sets an
   error. */
static int opdi_gguf_put_tensor(const opdi_source *source, opdi_string *to, const opdi_output *output, uint64_t begin) {
    const opd_tensor *const tensor = output->tensor;
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    const int type = opdi_gguf_type_of(dtype);
    const size_t length = strlen(output->name);
    if (type < 0) {
        return opdi_bad(source, OPDI_NOWHERE, "GGUF has no dtype %s: convert it", opd_dtype_name(dtype));
    }
    if (length > OPDI_GGUF_NAME || tensor->ndim > OPDI_GGUF_DIMS) {
        return opdi_bad(source, OPDI_NOWHERE, length > OPDI_GGUF_NAME
                        ? "the name has %llu bytes, but GGUF allows %d" : "it has %llu dimensions, but GGUF allows %d",
                        (unsigned long long)(length > OPDI_GGUF_NAME ? length : (size_t)tensor->ndim),
                        length > OPDI_GGUF_NAME ? OPDI_GGUF_NAME : OPDI_GGUF_DIMS);
    }
    const int last = tensor->ndim - 1;
    if (opdi_is_block(tensor->dtype) && tensor->numel &&
        (last < 0 || tensor->dims[tensor->ndim + last] != 1 || tensor->dims[last] % opd_dtype_block(dtype, NULL))) {
        return opdi_bad(source, OPDI_NOWHERE, "its last dim, with the elements of a row, is not stored in whole blocks "
                        "(it may be transposed)");
    }
    opdi_gguf_put_text(to, output->name, length);
    opdi_gguf_put(to, tensor->ndim ? (uint64_t)tensor->ndim : 1, 4);
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) { opdi_gguf_put(to, (uint64_t)tensor->dims[dim], 8); }
    if (!tensor->ndim) { opdi_gguf_put(to, 1, 8); }
    opdi_gguf_put(to, (uint64_t)type, 4);
    opdi_gguf_put(to, begin, 8);
    return 0;
}
/* Writes the blocks of a tensor row by row.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_put_blocks(opdi_sink *sink, const opd_tensor *tensor) {
    int64_t at[OPD_MAX_DIMS], place = 0;
    const int last = tensor->ndim - 1;
    if (tensor->numel == 0) { return 0; }
    const size_t row = (size_t)opdi_elements_bytes(tensor->dtype, tensor->dims[last]);
    memset(at, 0, sizeof at);
    for (int64_t left = tensor->numel / tensor->dims[last]; left; left--) {
        if (opdi_sink_put(sink, tensor->data + opdi_elements_bytes(tensor->dtype, place), row)) { return -1; }
        for (int dim = last - 1; dim >= 0; dim--) {
            place += tensor->dims[tensor->ndim + dim];
            if (++at[dim] < tensor->dims[dim]) { break; }
            place -= tensor->dims[tensor->ndim + dim] * tensor->dims[dim];
            at[dim] = 0;
        }
    }
    return 0;
}
/* Writes the header and the data of all tensors.  Returns 0, or -1 and sets an error. */
static int opdi_gguf_write(opdi_sink *sink, const opdi_string *header, const opdi_output *output, int64_t count,
                           uint64_t alignment) {
    static const char zeros[256] = {0};
    int rc = opdi_sink_put(sink, header->data, header->length);
    sink->swap = opdi_big_endian();
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        rc = opdi_is_block(output[i].tensor->dtype) ? opdi_gguf_put_blocks(sink, output[i].tensor)
            : opdi_sink_tensor(sink, output[i].tensor);
        while (rc == 0 && sink->at % alignment) {
            const uint64_t gap = alignment - sink->at % alignment;
            rc = opdi_sink_put(sink, zeros, (size_t)OPDI_MIN(gap, sizeof zeros));
        }
    }
    return rc;
}
int opd_gguf_save(const char *path, const char *const *names, opd_tensors tensors, const char *const *keys,
                  const opd_value *values, int64_t count) {
    opdi_source source = {"opd_gguf_save", path, /* entry, data, length */ NULL, NULL, 0};
    opdi_string header = {NULL, 0, 0, false};
    uint64_t at = 0, alignment = OPDI_GGUF_ALIGNMENT;
    opdi_sink sink;
    if (!opd_ok()) { return -1; }
    if (count < 0 || (count && (!keys || !values))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_gguf_save: the keys or values are NULL, or their number is negative");
    }
    opdi_output *const output = opdi_outputs(&source, names, tensors, true);
    int rc = opd_ok() ? opdi_gguf_keys_check(&source, keys, count) : -1;
    opdi_string_add_n(&header, "GGUF\3\0\0\0", 8);
    opdi_gguf_put(&header, (uint64_t)tensors.n, 8);
    opdi_gguf_put(&header, (uint64_t)count, 8);
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        source.entry = keys[i];
        rc = opdi_gguf_put_pair(&source, &header, keys[i], &values[i], &alignment);
    }
    for (int64_t i = 0; rc == 0 && i < tensors.n; i++) {
        source.entry = output[i].name;
        rc = opdi_gguf_put_tensor(&source, &header, &output[i], at);
        at = (at + output[i].bytes + alignment - 1) & ~(alignment - 1);
    }
    source.entry = NULL;
    if (tensors.n) { opdi_gguf_pad(&header, alignment); }
    if (header.failed) { rc = -1; }
    if (rc == 0 && (rc = opdi_sink_open(&sink, source.who, path)) == 0) {
        rc = opdi_sink_close(&sink, opdi_gguf_write(&sink, &header, output, tensors.n, alignment));
    }
    opdi_string_free(&header);
    opdi_outputs_free(output, tensors.n);
    return rc;
}
