//----------------------------------------------------------------------------------------------------------------------
//  >>registry     operators, kernels, computed tables, libraries, listeners
//
//  Which kernel a call runs. Registration is under one lock; tables are computed at an operator's first call,
//  published whole and never changed, so that calls take no lock. Uses schemas and keys; knows nothing of tensors.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_MAX_RETURNS 16
#if defined(OPDI_CORE)

/* The limit of nested calls: a kernel that calls itself ends here, not at the stack's end. */
#define OPDI_MAX_DEPTH 400
static int32_t opdi_depth_limit = OPDI_MAX_DEPTH;  /* 0 while calls are shown or work runs: each takes the rare way */
static bool opdi_calls_shown;
/* What has to be waited for before memory is used that work beside the program reads or writes (see >>collectives):
   by the arguments of a call, and by a tensor whose memory somebody asks for.  0, or -1 with an error. */
static int (*opdi_works_before_call)(const opd_call *call);
static int (*opdi_works_before_use)(const opd_tensor *tensor);
/* Whether a tensor is this rank's part of a parameter (see >>parallel); NULL while there are none. */
static bool (*opdi_is_part)(const opd_tensor *tensor);
/* How many such works there are. */
OPDI_SHARED int32_t opdi_works_running;
#else
extern OPDI_SHARED int32_t opdi_works_running;
#endif

/* The place of a registration: file and line, or with line 0 a text that the caller gave in place of a file. */
typedef struct opdi_origin { const char *file; int32_t line; } opdi_origin;

/* A registered kernel, behind its opdi_registration. */
typedef struct opdi_kernel {
    opd_kernel fn;
    void *user;
    void (*destroy)(void *user);
    opd_key key;
    opd_plugin *plugin;                           /* where fn is; pinned */
    bool typed;                                   /* made of a C function: see opd_function */
    opdi_origin place;
    struct opdi_kernel *next;                     /* in its operator's list, newest first */
} opdi_kernel;

typedef struct opdi_slot { opd_kernel fn; void *user; } opdi_slot;

typedef struct opdi_table {
    opdi_gone gone;                               /* once it is out of use */
    /* functionalities that do not fall through, per backend; [0]: when nothing requires grad, where autograd kernels
       of ours, which then do nothing, are left out.  A composite kernel at an autograd key is not: below it, other
       kernels and modes would take its place */
    uint64_t masks[32];                           /* from [16] on also while forward mode is on */
    opd_kernel behind[16];                        /* run by opdi_device_kernel; [15]: by opdi_by_device_kernel */
    opdi_slot slots[OPD_KEY_SLOTS];
    opd_kernel jvp;                               /* an opd_jvp_fn registered by itself; NULL: the card's */
} opdi_table;

/* The backward formula that a node runs, and the facts about it that recording needs. */
typedef struct opdi_derivative {
    const char *name;
    opd_backward_fn fn;
    const struct opdi_card *card;                 /* NULL: recorded by hand */
    opd_plugin *plugin;                           /* where fn is: pinned by each node */
    bool context;                                 /* the last value that a node keeps is its opd_context */
    bool once;                                    /* once differentiable */
    bool fresh;                                   /* of a call that writes no argument: results only have to be tied */
    bool real;                                    /* written for real numbers, see opdi_call_conjugated */
} opdi_derivative;

#define OPDI_EDGE_COUNTED (-2)

/* A card as registered: the desc, and what the autograd kernel needs, worked out once.  Never freed: nodes of a tape
   may outlive the library. */
