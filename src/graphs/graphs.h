//----------------------------------------------------------------------------------------------------------------------
//  >>graphs_h     graphs, their nodes and cells: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_GRAPHS_H)
#define OPDI_GRAPHS_H
#include "../transforms/transforms.h"

//== types =============================================================================================================

#if !defined(OPD_NO_GRAPHS)
typedef enum opdi_gtype_kind {
    OPDI_GTYPE_ANY, OPDI_GTYPE_NONE, OPDI_GTYPE_TENSOR, OPDI_GTYPE_INT, OPDI_GTYPE_FLOAT, OPDI_GTYPE_BOOL,
    OPDI_GTYPE_COMPLEX, OPDI_GTYPE_NUMBER, OPDI_GTYPE_STR, OPDI_GTYPE_DEVICE, OPDI_GTYPE_GENERATOR, OPDI_GTYPE_STREAM,
    OPDI_GTYPE_ANYLIST, OPDI_GTYPE_ANYTUPLE, OPDI_GTYPE_ANYCLASS, OPDI_GTYPE_ANYENUM, OPDI_GTYPE_FUNCTION,
    OPDI_GTYPE_STORAGE, OPDI_GTYPE_QSCHEME, OPDI_GTYPE_CAPSULE,
    OPDI_GTYPE_NSIMPLE,                           /* number of types without parts */
    OPDI_GTYPE_VAR = OPDI_GTYPE_NSIMPLE, OPDI_GTYPE_LIST, OPDI_GTYPE_DICT, OPDI_GTYPE_TUPLE, OPDI_GTYPE_OPTIONAL,
    OPDI_GTYPE_UNION, OPDI_GTYPE_FUTURE, OPDI_GTYPE_CLASS
} opdi_gtype_kind;
/* A static type.  Each type without parts exists once in the program; all other types belong to a space
   (opdi_gspace). */
typedef struct opdi_gtype {
    int32_t kind, nparts;                         /* kind: an opdi_gtype_kind; nparts: number of `parts` */
    int32_t size, depth;                          /* the number of types in the text of this type, and how deep they are
                                                     nested; 0 and 0 of a type that has no parts */
    const struct opdi_gtype *const *parts;
    struct opdi_gclass *klass;                    /* the class of a class type or named tuple; else NULL */
    const char *word;                             /* the name of a type variable; else NULL */
    struct opdi_gtype *next;                      /* the next type in the same hash chain of its space */
} opdi_gtype;
typedef enum opdi_gclass_kind {
    OPDI_CLASS_OBJECT, OPDI_CLASS_MODULE, OPDI_CLASS_NAMEDTUPLE, OPDI_CLASS_ENUM, OPDI_CLASS_INTERFACE
} opdi_gclass_kind;
typedef struct opdi_gattribute {
    const char *name;
    const opdi_gtype *type;
    int32_t flags;                                /* tell if it is a parameter, buffer or constant; only the code that
                                                     made the class reads them */
} opdi_gattribute;
/* A class.  Its attributes are numbered; an object stores them in slots with these numbers. */
typedef struct opdi_gclass {
    const char *name;                             /* the qualified name, such as "__torch__.M" */
    struct opdi_gspace *space;
    const opdi_gtype *type;                       /* the type of its objects; if the class is a named tuple, the parts
                                                     of the type are the fields */
    opdi_gclass_kind kind;
    bool open;                                    /* true: the definition is not known (yet), so each attribute is added
                                                     when it is first used */
    int32_t nattributes, capacity;
    opdi_gattribute *attributes;
    opdi_index slots;                             /* the attributes by their names */
    void *user;                                   /* data of the code that made the class, such as its methods */
    /* Compares two objects, so that lists of them can be sorted.  Returns 1 if `first` is less than `second`, 0 if not,
       or -1 and sets an error.  NULL if objects of the class have no order. */
    int (*less)(const struct opdi_gclass *klass, const opd_value *first, const opd_value *second);
    const struct opd_graph *lt;                   /* the method __lt__(self, other) of the class, which `less` runs */
} opdi_gclass;
typedef struct opdi_gspace {
    int32_t refs;
    opdi_arena arena;
    opdi_gtype **chains;                          /* [nchains] a hash table of all types */
    size_t nchains, ntypes;
    opdi_index classes;                           /* the newest class of each name */
    void (*end)(struct opdi_gspace *space);       /* called when the last reference to the space is dropped; NULL:
                                                     nothing is called */
} opdi_gspace;
#define OPDI_MAX_GTYPE_DEPTH 64
#define OPDI_GTYPE_PARTS 16      /* the types that opdi_gtype_read_parts reads without memory of the space */
#endif

//== cells =============================================================================================================

#if !defined(OPD_NO_GRAPHS)
typedef struct opdi_cell {
    int32_t refs;
    uint8_t kind;                                 /* an opd_cell_kind */
    uint8_t tag;                                  /* in a list: OPD_TAG_INTS, ..., which tells how the elements are
                                                     stored */
    int64_t count, cap;                           /* are counted in elements; in a str, in bytes; in a dict, in pairs;
                                                     in an object, in slots */
    union {
        void *data;                               /* `cap` elements, which follow the cell or are in a separate block */
        char *text;
        double *pair;
        int64_t *ints;
        double *floats;
        bool *bools;
        opd_tensor **tensors;
        opd_value *values;                        /* in a dict: key, value, key, value, and so on */
    } u;
    opdi_gclass *klass;                           /* the class of an object or named tuple, else NULL; the cell holds a
                                                     reference to the class's space */
    int32_t *index;                               /* in a dict: a hash table (open addressing) of pair numbers + 1;
                                                     NULL: keys are compared one by one */
    int64_t index_size;
    struct opdi_cell *next;                       /* the next cell in a list of cells to free */
} opdi_cell;
#define OPDI_MAX_CELL_DEPTH 64
#endif

