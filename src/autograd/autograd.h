//----------------------------------------------------------------------------------------------------------------------
//  >>autograd_h   nodes, the engine and saved tensors: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_AUTOGRAD_H)
#define OPDI_AUTOGRAD_H
#include "../levels/levels.h"

//== nodes =============================================================================================================

/* An edge of the autograd graph.  Along the edge, backward sends a gradient to `vertex`.  If bit 0 of `vertex` is set
   (OPDI_LEAF), `vertex` is a leaf tensor.  Otherwise it is a node, and the gradient is the gradient of the node's
   forward result number `nr`.  If `vertex` is 0, the gradient is not needed. */
typedef struct opdi_edge { uintptr_t vertex; uint32_t nr, spare; } opdi_edge;
/* A node of the autograd graph, in one block of memory: the struct, its edges, kept arguments, saved results, and a
   description of each forward result (dtype, backend, ndim and sizes).  In the opd_value of a kept tensor, member `n`
   is the version that the tensor had when it was saved. */
struct opd_node {
    int32_t refs;
    uint16_t nedges;
    uint8_t nkept, nresults;                      /* the numbers of kept arguments and of saved results, which follow
                                                     the edges and have the type opd_value */
    const opdi_derivative *formula;               /* the backward function; if OPDI_NODE_EXTRA is set, a member of the
                                                     node's opdi_extra */
    uint64_t sequence;                            /* the low 44 bits are the node's number, the other bits the number of
                                                     its thread */
    struct opdi_task *task;                       /* in backward: the node's task; in a list of nodes to be freed: the
                                                     next node */
    uint32_t bytes;
    uint16_t noutputs;
    uint8_t saved;                                /* the low 2 bits are an opdi_saved; the other bits count the
                                                     backwards that use the node */
    uint8_t flags;                                /* OPDI_NODE_* */
};
/* Returns the number of dims in the description of a forward result (see opdi_node_meta). */
static inline int opdi_meta_ndim(const int64_t *meta) { return (int)(*meta >> 48 & 0xff); }
static inline opd_scalar_type opdi_meta_dtype(const int64_t *meta) { return (opd_scalar_type)(*meta & 0x7fffffff); }
static inline int opdi_meta_place(const int64_t *meta) { return (int)(*meta >> 32 & 0xffff); }
#define OPDI_META_COLUMN_MAJOR ((int64_t)1 << 56) /* in a result's description: the result was a column-major matrix */
/* Returns true if `tensor` is a contiguous column-major matrix. */
static inline bool opdi_is_column_major(const opd_tensor *tensor) {
    return tensor->ndim == 2 && tensor->dims[2] == 1 && tensor->dims[3] == tensor->dims[0];
}
#define OPDI_NODE_EXTRA 2u       /* the node has an opdi_extra (hooks, a trace) */
#define OPDI_NODE_OPEN 4u        /* fakes: sizes of a forward result depend on data: see opdi_fake.today */
#define OPDI_NODE_SLICES 8u      /* a CopySlices node, which contains the node of an operator that writes a view */
#define OPDI_NODE_INPUT 16u      /* links an input of a transform, with respect to which it differentiates, to what is
                                    outside of the transform */
#define OPDI_SEQUENCE_BITS 44
static inline uint64_t opdi_node_sequence(const opd_node *node) {
    return node->sequence & (((uint64_t)1 << OPDI_SEQUENCE_BITS) - 1);
}
/* The states of a node's saved tensors.  OPDI_SAVED_USER is the unit in which opd_node.saved counts the backwards that
   use the node. */
