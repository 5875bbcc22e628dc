//----------------------------------------------------------------------------------------------------------------------
//  >>api:dispatcher operators, libraries, calls
//----------------------------------------------------------------------------------------------------------------------

/* A kernel reads arguments with opd_arg_*, gives results with opd_result or opd_return_* and returns 0; not 0 means
   that it failed (after opd_fail, or after something it called failed). */
typedef int (*opd_kernel)(opd_call *call);
/* A derivative formula; see opd_backward_call below. */
typedef int (*opd_backward_fn)(opd_backward_call *bw);
/* A function that leaves something for a derivative formula; see opd_context below. */
typedef int (*opd_setup_fn)(opd_context *ctx);
/* A formula of forward mode: tangents of the results out of tangents of the arguments; see opd_jvp_call below. */
typedef int (*opd_jvp_fn)(opd_jvp_call *jv);
/* A batching rule.  A function of one's own, or a named family. */
typedef int (*opd_vmap_rule)(opd_call *call);

/* Kernel that stands for "act as if this key were not there". */
OPD_API int opd_fallthrough(opd_call *call);
#define OPD_FALLTHROUGH opd_fallthrough
/* Said in a card in place of a formula: results never require grad. */
OPD_API int opd_not_differentiable(opd_backward_call *bw);
#define OPD_NOT_DIFFERENTIABLE opd_not_differentiable
/* Batching families named in cards (zero means forgotten).  The operator is called once, on tensors with a dim more:
     POINTWISE   a result's element depends on one element of each argument, after broadcasting
     SHIFT_DIM   it works along dims that arguments named dim, dims, ... count; the others are independent
     MATMUL      of two factors that are vectors, matrices or batches of them, whose batch dims broadcast (torch.matmul)
     FOLD        the first dim of every tensor is a batch of independent samples
     VIEW        results look at the memory of the first argument;  FACTORY  sizes or dtype are taken from it
   DECOMPOSE: the composite kernel runs, on operators that have rules.  LOOP: the operator runs for each example. */
OPD_API int opd_batch_pointwise(opd_call *call);
OPD_API int opd_batch_shift_dim(opd_call *call);
OPD_API int opd_batch_matmul(opd_call *call);
OPD_API int opd_batch_fold(opd_call *call);
OPD_API int opd_batch_view(opd_call *call);
OPD_API int opd_batch_decompose(opd_call *call);
OPD_API int opd_batch_factory(opd_call *call);
OPD_API int opd_batch_loop(opd_call *call);
#define OPD_BATCH_POINTWISE opd_batch_pointwise
#define OPD_BATCH_SHIFT_DIM opd_batch_shift_dim
#define OPD_BATCH_MATMUL opd_batch_matmul
#define OPD_BATCH_FOLD opd_batch_fold
#define OPD_BATCH_VIEW opd_batch_view
#define OPD_BATCH_DECOMPOSE opd_batch_decompose
#define OPD_BATCH_FACTORY opd_batch_factory
#define OPD_BATCH_LOOP opd_batch_loop

/* What autocast does with an operator, see >>api:autocast: nothing; its arguments are cast to the region's dtype; to
   float32; its result, by its argument `dtype` if that was not given, is float32; to the widest dtype among them; it is
   an error; the overload with a `dtype` is called.  Two in one: the policy everywhere but on the CPU, and there. */