//== cell texts ========================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* A text that grows.  If memory runs out, `failed` becomes true and an error is set. */
typedef struct opdi_text_builder { char *text; int64_t length, cap; bool failed; } opdi_text_builder;
#endif

//== graphs ============================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* A C function that computes a node's results from the arguments `args`.  Stores a reference of each result in `rets`
   and returns 0.  On failure, stores no results, returns -1 and sets an error. */
typedef int (*opdi_gfunction_run)(const struct opd_graph_node *node, const opd_value *args, opd_value *rets);
/* A C function, not an operator, that a node calls. */
typedef struct opdi_gfunction { const char *name; opdi_gfunction_run run; int32_t flags; } opdi_gfunction;
enum {
    OPDI_GFUNCTION_EFFECTS = 1,                   /* the function has side effects */
    OPDI_GFUNCTION_COUNTED = 2,                   /* node->user is an opdi_guser.  Without the flag, it belongs to the
                                                     program that owns the graph */
    OPDI_GFUNCTION_DRAWS = 4                      /* the function may draw random numbers */
};
/* The first member of the data of a counted function: each node that has the data holds a reference. */
typedef struct opdi_guser { int32_t refs; void (*destroy)(struct opdi_guser *user); } opdi_guser;
/* A call of a builtin: a C function, not an operator, that has a TorchScript schema and whose arguments and results are
   values.  The function stores references of its results in `rets`, and returns 0, or -1 and sets an error. */
typedef struct opdi_bcall {
    const opd_value *args;
    opd_value *rets;
    int32_t nargs, nrets;
    const struct opd_graph_node *node;
    const struct opdi_builtin *builtin;
} opdi_bcall;
enum {
    OPDI_BUILTIN_STAYS = 1,                       /* the builtin has side effects, so calls remain even if their results
                                                     are not used */
    OPDI_BUILTIN_ANY = 2                          /* the builtin takes and returns any number of values, and has only a
                                                     name instead of a schema */
};
typedef struct opdi_builtin {
    const char *schema;                           /* the schema that PyTorch registers */
    int (*run)(opdi_bcall *call);
    int32_t flags;
    int32_t what;                                 /* tells `run` what to compute, if several builtins share the
                                                     function */
} opdi_builtin;
typedef enum opdi_gkind {
    OPDI_GNODE_OP, OPDI_GNODE_CONSTANT, OPDI_GNODE_LIST, OPDI_GNODE_TUPLE, OPDI_GNODE_UNPACK,
    OPDI_GNODE_IF,                                /* takes a bool and runs one of its two blocks, whose outputs become
                                                     the results */
    OPDI_GNODE_LOOP,                              /* takes the maximum number of rounds, a condition, and the initial
                                                     carried values */
    OPDI_GNODE_BUILTIN,                           /* calls a C function with a TorchScript schema (see opdi_builtin) */
    OPDI_GNODE_FUNCTION                           /* calls a C function with its own data (see opdi_gfunction) */
} opdi_gkind;
/* A value of a graph, with the properties that are known.  `tag` is an OPD_TAG_*: NONE means NoneType, and LIST means a
   tuple if the value's node is a tuple and `type` is NULL.  `type` is NULL if the tag alone tells the type. */
