#include "graphs.h"

//== parts of graphs ===================================================================================================
//
//  A question says which calls belong into parts.  Each node gets a phase: that of the nodes from which it is
//  computed, plus one where calls that belong into parts and other nodes meet.  Calls of one phase that pass values to
//  each other are a part: a path from one to the other through a node outside would lead to a later phase, so parts
//  have no cycles.  Writes order nodes, too: a call that uses memory before a write stays before it.
//
//  Constants belong to every part that uses them, and so do lists of tensors, which are made again where they are used.
//  But a constant that a node writes is an input, so that writes and parts keep their order in later changes, too.

//== edges =============================================================================================================

/* What the search knows of a node of a block, at the number of the node. */
typedef struct opdi_gplace {
    opdi_gnode *node;
    int32_t edges;                                /* the first of its edges, or -1 */
    int32_t phase;                                /* is odd for a call that belongs into a part */
    int32_t part;                                 /* the number of a call of the same part, or its own; -1: none */
    bool wanted;                                  /* the question was answered with yes */
} opdi_gplace;
/* An edge: the node at which it is listed comes after node `to`. */
typedef struct opdi_gedge { int32_t to, next; bool value; } opdi_gedge;
/* The last nodes that have written, and read, the memory of a set of values. */
typedef struct opdi_gmemory { int32_t writer, readers; } opdi_gmemory;
typedef struct opdi_gsearch {
    opd_graph *graph;
    opdi_gblock *block;
    opdi_gplace *places;                          /* [count] */
    int32_t count;
    uint64_t base;                                /* node->mark - base is the number of a node of the block */
    opdi_gedge *edges;                            /* [nedges] */
    int64_t nedges, edges_cap;
    opdi_gedge *reads;                            /* [nreads] lists of readers, in `to` */
    int64_t nreads, reads_cap;
    opdi_gmemory *memory;                         /* [nmemory] */
    int64_t nmemory, memory_cap;
    bool writes, failed;
} opdi_gsearch;

static void opdi_gsearch_list(opdi_gsearch *search, opdi_gedge **list, int64_t *count, int64_t *cap, int32_t *first,
                              int32_t to, bool value) {
    void *grown = *list;
    if (search->failed || opdi_grow(&grown, *count, cap, sizeof **list)) {
        search->failed = true;
        return;
    }
    *list = (opdi_gedge *)grown;
    (*list)[*count].to = to;
    (*list)[*count].next = *first;
    (*list)[*count].value = value;
    *first = (int32_t)(*count)++;
}
/* Notes that node `at` comes after node `to`; `value`: because it uses a value of it. */
static void opdi_gsearch_edge(opdi_gsearch *search, int32_t at, int32_t to, bool value) {
    if (to < 0 || to == at) { return; }
    opdi_gsearch_list(search, &search->edges, &search->nedges, &search->edges_cap, &search->places[at].edges, to,
                      value);
}
/* Returns the number of the block's node that computes a value, or whose blocks do; -1 if the value comes from outside
   of the block. */
static int32_t opdi_gsearch_number(const opdi_gsearch *search, const opdi_gvalue *value) {
    const opdi_gnode *node = value->node ? value->node : value->block ? value->block->owner : NULL;
    while (node && node->block != search->block) { node = node->block->owner; }
    return node ? (int32_t)(node->mark - search->base) : -1;
}
/* Returns whether a node only makes a list of tensors, which can be made again elsewhere: only operators use it, so
   nothing is appended to it. */
static bool opdi_gnode_is_list(const opdi_gnode *node) {
    return node && node->kind == OPDI_GNODE_LIST && node->out[0]->tag == OPD_TAG_TENSORS && node->light;
}
static void opdi_gsearch_value(opdi_gsearch *search, int32_t at, const opdi_gvalue *value) {
    const opdi_gnode *const from = value->node;
    opdi_gsearch_edge(search, at, opdi_gsearch_number(search, value), true);
    for (int32_t i = 0; opdi_gnode_is_list(from) && i < from->nin; i++) {
        opdi_gsearch_edge(search, at, opdi_gsearch_number(search, from->in[i]), true);
    }
}
/* Orders node `at`, which uses memory of the set with the root `root`, after the nodes that have written it, and, if it
   writes, also after those that have read it. */
