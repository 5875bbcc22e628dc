#include "graphs.h"

//== which values of a graph may share memory ==========================================================================
//
//  Values that may share memory form a set, with one of them as its root.  The schema of an operator says which results
//  may share memory with which arguments.  If that is not known, all tensors of a call may.  A list shares memory with
//  its elements, and the results of a block with the results of its node.

/* Returns the root of the value's set. */
OPDI_INTERNAL opdi_gvalue *opdi_gvalue_root(opdi_gvalue *value) {
    while (value->alias != value) { value = value->alias = value->alias->alias; }
    return value;
}
static void opdi_gvalue_join(opdi_gvalue *value, opdi_gvalue *other) {
    opdi_gvalue_root(value)->alias = opdi_gvalue_root(other);
}
/* Returns whether a value can hold tensors. */
static bool opdi_gvalue_has_tensors(const opdi_gvalue *value) {
    return value->tag == OPD_TAG_TENSOR || value->tag == OPD_TAG_TENSORS || value->tag == OPD_TAG_LIST ||
        value->tag == OPD_TAG_CELL || value->tag == OPD_TAG_OBJECT;
}
/* Returns whether a node that calls no operator may write a value: a tensor, or a list, also one of numbers. */
static bool opdi_gvalue_has_memory(const opdi_gvalue *value) {
    return opdi_gvalue_has_tensors(value) || value->tag == OPD_TAG_INTS || value->tag == OPD_TAG_FLOATS ||
        value->tag == OPD_TAG_BOOLS;
}
static void opdi_gvalues_join(opdi_gvalue *const *values, int32_t count, opdi_gvalue *with) {
    for (int32_t i = 0; i < count; i++) {
        if (opdi_gvalue_has_memory(values[i])) { opdi_gvalue_join(values[i], with); }
    }
}
/* Returns whether an operator is one of the built-in operators of quantised models.  They are composites, but their
   results are always new memory. */
static bool opdi_op_quantises(const opd_op *op) {
    static const char *const spaces[] = {"quantized_decomposed::", "torchao::", "opdispatch::quantized_"};
    const char *const name = opd_op_name(op);
    bool quantises = false;
    for (int i = 0; i < 3; i++) { quantises = quantises || strncmp(name, spaces[i], strlen(spaces[i])) == 0; }
    return quantises && strcmp(op->definition->lib->file, "opdispatch.h") == 0;
}
/* Returns whether the schema of an operator says everything about the memory of its results: not if a tag says that it
   does not (dropout), nor if an operator of the program is a composite or has unknown effects. */
OPDI_INTERNAL bool opdi_op_tells_aliases(const opd_op *op) {
    const opdi_registration *const definition = op->definition;
    if (!definition || (definition->tags & OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING)) { return false; }
    if (opdi_op_quantises(op)) { return true; }
    return definition->lib == opdi_registry.aten ? !(definition->tags & OPDI_OPTAG_SHARES) :
        (definition->alias != OPD_ALIAS_CONSERVATIVE && !opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT));
}
/* Returns whether result i of a call, or an element of it, may share memory with input k. */
static bool opdi_gnode_shares(const opdi_gnode *node, int32_t i, int32_t k) {
    return opdi_gvalue_has_tensors(node->out[i]) && opdi_gvalue_has_tensors(node->in[k]) &&
        (!opdi_op_tells_aliases(node->op) ||
         opd_schema_may_contain_alias(node->op->schema, OPD_RESULT(i), k, true, NULL));
}
static void opdi_gnode_join_op(const opdi_gnode *node) {
    for (int32_t i = 0; i < node->nout; i++) {
        for (int32_t k = 0; k < node->nin; k++) {
            if (opdi_gnode_shares(node, i, k)) { opdi_gvalue_join(node->out[i], node->in[k]); }
        }
    }
}
static void opdi_gnode_join(const opdi_gnode *node) {
    if (node->kind == OPDI_GNODE_CONSTANT) { return; }
    if (node->kind == OPDI_GNODE_OP) {
        opdi_gnode_join_op(node);
        return;
    }
    for (int32_t i = 0; i < node->nout; i++) { opdi_gvalues_join(node->in, node->nin, node->out[i]); }
    for (int32_t k = 0; k < node->nblocks; k++) {
        const opdi_gblock *const block = &node->blocks[k];
        for (int32_t i = 0; i < node->nout; i++) {
            opdi_gvalues_join(block->outputs, block->noutputs, node->out[i]);
            opdi_gvalues_join(block->inputs, block->ninputs, node->out[i]);
        }
        for (int32_t i = 0; i < block->ninputs; i++) { opdi_gvalues_join(node->in, node->nin, block->inputs[i]); }
    }
}
/* Joins the constants that are tensors of one storage.  Returns 0, or -1 if memory runs out. */
static int opdi_graph_join_constants(const opd_graph *graph) {
    opdi_index storages;
    opdi_arena arena;
    int rc = 0;
    memset(&storages, 0, sizeof storages);
    memset(&arena, 0, sizeof arena);
    for (const opdi_gnode *node = graph->body.first; node && rc == 0; node = opdi_gnode_after(node)) {
        if (node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_TENSOR) { continue; }
        const opd_tensor *const tensor = node->constant.u.t;
        const char *const key = (const char *)&tensor->storage;
        opdi_gvalue *const other = (opdi_gvalue *)opdi_index_get(&storages, key, sizeof tensor->storage);
        if (other) { opdi_gvalue_join(node->out[0], other); }
        else { rc = opdi_index_set(&storages, &arena, key, sizeof tensor->storage, node->out[0]); }
    }
    opdi_arena_free(&arena);
    return rc;
}
/* Finds the sets of values that may share memory: opdi_gvalue_root then returns the same for all values of a set.  If
   `inputs` is true, inputs of the graph may share memory, too, as a tensor and a view of it.  Returns 0, or -1 if
   memory runs out. */
