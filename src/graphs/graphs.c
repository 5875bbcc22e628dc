#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>graphs       recording operators into a graph, printing it, passes
//
//  A graph is a list of nodes.  A node computes values from other values.  Constants and lists are nodes too, as in
//  TorchScript's text of a graph.  The kernel at the Tracer key records a call as a node and then redispatches the
//  call.  This section knows operators only by their schemas.
//----------------------------------------------------------------------------------------------------------------------

struct opd_graph_node;

/* Returns the node that follows `node` and the nodes of its blocks in the graph's text.  Returns NULL for the last
   node. */
OPDI_INTERNAL opdi_gnode *opdi_gnode_past(const opdi_gnode *node) {
    while (!node->next) {
        const opdi_gnode *const owner = node->block->owner;
        if (!owner) { return NULL; }
        for (int32_t i = (int32_t)(node->block - owner->blocks) + 1; i < owner->nblocks; i++) {
            if (owner->blocks[i].first) { return owner->blocks[i].first; }
        }
        node = owner;
    }
    return node->next;
}
/* Returns the node that follows `node` in the graph's text.  In the text, the nodes of a node's blocks follow directly
   after the node.  Returns NULL for the last node. */
OPDI_INTERNAL opdi_gnode *opdi_gnode_after(const opdi_gnode *node) {
    for (int32_t i = 0; i < node->nblocks; i++) { if (node->blocks[i].first) { return node->blocks[i].first; } }
    return opdi_gnode_past(node);
}
/* Sets `depth` of all blocks of a graph.  Returns true and sets an error if they are nested so deep that the stack of
   this thread is too small for functions that call themselves for the blocks of a block. */
OPDI_INTERNAL bool opdi_graph_too_deep(opd_graph *graph) {
    int32_t deepest = 0;
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nblocks; i++) { node->blocks[i].depth = node->block->depth + 1; }
        if (node->nblocks) { deepest = OPDI_MAX(deepest, node->blocks->depth); }
    }
    return opdi_stack_is_short("a graph with nested blocks", OPDI_STACK_CALL + (size_t)deepest * OPDI_STACK_OF_BLOCK);
}
/* Returns the block that contains the value's node.  If the value is an input, returns the block of which it is an
   input. */
OPDI_INTERNAL const opdi_gblock *opdi_gvalue_block(const opd_graph *graph, const opdi_gvalue *value) {
    return value->node ? value->node->block : value->block ? value->block : &graph->body;
}

OPDI_ONCE_BEGIN

//== names of values ===================================================================================================
//
//  If a program builds a graph by calls of C functions, the graph has a table of all names that its values have had.
//  The first lookup of a name makes the table.

/* Returns the entry for `name` in the hash table `names` of `size` entries, or the empty entry into which it would be
   inserted. */
OPDI_INTERNAL opdi_graph_name *opdi_graph_name_slot(opdi_graph_name *names, int64_t size, const char *name,
                                                    size_t length) {
    int64_t i = (int64_t)(opdi_hash(name, length) >> 16) & (size - 1);
    while (names[i].name && (strncmp(names[i].name, name, length) != 0 || names[i].name[length])) {
        i = (i + 1) & (size - 1);
    }
    return &names[i];
}

/* Returns the length of a name without its suffix (".1" in "x.1"), and sets *suffix to the number in the suffix, or to
   1 if there is none.  If two values have the same name, the later one gets the next suffix, as in setDebugName of
   PyTorch (x, x.1, x.2). */
OPDI_INTERNAL int opdi_graph_name_base(const char *name, int32_t *suffix) {
    const char *const dot = strrchr(name, '.');
    const bool numbered = dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1) && strlen(dot) < 8;
    *suffix = numbered ? (int32_t)strtol(dot + 1, NULL, 10) : 1;
    return (int)(numbered ? (size_t)(dot - name) : strlen(name));
}

