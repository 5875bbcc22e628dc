//----------------------------------------------------------------------------------------------------------------------
//  >>dispatch_h   operators, tables, scopes and calls: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_DISPATCH_H)
#define OPDI_DISPATCH_H
#include "../types/types.h"

//== registry ==========================================================================================================

#define OPDI_MAX_RETURNS 16
/* The place of a registration: file and line.  If `line` is 0, `file` is a text that the caller has given instead. */
typedef struct opdi_origin { const char *file; int32_t line; } opdi_origin;
/* A registered kernel.  In memory, the struct lies directly after its opdi_registration. */
typedef struct opdi_kernel {
    opd_kernel fn;
    void *user;
    opd_destroy destroy;
    opd_key key;
    bool typed;                                   /* made from a C function: see opd_function */
    opd_plugin *plugin;                           /* the pinned plug-in that contains fn */
    opdi_origin place;
    struct opdi_kernel *next;                     /* the next kernel of the operator; the newest kernel is first */
    opd_kernel_handle *handles;                   /* handles of this kernel: see opd_kernel_get */
} opdi_kernel;
typedef struct opdi_slot { opd_kernel fn; void *user; } opdi_slot;
/* A handle of the kernel that op had at `key` when the handle was made. */
struct opd_kernel_handle {
    opd_op *op;
    opd_key key;
    bool ours;                                    /* built-in, so it may need help with stored dtypes */
    bool alone;                                   /* a composite kernel: it needs no current device */
    opdi_slot slot;                               /* the kernel in the form of a table's slot, without the kernels that
                                                     guard it */
    opdi_kernel *kernel;                          /* NULL: not registered any more */
    opd_kernel_handle *next;                      /* the next handle of the same kernel */
    char place[200];                              /* "registered at FILE:LINE" */
};
typedef struct opdi_table {
    opdi_retired gone;                            /* entry for the list of objects that wait to be freed */
    /* masks[backend] has a bit for each functionality that does not fall through.  Masks 0 to 15 are for calls in which
       nothing requires grad.  These masks also lack the bits of built-in autograd kernels, which would only pass such a
       call on.  A composite kernel at an autograd key keeps its bit, because without the bit a call would run the
       kernels and modes below that key. */
    uint64_t masks[32];                           /* masks 16 to 31: for calls in which a tensor requires grad, or with
                                                     forward mode on */
    opd_kernel behind[16];                        /* kernels that guarding kernels replaced: see opdi_guard_slot */
    opdi_slot slots[OPD_KEY_SLOTS];
    opd_kernel jvp;                               /* the opd_jvp_fn of opd_jvp_register; NULL: the function of the
                                                     descriptor is used */
} opdi_table;
/* The backward function that a node runs, and the facts about it that recording needs. */
typedef struct opdi_derivative {
    const char *name;
    opd_backward_fn fn;
    const struct opdi_card *card;                 /* NULL for nodes of opd_autograd_record and opd_autograd_apply */
    opd_plugin *plugin;                           /* the plug-in that contains fn; each node pins it */
    bool context;                                 /* the last value that a node keeps is its opd_context */
    bool once;                                    /* differentiable only once */
    bool fresh;                                   /* the call writes no argument, so only new results get a history */
    bool real;                                    /* written for real numbers only, see opdi_call_conjugated */
} opdi_derivative;
#define OPDI_EDGE_COUNTED (-2)
#define OPDI_POLICIES (OPD_AUTOCAST_FP32_APPEND_DTYPE + 1)            /* the number of autocast policies for one
                                                                         device */
/* A registered operator descriptor: a copy of the opd_op_desc, and the facts that the autograd kernel needs, computed
   once.  An opdi_card is never freed, because nodes of the autograd graph may outlive the library. */
typedef struct opdi_card {
    opd_op_desc desc;
    opd_op *op;
    char node_name[64];                           /* "MulBackward0" */
    opdi_derivative formula, missing, warning;    /* formula: the backward function; missing, warning: report that there
                                                     is none */
    uint64_t save_args;                           /* tensor arguments that the backward function reads */
    uint64_t save_sizes;                          /* tensor arguments of which the backward function reads only sizes
                                                     and dtype */
    uint32_t save_results;
    uint64_t constant_args;
    uint32_t constant_results;
    int32_t nargs;                                /* number of arguments; a copy, because the operator may be redefined
                                                     while nodes live */
    uint64_t tensor_args, list_args, kept_args;   /* tensor_args, list_args: as in opd_op; kept_args: a bit for each
                                                     argument that a node keeps */
    uint8_t nkept, nresults;                      /* number of bits in kept_args and save_results */
    int8_t kept_at[OPD_MAX_ARGS];                 /* index of each argument among the kept values; -1: not kept */
    int8_t edge_at[OPD_MAX_ARGS];                 /* edge of each argument; -1: not a tensor; OPDI_EDGE_COUNTED: depends
                                                     on the lengths of lists */
    int8_t save_if[OPD_MAX_ARGS];                 /* argument i is saved if argument save_if[i] needs a gradient; -1:
                                                     always */
    int8_t save_result_if[OPDI_MAX_RETURNS];
    struct opdi_card *base;                       /* derived forms: the descriptor of the functional operator */
    int8_t map[OPD_MAX_ARGS];                     /* derived forms: for each argument of `base`, its index in this form,
                                                     or -1 */
    bool inplace, with_user;                      /* with_user: the kernels own a user pointer */
    struct opdi_card *next;                       /* the next in the operator's list */
} opdi_card;
/* An operator.  An opd_op is never freed, so handles stay valid.  When an operator is undefined, only the objects to
   which its pointers lead are freed.  The fields that look-ups and calls read come first. */