typedef struct opd_graph_value {
    const char *name;                             /* such as "x.1"; NULL: the value is printed as its number `id` */
    opd_graph *graph;                             /* NULL if the value was removed */
    struct opd_graph_node *node;                      /* the node that computes the value; NULL if it is an input */
    int32_t id, tag;
    int32_t uses;
    int32_t dtype;                                /* of a tensor: the dtype that the traced tensor had, or -1 if it is
                                                     unknown */
    uint8_t ndim, backend;
    int8_t index;                                 /* of a tensor: the index of its device */
    bool requires_grad;
    int64_t *dims;                                /* of a tensor: the sizes and then the strides */
    const char *by_data;                          /* of a fake, in a trace: its sizes, such as "(u0, 3)", of which some
                                                     depend on data; else NULL */
    const struct opdi_gexpr **open;               /* in a graph with open sizes: the expressions of `dims`, or of an
                                                     integer; NULL: they are not known.  An element may be NULL: then
                                                     it is the number in `dims` */
    struct opd_graph_value *same;                 /* in opd_graph_cse: the value that replaces this one */
    int32_t slot;                                 /* the number of the value's slot in runs (see opdi_graph_plan) */
    uint8_t nesting;                              /* of a list: the depth of nesting */
    bool live, first;                             /* used while a plan is made.  live: a node after the current node
                                                     uses the value; first: the first block of the current If uses the
                                                     value */
    const opdi_gtype *type;
    struct opd_graph_block *block;                /* the inner block of which the value is an input; else NULL */
    int32_t first_use, last_use;                  /* see opdi_graph_uses */
    struct opd_graph_value *alias;                /* see opdi_graph_alias */
    uint64_t mark;                                /* of the root of an alias set: equal to graph->mark if a function has
                                                     marked the set */
} opdi_gvalue;
/* The stack that functions over the blocks of a graph need for each block in a block. */
#define OPDI_STACK_OF_BLOCK (OPDI_STACK_CALL / 64)
/* A block of nodes.  Nodes of an inner block can use values of the blocks that contain it. */
typedef struct opd_graph_block {
    struct opd_graph_node *first, *last;
    struct opd_graph_node *owner;                     /* the node that has the block; NULL: the block is the body of a
                                                     graph, and has no `inputs` and `outputs` itself (see opd_graph) */
    opdi_gvalue **inputs, **outputs;              /* in a loop, the inputs are the number of the round and the carried
                                                     values, and the outputs the condition and the new carried values */
    int32_t ninputs, noutputs;
    int32_t depth;                                /* the number of blocks around it; set by opdi_graph_too_deep */
    int32_t entry, nentry;                        /* the values to release when the block begins: nentry entries of the
                                                     planner's array `slots`, from index `entry` on */
    int32_t end, nend;                            /* the values to release when the block ends: nend entries, from index
                                                     `end` on */
    int32_t uses_at;                              /* see opdi_graph_uses */
} opdi_gblock;
/* A node of a graph, which computes the values `out` from the values `in`. */
typedef struct opd_graph_node {
    struct opd_graph_node *next, *prev;
    opdi_gkind kind;
    int32_t nin, nout;
    opdi_gvalue **in, **out;
    opd_op *op;
    const opdi_gfunction *function;
    const void *user;                             /* passed to `function` */
    opd_value constant;                           /* of a constant: its value.  The node holds a reference to a tensor
                                                     or cell; other data is in the graph's arena. */
    const char *word;                             /* of a list: the name of the element type */
    const char *place;                            /* the source location of the call, "FILE:LINE", or NULL */
    void **frames;                                /* while a trace is recorded: the call stack, which later gives
                                                     `place` */
    int32_t nframes;
    bool fixed;                                   /* true for a constant, and for a list of constants; set by
                                                     opdi_gnode_fix */
    bool light;                                   /* true for a list that only operators use.  It does not need a cell:
                                                     a run stores it in its scratch memory. */
    opdi_gblock *block;                           /* the block that contains the node */
    opdi_gblock *blocks;                          /* the blocks of the node itself, if it is an If or a Loop */
    int32_t nblocks;
    int32_t drops, ndrops;                        /* the values to release after the node: ndrops entries of the
                                                     planner's array `slots`, from index `drops` on */
    int32_t starts, nstarts;                      /* in a Loop: the values to release when the loop begins: nstarts
                                                     entries, from index `starts` on */
    const struct opdi_builtin *builtin;
    const char *attribute;                        /* the text in brackets after the node's name, such as "weight" in
                                                     GetAttr[name="weight"] */
    bool called;                                  /* while a script is compiled: true if the node belongs to an inlined
                                                     function */
    bool gone;                                    /* true if the node was removed from the graph */
    bool chosen;                                  /* true if a search wants the node in a part */
    bool written;                                 /* of a constant: true if the last search for parts has found that
                                                     a node writes its memory */
    int32_t born;                                 /* graph->born when the node was made */
    int32_t uses_at;                              /* see opdi_graph_uses */
    int64_t order;                                /* grows from node to node of a block; see opdi_graph_order */
    uint64_t mark;                                /* equal to graph->mark if a function has marked the node */
} opdi_gnode;
/* A use of a value: as input number `index` of a node or, if `node` is NULL, as output number `index` of a block. */
typedef struct opdi_guse {
    opdi_gvalue *value;
    opdi_gnode *node;
    opdi_gblock *block;
    int32_t index;
    int32_t next, prev;                           /* the next and the previous use of the same value; -1: none */
} opdi_guse;
/* All uses of all values of a graph.  The uses of a value form a list, from number value->first_use to
   value->last_use (-1: none).  The use by input i of a node has the number node->uses_at + i; the use by output i of a
   block, block->uses_at + i. */
typedef struct opdi_graph_uses {
    opdi_guse *uses;                              /* [cap] */
    int64_t count, cap;
} opdi_graph_uses;
/* The kinds of steps.  If all values of a graph are tensors, only OP, LIST and UNPACK occur. */
typedef enum opdi_gcode {
    OPDI_STEP_OP,                                 /* calls an operator */
    OPDI_STEP_OP_CELLS,                           /* calls an operator whose arguments or results may be cells */
    OPDI_STEP_LIST,                               /* makes a light list */
    OPDI_STEP_UNPACK,
    OPDI_STEP_MAKE,                               /* makes a cell for a list or tuple */
    OPDI_STEP_BUILTIN, OPDI_STEP_FUNCTION,
    OPDI_STEP_IF,                                 /* jumps to the second block if the condition is false */
    OPDI_STEP_JUMP,                               /* at the end of a block of an If: copies the block's outputs to the
                                                     results, and jumps to the end of the If */
    OPDI_STEP_LOOP, OPDI_STEP_NEXT,               /* begin the first and the next round of a loop, or jump to the end of
                                                     the loop */
    OPDI_STEP_DROP                                /* only releases values */
} opdi_gcode;
/* One step of a run.  Its slots are listed in the plan's array `slots`, from index `slots` on: `nin` arguments, `nout`
   results, and `ndrop` values that are released after the step. */
