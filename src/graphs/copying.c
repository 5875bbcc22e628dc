#include "graphs.h"

//== copying graphs ====================================================================================================
//
//  A copier makes nodes in one graph that do what nodes of another graph do.  Its table says which value of the new
//  graph stands for a value of the old one.  The old graph is only read.  Values that are copied into a graph that has
//  nodes already get new numbers, and their names if no other value has them.

//== the copier ========================================================================================================

static opdi_gpair *opdi_gcopier_slot(const opdi_gcopier *copier, const opdi_gvalue *from) {
    int64_t i = (int64_t)(((uint64_t)(uintptr_t)from * 0x9e3779b97f4a7c15u) >> 20) & (copier->size - 1);
    while (copier->pairs[i].from && copier->pairs[i].from != from) { i = (i + 1) & (copier->size - 1); }
    return &copier->pairs[i];
}
/* Lets `to` stand for `from`.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gcopier_put(opdi_gcopier *copier, const opdi_gvalue *from, opdi_gvalue *to) {
    if (2 * (copier->used + 1) > copier->size) {
        const opdi_gcopier old = *copier;
        copier->size = OPDI_MAX(64, 4 * old.size);
        copier->pairs = (opdi_gpair *)opdi_scope_alloc((size_t)copier->size * sizeof *copier->pairs);
        if (!copier->pairs) { return -1; }
        memset(copier->pairs, 0, (size_t)copier->size * sizeof *copier->pairs);
        for (int64_t i = 0; i < old.size; i++) {
            if (old.pairs[i].from) { *opdi_gcopier_slot(copier, old.pairs[i].from) = old.pairs[i]; }
        }
    }
    opdi_gpair *const slot = opdi_gcopier_slot(copier, from);
    copier->used += !slot->from;
    slot->from = from;
    slot->to = to;
    return 0;
}
/* Returns the value that stands for `from`, or NULL if there is none. */
OPDI_INTERNAL opdi_gvalue *opdi_gcopier_get(const opdi_gcopier *copier, const opdi_gvalue *from) {
    return copier->size ? opdi_gcopier_slot(copier, from)->to : NULL;
}
/* Returns the type of the new graph for a type of the old one: the same, if both graphs have one space of types.
   Returns NULL and sets an error if memory runs out, or if it is the type of a class of another script. */
static const opdi_gtype *opdi_gcopier_type(const opdi_gcopier *copier, const opdi_gtype *type) {
    const opdi_gtype *parts[64];
    if (copier->to->space == copier->from->space || (type->kind < OPDI_GTYPE_NSIMPLE && !type->klass)) { return type; }
    if (type->klass || type->kind == OPDI_GTYPE_CLASS || type->nparts > 64) {
        char text[200];
        opdi_text out = opdi_text_of(text, sizeof text);
        opdi_gtype_print(&out, type, false);
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the type %s belongs to another script", copier->who, text);
        return NULL;
    }
    for (int32_t i = 0; i < type->nparts; i++) {
        if (!(parts[i] = opdi_gcopier_type(copier, type->parts[i]))) { return NULL; }
    }
    return opdi_gtype_make(copier->to->space, type->kind, parts, type->nparts, NULL, type->word);
}
/* Makes a value of the new graph, with the type of `from`.  It stands for `from` from now on.  Returns NULL and sets an
   error if memory runs out. */