struct opd_op {
    opdi_table *table;                            /* NULL: not computed yet, or undefined */
    const char *name;                             /* "ns::name.overload", the text of its opdi_op_name */
    uint32_t length, base_length;                 /* lengths of the two names */
    struct opdi_registration *definition;         /* the oldest definition of the operator; NULL: not defined */
    const uint16_t *accepts;                      /* for argument i, bit t: a value of opd_tag t needs no conversion */
    int32_t nargs, nrets;
    int32_t direct;                               /* number of arguments; -1 if some of them are lists of tensors */
    uint32_t all_rets;                            /* a bit for each result */
    opdi_card *card;
    uint64_t list_args, tensor_args;              /* list_args: a bit for each argument of type Tensor[] or Tensor?[];
                                                     tensor_args: a bit for each argument of type Tensor or Tensor? */
    opd_op *next_defined, *prev_defined;
    opd_op *next_overload;                        /* overloads of the same base name, newest first */
    uint64_t rank;                                /* the position of the definition among all definitions */
    opdi_kernel *kernels;
    const char *base_name;                        /* "ns::name", the text of an opdi_op_name */
    opd_schema *schema;                           /* kept as long as a running call may use it */
    uint64_t undefined;                           /* the epoch in which the operator was undefined */
    int32_t ntensors;                             /* how many arguments have the type Tensor or Tensor? */
    int32_t required;                             /* arguments from this index on have defaults */
    uint64_t written_args;                        /* a bit for each argument that the schema marks as written */
    uint64_t dim_args, size_args;                 /* dim_args: a bit for each argument that is a dim; size_args: a bit
                                                     for each argument with sizes of the result; both are valid if
                                                     dims_known is set */
    const int8_t *ret_alias;                      /* for each result: index of the written argument returned, or -1 */
    uint32_t tensor_rets;                         /* a bit for each result of type Tensor or Tensor? */
    bool unobserved;                              /* observers do not see calls of the operator (queries such as
                                                     size) */
    bool any_args;                                /* some arguments may be of any type */
    bool wraps_numbers;                           /* numbers may stand for tensors, as aten's kernels expect */
    int8_t dims_known;                            /* OPDI_DIMS_*; 0: not known yet */
    int8_t random;                                /* 1: draws random numbers; -1: does not; 0: not known yet */
    int8_t slow_said;                             /* the warning about the missing batching rule was given */
    int8_t unloaded;                              /* the last definition was in a plug-in that was unloaded */
    char signature[12];                           /* signature of the kernels that are C functions; "" if there are
                                                     none */
    opdi_card *cards;                             /* all descriptors of the operator, also of definitions that were
                                                     undone */
    opdi_card *bare;                              /* descriptors that were made because a definition had none */
};
/* A name: of an operator, of a set of overloads, or of both.  The text follows the struct.  Names are allocated side by
   side, so that a look-up among many names reads only one entry of the table and one name.  Names are never freed. */
typedef struct opdi_op_name {
    opd_op *defined;                              /* the operator, while it is defined */
    opd_op *op;                                   /* the operator, also if undefined; NULL: only a base name */
    opd_op *newest;                               /* the newest operator with this base name */
    opd_overloads *overloads;                     /* made by opd_overloads_find */
    uint32_t length;
    int32_t changes;                              /* how often operators of this base name were defined or undefined */
} opdi_op_name;
/* A registration that a library has made.  The library's list begins with the newest registration. */
typedef struct opdi_registration {
    opdi_retired gone;                            /* entry for the list of objects that wait to be freed */
    int32_t kind;                                 /* 0 definition, 1 kernel, 2 fallback, 3 user pointer */
    opd_key key;
    opd_op *op;
    opdi_kernel *kernel;                          /* lies after the struct; NULL: a definition */
    opd_library *lib;
    opdi_origin place;
    opd_alias_kind alias;                         /* alias, tags: the alias kind and tags of a definition */
    uint32_t tags;
    struct opdi_registration *newer;              /* a newer, identical definition */
    struct opdi_registration *next;
} opdi_registration;
struct opd_library {
    opd_library_kind kind;
    int32_t line;
    opd_key key;                                  /* OPD_KEY_INVALID: the library has no key */
    bool in_block;
    char ns[64];
    const char *file;
    opdi_origin place;                             /* place of the newest registration, for messages */
    opdi_registration *registrations;
    /* how the texts of schemas are read: opdi_schema_parse (NULL before the first text) or, for built-in operators,
       opdi_schema_read */
    opd_schema *(*parse)(const char *text, size_t length, const char *ns, bool typevars);
    opd_library *next;
};
struct opd_call {
    opd_op *op;
    opd_keyset keys;
    const opd_value *args;
    opd_value *rets;
    void *user;
    opd_tensor **targets;                         /* derived forms: tensors to write the results to; otherwise NULL */
    opdi_thread *th;
    opd_call *outer;                              /* the call whose kernel made this call */
    uint32_t filled, owned;                       /* filled: a bit for each result that is set; owned: a bit for each
                                                     result to which the call holds a reference */
    int32_t cursor;                               /* index of the next result for opd_return_* */
    int32_t scope_depth, depth;                   /* scope_depth: the number of scopes that were open before the kernel
                                                     runs; depth: the number of nested calls */
    int64_t mark;                                 /* the index at which the kernel's scope begins in the scope stack */
    uint32_t flags;                               /* flags of all tensors, combined, and OPDI_FLAGS_KNOWN; 0: unknown */
    opd_key slot;
    bool inplace, elementwise;                    /* inplace: the target is self; elementwise: the kernel may write to
                                                     the memory that it reads */
    bool exact;                                   /* targets must have the dtypes of the results */
    bool stands_in;                               /* a Meta kernel runs with stand-ins for the arguments: it makes new
                                                     results */
};
#define OPDI_FLAGS_KNOWN 256u
/* The hash table of names, with open addressing; its slots follow the struct.  Tables are read without a lock.  When a
   table grows, a larger copy is published, and the old table waits to be freed (opdi_retire). */