typedef struct opdi_gstep {
    const opdi_gnode *node;
    int32_t slots, nin, nout, ndrop;
    int32_t code;                                 /* an opdi_gcode */
    int32_t target;                               /* of a jump: the index of the next step; of a list: the offset of its
                                                     elements in the scratch memory */
    int32_t extra;                                /* of a loop: the first of two slots, for the number of the round and
                                                     the maximum number of rounds */
    int32_t inner;                                /* of a loop: the slot of the block's first input, the number of the
                                                     round */
} opdi_gstep;
/* The plan of a graph's runs: the steps, and the slots of the values.  A plan is one block of memory. */
typedef struct opdi_graph_plan {
    struct opdi_graph_plan *next;                 /* the next plan in opd_graph.old_plans */
    size_t bytes, scratch;                        /* bytes: size of the plan itself; scratch: size of the memory for the
                                                     light lists of a run */
    int32_t nslots, nsteps, nrest, nowned;
    opd_value *start;                             /* the contents of the slots when a run begins: the constants, and
                                                     None in all other slots */
    opdi_gstep *steps;
    int32_t *slots, *rest, *owned;                /* slots: the slots of all steps; rest: the slots that still hold a
                                                     value after the last step; owned: the slots that may hold a value
                                                     if a run fails */
    bool cells;                                   /* true: some values are not tensors */
} opdi_graph_plan;
/* Functions that add and drop a reference to the program that owns a graph. */
typedef struct opdi_graph_home {
    struct opd_program *(*keep)(const struct opd_program *program);
    void (*drop)(struct opd_program *program);
} opdi_graph_home;
struct opd_graph {
    opdi_arena arena;
    opdi_gblock body;
    opdi_gvalue **inputs;
    opdi_gvalue **outputs;                        /* if the graph returns a tuple or list, its elements */
    opdi_gvalue *result;                          /* the value after `return` in the graph's text; NULL if there is
                                                     none */
    int32_t refs;                                 /* the program has one reference, and each run has one */
    int32_t ninputs, noutputs, next_id;
    int32_t capacity;                             /* the number of values for which `inputs` has space */
    opdi_gnode *at;                               /* new nodes are inserted in front of this node; NULL: at the end of
                                                     `into` */
    opdi_gblock *into;                            /* the block into which new nodes are inserted; NULL: body */
    opdi_gspace *space;                           /* the space of the graph's types; NULL if all types are simple */
    opdi_graph_plan *plan;                        /* the plan of runs; NULL: the next run makes it */
    opdi_graph_plan *old_plans;                   /* plans that runs use, of the graph before it was changed */
    opdi_planned *memory;                         /* the plan for the memory of a run's tensors; NULL: not yet made */
    struct opdi_graph_names *names;               /* the table of the values' names; NULL: the first lookup makes it */
    bool counted;                                 /* true if the members `uses` of all values are up to date */
    bool ordered;                                 /* true if the members `order` of all nodes are up to date */
    uint64_t mark;                                /* grows by 1 for each function that marks nodes */
    int32_t born;                                 /* grows by 1 for each match that is replaced */
    uint64_t changes;                             /* grows with each change of the nodes */
    opdi_graph_uses *users;                       /* the uses of all values; NULL: the first question makes them */
    struct opdi_gsizes *sizes;                    /* the open sizes; NULL: the graph has none */
    const struct opd_program *program;            /* the program that owns the graph; NULL: none */
    const opdi_graph_home *home;                  /* the functions for `program` and `kept`; NULL: none */
    struct opd_program *kept;                     /* the program whose functions nodes of a copy call: the graph has a
                                                     reference; NULL: none */
};
/* An entry of a hash table of names.  `value` is the value with this name, or NULL.  `suffix` is the lowest n for which
   the name "name.n" may be free, or 0. */
typedef struct opdi_graph_name { const char *name; opdi_gvalue *value; int32_t suffix; } opdi_graph_name;
typedef struct opdi_graph_names {
    int64_t size, used;
    opdi_graph_name *slots;                       /* the entries, which follow the struct */
} opdi_graph_names;
/* A row of the table of list types: the tag of the list, the tag of its elements, and the name of the element type. */
typedef struct opdi_graph_list_row { int32_t list, element; const char *word; } opdi_graph_list_row;
#endif

//== recording =========================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* A tensor that a recording knows.  `block` is the block that was recorded when the tensor became known; NULL: the body
   of the graph. */
typedef struct opdi_traced { opd_tensor *tensor; opdi_gvalue *value; opdi_gblock *block; } opdi_traced;
/* An autograd node that was recorded inside a call that is being traced.  When the call ends, saved-tensor hooks pack
   the values that the node has saved. */
typedef struct opdi_deferred_pack { opd_node *node; struct opdi_packer *packer; } opdi_deferred_pack;
/* The call that has failed in a recording: the operator, and "FILE:LINE" if it is known. */
typedef struct opdi_trace_failure { const opd_op *op; char place[OPDI_PLACE]; } opdi_trace_failure;
/* The recording of a thread.  A hash table maps tensors to values of the graph.  It holds references to the tensors, so
   that no other tensor gets the address of one of them. */
typedef struct opdi_graph_tracer {
    opdi_tracer asked;                            /* must be the first member, because innermost.tracer points to it */
    opd_graph *graph;
    opdi_traced *map;                             /* the hash table (open addressing); `size` is a power of two */
    int64_t size, used;
    uint64_t since;                               /* the number of the first autograd node that is recorded after the
                                                     recording began */
    bool allow_constants, locations, parts;       /* as in opd_trace_options */
    opdi_deferred_pack *waiting;
    int64_t nwaiting, waiting_cap;
    struct opd_graph_value *generator;            /* the constant of the last generator that was recorded, or NULL */
    const char *control;                          /* the condition or loop whose functions are recorded, such as
                                                     "opd_cond", or NULL */
    struct opdi_trace_failure *failure;           /* filled if a call fails; NULL: not asked for */
    bool blocks, follows;                         /* blocks: the graph has blocks; follows: derivatives of the innermost
                                                     condition or loop may be needed */
} opdi_graph_tracer;
#endif

