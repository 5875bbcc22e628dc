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
/* A block of memory in a recording, the memory of one or more tensors. */
typedef struct opdi_buffer {
    size_t bytes;
    opd_scalar_type dtype;                        /* dtype of its elements when it was first used */
    int32_t role, id;
    int64_t index;                                /* inputs: the input's number; constants: byte offset among all
                                                     constants */
    bool output;                                  /* true if it is a result of the function */
    const void *data;                             /* constants: the bytes, in host memory */
    const opd_tensor *tensor;                     /* constants: the tensor; NULL: made by the graph */
    const char *name;
    size_t used;                                  /* the number of its bytes that are accessed */
    struct opdi_nest *writer, *reader;            /* the last nest that writes it, and the last that reads it */
    int32_t writes, reads, readers;               /* writes: number of nests that write it; reads: number of loads;
                                                     readers: number of nests that read it */
    bool fixed;                                   /* true if its contents are the same in every run */
    bool folded;                                  /* the compiler has computed other constants from this constant */
    bool front;                                   /* it is computed before everything else */
    bool kept;                                    /* the nest that writes it must stay even if nothing reads it */
    struct opdi_group *group;                     /* the only group that uses it: memory for one row (see opdi_group) is
                                                     then enough; NULL: several groups use it */
    int32_t first, last;                          /* numbers of the first and the last group that use it */
    int64_t place;                                /* its offset in the arena; -1: it is not in the arena */
} opdi_buffer;
/* The elements of a buffer that a nest reads or writes.  Each iteration accesses the element with the number offset +
   sum over i of strides[i] * (index of loop i). */
typedef struct opdi_access {
    opdi_buffer *buffer;
    opd_scalar_type dtype;
    int64_t offset, strides[OPDI_NEST_DIMS];
} opdi_access;
/* How a number of an expression is computed from an integer n.  WHOLE: n, PART: 1 / n, ROOT: sqrt(n), ROOT_PART: 1 /
   sqrt(n).  NONE: it is a plain number. */
enum { OPDI_FORM_NONE, OPDI_FORM_WHOLE, OPDI_FORM_PART, OPDI_FORM_ROOT, OPDI_FORM_ROOT_PART };
typedef enum opdi_expr_kind {
    OPDI_EXPR_LOAD, OPDI_EXPR_NUMBER, OPDI_EXPR_FORMULA, OPDI_EXPR_CAST,
    OPDI_EXPR_COUNT,                              /* an int64: access.offset + sum of access.strides[i] * (index of loop
                                                     i) */
    OPDI_EXPR_RESULT,                             /* the result of the nest's reduction; only in `finish` */
    OPDI_EXPR_PLACE                               /* no value: has the indices of the nest's store */
} opdi_expr_kind;
/* A value that is computed in the loops of a nest.  A load may have up to four indices, which are values themselves.
   Then it reads the element of `access` plus the sum of index_strides[k] * in[k].  Each in[k] must be in [0,
   index_sizes[k]) or, if `wraps` is true, in [-index_sizes[k], index_sizes[k]). */
typedef struct opdi_expr {
    opdi_expr_kind kind;
    opd_scalar_type dtype;
    int32_t formula, nin, mark, round;            /* nin: length of `in`; mark: number of the C variable with the value;
                                                     round: the last walk that visited this node (opdi_expr_round) */
    struct opdi_expr *in[OPDI_NEST_INDICES];
    double f64[3];                                /* formulas: the constants a, b and c; numbers: the number, in
                                                     f64[0] */
    int64_t i64[3];
    opdi_access access;
    int64_t index_strides[OPDI_NEST_INDICES], index_sizes[OPDI_NEST_INDICES];
    int32_t order;                                /* its position in the list that opdi_open_list_unit makes of a
                                                     recording */
    int8_t forms[3];                              /* OPDI_FORM_...: how f64[k] is computed from i64[k] if that depends
                                                     on an open size */
    bool wraps;                                   /* indices may be negative, and then count from the end */
} opdi_expr;
typedef enum opdi_over {
    OPDI_REDUCTION_NONE, OPDI_REDUCTION_SUM, OPDI_REDUCTION_PROD, OPDI_REDUCTION_MAX, OPDI_REDUCTION_MIN,
    OPDI_REDUCTION_ANY, OPDI_REDUCTION_ALL, OPDI_REDUCTION_ARGMAX, OPDI_REDUCTION_ARGMIN,
    OPDI_REDUCTION_POOLED,                        /* like ARGMAX, but of several NaNs it finds the last, as PyTorch's
                                                     pooling operators do */
    OPDI_REDUCTION_MOST, OPDI_REDUCTION_LEAST,    /* sorting: the indices of the largest (smallest) elements in order,
                                                     one per iteration of the last loop that is not reduced.  No pass
                                                     changes such a nest (opdi_nest_stays). */
    OPDI_REDUCTION_EXTERN                         /* a call of an operator (opdi_extern_call), over all bytes that it
                                                     reads; no pass changes it */
} opdi_over;
/* A nest: a set of loops, the outermost first, and the value that they store.  The innermost `nreduce` loops are
   reduced: the value is combined over them as `reduction` says, and `out` does not depend on them. */
