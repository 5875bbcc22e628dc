#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>graph_nodes  reading, changing, copying and comparing graphs
//
//  Public functions that return parts of a graph.  They change nothing.  Nodes of all kinds are read in the same way,
//  so this room knows no operators.
//----------------------------------------------------------------------------------------------------------------------

//== nodes =============================================================================================================

opd_graph_node *opd_graph_first(const opd_graph *graph) { return graph ? graph->body.first : NULL; }
opd_graph_node *opd_graph_next(const opd_graph_node *node) {
    do { node = node ? opdi_gnode_after(node) : NULL; } while (node && node->gone);
    return (opd_graph_node *)(uintptr_t)node;
}
/* Returns element `i` of a list of `count` values.  Returns NULL and sets an error if there is none. */
static opd_graph_value *opdi_graph_at(opdi_gvalue *const *values, int32_t count, int i, const char *who,
                                      const char *what) {
    if (i >= 0 && i < count) { return values[i]; }
    (void)opd_fail(OPD_ERROR_INDEX, "%s: there is no %s %d: there are %d", who, what, i, (int)count);
    return NULL;
}
opd_graph_value *opd_graph_input_at(const opd_graph *graph, int i) {
    return graph ? opdi_graph_at(graph->inputs, graph->ninputs, i, "opd_graph_input_at", "input") : NULL;
}
opd_graph_value *opd_graph_output_at(const opd_graph *graph, int i) {
    return graph ? opdi_graph_at(graph->outputs, graph->noutputs, i, "opd_graph_output_at", "output") : NULL;
}

opd_graph_kind opd_graph_node_kind(const opd_graph_node *node) {
    return node ? (opd_graph_kind)node->kind : OPD_GRAPH_OP;
}
opd_op *opd_graph_node_op(const opd_graph_node *node) { return node ? node->op : NULL; }
bool opd_graph_node_is(const opd_graph_node *node, const char *name) {
    char text[200];
    if (!node || !name) { return false; }
    return strcmp(opdi_gnode_name(node, text, sizeof text), name) == 0 ||
        (node->kind == OPDI_GNODE_OP && strcmp(node->op->name, name) == 0);
}
/* Returns whether a node transposes its input 0, a matrix. */
OPDI_INTERNAL bool opdi_gnode_transposes(const opdi_gnode *node) {
    opd_value first, second;
    if (opd_graph_node_is(node, "aten::t") || opd_graph_node_is(node, "aten::numpy_T")) { return true; }
    if (opd_graph_node_is(node, "aten::permute")) {
        return opd_graph_value_constant(node->in[1], &first) && first.tag == OPD_TAG_INTS && first.n == 2 &&
            first.u.ints[0] % 2 != 0;
    }
    return opd_graph_node_is(node, "aten::transpose") && opd_graph_value_constant(node->in[1], &first) &&
        opd_graph_value_constant(node->in[2], &second) && first.tag == OPD_TAG_INT && second.tag == OPD_TAG_INT &&
        (first.u.i - second.u.i) % 2 != 0;
}
size_t opd_graph_node_name(const opd_graph_node *node, char *buf, size_t cap) {
    char text[200];
    opdi_text out = opdi_text_of(buf, cap);
    opdi_text_add(&out, "%s", node ? opdi_gnode_name(node, text, sizeof text) : "");
    return out.length;
}
size_t opd_graph_node_print(const opd_graph_node *node, char *buf, size_t cap) {
    opdi_text out = opdi_text_of(buf, cap);
    if (node) { opdi_gnode_line(&out, node, NULL); }
    return out.length;
}
const char *opd_graph_node_place(const opd_graph_node *node) { return node ? node->place : NULL; }
bool opd_graph_node_has_effects(const opd_graph_node *node) {
    return node && (opdi_gnode_stays(node) || opdi_gnode_draws_inside(node));
}
int opd_graph_node_ninputs(const opd_graph_node *node) { return node ? node->nin : 0; }
int opd_graph_node_noutputs(const opd_graph_node *node) { return node ? node->nout : 0; }
opd_graph_value *opd_graph_node_input(const opd_graph_node *node, int i) {
    return node ? opdi_graph_at(node->in, node->nin, i, "opd_graph_node_input", "input") : NULL;
}
opd_graph_value *opd_graph_node_output(const opd_graph_node *node, int i) {
    return node ? opdi_graph_at(node->out, node->nout, i, "opd_graph_node_output", "output") : NULL;
}
opd_graph_value *opd_graph_node_arg(const opd_graph_node *node, const char *name) {
    char text[200];
    if (!node || !name) { return NULL; }
    for (int i = 0; node->kind == OPDI_GNODE_OP && i < node->op->nargs; i++) {
        if (strcmp(node->op->schema->args[i].name, name) == 0) { return node->in[i]; }
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_graph_node_arg: %s has no argument '%.100s'",
                   node->op ? node->op->name : opdi_gnode_name(node, text, sizeof text), name);
    return NULL;
}

//== blocks ============================================================================================================