typedef struct opdi_names { opdi_retired gone; size_t mask, used; } opdi_names;
typedef struct opdi_name_slot { opdi_op_name *name; uint64_t hash; } opdi_name_slot;
/* Memory that is never freed, handed out piece by piece from blocks. */
typedef struct opdi_permanent { char *at; size_t left; void *blocks; } opdi_permanent;
#define OPDI_FAMILY_SLOTS 1024
/* Groups of operators in namespaces other than aten.  A group is registered when the program first asks for one of its
   namespaces. */
enum { OPDI_EXTRA_VISION, OPDI_EXTRA_QUANTIZED, OPDI_EXTRA_COLLECTIVES, OPDI_EXTRAS };
typedef struct opdi_register {
    opdi_mutex lock;                              /* protects all members; tables are also read without it */
    opdi_names *names;                            /* table of the names and base names of operators */
    opdi_permanent name_memory, op_memory;
    uint64_t ranks;                               /* number of definitions so far */
    opd_op *first_defined, *last_defined;
    opd_library *libraries;
    const opd_library *unloading;                 /* the library that is being closed because its plug-in is unloaded */
    opdi_kernel *fallbacks[OPD_KEY_SLOTS];
    opd_block *blocks, **blocks_end;
    opdi_mutex start;                             /* held while library blocks run */
    opdi_thread *starter;
    int started;
    opd_library *aten;                            /* the library of the built-in operators */
    opd_op *builtin[OPD_OP_COUNT];                /* built-in operators by number; NULL: not registered yet */
    int16_t family_first[OPDI_FAMILY_SLOTS];      /* by hash of a family: 1 + the number of the first built-in operator
                                                     with this hash; 0: none */
    int16_t family_next[OPD_OP_COUNT];            /* 1 + the number of the next operator with this hash; 0: none */
    int making;                                   /* not 0: built-in operators are being registered */
    opdi_retired *gone, **gone_end;               /* objects out of use, which running calls may still read */
    int64_t gone_count;
    opd_listener *listeners;
    bool warned_override, warned_gone;
    int extra[OPDI_EXTRAS];                       /* 1: the group OPDI_EXTRA_* is registered */
    opd_block *mapped;                            /* blocks of the library that `mapper` is mapping */
    opdi_thread **mapper;                         /* &opdi_thread_self in the thread that maps or unmaps a library */
} opdi_register;
struct opd_plugin {
    void *handle;                                 /* from dlopen */
    uintptr_t begin, end;                         /* the addresses at which the plug-in is mapped */
    const opd_plugin_info *info;                  /* NULL: the plug-in calls the program's own symbols */
    opd_block *blocks;                            /* if info is NULL: the blocks that the plug-in's constructors
                                                     linked */
    int64_t pins;                                 /* the plug-in stays mapped while not 0; being loaded is one pin */
    uint64_t left;                                /* the epoch in which the plug-in was unloaded */
    bool loaded;
    void (*unpinned)(void);                       /* opdi_plugins_sweep */
    size_t bytes;
    opd_plugin *next;
    char *path;
};

//== names =============================================================================================================