typedef struct opdi_card {
    opd_op_desc desc;
    opd_op *op;
    char node_name[64];                           /* "MulBackward0" */
    opdi_derivative formula, missing, warning;    /* what its nodes run: the card's; those that say there is none */
    uint64_t save_args;                           /* tensor arguments the formula reads */
    uint64_t save_sizes;                          /* those of them whose sizes it reads, not their values */
    uint32_t save_results;
    uint64_t constant_args;
    uint32_t constant_results;
    int32_t nargs;                                /* of its schema: the operator may be defined anew while nodes live */
    uint64_t tensor_args, list_args, kept_args;   /* kept: what a node holds, tensors or their places */
    uint8_t nkept, nresults;                      /* how many bits kept_args and save_results have */
    int8_t kept_at[OPD_MAX_ARGS];                 /* which kept value an argument is; -1: none */
    int8_t edge_at[OPD_MAX_ARGS];                 /* which edge; -1: no tensor; OPDI_EDGE_COUNTED: there are lists */
    int8_t save_if[OPD_MAX_ARGS];                 /* saved only if this argument's gradient is wanted; -1: always */
    int8_t save_result_if[OPDI_MAX_RETURNS];
    struct opdi_card *base;                       /* derived forms: the functional card */
    int8_t map[OPD_MAX_ARGS];                     /* derived forms: functional argument -> own argument, or -1 */
    bool inplace, with_user;                      /* with_user: its kernels have a pointer that the card has not */
    struct opdi_card *next;                       /* in its operator's list */
} opdi_card;

/* An operator.  Entries are never freed, so handles stay valid; when an operator is undefined, only what its pointers
   lead to is given back.  The fields that a look-up and a call read come first. */
struct opd_op {
    opdi_table *table;                            /* NULL: not computed, or undefined */
    const char *name;                             /* "ns::name.overload": the text of its opdi_op_name */
    uint32_t length, base_length;                 /* of the names */
    struct opdi_registration *definition;         /* the oldest one; NULL: not defined */
    const uint16_t *accepts;                      /* bit t: a value of opd_tag t binds to argument i as it is */
    int32_t nargs, nrets;
    int32_t direct;                               /* nargs; -1 with lists among them, which take more looking at */
    uint32_t all_rets;                            /* a bit for each */
    opdi_card *card;
    uint64_t list_args, tensor_args;              /* which arguments are Tensor(?)[], Tensor(?) */
    opd_op *next_defined, *prev_defined;
    opd_op *next_overload;                        /* of one base name, newest first */
    uint64_t rank;                                /* of its definition among all */
    opdi_kernel *kernels;
    const char *base_name;                        /* "ns::name": the text of an opdi_op_name */
    opd_schema *schema;                           /* stays while calls may be inside that know it */
    uint64_t undefined;                           /* epoch of that */
    int32_t ntensors;                             /* how many Tensor(?) */
    int32_t required;                             /* arguments from here on have defaults */
    uint64_t written_args;                        /* annotated as written */
    uint64_t dim_args, size_args;                 /* for batching rules, once dims_known: dims; sizes of the result */
    const int8_t *ret_alias;                      /* the written argument that result i is, or -1; in the schema */
    uint32_t tensor_rets;                         /* which results are Tensor(?) */
    bool unobserved;                              /* questions that observers are not told of */
    bool any_args;                                /* arguments that may be anything */
    bool wraps_numbers;                           /* where it wants a tensor: of aten's, whose kernels expect it */
    int8_t dims_known;                            /* OPDI_DIMS_*; 0: not yet */
    int8_t random;                                /* draws random numbers: 1, it does not: -1, not known yet: 0 */
    int8_t slow_said;                             /* it was said that it has no batching rule */
    int8_t unloaded;                              /* its last definition went with a plug-in */
    char signature[12];                           /* of the C functions among its kernels, "" before the first */
    opdi_card *cards;                             /* of undone definitions too */
    opdi_card *bare;                              /* a list: made for an operator without a card, to say so */
};

/* A name: of an operator, of a set of overloads, or of both.  Its text follows the struct.  Names are allocated side by
   side, so that a look-up among very many touches one place of the table and one of these.  They are never freed. */
typedef struct opdi_op_name {
    opd_op *defined;                              /* the operator, while it is defined */
    opd_op *op;                                   /* also otherwise; NULL: the name is only one of overloads */
    opd_op *newest;                               /* of the operators with this base name */
    opd_overloads *overloads;                     /* made by opd_overloads_find */
    uint32_t length;
    int32_t changes;                              /* operators with this base name defined and undone */
} opdi_op_name;

/* One registration that a library made.  A library lists its registrations newest first. */
typedef struct opdi_registration {
    opdi_gone gone;                               /* once it is undone */
    int32_t kind;                                 /* 0 definition, 1 kernel, 2 fallback, 3 user pointer of a card */
    opd_key key;
    opd_op *op;
    opdi_kernel *kernel;                          /* in the same memory; NULL: a definition */
    opd_library *lib;
    opdi_origin place;
    opd_alias_kind alias;                         /* definitions: */
    uint32_t tags;
    struct opdi_registration *newer;              /* an identical one */
    struct opdi_registration *next;
} opdi_registration;

