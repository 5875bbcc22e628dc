//----------------------------------------------------------------------------------------------------------------------
//  >>levels_h     the stack of layers and batched tensors: types and inline functions for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_LEVELS_H)
#define OPDI_LEVELS_H
#include "../plugins/plugins.h"

//== layers ============================================================================================================

typedef enum opdi_layer_kind { OPDI_LAYER_VMAP, OPDI_LAYER_GRAD, OPDI_LAYER_JVP } opdi_layer_kind;
/* A layer of transforms, stored in a block of the scope stack.  The handle of the block owns the layer. */
typedef struct opdi_layer {
    opdi_ending ending;                           /* called when the layer's handle leaves the scope stack */
    struct opdi_layer *outer, *inner;
    opdi_thread *th;
    int32_t level, vmaps;                         /* level: from 1; vmaps: number of vmap layers up to this one */
    opdi_layer_kind kind;
    opd_randomness randomness;
    int64_t size;                                 /* vmap: the number of examples */
    opdi_state around;                            /* the thread's state when the layer was made */
    opdi_state through;                           /* vmap: the thread's state in a call, before the batching rule */
    struct opdi_level *forward;                   /* the level of forward mode outside of the layer */
    uint32_t serial, tape;                        /* serial: the layer's number; tape: innermost.tape before the
                                                     layer */
    opd_tensor **inputs;                          /* grad, jvp: the inputs of the function, as seen inside */
    int ninputs;
    uint64_t since;                               /* grad: number of the first node recorded inside */
    bool bare;                                    /* vmap: calls bypass autograd, see opdi_untaped_begin */
    bool at_tape;                                 /* vmap: a call inside the layer is at the autograd kernels */
    int (*compute)(opd_context *ctx);             /* vmap: opdi_function_compute */
} opdi_layer;

#define OPDI_FRONT_BIT OPD_BIT_OF(OPD_F_DYNAMIC_LAYER_FRONT)
/* Makes `layer` the thread's innermost layer, which sees calls first.  NULL means that there is no layer. */
static inline void opdi_layer_set(opdi_thread *thread, opdi_layer *layer) {
    thread->innermost.layer = layer;
    if (layer && layer->vmaps) { thread->state.include |= OPDI_FRONT_BIT; }
    else { thread->state.include &= ~OPDI_FRONT_BIT; }
}
/* Lets only the forward-mode levels inside layer number `floor` compute tangents.  If `floor` is 0, all levels do. */
static inline void opdi_forward_at(opdi_thread *thread, int32_t floor) {
    const bool open = thread->innermost.level && thread->innermost.level->layer > floor;
    thread->innermost.floor = floor;
    thread->state.forward = (int16_t)((thread->state.forward & OPDI_FORWARD_OFF) | (open ? OPDI_FORWARD_OPEN : 0));
}
/* The thread's state before a batching rule.  A rule runs in the layers outside of its vmap layer, and in their
   modes. */
typedef struct opdi_rule_frame {
    opdi_layer *layer, *rule;
    struct opdi_level *level;
    opdi_state state;
    int32_t floor;
} opdi_rule_frame;
static inline void opdi_rule_begin(opdi_thread *thread, opdi_layer *layer, opdi_rule_frame *was) {
    was->layer = thread->innermost.layer;
    was->rule = thread->innermost.rule;
    was->level = thread->innermost.level;
    was->state = thread->state;
    was->floor = thread->innermost.floor;
    for (const opdi_layer *inner = thread->innermost.layer; inner != layer; inner = inner->outer) {
        if (inner->kind == OPDI_LAYER_GRAD && inner->around.no_grad) { thread->state.no_grad = 1; }
        if (inner->kind == OPDI_LAYER_JVP) { thread->state.forward |= inner->around.forward & OPDI_FORWARD_OFF; }
    }
    thread->innermost.rule = layer;
    thread->innermost.level = layer->forward;
    opdi_forward_at(thread, 0);
    opdi_layer_set(thread, layer->outer);
}
static inline void opdi_rule_end(opdi_thread *thread, const opdi_rule_frame *was) {
    thread->innermost.layer = was->layer;
    thread->innermost.rule = was->rule;
    thread->innermost.level = was->level;
    thread->state = was->state;
    thread->innermost.floor = was->floor;
}

/* If the number of examples, dim `dim` of `value`, depends on data and is another one now (see opdi_marks), gives the
   layer this number and returns true. */
static inline bool opdi_layer_resized(opdi_layer *layer, const opd_tensor *value, int dim) {
    if (!(value->functionality & OPD_BIT_OF(OPDI_SIZES_KEY))) { return false; }
    layer->size = value->dims[dim];
    return true;
}
OPDI_INTERNAL int opdi_batch_ended(const opd_tensor *tensor);
/* Checks that `tensor`, which is batched at the level of `layer`, belongs to that layer and has its number of examples.
   Returns 0, or -1 and sets an error. */
static inline int opdi_batch_check(opd_tensor *tensor, opdi_layer *layer) {
    const opdi_batched *batched = opdi_batched_of(tensor);
    if (OPDI_UNLIKELY(batched->serial != layer->serial)) { return opdi_batch_ended(tensor); }
    if (OPDI_UNLIKELY(!opdi_batch_fits(tensor)) && opdi_batch_refit(tensor)) { return -1; }
    if (OPDI_LIKELY(batched->value->dims[batched->dim] == layer->size) ||
        opdi_layer_resized(layer, batched->value, batched->dim)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "a batched tensor inside vmap now has %lld examples, not %lld: it was given "
                    "other data during vmap (level %d). Change it before vmap",
                    (long long)batched->value->dims[batched->dim], (long long)layer->size, (int)batched->level);
}
static inline bool opdi_batched_at(const opd_tensor *tensor, int level) {
    return tensor && (tensor->flags & OPDI_BATCHED) && opdi_batched_of(tensor)->level == level;
}
#include "levels.prototypes.h"
#endif

