#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>registry     operators, kernels, computed tables, libraries, listeners
//
//  The registry determines which kernel a call runs.  Registrations are made under one lock.  The table of an operator
//  is computed at its first call.  Other threads see only complete tables, and tables do not change, so calls take no
//  lock.  This section uses schemas and keys, and does not depend on tensors.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL bool opdi_calls_shown;
OPDI_INTERNAL const opdi_higher *opdi_above;               /* set by opdi_process_begin */
/* Functions that wait for running collectives before the program uses their memory (see >>collectives).
   opdi_works_before_call waits for the arguments of a call.  opdi_works_before_use waits for a tensor whose data the
   program asks for.  Both return 0, or -1 and set an error. */
OPDI_INTERNAL int (*opdi_works_before_call)(const opd_call *call);
OPDI_INTERNAL int (*opdi_works_before_use)(const opd_tensor *tensor);
/* Returns true if a tensor is this rank's part of a sharded parameter (see >>parallel).  The function pointer is NULL
   while there are no such parts. */
OPDI_INTERNAL bool (*opdi_is_part)(const opd_tensor *tensor);
/* The number of collectives that are running. */
OPDI_INTERNAL int32_t opdi_works_running;

OPDI_INTERNAL opdi_register opdi_registry = {
    /* lock, names */ OPDI_MUTEX_INIT, NULL,
    /* name_memory, op_memory */ {NULL, 0, NULL}, {NULL, 0, NULL},
    /* ranks, first_defined, last_defined */ 0, NULL, NULL,
    /* libraries, unloading, fallbacks, blocks, blocks_end */ NULL, NULL, {NULL}, NULL, NULL,
    /* start, starter, started */ OPDI_MUTEX_INIT, NULL, 0,
    /* aten, builtin, family_first, family_next, making */ NULL, {NULL}, {0}, {0}, 0,
    /* gone, gone_end, gone_count */ NULL, NULL, 0,
    /* listeners, warned_override, warned_gone, extra, mapped, mapper */ NULL, false, false, {0, 0}, NULL, NULL};

OPDI_INTERNAL bool opdi_same_family(const char *first, const char *second);

OPDI_INTERNAL void opdi_plugin_unpin(opd_plugin *plugin);
OPDI_INTERNAL int opdi_autograd_registered(opd_call *call);

/* Writes an argument as it stands in a schema to buf, cut to `cap` bytes including the final zero.  Returns buf. */
OPDI_INTERNAL const char *opdi_arg_print(const opdi_arg *arg, char *buf, size_t cap) {
    opdi_writer writer = {buf, cap - 1, 0, false};
    opdi_write_argument(&writer, arg);
    buf[OPDI_MIN(writer.length, cap - 1)] = 0;
    return buf;
}

/* Sets an error.  Tables replace fallthrough kernels, so this function should never be called. */
int opd_fallthrough(opd_call *call) {
    (void)call;
    return opd_fail(OPD_ERROR_KERNEL, "OPD_FALLTHROUGH was called as a kernel, but can only be registered");
}
int opd_not_differentiable(opd_backward_call *bw) {
    (void)bw;
    return opd_fail(OPD_ERROR_AUTOGRAD, "not differentiable");
}

OPDI_COLD_BEGIN

//== objects that are out of use =======================================================================================

/* Puts an object that was just taken out of use on a waiting list.  give_back frees the object, and is called once no
   running call can be using it.  The caller holds the registry's lock. */
OPDI_INTERNAL void opdi_retire(opdi_retired *gone, void (*give_back)(opdi_retired *gone)) {
    if (!opdi_registry.gone) { opdi_registry.gone_end = &opdi_registry.gone; }
    gone->next = NULL;
    gone->give_back = give_back;
    gone->stamp = opdi_epoch;
    OPDI_PUBLISH(&opdi_epoch, opdi_epoch + 1);
    *opdi_registry.gone_end = gone;
    opdi_registry.gone_end = &gone->next;
    OPDI_STORE(&opdi_registry.gone_count, opdi_registry.gone_count + 1);
}

