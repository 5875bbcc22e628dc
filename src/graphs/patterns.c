#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>graph_parts  matches of patterns, parts for other compilers, and dtypes and sizes of a changed graph
//
//  Graphs in which many nodes are changed at once.  Each change is made by the functions of the room >>graph_nodes.
//----------------------------------------------------------------------------------------------------------------------

//== patterns ==========================================================================================================
//
//  A pattern is a graph, too.  Its inputs stand for any value of the right type; each other value stands for the result
//  of the same call.  A match begins at the node of the pattern's first output and goes from results to arguments.
//  Values inside a match must have no other users, because their nodes are removed.

/* A match, or an attempt to find one. */
struct opd_match {
    opd_graph *graph;
    const opd_graph *pattern;
    bool ignore_constants;
    opdi_gcopier table;                           /* the values of the graph at the places of the pattern's values */
    const opdi_gvalue **bound;                    /* [nbound] the values of the pattern that are in the table */
    opdi_gnode **nodes;                           /* [nnodes] the nodes of the match */
    const opdi_gnode **its;                       /* [nnodes] the nodes of the pattern for them */
    opdi_gvalue **inputs, **outputs;              /* the values at the places of the pattern's inputs and outputs */
    int32_t nnodes, nbound;
    int32_t born;                                 /* nodes that are made for the match have at least this number */
    bool writes;                                  /* true: a node of the graph may write into tensors */
    bool aliased;                                 /* true: the sets of values that share memory are known */
};

//== finding ===========================================================================================================

static bool opdi_gmatch_value(opd_match *match, const opdi_gvalue *its, opdi_gvalue *value);

/* Lets `value` stand at the place of the pattern's value `its`.  Returns false if memory runs out. */
static bool opdi_gmatch_bind(opd_match *match, const opdi_gvalue *its, opdi_gvalue *value) {
    if (opdi_gcopier_put(&match->table, its, value)) { return false; }
    match->bound[match->nbound++] = its;
    return true;
}
/* Takes back the match, down to its first `nodes` nodes and `bound` values. */
static void opdi_gmatch_undo(opd_match *match, int32_t nodes, int32_t bound) {
    while (match->nbound > bound) { (void)opdi_gcopier_put(&match->table, match->bound[--match->nbound], NULL); }
    match->nnodes = nodes;
}
/* Returns whether a node can stand at the place of the pattern's node `its`: it calls the same.  If ignore_constants is
   set, any number can stand at the place of another. */
static bool opdi_gmatch_calls(const opd_match *match, const opdi_gnode *its, const opdi_gnode *node) {
    if (its->kind == OPDI_GNODE_CONSTANT && node->kind == OPDI_GNODE_CONSTANT && match->ignore_constants &&
        opdi_is_number(&its->constant)) { return opdi_is_number(&node->constant); }
    return opdi_gnodes_call_same(its, node);
}
/* Returns whether a node is a constant, or a list of constants.  Such nodes may have other users, and stay. */
static bool opdi_gnode_is_constant(const opdi_gnode *node) {
    bool constant = node->kind == OPDI_GNODE_CONSTANT || node->kind == OPDI_GNODE_LIST;
    for (int32_t i = 0; i < node->nin && constant; i++) {
        constant = node->in[i]->node && node->in[i]->node->kind == OPDI_GNODE_CONSTANT;
    }
    return constant;
}
/* Returns whether `value` can stand where the pattern's value `its` stands once more, although `known` stands at its
   first place: both are equal constants, or lists of equal constants.  Adds the nodes to the match, if `its` is no
   input of the pattern. */
