#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>derived      in-place and out= forms of operators, and the count of writes
//
//  This section has the kernels of derived forms, which are the in-place and out= forms of an operator.  Such a kernel
//  runs the kernel of the functional form with the targets as its results; the targets are the tensors that the derived
//  form writes.  The kernel at ADInplaceOrView (opdi_version_kernel) runs before the kernels of the backends.  It
//  counts writes and refuses forbidden writes.
//----------------------------------------------------------------------------------------------------------------------

/* Converts the arguments of a derived form to `args`, the arguments of the functional form.  `target` is the tensor to
   write.  An argument that the derived form lacks gets its default value or, if it is a dtype or device, the dtype or
   device of `target`.  Returns 0. */
OPDI_INTERNAL int opdi_derived_args(const opd_call *call, const opdi_card *card, opd_tensor *target, opd_value *args) {
    const opd_op *base = card->base->op;
    for (int i = 0; i < base->nargs; i++) {
        const opdi_arg *arg = &base->schema->args[i];
        int from = card->map[i];
        if (from >= 0) { args[i] = call->args[from]; }
        else if (strcmp(arg->name, "dtype") == 0) { args[i] = opd_value_int(target->dtype); }
        else if (strcmp(arg->name, "device") == 0) { args[i] = opd_value_device(opd_tensor_device(target)); }
        else { args[i] = arg->has_default ? arg->value : opd_value_none(); }
    }
    return 0;
}

/* Computes the range of bytes that `tensor` will occupy once it has the sizes of `got` (NULL: its own sizes), and
   writes it to *begin and *end.  Returns false if the bytes are not one contiguous range, or if the tensor will get
   other memory. */
static bool opdi_target_span(const opd_tensor *tensor, const opd_tensor *got, const char **begin, const char **end) {
    const bool as_is = !got || opdi_has_sizes(tensor, got->dims, got->ndim);
    const int64_t numel = as_is ? tensor->numel : got->numel;
    *begin = tensor->data;
    if (!tensor->data || !numel || (as_is && !opdi_is_dense(tensor))) { return false; }
    const int64_t bytes = opdi_elements_bytes(tensor->dtype, numel);
    if (!as_is && bytes > tensor->storage->data + tensor->storage->bytes - tensor->data) { return false; }
    *end = tensor->data + bytes;
    return true;
}
/* Checks that none of the `count` targets `to` share memory with each other.  A target is taken with the sizes of its
   result in `got` or, if `got` is NULL, with its own sizes.  Returns 0, or -1 and sets an error. */
static int opdi_check_apart(opd_tensor *const *to, opd_tensor *const *got, int count) {
    const char *begin[2], *end[2];
    for (int i = 1; i < count; i++) {
        for (int k = 0; k < i; k++) {
            if (to[i] != to[k] && (!opdi_same_memory(to[i], to[k]) ||
                                   !opdi_target_span(to[i], got ? got[i] : NULL, &begin[0], &end[0]) ||
                                   !opdi_target_span(to[k], got ? got[k] : NULL, &begin[1], &end[1]) ||
                                   end[0] <= begin[1] || end[1] <= begin[0])) { continue; }
            return opd_fail(OPD_ERROR_ARGUMENT, "unsupported operation: two of the written-to tensors share memory. "
                            "Please clone() one of them before performing the operation.");
        }
    }
    return 0;
}
/* Checks `out`, the tensor that the call passes to argument number `arg`, an out= argument.  It must not be a wrapped
   number, and may be a meta tensor only if another argument is a meta tensor.  Returns 0, or -1 and sets an error. */
