//----------------------------------------------------------------------------------------------------------------------
//  >>api:dispatcher operators, libraries, calls
//----------------------------------------------------------------------------------------------------------------------

/* A kernel.  Reads arguments with opd_arg_* and gives results with opd_result or opd_return_*.  Returns 0.  If it
   fails, it returns another number, with an error set by opd_fail or by a call that failed. */
typedef int (*opd_kernel)(opd_call *call);
/* A backward function; see opd_backward_call below. */
typedef int (*opd_backward_fn)(opd_backward_call *bw);
/* A function that keeps values for a backward function; see opd_context below. */
typedef int (*opd_setup_fn)(opd_context *ctx);
/* A derivative in forward mode: computes tangents of the results from tangents of the arguments; see opd_jvp_call
   below. */
typedef int (*opd_jvp_fn)(opd_jvp_call *jv);
/* A batching rule: a custom function, or one of the functions opd_batch_* below. */
typedef int (*opd_vmap_rule)(opd_call *call);

/* A special kernel: the call continues at the next key, as if the tensors did not have this key. */
OPD_API int opd_fallthrough(opd_call *call);
#define OPD_FALLTHROUGH opd_fallthrough
/* A special backward function for operator descriptors: results never require grad. */
OPD_API int opd_not_differentiable(opd_backward_call *bw);
#define OPD_NOT_DIFFERENTIABLE opd_not_differentiable
/* The batching rules for the field `vmap` of operator descriptors; NULL means that no rule was given.  These rules call
   the operator once, on tensors with one more dim:
     POINTWISE   an element of a result depends on one element of each argument, after broadcasting
     SHIFT_DIM   works along the dims that arguments named dim, dims, ... give; the other dims are independent
     MATMUL      two factors that are vectors, matrices or batches of them, whose batch dims broadcast (torch.matmul)
     FOLD        the first dim of every tensor is a batch of independent samples
     VIEW        results are views of the first argument
     FACTORY     sizes or dtype of the result are those of the first argument
   These rules do not call the operator in that way:
     DECOMPOSE   runs the composite kernel, which calls operators that have rules
     LOOP        runs the operator for each example */
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