static bool opdi_gmatch_again(opd_match *match, const opdi_gvalue *its, const opdi_gvalue *known, opdi_gvalue *value) {
    const opdi_gnode *const node = known->node, *const of = its ? its->node : NULL;
    if (known == value) { return true; }
    if (!node || !value->node || !opdi_gnode_is_constant(node) || !opdi_gnode_is_constant(value->node) ||
        !opdi_gmatch_calls(match, of ? of : node, value->node) || node->nin != value->node->nin) { return false; }
    if (value->tag == OPD_TAG_TENSOR || value->tag == OPD_TAG_CELL || value->tag == OPD_TAG_OBJECT) {
        return false;                             /* two tensors with the same numbers may be written one by one */
    }
    for (int32_t i = 0; i < node->nin; i++) {
        if (!opdi_gmatch_again(match, of ? of->in[i] : NULL, node->in[i], value->node->in[i])) { return false; }
    }
    if (of) {
        match->nodes[match->nnodes] = value->node;
        match->its[match->nnodes++] = of;
    }
    return true;
}
/* Adds a node to the match, and matches its inputs.  Returns false if it does not match. */
static bool opdi_gmatch_node(opd_match *match, const opdi_gnode *its, opdi_gnode *node) {
    if (node->nblocks || !opdi_gmatch_calls(match, its, node)) { return false; }
    match->nodes[match->nnodes] = node;
    match->its[match->nnodes++] = its;
    for (int32_t i = 0; i < its->nout; i++) {
        if (!opdi_gmatch_bind(match, its->out[i], node->out[i])) { return false; }
    }
    for (int32_t i = 0; i < its->nin; i++) {
        if (!opdi_gmatch_value(match, its->in[i], node->in[i])) { return false; }
    }
    return true;
}
/* Matches a value of the pattern with a value of the graph. */
static bool opdi_gmatch_value(opd_match *match, const opdi_gvalue *its, opdi_gvalue *value) {
    const opdi_gvalue *const known = opdi_gcopier_get(&match->table, its);
    if (known) { return opdi_gmatch_again(match, its, known, value); }
    if (!its->node) {
        const opdi_gtype *const want = opdi_gvalue_gtype((opd_graph *)(uintptr_t)match->pattern, its);
        const opdi_gtype *const have = opdi_gvalue_gtype(match->graph, value);
        return want && have && opdi_gtype_fits(have, want) && opdi_gmatch_bind(match, its, value);
    }
    if (!value->node || opdi_stack_is_short("opd_graph_rewrite", OPDI_STACK_CALL)) { return false; }
    for (int32_t i = 0; i < its->node->nout && i < value->node->nout; i++) {
        if (its->node->out[i] == its) {
            return value->node->out[i] == value && opdi_gmatch_node(match, its->node, value->node);
        }
    }
    return false;
}
/* Tries whether `node` can stand at the place of the pattern's node `its`.  If not, the match stays as it was. */
static bool opdi_gmatch_try(opd_match *match, const opdi_gnode *its, opdi_gnode *node) {
    const int32_t nodes = match->nnodes, bound = match->nbound;
    if (!node || node->kind != its->kind || node->op != its->op || node->block != match->nodes[0]->block) {
        return false;
    }
    if (opdi_gmatch_node(match, its, node)) { return true; }
    opdi_gmatch_undo(match, nodes, bound);
    return false;
}
/* Matches an output of the pattern that is not computed from values of the match: tries the users of a value of the
   match which the pattern's node uses; or, if there is none, the nodes of the block. */
