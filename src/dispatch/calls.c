#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>calls        calls by operator, by base name and by handle
//
//  A call finds its slot in the operator's table and runs the slot's kernel.  This section reads only the keys and the
//  flags of tensors.  The flags tell if a call can skip the autograd keys, because nothing requires grad.
//----------------------------------------------------------------------------------------------------------------------

//== calls =============================================================================================================
//
//  A call binds its arguments (compares their tags with the schema; opdi_bind converts values of other kinds), combines
//  the key sets of the tensor arguments, finds the slot, runs its kernel in a new scope, and moves the results to the
//  caller's scope.  The table below shows which function calls which function (opdi_call_x is written ..x), and on
//  which condition ("lists" are lists of tensors); a > b means that a calls b.  Every path ends in opdi_invoke_here:
//
//    function            condition                                 calls
//    opd_call_all        all given, no lists, a table ............ ..dispatch > opdi_invoke_here, ..keep_results
//      |                 defaults or lists, no table or no room .. ..with_defaults > ..dispatch
//      |                 other kinds, too many or few ............ ..with_defaults > ..converting > ..binding
//      '                 error, observers, no arrays, new thread . ..off_path > ..if_observed
//    ..off_path          no observer after all, arrays given ..... ..with_defaults
//    ..if_observed       observers, or an array is missing ....... ..observed > ..binding
//    opd_call_keywords   always .................................. ..keywords > ..binding
//    ..binding           the arguments fit ....................... ..bound (calls observers) > ..reserving > ..dispatch
//    opd_overloads_call  for the first overload that fits ........ ..bound
//    opd_call_at         for the slot of the given key ........... ..at_key > opdi_invoke
//    opd_kernel_call_with  for the kernel of the given handle .... ..at_key > opdi_invoke
//    opd_kernel_call     in a kernel, for that of a handle ....... opdi_invoke
//    opd_redispatch      in a kernel, for the given keys ......... opdi_redispatch_in > opdi_invoke_here

static inline void opdi_arg_keys_add(opdi_arg_keys *sets, const opd_tensor *tensor) {
    sets->functionality |= tensor->functionality;
    sets->backends |= 1u << tensor->backend;
    sets->flags |= OPDI_LOAD(&tensor->flags);
    sets->backend |= tensor->backend;
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_arg_keys_lists(opdi_arg_keys *sets, const opd_op *op, const opd_value *args) {
    for (uint64_t mask = op->list_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        const opd_value *value = &args[i];
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors && value->u.tensors[k]) { opdi_arg_keys_add(sets, value->u.tensors[k]); }
            else if (opdi_null_element(op, i, value)) { return -1; }
        }
    }
    return 0;
}

OPDI_COLD_BEGIN

/* Combines the keys, backends and flags of bound arguments as opdi_arg_keys_of does, but leaves out tensors for which
   the schema says Any.  Returns 0, 1 or -1, as opdi_arg_keys_of does. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_arg_keys_bound(opdi_arg_keys *sets, const opd_op *op, const opd_value *bound) {
    opd_value shown[OPD_MAX_ARGS];
    if (!op->any_args) { return opdi_arg_keys_of(sets, op, bound); }
    for (int i = 0; i < op->nargs; i++) {
        shown[i] = opdi_takes_all(opdi_strip_optional(op->schema->args[i].type)) ? opd_value_none() : bound[i];
    }
    return opdi_arg_keys_of(sets, op, shown);
}

/* Returns true if an argument is a view whose base requires grad.  The flags of the view itself may not be up to date.
   */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_views_require_grad(const opd_op *op, const opd_value *args) {
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        int32_t count = value->tag == OPD_TAG_TENSOR ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (tensor && (tensor->flags & OPDI_IS_VIEW) &&
                (opdi_view_record_of(tensor)->base->flags & OPDI_REQUIRES_GRAD)) {
                return true;
            }
        }
    }
    return false;
}
/* Returns 1 if the autograd kernels of a call have something to do, else 0.  Called only if the call has a view or a
   level of forward mode is open. */
OPDI_NOINLINE static int opdi_wants_autograd(const opdi_thread *thread, const opd_call *call, unsigned flags) {
    if (thread->state.forward == OPDI_FORWARD_OPEN) { return 1; }
    return !thread->state.no_grad && ((flags & OPDI_REQUIRES_GRAD) ||
                                      ((flags & OPDI_IS_VIEW) && opdi_views_require_grad(call->op, call->args)));
}