/* Two autocast policies in one: `cpu` on the CPU, `others` on all other devices. */
#define OPD_AUTOCAST_BY_DEVICE(others, cpu) ((others) | (cpu) << 4)
/* The autocast policy of an operator, see >>api:autocast. */
typedef enum opd_autocast {
    OPD_AUTOCAST_FORGOTTEN = 0,  /* no policy was given */
    OPD_AUTOCAST_KEEP,           /* autocast does nothing */
    OPD_AUTOCAST_LOWER,          /* casts arguments to the region's dtype */
    OPD_AUTOCAST_FP32,           /* casts arguments to float32 */
    OPD_AUTOCAST_FP32_SET_DTYPE, /* sets the argument `dtype` to float32 if it was not given, for a float32 result */
    OPD_AUTOCAST_PROMOTE,        /* casts arguments to the widest dtype among them */
    OPD_AUTOCAST_BANNED,         /* the call fails */
    OPD_AUTOCAST_FP32_APPEND_DTYPE,               /* calls the overload that has a `dtype` */
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

/* An operator descriptor: an operator declared in one struct.  Unused fields are zero.  The built-in operators are
   declared in this way, too (see >>operators).  Strings must outlive the library (literals do). */
typedef struct opd_op_desc {
    const char *schema;          /* "name.overload(...) -> ...": the namespace is the library's */
    opd_kernel cpu;              /* kernel at CPU */
    opd_kernel cuda;             /* kernel at CUDA */
    opd_kernel fake;             /* kernel at Meta: shapes only, results from opd_result */
    opd_kernel composite;        /* kernel at CompositeImplicitAutograd: only calls operators, and is differentiated
                                    through them */
    opd_kernel any;              /* kernel at CompositeExplicitAutograd: for every backend */
    opd_kernel autograd;         /* kernel at Autograd, instead of `backward` */
    opd_backward_fn backward;    /* backward function, or OPD_NOT_DIFFERENTIABLE */
    const char *save;            /* tensors that `backward` reads: "self, result".  "other(self)": saved only if self's
                                    gradient is needed.  "self.sizes": only the sizes and dtype of self, as a fake.  ""
                                    or NULL: none.  Arguments that are not tensors are always kept */
    const char *constant;        /* arguments for which `backward` gives no gradient (calls fail if one requires grad)
                                    and results that never require grad: "weight, total_weight" */
    opd_vmap_rule vmap;          /* OPD_BATCH_*, or a function */
    opd_autocast autocast;       /* OPD_AUTOCAST_* */
    const char *inplace;         /* name of the in-place form derived from this one, e.g. "add_.Tensor" */
    const char *out;             /* name of the out= form ("add.out"), followed by the names of several out arguments
                                    ("sort.values(values, indices)"); or a whole schema */
    const char *cases;           /* argument lists that the generic tests walk: see src/README.md */
    void *user;                  /* opd_call_user returns it to kernels */
    opd_destroy destroy;         /* called with `user` when no kernel and no running call can use it any more */
    uint32_t tags;               /* OPD_OPTAG_* */
    bool same_again;             /* an identical second definition is allowed */
    opd_jvp_fn jvp;              /* forward mode: a function or OPD_JVP_*; NULL: derived from `backward`; see
                                    >>api:forward */
    opd_setup_fn setup_context;  /* with `backward`: fills a context (see opd_context) after each recorded call, instead
                                    of `save` or in addition to it; only for operators that write no argument and return
                                    no views */
    bool once_differentiable;    /* `backward` itself cannot be differentiated; second derivatives fail */
    double (*flops)(const opd_call *call);        /* returns the FLOPs of a call, for opd_cost; see >>api:fake */
    const struct opd_function *function;          /* a C function instead of `any`, see >>api:functions; is checked
                                    against the schema, or makes the schema if `schema` is a name alone */
} opd_op_desc;

/* Properties of operators: PyTorch's tags (aten/src/ATen/native/tags.yaml describes each). */
enum {
    OPD_OPTAG_CORE = 1, OPD_OPTAG_POINTWISE = 2, OPD_OPTAG_PT2_COMPLIANT = 4, OPD_OPTAG_VIEW_COPY = 8,
    OPD_OPTAG_INPLACE_VIEW = 16, OPD_OPTAG_NONDETERMINISTIC_SEEDED = 32, OPD_OPTAG_NONDETERMINISTIC_BITWISE = 64,
    OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE = 128, OPD_OPTAG_DATA_DEPENDENT_OUTPUT = 256, OPD_OPTAG_GENERATED = 512,
    OPD_OPTAG_NEEDS_EXACT_STRIDES = 1024, OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER = 2048, OPD_OPTAG_FLEXIBLE_LAYOUT = 4096,
    OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING = 8192,
    OPD_OPTAG_USER = 1 << 24     /* this bit and higher ones: tags that the program defines */
};
/* The assumptions about aliasing between arguments and results of an operator (c10::AliasAnalysisKind). */
typedef enum opd_alias_kind {
    OPD_ALIAS_FROM_SCHEMA = 0,   /* aliases as the schema says */
    OPD_ALIAS_CONSERVATIVE,      /* arguments and results may be aliases; the default if an operator is defined by a
                                    name alone */
    OPD_ALIAS_PURE_FUNCTION,     /* no aliases and no side effects */
    OPD_ALIAS_INTERNAL_SPECIAL_CASE               /* PyTorch's own special cases */
} opd_alias_kind;

/* The kinds of libraries. */
typedef enum opd_library_kind {
    OPD_DEF = 1,                 /* TORCH_LIBRARY: defines a namespace */
    OPD_FRAGMENT,                /* TORCH_LIBRARY_FRAGMENT: adds to a namespace */
    OPD_IMPL                     /* TORCH_LIBRARY_IMPL: only registers kernels */
} opd_library_kind;
/* Opens a library.  ns is its namespace; "_" (OPD_IMPL only) stands for every namespace.  key is the name of a dispatch
   key or NULL.  file and line are the place of registration, which messages name.  On failure returns NULL with an
   error.  Any thread may call this. */
OPD_API opd_library *opd_library_open(opd_library_kind kind, const char *ns, const char *key,
                                      const char *file, int line);
/* Closes a library and undoes all its registrations.  Libraries may be closed in any order.  While a thread is inside a
   call, tables and user pointers are not freed: the next opd_library_close or opd_finish frees them. */
OPD_API void opd_library_close(opd_library *lib);
/* Defines an operator by its schema.  Returns 0, or -1 with an error and nothing changed. */
OPD_API int opd_def(opd_library *lib, const char *schema);
/* Options of opd_def_with.  If same_again is set, an operator that is defined already may be defined again, with the
   same schema and alias kind.  The operator then exists until all its definitions are undone, with the tags and place
   of the oldest definition. */
typedef struct opd_def_options { uint32_t tags; opd_alias_kind alias; bool same_again; } opd_def_options;
/* Defines an operator as opd_def does, with options, which may be NULL. */
OPD_API int opd_def_with(opd_library *lib, const char *schema, const opd_def_options *options);
/* Sets the place of later registrations, instead of the library's: dumps and messages say "registered at FILE:LINE", or
   FILE alone if line is 0.  The string must outlive the library. */
OPD_API void opd_library_at(opd_library *lib, const char *file, int line);
/* Registers a kernel at the library's key; if the library has no key, at CompositeImplicitAutograd, which means for all
   backends.  Returns 0, or -1 with an error. */
OPD_API int opd_impl(opd_library *lib, const char *name, opd_kernel kernel);
/* Registers a kernel at a named key.  user is a pointer for opd_call_user, and destroy frees it; both may be NULL.
   Returns 0, or -1 with an error. */
OPD_API int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                         opd_destroy destroy);
/* Registers a kernel at the library's key for all operators that have no kernel at this key (namespace "_"
   only).  Returns 0, or -1 with an error. */