struct opd_library {
    opd_library_kind kind;
    int32_t line;
    opd_key key;                                  /* OPD_KEY_INVALID: none */
    bool in_block;
    char ns[64];
    const char *file;
    opdi_origin place;                             /* of what is registered now */
    opdi_registration *registrations;
    opd_library *next;
};

struct opd_call {
    opd_op *op;
    opd_keyset keys;
    const opd_value *args;
    opd_value *rets;
    void *user;
    opd_tensor **targets;                         /* derived forms: where results go; NULL otherwise */
    opdi_thread *th;
    opd_call *outer;                              /* the call whose kernel made this one */
    uint32_t filled, owned;                       /* bit i: result i is there; is a reference of ours */
    int32_t cursor;                               /* next result of opd_return_* */
    int32_t scope_depth, depth;                   /* scopes open, and calls nested, when the kernel was called */
    int64_t mark;                                 /* handles then: its own scope begins here */
    uint32_t flags;                               /* of its arguments, united, and OPDI_FLAGS_KNOWN; 0: not looked at */
    opd_key slot;
    bool inplace, elementwise;                    /* derived forms: target is self; kernel may write over its inputs; */
    bool exact;                                   /* targets must have the results' dtypes */
    bool stands_in;                               /* and it is a Meta kernel that runs for a device's: new results */
};

#if defined(OPDI_CORE)
#define OPDI_FLAGS_KNOWN 256u

/* Returns the name of the operator that the program called: inside of a derived form, that of the form. */
static const char *opdi_call_name(const opd_call *call) {
    return (call->targets && call->outer ? call->outer : call)->op->name;
}
static int opdi_call_scope_depth(const opd_call *call) { return call->scope_depth; }
static opdi_thread *opdi_call_thread(const opd_call *call) { return call->th; }
#endif

/* The hash table of names: open addressing, the slots behind the struct.  It is read without a lock; a larger copy is
   published whole, and the old table is then out of use. */
typedef struct opdi_names { opdi_gone gone; size_t mask, used; } opdi_names;
typedef struct opdi_name_slot { opdi_op_name *name; uint64_t hash; } opdi_name_slot;

/* Memory that is never given back, cut off blocks piece by piece. */
typedef struct opdi_lasting { char *at; size_t left; void *blocks; } opdi_lasting;

#define OPDI_FAMILY_SLOTS 1024
/* Operators of other namespaces that are there when one is asked for. */
enum { OPDI_EXTRA_VISION, OPDI_EXTRA_COLLECTIVES, OPDI_EXTRAS };
typedef struct opdi_register {
    opdi_mutex lock;                              /* all of this but reading tables */
    opdi_names *names;                            /* those of operators and of overloads */
    opdi_lasting name_memory, op_memory;
    uint64_t ranks;                               /* definitions so far */
    opd_op *first_defined, *last_defined;
    opd_library *libraries;
    const opd_library *unloading;                 /* is closed because its plug-in goes */
    opdi_kernel *fallbacks[OPD_KEY_SLOTS];
    opd_block *blocks, **blocks_end;
    opdi_mutex start;                             /* held while blocks run */
    opdi_thread *starter;
    int started;
    opd_library *aten;                            /* the library of the built-in operators */
    opd_op *builtin[OPD_OP_COUNT];                /* those that somebody has asked for */
    int16_t family_first[OPDI_FAMILY_SLOTS];      /* by hash of the family's name: its first built-in operator + 1 */
    int16_t family_next[OPD_OP_COUNT];            /* the next one of the same hash + 1; 0: no more */
    int making;                                   /* some of these are being registered */
    opdi_gone *gone, **gone_end;                  /* out of use, a call may still be inside */
    int64_t gone_count;
    opd_listener *listeners;
    bool warned_override, warned_gone;
    int extra[OPDI_EXTRAS];                       /* 1: those operators are registered, all as built-in ones */
} opdi_register;
#if defined(OPDI_CORE)

