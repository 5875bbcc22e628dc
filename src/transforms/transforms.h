//----------------------------------------------------------------------------------------------------------------------
//  >>transforms_h autocast, batching, derivatives: types and inline functions for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_TRANSFORMS_H)
#define OPDI_TRANSFORMS_H
#include "../autograd/autograd.h"

//== autocast ==========================================================================================================

#if !defined(OPD_NO_AUTOCAST)
/* The state of autocast that results from the open regions: for each device, whether autocast is on, and its dtype. */
typedef struct opdi_autocast_state {
    uint16_t on;                 /* one bit per device */
    uint8_t no_cache;
    int8_t dtype[OPD_BACKEND_COUNT];              /* 0: the device's default dtype */
} opdi_autocast_state;
#define OPDI_AUTOCAST_STATES 1024
/* The list of all autocast states so far.  Entries never change and are never freed, so a thread stores only the number
   of its state: state n is at[n - 1].  State 0 means that no region is open; the thread's excluded keys then tell if
   autocast is on. */
typedef struct opdi_autocast_states {
    opdi_mutex lock; int n; opdi_autocast_state at[OPDI_AUTOCAST_STATES];
} opdi_autocast_states;
typedef struct opdi_cast {
    struct opdi_cast *next;
    opd_tensor *source, *cast;                    /* references */
    const char *data;                             /* `data` and `version` of `source` when it was cast */
    uint32_t version;
} opdi_cast;
#define OPDI_CAST_CHAINS 256
typedef struct opdi_cast_cache { opdi_mutex lock; int64_t n; opdi_cast *chains[OPDI_CAST_CHAINS]; } opdi_cast_cache;
#endif

//== derivatives =======================================================================================================

#if !defined(OPD_NO_TRANSFORMS)
OPDI_INTERNAL int opdi_function_compute(opd_context *ctx);
typedef struct opdi_diff {
    const char *who;
    opd_transform_fn fn;
    void *user;
    const opd_transform_options *options;
    opd_tensor **in;                              /* the inputs of fn */
    int nin;
    opd_tensor **by, **given;                     /* given: the inputs with respect to which the transform
                                                     differentiates; by: the aliases of them */
    int *argnums, nby;
    opdi_layer *layer;
    opdi_state around;
    uint64_t since;                               /* number of the first node that is recorded inside of the layer */
    uint32_t serial;                              /* number of the layer, which is also the output_nr of its leaves */
    bool linked;                                  /* true: a node links an alias to an input */
} opdi_diff;
/* A derivative that a program holds.  vjp: the function was called once, with aliases of the inputs.  linearize: the
   function is called again for each set of tangents. */
struct opd_derivative {
    opdi_diff diff;
    opd_tensor **outs;                            /* for vjp: the outputs, with their histories */
    opd_tensor *const *primals;                   /* for linearize: the primals, as references */
    int nouts, vmaps;
    opd_transform_options o;                      /* a copy of the program's options */
};
#endif

//== checkpoints =======================================================================================================

/* The run of a segment whose results are kept (opdi_innermost.keeping).  `kernel` takes the place of the kernel at the
   Fake key. */
typedef struct opdi_keeping { opd_kernel kernel; } opdi_keeping;
/* A layer of transforms, or a level of forward mode, as it was around the first run of a checkpoint's segment. */
typedef struct opdi_surrounding {
    opdi_level *level;                            /* the level, valid while it is open; NULL for a layer */
    uint64_t serial;                              /* the number of the layer or level */
    int32_t layer;                                /* layer: its level, from 1; level: opdi_level.layer */
    bool transform;                               /* level: as in opdi_level */
    opdi_layer_kind kind;                         /* layer: as in opdi_layer, like the next three */
    opd_randomness randomness;
    int64_t size;
    int (*compute)(opd_context *ctx);
    opdi_state around;                            /* the thread's state before the layer was made.  level: only the
                                                     member `forward` */
} opdi_surrounding;
/* The layers and levels around a run, in the order in which they were opened. */
typedef struct opdi_surroundings {
    opdi_surrounding *list;
    int32_t count, floor;
    uint32_t thread;                              /* the number of the thread */
    bool levels;                                  /* true: the list has a level */
} opdi_surroundings;
/* The state of a thread before opdi_surroundings_open. */
typedef struct opdi_surroundings_frame {
    opdi_innermost was;
    opdi_layer *base, *inner;                     /* base: the innermost layer that stays open, or NULL; inner: the
                                                     layer that was open in it */
    opdi_level *level;                            /* the innermost level that stays open, or NULL */
    opdi_level **levels;                          /* for each element of the list: the level, or NULL for a layer */
} opdi_surroundings_frame;
/* An input of a checkpoint, or a part of it: a plain tensor, or a vmap wrapper around another part; with its tangents,
   which are parts, too. */
