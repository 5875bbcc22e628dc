//----------------------------------------------------------------------------------------------------------------------
//  >>compiler_h   graphs as C: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_COMPILER_H)
#define OPDI_COMPILER_H
#include "../script/script.h"

//== nests =============================================================================================================

#if !defined(OPD_NO_COMPILER)
#define OPDI_NEST_DIMS 12
#define OPDI_NEST_INDICES 4
typedef enum opdi_buffer_role {
    OPDI_BUFFER_TEMPORARY, OPDI_BUFFER_INPUT, OPDI_BUFFER_CONSTANT
} opdi_buffer_role;
/* A block of memory in a recording.  One or more tensors use it. */
typedef struct opdi_buffer {
    size_t bytes;
    opd_scalar_type dtype;                        /* the dtype that its elements had when it was first used */
    int32_t role, id;
    int64_t index;                                /* of an input: the input's number; of a constant: its byte offset
                                                     among all constants */
    bool output;                                  /* true if the buffer is a result of the compiled function */
    const void *data;                             /* of a constant: its bytes, in host memory */
    const opd_tensor *tensor;                     /* of a constant: the tensor; NULL if the graph has made the
                                                     constant */
    const char *name;
    size_t used;                                  /* the number of bytes that are accessed */
    struct opdi_nest *writer;                     /* the last nest that writes the buffer */
    struct opdi_buffer_use *readers;                  /* the nests that read the buffer, in their order */
    int32_t writes, reads;                        /* writes: number of nests that write the buffer; reads: number of
                                                     loads of it */
    bool fixed;                                   /* true if the contents are the same in every run */
    bool folded;                                  /* true if the compiler has computed other constants from this
                                                     constant */
    bool front;                                   /* true if the buffer is computed before all others */
    bool kept;                                    /* true if the nest that writes the buffer must remain even if nothing
                                                     reads the buffer */
    bool steady;                                  /* of an input of a loop's body: true if it is the same in all
                                                     rounds */
    struct opdi_group *group;                     /* the group that uses the buffer, if it is the only one (memory for
                                                     one row is then enough, see opdi_group); NULL if several groups use
                                                     the buffer */
    int32_t first, last;                          /* the numbers of the first and the last group that use the buffer */
    int64_t place;                                /* the offset in the arena, or -1 if the buffer is not in the arena */
} opdi_buffer;
/* A nest that reads a buffer, in the list opdi_buffer.readers. */
typedef struct opdi_buffer_use { struct opdi_buffer_use *next; struct opdi_nest *nest; } opdi_buffer_use;
/* The elements of a buffer that a nest reads or writes.  Each iteration accesses the element whose number is offset +
   sum over i of strides[i] * (index of loop i). */
typedef struct opdi_access {
    opdi_buffer *buffer;
    opd_scalar_type dtype;
    int64_t offset, strides[OPDI_NEST_DIMS];
} opdi_access;
/* How a number in an expression is computed from an integer n.  WHOLE: n.  PART: 1 / n.  ROOT: sqrt(n).  ROOT_PART: 1 /
   sqrt(n).  NONE: the number is not computed from an integer. */
enum { OPDI_FORM_NONE, OPDI_FORM_WHOLE, OPDI_FORM_PART, OPDI_FORM_ROOT, OPDI_FORM_ROOT_PART };
typedef enum opdi_expr_kind {
    OPDI_EXPR_LOAD, OPDI_EXPR_NUMBER, OPDI_EXPR_FORMULA, OPDI_EXPR_CAST,
    OPDI_EXPR_COUNT,                              /* an int64 number: access.offset + sum over i of access.strides[i] *
                                                     (index of loop i) */
    OPDI_EXPR_RESULT,                             /* the result of the nest's reduction; occurs only in
                                                     opdi_nest.finish */
    OPDI_EXPR_PLACE                               /* has no value, only the indices of the nest's store */
} opdi_expr_kind;
/* A value that is computed in the loops of a nest.  A load may have up to four indices in[k], which are values
   themselves.  It then reads the element of `access` whose offset is larger by the sum over k of index_strides[k] *
   in[k].  Each in[k] must be in [0, index_sizes[k]) or, if `wraps` is true, in [-index_sizes[k], index_sizes[k]). */
