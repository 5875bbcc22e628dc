#include "dispatch.h"

//== computed tables ===================================================================================================

OPDI_INTERNAL const char *const opdi_chosen_names[] = {"kernel", "default backend kernel", "nested kernel",
    "ambiguous autogradother", "math kernel", "autograd kernel", "batched kernel", "backend fallback", "missing"};

/* Returns the newest kernel that is registered at exactly this key, or NULL. */
OPDI_INTERNAL opdi_kernel *opdi_direct(const opd_op *op, opd_key key) {
    opdi_kernel *kernel = op->kernels;
    while (kernel && kernel->key != key) { kernel = kernel->next; }
    return kernel;
}

/* Returns true if a kernel is registered for a backend whose autograd key is `key`, or for every backend. */
static bool opdi_has_backend_kernel(const opd_op *op, opd_key key) {
    for (const opdi_kernel *kernel = op->kernels; kernel; kernel = kernel->next) {
        if (kernel->key == OPD_KEY_COMPOSITE_EXPLICIT) { return true; }
        if (key != OPD_KEY_UNDEFINED && kernel->key < OPD_KEY_SLOTS && opdi_autograd_key_of(kernel->key) == key) {
            return true;
        }
    }
    return false;
}

OPDI_INTERNAL bool opdi_is_autocast_slot(int slot) {
    return slot >= OPDI_AUTOCAST_SLOT && slot < OPDI_AUTOCAST_SLOT + OPD_BACKEND_COUNT;
}

OPDI_INTERNAL const opdi_slot *opdi_stored_slot(const opd_call *call, const opdi_slot *slot);
OPDI_INTERNAL uint32_t opdi_formula_backends;            /* a bit for each registered backend that runs formulas */
OPDI_INTERNAL bool opdi_backend_pointwise(int type) { return OPDI_LOAD(&opdi_formula_backends) >> type & 1; }
/* Returns true if op is a built-in pointwise operator with a formula, and `key` belongs to a device that runs formulas.
   The operator's Meta kernel then also serves as its kernel for the device. */
static bool opdi_runs_formula(const opd_op *op, opd_key key) {
    const opdi_card *card = OPDI_ACQUIRE(&op->card);
    return card && (card->desc.tags & OPDI_OPTAG_FORMULA) && !card->base && key > OPD_KEY_CPU && key < OPD_KEY_META &&
           opdi_backend_pointwise((int)(key - OPD_KEY_CPU));
}

/* Returns the kernel of one slot, or NULL.  Sets *how to the rule by which it was chosen.  The order of precedence is
   that of OperatorEntry::computeDispatchTableEntryWithDebug. */
OPDI_INTERNAL opdi_kernel *opdi_compute_slot(const opd_op *op, opd_key key, opdi_chosen *how) {
    opdi_kernel *kernel;
    bool undefined = key == OPD_KEY_UNDEFINED;
    *how = OPDI_CHOSEN_KERNEL;
    if ((kernel = opdi_direct(op, key)) != NULL) { return kernel; }
    if (opdi_runs_formula(op, key) && (kernel = opdi_direct(op, OPD_KEY_META)) != NULL) { return kernel; }
    *how = OPDI_CHOSEN_DEFAULT;
    if ((undefined || opdi_key_covers(OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL, key)) &&
        (kernel = opdi_direct(op, OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL)) != NULL) { return kernel; }
    if ((undefined || opdi_key_covers(OPD_KEY_COMPOSITE_EXPLICIT, key)) &&
        (kernel = opdi_direct(op, OPD_KEY_COMPOSITE_EXPLICIT)) != NULL) { return kernel; }
    *how = OPDI_CHOSEN_NESTED;
    if (!undefined && opdi_key_covers(OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR, key) &&
        (kernel = opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR)) != NULL) { return kernel; }
    if ((undefined || opdi_key_covers(OPD_KEY_COMPOSITE_IMPLICIT, key)) &&
        (kernel = opdi_direct(op, OPD_KEY_COMPOSITE_IMPLICIT)) != NULL) {
        *how = OPDI_CHOSEN_AMBIGUOUS;
        for (const opdi_kernel *other = op->kernels; key == OPD_KEY_AUTOGRAD_OTHER && other; other = other->next) {
            if (other->key < OPD_KEY_SLOTS && opdi_autograd_key_of(other->key) == OPD_KEY_AUTOGRAD_OTHER) {
                return NULL;
            }
        }
        *how = OPDI_CHOSEN_MATH;
        if (!opdi_has_backend_kernel(op, key)) { return kernel; }
    }
    *how = OPDI_CHOSEN_AUTOGRAD;
    if (opdi_key_covers(OPD_KEY_AUTOGRAD, key) && (kernel = opdi_direct(op, OPD_KEY_AUTOGRAD)) != NULL) {
        return kernel;
    }
    *how = OPDI_CHOSEN_BATCHED;
    if (opdi_key_covers(OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION, key) &&
        (kernel = opdi_direct(op, OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION)) != NULL) { return kernel; }
    *how = OPDI_CHOSEN_KERNEL;
    if (opdi_is_autocast_slot(key) && (kernel = opdi_above->autocast_policy(op, key - OPDI_AUTOCAST_SLOT)) != NULL) {
        return kernel;
    }
    *how = OPDI_CHOSEN_FALLBACK;
    if ((kernel = opdi_registry.fallbacks[key]) != NULL) { return kernel; }
    *how = OPDI_CHOSEN_MISSING;
    return NULL;
}