OPDI_SHARED opdi_register opdi_registry = {
    /* lock, names */ OPDI_MUTEX_INIT, NULL,
    /* name_memory, op_memory */ {NULL, 0, NULL}, {NULL, 0, NULL},
    /* ranks, first_defined, last_defined */ 0, NULL, NULL,
    /* libraries, unloading, fallbacks, blocks, blocks_end */ NULL, NULL, {NULL}, NULL, NULL,
    /* start, starter, started */ OPDI_MUTEX_INIT, NULL, 0,
    /* aten, builtin, family_first, family_next, making */ NULL, {NULL}, {0}, {0}, 0,
    /* gone, gone_end, gone_count */ NULL, NULL, 0,
    /* listeners, warned_override, warned_gone, extra */ NULL, false, false, {0, 0}};
#else
extern OPDI_SHARED opdi_register opdi_registry;
#endif

OPDI_SHARED int opdi_autograd_fallback(opd_call *call);
OPDI_SHARED int opdi_lazy_fallback(opd_call *call);
OPDI_SHARED int opdi_batched_kernel(opd_call *call);
OPDI_SHARED bool opdi_autocast_is_on(const opdi_thread *thread, int device);
OPDI_SHARED int opdi_detach__kernel(opd_call *call);
OPDI_SHARED int opdi_register_builtins(void);
OPDI_SHARED const char *opdi_builtin_name(int i);
OPDI_SHARED int opdi_register_card(int i);
OPDI_SHARED int opdi_register_extra(int which);
OPDI_SHARED const char *opdi_left_out(const char *name);
OPDI_SHARED bool opdi_same_family(const char *first, const char *second);
#if defined(OPDI_CORE)

static void opdi_plugin_let_go(opd_plugin *plugin);
static opdi_kernel *opdi_autocast_policy(const opd_op *op, int device);
static int opdi_autocast_kernel(opd_call *call);
static int opdi_autocast_of_fakes(opd_call *call);
static int opdi_check_policy(opd_autocast policy);
static int opdi_autograd_kernel(opd_call *call);
static int opdi_autograd_registered(opd_call *call);
static int opdi_autograd_inplace_kernel(opd_call *call);
static int opdi_autograd_out_kernel(opd_call *call);
static int opdi_version_kernel(opd_call *call);

/* Writes the text of an argument, cut to cap bytes with the zero; returns buf. */
static const char *opdi_arg_print(const opdi_arg *arg, char *buf, size_t cap) {
    opdi_writer writer = {buf, cap - 1, 0, false};
    opdi_write_argument(&writer, arg);
    buf[OPDI_MIN(writer.length, cap - 1)] = 0;
    return buf;
}

/* Fails: tables replace fallthrough kernels, so that nobody calls this one. */
int opd_fallthrough(opd_call *call) {
    (void)call;
    return opd_fail(OPD_ERROR_KERNEL, "a fallthrough kernel was called");
}
int opd_not_differentiable(opd_backward_call *bw) {
    (void)bw;
    return opd_fail(OPD_ERROR_AUTOGRAD, "not differentiable");
}

OPDI_COLD_BEGIN

//== out of use ========================================================================================================

/* Puts an object that has just been taken out of use on the list of those that wait until no call can be inside of them
   any more; give_back frees it then.  Under the registry's lock. */
static void opdi_gone_add(opdi_gone *gone, void (*give_back)(opdi_gone *gone)) {
    if (!opdi_registry.gone) { opdi_registry.gone_end = &opdi_registry.gone; }
    gone->next = NULL;
    gone->give_back = give_back;
    gone->stamp = opdi_epoch;
    OPDI_PUBLISH(&opdi_epoch, opdi_epoch + 1);
    *opdi_registry.gone_end = gone;
    opdi_registry.gone_end = &gone->next;
    OPDI_STORE(&opdi_registry.gone_count, opdi_registry.gone_count + 1);
}

#define OPDI_MANY_GONE 20000
/* Gives back the objects that no call can be inside of any more.  Must not be called under the lock:
   destructors may register. */