OPDI_INTERNAL size_t opdi_graph_names_bytes(int64_t size) {
    return sizeof(opdi_graph_names) + (size_t)size * sizeof(opdi_graph_name);
}
OPDI_INTERNAL void opdi_graph_names_free(opdi_graph_names *names) {
    if (names) { opdi_free(names, opdi_graph_names_bytes(names->size)); }
}
OPDI_INTERNAL void opdi_graph_forget_names(opd_graph *graph) {
    opdi_graph_names_free(graph->names);
    graph->names = NULL;
}
/* Marks the name of `value` as free, because the value gets another name or is removed. */
OPDI_INTERNAL void opdi_graph_names_release(opd_graph *graph, const opdi_gvalue *value) {
    opdi_graph_names *const names = graph->names;
    int32_t suffix;
    if (!names || !value->name) { return; }
    int base = opdi_graph_name_base(value->name, &suffix);
    if (!value->name[base]) { return; }
    opdi_graph_name *slot = opdi_graph_name_slot(names->slots, names->size, value->name, (size_t)base);
    if (slot->name) { slot->suffix = OPDI_MIN(slot->suffix, suffix); }
}

OPDI_ONCE_END
OPDI_COLD_BEGIN

//== the order of nodes, and the uses of values ========================================================================
//
//  A graph numbers its nodes and lists the uses of its values when a function asks for them.  After that, functions
//  that add, remove or change one node keep both up to date.  All other changes end with opdi_graph_changed, which
//  forgets them.

#define OPDI_ORDER_GAP ((int64_t)1 << 32)         /* the distance of two nodes that are numbered together */

/* Numbers the nodes of a block; the numbers grow from node to node. */
static void opdi_gblock_order(opdi_gblock *block) {
    int64_t order = 0;
    for (opdi_gnode *node = block->first; node; node = node->next) { node->order = order += OPDI_ORDER_GAP; }
}
/* Gives a new node a number between the numbers of its neighbours.  If there is none, numbers all nodes of the block.
   */
static void opdi_gnode_order(opdi_gnode *node) {
    const int64_t from = node->prev ? node->prev->order : node->next ? node->next->order - 2 * OPDI_ORDER_GAP : 0;
    const int64_t to = node->next ? node->next->order : from + 2 * OPDI_ORDER_GAP;
    node->order = from + (to - from) / 2;
    if (node->order == from) { opdi_gblock_order(node->block); }
}
/* Makes the members `order` of all nodes up to date. */
OPDI_INTERNAL void opdi_graph_order(opd_graph *graph) {
    if (graph->ordered) { return; }
    opdi_gblock_order(&graph->body);
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nblocks; i++) { opdi_gblock_order(&node->blocks[i]); }
    }
    graph->ordered = true;
}
/* Returns the number of blocks around a block. */
OPDI_INTERNAL int opdi_gblock_depth(const opdi_gblock *block) {
    int depth = 0;
    while (block->owner) { block = block->owner->block, depth++; }
    return depth;
}
/* Returns true if the results of a node (NULL: the inputs of the block `made`) can be used at a place: before the node
   `at` of the block `place`, or at the end of this block if `at` is NULL. */
OPDI_INTERNAL bool opdi_graph_sees(opd_graph *graph, const opdi_gblock *made, const opdi_gnode *node,
                                   const opdi_gblock *place, const opdi_gnode *at) {
    opdi_graph_order(graph);
    for (int depth = opdi_gblock_depth(place) - opdi_gblock_depth(made); depth > 0; depth--) {
        at = place->owner;
        place = at->block;
    }
    return place == made && (!node || !at || node->order < at->order);
}