/* Writes "registered at FILE:LINE", or the text of `place`, to buf.  Returns buf. */
OPDI_INTERNAL const char *opdi_place_text(opdi_origin place, char *buf, size_t cap) {
    if (place.line) { (void)snprintf(buf, cap, "registered at %s:%d", place.file, (int)place.line); }
    else { (void)snprintf(buf, cap, "%s", place.file); }
    return buf;
}

/* Writes the operator's kernels, "CPU [registered at ...], ...", one for each key, and then the number of fallbacks of
   all operators.  Returns the length.  The caller holds the lock. */
OPDI_INTERNAL size_t opdi_table_text(const opd_op *op, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    char place[300];
    int folded = 0;
    for (const opdi_kernel *kernel = op->kernels; kernel; kernel = kernel->next) {
        const opdi_kernel *newer = op->kernels;
        while (newer != kernel && newer->key != kernel->key) { newer = newer->next; }
        if (newer != kernel) { continue; }
        opdi_text_add(&text, "%s%s [%s]", text.length ? ", " : "", opd_key_name(kernel->key),
                      opdi_place_text(kernel->place, place, sizeof place));
    }
    for (int slot = 0; slot < OPD_KEY_SLOTS; slot++) { folded += opdi_registry.fallbacks[slot] != NULL; }
    if (folded) { opdi_text_add(&text, "%s%d fallbacks for every operator", text.length ? ", " : "", folded); }
    return text.length;
}

OPDI_NOINLINE static int opdi_ambiguous_kernel(opd_call *call) {
    return opd_fail(OPD_ERROR_NO_KERNEL, "'%s' has kernels registered to both CompositeImplicitAutograd and a backend "
                    "mapped to AutogradOther. This makes the backend kernel unreachable; the dispatcher will always "
                    "prefer the CompositeImplicitAutograd lowering. Register an Autograd kernel, or a "
                    "CompositeExplicitAutograd kernel instead of the composite one.", call->op->name);
}

/* For each backend: opd_cpu_fallback, if opd_cpu_fallback_set has switched it on, else NULL. */
OPDI_INTERNAL opd_kernel opdi_cpu_fallback_of[OPD_META];
/* The kernel of slots for which no kernel is registered.  If opd_cpu_fallback_set allows it, runs the operator on the
   CPU; otherwise sets an error that lists the operator's kernels. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_missing_kernel(opd_call *call) {
    char have[1200];
    const opd_kernel fallback = call->slot > OPD_KEY_CPU && call->slot < OPD_KEY_CPU + OPD_META
        ? OPDI_LOAD(&opdi_cpu_fallback_of[call->slot - OPD_KEY_CPU]) : NULL;
    if (fallback) { return fallback(call); }
    /* there are no results whose sizes would be computed */
    if (call->slot == OPD_KEY_META && call->op->nrets == 0 && call->op->written_args) { return 0; }
    opdi_lock(&opdi_registry.lock);
    bool none = !call->op->kernels;
    (void)opdi_table_text(call->op, have, sizeof have);
    opdi_unlock(&opdi_registry.lock);
    if (none) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "Could not run '%s' with arguments from the '%s' backend. '%s' is "
                        "defined, but has no kernel: register one (opd_impl_key, or a field of opd_op_desc)",
                        call->op->name, opd_key_name(call->slot), call->op->name);
    }
    if (call->slot == OPD_KEY_UNDEFINED) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "There were no tensor arguments to this function (e.g., you passed an "
                        "empty list of Tensors), but no fallback function is registered for schema %s. Give the "
                        "operator a Device argument, which then selects the kernel, or a kernel for all devices (`any` "
                        "of opd_op_desc).\nAvailable functions are [%s]", call->op->name, have);
    }
    if (call->slot == OPD_KEY_META && call->th->innermost.fake) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "There was no fake impl registered for %s. This is necessary for it to "
                        "run in a fake mode: register a fake kernel (`fake` of opd_op_desc, or opd_fake_register) that "
                        "makes results of the right sizes with opd_result. It is only available for these backends: "
                        "[%s]", call->op->name, have);
    }
    if (call->slot == OPD_KEY_META) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "attempted to run this operator with Meta tensors, but there was no fake "
                        "impl or Meta kernel registered. Register a fake kernel (`fake` of opd_op_desc, or "
                        "opd_fake_register) that makes results of the right sizes with opd_result. '%s' is only "
                        "available for these backends: [%s]", call->op->name, have);
    }
    return opd_fail(OPD_ERROR_NO_KERNEL, "Could not run '%s' with arguments from the '%s' backend. "
                    "'%s' is only available for these backends: [%s]", call->op->name, opd_key_name(call->slot),
                    call->op->name, have);
}

/* Runs the fallback of the call's slot.  A kernel that is registered for every backend calls this function if it has
   nothing to do in this call. */
