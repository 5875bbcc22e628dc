#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>passes       changes of whole graphs that keep what the graphs compute
//----------------------------------------------------------------------------------------------------------------------

//== common subexpressions, constants and dead code ====================================================================

static void opdi_gvalue_gone(opd_graph *graph, opdi_gvalue *value) {
    value->graph = NULL;
    opdi_graph_names_release(graph, value);
}
/* Removes a node, with the nodes of its blocks, from the graph.  Sets the member `graph` of their values to NULL. */
OPDI_INTERNAL void opdi_gnode_remove(opd_graph *graph, opdi_gnode *node) {
    if (node->nblocks) { opdi_graph_changed(graph); }
    opdi_gnode_leave(graph, node);
    node->gone = true;
    for (int32_t i = 0; i < node->nblocks; i++) {
        opdi_gblock *const block = &node->blocks[i];
        if (graph->into == block) {
            graph->into = node->block->owner ? node->block : NULL;
            graph->at = node;
        }
        while (block->last) { opdi_gnode_remove(graph, block->last); }
        for (int32_t k = 0; k < block->ninputs; k++) { opdi_gvalue_gone(graph, block->inputs[k]); }
    }
    if (graph->at == node) { graph->at = node->next; }
    for (int i = 0; i < node->nout; i++) { opdi_gvalue_gone(graph, node->out[i]); }
    if (node->prev) { node->prev->next = node->next; } else { node->block->first = node->next; }
    if (node->next) { node->next->prev = node->prev; } else { node->block->last = node->prev; }
    opdi_gnode_drop(node);
}

/* Sets the member `uses` of all values. */
OPDI_INTERNAL void opdi_graph_count_uses(opd_graph *graph) {
    for (int i = 0; i < graph->ninputs; i++) { graph->inputs[i]->uses = 0; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int i = 0; i < node->nout; i++) { node->out[i]->uses = 0; }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) { node->blocks[k].inputs[i]->uses = 0; }
        }
    }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int i = 0; i < node->nin; i++) { node->in[i]->uses++; }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].noutputs; i++) { node->blocks[k].outputs[i]->uses++; }
        }
    }
    for (int i = 0; i < graph->noutputs; i++) { graph->outputs[i]->uses++; }
    if (graph->result) { graph->result->uses++; }
    graph->counted = true;
}

/* Sets `values` to the arguments of a call, as far as they are constants; the others are OPD_DEFAULT. */
static void opdi_gnode_values(const opdi_gnode *node, opd_value *values) {
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gnode *const from = node->in[i]->node;
        values[i] = from && from->kind == OPDI_GNODE_CONSTANT ? from->constant : OPD_DEFAULT;
    }
}
/* Returns the arguments that the call of a node writes, as a bit for each.  An argument that depends on values that are
   not constants counts as written. */
OPDI_INTERNAL uint64_t opdi_gnode_written(const opdi_gnode *node) {
    opd_value values[OPD_MAX_ARGS];
    if (node->kind != OPDI_GNODE_OP) { return 0; }
    opdi_gnode_values(node, values);
    return opdi_schema_written(node->op->schema, values);
}
/* Returns whether the call of a node draws random numbers. */
OPDI_INTERNAL bool opdi_gnode_draws(const opdi_gnode *node) {
    opd_value values[OPD_MAX_ARGS];
    if (node->kind != OPDI_GNODE_OP || !opdi_op_is_random(node->op)) { return false; }
    opdi_gnode_values(node, values);
    return opdi_schema_draws(node->op->schema, values);
}
/* Returns whether a node, or a node in its blocks, draws random numbers. */
OPDI_INTERNAL bool opdi_gnode_draws_inside(const opdi_gnode *node) {
    bool draws = node->kind == OPDI_GNODE_FUNCTION ? (node->function->flags & OPDI_GFUNCTION_DRAWS) != 0
        : opdi_gnode_draws(node);
    for (int32_t i = 0; i < node->nblocks && !draws; i++) {
        for (const opdi_gnode *inner = node->blocks[i].first; inner && !draws; inner = inner->next) {
            draws = opdi_gnode_draws_inside(inner);
        }
    }
    return draws;
}
/* Returns whether the schema of an operator tells what the operator writes. */
OPDI_INTERNAL bool opdi_op_tells_writes(const opd_op *op) {
    const opdi_registration *const definition = op->definition;
    return !definition || (definition->alias != OPD_ALIAS_CONSERVATIVE &&
                           (!(definition->tags & OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING) ||
                            definition->lib == opdi_registry.aten));
}
/* Returns true if the call of a node writes into tensors, or if its operator does not tell what it writes. */
static bool opdi_gnode_writes(const opdi_gnode *node) {
    return opdi_gnode_written(node) || (node->kind == OPDI_GNODE_OP && !opdi_op_tells_writes(node->op));
}