OPDI_INTERNAL opdi_gvalue *opdi_gcopier_value(opdi_gcopier *copier, const opdi_gvalue *from, opdi_gnode *node,
                                       opdi_gblock *block) {
    opd_graph *const graph = copier->to;
    const size_t dims = 2 * (size_t)from->ndim * sizeof *from->dims;
    opdi_gvalue *const value = opdi_gvalue_new(graph, node, from->tag);
    if (!value || opdi_gcopier_put(copier, from, value)) { return NULL; }
    value->block = block;
    value->dtype = from->dtype;
    value->ndim = from->ndim;
    value->backend = from->backend;
    value->index = from->index;
    value->requires_grad = from->requires_grad;
    value->nesting = from->nesting;
    if (from->dims) {
        if (!(value->dims = (int64_t *)opdi_graph_alloc(graph, dims))) { return NULL; }
        memcpy(value->dims, from->dims, dims);
    }
    if (from->type && !(value->type = opdi_gcopier_type(copier, from->type))) { return NULL; }
    if (copier->sizes && opdi_gvalue_open_copy(graph, from, value)) { return NULL; }
    if (!copier->names) { return value; }
    value->id = from->id;
    if (from->name && !(value->name = opdi_arena_copy(&graph->arena, from->name, strlen(from->name)))) { return NULL; }
    return value;
}
/* Copies the constant of a node; the new graph takes a reference.  Returns 0, or -1 if memory runs out. */
static int opdi_gcopier_constant(const opdi_gcopier *copier, const opdi_gnode *from, opdi_gnode *node) {
    if (from->kind == OPDI_GNODE_CONSTANT) { return opdi_gnode_keep(copier->to, node, &from->constant); }
    node->constant = from->constant;
    if (from->kind == OPDI_GNODE_BUILTIN && from->constant.tag == OPD_TAG_OBJECT) {        /* a type; see the parser */
        const opdi_gtype *const type = opdi_gcopier_type(copier, (const opdi_gtype *)from->constant.u.object);
        node->constant.u.object = (void *)(uintptr_t)type;
        return type ? 0 : -1;
    }
    return 0;
}
static int opdi_gcopier_text(const opdi_gcopier *copier, const char *from, const char **to) {
    return from && !(*to = opdi_arena_copy(&copier->to->arena, from, strlen(from))) ? -1 : 0;
}
/* Copies what `from` calls, and the texts of the node.  Returns 0, or -1 if memory runs out. */
static int opdi_gcopier_called(const opdi_gcopier *copier, const opdi_gnode *from, opdi_gnode *node) {
    node->op = from->op;
    node->function = from->function;
    node->user = from->user;
    node->builtin = from->builtin;
    node->called = from->called;
    if (from->builtin && from->builtin->run == opdi_builtin_unknown) {      /* it belongs to the old graph */
        opdi_builtin *const unknown = (opdi_builtin *)opdi_graph_alloc(copier->to, sizeof *unknown);
        if (!unknown) { return -1; }
        *unknown = *from->builtin;
        if (opdi_gcopier_text(copier, from->builtin->schema, &unknown->schema)) { return -1; }
        node->builtin = unknown;
    }
    return opdi_gcopier_text(copier, from->word, &node->word) || opdi_gcopier_text(copier, from->place, &node->place) ||
        opdi_gcopier_text(copier, from->attribute, &node->attribute) ? -1 : 0;
}
/* If values are copied into a graph that has nodes: gives the copies to[count] the names of the values from[count], as
   far as they are free.  Returns 0, or -1 if memory runs out. */