static bool opdi_gmatch_other(opd_match *match, const opdi_gvalue *value) {
    const opdi_gnode *const its = value->node;
    const opdi_guse *const uses = match->graph->users->uses;
    for (int32_t i = 0; its && i < its->nin; i++) {
        const opdi_gvalue *const shared = opdi_gcopier_get(&match->table, its->in[i]);
        if (!shared || (shared->node && shared->node->kind == OPDI_GNODE_CONSTANT)) { continue; }
        for (int32_t at = shared->first_use; at >= 0; at = uses[at].next) {
            if (opdi_gmatch_try(match, its, uses[at].node)) { return true; }
        }
        return false;
    }
    for (opdi_gnode *node = its ? match->nodes[0]->block->first : NULL; node; node = node->next) {
        if (opdi_gmatch_try(match, its, node)) { return true; }
    }
    return false;
}
/* Returns whether a node belongs to the match. */
static bool opdi_gmatch_has(const opd_match *match, const opdi_gnode *node) {
    for (int32_t i = 0; i < match->nnodes; i++) { if (match->nodes[i] == node) { return true; } }
    return false;
}
/* Returns whether a value of the pattern is one of its outputs. */
static bool opdi_gpattern_returns(const opd_graph *pattern, const opdi_gvalue *value) {
    for (int32_t i = 0; i < pattern->noutputs; i++) { if (pattern->outputs[i] == value) { return true; } }
    return false;
}
/* Returns whether a list is what its node made of it: only operators use it, so nothing is appended to it. */
static bool opdi_glist_stays(const opdi_guse *uses, const opdi_gnode *node) {
    for (int32_t at = node->out[0]->first_use; at >= 0; at = uses[at].next) {
        const opdi_gnode *const user = uses[at].node ? uses[at].node : uses[at].block->owner;
        if (user && user->kind != OPDI_GNODE_OP && user->kind != OPDI_GNODE_UNPACK) { return false; }
    }
    return true;
}
/* Returns whether the values inside the match have no users outside of it. */
static bool opdi_gmatch_is_closed(const opd_match *match) {
    const opdi_guse *const uses = match->graph->users->uses;
    for (int32_t i = 0; i < match->nnodes; i++) {
        const opdi_gnode *const node = match->nodes[i];
        if (node->kind == OPDI_GNODE_LIST && !opdi_glist_stays(uses, node)) { return false; }
        for (int32_t k = 0; k < node->nout && !opdi_gnode_is_constant(node); k++) {
            if (opdi_gpattern_returns(match->pattern, match->its[i]->out[k])) { continue; }
            for (int32_t at = node->out[k]->first_use; at >= 0; at = uses[at].next) {
                if (!uses[at].node || !opdi_gmatch_has(match, uses[at].node)) { return false; }
            }
        }
    }
    return true;
}
/* Returns the last node of the match that is no constant. */
static opdi_gnode *opdi_gmatch_last(const opd_match *match) {
    opdi_gnode *last = match->nodes[0];
    for (int32_t i = 1; i < match->nnodes; i++) {
        opdi_gnode *const node = match->nodes[i];
        if (node->block == last->block && node->order > last->order) { last = node; }
    }
    return last;
}
/* Finds the values that share memory, once for a match.  Returns false if memory runs out; then the call fails. */
static bool opdi_gmatch_alias(opd_match *match) {
    return match->aliased || (match->aliased = opdi_graph_alias(match->graph, true) == 0);
}
/* Returns whether a node writes memory of values of the match. */
static bool opdi_gmatch_is_written(opd_match *match, const opdi_gnode *node) {
    if (!opdi_gmatch_alias(match)) { return true; }
    for (int32_t i = 0; i < match->nnodes; i++) {
        const opdi_gnode *const one = match->nodes[i];
        for (int32_t k = 0; k < one->nin; k++) {
            if (opdi_gnode_writes_root(node, opdi_gvalue_root(one->in[k]))) { return true; }
        }
        for (int32_t k = 0; k < one->nout; k++) {
            if (opdi_gnode_writes_root(node, opdi_gvalue_root(one->out[k]))) { return true; }
        }
    }
    return false;
}
/* Returns whether a node has effects that must keep their order: others than the writes of an operator. */
static bool opdi_gnode_is_ordered(const opdi_gnode *node) {
    return opd_graph_node_has_effects(node) &&
        (node->kind != OPDI_GNODE_OP || opdi_gnode_draws(node) || !opdi_gnode_written(node));
}
/* Returns whether a call writes memory that a node, or a node in its blocks, uses. */
static bool opdi_gnode_writes_for(const opdi_gnode *call, const opdi_gnode *node) {
    const opdi_gnode *const past = opdi_gnode_past(node);
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
        for (int32_t i = 0; i < inner->nin + inner->nout; i++) {
            opdi_gvalue *const value = i < inner->nin ? inner->in[i] : inner->out[i - inner->nin];
            if (opdi_gnode_writes_root(call, opdi_gvalue_root(value))) { return true; }
        }
    }
    return false;
}
/* Returns whether `node`, which is between the nodes of the match, must stay before one of them: it uses memory that
   this one writes, or both draw random numbers or have other effects. */
static bool opdi_gmatch_stays_behind(opd_match *match, const opdi_gnode *node) {
    const bool ordered = opdi_gnode_is_ordered(node);
    for (int32_t i = 0; i < match->nnodes; i++) {
        const opdi_gnode *const one = match->nodes[i];
        if (!opd_graph_node_has_effects(one)) { continue; }
        if ((ordered && opdi_gnode_is_ordered(one)) ||
            (opdi_gnode_stays(one) && (!opdi_gmatch_alias(match) || opdi_gnode_writes_for(one, node)))) { return true; }
    }
    return false;
}
/* Returns whether the nodes of the match can be computed together, behind the last of them: they are in one block, no
   output is used before, and no other node between them has effects on the memory that they use, or needs what was
   before theirs. */
