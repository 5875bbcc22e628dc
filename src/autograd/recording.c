#include "autograd.h"

//== recording =========================================================================================================
//
//  How a call is recorded in the autograd graph.  An indented function is called by the function above it.
//    opdi_autograd_kernel          the kernel at Autograd of operators with a backward function; if an argument has a
//                                  tangent, calls opdi_forward_kernel instead of the next function
//      opdi_recording_kernel         if nothing requires grad, only calls opdi_below_autograd; if the operator writes
//                                    arguments, only calls opdi_recording_writes; else calls, one after another,
//        opdi_below_autograd           runs the operator's kernel below Autograd
//        opdi_unalias_results          makes aliases of results that do not belong to the call alone
//        opdi_record                   lists the result tensors in one array
//          opdi_record_outs
//            opdi_node_make              makes the node
//            opdi_link_edges             points the node's edges to the arguments' histories
//            opdi_save_args              saves the arguments that the operator's descriptor names
//            opdi_attach                 makes the node the history of the results
//  Other kernels at Autograd:
//    opdi_autograd_registered      if the backward function was registered separately: makes the operator descriptor,
//                                  then calls opdi_autograd_kernel
//    opdi_autograd_fallback        if there is no backward function: calls opdi_not_implemented_in or opdi_warn_in,
//                                  which call opdi_record with a node that fails or warns in backward
//  Functions that kernels call themselves:
//    opd_autograd_record           calls opdi_record_manually
//    opd_autograd_apply            calls opdi_function_record

/* Returns the number of edges that the node of a call needs: one for each tensor argument and for each element of a
   list of tensors. */
OPDI_INTERNAL int opdi_count_edges(const opd_op *op, const opd_value *args) {
    int count = op->ntensors;
    for (uint64_t mask = op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        count += value->tag == OPD_TAG_TENSORS ? value->n : 0;
    }
    return count;
}

/* Points the edges of `node` to the histories of the arguments, in the order of the schema.  Each element of a list has
   its own edge. */
OPDI_INTERNAL void opdi_link_edges(opd_node *node, const opd_op *op, const opd_value *args) {
    opdi_edge *edge = opdi_edges(node);
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR) { opdi_edge_to(edge++, value->u.t); }
        else if (op->tensor_args & mask & (0 - mask)) { edge++; }
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            opdi_edge_to(edge++, value->u.tensors[k]);
        }
    }
}

/* Copies the arguments that the operator's descriptor `card` keeps into node.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_save_args(opd_node *node, const opdi_card *card, const opd_value *args) {
    opd_value *kept = opdi_kept(node);
    for (uint64_t mask = card->kept_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask), when = card->save_if[i];
        const bool sizes = (card->save_sizes >> i & 1) != 0;      /* sizes are not freed by backward */
        if (opdi_is_plain(&args[i])) {
            *kept++ = args[i];
            continue;
        }
        bool save = (card->save_args >> i & 1) && (when < 0 || opdi_arg_requires_grad(&args[when]));
        if (opdi_keep_form(kept, &args[i], save, sizes)) { return -1; }
        if (save && !sizes && (kept->tag == OPD_TAG_TENSOR || kept->tag == OPD_TAG_TENSORS)) {
            node->saved = OPDI_SAVED;
        }
        kept++;
    }
    return 0;
}

/* Writes the first `cap` result tensors of a call to outs, with lists flattened.  Returns the number of all result
   tensors. */
OPDI_INTERNAL int64_t opdi_flat_results(const opd_call *call, opd_tensor **outs, int64_t cap) {
    int64_t count = 0;
    for (int i = 0; i < call->op->nrets; i++) {
        const opd_value *value = &call->rets[i];
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++, count++) {
            if (count < cap) { outs[count] = value->u.tensors[k]; }
        }
        if (value->tag == OPD_TAG_TENSORS) { continue; }
        if (count < cap) { outs[count] = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL; }
        count++;
    }
    return count;
}

/* Returns true if only the call refers to its result `tensor`, and the tensor has no history.  `owned` tells if the
   call holds a reference to it.  If there are other references (the result is an argument, or is returned twice),
   opdi_unalias replaces the result. */
