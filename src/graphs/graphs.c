//----------------------------------------------------------------------------------------------------------------------
//  >>graphs       recording operators into a graph, printing it, passes
//
//  A graph is a list of nodes over values; constants and lists are nodes too, as in TorchScript's text. The kernel at
//  the Tracer key records a call and redispatches. Knows operators by their schemas alone.
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPD_NO_GRAPHS)

OPDI_SHARED int opdi_tracer_kernel(opd_call *call);
#if defined(OPDI_CORE)

struct opdi_gnode;
/* Computes a node's results of its arguments, in C: tensors among them are references; 0, or -1 with an error and
   none. */
typedef int (*opdi_gfunction_run)(const struct opdi_gnode *node, const opd_value *args, opd_value *rets);
/* What a node calls that is no operator.  effects: it does more than make its results. */
typedef struct opdi_gfunction { const char *name; opdi_gfunction_run run; bool effects; } opdi_gfunction;
/* A function of values that is no operator.  What it gives in rets are references.  0, or -1 with an error. */
typedef struct opdi_bcall {
    const opd_value *args;
    opd_value *rets;
    int32_t nargs, nrets;
    const struct opdi_gnode *node;
    const struct opdi_builtin *builtin;
} opdi_bcall;
enum {
    OPDI_BUILTIN_STAYS = 1,                       /* it does more than make its results */
    OPDI_BUILTIN_ANY = 2                          /* takes and gives any number of values; the schema is its name */
};
typedef struct opdi_builtin {
    const char *schema;                           /* as PyTorch registers it */
    int (*run)(opdi_bcall *call);
    int32_t flags;
    int32_t what;                                 /* for `run`, where it serves several */
} opdi_builtin;

typedef enum opdi_gkind {
    OPDI_G_OP, OPDI_G_CONSTANT, OPDI_G_LIST, OPDI_G_TUPLE, OPDI_G_UNPACK,
    OPDI_G_IF,                                    /* of a bool: two blocks, of which one runs and gives the results */
    OPDI_G_LOOP,                                  /* of the most rounds, a first condition, and what is carried on */
    OPDI_G_BUILTIN,                               /* a C function of values, see opdi_builtin */
    OPDI_G_FUNCTION                               /* a C function with what it needs, see opdi_gfunction */
} opdi_gkind;

/* A value of a graph, and what is known of it. tag: OPD_TAG_*; NONE is NoneType; LIST made by a tuple node is the tuple
   of the outputs.  type: NULL where the tag says it all. */
typedef struct opd_graph_value {
    const char *name;                             /* "x.1", or NULL: its number */
    opd_graph *graph;                             /* NULL: it has been taken away */
    struct opdi_gnode *node;                      /* NULL: an input of the graph */
    int32_t id, tag;
    int32_t uses;
    int8_t dtype;                                 /* tensors: what the traced one had; -1: not known */
    uint8_t ndim, backend;
    int8_t index;
    bool requires_grad;
    int64_t *dims;                                /* sizes, strides */
    struct opd_graph_value *same;                 /* in opd_graph_cse: what takes its place */
    int32_t slot;                                 /* of a run, see opdi_gplan */
    uint8_t nesting;                              /* lists: of lists */
    bool live, first;                             /* while a plan is made: used further down; in the first block */
    const opdi_gtype *type;
    struct opdi_gblock *block;                    /* an input of this block; NULL: of the graph, or a node's result */
} opdi_gvalue;

/* A block of nodes.  Those inside of a node see the values of the blocks around it. */
typedef struct opdi_gblock {
    struct opdi_gnode *first, *last;
    struct opdi_gnode *owner;                     /* NULL: the graph's own block, whose ends are in the graph */
    opdi_gvalue **inputs, **outputs;              /* a loop's: round, what is carried; condition, what goes on */
    int32_t ninputs, noutputs;
    int32_t entry, nentry;                        /* while a plan is made: what is let go when it begins */
    int32_t end, nend;                            /* and behind it */
} opdi_gblock;