#define OPDI_MANY_RETIRED 20000
/* Frees the waiting objects that no call can be using any more.  The caller must not hold the lock, because the
   destructors of user pointers may register. */
OPDI_INTERNAL void opdi_retired_reclaim(void) {
    opdi_lock(&opdi_registry.lock);
    opdi_retired **end = &opdi_registry.gone;
    uint64_t oldest = *end ? opdi_oldest_call() : 0;
    if (opdi_epoch <= oldest) {                   /* then all objects can be freed */
        end = opdi_registry.gone_end;
        OPDI_STORE(&opdi_registry.gone_count, 0);
    }
    for (; *end && (*end)->stamp < oldest; end = &(*end)->next) {
        OPDI_STORE(&opdi_registry.gone_count, opdi_registry.gone_count - 1);
    }
    opdi_retired *first = end == &opdi_registry.gone ? NULL : opdi_registry.gone;
    if (first) {
        opdi_registry.gone = *end;
        *end = NULL;
    }
    bool many = opdi_registry.gone_count > OPDI_MANY_RETIRED && !opdi_registry.warned_gone;
    opdi_registry.warned_gone |= many;
    opdi_unlock(&opdi_registry.lock);
    if (many) {
        opd_warn("Warning only once: more than %d tables and kernels of closed libraries cannot be freed yet, because "
                 "a call that began before is still running. They are freed when it ends.", OPDI_MANY_RETIRED);
    }
    while (first) {
        opdi_retired *gone = first;
        first = gone->next;
        OPDI_PREFETCH(first);
        gone->give_back(gone);
    }
}

OPDI_INTERNAL void opdi_table_reclaim(opdi_retired *gone) { opdi_free_fresh(gone, sizeof(opdi_table)); }
/* Frees a registration that is not in any list. */
OPDI_INTERNAL void opdi_registration_free(opdi_registration *registration) {
    opdi_kernel *kernel = registration->kernel;
    if (kernel && kernel->plugin) { opdi_plugin_unpin(kernel->plugin); }
    opdi_free(registration, sizeof *registration + (kernel ? sizeof *kernel : 0));
}
/* Frees a kernel's registration and destroys the kernel's user pointer. */
OPDI_INTERNAL void opdi_kernel_reclaim(opdi_retired *gone) {
    opdi_registration *registration = (opdi_registration *)(void *)gone;
    if (registration->kernel->destroy) { registration->kernel->destroy(registration->kernel->user); }
    opdi_registration_free(registration);
}

//== plug-ins by address ===============================================================================================

OPDI_INTERNAL opd_plugin *opdi_plugins;                   /* list of plug-ins that are loaded, or still mapped */

/* Returns the plug-in whose code or data contains an address, or NULL.  The caller holds the registry's lock. */
OPDI_INTERNAL opd_plugin *opdi_plugin_at(uintptr_t address) {
    opd_plugin *plugin = opdi_plugins;
    while (plugin && (address < plugin->begin || address >= plugin->end)) { plugin = plugin->next; }
    return plugin;
}

OPDI_INTERNAL bool opdi_plugin_loaded(const opd_plugin *plugin) { return OPDI_LOAD(&plugin->loaded); }
OPDI_INTERNAL void opdi_plugin_pin(opd_plugin *plugin) { (void)OPDI_ADD(&plugin->pins, 1); }

/* Pins the plug-in that contains `address`, so that it stays mapped, and returns it.  Returns NULL if no plug-in
   contains the address. */
OPDI_INTERNAL opd_plugin *opdi_plugin_hold(uintptr_t address) {
    if (!OPDI_LOAD(&opdi_plugins)) { return NULL; }
    opdi_lock(&opdi_registry.lock);
    opd_plugin *plugin = opdi_plugin_at(address);
    if (plugin) { opdi_plugin_pin(plugin); }
    opdi_unlock(&opdi_registry.lock);
    return plugin;
}

