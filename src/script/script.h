//----------------------------------------------------------------------------------------------------------------------
//  >>script_h     TorchScript: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_SCRIPT_H)
#define OPDI_SCRIPT_H
#include "../programs/programs.h"

//== tokens ============================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* The place in a source (file, line and column) from which the text from byte `at` on was made. */
typedef struct opdi_script_place {
    uint32_t at, line, column;
    const char *file;
} opdi_script_place;
/* A text of a script.  `name` is its name in error messages. */
typedef struct opdi_script_text {
    const char *name, *text;
    size_t length;
    const uint32_t *lines;                        /* [nlines]: the byte at which each line begins */
    uint32_t nlines, nplaces;
    const opdi_script_place *places;              /* [nplaces], sorted by `at`; NULL if the text itself is the source */
} opdi_script_text;
/* Kinds of tokens.  If a sign has one character, its kind is this character. */
enum {
    OPDI_SCRIPT_TOKEN_END = 256, OPDI_SCRIPT_TOKEN_NAME, OPDI_SCRIPT_TOKEN_INT, OPDI_SCRIPT_TOKEN_FLOAT,
    OPDI_SCRIPT_TOKEN_IMAGINARY, OPDI_SCRIPT_TOKEN_TEXT, OPDI_SCRIPT_TOKEN_NEWLINE,
    OPDI_SCRIPT_TOKEN_INDENT, OPDI_SCRIPT_TOKEN_DEDENT, OPDI_SCRIPT_TOKEN_SIGN /* a sign of several characters (see
                                                                                  opdi_script_token.sign) */
};
enum {
    OPDI_SCRIPT_DEPTH = 200, OPDI_SCRIPT_INDENTS = 100, OPDI_SCRIPT_TEXT = 1 << 26, OPDI_SCRIPT_VALUES = 500000,
    OPDI_SCRIPT_EMIT_DEPTH = 4000
};
typedef struct opdi_script_token {
    int16_t kind, sign;
    uint32_t at, length;         /* at: its first byte; length: its length in bytes, with the prefix and the quotes of a
                                    string */
} opdi_script_token;
typedef struct opdi_script_lexer {
    const opdi_script_text *text;
    size_t at;
    int nesting, nindents;       /* nesting: number of open brackets; nindents: number of open indentations */
    uint32_t indents[OPDI_SCRIPT_INDENTS];
    opdi_string tokens;          /* opdi_script_token[] */
    bool pending;                /* true: a line with tokens has begun, and has not ended yet */
} opdi_script_lexer;
#endif

//== parsing ===========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* Kinds of syntax nodes.  Each comment lists the members that a node of this kind uses, and then its parts, in
   order. */