/* Returns a hash of `length` bytes, eight at a time.  Each call by name looks a name up, so this must be fast. */
static inline uint64_t opdi_hash(const char *text, size_t length) {
    uint64_t hash = length, word = 0;
    for (; length >= 8; length -= 8, text += 8) {
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (word = 0; length > 0; length--) { word = word << 8 | (uint8_t)text[length - 1]; }
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}
static inline opdi_name_slot *opdi_names_at(const opdi_names *names, uint64_t i) {
    return (opdi_name_slot *)(uintptr_t)(names + 1) + (size_t)(i & names->mask);
}
static inline const char *opdi_name_text(const opdi_op_name *name) { return (const char *)(name + 1); }
/* Returns the opdi_op_name whose text is at `text`: the name or base name of an operator. */
static inline opdi_op_name *opdi_name_of(const char *text) { return (opdi_op_name *)(uintptr_t)text - 1; }
/* Returns the entry of `name`, which has `length` bytes, in the table `names`, or NULL.  Needs no lock while the thread
   is inside a call. */
static inline opdi_op_name *opdi_names_find(const opdi_names *names, const char *name, size_t length) {
    const uint64_t hash = opdi_hash(name, length);
    opdi_op_name *found = NULL;
    if (!names) { return NULL; }
    for (uint64_t i = hash; (found = OPDI_ACQUIRE(&opdi_names_at(names, i)->name)) != NULL; i++) {
        if (opdi_names_at(names, i)->hash == hash && found->length == length &&
            memcmp(opdi_name_text(found), name, length) == 0) {
            break;
        }
    }
    return found;
}
static inline bool opdi_is_defined(const opd_op *op) { return OPDI_ACQUIRE(&op->definition) != NULL; }

//== tables ============================================================================================================

/* The rule by which the kernel of a slot was chosen, with PyTorch's names for its dumps. */
typedef enum opdi_chosen {
    OPDI_CHOSEN_KERNEL, OPDI_CHOSEN_DEFAULT, OPDI_CHOSEN_NESTED, OPDI_CHOSEN_AMBIGUOUS, OPDI_CHOSEN_MATH,
    OPDI_CHOSEN_AUTOGRAD, OPDI_CHOSEN_BATCHED, OPDI_CHOSEN_FALLBACK, OPDI_CHOSEN_MISSING
} opdi_chosen;
#define OPDI_AUTOCAST_SLOT OPD_KEY_PER_BACKEND(6, 0)
/* Functions of higher layers that the dispatcher and the layer of tensors call. */
typedef struct opdi_higher {
    int (*register_builtins)(void);               /* opdi_register_builtins; the other members are named in the same
                                                     way */
    int (*register_card)(int i);
    int (*register_extra)(int which);
    const char *(*left_out)(const char *name);
    opdi_kernel *(*autocast_policy)(const opd_op *op, int device);
    void (*guard_slot)(const opd_op *op, opdi_table *table, int slot, opdi_chosen how);
    opd_tensor *(*wrapped_number)(opd_value number);
    int (*batch_copy)(opd_tensor *dst, const opd_tensor *src);
} opdi_higher;
/* Tags of built-in descriptors that opd_op_tags does not return.  FORMULA: a pointwise operator with a formula.
   NUMBERS: a number as second operand is wrapped.  OUT_CORE, OUT_DYNAMIC: the out= form also has the tag CORE, or
   DYNAMIC_OUTPUT_SHAPE.  CONJUGATES: `backward` is correct for complex numbers, too.
   An out= tensor must have the result's dtype, as in PyTorch.  There are two exceptions, for which it is enough that
   the result can be cast to the dtype: pointwise operators without OUT_EXACT, and operators with OUT_CASTS.
   OUT_PART: the out= tensor must not overlap an argument's memory in part; having the same elements in the same order
   is allowed.  (Pointwise kernels check that by themselves.)  OUT_SELF: the out= tensor must not share the memory of
   the first argument, if it has the same sizes.  OUT_APART: the out= tensor must not share memory with any argument. */
#define OPDI_OPTAG_FORMULA (1u << 23)
#define OPDI_OPTAG_NUMBERS (1u << 22)
#define OPDI_OPTAG_OUT_CORE (1u << 21)
#define OPDI_OPTAG_OUT_DYNAMIC (1u << 20)
#define OPDI_OPTAG_CONJUGATES (1u << 19)
#define OPDI_OPTAG_OUT_EXACT (1u << 18)
#define OPDI_OPTAG_OUT_CASTS (1u << 16)
#define OPDI_OPTAG_OUT_PART (1u << 15)
#define OPDI_OPTAG_OUT_SELF (1u << 14)
#define OPDI_OPTAG_OUT_APART (OPDI_OPTAG_OUT_PART | OPDI_OPTAG_OUT_SELF)
#define OPDI_OPTAG_SENDS (1u << 17)               /* has side effects, so graphs do not drop its calls */
#define OPDI_OPTAG_SHARES OPD_OPTAG_USER          /* built-in operators only, which have no tags of the program: a
                                                     result may share memory with an argument, which neither the schema
                                                     nor a tag of PyTorch says */
#define OPDI_OPTAG_PRIVATE (OPDI_OPTAG_FORMULA | OPDI_OPTAG_NUMBERS | OPDI_OPTAG_OUT_CORE | OPDI_OPTAG_OUT_DYNAMIC | \
                            OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_EXACT | OPDI_OPTAG_SENDS | OPDI_OPTAG_OUT_CASTS | \
                            OPDI_OPTAG_OUT_APART)

//== listeners =========================================================================================================

struct opd_listener {
    opd_listener_fn defined, undefined;
    void *user;
    opd_listener *next;
};

//== scopes ============================================================================================================

struct opdi_retained_grad;
struct opdi_extra;
/* The sizes of a fake tensor that depend on data: see >>fake_sizes, which defines the rest of the struct.  `end` frees
   the struct when the tensor is freed.  `copy` gives the same sizes to `copy`, a tensor over the memory of `tensor`. */
typedef struct opdi_marks {
    void (*end)(struct opdi_marks *marks);
    int (*copy)(opd_tensor *copy, const struct opdi_marks *marks);
} opdi_marks;
/* The rarely needed parts of a tensor. */
typedef struct opdi_meta {
    opd_tensor *grad;            /* accumulated gradient of a leaf */
    struct opdi_task *task;      /* the task of a running backward for this leaf */
    int64_t *dims;               /* after a resize to more dims: the sizes and strides, in dims_count numbers */
    int64_t dims_count;
    opdi_storage *home;          /* the storage in whose block the tensor lies, if it now has another storage */
    opd_tensor *inner;           /* the tensor that this one wraps: see opd_tensor_wrap_key */
    uint64_t family;             /* forward mode: tensors of a storage and family share a tangent */
    struct opdi_extra *extra;    /* the hooks of a leaf */
    struct opdi_retained_grad *retained; /* holds the gradient of a result: see opd_tensor_retain_grad */
    opdi_marks *marks;           /* fakes: sizes that depend on data; NULL: none */
} opdi_meta;
/* The function that a block in the scope stack calls when its handle is removed: see OPDI_BLOCK_ENDS. */
typedef struct opdi_ending { void (*end)(void *what); void *what; } opdi_ending;
/* Functions of higher layers that release objects which a freed tensor holds.  A higher layer sets its pointer before
   any tensor has such an object. */