enum opdi_saved { OPDI_NOTHING_SAVED, OPDI_SAVED, OPDI_SAVED_FREED = 2, OPDI_SAVED_USER = 4 };
static inline opdi_edge *opdi_edges(const opd_node *node) { return (opdi_edge *)(uintptr_t)(node + 1); }
static inline opd_value *opdi_kept(const opd_node *node) {
    return (opd_value *)(void *)(opdi_edges(node) + node->nedges);
}
static inline opd_value *opdi_saved_results(const opd_node *node) { return opdi_kept(node) + node->nkept; }
#define OPDI_LEAF ((uintptr_t)1)
static inline opd_node *opdi_edge_node(uintptr_t vertex) { return (opd_node *)vertex; }
static inline opd_tensor *opdi_edge_leaf(uintptr_t vertex) { return (opd_tensor *)(vertex & ~OPDI_LEAF); }
/* Marks of values that a saved-tensor hook has packed: OPDI_TAG_PACKED is the tag of a packed tensor, and OPDI_PACKED
   is set in the pointer of a packed element of a list. */
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
#define OPDI_NODE_EXTRA_DIMS 4                    /* the number of dims that an in-place write may add to a result */
#define OPDI_WRITTEN_SINCE 1                      /* the field `n` of a saved value that is None because its tensor was
                                                     written after it was saved */
/* A list of references to tensors. */
typedef struct opdi_tensor_array { opd_tensor **tensors; int32_t count; } opdi_tensor_array;
typedef struct opdi_attribute {
    struct opdi_attribute *next;
    opd_value value;
    char *name;
} opdi_attribute;
#define OPDI_MOST_SAVED 190                       /* the most tensors that a context saves.  With 64 arguments and the
                                                     context, its node then has 255 values, the most that a node can
                                                     have. */
struct opd_context {
    opd_autograd_function fn;                     /* all zeros if the context belongs to an operator */
    const char *name;                             /* the name in messages */
    opd_node *node;                               /* the context's node; NULL while forward or set-up runs */
    const opd_value *inputs;                      /* valid while forward or set-up runs */
    opd_value *outputs;                           /* references */
    int32_t ninputs, noutputs, cap;
    int32_t nsaved;
    opdi_tensor_array save, save_forward, dirty, constant;
    opdi_edge *edges;                             /* edges to the inputs; they hold references until the node takes over
                                                     the edges */
    int32_t nedges, bytes;
    int32_t *first;                               /* for a custom function: the index of each input's first edge, and
                                                     nedges at the end */
    opdi_attribute *attributes;
    void *data;
    opd_destroy destroy;
    bool materialize, in_forward, in_setup, in_jvp, cleared;
    struct opdi_layer *layer;                     /* during the call: the vmap layer to which the call belongs, or
                                                     NULL */
    bool amp, amp_on;                             /* set by opd_custom_fwd for opd_custom_bwd */
    opd_backend amp_device;
    opd_scalar_type amp_dtype;
};

//== recording =========================================================================================================

/* Returns true if forward mode has to compute tangents for this call: a level is open, and an argument has a
   tangent. */
static inline bool opdi_call_forward(const opd_call *call) {
    return OPDI_UNLIKELY(call->th->state.forward == OPDI_FORWARD_OPEN) &&
        opdi_level_of(call->args, call->op->nargs) != NULL;
}
/* Runs the call at the keys below Autograd.  Returns 0, or -1 and sets an error. */
static inline int opdi_below_autograd(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}

//== views =============================================================================================================

/* The maximal count of numbers that opdi_slice_pack writes. */
#define OPDI_MAX_SLICE (3 + 3 * OPD_MAX_DIMS)

//== writes ============================================================================================================

struct opd_backward_call {
    opd_node *node;
    opd_node *base;                               /* the CopySlices node that contains `node`, or NULL */
    /* if base is not NULL: returns a saved result with the history that it had after the write, or NULL and sets an
       error */
    opd_tensor *(*result)(struct opd_backward_call *bw, opd_tensor *tensor);
    opd_tensor **grads;                           /* a gradient for each forward result; NULL if it is undefined */
    opd_tensor **out;                             /* a gradient for each edge; owns a reference to each */
    opd_value *fetched;                           /* the node's kept values, unpacked or replaced; NULL if all are used
                                                     as they are */
    bool plain;                                   /* true: complex gradients are not conjugated for the backward
                                                     function */
    bool undefined;                               /* true: the backward function has read a gradient that is
                                                     undefined */
};

