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
/* Memory of a recording. */
typedef struct opdi_buffer {
    size_t bytes;
    opd_scalar_type dtype;                        /* of its elements, as they were first seen */
    int32_t role, id;
    int64_t index;                                /* an input's number; the first byte of a constant among all */
    bool output;                                  /* a result of the function */
    const void *data;                             /* of a constant, on the host */
    const opd_tensor *tensor;                     /* which constant it is */
    const char *name;
    size_t used;                                  /* bytes of it that anybody touches */
    struct opdi_nest *writer, *reader;            /* the last one that does */
    int32_t writes, reads, readers;               /* nests that write, loads, nests that read */
    bool fixed;                                   /* the same in every run */
    bool folded;                                  /* a constant of which others were made while it was compiled */
    bool front;                                   /* it is there before anything else is computed */
    bool kept;                                    /* who writes it stays, also where nobody reads it */
    struct opdi_group *group;                     /* the only one that uses it: a row of it is enough */
    int32_t first, last;                          /* groups between which it is used */
    int64_t place;                                /* its bytes in the arena begin here; -1: it has none */
} opdi_buffer;
/* Elements of a buffer, by the loops of a nest: element offset + sum of strides[i] * i-th loop's index. */
typedef struct opdi_access {
    opdi_buffer *buffer;
    opd_scalar_type dtype;
    int64_t offset, strides[OPDI_NEST_DIMS];
} opdi_access;
/* How a floating number in an expression depends on a whole one. */
enum { OPDI_FORM_NONE, OPDI_FORM_WHOLE, OPDI_FORM_PART, OPDI_FORM_ROOT, OPDI_FORM_ROOT_PART };
typedef enum opdi_expr_kind {
    OPDI_EXPR_LOAD, OPDI_EXPR_NUMBER, OPDI_EXPR_FORMULA, OPDI_EXPR_CAST,
    OPDI_EXPR_COUNT,                              /* offset + sum of strides * index, an int64 */
    OPDI_EXPR_RESULT,                             /* of the reduction, in `finish` */
    OPDI_EXPR_PLACE                               /* no value: the indices of what a nest stores */
} opdi_expr_kind;
/* A value inside the loops of a nest.  A load may have further indices, values of their own: element + sum of
   index_strides[k] * in[k], where in[k] must be in [0, index_sizes[k]), or with `wraps` [-index_sizes[k], ...). */
typedef struct opdi_expr {
    opdi_expr_kind kind;
    opd_scalar_type dtype;
    int32_t formula, nin, mark, round;
    struct opdi_expr *in[OPDI_NEST_INDICES];
    double f64[3];                                /* a formula's a, b, c; a number */
    int64_t i64[3];
    opdi_access access;
    int64_t index_strides[OPDI_NEST_INDICES], index_sizes[OPDI_NEST_INDICES];
    int32_t order;                                /* in which it was met while a recording is put down */
    int8_t forms[3];                              /* of f64[k]: how it follows from i64[k], an open size's */
    bool wraps;                                   /* indices may count from the end */
} opdi_expr;
typedef enum opdi_over {
    OPDI_OVER_NONE, OPDI_OVER_SUM, OPDI_OVER_PROD, OPDI_OVER_MAX, OPDI_OVER_MIN, OPDI_OVER_ANY,
    OPDI_OVER_ALL, OPDI_OVER_ARGMAX, OPDI_OVER_ARGMIN,
    OPDI_OVER_POOLED,                             /* as argmax, but of several NaNs the last one: PyTorch's pools */
    OPDI_OVER_MOST, OPDI_OVER_LEAST,              /* the places of the largest and so on, one for each round of the
        last loop that is not reduced; such a nest stays as it is (opdi_nest_stays), as does */
    OPDI_OVER_CALLED                              /* a call: of bytes, of all that it reads (opdi_called) */
} opdi_over;
/* Loops, outermost first, and what is stored in them.  The innermost nreduce loops are reduced: the value is summed
   over them (or whatever `reduction` says), and access `out` does not depend on them. */
typedef struct opdi_nest {
    struct opdi_nest *next, *prev;
    int32_t ndim, nreduce, id;
    int64_t sizes[OPDI_NEST_DIMS];
    opdi_over reduction;
    opdi_access out;
    opdi_expr *value, *finish;                    /* finish: what is stored of a reduction's result; NULL: that */
    opdi_expr *place;                             /* further indices of `out`, as a load has them; NULL: none */
    bool follows;                                 /* it reads what its rounds before have stored */
    bool open;                                    /* a number in it depends on an open size; */
    uint32_t open_loops, open_strides;            /* those that do, of its loops and of where it stores */
    const char *what;                             /* the operator's name */
    struct opdi_called *called;                   /* it is a call; NULL: loops */
} opdi_nest;
/* What a graph made of numbers that may depend on open sizes: a truth value that decides what is run, a quotient, a
   rest, the larger or smaller one. */
