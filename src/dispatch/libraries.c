#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>libraries    libraries of operators, and the built-in operators
//
//  A library holds what one block of a program registers (OPD_LIBRARY, OPD_LIBRARY_IMPL).  The first use of the
//  dispatcher runs the blocks.  Closing a library undoes its registrations.
//----------------------------------------------------------------------------------------------------------------------

//== libraries =========================================================================================================

OPDI_COLD_BEGIN

/* Checks the kind, the namespace and the key, and adds the library to the list of libraries.  Returns NULL and sets an
   error if that fails, also for a second OPD_LIBRARY of a namespace. */
opd_library *opd_library_open(opd_library_kind kind, const char *ns, const char *key, const char *file, int line) {
    opd_library *lib, *other;
    opd_key next = OPD_KEY_INVALID;
    char place[300];
    opdi_started();                               /* the built-in operators are registered first, before kernels that
                                                     replace theirs */
    if (!opd_ok()) { return NULL; }
    if (kind != OPD_DEF && kind != OPD_FRAGMENT && kind != OPD_IMPL) {
        (void)opd_fail(OPD_ERROR_REGISTER, "unknown kind of library");
        return NULL;
    }
    if (!ns || strlen(ns) >= sizeof lib->ns || !opdi_is_identifier(ns)) {
        (void)opd_fail(OPD_ERROR_REGISTER, "the namespace of a library must have 1 to 63 letters, digits and "
                       "underscores, and must not begin with a digit");
        return NULL;
    }
    if (key && (next = opd_key_parse(key)) == OPD_KEY_INVALID) { return NULL; }
    if (next == OPD_KEY_UNDEFINED) { next = OPD_KEY_INVALID; }    /* the catch-all: the same as no key */
    if (kind != OPD_IMPL && (strcmp(ns, "_") == 0 || next != OPD_KEY_INVALID)) {
        (void)opd_fail(OPD_ERROR_REGISTER, next != OPD_KEY_INVALID
                       ? "%s \"%s\" cannot have a dispatch key"
                       : "%s: cannot define operators in the wildcard namespace \"%s\"", opdi_kind_names[kind], ns);
        return NULL;
    }
    lib = (opd_library *)opdi_alloc(sizeof *lib);
    if (!lib) { return NULL; }
    memset(lib, 0, sizeof *lib);
    lib->kind = kind;
    lib->key = next;
    lib->file = file ? file : "?";
    lib->line = line;
    lib->place.file = lib->file;
    lib->place.line = line;
    strcpy(lib->ns, ns);
    opdi_lock(&opdi_registry.lock);
    for (other = opdi_registry.libraries; other && kind == OPD_DEF; other = other->next) {
        if (other->kind == OPD_DEF && strcmp(other->ns, ns) == 0) { break; }
    }
    if (kind != OPD_DEF || !other) {
        lib->next = opdi_registry.libraries;
        opdi_registry.libraries = lib;
        other = NULL;
    } else {
        (void)snprintf(place, sizeof place, "%s:%d", other->file, (int)other->line);    /* a copy, because `other` may
                                                                                           be closed soon */
    }
    opdi_unlock(&opdi_registry.lock);
    if (other) {
        (void)opd_fail(OPD_ERROR_REGISTER, "Only a single OPD_LIBRARY can be used to register the namespace %s; "
                       "please put all of your definitions in a single OPD_LIBRARY block. If you were trying "
                       "to specify implementations, consider using OPD_LIBRARY_IMPL (which can be duplicated). "
                       "If you really intended to define operators for a single namespace in a distributed way, "
                       "you can use OPD_LIBRARY_FRAGMENT. Previous registration of OPD_LIBRARY was at %s; "
                       "latest registration was at %s:%d", ns, place, lib->file, line);
        opdi_free(lib, sizeof *lib);
        return NULL;
    }
    return lib;
}

/* Undoes everything that lib has registered, and frees lib.  Sets an error if lib's block is still running.  Does
   nothing if lib was closed before. */
void opd_library_close(opd_library *lib) {
    opd_library **libs;
    bool in_block = false;
    if (!lib) { return; }
    opdi_lock(&opdi_registry.lock);
    for (libs = &opdi_registry.libraries; *libs && *libs != lib; libs = &(*libs)->next) { }
    if (*libs) {
        in_block = lib->in_block;
        if (!in_block) { *libs = lib->next; }
    } else {
        lib = NULL;                               /* lib was closed before */
    }
    opdi_unlock(&opdi_registry.lock);
    if (!lib) { return; }
    if (in_block) {
        (void)opd_fail(OPD_ERROR_REGISTER, "opd_library_close was called inside the block of the same library");
        return;
    }
    opdi_library_undo(lib, NULL);
    opdi_free(lib, sizeof *lib);
}