int opd_graph_node_nblocks(const opd_graph_node *node) { return node ? node->nblocks : 0; }
opd_graph_block *opd_graph_node_block(const opd_graph_node *node, int i) {
    if (!node || (i >= 0 && i < node->nblocks)) { return node ? &node->blocks[i] : NULL; }
    (void)opd_fail(OPD_ERROR_INDEX, "opd_graph_node_block: there is no block %d: there are %d", i, (int)node->nblocks);
    return NULL;
}
opd_graph_block *opd_graph_node_inside(const opd_graph_node *node) { return node && !node->gone ? node->block : NULL; }
opd_graph_block *opd_graph_body(const opd_graph *graph) {
    return graph ? (opd_graph_block *)(uintptr_t)&graph->body : NULL;
}
/* Returns the graph of which `block` is the body, or NULL if a node has the block. */
static const opd_graph *opdi_gblock_graph(const opdi_gblock *block) {
    return !block || block->owner ? NULL
        : (const opd_graph *)(const void *)((const char *)block - offsetof(opd_graph, body));
}
int opd_graph_block_ninputs(const opd_graph_block *block) {
    const opd_graph *const graph = opdi_gblock_graph(block);
    return graph ? graph->ninputs : block ? block->ninputs : 0;
}
int opd_graph_block_noutputs(const opd_graph_block *block) {
    const opd_graph *const graph = opdi_gblock_graph(block);
    return graph ? graph->noutputs : block ? block->noutputs : 0;
}
opd_graph_value *opd_graph_block_input(const opd_graph_block *block, int i) {
    const opd_graph *const graph = opdi_gblock_graph(block);
    opdi_gvalue *const *inputs = graph ? graph->inputs : block ? block->inputs : NULL;
    return block ? opdi_graph_at(inputs, opd_graph_block_ninputs(block), i, "opd_graph_block_input", "input") : NULL;
}
opd_graph_value *opd_graph_block_output(const opd_graph_block *block, int i) {
    const opd_graph *const graph = opdi_gblock_graph(block);
    opdi_gvalue *const *outputs = graph ? graph->outputs : block ? block->outputs : NULL;
    return block ? opdi_graph_at(outputs, opd_graph_block_noutputs(block), i, "opd_graph_block_output", "output")
        : NULL;
}
opd_graph_node *opd_graph_block_first(const opd_graph_block *block) { return block ? block->first : NULL; }
opd_graph_node *opd_graph_block_owner(const opd_graph_block *block) { return block ? block->owner : NULL; }

//== values ============================================================================================================

opd_graph_node *opd_graph_value_node(const opd_graph_value *value) {
    return value && value->graph ? value->node : NULL;
}
opd_graph_block *opd_graph_value_block(const opd_graph_value *value) {
    if (!value || !value->graph || value->node) { return NULL; }
    return value->block ? value->block : &value->graph->body;
}
size_t opd_graph_value_name(const opd_graph_value *value, char *buf, size_t cap) {
    opdi_text out = opdi_text_of(buf, cap);
    if (value && value->name) { opdi_text_add(&out, "%s", value->name); }
    else if (value) { opdi_text_add(&out, "%d", (int)value->id); }
    return out.length;
}
size_t opd_graph_value_type(const opd_graph_value *value, char *buf, size_t cap) {
    opdi_text out = opdi_text_of(buf, cap);
    if (value) { opdi_gvalue_type(&out, value); }
    return out.length;
}
opd_tag opd_graph_value_tag(const opd_graph_value *value) {
    if (!value) { return OPD_TAG_NONE; }
    return value->type && value->type->kind == OPDI_GTYPE_TUPLE ? OPD_TAG_LIST : (opd_tag)value->tag;
}
bool opd_graph_value_info(const opd_graph_value *value, opd_graph_info *info) {
    if (!value || !info || value->tag != OPD_TAG_TENSOR || value->dtype < 0) { return false; }
    info->dtype = (opd_scalar_type)value->dtype;
    info->sizes = opd_ints_of(value->dims, value->ndim);
    info->strides = opd_ints_of(value->dims + value->ndim, value->ndim);
    info->device = opd_device_make((opd_backend)value->backend, value->index);
    info->requires_grad = value->requires_grad;
    return true;
}
/* Writes the elements of a list of constants to `list`, which is in the innermost scope.  Returns false if an element
   is no constant, or if memory runs out. */
static bool opdi_gnode_constants(const opdi_gnode *node, opd_value *list) {
    const int32_t tag = node->out[0]->tag;
    void *const elements = opdi_scope_alloc(((size_t)node->nin + 1) * sizeof(opd_value));
    if (!elements) { return false; }
    *list = opd_value_none();
    list->tag = tag;
    list->n = node->nin;
    list->u.object = elements;
    for (int32_t i = 0; i < node->nin; i++) {
        opd_value element;
        if (!opd_graph_value_constant(node->in[i], &element)) { return false; }
        opdi_graph_list_set(list, i, &element);
    }
    return true;
}
bool opd_graph_value_constant(const opd_graph_value *value, opd_value *constant) {
    const opdi_gnode *const node = value ? value->node : NULL;
    opd_value list;
    if (!node || node->attribute) { return false; }
    if (node->kind == OPDI_GNODE_CONSTANT) {
        if (constant) { *constant = opdi_value_plain(&node->constant); }
        return true;
    }
    if (node->kind != OPDI_GNODE_LIST || value->nesting > OPDI_MAX_CELL_DEPTH || !opdi_gnode_constants(node, &list)) {
        return false;
    }
    if (constant) { *constant = list; }
    return true;
}
int opd_graph_value_uses(const opd_graph_value *value, opd_graph_use *uses, int cap) {
    opdi_graph_uses *const users = value && value->graph ? opdi_graph_users(value->graph) : NULL;
    int count = 0;
    if (!users) { return value && value->graph ? -1 : 0; }
    for (int32_t at = value->first_use; at >= 0; at = users->uses[at].next, count++) {
        if (count >= cap || !uses) { continue; }
        uses[count].node = users->uses[at].node;
        uses[count].block = users->uses[at].block;
        uses[count].index = users->uses[at].index;
    }
    return count;
}
