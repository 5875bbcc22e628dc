#include "autograd.h"

//== which tensors have a history ======================================================================================
//
//  A tensor requires grad if backward has to compute a gradient for it.  Its history is the node that recorded the call
//  that made it.  A leaf has no history.

/* Returns true if tensor requires grad, or is a view whose base does. */
OPDI_INTERNAL bool opdi_requires_grad(const opd_tensor *tensor) {
    return tensor &&
        ((tensor->flags & OPDI_REQUIRES_GRAD) ||
         ((tensor->flags & OPDI_IS_VIEW) && (opdi_view_record_of(tensor)->base->flags & OPDI_REQUIRES_GRAD)));
}
/* Returns true if `tensor`, or a tensor inside its vmap wrappers, requires grad. */
OPDI_INTERNAL bool opdi_tracked(const opd_tensor *tensor) {
    for (; tensor && (tensor->flags & OPDI_BATCHED); tensor = opdi_batched_of(tensor)->value) {
        if (opdi_requires_grad(tensor)) { return true; }
    }
    return opdi_requires_grad(tensor);
}
bool opd_tensor_requires_grad(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_requires_grad") && opdi_requires_grad(tensor);
}

bool opd_grad_mode_enabled(void) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    return !thread->state.no_grad;
}
bool opd_grad_mode_set(bool on) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    bool was = !thread->state.no_grad;
    thread->state.no_grad = !on;
    return was;
}

/* Returns 0 if a call is not recorded.  Otherwise returns the combined flags of its tensor arguments, with
   OPDI_REQUIRES_GRAD. */
OPDI_NOINLINE OPDI_INTERNAL unsigned opdi_call_flags(const opd_call *call) {
    opdi_arg_keys sets;
    if (call->th->state.no_grad || opdi_arg_keys_of(&sets, call->op, call->args) < 0) { return 0; }
    if (OPDI_UNLIKELY((sets.flags & (OPDI_IS_VIEW | OPDI_REQUIRES_GRAD)) == OPDI_IS_VIEW) &&
        opdi_views_require_grad(call->op, call->args)) { return sets.flags | OPDI_REQUIRES_GRAD; }
    return sets.flags & OPDI_REQUIRES_GRAD ? sets.flags : 0;
}
/* Brings the histories of the views among a call's arguments up to date.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_refresh_args(const opd_call *call) {
    for (uint64_t mask = call->op->tensor_args | call->op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR && opdi_refresh(value->u.t)) { return -1; }
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] && opdi_refresh(value->u.tensors[k])) { return -1; }
        }
    }
    return 0;
}
bool opd_call_requires_grad(const opd_call *call) {
    return opdi_call_flags(call) != 0 || opdi_call_forward(call);
}
/* Returns true if tensor lies in memory of a backend, and no layer but autograd (no transform, no tracing) handles its
   operators. */
OPDI_INTERNAL bool opdi_in_memory_of(const opd_tensor *tensor, int backend) {
    return tensor && tensor->backend == backend && tensor->data && !(tensor->functionality & ~OPDI_TENSOR_KEYS) &&
        !(tensor->flags & (OPDI_LAZY | OPDI_STORED | OPDI_BATCHED | OPDI_TRACED | OPDI_WRAPPED));
}
OPDI_INTERNAL bool opdi_in_memory(const opd_tensor *tensor) { return opdi_in_memory_of(tensor, OPD_CPU); }
OPDI_INTERNAL bool opdi_in_cuda(const opd_tensor *tensor) { return opdi_in_memory_of(tensor, OPD_CUDA); }
/* Returns true if no layer but autograd, and maybe autocast or observers, handles operators on this thread. */
OPDI_INTERNAL bool opdi_only_autocast_follows(void) {
    const opdi_thread *const thread = opdi_self();
    const uint64_t below = OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW);
    const uint64_t hidden = (thread->state.no_grad ? OPDI_AUTOGRAD_BITS : 0) | OPD_BIT_OF(OPD_F_AUTOCAST);
    return !((thread->state.include ^ OPDI_DEFAULT_INCLUDE) & ~below) &&
        !((thread->state.allow ^ OPDI_DEFAULT_ALLOW) & ~hidden) && !(thread->state.forward & OPDI_FORWARD_OPEN) &&
        !thread->innermost.layer && !thread->innermost.tracer && !thread->innermost.fake && !thread->poison;
}
/* Returns true if no layer but autograd handles operators on this thread, and nothing observes them. */
OPDI_INTERNAL bool opdi_nothing_follows(void) {
    const opdi_thread *const thread = opdi_self();
    return !thread->state.autocast && opdi_only_autocast_follows() && !OPDI_LOAD(&thread->observed) &&
        !((thread->state.allow ^ OPDI_DEFAULT_ALLOW) & OPD_BIT_OF(OPD_F_AUTOCAST));
}
OPDI_INTERNAL bool opdi_arg_requires_grad(const opd_value *value) {
    if (value->tag == OPD_TAG_TENSOR) { return (value->u.t->flags & OPDI_REQUIRES_GRAD) != 0; }
    for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
        if (value->u.tensors[k] && (value->u.tensors[k]->flags & OPDI_REQUIRES_GRAD)) { return true; }
    }
    return false;
}

