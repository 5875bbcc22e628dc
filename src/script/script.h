//----------------------------------------------------------------------------------------------------------------------
//  >>script_h     TorchScript: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_SCRIPT_H)
#define OPDI_SCRIPT_H
#include "../programs/programs.h"

//== tokens ============================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* The place that the text from byte `at` on has in the source from which it was made: file, line and column. */
typedef struct opdi_splace {
    uint32_t at, line, column;
    const char *file;
} opdi_splace;
/* A script's text, with the name that error messages show for it. */
typedef struct opdi_stext {
    const char *name, *text;
    size_t length;
    const uint32_t *lines;                        /* < */
    uint32_t nlines, nplaces;
    const opdi_splace *places;                    /* in order; NULL if the text itself is the source */
} opdi_stext;
/* Kinds of token.  A sign of one character has its character as kind. */
enum {
    OPDI_ST_END = 256, OPDI_ST_NAME, OPDI_ST_INT, OPDI_ST_FLOAT, OPDI_ST_IMAGINARY, OPDI_ST_TEXT, OPDI_ST_NEWLINE,
    OPDI_ST_INDENT, OPDI_ST_DEDENT, OPDI_ST_SIGN /* a sign of several characters: see opdi_stoken.sign */
};
enum { OPDI_SCRIPT_DEPTH = 200, OPDI_SCRIPT_INDENTS = 100, OPDI_SCRIPT_TEXT = 1 << 26 };
typedef struct opdi_stoken {
    int16_t kind, sign;
    uint32_t at, length;         /* at: its position; length: in bytes, with the prefix and quotes of a string */
} opdi_stoken;
typedef struct opdi_slexer {
    const opdi_stext *text;
    size_t at;
    int nesting, nindents;       /* nesting: number of open brackets; nindents: number of indents */
    uint32_t indents[OPDI_SCRIPT_INDENTS];
    opdi_string tokens;          /* opdi_stoken[] */
    bool pending;                /* whether a line has begun that has no NEWLINE token yet */
} opdi_slexer;
#endif
#endif

