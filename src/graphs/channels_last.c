#include "graphs.h"

//== convolutions with the channels last ===============================================================================
//
//  A node is in a chain if it is a convolution of images, or if it keeps the layout of an input that a node of a chain
//  computes.  A concatenation takes a list; the node of the list is in the chain, too.  Blocks stay as they are.
//  Conversions stand where chains begin and end.  Those at the ends are added first: while the tensors are contiguous,
//  they do nothing, so the graph is right after each change.
//
//  If memory is written in place, all tensors that may have this memory must be in chains, and only nodes of chains may
//  write it.  Other nodes that read it get a conversion directly before them.

enum { OPDI_CHANNELS_LAST = 2 };                  /* the number of torch.channels_last */
/* op: contiguous.  mark: of nodes in chains.  written, blocked: marks of memory that is written, and of memory that
   stays out of chains for this reason.  count: of conversions. */
typedef struct opdi_layout_pass {
    opd_graph *graph;
    opd_op *op;
    uint64_t mark, written, blocked;
    int count;
} opdi_layout_pass;

static bool opdi_op_named(const opd_op *op, const char *const *names) {
    for (; *names; names++) { if (strcmp(op->base_name, *names) == 0) { return true; } }
    return false;
}
static bool opdi_op_is_conv2d(const opd_op *op) {
    static const char *const names[] = {"aten::conv2d", "aten::convolution", "aten::_convolution", NULL};
    return opdi_op_named(op, names);
}
/* Returns whether the results of an operator have the layout of its tensors with 4 dims. */
static bool opdi_op_keeps_layout(const opd_op *op) {
    static const char *const names[] = {
        "aten::batch_norm", "aten::_native_batch_norm_legit_no_training", "aten::_batch_norm_no_update",
        "aten::max_pool2d", "aten::max_pool2d_with_indices", "aten::avg_pool2d", "aten::adaptive_avg_pool2d",
        "aten::_adaptive_avg_pool2d", "aten::upsample_nearest2d", "aten::upsample_bilinear2d", NULL};
    const bool aten = op->definition && op->definition->lib == opdi_registry.aten;
    return aten && ((op->definition->tags & OPD_OPTAG_POINTWISE) || opdi_op_named(op, names));
}
static bool opdi_gvalue_is_image(const opdi_gvalue *value) {
    return value->tag == OPD_TAG_TENSOR && value->dtype >= 0 && value->ndim == 4;
}
/* Returns whether the graph knows that a tensor with 4 dims has the channels last. */
static bool opdi_gvalue_is_last(const opdi_gvalue *value) {
    const int64_t *const sizes = value->dims, *const strides = value->dims + 4;
    static const int order[] = {1, 3, 2, 0};
    int64_t step = 1;
    for (int k = 0; k < 4; k++) {
        if (sizes[order[k]] != 1 && strides[order[k]] != step) { return false; }
        step *= sizes[order[k]];
    }
    return true;
}
static bool opdi_layout_in_chain(const opdi_layout_pass *pass, const opdi_gnode *node) {
    return node && node->mark == pass->mark;
}
/* Returns whether a node computes an image in a chain. */
static bool opdi_layout_is_in(const opdi_layout_pass *pass, const opdi_gvalue *value) {
    return opdi_layout_in_chain(pass, value->node) && opdi_gvalue_is_image(value);
}
static bool opdi_gvalue_same_sizes(const opdi_gvalue *value, const opdi_gvalue *other) {
    return memcmp(value->dims, other->dims, 4 * sizeof *value->dims) == 0;
}
/* Returns whether input i of a node of a chain must have the channels last: the input of a convolution, elements of a
   list, and images of the size of the result. */
