//----------------------------------------------------------------------------------------------------------------------
//  >>levels_h     the stack of layers and batched tensors: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_LEVELS_H)
#define OPDI_LEVELS_H
#include "../plugins/plugins.h"

//== layers ============================================================================================================

typedef enum opdi_layer_kind { OPDI_LAYER_VMAP, OPDI_LAYER_GRAD, OPDI_LAYER_JVP } opdi_layer_kind;
/* A layer of transforms.  It lives in a block of the scope stack, whose handle keeps it. */
typedef struct opdi_layer {
    opdi_ending ending;                           /* when its handle leaves the scope stack */
    struct opdi_layer *outer, *inner;
    opdi_thread *th;
    int32_t level, vmaps;                         /* from 1; vmap layers from here outwards */
    opdi_layer_kind kind;
    opd_randomness randomness;
    int64_t size;                                 /* vmap: how many examples */
    opdi_state around;                            /* the thread's state when it was entered */
    opdi_state through;                           /* vmap: when the call came that a tape inside has before its rule */
    struct opdi_level *forward;                   /* the level of forward mode around it */
    uint32_t serial, tape;                        /* its number; th->innermost.tape before */
    opd_tensor **inputs;                          /* grad, jvp: of the function inside */
    int ninputs;
    uint64_t since;                               /* grad: the number of the first node inside */
    bool bare;                                    /* vmap: calls pass by the tape, see opdi_untaped_begin */
    bool at_tape;                                 /* vmap: a call is at the tape inside it */
} opdi_layer;

#if defined(OPDI_CORE)
#define OPDI_FRONT_BIT OPD_BIT_OF(OPD_F_DYNAMIC_LAYER_FRONT)
/* Makes `layer` the one that calls on this thread go to first; NULL: none. */
static inline void opdi_layer_set(opdi_thread *thread, opdi_layer *layer) {
    thread->innermost.layer = layer;
    if (layer && layer->vmaps) { thread->state.include |= OPDI_FRONT_BIT; }
    else { thread->state.include &= ~OPDI_FRONT_BIT; }
}
/* True if the value that batched tensor holds is what it was when the tensor was made. */
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

OPDI_NOINLINE OPDI_INTERNAL int opdi_batch_refit(opd_tensor *tensor);
OPDI_INTERNAL int opdi_batch_ended(const opd_tensor *tensor);
/* Checks that tensor, which is batched at `layer`'s level, is of that layer and has its examples; 0, or -1 with
   an error. */
static inline int opdi_batch_check(opd_tensor *tensor, const opdi_layer *layer) {
    const opdi_batched *batched = opdi_batched_of(tensor);
    if (OPDI_UNLIKELY(batched->serial != layer->serial)) { return opdi_batch_ended(tensor); }
    if (OPDI_UNLIKELY(!opdi_batch_fits(tensor)) && opdi_batch_refit(tensor)) { return -1; }
    if (OPDI_LIKELY(batched->value->dims[batched->dim] == layer->size)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "a tensor inside vmap has %lld examples by now, not %lld: it was given other "
                    "data after it was wrapped (at level %d). Do that before",
                    (long long)batched->value->dims[batched->dim], (long long)layer->size, (int)batched->level);
}
static inline bool opdi_batched_at(const opd_tensor *tensor, int level) {
    return tensor && (tensor->flags & OPDI_BATCHED) && opdi_batched_of(tensor)->level == level;
}
#endif

//== functions of higher layers that this layer calls ==================================================================

#if defined(OPDI_CORE)
OPDI_INTERNAL void opdi_level_end(opdi_thread *thread);
#endif
#include "levels.prototypes.h"
#endif