static bool opdi_gmatch_moves(opd_match *match) {
    const opdi_guse *const uses = match->graph->users->uses;
    const opdi_gnode *const last = opdi_gmatch_last(match), *first = last;
    for (int32_t i = 0; i < match->nnodes; i++) {
        if (opdi_gnode_is_constant(match->nodes[i])) { continue; }
        if (match->nodes[i]->block != last->block) { return false; }
        if (match->nodes[i]->order < first->order) { first = match->nodes[i]; }
    }
    for (int32_t i = 0; i < match->pattern->noutputs; i++) {
        for (int32_t at = match->outputs[i]->first_use; at >= 0; at = uses[at].next) {
            const opdi_gnode *user = uses[at].node ? uses[at].node : uses[at].block->owner;
            while (user && user->block != last->block) { user = user->block->owner; }
            if (user && user->order <= last->order && !opdi_gmatch_has(match, user)) { return false; }
        }
    }
    for (const opdi_gnode *node = first; node != last; node = node->next) {
        if (opdi_gmatch_has(match, node)) { continue; }
        if ((match->writes && opdi_gnode_stays(node) && opdi_gmatch_is_written(match, node)) ||
            opdi_gmatch_stays_behind(match, node)) { return false; }
    }
    return true;
}
/* Returns whether the pattern stands in the graph so that `node` computes its first output. */
static bool opdi_gmatch_at(opd_match *match, opdi_gnode *node) {
    const opd_graph *const pattern = match->pattern;
    opdi_gmatch_undo(match, 0, 0);
    if (!opdi_gmatch_node(match, pattern->outputs[0]->node, node)) { return false; }
    for (int32_t i = 0; i < pattern->noutputs; i++) {
        if (!opdi_gcopier_get(&match->table, pattern->outputs[i]) && !opdi_gmatch_other(match, pattern->outputs[i])) {
            return false;
        }
        match->outputs[i] = opdi_gcopier_get(&match->table, pattern->outputs[i]);
    }
    for (int32_t i = 0; i < pattern->ninputs; i++) {
        if (!(match->inputs[i] = opdi_gcopier_get(&match->table, pattern->inputs[i]))) { return false; }
    }
    return opdi_gmatch_is_closed(match) && opdi_gmatch_moves(match);
}
opd_graph_value *opd_match_value(const opd_match *match, const opd_graph_value *value) {
    return match && value ? opdi_gcopier_get(&match->table, value) : NULL;
}

//== replacing =========================================================================================================

/* Computes the values that take the place of the outputs, behind the last node of the match.  Returns 0, or -1 and sets
   an error. */
static int opdi_gmatch_make(const opd_match *match, const opd_graph *replacement, const opd_rewrite_options *options,
                            opdi_gvalue **results) {
    opd_graph *const graph = match->graph;
    const int32_t count = match->pattern->noutputs;
    if (replacement) {
        return opd_graph_inline(graph, replacement, match->inputs, match->pattern->ninputs, results, count) < 0 ? -1
            : 0;
    }
    for (int32_t i = 0; i < count; i++) { results[i] = NULL; }
    if (options->make(options->user, graph, match, results)) {
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_rewrite: the function `make` failed") : -1;
    }
    for (int32_t i = 0; i < count; i++) {
        if (opdi_graph_owns(graph, results[i], "opd_graph_rewrite", "a result of `make`")) { return -1; }
    }
    return 0;
}
/* Returns whether a use of an output stays: it belongs to the match, or to a node that was made for it. */
static bool opdi_gmatch_use_stays(const opd_match *match, const opdi_guse *use, const opdi_gvalue *result) {
    return result == use->value || (use->node && (use->node->born >= match->born || opdi_gmatch_has(match, use->node)));
}
/* Gives the users of the outputs the values `results`.  Returns 0, or -1 and sets an error; then it changed nothing. */
static int opdi_gmatch_replace(const opd_match *match, opdi_gvalue *const *results) {
    const char *const who = "opd_graph_rewrite";
    opd_graph *const graph = match->graph;
    const opdi_graph_uses *const users = opdi_graph_users(graph);
    if (!users) { return -1; }
    for (int32_t i = 0; i < match->pattern->noutputs; i++) {
        for (int32_t at = match->outputs[i]->first_use; at >= 0; at = users->uses[at].next) {
            const opdi_guse *const use = &users->uses[at];
            if (opdi_gmatch_use_stays(match, use, results[i])) { continue; }
            if (opdi_guse_check(graph, use, results[i], who) ||
                (use->block == &graph->body && opdi_graph_result_check(graph, results[i], who))) { return -1; }
        }
    }
    for (int32_t i = 0; i < match->pattern->noutputs; i++) {
        for (int32_t at = match->outputs[i]->first_use, next; at >= 0; at = next) {
            next = users->uses[at].next;
            if (opdi_gmatch_use_stays(match, &users->uses[at], results[i])) { continue; }
            opdi_graph_use_set(graph, at, results[i]);
        }
    }
    return 0;
}
/* Removes the nodes of the match whose results are not used any more. */
static void opdi_gmatch_remove(const opd_match *match) {
    for (bool again = opdi_graph_users(match->graph) != NULL; again;) {
        again = false;
        for (int32_t i = 0; i < match->nnodes; i++) {
            opdi_gnode *const node = match->nodes[i];
            bool used = node->gone;
            for (int32_t k = 0; k < node->nout && !used; k++) { used = node->out[k]->first_use >= 0; }
            if (used) { continue; }
            opdi_gnode_remove(match->graph, node);
            again = true;
        }
    }
}
/* Removes the nodes that were made for a match, because it was not replaced; but not those that `make` has let other
   nodes use. */