static bool opdi_layout_wants(const opdi_gnode *node, int32_t i) {
    if (!opdi_gvalue_is_image(node->in[i])) { return false; }
    if (node->kind == OPDI_GNODE_LIST) { return true; }
    return opdi_op_is_conv2d(node->op) ? i == 0 : i == 0 || opdi_gvalue_same_sizes(node->in[i], node->out[0]);
}
/* Returns whether a node joins the images of a list. */
static bool opdi_layout_joins(const opdi_gnode *node) {
    static const char *const names[] = {"aten::cat", "aten::concat", "aten::concatenate", NULL};
    return node && node->kind == OPDI_GNODE_OP && opdi_op_named(node->op, names) && node->nout == 1 &&
        opdi_gvalue_is_image(node->out[0]);
}
/* Returns whether a node is a list of images that only one node uses, which joins them. */
static bool opdi_layout_is_list(const opdi_layout_pass *pass, const opdi_gnode *node) {
    const opdi_guse *const uses = pass->graph->users->uses;
    const int32_t use = node->kind == OPDI_GNODE_LIST ? node->out[0]->first_use : -1;
    if (use < 0 || uses[use].next >= 0 || !opdi_layout_joins(uses[use].node)) { return false; }
    for (int32_t i = 0; i < node->nin; i++) { if (!opdi_gvalue_is_image(node->in[i])) { return false; } }
    return uses[use].node->block == node->block && opdi_gvalue_root(node->out[0])->mark != pass->blocked &&
        opdi_gvalue_root(uses[use].node->out[0])->mark != pass->blocked;
}
/* Decides whether a node of the body belongs to a chain. */
static bool opdi_layout_takes(const opdi_layout_pass *pass, const opdi_gnode *node) {
    const bool list = opdi_layout_is_list(pass, node);
    if (!list && (node->kind != OPDI_GNODE_OP || node->nout == 0 || !opdi_gvalue_is_image(node->out[0]))) {
        return false;
    }
    const bool conv = !list && opdi_op_is_conv2d(node->op), joins = opdi_layout_joins(node);
    bool any = (conv && opdi_gvalue_is_image(node->in[0])) || (joins && opdi_layout_in_chain(pass, node->in[0]->node));
    if (!list && !conv && !joins && !opdi_op_keeps_layout(node->op)) { return false; }
    for (int32_t i = 0; i < node->nin; i++) {
        if (opdi_gvalue_root(node->in[i])->mark == pass->blocked) { return false; }
        any |= !conv && opdi_layout_is_in(pass, node->in[i]) && opdi_layout_wants(node, i);
    }
    for (int32_t i = 0; i < node->nout; i++) {
        if (opdi_gvalue_root(node->out[i])->mark == pass->blocked) { return false; }
    }
    return any;
}
/* Returns whether the memory of a value is written. */
static bool opdi_layout_is_written(const opdi_layout_pass *pass, opdi_gvalue *value) {
    return opdi_gvalue_root(value)->mark == pass->written;
}
/* Keeps values that are written out of chains.  Returns whether there is one that was not yet. */
static bool opdi_layout_block(const opdi_layout_pass *pass, opdi_gvalue *const *values, int32_t count) {
    bool any = false;
    for (int32_t i = 0; i < count; i++) {
        if (!opdi_layout_is_written(pass, values[i])) { continue; }
        opdi_gvalue_root(values[i])->mark = pass->blocked;
        any = true;
    }
    return any;
}
/* Keeps memory out of chains that a node outside of chains gives on or writes.  Returns whether there is any. */
static bool opdi_layout_block_all(const opdi_layout_pass *pass) {
    const opd_graph *const graph = pass->graph;
    bool any = opdi_layout_block(pass, graph->inputs, graph->ninputs);
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t k = 0; k < node->nblocks; k++) {
            any |= opdi_layout_block(pass, node->blocks[k].inputs, node->blocks[k].ninputs);
        }
        const bool constant = node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_TENSOR;
        if (opdi_layout_in_chain(pass, node) || (constant && node->constant.u.t->ndim != 4)) { continue; }
        any |= opdi_layout_block(pass, node->out, node->nout);
        for (int32_t i = 0; i < node->nin && !node->nblocks && opdi_gnode_stays(node); i++) {
            if (opdi_layout_is_written(pass, node->in[i]) &&
                opdi_gnode_writes_root(node, opdi_gvalue_root(node->in[i]))) {
                any |= opdi_layout_block(pass, &node->in[i], 1);
            }
        }
    }
    return any;
}
/* Adds a conversion of a value in front of the node `at` (NULL: at the end).  Returns the converted value, or NULL and
   sets an error. */
