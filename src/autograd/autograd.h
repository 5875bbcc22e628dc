//----------------------------------------------------------------------------------------------------------------------
//  >>autograd_h   nodes, the engine and saved tensors: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_AUTOGRAD_H)
#define OPDI_AUTOGRAD_H
#include "../levels/levels.h"

//== nodes =============================================================================================================

#if defined(OPDI_CORE)
/* An edge of the graph, where a gradient goes: the input `nr` of a node, or (bit 0 set) a leaf.  0: nobody
   wants the gradient. */
typedef struct opdi_edge { uintptr_t vertex; uint32_t nr, spare; } opdi_edge;
/* A node of the tape.  It is one block: the struct, its edges, kept arguments, saved results, and for each forward
   result dtype, backend, ndim, sizes.  The version that a kept tensor had when it was saved is in its value's n. */
struct opd_node {
    int32_t refs;
    uint16_t nedges;
    uint8_t nkept, nresults;                      /* opd_values that follow the edges */
    const opdi_derivative *formula;               /* with OPDI_NODE_EXTRA the first member of its opdi_extra */
    uint64_t sequence;                            /* in its low 44 bits; above, the thread that recorded it */
    struct opdi_task *task;                       /* the backward at work here; in the list of the dead: the next */
    uint32_t bytes;
    uint16_t noutputs;
    uint8_t saved;                                /* opdi_saved; above it how many backwards are inside */
    uint8_t flags;                                /* OPDI_NODE_* */
};
#define OPDI_NODE_EXTRA 2u       /* it has what few nodes have: hooks, a trace of where it was recorded */
#define OPDI_SEQUENCE_BITS 44
static inline uint64_t opdi_node_sequence(const opd_node *node) {
    return node->sequence & (((uint64_t)1 << OPDI_SEQUENCE_BITS) - 1);
}
enum opdi_saved { OPDI_NOTHING_SAVED, OPDI_SAVED, OPDI_SAVED_FREED = 2, OPDI_SAVED_USER = 4 };
static inline opdi_edge *opdi_edges(const opd_node *node) { return (opdi_edge *)(uintptr_t)(node + 1); }
static inline opd_value *opdi_kept(const opd_node *node) {
    return (opd_value *)(void *)(opdi_edges(node) + node->nedges);
}
static inline opd_value *opdi_saved_results(const opd_node *node) { return opdi_kept(node) + node->nkept; }
#define OPDI_LEAF ((uintptr_t)1)
static inline opd_node *opdi_edge_node(uintptr_t vertex) { return (opd_node *)vertex; }
static inline opd_tensor *opdi_edge_leaf(uintptr_t vertex) { return (opd_tensor *)(vertex & ~OPDI_LEAF); }
/* Marks of a value that a saved-tensor hook packed: the tag of a kept value, and bit 0 of an element of a kept list. */
#define OPDI_TAG_PACKED (OPD_TAG_COUNT + 1)
#define OPDI_PACKED ((uintptr_t)1)
static inline struct opdi_packed_saved *opdi_packed_saved_at(const opd_tensor *element) {
    return (uintptr_t)element & OPDI_PACKED ? (struct opdi_packed_saved *)((uintptr_t)element & ~OPDI_PACKED) : NULL;
}
/* True for values that hold no memory.  Cheap, as most values are such. */
static inline bool opdi_is_plain(const opd_value *value) {
    return (1u << OPD_TAG_NONE | 1u << OPD_TAG_INT | 1u << OPD_TAG_FLOAT | 1u << OPD_TAG_BOOL) >> value->tag & 1;
}
/* The thread's state that user code may change.  It is saved before such code runs, and restored after it. */
typedef struct opdi_frame {
    opdi_state state;
    int64_t mark, scope_mark;
    int32_t scope_depth;
    opd_node *node;
} opdi_frame;
/* Saves the thread's state and opens a scope. */
static inline void opdi_frame_enter(opdi_thread *thread, opdi_frame *frame) {
    frame->state = thread->state;
    frame->mark = thread->top;
    frame->scope_mark = thread->scope_mark;
    frame->scope_depth = thread->scope_depth;
    frame->node = thread->innermost.node;
    thread->scope_mark = frame->mark;
    thread->scope_depth = frame->scope_depth + 1;
}

