#include "graphs.h"

//== conditions and loops of a graph as calls of functions over graphs =================================================
//
//  A node with blocks (prim::If, prim::Loop) whose blocks can be graphs of their own becomes one node that calls a
//  function.  The function calls its graphs as opdi_control_cond, opdi_control_rounds and opdi_control_lowered do, and
//  passes to them all values that the blocks read.  A loop that reads slices of tensors, or appends to lists that are
//  stacked after it, becomes a loop over slices with results, as opd_scan records it.  Other nodes stay as they are.
//  The compiler of graphs uses this: it writes such a node as a condition or loop of C.

/* The data of such a node.  The arguments of the node are: of a cond, the predicate; of a while, the condition before
   the first round; of a scan, the number of rounds and the index of the last slice (or the number of rounds again);
   then the carried values, the sliced tensors, the others, and of a scan that may have no rounds, an empty result for
   each result. */
typedef struct opdi_closed {
    opdi_guser user;                              /* must be the first member; see opdi_gfunction */
    opdi_gfunction called;
    opdi_recorded_kind kind;
    opd_graph *graphs[2];
    int32_t ncarried, nsliced, nothers, nresults, nempties;
    bool reverse, writes;                         /* writes: a node of the whole graph writes into a tensor */
} opdi_closed;

static void opdi_closed_destroy(opdi_guser *user) {
    opdi_closed *const closed = (opdi_closed *)(void *)user;
    opd_graph_free(closed->graphs[0]);
    opd_graph_free(closed->graphs[1]);
    opdi_free(closed, sizeof *closed);
}
/* Calls a graph of a node (opdi_control.call). */
static int opdi_closed_call(const opdi_control *flow, int which, const opd_value *args, int nargs, opd_value *outputs,
                            int cap) {
    const opdi_closed *const closed = (const opdi_closed *)flow->user;
    const opd_graph *const graph = closed->graphs[closed->kind == OPDI_RECORDED_COND && which];
    if (opd_graph_noutputs(graph) > cap) { return opd_graph_noutputs(graph); }
    return opdi_graph_run_values(graph, args, nargs, outputs, cap) < 0 ? -1 : opd_graph_noutputs(graph);
}
/* Runs the rounds of a loop over slices.  Writes the carried values and the results to `outputs`.  Returns 0, or -1 and
   sets an error. */
static int opdi_closed_scan(const opdi_closed *closed, const opdi_control *flow, const opd_value *args,
                            opd_value *outputs) {
    const int64_t length = args[0].u.i;
    const int nargs = closed->ncarried + closed->nsliced + closed->nothers;
    opd_value *const now = opdi_control_values(nargs);
    if (!now) { return -1; }
    memcpy(now, args + 2, (size_t)nargs * sizeof *now);
    if (length <= 0) {
        memcpy(outputs, now, (size_t)closed->ncarried * sizeof *now);
        for (int32_t i = 0; i < closed->nresults; i++) {
            if (i >= closed->nempties) {
                return opd_fail(OPD_ERROR_ARGUMENT, "prim::Loop: a loop without rounds has no results to stack");
            }
            opd_tensor *const empty = args[2 + nargs + i].u.t;
            outputs[closed->ncarried + i] = opd_value_tensor(opd_cat(opd_tensors_of(&empty, 1), 0));
        }
        return opd_ok() ? 0 : -1;
    }
    for (int32_t i = closed->ncarried; i < closed->ncarried + closed->nsliced; i++) {
        const int64_t size = now[i].u.t->ndim ? opd_size(now[i].u.t, 0) : 0;
        if (size < length || (closed->reverse && args[1].u.i != length - 1)) {
            return opd_fail(OPD_ERROR_INDEX, "prim::Loop: a slice is out of range");
        }
        if (size > length) { now[i] = opd_value_tensor(opd_narrow(now[i].u.t, 0, 0, length)); }
    }
    return opdi_control_rounds(flow, now, nargs, closed->ncarried, closed->nsliced, closed->reverse, length,
                               outputs) < 0 ? -1 : 0;
}
/* Runs a node. */
static int opdi_closed_run(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_closed *const closed = (const opdi_closed *)node->user;
    const opdi_control flow = {node->function->name, {"its first block", "its second block"}, opdi_closed_call, closed,
                               node->nout, false, true, closed->writes, true};
    opd_value *const outputs = opdi_control_values(node->nout);
    int rc = -1;
    if (!outputs) { return -1; }
    if (closed->kind == OPDI_RECORDED_COND) {
        rc = opdi_control_cond(&flow, &args[0], args + 1, node->nin - 1, outputs, node->nout) < 0 ? -1 : 0;
    } else if (closed->kind == OPDI_RECORDED_SCAN) {
        rc = opdi_closed_scan(closed, &flow, args, outputs);
    } else {
        const opdi_control_job job = {&flow, OPDI_RECORDED_WHILE, &args[0], args + 1, node->nin - 1, closed->ncarried,
                                      0, false, 0, outputs};
        rc = opdi_control_lowered ? opdi_control_lowered(&job) : OPDI_CONTROL_DECLINES;
        if (rc == OPDI_CONTROL_DECLINES) {
            return opd_fail(OPD_ERROR_ARGUMENT, "prim::Loop: the number of rounds depends on data");
        }
        rc = rc < 0 ? -1 : 0;
    }
    for (int32_t i = 0; i < node->nout && rc == 0; i++) {
        rets[i] = outputs[i];
        if (opdi_value_hold(&rets[i]) == 0) { continue; }
        while (i-- > 0) { opdi_value_drop(rets[i]); }
        rc = -1;
    }
    return rc;
}

