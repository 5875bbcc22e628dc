#include "lean.h"

//== calls by base name ================================================================================================
//
//  The first call by a base name makes the list of its overloads.  The list is made again if operators of that name
//  have since been defined or undefined.  Other threads see only complete lists.  An old list is freed when no running
//  call can be using it.

OPDI_COLD_BEGIN

static opd_op **opdi_overload_at(const opdi_overload_list *list, int64_t i) {
    return (opd_op **)(uintptr_t)(list + 1) + i;
}
static void opdi_overload_list_reclaim(opdi_retired *gone) {
    const opdi_overload_list *list = (const opdi_overload_list *)(const void *)gone;
    opdi_free(gone, sizeof *list + (size_t)list->count * sizeof(opd_op *));
}

#if defined(OPD_LEAN)
/* Returns the number of a built-in operator, or OPD_OP_COUNT for any other operator.  In a lean program, the built-in
   operators of one name are registered in any order, so they are sorted by number. */
static int opdi_overload_number(const opd_op *op) {
    int i = 0;
    while (i < OPD_OP_COUNT && OPDI_LOAD(&opdi_registry.builtin[i]) != op) { i++; }
    return i;
}
#endif

/* Compares overloads for qsort.  Overloads are in the order of definition; derived forms come last, in the order of the
   operators that they were derived from. */
static int opdi_overload_order(const void *x, const void *y) {
    const opd_op *const op = *(opd_op *const *)x, *const other = *(opd_op *const *)y;
    const opd_op *const own_a = op->card && op->card->base ? op->card->base->op : op;
    const opd_op *const own_b = other->card && other->card->base ? other->card->base->op : other;
    const int derived = (own_a != op) - (own_b != other);
    if (derived) { return derived; }
#if defined(OPD_LEAN)
    const int number = opdi_overload_number(own_a), other_number = opdi_overload_number(own_b);
    if (number != other_number) { return number < other_number ? -1 : 1; }
#endif
    if (own_a->rank != own_b->rank) { return own_a->rank < own_b->rank ? -1 : 1; }
    return op->rank < other->rank ? -1 : op->rank > other->rank;
}

/* For each base name, the order in which PyTorch tries overloads that accept the same arguments.  "-" is the overload
   without a name. */
static const char *const opdi_overload_orders[] = {
    "aten::range step - out out_", OPDI_TEXT("aten::var - dim correction correction_out out"),
    OPDI_TEXT("aten::std - dim correction correction_out out"), OPDI_TEXT("aten::any - dim dims out dims_out all_out"),
    OPDI_TEXT("aten::all - dim dims out dims_out all_out"),
    OPDI_TEXT(
        "aten::normal Tensor_float Tensor_float_out float_Tensor_out float_Tensor Tensor_Tensor Tensor_Tensor_out "
        "float_float float_float_out out")
};
/* Moves the overloads that opdi_overload_orders lists for this base name to the front, in that order. */
static void opdi_overloads_reorder(const char *name, opd_op **ops, int64_t count) {
    const size_t length = strlen(name);
    int64_t at = 0;
    size_t w;
    for (size_t i = 0; i < sizeof opdi_overload_orders / sizeof *opdi_overload_orders; i++) {
        const char *word = opdi_overload_orders[i];
        if (strncmp(word, name, length) != 0 || word[length] != ' ') { continue; }
        for (word += length; *word; word += w) {
            w = strcspn(++word, " ");
            for (int64_t k = at; k < count; k++) {
                const char *own = ops[k]->name + length + (ops[k]->name[length] == '.');
                opd_op *op = ops[k];
                if (!(*own ? strlen(own) == w && memcmp(own, word, w) == 0 : *word == '-')) { continue; }
                memmove(ops + at + 1, ops + at, (size_t)(k - at) * sizeof *ops);
                ops[at++] = op;
                break;
            }
        }
    }
}

/* Makes a list of the overloads that are defined now.  Returns NULL and sets an error if memory runs out.  The caller
   holds the lock. */