typedef struct opdi_release_hooks {
    const struct opdi_tape_release_hooks *tape;
    void (*extra)(struct opdi_extra *extra);      /* frees an extra, its hooks, retained grads and anomaly trace */
    void (*box)(struct opdi_retained_grad *box);  /* drops the tensor's reference to its opdi_retained_grad */
    void (*tangents)(opdi_storage *storage);      /* drops all tangents of a storage that is about to be freed */
    void (*packed)(opdi_storage *storage);        /* drops the packed forms of weights in such a storage */
    void (*device)(opdi_storage *storage);        /* frees a storage's memory on a device */
} opdi_release_hooks;
typedef struct opdi_tape_release_hooks {
    /* Retains a tensor that its own grad_fn saves.  If the tensor's reference to the node was weak, it becomes strong
       again. */
    void (*retain)(opd_tensor *tensor);
    /* Drops a reference to a tensor that its own grad_fn saves.  If then only the node holds the tensor, the tensor's
       reference to the node becomes weak, so that the two do not keep each other alive.  Returns true if the last
       reference was dropped. */
    bool (*drop)(opd_tensor *tensor);
    void (*node)(opd_node *node);                 /* drops a reference to a node */
} opdi_tape_release_hooks;
#define OPDI_SIZES_KEY OPD_F_BATCHED_NESTED_TENSOR             /* the key of fakes with sizes that depend on data */
/* The part of an open fake mode that tensors need; opdi_innermost.fake points to it. */
typedef struct opdi_fake {
    void (*born)(opdi_storage *storage);          /* records the device that a new meta storage stands for */
    /* Makes a fake of a tensor on `device`, in the innermost scope.  Returns NULL and sets an error if that fails. */
    opd_tensor *(*make)(opd_ints sizes, opd_scalar_type dtype, opd_device device);
    /* Runs the kernel for `keys` of a call with arguments whose sizes depend on data: see opdi_sizes_call. */
    int (*call)(opd_call *call, opd_keyset keys);
    /* Finds which sizes of the results of a call depend on data, if no size of its arguments does. */
    int (*called)(opd_call *call, int before);
    /* Returns the sizes of forward result nr of a node, which were `sizes` when the node was recorded, with the numbers
       of today for sizes that depend on data. */
    const int64_t *(*today)(const opd_node *node, uint32_t nr, const int64_t *sizes);
    /* Is opd_check_size. */
    int (*agree)(opd_tensor *tensor, int dim, int64_t size);
} opdi_fake;
/* The largest data, in bytes, that lies in the block of its tensor.  Larger data has a separate block, so that blocks
   with a tensor's header are small: see opdi_free_quarantined. */
#define OPDI_INLINE_DATA_MAX 256
static inline bool opdi_is_apart(const opdi_storage *storage) {
    return storage->bytes > OPDI_INLINE_DATA_MAX && storage->data && !storage->device && storage->block_bytes >= 0;
}
static inline bool opdi_is_dead(const opd_tensor *tensor) { return tensor->functionality >= OPD_BIT_OF(OPDI_DEAD_KEY); }
#define OPDI_DEAD_TEXT "has been freed: %s (opd_keep, opd_assign and opd_scope_return keep a tensor for longer)"
OPDI_NOINLINE OPDI_INTERNAL bool opdi_is_nothing(const opd_tensor *tensor, const char *who);
static inline bool opdi_is_none(const opd_tensor *tensor, const char *who) {
    return OPDI_UNLIKELY(!tensor || opdi_is_dead(tensor)) && opdi_is_nothing(tensor, who);
}

OPDI_NOINLINE OPDI_INTERNAL void opdi_own_retain(opd_tensor *tensor);
static inline void opdi_retain(opd_tensor *tensor) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&tensor->own) & OPDI_SAVED_BY_OWN)) {
        opdi_own_retain(tensor);
        return;
    }
    opdi_ref_up(&tensor->refs);
}

OPDI_NOINLINE OPDI_INTERNAL bool opdi_own_drop(opd_tensor *tensor);
/* Drops a reference to tensor.  Returns true if it was the last one. */
static inline bool opdi_drop_last(opd_tensor *tensor) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&tensor->own) & OPDI_SAVED_BY_OWN)) { return opdi_own_drop(tensor); }
    return OPDI_ACQUIRE(&tensor->refs) == 1 || opdi_ref_down(&tensor->refs) == 0;
}

OPDI_NOINLINE OPDI_INTERNAL void opdi_tensor_free(opd_tensor *tensor);
static inline void opdi_drop(opd_tensor *tensor) {
    if (opdi_drop_last(tensor)) { opdi_tensor_free(tensor); }
}
#define OPDI_HANDLE_BLOCK ((uintptr_t)1)
typedef struct opdi_block { size_t bytes; double align; } opdi_block;      /* the header in front of a block */
#define OPDI_BLOCK_ENDS ((size_t)1 << (8 * sizeof(size_t) - 1))      /* a bit of `bytes`: the block begins with an
                                                                        opdi_ending */
#define OPDI_MAX_LAYERS 64
OPDI_INTERNAL void opdi_scope_end_all(opdi_thread *thread, int64_t mark);
OPDI_NOINLINE OPDI_INTERNAL int opdi_scope_grow(opdi_thread *thread, int64_t count);
static inline int opdi_scope_reserve(opdi_thread *thread, int64_t count) {
    return OPDI_LIKELY(thread->top + count <= thread->cap) ? 0 : opdi_scope_grow(thread, count);
}
#define OPDI_SCOPE_WARNING 100000                 /* the number of tensors in one scope from which on there is a
                                                     warning */
#define OPDI_SCOPE_LOOKS 32                       /* a power of two: the scope is looked at when the number of handles
                                                     is a multiple of this */
