#include "graphs.h"

//== comparing graphs ==================================================================================================
//
//  Two graphs are equal if they have the same nodes in the same order, with equal constants.  Names, sizes that the
//  graphs know, and places in the source do not count.  A table says which value of the second graph stands at the
//  place of a value of the first.

/* Returns whether two tensors have equal dtypes, sizes and bits.  Tensors that are not on the CPU are equal only if
   they are the same.  Sets an error if memory runs out. */
static bool opdi_tensors_same(opd_tensor *tensor, opd_tensor *other) {
    if (tensor == other) { return true; }
    if (tensor->dtype != other->dtype || tensor->ndim != other->ndim || tensor->backend != OPD_CPU ||
        other->backend != OPD_CPU || ((tensor->flags ^ other->flags) & OPDI_WRAPPED)) { return false; }
    for (int i = 0; i < tensor->ndim; i++) { if (tensor->dims[i] != other->dims[i]) { return false; } }
    opd_tensor *const first = opd_contiguous(opd_detach(tensor)), *const second = opd_contiguous(opd_detach(other));
    const size_t bytes = (size_t)opdi_elements_bytes(tensor->dtype, tensor->numel);
    return first && second && (bytes == 0 || memcmp(opd_data(first), opd_data(second), bytes) == 0);
}
OPDI_INTERNAL bool opdi_constants_same(const opd_value *value, const opd_value *other, int depth);
static bool opdi_cells_same(const opdi_cell *cell, const opdi_cell *other, int depth) {
    if (cell == other) { return true; }
    if (cell->kind != other->kind || cell->count != other->count || cell->klass != other->klass ||
        cell->kind == OPD_CELL_OBJECT || depth > OPDI_MAX_CELL_DEPTH) { return false; }
    if (cell->kind == OPD_CELL_STR) { return memcmp(cell->u.text, other->u.text, (size_t)cell->count) == 0; }
    if (cell->kind == OPD_CELL_COMPLEX) { return memcmp(cell->u.pair, other->u.pair, 2 * sizeof(double)) == 0; }
    const int64_t count = cell->kind == OPD_CELL_DICT ? 2 * cell->count : cell->count;
    for (int64_t i = 0; i < count; i++) {
        const bool plain = cell->kind != OPD_CELL_DICT;
        const opd_value first = plain ? opdi_cell_at(cell, i) : cell->u.values[i];
        const opd_value second = plain ? opdi_cell_at(other, i) : other->u.values[i];
        if (!opdi_constants_same(&first, &second, depth + 1)) { return false; }
    }
    return true;
}
/* Returns whether two constants are equal.  Floats and complex numbers are compared by their bits. */
OPDI_INTERNAL bool opdi_constants_same(const opd_value *value, const opd_value *other, int depth) {
    const opdi_cell *const cell = opdi_cell_of(value), *const another = opdi_cell_of(other);
    if (value->tag != other->tag) { return false; }
    if (cell) { return another && opdi_cells_same(cell, another, depth); }
    switch (value->tag) {
    case OPD_TAG_NONE: return true;
    case OPD_TAG_TENSOR: return opdi_tensors_same(value->u.t, other->u.t);
    case OPD_TAG_STR: return strcmp(value->u.s, other->u.s) == 0;
    case OPD_TAG_COMPLEX: return memcmp(value->u.c, other->u.c, 2 * sizeof(double)) == 0;
    case OPD_TAG_DEVICE:
        return value->u.device.type == other->u.device.type && value->u.device.index == other->u.device.index;
    default: return value->u.i == other->u.i;     /* numbers, and generators */
    }
}
/* Returns whether two texts are equal; NULL is equal to NULL. */
static bool opdi_texts_same(const char *text, const char *other) {
    return text == other || (text && other && strcmp(text, other) == 0);
}
/* Returns whether two nodes call the same, with the same numbers of inputs, outputs and blocks. */
OPDI_INTERNAL bool opdi_gnodes_call_same(const opdi_gnode *node, const opdi_gnode *other) {
    return node->kind == other->kind && node->op == other->op && node->function == other->function &&
        node->user == other->user && node->nin == other->nin && node->nout == other->nout &&
        node->nblocks == other->nblocks &&
        (node->kind == OPDI_GNODE_TUPLE || opdi_texts_same(node->word, other->word)) &&
        opdi_texts_same(node->attribute, other->attribute) && !node->builtin == !other->builtin &&
        (!node->builtin || strcmp(node->builtin->schema, other->builtin->schema) == 0) &&
        (node->kind != OPDI_GNODE_CONSTANT || opdi_constants_same(&node->constant, &other->constant, 0));
}
/* Returns whether the values of two lists stand for each other. */
static bool opdi_gvalues_same(const opdi_gcopier *table, opdi_gvalue *const *values, opdi_gvalue *const *others,
                              int32_t count) {
    for (int32_t i = 0; i < count; i++) { if (opdi_gcopier_get(table, values[i]) != others[i]) { return false; } }
    return true;
}
/* Returns whether `value`, whose type may be told only by its tag or its node, has the type `type`. */
static bool opdi_gvalue_has_type(const opdi_gvalue *value, const opdi_gtype *type) {
    static const struct { int32_t tag, list; int kind; } rows[] = {
        {OPD_TAG_TENSOR, OPD_TAG_TENSORS, OPDI_GTYPE_TENSOR}, {OPD_TAG_INT, OPD_TAG_INTS, OPDI_GTYPE_INT},
        {OPD_TAG_FLOAT, OPD_TAG_FLOATS, OPDI_GTYPE_FLOAT}, {OPD_TAG_BOOL, OPD_TAG_BOOLS, OPDI_GTYPE_BOOL},
        {OPD_TAG_NONE, -1, OPDI_GTYPE_NONE}, {OPD_TAG_STR, -1, OPDI_GTYPE_STR},
        {OPD_TAG_COMPLEX, -1, OPDI_GTYPE_COMPLEX}, {OPD_TAG_DEVICE, -1, OPDI_GTYPE_DEVICE}};
    const opdi_gnode *const node = value->node;
    if (value->type) { return opdi_gtype_same(value->type, type); }
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (type->kind == rows[i].kind) { return value->tag == rows[i].tag; }
        if (type->kind == OPDI_GTYPE_LIST && type->parts[0]->kind == rows[i].kind) {
            return value->tag == rows[i].list;
        }
    }
    if (type->kind != OPDI_GTYPE_TUPLE || type->klass || !node || node->kind != OPDI_GNODE_TUPLE ||
        node->nin != type->nparts) { return false; }
    for (int32_t i = 0; i < node->nin; i++) {
        if (!opdi_gvalue_has_type(node->in[i], type->parts[i])) { return false; }
    }
    return true;
}
/* Lets the values of one list stand for the values of another.  Returns false if their types differ, or if memory runs
   out. */