static void opdi_gsearch_memory(opdi_gsearch *search, int32_t at, opdi_gvalue *root, bool writes) {
    if (root->mark <= search->base + (uint64_t)search->count) {        /* seen for the first time */
        void *grown = search->memory;
        if (search->failed || opdi_grow(&grown, search->nmemory, &search->memory_cap, sizeof *search->memory)) {
            search->failed = true;
            return;
        }
        search->memory = (opdi_gmemory *)grown;
        search->memory[search->nmemory].writer = search->memory[search->nmemory].readers = -1;
        root->mark = ++search->graph->mark;
        search->nmemory++;
    }
    opdi_gmemory *const memory = &search->memory[root->mark - search->base - (uint64_t)search->count - 1];
    opdi_gsearch_edge(search, at, memory->writer, false);
    if (!writes) {
        opdi_gsearch_list(search, &search->reads, &search->nreads, &search->reads_cap, &memory->readers, at, false);
        return;
    }
    for (int32_t i = memory->readers; i >= 0; i = search->reads[i].next) {
        opdi_gsearch_edge(search, at, search->reads[i].to, false);
    }
    memory->readers = -1;
    memory->writer = at;
}
/* Finds the edges of node `at`: to the nodes whose values it uses, and to nodes that use the same memory. */
static void opdi_gsearch_edges(opdi_gsearch *search, int32_t at, int32_t *effect) {
    const opdi_gnode *const node = search->places[at].node, *const past = opdi_gnode_past(node);
    const bool memory = search->writes && !opdi_gnode_is_list(node);  /* a list holds tensors, and reads no memory */
    for (const opdi_gnode *inner = node; inner != past; inner = opdi_gnode_after(inner)) {
        for (int32_t i = 0; i < inner->nin; i++) {
            opdi_gsearch_value(search, at, inner->in[i]);
            if (!memory) { continue; }
            opdi_gvalue *const root = opdi_gvalue_root(inner->in[i]);
            opdi_gsearch_memory(search, at, root, opdi_gnode_stays(inner) && opdi_gnode_writes_root(inner, root));
        }
        for (int32_t k = 0; k < inner->nblocks; k++) {
            for (int32_t i = 0; i < inner->blocks[k].noutputs; i++) {
                opdi_gsearch_value(search, at, inner->blocks[k].outputs[i]);
            }
        }
    }
    for (int32_t i = 0; memory && i < node->nout; i++) {
        opdi_gsearch_memory(search, at, opdi_gvalue_root(node->out[i]), false);
    }
    if (!opd_graph_node_has_effects(node)) { return; }
    opdi_gsearch_edge(search, at, *effect, false);                    /* effects keep their order */
    *effect = at;
}

//== phases ============================================================================================================

/* Returns whether a value can be passed to a part or come from one: a tensor; a constant or a list of tensors is made
   in the part itself. */
static bool opdi_gvalue_passes(const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    opdi_gvalue *const *elements = opdi_gnode_is_list(node) ? node->in : NULL;
    if (value->tag == OPD_TAG_TENSOR && (!value->type || value->type->kind == OPDI_GTYPE_TENSOR)) { return true; }
    if (!node || (node->kind != OPDI_GNODE_CONSTANT && !(node->kind == OPDI_GNODE_LIST && node->light))) {
        return false;
    }
    for (int32_t i = 0; i < node->nin; i++) {
        const opdi_gnode *const from = node->in[i]->node;
        if (!(elements && node->in[i]->tag == OPD_TAG_TENSOR) && !(from && from->kind == OPDI_GNODE_CONSTANT)) {
            return false;
        }
    }
    return true;
}
/* Returns whether a call can belong into a part at all: it calls an operator on tensors and constants, gives tensors,
   and has no effects. */
