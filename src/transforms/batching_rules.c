#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>batching     calls through the layers, batching rules: running an operator on a batch of examples
//
//  This section has rules for families of operators, the loop over examples for operators without a rule, and helper
//  functions for writing rules.
//----------------------------------------------------------------------------------------------------------------------

//== batching rules ====================================================================================================

OPDI_INTERNAL int opdi_batch_yield(const opd_op *op, const opd_value *args, int i);
OPDI_INTERNAL bool opdi_composite_slot(opd_op *op, opdi_slot *slot);
OPDI_INTERNAL opd_tensor *opdi_batch_merge(opd_tensor *tensor, int at);
OPDI_INTERNAL opd_tensor *opdi_batch_split(opd_tensor *tensor, int at, int64_t count);

/* Runs the kernel in *slot with the arguments of `call`, as a new call, and moves the results to `call`.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_call_slot(opd_call *call, const opdi_slot *slot, opd_key key) {
    opd_call other;
    other.op = call->op;
    other.args = call->args;
    other.rets = call->rets;
    other.targets = NULL;
    other.keys = call->keys;
    other.slot = key;
    other.flags = 0;
    int rc = opdi_invoke(call->th, &other, slot);
    call->filled = other.filled;
    call->owned = other.owned;
    call->cursor = other.cursor;
    return rc;
}

OPDI_INTERNAL bool opdi_op_is_random(opd_op *op) {
    if (OPDI_UNLIKELY(!OPDI_LOAD(&op->random))) {
        OPDI_STORE(&op->random, (int8_t)(opd_op_tags(op) & OPD_OPTAG_NONDETERMINISTIC_SEEDED ? 1 : -1));
    }
    return OPDI_LOAD(&op->random) > 0;
}
/* Returns whether a call of `op` with the arguments `values` draws random numbers. */
OPDI_INTERNAL bool opdi_call_is_random(opd_op *op, const opd_value *values) {
    return opdi_op_is_random(op) && opdi_schema_draws(op->schema, values);
}

static int opdi_batch_missing(const opd_call *call, const char *why) {
    return opd_fail(OPD_ERROR_ARGUMENT, "Batching rule not implemented for %s%s", call->op->name, why);
}

/* Returns `value`, computed for all examples at once, as a result of the call; dim `dim` counts the examples.  Returns
   0.  If the value is not a tensor, returns -1 and sets an error, because only tensors can have examples. */
static int opdi_batch_return(opd_call *call, const opd_value *value, int dim) {
    if (value->tag == OPD_TAG_TENSOR) { return opd_batch_return(call, value->u.t, dim); }
    if (value->tag == OPD_TAG_TENSORS) { return opd_batch_return_list(call, value->u.tensors, value->n, dim); }
    return value->tag == OPD_TAG_NONE ? opd_return_value(call, *value)
        : opdi_batch_missing(call, ". We could not generate a fallback.");
}

/* Sets the error that an in-place or out= call cannot write argument `arg`: the argument is not batched, but the values
   to be written are.  Returns -1. */
static int opdi_batch_inplace_error(const opd_call *call, const char *arg) {
    return opd_fail(OPD_ERROR_ARGUMENT, "vmap: %s(%s, *extra_args) is not possible because there exists a Tensor "
                    "`other` in extra_args that has more elements than `%s`. This happened due to `other` being "
                    "vmapped over but `%s` not being vmapped over at level %d. Please try to use out-of-place "
                    "operators instead of %s.", call->op->name, arg, arg, arg, (int)call->th->innermost.rule->level,
                    call->op->name);
}
static int opdi_batch_check_written(const opd_call *call) {
    for (uint64_t mask = call->op->written_args; mask; mask &= mask - 1) {
        const int i = opdi_low_bit(mask);
        const opd_value *value = &call->args[i];
        for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSORS ? value->u.tensors[k] : value->u.t;
            if (tensor && !opdi_batched_at(tensor, call->th->innermost.rule->level)) {
                return opdi_batch_inplace_error(call, call->op->schema->args[i].name);
            }
        }
    }
    return 0;
}

/* Runs a kernel that calls operators.  The layer of the rule stays active, so that the calls of these operators are
   batched.  Returns 0, or -1 and sets an error. */
static int opdi_batch_slot(opd_call *call, const opdi_slot *slot) {
    opdi_thread *thread = call->th;
    opdi_layer *const rule = thread->innermost.rule, *const top = thread->innermost.layer;
    opdi_layer_set(thread, rule);
    thread->innermost.rule = NULL;
    int rc = opdi_call_slot(call, slot, OPD_KEY_OF(OPD_F_BATCHED));
    thread->innermost.rule = rule;
    opdi_layer_set(thread, top);
    return rc;
}
OPDI_INTERNAL int opdi_batch_as(opd_call *call, opd_kernel fn) {
    opdi_slot slot;
    slot.fn = fn;
    slot.user = NULL;
    return opdi_batch_slot(call, &slot);
}

/* The rule of composite operators: runs the composite kernel, whose operators are batched.  If there is no such kernel,
   loops over the examples.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_decompose(opd_call *call) {
    const opdi_card *card = OPDI_ACQUIRE(&call->op->card);
    opdi_slot slot = {NULL, NULL};
    if (!call->th->innermost.rule) {
        return opd_fail(OPD_ERROR_KERNEL, "opd_batch_decompose: no batching rule is running");
    }
    if (card && !card->with_user) {
        slot.fn = card->desc.composite;
        if (!slot.fn && card->desc.vmap == opd_batch_decompose) { slot.fn = card->desc.any; }
    }
    return slot.fn || opdi_composite_slot(call->op, &slot) ? opdi_batch_slot(call, &slot) : opd_batch_loop(call);
}

/* Sets the error that an example with `ndim` dims has too many dims, either alone or together with the dim that counts
   the examples.  Returns -1. */
static int opdi_batch_deep(int64_t ndim) {
    if (ndim > OPD_MAX_DIMS) { return (int)opdi_count_error(NULL, (int)OPDI_MIN(ndim, INT32_MAX)); }
    return opd_fail(OPD_ERROR_SHAPE, "vmap: the examples together have more than %d dimensions", OPD_MAX_DIMS);
}
/* Returns `value`, whose dim 0 counts the examples, with dims of size 1 inserted after dim 0, so that each example has
   `ndim` dims.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_batch_pad(opd_tensor *value, int ndim) {
    int64_t sizes[OPD_MAX_DIMS];
    int count = 0;
    if (!value || value->ndim - 1 >= ndim) { return value; }
    if (ndim >= OPD_MAX_DIMS) {
        (void)opdi_batch_deep(ndim);
        return NULL;
    }
    sizes[count++] = value->dims[0];
    for (int i = value->ndim - 1; i < ndim; i++) { sizes[count++] = 1; }
    for (int i = 1; i < value->ndim; i++) { sizes[count++] = value->dims[i]; }
    return opd_view(value, opd_ints_of(sizes, count));
}

/* Aligns the arguments of a pointwise call, so that dim 0 counts the examples in each argument.  This is necessary if
   different dims count the examples, or if the examples have different numbers of dims.  `ndim` is the largest number
   of dims of an example.

   If `zero_dim` is true, some arguments have examples without dims and another dtype than the other arguments.  In type
   promotion, a tensor without dims has less weight than a tensor with dims.  The tensor of all examples has a dim, so
   it is cast first.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_align(opd_call *call, opd_value *args, int ndim, bool zero_dim) {
    const opd_op *op = call->op;
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        const int i = opdi_low_bit(mask);
        opd_tensor *tensor = call->args[i].tag == OPD_TAG_TENSOR ? call->args[i].u.t : NULL;
        int dim;
        if (!tensor) { continue; }
        args[i].u.t = opd_batch_value(tensor, &dim);
        if (dim < 0) {                            /* a tensor without examples also keeps its weight in type
                                                     promotion, unless a tensor with dims decides the dtype */
            const bool equal = zero_dim && tensor->ndim == 0 && !(tensor->flags & OPDI_WRAPPED) &&
                opdi_batch_yield(op, call->args, i) < 0;
            if (equal) { args[i].u.t = opd_unsqueeze(tensor, 0); }
        } else {
            const bool yields = zero_dim && tensor->ndim == 0 && ndim > 0 && tensor->dtype != OPD_BOOL;
            int want = yields ? opdi_batch_yield(op, call->args, i) : -1;
            if (want >= 0 && want != tensor->dtype) { args[i].u.t = opd_to_dtype(args[i].u.t, (opd_scalar_type)want); }
            args[i].u.t = opdi_batch_pad(opd_batch_front(args[i].u.t, dim), ndim);
        }
        if (!args[i].u.t) { return -1; }
    }
    return 0;
}