/* Returns the value whose storage a node may read, also in front of the first element of its tensor, or NULL. */
static const opdi_gvalue *opdi_gnode_storage(const opdi_gnode *node) {
    return node->op && (strncmp(node->op->name, "aten::as_strided", 16) == 0 ||
                        strstr(node->op->name, "storage_offset")) ? opdi_gvalue_base(node->in[0]) : NULL;
}
/* Returns whether a graph can be called with other tensors of the same values: it does not read the storage of its
   inputs. */
OPD_UNUSED OPDI_INTERNAL bool opdi_graph_is_closed(const opd_graph *graph) {
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const opdi_gvalue *const base = opdi_gnode_storage(node);
        if (base && (!base->node || base->node->kind != OPDI_GNODE_OP)) { return false; }
    }
    return true;
}

//== finding such nodes ================================================================================================

/* The state while a node is replaced.  The values belong to the graph. */
typedef struct opdi_closing {
    opd_graph *graph;
    opdi_gnode *node;                             /* the node with blocks */
    opdi_recorded_kind kind;
    opdi_gvalue *test;                            /* the tensor that is the condition: of a while, before the first
                                                     round */
    opdi_gvalue *next_test;                       /* of a while: the condition after a round */
    opdi_gvalue *last;                            /* of a scan in reverse: the index of the last slice */
    bool reverse, writes;
    opdi_gnode **slices;                          /* the nodes that take slices, in the block */
    opdi_gnode **appends, **stacks;               /* for each result: the node that appends it to a list, and the node
                                                     that stacks the list */
    opdi_gnode **dropped;                         /* nodes that append to a list that nothing reads */
    opdi_gvalue **others;                         /* the other values of the graph that the blocks read */
    int nslices, nresults, ndropped, nothers, nempties, cap;
} opdi_closing;