typedef struct opdi_input_part {
    opd_value value;                              /* a plain tensor, in the form in which nodes keep arguments */
    struct opdi_input_part *inside;               /* the wrapped value; NULL for a plain tensor */
    int dim, level;                               /* of a wrapper: as in opdi_batched */
    bool wants;                                   /* true: the tensor requires grad */
    opd_edge edge;                                /* the tensor's history, a reference; node NULL: not kept */
    struct opdi_input_part *tangents, *next;      /* tangents: a list of tangents; next: the next tangent in a
                                                     list */
    int at;                                       /* of a tangent: the index of its level in the surroundings */
} opdi_input_part;

//== fake ==============================================================================================================

/* A size that depends on data, as a symbol.  Fakes are computed with the number `value`. */
#define OPDI_SYMBOL_VALUES 4
typedef struct opdi_symbol {
    int64_t value, first;                         /* first: the first value, which the program may have read */
    int64_t min, max;                             /* max -1: no upper bound */
    int64_t step;                                 /* the size is a multiple of `step` */
    int64_t values[OPDI_SYMBOL_VALUES];           /* the numbers that are possible, if nvalues is not 0 */
    int nvalues;
    int same;                                     /* the symbol that this one equals, or -1 */
    int maybe;                                    /* -1, or a symbol that the size may follow: an integer in a call was
                                                     equal to that symbol's value, so the size is either `first` or that
                                                     symbol */
    int name;                                     /* n of the name un; -1: has no name, because of `maybe` */
} opdi_symbol;
typedef struct opdi_symbols {
    opdi_symbol *symbol;
    int count, capacity, names;
    int within;                                   /* the number of calls with such sizes that are running */
    struct opdi_sized *live;                      /* the list of all tensors with such sizes */
    struct opdi_sized_node **nodes;               /* OPDI_SIZED_NODES lists of nodes with such sizes; NULL: none */
    const opd_call *trying;                       /* the call whose trial is running, or NULL */
    opd_cost *cost;                               /* during a trial: cost, showing: what the trial has switched off */
    bool showing;
    struct opdi_size_search *search;                   /* the search that this trial belongs to */
} opdi_symbols;
/* A size: (factor * symbol + rest) / divisor, or, if `other` is not -1, with the product of two symbols in place of
   one.  symbol -1: a size that does not depend on data. */
typedef struct opdi_size { int symbol, other; int64_t factor, rest, divisor; } opdi_size;
/* The sizes of a tensor that depend on data. */
typedef struct opdi_sized {
    opdi_marks marks;                             /* must be the first member */
    opdi_symbols *symbols;
    opd_tensor *tensor;                           /* its opdi_meta points here */
    struct opdi_sized *next, *prev;               /* the neighbours in the list of the mode */
    int ndim;
    opdi_size size[1];                            /* ndim of them */
} opdi_sized;
/* A real tensor, as a reference, and its fake. */
typedef struct opdi_faked { opd_tensor *real, *fake; } opdi_faked;
typedef struct opdi_fake_mode {
    opdi_fake asked;                              /* must be the first member, because innermost.fake points to it */
    struct opdi_fake_mode *outer;
    int place;                                    /* the device that new tensors stand for */
    int inside;                                   /* the number of kernels that are running; bytes are counted only
                                                     inside of kernels */
    opdi_faked *map;                              /* a hash table with open addressing; its size is a power of two */
    int64_t size, used, given;                    /* given: bytes of the real tensors that were passed to the mode */
    opdi_symbols *symbols, own;                   /* symbols: points to `own` of the outermost mode */
    opd_cost *cost;
} opdi_fake_mode;
/* Returns the innermost fake mode of a thread, or NULL. */
static inline opdi_fake_mode *opdi_fake_mode_of(const opdi_thread *thread) {
    return (opdi_fake_mode *)(void *)thread->innermost.fake;
}
struct opd_cost {
    opd_fake_block block;
    opd_cost_row *rows;
    int nrows, capacity;
    int64_t begun, most, given;                   /* begun: live bytes at the start; most: the most live bytes so far;
                                                     given: bytes of real tensors that were passed */
};
OPDI_INTERNAL bool opdi_autocast_is_on(const opdi_thread *thread, int device);
OPDI_INTERNAL int opdi_batched_kernel(opd_call *call);

//== functions of higher layers that this layer calls ==================================================================

OPDI_INTERNAL int opdi_detach_kernel(opd_call *call);
#include "transforms.prototypes.h"
#endif