typedef enum opdi_syntax_kind {
    OPDI_SYNTAX_NAME,            /* word: the name */
    OPDI_SYNTAX_INT, OPDI_SYNTAX_FLOAT, OPDI_SYNTAX_IMAGINARY, /* integer or number: the value; op: OPDI_SIGN_... */
    OPDI_SYNTAX_TEXT,            /* word: the text; integer: its length in bytes */
    OPDI_SYNTAX_FORMAT,          /* an f-string; parts: texts and expressions, alternately */
    OPDI_SYNTAX_TRUE, OPDI_SYNTAX_FALSE, OPDI_SYNTAX_NONE, OPDI_SYNTAX_DOTS,
    OPDI_SYNTAX_TUPLE, OPDI_SYNTAX_LIST, OPDI_SYNTAX_SET, /* parts: elements */
    OPDI_SYNTAX_DICT,            /* parts: keys and values, alternately */
    OPDI_SYNTAX_LISTCOMP,        /* parts: element, target, iterated, condition or NULL */
    OPDI_SYNTAX_DICTCOMP,        /* parts: key, value, target, iterated, condition or NULL */
    OPDI_SYNTAX_CALL,            /* parts: function, arguments (also OPDI_SYNTAX_KEYWORD and OPDI_SYNTAX_STAR) */
    OPDI_SYNTAX_KEYWORD,         /* a keyword argument, word = part */
    OPDI_SYNTAX_STAR,            /* *part */
    OPDI_SYNTAX_ATTR,            /* part.word */
    OPDI_SYNTAX_SUBSCRIPT,       /* part[index, ...] */
    OPDI_SYNTAX_SLICE,           /* parts: begin, end and step; each may be NULL */
    OPDI_SYNTAX_UNARY, OPDI_SYNTAX_BINARY,               /* op; parts: the operands */
    OPDI_SYNTAX_COMPARE,         /* op; parts: two operands */
    OPDI_SYNTAX_AND, OPDI_SYNTAX_OR, OPDI_SYNTAX_NOT,
    OPDI_SYNTAX_TERNARY,         /* parts: condition, value if true, value if false */
    OPDI_SYNTAX_EXPR,            /* a statement, as all kinds from here on; part: an expression */
    OPDI_SYNTAX_ASSIGN,          /* parts: value, targets */
    OPDI_SYNTAX_ANNOTATED,       /* parts: target, type, value or NULL */
    OPDI_SYNTAX_AUGMENTED,       /* op; parts: target, value */
    OPDI_SYNTAX_IF,              /* parts: condition, body, body of else (both are blocks) */
    OPDI_SYNTAX_WHILE,           /* parts: condition, body */
    OPDI_SYNTAX_FOR,             /* parts: target, iterated, body */
    OPDI_SYNTAX_RETURN,          /* part: value or NULL */
    OPDI_SYNTAX_PASS, OPDI_SYNTAX_BREAK, OPDI_SYNTAX_CONTINUE,
    OPDI_SYNTAX_RAISE,           /* part: value or NULL */
    OPDI_SYNTAX_ASSERT,          /* parts: condition, text or NULL */
    OPDI_SYNTAX_DELETE,          /* parts: targets */
    OPDI_SYNTAX_WITH,            /* parts: value, target or NULL, body */
    OPDI_SYNTAX_AGAIN,           /* at the end of an iteration: computes whether the loop continues */
    OPDI_SYNTAX_TURN,            /* iteration number `integer` of an unrolled loop */
    OPDI_SYNTAX_BLOCK,           /* parts: statements */
    OPDI_SYNTAX_DEF,             /* word: name; parts: returned type or NULL, body, parameters (PARAM) */
    OPDI_SYNTAX_PARAM,           /* word: name; parts: type or NULL, default or NULL; op: 1 if keyword-only */
    OPDI_SYNTAX_CLASS            /* word: name; parts: base class or NULL, body */
} opdi_syntax_kind;
/* Operators: the values of `op` in UNARY, BINARY, AUGMENTED and COMPARE nodes. */
enum {
    OPDI_SCRIPT_OP_ADD, OPDI_SCRIPT_OP_SUB, OPDI_SCRIPT_OP_MUL, OPDI_SCRIPT_OP_DIV, OPDI_SCRIPT_OP_FLOORDIV,
    OPDI_SCRIPT_OP_MOD, OPDI_SCRIPT_OP_POW, OPDI_SCRIPT_OP_MATMUL, OPDI_SCRIPT_OP_AND, OPDI_SCRIPT_OP_OR,
    OPDI_SCRIPT_OP_XOR, OPDI_SCRIPT_OP_SHL, OPDI_SCRIPT_OP_SHR, OPDI_SCRIPT_OP_NEG, OPDI_SCRIPT_OP_POS,
    OPDI_SCRIPT_OP_INVERT, OPDI_SCRIPT_OP_EQ, OPDI_SCRIPT_OP_NE, OPDI_SCRIPT_OP_LT, OPDI_SCRIPT_OP_LE,
    OPDI_SCRIPT_OP_GT, OPDI_SCRIPT_OP_GE, OPDI_SCRIPT_OP_IN, OPDI_SCRIPT_OP_NOTIN, OPDI_SCRIPT_OP_IS,
    OPDI_SCRIPT_OP_ISNOT
};
typedef struct opdi_syntax {
    int16_t kind, op;
    int32_t nparts;
    uint32_t at, length;         /* at: its first byte in the text; length: its length in bytes */
    const opdi_script_text *text;
    struct opdi_syntax **parts;
    const char *word;
    int64_t integer;
    double number;
} opdi_syntax;
/* The sign of a number: `op` of the number's node.  NEEDED: the number is 2^63, which is valid only after a minus. */
enum { OPDI_SIGN_NONE, OPDI_SIGN_WRITTEN, OPDI_SIGN_NEEDED };
/* The kind that decorators give to a method: `op` of the method's node. */
enum { OPDI_METHOD_PLAIN, OPDI_METHOD_PROPERTY, OPDI_METHOD_SETTER, OPDI_METHOD_STATIC };
#endif