OPDI_INTERNAL int opdi_graph_alias(opd_graph *graph, bool inputs) {
    for (int32_t i = 0; i < graph->ninputs; i++) { graph->inputs[i]->alias = graph->inputs[i]; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->alias = node->out[i]; }
        for (int32_t k = 0; k < node->nblocks; k++) {
            const opdi_gblock *const block = &node->blocks[k];
            for (int32_t i = 0; i < block->ninputs; i++) { block->inputs[i]->alias = block->inputs[i]; }
        }
    }
    if (inputs && graph->ninputs) { opdi_gvalues_join(graph->inputs, graph->ninputs, graph->inputs[0]); }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) { opdi_gnode_join(node); }
    return opdi_graph_join_constants(graph);
}
/* Returns whether a call has a result that may share memory with an input, and a node of the graph writes this memory.
   opdi_graph_mark_written has marked such memory with `mark`. */
OPDI_INTERNAL bool opdi_gnode_view_is_written(const opdi_gnode *node, uint64_t mark) {
    for (int32_t i = 0; i < node->nout; i++) {
        for (int32_t k = 0; k < node->nin && opdi_gvalue_root(node->out[i])->mark == mark; k++) {
            if (opdi_gnode_shares(node, i, k)) { return true; }
        }
    }
    return false;
}
/* Returns whether the call of a node, or a call in its blocks, may write the memory of a value with the root `root`.  A
   node with unknown effects may write whatever it is given. */
OPDI_INTERNAL bool opdi_gnode_writes_root(const opdi_gnode *node, const opdi_gvalue *root) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
        const uint64_t written = inner->nblocks || !opdi_gnode_stays(inner) ? 0
            : inner->kind == OPDI_GNODE_OP && opdi_op_tells_writes(inner->op) ? opdi_gnode_written(inner) : UINT64_MAX;
        for (int32_t i = 0; written && i < inner->nin; i++) {
            if ((written >> OPDI_MIN(i, 63) & 1) && opdi_gvalue_root(inner->in[i]) == root &&
                (inner->kind == OPDI_GNODE_OP ? opdi_gvalue_has_tensors(inner->in[i])
                 : opdi_gvalue_has_memory(inner->in[i]))) { return true; }
        }
    }
    return false;
}
/* Marks the sets of values whose memory a node of the graph may write.  Returns the mark. */
OPDI_INTERNAL uint64_t opdi_graph_mark_written(opd_graph *graph) {
    graph->mark++;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nin && !node->nblocks && opdi_gnode_stays(node); i++) {
            opdi_gvalue *const root = opdi_gvalue_root(node->in[i]);
            if (root->mark != graph->mark && opdi_gnode_writes_root(node, root)) { root->mark = graph->mark; }
        }
    }
    return graph->mark;
}

/* Returns the value of which `value` may be a view, or `value` itself. */
OPD_UNUSED OPDI_INTERNAL const opdi_gvalue *opdi_gvalue_base(const opdi_gvalue *value) {
    for (const opdi_gnode *node = value->node; node; node = value->node) {
        int i = 0, at = 0;
        if (node->kind == OPDI_GNODE_UNPACK) { value = node->in[0]; }
        else if (node->kind != OPDI_GNODE_OP) { break; }
        else {
            while (at < node->nout - 1 && node->out[at] != value) { at++; }
            while (i < node->nin && ((node->in[i]->tag != OPD_TAG_TENSOR && node->in[i]->tag != OPD_TAG_TENSORS) ||
                                     !opd_schema_may_contain_alias(node->op->schema, OPD_RESULT(at), i, true, NULL))) {
                i++;
            }
            if (i == node->nin) { break; }
            value = node->in[i];
        }
    }
    return value;
}
