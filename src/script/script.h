//----------------------------------------------------------------------------------------------------------------------
//  >>script_h     TorchScript: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_SCRIPT_H)
#define OPDI_SCRIPT_H
#include "../programs/programs.h"

//== tokens ============================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* A place in a source: file, line and column.  The text from byte `at` on was made from it. */
typedef struct opdi_splace {
    uint32_t at, line, column;
    const char *file;
} opdi_splace;
/* A text of a script.  name: its name in error messages. */
typedef struct opdi_stext {
    const char *name, *text;
    size_t length;
    const uint32_t *lines;                        /* [nlines]: the byte at which each line begins */
    uint32_t nlines, nplaces;
    const opdi_splace *places;                    /* [nplaces], sorted by `at`; NULL: the text itself is the source */
} opdi_stext;
/* Kinds of tokens.  A sign of one character has this character as its kind. */
enum {
    OPDI_ST_END = 256, OPDI_ST_NAME, OPDI_ST_INT, OPDI_ST_FLOAT, OPDI_ST_IMAGINARY, OPDI_ST_TEXT, OPDI_ST_NEWLINE,
    OPDI_ST_INDENT, OPDI_ST_DEDENT, OPDI_ST_SIGN /* a sign of several characters: see opdi_stoken.sign */
};
enum { OPDI_SCRIPT_DEPTH = 200, OPDI_SCRIPT_INDENTS = 100, OPDI_SCRIPT_TEXT = 1 << 26 };
typedef struct opdi_stoken {
    int16_t kind, sign;
    uint32_t at, length;         /* at: its first byte; length: in bytes, including a string's prefix and quotes */
} opdi_stoken;
typedef struct opdi_slexer {
    const opdi_stext *text;
    size_t at;
    int nesting, nindents;       /* nesting: number of open brackets; nindents: levels of indentation */
    uint32_t indents[OPDI_SCRIPT_INDENTS];
    opdi_string tokens;          /* opdi_stoken[] */
    bool pending;                /* true: a line with tokens has begun and not ended */
} opdi_slexer;
#endif
#endif