/* The rule of pointwise operators: makes one call for all examples, because each element of a result depends on only
   one element of each argument.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_pointwise(opd_call *call) {
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_op *op = call->op;
    const int level = call->th->innermost.rule ? call->th->innermost.rule->level : 0;
    int ndim = 0, least = OPD_MAX_DIMS, alone = 0, dim = -1, dtype = -1;
    bool mixed = false, apart = false;
    if (OPDI_UNLIKELY(op->list_args != 0)) { return opd_batch_loop(call); }     /* lists are not aligned */
    if (op->written_args && opdi_batch_check_written(call)) { return -1; }
    for (int i = 0; i < op->nargs; i++) { args[i] = call->args[i]; }
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        opd_value *value = &args[opdi_low_bit(mask)];
        const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
        if (!tensor) { continue; }
        mixed = mixed || (dtype >= 0 && dtype != tensor->dtype);
        dtype = tensor->dtype;
        if (opdi_batched_at(tensor, level)) {
            const opdi_batched *batched = opdi_batched_of(tensor);
            apart = apart || (dim >= 0 && dim != batched->dim);
            dim = batched->dim;
            least = OPDI_MIN(least, tensor->ndim);
            ndim = OPDI_MAX(ndim, tensor->ndim);
            value->u.t = batched->value;
        } else { alone = OPDI_MAX(alone, tensor->ndim); }
    }
    apart = apart || (dim > 0 && OPDI_LOAD(&op->random) > 0);     /* random numbers must not depend on which dim counts
                                                                     the examples */
    if (OPDI_UNLIKELY(apart || least != ndim || alone > ndim - dim || (ndim == 0 && mixed))) {
        if (opdi_batch_align(call, args, OPDI_MAX(ndim, alone), least == 0 && mixed)) { return -1; }
        dim = 0;
    }
    if (opdi_call_with_defaults(call->th, op, rets, args, op->nargs, call->th->inside)) { return -1; }
    for (int i = 0; i < op->nrets; i++) {
        const int alias = op->ret_alias[i];
        if (alias >= 0 ? opd_return_tensor(call, call->args[alias].u.t) : opdi_batch_return(call, &rets[i], dim)) {
            return -1;
        }
    }
    return 0;
}

OPDI_COLD_BEGIN

/* Returns the dtype to which batched argument i must be cast before type promotion.  Its examples have no dims, so they
   have less weight than the tensor that has all examples.  Returns -1 if the argument keeps its dtype. */
OPDI_INTERNAL int opdi_batch_yield(const opd_op *op, const opd_value *args, int i) {
    const opd_scalar_type own = (opd_scalar_type)args[i].u.t->dtype;
    int dtype = -1;
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        const opd_tensor *tensor = args[opdi_low_bit(mask)].tag == OPD_TAG_TENSOR ? args[opdi_low_bit(mask)].u.t : NULL;
        if (!tensor || tensor->ndim == 0 || tensor->dtype == OPD_BOOL) { continue; }
        dtype = dtype < 0 ? tensor->dtype : (int)opd_promote_types((opd_scalar_type)dtype,
                                                                   (opd_scalar_type)tensor->dtype);
    }
    if (dtype < 0) { return -1; }
    if (opd_dtype_is_complex(own) && !opd_dtype_is_complex((opd_scalar_type)dtype)) { return -1; }
    if (opd_dtype_is_floating(own) && opd_dtype_is_integral((opd_scalar_type)dtype, true)) { return -1; }
    return dtype;
}

/* Returns true if a list argument has a tensor that is batched at the rule's layer. */
static bool opdi_any_listed(const opd_call *call) {
    for (uint64_t mask = call->op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (opdi_batched_at(value->u.tensors[k], call->th->innermost.rule->level)) { return true; }
        }
    }
    return false;
}

/* Finds the operator's CompositeImplicitAutograd kernel.  Returns true and sets *slot to this kernel if the operator's
   Autograd keys run it. */
OPDI_INTERNAL bool opdi_composite_slot(opd_op *op, opdi_slot *slot) {
    opdi_chosen how;
    opdi_lock(&opdi_registry.lock);
    const opdi_kernel *kernel = opdi_compute_slot(op, OPD_KEY_AUTOGRAD_CPU, &how);
    if (kernel && how == OPDI_CHOSEN_MATH) {
        slot->fn = kernel->fn;
        slot->user = kernel->user;
    }
    opdi_unlock(&opdi_registry.lock);
    return slot->fn != NULL;
}

static int opdi_fallback_mode_vmap;               /* set by opd_vmap_fallback */
static int64_t opdi_fallback_calls;
opd_vmap_fallback opd_vmap_fallback_set(opd_vmap_fallback mode) {
    const opd_vmap_fallback was = (opd_vmap_fallback)OPDI_LOAD(&opdi_fallback_mode_vmap);
    OPDI_STORE(&opdi_fallback_mode_vmap, (int)mode);
    return was;
}
int64_t opd_vmap_fallback_count(void) { return OPDI_LOAD(&opdi_fallback_calls); }

/* Returns true if a program has registered OPD_BATCH_LOOP as the operator's rule.  A loop over the examples needs no
   warning in this case. */
static bool opdi_loop_is_rule(const opd_op *op) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    const opdi_card *card = OPDI_ACQUIRE(&op->card);
    return (table && table->slots[OPD_F_BATCHED].fn == opd_batch_loop) ||
           (card && card->desc.vmap == opd_batch_loop && strncmp(op->name, "aten::", 6) != 0);
}

/* Counts a call that runs example by example.  Warns at the first such call of the operator.  Returns 0, or -1 and sets
   an error if the program has forbidden such calls. */
static int opdi_batch_slow(opd_call *call) {
    const int mode = OPDI_LOAD(&opdi_fallback_mode_vmap);
    (void)OPDI_ADD(&opdi_fallback_calls, (int64_t)1);
    if (opdi_loop_is_rule(call->op)) { return 0; }
    if (mode == OPD_VMAP_FALLBACK_ERROR) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s hit the vmap fallback which is currently disabled", call->op->name);
    }
    if (mode == OPD_VMAP_FALLBACK_WARN && !OPDI_LOAD(&call->op->slow_said)) {
        OPDI_STORE(&call->op->slow_said, (int8_t)1);
        opd_warn("There is a performance drop because there is no batching rule for %s: vmap runs it once for each "
                 "example.%s", call->op->name, strncmp(call->op->name, "aten::", 6) == 0 ? ""
                 : " Set `.vmap` of opd_op_desc (to OPD_BATCH_POINTWISE or another rule, or to OPD_BATCH_LOOP if the "
                 "loop is intended), or register a rule with opd_vmap_register.");
    }
    return 0;
}