static opdi_gvalue *opdi_layout_convert(opdi_layout_pass *pass, opdi_gvalue *value, opdi_gnode *at, int format) {
    opd_graph *const graph = pass->graph;
    opdi_gblock *const into = graph->into;
    opdi_gnode *const before = graph->at;
    opdi_gvalue *args[2], *result = NULL;
    args[0] = value;
    graph->into = NULL;
    graph->at = at;
    args[1] = opd_graph_constant(graph, opd_value_int(format));
    if (args[1]) { (void)opd_graph_call_op(graph, pass->op, args, 2, &result, 1); }
    graph->into = into;
    graph->at = before;
    if (!result) { return NULL; }
    result->dtype = value->dtype;
    result->backend = value->backend;
    result->index = value->index;
    result->requires_grad = value->requires_grad;
    result->ndim = value->ndim;
    result->dims = value->dims;
    pass->count++;
    return result;
}
/* Writes to the graph that a tensor has the channels last.  Returns 0, or -1 and sets an error. */
static int opdi_gvalue_set_last(opd_graph *graph, opdi_gvalue *value) {
    int64_t *const dims = (int64_t *)opdi_graph_alloc(graph, 8 * sizeof *dims);
    if (!dims) { return -1; }
    memcpy(dims, value->dims, 4 * sizeof *dims);
    dims[5] = 1;
    dims[7] = dims[1];
    dims[6] = dims[7] * dims[3];
    dims[4] = dims[6] * dims[2];
    value->dims = dims;
    return 0;
}
/* Returns the first use of a value by a node that is neither in a chain nor a conversion; -1 if there is none. */
static int32_t opdi_layout_use_outside(const opdi_layout_pass *pass, const opdi_gvalue *value) {
    const opdi_graph_uses *const users = pass->graph->users;
    int32_t at = value->first_use;
    for (; at >= 0; at = users->uses[at].next) {
        const opdi_gnode *const node = users->uses[at].node;
        if (!node || (!opdi_layout_in_chain(pass, node) && node->op != pass->op)) { break; }
    }
    return at;
}
/* Converts a value whose memory is written directly before each use outside of chains. */
static int opdi_layout_leave_written(opdi_layout_pass *pass, opdi_gvalue *value) {
    opd_graph *const graph = pass->graph;
    const opdi_graph_uses *users;
    int32_t at;
    while ((users = opdi_graph_users(graph)) != NULL && (at = opdi_layout_use_outside(pass, value)) >= 0) {
        opdi_gnode *node = users->uses[at].node ? users->uses[at].node : users->uses[at].block->owner;
        while (node && node->block->owner) { node = node->block->owner; }
        opdi_gvalue *const back = opdi_layout_convert(pass, value, node, 0);
        if (!back || !opdi_graph_users(graph)) { return -1; }
        opdi_graph_use_set(graph, opdi_layout_use_outside(pass, value), back);
    }
    return users ? 0 : -1;
}
/* Converts a value of a chain back for its uses outside of chains.  Returns 0, or -1 and sets an error. */
static int opdi_layout_leave(opdi_layout_pass *pass, opdi_gvalue *value) {
    opd_graph *const graph = pass->graph;
    const opdi_graph_uses *users = opdi_graph_users(graph);
    bool outside = false;
    if (!users) { return -1; }
    for (int32_t at = value->first_use; at >= 0; at = users->uses[at].next) {
        outside |= !opdi_layout_in_chain(pass, users->uses[at].node);
    }
    if (!outside || opdi_gvalue_is_last(value)) { return 0; }
    if (opdi_layout_is_written(pass, value)) { return opdi_layout_leave_written(pass, value); }
    opdi_gvalue *const back = opdi_layout_convert(pass, value, value->node->next, 0);
    if (!back || !(users = opdi_graph_users(graph))) { return -1; }
    for (int32_t at = value->first_use, next; at >= 0; at = next) {
        const opdi_guse *const use = &users->uses[at];
        next = use->next;
        if (use->node == back->node || opdi_layout_in_chain(pass, use->node)) { continue; }
        opdi_graph_use_set(graph, at, back);
    }
    return 0;
}
/* Gives the uses of a value in chains a converted value.  `first` is the first node of a chain that uses it. */
static int opdi_layout_enter(opdi_layout_pass *pass, opdi_gvalue *value, opdi_gnode *first) {
    opd_graph *const graph = pass->graph;
    opdi_gvalue *const last = opdi_layout_convert(pass, value, first, OPDI_CHANNELS_LAST);
    const opdi_graph_uses *const users = last ? opdi_graph_users(graph) : NULL;
    if (!users || opdi_gvalue_set_last(graph, last)) { return -1; }
    for (int32_t at = value->first_use, next; at >= 0; at = next) {
        const opdi_guse *const use = &users->uses[at];
        next = use->next;
        if (opdi_layout_in_chain(pass, use->node) && opdi_layout_wants(use->node, use->index)) {
            opdi_graph_use_set(graph, at, last);
        }
    }
    return 0;
}
/* Puts a constant weight with the channels last at the place of the weight of a convolution. */
static int opdi_layout_weight(opdi_layout_pass *pass, opdi_gnode *node) {
    opd_graph *const graph = pass->graph;
    const opdi_gnode *const from = node->in[1]->node;
    const opd_value *const constant = from && from->kind == OPDI_GNODE_CONSTANT ? &from->constant : NULL;
    if (!constant || constant->tag != OPD_TAG_TENSOR || constant->u.t->ndim != 4) { return 0; }
    opd_tensor *const weight = opd_contiguous_full(constant->u.t, OPDI_CHANNELS_LAST);
    opdi_gblock *const into = graph->into;
    opdi_gnode *const before = graph->at;
    graph->into = NULL;
    graph->at = node;
    opdi_gvalue *const value = !weight ? NULL : weight == constant->u.t ? node->in[1]
        : opd_graph_constant(graph, opd_value_tensor(weight));
    graph->into = into;
    graph->at = before;
    return value ? opd_graph_set_input(graph, node, 1, value) : -1;
}
static int opdi_layout_run(opdi_layout_pass *pass) {
    opd_graph *const graph = pass->graph;
    opdi_gnode *next;
    if (opdi_graph_alias(graph, true)) { return -1; }
    pass->written = opdi_graph_mark_written(graph);
    pass->blocked = ++graph->mark;
    if (!opdi_graph_users(graph)) { return -1; }
    do {
        pass->mark = ++graph->mark;
        for (opdi_gnode *node = graph->body.first; node; node = node->next) {
            if (opdi_layout_takes(pass, node)) { node->mark = pass->mark; }
        }
    } while (opdi_layout_block_all(pass));
    for (opdi_gnode *node = graph->body.first; node; node = next) {
        next = node->next;
        for (int32_t i = 0; opdi_layout_in_chain(pass, node) && i < node->nout; i++) {
            if (opdi_gvalue_is_image(node->out[i]) && opdi_layout_leave(pass, node->out[i])) { return -1; }
        }
    }
    for (opdi_gnode *node = graph->body.first; node; node = node->next) {
        if (!opdi_layout_in_chain(pass, node)) { continue; }
        for (int32_t i = 0; i < node->nin; i++) {
            opdi_gvalue *const value = node->in[i];
            if (!opdi_layout_wants(node, i) || opdi_layout_is_in(pass, value) || opdi_gvalue_is_last(value)) {
                continue;
            }
            if (opdi_layout_enter(pass, value, node)) { return -1; }
        }
        if (node->op && opdi_op_is_conv2d(node->op) && opdi_layout_weight(pass, node)) { return -1; }
        for (int32_t i = 0; i < node->nout; i++) {
            if (opdi_gvalue_is_image(node->out[i]) && opdi_gvalue_set_last(graph, node->out[i])) { return -1; }
        }
    }
    return pass->count;
}
int opd_graph_channels_last(opd_graph *graph) {
    opdi_layout_pass pass;
    if (!opd_ok()) { return -1; }
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_channels_last: the graph is NULL"); }
    memset(&pass, 0, sizeof pass);
    pass.graph = graph;
    if (!(pass.op = opd_find(OPDI_NAME(contiguous, "aten::contiguous")))) { return -1; }
    opd_scope scope = opd_scope_open();
    const bool was = opd_grad_mode_set(false);
    const int count = opdi_layout_run(&pass);
    (void)opd_grad_mode_set(was);
    opd_scope_close(&scope);
    return count;
}