static opdi_overload_list *opdi_overloads_list_now(const opd_overloads *set) {
    opd_op *op;
    size_t count = 0;
    bool sorted = true;
    for (op = set->name->newest; op; op = op->next_overload) { count += op->definition != NULL; }
    opdi_overload_list *list = (opdi_overload_list *)opdi_alloc(sizeof *list + count * sizeof op);
    if (!list) { return NULL; }
    list->count = (int64_t)count;
    opd_op **at = opdi_overload_at(list, 0) + count;
    for (op = set->name->newest; op; op = op->next_overload) {
        if (!op->definition) { continue; }
        *--at = op;                               /* oldest first: usually the right order */
        sorted = sorted && (at + 1 == opdi_overload_at(list, list->count) || opdi_overload_order(at, at + 1) < 0);
    }
    if (!sorted) { qsort(at, count, sizeof op, opdi_overload_order); }
    opdi_overloads_reorder(opdi_name_text(set->name), at, list->count);
    return list;
}

/* Returns the list of a set's overloads.  Makes it again if operators were defined or undefined.  Returns NULL and sets
   an error if that fails.  The caller is inside a call (opdi_enter); the list is valid until the caller leaves the call
   (opdi_leave). */
static const opdi_overload_list *opdi_overloads_list(opd_overloads *set) {
    if (OPDI_ACQUIRE(&set->changes) == OPDI_ACQUIRE(&set->name->changes)) { return OPDI_ACQUIRE(&set->list); }
    opdi_builtins_make(opdi_name_text(set->name));
    if (!opd_ok()) { return NULL; }
    if (OPDI_LOAD(&opdi_registry.gone_count) > 100) { opdi_retired_reclaim(); }    /* frees older lists, for example */
    if (OPDI_ACQUIRE(&opdi_registry.making) && OPDI_LOAD(&opdi_registry.starter) != opdi_self()) {
        opdi_lock(&opdi_registry.start);          /* waits if another thread is registering */
        opdi_unlock(&opdi_registry.start);
    }
    opdi_lock(&opdi_registry.lock);
    opdi_overload_list *list = opdi_overloads_list_now(set);
    if (list) {
        opdi_overload_list *old = set->list;
        OPDI_PUBLISH(&set->list, list);
        OPDI_PUBLISH(&set->changes, set->name->changes);
        if (old) { opdi_retire(&old->gone, opdi_overload_list_reclaim); }
    }
    opdi_unlock(&opdi_registry.lock);
    return list;
}

/* Returns the set of overloads of a base name, and makes it if it is new.  Returns NULL if no operator has this base
   name, or if memory runs out. */
OPDI_INTERNAL opd_overloads *opdi_overloads_of(const char *name, size_t length) {
    opdi_op_name *base = opdi_names_find(OPDI_ACQUIRE(&opdi_registry.names), name, length);
    opd_overloads *set = base ? OPDI_ACQUIRE(&base->overloads) : NULL;
    if (set) { return set; }
    opdi_builtins_find(name);
    opdi_lock(&opdi_registry.lock);
    base = opdi_names_find(opdi_registry.names, name, length);
    set = base ? base->overloads : NULL;
    if (base && base->newest && !set && (set = (opd_overloads *)opdi_alloc(sizeof *set)) != NULL) {
        set->list = NULL;
        set->name = base;
        set->changes = -1;
        set->wrap = false;
        for (const opd_op *op = base->newest; op && !set->wrap; op = op->next_overload) {
            set->wrap = op->definition && (op->definition->tags & OPDI_OPTAG_NUMBERS);
        }
        OPDI_PUBLISH(&base->overloads, set);
    }
    opdi_unlock(&opdi_registry.lock);
    return set;
}

/* Returns the overloads of a base name if one of them is defined.  If none is, returns NULL without an error, for
   callers that only try a name.  Returns NULL and sets an error if memory runs out. */
OPDI_INTERNAL opd_overloads *opdi_overloads_quiet(const char *name) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    opd_overloads *set = NULL;
    if (opd_ok()) {
        opdi_started();
#if defined(OPD_LEAN)                             /* more overloads may be kept by now */
        if (name) { opdi_builtins_make(name); }
#endif
        set = name ? opdi_overloads_of(name, strlen(name)) : NULL;
        const opdi_overload_list *list = set ? opdi_overloads_list(set) : NULL;
        if (!list || list->count == 0) { set = NULL; }
    }
    opdi_leave(thread, was);
    return opd_ok() ? set : NULL;
}
opd_overloads *opd_overloads_find(const char *name) {
    OPDI_NEEDS_ALL();                             /* the result depends on all overloads */
    opd_overloads *set = opdi_overloads_quiet(name);
    if (!set && opd_ok()) { (void)opdi_not_found(name ? name : "NULL"); }
    return set;
}

