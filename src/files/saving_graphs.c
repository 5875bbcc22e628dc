#include "files.h"

//== saved graphs ======================================================================================================
//
//  The format of a saved graph; all numbers are little-endian:
//    bytes 0-7      "OPDGRAPH"
//    bytes 8-11     the version, which is 1
//    bytes 12-15    the CRC-32 of all bytes from 16 on
//    bytes 16-39    64 bits each: the size of the file, the size of the text with its padding, the number of constants
//    the text       the graph as it is printed, with names of overloads and constants ($0), and a comment for each
//                   operator that is not built in ("# NAME registered at FILE:LINE of PLUG-IN"); ends with a zero,
//                   padded to 8 bytes
//    each constant  dtype and ndim (32 bits each); the number of bytes of the elements, and the sizes (64 bits each);
//                   the elements in the order of contiguous tensors, padded to 8 bytes

#define OPDI_GRAPH_HEAD 40
static size_t opdi_pad8(size_t count) { return (count + 7) & ~(size_t)7; }

/* Returns the tensor of a constant node, or NULL. */
static opd_tensor *opdi_gnode_tensor(const opdi_gnode *node) {
    return node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_TENSOR ? node->constant.u.t : NULL;
}
static size_t opdi_tensor_bytes(const opd_tensor *tensor) {
    return (size_t)opdi_elements_bytes(tensor->dtype, tensor->numel);
}

static int opdi_graph_put_tensor(opdi_sink *sink, opd_tensor *tensor) {
    static const unsigned char zeros[8] = {0};
    unsigned char head[16 + 8 * OPD_MAX_DIMS], *at = opdi_le_put(head, (uint64_t)tensor->dtype, 4);
    const size_t bytes = opdi_tensor_bytes(tensor);
    opd_tensor *host = opdi_blocks_refused(tensor, sink->source.who) ? NULL : opdi_host_of(tensor, sink->source.who);
    if (!host) { return -1; }
    at = opdi_le_put(opdi_le_put(at, tensor->ndim, 4), bytes, 8);
    for (int i = 0; i < tensor->ndim; i++) { at = opdi_le_put(at, (uint64_t)tensor->dims[i], 8); }
    int rc = opdi_sink_put(sink, head, (size_t)(at - head)) || opdi_sink_tensor(sink, host) ||
        opdi_sink_put(sink, zeros, opdi_pad8(bytes) - bytes) ? -1 : 0;
    opdi_drop(host);
    return rc;
}
/* Writes all parts of a saved graph that follow the checksum. `text` is padded.  Returns 0, or -1 and sets an error. */
static int opdi_graph_put(opdi_sink *sink, const opd_graph *graph, const char *text, size_t text_bytes) {
    size_t bytes = OPDI_GRAPH_HEAD + text_bytes;
    unsigned char head[24];
    uint64_t constants = 0;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const opd_tensor *tensor = opdi_gnode_tensor(node);
        if (!tensor) { continue; }
        constants++;
        bytes += 16 + 8 * (size_t)tensor->ndim + opdi_pad8(opdi_tensor_bytes(tensor));
    }
    (void)opdi_le_put(opdi_le_put(opdi_le_put(head, bytes, 8), text_bytes, 8), constants, 8);
    if (opdi_sink_put(sink, head, sizeof head) || opdi_sink_put(sink, text, text_bytes)) { return -1; }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        opd_tensor *tensor = opdi_gnode_tensor(node);
        if (tensor && opdi_graph_put_tensor(sink, tensor)) { return -1; }
    }
    return 0;
}
static int opdi_graph_write(opdi_sink *sink, const opd_graph *graph, const char *text, size_t length) {
    unsigned char head[16] = {'O', 'P', 'D', 'G', 'R', 'A', 'P', 'H'};
    opdi_crc table;
    opdi_sink sum;
    opdi_crc_init(&table);
    memset(&sum, 0, sizeof sum);                  /* the graph is written twice: to the checksum, then to the file */
    sum.source = sink->source;
    sum.table = &table;
    sink->swap = sum.swap = opdi_big_endian();
    if (opdi_graph_put(&sum, graph, text, length)) { return -1; }
    (void)opdi_le_put(opdi_le_put(head + 8, 1, 4), sum.crc, 4);
    return opdi_sink_put(sink, head, sizeof head) ? -1 : opdi_graph_put(sink, graph, text, length);
}
/* Returns whether the text of a graph can be read again with this constant.  Constants that are dicts, lists, tuples or
   strings of scripts need a type, and must not contain tensors or objects. */
