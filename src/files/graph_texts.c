#include "files.h"

//== texts of graphs ===================================================================================================
//
//  The text is the graph as it is printed, with names of overloads.  A constant tensor whose text would not have all of
//  its elements is written as "$NAME"; the file PATH.safetensors beside the text has the tensor under this name, which
//  is the name of its value.

/* The constants of a graph that is written. */
typedef struct opdi_named_constants {
    const char **names;
    opd_tensor **tensors;
    int64_t count, next;         /* next: the one that is probably asked for next */
} opdi_named_constants;

/* Reads a text whose large constants `named` finds.  Returns the graph, or NULL and sets an error. */
OPDI_INTERNAL opd_graph *opdi_graph_parse_beside(const char *text, opdi_graph_named_fn named, void *user) {
    opdi_thread *const thread = opdi_self();
    const uint64_t was = opdi_enter(thread);      /* schemas stay valid until opdi_leave, as in a call */
    opd_graph *const graph = opdi_graph_parse(text, NULL, 0, named, user);
    opdi_leave(thread, was);
    return graph;
}
/* Returns the constant `name` of the graph that is written, or NULL and sets an error. */
static opd_tensor *opdi_named_constant(opdi_graph_parser *parser, const char *name, const opdi_gvalue *type) {
    opdi_named_constants *const all = (opdi_named_constants *)parser->user;
    (void)type;
    for (int64_t i = 0; i < all->count; i++) {
        const int64_t at = (all->next + i) % all->count;
        if (strcmp(all->names[at], name) != 0) { continue; }
        all->next = at + 1;
        return all->tensors[at];
    }
    (void)opdi_graph_parse_fail(parser, "there is no constant $%s", name);
    return NULL;
}
/* Returns the path of the file beside a text, in the memory of the innermost scope; NULL if memory runs out. */
static const char *opdi_path_beside(const char *path) {
    const size_t bytes = strlen(path) + sizeof ".safetensors";
    char *const beside = (char *)opdi_scope_alloc(bytes);
    if (beside) { (void)snprintf(beside, bytes, "%s.safetensors", path); }
    return beside;
}
/* Finds the constants of a graph that stand in the file beside its text.  Returns 0, or -1 and sets an error. */
static int opdi_named_constants_find(const opd_graph *graph, opdi_named_constants *all) {
    int64_t count = 0;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        count += node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_TENSOR;
    }
    memset(all, 0, sizeof *all);
    all->names = (const char **)opdi_scope_alloc((size_t)(count + 1) * sizeof *all->names);
    all->tensors = (opd_tensor **)opdi_scope_alloc((size_t)(count + 1) * sizeof *all->tensors);
    if (!all->names || !all->tensors) { return -1; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_TENSOR ||
            opdi_graph_tensor_is_short(node->out[0], node->constant.u.t)) { continue; }
        opdi_text text = opdi_text_of(NULL, 0);
        opdi_gvalue_name_only(&text, node->out[0]);
        char *const name = (char *)opdi_scope_alloc(text.length + 1);
        if (!name) { return -1; }
        text = opdi_text_of(name, text.length + 1);
        opdi_gvalue_name_only(&text, node->out[0]);
        all->names[all->count] = name;
        all->tensors[all->count++] = node->constant.u.t;
    }
    return 0;
}
/* Writes the files.  Returns 0, or -1 and sets an error. */
static int opdi_graph_write_text(const char *path, const char *text, const opdi_named_constants *all) {
    opdi_sink sink;
    const char *const beside = opdi_path_beside(path);
    if (!beside || (all->count && opd_safetensors_save(beside, all->names, opd_tensors_of(all->tensors, all->count),
                                                       NULL))) { return -1; }
    return opdi_sink_open(&sink, "opd_graph_save_text", path) ? -1
        : opdi_sink_close(&sink, opdi_sink_put(&sink, text, strlen(text)));
}
/* Makes the text of a graph, and checks that it can be read back.  Returns the text, in the memory of the innermost
   scope, or NULL and sets an error. */