#define OPD_AUTOCAST_BY_DEVICE(others, cpu) ((others) | (cpu) << 4)
typedef enum opd_autocast {
    OPD_AUTOCAST_FORGOTTEN = 0, OPD_AUTOCAST_KEEP, OPD_AUTOCAST_LOWER, OPD_AUTOCAST_FP32, OPD_AUTOCAST_FP32_SET_DTYPE,
    OPD_AUTOCAST_PROMOTE, OPD_AUTOCAST_BANNED, OPD_AUTOCAST_FP32_APPEND_DTYPE,
    OPD_AUTOCAST_LOWER_NOT_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_LOWER, OPD_AUTOCAST_KEEP),
    OPD_AUTOCAST_LOWER_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_KEEP, OPD_AUTOCAST_LOWER),
    OPD_AUTOCAST_FP32_NOT_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_FP32, OPD_AUTOCAST_KEEP),
    OPD_AUTOCAST_FP32_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_KEEP, OPD_AUTOCAST_FP32),
    OPD_AUTOCAST_SET_NOT_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_FP32_SET_DTYPE, OPD_AUTOCAST_KEEP),
    OPD_AUTOCAST_SET_FP32_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_FP32_SET_DTYPE, OPD_AUTOCAST_FP32),
    OPD_AUTOCAST_APPEND_NOT_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_FP32_APPEND_DTYPE, OPD_AUTOCAST_KEEP),
    OPD_AUTOCAST_PROMOTE_NOT_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_PROMOTE, OPD_AUTOCAST_KEEP),
    OPD_AUTOCAST_PROMOTE_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_KEEP, OPD_AUTOCAST_PROMOTE),
    OPD_AUTOCAST_PROMOTE_FP32_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_PROMOTE, OPD_AUTOCAST_FP32),
    OPD_AUTOCAST_BANNED_FP32_CPU = OPD_AUTOCAST_BY_DEVICE(OPD_AUTOCAST_BANNED, OPD_AUTOCAST_FP32)
} opd_autocast;

/* An operator, declared in one piece: the card.  Unused fields are zero.  The built-in operators are filled in the
   same way (see >>operators).  Strings must outlive the library (literals do). */
typedef struct opd_op_desc {
    const char *schema;          /* "name.overload(...) -> ...": the namespace is the library's */
    opd_kernel cpu;              /* kernel at CPU */
    opd_kernel cuda;             /* kernel at CUDA */
    opd_kernel fake;             /* kernel at Meta: shapes only, results from opd_result */
    opd_kernel composite;        /* CompositeImplicitAutograd: calls operators, is differentiated through them */
    opd_kernel any;              /* CompositeExplicitAutograd: one kernel for every backend */
    opd_kernel autograd;         /* hand-written kernel at Autograd, in place of `backward` */
    opd_backward_fn backward;    /* formula, or OPD_NOT_DIFFERENTIABLE */
    const char *save;            /* what the formula reads: "self, result", "other(self)" = only if self's gradient is
                                    wanted, "self.sizes" = a fake of its sizes and dtype; "" or NULL = no tensors
                                    (other arguments are always kept) */
    const char *constant;        /* arguments that the formula does not differentiate by (an error when one requires
                                    grad) and results that never require grad: "weight, total_weight" */
    opd_vmap_rule vmap;
    opd_autocast autocast;
    const char *inplace;         /* in-place form derived from this one: its name, e.g. "add_.Tensor" */
    const char *out;             /* out= form: its name ("add.out"), with the names of several out arguments behind it
                                    ("sort.values(values, indices)"); or a whole schema */
    const char *cases;           /* argument lists that the generic tests walk: see src/README.md */
    void *user;                  /* handed to kernels as opd_call_user */
    void (*destroy)(void *user); /* called when the last kernel that holds `user` is gone and no call is inside */
    uint32_t tags;               /* OPD_OPTAG_* */
    int32_t same_again;          /* 1: an identical second definition is allowed */
    opd_jvp_fn jvp;              /* forward mode: a function or OPD_JVP_*; NULL: by `backward`; see >>api:forward */
    opd_setup_fn setup_context;  /* with `backward`: what it keeps in a context (see opd_context) after each recorded
                                    call, in place of `save` or beside it; functional schemas only */
    int32_t once_differentiable; /* 1: the formula computes what no tape sees; a second derivative is refused */
    double (*flops)(const opd_call *call);        /* what opd_cost counts a call for; see >>api:fake */
    const struct opd_function *function;          /* a C function in place of `any`, see >>api:functions: it is checked
                                    against the schema, or makes it, where that is a name alone */
} opd_op_desc;

