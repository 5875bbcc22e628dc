//----------------------------------------------------------------------------------------------------------------------
//  >>api:keys       dispatch keys, key sets, guards
//----------------------------------------------------------------------------------------------------------------------

/* Functionalities, from low to high priority.  Functionality number f is bit f - 1 of a key set.  The order is
   PyTorch's (c10/core/DispatchKey.h), without keys that have no meaning in C: Python, PythonTLSSnapshot,
   PythonDispatcher, Named, DeferredInit, Batched, VmapMode and the testing wrappers.  The autocast keys are one
   functionality with a backend, as the autograd keys are. */
typedef enum opd_functionality {
    OPD_F_UNDEFINED = 0, OPD_F_DENSE, OPD_F_FPGA, OPD_F_MAIA, OPD_F_VULKAN, OPD_F_METAL, OPD_F_QUANTIZED,
    OPD_F_CUSTOM_RNG, OPD_F_MKLDNN_CPU, OPD_F_SPARSE, OPD_F_SPARSE_CSR, OPD_F_NESTED_TENSOR,
    OPD_F_USER_0 = 12,           /* 12..15: user keys: above the backends, below BackendSelect */
    OPD_F_BACKEND_SELECT = 16,
    OPD_F_USER_1 = 17,           /* 17..20: above BackendSelect */
    OPD_F_FAKE = 21, OPD_F_DYNAMIC_LAYER_BACK, OPD_F_FUNCTIONALIZE, OPD_F_CONJUGATE, OPD_F_NEGATIVE, OPD_F_ZERO_TENSOR,
    OPD_F_USER_2 = 27,           /* 27..30: below ADInplaceOrView */
    OPD_F_AD_INPLACE_OR_VIEW = 31,
    OPD_F_USER_3 = 32,           /* 32..35: between ADInplaceOrView and Autograd */
    OPD_F_AUTOGRAD_OTHER = 36, OPD_F_AUTOGRAD, OPD_F_AUTOGRAD_NESTED_TENSOR,
    OPD_F_USER_4 = 39,           /* 39..42: between Autograd and Tracer */
    OPD_F_TRACER = 43,
    OPD_F_USER_5 = 44,           /* 44..47: between Tracer and Autocast */
    OPD_F_AUTOCAST = 48,
    OPD_F_USER_6 = 49,           /* 49..52: between Autocast and the transforms */
    OPD_F_BATCHED = 53, OPD_F_BATCHED_NESTED_TENSOR, OPD_F_VMAP_MODE, OPD_F_GRAD_WRAPPER, OPD_F_DYNAMIC_LAYER_FRONT,
    OPD_F_USER_7 = 58,           /* 58..61: above everything but PreDispatch */
    OPD_F_PRE_DISPATCH = 62,
    OPD_F_COUNT = 63
} opd_functionality;

/* A runtime key is a slot of the dispatch table: a functionality, or one of the seven per-backend functionalities
   together with a backend.  An alias key stands for a set of runtime keys.  Key sets never contain alias keys. */
typedef int32_t opd_key;
#define OPD_KEY_UNDEFINED 0
#define OPD_KEY_OF(functionality) (0 + (functionality))
#define OPD_KEY_BACKEND_BASE 64
#define OPD_KEY_PER_BACKEND(index, backend) (OPD_KEY_BACKEND_BASE + 16 * (index) + (backend))
#define OPD_KEY_CPU OPD_KEY_PER_BACKEND(0, OPD_CPU)
#define OPD_KEY_CUDA OPD_KEY_PER_BACKEND(0, OPD_CUDA)
#define OPD_KEY_META OPD_KEY_PER_BACKEND(0, OPD_META)
#define OPD_KEY_AUTOGRAD_CPU OPD_KEY_PER_BACKEND(5, OPD_CPU)
#define OPD_KEY_AUTOGRAD_CUDA OPD_KEY_PER_BACKEND(5, OPD_CUDA)
#define OPD_KEY_AUTOCAST_CPU OPD_KEY_PER_BACKEND(6, OPD_CPU)         /* for any device: OPD_KEY_PER_BACKEND(6,
                                                                        device) */
