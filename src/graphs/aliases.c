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
static void opdi_gvalues_join(opdi_gvalue *const *values, int32_t count, opdi_gvalue *with) {
    for (int32_t i = 0; i < count; i++) {
        if (opdi_gvalue_has_tensors(values[i])) { opdi_gvalue_join(values[i], with); }
    }
}
/* Returns whether the schema of a built-in operator says everything about the memory of its results: not if the
   operator is a composite, which may return its argument (dropout), nor if its effects are unknown. */
static bool opdi_op_tells_aliases(const opd_op *op) {
    const opdi_registration *const definition = op->definition;
    return definition && definition->alias != OPD_ALIAS_CONSERVATIVE && !opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT);
}
static void opdi_gnode_join_op(const opdi_gnode *node) {
    const opd_schema *const schema = node->op->schema;
    const bool told = opdi_op_tells_aliases(node->op);
    for (int32_t i = 0; i < node->nout; i++) {
        for (int32_t k = 0; k < node->nin; k++) {
            if (!opdi_gvalue_has_tensors(node->out[i]) || !opdi_gvalue_has_tensors(node->in[k])) { continue; }
            if (!told || opd_schema_may_alias(schema, k, -1 - i, NULL)) { opdi_gvalue_join(node->out[i], node->in[k]); }
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
/* Finds the sets of values that may share memory: opdi_gvalue_root then returns the same for all values of a set. */
OPDI_INTERNAL void opdi_graph_alias(opd_graph *graph) {
    for (int32_t i = 0; i < graph->ninputs; i++) { graph->inputs[i]->alias = graph->inputs[i]; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->alias = node->out[i]; }
        for (int32_t k = 0; k < node->nblocks; k++) {
            const opdi_gblock *const block = &node->blocks[k];
            for (int32_t i = 0; i < block->ninputs; i++) { block->inputs[i]->alias = block->inputs[i]; }
        }
    }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) { opdi_gnode_join(node); }
}
/* Returns whether the call of a node, or a call in its blocks, may write the memory of a value with the root `root`.  A
   node with unknown effects may write whatever it is given. */
OPDI_INTERNAL bool opdi_gnode_writes_root(const opdi_gnode *node, const opdi_gvalue *root) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
        const uint64_t written = inner->nblocks || !opdi_gnode_stays(inner) ? 0
            : inner->kind == OPDI_GNODE_OP && opdi_op_tells_writes(inner->op) ? opdi_gnode_written(inner) : UINT64_MAX;
        for (int32_t i = 0; written && i < inner->nin; i++) {
            if ((written >> OPDI_MIN(i, 63) & 1) && opdi_gvalue_has_tensors(inner->in[i]) &&
                opdi_gvalue_root(inner->in[i]) == root) { return true; }
        }
    }
    return false;
}