//== parsing ===========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* Kinds of syntax nodes.  The comments name the fields that a kind uses, and its parts in order. */
typedef enum opdi_sx {
    OPDI_SX_NAME,                /* word: the name */
    OPDI_SX_INT, OPDI_SX_FLOAT, OPDI_SX_IMAGINARY,       /* integer or number: the value; op: its sign */
    OPDI_SX_TEXT,                /* word: the text, integer: its length in bytes */
    OPDI_SX_FORMAT,              /* an f-string; parts: texts and expressions */
    OPDI_SX_TRUE, OPDI_SX_FALSE, OPDI_SX_NONE, OPDI_SX_DOTS,
    OPDI_SX_TUPLE, OPDI_SX_LIST, OPDI_SX_SET,            /* elements */
    OPDI_SX_DICT,                /* keys and values, alternating */
    OPDI_SX_LISTCOMP,            /* element, target, iterated, condition or NULL */
    OPDI_SX_DICTCOMP,            /* key, value, target, iterated, condition or NULL */
    OPDI_SX_CALL,                /* function, arguments, also OPDI_SX_KEYWORD and STAR */
    OPDI_SX_KEYWORD,             /* word = part */
    OPDI_SX_STAR,                /* *part */
    OPDI_SX_ATTR,                /* part.word */
    OPDI_SX_SUBSCRIPT,           /* part[index, ...] */
    OPDI_SX_SLICE,               /* begin, end, step or NULL */
    OPDI_SX_UNARY, OPDI_SX_BINARY,                       /* op; parts */
    OPDI_SX_COMPARE,             /* op; two parts */
    OPDI_SX_AND, OPDI_SX_OR, OPDI_SX_NOT,
    OPDI_SX_TERNARY,             /* condition, then, else */
    OPDI_SX_EXPR,                /* statements begin here; the expression */
    OPDI_SX_ASSIGN,              /* value, targets */
    OPDI_SX_ANNOTATED,           /* target, type, value or NULL */
    OPDI_SX_AUGMENTED,           /* op; target, value */
    OPDI_SX_IF,                  /* condition, body, else body (blocks) */
    OPDI_SX_WHILE,               /* condition, body */
    OPDI_SX_FOR,                 /* target, iterated, body */
    OPDI_SX_RETURN,              /* value or NULL */
    OPDI_SX_PASS, OPDI_SX_BREAK, OPDI_SX_CONTINUE,
    OPDI_SX_RAISE,               /* value or NULL */
    OPDI_SX_ASSERT,              /* condition, text or NULL */
    OPDI_SX_DELETE,              /* targets */
    OPDI_SX_WITH,                /* value, target or NULL, body */
    OPDI_SX_AGAIN,               /* end of an iteration: computes whether the loop goes on */
    OPDI_SX_TURN,                /* iteration number `integer` of an unrolled loop */
    OPDI_SX_BLOCK,               /* statements */
    OPDI_SX_DEF,                 /* word; parameters (PARAM), returned type or NULL at parts[0], body at parts[1] */
    OPDI_SX_PARAM,               /* word; type or NULL, default or NULL; op: 1 behind the *, 2 is *args */
    OPDI_SX_CLASS                /* word; base or NULL, body */
} opdi_sx;
/* Operators that UNARY, BINARY, AUGMENTED and COMPARE have in `op`. */
enum {
    OPDI_SO_ADD, OPDI_SO_SUB, OPDI_SO_MUL, OPDI_SO_DIV, OPDI_SO_FLOORDIV, OPDI_SO_MOD, OPDI_SO_POW, OPDI_SO_MATMUL,
    OPDI_SO_AND, OPDI_SO_OR, OPDI_SO_XOR, OPDI_SO_SHL, OPDI_SO_SHR, OPDI_SO_NEG, OPDI_SO_POS, OPDI_SO_INVERT,
    OPDI_SO_EQ, OPDI_SO_NE, OPDI_SO_LT, OPDI_SO_LE, OPDI_SO_GT, OPDI_SO_GE, OPDI_SO_IN, OPDI_SO_NOTIN, OPDI_SO_IS,
    OPDI_SO_ISNOT
};
typedef struct opdi_syntax {
    int16_t kind, op;
    int32_t nparts;
    uint32_t at, length;         /* at: its position in the text; length: in bytes */
    const opdi_stext *text;
    struct opdi_syntax **parts;
    const char *word;
    int64_t integer;
    double number;
} opdi_syntax;
/* The sign of a number node, kept in its `op`.  NEEDED marks 2^63, which is valid only after a minus. */
enum { OPDI_SIGN_NONE, OPDI_SIGN_WRITTEN, OPDI_SIGN_NEEDED };
/* The kind that decorators give to a method, kept in the `op` of its node. */
enum { OPDI_SD_PLAIN, OPDI_SD_PROPERTY, OPDI_SD_SETTER, OPDI_SD_STATIC };
#endif
#endif