static bool opdi_gnode_can_move(const opdi_gnode *node) {
    if (node->kind != OPDI_GNODE_OP || opd_graph_node_has_effects(node)) { return false; }
    for (int32_t i = 0; i < node->nin; i++) { if (!opdi_gvalue_passes(node->in[i])) { return false; } }
    for (int32_t i = 0; i < node->nout; i++) { if (node->out[i]->tag != OPD_TAG_TENSOR) { return false; } }
    return true;
}
static int32_t opdi_gsearch_part(const opdi_gsearch *search, int32_t at) {
    opdi_gplace *const places = search->places;
    while (places[at].part != at) { at = places[at].part = places[places[at].part].part; }
    return at;
}
/* Gives node `at` its phase, and joins it with the calls of its phase whose values it uses. */
static void opdi_gsearch_phase(opdi_gsearch *search, int32_t at) {
    opdi_gplace *const place = &search->places[at];
    place->phase = place->wanted;
    for (int32_t i = place->edges; i >= 0; i = search->edges[i].next) {
        const opdi_gplace *const before = &search->places[search->edges[i].to];
        if (opdi_gnode_is_list(before->node) && place->wanted) { continue; }       /* is made in the part */
        place->phase = OPDI_MAX(place->phase, before->phase + (before->wanted != place->wanted));
    }
    for (int32_t i = place->edges; i >= 0 && place->wanted; i = search->edges[i].next) {
        const int32_t to = search->edges[i].to;
        if (search->edges[i].value && search->places[to].wanted && search->places[to].phase == place->phase) {
            search->places[opdi_gsearch_part(search, at)].part = opdi_gsearch_part(search, to);
        }
    }
}
//== lists and their users =============================================================================================

/* Sets the member `chosen` of the nodes of a block: true for calls that can belong into a part.  A view whose memory is
   written stays outside, because the function of a part may return new memory.  Also finds the constants that are
   written.  Returns 0, or -1 and sets an error. */
static int opdi_gsearch_choose(const opdi_gsearch *search) {
    opd_graph *const graph = search->graph;
    const bool writes = opdi_graph_writes(graph);
    if (writes && opdi_graph_alias(graph, true)) { return -1; }
    const uint64_t written = writes ? opdi_graph_mark_written(graph) : 0;
    for (opdi_gnode *node = search->block->first; node; node = node->next) {
        node->chosen = opdi_gnode_can_move(node) && !(writes && opdi_gnode_view_is_written(node, written));
    }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        node->written = writes && node->kind == OPDI_GNODE_CONSTANT && node->out[0]->tag == OPD_TAG_TENSOR &&
            opdi_gvalue_root(node->out[0])->mark == written;
    }
    return 0;
}
/* Asks the question about each call of a block, and gives each call that belongs into a part its own copy of the lists
   of tensors that it takes.  Returns 0, or -1 and sets an error. */
static int opdi_gsearch_ask(opdi_gsearch *search, opd_graph_question question, void *user) {
    opd_graph *const graph = search->graph;
    int rc = opdi_graph_users(graph) ? 0 : -1;
    if (rc || opdi_gsearch_choose(search)) { return -1; }
    graph->into = search->block->owner ? search->block : NULL;
    for (opdi_gnode *node = search->block->first; node && rc == 0; node = node->next) {
        const uint64_t changes = graph->changes;
        node->chosen = node->chosen && question(user, node);
        if (graph->changes != changes) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_partition: the question has changed the graph");
        }
        if (!opd_ok()) { return -1; }
        for (int32_t i = 0; i < node->nin && node->chosen && rc == 0; i++) {
            opdi_gvalue *const list = node->in[i];
            const opdi_gnode *const from = opdi_gnode_is_list(list->node) ? list->node : NULL;
            if (!from || (list->first_use == list->last_use && from->block == node->block)) { continue; }
            graph->at = node;
            opdi_gvalue *const copy = opdi_graph_list(graph, OPDI_GNODE_LIST, list->tag, from->word, from->in,
                                                      from->nin);
            if (copy) {
                copy->type = list->type;
                copy->node->light = true;
            }
            rc = copy && opd_graph_set_input(graph, node, i, copy) == 0 ? 0 : -1;
        }
    }
    return rc;
}
/* Puts the list of a call into the part of the call. */
static void opdi_gsearch_join_lists(opdi_gsearch *search) {
    const opdi_graph_uses *const users = search->graph->users;
    for (int32_t at = 0; at < search->count; at++) {
        const opdi_gnode *const node = search->places[at].node;
        const opdi_gnode *user = opdi_gnode_is_list(node) && node->out[0]->first_use >= 0
            ? users->uses[node->out[0]->first_use].node : NULL;
        if (user && user->block == search->block && search->places[user->mark - search->base].wanted) {
            search->places[at].part = opdi_gsearch_part(search, (int32_t)(user->mark - search->base));
        }
    }
}