typedef struct opdi_nest {
    struct opdi_nest *next, *prev;
    int32_t ndim, nreduce, id;
    int64_t sizes[OPDI_NEST_DIMS];
    opdi_over reduction;
    opdi_access out;
    opdi_expr *value, *finish;                    /* finish: the value to store for the result of a reduction, see
                                                     OPDI_EXPR_RESULT; NULL: the result itself */
    opdi_expr *place;                             /* an OPDI_EXPR_PLACE with indices for the store (like those of a
                                                     load), or NULL */
    bool follows;                                 /* an iteration reads values that earlier iterations stored */
    bool open;                                    /* true if a number in the nest depends on an open size */
    uint32_t open_loops, open_strides;            /* masks: the loops whose sizes, and the strides of `out`, that depend
                                                     on an open size */
    const char *what;                             /* the name of the operator that recorded it */
    struct opdi_extern_call *called;              /* the call, if this is a call of an operator; else NULL */
} opdi_nest;
/* A result that a graph computed from numbers that may depend on open sizes: a truth value that decides which nodes
   run, a quotient, a remainder, a maximum or a minimum. */
typedef struct opdi_decision {
    struct opdi_decision *next;
    const char *name;                             /* name of the operator or builtin that computed it */
    int32_t kind, count, first;                   /* kind: opdi_decision_kind; count: number of integers in the
                                                     arguments; first: number of those in the first argument */
    int64_t result, *numbers;                     /* numbers: the integers in the arguments; floats are stored as their
                                                     bits */
} opdi_decision;
/* A condition that held while nests were fused, and on which the fused code relies: less <= more. */
typedef struct opdi_fact { int64_t less, more; } opdi_fact;
/* The state of a recording. */
typedef struct opdi_recording {
    opdi_arena arena;
    opdi_buffer **buffers;                        /* [nbuffers], by their number */
    opdi_nest *first, *last;
    int32_t nbuffers, nnests, capacity;
    const char *what;                             /* the name of the operator that is running */
    bool open;                                    /* sizes are open, so conditions (opdi_fact) are recorded */
    bool loose;                                   /* the recording is only compared with another, so copies that could
                                                     be avoided do not matter */
    bool calls;                                   /* operators that cannot be written in C may be called */
    bool draws;                                   /* operators that use random numbers may be called, too */
    struct opdi_extern_call *called;              /* the called operators, newest first */
    int32_t ncalled;
    opdi_fact *facts;
    int32_t nfacts, facts_capacity, ndecisions;
    opdi_decision *decisions, *last_decision;
} opdi_recording;
/* Pointwise formulas of special functions, which are computed in double only.  They exist only in nests: no device
   computes them.  Their numbers follow the numbers of the public pointwise formulas. */
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
/* A tensor of a call.  It is contiguous, and begins at byte `place` of a buffer.  If `place` is -1, the argument is
   None; if it is OPDI_EXTERN_NUMBER, the argument is a number instead of a tensor. */
#define OPDI_EXTERN_NUMBER (-2)
typedef struct opdi_extern_tensor {
    opd_scalar_type dtype;
    int32_t ndim;
    int32_t from, element;                        /* results: from: number of the result, or ~(number of the written
                                                     argument); element: index in a list, or -1 */
    int64_t place;
    double number[2];                             /* OPDI_EXTERN_NUMBER: the number; integers as bits in number[0] */
    int64_t sizes[OPD_MAX_DIMS];
} opdi_extern_tensor;
/* A call of an operator.  In `args`, a tensor has the tag OPD_TAG_TENSOR, and its index in `in` is the value's n; a
   list has the tag OPD_TAG_TENSORS, its length is n, and the index of its first tensor in `in` is u.i.  `out` has the
   results that are tensors, then the arguments that the operator writes. */
