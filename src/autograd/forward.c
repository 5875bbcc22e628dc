#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>forward      dual tensors, levels, tangents of results
//
//  A tangent (the derivative of a tensor in the direction of forward mode) belongs to a storage and has the memory
//  layout of the storage.  If a tensor views a part of the storage, its tangent is the same part of the storage's
//  tangent, so views and in-place writes need no bookkeeping.  Some tensors share memory but not tangents, such as a
//  dual and its primal, or a tensor and its detached alias.  A number in their opdi_meta, the family, tells them apart.
//
//  The kernels at Autograd call this code while a level is open and an argument has a tangent.  Forward-mode rules
//  compute the tangents of the results.
//----------------------------------------------------------------------------------------------------------------------

/* Returns true if `first` and `tensor` have the same dtype, sizes, strides and offset, and storages of the same size.
   If `first` is a batched tangent and `tensor` is not batched, returns true if `tensor` takes up its whole storage. */
static bool opdi_congruent(const opd_tensor *first, const opd_tensor *tensor) {
    if (first->dtype != tensor->dtype || !opdi_has_sizes(first, tensor->dims, tensor->ndim) ||
        opdi_place_of(first) != opdi_place_of(tensor) ||
        ((first->functionality | tensor->functionality) & OPDI_LAZY_KEYS)) {
        return false;
    }
    if (OPDI_UNLIKELY((first->flags | tensor->flags) & OPDI_BATCHED)) {
        const opdi_batched *batched = first->flags & OPDI_BATCHED ? opdi_batched_of(first) : NULL;
        const opdi_batched *other = tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor) : NULL;
        if (batched && other && batched->level == other->level) {
            return batched->dim == other->dim && opdi_congruent(batched->value, other->value);
        }
        return batched && !other && opd_tensor_offset(tensor) == 0 && opd_tensor_offset(first) == 0 &&
            (first->flags & tensor->flags & OPDI_CONTIGUOUS) &&
            opdi_elements_bytes(tensor->dtype, tensor->numel) == tensor->storage->bytes;
    }
    if (first->storage->bytes != tensor->storage->bytes ||
        (first->numel && opd_tensor_offset(first) != opd_tensor_offset(tensor))) {
        return false;
    }
    for (int i = 0; i < first->ndim; i++) {
        if (first->dims[i] > 1 && first->dims[first->ndim + i] != tensor->dims[tensor->ndim + i]) { return false; }
    }
    return true;
}

/* Returns true if `tensor` has a tangent in the level that is being computed. */
OPDI_INTERNAL bool opdi_has_tangent(const opd_tensor *tensor) {
    if (!tensor || !OPDI_ACQUIRE(&tensor->storage->duals)) { return false; }
    opdi_lock(&opdi_dual_lock);
    bool has = opdi_dual_find(tensor) != NULL;
    opdi_unlock(&opdi_dual_lock);
    return has;
}

/* Returns true if the gradient that a backward function computes from `tensor` may be differentiated with respect to
   `tensor`: in reverse mode, in forward mode, or in a graph that is being traced.  Only if false, the backward function
   may use saved results that have no history. */
OPD_UNUSED OPDI_INTERNAL bool opdi_differentiated_again(const opd_tensor *tensor) {
    return opd_grad_mode_enabled() || opdi_is_dual_inside(tensor) || (tensor->flags & OPDI_TRACED);
}

OPDI_INTERNAL void opdi_level_enter(opdi_thread *thread, opdi_level_frame *within, opdi_level *level) {
    within->level = thread->innermost.level;
    within->dual = thread->innermost.dual;
    within->state = thread->state;
    within->tangents = thread->innermost.tangents;
    thread->innermost.tangents = true;
    thread->innermost.dual = level;
    thread->innermost.level = level->outer;
    thread->state.forward = level->outer ? level->around & OPDI_FORWARD_OFF : OPDI_FORWARD_OFF;
    opdi_forward_at(thread, thread->innermost.floor);
}
OPDI_INTERNAL void opdi_level_leave(opdi_thread *thread, const opdi_level_frame *within) {
    thread->innermost.level = within->level;
    thread->innermost.dual = within->dual;
    thread->innermost.tangents = within->tangents;
    thread->state = within->state;
}

static opd_ints opdi_strides_of(const opd_tensor *tensor) {
    return opd_ints_of(tensor->dims + tensor->ndim, tensor->ndim);
}