/* Returns true if a node, or a node in its blocks, has side effects.  Such a node remains even if its results are not
   used. */
OPDI_INTERNAL bool opdi_gnode_stays(const opdi_gnode *node) {
    for (int32_t i = 0; i < node->nblocks; i++) {
        for (const opdi_gnode *inner = node->blocks[i].first; inner; inner = inner->next) {
            if (opdi_gnode_stays(inner)) { return true; }
        }
    }
    if (node->kind == OPDI_GNODE_FUNCTION) { return (node->function->flags & OPDI_GFUNCTION_EFFECTS) != 0; }
    if (node->kind == OPDI_GNODE_BUILTIN) { return (node->builtin->flags & OPDI_BUILTIN_STAYS) != 0; }
    return node->kind == OPDI_GNODE_OP &&
        (node->op->nrets == 0 || opdi_gnode_writes(node) ||
         (node->op->definition && (node->op->definition->tags & OPDI_OPTAG_SENDS)));
}
/* Returns whether a node must remain.  A node that draws random numbers remains even if its results are not used, so
   that the nodes after it draw the same numbers as the recorded function. */
static bool opdi_gnode_used(const opdi_gnode *node) {
    for (int i = 0; i < node->nout; i++) { if (node->out[i]->uses > 0) { return true; } }
    return opdi_gnode_stays(node) || opdi_gnode_draws_inside(node);
}

/* Subtracts the uses of values by a removed node, and by the nodes in its blocks, from the members `uses` of the
   values. */