static bool opdi_gnode_is_builtin(const opdi_gnode *node, const char *name) {
    const size_t length = strlen(name);
    return node && node->kind == OPDI_GNODE_BUILTIN && strncmp(node->builtin->schema, name, length) == 0 &&
        (node->builtin->schema[length] == '(' || !node->builtin->schema[length]);
}
static bool opdi_gnode_is_op(const opdi_gnode *node, const char *name) {
    return node && node->kind == OPDI_GNODE_OP && strcmp(node->op->name, name) == 0;
}
/* Returns whether a value is a constant number, and sets *number to it. */
static bool opdi_gvalue_is_number(const opdi_gvalue *value, int64_t *number) {
    const opdi_gnode *const node = value->node;
    if (!node || node->kind != OPDI_GNODE_CONSTANT ||
        (node->constant.tag != OPD_TAG_INT && node->constant.tag != OPD_TAG_BOOL)) { return false; }
    *number = node->constant.u.i;
    return true;
}
static bool opdi_gvalue_is_zero(const opdi_gvalue *value) {
    int64_t number;
    return opdi_gvalue_is_number(value, &number) && number == 0;
}
/* Returns whether a value is computed in the blocks of a node, or is an input of them. */
static bool opdi_gvalue_is_inside(const opdi_gvalue *value, const opdi_gnode *node) {
    const opdi_gblock *block = value->node ? value->node->block : value->block;
    for (; block && block->owner; block = block->owner->block) { if (block->owner == node) { return true; } }
    return false;
}
/* Returns the tensor of which a value is the truth, or NULL. */
static opdi_gvalue *opdi_gvalue_truth_of(const opdi_gvalue *value) {
    return opdi_gnode_is_builtin(value->node, "aten::Bool.Tensor") && value->node->in[0]->tag == OPD_TAG_TENSOR
        ? value->node->in[0] : NULL;
}
/* Returns whether a graph of a block can have a copy of a value: a constant, except for tensors and devices, or a list
   of such constants. */
static bool opdi_gvalue_copies(const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    if (!node) { return false; }
    if (node->kind == OPDI_GNODE_CONSTANT) {
        return node->constant.tag != OPD_TAG_TENSOR && node->constant.tag != OPD_TAG_DEVICE;
    }
    bool copies = node->kind == OPDI_GNODE_LIST;
    for (int32_t i = 0; i < node->nin && copies; i++) { copies = opdi_gvalue_copies(node->in[i]); }
    return copies;
}
/* Adds a value that a block reads to the others, unless it is known.  Returns false if it cannot be passed to a
   graph. */
static bool opdi_closing_reads(opdi_closing *all, opdi_gvalue *value) {
    if (opdi_gvalue_is_inside(value, all->node) || opdi_gvalue_copies(value)) { return true; }
    for (int i = 0; i < all->nothers; i++) { if (all->others[i] == value) { return true; } }
    if ((value->tag != OPD_TAG_TENSOR && value->tag != OPD_TAG_INT && value->tag != OPD_TAG_FLOAT &&
         value->tag != OPD_TAG_BOOL && value->tag != OPD_TAG_DEVICE) || all->nothers == all->cap) { return false; }
    all->others[all->nothers++] = value;
    return true;
}
static bool opdi_closing_is_slice(const opdi_closing *all, const opdi_gnode *node) {
    for (int i = 0; i < all->nslices; i++) { if (all->slices[i] == node) { return true; } }
    return false;
}
static bool opdi_closing_is_append(const opdi_closing *all, const opdi_gnode *node) {
    for (int i = 0; i < all->nresults; i++) { if (all->appends[i] == node) { return true; } }
    for (int i = 0; i < all->ndropped; i++) { if (all->dropped[i] == node) { return true; } }
    return false;
}
/* Finds the slices whose index is `at`, the number of the round or computed from it.  Returns false if `at` is used in
   another way. */
static bool opdi_closing_slices(opdi_closing *all, const opdi_gvalue *at, const opdi_gblock *block, bool reverse) {
    const opdi_graph_uses *const users = all->graph->users;
    for (int32_t use = at->first_use; use >= 0; use = users->uses[use].next) {
        opdi_gnode *const node = users->uses[use].node;
        if (!node || node->block != block) { return false; }
        if (!reverse && opdi_gnode_is_builtin(node, "aten::sub.int") && node->in[1] == at && node->in[0] != at &&
            !opdi_gvalue_is_inside(node->in[0], all->node)) {
            if ((all->last && all->last != node->in[0]) || !opdi_closing_slices(all, node->out[0], block, true)) {
                return false;
            }
            all->last = node->in[0];
            continue;
        }
        if (!opdi_gnode_is_op(node, OPDI_NAME(select_int, "aten::select.int")) || users->uses[use].index != 2 ||
            opdi_gvalue_is_inside(node->in[0], all->node) || !opdi_gvalue_is_zero(node->in[1]) ||
            (all->nslices && all->reverse != reverse)) { return false; }
        all->reverse = reverse;
        all->slices[all->nslices++] = node;
    }
    return true;
}
/* Adds the result that `append`, a node of a loop, appends to a list, if the list is only stacked after the loop.
   Returns false if it is used in another way. */