OPD_API int opd_fallback(opd_library *lib, opd_kernel kernel);
/* Defines an operator by its descriptor, which is copied.  Fails with an error if the name is defined already, unless
   same_again allows it.  When the library is closed, the name may be defined anew.  Parts that the descriptor lacks may
   be registered later, by any library and in any order.  The newest registration of a part is used until its library is
   closed.  Returns 0, or -1 with an error. */
OPD_API int opd_define(opd_library *lib, const opd_op_desc *desc);
/* Each of these functions adds one part of a descriptor to an operator, before or after its definition.
   opd_fake_register: Adds a fake kernel.  Fails if the operator already has a fake kernel or a composite kernel.
   Follows torch.library.register_fake.
   opd_vmap_register: Adds a batching rule.  Follows torch.library.register_vmap.
   opd_jvp_register: Adds a derivative in forward mode: a function or OPD_JVP_*.
   Each returns 0, or -1 with an error and nothing changed.  To add the kernel of a device, use opd_impl_key at "CPU",
   "CUDA", ... */
OPD_API int opd_fake_register(opd_library *lib, const char *name, opd_kernel fake);
OPD_API int opd_vmap_register(opd_library *lib, const char *name, opd_vmap_rule rule);
OPD_API int opd_jvp_register(opd_library *lib, const char *name, opd_jvp_fn jvp);
/* Gives an operator a backward function.  The function becomes a kernel of this library at Autograd.  The operator may
   be defined before or after this call, and must not write arguments or return views.  After each recorded call,
   setup_context fills the context that `backward` reads (see opd_context).  If setup_context is NULL, nothing is saved.
   Returns 0, or -1 with an error and nothing changed.  Follows torch.library.register_autograd. */