static void opdi_gnode_unuse(const opdi_gnode *node) {
    for (int i = 0; i < node->nin; i++) { node->in[i]->uses--; }
    for (int32_t i = 0; i < node->nblocks; i++) {
        const opdi_gblock *const block = &node->blocks[i];
        for (int32_t k = 0; k < block->noutputs; k++) { block->outputs[k]->uses--; }
        for (const opdi_gnode *inner = block->first; inner; inner = inner->next) { opdi_gnode_unuse(inner); }
    }
}
/* Removes the unused nodes of a block, from the last to the first.  Returns the number of removed nodes. */
static int opdi_gblock_dce(opd_graph *graph, opdi_gblock *block) {
    opdi_gnode *prev;
    int gone = 0;
    for (opdi_gnode *node = block->last; node; node = prev) {
        prev = node->prev;
        if (opdi_gnode_used(node)) {
            for (int32_t i = 0; i < node->nblocks; i++) { gone += opdi_gblock_dce(graph, &node->blocks[i]); }
            continue;
        }
        opdi_gnode_unuse(node);
        opdi_gnode_remove(graph, node);
        gone++;
    }
    return gone;
}
/* Returns whether the pass `who` can begin: no error is pending, and its graph is not NULL, else sets an error. */
OPDI_INTERNAL bool opdi_graph_is_given(const opd_graph *graph, const char *who) {
    if (!graph && opd_ok()) { (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph is NULL", who); }
    return opd_ok();
}
int opd_graph_dce(opd_graph *graph) {
    if (!opdi_graph_is_given(graph, "opd_graph_dce") || opdi_graph_too_deep(graph)) { return -1; }
    opdi_graph_count_uses(graph);
    graph->counted = false;                       /* opdi_gblock_dce subtracts the uses by removed nodes itself */
    return opdi_gblock_dce(graph, &graph->body);
}

OPDI_INTERNAL bool opdi_graph_writes(const opd_graph *graph) {
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (opdi_gnode_writes(node) ||
            (node->kind >= OPDI_GNODE_BUILTIN && opdi_gnode_stays(node))) { return true; }
    }
    return false;
}

static bool opdi_graph_constant_equal(const opd_value *arg, const opd_value *second) {
    if (arg->tag != second->tag) { return false; }
    switch (arg->tag) {
    case OPD_TAG_NONE: return true;
    case OPD_TAG_STR: return strcmp(arg->u.s, second->u.s) == 0;
    case OPD_TAG_COMPLEX: return memcmp(arg->u.object, second->u.object, 2 * sizeof(double)) == 0;
    case OPD_TAG_DEVICE:
        return arg->u.device.type == second->u.device.type && arg->u.device.index == second->u.device.index;
    default: return arg->u.i == second->u.i;      /* tensors and cells are compared by their addresses, floats by their
                                                     bits */
    }
}

/* Returns true if a node may be merged with an equal node before it.  `writes` tells if any node of the graph writes
   into tensors.  Nodes in blocks are not merged.  Nodes that make objects are not merged either, because programs can
   compare objects by identity. */
static bool opdi_gnode_merges(const opdi_gnode *node, bool writes) {
    if (node->kind > OPDI_GNODE_UNPACK || node->block->owner) { return false; }
    if (node->kind == OPDI_GNODE_LIST) { return node->light; }
    return node->kind != OPDI_GNODE_OP || (!writes && !opdi_gnode_stays(node) && !opdi_gnode_draws(node));
}
/* Returns true if `other` computes the same as `node`.  Both must be nodes that may be merged. */
static bool opdi_gnode_same(const opdi_gnode *node, const opdi_gnode *other) {
    if (node->kind != other->kind || node->op != other->op || node->nin != other->nin || node->nout != other->nout) {
        return false;
    }
    if (node->kind == OPDI_GNODE_CONSTANT) {
        return opdi_graph_constant_equal(&node->constant, &other->constant) &&
            node->out[0]->type == other->out[0]->type;
    }
    if (node->kind == OPDI_GNODE_LIST && strcmp(node->word, other->word) != 0) { return false; }
    return memcmp(node->in, other->in, (size_t)node->nin * sizeof *node->in) == 0;
}
static opdi_gvalue *opdi_gvalue_now(opdi_gvalue *value) { return value && value->same ? value->same : value; }
/* Clears the flag `light` of the list `value`, because a node that is not an operator uses the list. */
static void opdi_gvalue_mark_shared(opdi_gvalue *value) {
    if (value && value->node && value->node->kind == OPDI_GNODE_LIST) { value->node->light = false; }
}
static void opdi_gblock_mark_op_lists(opdi_gblock *block) {
    for (int32_t i = 0; i < block->noutputs; i++) { opdi_gvalue_mark_shared(block->outputs[i]); }
    for (opdi_gnode *node = block->last; node; node = node->prev) {
        for (int32_t i = 0; i < node->nblocks; i++) { opdi_gblock_mark_op_lists(&node->blocks[i]); }
        if (node->kind == OPDI_GNODE_OP || node->kind == OPDI_GNODE_UNPACK ||
            (node->kind == OPDI_GNODE_LIST && node->light)) {
            continue;
        }
        for (int32_t i = 0; i < node->nin; i++) { opdi_gvalue_mark_shared(node->in[i]); }
    }
}
/* Sets the flag `light` of all lists: true if only operators use the list.  Operators cannot change it. */
OPDI_INTERNAL void opdi_graph_mark_op_lists(opd_graph *graph) {
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        node->light = node->kind == OPDI_GNODE_LIST && (node->out[0]->tag != OPD_TAG_LIST || !node->out[0]->type);
    }
    if (graph->result && graph->noutputs == 1 && graph->outputs[0] == graph->result) {
        opdi_gvalue_mark_shared(graph->result);
    }
    opdi_gblock_mark_op_lists(&graph->body);
}
static size_t opdi_gnode_hash(const opdi_gnode *node) {
    uint64_t hash = (uint64_t)node->kind * 31 + (uint64_t)(uintptr_t)node->op;
    const bool by_bits = node->kind == OPDI_GNODE_CONSTANT && node->constant.tag != OPD_TAG_STR &&
        node->constant.tag != OPD_TAG_COMPLEX;
    if (by_bits) {
        hash = ((hash ^ (uint64_t)node->constant.tag) * 31 + (uint64_t)node->constant.u.i) * 0x9e3779b97f4a7c15u;
    }
    for (int i = 0; i < node->nin; i++) {
        hash = (hash ^ (hash >> 29) ^ (uint64_t)(uintptr_t)node->in[i]) * 0x9e3779b97f4a7c15u;
    }
    return (size_t)(hash ^ (hash >> 32));
}
/* Merges nodes that compute the same as an earlier node.  Returns the number of removed nodes, or -1 if memory runs
   out. */
