#include "lean.h"

//== registering built-in operators when they are needed ===============================================================
//
//  A program uses few of the built-in operators, so each is registered only when an operator of its family is looked
//  up.  A family is the overloads and the derived forms of one name (add.Tensor, add.Scalar, add_.Tensor, add.out).

/* Returns the length of the part of a name that names its family (the overloads and derived forms of one operator): for
   "aten::add_.Tensor", the length of "aten::add". */
OPDI_INTERNAL size_t opdi_family(const char *name) {
    static const char functional[] = "_functional";        /* normal_functional is in the family of normal */
    const size_t m = sizeof functional - 1;
    size_t length = strcspn(name, ".(");
    if (length > m && memcmp(name + length - m, functional, m) == 0) { length -= m; }
    while (length > 0 && name[length - 1] == '_') { length--; }
    return length;
}
OPDI_INTERNAL bool opdi_same_family(const char *first, const char *second) {
    const size_t length = opdi_family(first);
    return opdi_family(second) == length && memcmp(first, second, length) == 0;
}
#if defined(OPD_LEAN)
OPDI_INTERNAL const char *opdi_builtin_name(int i) {
    const opdi_lean_card *const card = OPDI_LOAD(&opdi_lean_cards[i]);
    return card ? card->name : "";
}
/* Returns true if built-in operator number `i` is kept, not yet registered, and of the family of the qualified name
   `name`; if `name` is NULL, of any family. */
static bool opdi_is_pending(int i, const char *name) {
    const opdi_lean_card *const card = OPDI_LOAD(&opdi_lean_cards[i]);
    return card && card->card && !OPDI_LOAD(&opdi_registry.builtin[i]) && (!name || opdi_same_family(name, card->name));
}
/* Returns the number, `i` or larger, of the next built-in operator that is not yet registered and is of the family of
   `name`.  Returns OPD_OP_COUNT if there is none. */
static int opdi_pending_next(int i, const char *name) {
    while (i < OPD_OP_COUNT && !opdi_is_pending(i, name)) { i++; }
    return i;
}
#else
/* Returns the index in family_first where the list of a name's family begins.  Different families may have the same
   index. */
static unsigned opdi_family_slot(const char *name) {
    const size_t length = opdi_family(name);
    unsigned hash = 0;
    for (size_t i = 0; i < length; i++) { hash = hash * 31 + (unsigned char)name[i]; }
    return (hash ^ hash >> 15) % OPDI_FAMILY_SLOTS;
}
#define OPDI_CARD(card, name) "aten::" name,
static const char *const opdi_builtin_names[] = {OPDI_CARDS};
#undef OPDI_CARD
OPDI_INTERNAL const char *opdi_builtin_name(int i) { return opdi_builtin_names[i]; }
/* Makes lists of the built-in operators by family, each in the order of their numbers, so that a look-up visits only
   the operators of its family. */
OPDI_INTERNAL void opdi_families_note(void) {
    memset(opdi_registry.family_first, 0, sizeof opdi_registry.family_first);
    for (int i = OPD_OP_COUNT; i-- > 0;) {
        int16_t *const first = &opdi_registry.family_first[opdi_family_slot(opdi_builtin_name(i))];
        opdi_registry.family_next[i] = *first;
        *first = (int16_t)(i + 1);
    }
}
/* Returns true if built-in operator number `i` is not yet registered and is of the family of the qualified name `name`;
   if `name` is NULL, of any family. */
static bool opdi_is_pending(int i, const char *name) {
    return !OPDI_LOAD(&opdi_registry.builtin[i]) && (!name || opdi_same_family(name, opdi_builtin_name(i)));
}
/* Returns the number of the next built-in operator that is not yet registered and is of the family of `name` (NULL: of
   any family), or OPD_OP_COUNT.  `i` is 0, or one more than the last result. */
static int opdi_pending_next(int i, const char *name) {
    if (!name) {
        while (i < OPD_OP_COUNT && !opdi_is_pending(i, NULL)) { i++; }
        return i;
    }
    int at = i ? opdi_registry.family_next[i - 1] : opdi_registry.family_first[opdi_family_slot(name)];
    while (at && !opdi_is_pending(at - 1, name)) { at = opdi_registry.family_next[at - 1]; }
    return at ? at - 1 : OPD_OP_COUNT;
}
#endif