/* Writes the arguments of example number `element` to `args`.  Returns 0, or -1 and sets an error. */
static int opdi_batch_example(opd_call *call, opd_value *args, int64_t element) {
    const opd_op *op = call->op;
    const int level = call->th->innermost.rule->level;
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        opd_value *value = &args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR && opdi_batched_at(value->u.t, level)) {
            value->u.t = opd_select(opdi_batched_of(value->u.t)->value, opdi_batched_of(value->u.t)->dim, element);
            if (!value->u.t) { return -1; }
        }
        if (value->tag != OPD_TAG_TENSORS) { continue; }
        opd_tensor **list = opdi_scope_tensors(value->n);
        for (int32_t j = 0; list && j < value->n; j++) {
            opd_tensor *tensor = value->u.tensors[j];
            list[j] = opdi_batched_at(tensor, level)
                ? opd_select(opdi_batched_of(tensor)->value, opdi_batched_of(tensor)->dim, element) : tensor;
            if (tensor && !list[j]) { return -1; }
        }
        if (!list) { return -1; }
        value->u.tensors = list;
    }
    return 0;
}

/* Returns result `i` of all `count` examples, stacked along dim 0.  If the result is a list, returns element `j` of the
   list, stacked in this way.  Result i of example k is rets[k * nrets + i].  If the result is undefined in all
   examples, returns NULL without an error.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_batch_stack(opd_call *call, const opd_value *rets, int64_t count, int i, int32_t j) {
    opd_tensor **all = opdi_scope_tensors((int)count);
    for (int64_t k = 0; all && k < count; k++) {
        const opd_value *value = &rets[k * call->op->nrets + i];
        if (value->tag == OPD_TAG_TENSORS) { all[k] = j < value->n ? value->u.tensors[j] : NULL; }
        else { all[k] = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL; }
        if (k && !all[k] != !all[0]) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: slow fallback received a mix of undefined and defined tensors as "
                           "the result of an operation", call->op->name);
            return NULL;
        }
    }
    return all && all[0] ? opd_stack(opd_tensors_of(all, count), 0) : NULL;
}

/* Stacks the results of `count` examples and returns them as the call's results.  If `none` is true, the call has no
   examples, and `rets` are the results for an example that was made to find their sizes.  Returns 0, or -1 and sets an
   error. */
static int opdi_batch_collect(opd_call *call, const opd_value *rets, int64_t count, bool none) {
    const opd_op *op = call->op;
    for (int i = 0; i < op->nrets; i++) {
        const opd_value *first = &rets[i];
        opd_tensor **list;
        if (op->ret_alias[i] >= 0) {
            if (opd_return_value(call, call->args[op->ret_alias[i]])) { return -1; }
            continue;
        }
        int32_t k = first->tag == OPD_TAG_TENSORS ? first->n : 1;
        if (!(list = opdi_scope_tensors(k))) { return -1; }
        for (int32_t j = 0; j < k; j++) {
            opd_tensor *tensor = opdi_batch_stack(call, rets, count, i, j);
            if (!opd_ok()) { return -1; }
            if (tensor && none) { tensor = opd_narrow(tensor, 0, 0, 0); }
            list[j] = tensor;
        }
        if (first->tag == OPD_TAG_TENSORS ? opd_batch_return_list(call, list, k, 0)
            : list[0] ? opd_batch_return(call, list[0], 0) : opd_return_value(call, opd_value_none())) { return -1; }
    }
    return 0;
}

/* Checks that a loop over the examples can work for an operator: the results must be tensors that are not views, and
   the operator may write only batched arguments.  Returns 0, or -1 and sets an error. */
static int opdi_batch_check_loop(opd_call *call) {
    const opd_op *op = call->op;
    for (int i = 0; i < op->nrets; i++) {
        const opdi_type *type = opdi_strip_optional(op->schema->returns[i].type);
        if (type->kind == OPDI_TYPE_LIST) { type = opdi_strip_optional(type->elems[0]); }
        if (type->kind != OPDI_TYPE_TENSOR) { return opdi_batch_missing(call, ". We could not generate a fallback."); }
        if (op->ret_alias[i] < 0 && opd_schema_is_aliasing(op->schema, OPD_RESULT(i))) {
            return opdi_batch_missing(call, "; the fallback path doesn't work on out= or view ops.");
        }
    }
    return opdi_batch_check_written(call);
}

/* Calls the operator with an example of ones or, if `ones` is false, of zeros, and writes the results to `rets`.  The
   caller needs only their sizes and dtypes.  Returns 0, or -1 and sets an error. */
static int opdi_batch_filled(opd_call *call, opd_value *rets, bool ones) {
    const opd_op *op = call->op;
    const int level = call->th->innermost.rule->level;
    opd_value args[OPD_MAX_ARGS];
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        opd_value *value = &args[opdi_low_bit(mask)];
        const int32_t count = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
        opd_tensor **list = opdi_scope_tensors(count);
        if (!list) { return -1; }
        for (int32_t j = 0; j < count; j++) {
            opd_tensor *tensor = value->tag == OPD_TAG_TENSORS ? value->u.tensors[j] : value->u.t;
            list[j] = tensor;
            if (opdi_batched_at(tensor, level)) {
                list[j] = opd_new_full(opdi_batched_of(tensor)->value, opd_ints_of(tensor->dims, tensor->ndim),
                                       opd_value_int(ones));
            }
            if (tensor && !list[j]) { return -1; }
        }
        if (value->tag == OPD_TAG_TENSORS) { value->u.tensors = list; } else if (count) { value->u.t = list[0]; }
    }
    return opd_call_all(call->op, rets, args, op->nargs);
}
/* Calls the operator with an example of ones or, if ones are wrong (for example, as indexes of a single element), with
   an example of zeros.  Returns 0, or -1 and sets the error for ones. */
static int opdi_batch_made(opd_call *call, opd_value *rets) {
    if (opdi_batch_filled(call, rets, true) == 0) { return 0; }
    opd_error_clear();
    if (opdi_batch_filled(call, rets, false) == 0) { return 0; }
    opd_error_clear();
    return opdi_batch_filled(call, rets, true);
}
/* Makes the results of a call without examples, with the sizes that the results for an example have.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_batch_empty(opd_call *call) {
    opd_value rets[OPDI_MAX_RETURNS];
    return opdi_batch_made(call, rets) ? -1 : opdi_batch_collect(call, rets, 1, true);
}

/* Runs the operator once for each example and stacks the results.  Returns 0, or -1 and sets an error. */
static int opdi_batch_each(opd_call *call) {
    const opdi_layer *layer = call->th->innermost.rule;
    opd_value args[OPD_MAX_ARGS];
    if (layer->size == 0) { return opdi_batch_empty(call); }
    opd_value *rets = (opd_value *)opdi_scope_alloc(((size_t)layer->size * (size_t)call->op->nrets + OPDI_MAX_RETURNS) *
                                                    sizeof *rets);
    for (int64_t k = 0; rets && k < layer->size; k++) {
        if (opdi_batch_example(call, args, k) ||
            opd_call_all(call->op, rets + k * call->op->nrets, args, call->op->nargs)) { return -1; }
    }
    return rets ? opdi_batch_collect(call, rets, layer->size, false) : -1;
}

