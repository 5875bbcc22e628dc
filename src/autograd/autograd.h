//----------------------------------------------------------------------------------------------------------------------
//  >>autograd_h   nodes, the engine and saved tensors: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_AUTOGRAD_H)
#define OPDI_AUTOGRAD_H
#include "../levels/levels.h"

//== nodes =============================================================================================================

#if defined(OPDI_CORE)
/* An edge of the autograd graph.  A gradient flows along it to input `nr` of the node `vertex` or, if bit 0 of vertex
   is set, to the leaf tensor `vertex` (OPDI_LEAF).  If `vertex` is 0, the gradient is not needed. */
typedef struct opdi_edge { uintptr_t vertex; uint32_t nr, spare; } opdi_edge;
/* A node of the autograd graph, in one block of memory: the struct, its edges, kept arguments, saved results, and a
   description of each forward result (dtype, backend, ndim and sizes).  In the opd_value of a kept tensor, member `n`
   is the version that the tensor had when it was saved. */
struct opd_node {
    int32_t refs;
    uint16_t nedges;
    uint8_t nkept, nresults;                      /* kept arguments and saved results: opd_values after the edges */
    const opdi_derivative *formula;               /* its backward function; in an opdi_extra if OPDI_NODE_EXTRA */
    uint64_t sequence;                            /* low 44 bits: the node's number; above: its thread's number */
    struct opdi_task *task;                       /* the node's task in backward; of a dead node: the next dead node */
    uint32_t bytes;
    uint16_t noutputs;
    uint8_t saved;                                /* low 2 bits: an opdi_saved; above: count of backwards using it */
    uint8_t flags;                                /* OPDI_NODE_* */
};
/* Returns the number of dims in the description of a forward result (see opdi_node_meta). */
static inline int opdi_meta_ndim(const int64_t *meta) { return (int)(*meta >> 24 & 0xff); }
#define OPDI_META_COLUMN_MAJOR ((int64_t)1 << 32) /* in a description: the result was a column-major matrix */
/* Returns true if tensor is a matrix whose columns lie one after the other in memory. */
static inline bool opdi_is_column_major(const opd_tensor *tensor) {
    return tensor->ndim == 2 && tensor->dims[2] == 1 && tensor->dims[3] == tensor->dims[0];
}
#define OPDI_NODE_EXTRA 2u       /* the node has an opdi_extra (hooks, a trace) */
#define OPDI_SEQUENCE_BITS 44
static inline uint64_t opdi_node_sequence(const opd_node *node) {
    return node->sequence & (((uint64_t)1 << OPDI_SEQUENCE_BITS) - 1);
}
/* Tells if a node has saved tensors, and if they were freed.  OPDI_SAVED_USER is the unit in which opd_node.saved
   counts the backwards that use the node. */
enum opdi_saved { OPDI_NOTHING_SAVED, OPDI_SAVED, OPDI_SAVED_FREED = 2, OPDI_SAVED_USER = 4 };
static inline opdi_edge *opdi_edges(const opd_node *node) { return (opdi_edge *)(uintptr_t)(node + 1); }
static inline opd_value *opdi_kept(const opd_node *node) {
    return (opd_value *)(void *)(opdi_edges(node) + node->nedges);
}
static inline opd_value *opdi_saved_results(const opd_node *node) { return opdi_kept(node) + node->nkept; }
#define OPDI_LEAF ((uintptr_t)1)
static inline opd_node *opdi_edge_node(uintptr_t vertex) { return (opd_node *)vertex; }
static inline opd_tensor *opdi_edge_leaf(uintptr_t vertex) { return (opd_tensor *)(vertex & ~OPDI_LEAF); }
/* A value that a saved-tensor hook has packed is marked: a single value has this tag, and an element of a kept list has
   bit 0 of its pointer set. */