static bool opdi_gvalues_pair(opdi_gcopier *table, opdi_gvalue *const *values, opdi_gvalue *const *others,
                              int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        const opdi_gtype *const type = values[i]->type, *const other = others[i]->type;
        const bool same = type ? opdi_gvalue_has_type(others[i], type) : other ? opdi_gvalue_has_type(values[i], other)
            : values[i]->tag == others[i]->tag;
        if (!same || opdi_gcopier_put(table, values[i], others[i])) { return false; }
    }
    return true;
}
/* Returns whether two nodes, which stand at the same place of two graphs, are equal.  Their blocks are compared when
   the walk comes to the nodes in them, and at their ends. */
static bool opdi_gnodes_same(opdi_gcopier *table, const opdi_gnode *node, const opdi_gnode *other) {
    if (!opdi_gnodes_call_same(node, other) || !opdi_gvalues_same(table, node->in, other->in, node->nin) ||
        !opdi_gvalues_pair(table, node->out, other->out, node->nout)) { return false; }
    for (int32_t k = 0; k < node->nblocks; k++) {
        const opdi_gblock *const block = &node->blocks[k], *const another = &other->blocks[k];
        if (block->ninputs != another->ninputs || block->noutputs != another->noutputs ||
            !block->first != !another->first ||
            !opdi_gvalues_pair(table, block->inputs, another->inputs, block->ninputs)) { return false; }
    }
    return true;
}
static bool opdi_graph_same(const opd_graph *graph, const opd_graph *other) {
    const opdi_gnode *node = graph->body.first, *next = other->body.first;
    opdi_gcopier table;
    memset(&table, 0, sizeof table);
    if (graph->ninputs != other->ninputs || graph->noutputs != other->noutputs ||
        !opdi_gvalues_pair(&table, graph->inputs, other->inputs, graph->ninputs)) { return false; }
    for (; node && next; node = opdi_gnode_after(node), next = opdi_gnode_after(next)) {
        if (!opdi_gnodes_same(&table, node, next) || !node->next != !next->next) { return false; }
    }
    for (const opdi_gnode *at = graph->body.first, *to = other->body.first; at && to;
         at = opdi_gnode_after(at), to = opdi_gnode_after(to)) {
        for (int32_t k = 0; k < at->nblocks; k++) {
            if (!opdi_gvalues_same(&table, at->blocks[k].outputs, to->blocks[k].outputs, at->blocks[k].noutputs)) {
                return false;
            }
        }
    }
    return !node && !next && opdi_gvalues_same(&table, graph->outputs, other->outputs, graph->noutputs) &&
        !graph->result == !other->result &&
        (!graph->result || opdi_gcopier_get(&table, graph->result) == other->result);
}
bool opd_graph_equal(const opd_graph *graph, const opd_graph *other) {
    if (!graph || !other || !opd_ok()) { return false; }
    opd_scope scope = opd_scope_open();
    const bool same = graph == other || opdi_graph_same(graph, other);
    opd_scope_close(&scope);
    return same && opd_ok();
}