typedef struct opdi_expr {
    opdi_expr_kind kind;
    opd_scalar_type dtype;
    int32_t formula, nin, mark, round;            /* nin: length of `in`; mark: number of the C variable that has the
                                                     value; round: number of the last walk that visited this expression
                                                     (opdi_expr_round) */
    struct opdi_expr *in[OPDI_NEST_INDICES];
    double f64[3];                                /* of a formula: its constants a, b and c; of a number: f64[0] is the
                                                     number */
    int64_t i64[3];
    opdi_access access;
    int64_t index_strides[OPDI_NEST_INDICES], index_sizes[OPDI_NEST_INDICES];
    int32_t order;                                /* the position in the list that opdi_open_list_unit makes of a
                                                     recording */
    int8_t forms[3];                              /* how f64[k] is computed from i64[k], if f64[k] depends on an open
                                                     size (OPDI_FORM_...) */
    bool wraps;                                   /* true: indices may be negative; negative indices count from the
                                                     end */
} opdi_expr;
typedef enum opdi_over {
    OPDI_REDUCTION_NONE, OPDI_REDUCTION_SUM, OPDI_REDUCTION_PROD, OPDI_REDUCTION_MAX, OPDI_REDUCTION_MIN,
    OPDI_REDUCTION_ANY, OPDI_REDUCTION_ALL, OPDI_REDUCTION_ARGMAX, OPDI_REDUCTION_ARGMIN,
    OPDI_REDUCTION_POOLED,                        /* like ARGMAX, but if several elements are NaN, finds the last of
                                                     them, as the pooling operators of PyTorch do */
    OPDI_REDUCTION_MOST, OPDI_REDUCTION_LEAST,    /* sort in descending (MOST) or ascending (LEAST) order: the last loop
                                                     that is not reduced stores the indices of the elements in this
                                                     order.  No pass changes such a nest (opdi_nest_stays). */
    OPDI_REDUCTION_EXTERN                         /* a call of an operator (opdi_extern_call), which reads all bytes of
                                                     its buffer, or a condition or loop (opdi_inner); no pass changes
                                                     the nest */
} opdi_over;
/* How a nest adds.  FREE: in any order.  The others are the orders of kernels in the mode of same bits.  CHAIN: one
   product after the other, each fused with its addition.  ROW: a row of at most OPDI_ORDER_ROW_MOST floats, as
   opdi_sum_f32_body adds them, to a double.  LINE: one after the other. */
enum { OPDI_ORDER_FREE, OPDI_ORDER_CHAIN, OPDI_ORDER_ROW, OPDI_ORDER_LINE };
enum { OPDI_ORDER_ROW_MOST = 1024 };
/* A nest: loops, the outermost first, and the value that they store.  The innermost `nreduce` loops are reduced: over
   them, the value is combined as `reduction` says, and `out` does not depend on their indices. */
typedef struct opdi_nest {
    struct opdi_nest *next, *prev;
    int32_t ndim, nreduce, id;
    int64_t sizes[OPDI_NEST_DIMS];
    opdi_over reduction;
    int32_t order;                                /* how a sum is added (OPDI_ORDER_...) */
    int32_t vouched;                              /* not 0: the nests with this number give the bits of an operator in
                                                     the mode of same bits (opdi_lower_vouch) */
    opdi_access out;
    opdi_expr *value, *finish;                    /* value: the value of one iteration; finish: the value to store after
                                                     a reduction, computed from the reduction's result
                                                     (OPDI_EXPR_RESULT); NULL: the result itself is stored */
    opdi_expr *place;                             /* an OPDI_EXPR_PLACE with indices for the store, which are like the
                                                     indices of a load; or NULL */
    bool follows;                                 /* true: an iteration reads values that earlier iterations have
                                                     stored */
    bool open;                                    /* true: a number in the nest depends on an open size */
    uint32_t open_loops, open_strides;            /* masks of loops: those whose number of iterations depends on an open
                                                     size, and those whose stride in `out` does */
    const char *what;                             /* the name of the operator that has recorded the nest */
    struct opdi_extern_call *called;              /* the call, if the nest is a call of an operator; else NULL */
    struct opdi_inner *inner;                     /* the condition or loop of which the nest writes a result; else
                                                     NULL */
    const opdi_conv *conv;                        /* the sizes of the convolution of padded input that was recorded as
                                                     this nest; else NULL */
    struct opdi_nest_kernel *kernel;              /* the kernel of the library that can compute the nest, or NULL */
    int32_t nodes, loads;                         /* numbers of expressions and loads in `value` and `finish`; 0 and 0:
                                                     not counted yet */
    struct opdi_nest *into;                       /* the reduction into which the nest was moved, or NULL */
} opdi_nest;
/* A result that the graph has computed, while it was recorded, from numbers that may depend on open sizes: a truth
   value (which may decide which nodes run), a quotient, a remainder, a maximum or a minimum. */
