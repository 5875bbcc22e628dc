#include "levels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>layers       the stack of layers of transforms, batched tensors
//
//  A thread has a stack of layers; the innermost layer sees a call first.  A vmap layer unwraps the tensors that are
//  batched at its level and runs the operator's batching rule.  The operators that the rule calls are seen by the outer
//  layers.  A grad or jvp layer does not wrap tensors: autograd records the tensors as they are in this layer.  So only
//  calls in which a vmap layer takes part pass through this file, by two keys.  DynamicLayerFront, above all other
//  keys, selects the layer.  DynamicLayerBack, below the autograd keys, passes the call to the outer layers.  The
//  kernels at both keys are in >>batching.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL opd_tensor *opdi_batch_front_arg(opd_call *call, int i);

//== the stack of layers ===============================================================================================

/* Removes the layer `what` from its thread's stack of layers.  Called when the layer's handle leaves the scope stack.
   The layers inside of this layer have ended before. */
static void opdi_layer_release(void *what) {
    opdi_layer *layer = (opdi_layer *)what;
    opdi_thread *thread = layer->th;
    if (layer->outer) { layer->outer->inner = NULL; }
    opdi_layer_set(thread, layer->outer);
    thread->innermost.serial = layer->outer ? layer->outer->serial : 0;
    thread->innermost.tape = layer->tape;
    opdi_levels_end(thread, layer->forward);
}

/* Makes a new innermost layer, which belongs to the current scope.  `size` and `randomness` are those of a vmap
   layer.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opdi_layer *opdi_layer_push(opdi_layer_kind kind, int64_t size, opd_randomness randomness) {
    opdi_thread *thread = opdi_self();
    if (!opd_ok()) { return NULL; }
    if (thread->innermost.layer && thread->innermost.layer->level == OPDI_MAX_LAYERS) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "transforms are nested deeper than %d", OPDI_MAX_LAYERS);
        return NULL;
    }
    opdi_layer *layer = (opdi_layer *)opdi_scope_alloc(sizeof *layer);
    if (!layer) { return NULL; }
    ((opdi_block *)(void *)layer - 1)->bytes |= OPDI_BLOCK_ENDS;
    layer->ending.end = opdi_layer_release;
    layer->ending.what = layer;
    layer->outer = thread->innermost.layer;
    layer->inner = NULL;
    layer->th = thread;
    layer->level = thread->innermost.layer ? thread->innermost.layer->level + 1 : 1;
    layer->vmaps = (thread->innermost.layer ? thread->innermost.layer->vmaps : 0) + (kind == OPDI_LAYER_VMAP);
    layer->kind = kind;
    layer->randomness = randomness;
    layer->size = size;
    layer->around = thread->state;
    layer->forward = thread->innermost.level;
    layer->serial = ++thread->innermost.serials ? thread->innermost.serials : ++thread->innermost.serials;
    layer->tape = thread->innermost.tape;
    layer->inputs = NULL;
    layer->ninputs = 0;
    layer->since = 0;
    layer->bare = false;
    layer->at_tape = false;
    thread->innermost.serial = layer->serial;
    if (kind != OPDI_LAYER_VMAP) { thread->innermost.tape = layer->serial; }
    if (thread->innermost.layer) { thread->innermost.layer->inner = layer; }
    opdi_layer_set(thread, layer);
    return layer;
}

/* Refuses a write into `tensor` if the function of the innermost grad or jvp layer has neither made it nor received
   it as an input.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_is_captured(opdi_thread *thread, const opd_tensor *tensor) {
    const opdi_layer *layer = thread->innermost.layer ? thread->innermost.layer : thread->innermost.rule;
    const uint32_t born = tensor->storage->born;
    if (thread->innermost.dual || (born && (int32_t)(born - thread->innermost.tape) >= 0)) { return 0; }
    while (layer && layer->inner) { layer = layer->inner; }
    while (layer && layer->serial != thread->innermost.tape) { layer = layer->outer; }
    for (int i = 0; layer && i < layer->ninputs; i++) {
        if (layer->inputs[i] && layer->inputs[i]->storage == tensor->storage) { return 0; }
    }
    return opd_fail(OPD_ERROR_AUTOGRAD, "During a grad (vjp, jvp, grad, etc) transform, the function provided "
                    "attempted to call in-place operation (%s) that would mutate a captured Tensor. This is not "
                    "supported; please rewrite the function being transformed to explicitly accept the mutated "
                    "Tensor(s) as inputs.", thread->current ? thread->current->op->name : "");
}

/* Ends the innermost layer: removes its handle from the scope stack.  The handle need not be the topmost. */
OPDI_INTERNAL void opdi_layer_pop(opdi_layer *layer) {
    opdi_thread *thread = layer->th;
    const uintptr_t h = (uintptr_t)((opdi_block *)(void *)layer - 1) | OPDI_HANDLE_BLOCK;
    int64_t i = thread->top;
    while (i-- > 0) {
        if (thread->handles[i] == h) {
            opdi_scope_remove(thread, i, i + 1);
            return;
        }
    }
}