//== types =============================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* A parameter of a function. */
typedef struct opdi_script_formal {
    const char *name;
    const opdi_gtype *type;
    const opdi_syntax *otherwise;                 /* the expression of the default; NULL if there is none */
    bool keyword_only;
} opdi_script_formal;
typedef struct opdi_script_function {
    struct opdi_script_function *next;
    const char *name;                             /* such as "__torch__.f"; of a method, such as "forward" */
    const opdi_syntax *def;
    struct opdi_script_class *owner;              /* the class of a method; else NULL */
    struct opdi_script_unit *unit;                /* the text with its definition */
    opdi_script_formal *formals;                  /* its parameters; NULL: they were not needed yet */
    int32_t nformals;
    const opdi_gtype *result;                     /* the result type; NULL: the return statements determine it */
    struct opdi_script_frame *around;             /* of a nested function: the variables of the outer function */
    bool busy;                                    /* true while the function is compiled */
    opd_graph *graph;                             /* NULL: the graph was not needed yet */
} opdi_script_function;
/* Functions in the order in which they were defined, and a table of their names. */
typedef struct opdi_script_functions {
    opdi_script_function *first, *last;
    opdi_index index;
} opdi_script_functions;
typedef struct opdi_script_class {
    struct opdi_script_class *next;
    opdi_gclass *gclass;
    const opdi_syntax *def;
    struct opdi_script_unit *unit;
    opdi_script_functions methods;
    int state;                                    /* 0: declared; 1: being resolved; 2: resolved */
    opd_value *members;                           /* of an enum: its members, which are objects with a name and a
                                                     value */
    int32_t nmembers;
    opdi_index members_named, said_at;
    struct opdi_script_enum_object *said;         /* of an enum: the objects for its members at each place in the
                                                     text */
} opdi_script_class;
/* A text of a script: source text, or a file of an archive.  It is parsed when a name in it is first needed. */
typedef struct opdi_script_unit {
    struct opdi_script_unit *next;
    const char *prefix;                           /* the prefix of the names in it, such as "__torch__.a.b" */
    opdi_script_text text;
    opdi_syntax *tree;                            /* NULL: the text was not parsed yet */
    opdi_script_functions functions;
    opdi_script_class *classes;                   /* the class that is defined last is the first in the list */
    opdi_index classes_named;
    int32_t builtin;                              /* 1, 2, ...: the number of a text of this library (opdi_preludes); 0:
                                                     a text of the program */
} opdi_script_unit;
enum { OPDI_SCRIPT_PRELUDES = 16 };
struct opd_script {
    int32_t refs;
    opdi_arena arena;
    opdi_gspace *space;
    opdi_script_unit *units;
    opdi_index units_named;                       /* the texts by their prefixes */
    opdi_script_unit *preludes[OPDI_SCRIPT_PRELUDES];            /* the texts of this library that were read */
    uint64_t bytes, values;                       /* bytes: length of the script's own texts; values: number of values
                                                     in the graphs that were compiled (see opdi_emit_afford) */
    opd_value self;                               /* the object whose methods the script has; NONE if the script has
                                                     only functions */
    opd_value constants;                          /* a tuple of the values CONSTANTS.c0, CONSTANTS.c1, ... */
    opd_module *module;
    opdi_string bound;                            /* opdi_script_binding[]: the tensors of objects that `module` also
                                                     has */
    struct opdi_script_archive *archive;          /* NULL if the script is from source text */
    bool run_setstate;                            /* see opd_script_options */
    bool changed;                                 /* true: opd_script_set_graph has replaced a graph */
    int version;                                  /* version of the archive; operators behave as they did in this
                                                     version */
    void (*let_go)(struct opdi_script_archive *archive);         /* frees the archive */
    opdi_script_unit *(*find)(struct opd_script *script, const char *prefix);    /* reads the text `prefix` of the
                                                                                    archive; returns NULL if there is
                                                                                    none */
    const struct opdi_script_callbacks *work;
    int resolving;                                /* how many classes are being resolved, each for the one before it */
    struct opdi_script_op_count *listed;          /* the operators that the script calls; NULL: the list was not needed
                                                     yet */
    struct opdi_script_wrapped_number *numbers;
    opdi_index numbers_of;                        /* the wrapped numbers by the traced tensors */
};
/* An operator that a script calls.  `count` is the number of places that call it; `missing` is true if this program
   does not have it. */