//== open sizes ========================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* An expression of open sizes.  Expressions with the same text are one struct in a graph. */
typedef enum opdi_gexpr_kind {
    OPDI_GEXPR_NUMBER, OPDI_GEXPR_NAME, OPDI_GEXPR_ADD, OPDI_GEXPR_MUL,
    OPDI_GEXPR_DIV,                               /* a quotient, rounded downward */
    OPDI_GEXPR_UNKNOWN                            /* a stride for which no expression was found */
} opdi_gexpr_kind;
typedef struct opdi_gexpr {
    int32_t kind;
    int32_t name;                                 /* of a NAME: the number of the open size */
    int64_t number;
    const struct opdi_gexpr *args[2];
} opdi_gexpr;
/* An open size: a size that may differ from run to run. */
typedef struct opdi_gsize {
    const char *name;
    int64_t least, most, step;                    /* its bounds; it is a multiple of `step` */
    const char *why;                              /* why it has these bounds or this step, such as
                                                     "aten::view in f.c:3";
                                                     NULL: the program says so */
    bool given[3];                                /* whether the program gave the lower bound, the upper bound and the
                                                     step */
} opdi_gsize;
#define OPDI_OPEN_NAMES 8
/* The points at which functions of open sizes are known.  The first is the base point. */
#define OPDI_FIT_POINTS 1000
#define OPDI_FIT_LINE 64                          /* the most points of a line */
typedef struct opdi_fit_points {
    int n, count;                                 /* n: the number of open sizes */
    int64_t at[OPDI_FIT_POINTS][OPDI_OPEN_NAMES];
    int along[OPDI_FIT_POINTS];                   /* the only size that differs from the base; -1: none or several */
    int others[OPDI_OPEN_NAMES];                  /* for each size: the point where only it has its other value */
    int pairs[OPDI_OPEN_NAMES][OPDI_OPEN_NAMES];  /* for two sizes: the point where both have their other values */
} opdi_fit_points;
#define OPDI_FIT_KNOWN 256
typedef struct opdi_fit_known { int count; const opdi_gexpr *exprs[OPDI_FIT_KNOWN]; } opdi_fit_known;
/* An insertion point for nodes: in block `into`, before node `at` (NULL: at the end). */
typedef struct opdi_graph_insert_point { opdi_gblock *into; opdi_gnode *at; } opdi_graph_insert_point;
/* Adds nodes at the beginning of a graph that compute numbers from the sizes of its inputs. */
typedef struct opdi_gmaker {
    opd_graph *graph;
    opdi_graph_insert_point was;
    opdi_arena arena;
    opdi_index made;                              /* the values of expressions, by the expressions */
} opdi_gmaker;
#define OPDI_OPEN_MOST ((int64_t)1 << 40)         /* the upper bound of a size that has none */
typedef struct opdi_gsizes {
    int32_t count;
    opdi_gsize names[OPDI_OPEN_NAMES];
    opdi_index exprs;                             /* the expressions by their texts */
} opdi_gsizes;
OPDI_INTERNAL int opdi_graph_guard(const opd_graph *graph, const opd_value *inputs, const char *who, int64_t *values);
OPDI_INTERNAL int opdi_graph_guard_tensors(const opd_graph *graph, opd_tensor *const *inputs, const char *who,
                                           int64_t *values);
OPDI_INTERNAL bool opdi_gsize_follows(const opd_graph *graph, int32_t name);
OPDI_INTERNAL void opdi_gmaker_begin(opdi_gmaker *maker, opd_graph *graph);
OPDI_INTERNAL opdi_gvalue *opdi_gmaker_value(opdi_gmaker *maker, const opdi_gexpr *expr);
OPDI_INTERNAL void opdi_gmaker_free(opdi_gmaker *maker);
#endif

//== running ===========================================================================================================

#if !defined(OPD_NO_GRAPHS)
OPDI_NOINLINE OPDI_INTERNAL int opdi_graph_call(const opdi_gnode *node, opd_value *rets, const opd_value *args);
/* Runs the operator of `step` on `args`, and stores references of the results in `rets`.  Returns 0, or -1 and sets an
   error. */
OPDI_FORCE_INLINE static int opdi_graph_op(opdi_thread *thread, const opdi_gstep *step, opd_value *args,
                                           opd_value *rets) {
    opd_op *const op = step->node->op;
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opdi_arg_keys sets;
    opd_call call;
    if (OPDI_UNLIKELY(!table) && !(table = opdi_table_make(op))) { return -1; }
    if (OPDI_UNLIKELY(((step->nin ^ op->nargs) | (step->nout ^ op->nrets) | OPDI_LOAD(&thread->observed)) != 0 ||
                      opdi_arg_keys_of(&sets, op, args) != 0)) { return opdi_graph_call(step->node, rets, args); }
    call.op = op;
    call.args = args;
    call.rets = rets;
    call.targets = NULL;
    if (opdi_invoke_here(thread, &call, opdi_find_slot(thread, &call, table, &sets))) { return -1; }
    if (OPDI_LIKELY(call.owned == (1u << step->nout) - 1)) { return 0; }
    for (int i = 0; i < step->nout; i++) {
        if (rets[i].tag == OPD_TAG_TENSOR && !(call.owned >> i & 1)) { opdi_retain(rets[i].u.t); }
    }
    return 0;
}
OPDI_FORCE_INLINE static int opdi_graph_step(opdi_thread *thread, const opdi_gstep *step, const int32_t *slots,
                                             opd_value *vals) {
    opd_value args[OPD_MAX_ARGS];
    for (int i = 0; i < step->nin; i++) { args[i] = vals[slots[i]]; }
    return opdi_graph_op(thread, step, args, &vals[slots[step->nin]]);
}
#endif

//== running blocks ====================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* A function that is called for each number that a graph computes from other numbers in a run on this thread.  `name`
   is the name of the operator or builtin in the graph's text. */
typedef void (*opdi_graph_watch)(const char *name, const opd_value *args, int nargs, const opd_value *ret);
#endif

//== builtin numbers ===================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* Several builtins share a function.  The member `what` of opdi_builtin tells this function which operation to compute.
   */
