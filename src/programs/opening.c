#include "programs.h"

//== conditions and loops of programs as nodes with blocks =============================================================
//
//  In a program's graph, a condition or loop is a call of a function whose data has graphs.  Here it becomes prim::If
//  or prim::Loop, in the form in which opd_cond, opd_while, opd_scan and opd_map are recorded, so that passes reach its
//  nodes.  Calls that only run a graph (checkpoints, hints) become the nodes of this graph.

/* A node that is being opened, and the nodes that take its place, which are added in front of it. */
typedef struct opdi_opening {
    opd_graph *graph;
    const opdi_gnode *node;
    const opdi_program_region *region;
    opdi_gvalue **args;          /* the arguments of the node's graphs; the last one is the device */
    opdi_gvalue **outputs;       /* the outputs of the graph that was copied last */
    opdi_gvalue **results;       /* the values that take the place of the node's results */
} opdi_opening;

static bool opdi_opening_is_bool(const opdi_gvalue *value) {
    return value->tag == OPD_TAG_TENSOR || value->tag == OPD_TAG_BOOL;
}
/* Returns whether graph `which` of a node takes the node's arguments, from number `first` on, and returns `noutputs`
   values, of which the first `count` are of the kinds of like[count]. */
static bool opdi_opening_fits(const opdi_gnode *node, int which, int first, int noutputs, opdi_gvalue *const *like,
                              int count) {
    const opdi_program_region *const region = (const opdi_program_region *)node->user;
    const opd_graph *const graph = region->graphs[which];
    bool fits = graph->ninputs == node->nin - first - !region->wants_device[which] && graph->noutputs == noutputs;
    for (int32_t i = 0; i < graph->ninputs && fits; i++) { fits = graph->inputs[i]->tag == node->in[first + i]->tag; }
    for (int i = 0; i < count && fits; i++) { fits = graph->outputs[i]->tag == like[i]->tag; }
    return fits;
}
/* Returns whether a graph has no graphs in its nodes. */
static bool opdi_opening_is_flat(const opd_graph *graph) {
    for (const opdi_gnode *node = graph->body.first; node; node = node->next) {
        if (node->kind == OPDI_GNODE_FUNCTION && node->user) { return false; }
    }
    return true;
}

/* Copies the nodes of graph `which`, with the arguments from number `first` on, to the insertion point.  Sets
   opening->outputs.  Returns 0, or -1 and sets an error. */
static int opdi_opening_copy(const opdi_opening *opening, int which, int first) {
    const opd_graph *const inner = opening->region->graphs[which];
    return opdi_graph_inline(opening->graph, inner, opening->args + first, opening->outputs, inner->noutputs) < 0
        ? -1 : 0;
}
static opdi_gvalue *opdi_opening_builtin(const opdi_opening *opening, const char *name, opdi_gvalue *first,
                                         opdi_gvalue *second, const opdi_gtype *type) {
    opdi_gvalue *in[2] = {NULL, NULL};
    in[0] = first;
    in[1] = second;
    const opdi_gnode *const node = first && type ? opdi_append_builtin(opening->graph, name, in, second ? 2 : 1, &type,
                                                                       1, opening->node->place) : NULL;
    return node ? node->out[0] : NULL;
}
/* Returns the truth of a predicate, a tensor or bool; or NULL if memory runs out. */
static opdi_gvalue *opdi_opening_truth(const opdi_opening *opening, opdi_gvalue *value) {
    return value->tag == OPD_TAG_BOOL ? value
        : opdi_opening_builtin(opening, "aten::Bool.Tensor", value, NULL, opdi_gtype_simple(OPDI_GTYPE_BOOL));
}
/* Gives `made` results like the first `count` of the node, and makes them opening->results.  Returns 0, or -1 if memory
   runs out. */