static inline bool opdi_is_own(const opd_tensor *tensor, bool owned) {
    return owned && OPDI_ACQUIRE(&tensor->refs) == 1 && !(tensor->flags & OPDI_REQUIRES_GRAD);
}
/* If other code, too, refers to the result *tensors (see opdi_is_own), replaces it by an alias.  Returns 0, or -1 and
   sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_unalias(opd_tensor **tensors, bool owned) {
    opd_tensor *old = *tensors;
    if (!old || opdi_is_own(old, owned)) { return 0; }
    opd_tensor *value = opdi_shallow_copy(old);
    if (!value) { return -1; }
    opdi_view_tie(value, old, OPDI_VIEW_CUSTOM);
    *tensors = value;
    if (owned) { opdi_drop(old); }
    return 0;
}
/* Calls opdi_unalias for each result of a call.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unalias_results(opd_call *call) {
    const opd_op *op = call->op;
    for (int32_t i = 0; i < op->nrets; i++) {
        opd_value *value = &call->rets[i];
        bool owned = (call->owned >> i & 1) != 0;
        if (op->ret_alias[i] >= 0) { continue; }
        if (OPDI_LIKELY(value->tag == OPD_TAG_TENSOR)) {
            if (value->u.t && !opdi_is_own(value->u.t, owned) && opdi_unalias(&value->u.t, owned)) { return -1; }
            call->owned |= 1u << i;
            continue;
        }
        for (int32_t k = 0; owned && value->tag == OPD_TAG_TENSORS && k < value->n; k++) {  /* the call owns the list */
            if (opdi_unalias((opd_tensor **)(uintptr_t)&value->u.tensors[k], true)) { return -1; }
        }
    }
    return 0;
}

static int opdi_attach_missing(const opd_call *call, opd_node *node, opd_tensor *tensor, int nr);

/* Returns true if the operator's descriptor declares that tensor number `element` of the results is constant (has no
   derivative).  Each element of a list counts as one result tensor. */
OPDI_INTERNAL bool opdi_constant_result(const opdi_card *card, const opd_value *rets, int element) {
    int i, count;
    for (i = 0; (count = rets[i].tag == OPD_TAG_TENSORS ? rets[i].n : 1) <= element; i++) { element -= count; }
    return (card->constant_results >> i & 1) != 0;
}

/* Makes the node of a call with the derivative `formula`, saves the values that the operator's descriptor names, and
   makes the node the history of the result tensors `outs` (with the elements of lists).  Returns 0, or -1 and sets an
   error. */
static int opdi_record_outs(opd_call *call, const opdi_card *card, const opdi_derivative *formula,
                            const opd_value *args, opd_tensor *const *outs, int nouts) {
    const opd_op *op = call->op;
    opd_context *ctx = NULL;
    int ret = 0;
    if (OPDI_UNLIKELY(formula->context) && !(ctx = opdi_context_setup(op, card, args, call->rets))) {
        return -1;
    }
    opd_node *node = opdi_node_make(formula, opdi_count_edges(op, args), card->nkept + opdi_context_kept_count(ctx),
                                    card->nresults, outs, nouts, 0);
    if (!node) {
        opdi_context_free(ctx);
        return -1;
    }
    opdi_link_edges(node, op, args);
    if (opdi_save_args(node, card, args) || (ctx && opdi_context_keep(ctx, node, outs, nouts))) {
        opdi_context_free(ctx);
        opdi_node_release(node);
        return -1;
    }
    for (int i = 0; i < nouts; i++) {
        if (OPDI_UNLIKELY(nouts > 1)) { (void)opdi_view_of_many(outs[i]); }
        if (OPDI_UNLIKELY(card->constant_results != 0) && opdi_constant_result(card, call->rets, i)) { continue; }
        if (OPDI_UNLIKELY(ctx != NULL) && opdi_context_constant(ctx, outs[i])) { continue; }
        if (OPDI_LIKELY(formula->fresh)) { opdi_attach(outs[i], node, i); }
        else if (opdi_attach_missing(call, node, outs[i], i)) {
            opdi_node_release(node);
            return -1;
        }
    }
    if (ctx) {
        opdi_context_tie(ctx);
        opdi_context_end_call(ctx);
    }
    for (int i = 0; card->save_results && i < op->nrets; i++) {
        opd_tensor *tensor = call->rets[i].tag == OPD_TAG_TENSOR ? call->rets[i].u.t : NULL;
        int when = card->save_result_if[i];
        if (!(card->save_results >> i & 1)) { continue; }
        if (tensor && (when < 0 || opdi_arg_requires_grad(&args[when]))) {
            if (OPDI_UNLIKELY(!formula->fresh) && (tensor->flags & OPDI_IS_VIEW)) {
                if (!(tensor = opdi_own(opdi_shallow_copy(tensor)))) {
                    opdi_node_release(node);
                    return -1;
                }
            }
            opdi_saved_results(node)[ret] = opdi_keep_result(tensor);
            if (tensor->grad_fn == node) { tensor->own |= OPDI_SAVED_BY_OWN; }
            node->saved = OPDI_SAVED;
        }
        ret++;
    }
    int i = OPDI_UNLIKELY(opdi_self()->innermost.packer != NULL) ? opdi_node_pack(node) : 0;
    opdi_node_release(node);
    return i;
}