#define OPD_KEY_AUTOCAST_CUDA OPD_KEY_PER_BACKEND(6, OPD_CUDA)
#define OPD_KEY_BACKEND_SELECT OPD_KEY_OF(OPD_F_BACKEND_SELECT)
#define OPD_KEY_AD_INPLACE_OR_VIEW OPD_KEY_OF(OPD_F_AD_INPLACE_OR_VIEW)
#define OPD_KEY_AUTOGRAD_OTHER OPD_KEY_OF(OPD_F_AUTOGRAD_OTHER)
#define OPD_KEY_SLOTS (OPD_KEY_BACKEND_BASE + 7 * 16)
enum {
    OPD_KEY_AUTOGRAD = OPD_KEY_SLOTS, OPD_KEY_COMPOSITE_IMPLICIT, OPD_KEY_FUNCTORCH_BATCHED_DECOMPOSITION,
    OPD_KEY_COMPOSITE_IMPLICIT_NESTED_TENSOR, OPD_KEY_COMPOSITE_EXPLICIT, OPD_KEY_COMPOSITE_EXPLICIT_NON_FUNCTIONAL,
    OPD_KEY_COUNT, OPD_KEY_INVALID = -1
};
/* opd_key_parse: Returns the key with a name: "CPU", "AutogradCUDA", "CompositeImplicitAutograd", ...  Accepts
   PyTorch's names and their legacy spellings.  Returns OPD_KEY_INVALID and sets an error "could not parse dispatch key:
   X" that lists the nearest names.
   opd_key_name: Returns the name of a key. */
OPD_API opd_key opd_key_parse(const char *name);
OPD_API const char *opd_key_name(opd_key key);
/* Names one of the user keys (OPD_F_USER_n + 0..3), so that libraries can register kernels at it.  The name is
   permanent.  Any thread may call this.  Returns the key.  Returns OPD_KEY_INVALID and sets an error if `functionality`
   is not a user key, if the key already has a name, or if the name is taken. */
OPD_API opd_key opd_key_define(int functionality, const char *name);
OPD_API bool opd_key_is_alias(opd_key key);

/* A set of keys: functionality bits (bit f-1 is functionality f) and backend bits (bit b is backend b).  As in PyTorch,
   the two kinds of bits are independent.  The set {AutogradCPU, SparseCUDA} therefore also contains AutogradCUDA and
   SparseCPU. */
typedef struct opd_keyset { uint64_t functionality; uint64_t backends; } opd_keyset;
OPD_INLINE opd_keyset opd_keyset_make(uint64_t functionality, uint64_t backends) {
    opd_keyset set;
    set.functionality = functionality;
    set.backends = backends;
    return set;
}
#define OPD_KEYS_EMPTY opd_keyset_make(0, 0)
#define OPD_BIT_OF(functionality) (UINT64_C(1) << ((functionality) - 1))
OPD_API opd_keyset opd_keyset_add(opd_keyset set, opd_key key);
/* Returns set without the functionality bit of key.  Backend bits stay. */
OPD_API opd_keyset opd_keyset_remove(opd_keyset set, opd_key key);
/* Returns true if set has the functionality of key and, if key has a backend, the backend. */
OPD_API bool opd_keyset_has(opd_keyset set, opd_key key);
/* Returns the runtime key whose kernel runs first: the functionality and the backend of the set that come last in
   opd_functionality and opd_backend. */
OPD_API opd_key opd_keyset_highest(opd_keyset set);
/* Returns all functionalities strictly below a functionality, with all backend bits.  A kernel at an Autograd key
   redispatches with `keys & opd_keyset_below(OPD_F_AUTOGRAD_OTHER)`. */
OPD_INLINE opd_keyset opd_keyset_below(int functionality) {
    return opd_keyset_make(OPD_BIT_OF(functionality) - 1, ~UINT64_C(0));
}
/* opd_keyset_and and opd_keyset_or return the intersection and the union of two sets, of both kinds of bits. */
OPD_INLINE opd_keyset opd_keyset_and(opd_keyset set, opd_keyset keys) {
    return opd_keyset_make(set.functionality & keys.functionality, set.backends & keys.backends);
}
OPD_INLINE opd_keyset opd_keyset_or(opd_keyset set, opd_keyset keys) {
    return opd_keyset_make(set.functionality | keys.functionality, set.backends | keys.backends);
}
/* Returns set without the functionalities of keys.  As in PyTorch, backend bits stay; opd_keyset_remove_backend removes
   a backend bit. */