static void opdi_guse_link(opdi_graph_uses *users, int32_t at, opdi_gvalue *value) {
    opdi_guse *const use = &users->uses[at];
    use->value = value;
    use->next = -1;
    use->prev = value->last_use;
    if (use->prev >= 0) { users->uses[use->prev].next = at; } else { value->first_use = at; }
    value->last_use = at;
}
static void opdi_guse_unlink(opdi_graph_uses *users, int32_t at) {
    const opdi_guse *const use = &users->uses[at];
    if (use->prev >= 0) { users->uses[use->prev].next = use->next; } else { use->value->first_use = use->next; }
    if (use->next >= 0) { users->uses[use->next].prev = use->prev; } else { use->value->last_use = use->prev; }
}
/* Adds the uses of `count` values, by the inputs of a node or by the outputs of a block.  Writes the number of the
   first use to *at.  Returns 0, or -1 and sets an error. */
static int opdi_graph_uses_add(opdi_graph_uses *users, opdi_gnode *node, opdi_gblock *block,
                               opdi_gvalue *const *values, int32_t count, int32_t *at) {
    void *uses = users->uses;
    while (users->count + count > users->cap) {
        if (users->count + count > INT32_MAX / 2 ||
            opdi_grow(&uses, users->cap, &users->cap, sizeof *users->uses)) {
            return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "the graph has more than 2^30 uses of values") : -1;
        }
        users->uses = (opdi_guse *)uses;
    }
    *at = (int32_t)users->count;
    for (int32_t i = 0; i < count; i++) {
        opdi_guse *const use = &users->uses[users->count];
        use->node = node;
        use->block = block;
        use->index = i;
        opdi_guse_link(users, (int32_t)users->count++, values[i]);
    }
    return 0;
}
/* Adds the uses of values by a node and by its blocks.  Returns 0, or -1 and sets an error. */
static int opdi_gnode_enter_uses(opdi_graph_uses *users, opdi_gnode *node) {
    for (int32_t i = 0; i < node->nout; i++) { node->out[i]->first_use = node->out[i]->last_use = -1; }
    for (int32_t k = 0; k < node->nblocks; k++) {
        const opdi_gblock *const block = &node->blocks[k];
        for (int32_t i = 0; i < block->ninputs; i++) { block->inputs[i]->first_use = block->inputs[i]->last_use = -1; }
    }
    return opdi_graph_uses_add(users, node, NULL, node->in, node->nin, &node->uses_at);
}
static int opdi_graph_uses_make(opd_graph *graph, opdi_graph_uses *users) {
    for (int32_t i = 0; i < graph->ninputs; i++) { graph->inputs[i]->first_use = graph->inputs[i]->last_use = -1; }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (opdi_gnode_enter_uses(users, node)) { return -1; }
    }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t k = 0; k < node->nblocks; k++) {
            opdi_gblock *const block = &node->blocks[k];
            if (opdi_graph_uses_add(users, NULL, block, block->outputs, block->noutputs, &block->uses_at)) {
                return -1;
            }
        }
    }
    return opdi_graph_uses_add(users, NULL, &graph->body, &graph->result, graph->result != NULL,
                               &graph->body.uses_at);
}
static void opdi_graph_uses_free(opdi_graph_uses *users) {
    if (!users) { return; }
    opdi_free(users->uses, (size_t)users->cap * sizeof *users->uses);
    opdi_free(users, sizeof *users);
}
/* Returns the uses of all values of a graph, or NULL if memory runs out.  Use 0 of the block
   graph->body is the use of graph->result. */
OPDI_INTERNAL opdi_graph_uses *opdi_graph_users(opd_graph *graph) {
    if (graph->users) { return graph->users; }
    opdi_graph_uses *const users = (opdi_graph_uses *)opdi_alloc(sizeof *users);
    if (!users) { return NULL; }
    memset(users, 0, sizeof *users);
    if (opdi_graph_uses_make(graph, users)) {
        opdi_graph_uses_free(users);
        return NULL;
    }
    return graph->users = users;
}
/* Makes use number `at` a use of `value`. */
OPDI_INTERNAL void opdi_guse_move(opdi_graph_uses *users, int32_t at, opdi_gvalue *value) {
    opdi_guse_unlink(users, at);
    opdi_guse_link(users, at, value);
}

//== building ==========================================================================================================