/* Drops the results that a call holds, and sets all results to None. */
OPDI_INTERNAL void opdi_rets_drop(opd_call *call) {
    for (int i = 0; i < call->op->nrets; i++) {
        if (call->owned >> i & 1) {
            opd_value *value = &call->rets[i];
            if (value->tag == OPD_TAG_TENSOR) { opdi_drop(value->u.t); }
            else { opdi_ret_block_free(value); }
        }
        call->rets[i] = opd_value_none();
    }
    call->owned = call->filled = 0;
    call->cursor = 0;
}

/* Drops the results of a kernel that failed or returned too few results, and sets an error if none is pending.  Returns
   -1. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_failed(opd_call *call, int rc) {
    if (opd_ok()) {
        if (rc) {
            (void)opd_fail(OPD_ERROR_KERNEL, "%s: its kernel for %s failed without setting an error (opd_fail)",
                           call->op->name, opd_key_name(call->slot));
        }
        else {
            (void)opd_fail(OPD_ERROR_KERNEL, "%s: its kernel for %s returned %d of %d result(s)", call->op->name,
                           opd_key_name(call->slot), call->cursor, call->op->nrets);
        }
    }
    opdi_rets_drop(call);
    return -1;
}

/* Returns a text for error messages: how a kernel at `key` can call the kernels below it. */
static const char *opdi_way_below(opd_key key) {
    const uint64_t bit = opd_keyset_add(OPD_KEYS_EMPTY, key).functionality;
    return bit & OPDI_AUTOGRAD_BITS ? "; to call the kernels below it, exclude its keys first, with "
        "opd_keys_exclude(OPD_KEYS_AUTOGRAD), or call opd_redispatch(call, opd_keyset_and(opd_call_keys(call), "
        "opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))"
        : bit < OPD_BIT_OF(OPD_F_BACKEND_SELECT) ? "; it must compute the results itself, or call other operators, or "
        "call the kernel that it replaces (opd_kernel_get, before it is registered)"
        : "; to call the kernels below it, exclude its key first, with opd_keys_exclude, or call opd_redispatch";
}
/* Sets the error that calls are nested too deep.  If a kernel calls itself, the error names its operator and key.
   Returns -1. */
OPDI_NOINLINE static int opdi_too_deep(const opd_call *call) {
    if (opdi_is_left_at(call->th, call)) { return opdi_forget_left(call->th); }
    for (const opd_call *other = call->outer; other; other = other->outer) {
        if (other->op == call->op && other->slot == call->slot) {
            return opd_fail(OPD_ERROR_KERNEL, "the kernel of %s for %s calls itself without end (%d nested calls)%s",
                            call->op->name, opd_key_name(call->slot), OPDI_MAX_DEPTH, opdi_way_below(call->slot));
        }
    }
    return opd_fail(OPD_ERROR_KERNEL, "%s: calls are nested deeper than %d", call->op->name, OPDI_MAX_DEPTH);
}

/* Writes one line of the dispatch trace for a call.  Calls that the log function makes are not traced. */
static void opdi_trace_dispatch(const opd_call *call) {
    const opd_call *other = call->outer;
    const bool again = other && other->op == call->op && other->args == call->args && other->rets == call->rets;
    char line[512];
    if (call->th->showing) { return; }
    call->th->showing = true;
    (void)snprintf(line, sizeof line, "%*s[%s] op=[%s], key=[%s]", (int)call->depth - 1, "",
                   again ? "redispatch" : "call", call->op->name, opd_key_name(call->slot));
    opdi_log_write(call->th, -1, line, true);
    call->th->showing = false;
}