typedef struct opdi_decision {
    struct opdi_decision *next;
    const char *name;                             /* the name of the operator or builtin that computed the result */
    int32_t kind, count, first;                   /* kind: an opdi_decision_kind; count: number of integers in the
                                                     arguments; first: number of integers in the first argument */
    int64_t result, *numbers;                     /* numbers: the integers in the arguments, and the bits of floats */
} opdi_decision;
/* A condition on which fused code relies: less <= more.  It held while the nests were fused. */
typedef struct opdi_fact { int64_t less, more; } opdi_fact;
/* The state of a recording. */
typedef struct opdi_recording {
    opdi_arena arena;
    opdi_buffer **buffers;                        /* [nbuffers]; the index is the number of the buffer */
    opdi_nest *first, *last;
    int32_t nbuffers, nnests, capacity;
    const char *what;                             /* the name of the operator that is being recorded */
    bool open;                                    /* true: sizes are open, so conditions (opdi_fact) are recorded */
    bool loose;                                   /* true: the recording is only compared with another recording, so
                                                     avoidable copies do not matter */
    bool calls;                                   /* true: an operator that cannot be written in C is recorded as a
                                                     call */
    bool draws;                                   /* true: this also holds for operators that use random numbers */
    bool here;                                    /* true: the code will run in this process */
    bool vouched;                                 /* true: a lowering says that its nests give the bits of the operator
                                                     in the mode of same bits */
    int32_t nvouched;                             /* the number of such operators */
    struct opdi_extern_call *called;              /* the calls of operators, the newest first */
    int32_t ncalled, nkernels, ninner;
    struct opdi_inner *inner;                     /* the conditions and loops, the newest first; they have recordings of
                                                     their own */
    bool controls;                                /* true: conditions and loops are recorded as such */
    bool body;                                    /* true: this is the recording of a body of a condition or loop */
    struct opdi_nest_kernel *kernels;                  /* the kernels of nests, the newest first */
    opdi_fact *facts;
    int32_t nfacts, facts_capacity, ndecisions;
    opdi_decision *decisions, *last_decision;
} opdi_recording;
/* Pointwise formulas of special functions.  They are computed only in double, and exist only in nests: no device
   computes them.  Their numbers follow the numbers of the public pointwise formulas. */
#define OPDI_NEST_FORMULAS(X) \
    X(lgamma, 1, D, OPD_H(lgamma)(x)) X(digamma, 1, D, OPD_H(digamma)(x)) X(erfinv, 1, D, OPD_H(erfinv)(x)) \
    X(ndtri, 1, D, OPD_H(ndtri)(x)) X(erfcx, 1, D, OPD_H(erfcx)(x)) X(log_ndtr, 1, D, OPD_H(log_ndtr)(x)) \
    X(entr, 1, D, OPD_H(entr)(x)) X(xlog1py, 2, D, OPD_H(xlog1py)(x, y)) X(i0, 1, D, OPD_H(i0)(x)) \
    X(i0e, 1, D, OPD_H(i0e)(x)) X(i1, 1, D, OPD_H(i1)(x)) X(i1e, 1, D, OPD_H(i1e)(x))
enum { OPDI_FORMULAS = OPD_FORMULA_COUNT + 12 };
#endif

//== called operators ==================================================================================================

#if !defined(OPD_NO_COMPILER)
/* A tensor argument or result of a call.  The tensor is contiguous and begins at byte `place` of a buffer.  If `place`
   is -1, the argument is None.  If it is OPDI_EXTERN_NUMBER, the argument is a number instead of a tensor.  If it is
   OPDI_EXTERN_HELD, the argument is a part of `held`, a constant of the graph that is passed without a copy. */
#define OPDI_EXTERN_NUMBER (-2)
#define OPDI_EXTERN_HELD (-3)
typedef struct opdi_extern_tensor {
    opd_scalar_type dtype;
    int32_t ndim;
    int32_t from, element;                        /* of a result: `from` is the number of the result, or ~(number of the
                                                     written argument); `element` is its index in a list, or -1 */
    int64_t place;
    double number[2];                             /* if `place` is OPDI_EXTERN_NUMBER: the number; an integer is stored
                                                     as bits in number[0] */
    int64_t sizes[OPD_MAX_DIMS];
    int64_t strides[OPD_MAX_DIMS];                /* of the elements in the buffer */
    bool laid;                                    /* true: the strides are not those of a contiguous tensor */
    const opd_tensor *held;                       /* if `place` is OPDI_EXTERN_HELD */
    int32_t item;                                 /* the number of `held` in the module of the program, or -1 */
    int64_t begin;                                /* the byte of `held` at which the argument begins */
    int32_t held_ndim;                            /* what `held` was when it was recorded: its number of dims, its */
    int64_t held_dims[2 * OPD_MAX_DIMS];          /* sizes and strides.  Its dtype is `dtype`. */
} opdi_extern_tensor;
/* A call of an operator.  `in` has the tensor arguments; `out` has the results that are tensors, and then the arguments
   that the operator writes.  In `args`, a tensor has the tag OPD_TAG_TENSOR, and `n` is its index in `in`.  A list of
   tensors has the tag OPD_TAG_TENSORS, `n` is its length, and u.i is the index of its first tensor in `in`. */