/* What an operator is, for those who ask: PyTorch's tags (aten/src/ATen/native/tags.yaml). */
enum {
    OPD_OPTAG_CORE = 1, OPD_OPTAG_POINTWISE = 2, OPD_OPTAG_PT2_COMPLIANT = 4, OPD_OPTAG_VIEW_COPY = 8,
    OPD_OPTAG_INPLACE_VIEW = 16, OPD_OPTAG_NONDETERMINISTIC_SEEDED = 32, OPD_OPTAG_NONDETERMINISTIC_BITWISE = 64,
    OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE = 128, OPD_OPTAG_DATA_DEPENDENT_OUTPUT = 256, OPD_OPTAG_GENERATED = 512,
    OPD_OPTAG_NEEDS_EXACT_STRIDES = 1024, OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER = 2048, OPD_OPTAG_FLEXIBLE_LAYOUT = 4096,
    OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING = 8192,
    OPD_OPTAG_USER = 1 << 24     /* and higher: a program's own */
};
/* What may be assumed of aliasing: what the schema says; or (the default of a definition without one) anything. */
typedef enum opd_alias_kind {
    OPD_ALIAS_FROM_SCHEMA = 0, OPD_ALIAS_CONSERVATIVE, OPD_ALIAS_PURE_FUNCTION, OPD_ALIAS_INTERNAL_SPECIAL_CASE
} opd_alias_kind;

typedef enum opd_library_kind { OPD_DEF = 1, OPD_FRAGMENT, OPD_IMPL } opd_library_kind;
/* Opens a library: TORCH_LIBRARY, TORCH_LIBRARY_FRAGMENT, TORCH_LIBRARY_IMPL.  ns "_" (IMPL only) is every namespace;
   key is a key's name or NULL.  NULL with an error.  Any thread. */
OPD_API opd_library *opd_library_open(opd_library_kind kind, const char *ns, const char *key,
                                      const char *file, int line);
/* Undoes everything that was registered through it, in any order relative to other libraries.  While other threads are
   inside a call, or this one is, tables and user pointers wait: the next closing or opd_finish gives them back. */
OPD_API void opd_library_close(opd_library *lib);
/* Defines an operator by its schema.  0, or -1 with nothing changed. */
OPD_API int opd_def(opd_library *lib, const char *schema);
/* opd_def with options; NULL: none.  same_again allows a second definition that says the same (schema and alias kind):
   the operator then stays until the last of them is undone, and keeps the tags and place of the oldest. */
typedef struct opd_def_options { uint32_t tags; opd_alias_kind alias; int32_t same_again; } opd_def_options;
OPD_API int opd_def_with(opd_library *lib, const char *schema, const opd_def_options *options);
/* Says where what follows is registered: "registered at FILE:LINE" in dumps and messages, in place of the library's;
   with line 0 the text itself.  The string must outlive the library. */
OPD_API void opd_library_at(opd_library *lib, const char *file, int line);
/* Registers a kernel at the library's key, or without one at CompositeImplicitAutograd (catch-all). */
OPD_API int opd_impl(opd_library *lib, const char *name, opd_kernel kernel);
/* Registers a kernel at a named key, with a user pointer (may be NULL) and its destructor (may be NULL). */
OPD_API int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                         void (*destroy)(void *user));
/* Registers a kernel for every operator at the library's key, where nothing better is there (namespace "_" only). */
OPD_API int opd_fallback(opd_library *lib, opd_kernel kernel);
/* Defines an operator with everything that belongs to it.  The desc is copied.  A name that is defined already is an
   error, but see same_again; when its library is closed it may be defined anew.  Whatever is left out may be registered
   later, by other libraries too, in any order: the newest registration is used, until its library is closed. */
OPD_API int opd_define(opd_library *lib, const opd_op_desc *desc);
/* The parts of a card by themselves (torch.library.register_fake, register_vmap), before or after the definition; a
   kernel for a device is opd_impl_key at "CPU", "CUDA", ...  An operator that has a fake kernel, or that is composed of
   others, takes no other fake kernel.  jvp: a function or OPD_JVP_*.  0, or -1 with nothing changed. */
