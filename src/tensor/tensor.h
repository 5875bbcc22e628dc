//----------------------------------------------------------------------------------------------------------------------
//  >>tensor_h     tensors, conversions and loops: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_TENSOR_H)
#define OPDI_TENSOR_H
#include "../kernels/kernels.h"

//== tensors ===========================================================================================================

#define OPDI_TENSOR_KEYS                                                                                    \
    (OPD_BIT_OF(OPD_F_DENSE) | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW) | OPD_BIT_OF(OPD_F_AUTOGRAD) |          \
     OPD_BIT_OF(OPD_F_AUTOCAST))
OPDI_NOINLINE OPDI_INTERNAL int64_t opdi_count_error(const int64_t *sizes, int ndim);
/* Returns the number of elements of a tensor with sizes[ndim] and elements of `element` bytes.  Returns -1 and sets an
   error if the tensor has more than 2^62 bytes or a size is negative. */
static inline int64_t opdi_count(const int64_t *sizes, int ndim, size_t element) {
    const uint64_t limit = (uint64_t)1 << 62;
    uint64_t count = element;
    bool zero = false;
    if (ndim < 0 || ndim > OPD_MAX_DIMS) { return opdi_count_error(sizes, ndim); }
    for (int i = 0; i < ndim; i++) {
        uint64_t size = (uint64_t)sizes[i];
        if (size == 0) {
            zero = true;
            continue;
        }
        if (OPDI_UNLIKELY((size | count) >> 31) && (size >> 62 || size > limit / count)) {
            return opdi_count_error(sizes, ndim);
        }
        count *= size;
    }
    return zero ? 0 : (int64_t)(count >> opdi_low_bit(element));
}
/* Add and multiply sizes.  A result that is too large becomes INT64_MAX, and a negative size stays negative; opdi_count
   refuses both.  Most sizes are small and need no division. */