#define OPDI_TAG_PACKED (OPD_TAG_COUNT + 1)
#define OPDI_PACKED ((uintptr_t)1)
static inline struct opdi_packed_saved *opdi_packed_saved_at(const opd_tensor *element) {
    return (uintptr_t)element & OPDI_PACKED ? (struct opdi_packed_saved *)((uintptr_t)element & ~OPDI_PACKED) : NULL;
}
/* Returns true if `value` is None, an int, a float or a bool, which hold no memory.  Most values are of these types. */
static inline bool opdi_is_plain(const opd_value *value) {
    return (1u << OPD_TAG_NONE | 1u << OPD_TAG_INT | 1u << OPD_TAG_FLOAT | 1u << OPD_TAG_BOOL) >> value->tag & 1;
}
/* The parts of the thread's state that user code may change.  They are saved before such code runs and restored after
   it. */
typedef struct opdi_frame {
    opdi_state state;
    int64_t mark, scope_mark;
    int32_t scope_depth;
    opd_node *node;
} opdi_frame;
/* Saves the thread's state in *frame and opens a scope. */
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
/* Restores the thread's state from *frame and releases all tensors made since opdi_frame_enter. */
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
/* Points `edge`, which is empty, to the history of `tensor`, if the tensor requires grad.  The caller has brought the
   history up to date (opdi_view_refresh). */
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
#define OPDI_NODE_EXTRA_DIMS 4                    /* how many more dims a result may get by writes in place */
#define OPDI_WRITTEN_SINCE 1                      /* n of a kept None whose saved tensor was dropped after a write */
/* A list of references to tensors. */
typedef struct opdi_tensor_array { opd_tensor **tensors; int32_t count; } opdi_tensor_array;
typedef struct opdi_attribute {
    struct opdi_attribute *next;
    opd_value value;
    char *name;
} opdi_attribute;
#define OPDI_MOST_SAVED 190                       /* the most tensors that a context saves: with 64 arguments and the
                                                     context, a node then has 255 values, the most possible */
struct opd_context {
    opd_autograd_function fn;                     /* all zeros if the context belongs to an operator */
    const char *name;                             /* the name in messages */
    opd_node *node;                               /* the context's node; NULL while forward or set-up runs */
    const opd_value *inputs;                      /* valid while forward or set-up runs */
    opd_value *outputs;                           /* references */
    int32_t ninputs, noutputs, cap;
    int32_t nsaved;
    opdi_tensor_array save, save_forward, dirty, constant;
    opdi_edge *edges;                             /* edges to the inputs; references until the node takes them over */
    int32_t nedges, bytes;
    int32_t *first;                               /* custom function: index of each input's first edge; then nedges */
    opdi_attribute *attributes;
    void *data;
    void (*destroy)(void *data);
    bool materialize, in_forward, in_setup, in_jvp, cleared;
    struct opdi_layer *layer;                     /* during the call: the vmap layer to which it belongs, if any */
    bool amp, amp_on;                             /* set by opd_custom_fwd for opd_custom_bwd */
    opd_backend amp_device;
    opd_scalar_type amp_dtype;
};
#endif

//== recording =========================================================================================================

#if defined(OPDI_CORE)
OPDI_INTERNAL opdi_level *opdi_level_of(const opd_value *args, int count);
/* Returns true if forward mode takes part in this call: a level is open and an argument has a tangent. */
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
/* The maximal count of numbers that opdi_slice_pack writes. */
#define OPDI_MAX_SLICE (3 + 3 * OPD_MAX_DIMS)
#endif

//== writes ============================================================================================================