static bool opdi_closing_result(opdi_closing *all, opdi_gnode *append) {
    const opdi_graph_uses *const users = all->graph->users;
    const opdi_gvalue *const list = append->in[0];
    opdi_gnode *stack = NULL;
    bool reversed = false;
    if (!list->node || list->node->kind != OPDI_GNODE_LIST || list->node->block != all->node->block ||
        list->node->nin > 1 || append->block != &all->node->blocks[0]) { return false; }
    for (int32_t use = list->first_use; use >= 0; use = users->uses[use].next) {
        opdi_gnode *const node = users->uses[use].node;
        if (node == append && users->uses[use].index == 0) { continue; }
        if (!node || node->block != all->node->block || node->order < all->node->order) { return false; }
        if (opdi_gnode_is_builtin(node, "aten::reverse.t") && !reversed && !stack) { reversed = true; }
        else if (stack || !opdi_gvalue_is_zero(node->in[1]) ||
                 !opdi_gnode_is_op(node, list->node->nin ? OPDI_NAME(cat, "aten::cat")
                                   : OPDI_NAME(stack, "aten::stack"))) { return false; }
        else { stack = node; }
    }
    const opdi_gnode *const made = append->in[1]->node;
    if (list->node->nin && (!opdi_gnode_is_op(made, OPDI_NAME(unsqueeze, "aten::unsqueeze")) ||
                            !opdi_gvalue_is_zero(made->in[1]))) { return false; }
    if (!stack) {                                 /* nothing reads the list */
        all->dropped[all->ndropped++] = append;
        return true;
    }
    if (reversed != all->reverse || (all->nresults && (all->nempties > 0) != (list->node->nin > 0))) {
        return false;
    }
    all->nempties += list->node->nin;
    all->appends[all->nresults] = append;
    all->stacks[all->nresults++] = stack;
    return true;
}
/* Returns whether a node of a block can be in a graph of its own: it has no side effects outside of the block. */
static bool opdi_closing_allows(const opdi_closing *all, const opdi_gnode *node) {
    if (node->kind == OPDI_GNODE_OP) {
        const opdi_gvalue *const base = opdi_gnode_storage(node);
        return !base || (base->node && base->node->kind == OPDI_GNODE_OP && opdi_gvalue_is_inside(base, all->node));
    }
    if (node->kind == OPDI_GNODE_FUNCTION) { return !(node->function->flags & OPDI_GFUNCTION_EFFECTS); }
    if (node->kind != OPDI_GNODE_BUILTIN || !(node->builtin->flags & OPDI_BUILTIN_STAYS)) { return true; }
    return (opdi_gnode_is_builtin(node, "aten::append.t") || opdi_gnode_is_builtin(node, "aten::reverse.t")) &&
        opdi_gvalue_is_inside(node->in[0], all->node);
}
/* Returns whether all values are tensors. */
static bool opdi_gvalues_are_tensors(opdi_gvalue *const *values, int32_t count) {
    for (int32_t i = 0; i < count; i++) { if (values[i]->tag != OPD_TAG_TENSOR) { return false; } }
    return true;
}
/* Looks at the condition of a loop.  Returns false if the loop cannot be a scan or a while. */
static bool opdi_closing_loop(opdi_closing *all) {
    const opdi_gnode *const node = all->node;
    const opdi_gblock *const block = &node->blocks[0];
    int64_t first, next, most = 0;
    if (!opdi_gvalues_are_tensors(node->in + 2, node->nin - 2) ||
        !opdi_gvalues_are_tensors(block->outputs + 1, block->noutputs - 1)) { return false; }
    if (opdi_gvalue_is_number(node->in[1], &first) && opdi_gvalue_is_number(block->outputs[0], &next)) {
        all->kind = OPDI_RECORDED_SCAN;
        return first && next && opdi_closing_slices(all, block->inputs[0], block, false);
    }
    all->kind = OPDI_RECORDED_WHILE;
    all->test = opdi_gvalue_truth_of(node->in[1]);
    all->next_test = opdi_gvalue_truth_of(block->outputs[0]);
    return all->test && all->next_test && block->inputs[0]->first_use < 0 &&
        opdi_gvalue_is_number(node->in[0], &most) && most == INT64_MAX;
}
/* Finds what the blocks of a node read, and what a loop appends to lists.  Returns false if the blocks cannot be graphs
   of their own. */