static inline int64_t opdi_size_plus(int64_t first, int64_t second) {
    return first > INT64_MAX - second ? INT64_MAX : first + second;
}
static inline int64_t opdi_size_times(int64_t first, int64_t second) {
    if (OPDI_LIKELY(((uint64_t)first | (uint64_t)second) >> 31 == 0 || second == 0)) { return first * second; }
    return first < 0 ? first : first > INT64_MAX / second ? INT64_MAX : first * second;
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_block_check(opd_scalar_type dtype, const int64_t *sizes, const int64_t *strides,
                                                 int ndim, int64_t offset);
OPDI_INTERNAL bool opdi_strides_contiguous(const int64_t *sizes, const int64_t *strides, int ndim);
OPDI_NOINLINE OPDI_INTERNAL void opdi_strides_bound(opd_tensor *tensor);
/* Sets the sizes, the strides (NULL: contiguous), numel and the flag OPDI_CONTIGUOUS of a tensor. */
static inline void opdi_set_dims(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                                 int64_t numel) {
    int64_t *dims = tensor->dims, count = 1;
    tensor->ndim = (uint8_t)ndim;
    tensor->numel = numel;
    if (!strides) {
        for (int i = ndim; i-- > 0;) {
            const int64_t size = sizes[i];
            dims[i] = size;
            dims[ndim + i] = count;
            count *= OPDI_MAX(size, 1);
        }
        tensor->flags |= OPDI_CONTIGUOUS;
        return;
    }
    uint64_t all = 0;
    for (int i = 0; i < ndim; i++) { dims[i] = sizes[i]; }
    for (int i = 0; i < ndim; i++) {
        dims[ndim + i] = strides[i];
        all |= (uint64_t)strides[i];
    }
    if (OPDI_UNLIKELY(all >> 58)) { opdi_strides_bound(tensor); }
    tensor->flags = (uint8_t)(tensor->flags & ~OPDI_CONTIGUOUS);
    if (opdi_strides_contiguous(dims, dims + ndim, ndim)) { tensor->flags |= OPDI_CONTIGUOUS; }
}
#define OPDI_GRAD_KEYS (OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW) | OPD_BIT_OF(OPD_F_AUTOGRAD))
static inline void opdi_tensor_init(opd_tensor *tensor, opd_scalar_type dtype, int backend, int ndim) {
    tensor->refs = 1;
    tensor->dtype = (int32_t)dtype;
    tensor->backend = (uint8_t)backend;
    tensor->flags = OPDI_UNLIKELY(opdi_is_stored_dtype(dtype)) ? OPDI_STORED : 0;
    tensor->functionality = OPDI_TENSOR_KEYS;
    if (OPDI_UNLIKELY(opdi_self()->state.inference)) { tensor->functionality &= ~OPDI_GRAD_KEYS; }
    tensor->begin = 0;
    tensor->grad_fn = NULL;
    tensor->meta = NULL;
    tensor->output_nr = 0;
    tensor->capacity = (uint8_t)(2 * ndim);
    tensor->own = 0;
    tensor->backend_bit = (uint16_t)(1u << backend);
    tensor->dims = (int64_t *)(void *)(tensor + 1);
}
/* The most bytes that a tensor may have.  On systems with a 32-bit size_t, this is less than 2^62. */
#define OPDI_MOST_BYTES (OPDI_MIN((uint64_t)INT64_MAX, (uint64_t)SIZE_MAX) / 2)
static inline bool opdi_is_inference(const opd_tensor *tensor) {
    return (tensor->functionality & (OPDI_GRAD_KEYS | OPD_BIT_OF(OPD_F_DENSE))) == OPD_BIT_OF(OPD_F_DENSE);
}
/* Returns true if the batched `tensor` still fits its value.  A write inside vmap may have given the value other sizes
   or another dtype since the batched tensor was made. */
static inline bool opdi_batch_fits(const opd_tensor *tensor) {
    const opd_tensor *value = opdi_batched_of(tensor)->value;
    const int dim = opdi_batched_of(tensor)->dim, ndim = tensor->ndim;
    if (value->ndim != ndim + 1 || value->storage != tensor->storage || value->data != tensor->data ||
        value->dtype != tensor->dtype || ((value->functionality ^ tensor->functionality) & OPDI_LAZY_KEYS)) {
        return false;
    }
    for (int i = 0; i < ndim; i++) {
        const int from = i < dim ? i : i + 1;
        if (tensor->dims[i] != value->dims[from] || tensor->dims[ndim + i] != value->dims[value->ndim + from]) {
            return false;
        }
    }
    return true;
}

//== tangents ==========================================================================================================

typedef struct opdi_dual {
    struct opdi_dual *next;                       /* the next entry in the storage's list */
    struct opdi_dual *after, **at;                /* after: the next entry in the level's list; at: the address of the
                                                     pointer to this entry */
    opdi_storage *storage;
    struct opdi_level *level;
    uint64_t family;
    opd_tensor *tangent;                          /* a reference to the tangent */
} opdi_dual;
typedef struct opdi_level {
    opdi_dual *duals;
    struct opdi_level *outer;
    uint64_t serial;                              /* the number of the level, unique in the process */
    int32_t layer;                                /* for transforms: the level is inside of layers up to this one */
    bool transform;                               /* the level belongs to that layer */
    int16_t around;                               /* state.forward of the thread before the level was opened */
} opdi_level;

//== recordings ========================================================================================================

struct opd_graph_node;
/* Functions of the recording in progress on a thread (opdi_innermost.tracer), which tensors and autograd call.  Each
   returns 0, or -1 and sets an error, unless its comment says otherwise. */
typedef struct opdi_tracer {
    /* If `tensor` is a value of the graph, makes `copy`, another tensor with its memory, the same value. */
    int (*copied)(opd_tensor *copy, const opd_tensor *tensor);
    /* Fails if the data of `tensor` must not be read.  The data of a traced tensor may be read only in kernels. */
    int (*read)(const opd_tensor *tensor);
    /* Makes `tensor` a constant of the graph if the graph does not know it.  Called before a derivative with respect to
       `tensor` is taken, while it does not yet require grad. */
    int (*outside)(opd_tensor *tensor);
    /* Fails if a backward function is about to read a saved value that the graph does not know, because it was made
       inside of an operator that is a single node of the graph.  The value would become a constant.  Called for
       autograd nodes that were recorded while the graph is recorded. */
    int (*saved)(const opd_backward_call *bw);
    /* Delays the pack hooks for the saved values of `node` until the call that is being recorded is done.  By then the
       recording knows the tensors, and it also records the operators that the hooks call. */
    int (*later)(opd_node *node, struct opdi_packer *packer);
    /* Makes the graph's node for a call that is about to run.  Operators inside of the call are not recorded.  Writes
       to *waiting, for `done`, how many autograd nodes wait for their hooks at that time.  Returns NULL and sets an
       error if that fails. */
    struct opd_graph_node *(*begin)(opd_call *call, int64_t *waiting);
    /* Ends the recording of a call: adds the node that `begin` made, and its results, to the graph.  `rc` is the value
       that the call returned. */
    int (*done)(opd_call *call, struct opd_graph_node *node, int64_t waiting, int rc);
    /* Returns a tensor of ones like `tensor`, which a node of the graph makes, without a derivative.  Returns NULL and
       sets an error on failure. */
    opd_tensor *(*ones)(const opd_tensor *tensor);
} opdi_tracer;

//== results ===========================================================================================================

static inline bool opdi_has_sizes(const opd_tensor *tensor, const int64_t *sizes, int ndim) {
    if (tensor->ndim != ndim) { return false; }
    for (int i = 0; i < ndim; i++) {
        if (tensor->dims[i] != sizes[i]) { return false; }
    }
    return true;
}

//== random ============================================================================================================

struct opd_generator { uint64_t seed, used; int32_t refs; };      /* refs: the owner's reference, and those of graphs */
OPDI_INTERNAL void opdi_random_get(opd_generator *generator, uint64_t state[2]);
OPDI_INTERNAL void opdi_random_set(opd_generator *generator, const uint64_t state[2]);
OPDI_INTERNAL void opdi_generator_pause_set(bool on);
OPDI_INTERNAL bool opdi_generator_was_missed(void);
OPDI_INTERNAL bool opdi_generator_sides_set(bool on);
OPDI_INTERNAL bool opdi_generator_has_sides(void);
OPDI_INTERNAL bool opdi_usual_lazy_set(bool on);
OPDI_INTERNAL opd_device opdi_usual_device(void);

//== conversions =======================================================================================================

#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__)
#define OPDI_IVDEP _Pragma("GCC ivdep")
#define OPDI_UNROLL _Pragma("GCC unroll 8")       /* unrolls loops over vectors, so that sums stay in registers */
#else
#define OPDI_IVDEP
#define OPDI_UNROLL
#endif
/* Runs `statement` for j = 0, 1, ... in groups of sixteen, as long as `more` is true for i, the first index of a group,
   and leaves the next index in i.  The inner loop counts from 0 to a constant, because gcc -O2 vectorises no other
   form. */
#define OPDI_SIXTEENS_WHILE(more, statement) \
    for (i = 0; more; i += 16) { \
        OPDI_IVDEP \
        OPDI_UNROLL \
        for (int lane = 0; lane < 16; lane++) { \
            const int64_t j = i + lane; \
            statement; \
        } \
    }
/* The same, as long as a whole group is below `count`. */
#define OPDI_SIXTEENS(statement) OPDI_SIXTEENS_WHILE(i + 16 <= count, statement)
/* Runs `statement` as OPDI_SIXTEENS does, and then for the remaining indices. */
#define OPDI_COLUMN_EACH(statement) { \
        OPDI_SIXTEENS(statement) \
        for (int64_t j = i; j < count; j++) { statement; } \
    }
