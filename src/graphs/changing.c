#include "graphs.h"

//== changing graphs ===================================================================================================
//
//  A change is checked before it is made.  A value may be used where the nodes in front of it, in the same block or
//  around it, have computed it.  The schema of an operator says which values it takes; other nodes take a value whose
//  type is that of the value before.

/* Sets the error `what` of a public function, with the node at which it happened.  Returns -1. */
static int opdi_graph_change_fail(const char *who, const opdi_gnode *node, const char *what) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s", who, what);
    return node ? opdi_graph_where(node) : -1;
}
/* Returns 0 if `value` is a value of `graph`.  Otherwise returns -1 and sets an error that names the
   argument `what`. */
OPDI_INTERNAL int opdi_graph_owns(const opd_graph *graph, const opdi_gvalue *value, const char *who,
                                  const char *what) {
    if (!opd_ok()) { return -1; }
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph is NULL", who); }
    if (value && value->graph == graph) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, value ? value->graph ? "%s: %s is a value of another graph"
                    : "%s: %s was removed from its graph" : "%s: %s is NULL", who, what);
}
/* Returns 0 if `node` is a node of `graph`, otherwise -1 with an error. */
static int opdi_graph_owns_node(const opd_graph *graph, const opdi_gnode *node, const char *who) {
    if (!opd_ok()) { return -1; }
    if (!graph || !node) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the %s is NULL", who, graph ? "node" : "graph");
    }
    const opdi_gblock *block = node->block;
    while (block->owner) { block = block->owner->block; }
    return node->gone || block != &graph->body ? opdi_graph_change_fail(who, NULL, node->gone
        ? "the node was removed from its graph" : "the node is a node of another graph") : 0;
}

//== uses ==============================================================================================================

/* Returns whether a node can take `value` as argument i of its operator.  Built-in operators take a number for a
   tensor. */
static bool opdi_gnode_takes(const opdi_gnode *node, int32_t i, const opdi_gvalue *value) {
    const bool number = value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT || value->tag == OPD_TAG_BOOL;
    return opdi_graph_match_one(node->op, i, value, false) ||
        (number && node->op->wraps_numbers && !(node->op->written_args >> i & 1) &&
         opdi_strip_optional(node->op->schema->args[i].type)->kind == OPDI_TYPE_TENSOR);
}
/* Returns 0 if `by` can take the place of the value that a use has now.  Otherwise returns -1 and sets an error. */
OPDI_INTERNAL int opdi_guse_check(opd_graph *graph, const opdi_guse *use, const opdi_gvalue *by, const char *who) {
    const opdi_gnode *const node = use->node, *const at = node ? node : use->block->owner;
    char text[200] = "", given[200] = "";
    opdi_text want = opdi_text_of(text, sizeof text), have = opdi_text_of(given, sizeof given);
    if (!opdi_graph_sees(graph, opdi_gvalue_block(graph, by), by->node, node ? node->block : use->block, node)) {
        return opdi_graph_change_fail(who, at, "the new value is computed after this use, or in an inner block");
    }
    if (node && node->kind == OPDI_GNODE_OP) {
        const opdi_arg *const arg = &node->op->schema->args[use->index];
        if (opdi_graph_match_one(node->op, use->index, by, false) ||
            (use->value->tag != OPD_TAG_TENSOR && opdi_gnode_takes(node, use->index, by))) { return 0; }
        opdi_text_add(&want, "argument '%s' takes %s", arg->name,
                      opdi_type_print_plain(arg->type, given, sizeof given));
    } else {
        const opdi_gtype *const now = opdi_gvalue_gtype(graph, use->value), *const next = opdi_gvalue_gtype(graph, by);
        if (!now || !next) { return -1; }
        if (opdi_gtype_fits(next, now)) { return 0; }
        opdi_text_add(&want, "the value before has the type ");
        opdi_gtype_print(&want, now, false);
    }
    opdi_gvalue_type(&have, by);
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the new value has the type %s, but %s", who, given, text);
    return at ? opdi_graph_where(at) : -1;
}
/* Returns 0 if the value that the graph returns can be replaced by `by`.  Several outputs are the inputs of a node that
   makes a tuple or list of them; only a like node can take its place. */