static int opdi_gcopier_rename(const opdi_gcopier *copier, opdi_gvalue *const *from, opdi_gvalue *const *to,
                               int32_t count) {
    int rc = 0;
    for (int32_t i = 0; i < count && copier->renames && rc == 0; i++) {
        rc = from[i]->name ? opdi_graph_name_new(copier->to, to[i], from[i]->name) : 0;
    }
    return rc;
}
static int opdi_gcopier_block(opdi_gcopier *copier, const opdi_gblock *from, opdi_gblock *block);
/* Copies a node and its blocks to the new graph's insertion point.  Returns the new node, or NULL and sets an error. */
OPDI_INTERNAL opdi_gnode *opdi_gcopier_node(opdi_gcopier *copier, const opdi_gnode *from) {
    opd_graph *const graph = copier->to;
    opdi_gnode *const node = opdi_gnode_new(graph, from->kind, from->nin, from->nout);
    if (!node || opdi_gcopier_called(copier, from, node)) { return NULL; }
    for (int32_t i = 0; i < from->nin; i++) {
        if ((node->in[i] = opdi_gcopier_get(copier, from->in[i])) != NULL) { continue; }
        char text[100];
        opdi_text name = opdi_text_of(text, sizeof text);
        opdi_gvalue_name(&name, from->in[i]);
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s is used, but is no input", copier->who, text);
        (void)opdi_graph_where(from);
        return NULL;
    }
    for (int32_t i = 0; i < from->nout; i++) {
        if (!(node->out[i] = opdi_gcopier_value(copier, from->out[i], node, NULL))) { return NULL; }
    }
    if (opdi_gcopier_constant(copier, from, node)) { return NULL; }
    if (node->function && node->function->flags & OPDI_GFUNCTION_COUNTED) {
        opdi_ref_up(&((opdi_guser *)(uintptr_t)node->user)->refs);
    }
    opdi_gnode_append(graph, node);
    if (opdi_gcopier_rename(copier, from->out, node->out, node->nout) ||
        (from->nblocks && opdi_gnode_blocks(graph, node, from->nblocks))) { return NULL; }
    for (int32_t i = 0; i < from->nblocks; i++) {
        if (opdi_gcopier_block(copier, &from->blocks[i], &node->blocks[i])) { return NULL; }
    }
    return node;
}
/* Copies the inputs, nodes and outputs of a block of a node.  Returns 0, or -1 and sets an error. */
static int opdi_gcopier_block(opdi_gcopier *copier, const opdi_gblock *from, opdi_gblock *block) {
    opd_graph *const graph = copier->to;
    if (opdi_stack_is_short(copier->who, OPDI_STACK_CALL)) { return -1; }
    block->inputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)from->ninputs * sizeof *block->inputs);
    opdi_gvalue **const outputs = (opdi_gvalue **)opdi_scope_alloc(((size_t)from->noutputs + 1) * sizeof *outputs);
    if (!block->inputs || !outputs) { return -1; }
    for (int32_t i = 0; i < from->ninputs; i++) {
        if (!(block->inputs[i] = opdi_gcopier_value(copier, from->inputs[i], NULL, block))) { return -1; }
        block->ninputs = i + 1;
    }
    const opdi_graph_insert_point was = opdi_gblock_enter(graph, block);
    int rc = opdi_gcopier_rename(copier, from->inputs, block->inputs, block->ninputs);
    for (const opdi_gnode *node = from->first; node && rc == 0; node = node->next) {
        rc = opdi_gcopier_node(copier, node) ? 0 : -1;
    }
    for (int32_t i = 0; i < from->noutputs && rc == 0; i++) {
        outputs[i] = opdi_gcopier_get(copier, from->outputs[i]);
    }
    return opdi_gblock_leave(graph, block, was, outputs, rc ? 0 : from->noutputs) ? -1 : rc;
}
/* Lets the new graph use the types of the old one, if it has none itself, and keeps alive what the functions of the old
   graph belong to.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gcopier_begin(opdi_gcopier *copier, const opd_graph *from, opd_graph *to, const char *who) {
    memset(copier, 0, sizeof *copier);
    copier->from = from;
    copier->to = to;
    copier->who = who;
    if (from->space && !to->space) { opdi_graph_share(to, from->space); }
    const struct opd_program *const program = from->program ? from->program : from->kept;
    if (!program || program == to->kept || program == to->program) { return 0; }
    if (to->kept || to->program) {
        for (const opdi_gnode *node = from->body.first; node; node = opdi_gnode_after(node)) {
            if (node->kind == OPDI_GNODE_FUNCTION && !(node->function->flags & OPDI_GFUNCTION_COUNTED)) {
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graphs belong to two programs, and %s cannot leave its "
                                "program", who, node->function->name);
            }
        }
        return 0;
    }
    to->home = from->home;
    to->kept = to->home->keep(program);
    return 0;
}

/* Adds a node that calls a counted function with data `user` (an opdi_guser) on the inputs of a part.  Its results have
   the types of the part's outputs.  Returns the node, or NULL and sets an error. */
OPD_UNUSED OPDI_INTERNAL opdi_gnode *opdi_graph_function_node(opd_graph *graph, const opdi_gfunction *function,
                                                              const void *user, const opd_part *part) {
    opdi_gcopier copier;
    opdi_gnode *const node = opdi_gnode_new(graph, OPDI_GNODE_FUNCTION, part->ninputs, part->noutputs);
    memset(&copier, 0, sizeof copier);
    copier.from = copier.to = graph;
    if (!node) { return NULL; }
    opd_scope scope = opd_scope_open();
    bool made = true;
    for (int i = 0; i < part->ninputs; i++) { node->in[i] = part->inputs[i]; }
    for (int i = 0; i < part->noutputs && made; i++) {
        made = (node->out[i] = opdi_gcopier_value(&copier, part->outputs[i], node, NULL)) != NULL;
    }
    opd_scope_close(&scope);
    if (!made) { return NULL; }
    node->function = function;
    node->user = user;
    opdi_gnode_append(graph, node);
    return node;
}

//== copies ============================================================================================================