#if defined(OPDI_CORE)
struct opd_backward_call {
    opd_node *node;
    opd_node *base;                               /* the CopySlices node around `node`; NULL: `node` runs alone */
    opd_tensor **grads;                           /* a gradient for each forward result; NULL: undefined */
    opd_tensor **out;                             /* a gradient for each edge; references */
    opd_value *fetched;                           /* the node's kept values, unpacked or replaced; NULL: as they are */
    bool plain;                                   /* call the backward function without conjugating complex gradients */
    bool undefined;                               /* the backward function has read an undefined gradient */
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

OPDI_SHARED int opdi_pass_backward(opd_backward_call *bw);
OPDI_SHARED bool opdi_bw_is_column_major(const opd_backward_call *bw, int i);
OPDI_SHARED int opdi_refused_backward(opd_backward_call *bw);
#if defined(OPDI_CORE)
#define OPDI_TOO_FEW "returned an incorrect number of gradients"
OPDI_INTERNAL int opdi_call_once(opd_backward_call *bw);
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_conjugated(opd_backward_call *bw);
OPDI_INTERNAL int opdi_call_fn(opd_backward_call *bw);
OPDI_INTERNAL int opdi_fetch_saved(opd_backward_call *bw);
OPDI_INTERNAL bool opdi_wants_any(const opd_node *node);
/* Runs the backward function of node bw->node after fetching the node's saved values, and writes the gradients to
   bw->out.  Does nothing if none of the gradients is needed.  The backward function of a custom function always runs,
   and fetches its saved values itself.  Returns 0, or -1 and sets an error. */
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
    struct opdi_task *next, *up;                  /* next: the next in the list of all tasks; up: the parent in the
                                                     search */
    int32_t deps, cursor;
    uint16_t ngrads;
    bool seen, needed, captured, counted;
    bool leads;                                   /* one of its edges leads to another needed task */
    opd_tensor *grads[1];                         /* ngrads gradients; references */
} opdi_task;
/* A block of memory for tasks.  The tasks lie in the block in the order in which the search finds them, which is often
   the order in which they run. */
typedef struct opdi_task_block { struct opdi_task_block *next; size_t bytes; } opdi_task_block;
/* A gradient that the caller asked for, with its number `index` among them.  Captures are sorted by vertex, so that a
   task finds the captures of its own vertex. */
typedef struct opdi_capture { uintptr_t vertex; uint32_t nr; int index; opd_tensor *grad; } opdi_capture;
typedef struct opdi_engine {
    opdi_task_block *blocks;                      /* memory for tasks, newest block first */
    char *at, *end;
    opdi_task *tasks, **heap, **hash;
    opdi_task *ready;                             /* a ready task outside the heap; in a chain, the heap stays empty */
    int64_t nheap, heap_cap, ntasks, hash_cap;
    opdi_capture *captures;
    int ncaptures;
    /* first: tasks are stored in nodes and leaves, not in the hash table.  retain: saved values are not freed.  create:
       the gradients are recorded.  once: create does not imply retain.  accumulate: gradients are added to leaves.
       restricted: only the captures are computed. */
    bool first, retain, create, once, accumulate, restricted;
    uint32_t serial;                              /* number of the transform layer whose derivative is computed, or 0 */
    int64_t id;                                   /* number of this backward, unique in the process */
    struct opdi_final *finals, **finals_end;      /* finals: callbacks for the end; finals_end: where to append the next
                                                     one */
    struct opdi_gathering *gatherings;            /* gradients that multi-gradient hooks have received so far */
} opdi_engine;
#define OPDI_INLINE_EDGES 16
#endif

//== tape ==============================================================================================================

#if defined(OPDI_CORE)
/* A function to call at the end of a backward.  Functions are called in the order in which they were added. */
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
    int32_t refs;                                 /* held by its list and by running code; or by member hooks */
    int32_t kind, mode;
    uint32_t nr;                                  /* number of the node's result that it watches */
    int index, nmembers, nlinked;                 /* index: the number of a member; nlinked: how many of the nmembers
                                                     members are in lists */
    uint32_t serial;                              /* number of the transform layer in whose backward it runs */
    bool removed;
    struct opdi_extra *owner;                     /* the node or leaf in whose list it is */
    struct opdi_hook *next, **at;
    uint32_t slot;
    opdi_any_fn fn;
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
    struct opdi_hook *multi, **members;           /* multi: the multi-hook of a member; members: the members of a
                                                     multi-hook */
    uintptr_t vertex;                             /* of a member: its node or leaf */
} opdi_hook;
/* Holds the gradient of a result after opd_tensor_retain_grad.  Both the tensor and the node whose result it is hold
   the box. */