/* The rule OPD_BATCH_LOOP: runs the operator once for each example.  It works for every operator that returns tensors
   or lists of tensors and is not a view.  Unlike the rule of PyTorch, it also supports lists, in-place operators, and
   batches without examples.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_loop(opd_call *call) {
    if (!call->th->innermost.rule) { return opd_fail(OPD_ERROR_KERNEL, "opd_batch_loop: no batching rule is running"); }
    return opdi_batch_check_loop(call) || opdi_batch_slow(call) ? -1 : opdi_batch_each(call);
}

/* Calls the operator for the first example.  Writes only to copies.  Returns 0, or -1 and sets an error. */
static int opdi_batch_first(opd_call *call, opd_value *rets) {
    opd_value args[OPD_MAX_ARGS];
    if (opdi_batch_example(call, args, 0)) { return -1; }
    for (uint64_t mask = call->op->written_args; mask; mask &= mask - 1) {
        opd_value *value = &args[opdi_low_bit(mask)];
        opd_tensor **list = value->tag == OPD_TAG_TENSORS ? (opd_tensor **)(uintptr_t)value->u.tensors : &value->u.t;
        const int32_t count = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
        for (int32_t i = 0; i < count; i++) { if (list[i] && !(list[i] = opd_clone(list[i]))) { return -1; } }
    }
    return opd_call_all(call->op, rets, args, call->op->nargs);
}
/* Handles sizes or dtypes that a rule does not support.  If they are invalid, calling the operator for one example
   reports the error; otherwise the operator runs example by example.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_unfit(opd_call *call) {
    opd_value rets[OPDI_MAX_RETURNS];
    const bool none = call->th->innermost.rule->size == 0;
    return (none ? opdi_batch_made(call, rets) : opdi_batch_first(call, rets)) ? -1 : opd_batch_loop(call);
}

OPDI_INTERNAL int opdi_batch_copy(opd_tensor *dst, const opd_tensor *src) {
    const bool deeper = !(dst->flags & OPDI_BATCHED) ||
        ((src->flags & OPDI_BATCHED) && opdi_batched_of(src)->level > opdi_batched_of(dst)->level);
    opdi_rule_frame was;
    if (opdi_untaped_begin(deeper ? src : dst, &was)) { return -1; }
    int rc = opdi_derived_copy(dst, (opd_tensor *)(uintptr_t)src, false);
    opdi_untaped_end(&was);
    return rc;
}
/* Returns one example of `tensor` as a tensor that is not batched, for operators that use only its sizes and strides.
   Returns NULL and sets an error on failure. */
static opd_tensor *opdi_batch_alias(const opd_tensor *tensor) {
    if (tensor->numel && tensor->storage->bytes == 0) {  /* without examples, the tensor has no memory, and an example
                                                            needs some */
        const opd_value none = opd_value_none();
        return opd_empty_strided_full(opd_ints_of(tensor->dims, tensor->ndim),
                                      opd_ints_of(tensor->dims + tensor->ndim, tensor->ndim),
                                      opd_value_int(tensor->dtype), none, opd_value_device(opd_tensor_device(tensor)),
                                      none);
    }
    opd_tensor *one = opdi_tensor_on(tensor->storage, tensor->data, tensor->dims, tensor->dims + tensor->ndim,
                                     tensor->ndim, (opd_scalar_type)tensor->dtype, tensor->backend);
    if (one) {
        opdi_ref_up(&tensor->storage->refs);
        one->begin = tensor->begin;
        opdi_set_lazy(one, tensor->functionality);
    }
    return one ? opdi_own(one) : NULL;
}

/* Replaces the value of `tensor`, which is batched, by `value`, whose dim 0 counts the examples.  Returns 0, or -1 and
   sets an error. */
static int opdi_batch_become(opd_tensor *tensor, opd_tensor *value) {
    opdi_batched *batched = opdi_batched_of(tensor);
    opd_tensor *was = batched->value;
    if (opdi_redescribe(tensor, value->dims + 1, value->dims + value->ndim + 1, value->ndim - 1, 0)) { return -1; }
    tensor->data = value->data;
    tensor->begin = value->begin;
    batched->value = opdi_keep(value);
    batched->dim = 0;
    opdi_release(was);
    return 0;
}

/* If the view of `value` is being recorded in a trace, also records that runs whose tensor has other strides fail: the
   distance between examples becomes a constant of the trace.  Returns 0, or -1 and sets an error. */
static int opdi_batch_guard_strides(opd_tensor *value) {
    opd_value args[6], ret;
    if (!(value->flags & OPDI_TRACED)) { return 0; }
    opd_op *const op = opd_find(OPDI_NAME(_assert_tensor_metadata, "aten::_assert_tensor_metadata"));
    if (!op) { return -1; }
    for (int i = 0; i < 6; i++) { args[i] = opd_value_none(); }
    args[0] = opd_value_tensor(value);
    args[2] = opd_value_ints(value->dims + value->ndim, value->ndim);
    return opd_call_all(op, &ret, args, 6);
}
/* Returns a view of the storage of `value`.  A trace may run with tensors that begin elsewhere in their storages, such
   as the slices of a loop: so if `given` is false, the view begins where it did relative to `value`. */
static opd_tensor *opdi_batch_strided(opd_tensor *value, opd_ints sizes, opd_ints strides, int64_t offset, bool given) {
    const int64_t from = offset - opd_tensor_offset(value);
    if (opdi_batch_guard_strides(value)) { return NULL; }
    if (given || from < 0) { return opd_as_strided_full(value, sizes, strides, opd_value_int(offset)); }
    if (from > 0) {
        const int64_t one = 1, count = from + opdi_extent(sizes.data, strides.data, (int)sizes.n);
        value = opd_as_strided_full(value, opd_ints_of(&count, 1), opd_ints_of(&one, 1), opd_value_none());
        value = value ? opd_narrow(value, 0, from, count - from) : NULL;
    }
    return value ? opd_as_strided_full(value, sizes, strides, opd_value_none()) : NULL;
}
/* The rule of view operators: runs the operator on one example, and changes the sizes and strides of all examples in
   the same way.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_view(opd_call *call) {
    const opd_op *op = call->op;
    const opdi_layer *layer = call->th->innermost.rule;
    opd_value args[OPD_MAX_ARGS], ret;
    opd_tensor *tensor = opd_arg_tensor(call, 0), **out;
    opdi_state *state = &call->th->state;
    const opdi_state was = *state;
    int dim;
    if (!tensor || !layer) { return -1; }
    opd_tensor *value = opd_batch_value(tensor, &dim);
    if (dim < 0) { return opdi_batch_missing(call, ": self is the same for all examples"); }
    if (op->nrets != 1) { return opdi_batch_missing(call, ""); }
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        opd_value *given = &args[opdi_low_bit(mask)];
        if (given->tag == OPD_TAG_TENSOR && !(given->u.t = opdi_batch_alias(given->u.t))) { return -1; }
    }
    state->include &= ~OPDI_FRONT_BIT;
    state->allow &= ~OPD_BIT_OF(OPD_F_TRACER);    /* a trace does not know the example */
    state->no_grad = 1;
    state->forward |= OPDI_FORWARD_OFF;
    int rc = opd_call_all(call->op, &ret, args, op->nargs);
    *state = was;
    if (rc) { return -1; }
    int32_t count = ret.tag == OPD_TAG_TENSORS ? ret.n : 1;
    if (!(out = opdi_scope_tensors(count))) { return -1; }
    for (int32_t k = 0; k < count; k++) {
        const opd_tensor *result = ret.tag == OPD_TAG_TENSORS ? ret.u.tensors[k] : ret.u.t;
        int64_t sizes[OPD_MAX_DIMS + 1], strides[OPD_MAX_DIMS + 1];
        if (result->storage != tensor->storage && tensor->storage->bytes) {
            return opdi_batch_missing(call, ": its result is not a view of self");
        }
        if (result->dtype != tensor->dtype && ret.tag == OPD_TAG_TENSOR) {  /* the operator is view.dtype */
            args[0].u.t = opd_batch_front(value, dim);
            return !args[0].u.t || opd_call_all(call->op, &ret, args, op->nargs) ? -1
                : opd_batch_return(call, ret.u.t, 0);
        }
        if (result->ndim == OPD_MAX_DIMS) { return opdi_batch_deep(OPD_MAX_DIMS); }
        sizes[0] = layer->size;
        strides[0] = value->dims[value->ndim + dim];
        for (int i = 0; i < result->ndim; i++) {
            sizes[i + 1] = result->dims[i];
            strides[i + 1] = result->dims[result->ndim + i];
        }
        out[k] = opdi_batch_strided(value, opd_ints_of(sizes, result->ndim + 1),
                                    opd_ints_of(strides, result->ndim + 1), opd_tensor_offset(result),
                                    op->nargs == 4 && args[3].tag == OPD_TAG_INT);
        if (!out[k]) { return -1; }
    }
    if (op->written_args) { return opdi_batch_become(tensor, out[0]) ? -1 : opd_return_tensor(call, tensor); }
    return ret.tag == OPD_TAG_TENSORS ? opd_batch_return_list(call, out, count, 0) : opd_batch_return(call, out[0], 0);
}

