//----------------------------------------------------------------------------------------------------------------------
//  >>script_h     TorchScript: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_SCRIPT_H)
#define OPDI_SCRIPT_H
#include "../programs/programs.h"

//== tokens ============================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* Where what stands in a text from `at` on was in the source of which the text was made. */
typedef struct opdi_splace {
    uint32_t at, line, column;
    const char *file;
} opdi_splace;
/* A text with the name that errors say. */
typedef struct opdi_stext {
    const char *name, *text;
    size_t length;
    const uint32_t *lines;                        /* where they begin; set when the text is read */
    uint32_t nlines, nplaces;
    const opdi_splace *places;                    /* in order; NULL: the text is the source */
} opdi_stext;
/* Kinds of token; a sign of one character has its character as kind. */
enum {
    OPDI_ST_END = 256, OPDI_ST_NAME, OPDI_ST_INT, OPDI_ST_FLOAT, OPDI_ST_IMAGINARY, OPDI_ST_TEXT, OPDI_ST_NEWLINE,
    OPDI_ST_INDENT, OPDI_ST_DEDENT, OPDI_ST_SIGN /* of several characters: see opdi_stoken.sign */
};
enum { OPDI_SCRIPT_DEPTH = 200, OPDI_SCRIPT_INDENTS = 100, OPDI_SCRIPT_TEXT = 1 << 26 };
typedef struct opdi_stoken {
    int16_t kind, sign;
    uint32_t at, length;         /* in the text; of a string with its prefix and quotes */
} opdi_stoken;
typedef struct opdi_slexer {
    const opdi_stext *text;
    size_t at;
    int nesting, nindents;       /* open brackets; */
    uint32_t indents[OPDI_SCRIPT_INDENTS];
    opdi_string tokens;          /* opdi_stoken[] */
    bool pending;                /* a line has begun */
} opdi_slexer;
#endif
#endif