//== parsing ===========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* Kinds of syntax nodes.  Each comment tells the members that a node of this kind uses, then its parts, in order. */
typedef enum opdi_sx {
    OPDI_SX_NAME,                /* word: the name */
    OPDI_SX_INT, OPDI_SX_FLOAT, OPDI_SX_IMAGINARY,       /* integer or number: the value; op: OPDI_SIGN_... */
    OPDI_SX_TEXT,                /* word: the text, integer: its length in bytes */
    OPDI_SX_FORMAT,              /* an f-string; parts: texts and expressions, alternating */
    OPDI_SX_TRUE, OPDI_SX_FALSE, OPDI_SX_NONE, OPDI_SX_DOTS,
    OPDI_SX_TUPLE, OPDI_SX_LIST, OPDI_SX_SET,            /* elements */
    OPDI_SX_DICT,                /* keys and values, alternating */
    OPDI_SX_LISTCOMP,            /* element, target, iterated, condition or NULL */
    OPDI_SX_DICTCOMP,            /* key, value, target, iterated, condition or NULL */
    OPDI_SX_CALL,                /* function, arguments (also OPDI_SX_KEYWORD and OPDI_SX_STAR) */
    OPDI_SX_KEYWORD,             /* word = part */
    OPDI_SX_STAR,                /* *part */
    OPDI_SX_ATTR,                /* part.word */
    OPDI_SX_SUBSCRIPT,           /* part[index, ...] */
    OPDI_SX_SLICE,               /* begin, end and step, each may be NULL */
    OPDI_SX_UNARY, OPDI_SX_BINARY,                       /* op; parts */
    OPDI_SX_COMPARE,             /* op; two parts */
    OPDI_SX_AND, OPDI_SX_OR, OPDI_SX_NOT,
    OPDI_SX_TERNARY,             /* condition, then, else */
    OPDI_SX_EXPR,                /* the first kind of statement; part: an expression */
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
    OPDI_SX_AGAIN,               /* the end of an iteration: computes whether the loop continues */
    OPDI_SX_TURN,                /* iteration number `integer` of an unrolled loop */
    OPDI_SX_BLOCK,               /* statements */
    OPDI_SX_DEF,                 /* word: name; parts: returned type or NULL, body, parameters (PARAM) */
    OPDI_SX_PARAM,               /* word: name; parts: type or NULL, default or NULL; op: 1 behind the *, 2 is *args */
    OPDI_SX_CLASS                /* word: name; parts: base class or NULL, body */
} opdi_sx;
/* Operators: the member `op` of UNARY, BINARY, AUGMENTED and COMPARE nodes. */
enum {
    OPDI_SO_ADD, OPDI_SO_SUB, OPDI_SO_MUL, OPDI_SO_DIV, OPDI_SO_FLOORDIV, OPDI_SO_MOD, OPDI_SO_POW, OPDI_SO_MATMUL,
    OPDI_SO_AND, OPDI_SO_OR, OPDI_SO_XOR, OPDI_SO_SHL, OPDI_SO_SHR, OPDI_SO_NEG, OPDI_SO_POS, OPDI_SO_INVERT,
    OPDI_SO_EQ, OPDI_SO_NE, OPDI_SO_LT, OPDI_SO_LE, OPDI_SO_GT, OPDI_SO_GE, OPDI_SO_IN, OPDI_SO_NOTIN, OPDI_SO_IS,
    OPDI_SO_ISNOT
};
typedef struct opdi_syntax {
    int16_t kind, op;
    int32_t nparts;
    uint32_t at, length;         /* at: its first byte in the text; length: in bytes */
    const opdi_stext *text;
    struct opdi_syntax **parts;
    const char *word;
    int64_t integer;
    double number;
} opdi_syntax;
/* The sign of a number node, in its member `op`.  NEEDED: the number is 2^63, which is only valid behind a minus. */
enum { OPDI_SIGN_NONE, OPDI_SIGN_WRITTEN, OPDI_SIGN_NEEDED };
/* The kind of a method that decorators determine, in the member `op` of its node. */
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
    const opdi_syntax *otherwise;                 /* the default's expression; NULL: there is none */
    bool keyword_only;
} opdi_sformal;
typedef struct opdi_sfunction {
    struct opdi_sfunction *next;
    const char *name;                             /* "__torch__.f"; for a method, "forward" */
    const opdi_syntax *def;
    struct opdi_sclass *owner;                    /* methods: the class */
    struct opdi_sunit *unit;                      /* the text with its definition */
    opdi_sformal *formals;                        /* its parameters; NULL: not yet needed */
    int32_t nformals;
    const opdi_gtype *result;                     /* NULL: the type follows from the return statements */
    struct opdi_sframe *around;                   /* nested functions: the variables of the function around it */
    bool busy;                                    /* true while it is compiled */
    opd_graph *graph;                             /* NULL: not yet needed */
} opdi_sfunction;
typedef struct opdi_sclass {
    struct opdi_sclass *next;
    opdi_gclass *gclass;
    const opdi_syntax *def;
    struct opdi_sunit *unit;
    opdi_sfunction *methods;
    int state;                                    /* 0 declared, 1 being resolved, 2 resolved */
    opd_value *members;                           /* enums: the members, objects with a name and a value */
    int32_t nmembers;
    struct opdi_senum_said *said;                 /* enums: the objects made of members, for each place in the text */
} opdi_sclass;
/* A text of a script: source text, or a file of an archive, which is read when a name in it is first needed. */
typedef struct opdi_sunit {
    struct opdi_sunit *next;
    const char *prefix;                           /* prefix of the names in it: "__torch__.a.b" */
    opdi_stext text;
    opdi_syntax *tree;                            /* NULL: the text is not parsed yet */
    opdi_sfunction *functions;
    opdi_sclass *classes;
    int32_t builtin;                              /* 1, 2, ...: number of a text of this library (opdi_sprelude); 0:
                                                     another text */
} opdi_sunit;
struct opd_script {
    int32_t refs;
    opdi_arena arena;
    opdi_gspace *space;
    opdi_sunit *units;
    opd_value self;                               /* the object that has the script's methods; NONE: it has only
                                                     functions */
    opd_value constants;                          /* a tuple with the values CONSTANTS.c0, CONSTANTS.c1, ... */
    opd_module *module;
    opdi_string bound;                            /* opdi_sbound[]: the tensors of objects that are in `module`, too */
    struct opdi_sarchive *archive;                /* NULL if the script is from source text */
    int version;                                  /* version of the archive; operators do what they did in that
                                                     version */
    void (*let_go)(struct opdi_sarchive *archive);
    opdi_sunit *(*find)(struct opd_script *script, const char *prefix);          /* reads the text `prefix` of the
                                                                                    archive; NULL: it has none */
    const struct opdi_swork *work;
    struct opdi_slisted *listed;                  /* the operators that the script calls; NULL: not yet needed */
    struct opdi_swrapped *numbers;
};
/* An operator that a script calls, and the number of its calls. */
typedef struct opdi_slisted {
    struct opdi_slisted *next;
    const char *name;
    int64_t count;
    bool missing;
} opdi_slisted;
/* The tensor in slot `slot` of an object, and `place`, its index in the module. */
typedef struct opdi_sbound { opdi_cell *object; int32_t slot; int64_t place; } opdi_sbound;
/* What an expression means: a value, or something that exists only at compile time.  Each comment tells the members of
   opdi_sugar that are used. */