//== types =============================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* A parameter of a function. */
typedef struct opdi_sformal {
    const char *name;
    const opdi_gtype *type;
    const opdi_syntax *otherwise;                 /* the expression of its default; NULL if it has none */
    bool keyword_only;
} opdi_sformal;
typedef struct opdi_sfunction {
    struct opdi_sfunction *next;
    const char *name;                             /* "__torch__.f"; for a method, "forward" */
    const opdi_syntax *def;
    struct opdi_sclass *owner;                    /* the class, if it is a method */
    struct opdi_sunit *unit;                      /* the text that contains it */
    opdi_sformal *formals;                        /* NULL until they are first needed */
    int32_t nformals;
    const opdi_gtype *result;                     /* NULL: deduced from its return statements */
    struct opdi_sframe *around;                   /* for a nested function: the variables around it */
    bool busy;                                    /* whether it is being compiled */
    opd_graph *graph;                             /* NULL until it is first requested */
} opdi_sfunction;
typedef struct opdi_sclass {
    struct opdi_sclass *next;
    opdi_gclass *gclass;
    const opdi_syntax *def;
    struct opdi_sunit *unit;
    opdi_sfunction *methods;
    int state;                                    /* 0 declared, 1 being resolved, 2 resolved */
    opd_value *members;                           /* of an enum: objects with a name and a value */
    int32_t nmembers;
    struct opdi_senum_said *said;                 /* objects of enum members, one per place in the text */
} opdi_sclass;
/* A text of a script: a source, or a file of an archive.  A file is read when a name in it is first needed. */
typedef struct opdi_sunit {
    struct opdi_sunit *next;
    const char *prefix;                           /* prefix of the names in it: "__torch__.a.b" */
    opdi_stext text;
    opdi_syntax *tree;                            /* NULL until the text is read */
    opdi_sfunction *functions;
    opdi_sclass *classes;
    int32_t builtin;                              /* 1, 2, ...: a text of this library, see opdi_sprelude; else 0 */
} opdi_sunit;
struct opd_script {
    int32_t refs;
    opdi_arena arena;
    opdi_gspace *space;
    opdi_sunit *units;
    opd_value self;                               /* the object with the script's methods; NONE: only functions */
    opd_value constants;                          /* a tuple with the values CONSTANTS.c0, CONSTANTS.c1, ... */
    opd_module *module;
    opdi_string bound;                            /* opdi_sbound[]: the tensors that the module shares with objects */
    struct opdi_sarchive *archive;                /* NULL if the script is from source text */
    int version;                                  /* the archive's version, whose semantics operators keep */
    void (*let_go)(struct opdi_sarchive *archive);
    opdi_sunit *(*find)(struct opd_script *script, const char *prefix);          /* reads a text of the archive; NULL if
                                                                                    there is none */
    const struct opdi_swork *work;
    struct opdi_slisted *listed;                  /* its operators; NULL until they are requested */
    struct opdi_swrapped *numbers;
};
/* An operator in a script's graphs, and the number of its calls there. */
typedef struct opdi_slisted {
    struct opdi_slisted *next;
    const char *name;
    int64_t count;
    bool missing;
} opdi_slisted;
/* A tensor in slot `slot` of an object, and `place`, its number in the module. */
typedef struct opdi_sbound { opdi_cell *object; int32_t slot; int64_t place; } opdi_sbound;
/* Kinds of expression values.  The comments name the fields of opdi_sugar that a kind uses. */
typedef enum opdi_skind {
    OPDI_SK_NOTHING, OPDI_SK_VALUE,
    OPDI_SK_SPACE,               /* a namespace; word: "torch.nn" */
    OPDI_SK_BUILTIN,             /* an operator or builtin function; word: "aten::add"; value: its self argument */
    OPDI_SK_SPECIAL,             /* a function that the compiler implements; word: "isinstance" */
    OPDI_SK_FUNCTION, OPDI_SK_METHOD,             /* function; for a method, value is the object */
    OPDI_SK_CLASS                /* klass */
} opdi_skind;
typedef struct opdi_sugar {
    opdi_skind kind;
    opdi_gvalue *value;
    const char *word;
    opdi_sfunction *function;
    opdi_gclass *klass;
} opdi_sugar;
/* A variable of a frame.  Assignments in inner frames must match `type`. */
typedef struct opdi_svar {
    struct opdi_svar *next;
    const char *name;
    uint32_t hash;                                /* hash of the name, for a fast comparison */
    opdi_sugar sugar;
    const opdi_gtype *type;
} opdi_svar;
typedef struct opdi_sframe {
    struct opdi_sframe *up;                       /* NULL in the outermost frame of a function */
    opdi_svar *vars;
    bool rest;                                    /* for the statements after a branch that were moved into one of its
                                                     sides */
} opdi_sframe;
/* How statements end.  NOT: they go on.  MAYBE: they may leave.  The others always leave: TURN the iteration, RETURN
   the function, RAISE by an exception.  ERROR: they failed to compile. */