static bool opdi_closing_find(opdi_closing *all) {
    opdi_gnode *const node = all->node, *const past = opdi_gnode_past(node);
    bool closes = opdi_gvalues_are_tensors(node->out, node->nout);
    if (node->kind == OPDI_GNODE_IF) {
        all->kind = OPDI_RECORDED_COND;
        closes = closes && (all->test = opdi_gvalue_truth_of(node->in[0])) != NULL;
    } else { closes = closes && opdi_closing_loop(all); }
    for (opdi_gnode *inner = opdi_gnode_after(node); inner != past && closes; inner = opdi_gnode_after(inner)) {
        if (opdi_gnode_is_builtin(inner, "aten::append.t") && !opdi_gvalue_is_inside(inner->in[0], node)) {
            closes = all->kind == OPDI_RECORDED_SCAN && opdi_closing_result(all, inner) &&
                opdi_closing_reads(all, inner->in[1]);
            continue;
        }
        closes = opdi_closing_allows(all, inner);
        if (opdi_closing_is_slice(all, inner)) { continue; }
        if (opdi_gnode_is_builtin(inner, "aten::sub.int") && all->last && inner->in[0] == all->last &&
            inner->in[1] == node->blocks[0].inputs[0]) { continue; }
        for (int32_t i = 0; i < inner->nin && closes; i++) { closes = opdi_closing_reads(all, inner->in[i]); }
        for (int32_t k = 0; k < inner->nblocks && closes; k++) {
            for (int32_t i = 0; i < inner->blocks[k].noutputs && closes; i++) {
                closes = opdi_closing_reads(all, inner->blocks[k].outputs[i]);
            }
        }
    }
    for (int32_t k = 0; k < node->nblocks && closes; k++) {
        for (int32_t i = 0; i < node->blocks[k].noutputs && closes; i++) {
            closes = opdi_closing_reads(all, node->blocks[k].outputs[i]);
        }
    }
    return closes && (!all->next_test || opdi_closing_reads(all, all->next_test));
}

//== making the graphs =================================================================================================

