#include "graphs.h"

//== graphs as text ====================================================================================================

#define OPDI_FULL_NAMED (-1)     /* see opdi_gnode_line */

/* Writes the name of a value without the sign %, which is also the name of a constant in a file beside the text. */
OPDI_INTERNAL void opdi_gvalue_name_only(opdi_text *text, const opdi_gvalue *value) {
    if (value->name) { opdi_text_add(text, "%s", value->name); } else { opdi_text_add(text, "%d", value->id); }
}
OPDI_INTERNAL void opdi_gvalue_name(opdi_text *text, const opdi_gvalue *value) {
    opdi_text_add(text, "%%");
    opdi_gvalue_name_only(text, value);
}
/* Writes size i of a tensor or, from its number of dims on, a stride: a number or an expression of open sizes. */
OPDI_INTERNAL void opdi_gvalue_print_dim(opdi_text *text, const opdi_gvalue *value, int i) {
    const opdi_gexpr *const expr = value->open && value->graph && value->graph->sizes ? value->open[i] : NULL;
    if (expr) { opdi_gexpr_print(text, value->graph->sizes, expr); }
    else { opdi_text_add(text, "%lld", (long long)value->dims[i]); }
}
/* Writes the type of a value as TorchScript prints it, but open sizes as expressions. */
OPDI_INTERNAL void opdi_gvalue_type(opdi_text *text, const opdi_gvalue *value) {
    static const char *const words[OPD_TAG_COUNT] = {"NoneType", "Tensor", "int", "float", "bool", "complex", "str",
                                                     "Device", "Any", "int[]", "float[]", "bool[]", "Tensor[]",
                                                     "Scalar[]", "Any", "Any"};
    if (value->node && value->node->kind == OPDI_GNODE_TUPLE && !(value->type && value->type->klass)) {
        opdi_text_add(text, "(");
        for (int i = 0; i < value->node->nin; i++) {
            opdi_text_add(text, "%s", i ? ", " : "");
            opdi_gvalue_type(text, value->node->in[i]);
        }
        opdi_text_add(text, ")");
    } else if (value->type && (value->type->kind != OPDI_GTYPE_TENSOR || value->dtype < 0)) {
        opdi_gtype_print(text, value->type, false);
    } else if (value->tag == OPD_TAG_TENSORS && value->node && value->node->kind == OPDI_GNODE_LIST) {
        opdi_text_add(text, "%s[]", value->node->word);
    } else if (value->tag == OPD_TAG_TENSOR && value->dtype >= 0) {
        char device[32];
        opdi_text_add(text, "%s(", opd_dtype_cname((opd_scalar_type)value->dtype));
        for (int i = 0; i < value->ndim; i++) {
            opdi_gvalue_print_dim(text, value, i);
            opdi_text_add(text, ", ");
        }
        for (int i = 0; i < value->ndim; i++) {
            opdi_text_add(text, i ? ", " : "strides=[");
            opdi_gvalue_print_dim(text, value, value->ndim + i);
        }
        opdi_text_add(text, "%srequires_grad=%d, device=%s)", value->ndim ? "], " : "", value->requires_grad,
                      opdi_device_text(opd_device_make((opd_backend)value->backend,
                                                     value->backend == OPD_CPU ? -1 : value->index), device,
                                       sizeof device));
    } else { opdi_text_add(text, "%s", words[value->tag]); }
}

/* Writes a constant tensor as " 1 2 [ CPUFloatType{2} ]", or as "{1}" if it has no dims.  Writes "<Tensor>" if it is
   complex, lazy or not in the CPU's memory, has more than ten elements, or has more than one dim. */