/* Returns the tangent of the whole storage of `tensor`, in the innermost scope, or NULL if there is none.  Returns NULL
   and sets an error on failure. */
static opd_tensor *opdi_tangent_whole(const opd_tensor *tensor) {
    opd_tensor *whole = NULL;
    if (!tensor || !OPDI_ACQUIRE(&tensor->storage->duals)) { return NULL; }
    opdi_lock(&opdi_dual_lock);
    opdi_dual *dual = opdi_dual_find(tensor);
    if (dual) { whole = opdi_keep(dual->tangent); }
    opdi_unlock(&opdi_dual_lock);
    return opdi_own(whole);
}
/* Returns the batched tangent `whole` with another dtype: pairs of numbers (the last dim has the real and imaginary
   parts, in turn) as complex numbers, or complex numbers as such pairs.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_tangent_retyped_batched(opd_tensor *whole) {
    const int last = whole->ndim - 1;
    const int64_t parts = whole->ndim > 0 ? opdi_sizes(whole)[last] : 0;
    const bool batched = whole->flags & OPDI_BATCHED;
    if (batched && opd_dtype_is_complex((opd_scalar_type)whole->dtype)) { return opd_view_as_real(whole); }
    if (batched && parts > 0 && parts % 2 == 0 && opdi_strides(whole)[last] == 1 && last < OPD_MAX_DIMS - 1) {
        int64_t pairs[OPD_MAX_DIMS];
        memcpy(pairs, opdi_sizes(whole), (size_t)last * sizeof *pairs);
        pairs[last] = parts / 2;
        pairs[last + 1] = 2;
        if (parts > 2) { whole = opd_view(whole, opd_ints_of(pairs, last + 2)); }
        return whole ? opd_view_as_complex(whole) : NULL;
    }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, "Trying to use forward AD inside vmap with a complex view of real numbers, or "
                   "with their parts, which is not supported unless the parts are in the last dim of the batched "
                   "tensor");
    return NULL;
}
/* Returns the memory of the tangent `whole` as a tensor with the dtype of `tensor`: complex numbers as pairs of real
   numbers, or pairs as complex numbers. */
static opd_tensor *opdi_tangent_retyped(opd_tensor *whole, const opd_tensor *tensor) {
    const int64_t count = whole->storage->bytes / (int64_t)opd_dtype_size((opd_scalar_type)whole->dtype);
    const int64_t sizes[2] = {count / 2, 2}, strides[2] = {2, 1};
    if ((whole->flags | tensor->flags) & OPDI_BATCHED) { return opdi_tangent_retyped_batched(whole); }
    if (opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        return opd_view_as_complex(opd_as_strided_full(whole, opd_ints_of(sizes, 2), opd_ints_of(strides, 2),
                                                       opd_value_int(0)));
    }
    return opd_view_as_real(opd_as_strided_full(whole, opd_ints_of(&count, 1), opd_ints_of(strides + 1, 1),
                                                opd_value_int(0)));
}
/* Returns `part`, whose values are as they are in memory, with the lazy conjugation and negation of `tensor`. */
static opd_tensor *opdi_tangent_read(opd_tensor *part, const opd_tensor *tensor) {
    if (part && opd_tensor_is_conj(tensor)) { part = opd_conj_view(part); }
    return part && opd_tensor_is_neg(tensor) ? opd__neg_view(part) : part;
}
/* Returns the part of `whole`, a storage's tangent, that belongs to `tensor`, which views the storage.  The caller has
   switched forward mode off.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_tangent_part(opd_tensor *whole, const opd_tensor *tensor) {
    if (whole && whole->dtype != tensor->dtype && !(whole = opdi_tangent_retyped(whole, tensor))) { return NULL; }
    return !whole || opdi_congruent(whole, tensor) ? whole : opdi_tangent_read(opd_as_strided_full(
        whole, opd_ints_of(tensor->dims, tensor->ndim), opdi_strides_of(tensor),
        opd_value_int(opd_tensor_offset(tensor))),
        tensor);
}
OPDI_INTERNAL opd_tensor *opdi_tangent_of(const opd_tensor *tensor) {
    return opdi_tangent_part(opdi_tangent_whole(tensor), tensor);
}

/* Returns true if the caller has the only reference to `grad`, and no other tensor has its memory. */
static bool opdi_held_alone(const opd_tensor *grad) {
    int32_t count = 1;
    if (!(grad->flags & OPDI_BATCHED)) { return opdi_held_by(grad, 1); }
    for (; grad->flags & OPDI_BATCHED; grad = opdi_batched_of(grad)->value, count++) {
        if (OPDI_ACQUIRE(&grad->refs) != 1) { return false; }
    }
    return OPDI_ACQUIRE(&grad->refs) == 1 && OPDI_ACQUIRE(&grad->storage->refs) == count;
}