opd_op *opd_overloads_at(opd_overloads *set, int i) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    const opdi_overload_list *list = set ? opdi_overloads_list(set) : NULL;
    opd_op *op = list && i >= 0 && i < list->count ? *opdi_overload_at(list, i) : NULL;
    opdi_leave(thread, was);
    return op;
}

/* Sets an error that lists, for each overload, the reason why it does not accept the arguments.  Returns NULL. */
static opd_op *opdi_overloads_error(const opd_overloads *set, const opdi_overload_list *list, const opdi_given *given) {
    char text[2000];
    const char *name = opdi_name_text(set->name);
    int at, count = snprintf(text, sizeof text, "%s() has no overload that takes these arguments:", name);
    const int capacity = list->count > 0 ? OPDI_MAX(((int)sizeof text - count) / (int)list->count, 100) : 0;
    opd_value bound[OPD_MAX_ARGS];
    if (list->count == 0) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "%s() has no overload left: the libraries of all its overloads have been "
                       "closed or unloaded", name);
        return NULL;
    }
    for (int i = 0; i < list->count && count + 20 < (int)sizeof text; i++) {
        opd_op *op = *opdi_overload_at(list, i);
        int mark = opd_error_mark(), rc = opdi_is_defined(op) ? opdi_bind(op, given, bound, &at) : -1;
        if (rc > 0) { (void)opdi_bind_error(op, given, rc, at); }
        count += snprintf(text + count, OPDI_MIN(sizeof text - (size_t)count, (size_t)capacity), "\n\n%s",
                          opd_error_message());
        count = OPDI_MIN((int)strlen(text), (int)sizeof text - 1);
        (void)opd_error_rewind(mark);
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s", text);
    return NULL;
}

/* Binds the given arguments to the first overload that accepts them, and returns the overload.  Returns NULL and sets
   an error if there is none.  A number is accepted for a tensor only if no overload accepts it as a number.  If
   set->wrap is true, each overload may accept a number as a tensor from the start. */
OPDI_INTERNAL opd_op *opdi_overloads_bind(opd_overloads *set, opdi_given *given, opd_value *bound) {
    const opdi_overload_list *list = set ? opdi_overloads_list(set) : NULL;
    int at;
    if (!set && opd_ok()) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "the overloads of a call are NULL (opd_overloads_find returns NULL if it "
                       "finds none)");
    }
    if (!list || !opd_ok()) { return NULL; }
    for (int pass = set->wrap ? 1 : 0; pass < 2; pass++) {
        given->numbers = pass == 1;
        for (int i = 0; i < list->count; i++) {
            opd_op *op = *opdi_overload_at(list, i);
            int mark = opd_error_mark(), rc = opdi_is_defined(op) ? opdi_bind(op, given, bound, &at) : -1;
            if (rc == OPDI_BOUND) { return op; }
            if (opdi_error_passes()) { return NULL; }
            (void)opd_error_rewind(mark);         /* forgets another error, such as a device that does not exist */
        }
    }
    return opdi_overloads_error(set, list, given);
}

opd_op *opd_overloads_resolve(opd_overloads *set, const opd_value *args, int nargs, const opd_keyword *kw, int nkw) {
    opdi_given given = {args, kw, nargs, nkw, /* keywords, numbers */ true, true};
    opd_value bound[OPD_MAX_ARGS];
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    int64_t mark = thread->top;
    opd_op *op = opdi_overloads_bind(set, &given, bound);
    if (thread->top != mark) { opdi_scope_remove(thread, mark, thread->top); }
    opdi_leave(thread, was);
    return op;
}

/* If another overload accepts these arguments, appends its name to the pending error.  Returns -1. */
OPDI_INTERNAL int opdi_fail_overload(const opd_op *op, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const opd_code code = thread->error;
    char said[sizeof thread->message];
    const opd_op *other = NULL;
    memcpy(said, thread->message, sizeof said);
    thread->error = OPD_OK;
    opd_overloads *set = opdi_overloads_of(op->base_name, strlen(op->base_name));
    if (set) { other = opd_overloads_resolve(set, args, nargs, NULL, 0); }
    memcpy(thread->message, said, sizeof said);
    thread->error = code;
    return !other || other == op ? -1 : opdi_fail_more("\n%s takes these arguments", other->name);
}

OPDI_COLD_END