/* Finds the nodes of a block, their edges, phases and parts.  Returns 0, or -1 and sets an error. */
static int opdi_gsearch_run(opdi_gsearch *search, opd_graph_question question, void *user) {
    opd_graph *const graph = search->graph;
    int32_t effect = -1;
    if (opdi_gsearch_ask(search, question, user)) { return -1; }
    search->writes = opdi_graph_writes(graph);
    if (search->writes && opdi_graph_alias(graph, true)) { return -1; }
    for (const opdi_gnode *node = search->block->first; node; node = node->next) { search->count++; }
    search->places = (opdi_gplace *)opdi_scope_alloc(((size_t)search->count + 1) * sizeof *search->places);
    if (!search->places) { return -1; }
    search->base = graph->mark + 1;
    for (opdi_gnode *node = search->block->first; node; node = node->next) {
        const int32_t at = (int32_t)(graph->mark + 1 - search->base);
        node->mark = ++graph->mark;
        search->places[at].node = node;
        search->places[at].edges = -1;
        search->places[at].part = at;
        search->places[at].wanted = node->chosen;
    }
    graph->mark = search->base + (uint64_t)search->count;
    for (int32_t at = 0; at < search->count && !search->failed; at++) {
        opdi_gsearch_edges(search, at, &effect);
        if (!search->failed) { opdi_gsearch_phase(search, at); }
    }
    if (!search->failed) { opdi_gsearch_join_lists(search); }
    return search->failed ? -1 : 0;
}

//== order =============================================================================================================
//
//  The nodes of a part are put together where the last of them stands.  Nodes that wait for a part come after it.

/* The members of the parts, and the new order of the nodes. */
typedef struct opdi_gmembers {
    int32_t *first, *last, *next;                 /* [count] the first and the last member of a part; the next member */
    bool *done;                                   /* [count] true: the node has its place */
    int32_t *waiting, *order;                     /* [nwaiting] nodes and parts that wait; [n] the nodes in order */
    int32_t nwaiting, n;
} opdi_gmembers;