/* The rule of operators that read sizes and similar properties: calls the operator for one example.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_batch_query(opd_call *call) { return OPDI_ACQUIRE(&call->op->card)->desc.any(call); }

/* The rule of operators whose results have sizes that depend on data.  Sets an error and returns -1. */
OPDI_INTERNAL int opdi_batch_dynamic(opd_call *call) {
    return opd_fail(OPD_ERROR_ARGUMENT, "vmap: We do not support batching operators that can output dynamic shape. "
                    "Attempted to vmap over %s.", call->op->name);
}
OPDI_INTERNAL int opdi_batch_item(opd_call *call) {
    return opd_fail(OPD_ERROR_ARGUMENT, "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap "
                    "over calling .item() on a Tensor, please try to rewrite what you're doing with other operations "
                    "(%s).", call->op->name);
}

/* The rule of detach_: detaches the value that has all examples.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_detach_(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0), *value = opd_detach(opdi_batch_front_arg(call, 0));
    return !value || opdi_batch_become(tensor, value) ? -1 : opd_return_tensor(call, tensor);
}
/* The rule of resize_ and resize_as_: each example keeps its first elements.  Sets an error if the new sizes need more
   elements, or if the examples are not contiguous.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_resize(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_value *to = &call->args[1];
    if (opdi_batch_check_written(call)) { return -1; }
    int64_t numel = to->tag == OPD_TAG_TENSOR ? to->u.t->numel : opdi_count(to->u.ints, (int)to->n, 1);
    if (numel >= 0 && (numel > tensor->numel || !(tensor->flags & OPDI_CONTIGUOUS))) {
        return opdi_batch_missing(call, " to more elements than an example has, or of examples that are not "
                                  "contiguous");
    }
    return numel < 0 ? -1 : opd_batch_view(call);
}

OPDI_COLD_END

/* Returns true if the schema says that a result is a view of an argument. */
static bool opdi_is_view_op(const opd_op *op) {
    for (int i = 0; i < op->nrets; i++) {
        if (op->ret_alias[i] < 0 && opd_schema_is_aliasing(op->schema, OPD_RESULT(i))) { return true; }
    }
    return false;
}

/* Flags that opdi_dims_analyze finds by the names of an operator and its arguments.  KNOWN: the operator was analyzed.
   VIEW: a result is a view.  MORE: `dim` is a dim of the result.  NONE: an empty list of dims means no dims, not all.
   ANY: a second tensor may have fewer dims than self. */
enum { OPDI_DIMS_KNOWN = 1, OPDI_DIMS_VIEW = 2, OPDI_DIMS_MORE = 4, OPDI_DIMS_NONE = 8, OPDI_DIMS_ANY = 16 };
static bool opdi_is_one_of(const char *name, const char *const *names) {
    while (*names && strcmp(name, *names) != 0) { names++; }
    return *names != NULL;
}
/* Stores in `op` which of its arguments are dims, and which are sizes.  Returns the OPDI_DIMS_ flags. */
static int opdi_dims_analyze(opd_op *op) {
    static const char *const dims[] = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", NULL};
    static const char *const sizes[] = {"input_sizes", "self_sizes", NULL};
    static const char *const more[] = {"unsqueeze", "diag_embed", NULL}, *const none[] = {"flip", "squeeze", NULL};
    static const char *const any[] = {"select_scatter", "diagonal_scatter", NULL};
    int what = OPDI_DIMS_KNOWN;
    uint64_t d = 0, count = 0;
    for (int i = 1; i < op->nargs; i++) {
        const char *name = op->schema->args[i].name;
        d |= (uint64_t)opdi_is_one_of(name, dims) << i;
        count |= (uint64_t)opdi_is_one_of(name, sizes) << i;
    }
    if (opdi_is_view_op(op)) { what |= OPDI_DIMS_VIEW; }
    if (opdi_is_one_of(op->schema->name, more)) { what |= OPDI_DIMS_MORE; }      /* `dim` is a dim of the result */
    if (opdi_is_one_of(op->schema->name, none)) { what |= OPDI_DIMS_NONE; }      /* no dims if the list is empty */
    if (opdi_is_one_of(op->schema->name, any)) { what |= OPDI_DIMS_ANY; }        /* src may have fewer dims than self */
    OPDI_STORE(&op->dim_args, d);
    OPDI_STORE(&op->size_args, count);
    OPDI_PUBLISH(&op->dims_known, (int8_t)what);
    return what;
}

/* Writes 1, 2, ... to dims[64], and returns them as a list.  These are the dims of an example with `ndim` dims, if dim
   0 counts the examples.  An example without dims counts as having one dim. */
OPDI_INTERNAL opd_ints opdi_batch_all_dims(int ndim, int64_t *dims) {
    int count;
    for (count = 0; count < OPDI_MAX(ndim, 1); count++) { dims[count] = count + 1; }
    return opd_ints_of(dims, count);
}
/* Returns `value` with the sizes [number of examples, number of elements of an example], or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_batch_flat(opd_tensor *value) {
    int64_t sizes[2], i;
    if (!value || value->ndim == 2) { return value; }
    sizes[0] = value->dims[0];
    for (sizes[1] = 1, i = 1; i < value->ndim; i++) { sizes[1] = opdi_size_times(sizes[1], value->dims[i]); }
    return value->ndim == 1 ? opd_unsqueeze(value, 1) : opd_reshape(value, opd_ints_of(sizes, 2));
}

/* Adds one to the dims in *value, argument number `i`, because dim 0 counts the examples.  `ndim` is the number of dims
   in which a dim must lie, `self` the number of dims of an example, and `what` has OPDI_DIMS_ flags.  `dims` has space
   for 64 numbers.  Returns 0, or 1 if the argument is None, which means all elements.  On failure, returns -1 and sets
   an error. */
static int opdi_batch_shift(const opd_call *call, opd_value *value, int i, int ndim, int self, int what,
                            int64_t *dims) {
    int32_t count = value->tag == OPD_TAG_INTS ? value->n : 0;
    if (value->tag == OPD_TAG_INT) {
        const int dim = opdi_dim_of(value->u.i, ndim);
        value->u.i = dim + 1;
        return dim < 0 ? -1 : 0;
    }
    if (value->tag != OPD_TAG_INTS && opdi_strip_optional(call->op->schema->args[i].type)->kind != OPDI_TYPE_LIST) {
        return 1;
    }
    if (count > OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_ARGUMENT, "a list of %d dims is too long", (int)count); }
    for (int32_t k = 0; k < count; k++) {
        const int dim = opdi_dim_of(value->u.ints[k], ndim);
        if (dim < 0) { return -1; }
        dims[k] = dim + 1;
    }
    if (count == 0 && !(what & OPDI_DIMS_NONE)) { count = (int32_t)opdi_batch_all_dims(self, dims).n; }
    *value = opd_value_ints(dims, count);
    return 0;
}
/* Writes `first` and then the numbers of `rest` to buffer[64], and returns them as a list.  If the list is too long,
   returns a list without data and sets an error. */