OPDI_INTERNAL opd_graph *opdi_graph_new(void) {
    opd_graph *graph = (opd_graph *)opdi_alloc(sizeof *graph);
    if (graph) {
        memset(graph, 0, sizeof *graph);
        graph->refs = 1;
    }
    return graph;
}

/* Frees the plan of a graph that has changed; the next run makes a new one.  A kernel may change the graph that runs
   it: then the run keeps its plan. */
OPDI_INTERNAL void opdi_graph_replan(opd_graph *graph) {
    graph->changes++;
    if (graph->plan) {
        graph->plan->next = graph->old_plans;
        graph->old_plans = graph->plan;
    }
    graph->plan = NULL;
    while (graph->old_plans && graph->refs <= 1) {
        opdi_graph_plan *const plan = graph->old_plans;
        graph->old_plans = plan->next;
        opdi_free(plan, plan->bytes);
    }
}
/* Forgets what was computed from the nodes of a graph, because the graph has changed. */
OPDI_INTERNAL void opdi_graph_changed(opd_graph *graph) {
    opdi_graph_replan(graph);
    graph->counted = graph->ordered = false;
    opdi_graph_uses_free(graph->users);
    graph->users = NULL;
}

/* Releases the value of a constant.  An object in a constant is a generator. */
OPDI_INTERNAL void opdi_constant_drop(opd_value constant) {
    if (constant.tag == OPD_TAG_OBJECT) { opd_generator_free((opd_generator *)constant.u.object); }
    else { opdi_value_drop(constant); }
}
/* Releases what a node holds: a constant, or the data of a function. */
OPDI_INTERNAL void opdi_gnode_drop(opdi_gnode *node) {
    if (node->kind == OPDI_GNODE_CONSTANT) { opdi_constant_drop(node->constant); }
    if (node->kind != OPDI_GNODE_FUNCTION || !(node->function->flags & OPDI_GFUNCTION_COUNTED)) { return; }
    opdi_guser *const user = (opdi_guser *)(uintptr_t)node->user;
    if (!opdi_ref_down(&user->refs)) { user->destroy(user); }
}
/* Adds a reference to a graph that begins to run; opd_graph_free drops it.  So the graph is freed when it has ended. */
OPDI_INTERNAL opd_graph *opdi_graph_keep(const opd_graph *graph) {
    opd_graph *const kept = (opd_graph *)(uintptr_t)graph;
    if (kept) { opdi_ref_up(&kept->refs); }
    return kept;
}
void opd_graph_free(opd_graph *graph) {
    if (!graph || opdi_ref_down(&graph->refs)) { return; }
    opdi_graph_changed(graph);
    opdi_planned_free(graph->memory);
    opdi_graph_forget_names(graph);
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        opdi_gnode_drop(node);
    }
    if (graph->kept) { graph->home->drop(graph->kept); }
    opdi_gspace_drop(graph->space);
    opdi_arena_free(&graph->arena);
    opdi_free(graph, sizeof *graph);
}

/* Returns `size` bytes of zeros from the graph's arena, or NULL if memory runs out.  The result is not NULL even if
   `size` is 0. */
OPDI_INTERNAL void *opdi_graph_alloc(opd_graph *graph, size_t size) {
    void *memory = opdi_arena_alloc(&graph->arena, size + 8);
    if (memory) { memset(memory, 0, size + 8); }
    return memory;
}

/* Makes a value with the next number and the tag `tag`.  The value is a result of `node`, or an input if `node` is
   NULL.  Returns the value, or NULL if memory runs out. */
OPDI_INTERNAL opdi_gvalue *opdi_gvalue_new(opd_graph *graph, opdi_gnode *node, int32_t tag) {
    opdi_gvalue *value = (opdi_gvalue *)opdi_graph_alloc(graph, sizeof *value);
    if (!value) { return NULL; }
    value->graph = graph;
    value->node = node;
    value->id = graph->next_id++;
    value->tag = tag;
    value->dtype = -1;
    return value;
}

