//----------------------------------------------------------------------------------------------------------------------
//  >>compiler_h   graphs as C: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_COMPILER_H)
#define OPDI_COMPILER_H
#include "../script/script.h"

//== nests =============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
#define OPDI_NEST_DIMS 12
#define OPDI_NEST_INDICES 4
typedef enum opdi_buffer_role {
    OPDI_BUFFER_TEMPORARY, OPDI_BUFFER_INPUT, OPDI_BUFFER_CONSTANT
} opdi_buffer_role;
/* A block of memory in a recording. */
typedef struct opdi_buffer {
    size_t bytes;
    opd_scalar_type dtype;                        /* dtype of its elements at their first use */
    int32_t role, id;
    int64_t index;                                /* of an input: its number; of a constant: its byte offset among
                                                     all */
    bool output;                                  /* whether it is a result of the function */
    const void *data;                             /* of a constant: its bytes, in host memory */
    const opd_tensor *tensor;                     /* the constant */
    const char *name;
    size_t used;                                  /* how many of its bytes are used */
    struct opdi_nest *writer, *reader;            /* writer: the last nest that writes it; reader: the last that reads
                                                     it */
    int32_t writes, reads, readers;               /* writes: writing nests; reads: loads; readers: reading nests */
    bool fixed;                                   /* whether its contents are the same in every run */
    bool folded;                                  /* a constant from which the compiler has made other constants */
    bool front;                                   /* whether it is computed before everything else */
    bool kept;                                    /* its writer stays even if nothing reads it */
    struct opdi_group *group;                     /* the only group that uses it, or NULL; if set, memory for one row is
                                                     enough */
    int32_t first, last;                          /* the first and the last group that use it */
    int64_t place;                                /* its offset in the arena, or -1 */
} opdi_buffer;
/* The elements of a buffer that the loops of a nest access: element number offset + sum of strides[i] * index of loop
   i. */
typedef struct opdi_access {
    opdi_buffer *buffer;
    opd_scalar_type dtype;
    int64_t offset, strides[OPDI_NEST_DIMS];
} opdi_access;
/* How a floating-point number in an expression follows from an integer: n, 1 / n, sqrt(n), 1 / sqrt(n). */
enum { OPDI_FORM_NONE, OPDI_FORM_WHOLE, OPDI_FORM_PART, OPDI_FORM_ROOT, OPDI_FORM_ROOT_PART };
typedef enum opdi_expr_kind {
    OPDI_EXPR_LOAD, OPDI_EXPR_NUMBER, OPDI_EXPR_FORMULA, OPDI_EXPR_CAST,
    OPDI_EXPR_COUNT,                              /* offset + sum of strides * index, an int64 */
    OPDI_EXPR_RESULT,                             /* the result of the reduction, used in `finish` */
    OPDI_EXPR_PLACE                               /* has no value, only the indices for the nest's store */
} opdi_expr_kind;
/* A value inside the loops of a nest.  A load may have further indices, which are values themselves: its element is
   that of `access` + sum of index_strides[k] * in[k].  Each in[k] must be in [0, index_sizes[k]) or, if `wraps` is
   true, in [-index_sizes[k], index_sizes[k]). */
typedef struct opdi_expr {
    opdi_expr_kind kind;
    opd_scalar_type dtype;
    int32_t formula, nin, mark, round;
    struct opdi_expr *in[OPDI_NEST_INDICES];
    double f64[3];                                /* of a formula: its constants a, b, c; or a number */
    int64_t i64[3];
    opdi_access access;
    int64_t index_strides[OPDI_NEST_INDICES], index_sizes[OPDI_NEST_INDICES];
    int32_t order;                                /* its position in the list that is made of a recording
                                                     (opdi_open_list) */
    int8_t forms[3];                              /* how f64[k] follows from i64[k], which depends on an open size */
    bool wraps;                                   /* indices may be negative, to count from the end */
} opdi_expr;
typedef enum opdi_over {
    OPDI_OVER_NONE, OPDI_OVER_SUM, OPDI_OVER_PROD, OPDI_OVER_MAX, OPDI_OVER_MIN, OPDI_OVER_ANY,
    OPDI_OVER_ALL, OPDI_OVER_ARGMAX, OPDI_OVER_ARGMIN,
    OPDI_OVER_POOLED,                             /* as argmax, but gives the last of several NaNs, as PyTorch's pools
                                                     do */
    OPDI_OVER_MOST, OPDI_OVER_LEAST,              /* the places of the largest and following elements, one per
                                                     iteration of the last loop that is not reduced.  Nothing changes
                                                     such a nest (opdi_nest_stays). */
    OPDI_OVER_CALLED                              /* a call, over all bytes that it reads (opdi_called); not changed,
                                                     either */
} opdi_over;
/* Loops, outermost first, and the value that they store.  The innermost `nreduce` loops are reduced: the value is
   summed over them, or combined as `reduction` says, and `out` does not depend on them. */