typedef struct opdi_script_op_count {
    struct opdi_script_op_count *next;
    const char *name;
    int64_t count;
    bool missing;
} opdi_script_op_count;
/* A tensor that both an object and the module have: `slot` is its slot in the object, and `place` its index in the
   module. */
typedef struct opdi_script_binding { opdi_cell *object; int32_t slot; int64_t place; } opdi_script_binding;
/* Kinds of meanings of an expression: a value, or something that exists only at compile time.  Each comment lists the
   members of opdi_sugared that are used. */
typedef enum opdi_sugared_kind {
    OPDI_SUGARED_NOTHING, OPDI_SUGARED_VALUE,
    OPDI_SUGARED_SPACE,          /* a namespace; word: "torch.nn" */
    OPDI_SUGARED_BUILTIN,        /* word: the operator or builtin, such as "aten::add"; value: its self argument, or
                                    NULL */
    OPDI_SUGARED_SPECIAL,        /* word: a function that the compiler implements, such as "isinstance" */
    OPDI_SUGARED_FUNCTION, OPDI_SUGARED_METHOD,   /* function; of a METHOD: value is the object */
    OPDI_SUGARED_CLASS           /* klass */
} opdi_sugared_kind;
typedef struct opdi_sugared {
    opdi_sugared_kind kind;
    opdi_gvalue *value;
    const char *word;
    opdi_script_function *function;
    opdi_gclass *klass;
} opdi_sugared;
/* A variable in a frame.  In inner frames, only values of type `type` can be assigned to it. */
typedef struct opdi_script_var {
    struct opdi_script_var *next;
    const char *name;
    opdi_sugared sugared;
    const opdi_gtype *type;
} opdi_script_var;
typedef struct opdi_script_frame {
    struct opdi_script_frame *up;                 /* the outer frame; NULL: this is the outermost frame of a function */
    opdi_script_var *vars;
    opdi_index vars_named;
    bool rest;                                    /* true: the frame is for the statements after a branch, which were
                                                     moved into one of its blocks */
} opdi_script_frame;
/* How statements end.  NONE: the next statement runs.  MAYBE: the next statement may or may not run.  ITERATION: the
   iteration of the loop ends.  RETURN: the function ends.  RAISE: an exception is raised.  ERROR: the statements were
   not compiled, because of an error. */