OPDI_INTERNAL opd_ints opdi_batch_ints(int64_t first, opd_ints rest, int64_t *buffer) {
    if (rest.n >= OPD_MAX_DIMS) {
        (void)opdi_batch_deep(rest.n);
        return opd_ints_of(NULL, 0);
    }
    buffer[0] = first;
    if (rest.n) { memcpy(buffer + 1, rest.data, (size_t)rest.n * sizeof *buffer); }
    return opd_ints_of(buffer, rest.n + 1);
}
/* Returns `result`, which was computed with other dims, with the dims that it should have.  If `what` is 1, the
   examples have no dims and were given one.  If `what` is 2, all dims of the `size` examples were merged into one, and
   the result needs `ndim` dims of size 1 for keepdim.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_batch_restore(opd_tensor *result, int what, int ndim, int64_t size) {
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (!result || result->ndim != 2) { return result; }
    if (what == 1) { return opd_squeeze_dim(result, 1); }
    sizes[0] = size;                              /* keepdim: each dim of an example has size 1 */
    for (int k = 0; k < ndim; k++) { sizes[k + 1] = 1; }
    return opd_reshape(result, opd_ints_of(sizes, ndim + 1));
}

/* The rule of operators that work along certain dims (the last dims, or dims in arguments like `dim`), or that have the
   sizes of the result as an argument.  Makes dim 0 count the examples, and adds one to the dims in the arguments.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_shift_dim(opd_call *call) {
    opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    const opd_tensor *self = call->args[0].tag == OPD_TAG_TENSOR ? call->args[0].u.t : NULL;
    int what = OPDI_ACQUIRE(&op->dims_known), dim, flat = 0;
    int64_t buffer[OPD_MAX_DIMS];
    if (!self || op->list_args || op->written_args || !call->th->innermost.rule) { return opd_batch_loop(call); }
    if (OPDI_UNLIKELY(!what)) { what = opdi_dims_analyze(op); }
    int64_t size = call->th->innermost.rule->size;
    if (OPDI_UNLIKELY(self->ndim < 2)) {
        if (!op->dim_args && !op->size_args && !(what & OPDI_DIMS_VIEW)) { return opdi_batch_unfit(call); }
        if (self->ndim == 0 && op->dim_args && !op->size_args) {
            if (what & OPDI_DIMS_VIEW) { return opd_batch_view(call); }
            if (what & OPDI_DIMS_MORE) { return opdi_batch_unfit(call); }
            flat = 1;
        }
    }
    for (int i = 0; i < op->nargs; i++) { args[i] = call->args[i]; }
    int count = self->ndim;
    for (uint64_t mask = op->size_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        count = args[i].n;
        args[i].u.ints = opdi_batch_ints(size, opd_ints_of(args[i].u.ints, count), buffer).data;
        if (!args[i].u.ints) { return -1; }
        args[i].n++;
    }
    for (uint64_t mask = op->dim_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        int rc = opdi_batch_shift(call, &args[i], i, count + (what & OPDI_DIMS_MORE ? 1 : 0), self->ndim, what, buffer);
        if (rc < 0) { return -1; }
        if (rc > 0) {
            flat = flat ? flat : 2;
            args[i] = opd_value_int(1);
        }
    }
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        if (args[i].tag != OPD_TAG_TENSOR) { continue; }
        if (i > 0 && args[i].u.t->ndim != self->ndim && !(what & OPDI_DIMS_ANY)) { return opd_batch_loop(call); }
        args[i].u.t = opd_batch_value(args[i].u.t, &dim);
        if (dim != 0) { args[i].u.t = opd_batch_front(args[i].u.t, dim); }
        if (flat) { args[i].u.t = opdi_batch_flat(args[i].u.t); }
        if (!args[i].u.t) { return -1; }
    }
    if (opd_call_all(op, rets, args, op->nargs)) { return -1; }
    for (int i = 0; i < op->nrets; i++) {
        if (OPDI_UNLIKELY(flat) && rets[i].tag == OPD_TAG_TENSOR &&
            !(rets[i].u.t = opdi_batch_restore(rets[i].u.t, flat, self->ndim, size))) { return -1; }
        if (opdi_batch_return(call, &rets[i], 0)) { return -1; }
    }
    return 0;
}

/* The rule of matrix products like torch.matmul: the dim that counts the examples becomes a dim before the last two,
   which the operator broadcasts.  Returns 0, or -1 and sets an error. */
int opd_batch_matmul(opd_call *call) {
    opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS];
    uint64_t mask = op->tensor_args;
    int at[2], ndim[2], k, dim;
    if (op->list_args || op->written_args || op->nrets != 1) { return opd_batch_loop(call); }
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    for (k = 0; k < 2 && mask; k++, mask &= mask - 1) {
        at[k] = opdi_low_bit(mask);
        ndim[k] = args[at[k]].tag == OPD_TAG_TENSOR ? args[at[k]].u.t->ndim : 0;
    }
    if (k < 2 || mask || ndim[0] == 0 || ndim[1] == 0) { return opdi_batch_unfit(call); }
    int most = OPDI_MAX(2, OPDI_MAX(ndim[0], ndim[1]));
    for (k = 0; k < 2; k++) {
        opd_tensor *tensor = opd_batch_arg(call, at[k], &dim);
        if (dim >= 0) { tensor = opd_batch_front(tensor, dim); }
        if (ndim[k] == 1) { tensor = opd_unsqueeze(tensor, k ? -1 : -2); }
        if (!(args[at[k]].u.t = dim < 0 ? tensor : opdi_batch_pad(tensor, most))) { return -1; }
    }
    opd_tensor *result = opd_call_op(op, args, op->nargs);
    if (ndim[0] == 1) { result = opd_squeeze_dim(result, -2); }
    if (ndim[1] == 1) { result = opd_squeeze_dim(result, -1); }
    return opd_batch_return(call, result, 0);
}

OPDI_COLD_BEGIN

/* opdi_batch_merge merges dims `at` and at + 1 of `tensor`: one counts the examples, the other has `count` entries per
   example.  opdi_batch_split splits the merged dim again. */
OPDI_INTERNAL opd_tensor *opdi_batch_merge(opd_tensor *tensor, int at) { return opd_flatten(tensor, at, at + 1); }
OPDI_INTERNAL opd_tensor *opdi_batch_split(opd_tensor *tensor, int at, int64_t count) {
    int64_t sizes[OPD_MAX_DIMS + 1];
    int k = 0;
    if (!tensor) { return NULL; }
    for (int i = 0; i < tensor->ndim; i++) {
        if (i == at) { sizes[k++] = opd_batch_size(); }
        sizes[k++] = i == at ? count : tensor->dims[i];
    }
    return opd_reshape(tensor, opd_ints_of(sizes, k));
}
/* In a result, or in each tensor of a list, splits the first dim into the examples and `count` entries per example.
   Returns 0, or -1 and sets an error. */
static int opdi_batch_split_result(opd_value *value, int64_t count) {
    opd_tensor **list = value->tag == OPD_TAG_TENSORS ? opdi_scope_tensors(value->n) : NULL;
    if (value->tag == OPD_TAG_TENSOR) { value->u.t = opdi_batch_split(value->u.t, 0, count); }
    for (int32_t k = 0; list && k < value->n; k++) { list[k] = opdi_batch_split(value->u.tensors[k], 0, count); }
    if (list) { value->u.tensors = list; }
    return opd_ok() ? 0 : -1;
}
/* Runs a call for all examples at once, with the arguments `given`.  In the arguments whose bits are set in `folded`,
   dim 0 (the operator's own batch) gets the entries of all examples.  If `single` is true, the arguments have no batch,
   and the examples become the batch.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_fold(opd_call *call, const opd_value *given, uint64_t folded, bool single) {
    opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    int dim;
    int64_t count = -1;
    if (op->written_args || op->list_args) { return opd_batch_loop(call); }
    memcpy(args, given, (size_t)op->nargs * sizeof *args);
    for (uint64_t mask = op->tensor_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        if (args[i].tag != OPD_TAG_TENSOR) { continue; }
        opd_tensor *tensor = opd_batch_value(args[i].u.t, &dim);
        if (!(folded >> i & 1)) {
            if (dim >= 0) { return opd_batch_loop(call); }
            continue;
        }
        if (!single) {
            const opd_tensor *one = given[i].u.t;
            if (one->ndim == 0 || (count >= 0 && one->dims[0] != count)) { return opdi_batch_unfit(call); }
            count = one->dims[0];
        }
        tensor = opd_batch_front(tensor, dim);
        if (!(args[i].u.t = single ? tensor : opdi_batch_merge(tensor, 0))) { return -1; }
    }
    if (opd_call_all(op, rets, args, op->nargs)) { return -1; }
    for (int i = 0; i < op->nrets; i++) {
        if ((!single && opdi_batch_split_result(&rets[i], count)) || opdi_batch_return(call, &rets[i], 0)) {
            return -1;
        }
    }
    return 0;
}
int opd_batch_fold(opd_call *call) { return opdi_batch_fold(call, call->args, ~(uint64_t)0, false); }
/* Runs opdi_batch_fold for an operator on images with channels and `nd` further dims.  If an argument has one more dim,
   that is the operator's own batch.  Returns 0, or -1 and sets an error. */