#define OPDI_INLINE_OUTPUTS 64
/* Records a call whose kernel has run.  `args` are the arguments that the backward function sees, which may differ from
   the arguments of the call.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_record(opd_call *call, const opdi_card *card, const opdi_derivative *formula,
                              const opd_value *args) {
    opd_tensor *few[OPDI_INLINE_OUTPUTS], **outs = few;
    int64_t count = opdi_flat_results(call, few, OPDI_INLINE_OUTPUTS);
    if (OPDI_UNLIKELY(count > OPDI_INLINE_OUTPUTS)) {
        if (!(outs = (opd_tensor **)opdi_alloc((size_t)count * sizeof *outs))) { return -1; }
        (void)opdi_flat_results(call, outs, count);
    }
    int rc = opdi_record_outs(call, card, formula, args, outs, (int)count);
    if (outs != few) { opdi_free(outs, (size_t)count * sizeof *outs); }
    return rc;
}

/* Checks that no argument requires grad if the operator's descriptor says that the derivative with respect to it does
   not exist (constant_args).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_check_constant(const opd_call *call, const opdi_card *card) {
    for (uint64_t mask = card->constant_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        if (opdi_arg_requires_grad(&call->args[i])) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "The function '%s' is not differentiable with respect to argument "
                            "'%s'. This input must not require grad.", call->op->schema->name,
                            call->op->schema->args[i].name);
        }
    }
    return 0;
}

OPDI_COLD_BEGIN

/* The functions below are for operators without a backward function. */

OPDI_INTERNAL int opdi_fallback_mode;                    /* opd_autograd_fallback_mode */
opd_autograd_fallback_mode opd_autograd_fallback_set(opd_autograd_fallback_mode mode) {
    opd_autograd_fallback_mode was = (opd_autograd_fallback_mode)OPDI_LOAD(&opdi_fallback_mode);
    OPDI_STORE(&opdi_fallback_mode, (int)mode);
    return was;
}

/* Returns true if tensor is one of the call's written arguments.  Written lists of tensors are not searched. */
static bool opdi_writes_it(const opd_call *call, const opd_tensor *tensor) {
    for (uint64_t mask = tensor ? call->op->written_args : 0; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR && value->u.t == tensor) { return true; }
    }
    return false;
}

/* Returns the number of the edge that belongs to `tensor`, a written argument, in the call's node. */
static int opdi_written_edge(const opd_call *call, const opd_tensor *tensor) {
    int edge = 0;
    for (uint64_t mask = call->op->tensor_args | call->op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        if ((call->op->written_args & mask & (~mask + 1)) && value->tag == OPD_TAG_TENSOR && value->u.t == tensor) {
            break;
        }
        edge += call->op->tensor_args & mask & (~mask + 1) ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
    }
    return edge;
}
/* Returns a mask with a bit for each argument that is written and returned as a result. */
OPDI_INTERNAL uint64_t opdi_written_returned(const opd_op *op) {
    uint64_t mask = 0;
    for (int i = 0; i < op->nrets; i++) { mask |= op->ret_alias[i] >= 0 ? (uint64_t)1 << op->ret_alias[i] : 0; }
    return mask & op->written_args;
}
/* Returns the index of the first argument that is written but is not returned as a result, or -1 if there is none. */
static int opdi_written_unseen(const opd_op *op) {
    const uint64_t mask = op->written_args & ~opdi_written_returned(op);
    return mask ? opdi_low_bit(mask) : -1;
}

/* Checks that a call of an operator without a backward function can be recorded, although it writes arguments.  Runs
   before anything is written.  Returns 0, or -1 and sets an error. */