/* Handles a call whose depth is above opdi_depth_limit, or whose frame is not at a lower address than its caller's.
   Returns -1 and sets an error if the calls are too deep, if too little of the stack is left, or if a collective failed
   that the call waits for.  Otherwise waits for collectives that use the arguments, writes the dispatch trace if it is
   on, and returns 0. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_beyond_limit(const opd_call *call) {
    if (call->depth > OPDI_MAX_DEPTH || opdi_is_left_at(call->th, call)) { return opdi_too_deep(call); }
    if (opdi_stack_is_short(call->op->name, OPDI_STACK_CALL)) { return -1; }
    if (OPDI_LOAD(&opdi_works_running) != 0 && OPDI_ACQUIRE(&opdi_works_before_call)(call)) { return -1; }
    if (OPDI_LOAD(&opdi_calls_shown)) { opdi_trace_dispatch(call); }
    return 0;
}
/* Sets opdi_depth_limit.  A limit of 0 makes all calls pass through opdi_beyond_limit. */
OPDI_INTERNAL void opdi_depth_limit_update(void) {
    opdi_lock(&opdi_threads_lock);
    OPDI_STORE(&opdi_depth_limit, OPDI_LOAD(&opdi_calls_shown) || OPDI_LOAD(&opdi_works_running) ||
               OPDI_LOAD(&opdi_small_stacks) ? 0 : OPDI_QUICK_DEPTH);
    opdi_unlock(&opdi_threads_lock);
}

bool opd_dispatch_trace_set(bool on) {
    const bool was = OPDI_LOAD(&opdi_calls_shown);
    OPDI_STORE(&opdi_calls_shown, on);
    opdi_depth_limit_update();
    return was;
}

OPDI_COLD_END

/* Closes the scopes that a kernel opened and did not close. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_scopes_forgotten(opdi_thread *thread, int32_t depth, int64_t mark) {
    thread->scope_depth = depth;
    thread->scope_mark = OPDI_MIN(thread->scope_mark, mark);
}

/* Makes `result` a tensor that is not a view, if it is a view of a tensor that nothing else holds: then its kernel has
   made both.  Without this, a result such as that of matmul could not be written in place with grad mode on if the call
   was made with grad mode off.  A view whose history is not up to date (opdi_view_refresh) stays a view. */
static void opdi_untie_lone(opd_tensor *result) {
    opd_tensor *base = opdi_view_base(result);
    if (!base || OPDI_ACQUIRE(&base->refs) != 1) { return; }
    opdi_view_record *record = opdi_view_record_of(result);
    if (((result->flags | base->flags) & OPDI_REQUIRES_GRAD) &&
        record->version != OPDI_LOAD(&result->storage->version)) { return; }
    result->flags &= (uint8_t)~OPDI_IS_VIEW;
    record->base = NULL;
    opdi_drop(base);
}
/* Releases the tensors that a kernel left in its scope. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_kernel_unwind(opdi_thread *thread, const opd_call *call) {
    thread->ending = opd_op_name(call->op);
    opdi_scope_unwind(thread, call->mark);
    thread->ending = NULL;
    for (uint32_t mask = call->owned; mask; mask &= mask - 1) {
        const opd_value *value = &call->rets[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR) { opdi_untie_lone(value->u.t); }
    }
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_invoke(opdi_thread *thread, opd_call *call, const opdi_slot *slot) {
    return opdi_invoke_here(thread, call, slot);
}

/* Finds the slot of a call in the rare cases: it has a view or a tensor of a stored dtype (see >>stored_dtypes), or a
   level of forward mode is open. */
OPDI_NOINLINE OPDI_INTERNAL const opdi_slot *opdi_find_slot_slow(const opdi_thread *thread, opd_call *call,
                                                                 const opdi_table *table, opdi_arg_keys sets) {
    const opdi_slot *slot = opdi_slot_for(thread, call, table, &sets,
                                          opdi_wants_autograd(thread, call, sets.flags) ? 16 : 0);
    return sets.flags & OPDI_STORED ? opdi_stored_slot(call, slot) : slot;
}

/* Moves the results of a call to the caller's scope, which must have room for one handle per result.  Returns 0, or -1
   if memory for the tensors of a list runs out. */
static inline int opdi_rets_own(opdi_thread *thread, opd_call *call) {
    int rc = 0;
    for (int i = 0; call->owned; i++, call->owned >>= 1) {
        if (!(call->owned & 1)) { continue; }
        if (OPDI_LIKELY(call->rets[i].tag == OPD_TAG_TENSOR)) { opdi_push_of(thread, call->rets[i].u.t, call->op); }
        else if (opdi_ret_block_own(thread, &call->rets[i])) { rc = -1; }
    }
    return rc;
}

/* Moves results to the caller's scope as opdi_rets_own does, after making room for their handles.  Returns 0, or -1
   with an error and the results dropped. */
