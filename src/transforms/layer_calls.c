#include "transforms.h"

//== calls through the layers ==========================================================================================
//
//  The path of a call while a vmap layer is open.  An indented function is called by the function above it.
//       opdi_front_kernel         the kernel at DynamicLayerFront, above all keys: finds the layer of the call
//         opdi_vmap_call            if autograd and forward mode inside of that layer are not involved
//         opdi_call_again           otherwise: runs the call again, at the autograd kernels inside of that layer
//           opdi_back_kernel          the kernel at DynamicLayerBack, below Autograd: calls opdi_vmap_call
//         opdi_call_again           if the call has no vmap layer: runs it as an ordinary call
//       opdi_vmap_call            calls opdi_rule_begin, which activates the outer layers; the rule; then opdi_rule_end
//                                 and opdi_batch_tie
//         opdi_batched_rule         runs the rule in the operator descriptor
//           opdi_batch_random         if the operator is random
//           opdi_batch_derived        if the operator is an in-place or out= form
//           opd_batch_view            if there is no rule, and the operator is a view
//           opd_batch_decompose       if there is no rule: runs a composite kernel, or calls opd_batch_loop
//       opdi_batched_kernel       the kernel at FuncTorchBatched: reports a tensor that has escaped from its vmap

/* Runs the call again after the layers have handled it: below the layers, or, if `back` is true, at the autograd
   kernels of a vmap layer.  Returns 0, or -1 and sets an error. */
static int opdi_call_again(opd_call *call, bool back) {
    opdi_state *state = &call->th->state;
    const uint64_t include = state->include, allow = state->allow;
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    opdi_arg_keys sets;
    opd_call other;
    if (!table && !(table = opdi_table_make(call->op))) { return -1; }
    if (opdi_arg_keys_of(&sets, call->op, call->args) < 0) { return -1; }
    other.op = call->op;
    other.args = call->args;
    other.rets = call->rets;
    other.targets = NULL;
    state->include = include & ~OPDI_FRONT_BIT;
    if (back) { opdi_back_keys(state); }
    const opdi_slot *slot = opdi_find_slot(call->th, &other, table, &sets);
    state->include = include;                     /* operators that the kernel calls are handled by the layers, too */
    state->allow = allow;
    int rc = opdi_invoke(call->th, &other, slot);
    call->filled = other.filled;
    call->owned = other.owned;
    call->cursor = other.cursor;
    return rc;
}

/* If a result shares the memory of an argument, makes it a view of the argument for autograd in the inner layers,
   except if the operator is detach. */
static void opdi_batch_tie(opd_call *call) {
    const opd_op *op = call->op;
    const opdi_card *card = OPDI_ACQUIRE(&op->card);
    if (card && card->desc.any == opdi_detach_kernel) { return; }
    for (int i = 0; i < op->nrets; i++) {
        const opd_value *ret = &call->rets[i];
        if (op->ret_alias[i] >= 0 || (ret->tag != OPD_TAG_TENSOR && ret->tag != OPD_TAG_TENSORS)) { continue; }
        for (int32_t k = 0; k < (ret->tag == OPD_TAG_TENSORS ? ret->n : 1); k++) {
            opd_tensor *tensor = ret->tag == OPD_TAG_TENSORS ? ret->u.tensors[k] : ret->u.t;
            uint64_t mask = tensor && (tensor->flags & (OPDI_BATCHED | OPDI_IS_VIEW)) == OPDI_BATCHED
                ? op->tensor_args : 0;
            for (; mask; mask &= mask - 1) {
                const opd_value *value = &call->args[opdi_low_bit(mask)];
                if (value->tag != OPD_TAG_TENSOR || value->u.t == tensor || value->u.t->storage != tensor->storage) {
                    continue;
                }
                opdi_view_tie(tensor, value->u.t, call->th->state.no_grad ? OPDI_VIEW_NO_GRAD : OPDI_VIEW_DEFAULT);
                break;
            }
        }
    }
}

/* Runs the batching rule of a call for a vmap layer.  Returns 0, or -1 and sets an error. */
static int opdi_vmap_call(opd_call *call, opdi_layer *layer) {
    opdi_thread *thread = call->th;
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    opdi_rule_frame was;
    if (!table && !(table = opdi_table_make(call->op))) { return -1; }
    if (opdi_batch_check_all(call->op, call->args, layer)) { return -1; }
    opdi_rule_begin(thread, layer, &was);
    int rc = table->slots[OPD_F_BATCHED].fn == opdi_batched_fallback ? opdi_batched_rule(call)
        : opdi_call_slot(call, &table->slots[OPD_F_BATCHED], OPD_KEY_OF(OPD_F_BATCHED));
    opdi_rule_end(thread, &was);
    if (rc == 0 && layer->inner) { opdi_batch_tie(call); }
    return rc;
}