enum {
    OPDI_FN_NONE, OPDI_FN_ADD, OPDI_FN_SUB, OPDI_FN_MUL, OPDI_FN_DIV, OPDI_FN_FLOORDIV, OPDI_FN_REMAINDER,
    OPDI_FN_MATHREMAINDER, OPDI_FN_FMOD, OPDI_FN_POW, OPDI_FN_POW_INT, OPDI_FN_AND, OPDI_FN_OR, OPDI_FN_XOR,
    OPDI_FN_LSHIFT, OPDI_FN_RSHIFT, OPDI_FN_ROUND_TO_ZERO, OPDI_FN_COPYSIGN, OPDI_FN_ATAN2, OPDI_FN_GCD, OPDI_FN_MIN,
    OPDI_FN_MAX, OPDI_FN_EQ, OPDI_FN_NE, OPDI_FN_LT, OPDI_FN_LE, OPDI_FN_GT, OPDI_FN_GE, OPDI_FN_IS, OPDI_FN_ISNOT,
    OPDI_FN_NEG, OPDI_FN_ABS, OPDI_FN_SQRT, OPDI_FN_EXP, OPDI_FN_LOG, OPDI_FN_LOG10, OPDI_FN_LOG1P, OPDI_FN_EXPM1,
    OPDI_FN_SIN, OPDI_FN_COS, OPDI_FN_TAN, OPDI_FN_ASIN, OPDI_FN_ACOS, OPDI_FN_ATAN, OPDI_FN_SINH, OPDI_FN_COSH,
    OPDI_FN_TANH, OPDI_FN_ASINH, OPDI_FN_ACOSH, OPDI_FN_ATANH, OPDI_FN_ERF, OPDI_FN_ERFC, OPDI_FN_GAMMA,
    OPDI_FN_LGAMMA, OPDI_FN_FLOOR, OPDI_FN_CEIL, OPDI_FN_ROUND, OPDI_FN_DEGREES, OPDI_FN_RADIANS, OPDI_FN_FABS,
    OPDI_FN_ISNAN, OPDI_FN_ISINF, OPDI_FN_ISFINITE, OPDI_FN_INT, OPDI_FN_FLOAT, OPDI_FN_BOOL, OPDI_FN_SCALAR,
    OPDI_FN_COMPLEX, OPDI_FN_TRUNC, OPDI_FN_ANGLE
};
#endif

//== builtin texts =====================================================================================================

#if !defined(OPD_NO_GRAPHS)
enum { OPDI_CASE_UPPER = 1, OPDI_CASE_LOWER, OPDI_CASE_SWAP, OPDI_CASE_TITLE, OPDI_CASE_CAPITALIZE };
enum {
    OPDI_TEST_DIGIT = 1, OPDI_TEST_ALNUM, OPDI_TEST_ALPHA, OPDI_TEST_SPACE, OPDI_TEST_PRINTABLE, OPDI_TEST_UPPER,
    OPDI_TEST_LOWER, OPDI_TEST_TITLE, OPDI_TEST_IDENTIFIER
};
enum { OPDI_FIND_FIRST = 1, OPDI_FIND_LAST, OPDI_FIND_INDEX, OPDI_FIND_RINDEX, OPDI_FIND_COUNT, OPDI_FIND_START,
       OPDI_FIND_END };
enum { OPDI_STRIP_LEFT = 1, OPDI_STRIP_RIGHT, OPDI_STRIP_BOTH };
enum { OPDI_PAD_LEFT = 1, OPDI_PAD_RIGHT, OPDI_PAD_BOTH, OPDI_PAD_ZERO };
#endif

//== builtin quantized =================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* The classes of packed weights of quantized layers in archives.  Scripts have no names for the attributes of these
   objects.  A linear layer keeps the int8 weight (or a float weight); all other layers keep a float weight, which has
   the numbers that the quantized weight represents. */
#define OPDI_PACKED_CLASSES "__torch__.torch.classes.quantized."
#define OPDI_PACKED_LINEAR OPDI_PACKED_CLASSES "LinearPackedParamsBase"
#define OPDI_PACKED_EMBEDDING OPDI_PACKED_CLASSES "EmbeddingPackedParamsBase"
enum { OPDI_PACKED_WEIGHT, OPDI_PACKED_BIAS, OPDI_PACKED_SCALE, OPDI_PACKED_ZERO, OPDI_PACKED_PARTS };
#define OPDI_PACKED_SETTINGS OPDI_PACKED_SCALE   /* of a convolution: see opdi_quantized_conv */
/* The class of the packed weights of one direction of a quantized recurrent layer.  The first attributes of an object
   are: the packed weights of the input, the packed weights of the hidden state, and a flag that is true if inputs are
   quantized to 7 bits. */
#define OPDI_PACKED_CELL "__torch__.torch.classes.rnn.CellParamsBase"
/* `what` of a quantized operator is OPDI_QUANTIZED(kind, place, then).  `kind` is the operator, such as OPDI_Q_LINEAR.
   `place` is the index of the argument with the result's scale; the next argument is the zero point.  If `place` is 0,
   the result is not rounded.  `then` is a function that is applied before rounding, such as OPDI_Q_RELU (OPDI_Q_PLAIN:
   none). */
enum {
    OPDI_Q_LINEAR, OPDI_Q_CONV, OPDI_Q_CONV1D, OPDI_Q_CONV_ADD, OPDI_Q_ADD, OPDI_Q_MUL, OPDI_Q_MATMUL, OPDI_Q_CAT,
    OPDI_Q_HARDSWISH, OPDI_Q_SIGMOID, OPDI_Q_LEAKY_RELU, OPDI_Q_ELU, OPDI_Q_CELU, OPDI_Q_PRELU, OPDI_Q_RELU6,
    OPDI_Q_CLAMP, OPDI_Q_SOFTMAX, OPDI_Q_DROPOUT, OPDI_Q_LAYER_NORM, OPDI_Q_GROUP_NORM, OPDI_Q_INSTANCE_NORM,
    OPDI_Q_BATCH_NORM, OPDI_Q_EMBEDDING, OPDI_Q_BAG
};
enum { OPDI_Q_PLAIN, OPDI_Q_RELU, OPDI_Q_TANH, OPDI_Q_LEAKY };
#define OPDI_QUANTIZED(kind, place, then) ((kind) | (place) << 8 | (then) << 16)
/* Kinds of layers with packed weights.  LINE: a one-dimensional convolution.  TURNED: a transposed convolution.  ROWS:
   an embedding. */