OPDI_INTERNAL int opdi_graph_result_check(const opd_graph *graph, const opdi_gvalue *by, const char *who) {
    const opdi_gnode *const node = graph->result->node, *const next = by->node;
    if (graph->noutputs == 1 && graph->outputs[0] == graph->result) { return 0; }
    if (next && node && next->kind == node->kind && next->nin == node->nin) { return 0; }
    return opdi_graph_change_fail(who, NULL, "the graph returns several values: replace them, not their tuple or list");
}
/* Makes use number `at` of the graph's uses a use of `by`, as opdi_guse_check has allowed. */
OPDI_INTERNAL void opdi_graph_use_set(opd_graph *graph, int32_t at, opdi_gvalue *by) {
    const opdi_guse *const use = &graph->users->uses[at];
    const bool single = graph->noutputs == 1 && graph->outputs[0] == graph->result;
    if (use->node) { use->node->in[use->index] = by; }
    else if (use->block->owner) { use->block->outputs[use->index] = by; }
    else { graph->result = by; }
    for (int32_t i = 0; i < graph->noutputs; i++) {
        graph->outputs[i] = single ? graph->result : graph->result->node->in[i];
    }
    opdi_guse_move(graph->users, at, by);
    opdi_graph_replan(graph);
    graph->counted = false;
}
static void opdi_graph_mark_value(opd_graph *graph, const opdi_gvalue *value, int64_t *left) {
    opdi_gnode *const node = value->node;
    if (!node || node->mark == graph->mark || (!node->nin && !node->nblocks)) { return; }
    node->mark = graph->mark;
    ++*left;
}
/* Marks the nodes from which `by` is computed, as far back as the node of `value`, and the nodes whose blocks they are
   in. */
static void opdi_graph_mark_between(opd_graph *graph, const opdi_gvalue *value, const opdi_gvalue *by) {
    int64_t left = 0;                             /* the number of marked nodes that were not visited yet */
    graph->mark++;
    if (!by->node || !opdi_graph_sees(graph, opdi_gvalue_block(graph, value), value->node, by->node->block, by->node)) {
        return;                                   /* `by` does not depend on `value` */
    }
    opdi_graph_mark_value(graph, by, &left);
    for (opdi_gnode *node = by->node; node && left > 0 && node != value->node;) {
        if (node->mark == graph->mark) {
            left--;
            const opdi_gnode *const past = opdi_gnode_past(node);
            for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
                for (int32_t i = 0; i < inner->nin; i++) { opdi_graph_mark_value(graph, inner->in[i], &left); }
            }
        }
        opdi_gnode *const owner = node->prev ? NULL : node->block->owner;
        if (owner && owner->mark != graph->mark) {
            owner->mark = graph->mark;
            left++;
        }
        node = owner ? owner : node->prev;
    }
}
/* Returns whether a use is in a node that is marked, or in a block of such a node. */
static bool opdi_guse_is_marked(const opd_graph *graph, const opdi_guse *use) {
    const opdi_gnode *node = use->node ? use->node : use->block->owner;
    while (node && node->mark != graph->mark) { node = node->block->owner; }
    return node != NULL;
}
int opd_graph_replace(opd_graph *graph, opd_graph_value *value, opd_graph_value *by) {
    const char *const who = "opd_graph_replace";
    int count = 0;
    if (opdi_graph_owns(graph, value, who, "the value") || opdi_graph_owns(graph, by, who, "the new value")) {
        return -1;
    }
    opdi_graph_uses *const users = value == by ? NULL : opdi_graph_users(graph);
    if (!users) { return value == by ? 0 : -1; }
    opdi_graph_mark_between(graph, value, by);
    for (int32_t at = value->first_use; at >= 0; at = users->uses[at].next) {
        const opdi_guse *const use = &users->uses[at];
        if (opdi_guse_is_marked(graph, use)) { continue; }
        if (opdi_guse_check(graph, use, by, who) ||
            (use->block == &graph->body && opdi_graph_result_check(graph, by, who))) { return -1; }
        count++;
    }
    for (int32_t at = value->first_use, next; at >= 0; at = next) {
        next = users->uses[at].next;
        if (!opdi_guse_is_marked(graph, &users->uses[at])) { opdi_graph_use_set(graph, at, by); }
    }
    return count;
}
int opd_graph_set_input(opd_graph *graph, opd_graph_node *node, int i, opd_graph_value *value) {
    const char *const who = "opd_graph_set_input";
    if (opdi_graph_owns(graph, value, who, "the new value") || opdi_graph_owns_node(graph, node, who)) { return -1; }
    if (i < 0 || i >= node->nin) {
        (void)opd_fail(OPD_ERROR_INDEX, "%s: there is no input %d: the node has %d", who, i, (int)node->nin);
        return opdi_graph_where(node);
    }
    opdi_graph_uses *const users = opdi_graph_users(graph);
    if (!users || opdi_guse_check(graph, &users->uses[node->uses_at + i], value, who)) { return -1; }
    opdi_graph_use_set(graph, node->uses_at + i, value);
    return 0;
}
int opd_graph_erase_node(opd_graph *graph, opd_graph_node *node) {
    const char *const who = "opd_graph_erase_node";
    if (opdi_graph_owns_node(graph, node, who)) { return -1; }
    const opdi_graph_uses *const users = opdi_graph_users(graph);
    if (!users) { return -1; }
    for (int32_t i = 0; i < node->nout; i++) {
        char name[100];
        opdi_text text = opdi_text_of(name, sizeof name);
        if (node->out[i]->first_use < 0) { continue; }
        const opdi_guse *const use = &users->uses[node->out[i]->first_use];
        opdi_gvalue_name(&text, node->out[i]);
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s is still used%s", who, name,
                       use->node || use->block->owner ? "" : " as an output of the graph");
        return use->node ? opdi_graph_where(use->node) : -1;
    }
    opdi_gnode_remove(graph, node);
    return 0;
}

