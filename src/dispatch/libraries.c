#include "lean.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>libraries    libraries of operators, and the first use of the dispatcher
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
