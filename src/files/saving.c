#include "files.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>saving       writing files of several tensors; saving and loading graphs
//
//  A file is written under a temporary name in the same folder, and renamed when it is complete.  Zip files have the
//  format that PyTorch writes.
//----------------------------------------------------------------------------------------------------------------------

//== writing files of several tensors ==================================================================================

OPDI_INTERNAL void opdi_outputs_free(opdi_output *output, int64_t count) {
    for (int64_t i = 0; output && i < count; i++) {
        if (output[i].tensor) { opdi_drop(output[i].tensor); }
    }
    opdi_free(output, (size_t)count * sizeof *output);
}
static int opdi_by_output(const void *first, const void *second) {
    const opdi_output *output = (const opdi_output *)first, *other = (const opdi_output *)second;
    return output->row != other->row ? other->row - output->row : strcmp(output->name, other->name);
}
/* Checks that a name can be written into a file: it must be valid UTF-8 and not NULL. `what` describes the name in the
   error.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_name_check(const opdi_source *source, const char *name, const char *what) {
    size_t length = name ? strlen(name) : 0, len;
    if (!name) { return opdi_bad(source, OPDI_NOWHERE, "%s is NULL", what); }
    for (size_t at = 0; at < length; at += len) {
        if ((len = opdi_utf8((const unsigned char *)name + at, length - at)) == 0) {
            return opdi_bad(source, OPDI_NOWHERE, "%s '%.100s' is not UTF-8", what, name);
        }
    }
    return 0;
}
static int opdi_names_differ(const opdi_source *source, const opdi_output *output, int64_t count) {
    opdi_sorted *sorted = (opdi_sorted *)opdi_alloc((size_t)count * sizeof *sorted);
    if (!sorted) { return -1; }
    for (int64_t i = 0; i < count; i++) { sorted[i].name = output[i].name; }
    const opdi_sorted *same = opdi_same_names(sorted, count);
    if (same) { (void)opdi_bad(source, OPDI_NOWHERE, "two tensors have the name '%.300s'", same->name); }
    opdi_free(sorted, (size_t)count * sizeof *sorted);
    return same ? -1 : 0;
}
/* Checks the names and tensors that are to be written, and returns them as an array.  blocks: the format has dtypes in
   blocks.  Returns NULL if there are no tensors, or NULL and sets an error. */
OPDI_INTERNAL opdi_output *opdi_outputs(const opdi_source *source, const char *const *names, opd_tensors tensors,
                                        bool blocks) {
    int64_t i;
    if (!source->path || tensors.n < 0 || (tensors.n && (!names || !tensors.data))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the %s NULL", source->who,
                       source->path ? "names or tensors are" : "path is");
        return NULL;
    }
    if (tensors.n == 0) { return NULL; }
    opdi_output *output = (opdi_output *)opdi_alloc((size_t)tensors.n * sizeof *output);
    if (!output) { return NULL; }
    memset(output, 0, (size_t)tensors.n * sizeof *output);
    for (i = 0; i < tensors.n && opdi_name_check(source, names[i], "a name") == 0; i++) {
        output[i].name = names[i];
        output[i].tensor = !blocks && opdi_blocks_refused(tensors.data[i], source->who) ? NULL
            : opdi_host_of(tensors.data[i], source->who);
        if (!output[i].tensor) { break; }
        output[i].bytes = (uint64_t)opdi_elements_bytes(output[i].tensor->dtype, output[i].tensor->numel);
    }
    if (i == tensors.n && opdi_names_differ(source, output, i) == 0) { return output; }
    opdi_outputs_free(output, tensors.n);
    return NULL;
}

/* Appends text to `string` as a JSON string. */
OPDI_INTERNAL void opdi_json_put(opdi_string *string, const char *text) {
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    opdi_string_add(string, "\"");
    for (; *text; text++) {
        const char *at = strchr(from, *text);
        char out[8];
        if (at) { (void)snprintf(out, sizeof out, "\\%c", to[at - from]); }
        else { (void)snprintf(out, sizeof out, (unsigned char)*text < 32 ? "\\u%04x" : "%c", *text); }
        opdi_string_add(string, out);
    }
    opdi_string_add(string, "\"");
}
/* Builds the header of a safetensors file in `string`: its length, then the metadata (pairs of a key and a value, up to
   a NULL) and the tensors' descriptions in JSON.  Returns 0, or -1 and sets an error. */