typedef struct opdi_extern_call {
    struct opdi_extern_call *next;
    opd_op *op;
    int32_t id, nargs, nin, nout;
    opd_value *args;
    opdi_extern_tensor *in, *out;
    size_t in_bytes, out_bytes;
    uint64_t written;                             /* a bit for each argument that the call writes */
    bool draws;                                   /* true: the operator uses random numbers, so each run must call it,
                                                     in the order of the recording */
} opdi_extern_call;
#endif

//== lowerings =========================================================================================================

#if !defined(OPD_NO_COMPILER)
/* The windows of a pooling operator. */
typedef struct opdi_lower_pool {
    int count;                                    /* the number of dims along which the windows lie */
    int64_t window[3], steps[3], before[3], after[3], dilation[3];
} opdi_lower_pool;
#endif

//== lowerings reading =================================================================================================

#if !defined(OPD_NO_COMPILER)
/* The elements that tensor[indices] reads or writes: the sizes of the loops and, for each dim of the tensor, the loop
   over this dim, or -1 if an index selects the element. */
typedef struct opdi_lower_places {
    int64_t sizes[2 * OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS], ndim, where, wide;    /* where: the first loop over the elements of the indices; wide: the
                                                     number of these loops */
} opdi_lower_places;
#endif

//== fusing ============================================================================================================

#if !defined(OPD_NO_COMPILER)
typedef void (*opdi_access_seen)(opdi_access *access, void *user);
/* The largest numbers of expressions and loads in a nest into which another nest was fused.  A group has at most twice
   as many expressions.  A C function must not read more than OPDI_GROUP_BUFFERS buffers, and a C compiler takes long
   for a function of many hundred lines. */
#define OPDI_FUSE_NODES 400
#define OPDI_FUSE_LOADS 100
#define OPDI_GROUP_NESTS 24
/* Nests that share their `outer` outermost loops.  An iteration of these loops is called a row: for each row, the nests
   run one after the other. */
typedef struct opdi_group {
    struct opdi_group *next;
    opdi_nest *nests[OPDI_GROUP_NESTS];
    int32_t nnests, outer, id;
    int32_t inside;                               /* the number of the body that contains the group, or 0 */
    bool early;                                   /* true: the group reads only constants, so it runs once, before all
                                                     runs */
    int64_t left, right;                          /* of a matrix product: byte offsets of the packed operands */
    const struct opdi_group *same;                /* the earlier group whose C function computes this group, too, or
                                                     NULL */
    int64_t scratch, scratch_bytes;               /* of a matrix product: memory in the arena for the packed operands,
                                                     unless they are packed before all runs; of a condition or loop:
                                                     memory for its bodies */
} opdi_group;
#endif

//== c text ============================================================================================================

#if !defined(OPD_NO_COMPILER)
/* The state while a C file is written. */
typedef struct opdi_cfile {
    opdi_string *out;                             /* the text that is being written */
    int32_t next;                                 /* the number of the next variable */
    int indent;
    uint64_t helpers[4];                          /* mask of the helper functions (opdi_c_helpers) that are called */
    uint32_t tiles[2], sorts;                     /* tiles: masks of the numbers of rows for which tile functions of
                                                     float [0] and double [1] are called; sorts: mask of the rows of
                                                     opdi_c_keys for which sorting functions are called */
    bool failed;
    bool table;                                   /* true: the code is for this process, and finds constants in a table
                                                     of pointers */
    int open;                                     /* the number of open sizes, which are arguments of the functions */
    const opdi_group *group;
    const char *result;                           /* the name of the C variable that has a reduction's result */
    const char *model, *fixed, *arena;            /* model: the name of the model; fixed, arena: C expressions for the
                                                     two blocks of memory */
    opdi_index functions;                         /* the groups that have C functions, by their texts with other names
                                                     of buffers */
    opdi_arena memory;                            /* of these texts */
} opdi_cfile;
enum { OPDI_C_HELPERS = 101 };
/* What the C text of a formula does with numbers, see opdi_c_rounds. */
enum { OPDI_ROUNDS_NEVER, OPDI_ROUNDS_SAME, OPDI_ROUNDS_ELSE };
/* A helper function that groups call.  In the list of helpers, a helper comes after the helpers that it calls. */
typedef struct opdi_c_helper { const char *name, *text; } opdi_c_helper;
#endif

//== c loops ===========================================================================================================

#if !defined(OPD_NO_COMPILER)
/* A sum of products of two loads, treated as a matrix product: out[batch, m, n] = sum over k of left[batch, m, k] *
   right[batch, n, k].  The arrays m, n, k and batch have the numbers of the nest's loops.  Along n, elements of `out`
   are adjacent. */