static void opdi_gmatch_take_back(const opd_match *match) {
    opdi_gnode *made = NULL;
    do {
        made = NULL;
        (void)opdi_graph_users(match->graph);
        for (opdi_gnode *node = match->graph->body.first; node; node = opdi_gnode_after(node)) {
            bool used = node->born < match->born;
            for (int32_t i = 0; i < node->nout && match->graph->users && !used; i++) {
                used = node->out[i]->first_use >= 0;
            }
            if (!used) { made = node; }
        }
        if (made) { opdi_gnode_remove(match->graph, made); }
    } while (made);
}
/* Replaces the match.  Returns 1; 0 if the condition is not met; or -1 and sets an error, and then nothing
   has changed. */
static int opdi_gmatch_rewrite(opd_match *match, const opd_graph *replacement, const opd_rewrite_options *options) {
    opd_graph *const graph = match->graph;
    opdi_gnode *const last = opdi_gmatch_last(match);
    opdi_gvalue **const results =
        (opdi_gvalue **)opdi_scope_alloc(((size_t)match->pattern->noutputs + 1) * sizeof *results);
    if (!results) { return -1; }
    const uint64_t changes = graph->changes;
    const bool wanted = !options || !options->when || options->when(options->user, match);
    if (graph->changes != changes) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_rewrite: the function `when` has changed the graph");
    }
    if (!wanted || !opd_ok()) { return opd_ok() ? 0 : -1; }
    match->born = ++graph->born;
    graph->into = last->block->owner ? last->block : NULL;
    graph->at = last->next;
    if (opdi_gmatch_make(match, replacement, options, results) || opdi_gmatch_replace(match, results)) {
        opdi_gmatch_take_back(match);
        return -1;
    }
    opdi_gmatch_remove(match);
    return 1;
}

/* Checks the arguments of opd_graph_rewrite.  Returns 0, or -1 and sets an error. */
static int opdi_rewrite_check(const opd_graph *graph, const opd_graph *pattern, const opd_graph *replacement,
                              const opd_rewrite_options *options) {
    const char *const who = "opd_graph_rewrite";
    if (!opd_ok()) { return -1; }
    if (!graph || !pattern) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the %s is NULL", who, graph ? "pattern" : "graph");
    }
    if (graph == pattern) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph is its own pattern", who); }
    if (!replacement == !(options && options->make)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: give a replacement, or a function `make`", who);
    }
    if (!pattern->noutputs || !pattern->outputs[0]->node) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the first output of the pattern is not computed by the pattern", who);
    }
    if (replacement && (replacement->ninputs != pattern->ninputs || replacement->noutputs != pattern->noutputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the pattern has %d inputs and %d outputs, but the replacement has "
                        "%d and %d", who, (int)pattern->ninputs, (int)pattern->noutputs, (int)replacement->ninputs,
                        (int)replacement->noutputs);
    }
    return 0;
}
/* Returns whether a value of the pattern is used by one of its nodes, or is an output. */
static bool opdi_gpattern_uses(const opd_graph *pattern, const opdi_gvalue *value) {
    for (const opdi_gnode *node = pattern->body.first; node; node = node->next) {
        for (int32_t i = 0; i < node->nin; i++) { if (node->in[i] == value) { return true; } }
    }
    return value == pattern->result || opdi_gpattern_returns(pattern, value);
}
/* Checks that each node of the pattern leads to an output, and makes the memory of the match.  Returns 0, or -1 and
   sets an error. */