/* Returns a new tensor for a tangent, with the dtype and device of `tensor` and the `ndim` sizes `dims`.  If `strides`
   is NULL, the new tensor is contiguous.  While a graph is traced, an operator makes the tensor, so that the graph
   contains this step.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_tangent_empty(const opd_tensor *tensor, const int64_t *dims, const int64_t *strides, int ndim) {
    const opd_value none = opd_value_none(), dtype = opd_value_int(tensor->dtype);
    if (!opdi_self()->innermost.tracer) {
        return opdi_own(opdi_tensor_make(dims, strides, ndim, (opd_scalar_type)tensor->dtype, opdi_place_of(tensor)));
    }
    return strides ? opd_empty_strided_full(opd_ints_of(dims, ndim), opd_ints_of(strides, ndim), dtype, none,
                                            opd_value_device(opd_tensor_device(tensor)), none)
        : opd_empty_full(opd_ints_of(dims, ndim), dtype, none, opd_value_device(opd_tensor_device(tensor)), none, none);
}
/* Returns zeros with the memory layout of `tensor`, batched at every vmap layer at which `tensor` or `grad` is batched.
   Returns NULL and sets an error on failure. */
static opd_tensor *opdi_tangent_batched(const opd_tensor *tensor, const opd_tensor *grad) {
    const opd_tensor *wraps[OPDI_MAX_LAYERS], *primal;
    const opdi_batched *more[OPDI_MAX_LAYERS];
    int64_t dims[2 * OPD_MAX_DIMS], sizes[OPD_MAX_DIMS];
    int total = 0, edge = 0, i, k, level;
    if (opdi_batch_fit(tensor) || opdi_batch_fit(grad)) { return NULL; }
    for (primal = tensor; primal->flags & OPDI_BATCHED; primal = opdi_batched_of(primal)->value) {
        wraps[total++] = primal;
    }
    /* the outermost wrapper belongs to the innermost vmap layer */
    for (; grad->flags & OPDI_BATCHED; grad = opdi_batched_of(grad)->value) {
        const opdi_batched *batched = opdi_batched_of(grad);
        for (k = 0; k < total && opdi_batched_of(wraps[k])->level != batched->level; k++) { }
        if (k < total) { continue; }
        sizes[edge] = batched->value->dims[batched->dim];
        more[edge++] = batched;
    }
    if (edge + primal->ndim > OPD_MAX_DIMS) {
        (void)opd_fail(OPD_ERROR_SHAPE, "vmap: the examples together have more than %d dimensions", OPD_MAX_DIMS);
        return NULL;
    }
    int64_t count = primal->storage->bytes / (int64_t)opd_dtype_size((opd_scalar_type)primal->dtype);
    for (i = 0; i < edge; i++) {                  /* the first dim is that of the outermost layer */
        dims[i] = sizes[edge - 1 - i];
        for (dims[edge + primal->ndim + i] = count, k = i + 1; k < edge; k++) {
            dims[edge + primal->ndim + i] *= sizes[edge - 1 - k];
        }
    }
    memcpy(dims + edge, primal->dims, (size_t)primal->ndim * sizeof *dims);
    memcpy(dims + 2 * edge + primal->ndim, primal->dims + primal->ndim, (size_t)primal->ndim * sizeof *dims);
    for (i = 0; i < edge; i++) { count *= sizes[i]; }
    opd_tensor *flat = opdi_tangent_empty(primal, &count, NULL, 1);
    opd_tensor *zeros = flat && opd_zero_(flat)
        ? opd_as_strided_full(flat, opd_ints_of(dims, edge + primal->ndim),
                              opd_ints_of(dims + edge + primal->ndim, edge + primal->ndim),
                              opd_value_int(opd_tensor_offset(primal)))
        : NULL;
    if (zeros) { opdi_view_untie(zeros); }
    for (level = 1, i = edge; zeros && (total || i) && level <= OPDI_MAX_LAYERS; level++) {
        const bool mine = total && opdi_batched_of(wraps[total - 1])->level == level;
        if (mine) {
            const opdi_batched *batched = opdi_batched_of(wraps[--total]);
            zeros = opdi_own(opdi_batch_wrap(zeros, i + batched->dim, level, batched->serial));
        } else if (i && more[i - 1]->level == level) {
            zeros = opdi_own(opdi_batch_wrap(zeros, 0, level, more[--i]->serial));
        }
    }
    if (!zeros || !(total || i)) { return zeros; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "forward mode: a tensor may have escaped from inside a function being vmapped: "
                   "a call combines examples of different vmaps that are not nested in each other");
    return NULL;
}