OPDI_INTERNAL int opdi_hidden_fallback(opd_call *call) {
    opdi_lock(&opdi_registry.lock);
    const opdi_kernel *kernel = opdi_registry.fallbacks[call->slot];
    opd_kernel fn = kernel && kernel->fn != opd_fallthrough ? kernel->fn : opdi_missing_kernel;
    if (kernel) { call->user = kernel->user; }
    opdi_unlock(&opdi_registry.lock);
    return fn(call);
}

/* Returns true if the slot has a built-in autograd kernel, which only passes a call on if nothing requires grad. */
static bool opdi_slot_skips(const opdi_slot *slot) {
    return slot->fn == opdi_autograd_kernel || slot->fn == opdi_autograd_fallback ||
        slot->fn == opdi_autograd_inplace_kernel || slot->fn == opdi_autograd_out_kernel ||
        slot->fn == opdi_autograd_registered;
}

/* Clears the bit of a slot's functionality in 16 of the table's masks.  `first` is 0 for the masks of calls in which
   nothing requires grad, 16 for the masks of all other calls. */
static void opdi_mask_out(opdi_table *table, int slot, int first) {
    if (slot >= OPD_KEY_BACKEND_BASE) {
        int bit_at = (slot - OPD_KEY_BACKEND_BASE) % 16;
        table->masks[first + bit_at] &= ~OPD_BIT_OF(opdi_row_functionality[(slot - OPD_KEY_BACKEND_BASE) / 16]);
        return;
    }
    for (int bit_at = 0; bit_at < 16; bit_at++) { table->masks[first + bit_at] &= ~OPD_BIT_OF(slot); }
}

/* Computes an operator's table: a kernel for each slot, and the functionalities that a call skips.  The caller holds
   the lock. */
OPDI_INTERNAL void opdi_fill_table(const opd_op *op, opdi_table *table) {
    bool casts = false;
    memset(table, 0, sizeof *table);
    memset(table->masks, -1, sizeof table->masks);
    for (int slot = 0; slot < OPD_KEY_SLOTS; slot++) {
        opdi_chosen how;
        const opdi_kernel *kernel = opdi_compute_slot(op, slot, &how);
        opdi_slot *to = &table->slots[slot];
        if (slot == OPDI_DEAD_KEY) {
            to->fn = opdi_dead_argument;
            continue;
        }
        to->fn = kernel ? kernel->fn : how == OPDI_CHOSEN_AMBIGUOUS ? opdi_ambiguous_kernel : opdi_missing_kernel;
        to->user = kernel ? kernel->user : NULL;
        opdi_above->guard_slot(op, table, slot, how);
        if (opdi_is_autocast_slot(slot) && kernel && kernel->fn != opd_fallthrough) {
            to->fn = opdi_autocast_kernel;        /* opdi_autocast_kernel runs `kernel` if the device's autocast is
                                                     on */
            to->user = (void *)(uintptr_t)kernel;
            casts = true;
        } else if (slot == OPDI_AUTOCAST_SLOT + OPD_META && casts) {
            to->fn = opdi_autocast_of_fakes;      /* Meta is the last autocast slot */
        }
        if (to->fn == opd_fallthrough && slot) { opdi_mask_out(table, slot, 16); }
        if ((to->fn == opd_fallthrough && slot) || opdi_slot_skips(to)) { opdi_mask_out(table, slot, 0); }
    }
    for (int slot = 0; slot < 16; slot++) {       /* built-in autograd kernels skip all lower autograd keys */
        const uint64_t kept = table->masks[slot] & OPDI_AUTOGRAD_BITS;
        table->masks[slot] |= table->masks[16 + slot] & OPDI_AUTOGRAD_BITS & ~((kept & (0 - kept)) - 1);
    }
    table->jvp = opdi_direct(op, OPDI_KEY_JVP) ? opdi_direct(op, OPDI_KEY_JVP)->fn : NULL;
}

/* Returns the table of an operator, and computes it if there is none.  Returns NULL and sets an error if the operator
   is not defined or memory runs out. */
OPDI_NOINLINE OPDI_INTERNAL const opdi_table *opdi_table_make(opd_op *op) {
    opdi_table *table = NULL;
    opdi_lock(&opdi_registry.lock);
    bool defined = op->definition != NULL;
    if (defined && !(table = OPDI_ACQUIRE(&op->table))) {
        table = (opdi_table *)opdi_alloc_fresh(sizeof *table);
        if (table) {
            opdi_fill_table(op, table);
            OPDI_PUBLISH(&op->table, table);
        }
    }
    opdi_unlock(&opdi_registry.lock);
    if (!defined) { (void)opdi_undefined_error(op); }
    return table;
}

/* Takes the table of an operator out of use after a registration, so that the next call computes a new one.  The caller
   holds the lock. */
OPDI_INTERNAL void opdi_table_retire(opd_op *op) {
    opdi_table *old = op->table;
    if (!old) { return; }
    OPDI_PUBLISH(&op->table, (opdi_table *)NULL);
    opdi_retire(&old->gone, opdi_table_reclaim);
}