/* Ends the layer `level`, and all layers inside of it that were left open. */
OPDI_INTERNAL void opdi_layers_end(int level) {
    opdi_thread *thread = opdi_self();
    while (thread->innermost.layer && thread->innermost.layer->level >= level) {
        opdi_layer_pop(thread->innermost.layer);
    }
}

/* Ends the layer visit->user of a visit that an exception or a longjmp has left, and all layers inside of it. */
OPDI_INTERNAL void opdi_layers_leave(opdi_visit *visit) {
    const opdi_layer *layer = opdi_self()->innermost.layer;
    while (layer && layer != visit->user) { layer = layer->outer; }
    if (!layer) { return; }
    visit->innermost.level = layer->forward;      /* levels of the layer end with it */
    opdi_layers_end(layer->level);
}

int opd_transform_depth(void) {
    const opdi_thread *thread = opdi_self();
    return thread->innermost.layer ? thread->innermost.layer->level : 0;
}
bool opd_tensor_is_batched(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_is_batched") && (tensor->flags & OPDI_BATCHED);
}

//== batched tensors ===================================================================================================

OPDI_COLD_BEGIN
/* Sets the error that the layer of a batched tensor has ended.  Returns -1. */
OPDI_INTERNAL int opdi_batch_ended(const opd_tensor *tensor) {
    return opd_fail(OPD_ERROR_ARGUMENT, "a tensor has escaped from inside a function being vmapped: it is batched at "
                    "level %d, by a vmap that has ended. Use the outputs of the function instead",
                    (int)opdi_batched_of(tensor)->level);
}
/* Updates each wrapper of the batched `tensor` whose value was replaced (see opdi_batch_refit).  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_batch_fit(const opd_tensor *tensor) {
    for (; tensor->flags & OPDI_BATCHED; tensor = opdi_batched_of(tensor)->value) {
        if (!opdi_batch_fits(tensor) && opdi_batch_refit((opd_tensor *)(uintptr_t)tensor)) { return -1; }
    }
    return 0;
}
/* Makes calls bypass autograd inside of the layer at which `tensor` is batched, until opdi_untaped_end.  The results of
   these calls have a history only in the outer layers.  Saves the previous state in *was.  Returns 0.  On failure,
   returns -1, sets an error and changes nothing. */
OPDI_INTERNAL int opdi_untaped_begin(const opd_tensor *tensor, opdi_rule_frame *was) {
    opdi_thread *thread = opdi_self();
    opdi_layer *layer = thread->innermost.layer;
    while (layer && layer->level != opdi_batched_of(tensor)->level) { layer = layer->outer; }
    if (!layer) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a tensor has escaped from inside a function being vmapped: it is batched "
                        "at level %d, which has ended", (int)opdi_batched_of(tensor)->level);
    }
    opdi_rule_begin(thread, layer, was);
    opdi_layer_set(thread, layer);
    thread->innermost.rule = NULL;
    layer->bare = true;
    return 0;
}
OPDI_INTERNAL void opdi_untaped_end(const opdi_rule_frame *was) {
    opdi_thread *thread = opdi_self();
    thread->innermost.layer->bare = false;
    opdi_rule_end(thread, was);
}
/* Returns a new reference to a copy of the batched `tensor` without history.  Returns NULL and sets an error on
   failure. */
OPDI_INTERNAL opd_tensor *opdi_batch_clone(const opd_tensor *tensor) {
    opdi_rule_frame was;
    if (opdi_untaped_begin(tensor, &was)) { return NULL; }
    opd_tensor *copy = opd_clone((opd_tensor *)(uintptr_t)tensor);
    opdi_untaped_end(&was);
    return copy ? opdi_keep(copy) : NULL;
}
OPDI_COLD_END

/* Calls opdi_batch_check for the tensors of a call that are batched at `layer`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_check_all(const opd_op *op, const opd_value *args, opdi_layer *layer) {
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR && opdi_batched_at(value->u.t, layer->level) &&
            opdi_batch_check(value->u.t, layer)) { return -1; }
    }
    for (uint64_t mask = op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (opdi_batched_at(value->u.tensors[k], layer->level) && opdi_batch_check(value->u.tensors[k], layer)) {
                return -1;
            }
        }
    }
    return 0;
}
/* Returns true if a tensor argument, or a tensor in a list argument, is batched at this level. */
OPDI_INTERNAL bool opdi_any_batched(const opd_op *op, const opd_value *args, int level) {
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR && opdi_batched_at(value->u.t, level)) { return true; }
    }
    for (uint64_t mask = op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (opdi_batched_at(value->u.tensors[k], level)) { return true; }
        }
    }
    return false;
}