static int opdi_opening_results(const opdi_opening *opening, opdi_gnode *made, int count) {
    opdi_gcopier copier;
    memset(&copier, 0, sizeof copier);
    copier.from = copier.to = opening->graph;
    made->out = (opdi_gvalue **)opdi_graph_alloc(opening->graph, (size_t)count * sizeof *made->out);
    for (int i = 0; i < count && made->out; i++) {
        opdi_gvalue *const value = opdi_gcopier_value(&copier, opening->node->out[i], made, NULL);
        if (!value) { return -1; }
        made->out[made->nout++] = opening->results[i] = value;
    }
    return made->out ? 0 : -1;
}
static int opdi_opening_cond(const opdi_opening *opening) {
    opd_graph *const graph = opening->graph;
    opdi_gvalue *const holds = opdi_opening_truth(opening, opening->args[0]);
    opdi_gnode *const made = holds ? opdi_append_if(graph, holds, opening->node->place) : NULL;
    for (int which = 0; which < 2; which++) {
        if (!made) { return -1; }
        const opdi_graph_insert_point was = opdi_gblock_enter(graph, &made->blocks[which]);
        const int rc = opdi_opening_copy(opening, which, 1);
        if (opdi_gblock_leave(graph, &made->blocks[which], was, opening->outputs, rc ? 0 : opening->node->nout) || rc) {
            return -1;
        }
    }
    return opdi_opening_results(opening, made, opening->node->nout);
}
/* Adds a loop with `count` carried values, the first arguments, which become the inputs of its block, the insertion
   point.  Returns the node, or NULL if memory runs out. */
static opdi_gnode *opdi_opening_loop(const opdi_opening *opening, opdi_gvalue *most, opdi_gvalue *holds, int count,
                                     opdi_graph_insert_point *was) {
    opdi_gnode *const made = most && holds
        ? opdi_append_loop(opening->graph, most, holds, opening->args, count, opening->node->place) : NULL;
    for (int i = 0; i < count && made; i++) {
        opdi_gvalue *const input = made->blocks[0].inputs[1 + i];
        if (input->tag == OPD_TAG_TENSOR) { opdi_gvalue_typed(input, opdi_gtype_simple(OPDI_GTYPE_TENSOR)); }
        opening->args[i] = input;
    }
    if (made) { *was = opdi_gblock_enter(opening->graph, &made->blocks[0]); }
    return made;
}
static int opdi_opening_while(const opdi_opening *opening) {
    opd_graph *const graph = opening->graph;
    const int count = opening->node->nout;
    opdi_gvalue **const next = (opdi_gvalue **)opdi_scope_alloc(((size_t)count + 1) * sizeof *next);
    opdi_graph_insert_point was;
    if (!next || opdi_opening_copy(opening, 0, 0)) { return -1; }
    opdi_gvalue *const most = opd_graph_constant(graph, opd_value_int(INT64_MAX));
    opdi_gnode *const made = opdi_opening_loop(opening, most, opdi_opening_truth(opening, opening->outputs[0]), count,
                                               &was);
    if (!made) { return -1; }
    int rc = opdi_opening_copy(opening, 1, 0);
    for (int i = 0; i < count && rc == 0; i++) { opening->args[i] = next[1 + i] = opening->outputs[i]; }
    if (rc == 0) { rc = opdi_opening_copy(opening, 0, 0); }
    if (rc == 0) { rc = (next[0] = opdi_opening_truth(opening, opening->outputs[0])) ? 0 : -1; }
    if (opdi_gblock_leave(graph, &made->blocks[0], was, next, rc ? 0 : count + 1) || rc) { return -1; }
    return opdi_opening_results(opening, made, count);
}
/* Adds a call of an operator with the values args[nargs].  Returns its result, or NULL and sets an error. */
static opdi_gvalue *opdi_opening_op(const opdi_opening *opening, const char *name, opdi_gvalue *const *args,
                                    int nargs) {
    opd_op *const op = opd_find(name);
    opdi_gvalue *result = NULL;
    if (!op || opd_graph_call_op(opening->graph, op, args, nargs, &result, 1) < 0) { return NULL; }
    result->node->place = opening->node->place;
    return result;
}
/* Fills the block of a loop over slices: takes the slices, copies the graph, and appends the results to lists.  Returns
   0, or -1 and sets an error. */