typedef enum opdi_script_exit {
    OPDI_EXIT_NONE, OPDI_EXIT_MAYBE, OPDI_EXIT_ITERATION, OPDI_EXIT_RETURN, OPDI_EXIT_RAISE, OPDI_EXIT_ERROR
} opdi_script_exit;
enum { OPDI_SCRIPT_CALLS = 64, OPDI_SCRIPT_ARGS = 64, OPDI_SCRIPT_CLASSES = 1000 };
/* A call whose function was inlined into a graph.  Its values have the numbers (id) from `from` to `to` - 1. */
typedef struct opdi_inlined_call {
    int32_t from, to;
    opdi_gvalue *result, *call;                   /* result: the result of the call; call: a value that represents the
                                                     call in TorchScript, and gets the name of the result */
    opdi_gvalue *self;                            /* of a method: the object (its first argument), or a placeholder */
} opdi_inlined_call;
/* A function that is being compiled into a graph.  Its nodes are in `block`, after the node `before`. */
typedef struct opdi_script_body {
    struct opdi_script_body *up;
    opdi_script_function *function;
    const opdi_gtype *result;                     /* the result type; NULL: it is not known yet */
    opdi_gvalue *unset;                           /* a placeholder for the result while no return has run */
    int loops;                                    /* the number of loops around the current statement */
    const opdi_syntax *again;                     /* the condition of the innermost loop, if it is a while loop; else
                                                     NULL */
    opdi_gvalue *always;                          /* if `again` is NULL: the value True */
    const struct opdi_script_loop *unrolled;      /* the innermost unrolled loop */
    struct opdi_value_entry *awaiting;            /* values whose type is the result type, which is not known yet */
    opdi_index literals, unsets;                  /* literals: constants of the text, which equal numbers share; unsets:
                                                     placeholders for variables that are not set, by their types */
    opdi_gvalue *flags[2];                        /* the constants False and True for flags that the compiler adds */
    opdi_gblock *block;
    opdi_gnode *before;                           /* NULL: the first node is the first of the block */
    int32_t from;                                 /* the number (id) of its first value */
    opdi_gvalue *self;                            /* of a method: the object, or a constant that represents it */
    opdi_inlined_call **called;                   /* [ncalled] the inlined calls, in the order of their values */
    int32_t ncalled;
    opdi_index names;                             /* of opdi_script_value_name */
    struct opdi_value_entry *moved;               /* values with names in statements that were moved into branches */
    struct opdi_deferred_name *later, **last;     /* names that values will get when the function is complete */
} opdi_script_body;
typedef struct opdi_emitter {
    opd_script *script;
    opdi_gspace *space;
    opd_graph *graph;
    opdi_arena *arena;                            /* memory that is freed when the compilation ends */
    opdi_script_frame *frame;
    opdi_script_body *body;
    const opdi_syntax *at;                        /* the current syntax node, for errors and for source places */
    opdi_script_unit *unit;
    int depth;
    bool nowhere, quiet;                          /* nowhere: new nodes get no source place; quiet: assigning to a
                                                     variable gives no value its name, and reading it does not mark its
                                                     name as taken (opdi_emit_name, opdi_emit_loaded) */
    int moved;                                    /* the number of branches around the current statement into which
                                                     statements were moved */
    struct opdi_value_entry *empty;               /* the lists and dicts whose element type is not known yet */
    opdi_gvalue *parameter;                       /* the last result of torch.nn.Parameter(...) */
} opdi_emitter;
/* Functions for compiling statements, which the functions for compiling expressions call. */
typedef struct opdi_script_callbacks {
    opdi_gvalue *(*inlined)(opdi_emitter *task, opdi_script_function *function, opdi_gvalue *const *values);
    opdi_gvalue *(*comprehension)(opdi_emitter *task, const opdi_syntax *node, const opdi_gtype *hint);
    int (*discover)(opdi_emitter *task, opdi_script_function *init); /* compiles __init__, to find the attributes that
                                                                        it creates */
    opd_graph *(*compiled)(opd_script *script, opdi_script_function *function);
} opdi_script_callbacks;
/* Sets an error that shows the place in the text that is being compiled.  Returns -1. */
#define OPDI_EMIT_FAIL(task, ...) \
    opdi_script_text_fail((task)->at->text, (task)->at->at, (task)->at->length, __VA_ARGS__)
/* Flags of attributes in module classes that source text defines. */
enum { OPDI_SCRIPT_CLASS_PARAMETER = 1, OPDI_SCRIPT_CLASS_BUFFER = 2 };
/* A place in a text, and the index of a member of the enum that it names. */
typedef struct opdi_script_enum_place { const opdi_syntax *place; int64_t which; } opdi_script_enum_place;
/* The object for a member of an enum at one place in a text.  As in PyTorch, each place has its own object, so `is`
   gives False for objects of two places. */
typedef struct opdi_script_enum_object {
    struct opdi_script_enum_object *next;
    opdi_script_enum_place at;
    opd_value object;
} opdi_script_enum_object;
#endif

//== building ==========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* An entry of a list of values. */
typedef struct opdi_value_entry {
    struct opdi_value_entry *next;
    opdi_gvalue *value;
} opdi_value_entry;
/* A name of values in a function.  `taken` is true if a value has the name.  If `value` is then NULL, this is a value
   that TorchScript makes and later removes. */
typedef struct opdi_script_value_name {
    const char *name;
    opdi_gvalue *value;
    int32_t suffix;                               /* for a name x: one more than the last number used in x.1, x.3,
                                                     ... */
    bool taken;
} opdi_script_value_name;
/* The name that `value` gets when its function is complete.  If `value` is NULL, the name is only marked as taken (see
   opdi_emit_take). */
typedef struct opdi_deferred_name {
    struct opdi_deferred_name *next;
    const char *name;                             /* NULL: the name of the value is removed */
    opdi_gvalue *value;
} opdi_deferred_name;
/* A traced number.  `traced` is the tensor without dims as which torch.jit.trace stored it.  `number` is its value as a
   wrapped number, which does not take part in type promotion. */
typedef struct opdi_script_wrapped_number {
    struct opdi_script_wrapped_number *next;
    const opd_tensor *traced;
    opd_tensor *number;
} opdi_script_wrapped_number;
#endif

//== python functions ==================================================================================================

#if !defined(OPD_NO_SCRIPTS)
typedef struct opdi_prelude { const char *text; size_t size; } opdi_prelude;
#endif