/* Declares a loop that takes the function for one element as a parameter.  In optimised builds, both are inlined into
   each kernel; otherwise kernels share the loop. */
#if defined(__OPTIMIZE__)
#define OPDI_LOOP_TEXT OPDI_ALWAYS
#else
#define OPDI_LOOP_TEXT static inline
#endif
/* A function with OPDI_VECTOR_LOOP is compiled for AVX2 or NEON.  It may be called if opdi_has_vectors returns true.
   In builds without vector code, opdi_has_vectors is always false, so that the compiler drops such functions. */
#if defined(OPDI_VECTORS)
#define OPDI_VECTOR_LOOP OPDI_AVX2
static inline bool opdi_has_vectors(void) { return opdi_cpu_level() > 0; }
#else
#define OPDI_VECTOR_LOOP
static inline bool opdi_has_vectors(void) { return false; }
#endif
#define OPDI_ITER_OPS 9                           /* the most operands of a pass */
#define OPDI_STACK_BLOCKS OPDI_STACK_FOR(OPDI_ITER_OPS * OPDI_BLOCK * sizeof(uint64_t))
#define OPDI_BLOCK 512                            /* the number of elements that are converted at a time */
/* Aligns a block of memory to a cache line, because reading a vector that crosses two lines takes twice as long. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_ON_LINE __attribute__((aligned(64)))
#else
#define OPDI_ON_LINE
#endif
#define OPDI_ROW 128                              /* the least number of elements of a row that is used in place */
#define OPDI_GRAIN 32768                          /* the number of elements that is worth another thread */
/* The compute types: the types in which loops compute.  Elements of other dtypes are converted to one of them and back.
   OPDI_C128 serves all complex numbers (see >>op:complex). */