static int opdi_opening_round(const opdi_opening *opening, opdi_gvalue *at, opdi_gvalue *const *lists, int nlists) {
    const int first = opening->region->nfirst;
    opdi_gvalue *slice[3];
    slice[1] = opd_graph_constant(opening->graph, opd_value_int(0));
    slice[2] = at;
    for (int i = first; i < first + opening->region->nsliced && slice[1]; i++) {
        slice[0] = opening->args[i];
        if (!(opening->args[i] = opdi_opening_op(opening, OPDI_NAME(select_int, "aten::select.int"), slice, 3))) {
            return -1;
        }
    }
    if (!slice[1] || opdi_opening_copy(opening, 0, 0)) { return -1; }
    for (int i = 0; i < nlists; i++) {
        if (!opdi_opening_builtin(opening, "aten::append.t", lists[i], opening->outputs[first + i], lists[i]->type)) {
            return -1;
        }
    }
    return 0;
}
static int opdi_opening_scan(const opdi_opening *opening) {
    opd_graph *const graph = opening->graph;
    const int first = opening->region->nfirst, nlists = opening->node->nout - first;
    opdi_gvalue **const lists = (opdi_gvalue **)opdi_scope_alloc(((size_t)nlists + 1) * sizeof *lists);
    opdi_gvalue **const next = (opdi_gvalue **)opdi_scope_alloc(((size_t)first + 1) * sizeof *next);
    opdi_gvalue *const always = opd_graph_constant(graph, opd_value_bool(true)), *pair[2];
    opdi_graph_insert_point was;
    pair[0] = opening->args[first];
    pair[1] = opd_graph_constant(graph, opd_value_int(0));
    if (!lists || !next || !always || !pair[1]) { return -1; }
    opdi_gvalue *const length = opdi_opening_op(opening, OPDI_NAME(size_int, "aten::size.int"), pair, 2);
    for (int i = 0; i < nlists; i++) {
        lists[i] = opdi_append_list(graph, opdi_gtype_simple(OPDI_GTYPE_TENSOR), NULL, 0, opening->node->place);
        if (!lists[i]) { return -1; }
    }
    opdi_gnode *const made = opdi_opening_loop(opening, length, always, first, &was);
    if (!made) { return -1; }
    const int rc = opdi_opening_round(opening, made->blocks[0].inputs[0], lists, nlists);
    next[0] = always;
    for (int i = 0; i < first && rc == 0; i++) { next[1 + i] = opening->outputs[i]; }
    if (opdi_gblock_leave(graph, &made->blocks[0], was, next, rc ? 0 : first + 1) || rc ||
        opdi_opening_results(opening, made, first)) { return -1; }
    for (int i = 0; i < nlists; i++) {
        pair[0] = lists[i];
        if (!(opening->results[first + i] = opdi_opening_op(opening, OPDI_NAME(stack, "aten::stack"), pair, 2))) {
            return -1;
        }
    }
    return 0;
}
static int opdi_opening_wrap(const opdi_opening *opening) {
    if (opdi_opening_copy(opening, 0, 0)) { return -1; }
    memcpy(opening->results, opening->outputs, (size_t)opening->node->nout * sizeof *opening->results);
    return 0;
}
/* Returns the function that opens a node; or NULL if it stays as it is: it is no condition or loop, sets a mode, or its
   graphs do not fit.  The graph of a loop's condition is copied twice, so it must not have graphs itself. */