static int opdi_check_out(const opd_call *call, int arg, const opd_tensor *out) {
    const char *name = call->op->schema->args[arg].name;
    const opd_tensor *other = NULL;
    if (out->flags & OPDI_WRAPPED) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a number cannot be written: argument '%s' must be a tensor", name);
    }
    if (out->backend != OPD_META) { return 0; }
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &call->args[i];
        const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->tag == OPD_TAG_TENSORS &&
            value->n ? value->u.tensors[0] : NULL;
        if (!tensor || call->op->written_args >> i & 1 || tensor->flags & OPDI_WRAPPED) { continue; }
        if (tensor->backend == OPD_META) { return 0; }
        other = tensor;
    }
    return !other ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "Expected all tensors to be on the same device, but found at "
                                 "least two devices, %s and meta! (argument '%s')", opdi_device_names[other->backend],
                                 name);
}
/* Checks that the `count` targets `to` share memory with arguments only as the tags of the operator's descriptor allow.
   Returns 0, or -1 and sets an error. */
static int opdi_check_shared(const opd_call *call, const opdi_card *card, opd_tensor *const *to, int count) {
    const uint32_t how = card->desc.tags & OPDI_OPTAG_OUT_APART;
    const int nargs = how == OPDI_OPTAG_OUT_SELF ? 1 : call->op->nargs;
    for (int i = 0; i < nargs; i++) {
        const opd_value *value = &call->args[i];
        const int n = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
        for (int k = 0; k < n * count && !(call->op->written_args >> i & 1); k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k / count];
            if (!tensor || (how == OPDI_OPTAG_OUT_SELF &&
                            !opdi_has_sizes(to[0], opdi_sizes(tensor), tensor->ndim))) { continue; }
            if (opdi_check_overlap(to[k % count], tensor, how == OPDI_OPTAG_OUT_APART)) { return -1; }
        }
    }
    return 0;
}
/* Checks that `self`, which a pointwise operator writes, overlaps no other argument in part.  The argument `value` of
   masked_fill_ may be an element of self.  Returns 0, or -1 and sets an error. */
static int opdi_check_operands(const opd_call *call, const opd_tensor *self) {
    for (int i = 1; i < call->op->nargs; i++) {
        const opd_tensor *tensor = call->args[i].tag == OPD_TAG_TENSOR ? call->args[i].u.t : self;
        if (tensor == self || !opdi_same_memory(tensor, self)) { continue; }
        if (strcmp(call->op->schema->args[i].name, "value") == 0) { continue; }
        if (opdi_check_partial_overlap(self, tensor)) { return -1; }
    }
    return 0;
}
/* Writes to `targets` the tensors that a derived call writes: self, or the out arguments in order.  Returns their
   number.  Returns -1 and sets an error if one of them must not be written. */
OPDI_INTERNAL int opdi_derived_targets(const opd_call *call, const opdi_card *card, opd_tensor **targets) {
    uint64_t mask = call->op->written_args;
    int count = 0;
    if (card->inplace) {
        targets[0] = call->args[0].u.t;
        if ((card->desc.tags & OPDI_OPTAG_OUT_APART) && opdi_check_shared(call, card, targets, 1)) { return -1; }
        const bool pointwise = (opdi_desc_tags(&card->desc) & OPD_OPTAG_POINTWISE) != 0;
        return pointwise && opdi_check_operands(call, targets[0]) ? -1 : 1;
    }
    for (; mask && count < OPDI_MAX_RETURNS; mask &= mask - 1) {
        targets[count] = call->args[opdi_low_bit(mask)].u.t;
        if (opdi_check_out(call, opdi_low_bit(mask), targets[count++])) { return -1; }
    }
    if (count > 1 && opdi_check_apart(targets, NULL, count)) { return -1; }
    return (card->desc.tags & OPDI_OPTAG_OUT_APART) && opdi_check_shared(call, card, targets, count) ? -1 : count;
}

/* Copies results to their targets if the kernel has written them to other tensors, after checking that these targets
   may be written.  Returns 0, or -1 and sets an error. */