typedef struct opdi_retained_grad {
    int32_t refs;
    uint32_t nr;
    opd_tensor *grad;
    struct opdi_extra *owner;
    struct opdi_retained_grad *next, **at;
} opdi_retained_grad;
/* Data that only few nodes or leaves have: hooks, retained gradients, traces. */
typedef struct opdi_extra {
    opdi_derivative formula;                      /* copy of the node's derivative; the node's `formula` points here */
    opdi_hook *hooks, **last;
    opdi_retained_grad *boxes;
    void **frames;                                /* anomaly mode: return addresses where the node was recorded */
    int nframes;
    opd_node *parent;                             /* anomaly mode: the node whose backward recorded this node */
} opdi_extra;
/* The gradients that a multi-gradient hook (a hook of several tensors) has received so far in one backward. */
typedef struct opdi_gathering {
    struct opdi_gathering *next;
    opdi_hook *multi;
    int64_t left;                                 /* how many gradients are missing; -1: the hook has been called */
    opd_tensor *grads[1];
} opdi_gathering;
#endif

//== saved tensors =====================================================================================================

#if defined(OPDI_CORE)
/* A pair of saved-tensor hooks.  It is referenced by the region in which it is used (opd_saved_hooks_begin to _end),
   and by the tensors that it has packed. */
typedef struct opdi_packer {
    int32_t refs;
    opd_saved_hooks hooks;
    opd_plugin *plugin;
    struct opdi_packer *outer;
} opdi_packer;
/* A saved tensor that hooks have packed, with what is needed to connect the unpacked tensor to the autograd graph
   again. */
typedef struct opdi_packed_saved {
    opdi_packer *packer;
    void *data;
    opd_edge edge;                                /* the history, a reference; node NULL: no grad was required */
    bool own;                                     /* edge.node is the saving node: `edge` is not a reference */
    uint8_t ndim;
    int8_t dtype;
    int64_t sizes[1];                             /* ndim sizes, which the unpacked tensor must have */
} opdi_packed_saved;
/* A tensor that one or several nodes saved inside opd_allow_mutation_begin, with the contents that it had then. */
typedef struct opdi_snapshot {
    struct opdi_snapshot *next, **at, *over;      /* next: next in the row; at: pointer to this entry; over: next to be
                                                     dropped */
    struct opdi_mutation *mode;
    const void *key;                              /* the tensor's storage; after the tensor was copied, this entry */
    opd_tensor *tensor;                           /* a reference; NULL after opd_allow_mutation_end */
    uint32_t version;
    int32_t refs;                                 /* one reference for each node that saved it */
} opdi_snapshot;
typedef struct opdi_mutation {
    opdi_snapshot **rows;                         /* rows of a hash table by storage; their number is a power of two */
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
/* The thread's state while the tangents of level `level` are computed.  Operators that are called in this state belong
   to the levels around it. */
typedef struct opdi_level_frame { opdi_level *level, *dual; opdi_state state; } opdi_level_frame;
#endif

//== forward results ===================================================================================================

struct opd_jvp_call {
    const opdi_card *card;                        /* descriptor of the operator's functional form, or NULL */
    opd_op *op;                                   /* the called operator; NULL: a custom function was called */
    opd_context *ctx;                             /* the context of the custom function */
    const opd_value *args, *rets;
    opd_tensor **inputs, **tangents;              /* one for each edge that a node of the call would have */
    opd_tensor **results, **out;                  /* results: the results, with lists flattened; out: their tangents, in
                                                     the call's scope */
    opd_tensor **held;                            /* while the rule runs: references to the tangents in `out` */
    int ninputs, nresults;
    bool *constant;                               /* true: the result has no derivative; NULL: all have one */
};

//== functions of higher layers that this layer calls ==================================================================

OPDI_SHARED int opdi_as_strided_bw(opd_backward_call *bw);
#include "autograd.prototypes.h"
#endif