OPDI_NOINLINE static int opdi_call_keep_results(opdi_thread *thread, opd_call *call) {
    if (opdi_scope_reserve(thread, OPDI_MAX_RETURNS)) {
        opdi_rets_drop(call);
        return -1;
    }
    return opdi_rets_own(thread, call);
}
/* Runs a call with bound arguments whose keys are in *sets: finds the slot, runs its kernel, and moves the results to
   the caller's scope.  Returns 0, or -1 and sets an error. */
OPDI_FORCE_INLINE static int opdi_call_dispatch(opdi_thread *thread, opd_op *op, const opdi_table *table,
                                                const opdi_arg_keys *sets, opd_value *rets, const opd_value *args) {
    opd_call call;
    call.op = op;
    call.args = args;
    call.rets = rets;
    call.targets = NULL;
    if (opdi_invoke_here(thread, &call, opdi_find_slot(thread, &call, table, sets))) { return -1; }
    if (!call.owned) { return 0; }
    if (call.owned == 1 && OPDI_LIKELY(rets->tag == OPD_TAG_TENSOR && thread->top + OPDI_MAX_RETURNS <= thread->cap)) {
        opdi_push_of(thread, rets->u.t, op);
        return 0;
    }
    return opdi_call_keep_results(thread, &call);
}
/* Runs a call as opdi_call_dispatch does, but is not inlined, and first makes room for the results in the scope. */
OPDI_NOINLINE static int opdi_call_reserving(opdi_thread *thread, opd_op *op, const opdi_table *table,
                                             const opdi_arg_keys *sets, opd_value *rets, const opd_value *args) {
    return opdi_scope_reserve(thread, OPDI_MAX_RETURNS) ? -1 : opdi_call_dispatch(thread, op, table, sets, rets, args);
}

/* Runs a call with bound arguments.  Afterwards releases the wrapped numbers and lists that binding has pushed onto the
   scope stack since `mark`.  If `watched` is true, the call is an event for observers, which see every argument.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_bound(opdi_thread *thread, opd_op *op, const opdi_table *table, opd_value *rets,
                                  const opd_value *bound, int64_t mark, bool watched) {
    const int64_t top = thread->top;
    opdi_observing observing;
    opdi_arg_keys sets;
    opd_call call;
    int rc = opdi_arg_keys_bound(&sets, op, bound) < 0 ? -1 : 0;
    if (rc == 0 && watched) {
        call.op = op;
        call.args = bound;
        (void)opdi_find_slot(thread, &call, table, &sets);
        bool recording = (call.keys.functionality & OPDI_AUTOGRAD_BITS) && !thread->state.no_grad;
        observing.event.op = op;
        observing.event.args = bound;
        observing.event.nargs = op->nargs;
        observing.event.forward_thread = 0;
        opdi_observe_begin(thread, &observing, OPD_OBSERVE_CALL, op->base_name,
                           recording ? (int64_t)thread->sequence : -1);
    }
    if (rc == 0) {
        rc = opdi_call_reserving(thread, op, table, &sets, rets, bound);
        if (watched) { opdi_observe_end(thread, &observing, rets, op->nrets); }
    }
    if (top != mark) { opdi_scope_remove(thread, mark, top); }
    return rc;
}

/* Sets the error of a call whose arguments opdi_bind refused: it returned rc for the argument with index `at`.  Returns
   -1. */