typedef struct opdi_decision {
    struct opdi_decision *next;
    const char *name;                             /* of the function */
    int32_t kind, count, first;                   /* opdi_decision_kind; numbers that it got, and got first */
    int64_t result, *numbers;                     /* floats as their bits */
} opdi_decision;
/* What fusing relies on where sizes decide: less <= more. */
typedef struct opdi_fact { int64_t less, more; } opdi_fact;
/* One recording. */
typedef struct opdi_recording {
    opdi_arena arena;
    opdi_buffer **buffers;                        /* by number */
    opdi_nest *first, *last;
    int32_t nbuffers, nnests, room;
    const char *what;                             /* the operator that is being run */
    bool open;                                    /* facts are noted */
    bool loose;                                   /* it is only compared: what is copied on the way does not matter */
    bool calls;                                   /* operators without a form in C are called, */
    bool draws;                                   /* also those that draw */
    struct opdi_called *called;                   /* those, the newest first */
    int32_t ncalled;
    opdi_fact *facts;
    int32_t nfacts, facts_room, ndecisions;
    opdi_decision *decisions, *last_decision;
} opdi_recording;
/* Special functions, of doubles alone: formulas of nests, numbered behind the others, that no device has. */
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
/* A tensor of a call: row by row from byte `place` on; -1: None; OPDI_CALLED_NUMBER: a number in a tensor's place. */
#define OPDI_CALLED_NUMBER (-2)
typedef struct opdi_called_tensor {
    opd_scalar_type dtype;
    int32_t ndim;
    int32_t from, element;                        /* of a call's: result, or ~argument; of a list which, or -1 */
    int64_t place;
    double number[2];                             /* complex; of whole ones the bits are in the first */
    int64_t sizes[OPD_MAX_DIMS];
} opdi_called_tensor;
/* A call: the arguments, where a tensor is {TENSOR, n: which of `in`} and a list {TENSORS, n, u.i: the first of them},
   and what it gives: the results that are tensors, then the arguments that it writes. */
typedef struct opdi_called {
    struct opdi_called *next;
    opd_op *op;
    int32_t id, nargs, nin, nout;
    opd_value *args;
    opdi_called_tensor *in, *out;
    size_t in_bytes, out_bytes;
    bool draws;                                   /* from the generator, in each run, in the order of the calls */
} opdi_called;
#endif
#endif

//== lowerings =========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* The windows of a pooling operator. */
typedef struct opdi_lower_pool {
    int count;                                    /* dims that are pooled */
    int64_t window[3], steps[3], before[3], after[3], dilation[3];
} opdi_lower_pool;
#endif
#endif

//== lowerings reading =================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* What tensor[indices] reads or writes: its sizes, and for each dim of tensor the loop that walks it (-1: an index). */
typedef struct opdi_lower_places {
    int64_t sizes[2 * OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS], ndim, where, wide;    /* where: the first of the loops over the indices, which are `wide` */
} opdi_lower_places;
#endif
#endif

//== fusing ============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
typedef void (*opdi_access_seen)(opdi_access *access, void *user);
#define OPDI_GROUP_NESTS 24
/* Nests that are done together: for each round of the outer loops, which all of them have, one after the other. */
typedef struct opdi_group {
    struct opdi_group *next;
    opdi_nest *nests[OPDI_GROUP_NESTS];
    int32_t nnests, outer, id;
    bool early;                                   /* it needs constants alone: done once */
    int64_t left, right;                          /* of a product: where its operands lie side by side, */
    int64_t scratch, scratch_bytes;               /* in the arena from there on, if they are not early */
} opdi_group;
#endif
#endif

//== c text ============================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* What is being written. */
typedef struct opdi_cfile {
    opdi_recording *recording;
    opdi_string *out;                             /* where functions go */
    opdi_string code;                             /* the groups */
    const char *name;
    int32_t next;                                 /* number of the next variable */
    int indent;
    uint64_t helpers[4];                          /* which of opdi_c_helpers are called */
    uint32_t tiles[2], sorts;                     /* rows of tiles of floats and doubles; which of opdi_c_keys */
    bool failed;
    bool table;                                   /* constants are found by a table of pointers */
    int open;                                     /* sizes that functions get, which are open */
    const opdi_group *group;
    const char *result;                           /* the variable with what a reduction gave */
} opdi_cfile;
enum { OPDI_C_HELPERS = 86 };
/* Helpers that groups call, each behind those that it calls. */
typedef struct opdi_c_helper { const char *name, *text; } opdi_c_helper;
#endif
#endif

//== c loops ===========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* A sum of products of two loads, as a matrix product: out[batch, m, n] = sum over k of left[batch, m, k] *
   right[batch, n, k].  n is what lies in a row in out. */