/* Copies a graph.  On failure, returns NULL and sets an error. */
static opd_graph *opdi_graph_copy_to(const opd_graph *graph, opd_graph *copy) {
    opdi_gcopier copier;
    if (opdi_gcopier_begin(&copier, graph, copy, "opd_graph_copy") ||
        opdi_graph_reserve_inputs(copy, graph->ninputs)) { return NULL; }
    copier.names = true;
    copier.sizes = graph->sizes != NULL;
    if (copier.sizes && opdi_gsizes_copy(graph, copy)) { return NULL; }
    for (int32_t i = 0; i < graph->ninputs; i++) {
        if (!(copy->inputs[i] = opdi_gcopier_value(&copier, graph->inputs[i], NULL, NULL))) { return NULL; }
        copy->ninputs = i + 1;
    }
    for (const opdi_gnode *node = graph->body.first; node; node = node->next) {
        if (!opdi_gcopier_node(&copier, node)) { return NULL; }
    }
    if (!(copy->outputs = (opdi_gvalue **)opdi_graph_alloc(copy, (size_t)graph->noutputs * sizeof *copy->outputs))) {
        return NULL;
    }
    for (int32_t i = 0; i < graph->noutputs; i++) { copy->outputs[i] = opdi_gcopier_get(&copier, graph->outputs[i]); }
    copy->noutputs = graph->noutputs;
    copy->result = graph->result ? opdi_gcopier_get(&copier, graph->result) : NULL;
    copy->next_id = graph->next_id;
    return copy;
}
opd_graph *opd_graph_copy(const opd_graph *graph) {
    if (!opd_ok()) { return NULL; }
    if (!graph) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_copy: the graph is NULL");
        return NULL;
    }
    opd_scope scope = opd_scope_open();
    opd_graph *const made = opdi_graph_new(), *const copy = made ? opdi_graph_copy_to(graph, made) : NULL;
    opd_scope_close(&scope);
    if (!copy) { opd_graph_free(made); }
    return copy;
}

//== inlining ==========================================================================================================

/* Copies the nodes of `inner` to the insertion point of `graph`.  The values `args` stand for its inputs.  Writes its
   outputs to `results`, at most `cap`.  Returns the number of outputs, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_inline(opd_graph *graph, const opd_graph *inner, opdi_gvalue *const *args,
                                    opdi_gvalue **results, int cap) {
    opdi_gcopier copier;
    if (opdi_gcopier_begin(&copier, inner, graph, "opd_graph_inline")) { return -1; }
    copier.renames = true;
    if (inner->space && !opdi_graph_space(graph)) { return -1; }
    for (int32_t i = 0; i < inner->ninputs; i++) {
        if (opdi_gcopier_put(&copier, inner->inputs[i], args[i])) { return -1; }
    }
    const opdi_gnode *const last = inner->result && (inner->noutputs != 1 || inner->outputs[0] != inner->result)
        ? inner->result->node : NULL;             /* makes a tuple or list of the outputs */
    for (const opdi_gnode *node = inner->body.first; node; node = node->next) {
        if (node != last && !opdi_gcopier_node(&copier, node)) { return -1; }
    }
    for (int32_t i = 0; i < inner->noutputs && i < cap; i++) {
        results[i] = opdi_gcopier_get(&copier, inner->outputs[i]);
    }
    return inner->noutputs;
}
/* Sets the results of a call that has failed.  Returns -1. */
static int opdi_graph_no_results(opdi_gvalue **results, int cap) {
    for (int i = 0; results && i < cap; i++) { results[i] = NULL; }
    return -1;
}
int opd_graph_inline(opd_graph *graph, const opd_graph *inner, opd_graph_value *const *args, int nargs,
                     opd_graph_value **results, int cap) {
    opdi_graph_builder build;
    int count = -1;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_inline")) { return opdi_graph_no_results(results, cap); }
    if (!inner || inner == graph || (cap > 0 && !results)) {
        (void)opdi_graph_parse_fail(&build.parser, !inner ? "the inner graph is NULL" : inner == graph
                                    ? "a graph cannot be inlined into itself: copy it with opd_graph_copy"
                                    : "the pointer to the results is NULL");
    } else if (nargs != inner->ninputs) {
        (void)opdi_graph_parse_fail(&build.parser, "the inner graph has %d inputs, but %d arguments were given",
                                    (int)inner->ninputs, nargs);
    } else if (opdi_graph_build_values(&build, args, nargs, false) == 0 &&
               opdi_graph_build_types(&build, inner, args) == 0) {
        count = opdi_graph_inline(graph, inner, args, results, cap);
    }
    return opdi_graph_build_end(&build, count >= 0) == 0 ? count : opdi_graph_no_results(results, cap);
}