/* Stores the dtype, sizes, strides, device and requires_grad of `tensor` in `value`.  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_gvalue_describe(opd_graph *graph, opdi_gvalue *value, const opd_tensor *tensor) {
    value->tag = OPD_TAG_TENSOR;
    value->open = NULL;
    value->dims = (int64_t *)opdi_graph_alloc(graph, 2 * (size_t)tensor->ndim * sizeof(int64_t));
    if (!value->dims) { return -1; }
    memcpy(value->dims, tensor->dims, 2 * (size_t)tensor->ndim * sizeof(int64_t));
    value->dtype = tensor->dtype;
    value->ndim = tensor->ndim;
    const opd_device device = opd_tensor_device(tensor);   /* of a fake: the device that it stands for */
    value->backend = (uint8_t)device.type;
    value->index = (int8_t)device.index;
    value->requires_grad = opdi_requires_grad(tensor);
    return 0;
}

/* Makes a node with space for `nin` inputs and `nout` outputs; the caller inserts it into the graph.  Returns the node,
   or NULL and sets an error if memory runs out or a limit is reached. */
OPDI_INTERNAL opdi_gnode *opdi_gnode_new(opd_graph *graph, opdi_gkind kind, int32_t nin, int32_t nout) {
    if (opdi_node_denied()) { return NULL; }
    opdi_gnode *node = (opdi_gnode *)opdi_graph_alloc(graph, sizeof *node);
    if (!node) { return NULL; }
    node->kind = kind;
    node->nin = nin;
    node->nout = nout;
    node->born = graph->born;
    node->in = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)(nin + nout) * sizeof *node->in);
    if (!node->in) { return NULL; }
    node->out = node->in + nin;
    return node;
}
/* Inserts a node at the graph's insertion point.  Keeps the order and the uses up to date, if the graph has them. */
OPDI_INTERNAL void opdi_gnode_append(opd_graph *graph, opdi_gnode *node) {
    opdi_gblock *const block = graph->into ? graph->into : &graph->body;
    node->block = block;
    node->next = graph->at;
    node->prev = graph->at ? graph->at->prev : block->last;
    if (node->prev) { node->prev->next = node; } else { block->first = node; }
    if (node->next) { node->next->prev = node; } else { block->last = node; }
    opdi_graph_replan(graph);
    for (int i = 0; graph->counted && i < node->nin; i++) { node->in[i]->uses++; }
    if (graph->ordered) { opdi_gnode_order(node); }
    if (graph->users && opdi_gnode_enter_uses(graph->users, node)) { opdi_graph_changed(graph); }
}

/* Prepares the removal of a node without blocks: subtracts its uses of values.  Keeps the uses up to date, if the graph
   has them. */
OPDI_INTERNAL void opdi_gnode_leave(opd_graph *graph, opdi_gnode *node) {
    opdi_graph_replan(graph);
    for (int32_t i = 0; i < node->nin; i++) {
        if (graph->counted) { node->in[i]->uses--; }
        if (graph->users) { opdi_guse_unlink(graph->users, node->uses_at + i); }
    }
}

/* Makes `value` the constant of a node: copies a text or complex number into the graph, and takes a reference to a
   tensor, cell or generator.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gnode_keep(opd_graph *graph, opdi_gnode *node, const opd_value *value) {
    node->constant = *value;
    if (value->tag == OPD_TAG_STR || value->tag == OPD_TAG_COMPLEX) {
        char *const at = (char *)opdi_graph_alloc(graph, (size_t)OPDI_MAX(opdi_value_bytes(value, 0), 0));
        if (!at) { return -1; }
        (void)opdi_value_copy(&node->constant, at);
    }
    if (value->tag == OPD_TAG_TENSOR) { opdi_retain(value->u.t); }
    if (value->tag == OPD_TAG_CELL) { opdi_ref_up(&opdi_cell_of(value)->refs); }
    if (value->tag == OPD_TAG_OBJECT) { opdi_ref_up(&((opd_generator *)value->u.object)->refs); }
    return 0;
}
/* Adds a constant node and returns its value, or NULL if memory runs out.  The graph takes a reference to a tensor or
   cell.  An object must be a generator, to which the graph also takes a reference. */