/* A node of a graph: it makes the values `out` of the values `in`. */
typedef struct opdi_gnode {
    struct opdi_gnode *next, *prev;
    opdi_gkind kind;
    int32_t nin, nout;
    opdi_gvalue **in, **out;
    opd_op *op;
    const opdi_gfunction *function;
    const void *user;                             /* of the function */
    opd_value constant;                           /* tensors: a reference; what it points to is in the graph's arena */
    const char *word;                             /* a list's element type, as printed */
    const char *place;                            /* "FILE:LINE" of the call, or NULL */
    void **frames;                                /* while it is recorded: where that is */
    int32_t nframes;
    bool fixed;                                   /* a constant or a list of them, see opdi_gnode_fix */
    bool light;                                   /* a list that only operators see: made in the run's own memory */
    opdi_gblock *block;                           /* where it stands */
    opdi_gblock *blocks;                          /* its own */
    int32_t nblocks;
    int32_t drops, ndrops;                        /* while a plan is made: what is let go behind it */
    int32_t starts, nstarts;                      /* and when a loop has begun */
    const struct opdi_builtin *builtin;
    const char *attribute;                        /* GetAttr[name="weight"] */
    bool called;                                  /* while a script is compiled: of a function that another one calls */
} opdi_gnode;

/* What a step does.  The first is all that graphs of tensors have, besides lists and their parts. */
typedef enum opdi_gcode {
    OPDI_STEP_OP, OPDI_STEP_OP_CELLS, OPDI_STEP_LIST, OPDI_STEP_UNPACK, OPDI_STEP_MAKE, OPDI_STEP_BUILTIN,
    OPDI_STEP_FUNCTION, OPDI_STEP_IF, OPDI_STEP_JUMP, OPDI_STEP_LOOP, OPDI_STEP_NEXT, OPDI_STEP_DROP
} opdi_gcode;
/* One step of a run.  Its slots, in the plan's `slots` from `slots` on: those of its arguments, then those of its
   results, then those of values that have their last use here (ndrop of them). */
typedef struct opdi_gstep {
    const opdi_gnode *node;
    int32_t slots, nin, nout, ndrop;
    int32_t code;                                 /* opdi_gcode */
    int32_t target;                               /* jumps: the step to go on with; lists: bytes of scratch in front */
    int32_t extra;                                /* loops: two slots, the round and the most */
    int32_t inner;                                /* loops: slot of the block's first input */
} opdi_gstep;
/* The plan of a graph's runs: one block with the steps and the slots that they use. */
typedef struct opdi_gplan {
    size_t bytes, scratch;                        /* of this; for the lists that a run makes */
    int32_t nslots, nsteps, nrest, nowned;
    opd_value *start;                             /* the slots when a run begins: constants are there */
    opdi_gstep *steps;
    int32_t *slots, *rest, *owned;                /* rest: what is there when all steps are done; owned: all that may be
                                                     let go after an error */
    bool cells;                                   /* it has values that are no tensors */
} opdi_gplan;

struct opd_graph {
    opdi_arena arena;
    opdi_gblock body;
    opdi_gvalue **inputs;
    opdi_gvalue **outputs;                        /* flat */
    opdi_gvalue *result;                          /* what the text returns; NULL: nothing */
    int32_t ninputs, noutputs, next_id;
    int32_t room;                                 /* of `inputs` */
    opdi_gnode *at;                               /* new nodes go before this one; NULL: behind all of `into` */
    opdi_gblock *into;                            /* the block where nodes are inserted; NULL: body */
    opdi_gspace *space;                           /* of its types; NULL: none but simple ones */
    opdi_gplan *plan;                             /* NULL: made by the next run */
    opdi_planned *memory;                         /* that of runs; NULL: not yet known */
    struct opdi_gnames *names;                    /* of values; NULL: made by who asks for one */
    bool counted;                                 /* the values' `uses` are right */
    const struct opd_program *program;            /* whose graph it is; NULL: nobody's */
};

/* Returns the node that stands behind this one in the text, those of its blocks first; NULL behind the last. */
static opdi_gnode *opdi_gnode_after(const opdi_gnode *node) {
    for (int32_t i = 0; i < node->nblocks; i++) { if (node->blocks[i].first) { return node->blocks[i].first; } }
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
/* Returns the block that a value belongs to. */
static const opdi_gblock *opdi_gvalue_block(const opd_graph *graph, const opdi_gvalue *value) {
    return value->node ? value->node->block : value->block ? value->block : &graph->body;
}

OPDI_ONCE_BEGIN

//== names of values ===================================================================================================
//
//  A graph that is built by hand has a table of all names it has had, made by the first who asks.

typedef struct opdi_gnamed { const char *name; opdi_gvalue *value; int32_t suffix; } opdi_gnamed;
typedef struct opdi_gnames { int64_t size, used; opdi_gnamed *slots; /* behind the struct */ } opdi_gnames;

/* Returns the slot where a name is, or where it would go. */
static opdi_gnamed *opdi_gnamed_slot(opdi_gnamed *names, int64_t size, const char *name, size_t length) {
    int64_t i = (int64_t)(opdi_hash(name, length) >> 16) & (size - 1);
    while (names[i].name && (strncmp(names[i].name, name, length) != 0 || names[i].name[length])) {
        i = (i + 1) & (size - 1);
    }
    return &names[i];
}

/* Returns the length of a name without its number (x.1), and that number, or 1.  Values whose name is taken get the
   next number, as setDebugName does it (x, x.1, x.2). */
static int opdi_gname_base(const char *name, int32_t *suffix) {
    const char *const dot = strrchr(name, '.');
    const bool numbered = dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1) && strlen(dot) < 8;
    *suffix = numbered ? (int32_t)strtol(dot + 1, NULL, 10) : 1;
    return (int)(numbered ? (size_t)(dot - name) : strlen(name));
}