static int opdi_safetensors_build(const opdi_source *source, opdi_output *output, int64_t count,
                                  const char *const *metadata, opdi_string *string) {
    uint64_t at = 0;
    char text[64];
    opdi_string_add_n(string, "\0\0\0\0\0\0\0\0{", 9);
    if (metadata) { opdi_string_add(string, "\"__metadata__\":{"); }
    for (int64_t i = 0; metadata && metadata[i]; i += 2) {
        if (opdi_name_check(source, metadata[i], "a key of the metadata") ||
            opdi_name_check(source, metadata[i + 1], "a value of the metadata")) { return -1; }
        if (i) { opdi_string_add(string, ","); }
        opdi_json_put(string, metadata[i]);
        opdi_string_add(string, ":");
        opdi_json_put(string, metadata[i + 1]);
    }
    if (metadata) { opdi_string_add(string, count ? "}," : "}"); }
    for (int64_t i = 0; i < count; i++) {
        const opd_tensor *tensor = output[i].tensor;
        opdi_json_put(string, output[i].name);
        opdi_string_add(string, ":{\"dtype\":\"");
        opdi_string_add(string, opdi_safetensors_dtypes[output[i].row].name);
        opdi_string_add(string, "\",\"shape\":[");
        for (int dim = 0; dim < tensor->ndim; dim++) {
            (void)snprintf(text, sizeof text, "%s%lld", dim ? "," : "", (long long)tensor->dims[dim]);
            opdi_string_add(string, text);
        }
        (void)snprintf(text, sizeof text, "],\"data_offsets\":[%llu,%llu]}%s", (unsigned long long)at,
                       (unsigned long long)(at + output[i].bytes), i + 1 < count ? "," : "");
        opdi_string_add(string, text);
        at += output[i].bytes;
    }
    opdi_string_add(string, "}");
    while (!string->failed && string->length % 8) { opdi_string_add(string, " "); }
    if (string->failed) { return -1; }
    if (string->length - 8 > OPDI_SAFETENSORS_HEADER) {
        return opdi_bad(source, OPDI_NOWHERE, "the header is too long for the format");
    }
    for (int dim = 0; dim < 8; dim++) { string->data[dim] = (char)((uint64_t)(string->length - 8) >> 8 * dim & 255); }
    return 0;
}
/* Checks and sorts the tensors, builds the header and writes the file.  An old file is replaced only when the new file
   is complete.  Returns 0, or -1 and sets an error. */
int opd_safetensors_save(const char *path, const char *const *names, opd_tensors tensors,
                         const char *const *metadata) {
    opdi_source source = {"opd_safetensors_save", path, /* entry, data, length */ NULL, NULL, 0};
    opdi_string header = {NULL, 0, 0, false};
    opdi_sink sink;
    if (!opd_ok()) { return -1; }
    opdi_output *output = opdi_outputs(&source, names, tensors, false);
    int rc = opd_ok() ? 0 : -1;
    for (int64_t i = 0; rc == 0 && i < tensors.n; i++) {
        int row = 0;
        while (row < OPDI_SAFETENSORS_DTYPES &&
               opdi_safetensors_dtypes[row].dtype != (opd_scalar_type)output[i].tensor->dtype) {
            row++;
        }
        output[i].row = row;
        source.entry = output[i].name;
        if (row == OPDI_SAFETENSORS_DTYPES) {
            rc = opdi_bad(&source, OPDI_NOWHERE, "safetensors has no dtype %s",
                          opd_dtype_name((opd_scalar_type)output[i].tensor->dtype));
        } else if (strcmp(output[i].name, "__metadata__") == 0) {
            rc = opdi_bad(&source, OPDI_NOWHERE, "a tensor cannot have this name");
        }
        source.entry = NULL;
    }
    if (output && rc == 0) { qsort(output, (size_t)tensors.n, sizeof *output, opdi_by_output); }
    if (rc == 0) { rc = opdi_safetensors_build(&source, output, tensors.n, metadata, &header); }
    if (rc == 0 && (rc = opdi_sink_open(&sink, source.who, path)) == 0) {
        rc = opdi_sink_put(&sink, header.data, header.length);
        sink.swap = opdi_big_endian();
        for (int64_t i = 0; rc == 0 && i < tensors.n; i++) { rc = opdi_sink_tensor(&sink, output[i].tensor); }
        rc = opdi_sink_close(&sink, rc);
    }
    opdi_string_free(&header);
    opdi_outputs_free(output, tensors.n);
    return rc;
}

OPDI_INTERNAL uint64_t opdi_zip64_from = 0xffffffffu;    /* sizes and positions >= this need 64-bit fields */
OPDI_INTERNAL unsigned char *opdi_le_put(unsigned char *at, uint64_t value, int bytes) {
    for (; bytes; bytes--, value >>= 8) { *at++ = (unsigned char)(value & 255); }
    return at;
}
/* Writes the header of an entry: the local header in front of its data, or the directory's if `central` is true.
   Returns 0, or -1 and sets an error. */
