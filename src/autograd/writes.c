#include "autograd.h"

//== writes ============================================================================================================
//
//  How an in-place write is recorded in the autograd graph.  An indented function is called by the function above it.
//    opdi_autograd_inplace_kernel    the kernel at Autograd of operators that write self; if an argument has a tangent,
//                                    calls opdi_forward_inplace_kernel instead of the next function
//      opdi_recording_inplace_kernel   if nothing requires grad, only calls opdi_below_autograd; if the call writes and
//                                      returns several arguments, only calls opdi_recording_writes
//        Before the write:
//        opdi_check_inplace              refuses leaves, and views that must not be written
//        opdi_inplace_args               passes a copy of self if the backward function needs its old value
//        opdi_inplace_node               makes the node
//        opdi_slices_node                if self is a view: makes the node of its base (CopySlices) around that node
//        After the write:
//        opdi_rebase                     makes the node the history of self, or
//        opdi_slices_attach              if self is a view: makes CopySlices the history of its base
//      opdi_recording_writes           calls opdi_record, which calls opdi_attach_missing, which calls opdi_rebase_to
//  Below Autograd:
//    opdi_version_kernel             counts writes, so that backward notices that a saved tensor was written

/* Returns a copy of self with self's history, for a backward function that needs the value before the write.  The copy
   belongs to the scope.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_inplace_original(opd_tensor *self) {
    opd_tensor *tensor = opdi_bare_copy(self);
    if (!tensor) { return NULL; }
    if (self->grad_fn) {
        opdi_ref_up(&self->grad_fn->refs);
        tensor->grad_fn = self->grad_fn;
        tensor->output_nr = self->output_nr;
        tensor->flags |= OPDI_REQUIRES_GRAD;
    }
    const opdi_forward_calls *const forward = OPDI_ACQUIRE(&opdi_on_forward);
    tensor = opdi_own(tensor);
    return forward && forward->copy(tensor, self) ? NULL : tensor;
}

/* If the node of self has saved self as its own result, makes the node keep another tensor with the same memory and
   history instead.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_own_replace(opd_tensor *self) {
    opd_node *old = self->grad_fn;
    opd_tensor *tensor;
    for (int i = 0; old && (self->own & OPDI_SAVED_BY_OWN) && i < old->nkept + old->nresults; i++) {
        opd_value *value = &opdi_kept(old)[i];
        if (value->tag != OPD_TAG_TENSOR || value->u.t != self) { continue; }
        if (!(tensor = opdi_shallow_copy(self))) { return -1; }
        tensor->grad_fn = old;
        tensor->output_nr = self->output_nr;
        tensor->flags |= OPDI_REQUIRES_GRAD;
        tensor->own = OPDI_SAVED_BY_OWN | OPDI_WEAK_NODE;
        value->u.t = tensor;
        opdi_own_forget(self);
    }
    return 0;
}
/* Makes self a leaf that does not require grad.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_detach_inplace(opd_tensor *self) {
    opd_node *old = self->grad_fn;
    if (opdi_own_replace(self)) { return -1; }
    self->grad_fn = NULL;
    self->flags &= (uint8_t)~OPDI_REQUIRES_GRAD;
    if (old) { opdi_node_release(old); }
    return 0;
}

/* Makes the node of a write into self, before the write.  The node does not keep tensors that share the memory of self,
   because the write will change them.  Returns a reference, or NULL and sets an error. */
static opd_node *opdi_inplace_node(const opd_call *call, const opdi_card *card, opd_tensor *self,
                                   const opd_value *args) {
    opd_node *node = opdi_node_make(&card->formula, opdi_count_edges(call->op, args), card->nkept,
                                    card->nresults, &self, 1, OPDI_NODE_EXTRA_DIMS);
    if (!node) { return NULL; }
    opdi_link_edges(node, call->op, args);
    if (opdi_save_args(node, card, args) || (opdi_self()->innermost.packer && opdi_node_pack(node))) {
        opdi_node_release(node);
        return NULL;
    }
    for (int i = 0; i < node->nkept; i++) {       /* tensors in the memory of self, which the write will change */
        opd_value *value = &opdi_kept(node)[i], old = *value;
        if (value->tag != OPD_TAG_TENSOR || value->u.t->storage != self->storage) { continue; }
        *value = opd_value_none();
        value->n = OPDI_WRITTEN_SINCE;
        opdi_kept_drop(node, &old);
    }
    return node;
}

/* Returns true if the node of a write has to keep the value of result i, according to the descriptor `card`. */
static bool opdi_keeps_result(const opdi_card *card, const opd_value *args, int i) {
    const int when = card->save_result_if[i];
    return (card->save_results >> i & 1) && (when < 0 || opdi_arg_requires_grad(&args[when]));
}