opd_tensor *opd_batch_value(opd_tensor *tensor, int *dim) {
    opdi_layer *layer = opdi_self()->innermost.rule;
    int unwanted;
    if (!dim) { dim = &unwanted; }
    *dim = -1;
    if (opdi_is_none(tensor, "opd_batch_value")) { return NULL; }
    if (!layer || !opdi_batched_at(tensor, layer->level)) { return tensor; }
    if (opdi_batch_check(tensor, layer)) { return NULL; }
    *dim = opdi_batched_of(tensor)->dim;
    return opdi_batched_of(tensor)->value;
}
opd_tensor *opd_batch_arg(opd_call *call, int i, int *dim) {
    if (dim) { *dim = -1; }
    return opd_arg_is_none(call, i) ? NULL : opd_batch_value(opd_arg_tensor(call, i), dim);
}
int64_t opd_batch_size(void) {
    const opdi_layer *layer = opdi_self()->innermost.rule;
    return layer ? layer->size : opd_fail(OPD_ERROR_ARGUMENT, "opd_batch_size: no batching rule is running");
}
opd_randomness opd_batch_randomness(void) {
    const opdi_layer *layer = opdi_self()->innermost.rule;
    return layer ? layer->randomness : OPD_RANDOM_ERROR;
}

opd_tensor *opd_batch_front(opd_tensor *tensor, int dim) {
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (opdi_is_none(tensor, "opd_batch_front")) { return NULL; }
    if (dim == 0) { return tensor; }
    if (dim > 0) {                                /* the new order: `dim`, then the other dims */
        sizes[0] = dim;
        for (int i = 1; i < tensor->ndim; i++) { sizes[i] = i <= dim ? i - 1 : i; }
        return opd_permute(tensor, opd_ints_of(sizes, tensor->ndim));
    }
    if (tensor->ndim == OPD_MAX_DIMS) {
        (void)opd_fail(OPD_ERROR_SHAPE, "vmap: the examples together have more than %d dimensions", OPD_MAX_DIMS);
        return NULL;
    }
    sizes[0] = opd_batch_size();
    for (int i = 0; i < tensor->ndim; i++) { sizes[i + 1] = tensor->dims[i]; }
    return opd_expand(tensor, opd_ints_of(sizes, tensor->ndim + 1));
}
OPDI_INTERNAL opd_tensor *opdi_batch_front_arg(opd_call *call, int i) {
    int dim;
    opd_tensor *tensor = opd_batch_arg(call, i, &dim);
    return opd_batch_front(tensor, dim);
}

static int opdi_batch_check_result(const opd_call *call, const opd_tensor *tensor, int dim) {
    opdi_layer *layer = call->th->innermost.rule;
    const int64_t size = layer->size;
    return dim < tensor->ndim && (tensor->dims[dim] == size || opdi_layer_resized(layer, tensor, dim)) ? 0
        : opd_fail(OPD_ERROR_KERNEL, "the batching rule of %s returned a result that does not have the %lld examples "
                   "at dim %d", call->op->name, (long long)size, dim);
}
int opd_batch_return(opd_call *call, opd_tensor *tensor, int dim) {
    const opdi_layer *layer = call->th->innermost.rule;
    opd_tensor *second;
    if (!tensor || dim < 0 || !layer) { return opd_return_tensor(call, tensor); }
    if (opdi_batch_check_result(call, tensor, dim)) { return -1; }
    if (!(second = opdi_batch_wrap(tensor, dim, layer->level, layer->serial))) { return -1; }
    int rc = opd_return_tensor(call, second);
    opdi_drop(second);
    return rc;
}
int opd_batch_return_list(opd_call *call, opd_tensor *const *list, int64_t count, int dim) {
    const opdi_layer *layer = call->th->innermost.rule;
    if (!opd_ok()) { return -1; }
    if (dim < 0 || !layer) { return opd_return_tensors(call, list, count); }
    opd_tensor **out = (opd_tensor **)opdi_scope_alloc(((size_t)count + 1) * sizeof *out);
    for (int64_t k = 0; out && k < count; k++) {
        if (list[k] && opdi_batch_check_result(call, list[k], dim)) { return -1; }
        out[k] = list[k] ? opdi_own(opdi_batch_wrap(list[k], dim, layer->level, layer->serial)) : NULL;
        if (list[k] && !out[k]) { return -1; }
    }
    return out ? opd_return_tensors(call, out, count) : -1;
}

OPDI_COLD_BEGIN

/* Returns true if an element of any example of `tensor` is NaN (if `nan` is true) or nonzero (if `nan` is false). */
OPDI_INTERNAL bool opdi_any_element(opd_tensor *tensor, bool nan) {
    opdi_thread *thread = opdi_self();
    opdi_layer *const layer = thread->innermost.layer, *const rule = thread->innermost.rule;
    const opdi_state was = thread->state;
    while (tensor->flags & OPDI_BATCHED) { tensor = opdi_batched_of(tensor)->value; }
    opdi_layer_set(thread, NULL);
    thread->innermost.rule = NULL;
    thread->state.include &= ~OPDI_BACK_BIT;
    thread->state.allow &= ~OPD_BIT_OF(OPD_F_TRACER);
    thread->state.no_grad = 1;
    bool found = opd_item_f64(opd_any(nan ? opd_isnan(tensor) : opd_ne_Scalar(tensor, opd_value_int(0)))) > 0;
    thread->innermost.layer = layer;
    thread->innermost.rule = rule;
    thread->state = was;
    return found;
}
OPDI_COLD_END