/* The parts of the thread's state that are saved while built-in operators are registered in the middle of a call. */
typedef struct opdi_registering {
    opd_call *current;
    opdi_free_block *lists[OPDI_CLASSES];
    bool outer;                                   /* this thread was registering before */
} opdi_registering;
static void opdi_registering_begin(opdi_registering *making) {
    opdi_thread *thread = opdi_self();
    making->current = thread->current;
    making->outer = OPDI_LOAD(&opdi_registry.starter) == thread;
    if (!making->outer) {
        opdi_lock(&opdi_registry.start);
        opdi_lists_hide(thread, making->lists);
        OPDI_STORE(&opdi_registry.starter, thread);
    }
    OPDI_PUBLISH(&opdi_registry.making, 1);
    thread->current = NULL;                       /* else errors would name the running kernel */
}
static void opdi_registering_end(opdi_registering *making) {
    opdi_thread *thread = opdi_self();
    thread->current = making->current;
    if (!making->outer) {
        opdi_lists_show(thread, making->lists);
        OPDI_PUBLISH(&opdi_registry.making, 0);
        OPDI_STORE(&opdi_registry.starter, (opdi_thread *)NULL);
        opdi_unlock(&opdi_registry.start);
    }
}
/* Registers the built-in operators of the family of a qualified name (NULL: of all families) that are not registered
   yet. */
OPDI_INTERNAL void opdi_builtins_make(const char *name) {
    opdi_registering making;
    if (!opdi_registry.aten || opdi_self()->error != OPD_OK || (name && strncmp(name, "aten::", 6) != 0)) { return; }
    if (opdi_pending_next(0, name) == OPD_OP_COUNT || opdi_stack_short(name, OPDI_STACK_CALL)) { return; }
    opdi_registering_begin(&making);
    int i = opdi_pending_next(0, name);           /* looks again: another thread may have registered some */
    while (i < OPD_OP_COUNT && opdi_above->register_card(i) == 0) { i = opdi_pending_next(i + 1, name); }
    opdi_registering_end(&making);
}
/* Registers the operators of group `which` (OPDI_EXTRA_*), unless that was done. */
static void opdi_extra_make(int which) {
    opdi_registering making;
    if (!opdi_registry.aten || opdi_self()->error != OPD_OK || OPDI_LOAD(&opdi_registry.extra[which]) ||
        opdi_stack_short(NULL, OPDI_STACK_CALL)) { return; }
    opdi_registering_begin(&making);
    if (!OPDI_LOAD(&opdi_registry.extra[which])) { (void)opdi_above->register_extra(which); }
    opdi_registering_end(&making);
}
/* Registers the group of operators to which the namespace `ns`, a name of `length` bytes, belongs.  Does nothing for
   other namespaces. */
OPDI_INTERNAL void opdi_extras_find(const char *ns, size_t length) {
    if (length == 11 && memcmp(ns, "torchvision", 11) == 0) { opdi_extra_make(OPDI_EXTRA_VISION); }
    if ((length == 20 && memcmp(ns, "quantized_decomposed", 20) == 0) ||
        (length == 7 && memcmp(ns, "torchao", 7) == 0) || (length == 10 && memcmp(ns, "opdispatch", 10) == 0) ||
        (length == 6 && memcmp(ns, "onednn", 6) == 0) || (length == 9 && memcmp(ns, "quantized", 9) == 0) ||
        (length == 12 && memcmp(ns, "transformers", 12) == 0)) { opdi_extra_make(OPDI_EXTRA_QUANTIZED); }
    if ((length == 4 && memcmp(ns, "c10d", 4) == 0) || (length >= 16 && memcmp(ns, "_c10d_functional", 16) == 0)) {
        opdi_extra_make(OPDI_EXTRA_COLLECTIVES);
    }
}
/* Registers the built-in operators that a look-up of name may need. */
OPDI_INTERNAL void opdi_builtins_find(const char *name) {
    const char *const colons = strstr(name, "::");
    if (colons) { opdi_extras_find(name, (size_t)(colons - name)); }
    opdi_builtins_make(name);
}