static void opdi_graph_print_tensor(opdi_text *out, const opd_tensor *tensor) {
    char text[512];
    if (tensor->backend != OPD_CPU || tensor->numel > 10 || tensor->ndim > 1 || (tensor->flags & OPDI_LAZY) ||
        opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        opdi_text_add(out, "<Tensor>");
        return;
    }
    if (tensor->numel == 1 && tensor->ndim == 0) { opdi_text_add(out, "{"); }
    for (int64_t i = 0; i < tensor->numel; i++) {
        const int64_t at = i * (tensor->ndim ? tensor->dims[1]
                                : 0) * (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
        const double d = opdi_element_f64(tensor, at);
        opd_value element = opd_dtype_is_floating((opd_scalar_type)tensor->dtype) ? opd_value_double(d)
            : opd_value_int(opdi_element_i64(tensor, at));
        if (element.tag == OPD_TAG_FLOAT) { (void)snprintf(text, sizeof text, "%.6g", d); }
        else {
            (void)snprintf(text, sizeof text, tensor->dtype == OPD_UINT64 ? "%llu" : "%lld", (long long)element.u.i);
        }
        opdi_text_add(out, "%s%s", tensor->ndim ? i ? "  " : " " : "", text);
    }
    if (tensor->numel == 1 && tensor->ndim == 0) { opdi_text_add(out, "}"); }
    else {
        opdi_text_add(out, " [ %s%sType{%lld} ]", "CPU", opd_dtype_cname((opd_scalar_type)tensor->dtype),
                      (long long)tensor->numel);
    }
}

/* Returns whether the text of a constant tensor has all that a program needs to make the same tensor: its elements, and
   its dtype. */
OPDI_INTERNAL bool opdi_graph_tensor_is_short(const opdi_gvalue *value, const opd_tensor *tensor) {
    if (tensor->backend != OPD_CPU || !tensor->numel || tensor->numel > 10 || tensor->ndim > 1 ||
        (tensor->flags & OPDI_LAZY) || opd_dtype_is_complex((opd_scalar_type)tensor->dtype) ||
        (value->dtype < 0 ? tensor->ndim == 0 : value->dtype != tensor->dtype)) { return false; }
    for (int64_t i = 0; i < tensor->numel && opd_dtype_is_floating((opd_scalar_type)tensor->dtype); i++) {
        char text[64];
        const double d = opdi_element_f64(tensor, i * (tensor->ndim ? tensor->dims[1] : 0) *
                                          (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype));
        (void)snprintf(text, sizeof text, "%.6g", d);
        const double read = strtod(text, NULL);
        const double made = tensor->dtype == OPD_FLOAT32 ? (double)(float)read : read;
        if (!(made - d <= 0 && made - d >= 0) || (!(d < 0 || d > 0) && 1 / d < 0)) { return false; }
    }
    return tensor->dtype != OPD_UINT64;
}
/* Returns the name of a node in the text, without the name of its overload.  The returned name may be stored in
   buf[cap]. */
OPDI_INTERNAL const char *opdi_gnode_name(const opdi_gnode *node, char *buf, size_t cap) {
    static const char *const prims[] = {
        "", "prim::Constant", "prim::ListConstruct", "prim::TupleConstruct", "prim::ListUnpack", "prim::If",
        "prim::Loop", "", "prim::CallFunction"};
    if (node->kind == OPDI_GNODE_OP) { return node->op->base_name; }
    if (node->kind == OPDI_GNODE_FUNCTION) { return node->function->name; }
    if (node->kind != OPDI_GNODE_BUILTIN) { return prims[node->kind]; }
    (void)snprintf(buf, cap, "%.*s", (int)strcspn(node->builtin->schema, ".("), node->builtin->schema);
    return buf;
}
/* Writes `length` bytes of `text` in quotes, with the escapes that PyTorch writes. */
static void opdi_graph_print_quoted(opdi_text *out, const char *text, int64_t length) {
    opdi_writer writer = {out->buf, out->cap ? out->cap - 1 : 0, out->length, false};
    opdi_write_quoted(&writer, text, (int)length);
    if (out->length < out->cap) { out->buf[OPDI_MIN(writer.length, writer.cap)] = 0; }
    out->length = writer.length;
}
/* Writes a generator as PyTorch does, with its state if it was used. */
static void opdi_graph_print_generator(opdi_text *out, opd_generator *generator) {
    uint64_t state[2];
    opdi_random_get(generator, state);
    opdi_text_add(out, "torch.Generator(device=\"cpu\", seed=%llu", (unsigned long long)state[0]);
    opdi_text_add(out, state[1] ? ", offset=%llu)" : ")", (unsigned long long)state[1]);
}
/* Writes the value of a constant.  `full` has the same meaning as for opdi_gnode_line. */
static void opdi_graph_print_constant(opdi_text *out, const opd_value *value, int64_t *full, int depth) {
    const opdi_cell *const cell = opdi_cell_of(value);
    char text[64];
    if (value->tag == OPD_TAG_TENSOR && full) { opdi_text_add(out, "$%lld", (long long)(*full)++); }
    else if (value->tag == OPD_TAG_TENSOR) { opdi_graph_print_tensor(out, value->u.t); }
    else if (value->tag == OPD_TAG_OBJECT) { opdi_graph_print_generator(out, (opd_generator *)value->u.object); }
    else if (value->tag == OPD_TAG_BOOL && depth == 0) { opdi_text_add(out, "%d", value->u.i != 0); }
    else if (value->tag == OPD_TAG_DEVICE) {
        opdi_text_add(out, "\"%s\"", opdi_device_text(value->u.device, text, sizeof text));
    } else if (cell && cell->kind == OPD_CELL_STR) { opdi_graph_print_quoted(out, cell->u.text, cell->count); }
    else if (cell && cell->kind == OPD_CELL_COMPLEX) {
        const opd_value plain = opd_value_complex(cell->u.pair);
        opdi_graph_print_constant(out, &plain, full, depth);
    } else if (cell && cell->kind == OPD_CELL_OBJECT && cell->klass->kind == OPDI_CLASS_ENUM) {
        opdi_text_add(out, "%s.%s", cell->klass->name, opdi_cell_of(&cell->u.values[0])->u.text);
    } else if (cell && cell->kind == OPD_CELL_OBJECT) { opdi_text_add(out, "object(%p)", (const void *)cell); }
    else if (cell && depth < OPDI_MAX_CELL_DEPTH) {
        const bool dict = cell->kind == OPD_CELL_DICT, tuple = cell->kind == OPD_CELL_TUPLE;
        opdi_text_add(out, dict ? "{" : tuple ? "(" : "[");
        for (int64_t i = 0; i < cell->count; i++) {
            const opd_value element = dict ? cell->u.values[2 * i] : opdi_cell_at(cell, i);
            opdi_text_add(out, i ? ", " : "");
            opdi_graph_print_constant(out, &element, full, depth + 1);
            if (!dict) { continue; }
            opdi_text_add(out, ": ");
            opdi_graph_print_constant(out, &cell->u.values[2 * i + 1], full, depth + 1);
        }
        opdi_text_add(out, dict ? "}" : tuple ? cell->count == 1 ? ",)" : ")" : "]");
    } else {
        opdi_writer writer = {out->buf, out->cap ? out->cap - 1 : 0, out->length, false};
        opdi_write_scalar(&writer, value);
        if (out->length < out->cap) { out->buf[OPDI_MIN(writer.length, writer.cap)] = 0; }
        out->length = writer.length;
    }
}
static void opdi_gvalues_print(opdi_text *out, opdi_gvalue *const *values, int32_t count, bool types) {
    for (int32_t i = 0; i < count; i++) {
        opdi_text_add(out, i ? ", " : "");
        opdi_gvalue_name(out, values[i]);
        if (!types) { continue; }
        opdi_text_add(out, " : ");
        opdi_gvalue_type(out, values[i]);
    }
}
/* Writes the attributes in brackets after a node's name. */
static void opdi_gnode_print_attributes(opdi_text *out, const opdi_gnode *node, int64_t *full) {
    if (node->kind == OPDI_GNODE_CONSTANT && node->attribute) {
        opdi_text_add(out, *node->attribute == '<' ? "[value=%s]" : "[name=\"%s\"]", node->attribute);
    }
    else if (node->kind == OPDI_GNODE_CONSTANT && node->constant.tag != OPD_TAG_NONE) {
        const opd_tensor *const tensor = node->constant.tag == OPD_TAG_TENSOR ? node->constant.u.t : NULL;
        opdi_text_add(out, "[value=");
        if (tensor && full && *full == OPDI_FULL_NAMED && opdi_graph_tensor_is_short(node->out[0], tensor)) {
            opdi_graph_print_tensor(out, tensor);
        } else if (tensor && full && *full == OPDI_FULL_NAMED) {
            opdi_text_add(out, "$");
            opdi_gvalue_name_only(out, node->out[0]);
        } else { opdi_graph_print_constant(out, &node->constant, full, 0); }
        opdi_text_add(out, tensor && full && (tensor->flags & OPDI_WRAPPED) ? ", number]" : "]");
    } else if (node->kind == OPDI_GNODE_BUILTIN && node->constant.tag == OPD_TAG_OBJECT) {
        const opdi_gtype *const types = (const opdi_gtype *)node->constant.u.object;
        opdi_text_add(out, "[types=[");
        for (int32_t i = 0; i < types->nparts; i++) {
            opdi_text_add(out, i ? ", " : "");
            opdi_gtype_print(out, types->parts[i], false);
        }
        opdi_text_add(out, "]]");
    } else if (node->kind == OPDI_GNODE_BUILTIN && node->attribute) {
        opdi_text_add(out, "[name=\"%s\"]", node->attribute);
    } else if (node->kind == OPDI_GNODE_BUILTIN && node->word) { opdi_text_add(out, "[%s]", node->word); }
}
static void opdi_gblock_print(opdi_text *out, const opdi_gblock *block, int64_t *full, int indent);
/* Writes the line of a node.  If `full` is not NULL, the text is for a file: names of operators have the names of their
   overloads, and the k-th constant tensor is written as $k; *full counts these tensors.  If *full is OPDI_FULL_NAMED,
   constant tensors that are not short are written with their names. */
OPDI_INTERNAL void opdi_gnode_line(opdi_text *out, const opdi_gnode *node, int64_t *full) {
    char called[100];
    opdi_gvalues_print(out, node->out, node->nout, true);
    opdi_text_add(out, " = ");
    if (full && node->kind == OPDI_GNODE_BUILTIN) {
        opdi_text_add(out, "%.*s", (int)strcspn(node->builtin->schema, "("), node->builtin->schema);
    } else {
        opdi_text_add(out, "%s", full && node->op ? node->op->name : opdi_gnode_name(node, called, sizeof called));
    }
    opdi_gnode_print_attributes(out, node, full);
    opdi_text_add(out, "(");
    opdi_gvalues_print(out, node->in, node->nin, false);
    opdi_text_add(out, node->place ? ") # %s" : ")", node->place);
}
/* Writes the line of a node, and then its blocks.  `full` has the same meaning as for opdi_gnode_line. */
static void opdi_gnode_print(opdi_text *out, const opdi_gnode *node, int64_t *full, int indent) {
    opdi_text_add(out, "%*s", indent, "");
    opdi_gnode_line(out, node, full);
    opdi_text_add(out, "\n");
    for (int32_t i = 0; i < node->nblocks; i++) {
        const opdi_gblock *const block = &node->blocks[i];
        opdi_text_add(out, "%*sblock%d(", indent + 2, "", (int)i);
        opdi_gvalues_print(out, block->inputs, block->ninputs, true);
        opdi_text_add(out, "):\n");
        opdi_gblock_print(out, block, full, indent + 4);
        opdi_text_add(out, "%*s-> (", indent + 4, "");
        opdi_gvalues_print(out, block->outputs, block->noutputs, false);
        opdi_text_add(out, ")\n");
    }
}
static void opdi_gblock_print(opdi_text *out, const opdi_gblock *block, int64_t *full, int indent) {
    if (opdi_stack_is_short("opd_graph_print", OPDI_STACK_CALL)) { return; }
    for (const opdi_gnode *node = block->first; node; node = node->next) { opdi_gnode_print(out, node, full, indent); }
}

/* Writes a comment line for the text of a saved graph.  It tells where an operator comes from that is not built in. */
static void opdi_graph_origin_print(opdi_text *out, const opd_op *op) {
    char text[600];
    int count = 0;
    opdi_lock(&opdi_registry.lock);
    const opdi_registration *registration = op->definition;
    if (registration && registration->lib != opdi_registry.aten) {
        const opd_plugin *plugin = opdi_plugin_at((uintptr_t)registration->lib->file);
        (void)opdi_place_text(registration->place, text, 300);
        count = (int)strlen(text);
        if (plugin) {
            count += snprintf(text + count, sizeof text - (size_t)count, " of %.250s", opd_plugin_path(plugin));
        }
    }
    opdi_unlock(&opdi_registry.lock);
    for (size_t i = 0; i < (size_t)count; i++) { if ((unsigned char)text[i] < ' ') { text[i] = '?'; } }
    if (count) { opdi_text_add(out, "# %s %s\n", op->name, text); }
}

/* Writes these lines for all operators of a graph, each once.  If memory runs out, sets an error. */
static void opdi_graph_origins_print(opdi_text *out, const opd_graph *graph) {
    opdi_index done;
    opdi_arena arena;
    memset(&done, 0, sizeof done);
    memset(&arena, 0, sizeof arena);
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        opd_op *const op = node->kind == OPDI_GNODE_OP ? node->op : NULL;
        if (!op || opdi_index_named(&done, op->name)) { continue; }
        opdi_graph_origin_print(out, op);
        if (opdi_index_set(&done, &arena, op->name, strlen(op->name), op)) { break; }
    }
    opdi_arena_free(&arena);
}
/* Writes a graph's text to `buf`, but at most `cap` bytes.  Returns the length of the whole text.  `full` is
   OPDI_TEXT_PRINTED, or a kind of text for a file (see opdi_gnode_line). */