static bool opdi_constant_is_kept(const opdi_gvalue *constant, const opd_value *value, int depth) {
    const opdi_cell *const cell = opdi_cell_of(value);
    if (!cell || cell->kind == OPD_CELL_STR || cell->kind == OPD_CELL_COMPLEX) {
        return depth == 0 ? !cell || constant->type : value->tag != OPD_TAG_TENSOR && value->tag != OPD_TAG_OBJECT;
    }
    bool kept = constant->type && cell->kind != OPD_CELL_OBJECT && depth < OPDI_MAX_CELL_DEPTH;
    const int64_t count = cell->kind == OPD_CELL_DICT ? 2 * cell->count : cell->count;
    for (int64_t i = 0; i < count && kept; i++) {
        const opd_value element = cell->kind == OPD_CELL_LIST ? opdi_cell_at(cell, i) : cell->u.values[i];
        kept = opdi_constant_is_kept(constant, &element, depth + 1);
    }
    return kept;
}
/* Checks that a file can keep all constants and calls of a graph.  `who` is the function that writes it.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_check_constants(const char *who, const opd_graph *graph) {
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind == OPDI_GNODE_FUNCTION) {
            return opd_fail(OPD_ERROR_ARGUMENT, node->function->flags & OPDI_GFUNCTION_COUNTED
                            ? "%s: a file cannot keep the compiled part '%s': save the graph before opd_graph_delegate"
                            : "%s: a file cannot keep the call of '%s', a function of an exported program", who,
                            node->function->name);
        }
        for (int32_t i = 0; i < node->nin; i++) {
            const opdi_gnode *const from = node->in[i]->node;
            if (!from || from->kind != OPDI_GNODE_CONSTANT || opdi_constant_is_kept(from->out[0], &from->constant, 0)) {
                continue;
            }
            char name[100];
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s: argument '%s' is a constant (%s) that a file cannot keep",
                            who, opdi_gnode_name(node, name, sizeof name), node->op
                            ? node->op->schema->args[i].name : "", opdi_value_kind_name(&from->constant));
        }
    }
    return 0;
}
/* Writes the graph's text and its constants.  An old file is replaced only when the new file is complete.  Returns 0,
   or -1 and sets an error. */
int opd_graph_save(const opd_graph *graph, const char *path) {
    opdi_sink sink;
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_save: the graph is NULL"); }
    if (opdi_graph_check_constants("opd_graph_save", graph)) { return -1; }
    opd_scope scope = opd_scope_open();
    size_t count = opdi_pad8(opdi_graph_text(graph, NULL, 0, OPDI_TEXT_SAVED) + 1);
    char *text = (char *)opdi_scope_alloc(count);
    if (text) {
        memset(text, 0, count);
        (void)opdi_graph_text(graph, text, count, OPDI_TEXT_SAVED);
        rc = opd_ok() ? opdi_sink_open(&sink, "opd_graph_save", path) : -1;
        if (rc == 0) { rc = opdi_sink_close(&sink, opdi_graph_write(&sink, graph, text, count)); }
    }
    opd_scope_close(&scope);
    return rc;
}

