//----------------------------------------------------------------------------------------------------------------------
//  >>graphs_h     graphs, their nodes and cells: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_GRAPHS_H)
#define OPDI_GRAPHS_H
#include "../transforms/transforms.h"

//== types =============================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
typedef enum opdi_gtype_kind {
    OPDI_GT_ANY, OPDI_GT_NONE, OPDI_GT_TENSOR, OPDI_GT_INT, OPDI_GT_FLOAT, OPDI_GT_BOOL, OPDI_GT_COMPLEX,
    OPDI_GT_NUMBER, OPDI_GT_STR, OPDI_GT_DEVICE, OPDI_GT_GENERATOR, OPDI_GT_STREAM, OPDI_GT_ANYLIST, OPDI_GT_ANYTUPLE,
    OPDI_GT_ANYCLASS, OPDI_GT_ANYENUM, OPDI_GT_FUNCTION, OPDI_GT_STORAGE, OPDI_GT_QSCHEME, OPDI_GT_CAPSULE,
    OPDI_GT_SIMPLE,                               /* how many have no parts */
    OPDI_GT_VAR = OPDI_GT_SIMPLE, OPDI_GT_LIST, OPDI_GT_DICT, OPDI_GT_TUPLE, OPDI_GT_OPTIONAL, OPDI_GT_UNION,
    OPDI_GT_FUTURE, OPDI_GT_CLASS
} opdi_gtype_kind;
/* A static type.  Those without parts are there once for all; others belong to a space. */
typedef struct opdi_gtype {
    int32_t kind, nparts;                         /* opdi_gtype_kind; dict: key and value */
    const struct opdi_gtype *const *parts;
    struct opdi_gclass *klass;                    /* classes, and tuples with names */
    const char *word;                             /* a type variable's name */
    const struct opdi_gtype *next;                /* in its space */
} opdi_gtype;
typedef enum opdi_gclass_kind {
    OPDI_CLASS_OBJECT, OPDI_CLASS_MODULE, OPDI_CLASS_NAMEDTUPLE, OPDI_CLASS_ENUM, OPDI_CLASS_INTERFACE
} opdi_gclass_kind;
typedef struct opdi_gattribute {
    const char *name;
    const opdi_gtype *type;
    int32_t flags;                                /* free for who makes the class: parameter, buffer, constant */
} opdi_gattribute;
/* A class: what its objects' slots are called. */
typedef struct opdi_gclass {
    const char *name;                             /* qualified, "__torch__.M" */
    struct opdi_gspace *space;
    const opdi_gtype *type;                       /* of its objects; a named tuple's has its parts */
    opdi_gclass_kind kind;
    bool open;                                    /* known by its name alone: attributes come as they are met */
    int32_t nattributes, room;
    opdi_gattribute *attributes;
    void *user;                                   /* for who makes the class: its methods */
    /* Where lists of it are sorted: true if first is less than second, -1 with an error; NULL: it does not say. */
    int (*less)(const struct opdi_gclass *klass, const opd_value *first, const opd_value *second);
    const struct opd_graph *lt;                   /* its __lt__(self, other), for `less` */
    struct opdi_gclass *next;
} opdi_gclass;
#define OPDI_GTYPE_CHAINS 64
typedef struct opdi_gspace {
    int32_t refs;
    opdi_arena arena;
    const opdi_gtype *chains[OPDI_GTYPE_CHAINS];
    opdi_gclass *classes;
    void (*end)(struct opdi_gspace *space);       /* called when the last reference goes; may be NULL */
    void *user;                                   /* for `end` */
} opdi_gspace;
#define OPDI_MAX_GTYPE_DEPTH 64
#endif
#endif

//== cells =============================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
typedef struct opdi_cell {
    int32_t refs;
    uint8_t kind;                                 /* opd_cell_kind */
    uint8_t tag;                                  /* lists: OPD_TAG_INTS, ..., how the elements are stored */
    int64_t count, cap;                           /* elements; str: bytes; dict: pairs; object: slots */
    union {
        void *data;                               /* cap elements; behind the cell itself, or a block of its own */
        char *text;
        double *pair;
        int64_t *ints;
        double *floats;
        bool *bools;
        opd_tensor **tensors;
        opd_value *values;                        /* dict: key, value, key, value */
    } u;
    opdi_gclass *klass;                           /* objects and named tuples: a reference to its space */
    int32_t *index;                               /* dicts: open addressing, places + 1; NULL while there are few */
    int64_t index_size;
    struct opdi_cell *next;                       /* while it is freed */
} opdi_cell;
#define OPDI_MAX_CELL_DEPTH 64
#endif
#endif