OPDI_INTERNAL opdi_gvalue *opdi_graph_constant(opd_graph *graph, const opd_value *value) {
    opdi_gnode *node = opdi_gnode_new(graph, OPDI_GNODE_CONSTANT, 0, 1);
    opdi_gvalue *out = node ? opdi_gvalue_new(graph, node, value->tag) : NULL;
    if (!out) { return NULL; }
    node->out[0] = out;
    if (value->tag == OPD_TAG_TENSOR && opdi_gvalue_describe(graph, out, value->u.t)) { return NULL; }
    if (value->tag == OPD_TAG_OBJECT) { out->type = opdi_gtype_simple(OPDI_GTYPE_GENERATOR); }
    if (opdi_gnode_keep(graph, node, value)) { return NULL; }
    opdi_gnode_append(graph, node);
    return out;
}

/* Adds a list or tuple of `count` values.  `word` is the name of the element type, `tag` the tag of the list.  Returns
   the value of the new node, or NULL if memory runs out. */
OPDI_INTERNAL opdi_gvalue *opdi_graph_list(opd_graph *graph, opdi_gkind kind, int32_t tag, const char *word,
                                           opdi_gvalue *const *values, int32_t count) {
    opdi_gnode *node = opdi_gnode_new(graph, kind, count, 1);
    opdi_gvalue *out = node ? opdi_gvalue_new(graph, node, tag) : NULL;
    if (!out) { return NULL; }
    memcpy(node->in, values, (size_t)count * sizeof *values);
    node->word = word;
    node->out[0] = out;
    opdi_gnode_append(graph, node);
    return out;
}

OPDI_INTERNAL const opdi_graph_list_row opdi_graph_list_rows[] = {
    {OPD_TAG_INTS, OPD_TAG_INT, "int"}, {OPD_TAG_FLOATS, OPD_TAG_FLOAT, "float"}, {OPD_TAG_BOOLS, OPD_TAG_BOOL, "bool"},
    {OPD_TAG_TENSORS, OPD_TAG_TENSOR, "Tensor"}, {OPD_TAG_LIST, -1, "Scalar"}};

/* Adds a constant node for `value`; for a list, also one for each element.  Returns the value of the graph, or NULL and
   sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_graph_constants(opd_graph *graph, const opd_value *value) {
    opdi_gvalue **list;
    int row = 0;
    if (!opdi_is_list(value)) { return opdi_graph_constant(graph, value); }
    while (row < 4 && opdi_graph_list_rows[row].list != value->tag) { row++; }
    if (!(list = (opdi_gvalue **)opdi_scope_alloc(((size_t)value->n + 1) * sizeof *list))) { return NULL; }
    for (int32_t k = 0; k < value->n; k++) {
        const opd_value element = value->tag == OPD_TAG_TENSORS ? opd_value_tensor(value->u.tensors[k])
            : opdi_list_element(value, k);
        if (!(list[k] = opdi_graph_constants(graph, &element))) { return NULL; }
    }
    return opdi_graph_list(graph, OPDI_GNODE_LIST, value->tag, opdi_graph_list_rows[row].word, list, value->n);
}
/* Makes space for `count` inputs in a graph.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_graph_reserve_inputs(opd_graph *graph, int32_t count) {
    const int32_t capacity = OPDI_MAX(count, 2 * graph->capacity);
    opdi_gvalue **more;
    if (count && count <= graph->capacity) { return 0; }
    if (!(more = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)capacity * sizeof *more))) { return -1; }
    if (graph->ninputs) { memcpy(more, graph->inputs, (size_t)graph->ninputs * sizeof *more); }
    graph->inputs = more;
    graph->capacity = capacity;
    return 0;
}
OPDI_COLD_END