/* Returns true if `tensor` is an input with respect to which a transform differentiates a function (a leaf inside the
   function) and that also has a history outside the function. */
OPDI_INTERNAL bool opdi_diff_is_input(const opd_tensor *tensor) {
    return tensor->grad_fn && (tensor->grad_fn->flags & OPDI_NODE_INPUT);
}
/* Returns true if `node` (a node, or a leaf as a vertex with OPDI_LEAF) belongs to the autograd graph of a grad layer:
   it is an input of the layer, or a node recorded inside the layer.  Other leaves do not belong to it. */
static bool opdi_layer_has(const opdi_layer *layer, const opd_node *node) {
    const uintptr_t vertex = (uintptr_t)node;     /* a leaf's vertex has bit 0 set */
    for (int i = 0; i < layer->ninputs; i++) {
        const opd_tensor *tensor = layer->inputs[i];
        if (tensor && (tensor->grad_fn ? tensor->grad_fn == node : vertex == ((uintptr_t)tensor | OPDI_LEAF))) {
            return tensor->grad_fn ? opdi_diff_is_input(tensor) : tensor->output_nr == layer->serial;
        }
    }
    return !(vertex & OPDI_LEAF) && opdi_node_sequence(node) >= layer->since &&
        node->sequence >> OPDI_SEQUENCE_BITS == opdi_thread_number(layer->th);
}
/* Returns the number of the innermost grad layer to whose autograd graph `node` belongs; if `node` is NULL, of the
   innermost grad layer.  Returns 0 if there is none. */
OPDI_INTERNAL uint32_t opdi_serial_of(const opd_node *node) {
    const opdi_layer *layer = opdi_self()->innermost.layer;
    while (layer && (layer->kind != OPDI_LAYER_GRAD || (node && !opdi_layer_has(layer, node)))) {
        layer = layer->outer;
    }
    return layer ? layer->serial : 0;
}

//== copies without history ============================================================================================

/* Returns a copy of `tensor` without history.  The copy is recorded in the graph that is being traced.  Returns a
   reference, or NULL. */
static opd_tensor *opdi_traced_clone(opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    const opdi_state state = thread->state;
    thread->state.allow = (state.allow & ~OPDI_AUTOGRAD_BITS) | OPD_BIT_OF(OPD_F_TRACER);
    thread->state.forward |= OPDI_FORWARD_OFF;
    opd_tensor *copy = opd_clone(tensor);
    thread->state = state;
    return copy ? opdi_keep(copy) : NULL;
}
/* Returns a reference to a copy of `tensor` without history, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_bare_copy(const opd_tensor *tensor) {
    if (tensor->flags & OPDI_BATCHED) { return opdi_batch_clone(tensor); }
    if (OPDI_UNLIKELY(tensor->flags & OPDI_TRACED)) { return opdi_traced_clone((opd_tensor *)(uintptr_t)tensor); }
    opd_tensor *copy = opdi_tensor_make(tensor->dims, NULL, tensor->ndim, (opd_scalar_type)tensor->dtype,
                                        opdi_place_of(tensor));
    if (copy && opdi_copy(copy, tensor)) {
        opdi_drop(copy);
        return NULL;
    }
    return copy;
}