OPDI_NOINLINE OPDI_INTERNAL void opdi_scope_warn(opdi_thread *thread, const opd_op *op);
/* Pushes a handle, for which opdi_scope_reserve has made room.  The tensor is a result of op, which may be NULL. */
static inline void opdi_push_of(opdi_thread *thread, opd_tensor *tensor, const opd_op *op) {
    thread->handles[thread->top++] = (uintptr_t)tensor;
    if (OPDI_UNLIKELY((thread->top & (OPDI_SCOPE_LOOKS - 1)) == 0)) { opdi_scope_warn(thread, op); }
}
static inline void opdi_push(opdi_thread *thread, opd_tensor *tensor) { opdi_push_of(thread, tensor, NULL); }

/* Functions of >>kept that the end of a thread or of the program calls; opdi_on_kept is NULL until a tensor is kept. */
typedef struct opdi_kept_hooks {
    void (*flush)(opdi_thread *thread);           /* moves the notes of a thread to the table */
    void (*report)(opdi_thread *thread);    /* warns of tensors that were not released */
    void (*forget)(void);                         /* empties the table */
} opdi_kept_hooks;

/* The kernels in the table opdi_late: see src/dispatch/late_kernels.c. */
enum { OPDI_LATE_FRONT, OPDI_LATE_BACK, OPDI_LATE_BATCHED, OPDI_LATE_POINTWISE, OPDI_LATE_SHIFT_DIM, OPDI_LATE_VIEW,
    OPDI_LATE_DECOMPOSE, OPDI_LATE_FACTORY, OPDI_LATE_LOOP, OPDI_LATE_UNFIT, OPDI_LATE_TRACER, OPDI_LATE_FAKE,
    OPDI_LATES };

//== observers =========================================================================================================

struct opdi_observer {
    opd_observer desc;
    int64_t handle;
    int32_t refs;                                 /* one for the registration, one for each list and each event */
    bool enabled, local;
    opd_plugin *plugin;                           /* the plug-in that contains the callbacks, or NULL */
    struct opdi_observer *next;
};
/* The values of thread->observed, if it is not 0: when the list of observers is read next. */
enum { OPDI_OBSERVE_LOOK = 1, OPDI_OBSERVE_SKIP = 2 };     /* LOOK: at the next call; SKIP: after thread->skip calls */
/* An event in progress. */
typedef struct opdi_observing {
    opd_event event;
    int count;
    struct { opdi_observer *observer; void *context; } with[OPDI_MAX_OBSERVERS];
} opdi_observing;
struct opd_span { opdi_observing observing; opdi_thread *th; };
OPDI_NOINLINE OPDI_INTERNAL bool opdi_visits_examine(opdi_thread *thread);
/* Looks whether an exception or a longjmp has left a visit.  If so, sets an error and returns true. */
static inline bool opdi_visits_left(opdi_thread *thread) {
    return OPDI_UNLIKELY(thread->nvisits != 0) && opdi_visits_examine(thread);
}
/* Returns the depth of the scopes that were open when the innermost visit began.  A visit must be open. */
static inline int32_t opdi_visit_depth(const opdi_thread *thread) {
    return thread->visits[OPDI_MIN(thread->nvisits, OPDI_VISITS) - 1].scope_depth;
}
/* Ends a visit that opdi_visit_begin has begun. */
static inline void opdi_visit_end(const opdi_visit_frame *frame) { frame->thread->nvisits = frame->at; }
/* Returns true if this thread's events may have observers. */
static inline bool opdi_observe_on(const opdi_thread *thread) {
    return OPDI_LOAD(&thread->observed) != 0 && !thread->innermost.observe_off && !thread->observing;
}

//== stored dtypes =====================================================================================================

/* How a built-in operator handles tensors of stored dtypes (see >>stored_dtypes).  NOT: the call fails.  PLAIN: the
   kernel gets them unchanged.  MOVED: as integers of the same size.  WIDE: converted to int64, float32 or complex64;
   the first result is converted back.  COUNTED: converted as for WIDE, but results are not converted back.  FLOAT:
   integers are converted to float32.  PROMOTED: as FLOAT if there is a number with a fraction, else NOT.  ORDERED:
   uint64 is mapped to int64 so that the order of numbers is kept.  BLOCKS: the operator has a form for dtypes in
   blocks, which runs instead of the kernel. */
enum { OPDI_STORED_NOT, OPDI_STORED_PLAIN, OPDI_STORED_MOVED, OPDI_STORED_WIDE, OPDI_STORED_COUNTED,
       OPDI_STORED_FLOAT, OPDI_STORED_PROMOTED, OPDI_STORED_ORDERED, OPDI_STORED_BLOCKS };

//== calls =============================================================================================================

/* The arguments that a caller gives.  If `keywords` is set, arguments may be given by name, and keyword-only arguments
   must be given by name. */
typedef struct opdi_given {
    const opd_value *args;
    const opd_keyword *kw;
    int nargs, nkw;
    bool keywords;
    bool numbers;                                 /* a number may stand for a tensor */
} opdi_given;
/* The reasons why arguments cannot be bound. */
typedef enum opdi_unbound {
    OPDI_BOUND = 0, OPDI_TOO_MANY, OPDI_BY_POSITION, OPDI_MISSING, OPDI_WRONG_TYPE, OPDI_UNKNOWN_KEYWORD, OPDI_TWICE
} opdi_unbound;
/* The combined keys, backends and flags of all tensor arguments.  `backend` is valid if all have the same backend. */
typedef struct opdi_arg_keys { uint64_t functionality; uint32_t backends, flags, backend; } opdi_arg_keys;
/* Combines the keys, backends and flags of the tensor arguments into *sets, and compares the tags of all arguments with
   those of the schema.  Returns 0 if all tags are as expected, 1 if one is not (None, or a value that must be
   converted). */