/* Returns the innermost vmap layer that takes part in the call: an argument is batched at the layer, or the call draws
   random numbers.  Returns NULL if there is none. */
static opdi_layer *opdi_layer_of(const opd_call *call) {
    opdi_layer *layer = call->th->innermost.layer;
    while (layer && (layer->kind != OPDI_LAYER_VMAP || (!opdi_any_batched(call->op, call->args, layer->level) &&
                                                        !opdi_call_is_random(call->op, call->args)))) {
        layer = layer->outer;
    }
    return layer;
}

/* Returns true if a level of forward mode was opened inside of a layer. */
static inline bool opdi_level_inside(const struct opdi_level *level, const opdi_layer *layer) {
    return level && level->layer > layer->level;
}

/* The kernel at DynamicLayerFront, above all keys.  Passes the call to the autograd kernels inside of its vmap layer,
   or directly to the rule of that layer.  Without a vmap layer, runs the call as usual, because all layers share one
   autograd graph.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_front_kernel(opd_call *call) {
    opdi_thread *thread = call->th;
    opdi_layer *const rule = thread->innermost.rule, *const layer = opdi_layer_of(call),
        *innermost = thread->innermost.layer;
    const int32_t floor = thread->innermost.floor;
    opdi_state through;
    bool at_tape = false;
    while (innermost != layer && innermost->kind == OPDI_LAYER_VMAP) { innermost = innermost->outer; }
    if (layer && innermost == layer && (layer->bare || (!opdi_level_inside(thread->innermost.level, layer) &&
                                                        !opdi_level_inside(thread->innermost.dual, layer)))) {
        return opdi_vmap_call(call, layer);
    }
    if (layer) {
        through = layer->through;
        layer->through = thread->state;           /* saves the modes for opdi_back_kernel */
        if ((at_tape = layer->at_tape)) { layer->through.allow |= through.allow & OPDI_AUTOGRAD_BITS; }
        layer->at_tape = true;
    }
    thread->innermost.rule = NULL;
    opdi_forward_at(thread, layer ? layer->level : 0);
    int rc = opdi_call_again(call, layer != NULL);
    thread->innermost.rule = rule;
    thread->innermost.floor = floor;
    if (layer) {
        layer->through = through;
        layer->at_tape = at_tape;
    }
    return rc;
}

/* The kernel at DynamicLayerBack, below the autograd keys: runs the batching rule of the call for its vmap layer.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_back_kernel(opd_call *call) {
    opdi_layer *layer = opdi_layer_of(call);
    const uint64_t allow = call->th->state.allow | ~OPD_BIT_OF(OPD_F_AUTOCAST);       /* the arguments are already
                                                                                         cast */
    if (!layer) { return opd_fail(OPD_ERROR_KERNEL, "%s: the transforms around this call have ended", call->op->name); }
    call->th->state = layer->through;
    call->th->state.allow &= allow;
    return opdi_vmap_call(call, layer);
}

OPDI_COLD_BEGIN

/* Checks the `count` outputs `out` of the function `name`, which the transform `who` has called.  Returns `count`, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_outputs_check(int count, opd_tensor *const *out, const char *who, const char *name) {
    if (count < 0 || !opd_ok()) {
        return !opd_ok() ? -1
            : opd_fail(OPD_ERROR_USER, "%s: %s failed without setting an error (opd_fail)", who, name);
    }
    if (count > OPD_TRANSFORM_OUTPUTS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returned %d outputs, but at most %d are allowed", who, name, count,
                        OPD_TRANSFORM_OUTPUTS);
    }
    for (int i = 0; i < count; i++) {
        if (!out[i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: `%s` must only return Tensors, got NULL as output %d", who, name,
                            i);
        }
    }
    return opdi_any_dead_output(out, count, who) ? -1 : count;
}

OPDI_COLD_END

/* Lets calls reach the kernels and rules of vmap: see src/dispatch/late_kernels.c. */
OPDI_INTERNAL void opdi_vmap_reach(void) {
    static const opd_kernel kernels[] = {         /* OPDI_LATE_FRONT to OPDI_LATE_UNFIT */
        opdi_front_kernel, opdi_back_kernel, opdi_batched_kernel, opdi_rule_pointwise, opdi_rule_shift_dim,
        opdi_rule_view, opdi_rule_decompose, opdi_rule_factory, opdi_rule_loop, opdi_rule_unfit};
    opdi_late_fill(OPDI_LATE_FRONT, kernels, (int)(sizeof kernels / sizeof *kernels));
}