typedef struct opdi_extern_call {
    struct opdi_extern_call *next;
    opd_op *op;
    int32_t id, nargs, nin, nout;
    opd_value *args;
    opdi_extern_tensor *in, *out;
    size_t in_bytes, out_bytes;
    bool draws;                                   /* it uses random numbers: it must run in each run, and in the order
                                                     of the recording */
} opdi_extern_call;
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
/* The elements that tensor[indices] reads or writes: the sizes of the loops and, for each dim of the tensor, the loop
   over it, or -1 if an index selects the element. */
typedef struct opdi_lower_places {
    int64_t sizes[2 * OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS], ndim, where, wide;    /* where: the first loop over the indices' elements; wide: the number
                                                     of these loops */
} opdi_lower_places;
#endif
#endif

//== fusing ============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
typedef void (*opdi_access_seen)(opdi_access *access, void *user);
#define OPDI_GROUP_NESTS 24
/* Nests that share their `outer` outermost loops: in each iteration of these loops, which is called a row, one nest
   runs after the other. */
typedef struct opdi_group {
    struct opdi_group *next;
    opdi_nest *nests[OPDI_GROUP_NESTS];
    int32_t nnests, outer, id;
    bool early;                                   /* it reads only constants, so it runs once, before all runs */
    int64_t left, right;                          /* matrix products: byte offsets of the packed operands */
    int64_t scratch, scratch_bytes;               /* matrix products: memory in the arena for the packed operands,
                                                     unless they are packed early */
} opdi_group;
#endif
#endif

//== c text ============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The state while a C file is written. */
typedef struct opdi_cfile {
    opdi_string *out;                             /* the text that is being written */
    int32_t next;                                 /* number of the next variable */
    int indent;
    uint64_t helpers[4];                          /* mask: the opdi_c_helpers that are called */
    uint32_t tiles[2], sorts;                     /* masks: tiles: the numbers of rows for which tile functions of float
                                                     [0] and double [1] are called; sorts: the rows of opdi_c_keys for
                                                     which sorting functions are called */
    bool failed;
    bool table;                                   /* the code is for this process: constants are found in a table */
    int open;                                     /* number of open sizes, which are arguments of functions */
    const opdi_group *group;
    const char *result;                           /* name of the C variable with a reduction's result */
} opdi_cfile;
enum { OPDI_C_HELPERS = 86 };
/* Helper functions that groups call.  Each follows the helpers that it calls itself. */
typedef struct opdi_c_helper { const char *name, *text; } opdi_c_helper;
#endif
#endif

//== c loops ===========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A sum of products of two loads, seen as a matrix product: out[batch, m, n] = sum over k of left[batch, m, k] *
   right[batch, n, k].  m, n, k and batch have the numbers of the nest's loops.  Elements of `out` are adjacent along
   n. */
typedef struct opdi_contraction {
    opdi_nest *nest;
    const opdi_access *left, *right;
    int m[OPDI_NEST_DIMS], n[OPDI_NEST_DIMS], k[OPDI_NEST_DIMS], batch[OPDI_NEST_DIMS], nm, nn, nk, nbatch;
    int64_t rows, columns, depth;
    int tile;                                     /* number of rows of a tile */
    bool few;                                     /* the last tile may have fewer rows */
    bool direct;                                  /* the right operand is read without packing */
    bool left_early, right_early;                 /* the operand is constant, and packed once before all runs */
} opdi_contraction;
#endif
#endif