/* Makes the CopySlices node of the base (see opdi_slices_make), and saves in `node` the results that the operator's
   descriptor names.  Returns a reference, or NULL. */
static opd_node *opdi_slices_node(const opd_call *call, const opdi_card *card, opd_tensor *self, const opd_value *args,
                                  opd_node *node) {
    opd_node *slices = opdi_slices_make(self, node, 0);
    int ret = 0;
    if (!slices) { return NULL; }
    for (int i = 0; i < call->op->nrets; i++) {
        opd_tensor *tensor;
        if (!(card->save_results >> i & 1)) { continue; }
        if (opdi_keeps_result(card, args, i)) {
            if (!(tensor = opdi_shallow_copy(self))) {
                opdi_node_release(slices);
                return NULL;
            }
            opdi_saved_results(node)[ret] = opd_value_tensor(tensor);
            node->saved = OPDI_SAVED;
        }
        ret++;
    }
    slices->saved = node->saved;
    return slices;
}

/* Makes `node` the history of self after the write, and saves the results that the operator's descriptor names. */
static void opdi_rebase(opd_call *call, const opdi_card *card, opd_tensor *self, const opd_value *args,
                        opd_node *node) {
    int ret = 0;
    opdi_node_describe(node, &self);              /* operators like squeeze_ have changed the sizes */
    opdi_leave_node(self);
    opdi_void_saved(node, self);
    opdi_attach(self, node, 0);
    if (self->flags & OPDI_IS_VIEW) {             /* only the view's geometry has changed */
        opdi_view_record_of(self)->version = OPDI_LOAD(&self->storage->version);
    }
    for (int i = 0; i < call->op->nrets; i++) {
        if (!(card->save_results >> i & 1)) { continue; }
        if (!opdi_keeps_result(card, args, i)) {
            ret++;
            continue;
        }
        opdi_saved_results(node)[ret++] = opdi_keep_result(self);
        self->own |= OPDI_SAVED_BY_OWN;
        node->saved = OPDI_SAVED;
    }
}

/* Checks that autograd can record the writes of a call.  If an argument other than the first is written and needs a
   history, it must be a single tensor and a result of the call.  A call without results must write its first argument.
   Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_check_written(const opd_call *call) {
    const opd_op *op = call->op;
    const uint64_t back = opdi_written_returned(op);
    for (uint64_t mask = op->written_args & ~(uint64_t)1; mask; mask &= mask - 1) {
        const int i = opdi_low_bit(mask);
        const opd_value *value = &call->args[i];
        opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
        if (!opdi_arg_requires_grad(value) && !(tensor && (opdi_requires_grad(tensor) || (back >> i & 1)))) {
            continue;
        }
        if (tensor && opdi_check_inplace(tensor)) { return -1; }
        if (!tensor || !(back >> i & 1)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes its argument '%s', which requires grad; autograd can only "
                            "record writes into %s", op->name, op->schema->args[i].name, tensor
                            ? "the first argument and into arguments that are returned"
                            : "single tensors, not into lists");
        }
        if (op->schema->args[i].keyword_only) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "%s(): functions with out=... arguments don't support automatic "
                            "differentiation, but one of the arguments requires grad.", op->schema->name);
        }
        if ((tensor->flags & OPDI_IS_VIEW) && op->nrets > 1) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "Functions which modify views in-place must return a single tensor "
                            "(%s, argument '%s')", op->name, op->schema->args[i].name);
        }
    }
    if (op->nrets || (op->written_args & 1)) { return 0; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes its argument '%s' and does not return it, so that no gradient can "
                    "flow through it, but one of its arguments requires grad; return it, or set .backward to "
                    "OPD_NOT_DIFFERENTIABLE", op->name, op->schema->args[opdi_low_bit(op->written_args)].name);
}

/* Copies the call's arguments to `args`.  If the backward function reads an argument in memory that the call writes and
   returns, `args` gets a copy of that argument, made before the write.  Returns 0, or -1 and sets an error. */
