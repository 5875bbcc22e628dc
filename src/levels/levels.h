//----------------------------------------------------------------------------------------------------------------------
//  >>levels_h     the stack of layers and batched tensors: types and inline functions for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_LEVELS_H)
#define OPDI_LEVELS_H
#include "../plugins/plugins.h"

//== layers ============================================================================================================

typedef enum opdi_layer_kind { OPDI_LAYER_VMAP, OPDI_LAYER_GRAD, OPDI_LAYER_JVP } opdi_layer_kind;
/* A layer of transforms.  It is stored in a block of the scope stack, whose handle owns it. */
typedef struct opdi_layer {
    opdi_ending ending;                           /* called when the layer's handle leaves the scope stack */
    struct opdi_layer *outer, *inner;
    opdi_thread *th;
    int32_t level, vmaps;                         /* level: from 1; vmaps: vmap layers up to this one */
    opdi_layer_kind kind;
    opd_randomness randomness;
    int64_t size;                                 /* vmap: the number of examples */
    opdi_state around;                            /* the thread's state when the layer was made */
    opdi_state through;                           /* vmap: state of a call before its rule */
    struct opdi_level *forward;                   /* the level of forward mode outside of the layer */
    uint32_t serial, tape;                        /* the layer's number; innermost.tape before it */
    opd_tensor **inputs;                          /* grad, jvp: the inputs of the function, as seen inside */
    int ninputs;
    uint64_t since;                               /* grad: number of the first node recorded inside */
    bool bare;                                    /* vmap: calls bypass autograd, see opdi_untaped_begin */
    bool at_tape;                                 /* vmap: a call is at the autograd kernels inside */
} opdi_layer;

#if defined(OPDI_CORE)
#define OPDI_FRONT_BIT OPD_BIT_OF(OPD_F_DYNAMIC_LAYER_FRONT)
/* Makes `layer` the thread's innermost layer, which sees calls first.  NULL means that there is no layer. */
static inline void opdi_layer_set(opdi_thread *thread, opdi_layer *layer) {
    thread->innermost.layer = layer;
    if (layer && layer->vmaps) { thread->state.include |= OPDI_FRONT_BIT; }
    else { thread->state.include &= ~OPDI_FRONT_BIT; }
}
/* Returns true if the value of the batched `tensor` has not been replaced since the tensor was made. */
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
/* Checks that `tensor`, which is batched at the level of `layer`, belongs to that layer and has its number of examples.
   Returns 0, or -1 and sets an error. */
static inline int opdi_batch_check(opd_tensor *tensor, const opdi_layer *layer) {
    const opdi_batched *batched = opdi_batched_of(tensor);
    if (OPDI_UNLIKELY(batched->serial != layer->serial)) { return opdi_batch_ended(tensor); }
    if (OPDI_UNLIKELY(!opdi_batch_fits(tensor)) && opdi_batch_refit(tensor)) { return -1; }
    if (OPDI_LIKELY(batched->value->dims[batched->dim] == layer->size)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "a batched tensor inside vmap now has %lld examples, not %lld: it was given "
                    "other data during vmap (level %d). Change it before vmap",
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