static void opdi_gone_give_back(void) {
    opdi_lock(&opdi_registry.lock);
    opdi_gone **end = &opdi_registry.gone;
    uint64_t oldest = *end ? opdi_oldest_call() : 0;
    if (opdi_epoch <= oldest) {                   /* all of them, without a look at each */
        end = opdi_registry.gone_end;
        OPDI_STORE(&opdi_registry.gone_count, 0);
    }
    for (; *end && (*end)->stamp < oldest; end = &(*end)->next) {
        OPDI_STORE(&opdi_registry.gone_count, opdi_registry.gone_count - 1);
    }
    opdi_gone *first = end == &opdi_registry.gone ? NULL : opdi_registry.gone;
    if (first) {
        opdi_registry.gone = *end;
        *end = NULL;
    }
    bool many = opdi_registry.gone_count > OPDI_MANY_GONE && !opdi_registry.warned_gone;
    opdi_registry.warned_gone |= many;
    opdi_unlock(&opdi_registry.lock);
    if (many) {
        opd_warn("Warning only once: more than %d tables and kernels that were registered and closed wait for a call "
                 "that began before. Their memory is given back when it ends.", OPDI_MANY_GONE);
    }
    while (first) {
        opdi_gone *gone = first;
        first = gone->next;
        OPDI_PREFETCH(first);
        gone->give_back(gone);
    }
}

static void opdi_table_give_back(opdi_gone *gone) { opdi_free(gone, sizeof(opdi_table)); }
/* Frees a registration that was never entered, or that is out of use. */
static void opdi_registration_free(opdi_registration *registration) {
    opdi_kernel *kernel = registration->kernel;
    if (kernel && kernel->plugin) { opdi_plugin_let_go(kernel->plugin); }
    opdi_free(registration, sizeof *registration + (kernel ? sizeof *kernel : 0));
}
/* Frees a kernel's registration and destroys the kernel's user pointer. */
static void opdi_kernel_give_back(opdi_gone *gone) {
    opdi_registration *registration = (opdi_registration *)(void *)gone;
    if (registration->kernel->destroy) { registration->kernel->destroy(registration->kernel->user); }
    opdi_registration_free(registration);
}

//== plug-ins that code or data belongs to =============================================================================

struct opd_plugin {
    void *handle;                                 /* dlopen's */
    uintptr_t begin, end;                         /* where it is mapped */
    const opd_plugin_info *info;                  /* NULL: it calls the program's own symbols */
    opd_block *blocks;                            /* then: what its constructors linked */
    int64_t pins;                                 /* one while it is loaded */
    uint64_t left;                                /* epoch in which it was unloaded */
    bool loaded;
    size_t bytes;
    opd_plugin *next;
    char *path;
};
static opd_plugin *opdi_plugins;                   /* loaded or still mapped */
static void opdi_plugins_sweep(void);

/* Returns the plug-in in whose code or data an address is, or NULL. Under the registry's lock. */
static opd_plugin *opdi_plugin_at(uintptr_t address) {
    opd_plugin *plugin = opdi_plugins;
    while (plugin && (address < plugin->begin || address >= plugin->end)) { plugin = plugin->next; }
    return plugin;
}

static bool opdi_plugin_loaded(const opd_plugin *plugin) { return OPDI_LOAD(&plugin->loaded); }
static void opdi_plugin_pin(opd_plugin *plugin) { (void)OPDI_ADD(&plugin->pins, 1); }

/* Pins the plug-in in which an address is, and returns it; NULL if it is in none. */
static opd_plugin *opdi_plugin_hold(uintptr_t address) {
    if (!OPDI_LOAD(&opdi_plugins)) { return NULL; }
    opdi_lock(&opdi_registry.lock);
    opd_plugin *plugin = opdi_plugin_at(address);
    if (plugin) { opdi_plugin_pin(plugin); }
    opdi_unlock(&opdi_registry.lock);
    return plugin;
}

/* Unpins a plug-in.  Another thread may free its record after that, so it is not looked at again. */
static void opdi_plugin_let_go(opd_plugin *plugin) {
    if (OPDI_SUB(&plugin->pins, 1) == 0) { opdi_plugins_sweep(); }
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
        if (!opdi_registry.blocks_end) { opdi_registry.blocks_end = &opdi_registry.blocks; }
        block->linked = 1;
        block->next = NULL;
        *opdi_registry.blocks_end = block;
        opdi_registry.blocks_end = &block->next;
        OPDI_PUBLISH(&opdi_registry.started, 0);
    }
    opdi_unlock(&opdi_registry.lock);
}