//== cell texts ========================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
/* A text that grows.  An error, once, when memory is out. */
typedef struct opdi_growing { char *text; int64_t length, cap; bool failed; } opdi_growing;
#endif
#endif

//== graphs ============================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
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
/* One step of a run.  Its slots stand in the plan's `slots`, from `slots` on: nin of its arguments, nout of its
   results, and ndrop of values whose last use this is. */
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
    int32_t *slots, *rest, *owned;                /* rest: values that are left when all steps are done; owned: all
                                                     that may be let go after an error */
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
typedef struct opdi_gnamed { const char *name; opdi_gvalue *value; int32_t suffix; } opdi_gnamed;
typedef struct opdi_gnames { int64_t size, used; opdi_gnamed *slots; /* behind the struct */ } opdi_gnames;
/* The types of lists: tag of the list, tag of its elements, and the word for these. */
typedef struct opdi_glist_row { int32_t list, element; const char *word; } opdi_glist_row;
#endif
#endif

//== recording =========================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
typedef struct opdi_traced { opd_tensor *tensor; opdi_gvalue *value; } opdi_traced;
/* A node of the tape whose saved values wait for saved-tensor hooks until the call that is being recorded is done. */
typedef struct opdi_waiting { opd_node *node; struct opdi_packer *packer; } opdi_waiting;
/* The recording of this thread: which tensor is which value.  The tensors are held, so their addresses stay theirs. */
typedef struct opdi_graph_tracer {
    opdi_tracer asked;                            /* first: innermost.tracer points here */
    opd_graph *graph;
    opdi_traced *map;                             /* open addressing, size a power of two */
    int64_t size, used;
    uint64_t since;                               /* the number of the first node that the tape may get meanwhile */
    bool allow_constants, locations, parts;
    opdi_waiting *waiting;
    int64_t nwaiting, waiting_cap;
} opdi_graph_tracer;
#endif
#endif