/* Unpins a plug-in.  After this, the opd_plugin must not be read, because another thread may free it. */
OPDI_INTERNAL void opdi_plugin_unpin(opd_plugin *plugin) {
    void (*const unpinned)(void) = plugin->unpinned;
    if (OPDI_SUB(&plugin->pins, 1) == 0) { unpinned(); }
}

opd_plugin *opd_plugin_next(const opd_plugin *plugin) {
    opdi_lock(&opdi_registry.lock);
    opd_plugin *next = plugin ? plugin->next : opdi_plugins;
    while (next && !next->loaded) { next = next->next; }
    opdi_unlock(&opdi_registry.lock);
    return next;
}
const char *opd_plugin_path(const opd_plugin *plugin) { return plugin ? plugin->path : ""; }

//== library blocks ====================================================================================================

void opd_block_link(opd_block *block) {
    if (!block) { return; }
    opdi_lock(&opdi_registry.lock);
    if (!block->linked) {
        /* opd_library_load runs the blocks that its library links: no other thread may do so before */
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

OPDI_INTERNAL const char *const opdi_kind_names[] = {"", "OPD_LIBRARY", "OPD_LIBRARY_FRAGMENT", "OPD_LIBRARY_IMPL"};

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
/* The names of the built-in operators, in the order of opd_op_id. */
static const char *const opdi_builtin_names[] = {
#include "operator_names.printed.h"
};
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

OPDI_COLD_BEGIN
/* The derivative of nodes that opd_autograd_record or opd_autograd_apply makes.  In memory, a copy of the node's name
   follows the struct. */
typedef struct opdi_manual_derivative {
    opdi_derivative formula;
    struct opdi_manual_derivative *next;
    size_t bytes;
} opdi_manual_derivative;
static opdi_manual_derivative *opdi_manual_derivatives; /* a list with one for each name and function; a plug-in's
                                                           entries are freed with the plug-in */

static opdi_manual_derivative *opdi_manual_find(const char *name, opd_backward_fn fn, bool context, bool once) {
    opdi_manual_derivative *manual = OPDI_ACQUIRE(&opdi_manual_derivatives);
    while (manual && (manual->formula.fn != fn || manual->formula.context != context || manual->formula.once != once ||
                      strcmp(manual->formula.name, name) != 0)) { manual = manual->next; }
    return manual;
}
/* Returns the derivative with this name and backward function.  The derivative is made at the first use and kept.
   Returns NULL if memory runs out. */
OPDI_INTERNAL const opdi_derivative *opdi_manual_formula(const char *name, opd_backward_fn fn, bool context, bool once)
                                                         {
    const size_t size = strlen(name) + 1;
    opdi_manual_derivative *manual = opdi_manual_find(name, fn, context, once);
    if (manual) { return &manual->formula; }
    opdi_lock(&opdi_registry.lock);
    manual = opdi_manual_find(name, fn, context, once);
    if (!manual) {
        manual = (opdi_manual_derivative *)opdi_alloc(sizeof *manual + size);
        if (manual) {
            memset(manual, 0, sizeof *manual);
            manual->bytes = sizeof *manual + size;
            manual->formula.name = (const char *)memcpy(manual + 1, name, size);
            manual->formula.fn = fn;
            manual->formula.plugin = opdi_plugin_at((uintptr_t)fn);
            manual->formula.context = context;
            manual->formula.once = once;
            manual->next = opdi_manual_derivatives;
            OPDI_PUBLISH(&opdi_manual_derivatives, manual);
        }
    }
    opdi_unlock(&opdi_registry.lock);
    return manual ? &manual->formula : NULL;
}
/* Frees the derivatives of a plug-in that no call can be using any more.  The caller holds the registry's lock. */
OPDI_INTERNAL void opdi_manuals_forget(const opd_plugin *plugin) {
    opdi_manual_derivative **hands = &opdi_manual_derivatives;
    while (*hands) {
        opdi_manual_derivative *old = *hands;
        if (old->formula.plugin != plugin) {
            hands = &old->next;
            continue;
        }
        *hands = old->next;
        opdi_free(old, old->bytes);
    }
}
OPDI_COLD_END