typedef int (*opdi_opening_fn)(const opdi_opening *opening);
static opdi_opening_fn opdi_opening_of(const opdi_gnode *node) {
    const opdi_region_kind *const kind = node->kind == OPDI_GNODE_FUNCTION ? opdi_region_of(node) : NULL;
    const opdi_program_region *const region = kind ? (const opdi_program_region *)node->user : NULL;
    const char *const name = kind ? kind->function.name : "";
    const int nout = node->nout;
    if (!kind || kind->modes || (kind->lists > 1 && region->nfirst + region->nsliced >= node->nin)) { return NULL; }
    if (strcmp(name, "cond") == 0) {
        return opdi_opening_is_bool(node->in[0]) && opdi_opening_fits(node, 0, 1, nout, node->out, nout) &&
            opdi_opening_fits(node, 1, 1, nout, node->out, nout) ? opdi_opening_cond : NULL;
    }
    if (strcmp(name, "while_loop") == 0) {
        return nout == region->nfirst && opdi_opening_fits(node, 0, 0, 1, NULL, 0) &&
            opdi_opening_is_bool(region->graphs[0]->outputs[0]) && opdi_opening_is_flat(region->graphs[0]) &&
            opdi_opening_fits(node, 1, 0, nout, node->in, nout) ? opdi_opening_while : NULL;
    }
    if (strcmp(name, "scan") == 0 || strcmp(name, "map_impl") == 0) {
        bool fits = region->nsliced > 0 && nout >= region->nfirst &&
            opdi_opening_fits(node, 0, 0, nout, node->in, region->nfirst);
        for (int i = region->nfirst; i < nout && fits; i++) {
            fits = region->graphs[0]->outputs[i]->tag == OPD_TAG_TENSOR;
        }
        for (int i = 0; i < region->nsliced && fits; i++) {
            fits = node->in[region->nfirst + i]->tag == OPD_TAG_TENSOR;
        }
        return fits ? opdi_opening_scan : NULL;
    }
    return kind->graphs == 1 && strcmp(name, "associative_scan") != 0 &&
        opdi_opening_fits(node, 0, 0, nout, node->out, nout) ? opdi_opening_wrap : NULL;
}
/* Opens a node with `fn`, and removes it.  Returns 0, or -1 and sets an error. */
static int opdi_opening_run(opd_graph *graph, opdi_gnode *node, opdi_opening_fn fn) {
    opdi_opening opening = {graph, node, (const opdi_program_region *)node->user, NULL, NULL, NULL};
    const size_t outputs = (size_t)OPDI_MAX(node->nout, 1) + 1;
    opening.args = (opdi_gvalue **)opdi_scope_alloc(((size_t)node->nin + 1) * sizeof *opening.args);
    opening.outputs = (opdi_gvalue **)opdi_scope_alloc(outputs * sizeof *opening.outputs);
    opening.results = (opdi_gvalue **)opdi_scope_alloc(outputs * sizeof *opening.results);
    if (!opening.args || !opening.outputs || !opening.results || !opdi_graph_space(graph)) { return -1; }
    memcpy(opening.args, node->in, (size_t)node->nin * sizeof *opening.args);
    graph->into = node->block->owner ? node->block : NULL;
    graph->at = node;
    int rc = fn(&opening);
    graph->into = NULL;
    graph->at = NULL;
    for (int32_t i = 0; i < node->nout && rc == 0; i++) {
        const char *const name = node->out[i]->name;
        opdi_gvalue *const by = opening.results[i];
        if (opd_graph_replace(graph, node->out[i], by) < 0) { return -1; }
        if (!name || by->name || by->node == NULL) { continue; }
        node->out[i]->name = NULL;
        opdi_graph_forget_names(graph);
        rc = opdi_graph_name_new(graph, by, name);
    }
    if (rc == 0) { opdi_gnode_remove(graph, node); }
    return rc;
}
opd_graph *opd_program_open_graph(const opd_program *program) {
    if (!opd_ok()) { return NULL; }
    if (!program) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_program_open_graph: the program is NULL");
        return NULL;
    }
    opd_graph *const graph = opd_graph_copy(opd_program_graph(program));
    opdi_gnode *node = graph ? graph->body.first : NULL;
    int rc = graph ? 0 : -1;
    while (node && rc == 0) {
        const opdi_opening_fn fn = opdi_opening_of(node);
        opdi_gnode *const before = node->prev;
        opdi_gblock *const block = node->block;
        if (!fn) {
            node = opdi_gnode_after(node);
            continue;
        }
        opd_scope scope = opd_scope_open();
        rc = opdi_opening_run(graph, node, fn);
        opd_scope_close(&scope);
        node = before ? before : block->first;    /* so the new nodes are visited, too */
    }
    if (rc == 0) { rc = opd_graph_dce(graph) < 0 ? -1 : 0; }
    if (rc == 0) { return graph; }
    opd_graph_free(graph);
    return NULL;
}