typedef struct opdi_nest {
    struct opdi_nest *next, *prev;
    int32_t ndim, nreduce, id;
    int64_t sizes[OPDI_NEST_DIMS];
    opdi_over reduction;
    opdi_access out;
    opdi_expr *value, *finish;                    /* finish: of a reduction: the value stored for its result, or NULL */
    opdi_expr *place;                             /* the further indices of `out` (as those of a load), or NULL */
    bool follows;                                 /* it reads values that earlier iterations have stored */
    bool open;                                    /* whether a number in the nest depends on an open size */
    uint32_t open_loops, open_strides;            /* masks: the loops, and the strides of `out`, that depend on one */
    const char *what;                             /* the operator's name */
    struct opdi_called *called;                   /* a call of an operator instead of loops, or NULL */
} opdi_nest;
/* A result that a graph computed from numbers that may depend on open sizes: a truth value that decides what runs, a
   quotient, a remainder, a maximum or a minimum. */
typedef struct opdi_decision {
    struct opdi_decision *next;
    const char *name;                             /* name of the function that computed it */
    int32_t kind, count, first;                   /* kind: opdi_decision_kind; count: numbers it got; first: those in
                                                     its first argument */
    int64_t result, *numbers;                     /* numbers: what it got; floats are stored as their bits */
} opdi_decision;
/* A condition that fusing found true and relied on: less <= more. */
typedef struct opdi_fact { int64_t less, more; } opdi_fact;
/* The state of a recording. */
typedef struct opdi_recording {
    opdi_arena arena;
    opdi_buffer **buffers;                        /* [nbuffers], by their number */
    opdi_nest *first, *last;
    int32_t nbuffers, nnests, room;
    const char *what;                             /* the operator that runs now */
    bool open;                                    /* whether conditions are noted (opdi_fact) */
    bool loose;                                   /* the recording is only compared: extra copies do not matter */
    bool calls;                                   /* operators that cannot be written in C are called */
    bool draws;                                   /* so are operators that use random numbers */
    struct opdi_called *called;                   /* the called operators, newest first */
    int32_t ncalled;
    opdi_fact *facts;
    int32_t nfacts, facts_room, ndecisions;
    opdi_decision *decisions, *last_decision;
} opdi_recording;
/* Special functions, on doubles only.  These formulas exist only in nests: their numbers follow those of the other
   formulas, and no device has them. */
#define OPDI_NEST_FORMULAS(X) \
    X(lgamma, 1, D, OPD_H(lgamma)(x)) X(digamma, 1, D, OPD_H(digamma)(x)) X(erfinv, 1, D, OPD_H(erfinv)(x)) \
    X(ndtri, 1, D, OPD_H(ndtri)(x)) X(erfcx, 1, D, OPD_H(erfcx)(x)) X(log_ndtr, 1, D, OPD_H(log_ndtr)(x)) \
    X(entr, 1, D, OPD_H(entr)(x)) X(xlog1py, 2, D, OPD_H(xlog1py)(x, y)) X(i0, 1, D, OPD_H(i0)(x)) \
    X(i0e, 1, D, OPD_H(i0e)(x)) X(i1, 1, D, OPD_H(i1)(x)) X(i1e, 1, D, OPD_H(i1e)(x))
enum { OPDI_FORMULAS = OPD_FORMULA_COUNT + 12 };
#endif
#endif

//== called operators ==================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A tensor of a call, which is contiguous from byte `place` of a buffer on.  If `place` is -1, the argument is None; if
   it is OPDI_CALLED_NUMBER, the argument is a number instead of a tensor. */