static int opdi_call_refused(const opd_op *op, const opdi_given *given, int rc, int at) {
    return rc > 0 && opdi_bind_error(op, given, rc, at) > 0 ? opdi_fail_overload(op, given->args, given->nargs) : -1;
}
/* Binds the given arguments and runs the call.  Returns 0, or -1 and sets an error if either fails. */
OPDI_NOINLINE static int opdi_call_binding(opdi_thread *thread, opd_op *op, const opdi_table *table, opd_value *rets,
                                           const opdi_given *given, bool watched) {
    opd_value bound[OPD_MAX_ARGS];
    int64_t mark = thread->top;
    int at, rc = opdi_bind(op, given, bound, &at);
    if (rc == OPDI_BOUND) { return opdi_call_bound(thread, op, table, rets, bound, mark, watched); }
    if (thread->top != mark) { opdi_scope_remove(thread, mark, thread->top); }
    return opdi_call_refused(op, given, rc, at);
}
/* Sets the results of a failed call to None and returns -1.  If op is NULL or undefined, sets one result. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_no_rets(const opd_op *op, opd_value *rets) {
    const int count = op && opdi_is_defined(op) ? OPDI_LOAD(&op->nrets) : 1;
    for (int i = 0; rets && i < count; i++) { rets[i] = opd_value_none(); }
    return -1;
}
/* Binds nargs arguments, given by position, to bound.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_bind_all(const opd_op *op, const opd_value *args, int nargs, opd_value *bound) {
    const opdi_given given = {args, /* kw */ NULL, nargs, /* nkw */ 0, /* keywords, numbers */ false, true};
    int at, rc = opdi_bind(op, &given, bound, &at);
    return rc == OPDI_BOUND ? 0 : opdi_call_refused(op, &given, rc, at);
}
/* Runs a call with arguments by position that must be converted or checked.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_call_converting(opdi_thread *thread, opd_op *op, const opdi_table *table, opd_value *rets,
                                              const opd_value *args, int nargs) {
    const opdi_given given = {args, /* kw */ NULL, nargs, /* nkw */ 0, /* keywords, numbers */ false, true};
    return opdi_call_binding(thread, op, table, rets, &given, false);
}

/* Runs a call in which trailing arguments may be left out (they get their defaults) and lists of tensors may be given,
   or whose table is not made yet.  `was` is the result of opdi_enter; this function calls opdi_leave.  Returns 0, or -1
   and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_with_defaults(opdi_thread *thread, opd_op *op, opd_value *rets,
                                                        const opd_value *args, int nargs, uint64_t was) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opd_value full[OPD_MAX_ARGS];
    const opd_value *all = args;
    opdi_arg_keys sets;
    int i, rc = 0;
    if ((OPDI_UNLIKELY(!table) && !(table = opdi_table_make(op))) || opdi_scope_reserve(thread, OPDI_MAX_RETURNS)) {
        rc = -1;
    } else if (OPDI_UNLIKELY(nargs > op->nargs || nargs < op->required)) {
        rc = opdi_call_converting(thread, op, table, rets, args, nargs);
    } else {
        if (nargs < op->nargs) {
            for (i = 0; i < nargs; i++) {  /* usually so few that memcpy would be slower */
                full[i] = args[i];
                OPDI_IN_ORDER();
            }
            for (; i < op->nargs; i++) { full[i] = op->schema->args[i].value; }
            all = full;
        }
        if (OPDI_LIKELY((rc = opdi_arg_keys_of(&sets, op, all)) == 0)) {
            rc = opdi_call_dispatch(thread, op, table, &sets, rets, all);
        } else if (rc > 0) {
            rc = opdi_call_converting(thread, op, table, rets, args, nargs);
        }
    }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

/* Returns true if observers of this thread must be called for this call.  Observers may ask for a random sample of
   calls. */
OPDI_INTERNAL bool opdi_is_watched(opdi_thread *thread, const opd_op *op) {
    if (thread->observing) { (void)opdi_visits_left(thread); }
    if (!OPDI_LOAD(&thread->observed) || !opdi_observe_on(thread) || !op || op->unobserved) { return false; }
    if (OPDI_LOAD(&thread->observed) == OPDI_OBSERVE_SKIP && thread->skip > 0) {
        thread->skip--;
        return false;
    }
    return true;
}
/* Runs a call that observers see, or for which the caller gave no array of arguments or results.  Returns 0, or -1 and
   sets an error. */
OPDI_NOINLINE static int opdi_call_observed(opdi_thread *thread, opd_op *op, opd_value *rets, const opd_value *args,
                                            int nargs, bool watched) {
    const opdi_given given = {args, /* kw */ NULL, nargs, /* nkw */ 0, /* keywords, numbers */ false, true};
    opd_value unwanted[OPDI_MAX_RETURNS];
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    if (!table && !(table = opdi_table_make(op))) { return -1; }
    return opdi_call_binding(thread, op, table, rets ? rets : unwanted, &given, watched);
}
/* Runs a call if observers must see the call, or if the caller gave no array of arguments or results.  Returns 0, or -1
   if an error is pending or the call fails.  Returns 1 without running the call if no observer must see the call and
   both arrays were given. */