OPDI_INTERNAL void opdi_scope_unwind(opdi_thread *thread, int64_t mark);
/* Restores the thread's state and releases what was made since opdi_frame_enter. */
static inline void opdi_frame_leave(opdi_thread *thread, const opdi_frame *frame) {
    thread->state = frame->state;
    thread->innermost.node = frame->node;
    thread->scope_depth = frame->scope_depth;
    thread->scope_mark = frame->scope_mark;
    if (thread->top != frame->mark) { opdi_scope_unwind(thread, frame->mark); }
}

OPDI_INTERNAL int opdi_view_refresh(opd_tensor *view);
static inline int opdi_refresh(opd_tensor *tensor) {
    return OPDI_UNLIKELY(OPDI_LOAD(&tensor->flags) & OPDI_IS_VIEW) ? opdi_view_refresh(tensor) : 0;
}
/* Points the empty edge edge to the history of tensor, if tensor requires grad.  tensor must have been refreshed. */
static inline void opdi_edge_to(opdi_edge *edge, opd_tensor *tensor) {
    if (!tensor || !(tensor->flags & OPDI_REQUIRES_GRAD)) { return; }
    if (tensor->grad_fn) {
        opdi_ref_up(&tensor->grad_fn->refs);
        edge->vertex = (uintptr_t)tensor->grad_fn;
        edge->nr = tensor->output_nr;
    } else {
        opdi_retain(tensor);
        edge->vertex = (uintptr_t)tensor | OPDI_LEAF;
    }
}
#define OPDI_NODE_ROOM 4                          /* dims that a write in place may add */
#define OPDI_WRITTEN_SINCE 1                      /* n of a kept value: its tensor was let go of, as it is void */
typedef struct opdi_listed { opd_tensor **tensors; int32_t count; } opdi_listed;  /* references */
typedef struct opdi_attribute {
    struct opdi_attribute *next;
    opd_value value;
    char *name;
} opdi_attribute;
#define OPDI_MOST_SAVED 190                       /* beside 64 arguments and the context in a node's 255 values */
struct opd_context {
    opd_autograd_function fn;                     /* of an operator: zeros */
    const char *name;                             /* for messages */
    opd_node *node;                               /* whose it is; NULL: forward or set-up runs */
    const opd_value *inputs;                      /* while those run */
    opd_value *outputs;                           /* references */
    int32_t ninputs, noutputs, cap;
    int32_t nsaved;
    opdi_listed save, save_forward, dirty, constant;
    opdi_edge *edges;                             /* to the inputs, until a node has them; references */
    int32_t nedges, bytes;
    int32_t *first;                               /* a function's: of each input its first edge, and the end */
    opdi_attribute *attributes;
    void *data;
    void (*destroy)(void *data);
    bool materialize, in_forward, in_setup, in_jvp, cleared;
    struct opdi_layer *layer;                     /* during the call: the vmap that it belongs to, if there is one */
    bool amp, amp_on;                             /* what opd_custom_fwd found, for opd_custom_bwd */
    opd_backend amp_device;
    opd_scalar_type amp_dtype;
};
#endif

//== recording =========================================================================================================

#if defined(OPDI_CORE)
OPDI_INTERNAL opdi_level *opdi_level_of(const opd_value *args, int count);
/* True if forward mode takes part in this call: a level is open and an argument has a tangent. */
static inline bool opdi_call_forward(const opd_call *call) {
    return OPDI_UNLIKELY(call->th->state.forward == OPDI_FORWARD_OPEN) &&
        opdi_level_of(call->args, call->op->nargs) != NULL;
}
#endif
/* Runs the call at the keys below Autograd. */
static inline int opdi_below_autograd(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}

//== views =============================================================================================================

#if defined(OPDI_CORE)
/* The most numbers that opdi_slice_pack writes. */
#define OPDI_MAX_SLICE (3 + 3 * OPD_MAX_DIMS)
#endif

//== writes ============================================================================================================

#if defined(OPDI_CORE)
struct opd_backward_call {
    opd_node *node;
    opd_node *base;                               /* the CopySlices node that keeps it; NULL: the engine runs node */
    opd_tensor **grads;                           /* one for each forward result; NULL: undefined */
    opd_tensor **out;                             /* one for each edge, references */
    opd_value *fetched;                           /* kept values that are not as they were kept; NULL: there are none */
    bool plain;                                   /* the formula is run as it is written, also for complex numbers */
    bool undefined;                               /* the formula has seen that the gradient of a result is NULL */
};
#endif

//== functions =========================================================================================================

