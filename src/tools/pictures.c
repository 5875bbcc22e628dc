#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>pictures     the backward graph as Graphviz DOT
//
//  All objects that can be reached from the given tensors are numbered in the order in which they are found.  Then one
//  statement is written for each vertex and each edge.  This section reads nodes and changes nothing.
//----------------------------------------------------------------------------------------------------------------------

/* The objects that a picture shows.  vertices: the nodes, and the leaves (marked by OPDI_LEAF).  storages: the storages
   of saved tensors, which have `bytes` bytes in all. */
typedef struct opdi_picture {
    opdi_pointer_set vertices, storages;
    int64_t nodes, leaves, bytes;
    const opd_graph_options *options;
    opdi_text text;
} opdi_picture;

/* Appends `text`, escaped for a quoted string. */
static void opdi_picture_quote(opdi_text *out, const char *text) {
    for (; *text; text++) {
        if (*text == '\n') { opdi_text_add(out, "\\n"); }
        else { opdi_text_add(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text); }
    }
}
static void opdi_picture_bytes(opdi_text *text, int64_t count) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB"};
    double value = (double)count;
    int k = 0;
    while (value >= 1024 && k < 3) {
        value /= 1024;
        k++;
    }
    opdi_text_add(text, k ? "%.1f %s" : "%.0f %s", value, units[k]);
}
static void opdi_picture_sizes(opdi_text *text, const int64_t *sizes, int ndim, opd_scalar_type dtype) {
    char buf[400];
    opdi_text_add(text, "\\n%s %s", opdi_sizes_text(sizes, ndim, buf, sizeof buf), opd_dtype_name(dtype));
}
static const char *opdi_picture_name(const opdi_picture *picture, const opd_tensor *tensor) {
    for (int i = 0; i < picture->options->nnames; i++) {
        if (picture->options->tensors[i] == tensor) { return picture->options->names[i]; }
    }
    return NULL;
}

/* Returns the number of bytes of one saved tensor.  If its storage was not counted before, adds the bytes of the
   storage to picture->bytes.  Returns 0 for NULL, and if a saved-tensor hook has packed the tensor.  Returns -1 and
   sets an error on failure. */
static int64_t opdi_picture_saved_one(opdi_picture *picture, const opd_tensor *tensor) {
    const int64_t before = picture->storages.count;
    if (!tensor || opdi_packed_saved_at(tensor)) { return 0; }
    if (opdi_pointer_set_add(&picture->storages, (uintptr_t)tensor->storage) < 0) { return -1; }
    if (picture->storages.count > before) { picture->bytes += tensor->storage->bytes; }
    return opdi_elements_bytes(tensor->dtype, tensor->numel);
}
static int64_t opdi_picture_saved(opdi_picture *picture, const opd_node *node) {
    const opd_value *value = opdi_kept(node);
    int64_t sum = 0;
    for (; node; node = opdi_slices_inner(node), value = node ? opdi_kept(node) : NULL) {
        for (int32_t i = 0; i < node->nkept + node->nresults; i++) {
            const bool list = value[i].tag == OPD_TAG_TENSORS && value[i].u.tensors;
            for (int32_t k = 0; k < (value[i].tag == OPD_TAG_TENSOR ? 1 : list ? value[i].n : 0); k++) {
                int64_t one = opdi_picture_saved_one(picture, list ? value[i].u.tensors[k] : value[i].u.t);
                if (one < 0) { return -1; }
                sum += one;
            }
        }
    }
    return sum;
}

/* Appends the statement of node number `number`: its name, the sizes of at most four results, and the bytes that it
   has saved.  Returns 0, or -1 and sets an error. */