OPD_INLINE opd_keyset opd_keyset_minus(opd_keyset set, opd_keyset keys) {
    return opd_keyset_make(set.functionality & ~keys.functionality, set.backends);
}
/* Returns the functionalities and backends that are in one of the two sets only. */
OPD_INLINE opd_keyset opd_keyset_xor(opd_keyset set, opd_keyset keys) {
    return opd_keyset_make(set.functionality ^ keys.functionality, set.backends ^ keys.backends);
}
/* Returns set without the bit of a backend. */
OPD_INLINE opd_keyset opd_keyset_remove_backend(opd_keyset set, int backend) {
    const uint64_t bit = backend >= 0 && backend < 64 ? UINT64_C(1) << backend : 0;
    return opd_keyset_make(set.functionality, set.backends & ~bit);
}
/* Compare sets, with both kinds of bits.  opd_keyset_has_all returns true if all bits of `part` are in set. */
OPD_INLINE bool opd_keyset_equal(opd_keyset set, opd_keyset keys) {
    return set.functionality == keys.functionality && set.backends == keys.backends;
}
OPD_INLINE bool opd_keyset_is_empty(opd_keyset set) { return set.functionality == 0 && set.backends == 0; }
OPD_INLINE bool opd_keyset_has_all(opd_keyset set, opd_keyset part) {
    return opd_keyset_equal(opd_keyset_and(set, part), part);
}
/* Returns true if set and keys share a functionality. */
OPD_INLINE bool opd_keyset_has_any(opd_keyset set, opd_keyset keys) {
    return (set.functionality & keys.functionality) != 0;
}
/* Sets of keys.
   OPD_KEYS_FULL: Every functionality and every backend.
   OPD_KEYS_AUTOGRAD: The autograd keys.
   OPD_KEYS_AUTOGRAD_AND_VIEW: The keys that a kernel at ADInplaceOrView excludes. */
#define OPD_KEYS_FULL opd_keyset_make(OPD_BIT_OF(OPD_F_COUNT) - 1, (UINT64_C(1) << OPD_BACKEND_COUNT) - 1)
#define OPD_KEYS_AUTOGRAD opd_keyset_make(OPD_BIT_OF(OPD_F_AUTOGRAD_OTHER) | OPD_BIT_OF(OPD_F_AUTOGRAD) | \
                                          OPD_BIT_OF(OPD_F_AUTOGRAD_NESTED_TENSOR), 0)
#define OPD_KEYS_AUTOGRAD_AND_VIEW opd_keyset_make(OPD_KEYS_AUTOGRAD.functionality | \
                                                   OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW), 0)
/* Returns the next runtime key of a set after `after`, from low to high, or Undefined (0) after the last one:
   `for (k = opd_keyset_next(s, 0); k; k = opd_keyset_next(s, k))`. */
OPD_API opd_key opd_keyset_next(opd_keyset set, opd_key after);
/* Writes the set as text, "DispatchKeySet(CPU, AutogradCPU)", from low to high, to buf, cut to `cap` bytes including
   the final zero.  Returns the full length. */
OPD_API size_t opd_keyset_print(opd_keyset set, char *buf, size_t cap);

/* The included and excluded keys of this thread.  opd_keys_include adds the functionalities of `set` to the included
   keys, and opd_keys_exclude to the excluded keys.  Both return a guard.  opd_keys_restore removes only the
   functionalities that the call which returned the guard has added.  If a kernel does not restore the keys, the
   dispatcher restores them when the kernel returns. */
typedef struct opd_key_guard { uint64_t include, exclude; } opd_key_guard;
OPD_API opd_key_guard opd_keys_include(opd_keyset set);
OPD_API opd_key_guard opd_keys_exclude(opd_keyset set);
OPD_API void opd_keys_restore(opd_key_guard guard);
OPD_API opd_keyset opd_keys_included(void);
OPD_API opd_keyset opd_keys_excluded(void);
/* The state of a thread that the dispatcher reads.  A program can carry it to another thread (at::ThreadLocalState).  A
   new thread begins with the defaults.  opd_dispatch_state_set sets the state of this thread and returns the previous
   one; set that one again to restore it.  A program may change fields before it sets a state (ForceDispatchKeyGuard).
   If a kernel sets a state, the dispatcher restores the previous one when the kernel returns. */
typedef struct opd_dispatch_state {
    uint64_t included, excluded;
    bool grad_enabled, inference, no_forward_grad;
    uint16_t autocast;           /* identifies the open autocast regions, within this process; 0: no region is open */
} opd_dispatch_state;
OPD_API opd_dispatch_state opd_dispatch_state_get(void);
OPD_API opd_dispatch_state opd_dispatch_state_set(opd_dispatch_state state);