OPDI_NOINLINE static int opdi_call_if_observed(opdi_thread *thread, opd_op *op, opd_value *rets, const opd_value *args,
                                               int nargs) {
    if (thread->error != OPD_OK) { return -1; }
    bool watched = opdi_is_watched(thread, op);
    if (!op || (!watched && rets && (args || nargs <= 0))) { return 1; }
    return opdi_call_observed(thread, op, rets, args, nargs, watched);
}

/* Runs a call in the rare cases: the thread's first call, a pending error, observers, or missing arrays.  Returns 0, or
   -1 and sets an error. */
OPDI_NOINLINE static int opdi_call_off_path(opd_op *op, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    int rc = 1;
    if (((int)thread->error | OPDI_LOAD(&thread->observed)) != 0 || !args || !rets) {
        rc = opdi_call_if_observed(thread, op, rets, args, nargs);
    }
    if (!op) { rc = opd_fail(OPD_ERROR_NOT_FOUND, "the operator handle of a call is NULL"); }
    if (rc > 0) { return opdi_call_with_defaults(thread, op, rets, args, nargs, was); }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

int opd_call_all(opd_op *op, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_thread_self;
    opdi_arg_keys sets;
    if (OPDI_UNLIKELY(!thread || !op || !args || !rets || ((int)thread->error | OPDI_LOAD(&thread->observed)) != 0)) {
        return opdi_call_off_path(op, rets, args, nargs);
    }
    uint64_t was = opdi_enter(thread);
    const opdi_table *table = OPDI_ACQUIRE(&op->table);  /* acquired: other fields of op may be read from here on */
    if (OPDI_UNLIKELY(!table || nargs != op->direct || thread->top + OPDI_MAX_RETURNS > thread->cap) ||
        OPDI_UNLIKELY(opdi_arg_keys_direct(&sets, op, args) != 0)) {
        return opdi_call_with_defaults(thread, op, rets, args, nargs, was);
    }
    int rc = opdi_call_dispatch(thread, op, table, &sets, rets, args);
    opdi_leave(thread, was);
    return OPDI_LIKELY(rc == 0) ? 0 : opdi_no_rets(op, rets);
}

/* Sets the error that a call has returned `ret`, unless `ret` is None.  `wants` says what the caller would return.
   Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_other_result(const opd_op *op, const opd_value *ret, const char *wants) {
    if (ret->tag == OPD_TAG_NONE) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s() returns a value of type '%s', but %s: use %s or OPD_CALL_N", op->name,
                    opdi_value_kind(ret), wants, ret->tag == OPD_TAG_TENSOR ? "OPD_CALL"
                    : ret->tag == OPD_TAG_TENSORS ? "opd_call_list" : "opd_call_value");
}

opd_tensor *opd_call_op(opd_op *op, const opd_value *args, int nargs) {
    opd_value rets[OPDI_MAX_RETURNS];
    rets[0].tag = OPD_TAG_NONE;
    if (opd_call_all(op, rets, args, nargs)) { return NULL; }
    if (OPDI_LIKELY(rets[0].tag == OPD_TAG_TENSOR)) { return rets[0].u.t; }
    (void)opdi_other_result(op, &rets[0], "OPD_CALL and opd_call_op return a tensor");
    return NULL;
}

int opd_call_tensors(opd_op *op, opd_tensor **out, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    opd_value rets[OPDI_MAX_RETURNS];
    int rc = opd_call_all(op, rets, args, nargs);
    if (!op && out) { out[0] = NULL; }
    for (int i = 0; op && out && i < op->nrets; i++) {
        out[i] = rc == 0 && rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
        if (rc == 0 && !out[i]) { rc = opdi_other_result(op, &rets[i], "opd_call_tensors returns only tensors"); }
    }
    opdi_leave(thread, was);
    return rc;
}

OPDI_COLD_BEGIN

/* Combines the keys and flags of the arguments into *sets.  Checks that the kernel of a device other than meta does not
   get a tensor of the meta device, which has no data.  Returns 0, or -1 and sets an error. */
static int opdi_check_at(const opd_op *op, opd_key key, const opd_value *args, opdi_arg_keys *sets) {
    const opd_keyset keys = opdi_keyset_of(key);
    memset(sets, 0, sizeof *sets);
    if (opdi_arg_keys_bound(sets, op, args)) { return -1; }
    if (!keys.backends || keys.backends >> OPD_META & 1 || !(sets->backends >> OPD_META & 1)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: a call at %s with a tensor of the meta device, which has no data",
                    op->name, opd_key_name(key));
}
/* Binds the arguments and runs the kernel of the slot of `key`, whatever keys the arguments have.  If handle is not
   NULL, runs its kernel instead, which then sees the keys of the arguments up to `key`.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_call_at_key(opdi_thread *thread, opd_op *op, opd_key key, const opd_kernel_handle *handle,
                                   opd_value *rets, const opd_value *args, int nargs) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opd_value bound[OPD_MAX_ARGS], unwanted[OPDI_MAX_RETURNS];
    const int64_t mark = thread->top;
    opd_call call;
    opdi_arg_keys sets;
    opdi_slot made[2];
    int rc = -1;
    if ((table || (table = opdi_table_make(op)) != NULL) && opdi_bind_all(op, args, nargs, bound) == 0 &&
        opdi_check_at(op, key, bound, &sets) == 0 && opdi_scope_reserve(thread, OPDI_MAX_RETURNS) == 0) {
        int64_t top = thread->top;
        memset(&call, 0, sizeof call);
        call.op = op;
        call.args = bound;
        call.rets = rets ? rets : unwanted;
        call.keys = opdi_keyset_of(key);
        call.slot = key;
        call.flags = sets.flags & OPDI_STORED;
        const opd_keyset all = opd_keyset_make((sets.functionality | thread->state.include) & thread->state.allow,
                                               sets.backends);
        const opdi_slot *const slot = handle ? opdi_handle_slot(handle, table, &call, all, made)
            : call.flags ? opdi_stored_slot(&call, &table->slots[key]) : &table->slots[key];
        rc = opdi_invoke(thread, &call, slot);
        if (rc == 0 && opdi_scope_reserve(thread, OPDI_MAX_RETURNS)) {
            opdi_rets_drop(&call);
            rc = -1;
        }
        if (rc == 0) { rc = opdi_rets_own(thread, &call); }
        if (top != mark) { opdi_scope_remove(thread, mark, top); }
    }
    return rc;
}

int opd_call_at(opd_op *op, const char *key, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    const opd_key wanted = opd_ok() ? opd_key_parse(key) : (opd_key)OPD_KEY_INVALID;
    int rc = -1;
    if (opdi_any_dead_value(args, nargs, "opd_call_at")) { rc = -1; }
    else if (op && opdi_key_is_runtime(wanted)) { rc = opdi_call_at_key(thread, op, wanted, NULL, rets, args, nargs); }
    else if (op) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_call_at: %s is not the key of a kernel (such as CPU or AutogradCPU)",
                       key);
    }
    else { (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_call_at: the operator is NULL"); }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

opd_value opd_call_value(opd_op *op, const opd_value *args, int nargs) {
    opd_value rets[OPDI_MAX_RETURNS];
    rets[0] = opd_value_none();
    return opd_call_all(op, rets, args, nargs) ? opd_value_none() : rets[0];
}

opd_tensors opd_call_list(opd_op *op, const opd_value *args, int nargs) {
    opd_value value = opd_call_value(op, args, nargs);
    if (value.tag == OPD_TAG_TENSORS) { return opd_tensors_of(value.u.tensors, value.n); }
    (void)opdi_other_result(op, &value, "opd_call_list returns a list of tensors");
    return opd_tensors_of(NULL, 0);
}

/* Runs a call with nargs arguments by position and nkw arguments by name.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs,
                                     const opd_keyword *kw, int nkw) {
    const opdi_given given = {args, kw, nargs, nkw, /* keywords, numbers */ true, true};
    opd_value unwanted[OPDI_MAX_RETURNS];
    opdi_thread *thread = opdi_self();
    if (thread->error != OPD_OK) { return -1; }
    if (!op || !opdi_is_defined(op)) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "the operator handle of a call is NULL, or its operator is not defined");
    }
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    if (!table && !(table = opdi_table_make(op))) { return -1; }
    return opdi_call_binding(thread, op, table, rets ? rets : unwanted, &given, opdi_is_watched(thread, op));
}
int opd_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs, const opd_keyword *kw, int nkw) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    const int rc = opdi_call_keywords(op, rets, args, nargs, kw, nkw);
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