enum { OPDI_PACK_LINEAR, OPDI_PACK_CONV, OPDI_PACK_LINE, OPDI_PACK_TURNED, OPDI_PACK_TURNED_LINE, OPDI_PACK_ROWS };
enum { OPDI_LIST_INDEX = 1, OPDI_LIST_REMOVE, OPDI_LIST_CONTAINS, OPDI_LIST_COUNT };
#endif

//== builtin containers ================================================================================================

#if !defined(OPD_NO_GRAPHS)
enum { OPDI_DICT_KEYS = 1, OPDI_DICT_VALUES, OPDI_DICT_ITEMS };
#endif

//== builtin tensors ===================================================================================================

#if !defined(OPD_NO_GRAPHS)
enum {
    OPDI_OF_SIZE = 1, OPDI_OF_DTYPE, OPDI_OF_DEVICE, OPDI_OF_GRAD, OPDI_OF_LAYOUT, OPDI_OF_ITEMSIZE, OPDI_OF_NBYTES,
    OPDI_OF_STRIDE, OPDI_OF_CPU, OPDI_OF_CUDA, OPDI_OF_META, OPDI_OF_DATA, OPDI_OF_DETACH, OPDI_OF_LEAF, OPDI_OF_INDEX,
    OPDI_OF_SIGN, OPDI_OF_DIMS, OPDI_OF_NUMBER, OPDI_OF_RETAINS
};
#endif

//== blocks ============================================================================================================

#if !defined(OPD_NO_GRAPHS)
/* The arguments of a call: `in` are positional; `named` are keyword arguments with the names `names`. */
typedef struct opdi_graph_args {
    opdi_gvalue *const *in;
    int32_t count;
    opdi_gvalue *const *named;
    const char *const *names;
    int32_t nnamed;
    opdi_gvalue **empty;                          /* arguments that are empty lists, whose element type is not known
                                                     yet */
    int32_t nempty;
} opdi_graph_args;
/* How a given value becomes an argument.  REPEAT: a number is repeated in a list of fixed size.  LIST: several
   positional arguments form a list.  UNTUPLE: a tuple becomes a list.  EMPTY: an empty list takes the type of the
   argument.  From FLOAT_IMPLICIT on: the value is converted to the type in the name. */
typedef enum opdi_graph_conversion {
    OPDI_CONVERSION_SAME, OPDI_CONVERSION_DEFAULT, OPDI_CONVERSION_REPEAT, OPDI_CONVERSION_LIST,
    OPDI_CONVERSION_UNTUPLE, OPDI_CONVERSION_EMPTY, OPDI_CONVERSION_FLOAT_IMPLICIT,
    OPDI_CONVERSION_COMPLEX_IMPLICIT, OPDI_CONVERSION_INT_IMPLICIT, OPDI_CONVERSION_SCALAR_IMPLICIT,
    OPDI_CONVERSION_FLOAT, OPDI_CONVERSION_COMPLEX, OPDI_CONVERSION_INT, OPDI_CONVERSION_DEVICE
} opdi_graph_conversion;
#define OPDI_MAX_GVARS 8
typedef struct opdi_graph_match_state {
    opd_graph *graph;
    const opd_schema *schema;
    const char *who;                              /* the name of the operator, for error messages */
    const opdi_graph_args *given;
    opdi_text *why;
    bool convert, flat;                           /* convert: implicit conversions are allowed; flat: positional
                                                     arguments may be passed for keyword-only arguments */
    int32_t nvars;
    const char *vars[OPDI_MAX_GVARS];
    const opdi_gtype *bound[OPDI_MAX_GVARS];
    opdi_gvalue *values[OPD_MAX_ARGS];            /* for each argument of the schema: the given value; NULL for
                                                     OPDI_CONVERSION_DEFAULT and OPDI_CONVERSION_LIST */
    int8_t how[OPD_MAX_ARGS];                     /* for each argument of the schema: an opdi_graph_conversion */
    int32_t spread;                               /* the number of the first positional argument that becomes an element
                                                     of a list argument; -1: none does */
} opdi_graph_match_state;
#endif

//== parsing ===========================================================================================================

#if !defined(OPD_NO_GRAPHS)
struct opdi_graph_parser;
/* Returns the tensor that a text beside a file of tensors calls [value=$NAME]; `type` has the type that the text gives
   it.  Returns NULL and sets an error on failure. */
typedef opd_tensor *(*opdi_graph_named_fn)(struct opdi_graph_parser *parser, const char *name,
                                           const opdi_gvalue *type);
typedef struct opdi_graph_parser {
    opd_graph *graph;
    const char *text, *at;
    const char *who;                              /* the public function that builds the graph, for error messages; NULL
                                                     if a text is read */
    int line;
    opdi_graph_name *names;                       /* a hash table (open addressing) of the names that follow a "%" */
    int64_t size, used;
    opd_tensor *const *constants;                 /* in a saved graph: the tensors that the text calls [value=$0],
                                                     [value=$1], ... */
    int64_t nconstants;
    opdi_graph_named_fn named;                    /* if the text is beside a file of tensors; else NULL */
    void *user;                                   /* for `named` */
    int depth;                                    /* the number of blocks around the current node */
    bool lenient;                                 /* true: unknown operators become nodes that fail when they run */
} opdi_graph_parser;
/* The kinds of text of a graph: as opd_graph_print writes it; for the file of a saved graph, where tensors have
   numbers; or for a text beside a file of tensors, where tensors have names. */
enum { OPDI_TEXT_PRINTED, OPDI_TEXT_SAVED, OPDI_TEXT_NAMED };
#define OPDI_GRAPH_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
/* A change of a graph by a public function such as opd_graph_input.  If the function fails, the nodes that it has added
   are removed. */