static int opdi_written_args(const opd_call *call, const opdi_card *card, opd_value *args) {
    const uint64_t back = opdi_written_returned(call->op);
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    for (uint64_t word = back; word; word &= word - 1) {
        const opd_value *written = &call->args[opdi_low_bit(word)];
        for (uint64_t mask = written->tag == OPD_TAG_TENSOR ? card->save_args : 0; mask; mask &= mask - 1) {
            const int i = opdi_low_bit(mask), when = card->save_if[i];
            opd_value *value = &args[i];
            if (when >= 0 && !opdi_arg_requires_grad(&call->args[when])) { continue; }
            for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
                if (!value->u.tensors[k] || !opdi_same_memory(value->u.tensors[k], written->u.t)) { continue; }
                return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes a tensor that its list '%s' also contains, but autograd "
                                "needs the old values of the list", call->op->name, call->op->schema->args[i].name);
            }
            if (value->tag != OPD_TAG_TENSOR || !opdi_same_memory(value->u.t, written->u.t)) { continue; }
            if (!value->u.t->grad_fn && (value->u.t->flags & OPDI_REQUIRES_GRAD)) {
                return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes into the memory of its argument '%s', a leaf that "
                                "requires grad and whose old values autograd needs", call->op->name,
                                call->op->schema->args[i].name);
            }
            if (!(value->u.t = opdi_inplace_original(value->u.t))) { return -1; }
        }
    }
    return 0;
}

/* Runs and records a call that writes several arguments, or an argument other than the first.  Each written argument
   that is returned becomes a result of the node.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_recording_writes(opd_call *call, const opdi_card *card) {
    opd_value args[OPD_MAX_ARGS];
    const opd_value *given = call->args;
    opd_tensor *first = (call->op->written_args & 1) && given->tag == OPD_TAG_TENSOR ? given->u.t : NULL;
    if ((first && opdi_check_inplace(first)) || opdi_check_written(call)) { return -1; }
    if (first && (first->flags & OPDI_IS_VIEW) && call->op->nrets > 1) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Functions which modify views in-place must return a single tensor (%s, "
                        "argument '%s')", call->op->name, call->op->schema->args[0].name);
    }
    if (card->desc.backward != opd_not_differentiable && opdi_written_args(call, card, args)) { return -1; }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_below_autograd(call)) { return -1; }
    if (card->desc.backward == opd_not_differentiable) { return 0; }
    return opdi_unalias_results(call) ? -1 : opdi_record(call, card, &card->formula, args);
}

/* Copies the call's arguments to `args`.  If the backward function reads self, `args` gets a copy of self, made before
   the write.  Returns 0, or -1 and sets an error. */
static int opdi_inplace_args(const opd_call *call, const opdi_card *card, opd_tensor *self, opd_value *args) {
    opd_tensor *original = NULL;
    memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args);
    for (uint64_t mask = card->save_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask), when = card->save_if[i];
        if (when >= 0 && !opdi_arg_requires_grad(&call->args[when])) { continue; }
        for (int32_t k = 0; args[i].tag == OPD_TAG_TENSORS && k < args[i].n; k++) {
            if (args[i].u.tensors[k] != self) { continue; }
            return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes a tensor that its list '%s' also contains, but autograd "
                            "needs the old values of the list", call->op->name, call->op->schema->args[i].name);
        }
        if (args[i].tag != OPD_TAG_TENSOR || args[i].u.t != self) { continue; }
        if (!original && !(original = opdi_inplace_original(self))) { return -1; }
        args[i].u.t = original;
    }
    return 0;
}

/* Returns true if the view self still has the geometry that opdi_slice_pack wrote to `was`. */
static bool opdi_slice_same(const opd_tensor *self, const opd_value *was) {
    int64_t now[OPDI_MAX_SLICE];
    const int count = opdi_slice_pack(self, opdi_view_record_of(self)->base, now);
    return count == was->n && memcmp(now, was->u.ints, (size_t)count * sizeof *now) == 0;
}

/* Runs and records a call that writes self.  The new node has the backward function of the functional form, and becomes
   the history of self.  If self is a view, a CopySlices node around the new node becomes the history of self's base
   instead (opdi_slices_attach), unless the call changes only the view's geometry.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_recording_inplace_kernel(opd_call *call, const opdi_card *card, opd_tensor *self) {
    opd_value args[OPD_MAX_ARGS];
    const int ndim = self ? self->ndim : 0;
    opd_node *node, *other = NULL;
    if (!opdi_call_flags(call)) { return opdi_below_autograd(call); }
    if (OPDI_UNLIKELY(call->op->written_args > 1) && card->desc.backward &&
        card->desc.backward != opd_not_differentiable && (opdi_written_returned(call->op) & ~(uint64_t)1)) {
        return opdi_refresh_args(call) ? -1 : opdi_recording_writes(call, card);
    }
    if ((self && opdi_check_inplace(self)) || (call->op->written_args > 1 && opdi_check_written(call)) ||
        (OPDI_UNLIKELY(card->constant_args) && opdi_check_constant(call, card))) { return -1; }
    if (!self || !card->desc.backward || card->desc.backward == opd_not_differentiable) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s is not differentiable, but one of its arguments requires grad",
                        call->op->name);
    }
    if (opdi_refresh_args(call) || opdi_inplace_args(call, card, self, args) ||
        !(node = opdi_inplace_node(call, card, self, args))) {
        return -1;
    }
    /* an operator that only changes the view's geometry does not change its base */
    if ((self->flags & OPDI_IS_VIEW) && !(card->desc.tags & OPD_OPTAG_INPLACE_VIEW) &&
        !(other = opdi_slices_node(call, card, self, args, node))) {
        opdi_node_release(node);
        return -1;
    }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    int rc = opdi_below_autograd(call);
    if (rc == 0 && self->ndim > ndim + OPDI_NODE_EXTRA_DIMS) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "%s adds more than %d dimensions to its argument", call->op->name,
                      OPDI_NODE_EXTRA_DIMS);
    }
    if (rc == 0 && other && opdi_slice_same(self, &opdi_kept(other)[1])) { opdi_slices_attach(self, other, node); }
    else if (rc == 0) { opdi_rebase(call, card, self, args, node); }
    if (rc == 0 && opdi_self()->innermost.packer) { rc = opdi_node_pack(node); }
    opdi_node_release(node);
    if (other) { opdi_node_release(other); }
    return rc;
}