static const char *const opdi_kind_names[] = {"", "OPD_LIBRARY", "OPD_LIBRARY_FRAGMENT", "OPD_LIBRARY_IMPL"};

/* The length of the family's part of a name: of "aten::add" in "aten::add_.Tensor". */
static size_t opdi_family(const char *name) {
    static const char functional[] = "_functional";        /* normal_functional is of normal's */
    const size_t m = sizeof functional - 1;
    size_t length = strcspn(name, ".(");
    if (length > m && memcmp(name + length - m, functional, m) == 0) { length -= m; }
    while (length > 0 && name[length - 1] == '_') { length--; }
    return length;
}
OPDI_SHARED bool opdi_same_family(const char *first, const char *second) {
    const size_t length = opdi_family(first);
    return opdi_family(second) == length && memcmp(first, second, length) == 0;
}
/* Where the list of a name's family begins: other families may have the same place. */
static unsigned opdi_family_slot(const char *name) {
    const size_t length = opdi_family(name);
    unsigned hash = 0;
    for (size_t i = 0; i < length; i++) { hash = hash * 31 + (unsigned char)name[i]; }
    return (hash ^ hash >> 15) % OPDI_FAMILY_SLOTS;
}
/* Makes the lists of built-in operators by family, in their order, so that a name finds its own without the others. */
static void opdi_families_note(void) {
    memset(opdi_registry.family_first, 0, sizeof opdi_registry.family_first);
    for (int i = OPD_OP_COUNT; i-- > 0;) {
        int16_t *const first = &opdi_registry.family_first[opdi_family_slot(opdi_builtin_name(i))];
        opdi_registry.family_next[i] = *first;
        *first = (int16_t)(i + 1);
    }
}

/* Opens the library of a block and runs the block.  Errors stay pending. */
static void opdi_block_run(opd_block *block) {
    opdi_thread *thread = opdi_self();
    opd_call *current = thread->current;
    thread->current = NULL;                       /* errors of a block are not the running kernel's */
    block->library = opd_library_open(block->kind, block->ns, block->key, block->file, block->line);
    if (block->library) {
        block->library->in_block = true;
        block->run(block->library);
        block->library->in_block = false;
    }
    thread->current = current;
}

/* Registers the built-in operators, then runs the library blocks that nobody has run yet.  A second thread waits until
   the first is done.  While an error is pending, or when there is no memory for the built-in operators, no block is run
   and the next use tries again.  The first error of a block is left pending; the blocks behind it run nevertheless. */
OPDI_NOINLINE static void opdi_start(void) {
    opdi_thread *thread = opdi_self();
    char message[sizeof thread->message];
    opd_code failed = OPD_OK;
    /* it is amid this: a card or a library block looks something up */
    if (thread->error != OPD_OK || OPDI_LOAD(&opdi_registry.starter) == thread) { return; }
    opdi_lock(&opdi_registry.start);
    OPDI_STORE(&opdi_registry.starter, thread);
    if (!opdi_registry.aten) { opdi_families_note(); }
    bool ready = opdi_registry.aten || opdi_register_builtins() == 0;
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
            (void)opdi_fail_more(" (the block ran because this was the first use of the dispatcher; what stands behind "
                                 "the mistake in the block is not registered)");
            failed = thread->error;
            memcpy(message, thread->message, sizeof message);
        }
        thread->error = OPD_OK;                   /* one block's mistake does not stop the next */
    }
    if (failed != OPD_OK) {
        thread->error = failed;
        memcpy(thread->message, message, sizeof message);
    }
    OPDI_PUBLISH(&opdi_registry.making, 0);
    OPDI_STORE(&opdi_registry.starter, NULL);
    opdi_unlock(&opdi_registry.start);
}
static inline void opdi_started(void) {
    if (OPDI_UNLIKELY(!OPDI_ACQUIRE(&opdi_registry.started))) { opdi_start(); }
}

OPDI_COLD_END