static int opdi_derived_commit(opd_call *call) {
    opd_tensor *got[OPDI_MAX_RETURNS], **to = call->targets;
    const int nrets = call->op->nrets;
    bool apart = true;
    for (int i = 0; i < nrets; i++) {
        got[i] = call->rets[i].tag == OPD_TAG_TENSOR ? call->rets[i].u.t : to[i];
        if (got[i] == to[i]) { continue; }
        apart = false;
        if (opdi_check_target(call, i, got[i]->dims, got[i]->ndim, (opd_scalar_type)got[i]->dtype)) { return -1; }
    }
    if (apart) { return 0; }
    if (nrets > 1 && opdi_check_apart(to, got, nrets)) { return -1; }
    for (int i = 0; i < nrets; i++) {             /* copy results that view a target */
        for (int k = 0; k < nrets && got[i] != to[i]; k++) {
            if (!opdi_same_memory(got[i], to[k])) { continue; }
            opd_tensor *copy = opdi_own(opdi_tensor_make(got[i]->dims, NULL, got[i]->ndim,
                                                         (opd_scalar_type)got[i]->dtype, opdi_place_of(got[i])));
            if (!copy || opdi_copy(copy, got[i])) { return -1; }
            got[i] = copy;
        }
    }
    for (int i = 0; i < nrets; i++) {
        if (got[i] == to[i]) { continue; }
        if (!opdi_has_sizes(to[i], got[i]->dims, got[i]->ndim) && opdi_resize(to[i], got[i]->dims, got[i]->ndim)) {
            return -1;
        }
        if (opdi_copy(to[i], got[i])) { return -1; }
    }
    return 0;
}