//== extracting ========================================================================================================
//
//  A part of a graph begins at given values and ends at others.  It has the nodes from which the outputs are computed,
//  and the nodes between that write memory of the values of the part.

/* The nodes from which a part is chosen: the nodes of the block that has the outputs, and the nodes in front of this
   block in the blocks around it. */
typedef struct opdi_gpart {
    opd_graph *graph;
    opdi_gnode **nodes;                           /* [count] in the order of the text */
    int64_t count;
    opdi_gvalue *const *inputs, *const *outputs;
    int ninputs, noutputs;
    const opd_part *of;                           /* the part that has the nodes, none of which writes; or NULL */
} opdi_gpart;

/* Writes the nodes of a block to `nodes`, and before them the nodes in front of the block, in the blocks around it.  If
   `nodes` is NULL, only counts them.  Returns their number. */
static int64_t opdi_gpart_list(const opdi_gblock *block, opdi_gnode **nodes) {
    int64_t count = 0;
    for (int depth = opdi_gblock_depth(block); depth >= 0; depth--) {      /* from the graph's body inwards */
        const opdi_gnode *end = NULL;
        const opdi_gblock *at = block;
        for (int i = 0; i < depth; i++) { end = at->owner, at = end->block; }
        for (opdi_gnode *node = at->first; node && node != end; node = node->next, count++) {
            if (nodes) { nodes[count] = node; }
        }
    }
    return count;
}
/* Marks the nodes from which marked nodes are computed, as far back as the inputs of the part. */
static void opdi_gpart_mark_needed(const opdi_gpart *part, const opdi_gcopier *copier) {
    for (int64_t at = part->count - 1; at >= 0; at--) {
        const opdi_gnode *const node = part->nodes[at], *const past = opdi_gnode_past(node);
        if (node->mark != part->graph->mark) { continue; }
        for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
            for (int32_t i = 0; i < inner->nin; i++) {
                opdi_gnode *const from = inner->in[i]->node;
                if (from && !opdi_gcopier_get(copier, inner->in[i])) { from->mark = part->graph->mark; }
            }
            for (int32_t k = 0; k < inner->nblocks; k++) {
                for (int32_t i = 0; i < inner->blocks[k].noutputs; i++) {
                    const opdi_gvalue *const value = inner->blocks[k].outputs[i];
                    if (value->node && !opdi_gcopier_get(copier, value)) { value->node->mark = part->graph->mark; }
                }
            }
        }
    }
}
static void opdi_gvalues_mark_roots(opdi_gvalue *const *values, int32_t count, uint64_t mark) {
    for (int32_t i = 0; i < count; i++) { opdi_gvalue_root(values[i])->mark = mark; }
}
/* Returns whether a node writes memory of a set that is marked. */
static bool opdi_gnode_writes_marked(const opdi_gnode *node, uint64_t mark) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
        for (int32_t i = 0; i < inner->nin; i++) {
            const opdi_gvalue *const root = opdi_gvalue_root(inner->in[i]);
            if (root->mark == mark && opdi_gnode_writes_root(inner, root)) { return true; }
        }
    }
    return false;
}
/* Marks the nodes that write memory of values of the part, after these values were computed.  Returns whether there are
   nodes that were not marked before. */