//== parsing ===========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* What a node of the tree is, and what its parts are. */
typedef enum opdi_sx {
    OPDI_SX_NAME,                /* word */
    OPDI_SX_INT, OPDI_SX_FLOAT, OPDI_SX_IMAGINARY,       /* integer; number; op: its sign */
    OPDI_SX_TEXT,                /* word, integer: its bytes */
    OPDI_SX_FORMAT,              /* of an f-string: texts and expressions */
    OPDI_SX_TRUE, OPDI_SX_FALSE, OPDI_SX_NONE, OPDI_SX_DOTS,
    OPDI_SX_TUPLE, OPDI_SX_LIST, OPDI_SX_SET,            /* elements */
    OPDI_SX_DICT,                /* key, value by turns */
    OPDI_SX_LISTCOMP,            /* element, target, iterated, condition or NULL */
    OPDI_SX_DICTCOMP,            /* key, value, target, iterated, condition or NULL */
    OPDI_SX_CALL,                /* called, arguments; OPDI_SX_KEYWORD and STAR among them */
    OPDI_SX_KEYWORD,             /* word = part */
    OPDI_SX_STAR,                /* *part */
    OPDI_SX_ATTR,                /* part.word */
    OPDI_SX_SUBSCRIPT,           /* part[index, ...] */
    OPDI_SX_SLICE,               /* begin, end, step or NULL */
    OPDI_SX_UNARY, OPDI_SX_BINARY,                       /* op; parts */
    OPDI_SX_COMPARE,             /* op; two parts */
    OPDI_SX_AND, OPDI_SX_OR, OPDI_SX_NOT,
    OPDI_SX_TERNARY,             /* condition, then, else */
    OPDI_SX_EXPR,                /* statements from here on: part */
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
    OPDI_SX_AGAIN,               /* a turn of a loop ends: whether there is another one */
    OPDI_SX_TURN,                /* turn `integer` of a loop that is unrolled */
    OPDI_SX_BLOCK,               /* statements */
    OPDI_SX_DEF,                 /* word; parameters (PARAM), returned type or NULL at parts[0], body at parts[1] */
    OPDI_SX_PARAM,               /* word; type or NULL, default or NULL; op: 1 behind the *, 2 is *args */
    OPDI_SX_CLASS                /* word; base or NULL, body */
} opdi_sx;
/* Operators of UNARY, BINARY, AUGMENTED and COMPARE. */
enum {
    OPDI_SO_ADD, OPDI_SO_SUB, OPDI_SO_MUL, OPDI_SO_DIV, OPDI_SO_FLOORDIV, OPDI_SO_MOD, OPDI_SO_POW, OPDI_SO_MATMUL,
    OPDI_SO_AND, OPDI_SO_OR, OPDI_SO_XOR, OPDI_SO_SHL, OPDI_SO_SHR, OPDI_SO_NEG, OPDI_SO_POS, OPDI_SO_INVERT,
    OPDI_SO_EQ, OPDI_SO_NE, OPDI_SO_LT, OPDI_SO_LE, OPDI_SO_GT, OPDI_SO_GE, OPDI_SO_IN, OPDI_SO_NOTIN, OPDI_SO_IS,
    OPDI_SO_ISNOT
};
typedef struct opdi_syntax {
    int16_t kind, op;
    int32_t nparts;
    uint32_t at, length;         /* in the text */
    const opdi_stext *text;
    struct opdi_syntax **parts;
    const char *word;
    int64_t integer;
    double number;
} opdi_syntax;
/* The sign of a number: op of its node.  NEEDED: 2^63, which only stands behind a minus. */
enum { OPDI_SIGN_NONE, OPDI_SIGN_WRITTEN, OPDI_SIGN_NEEDED };
/* What decorators make of a method: op of its node. */
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
    const opdi_syntax *otherwise;                 /* its default; NULL: none */
    bool keyword_only;
} opdi_sformal;
typedef struct opdi_sfunction {
    struct opdi_sfunction *next;
    const char *name;                             /* "__torch__.f"; of a method "forward" */
    const opdi_syntax *def;
    struct opdi_sclass *owner;                    /* of a method */
    struct opdi_sunit *unit;                      /* where it stands */
    opdi_sformal *formals;                        /* NULL: not looked at yet */
    int32_t nformals;
    const opdi_gtype *result;                     /* NULL: what it returns says it */
    struct opdi_sframe *around;                   /* of one inside of another: its variables */
    bool busy;                                    /* it is being compiled */
    opd_graph *graph;                             /* NULL: not asked for yet */
} opdi_sfunction;
typedef struct opdi_sclass {
    struct opdi_sclass *next;
    opdi_gclass *gclass;
    const opdi_syntax *def;
    struct opdi_sunit *unit;
    opdi_sfunction *methods;
    int state;                                    /* 0 declared, 1 being looked at, 2 known */
    opd_value *members;                           /* of an enum: an object of a name and a value for each */
    int32_t nmembers;
    struct opdi_senum_said *said;                 /* its members as places of the text name them */
} opdi_sclass;
/* A text of a script: a source, or a file of an archive, which is read when something in it is asked for. */
typedef struct opdi_sunit {
    struct opdi_sunit *next;
    const char *prefix;                           /* of names in it: "__torch__.a.b" */
    opdi_stext text;
    opdi_syntax *tree;                            /* NULL: not read yet */
    opdi_sfunction *functions;
    opdi_sclass *classes;
    int32_t builtin;                              /* 1, 2, ...: a text of this library, see opdi_sprelude; else 0 */
} opdi_sunit;
struct opd_script {
    int32_t refs;
    opdi_arena arena;
    opdi_gspace *space;
    opdi_sunit *units;
    opd_value self;                               /* the object whose methods are the script's; NONE: functions */
    opd_value constants;                          /* a tuple: CONSTANTS.c0, ... */
    opd_module *module;
    opdi_string bound;                            /* opdi_sbound[]: what module and objects share */
    struct opdi_sarchive *archive;                /* NULL: of source text */
    int version;                                  /* the archive's: operators do what they did then */
    void (*let_go)(struct opdi_sarchive *archive);
    opdi_sunit *(*find)(struct opd_script *script, const char *prefix);          /* a text of the archive, or NULL */
    const struct opdi_swork *work;
    struct opdi_slisted *listed;                  /* its operators; NULL: nobody has asked */
    struct opdi_swrapped *numbers;
};
/* An operator of a script's graphs, and how often it is there. */
typedef struct opdi_slisted {
    struct opdi_slisted *next;
    const char *name;
    int64_t count;
    bool missing;
} opdi_slisted;
/* A tensor of an object, and its place in the module. */
typedef struct opdi_sbound { opdi_cell *object; int32_t slot; int64_t place; } opdi_sbound;
/* What an expression is. */
typedef enum opdi_skind {
    OPDI_SK_NOTHING, OPDI_SK_VALUE,
    OPDI_SK_SPACE,               /* a name with names behind its point: word, "torch.nn" */
    OPDI_SK_BUILTIN,             /* an operator or builtin function: word, "aten::add"; value: its self */
    OPDI_SK_SPECIAL,             /* what the compiler does itself: word, "isinstance" */
    OPDI_SK_FUNCTION, OPDI_SK_METHOD,             /* function; value: the object */
    OPDI_SK_CLASS                /* klass */
} opdi_skind;
typedef struct opdi_sugar {
    opdi_skind kind;
    opdi_gvalue *value;
    const char *word;
    opdi_sfunction *function;
    opdi_gclass *klass;
} opdi_sugar;
/* A variable of a frame; type: what may be assigned to it further inside. */
typedef struct opdi_svar {
    struct opdi_svar *next;
    const char *name;
    uint32_t hash;                                /* of its name, so that others are passed over at once */
    opdi_sugar sugar;
    const opdi_gtype *type;
} opdi_svar;
typedef struct opdi_sframe {
    struct opdi_sframe *up;                       /* NULL: a function begins */
    opdi_svar *vars;
    bool rest;                                    /* what is compiled into it stands behind its branch in the text */
} opdi_sframe;
/* How statements end: they do not leave, may leave, or always leave: the loop's turn, the function, by an error. */
typedef enum opdi_sleave {
    OPDI_LEAVE_NOT, OPDI_LEAVE_MAYBE, OPDI_LEAVE_TURN, OPDI_LEAVE_RETURN, OPDI_LEAVE_RAISE, OPDI_LEAVE_ERROR
} opdi_sleave;
enum { OPDI_SCRIPT_CALLS = 64, OPDI_SCRIPT_ARGS = 64, OPDI_SCRIPT_NAMES = 64 };
/* A function that another one has called: its values are numbered from `from` to before `to`. */
typedef struct opdi_scalled {
    struct opdi_scalled *next;
    int32_t from, to;
    opdi_gvalue *result, *call;                   /* what it gave, and what TorchScript names for it: the call's */
    opdi_gvalue *self;                            /* its first argument, a method's object; or what stands for it */
} opdi_scalled;
/* The function that is being compiled into the graph.  Its nodes stand together in `block`, behind `before`. */
typedef struct opdi_sbody {
    struct opdi_sbody *up;
    opdi_sfunction *function;
    const opdi_gtype *result;                     /* NULL: not known yet */
    opdi_gvalue *unset;                           /* stands for what has not been returned */
    int loops;                                    /* how deep in loops */
    const opdi_syntax *again;                     /* the condition of the innermost while; NULL: another loop */
    opdi_gvalue *always;                          /* then: True */
    const struct opdi_sloop *unrolled;            /* the innermost loop whose turns are compiled one by one */
    struct opdi_spooled *awaiting;                /* values of a type that its first return tells */
    struct opdi_spooled *literals, *unsets;       /* numbers that are written, values that are not set */
    opdi_gvalue *flags[2];                        /* False, True of flags that its text does not have */
    opdi_gblock *block;
    opdi_gnode *before;                           /* NULL: the block begins with it */
    int32_t from;                                 /* the number of its first value */
    opdi_gvalue *self;                            /* its first argument, where it is a method; or a constant for it */
    opdi_scalled *called;                         /* the last one first */
    struct opdi_snamed *names[OPDI_SCRIPT_NAMES];
    struct opdi_spooled *moved;                   /* named values of statements that were moved into branches */
    struct opdi_slater *later, **last;            /* names that results of branches and loops get at the end */
} opdi_sbody;
typedef struct opdi_emitter {
    opd_script *script;
    opdi_gspace *space;
    opd_graph *graph;
    opdi_arena *arena;                            /* of what is needed while compiling */
    opdi_sframe *frame;
    opdi_sbody *body;
    const opdi_syntax *at;                        /* for errors and places */
    opdi_sunit *unit;
    int depth;
    bool nowhere, quiet;                          /* nodes have no place; reading a variable tells of no name */
    int moved;                                    /* in how many branches of statements that stand behind them */
    struct opdi_spooled *empty;
    opdi_gvalue *parameter;                       /* the last that torch.nn.Parameter(...) gave */
} opdi_emitter;
/* What expressions need of statements. */
typedef struct opdi_swork {
    opdi_gvalue *(*inlined)(opdi_emitter *task, opdi_sfunction *function, opdi_gvalue *const *values);
    opdi_gvalue *(*comprehension)(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint);
    int (*discover)(opdi_emitter *task, opdi_sfunction *init);    /* compiles __init__ for the attributes it makes */
    opd_graph *(*compiled)(opd_script *script, opdi_sfunction *function);
} opdi_swork;
/* Records an error at the place that is being compiled; returns -1. */
#define OPDI_EMIT_FAIL(task, ...) \
    opdi_stext_fail((task)->at->text, (task)->at->at, (task)->at->length, __VA_ARGS__)