enum { OPDI_F32 = 0, OPDI_F64 = 1, OPDI_I64 = 2, OPDI_C128 = 3 };
typedef struct opdi_complex { double re, im; } opdi_complex;
/* The numbers that a loop takes in addition to its operands, in each type in which loops compute. */
typedef struct opdi_params {
    double f64[4];
    float f32[4];
    int64_t i64[4];
    int32_t *zero;                                /* set by integer division: 1: a division by zero; 2: the smallest
                                                     integer, i64[0], was divided by -1 */
    bool beyond;                                  /* a number argument is finite but overflows float32 */
    double imaginary[4];                          /* the imaginary parts of f64, if the numbers are complex */
    bool pairs;                                   /* a number argument has an imaginary part */
} opdi_params;
/* A loop over `count` contiguous elements, all of the type in which the loop computes.  data[0] is the output, data[1]
   and so on are the inputs. */
typedef void (*opdi_loop)(void *const *data, int64_t count, const opdi_params *params);
OPDI_LOOPS_BEGIN
static inline int opdi_compute_type(opd_scalar_type dtype) {
    if (dtype == OPD_FLOAT32) { return OPDI_F32; }
    if (dtype == OPD_FLOAT64) { return OPDI_F64; }
    return opd_dtype_is_floating(dtype) ? OPDI_F32 : OPDI_I64;
}
OPDI_LOOPS_END
static const int8_t opdi_compute_dtype[4] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_COMPLEX128};
OPDI_LOOPS_BEGIN
/* Converts a floating-point number to an integer as PyTorch's CPU kernels do on x86; in C, numbers out of range are
   undefined.  A number out of range, or NaN, becomes INT64_MIN.  Narrower types take the low bits of the result
   (c10::convert). */
static inline int64_t opdi_to_i64(double x) {
    return opdi_fits_i64(x) ? (int64_t)x : INT64_MIN;
}
OPDI_LOOPS_END
/* Converts `count` contiguous elements from one dtype to another. */
typedef void (*opdi_convert)(void *dst, const void *src, int64_t count);
OPDI_INTERNAL void opdi_store_one(opd_scalar_type from, const void *number, opd_scalar_type dtype, void *element);

//== shapes ============================================================================================================

OPDI_INTERNAL int opdi_dim_of(int64_t dim, int ndim);
OPDI_INTERNAL int opdi_check_overlap(const opd_tensor *out, const opd_tensor *in, bool any);
OPDI_INTERNAL int opdi_check_partial_overlap(const opd_tensor *out, const opd_tensor *in);
OPDI_INTERNAL int opdi_copy(opd_tensor *dst, const opd_tensor *src);
OPDI_INTERNAL opd_scalar_type opdi_result_type_of(opd_tensor *const *ts, int count);
static inline opd_scalar_type opdi_result_type(opd_tensor *const *ts, int count) {
    return count == 2 && ts[0]->dtype == ts[1]->dtype && !((ts[0]->flags & ts[1]->flags) & OPDI_WRAPPED)
        ? (opd_scalar_type)ts[0]->dtype : opdi_result_type_of(ts, count);
}
/* Returns the stride, in elements, of `tensor` along `dim` of the broadcast shape sizes[ndim]: 0 if the tensor is
   repeated along that dim. */