static int opdi_batch_fold_nd(opd_call *call, int nd) {
    int ndim = 0;
    for (uint64_t mask = call->op->tensor_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
        if (!tensor) { continue; }
        if ((tensor->ndim != nd + 1 && tensor->ndim != nd + 2) || (ndim && tensor->ndim != ndim)) {
            return opdi_batch_unfit(call);
        }
        ndim = tensor->ndim;
    }
    return opdi_batch_fold(call, call->args, ~(uint64_t)0, ndim == nd + 1);
}
OPDI_INTERNAL int opdi_batch_fold_1d(opd_call *call) { return opdi_batch_fold_nd(call, 1); }
OPDI_INTERNAL int opdi_batch_fold_2d(opd_call *call) { return opdi_batch_fold_nd(call, 2); }
OPDI_INTERNAL int opdi_batch_fold_3d(opd_call *call) { return opdi_batch_fold_nd(call, 3); }
/* Merges the examples of `tensor`, which dim number `dim` counts (-1: the tensor is not batched), into its channels,
   the second dim.  Returns a tensor [N, B C, ...], where B is the number of examples, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_batch_channels(opd_tensor *tensor, int dim) {
    if (tensor && dim < 0) {
        tensor = opd_batch_front(tensor, -1);
        dim = 0;
    }
    if (tensor && dim != 1) { tensor = opd_movedim(tensor, dim, 1); }
    return opdi_batch_merge(tensor, 1);
}

/* Returns the index of the argument `name`, or -1 if there is none. */
static int opdi_batch_named(const opd_op *op, const char *name) {
    int i;
    for (i = op->nargs; i-- > 0 && strcmp(op->schema->args[i].name, name) != 0;) { }
    return i;
}

/* Inserts the number of examples in front of the sizes in argument number `at` of a factory.  If the next argument has
   strides, inserts in front of them the number of elements that an example spans.  Returns 0, or -1 and sets an
   error. */
static int opdi_batch_enlarge(opd_call *call, opd_value *args, int at) {
    const int64_t count = args[at].n;
    const bool strided = opdi_batch_named(call->op, "stride") == at + 1 && args[at + 1].n == count;
    int64_t *sizes = (int64_t *)opdi_scope_alloc(2 * ((size_t)count + 1) * sizeof *sizes);
    if (!sizes) { return -1; }
    int64_t *strides = sizes + count + 1;
    sizes[0] = call->th->innermost.rule->size;
    strides[0] = 1;
    for (int64_t i = 0; i < count; i++) {
        sizes[i + 1] = args[at].u.ints[i];
        if (!strided) { continue; }
        strides[i + 1] = args[at + 1].u.ints[i];
        if (sizes[i + 1] <= 0 || strides[i + 1] <= 0) { continue; }   /* the operator refuses negative numbers */
        if (sizes[i + 1] - 1 > (INT64_MAX / 4 - strides[0]) / strides[i + 1]) {
            return opd_fail(OPD_ERROR_SHAPE, "sizes and strides do not fit into memory");
        }
        strides[0] += (sizes[i + 1] - 1) * strides[i + 1];
    }
    args[at] = opd_value_ints(sizes, count + 1);
    if (strided) { args[at + 1] = opd_value_ints(strides, count + 1); }
    return 0;
}

/* The rule of factories: operators that make a tensor whose sizes are an argument or the sizes of another tensor, and
   read no elements.  They may fill the result with random numbers.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rule_factory(opd_call *call) {
    opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor *self = op->tensor_args & 1 && call->args[0].tag == OPD_TAG_TENSOR ? call->args[0].u.t : NULL;
    const int at = opdi_batch_named(op, "size"), format = opdi_batch_named(op, "memory_format");
    int dim = -1;
    if (!call->th->innermost.rule || op->nrets != 1 || op->list_args) { return opd_batch_loop(call); }
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    if (self) { args[0].u.t = opd_batch_value(self, &dim); }
    if (opdi_op_is_random(op) && call->th->innermost.rule->randomness == OPD_RANDOM_SAME) {
        if (dim >= 0) {                           /* one result for all examples, with the sizes of an example */
            args[0].u.t = opd_new_empty_strided(args[0].u.t, opd_ints_of(self->dims, self->ndim),
                                                opd_ints_of(self->dims + self->ndim, self->ndim));
            dim = -1;
        }
    } else if (at >= 0) {
        if (opdi_batch_enlarge(call, args, at)) { return -1; }
        dim = 0;
    } else if (self) {
        const bool keep = format < 0 || args[format].tag != OPD_TAG_INT || args[format].u.i == 1;  /* preserve_format */
        if (dim < 0 || !keep || opdi_op_is_random(op)) {
            args[0].u.t = opd_batch_front(args[0].u.t, dim);
            dim = 0;
        }
        if (!keep) { args[format].u.i = 0; }
    } else { return opdi_batch_each(call); }
    if ((self && !args[0].u.t) || opd_call_all(op, rets, args, op->nargs)) { return -1; }
    return opd_batch_return(call, rets[0].u.t, dim);
}

/* Returns true if autograd records the call, because a tensor argument, or a tensor inside its vmap wrappers, requires
   grad. */
static bool opdi_batch_records(const opd_call *call) {
    if (call->th->state.no_grad) { return false; }
    for (uint64_t mask = call->op->tensor_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
        while (tensor && (tensor->flags & OPDI_BATCHED) && !opd_tensor_requires_grad(tensor)) {
            tensor = opdi_batched_of(tensor)->value;
        }
        if (tensor && opd_tensor_requires_grad(tensor)) { return true; }
    }
    return false;
}
/* Replaces `tensor` among the arguments `args` by a copy, because the backward function saves the argument and `tensor`
   is written afterwards.  Returns 0, or -1 and sets an error. */
static int opdi_batch_apart(const opd_op *op, opd_value *args, opd_tensor *tensor) {
    opd_tensor *was = opd_clone(tensor);
    for (int i = 0; was && i < op->nargs; i++) {
        if (args[i].tag == OPD_TAG_TENSOR && args[i].u.t == tensor) { args[i].u.t = was; }
    }
    return was ? 0 : -1;
}

/* The rule of in-place and out= forms: runs the functional form, and copies the results to the arguments that the form
   writes.  Returns 0, or -1 and sets an error. */