//== functions =========================================================================================================

OPDI_COLD_BEGIN
static inline bool opdi_wants_conjugates(const opd_backward_call *bw) {
    for (int i = 0; i < bw->node->noutputs; i++) {
        if (opdi_is_complex(bw->grads[i])) { return true; }
    }
    return false;
}
OPDI_COLD_END

//== formulas ==========================================================================================================

OPDI_INTERNAL int opdi_pass_backward(opd_backward_call *bw);
OPDI_INTERNAL bool opdi_bw_is_column_major(const opd_backward_call *bw, int i);
OPDI_INTERNAL int opdi_refused_backward(opd_backward_call *bw);
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

//== engine ============================================================================================================

typedef struct opdi_task {
    uintptr_t vertex;
    struct opdi_task *next, *up;                  /* next: the next task in the list of all tasks; up: in the search,
                                                     the task from which this task was found */
    int32_t deps, cursor;
    uint16_t ngrads;
    bool seen, needed, captured, counted;
    bool leads;                                   /* true if an edge of the vertex leads to another needed task */
    opd_tensor *grads[1];                         /* ngrads gradients; owns a reference to each */
} opdi_task;
/* A block of memory for tasks.  The tasks lie in the block in the order in which the search finds them, which is often
   the order in which they run. */
typedef struct opdi_task_block { struct opdi_task_block *next; size_t bytes; } opdi_task_block;
/* A gradient that the caller asked for, with its number `index` in the caller's list.  The engine sorts its captures by
   vertex, so that a task finds the captures of its own vertex. */
typedef struct opdi_capture { uintptr_t vertex; uint32_t nr; int index; opd_tensor *grad; } opdi_capture;
typedef struct opdi_engine {
    opdi_task_block *blocks;                      /* memory for tasks, newest block first */
    char *at, *end;
    opdi_task *tasks, **heap, **hash;
    opdi_task *ready;                             /* a ready task that is not in the heap.  In a chain of nodes, only
                                                     one task is ready at a time, and the heap stays empty. */
    int64_t nheap, heap_cap, ntasks, hash_cap;
    opdi_capture *captures;
    int ncaptures;
    /* first: tasks are stored in nodes and leaves, not in the hash table.  retain: saved values are not freed.  create:
       the gradients are recorded.  once: create does not imply retain.  accumulate: gradients are added to leaves.
       restricted: only the captures are computed. */
    bool first, retain, create, once, accumulate, restricted;
    uint32_t serial;                              /* number of the transform layer whose derivative is computed, or 0 */
    int64_t id;                                   /* number of this backward, unique in the process */
    struct opdi_final *finals, **finals_end;      /* finals: functions to call at the end; finals_end: where to append
                                                     the next function */
    struct opdi_gathering *gatherings;            /* gradients that multi-gradient hooks have received so far */
} opdi_engine;
#define OPDI_INLINE_EDGES 16

//== tape ==============================================================================================================

/* A function to call at the end of a backward.  Functions are called in the order in which they were added. */
typedef struct opdi_final {
    struct opdi_final *next;
    int (*fn)(void *user);
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
} opdi_final;

//== hooks =============================================================================================================

/* Kinds of hooks.  TENSOR: gets a tensor's gradient.  PRE, POST: run before and after a node.  ACCUMULATED: runs after
   a leaf has got its gradient.  MULTI: gets the gradients of several tensors. */