typedef enum opdi_sleave {
    OPDI_LEAVE_NOT, OPDI_LEAVE_MAYBE, OPDI_LEAVE_TURN, OPDI_LEAVE_RETURN, OPDI_LEAVE_RAISE, OPDI_LEAVE_ERROR
} opdi_sleave;
enum { OPDI_SCRIPT_CALLS = 64, OPDI_SCRIPT_ARGS = 64, OPDI_SCRIPT_NAMES = 64 };
/* A call that was compiled into a function's graph.  The ids of its values are in [from, to). */
typedef struct opdi_scalled {
    struct opdi_scalled *next;
    int32_t from, to;
    opdi_gvalue *result, *call;                   /* result: its result; call: the value that names the call in
                                                     TorchScript */
    opdi_gvalue *self;                            /* the object whose method is called (its first argument), or a
                                                     placeholder */
} opdi_scalled;
/* The function that is being compiled into the graph.  Its nodes are those in `block` after the node `before`. */
typedef struct opdi_sbody {
    struct opdi_sbody *up;
    opdi_sfunction *function;
    const opdi_gtype *result;                     /* NULL until it is known */
    opdi_gvalue *unset;                           /* the placeholder for a value not returned yet */
    int loops;                                    /* number of loops around the current place */
    const opdi_syntax *again;                     /* the condition of the innermost while; NULL in other loops */
    opdi_gvalue *always;                          /* True, if `again` is NULL */
    const struct opdi_sloop *unrolled;            /* the innermost loop that is unrolled */
    struct opdi_spooled *awaiting;                /* values that get the type of the function's first return */
    struct opdi_spooled *literals, *unsets;       /* literals: constants from the text; unsets: placeholders for unset
                                                     values */
    opdi_gvalue *flags[2];                        /* False and True for flags that the compiler adds */
    opdi_gblock *block;
    opdi_gnode *before;                           /* NULL if the block begins with the function */
    int32_t from;                                 /* id of the function's first value */
    opdi_gvalue *self;                            /* a method's first argument, or a constant for it */
    opdi_scalled *called;                         /* its calls, newest first */
    struct opdi_snamed *names[OPDI_SCRIPT_NAMES];
    struct opdi_spooled *moved;                   /* named values of statements that were moved into branches */
    struct opdi_slater *later, **last;            /* names to give to results of branches and loops at the end */
} opdi_sbody;
typedef struct opdi_emitter {
    opd_script *script;
    opdi_gspace *space;
    opd_graph *graph;
    opdi_arena *arena;                            /* memory needed only while compiling */
    opdi_sframe *frame;
    opdi_sbody *body;
    const opdi_syntax *at;                        /* the current node, for errors and places */
    opdi_sunit *unit;
    int depth;
    bool nowhere, quiet;                          /* nowhere: nodes get no place; quiet: reads of variables add no
                                                     names */
    int moved;                                    /* number of branches, around the current place, that statements were
                                                     moved into */
    struct opdi_spooled *empty;
    opdi_gvalue *parameter;                       /* the newest result of torch.nn.Parameter(...) */
} opdi_emitter;
/* Functions of the statement compiler, for the expression compiler. */
typedef struct opdi_swork {
    opdi_gvalue *(*inlined)(opdi_emitter *task, opdi_sfunction *function, opdi_gvalue *const *values);
    opdi_gvalue *(*comprehension)(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint);
    int (*discover)(opdi_emitter *task, opdi_sfunction *init);    /* compiles __init__ to find its attributes */
    opd_graph *(*compiled)(opd_script *script, opdi_sfunction *function);
} opdi_swork;
/* Records an error at the place that is being compiled, and returns -1. */
#define OPDI_EMIT_FAIL(task, ...) \
    opdi_stext_fail((task)->at->text, (task)->at->at, (task)->at->length, __VA_ARGS__)
/* Flags of an attribute of a module class defined in script text. */
enum { OPDI_SCLASS_PARAMETER = 1, OPDI_SCLASS_BUFFER = 2 };
/* The object for an enum member named at one place of a text.  As in PyTorch, each place makes its own object, so that
   `is` gives False for objects of two places. */
typedef struct opdi_senum_said {
    struct opdi_senum_said *next;
    const opdi_syntax *place;
    int32_t which;
    opd_value object;
} opdi_senum_said;
#endif
#endif

//== building ==========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* An entry of a list of values. */
typedef struct opdi_spooled {
    struct opdi_spooled *next;
    opdi_gvalue *value;
} opdi_spooled;
/* A value name in a function.  If `taken` is true but `value` is NULL, the name belongs to a value that TorchScript
   makes and removes. */