static int opdi_batch_derived(opd_call *call, const opdi_card *card) {
    opdi_thread *thread = call->th;
    opdi_layer *const rule = thread->innermost.rule, *const top = thread->innermost.layer;
    const opd_value *wrapped = &call->args[opdi_low_bit(call->op->written_args)];
    opd_tensor *targets[OPDI_MAX_RETURNS];
    opd_tensor *const *to = wrapped->tag == OPD_TAG_TENSORS ? wrapped->u.tensors : targets;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_op *base = card->base->op;
    int count = wrapped->tag == OPD_TAG_TENSORS ? wrapped->n : opdi_derived_targets(call, card, targets);
    if (count < 0 || opdi_derived_args(call, card, count ? to[0] : NULL, args)) { return -1; }
    opdi_layer_set(thread, rule);
    thread->innermost.rule = NULL;
    int rc = card->inplace && count == 1 && opdi_batch_records(call) ? opdi_batch_apart(base, args, to[0]) : 0;
    if (rc == 0) { rc = opd_call_all(base, rets, args, base->nargs); }
    thread->innermost.rule = rule;
    if (rc == 0 && wrapped->tag == OPD_TAG_TENSORS && rets[0].n != count) {
        rc = opd_fail(OPD_ERROR_ARGUMENT, "%s(): expected %d out tensors, but got %d", call->op->schema->name,
                      (int)rets[0].n, count);
    }
    for (int i = 0; i < count && rc == 0; i++) {
        opd_tensor *got = wrapped->tag == OPD_TAG_TENSORS ? rets[0].u.tensors[i]
            : i < base->nrets && rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
        if (!got || got == to[i]) { continue; }
        if (opdi_batched_at(got, rule->level) && !opdi_batched_at(to[i], rule->level)) {
            rc = opdi_batch_inplace_error(call, card->inplace ? "self" : "out");
        } else { rc = opdi_derived_exact(call, card, to[i], got) || opdi_derived_copy(to[i], got, false) ? -1 : 0; }
    }
    opdi_layer_set(thread, top);
    for (int i = 0; i < call->op->nrets && rc == 0; i++) { rc = opd_return_tensor(call, to[i]); }
    return rc;
}

static int opdi_batch_escaped(const opd_call *call) {
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: Either your tensor may have escaped from inside a function being vmapped "
                    "and this is a user error, or a batching rule is wrong: one of the arguments is batched at a level "
                    "that has ended", call->op->name);
}

OPDI_COLD_END

static int opdi_batch_random(opd_call *call, const opdi_card *card);
/* Runs the batching rule in an operator's descriptor.  If the descriptor has no rule, runs the operator's composite
   kernel, or runs the operator example by example.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batched_rule(opd_call *call) {
    const opdi_card *card = OPDI_ACQUIRE(&call->op->card);
    opd_vmap_rule rule = card ? card->desc.vmap : NULL;
    if (rule != opd_batch_decompose && opdi_call_is_random(call->op, call->args)) {
        return opdi_batch_random(call, card);
    }
    if (OPDI_UNLIKELY(card && card->base != NULL)) {
        rule = card->base->desc.vmap;
        if (!card->inplace || rule != opd_batch_pointwise) { return opdi_batch_derived(call, card); }
    }
    if (!rule) { rule = opdi_is_view_op(call->op) ? opd_batch_view : opd_batch_decompose; }
    return rule(call);
}
/* The kernel at FuncTorchBatched of every operator.  If no rule of the tensor's layer is running, the tensor has
   escaped from its vmap: sets an error and returns -1. */
OPDI_INTERNAL int opdi_batched_kernel(opd_call *call) {
    const opdi_layer *layer = call->th->innermost.rule;
    return layer && (opdi_call_is_random(call->op, call->args) || opdi_any_batched(call->op, call->args, layer->level))
        ? opdi_batched_rule(call) : opdi_batch_escaped(call);
}

OPDI_COLD_BEGIN

OPDI_INTERNAL int opdi_batch_drawn(opd_call *call);

/* Checks that random numbers may be drawn once for all examples: the examples must not have different parameters.  A
   tensor that is written is not a parameter.  Returns 0, or -1 and sets an error. */
static int opdi_batch_check_same(const opd_call *call) {
    const opd_op *op = call->op;
    bool other = opdi_any_listed(call);
    for (uint64_t mask = op->tensor_args & ~op->written_args; mask; mask &= mask - 1) {
        const opd_value *value = &call->args[opdi_low_bit(mask)];
        other = other || (value->tag == OPD_TAG_TENSOR && opdi_batched_at(value->u.t, call->th->innermost.rule->level));
    }
    return !other ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "Vmap does not currently support same randomness with a batched "
                                 "tensor input");
}

/* Draws random numbers once, for one example, and uses them for all examples.  Returns 0, or -1 and sets an error. */
static int opdi_batch_draw_once(opd_call *call) {
    opd_op *op = call->op;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor *self = (op->written_args & 1) && call->args[0].tag == OPD_TAG_TENSOR ? call->args[0].u.t : NULL;
    int dim = -1;
    if (opdi_batch_check_same(call)) { return -1; }
    memcpy(args, call->args, (size_t)op->nargs * sizeof *args);
    opd_tensor *value = opd_batch_value(self, &dim);
    if (dim >= 0 && !(args[0].u.t = opd_new_empty(value, opd_ints_of(self->dims, self->ndim)))) { return -1; }
    if (opd_call_all(op, rets, args, op->nargs)) { return -1; }
    if (dim >= 0 && !opd_copy_(value, opd_unsqueeze(args[0].u.t, dim))) { return -1; }
    for (int i = 0; i < op->nrets; i++) {
        if (opd_return_value(call, op->ret_alias[i] >= 0 ? call->args[op->ret_alias[i]] : rets[i])) { return -1; }
    }
    return 0;
}

/* The rule of operators that draw a random number for each element, in place or with parameters that are tensors, such
   as bernoulli_ and normal.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_batch_drawn(opd_call *call) {
    const opd_op *op = call->op;
    const opd_value *const was = call->args;
    opd_value args[OPD_MAX_ARGS];
    const int i = opdi_low_bit(op->tensor_args);
    opd_tensor *tensor;
    if (call->th->innermost.rule->randomness == OPD_RANDOM_SAME) { return opdi_batch_draw_once(call); }
    if (opdi_batched_at(was[i].u.t, call->th->innermost.rule->level)) { return opd_batch_pointwise(call); }
    if (op->written_args) {
        if (opdi_any_batched(op, was, call->th->innermost.rule->level)) { return opdi_batch_check_written(call); }
        return opd_fail(OPD_ERROR_ARGUMENT, "vmap: Cannot ask for different inplace randomness on an unbatched tensor. "
                        "This will appear like same randomness.");
    }
    memcpy(args, was, (size_t)op->nargs * sizeof *args);
    const opdi_layer *layer = call->th->innermost.rule;
    if (!(tensor = opd_batch_front(args[i].u.t, -1)) ||
        !(args[i].u.t = opdi_own(opdi_batch_wrap(tensor, 0, layer->level, layer->serial)))) { return -1; }
    call->args = args;
    int rc = opd_batch_pointwise(call);
    call->args = was;
    return rc;
}

/* Runs an operator that draws random numbers, in the way that the layer's `randomness` says: fails, draws once for all
   examples, or draws for each example.  Also called if no argument is batched.  Returns 0, or -1 and sets an error. */
static int opdi_batch_random(opd_call *call, const opdi_card *card) {
    const opd_vmap_rule rule = card ? card->desc.vmap : NULL;
    if (card && card->base) {
        return card->inplace ? opdi_batch_derived(call, card)
            : opd_fail(OPD_ERROR_ARGUMENT, "vmap: We do not support calling out variants of random operations inside "
                       "of vmap. Please use non-out variants as a workaround");
    }
    if (call->th->innermost.rule->randomness == OPD_RANDOM_ERROR) {
        return opd_fail(OPD_ERROR_ARGUMENT, "vmap: called random operation while in randomness error mode. Please "
                        "either use the 'same' or 'different' randomness flags on vmap or perform the randomness "
                        "operation out of vmap");
    }
    if (rule && rule != opd_batch_loop) { return rule(call); }
    if (call->th->innermost.rule->randomness == OPD_RANDOM_DIFFERENT) {
        return opdi_batch_check_loop(call) ? -1 : opdi_batch_each(call);
    }
    return opdi_batch_draw_once(call);
}

OPDI_COLD_END