static inline int64_t opdi_broadcast_stride(const opd_tensor *tensor, const int64_t *sizes, int ndim, int dim) {
    int k = dim - (ndim - tensor->ndim);
    return k < 0 || (opdi_sizes(tensor)[k] == 1 && sizes[dim] != 1) ? 0 : opdi_strides(tensor)[k];
}
/* Returns the stride of opdi_broadcast_stride in bytes.  The stride of a dim of size 1 is never used and may be any
   number. */
static inline int64_t opdi_broadcast_bytes(const opd_tensor *tensor, const int64_t *sizes, int ndim, int dim) {
    return (int64_t)((uint64_t)opdi_broadcast_stride(tensor, sizes, ndim,
                                                     dim) * opd_dtype_size((opd_scalar_type)tensor->dtype));
}

//== iterator ==========================================================================================================

/* How a loop reads an operand: by its strides; element after element in memory; or as one number that is repeated. */
enum { OPDI_WALK_STRIDED = 0, OPDI_WALK_LINEAR, OPDI_WALK_SCALAR };
typedef struct opdi_operand {
    char *data;
    int64_t stride[OPD_MAX_DIMS];                 /* in bytes, dim 0 innermost */
    int32_t size;                                 /* bytes of an element */
    int8_t walk;                                  /* OPDI_WALK_* */
    bool convert;                                 /* the operand's dtype is not the type in which the loop computes */
    bool round;                                   /* an input that is first rounded to the common dtype */
    opdi_convert load, store;                     /* convert to and from the type in which the loop computes */
} opdi_operand;
/* A pass over nops operands of one shape, outputs first. opdi_iter_init fills it. */
typedef struct opdi_iter {
    int nops, nout, ndim;
    int64_t numel;
    int64_t sizes[OPD_MAX_DIMS];                  /* sizes of the loop, after joining dims; dim 0 is innermost */
    int32_t common;                               /* the dtype that operands are promoted to */
    int8_t compute;                               /* the type in which the loop computes (OPDI_F32, ...) */
    bool buffered;                                /* an operand is converted, or gathered into a block */
    int8_t row_op, row_number;                    /* row_op: OPDI_ROWS_.. if opdi_iter_number_rows is used, else 0;
                                                     row_number: the operand that repeats one number along a row */
    opdi_loop loop;
    const opdi_params *params;
    opdi_operand op[OPDI_ITER_OPS];
} opdi_iter;
/* Returns how many elements of the type in which the loop computes fit into a block. */
static inline int64_t opdi_iter_most(const opdi_iter *iter) {
    return iter->compute == OPDI_C128 ? OPDI_BLOCK / 2 : OPDI_BLOCK;
}
/* The number of rows and columns of a tile that is transposed. */
#define OPDI_TILE 64
#define OPDI_TILE_BYTES (OPDI_TILE * OPDI_TILE * sizeof(uint64_t))
/* Transposes a tile: see OPDI_TRANSPOSE. */
typedef void (*opdi_tile_fn)(char *dst, int64_t ds, const char *src, int64_t ss, int64_t ni, int64_t nj, int64_t next);
/* A pass that runs by tiles, which extend along dim 0 and dim `across`. */
typedef struct opdi_transpose { const opdi_iter *it; int across; } opdi_transpose;

OPDI_NOINLINE OPDI_INTERNAL int opdi_run_general(opd_tensor *const *ops, int nops, int nout, opd_scalar_type common,
                                                 int compute, opdi_loop loop, const opdi_params *params);
/* Runs a loop over nops operands (nout outputs first), which broadcast to ops[0].  Inputs are promoted to dtype
   `common`.  The loop computes in the type `compute` (OPDI_F32, ...), which can hold all numbers of `common`.  Does
   nothing if there are no elements.  Returns 0, or -1 and sets an error. */