OPD_API int opd_fake_register(opd_library *lib, const char *name, opd_kernel fake);
OPD_API int opd_vmap_register(opd_library *lib, const char *name, opd_vmap_rule rule);
OPD_API int opd_jvp_register(opd_library *lib, const char *name, opd_jvp_fn jvp);
/* Gives an operator, defined already or later, a formula, as a kernel at Autograd of this library (torch.library.
   register_autograd): functional schemas only.  setup_context fills the context that the formula reads after each
   recorded call (see opd_context); NULL: nothing is saved.  0, or -1 with nothing changed. */
OPD_API int opd_autograd_register(opd_library *lib, const char *name, opd_backward_fn backward,
                                  opd_setup_fn setup_context);

/* Finds "ns::name.overload"; NULL with an error that names the nearest ones.  Handles stay valid for ever; a call
   through one whose operator has been undefined fails. */
OPD_API opd_op *opd_find(const char *name);
/* Finds an operator as opd_find does; NULL without an error. */
OPD_API opd_op *opd_find_quiet(const char *name);
OPD_API const char *opd_op_name(const opd_op *op);                /* "ns::name.overload" */
OPD_API const opd_schema *opd_op_schema(const opd_op *op);      /* while it is defined; NULL: only kernels */
OPD_API const opd_op_desc *opd_op_card(const opd_op *op);         /* what opd_define was given, but user; or NULL */
OPD_API uint32_t opd_op_tags(const opd_op *op);                   /* OPD_OPTAG_* */
/* The next operator in the order of definition; NULL begins. */
OPD_API opd_op *opd_op_next(const opd_op *op);
/* Checks a C signature, one letter a type, result first ("TTTi"), against the schema: T tensor, i int64_t, d double,
   b bool, s string, D device, G generator, I opd_ints, F opd_floats, L opd_tensors, V opd_value (anything); as result
   also v nothing, N several tensors.  Trailing arguments with defaults may be missing.  0, or -1 with an error. */
OPD_API int opd_op_check(const opd_op *op, const char *signature);
/* Operators that fit a filter (NULL: every one that is defined), in the order of definition, then those without a
   definition; writes at most cap of them and returns how many there are.  ns, and part of the name: NULL is any.  key:
   those with a kernel of their own there.  tags: those that have all of them.  The operators of torchvision, c10d and
   _c10d_functional, which a library of a program may define in place of the built-in ones, are here and for opd_op_next
   once ns, or a look-up, has named their namespace. */
typedef struct opd_op_filter {
    const char *ns, *part, *key;
    uint32_t tags;
    bool dangling;               /* in place of the defined ones: those that have kernels and no definition */
} opd_op_filter;
OPD_API size_t opd_op_list(const opd_op_filter *filter, opd_op **ops, size_t cap);
/* What the registry holds.  retired: tables and kernels out of use that a running call may still be inside. */
typedef struct opd_registry_info {
    int64_t operators, dangling, kernels, fallbacks, libraries, retired;
} opd_registry_info;
OPD_API opd_registry_info opd_registry_stats(void);
/* In words, what a call with these arguments would do on this thread: which keys it has and where each comes from,
   which are left out and why, which kernel each layer would run and where it was registered.  Cut to cap bytes;
   returns the full length, 0 with an error when the arguments do not bind. */
OPD_API size_t opd_explain(opd_op *op, const opd_value *args, int nargs, char *buf, size_t cap);
/* Shows each kernel that is run, of all threads, before it runs: "[call] op=[aten::add.Tensor], key=[CPU]", or
   "[redispatch] ...", indented by a blank for each kernel around it; to stderr, or the log function (as -1).  Returns
   what it was.  On from the start with $OPD_SHOW_DISPATCH_TRACE=1; costs nothing when off. */
OPD_API bool opd_dispatch_trace_set(bool on);
/* Tells of operators: `defined` at once of each that is there, then of each new one; `undefined` before one leaves.
   Called under the registry's lock: ask for name and schema, do not register or look up.  NULL with an error. */