OPD_API int opd_autograd_register(opd_library *lib, const char *name, opd_backward_fn backward,
                                  opd_setup_fn setup_context);

/* Finds an operator by its name "ns::name.overload".  Handles stay valid for ever, but calls through the handle of an
   operator that was undefined fail.  If there is no such operator, returns NULL with an error that names the most
   similar operators. */
OPD_API opd_op *opd_find(const char *name);
/* Finds an operator as opd_find does, but returns NULL without an error. */
OPD_API opd_op *opd_find_quiet(const char *name);
OPD_API const char *opd_op_name(const opd_op *op);                /* returns "ns::name.overload" */
OPD_API const opd_schema *opd_op_schema(const opd_op *op);      /* NULL for an operator without a definition */
/* Returns the descriptor that opd_define was given, without `user`; NULL if the operator has none. */
OPD_API const opd_op_desc *opd_op_card(const opd_op *op);
OPD_API uint32_t opd_op_tags(const opd_op *op);                   /* returns bits OPD_OPTAG_* */
/* Returns the next operator in the order of definition.  Pass NULL to get the first. */
OPD_API opd_op *opd_op_next(const opd_op *op);
/* Checks a C signature against the operator's schema.  The signature has a letter for each type, first for the
   result: "TTTi", for example.  T is a tensor, i int64_t, d double, b bool, s string, D device, G generator, I
   opd_ints, F opd_doubles, L opd_tensors, V opd_value (anything).  As result, v means no result and N several tensors.
   Trailing arguments with defaults may be left out.  Returns 0, or -1 with an error. */
OPD_API int opd_op_check(const opd_op *op, const char *signature);
/* A filter for opd_op_list; NULL fields select all operators. */
typedef struct opd_op_filter {
    const char *ns, *part, *key; /* the namespace, a part of the name, and a key at which the operator has a kernel */
    uint32_t tags;               /* OPD_OPTAG_*: the operator has all these tags */
    bool dangling;               /* select operators with kernels but without a definition */
} opd_op_filter;
/* Lists the operators that pass a filter, in the order of definition.  If filter is NULL, lists all defined
   operators.  Writes the first cap of them to ops and returns the number of all that pass, or -1 with an error.  The
   operators of torchvision, c10d and _c10d_functional are defined when their namespace is first named, by ns or by a
   look-up, because a program may define them itself.  Before that, opd_op_list and opd_op_next do not list them.  */
OPD_API int opd_op_list(const opd_op_filter *filter, opd_op **ops, int cap);
/* Counts of the contents of the registry.  dangling: operators with kernels but without a definition.  retired: tables
   and kernels that are out of use, but not freed yet, because running calls may still read them. */
typedef struct opd_registry_info {
    int64_t operators, dangling, kernels, fallbacks, libraries, retired;
} opd_registry_info;
OPD_API opd_registry_info opd_registry_stats(void);
/* Explains in words how a call with these arguments would run on this thread.  The text in buf lists the call's keys
   with their origins, and the keys that are left out with the reason.  For each layer it names the kernel and the place
   of registration.  The text is cut to `cap` bytes.  Returns the full length; 0 with an error if the arguments do not
   fit the schema. */
OPD_API size_t opd_explain(opd_op *op, const opd_value *args, int nargs, char *buf, size_t cap);
/* Switches the dispatch trace on or off for all threads.  The trace shows each kernel before it runs: "[call]
   op=[aten::add.Tensor], key=[CPU]", or "[redispatch] ...", indented by one blank for each kernel that called it.  The
   text goes to stderr, or to the log function (with is_error -1).  With $OPD_SHOW_DISPATCH_TRACE=1 the trace is on from
   the start.  While the trace is off, it costs nothing.  Returns the previous setting. */