typedef struct opdi_contraction {
    opdi_nest *nest;
    const opdi_access *left, *right;
    int m[OPDI_NEST_DIMS], n[OPDI_NEST_DIMS], k[OPDI_NEST_DIMS], batch[OPDI_NEST_DIMS], nm, nn, nk, nbatch;
    int64_t rows, columns, depth;
    int tile;                                     /* the number of rows of a tile */
    bool few;                                     /* true: the last tile may have fewer rows */
    bool direct;                                  /* true: the right operand is read without packing */
    bool left_early, right_early;                 /* true: the operand is a constant, and is packed once before all
                                                     runs */
} opdi_contraction;
#endif

//== library kernels ===================================================================================================

#if !defined(OPD_NO_COMPILER)
/* A product with fewer multiplications is always computed by its loops. */
enum { OPDI_KERNEL_LEAST = 1 << 12 };
/* A call of a kernel of the library that computes a nest, except for nest->finish: a convolution, or matrix products.
   Strides are in elements, and `places` and `steps` in bytes; index 0 is the left operand (of a convolution: the
   weight), 1 the right operand (the padded input), 2 the result. */
typedef struct opdi_nest_kernel {
    struct opdi_nest_kernel *next;
    opdi_conv conv;                               /* conv.size is 0 if the nest consists of matrix products */
    const opdi_access *operands[2];
    opd_scalar_type dtype, dtypes[2];             /* of the result, and of the operands */
    int64_t places[3];                            /* where the operands and the result begin in their buffers */
    int64_t rows, columns, depth;
    int64_t left[2], right[2], out[2];            /* the strides of rows and columns */
    int32_t id, nbatch;
    int64_t batch[OPDI_NEST_DIMS], steps[OPDI_NEST_DIMS][3];        /* the loops around the matrix product */
    opdi_group *after;                            /* the loops that compute nest->finish after the call, or NULL */
    opdi_buffer *raw;                             /* NULL, or memory for the contiguous result of a convolution, which
                                                     `after` copies to the nest's result */
    int64_t strides[OPDI_NEST_DIMS];              /* the strides of the nest's loops in `raw` */
    int64_t packed, packed_bytes;                 /* the operands that are packed before the loops run, which only the
                                                     loops read: their place in the fixed memory */
    int32_t frozen[2];                            /* for each operand: which of opdi_variant.frozen it is, or -1 */
} opdi_nest_kernel;
OPDI_INTERNAL void opdi_contraction_of(opdi_contraction *all, opdi_nest *nest);
#endif

//== c groups ==========================================================================================================

#if !defined(OPD_NO_COMPILER)
enum { OPDI_GROUP_BUFFERS = 128 };
/* The buffers that a group uses, and whether the group writes them. */
typedef struct opdi_group_buffers {
    opdi_buffer *all[OPDI_GROUP_BUFFERS];
    bool written[OPDI_GROUP_BUFFERS];
    int count;
} opdi_group_buffers;
#endif

//== units =============================================================================================================

#if !defined(OPD_NO_COMPILER)
/* OPEN_SIZES: the most open sizes.  OPEN_POWERS: 3^OPEN_SIZES.  OPEN_TERMS: the most terms of a number. */
enum { OPDI_OPEN_SIZES = 4, OPDI_OPEN_POWERS = 81, OPDI_OPEN_TERMS = 16 };
/* A number that depends on open sizes: a sum of terms.  A term is `times` times a product of powers of the sizes.  The
   exponent of size k, at most 2, is in bits 4*k and up of `powers`. */
typedef struct opdi_open_term { int64_t times; uint32_t powers; } opdi_open_term;
typedef struct opdi_open_terms { int32_t count; opdi_open_term all[OPDI_OPEN_TERMS]; } opdi_open_terms;
/* What is known about a range of open sizes: the code has not run there; it is used; uncompiled runs are faster. */
enum { OPDI_RANGE_NEW, OPDI_RANGE_USED, OPDI_RANGE_SLOW };
/* The open sizes of compiled code.  The graph has named sizes (`graph` is not NULL), or options name dims: dims[k] has,
   for each input, the dim with size k, or -1.  The code is given each size divided by its step; least and most are the
   bounds of these quotients. */