static size_t opdi_gnames_bytes(int64_t size) { return sizeof(opdi_gnames) + (size_t)size * sizeof(opdi_gnamed); }
static void opdi_gnames_free(opdi_gnames *names) { if (names) { opdi_free(names, opdi_gnames_bytes(names->size)); } }
static void opdi_graph_forget_names(opd_graph *graph) {
    opdi_gnames_free(graph->names);
    graph->names = NULL;
}
/* Notes that the name of value is free from now on. */
static void opdi_gnames_release(opd_graph *graph, const opdi_gvalue *value) {
    opdi_gnames *const names = graph->names;
    int32_t suffix;
    if (!names || !value->name) { return; }
    int base = opdi_gname_base(value->name, &suffix);
    if (!value->name[base]) { return; }
    opdi_gnamed *slot = opdi_gnamed_slot(names->slots, names->size, value->name, (size_t)base);
    if (slot->name) { slot->suffix = OPDI_MIN(slot->suffix, suffix); }
}

OPDI_ONCE_END
OPDI_COLD_BEGIN

//== building ==========================================================================================================

static opd_graph *opdi_graph_new(void) {
    opd_graph *graph = (opd_graph *)opdi_alloc(sizeof *graph);
    if (graph) { memset(graph, 0, sizeof *graph); }
    return graph;
}

/* Notes that a graph has changed: the next run makes a new plan. */
static void opdi_graph_changed(opd_graph *graph) {
    if (graph->plan) { opdi_free(graph->plan, graph->plan->bytes); }
    graph->plan = NULL;
    graph->counted = false;
}

void opd_graph_free(opd_graph *graph) {
    if (!graph) { return; }
    opdi_graph_changed(graph);
    opdi_planned_free(graph->memory);
    opdi_graph_forget_names(graph);
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        if (node->kind == OPDI_G_CONSTANT) { opdi_value_drop(node->constant); }
    }
    opdi_gspace_drop(graph->space);
    opdi_arena_free(&graph->arena);
    opdi_free(graph, sizeof *graph);
}

/* Returns size zeroed bytes of the graph's arena, never NULL for size = 0; NULL without memory. */
static void *opdi_graph_alloc(opd_graph *graph, size_t size) {
    void *memory = opdi_arena_alloc(&graph->arena, size + 8);
    if (memory) { memset(memory, 0, size + 8); }
    return memory;
}

/* Makes a value of node node (NULL: an input) with the next number; NULL without memory. */
static opdi_gvalue *opdi_gvalue_new(opd_graph *graph, opdi_gnode *node, int32_t tag) {
    opdi_gvalue *value = (opdi_gvalue *)opdi_graph_alloc(graph, sizeof *value);
    if (!value) { return NULL; }
    value->graph = graph;
    value->node = node;
    value->id = graph->next_id++;
    value->tag = tag;
    value->dtype = -1;
    return value;
}

/* Notes in value what is known of tensor tensor: dtype, sizes, strides, device, requires_grad; 0, or
   -1 without memory. */
static int opdi_gvalue_describe(opd_graph *graph, opdi_gvalue *value, const opd_tensor *tensor) {
    value->tag = OPD_TAG_TENSOR;
    value->dims = (int64_t *)opdi_graph_alloc(graph, 2 * (size_t)tensor->ndim * sizeof(int64_t));
    if (!value->dims) { return -1; }
    memcpy(value->dims, tensor->dims, 2 * (size_t)tensor->ndim * sizeof(int64_t));
    value->dtype = tensor->dtype;
    value->ndim = tensor->ndim;
    value->backend = tensor->backend;
    value->index = (int8_t)opd_tensor_device(tensor).index;
    value->requires_grad = opdi_requires_grad(tensor);
    return 0;
}