OPDI_FORCE_INLINE static int opdi_arg_keys_direct(opdi_arg_keys *sets, const opd_op *op, const opd_value *args) {
    uint64_t functionality = 0;
    opdi_traits traits;
    uint32_t all = 0;
    unsigned fits = 1;
    int nargs = op->nargs;
    for (int i = 0; i < nargs; i++) {
        const int32_t tag = args[i].tag;
        fits &= (unsigned)op->accepts[i] >> (tag & 31);
        if (tag == OPD_TAG_TENSOR) {
            if (OPDI_UNLIKELY(!args[i].u.t)) {
                fits = 0;
                continue;
            }
            functionality |= args[i].u.t->functionality;
            all |= opdi_traits_of(args[i].u.t);
        }
    }
    traits.all = all;
    sets->functionality = functionality;
    sets->backends = traits.f.backends;
    sets->flags = traits.f.flags;
    sets->backend = traits.f.backend;
    return !fits;
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_arg_keys_lists(opdi_arg_keys *sets, const opd_op *op, const opd_value *args);
/* Does the same as opdi_arg_keys_direct, and also combines the keys of tensors in lists.  Returns 0 or 1 as
   opdi_arg_keys_direct does, or -1 and sets an error for a NULL in a list that the schema does not allow. */
OPDI_FORCE_INLINE static int opdi_arg_keys_of(opdi_arg_keys *sets, const opd_op *op, const opd_value *args) {
    const int rc = opdi_arg_keys_direct(sets, op, args);
    return OPDI_UNLIKELY(op->list_args != 0) && opdi_arg_keys_lists(sets, op, args) ? -1 : rc;
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_call_failed(opd_call *call, int rc);
OPDI_NOINLINE OPDI_INTERNAL int opdi_beyond_limit(const opd_call *call);
OPDI_NOINLINE OPDI_INTERNAL void opdi_scopes_forgotten(opdi_thread *thread, int32_t depth, int64_t mark);
OPDI_NOINLINE OPDI_INTERNAL void opdi_kernel_unwind(opdi_thread *thread, const opd_call *call);
/* Runs a slot's kernel in a new scope and then restores the thread's state.  Returns 0.  If the kernel fails, drops the
   results and returns -1. */
OPDI_FORCE_INLINE static int opdi_invoke_here(opdi_thread *thread, opd_call *call, const opdi_slot *slot) {
    const uint64_t include = thread->state.include, allow = thread->state.allow, modes = opdi_modes_get(&thread->state);
    const int64_t mark = thread->top;
    const int32_t scope_depth = thread->scope_depth;
    opd_call *const outer = thread->current;
    const uint32_t wanted = call->op->all_rets;
    call->th = thread;
    call->user = slot->user;
    OPDI_IN_ORDER();                              /* keeps gcc from using vector registers here */
    call->outer = outer;
    call->filled = 0;
    call->owned = 0;
    call->cursor = 0;
    call->depth = outer ? outer->depth + 1 : 1;
    call->mark = mark;
    if (OPDI_UNLIKELY(call->depth > OPDI_LOAD(&opdi_depth_limit) || (uintptr_t)outer - 1 < (uintptr_t)call) &&
        opdi_beyond_limit(call)) { return -1; }
    thread->current = call;
    call->scope_depth = scope_depth;
    int rc = slot->fn(call);
    thread->state.include = include;
    thread->state.allow = allow;
    opdi_modes_set(&thread->state, modes);
    thread->current = outer;
    if (OPDI_UNLIKELY(thread->scope_depth != scope_depth)) { opdi_scopes_forgotten(thread, scope_depth, mark); }
    if (OPDI_UNLIKELY(thread->top != mark)) { opdi_kernel_unwind(thread, call); }
    if (OPDI_UNLIKELY((rc | (int)thread->error | (int)(call->filled ^ wanted)) != 0)) {
        return opdi_call_failed(call, rc);
    }
    return 0;
}
/* Returns the slot for the keys in *sets under this thread's state, and sets the call's keys, flags and slot.  The
   usual cases need no bit scans.  `grad` is 16 if autograd kernels have something to do, else 0. */
OPDI_FORCE_INLINE static const opdi_slot *opdi_slot_for(const opdi_thread *thread, opd_call *call,
                                                        const opdi_table *table, const opdi_arg_keys *sets,
                                                        unsigned grad) {
    const unsigned backend = sets->backends & (sets->backends - 1) ? (unsigned)opdi_top_bit(sets->backends)
        : sets->backend;
    const uint64_t functionality = (sets->functionality | thread->state.include) & thread->state.allow &
        table->masks[grad + backend];
    const unsigned base = functionality == OPD_BIT_OF(OPD_F_DENSE) ? OPD_KEY_CPU
        : (unsigned)opdi_key_base[opdi_top_bit(functionality << 1 | 1)];
    const unsigned slot = base + (base >= OPD_KEY_BACKEND_BASE ? backend : 0);
    call->flags = sets->flags | OPDI_FLAGS_KNOWN;
    call->keys.functionality = functionality;
    call->keys.backends = sets->backends;
    call->slot = (opd_key)slot;
    return &table->slots[slot];
}

OPDI_NOINLINE OPDI_INTERNAL const opdi_slot *opdi_find_slot_slow(const opdi_thread *thread, opd_call *call,
                                                                 const opdi_table *table, opdi_arg_keys sets);
OPDI_FORCE_INLINE static const opdi_slot *opdi_find_slot(const opdi_thread *thread, opd_call *call,
                                                         const opdi_table *table, const opdi_arg_keys *sets) {
    if (OPDI_UNLIKELY(((int)(sets->flags & (OPDI_IS_VIEW | OPDI_STORED)) | thread->state.forward) != 0)) {
        return opdi_find_slot_slow(thread, call, table, *sets);
    }
    return opdi_slot_for(thread, call, table, sets, (sets->flags & OPDI_REQUIRES_GRAD) && !thread->state.no_grad ? 16
                         : 0);
}

//== overloads =========================================================================================================

typedef struct opdi_overload_list {
    opdi_retired gone;                            /* entry for the list of objects that wait to be freed */
    int64_t count;                                /* number of operators, which follow the struct */
} opdi_overload_list;
struct opd_overloads {
    opdi_overload_list *list;                     /* NULL: not made yet */
    opdi_op_name *name;
    int32_t changes;                              /* the value of name->changes when `list` was made */
    bool wrap;                                    /* numbers are always accepted for tensors: add, mul, ... */
};

/* Returns the slot for the keys in `keys`, and sets the keys and the slot of call. */
static inline const opdi_slot *opdi_slot_for_keys(const opdi_table *table, opd_call *call, opd_keyset keys) {
    const unsigned backend = (unsigned)opdi_top_bit((keys.backends & OPDI_BACKEND_MASK) | 1);
    call->keys.functionality = keys.functionality & table->masks[16 + backend];
    OPDI_IN_ORDER();                              /* two ands of one word: one wide one would stall after two stores */
    call->keys.backends = keys.backends & OPDI_BACKEND_MASK;
    unsigned base = (unsigned)opdi_key_base[opdi_top_bit(call->keys.functionality << 1 | 1)];
    base += base >= OPD_KEY_BACKEND_BASE ? backend : 0;
    call->slot = (opd_key)base;
    return &table->slots[base];
}
OPDI_INTERNAL const opdi_slot *opdi_handle_slot(const opd_kernel_handle *handle, const opdi_table *table,
                                                opd_call *call, opd_keyset all, opdi_slot *made);
OPDI_NOINLINE OPDI_INTERNAL const opdi_table *opdi_table_make(opd_op *op);
OPDI_INTERNAL const opdi_slot *opdi_stored_slot(const opd_call *call, const opdi_slot *slot);
OPDI_NOINLINE OPDI_INTERNAL int opdi_invoke(opdi_thread *thread, opd_call *call, const opdi_slot *slot);
/* Runs the kernel that a table has for these keys; table may be NULL.  `call` has the arguments and gets the results.
   Returns 0, or -1 and sets an error. */
static inline int opdi_redispatch_in(const opdi_table *table, opd_call *call, opd_keyset keys) {
    opdi_thread *thread = call->th;
    opd_call other;
    if (OPDI_UNLIKELY(thread->error != OPD_OK)) { return -1; }
    if (OPDI_UNLIKELY(!table) && !(table = opdi_table_make(call->op))) { return -1; }
    if (OPDI_UNLIKELY(call->filled != 0)) {
        return opd_fail(OPD_ERROR_KERNEL, "opd_redispatch was called after the kernel had returned a result");
    }
    other.op = call->op;
    other.args = call->args;
    OPDI_IN_ORDER();                              /* prevents one wide load, which would stall after the two stores */
    other.rets = call->rets;
    other.targets = NULL;
    const opdi_slot *const slot = opdi_slot_for_keys(table, &other, keys);
    other.flags = call->flags & OPDI_STORED;
    int rc = OPDI_UNLIKELY(other.flags != 0) ? opdi_invoke(thread, &other, opdi_stored_slot(&other, slot))
        : opdi_invoke_here(thread, &other, slot);
    call->filled = other.filled;
    OPDI_IN_ORDER();
    call->owned = other.owned;
    OPDI_IN_ORDER();
    call->cursor = other.cursor;
    return rc;
}

//== dumps =============================================================================================================

typedef struct opdi_text { char *buf; size_t cap, length; } opdi_text;

//== functions of higher layers that this layer calls ==================================================================

OPDI_INTERNAL int opdi_autograd_fallback(opd_call *call);
OPDI_INTERNAL int opdi_detach__kernel(opd_call *call);
OPDI_INTERNAL int opdi_dead_argument(opd_call *call);
OPDI_INTERNAL int opdi_warn_formula(opd_backward_call *bw);
OPDI_INTERNAL int opdi_missing_formula(opd_backward_call *bw);
OPDI_INTERNAL int opdi_derived_kernel(opd_call *call);
OPDI_INTERNAL int opdi_derived_composite(opd_call *call);
OPDI_INTERNAL int opdi_derived_list(opd_call *call);
OPDI_INTERNAL int opdi_version_kernel(opd_call *call);
OPDI_INTERNAL int opdi_stored_kernel(opd_call *call);
OPDI_INTERNAL int opdi_device_handle_kernel(opd_call *call);
OPDI_INTERNAL int opdi_autograd_kernel(opd_call *call);
OPDI_INTERNAL int opdi_autograd_inplace_kernel(opd_call *call);
OPDI_INTERNAL int opdi_autograd_out_kernel(opd_call *call);
OPDI_INTERNAL int opdi_autograd_registered(opd_call *call);
OPDI_INTERNAL int opdi_autocast_kernel(opd_call *call);
OPDI_INTERNAL int opdi_autocast_of_fakes(opd_call *call);

OPDI_INTERNAL const char *opdi_builtin_name(int i);
OPDI_INTERNAL void opdi_started(void);
OPDI_INTERNAL void opdi_builtins_make(const char *name);
#include "dispatch.prototypes.h"
#endif