int opd_overloads_call(opd_overloads *set, opd_value *rets, const opd_value *args, int nargs, const opd_keyword *kw,
                       int nkw) {
    opdi_given given = {args, kw, nargs, nkw, /* keywords, numbers */ true, true};
    opd_value bound[OPD_MAX_ARGS], unwanted[OPDI_MAX_RETURNS];
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    int64_t mark = thread->top;
    opd_op *op = opdi_overloads_bind(set, &given, bound);
    const opdi_table *table = op ? OPDI_ACQUIRE(&op->table) : NULL;
    int rc = -1;
    if (op && !table) { table = opdi_table_make(op); }
    if (!rets) { rets = unwanted; }
    if (table) { rc = opdi_call_bound(thread, op, table, rets, bound, mark, opdi_is_watched(thread, op)); }
    else if (thread->top != mark) { opdi_scope_remove(thread, mark, thread->top); }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets == unwanted ? NULL : rets) : 0;
}

int opd_kernel_call(const opd_kernel_handle *handle, opd_call *call) {
    opdi_slot made[2];
    if (!call || !opdi_handle_kernel(handle)) { return -1; }
    if (handle->op != call->op) {
        return opd_fail(OPD_ERROR_KERNEL, "opd_kernel_call: the handle is of a kernel of %s, but the call is of %s "
                        "(opd_kernel_call_with takes other arguments)", handle->op->name, call->op->name);
    }
    if (call->filled != 0) {
        return opd_fail(OPD_ERROR_KERNEL, "opd_kernel_call was called after the kernel had returned a result");
    }
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    if (!table && !(table = opdi_table_make(call->op))) { return -1; }
    opd_call other = *call;
    other.flags &= OPDI_STORED;
    const opdi_slot *slot = opdi_handle_slot(handle, table, &other, call->keys, made);
    if (other.slot != call->slot) { other.targets = NULL; }       /* kernels of other layers make their own results */
    int rc = opdi_invoke(call->th, &other, slot);
    call->filled = other.filled;
    call->owned = other.owned;
    call->cursor = other.cursor;
    return rc;
}