typedef enum opdi_skind {
    OPDI_SK_NOTHING, OPDI_SK_VALUE,
    OPDI_SK_SPACE,               /* a namespace; word: "torch.nn" */
    OPDI_SK_BUILTIN,             /* word: the operator or builtin, such as "aten::add"; value: its self argument, or
                                    NULL */
    OPDI_SK_SPECIAL,             /* word: a function that the compiler implements, such as "isinstance" */
    OPDI_SK_FUNCTION, OPDI_SK_METHOD,             /* function; methods: value is the object */
    OPDI_SK_CLASS                /* klass */
} opdi_skind;
typedef struct opdi_sugar {
    opdi_skind kind;
    opdi_gvalue *value;
    const char *word;
    opdi_sfunction *function;
    opdi_gclass *klass;
} opdi_sugar;
/* A variable of a frame.  In inner frames, only values of the type `type` can be assigned to it. */
typedef struct opdi_svar {
    struct opdi_svar *next;
    const char *name;
    uint32_t hash;                                /* hash of the name, for a fast comparison */
    opdi_sugar sugar;
    const opdi_gtype *type;
} opdi_svar;
typedef struct opdi_sframe {
    struct opdi_sframe *up;                       /* NULL: the outermost frame of a function */
    opdi_svar *vars;
    bool rest;                                    /* true: for the statements behind a branch, which were moved into one
                                                     of its blocks */
} opdi_sframe;
/* How statements end.  NOT: the next statement runs.  MAYBE: perhaps not.  In the other cases it never runs: TURN: the
   loop's iteration ends, RETURN: the function ends, RAISE: an exception is raised.  ERROR: the statements were not
   compiled because of an error. */