#define OPDI_CALLED_NUMBER (-2)
typedef struct opdi_called_tensor {
    opd_scalar_type dtype;
    int32_t ndim;
    int32_t from, element;                        /* of a result: from: its number, or ~argument; element: its index in
                                                     a list, or -1 */
    int64_t place;
    double number[2];                             /* a complex number; an integer has its bits in number[0] */
    int64_t sizes[OPD_MAX_DIMS];
} opdi_called_tensor;
/* A call of an operator.  In `args`, a tensor is {TENSOR, n: its number in `in`}, and a list {TENSORS, n, u.i: number
   of its first tensor}.  `out` has the results that are tensors, then the arguments that the operator writes. */
typedef struct opdi_called {
    struct opdi_called *next;
    opd_op *op;
    int32_t id, nargs, nin, nout;
    opd_value *args;
    opdi_called_tensor *in, *out;
    size_t in_bytes, out_bytes;
    bool draws;                                   /* it uses the generator in each run, in the order of the calls */
} opdi_called;
#endif
#endif

//== lowerings =========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The windows of a pooling operator. */
typedef struct opdi_lower_pool {
    int count;                                    /* number of pooled dims */
    int64_t window[3], steps[3], before[3], after[3], dilation[3];
} opdi_lower_pool;
#endif
#endif

//== lowerings reading =================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The elements that tensor[indices] reads or writes: the sizes of the loops, and for each dim of the tensor its loop,
   or -1 if an index selects there. */
typedef struct opdi_lower_places {
    int64_t sizes[2 * OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS], ndim, where, wide;    /* where: the first loop over the indices; wide: the number of these
                                                     loops */
} opdi_lower_places;
#endif
#endif

//== fusing ============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
typedef void (*opdi_access_seen)(opdi_access *access, void *user);
#define OPDI_GROUP_NESTS 24
/* Nests that are computed together: in each iteration of their common outer loops, one runs after the other. */
typedef struct opdi_group {
    struct opdi_group *next;
    opdi_nest *nests[OPDI_GROUP_NESTS];
    int32_t nnests, outer, id;
    bool early;                                   /* it needs only constants, so it runs once */
    int64_t left, right;                          /* of a matrix product: places of its packed operands */
    int64_t scratch, scratch_bytes;               /* the packed operands' memory in the arena, unless they are packed
                                                     early */
} opdi_group;
#endif
#endif

//== c text ============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The state while a file is written. */
typedef struct opdi_cfile {
    opdi_recording *recording;
    opdi_string *out;                             /* the text of the functions */
    opdi_string code;                             /* the text of the groups */
    const char *name;
    int32_t next;                                 /* number of the next variable */
    int indent;
    uint64_t helpers[4];                          /* mask of those opdi_c_helpers that are called */
    uint32_t tiles[2], sorts;                     /* masks: tiles: heights of tiles, of floats and of doubles; sorts:
                                                     opdi_c_keys */
    bool failed;
    bool table;                                   /* constants are found in a table of pointers */
    int open;                                     /* number of open sizes, which functions get as arguments */
    const opdi_group *group;
    const char *result;                           /* the variable that has the result of a reduction */
} opdi_cfile;
enum { OPDI_C_HELPERS = 86 };
/* Helpers that groups call.  Each one comes after the helpers that it calls. */
typedef struct opdi_c_helper { const char *name, *text; } opdi_c_helper;
#endif
#endif

//== c loops ===========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A sum of products of two loads, seen as a matrix product: out[batch, m, n] = sum over k of left[batch, m, k] *
   right[batch, n, k].  The elements of `out` are adjacent along n. */
typedef struct opdi_contraction {
    opdi_nest *nest;
    const opdi_access *left, *right;
    int m[OPDI_NEST_DIMS], n[OPDI_NEST_DIMS], k[OPDI_NEST_DIMS], batch[OPDI_NEST_DIMS], nm, nn, nk, nbatch;
    int64_t rows, columns, depth;
    int tile;                                     /* number of rows of a tile */
    bool few;                                     /* the last tile may have fewer rows */
    bool direct;                                  /* the right operand is read without packing */
    bool left_early, right_early;                 /* the operand is constant and packed only once */
    opdi_buffer *left_pack, *right_pack;
} opdi_contraction;
#endif
#endif

//== c groups ==========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
enum { OPDI_GROUP_BUFFERS = 128 };
typedef struct opdi_group_buffers {
    opdi_buffer *all[OPDI_GROUP_BUFFERS];
    bool written[OPDI_GROUP_BUFFERS];
    int count;
} opdi_group_buffers;
#endif
#endif