/* Makes a tangent for the storage of `tensor`, with the values of `grad` in the part of `tensor` and zeros elsewhere.
   Returns `grad` itself as the tangent if grad has the memory layout of `tensor`, and either `as_is` is true or the
   caller has the only reference to grad.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_tangent_make(const opd_tensor *tensor, opd_tensor *grad, bool as_is) {
    const int64_t count = tensor->storage->bytes / (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    const bool batched = OPDI_UNLIKELY((tensor->flags | grad->flags) & OPDI_BATCHED) != 0;
    /* if traced: the tangent's layout must be the same in every run of the graph */
    const bool traced = OPDI_UNLIKELY(opdi_self()->innermost.tracer != NULL);
    if (opdi_congruent(grad, tensor)) {
        if (!traced && (as_is ? grad->storage != tensor->storage : opdi_held_alone(grad))) { return grad; }
        opd_tensor *zeros = traced ? opd_clone_full(grad, opd_value_int(0)) : opd_clone(grad);
        if (!zeros || opdi_congruent(zeros, tensor)) { return zeros; }
    }
    bool whole = batched || (opd_tensor_offset(tensor) == 0 && !opdi_overlaps_itself(tensor) &&
                             tensor->numel == count &&
                             opdi_extent(tensor->dims, tensor->dims + tensor->ndim, tensor->ndim) == count);
    opd_tensor *zeros = batched
        ? opdi_tangent_batched(tensor, grad)
        : opdi_tangent_empty(tensor, whole ? tensor->dims : &count, whole ? tensor->dims + tensor->ndim : NULL,
                             whole ? tensor->ndim : 1);
    opd_tensor *part = zeros && (whole || opd_zero_(zeros)) ? batched ? opdi_tangent_read(zeros, tensor)
        : opdi_tangent_part(zeros, tensor) : NULL;
    return part && opd_copy_(part, grad) ? zeros : NULL;
}

/* Returns a copy of the tangent `whole` in which the part of `tensor` is `grad`; the copy is recorded in the autograd
   graph.  A tangent that is not contiguous is treated as one row of numbers.  Returns NULL and sets an error on
   failure. */
static opd_tensor *opdi_tangent_scatter(opd_tensor *whole, const opd_tensor *tensor, opd_tensor *grad) {
    const opd_ints sizes = opd_ints_of(whole->dims, whole->ndim), strides = opdi_strides_of(whole);
    const bool rows = (whole->flags & OPDI_CONTIGUOUS) != 0;
    const int64_t numel = whole->numel, one = 1;
    if (!rows) { whole = opd_as_strided_full(whole, opd_ints_of(&numel, 1), opd_ints_of(&one, 1), opd_value_int(0)); }
    grad = opdi_tangent_read(grad, tensor);       /* reverses the conjugation and negation of `tensor` */
    whole = opd_as_strided_scatter_full(whole, grad, opd_ints_of(tensor->dims, tensor->ndim), opdi_strides_of(tensor),
                                        opd_value_int(opd_tensor_offset(tensor)));
    return rows ? whole : opd_as_strided_full(whole, sizes, strides, opd_value_int(0));
}

/* Returns a copy of the batched tangent `whole` in which the part of `tensor` is `grad`.  Returns NULL without an error
   if the copy would have another memory layout, and NULL with an error if an operator fails. */