static int opdi_gmatch_begin(opd_match *match, opd_graph *graph, const opd_graph *pattern) {
    size_t nodes = 0, again = 0, values = (size_t)pattern->ninputs;
    memset(match, 0, sizeof *match);
    match->graph = graph;
    match->pattern = pattern;
    for (const opdi_gnode *node = pattern->body.first; node; node = node->next, nodes++) {
        bool used = false;
        for (int32_t i = 0; i < node->nout; i++) { used = used || opdi_gpattern_uses(pattern, node->out[i]); }
        values += (size_t)node->nout;
        for (int32_t i = 0; i < node->nin; i++) { /* constants that stand at several places (opdi_gmatch_again) */
            again += 1 + (size_t)(node->in[i]->node ? node->in[i]->node->nin : 0);
        }
        if (used && !node->nblocks) { continue; }
        (void)opd_fail(OPD_ERROR_ARGUMENT, used ? "opd_graph_rewrite: a pattern cannot have conditions or loops"
                       : "opd_graph_rewrite: a node of the pattern does not lead to an output");
        return opdi_graph_where(node);
    }
    match->nodes = (opdi_gnode **)opdi_scope_alloc((nodes + again + 1) * sizeof *match->nodes);
    match->its = (const opdi_gnode **)opdi_scope_alloc((nodes + again + 1) * sizeof *match->its);
    match->bound = (const opdi_gvalue **)opdi_scope_alloc((values + 1) * sizeof *match->bound);
    match->inputs = (opdi_gvalue **)opdi_scope_alloc(((size_t)pattern->ninputs + 1) * sizeof *match->inputs);
    match->outputs = (opdi_gvalue **)opdi_scope_alloc(((size_t)pattern->noutputs + 1) * sizeof *match->outputs);
    if (!match->nodes || !match->its || !match->bound || !match->inputs || !match->outputs) { return -1; }
    for (size_t i = 0; i < values; i++) {         /* makes room for all values, because the table does not shrink */
        if (opdi_gcopier_put(&match->table, (const opdi_gvalue *)(const void *)&match->bound[i], NULL)) { return -1; }
    }
    return 0;
}
static int opdi_graph_rewrite(opd_match *match, const opd_graph *replacement, const opd_rewrite_options *options) {
    const opdi_gnode *const root = match->pattern->outputs[0]->node;
    opd_graph *const graph = match->graph;
    opdi_gnode **roots = NULL;
    int64_t nroots = 0, cap = 0;
    void *grown = NULL;
    int count = 0, rc = 0;
    match->writes = !replacement || opdi_graph_writes(graph) || opdi_graph_writes(replacement);
    for (opdi_gnode *node = graph->body.first; node && rc == 0; node = opdi_gnode_after(node)) {
        if (node->kind != root->kind || node->op != root->op) { continue; }
        rc = opdi_grow(&grown, nroots, &cap, sizeof *roots);
        roots = (opdi_gnode **)grown;
        if (rc == 0) { roots[nroots++] = node; }
    }
    for (int64_t i = 0; i < nroots && rc >= 0; i++) {
        opd_scope scope = opd_scope_open();
        rc = opdi_graph_users(graph) ? 0 : -1;
        opdi_graph_order(graph);
        if (rc == 0 && !roots[i]->gone && opdi_gmatch_at(match, roots[i])) {
            rc = opdi_gmatch_rewrite(match, replacement, options);
            match->aliased = false;
            count += rc > 0;
        }
        if (!opd_ok()) { rc = -1; }
        opd_scope_close(&scope);
    }
    opdi_free(roots, (size_t)cap * sizeof *roots);
    return rc < 0 ? -1 : count;
}
int opd_graph_rewrite(opd_graph *graph, const opd_graph *pattern, const opd_graph *replacement,
                      const opd_rewrite_options *options) {
    opd_match match;
    if (opdi_rewrite_check(graph, pattern, replacement, options)) { return -1; }
    opd_scope scope = opd_scope_open();
    int count = opdi_gmatch_begin(&match, graph, pattern);
    opdi_gblock *const into = graph->into;
    opdi_gnode *at = graph->at;
    match.ignore_constants = options && options->ignore_constants;
    if (count == 0) { count = opdi_graph_rewrite(&match, replacement, options); }
    while (at && at->gone) { at = at->next; }
    graph->at = at;
    graph->into = into;
    opd_scope_close(&scope);
    return count;
}