/* The kernel of in-place and out= forms on every backend.  Runs the kernel of the functional form, with the targets as
   its results.  If a result needs separate memory (because of another dtype or overlap), copies it to its target
   afterwards.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_derived_kernel(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    opd_op *base = card->base->op;
    const opdi_table *table = OPDI_ACQUIRE(&base->table);
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor *targets[OPDI_MAX_RETURNS];
    opd_call other;
    int rc = 0;
    if (!table && !(table = opdi_table_make(base))) { return -1; }
    if (opdi_derived_targets(call, card, targets) < 0 || opdi_derived_args(call, card, targets[0], args)) { return -1; }
    other.op = base;
    other.args = args;
    other.rets = rets;
    other.keys = call->keys;
    other.slot = call->slot;
    other.flags = call->flags & OPDI_STORED;
    other.targets = targets;
    other.inplace = card->inplace;
    other.stands_in = false;
    other.elementwise = (opdi_desc_tags(&card->desc) & OPD_OPTAG_POINTWISE) != 0;
    other.exact = !card->inplace && (card->desc.tags & OPDI_OPTAG_OUT_EXACT);
    const opdi_slot *slot = &table->slots[other.slot];
    if (opdi_invoke(call->th, &other, other.flags ? opdi_stored_slot(&other, slot) : slot)) { return -1; }
    if (base->nrets != 1 || rets[0].tag != OPD_TAG_TENSOR || rets[0].u.t != targets[0]) {
        rc = opdi_derived_commit(&other);
    }
    opdi_rets_drop(&other);
    for (int i = 0; i < call->op->nrets && rc == 0; i++) { rc = opd_return_tensor(call, targets[i]); }
    return rc;
}

/* Copies `got`, the result, into the tensor `to` with the operator copy_.  If `resize` is true, `to` gets the sizes of
   got; if false, fails if the sizes differ.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_derived_copy(opd_tensor *to, opd_tensor *got, bool resize) {
    static opd_op *copy;
    opd_value args[3];
    if (got == to) { return 0; }
    if (!opd_can_cast((opd_scalar_type)got->dtype, (opd_scalar_type)to->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "result type %s can't be cast to the desired output type %s",
                        opd_dtype_name((opd_scalar_type)got->dtype), opd_dtype_name((opd_scalar_type)to->dtype));
    }
    if (opdi_same_memory(got, to) && !(got = opd_clone(got))) { return -1; }
    if (!opdi_has_sizes(to, got->dims, got->ndim)) {
        char first[256], second[256];
        if (!resize) {
            return opd_fail(OPD_ERROR_SHAPE, "output with shape %s doesn't match the broadcast shape %s",
                            opdi_sizes_text(to->dims, to->ndim, first, sizeof first),
                            opdi_sizes_text(got->dims, got->ndim, second, sizeof second));
        }
        if (opdi_resize(to, got->dims, got->ndim)) { return -1; }
    }
    args[0] = opd_value_tensor(to);
    args[1] = opd_value_tensor(got);
    args[2] = opd_value_bool(false);
    return opd_call_op(OPD_OP(&copy, OPDI_NAME(copy_, "aten::copy_")), args, 3) ? 0 : -1;
}

/* If the operator requires it, checks that the target `to` has the dtype of the result `got`.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_derived_exact(const opd_call *call, const opdi_card *card, const opd_tensor *to,
                                     const opd_tensor *got) {
    if (!(card->desc.tags & OPDI_OPTAG_OUT_EXACT) || got->dtype == to->dtype) { return 0; }
    if (!(card->base->desc.tags & OPDI_OPTAG_OUT_EXACT)) {                   /* only the descriptor of the derived form
                                                                                has the tag */
        return opdi_check_exact(call, to, (opd_scalar_type)got->dtype);
    }
    return opd_fail(OPD_ERROR_DTYPE, "the %s given to %s has dtype %s but the operation's result requires dtype %s",
                    card->inplace ? "base" : "output", call->op->schema->name,
                    opd_dtype_name((opd_scalar_type)to->dtype), opd_dtype_name((opd_scalar_type)got->dtype));
}
/* The kernel of in-place and out= forms of a composite operator: computes the results and then copies them to the
   targets with copy_, which autograd records.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_derived_composite(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor *targets[OPDI_MAX_RETURNS], *got[OPDI_MAX_RETURNS];
    int count = opdi_derived_targets(call, card, targets);
    if (count < 0) { return -1; }
    if (!card->inplace && opd_call_requires_grad(call)) { return opdi_autograd_out_kernel(call); }
    if (opdi_derived_args(call, card, targets[0], args)) { return -1; }
    if (card->inplace && opd_call_requires_grad(call)) {     /* nodes may save self, which is written later */
        opd_tensor *was = opd_clone(targets[0]);
        for (int i = 0; i < card->base->op->nargs; i++) {
            if (args[i].tag == OPD_TAG_TENSOR && args[i].u.t == targets[0]) { args[i].u.t = was; }
        }
        if (!was) { return -1; }
    }
    if (opd_call_all(card->base->op, rets, args, card->base->op->nargs)) { return -1; }
    for (int i = 0; i < count; i++) {
        got[i] = i < card->base->op->nrets && rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : targets[i];
        for (int k = 0; k < i; k++) {             /* copy results that view an earlier target */
            if (got[i] != targets[i] && opdi_same_memory(got[i], targets[k]) && !(got[i] = opd_clone(got[i]))) {
                return -1;
            }
        }
    }
    if (count > 1 && opdi_check_apart(targets, got, count)) { return -1; }
    for (int i = 0; i < count; i++) { if (opdi_derived_exact(call, card, targets[i], got[i])) { return -1; } }
    for (int i = 0; i < count; i++) { if (opdi_derived_copy(targets[i], got[i], !card->inplace)) { return -1; } }
    for (int i = 0; i < call->op->nrets; i++) {
        if (opd_return_tensor(call, targets[i])) { return -1; }
    }
    return 0;
}