OPD_API bool opd_dispatch_trace_set(bool on);
/* Adds a listener.  Calls `defined` for each operator that is already defined, and later for each new operator.  Calls
   `undefined` before an operator is removed.  Both run while the registry is locked: they may read the name and schema,
   but must not register or look up operators, or add or remove listeners.  On failure returns NULL with an error. */
typedef struct opd_listener opd_listener;
typedef void (*opd_listener_fn)(void *user, opd_op *op);
OPD_API opd_listener *opd_listener_add(opd_listener_fn defined, opd_listener_fn undefined, void *user);
OPD_API void opd_listener_remove(opd_listener *listener);
/* opd_dump writes the registrations of an operator to buf, opd_dump_table its dispatch table, in PyTorch's form
   (_dispatch_dump, _dispatch_dump_table).  The text is cut to `cap` bytes.  Returns the full length. */
OPD_API size_t opd_dump(const opd_op *op, char *buf, size_t cap);
OPD_API size_t opd_dump_table(const opd_op *op, char *buf, size_t cap);
/* Checks the registry for errors of this library itself: each slot of each dispatch table must follow from the
   registrations, and the counters must agree.  Returns 0, or -1 with an error. */
OPD_API int opd_check_invariants(void);

/* Calls an operator and returns its first result, or NULL if the call fails.  args are in the order of the schema,
   keyword-only arguments too, and trailing arguments with defaults may be left out.  op is one overload, and the
   arguments do not select another one.
   A dtype is an int in C, so the 1 in OPD_CALL(opd_find("aten::sum"), x, 1) means the dtype int8, not a dim.  To choose
   an overload by the arguments, as PyTorch does, use opd_overloads_call.  Results belong to the innermost scope.  If an
   in-place or out= operator returns an argument, the owner of the argument does not change.
   If the first result is neither a tensor nor None, the call fails, but the operator has run.  If there are no results,
   or the first is None, returns NULL without an error.
   As in Python, operators of namespace aten accept a number for a Tensor argument.  Other operators do not, because
   their kernels may not expect a 0-dim tensor of another dtype. */
OPD_API opd_tensor *opd_call_op(opd_op *op, const opd_value *args, int nargs);
/* Calls an operator as opd_call_op does and writes all results to rets, unless rets is NULL.  Returns 0, or -1 with an
   error. */
OPD_API int opd_call_all(opd_op *op, opd_value *rets, const opd_value *args, int nargs);
/* Calls an operator whose results are all tensors, and writes them to rets.  An undefined result is NULL.  Returns 0,
   or -1 with an error, also if a result is no tensor. */
OPD_API int opd_call_tensors(opd_op *op, opd_tensor **rets, const opd_value *args, int nargs);
/* opd_call_value calls an operator whose only result is a number, and returns the number.  opd_call_list calls an
   operator whose only result is a list of tensors, and returns the list.  For another result, opd_call_list fails. */
OPD_API opd_value opd_call_value(opd_op *op, const opd_value *args, int nargs);
OPD_API opd_tensors opd_call_list(opd_op *op, const opd_value *args, int nargs);
/* An argument by name. */
typedef struct opd_keyword { const char *name; opd_value value; } opd_keyword;
/* Calls an operator with nargs positional arguments and nkw arguments by name.  All other arguments take their
   defaults.  rets is as for opd_call_all.  Returns 0, or -1 with an error. */
OPD_API int opd_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs, const opd_keyword *kw,
                              int nkw);
/* Calls an operator's kernel at the runtime key `key`; the keys of the arguments do not matter
   (callBoxedForDispatchKey).  rets is as for opd_call_all.  Returns 0, or -1 with an error. */