typedef enum opdi_sleave {
    OPDI_LEAVE_NOT, OPDI_LEAVE_MAYBE, OPDI_LEAVE_TURN, OPDI_LEAVE_RETURN, OPDI_LEAVE_RAISE, OPDI_LEAVE_ERROR
} opdi_sleave;
enum { OPDI_SCRIPT_CALLS = 64, OPDI_SCRIPT_ARGS = 64, OPDI_SCRIPT_NAMES = 64 };
/* A call whose function was inlined into a graph.  The numbers (id) of its values are in [from, to). */
typedef struct opdi_scalled {
    struct opdi_scalled *next;
    int32_t from, to;
    opdi_gvalue *result, *call;                   /* result: the call's result; call: a value that represents the
                                                     call in TorchScript, and gets the result's name */
    opdi_gvalue *self;                            /* methods: the object, which is the first argument, or a
                                                     placeholder */
} opdi_scalled;
/* The function that is being compiled into a graph.  Its nodes are in `block`, behind the node `before`. */
typedef struct opdi_sbody {
    struct opdi_sbody *up;
    opdi_sfunction *function;
    const opdi_gtype *result;                     /* its result type; NULL: not yet known */
    opdi_gvalue *unset;                           /* a placeholder for the result, as long as none was returned */
    int loops;                                    /* number of loops around the current statement */
    const opdi_syntax *again;                     /* the condition of the innermost loop, if that is a while loop; else
                                                     NULL */
    opdi_gvalue *always;                          /* if `again` is NULL: the value True */
    const struct opdi_sloop *unrolled;            /* the innermost unrolled loop */
    struct opdi_spooled *awaiting;                /* values whose type is the function's result type, if that is not yet
                                                     known */
    struct opdi_spooled *literals, *unsets;       /* literals: shared constants of the text; unsets: placeholders for
                                                     variables that are not set */
    opdi_gvalue *flags[2];                        /* constants False and True, for flags that the compiler adds */
    opdi_gblock *block;
    opdi_gnode *before;                           /* NULL: its first node is the block's first node */
    int32_t from;                                 /* id of the function's first value */
    opdi_gvalue *self;                            /* methods: the object, or a constant for it */
    opdi_scalled *called;                         /* inlined calls, newest first */
    struct opdi_snamed *names[OPDI_SCRIPT_NAMES];
    struct opdi_spooled *moved;                   /* named values of statements that were moved into branches */
    struct opdi_slater *later, **last;            /* names that values get when the function is complete */
} opdi_sbody;
typedef struct opdi_emitter {
    opd_script *script;
    opdi_gspace *space;
    opd_graph *graph;
    opdi_arena *arena;                            /* memory that is freed when compiling ends */
    opdi_sframe *frame;
    opdi_sbody *body;
    const opdi_syntax *at;                        /* the current syntax node, for errors and source places */
    opdi_sunit *unit;
    int depth;
    bool nowhere, quiet;                          /* nowhere: new nodes get no source place; quiet: reads of variables
                                                     take no names */
    int moved;                                    /* number of branches around the current statement into which
                                                     statements were moved */
    struct opdi_spooled *empty;
    opdi_gvalue *parameter;                       /* the last result of torch.nn.Parameter(...) */
} opdi_emitter;
/* Functions of the compiler of statements that the compiler of expressions calls. */
typedef struct opdi_swork {
    opdi_gvalue *(*inlined)(opdi_emitter *task, opdi_sfunction *function, opdi_gvalue *const *values);
    opdi_gvalue *(*comprehension)(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint);
    int (*discover)(opdi_emitter *task, opdi_sfunction *init);    /* compiles __init__ to find the attributes that it
                                                                     creates */
    opd_graph *(*compiled)(opd_script *script, opdi_sfunction *function);
} opdi_swork;
/* Sets an error that shows the place being compiled.  Returns -1. */
#define OPDI_EMIT_FAIL(task, ...) \
    opdi_stext_fail((task)->at->text, (task)->at->at, (task)->at->length, __VA_ARGS__)
/* Flags of the attributes of module classes that are defined in source text. */
enum { OPDI_SCLASS_PARAMETER = 1, OPDI_SCLASS_BUFFER = 2 };
/* The object made of an enum member at one place of a text.  As in PyTorch, each place has its own object, so `is`
   gives False for the objects of two places. */
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
/* A name of values in a function.  taken: a value has the name.  If `value` is NULL, this is a value that TorchScript
   makes and later removes. */