/* The kernel of out= forms with a list of tensors: copies the results of the functional form to the tensors of the
   list.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_derived_list(opd_call *call) {
    const opdi_card *card = (const opdi_card *)call->user;
    const opd_tensors out = opd_arg_tensors(call, opdi_low_bit(call->op->written_args));
    opd_value args[OPD_MAX_ARGS], got;
    opd_tensor **list;
    int32_t j;
    for (int32_t k = 0; k < out.n; k++) {
        if (opdi_check_out(call, opdi_low_bit(call->op->written_args), out.data[k])) { return -1; }
    }
    if (opdi_derived_args(call, card, out.n ? out.data[0] : NULL, args) ||
        opd_call_all(card->base->op, &got, args, card->base->op->nargs)) {
        return -1;
    }
    if (got.n != out.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s(): expected %d out tensors, but got %lld", call->op->schema->name,
                        (int)got.n, (long long)out.n);
    }
    if (opdi_check_apart(out.data, got.u.tensors, got.n) || !(list = opdi_scope_tensors(got.n + 1))) { return -1; }
    for (int32_t k = 0; k < got.n; k++) {         /* copy results that view an earlier target */
        for (j = 0; j < k && !opdi_same_memory(got.u.tensors[k], out.data[j]); j++) { }
        list[k] = j < k ? opd_clone(got.u.tensors[k]) : got.u.tensors[k];
        if (!list[k]) { return -1; }
    }
    for (int32_t k = 0; k < got.n; k++) {
        if (opdi_derived_copy(out.data[k], list[k], true)) { return -1; }
    }
    return 0;
}

/* Sets an error if a call whose arguments include a fake tensor writes a tensor that has memory.  Returns 0, or -1. */
OPDI_INTERNAL int opdi_check_fakes(const opd_op *op, const opd_value *args) {
    if (strcmp(op->schema->name, "copy_") == 0) { return 0; }                /* copy_ itself reports this error */
    for (uint64_t mask = op->written_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        int32_t count = value->tag == OPD_TAG_TENSOR ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (!tensor || tensor->backend == OPD_META) { continue; }
            return opd_fail(OPD_ERROR_ARGUMENT, "Expected all tensors to be on the same device, but found at least two "
                            "devices, meta and %s! (argument '%s')", opdi_device_names[tensor->backend],
                            op->schema->args[opdi_low_bit(mask)].name);
        }
    }
    return 0;
}

/* Counts a write into `tensor`.  If `check` is true, counts nothing and only checks that the tensor may be written.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_version_up(opdi_thread *thread, opd_tensor *tensor, bool check) {
    if (OPDI_UNLIKELY(opdi_is_inference(tensor))) {
        return !check || thread->state.inference ? 0
            : opd_fail(OPD_ERROR_AUTOGRAD, "Inplace update to inference tensor outside InferenceMode is not allowed. "
                       "You can make a clone to get a normal tensor before doing inplace update.");
    }
    if (check && OPDI_UNLIKELY(thread->innermost.tape != 0) && opdi_is_captured(thread, tensor)) { return -1; }
    if (check) {
        return OPDI_UNLIKELY(thread->innermost.mutation != NULL) ? opdi_mutation_write(thread->innermost.mutation,
            tensor) : 0;
    }
    if (OPDI_UNLIKELY(tensor->flags & OPDI_BATCHED)) { return 0; }  /* the write into the wrapped tensor is counted */
    (void)OPDI_ADD(&tensor->storage->version, 1u);
    return 0;
}
/* Returns the index of an argument of the call that has a tensor in the storage of `tensor`, or -1 if there is none.
   If `written` is true, considers the arguments that the call writes; if false, only leaves that require grad. */