//== checking ==========================================================================================================

/* Checks that the values of a node's inputs are computed before it, and that an operator takes them.  Returns 0, or -1
   and sets an error. */
static int opdi_gnode_check(opd_graph *graph, const opdi_gnode *node) {
    char text[500];
    opdi_text why = opdi_text_of(text, sizeof text);
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gvalue *const value = node->in[i];
        if (value->graph == graph && opdi_graph_sees(graph, opdi_gvalue_block(graph, value), value->node, node->block,
                                                     node)) { continue; }
        (void)opd_fail(OPD_ERROR_ARGUMENT, value->graph == graph
                       ? "opd_graph_check: input %d is computed after its use, or in an inner block"
                       : "opd_graph_check: input %d is not a value of the graph", (int)i);
        return opdi_graph_where(node);
    }
    for (int32_t i = 0; node->kind == OPDI_GNODE_OP && i < node->nin; i++) {
        if (!opdi_gnode_takes(node, i, node->in[i]) &&
            !opdi_graph_match(node->op, node->in, node->nin, node->nout, true, &why)) {
            return opdi_graph_change_fail("opd_graph_check", node, text);
        }
    }
    return 0;
}
static int opdi_gblock_check(opd_graph *graph, const opdi_gblock *block) {
    const opdi_gnode *const owner = block->owner;
    const int32_t want = owner->nout + (owner->kind == OPDI_GNODE_LOOP);
    if (block->noutputs != want) {
        return opdi_graph_change_fail("opd_graph_check", owner, "a block has another number of outputs than the node");
    }
    for (int32_t i = 0; i < block->noutputs; i++) {
        const opdi_gvalue *const value = block->outputs[i];
        if (value->graph != graph ||
            !opdi_graph_sees(graph, opdi_gvalue_block(graph, value), value->node, block, NULL)) {
            return opdi_graph_change_fail("opd_graph_check", owner, "an output of a block is not a value of the block");
        }
    }
    return 0;
}
int opd_graph_check(opd_graph *graph) {
    if (!opd_ok()) { return -1; }
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_check: the graph is NULL"); }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (opdi_gnode_check(graph, node)) { return -1; }
        for (int32_t i = 0; i < node->nblocks; i++) {
            if (opdi_gblock_check(graph, &node->blocks[i])) { return -1; }
        }
    }
    for (int32_t i = 0; i < graph->noutputs; i++) {
        if (graph->outputs[i]->graph == graph && opdi_gvalue_block(graph, graph->outputs[i]) == &graph->body) {
            continue;
        }
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_check: output %d of the graph was removed, or is in an inner "
                        "block", (int)i);
    }
    return 0;
}