static int opdi_picture_node(opdi_picture *picture, int64_t number, const opd_node *node) {
    const opd_node *inner = opdi_slices_inner(node);
    const int64_t saved = opdi_picture_saved(picture, node);
    opdi_text *text = &picture->text;
    if (saved < 0) { return -1; }
    opdi_text_add(text, "  n%lld [label=\"", (long long)number);
    opdi_picture_quote(text, node->formula->name);
    if (inner) {
        opdi_text_add(text, " of ");
        opdi_picture_quote(text, inner->formula->name);
    }
    for (uint32_t i = 0; i < node->noutputs && i < 4; i++) {
        const int64_t *meta = opdi_node_meta(node, i);
        if (meta) { opdi_picture_sizes(text, meta + 1, opdi_meta_ndim(meta), (opd_scalar_type)(*meta & 255)); }
    }
    if (node->noutputs > 4) { opdi_text_add(text, "\\n... %u in all", (unsigned)node->noutputs); }
    if (!picture->options->no_saved && opdi_saved_is_freed(node)) { opdi_text_add(text, "\\nsaved: freed"); }
    else if (!picture->options->no_saved && saved > 0) {
        opdi_text_add(text, "\\nsaved ");
        opdi_picture_bytes(text, saved);
    }
    opdi_text_add(text, "\"];\n");
    picture->nodes++;
    return 0;
}
static void opdi_picture_leaf(opdi_picture *picture, int64_t number, const opd_tensor *leaf) {
    const char *name = opdi_picture_name(picture, leaf);
    opdi_text_add(&picture->text, "  n%lld [label=\"", (long long)number);
    opdi_picture_quote(&picture->text, name ? name : "leaf");
    opdi_picture_sizes(&picture->text, leaf->dims, leaf->ndim, (opd_scalar_type)leaf->dtype);
    opdi_text_add(&picture->text, "\", shape=ellipse, fillcolor=lightblue];\n");
    picture->leaves++;
}
static void opdi_picture_output(opdi_picture *picture, int i, opd_tensor *tensor, uintptr_t from) {
    const char *name = opdi_picture_name(picture, tensor);
    opdi_text_add(&picture->text, "  o%d [label=\"", i);
    opdi_picture_quote(&picture->text, name ? name : "output");
    opdi_picture_sizes(&picture->text, tensor->dims, tensor->ndim, (opd_scalar_type)tensor->dtype);
    opdi_text_add(&picture->text, "\", shape=ellipse, fillcolor=%s];\n", from ? "palegreen" : "lightgray");
    if (from) {
        opdi_text_add(&picture->text, "  n%lld -> o%d;\n", (long long)opdi_pointer_set_add(&picture->vertices, from),
                      i);
    }
}

/* Numbers all objects that can be reached from the `count` roots.  Returns 0, or -1 and sets an error. */
static int opdi_picture_find(opdi_picture *picture, const uintptr_t *roots, int count) {
    for (int i = 0; i < count; i++) {
        if (roots[i] && opdi_pointer_set_add(&picture->vertices, roots[i]) < 0) { return -1; }
    }
    for (int64_t k = 0; k < picture->vertices.count; k++) {
        const uintptr_t vertex = picture->vertices.at[k];
        const opd_node *node = vertex & OPDI_LEAF ? NULL : opdi_edge_node(vertex);
        for (int i = 0; node && i < node->nedges; i++) {
            const uintptr_t to = opdi_edges(node)[i].vertex;
            if (to && opdi_pointer_set_add(&picture->vertices, to) < 0) { return -1; }
        }
    }
    return 0;
}
/* Appends the whole picture: vertices, edges, the `count` given tensors, and the totals.  Returns 0, or -1 and sets an
   error. */