//== running ===========================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
OPDI_NOINLINE OPDI_INTERNAL int opdi_graph_call(const opdi_gnode *node, opd_value *rets, const opd_value *args);
/* Runs the operator of one step on args; the results are references in rets.  0, or -1 with an error. */
OPDI_FORCE_INLINE static int opdi_graph_op(opdi_thread *thread, const opdi_gstep *step, opd_value *args,
                                           opd_value *rets) {
    opd_op *const op = step->node->op;
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opdi_union sets;
    opd_call call;
    if (OPDI_UNLIKELY(!table) && !(table = opdi_table_make(op))) { return -1; }
    if (OPDI_UNLIKELY(((step->nin ^ op->nargs) | (step->nout ^ op->nrets) | OPDI_LOAD(&thread->observed)) != 0 ||
                      opdi_unite_args(&sets, op, args) != 0)) { return opdi_graph_call(step->node, rets, args); }
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
#endif

//== running blocks ====================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
/* Who is told which numbers a graph computes of others while it runs on this thread: a function's name, as graphs write
   it, and what it got and gave. */
typedef void (*opdi_graph_watch)(const char *name, const opd_value *args, int nargs, const opd_value *ret);
#endif
#endif

//== builtin numbers ===================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
/* What a function that serves several does; `what` of its row. */
enum {
    OPDI_DO_NONE, OPDI_DO_ADD, OPDI_DO_SUB, OPDI_DO_MUL, OPDI_DO_DIV, OPDI_DO_FLOORDIV, OPDI_DO_REMAINDER,
    OPDI_DO_MATHREMAINDER, OPDI_DO_FMOD, OPDI_DO_POW, OPDI_DO_POW_INT, OPDI_DO_AND, OPDI_DO_OR, OPDI_DO_XOR,
    OPDI_DO_LSHIFT, OPDI_DO_RSHIFT, OPDI_DO_ROUND_TO_ZERO, OPDI_DO_COPYSIGN, OPDI_DO_ATAN2, OPDI_DO_GCD, OPDI_DO_MIN,
    OPDI_DO_MAX, OPDI_DO_EQ, OPDI_DO_NE, OPDI_DO_LT, OPDI_DO_LE, OPDI_DO_GT, OPDI_DO_GE, OPDI_DO_IS, OPDI_DO_ISNOT,
    OPDI_DO_NEG, OPDI_DO_ABS, OPDI_DO_SQRT, OPDI_DO_EXP, OPDI_DO_LOG, OPDI_DO_LOG10, OPDI_DO_LOG1P, OPDI_DO_EXPM1,
    OPDI_DO_SIN, OPDI_DO_COS, OPDI_DO_TAN, OPDI_DO_ASIN, OPDI_DO_ACOS, OPDI_DO_ATAN, OPDI_DO_SINH, OPDI_DO_COSH,
    OPDI_DO_TANH, OPDI_DO_ASINH, OPDI_DO_ACOSH, OPDI_DO_ATANH, OPDI_DO_ERF, OPDI_DO_ERFC, OPDI_DO_GAMMA,
    OPDI_DO_LGAMMA, OPDI_DO_FLOOR, OPDI_DO_CEIL, OPDI_DO_ROUND, OPDI_DO_DEGREES, OPDI_DO_RADIANS, OPDI_DO_FABS,
    OPDI_DO_ISNAN, OPDI_DO_ISINF, OPDI_DO_ISFINITE, OPDI_DO_INT, OPDI_DO_FLOAT, OPDI_DO_BOOL, OPDI_DO_SCALAR,
    OPDI_DO_COMPLEX, OPDI_DO_TRUNC, OPDI_DO_ANGLE
};
#endif
#endif

//== builtin texts =====================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
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
#endif

//== builtin quantized =================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
/* The packed weights of quantized layers, in archives: objects of these classes have parts that no script can name.
   A linear layer has its int8 numbers as they are (or a weight of floats), other layers have the floats that the
   numbers stand for. */
#define OPDI_PACKED_CLASSES "__torch__.torch.classes.quantized."
#define OPDI_PACKED_LINEAR OPDI_PACKED_CLASSES "LinearPackedParamsBase"
#define OPDI_PACKED_EMBEDDING OPDI_PACKED_CLASSES "EmbeddingPackedParamsBase"
enum { OPDI_PACKED_WEIGHT, OPDI_PACKED_BIAS, OPDI_PACKED_SCALE, OPDI_PACKED_ZERO, OPDI_PACKED_PARTS };
#define OPDI_PACKED_SETTINGS OPDI_PACKED_SCALE   /* of a convolution: see opdi_quantized_conv */
/* The weights of one direction of a quantized recurrent layer: an object of this class has as its first parts packed
   weights of the input and of the hidden state, then whether inputs have 7 bits. */
#define OPDI_PACKED_CELL "__torch__.torch.classes.rnn.CellParamsBase"
/* What is computed, how it is rounded, and what is done before: `what` is OPDI_QUANTIZED of these.  place: the argument
   that is the result's scale, which its zero point follows; 0: it is not rounded. */
enum {
    OPDI_Q_LINEAR, OPDI_Q_CONV, OPDI_Q_CONV1D, OPDI_Q_CONV_ADD, OPDI_Q_ADD, OPDI_Q_MUL, OPDI_Q_MATMUL, OPDI_Q_CAT,
    OPDI_Q_HARDSWISH, OPDI_Q_SIGMOID, OPDI_Q_LEAKY_RELU, OPDI_Q_ELU, OPDI_Q_CELU, OPDI_Q_PRELU, OPDI_Q_RELU6,
    OPDI_Q_CLAMP, OPDI_Q_SOFTMAX, OPDI_Q_DROPOUT, OPDI_Q_LAYER_NORM, OPDI_Q_GROUP_NORM, OPDI_Q_INSTANCE_NORM,
    OPDI_Q_BATCH_NORM, OPDI_Q_EMBEDDING, OPDI_Q_BAG
};
enum { OPDI_Q_PLAIN, OPDI_Q_RELU, OPDI_Q_TANH, OPDI_Q_LEAKY };
#define OPDI_QUANTIZED(kind, place, then) ((kind) | (place) << 8 | (then) << 16)
/* The layers that weights are packed for. */
enum { OPDI_PACK_LINEAR, OPDI_PACK_CONV, OPDI_PACK_LINE, OPDI_PACK_TURNED, OPDI_PACK_TURNED_LINE, OPDI_PACK_ROWS };
enum { OPDI_LIST_INDEX = 1, OPDI_LIST_REMOVE, OPDI_LIST_CONTAINS, OPDI_LIST_COUNT };
#endif
#endif

//== builtin containers ================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
enum { OPDI_DICT_KEYS = 1, OPDI_DICT_VALUES, OPDI_DICT_ITEMS };
#endif
#endif

//== builtin tensors ===================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
enum {
    OPDI_OF_SIZE = 1, OPDI_OF_DTYPE, OPDI_OF_DEVICE, OPDI_OF_GRAD, OPDI_OF_LAYOUT, OPDI_OF_ITEMSIZE, OPDI_OF_NBYTES,
    OPDI_OF_STRIDE, OPDI_OF_CPU, OPDI_OF_CUDA, OPDI_OF_META, OPDI_OF_DATA, OPDI_OF_DETACH, OPDI_OF_LEAF, OPDI_OF_INDEX,
    OPDI_OF_SIGN, OPDI_OF_DIMS, OPDI_OF_NUMBER, OPDI_OF_RETAINS
};
#endif
#endif

//== blocks ============================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
/* Arguments of a call: by position, then by name. */
typedef struct opdi_gargs {
    opdi_gvalue *const *in;
    int32_t count;
    opdi_gvalue *const *named;
    const char *const *names;
    int32_t nnamed;
    opdi_gvalue **empty;                          /* empty lists that are of no type yet */
    int32_t nempty;
} opdi_gargs;
/* How a value becomes an argument. */
typedef enum opdi_ghow {
    OPDI_HOW_SAME, OPDI_HOW_DEFAULT, OPDI_HOW_REPEAT, OPDI_HOW_LIST, OPDI_HOW_UNTUPLE, OPDI_HOW_EMPTY,
    OPDI_HOW_FLOAT_IMPLICIT,
    OPDI_HOW_COMPLEX_IMPLICIT, OPDI_HOW_INT_IMPLICIT, OPDI_HOW_SCALAR_IMPLICIT, OPDI_HOW_FLOAT, OPDI_HOW_COMPLEX,
    OPDI_HOW_INT, OPDI_HOW_DEVICE
} opdi_ghow;
#define OPDI_MAX_GVARS 8
typedef struct opdi_gmatching {
    opd_graph *graph;
    const opd_schema *schema;
    const char *who;                              /* the operator, for errors */
    const opdi_gargs *given;
    opdi_text *why;
    bool convert, flat;                           /* flat: keyword-only ones by position, too */
    int32_t nvars;
    const char *vars[OPDI_MAX_GVARS];
    const opdi_gtype *bound[OPDI_MAX_GVARS];
    opdi_gvalue *values[OPD_MAX_ARGS];            /* for each argument of the schema; a list: the first of them */
    int8_t how[OPD_MAX_ARGS];
    int32_t spread;                               /* a list of the positional arguments from there on */
} opdi_gmatching;
/* Where nodes are inserted. */
typedef struct opdi_gplace { opdi_gblock *into; opdi_gnode *at; } opdi_gplace;
#endif
#endif

//== parsing ===========================================================================================================

#if !defined(OPD_NO_GRAPHS)
#if defined(OPDI_CORE)
typedef struct opdi_gparser {
    opd_graph *graph;
    const char *text, *at;
    const char *who;                              /* a graph that is built by hand: the function; NULL: a text's line */
    int line;
    opdi_gnamed *names;                           /* open addressing by the name behind the % */
    int64_t size, used;
    opd_tensor *const *constants;                 /* of a saved graph: what [value=$k] is */
    int64_t nconstants;
    int depth;                                    /* of blocks */
    bool lenient;                                 /* what is not known is a node that fails when it runs */
} opdi_gparser;
#define OPDI_GRAPH_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_."
#endif
#endif
#include "graphs.prototypes.h"
#endif