#if defined(OPDI_CORE)
OPDI_COLD_BEGIN
static inline bool opdi_wants_conjugates(const opd_backward_call *bw) {
    for (int i = 0; i < bw->node->noutputs; i++) {
        if (opdi_is_complex(bw->grads[i])) { return true; }
    }
    return false;
}
OPDI_COLD_END
#endif

//== formulas ==========================================================================================================

#if defined(OPDI_CORE)
#define OPDI_TOO_FEW "returned an incorrect number of gradients"
OPDI_INTERNAL int opdi_call_once(opd_backward_call *bw);
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_conjugated(opd_backward_call *bw);
OPDI_INTERNAL int opdi_call_fn(opd_backward_call *bw);
OPDI_INTERNAL int opdi_fetch_saved(opd_backward_call *bw);
OPDI_INTERNAL bool opdi_wants_any(const opd_node *node);
/* Runs the formula of a node after fetching what it saved; does nothing if none of its gradients is wanted.  The
   formula of a custom function always runs, and fetches what it saved itself.  0, or -1 with an error. */
static inline int opdi_run_fn(opd_backward_call *bw) {
    const opdi_derivative *formula = bw->node->formula;
    bw->fetched = NULL;
    if (!formula->context && !opdi_wants_any(bw->node)) { return 0; }
    if (opdi_fetch_saved(bw)) { return -1; }
    if (formula->real && !bw->plain && OPDI_UNLIKELY(opdi_wants_conjugates(bw))) { return opdi_call_conjugated(bw); }
    return OPDI_UNLIKELY(formula->once) ? opdi_call_once(bw) : opdi_call_fn(bw);
}
#endif

//== engine ============================================================================================================

#if defined(OPDI_CORE)
typedef struct opdi_task {
    uintptr_t vertex;
    struct opdi_task *next, *up;                  /* all tasks; the parent in the search */
    int32_t deps, cursor;
    uint16_t ngrads;
    bool seen, needed, captured, counted;
    bool leads;                                   /* to another one that is needed */
    opd_tensor *grads[1];                         /* ngrads of them, references */
} opdi_task;
/* Memory of tasks, in the order of the search, which is often that of the run. */
typedef struct opdi_task_block { struct opdi_task_block *next; size_t bytes; } opdi_task_block;
/* A gradient that the caller asked for.  Captures are sorted by vertex, so that a task finds its own. */
typedef struct opdi_capture { uintptr_t vertex; uint32_t nr; int index; opd_tensor *grad; } opdi_capture;
typedef struct opdi_engine {
    opdi_task_block *blocks;                      /* newest first; the free part of that */
    char *at, *end;
    opdi_task *tasks, **heap, **hash;
    opdi_task *ready;                             /* beside the heap, which most chains never use */
    int64_t nheap, heap_cap, ntasks, hash_cap;
    opdi_capture *captures;
    int ncaptures;
    bool first, retain, create, once, accumulate, restricted;
    uint32_t serial;                              /* of the layer whose derivative it is, or 0 */
    int64_t id;                                   /* counted in the process */
    struct opdi_final *finals, **finals_end;      /* callbacks for the end; where the next goes when there are some */
    struct opdi_gathering *gatherings;            /* of hooks that wait for several gradients */
} opdi_engine;
#define OPDI_INLINE_EDGES 16
#endif

//== tape ==============================================================================================================

#if defined(OPDI_CORE)
/* A function to call when a backward has ended; the first that was added is called first. */
typedef struct opdi_final {
    struct opdi_final *next;
    int (*fn)(void *user);
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
} opdi_final;
#endif

//== hooks =============================================================================================================

#if defined(OPDI_CORE)
typedef struct opdi_hook {
    int32_t refs;                                 /* of its list, of who runs it; of a multi: of its members */
    int32_t kind, mode;
    uint32_t nr;                                  /* gradient of which result; of a member: its number is `index` */
    int index, nmembers, nlinked;                 /* nlinked: of the members */
    uint32_t serial;                              /* of the layer to whose tape it belongs: it runs in its backward */
    bool removed;
    struct opdi_extra *owner;                     /* whose list it is in */
    struct opdi_hook *next, **at;
    uint32_t slot;
    opdi_any_fn fn;
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
    struct opdi_hook *multi, **members;           /* a member's; a multi's, NULL where one is gone */
    uintptr_t vertex;                             /* of a member */
} opdi_hook;
/* The place where the gradient of a result goes that retains it: held by the tensor and by the node that it is
   a result of. */