static uint64_t opdi_hash_more(uint64_t hash, uint64_t more) {
    hash = (hash ^ more) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}
/* Adds a constant: a number by its bits, a text by its letters, a tensor by its dtype and sizes. */
static uint64_t opdi_hash_constant(uint64_t hash, const opd_value *value) {
    const opdi_cell *const cell = opdi_cell_of(value);
    hash = opdi_hash_more(hash, (uint64_t)value->tag);
    if (cell) { return opdi_hash_more(hash, (uint64_t)cell->kind << 32 ^ (uint64_t)cell->count); }
    if (value->tag == OPD_TAG_STR) { return opdi_hash_more(hash, opdi_hash(value->u.s, strlen(value->u.s))); }
    if (value->tag == OPD_TAG_TENSOR) {
        hash = opdi_hash_more(hash, (uint64_t)value->u.t->dtype);
        for (int i = 0; i < value->u.t->ndim; i++) { hash = opdi_hash_more(hash, (uint64_t)value->u.t->dims[i]); }
        return hash;
    }
    const bool number = value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT || value->tag == OPD_TAG_BOOL;
    return number ? opdi_hash_more(hash, (uint64_t)value->u.i) : hash;
}
/* Adds a node, which is marked with `number`: what it calls, and how far before it its inputs are computed. */
static uint64_t opdi_hash_gnode(uint64_t hash, opdi_gnode *node, uint64_t number) {
    char text[200];
    const char *const name = node->kind == OPDI_GNODE_OP ? node->op->name : opdi_gnode_name(node, text, sizeof text);
    hash = opdi_hash_more(opdi_hash_more(hash, (uint64_t)node->kind), opdi_hash(name, strlen(name)));
    if (node->kind == OPDI_GNODE_CONSTANT) { hash = opdi_hash_constant(hash, &node->constant); }
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gnode *const from = node->in[i]->node;
        hash = opdi_hash_more(hash, from ? number - from->mark : 0);
    }
    return opdi_hash_more(hash, (uint64_t)node->nout << 32 ^ (uint64_t)node->nblocks);
}
uint64_t opd_graph_hash(opd_graph *graph) {
    uint64_t hash = 0;
    if (!graph) { return 0; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        node->mark = ++graph->mark;
        hash = opdi_hash_gnode(hash, node, graph->mark);
    }
    return opdi_hash_more(hash, (uint64_t)graph->ninputs << 32 ^ (uint64_t)graph->noutputs);
}