typedef struct opdi_open_sizes {
    int n;
    const opd_graph *graph;
    const int *dims[2];
    int64_t least[OPDI_OPEN_SIZES], most[OPDI_OPEN_SIZES], step[OPDI_OPEN_SIZES];
} opdi_open_sizes;
/* An input or output of a unit. */
typedef struct opdi_unit_port {
    opdi_buffer *buffer;
    opd_scalar_type dtype;
    int ndim;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_port;
/* A result that is a view of another result or of an input, whose number `of` is as in opdi_unit.from.  `offset` is the
   distance, in elements, from the first element of that tensor. */
typedef struct opdi_unit_view {
    int32_t of, ndim;
    int64_t offset, sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
} opdi_unit_view;
/* A stand-in: `lazy` is a tensor on the lazy device that stands for `tensor` in a recording; `data` is the address of
   its data when it was made. */
typedef struct opdi_lazy_stand_in { const opd_tensor *lazy, *tensor; const void *data; } opdi_lazy_stand_in;
/* A graph or program that is being compiled. */
typedef struct opdi_unit {
    const char *what, *name;                      /* what: the public function that was called, for errors; name: the
                                                     prefix of the names of C functions */
    opdi_recording recording;
    opd_device device;                            /* the device of the inputs; all bytes 0: the CPU */
    bool exact;                                   /* true: a result that does not fill its memory is an error, because
                                                     it would have other strides than in an uncompiled run */
    opdi_unit_port *inputs, *outputs;
    int ninputs, noutputs, ngroups, nodes;
    opdi_group *groups;
    int64_t weights, fixed, arena;                /* sizes in bytes */
    bool file;                                    /* true: the header is written to a separate file */
    bool whole, looked;                           /* whole: each input must begin at the first byte of its storage;
                                                     looked: `whole` is set */
    opdi_index names;                             /* the names of buffers (see opdi_unit_name) */
    bool asks;                                    /* true: the graph reads the grad mode */
    int nopen;                                    /* number of open sizes */
    const opdi_open_sizes *open;                  /* their ranges */
    bool here, frozen;                            /* here: true if the code runs in this process; frozen: true if this
                                                     code finds constants in a table of pointers; false if constants are
                                                     passed as inputs */
    const opdi_recording *earlier;                /* NULL, or an earlier recording of the graph: constants that it
                                                     writes are not frozen */
    opd_tensor **stand_ins;                       /* the stand-ins of the inputs */
    opdi_lazy_stand_in *lent;                     /* the stand-ins of inputs and constants; the graph must not change
                                                     their sizes, strides or memory */
    const opd_tensor **constants;                 /* constants that are passed as inputs, after the user's inputs */
    int32_t *from;                /* for each result: the number of its output, ~i if it is input i, OPDI_FROM_NUMBER or
                                     OPDI_FROM_VIEW */
    const opdi_buffer **shown;                    /* the buffers of those results that are outputs */
    opd_tensor **shown_as;                        /* the tensors of those results */
    opd_value *numbers;                           /* results that are the same number in every run */
    opdi_unit_view *views;                        /* results that are views */
    int nconstants, nresults, nlent;
    opdi_open_terms *shapes;                      /* if sizes are open: two numbers (size, stride) for each dim of each
                                                     output */
} opdi_unit;
#define OPDI_FROM_NUMBER INT32_MIN
#define OPDI_FROM_VIEW (INT32_MIN + 1)
#endif

//== conditions and loops ==============================================================================================

#if !defined(OPD_NO_COMPILER)
/* A tensor that a condition or loop reads.  Nests have loads of these tensors (opdi_inner_loads).  `place` is where it
   begins in its buffer, in bytes; `step` the distance of two slices, in elements, or 0. */
typedef struct opdi_inner_operand { opd_scalar_type dtype; int64_t place, step; } opdi_inner_operand;
/* A result: `bytes` is the size of a carried value, or of the result of one round, and `step` is this size in elements
   if results are stacked, or 0. */
typedef struct opdi_inner_result {
    opd_scalar_type dtype;
    int64_t bytes, step, total;                   /* total: size of the whole result in bytes */
    int64_t other, unused;                        /* byte offsets in the scratch memory: of the second buffer of a
                                                     carried value, and of a result that nothing reads */
    opdi_nest *nest;                              /* NULL: nothing reads the result */
} opdi_inner_result;
/* A body of a condition or loop: a unit whose inputs are the operands `operands`.  The groups of the unit have the
   number `id`. */
typedef struct opdi_inner_body {
    opdi_unit unit;
    int32_t id, ninputs;
    opdi_buffer **inputs;
    int32_t *operands;
} opdi_inner_body;
/* A condition or loop.  The first operand of a cond or while is the predicate.  The operands then are the carried
   tensors, the sliced ones, and the others. */
typedef struct opdi_inner {
    struct opdi_inner *next;
    opdi_recorded_kind kind;
    const char *what;
    opdi_inner_body bodies[2];
    int nbodies, noperands, nresults, ncarried;
    opdi_inner_operand *operands;
    opd_tensor **tensors;                         /* while it is recorded: the operands */
    opdi_inner_result *results;
    bool reverse, draws;
    int64_t length;
    opdi_group *group;                            /* the first group that writes a result; it has the call */
    int64_t fixed, test;                          /* byte offsets in the scratch memory */
} opdi_inner;
enum { OPDI_INNER_OPERANDS = 100 };
OPDI_INTERNAL const char *opdi_unit_name(opdi_unit *unit, const char *prefix, const char *name);
OPDI_INTERNAL int opdi_unit_reserve(opdi_unit *unit, int ninputs, int noutputs);
OPDI_INTERNAL int opdi_unit_output(opdi_unit *unit, opd_tensor *tensor, const char *name);
OPDI_INTERNAL int opdi_unit_fuse(opdi_unit *unit);
OPDI_INTERNAL void opdi_unit_free(opdi_unit *unit);
OPDI_INTERNAL void opdi_inner_free(opdi_inner *inner);
#endif

//== open sizes ========================================================================================================

#if !defined(OPD_NO_COMPILER)
/* A graph or program to compile, with an example of each input. */
typedef struct opdi_unit_source {
    const char *what;
    const opd_graph *graph;
    const opd_program *program;
    const opd_value *inputs;
    int ninputs;
    const char *name;                             /* of the model; NULL: "model" */
    bool calls;                                   /* operators without a form in C are called */
    const opdi_open_sizes *sizes;                 /* the open sizes; NULL: none */
    const opdi_recording *earlier;                /* as in opdi_unit */
} opdi_unit_source;
/* The most recordings: one for each product of at most four of four sizes in which none is cubed, and one more. */
enum { OPDI_OPEN_POINTS = 51 };
/* A value for each open size, divided by its step. */
typedef struct opdi_open_at { int64_t sizes[OPDI_OPEN_SIZES]; } opdi_open_at;
typedef struct opdi_open_entry {
    int64_t value;
    const char *what, *why;                       /* what: the operator, for errors; why: the error if the recordings
                                                     differ in this entry */
    const opdi_open_terms *terms;                 /* NULL: the entry is the same for all sizes */
    int32_t kind, form;                           /* form: an OPDI_FORM_..., as in opdi_expr */
} opdi_open_entry;
typedef struct opdi_open_list { opdi_open_entry *entries; int32_t count, capacity; } opdi_open_list;
/* The state while a graph or program with open sizes is compiled. */
typedef struct opdi_open {
    const opdi_unit_source *source;
    opdi_unit units[2];
    int n, npoints, npowers;                      /* n: number of open sizes; npoints: number of recordings, each with
                                                     different sizes; npowers: 3^n */
    bool here, frozen;                            /* as in opdi_unit */
    opdi_open_at points[OPDI_OPEN_POINTS], least, most;
    opdi_arena arena;                             /* memory for the terms in the lists, and for the decisions */
    opdi_open_list lists[OPDI_OPEN_POINTS], plain, fused;   /* plain: all lists, joined;
                                                               fused: the same after the recordings were fused */
    opdi_decision *decisions[OPDI_OPEN_POINTS];   /* for each recording: its decisions */
    int32_t ndecisions[OPDI_OPEN_POINTS];
} opdi_open;
#endif

//== writing and running units =========================================================================================

#if !defined(OPD_NO_COMPILER)
/* The state that opdi_unit_job_end restores: the scope and the grad mode.  Before that, a unit is recorded: new tensors
   are on the lazy device, and generators of random numbers are paused. */
typedef struct opdi_unit_job { opd_scope scope; bool was; } opdi_unit_job;
/* The type of opdi_lower_sequence.  opdi_on_sequence points to it, and is NULL until the lazy device is opened. */
typedef int (*opdi_sequence_recorder)(opd_tensor *out, bool whole, int64_t first, int64_t every, double start,
                                      double step);
OPDI_INTERNAL int opdi_lower_sequence(opd_tensor *out, bool whole, int64_t first, int64_t every, double start,
                                      double step);

/* The struct of a model, as the generated code declares it. */
typedef struct opdi_c_model {
    const unsigned char *weights;                 /* the weights; if constants are frozen, a table of pointers */
    unsigned char *fixed, *arena;
    int (*call)(void *context, int which, const void *in, void *out);          /* calls operator number `which`, which
                                                                                  cannot be written in C */
    int (*kernel)(void *context, int which, const void *left, const void *right, void *out);   /* runs kernel number
                                                                                                  `which` of the
                                                                                                  library */
    void (*clock)(void *context, int which);      /* NULL, or is called before the nest of kernel number `which`; and
                                                     with -1 after it */
    const unsigned char *ways;                    /* for each kernel: 1 if it computes its nest, 0 if the loops do */
    void *context;
} opdi_c_model;
/* A variant: the code that was compiled for one kind of inputs (dtypes, sizes, ...). */
typedef struct opdi_variant {
    struct opdi_variant *next;
    opdi_arena memory;                            /* the memory of everything to which this struct points */
    opd_value *inputs;                            /* the values of the inputs; of a tensor, only the tag */
    opdi_unit_port *ends, *outputs;               /* ends: the properties of the input tensors, followed by the
                                                     properties of the constants */
    bool *written;                                /* for each of `ends`: whether the code writes it */
    int32_t *from;                                /* for each result: its origin, as in opdi_unit.from */
    opd_value *numbers;                           /* the results that are not tensors */
    opdi_unit_view *views;                        /* the results that are views */
    opd_tensor **constants, **frozen;
    int32_t *places;                              /* of a program: for each constant, and then for each frozen constant,
                                                     the number of its tensor in the module, or -1 */
    opdi_unit_port *kept;                         /* the properties of the frozen constants */
    opdi_storage **storages;                      /* the storages of the frozen constants; references, so that no other
                                                     storage gets their addresses */
    uint32_t *versions;
    const void **table;                           /* the addresses of the data of the frozen constants */
    int ninputs, nends, nconstants, nfrozen, noutputs, nresults;
    bool writes, draws, whole, asks;              /* writes: the code writes an input; draws: the code calls an operator
                                                     that uses random numbers; whole, asks: as in opdi_unit */
    int64_t arena_bytes, fixed_bytes;
    opdi_open_sizes open;                         /* the open sizes */
    opdi_open_terms *shapes;                      /* the sizes and strides of the outputs, as in opdi_unit */
    unsigned char *ranges;                        /* OPDI_RANGE_... for each range of open sizes (opdi_open_range) */
    void *library, *fixed, *spare;                /* spare: memory for the arena of a run, while no run uses it */
    opdi_c_model model;
    opdi_extern_call **called;                    /* the operators that the code calls; the index is the operator's
                                                     number */
    int ncalled;
    opdi_nest_kernel *kernels;                    /* the kernels of the library; the index is the kernel's number */
    unsigned char *ways;                          /* as in opdi_c_model */
    int64_t (*times)[2], started;                 /* times[i][k]: the shortest time of the nest of kernel i, computed in
                                                     way k, or 0; started: when the current nest began */
    int nkernels, timed;                          /* timed: the kernel whose nest is running while nests are timed */
    bool same;                                    /* true: the code was made in the mode of same bits */
    bool gone;                                    /* true: the code was unloaded, because the program has changed */
    bool once;                                    /* true: the code cannot be timed, because a second run with the same
                                                     inputs may have another effect */
    int64_t plain;                                /* the shortest time of an uncompiled run, measured before operands
                                                     were packed, or 0 */
    int (*call)(const opdi_c_model *model, void *const *inputs, void *const *outputs);
    void (*pack)(const opdi_c_model *model, int which);      /* packs the constant operands of a kernel */
    const char *why;                              /* the reason why this kind of inputs is not compiled; NULL if it is
                                                     compiled */
} opdi_variant;
enum { OPDI_COMPILE_READY = 64 };
struct opd_compiled {
    int32_t refs;                                 /* the program has one reference, and each run has one */
    const opd_graph *graph;                       /* NULL if a program is compiled */
    const opd_program *program;
    opd_graph *parted;                            /* a copy of the graph in which a compiler computes parts, or NULL */
    const opd_part_compiler *parter;              /* the compiler that has made `parted`, or has failed to */
    const char *what;
    char name[48];
    char *flags;                                  /* the flags for the C compiler; NULL: flags for this machine */
    bool frozen, background, said;                /* background: the C compiler works in a thread; said: a warning has
                                                     said that these inputs run uncompiled */
    uint64_t ready[OPDI_COMPILE_READY];           /* hashes of the texts of kinds that the thread has compiled, whose
                                                     code is in the cache: a run of the kind loads it */
    int nready;
    int kinds, count;                             /* kinds: the most variants that are made; count: the number of
                                                     variants */
    uint32_t changes;                             /* what opdi_compiled_changes returned when the variants that are not
                                                     gone got the addresses of their constants */
    uint32_t graphs;                              /* program->changes at that time */
    uint64_t form;                                /* opdi_compiled_form at that time */
    int ninputs, *dims;                           /* dims: the arrays `open` and `open_2` of the options, one after the
                                                     other */
    opdi_open_sizes open;                         /* the open sizes that the code is to have */
    opdi_mutex lock;                              /* is held while code is compiled; protects plain, count, ready, job
                                                     and variants */
    struct opdi_compile_job *job;                 /* the thread in which the C compiler works, or NULL */
    int plain;                                    /* the number of uncompiled runs that are in progress */
    opdi_variant *variants;
    const char *reason;                           /* the reason why the last run was not compiled, or NULL */
};

/* Returns whether a letter may be part of a C name. */
static inline bool opdi_c_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
        letter == '_';
}
/* Sets *low and *high to the first and the last element that an access reaches in the loops `from` to `to` - 1. */
static inline void opdi_access_range(const opdi_access *access, const opdi_nest *nest, int from, int to,
                                     int64_t *low, int64_t *high) {
    *low = *high = access->offset;
    for (int i = from; i < to; i++) {
        const int64_t reach = access->strides[i] * (nest->sizes[i] - 1);
        *low += OPDI_MIN(reach, 0);
        *high += OPDI_MAX(reach, 0);
    }
}
#endif
#include "compiler.prototypes.h"
#endif