OPDI_COLD_BEGIN

/* Checks that opd_tensor_set_data may give tensor the memory of `data`.  Returns 0, or -1 and sets an error. */
static int opdi_check_set_data(const opd_tensor *tensor, const opd_tensor *data) {
    if (opdi_plain_tensor(tensor, "opd_tensor_set_data") || opdi_null_tensor(data, "opd_tensor_set_data")) {
        return -1;
    }
    if (tensor->flags & OPDI_BATCHED) {
        return opd_fail(OPD_ERROR_ARGUMENT, "modifying `data` under vmap transform is not allowed");
    }
    if ((data->meta && data->meta->inner) || (data->flags & OPDI_BATCHED) ||
        (tensor->backend == OPD_META) != (data->backend == OPD_META)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Attempted to call `variable.set_data(tensor)`, but `variable` and "
                        "`tensor` have incompatible tensor type.");
    }
    if (opd_tensor_requires_grad(tensor) && !opdi_differentiable(data)) {
        return opd_fail(OPD_ERROR_AUTOGRAD,
                        "data set to a tensor that requires gradients must be floating point or complex dtype");
    }
    if (opdi_is_inference(tensor) != opdi_is_inference(data)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_tensor_set_data: either both tensors must be inference tensors, or "
                        "neither (opd_clone makes a normal tensor)");
    }
    return !opdi_is_dual(tensor) ? 0
        : opd_fail(OPD_ERROR_AUTOGRAD, "cannot set the data of a variable that has a forward grad");
}

/* Gives `tensor` the memory, sizes and dtype of `data`.  The tensor keeps its version, its history and its identity.
   Returns 0, or -1 and sets an error. */
int opd_tensor_set_data(opd_tensor *tensor, opd_tensor *data) {
    const bool more = data && tensor && 2 * data->ndim > tensor->capacity;
    int64_t *dims = NULL;
    opdi_storage *storage;
    opdi_meta *meta;
    if (opdi_check_set_data(tensor, data)) { return -1; }
    if (tensor == data) { return 0; }
    if (!(meta = opdi_meta_of(tensor)) || opdi_own_replace(tensor)) { return -1; }
    if (more && !(dims = (int64_t *)opdi_alloc(2 * (size_t)data->ndim * sizeof *dims))) { return -1; }
    if (!(storage = opdi_storage_again(data->storage, OPDI_LOAD(&tensor->storage->version)))) {
        if (dims) { opdi_free(dims, 2 * (size_t)data->ndim * sizeof *dims); }
        return -1;
    }
    opdi_view_untie(tensor);
    if (tensor->storage->block == tensor) {
        meta->home = tensor->storage;
        opdi_unused_data_free(tensor);
    } else { opdi_storage_drop(tensor->storage); }
    tensor->storage = storage;
    tensor->data = data->data;
    tensor->begin = data->begin;
    if (dims) {
        opdi_free(meta->dims, (size_t)meta->dims_count * sizeof *dims);
        meta->dims = dims;
        meta->dims_count = 2 * data->ndim;
    }
    tensor->dims = more ? meta->dims : (int64_t *)(void *)(tensor + 1);
    tensor->dtype = data->dtype;
    tensor->backend = data->backend;
    tensor->backend_bit = data->backend_bit;
    tensor->functionality = data->functionality;
    const unsigned follow = OPDI_WRAPPED | OPDI_LAZY | OPDI_STORED;
    tensor->flags = (uint8_t)((tensor->flags & ~follow) | (data->flags & follow));
    opdi_set_dims(tensor, data->dims, data->dims + data->ndim, data->ndim, data->numel);
    return 0;
}
OPDI_COLD_END