static bool opdi_gpart_mark_writes(const opdi_gpart *part) {
    const uint64_t mark = part->graph->mark;
    bool found = false;
    for (int i = 0; i < part->ninputs; i++) {
        if (!part->inputs[i]->node) { opdi_gvalue_root(part->inputs[i])->mark = mark; }
    }
    for (int64_t at = 0; at < part->count; at++) {
        opdi_gnode *const node = part->nodes[at];
        if (node->mark != mark && opdi_gnode_stays(node) && opdi_gnode_writes_marked(node, mark)) {
            node->mark = mark;
            found = true;
        }
        if (node->mark == mark) {
            opdi_gvalues_mark_roots(node->in, node->nin, mark);
            opdi_gvalues_mark_roots(node->out, node->nout, mark);
        }
        for (int i = 0; i < part->ninputs; i++) {
            if (part->inputs[i]->node == node) { opdi_gvalue_root(part->inputs[i])->mark = mark; }
        }
    }
    return found;
}
/* Marks the nodes of the part.  Returns 0, or -1 if memory runs out. */
static int opdi_gpart_mark(const opdi_gpart *part, const opdi_gcopier *copier) {
    opd_graph *const graph = part->graph;
    const bool writes = !part->of && opdi_graph_writes(graph);
    graph->mark++;
    for (int i = 0; i < part->noutputs; i++) {
        opdi_gnode *const node = part->outputs[i]->node;
        if (node && !opdi_gcopier_get(copier, part->outputs[i])) { node->mark = graph->mark; }
    }
    if (writes && opdi_graph_alias(graph, false)) { return -1; }
    do { opdi_gpart_mark_needed(part, copier); } while (writes && opdi_gpart_mark_writes(part));
    return 0;
}
/* In a graph with open sizes: computes the numbers that follow from them anew, from the inputs of the part, as far as
   these have the sizes.  Returns 0, or -1 and sets an error. */
static int opdi_gpart_numbers(const opdi_gpart *part, opdi_gcopier *copier) {
    opdi_gmaker maker;
    int rc = 0;
    copier->to->next_id = OPDI_MAX(copier->to->next_id, part->graph->next_id);        /* copies keep their numbers */
    opdi_gmaker_begin(&maker, copier->to);
    for (opdi_gnode *node = part->graph->body.first; node && rc == 0; node = node->next) {
        opdi_gvalue *const value = node->nout == 1 && node->out[0]->tag == OPD_TAG_INT ? node->out[0] : NULL;
        const opdi_gexpr *const expr = value && value->open ? opdi_gexpr_copy(copier->to, value->open[0]) : NULL;
        const uint32_t names = opdi_gexpr_names(expr);
        bool known = names != 0;
        if (!opd_ok()) { rc = -1; }
        for (int32_t i = 0; i < OPDI_OPEN_NAMES && known; i++) {
            known = !(names >> i & 1) || opdi_gsize_follows(copier->to, i);
        }
        if (!known || rc || opdi_gcopier_get(copier, value)) { continue; }
        opdi_gvalue *const made = opdi_gmaker_value(&maker, expr);
        rc = made && opdi_gcopier_put(copier, value, made) == 0 ? 0 : -1;
    }
    opdi_gmaker_free(&maker);
    copier->to->at = NULL;
    return rc;
}
/* Makes the inputs, nodes and outputs of the new graph.  Returns 0, or -1 and sets an error. */
static int opdi_gpart_copy(opdi_gpart *part, opdi_gcopier *copier) {
    opd_graph *const graph = copier->to;
    opdi_gvalue **const outputs = (opdi_gvalue **)opdi_scope_alloc(((size_t)part->noutputs + 1) * sizeof *outputs);
    if (!outputs || opdi_graph_reserve_inputs(graph, part->ninputs)) { return -1; }
    for (int i = 0; i < part->ninputs; i++) {
        if (opdi_gcopier_get(copier, part->inputs[i])) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: input %d is given twice", copier->who, i);
        }
        if (!(graph->inputs[i] = opdi_gcopier_value(copier, part->inputs[i], NULL, NULL))) { return -1; }
        graph->ninputs = i + 1;
    }
    if (copier->sizes && opdi_gpart_numbers(part, copier)) { return -1; }
    if (opdi_gpart_mark(part, copier)) { return -1; }
    for (int64_t at = 0; at < part->count; at++) {
        if (part->nodes[at]->mark == part->graph->mark && !opdi_gcopier_node(copier, part->nodes[at])) { return -1; }
    }
    for (int i = 0; i < part->noutputs; i++) {
        if (!(outputs[i] = opdi_gcopier_get(copier, part->outputs[i]))) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: output %d is an input of the graph, but no input of the part",
                            copier->who, i);
        }
    }
    graph->next_id = OPDI_MAX(graph->next_id, part->graph->next_id);
    return opdi_append_outputs(graph, outputs, part->noutputs, false);
}
/* Adds a node of a part to the list, after the constants and lists that it uses.  With `nodes` NULL, only counts
   them. */