OPDI_INTERNAL size_t opdi_graph_text(const opd_graph *graph, char *buf, size_t cap, int full) {
    opdi_text text = opdi_text_of(buf, cap);
    int64_t constants = full == OPDI_TEXT_NAMED ? OPDI_FULL_NAMED : 0;
    opdi_text_add(&text, "graph(");
    for (int i = 0; i < graph->ninputs; i++) {
        opdi_text_add(&text, "%s", i ? ",\n      " : "");
        opdi_gvalue_name(&text, graph->inputs[i]);
        opdi_text_add(&text, " : ");
        opdi_gvalue_type(&text, graph->inputs[i]);
    }
    opdi_text_add(&text, "):\n");
    for (int32_t i = 0; graph->sizes && i < graph->sizes->count; i++) {
        const opdi_gsize *const size = &graph->sizes->names[i];
        opdi_text_add(&text, "  # size ");
        opdi_gsize_print(&text, size);
        opdi_text_add(&text, size->why ? " # %s\n" : "\n", size->why);
    }
    opdi_gblock_print(&text, &graph->body, full ? &constants : NULL, 2);
    opdi_text_add(&text, "  return (");
    if (graph->result) { opdi_gvalue_name(&text, graph->result); }
    opdi_text_add(&text, ")\n");
    if (full) { opdi_graph_origins_print(&text, graph); }
    return text.length;
}

size_t opd_graph_print(const opd_graph *graph, char *buf, size_t cap) {
    if (buf && cap) { buf[0] = 0; }
    return graph ? opdi_graph_text(graph, buf, cap, OPDI_TEXT_PRINTED) : 0;
}

int opd_graph_ninputs(const opd_graph *graph) { return graph ? graph->ninputs : 0; }
int opd_graph_noutputs(const opd_graph *graph) { return graph ? graph->noutputs : 0; }
int opd_graph_count(const opd_graph *graph, const char *name) {
    int count = 0;
    for (const opdi_gnode *node = graph ? graph->body.first : NULL; node; node = opdi_gnode_after(node)) {
        count += !name || (node->kind == OPDI_GNODE_OP && strcmp(node->op->base_name, name) == 0);
    }
    return count;
}