typedef struct opd_listener opd_listener;
typedef void (*opd_listener_fn)(void *user, opd_op *op);
OPD_API opd_listener *opd_listener_add(opd_listener_fn defined, opd_listener_fn undefined, void *user);
OPD_API void opd_listener_remove(opd_listener *listener);
/* Text dumps in PyTorch's form (_dispatch_dump, _dispatch_dump_table); cut to cap bytes; return the full length. */
OPD_API size_t opd_dump(const opd_op *op, char *buf, size_t cap);
OPD_API size_t opd_dump_table(const opd_op *op, char *buf, size_t cap);
/* 0 when every slot of every table equals what the registrations say and the counters agree; -1 with an error. */
OPD_API int opd_check_invariants(void);

/* Calls.  args in schema order, keyword-only ones too: the 1 of OPD_CALL(opd_find("aten::sum"), x, 1) is a dtype,
   int8, as opd_find chooses the operator and C has no type for dtypes but int; opd_overloads_call chooses by the
   arguments, as PyTorch does.  Trailing ones may be left out where there are defaults.  Results belong to the
   innermost scope; an argument that comes back from an in-place or out= operator stays whose it was.  Where an
   operator of namespace aten wants a Tensor a number may stand, as in Python; to other operators, whose kernels may
   not expect a tensor without dims and of another dtype, it is an error, as there. */
OPD_API opd_tensor *opd_call_op(opd_op *op, const opd_value *args, int nargs);          /* first result; NULL: failed */
/* 0, or -1.  rets NULL: the results are not asked for. */
OPD_API int opd_call_all(opd_op *op, opd_value *rets, const opd_value *args, int nargs);
/* Calls an operator whose results are all tensors: fills rets (NULL where a result is undefined).  0, or -1. */
OPD_API int opd_call_tensors(opd_op *op, opd_tensor **rets, const opd_value *args, int nargs);
/* Calls an operator with one result that is a number, or a list of tensors, and returns that. */
OPD_API opd_value opd_call_value(opd_op *op, const opd_value *args, int nargs);
OPD_API opd_tensors opd_call_list(opd_op *op, const opd_value *args, int nargs);
/* Positional arguments, then some by name; the others take their defaults.  rets as for opd_call_all.  0, or -1. */
typedef struct opd_keyword { const char *name; opd_value value; } opd_keyword;
OPD_API int opd_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs, const opd_keyword *kw,
                              int nkw);
/* Calls at one runtime key, whatever keys the arguments have (callBoxedForDispatchKey).  0, or -1. */
OPD_API int opd_call_at(opd_op *op, const char *key, opd_value *rets, const opd_value *args, int nargs);
/* Calls by base name.  All overloads of "ns::name" that are defined, now and later; NULL with an error when there is
   none.  The handle stays valid for ever.  They are tried in the order of their definition, forms derived from others
   (out=, in-place) behind (those of any, all, var, std, range and normal in PyTorch's), and the first that takes the
   arguments is called; a number stands for a tensor only in namespace aten, and only where no overload takes the number
   (in add, sub, mul, div, ... also there, as in PyTorch).  When none does, the error lists the reason of each.
   Keyword-only arguments are given by keyword; opd_overloads_resolve only says which it would be. */
OPD_API opd_overloads *opd_overloads_find(const char *name);
OPD_API opd_op *opd_overloads_at(opd_overloads *overloads, int i);                      /* NULL behind the last */
OPD_API opd_op *opd_overloads_resolve(opd_overloads *overloads, const opd_value *args, int nargs, const opd_keyword *kw,
                                      int nkw);
OPD_API int opd_overloads_call(opd_overloads *overloads, opd_value *rets, const opd_value *args, int nargs,
                               const opd_keyword *kw, int nkw);