typedef struct opdi_graph_builder {
    opdi_graph_parser parser;                     /* for the functions of the parser that check values */
    opd_scope scope;
    opdi_gnode *before;                           /* the node in front of the first new node, or NULL */
    uint64_t was;                                 /* the result of opdi_enter; schemas stay valid until opdi_leave */
    int32_t next_id;
} opdi_graph_builder;
/* A table that gives a value of another graph for each value of a graph. */
typedef struct opdi_gpair { const opdi_gvalue *from; opdi_gvalue *to; } opdi_gpair;
typedef struct opdi_gcopier {
    const opd_graph *from;
    opd_graph *to;
    const char *who;                              /* the public function, for error messages */
    opdi_gpair *pairs;                            /* [size] a hash table, in the innermost scope */
    int64_t size, used;
    bool names;                                   /* true: values keep their names and numbers */
    bool renames;                                 /* true: values get their names, or names like them */
    bool sizes;                                   /* true: the new graph has the open sizes of the old one */
} opdi_gcopier;
#endif

//== control flow ======================================================================================================

/* A condition or loop over functions (see >>control_flow). */
typedef struct opdi_control {
    const char *who, *names[2];                   /* who: its name in errors; names: the names of its functions */
    /* Calls function `which` with args[nargs].  Writes the outputs, at most `cap`, which belong to the innermost scope.
       Returns their number, which may be more than `cap`; or -1 and sets an error. */
    int (*call)(const struct opdi_control *flow, int which, const opd_value *args, int nargs, opd_value *outputs,
                int cap);
    const void *user;                             /* for `call` */
    int most;                                     /* of a scan: the number of outputs for which there is room */
    bool strict;                                  /* true: fails if carried values change their sizes or dtypes */
    bool closed;                                  /* true: the functions read no tensors but their arguments */
    bool apart;                                   /* of closed functions: true if later code may write into a result,
                                                     so that a result must not become a copy of an argument */
    bool only;                                    /* of closed functions: true if both sides of a condition must not be
                                                     called */
} opdi_control;
/* The functions of opd_cond, opd_while, opd_scan or opd_map, and their user pointer. */
typedef struct opdi_control_functions { opd_transform_fn fns[2]; void *user; } opdi_control_functions;
/* A call of opd_cond, opd_while, opd_scan or opd_map.  The arguments are tensors: args[ncarried], which a loop carries;
   then nsliced tensors, which it slices; then `nothers`. */
typedef struct opdi_control_task {
    opdi_control flow;
    opdi_control_functions functions;
    opd_destroy destroy;                          /* gets functions.user when a recording no longer needs it; NULL */
    opd_tensor *pred;                             /* of opd_cond; else NULL */
    opd_value *args;
    int ncarried, nsliced, nothers, nargs;
    int dim;
    bool reverse;
} opdi_control_task;

typedef enum opdi_recorded_kind { OPDI_RECORDED_COND, OPDI_RECORDED_WHILE, OPDI_RECORDED_SCAN } opdi_recorded_kind;
/* A condition or loop over closed functions, in a graph that is being compiled. */
typedef struct opdi_control_job {
    const opdi_control *flow;
    opdi_recorded_kind kind;
    const opd_value *test;                        /* of a cond: the predicate.  Of a while: the condition before the
                                                     first round, if function 1 returns the new carried values and then
                                                     the new condition; NULL: function 0 returns the condition */
    const opd_value *args;                        /* args[nargs], of which the first `carried` are carried, and the next
                                                     `sliced` are sliced along dim 0 */
    int nargs, carried, sliced;
    bool reverse;
    int64_t length;                               /* of a scan: the number of rounds */
    opd_value *outputs;                           /* room for as many outputs as flow->most and `carried` */
} opdi_control_job;
enum { OPDI_CONTROL_DECLINES = -2 };
/* Compiles a condition or loop: writes the outputs, which belong to the innermost scope.  Returns their number; -1 and
   sets an error; or OPDI_CONTROL_DECLINES, so that the caller calls the functions itself.  NULL until a graph is
   compiled. */
typedef int (*opdi_control_lower)(const opdi_control_job *job);

//== recorded control flow =============================================================================================

#if !defined(OPD_NO_GRAPHS)
/* A condition or loop in a trace.  Its operands are: the predicate (only of a cond), then the arguments as in
   opdi_control_task.  Its outputs are: the carried tensors, the results, and, if `stacks` is true, for each carried
   tensor a stack of its values at the beginnings of all rounds. */
typedef struct opdi_recorded {
    int32_t refs;
    opdi_recorded_kind kind;
    const char *who, *names[2];
    opdi_control_functions functions;
    opd_destroy destroy;                          /* gets functions.user when this struct is freed; NULL: none */
    struct opdi_recorded *of;                     /* the functions are derived from its functions, and `user` is this
                                                     struct; NULL: the functions are the program's */
    int ncarried, nsliced, nothers;
    int nresults;                                 /* the number of results, once the functions have been called */
    int8_t floats[OPD_TRANSFORM_OUTPUTS];         /* for each result: 1 if it is differentiable, else 0 */
    bool reverse, stacks;
    bool follows;                                 /* true: grad mode was on where it was called */
    bool masked;                                  /* true of a while under vmap: examples may have ended before others;
                                                     in their further rounds, they keep their values */
    bool may_be_empty;                            /* true: there may be no slices; then there are no results */
    uint16_t autocast;                            /* autocast and allow: as in opdi_state, where the program called
                                                     the condition or loop */
    uint64_t allow;
    opd_randomness randomness;                    /* of the vmap from which the functions are derived */
    int8_t *roles;                                /* what the functions that are derived need to know of each operand,
                                                     and then of each output, of `of` */
    size_t bytes;
} opdi_recorded;
#endif
#include "graphs.prototypes.h"
#endif