/* Copies the constants that a value needs, if a graph has none yet.  Returns 0, or -1 and sets an error. */
static int opdi_closing_need(opdi_gcopier *copier, const opdi_gvalue *value) {
    if (opdi_gcopier_get(copier, value) || !opdi_gvalue_copies(value)) { return 0; }
    for (int32_t i = 0; i < value->node->nin; i++) {
        if (opdi_closing_need(copier, value->node->in[i])) { return -1; }
    }
    return opdi_gcopier_node(copier, value->node) ? 0 : -1;
}
/* Copies the constants that a node, and the nodes in its blocks, need.  Returns 0, or -1 and sets an error. */
static int opdi_closing_needs(const opdi_closing *all, opdi_gcopier *copier, const opdi_gnode *node) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
        for (int32_t i = 0; i < inner->nin; i++) {
            if (!opdi_gvalue_is_inside(inner->in[i], all->node) && opdi_closing_need(copier, inner->in[i])) {
                return -1;
            }
        }
        for (int32_t k = 0; k < inner->nblocks; k++) {
            for (int32_t i = 0; i < inner->blocks[k].noutputs; i++) {
                const opdi_gvalue *const value = inner->blocks[k].outputs[i];
                if (!opdi_gvalue_is_inside(value, all->node) && opdi_closing_need(copier, value)) { return -1; }
            }
        }
    }
    return 0;
}
/* Adds an input that stands for `value`.  Returns 0, or -1 and sets an error. */
static int opdi_closing_input(opdi_gcopier *copier, const opdi_gvalue *value) {
    opd_graph *const graph = copier->to;
    if (!(graph->inputs[graph->ninputs] = opdi_gcopier_value(copier, value, NULL, NULL))) { return -1; }
    graph->ninputs++;
    return 0;
}
/* Copies the nodes of block `which`, and sets the outputs of the new graph.  Returns 0, or -1 and sets an error. */
static int opdi_closing_body(const opdi_closing *all, opdi_gcopier *copier, int which) {
    const opdi_gblock *const block = &all->node->blocks[which];
    const int loop = all->kind != OPDI_RECORDED_COND;
    int count = 0;
    opdi_gvalue **const outputs = (opdi_gvalue **)opdi_scope_alloc(((size_t)block->noutputs + (size_t)all->nresults +
                                                                    1) * sizeof *outputs);
    if (!outputs) { return -1; }
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        const bool index = loop && opdi_gnode_is_builtin(node, "aten::sub.int") && node->in[1] == block->inputs[0];
        if (opdi_closing_is_slice(all, node) || opdi_closing_is_append(all, node) || index) { continue; }
        if (opdi_gnode_is_builtin(node, "aten::Bool.Tensor") && loop && node->out[0] == block->outputs[0]) { continue; }
        if (opdi_closing_needs(all, copier, node) || !opdi_gcopier_node(copier, node)) { return -1; }
    }
    for (int32_t i = loop; i < block->noutputs; i++) { outputs[count++] = opdi_gcopier_get(copier, block->outputs[i]); }
    for (int i = 0; i < all->nresults; i++) {
        const opdi_gvalue *const value = all->appends[i]->in[1];
        outputs[count++] = opdi_gcopier_get(copier, all->nempties ? value->node->in[0] : value);
    }
    if (all->next_test) { outputs[count++] = opdi_gcopier_get(copier, all->next_test); }
    for (int i = 0; i < count; i++) {
        if (!outputs[i]) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: a block has no value for an output", copier->who); }
    }
    return opdi_append_outputs(copier->to, outputs, count, false);
}
OPDI_INTERNAL int opdi_graph_close_blocks(opd_graph *graph, bool writes);
/* Makes the graph of block `which`.  Returns NULL and sets an error if that fails. */
static opd_graph *opdi_closing_graph(const opdi_closing *all, int which) {
    const opdi_gblock *const block = &all->node->blocks[which];
    const int carried = all->kind == OPDI_RECORDED_COND ? 0 : block->ninputs - 1;
    opdi_gcopier copier;
    opd_graph *const graph = opdi_graph_new();
    if (!graph) { return NULL; }
    int rc = opdi_gcopier_begin(&copier, all->graph, graph, "prim::Loop") ||
        opdi_graph_reserve_inputs(graph, carried + all->nslices + all->nothers) ? -1 : 0;
    for (int i = 0; i < carried && rc == 0; i++) { rc = opdi_closing_input(&copier, block->inputs[1 + i]); }
    for (int i = 0; i < all->nslices && rc == 0; i++) { rc = opdi_closing_input(&copier, all->slices[i]->out[0]); }
    for (int i = 0; i < all->nothers && rc == 0; i++) { rc = opdi_closing_input(&copier, all->others[i]); }
    if (rc == 0) { rc = opdi_closing_body(all, &copier, which); }
    if (rc == 0) { rc = opd_graph_dce(graph) < 0 || opdi_graph_close_blocks(graph, all->writes) ? -1 : 0; }
    if (rc == 0) { return graph; }
    opd_graph_free(graph);
    return NULL;
}

//== replacing nodes ===================================================================================================