static opd_tensor *opdi_tangent_rewritten(opd_tensor *whole, const opd_tensor *tensor, opd_tensor *grad) {
    opd_tensor *copy = opdi_more_examples(grad, whole) ? opdi_with_examples(whole, grad, opdi_strides_of(whole))
        : opd_mul_Scalar(whole, opd_value_int(1));             /* a copy with the same layout */
    if (!copy || (!(copy->flags & whole->flags & OPDI_CONTIGUOUS) && !opdi_congruent(copy, whole))) { return NULL; }
    opd_tensor *part = opdi_tangent_part(copy, tensor);
    return part && opd_copy_(part, grad) ? copy : NULL;
}
/* Makes `grad` the tangent of `tensor`: writes grad into the existing tangent, or replaces the existing tangent if the
   autograd graph may need it.  If there is no tangent yet, grad itself may become the tangent (see opdi_tangent_make,
   also for `as_is`).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_tangent_set(opd_tensor *tensor, opd_tensor *grad, bool as_is) {
    opd_tensor *whole = opdi_tangent_whole(tensor), *part = opdi_tangent_part(whole, tensor), *with, *old = NULL;
    if (!opd_ok()) { return -1; }
    if (!opdi_has_sizes(grad, tensor->dims, tensor->ndim)) {
        char first[256], second[256];
        return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to set a forward gradient that has a different size than that of "
                        "the original Tensor, this is not supported. Tensor is of size %s while the given forward "
                        "gradient is of size %s.", opdi_sizes_text(tensor->dims, tensor->ndim, first, sizeof first),
                        opdi_sizes_text(grad->dims, grad->ndim, second, sizeof second));
    }
    if (!whole) {
        return (with = opdi_tangent_make(tensor, grad, as_is)) ? opdi_dual_put(opdi_self()->innermost.dual, tensor,
            with) : -1;
    }
    if (part == grad) { return 0; }
    bool batched = ((tensor->flags | grad->flags | whole->flags) & OPDI_BATCHED) != 0;
    if (whole->dtype != tensor->dtype) { return part && opd_copy_(part, grad) ? 0 : -1; }
    if ((!opd_grad_mode_enabled() || !(opdi_tracked(whole) || opdi_tracked(grad))) &&
        !(batched && opdi_more_examples(grad, whole))) { return opd_copy_(part, grad) ? 0 : -1; }
    with = part == whole ? opdi_tangent_make(tensor, grad, false) : batched ? opdi_tangent_rewritten(whole, tensor,
        grad) : opdi_tangent_scatter(whole, tensor, grad);
    if (!opd_ok()) { return -1; }
    if (!with || (!batched && with->storage->bytes != tensor->storage->bytes)) {
        return opd_copy_(part, grad) ? 0 : -1;
    }
    opdi_retain(with);
    opdi_lock(&opdi_dual_lock);
    opdi_dual *dual = opdi_dual_find(tensor);
    if (dual) {
        old = dual->tangent;
        dual->tangent = with;
    }
    opdi_unlock(&opdi_dual_lock);
    opdi_drop(old ? old : with);
    return 0;
}

//== forward mode and inference mode ===================================================================================

bool opd_forward_grad_enabled(void) { return !(opdi_self()->state.forward & OPDI_FORWARD_OFF); }
bool opd_forward_grad_set(bool on) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    const bool was = !(thread->state.forward & OPDI_FORWARD_OFF);
    thread->state.forward = on ? 0 : OPDI_FORWARD_OFF;
    opdi_forward_at(thread, thread->innermost.floor);
    return was;
}

opd_dispatch_state opd_dispatch_state_get(void) {
    const opdi_thread *thread = opdi_self();
    opd_dispatch_state state;
    memset(&state, 0, sizeof state);
    state.included = thread->state.include;
    state.excluded = ~thread->state.allow;
    state.grad_enabled = !thread->state.no_grad;
    state.inference = thread->state.inference != 0;
    state.no_forward_grad = !opd_forward_grad_enabled();
    state.autocast = thread->state.autocast;
    return state;
}

opd_dispatch_state opd_dispatch_state_set(opd_dispatch_state state) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    const opd_dispatch_state was = opd_dispatch_state_get();
    thread->state.include = state.included;
    thread->state.allow = ~state.excluded;
    thread->state.no_grad = !state.grad_enabled;
    thread->state.inference = state.inference;
    (void)opd_forward_grad_set(!state.no_forward_grad);
    thread->state.autocast = state.autocast;
    return was;
}

bool opd_inference_mode_enabled(void) { return opdi_self()->state.inference != 0; }
opd_dispatch_state opd_inference_mode_set(bool on) {
    opdi_state *state = &opdi_self()->state;
    (void)opdi_visits_left(opdi_self());
    const opd_dispatch_state was = opd_dispatch_state_get();
    const uint64_t below = OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW);
    state->inference = on;
    state->no_grad = on;
    (void)opd_forward_grad_set(!on);
    state->include = on ? state->include & ~below : state->include | below;
    state->allow = on ? state->allow & ~OPDI_AUTOGRAD_BITS : state->allow | OPDI_AUTOGRAD_BITS;
    return was;
}

/* Returns an alias of `tensor` that has the same history and the same tangents in the levels outside of the level that
   is being computed, but no tangent in this level.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_primal_of(opd_tensor *tensor) {
    opd_tensor *value = opd_alias(tensor);
    if (!value || opdi_family_new(value)) { return NULL; }
    for (opdi_level *level = opdi_self()->innermost.level; level; level = level->outer) {
        opdi_lock(&opdi_dual_lock);
        opdi_dual *dual = opdi_dual_at(tensor, level);
        opd_tensor *tangent = dual ? opdi_keep(dual->tangent) : NULL;
        opdi_unlock(&opdi_dual_lock);
        if (!tangent) { continue; }
        int rc = opdi_dual_put(level, value, tangent);
        opdi_drop(tangent);
        if (rc) { return NULL; }
    }
    return value;
}

OPDI_INTERNAL bool opdi_dual_dtype(const opd_tensor *tensor, const char *what) {
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    if (opd_dtype_is_floating(dtype) || opd_dtype_is_complex(dtype)) { return true; }
    (void)opd_fail(OPD_ERROR_DTYPE, "Expected %s to be floating point or complex, but got: %s", what,
                   opd_dtype_name(dtype));
    return false;
}

/* Returns a dual tensor with the values of `primal` and, in the level that is being computed, the tangent `tangent`.  A
   tangent has the memory layout of its primal.  If several elements of the primal share memory, the dual tensor is made
   from a copy of the primal, because the tangents of these elements may differ.  Returns NULL and sets an error on
   failure. */