/* Returns whether all nodes before the nodes of a part (or before one other node) are in their places. */
static bool opdi_gsearch_ready(const opdi_gsearch *search, const opdi_gmembers *members, int32_t part) {
    for (int32_t at = members->first[part]; at >= 0; at = members->next[at]) {
        for (int32_t i = search->places[at].edges; i >= 0; i = search->edges[i].next) {
            const int32_t to = search->edges[i].to;
            if (!members->done[to] && opdi_gsearch_part(search, to) != part) { return false; }
        }
    }
    return true;
}
static void opdi_gsearch_place(opdi_gmembers *members, int32_t part) {
    for (int32_t at = members->first[part]; at >= 0; at = members->next[at]) {
        members->done[at] = true;
        members->order[members->n++] = at;
    }
}
/* Places the waiting nodes and parts that are ready. */
static void opdi_gsearch_wake(const opdi_gsearch *search, opdi_gmembers *members) {
    for (bool again = members->nwaiting > 0; again;) {
        int32_t left = 0;
        again = false;
        for (int32_t i = 0; i < members->nwaiting; i++) {
            const int32_t part = members->waiting[i];
            if (opdi_gsearch_ready(search, members, part)) {
                opdi_gsearch_place(members, part);
                again = true;
            } else { members->waiting[left++] = part; }
        }
        members->nwaiting = left;
    }
}
/* Links the nodes of the block in the new order. */
static void opdi_gsearch_link(const opdi_gsearch *search, const opdi_gmembers *members) {
    opdi_gnode *before = NULL;
    for (int32_t i = 0; i < members->n; i++) {
        opdi_gnode *const node = search->places[members->order[i]].node;
        node->prev = before;
        node->next = NULL;
        if (before) { before->next = node; } else { search->block->first = node; }
        search->block->last = before = node;
    }
    search->graph->ordered = false;
    opdi_graph_replan(search->graph);
}
/* Lists the members of all parts.  Returns 0, or -1 and sets an error. */
static int opdi_gsearch_members(const opdi_gsearch *search, opdi_gmembers *members) {
    const size_t count = (size_t)search->count;
    int32_t *const memory = (int32_t *)opdi_scope_alloc((5 * count + 1) * sizeof *memory);
    memset(members, 0, sizeof *members);
    members->done = (bool *)opdi_scope_alloc(count + 1);
    if (!memory || !members->done) { return -1; }
    memset(members->done, 0, count);
    members->first = memory;
    members->last = memory + count;
    members->next = memory + 2 * count;
    members->waiting = memory + 3 * count;
    members->order = memory + 4 * count;
    for (size_t i = 0; i < 3 * count; i++) { memory[i] = -1; }
    for (int32_t at = 0; at < search->count; at++) {
        const int32_t part = opdi_gsearch_part(search, at);
        if (members->last[part] >= 0) { members->next[members->last[part]] = at; } else { members->first[part] = at; }
        members->last[part] = at;
    }
    return 0;
}
/* Puts the nodes of each part together.  Returns 0, or -1 and sets an error. */
static int opdi_gsearch_order(const opdi_gsearch *search, opdi_gmembers *members) {
    for (int32_t at = 0; at < search->count; at++) {
        const int32_t part = opdi_gsearch_part(search, at);
        if (at != members->last[part]) { continue; }
        if (!opdi_gsearch_ready(search, members, part)) {
            members->waiting[members->nwaiting++] = part;
            continue;
        }
        opdi_gsearch_place(members, part);
        if (members->first[part] != members->last[part]) { opdi_gsearch_wake(search, members); }
    }
    opdi_gsearch_wake(search, members);
    if (members->n != search->count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_partition: the parts form a circle");
    }
    opdi_gsearch_link(search, members);
    return 0;
}

//== parts =============================================================================================================

/* Lists of the nodes and values of the parts; the lists of all parts follow each other. */
typedef struct opdi_gparts {
    opd_part *parts;
    int cap, count;
    opdi_gnode **nodes;
    opdi_gvalue **inputs, **outputs;
    int64_t ninputs, noutputs;
} opdi_gparts;

/* Returns whether a node is a member of a part. */
static bool opdi_gsearch_has(const opdi_gsearch *search, int32_t part, const opdi_gnode *node) {
    while (node && node->block != search->block) { node = node->block->owner; }
    return node && opdi_gsearch_part(search, (int32_t)(node->mark - search->base)) == part;
}
/* Returns whether a group of nodes is a part: its calls are wanted. */
static bool opdi_gsearch_is_part(const opdi_gsearch *search, const opdi_gmembers *members, int32_t part) {
    bool wanted = false;
    for (int32_t at = members->first[part]; at >= 0; at = members->next[at]) {
        wanted = wanted || search->places[at].wanted;
    }
    return wanted;
}
/* Adds the inputs and outputs of a member of a part.  `value->mark` is the number of the part for an input that was
   added. */