//== expressions =======================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* The type that a variable has if a condition is true, or if it is false. */
typedef struct opdi_refinement {
    struct opdi_refinement *next;
    const char *name;
    const opdi_gtype *type;
} opdi_refinement;
/* A compiled condition.  `fixed` is 0 or 1 if the result is known at compile time, else -1. */
typedef struct opdi_cond_value {
    opdi_gvalue *value;
    int fixed;
    opdi_refinement *holds, *fails;               /* holds: the types that variables have if the condition is true;
                                                     fails: if it is false */
} opdi_cond_value;
/* An operator: the function that computes it, its sign in texts, and the name of the method with which classes
   implement it. */
typedef struct opdi_script_operator { const char *name, *written, *method; } opdi_script_operator;
#endif

//== control flow ======================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* A prim::If that is being compiled, its two blocks, and the variables that are set in each block. */
typedef struct opdi_script_branch {
    opdi_gnode *node;
    opdi_gblock *blocks[2], *before;
    opdi_script_frame frames[2];
    opdi_script_exit leaves[2];                   /* how each block ends */
    bool unnamed;                                 /* true: its results are not variables of the text */
} opdi_script_branch;
/* Kinds of iteration in for loops. */
typedef enum opdi_script_iter_kind {
    OPDI_SCRIPT_ITER_LIST, OPDI_SCRIPT_ITER_RANGE, OPDI_SCRIPT_ITER_ZIP, OPDI_SCRIPT_ITER_UNROLLED
} opdi_script_iter_kind;
enum { OPDI_SCRIPT_ZIPPED = 8 };
typedef struct opdi_script_iter {
    opdi_script_iter_kind kind;
    opdi_gvalue *value, *start, *step;            /* LIST: value is the list.  RANGE: start and step; NULL: 0 and 1. */
    opdi_gvalue *length;                          /* the number of elements; NULL if there is no end */
    struct opdi_script_iter *parts[OPDI_SCRIPT_ZIPPED];          /* [nparts] of a ZIP: the iterations that are
                                                                    combined */
    int nparts, count;                            /* count: the number of iterations of an unrolled loop, or -1 if the
                                                     loop is not unrolled */
    opdi_gvalue **items;                          /* [count] of an UNROLLED loop: the elements */
} opdi_script_iter;
/* A loop that is being compiled. */
typedef struct opdi_script_loop {
    const opdi_syntax *node, *body, *target;      /* body: a block; in a comprehension, the element */
    const opdi_syntax *condition;                 /* only in while loops */
    opdi_script_iter *iter;                       /* only in for loops */
    opdi_gvalue *list;                            /* in a comprehension: the list or dict */
    const opdi_syntax *key, *only;                /* in a comprehension: the key of a dict, and the condition */
    const char **names;                           /* the names of the variables whose values the loop carries */
    int ncarried;
    bool flags, returns;                          /* flags: the loop has a break, continue or return; returns: it has a
                                                     return */
    opdi_gvalue *always;                          /* the value True, if the loop has no condition */
    opdi_gvalue *one, *length;                    /* in a for loop that may end early: the constant 1, and the number of
                                                     elements */
} opdi_script_loop;
#endif

//== archives ==========================================================================================================

#if !defined(OPD_NO_SCRIPTS)
/* An open archive.  It exists as long as its script. */
typedef struct opdi_script_archive {
    opdi_arena arena;
    opd_tensor_file *file;
    const char *root;                             /* the prefix of the names of all entries, such as "model/" */
} opdi_script_archive;
/* The state while a pickle is written.  An object that is used in several places is written once. */
typedef struct opdi_script_pickler {
    opdi_checkpoint_writer writer;
    opdi_pointer_set seen;
    opd_script *script;
} opdi_script_pickler;
#define OPDI_SCRIPT_CONSTANT "graph_constant_%d"          /* the attribute of a constant tensor of a traced graph */
/* The state while the text of a method is written; the text is made from the method's graph. */
typedef struct opdi_script_printer {
    opdi_string *code;
    const opd_script *script;
    opd_graph *graph;
    opdi_script_function *function;
    const char *named;                            /* values without a name get names with this prefix and a number */
    const char *who;                              /* the public function that writes, for errors */
    bool attributes;                              /* constant tensors are attributes of the object */
    opd_value none;
    int indent;
} opdi_script_printer;
#endif
#include "script.prototypes.h"
#endif