//== c groups ==========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
enum { OPDI_GROUP_BUFFERS = 128 };
/* The buffers that a group uses, and whether the group writes them. */
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
/* A number that depends on open sizes: the sum of times[i][k] * (first size ^ i) * (second size ^ k). */
typedef struct opdi_open_terms { int64_t times[3][3]; } opdi_open_terms;
/* An input or output of a unit. */
typedef struct opdi_unit_port {
    opdi_buffer *buffer;
    opd_scalar_type dtype;
    int ndim;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_port;
/* A result that is a view of result or input `of`, numbered as in opdi_unit.from.  `offset` is counted in elements from
   the first element of that tensor. */
typedef struct opdi_unit_view {
    int32_t of, ndim;
    int64_t offset, sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_view;
/* A stand-in on the lazy device, the tensor that it represents, and the address of the stand-in's data when it was
   made. */
typedef struct opdi_lazy_stand_in { const opd_tensor *lazy, *tensor; const void *data; } opdi_lazy_stand_in;
/* A graph or program that is being compiled. */
typedef struct opdi_unit {
    const char *what, *name;                      /* what: the public function that was called, for errors; name: the
                                                     prefix of the C functions */
    opdi_recording recording;
    opdi_unit_port *inputs, *outputs;
    int ninputs, noutputs, ngroups, nodes;
    opdi_group *groups;
    int64_t weights, fixed, arena;                /* sizes in bytes */
    bool file;                                    /* the header is written to a separate file */
    bool whole;                                   /* each input must begin at the first byte of its storage */
    bool asks;                                    /* the graph reads the grad mode */
    int nopen;                                    /* number of open sizes */
    int64_t least[2], most[2];                    /* the ranges of the open sizes */
    bool here, frozen;                            /* here: the code runs in this process; frozen: constants are in a
                                                     table of pointers, else they are inputs */
    opd_tensor **stand_ins;                       /* the stand-ins of the inputs */
    opdi_lazy_stand_in *lent;                     /* stand-ins that the graph must not change */
    const opd_tensor **constants;                 /* constants that are passed as inputs, after the user's inputs */
    int32_t *from;                /* for each result: the number of its output, ~i for input i, OPDI_FROM_NUMBER or
                                     OPDI_FROM_VIEW */
    const opdi_buffer **shown;                    /* the buffers of results that are outputs */
    opd_tensor **shown_as;                        /* the tensors of these results */
    opd_value *numbers;                           /* results that are the same number in every run */
    opdi_unit_view *views;                        /* results that are views */
    int nconstants, nresults, nlent;
    opdi_open_terms *shapes;                      /* with open sizes: two numbers (size, stride) for each dim of each
                                                     output */
} opdi_unit;
#define OPDI_FROM_NUMBER INT32_MIN
#define OPDI_FROM_VIEW (INT32_MIN + 1)
#endif
#endif

//== open sizes ========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A graph or program to compile, with an example of each input. */
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
    const char *what, *why;                       /* what: the operator, for errors; why: the error to report if
                                                     recordings differ in this entry */
    const opdi_open_terms *terms;                 /* NULL: the entry is the same for all sizes */
    int32_t kind, form;                           /* form: an OPDI_FORM_..., as in opdi_expr */
} opdi_open_entry;
typedef struct opdi_open_list { opdi_open_entry *entries; int32_t count, capacity; } opdi_open_list;
/* The state while a graph or program with open sizes is compiled. */
typedef struct opdi_open {
    const opdi_unit_source *source;
    opdi_unit units[2];
    int n, npoints;                               /* n: number of open sizes; npoints: number of recordings, each with
                                                     other sizes */
    bool here, frozen;                            /* same as in opdi_unit */
    opdi_open_at points[OPDI_OPEN_POINTS], least, most;
    opdi_arena arena;                             /* memory of the lists' terms and of the decisions */
    opdi_open_list lists[OPDI_OPEN_POINTS], plain, fused;   /* plain: the lists of all recordings, joined; fused: the
                                                               same after fusing */
    opdi_decision *decisions[OPDI_OPEN_POINTS];   /* the decisions in each recording */
    int32_t ndecisions[OPDI_OPEN_POINTS];
} opdi_open;
#endif
#endif

//== compiling =========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The state that opdi_unit_job_end restores: the scope, and the grad mode before.  In between, a unit is recorded: new
   tensors are on the lazy device, and generators of random numbers are paused. */
typedef struct opdi_unit_job { opd_scope scope; bool was; } opdi_unit_job;
#endif
OPDI_SHARED int opdi_lower_sequence(opd_tensor *out, bool whole, int64_t first, int64_t every, double start,
                                    double step);
#endif
#include "compiler.prototypes.h"
#endif