static void opdi_gparts_values(const opdi_gsearch *search, opdi_gparts *parts, int32_t part, const opdi_gnode *node,
                               uint64_t mark) {
    const opdi_guse *const uses = search->graph->users->uses;
    for (int32_t i = 0; i < node->nin; i++) {
        opdi_gvalue *const value = node->in[i];
        if (value->mark == mark || value->tag != OPD_TAG_TENSOR || opdi_gsearch_has(search, part, value->node) ||
            (value->node && value->node->kind == OPDI_GNODE_CONSTANT && !value->node->written)) { continue; }
        value->mark = mark;
        parts->inputs[parts->ninputs++] = value;
    }
    for (int32_t i = 0; i < node->nout; i++) {
        int32_t at = node->out[i]->first_use;
        while (at >= 0 && uses[at].node && opdi_gsearch_has(search, part, uses[at].node)) { at = uses[at].next; }
        if (at >= 0 && node->out[i]->tag == OPD_TAG_TENSOR) { parts->outputs[parts->noutputs++] = node->out[i]; }
    }
}
/* Adds the parts of a block.  Returns 0, or -1 and sets an error. */
static int opdi_gparts_add(opdi_gsearch *search, opdi_gparts *parts, const opdi_gmembers *members) {
    const size_t count = (size_t)search->count;
    size_t values = 0;
    for (int32_t at = 0; at < search->count; at++) {
        values += (size_t)(search->places[at].node->nin + search->places[at].node->nout);
    }
    parts->nodes = (opdi_gnode **)opdi_scope_alloc((count + 1) * sizeof *parts->nodes);
    parts->inputs = (opdi_gvalue **)opdi_scope_alloc((2 * values + 1) * sizeof *parts->inputs);
    if (!parts->nodes || !parts->inputs) { return -1; }
    parts->outputs = parts->inputs + values;
    parts->ninputs = parts->noutputs = 0;
    int64_t nodes = 0;
    for (int32_t i = 0; i < members->n; i++) {
        const int32_t part = opdi_gsearch_part(search, members->order[i]);
        if (members->order[i] != members->first[part] || !opdi_gsearch_is_part(search, members, part)) { continue; }
        const int64_t from = nodes, in = parts->ninputs, out = parts->noutputs;
        const uint64_t mark = ++search->graph->mark;
        for (int32_t at = members->first[part]; at >= 0; at = members->next[at]) {
            parts->nodes[nodes++] = search->places[at].node;
            opdi_gparts_values(search, parts, part, search->places[at].node, mark);
        }
        if (parts->count++ >= parts->cap) { continue; }
        opd_part *const made = &parts->parts[parts->count - 1];
        made->nodes = parts->nodes + from;
        made->nnodes = (int)(nodes - from);
        made->inputs = parts->inputs + in;
        made->ninputs = (int)(parts->ninputs - in);
        made->outputs = parts->outputs + out;
        made->noutputs = (int)(parts->noutputs - out);
    }
    return 0;
}
/* Finds the parts of a block, and orders its nodes.  Returns 0, or -1 and sets an error. */
static int opdi_gparts_find(opd_graph *graph, opdi_gblock *block, opd_graph_question question, void *user,
                            opdi_gparts *parts) {
    opdi_gsearch search;
    opdi_gmembers members;
    memset(&search, 0, sizeof search);
    search.graph = graph;
    search.block = block;
    int rc = opdi_gsearch_run(&search, question, user);
    if (rc == 0) { rc = opdi_gsearch_members(&search, &members); }
    if (rc == 0) { rc = opdi_gsearch_order(&search, &members); }
    if (rc == 0) { rc = opdi_gparts_add(&search, parts, &members); }
    opdi_free(search.edges, (size_t)search.edges_cap * sizeof *search.edges);
    opdi_free(search.reads, (size_t)search.reads_cap * sizeof *search.reads);
    opdi_free(search.memory, (size_t)search.memory_cap * sizeof *search.memory);
    return rc;
}
int opd_graph_partition(opd_graph *graph, opd_graph_question question, void *user, opd_part *parts, int cap) {
    opdi_gparts found;
    memset(&found, 0, sizeof found);
    if (!opd_ok()) { return -1; }
    if (!graph || !question || (cap > 0 && !parts)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_partition: the %s", !graph ? "graph is NULL"
                        : !question ? "question is NULL" : "pointer to the parts is NULL");
    }
    opdi_graph_mark_op_lists(graph);
    found.parts = parts;
    found.cap = OPDI_MAX(cap, 0);
    opdi_gblock *const into = graph->into;
    opdi_gnode *const at = graph->at;
    int rc = opdi_gparts_find(graph, &graph->body, question, user, &found);
    for (const opdi_gnode *node = graph->body.first; node && rc == 0; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nblocks && rc == 0; i++) {
            rc = opdi_gparts_find(graph, &node->blocks[i], question, user, &found);
        }
    }
    graph->into = into;
    graph->at = at;
    return rc ? -1 : found.count;
}