int opd_kernel_call_with(const opd_kernel_handle *handle, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    int rc = opdi_any_dead_value(args, nargs, "opd_kernel_call_with");
    if (rc == 0) {
        rc = opdi_handle_kernel(handle)
            ? opdi_call_at_key(thread, handle->op, handle->key, handle, rets, args, nargs) : -1;
    }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(handle ? handle->op : NULL, rets) : 0;
}

/* Returns the name of the operator that the program called.  Inside of a derived form, returns the name of the form. */
OPDI_INTERNAL const char *opdi_call_name(const opd_call *call) {
    return (call->targets && call->outer ? call->outer : call)->op->name;
}
/* Begins the message of an error that a kernel sets: writes the name of its operator and ": " to thread->message.
   Returns the length of this text, or 0 if it does not fit.  If an exception or a longjmp has left the kernel, returns
   -1 and sets an error that says so. */
OPDI_INTERNAL int opdi_error_begin(opdi_thread *thread) {
    if (opdi_is_left(thread)) { return opdi_forget_left(thread); }
    const int count = snprintf(thread->message, sizeof thread->message, "%s: ", opdi_call_name(thread->current));
    return count < 0 || count >= (int)sizeof thread->message ? 0 : count;
}
/* Ends the message of an error that a kernel has set.  If the message is about dtypes, and an argument of the call is a
   tensor in blocks, says what makes float32 of it, unless the message already does. */
OPDI_INTERNAL void opdi_error_end(opdi_thread *thread) {
    const opd_call *const call = thread->current;
    if (thread->error != OPD_ERROR_DTYPE && !strstr(thread->message, "type")) { return; }
    if (strstr(thread->message, "opd_dequantize")) { return; }
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *const value = &call->args[i];
        const bool list = value->tag == OPD_TAG_TENSORS;
        for (int k = 0; k < (list ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            const opd_tensor *const tensor = list ? value->u.tensors[k] : value->u.t;
            if (!tensor || opdi_is_dead(tensor) || !opdi_is_block(tensor->dtype)) { continue; }
            (void)opdi_fail_more(" (opd_dequantize makes float32 of a tensor in blocks)");
            return;
        }
    }
}
OPDI_COLD_END

int opd_redispatch(opd_call *call, opd_keyset keys) {
    return opdi_redispatch_in(OPDI_ACQUIRE(&call->op->table), call, keys);
}
