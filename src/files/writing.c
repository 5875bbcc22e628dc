#include "files.h"

//== writing ===========================================================================================================

/* Sets sink->to to `path` or, if path is a link, to the file that it leads to.  Makes space for sink->tmp after this
   name.  Returns 0, or -1 and sets an error. */
static int opdi_sink_names(opdi_sink *sink, const char *path) {
    size_t size;
    char *const to = opdi_written_path(path, &size);
    if (!to) { return opd_ok() ? opdi_bad_errno(&sink->source, OPDI_NOWHERE, "cannot be written") : -1; }
    sink->bytes = 2 * size + 15;
    sink->to = (char *)opdi_alloc(sink->bytes);
    if (sink->to) { sink->tmp = (char *)memcpy(sink->to, to, size) + size; }
    opdi_free(to, size);
    return sink->to ? 0 : -1;
}
/* Opens a new temporary file for writing, in the folder of `path`; if `path` exists and is not a regular file (a pipe,
   for example), opens `path` itself.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sink_open(opdi_sink *sink, const char *who, const char *path) {
    memset(sink, 0, sizeof *sink);
    sink->source.who = who;
    sink->source.path = path;
    if (!opd_ok()) { return -1; }
    if (!path) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the path is NULL", who); }
    if (opdi_is_special(path)) {
        sink->file = opdi_file_open(path, "wb");
    } else {
        if (opdi_sink_names(sink, path)) { return -1; }
        for (int i = 0; i < 100 && !sink->file && (i == 0 || errno == EEXIST); i++) {
            (void)snprintf(sink->tmp, 16 + strlen(sink->to), "%s.tmp%d", sink->to, i);
            sink->file = opdi_file_create(sink->tmp);
        }
        if (sink->file) { opdi_same_mode(sink->tmp, sink->to); }
    }
    if (sink->file) { return 0; }
    (void)opdi_bad_errno(&sink->source, OPDI_NOWHERE, "cannot be written");
    if (sink->to) { opdi_free(sink->to, sink->bytes); }
    return -1;
}
OPDI_INTERNAL int opdi_sink_put(opdi_sink *sink, const void *data, size_t size) {
    if (sink->table) { sink->crc = opdi_crc_add(sink->table, sink->crc, data, size); }
    const uint64_t begin = sink->at;
    for (size_t at = 0; at < size;) {
        const size_t part = OPDI_MIN(size - at, OPDI_FILE_PART);
        if (sink->file && fwrite((const char *)data + at, 1, part, sink->file) != part) {
            return opdi_bad_errno(&sink->source, (size_t)begin, "cannot be written");
        }
        at += part;
        sink->at += part;
    }
    return 0;
}
/* Closes the file.  If rc is 0, gives the file its final name, otherwise removes it.  Writes all data to the disk
   before the file is renamed: otherwise the file could be empty after a crash.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sink_close(opdi_sink *sink, int rc) {
    if (sink->to && rc == 0 && opdi_file_flush(sink->file)) {
        rc = opdi_bad_errno(&sink->source, OPDI_NOWHERE, "cannot be written");
    }
    if (fclose(sink->file) && rc == 0) { rc = opdi_bad_errno(&sink->source, OPDI_NOWHERE, "cannot be written"); }
    if (sink->to && rc == 0 && opdi_file_replace(sink->tmp, sink->to)) {
        rc = opdi_bad_errno(&sink->source, OPDI_NOWHERE, "cannot be written");
    }
    if (sink->to && rc) { (void)opdi_file_remove(sink->tmp); }
    if (sink->to) { opdi_free(sink->to, sink->bytes); }
    return rc;
}
/* Writes the elements of a tensor in host memory, in the order of contiguous tensors.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_sink_tensor(opdi_sink *sink, const opd_tensor *tensor) {
    const size_t element = opd_dtype_size((opd_scalar_type)tensor->dtype);      /* 0 for a tensor in blocks */
    int64_t at[OPD_MAX_DIMS], left = tensor->numel;
    const char *here = tensor->data;
    char part[4096];
    size_t count = 0;
    if (tensor->numel == 0) { return 0; }
    if ((tensor->flags & OPDI_CONTIGUOUS) && !sink->swap) {
        return opdi_sink_put(sink, tensor->data, (size_t)opdi_elements_bytes(tensor->dtype, tensor->numel));
    }
    if (!element) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a tensor of %s, stored in blocks, can only be written if it is contiguous",
                        opd_dtype_name((opd_scalar_type)tensor->dtype));
    }
    memset(at, 0, sizeof at);
    for (; left; left--) {
        int dim = tensor->ndim - 1;
        memcpy(part + count, here, element);
        count += element;
        if (count == sizeof part || left == 1) {
            if (sink->swap) { opdi_swap(part, count, element >> opd_dtype_is_complex((opd_scalar_type)tensor->dtype)); }
            if (opdi_sink_put(sink, part, count)) { return -1; }
            count = 0;
        }
        for (; dim >= 0; dim--) {
            here += tensor->dims[tensor->ndim + dim] * (int64_t)element;
            if (++at[dim] < tensor->dims[dim]) { break; }
            here -= tensor->dims[tensor->ndim + dim] * tensor->dims[dim] * (int64_t)element;
            at[dim] = 0;
        }
    }
    return 0;
}
/* Returns a reference to tensor if the host can read it as it is, or to a copy that the host can read.  Returns NULL
   and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_host_of(opd_tensor *tensor, const char *who) {
    void *data;
    opd_tensor *host = NULL;
    if (tensor && !opdi_is_dead(tensor) && opdi_wait_for(tensor)) { return NULL; }
    if (tensor && !opdi_is_dead(tensor) && (tensor->flags & (OPDI_LAZY | OPDI_BATCHED)) == OPDI_LAZY) {
        OPD_SCOPE {
            opd_tensor *read = opdi_resolved(tensor);
            host = read ? opdi_host_of(read, who) : NULL;
        }
        return host;
    }
    if (opdi_memory_of(tensor, who, &data)) { return NULL; }
    if (opdi_on_device(tensor)) { return opdi_host_copy(tensor); }
    opdi_retain(tensor);
    return tensor;
}

#define OPDI_NPY_HEADER 2048     /* enough for 64 sizes */
/* Builds the header of a .npy file in buf.  As in the header by numpy.save, space for the first size to grow follows,
   and then blanks up to a multiple of 64.  Returns the header's length, or 0 and sets an error. */