OPD_API int opd_call_at(opd_op *op, const char *key, opd_value *rets, const opd_value *args, int nargs);
/* Returns a handle of the kernel that runs for an operator at the runtime key `key`, such as "CPU" or "AutogradCPU", as
   it is registered now.  The kernel may be registered at this key, be composite, or be a fallback.  With the handle, a
   kernel that is registered later can call the kernel that it replaces: see opd_kernel_call.  Registrations that follow
   do not change the handle.  The caller frees it with opd_kernel_free.  Any thread may call this.  Returns NULL with an
   error for an alias key, or if no kernel runs at this key.  Follows torch.library.get_kernel. */
OPD_API opd_kernel_handle *opd_kernel_get(opd_op *op, const char *key);
/* For use inside a kernel of the operator of handle: runs the kernel of handle with the arguments of `call`.  Its
   results become the results of `call`, also in in-place and out= forms.  The kernel sees the keys of `call` up to the
   key of handle.  A kernel that is a fallthrough continues below this key.  The call is no event for observers.  Fails
   with an error if the library of the kernel was closed.  Returns 0, or -1 with an error. */
OPD_API int opd_kernel_call(const opd_kernel_handle *handle, opd_call *call);
/* Runs the kernel of handle as opd_kernel_call does, but with these arguments, inside or outside of a kernel.  args and
   rets are as for opd_call_all.  Returns 0, or -1 with an error. */
OPD_API int opd_kernel_call_with(const opd_kernel_handle *handle, opd_value *rets, const opd_value *args, int nargs);
/* Frees a handle of opd_kernel_get, or does nothing for NULL.  No thread may be using the handle.  The parameter has
   the type of `destroy`, so a kernel may have the handle as its user pointer, and free it when its library is closed:
   opd_impl_key(lib, "exp", "CPU", my_exp, opd_kernel_get(op, "CPU"), opd_kernel_free). */
OPD_API void opd_kernel_free(void *handle);
/* Finds all overloads of "ns::name", for calls by base name.  Overloads that are defined later are found, too.  The
   handle stays valid for ever.  Returns NULL with an error if there are no overloads. */
OPD_API opd_overloads *opd_overloads_find(const char *name);
/* Returns the i-th overload in the order in which opd_overloads_call tries them; NULL beyond the last. */
OPD_API opd_op *opd_overloads_at(opd_overloads *overloads, int i);
/* Returns the overload that opd_overloads_call would call with these arguments; NULL with an error if there is none. */
OPD_API opd_op *opd_overloads_resolve(opd_overloads *overloads, const opd_value *args, int nargs, const opd_keyword *kw,
                                      int nkw);
/* Calls the first overload that takes the arguments; keyword-only arguments are given by keyword.  Overloads are tried
   in the order of definition, and derived forms (out=, in-place) last.  Overloads of any, all, var, std, range and
   normal have PyTorch's order.  A number stands for a tensor only in namespace aten, and only if no overload takes the
   number (in add, sub, mul, div, ... even then, as in PyTorch).  If no overload takes the arguments, the error lists
   the reason for each.  rets is as for opd_call_all.  Returns 0, or -1 with an error. */
OPD_API int opd_overloads_call(opd_overloads *overloads, opd_value *rets, const opd_value *args, int nargs,
                               const opd_keyword *kw, int nkw);
/* For use inside a kernel: calls the kernel that the operator of `call` has at the highest of the given keys, with the
   same arguments.  The results become the results of `call`.  Returns 0, or -1 with an error. */
OPD_API int opd_redispatch(opd_call *call, opd_keyset keys);
/* Finds an operator once and keeps it in *handle: OPD_OP(&handle, "ns::name"). */
OPD_INLINE opd_op *opd_op_cached(opd_op **handle, const char *name) {
    opd_op *op = OPDI_HANDLE_READ(handle);
    if (!op) {
        op = opd_find(name);
        OPDI_HANDLE_WRITE(handle, op);
    }
    return op;
}
#define OPD_OP(handle, name) opd_op_cached(handle, name)
/* Finds an operator as opd_op_cached does.  When the name is looked up, also checks the signature (see opd_op_check).
   Returns NULL with an error if the signature does not fit. */