enum opdi_hook_kind { OPDI_HOOK_TENSOR, OPDI_HOOK_PRE, OPDI_HOOK_ACCUMULATED, OPDI_HOOK_POST, OPDI_HOOK_MULTI };
typedef struct opdi_hook {
    int32_t refs;                                 /* references: from the list that has the hook, and from code that
                                                     runs the hook; to a multi-hook: from its members */
    int32_t kind, mode;
    uint32_t nr;                                  /* the hook gets the gradient of the node's result with this number */
    int index, nmembers, nlinked;                 /* index: in a member, its index in multi->members; in a multi-hook,
                                                     nmembers: how many members it has; nlinked: how many of them are
                                                     still in the hook lists of their nodes or leaves */
    uint32_t serial;                              /* the number of the transform layer whose backward runs the hook; 0:
                                                     every backward runs it */
    bool removed;
    struct opdi_extra *owner;                     /* the data of the node or leaf that has the hook in its list */
    struct opdi_hook *next, **at;
    uint32_t slot;
    opdi_any_fn fn;
    void *user;
    opd_destroy destroy;
    opd_plugin *plugin;
    struct opdi_hook *multi, **members;           /* multi: in a member, its multi-hook; members: in a multi-hook, its
                                                     members */
    uintptr_t vertex;                             /* in a member: its node or leaf */
} opdi_hook;
/* A box for the gradient of a result after opd_tensor_retain_grad.  Both the tensor and its node hold a reference to
   the box. */
typedef struct opdi_retained_grad {
    int32_t refs;
    uint32_t nr;
    opd_tensor *grad;
    void (*follow)(opd_tensor *tensor);           /* called when the tensor gets another node: moves the box to this
                                                     node */
    struct opdi_extra *owner;
    struct opdi_retained_grad *next, **at;
} opdi_retained_grad;
/* Data that only few nodes or leaves have: hooks, retained gradients, traces. */
typedef struct opdi_extra {
    opdi_derivative formula;                      /* a copy of the node's derivative, to which the node's `formula`
                                                     points */
    opdi_hook *hooks, **last;
    opdi_retained_grad *boxes;
    void **frames;                                /* in anomaly mode: the return addresses of the place where the node
                                                     was recorded */
    int nframes;
    opd_node *parent;                             /* in anomaly mode: the node whose backward function recorded this
                                                     node, or NULL */
} opdi_extra;
/* The gradients that a multi-gradient hook (a hook of several tensors) has received so far in one backward. */
typedef struct opdi_gathering {
    struct opdi_gathering *next;
    opdi_hook *multi;
    int64_t left;                                 /* the number of gradients that have not arrived; -1: the hook was
                                                     called */
    opd_tensor *grads[1];
} opdi_gathering;

//== saved tensors =====================================================================================================

/* A pair of saved-tensor hooks.  The region between opd_saved_hooks_begin and opd_saved_hooks_end holds a reference to
   the pair, and so does each tensor that the hooks have packed. */
typedef struct opdi_packer {
    int32_t refs;
    opd_saved_hooks hooks;
    opd_plugin *plugin;
    struct opdi_packer *outer;
    bool whole;                                   /* true: unpack returns tensors with their tangents, and with the
                                                     history of the tensors in vmap wrappers */
    /* functions of saved_tensors.c, which only programs with hooks contain */
    struct opdi_packed_saved *(*pack)(struct opdi_packer *packer, const opd_node *node, opd_tensor *tensor);
    opd_tensor *(*unpack)(const struct opdi_packed_saved *packed);
    void (*drop)(struct opdi_packed_saved *packed);
} opdi_packer;
/* A saved tensor that hooks have packed.  The other members serve to give the unpacked tensor its history and its
   tangents again. */
typedef struct opdi_packed_saved {
    opdi_packer *packer;
    void *data;
    opd_tensor *like;                             /* the tensor itself, a reference, if it is batched or a level of
                                                     forward mode was open; else NULL.  Its tangents and the history of
                                                     its wrapped value cannot be packed. */
    uint32_t version;                             /* the version that the tensor had when it was packed */
    uint16_t place;                               /* the tensor's device (opdi_place_of) */
    opd_edge edge;                                /* the history of the tensor, a reference; node NULL: the tensor did
                                                     not require grad */
    bool own;                                     /* true: edge.node is the node that saves the tensor, and `edge` holds
                                                     no reference */
    uint8_t ndim;
    int32_t dtype;
    int64_t sizes[1];                             /* the ndim sizes; the unpacked tensor must have the same */
} opdi_packed_saved;
/* A tensor that nodes saved between opd_allow_mutation_begin and opd_allow_mutation_end, with the contents that it had
   then. */