static size_t opdi_npy_build(const opdi_source *source, const opd_tensor *tensor, char *buf) {
    const char *kind = opdi_npy_kinds[opdi_dtype_at(tensor->dtype)];
    opdi_text text = opdi_text_of(buf + 10, OPDI_NPY_HEADER - 10);
    char first[32];
    if (!*kind) {
        (void)opdi_bad(source, OPDI_NOWHERE, "NumPy has no dtype %s", opd_dtype_name((opd_scalar_type)tensor->dtype));
        return 0;
    }
    opdi_text_add(&text, "{'descr': '%c%s', 'fortran_order': False, 'shape': (",
                  kind[1] == '1' && !kind[2] ? '|' : opdi_big_endian() ? '>' : '<', kind);
    for (int i = 0; i < tensor->ndim; i++) { opdi_text_add(&text, i ? ", %lld" : "%lld", (long long)tensor->dims[i]); }
    opdi_text_add(&text, tensor->ndim == 1 ? ",), }" : "), }");
    size_t at = 10 + strlen(buf + 10);
    size_t length = at + 1 + (tensor->ndim ? 21 - (size_t)snprintf(first, sizeof first, "%lld",
                                                                   (long long)tensor->dims[0]) : 0);
    length = (length + 63) & ~(size_t)63;
    memset(buf + at, ' ', length - at);
    buf[length - 1] = '\n';
    memcpy(buf, "\x93NUMPY\1\0", 8);
    buf[8] = (char)((length - 10) & 255);
    buf[9] = (char)((length - 10) >> 8);
    return length;
}
OPDI_INTERNAL int opdi_npy_write(opdi_sink *sink, const opd_tensor *tensor) {
    char header[OPDI_NPY_HEADER];
    const size_t count = opdi_npy_build(&sink->source, tensor, header);
    return count && opdi_sink_put(sink, header, count) == 0 ? opdi_sink_tensor(sink, tensor) : -1;
}
int opd_npy_save(const char *path, opd_tensor *tensor) {
    opd_tensor *hidden;
    opdi_sink sink;
    if (!opd_ok() || opdi_blocks_refused(tensor, "opd_npy_save") ||
        !(hidden = opdi_host_of(tensor, "opd_npy_save"))) { return -1; }
    int rc = opdi_sink_open(&sink, "opd_npy_save", path);
    if (rc == 0) { rc = opdi_sink_close(&sink, opdi_npy_write(&sink, hidden)); }
    opdi_drop(hidden);
    return rc;
}