typedef struct opdi_box {
    int32_t refs;
    uint32_t nr;
    opd_tensor *grad;
    struct opdi_extra *owner;
    struct opdi_box *next, **at;
} opdi_box;
/* The parts of a node or leaf that few of them have. */
typedef struct opdi_extra {
    opdi_derivative formula;                      /* the node's, which points here */
    opdi_hook *hooks, **last;
    opdi_box *boxes;
    void **frames;                                /* anomaly mode: where the node was recorded, return addresses */
    int nframes;
    opd_node *parent;                             /* anomaly mode: the node at work then */
} opdi_extra;
/* The gradients that a hook of several tensors has got so far in one backward. */
typedef struct opdi_gathering {
    struct opdi_gathering *next;
    opdi_hook *multi;
    int64_t left;                                 /* gradients to come; -1: it has been called */
    opd_tensor *grads[1];
} opdi_gathering;
#endif

//== saved tensors =====================================================================================================

#if defined(OPDI_CORE)
/* A pair of saved-tensor hooks, held by the region in which it is the default and by what it packed. */
typedef struct opdi_packer {
    int32_t refs;
    opd_saved_hooks hooks;
    opd_plugin *plugin;
    struct opdi_packer *outer;
} opdi_packer;
/* A saved tensor that hooks have packed, and what ties the unpacked one to the graph again. */
typedef struct opdi_packed_saved {
    opdi_packer *packer;
    void *data;
    opd_edge edge;                                /* a reference; node NULL: it required no grad */
    bool own;                                     /* the edge's node is the one that saved it, not held */
    uint8_t ndim;
    int8_t dtype;
    int64_t sizes[1];                             /* ndim of them: what is unpacked is like what was packed */
} opdi_packed_saved;
/* A tensor as it was saved, perhaps by several nodes. */
typedef struct opdi_untouched {
    struct opdi_untouched *next, **at, *over;     /* in its row of the table; what points at it there */
    struct opdi_mutation *mode;
    const void *key;                              /* its storage; when it has been copied, itself */
    opd_tensor *tensor;                           /* a reference; NULL: the mode is over */
    uint32_t version;
    int32_t refs;                                 /* nodes */
} opdi_untouched;
typedef struct opdi_mutation {
    opdi_untouched **rows;                        /* a power of two of them */
    int64_t nrows, count;
    opdi_packer *packer;
} opdi_mutation;
#endif

//== anomaly mode ======================================================================================================

#if defined(OPDI_CORE)
#define OPDI_FRAMES 48
#endif

//== forward ===========================================================================================================

#if defined(OPDI_CORE)
/* The thread's state while a level's tangents are computed: operators called meanwhile belong to the
   levels around it. */
typedef struct opdi_within { opdi_level *level, *dual; opdi_state state; } opdi_within;
OPDI_COLD_BEGIN
/* Lets only the levels inside of layer `floor` compute tangents; 0: all levels. */
static inline void opdi_forward_at(opdi_thread *thread, int32_t floor) {
    const bool open = thread->innermost.level && thread->innermost.level->layer > floor;
    thread->innermost.floor = floor;
    thread->state.forward = (int16_t)((thread->state.forward & OPDI_FORWARD_OFF) | (open ? OPDI_FORWARD_OPEN : 0));
}
OPDI_COLD_END
#endif

//== forward results ===================================================================================================

struct opd_jvp_call {
    const opdi_card *card;                        /* of the functional form, if there is one */
    opd_op *op;                                   /* NULL: of a custom function, */
    opd_context *ctx;                             /* which has this context */
    const opd_value *args, *rets;
    opd_tensor **inputs, **tangents;              /* one for each edge that a node would have */
    opd_tensor **results, **out;                  /* flat; their tangents, in the call's scope */
    int ninputs, nresults;
    bool *constant;                               /* flat: a result without a derivative; NULL: all have one */
};

//== functions of higher layers that this layer calls ==================================================================

OPDI_SHARED int opdi_as_strided_bw(opd_backward_call *bw);
#if defined(OPDI_CORE)
OPDI_INTERNAL int opdi_once_deeper(const opd_node *from, opd_tensor **tensors, opd_tensor *const *reads, int count,
                                   int below);
OPDI_INTERNAL int opdi_grad_batched(opd_tensor *const *outputs, int count, opd_tensor *const *inputs, int ninputs,
                                    const opd_backward_options *options, opd_tensor **grads);
OPDI_INTERNAL int opdi_function_layer(opd_context *ctx);
OPDI_INTERNAL int opdi_function_compute(opd_context *ctx);
#endif
#include "autograd.prototypes.h"
#endif