/* Flags of the attributes of a module's class in a source. */
enum { OPDI_SCLASS_PARAMETER = 1, OPDI_SCLASS_BUFFER = 2 };
/* A member of an enum that a place of a text names: in PyTorch each place makes an object of its own, which `is` no
   other. */
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
/* A value of a list of such. */
typedef struct opdi_spooled {
    struct opdi_spooled *next;
    opdi_gvalue *value;
} opdi_spooled;
/* A name of a function's values.  taken: some value has it, NULL: one that TorchScript takes away again. */
typedef struct opdi_snamed {
    struct opdi_snamed *next;
    const char *name;
    opdi_gvalue *value;
    int32_t suffix;                               /* of x.1, x.3, ...: the last one that was given, and 1 */
    bool taken;
} opdi_snamed;
/* A name that value (NULL: one that does not stay) gets when the function is done. */
typedef struct opdi_slater {
    struct opdi_slater *next;
    const char *name;                             /* NULL: it loses the one that it has */
    opdi_gvalue *value;
} opdi_slater;
/* A traced number, which is a constant without dims, and the number that it is to type promotion. */
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
/* What is known of a variable where a condition holds. */
typedef struct opdi_srefine {
    struct opdi_srefine *next;
    const char *name;
    const opdi_gtype *type;
} opdi_srefine;
/* A condition: fixed 0 or 1 where it is known already, else -1. */
typedef struct opdi_scond {
    opdi_gvalue *value;
    int fixed;
    opdi_srefine *holds, *fails;                  /* what is known of variables then */
} opdi_scond;
/* The operators by name, and the methods of classes that stand for them. */
typedef struct opdi_soperator { const char *name, *written, *method; } opdi_soperator;
#endif
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* A prim::If while it is compiled: two blocks, and what each makes of the variables. */
typedef struct opdi_sbranch {
    opdi_gnode *node;
    opdi_gblock *blocks[2], *before;
    opdi_sframe frames[2];
    opdi_sleave leaves[2];
    bool unnamed;                                 /* its results are no variables of the text */
} opdi_sbranch;
/* What is iterated over. */
typedef enum opdi_siter_kind {
    OPDI_SI_LIST, OPDI_SI_RANGE, OPDI_SI_ZIP, OPDI_SI_UNROLLED
} opdi_siter_kind;
enum { OPDI_SCRIPT_ZIPPED = 8 };
typedef struct opdi_siter {
    opdi_siter_kind kind;
    opdi_gvalue *value, *start, *step;            /* list; of a range without an end or with all three */
    opdi_gvalue *length;                          /* NULL: without an end */
    struct opdi_siter *parts[OPDI_SCRIPT_ZIPPED];
    int nparts, count;                            /* count: turns of one that is unrolled, or -1 */
    opdi_gvalue **items;
} opdi_siter;
/* A loop while it is compiled. */
typedef struct opdi_sloop {
    const opdi_syntax *node, *body, *target;      /* body: a block, or an expression of a comprehension */
    const opdi_syntax *condition;                 /* of while */
    opdi_siter *iter;                             /* of for */
    opdi_gvalue *list;                            /* a comprehension's; */
    const opdi_syntax *key, *only;                /* its dict's keys, its condition */
    const char **names;                           /* of carried variables */
    int ncarried;
    bool flags, returns;
    opdi_gvalue *always;                          /* True, of a loop over something */
    opdi_gvalue *one, *length;                    /* of a loop over something that may end early */
} opdi_sloop;
#endif
#endif

//== archives ==========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* An archive while a script lives. */
typedef struct opdi_sarchive {
    opdi_arena arena;
    opd_tensor_file *file;
    const char *root;                             /* "model/" */
} opdi_sarchive;
#endif
#endif
#include "script.prototypes.h"
#endif