typedef struct opdi_snapshot {
    struct opdi_snapshot *next, **at, *over;      /* next: the next entry in the same row of the hash table; at: the
                                                     address of the pointer that points to this entry; over: the next
                                                     entry in the list that opd_allow_mutation_end makes, of the entries
                                                     whose tensors it drops */
    struct opdi_mutation *mode;
    const void *key;                              /* the tensor's storage; once the tensor is a copy, this entry
                                                     itself */
    opd_tensor *tensor;                           /* a reference; NULL after opd_allow_mutation_end */
    uint32_t version;
    int32_t refs;                                 /* number of references: one from each node that saved the tensor,
                                                     and one from each function that uses the entry */
} opdi_snapshot;
typedef struct opdi_mutation {
    opdi_snapshot **rows;                         /* the rows of a hash table, whose keys are storages; nrows is a power
                                                     of two */
    int64_t nrows, count;
    opdi_packer *packer;
} opdi_mutation;

//== anomaly mode ======================================================================================================

#define OPDI_FRAMES 48

//== forward ===========================================================================================================

/* The thread's state while the tangents of level `level` are computed.  Operators that are called in this state compute
   tangents only in the levels outside of `level`. */
typedef struct opdi_level_frame { opdi_level *level, *dual; opdi_state state; bool tangents; } opdi_level_frame;

//== forward results ===================================================================================================

struct opd_jvp_call {
    const opdi_card *card;                        /* the descriptor of the operator's functional form, or NULL */
    opd_op *op;                                   /* the called operator; NULL if a custom function was called */
    opd_context *ctx;                             /* the context of the custom function */
    const opd_value *args, *rets;
    opd_tensor **inputs, **tangents;              /* one for each edge that a node of the call would have */
    opd_tensor **results, **out;                  /* results: the results, with lists flattened; out: their tangents, in
                                                     the call's scope */
    opd_tensor **held;                            /* while the rule runs: references to the tangents in `out` */
    int ninputs, nresults;
    bool *constant;                               /* true: the result has no derivative; NULL: all have one */
};
/* The functions that compute tangents; opdi_on_forward points to them, and is NULL until the first level is opened.  So
   a lean program that opens no level does not contain them. */
typedef struct opdi_forward_calls {
    int (*kernel)(opd_call *call, const opdi_card *card);
    int (*inplace)(opd_call *call, const opdi_card *card, opd_tensor *self);
    int (*copy)(opd_tensor *copy, opd_tensor *tensor);
    int (*record)(const opdi_derivative *formula, opd_tensor *const *inputs, int ninputs, opd_tensor *const *saved,
                  int nsaved, const opd_value *values, int nvalues, opd_tensor *const *results, int nresults);
    opd_jvp_fn pointwise, linear, backward;       /* opd_jvp_pointwise and so on */
} opdi_forward_calls;

//== anomaly mode ======================================================================================================

/* The functions of anomaly mode; opdi_on_anomaly points to them, and is NULL until the mode is first switched on. */
typedef struct opdi_anomaly_calls {
    int (*trace)(opd_node *node);
    int (*find_nan)(const opd_node *node, opd_tensor *const *out);
    void (*report)(const opd_node *node);
} opdi_anomaly_calls;

//== views =============================================================================================================

/* The functions view_as_real and view_as_complex.  opdi_on_pairs points to them.  It is NULL until an operator is
   registered that makes a real view of a complex tensor, or the reverse. */
typedef struct opdi_pair_views {
    opd_tensor *(*as_real)(opd_tensor *tensor);
    opd_tensor *(*as_complex)(opd_tensor *tensor);
} opdi_pair_views;

//== functions of higher layers that this layer calls ==================================================================

OPDI_INTERNAL int opdi_as_strided_bw(opd_backward_call *bw);
#include "autograd.prototypes.h"
#endif