typedef struct opdi_contraction {
    opdi_nest *nest;
    const opdi_access *left, *right;
    int m[OPDI_NEST_DIMS], n[OPDI_NEST_DIMS], k[OPDI_NEST_DIMS], batch[OPDI_NEST_DIMS], nm, nn, nk, nbatch;
    int64_t rows, columns, depth;
    int tile;                                     /* rows of a tile */
    bool few;                                     /* the last tile may have fewer */
    bool direct;                                  /* right is read as it lies */
    bool left_early, right_early;                 /* it is constant: put side by side once */
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
/* A number that depends on sizes: the sum of times[i][k] * first size ^ i * second size ^ k. */
typedef struct opdi_open_terms { int64_t times[3][3]; } opdi_open_terms;
/* An input or output of a unit. */
typedef struct opdi_unit_end {
    opdi_buffer *buffer;
    const char *name;                             /* as the user knows it */
    opd_scalar_type dtype;
    int ndim;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_end;
/* A result that is a view of another one, or of an input: as in `from`, and where its first element is, from that
   one's. */
typedef struct opdi_unit_view {
    int32_t of, ndim;
    int64_t offset, sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_view;
/* A tensor that stands in for another one, and its address. */
typedef struct opdi_unit_lent { const opd_tensor *lazy, *tensor; const void *data; } opdi_unit_lent;
/* What is compiled. */
typedef struct opdi_unit {
    const char *what, *name;                      /* the function that is called; of the C functions */
    opdi_recording recording;
    opdi_unit_end *inputs, *outputs;
    int ninputs, noutputs, ngroups, nodes;
    opdi_group *groups;
    int64_t weights, fixed, arena;                /* bytes */
    bool file;                                    /* the header is a file of its own */
    bool whole;                                   /* inputs must begin where their memory does */
    bool asks;                                    /* whether grad mode is on */
    int nopen;                                    /* sizes that are open, */
    int64_t least[2], most[2];                    /* and their ranges */
    bool here, frozen;                            /* for this process: constants are inputs, or frozen a table; */
    opd_tensor **stand_ins;                       /* of inputs; */
    opdi_unit_lent *lent;                         /* which have to stay like what they stand for; */
    const opd_tensor **constants;                 /* those that are inputs, behind the user's; */
    int32_t *from;                                /* of each result: the output that it is, ~i for input i, or that
        it is no tensor; */
    const opdi_buffer **shown;                    /* its memory, */
    opd_tensor **shown_as;                        /* and itself; */
    opd_value *numbers;                           /* or what it is in every run, */
    opdi_unit_view *views;                        /* or of what it is a view */
    int nconstants, nresults, nlent;
    opdi_open_terms *shapes;                      /* of outputs, where sizes are open: of each dim two numbers */
} opdi_unit;
#define OPDI_FROM_NUMBER INT32_MIN
#define OPDI_FROM_VIEW (INT32_MIN + 1)
#endif
#endif

//== open sizes ========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* What is to be written: a graph, or a program, with an example of each input. */
typedef struct opdi_unit_source {
    const char *what;
    const opd_graph *graph;
    const opd_program *program;
    const opd_value *inputs;
    int ninputs;
    const opd_c_options *options;
} opdi_unit_source;
enum { OPDI_OPEN_POINTS = 10 };
/* Sizes that are open: one, or two. */
typedef struct opdi_open_at { int64_t sizes[2]; } opdi_open_at;
typedef struct opdi_open_entry {
    int64_t value;
    const char *what, *why;                       /* the operator; what it means that this entry is another one */
    const opdi_open_terms *terms;                 /* NULL: it is the same for all sizes */
    int32_t kind, form;                           /* form: as in an expression */
} opdi_open_entry;
typedef struct opdi_open_list { opdi_open_entry *entries; int32_t count, room; } opdi_open_list;
typedef struct opdi_open {
    const opdi_unit_source *source;
    opdi_unit units[2];
    int n, npoints;                               /* sizes that are open; recordings */
    bool here, frozen;                            /* as in a unit */
    opdi_open_at points[OPDI_OPEN_POINTS], least, most;
    opdi_arena arena;                             /* of the lists */
    opdi_open_list lists[OPDI_OPEN_POINTS], plain, fused;
    opdi_decision *decisions[OPDI_OPEN_POINTS];   /* what was decided in each recording */
    int32_t ndecisions[OPDI_OPEN_POINTS];
} opdi_open;
#endif
#endif

//== compiling =========================================================================================================

#if !defined(OPD_NO_COMPILER)
#if defined(OPDI_CORE)
/* While a unit is recorded: what the thread makes is on the lazy device, and nothing is drawn. */
typedef struct opdi_unit_job { opd_scope scope; bool was; } opdi_unit_job;
#endif
#endif
#include "compiler.prototypes.h"
#endif