static int opdi_zip_put(opdi_sink *sink, const opdi_output *output, bool central) {
    const bool big = output->bytes >= opdi_zip64_from, late = central && output->begin >= opdi_zip64_from;
    const size_t length = strlen(output->name);
    unsigned char head[128], *at = head;
    const char *here = output->name;
    while (*here && (unsigned char)*here < 0x80) { here++; }
    at = opdi_le_put(at, central ? 0x02014b50u : 0x04034b50u, 4);
    if (central) { at = opdi_le_put(at, 3 << 8 | 45, 2); }
    at = opdi_le_put(at, big || late ? 45 : 20, 2);
    at = opdi_le_put(at, *here ? 0x800 : 0, 2);   /* the name is UTF-8 */
    at = opdi_le_put(at, 0, 2);                   /* not compressed */
    at = opdi_le_put(at, 0x21 << 16, 4);          /* the date: 1 January 1980 */
    at = opdi_le_put(at, output->crc, 4);
    at = opdi_le_put(at, big ? 0xffffffffu : output->bytes, 4);
    at = opdi_le_put(at, big ? 0xffffffffu : output->bytes, 4);
    at = opdi_le_put(at, length + 4, 2);
    at = opdi_le_put(at, big || late ? 4 + 16 * (unsigned)big + 8 * (unsigned)late : 0, 2);
    if (central) {
        at = opdi_le_put(at, 0, 6);
        at = opdi_le_put(at, 0100644u << 16, 4);
        at = opdi_le_put(at, late ? 0xffffffffu : output->begin, 4);
    }
    if (opdi_sink_put(sink, head, (size_t)(at - head)) || opdi_sink_put(sink, output->name, length) ||
        opdi_sink_put(sink, ".npy", 4)) {
        return -1;
    }
    if (!big && !late) { return 0; }
    unsigned char *extra = opdi_le_put(head, 1, 2);
    extra = opdi_le_put(extra, 16 * (unsigned)big + 8 * (unsigned)late, 2);
    if (big) { extra = opdi_le_put(opdi_le_put(extra, output->bytes, 8), output->bytes, 8); }
    if (late) { extra = opdi_le_put(extra, output->begin, 8); }
    return opdi_sink_put(sink, head, (size_t)(extra - head));
}
OPDI_INTERNAL int opdi_zip_end(opdi_sink *sink, uint64_t begin, uint64_t count) {
    const uint64_t at = sink->at, size = at - begin;
    const bool big = count >= 0xffff || size >= opdi_zip64_from || begin >= opdi_zip64_from;
    unsigned char head[128], *here = head;
    if (big) {
        here = opdi_le_put(opdi_le_put(here, 0x06064b50u, 4), 44, 8);
        here = opdi_le_put(opdi_le_put(here, 3 << 8 | 45, 2), 45, 2);
        here = opdi_le_put(here, 0, 8);
        here = opdi_le_put(opdi_le_put(here, count, 8), count, 8);
        here = opdi_le_put(opdi_le_put(here, size, 8), begin, 8);
        here = opdi_le_put(opdi_le_put(here, 0x07064b50u, 4), 0, 4);
        here = opdi_le_put(opdi_le_put(here, at, 8), 1, 4);
    }
    here = opdi_le_put(opdi_le_put(here, 0x06054b50u, 4), 0, 4);
    here = opdi_le_put(opdi_le_put(here, big ? 0xffff : count, 2), big ? 0xffff : count, 2);
    here = opdi_le_put(opdi_le_put(here, big ? 0xffffffffu : size, 4), big ? 0xffffffffu : begin, 4);
    here = opdi_le_put(here, 0, 2);
    return opdi_sink_put(sink, head, (size_t)(here - head));
}
/* Writes the entries and the directory of a .npz file.  Returns 0, or -1 and sets an error. */
static int opdi_npz_write(opdi_sink *sink, opdi_output *output, int64_t count) {
    opdi_crc table;
    opdi_crc_init(&table);
    for (int64_t i = 0; i < count; i++) {         /* each tensor is written twice: to the checksum, then to the file */
        opdi_sink sum;
        memset(&sum, 0, sizeof sum);
        sum.source = sink->source;
        sum.source.entry = output[i].name;
        sum.table = &table;
        if (strlen(output[i].name) > 65000) {
            return opdi_bad(&sink->source, OPDI_NOWHERE, "a name is too long for a zip file");
        }
        if (opdi_npy_write(&sum, output[i].tensor)) { return -1; }
        output[i].begin = sink->at;
        output[i].bytes = sum.at;
        output[i].crc = sum.crc;
        if (opdi_zip_put(sink, &output[i], false) || opdi_npy_write(sink, output[i].tensor)) { return -1; }
    }
    uint64_t begin = sink->at;
    for (int64_t i = 0; i < count; i++) {
        if (opdi_zip_put(sink, &output[i], true)) { return -1; }
    }
    return opdi_zip_end(sink, begin, (uint64_t)count);
}
int opd_npz_save(const char *path, const char *const *names, opd_tensors tensors) {
    opdi_source source = {"opd_npz_save", path, /* entry, data, length */ NULL, NULL, 0};
    opdi_sink sink;
    if (!opd_ok()) { return -1; }
    opdi_output *output = opdi_outputs(&source, names, tensors, false);
    int rc = opd_ok() ? opdi_sink_open(&sink, source.who, path) : -1;
    if (rc == 0) { rc = opdi_sink_close(&sink, opdi_npz_write(&sink, output, tensors.n)); }
    opdi_outputs_free(output, tensors.n);
    return rc;
}