static int opdi_check_unwritten(const opd_call *call) {
    const opd_op *op = call->op;
    const int unseen = opdi_written_unseen(op);
    for (uint64_t mask = op->written_args; mask; mask &= mask - 1) {
        const int i = opdi_low_bit(mask);
        if (op->schema->args[i].keyword_only) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "%s(): functions with out=... arguments don't support automatic "
                            "differentiation, but one of the arguments requires grad.", op->schema->name);
        }
        if (call->args[i].tag == OPD_TAG_TENSOR && opdi_check_inplace(call->args[i].u.t)) { return -1; }
    }
    if (unseen < 0) { return 0; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s writes its argument '%s', does not return it and has no backward function, "
                    "but one of its arguments requires grad; give the operator a .backward, which may be "
                    "OPD_NOT_DIFFERENTIABLE", op->name, op->schema->args[unseen].name);
}

/* Checks that at most one result of an operator is a view, because a node can be the history of only one view.  Returns
   0, or -1 and sets an error. */
static int opdi_check_one_alias(const opd_op *op) {
    int count = 0;
    for (int i = 0; i < op->nrets; i++) {
        count += opd_schema_is_aliasing(op->schema, OPD_RESULT(i)) &&
            !opd_schema_is_mutable_at(op->schema, OPD_RESULT(i), NULL);
    }
    if (count < 2) { return 0; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s: Expected only a single output in the operator schema to have a non-write "
                    "alias annotation (i.e., 'Tensor(a)'). Non-composite functions where multiple outputs are aliased "
                    "with inputs aren't supported. Please rewrite your function as a composite function.", op->name);
}

/* Runs a call of an operator without a backward function with the kernel that `table` has below Autograd.  Records a
   node that fails in backward with "not implemented".  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_not_implemented_in(const opdi_table *table, opd_call *call) {
    opdi_card *card = OPDI_ACQUIRE(&call->op->card);
    if (opdi_refresh_args(call) || opdi_check_one_alias(call->op) || opdi_check_unwritten(call)) { return -1; }
    call->th->state.allow &= ~OPDI_AUTOGRAD_BITS;
    if (opdi_redispatch_in(table, call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))) {
        return -1;
    }
    if (!card && !(card = opdi_bare_card(call->op))) { return -1; }
    return opdi_unalias_results(call) ? -1 : opdi_record(call, card, &card->missing, call->args);
}

static opd_tensor *opdi_warn_hook(opd_tensor *grad, void *user) {
    (void)grad;
    opdi_warn_missing((const opd_op *)user, "we are trying to backprop through it");
    return NULL;
}

/* Makes `node` the history of `tensor`, result number `nr` of a call without a backward function.  If `tensor` is a
   written argument, `node` replaces its history.  If `node` only warns, the tensor keeps the history that it has, and
   gets a hook that warns when its gradient arrives.  Returns 0, or -1 and sets an error. */
static int opdi_attach_missing(const opd_call *call, opd_node *node, opd_tensor *tensor, int nr) {
    const bool written = opdi_writes_it(call, tensor), warns = node->formula->fn == opdi_warn_formula;
    if (!warns && written) { return opdi_rebase_to(tensor, node, nr, opdi_written_edge(call, tensor)); }
    if (warns && tensor && opdi_requires_grad(tensor)) {
        if (!opd_tensor_hook_add(tensor, opdi_warn_hook, call->op, NULL)) { return -1; }
        tensor = (tensor->flags & OPDI_IS_VIEW) && written ? opdi_view_record_of(tensor)->base : NULL;
        return !tensor || !opdi_requires_grad(tensor) || opd_tensor_hook_add(tensor, opdi_warn_hook, call->op, NULL) ? 0
            : -1;
    }
    if (!warns || !written) { opdi_attach(tensor, node, nr); }
    return 0;
}

/* Runs a call of an operator without a backward function in the mode OPD_AUTOGRAD_FALLBACK_WARN.  If the kernel itself
   records nodes, they remain; in addition, a node is recorded that warns in backward.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_warn_in(const opdi_table *table, opd_call *call) {
    opdi_card *card = OPDI_ACQUIRE(&call->op->card);
    if (opdi_redispatch_in(table, call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))) {
        return -1;
    }
    if (opdi_written_unseen(call->op) >= 0) {
        opdi_warn_missing(call->op, "it writes an argument that it does not return, and one of them requires grad");
    }
    if (!card && !(card = opdi_bare_card(call->op))) { return -1; }
    return opdi_record(call, card, &card->warning, call->args);
}
OPDI_COLD_END