/* Runs the operator again from inside one of its kernels, with the same arguments and results, at the keys given. */
OPD_API int opd_redispatch(opd_call *call, opd_keyset keys);
/* OPD_OP(&handle, "ns::name") looks up once and keeps the handle. */
OPD_INLINE opd_op *opd_op_cached(opd_op **handle, const char *name) {
#if defined(__GNUC__) && !defined(__TINYC__)
    opd_op *op = __atomic_load_n(handle, __ATOMIC_ACQUIRE);
    if (!op) {
        op = opd_find(name);
        __atomic_store_n(handle, op, __ATOMIC_RELEASE);
    }
    return op;
#else
    if (!*handle) { *handle = opd_find(name); }
    return *handle;
#endif
}
#define OPD_OP(handle, name) opd_op_cached(handle, name)
/* Finds an operator as opd_op_cached does, with a signature (see opd_op_check) that is checked at that one look-up;
   NULL with an error when it does not fit. */
OPD_API opd_op *opd_op_look_up(opd_op **handle, const char *name, const char *signature);
OPD_INLINE opd_op *opd_op_typed(opd_op **handle, const char *name, const char *signature) {
#if defined(__GNUC__) && !defined(__TINYC__)
    opd_op *op = __atomic_load_n(handle, __ATOMIC_ACQUIRE);
#else
    opd_op *op = *handle;
#endif
    return op ? op : opd_op_look_up(handle, name, signature);
}

/* Inside a kernel.  The argument's kind was checked against the schema. */
OPD_API opd_op *opd_call_operator(const opd_call *call);
OPD_API opd_keyset opd_call_keys(const opd_call *call);
OPD_API void *opd_call_user(const opd_call *call);
OPD_API int opd_call_nargs(const opd_call *call);
OPD_API const opd_value *opd_call_args(const opd_call *call);
OPD_API opd_value *opd_call_rets(opd_call *call);
OPD_API opd_tensor *opd_arg_tensor(const opd_call *call, int i);              /* NULL for None */
OPD_API int64_t opd_arg_int(const opd_call *call, int i);
OPD_API double opd_arg_float(const opd_call *call, int i);
OPD_API bool opd_arg_bool(const opd_call *call, int i);
OPD_API opd_value opd_arg_value(const opd_call *call, int i);                 /* Scalar: INT, FLOAT, BOOL or COMPLEX */
OPD_API bool opd_arg_is_none(const opd_call *call, int i);
OPD_API const char *opd_arg_str(const opd_call *call, int i);
OPD_API opd_ints opd_arg_ints(const opd_call *call, int i);                   /* n = 0 for None */
OPD_API opd_floats opd_arg_floats(const opd_call *call, int i);
OPD_API opd_tensors opd_arg_tensors(const opd_call *call, int i);
OPD_API opd_scalar_type opd_arg_dtype(const opd_call *call, int i, opd_scalar_type if_none);
OPD_API opd_device opd_arg_device(const opd_call *call, int i, opd_device if_none);
/* The i-th result with these sizes and dtype: a fresh tensor on the device of the call (contents undefined), the
   checked out= tensor, self for an in-place form, or one without storage at Meta.  NULL with an error.  The kernel
   need not return it again; it belongs to the call. */
OPD_API opd_tensor *opd_result(opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype);
/* opd_result with a device, and strides (elements) for a fresh tensor; NULL: contiguous. */
OPD_API opd_tensor *opd_result_strided(opd_call *call, int i, const int64_t *sizes, const int64_t *strides, int ndim,
                                       opd_scalar_type dtype, opd_device device);
/* Give the next result; take hold of it at once (lists and strings are copied).  NULL tensor: the error passes on. */
OPD_API int opd_return_tensor(opd_call *call, opd_tensor *tensor);
OPD_API int opd_return_tensors(opd_call *call, opd_tensor *const *list, int64_t count);
OPD_API int opd_return_value(opd_call *call, opd_value value);
OPD_INLINE int opd_return_int(opd_call *call, int64_t i) { return opd_return_value(call, opd_value_int(i)); }
OPD_INLINE int opd_return_float(opd_call *call, double d) { return opd_return_value(call, opd_value_float(d)); }
OPD_INLINE int opd_return_bool(opd_call *call, bool b) { return opd_return_value(call, opd_value_bool(b)); }