static char *opdi_graph_checked_text(const opd_graph *graph, opdi_named_constants *all) {
    const size_t bytes = opdi_graph_text(graph, NULL, 0, OPDI_TEXT_NAMED) + 1;
    char *const text = (char *)opdi_scope_alloc(bytes);
    if (!text || !opd_ok()) { return NULL; }
    (void)opdi_graph_text(graph, text, bytes, OPDI_TEXT_NAMED);
    opd_graph *const again = opd_ok() ? opdi_graph_parse_beside(text, opdi_named_constant, all) : NULL;
    const bool same = again && opd_graph_equal(again, graph);
    if (again) { opd_graph_free(again); }
    if (same) { return text; }
    if (opd_ok()) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_save_text: the text of the graph does not give the same graph; "
                       "save the graph with opd_graph_save");
    } else if (opd_error_code() != OPD_ERROR_MEMORY) {
        (void)opdi_fail_more(" [opd_graph_save_text: the text of the graph cannot be read back]");
    }
    return NULL;
}
int opd_graph_save_text(const opd_graph *graph, const char *path) {
    opdi_named_constants all;
    if (!opd_ok()) { return -1; }
    if (!graph || !path) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_save_text: the %s is NULL", graph ? "path" : "graph");
    }
    if (opdi_graph_check_constants("opd_graph_save_text", graph)) { return -1; }
    opd_scope scope = opd_scope_open();
    const char *const text = opdi_named_constants_find(graph, &all) ? NULL : opdi_graph_checked_text(graph, &all);
    const int rc = text ? opdi_graph_write_text(path, text, &all) : -1;
    opd_scope_close(&scope);
    return rc;
}

/* The file beside a text that is read; it is opened when the first constant is found. */
typedef struct opdi_beside { const char *path; opd_tensor_file *file; } opdi_beside;
/* Returns the tensor `name` of the file beside a text, or NULL and sets an error.  If the text gives it a type with
   sizes, the tensor must have this type. */
static opd_tensor *opdi_beside_constant(opdi_graph_parser *parser, const char *name, const opdi_gvalue *type) {
    opdi_beside *const beside = (opdi_beside *)parser->user;
    opd_tensor *tensor = NULL;
    char sizes[200];
    if (beside->file || (beside->file = opd_tensor_file_open(beside->path)) != NULL) {
        if (opd_tensor_file_find(beside->file, name) < 0) {
            (void)opdi_graph_parse_fail(parser, "the file '%.300s' has no tensor '%s'", beside->path, name);
            return NULL;
        }
        tensor = opd_tensor_file_get(beside->file, name);
    }
    if (!tensor) {
        (void)opdi_fail_more(" [line %d of the graph]", parser->line);
        return NULL;
    }
    bool same = type->dtype < 0 || (type->dtype == tensor->dtype && type->ndim == tensor->ndim);
    for (int i = 0; same && type->dtype >= 0 && i < tensor->ndim; i++) { same = type->dims[i] == tensor->dims[i]; }
    if (same) { return tensor; }
    (void)opdi_graph_parse_fail(parser, "the constant $%s is a %s tensor of sizes %s, which differs from its type in "
                                "the text", name, opd_dtype_name((opd_scalar_type)tensor->dtype),
                                opdi_sizes_text(tensor->dims, tensor->ndim, sizes, sizeof sizes));
    return NULL;
}
/* Returns the graph of a text of a file, or NULL and sets an error. */
static opd_graph *opdi_graph_read_text(const opdi_source *source, const char *path) {
    opdi_beside beside = {opdi_path_beside(path), NULL};
    char *const text = (char *)opdi_scope_alloc(source->length + 1);
    if (!text || !beside.path) { return NULL; }
    if (source->length) { memcpy(text, source->data, source->length); }
    text[source->length] = 0;
    if (strlen(text) < source->length) {
        int line = 1;
        for (const char *at = text; *at; at++) { line += *at == '\n'; }
        (void)opd_fail(OPD_ERROR_ARGUMENT, "line %d of the graph: the text contains a zero byte", line);
        return NULL;
    }
    opd_graph *const graph = opdi_graph_parse_beside(text, opdi_beside_constant, &beside);
    opd_tensor_file_close(beside.file);
    return graph;
}
opd_graph *opd_graph_load_text(const char *path) {
    OPDI_NEEDS_ALL();
    opdi_source source;
    opdi_file_buffer *const buffer = opdi_file_buffer_open(&source, "opd_graph_load_text", path, NULL);
    if (!buffer) { return NULL; }
    opd_scope scope = opd_scope_open();
    opd_graph *const graph = opdi_graph_read_text(&source, path);
    opd_scope_close(&scope);
    opdi_file_buffer_drop(buffer);
    if (!graph) { (void)opdi_fail_more(" [%s]", path); }
    return graph;
}