typedef struct opdi_snamed {
    struct opdi_snamed *next;
    const char *name;
    opdi_gvalue *value;
    int32_t suffix;                               /* of x.1, x.3, ...: the last one used, plus 1 */
    bool taken;
} opdi_snamed;
/* A name that `value` gets when its function is done.  If `value` is NULL, the name goes to a value that TorchScript
   makes and removes. */
typedef struct opdi_slater {
    struct opdi_slater *next;
    const char *name;                             /* NULL: the value loses its name */
    opdi_gvalue *value;
} opdi_slater;
/* A traced number: the tensor without dims that the archive stores, and the same number as a wrapped number for type
   promotion. */
typedef struct opdi_swrapped {
    struct opdi_swrapped *next;
    const opd_tensor *traced;
    opd_tensor *number;
} opdi_swrapped;
#endif
#endif

//== python functions ==================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
typedef struct opdi_sprelude_text { const char *text; size_t size; } opdi_sprelude_text;
enum { OPDI_SCRIPT_PRELUDES = 16 };
#endif
#endif

//== expressions =======================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* The type that a variable is known to have because a condition holds. */
typedef struct opdi_srefine {
    struct opdi_srefine *next;
    const char *name;
    const opdi_gtype *type;
} opdi_srefine;
/* A condition.  `fixed` is 0 or 1 if the result is known at compile time, else -1. */
typedef struct opdi_scond {
    opdi_gvalue *value;
    int fixed;
    opdi_srefine *holds, *fails;                  /* holds: types known if it is true; fails: types known if it is
                                                     false */
} opdi_scond;
/* An operator: its name, its sign in a text, and the method with which a class overloads it. */
typedef struct opdi_soperator { const char *name, *written, *method; } opdi_soperator;
#endif
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* A prim::If during compilation, with its two blocks and the variables that each block sets. */
typedef struct opdi_sbranch {
    opdi_gnode *node;
    opdi_gblock *blocks[2], *before;
    opdi_sframe frames[2];
    opdi_sleave leaves[2];
    bool unnamed;                                 /* whether its results are not variables of the text */
} opdi_sbranch;
/* Kinds of things that a for loop iterates over. */
typedef enum opdi_siter_kind {
    OPDI_SI_LIST, OPDI_SI_RANGE, OPDI_SI_ZIP, OPDI_SI_UNROLLED
} opdi_siter_kind;
enum { OPDI_SCRIPT_ZIPPED = 8 };
typedef struct opdi_siter {
    opdi_siter_kind kind;
    opdi_gvalue *value, *start, *step;            /* value: the list; start, step: of a range that has no end or has all
                                                     three arguments */
    opdi_gvalue *length;                          /* NULL: the iteration has no end */
    struct opdi_siter *parts[OPDI_SCRIPT_ZIPPED];
    int nparts, count;                            /* count: iterations of an unrolled loop, or -1 */
    opdi_gvalue **items;
} opdi_siter;
/* A loop during compilation. */
typedef struct opdi_sloop {
    const opdi_syntax *node, *body, *target;      /* body: a block, or the element of a comprehension */
    const opdi_syntax *condition;                 /* of a while loop */
    opdi_siter *iter;                             /* of a for loop */
    opdi_gvalue *list;                            /* the list of a comprehension */
    const opdi_syntax *key, *only;                /* key: of a dict comprehension; only: the condition of a
                                                     comprehension */
    const char **names;                           /* names of the carried variables */
    int ncarried;
    bool flags, returns;
    opdi_gvalue *always;                          /* True, for a loop over elements */
    opdi_gvalue *one, *length;                    /* for a loop over elements that may end early */
} opdi_sloop;
#endif
#endif

//== archives ==========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* An open archive; it lives as long as its script. */
typedef struct opdi_sarchive {
    opdi_arena arena;
    opd_tensor_file *file;
    const char *root;                             /* "model/" */
} opdi_sarchive;
#endif
#endif
#include "script.prototypes.h"
#endif