/* Makes a node with room for inputs and outputs, not in the graph yet; NULL without memory. */
static opdi_gnode *opdi_gnode_new(opd_graph *graph, opdi_gkind kind, int32_t nin, int32_t nout) {
    opdi_gnode *node = (opdi_gnode *)opdi_graph_alloc(graph, sizeof *node);
    if (!node) { return NULL; }
    node->kind = kind;
    node->nin = nin;
    node->nout = nout;
    node->in = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)(nin + nout) * sizeof *node->in);
    if (!node->in) { return NULL; }
    node->out = node->in + nin;
    return node;
}
/* Puts a node into the graph, at the place where nodes are inserted. */
static void opdi_gnode_append(opd_graph *graph, opdi_gnode *node) {
    const bool counted = graph->counted;
    opdi_gblock *const block = graph->into ? graph->into : &graph->body;
    node->block = block;
    node->next = graph->at;
    node->prev = graph->at ? graph->at->prev : block->last;
    if (node->prev) { node->prev->next = node; } else { block->first = node; }
    if (node->next) { node->next->prev = node; } else { block->last = node; }
    opdi_graph_changed(graph);
    for (int i = 0; counted && i < node->nin; i++) { node->in[i]->uses++; }
    graph->counted = counted;
}

/* Adds a constant and returns its value; NULL without memory.  A tensor is held. */
static opdi_gvalue *opdi_graph_constant(opd_graph *graph, const opd_value *value) {
    opdi_gnode *node = opdi_gnode_new(graph, OPDI_G_CONSTANT, 0, 1);
    opdi_gvalue *out = node ? opdi_gvalue_new(graph, node, value->tag) : NULL;
    if (!out) { return NULL; }
    node->out[0] = out;
    node->constant = *value;
    if (value->tag == OPD_TAG_STR || value->tag == OPD_TAG_COMPLEX) {
        char *at = (char *)opdi_graph_alloc(graph, (size_t)OPDI_MAX(opdi_value_bytes(value, 0), 0));
        if (!at) { return NULL; }
        (void)opdi_value_copy(&node->constant, at);
    }
    if (value->tag == OPD_TAG_TENSOR) {
        if (opdi_gvalue_describe(graph, out, value->u.t)) { return NULL; }
        opdi_retain(value->u.t);
    } else if (value->tag == OPD_TAG_CELL) { opdi_ref_up(&opdi_cell_of(value)->refs); }
    opdi_gnode_append(graph, node);
    return out;
}

/* Adds a list or tuple of values and returns its value; word is the type of its elements.  NULL without memory. */
static opdi_gvalue *opdi_graph_list(opd_graph *graph, opdi_gkind kind, int32_t tag, const char *word,
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

/* The types of lists: tag of the list, tag of its elements, and the word for these. */
static const struct opdi_glist_row { int32_t list, element; const char *word; } opdi_glists[] = {
    {OPD_TAG_INTS, OPD_TAG_INT, "int"}, {OPD_TAG_FLOATS, OPD_TAG_FLOAT, "float"}, {OPD_TAG_BOOLS, OPD_TAG_BOOL, "bool"},
    {OPD_TAG_TENSORS, OPD_TAG_TENSOR, "Tensor"}, {OPD_TAG_LIST, -1, "Scalar"}};

/* Adds a value as constants of the graph, a list as one for each element; returns its value, or NULL with an error. */
static opdi_gvalue *opdi_graph_constants(opd_graph *graph, const opd_value *value) {
    opdi_gvalue **list;
    int row = 0;
    if (!opdi_is_list(value)) { return opdi_graph_constant(graph, value); }
    while (row < 4 && opdi_glists[row].list != value->tag) { row++; }
    if (!(list = (opdi_gvalue **)opdi_scope_alloc(((size_t)value->n + 1) * sizeof *list))) { return NULL; }
    for (int32_t k = 0; k < value->n; k++) {
        const opd_value element = value->tag == OPD_TAG_TENSORS ? opd_value_tensor(value->u.tensors[k])
            : opdi_list_element(value, k);
        if (!(list[k] = opdi_graph_constants(graph, &element))) { return NULL; }
    }
    return opdi_graph_list(graph, OPDI_G_LIST, value->tag, opdi_glists[row].word, list, value->n);
}
OPDI_COLD_END
#endif
#endif