//== built-in operators that wait ======================================================================================
//
//  A program uses few of the built-in operators, so each waits until somebody looks up one of its family: the overloads
//  and the derived forms of one name (add.Tensor, add.Scalar, add_.Tensor, add.out).

/* What is set aside while built-in operators are registered amid something else. */
typedef struct opdi_making {
    opd_call *current;
    opdi_free_block *lists[OPDI_CLASSES];
    bool outer;                                   /* this thread is registering already */
} opdi_making;
static void opdi_making_begin(opdi_making *making) {
    opdi_thread *thread = opdi_self();
    making->current = thread->current;
    making->outer = OPDI_LOAD(&opdi_registry.starter) == thread;
    if (!making->outer) {
        opdi_lock(&opdi_registry.start);
        opdi_lists_hide(thread, making->lists);
        OPDI_STORE(&opdi_registry.starter, thread);
    }
    OPDI_PUBLISH(&opdi_registry.making, 1);
    thread->current = NULL;                       /* errors of registration are not the running kernel's */
}
static void opdi_making_end(opdi_making *making) {
    opdi_thread *thread = opdi_self();
    thread->current = making->current;
    if (!making->outer) {
        opdi_lists_show(thread, making->lists);
        OPDI_PUBLISH(&opdi_registry.making, 0);
        OPDI_STORE(&opdi_registry.starter, (opdi_thread *)NULL);
        opdi_unlock(&opdi_registry.start);
    }
}
/* True if built-in operator i waits and is of the family of a qualified name (NULL: of any). */
static bool opdi_waits(int i, const char *name) {
    return !OPDI_LOAD(&opdi_registry.builtin[i]) && (!name || opdi_same_family(name, opdi_builtin_name(i)));
}
/* The next built-in operator from number i on that waits and is of name's family, else OPD_OP_COUNT; i is 0, or behind
   what was returned. */
static int opdi_waits_next(int i, const char *name) {
    if (!name) {
        while (i < OPD_OP_COUNT && !opdi_waits(i, NULL)) { i++; }
        return i;
    }
    int at = i ? opdi_registry.family_next[i - 1] : opdi_registry.family_first[opdi_family_slot(name)];
    while (at && !opdi_waits(at - 1, name)) { at = opdi_registry.family_next[at - 1]; }
    return at ? at - 1 : OPD_OP_COUNT;
}
/* Registers the built-in operators that wait, of the family of a qualified name (NULL: all). */
static void opdi_builtins_make(const char *name) {
    opdi_making making;
    if (!opdi_registry.aten || opdi_self()->error != OPD_OK || (name && strncmp(name, "aten::", 6) != 0)) { return; }
    if (opdi_waits_next(0, name) == OPD_OP_COUNT) { return; }
    opdi_making_begin(&making);
    int i = opdi_waits_next(0, name);             /* asked anew: another thread may have registered it meanwhile */
    while (i < OPD_OP_COUNT && opdi_register_card(i) == 0) { i = opdi_waits_next(i + 1, name); }
    opdi_making_end(&making);
}
/* Registers torchvision's operators, or the collectives; they wait until one is asked for that nobody has defined. */
static void opdi_extra_make(int which) {
    opdi_making making;
    if (!opdi_registry.aten || opdi_self()->error != OPD_OK || OPDI_LOAD(&opdi_registry.extra[which])) { return; }
    opdi_making_begin(&making);
    if (!OPDI_LOAD(&opdi_registry.extra[which])) { (void)opdi_register_extra(which); }
    opdi_making_end(&making);
}
/* Registers what waits in the namespace that the first length bytes of ns name. */
static void opdi_extras_find(const char *ns, size_t length) {
    if (length == 11 && memcmp(ns, "torchvision", 11) == 0) { opdi_extra_make(OPDI_EXTRA_VISION); }
    if ((length == 4 && memcmp(ns, "c10d", 4) == 0) || (length >= 16 && memcmp(ns, "_c10d_functional", 16) == 0)) {
        opdi_extra_make(OPDI_EXTRA_COLLECTIVES);
    }
}
/* Before a look-up. */
static void opdi_builtins_find(const char *name) {
    const char *const colons = strstr(name, "::");
    if (colons) { opdi_extras_find(name, (size_t)(colons - name)); }
    opdi_builtins_make(name);
}
#endif