/* Reads the constant at byte *at, and moves *at past it.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_graph_get_tensor(const opdi_source *source, size_t *at) {
    const unsigned char *here = source->data + *at;
    const size_t left = source->length - *at;
    const uint32_t dtype = left >= 16 ? opdi_le32(here) : 0, ndim = left >= 16 ? opdi_le32(here + 4) : 0;
    const size_t element = dtype < 128 ? opd_dtype_size((opd_scalar_type)dtype) : 0;
    const uint64_t bytes = left >= 16 ? opdi_le64(here + 8) : 0;
    int64_t sizes[OPD_MAX_DIMS];
    if (left < 16 || !element || ndim > OPD_MAX_DIMS || left - 16 < 8 * (size_t)ndim ||
        bytes > left - 16 - 8 * (size_t)ndim) {
        (void)opdi_bad(source, *at, "the constant does not fit into the file");
        return NULL;
    }
    for (uint32_t i = 0; i < ndim; i++) {
        sizes[i] = (int64_t)opdi_le64(here + 16 + 8 * i);
        if (sizes[i] < 0) {
            (void)opdi_bad(source, *at, "a size of the constant is negative");
            return NULL;
        }
    }
    if (opdi_sizes_bytes(source, *at, sizes, (int)ndim, 8 * (int64_t)element) != (int64_t)bytes) {
        if (opd_ok()) {
            (void)opdi_bad(source, *at, "the sizes of the constant do not match its %llu bytes",
                           (unsigned long long)bytes);
        }
        return NULL;
    }
    opd_tensor *tensor = opdi_own(opdi_tensor_make(sizes, NULL, (int)ndim, (opd_scalar_type)dtype, OPD_CPU));
    if (!tensor) { return NULL; }
    *at += 16 + 8 * (size_t)ndim;
    if (bytes) { memcpy(tensor->data, source->data + *at, (size_t)bytes); }
    if (opdi_big_endian()) {
        opdi_swap(tensor->data, (size_t)bytes, element >> opd_dtype_is_complex((opd_scalar_type)dtype));
    }
    if (opdi_bools_check(source, *at, (opd_scalar_type)dtype, tensor->data, (size_t)bytes)) { return NULL; }
    *at += OPDI_MIN(source->length - *at, opdi_pad8((size_t)bytes));
    return tensor;
}
/* Checks a saved graph, reads its constants and parses its text.  On failure, returns NULL and sets an error. */
static opd_graph *opdi_graph_read(const opdi_source *source) {
    opd_tensor **constants;
    uint64_t k;
    size_t at;
    char *own;
    if (source->length < OPDI_GRAPH_HEAD || memcmp(source->data, "OPDGRAPH", 8) != 0) {
        (void)opdi_bad(source, 0, "this is not a file of a graph, which begins with OPDGRAPH");
        return NULL;
    }
    uint64_t text = opdi_le64(source->data + 24);
    uint64_t count = opdi_le64(source->data + 32);
    if (opdi_le32(source->data + 8) != 1) {
        (void)opdi_bad(source, 8, "the file has version %lu of the format, but only version 1 can be read",
                       (unsigned long)opdi_le32(source->data + 8));
    } else if (opdi_le64(source->data + 16) != source->length) {
        (void)opdi_bad(source, 16, "the file should have %llu bytes, but has %llu",
                       (unsigned long long)opdi_le64(source->data + 16), (unsigned long long)source->length);
    } else {
        opdi_crc table;
        opdi_crc_init(&table);
        if (opdi_crc_add(&table, 0, source->data + 16, source->length - 16) != opdi_le32(source->data + 12)) {
            (void)opdi_bad(source, 12, "the file is damaged: its checksum is wrong");
        } else if (text == 0 || text > source->length - OPDI_GRAPH_HEAD || source->data[OPDI_GRAPH_HEAD + text - 1]) {
            (void)opdi_bad(source, 24, "the file is too short for a text of %llu bytes", (unsigned long long)text);
        } else if (count > (source->length - OPDI_GRAPH_HEAD - text) / 16 || count >= INT32_MAX) {
            (void)opdi_bad(source, 32, "the file is too short for %llu constants", (unsigned long long)count);
        }
    }
    if (!opd_ok() || !(constants = opdi_scope_tensors((int)count))) { return NULL; }
    for (k = 0, at = OPDI_GRAPH_HEAD + (size_t)text; k < count; k++) {
        if (!(constants[k] = opdi_graph_get_tensor(source, &at))) { return NULL; }
    }
    if (!(own = (char *)opdi_scope_alloc((size_t)text))) { return NULL; }
    memcpy(own, source->data + OPDI_GRAPH_HEAD, (size_t)text);
    own[text - 1] = 0;                            /* in case another program has changed the file since */
    return opdi_graph_parse(own, constants, (int64_t)count, /* named, user */ NULL, NULL);
}
static opd_graph *opdi_graph_read_in_scope(const opdi_source *source) {
    opd_scope scope = opd_scope_open();
    opd_graph *graph = opdi_graph_read(source);
    opd_scope_close(&scope);
    return graph;
}
opd_graph *opd_graph_from_bytes(const void *data, size_t size) {
    OPDI_NEEDS_ALL();
    opdi_source source = {"opd_graph_from_bytes", "memory", /* entry, data, length */ NULL, NULL, 0};
    source.data = (const unsigned char *)data;
    source.length = size;
    if (!opd_ok()) { return NULL; }
    if (!data) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_from_bytes: the data is NULL");
        return NULL;
    }
    return opdi_graph_read_in_scope(&source);
}
static uint64_t opdi_graph_file_length(const opdi_source *source) {
    if (source->length < OPDI_GRAPH_HEAD) { return OPDI_GRAPH_HEAD; }
    return memcmp(source->data, "OPDGRAPH", 8) == 0 && opdi_le32(source->data + 8) == 1 ? opdi_le64(source->data + 16)
        : 0;
}
opd_graph *opd_graph_load(const char *path) {
    OPDI_NEEDS_ALL();
    opdi_source source;
    opdi_file_buffer *buffer = opdi_file_buffer_open(&source, "opd_graph_load", path, opdi_graph_file_length);
    opd_graph *graph = buffer ? opdi_graph_read_in_scope(&source) : NULL;
    if (buffer) { opdi_file_buffer_drop(buffer); }
    if (buffer && !graph) { (void)opdi_fail_more(" [%s]", path); }
    return graph;
}
