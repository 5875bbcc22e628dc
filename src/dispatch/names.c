#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>names        the table of names, tables of kernels, listeners, built-in operators by family
//----------------------------------------------------------------------------------------------------------------------

//== names =============================================================================================================

/* Returns the operator of a name in the published table, defined or not, or NULL if there is none.  Takes no lock. */
OPDI_INTERNAL opd_op *opdi_lookup(const char *name, size_t length) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    const opdi_op_name *found = opdi_names_find(OPDI_ACQUIRE(&opdi_registry.names), name, length);
    opd_op *op = found ? OPDI_ACQUIRE(&found->op) : NULL;
    opdi_leave(thread, was);
    return op;
}

OPDI_COLD_BEGIN

/* Returns true if observers do not see calls of operators with this base name, as in PyTorch
   (ATen/core/dispatch/ObservedOperators.cpp). */
static bool opdi_is_unobserved(const char *base) {
    static const char *const names[] = {"aten::size", "aten::is_leaf", "aten::output_nr", "aten::_version",
                                        "aten::is_complex"};
    size_t i = 0;
    while (i < sizeof names / sizeof *names && strcmp(names[i], base) != 0) { i++; }
    return i < sizeof names / sizeof *names;
}

OPDI_INTERNAL const int8_t opdi_no_aliases[OPDI_MAX_RETURNS] = {
    -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

static size_t opdi_names_bytes(size_t mask) { return sizeof(opdi_names) + (mask + 1) * sizeof(opdi_name_slot); }
static void opdi_names_reclaim(opdi_retired *gone) {
    opdi_free(gone, opdi_names_bytes(((const opdi_names *)(const void *)gone)->mask));
}
static void opdi_names_put(opdi_names *names, opdi_op_name *name, uint64_t hash) {
    uint64_t i = hash;
    while (opdi_names_at(names, i)->name) { i++; }
    names->used++;
    opdi_names_at(names, i)->hash = hash;
    OPDI_PUBLISH(&opdi_names_at(names, i)->name, name);
}

/* Makes room for one more name: doubles the table if it is half full.  If memory for that runs out, the old table
   continues to fill up.  If the old table is full, too, returns -1 and sets an error.  Otherwise returns 0.  The caller
   holds the lock. */
static int opdi_names_reserve(void) {
    opdi_names *old = opdi_registry.names;
    const size_t mask = old ? old->mask * 2 + 1 : 511;
    if (old && old->used * 2 <= old->mask) { return 0; }
    int mark = opd_error_mark();
    opdi_names *names = (opdi_names *)opdi_alloc(opdi_names_bytes(mask));
    if (!names && (!old || old->used + 1 >= old->mask)) { return -1; }
    if (!names) {
        (void)opd_error_rewind(mark);
        return 0;
    }
    memset(names, 0, opdi_names_bytes(mask));
    names->mask = mask;
    for (size_t i = 0; old && i <= old->mask; i++) {
        const opdi_name_slot *slot = opdi_names_at(old, i);
        if (slot->name) { opdi_names_put(names, slot->name, slot->hash); }
    }
    OPDI_PUBLISH(&opdi_registry.names, names);
    if (old) { opdi_retire(&old->gone, opdi_names_reclaim); }
    return 0;
}

/* Returns the next of all operators, defined or not, and advances *place, which is 0 at first.  Returns NULL at the
   end.  The caller holds the lock. */
OPDI_INTERNAL opd_op *opdi_entries(size_t *place) {
    const opdi_names *names = opdi_registry.names;
    opd_op *op = NULL;
    while (names && !op && *place <= names->mask) {
        const opdi_op_name *name = opdi_names_at(names, (*place)++)->name;
        op = name ? name->op : NULL;
    }
    return op;
}

/* Returns `size` zeroed bytes that are never freed, or NULL and sets an error. */
static void *opdi_permanent_alloc(opdi_permanent *lasting, size_t size) {
    const size_t block = 60000;
    char *at;
    size = (size + 15) & ~(size_t)15;
    if (lasting->left < size) {
        if (!(at = (char *)opdi_alloc(16 + OPDI_MAX(size, block)))) { return NULL; }
        *(void **)(void *)at = lasting->blocks;   /* the newest block leads to all others */
        lasting->blocks = at;
        lasting->at = at + 16;
        lasting->left = OPDI_MAX(size, block);
    }
    at = lasting->at;
    lasting->at += size;
    lasting->left -= size;
    return memset(at, 0, size);
}

/* Returns the opdi_op_name of `text`, which has `length` bytes, and makes it if it is new.  Returns NULL and sets an
   error if memory runs out.  The caller holds the lock. */
static opdi_op_name *opdi_name_make(const char *text, size_t length) {
    opdi_op_name *name = opdi_names_find(opdi_registry.names, text, length);
    if (name || opdi_names_reserve()) { return name; }
    name = (opdi_op_name *)opdi_permanent_alloc(&opdi_registry.name_memory, sizeof *name + length + 1);
    if (!name) { return NULL; }
    name->length = (uint32_t)length;
    memcpy(name + 1, text, length);
    opdi_names_put(opdi_registry.names, name, opdi_hash(text, length));
    return name;
}

/* Returns the operator named `text`, and makes it if it is new.  Returns NULL and sets an error if memory runs out.  An
   opd_op is never freed, so handles stay valid.  The caller holds the lock. */
OPDI_INTERNAL opd_op *opdi_op_find_or_add(const char *text) {
    const size_t n = strlen(text), length = strcspn(text, ".");
    opdi_op_name *name = opdi_name_make(text, n), *base;
    opd_op *op;
    if (!name || name->op) { return name ? name->op : NULL; }
    if (!(base = opdi_name_make(text, length)) ||
        !(op = (opd_op *)opdi_permanent_alloc(&opdi_registry.op_memory, sizeof *op))) { return NULL; }
    op->name = opdi_name_text(name);
    op->base_name = opdi_name_text(base);
    op->length = (uint32_t)n;
    op->base_length = (uint32_t)length;
    op->ret_alias = opdi_no_aliases;
    op->unobserved = opdi_is_unobserved(op->base_name);
    op->wraps_numbers = strncmp(text, "aten::", 6) == 0;
    op->next_overload = base->newest;
    base->newest = op;
    OPDI_PUBLISH(&name->op, op);
    return op;
}

/* Counts a change among the overloads of op's base name, so that the list of these overloads is made again.  The caller
   holds the lock. */
OPDI_INTERNAL void opdi_overloads_changed(const opd_op *op) {
    int32_t *changes = &opdi_name_of(op->base_name)->changes;
    OPDI_PUBLISH(changes, *changes + 1);
}
OPDI_COLD_END