static int opdi_arg_in_memory(const opd_call *call, const opd_tensor *tensor, bool written) {
    const opd_op *op = call->op;
    for (uint64_t mask = written ? op->written_args : op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        const int32_t count = value->tag == OPD_TAG_TENSOR ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *arg = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (arg && arg->storage == tensor->storage && !(arg->flags & OPDI_BATCHED) &&
                (written || ((arg->flags & OPDI_REQUIRES_GRAD) && !arg->grad_fn))) { return opdi_low_bit(mask); }
        }
    }
    return -1;
}
/* Checks a write of `tensor` by a kernel below Autograd.  If `tensor` is a leaf that requires grad and an argument of
   the kernel's own call, the schema must declare the write.  Otherwise autograd would miss it, because the operators
   that a kernel calls are not recorded.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_check_undeclared(const opd_call *call, const opd_tensor *tensor) {
    const opd_call *hop = call, *found = NULL;
    int arg = -1;
    for (; hop && hop->op == call->op && hop->args == call->args; hop = hop->outer) {
        if (hop->keys.functionality & OPDI_AUTOGRAD_BITS) { return 0; }          /* Autograd has checked the write */
    }
    for (; hop; hop = hop->outer) {
        if (opdi_arg_in_memory(hop, tensor, true) >= 0) { return 0; }
        if (found || !(hop->keys.functionality & OPDI_AUTOGRAD_BITS)) { continue; }
        if ((arg = opdi_arg_in_memory(hop, tensor, false)) >= 0) { found = hop; }
    }
    return !found ? 0 : opd_fail(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place "
                                 "operation: the kernel of %s writes into its argument '%s' with %s. Declare this in "
                                 "the schema (Tensor(a!) %s), or write into a copy (opd_clone)", found->op->name,
                                 found->op->schema->args[arg].name, call->op->name, found->op->schema->args[arg].name);
}
static int opdi_versions_up(const opd_call *call, bool check) {
    const opdi_state *state = &call->th->state;
    const bool inner = check && call->outer && !state->no_grad && !(state->allow & OPDI_AUTOGRAD_BITS);
    for (uint64_t mask = call->op->written_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        const int32_t count = value->tag == OPD_TAG_TENSOR ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
        for (int32_t k = 0; k < count; k++) {
            opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (!tensor) { continue; }
            if (OPDI_UNLIKELY(inner) && !(tensor->flags & OPDI_BATCHED) && opdi_check_undeclared(call, tensor)) {
                return -1;
            }
            if (opdi_version_up(call->th, tensor, check)) { return -1; }
        }
    }
    return 0;
}
/* The kernel at ADInplaceOrView: checks that the written arguments may be written, runs the kernels below, and then
   counts one write of each written argument.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_version_kernel(opd_call *call) {
    if ((call->keys.backends >> OPD_META & 1) && !call->th->innermost.fake &&  /* in fake mode, fakes may be written */
        opdi_check_fakes(call->op, call->args)) { return -1; }
    if (opdi_versions_up(call, true)) { return -1; }
    call->th->state.allow &= ~OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW);        /* the writes of operators that the kernel
                                                                              calls are not counted */
    if (opd_redispatch(call, opd_keyset_and(call->keys, opd_keyset_below(OPD_F_AD_INPLACE_OR_VIEW)))) {
        return -1;
    }
    return opdi_versions_up(call, false);
}

OPDI_COLD_BEGIN

/* Runs the kernels below and counts the writes of a call.  If the first result shares an argument's memory, makes it a
   view without a backward function.  Returns 0, or -1 and sets an error. */
int opd_inplace_or_view_not_implemented(opd_call *call) {
    const opd_op *op = call->op;
    bool tied = false;
    if (opdi_version_kernel(call)) { return -1; }
    for (int k = 0; k < op->nrets; k++) {
        opd_tensor *tensor = call->rets[k].tag == OPD_TAG_TENSOR ? call->rets[k].u.t : NULL;
        for (int i = 0; tensor && i < op->nargs; i++) {
            const opd_value *value = &call->args[i];
            if (value->tag != OPD_TAG_TENSOR || value->u.t == tensor || value->u.t->storage != tensor->storage ||
                op->written_args >> i & 1) { continue; }
            if (k > 0 || tied) {
                return opd_fail(OPD_ERROR_AUTOGRAD, "%s: only the first result may be a view, and only of one argument",
                                op->name);
            }
            tied = true;
            if (!(tensor->flags & OPDI_IS_VIEW) && tensor->storage->block != tensor) {
                opdi_view_tie(tensor, value->u.t, call->th->state.no_grad ? OPDI_VIEW_NO_GRAD : OPDI_VIEW_DEFAULT);
            }
            if ((tensor->flags & OPDI_IS_VIEW) && opdi_view_record_of(tensor)->creation == OPDI_VIEW_DEFAULT) {
                opdi_view_record_of(tensor)->creation = OPDI_VIEW_NO_FORMULA;
            }
        }
    }
    return 0;
}
OPDI_COLD_END