/* Gives all uses of `value` the value `by`. */
static void opdi_gvalue_give_uses(opd_graph *graph, const opdi_gvalue *value, opdi_gvalue *by) {
    const opdi_graph_uses *const users = graph->users;
    for (int32_t at = value->first_use, next; at >= 0; at = next) {
        next = users->uses[at].next;
        opdi_graph_use_set(graph, at, by);
    }
}
/* Appends the values values[count] to the inputs of a node. */
static void opdi_gnode_reads(opdi_gnode *node, opdi_gvalue *const *values, int count) {
    for (int i = 0; i < count; i++) { node->in[node->nin++] = values[i]; }
}
/* Sets the inputs of the new node. */
static void opdi_closing_inputs(const opdi_closing *all, opdi_gnode *made) {
    const opdi_gnode *const node = all->node;
    made->nin = 0;
    if (all->kind == OPDI_RECORDED_SCAN) {
        opdi_gnode_reads(made, &node->in[0], 1);
        opdi_gnode_reads(made, all->last ? &all->last : &node->in[0], 1);
    } else { opdi_gnode_reads(made, &all->test, 1); }
    if (node->kind == OPDI_GNODE_LOOP) { opdi_gnode_reads(made, node->in + 2, node->nin - 2); }
    for (int i = 0; i < all->nslices; i++) { opdi_gnode_reads(made, &all->slices[i]->in[0], 1); }
    opdi_gnode_reads(made, all->others, all->nothers);
    for (int i = 0; i < all->nempties; i++) { opdi_gnode_reads(made, &all->appends[i]->in[0]->node->in[0], 1); }
}
/* Makes the node that calls `closed`, in front of the node that it replaces.  Returns NULL if memory runs out. */
static opdi_gnode *opdi_closing_node(const opdi_closing *all, opdi_closed *closed) {
    opd_graph *const graph = all->graph;
    opdi_gnode *const node = all->node;
    const opdi_graph_insert_point was = {graph->into, graph->at};
    const int nin = 2 + node->nin + all->nslices + all->nothers + all->nempties, nout = node->nout + all->nresults;
    opdi_gnode *const made = opdi_gnode_new(graph, OPDI_GNODE_FUNCTION, nin, nout);
    opdi_gcopier copier;
    memset(&copier, 0, sizeof copier);
    copier.from = copier.to = graph;
    if (!made) { return NULL; }
    opdi_closing_inputs(all, made);
    for (int i = 0; i < nout; i++) {
        const opdi_gvalue *const like = i < node->nout ? node->out[i] : all->stacks[i - node->nout]->out[0];
        if (!(made->out[i] = opdi_gcopier_value(&copier, like, made, NULL))) { return NULL; }
    }
    made->place = node->place;
    graph->into = node->block->owner ? node->block : NULL;
    graph->at = node;
    opdi_gnode_append(graph, made);
    graph->into = was.into;
    graph->at = was.at;
    made->function = &closed->called;
    made->user = closed;
    return made;
}
/* Removes the node after the loop that reverses a list. */
static void opdi_closing_forget(const opdi_closing *all, const opdi_gvalue *list) {
    for (opdi_gnode *at = all->node->next, *next; at; at = next) {
        next = at->next;
        if (opdi_gnode_is_builtin(at, "aten::reverse.t") && at->in[0] == list) { opdi_gnode_remove(all->graph, at); }
    }
}
/* Replaces a node by one that calls its graphs.  Returns the new node, or NULL and sets an error. */
static opdi_gnode *opdi_closing_replace(const opdi_closing *all) {
    opd_graph *const graph = all->graph;
    opdi_gnode *const node = all->node;
    opdi_closed *const closed = (opdi_closed *)opdi_alloc(sizeof *closed);
    opdi_gnode *made = NULL;
    if (!closed) { return NULL; }
    memset(closed, 0, sizeof *closed);
    closed->user.refs = 1;
    closed->user.destroy = opdi_closed_destroy;
    closed->called.name = all->kind == OPDI_RECORDED_COND ? "prim::If" : "prim::Loop";
    closed->called.run = opdi_closed_run;
    closed->called.flags = OPDI_GFUNCTION_COUNTED | (opdi_gnode_draws_inside(node) ? OPDI_GFUNCTION_DRAWS : 0);
    closed->kind = all->kind;
    closed->ncarried = node->kind == OPDI_GNODE_LOOP ? node->nin - 2 : 0;
    closed->nsliced = all->nslices;
    closed->nothers = all->nothers;
    closed->nresults = all->nresults;
    closed->nempties = all->nempties;
    closed->reverse = all->reverse;
    closed->writes = all->writes;
    for (int32_t i = 0; i < node->nblocks && opd_ok(); i++) { closed->graphs[i] = opdi_closing_graph(all, i); }
    if (opd_ok()) { made = opdi_closing_node(all, closed); }
    if (!made) { opdi_closed_destroy(&closed->user); }
    if (!made || !opdi_graph_users(graph)) { return NULL; }
    for (int32_t i = 0; i < node->nout; i++) { opdi_gvalue_give_uses(graph, node->out[i], made->out[i]); }
    for (int i = 0; i < all->nresults; i++) {
        opdi_gvalue_give_uses(graph, all->stacks[i]->out[0], made->out[node->nout + i]);
    }
    for (int i = 0; i < all->nresults; i++) {
        opdi_closing_forget(all, all->appends[i]->in[0]);
        opdi_gnode_remove(graph, all->stacks[i]);
    }
    for (int i = 0; i < all->ndropped; i++) { opdi_closing_forget(all, all->dropped[i]->in[0]); }
    opdi_gnode_remove(graph, node);
    return made;
}
/* Moves the tensors and devices that are constants in the blocks of a node in front of the node. */
static void opdi_graph_hoist_constants(opd_graph *graph, opdi_gnode *node) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    const opdi_graph_insert_point was = {graph->into, graph->at};
    for (opdi_gnode *inner = opdi_gnode_after(node), *next; inner != past; inner = next) {
        next = opdi_gnode_after(inner);
        if (inner->kind != OPDI_GNODE_CONSTANT || opdi_gvalue_copies(inner->out[0])) { continue; }
        opdi_graph_changed(graph);
        if (inner->prev) { inner->prev->next = inner->next; } else { inner->block->first = inner->next; }
        if (inner->next) { inner->next->prev = inner->prev; } else { inner->block->last = inner->prev; }
        inner->next = inner->prev = NULL;
        graph->into = node->block->owner ? node->block : NULL;
        graph->at = node;
        opdi_gnode_append(graph, inner);
    }
    graph->into = was.into;
    graph->at = was.at;
}
/* Replaces a node if its blocks can be graphs of their own.  Returns the node to go on after, or NULL and sets an
   error. */