static inline int opdi_run(opd_tensor *const *ops, int nops, int nout, opd_scalar_type common, int compute,
                           opdi_loop loop, const opdi_params *params) {
    const opd_tensor *out = ops[0];
    const uintptr_t bytes = (uintptr_t)out->numel * (compute == OPDI_F32 ? 4 : 8);
    void *data[OPDI_ITER_OPS];
    if (out->numel == 0) { return 0; }
    if (out->numel > OPDI_GRAIN || !(out->flags & OPDI_CONTIGUOUS) || out->dtype != opdi_compute_dtype[compute]) {
        return opdi_run_general(ops, nops, nout, common, compute, loop, params);
    }
    data[0] = out->data;
    for (int k = 1; k < nops; k++) {              /* a small pass, without preparation if the inputs are like out */
        const opd_tensor *tensor = ops[k];
        const uintptr_t apart = (uintptr_t)tensor->data - (uintptr_t)out->data;
        if (!(tensor->flags & OPDI_CONTIGUOUS) || tensor->dtype != out->dtype || tensor->numel != out->numel ||
            (apart + bytes - 1 < 2 * bytes - 1 && apart)) {
            return opdi_run_general(ops, nops, nout, common, compute, loop, params);
        }
        data[k] = tensor->data;
    }
    loop(data, out->numel, params);
    return 0;
}

//== tensors in blocks =================================================================================================

/* What a program with dtypes in blocks has in addition to others; see opdi_block_forms_of.
   decode writes n elements, whole blocks, as floats to `out`.  some does so for a part of a row of blocks of integers
   (see opdi_int_floats).  encode writes n floats as blocks.  `call` runs a call of
   an operator that has a form for blocks.  `copy` copies src to dst, of which at least one is in blocks.  Each returns
   0, or -1 and sets an error. */
typedef struct opdi_block_forms {
    int (*decode)(opd_scalar_type dtype, const void *blocks, float *out, int64_t n);
    void (*some)(const opdi_block_info *info, const uint8_t *row, int64_t k, int64_t count, float *out);
    int (*encode)(opd_scalar_type dtype, const float *in, void *blocks, int64_t n);
    int (*call)(opd_call *call);
    int (*copy)(opd_tensor *dst, const opd_tensor *src);
} opdi_block_forms;
#define OPDI_BLOCK_LARGEST 256                    /* the most elements of a block */

//== backends ==========================================================================================================

typedef struct opdi_backend {
    opd_backend_desc desc;
    int32_t registered;                           /* written last, after all other fields */
    int64_t blocks;                               /* number of blocks in use, on all devices of the backend */
    opd_plugin *plugin;                           /* the pinned plug-in that contains the backend's functions */
    opd_memory memory[OPDI_MAX_DEVICE_INDEX + 1];
} opdi_backend;
#define OPDI_DEVICE_WITH(device, hook, what) opdi_device_with(device, offsetof(opd_backend_desc, hook), what)
OPDI_INTERNAL void opdi_lazy_round_set(int (*round)(opd_call *call, opd_kernel kernel));
OPDI_INTERNAL int opdi_lazy_fallback(opd_call *call);
OPDI_INTERNAL int opdi_redescribe(opd_tensor *tensor, const int64_t *sizes, const int64_t *strides, int ndim,
                                  int64_t offset);

//== functions of higher layers that this layer calls ==================================================================

OPDI_INTERNAL int opdi_fill_Scalar_kernel(opd_call *call);
OPDI_INTERNAL int opdi_copy__kernel(opd_call *call);
/* Chooses how numbers from low <= 0 to high >= 0 are quantised to the integers from 0 to most, as PyTorch's TorchScript
   models do.  Sets *step to the difference between two integers.  Returns the integer that stands for 0. */
static inline double opdi_quantized_steps(double low, double high, double most, double *step) {
    const double least = 6.1e-5;
    *step = (high - low) / most;
    if ((float)*step == 0 || isinf(1 / (float)*step)) { *step = 0.1; }
    if (*step < least) {
        const double wider = least / *step;
        *step = least;
        low = high == 0 ? -least * most : low * wider;
        high = low == 0 ? least * most : high == 0 ? 0 : high * wider;
    }
    const bool from_low = fabs(low / *step) < most + fabs(high / *step);
    return nearbyint(OPDI_MIN(OPDI_MAX(from_low ? -low / *step : most - high / *step, 0), most));
}

#include "tensor.prototypes.h"
#endif