//== units =============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A number that depends on open sizes: the sum of times[i][k] * first size ^ i * second size ^ k. */
typedef struct opdi_open_terms { int64_t times[3][3]; } opdi_open_terms;
/* An input or output of a unit. */
typedef struct opdi_unit_end {
    opdi_buffer *buffer;
    const char *name;                             /* the name that the user gave it */
    opd_scalar_type dtype;
    int ndim;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_end;
/* A result that is a view of another result or of an input, numbered as in `from`.  `offset` is counted from the first
   element of that result or input. */
typedef struct opdi_unit_view {
    int32_t of, ndim;
    int64_t offset, sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_view;
/* A stand-in on the lazy device, the tensor that it represents, and the address of that tensor's data. */
typedef struct opdi_unit_lent { const opd_tensor *lazy, *tensor; const void *data; } opdi_unit_lent;
/* A graph or program while it is compiled. */
typedef struct opdi_unit {
    const char *what, *name;                      /* what: the API function that was called; name: of the C functions */
    opdi_recording recording;
    opdi_unit_end *inputs, *outputs;
    int ninputs, noutputs, ngroups, nodes;
    opdi_group *groups;
    int64_t weights, fixed, arena;                /* sizes in bytes */
    bool file;                                    /* the header is written to a file of its own */
    bool whole;                                   /* inputs must begin where their memory begins */
    bool asks;                                    /* whether the graph reads the grad mode */
    int nopen;                                    /* number of open sizes */
    int64_t least[2], most[2];                    /* least and most: the ranges of the open sizes */
    bool here, frozen;                            /* here: for this process; frozen: constants are in a table, else they
                                                     are inputs */
    opd_tensor **stand_ins;                       /* the stand-ins of the inputs */
    opdi_unit_lent *lent;                         /* stand-ins that the graph must not change */
    const opd_tensor **constants;                 /* the constants that are inputs, after the user's inputs */
    int32_t *from;                /* for each result: its output, ~i for input i, or OPDI_FROM_NUMBER, OPDI_FROM_VIEW */
    const opdi_buffer **shown;                    /* the memory that results use */
    opd_tensor **shown_as;                        /* the results */
    opd_value *numbers;                           /* results that are the same number in every run */
    opdi_unit_view *views;                        /* results that are views */
    int nconstants, nresults, nlent;
    opdi_open_terms *shapes;                      /* of outputs with open sizes: two numbers (size, stride) for each
                                                     dim */
} opdi_unit;
#define OPDI_FROM_NUMBER INT32_MIN
#define OPDI_FROM_VIEW (INT32_MIN + 1)
#endif
#endif

//== open sizes ========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A graph or program that is to be written, with an example of each input. */
typedef struct opdi_unit_source {
    const char *what;
    const opd_graph *graph;
    const opd_program *program;
    const opd_value *inputs;
    int ninputs;
    const opd_c_options *options;
} opdi_unit_source;
enum { OPDI_OPEN_POINTS = 10 };
/* A value for each of the one or two open sizes. */
typedef struct opdi_open_at { int64_t sizes[2]; } opdi_open_at;
typedef struct opdi_open_entry {
    int64_t value;
    const char *what, *why;                       /* what: the operator; why: the error if this entry differs */
    const opdi_open_terms *terms;                 /* NULL if it is the same for all sizes */
    int32_t kind, form;                           /* form: as in opdi_expr */
} opdi_open_entry;
typedef struct opdi_open_list { opdi_open_entry *entries; int32_t count, room; } opdi_open_list;
typedef struct opdi_open {
    const opdi_unit_source *source;
    opdi_unit units[2];
    int n, npoints;                               /* n: number of open sizes; npoints: number of recordings */
    bool here, frozen;                            /* as in a unit */
    opdi_open_at points[OPDI_OPEN_POINTS], least, most;
    opdi_arena arena;                             /* memory of the lists */
    opdi_open_list lists[OPDI_OPEN_POINTS], plain, fused;
    opdi_decision *decisions[OPDI_OPEN_POINTS];   /* the decisions in each recording */
    int32_t ndecisions[OPDI_OPEN_POINTS];
} opdi_open;
#endif
#endif

//== compiling =========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The state while a unit is recorded: new tensors of the thread are on the lazy device, and random numbers are off. */
typedef struct opdi_unit_job { opd_scope scope; bool was; } opdi_unit_job;
#endif
#endif
#include "compiler.prototypes.h"
#endif