OPD_API opd_op *opdi_op_look_up(opd_op **handle, const char *name, const char *signature);
OPD_INLINE opd_op *opdi_op_typed(opd_op **handle, const char *name, const char *signature) {
    opd_op *op = OPDI_HANDLE_READ(handle);
    return op ? op : opdi_op_look_up(handle, name, signature);
}

/* The functions opd_call_operator to opd_arg_device are for use inside a kernel.  opd_arg_* return argument i, whose
   kind the dispatcher has compared with the schema. */
OPD_API opd_op *opd_call_operator(const opd_call *call);
OPD_API opd_keyset opd_call_keys(const opd_call *call);
OPD_API void *opd_call_user(const opd_call *call);
OPD_API int opd_call_nargs(const opd_call *call);
OPD_API const opd_value *opd_call_args(const opd_call *call);
OPD_API opd_value *opd_call_rets(opd_call *call);
OPD_API opd_tensor *opd_arg_tensor(const opd_call *call, int i);              /* NULL for None */
OPD_API int64_t opd_arg_int(const opd_call *call, int i);
OPD_API double opd_arg_double(const opd_call *call, int i);
OPD_API bool opd_arg_bool(const opd_call *call, int i);
OPD_API opd_value opd_arg_value(const opd_call *call, int i);                 /* Scalar: INT, FLOAT, BOOL or COMPLEX */
OPD_API bool opd_arg_is_none(const opd_call *call, int i);
OPD_API const char *opd_arg_str(const opd_call *call, int i);
OPD_API opd_ints opd_arg_ints(const opd_call *call, int i);                   /* n = 0 for None */
OPD_API opd_doubles opd_arg_doubles(const opd_call *call, int i);
OPD_API opd_tensors opd_arg_tensors(const opd_call *call, int i);
OPD_API opd_scalar_type opd_arg_dtype(const opd_call *call, int i, opd_scalar_type if_none);
OPD_API opd_device opd_arg_device(const opd_call *call, int i, opd_device if_none);
/* Makes result i of the call, with these sizes and dtype, and returns it.  The result is a new tensor on the device of
   the call, with undefined contents.  In an in-place form it is self, and in an out= form the out argument, after a
   check.  In a kernel at Meta, it has no storage.  The call owns the tensor, and the kernel need not return it again.
   On failure returns NULL with an error. */
OPD_API opd_tensor *opd_result(opd_call *call, int i, const int64_t *sizes, int ndim, opd_scalar_type dtype);
/* Makes result i as opd_result does, but on the given device.  If the result is a new tensor, it has these strides (in
   elements; NULL: contiguous). */
OPD_API opd_tensor *opd_result_strided(opd_call *call, int i, const int64_t *sizes, const int64_t *strides, int ndim,
                                       opd_scalar_type dtype, opd_device device);
/* opd_return_tensor, opd_return_tensors, opd_return_value and the functions below set the next result of the call, from
   result 0 on.  They retain tensors, and copy lists and strings, before they return.  If the tensor is NULL because an
   earlier call failed, the error of that call is passed on.  Each returns 0, or -1 with an error. */
OPD_API int opd_return_tensor(opd_call *call, opd_tensor *tensor);
OPD_API int opd_return_tensors(opd_call *call, opd_tensor *const *list, int64_t count);
OPD_API int opd_return_value(opd_call *call, opd_value value);
OPD_INLINE int opd_return_int(opd_call *call, int64_t i) { return opd_return_value(call, opd_value_int(i)); }
OPD_INLINE int opd_return_double(opd_call *call, double d) { return opd_return_value(call, opd_value_double(d)); }
OPD_INLINE int opd_return_bool(opd_call *call, bool b) { return opd_return_value(call, opd_value_bool(b)); }