static opdi_gnode *opdi_graph_close_node(opd_graph *graph, opdi_gnode *node, bool writes) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    opdi_closing all;
    memset(&all, 0, sizeof all);
    all.graph = graph;
    all.node = node;
    all.writes = writes;
    all.cap = OPD_MAX_ARGS;
    opdi_graph_hoist_constants(graph, node);
    int count = 0;
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) { count++; }
    const size_t bytes = ((size_t)count + 1) * sizeof(opdi_gnode *);
    all.slices = (opdi_gnode **)opdi_scope_alloc(bytes);
    all.appends = (opdi_gnode **)opdi_scope_alloc(bytes);
    all.stacks = (opdi_gnode **)opdi_scope_alloc(bytes);
    all.dropped = (opdi_gnode **)opdi_scope_alloc(bytes);
    all.others = (opdi_gvalue **)opdi_scope_alloc(((size_t)all.cap + 1) * sizeof *all.others);
    if (!all.slices || !all.appends || !all.stacks || !all.dropped || !all.others || !opdi_graph_users(graph)) {
        return NULL;
    }
    opdi_graph_order(graph);
    return opdi_closing_find(&all) ? opdi_closing_replace(&all) : node;
}
/* Replaces the nodes of a graph whose blocks can be graphs of their own.  `writes` is true if a node of the whole graph
   writes into a tensor.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_close_blocks(opd_graph *graph, bool writes) {
    if (opdi_stack_is_short("prim::Loop", OPDI_STACK_CALL)) { return -1; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind != OPDI_GNODE_IF && node->kind != OPDI_GNODE_LOOP) { continue; }
        if (!(node = opdi_graph_close_node(graph, node, writes))) { return -1; }
    }
    return opd_graph_dce(graph) < 0 ? -1 : 0;
}
/* Returns a copy of a graph in which nodes with blocks are replaced, or NULL and sets an error.  If the graph has no
   such nodes, returns NULL and sets no error. */
OPD_UNUSED OPDI_INTERNAL opd_graph *opdi_graph_closed(const opd_graph *graph) {
    bool blocks = false, writes = false;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        blocks = blocks || node->kind == OPDI_GNODE_IF || node->kind == OPDI_GNODE_LOOP;
        writes = writes || opdi_gnode_written(node);
    }
    opd_graph *const copy = blocks ? opd_graph_copy(graph) : NULL;
    if (!copy) { return NULL; }
    opd_scope scope = opd_scope_open();
    const int rc = opdi_graph_close_blocks(copy, writes);
    opd_scope_close(&scope);
    if (rc == 0) { return copy; }
    opd_graph_free(copy);
    return NULL;
}