static void opdi_gpart_add(opdi_gpart *part, opdi_gnode *node) {
    if (node->mark == part->graph->mark) { return; }
    node->mark = part->graph->mark;
    for (int32_t i = 0; i < node->nin; i++) {
        opdi_gnode *const from = node->in[i]->node;
        if (from && ((from->kind == OPDI_GNODE_CONSTANT && !from->written) || from->kind == OPDI_GNODE_LIST)) {
            opdi_gpart_add(part, from);
        }
    }
    if (part->nodes) { part->nodes[part->count] = node; }
    part->count++;
}
static void opdi_gpart_add_all(opdi_gpart *part) {
    part->count = 0;
    part->graph->mark++;
    for (int i = 0; i < part->of->nnodes; i++) {
        if (!part->of->nodes[i]->gone) { opdi_gpart_add(part, part->of->nodes[i]); }
    }
}
/* Finds the block that has the innermost output, and lists the nodes.  Returns 0, or -1 and sets an error. */
static int opdi_gpart_begin(opdi_gpart *part) {
    const opdi_gblock *block = &part->graph->body;
    for (int i = 0; i < part->noutputs && !part->of; i++) {
        const opdi_gblock *const other = opdi_gvalue_block(part->graph, part->outputs[i]);
        if (opdi_graph_sees(part->graph, block, NULL, other, NULL)) { block = other; }
        else if (!opdi_graph_sees(part->graph, other, NULL, block, NULL)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_extract: the outputs are in different blocks");
        }
    }
    if (part->of) { opdi_gpart_add_all(part); } else { part->count = opdi_gpart_list(block, NULL); }
    part->nodes = (opdi_gnode **)opdi_scope_alloc(((size_t)part->count + 1) * sizeof *part->nodes);
    if (!part->nodes) { return -1; }
    if (part->of) { opdi_gpart_add_all(part); } else { (void)opdi_gpart_list(block, part->nodes); }
    return 0;
}
static opd_graph *opdi_graph_extract(opdi_gpart *part) {
    opdi_gcopier copier;
    opd_graph *const made = opdi_gpart_begin(part) ? NULL : opdi_graph_new();
    if (!made) { return NULL; }
    int rc = opdi_gcopier_begin(&copier, part->graph, made,
                                part->of ? "opd_graph_extract_part" : "opd_graph_extract");
    copier.names = true;
    copier.sizes = part->graph->sizes != NULL;
    if (rc == 0 && copier.sizes) { rc = opdi_gsizes_copy(part->graph, made); }
    if (rc == 0) { rc = opdi_gpart_copy(part, &copier); }
    if (rc == 0 && copier.sizes) { rc = opd_graph_dce(made) < 0 ? -1 : 0; }
    if (rc) { opd_graph_free(made); }
    return rc ? NULL : made;
}
static opd_graph *opdi_graph_extract_checked(opd_graph *graph, opd_graph_value *const *inputs, int ninputs,
                                             opd_graph_value *const *outputs, int noutputs, const opd_part *of) {
    const char *const who = of ? "opd_graph_extract_part" : "opd_graph_extract";
    opdi_gpart part = {graph, NULL, 0, inputs, outputs, ninputs, noutputs, of};
    if (ninputs < 0 || noutputs < 1 || (ninputs && !inputs) || !outputs) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, noutputs < 1 || !outputs
                       ? of ? "%s: the part has no outputs: no other node uses its results" : "%s: there are no outputs"
                       : "%s: the inputs are NULL", who);
        return NULL;
    }
    for (int i = 0; i < ninputs; i++) { if (opdi_graph_owns(graph, inputs[i], who, "an input")) { return NULL; } }
    for (int i = 0; i < noutputs; i++) { if (opdi_graph_owns(graph, outputs[i], who, "an output")) { return NULL; } }
    opd_scope scope = opd_scope_open();
    opd_graph *const made = opdi_graph_extract(&part);
    opd_scope_close(&scope);
    return made;
}
opd_graph *opd_graph_extract(opd_graph *graph, opd_graph_value *const *inputs, int ninputs,
                             opd_graph_value *const *outputs, int noutputs) {
    return opdi_graph_extract_checked(graph, inputs, ninputs, outputs, noutputs, NULL);
}
opd_graph *opd_graph_extract_part(opd_graph *graph, const opd_part *part) {
    if (part) {
        return opdi_graph_extract_checked(graph, part->inputs, part->ninputs, part->outputs, part->noutputs, part);
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_extract_part: the part is NULL");
    return NULL;
}