static int opdi_graph_cse(opd_graph *graph) {
    const bool writes = opdi_graph_writes(graph);
    opdi_gnode *next, **table;
    size_t size = 16, count = 0;
    int gone = 0;
    opdi_graph_mark_op_lists(graph);
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) { count++; }
    while (size < 2 * count) { size *= 2; }
    if (!(table = (opdi_gnode **)opdi_scope_alloc(size * sizeof *table))) { return -1; }
    memset(table, 0, size * sizeof *table);
    for (opdi_gnode *node = graph->body.first; node; node = next) {
        next = opdi_gnode_after(node);
        for (int i = 0; i < node->nin; i++) { node->in[i] = opdi_gvalue_now(node->in[i]); }
        for (int32_t k = 0; k < node->nblocks; k++) {
            opdi_gblock *const block = &node->blocks[k];
            for (int32_t i = 0; i < block->noutputs; i++) { block->outputs[i] = opdi_gvalue_now(block->outputs[i]); }
        }
        if (!opdi_gnode_merges(node, writes)) { continue; }
        size_t at = opdi_gnode_hash(node) & (size - 1);
        while (table[at] && !opdi_gnode_same(table[at], node)) { at = (at + 1) & (size - 1); }
        if (!table[at]) {
            table[at] = node;
            continue;
        }
        for (int i = 0; i < node->nout; i++) { node->out[i]->same = table[at]->out[i]; }
        opdi_gnode_remove(graph, node);
        gone++;
    }
    for (int i = 0; i < graph->noutputs; i++) { graph->outputs[i] = opdi_gvalue_now(graph->outputs[i]); }
    graph->result = opdi_gvalue_now(graph->result);
    return gone;
}
int opd_graph_cse(opd_graph *graph) {
    if (!opdi_graph_is_given(graph, "opd_graph_cse")) { return -1; }
    opd_scope scope = opd_scope_open();
    int gone = opdi_graph_cse(graph);
    opd_scope_close(&scope);
    return gone;
}

/* Sets node->fixed: true for constants, and for light lists whose elements are all fixed.  Returns node->fixed. */
OPDI_INTERNAL bool opdi_gnode_fix(opdi_gnode *node) {
    node->fixed = node->kind == OPDI_GNODE_CONSTANT || (node->kind == OPDI_GNODE_LIST && node->light);
    for (int32_t i = 0; i < node->nin && node->fixed; i++) {
        node->fixed = node->in[i]->node && node->in[i]->node->fixed;
    }
    return node->fixed;
}
/* Gives each value the number of its slot.  Returns the number of slots, and sets *lists to the bytes of memory that
   the elements of light lists need. */
OPDI_INTERNAL int32_t opdi_graph_number(opd_graph *graph, size_t *lists) {
    int32_t slots = 0;
    *lists = 0;
    opdi_graph_mark_op_lists(graph);
    for (int32_t i = 0; i < graph->ninputs; i++) { graph->inputs[i]->slot = slots++; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->slot = slots++; }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) { node->blocks[k].inputs[i]->slot = slots++; }
        }
        (void)opdi_gnode_fix(node);
        if (node->kind == OPDI_GNODE_LIST && node->light) { *lists += (size_t)node->nin * sizeof(opd_value) + 8; }
    }
    return slots;
}

OPDI_INTERNAL int opdi_graph_where(const opdi_gnode *node) {
    char text[64] = "", called[100];
    opdi_text name = opdi_text_of(text, sizeof text);
    if (node->nout) { opdi_gvalue_name(&name, node->out[0]); }
    return opdi_fail_more(" [in the graph's node %s%s%s%s%s]", text, *text ? " = " : "",
                          opdi_gnode_name(node, called, sizeof called), node->place ? " # " : "",
                          node->place ? node->place : "");
}
OPDI_INTERNAL int opdi_graph_run_error(const opd_graph *graph, opd_tensor *const *inputs, int count) {
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_run: the graph is NULL"); }
    if (count != graph->ninputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_run: expected %d inputs but got %d", graph->ninputs, count);
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_run: the %s are NULL", inputs || !count ? "outputs" : "inputs");
}