OPDI_INTERNAL opd_tensor *opdi_make_dual(opd_tensor *primal, opd_tensor *tangent) {
    const opd_tensor *value = primal;
    while (value->flags & OPDI_BATCHED) { value = opdi_batched_of(value)->value; }
    if (opdi_has_tangent(primal)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Making a dual Tensor based on a Tensor that already has a forward gradient "
                       "at the same level 0 is not supported.");
        return NULL;
    }
    if (opdi_has_tangent(tangent)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Setting a forward grad that itself has a forward gradient at the same "
                       "level 0 is not supported.");
        return NULL;
    }
    if (opdi_overlaps_itself(value) && !(primal = opd_clone(primal))) { return NULL; }
    opd_tensor *dual = opdi_primal_of(primal);
    return dual && opdi_tangent_set(dual, tangent, true) == 0 ? dual : NULL;
}
opd_tensor *opd_dual_new(opd_tensor *primal, opd_tensor *tangent) {
    opdi_thread *thread = opdi_self();
    opdi_level_frame within;
    if (!opd_ok() || opdi_null_tensor(primal, "opd_dual_new: the primal") ||
        opdi_null_tensor(tangent, "opd_dual_new: the tangent")) { return NULL; }
    if (!thread->innermost.level) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Trying to create a dual Tensor for forward AD but no level exists, make "
                       "sure to opd_dual_level_begin() first.");
        return NULL;
    }
    if (!opdi_dual_dtype(primal, "primal") || !opdi_dual_dtype(tangent, "tangent")) { return NULL; }
    opdi_level_enter(thread, &within, thread->innermost.level);
    opd_tensor *dual = opdi_make_dual(primal, tangent);
    opdi_level_leave(thread, &within);
    return dual;
}

opd_tensor *opd_dual_unpack(opd_tensor *tensor, opd_tensor **tangent) {
    opdi_thread *thread = opdi_self();
    opdi_level_frame within;
    if (tangent) { *tangent = NULL; }
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_dual_unpack")) { return NULL; }
    if (!thread->innermost.level) { return tensor; }
    bool off = !opd_forward_grad_enabled();
    opdi_level_enter(thread, &within, thread->innermost.level);
    if (tangent && !off) { *tangent = opdi_tangent_of(tensor); }
    opd_tensor *primal = opd_ok() ? opdi_primal_of(tensor) : NULL;
    opdi_level_leave(thread, &within);
    return primal;
}

OPDI_INTERNAL int opdi_forward_unable(const opd_call *call, const char *form, const char *why) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with %s%s that does not support it %s",
                    call->op->schema->name, form, why);
}
OPDI_INTERNAL int opdi_forward_missing(const opd_call *call) {
    return opdi_forward_unable(call, "", "because it has not been implemented yet.");
}