void opd_library_at(opd_library *lib, const char *file, int line) {
    if (!opdi_library_usable(lib, "opd_library_at")) { return; }
    lib->place.file = file ? file : "?";
    lib->place.line = line;
}

//== library blocks ====================================================================================================

void opdi_block_link(opd_block *block) {
    if (!block) { return; }
    opdi_lock(&opdi_registry.lock);
    if (!block->linked) {
        /* opd_plugin_load runs the blocks that its library links: no other thread may do so before */
        const bool mapped = OPDI_LOAD(&opdi_registry.mapper) == &opdi_thread_self;
        opd_block **at = mapped ? &opdi_registry.mapped : &opdi_registry.blocks;
#if defined(_WIN32)                               /* Windows runs the constructors of a file in reverse order */
        while (*at && ((*at)->file != block->file || (*at)->line < block->line)) { at = &(*at)->next; }
#else
        if (!mapped && opdi_registry.blocks_end) { at = opdi_registry.blocks_end; }
        while (*at) { at = &(*at)->next; }
#endif
        block->linked = 1;
        block->next = *at;
        *at = block;
        if (!mapped && !block->next) { opdi_registry.blocks_end = &block->next; }
        if (!mapped) { OPDI_PUBLISH(&opdi_registry.started, 0); }
    }
    opdi_unlock(&opdi_registry.lock);
}

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
static void opdi_families_note(void) {
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

/* Opens the library of a block and runs the block.  Errors stay pending. */
OPDI_INTERNAL void opdi_block_run(opd_block *block) {
    opdi_thread *thread = opdi_self();
    opd_call *current = thread->current;
    thread->current = NULL;                       /* otherwise errors would name the running kernel */
    block->library = opd_library_open(block->kind, block->ns, block->key, block->file, block->line);
    if (block->library) {
        block->library->in_block = true;
        block->run(block->library);
        block->library->in_block = false;
    }
    thread->current = current;
}

/* Registers the built-in operators, then runs the library blocks that have not run yet.  If another thread is doing
   that, waits until it is done.  While an error is pending, or if memory runs out, no block is run, and the next use
   tries again.  If a block fails, its error stays pending, and the blocks after it still run. */
OPDI_NOINLINE static void opdi_start(void) {
    opdi_thread *thread = opdi_self();
    char message[sizeof thread->message];
    opd_code failed = OPD_OK;
    /* this thread may already be inside this function, or be registering: a library block may use the dispatcher */
    if (thread->error != OPD_OK || OPDI_LOAD(&opdi_registry.starter) == thread ||
        opdi_stack_short("the first use of the dispatcher", OPDI_STACK_CALL)) { return; }
    opdi_lock(&opdi_registry.start);
    OPDI_STORE(&opdi_registry.starter, thread);
#if !defined(OPD_LEAN)
    if (!opdi_registry.aten) { opdi_families_note(); }
#endif
    bool ready = opdi_registry.aten || opdi_above->register_builtins() == 0;
    while (ready) {
        opdi_lock(&opdi_registry.lock);
        opd_block *block = opdi_registry.blocks;
        if (block) {
            opdi_registry.blocks = block->next;
            if (!block->next) { opdi_registry.blocks_end = &opdi_registry.blocks; }
        } else {
            OPDI_PUBLISH(&opdi_registry.started, 1);
        }
        opdi_unlock(&opdi_registry.lock);
        if (!block) { break; }
        opdi_block_run(block);
        if (thread->error != OPD_OK && failed == OPD_OK) {
            (void)opdi_fail_more(" (the block ran because this was the first use of the dispatcher; the lines of the "
                                 "block after the mistake registered nothing)");
            failed = thread->error;
            memcpy(message, thread->message, sizeof message);
        }
        thread->error = OPD_OK;                   /* the next block runs despite an error of this one */
    }
    if (failed != OPD_OK) {
        thread->error = failed;
        memcpy(thread->message, message, sizeof message);
    }
    OPDI_PUBLISH(&opdi_registry.making, 0);
    OPDI_STORE(&opdi_registry.starter, NULL);
    opdi_unlock(&opdi_registry.start);
}
OPDI_INTERNAL void opdi_started(void) {
    if (OPDI_UNLIKELY(!OPDI_ACQUIRE(&opdi_registry.started))) { opdi_start(); }
}

OPDI_COLD_END

//== registering built-in operators when they are needed ===============================================================
//
//  A program uses few of the built-in operators, so each is registered only when an operator of its family is looked
//  up.  A family is the overloads and the derived forms of one name (add.Tensor, add.Scalar, add_.Tensor, add.out).

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