typedef struct opdi_snamed {
    struct opdi_snamed *next;
    const char *name;
    opdi_gvalue *value;
    int32_t suffix;                               /* for "x": one more than the last number used in x.1, x.3, ... */
    bool taken;
} opdi_snamed;
/* A name that `value` gets when its function is complete.  If `value` is NULL, the name is only taken, as in
   opdi_snamed. */
typedef struct opdi_slater {
    struct opdi_slater *next;
    const char *name;                             /* NULL: the value loses its name */
    opdi_gvalue *value;
} opdi_slater;
/* A traced number: torch.jit.trace stored it as a tensor without dims (traced).  number: the same as a wrapped number,
   which does not take part in type promotion. */
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
/* The type that a variable has if a condition holds. */
typedef struct opdi_srefine {
    struct opdi_srefine *next;
    const char *name;
    const opdi_gtype *type;
} opdi_srefine;
/* A compiled condition.  `fixed` is 0 or 1 if the result is known at compile time, else -1. */
typedef struct opdi_scond {
    opdi_gvalue *value;
    int fixed;
    opdi_srefine *holds, *fails;                  /* holds: types of variables if it is true; fails: if it is false */
} opdi_scond;
/* An operator: the function that computes it, its sign in texts, and the name of the method by which classes implement
   it. */
typedef struct opdi_soperator { const char *name, *written, *method; } opdi_soperator;
#endif
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* A prim::If that is being compiled, with its two blocks, and the variables that are set in each. */
typedef struct opdi_sbranch {
    opdi_gnode *node;
    opdi_gblock *blocks[2], *before;
    opdi_sframe frames[2];
    opdi_sleave leaves[2];
    bool unnamed;                                 /* its results are not variables of the text */
} opdi_sbranch;
/* Kinds of iterations of for loops. */
typedef enum opdi_siter_kind {
    OPDI_SI_LIST, OPDI_SI_RANGE, OPDI_SI_ZIP, OPDI_SI_UNROLLED
} opdi_siter_kind;
enum { OPDI_SCRIPT_ZIPPED = 8 };
typedef struct opdi_siter {
    opdi_siter_kind kind;
    opdi_gvalue *value, *start, *step;            /* LIST: value: the list; RANGE: start and step; NULL: 0 and 1 */
    opdi_gvalue *length;                          /* number of elements; NULL: there is no end */
    struct opdi_siter *parts[OPDI_SCRIPT_ZIPPED];
    int nparts, count;                            /* count: number of iterations of an unrolled loop; -1: it is not
                                                     unrolled */
    opdi_gvalue **items;
} opdi_siter;
/* A loop that is being compiled. */
typedef struct opdi_sloop {
    const opdi_syntax *node, *body, *target;      /* body: a block or, in a comprehension, the element */
    const opdi_syntax *condition;                 /* while loops only */
    opdi_siter *iter;                             /* for loops only */
    opdi_gvalue *list;                            /* comprehensions: the list or dict */
    const opdi_syntax *key, *only;                /* comprehensions: key: the key of a dict; only: the condition */
    const char **names;                           /* names of the variables that the loop carries */
    int ncarried;
    bool flags, returns;
    opdi_gvalue *always;                          /* the value True, if there is no condition */
    opdi_gvalue *one, *length;                    /* for loops that may end early: the constant 1, number of elements */
} opdi_sloop;
#endif
#endif

//== archives ==========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
#if defined(OPDI_CORE)
/* An open archive, which exists as long as its script. */
typedef struct opdi_sarchive {
    opdi_arena arena;
    opd_tensor_file *file;
    const char *root;                             /* "model/" */
} opdi_sarchive;
#endif
#endif
#include "script.prototypes.h"
#endif