static int opdi_picture_write(opdi_picture *picture, opd_tensor *const *tensors, const uintptr_t *roots, int count) {
    opdi_text *text = &picture->text;
    opdi_text_add(text, "digraph backward {\n  graph [fontname=\"sans-serif\", fontsize=11];\n"
                  "  node [shape=box, style=filled, fillcolor=white, fontname=\"sans-serif\", fontsize=10];\n"
                  "  edge [fontname=\"sans-serif\", fontsize=9];\n");
    for (int64_t k = 0; k < picture->vertices.count; k++) {
        const uintptr_t vertex = picture->vertices.at[k];
        if (vertex & OPDI_LEAF) { opdi_picture_leaf(picture, k, opdi_edge_leaf(vertex)); }
        else if (opdi_picture_node(picture, k, opdi_edge_node(vertex))) { return -1; }
    }
    for (int64_t k = 0; k < picture->vertices.count; k++) {
        const uintptr_t vertex = picture->vertices.at[k];
        const opd_node *node = vertex & OPDI_LEAF ? NULL : opdi_edge_node(vertex);
        for (int i = 0; node && i < node->nedges; i++) {
            const opdi_edge *edge = &opdi_edges(node)[i];
            const bool several = edge->vertex && !(edge->vertex & OPDI_LEAF) &&
                opdi_edge_node(edge->vertex)->noutputs > 1;
            if (!edge->vertex) { continue; }
            opdi_text_add(text, "  n%lld -> n%lld", (long long)opdi_pointer_set_add(&picture->vertices, edge->vertex),
                          (long long)k);
            if (several) { opdi_text_add(text, " [label=\"%u\"]", (unsigned)edge->nr); }
            opdi_text_add(text, ";\n");
        }
    }
    for (int i = 0; i < count; i++) { opdi_picture_output(picture, i, tensors[i], roots[i]); }
    opdi_text_add(text, "  labelloc=t;\n  label=\"");
    if (picture->options->title) {
        opdi_picture_quote(text, picture->options->title);
        opdi_text_add(text, "\\n");
    }
    opdi_text_add(text, "%lld nodes, %lld leaves", (long long)picture->nodes, (long long)picture->leaves);
    if (!picture->options->no_saved) {
        opdi_text_add(text, ", saved tensors lie in ");
        opdi_picture_bytes(text, picture->bytes);
        opdi_text_add(text, " of memory");
    }
    opdi_text_add(text, "\";\n}\n");
    return 0;
}

/* Writes the picture into buf as far as it fits in `cap` bytes.  Returns the length of the whole text, or 0 and sets an
   error. */
size_t opd_graph_dot(opd_tensor *const *tensors, int count, const opd_graph_options *options, char *buf, size_t cap) {
    opd_graph_options none;
    opdi_picture picture;
    uintptr_t *roots;
    int rc = -1;
    memset(&none, 0, sizeof none);
    memset(&picture, 0, sizeof picture);
    if (cap && buf) { buf[0] = 0; }
    if (!opd_ok()) { return 0; }
    picture.options = options ? options : &none;
    if (count < 0 || (count && !tensors) || (cap && !buf) ||
        (picture.options->nnames > 0 && (!picture.options->tensors || !picture.options->names))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_dot: the pointer to an array is NULL");
        return 0;
    }
    for (int i = 0; i < count; i++) { if (opdi_null_tensor(tensors[i], "opd_graph_dot")) { return 0; } }
    for (int i = 0; i < picture.options->nnames; i++) {
        if (!picture.options->names[i]) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_dot: name %d is NULL", i);
            return 0;
        }
    }
    picture.text = opdi_text_of(buf, cap);
    if (!(roots = (uintptr_t *)opdi_alloc((size_t)(count + 1) * sizeof *roots))) { return 0; }
    for (int i = 0; i < count && opd_ok(); i++) {
        opd_node *node = opdi_grad_fn(tensors[i]);
        roots[i] = node ? (uintptr_t)node : !opd_tensor_requires_grad(tensors[i]) ? 0
                   : (uintptr_t)tensors[i] | OPDI_LEAF;
    }
    if (opd_ok() && opdi_picture_find(&picture, roots, count) == 0) {
        rc = opdi_picture_write(&picture, tensors, roots, count);
    }
    opdi_free(roots, (size_t)(count + 1) * sizeof *roots);
    opdi_pointer_set_free(&picture.vertices);
    opdi_pointer_set_free(&picture.storages);
    if (rc && cap) { buf[0] = 0; }
    return rc ? 0 : picture.text.length;
}
